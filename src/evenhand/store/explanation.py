"""Stored answers reread: the verdict with its prose, as the comparison would have given it; and its
confidence before calibration.
"""

from __future__ import annotations

from collections.abc import Iterable

from evenhand.contract import Failure, JudgedBy, Pair, Verdict
from evenhand.judging.decision import VerdictContext
from evenhand.judging.explanation import explain, in_contract
from evenhand.judging.explanation import pass_in_contract as pass_in_contract
from evenhand.judging.reconciliation import Unreconciled, decide
from evenhand.judging.signals import SignalValues, signals_of
from evenhand.options import JudgingOptions
from evenhand.store.records import JudgeRecord, RunRecord, Settled, StoredPass, WholeVerdict
from evenhand.store.rows import passes_behind


def explained(
    settled: Settled,
    pair: Pair,
    passes: Iterable[StoredPass],
    *,
    judge: JudgeRecord,
    run: RunRecord,
) -> Verdict | Failure:
    if not isinstance(settled, Failure):
        return explain(pair, settled, context_of(judge, run))
    behind = passes_behind(passes, orders=pair.orders, samples=settled.metadata.samples)
    metadata = settled.metadata.model_copy(update={"passes": in_contract(pair, behind)})
    return settled.model_copy(update={"metadata": metadata})


def context_of(judge: JudgeRecord, run: RunRecord) -> VerdictContext:
    """From what the run recorded, as its comparisons had it."""
    settings, deciding = judge.settings, run.planned_for(judge, "deciding")
    return VerdictContext(
        judge=judge.name,
        caveat=settings.get("caveat"),
        mode=judge.mode or "reasoned",
        reconcile=deciding.get("reconcile", "agreement"),
        prompt_version=judge.prompt_version,
        options=JudgingOptions.recorded({**settings, **deciding}),
    )


def signals_before_calibration(
    whole: WholeVerdict, judged: JudgedBy
) -> tuple[float | None, SignalValues] | None:
    """The confidence and signals from the passes alone; None if they give no verdict."""
    pair = whole.pair
    behind = passes_behind(whole.passes, orders=pair.orders, samples=judged.samples)
    readings = [made.reading for made in behind]
    # Without the texts' order, which no decision depends on.
    decision = decide(pair, readings, how=judged.reconcile)
    if isinstance(decision, Unreconciled):
        return None
    signals = signals_of(pair, readings, decision)
    return None if signals is None else (decision.confidence, signals)
