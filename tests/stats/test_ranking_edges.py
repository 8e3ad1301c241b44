"""What a ranking says where the battles do not say enough, and what it refuses."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from evenhand.errors import InputError
from evenhand.stats.ranking.leaderboard import rank_battles, rank_counts
from evenhand.stats.ranking.result import Ranking


def row(ranking: Ranking, model: str) -> Any:
    found = ranking.find(model)
    assert found is not None
    return found


def cycle(times: int = 10) -> tuple[list[str], list[str], list[str]]:
    """x, y and z in a circle, each winning three of four of its battles with the next."""
    a = ["x", "y", "z"] * 4 * times
    b = ["y", "z", "x"] * 4 * times
    return a, b, (["A"] * 9 + ["B"] * 3) * times


def test_connected_battles_need_no_prior() -> None:
    ranking = rank_battles(*cycle())
    assert ranking.prior == 0
    assert ranking.notes == ()
    assert ranking.undefeated == ranking.winless == ranking.never_compared == ()


def test_an_undefeated_model_is_reported_and_has_no_upper_limit() -> None:
    a, b, winner = cycle()
    ranking = rank_battles([*a, *["best"] * 8], [*b, *["x"] * 8], [*winner, *["A"] * 8])
    best = row(ranking, "best")
    assert ranking.undefeated == ("best",)
    assert ranking.prior == 1
    assert any("undefeated: best" in note for note in ranking.notes)
    assert any("1 virtual tie with an average one" in note for note in ranking.notes)
    assert best.note == "undefeated: no upper limit"
    assert best.rank == 1
    assert best.high is None
    assert best.low is not None
    assert math.isfinite(best.score)
    # 8 wins and half a virtual one, half a virtual loss: about log(8.5 / 0.5).
    assert best.log_odds == pytest.approx(math.log(17), abs=0.3)
    assert ranking.anchor.startswith("the mean log-odds of the largest connected group")
    assert sum(row(ranking, name).log_odds for name in "xyz") == pytest.approx(0, abs=1e-9)


def test_a_winless_model_is_reported_and_has_no_lower_limit() -> None:
    a, b, winner = cycle()
    ranking = rank_battles([*a, *["worst"] * 8], [*b, *["x"] * 8], [*winner, *["B"] * 8])
    worst = row(ranking, "worst")
    assert ranking.winless == ("worst",)
    assert worst.low is None
    assert worst.high is not None
    assert worst.rank == 4


def test_a_model_that_was_never_compared_may_have_any_rank() -> None:
    a, b, winner = cycle()
    ranking = rank_battles(a, b, winner, models=["new", "x", "y", "z"])
    new = row(ranking, "new")
    assert ranking.never_compared == ("new",)
    assert (new.games, new.low, new.high, new.rank_low, new.rank_high) == (0, None, None, 1, 4)
    assert new.note == "never compared: its score comes from the prior"


def test_groups_that_never_met_are_not_told_apart() -> None:
    a, b, winner = cycle(40)
    more = [name.upper() for name in a], [name.upper() for name in b]
    ranking = rank_battles([*a, *more[0]], [*b, *more[1]], [*winner, *winner])
    assert sorted(ranking.disconnected) == [("X", "Y", "Z"), ("x", "y", "z")]
    assert any("no battles between the groups" in note for note in ranking.notes)
    for found in ranking.models:
        assert found.rank_low <= 3  # type: ignore[operator] # nobody of the others is above it
        assert found.rank_high >= 4  # type: ignore[operator]
    outside = [found for found in ranking.models if found.low is None and found.high is None]
    assert len(outside) == 3


def test_groups_that_only_one_side_won_are_handled_by_the_prior() -> None:
    a, b, winner = cycle()
    upper = [name.upper() for name in a], [name.upper() for name in b]
    ranking = rank_battles(
        [*a, *upper[0], "X", "Y"], [*b, *upper[1], "x", "y"], [*winner, *winner, "A", "A"]
    )
    assert ranking.undefeated == ranking.winless == ()
    assert ranking.prior == 1
    assert any("some models never score against" in note for note in ranking.notes)
    notes = {found.note for found in ranking.models}
    assert notes & {
        "never lost to the main group: no upper limit",
        "never scored against the main group: no lower limit",
    }


def test_one_row_has_scores_of_the_prior_and_no_intervals() -> None:
    ranking = rank_battles(["x"], ["y"], ["A"])
    best, worst = ranking.models
    assert (best.model, ranking.prior) == ("x", 1)
    assert best.log_odds > worst.log_odds
    assert best.low is best.high is best.rank_low is None
    assert ranking.reason == "not enough data for intervals: 1 battle; at least 2 are needed"


def test_two_models_of_which_one_always_wins() -> None:
    ranking = rank_battles(["x"] * 20, ["y"] * 20, ["A"] * 20)
    assert ranking.undefeated == ("x",)
    assert ranking.winless == ("y",)
    assert ranking.models[0].high is None
    assert ranking.models[1].low is None


def test_ties_alone_give_equal_scores_and_no_certainty() -> None:
    ranking = rank_battles(["x", "y", "z"] * 5, ["y", "z", "x"] * 5, ["tie"] * 15)
    assert [found.score for found in ranking.models] == pytest.approx([1000] * 3)
    for found in ranking.models:
        assert found.low is found.high is None
        assert (found.rank_low, found.rank_high) == (1, 3)
    assert len(ranking.indistinguishable or ()) == 2


def test_ties_alone_are_nothing_for_davidson() -> None:
    with pytest.raises(InputError, match="every battle is a tie"):
        rank_battles(["x"] * 3, ["y"] * 3, ["tie"] * 3, ties="davidson")


def test_davidson_without_ties_is_bradley_and_terry() -> None:
    half = rank_battles(*cycle())
    davidson = rank_battles(*cycle(), ties="davidson")
    assert davidson.tie_parameter == 0
    assert [found.log_odds for found in davidson.models] == [f.log_odds for f in half.models]
    assert davidson.win_matrix == half.win_matrix


def test_davidson_says_where_wins_and_ties_settle_nothing() -> None:
    # One win and one tie: the chance of a loss wants to be 0, however far apart the models are.
    ranking = rank_battles(["x", "x"], ["y", "y"], ["A", "tie"], ties="davidson")
    assert ranking.prior == 1
    assert any("do not determine" in note for note in ranking.notes)
    assert math.isfinite(ranking.models[0].score)


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        (([], [], []), "there are no battles"),
        ((["x"], ["y", "z"], ["A"]), "the columns differ in length"),
        ((["x"], ["x"], ["A"]), "'x' is compared with itself in row 1"),
        ((["x", "y"], ["y", "y"], ["A", 0.3]), "row 2"),
        ((["x", None], ["y", "z"], ["A", "A"]), "model_a is None in row 2"),
        ((["x", "y"], ["y", float("nan")], ["A", "A"]), "model_b is NaN in row 2"),
        ((["x", "y"], ["y", "x"], ["A", None]), "winner is None in row 2"),
        ((["x", "y"], ["y", "x"], [1.0, None]), "winner is None in row 2"),
        ((["x", "y"], ["y", "x"], [1.0, float("nan")]), "winner is nan in row 2"),
        ((["x", "y"], ["y", "x"], [1.0, 1.5]), "winner is 1.5 in row 2"),
        ((["x", "y"], ["y", "x"], [-0.1, 0.2]), "winner is -0.1 in row 1"),
        ((["x", "y"], ["y", "x"], ["A", "nobody"]), "winner is 'nobody' in row 2"),
        ((["x", "y"], ["y", "x"], ["x", "z"]), "winner is 'z' in row 2"),
        ((["x", "y", "x"], ["y", "z", "y"], ["x", "x", "y"]), "neither of its models"),
        ((["A", "B"], ["B", "A"], ["A", "A"]), "could mean a side or the model of that name"),
        (("xy", ["y"], ["A"]), "model_a is a str"),
        ((["x", ["y"]], ["y", "x"], ["A", "A"]), "a cell is a list"),
    ],
)
def test_what_no_battle_can_be_is_refused(columns: tuple[Any, Any, Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        rank_battles(*columns)


@pytest.mark.parametrize(
    ("weight", "said"),
    [
        ([1.0, -2.0], "weight is -2 in row 2"),
        ([1.0, float("nan")], "weight is nan in row 2"),
        ([float("inf"), 1.0], "weight is inf in row 1"),
        ([0, 0], "every weight is 0"),
        (["much", "little"], "weight has no numbers"),
        ([1.0], "the columns differ in length"),
        ([1.0, None], "weight is None in row 2"),
        ([1e-300, 1.0], "weights range from 1e-300 to 1, too wide to fit"),
        ([1e300, 1e300], "weights range from 1e\\+300 to 1e\\+300"),
    ],
)
def test_what_no_weight_can_be_is_refused(weight: list[Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        rank_battles(["x", "y"], ["y", "x"], ["A", "A"], weight=weight)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"ties": "thirds"}, "ties is 'thirds'"),
        ({"intervals": "jackknife"}, "intervals is 'jackknife'"),
        ({"scale": "points"}, "scale is 'points'"),
        ({"level": 95}, "level is 95"),
        ({"prior": -1}, "prior is -1"),
        (
            {"prior": 5e-324},
            ("prior is 5e-324; give a number of virtual ties: 0, or at least 1e-06"),
        ),
        ({"replicates": 5}, "replicates is 5"),
        ({"models": ["x", "x"]}, "models names 'x' twice"),
        ({"models": ["x"]}, "not among the given models"),
        ({"prompt": ["p", None]}, "prompt is None in row 2"),
        ({"prior": 0.0}, "prior is 0, but the battles alone give no finite scores"),
    ],
)
def test_options_that_mean_nothing_are_refused(options: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        rank_battles(["x", "x"], ["y", "y"], ["A", "A"], **options)


def test_codes_beyond_the_models_are_refused() -> None:
    with pytest.raises(InputError, match="model_b is 3 in row 2, but there are 2 models"):
        rank_battles([0, 0], [1, 3], [1.0, 0.0], models=["x", "y"])
    with pytest.raises(InputError, match="model_a is -1 in row 1"):
        rank_battles(np.array([-1, 0]), np.array([1, 1]), [1.0, 0.0], models=["x", "y"])


def test_davidson_refuses_fractions() -> None:
    with pytest.raises(InputError, match=r"other than 0, 0\.5 and 1"):
        rank_battles(["x", "y"], ["y", "x"], [0.3, 0.8], ties="davidson")


def test_a_weight_of_nothing_is_a_battle_that_was_not_fought() -> None:
    a, b, winner = cycle()
    ranking = rank_battles([*a, "ghost"], [*b, "x"], [*winner, "A"], weight=[1.0] * len(a) + [0.0])
    assert ranking.never_compared == ("ghost",)
    assert row(ranking, "ghost").games == 0
    assert ranking.games == len(a)


def test_too_many_models_are_refused() -> None:
    names = [f"m{number}" for number in range(5001)]
    with pytest.raises(InputError, match="5,001 models, but at most 5,000"):
        rank_battles(names[:-1], names[1:], ["A"] * 5000)


@pytest.mark.parametrize(
    ("counts", "said"),
    [
        ({"wins_a": [1, -1], "wins_b": [1, 1]}, "wins_a is -1 in row 2"),
        ({"wins_a": [1, 1.5], "wins_b": [1, 1]}, "wins_a is 1.5 in row 2"),
        ({"wins_a": [0, 0], "wins_b": [0, 0]}, "every count is 0"),
        ({"wins_a": [1, 1], "wins_b": [1]}, "the columns differ in length"),
        ({"wins_a": [1, 1], "wins_b": [1, 1], "halves": [float("nan"), 1]}, "halves is nan"),
    ],
)
def test_what_no_count_can_be_is_refused(counts: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        rank_counts(["x", "y"], [0, 0], [1, 1], **counts)


def test_counts_of_a_model_with_itself_are_refused() -> None:
    with pytest.raises(InputError, match="'y' is compared with itself in row 2"):
        rank_counts(["x", "y"], [0, 1], [1, 1], wins_a=[1, 1], wins_b=[1, 1])


def test_nothing_in_a_result_is_infinite_or_nan() -> None:
    ranking = rank_battles(["x", "y", "v"], ["y", "z", "w"], ["A", "A", "B"])
    for found in ranking.models:
        for value in found.model_dump().values():
            assert not isinstance(value, float) or math.isfinite(value)


@pytest.mark.parametrize("turned", [False, True])
def test_rounded_weights_of_ties_are_no_wins(turned: bool) -> None:
    """x won once and the rest are ties, which settles no tie parameter; what is left when sums of
    tenths are subtracted from each other would have been a win of y."""
    weight = [0.1, 0.1, 1.0, 1.0, 2.5, 0.1, 0.1, 2.5, 1.0]
    first, second = list("xyyxyyxyx"), list("yxxyxxyxy")
    won = ["TIE"] * 7 + ["A" if turned else "B", "TIE"]
    columns = (second, first, won) if turned else (first, second, won)
    for factor in (1.0, 1e-10):
        weights = [factor * each for each in weight]
        ranking = rank_battles(*columns, weight=weights, ties="davidson")
        assert ranking.prior == 1
        assert any("do not determine" in note for note in ranking.notes)
        assert abs(row(ranking, "x").log_odds) < 2


@pytest.mark.parametrize("turned", [False, True])
def test_a_variance_of_rounding_is_no_interval(turned: bool) -> None:
    """a, d and e have nothing but ties and the wins of one prompt that cancel each other."""
    first, second = list("ecdcb"), list("beadc")
    won = ["TIE", "B", "TIE", "TIE", "B"]
    if turned:
        first, second = second, first
        won = [{"B": "A"}.get(each, each) for each in won]
    ranking = rank_battles(first, second, won, prompt=[2, 5, 1, 1, 5])
    told = [(each.low, each.high) for each in ranking.models]
    assert all(high - low > 1 for low, high in told if low is not None and high is not None)


def test_a_model_that_was_never_compared_comes_last_of_its_equals() -> None:
    ranking = rank_battles(["x"] * 4, ["y"] * 4, ["A", "B"] * 2, models=["ghost", "x", "y"])
    assert [row.model for row in ranking.models] == ["x", "y", "ghost"]
