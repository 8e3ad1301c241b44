"""Rankings against evalica, against naive implementations, and against themselves."""

from __future__ import annotations

import csv
import math
from pathlib import Path
from typing import Any

import evalica
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from evenhand.stats.ranking.leaderboard import rank_battles, rank_counts
from evenhand.stats.ranking.result import Ranking
from naive_ranking import Field, make_field, maximise_davidson, minorise
from parts import examples, missing

SCORES = {"A": 1.0, "B": 0.0, "tie": 0.5, "left": 1.0, "right": 0.0}
WINNERS = {1.0: evalica.Winner.X, 0.0: evalica.Winner.Y, 0.5: evalica.Winner.Draw}
GOLDEN = Path(__file__).resolve().parents[3] / "shared" / "data" / "rankings"


def log_odds(ranking: Ranking) -> dict[str, float]:
    return {row.model: row.log_odds for row in ranking.models}


def shares(scores: dict[str, float]) -> dict[str, float]:
    total = sum(scores.values())
    return {name: score / total for name, score in scores.items()}


def strengths(ranking: Ranking) -> dict[str, float]:
    return shares({name: math.exp(value) for name, value in log_odds(ranking).items()})


def ranked(made: Field, **options: Any) -> Ranking:
    return rank_battles(made.a, made.b, made.winner, **options)


@pytest.mark.recorded
@pytest.mark.parametrize("name", ["food", "simple"])
@pytest.mark.parametrize(("ties", "algorithm"), [("half", "bradley_terry"), ("davidson", "newman")])
def test_scores_are_those_of_evalicas_golden_files(name: str, ties: Any, algorithm: str) -> None:
    path = GOLDEN / f"evalica_{name}.csv"
    if not path.exists():
        message = f"no golden files beside the project in {'/'.join(GOLDEN.parts[-3:])}"
        missing(message)
    with path.open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    with path.with_name(f"evalica_{name}-golden.csv").open(encoding="utf-8") as file:
        golden = {
            row["item"]: float(row["score"])
            for row in csv.DictReader(file)
            if row["algorithm"] == algorithm
        }
    columns = ([row[key] for row in rows] for key in ("left", "right", "winner"))
    ranking = rank_battles(*columns, ties=ties)
    assert strengths(ranking) == pytest.approx(shares(golden), abs=1e-6)
    assert ranking.prior == 0


@pytest.mark.parametrize("seed", range(8))
def test_scores_are_evalicas_on_random_battles(seed: int) -> None:
    made = make_field(3 + 2 * seed, 400, seed=seed)
    winners = [WINNERS[SCORES[winner]] for winner in made.winner]
    options: dict[str, Any] = {"tolerance": 1e-13, "limit": 100_000}
    half = evalica.bradley_terry(made.a, made.b, winners, **options).scores.to_dict()
    newman = evalica.newman(made.a, made.b, winners, **options)
    assert strengths(ranked(made)) == pytest.approx(shares(half), abs=1e-9)
    davidson = ranked(made, ties="davidson")
    assert strengths(davidson) == pytest.approx(shares(newman.scores.to_dict()), abs=1e-9)
    # Newman writes the weight of a tie as 2v times the geometric mean of the strengths.
    assert davidson.tie_parameter == pytest.approx(2 * newman.v, rel=1e-6)


@pytest.mark.parametrize("seed", range(3))
def test_scores_are_those_of_the_naive_implementations(seed: int) -> None:
    made = make_field(4, 80, seed=seed)
    weights = [1 + (row % 3) / 2 for row in range(80)]
    scores = [SCORES[winner] for winner in made.winner]
    battles = list(zip(made.a, made.b, scores, weights, strict=True))
    found = log_odds(ranked(made, weight=weights))
    assert found == pytest.approx(minorise(battles), abs=1e-9)
    expected, ties = maximise_davidson(battles)
    davidson = ranked(made, weight=weights, ties="davidson")
    assert log_odds(davidson) == pytest.approx(expected, abs=1e-5)
    assert davidson.tie_parameter == pytest.approx(ties, rel=1e-4)


def test_preferences_may_be_fractions() -> None:
    made = make_field(4, 60, seed=5)
    preferences = [(row * 7 % 11) / 10 for row in range(60)]
    battles = list(zip(made.a, made.b, preferences, [1.0] * 60, strict=True))
    found = rank_battles(made.a, made.b, preferences)
    assert log_odds(found) == pytest.approx(minorise(battles), abs=1e-9)


def test_two_models_have_the_log_odds_of_their_battles() -> None:
    # 6 wins, 2 losses, 2 ties: 7 points to 3, a log-odds of log(7 / 3) between the two.
    winner = ["x"] * 6 + ["y"] * 2 + ["tie"] * 2
    ranking = rank_battles(["x"] * 10, ["y"] * 10, winner)
    best, worst = ranking.models
    assert (best.model, best.rank, worst.rank) == ("x", 1, 2)
    assert best.log_odds - worst.log_odds == pytest.approx(math.log(7 / 3))
    assert best.score == pytest.approx(1000 + 400 * math.log10(7 / 3) / 2)
    assert best.score + worst.score == pytest.approx(2000)
    assert ranking.win_matrix[0][1] == pytest.approx(0.7)
    assert ranking.win_matrix[1][0] == pytest.approx(0.3)
    # The variance of log(p / (1 - p)) is that of a battle over n (p q)², and half the difference
    # is a quarter of it: scores 1, 0, ½ around 0.7, corrected by 10 / 9 and 9 / 9.
    scatter = (6 * 0.3**2 + 2 * 0.7**2 + 2 * 0.2**2) * 10 / 9
    error = math.sqrt(scatter) / (10 * 0.21) / 2
    student = 2.262157  # with 9 degrees of freedom
    assert best.high is not None
    assert best.high - best.score == pytest.approx(student * error * 400 / math.log(10), rel=1e-5)


def test_davidsons_win_matrix_counts_a_tie_as_half() -> None:
    winner = ["A"] * 5 + ["B"] * 2 + ["TIE"] * 3
    ranking = rank_battles(["x"] * 10, ["y"] * 10, winner, ties="davidson")
    # Two models and three outcomes: the model fits the shares 0.5, 0.2 and 0.3 exactly.
    assert ranking.win_matrix[0][1] == pytest.approx(0.65)
    assert ranking.models[0].log_odds * 2 == pytest.approx(math.log(0.5 / 0.2))
    assert ranking.tie_parameter == pytest.approx(0.3 / math.sqrt(0.5 * 0.2))


def test_a_ranking_is_frozen_and_carries_its_settings() -> None:
    ranking = ranked(make_field(4, 200, seed=1), level=0.9, scale="log-odds")
    assert (ranking.level, ranking.scale, ranking.ties) == (0.9, "log-odds", "half")
    assert (ranking.intervals, ranking.clusters, ranking.cluster_count) == ("sandwich", "row", 200)
    assert ranking.anchor == "the mean log-odds of all models is 0"
    assert [row.score for row in ranking.models] == [row.log_odds for row in ranking.models]
    with pytest.raises(ValueError, match="frozen"):
        ranking.level = 0.5  # type: ignore[misc]
    told = ranking.model_dump(mode="json")
    assert {"rankLow", "logOdds", "games"} <= set(told["models"][0])
    assert len(told["winMatrix"]) == 4


def test_without_intervals_nothing_is_said_of_them() -> None:
    ranking = ranked(make_field(4, 100, seed=2), intervals=None)
    assert all(
        row.low is row.high is row.rank_low is row.rank_high is None for row in ranking.models
    )
    assert ranking.indistinguishable is None
    assert ranking.reason is None


def test_games_are_the_rows_a_model_was_in() -> None:
    ranking = rank_battles(["x", "x", "y"], ["y", "z", "z"], ["A", "B", "A"], intervals=None)
    assert {row.model: row.games for row in ranking.models} == {"x": 2, "y": 2, "z": 2}
    assert ranking.games == 3


@pytest.mark.parametrize("ties", ["half", "davidson"])
@pytest.mark.parametrize("intervals", ["sandwich", "bootstrap"])
def test_counts_give_what_battles_give(ties: Any, intervals: Any) -> None:
    made = make_field(5, 300, seed=3, rows_a_prompt=4)
    names = sorted(made.strengths)
    place = {name: number for number, name in enumerate(names)}
    groups: dict[tuple[int, int, str], list[int]] = {}
    for left, right, winner, prompt in zip(made.a, made.b, made.winner, made.prompt, strict=True):
        counts = groups.setdefault((place[left], place[right], prompt), [0, 0, 0])
        counts[{"A": 0, "B": 1, "tie": 2}[winner]] += 1
    a, b, prompts = zip(*groups, strict=True)
    wins_a, wins_b, halves = zip(*groups.values(), strict=True)
    counted: dict[str, Any] = {"wins_a": wins_a, "wins_b": wins_b, "halves": halves}
    options: dict[str, Any] = {"ties": ties, "intervals": intervals, "replicates": 200}
    whole = ranked(made, prompt=made.prompt, **options)
    grouped = rank_counts(names, a, b, prompt=prompts, **counted, **options)
    assert grouped.cluster_count == whole.cluster_count == 75
    if intervals == "sandwich":
        assert _numbers(grouped) == pytest.approx(_numbers(whole), rel=1e-9)
    rows = ranked(made, **options)
    by_row = rank_counts(names, a, b, **counted, **options)
    assert _numbers(by_row) == pytest.approx(_numbers(rows), rel=1e-9)


def _numbers(ranking: Ranking) -> dict[str, float]:
    return {
        f"{row.model}.{name}": value
        for row in ranking.models
        for name, value in row.model_dump().items()
        if isinstance(value, int | float)
    }


def test_ranks_hold_every_model_that_is_not_significantly_different() -> None:
    ranking = ranked(make_field(6, 4000, seed=11))
    size = len(ranking.models)
    for row in ranking.models:
        assert row.rank_low is not None
        assert row.rank_high is not None
        assert 1 <= row.rank_low <= row.rank <= row.rank_high <= size
    assert ranking.indistinguishable is not None
    alike = {(pair.better, pair.worse) for pair in ranking.indistinguishable}
    for better, worse in zip(ranking.models[:-1], ranking.models[1:], strict=True):
        if (better.model, worse.model) in alike:
            continue
        assert better.rank_low is not None
        assert worse.rank_low is not None
        assert worse.rank_low > better.rank_low or better.rank_high < worse.rank_high  # type: ignore[operator]
    for pair in ranking.indistinguishable:
        assert pair.low is not None
        assert pair.high is not None
        assert pair.low <= 0 <= pair.difference <= pair.high


def test_the_bootstrap_agrees_with_the_sandwich_and_with_its_seed() -> None:
    made = make_field(5, 3000, seed=4, rows_a_prompt=3)
    sandwich = ranked(made, prompt=made.prompt)
    drawn = ranked(made, prompt=made.prompt, intervals="bootstrap", replicates=2000, seed=7)
    again = ranked(made, prompt=made.prompt, intervals="bootstrap", replicates=2000, seed=7)
    assert drawn == again
    assert (drawn.replicates, drawn.seed) == (2000, 7)
    for one, other in zip(sandwich.models, drawn.models, strict=True):
        assert one.model == other.model
        assert one.low is not None
        assert other.low is not None
        assert one.high is not None
        assert other.high is not None
        assert (other.high - other.low) / (one.high - one.low) == pytest.approx(1, abs=0.1)


def test_replicates_that_do_not_converge_are_fitted_alone() -> None:
    # One loss in twelve battles is absent from a third of the replicates.
    winner = ["A"] * 11 + ["B"] + ["A", "B"] * 6
    a = ["x"] * 12 + ["y"] * 12
    b = ["y"] * 12 + ["z"] * 12
    ranking = rank_battles(a, b, winner, intervals="bootstrap", replicates=300)
    assert ranking.refitted
    for row in ranking.models:
        assert row.low is not None
        assert row.high is not None
        assert row.low < row.score < row.high


def test_a_weighted_or_fractional_row_is_drawn_as_a_whole() -> None:
    made = make_field(4, 300, seed=6)
    plain = ranked(made, intervals="bootstrap", replicates=2000)
    doubled = ranked(made, weight=[2.0] * 300, intervals="bootstrap", replicates=2000)
    for one, other in zip(plain.models, doubled.models, strict=True):
        assert one.model == other.model
        width = (one.high or 0) - (one.low or 0), (other.high or 0) - (other.low or 0)
        assert width[1] / width[0] == pytest.approx(1, abs=0.1)


battles = st.lists(
    st.tuples(
        st.sampled_from("wxyz"), st.sampled_from("wxyz"), st.sampled_from(["A", "B", "tie"])
    ).filter(lambda row: row[0] != row[1]),
    min_size=2,
    max_size=40,
)
MIRROR = {"A": "B", "B": "A", "tie": "tie"}


def _columns(rows: list[tuple[str, str, str]]) -> tuple[list[str], list[str], list[str]]:
    a, b, winner = zip(*rows, strict=True)
    return list(a), list(b), list(winner)


@settings(max_examples=examples(60))
@given(battles)
def test_mirrored_battles_give_the_same_ranking(rows: list[tuple[str, str, str]]) -> None:
    mirrored = [(b, a, MIRROR[winner]) for a, b, winner in rows]
    _assert_alike(rank_battles(*_columns(rows)), rank_battles(*_columns(mirrored)))


@settings(max_examples=examples(60))
@given(battles, st.randoms(use_true_random=False))
def test_the_order_of_rows_does_not_matter(rows: list[tuple[str, str, str]], random: Any) -> None:
    mixed = list(rows)
    random.shuffle(mixed)
    _assert_alike(rank_battles(*_columns(rows)), rank_battles(*_columns(mixed)))


@settings(max_examples=examples(60))
@given(battles)
def test_names_do_not_matter(rows: list[tuple[str, str, str]]) -> None:
    names = {"w": "9", "x": "Zed", "y": "α", "z": "b b"}
    renamed = [(names[a], names[b], winner) for a, b, winner in rows]
    plain = rank_battles(*_columns(rows))
    turned = rank_battles(*_columns(renamed))
    found = log_odds(turned)
    assert {names[model]: value for model, value in log_odds(plain).items()} == pytest.approx(
        found, abs=1e-6
    )


@settings(max_examples=examples(60))
@given(battles, st.sampled_from(["half", "davidson"]))
def test_a_battle_may_be_split_into_parts_of_its_weight(
    rows: list[tuple[str, str, str]], ties: Any
) -> None:
    a, b, winner = _columns(rows)
    assume(ties == "half" or set(winner) != {"tie"})
    whole = rank_battles(a, b, winner, ties=ties, intervals=None)
    parts = rank_battles(
        a * 2, b * 2, winner * 2, ties=ties, intervals=None,
        weight=[0.25] * len(a) + [0.75] * len(a),
    )  # fmt: skip
    assert log_odds(whole) == pytest.approx(log_odds(parts), abs=1e-6)
    assert whole.tie_parameter == pytest.approx(parts.tie_parameter, abs=1e-6)


@settings(max_examples=examples(60))
@given(battles)
def test_a_prompt_a_row_gives_the_intervals_of_rows(rows: list[tuple[str, str, str]]) -> None:
    columns = _columns(rows)
    by_row = rank_battles(*columns)
    by_prompt = rank_battles(*columns, prompt=list(range(len(rows))))
    _assert_alike(by_row, by_prompt)


def _assert_alike(one: Ranking, other: Ranking) -> None:
    assert log_odds(one) == pytest.approx(log_odds(other), abs=1e-6)
    limits = (
        {row.model: (row.low or -1.0, row.high or -1.0) for row in ranking.models}
        for ranking in (one, other)
    )
    first, second = limits
    for model, (low, high) in first.items():
        assert second[model] == pytest.approx((low, high), abs=1e-3)
    assert set(one.undefeated) == set(other.undefeated)
    assert one.prior == other.prior


def test_places_serve_for_names_where_models_are_given() -> None:
    made = make_field(4, 200, seed=8)
    names = sorted(made.strengths, reverse=True)
    place = {name: number for number, name in enumerate(names)}
    a, b = (np.array([place[name] for name in column]) for column in (made.a, made.b))
    coded = rank_battles(a, b, [SCORES[winner] for winner in made.winner], models=names)
    assert log_odds(coded) == pytest.approx(log_odds(ranked(made)), abs=1e-9)
