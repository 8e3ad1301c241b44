"""Attacks by clients on a real `evenhand serve` on the loopback; see `scripts.attacks`.

Attackers come from 127.0.0.2, those who watch and honest clients from addresses of their own (Linux
has the whole of 127.0.0.0/8). While an attack goes on `/healthz` is asked every 20 ms, each time by
a new connection: its longest answer is what somebody else would have waited.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import multiprocessing
import os
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from benchmarks.loopback import LoopbackServer, loopback_environment
from benchmarks.serve_pairs import bodies, is_right
from benchmarks.served import Served
from scripts.attacks import AtMost, Attack, Due, Outcome

LATEST_S = 0.5
HONEST_S = 2.0
MEMORY_MB = 50.0
_PACE_S = 0.003  # what is held open is tried here, not how many come in a second
_ATTACKER, _WATCHER, _HONEST = "127.0.0.2", "127.0.0.3", "127.0.0.4"
_SECRET = "a-token-of-the-attacks-0123456789"  # noqa: S105 - of a server that lives for seconds
_JSON = {"Content-Type": "application/json"}
_MCP = _JSON | {"Accept": "application/json, text/event-stream"}
_FORM = {"Content-Type": "application/x-www-form-urlencoded", "Sec-Fetch-Site": "same-origin"}
_UNSEEN = "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u200e\u200f\u061c\u200b\u2060"


@contextlib.contextmanager
def _serving(**options: Any) -> Iterator[Served]:
    with (
        tempfile.TemporaryDirectory(prefix="evenhand-attack-") as folder,
        LoopbackServer(delay_ms=20, answer="short") as judge,
        Served(judge.url, Path(folder), **options) as served,
    ):
        yield served


def ask(
    port: int,
    method: str,
    path: str,
    body: bytes | None = None,
    headers: dict[str, str] | None = None,
    *,
    address: str = _ATTACKER,
    timeout_s: float = 60.0,
) -> tuple[int, bytes]:
    """Status and body; (0, b"") where the connection was cut."""
    connection = http.client.HTTPConnection(
        "127.0.0.1", port, timeout=timeout_s, source_address=(address, 0)
    )
    try:
        connection.request(method, path, body=body, headers=headers or {})
        answer = connection.getresponse()
        return answer.status, answer.read()
    except (OSError, http.client.HTTPException):
        return 0, b""
    finally:
        connection.close()


class Watch:
    """Whether anybody else is answered meanwhile, and how soon; asked by a process of its own, as
    the attacker's work would hold it up."""

    def __init__(self, port: int) -> None:
        self._port = port
        self.seconds: list[float] = []
        self.failed = 0

    def __enter__(self) -> Watch:
        context = multiprocessing.get_context("spawn")
        self._ours, theirs = context.Pipe()
        self._process = context.Process(target=_look, args=(self._port, theirs), daemon=True)
        self._process.start()
        self._ours.recv()  # it looks
        return self

    def __exit__(self, *_: object) -> None:
        self._ours.send(None)
        self.seconds, self.failed = self._ours.recv()
        self._process.join()

    @property
    def checks(self) -> tuple[AtMost, AtMost]:
        slowest = max(self.seconds, default=0.0)
        return (
            AtMost("slowest /healthz", slowest, LATEST_S, "s"),
            AtMost("unanswered", self.failed, 0),
        )


def _look(port: int, asked: Connection) -> None:
    seconds, failed = [], 0
    asked.send(None)
    while not asked.poll(0.02):
        began = time.perf_counter()
        status, _ = ask(port, "GET", "/healthz", address=_WATCHER)
        seconds.append(time.perf_counter() - began)
        failed += status != 200
    asked.send((seconds, failed))


def _sent(requests: Sequence[tuple[str, bytes, dict[str, str]]]) -> Callable[[], Outcome]:
    """Each three times, four at a time; whatever is answered, it is no fault of the server's."""

    def run() -> Outcome:
        with _serving() as served:
            with Watch(served.port) as watch, ThreadPoolExecutor(4) as pool:
                answers = pool.map(lambda each: ask(served.port, "POST", *each)[0], [*requests] * 3)
                statuses = Counter(answers)
            faults = sum(n for status, n in statuses.items() if status >= 500)
            alive = Due("the server", "runs" if served.running else "ended", "runs")
            checks = (*watch.checks, AtMost("statuses of 500 and more", faults, 0), alive)
            return Outcome(checks, f"statuses {_counted(statuses)}")

    return run


def _counted(statuses: Counter[int]) -> str:
    return ", ".join(f"{status or 'cut'} x{n}" for status, n in sorted(statuses.items()))


def _pair(**more: Any) -> dict[str, Any]:
    pair: dict[str, Any] = json.loads(next(bodies()))
    return pair | more


def _keys(size: int) -> bytes:
    return b"{" + b",".join(b'"k%07d":1' % n for n in range(size // 13)) + b"}"


def _call(arguments: bytes, tool: bytes = b"pairwiseCompare") -> bytes:
    params = b'{"name":"%s","arguments":%s}' % (tool, arguments)
    return b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":%s}' % params


def _unknown_keys() -> Outcome:
    sizes = (31 << 20, 15 << 20)
    sent = [(path, _keys(n), _JSON) for path in ("/v1/compare", "/v1/runs") for n in sizes]
    return _sent([*sent, ("/mcp", _call(_keys(15 << 20)), _MCP)])()


def _criteria() -> Outcome:
    names = [f"c{n}" for n in range(1_000_000)]
    body = json.dumps(_pair(criteria=names)).encode()
    ranked = json.dumps({"prompt": "p", "responses": names, "criteria": ["c"]}).encode()
    return _sent([("/v1/compare", body, _JSON), ("/mcp", _call(ranked, b"rankResponses"), _MCP)])()


def _form() -> Outcome:
    forms = [b"prompt=" + b"%41" * ((size << 20) // 3 - 3) for size in (31, 15)]
    return _sent([("/try", form, _FORM) for form in forms])()


def _largest() -> Outcome:
    """What the limits just let through, and what costs the most of it."""
    texts = dict.fromkeys(("prompt", "responseA", "responseB", "context"), "\n" * 990000)
    quotes = json.dumps({"prompt": '"' * 8_000_000}).encode()
    many = b'{"pairs":[' + b",".join([b"{}"] * 240_000) + b"]}"
    rows = json.dumps({"pairs": [_pair()] * 6000}).encode()
    few = json.dumps({"pairs": [_pair()] * 4000}).encode()
    nested = b"[" * 1000 + b"]" * 1000
    return _sent(
        [
            ("/v1/compare", json.dumps(_pair() | texts).encode(), _JSON),
            ("/v1/compare", quotes, _JSON),
            ("/v1/compare", nested, _JSON),
            ("/v1/compare", b'{"prompt":"' + b'\\"' * 480_000, _JSON),
            ("/v1/compare", b'{"a":"' * 160_000, _JSON),
            ("/v1/runs", many, _JSON),
            ("/v1/runs", rows, _JSON),
            ("/mcp", _call(few, b"startRun"), _MCP),
            ("/mcp", b"[" + b"[]," * 90_000 + b"0]", _MCP),
            ("/mcp", b'{"jsonrpc":"2.0","method":"x","id":' + b"9" * 9000 + b"}", _MCP),
            ("/try", b"prompt=" + b"a%0A" * 240_000, _FORM),
        ]
    )()


def _trailer() -> Outcome:
    with _serving(environment={"EVENHAND_TOKEN": _SECRET}) as served:
        with _socket(served.port) as connection:
            connection.sendall(
                b"POST /v1/rank HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n"
                b"Content-Type: application/json\r\n\r\n2\r\n{}\r\n0\r\nAuthorization: Bearer "
                + _SECRET.encode()
                + b"\r\n\r\n"
            )
            status = int(connection.recv(1000)[9:12])
        return Outcome((Due("status", status, 401),))


def _numbers() -> Outcome:
    statuses: Counter[int] = Counter()
    with _serving() as served:
        document = json.loads(ask(served.port, "GET", "/openapi.json")[1])
        body = json.dumps({"pairs": [_pair(id=str(n), label="A") for n in range(4)]}).encode()
        run = json.loads(ask(served.port, "POST", "/v1/runs", body, _JSON)[1])["id"]
        needed = {"/v1/rank": f"runs={run}&", "/v1/audits": f"run={run}&"}
        for path, methods in document["paths"].items():
            for parameter in methods.get("get", {}).get("parameters", ()):
                if parameter["schema"].get("type") not in ("integer", "number"):
                    continue
                for number in ("1e308", "-1e308", "nan", "inf", "1e-320", "9" * 400, "-1"):
                    query = f"{needed.get(path, '')}{parameter['name']}={number}"
                    address = f"{path.replace('{id}', run)}?{query}"
                    statuses[ask(served.port, "GET", address)[0]] += 1
    faults = sum(n for status, n in statuses.items() if status >= 500 or not status)
    checks = (AtMost("statuses of 500 and more, or none", faults, 0),)
    return Outcome(checks, f"statuses {_counted(statuses)}")


def _socket(port: int, address: str = _ATTACKER, *, receives: int | None = None) -> socket.socket:
    """`receives`: how many bytes the kernel takes for it before the other side has to wait."""
    connection = socket.socket()
    try:
        connection.settimeout(20)
        if receives is not None:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receives)
        connection.bind((address, 0))
        connection.connect(("127.0.0.1", port))
    except OSError:
        connection.close()
        raise
    return connection


def _idle() -> Outcome:
    """4,300 connections that say nothing, of one address and of sixteen."""
    checks: list[AtMost] = []
    for addresses in (1, 16):
        with _serving() as served, contextlib.ExitStack() as stack, Watch(served.port) as watch:
            for number in range(4300):
                with contextlib.suppress(OSError):
                    address = f"127.0.1.{number % addresses + 1}"
                    stack.enter_context(_socket(served.port, address))
            time.sleep(1)
        checks += watch.checks
    return Outcome(tuple(checks), "of one address, then of sixteen")


def _slow() -> Outcome:
    """1,500 requests whose bodies, or heads, never end."""
    head = b"POST /v1/compare HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    with _serving() as served, contextlib.ExitStack() as stack:
        with Watch(served.port) as watch:
            for number in range(1500):
                with contextlib.suppress(OSError):
                    connection = stack.enter_context(_socket(served.port))
                    length = b"Content-Length: 1000\r\n\r\n{" if number % 2 else b"X-Half"
                    connection.sendall(head + length)
                time.sleep(_PACE_S)
            status, _ = ask(
                served.port, "POST", "/v1/compare", next(bodies()), _JSON, address=_HONEST
            )
        return Outcome((*watch.checks, Due("an honest comparison", status, 200)))


def _floods() -> Outcome:
    """Without end: pipelined requests, a head, headers of one name, trailers, chunk lengths, a
    query, a path, and an answer that nobody reads."""
    start = b"POST /v1/compare HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    chunked = start + b"Transfer-Encoding: chunked\r\n\r\n"
    floods = (
        (b"", b"GET /openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n" * 1000),
        (b"GET / HTTP/1.1\r\nHost: localhost\r\n", b"a:\r\n" * 16_000),
        (b"GET /", b"x" * 60_000),
        (b"GET /v1/rank?", b"runs=1&" * 8000),
        (chunked + b"2\r\n{}\r\n0\r\n", b"X-Trailer: x\r\n" * 4000),
        (chunked + b"2\r\n{}\r\n0\r\nX: ", b"x" * 60_000),
        (chunked + b"2;", b"x" * 60_000),
        (start + b"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n", b"0\r\n\r\n" * 9000),
        (start + b"Expect: 100-continue\r\nContent-Length: 99999999999\r\n\r\n", b"x" * 60_000),
        (start + b"X-Nul\x00: 1\r\n\r\n", b"x" * 60_000),
    )

    def flood(each: tuple[bytes, bytes]) -> int:
        sent = len(each[0])
        with contextlib.suppress(OSError), _socket(served.port) as connection:
            connection.settimeout(3)
            connection.sendall(each[0])
            while sent < 50_000_000:
                connection.sendall(each[1])
                sent += len(each[1])
        return sent

    with _serving() as served:
        before = served.resident_mb()
        with Watch(served.port) as watch, ThreadPoolExecutor(5) as pool:
            most = max(pool.map(flood, floods * 2))
        grown = served.resident_mb() - before
        return Outcome(
            (
                *watch.checks,
                AtMost("cut off after", most / 1e6, 49.9, "MB"),
                AtMost("memory grown by", grown, MEMORY_MB, "MB"),
            )
        )


def _proxied() -> Outcome:
    """One client behind a trusted proxy takes all it can get; another one comes after it."""
    limits = {"requests_per_address": 50}
    with _serving(limits=limits, top='trusted_proxies = ["127.0.0.2"]') as served:
        with contextlib.ExitStack() as stack, Watch(served.port) as watch:
            for _ in range(1200):
                with contextlib.suppress(OSError):
                    stack.enter_context(_socket(served.port)).sendall(
                        b"POST /v1/compare HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99\r\n"
                        b"Content-Type: application/json\r\nX-Forwarded-For: 192.0.2.1\r\n\r\n{"
                    )
                time.sleep(_PACE_S)
            status, _ = ask(
                served.port,
                "POST",
                "/v1/compare",
                next(bodies()),
                _JSON | {"X-Forwarded-For": "192.0.2.2"},
            )
        return Outcome((*watch.checks, Due("another client of the proxy", status, 200)))


def _unread_streams() -> Outcome:
    """200 clients follow a run by server-sent events and never read a byte of them."""
    with _serving() as served:
        pairs = [_pair(id=str(n)) for n in range(500)]
        body = json.dumps({"pairs": pairs}).encode()
        run = json.loads(ask(served.port, "POST", "/v1/runs", body, _JSON)[1])["id"]
        before = _memory(served.pid)
        with contextlib.ExitStack() as stack, Watch(served.port) as watch:
            for number in range(200):
                with contextlib.suppress(OSError):
                    connection = stack.enter_context(
                        _socket(served.port, f"127.0.1.{number % 16 + 1}", receives=1024)
                    )
                    path = b"/v1/runs/%s/events" % run.encode()
                    connection.sendall(b"GET %s HTTP/1.1\r\nHost: localhost\r\n\r\n" % path)
            deadline = time.monotonic() + 60
            state = ""
            while state != "finished" and time.monotonic() < deadline:
                time.sleep(0.5)
                status = ask(served.port, "GET", f"/v1/runs/{run}", address=_HONEST)[1]
                state = json.loads(status or b"{}").get("state", "")
        grown = _memory(served.pid) - before
        began = time.perf_counter()
        served.signal(signal.SIGTERM)
        while served.running and time.perf_counter() - began < 60:
            time.sleep(0.05)
        ended_s = time.perf_counter() - began
    return Outcome(
        (
            *watch.checks,
            Due("their run", state, "finished"),
            AtMost("memory grown by", grown, MEMORY_MB, "MB"),
            AtMost("the server ends within", ended_s, 30, "s"),
        )
    )


def _unseen() -> Outcome:
    """Characters that turn or hide text, in every name that an agent is shown."""
    with _serving() as served:
        pair = _pair(modelA=f"m{_UNSEEN}a", modelB="b", tags=[f"t{_UNSEEN}"], criteria=["c"])
        named = json.dumps({"pairs": [pair], "name": f"run {_UNSEEN}"}).encode()
        refused, _ = ask(served.port, "POST", "/v1/runs", named, _JSON)
        body = json.dumps({"pairs": [pair]}).encode()
        run = json.loads(ask(served.port, "POST", "/v1/runs", body, _JSON)[1])["id"]
        shown = []
        for tool, given in (
            ("runStatus", {"run": run, "waitS": 20}),
            ("runReport", {"run": run}),
            ("runStatus", {"run": _UNSEEN}),
            ("pairwiseCompare", {_UNSEEN: 1}),
        ):
            message = _call(json.dumps(given).encode(), tool.encode())
            answer = ask(served.port, "POST", "/mcp", message, _MCP)[1].decode()
            data = next(line[6:] for line in answer.splitlines() if line.startswith("data: {"))
            shown += [each["text"] for each in json.loads(data)["result"]["content"]]
        page = ask(served.port, "GET", f"/runs/{run}", None, {"Accept": "text/html"})[1].decode()
        shown.append(page.partition("<title>")[2].partition("</title>")[0])
        hidden = sum(char in _UNSEEN for text in shown for char in text)
        checks = (AtMost("such characters", hidden, 0), Due("a run named by them", refused, 422))
        return Outcome(checks, f"{len(shown)} texts")


def _stdio() -> Outcome:
    """MCP over a pipe: frames that are no messages, and a proper one after each."""
    deep = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":' + b'{"a":' * 50_000
    frames = (
        b"\xff\xfe\xfd",
        b"x" * 40_000_000,  # longer than any line may be
        deep,
        b"[" * 200_000,
        b"[" + b'{"jsonrpc":"2.0","id":1,"method":"ping"},' * 5000 + b"0]",
        b'{"jsonrpc":"2.0","id":' + b"9" * 10_000 + b',"method":"ping"}',
        b'{"jsonrpc":"2.0","id":"' + b"i" * 1_000_000 + b'","method":"ping"}',
        b'{"jsonrpc":"2.0","id":NaN,"method":"ping"}',
        b'{"jsonrpc":"2.0","id":2,"method":"no/such"}',
        b'{"jsonrpc":"2.0","id":3,"method":"ping","params":' + _keys(15 << 20) + b"}",
        b'{"jsonrpc":"2.0","id":{"a":1},"method":"ping"}',
        b"\x00" * 100_000,
        _call(json.dumps({_UNSEEN: 1}).encode()),
    )
    hello = {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "attack", "version": "1"},
    }
    with tempfile.TemporaryDirectory(prefix="evenhand-attack-") as folder:
        process = subprocess.Popen(
            [
                *(sys.executable, "-m", "evenhand", "mcp", "--judge", "openai:none"),
                *("--base-url", "http://127.0.0.1:9/v1", "--store", f"{folder}/store.db"),
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=loopback_environment() | {"OPENAI_API_KEY": "sk-none"},
        )
        assert process.stdin is not None
        assert process.stdout is not None
        ping = b'{"jsonrpc":"2.0","id":"ping-%d","method":"ping"}\n'
        first = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": hello}
        longest, hidden = 0.0, 0
        try:
            process.stdin.write(json.dumps(first).encode() + b"\n")
            process.stdin.write(b'{"jsonrpc":"2.0","method":"notifications/initialized"}\n')
            for number, frame in enumerate(frames):
                process.stdin.write(frame + b"\n" + ping % number)
                process.stdin.flush()
                began = time.perf_counter()
                while True:
                    line = process.stdout.readline()
                    if not line:
                        return Outcome((Due("frames answered", number, len(frames)),))
                    hidden += sum(char in _UNSEEN for char in line.decode())
                    if json.loads(line).get("id") == f"ping-{number}":
                        break
                longest = max(longest, time.perf_counter() - began)
            status = Path(f"/proc/{process.pid}/status").read_text()
            peak = int(status.partition("VmHWM:")[2].split()[0]) / 1024
        finally:
            process.kill()
            process.communicate()
    return Outcome(
        (
            AtMost("peak", peak, 500, "MB"),
            AtMost("slowest ping after a frame", longest, 10, "s"),
            AtMost("hidden characters", hidden, 0),
        ),
        f"{len(frames)} frames",
    )


class _Honest:
    """Fifty clients that compare, one request after the other, until they are stopped."""

    def __init__(self, port: int, clients: int = 50) -> None:
        self._port = port
        self._ended = threading.Event()
        self._pairs = bodies()
        self._lock = threading.Lock()
        self.seconds: list[float] = []
        self.lost: Counter[str] = Counter()
        self._threads = [threading.Thread(target=self._go_on) for _ in range(clients)]

    def __enter__(self) -> _Honest:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        for thread in self._threads:
            thread.join()

    @property
    def checks(self) -> tuple[AtMost, AtMost]:
        reasons = str(dict(self.lost)) if self.lost else ""
        return (
            AtMost("honest requests lost", sum(self.lost.values()), 0, note=reasons),
            AtMost("slowest of them", max(self.seconds), HONEST_S, "s"),
        )

    def _go_on(self) -> None:
        connection = http.client.HTTPConnection(
            "127.0.0.1", self._port, timeout=30, source_address=(_HONEST, 0)
        )
        while not self._ended.is_set():
            with self._lock:
                pair = next(self._pairs)
            began = time.perf_counter()
            try:
                connection.request("POST", "/v1/compare", body=pair, headers=_JSON)
                answer = connection.getresponse()
                body = answer.read()
                fine = answer.status == 200 and is_right(body)
                problem = "" if fine else f"status {answer.status}"
            except (OSError, http.client.HTTPException) as error:
                problem = type(error).__name__
                connection.close()
            with self._lock:
                self.seconds.append(time.perf_counter() - began)
                if problem:
                    self.lost[problem] += 1
            time.sleep(0.5)
        connection.close()


def _all_at_once(workers: int) -> Callable[[], Outcome]:
    def run() -> Outcome:
        huge = _keys(15 << 20)
        many = json.dumps(_pair(criteria=[f"c{n}" for n in range(800_000)])).encode()
        form = b"prompt=" + b"%41" * 5_000_000
        calls = [
            ("/v1/compare", huge, _JSON),
            ("/v1/compare", many, _JSON),
            ("/try", form, _FORM),
            ("/mcp", _call(huge), _MCP),
            ("/v1/rank", b'{"runs":["1"],"eloK":1e308}', _JSON),
        ]
        with _serving(options=("--workers", str(workers))) as served:
            _warm(served.port)
            before = _memory(served.pid)
            with _Honest(served.port) as honest, contextlib.ExitStack() as stack:
                ends = time.monotonic() + 15
                with ThreadPoolExecutor(3) as pool:
                    while time.monotonic() < ends:
                        list(pool.map(lambda each: ask(served.port, "POST", *each), calls))
                        for _ in range(300):
                            with contextlib.suppress(OSError):
                                stack.enter_context(_socket(served.port)).sendall(b"GET /")
            deadline = time.monotonic() + 20
            while (grown := _memory(served.pid) - before) > MEMORY_MB:
                if time.monotonic() > deadline:
                    break
                time.sleep(0.5)
            return Outcome(
                (*honest.checks, AtMost("memory grown by", grown, MEMORY_MB, "MB")),
                f"{len(honest.seconds)} honest comparisons, median "
                f"{statistics.median(honest.seconds):.2f} s",
            )

    return run


def _warm(port: int) -> None:
    """Whatever is loaded by the first request of its kind, in each worker, is there."""
    with ThreadPoolExecutor(8) as pool:
        for path, headers in (("/mcp", _MCP), ("/v1/rank", _JSON), ("/try", _FORM)):
            list(pool.map(lambda _, p=path, h=headers: ask(port, "POST", p, b"{}", h), range(16)))
        list(pool.map(lambda pair: ask(port, "POST", "/v1/compare", pair, _JSON), _first(bodies())))


def _first(pairs: Iterator[bytes], count: int = 64) -> list[bytes]:
    return [next(pairs) for _ in range(count)]


def _memory(pid: int) -> float:
    """Of a process and its children, in MB."""
    pids, found = [pid], 0
    while pids:
        each = pids.pop()
        with contextlib.suppress(OSError):
            found += int(Path(f"/proc/{each}/statm").read_text().split()[1])
            for task in Path(f"/proc/{each}/task").iterdir():
                pids += map(int, (task / "children").read_text().split())
    return found * os.sysconf("SC_PAGE_SIZE") / 2**20


def _without_database() -> Outcome:
    """PostgreSQL cuts its connections and takes none for eight seconds, under load."""
    sys.path.insert(0, str(Path(__file__).parents[2] / "tests"))
    from postgres_server import find_binaries, running

    binaries = find_binaries()
    if binaries is None:
        return Outcome((Due("PostgreSQL is", "missing: scripts/install_postgres.sh", "installed"),))
    with running(binaries) as database:
        database.run("CREATE DATABASE attacked")
        url = database.url("attacked")
        with _serving(store=url) as served:
            run = json.dumps({"pairs": [_pair(id=str(n)) for n in range(400)]}).encode()
            assert ask(served.port, "POST", "/v1/runs", run, _JSON)[0] == 202
            statuses: Counter[int] = Counter()
            with Watch(served.port) as watch, _Honest(served.port, 20) as honest:
                database.cut_connections("attacked")
                database.run("ALTER DATABASE attacked ALLOW_CONNECTIONS false")
                for _ in range(8):
                    statuses[ask(served.port, "GET", "/v1/runs", timeout_s=30)[0]] += 1
                    time.sleep(1)
                database.run("ALTER DATABASE attacked ALLOW_CONNECTIONS true")
                deadline = time.monotonic() + 40
                back = 0
                while back != 200 and time.monotonic() < deadline:
                    back = ask(served.port, "GET", "/v1/runs", timeout_s=30)[0]
                    time.sleep(0.2)
            return Outcome(
                (
                    *watch.checks,
                    *honest.checks,
                    AtMost("/v1/runs without an answer", statuses[0], 0),
                    Due("/v1/runs afterwards", back, 200),
                ),
                f"while it is away /v1/runs answers {_counted(statuses)}; "
                f"{len(honest.seconds)} comparisons meanwhile",
            )


ATTACKS: tuple[Attack, ...] = (
    Attack("31 MB of unknown keys", _unknown_keys),
    Attack("a million criteria or responses", _criteria),
    Attack("a 31 MB percent-encoded form field", _form),
    Attack("the largest bodies that the limits allow", _largest),
    Attack("a token in a trailer", _trailer),
    Attack("numbers at the end of their range", _numbers),
    Attack("4,300 idle connections", _idle),
    Attack("1,500 bodies and heads that never end", _slow),
    Attack("heads, trailers and pipelines without end", _floods),
    Attack("one client of a trusted proxy takes everything", _proxied),
    Attack("event streams that their clients never read", _unread_streams, limit_s=180),
    Attack("characters that turn or hide text", _unseen),
    Attack("hostile frames to MCP over stdio", _stdio),
    Attack("costly bodies and heads beside 50 honest clients", _all_at_once(1)),
    Attack("costly bodies and heads beside 50 honest clients, two workers", _all_at_once(2)),
    Attack("PostgreSQL goes away under load", _without_database),
)
