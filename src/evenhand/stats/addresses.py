"""The cells of a list as the addresses of their objects: a column of few names is few addresses.

Reading a million dictionary entries takes longer than the whole fit. Columns usually hold the
same few objects over and over, and equal addresses mean the same object, so that the strings
themselves are looked at once an object instead of once a row.
"""

from __future__ import annotations

import ctypes
import sys
from typing import Any

import numpy as np
from numpy.typing import NDArray

_WORD = ctypes.sizeof(ctypes.c_void_p)
# CPython's list: reference count, type, length, then the pointer to the cells, then the space.
_CELLS_AT = 3 * _WORD
_LAYOUT_KNOWN = (
    sys.implementation.name == "cpython"
    and (3, 11) <= sys.version_info < (3, 15)
    and object.__basicsize__ == 2 * _WORD
    and list.__basicsize__ == 5 * _WORD
)
_SAMPLE = 4096
_MOST_OBJECTS = 2048
_BLOCK = 1 << 15
_TABLE_BITS_MAX = 20
_ODD = np.array(
    [0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0xD6E8FEB86659FD93, 0xA0761D6478BD642F]
    + [0xE7037ED1A0B428DB | (k << 33) for k in range(28)],
    dtype=np.uint64,
)


def addresses_of(column: Any) -> NDArray[np.uint64] | None:
    """One address a cell, of a list or an array of objects; None where they cannot be had."""
    if _WORD != 8:
        return None
    if isinstance(column, np.ndarray):
        if column.dtype != object or column.ndim != 1:
            return None
        held = np.ascontiguousarray(column)
        # A copy, since the objects' array may change while NumPy works without the lock.
        return np.ndarray(held.size, np.uint64, buffer=held.data).copy()
    if type(column) is not list:
        return None
    if _LAYOUT_KNOWN:
        # `string_at` copies under the interpreter's lock, so that the list cannot move meanwhile.
        cells = ctypes.c_size_t.from_address(id(column) + _CELLS_AT).value
        read = np.frombuffer(ctypes.string_at(cells, len(column) * _WORD), np.uint64)
        # Whatever a future build changes, a wrong address is not believed.
        if not column or (read[0] == id(column[0]) and read[-1] == id(column[-1])):
            return read
    return addresses_of(np.fromiter(column, object, len(column)))


def codes_of_addresses(
    addresses: NDArray[np.uint64],
) -> tuple[NDArray[np.uint16], NDArray[np.intp]] | None:
    """A code for each cell, and for each code a row that has it; None where objects are many."""
    step = max(1, addresses.size // _SAMPLE)
    known, rows = np.unique(addresses[::step], return_index=True)
    rows *= step
    for _ in range(4):
        if known.size > _MOST_OBJECTS:
            return None
        found = _looked_up(addresses, known)
        if found is None:
            return None
        codes, unknown = found
        if codes is not None:
            return codes, rows
        more, first = np.unique(addresses[unknown], return_index=True)
        known = np.concatenate([known, more])
        rows = np.concatenate([rows, unknown[first]])
    return None


def _looked_up(
    addresses: NDArray[np.uint64], known: NDArray[np.uint64]
) -> tuple[NDArray[np.uint16] | None, NDArray[np.intp]] | None:
    hashing = _perfect_hash(known)
    if hashing is None:
        return None
    factor, shift = hashing
    places = (known * factor) >> shift
    # An empty place holds an address that hashes elsewhere: no cell can be taken for it.
    keys = np.full(1 << (64 - int(shift)), known[0], np.uint64)
    keys[places] = known
    table = np.zeros(keys.size, np.uint16)
    table[places] = np.arange(known.size)
    codes = np.empty(addresses.size, np.uint16)
    unknown = []
    hashed = np.empty(_BLOCK, np.uint64)
    held = np.empty(_BLOCK, np.uint64)
    for start in range(0, addresses.size, _BLOCK):
        block = addresses[start : start + _BLOCK]
        place, key = hashed[: block.size], held[: block.size]
        np.multiply(block, factor, out=place)
        np.right_shift(place, shift, out=place)
        indices = place.view(np.intp)
        keys.take(indices, out=key, mode="clip")
        table.take(indices, out=codes[start : start + _BLOCK], mode="clip")
        if not np.array_equal(key, block):
            unknown.append(np.flatnonzero(key != block) + start)
    if unknown:
        return None, np.concatenate(unknown)
    return codes, np.empty(0, np.intp)


def _perfect_hash(known: NDArray[np.uint64]) -> tuple[np.uint64, np.uint64] | None:
    """A factor and a shift that send each known address to a place of its own."""
    for bits in range(max(8, int(known.size).bit_length() + 4), _TABLE_BITS_MAX + 1):
        shift = np.uint64(64 - bits)
        for factor in _ODD:
            if np.unique((known * factor) >> shift).size == known.size:
                return factor, shift
    return None
