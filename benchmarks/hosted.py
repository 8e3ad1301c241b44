"""A process of our own that tells one line once it is ready, and lives until its input ends."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

_ROOT = Path(__file__).resolve().parent.parent


class HostedProcess:
    def __init__(
        self,
        words: Sequence[str],
        *,
        what: str,
        stops_within_s: float,
        environment: Mapping[str, str] | None = None,
        heard: bool = True,
    ) -> None:
        """`what` it is called where it does not start; `heard`: its errors are shown."""
        self._words = words
        self._what = what
        self._stops_within_s = stops_within_s
        self._environment = environment
        self._heard = heard
        self._process: subprocess.Popen[str] | None = None

    def start(self) -> str:
        """What it tells."""
        self._process = subprocess.Popen(
            self._words,
            cwd=_ROOT,
            env=self._environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=None if self._heard else subprocess.DEVNULL,
            text=True,
        )
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            self.stop()
            above = "; its error is above" if self._heard else ""
            raise RuntimeError(f"{self._what} did not start{above}")
        return line

    def stop(self) -> None:
        process = self._process
        assert process is not None
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.close()
        try:
            process.wait(self._stops_within_s)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        process.stdout.close()
