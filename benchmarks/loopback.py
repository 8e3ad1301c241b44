"""The loopback server in a process of its own, started and stopped with `with`."""

from __future__ import annotations

import http.client
import json
import os
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from benchmarks.hosted import HostedProcess

ROOT = Path(__file__).resolve().parent.parent
_STOP_S = 10.0
_STEERING = (
    "_PROXY",
    "OPENAI_",
    "EVENHAND_",
    "LANGSMITH_",
    "LANGCHAIN_",
    "BRAINTRUST_",
    "OTEL_",
    "PYTHONDONTWRITEBYTECODE",  # every start would compile every module anew
)


@dataclass(frozen=True, slots=True)
class Count:
    """What the server saw since its start or the last reset."""

    requests: int
    distinct: int  # 0 without a ledger
    body_bytes: int
    first_to_last_s: float
    open: int
    most_open: int
    waiting: int
    faults: dict[str, int]
    cpu_s: float


class LoopbackServer:
    def __init__(
        self,
        *,
        delay_ms: float = 0.0,
        answer: str = "usual",
        ledger: bool = False,
        record: Path | None = None,
        fault_seed: int | None = None,
    ) -> None:
        options = [f"--delay-ms={delay_ms}", f"--answer={answer}"]
        options += ["--ledger"] if ledger else []
        options += [f"--record={record}"] if record else []
        options += [f"--fault-seed={fault_seed}"] if fault_seed is not None else []
        self._process = HostedProcess(
            [sys.executable, "-m", "benchmarks.loopback_server", *options],
            what="the loopback server",
            stops_within_s=_STOP_S,
        )
        self.port = 0

    def __enter__(self) -> Self:
        self.port = int(self._process.start())
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._process.stop()

    @property
    def origin(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def url(self) -> str:
        """The base URL for a judge."""
        return f"{self.origin}/v1"

    def count(self) -> Count:
        return self._told("/count")

    def reset(self) -> Count:
        """What was seen until now; from here on it is counted anew."""
        return self._told("/reset")

    def wait_until_left(self, *, within_s: float = 10.0) -> Count:
        """The count once no client is connected and no answer is held back."""
        deadline = time.monotonic() + within_s
        while (count := self.count()).open or count.waiting:
            if time.monotonic() > deadline:
                raise RuntimeError(f"{count.open} connections are still open; end their clients")
            time.sleep(0.005)
        return count

    def _told(self, path: str) -> Count:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        try:
            connection.request("GET", path)
            told: dict[str, Any] = json.loads(connection.getresponse().read())
        finally:
            connection.close()
        return Count(
            requests=told["requests"],
            distinct=told["distinct"],
            body_bytes=told["bodyBytes"],
            first_to_last_s=told["lastAt"] - told["firstAt"],
            open=told["open"],
            most_open=told["mostOpen"],
            waiting=told["waiting"],
            faults=told["faults"],
            cpu_s=told["cpuSeconds"],
        )


def loopback_environment() -> dict[str, str]:
    """This process's variables, without what would lead a client elsewhere or change its work."""
    return {
        name: value
        for name, value in os.environ.items()
        if not any(part in name.upper() for part in _STEERING)
    }
