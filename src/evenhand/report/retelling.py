"""A verdict whose prose was left out, told again from the ballots that it rests on."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from evenhand.contract import Facts, Failure, Pair, Pass, Verdict
from evenhand.errors import StoreError
from evenhand.judges import Completion, JudgeCall, Traits
from evenhand.judging.ballots import whole_ballot
from evenhand.judging.comparison import retell
from evenhand.judging.config import JudgeConfig
from evenhand.judging.passes import Case
from evenhand.store import JudgeRecord, RunRecord, Settled, StoredPass
from evenhand.store.rows import passes_behind


@dataclass(frozen=True, slots=True)
class _JudgeThen:
    """The judge as its run knew it. It has said what it had to say."""

    name: str
    traits: Traits

    async def ask(self, call: JudgeCall) -> Completion:
        raise AssertionError("a judge that is retold is not asked")

    async def close(self) -> None:
        """Nothing is open."""


def told(
    settled: Settled,
    pair: Pair,
    passes: Iterable[StoredPass],
    *,
    judge: JudgeRecord,
    run: RunRecord,
) -> Verdict | Failure:
    passes = [with_prose(stored, pair) for stored in passes]
    if not isinstance(settled, Facts):
        return _on_whole_passes(settled, passes)
    behind: tuple[Pass, ...] = ()
    if settled.passes:
        behind = passes_behind(passes, swap_positions=pair.swap_positions, samples=settled.samples)
    verdict = retell(_case(pair, settled, judge, run), behind)
    if isinstance(verdict, Failure):
        raise StoreError(
            f"the verdict on {pair.id!r} rests on answers that the store does not have "
            f"({verdict.error.message}); judge it anew with --fresh"
        )
    metadata = verdict.metadata.model_copy(
        update={
            "prompt_version": judge.prompt_version,
            "evaluation_time_ms": settled.evaluation_time_ms,
            # What was decided stays decided, also where a later version would decide otherwise.
            "outcome": settled.outcome,
            "confidence_source": settled.confidence_source,
            "abstained": settled.abstained,
            "decided_by": settled.decided_by,
            "probabilities": settled.probabilities,
            "criteria": settled.criteria,
        }
    )
    decided = {
        "winner": settled.winner,
        "confidence": settled.confidence,
        "metadata": metadata,
    }
    return verdict.model_copy(update=decided)


def with_prose(stored: StoredPass, pair: Pair) -> StoredPass:
    """The pass with its whole ballot, where only the vote was kept of it."""
    made = stored.made
    if not stored.bare or not isinstance(made, Pass) or made.ballot is None:
        return stored
    whole = made.model_copy(update={"ballot": whole_ballot(made.ballot, pair)})
    return replace(stored, made=whole, bare=False)


def _on_whole_passes(settled: Verdict | Failure, passes: Iterable[StoredPass]) -> Verdict | Failure:
    whole = {(stored.made.order, stored.made.sample): stored.made for stored in passes}
    behind = tuple(whole.get((p.order, p.sample), p) for p in settled.metadata.passes)
    metadata = settled.metadata.model_copy(update={"passes": behind})
    return settled.model_copy(update={"metadata": metadata})


def _case(pair: Pair, facts: Facts, judge: JudgeRecord, run: RunRecord) -> Case:
    settings, deciding = judge.settings, deciding_of(judge, run)
    config = JudgeConfig(
        locale=deciding.get("locale", "en"),
        samples=facts.samples,
        confidence=settings.get("confidence", "stated"),
    )
    return Case(
        pair=pair,
        judge=_JudgeThen(judge.name, Traits(caveat=settings.get("caveat"))),
        config=config,
        mode=judge.mode or "reasoned",
        how=deciding.get("reconcile", "agreement"),
        prompt=None,
        started=time.perf_counter(),
    )


def deciding_of(judge: JudgeRecord, run: RunRecord, *, part: str = "deciding") -> Mapping[str, Any]:
    """How the run made verdicts of this judge's passes; or another part of its plan that has a
    value for each judge."""
    keys, told = run.plan.get("judges"), run.plan.get(part)
    if not isinstance(keys, list) or not isinstance(told, list) or judge.key not in keys:
        return {}
    own = told[keys.index(judge.key)]
    return own if isinstance(own, Mapping) else {}
