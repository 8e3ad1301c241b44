"""The data that criteria are suggested from: a sample of its prompts and, if rows have labels, the
pairs that the criteria are tested on, split by prompt.
"""

from __future__ import annotations

import heapq
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from evenhand.contract import Criterion
from evenhand.contract.pair import drawn_order
from evenhand.data.options import ReadOptions
from evenhand.data.pairs import read_pairs
from evenhand.data.prompts import read_prompts
from evenhand.data.records import BadRow, Record
from evenhand.data.source import Source
from evenhand.errors import CapReached, DataError
from evenhand.judges.protocol import Judge, identity_of
from evenhand.judging.criteria import ask_for_criteria
from evenhand.messages import Message
from evenhand.runs.budget import Budget
from evenhand.runs.local import GatedJudge, adaptive_limit
from evenhand.runs.options import BadRows, RunOptions
from evenhand.runs.pacing import CallGate, Pace, Stopped
from evenhand.runs.plan import JudgePlan, digest, price_of
from evenhand.runs.sources import PairFiles, given_pairs, refusal_of
from evenhand.runs.stop import Stop
from evenhand.stats.seeded_order import order_key

# A tag for each half, so that a run's reports can be read by half. The data's own tags of this name
# are dropped: they would put a pair into both halves.
Half = Literal["choosing", "unseen"]
HALVES: tuple[Half, Half] = ("choosing", "unseen")
PROMPTS_SHOWN, PAIRS_JUDGED = 30, 200


@dataclass(frozen=True, slots=True)
class CriteriaData:
    """`prompts` are shown to the judge, sampled from `prompts_in_all`; with labels, from the
    choosing half only. `rows` are labelled pairs, sampled by whole prompts from `labelled`."""

    title: str
    prompts: tuple[str, ...]
    prompts_in_all: int
    rows: tuple[Mapping[str, Any], ...]
    labelled: int
    notes: tuple[str, ...]

    def name(self, judge: Judge, locale: str) -> str:
        """The name of the run that tests the criteria: the same for the same data and judge, so
        that it is found before the judge is asked again."""
        known = [judge.name, dict(identity_of(judge)), locale, list(self.prompts), *self.rows]
        return f"criteria-{self.title}-{digest(known)[:8]}"

    def pairs(self, criteria: tuple[Criterion, ...]) -> PairFiles:
        return given_pairs(self.rows, ReadOptions(criteria=criteria))


def half_of(cluster: str, *, seed: int) -> Half:
    return HALVES[order_key(cluster, seed=seed) & 1]


def read_criteria_data(
    source: Source,
    *,
    columns: Mapping[str, str] | None = None,
    bad_rows: BadRows = "stop",
    prompts: int = PROMPTS_SHOWN,
    pairs: int = PAIRS_JUDGED,
    seed: int = 0,
) -> CriteriaData:
    """Prompts are enough; labels (A, B or TIE) need pairs."""
    mapped = dict(columns or {})
    labelled, count, notes = _labelled(source, mapped, bad_rows, most=pairs, seed=seed)
    texts: dict[str, int] = {}
    skipped = 0
    for row in read_prompts(source, mapped):
        if isinstance(row, BadRow):
            skipped += 1
            if bad_rows == "stop" and not labelled:
                raise DataError(refusal_of(row))
            continue
        if not labelled or half_of(row.cluster or row.text, seed=seed) == "choosing":
            texts.setdefault(row.text, order_key(row.text, seed=seed))
    if not texts:
        raise DataError.of("data.file_without_prompts", name=source.name)
    if skipped and not labelled:
        notes = (*notes, Message("runs.rows_left_out", n=skipped))
    return CriteriaData(
        title=source.stem,
        prompts=tuple(heapq.nsmallest(prompts, texts, key=texts.__getitem__)),
        prompts_in_all=len(texts),
        rows=tuple(_row(each, half_of(_cluster(each), seed=seed)) for each in labelled),
        labelled=count,
        notes=notes,
    )


async def suggest_within(
    plan: JudgePlan,
    prompts: Sequence[str],
    options: RunOptions,
    *,
    announce: Callable[[str], None] | None = None,
) -> tuple[tuple[Criterion, ...], RunOptions]:
    """The judge's criteria, and the options with the remaining caps."""
    stop, judge = Stop(), plan.judge
    applied = price_of(judge, plan.price or options.price, options)
    budget = Budget(stop, max_calls=options.max_calls, max_cost=options.max_cost)
    if applied.unknown:
        budget.cap_unpriced(options.calls_unpriced)
        if announce is not None:
            announce(applied.note or "")
    gate = CallGate(
        adaptive_limit(judge, 1),
        Pace(requests=options.rpm, tokens=options.tpm),
        clock=time.monotonic,
    )
    asked = GatedJudge(judge, gate, budget, price=applied.price)
    try:
        criteria, _ = await ask_for_criteria(asked, prompts, plan.config)
    except Stopped:
        raise stop.error or CapReached.of("runs.reached_max_calls", max_calls=0) from None
    if stop.error is not None:  # what the answer cost is not known, and a cap on cost was given
        raise stop.error
    return criteria, options.less(budget.calls, budget.known_cost_usd)


def _labelled(
    source: Source, columns: Mapping[str, str], bad_rows: BadRows, *, most: int, seed: int
) -> tuple[list[Record], int, tuple[str, ...]]:
    """The prompts first in the seed's order that have labels, and how many there are."""
    drawn = _Drawn(most, seed)
    refused: BadRow | None = None
    readable = skipped = 0
    try:
        for row in _rows(source, columns):
            if isinstance(row, BadRow):
                refused = refused or row
                skipped += 1
                continue
            readable += 1
            if row.label in ("A", "B", "TIE"):
                drawn.add(row)
    except DataError as error:  # no table of pairs at all
        return [], 0, (Message("runs.no_pairs_for_criteria", reason=error.message),)
    if refused is not None and not readable:
        return [], 0, (Message("runs.no_pairs_for_criteria", reason=refused.message),)
    if refused is not None and bad_rows == "stop":
        raise DataError(refusal_of(refused))
    notes = (Message("runs.rows_left_out", n=skipped),) if skipped else ()
    return drawn.records, drawn.count, notes


def _rows(source: Source, columns: Mapping[str, str]) -> Iterable[Record | BadRow]:
    return read_pairs((source,), ReadOptions(columns=columns, criteria_needed=False))


def _cluster(record: Record) -> str:
    return record.cluster or record.pair.prompt


class _Drawn:
    """Whole prompts in the seed's order up to `most` pairs; at most twice as many are held."""

    def __init__(self, most: int, seed: int) -> None:
        self._most = most
        self._seed = seed
        self._held: list[tuple[int, int, Record]] = []
        self.count = 0

    def add(self, record: Record) -> None:
        self.count += 1
        self._held.append((order_key(_cluster(record), seed=self._seed), self.count, record))
        if len(self._held) > 2 * self._most + 1000:
            self._held = list(self._first())

    def _first(self) -> Iterator[tuple[int, int, Record]]:
        self._held.sort(key=lambda each: each[:2])
        for place, each in enumerate(self._held):
            if place >= self._most and each[0] != self._held[place - 1][0]:
                return
            yield each

    @property
    def records(self) -> list[Record]:
        return [each[2] for each in self._first()]


def _row(record: Record, half: Half) -> dict[str, Any]:
    """The pair as a data row without criteria."""
    pair = record.pair
    fields: dict[str, Any] = {
        "id": record.key,
        "prompt": pair.prompt,
        "response_a": pair.response_a,
        "response_b": pair.response_b,
        "context": pair.context,
        "reference": pair.reference,
        "allow_tie": pair.allow_tie,
        "swap_positions": None if drawn_order(pair) else pair.swap_positions,
        "label": record.label,
        "model_a": record.model_a,
        "model_b": record.model_b,
        "tags": [*(tag for tag in record.tags if tag not in HALVES), half],
        "cluster": record.cluster,
    }
    return {name: value for name, value in fields.items() if value is not None}
