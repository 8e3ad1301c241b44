"""Several server processes behind one socket, over one store; one that dies is replaced."""

from __future__ import annotations

import multiprocessing
import os
import shutil
import signal
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from multiprocessing.process import parent_process
from types import FrameType

from evenhand.errors import EvenhandError, Status, StoreError, exit_code
from evenhand.serve.config import ServerConfig
from evenhand.serve.logs import configure_logs, log
from evenhand.serve.metrics import FOLDER_VARIABLE, forget_process
from evenhand.serve.tokens import SharedLedger

_READY = b"ready"
_LOOK_EVERY_S = 0.2
# One that dies so soon may well do so again: the next is given a little longer to come, each time.
_TOO_SOON_S = 5.0
_FIRST_PAUSE_S = 0.5
_LONGEST_PAUSE_S = 30.0
# So many that never came up, one after the other: the fault is none that passes.
_MOST_IN_VAIN = 8


def serve_by_several(
    config: ServerConfig, listener: socket.socket, *, on_ready: Callable[[], None]
) -> int:
    """Answer until a signal comes; the exit code."""
    configure_logs(config)
    folder = tempfile.mkdtemp(prefix="evenhand-metrics-")
    os.environ[FOLDER_VARIABLE] = folder  # they inherit it
    try:
        return _Workers(config, listener, on_ready).run()
    finally:
        del os.environ[FOLDER_VARIABLE]
        shutil.rmtree(folder, ignore_errors=True)


class _Worker:
    """`early` and `in_vain` are how many before it, in its place, died soon or never came up."""

    def __init__(
        self, process: SpawnProcess, ears: Connection, *, early: int = 0, in_vain: int = 0
    ) -> None:
        self.process = process
        self.ears = ears
        self.early = early
        self.in_vain = in_vain
        self.began = time.monotonic()
        self.ended: float | None = None
        self.ready = False

    def look(self) -> None:
        if not self.ready and self.ears.poll():
            try:
                self.ready = self.ears.recv_bytes() == _READY
            except EOFError:
                return

    def note_end(self) -> None:
        """For the one that takes its place."""
        self.ended = time.monotonic()
        self.early = self.early + 1 if self.ended - self.began < _TOO_SOON_S else 0
        self.in_vain = 0 if self.ready else self.in_vain + 1

    @property
    def is_awaited(self) -> bool:
        """Whether it is too early for another in its place."""
        if self.ended is None or not (self.early or self.in_vain):
            return False
        pause = _FIRST_PAUSE_S * 2.0 ** (max(self.early, self.in_vain) - 1)
        return time.monotonic() - self.ended < min(pause, _LONGEST_PAUSE_S)


class _Workers:
    def __init__(
        self, config: ServerConfig, listener: socket.socket, on_ready: Callable[[], None]
    ) -> None:
        self._config = config
        self._listener = listener
        self._on_ready = on_ready
        self._context = multiprocessing.get_context("spawn")
        names = ["", *(token.name for token in (*config.tokens, *config.voters))]
        self._ledger = SharedLedger(names, self._context)
        self._ending = False
        self._workers: list[_Worker] = []

    def run(self) -> int:
        before = {each: signal.signal(each, self._told) for each in (signal.SIGINT, signal.SIGTERM)}
        try:
            self._workers = [self._started() for _ in range(self._config.workers)]
            self._watch()
        finally:
            self._end()
            for each, handler in before.items():
                signal.signal(each, handler)
        return Status.OK

    def _started(self, before: _Worker | None = None) -> _Worker:
        ears, mouth = self._context.Pipe(duplex=False)
        process = self._context.Process(
            target=_work, args=(self._config, self._listener, self._ledger, mouth), daemon=False
        )
        process.start()
        mouth.close()
        if before is None:
            return _Worker(process, ears)
        return _Worker(process, ears, early=before.early, in_vain=before.in_vain)

    def _watch(self) -> None:
        told = False
        while not self._ending:
            self._rest()
            for place, worker in enumerate(self._workers):
                if worker.ended is None:
                    worker.look()
                    if not worker.process.is_alive():
                        self._part_with(worker, told=told)
                elif not worker.is_awaited and not self._ending:
                    self._workers[place] = self._started(worker)
            if not told and all(worker.ready for worker in self._workers):
                told = True
                self._on_ready()

    def _rest(self) -> None:
        """Until one of them ends, or for a moment."""
        alive = [each.process.sentinel for each in self._workers if each.ended is None]
        if alive:
            wait(alive, timeout=_LOOK_EVERY_S)
        else:
            time.sleep(_LOOK_EVERY_S)

    def _part_with(self, worker: _Worker, *, told: bool) -> None:
        """Before the server has said that it answers, what ails a worker is told and is the end;
        afterwards the others go on answering, and another one comes."""
        worker.note_end()
        worker.ears.close()
        if worker.process.pid is not None:
            forget_process(worker.process.pid)
        if not self._ending and (worker.in_vain >= _MOST_IN_VAIN or (worker.in_vain and not told)):
            self._ending = True
            raise StoreError(
                f"a worker ended with {worker.process.exitcode} right after its start; "
                "its log above says why"
            )
        log.warning("worker %s ended; another takes its place", worker.process.pid)

    def _told(self, sig: int, frame: FrameType | None) -> None:
        if self._ending:  # the second time: at once
            for worker in self._workers:
                worker.process.kill()
            os._exit(Status.INTERRUPTED)
        self._ending = True

    def _end(self) -> None:
        self._listener.close()  # or clients would wait at a door that nobody opens any more
        for worker in self._workers:
            if worker.process.is_alive():
                worker.process.terminate()
        for worker in self._workers:
            worker.process.join()


def _work(
    config: ServerConfig, listener: socket.socket, ledger: SharedLedger, mouth: Connection
) -> None:
    """One of them. Ctrl-C reaches all of a terminal's processes: the parent passes it on."""
    from evenhand.serve.running import serve

    signal.signal(signal.SIGINT, signal.SIG_IGN)

    def say_ready() -> None:
        mouth.send_bytes(_READY)
        mouth.close()

    try:
        code = serve(config, listener, on_ready=say_ready, ledger=ledger, ends_with=_orphaned)
    except EvenhandError as error:
        log.error("a worker could not start: %s", error)
        code = exit_code(error)
    except Exception:  # a fault of ours; its message may quote anything
        log.exception("a worker failed")
        code = Status.JUDGE_FAILED
    sys.exit(code)


def _orphaned(end: Callable[[], None]) -> None:
    """A parent that was killed leaves nobody to pass a signal on: end without one."""
    parent = parent_process()
    if parent is None:
        return

    def watch() -> None:
        wait([parent.sentinel])
        end()

    threading.Thread(target=watch, name="parent", daemon=True).start()
