"""A run by several workers that share a PostgreSQL store: all of it but Ray itself."""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from dataclasses import replace
from typing import Any
from urllib.parse import quote

import psycopg
import pytest

import evenhand
from evenhand import Price, RunOptions, RunSummary
from evenhand.contract import read_criteria
from evenhand.data.options import ReadOptions
from evenhand.errors import ClusterError, JudgeAuthentication, JudgeUnreadable
from evenhand.judges.retry import RetryPolicy
from evenhand.judging.config import JudgeConfig
from evenhand.runs import JudgePlan, Progress, Stop, given_pairs, judge_pairs
from evenhand.runs.ray import pool, worker
from evenhand.settings import load_settings
from evenhand.store import open_store
from postgres_server import PASSWORD, PostgresServer
from ray_workers import Crowd
from run_data import adds_up, answer_to, artefact_in, pairings, right_place, sums, wins_b
from scripted import answer_json
from servers import JudgeServer, Reply, SeenRequest, Slow, StartServer, chat_reply, error_reply

QUICK = JudgeConfig(retry=RetryPolicy(attempts=3, base_s=0.001, cap_s=0.01))


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-planted-in-the-environment")


async def judged(
    server: JudgeServer,
    pairs: list[dict[str, Any]],
    store: str,
    monkeypatch: pytest.MonkeyPatch,
    **options: Any,
) -> RunSummary:
    monkeypatch.setenv("OPENAI_BASE_URL", server.url)
    chosen: dict[str, Any] = {"executor": "ray", "ray_workers": 3} | options
    on_progress = chosen.pop("on_progress", None)
    judge, config = chosen.pop("judge", "openai:m"), chosen.pop("config", QUICK)
    return await evenhand.run(
        pairs,
        judge,
        config,
        criteria=["accuracy"],
        options=RunOptions(store=store, **chosen),
        on_progress=on_progress,
    )


def slowly(request: SeenRequest) -> Slow:
    return Slow(0.005, adds_up(request))


def count_passes(store: str) -> int:
    with psycopg.connect(store) as connection:
        ((count,),) = connection.execute("SELECT count(*) FROM passes").fetchall()
        return int(count)


async def test_workers_stop_at_a_judge_that_cannot_be_read(
    crowd: Crowd, start_server: StartServer, fresh_database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = start_server(lambda request: chat_reply("Well, well."))
    with pytest.raises(JudgeUnreadable, match="could not be read"):
        await judged(server, sums(300), fresh_database, monkeypatch, concurrency=6)
    # 3 workers with 2 calls in flight and 4 pairs open: 20 passes each, and 8 more, twice asked.
    assert len(server.requests) <= 3 * 2 * (20 + 8)
    keeping = {"keep_going_unread": True}
    summary = await judged(server, sums(30), fresh_database, monkeypatch, **keeping)
    assert (summary.invalid, summary.pending, summary.stopped_by) == (30, 0, None)


async def test_several_workers_judge_every_pair_once(
    crowd: Crowd, start_server: StartServer, fresh_database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = start_server(slowly)
    told: list[Progress] = []
    summary = await judged(
        server,
        sums(200),
        fresh_database,
        monkeypatch,
        concurrency=8,
        on_progress=told.append,
    )
    assert crowd.begun == 3
    assert (summary.pairs, summary.wins_b, summary.wins_a) == (200, wins_b(200), 200 - wins_b(200))
    assert (summary.pending, summary.invalid, summary.stopped_by) == (0, 0, None)
    assert summary.calls == len(server.requests) == count_passes(fresh_database) == 400
    last = told[-1]
    assert (last.done, last.total, last.calls, last.passes) == (200, 200, 400, 400)
    assert (last.wins_a, last.wins_b) == (summary.wins_a, summary.wins_b)
    # As many in flight in all as were asked for, whoever has them.
    assert max(each.in_flight for each in told) <= 8
    assert max(each.limit for each in told) == 8
    again = await judged(server, sums(200), fresh_database, monkeypatch)
    assert (again.calls, crowd.begun) == (0, 3)


async def test_a_cap_on_calls_is_the_clusters_and_the_last_call_is_used(
    crowd: Crowd, start_server: StartServer, fresh_database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = start_server(slowly)
    for most in (1, 37, 150):
        before = len(server.requests)
        summary = await judged(server, sums(120), fresh_database, monkeypatch, max_calls=most)
        assert summary.stopped_by == "max-calls"
        assert summary.calls == len(server.requests) - before == most
        assert summary.error is None
    rest = await judged(server, sums(120), fresh_database, monkeypatch)
    assert rest.pending == 0
    assert len(server.requests) == 240


async def test_a_cap_on_cost_is_the_clusters(
    crowd: Crowd, start_server: StartServer, fresh_database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A hundred tokens in, ten out, at a dollar a token: 110 dollars a call."""

    def priced(request: SeenRequest) -> Reply:
        winner = right_place(request.prompt)
        said = answer_json(winner, criteria=[("accuracy", winner)])
        return chat_reply(said, usage={"prompt_tokens": 100, "completion_tokens": 10})

    server = start_server(priced)
    summary = await judged(
        server,
        sums(200),
        fresh_database,
        monkeypatch,
        max_cost=110.0 * 90 + 50,
        price=Price(1e6, 1e6),
    )
    assert summary.stopped_by == "max-cost"
    assert len(server.requests) == summary.calls
    assert summary.cost_usd == pytest.approx(110.0 * summary.calls)
    assert summary.calls == 90


async def test_a_judge_that_tells_no_tokens_cannot_be_held_to_a_cost(
    crowd: Crowd, start_server: StartServer, fresh_database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def uncounted(request: SeenRequest) -> Reply:
        winner = right_place(request.prompt)
        return chat_reply(answer_json(winner, criteria=[("accuracy", winner)]), usage={})

    summary = await judged(
        start_server(uncounted),
        sums(100),
        fresh_database,
        monkeypatch,
        max_cost=1.0,
        price=Price(1, 1),
    )
    assert summary.stopped_by == "max-cost"
    assert any("use max_calls instead" in note for note in summary.notes)


async def test_lost_workers_cost_only_what_they_had_in_flight(
    crowd: Crowd, start_server: StartServer, fresh_database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = start_server(slowly)
    crowd.dies_at = lambda worker, exchange: worker in (1, 2, 4) and exchange == 3
    summary = await judged(server, sums(300), fresh_database, monkeypatch, concurrency=9)
    assert crowd.begun == 6
    assert (summary.pending, summary.wins_b) == (0, wins_b(300))
    assert count_passes(fresh_database) == 600
    assert len(server.requests) <= 600 + 3 * 3  # three in flight at each of three
    assert "3 workers were lost; their calls in flight were asked again" in summary.notes


async def test_a_cap_holds_when_workers_are_lost(
    crowd: Crowd, start_server: StartServer, fresh_database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = start_server(slowly)
    crowd.dies_at = lambda worker, exchange: worker in (1, 3) and exchange == 4
    summary = await judged(
        server, sums(300), fresh_database, monkeypatch, concurrency=9, max_calls=200
    )
    assert summary.stopped_by == "max-calls"
    (note,) = [note for note in summary.notes if "lost" in note]
    told = re.search(r"up to ([\d,]+) of these calls count as made", note)
    lost = int(told[1].replace(",", "")) if told else 0
    assert 200 - lost <= len(server.requests) <= 200


async def test_workers_that_do_not_live_end_the_run_with_a_reason(
    crowd: Crowd, start_server: StartServer, fresh_database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = start_server(adds_up)
    crowd.dies_at = lambda worker, exchange: exchange == 0
    with pytest.raises(ClusterError, match=r"9 workers in a row.*it died young"):
        await judged(server, sums(20), fresh_database, monkeypatch)
    crowd.dies_at = lambda worker, exchange: False
    summary = await judged(server, sums(20), fresh_database, monkeypatch)
    assert summary.pending == 0


async def test_nodes_that_are_lost_end_the_run_with_an_error_that_can_be_retried(
    crowd: Crowd, start_server: StartServer, fresh_database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Workers die in the middle, and none that would take over finds a place to run at."""
    monkeypatch.setattr(pool, "_REPLACED_WITHIN_S", 0.1)
    server = start_server(slowly)
    crowd.dies_at = lambda worker, exchange: exchange == 3
    crowd.finds_no_place = lambda worker: worker > 3
    with pytest.raises(ClusterError, match=r"lost every worker, and no node") as lost:
        await judged(server, sums(300), fresh_database, monkeypatch, concurrency=9)
    assert lost.value.retryable
    crowd.dies_at = lambda worker, exchange: False
    crowd.finds_no_place = lambda worker: False
    summary = await judged(server, sums(300), fresh_database, monkeypatch)
    assert (summary.pending, summary.wins_b) == (0, wins_b(300))


async def test_a_place_that_is_not_filled_again_holds_up_nobody(
    crowd: Crowd, start_server: StartServer, fresh_database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pool, "_REPLACED_WITHIN_S", 0.5)  # the others have begun by then
    server = start_server(slowly)
    crowd.dies_at = lambda worker, exchange: worker == 1 and exchange == 3
    crowd.finds_no_place = lambda worker: worker > 3
    summary = await judged(server, sums(300), fresh_database, monkeypatch, concurrency=9)
    assert (summary.pending, summary.wins_b) == (0, wins_b(300))


async def test_pairs_with_the_same_content_are_asked_once(
    crowd: Crowd, start_server: StartServer, fresh_database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = start_server(slowly)
    rows = [{**row, "id": f"{row['id']}-{copy}"} for copy in range(4) for row in sums(60)]
    summary = await judged(server, rows, fresh_database, monkeypatch)
    assert (summary.pairs, summary.pending, summary.wins_b) == (240, 0, 4 * wins_b(60))
    assert summary.calls == len(server.requests) == 120
    assert summary.reused_passes == 3 * 120


async def test_several_judges_judge_every_pair(
    crowd: Crowd, start_server: StartServer, fresh_database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = start_server(adds_up)
    summary = await judged(
        server,
        sums(40),
        fresh_database,
        monkeypatch,
        judge=["openai:m", "baseline:longer", "openai:other"],
        rpm=60_000.0,
        tpm=60_000_000.0,
    )
    assert [each.judge for each in summary.judges] == [
        "openai:m",
        "baseline:longer",
        "openai:other",
    ]
    assert [each.pending for each in summary.judges] == [0, 0, 0]
    assert [each.wins_b for each in summary.judges][::2] == [wins_b(40)] * 2
    models = Counter(request.json["model"] for request in server.requests)
    assert models == {"m": 80, "other": 80}


async def test_mirrored_pairs_get_mirrored_verdicts(
    crowd: Crowd, start_server: StartServer, fresh_database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def by_place_or_sum(request: SeenRequest) -> Reply:
        """Every fourth sum by its place, so that those are inconsistent; the others rightly."""
        winner = right_place(request.prompt)
        if "plus 4?" in request.prompt or "plus 8?" in request.prompt:
            winner = "A"
        return chat_reply(answer_json(winner, confidence=0.8, criteria=[("accuracy", winner)]))

    server = start_server(by_place_or_sum)
    rows = sums(30)
    mirrored = [
        {**row, "response_a": row["response_b"], "response_b": row["response_a"]} for row in rows
    ]
    await judged(server, rows, fresh_database, monkeypatch, name="rows")
    await judged(server, mirrored, fresh_database, monkeypatch, name="mirrored")
    swapped = {"A": "B", "B": "A", "TIE": "TIE", None: None}
    with open_store(fresh_database) as store:
        outcomes = {}
        for name in ("rows", "mirrored"):
            run = store.runs.find(name)
            assert run is not None
            outcomes[name] = {
                row.item.key: (row.outcome, row.winner) for row in store.verdicts.each(run.id)
            }
    assert len(outcomes["rows"]) == 30
    assert {o for o, _ in outcomes["rows"].values()} == {"win", "inconsistent"}
    for key, (outcome, winner) in outcomes["rows"].items():
        assert outcomes["mirrored"][key] == (outcome, swapped[winner])


async def test_an_interrupted_run_saves_what_is_in_flight_and_goes_on(
    crowd: Crowd, start_server: StartServer, fresh_database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    stop = Stop()

    def stopping(request: SeenRequest) -> Slow:
        if request.count == 40:
            loop.call_soon_threadsafe(stop.ask, "interrupt")
        return slowly(request)

    loop = asyncio.get_running_loop()
    server = start_server(stopping)
    monkeypatch.setenv("OPENAI_BASE_URL", server.url)
    options = RunOptions(store=fresh_database, executor="ray", ray_workers=3, concurrency=6)
    config = JudgeConfig.resolve(load_settings(), replace(QUICK, judge="openai:m"))
    judge = config.open_judge()
    plan = JudgePlan(judge, config)
    sources = given_pairs(sums(200), ReadOptions(criteria=read_criteria(["accuracy"])))
    with open_store(fresh_database) as store:
        summary = await judge_pairs(sources, [plan], options, store=store, stop=stop)
    sources.close()
    await judge.close()
    assert summary.stopped_by == "interrupt"
    assert 0 < summary.pending < 200
    assert summary.calls == len(server.requests) == count_passes(fresh_database)
    rest = await judged(server, sums(200), fresh_database, monkeypatch)
    assert rest.pending == 0
    assert len(server.requests) == count_passes(fresh_database) == 400


async def test_a_judge_that_refuses_the_key_ends_the_run_as_on_one_machine(
    crowd: Crowd, start_server: StartServer, fresh_database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = start_server(lambda request: error_reply(401, "no such key"))
    with pytest.raises(JudgeAuthentication, match="said a worker"):
        await judged(server, sums(50), fresh_database, monkeypatch)
    assert len(server.requests) <= 3  # one a worker


async def test_a_worker_with_another_judge_does_not_begin(
    crowd: Crowd, start_server: StartServer, fresh_database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = start_server(adds_up)
    monkeypatch.setattr(
        worker,
        "open_with_own_key",
        lambda config: replace(config, judge="openai:another").open_judge(),
    )
    with pytest.raises(ClusterError, match="would be asked differently here"):
        await judged(server, sums(50), fresh_database, monkeypatch)
    assert server.requests == []


async def test_no_key_and_no_password_is_among_what_goes_to_a_worker(
    crowd: Crowd,
    start_server: StartServer,
    fresh_database: str,
    postgres: PostgresServer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    server = start_server(adds_up)
    database = fresh_database.partition("@/")[2].partition("?")[0]
    address = postgres.loopback_url(database, quote(PASSWORD, safe=""))
    monkeypatch.setenv("EVENHAND_STORE", address)  # where workers take the password from
    summary = await judged(server, sums(20), address, monkeypatch)
    assert summary.pending == 0
    sent = b"".join(crowd.sent)
    assert b"openai:m" in sent
    for secret in (b"sk-planted", PASSWORD.encode(), quote(PASSWORD, safe="").encode()):
        assert secret not in sent


PREPARED = replace(QUICK, prepare=("metrics", "reference", "analysis"))


def kinds_of(server: JudgeServer) -> Counter[str | None]:
    return Counter(artefact_in(request.prompt) for request in server.requests)


def slowly_written(request: SeenRequest) -> Slow:
    return Slow(0.005, chat_reply(answer_to(request.prompt)))


async def test_what_is_prepared_is_written_once_for_all_workers(
    crowd: Crowd, start_server: StartServer, fresh_database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Six prompts and five models: 60 pairs in 120 passes, 6 + 6 + 30 texts. Shards of 16 pairs cut
    the ten pairs of a prompt in two."""
    told = list[Progress]()

    def until_told(request: SeenRequest) -> Slow:
        """Progress is told four times a second: an analysis takes longer until calls were told."""
        held = artefact_in(request.prompt) == "analysis" and not any(each.calls for each in told)
        return Slow(0.3 if held else 0.005, chat_reply(answer_to(request.prompt)))

    server = start_server(until_told)
    two = {"config": PREPARED, "ray_workers": 2, "concurrency": 6}
    summary = await judged(
        server, pairings(6, 5), fresh_database, monkeypatch, on_progress=told.append, **two
    )
    assert crowd.begun == 2
    assert len({request.prompt for request in server.requests}) == len(server.requests)
    assert kinds_of(server) == {"metrics": 6, "reference": 6, "analysis": 30, None: 120}
    assert (summary.wins_a, summary.pending) == (60, 0)
    assert summary.calls == summary.total.calls == 162
    # Its calls are shown while it is prepared, before any pair is judged.
    assert any(each.calls and not each.passes for each in told)
    assert max(each.in_flight for each in told) <= 6
    with open_store(fresh_database) as store:
        (run,) = store.runs.all()
        assert store.answers.spent(run.id, artefacts=True).requests == 42


async def test_a_cap_ends_the_preparing_and_is_the_workers_too(
    crowd: Crowd, start_server: StartServer, fresh_database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    server, spent = start_server(slowly_written), 0
    for most in (20, 60):  # in the middle of the 42 texts, and then after them
        capped = await judged(
            server, pairings(6, 5), fresh_database, monkeypatch, config=PREPARED, max_calls=most
        )
        spent += most
        assert (capped.stopped_by, capped.calls) == ("max-calls", most)
        assert capped.total.calls == len(server.requests) == spent
    rest = await judged(server, pairings(6, 5), fresh_database, monkeypatch, config=PREPARED)
    assert (rest.pending, rest.total.calls) == (0, 162)
    assert len({request.prompt for request in server.requests}) == len(server.requests)


async def test_another_writer_reaches_the_workers_without_its_key(
    crowd: Crowd, start_server: StartServer, fresh_database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = start_server(slowly_written)
    config = replace(PREPARED, prepare_with="openai:other")
    summary = await judged(
        server, pairings(4, 4), fresh_database, monkeypatch, config=config, ray_workers=2
    )
    assert (summary.wins_a, summary.pending) == (24, 0)
    asked = Counter((r.json["model"], artefact_in(r.prompt) is None) for r in server.requests)
    assert asked == {("other", False): 24, ("m", True): 48}
    assert kinds_of(server) == {"metrics": 4, "reference": 4, "analysis": 16, None: 48}
    sent = b"".join(crowd.sent)
    assert b"openai:other" in sent
    assert b"sk-planted" not in sent
