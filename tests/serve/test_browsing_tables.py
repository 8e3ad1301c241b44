"""Tables, figures and totals as pages get them from the service."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from evenhand.analyses.registry import AUDIT, DIFF, RANK, REPORT
from evenhand.analysis_options import AuditOptions, DiffOptions, RankOptions, ReportOptions
from evenhand.errors import InputError, NotFound, ServerBusy
from evenhand.report.conclusions import conclude
from evenhand.serve import figures, reports
from evenhand.serve.config import ServerConfig
from evenhand.serve.figures import CachedFigure
from evenhand.serve.service import Service
from evenhand.serve.verdicts import TableQuery, word_index
from evenhand.settings import Settings
from evenhand.store import Store, open_store
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
    store.runs.update(begun.run_id, intake_done=True, state="finished")
    return begun


async def until_kept(ask: Any) -> CachedFigure[Any]:
    async with asyncio.timeout(60):
        while True:
            kept: CachedFigure[Any] = await ask()
            if not kept.computing and (kept.value is not None or kept.error is not None):
                return kept
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
        assert (pages[0].count, pages[0].previous) == (30, None)
        assert not pages[0].searching
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
        assert not table.searching
        assert table.count == 1


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
            await service.figures.get(reports.totals("99"))
        with pytest.raises(InputError, match="judge is 'nobody'"):
            await service.verdict_browser.page(run_id, TableQuery(judge="nobody"))


def report(run: str) -> figures.Figure[Any]:
    return reports.analysed(REPORT, (run,), ReportOptions())


async def test_figures_are_what_the_rooms_below_say(path: Path) -> None:
    with open_store(path) as store:
        begun = finished(store)
        expected = conclude(store, begun.name).model_copy(update={"store": "this server"})
    run_id = str(begun.run_id)
    async with served(path) as service:
        kept = await until_kept(lambda: service.figures.get(report(run_id)))
        assert (kept.stale, kept.error) == (False, None)
        assert kept.value is not None
        assert kept.value.conclusions == expected
        assert kept.value == await service.analyse(REPORT, (run_id,), ReportOptions())
        ranking = await until_kept(
            lambda: service.figures.get(reports.analysed(RANK, (run_id,), RankOptions()))
        )
        assert ranking.value == await service.analyse(RANK, (run_id,), RankOptions())
        audit = await until_kept(
            lambda: service.figures.get(reports.analysed(AUDIT, (run_id,), AuditOptions()))
        )
        assert audit.value == await service.analyse(AUDIT, (run_id,), AuditOptions())


async def test_totals_add_up(path: Path) -> None:
    with open_store(path) as store:
        run_id = str(finished(store).run_id)
    async with served(path) as service:
        await service.verdict_browser.page(run_id, TableQuery())
        totals = (await until_kept(lambda: service.figures.get(reports.totals(run_id)))).value
        assert totals is not None
        assert (totals.pairs, totals.verdicts) == (30, 30)
        (judge,) = totals.judges
        assert (judge.wins_a, judge.pending, judge.labelled, judge.disagrees) == (30, 0, 30, 10)
        assert [(tag.name, tag.count) for tag in totals.tags] == [("even", 15)]


async def test_a_figure_that_cannot_be_says_why(path: Path) -> None:
    with open_store(path) as store:
        begun = begin(store, item("x"))
        begun.judge_all()
        store.runs.update(begun.run_id, intake_done=True, state="finished")
    run = str(begun.run_id)
    async with served(path) as service:
        with pytest.raises(InputError) as refused:
            await service.analyse(AUDIT, (run,), AuditOptions())
        kept = await until_kept(
            lambda: service.figures.get(reports.analysed(AUDIT, (run,), AuditOptions()))
        )
        assert kept.error is not None
        assert kept.value is None
        assert kept.error.message == refused.value.message


@pytest.mark.slow
async def test_a_figure_is_kept_and_worked_out_again_when_its_run_changes(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(figures, "_SMALL", 0)  # of a small one, the newer is there at once
    with open_store(path) as store:
        begun = finished(store)
        run_id = str(begun.run_id)
        async with served(path) as one:
            first = await until_kept(lambda: one.figures.get(report(run_id)))
            async with served(path, background=False) as other:
                again = await other.figures.get(report(run_id))
                assert (again.value, again.at, again.computing) == (first.value, first.at, False)
            store.runs.update(begun.run_id, state="stopped", stopped_by="interrupt")
            changed = await one.figures.get(report(run_id))
            assert changed.stale
            assert changed.value == first.value  # the older one, until the newer is there
            async with asyncio.timeout(60):
                while True:
                    changed = await one.figures.get(report(run_id))
                    if not changed.stale:
                        break
                    await asyncio.sleep(0.1)
            assert changed.value is not None
            assert changed.value.run.state == "stopped"


async def test_conclusions_are_old_once_another_run_of_their_judge_has_labels(path: Path) -> None:
    with open_store(path) as store:
        first = finished(store, name="first")
        asked: list[Any] = [report("1"), reports.analysed(DIFF, ("1", "1"), DiffOptions())]
        kept = [figures._Subject(store, each).find()[0] for each in asked]
        other = begin(store, item("z"), name="other", judge="another judge")
        store.runs.update(other.run_id, intake_done=True, state="finished")
        assert [figures._Subject(store, each).find()[0] for each in asked] == kept
        finished(store, name="second")
        now = [figures._Subject(store, each).find()[0] for each in asked]
        assert [old != new for old, new in zip(kept, now, strict=True)] == [True, True]
        assert first.run_id == 1


async def test_a_server_that_ends_leaves_its_figures_to_the_next(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open_store(path) as store:
        finished(store)
        begun, ended = threading.Event(), threading.Event()
        monkeypatch.setattr(figures, "_CLOSED_WITHIN_S", 0.05)

        def takes_long(*_: object) -> bytes:
            begun.set()
            ended.wait(60)
            return b"{}"

        monkeypatch.setattr(figures.FigureCache, "_compute", takes_long)
        cache = figures.FigureCache(store)
        assert (await cache.get(report("1"))).computing
        await asyncio.to_thread(begun.wait, 60)
        key = figures._Subject(store, report("1")).key
        computed = store.figures.find(key)
        assert computed is not None
        assert computed.computing
        await cache.close()
        free = store.figures.find(key)
        ended.set()
        assert free is None or not free.computing


async def test_a_search_waits_for_the_words_of_a_large_run(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A page shows what is indexed, and says so; whoever asks for data is told to come back."""
    with open_store(path) as store:
        run_id = str(finished(store).run_id)
    query = TableQuery(query="river")
    monkeypatch.setattr(figures, "_SMALL", 0)
    monkeypatch.setattr(figures, "_AWAITED_S", 0)
    async with served(path, background=False) as service:
        assert (await service.verdict_browser.page(run_id, query)).searching
        await until_kept(lambda: service.figures.get(word_index(run_id)))
        table = await service.verdict_browser.page(run_id, query)
        assert (table.count, table.searching) == (30, False)
        assert len((await service.verdicts(run_id, query)).verdicts) == 30
    with open_store(path) as store:
        store.deletion.forget_texts("run")
    async with served(path, background=False) as service:
        with pytest.raises(ServerBusy, match="being indexed"):
            await service.verdicts(run_id, query)


async def test_servers_of_one_store_index_words_together(path: Path) -> None:
    with open_store(path) as store:
        run_id = str(finished(store, 600).run_id)
    query = TableQuery(query="river")
    async with served(path) as one, served(path) as other:
        async with asyncio.timeout(60):
            while True:
                tables = await asyncio.gather(
                    *(each.verdict_browser.page(run_id, query) for each in (one, other) * 4)
                )
                if not any(table.searching for table in tables):
                    break
        assert {table.count for table in tables} == {600}
