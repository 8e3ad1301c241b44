"""Votes from a file into a store and back: `export_votes` writes what `import_votes` reads."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO, Literal

from evenhand.contract.model import Model
from evenhand.data.records import BadRow
from evenhand.data.source import Source, source_of
from evenhand.data.votes import VoteReading, VoteRow, read_votes
from evenhand.errors import DataError, InputError
from evenhand.messages import Message
from evenhand.report.files import atomic_file, csv_line, unescape
from evenhand.report.lookup import find_run
from evenhand.store import ItemVote, NewVote, RunItem, Store
from evenhand.store.records import LONGEST_NAME
from evenhand.store.schema import unprintable

COLUMNS = ("pair", "who", "verdict", "at", "origin", "draw", "chance", "shown_order", "comment")
SKIPPED = "skipped"
BOTH_BAD = "both bad"


def export_votes(store: Store, name: str, target: Path | str, *, overwrite: bool = False) -> int:
    """How many votes were written: CSV or JSON lines by the file's ending, gzipped with .gz."""
    run = find_run(store, name)
    path = Path(target).expanduser()
    plain_name = path.name.lower().removesuffix(".gz")
    if not plain_name.endswith((".csv", ".jsonl", ".ndjson")):
        raise InputError(Message("trust.vote_file_kind_unknown", name=path.name))
    table = plain_name.endswith(".csv")
    with atomic_file(path, overwrite=overwrite) as stream:
        votes = store.votes.each(run.id)
        if not path.name.lower().endswith(".gz"):
            return _write(votes, stream, table=table)
        with gzip.GzipFile(fileobj=stream, mode="wb", filename="", mtime=0) as packed:
            return _write(votes, packed, table=table)


def write_votes(store: Store, name: str, stream: BinaryIO) -> int:
    """The same as JSON lines into an open stream, which stays open."""
    return _write(store.votes.each(find_run(store, name).id), stream, table=False)


def _write(votes: Iterator[ItemVote], stream: BinaryIO | gzip.GzipFile, *, table: bool) -> int:
    count = 0
    if table:
        stream.write(csv_line(COLUMNS))
    for own in votes:
        count += 1
        fields = _fields(own)
        if table:
            stream.write(csv_line(fields[name] for name in COLUMNS))
        else:
            known = {name: value for name, value in fields.items() if value is not None}
            stream.write(json.dumps(known, ensure_ascii=False).encode() + b"\n")
    return count


def _fields(own: ItemVote) -> dict[str, str | float | None]:
    vote = own.vote
    return {
        "pair": own.key,
        "who": vote.who,
        "verdict": BOTH_BAD if vote.both_bad else vote.verdict or SKIPPED,
        "at": vote.at.isoformat(),
        "origin": vote.origin,
        "draw": vote.draw,
        "chance": vote.chance,
        "shown_order": vote.shown_order,
        "comment": vote.comment,
    }


# As many are named; all are counted.
NAMED_AT_MOST = 20


class NotImported(Model):
    """A row that is no vote, or whose pair the run does not have."""

    row: int
    reason: str


class ImportedVotes(Model):
    """`votes` of the file are on pairs of the run: `new`, `replaced` an earlier one of the same
    person, or `unchanged` because the store has them already."""

    run: str
    source: str
    votes: int
    new: int
    replaced: int
    unchanged: int
    pairs: int
    people: int
    skipped: int  # votes that say that the person skipped the pair
    unknown_votes: int
    unknown_pairs: tuple[str, ...]  # the first of them
    bad_rows: int
    first_bad_rows: tuple[NotImported, ...]


def import_votes(
    store: Store,
    name: str,
    path: Source | Path | str,
    reading: VoteReading | None = None,
    *,
    bad_rows: Literal["stop", "skip"] = "stop",
) -> ImportedVotes:
    """Votes on pairs that the run does not have are counted and left out, whatever `bad_rows`."""
    run = find_run(store, name)
    source = source_of(path)
    reading = reading or VoteReading()
    if reading.unescape is str:
        # As an export writes texts for spreadsheets; without it "=ann" would come back as another.
        reading = replace(reading, unescape=unescape)
    items = {item.key: item for item in store.items.all(run.id)}
    known: list[tuple[RunItem, VoteRow]] = []
    unknown: dict[str, int] = {}
    bad: list[BadRow] = []
    for row in read_votes(source, reading, models=_models(items)):
        if isinstance(row, VoteRow) and len(row.who) > LONGEST_NAME:
            reason = f"who has {len(row.who)} characters; give at most {LONGEST_NAME}"
            row = BadRow(row.source, row.row, reason)
        elif isinstance(row, VoteRow) and (character := unprintable(row.who)):
            reason = f"who contains {character}, an invisible character; remove it"
            row = BadRow(row.source, row.row, reason)
        if isinstance(row, BadRow):
            if bad_rows == "stop":
                raise DataError(Message("trust.nothing_imported", message=row.message))
            bad.append(row)
        elif row.pair in items:
            known.append((items[row.pair], row))
        else:
            unknown[row.pair] = unknown.get(row.pair, 0) + 1
    if not known:
        raise DataError(_nothing(source.name, run.name, items, unknown, bad))
    added = store.votes.add([_new_vote(item, row) for item, row in known])
    return ImportedVotes(
        run=run.name,
        source=source.name,
        votes=len(known),
        new=added.new,
        replaced=added.replaced,
        unchanged=added.unchanged,
        pairs=len({item.pair_id for item, _ in known}),
        people=len({row.who for _, row in known}),
        skipped=sum(row.verdict is None for _, row in known),
        unknown_votes=sum(unknown.values()),
        unknown_pairs=tuple(list(unknown)[:NAMED_AT_MOST]),
        bad_rows=len(bad),
        first_bad_rows=tuple(
            NotImported(row=row.row, reason=row.reason) for row in bad[:NAMED_AT_MOST]
        ),
    )


def _models(items: dict[str, RunItem]) -> Callable[[str], tuple[str | None, str | None]]:
    def models(pair: str) -> tuple[str | None, str | None]:
        item = items.get(pair)
        return (None, None) if item is None else (item.model_a, item.model_b)

    return models


def _new_vote(item: RunItem, row: VoteRow) -> NewVote:
    return NewVote(
        pair_id=item.pair_id,
        who=row.who,
        verdict=row.verdict,
        origin=row.origin,
        draw=row.draw,
        chance=row.chance,
        shown_order=row.shown_order,
        at=row.at,
        comment=row.comment,
        both_bad=row.both_bad,
    )


def _nothing(
    source: str,
    run: str,
    items: dict[str, RunItem],
    unknown: dict[str, int],
    bad: list[BadRow],
) -> str:
    if not unknown:
        return Message("trust.no_vote_read", source=source, row=bad[0].row, reason=bad[0].reason)
    if not items:
        return Message("trust.no_pairs_yet", run=run)
    theirs, ours = next(iter(unknown)), next(iter(items))
    return Message("trust.ids_unknown", source=source, run=run, theirs=theirs[:40], ours=ours[:40])
