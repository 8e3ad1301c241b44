"""How much of the judge's mean goes into a corrected rate: the tuned weight of PPI++."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from evenhand.stats.clusters import Floats
from evenhand.stats.weighted_mean import Rows

# Below this the judge said the same of every row, up to rounding.
TINY = 1e-12


@dataclass(frozen=True, slots=True)
class JudgeWeight:
    """The weight that each labelled row uses, learned without the rows of its prompt."""

    of_row: Floats
    mean: float


def tune_judge_weight(people: Floats, judge: Floats, *, rows: Rows, chance: Floats) -> JudgeWeight:
    """The weight of least variance (Angelopoulos, Duchi and Zrnic 2023), shrunk, within 0 and 1.

    The variance of the mean of people - weight * judge, drawn with the given chances, is least at
    the slope of a regression whose rows weigh (1 - chance) / chance^2; with all drawn there is
    nothing to gain, and the weight is 0. A slope learned from a few rows fits their noise, which
    biases the rate and makes its interval too short: so each prompt's rows use the slope of the
    others. And a slope that is no larger than its own error is not used at all: it shrinks by
    1 - 1 / t^2, t being its t-statistic (the positive part of James and Stein 1961).
    """
    count = rows.prompts
    spare = (1.0 - chance) * (float(chance.min(initial=1.0)) / chance) ** 2
    if not spare.any():
        return JudgeWeight(of_row=np.zeros_like(people), mean=0.0)
    spare = spare / spare.max()

    def others(terms: Floats) -> Floats:
        """The sum over all prompts but each one."""
        own = np.bincount(rows.prompt, weights=terms, minlength=count)
        rest: Floats = own.sum() - own
        return rest

    centre_people = float(rows.weight @ people) / float(rows.weight.sum())
    centre_judge = float(rows.weight @ judge) / float(rows.weight.sum())
    own_people, own_judge = people - centre_people, judge - centre_judge
    weights = others(rows.weight)
    mean_people = others(rows.weight * own_people) / weights
    mean_judge = others(rows.weight * own_judge) / weights
    whole = others(spare)
    sum_people, sum_judge = others(spare * own_people), others(spare * own_judge)

    def about_means(terms: Floats, first: Floats, second: Floats, means: Floats) -> Floats:
        moment: Floats = others(terms) - first - second + whole * means
        return moment

    shared = about_means(
        spare * own_people * own_judge,
        sum_people * mean_judge,
        sum_judge * mean_people,
        mean_people * mean_judge,
    )
    judge_square = about_means(
        spare * own_judge * own_judge, sum_judge * mean_judge, sum_judge * mean_judge, mean_judge**2
    )
    people_square = about_means(
        spare * own_people * own_people,
        sum_people * mean_people,
        sum_people * mean_people,
        mean_people**2,
    )
    by_prompt = np.bincount(rows.prompt, weights=spare, minlength=count)
    worth = float(by_prompt.sum()) ** 2 / float(by_prompt @ by_prompt)
    slope = _shrunk_slope(shared, judge_square, people_square, worth=worth)
    of_row = slope[rows.prompt]
    return JudgeWeight(of_row=of_row, mean=float(rows.weight @ of_row) / float(rows.weight.sum()))


def _shrunk_slope(
    shared: Floats, judge_square: Floats, people_square: Floats, *, worth: float
) -> Floats:
    known = (judge_square > TINY) & (shared > 0)
    slope = np.where(known, shared, 0.0) / np.where(known, judge_square, 1.0)
    explained = slope * shared
    unexplained = np.maximum(people_square - explained, 0.0) / max(worth - 3.0, 1.0)
    kept = 1.0 - unexplained / np.where(known, explained, 1.0)
    shrunk: Floats = np.clip(slope * np.maximum(kept, 0.0), 0.0, 1.0)
    return shrunk
