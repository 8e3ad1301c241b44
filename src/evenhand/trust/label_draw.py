"""Which pairs people should label next, and a file that comes back as their votes."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Literal

import numpy as np

from evenhand.contract import Pair
from evenhand.contract.model import Model
from evenhand.errors import InputError
from evenhand.report.csv_table import escape
from evenhand.report.lookup import find_run
from evenhand.report.whole_file import written_whole
from evenhand.store import Store
from evenhand.trust.label_queue import label_queue
from evenhand.trust.label_sample import read_labels
from evenhand.trust.predictions import predictions_of

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
    notes: tuple[str, ...]


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
        raise InputError(f"{number} pairs cannot be drawn; give 1 or more")
    by = predictions_of(store, name, judge=judge, jury=jury)
    run, columns = by.run, by.columns
    queue = label_queue(store, run.id, columns, seed=seed)
    labels = read_labels(store, run.id, columns, are_random=labels_are_random)
    done = np.zeros(len(queue.items), dtype=np.bool_)
    done[queue.of_row[labels.rows[labels.usable]]] = True
    order = queue.draw.queue
    waiting = np.flatnonzero(~done[order])[:number]
    if not waiting.size:
        raise InputError(
            f"every judged pair of run {run.name!r} has a label that counts; none is left to draw"
        )
    drawn = int(waiting[-1]) + 1
    chances = queue.chances_after(drawn)
    notes = []
    if waiting.size < number:
        notes.append(f"only {waiting.size:,} pairs have no label yet; all of them are drawn")
    if by.pending:
        notes.append(
            f"the run is not finished: the draw is from {len(queue.items):,} judged pairs, and "
            "another once more are judged"
        )
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
        raise InputError(f"{path.name} does not say what it is to hold; end it in .csv or .jsonl")
    run = find_run(store, drawn.run)
    if run.summary.get("forgotten_at"):
        raise InputError(
            f"the texts of run {run.name!r} were forgotten, so that nobody can vote on them"
        )
    with written_whole(path, overwrite=overwrite) as stream:
        if ending == ".csv":
            stream.write(_line(list(_COLUMNS)))
        for own in drawn.pairs:
            pair = store.pair_at(run.id, own.number)
            if pair is None:
                raise InputError(f"run {run.name!r} was deleted meanwhile; nothing was written")
            row = _row(own, drawn, pair)
            if ending == ".csv":
                stream.write(_line([_cell(row[name]) for name in _COLUMNS]))
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


def _cell(value: str | float | None) -> str:
    if value is None:
        return ""
    return repr(value) if isinstance(value, float) else escape(value)


def _line(cells: list[str]) -> bytes:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerow(cells)
    return text.getvalue().encode()
