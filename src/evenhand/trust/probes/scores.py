"""What probes found: each case scored, shares by probe and language, and every failing case."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Literal

from evenhand.contract import ORDERS, Locale, Order, Outcome, Winner
from evenhand.contract.model import Model
from evenhand.messages import Message, Sentence
from evenhand.report.records import RunRow
from evenhand.stats.estimates import EstimatedShare
from evenhand.trust.probes.cases import (
    LANGUAGES,
    PROBES,
    ProbeCase,
    ProbeName,
    probe_expects,
    probe_name,
    probe_shows,
)

# `wrong`: another verdict than expected. `inconsistent`: the winner changed with the order.
# `invalid`: no verdict could be had. `pending`: not asked yet.
CaseState = Literal["passed", "wrong", "inconsistent", "invalid", "pending"]


class JudgeAnswer(Model):
    """What the judge said in one order: in its own words, or why that was not read."""

    id: str
    language: Locale
    order: Order
    winner: Winner | None
    text: str


class FailingCase(Model):
    """`fault` says in words what went wrong. A case of two languages has the ids of both."""

    ids: tuple[str, ...]
    languages: tuple[Locale, ...]
    state: CaseState
    expected: Sentence
    winners: tuple[Winner | None, ...]  # the verdict on each id
    fault: Sentence
    answers: tuple[JudgeAnswer, ...]


class Score(Model):
    """`share` is of those with a verdict: passed, wrong or inconsistent, at the 95% level."""

    n: int
    passed: int
    wrong: int
    inconsistent: int
    invalid: int
    pending: int
    share: EstimatedShare


class LanguageScore(Score):
    language: Locale


class ProbeScore(Score):
    probe: ProbeName
    shows: Sentence
    expected: Sentence
    by_language: tuple[LanguageScore, ...]
    failing: tuple[FailingCase, ...]


# Which habits were found, and how sure that is.

# Beyond this share of failures a habit matters; the same as of the position alarm.
HABIT_LIMIT = 0.1
# `shown`: the whole interval of failures lies beyond the limit; `unclear`: some failed.
HabitState = Literal["shown", "unclear", "unseen", "no_data"]


def habit_of(score: Score) -> HabitState:
    share = score.share
    if not share.of:
        return "no_data"
    if share.high is not None and 1 - share.high > HABIT_LIMIT:
        return "shown"
    return "unseen" if share.part == share.of else "unclear"


def sum_up_habits(overall: Score, probes: Iterable[ProbeScore]) -> tuple[Message, ...]:
    """In sentences: the habits that are shown, and what is missing."""
    names = [probe_name(each.probe) for each in probes if habit_of(each) == "shown"]
    if not overall.share.of:
        found = Message("probe.nothing")
    elif names:
        found = Message("probe.habits", names=names, passed=overall.passed, n=overall.n)
    else:
        found = Message("probe.no_habit", passed=overall.passed, n=overall.n)
    if not overall.invalid and not overall.pending:
        return (found,)
    missing = Message("probe.missing", invalid=overall.invalid, pending=overall.pending)
    return (found, missing)


# Cases and what the judge made of them, counted.

LEVEL = 0.95


@dataclass(frozen=True, slots=True)
class ScoredCase:
    """One thing that passes or does not: a pair, or the same pair in both languages."""

    cases: tuple[ProbeCase, ...]
    rows: tuple[RunRow | None, ...]
    state: CaseState

    @property
    def probe(self) -> ProbeName:
        return self.cases[0].probe

    @property
    def twin(self) -> str:
        return self.cases[0].twin


def score_cases(cases: Sequence[ProbeCase], rows: Mapping[str, RunRow]) -> tuple[ScoredCase, ...]:
    """Each case by its row, where there is one yet; the two languages of an agreement together."""
    scored = []
    for together in _together(cases):
        its_rows = tuple(rows.get(case.id) for case in together)
        scored.append(ScoredCase(together, its_rows, _state(together, its_rows)))
    return tuple(scored)


def _together(cases: Sequence[ProbeCase]) -> Iterable[tuple[ProbeCase, ...]]:
    agreeing: dict[str, list[ProbeCase]] = {}
    for case in cases:
        if case.expected:
            yield (case,)
        else:
            agreeing.setdefault(case.twin, []).append(case)
    yield from map(tuple, agreeing.values())


def _state(cases: Sequence[ProbeCase], rows: Sequence[RunRow | None]) -> CaseState:
    settled = [row for row in rows if row is not None]
    if len(settled) < len(rows):
        return "pending"
    if any(row.outcome == Outcome.INVALID for row in settled):
        return "invalid"
    if any(_turned(case, row) for case, row in zip(cases, settled, strict=True)):
        return "inconsistent"
    if len(cases) > 1:
        return "passed" if len({row.winner for row in settled}) == 1 else "wrong"
    return "passed" if settled[0].winner in cases[0].expected else "wrong"


def _turned(case: ProbeCase, row: RunRow) -> bool:
    """Whether the order decided. Of identical responses the mean of two orders is always a tie,
    so there each order's own choice counts, however they are reconciled."""
    if case.probe == "identical" and row.first_pass_winner != row.second_pass_winner:
        return True
    return row.outcome == Outcome.INCONSISTENT


def score(scored: Sequence[ScoredCase]) -> Score:
    return Score(**_counts(scored))


def _counts(scored: Sequence[ScoredCase]) -> dict[str, Any]:
    states = Counter(each.state for each in scored)
    return {
        "n": len(scored),
        **{
            state: states[state]
            for state in ("passed", "wrong", "inconsistent", "invalid", "pending")
        },
        "share": _share(scored),
    }


def _share(scored: Sequence[ScoredCase]) -> EstimatedShare:
    """With its interval clustered by what the two languages have in common: they are one text."""
    import numpy as np

    from evenhand.stats.estimates import estimate_share

    decided = [each for each in scored if each.state not in ("invalid", "pending")]
    twins = {twin: place for place, twin in enumerate(dict.fromkeys(d.twin for d in decided))}
    passed, failed = np.zeros(len(twins)), np.zeros(len(twins))
    for each in decided:
        counted = passed if each.state == "passed" else failed
        counted[twins[each.twin]] += 1
    independent = len(twins) == len(decided)
    return estimate_share(passed, failed, independent=independent, level=LEVEL, unit="case")


def score_probes(scored: Sequence[ScoredCase]) -> tuple[ProbeScore, ...]:
    by_probe = {
        name: list(its) for name, its in groupby(sorted(scored, key=_order), lambda s: s.probe)
    }
    return tuple(
        ProbeScore(
            probe=name,
            shows=probe_shows(name),
            expected=probe_expects(PROBES[name].expects),
            by_language=_by_language(its),
            failing=tuple(_failing(each) for each in its if _has_failed(each)),
            **_counts(its),
        )
        for name, its in by_probe.items()
    )


def _order(scored: ScoredCase) -> int:
    return list(PROBES).index(scored.probe)


def _has_failed(scored: ScoredCase) -> bool:
    return scored.state not in ("passed", "pending")


def _by_language(scored: Sequence[ScoredCase]) -> tuple[LanguageScore, ...]:
    """None where each case is of both."""
    scores = []
    for language in LANGUAGES:
        its = [each for each in scored if [case.language for case in each.cases] == [language]]
        if its:
            scores.append(LanguageScore(language=language, **_counts(its)))
    return tuple(scores)


def _failing(scored: ScoredCase) -> FailingCase:
    rows = [row for row in scored.rows if row is not None]
    return FailingCase(
        ids=tuple(case.id for case in scored.cases),
        languages=tuple(case.language for case in scored.cases),
        state=scored.state,
        expected=_expected(scored.cases[0]),
        winners=tuple(row.winner for row in rows),
        fault=_fault(scored, rows),
        answers=tuple(
            answer
            for case, row in zip(scored.cases, rows, strict=True)
            for answer in _said(case.language, row)
        ),
    )


def _expected(case: ProbeCase) -> Message:
    if case.expected:
        return Message("probe.any_of", verdicts=case.expected)
    return probe_expects("agreement")


def _fault(scored: ScoredCase, rows: Sequence[RunRow]) -> str:
    if scored.state == "invalid":
        messages = (row.error_message for row in rows if row.error_message)
        return next(messages, None) or Message("probe.no_verdict")
    places = sorted({place for row in rows for place in _place(row)})
    # Orders that contradict each other may also have been averaged to a verdict.
    if scored.state == "wrong" and not places:
        return Message(f"probe.{scored.probe}")
    which = places[0] if len(places) == 1 else "both"
    if scored.probe == "identical" and places:
        return Message(f"probe.chose_{which}")
    if places:
        return Message(f"probe.followed_{which}")
    return Message("probe.changed")


def _place(row: RunRow) -> Iterable[str]:
    chosen = (row.first_pass_winner, row.second_pass_winner)
    if chosen == ("A", "B"):
        yield "first"
    elif chosen == ("B", "A"):
        yield "second"


def _said(language: Locale, row: RunRow) -> Iterable[JudgeAnswer]:
    winners = (row.first_pass_winner, row.second_pass_winner)
    for order, winner in zip(ORDERS, winners, strict=True):
        its = [each for each in row.verdict.metadata.passes if each.order == order]
        ballots = [each.ballot for each in its if each.ballot]
        unread = [each.unread for each in its if each.unread]
        texts = [*(ballot.reasoning for ballot in ballots), *(each.reason for each in unread)]
        yield JudgeAnswer(
            id=row.id,
            language=language,
            order=order,
            # An invalid pair has no winner of an order, but one order may have been read.
            winner=winner or (ballots[0].winner if len(ballots) == 1 else None),
            text=next((text for text in texts if text), ""),
        )
