"""Which pairs people should label next, and a file of them that comes back as votes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Literal

import numpy as np

from evenhand.analysis_options import CorrectOptions
from evenhand.contract import Pair
from evenhand.contract.model import Model
from evenhand.errors import InputError
from evenhand.messages import Message, Sentence
from evenhand.report.files import atomic_file, csv_line
from evenhand.report.label_samples import label_queue, read_labels
from evenhand.report.lookup import find_run
from evenhand.store import Store
from evenhand.trust.labelling import refuse_forgotten_texts
from evenhand.trust.panels import predictions_of

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
    judge: Sentence
    of: int
    drawn: int
    draw: Literal["random", "weighted"]
    by_doubt: bool
    seed: int
    pairs: tuple[DrawnPair, ...]
    notes: tuple[Sentence, ...]


def draw_pairs(
    store: Store, name: str, number: int, options: CorrectOptions | None = None
) -> PairDraw:
    """The next pairs of the queue that have no label yet; asked again, the same ones."""
    if number < 1:
        raise InputError(Message("trust.draw_too_small", number=number))
    options = options or CorrectOptions()
    run, seed = find_run(store, name), options.seed
    by = predictions_of(store, run, judge=options.judge, jury=options.jury)
    columns, vouched = by.columns, options.labels_are is not None
    queue = label_queue(store, run.id, columns, seed=seed)
    labels = read_labels(store, run.id, columns, are_random=vouched)
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
            pair = store.items.pair(run.id, own.number)
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
