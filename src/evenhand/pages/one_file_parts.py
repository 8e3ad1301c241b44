"""Pairs of a report in one file, packed some together; by several processes if there are many."""

from __future__ import annotations

import base64
import multiprocessing
import os
import re
import signal
import zlib
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import dataclass, replace
from html.entities import html5
from pathlib import Path
from types import TracebackType
from typing import Self

import orjson

from evenhand.pages.one_file_choice import Choice
from evenhand.pages.one_file_pair import HeldPair, PairReader
from evenhand.pages.wording import Language
from evenhand.report.lookup import find_run
from evenhand.store import RunRecord, Store, open_store

# A process takes a second to come up: fewer parts are packed sooner without.
_PARTS_FOR_PROCESSES = 40
_MOST_PROCESSES = 8
# `&eacute;` in a text: Markdown shows the character that HTML knows by that name.
_REFERENCE = re.compile(rb"&([A-Za-z][A-Za-z0-9]{1,31};)")


@dataclass(frozen=True, slots=True)
class Part:
    """`packed`: gzip in base64, in which no sign means anything to HTML; `entities` are names of
    characters that its texts may use, with their `;`. The pairs are those in it, for the table
    alone."""

    packed: str
    entities: frozenset[str]
    pairs: tuple[HeldPair, ...]


class Parts:
    """All of them in their order. Other processes, where there are any, begin at once."""

    def __init__(
        self,
        store: Store,
        run: RunRecord,
        choice: Choice,
        *,
        language: Language = "en",
        processes: int = 1,
    ) -> None:
        self._numbers = list(choice.parts())
        self._reader = PairReader(store, run, text_limit=choice.text_limit, language=language)
        self._pool: ProcessPoolExecutor | None = None
        count = min(processes, _MOST_PROCESSES)
        # A store that is a file can be read by several processes.
        if (
            count > 1
            and len(self._numbers) >= _PARTS_FOR_PROCESSES
            and Path(store.address).is_file()
        ):
            context = multiprocessing.get_context("spawn")
            begun = (store.address, run.name, choice.text_limit, language)
            self._pool = ProcessPoolExecutor(count, context, _begin, begun)
            self._made = self._pool.map(_made, self._numbers, chunksize=4)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._pool is not None:
            # What is still waiting is of no use to anybody once this ends early.
            self._pool.shutdown(cancel_futures=True)

    def __iter__(self) -> Iterator[Part]:
        return _in_turn(self._reader, self._numbers) if self._pool is None else self._made


def usable_processes() -> int:
    """As many as this process may use processors."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on every system
        return os.cpu_count() or 1


def _in_turn(reader: PairReader, parts: Sequence[Sequence[int]]) -> Iterator[Part]:
    """One is packed while the next is read: packing leaves Python to others."""
    with ThreadPoolExecutor(max_workers=1) as packer:
        waiting = None
        for numbers in parts:
            pairs = tuple(reader.read(numbers))
            following = (packer.submit(_packed, pairs), pairs)
            if waiting is not None:
                yield _part(waiting[0].result(), waiting[1])
            waiting = following
        if waiting is not None:
            yield _part(waiting[0].result(), waiting[1])


def _packed(pairs: Sequence[HeldPair]) -> tuple[str, frozenset[str]]:
    packer = zlib.compressobj(6, zlib.DEFLATED, 31)
    texts = orjson.dumps([pair.whole for pair in pairs])
    packed = packer.compress(texts) + packer.flush()
    named = frozenset(name.decode() for name in _REFERENCE.findall(texts))
    return base64.b64encode(packed).decode(), named & html5.keys()


def _part(packed: tuple[str, frozenset[str]], pairs: Sequence[HeldPair]) -> Part:
    """Without the texts, which are packed."""
    light = tuple(replace(pair, whole={"cut": pair.whole["cut"]}) for pair in pairs)
    return Part(*packed, light)


# In several processes ------------------------------------------------------------------------

_reader: PairReader | None = None


def _begin(address: str, run: str, text_limit: int, language: Language) -> None:
    global _reader
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the process that asked is told, and ends this
    store = open_store(Path(address), create=False)
    _reader = PairReader(store, find_run(store, run), text_limit=text_limit, language=language)


def _made(numbers: Sequence[int]) -> Part:
    assert _reader is not None  # noqa: S101 - _begin came first
    pairs = tuple(_reader.read(numbers))
    return _part(_packed(pairs), pairs)
