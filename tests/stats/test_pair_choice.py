"""Which pairs are chosen, against a second implementation that takes the long way."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import ndtr

from evenhand.stats.ranking.adaptive import (
    HORIZON,
    choose_linking_pairs,
    choose_settling_pairs,
    settling_worth,
)
from evenhand.stats.ranking.posterior import StrengthPosterior, fit_posterior
from naive_ranking import all_pairs, contrast, played_league

Floats = NDArray[np.float64]


def choose(
    posterior: StrengthPosterior,
    room: NDArray[np.int64],
    *,
    number: int,
    in_flight: Floats | None = None,
) -> list[tuple[int, int]]:
    models = room.shape[0]
    chosen = choose_settling_pairs(
        posterior,
        room[None],
        number=number,
        in_flight=np.zeros((1, models, models)) if in_flight is None else in_flight[None],
        tie_break=np.zeros((models, models)),
    )
    return [(int(first), int(second)) for first, second in chosen[0]]


def naive_choice(posterior: StrengthPosterior, *, number: int) -> list[tuple[int, int]]:
    """Inverts anew for every candidate of every pick; the gaps' worth stays that of the start."""
    mean, precision = posterior.mean[0], np.linalg.inv(posterior.covariance[0])
    pairs = [(i, j) for i in range(len(mean)) for j in range(i + 1, len(mean))]

    def variance(covariance: Floats, pair: tuple[int, int]) -> float:
        direction = contrast(len(mean), *pair)
        return float(direction @ covariance @ direction)

    worth = {
        (i, j): np.exp(
            -((mean[i] - mean[j]) ** 2)
            / (2 * (1 - HORIZON) * variance(posterior.covariance[0], (i, j)))
        )
        / variance(posterior.covariance[0], (i, j))
        for i, j in pairs
    }
    chosen = []
    for _ in range(number):
        before = np.linalg.inv(precision)
        scores = {}
        for i, j in pairs:
            chance = 1 / (1 + np.exp(mean[j] - mean[i]))
            direction = contrast(len(mean), i, j)
            more = chance * (1 - chance) * np.outer(direction, direction)
            after = np.linalg.inv(precision + more)
            fallen = sum(
                worth[gap] * (variance(before, gap) - variance(after, gap)) for gap in pairs
            )
            scores[i, j] = fallen, more
        best = max(pairs, key=lambda pair: scores[pair][0])
        precision = precision + scores[best][1]
        chosen.append(best)
    return chosen


@pytest.mark.parametrize("games", [5, 40, 300])
def test_picks_are_those_of_the_naive_implementation(games: int) -> None:
    posterior = fit_posterior(played_league(6, games=games, seed=games)[None])
    assert choose(posterior, all_pairs(6, count=99), number=8) == naive_choice(posterior, number=8)


def test_worth_is_the_fall_of_the_chance_of_a_wrong_order() -> None:
    # min(P, 1 - P) averaged over where the estimate will be when the variance v has fallen to
    # r·v, on a fine grid, at two values of r: its slope is the formula's, with its constants.
    variance = 0.3

    def wrong(gap: float, share: float) -> float:
        steps = np.linspace(-9, 9, 400_001)
        density = np.exp(-(steps**2) / 2) / np.sqrt(2 * np.pi)
        later = gap + steps * np.sqrt((1 - share) * variance)
        return float(
            (ndtr(-np.abs(later) / np.sqrt(share * variance)) * density).sum()
            * (steps[1] - steps[0])
        )

    for gap in (0.0, 0.2, 0.7):
        slope = (wrong(gap, HORIZON + 1e-3) - wrong(gap, HORIZON - 1e-3)) / (2e-3 * variance)
        constant = 1 / (2 * np.pi) / np.sqrt(HORIZON * (1 - HORIZON))
        worth = settling_worth(np.array([gap]), np.array([variance]))[0]
        assert constant * worth == pytest.approx(slope, rel=1e-3)


def test_close_models_are_asked_before_distant_ones() -> None:
    scores = np.array([[0, 15, 29], [15, 0, 29], [1, 1, 0]], dtype=float)
    posterior = fit_posterior(scores[None])
    assert set(choose(posterior, all_pairs(3, count=99), number=5)) == {(0, 1)}


def test_order_beyond_doubt_still_spreads_the_calls() -> None:
    scores = np.triu(np.full((4, 4), 1e7), 1) + np.tril(np.full((4, 4), 1e5), -1)
    posterior = fit_posterior(scores[None])
    assert len(set(choose(posterior, all_pairs(4, count=2), number=8))) >= 4


def test_what_is_in_flight_counts_as_if_it_were_answered() -> None:
    posterior = fit_posterior(np.zeros((1, 4, 4)))
    in_flight = all_pairs(4, count=0).astype(float)
    in_flight[0, 1] = in_flight[1, 0] = 30
    assert choose(posterior, all_pairs(4, count=99), number=1, in_flight=in_flight) == [(2, 3)]


def test_exhausted_pair_is_passed_over_and_places_stay_empty_when_all_are() -> None:
    posterior = fit_posterior(np.zeros((1, 3, 3)))
    room = all_pairs(3, count=0)
    room[0, 2] = room[2, 0] = 2
    assert choose(posterior, room, number=4) == [(0, 2), (0, 2), (-1, -1), (-1, -1)]


def test_leagues_of_a_stack_are_chosen_for_one_by_one() -> None:
    tables = np.stack([played_league(7, games=90, seed=seed) for seed in range(4)])
    room = np.stack([all_pairs(7, count=seed + 1) for seed in range(4)])
    tie_break = np.random.default_rng(0).random((7, 7))
    in_flight = np.zeros((4, 7, 7))
    stacked = choose_settling_pairs(
        fit_posterior(tables), room, number=30, in_flight=in_flight, tie_break=tie_break
    )
    for index in range(4):
        some = slice(index, index + 1)
        alone = choose_settling_pairs(
            fit_posterior(tables[some]),
            room[some],
            number=30,
            in_flight=in_flight[some],
            tie_break=tie_break,
        )
        assert (stacked[index] == alone[0]).all()


def link(asked: NDArray[np.int64], room: NDArray[np.int64], number: int) -> list[tuple[int, int]]:
    tie_break = np.random.default_rng(0).random(asked.shape)
    return choose_linking_pairs(asked, room, number=number, tie_break=tie_break)


def test_links_join_all_models_with_one_pair_less_than_models() -> None:
    links = link(all_pairs(9, count=0), all_pairs(9, count=1), 100)
    assert len(links) == 8
    joined = {links[0][0]}
    for _ in links:
        joined |= {i for pair in links if joined & set(pair) for i in pair}
    assert joined == set(range(9))
    # The first four pairs use eight models once each: nobody waits for a second game.
    assert len({i for pair in links[:4] for i in pair}) == 8


def test_links_stop_where_everything_hangs_together() -> None:
    assert link(all_pairs(4, count=1), all_pairs(4, count=1), 5) == []


def test_links_join_two_groups_by_the_only_pair_left() -> None:
    asked = all_pairs(4, count=0)
    for first, second in ((0, 1), (2, 3)):
        asked[first, second] = asked[second, first] = 5
    room = all_pairs(4, count=0)
    room[1, 2] = room[2, 1] = 1
    assert link(asked, room, 5) == [(1, 2)]


def test_links_give_up_where_no_pair_can_join() -> None:
    assert link(all_pairs(3, count=0), all_pairs(3, count=0), 5) == []
