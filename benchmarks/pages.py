"""Every page in a store of two runs: its first byte, the median of ten, at most 300 ms with 100,000
verdicts each and 2 s with a million; its weight, at most 100 KB with its style sheet and script;
the server's memory.

    python -m benchmarks.pages [--pairs 1000000] [--store FILE|URL] [--postgres] [--only TEXT]
                               [--without TEXT] [--times 10]

The real server answers over loopback, one request at a time, in three states: `new`, where runs
have only just come and the first search has their words indexed; `cold`, where no figure is cached
and the server computes them; `warm`, where it has them. A page that is added is measured without
being named here; one whose address needs more than a run, a pair or a file has to be, and fails
until it is. Exits 1 where a page takes longer, weighs more, or does not come. Run by `make verify`.
"""

from __future__ import annotations

import argparse
import http.client
import re
import statistics
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Literal
from urllib.parse import quote

from benchmarks.loopback import ROOT, LoopbackServer
from benchmarks.served import Served
from benchmarks.stored_million import (
    MODELS,
    RARE_HAN,
    RARE_TAG,
    RARE_WORD,
    copy_to_postgres,
    fill,
)
from sqlalchemy import delete

from evenhand.serve.pages.routes import PAGES
from evenhand.store import open_store
from evenhand.store.schema import figures

PAIRS = 1_000_000
LIMITS_MS = ((100_000, 300.0), (1_000_000, 2000.0))  # with up to so many pairs
LIMIT_BYTES = 100_000
TIMES = 10
_WARM_S = 3600.0
_POSTGRES = "postgresql:"
_PART = re.compile(r"\{(\w+)\}")
_ASSETS = re.compile(rb'(?:href|src)="(/static/[^"]+\.(?:css|js))"')
_TEXTS = re.compile(rb"(?<=<bdi>).*?(?=</bdi>)", re.DOTALL)  # prompts, reasons, names
State = Literal["new", "cold", "warm"]
_TWO, _MANY = 1, 2  # the runs
_ALPHA, _BETA = (quote(each) for each in MODELS[:2])
# Tables are one page with very many addresses: each filter, chip and order, alone and with others.
_TABLES = (
    "",
    "outcome=win&winner=A",
    "outcome=win&winner=B",
    "outcome=tie",
    "outcome=inconsistent",
    "outcome=invalid",
    "winner=A&tag=maths",
    "winner=A&sort=confidence",
    "judge=openai:judge",
    f"tag={RARE_TAG}",
    "tag=code&sort=length",
    "sort=confidence",
    "sort=confidence&descending=true",
    "sort=length&descending=true",
    "descending=true",
    "outcome=inconsistent&sort=confidence&descending=true",
    "outcome=invalid&sort=length",
    "unread=true&sort=confidence",
    "unread=false",
    "criterion=accuracy&criterionEnd=B",
    "criterion=clarity&criterionEnd=B",
    "criterion=depth&tag=maths",
    f"model={_ALPHA}&criterion=clarity&criterionEnd=B",
    "disagrees=true",
    "disagrees=false&sort=confidence",
    "disagrees=true&sort=length",
    "abstained=true",
    "abstained=false",
    "byRule=true",
    "byRule=false&sort=confidence",
    "judgesDiffer=true",
    "judgesDiffer=false",
    "noted=true&minConfidence=0.99",
    "noted=false",
    "minConfidence=0.7&maxConfidence=0.7",
    "minConfidence=0.9&belowConfidence=1",
    "belowConfidence=0.1",
    "hasConfidence=false",
    "hasConfidence=true&sort=length",
    "orders=agree",
    "orders=differ&sort=length",
    "orders=read&descending=true",
    "leans=first",
    "leans=second",
    "leans=second&sort=confidence",
    "leans=either&sort=length&descending=true",
    "leans=second&outcome=inconsistent&tag=chat",
    "longerWins=true",
    "longerWins=false&sort=length",
    "longerWins=true&sort=confidence&descending=true",
    "minLengthDifference=1&maxLengthDifference=50",
    "minLengthDifference=100000",
    "flagged=true",
    "flagged=true&sort=confidence",
    "flagged=false",
    f"query={RARE_WORD}",
    f"query={quote(RARE_HAN)}&sort=length",
    "query=river+stone",
    "query=river&outcome=tie&sort=confidence",
    "query=river&leans=second",
    f"query={quote('河流为什么')}",
    "query=nowhere",
    "cursor=a900000_900000_1",
    "cursor=b900000_900000_1",
    "outcome=inconsistent&cursor=a900000_900000_1",
    "longerWins=true&cursor=a999000_999000_1",
    "sort=confidence&cursor=a0.75_500000_1",
    "sort=length&cursor=a0_500000_1",
    f"model={_ALPHA}&against={_BETA}&modelWins=true",
    f"model={_ALPHA}&outcome=inconsistent&sort=confidence",
    f"model={_ALPHA}&criterion=accuracy&criterionEnd=other",
    "model=nobody",
    "label=TIE&ending=undecided&sort=length",
    "label=longer&longerWins=false",
    "label=none",
    "ending=valid",
    "ending=decided&disagrees=true",
    "named=none",
    "named=two",
    "disagrees=true&countVotes=true",
    "label=any&countVotes=true",
)
# A pair among those of a table: its place is counted, its neighbours are found.
_PAIRS_AMONG = (
    "",
    "sort=confidence&descending=true",
    "outcome=inconsistent&sort=confidence",
    "leans=second",
    "leans=second&sort=length",
    "longerWins=true",
    "flagged=true",
    "flagged=true&sort=confidence",
    "disagrees=true&sort=length",
    f"query={RARE_WORD}",
    "query=river",
    f"tag={RARE_TAG}",
    "minConfidence=0.7&maxConfidence=0.7",
)
# Of the run with many models: what asks for models.
_TABLES_OF_MANY = (
    "",
    f"model={_ALPHA}&ending=valid&named=two",
    f"model={_ALPHA}&against={_BETA}&modelWins=true",
    f"model={_ALPHA}&against={_BETA}&leans=second",
    f"model={_ALPHA}&outcome=inconsistent&sort=confidence",
    f"model={_ALPHA}&criterion=accuracy&criterionEnd=other",
)
_BOTH = f"run={_TWO}&run={_MANY}"
# What else a page is asked for, by its name.
_QUERIES: dict[str, tuple[str, ...]] = {
    "runPage": ("", "comparison=1", "side=A&ties=excluded", "level=0.9"),
    "comparePage": ("", _BOTH, f"{_BOTH}&fromOutcome=A&toOutcome=B", f"{_BOTH}&after=500000"),
    "rankPage": ("", f"run={_TWO}", f"run={_MANY}", f"run={_MANY}&by=tag", _BOTH),
    "rankPairs": (f"{_BOTH}&model={_ALPHA}&ending=valid&named=two",),
    "auditPage": ("", f"against={_MANY}"),
}
_OF_MANY: dict[str, tuple[str, ...]] = {
    "runPage": ("", "comparison=1", "comparison=780"),
    "pairsPage": _TABLES_OF_MANY,
    "pairPage": ("", f"model={_ALPHA}&outcome=inconsistent&sort=confidence"),
    "auditPage": ("",),
    "calibrationPage": ("",),
}
_FILES = {
    "/static/{name}": ("evenhand.css", "evenhand.js", "try.js"),
    "/runs/{id}/charts/{file}": (
        *("win-rate.svg", "win-rate.png", "win-rate.csv", "outcomes.svg", "criteria.svg"),
        *("tags.svg", "length.svg", "yardsticks.svg", "reliability.svg", "reliability.csv"),
    ),
    "/rank/charts/{file}": ("leaderboard.svg", "leaderboard.csv", "matrix.png"),
}


@dataclass(slots=True)
class Measured:
    """One address in one state."""

    took_ms: list[float] = field(default_factory=list)
    status: int = 0
    cpu_ms: float = 0.0  # of the server, one with the other
    size: int = 0  # with what it loads, without the data's own texts
    html: bool = False
    waiting: bool = False  # for a figure, when it was last asked for

    def faults(self, limit_ms: float) -> Iterator[str]:
        if self.status not in (200, 303):
            yield f"status {self.status}"
        if statistics.median(self.took_ms) > limit_ms:
            yield "too late"
        if self.html and self.size > LIMIT_BYTES:
            yield "too heavy"


def addresses(pairs: int) -> Iterator[str]:
    for page in PAGES:
        if page.method != "GET":
            continue
        if page.path in _FILES:
            of = f"?run={_MANY}" if page.path.startswith("/rank/") else ""
            start = page.path.replace("{id}", str(_TWO))
            yield from (f"{_PART.sub(name, start)}{of}" for name in _FILES[page.path])
            continue
        places = (1, pairs // 2, pairs) if page.name == "pairPage" else (pairs // 2,)
        for place in places:
            given = {"id": str(_TWO), "number": str(place)}
            path = _PART.sub(lambda part, given=given: given[part[1]], page.path)  # type: ignore[misc]
            yield from (f"{path}?{query}" if query else path for query in _asked(page.name, pairs))
        for query in _OF_MANY.get(page.name, ()):
            given = {"id": str(_MANY), "number": str(pairs // 2)}
            path = _PART.sub(lambda part, given=given: given[part[1]], page.path)  # type: ignore[misc]
            yield f"{path}?{query}" if query else path


def _asked(name: str, pairs: int) -> Sequence[str]:
    if name == "findPairPage":
        return (f"id=pair-{pairs // 2}",)
    return {"pairsPage": _TABLES, "pairPage": _PAIRS_AMONG}.get(name) or _QUERIES.get(name, ("",))


def is_page(address: str) -> bool:
    """And no file: a chart is drawn by whoever wants it, and takes a second the first time."""
    path = address.partition("?")[0]
    return "." not in path.rpartition("/")[2]


def filled(store: str, pairs: int, folder: Path) -> None:
    if not store.startswith(_POSTGRES):
        if not Path(store).exists():
            fill(Path(store), pairs)
        return
    with open_store(store) as opened:
        there = opened.runs.at(_TWO) is not None
    if not there:
        path = folder / "copied.db"
        fill(path, pairs)
        copy_to_postgres(path, store)
        path.unlink()


@contextmanager
def _postgres() -> Iterator[str]:
    # The tests' own, which nothing that is installed needs.
    sys.path.append(str(ROOT / "tests"))
    from postgres_server import find_binaries, running

    binaries = find_binaries()
    if binaries is None:
        raise SystemExit("PostgreSQL is not installed; run scripts/install_postgres.sh")
    with running(binaries, ()) as server:
        server.run("CREATE DATABASE pages")
        yield server.url("pages")


def forget_figures(store: str) -> None:
    with open_store(store) as opened, opened.writing() as connection:
        connection.execute(delete(figures))


def ask(port: int, address: str, measured: Measured) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=300)
    try:
        connection.connect()
        begun = time.perf_counter()
        connection.request("GET", address)
        # Its head is what comes first; a file of a million rows has a body that takes minutes.
        answer = connection.getresponse()
        measured.took_ms.append(1000 * (time.perf_counter() - begun))
        measured.status = max(measured.status, answer.status)
        measured.html = "text/html" in answer.headers.get("Content-Type", "")
        if measured.html:
            body = answer.read()
            measured.waiting = b"data-live" in body
            loaded = sum(_size(port, each.decode()) for each in _ASSETS.findall(body))
            measured.size = max(measured.size, len(_TEXTS.sub(b"", body)) + loaded)
    finally:
        connection.close()


@cache
def _size(port: int, asset: str) -> int:
    """As a browser gets it."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=300)
    with closing(connection):
        connection.request("GET", asset, headers={"Accept-Encoding": "gzip"})
        return len(connection.getresponse().read())


@dataclass(slots=True)
class Bench:
    served: Served
    store: str
    times: int
    most_mb: float = 0.0
    most_in_all_mb: float = 0.0  # with the processes that compute figures

    @property
    def memory(self) -> str:
        return f"server: {self.most_mb:.0f} MB at most, {self.most_in_all_mb:.0f} with its figures"

    def new(self, wanted: Sequence[str]) -> dict[str, Measured]:
        return self._rounds(wanted)

    def cold(self, wanted: Sequence[str]) -> dict[str, Measured]:
        """Again and again without a figure, so that some are computed all the time."""
        return self._rounds(wanted, forget=True)

    def warm(self, wanted: Sequence[str]) -> dict[str, Measured]:
        begun = time.monotonic()
        while time.monotonic() - begun < _WARM_S:
            if not any(each.waiting for each in self._rounds(wanted, times=1).values()):
                print(f"figures {time.monotonic() - begun:.0f} s", flush=True)
                return self._rounds(wanted)
            time.sleep(1)
        raise RuntimeError(f"figures are still being computed after {_WARM_S:.0f} s")

    def _rounds(
        self, wanted: Sequence[str], *, times: int | None = None, forget: bool = False
    ) -> dict[str, Measured]:
        found: dict[str, Measured] = defaultdict(Measured)
        times = times or self.times
        for _ in range(times):
            if forget:
                forget_figures(self.store)
            for address in wanted:
                before = self.served.cpu_s()
                ask(self.served.port, address, found[address])
                found[address].cpu_ms += 1000 * (self.served.cpu_s() - before) / times
                self.most_mb = max(self.most_mb, self.served.resident_mb())
                in_all = self.served.resident_with_children_mb()
                self.most_in_all_mb = max(self.most_in_all_mb, in_all)
        return found


def show(state: State, found: dict[str, Measured], limit_ms: float) -> bool:
    """Whether all hold."""
    print(f"\n{state}\n\n| address | median ms | worst ms | CPU ms | KB | |")
    print("|---|---|---|---|---|---|")
    held = True
    for address, each in found.items():
        faults = ", ".join(each.faults(limit_ms))
        held = held and not faults
        print(
            f"| `{address.replace('|', '%7C')}` | {statistics.median(each.took_ms):.0f} "
            f"| {max(each.took_ms):.0f} | {each.cpu_ms:.0f} "
            f"| {each.size / 1000 if each.html else 0:.0f} "
            f"| {f'**{faults}**' if faults else 'held'} |",
            flush=True,
        )
    pages = [each for each in found.values() if each.took_ms]
    slowest = max(statistics.median(each.took_ms) for each in pages)
    heaviest = max(each.size for each in pages if each.html)
    print(f"{len(pages)} addresses; slowest median {slowest:.0f} ms, heaviest {heaviest:,} bytes")
    return held


def main(arguments: list[str] | None = None) -> int:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    options.add_argument("--pairs", type=int, default=PAIRS)
    options.add_argument("--store", help="kept, and used again where it is there")
    options.add_argument("--postgres", action="store_true", help="in a PostgreSQL of its own")
    options.add_argument("--only", default="", help="addresses that hold this")
    options.add_argument("--without", default="\n", help="but not those that hold this")
    options.add_argument("--times", type=int, default=TIMES)
    chosen = options.parse_args(arguments)
    every = [
        each
        for each in addresses(chosen.pairs)
        if chosen.only in each and chosen.without not in each
    ]
    pages = [each for each in every if is_page(each)]
    with ExitStack() as opened:
        folder = Path(opened.enter_context(tempfile.TemporaryDirectory()))
        store = chosen.store or str(folder / "store.db")
        if chosen.postgres:
            store = opened.enter_context(_postgres())
        elif not store.startswith(_POSTGRES):
            store = str(Path(store).resolve())  # the server is started elsewhere
        filled(store, chosen.pairs, folder)
        judge = opened.enter_context(LoopbackServer(answer="short"))
        limit_ms = next((ms for most, ms in LIMITS_MS if chosen.pairs <= most), LIMITS_MS[-1][1])
        held = []
        with Served(judge.url, folder, store=store) as served:
            held.append(show("new", Bench(served, store, chosen.times).new(pages), limit_ms))
        with Served(judge.url, folder, store=store) as served:
            bench = Bench(served, store, chosen.times)
            held.append(show("cold", bench.cold(pages), limit_ms))
            print(bench.memory)
            held.append(show("warm", bench.warm(every), limit_ms))
            print(f"{bench.memory}; {served.resident_mb():.0f} MB now")
        with Served(judge.url, folder, store=store) as served:
            bench = Bench(served, store, 2)
            bench._rounds(every)
            print(f"one that only shows: {bench.memory}")
    return 0 if all(held) else 1


if __name__ == "__main__":
    sys.exit(main())
