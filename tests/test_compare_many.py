"""Many pairs without a store: a stream of verdicts and failures, in the order of the pairs."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

import evenhand
from evenhand import Failure, JudgeCall, Traits, Verdict
from evenhand.background import in_background
from evenhand.errors import InputError, JudgeError
from run_data import adds_up, sums, write_lines
from scripted import ScriptedJudge, answer_json
from servers import Slow, StartServer, chat_reply

pytestmark = pytest.mark.usefixtures("unconfigured")


def winners(results: list[Verdict | Failure]) -> list[str]:
    return [each.winner if isinstance(each, Verdict) else each.error.kind for each in results]


async def gathered(**given: Any) -> list[Verdict | Failure]:
    return [each async for each in evenhand.compare_many(**given)]


async def test_verdicts_come_in_the_order_of_the_pairs_and_the_judge_is_closed(
    start_server: StartServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = start_server(
        lambda request: Slow(0.05, adds_up(request)) if request.count < 4 else adds_up(request)
    )
    monkeypatch.setenv("OPENAI_BASE_URL", server.url)
    results = await gathered(pairs=sums(9), judge="openai:m", criteria=["accuracy"])
    # Every third is B's, the others are A's: as run_data.sums makes them.
    assert winners(results) == ["A", "A", "B"] * 3
    assert [each.metadata.id for each in results] == [f"sum-{n}" for n in range(1, 10)]
    assert server.wait_until_idle()


async def test_what_goes_wrong_with_one_pair_is_a_failure_in_its_place() -> None:
    def answer(call: JudgeCall) -> str:
        if call.pair.prompt == "fails":
            raise JudgeError("it is down")
        return "no verdict" if call.pair.prompt == "unread" else answer_json("TIE")

    pairs: list[Any] = [
        {"prompt": each, "responseA": "x", "responseB": "y", "criteria": ["c"], "more": 1}
        for each in ("fine", "fails", "unread")
    ]
    whole = {name: value for name, value in pairs[0].items() if name != "more"}
    pairs += [{"prompt": "no responses"}, "no pair", evenhand.read_pair(whole)]
    results = await gathered(pairs=pairs, judge=ScriptedJudge(answer))
    assert winners(results) == ["TIE", "judge", "invalid", "data", "data", "TIE"]
    missing = results[3]
    assert isinstance(missing, Failure)
    assert missing.error.message.startswith("pairs, row 4: ")
    assert [each.metadata.id for each in results[:2]] == ["#1", "#2"]


class Gauge:
    """How many pairs are being judged, and the most that there were."""

    def __init__(self) -> None:
        self.now = self.most = 0
        self.open = asyncio.Event()

    async def judge(self, prompt: str) -> str:
        self.now += 1
        self.most = max(self.most, self.now)
        try:
            await self.open.wait()
        finally:
            self.now -= 1
        return answer_json("TIE")


async def test_no_more_than_asked_for_are_judged_at_once_and_few_are_read_ahead() -> None:
    gauge, read = Gauge(), []

    def endless() -> Iterator[Mapping[str, Any]]:
        for row in sums(1000, criteria=["c"], swap_positions=False):
            read.append(row)
            yield row

    stream = evenhand.compare_many(endless(), evenhand.judge(gauge.judge), concurrency=3)
    first = asyncio.ensure_future(anext(stream))
    await asyncio.sleep(0.05)
    assert (gauge.now, len(read)) == (3, 12)
    gauge.open.set()
    await first
    for _ in range(20):
        await anext(stream)
    assert gauge.most == 3
    await stream.aclose()


async def test_leaving_or_cancelling_ends_what_is_being_judged() -> None:
    gauge = Gauge()
    stream = evenhand.compare_many(sums(50, criteria=["c"]), evenhand.judge(gauge.judge))
    waiting = asyncio.ensure_future(anext(stream))
    await asyncio.sleep(0.05)
    assert gauge.now == 16  # eight pairs in both orders
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert gauge.now == 0
    with pytest.raises(StopAsyncIteration):
        await anext(stream)


async def test_breaking_out_of_the_loop_closes_the_judge(
    start_server: StartServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = start_server(
        lambda request: adds_up(request) if request.count < 3 else Slow(60, chat_reply("late"))
    )
    monkeypatch.setenv("OPENAI_BASE_URL", server.url)
    async for verdict in evenhand.compare_many(sums(9), "openai:m", criteria=["accuracy"]):
        assert isinstance(verdict, Verdict)
        break
    assert await asyncio.to_thread(server.wait_until_idle)


async def test_a_judge_that_takes_one_at_a_time_gets_one_at_a_time() -> None:
    busy: list[JudgeCall] = []

    class OneAtATime(ScriptedJudge):
        async def ask(self, call: JudgeCall) -> evenhand.Completion:
            assert not busy
            busy.append(call)
            await asyncio.sleep(0.001)
            busy.clear()
            return await super().ask(call)

    judge = OneAtATime(lambda call: answer_json("TIE"), Traits(parallel=False))
    results = await gathered(pairs=sums(5, criteria=["c"]), judge=judge)
    assert winners(results) == ["TIE"] * 5


def test_sync_face_gives_the_same_and_closes_when_it_is_left(
    start_server: StartServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    server = start_server(adds_up)
    monkeypatch.setenv("OPENAI_BASE_URL", server.url)
    path = write_lines(tmp_path / "pairs.jsonl", sums(6))
    results = evenhand.compare_many_sync(path, "openai:m", criteria=["accuracy"])
    assert winners(list(results)) == ["A", "A", "B"] * 2
    for result in evenhand.compare_many_sync(sums(99), "openai:m", criteria=["accuracy"]):
        assert isinstance(result, Verdict)
        break
    del result
    assert server.wait_until_idle()


def test_sync_face_is_left_while_the_judge_is_slow(
    start_server: StartServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = start_server(
        lambda request: adds_up(request) if request.count < 3 else Slow(60, chat_reply("late"))
    )
    monkeypatch.setenv("OPENAI_BASE_URL", server.url)
    stream = evenhand.compare_many_sync(sums(4), "openai:m", criteria=["accuracy"], concurrency=1)
    assert winners([next(stream)]) == ["A"]
    stream.close()  # type: ignore[attr-defined]  # an iterator that is a generator
    assert server.wait_until_idle()


def test_a_program_may_end_while_the_iteration_is_open(tmp_path: Path) -> None:
    code = (
        "import evenhand\n"
        "pair = dict(prompt='p', responseA='a', responseB='bb', criteria=['c'])\n"
        "verdicts = evenhand.compare_many_sync([pair] * 99, 'baseline:longer')\n"
        "print(next(verdicts).winner)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert (done.stdout, done.stderr) == ("B\n", "")


def test_what_holds_for_all_pairs_is_raised() -> None:
    with pytest.raises(InputError, match="EVENHAND_JUDGE"):
        list(evenhand.compare_many_sync([]))
    with pytest.raises(InputError, match="mode is 'haiku'"):
        evenhand.compare_many([], config=evenhand.JudgeConfig(mode="haiku"))  # type: ignore[arg-type]
    with pytest.raises(InputError, match="concurrency"):
        evenhand.compare_many([], "baseline:longer", concurrency=0)
    with pytest.raises(InputError, match="pairs is a dict; give a file, a DataFrame"):
        list(evenhand.compare_many_sync(dict(sums(1)[0]), "baseline:longer"))  # type: ignore[arg-type]


def test_nothing_is_opened_where_nothing_is_given() -> None:
    assert list(evenhand.compare_many_sync([], "baseline:longer")) == []
    assert in_background(gathered(pairs=[], judge="baseline:longer")) == []
