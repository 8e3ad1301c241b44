"""Charts that were drawn: kept while there is room, and drawn one at a time, since it takes a
processor for a second."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Hashable

from starlette.datastructures import State

from evenhand.serve.admission import Admission

_MOST_BYTES = 32 * 1024 * 1024
_AT_ONCE = 1
_WAITING = 64


class Drawings:
    """Of one process; what was used last is kept longest."""

    def __init__(self, *, most_bytes: int = _MOST_BYTES) -> None:
        self._most_bytes = most_bytes
        self._bytes = 0
        self._kept: OrderedDict[Hashable, bytes] = OrderedDict()
        self._turns = Admission(_AT_ONCE, _WAITING)

    @property
    def kept_bytes(self) -> int:
        return self._bytes

    async def drawn(self, key: Hashable, draw: Callable[[], bytes]) -> bytes:
        """ServerBusy where too many wait to be drawn."""
        found = self._recalled(key)
        if found is not None:
            return found
        async with self._turns.admitted():
            found = self._recalled(key)  # somebody else may have waited for the same
            if found is None:
                found = await asyncio.to_thread(draw)
                self._keep(key, found)
        return found

    def _recalled(self, key: Hashable) -> bytes | None:
        found = self._kept.get(key)
        if found is not None:
            self._kept.move_to_end(key)
        return found

    def _keep(self, key: Hashable, picture: bytes) -> None:
        if len(picture) > self._most_bytes:
            return
        self._kept[key] = picture
        self._bytes += len(picture)
        while self._bytes > self._most_bytes:
            _, oldest = self._kept.popitem(last=False)
            self._bytes -= len(oldest)


def drawings_of(state: State) -> Drawings:
    """The app's own; made at the first chart."""
    found = getattr(state, "drawings", None)
    if isinstance(found, Drawings):
        return found
    made = state.drawings = Drawings()
    return made
