"""A stored decision explained: the same verdict that a comparison would have given."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from evenhand.contract import Failure, Pair, Verdict
from evenhand.judging.explanation import VerdictContext, explain, in_contract
from evenhand.store import JudgeRecord, RunRecord, Settled, StoredPass
from evenhand.store.rows import passes_behind


def told(
    settled: Settled,
    pair: Pair,
    passes: Iterable[StoredPass],
    *,
    judge: JudgeRecord,
    run: RunRecord,
) -> Verdict | Failure:
    if not isinstance(settled, Failure):
        return explain(pair, settled, _context(judge, run))
    behind = passes_behind(
        passes, swap_positions=pair.swap_positions, samples=settled.metadata.samples
    )
    metadata = settled.metadata.model_copy(update={"passes": in_contract(pair, behind)})
    return settled.model_copy(update={"metadata": metadata})


def _context(judge: JudgeRecord, run: RunRecord) -> VerdictContext:
    settings, deciding = judge.settings, deciding_of(judge, run)
    return VerdictContext(
        judge=judge.name,
        caveat=settings.get("caveat"),
        locale=deciding.get("locale", "en"),
        mode=judge.mode or "reasoned",
        reconcile=deciding.get("reconcile", "agreement"),
        prompt_version=judge.prompt_version,
        confidence=settings.get("confidence", "stated"),
    )


def deciding_of(judge: JudgeRecord, run: RunRecord, *, part: str = "deciding") -> Mapping[str, Any]:
    """How the run made verdicts of this judge's passes; or another part of its plan that has a
    value for each judge."""
    keys, recorded = run.plan.get("judges"), run.plan.get(part)
    if not isinstance(keys, list) or not isinstance(recorded, list) or judge.key not in keys:
        return {}
    own = recorded[keys.index(judge.key)]
    return own if isinstance(own, Mapping) else {}
