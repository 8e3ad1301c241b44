"""Labels for correcting a win rate: which pairs to draw next, and which of the labels at hand come
from pairs drawn by a known chance.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import bdtrc

from evenhand.contract import Pair
from evenhand.contract.model import Model
from evenhand.errors import InputError
from evenhand.messages import Message, Sentence, chained
from evenhand.report.files import atomic_file, csv_line
from evenhand.report.lookup import find_run
from evenhand.stats.columns import Floats
from evenhand.stats.correction.corrected_rate import winner_scores
from evenhand.stats.correction.labels import joint_chances
from evenhand.store import OutcomeColumns, RunRecord, Store
from evenhand.trust.label_queue import LabelQueue, Mask, Rows, label_queue
from evenhand.trust.labelling import refuse_forgotten_texts
from evenhand.trust.panels import predictions_of
from evenhand.trust.votes import Codes, item_votes

Drawn = Literal["every pair", "at random", "with known chances"]

_UNKNOWN_DRAW = -1
_HARDLY_BY_CHANCE = 0.001


class LeftOut(Model):
    """Labels that have no part in a corrected rate."""

    reason: Sentence
    labels: int
    pairs: int


@dataclass(frozen=True, slots=True)
class LabelSample:
    """Labels that count, or would if they were `decided`; a row is a place among the verdicts.

    `chances` are of all pairs, where they differ. `escalated` ones are there to be counted.
    """

    rows: Rows
    scores: Floats  # A's
    decided: Mask
    escalated: Mask
    chances: Floats | None
    drawn: Drawn
    people: int
    left_out: tuple[LeftOut, ...]
    notes: tuple[Sentence, ...]


@dataclass(frozen=True, slots=True)
class Labels:
    """Every label there is: the votes, then the data's own, by how their pairs were drawn."""

    rows: Rows
    winners: Codes
    chance: Floats
    escalated: Mask
    even: Mask
    weighted: Mask
    chosen: Mask
    untold: Mask
    of_data: Mask
    who: NDArray[np.int32]  # -1 for the data's own

    @property
    def usable(self) -> Mask:
        return self.even | self.weighted

    @property
    def decided(self) -> Mask:
        given: Mask = self.winners >= 0
        return given


def read_labels(
    store: Store, run_id: int, columns: OutcomeColumns, *, are_random: bool = False
) -> Labels:
    """`are_random` is the user's word for the data's labels, and for votes that do not say."""
    votes = item_votes(store, run_id, np.asarray(columns.number, dtype=np.int64))
    label = np.asarray(columns.label, dtype=np.int8)
    own = np.flatnonzero(label >= 0)
    escalated = votes.escalated
    untold = ~escalated & (votes.draw == _UNKNOWN_DRAW)
    even = ~escalated & votes.drawn_evenly
    weighted = ~escalated & votes.drawn_by_chance
    chosen = ~(escalated | untold | even | weighted)
    if are_random:
        even, untold = even | untold, np.zeros_like(untold)

    def with_data(of_votes: NDArray[np.bool_], of_data: bool) -> Mask:
        return np.concatenate([of_votes, np.full(own.size, of_data)])

    return Labels(
        rows=np.concatenate([votes.row, own]).astype(np.intp),
        winners=np.concatenate([votes.verdict, label[own]]).astype(np.int8),
        chance=np.concatenate([votes.chance, np.full(own.size, np.nan)]),
        escalated=with_data(escalated, False),
        even=with_data(even, are_random),
        weighted=with_data(weighted, False),
        chosen=with_data(chosen, False),
        untold=with_data(untold, not are_random),
        of_data=with_data(np.zeros_like(even), True),
        who=np.concatenate([votes.who, np.full(own.size, -1)]).astype(np.int32),
    )


def sample_labels(
    store: Store,
    run: RunRecord,
    columns: OutcomeColumns,
    *,
    are_random: bool = False,
    seed: int = 0,
) -> LabelSample:
    """Refused where no label is of a pair that was drawn by a known chance."""
    labels = read_labels(store, run.id, columns, are_random=are_random)
    pairs = len(columns.number)
    usable = labels.usable
    whole = False
    if not (usable & labels.decided).any():
        own = np.unique(labels.rows[labels.of_data])
        if not pairs or own.size < pairs:
            raise InputError(_refusal(run.name, labels))
        whole, usable = True, labels.of_data
    notes: list[str] = []
    chances, otherwise = None, np.zeros_like(usable)
    if not whole and (labels.weighted & labels.decided).any():
        queue = label_queue(store, run.id, columns, seed=seed)
        chances, otherwise = _chances(labels, queue, pairs, notes)
        usable = usable & ~otherwise
    if not whole:
        notes += _not_of_this_run(store, run, columns, np.unique(labels.rows[usable & labels.even]))
    kept = usable | labels.escalated
    scores, decided = winner_scores(labels.winners[kept])
    drawn: Drawn = "every pair" if whole else "at random"
    left = {
        "trust.left_out_escalated": labels.escalated,
        "trust.left_out_chosen": labels.chosen,
        "trust.left_out_draw_unknown": labels.untold & ~labels.of_data,
        "trust.left_out_data": labels.untold & labels.of_data & (not whole),
        "trust.left_out_drawn_otherwise": otherwise,
        "trust.left_out_skipped": usable & ~labels.decided,
    }
    return LabelSample(
        rows=labels.rows[kept],
        scores=scores,
        decided=decided,
        escalated=labels.escalated[kept],
        chances=chances,
        drawn=drawn if chances is None else "with known chances",
        people=int(np.unique(labels.who[usable & labels.decided & ~labels.of_data]).size),
        left_out=tuple(
            LeftOut(
                reason=Message(code),
                labels=int(mask.sum()),
                pairs=int(np.unique(labels.rows[mask]).size),
            )
            for code, mask in left.items()
            if mask.any()
        ),
        notes=tuple(notes),
    )


def _chances(
    labels: Labels, queue: LabelQueue, pairs: int, notes: list[str]
) -> tuple[Floats | None, Mask]:
    """Every pair's chance of a label, and which labels cannot be joined with the others.

    The queue knows the chances of all pairs, so that an even draw beside it can be joined, and
    that what was drawn in several rounds counts by the last. Chances of another source are taken
    as they are told.
    """
    weighted, even = labels.weighted & labels.decided, labels.even & labels.decided
    none = np.zeros_like(weighted)
    of_label = queue.of_row[labels.rows]
    drawn = queue.drawn(of_label[weighted], labels.chance[weighted])
    if drawn is not None:
        answered = np.zeros(len(queue.items), dtype=np.bool_)
        answered[of_label[weighted | even]] = True
        in_order = answered[queue.draw.queue[:drawn]]
        first_gap = drawn if in_order.all() else int(np.argmin(in_order))
        if int(queue.places[of_label[weighted]].max()) < first_gap:
            drawn = first_gap  # people stopped on the way, and left nothing out
        else:
            missing = int((~in_order).sum())
            notes.append(Message("trust.drawn_without_verdict", drawn=drawn, n=missing))
        chances = queue.chances_after(drawn)
        if even.any():
            share = np.unique(of_label[even]).size / len(queue.items)
            chances = joint_chances(chances, np.full(len(queue.items), share))
        return chances[queue.of_row], none
    notes.append(Message("trust.chances_of_votes"))
    if np.unique(labels.rows[even]).size > np.unique(labels.rows[weighted]).size:
        return None, labels.weighted
    chances = np.ones(pairs)
    chances[labels.rows[weighted]] = labels.chance[weighted]
    return chances, labels.even


def _not_of_this_run(
    store: Store, run: RunRecord, columns: OutcomeColumns, drawn: Rows
) -> Iterator[str]:
    """Votes are on pairs, whichever run they were drawn from. What a cascade's first judge left is
    a run of its own, and an even draw from that is none from all pairs."""
    if not drawn.size:
        return
    for other in store.list_runs():
        if other.sources != (f"{run.name}-left",):
            continue
        numbers = np.asarray(columns.number, dtype=np.int64)
        left = np.isin(numbers, store.shared_items(run.id, other.id)[0])
        inside = int(left[drawn].sum())
        # The chance of so many or more; a draw without putting back has a smaller one still.
        if inside and float(bdtrc(inside - 1, drawn.size, float(left.mean()))) < _HARDLY_BY_CHANCE:
            yield Message(
                "trust.drawn_from_another_run",
                inside=inside,
                drawn=drawn.size,
                run=other.name,
                percent=100 * float(left.mean()),
            )


def _refusal(run: str, labels: Labels) -> str:
    if labels.usable.any():
        return Message("trust.drawn_unlabelled", run=run)
    if not labels.rows.size:
        return Message("trust.nothing_labelled", run=run)
    kinds = {
        "trust.labels_of_data": labels.of_data,
        "trust.labels_of_people": labels.untold & ~labels.of_data,
        "trust.labels_chosen": labels.chosen,
        "trust.labels_escalated": labels.escalated,
    }
    counted = chained(Message(code, n=int(has.sum())) for code, has in kinds.items() if has.any())
    code = "trust.draw_unknown" if labels.untold.any() else "trust.not_drawn_at_random"
    return Message(code, run=run, labels=counted)


# Which pairs people should label next, and a file that comes back as their votes.

# As `evenhand votes import` reads them; the texts are for whoever labels, and are not read.
_COLUMNS = (
    *("pair", "who", "verdict", "draw", "chance", "origin"),
    *("prompt", "context", "response_a", "response_b"),
)
_ENDINGS = (".csv", ".jsonl", ".ndjson")


class DrawnPair(Model):
    """`chance` is that of having been drawn by now; it holds once all pairs up to this draw's end
    are labelled, earlier ones included."""

    id: str
    number: int
    chance: float


class PairDraw(Model):
    """`drawn` pairs of the queue in all, of which `pairs` are still to be labelled."""

    run: str
    judge: str
    of: int
    drawn: int
    draw: Literal["random", "weighted"]
    by_doubt: bool
    seed: int
    pairs: tuple[DrawnPair, ...]
    notes: tuple[Sentence, ...]


def draw_pairs(
    store: Store,
    name: str,
    number: int,
    *,
    judge: str | None = None,
    jury: str | None = None,
    seed: int = 0,
    labels_are_random: bool = False,
) -> PairDraw:
    """The next pairs of the queue that have no label yet; asked again, the same ones."""
    if number < 1:
        raise InputError(Message("trust.draw_too_small", number=number))
    by = predictions_of(store, name, judge=judge, jury=jury)
    run, columns = by.run, by.columns
    queue = label_queue(store, run.id, columns, seed=seed)
    labels = read_labels(store, run.id, columns, are_random=labels_are_random)
    done = np.zeros(len(queue.items), dtype=np.bool_)
    done[queue.of_row[labels.rows[labels.usable]]] = True
    order = queue.draw.queue
    waiting = np.flatnonzero(~done[order])[:number]
    if not waiting.size:
        raise InputError(Message("trust.all_labelled", name=run.name))
    drawn = int(waiting[-1]) + 1
    chances = queue.chances_after(drawn)
    notes = []
    if waiting.size < number:
        notes.append(Message("trust.all_drawn", n=waiting.size))
    if by.pending:
        notes.append(Message("trust.draw_so_far", n=len(queue.items)))
    return PairDraw(
        run=run.name,
        judge=by.judge,
        of=len(queue.items),
        drawn=drawn,
        draw="weighted" if queue.by_doubt else "random",
        by_doubt=queue.by_doubt,
        seed=seed,
        pairs=tuple(
            DrawnPair(
                id=queue.items[place].key,
                number=queue.items[place].number,
                chance=float(chances[place]),
            )
            for place in order[waiting].tolist()
        ),
        notes=tuple(notes),
    )


def write_draw(store: Store, drawn: PairDraw, path: Path, *, overwrite: bool = False) -> None:
    """CSV or JSON lines by the file's ending: who and verdict are left to be filled in."""
    ending = path.suffix.lower()
    if ending not in _ENDINGS:
        raise InputError(Message("trust.draw_file_kind_unknown", name=path.name))
    run = find_run(store, drawn.run)
    refuse_forgotten_texts(run)
    with atomic_file(path, overwrite=overwrite) as stream:
        if ending == ".csv":
            stream.write(csv_line(_COLUMNS))
        for own in drawn.pairs:
            pair = store.pair_at(run.id, own.number)
            if pair is None:
                raise InputError(Message("trust.run_deleted_nothing_written", name=run.name))
            row = _row(own, drawn, pair)
            if ending == ".csv":
                stream.write(csv_line(row[name] for name in _COLUMNS))
            else:
                stream.write(json.dumps(row, ensure_ascii=False).encode() + b"\n")


def _row(own: DrawnPair, drawn: PairDraw, pair: Pair) -> dict[str, str | float | None]:
    return {
        "pair": own.id,
        "who": None,
        "verdict": None,
        "draw": drawn.draw,
        "chance": own.chance,
        # Told, so that a vote which was once an escalation is one of this draw.
        "origin": "import",
        "prompt": pair.prompt,
        "context": pair.context,
        "response_a": pair.response_a,
        "response_b": pair.response_b,
    }
