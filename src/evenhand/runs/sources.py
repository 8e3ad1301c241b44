"""Where a run's pairs come from: files of pairs, files of model outputs, or Python objects."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol

import orjson

from evenhand.contract import Pair
from evenhand.data import (
    OutputFile,
    Place,
    Reading,
    Records,
    Source,
    file_digest,
    open_source,
    read_files,
    read_outputs,
    read_pairs,
)
from evenhand.errors import DataError

Prompts = Literal["all", "common"]


class Sources(Protocol):
    """`title` is what a run of it is called; `describe` tells all that its pairs depend on."""

    @property
    def names(self) -> tuple[str, ...]: ...

    @property
    def title(self) -> str: ...

    @property
    def meaning(self) -> str | None:
        """Who A and B are, where that is known and needs saying."""

    def describe(self) -> Mapping[str, Any]: ...

    def records(self) -> Records: ...

    def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class PairFiles:
    files: tuple[Source, ...]
    reading: Reading

    @classmethod
    def of(cls, given: Sequence[Path | str], reading: Reading) -> PairFiles:
        return cls(tuple([open_source(each) for each in given]), reading)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(file.name for file in self.files)

    @property
    def title(self) -> str:
        return "+".join(file.stem for file in self.files)

    @property
    def meaning(self) -> str | None:
        return None

    def describe(self) -> dict[str, Any]:
        # With several files a row without an id is known by its file's name.
        names = [file.stem for file in self.files] if len(self.files) > 1 else []
        return {**_told(self.files, self.reading), "names": names}

    def records(self) -> Records:
        return read_pairs(self.files, self.reading)

    def records_by_file(self, after: Place) -> Iterator[tuple[int, Records]]:
        """The same with the number of the file that they are from, from a place on. It is the same
        file each time: `describe` would not have found the run otherwise."""
        return read_files(self.files, self.reading, after=after)

    def close(self) -> None:
        for file in self.files:
            file.close()


@dataclass(frozen=True, slots=True)
class ModelOutputs:
    """One file a model, made into pairs: all against all, or each against the baseline."""

    files: tuple[Source, ...]
    reading: Reading
    baseline: str | None = None
    questions: Source | None = None
    prompts: Prompts = "all"  # common: those that only one of two models has are not missing

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(file.name for file in self.files)

    @property
    def title(self) -> str:
        return "-vs-".join(file.stem for file in self.files)

    @property
    def meaning(self) -> str | None:
        if len(self.files) == 2 and self.baseline is None:
            return f"A is {self.files[0].stem}, B is {self.files[1].stem}"
        if self.baseline is not None:
            return f"A is {self.baseline}, B is each of the others: B's wins are theirs together"
        return "A and B are other models in other pairs: compare by modelA and modelB of the export"

    def describe(self) -> dict[str, Any]:
        asked = [self.questions] if self.questions else []
        return {
            **_told([*self.files, *asked], self.reading),
            "models": [file.stem for file in self.files],
            "baseline": self.baseline,
            # Only where it is chosen: runs from before keep their fingerprints.
            **({"prompts": "common"} if self.prompts == "common" else {}),
        }

    def records(self) -> Records:
        outputs = [OutputFile(file) for file in self.files]
        return read_outputs(outputs, self.reading, baseline=self.baseline, questions=self.questions)

    def close(self) -> None:
        for file in (*self.files, self.questions):
            if file is not None:
                file.close()


def given_pairs(pairs: Iterable[Pair | Mapping[str, Any]], reading: Reading) -> PairFiles:
    """Pairs from Python, by way of a temporary file: an iterator can be read only once."""
    # Closed with the source that it becomes.
    spooled = tempfile.NamedTemporaryFile(prefix="evenhand-", suffix=".jsonl")  # noqa: SIM115
    for number, pair in enumerate(pairs, start=1):
        spooled.write(_line(pair, number))
    spooled.flush()
    return PairFiles((Source(Path(spooled.name), "pairs", spooled),), reading)


def _line(pair: Pair | Mapping[str, Any], number: int) -> bytes:
    if isinstance(pair, Pair):
        return pair.model_dump_json(exclude_none=True).encode() + b"\n"
    if not isinstance(pair, Mapping):  # callers may be untyped
        raise DataError(
            f"pairs, row {number}: a pair is a mapping or a Pair, not a {type(pair).__name__}; "
            "a file of pairs is given by its name alone, and not in a list"
        )
    try:
        return orjson.dumps(dict(pair), option=orjson.OPT_APPEND_NEWLINE)
    except (orjson.JSONEncodeError, TypeError, ValueError) as error:
        raise DataError(
            f"pairs, row {number}: it is not plain data ({error}); give a Pair, or a dict of texts"
        ) from None


def _told(files: Sequence[Source], reading: Reading) -> dict[str, Any]:
    return {
        "files": [file_digest(file) for file in files],
        "columns": dict(reading.columns),
        "criteria": [c.model_dump(mode="json", exclude_none=True) for c in reading.criteria],
        "allow_tie": reading.allow_tie,
        "swap_positions": reading.swap_positions,
    }
