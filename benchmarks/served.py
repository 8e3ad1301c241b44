"""`evenhand serve` in a process of its own, started and stopped with `with`."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

from benchmarks.loopback import loopback_environment

_TICKS_PER_S = os.sysconf("SC_CLK_TCK")
_PAGE_MB = os.sysconf("SC_PAGE_SIZE") / 2**20
_STOP_S = 60.0


class Served:
    """`limits`, and lines above them, go into its config file; `environment` adds to a plain
    one."""

    popen: type[subprocess.Popen[str]] = subprocess.Popen

    def __init__(
        self,
        judge_url: str,
        folder: Path,
        *,
        limits: Mapping[str, float] | None = None,
        options: tuple[str, ...] = (),
        store: str | None = None,
        environment: Mapping[str, str] | None = None,
        top: str = "",
    ) -> None:
        config = folder / "server.toml"
        lines = [top, "[limits]", *(f"{name} = {value}" for name, value in (limits or {}).items())]
        lines += ["[[judges]]", 'judge = "openai:bench"', f'base_url = "{judge_url}"']
        config.write_text("\n".join(lines), encoding="utf-8")
        self._folder = folder
        self._words = [sys.executable, "-m", "evenhand", "serve", "--port", "0"]
        self._words += ["--config", str(config), "--store", store or str(folder / "store.db")]
        self._words += options
        self._environment = {**loopback_environment(), **(environment or {})}
        self._process: subprocess.Popen[str] | None = None
        self._log = tempfile.TemporaryFile("w+")  # noqa: SIM115 - closed at the end
        self.url = ""
        self.log = ""
        self.code: int | None = None

    def __enter__(self) -> Self:
        self._process = self.popen(
            self._words,
            cwd=self._folder,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
        )
        assert self._process.stdout is not None
        self.url = self._process.stdout.readline().strip()
        if not self.url:
            self._log.seek(0)
            raise RuntimeError(f"the server did not start: {self._log.read()[-2000:]}")
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        assert self._process is not None
        assert self._process.stdout is not None
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)
        try:
            self.code = self._process.wait(_STOP_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self.code = self._process.wait()
        self._process.stdout.close()
        self._log.seek(0)
        self.log = self._log.read()
        self._log.close()

    @property
    def port(self) -> int:
        return int(self.url.rpartition(":")[2])

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def signal(self, which: signal.Signals) -> None:
        os.kill(self.pid, which)

    def cpu_s(self) -> float:
        return cpu_s(self.pid)

    def resident_mb(self) -> float:
        return _resident_mb(self.pid)

    def peak_mb(self) -> float:
        """The most that it held since it was started."""
        return int(_text(Path(f"/proc/{self.pid}/status")).partition("VmHWM:")[2].split()[0]) / 1024

    def resident_with_children_mb(self) -> float:
        """And of the processes that compute its figures."""
        of_threads = Path(f"/proc/{self.pid}/task").glob("*/children")
        children = [int(each) for path in of_threads for each in _text(path).split()]
        return self.resident_mb() + sum(map(_resident_mb, children))


def _resident_mb(pid: int) -> float:
    return int((_text(Path(f"/proc/{pid}/statm")).split() or "00")[1]) * _PAGE_MB


def _text(path: Path) -> str:
    """Of a process that may just have ended."""
    try:
        return path.read_text()
    except (FileNotFoundError, ProcessLookupError):
        return ""


def cpu_s(pid: int) -> float:
    stat = Path(f"/proc/{pid}/stat").read_text()
    # The command's name stands in brackets and may hold spaces; user and system time come later.
    user, system = stat.rpartition(")")[2].split()[11:13]
    return (int(user) + int(system)) / _TICKS_PER_S
