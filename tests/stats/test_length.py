"""Length: how often the longer wins, and the planted rate at equal length."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.special import expit
from scripts.simulated_lengths import SHIFTS, Cell, measure

from evenhand.contract.codes import INCONSISTENT, INVALID, TIE, WIN_A, WIN_B
from evenhand.errors import InputError
from evenhand.stats.proportions import wilson_interval
from evenhand.stats.rates.length_bias import ControlledRate, length_effect
from parts import examples

Floats = NDArray[np.float64]


def _planted(
    rng: np.random.Generator, pairs: int, *, base: float, effect: float, longer: float
) -> tuple[NDArray[np.int64], Floats, Floats]:
    difference = rng.normal(longer, 1.0, pairs)
    chance = expit(base + effect * np.tanh(difference))
    outcomes = np.where(rng.random(pairs) < chance, WIN_A, WIN_B)
    lengths = 1000 + 300 * np.maximum(difference, 0), 1000 + 300 * np.maximum(-difference, 0)
    return outcomes, *lengths


def _controlled(outcomes: Any, length_a: Any, length_b: Any, **more: Any) -> ControlledRate:
    (only,) = length_effect(outcomes, length_a=length_a, length_b=length_b, **more).controlled
    return only


def test_the_longer_wins_are_counted_among_decided_pairs_of_unequal_length() -> None:
    outcomes = [WIN_A] * 6 + [WIN_B] * 3 + [WIN_A] + [TIE, INVALID, WIN_A]
    length_a = [20] * 6 + [10] * 3 + [10] + [20, 20, 15]
    length_b = [10] * 6 + [20] * 3 + [20] + [10, 10, 15]
    share = length_effect(outcomes, length_a=length_a, length_b=length_b).longer_wins
    # nine of the ten that count; the tie, the invalid pair and the equal lengths do not
    assert (share.part, share.of, share.value) == (9, 10, 0.9)
    assert (share.low, share.high) == pytest.approx(wilson_interval(9, 10))


def test_planted_rate_and_effect_are_recovered() -> None:
    rng = np.random.default_rng(5)
    outcomes, length_a, length_b = _planted(rng, 40_000, base=0.4, effect=1.0, longer=0.8)
    found = _controlled(outcomes, length_a, length_b)
    assert found.rate == pytest.approx(expit(0.4), abs=0.01)
    assert found.effect == pytest.approx(np.tanh(1.0), abs=0.05)
    assert found.converged
    assert found.separated is False
    # uncontrolled, the longer side looks much better than it is
    assert (outcomes == WIN_A).mean() > expit(0.4) + 0.08


def test_intervals_cover_the_planted_rate_with_repeated_prompts() -> None:
    rng = np.random.default_rng(6)
    covered = 0
    for _ in range(200):
        outcomes, length_a, length_b = _planted(rng, 150, base=0.5, effect=1.0, longer=0.5)
        prompts = np.arange(150) // 3
        found = _controlled(outcomes, length_a, length_b, prompts=prompts)
        assert found.low is not None
        assert found.high is not None
        covered += found.low <= expit(0.5) <= found.high
    # 95% of 200, give or take three standard errors of 3.1
    assert 181 <= covered <= 199


def test_merit_that_comes_with_length_is_taken_out_and_the_rate_says_so() -> None:
    """A judge without any bias: the more complete answer wins nine times of ten, and is longer.
    A's is the more complete one in 300 of 400 pairs, so A's true win rate is
    (300 * 0.9 + 100 * 0.1) / 400 = 0.7."""
    longer = np.repeat([1, -1], [300, 100])
    wins = np.concatenate([[0] * 270 + [1] * 30, [0] * 10 + [1] * 90])
    effect = length_effect(wins, length_a=200 + 100 * longer, length_b=np.full(400, 200))
    (found,) = effect.controlled
    assert (wins == 0).mean() == 0.7
    assert found.high is not None
    assert found.high < 0.7
    assert found.caution is not None
    assert "also removes real gains from detail, so it is low for the side that writes more" in (
        found.caution
    )
    (none,) = length_effect([0] * 6, length_a=[2] * 6, length_b=[1] * 6).controlled
    assert (none.rate, none.caution) == (None, None)


def test_ties_are_half_a_win() -> None:
    rng = np.random.default_rng(7)
    outcomes, length_a, length_b = _planted(rng, 20_000, base=0.8, effect=0.0, longer=0.0)
    outcomes[rng.random(20_000) < 0.5] = TIE
    found = _controlled(outcomes, length_a, length_b)
    assert found.rate == pytest.approx(0.5 * expit(0.8) + 0.25, abs=0.01)
    decided = outcomes != TIE
    without = _controlled(outcomes[decided], length_a[decided], length_b[decided])
    assert found.low is not None
    assert found.high is not None
    assert without.low is not None
    assert without.high is not None
    assert found.high - found.low < without.high - without.low


@given(seed=st.integers(0, 10_000), pairs=st.integers(20, 60))
@settings(max_examples=examples(30))
def test_swapping_a_and_b_mirrors_the_controlled_rate(seed: int, pairs: int) -> None:
    rng = np.random.default_rng(seed)
    outcomes = rng.integers(0, 5, pairs)
    length_a, length_b = rng.integers(0, 2000, (2, pairs))
    prompts = rng.integers(0, 15, pairs)
    found = _controlled(outcomes, length_a, length_b, prompts=prompts)
    turned = np.array([WIN_B, WIN_A, 2, 3, 4])[outcomes]
    mirror = _controlled(turned, length_b, length_a, prompts=prompts)
    if found.rate is None:
        assert mirror.rate is None
        return
    assert found.low is not None
    assert found.effect is not None
    assert mirror.rate == pytest.approx(1 - found.rate, abs=1e-7)
    assert mirror.high == pytest.approx(1 - found.low, abs=1e-7)
    assert mirror.effect == pytest.approx(found.effect, abs=1e-6)


@pytest.mark.parametrize("won", [0, 4])
def test_inconsistent_pairs_alone_are_no_certain_half(won: int) -> None:
    outcomes = [WIN_A] * won + [INCONSISTENT] * (40 - won)
    told = _controlled(outcomes, [10, 20] * 20, [20, 10] * 20)
    assert (told.rate, told.low, told.high) == (None, None, None)
    assert told.reason == f"not enough data: {won} decisive pairs; at least 5 are needed"


def test_all_wins_are_separated_and_not_certain() -> None:
    rng = np.random.default_rng(8)
    length_a, length_b = rng.integers(0, 2000, (2, 50))
    found = _controlled([WIN_A] * 50, length_a, length_b)
    assert found.separated
    assert found.converged
    assert found.rate is not None
    assert found.low is not None
    assert found.low < 0.97 < found.rate < 1


def test_a_length_that_decides_alone_is_separated_and_wide() -> None:
    difference = np.linspace(-500, 500, 40)
    outcomes = np.where(difference > 0, WIN_A, WIN_B)
    found = _controlled(outcomes, 1000 + difference, np.full(40, 1000.0))
    assert found.separated
    assert found.rate == pytest.approx(0.5, abs=1e-6)
    assert found.effect_low is not None
    assert found.effect_low > 0


def test_a_side_that_is_always_longer_cannot_be_told_from_its_length() -> None:
    rng = np.random.default_rng(9)
    found = _controlled(rng.integers(0, 2, 100), rng.integers(600, 900, 100), [100] * 100)
    assert found.rate is None
    assert found.reason == (
        "length and model cannot be separated: A is longer in all but 0 of 100 pairs; at "
        "least 5 others are needed"
    )
    assert found.share_longer == 1.0


def test_a_reason_calls_the_side_by_its_name() -> None:
    rng = np.random.default_rng(9)
    found = _controlled(rng.integers(0, 2, 100), [50] * 100, rng.integers(600, 900, 100), side="B")
    assert found.reason is not None
    assert "B is shorter in all but 0 of 100 pairs" in found.reason


def test_known_difficulty_takes_its_part_of_the_scatter() -> None:
    rng = np.random.default_rng(12)
    ease = rng.normal(0.0, 2.0, 4000)
    difference = rng.normal(0.5, 1.0, 4000)
    chance = expit(0.3 + ease + np.tanh(difference))
    outcomes = np.where(rng.random(4000) < chance, WIN_A, WIN_B)
    lengths = 2000 + 300 * difference, np.full(4000, 2000.0)
    found = _controlled(outcomes, *lengths, difficulty=ease)
    assert found.difficulty
    # the mean over these very prompts, at equal length
    assert found.rate == pytest.approx(float(expit(0.3 + ease).mean()), abs=0.015)
    # conditional on the prompt, the effect of length is the planted one and not a washed-out one
    assert found.effect == pytest.approx(np.tanh(1.0), abs=0.12)
    without = _controlled(outcomes, *lengths)
    assert without.effect is not None
    assert found.effect is not None
    assert without.effect < 0.75 * found.effect


def test_difficulty_that_cannot_be_is_an_error() -> None:
    lengths: dict[str, Any] = {"length_a": [1, 2], "length_b": [2, 1]}
    with pytest.raises(InputError, match="difficulty has nan in row 1; give finite numbers"):
        length_effect([WIN_A, WIN_B], **lengths, difficulty=[0.0, float("nan")])


def test_equal_lengths_leave_nothing_to_control() -> None:
    found = _controlled([WIN_A, WIN_B] * 20, [100] * 40, [100] * 40)
    assert found.rate is None
    assert found.reason is not None
    assert "every pair has the same length difference" in found.reason


@pytest.mark.parametrize(
    ("pairs", "prompts", "reason"),
    [
        (0, None, "not enough data: 0 valid pairs; at least 20 are needed"),
        (19, None, "not enough data: 19 valid pairs; at least 20 are needed"),
        (60, 9, "not enough data: 9 prompts; at least 10 are needed"),
    ],
)
def test_too_little_data_is_a_reason(pairs: int, prompts: int | None, reason: str) -> None:
    rng = np.random.default_rng(0)
    lengths = rng.integers(0, 2000, (2, pairs))
    labels = None if prompts is None else np.arange(pairs) % prompts
    found = _controlled(rng.integers(0, 2, pairs), lengths[0], lengths[1], prompts=labels)
    assert (found.reason, found.rate, found.converged) == (reason, None, None)


def test_too_few_pairs_of_unequal_length_are_counted_in_words() -> None:
    share = length_effect([WIN_A] * 5, length_a=[9] * 5, length_b=[1] * 5).longer_wins
    assert share.reason == (
        "not enough data: 5 pairs of unequal length with a winner; at least 6 are needed"
    )


@pytest.mark.parametrize(
    ("length", "message"),
    [
        (float("nan"), "length_a has nan in row 1; give numbers of 0 or more"),
        (-3, "length_a has -3.0 in row 1; give numbers of 0 or more"),
        (float("inf"), "length_a has inf in row 1; give numbers of 0 or more"),
        ("long", "length_a is not a column of numbers; give numbers of 0 or more, one per row"),
    ],
)
def test_a_length_that_is_none_is_named(length: Any, message: str) -> None:
    with pytest.raises(InputError) as raised:
        length_effect([0, 1], length_a=[1, length], length_b=[1, 2])
    assert raised.value.message == message


def test_columns_of_unequal_length_are_a_mistake() -> None:
    with pytest.raises(InputError, match="length_b has length 1, but there are 2"):
        length_effect([0, 1], length_a=[1, 2], length_b=[1])


def _two_lengths(counts: dict[tuple[str, str], int]) -> ControlledRate:
    """So many pairs of which this side is the longer one and this one wins."""
    rows = [key for key, count in counts.items() for _ in range(count)]
    outcomes = [WIN_A if wins == "A" else WIN_B for _, wins in rows]
    lengths = [[200 if longer == side else 100 for longer, _ in rows] for side in "AB"]
    return _controlled(outcomes, lengths[0], lengths[1])


def test_length_explains_a_claim_where_it_helped_and_equal_length_shows_nothing() -> None:
    # 3.5 and 0.11 to one: log-odds of 1.25 and -2.20, with their middle below zero
    by_length = _two_lengths({("A", "A"): 210, ("A", "B"): 60, ("B", "A"): 3, ("B", "B"): 27})
    assert by_length.rate == pytest.approx(expit((np.log(3.5) - np.log(9)) / 2), abs=0.02)
    assert by_length.explains("above")
    assert not by_length.explains("below")
    # 9 and 2.33 to one: halfway 4.6 to one, which is well above one half
    clear = _two_lengths({("A", "A"): 180, ("A", "B"): 20, ("B", "A"): 70, ("B", "B"): 30})
    assert not clear.explains("above")
    # The same share whichever is longer
    even = _two_lengths({("A", "A"): 140, ("A", "B"): 60, ("B", "A"): 70, ("B", "B"): 30})
    assert not even.explains("above")


def test_complete_separation_by_length_explains_a_claim() -> None:
    found = _two_lengths({("A", "A"): 216, ("B", "B"): 84})
    assert found.separated
    assert found.explains("above")
    # Without pairs on the other side nothing is known of equal length, and an effect is enough.
    nearly = _two_lengths({("A", "A"): 297, ("B", "B"): 3})
    assert nearly.rate is None
    assert nearly.explains("above")
    # Where one side is always longer no effect of length can be seen.
    always = _two_lengths({("A", "A"): 300})
    assert (always.forms, always.explains("above")) == ((), False)


def test_the_envelope_covers_a_step_that_no_form_has() -> None:
    found = measure(np.random.default_rng(3), Cell("step", 300, 0.5, 0.5, 1.0), 60)
    # 95% of 60, give or take three standard errors of 1.7
    assert found.covered >= 52 / 60


@pytest.mark.slow
def test_length_holds_back_few_claims_that_it_does_not_explain() -> None:
    for shift in SHIFTS:
        found = measure(np.random.default_rng(4), Cell("none", 300, shift, 0.62), 200)
        # 5% of 200, and three standard errors of 1.5%
        assert found.held <= 0.05 + 0.046
