"""Tables, figures and totals as pages get them from the service, and what is filled behind runs."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from evenhand.errors import InputError, NotFound
from evenhand.report.conclusions import conclude
from evenhand.serve import report_cache, reports
from evenhand.serve.config import ServerConfig
from evenhand.serve.indexing import IndexCoverage, fill_some
from evenhand.serve.report_cache import CachedFigure
from evenhand.serve.run_status import needed_run
from evenhand.serve.service import Service
from evenhand.serve.values import AuditRun, DiffRuns, RankRuns
from evenhand.serve.verdicts import TableQuery
from evenhand.settings import Settings
from evenhand.store import Store, open_store
from evenhand.store.verdict_index import Coverage
from evenhand.store.verdict_table import CountUpTo
from store_values import Begun, begin, item


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "store.db"


@asynccontextmanager
async def served(path: Path, *, background: bool = True) -> AsyncIterator[Service]:
    config = ServerConfig(store=str(path))
    async with Service.opened(config, Settings(), background=background) as service:
        yield service


def finished(store: Store, pairs: int = 30, **more: Any) -> Begun:
    rows = [
        item(
            f"{number}",
            prompt=f"river {number}",
            label="A" if number % 3 else "B",
            tags=("even",) if number % 2 == 0 else (),
            model_a="alpha",
            model_b="beta",
            response_b="b" * number,
        )
        for number in range(1, pairs + 1)
    ]
    begun = begin(store, *rows, **more)
    begun.judge_all("A")
    store.update_run(begun.run_id, intake_done=True, state="finished")
    return begun


async def until_kept(ask: Any) -> CachedFigure[Any]:
    async with asyncio.timeout(60):
        while True:
            kept: CachedFigure[Any] = await ask()
            if not kept.computing and (kept.value is not None or kept.error is not None):
                return kept
            await asyncio.sleep(0.05)


async def until(fact: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while True:
            if fact():
                return
            await asyncio.sleep(0.05)


async def test_a_table_is_paged_to_its_end_and_back(path: Path) -> None:
    with open_store(path) as store:
        run_id = str(finished(store).run_id)
    async with served(path) as service:
        query = TableQuery(sort="length", descending=True)
        pages = [await service.verdict_browser.page(run_id, query, limit=8)]
        while pages[-1].next:
            pages.append(
                await service.verdict_browser.page(run_id, query, cursor=pages[-1].next, limit=8)
            )
        numbers = [line.number for page in pages for line in page.rows]
        assert numbers == list(range(30, 0, -1))
        assert (pages[0].count, pages[0].previous) == (CountUpTo(30, more=False), None)
        assert (pages[0].indexed.whole, pages[0].words) == (True, None)
        back = await service.verdict_browser.page(run_id, query, cursor=pages[2].previous, limit=8)
        assert back.rows == pages[1].rows
        every = await asyncio.to_thread(list, service.verdict_browser.each(run_id, query))
        assert [row.number for row in every] == numbers


async def test_words_are_searched_at_once_in_a_small_run(path: Path) -> None:
    with open_store(path) as store:
        run_id = str(finished(store).run_id)
    async with served(path, background=False) as service:
        table = await service.verdict_browser.page(run_id, TableQuery(query="RIVER 7", tag=None))
        assert [line.id for line in table.rows] == ["7"]
        assert table.words is not None
        assert table.words.whole


async def test_neighbours_are_those_of_the_filtered_table(path: Path) -> None:
    with open_store(path) as store:
        run_id = str(finished(store).run_id)
    async with served(path) as service:
        even = TableQuery(tag="even", sort="length", descending=True)
        await service.verdict_browser.page(run_id, even)
        beside = await service.verdict_browser.neighbours(run_id, even, 10)
        # Of 30, 28 and so on down to 2, the eleventh of fifteen.
        assert beside == (12, 8, (11, 15))
        beside = await service.verdict_browser.neighbours(run_id, even, 30)
        assert beside == (None, 28, (1, 15))
        beside = await service.verdict_browser.neighbours(run_id, even, 99)
        assert beside == (None, None, None)


@pytest.mark.parametrize(
    "cursor",
    ["", "x", "a_1_1", "a1.5_1_1", "c1_1_1", "a1_1", "a9e999_1_1", "a" + "9" * 40, "a1__1"],
)
async def test_a_cursor_of_nobody_is_refused(path: Path, cursor: str) -> None:
    with open_store(path) as store:
        run_id = str(finished(store).run_id)
    async with served(path) as service:
        with pytest.raises(InputError, match="cursor is"):
            await service.verdict_browser.page(run_id, TableQuery(), cursor=cursor)


async def test_what_is_not_there_is_said(path: Path) -> None:
    with open_store(path) as store:
        run_id = str(finished(store).run_id)
    async with served(path) as service:
        with pytest.raises(NotFound):
            await service.verdict_browser.page("99", TableQuery())
        with pytest.raises(NotFound):
            await service.report_cache.get(reports.totals("99"))
        with pytest.raises(InputError, match="judge is 'nobody'"):
            await service.verdict_browser.page(run_id, TableQuery(judge="nobody"))


async def test_figures_are_what_the_rooms_below_say(path: Path) -> None:
    with open_store(path) as store:
        begun = finished(store)
        expected = conclude(store, begun.name).model_copy(update={"store": "this server"})
    run_id = str(begun.run_id)
    async with served(path) as service:
        kept = await until_kept(lambda: service.report_cache.get(reports.conclusions(run_id)))
        assert (kept.value, kept.stale, kept.error) == (expected, False, None)
        report = await until_kept(lambda: service.report_cache.get(reports.run_report(run_id)))
        direct = await service.report(run_id)
        assert report.value == direct.run
        ranking = await until_kept(
            lambda: service.report_cache.get(reports.ranking(RankRuns(runs=(run_id,))))
        )
        assert ranking.value == await service.rank(RankRuns(runs=(run_id,)))
        audit = await until_kept(
            lambda: service.report_cache.get(reports.audit(AuditRun(run=run_id)))
        )
        assert audit.value == await service.audit(AuditRun(run=run_id))


async def test_totals_add_up(path: Path) -> None:
    with open_store(path) as store:
        run_id = str(finished(store).run_id)
    async with served(path) as service:
        await service.verdict_browser.page(run_id, TableQuery())
        totals = (await until_kept(lambda: service.report_cache.get(reports.totals(run_id)))).value
        assert totals is not None
        assert (totals.pairs, totals.verdicts, totals.marked) == (30, 30, 30)
        (judge,) = totals.judges
        assert (judge.wins_a, judge.pending, judge.labelled, judge.disagrees) == (30, 0, 30, 10)
        assert [(tag.name, tag.count) for tag in totals.tags] == [("even", 15)]


async def test_a_figure_that_cannot_be_says_why(path: Path) -> None:
    with open_store(path) as store:
        begun = begin(store, item("x"))
        begun.judge_all()
        store.update_run(begun.run_id, intake_done=True, state="finished")
    request = AuditRun(run=str(begun.run_id))
    async with served(path) as service:
        with pytest.raises(InputError) as refused:
            await service.audit(request)
        kept = await until_kept(lambda: service.report_cache.get(reports.audit(request)))
        assert kept.error is not None
        assert kept.value is None
        assert kept.error.message == refused.value.message


@pytest.mark.slow
async def test_a_figure_is_kept_and_worked_out_again_when_its_run_changes(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(report_cache, "_SMALL", 0)  # of a small one, the newer is there at once
    with open_store(path) as store:
        begun = finished(store)
        run_id = str(begun.run_id)
        async with served(path) as one:
            first = await until_kept(lambda: one.report_cache.get(reports.run_report(run_id)))
            async with served(path, background=False) as other:
                again = await other.report_cache.get(reports.run_report(run_id))
                assert (again.value, again.at, again.computing) == (first.value, first.at, False)
            store.update_run(begun.run_id, state="stopped", stopped_by="interrupt")
            changed = await one.report_cache.get(reports.run_report(run_id))
            assert changed.stale
            assert changed.value == first.value  # the older one, until the newer is there
            async with asyncio.timeout(60):
                while True:
                    changed = await one.report_cache.get(reports.run_report(run_id))
                    if not changed.stale:
                        break
                    await asyncio.sleep(0.1)
            assert changed.value is not None
            assert changed.value.state == "stopped"


async def test_a_run_that_ended_is_filled_and_worked_out_before_anybody_asks(path: Path) -> None:
    with open_store(path) as store:
        run_id = finished(store).run_id
        async with served(path):
            await until(lambda: store.index_state(run_id).indexed == 30)
            await until(lambda: store.words_coverage(run_id).whole)
            await until(lambda: _kept_whats(store) >= {"totals", "report", "conclusions"})


async def test_conclusions_are_old_once_another_run_of_their_judge_has_labels(path: Path) -> None:
    with open_store(path) as store:
        first = finished(store, name="first")
        figures: list[Any] = [reports.conclusions("1"), reports.diff("1", DiffRuns(against="1"))]
        kept = [report_cache._Cached(store, each).find()[0] for each in figures]
        other = begin(store, item("z"), name="other", judge="another judge")
        store.update_run(other.run_id, intake_done=True, state="finished")
        assert [report_cache._Cached(store, each).find()[0] for each in figures] == kept
        finished(store, name="second")
        now = [report_cache._Cached(store, each).find()[0] for each in figures]
        assert [old != new for old, new in zip(kept, now, strict=True)] == [True, True]
        assert first.run_id == 1


async def test_a_server_that_ends_leaves_its_figures_to_the_next(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open_store(path) as store:
        finished(store)
        begun = asyncio.Event()
        monkeypatch.setattr(report_cache, "_CLOSED_WITHIN_S", 0.05)

        async def never(_: object) -> None:
            begun.set()
            await asyncio.sleep(60)

        monkeypatch.setattr(report_cache, "_in_thread", never)
        cache = report_cache.ReportCache(store)
        assert (await cache.get(reports.conclusions("1"))).computing
        await begun.wait()
        key = report_cache._Cached(store, reports.conclusions("1")).key
        leased = store.report_cache.find(key)
        assert leased is not None
        assert leased.leased
        await cache.close()
        free = store.report_cache.find(key)
        assert free is None or not free.leased


async def test_a_page_fills_what_it_can_finish_and_a_file_all_of_it(
    path: Path,
) -> None:
    with open_store(path) as store:
        run = str(finished(store).run_id)
    async with served(path, background=False) as service:
        browser = service.verdict_browser
        filled = functools.partial(browser._fill, needed_run(service.store, run), words=True)
        for _ in range(2):
            part = filled(most_left=29)
            assert (part.table, part.words) == (Coverage(0, 30), Coverage(0, 30))
        assert len(list(browser.each(run, TableQuery()))) == 30
    with open_store(path) as store:
        store.update_run(int(run), state="judging")
        store.update_run(int(run), state="finished")  # another stamp, and nothing is left
        assert fill_some(store, needed_run(store, run), words=True, within_s=0, most_left=0) == (
            IndexCoverage(Coverage(30, 30), Coverage(0, 30))
        )


async def test_servers_of_one_store_fill_a_run_together(path: Path) -> None:
    with open_store(path) as store:
        run_id = finished(store, 600).run_id
        async with served(path) as one, served(path) as other:
            tables = await asyncio.gather(
                *(each.verdict_browser.page(str(run_id), TableQuery()) for each in (one, other) * 4)
            )
            assert {table.rows for table in tables} == {tables[0].rows}
            await until(lambda: store.index_state(run_id).indexed >= 600)
        assert store.index_state(run_id).indexed == 600


def _kept_whats(store: Store) -> set[str]:
    with store._reading() as connection:
        told = connection.exec_driver_sql(
            "SELECT what FROM report_cache WHERE computed_at IS NOT NULL"
        )
        return set(told.scalars())
