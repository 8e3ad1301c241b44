"""Attacks by outputs: what may reach a store, a terminal or a page; see `scripts.attacks`."""

from __future__ import annotations

import base64
import contextlib
import io
import random
import sqlite3
import string
import sys
import tempfile
import time
from pathlib import Path

from scripts.attacks import Attack, Outcome

_LETTERS = string.ascii_letters + string.digits


def _echoed_key() -> Outcome:
    """Keys in every writing, at random places of an answer; and what looking for them costs."""
    from evenhand.judges import Completion
    from evenhand.judges.redaction import Redactor

    rng = random.Random(1)  # noqa: S311 - the same attack each time
    left = 0
    tries = 2_000
    for _ in range(tries):
        key = "sk-" + "".join(rng.choices(_LETTERS, k=rng.randint(20, 160)))
        begin = rng.randint(0, len(key) - 23)
        writings = (key, base64.b64encode(f"user:{key}".encode()).decode(), key[begin:])
        written = rng.choice([each for each in writings if len(each) >= 24] or [key])
        clean = Redactor([key]).clean(Completion(f"Response A is better ({written})."))
        left += written[4:-4] in clean.text
    redact = Redactor(["sk-" + "".join(rng.choices(_LETTERS, k=48))])
    answer = Completion("The first response explains the recursion clearly. " * 60)
    begun = time.perf_counter()
    for _ in range(5_000):
        redact.clean(answer)
    each_us = (time.perf_counter() - begun) / 5_000 * 1e6
    return Outcome(
        left == 0 and each_us < 200,
        f"{left} of {tries:,} keys left (limit 0), {each_us:.0f} us for an answer (limit 200)",
    )


def _long_reasoning() -> Outcome:
    """2 MB against 250 KB: eight times the text may take no more than sixteen times as long."""
    from rich.console import Console
    from rich.text import Text

    from evenhand.cli.terminal import plain, show_hanging

    def took_s(text: str) -> float:
        console = Console(file=io.StringIO(), width=80, force_terminal=True)
        begun = time.perf_counter()
        console.print(plain(text, indent=2))
        show_hanging(console, Text("note"), plain(text))
        return time.perf_counter() - begun

    worst, longest_s = 0.0, 0.0
    for unit in ("word ", "x", " ", "汉", "e\u0301", "y" * 19 + "\n", "y\n"):
        short = unit * (250_000 // len(unit.encode()))
        short_s, long_s = took_s(short + "z"), took_s(short * 8 + "z")
        worst, longest_s = max(worst, long_s / short_s), max(longest_s, long_s)
    return Outcome(
        worst < 16 and longest_s < 20,
        f"2 MB in {longest_s:.1f} s (limit 20), {worst:.1f} times 250 KB (limit 16)",
    )


def _damaged_rows() -> Outcome:
    """Every column of a run's tables, with values that evenhand never writes."""
    sys.path.insert(0, str(Path(__file__).parents[2] / "tests"))
    from evenhand.errors import EvenhandError
    from evenhand.report.export import export_run
    from evenhand.report.records import report_pair
    from evenhand.report.run import look_over, report_run
    from stored_runs import ROWS, SKIPPED, make_run, opened

    tried, bugs = 0, []
    tables = ("runs", "judges", "run_judges", "pairs", "items", "passes", "verdicts")
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        path = folder / "evenhand.db"
        with opened(folder) as store:
            make_run(store, "bad", ROWS, skipped=SKIPPED)
            make_run(store, "good", ROWS[:2], judges=("other",))
        with contextlib.closing(sqlite3.connect(path)) as file:
            file.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            columns = [
                (table, row[1])
                for table in tables
                for row in file.execute(f"PRAGMA table_info({table})")
            ]
        sound = path.read_bytes()
        for table, column in columns:
            for value in ("nonsense", b"\xff\xfe", -1):
                path.write_bytes(sound)
                given = "CAST(? AS TEXT)" if isinstance(value, bytes) else "?"
                place = f"rowid = (SELECT min(rowid) FROM {table})"  # noqa: S608 - our own names
                change = f"UPDATE {table} SET {column} = {given} WHERE {place}"  # noqa: S608 - as above
                with contextlib.closing(sqlite3.connect(path)) as file:
                    try:
                        file.execute(change, [value])
                    except sqlite3.Error:
                        continue
                    file.commit()
                tried += 1
                with opened(folder) as store:
                    for read in (
                        lambda store=store: look_over(store),
                        lambda store=store: report_run(store, "bad"),
                        lambda store=store: report_pair(store, "bad", "1"),
                        lambda store=store: export_run(store, "bad", io.BytesIO(), format="jsonl"),
                    ):
                        try:
                            read()
                        except EvenhandError:
                            continue
                        except Exception as error:  # whatever is no error of ours is a bug
                            bugs.append(f"{table}.{column}: {type(error).__name__}")
    first = f", first {bugs[0]}" if bugs else ""
    return Outcome(not bugs, f"{len(bugs)} bugs in {tried} damaged stores (limit 0){first}")


ATTACKS: tuple[Attack, ...] = (
    Attack("a judge echoes its key in an answer", _echoed_key),
    Attack("a judge writes 2 MB of reasoning for a terminal", _long_reasoning, limit_s=300),
    Attack("rows of a store are tampered with", _damaged_rows, limit_s=600),
)
