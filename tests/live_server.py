"""Our own server in a thread, around any app, and a client that speaks HTTP byte by byte.

with LiveServer(app, config) as server:
    answer = server.ask("GET", "/healthz", headers={"Host": "evil.example"})
    assert answer.status == 403
"""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from dataclasses import replace as _replace
from types import TracebackType
from typing import Any, Self

from evenhand.serve.config import ServerConfig
from evenhand.serve.running import UvicornServer, bind

_START_S = 20.0


@dataclass(frozen=True)
class Answered:
    status: int
    headers: Mapping[str, str]  # names in lower case
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class LiveServer:
    def __init__(self, app: Any, config: ServerConfig) -> None:
        self.app = app
        self.config = _replace(config, port=0)
        self._listener = bind(self.config)
        self.port: int = self._listener.getsockname()[1]
        self._ready = threading.Event()
        self._server = UvicornServer(app, self.config, on_ready=self._ready.set)
        self._thread = threading.Thread(target=self._run, name="live-server", daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def connections(self) -> set[Any]:
        connections: set[Any] = self._server.server_state.connections
        return connections

    def __enter__(self) -> Self:
        self._thread.start()
        if not self._ready.wait(_START_S):
            raise RuntimeError("the server did not start")
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()

    def begin_to_stop(self) -> None:
        self._server.end()

    def stop(self) -> None:
        self._server.end()
        self._thread.join(_START_S)
        self._listener.close()

    def _run(self) -> None:
        try:
            self._server.run(sockets=[self._listener])
        finally:
            self._ready.set()

    def connect(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), timeout=_START_S)

    def ask(
        self,
        method: str,
        path: str,
        *,
        headers: Mapping[str, str] | Iterable[tuple[str, str]] = (),
        body: bytes | None = None,
        chunks: Iterable[bytes] | None = None,
    ) -> Answered:
        """Exactly these headers, and a Host and a length only where none of them says it."""
        given = list(headers.items() if isinstance(headers, Mapping) else headers)
        names = {name.lower() for name, _ in given}
        if "host" not in names:
            given.append(("Host", f"127.0.0.1:{self.port}"))
        if body is not None and "content-length" not in names:
            given.append(("Content-Length", str(len(body))))
        if chunks is not None:
            given.append(("Transfer-Encoding", "chunked"))
        lines = [f"{method} {path} HTTP/1.1", *(f"{name}: {value}" for name, value in given)]
        with self.connect() as connection:
            connection.sendall("\r\n".join([*lines, "", ""]).encode("latin-1"))
            try:
                if body is not None:
                    connection.sendall(body)
                for chunk in chunks or ():
                    connection.sendall(f"{len(chunk):x}\r\n".encode() + chunk + b"\r\n")
                if chunks is not None:
                    connection.sendall(b"0\r\n\r\n")
            except (BrokenPipeError, ConnectionResetError):
                pass  # it has been told enough, and has answered
            return read_answer(connection)


def read_answer(connection: socket.socket) -> Answered:
    from http.client import HTTPResponse

    response = HTTPResponse(connection)
    response.begin()
    body = response.read()
    headers = {name.lower(): value for name, value in response.getheaders()}
    return Answered(response.status, headers, body)


def wait_until(fact: Any, *, within_s: float = 10.0) -> bool:
    deadline = time.monotonic() + within_s
    while not fact():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True
