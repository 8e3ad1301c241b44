"""Comparisons within limits, and what is read out of runs, through the service itself."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from typing import Any

import pytest

from background import at_rest, offer, opened, start
from evenhand.analyses.registry import AUDIT, RANK, REPORT
from evenhand.analysis_options import AuditOptions, RankOptions, ReportOptions
from evenhand.contract import Outcome, Pair, read_pair
from evenhand.errors import (
    InputError,
    JudgeTimeout,
    ServerBusy,
    StoreBusy,
    StoreError,
    TooLarge,
)
from evenhand.report.records import RunRow
from evenhand.serve import verdicts as verdict_pages
from evenhand.serve.comparisons import ServiceObserver
from evenhand.serve.prompt_texts import EXAMPLE, prompt_text
from evenhand.serve.service import Service
from evenhand.serve.values import (
    RankResponses,
    VerdictLine,
)
from evenhand.serve.verdicts import VerdictQuery
from evenhand.store.work import WorkStore
from run_data import adds_up as adder
from run_data import sums, wins_b
from servers import Reply, SeenRequest, Slow, StartServer, start_server

__all__ = ["start_server"]

PAIR: dict[str, Any] = {**sums(1)[0], "criteria": ["accuracy"]}


@pytest.fixture
async def service(start_server: StartServer, tmp_path: Any) -> AsyncIterator[Service]:
    url = start_server(adder).url
    store = str(tmp_path / "s.db")
    limits: dict[str, Any] = {"field_chars": 500, "rank_responses": 3, "page_rows": 50}
    async with opened(url, store, offer(url), offer(url, "zh", locale="zh"), **limits) as made:
        yield made


async def judged(service: Service, count: int = 30, **options: Any) -> str:
    rows = sums(count, label="A", tags=["sum"], model_a="old", model_b="new")
    begun = await start(service, rows, **options)
    return (await at_rest(service, begun.id)).id


async def test_a_comparison_tells_its_passes(service: Service) -> None:
    seen: list[tuple[int, int]] = []
    verdict = await service.comparisons.compare(
        PAIR, on_progress=lambda done, total: seen.append((done, total))
    )
    assert (verdict.winner, verdict.outcome) == ("A", Outcome.WIN)
    assert seen == [(1, 2), (2, 2)]
    assert (await service.comparisons.compare(PAIR, judge="zh")).metadata.locale == "zh"


async def test_what_is_too_large_for_a_comparison_names_its_field(service: Service) -> None:
    with pytest.raises(
        TooLarge, match="responseA has 501 characters; this server accepts at most 500"
    ):
        await service.comparisons.compare(PAIR | {"response_a": "x" * 501})
    with pytest.raises(TooLarge, match="criteria has 51 entries; this server accepts at most 50"):
        await service.comparisons.compare(PAIR | {"criteria": [f"c{n}" for n in range(51)]})
    with pytest.raises(TooLarge, match="a criterion has 504 characters"):
        await service.comparisons.compare(
            PAIR | {"criteria": [{"name": "long", "description": "x" * 500}]}
        )
    with pytest.raises(InputError, match="does not offer"):
        await service.comparisons.compare(PAIR, judge="openai:gpt-4o")
    assert service.admission.in_flight == 0


async def test_a_comparison_that_takes_too_long_is_given_up(
    start_server: StartServer, tmp_path: Any
) -> None:
    url = start_server(lambda request: Slow(5, adder(request))).url
    async with opened(url, str(tmp_path / "s.db"), compare_timeout_s=0.2) as service:
        with pytest.raises(JudgeTimeout, match=r"no verdict within 0\.2 s"):
            await service.comparisons.compare(PAIR)
        assert service.admission.in_flight == 0


async def test_comparisons_beyond_the_queue_are_refused_and_counted(
    start_server: StartServer, tmp_path: Any
) -> None:
    open_now = threading.Event()

    def judge(request: SeenRequest) -> Reply:
        open_now.wait(20)
        return adder(request)

    class Counting(ServiceObserver):
        def __init__(self) -> None:
            self.kinds: list[str] = []

        def compared(self, judge: str, told: Any, *, seconds: float) -> None:
            self.kinds.append(f"{judge} {getattr(told, 'kind', None) or told.outcome}")

    url = start_server(judge).url
    limits: dict[str, Any] = {"compares": 1, "compare_queue": 1}
    counting = Counting()
    async with opened(url, str(tmp_path / "s.db"), observer=counting, **limits) as service:
        asked = [asyncio.create_task(service.comparisons.compare(PAIR)) for _ in range(5)]
        refused, _ = await asyncio.wait(asked[2:])
        assert {type(task.exception()) for task in refused} == {ServerBusy}
        open_now.set()
        verdicts = await asyncio.gather(*asked[:2])
        assert [verdict.winner for verdict in verdicts] == ["A", "A"]
        assert sorted(counting.kinds) == ["adder busy"] * 3 + ["adder win"] * 2


async def test_responses_are_ranked_within_limits(service: Service) -> None:
    request = RankResponses(
        prompt="What is 2 plus 2?",
        responses=("It is 5, by counting.", "It is 4, by counting."),
        criteria=("accuracy",),
    )
    seen: list[tuple[int, int]] = []
    ranked = await service.comparisons.rank(
        request, on_progress=lambda done, of: seen.append((done, of))
    )
    assert [each.index for each in ranked.ranking] == [1, 0]
    assert seen[-1] == (1, 1)
    for changed, why in (
        (
            {"responses": ("a", "b", "c", "d")},
            "responses has 4 entries; this server ranks at most 3",
        ),
        ({"responses": ("a", "b" * 501)}, r"responses\[1\] has 501 characters"),
        ({"prompt": "x" * 501}, "prompt has 501 characters"),
    ):
        with pytest.raises(TooLarge, match=why):
            await service.comparisons.rank(request.model_copy(update=changed))


async def test_the_prompt_can_be_looked_at_without_asking(service: Service) -> None:
    def shown(pair: Pair = EXAMPLE, judge: str | None = None) -> str:
        return prompt_text(pair, service.judges.plan(judge))

    text = shown(read_pair(PAIR))
    assert "original pass" in text
    assert "swapped pass" in text
    assert PAIR["prompt"] in text
    assert "‹the first response›" in shown()
    assert shown(judge="zh") != shown()


async def test_verdicts_are_paged_and_filtered(service: Service) -> None:
    run_id = await judged(service, 30)
    page = await service.verdicts(run_id, VerdictQuery(winner="B"), limit=4)
    assert [row.id for row in page.verdicts] == [f"sum-{n}" for n in (3, 6, 9, 12)]
    rest = await service.verdicts(run_id, VerdictQuery(winner="B"), cursor=page.next)
    assert (len(rest.verdicts), rest.next) == (wins_b(30) - 4, None)
    assert all(isinstance(row, VerdictLine) and row.judge == "adder" for row in rest.verdicts)
    # The label is always A.
    wrong = await service.verdicts(run_id, VerdictQuery(disagrees=True), limit=1000)
    assert len(wrong.verdicts) == wins_b(30)
    sure = await service.verdicts(run_id, VerdictQuery(min_confidence=0.95))
    assert sure.verdicts == ()
    none = await service.verdicts(run_id, VerdictQuery(tag="nowhere"))
    assert (none.verdicts, none.next) == ((), None)
    for cursor in ("x", "1", "1-1", "a-1_1", "b1_1_1", "a1_1", "a" + "9" * 30 + "_1_1"):
        with pytest.raises(InputError, match="cursor is"):
            await service.verdicts(run_id, cursor=cursor)
    with pytest.raises(InputError, match="which is not in the run; it has adder"):
        await service.verdicts(run_id, VerdictQuery(judge="zh"))


async def test_no_page_is_longer_than_the_server_allows(service: Service) -> None:
    run_id = await judged(service, 60)
    page = await service.verdicts(run_id, limit=10**9)
    assert len(page.verdicts) == 50
    assert len((await service.verdicts(run_id, cursor=page.next)).verdicts) == 10


async def test_full_verdicts_end_a_page_where_their_texts_grow_too_large(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_id = await judged(service, 12)
    monkeypatch.setattr(verdict_pages, "_PAGE_CHARACTERS", 200)
    seen: list[str] = []
    cursor: str | None = None
    pages = 0
    while cursor is not None or not seen:
        page = await service.verdicts(run_id, cursor=cursor, full=True)
        assert all(isinstance(row, RunRow) and row.verdict.success for row in page.verdicts)
        seen += [row.id for row in page.verdicts]
        cursor = page.next
        pages += 1
    assert seen == [f"sum-{n}" for n in range(1, 13)]
    assert pages > 1


async def test_reports_rankings_and_audits_tell_no_addresses(service: Service) -> None:
    run_id = await judged(service, 30)
    report = await service.analyse(REPORT, (run_id,), ReportOptions(side="A"))
    assert report.run.judges[0].wins_b == wins_b(30)
    assert report.conclusions.conclusions[0].win_rate.rate == pytest.approx(20 / 30)
    ranking = await service.analyse(RANK, (run_id,), RankOptions(judge="adder"))
    assert ranking.ranking is not None
    assert [each.model for each in ranking.ranking.models] == ["old", "new"]
    audit = await service.analyse(AUDIT, (run_id,), AuditOptions(judge="adder", min_accuracy=0.99))
    assert audit.accuracy.value == pytest.approx(20 / 30)
    assert audit.findings.ruling == "fail"
    for told in (report, ranking, audit):
        text = told.model_dump_json()
        assert "127.0.0.1" not in text
        assert service.store.address not in text


async def test_the_states_of_runs_are_counted(service: Service) -> None:
    await judged(service, 3)
    assert await service.runs_by_state() == {"finished": 1}
    assert (await service.ready()).ready


async def test_a_server_without_a_judge_is_not_ready(tmp_path: Any) -> None:
    from background import SETTINGS
    from evenhand.serve.config import ServerConfig

    made = ServerConfig(store=str(tmp_path / "s.db"))
    async with Service.opened(made, SETTINGS) as service:
        assert (await service.ready()).problems == ("no judge is configured",)
        with pytest.raises(InputError, match="this server has no judge"):
            await service.comparisons.compare(PAIR)
        service.begin_shutdown()
        assert "the server is shutting down" in (await service.ready()).problems


@pytest.mark.slow
@pytest.mark.parametrize("error", [StoreBusy("locked"), StoreError("full")])
async def test_a_run_waits_for_a_store_that_fails_and_goes_on(
    start_server: StartServer, tmp_path: Any, monkeypatch: pytest.MonkeyPatch, error: StoreError
) -> None:
    """Only that store's own trouble is made up."""
    failing = threading.Event()
    failing.set()
    write = WorkStore.write

    def sometimes(self: WorkStore, *given: Any) -> None:
        if failing.is_set():
            raise error
        write(self, *given)

    monkeypatch.setattr(WorkStore, "write", sometimes)
    monkeypatch.setattr("evenhand.serve.jobs._STORE_AWAITED_S", 0.1)
    async with opened(start_server(adder).url, str(tmp_path / "s.db")) as service:
        begun = await start(service, sums(5))
        async with asyncio.timeout(20):
            async for status in service.follow(begun.id, every_s=0.02):
                if status.error is not None:
                    break
        assert (status.state, status.error and status.error.kind) == ("queued", error.kind)
        failing.clear()
        ended = await at_rest(service, begun.id)
    assert (ended.state, ended.done, ended.error) == ("finished", 5, None)
