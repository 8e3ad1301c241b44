"""Corrected win rates: the arithmetic, the mirror, what is excluded, and coverage in small."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scripts.verify_corrected import World, simulate

from evenhand.contract.codes import TIE, WIN_A, WIN_B
from evenhand.errors import InputError
from evenhand.stats.correction.corrected_rate import (
    CorrectedRate,
    corrected_win_rate,
    winner_scores,
)
from evenhand.stats.rates.win_rate import win_rate
from parts import examples

SCORES = (1.0, 0.5, 0.0)


def study(
    seed: int = 0, *, pairs: int = 400, labelled: int = 80, skill: float = 0.7
) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    people = rng.choice(SCORES, p=[0.5, 0.2, 0.3], size=pairs)
    judge = np.where(rng.random(pairs) < skill, people, rng.choice(SCORES, size=pairs))
    rows = rng.choice(pairs, labelled, replace=False)
    return {"judge_scores": judge, "label_pairs": rows, "label_scores": people[rows]}


def corrected(given: dict[str, Any], **more: Any) -> CorrectedRate:
    columns = {**given, **more}
    return corrected_win_rate(columns.pop("judge_scores"), columns.pop("label_pairs"), **columns)


def bounds(found: CorrectedRate) -> list[float]:
    parts = (found.corrected, found.people_only, found.uncorrected)
    values = [value for part in parts for value in (part.rate, part.low, part.high)]
    assert all(value is not None for value in values)
    return [value for value in values if value is not None]


def test_people_only_is_the_win_rate_of_the_labels() -> None:
    given = study()
    codes = np.select([given["label_scores"] == s for s in SCORES], [WIN_A, TIE, WIN_B])
    alone, expected = corrected(given).people_only, win_rate(codes)
    assert (alone.rate, alone.low, alone.high) == pytest.approx(
        (expected.rate, expected.low, expected.high)
    )


def test_uncorrected_is_the_win_rate_of_the_judge() -> None:
    given = study()
    codes = np.select([given["judge_scores"] == s for s in SCORES], [WIN_A, TIE, WIN_B])
    judged, expected = corrected(given).uncorrected, win_rate(codes)
    assert (judged.rate, judged.low, judged.high) == pytest.approx(
        (expected.rate, expected.low, expected.high)
    )


def test_a_judge_that_is_always_right_is_believed() -> None:
    given = study(skill=1.0)
    found = corrected(given)
    # Judge and people agree on every label, so the slope is 1 and no error is left.
    assert found.judge_weight == pytest.approx(1.0)
    assert found.corrected.rate == pytest.approx(float(given["judge_scores"].mean()))
    assert found.gain is not None
    assert found.gain > 2


def test_a_judge_that_says_the_same_of_all_is_not_used() -> None:
    found = corrected(study(), judge_scores=np.ones(400))
    assert found.judge_weight == 0.0
    assert found.gain == 1.0
    assert found.corrected.rate == found.people_only.rate
    assert (found.corrected.low, found.corrected.high) == (
        found.people_only.low,
        found.people_only.high,
    )


def test_a_judge_that_is_always_wrong_is_not_used() -> None:
    given = study(skill=1.0)
    found = corrected(given, judge_scores=1.0 - given["judge_scores"])
    assert found.judge_weight == 0.0


def test_where_all_pairs_are_labelled_there_is_nothing_to_correct() -> None:
    found = corrected(study(pairs=100, labelled=100))
    assert found.judge_weight == 0.0
    assert found.corrected.rate == found.people_only.rate


def test_the_rate_is_the_weighted_judge_and_what_people_add() -> None:
    # Thirty wins of the judge and thirty losses are labelled, of which people overturn six each:
    # people's mean is 24 / 30 on the one and 6 / 30 on the other, a slope of 0.6.
    judge = np.array([1.0, 0.0] * 30 + [1.0] * 180 + [0.0] * 60)
    people = judge[:60].copy()
    people[:12] = 1.0 - people[:12]
    found = corrected_win_rate(judge, np.arange(60), label_scores=people)
    assert found.judge_weight is not None
    # Shrunk by 1 / t^2 = (1 - 0.36) / (0.36 * 57) = 0.031, and learned from 59 rows each.
    assert found.judge_weight == pytest.approx(0.6 * (1 - 0.031), abs=0.003)
    # The judge's mean is 210 / 300 over all and 0.5 over the labelled, where people say 0.5.
    assert found.corrected.rate == pytest.approx(0.5 + found.judge_weight * 0.2, abs=0.003)


@pytest.mark.parametrize("chances", [None, "by pair"])
@given(seed=st.integers(0, 10_000), skill=st.floats(0, 1), prompts=st.integers(20, 400))
@settings(max_examples=examples(30))
def test_exchanging_a_and_b_mirrors_everything(
    chances: str | None, seed: int, skill: float, prompts: int
) -> None:
    given = study(seed, skill=skill)
    more: dict[str, Any] = {"prompts": np.arange(400) % prompts}
    if chances is not None:
        more["chances"] = np.random.default_rng(seed).uniform(0.1, 0.9, 400)
    found = corrected(given, **more)
    mirrored = corrected(
        {
            "judge_scores": 1.0 - given["judge_scores"],
            "label_pairs": given["label_pairs"],
            "label_scores": 1.0 - given["label_scores"],
        },
        **more,
    )
    for name in ("corrected", "uncorrected", "people_only"):
        own, other = getattr(found, name), getattr(mirrored, name)
        assert (own.rate, own.low, own.high) == (1 - other.rate, 1 - other.high, 1 - other.low)
    assert (found.judge_weight, found.gain) == (mirrored.judge_weight, mirrored.gain)


@given(seed=st.integers(0, 10_000), skill=st.floats(0, 1), labelled=st.integers(10, 200))
@settings(max_examples=examples(60))
def test_the_interval_is_never_wider_than_peoples_own(
    seed: int, skill: float, labelled: int
) -> None:
    rate, low, high, _, alone_low, alone_high, *_ = bounds(
        corrected(study(seed, labelled=labelled, skill=skill))
    )
    assert 0 <= low <= rate <= high <= 1
    assert low < high
    assert high - low <= alone_high - alone_low + 1e-12


def test_several_labels_of_a_pair_count_as_their_mean() -> None:
    given = study()
    rows, scores = given["label_pairs"], given["label_scores"]
    twice = corrected(given, label_pairs=np.tile(rows, 2), label_scores=np.tile(scores, 2))
    assert twice.labels == 160
    assert twice.labelled == 80
    assert bounds(twice) == bounds(corrected(given))


def test_labels_from_escalation_are_left_out_and_counted() -> None:
    given = study()
    free = np.setdiff1d(np.arange(400), given["label_pairs"])[:30]
    both = np.r_[given["label_pairs"], free, given["label_pairs"][:5]]
    scores = np.r_[given["label_scores"], np.zeros(30), np.zeros(5)]
    found = corrected(
        given, label_pairs=both, label_scores=scores, escalated=np.arange(both.size) >= 80
    )
    assert bounds(found) == bounds(corrected(given))
    assert found.excluded.escalated == 35
    # The five pairs that were also drawn at random keep their random label.
    assert found.excluded.pairs == 30


def test_labels_of_people_who_could_not_decide_are_left_out_and_counted() -> None:
    given = study()
    scores, decided = winner_scores([0] * 10 + [-1] * 2)
    found = corrected(given, label_pairs=np.arange(12), label_scores=scores, label_decided=decided)
    assert (found.labelled, found.excluded.undecided, found.excluded.pairs) == (10, 2, 2)


def test_a_pair_the_judge_could_not_read_stays_in() -> None:
    given = study()
    read = np.arange(400) >= 40
    found = corrected(given, judge_read=read)
    assert found.judge_unread == 40
    assert found.uncorrected.n == 360
    assert found.corrected.n == 400
    half = np.where(read, given["judge_scores"], 0.5)
    assert found.corrected == corrected(given, judge_scores=half).corrected


def test_equal_chances_are_a_random_draw() -> None:
    given = study()
    even = corrected(given, chances=np.full(400, 80 / 400))
    assert bounds(even) == pytest.approx(bounds(corrected(given)))
    assert even.drawn == "with known chances"


def test_chances_weigh_the_labels() -> None:
    # Twelve wins drawn with a chance of 0.2 stand for 60, twelve losses with 0.6 for 20.
    chances = np.array([0.2] * 12 + [0.6] * 12 + [0.5] * 56)
    people = np.array([1.0] * 12 + [0.0] * 12)
    found = corrected_win_rate(
        np.full(80, 0.5), np.arange(24), label_scores=people, chances=chances
    )
    assert found.people_only.rate == pytest.approx(60 / 80)
    assert found.corrected.rate == pytest.approx(60 / 80)


@pytest.mark.parametrize(
    ("labelled", "reason"),
    [
        (0, "not enough data: 0 labelled pairs; at least 6 are needed"),
        (1, "not enough data: 1 labelled pair; at least 6 are needed"),
        (9, "not enough data: 9 labelled pairs; at least 10 are needed"),
    ],
)
def test_too_few_labels_say_so(labelled: int, reason: str) -> None:
    found = corrected(study(labelled=labelled))
    assert found.reason == found.corrected.reason == reason
    assert found.corrected.rate is None
    assert found.judge_weight is None
    assert found.uncorrected.rate is not None


def test_prompts_that_are_all_alike_are_borne() -> None:
    # Each prompt has a win and a loss: no prompt differs from another.
    people = np.array([1.0, 0.0] * 30)
    found = corrected_win_rate(
        np.tile(people, 3), np.arange(60), label_scores=people, prompts=np.arange(180) // 2
    )
    assert found.corrected.rate == pytest.approx(0.5)
    assert found.corrected.low is not None
    assert found.corrected.low < 0.5


def test_labels_of_four_prompts_are_too_few() -> None:
    found = corrected(study(), prompts=np.arange(400) % 4)
    assert found.reason == "not enough data: 4 prompts; at least 5 are needed"


def test_no_pairs_at_all_are_too_few() -> None:
    found = corrected_win_rate([], [], label_scores=[])
    assert found.pairs == 0
    assert found.corrected.rate is None


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"judge_scores": [1.5] * 400}, "judge_scores has 1.5 in row 0"),
        ({"judge_scores": [float("nan")] * 400}, "judge_scores has nan in row 0"),
        ({"label_scores": [0.5]}, "label_scores has length 1 and label_pairs 80"),
        ({"label_pairs": np.full(80, 400)}, "label_pairs has 400 in row 0"),
        ({"chances": np.zeros(400)}, "chances has 0.0 in row"),
        ({"chances": [0.5]}, "chances has length 1"),
        ({"escalated": [True]}, r"escalated has shape \(1,\)"),
        ({"escalated": [1] * 80}, "escalated are int64"),
        ({"prompts": ["one"]}, "prompts has length 1"),
        ({"level": 1.0}, "level is 1.0"),
    ],
)
def test_a_mistake_is_named(change: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        corrected(study(), **change)


def test_the_result_travels_as_json() -> None:
    found = corrected(study())
    assert CorrectedRate.model_validate_json(found.model_dump_json()) == found
    assert "judgeWeight" in found.model_dump(mode="json")


@pytest.mark.slow
@pytest.mark.parametrize(
    "world",
    [
        World(judge="fair, favours A", labelled=50, rate=0.6, ties=0.3),
        pytest.param(
            World(judge="good, favours B", labelled=100, rate=0.75, ties=0.1),
            marks=pytest.mark.slow,
        ),
        pytest.param(
            World(judge="fair", labelled=100, rate=0.75, ties=0.1, repeat=5, steady=0.5),
            marks=pytest.mark.slow,
        ),
        pytest.param(
            World(judge="fair, favours A", labelled=100, rate=0.5, ties=0.0, drawn="by doubt"),
            marks=pytest.mark.slow,
        ),
    ],
)
def test_the_corrected_rate_is_covered_where_the_judges_own_is_not(world: World) -> None:
    cell = simulate(np.random.default_rng(5), world, 300)
    # 300 replicates err by 1.3 points
    assert 0.93 - 0.032 <= cell.coverage <= 0.97 + 0.025
    assert cell.uncorrected < 0.3
    assert cell.width < 0.97


@pytest.mark.slow
def test_a_useless_judge_costs_nothing() -> None:
    world = World(judge="useless", labelled=30, rate=0.6, ties=0.3)
    cell = simulate(np.random.default_rng(6), world, 300)
    assert cell.coverage >= 0.93 - 0.032
    assert cell.width <= 1.0


def test_the_smallest_chances_are_only_small() -> None:
    judge, rows, scores = [1.0, 0.0] * 50, list(range(0, 100, 5)), [1, 0] * 10
    found = [
        corrected_win_rate(
            judge, rows, label_scores=scores, chances=np.where(np.arange(100) < 50, small, 0.5)
        )
        for small in (1e-12, 1e-300)
    ]
    # The half with the small chance has all of the weight, whatever that chance is.
    assert found[0].corrected.rate == pytest.approx(found[1].corrected.rate)
    assert found[0].corrected.low == pytest.approx(found[1].corrected.low)
