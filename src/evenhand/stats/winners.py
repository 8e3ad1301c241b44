"""Who won, in the words that files use, as a preference for A between 0 and 1."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenhand.errors import InputError
from evenhand.stats.encoding import Codes, encode, numbers

_BLOCK = 1 << 15
_SEPARATORS = str.maketrans("", "", "-_. ()")
_WORDS: Mapping[str, float] = {
    **dict.fromkeys(("a", "modela", "responsea", "outputa", "answera", "assistanta"), 1.0),
    **dict.fromkeys(("model1", "response1", "output1", "answer1", "left", "a>b", "a>>b"), 1.0),
    **dict.fromkeys(("b", "modelb", "responseb", "outputb", "answerb", "assistantb"), 0.0),
    **dict.fromkeys(("model2", "response2", "output2", "answer2", "right", "b>a", "b>>a"), 0.0),
    **dict.fromkeys(("tie", "tied", "draw", "equal", "a=b", "tiebothbad", "bothbad"), 0.5),
    "bothgood": 0.5,
}
TAKEN = "A, B, TIE, the name of one of the two models, or a preference for A from 0 to 1"


@dataclass(frozen=True, slots=True)
class Preferences:
    """A's score of each row. `kinds[codes]` where there are few, else `kinds` is the column."""

    kinds: NDArray[np.float64]
    codes: Codes | None = None

    def each(self) -> NDArray[np.float64]:
        return self.kinds if self.codes is None else self.kinds[self.codes]

    @property
    def fractional(self) -> bool:
        return not np.isin(self.kinds, (0.0, 0.5, 1.0)).all()


def read_winners(
    winner: Any, *, model_a: Codes, model_b: Codes, models: Mapping[str, int]
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
            raise InputError(f"winner is {value!r} in row {row + 1}; it takes {TAKEN}")
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
    model_a: Codes,
    model_b: Codes,
    encoded: Any,
) -> None:
    """Put down what a model's name says; it may not contradict a word that is spelled alike."""
    by_name = np.where(model_a[rows] == model, 1.0, np.where(model_b[rows] == model, 0.0, np.nan))
    by_word = each[rows]
    value = encoded.values[int(encoded.codes[rows[0]])]
    wrong = np.isnan(by_name) & np.isnan(by_word)
    if wrong.any():
        row = int(rows[np.argmax(wrong)])
        raise InputError(
            f"winner is {value!r} in row {row + 1}, which is neither of its models; "
            f"it takes {TAKEN}"
        )
    unlike = ~np.isnan(by_name) & ~np.isnan(by_word) & (by_name != by_word)
    if unlike.any():
        row = int(rows[np.argmax(unlike)])
        raise InputError(
            f"winner {value!r} in row {row + 1} could mean a side or the model of that name; "
            "give preferences from 0 to 1 instead"
        )
    each[rows] = np.where(np.isnan(by_name), by_word, by_name)


def _of_numbers(given: NDArray[np.float64]) -> Preferences:
    halved = True
    codes = np.empty(given.size, np.uint8)
    for start in range(0, given.size, _BLOCK):
        block = given[start : start + _BLOCK]
        if not (block.min() >= 0 and block.max() <= 1):  # NaN is neither
            row = start + int(np.argmin((block >= 0) & (block <= 1)))
            raise InputError(
                f"winner is {given[row]:g} in row {row + 1}; a preference for A is from 0 to 1"
            )
        if halved:
            halves = block * 2
            halved = bool((np.trunc(halves) == halves).all())
            codes[start : start + _BLOCK] = halves
    return Preferences(np.array([0.0, 0.5, 1.0]), codes) if halved else Preferences(given)
