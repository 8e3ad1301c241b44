"""Position bias, length bias and self-preference of a judge, each with its interval."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenhand.contract.codes import NO_WINNER, SAYS_A, SAYS_B
from evenhand.contract.model import Model
from evenhand.stats.estimates import EstimatedShare, share_of_rows
from evenhand.stats.rates.paired_difference import PairedDifference, paired_difference
from evenhand.stats.rates.position_bias import PositionBias, position_bias

Codes = NDArray[np.integer[Any]]


class PositionBiasReport(Model):
    """`first_place_share` is of all passes that name a winner; `lean` is that of `test`."""

    first_place_share: EstimatedShare
    lean: PairedDifference
    test: PositionBias


class SideBias(Model):
    """How often a side (the longer one) won by the judge, how often by the labels, and the
    difference on the pairs that both decided."""

    by_judge: EstimatedShare
    by_labels: EstimatedShare
    excess: PairedDifference


class SelfPreference(SideBias):
    """Of the answers of the judge's own model."""

    model: str


def measure_position_bias(
    first: Codes, second: Codes, prompts: NDArray[np.int64], *, level: float
) -> PositionBiasReport:
    """From each pair's winner in the two passes; the first pass shows A first, the second B."""
    # Which place each pass took: the first is A's in the first pass and B's in the second.
    took_first = np.concatenate([first == SAYS_A, second == SAYS_B])
    decided = np.concatenate([np.isin(each, (SAYS_A, SAYS_B)) for each in (first, second)])
    both = np.concatenate([prompts, prompts])
    # The two passes of a pair are not independent, so that the pair is a cluster at least.
    shares = share_of_rows(took_first[decided], both[decided], level=level, unit="decided answer")
    test = position_bias(first, second, prompts=prompts, level=level)
    return PositionBiasReport(first_place_share=shares, lean=test.lean, test=test)


def length_bias(
    verdicts: Codes,
    labels: Codes,
    *,
    length_a: NDArray[Any],
    length_b: NDArray[Any],
    prompts: NDArray[np.int64],
    level: float,
) -> SideBias:
    longer = np.where(length_a > length_b, SAYS_A, np.where(length_b > length_a, SAYS_B, NO_WINNER))
    units = ("decided unequally long pair", "labelled unequally long pair")
    return SideBias(**_favoured(longer, verdicts, labels, prompts, level, units))


def self_preference(
    model: str,
    own: Codes,
    verdicts: Codes,
    labels: Codes,
    *,
    prompts: NDArray[np.int64],
    level: float,
) -> SelfPreference:
    """`own` says which side is the judge's own model in each row; -1 where neither is, or both."""
    units = ("decided pair with its own answer", "labelled pair with its own answer")
    return SelfPreference(model=model, **_favoured(own, verdicts, labels, prompts, level, units))


def _favoured(
    side: Codes,
    verdicts: Codes,
    labels: Codes,
    prompts: NDArray[np.int64],
    level: float,
    units: tuple[str, str],
) -> dict[str, Any]:
    """How often this side won, by the judge and by the labels, and the difference."""
    by_judge = (side != NO_WINNER) & ((verdicts == SAYS_A) | (verdicts == SAYS_B))
    by_labels = (side != NO_WINNER) & ((labels == SAYS_A) | (labels == SAYS_B))
    both = by_judge & by_labels
    return {
        "by_judge": share_of_rows(
            (verdicts == side)[by_judge], prompts[by_judge], level=level, unit=units[0]
        ),
        "by_labels": share_of_rows(
            (labels == side)[by_labels], prompts[by_labels], level=level, unit=units[1]
        ),
        "excess": paired_difference(
            (verdicts == side)[both], (labels == side)[both], prompts[both], level=level
        ),
    }
