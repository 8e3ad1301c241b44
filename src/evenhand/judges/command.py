"""A model that is a user's command: prompt on standard input, answer on standard output. No shell
is involved.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shlex
import signal
from collections.abc import Mapping
from hashlib import sha256

from evenhand.contract import Usage
from evenhand.errors import InputError, JudgeRejected
from evenhand.judges.protocol import Completion, JudgeCall, Traits

TIMEOUT_S = 300.0
MOST_BYTES = 4 << 20  # of an answer
_MOST_STDERR = 1 << 16
_CLOSED_WITHIN_S = 1.0


class CommandModel:
    """One process per answer in its own process group, so that none of it outlives its timeout."""

    def __init__(self, command: str, *, timeout_s: float | None = None) -> None:
        try:
            self._words = shlex.split(command)
        except ValueError as error:
            raise InputError.of("judges.command_malformed", command=command, error=error) from None
        if not self._words:
            raise InputError.of("judges.command_empty")
        self._command = command
        self._timeout_s = TIMEOUT_S if timeout_s is None else timeout_s

    @property
    def name(self) -> str:
        return f"command:{os.path.basename(self._words[0])}"

    @property
    def traits(self) -> Traits:
        return Traits(free=True)

    @property
    def identity(self) -> Mapping[str, object]:
        """A digest, since the arguments may be private."""
        words = "\0".join(self._words).encode("utf-8", "surrogateescape")
        return {"command": sha256(words).hexdigest()[:32]}

    async def ask(self, call: JudgeCall) -> Completion:
        prompt = "\n\n".join(message.text for message in call.messages)
        try:
            process = await asyncio.create_subprocess_exec(
                *self._words,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                start_new_session=True,
            )
        except OSError as error:
            reason = (error.strerror or str(error)).lower()
            raise JudgeRejected.of(
                "judges.command_not_started", command=self._command, reason=reason
            ) from None
        try:
            text, complaint = await asyncio.wait_for(
                _talk(process, prompt.encode()), self._timeout_s
            )
        except TimeoutError:
            raise JudgeRejected.of(
                "judges.command_too_slow", command=self._command, limit_s=self._timeout_s
            ) from None
        finally:
            await _end(process)
        if len(text) > MOST_BYTES:
            raise JudgeRejected.of(
                "judges.command_too_long", command=self._command, most=MOST_BYTES
            )
        if process.returncode:
            last = complaint.decode(errors="replace").strip().splitlines()[-1:]
            raise JudgeRejected.of(
                "judges.command_failed",
                command=self._command,
                status=process.returncode,
                reason=last[0][:200] if last else "-",
            )
        try:
            answer = text.decode().replace("\r\n", "\n").rstrip("\n")
        except UnicodeDecodeError:
            raise JudgeRejected.of("judges.command_not_utf8", command=self._command) from None
        return Completion(answer, usage=Usage(requests=1, input_tokens=0, output_tokens=0))

    async def close(self) -> None:
        """Each answer ends its own process."""


async def _talk(process: asyncio.subprocess.Process, prompt: bytes) -> tuple[bytes, bytes]:
    """The output, read only slightly beyond the limit."""
    stdin, stdout, stderr = process.stdin, process.stdout, process.stderr
    if stdin is None or stdout is None or stderr is None:  # all three are pipes
        return b"", b""

    async def send() -> None:
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # it need not read it
            stdin.write(prompt)
            await stdin.drain()
        stdin.close()

    complaining = asyncio.create_task(_read(stderr, _MOST_STDERR, go_on=True))
    sending = asyncio.create_task(send())
    try:
        text = await _read(stdout, MOST_BYTES)
        if len(text) > MOST_BYTES:  # it stands still now, with more to write
            return text, b""
        complaint = await complaining
        await process.wait()
        return text, complaint
    finally:
        complaining.cancel()
        sending.cancel()
        await asyncio.gather(complaining, sending, return_exceptions=True)


async def _read(stream: asyncio.StreamReader, most: int, *, go_on: bool = False) -> bytes:
    """At most `most` + 1 bytes; with `go_on` the rest is drained, since a full pipe would block the
    process."""
    parts = bytearray()
    while part := await stream.read(1 << 16):
        parts += part[: most + 1 - len(parts)]
        if len(parts) > most and not go_on:
            break
    return bytes(parts)


async def _end(process: asyncio.subprocess.Process) -> None:
    """End the process group; draining its pipes closes them."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        if hasattr(os, "killpg"):
            os.killpg(process.pid, signal.SIGKILL)
        elif process.returncode is None:
            process.kill()
    pipes = [pipe for pipe in (process.stdout, process.stderr) if pipe is not None]
    with contextlib.suppress(TimeoutError):  # somebody who left the group may hold them
        await asyncio.wait_for(
            asyncio.gather(*(_read(pipe, 0, go_on=True) for pipe in pipes)), _CLOSED_WITHIN_S
        )
    await process.wait()
