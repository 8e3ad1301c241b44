"""How models hang together, on graphs small enough to see it."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from evenhand.stats.ranking.tally import examine, ties_settled


def won(size: int, *pairs: tuple[int, int]) -> NDArray[np.float64]:
    matrix = np.zeros((size, size))
    for winner, loser in pairs:
        matrix[winner, loser] += 1
    return matrix


def test_a_cycle_is_connected_both_ways() -> None:
    links = examine(won(3, (0, 1), (1, 2), (2, 0)))
    assert links.strong
    assert links.main.all()


def test_a_chain_is_not() -> None:
    links = examine(won(3, (0, 1), (1, 2)))
    assert not links.strong
    assert links.undefeated.tolist() == [True, False, False]
    assert links.winless.tolist() == [False, False, True]
    assert links.comparable is not None
    assert links.comparable.all()


def test_the_main_group_has_others_above_below_and_beside_it() -> None:
    # 0, 1, 2 in a circle; 3 beats 0, 4 loses to 1; 5 and 6 play alone; 7 plays nobody.
    links = examine(won(8, (0, 1), (1, 2), (2, 0), (3, 0), (1, 4), (5, 6), (6, 5)))
    assert np.flatnonzero(links.main).tolist() == [0, 1, 2]
    assert np.flatnonzero(links.above).tolist() == [3]
    assert np.flatnonzero(links.below).tolist() == [4]
    assert np.flatnonzero(links.absent).tolist() == [7]
    assert [group.tolist() for group in links.groups] == [[0, 1, 2, 3, 4], [5, 6]]
    assert links.comparable is not None
    assert not links.comparable[0, 5]
    assert links.comparable[3, 4]


@pytest.mark.parametrize(
    ("wins", "ties", "settled"),
    [
        ([(0, 1), (1, 0)], [(0, 1)], True),
        ([(0, 1)], [(0, 1)], False),  # however strong 0 is, a tie costs it nothing
        ([(0, 1), (1, 2), (2, 0)], [(0, 1)], True),
        # 0 beats 1 beats 2, and 2 holds 0: two wins and one tie lead back.
        ([(0, 1), (1, 2)], [(0, 2)], True),
        # 0 beats 1, 1 holds 2, 2 holds 0: one win and two ties.
        ([(0, 1)], [(1, 2), (0, 2)], False),
    ],
)
def test_ties_are_settled_by_a_cycle_with_more_wins(
    wins: list[tuple[int, int]], ties: list[tuple[int, int]], settled: bool
) -> None:
    tied = won(3, *ties)
    assert ties_settled(won(3, *wins), tied + tied.T) is settled
