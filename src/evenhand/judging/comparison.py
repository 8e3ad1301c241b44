"""One pair through one judge: the heart of the program.

pair → prompt → judge call → ballot or unread → verdict
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from evenhand.contract import (
    Ballot,
    ErrorBody,
    Facts,
    Failure,
    Metadata,
    Outcome,
    Pair,
    Pass,
    Unread,
    Verdict,
    Vote,
    VotePass,
    read_pair,
)
from evenhand.errors import EvenhandError, InputError, NoVerdict
from evenhand.judges import Judge
from evenhand.judging.config import CalibratedConfidence, JudgeConfig
from evenhand.judging.notes import notes_on
from evenhand.judging.passes import (
    Case,
    Made,
    PassesFailed,
    PassKeeper,
    add_usage,
    in_full,
    make_passes,
    milliseconds_since,
)
from evenhand.judging.reconciliation import Reconciliation, Unreconciled, reconcile
from evenhand.judging.reconciliation import decide as decide_passes
from evenhand.messages.phrases import say


async def compare(
    pair: Pair | Mapping[str, Any], judge: Judge, config: JudgeConfig | None = None
) -> Verdict:
    """The verdict on a pair. What went wrong is raised, with what is known in its metadata."""
    settled = await settle(read_pair(pair), judge, config or JudgeConfig())
    if isinstance(settled, Verdict):
        return settled
    failure, error = settled
    error.metadata = failure.metadata
    raise error


async def settle(
    pair: Pair, judge: Judge, config: JudgeConfig, *, keeper: PassKeeper | None = None
) -> Verdict | tuple[Failure, EvenhandError]:
    """The same, with a failure as a value.

    Whatever else is raised (somebody stopped it) leaves what came before with the keeper.
    """
    heard = await _hear(pair, judge, config, keeper, briefly=False)
    if not isinstance(heard, _Hearing):
        return heard
    if not heard.asked:
        return _unasked(heard.case)
    return _verdict(heard.case, in_full(heard.passes, pair))


async def decide(
    pair: Pair, judge: Judge, config: JudgeConfig, *, keeper: PassKeeper | None = None
) -> Facts | tuple[Failure, EvenhandError]:
    """What a run of many pairs keeps: who won, without the prose that nobody may ever look at."""
    heard = await _hear(pair, judge, config, keeper, briefly=True)
    if not isinstance(heard, _Hearing):
        return heard
    if not heard.asked:
        told = _unasked(heard.case)
        return Facts.of(told) if isinstance(told, Verdict) else told
    return _facts(heard.case, heard.passes)


def retell(case: Case, passes: tuple[Pass, ...]) -> Verdict | Failure:
    """The verdict that was decided on these passes, with its prose."""
    told = _verdict(case, passes) if passes else _unasked(case)
    return told if isinstance(told, Verdict) else told[0]


@dataclass(frozen=True, slots=True)
class _Hearing:
    case: Case
    passes: tuple[Made, ...] = ()
    asked: bool = True


async def _hear(
    pair: Pair, judge: Judge, config: JudgeConfig, keeper: PassKeeper | None, *, briefly: bool
) -> _Hearing | tuple[Failure, EvenhandError]:
    try:
        case = Case.of(pair, judge, config)
    except InputError as error:
        error.metadata = Metadata(
            id=pair.id, positions_swapped=pair.swap_positions, judge=judge.name
        )
        return failure_of(error), error
    if pair.response_a == pair.response_b and not config.ask_identical:
        return _Hearing(case, asked=False)
    try:
        return _Hearing(case, await make_passes(case, keeper, briefly=briefly))
    except PassesFailed as failed:
        passes = in_full(failed.passes, pair)
        return _failure(case, failed.error, passes, requests=failed.requests)


def failure_of(error: EvenhandError) -> Failure:
    """The contract's JSON for an error, wherever it was raised."""
    metadata = error.metadata if isinstance(error.metadata, Metadata) else Metadata()
    return Failure(
        error=ErrorBody(kind=error.kind, message=error.message, retryable=error.retryable),
        metadata=metadata,
    )


def _verdict(case: Case, passes: tuple[Pass, ...]) -> Verdict | tuple[Failure, EvenhandError]:
    ruling = reconcile(
        case.pair,
        _readings(passes),
        how=case.how,
        locale=case.config.language,
        shows_first=case.first_order,
    )
    if isinstance(ruling, Unreconciled):
        return _failure(case, NoVerdict(f"no valid verdict: {ruling.reason}"), passes, ruling)
    rating = _rating(case, passes)
    return Verdict(
        winner=ruling.winner,
        confidence=rating.confidence if rating else ruling.confidence,
        comparison=ruling.comparison,
        overall_reasoning=ruling.overall_reasoning,
        differentiators=ruling.differentiators,
        analysis=ruling.analysis,
        position_consistency=ruling.position_consistency,
        notes=(*ruling.notes, *_notes(case, passes)),
        metadata=_metadata(
            case,
            passes,
            outcome=ruling.outcome,
            confidence_source=rating.source if rating else ruling.confidence_source,
            abstained=rating.abstained if rating else False,
            decided_by=ruling.decided_by,
            probabilities=ruling.probabilities,
            criteria=ruling.criteria,
        ),
    )


def _rating(case: Case, passes: tuple[Pass, ...]) -> CalibratedConfidence | None:
    """By the calibration, where there is one: from the same decision as a run of many pairs."""
    calibration = case.config.calibration
    if calibration is None:
        return None
    readings = _readings(passes)
    decision = decide_passes(case.pair, readings, how=case.how, shows_first=case.first_order)
    return (
        None
        if isinstance(decision, Unreconciled)
        else calibration.rate(case.pair, readings, decision)
    )


def _facts(case: Case, passes: tuple[Made, ...]) -> Facts | tuple[Failure, EvenhandError]:
    votes = _votes(passes)
    decision = decide_passes(case.pair, votes, how=case.how, shows_first=case.first_order)
    if isinstance(decision, Unreconciled):
        error = NoVerdict(f"no valid verdict: {decision.reason}")
        return _failure(case, error, in_full(passes, case.pair), decision)
    calibration = case.config.calibration
    rating = None if calibration is None else calibration.rate(case.pair, votes, decision)
    swapped = case.pair.swap_positions
    return Facts(
        outcome=decision.outcome,
        winner=decision.winner,
        confidence=rating.confidence if rating else decision.confidence,
        confidence_source=rating.source if rating else decision.confidence_source,
        abstained=rating.abstained if rating else False,
        first_pass_winner=decision.choices["original"] if swapped else None,
        second_pass_winner=decision.choices["swapped"] if swapped else None,
        decided_by=decision.decided_by,
        probabilities=decision.probabilities,
        criteria=decision.counted(),
        samples=case.config.samples_per_order,
        passes=len(passes),
        evaluation_time_ms=milliseconds_since(case.started),
    )


def _readings(passes: tuple[Pass, ...]) -> list[Ballot | Unread]:
    readings = [p.ballot or p.unread for p in passes]
    return [reading for reading in readings if reading is not None]


def _votes(passes: tuple[Made, ...]) -> list[Ballot | Unread | Vote]:
    readings = [p.vote if isinstance(p, VotePass) else p.ballot or p.unread for p in passes]
    return [reading for reading in readings if reading is not None]


def _failure(
    case: Case,
    error: EvenhandError,
    passes: tuple[Pass, ...],
    ruling: Unreconciled | None = None,
    *,
    requests: int = 0,
) -> tuple[Failure, EvenhandError]:
    """`requests` were made in vain, beside those of the passes that came."""
    usage = add_usage(p.usage for p in passes)
    error.metadata = _metadata(
        case,
        passes,
        outcome=Outcome.INVALID,
        criteria=ruling.criteria if ruling else (),
        position_consistency=ruling.position_consistency if ruling else None,
        usage=usage.model_copy(update={"requests": usage.requests + requests}),
    )
    return failure_of(error), error


def _unasked(case: Case) -> Verdict | tuple[Failure, EvenhandError]:
    """Identical responses, and a caller who does not want to pay for hearing so."""
    if not case.pair.allow_tie:
        message = "the responses are identical and a tie is not allowed; allow ties, or ask"
        return _failure(case, NoVerdict(message), ())
    ruling = Reconciliation.of_identical(case.pair, say(case.config.language, "not_judged"))
    calibration = case.config.calibration
    return Verdict(
        winner=ruling.winner,
        confidence=None,
        comparison=ruling.comparison,
        overall_reasoning="",
        differentiators=ruling.differentiators,
        analysis=ruling.analysis,
        notes=(say(case.config.language, "not_asked"),),
        metadata=_metadata(
            case,
            (),
            outcome=Outcome.TIE,
            positions_swapped=False,
            abstained=calibration is not None and calibration.abstains_unasked,
        ),
    )


def _notes(case: Case, passes: tuple[Pass, ...]) -> tuple[str, ...]:
    locale = case.config.language
    notes = list(notes_on(case.pair, locale))
    if not case.pair.swap_positions:
        notes.append(say(locale, "one_order"))
    wanted = case.config.confidence == "logprobs"
    ballots = [p.ballot for p in passes if p.ballot]
    if wanted and any(ballot.probabilities is None for ballot in ballots):
        notes.append(say(locale, "no_logprobs"))
    if case.judge.traits.caveat is None and any(b.protocol == "recorded" for b in ballots):
        notes.append(say(locale, "recorded"))
    if len(ballots) < len(passes):
        unread = str(len(passes) - len(ballots))
        notes.append(say(locale, "some_unread", count=unread, total=str(len(passes))))
    return tuple(notes)


def _metadata(case: Case, passes: tuple[Pass, ...], **known: Any) -> Metadata:
    models = list(dict.fromkeys(p.model for p in passes if p.model))
    return Metadata(
        **{
            "id": case.pair.id,
            "evaluation_time_ms": milliseconds_since(case.started),
            "positions_swapped": case.pair.swap_positions,
            "judge": case.judge.name,
            "judge_caveat": case.judge.traits.caveat,
            "model": models[0] if len(models) == 1 else None,
            "locale": case.config.language,
            "mode": case.mode,
            "prompt_version": case.prompt.template.version if case.prompt else None,
            "reconcile": case.how,
            "samples": case.config.samples_per_order,
            "usage": add_usage(p.usage for p in passes),
            "passes": passes,
            **known,
        }
    )
