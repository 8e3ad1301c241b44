"""What an audit holds a judge against: the data's labels, or else the majority of people."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from evenhand.contract.model import Model
from evenhand.errors import InputError
from evenhand.store import OutcomeColumns, RunRecord, Store
from evenhand.trust.votes import NO_WINNER, Codes, ItemVotes, item_votes, majority_labels

_SIDES, _PLACES = {0: "A", 1: "B"}, {0: "first", 1: "second"}
_ONE_SIDED = 6


class LabelSources(Model):
    """Where the labels of the judged pairs come from, and which votes are no labels.

    `equally_divided` pairs have votes and no majority. `chosen` and `escalated` count votes on
    pairs that were shown for what was known of them, or because the judge was unsure: they say
    nothing of the other pairs.
    """

    by_data: int
    by_people: int
    equally_divided: int
    chosen: int
    escalated: int


@dataclass(frozen=True, slots=True)
class AuditLabels:
    """A label for each judged pair, or none; `votes` are those that may be a yardstick."""

    winners: Codes
    votes: ItemVotes
    sources: LabelSources
    notes: tuple[str, ...]


def audit_labels(store: Store, run: RunRecord, columns: OutcomeColumns) -> AuditLabels:
    """Refused where no judged pair has a label."""
    if not columns.number:
        raise InputError(
            f"no pair of run {run.name!r} is judged yet; the command that began it goes on with it"
        )
    numbers = np.asarray(columns.number, dtype=np.int64)
    winners = np.asarray(columns.label, dtype=np.int8).copy()
    by_data = winners != NO_WINNER
    votes = item_votes(store, run.id, numbers)
    fair = votes.only(~votes.escalated & ~votes.chosen)
    said = majority_labels(fair, numbers)
    by_people = ~by_data & (said.majority != NO_WINNER)
    winners[by_people] = said.majority[by_people]
    sources = LabelSources(
        by_data=int(by_data.sum()),
        by_people=int(by_people.sum()),
        equally_divided=int((~by_data & said.undecided).sum()),
        chosen=int((votes.chosen & ~votes.escalated).sum()),
        escalated=int(votes.escalated.sum()),
    )
    known = by_data | by_people
    if not known.any():
        raise InputError(_refusal(run.name, sources))
    one_order = ~np.asarray(columns.both_orders, dtype=np.bool_)
    if one_order[known].all():
        refuse_one_sided(f"run {run.name!r}", Counter(winners[known].tolist()))
    doubtful = fair.drawn_by_chance & by_people[fair.row]
    return AuditLabels(
        winners=winners,
        votes=fair,
        sources=sources,
        notes=tuple(_notes(sources, drawn_by_doubt=int(np.unique(fair.row[doubtful]).size))),
    )


def refuse_one_sided(what: str, labels: Mapping[int, int]) -> None:
    """Where pairs are shown in one order and all labels, by how many name each response, name the
    same one: so many that it is no accident (2 × 0.5⁶ is the first below 0.05)."""
    if len(labels) != 1:
        return
    ((side, count),) = labels.items()
    if side in _SIDES and count >= _ONE_SIDED:
        raise InputError(
            f"every label of {what} names {_SIDES[side]} and its pairs are shown in one order: "
            f"whoever always takes the {_PLACES[side]} response would be right on all {count:,}; "
            "judge both orders, or exchange the responses of a random half of the pairs"
        )


def _notes(sources: LabelSources, *, drawn_by_doubt: int) -> Iterator[str]:
    if sources.equally_divided:
        yield f"{_pairs(sources.equally_divided)} no label: people are equally divided"
    unfair = sources.chosen + sources.escalated
    if unfair:
        votes = "1 vote is" if unfair == 1 else f"{unfair:,} votes are"
        yield (
            f"{votes} left out: on pairs that were chosen for what was known of them, or shown "
            "because the judge was unsure"
        )
    if drawn_by_doubt:
        yield (
            f"{_pairs(drawn_by_doubt)} a label by a draw that prefers doubtful pairs: over all "
            "pairs the judge is likely to be right oftener than here"
        )


def _pairs(count: int) -> str:
    return "1 pair has" if count == 1 else f"{count:,} pairs have"


def _refusal(run: str, sources: LabelSources) -> str:
    remedy = (
        f"give data with a column label (A, B or TIE), or let people vote with evenhand label {run}"
    )
    if sources.equally_divided:
        told = f"people are equally divided on {sources.equally_divided:,}"
        return f"no judged pair of run {run!r} has a label ({told}); {remedy}"
    unfair = sources.chosen + sources.escalated
    if unfair:
        return (
            f"run {run!r} has {unfair:,} votes, all on pairs that were chosen for what was known "
            f"of them or escalated, which say nothing of the others; {remedy}"
        )
    return f"no judged pair of run {run!r} has a label; {remedy}, or evenhand votes import"
