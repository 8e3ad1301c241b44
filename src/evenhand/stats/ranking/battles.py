"""Columns of battles, or grouped counts, validated and summed into a tally."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenhand.errors import InputError
from evenhand.stats.columns import CellCodes, Encoded, encode, length, numbers, whole_numbers
from evenhand.stats.ranking.tally import BattleTally, Entries, tally_of_outcomes, tally_of_rows

_WINNER_BLOCK = 1 << 15
_SEPARATORS = str.maketrans("", "", "-_. ()")
_WORDS: Mapping[str, float] = {
    **dict.fromkeys(("a", "modela", "responsea", "outputa", "answera", "assistanta"), 1.0),
    **dict.fromkeys(("model1", "response1", "output1", "answer1", "left", "a>b", "a>>b"), 1.0),
    **dict.fromkeys(("b", "modelb", "responseb", "outputb", "answerb", "assistantb"), 0.0),
    **dict.fromkeys(("model2", "response2", "output2", "answer2", "right", "b>a", "b>>a"), 0.0),
    **dict.fromkeys(("tie", "tied", "draw", "equal", "a=b", "tiebothbad", "bothbad"), 0.5),
    "bothgood": 0.5,
}


@dataclass(frozen=True, slots=True)
class Preferences:
    """A's score of each row: `kinds[codes]` if there are few kinds, else `kinds`."""

    kinds: NDArray[np.float64]
    codes: CellCodes | None = None

    def each(self) -> NDArray[np.float64]:
        return self.kinds if self.codes is None else self.kinds[self.codes]

    @property
    def fractional(self) -> bool:
        return not np.isin(self.kinds, (0.0, 0.5, 1.0)).all()


def read_winners(
    winner: Any, *, model_a: CellCodes, model_b: CellCodes, models: Mapping[str, int]
) -> Preferences:
    """`models` gives each name its code in `model_a` and `model_b`."""
    given = numbers(winner, "winner")
    if given is not None:
        return _of_numbers(given)
    encoded = encode(winner, "winner")
    kinds = np.empty(len(encoded.values))
    named: list[tuple[int, int]] = []
    for code, value in enumerate(encoded.values):
        word = _WORDS.get(value.lower().translate(_SEPARATORS)) if isinstance(value, str) else None
        model = models.get(str(value))
        if word is None and model is None:
            row = int(np.argmax(encoded.codes == code))
            raise InputError.of("stats.winner_unknown", value=value, row=row + 1)
        kinds[code] = np.nan if word is None else word
        if model is not None:
            named.append((code, model))
    if not named:
        return Preferences(kinds, encoded.codes)
    each = kinds[encoded.codes]
    for code, model in named:
        _read_name(each, np.flatnonzero(encoded.codes == code), model, model_a, model_b, encoded)
    return Preferences(each)


def _read_name(
    each: NDArray[np.float64],
    rows: NDArray[np.intp],
    model: int,
    model_a: CellCodes,
    model_b: CellCodes,
    encoded: Any,
) -> None:
    """Score the rows that name a model; a word spelled alike must agree."""
    by_name = np.where(model_a[rows] == model, 1.0, np.where(model_b[rows] == model, 0.0, np.nan))
    by_word = each[rows]
    value = encoded.values[int(encoded.codes[rows[0]])]
    wrong = np.isnan(by_name) & np.isnan(by_word)
    if wrong.any():
        row = int(rows[np.argmax(wrong)])
        raise InputError.of("stats.winner_no_model", value=value, row=row + 1)
    unlike = ~np.isnan(by_name) & ~np.isnan(by_word) & (by_name != by_word)
    if unlike.any():
        row = int(rows[np.argmax(unlike)])
        raise InputError.of("stats.winner_ambiguous", value=value, row=row + 1)
    each[rows] = np.where(np.isnan(by_name), by_word, by_name)


def _of_numbers(given: NDArray[np.float64]) -> Preferences:
    halved = True
    codes = np.empty(given.size, np.uint8)
    for start in range(0, given.size, _WINNER_BLOCK):
        block = given[start : start + _WINNER_BLOCK]
        if not (block.min() >= 0 and block.max() <= 1):  # NaN is neither
            row = start + int(np.argmin((block >= 0) & (block <= 1)))
            raise InputError.of("stats.preference_outside", row=row + 1, value=given[row])
        if halved:
            halves = block * 2
            halved = bool((np.trunc(halves) == halves).all())
            codes[start : start + _WINNER_BLOCK] = halves
    return Preferences(np.array([0.0, 0.5, 1.0]), codes) if halved else Preferences(given)


# A fit holds a few square matrices of this many models: 200 MB each at the limit.
MODELS_MAX = 5_000
_BLOCK = 1 << 17
# Sums keep 16 digits: lighter battles would be lost in their rounding.
_WIDEST_WEIGHTS = 1e12
_LARGEST_WEIGHT = 1e100


@dataclass(frozen=True, slots=True)
class Battles:
    """Validated battles in their order."""

    models: tuple[str, ...]
    model_a: NDArray[np.intp]
    model_b: NDArray[np.intp]
    score: NDArray[np.float64]
    weight: NDArray[np.float64] | None
    fractional: bool


def encode_battles(
    model_a: Any,
    model_b: Any,
    winner: Any,
    *,
    weight: Any = None,
    models: Sequence[str] | None = None,
) -> Battles:
    _check_lengths(model_a=model_a, model_b=model_b, winner=winner, weight=weight)
    names, (a, b) = encode_models(model_a, model_b, models=models)
    return _checked(names, a, b, _preferences(names, a, b, winner), weight)


def tally_battles(
    model_a: Any,
    model_b: Any,
    winner: Any,
    *,
    prompt: Any = None,
    weight: Any = None,
    models: Sequence[str] | None = None,
    keep_rows: bool = False,
) -> BattleTally:
    """`keep_rows` keeps each row with a weight or a fraction as its own cluster."""
    _check_lengths(model_a=model_a, model_b=model_b, winner=winner, prompt=prompt, weight=weight)
    names, (a, b) = encode_models(model_a, model_b, models=models)
    preferences = _preferences(names, a, b, winner)
    if weight is None and preferences.codes is not None:
        counts = _count(a, b, preferences, preferences.codes, len(names))
        refuse_self(counts.sum(axis=0), names, a, b)
        entries = None
        if prompt is not None:
            entries = _entries(a, b, preferences.each(), None, prompt)
        return tally_of_outcomes(names, counts, entries=entries)
    battles = _checked(names, a, b, preferences, weight)
    entries = None
    if prompt is not None or keep_rows:
        entries = _entries(battles.model_a, battles.model_b, battles.score, battles.weight, prompt)
    return tally_of_rows(
        names,
        battles.model_a,
        battles.model_b,
        score=battles.score,
        weight=battles.weight,
        fractional=battles.fractional,
        entries=entries,
    )


def _preferences(names: tuple[str, ...], a: CellCodes, b: CellCodes, winner: Any) -> Preferences:
    places = {name: place for place, name in enumerate(names)}
    return read_winners(winner, model_a=a, model_b=b, models=places)


def _checked(
    names: tuple[str, ...], a: CellCodes, b: CellCodes, preferences: Preferences, weight: Any
) -> Battles:
    weights = None if weight is None else _read_weights(weight)
    if weights is not None and not weights.any():
        raise InputError.of("stats.weights_all_zero")
    first, second = a.astype(np.intp), b.astype(np.intp)
    refuse_self(first == second, names, a, b)
    score = preferences.each()
    return Battles(names, first, second, score, weights, preferences.fractional)


def encode_models(
    model_a: Any, model_b: Any, *, models: Sequence[str] | None
) -> tuple[tuple[str, ...], tuple[CellCodes, CellCodes]]:
    """The models' names in order, and both columns as indexes into them."""
    if models is not None:
        names = tuple(models)
        if len(set(names)) != len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise InputError.of("stats.model_listed_twice", name=twice)
        coded = (whole_numbers(model_a), whole_numbers(model_b))
        if coded[0] is not None and coded[1] is not None:
            for name, column in (("model_a", coded[0]), ("model_b", coded[1])):
                _check_places(column, name, len(names))
            return _limited(names), (_signed(coded[0]), _signed(coded[1]))
        columns = encode(model_a, "model_a"), encode(model_b, "model_b")
        return _limited(names), _places(columns, names)
    columns = encode(model_a, "model_a"), encode(model_b, "model_b")
    names = tuple(sorted({str(value) for column in columns for value in column.values}))
    return _limited(names), _places(columns, names)


def _places(
    columns: tuple[Encoded, Encoded], names: tuple[str, ...]
) -> tuple[CellCodes, CellCodes]:
    places = {name: place for place, name in enumerate(names)}
    return _placed(columns[0], "model_a", places), _placed(columns[1], "model_b", places)


def _placed(column: Encoded, name: str, places: Mapping[str, int]) -> CellCodes:
    table = np.empty(len(column.values), np.uint16)
    for code, value in enumerate(column.values):
        place = places.get(str(value))
        if place is None:
            row = int(np.argmax(column.codes == code))
            raise InputError.of("stats.model_unlisted", name=name, value=value, row=row + 1)
        table[code] = place
    return table.take(column.codes)


def _limited(names: tuple[str, ...]) -> tuple[str, ...]:
    if len(names) > MODELS_MAX:
        raise InputError.of("stats.too_many_models", n=len(names), most=MODELS_MAX)
    return names


def _check_places(column: NDArray[Any], name: str, size: int) -> None:
    # As unsigned, a negative code is a very large one.
    if column.size and column.view(f"u{column.dtype.itemsize}").max() >= size:
        row = int(np.argmax((column < 0) | (column >= size)))
        raise InputError.of(
            "stats.model_code_outside", name=name, row=row + 1, size=size, value=column[row]
        )


def _signed(column: NDArray[Any]) -> NDArray[Any]:
    """NumPy adds uint64 to other integers as floats."""
    return column.astype(np.int64) if column.dtype == np.uint64 else column


def _check_lengths(**columns: Any) -> None:
    lengths = {name: length(column, name) for name, column in columns.items() if column is not None}
    if len(set(lengths.values())) > 1:
        listed = ", ".join(f"{name} {rows:,}" for name, rows in lengths.items())
        raise InputError.of("stats.columns_differ", lengths=listed)
    if not next(iter(lengths.values())):
        raise InputError.of("stats.no_battles")


def _read_weights(weight: Any) -> NDArray[np.float64]:
    weights = numbers(weight, "weight")
    if weights is None:
        raise InputError.of("stats.column_without_numbers", name="weight")
    fine = np.isfinite(weights) & (weights >= 0)
    if not fine.all():
        row = int(np.argmin(fine))
        raise InputError.of("stats.weight_negative", row=row + 1, weight=weights[row])
    least, most = weights.min(where=weights > 0, initial=np.inf), weights.max(initial=0.0)
    if most > _LARGEST_WEIGHT or least < most / _WIDEST_WEIGHTS:
        raise InputError.of(
            "stats.weights_too_wide",
            least=least,
            most=most,
            largest=_LARGEST_WEIGHT,
            widest=_WIDEST_WEIGHTS,
        )
    return weights


def _count(
    a: CellCodes, b: CellCodes, preferences: Preferences, codes: CellCodes, size: int
) -> NDArray[np.int64]:
    """The outcomes of each pair, counted a block of rows at a time."""
    outcome = (preferences.kinds * 2).astype(np.uint8)
    winners = outcome.take(codes) if (outcome != np.arange(len(outcome))).any() else codes
    cells = 3 * size * size
    block = min(len(a), max(_BLOCK, 2 * cells))
    counts = np.zeros(cells, np.int64)
    place = np.empty(block, np.intp)
    for start in range(0, len(a), block):
        rows = slice(start, start + block)
        winner = winners[rows]
        place = place[: len(winner)]
        place[:] = winner
        place *= size
        place += a[rows]
        place *= size
        place += b[rows]
        counts += np.bincount(place, minlength=cells)
    return counts.reshape(3, size, size)


def refuse_self(
    self_battles: NDArray[Any], names: tuple[str, ...], a: CellCodes, b: CellCodes
) -> None:
    """`self_battles` marks them: a matrix of models on its diagonal, or each row."""
    own = self_battles.diagonal() if self_battles.ndim == 2 else self_battles
    if own.any():
        row = int(np.argmax(np.asarray(a) == np.asarray(b)))
        raise InputError.of("stats.model_against_itself", row=row + 1, name=names[int(a[row])])


def _entries(
    a: CellCodes,
    b: CellCodes,
    score: NDArray[np.float64],
    weights: NDArray[np.float64] | None,
    prompt: Any,
) -> Entries:
    weight = np.ones(len(a)) if weights is None else weights
    first, second = a.astype(np.intp), b.astype(np.intp)
    if prompt is None:
        clusters, cluster = len(a), np.arange(len(a))
    else:
        prompts = encode(prompt, "prompt")
        clusters, cluster = len(prompts.values), np.asarray(prompts.codes).astype(np.intp)
    used = weight > 0
    if not used.all():
        first, second, score, weight = first[used], second[used], score[used], weight[used]
        _, cluster = np.unique(cluster[used], return_inverse=True)
        return Entries(first, second, score, weight, cluster, int(cluster.max()) + 1)
    return Entries(first, second, score, weight, cluster, clusters)


def tally_counts(
    models: Sequence[str],
    model_a: Any,
    model_b: Any,
    *,
    wins_a: Any,
    wins_b: Any,
    halves: Any = None,
    prompt: Any = None,
) -> BattleTally:
    """Counts grouped by a database, as a fit's tally."""
    _check_lengths(
        model_a=model_a,
        model_b=model_b,
        wins_a=wins_a,
        wins_b=wins_b,
        halves=halves,
        prompt=prompt,
    )
    names, (a, b) = encode_models(model_a, model_b, models=models)
    won, lost = _count_column(wins_a, "wins_a"), _count_column(wins_b, "wins_b")
    tied = np.zeros(len(a), np.int64) if halves is None else _count_column(halves, "halves")
    first, second = a.astype(np.intp), b.astype(np.intp)
    size = len(names)
    pair = first * size + second
    outcomes = np.stack([_summed(pair, count, size * size) for count in (lost, tied, won)]).reshape(
        3, size, size
    )
    if not outcomes.any():
        raise InputError.of("stats.counts_all_zero")
    refuse_self(outcomes.sum(axis=0), names, a, b)
    entries = None
    if prompt is not None:
        prompts = encode(prompt, "prompt")
        entries = _count_entries(first, second, (won, tied, lost), np.asarray(prompts.codes))
    return tally_of_outcomes(names, outcomes, entries=entries)


def _count_column(column: Any, name: str) -> NDArray[np.int64]:
    given = numbers(column, name)
    if given is None:
        raise InputError.of("stats.column_without_numbers", name=name)
    with np.errstate(invalid="ignore"):
        counts = given.astype(np.int64)
    fine = (counts == given) & (counts >= 0)
    if not fine.all():
        row = int(np.argmin(fine))
        raise InputError.of("stats.count_no_integer", name=name, row=row + 1, value=given[row])
    return counts


def _summed(pair: NDArray[np.intp], count: NDArray[np.int64], cells: int) -> NDArray[np.int64]:
    sums = np.bincount(pair, weights=count.astype(np.float64), minlength=cells)
    return sums.round().astype(np.int64)


def _count_entries(
    first: NDArray[np.intp],
    second: NDArray[np.intp],
    counts: tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]],
    prompt: NDArray[Any],
) -> Entries:
    """One entry for each outcome of each row that occurred."""
    held = [np.flatnonzero(count) for count in counts]
    rows = np.concatenate(held)
    weight = np.concatenate([count[at] for count, at in zip(counts, held, strict=True)])
    score = np.repeat([1.0, 0.5, 0.0], [len(at) for at in held])
    _, cluster = np.unique(prompt[rows], return_inverse=True)
    return Entries(
        first[rows],
        second[rows],
        score,
        weight.astype(np.float64),
        cluster,
        int(cluster.max()) + 1,
    )
