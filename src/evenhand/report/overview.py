"""What a run's page shows beside its conclusion: histograms, a heat map of tags and criteria, and
whether the judge passes four checks. Each count has the filter of verdicts that shows exactly it.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from evenhand.contract.codes import (
    INCONSISTENT,
    NO_WINNER,
    OUTCOMES,
    WIN_A,
    WIN_B,
    OutcomeCounts,
)
from evenhand.contract.model import Model
from evenhand.errors import visible
from evenhand.messages import Language, Message, Sentence, render
from evenhand.report.conclusions import Conclusion
from evenhand.report.evidence import measure_position
from evenhand.report.lookup import find_run
from evenhand.stats.estimates import EstimatedShare, share_of_rows
from evenhand.stats.rates.position_bias import PositionBias
from evenhand.store import CriterionColumns, JudgeRecord, OutcomeColumns, RunRecord, Store
from evenhand.store.faults import of_run

# A filter as an address has it.
Filters = dict[str, str | float | bool]
MOST_CELLS = 400
_CONFIDENCE_BARS = 10
_LENGTH_BARS = 8  # on each side of equal length
_SHARE_WITHIN = 0.95


class FilteredCounts(OutcomeCounts):
    """Pairs by their outcome; `filters` show all of them."""

    count: int
    filters: Filters


class OutcomeBar(FilteredCounts):
    low: float | None
    high: float | None


class HeatCell(FilteredCounts):
    """How one criterion came out on the pairs of one tag; `criterionEnd` shows each count."""

    tag: str
    criterion: str


class TrustCheck(Model):
    """`fails` is None where the data cannot say; `rule` is what it would fail by."""

    name: Literal["orders_agree", "position_lean", "longer_wins", "label_agreement"]
    share: EstimatedShare
    fails: bool | None
    rule: Sentence
    filters: Filters  # of the share's part


class JudgeOverview(Model):
    """Of one judge, by the labels A and B of the data. `length` is by how many characters B is
    longer; `cells` are of the most frequent tags, 400 at most."""

    judge: str
    confidence: tuple[OutcomeBar, ...]
    length: tuple[OutcomeBar, ...]
    cells: tuple[HeatCell, ...]
    checks: tuple[TrustCheck, ...]  # on all its pairs, whichever models met


class RunOverview(Model):
    run: str
    judges: tuple[JudgeOverview, ...]


@of_run
def overview(store: Store, name: str, *, level: float = 0.95) -> RunOverview:
    run = find_run(store, name)
    return RunOverview(
        run=run.name,
        judges=tuple(_of_judge(store, run, each, level) for each in store.runs.judges(run.id)),
    )


def _of_judge(store: Store, run: RunRecord, judge: JudgeRecord, level: float) -> JudgeOverview:
    columns = store.columns.outcomes(run.id, judge.id)
    return JudgeOverview(
        judge=judge.name,
        confidence=tuple(confidence_bars(columns)),
        length=tuple(length_bars(columns)),
        cells=tuple(heat_cells(columns, store.columns.criteria(run.id, judge.id))),
        checks=tuple(_checks_of_judge(columns, level)),
    )


def _bar(
    codes: NDArray[np.int8],
    chosen: NDArray[np.bool_],
    low: float | None,
    high: float | None,
    filters: Filters,
) -> OutcomeBar:
    return OutcomeBar(low=low, high=high, filters=filters, **_counts(codes[chosen]))


def _counts(codes: NDArray[np.int8]) -> dict[str, int]:
    counts = dict(zip(OUTCOMES, np.bincount(codes, minlength=5).tolist(), strict=True))
    return counts | {"count": int(codes.size)}


def confidence_bars(columns: OutcomeColumns) -> Iterator[OutcomeBar]:
    """Tenths from 0 to 1, each without its upper end but the last; then verdicts without one."""
    codes, sure = np.asarray(columns.outcome, dtype=np.int8), np.asarray(columns.confidence)
    edges = [place / _CONFIDENCE_BARS for place in range(_CONFIDENCE_BARS + 1)]
    for low, high in pairwise(edges):
        last = high == edges[-1]
        chosen = (sure >= low) & ((sure <= high) if last else (sure < high))
        filters: Filters = {"minConfidence": low}
        yield _bar(codes, chosen, low, high, filters | ({} if last else {"belowConfidence": high}))
    yield _bar(codes, np.isnan(sure), None, None, {"hasConfidence": False})


def length_bars(columns: OutcomeColumns) -> Iterator[OutcomeBar]:
    """Equal length, and eight bars of one width on either side; the outermost are open."""
    codes = np.asarray(columns.outcome, dtype=np.int8)
    longer = np.asarray(columns.length_b, dtype=np.int64) - np.asarray(columns.length_a)
    width = _round_width(longer)
    upper = [(1 + width * n, width * (n + 1)) for n in range(_LENGTH_BARS)]
    ranges: list[tuple[int | None, int | None]] = [
        *((-high, -low) for low, high in reversed(upper)),
        (0, 0),
        *upper,
    ]
    ranges[0], ranges[-1] = (None, ranges[0][1]), (ranges[-1][0], None)
    for low, high in ranges:
        chosen = np.ones(longer.size, dtype=np.bool_)
        filters: Filters = {}
        if low is not None:
            chosen &= longer >= low
            filters["minLengthDifference"] = low
        if high is not None:
            chosen &= longer <= high
            filters["maxLengthDifference"] = high
        yield _bar(codes, chosen, low, high, filters)


def _round_width(longer: NDArray[np.int64]) -> int:
    """1, 2 or 5 times a power of ten, so that most pairs fall into the closed bars."""
    reach = float(np.quantile(np.abs(longer), _SHARE_WITHIN)) if longer.size else 0.0
    needed = max(1.0, reach / (_LENGTH_BARS - 1))
    unit = 10 ** math.floor(math.log10(needed))
    return int(next(unit * times for times in (1, 2, 5, 10) if unit * times >= needed))


def heat_cells(columns: OutcomeColumns, criteria: Iterable[CriterionColumns]) -> Iterator[HeatCell]:
    tag_of = dict(zip(columns.number, columns.tags, strict=True))
    frequent: Counter[str] = Counter()
    for code in columns.tags:
        frequent.update(set(columns.tag_sets[code]))
    named = [
        (
            each.criterion,
            np.asarray(each.outcome, dtype=np.int8),
            np.fromiter((tag_of.get(number, -1) for number in each.number), dtype=np.int64),
        )
        for each in criteria
    ]
    most = MOST_CELLS // max(1, len(named))
    for tag, _ in sorted(frequent.items(), key=lambda each: (-each[1], each[0]))[:most]:
        having = [code for code, tags in enumerate(columns.tag_sets) if tag in tags]
        for criterion, outcomes, codes in named:
            own = outcomes[np.isin(codes, having)]
            if own.size:
                filters: Filters = {"tag": tag, "criterion": criterion}
                yield HeatCell(tag=tag, criterion=criterion, filters=filters, **_counts(own))


def _agreement(columns: OutcomeColumns, level: float) -> EstimatedShare | None:
    labels = np.asarray(columns.label, dtype=np.int8)
    known = labels != NO_WINNER
    if not known.any():
        return None
    right = np.asarray(columns.outcome, dtype=np.int8)[known] == labels[known]
    prompts = np.asarray(columns.prompt_key)[known]
    return share_of_rows(right, prompts, level=level, unit="labelled pair")


def _checks_of_judge(columns: OutcomeColumns, level: float) -> Iterator[TrustCheck]:
    position = measure_position(columns, level=level)
    agree = position.consistency
    decided = np.isin(columns.outcome, (WIN_A, WIN_B, INCONSISTENT)).sum()
    yield from _checks_of_order(position, follows=2 * (agree.of - agree.part) >= decided > 0)
    if (labels := _agreement(columns.asked(), level)) is not None:
        yield _check_of_labels(labels)


def trust_checks(conclusion: Conclusion, agreement: EstimatedShare | None) -> Iterator[TrustCheck]:
    """By the rules that the conclusion goes by; labels are those of all the judge's pairs. Where a
    run has several models, a filter needs those of the conclusion too."""
    rate = conclusion.win_rate
    follows = rate.mostly_flips or "position" in rate.doubts
    yield from _checks_of_order(conclusion.position, follows=follows)
    yield TrustCheck(
        name="longer_wins",
        share=conclusion.length.longer_wins,
        fails=_length_undoes(conclusion),
        rule=Message("report.rule_longer_wins"),
        filters={"longerWins": True},
    )
    if agreement is not None:
        yield _check_of_labels(agreement)


def _checks_of_order(position: PositionBias, *, follows: bool) -> Iterator[TrustCheck]:
    yield TrustCheck(
        name="orders_agree",
        share=position.consistency,
        fails=follows if position.pairs else None,
        rule=Message("report.rule_orders_agree"),
        filters={"orders": "agree"},
    )
    yield TrustCheck(
        name="position_lean",
        share=position.first_preference,
        fails=None if position.lean.low is None else position.alarm is not None,
        rule=Message("report.rule_position_lean"),
        filters={"leans": "first"},
    )


def _check_of_labels(agreement: EstimatedShare) -> TrustCheck:
    return TrustCheck(
        name="label_agreement",
        share=agreement,
        fails=None if agreement.low is None else agreement.low <= 0.5,
        rule=Message("report.rule_label_agreement"),
        filters={"disagrees": False},
    )


def _length_undoes(conclusion: Conclusion) -> bool | None:
    """Whether length may be all there is to the claim; None where no fit can tell."""
    if conclusion.claimed.low is None or not conclusion.length.controlled[0].forms:
        return None
    return conclusion.length_explains


# A headline to paste.

_MARKED = re.compile(r"([\\`*_{}\[\]<>#|~!])")


def as_markdown(
    messages: str | Iterable[Message], facts: Iterable[str] = (), language: Language = "en"
) -> str:
    """The sentence of a conclusion, a ranking, an audit or a diff in bold, and facts as a list:
    on a line each, with nothing in it that Markdown or HTML would take for its own."""
    lines = [f"**{_plain(render(messages, language))}**"]
    told = [f"- {_plain(fact)}" for fact in facts]
    return "\n".join([*lines, *([""] if told else []), *told]) + "\n"


def _plain(text: str) -> str:
    return _MARKED.sub(r"\\\1", visible(" ".join(text.split())))
