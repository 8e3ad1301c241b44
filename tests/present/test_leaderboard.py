"""The leaderboard as it is drawn: lines that join models which do not differ."""

from __future__ import annotations

import numpy as np

from evenhand.present.leaderboard import board_of, groups_of
from evenhand.stats.ranking.leaderboard import rank_battles


def test_every_two_neighbours_that_do_not_differ_are_on_one_line() -> None:
    """Twenty models a step apart: groups of neighbours, of which many more than six follow."""
    rng = np.random.default_rng(3)
    first, second = rng.integers(0, 20, (2, 6000))
    first, second = first[first != second], second[first != second]
    wins = rng.random(first.size) < 1 / (1 + np.exp(-0.16 * (second - first)))
    names = [f"m{place:02}" for place in range(20)]
    ranking = rank_battles(first, second, np.where(wins, 1.0, 0.0), models=names)
    groups = groups_of(ranking)
    assert len(groups) > 6
    rows = board_of(ranking).rows
    for begin, end in groups:
        shared = [set(row.groups) for row in rows[begin : end + 1]]
        assert set.intersection(*shared)
    # A line is of one group: two that touch in a column are told apart by a gap of a row.
    for column in range(6):
        places = [place for place, row in enumerate(rows) if column in row.groups]
        stretches = np.split(places, np.flatnonzero(np.diff(places) > 1) + 1)
        for stretch in stretches:
            if len(stretch):
                assert any(begin <= stretch[0] and stretch[-1] <= end for begin, end in groups)
