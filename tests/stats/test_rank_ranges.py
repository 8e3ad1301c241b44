"""Rank ranges: they hold for all models together, whatever the models are called."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.special import stdtrit
from scripts.verify_ranking import League, measure_league

from evenhand.stats.ranking.leaderboard import rank_battles
from evenhand.stats.ranking.result import Ranking
from evenhand.stats.ranking.uncertainty import quantile
from parts import examples

Battle = tuple[int, int, float, int]
MODELS = 5
ENDLESS = 1e9


@st.composite
def battles(draw: st.DrawFn) -> list[Battle]:
    """A few dozen of five models, some of whom are better, on a dozen prompts."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    slope = draw(st.sampled_from([0.0, 0.5, 1.5]))
    rows = []
    for _ in range(draw(st.integers(20, 300))):
        a, b = rng.choice(MODELS, 2, replace=False).tolist()
        won = float(rng.random() < 1 / (1 + math.exp(slope * (a - b))))
        rows.append((a, b, 0.5 if rng.random() < 0.2 else won, int(rng.integers(12))))
    return rows


def ranked(rows: list[Battle], *, by_prompt: bool = True, **options: Any) -> Ranking:
    a, b, score, prompt = map(list, zip(*rows, strict=True))
    names = [f"m{place}" for place in range(MODELS)]
    return rank_battles(a, b, score, models=names, prompt=prompt if by_prompt else None, **options)


def ranges(ranking: Ranking) -> dict[str, tuple[int, int]]:
    found = {}
    for row in ranking.models:
        assert row.rank_low is not None
        assert row.rank_high is not None
        found[row.model] = (row.rank_low, row.rank_high)
    return found


# Harter's table (1960) of the studentized range: 5% points, known variance.
@pytest.mark.parametrize(
    ("models", "range_of_normals"),
    [(3, 3.314), (5, 3.858), (8, 4.286), (10, 4.474), (20, 5.012), (50, 5.646)],
)
def test_critical_value_is_that_of_tukeys_range(models: int, range_of_normals: float) -> None:
    found = quantile(0.95, ENDLESS, models=models)
    assert found * math.sqrt(2) == pytest.approx(range_of_normals, abs=1e-3)


@given(level=st.floats(0.5, 0.999), freedom=st.floats(1.0, 1e4), models=st.integers(3, 300))
@settings(max_examples=examples(40))
def test_critical_value_lies_between_one_pair_and_bonferroni(
    level: float, freedom: float, models: int
) -> None:
    pairs = models * (models - 1) / 2
    bonferroni = -stdtrit(freedom, (1 - level) / 2 / pairs)
    alone = -stdtrit(freedom, (1 - level) / 2)
    assert alone < quantile(level, freedom, models=models) < bonferroni * (1 + 1e-9)
    assert quantile(level, freedom, models=2) == alone


def test_two_models_have_the_plain_interval_of_their_difference() -> None:
    # 30 wins to 20, each a prompt of its own: two models differ by twice the first one's log-odds,
    # and so do the limits.
    ranking = rank_battles(["x"] * 50, ["y"] * 50, ["A"] * 30 + ["B"] * 20, scale="log-odds")
    (pair,) = ranking.indistinguishable or ()
    first = ranking.models[0]
    assert pair.difference == pytest.approx(math.log(1.5))
    assert (pair.low, pair.high) == pytest.approx((2 * (first.low or 0), 2 * (first.high or 0)))
    # A third model that never met them takes part in no difference: only the correction for few
    # rows, (50 - 1) / (50 - 2), widens the interval of 0.586 to either side, by 1%.
    more = rank_battles(
        ["x"] * 50, ["y"] * 50, ["A"] * 30 + ["B"] * 20, models=["x", "y", "z"], prior=1e-6
    )
    assert [row.model for row in more.models] == ["x", "z", "y"]
    least = (more.win_matrix_low or ())[0][2] or 0
    assert math.log(least / (1 - least)) == pytest.approx(pair.low, abs=0.0062)


@settings(max_examples=examples(40))
@given(rows=battles(), order=st.permutations(range(MODELS)), by_prompt=st.booleans())
def test_other_names_permute_the_ranges(
    rows: list[Battle], order: list[int], by_prompt: bool
) -> None:
    renamed = [(order[a], order[b], score, prompt) for a, b, score, prompt in rows]
    plain, turned = (ranges(ranked(each, by_prompt=by_prompt)) for each in (rows, renamed))
    assert {f"m{order[int(name[1:])]}": found for name, found in plain.items()} == turned


@settings(max_examples=examples(40))
@given(rows=battles(), by_prompt=st.booleans())
def test_swapped_sides_keep_the_ranges_and_reversed_winners_mirror_them(
    rows: list[Battle], by_prompt: bool
) -> None:
    swapped = [(b, a, 1 - score, prompt) for a, b, score, prompt in rows]
    reversed_ = [(a, b, 1 - score, prompt) for a, b, score, prompt in rows]
    plain = ranges(ranked(rows, by_prompt=by_prompt))
    assert ranges(ranked(swapped, by_prompt=by_prompt)) == plain
    mirrored = {name: (MODELS + 1 - high, MODELS + 1 - low) for name, (low, high) in plain.items()}
    assert ranges(ranked(reversed_, by_prompt=by_prompt)) == mirrored


@settings(max_examples=examples(40))
@given(rows=battles(), intervals=st.sampled_from(["sandwich", "bootstrap"]))
def test_ranges_hold_those_of_each_pair_alone(rows: list[Battle], intervals: str) -> None:
    options: dict[str, Any] = {"intervals": intervals, "replicates": 100}
    ranking = ranked(rows, **options)
    assume(not ranking.prior)
    low, high = ranking.win_matrix_low, ranking.win_matrix_high
    assert low is not None
    assert high is not None
    freedom = ranking.cluster_count - 1.0
    if intervals == "bootstrap":
        freedom = 1 / (1 / freedom + 1 / 99)
    shrink = quantile(0.95, freedom) / quantile(0.95, freedom, models=MODELS)
    strength = [row.log_odds for row in ranking.models]

    def beats(one: int, other: int) -> bool:
        """By the plain interval of their difference, which is the joint one made narrower."""
        least = low[one][other]
        if one == other or least is None:
            return False
        difference = strength[one] - strength[other]
        reach = difference - math.log(least / (1 - least))
        return difference > shrink * reach

    for place, row in enumerate(ranking.models):
        alone_low = 1 + sum(beats(other, place) for other in range(MODELS))
        alone_high = MODELS - sum(beats(place, other) for other in range(MODELS))
        assert row.rank_low is not None
        assert row.rank_high is not None
        assert row.rank_low <= alone_low
        assert alone_high <= row.rank_high


def test_one_league_of_twenty_equal_models_in_twenty_has_a_wrong_range() -> None:
    # Ranges that hold for each model alone were wrong in 26% of such leagues. Of 150 leagues 5%
    # and three standard deviations are 0.05 + 3 * sqrt(0.05 * 0.95 / 150) = 0.103.
    league = League("20 equal", (20,), 0.0, prompts=100, rows_a_prompt=20)
    found = measure_league(league, runs=150, seed=3)
    assert found.together <= 0.103
    assert found.alone is not None
    assert found.alone > 0.15
