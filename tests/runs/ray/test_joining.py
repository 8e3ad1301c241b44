"""Where Ray should be and is not, or takes its time: told within bounds, and left when asked to."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import evenhand
from evenhand import RunOptions
from evenhand.contract import read_criteria
from evenhand.data.options import ReadOptions
from evenhand.errors import ClusterError
from evenhand.judging.config import JudgeConfig
from evenhand.runs import JudgePlan, Stop, given_pairs, judge_pairs
from evenhand.runs.progress import Observer
from evenhand.runs.ray import cluster
from evenhand.runs.ray.cluster import refuse_unless_ray
from evenhand.store import open_store
from run_data import sums

# RFC 9113, 6.5: a frame of six bytes' settings, on stream 0.
SETTINGS = bytes((0, 0, 6, 4, 0, 0, 0, 0, 0)) + bytes((0, 4, 0, 0, 255, 255))
NOBODY = "http://127.0.0.1:9/v1"
HTTP = b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n"


@contextlib.contextmanager
def listening(says: bytes | None, *, hangs_up: bool = True) -> Iterator[str]:
    """An address where somebody says that to whoever connects, once; None: nothing at all."""
    over = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer() -> None:
            with contextlib.suppress(OSError):
                connection, _ = server.accept()
                with connection:
                    if says is not None:
                        connection.recv(64)  # else the end of it would be a reset
                        connection.sendall(says)
                    if says is None or not hangs_up:
                        over.wait()

        thread = threading.Thread(target=answer, daemon=True)
        thread.start()
        try:
            yield f"127.0.0.1:{server.getsockname()[1]}"
        finally:
            over.set()
            with contextlib.suppress(OSError):
                server.shutdown(socket.SHUT_RDWR)
            thread.join()


def closed_port() -> str:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return f"127.0.0.1:{server.getsockname()[1]}"


def test_where_nothing_listens_the_address_is_told_with_what_to_do() -> None:
    address = closed_port()
    with pytest.raises(ClusterError) as refusal:
        refuse_unless_ray(address)
    assert refusal.value.message == (
        f"cannot join the Ray cluster at {address}: Connection refused; give the address that "
        "ray start --head printed, or leave out ray_address"
    )


def test_who_takes_the_call_and_says_nothing_is_not_waited_for() -> None:
    with (
        listening(None) as address,
        pytest.raises(ClusterError, match=r": no answer within 0.2 s; give the address"),
    ):
        refuse_unless_ray(address, within_s=0.2)


@pytest.mark.parametrize("hangs_up", [True, False])
def test_a_web_server_is_not_ray(hangs_up: bool) -> None:
    with (
        listening(HTTP, hangs_up=hangs_up) as address,
        pytest.raises(ClusterError, match="the service there is not Ray; give the address"),
    ):
        refuse_unless_ray(address)


def test_who_speaks_as_ray_does_may_be_it() -> None:
    with listening(SETTINGS) as address:
        refuse_unless_ray(address)


@given(said=st.binary(max_size=12).filter(lambda said: len(said) < 9 or said[3] != 4))
def test_nothing_but_a_frame_of_settings_is_taken_for_ray(said: bytes) -> None:
    with (
        listening(said) as address,
        pytest.raises(ClusterError, match=r"^cannot join the Ray cluster at "),
    ):
        refuse_unless_ray(address, within_s=5)


async def test_a_run_ends_with_the_reason_and_goes_on_later(
    fresh_database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", NOBODY)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-none")
    with listening(HTTP) as address, pytest.raises(ClusterError, match="is not Ray"):
        await evenhand.run(
            sums(3),
            "openai:m",
            criteria=["accuracy"],
            options=RunOptions(store=fresh_database, executor="ray", ray_address=address),
        )
    with open_store(fresh_database) as store:
        (run,) = store.runs.all()
        assert (run.state, run.stopped_by) == ("stopped", "cluster")
        assert store.verdicts.tally(run.id).pending == 3


class Beginning(Observer):
    """Asks the run to stop as soon as Ray is on its way."""

    def __init__(self, when: Callable[[], object]) -> None:
        self._when = when

    def announce(self, text: str) -> None:
        if "this takes a few seconds" in text:
            self._when()


@pytest.mark.parametrize("address", [None, "head:6379"])
async def test_an_interrupt_does_not_wait_for_ray(
    address: str | None, fresh_database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ray is stuck here, for as long as the test runs; and leaves as soon as it is not."""
    stop, stuck, left = Stop(), threading.Event(), threading.Event()

    @contextlib.contextmanager
    def connected(*_: Any) -> Iterator[cluster.Cluster]:
        assert stuck.wait(120)
        yield cluster.Cluster(cpus=1, nodes=1, hosts=())
        left.set()

    monkeypatch.setattr(cluster, "_connected", connected)
    config = JudgeConfig(judge="openai:m", base_url=NOBODY, api_key="sk-none")
    judge = config.open_judge()
    plan = JudgePlan(judge, config)
    sources = given_pairs(sums(3), ReadOptions(criteria=read_criteria(["accuracy"])))
    with open_store(fresh_database) as store:
        summary = await judge_pairs(
            sources,
            [plan],
            RunOptions(executor="ray", ray_address=address),
            store=store,
            stop=stop,
            observer=Beginning(lambda: stop.ask("interrupt")),
        )
    sources.close()
    await judge.close()
    assert (summary.stopped_by, summary.pending) == ("interrupt", 3)
    assert not left.is_set()
    stuck.set()
    assert left.wait(120)
