"""How well the reader reads recorded judges: correct, honestly unread, or misread, file by file.

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
from typing import Any, Literal

from evenhand.contract import Unread
from evenhand.judging.ballots import read_ballot
from evenhand.judging.decision import PassBallot

ROOT = Path(__file__).resolve().parent.parent
DATA = ROOT.parent / "shared" / "data"
ADJUDICATIONS = Path(__file__).resolve().parent / "adjudications.jsonl"

Class = Literal["correct", "unread honestly", "unread though readable", "misread"]
CLASSES: tuple[Class, ...] = ("correct", "unread honestly", "unread though readable", "misread")
Key = tuple[str, str, str, int | None, str | None]


@dataclass(frozen=True, slots=True)
class Judged:
    """One recorded completion, our reading of it, and what it should be."""

    set: str
    row: dict[str, Any]
    outcome: PassBallot | Unread
    acceptable: tuple[str | None, ...]

    @property
    def reading(self) -> str | None:
        return self.outcome.winner if isinstance(self.outcome, PassBallot) else None

    @property
    def kind(self) -> Class:
        if self.reading in self.acceptable:
            return "unread honestly" if self.reading is None else "correct"
        return "unread though readable" if self.reading is None else "misread"


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
    return name, row["id"], row["pass"], row.get("repetition"), row.get("round")


def adjudications() -> dict[Key, str | None]:
    if not ADJUDICATIONS.exists():
        return {}
    return {key_of(row["set"], row): row["verdict"] for row in records(ADJUDICATIONS)}


def recorded(data: Path, *, every: int = 1) -> Iterator[Judged]:
    """Every recorded completion that has its text, or one in `every`, as read by us."""
    ours, numbers = adjudications(), count()
    for path in sorted((data / "judgments").glob("*.jsonl.gz")):
        name = path.name.removesuffix(".jsonl.gz")
        for row in records(path):
            if row["raw"] is None or next(numbers) % every:
                continue
            outcome = read_ballot(row["raw"], truncated=row.get("finish_reason") == "length")
            expected = ours.get(key_of(name, row), row["verdict_as_shown"])
            yield Judged(name, row, outcome, (expected,))


def nasty(data: Path) -> Iterator[Judged]:
    for row in records(data / "nasty.jsonl"):
        yield Judged("nasty", row, read_ballot(row["raw"]), tuple(row["acceptable"]))


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
            where = judged.row.get("id", "nasty"), judged.row.get("pass", "")
            why = judged.outcome.reason if isinstance(judged.outcome, Unread) else ""
            print(judged.kind, judged.set, *where, judged.acceptable, judged.reading, why)
    print(f"{'set':<58}{'n':>7}  " + "  ".join(f"{kind[:14]:>14}" for kind in CLASSES))
    for name, counts in tables.items():
        print(counts.line(name))
    print(total.line("total"))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
