"""Where a run's pairs come from (files of pairs or model outputs, Python objects), and how rows
become stored items before anything is spent.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal, Protocol

import orjson

from evenhand.contract import Pair
from evenhand.data.answers import AnswerRows
from evenhand.data.frames import ArrowStream, frame_rows, is_frame
from evenhand.data.options import ReadOptions
from evenhand.data.outputs import OutputFile, read_outputs
from evenhand.data.pairs import GIVEN, PairRows, ReadPosition, plain_rows, read_files, read_pairs
from evenhand.data.records import BadRow, Record, Records, Side, Unpaired
from evenhand.data.source import Source, file_digest, open_source
from evenhand.errors import DataError
from evenhand.messages import Message
from evenhand.runs.options import BadRows
from evenhand.runs.stop import Stop
from evenhand.store import RunRecord, Store, WithoutPartner
from evenhand.store.records import TAG_COLUMNS, UNPAIRED_ROWS, WITHOUT_PARTNER

Prompts = Literal["all", "common"]


class Sources(Protocol):
    """`title` names a run of it; `describe` has everything that its pairs depend on."""

    @property
    def names(self) -> tuple[str, ...]: ...

    @property
    def title(self) -> str: ...

    def meaning(self, a: str, b: str) -> Message | None:
        """Who A and B are, if that needs saying; `a` and `b` are the first pair's models."""

    def describe(self) -> Mapping[str, Any]: ...

    def records(self) -> Records: ...

    def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class _Files:
    files: tuple[Source, ...]
    reading: ReadOptions

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(file.name for file in self.files)

    def close(self) -> None:
        for file in self.files:
            file.close()


@dataclass(frozen=True, slots=True)
class PairFiles(_Files):
    @classmethod
    def of(cls, given: Sequence[Path | str], reading: ReadOptions) -> PairFiles:
        return cls(tuple([open_source(each) for each in given]), reading)

    @property
    def title(self) -> str:
        return "+".join(file.stem for file in self.files)

    def meaning(self, a: str, b: str) -> Message | None:
        return None

    def describe(self) -> dict[str, Any]:
        # With several files, a row without an id is known by its file's name.
        names = [file.stem for file in self.files] if len(self.files) > 1 else []
        return {**describe_files(self.files, self.reading), "names": names}

    def records(self) -> Records:
        return read_pairs(self.files, self.reading)

    def records_by_file(self, after: ReadPosition) -> Iterator[tuple[int, Records]]:
        """The same with file numbers, from a position on. The files are unchanged: otherwise
        `describe` would not have matched the run."""
        return read_files(self.files, self.reading, after=after)


@dataclass(frozen=True, slots=True)
class ModelOutputs(_Files):
    """One file a model, made into pairs: all against all, or each against the baseline."""

    baseline: str | None = None
    questions: Source | None = None
    prompts: Prompts = "all"  # common: those that only one of two models has are not missing

    @property
    def title(self) -> str:
        return "-vs-".join(file.stem for file in self.files)

    def meaning(self, a: str, b: str) -> Message | None:
        if len(self.files) == 2:
            return Message("runs.two_files", a=a, b=b)
        if self.baseline is not None:
            return Message("runs.against_baseline", a=a)
        return Message("runs.all_against_all")

    def describe(self) -> dict[str, Any]:
        asked = [self.questions] if self.questions else []
        return {
            **describe_files([*self.files, *asked], self.reading),
            "models": [file.stem for file in self.files],
            "baseline": self.baseline,
            # Absent by default, to keep the fingerprints of earlier runs.
            **({"prompts": "common"} if self.prompts == "common" else {}),
        }

    def records(self) -> Records:
        outputs = [OutputFile(file) for file in self.files]
        return read_outputs(outputs, self.reading, baseline=self.baseline, questions=self.questions)

    def close(self) -> None:
        _Files.close(self)  # a class with slots is made anew, and has lost its super()
        if self.questions is not None:
            self.questions.close()


def given_pairs(
    pairs: ArrowStream | Iterable[Pair | Mapping[str, Any]], reading: ReadOptions
) -> PairFiles:
    """Pairs from Python, or a DataFrame of them."""
    return PairFiles((spool_rows(pairs, GIVEN, PairRows(GIVEN, reading).check),), reading)


def given_outputs(
    a: str | Path | ArrowStream | Iterable[Mapping[str, Any]],
    b: str | Path | ArrowStream | Iterable[Mapping[str, Any]],
    reading: ReadOptions,
) -> ModelOutputs:
    """Two models' outputs: files, or rows from Python, whose models are called a and b unless the
    rows name them."""

    def opened(given: str | Path | ArrowStream | Iterable[Mapping[str, Any]], name: str) -> Source:
        if isinstance(given, str | Path):
            return open_source(given)
        return spool_rows(given, name, partial(AnswerRows(reading.columns).check, name))

    return ModelOutputs((opened(a, "a"), opened(b, "b")), reading)


def spool_rows(
    rows: ArrowStream | Iterable[Pair | Mapping[str, Any]],
    name: str,
    check: Callable[[tuple[str, ...]], None],
) -> Source:
    """Into a temporary file, since an iterator can be read only once. Close it."""
    given: Iterable[Any]
    if tabular := is_frame(rows):
        columns, given = frame_rows(rows, name)
        check(columns)
    else:
        given = plain_rows(rows, name)
    # Closed by the source made of it.
    spooled = tempfile.NamedTemporaryFile(prefix="evenhand-", suffix=".jsonl")  # noqa: SIM115
    for number, row in enumerate(given, start=1):
        spooled.write(_line(row, number, default=str if tabular else None))
    spooled.flush()
    return Source(Path(spooled.name), name, spooled, tabular=tabular)


def _line(pair: object, number: int, *, default: Callable[[Any], str] | None) -> bytes:
    if isinstance(pair, Pair):
        return pair.model_dump_json(exclude_none=True).encode() + b"\n"
    if not isinstance(pair, Mapping):  # callers may be untyped
        raise DataError.of("runs.row_no_pair", number=number, name=type(pair).__name__)
    try:
        # A frame may have further columns of any type.
        return orjson.dumps(dict(pair), default, option=orjson.OPT_APPEND_NEWLINE)
    except (orjson.JSONEncodeError, TypeError, ValueError) as error:
        raise DataError.of("runs.row_no_plain_data", number=number, error=error) from None


def describe_files(files: Sequence[Source], reading: ReadOptions) -> dict[str, Any]:
    """What pairs depend on, besides the models' names."""
    return {
        "files": [file_digest(file) for file in files],
        "columns": dict(reading.columns),
        "criteria": [c.model_dump(mode="json", exclude_none=True) for c in reading.criteria],
        "allow_tie": reading.allow_tie,
        "swap_positions": reading.swap_positions,
        # Absent by default, to keep the fingerprints of earlier runs.
        **({"orders": reading.orders.as_json()} if reading.orders else {}),
        **({"values": dict(reading.values)} if reading.values else {}),
    }


# Rows become items before anything is spent, so that bad rows and clashing ids show early.

_AT_ONCE = 500
_CHARACTERS_AT_ONCE = 8_000_000  # a response may have 50 million
REPEATED_ROWS = "repeatedRows"  # in a run's summary; reports read it
_TAKEN_IN = "takenIn"  # likewise, until all rows are in
_NOTED_EVERY = 20  # batches


def take_in(
    store: Store,
    run_id: int,
    sources: Sources,
    *,
    bad_rows: BadRows,
    by_id: bool,
    stop: Stop,
    report: Callable[[int], None],
) -> bool:
    """Whether everything was read; idempotent. `report` gets the rows so far.

    For files of pairs, an interrupted intake resumes at its last noted position. `by_id`: a judge
    finds answers by pair id, so that equal texts are not equal pairs.
    """
    on_common = isinstance(sources, ModelOutputs) and sources.prompts == "common"
    unpaired: Counter[tuple[str, str, Side]] = Counter()
    unpaired_rows = 0
    taken = _Taken.of(store.runs.at(run_id)) if isinstance(sources, PairFiles) else _Taken()
    for count, (file, batch) in enumerate(_batches(sources, taken), start=1):
        if stop.by is not None:
            return False
        bad = [row for row in batch if isinstance(row, BadRow)]
        for row in bad:
            if isinstance(row, Unpaired):
                unpaired.update(row.lost)
                unpaired_rows += not on_common
        if on_common:
            bad = [row for row in bad if not isinstance(row, Unpaired)]
        if bad and bad_rows == "stop":
            raise DataError.of("runs.message_bad", message=bad[0].message, bad=_remedy(bad[0]))
        records = [row for row in batch if isinstance(row, Record)]
        store.items.add(run_id, records, by_id=by_id)
        if bad:
            store.items.add_skipped(run_id, bad)
        taken = taken.and_then(file, batch, records=len(records))
        report(taken.rows)
        if isinstance(sources, PairFiles) and count % _NOTED_EVERY == 0:
            noted = _tag_columns(store, run_id)
            store.runs.update(run_id, summary={**noted, _TAKEN_IN: asdict(taken)})
    stored = store.items.count(run_id)
    if stored == 0:
        raise DataError.of("runs.nothing_to_judge", names=", ".join(sources.names))
    repeated = taken.records - stored
    summary = _tag_columns(store, run_id)
    if repeated > 0:
        summary[REPEATED_ROWS] = repeated
    if unpaired:
        # Joined outputs are read from the start each time, and each counted once.
        summary[WITHOUT_PARTNER] = [asdict(each) for each in _by_models(unpaired)]
        summary[UNPAIRED_ROWS] = unpaired_rows
    store.runs.update(run_id, summary=summary)
    return True


def _tag_columns(store: Store, run_id: int) -> dict[str, Any]:
    """The tag columns noted in the summary."""
    run = store.runs.at(run_id)
    known = None if run is None else run.summary.get(TAG_COLUMNS)
    return {} if known is None else {TAG_COLUMNS: known}


@dataclass(frozen=True, slots=True)
class _Taken:
    """The state of the intake over all commands: the last row, and the counts."""

    file: int = 0
    row: int = 0
    rows: int = 0
    records: int = 0

    @classmethod
    def of(cls, run: RunRecord | None) -> _Taken:
        return cls(**run.summary.get(_TAKEN_IN, {})) if run is not None else cls()

    def and_then(self, file: int, batch: Sequence[Record | BadRow], *, records: int) -> _Taken:
        return _Taken(file, batch[-1].row, self.rows + len(batch), self.records + records)


def note_on_repeats(run: RunRecord) -> str | None:
    count = run.summary.get(REPEATED_ROWS, 0)
    if not count:
        return None
    return Message("runs.repeated_rows", n=count)


_MATCHES_SHOWN = 4


def note_on_partners(run: RunRecord) -> str | None:
    """How many prompts only one model answered, and what that means for the run."""
    unmatched = run.without_partner
    if not unmatched:
        return None
    each = [
        Message("runs.without_partner", has=has, lacks=lacks, n=count)
        for match in unmatched
        for has, lacks, count in (
            (match.model_a, match.model_b, match.only_a),
            (match.model_b, match.model_a, match.only_b),
        )
        if count
    ]
    more = ["…"] if len(each) > _MATCHES_SHOWN else []
    count = sum(match.prompts for match in unmatched)
    code = "runs.partners_left_out" if run.on_common_prompts else "runs.partners_missing"
    return Message(code, n=count, each=[*each[:_MATCHES_SHOWN], *more])


def _by_models(unpaired: Counter[tuple[str, str, Side]]) -> Iterator[WithoutPartner]:
    for model_a, model_b in dict.fromkeys((a, b) for a, b, _ in unpaired):
        only_a, only_b = (unpaired[model_a, model_b, side] for side in ("A", "B"))
        yield WithoutPartner(model_a, model_b, only_a, only_b)


def _remedy(row: BadRow) -> str:
    if isinstance(row, Unpaired):
        return Message("runs.remedy_unpaired")
    if isinstance(row.reason, Message) and row.reason.code in _NO_TEXT:
        values = row.reason.values
        if {*map(str, values.values())} & {"a list", "an object"}:
            return Message("runs.remedy_chat")
    return Message("runs.remedy_bad_row")


# A field that is not text. A list is a chat, in every row alike.
_NO_TEXT = ("pair.wrong_type", "data.text_needed", "data.prompt_no_text")


def refusal_of(row: BadRow) -> Message:
    return Message("runs.message_bad", message=row.message, bad=_remedy(row))


def _batches(sources: Sources, taken: _Taken) -> Iterator[tuple[int, list[Record | BadRow]]]:
    """Batches of rows of one file, with its number."""
    if not isinstance(sources, PairFiles):
        yield from ((0, batch) for batch in _sliced(sources.records()))
        return
    for file, records in sources.records_by_file(ReadPosition(taken.file, taken.row)):
        yield from ((file, batch) for batch in _sliced(records))


def _sliced(records: Records) -> Iterator[list[Record | BadRow]]:
    batch: list[Record | BadRow] = []
    characters = 0
    for row in records:
        batch.append(row)
        if isinstance(row, Record):
            pair = row.pair
            characters += len(pair.prompt) + len(pair.response_a) + len(pair.response_b)
        if len(batch) == _AT_ONCE or characters > _CHARACTERS_AT_ONCE:
            yield batch
            batch, characters = [], 0
    if batch:
        yield batch
