"""Attacks by a judge's server on `evenhand serve` and on the command; see `scripts.attacks`.

Each reply is sent to every call of a few comparisons, while `/healthz` is asked as in
`scripts.attacks.service`. The command has `--timeout 4`, and may outlive it by its own start alone.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from benchmarks.loopback import loopback_environment
from benchmarks.served import Served
from scripts.attacks import AtMost, Attack, Due, Outcome
from scripts.attacks.service import Watch, ask

MEMORY_MB = 300.0  # of the server; four replies of 32 MB may be held at once
COMMAND_S = 20.0  # retries and the start of a process included
SDK_CPU_S = 8.0  # importing an SDK is 3 to 4 s of it, which is why wall time says little
_PAIR = {"prompt": "p", "responseA": "a", "responseB": "b", "criteria": ["accuracy"]}
_JSON = {"Content-Type": "application/json"}


def _chat(content: object = "A", **more: object) -> bytes:
    message = {"role": "assistant", "content": content}
    choice = {"index": 0, "message": message, "finish_reason": "stop", **more}
    return json.dumps({"id": "x", "model": "m", "choices": [choice]}).encode()


def _logprobs() -> bytes:
    place = {"token": "A", "logprob": -0.1, "top_logprobs": []}
    return _chat(logprobs={"content": [place] * 600_000})


def _keys() -> bytes:
    return b'{"choices":[],' + b",".join(b'"%x":1' % n for n in range(2_900_000)) + b"}"


# Status, and what makes the body.
REPLIES: dict[str, tuple[int, Callable[[], bytes]]] = {
    "HTTP 400 with 200,000 errors": (
        400,
        lambda: json.dumps({"errors": [{"msg": "seed"}] * 200_000}).encode(),
    ),
    "HTTP 400 with 27 MB of errors": (
        400,
        lambda: b'{"errors":[' + b'{"msg":"seed temperature"},' * 1_000_000 + b"{}]}",
    ),
    "10 million empty arrays": (200, lambda: b'{"choices":[' + b"[]," * 10_000_000 + b"[]]}"),
    "as many values as are taken": (200, lambda: b'{"choices":[' + b"[]," * 999_000 + b"[]]}"),
    "600,000 log-probabilities": (200, _logprobs),
    "2.9 million keys": (200, _keys),
    "an answer of 30 MB": (200, lambda: _chat("Winner: A\n" * 2_700_000)),
    "3 million times -Infinity": (
        200,
        lambda: b'{"choices":[' + b"-Infinity," * 3_000_000 + b"1]}",
    ),
    "30 MB of open brackets": (200, lambda: b"[" * 30_000_000),
    "a number of 30 million digits": (
        200,
        lambda: b'{"choices":[],"usage":{"prompt_tokens":' + b"9" * 30_000_000 + b"}}",
    ),
}


@contextlib.contextmanager
def _hostile(status: int, body: bytes) -> Iterator[str]:
    """A server that has this one thing to say."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            with contextlib.suppress(OSError):  # who has enough hangs up
                self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1"
    finally:
        server.shutdown()
        server.server_close()


def _against(name: str) -> Outcome:
    status, make = REPLIES[name]
    body = make()
    with (
        tempfile.TemporaryDirectory(prefix="evenhand-attack-") as folder,
        _hostile(status, body) as judge,
    ):
        with Served(judge, Path(folder)) as served:
            before = served.resident_mb()
            with Watch(served.port) as watch, ThreadPoolExecutor(2) as pool:
                sent = json.dumps(_PAIR).encode()
                statuses = set(
                    pool.map(
                        lambda _: ask(served.port, "POST", "/v1/compare", sent, _JSON)[0], range(4)
                    )
                )
            taken = served.peak_mb() - before
            alive = Due("the server", "runs" if served.running else "ended", "runs")
        seconds, code = _command(judge, folder)
    checks = (
        *watch.checks,
        AtMost("peak above idle", taken, MEMORY_MB, "MB"),
        alive,
        AtMost("the command, --timeout 4", seconds, COMMAND_S, "s"),
        Due("its exit code is a judge's", code in (3, 4), True, note=f"({code})"),
    )
    return Outcome(checks, f"{len(body):,} bytes; statuses {sorted(statuses)}")


def _against_sdk(name: str, spec: str) -> Outcome:
    """The same by a provider's SDK, which parses in the event loop."""
    status, make = REPLIES[name]
    body = make()
    with (
        tempfile.TemporaryDirectory(prefix="evenhand-attack-") as folder,
        _hostile(status, body) as judge,
    ):
        before = os.times()
        _, code = _command(judge.removesuffix("/v1"), folder, spec)
        after = os.times()
    used = after.children_user + after.children_system
    used -= before.children_user + before.children_system
    checks = (
        AtMost("CPU of the command", used, SDK_CPU_S, "s"),
        Due("its exit code is a judge's", code in (3, 4), True, note=f"({code})"),
    )
    return Outcome(checks, f"{len(body):,} bytes")


def _command(judge: str, folder: str, spec: str = "openai:loopback") -> tuple[float, int]:
    texts = ("-p", "p", "--a", "a", "--b", "b", "-c", "accuracy")
    words = [sys.executable, "-m", "evenhand", "compare", *texts, "--judge", spec]
    words += ["--base-url", judge, "--timeout", "4", "--retries", "1", "--json"]
    keys = ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GOOGLE_API_KEY")
    own = {"HOME": folder, **dict.fromkeys(keys, "sk-loopback-0123456789")}
    environment = {**os.environ, **loopback_environment(), **own}
    begun = time.perf_counter()
    ended = subprocess.run(words, env=environment, capture_output=True, timeout=200, check=False)
    return time.perf_counter() - begun, ended.returncode


ATTACKS: tuple[Attack, ...] = tuple(
    Attack(f"a judge's server: {name}", partial(_against, name), 300.0) for name in REPLIES
) + tuple(
    Attack(
        f"a judge's server, by the SDK of {spec}: {name}", partial(_against_sdk, name, spec), 300.0
    )
    for spec in ("anthropic:claude-x", "google:gemini-x")
    for name in (
        "HTTP 400 with 27 MB of errors",
        "10 million empty arrays",
        "30 MB of open brackets",
    )
)
