"""Background runs: started, told of, cancelled, resumed, failed and taken up again."""

from __future__ import annotations

import asyncio
import gzip
import json
import re
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from background import SETTINGS, adds_up, at_rest, config, offer, opened, start
from evenhand.analyses.registry import REPORT
from evenhand.analysis_options import ReportOptions
from evenhand.errors import (
    Conflict,
    DataError,
    InputError,
    NotFound,
    ServerBusy,
    TooLarge,
)
from evenhand.messages import FOR_CLIENTS, speaking_to
from evenhand.runs import JudgePlan, PairFiles, RunOptions, judge_pairs
from evenhand.serve.judges import JudgeCatalog
from evenhand.serve.mcp.resources import status_line
from evenhand.serve.run_status import read_status
from evenhand.serve.service import Service
from evenhand.serve.uploads import Upload
from evenhand.serve.values import RunStatus, StartRun
from evenhand.store import open_store
from evenhand.store.jobs import NewJob
from run_data import adds_up as adder
from run_data import sums, wins_b, write_lines
from scripted import answer_json
from servers import Reply, SeenRequest, StartServer, chat_reply, error_reply, start_server

__all__ = ["start_server"]


@pytest.fixture
def file_store(tmp_path: Path) -> str:
    return str(tmp_path / "service.db")


class Gated:
    """A judge that answers only as many calls as it was allowed to."""

    def __init__(self, allowed: int) -> None:
        self._allowed = threading.Semaphore(allowed)

    def __call__(self, request: SeenRequest) -> Reply:
        self._allowed.acquire()
        return adder(request)

    def open(self) -> None:
        self._allowed.release(100_000)


@asynccontextmanager
async def halfway(service: Service, gate: Gated, rows: list[Any]) -> AsyncIterator[RunStatus]:
    """A run of which some pairs are judged and the others wait at the judge."""
    begun = await start(service, rows)
    try:
        yield await until(service, begun.id, lambda status: status.done > 0)
    finally:
        gate.open()


async def until(service: Service, run_id: str, fact: Any) -> RunStatus:
    async with asyncio.timeout(30):
        async for status in service.follow(run_id, every_s=0.02):
            if fact(status):
                return status
    raise AssertionError(f"run {run_id} came to rest before")


async def noticed(service: Service, run_id: int) -> None:
    """Until whoever judges the run has seen in the store that it is to stop."""
    stop = service.jobs._judging[run_id].stop
    asked = asyncio.Event()
    stop.listen(asked.set)
    async with asyncio.timeout(30):
        await asked.wait()


async def gone(service: Service, run_id: str) -> None:
    while True:
        await service.run(run_id)
        await asyncio.sleep(0.02)


async def test_a_run_is_stored_at_once_and_judged_in_the_background(
    start_server: StartServer, address: str
) -> None:
    server = start_server(adder)
    async with opened(server.url, address) as service:
        begun = await start(service, sums(30))
        assert (begun.pairs, begun.pending, begun.state in ("queued", "judging")) == (30, 30, True)
        assert not begun.found
        ended = await at_rest(service, begun.id)
    assert (ended.state, ended.done, ended.pending) == ("finished", 30, 0)
    assert (ended.wins_a, ended.wins_b) == (30 - wins_b(30), wins_b(30))
    assert ended.calls == len(server.requests) == 60
    assert ended.error is None
    assert ended.stopped_by is None


async def test_an_upload_stays_open_while_it_is_read_however_often_that_is_cancelled(
    start_server: StartServer, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # It is read by its number, which a file that is closed gives to the next.
    reading, go_on = threading.Event(), threading.Event()
    seen: list[bytes] = []

    def take_in(_: object, upload: Upload, options: object) -> object:
        path = upload.source().path
        reading.set()
        assert go_on.wait(30)
        seen.append(Path(path).read_bytes())
        raise InputError("enough")

    monkeypatch.setattr("evenhand.serve.service.RunIntake.take_in", take_in)
    async with opened(start_server(adder).url, address) as service:
        starting = asyncio.create_task(start(service, sums(1)))
        assert await asyncio.to_thread(reading.wait, 30)
        for _ in range(3):
            starting.cancel()
            await asyncio.sleep(0.01)
        with Upload("another") as another:
            another.write(b"not its own")
            another.source()
            assert not starting.done()
            go_on.set()
            with pytest.raises(asyncio.CancelledError):
                await starting
    assert b"not its own" not in seen[0]
    assert b"by counting" in seen[0]


async def test_what_is_told_adds_up_at_every_moment(
    start_server: StartServer, address: str
) -> None:
    def judge(request: SeenRequest) -> Reply:
        asked = re.search(r"What is (\d+) plus", request.prompt)
        if asked and int(asked[1]) % 5 == 0:
            return chat_reply("I would rather not say.")  # unread: invalid
        return adder(request)

    server = start_server(judge)
    offers = offer(server.url), offer(server.url, "twice", samples=2)
    async with opened(server.url, address, *offers) as service:
        begun = await start(service, sums(40), judges=("adder", "twice"))
        told = [status async for status in service.follow(begun.id, every_s=0.01)]
    assert all(map(adds_up, told))
    assert [status.done for status in told] == sorted(status.done for status in told)
    last = told[-1]
    assert last.judges == ("adder", "twice")
    # Of 40 pairs 8 are unread by each judge, and of the 32 others B wins 13 - 2 (15 and 30).
    assert (last.pairs, last.done, last.invalid, last.wins_b) == (40, 80, 16, 2 * 11)
    assert (last.ties, last.inconsistent) == (0, 0)


async def test_the_same_data_finds_the_same_run_and_asks_nothing_again(
    start_server: StartServer, address: str
) -> None:
    server = start_server(adder)
    async with opened(server.url, address) as service:
        first = await start(service, sums(10))
        await at_rest(service, first.id)
        again = await start(service, sums(10))
        assert (again.id, again.found, again.state) == (first.id, True, "finished")
        other = await start(service, sums(10), criteria=("clarity",))
        assert other.id != first.id
        await at_rest(service, other.id)
    assert len(server.requests) == 40


async def test_the_same_data_at_the_same_moment_makes_one_run(
    start_server: StartServer, address: str
) -> None:
    server = start_server(adder)
    async with opened(server.url, address) as one, opened(server.url, address) as other:
        begun = await asyncio.gather(*(start(each, sums(200)) for each in (one, other) * 3))
        assert len({status.id for status in begun}) == 1
        assert sum(not status.found for status in begun) == 1
        ended = await at_rest(other, begun[0].id)
    assert ended.done == 200
    assert len(server.requests) == 400


@pytest.mark.slow
async def test_a_cancelled_run_stops_and_a_resumed_one_goes_on(
    start_server: StartServer, address: str
) -> None:
    gate = Gated(20)
    server = start_server(gate)
    async with opened(server.url, address) as service:
        async with halfway(service, gate, sums(300)) as status:
            cancelled = await service.cancel(status.id)
            assert cancelled.state in ("judging", "stopped")
            assert (
                cancelled.state == "stopped" or "stopping; calls in progress" in cancelled.notes[-1]
            )
        stopped = await at_rest(service, status.id)
        assert (stopped.state, stopped.stopped_by, stopped.error) == ("stopped", "cancel", None)
        assert 0 < stopped.done < 300
        assert adds_up(stopped)
        assert await service.cancel(status.id) == stopped
        await service.resume(status.id)
        ended = await at_rest(service, status.id)
        assert (ended.state, ended.done) == ("finished", 300)
        assert (await service.resume(status.id)).state == "finished"
    assert len(server.requests) == 600


@pytest.mark.slow
async def test_another_process_can_cancel_and_resume(
    start_server: StartServer, address: str
) -> None:
    gate = Gated(20)
    server = start_server(gate)
    elsewhere = opened(server.url, address, background=False)
    async with opened(server.url, address) as judging, elsewhere as other:
        async with halfway(judging, gate, sums(300)) as status:
            await other.cancel(status.id)
            await noticed(judging, int(status.id))
        stopped = await at_rest(other, status.id)
        assert (stopped.state, stopped.stopped_by) == ("stopped", "cancel")
        await other.resume(status.id)
        ended = await at_rest(other, status.id)
    assert (ended.state, ended.done) == ("finished", 300)
    assert len(server.requests) == 600


async def test_a_run_that_waits_is_cancelled_at_once(
    start_server: StartServer, file_store: str
) -> None:
    async with opened(start_server(adder).url, file_store, background=False) as service:
        begun = await start(service, sums(5))
        assert begun.state == "queued"
        cancelled = await service.cancel(begun.id)
        assert (cancelled.state, cancelled.stopped_by, cancelled.done) == ("stopped", "cancel", 0)


@pytest.mark.slow
async def test_ending_the_server_saves_what_is_in_flight_and_the_next_one_goes_on(
    start_server: StartServer, address: str
) -> None:
    gate = Gated(20)
    server = start_server(gate)
    async with opened(server.url, address) as service:
        begun = await start(service, sums(300))
        await until(service, begun.id, lambda status: status.done > 0)
        service.begin_shutdown()
        gate.open()
    asked = len(server.requests)
    async with opened(server.url, address, background=False) as looking:
        status = await looking.run(begun.id)
        assert (status.state, status.stopped_by) == ("queued", None)
        assert 0 < status.done < 300
        assert status.calls == asked
    async with opened(server.url, address) as service:
        ended = await at_rest(service, begun.id)
    assert (ended.state, ended.done) == ("finished", 300)
    # What was in flight had been stored: nothing is asked twice.
    assert len(server.requests) == 600


async def test_two_processes_share_the_jobs_and_judge_none_twice(
    start_server: StartServer, address: str
) -> None:
    server = start_server(adder)
    one = opened(server.url, address, background_runs=1)
    other = opened(server.url, address, background_runs=1)
    async with one as first, other as second:
        begun = [await start((first, second)[n % 2], sums(20, begin=1 + 100 * n)) for n in range(6)]
        ended = [await at_rest(first, status.id) for status in begun]
    assert [status.done for status in ended] == [20] * 6
    assert len(server.requests) == 6 * 40


@pytest.mark.slow
async def test_no_more_runs_are_begun_at_once_than_are_allowed(
    start_server: StartServer, file_store: str
) -> None:
    gate = Gated(4)
    server = start_server(gate)
    async with opened(server.url, file_store, background_runs=1) as service:
        async with halfway(service, gate, sums(50)) as first:
            second = await start(service, sums(5, begin=1000))
            await asyncio.sleep(0.3)
            assert (await service.run(first.id)).state == "judging"
            assert (await service.run(second.id)).state == "queued"
            page = await service.runs(state="queued")
            assert [status.id for status in page.runs] == [second.id]
        assert (await at_rest(service, second.id)).state == "finished"


async def test_a_full_queue_takes_no_more(start_server: StartServer, file_store: str) -> None:
    url = start_server(adder).url
    async with opened(url, file_store, background=False, queued_runs=2) as service:
        for n in range(2):
            await service.refuse_when_full()
            last = await start(service, sums(3, begin=1 + 10 * n))
        with pytest.raises(ServerBusy, match="2 runs are waiting or running") as refused:
            await start(service, sums(3, begin=500))
        assert refused.value.retry_after_s > 0
        with pytest.raises(ServerBusy):
            await service.refuse_when_full()
        # A run that was refused leaves nothing behind.
        assert len((await service.runs()).runs) == 2
        await service.cancel(last.id)
        await start(service, sums(3, begin=500))
        with pytest.raises(ServerBusy):
            await service.resume(last.id)


async def test_a_judge_that_fails_for_good_fails_the_run_and_resuming_tries_again(
    start_server: StartServer, address: str
) -> None:
    broken = threading.Event()
    broken.set()

    def judge(request: SeenRequest) -> Reply:
        return error_reply(401, "bad key sk-loopback") if broken.is_set() else adder(request)

    server = start_server(judge)
    async with opened(server.url, address) as service:
        begun = await start(service, sums(20))
        failed = await at_rest(service, begun.id)
        assert (failed.state, failed.stopped_by, failed.done) == ("failed", "judge", 0)
        assert failed.error is not None
        assert failed.error.kind == "judge_authentication"
        assert "sk-loopback" not in failed.error.message
        broken.clear()
        resumed = await service.resume(begun.id)
        assert resumed.error is None
        ended = await at_rest(service, begun.id)
    assert (ended.state, ended.done, ended.error) == ("finished", 20, None)


async def test_a_judge_that_does_not_answer_is_told_of_by_its_offered_name(
    start_server: StartServer, file_store: str
) -> None:
    limited = threading.Event()
    limited.set()
    refusal = error_reply(429, headers={"Retry-After": "2"})
    server = start_server(lambda request: refusal if limited.is_set() else adder(request))
    async with opened(server.url, file_store) as service:
        begun = await start(service, sums(3))
        status = await until(service, begun.id, lambda status: status.trouble is not None)
        shown = status.model_dump_json(context=FOR_CLIENTS)
        assert re.search(r'"rate-limited by adder, retrying in [0-2] s"', shown)
        assert "Now rate-limited by adder, retrying in" in status_line(status)
        limited.clear()
        ended = await at_rest(service, begun.id)
    assert (ended.done, ended.trouble) == (3, None)


@pytest.mark.parametrize(
    ("offered", "asked", "calls"),
    [(None, None, 0), (True, None, 2), (True, False, 0), (None, True, 2)],
)
async def test_identical_responses_are_asked_about_as_offered_or_as_the_client_says(
    start_server: StartServer,
    file_store: str,
    *,
    offered: bool | None,
    asked: bool | None,
    calls: int,
) -> None:
    server = start_server(lambda _: chat_reply(answer_json("TIE")))
    same = sums(1)[0] | {"response_a": "the same", "response_b": "the same"}
    chosen = offer(server.url, ask_identical=offered)
    async with opened(server.url, file_store, chosen) as service:
        begun = await start(service, [same], ask_identical=asked)
        ended = await at_rest(service, begun.id)
        assert (ended.ties, len(server.requests)) == (1, calls)
        pair = same | {"criteria": ["accuracy"]}
        options = {} if asked is None else {"ask_identical": asked}
        verdict = await service.comparisons.compare(pair, options=options)
    assert (verdict.winner, len(server.requests)) == ("TIE", 2 * calls)


async def test_sending_the_data_of_a_failed_run_again_resumes_it(
    start_server: StartServer, file_store: str
) -> None:
    broken = threading.Event()
    broken.set()
    server = start_server(
        lambda request: error_reply(401, "no") if broken.is_set() else adder(request)
    )
    async with opened(server.url, file_store) as service:
        begun = await start(service, sums(5))
        await at_rest(service, begun.id)
        broken.clear()
        again = await start(service, sums(5))
        assert (again.id, again.found) == (begun.id, True)
        assert again.state in ("queued", "judging")
        assert (await at_rest(service, begun.id)).state == "finished"


async def test_an_offer_that_is_gone_is_told_and_nothing_is_judged(
    start_server: StartServer, file_store: str
) -> None:
    server = start_server(adder)
    async with opened(server.url, file_store, background=False) as service:
        begun = await start(service, sums(5))
    other = offer(server.url, "another")
    async with opened(server.url, file_store, other) as service:
        failed = await at_rest(service, begun.id)
        assert (failed.state, failed.error and failed.error.kind) == ("failed", "conflict")
        assert failed.error is not None
        assert "judge adder" in failed.error.message
        assert "no longer offered" in failed.error.message
    assert server.requests == []
    async with opened(server.url, file_store) as service:
        await service.resume(begun.id)
        assert (await at_rest(service, begun.id)).state == "finished"


async def test_an_offer_that_has_become_another_judge_judges_nothing(
    start_server: StartServer, file_store: str
) -> None:
    server = start_server(adder)
    first = offer(server.url, temperature=0)
    async with opened(server.url, file_store, first, background=False) as service:
        begun = await start(service, sums(5))
    for changed, told in (
        (
            offer(server.url, locale="zh", temperature=0),
            "another prompt, or other judge settings",
        ),
        (offer(server.url, samples=3, temperature=0), "other decision settings"),
    ):
        async with opened(server.url, file_store, changed) as service:
            await service.resume(begun.id)
            failed = await at_rest(service, begun.id)
            assert failed.state == "failed"
            assert failed.error is not None
            assert told in failed.error.message
            assert "--" not in failed.error.message
    assert server.requests == []


async def test_a_cap_stops_the_run_and_a_restart_does_not_renew_it(
    start_server: StartServer, file_store: str
) -> None:
    server = start_server(adder)
    async with opened(server.url, file_store) as service:
        begun = await start(service, sums(50), max_calls=10)
        stopped = await at_rest(service, begun.id)
        assert (stopped.state, stopped.stopped_by, stopped.calls) == ("stopped", "max-calls", 10)
        assert stopped.error is None
        run = service.store.runs.at(int(begun.id))
        assert run is not None
        before_its_end = replace(run, state="judging", stopped_by=None)
        assert read_status(service.store, before_its_end).stopped_by == "max-calls"
        await service.resume(begun.id)
        stopped = await at_rest(service, begun.id)
        assert stopped.calls == 20
    assert len(server.requests) == 20


async def test_the_servers_own_cap_holds_however_often_a_run_is_resumed(
    start_server: StartServer, file_store: str
) -> None:
    server = start_server(adder)
    async with opened(server.url, file_store, run_max_calls=10) as service:
        begun = await start(service, sums(50), max_calls=1000)
        for _ in range(3):
            stopped = await at_rest(service, begun.id)
            assert (stopped.state, stopped.stopped_by) == ("stopped", "max-calls")
            await service.resume(begun.id)
        await at_rest(service, begun.id)
    assert len(server.requests) == 10


async def test_a_cap_on_cost_needs_a_price(start_server: StartServer, file_store: str) -> None:
    url = start_server(adder).url
    async with opened(url, file_store) as service:
        with speaking_to("http"), pytest.raises(InputError, match="maxCost cannot be enforced"):
            await start(service, sums(5), max_cost=1.0)
        assert (await service.runs()).runs == ()


async def test_a_run_of_the_command_line_is_shown_and_left_alone(
    start_server: StartServer, file_store: str, tmp_path: Path
) -> None:
    from evenhand.contract import read_criteria
    from evenhand.data.options import ReadOptions

    server = start_server(adder)
    files = write_lines(tmp_path / "mine.jsonl", sums(10))
    sources = PairFiles.of([files], ReadOptions(criteria=read_criteria(["accuracy"])))
    offers = JudgeCatalog(config(server.url, file_store), SETTINGS)
    with open_store(file_store) as store:
        plan = JudgePlan(offers.plan().judge, offers.plan().config)
        await judge_pairs(sources, [plan], RunOptions(max_calls=6), store=store)
    await offers.close()
    async with opened(server.url, file_store) as service:
        (shown,) = (await service.runs()).runs
        assert (shown.state, shown.stopped_by, shown.pairs) == ("stopped", "max-calls", 10)
        assert adds_up(shown)
        with pytest.raises(Conflict, match="started from the command line"):
            await service.resume(shown.id)
        # Its pairs sent here are the same run, which the server takes on.
        upload = Upload("mine.jsonl")
        upload.write(files.read_bytes())
        taken = await service.start_run(upload, StartRun(criteria=("accuracy",)))
        assert (taken.id, taken.found) == (shown.id, True)
        assert (await at_rest(service, taken.id)).done == 10
    assert len(server.requests) == 20


async def test_bad_rows_refuse_the_run_or_are_left_out(
    start_server: StartServer, address: str
) -> None:
    rows = [*sums(3), {"id": "odd", "prompt": "What is this?"}, *sums(3, begin=4)]
    async with opened(start_server(adder).url, address) as service:
        with speaking_to("http"), pytest.raises(DataError, match=r"row 4: .*badRows skip"):
            await start(service, rows)
        assert (await service.runs()).runs == ()
        begun = await start(service, rows, bad_rows="skip")
        assert (begun.pairs, begun.skipped_rows) == (6, 1)
        ended = await at_rest(service, begun.id)
        assert (ended.done, ended.skipped_rows) == (6, 1)
        report = await service.analyse(REPORT, (begun.id,), ReportOptions())
        assert [skipped.row for skipped in report.run.skipped] == [4]


async def send(service: Service, data: bytes, name: str = "pairs.jsonl") -> RunStatus:
    upload = Upload(name)
    upload.write(data)
    return await service.start_run(upload, StartRun(criteria=("accuracy",)))


def lines(rows: list[Any], end: str = "\n") -> bytes:
    return "".join(json.dumps(row) + end for row in rows).encode()


async def test_an_upload_without_pairs_is_refused(
    start_server: StartServer, file_store: str
) -> None:
    async with opened(start_server(adder).url, file_store) as service:
        for nothing in (b"", b"\n\n", b"[]", b"\xef\xbb\xbf"):
            with pytest.raises(DataError, match=r"pairs\.jsonl"):
                await send(service, nothing)
        assert (await service.runs()).runs == ()


async def test_any_format_of_the_command_line_can_be_uploaded(
    start_server: StartServer, file_store: str
) -> None:
    rows = sums(3)
    table = "\r\n".join(
        [",".join(rows[0]), *(",".join(f'"{cell}"' for cell in row.values()) for row in rows)]
    )
    async with opened(start_server(adder).url, file_store) as service:
        for data, name in (
            (lines(rows, "\r\n"), "windows.jsonl"),
            (json.dumps(rows).encode(), "list.json"),
            (table.encode(), "table.csv"),
            (gzip.compress(lines(rows)), "packed.jsonl.gz"),
            (b"\xef\xbb\xbf" + lines(rows), "marked.jsonl"),
        ):
            status = await send(service, data, name)
            ended = await at_rest(service, status.id)
            assert (ended.pairs, ended.done, ended.wins_b) == (3, 3, 1), name
            assert ended.name.startswith(name.partition(".")[0])


async def test_what_is_too_large_is_refused_and_leaves_nothing(
    start_server: StartServer, file_store: str
) -> None:
    limits: dict[str, Any] = {"run_pairs": 10, "field_chars": 1000, "upload_bytes": 2_000_000}
    async with opened(start_server(adder).url, file_store, **limits) as service:
        with pytest.raises(TooLarge, match="more than 10 rows"):
            await start(service, sums(11))
        long = sums(1)[0] | {"response_b": "x" * 1001}
        with pytest.raises(DataError, match="responseB has 1,001 characters; this server accepts"):
            await start(service, [long])
        many = sums(1, criteria=[f"criterion {n}" for n in range(51)])
        with pytest.raises(
            DataError, match="criteria has 51 entries; this server accepts at most 50"
        ):
            await start(service, many)
        with pytest.raises(TooLarge, match="unpacks to more than 2,000,000"):
            await send(service, gzip.compress(b" " * 3_000_000), "bomb.jsonl.gz")
        with pytest.raises(TooLarge, match="a line of more than"):
            await send(service, b'{"prompt": "' + b"x" * 1_500_000 + b'"}')
        with pytest.raises(DataError, match="is gzip inside gzip; compress it once"):
            await send(service, gzip.compress(gzip.compress(lines(sums(3)))), "bomb.jsonl.gz")
        with pytest.raises(DataError, match="truncated or damaged"):
            # Damage inside the packed data, which zlib finds and no checksum.
            await send(service, gzip.compress(b"")[:10] + b"\xff" * 50, "damaged.jsonl.gz")
        with pytest.raises(DataError, match="row 1: the key 'prompt' appears twice in one object"):
            await send(service, b'{"prompt":"p","prompt":"q","response_a":"","response_b":""}')
        with pytest.raises(DataError, match="truncated or damaged"):
            await send(service, gzip.compress(lines(sums(3)))[:-9], "cut.jsonl.gz")
        assert (await service.runs()).runs == ()
        assert (await start(service, sums(10))).pairs == 10


async def test_a_name_stands_for_one_run(start_server: StartServer, file_store: str) -> None:
    async with opened(start_server(adder).url, file_store) as service:
        first = await start(service, sums(3), name="mine")
        assert (await service.run("mine")).id == first.id
        assert (await start(service, sums(3), name="mine")).id == first.id
        with pytest.raises(Conflict, match="run 'mine' already"):
            await start(service, sums(4), name="mine")


@pytest.mark.parametrize("wanted", ["7", "9" * 400, "none", "²", ""])
async def test_an_unknown_run_is_not_found(
    start_server: StartServer, file_store: str, wanted: str
) -> None:
    async with opened(start_server(adder).url, file_store) as service:
        for asked in (service.run, service.cancel, service.resume):
            with pytest.raises(NotFound, match="no run"):
                await asked(wanted)
        with pytest.raises(NotFound, match="no run"):
            await service.analyse(REPORT, (wanted,), ReportOptions())
        with pytest.raises(NotFound):
            [status async for status in service.follow(wanted)]


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"judge": "nobody"}, "does not offer"),
        ({"judges": ("adder", "adder")}, "given twice"),
        ({"judge": "adder", "judges": ("adder",)}, "both given"),
        ({"alpha": 0.1}, "alpha requires untilDecided"),
        ({"budget": 5}, "budget requires rankAdaptive"),
        ({"rank_adaptive": True}, "rankAdaptive needs budget"),
        ({"seed": 1}, "seed requires"),
        ({"both_orders": 0.1}, "bothOrders requires orders random"),
        ({"orders": "random", "swap_positions": False}, "orders and swap_positions"),
        ({"name": " "}, "name is blank"),
        ({"criteria": ()}, "criteria"),
    ],
)
async def test_wishes_that_do_not_go_together_are_refused(
    start_server: StartServer, file_store: str, options: dict[str, Any], told: str
) -> None:
    async with opened(start_server(adder).url, file_store) as service:
        with pytest.raises(InputError, match=told):
            await start(service, sums(3), **options)
        assert (await service.runs()).runs == ()


@pytest.mark.slow
async def test_a_run_ends_by_itself_when_it_is_decided(
    start_server: StartServer, file_store: str
) -> None:
    server = start_server(adder)
    async with opened(server.url, file_store) as service:
        begun = await start(service, sums(400), until_decided=True)
        ended = await at_rest(service, begun.id)
    assert (ended.state, ended.stopped_by) == ("finished", "decided")
    assert 0 < ended.done < 400
    assert adds_up(ended)


async def test_an_intake_that_a_process_left_behind_is_deleted_at_the_next_start(
    start_server: StartServer, address: str
) -> None:
    from store_values import begin, item

    with open_store(address) as store:
        left = begin(store, item("x"), name="left")
        store.jobs.add(left.run_id, NewJob(("adder",), {}))
        kept = begin(store, item("y"), name="kept")
    async with opened(start_server(adder).url, address) as service:
        async with asyncio.timeout(10):
            with pytest.raises(NotFound):
                await gone(service, "left")
        assert [run.id for run in (await service.runs()).runs] == [str(kept.run_id)]


async def test_an_intake_that_is_under_way_elsewhere_is_left_alone(
    start_server: StartServer, address: str
) -> None:
    from store_values import begin, item

    with open_store(address) as store:
        coming = begin(store, item("x"), name="coming")
        store.jobs.add(coming.run_id, NewJob(("adder",), {}))
        with store.hold(coming.run_id):
            async with opened(start_server(adder).url, address) as service:
                await asyncio.sleep(0.5)
                (status,) = (await service.runs()).runs
                assert status.state == "reading"


async def test_runs_are_listed_newest_first_page_by_page(
    start_server: StartServer, file_store: str
) -> None:
    async with opened(start_server(adder).url, file_store, background=False) as service:
        begun = [(await start(service, sums(1, begin=n))).id for n in range(1, 6)]
        first = await service.runs(limit=2)
        assert [status.id for status in first.runs] == begun[:2:-1]
        second = await service.runs(after=first.next, limit=2)
        third = await service.runs(after=second.next, limit=2)
        assert [status.id for status in third.runs] == begun[:1]
        assert third.next is None
        with pytest.raises(InputError, match="after is 'x'"):
            await service.runs(after="x")


async def test_following_ends_when_the_server_does(
    start_server: StartServer, file_store: str
) -> None:
    async with opened(start_server(adder).url, file_store, background=False) as service:
        begun = await start(service, sums(1))
        told = []
        async with asyncio.timeout(10):
            async for status in service.follow(begun.id, every_s=5):
                told.append(status.state)
                service.begin_shutdown()
        assert told == ["queued"]


def test_the_names_of_uploads_lead_nowhere() -> None:
    for given, plain in (
        ("../../etc/passwd", "passwd"),
        ("C:\\secret\\pairs.csv", "pairs.csv"),
        ("\x1b[31mred\n.jsonl", "31mred-.jsonl"),
        ("...", "pairs"),
        ("", "pairs"),
        ("x" * 300 + ".csv", "x" * 96 + ".csv"),
    ):
        with Upload(given) as upload:
            assert upload.name == plain
