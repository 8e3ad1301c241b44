"""Which of many phrases one of two groups of texts has oftener: log-odds with an informative
prior."""

from __future__ import annotations

import numpy as np

from evenhand.stats.columns import Floats

# How many texts the prior is worth: each phrase is taken to be as frequent in both groups as it is
# in all of them together, until as many texts say otherwise.
PRIOR_TEXTS = 10.0


def log_odds_scores(first: Floats, second: Floats, sizes: tuple[int, int]) -> Floats:
    """A z-score for each phrase, positive where the first group has it oftener.

    `first` and `second` count the texts of each group that have the phrase, `sizes` all texts of
    each. After Monroe, Colaresi and Quinn (2008), with texts in the place of words.
    """
    # A phrase that every text has, or none, tells nothing.
    share = (first + second) / (sizes[0] + sizes[1])
    telling = (share > 0) & (share < 1)
    share = np.where(telling, share, 0.5)
    having, lacking = PRIOR_TEXTS * share, PRIOR_TEXTS * (1 - share)
    difference = np.zeros_like(share)
    variance = np.zeros_like(share)
    for counts, size, sign in ((first, sizes[0], 1), (second, sizes[1], -1)):
        present, absent = counts + having, size - counts + lacking
        difference += sign * np.log(present / absent)
        variance += 1 / present + 1 / absent
    scores: Floats = np.where(telling, difference / np.sqrt(variance), 0.0)
    return scores
