"""The votes on a run into a file that `import_votes` reads back as they are."""

from __future__ import annotations

import csv
import gzip
import io
import json
import os
import secrets
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from evenhand.errors import InputError
from evenhand.report.csv_table import escape
from evenhand.report.lookup import find_run
from evenhand.store import ItemVote, Store

COLUMNS = ("pair", "who", "verdict", "at", "origin", "draw", "chance", "shown_order", "comment")
SKIPPED = "skipped"
BOTH_BAD = "both bad"
_TEXTS = ("pair", "who", "comment")


def export_votes(store: Store, name: str, target: Path | str, *, overwrite: bool = False) -> int:
    """How many votes were written: CSV or JSON lines by the file's ending, gzipped with .gz."""
    run = find_run(store, name)
    path = Path(target).expanduser()
    plain_name = path.name.lower().removesuffix(".gz")
    if not plain_name.endswith((".csv", ".jsonl", ".ndjson")):
        raise InputError(
            f"{path.name} does not say what it is to hold; end it in .csv or .jsonl, or either "
            "with .gz"
        )
    if path.exists() and not overwrite:
        raise InputError(f"{path} is there already; give another name, or --force")
    part = path.with_name(f".{path.name[:200]}.{secrets.token_hex(4)}.part")
    try:
        with part.open("xb") as stream:
            votes = store.each_vote(run.id)
            if path.name.lower().endswith(".gz"):
                with gzip.GzipFile(fileobj=stream, mode="wb", filename="", mtime=0) as packed:
                    count = _write(votes, packed, table=plain_name.endswith(".csv"))
            else:
                count = _write(votes, stream, table=plain_name.endswith(".csv"))
            stream.flush()
            os.fsync(stream.fileno())
        part.replace(path)
    except OSError as error:
        raise InputError(
            f"{path} cannot be written: {(error.strerror or str(error)).lower()}; "
            "nothing was left behind; check the disk, the path and its permissions"
        ) from None
    finally:
        with suppress(OSError):
            part.unlink()
    return count


def write_votes(store: Store, name: str, stream: BinaryIO) -> int:
    """The same as JSON lines into an open stream, which stays open."""
    return _write(store.each_vote(find_run(store, name).id), stream, table=False)


def _write(votes: Iterator[ItemVote], stream: BinaryIO | gzip.GzipFile, *, table: bool) -> int:
    count = 0
    if table:
        stream.write(_line(COLUMNS))
    for own in votes:
        count += 1
        told = _told(own)
        if table:
            stream.write(_line([_cell(name, told[name]) for name in COLUMNS]))
        else:
            known = {name: value for name, value in told.items() if value is not None}
            stream.write(json.dumps(known, ensure_ascii=False).encode() + b"\n")
    return count


def _told(own: ItemVote) -> dict[str, str | float | None]:
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


def _cell(name: str, value: str | float | None) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return repr(value)
    return escape(value) if name in _TEXTS else value


def _line(cells: tuple[str, ...] | list[str]) -> bytes:
    text = io.StringIO()
    csv.writer(text, quoting=csv.QUOTE_ALL, lineterminator="\n").writerow(cells)
    return text.getvalue().encode()
