"""A chat-completions server for the loopback, fast enough not to be what is measured.

    python -m benchmarks.loopback_server [--delay-ms 50] [--answer short] [--ledger]
                                         [--record FILE] [--fault-seed 7]

Prints its port, and ends when its standard input does. HTTP is read by hand: the request line, the
Content-Length, the body; every answer was made before. `GET /count` tells what was seen so far,
`GET /reset` the same, and begins anew. Each peer has a path of its own, since each wants its own
answer format.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import sys
import threading
import time
from collections import Counter
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import BinaryIO, cast

import uvloop
from benchmarks.answers import (
    WINNERS,
    Length,
    autoevals_completion,
    evenhand_completion,
    http_reply,
    openevals_completion,
    winner_shown,
)
from benchmarks.faults import draw_fault, faulty_reply
from benchmarks.recorded import write_body

_BACKLOG = 1024  # 512 clients connect at once


@dataclass(frozen=True, slots=True)
class Behaviour:
    delay_s: float = 0.0
    answer: Length = "usual"
    ledger: bool = False  # remember which requests came, to count the distinct ones
    fault_seed: int | None = None  # None: no faults


class Served:
    """What was asked since the last reset."""

    def __init__(self) -> None:
        self.requests = 0
        self.body_bytes = 0
        self.first_at = 0.0
        self.last_at = 0.0
        self.most_open = 0
        self.faults: Counter[str] = Counter()
        self.seen: Counter[bytes] = Counter()
        self.cpu_begun_s = time.process_time()


class Loopback:
    """The answers, and what all connections share."""

    def __init__(self, behaviour: Behaviour, record: BinaryIO | None) -> None:
        self.behaviour = behaviour
        self.served = Served()
        self.open = 0  # connections that asked something
        self.waiting = 0  # answers that the delay holds back
        self._record = record
        self._ledger = behaviour.ledger or behaviour.fault_seed is not None
        self._answers = {w: http_reply(evenhand_completion(w, behaviour.answer)) for w in WINNERS}
        self._peers = {
            b"POST /autoevals/": {w: http_reply(autoevals_completion(w)) for w in WINNERS},
            b"POST /openevals/": {w: http_reply(openevals_completion(w)) for w in WINNERS},
        }

    def reply(self, head: bytes, body: bytes) -> tuple[bytes, bool]:
        """What to write, and whether the connection is closed after it."""
        served = self.served
        served.requests += 1
        served.body_bytes += len(body)
        served.last_at = time.monotonic()
        if served.requests == 1:
            served.first_at = served.last_at
        if self._record is not None:
            write_body(self._record, body)
        answer = self._answers_for(head)[winner_shown(body)]
        return self._entered(body, answer) if self._ledger else (answer, False)

    def _answers_for(self, head: bytes) -> dict[str, bytes]:
        if not head.startswith(b"POST /v1/"):
            for path, answers in self._peers.items():
                if head.startswith(path):
                    return cast("dict[str, bytes]", answers)
        return cast("dict[str, bytes]", self._answers)

    def _entered(self, body: bytes, answer: bytes) -> tuple[bytes, bool]:
        digest = blake2b(body, digest_size=16).digest()
        self.served.seen[digest] += 1
        if self.behaviour.fault_seed is None:
            return answer, False
        drawn = draw_fault(digest, self.served.seen[digest], self.behaviour.fault_seed)
        if drawn is None:
            return answer, False
        fault, variant = drawn
        self.served.faults[fault] += 1
        return faulty_reply(fault, variant, whole=answer)

    def told(self, head: bytes) -> bytes:
        served = self.served
        told = {
            "requests": served.requests,
            "distinct": len(served.seen),
            "bodyBytes": served.body_bytes,
            "firstAt": served.first_at,
            "lastAt": served.last_at,
            "faults": served.faults,
            "open": self.open,
            "mostOpen": served.most_open,
            "waiting": self.waiting,
            "cpuSeconds": time.process_time() - served.cpu_begun_s,
        }
        if head.startswith(b"GET /reset"):
            if self._record is not None:
                self._record.flush()
            self.served = Served()
            self.served.most_open = self.open
        return http_reply(json.dumps(told).encode())


class Connection(asyncio.Protocol):
    def __init__(self, loopback: Loopback) -> None:
        self._loopback = loopback
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._data = b""
        self._asked = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        if self._asked:
            self._loopback.open -= 1

    def data_received(self, data: bytes) -> None:
        self._data = self._data + data if self._data else data
        while (end := self._data.find(b"\r\n\r\n")) >= 0:
            head = self._data[:end]
            body_from = end + 4
            body_to = body_from + _content_length(head)
            if len(self._data) < body_to:
                return
            body = self._data[body_from:body_to]
            self._data = self._data[body_to:]
            self._answer(head, body)

    def _answer(self, head: bytes, body: bytes) -> None:
        loopback = self._loopback
        if head.startswith(b"GET "):
            self._send(loopback.told(head), closing=False)
            return
        if not self._asked:
            self._asked = True
            loopback.open += 1
            loopback.served.most_open = max(loopback.served.most_open, loopback.open)
        reply, closing = loopback.reply(head, body)
        if loopback.behaviour.delay_s:
            loopback.waiting += 1
            self._loop.call_later(loopback.behaviour.delay_s, self._send_late, reply, closing)
        else:
            self._send(reply, closing=closing)

    def _send_late(self, reply: bytes, closing: bool) -> None:
        self._loopback.waiting -= 1
        self._send(reply, closing=closing)

    def _send(self, reply: bytes, *, closing: bool) -> None:
        if self._transport is None:
            return  # the client is gone
        if reply:
            self._transport.write(reply)
        if closing:
            self._transport.close()


def _content_length(head: bytes) -> int:
    lowered = head.lower()
    start = lowered.find(b"\r\ncontent-length:")
    if start < 0:
        return 0
    start += len(b"\r\ncontent-length:")
    end = lowered.find(b"\r\n", start)
    return int(lowered[start:end] if end >= 0 else lowered[start:])


async def serve(behaviour: Behaviour, record: BinaryIO | None) -> None:
    loop = asyncio.get_running_loop()
    loopback = Loopback(behaviour, record)
    server = await loop.create_server(
        lambda: Connection(loopback), "127.0.0.1", 0, backlog=_BACKLOG
    )
    ended = asyncio.Event()

    def await_end() -> None:
        sys.stdin.buffer.read()
        loop.call_soon_threadsafe(ended.set)

    # Whoever started the server holds the other end, and cannot leave it behind by dying.
    threading.Thread(target=await_end, daemon=True).start()
    print(server.sockets[0].getsockname()[1], flush=True)
    await ended.wait()
    server.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--delay-ms", type=float, default=0.0)
    parser.add_argument("--answer", choices=("usual", "short"), default="usual")
    parser.add_argument("--ledger", action="store_true")
    parser.add_argument("--record", type=Path)
    parser.add_argument("--fault-seed", type=int)
    asked = parser.parse_args()
    behaviour = Behaviour(asked.delay_ms / 1000, asked.answer, asked.ledger, asked.fault_seed)
    with contextlib.ExitStack() as opened:
        record = opened.enter_context(asked.record.open("wb")) if asked.record else None
        uvloop.run(serve(behaviour, record))


if __name__ == "__main__":
    main()
