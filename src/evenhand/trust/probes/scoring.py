"""Cases and what the judge made of them, counted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from evenhand.contract import ORDERS, Locale, Outcome
from evenhand.report.records import RunRow
from evenhand.stats.estimated_share import EstimatedShare
from evenhand.trust.probes.cases import LANGUAGES, ProbeCase
from evenhand.trust.probes.catalogue import EXPECTED, PROBES, ProbeName
from evenhand.trust.probes.report import (
    CaseState,
    FailingCase,
    LanguageScore,
    ProbeScore,
    Said,
    Score,
)

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

    from evenhand.stats.estimated_share import estimate_share

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
            shows=PROBES[name].shows,
            expected=EXPECTED[PROBES[name].expects],
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
    found = []
    for language in LANGUAGES:
        its = [each for each in scored if [case.language for case in each.cases] == [language]]
        if its:
            found.append(LanguageScore(language=language, **_counts(its)))
    return tuple(found)


def _failing(scored: ScoredCase) -> FailingCase:
    rows = [row for row in scored.rows if row is not None]
    return FailingCase(
        ids=tuple(case.id for case in scored.cases),
        languages=tuple(case.language for case in scored.cases),
        state=scored.state,
        expected=_expected(scored.cases[0]),
        winners=tuple(row.winner for row in rows),
        fault=_fault(scored, rows),
        said=tuple(
            said
            for case, row in zip(scored.cases, rows, strict=True)
            for said in _said(case.language, row)
        ),
    )


def _expected(case: ProbeCase) -> str:
    return " or ".join(case.expected) or EXPECTED["agreement"]


def _fault(scored: ScoredCase, rows: Sequence[RunRow]) -> str:
    if scored.state == "invalid":
        return next((row.error_message for row in rows if row.error_message), "no valid verdict")
    places = sorted({place for row in rows for place in _place(row)})
    # Orders that contradict each other may also have been averaged to a verdict.
    if scored.state == "wrong" and not places:
        return PROBES[scored.probe].fault
    if scored.probe == "identical" and places:
        return f"position: of two identical responses it chose the {' and the '.join(places)}"
    if places:
        return f"the winner changed with the order: it chose whatever came {' and '.join(places)}"
    return "the winner changed with the order"


def _place(row: RunRow) -> Iterable[str]:
    chosen = (row.first_pass_winner, row.second_pass_winner)
    if chosen == ("A", "B"):
        yield "first"
    elif chosen == ("B", "A"):
        yield "second"


def _said(language: Locale, row: RunRow) -> Iterable[Said]:
    winners = (row.first_pass_winner, row.second_pass_winner)
    for order, winner in zip(ORDERS, winners, strict=True):
        its = [each for each in row.verdict.metadata.passes if each.order == order]
        ballots = [each.ballot for each in its if each.ballot]
        unread = [each.unread for each in its if each.unread]
        texts = [*(ballot.reasoning for ballot in ballots), *(each.reason for each in unread)]
        yield Said(
            id=row.id,
            language=language,
            order=order,
            # An invalid pair has no winner of an order, but one order may have been read.
            winner=winner or (ballots[0].winner if len(ballots) == 1 else None),
            text=next((text for text in texts if text), ""),
        )
