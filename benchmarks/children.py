"""A command as a child process, with what it cost by the kernel's own account."""

from __future__ import annotations

import os
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO


@dataclass(frozen=True, slots=True)
class Ended:
    """How a child ended. `peak_rss_mb` is never below what its parent had when it forked."""

    code: int
    out: str
    err: str
    wall_s: float
    cpu_s: float
    peak_rss_mb: float


class ChildFailed(Exception):
    """A command that had to succeed did not."""


class Child:
    """A running command; its output goes to files, so that it never waits for a reader."""

    def __init__(
        self, command: Sequence[str], *, cwd: Path, environment: Mapping[str, str] | None = None
    ) -> None:
        self._out = tempfile.TemporaryFile()  # noqa: SIM115 - closed by `wait`
        self._err = tempfile.TemporaryFile()  # noqa: SIM115 - likewise
        self._begun = time.monotonic()
        self._process = subprocess.Popen(
            command,
            cwd=cwd,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=self._out,
            stderr=self._err,
        )
        self._ended: Ended | None = None

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def running_s(self) -> float:
        return time.monotonic() - self._begun

    def poll(self) -> Ended | None:
        """How it ended, or None while it runs."""
        return self._reap(os.WNOHANG)

    def wait(self, *, within_s: float) -> Ended:
        """How it ended; a command that takes longer is killed, and that is an error."""
        deadline = self._begun + within_s
        while (ended := self.poll()) is None:
            if time.monotonic() > deadline:
                self.kill()
                raise ChildFailed(f"still running after {within_s:g} s, and killed")
            time.sleep(0.005)
        return ended

    def kill(self) -> Ended:
        if self._ended is None:
            self._process.kill()
        ended = self._reap(0)
        assert ended is not None
        return ended

    def _reap(self, options: int) -> Ended | None:
        if self._ended is None:
            pid, status, used = os.wait4(self._process.pid, options)
            if pid == 0:
                return None
            wall_s = self.running_s
            self._process.returncode = os.waitstatus_to_exitcode(status)
            self._ended = Ended(
                code=self._process.returncode,
                out=_whole(self._out),
                err=_whole(self._err),
                wall_s=wall_s,
                cpu_s=used.ru_utime + used.ru_stime,
                peak_rss_mb=used.ru_maxrss / 1024,
            )
        return self._ended


def run_child(
    command: Sequence[str],
    *,
    cwd: Path,
    within_s: float,
    environment: Mapping[str, str] | None = None,
    codes: Sequence[int] = (0,),
) -> Ended:
    ended = Child(command, cwd=cwd, environment=environment).wait(within_s=within_s)
    if ended.code not in codes:
        told = (ended.err.strip() or ended.out.strip())[-2_000:]
        raise ChildFailed(f"{' '.join(command[:4])} … ended with {ended.code}: {told}")
    return ended


def _whole(file: IO[bytes]) -> str:
    with file:
        file.seek(0)
        return file.read().decode("utf-8", "replace")
