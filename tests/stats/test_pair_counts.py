"""Counts of a league's pairs: done, waiting and open."""

from __future__ import annotations

import numpy as np
import pytest

from evenhand.errors import InputError
from evenhand.stats.ranking.adaptive import count_pairs

ROOM = [[0, 9], [9, 0]]
SCORES = [[0, 3.5], [2.5, 0]]


def test_counts_know_what_is_done_waiting_and_open() -> None:
    counts = count_pairs(["a", "b"], SCORES, unasked=ROOM, in_flight=[[0, 2], [2, 0]])
    assert (counts.completed, counts.waiting, counts.open) == (6, 2, 9)


def test_what_the_caller_changes_later_does_not_reach_the_counts() -> None:
    scores = np.array(SCORES)
    counts = count_pairs(["a", "b"], scores, unasked=ROOM)
    scores[0, 1] = 99
    assert counts.scores[0, 1] == 3.5


def test_one_model_is_no_league() -> None:
    with pytest.raises(InputError, match="cannot rank 1 models; give at least 2"):
        count_pairs(["a"], [[0]], unasked=[[0]])
