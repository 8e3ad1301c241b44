"""A run into a file or a stream: JSON lines, JSON, CSV (as it is, and as Excel opens it), Parquet,
or the format of LLM Comparator.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, BinaryIO, Literal, get_args

from evenhand.contract import Pass, Winner
from evenhand.data.llm_comparator import ComparatorExample, ComparatorRating, llm_comparator_blocks
from evenhand.errors import InputError, MissingExtra
from evenhand.messages import Message
from evenhand.report.files import atomic_file, csv_lines, excel_lines, is_stream
from evenhand.report.lookup import find_run
from evenhand.report.manifest import Manifest, manifest_of
from evenhand.report.records import COLUMNS, ONLY_IN_FULL, RunRow, rows_of
from evenhand.store import RunRecord, Store
from evenhand.store.faults import of_run


def json_lines(rows: Iterable[RunRow]) -> Iterator[bytes]:
    for row in rows:
        yield f"{row.model_dump_json()}\n".encode()


def json_array(rows: Iterable[RunRow]) -> Iterator[bytes]:
    """The same rows as one document."""
    before = "[\n"
    for row in rows:
        yield f"{before}{row.model_dump_json()}".encode()
        before = ",\n"
    yield b"[]\n" if before == "[\n" else b"\n]\n"


# A run as LLM Comparator opens it: an example for each row, a rating for each pass.

# Its scale goes from -1.5 to 1.5, with 1 for "better"; a verdict has no degrees.
_SCORE: dict[Winner, float] = {"A": 1.0, "B": -1.0, "TIE": 0.0}
_RATED: dict[Winner, str] = {"A": "A is better", "B": "B is better", "TIE": "tie"}
_UNNAMED = ("Response A", "Response B")
_FIELDS = {
    "id": "string",
    "judge": "category",
    "outcome": "category",
    "label": "category",
    "confidence": "number",
}


def comparator_blocks(
    rows: Iterable[RunRow],
    *,
    names: tuple[str, str] | None,
    run: str,
    manifest: Manifest | None = None,
) -> Iterator[bytes]:
    """`names` are the two models', where every row has the same two."""
    return llm_comparator_blocks(
        map(_example, rows),
        names=names or _UNNAMED,
        source_path=f"evenhand run {run}",
        custom_field_types=_FIELDS,
        more={} if manifest is None else {"evenhand_manifest": manifest.model_dump(mode="json")},
    )


def _example(row: RunRow) -> ComparatorExample:
    custom: dict[str, Any] = {
        "id": row.id,
        "judge": row.judge,
        "outcome": row.outcome.value,
        "label": row.label,
        "confidence": row.confidence,
    }
    return ComparatorExample(
        input_text=row.prompt,
        output_text_a=row.response_a,
        output_text_b=row.response_b,
        score=None if row.winner is None else _SCORE[row.winner],
        tags=row.tags,
        ratings=tuple(_ratings(row.verdict.metadata.passes)),
        rationales=(row.reasoning,) if row.reasoning else (),
        custom_fields=custom,
    )


def _ratings(passes: Iterable[Pass]) -> Iterator[ComparatorRating]:
    for made in passes:
        flipped = made.order == "swapped"
        if made.ballot is not None:
            winner = made.ballot.winner
            yield ComparatorRating(
                _SCORE[winner], flipped, _RATED[winner], made.ballot.reasoning or None
            )
        elif made.unread is not None:
            yield ComparatorRating(None, flipped, "unread", made.unread.reason)


# Parquet with typed columns, written one row group at a time.

# A row group is held in memory whole: by its texts where they are long, else by its rows.
_GROUP_ROWS = 2000
_GROUP_CHARACTERS = 16_000_000
# Texts that hardly ever repeat: a dictionary, or their least and greatest, would be copies of them.
_LONG_TEXTS = (
    *("id", "prompt", "response_a", "response_b", "reasoning", "error_message", "comment"),
)


def parquet_blocks(rows: Iterable[RunRow], *, manifest: bytes | None = None) -> Iterator[bytes]:
    arrow, parquet = load_pyarrow()
    schema = _schema(arrow)
    if manifest is not None:
        schema = schema.with_metadata({"evenhand.manifest": manifest})
    sink = _Sink()
    short = [column for name, column in COLUMNS.items() if name not in _LONG_TEXTS]
    with parquet.ParquetWriter(
        sink,
        schema,
        compression="zstd",
        use_dictionary=short,
        write_statistics=short,
    ) as writer:
        for group in _groups(rows):
            writer.write_table(arrow.Table.from_pylist(group, schema=schema))
            yield sink.take()
    yield sink.take()


def load_pyarrow() -> tuple[Any, Any]:
    try:
        return import_module("pyarrow"), import_module("pyarrow.parquet")
    except ImportError:
        raise MissingExtra("pyarrow, which writes Parquet,", "parquet") from None


def _schema(arrow: Any) -> Any:
    text = arrow.string()
    criterion = arrow.struct([("criterion", text), ("winner", text), ("outcome", text)])
    kinds = {
        "row": arrow.int64(),
        "tags": arrow.list_(text),
        "confidence": arrow.float64(),
        "abstained": arrow.bool_(),
        "consistent": arrow.bool_(),
        "criteria": arrow.list_(criterion),
        "input_tokens": arrow.int64(),
        "output_tokens": arrow.int64(),
        "cost_usd": arrow.float64(),
        "time_ms": arrow.float64(),
        "flagged": arrow.bool_(),
    }
    return arrow.schema([(column, kinds.get(name, text)) for name, column in COLUMNS.items()])


def _groups(rows: Iterable[RunRow]) -> Iterator[list[dict[str, Any]]]:
    group: list[dict[str, Any]] = []
    characters = 0
    for row in rows:
        group.append(row.model_dump(mode="json", exclude=set(ONLY_IN_FULL)))
        characters += len(row.prompt) + len(row.response_a) + len(row.response_b)
        characters += len(row.reasoning)
        if len(group) >= _GROUP_ROWS or characters >= _GROUP_CHARACTERS:
            yield group
            group, characters = [], 0
    if group:
        yield group


class _Sink:
    """What was written since it was last taken. Parquet asks how far it has come in all."""

    closed = False

    def __init__(self) -> None:
        self._block = bytearray()
        self._written = 0

    def take(self) -> bytes:
        block, self._block = bytes(self._block), bytearray()
        return block

    def write(self, data: bytes) -> int:
        self._block += data
        self._written += len(data)
        return len(data)

    def tell(self) -> int:
        return self._written

    def flush(self) -> None:
        pass

    def close(self) -> None:
        pass

    def writable(self) -> bool:
        return True

    def readable(self) -> bool:
        return False

    def seekable(self) -> bool:
        return False


# A run into a file or a stream. A file gets its name only when it is whole.

Format = Literal["jsonl", "json", "csv", "excel-csv", "parquet", "llm-comparator"]
FORMATS: tuple[Format, ...] = get_args(Format)
# The others are rows alone; their manifest is a file beside theirs.
_HOLD_A_MANIFEST: tuple[Format, ...] = ("parquet", "llm-comparator")
_BY_ENDING: dict[str, Format] = {
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "json",
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
    manifest: Path | None = None  # the file beside it, where the format has no place for it


def format_for(path: Path) -> Format:
    """By the file's ending; JSON lines where it has none."""
    ending = path.suffix.lower()
    if ending in _BY_ENDING:
        return _BY_ENDING[ending]
    raise InputError(
        Message("report.export_kind_unknown", name=path.name, formats=", ".join(FORMATS))
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
        has_place = chosen in _HOLD_A_MANIFEST or is_stream(path)
        beside = None if has_place else manifest_path(path)
        with atomic_file(path, overwrite=overwrite) as stream:
            rows = _write(store, run, stream, chosen)
            if beside is not None:
                with atomic_file(beside, overwrite=True) as sidecar:
                    sidecar.write(_manifest(store, run))
    else:
        rows = _write(store, run, target, _known(format) or "jsonl")
        beside = None
    tally = store.verdicts.count(run.id)
    return Exported(run.name, rows, tally.pending, tally.skipped_rows, beside)


def manifest_path(path: Path) -> Path:
    return path.with_name(f"{path.name}.manifest.json")


def _manifest(store: Store, run: RunRecord) -> bytes:
    return f"{manifest_of(store, run.name).model_dump_json(indent=2)}\n".encode()


def _known(format: str | None) -> Format | None:  # noqa: A002
    for known in FORMATS:
        if format == known:
            return known
    if format is None:
        return None
    raise InputError(Message("report.format_formats", format=format, formats=", ".join(FORMATS)))


def _write(store: Store, run: RunRecord, stream: BinaryIO, chosen: Format) -> int:
    count = 0

    def counted() -> Iterator[RunRow]:
        nonlocal count
        for count, row in enumerate(rows_of(store, run), start=1):  # noqa: B007 - told at the end
            yield row

    stream.writelines(_blocks(store, run, counted(), chosen))
    return count


def _blocks(
    store: Store, run: RunRecord, rows: Iterable[RunRow], chosen: Format
) -> Iterator[bytes]:
    match chosen:
        case "jsonl":
            return json_lines(rows)
        case "json":
            return json_array(rows)
        case "csv":
            return csv_lines(rows)
        case "excel-csv":
            return excel_lines(rows)
        case "parquet":
            return parquet_blocks(rows, manifest=_manifest(store, run))
        case "llm-comparator":
            return comparator_blocks(
                rows,
                names=models_of(store, run),
                run=run.name,
                manifest=manifest_of(store, run.name),
            )


def models_of(store: Store, run: RunRecord) -> tuple[str, str] | None:
    """The two models, where all pairs are between the same two."""
    models: tuple[str, str] | None = None
    for row in store.verdicts.each(run.id):
        model_a, model_b = row.item.model_a, row.item.model_b
        if model_a is None or model_b is None or models not in (None, (model_a, model_b)):
            return None
        models = model_a, model_b
    return models
