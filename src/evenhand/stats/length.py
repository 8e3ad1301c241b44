"""Do longer answers win, and what is the win rate at equal length?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.special import logit

from evenhand.contract.model import Model
from evenhand.errors import InputError
from evenhand.stats.clusters import Floats, Labels, label_codes
from evenhand.stats.estimated_share import EstimatedShare, estimate_share
from evenhand.stats.length_control import ControlledRate, LengthRows, controlled_rate
from evenhand.stats.outcomes import (
    INVALID,
    WIN_A,
    WIN_B,
    Codes,
    confidence_level,
    outcome_codes,
    same_length,
)

Lengths: TypeAlias = Sequence[float] | NDArray[Any]

_SCORE_FOR_A = np.array([1.0, 0.0, 0.5, 0.5])


class LengthEffect(Model):
    """How often the longer answer won, and each model's win rate at equal length."""

    longer_wins: EstimatedShare
    controlled: tuple[ControlledRate, ...]
    clustered: bool
    level: float


def length_effect(
    outcomes: Codes,
    *,
    length_a: Lengths,
    length_b: Lengths,
    prompts: Labels | None = None,
    models: Labels | None = None,
    difficulty: Lengths | None = None,
    side: str = "A",
    level: float = 0.95,
) -> LengthEffect:
    """From each row's outcome and the two lengths, in any unit.

    `models` names A's model where several are compared with the same B: each has its own fit,
    which then also knows how hard the row's prompt was for the other models. `difficulty` tells
    that for the fit of one model, in log-odds that are higher where A has it easier. `side` is
    what reasons call A.
    """
    confidence_level(level)
    codes = outcome_codes(outcomes)
    same_length(
        codes.size,
        length_a=length_a,
        length_b=length_b,
        prompts=prompts,
        models=models,
        difficulty=difficulty,
    )
    if models is not None and difficulty is not None:
        raise InputError("models and difficulty are both given; models tell the difficulty")
    ease = None if difficulty is None else _log_odds(difficulty, "difficulty")
    difference = _lengths(length_a, "length_a") - _lengths(length_b, "length_b")
    numbers = np.arange(codes.size) if prompts is None else label_codes(prompts)[0]
    valid = codes != INVALID
    codes, difference, numbers = codes[valid], difference[valid], numbers[valid]
    numbers = label_codes(numbers)[0]
    independent = prompts is None or bool((np.bincount(numbers) <= 1).all())
    scores = _SCORE_FOR_A[codes]
    longer = _longer_wins(codes, difference, numbers, independent=independent, level=level)
    if models is None:
        rows = LengthRows(scores, difference, numbers, None if ease is None else ease[valid])
        controlled = [
            controlled_rate(None, rows, named_prompts=prompts is not None, side=side, level=level)
        ]
    else:
        members, names = label_codes(models, name="models")
        members = members[valid]
        known = _difficulty(scores, numbers, members, len(names))
        controlled = []
        for member, name in enumerate(names):
            own = members == member
            hardness = known[own] if len(names) > 1 and prompts is not None else None
            clusters = label_codes(numbers[own])[0]
            rows = LengthRows(scores[own], difference[own], clusters, hardness)
            controlled.append(
                controlled_rate(
                    str(name), rows, named_prompts=prompts is not None, side=side, level=level
                )
            )
    return LengthEffect(
        longer_wins=longer, controlled=tuple(controlled), clustered=not independent, level=level
    )


def _lengths(lengths: Lengths, name: str) -> Floats:
    array = _column(lengths, name, "length")
    return _checked(array, np.isfinite(array) & (array >= 0), name, "a length of 0 or more")


def _log_odds(values: Lengths, name: str) -> Floats:
    array = _column(values, name, "number")
    return _checked(array, np.isfinite(array), name, "a finite number")


def _column(values: Lengths, name: str, what: str) -> Floats:
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(f"{name} is not a column of numbers; give one {what} a row") from None


def _checked(array: Floats, right: NDArray[np.bool_], name: str, wanted: str) -> Floats:
    if not right.all():
        row = int(np.argmin(right))
        raise InputError(f"{name} is {array[row]} in row {row}; give {wanted}")
    return array


def _longer_wins(
    codes: NDArray[np.int8],
    difference: Floats,
    prompts: NDArray[np.intp],
    *,
    independent: bool,
    level: float,
) -> EstimatedShare:
    """Of the pairs that somebody won and whose lengths differ, how many the longer won."""
    count = int(prompts.max()) + 1 if prompts.size else 1
    a_longer, b_longer = difference > 0, difference < 0
    won = ((codes == WIN_A) & a_longer) | ((codes == WIN_B) & b_longer)
    lost = ((codes == WIN_A) & b_longer) | ((codes == WIN_B) & a_longer)
    return estimate_share(
        np.bincount(prompts[won], minlength=count).astype(np.float64),
        np.bincount(prompts[lost], minlength=count).astype(np.float64),
        independent=independent,
        level=level,
        unit="decisive, unequally long pair",
    )


def _difficulty(
    scores: Floats, prompts: NDArray[np.intp], members: NDArray[np.intp], models: int
) -> Floats:
    """How well the OTHER models do on a row's prompt, as smoothed log-odds.

    A row's own model is left out, or its outcome would explain itself.
    """
    if scores.size == 0:
        return scores
    cells = prompts * models + members
    total = np.bincount(prompts, weights=scores)[prompts]
    rows = np.bincount(prompts)[prompts]
    own_total = np.bincount(cells, weights=scores)[cells]
    own_rows = np.bincount(cells)[cells]
    share: Floats = logit((total - own_total + 0.5) / (rows - own_rows + 1.0))
    return share
