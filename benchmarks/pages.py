"""Every page's first byte, in a store with a million verdicts: at most 300 ms, the median of 20.

    python -m benchmarks.pages [--pairs 1000000] [--store FILE|URL] [--only TEXT] [--without TEXT]

The real server answers over loopback, one request at a time. Before it is measured, the indexes
are filled and the figures worked out, as a server does by itself behind a run; what that takes is
told. A page that is added to `serve/pages/addresses.py` is measured without being named here; one
whose address needs more than a run, a pair or a file has to be, and fails until it is. Exits 1
where a page takes longer, or does not come.
"""

from __future__ import annotations

import argparse
import http.client
import re
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from benchmarks.loopback import LoopbackServer
from benchmarks.served import Served
from benchmarks.stored_million import (
    MODELS,
    RARE_HAN,
    RARE_TAG,
    RARE_WORD,
    copy_to_postgres,
    fill,
)
from sqlalchemy import func, select

from evenhand.serve.indexing import noted
from evenhand.serve.pages.routes import PAGES
from evenhand.serve.run_status import stamp_of
from evenhand.store import open_store
from evenhand.store.schema import report_cache

PAIRS = 1_000_000
LIMIT_MS = 300.0
TIMES = 20
_WARM_S = 900.0
_POSTGRES = "postgresql:"
_PART = re.compile(r"\{(\w+)\}")
_ALPHA, _BETA = (quote(each) for each in MODELS[:2])
# Tables are one page with very many addresses.
_TABLES = (
    "",
    "?outcome=inconsistent",
    "?winner=A&tag=maths",
    f"?tag={RARE_TAG}",
    "?sort=confidence",
    "?sort=confidence&descending=true",
    "?sort=length&descending=true",
    "?outcome=inconsistent&sort=confidence&descending=true",
    "?outcome=invalid&sort=length",
    "?unread=true&sort=confidence",
    "?criterion=accuracy&criterionEnd=B",
    "?criterion=clarity&criterionEnd=B",
    f"?model={_ALPHA}&criterion=clarity&criterionEnd=B",
    "?disagrees=true&sort=length",
    "?judgesDiffer=true",
    "?noted=true&minConfidence=0.99",
    "?minConfidence=0.7&maxConfidence=0.7",
    f"?query={RARE_WORD}",
    f"?query={quote(RARE_HAN)}&sort=length",
    "?query=river+stone",
    "?query=river&outcome=tie&sort=confidence",
    f"?query={quote('河流为什么')}",
    "?cursor=a900000_900000_1",
    f"?model={_ALPHA}&against={_BETA}&modelWins=true",
    f"?model={_ALPHA}&outcome=inconsistent&sort=confidence",
    f"?model={_ALPHA}&criterion=accuracy&criterionEnd=other",
    "?label=TIE&ending=undecided&sort=length",
    "?named=none",
    "?disagrees=true&countVotes=true",
)
_FILES = {
    "/static/{name}": ("evenhand.css", "evenhand.js"),
    "/runs/{id}/charts/{file}": (
        *("win-rate.svg", "win-rate.png", "win-rate.csv", "outcomes.svg", "criteria.svg"),
        *("tags.svg", "length.svg", "yardsticks.svg", "reliability.svg", "reliability.csv"),
    ),
    "/rank/charts/{file}": ("leaderboard.svg", "leaderboard.csv", "matrix.png"),
}


_MISSING = (
    select(func.count())
    .select_from(report_cache)
    .where(report_cache.c.run_id > 0, report_cache.c.computed_at.is_(None))
)


@dataclass(frozen=True, slots=True)
class Measured:
    address: str
    status: int
    median_ms: float
    most_ms: float

    @property
    def held(self) -> bool:
        return self.status in (200, 303) and self.median_ms <= LIMIT_MS


def addresses(run_id: int, pairs: int) -> Iterator[str]:
    given = {"id": str(run_id), "number": str(pairs // 2)}
    for page in PAGES:
        if page.method != "GET":
            continue
        if page.path in _FILES:
            of = f"?run={run_id}" if page.path.startswith("/rank/") else ""
            start = page.path.replace("{id}", str(run_id))
            yield from (f"{_PART.sub(name, start)}{of}" for name in _FILES[page.path])
            continue
        path = _PART.sub(lambda part: given[part[1]], page.path)
        if page.name == "pairsPage":
            yield from (f"{path}{query}" for query in _TABLES)
        elif page.name == "pairPage":
            yield from (path, f"{path}?outcome=inconsistent&sort=confidence")
        elif page.name == "findPairPage":
            yield f"{path}?id=pair-{pairs // 2}"
        elif page.name == "rankPage":
            yield from (path, f"{path}?run={run_id}")
        elif page.name == "rankPairs":
            yield f"{path}?run={run_id}&model={_ALPHA}&ending=valid&named=two"
        else:
            yield path


def filled(store: str, pairs: int, folder: Path) -> int:
    if not store.startswith(_POSTGRES):
        return 1 if Path(store).exists() else fill(Path(store), pairs)
    with open_store(store) as opened:
        there = opened.run_at(1) is not None
    if not there:
        path = folder / "copied.db"
        fill(path, pairs)
        copy_to_postgres(path, store)
    return 1


def index(address: str | Path, run_id: int) -> tuple[float, float]:
    """Seconds that marks and words take: what a server does behind the run."""
    with open_store(address) as store:
        run = store.run_at(run_id)
        assert run is not None
        stamp = stamp_of(store, run)
        begun = time.monotonic()
        if store.index_state(run_id).stamp != stamp:
            while store.index_verdicts(run_id, noted=noted, limit=500, stamp=stamp):
                pass
        marked = time.monotonic()
        while store.add_words(run_id, limit=500):
            pass
        return marked - begun, time.monotonic() - marked


def warm(served: Served, store: str, wanted: list[str]) -> float:
    """Ask for everything until no figure is missing any more; the seconds that took."""
    begun = time.monotonic()
    while time.monotonic() - begun < _WARM_S:
        for address in wanted:
            first_byte(served.port, address)
        with open_store(store) as opened, opened._reading() as connection:
            if not connection.execute(_MISSING).scalar_one():
                return time.monotonic() - begun
        time.sleep(1)
    raise RuntimeError(f"figures are still being worked out after {_WARM_S:.0f} s")


def first_byte(port: int, address: str) -> tuple[int, float]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
    try:
        connection.connect()
        begun = time.perf_counter()
        connection.request("GET", address)
        # Its head is what comes first; a file of a million rows has a body that takes minutes.
        answer = connection.getresponse()
        took = time.perf_counter() - begun
        return answer.status, 1000 * took
    finally:
        connection.close()


def measure(port: int, address: str) -> Measured:
    told = [first_byte(port, address) for _ in range(TIMES)]
    took = [ms for _, ms in told]
    return Measured(address, max(status for status, _ in told), statistics.median(took), max(took))


def main(arguments: list[str] | None = None) -> int:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    options.add_argument("--pairs", type=int, default=PAIRS)
    options.add_argument("--store", help="kept, and used again where it is there")
    options.add_argument("--only", default="", help="addresses that hold this")
    options.add_argument("--without", default="\n", help="but not those that hold this")
    chosen = options.parse_args(arguments)
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        store = chosen.store or str(folder / "store.db")
        if not store.startswith(_POSTGRES):
            store = str(Path(store).resolve())  # the server is started elsewhere
        run_id = filled(store, chosen.pairs, folder)
        marks_s, words_s = index(store, run_id)
        print(f"{chosen.pairs:,} verdicts; marks {marks_s:.0f} s, words {words_s:.0f} s")
        wanted = [
            each
            for each in addresses(run_id, chosen.pairs)
            if chosen.only in each and chosen.without not in each
        ]
        with (
            LoopbackServer(answer="short") as judge,
            Served(judge.url, folder, store=store) as served,
        ):
            print(f"figures {warm(served, store, wanted):.0f} s\n")
            print("| address | status | median ms | most ms | |\n|---|---|---|---|---|")
            found = []
            for address in wanted:
                found.append(measured := measure(served.port, address))
                held = "held" if measured.held else "**NOT HELD**"
                shown = address.replace("|", "%7C")
                print(
                    f"| `{shown}` | {measured.status} | {measured.median_ms:.0f} "
                    f"| {measured.most_ms:.0f} | {held} |",
                    flush=True,
                )
    return 0 if all(each.held for each in found) else 1


if __name__ == "__main__":
    sys.exit(main())
