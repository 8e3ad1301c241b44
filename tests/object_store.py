"""A real S3 on the loopback (moto, a process of its own), and a wire to it that can be cut.

def test_something(bucket: Bucket) -> None:
    bucket.put("folder/pairs.jsonl", b"…")
    read_pairs([bucket.url("folder/pairs.jsonl")], …)
"""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from urllib.parse import quote
from urllib.request import ProxyHandler, Request, build_opener

import pytest

SECRET = "planted-secret-0123456789"
_START_S = 60.0
_SIGNED = {
    "Content-Type": "application/octet-stream",
    # Nobody checks it, but without any an object may not be replaced.
    "Authorization": "AWS4-HMAC-SHA256 Credential=x/20260101/us-east-1/s3/aws4_request, "
    "SignedHeaders=host, Signature=x",
}
_numbers = count(1)
_direct = build_opener(ProxyHandler({}))


@dataclass(frozen=True)
class Bucket:
    """An empty one; `reads` is the wire that evenhand's own requests take."""

    server: str
    name: str
    wire: Wire

    def put(self, key: str, content: bytes) -> str:
        self._ask("PUT", f"/{self.name}/{quote(key)}", content)
        return self.url(key)

    def url(self, key: str = "") -> str:
        return f"s3://{self.name}/{key}"

    def create(self) -> None:
        self._ask("PUT", f"/{self.name}", b"")

    def _ask(self, method: str, path: str, content: bytes) -> None:
        request = Request(self.server + path, content, _SIGNED, method=method)  # noqa: S310 - loopback
        with _direct.open(request, timeout=60) as reply:
            assert reply.status == 200


class Wire:
    """Passes bytes on. It cuts connections after so many bytes of answers, as often as it is
    told, and answers everything with 403 where that is wanted."""

    def __init__(self, port: int) -> None:
        self._to = port
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listening.getsockname()[1]
        self.cuts_left = 0
        self.cut_after = 0
        self.denies = False
        self.asked: list[str] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        # A closed socket does not wake whoever waits for it; one that is shut down does.
        with suppress(OSError):
            self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listening.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        with closing(client), suppress(OSError):
            if self.denies:
                self._deny(client)
                return
            with socket.create_connection(("127.0.0.1", self._to)) as server:
                back = threading.Thread(target=self._answer, args=(server, client), daemon=True)
                back.start()
                while block := client.recv(1 << 16):
                    if block.startswith((b"GET ", b"HEAD ")):
                        self.asked.append(block.partition(b" HTTP/")[0].decode())
                    server.sendall(block)
                server.shutdown(socket.SHUT_WR)
                back.join()

    def _answer(self, server: socket.socket, client: socket.socket) -> None:
        passed = 0
        with suppress(OSError):
            while block := server.recv(1 << 14):
                if self.cuts_left and passed + len(block) > self.cut_after:
                    self.cuts_left -= 1
                    break
                passed += len(block)
                client.sendall(block)
            client.shutdown(socket.SHUT_RDWR)

    def _deny(self, client: socket.socket) -> None:
        while asked := client.recv(1 << 16):
            body = (
                b"<Error><Code>AccessDenied</Code><Message>Access Denied</Message>"
                b"<RequestId>1</RequestId></Error>"
            )
            head = b"HTTP/1.1 403 Forbidden\r\nContent-Type: application/xml\r\n"
            head += b"Content-Length: %d\r\n\r\n" % len(body)
            client.sendall(head if asked.startswith(b"HEAD ") else head + body)


@pytest.fixture(scope="session")
def s3_port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port: int = free.getsockname()[1]
    log = tmp_path_factory.mktemp("s3") / "log"
    with log.open("wb") as written:
        process = subprocess.Popen(
            [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)],
            stdout=written,
            stderr=written,
        )
    try:
        _wait(process, port, log)
        yield port
    finally:
        process.kill()
        process.wait(timeout=30)


@pytest.fixture
def bucket(s3_port: int, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bucket]:
    wire = Wire(s3_port)
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{wire.port}")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "somebody")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    made = Bucket(f"http://127.0.0.1:{s3_port}", f"bucket-{next(_numbers)}", wire)
    made.create()
    yield made
    wire.close()


def _wait(process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    give_up = time.monotonic() + _START_S
    while time.monotonic() < give_up:
        assert process.poll() is None, log.read_text("utf-8", "replace")
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
            return
        time.sleep(0.05)
    raise AssertionError(f"no S3 after {_START_S:.0f} s: {log.read_text('utf-8', 'replace')}")
