"""Attacks by outputs: what may reach a store, a terminal or a page; see `scripts.attacks`."""

from __future__ import annotations

import base64
import contextlib
import io
import os
import random
import shutil
import sqlite3
import string
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

from scripts.attacks import AtMost, Attack, Outcome

_LETTERS = string.ascii_letters + string.digits


def _echoed_key() -> Outcome:
    """Keys in every writing, at random places of an answer; and what looking for them costs."""
    from evenhand.judges.protocol import Completion
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
    checks = (AtMost("keys left", left, 0), AtMost("for an answer", each_us, 200, "us"))
    return Outcome(checks, f"{tries:,} keys")


def _long_reasoning() -> Outcome:
    """2 MB against 250 KB: eight times the text may take no more than sixteen times as long."""
    from rich.console import Console
    from rich.text import Text

    from evenhand.present.terminal import plain, show_hanging

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
    return Outcome((AtMost("2 MB in", longest_s, 20, "s"), AtMost("times 250 KB", worst, 16)))


_TABLES = ("runs", "judges", "run_judges", "pairs", "items", "passes", "verdicts")
_COMMANDS = (
    ("runs",),
    ("runs", "show", "bad"),
    ("show", "bad", "1"),
    ("report", "bad"),
    ("gate", "bad"),
    ("rank", "bad"),
    ("runs", "export", "bad"),
)
_PATHS = ("/", "/runs/1", "/runs/1/pairs", "/runs/1/pairs/1", "/votes/1", "/v1/runs", "/v1/runs/1")
_LISTS = ("/", "/v1/runs")
_OF_THE_GOOD_RUN = (("report", "good", "--json"), ("runs", "export", "good"))


def _damaged_rows() -> Outcome:
    """Every column of a run's tables, with values that evenhand never writes: read by commands,
    pages and the API. No fault anywhere, and the run beside it reads as before, to the byte."""
    sys.path.insert(0, str(Path(__file__).parents[2] / "tests"))
    from stored_runs import ROWS, SKIPPED, make_run, opened

    os.chdir(tempfile.gettempdir())
    folder = Path(tempfile.mkdtemp())
    path = folder / "evenhand.db"
    os.environ |= {"HOME": str(folder), "EVENHAND_STORE": str(path), "COLUMNS": "100"}
    with opened(folder) as store:
        make_run(store, "bad", ROWS, skipped=SKIPPED)
        others = [replace(row, pair={**(row.pair or {}), "context": "another"}) for row in ROWS]
        make_run(store, "good", others, judges=("other",))
    with contextlib.closing(sqlite3.connect(path)) as file:
        file.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        damages = [
            (table, row[1], value)
            for table in _TABLES
            for row in file.execute(f"PRAGMA table_info({table})")
            for value in ("nonsense", b"\xff\xfe" if row[2] in ("TEXT", "JSON") else -1)
        ]
    sound = path.read_bytes()
    reference = [_ran(words) for words in _OF_THE_GOOD_RUN]
    tried, faults, changed = 0, [], []
    for table, column, value in damages:
        for beside in folder.glob("evenhand.db?*"):
            beside.unlink()
        path.write_bytes(sound)
        if not _damage(path, table, column, value):
            continue
        tried += 1
        where = f"{table}.{column} = {value!r}"
        for words in _COMMANDS:
            code, output = _ran(words)
            if code not in (0, 1, 2, 4, 6) or "a bug in evenhand" in output:
                faults.append(f"{where}: {' '.join(words)}: exit code {code}")
        for address, page in _pages(path):
            if "a bug in evenhand" in page:
                faults.append(f"{where}: {address}")
            if address in _LISTS and "good" not in page:
                changed.append(f"{where}: {address}")
        if [_ran(words) for words in _OF_THE_GOOD_RUN] != reference:
            changed.append(where)
    shutil.rmtree(folder)
    return Outcome(
        (
            AtMost("faults", len(faults), 0, note=_first(faults)),
            AtMost("other run hidden or changed", len(changed), 0, note=_first(changed)),
        ),
        f"{tried} damaged stores by {len(_COMMANDS)} commands and {len(_PATHS)} pages",
    )


def _first(problems: list[str]) -> str:
    return f"(first {problems[0]})" if problems else ""


def _damage(path: Path, table: str, column: str, value: object) -> bool:
    """Whether the engine lets the value in."""
    given = "CAST(? AS TEXT)" if isinstance(value, bytes) else "?"
    place = f"rowid = (SELECT min(rowid) FROM {table})"  # noqa: S608 - our own names
    change = f"UPDATE {table} SET {column} = {given} WHERE {place}"  # noqa: S608 - as above
    with contextlib.closing(sqlite3.connect(path)) as file:
        try:
            file.execute(change, [value])
        except sqlite3.Error:
            return False
        file.commit()
    return True


def _ran(words: tuple[str, ...]) -> tuple[int, str]:
    """A command's exit code and all that it wrote, in this process."""
    from evenhand.cli.main import main

    written = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
    sys.argv = ["evenhand", *words]
    code: object = 0
    with contextlib.redirect_stdout(written), contextlib.redirect_stderr(written):
        try:
            main()
        except SystemExit as left:
            code = left.code
        written.flush()
    return code if isinstance(code, int) else 1, written.buffer.getvalue().decode()


def _pages(path: Path) -> list[tuple[str, str]]:
    from starlette.testclient import TestClient

    from evenhand.serve.app import make_app
    from evenhand.serve.config import ServerConfig

    app = make_app(ServerConfig(judges=(), store=str(path)))
    with TestClient(app, base_url="http://localhost", raise_server_exceptions=False) as client:
        return [(address, client.get(address).text) for address in _PATHS]


ATTACKS: tuple[Attack, ...] = (
    Attack("a judge echoes its key in an answer", _echoed_key),
    Attack("a judge writes 2 MB of reasoning for a terminal", _long_reasoning, limit_s=300),
    Attack("rows of a store are tampered with", _damaged_rows, limit_s=900),
)
