"""What a run left in its SQLite store, read without anything of evenhand's own."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from benchmarks.generated_pairs import Fate, fate_of

_VERDICTS = """
SELECT items.key, verdicts.outcome, verdicts.winner, verdicts.error_kind, verdicts.error_message,
       (SELECT count(DISTINCT passes.shown_order) FROM passes
         WHERE passes.pair_id = items.pair_id AND passes.judge_id = verdicts.judge_id
           AND passes.status = 'ballot')
  FROM verdicts
  JOIN items ON items.run_id = verdicts.run_id AND items.number = verdicts.number
"""
_REPEATED = """
SELECT count(*) FROM (
    SELECT 1 FROM passes GROUP BY pair_id, judge_id, shown_order, sample HAVING count(*) > 1)
"""


@dataclass(frozen=True, slots=True)
class StoredVerdict:
    key: str
    outcome: str
    winner: str | None
    error_kind: str | None
    error_message: str | None
    orders_with_ballots: int

    @property
    def number(self) -> int:
        """Of the generated pair."""
        return int(self.key.removeprefix("pair-"))

    @property
    def fate(self) -> Fate | str:
        """In the words of the plan, or the outcome itself where no plan has it."""
        match self.outcome, self.winner:
            case "win", ("A" | "B") as winner:
                return winner
            case "tie", "TIE":
                return "TIE"
            case "inconsistent", "TIE":
                return "INCONSISTENT"
        return f"{self.outcome} {self.winner or ''}".strip()


def stored_passes(store: Path) -> int:
    """How many passes are committed; a store that was killed while it was made has none."""
    if not store.exists():
        return 0
    with closing(_opened(store)) as database:
        made = database.execute("SELECT 1 FROM sqlite_master WHERE name = 'passes'").fetchone()
        if made is None:
            return 0
        (count,) = database.execute("SELECT count(*) FROM passes").fetchone()
        return int(count)


def stored_verdicts(store: Path) -> Iterator[StoredVerdict]:
    with closing(_opened(store)) as database:
        for row in database.execute(_VERDICTS):
            yield StoredVerdict(*row)


def problems_in(store: Path, *, pairs: int, faults: bool) -> list[str]:
    """Where the store is not what the generated pairs must come to.

    With faults a pair may be invalid instead, with its reason, and nothing else.
    """
    problems: list[str] = []
    seen: set[int] = set()
    for verdict in stored_verdicts(store):
        where = f"{verdict.key} ({verdict.outcome})"
        if verdict.number in seen:
            problems.append(f"{where}: a second verdict")
        seen.add(verdict.number)
        if faults and verdict.outcome == "invalid":
            if not verdict.error_kind or not verdict.error_message:
                problems.append(f"{where}: no reason is given")
            continue
        if verdict.fate != fate_of(verdict.number):
            problems.append(f"{where}: {verdict.fate}, and must be {fate_of(verdict.number)}")
        if verdict.orders_with_ballots != 2:
            problems.append(f"{where}: rests on {verdict.orders_with_ballots} ballots, not on 2")
    if seen != set(range(1, pairs + 1)):
        problems.append(f"{len(seen)} pairs have a verdict, and {pairs} must have one")
    with closing(_opened(store)) as database:
        (repeated,) = database.execute(_REPEATED).fetchone()
        (sound,) = database.execute("PRAGMA integrity_check").fetchone()
    if repeated:
        problems.append(f"{repeated} passes are stored more than once")
    if sound != "ok":
        problems.append(f"the store is damaged: {sound}")
    return problems


def _opened(store: Path) -> sqlite3.Connection:
    # Read-only, so that looking does not do what the next resumption has to do by itself.
    return sqlite3.connect(f"{store.resolve().as_uri()}?mode=ro", uri=True)
