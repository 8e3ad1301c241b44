"""One pair through one judge: the heart of the program.

pair → prompt → judge call → ballot or unread → decision → verdict
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from evenhand.contract import Artefact, Failure, Metadata, Outcome, Pair, Verdict, read_pair
from evenhand.errors import EvenhandError, InputError, NoVerdict
from evenhand.judges.protocol import Judge
from evenhand.judging.config import Calibrator, JudgeConfig
from evenhand.judging.decision import CriterionDecision, Decision, Judged, PassResult
from evenhand.judging.explanation import explain, failed_metadata, failure_of
from evenhand.judging.passes import Case, PassCache, PassesFailed, make_passes, milliseconds_since
from evenhand.judging.preparation import Artefacts
from evenhand.judging.reconciliation import Unreconciled, decide
from evenhand.judging.signals import SignalValues, signals_of
from evenhand.messages import Message


class Failed(NamedTuple):
    """No verdict: the failure in the contract's terms, and the exception."""

    failure: Failure
    error: EvenhandError


async def compare(
    pair: Pair | Mapping[str, Any],
    judge: Judge,
    config: JudgeConfig | None = None,
    *,
    artefacts: Artefacts | None = None,
) -> Verdict:
    """The verdict on a pair, or an error with what is known as metadata. `artefacts` are shared by
    comparisons."""
    settled = await settle(read_pair(pair), judge, config or JudgeConfig(), artefacts=artefacts)
    if isinstance(settled, Failed):
        raise settled.error
    return settled


async def settle(
    pair: Pair,
    judge: Judge,
    config: JudgeConfig,
    *,
    keeper: PassCache | None = None,
    artefacts: Artefacts | None = None,
) -> Verdict | Failed:
    """The same, with a failure as a value."""
    case = _case(pair, judge, config)
    if isinstance(case, Failed):
        return case
    judged = await _judge(case, keeper, artefacts)
    return judged if isinstance(judged, Failed) else explain(pair, judged, case.context())


async def judge_pair(
    pair: Pair,
    judge: Judge,
    config: JudgeConfig,
    *,
    keeper: PassCache | None = None,
    artefacts: Artefacts | None = None,
) -> Judged | Failed:
    """The same without prose: what a run keeps; `explain` adds the rest.

    On any other exception (such as cancellation), completed passes stay in the keeper.
    """
    case = _case(pair, judge, config)
    return case if isinstance(case, Failed) else await _judge(case, keeper, artefacts)


def _case(pair: Pair, judge: Judge, config: JudgeConfig) -> Case | Failed:
    try:
        return Case.of(pair, judge, config)
    except InputError as error:
        error.metadata = Metadata(
            id=pair.id, positions_swapped=pair.swap_positions, judge=judge.name
        )
        return Failed(failure_of(error), error)


async def _judge(
    case: Case, keeper: PassCache | None, artefacts: Artefacts | None
) -> Judged | Failed:
    pair, config = case.pair, case.config
    if config.ties_by_rule(pair, case.judge.traits):
        return _tie_by_rule(case)
    artefacts = artefacts or Artefacts()
    try:
        passes, prepared = await make_passes(case, keeper, artefacts)
    except PassesFailed as failed:
        return _failed(
            case,
            failed.error,
            failed.passes,
            requests=failed.requests,
            artefacts=failed.prepared,
        )
    readings = [result.reading for result in passes]
    decision = decide(pair, readings, how=case.how, shows_first=case.first_order)
    if isinstance(decision, Unreconciled):
        error = NoVerdict.of("unread.no_valid_verdict", reason=decision.reason)
        return _failed(case, error, passes, why=decision, artefacts=prepared)
    if config.calibration is not None:
        decision = _calibrated(config.calibration, decision, signals_of(pair, readings, decision))
    taken_ms = milliseconds_since(case.started)
    return Judged(decision, passes, config.samples_per_order, taken_ms, prepared)


def _calibrated(
    calibration: Calibrator, decision: Decision, signals: SignalValues | None
) -> Decision:
    """An inconsistent verdict keeps its confidence, fixed by rule."""
    if signals is None:
        return decision
    probability = calibration.probability(signals)
    abstained = calibration.abstains(probability)
    if probability is None:
        return replace(decision, abstained=abstained)
    return replace(
        decision, confidence=probability, confidence_source="calibration", abstained=abstained
    )


def _tie_by_rule(case: Case) -> Judged | Failed:
    """Identical responses tie on every criterion without a judge."""
    if not case.pair.allow_tie:
        message = Message("unread.identical_no_tie")
        return _failed(case, NoVerdict(message), ())
    tie = Decision(
        Outcome.TIE,
        "TIE",
        None,
        "rule",
        criteria=tuple(CriterionDecision(c.name, Outcome.TIE, "TIE") for c in case.pair.criteria),
        decided_by="identical",
    )
    return Judged(tie, (), case.config.samples_per_order, milliseconds_since(case.started))


def _failed(
    case: Case,
    error: EvenhandError,
    passes: tuple[PassResult, ...],
    *,
    requests: int = 0,
    why: Unreconciled | None = None,
    artefacts: tuple[Artefact, ...] = (),
) -> Failed:
    error.metadata = failed_metadata(
        case.pair,
        passes,
        case.context(),
        samples=case.config.samples_per_order,
        time_ms=milliseconds_since(case.started),
        requests=requests,
        why=why,
        artefacts=artefacts,
    )
    return Failed(failure_of(error), error)
