"""Whether topics differ by more than chance, and how much wider an interval over topics is."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenhand.contract.model import Model
from evenhand.stats.clusters import label_codes, normal_quantile, student_quantile
from evenhand.stats.columns import Floats
from evenhand.stats.distributions import f_tail
from evenhand.stats.estimates import jackknife

# Fewer are not a sample of topics: Student's interval over four is three times as wide as the
# normal.
FEWEST_TOPICS = 5
# A liberal test, as Bancroft (1944, 1964) advises for choosing between two intervals: at 0.05 a
# gate over ten topics of unequal size passes wrongly in up to 6.9%, at 0.2 in up to 4.8%.
OVERDISPERSED_BELOW = 0.2


class TopicSpread(Model):
    """Prompts as a sample of topics. `p_value` tests whether topics differ more than prompts of one
    topic do (Fisher's F); `widening` is how much wider an interval over topics is than one over
    prompts, by the jackknife over topics and Student's t (CR3; MacKinnon, Nielsen and Webb 2023).
    None: too few topics for either."""

    topics: int
    prompts: int
    p_value: float | None
    widening: float | None

    @property
    def overdispersed(self) -> bool:
        return self.p_value is not None and self.p_value < OVERDISPERSED_BELOW


def topic_spread(
    scores: Floats, *, prompts: NDArray[Any], topics: NDArray[Any], level: float
) -> TopicSpread:
    """From one score a row; rows of one prompt and topic count as their mean."""
    topic_codes, names = label_codes(topics, name="topics")
    prompt_codes, _ = label_codes(prompts)
    units, which = np.unique(prompt_codes * max(1, len(names)) + topic_codes, return_inverse=True)
    rows = np.bincount(which, minlength=units.size)
    means = np.bincount(which, weights=scores, minlength=units.size) / np.maximum(rows, 1)
    of_topic = (units % max(1, len(names))).astype(np.intp)
    sizes = np.bincount(of_topic, minlength=len(names)).astype(np.float64)
    sums: Floats = np.bincount(of_topic, weights=means, minlength=len(names)).astype(np.float64)
    count, number = len(names), units.size
    if count < FEWEST_TOPICS or number <= count:
        return TopicSpread(topics=count, prompts=number, p_value=None, widening=None)
    mean = float(means.sum()) / number
    between = float((sizes * (sums / sizes - mean) ** 2).sum()) / (count - 1)
    within = float(((means - (sums / sizes)[of_topic]) ** 2).sum()) / (number - count)
    return TopicSpread(
        topics=count,
        prompts=number,
        p_value=_f_test(between, within, count - 1, number - count),
        widening=_widening(sums, sizes, means, level=level),
    )


def _f_test(between: float, within: float, above: int, below: int) -> float:
    if within <= 0:
        return 0.0 if between > 0 else 1.0
    return float(f_tail(above, below, between / within))


def _widening(sums: Floats, sizes: Floats, means: Floats, *, level: float) -> float:
    spread = float(means.var(ddof=1)) / means.size
    totals = np.stack([sums, sizes], axis=1)
    over_topics = jackknife(totals, lambda each: each[:, 0] / each[:, 1])
    if spread <= 0 or over_topics is None:  # all prompts alike: nothing shows that topics differ
        return 1.0
    quantiles = student_quantile(level, over_topics.degrees) / normal_quantile(level)
    return max(1.0, quantiles * math.sqrt(over_topics.variance / spread))
