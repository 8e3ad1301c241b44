"""How well the reader reads recorded judges: correct, honestly unread, or misread, file by file.
The format is recognised; what is read only where it is named (sentences) is counted by itself.

    python scripts/readings.py [DATA_DIR] [--list]

A recorded verdict is the reference, unless `adjudications.jsonl` holds our own reading of it.
"""

from __future__ import annotations

import gzip
import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any, Literal, get_args

from evenhand.contract import PROTOCOLS, AnswerProtocol, Unread
from evenhand.judging.ballots import read_ballot
from evenhand.judging.decision import PassBallot

ROOT = Path(__file__).resolve().parent.parent
DATA = ROOT.parent / "shared" / "data"
ADJUDICATIONS = Path(__file__).resolve().parent / "adjudications.jsonl"

Class = Literal["correct", "by name only", "unread honestly", "unread though readable", "misread"]
CLASSES: tuple[Class, ...] = get_args(Class)
Key = tuple[str, str, str, int | None, str | None]
# What the judges of a set were asked for, where some of them answer in sentences.
NAMED: dict[str, AnswerProtocol] = {
    "llmbar__": "llmbar",
    "mtbench_": "mt-bench",
    "qlora_": "three-class",
}
# Sentences of a judge that was asked for no format: to leave one unread is no fault.
FREE_FORM = ("puspita_",)


@dataclass(frozen=True, slots=True)
class Judged:
    """One recorded completion, our reading of it, and what it should be."""

    set: str
    row: dict[str, Any]
    outcome: PassBallot | Unread
    acceptable: tuple[str | None, ...]
    named: str | None = None  # what the named protocol reads, where nothing was recognised

    @property
    def reading(self) -> str | None:
        return _winner(self.outcome)

    @property
    def kind(self) -> Class:
        if self.reading is not None:
            return "correct" if self.reading in self.acceptable else "misread"
        if self.named is not None:
            return "by name only" if self.named in self.acceptable else "misread"
        return "unread honestly" if None in self.acceptable else "unread though readable"


def _winner(outcome: PassBallot | Unread) -> str | None:
    return outcome.winner if isinstance(outcome, PassBallot) else None


@dataclass(slots=True)
class Counts:
    by_kind: dict[Class, int] = field(default_factory=lambda: dict.fromkeys(CLASSES, 0))

    @property
    def total(self) -> int:
        return sum(self.by_kind.values())

    def line(self, name: str) -> str:
        cells = (
            f"{count:>6} {100 * count / max(self.total, 1):6.2f}%"
            for count in self.by_kind.values()
        )
        return f"{name:<58}{self.total:>7}  " + "  ".join(cells)


def records(path: Path) -> Iterator[dict[str, Any]]:
    content = path.read_bytes()
    text = (gzip.decompress(content) if path.suffix == ".gz" else content).decode()
    for line in text.split("\n"):
        if line:
            yield json.loads(line)


def key_of(name: str, row: dict[str, Any]) -> Key:
    order = row.get("pass") or row["order"]
    return name, str(row["id"]), order, row.get("repetition"), row.get("round")


def adjudications() -> dict[Key, str | None]:
    if not ADJUDICATIONS.exists():
        return {}
    return {key_of(row["set"], row): row["verdict"] for row in records(ADJUDICATIONS)}


def recorded(data: Path, *, every: int = 1) -> Iterator[Judged]:
    """Every recorded completion that has its text, or one in `every`, as read by us."""
    ours, numbers = adjudications(), count()
    files = [*(data / "judgments").glob("*.jsonl.gz"), *(data / "completions").glob("*.jsonl.gz")]
    for path in sorted(files, key=lambda file: (file.parent.name != "judgments", file.name)):
        name = path.name.removesuffix(".jsonl.gz")
        for row in records(path):
            if row["raw"] is None or next(numbers) % every:
                continue
            expected = ours.get(key_of(name, row), row["verdict_as_shown"])
            free = (None,) if name.startswith(FREE_FORM) else ()
            yield _judged(name, row, (expected, *free))


def nasty(data: Path) -> Iterator[Judged]:
    for row in records(data / "nasty.jsonl"):
        yield _judged("nasty", row, tuple(row["acceptable"]))


def _judged(name: str, row: dict[str, Any], acceptable: tuple[str | None, ...]) -> Judged:
    truncated = row.get("finish_reason") == "length"
    outcome = read_ballot(row["raw"], truncated=truncated)
    protocol = next((NAMED[each] for each in NAMED if name.startswith(each)), row.get("protocol"))
    named = None
    if isinstance(outcome, Unread) and protocol in PROTOCOLS:
        named = _winner(read_ballot(row["raw"], truncated=truncated, protocol=protocol))
    return Judged(name, row, outcome, acceptable, named)


def main(arguments: list[str]) -> int:
    listing = "--list" in arguments
    paths = [argument for argument in arguments if not argument.startswith("--")]
    data = Path(paths[0]) if paths else DATA
    if not (data / "judgments").is_dir():
        print(f"no recorded judgments in {data}; give the data folder as the argument")
        return 0
    tables: dict[str, Counts] = {}
    total = Counts()
    for judged in (*recorded(data), *nasty(data)):
        tables.setdefault(judged.set, Counts()).by_kind[judged.kind] += 1
        total.by_kind[judged.kind] += 1
        if listing and judged.kind in ("unread though readable", "misread"):
            where = judged.row.get("id", "nasty"), judged.row.get("pass", judged.row.get("order"))
            why = judged.outcome.reason if isinstance(judged.outcome, Unread) else ""
            print(judged.kind, judged.set, *where, judged.acceptable, judged.reading, why)
    print(f"{'set':<58}{'n':>7}  " + "  ".join(f"{kind[:14]:>14}" for kind in CLASSES))
    for name, counts in tables.items():
        print(counts.line(name))
    print(total.line("total"))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
