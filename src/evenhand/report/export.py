"""A run into a file or a stream. A file gets its name only when it is whole."""

from __future__ import annotations

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
from evenhand.report.whole_file import written_whole
from evenhand.store import RunRecord, Store
from evenhand.store.faults import of_run

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


@of_run
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
        with written_whole(path, overwrite=overwrite) as stream:
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
            return write_comparator(stream, rows, names=models_of(store, run), run=run.name)


def models_of(store: Store, run: RunRecord) -> tuple[str, str] | None:
    """The two models, where all pairs are between the same two."""
    found: tuple[str, str] | None = None
    for row in store.each_verdict(run.id):
        model_a, model_b = row.item.model_a, row.item.model_b
        if model_a is None or model_b is None or found not in (None, (model_a, model_b)):
            return None
        found = model_a, model_b
    return found
