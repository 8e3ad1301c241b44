"""A random order that a seed names: the same after a crash, and held in no memory."""

from __future__ import annotations

import math
from collections.abc import Sequence
from hashlib import blake2b
from typing import overload

from evenhand.errors import InputError

_ROUNDS = 8


def order_key(prompt: str, *, seed: int) -> int:
    """A number below 2^63 that places a prompt in the order of a seed; sort by it.

    It depends on the prompt and the seed alone: prompts that are added later fall among the
    others and change nobody's place before them.
    """
    digest = blake2b(prompt.encode(), digest_size=8, key=_key(seed)).digest()
    return int.from_bytes(digest, "big") >> 1


def shuffled_order(number: int, *, seed: int) -> ShuffledOrder:
    """The numbers from 0 to number - 1 in the order of a seed."""
    return ShuffledOrder(number, seed=seed)


class ShuffledOrder(Sequence[int]):
    """A permutation whose every place is computed when asked for.

    A Feistel network on a square of at least `number` cells, walked on until it lands inside
    (Black and Rogaway, 2002).
    """

    def __init__(self, number: int, *, seed: int) -> None:
        if number < 0:
            raise InputError(f"an order of {number} prompts was asked for; give 0 or more")
        self._number = number
        self._side = math.isqrt(max(number - 1, 0)) + 1
        self._key = _key(seed)

    def __len__(self) -> int:
        return self._number

    @overload
    def __getitem__(self, place: int) -> int: ...
    @overload
    def __getitem__(self, place: slice) -> list[int]: ...
    def __getitem__(self, place: int | slice) -> int | list[int]:
        if isinstance(place, slice):
            return [self[one] for one in range(*place.indices(self._number))]
        if not -self._number <= place < self._number:
            raise IndexError(place)
        cell = self._forth(place % self._number)
        while cell >= self._number:
            cell = self._forth(cell)
        return cell

    def index(self, value: int, start: int = 0, stop: int | None = None) -> int:
        """The place of a number: the inverse permutation."""
        if not 0 <= value < self._number:
            raise ValueError(f"{value} is not in this order")
        cell = self._back(value)
        while cell >= self._number:
            cell = self._back(cell)
        if cell not in range(self._number)[start:stop]:
            raise ValueError(f"{value} is not in this part of the order")
        return cell

    def _forth(self, cell: int) -> int:
        left, right = divmod(cell, self._side)
        for number in range(_ROUNDS):
            left, right = right, (left + self._mixed(number, right)) % self._side
        return left * self._side + right

    def _back(self, cell: int) -> int:
        left, right = divmod(cell, self._side)
        for number in reversed(range(_ROUNDS)):
            left, right = (right - self._mixed(number, left)) % self._side, left
        return left * self._side + right

    def _mixed(self, round_number: int, half: int) -> int:
        text = round_number.to_bytes(1, "big") + half.to_bytes(8, "big")
        return int.from_bytes(blake2b(text, digest_size=8, key=self._key).digest(), "big")


def _key(seed: int) -> bytes:
    return b"evenhand:%d" % seed
