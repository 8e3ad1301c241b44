"""The command in a process of its own, without the second that its imports take.

One process has imported everything and forks for each command: the child has its own standard
streams, directory, environment and signals, and ends as an interpreter ends. What a test says of
imports, of the locale or of the start itself needs `subprocess.Popen`.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import importlib
import io
import json
import os
import pkgutil
import select
import socket
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, NoReturn

_COMMAND = [sys.executable, "-m", "evenhand"]
# Imported by functions, so not found among the heads of our modules. What draws starts threads,
# and stays out.
_LATE = (
    "aiohttp",
    "alembic.command",
    "httptools",
    "numpy",
    "platformdirs.unix",
    "rich._emoji_codes",
    "rich._unicode_data.unicode17-0-0",
    "rich.table",
    "scipy.optimize",
    "scipy.special",
    "scipy.stats",
    "sqlalchemy.dialects.sqlite",
    "typer._adapters",
    "uvicorn.protocols.http.httptools_impl",
    "uvloop",
)
_MEGABYTES = 1 << 22  # an argument may be long


class ForkedCommand(subprocess.Popen[Any]):
    """`subprocess.Popen([sys.executable, "-m", "evenhand", …])`, forked."""

    def _execute_child(self, args: list[str], *more: Any) -> None:
        assert args[:3] == _COMMAND
        cwd, env, pipes = more[4], more[5], more[9:15]
        streams = [fd if fd >= 0 else place for place, fd in enumerate((pipes[0], *pipes[3::2]))]
        self._news = _order(forker(), args[3:], os.fspath(cwd), env, streams)
        self.pid = int.from_bytes(self._news.recv(4))
        self._child_created = True
        self._close_pipe_fds(*pipes)  # type: ignore[attr-defined]

    def _internal_poll(self, *_: Any, **__: Any) -> int | None:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._wait(0)
        return self.returncode

    def _wait(self, timeout: float | None) -> int:
        if self.returncode is None:
            if not select.select([self._news], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired(self.args, timeout or 0)
            status = int.from_bytes(self._news.recv(4))
            self._news.close()
            self.returncode = os.waitstatus_to_exitcode(status)
        return self.returncode


def _order(
    address: str, words: list[str], cwd: str, env: Mapping[str, str], streams: list[int]
) -> socket.socket:
    """What then tells the process's id and, at its end, its status."""
    news = socket.socket(socket.AF_UNIX)
    news.connect(address)
    body = json.dumps({"words": words, "cwd": cwd, "env": dict(env)}).encode()
    socket.send_fds(news, [len(body).to_bytes(4)], streams)
    news.sendall(body)
    return news


def write_command(folder: Path) -> None:
    """A program `evenhand` for the PATH of a shell: it takes no signals on to what it starts."""
    program = folder / "evenhand"
    program.write_text(
        f'#!/bin/sh\nexec {sys.executable} -IS {__file__} {forker()} "$@"\n', "utf-8"
    )
    program.chmod(0o700)


@cache
def forker() -> str:
    """Where the process that forks listens; it ends with this one."""
    folder = tempfile.TemporaryDirectory(prefix="evenhand-")
    address = str(Path(folder.name) / "forker")
    code = (
        f"import sys; sys.path[:0] = {sys.path!r}; import forked; forked.fork_commands({address!r})"
    )
    process = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE)

    def end() -> None:
        process.communicate()  # the end of its input is its end
        folder.cleanup()

    atexit.register(end)
    while not Path(address).exists():
        assert process.poll() is None
        time.sleep(0.02)
    return address


def fork_commands(address: str) -> None:
    _import_everything()
    gc.collect()
    gc.freeze()
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(address + ".new")
        listener.listen(64)
        os.rename(address + ".new", address)
        while True:
            if sys.stdin in (ready := select.select([listener, sys.stdin], [], [])[0]):
                return  # whoever started this one has ended
            assert ready
            asked, _ = listener.accept()
            if not os.fork():
                break
            asked.close()
            with contextlib.suppress(ChildProcessError):
                while os.waitpid(-1, os.WNOHANG)[0]:
                    pass
    _attend(asked)


def _attend(asked: socket.socket) -> None:
    """Between the one that forks and the command: waits for its end, and says how it ended."""
    head, streams, _, _ = socket.recv_fds(asked, 4, 3)
    body = b""
    while len(body) < int.from_bytes(head):
        body += asked.recv(_MEGABYTES)
    order = json.loads(body)
    command = os.fork()
    if not command:
        asked.close()
        _become(order, streams)
        _run()
    for stream in (0, 1, 2, *streams):
        with contextlib.suppress(OSError):
            os.close(stream)
    asked.sendall(command.to_bytes(4))
    status = os.waitpid(command, 0)[1]
    with contextlib.suppress(OSError):  # nobody waits for it any more
        asked.sendall(status.to_bytes(4))
    os._exit(0)


def _run() -> NoReturn:
    """To the end of an interpreter, but for the tidying of all its modules, which takes long."""
    from evenhand.cli.main import main

    code: Any = 1
    try:
        main()
    except SystemExit as left:
        code = left.code
    except BaseException:
        traceback.print_exc()
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    with contextlib.suppress(OSError, ValueError):
        sys.stdout.flush()
    os._exit(code if isinstance(code, int) else 1)


def _become(order: dict[str, Any], streams: list[int]) -> None:
    for place, stream in enumerate(streams):
        os.dup2(stream, place)
    for stream in {*streams} - {0, 1, 2}:
        os.close(stream)
    os.environ.clear()
    os.environ.update(order["env"])
    os.chdir(order["cwd"])
    sys.argv = ["evenhand", *order["words"]]
    # As an interpreter makes them where no locale is set.
    sys.stdin, sys.stdout, sys.stderr = (
        io.TextIOWrapper(
            os.fdopen(place, mode, closefd=False),
            encoding="utf-8",
            errors=errors,
            line_buffering=place == 2 or os.isatty(place),
        )
        for place, (mode, errors) in enumerate(
            [("rb", "surrogateescape"), ("wb", "surrogateescape"), ("wb", "backslashreplace")]
        )
    )


def _import_everything() -> None:
    import typer.main

    import evenhand
    import evenhand.cli.main

    ours = (each.name for each in pkgutil.walk_packages(evenhand.__path__, "evenhand."))
    for name in (*ours, *_LATE):
        if not name.endswith("__main__"):
            with contextlib.suppress(ImportError):
                importlib.import_module(name)
    typer.main.get_command = cache(typer.main.get_command)
    root: Any = typer.main.get_command(evenhand.cli.main.app)
    root.commands.values()  # builds each of them


if __name__ == "__main__":
    sent = _order(sys.argv[1], sys.argv[2:], os.getcwd(), os.environ, [0, 1, 2])
    sent.recv(4)
    sys.exit(os.waitstatus_to_exitcode(int.from_bytes(sent.recv(4))))
