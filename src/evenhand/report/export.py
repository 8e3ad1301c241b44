"""A run into a file or a stream. A file gets its name only when it is whole."""

from __future__ import annotations

import contextlib
import os
import secrets
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Literal, get_args

from evenhand.errors import InputError
from evenhand.report.comparator import write_comparator
from evenhand.report.csv_table import write_csv
from evenhand.report.jsonl import write_jsonl
from evenhand.report.lookup import find_run
from evenhand.report.parquet import write_parquet
from evenhand.report.records import rows_of
from evenhand.store import RunRecord, Store

Format = Literal["jsonl", "csv", "parquet", "llm-comparator"]
FORMATS: tuple[Format, ...] = get_args(Format)
_BY_ENDING: dict[str, Format] = {
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".csv": "csv",
    ".parquet": "parquet",
    "": "jsonl",
}


@dataclass(frozen=True, slots=True)
class Exported:
    """What an export holds, and what it could not hold."""

    run: str
    rows: int
    pending: int  # pairs without a verdict yet, for each judge
    skipped_rows: int  # of the run's sources, which were no pairs


def format_for(path: Path) -> Format:
    """By the file's ending; JSON lines where it has none."""
    ending = path.suffix.lower()
    if ending in _BY_ENDING:
        return _BY_ENDING[ending]
    raise InputError(
        f"{path.name} does not say what it is to hold; end it in .jsonl, .csv or .parquet, "
        f"or give --format {', '.join(FORMATS)}"
    )


def export_run(
    store: Store,
    name: str,
    target: Path | str | BinaryIO,
    *,
    format: Format | None = None,  # noqa: A002 - what everybody calls it
    overwrite: bool = False,
) -> Exported:
    """`target` is a file's name, or an open stream of bytes, which stays open."""
    run = find_run(store, name)
    if isinstance(target, (str, Path)):
        path = Path(target).expanduser()
        chosen = _known(format) or format_for(path)
        with _written_beside(path, overwrite=overwrite) as stream:
            rows = _write(store, run, stream, chosen)
    else:
        rows = _write(store, run, target, _known(format) or "jsonl")
    tally = store.tally(run.id)
    return Exported(run.name, rows, tally.pending, tally.skipped_rows)


def _known(format: str | None) -> Format | None:  # noqa: A002
    for known in FORMATS:
        if format == known:
            return known
    if format is None:
        return None
    raise InputError(f"format is {format!r}; it takes {', '.join(FORMATS)}")


def _write(store: Store, run: RunRecord, stream: BinaryIO, chosen: Format) -> int:
    rows = rows_of(store, run)
    match chosen:
        case "jsonl":
            return write_jsonl(stream, rows)
        case "csv":
            return write_csv(stream, rows)
        case "parquet":
            return write_parquet(stream, rows)
        case "llm-comparator":
            return write_comparator(stream, rows, names=_models(store, run), run=run.name)


def _models(store: Store, run: RunRecord) -> tuple[str, str] | None:
    """The two models, where all pairs are between the same two."""
    found: tuple[str, str] | None = None
    for row in store.each_verdict(run.id):
        model_a, model_b = row.item.model_a, row.item.model_b
        if model_a is None or model_b is None or found not in (None, (model_a, model_b)):
            return None
        found = model_a, model_b
    return found


@contextlib.contextmanager
def _written_beside(path: Path, *, overwrite: bool) -> Iterator[BinaryIO]:
    """A stream into a file of another name, which takes the right one once all is written."""
    with _said_plainly(path):
        path = Path(os.path.realpath(path))  # a link stays a link, to the new file
        if _is_stream(path):
            with path.open("wb") as stream:
                yield stream
            return
        _refuse(path, overwrite=overwrite)
        part = path.with_name(f".{path.name[:200]}.{secrets.token_hex(4)}.part")
        try:
            with part.open("xb") as stream:
                yield stream
                stream.flush()
                os.fsync(stream.fileno())
            _refuse(path, overwrite=overwrite)
            part.replace(path)
        finally:
            with contextlib.suppress(OSError):
                part.unlink()


@contextlib.contextmanager
def _said_plainly(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise InputError(
            f"{path} cannot be written: {(error.strerror or str(error)).lower()}; "
            "nothing was left behind; check the disk, the path and its permissions"
        ) from None


def _is_stream(path: Path) -> bool:
    """A pipe or a device is written as it is; a file in its place would be no pipe any more."""
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        return False
    return not stat.S_ISREG(mode) and not stat.S_ISDIR(mode)


def _refuse(path: Path, *, overwrite: bool) -> None:
    if path.is_dir():
        raise InputError(f"{path} is a directory; name a file in it")
    if path.exists() and not overwrite:
        raise InputError(f"{path} is there already; name another file, or give --force")
