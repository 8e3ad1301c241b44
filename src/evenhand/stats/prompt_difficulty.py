"""How hard a prompt is for one of two models and how easy for the other, told by what the two did
there against all the others."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import logit

from evenhand.stats.clusters import Floats

Rows = NDArray[np.intp]


class PromptDifficulty:
    """Made once for all rows of a league, asked for the rows of one two models at a time."""

    def __init__(
        self,
        first: NDArray[Any],
        second: NDArray[Any],
        scores: Floats,
        *,
        prompts: NDArray[Any],
        valid: NDArray[np.bool_],
    ) -> None:
        """`first` and `second` are codes of models, `scores` the first's; rows that are not valid
        tell nothing."""
        _, numbers = np.unique(prompts, return_inverse=True)
        models = np.concatenate([first, second]).astype(np.int64)
        keys = models * (int(numbers.max(initial=0)) + 1) + np.tile(numbers, 2)
        # A cell is a model on a prompt; `taken` is what others won from it there.
        _, cells = np.unique(keys, return_inverse=True)
        self._cells = cells.reshape(2, -1)
        self._weights = np.stack([valid, valid]).astype(np.float64)
        self._taken = np.where(valid, np.stack([1 - scores, scores]), 0.0)
        count = int(cells.max(initial=-1)) + 1
        self._all_taken = self._summed(self._cells, self._taken, count)
        self._all_rows = self._summed(self._cells, self._weights, count)

    def of(self, rows: Rows) -> Floats:
        """How much better each row's first model may be expected to do on its prompt: the smoothed
        log-odds of others against the second, less those against the first. The rows themselves
        are left out, or their outcomes would explain themselves; all must be of the same two
        models. Exchanging the two changes the sign alone."""
        own = self._cells[:, rows]
        kept, places = np.unique(own, return_inverse=True)
        places = places.reshape(own.shape)
        taken = self._all_taken[kept] - self._summed(places, self._taken[:, rows], kept.size)
        count = self._all_rows[kept] - self._summed(places, self._weights[:, rows], kept.size)
        against_first, against_second = logit((taken + 0.5) / (count + 1.0))[places]
        difference: Floats = against_second - against_first
        return difference

    @staticmethod
    def _summed(places: NDArray[Any], weights: Floats, count: int) -> Floats:
        sums: Floats = np.bincount(places.ravel(), weights=weights.ravel(), minlength=count).astype(
            np.float64
        )
        return sums
