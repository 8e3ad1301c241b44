"""The command itself, killed where it hurts most, and taken over by others elsewhere."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from batch_providers import KEY, OpenAIProvider, Provider, Start, spec_of
from run_data import answer_to, artefact_in, pairings, sums, write_lines
from servers import SeenRequest

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="kills by SIGKILL")
_PAIRS = 6
_STEP_S = 120.0
_CREATES = re.compile(r"POST /v1/(messages/)?batches")
_COLLECTS = re.compile(r"GET /v1/(files/.*/content|messages/batches/.*/results)")


class Elsewhere:
    """Each command runs in a folder of its own, with a copy of the data: only the store is shared,
    as between two machines."""

    def __init__(
        self,
        provider: Provider,
        folder: Path,
        rows: list[dict[str, Any]] | None = None,
        *more: str,
    ) -> None:
        self._provider = provider
        self._folder = folder
        self._rows = sums(_PAIRS) if rows is None else rows
        self._more = more
        self._started = 0
        self._running: subprocess.Popen[str] | None = None
        self.seen: list[str] = []  # of the command that runs now
        self._kill_at: re.Pattern[str] | None = None
        self._interrupt_at = 0
        provider.after_each = self._after_each

    def run(
        self, *, kill_at: re.Pattern[str] | None = None, interrupt_at: int = 0
    ) -> tuple[int, str, str]:
        """Exit code, output and errors. It is killed at the first request like `kill_at`, and
        interrupted at the one of this count."""
        self._started += 1
        here = self._folder / f"machine-{self._started}"
        here.mkdir()
        write_lines(here / "data.jsonl", self._rows)
        self.seen, self._kill_at, self._interrupt_at = [], kill_at, interrupt_at
        clean = {n: v for n, v in os.environ.items() if "proxy" not in n.lower()}
        environment = {**clean, "OPENAI_API_KEY": KEY, "ANTHROPIC_API_KEY": KEY}
        command = [
            sys.executable,
            "-m",
            "evenhand",
            "run",
            "data.jsonl",
            "--json",
            "-c",
            "accuracy",
        ]
        command += ["--judge", spec_of(self._provider), "--base-url", self._provider.url]
        command += [
            "--json",
            "--batch",
            "--batch-poll",
            "0.1",
            "--store",
            str(self._folder / "store.db"),
            *self._more,
        ]
        with subprocess.Popen(
            command,
            cwd=here,
            env=environment,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        ) as running:
            self._running = running
            try:
                out, err = running.communicate(timeout=_STEP_S)
            finally:
                running.kill()
        return running.returncode, out, err

    def _after_each(self, request: SeenRequest) -> None:
        self.seen.append(f"{request.method} {request.path}")
        assert self._running is not None
        if self._kill_at is not None and self._kill_at.fullmatch(self.seen[-1]):
            os.kill(self._running.pid, signal.SIGKILL)
        if len(self.seen) == self._interrupt_at:
            os.kill(self._running.pid, signal.SIGINT)


def test_killed_after_submitting_and_while_collecting_it_pays_for_each_pass_once(
    start: Start, tmp_path: Path
) -> None:
    provider = start()
    elsewhere = Elsewhere(provider, tmp_path)
    killed = []
    # Once the batch is there and nobody has heard of it; then while its results come.
    for moment in (_CREATES, _COLLECTS):
        code, _, err = elsewhere.run(kill_at=moment)
        assert code == -signal.SIGKILL, err
        killed.append(elsewhere.seen[-1])
    assert "/batches" in killed[0]
    assert killed[1].endswith(("/content", "/results"))
    code, out, err = elsewhere.run()
    assert code == 0, err
    summary = json.loads(out)
    assert (summary["pairs"], summary["winsA"], summary["winsB"]) == (_PAIRS, 4, 2)
    assert (summary["pending"], summary["invalid"]) == (0, 0)
    assert (len(provider.batches), provider.paid) == (1, 2 * _PAIRS)


@pytest.mark.slow
def test_killed_in_every_round_it_pays_for_each_text_and_each_pass_once(
    start: Start, tmp_path: Path
) -> None:
    """Two prompts and three models: six pairs. What is prepared (2 + 2 + 6) is the first batch, the
    twelve passes are the second; each is killed when it is submitted, and when it is collected."""
    provider = start(lambda prompt, _: answer_to(prompt))
    prepare = ("--prepare", "metrics,reference,analysis")
    elsewhere = Elsewhere(provider, tmp_path, pairings(2, 3), *prepare)
    for moment in (_CREATES, _COLLECTS) * 2:
        code, _, err = elsewhere.run(kill_at=moment)
        assert code == -signal.SIGKILL, err
    code, out, err = elsewhere.run()
    assert code == 0, err
    summary = json.loads(out)
    assert (summary["winsA"], summary["pending"], summary["invalid"]) == (6, 0, 0)
    assert [len(batch.requests) for batch in provider.batches.values()] == [10, 12]
    asked = [provider._prompt(body) for b in provider.batches.values() for _, body in b.requests]
    assert len(set(asked)) == len(asked) == provider.paid == 22
    assert Counter(map(artefact_in, asked)) == {
        "metrics": 2,
        "reference": 2,
        "analysis": 6,
        None: 12,
    }


def test_interrupted_it_says_what_stays_and_how_to_go_on(tmp_path: Path) -> None:
    with OpenAIProvider() as provider:
        provider.hold = True
        elsewhere = Elsewhere(provider, tmp_path)
        code, out, err = elsewhere.run(interrupt_at=3)  # upload, creation, the first look
        assert code == 130, err
        assert json.loads(out)["stoppedBy"] == "interrupt"
        assert "submitted batches stay at the provider; the same command collects them" in err
        assert "batch batch_1 with 12 requests is at 127.0.0.1" in err
        provider.hold = False
        code, out, err = elsewhere.run()
        assert code == 0, err
        assert "6 pairs, nothing left to submit" in err
        assert json.loads(out)["pending"] == 0
        assert provider.paid == 12
