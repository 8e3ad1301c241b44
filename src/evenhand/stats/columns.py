"""Columns of any kind (lists, NumPy, pandas, Arrow) as validated codes, integers or floats. Neither
pandas nor Arrow is imported: their columns are recognised by their methods.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from evenhand.errors import InputError
from evenhand.messages import Message

Floats: TypeAlias = NDArray[np.float64]
CellCodes: TypeAlias = NDArray[Any]

_MISSING = -1
_BLOCK = 1 << 13
# Mixes the words of fixed-width texts; equality is checked afterwards.
_MIX = np.uint64(0x9E3779B97F4A7C15)
_SAMPLE = 4096
_MOST_DISTINCT = 2048
_LOOKUP_BLOCK = 1 << 15
_TABLE_BITS_MAX = 20
_ODD = np.array(
    [0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0xD6E8FEB86659FD93, 0xA0761D6478BD642F]
    + [0xE7037ED1A0B428DB | (k << 33) for k in range(28)],
    dtype=np.uint64,
)


@dataclass(frozen=True, slots=True)
class Encoded:
    """`values[codes[row]]` is the cell of a row; without missing cells every code is >= 0."""

    codes: CellCodes
    values: list[Any]

    def __len__(self) -> int:
        return len(self.codes)


def encode(column: Any, name: str) -> Encoded:
    """Number the distinct cells; missing cells (None, NaN, null) are refused."""
    encoded = _encoded(column, name)
    for code, value in enumerate(encoded.values):
        if is_missing(value):
            row = int(np.argmax(encoded.codes == code))
            raise InputError(_missing(name, row, value))
    return encoded


def numbers(column: Any, name: str) -> NDArray[np.float64] | None:
    """The column as floats; None if it holds anything but numbers."""
    column = _unwrapped(column)
    if hasattr(column, "dictionary_encode"):  # Arrow
        kind = str(column.type)
        if not kind.startswith(("int", "uint", "float", "double", "halffloat", "bool")):
            return None
        if column.null_count:
            row = int(np.argmax(np.asarray(column.is_null())))
            raise InputError(_missing(name, row, None))
        return np.asarray(column.to_numpy(zero_copy_only=False), dtype=np.float64)
    if not isinstance(column, np.ndarray) or column.dtype == object:
        first = next((cell for cell in column if not is_missing(cell)), None)
        if isinstance(first, str) or first is None:
            return None
        column = np.asarray(column.tolist() if isinstance(column, np.ndarray) else column)
        if column.dtype == object:
            for row, cell in enumerate(column):
                if is_missing(cell):
                    raise InputError(_missing(name, row, cell))
    if column.dtype.kind in "biuf":
        return np.asarray(column, dtype=np.float64)
    return None


def float_column(
    values: Any,
    *,
    name: str,
    low: float = -math.inf,
    high: float = math.inf,
    missing: bool = False,
) -> Floats:
    """Finite numbers within limits; with `missing`, None and NaN stand for no number."""
    if high < math.inf:
        wanted = Message("stats.numbers_between", low=low, high=high)
    elif low > -math.inf:
        wanted = Message("stats.numbers_from", low=low)
    else:
        wanted = Message("stats.numbers_finite")
    if missing:
        wanted = Message("stats.or_none", wanted=wanted)
    try:
        column = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError.of("stats.no_numbers", name=name, wanted=wanted) from None
    if column.ndim != 1:
        raise InputError.of(
            "stats.numbers_not_one_column", name=name, ndim=column.ndim, wanted=wanted
        )
    fine = np.isfinite(column) & (column >= low) & (column <= high)
    if missing:
        fine |= np.isnan(column)
    if not fine.all():
        row = int(np.argmin(fine))
        raise InputError.of(
            "stats.number_outside", name=name, row=row, wanted=wanted, value=column[row]
        )
    return column


def mask_column(values: Any, rows: int, *, name: str, default: bool) -> NDArray[np.bool_]:
    if values is None:
        return np.full(rows, default)
    mask = np.asarray(values)
    if mask.ndim != 1 or mask.size != rows:
        raise InputError.of("stats.mask_shape", name=name, rows=rows, shape=str(mask.shape))
    if mask.size == 0:
        return np.zeros(0, dtype=np.bool_)
    if mask.dtype != np.bool_:
        raise InputError.of("stats.mask_kind", name=name, dtype=mask.dtype)
    return mask


def whole_numbers(column: Any) -> NDArray[Any] | None:
    """The column as an integer array, if it already is one."""
    column = _unwrapped(column)
    if hasattr(column, "dictionary_encode"):
        if str(column.type).startswith(("int", "uint")) and not column.null_count:
            return np.asarray(column.to_numpy(zero_copy_only=False))
        return None
    if not isinstance(column, np.ndarray) and isinstance(next(iter(column), None), int):
        column = np.asarray(column)
    if isinstance(column, np.ndarray) and column.dtype.kind in "iu":
        return column.astype(column.dtype.newbyteorder("="), copy=False)
    return None


def length(column: Any, name: str) -> int:
    if isinstance(column, (str, bytes)) or not hasattr(column, "__len__"):
        raise InputError.of("stats.no_column", name=name, kind=type(column).__name__)
    if getattr(column, "ndim", 1) != 1:
        raise InputError.of("stats.column_dimensions", name=name, ndim=column.ndim)
    return len(column)


def _encoded(column: Any, name: str) -> Encoded:
    column = _unwrapped(column)
    if hasattr(column, "dictionary_encode"):
        return _of_arrow(column, name)
    if hasattr(column, "factorize"):
        return _of_pandas(column, name)
    if isinstance(column, np.ndarray) and column.dtype != object:
        return _of_array(column)
    return _of_objects(column)


def _unwrapped(column: Any) -> Any:
    """A pandas column as its NumPy array, if it has one."""
    if hasattr(column, "factorize") and isinstance(getattr(column, "dtype", None), np.dtype):
        return column.to_numpy()
    return column


def _of_objects(column: Sequence[Any]) -> Encoded:
    addresses = object_addresses(column)
    shared = None if addresses is None else codes_of_hashes(addresses)
    if shared is None:
        return _of_each(column)
    codes, rows = shared
    objects = [column[row] for row in rows]
    places: dict[Any, int] = {}
    # Equal texts may be different objects: they share a number.
    merged = np.array([places.setdefault(_hashable(cell), len(places)) for cell in objects])
    if len(places) == len(objects):
        return Encoded(codes, objects)
    return Encoded(merged.astype(np.uint16)[codes], list(places))


def object_addresses(column: Any) -> NDArray[np.uint64] | None:
    """One address a cell, of a list or an array of objects; None where they cannot be had.

    Equal addresses are the same object, so that a column of few names is looked at once an object
    instead of once a row: a million dictionary entries take longer than the whole fit.
    """
    if type(column) is list:
        # A parser makes an object of every cell: then a look at each is all there is to do.
        sample = column[:: max(1, len(column) // _SAMPLE)]
        if len(set(map(id, sample))) > _MOST_DISTINCT:
            return None
        column = np.fromiter(column, object, len(column))
    if not isinstance(column, np.ndarray) or column.dtype != object or column.ndim != 1:
        return None
    if column.itemsize != 8:
        return None
    held = np.ascontiguousarray(column)
    # A copy, since the objects' array may change while NumPy works without the lock.
    return np.ndarray(held.size, np.uint64, buffer=held.data).copy()


def codes_of_hashes(
    hashes: NDArray[np.uint64],
) -> tuple[NDArray[np.uint16], NDArray[np.intp]] | None:
    """A code for each number, and for each code a row that has it; None where there are many."""
    step = max(1, hashes.size // _SAMPLE)
    known, rows = np.unique(hashes[::step], return_index=True)
    rows *= step
    for _ in range(4):
        if known.size > _MOST_DISTINCT:
            return None
        looked_up = _look_up(hashes, known)
        if looked_up is None:
            return None
        codes, unknown = looked_up
        if codes is not None:
            return codes, rows
        more, first = np.unique(hashes[unknown], return_index=True)
        known = np.concatenate([known, more])
        rows = np.concatenate([rows, unknown[first]])
    return None


def _look_up(
    hashes: NDArray[np.uint64], known: NDArray[np.uint64]
) -> tuple[NDArray[np.uint16] | None, NDArray[np.intp]] | None:
    hashing = _perfect_hash(known)
    if hashing is None:
        return None
    factor, shift = hashing
    places = (known * factor) >> shift
    # An empty place holds a number that hashes elsewhere: no cell can be taken for it.
    keys = np.full(1 << (64 - int(shift)), known[0], np.uint64)
    keys[places] = known
    table = np.zeros(keys.size, np.uint16)
    table[places] = np.arange(known.size)
    codes = np.empty(hashes.size, np.uint16)
    unknown = []
    hashed = np.empty(_LOOKUP_BLOCK, np.uint64)
    held = np.empty(_LOOKUP_BLOCK, np.uint64)
    for start in range(0, hashes.size, _LOOKUP_BLOCK):
        block = hashes[start : start + _LOOKUP_BLOCK]
        place, key = hashed[: block.size], held[: block.size]
        np.multiply(block, factor, out=place)
        np.right_shift(place, shift, out=place)
        indices = place.view(np.intp)
        keys.take(indices, out=key, mode="clip")
        table.take(indices, out=codes[start : start + _LOOKUP_BLOCK], mode="clip")
        if not np.array_equal(key, block):
            unknown.append(np.flatnonzero(key != block) + start)
    if unknown:
        return None, np.concatenate(unknown)
    return codes, np.empty(0, np.intp)


def _perfect_hash(known: NDArray[np.uint64]) -> tuple[np.uint64, np.uint64] | None:
    """A factor and a shift that send each known number to a place of its own."""
    for bits in range(max(8, int(known.size).bit_length() + 4), _TABLE_BITS_MAX + 1):
        shift = np.uint64(64 - bits)
        for factor in _ODD:
            if np.unique((known * factor) >> shift).size == known.size:
                return factor, shift
    return None


class _Numbering(dict[Any, int]):
    def __missing__(self, cell: Any) -> int:
        self[cell] = number = len(self)
        return number


def _of_each(column: Iterable[Any]) -> Encoded:
    cells = column if isinstance(column, list) else list(column)
    numbering = _Numbering()
    try:
        try:
            # The quickest way from an iterator of small numbers into memory.
            codes: CellCodes = np.frombuffer(bytes(map(numbering.__getitem__, cells)), np.uint8)
        except ValueError:  # more than 256 of them
            codes = np.fromiter(map(numbering.__getitem__, cells), np.int32, len(cells))
    except TypeError:
        for cell in cells:
            _hashable(cell)
        raise
    return Encoded(codes, list(numbering))


def _hashable(cell: Any) -> Any:
    try:
        hash(cell)
    except TypeError:
        raise InputError.of("stats.cell_kind", kind=type(cell).__name__) from None
    return cell


def _of_array(column: NDArray[Any]) -> Encoded:
    if column.dtype.kind in "US" and column.dtype.itemsize:
        return _of_fixed_width(column)
    if (
        column.dtype.kind in "iu"
        and column.min(initial=0) >= 0
        and column.max(initial=0) < max(_BLOCK, 4 * column.size)
    ):
        present = np.bincount(column) > 0
        places = np.cumsum(present) - 1
        return Encoded(places.take(column), np.flatnonzero(present).tolist())
    if column.dtype.kind in "biuf":
        values, codes = np.unique(column, return_inverse=True)
        return Encoded(codes.astype(np.int32, copy=False), values.tolist())
    return _of_each(column.tolist())


def _of_fixed_width(column: NDArray[Any]) -> Encoded:
    """Texts of one width, distinguished by a hash of their bytes and then compared whole."""
    column = np.ascontiguousarray(column)
    width = column.dtype.itemsize
    word: Any = np.uint64 if width % 8 == 0 else np.uint32 if width % 4 == 0 else np.uint8
    words = np.ndarray((column.size, width // np.dtype(word).itemsize), word, buffer=column.data)
    hashes = np.empty(column.size, np.uint64)
    for start in range(0, column.size, _BLOCK):
        block = words[start : start + _BLOCK].astype(np.uint64, copy=False)
        # A text's words times odd numbers: equal texts, equal sums, whatever the block.
        hashes[start : start + _BLOCK] = block @ _factors(words.shape[1])
    coded = codes_of_hashes(hashes)
    if coded is not None:
        codes, rows = coded
        if _all_alike(words, words[rows], codes):
            return Encoded(codes, column[rows].tolist())
    return _of_each(column.tolist())


def _factors(count: int) -> NDArray[np.uint64]:
    odd = np.arange(1, 2 * count, 2, dtype=np.uint64)
    return odd * _MIX | np.uint64(1)


def _all_alike(words: NDArray[Any], kinds: NDArray[Any], codes: CellCodes) -> bool:
    for start in range(0, len(words), _BLOCK):
        part = codes[start : start + _BLOCK]
        alike = kinds.take(part, axis=0, mode="clip") == words[start : start + _BLOCK]
        if not alike.all():
            return False
    return True


def _of_pandas(column: Any, name: str) -> Encoded:
    inside: Any = getattr(column, "array", None)
    if hasattr(inside, "__arrow_array__") and "string" in type(inside).__name__.lower():
        held = inside.__arrow_array__()
        if hasattr(held, "dictionary_encode"):
            return _of_arrow(held, name)
    codes, values = column.factorize()
    codes = np.asarray(codes)
    if codes.size and codes.min() == _MISSING:
        raise InputError(_missing(name, int(np.argmax(codes == _MISSING)), None))
    return Encoded(codes, list(values))


def _of_arrow(column: Any, name: str) -> Encoded:
    if column.null_count:
        row = int(np.argmax(np.asarray(column.is_null())))
        raise InputError(_missing(name, row, None))
    coded = column if hasattr(column, "indices") else column.dictionary_encode()
    if hasattr(coded, "unify_dictionaries"):
        coded = coded.unify_dictionaries().combine_chunks()
    if hasattr(coded, "chunks"):  # a single type of several chunks, or of none
        coded = coded.chunk(0)
    codes = np.asarray(coded.indices)
    values = coded.dictionary.to_pylist()
    if str(column.type).startswith("dictionary"):
        # A column that was filtered keeps the whole dictionary: what no row holds is no value.
        used = np.bincount(codes, minlength=len(values)) > 0
        if not used.all():
            codes = (np.cumsum(used) - 1).take(codes)
            values = [value for value, held in zip(values, used, strict=True) if held]
    return Encoded(codes, values)


def is_missing(value: Any) -> bool:
    """None, NaN, or pandas' NA, whose comparison raises."""
    if value is None:
        return True
    try:
        return bool(value != value)
    except TypeError:
        return True


def _missing(name: str, row: int, value: Any) -> Message:
    shown = "NaN" if isinstance(value, float) else str(value)
    return Message("stats.cell_missing", name=name, value=shown, row=row + 1)
