"""The real server on the loopback, in a thread of its own, with a scripted judge behind it.

    def test_something(start_service: StartService) -> None:
        service = start_service(adds_up)
        answer = service.client.post("/v1/compare", json=...)

SQLite in a temporary folder unless a store is named.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from jsonschema import Draft202012Validator

from evenhand import tools
from evenhand.judges.prices import Price
from evenhand.judging.config import JudgeConfig
from evenhand.serve.app import make_app
from evenhand.serve.config import JudgeOffer, ServerConfig, ServerLimits, Token
from evenhand.serve.http.problems import Problem
from evenhand.serve.running import UvicornServer, address_of, bind
from evenhand.settings import Settings
from run_data import sums
from servers import JudgeServer, Script, forget_proxies

_START_S = 30.0

PAIR: dict[str, Any] = {**sums(1)[0], "criteria": ["accuracy"]}


class HttpService:
    """Start and stop it with `with`; `stop` and `start` again keep the store."""

    def __init__(self, config: ServerConfig, judge: JudgeServer | None = None) -> None:
        self.config = config
        self.judge = judge
        self.client = httpx.Client(trust_env=False, timeout=60)
        self.url = ""
        self._server: UvicornServer | None = None
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        listener = bind(self.config)
        self.url = address_of(self.config, listener)
        self.client.base_url = httpx.URL(self.url)
        ready = threading.Event()
        self.app = make_app(self.config, Settings())
        self._server = UvicornServer(self.app, self.config, on_ready=ready.set)
        self._thread = threading.Thread(
            target=self._server.run, kwargs={"sockets": [listener]}, daemon=True
        )
        self._thread.start()
        deadline = time.monotonic() + _START_S
        while not ready.wait(0.02):
            if not self._thread.is_alive() or time.monotonic() > deadline:
                raise RuntimeError("the server did not start; its log says why")

    def stop(self) -> None:
        assert self._server is not None
        assert self._thread is not None
        self._server.end()
        self._thread.join(_START_S)
        assert not self._thread.is_alive()

    def close(self) -> None:
        self.client.close()
        self.stop()


StartService = Callable[..., HttpService]


@pytest.fixture
def start_service(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[StartService]:
    """`start_service(script, **limits)`; `store`, `tokens`, `voters` and `judges` are the
    config's."""
    forget_proxies(monkeypatch)
    started: list[HttpService | JudgeServer] = []

    def start(
        script: Script,
        *,
        store: str | None = None,
        tokens: tuple[Token, ...] = (),
        voters: tuple[Token, ...] = (),
        judges: tuple[str, ...] = ("good",),
        offer: dict[str, Any] | None = None,
        **limits: Any,
    ) -> HttpService:
        judge = JudgeServer(script)
        judge.__enter__()
        started.append(judge)
        config = ServerConfig(
            judges=tuple(
                judge_offer(name, f"openai:{name}-1", **({"base_url": judge.url} | (offer or {})))
                for name in judges
            ),
            store=store or str(tmp_path / "service.db"),
            port=0,
            tokens=tokens,
            voters=voters,
            limits=ServerLimits(**({"background_runs": 2} | limits)),
        )
        service = HttpService(config, judge)
        service.start()
        started.append(service)
        return service

    yield start
    for each in reversed(started):
        if isinstance(each, HttpService):
            each.close()
        else:
            each.stop()


def problem(answer: httpx.Response, status: int, kind: str) -> Problem:
    """The one shape of errors; the contract's failure is inside of it."""
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    told = Problem.model_validate(answer.json())
    assert told.type == f"urn:evenhand:problem:{kind}"
    assert (told.status, told.error.kind) == (status, kind)
    assert told.detail == told.error.message
    failure = {name: answer.json()[name] for name in ("success", "error", "metadata")}
    Draft202012Validator(tools.output_schema()).validate(failure)
    return told


def judge_offer(
    name: str,
    judge: str,
    *,
    api_key_env: str | None = None,
    calibration: str | None = None,
    price: Price | None = None,
    **config: Any,
) -> JudgeOffer:
    """`config` are the fields of its `JudgeConfig`."""
    chosen = JudgeConfig(judge=judge, **config)
    return JudgeOffer(name, chosen, api_key_env=api_key_env, calibration=calibration, price=price)
