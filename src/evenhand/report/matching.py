"""Which pair of one run is which of another: by content, by texts, by id, by prompt.

In columns: as objects, two runs of a million pairs would take a gigabyte.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from evenhand.store import ItemColumns, OutcomeColumns, Store

# How a pair was found in the other run: the same pair; the same texts, judged by other criteria or
# with another context; or other responses, under the same id or else to the same prompt.
MatchedBy = Literal["content", "texts", "id", "prompt"]
MATCHED_BY: tuple[MatchedBy, ...] = get_args(MatchedBy)
_Keys: TypeAlias = NDArray[np.int64]
_NONE = 0  # as a key: it matches nothing


@dataclass(frozen=True, slots=True)
class Matches:
    """By the first run's numbers. `how` are places in MATCHED_BY; `exchanged`: A and B have changed
    places in the second run."""

    first: NDArray[np.int64]  # the pairs' numbers
    second: NDArray[np.int64]
    how: NDArray[np.int8]
    exchanged: NDArray[np.bool_]

    def __len__(self) -> int:
        return self.first.size

    def only(self, chosen: NDArray[np.bool_]) -> Matches:
        return Matches(
            self.first[chosen], self.second[chosen], self.how[chosen], self.exchanged[chosen]
        )

    def count(self, how: MatchedBy) -> int:
        return int((self.how == MATCHED_BY.index(how)).sum())


def match_items(store: Store, first: int, second: int) -> Matches:
    """The strictest way first, then the next for what is left."""
    one, two = store.columns.items(first), store.columns.items(second)
    found = _Matching(len(one.number), len(two.number))
    found.pair_up("content", _array(one.pair_id), _array(two.pair_id))
    exchanged = np.zeros(len(one.number), dtype=np.bool_)
    if not found.whole:
        digests = store.items.text_digests(_alike(one, two, found))
        (given, turned), (theirs_given, theirs_turned) = _text_keys(one, two, digests)
        found.pair_up("texts", given, theirs_given)
        exchanged |= found.pair_up("texts", given, theirs_turned)
        by_name = found.pair_up(
            "id", _array(store.columns.item_ids(first)), _array(store.columns.item_ids(second))
        )
        by_name |= found.pair_up("prompt", _array(one.prompt_key), _array(two.prompt_key))
        partner = found.partner
        # What is there twice has no key of its own, and is no other pair for that.
        same = by_name & (_array(one.pair_id) == _array(two.pair_id)[partner])
        alike = by_name & (given != _NONE) & (given == theirs_given[partner])
        found.how[alike] = MATCHED_BY.index("texts")
        found.how[same] = MATCHED_BY.index("content")
        moved = (given != turned) & (given == theirs_turned[partner])
        exchanged |= by_name & (moved | _models_exchanged(one, two, partner))
    rows = np.flatnonzero(found.partner >= 0)
    return Matches(
        first=_array(one.number)[rows],
        second=_array(two.number)[found.partner[rows]],
        how=found.how[rows],
        exchanged=exchanged[rows],
    )


def models_of(
    items: ItemColumns | OutcomeColumns, names: dict[str, int], rows: NDArray[np.intp]
) -> NDArray[np.int64]:
    """Both models of each row, numbered by `names`, which takes in new ones; -1 is none."""
    table = np.array([*(names.setdefault(each, len(names)) for each in items.models), -1])
    return np.stack([table[_array(each)[rows]] for each in (items.model_a, items.model_b)])


class _Matching:
    """Rows of the second run by those of the first, -1 where none is found yet."""

    def __init__(self, one: int, two: int) -> None:
        self.partner = np.full(one, -1, dtype=np.intp)
        self.how = np.zeros(one, dtype=np.int8)
        self.taken = np.zeros(two, dtype=np.bool_)

    @property
    def whole(self) -> bool:
        return bool(self.taken.all() or (self.partner >= 0).all())

    def pair_up(self, how: MatchedBy, keys: _Keys, theirs: _Keys) -> NDArray[np.bool_]:
        """Which rows this matched. A key that either run has several times matches nothing: which
        is which, nobody could say."""
        (values, mine), (other_values, others) = _once(keys), _once(theirs)
        _, at, other_at = np.intersect1d(
            values, other_values, assume_unique=True, return_indices=True
        )
        mine, others = mine[at], others[other_at]
        free = (self.partner[mine] < 0) & ~self.taken[others]
        mine, others = mine[free], others[free]
        self.partner[mine] = others
        self.taken[others] = True
        self.how[mine] = MATCHED_BY.index(how)
        matched = np.zeros(self.partner.size, dtype=np.bool_)
        matched[mine] = True
        return matched


def _once(keys: _Keys) -> tuple[_Keys, NDArray[np.intp]]:
    """Keys that only one row has, with that row."""
    values, rows, counts = np.unique(keys, return_index=True, return_counts=True)
    once = (counts == 1) & (values != _NONE)
    return values[once], rows[once]


def _alike(one: ItemColumns, two: ItemColumns, found: _Matching) -> list[int]:
    """Pairs that may have the texts of one that is left: only texts to the same prompt and of the
    same lengths can be equal, so few are read."""
    shapes, others = _shapes(one), _shapes(two)
    left = np.intersect1d(shapes[found.partner < 0], others[~found.taken])
    wanted = (
        _array(items.pair_id)[np.isin(its, left)] for items, its in ((one, shapes), (two, others))
    )
    return [int(each) for each in np.unique(np.concatenate(list(wanted)))]


def _shapes(items: ItemColumns) -> _Keys:
    """A number for a prompt and two lengths; that others have the same by chance does no harm."""
    a, b = (_array(each).astype(np.int64) for each in (items.length_a, items.length_b))
    return _array(items.prompt_key) ^ (np.minimum(a, b) << 32) ^ np.maximum(a, b)


def _text_keys(
    one: ItemColumns, two: ItemColumns, digests: Mapping[int, tuple[bytes, bytes]]
) -> list[tuple[_Keys, _Keys]]:
    """Of each run's texts as they are given, and with A and B exchanged."""
    codes: dict[bytes, int] = {}
    known = sorted(digests)
    coded = [[codes.setdefault(each, len(codes) + 1) for each in digests[pair]] for pair in known]
    ids = np.array([*known, np.iinfo(np.int64).max])
    keys = np.array([*coded, [_NONE, _NONE]], dtype=np.int64)
    places = [np.searchsorted(ids, _array(each.pair_id)) for each in (one, two)]
    read = [
        np.where(ids[at] == _array(each.pair_id), at, len(known))
        for at, each in zip(places, (one, two), strict=True)
    ]
    return [(keys[at, 0], keys[at, 1]) for at in read]


def _models_exchanged(
    one: ItemColumns, two: ItemColumns, partner: NDArray[np.intp]
) -> NDArray[np.bool_]:
    names: dict[str, int] = {}
    model_a, model_b = models_of(one, names, np.arange(partner.size))
    their_a, their_b = models_of(two, names, partner)
    named = (model_a >= 0) & (model_b >= 0) & (their_a >= 0) & (their_b >= 0)
    stays = (model_a == their_a) | (model_b == their_b)
    # One is enough: a new version may stand where its baseline stood.
    exchanged: NDArray[np.bool_] = named & ~stays & ((model_a == their_b) | (model_b == their_a))
    return exchanged


def _array(column: object) -> NDArray[np.int64]:
    return np.asarray(column)
