"""What a verdict shows of how sure it is, by arithmetic; and the same under other names."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evenhand.contract import Order, Pair, Probabilities, Scores, Unread, Winner, flip, flip_or_none
from evenhand.judging.decision import Decision, PassBallot, Reading
from evenhand.judging.reconciliation import decide
from evenhand.judging.signals import SignalValues, signals_of
from scripted import make_pair

PAIR = make_pair(
    response_a="four",
    response_b="seventeen letters",
    criteria=[{"name": "accuracy", "weight": 3}, {"name": "tone", "weight": 1}],
)
# As docs/calibration.md lists them.
NAMES = ["stated", "margin", "scores", "strength", "orders", "samples", "criteria", "length"]


def ballot(
    winner: Winner,
    *,
    order: Order = "original",
    sample: int = 1,
    confidence: float | None = None,
    shares: tuple[float, float, float] | None = None,
    criteria: tuple[Winner | None, ...] = (),
    scores: tuple[float, float] | None = None,
    strength: int | None = None,
) -> PassBallot:
    return PassBallot(
        order,
        sample,
        winner,
        confidence,
        criteria,
        confidence_source="none" if confidence is None else "stated",
        probabilities=shares and Probabilities(a=shares[0], b=shares[1], tie=shares[2]),
        scores=scores and Scores(a=scores[0], b=scores[1]),
        strength=strength,
    )


def mirrored(ballot: PassBallot) -> PassBallot:
    """The same said of responses that have exchanged their names."""
    return replace(
        ballot,
        order="swapped" if ballot.order == "original" else "original",
        winner=flip(ballot.winner),
        criteria=tuple(map(flip_or_none, ballot.criteria)),
        probabilities=ballot.probabilities and ballot.probabilities.mirrored(),
        scores=ballot.scores and ballot.scores.mirrored(),
    )


def decided(pair: Pair, readings: list[Reading], *, how: str = "agreement") -> Decision:
    found = decide(pair, readings, how="average" if how == "average" else "agreement")
    assert isinstance(found, Decision)
    return found


def shown(readings: list[Reading], *, how: str = "agreement", pair: Pair = PAIR) -> SignalValues:
    found = signals_of(pair, readings, decided(pair, readings, how=how))
    assert found is not None
    assert list(found) == NAMES
    return found


def test_stated_confidence_length_and_criteria_of_a_win() -> None:
    first = ballot("A", confidence=0.8, criteria=("A", "B"))
    second = ballot("A", order="swapped", confidence=0.6, criteria=("A", "B"))
    found = shown([first, second])
    assert found["stated"] == pytest.approx(0.7)
    assert found["orders"] == 1
    assert found["samples"] is None
    assert found["margin"] is None
    assert found["criteria"] == (3 - 1) / 4
    assert found["length"] == pytest.approx(math.log(5 / 18))  # the winner is the shorter


def test_a_tie_has_no_length_and_its_criteria_count_against_it() -> None:
    both = [ballot("TIE", order=order, criteria=("A", "TIE")) for order in ("original", "swapped")]
    found = shown([*both])
    assert found["length"] is None
    assert found["criteria"] == -3 / 4
    assert found["stated"] is None


def test_a_tie_is_as_far_from_its_criteria_as_one_outweighs_the_other() -> None:
    both = [ballot("TIE", order=order, criteria=("A", "B")) for order in ("original", "swapped")]
    assert shown([*both])["criteria"] == -(3 - 1) / 4


def test_a_criterion_without_weight_counts_as_one() -> None:
    pair = make_pair(criteria=[{"name": "accuracy", "weight": 3}, {"name": "tone"}])
    orders: tuple[Order, Order] = ("original", "swapped")
    both = [ballot("A", order=order, criteria=("A", "B")) for order in orders]
    assert shown([*both], pair=pair)["criteria"] == (3 - 1) / (3 + 1)
    tone_only = [ballot("A", order=order, criteria=(None, "A")) for order in orders]
    assert shown([*tone_only], pair=pair)["criteria"] == 1 / 1


def test_samples_count_those_that_were_not_read() -> None:
    readings: list[Reading] = [
        ballot("A"),
        ballot("A", sample=2),
        ballot("B", sample=3),
        ballot("A", order="swapped"),
        ballot("A", order="swapped", sample=2),
        Unread(order="swapped", sample=3, kind="empty", reason="nothing"),
    ]
    assert shown(readings)["samples"] == pytest.approx((2 / 3 + 2 / 3) / 2)


def test_the_margin_is_of_the_mean_probabilities() -> None:
    readings: list[Reading] = [
        ballot("A", shares=(0.8, 0.15, 0.05)),
        ballot("B", order="swapped", shares=(0.4, 0.55, 0.05)),
    ]
    found = shown(readings, how="average")
    assert found["margin"] == pytest.approx(math.log(0.6 / 0.35))
    assert found["orders"] == 0  # the mean decides over orders that differ
    assert found["stated"] is None


def test_each_order_has_half_of_the_margin_however_many_samples_it_has() -> None:
    readings: list[Reading] = [
        ballot("A", shares=(0.8, 0.2, 0)),
        ballot("A", sample=2, shares=(0.6, 0.4, 0)),
        ballot("A", order="swapped", shares=(0.5, 0.45, 0.05)),
        Unread(order="swapped", sample=2, kind="empty", reason="nothing"),
    ]
    a, b = ((0.8 + 0.6) / 2 + 0.5) / 2, ((0.2 + 0.4) / 2 + 0.45) / 2
    assert shown(readings, how="average")["margin"] == pytest.approx(math.log(a / b))


def test_a_margin_over_what_is_impossible_is_that_over_one_in_a_million() -> None:
    certain = [ballot("A", order=order, shares=(1, 0, 0)) for order in ("original", "swapped")]
    assert shown([*certain], how="average")["margin"] == pytest.approx(math.log(1_000_000))


def test_scores_and_strength_are_the_mean_lean_to_the_winner() -> None:
    readings: list[Reading] = [
        ballot("B", scores=(6.5, 8), strength=2),
        ballot("B", order="swapped", scores=(7, 7.5), strength=1),
    ]
    found = shown(readings)
    assert found["scores"] == ((8 - 6.5) + (7.5 - 7)) / 2
    assert found["strength"] == (2 + 1) / 2
    assert found["stated"] is None


def test_a_sample_that_says_otherwise_takes_from_the_strength() -> None:
    readings: list[Reading] = [
        ballot("A", strength=2),
        ballot("A", sample=2, strength=1),
        ballot("B", sample=3, strength=1),
        ballot("A", order="swapped", strength=2),
        ballot("A", order="swapped", sample=2, strength=2),
        Unread(order="swapped", sample=3, kind="empty", reason="nothing"),
    ]
    found = shown(readings)
    assert found["strength"] == pytest.approx(((2 + 1 - 1) / 3 + (2 + 2) / 2) / 2)
    assert found["scores"] is None


def test_a_tie_leans_nowhere_at_best() -> None:
    readings: list[Reading] = [
        ballot("TIE", scores=(7, 7), strength=0),
        ballot("TIE", order="swapped", scores=(7, 7), strength=0),
    ]
    found = shown(readings)
    assert (found["scores"], found["strength"]) == (0, 0)
    one_order = PAIR.model_copy(update={"swap_positions": False})
    near: list[Reading] = [ballot("TIE", scores=(7, 7.5))]
    assert shown(near, pair=one_order)["scores"] == -0.5


def test_a_ballot_that_does_not_say_leaves_the_verdict_without_the_signal() -> None:
    readings: list[Reading] = [ballot("A", strength=2), ballot("A", order="swapped")]
    assert shown(readings)["strength"] is None


def test_an_inconsistent_verdict_has_no_signals() -> None:
    readings: list[Reading] = [ballot("A"), ballot("B", order="swapped")]
    assert signals_of(PAIR, readings, decided(PAIR, readings)) is None


winners = st.sampled_from(["A", "B", "TIE"])
shares_of_three = st.lists(st.floats(0.01, 1), min_size=3, max_size=3)


@settings(deadline=None)
@given(
    st.lists(
        st.tuples(
            winners,
            st.floats(0, 1),
            st.tuples(winners, winners),
            shares_of_three,
            st.tuples(st.floats(-50, 50), st.floats(-50, 50)),
            st.integers(0, 2),
        ),
        min_size=2,
        max_size=6,
    ),
    st.booleans(),
)
def test_signals_are_the_same_when_the_responses_exchange_their_names(
    said: list[tuple[Winner, float, tuple[Winner, Winner], list[float], tuple[float, float], int]],
    average: bool,
) -> None:
    readings: list[Reading] = []
    for place, (winner, confidence, criteria, parts, scores, strength) in enumerate(said):
        a, b, tie = (part / sum(parts) for part in parts)
        readings.append(
            ballot(
                winner,
                order="original" if place % 2 == 0 else "swapped",
                sample=place // 2 + 1,
                confidence=confidence,
                shares=(min(a, 1), min(b, 1), min(tie, 1)) if average else None,
                criteria=criteria,
                scores=scores,
                strength=strength,
            )
        )
    mirror = PAIR.model_copy(update={"response_a": PAIR.response_b, "response_b": PAIR.response_a})
    turned: list[Reading] = [mirrored(each) for each in readings if isinstance(each, PassBallot)]
    how = "average" if average else "agreement"
    one = signals_of(PAIR, readings, decided(PAIR, readings, how=how))
    assert one == signals_of(mirror, turned, decided(mirror, turned, how=how))
