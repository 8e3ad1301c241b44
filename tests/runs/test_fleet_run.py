"""A run over several servers: one dies and comes back, another slows down, and all is judged."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from evenhand import JudgeConfig, RunOptions, open_judge, run
from evenhand.judges.protocol import news_of
from evenhand.judges.retry import RetryPolicy
from evenhand.runs import Progress
from live_server import wait_until
from run_data import adds_up, sums, wins_b
from servers import JudgeServer, Scripted, SeenRequest, Slow, forget_proxies

QUICK_S, SLOW_S = 0.01, 0.1
WITHIN_S = 120


class Machine:
    """A server that can be slowed down, killed, and started again where it was."""

    def __init__(self) -> None:
        self.wait_s = QUICK_S
        self._server = JudgeServer(self._answer)
        self._server.__enter__()
        self.url = self._server.url
        self._port = self._server.port

    def _answer(self, request: SeenRequest) -> Scripted:
        return Slow(self.wait_s, adds_up(request))

    @property
    def asked(self) -> int:
        """Since it was last started."""
        return sum(request.method == "POST" for request in self._server.requests)

    def kill(self) -> None:
        self._server.stop()

    def start(self) -> None:
        self._server = JudgeServer(self._answer, port=self._port)
        self._server.__enter__()


@pytest.fixture
def machines(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Machine]]:
    forget_proxies(monkeypatch)
    started = [Machine() for _ in range(3)]
    yield started
    for machine in started:
        machine.kill()


class Script:
    """Does something once as a run comes along, off its event loop."""

    def __init__(self, at: int, then: Callable[[], None]) -> None:
        self._at = at
        self._thread = threading.Thread(target=then)

    def __call__(self, progress: Progress) -> None:
        if progress.done >= self._at and self._thread.ident is None:
            self._thread.start()

    def join(self) -> None:
        assert self._thread.ident is not None, "the run never came so far"
        self._thread.join(WITHIN_S)


@pytest.mark.slow
async def test_one_server_dies_and_returns_another_slows_tenfold_and_every_pair_is_judged(
    machines: list[Machine], tmp_path: Path
) -> None:
    count = 600
    well, dying, slowing = machines
    judge = open_judge("openai:m", JudgeConfig(base_url=tuple(each.url for each in machines)))
    news = news_of(judge)
    first_life = 0

    def trouble() -> None:
        nonlocal first_life
        # Until the dead one is back the others take their time, so that there is a run to join.
        well.wait_s, slowing.wait_s = SLOW_S, 10 * SLOW_S
        dying.kill()
        first_life = dying.asked
        assert wait_until(lambda: bool(news()), within_s=WITHIN_S)
        dying.start()
        assert wait_until(lambda: dying.asked >= 3, within_s=WITHIN_S)
        well.wait_s = QUICK_S

    script = Script(count // 10, trouble)
    try:
        summary = await asyncio.wait_for(
            run(
                sums(count),
                judge,
                JudgeConfig(retry=RetryPolicy(attempts=1)),
                criteria=["accuracy"],
                options=RunOptions(store=tmp_path / "s.db", concurrency=12),
                on_progress=script,
            ),
            WITHIN_S,
        )
    finally:
        await judge.close()
    script.join()
    assert (summary.pending, summary.invalid, summary.inconsistent) == (0, 0, 0)
    assert (summary.wins_a, summary.wins_b) == (count - wins_b(count), wins_b(count))
    assert first_life > 0
    assert dying.asked >= 3
    assert slowing.asked < well.asked, "the slow one had the smaller part"
    # Each pass once; beyond that, what was in flight when the server died.
    assert 2 * count <= summary.calls <= 2 * count + 2 * 12
    told = [note for note in summary.notes if dying.url in note]
    assert told[0].startswith(f"openai:m: {dying.url} is skipped for now: ")
    assert f"openai:m: {dying.url} answers again" in told


async def test_a_server_that_stays_dead_gets_no_calls_and_the_summary_says_so(
    machines: list[Machine], tmp_path: Path
) -> None:
    *well, dead = machines
    dead.kill()
    judge = open_judge("openai:m", JudgeConfig(base_url=tuple(each.url for each in machines)))
    try:
        summary = await run(
            sums(60),
            judge,
            criteria=["accuracy"],
            options=RunOptions(store=tmp_path / "s.db"),
        )
    finally:
        await judge.close()
    assert (summary.pending, summary.invalid) == (0, 0)
    assert sum(each.asked for each in well) == 120
    [told] = summary.notes
    assert told.startswith(f"openai:m: {dead.url} is skipped for now: cannot connect")


async def test_a_run_begun_by_one_server_goes_on_by_a_fleet_and_shares_its_passes(
    machines: list[Machine], tmp_path: Path
) -> None:
    options = RunOptions(store=tmp_path / "s.db", max_calls=40)
    first, second, _ = machines
    for addresses, calls in (((first.url,), 40), ((first.url, second.url), 40)):
        judge = open_judge("openai:m", JudgeConfig(base_url=addresses))
        try:
            summary = await run(sums(40), judge, criteria=["accuracy"], options=options)
        finally:
            await judge.close()
        assert summary.calls == calls
    assert summary.pending == 0
    assert first.asked + second.asked == 80
    assert second.asked > 0
