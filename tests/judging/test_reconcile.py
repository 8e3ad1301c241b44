"""Each line of the contract's section on reconciling, with the arithmetic beside it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenhand.contract import (
    Analysis,
    Ballot,
    CriterionBallot,
    Order,
    Outcome,
    Pair,
    Probabilities,
    ResponseAnalysis,
    Unread,
    Verdict,
)
from evenhand.judging.ballots import read_ballot
from evenhand.judging.reconciliation import Unreconciled
from explained import reconcile
from scripted import answer_json

WEIGHTED = ({"name": "accuracy", "weight": 3.0}, {"name": "clarity"}, {"name": "depth"})


def pair(*, allow_tie: bool = True, swap: bool = True, criteria: Any = ("accuracy",)) -> Pair:
    return Pair(
        prompt="p",
        response_a="x",
        response_b="y",
        criteria=tuple(criteria),
        allow_tie=allow_tie,
        swap_positions=swap,
    )


def ballot(
    order: Order,
    winner: Any,
    confidence: float | None = None,
    *,
    sample: int = 1,
    by: dict[str, Any] | None = None,
    **more: Any,
) -> Ballot:
    return Ballot(
        order=order,
        sample=sample,
        winner=winner,
        confidence=confidence,
        confidence_source="none" if confidence is None else "stated",
        criteria=tuple(
            CriterionBallot(criterion=name, winner=won, reasoning=f"{order} on {name}")
            for name, won in (by or {}).items()
        ),
        **more,
    )


def unread(order: Order, reason: str = "it is empty") -> Unread:
    return Unread(order=order, kind="empty", reason=reason)


def ruled(*args: Any, **kwargs: Any) -> Verdict:
    ruling = reconcile(*args, **kwargs)
    assert isinstance(ruling, Verdict), ruling
    return ruling


def refused(*args: Any, **kwargs: Any) -> Unreconciled:
    ruling = reconcile(*args, **kwargs)
    assert isinstance(ruling, Unreconciled), ruling
    return ruling


@pytest.mark.parametrize("winner", ["A", "B", "TIE"])
def test_passes_that_agree_give_their_winner_and_the_mean_confidence(winner: Any) -> None:
    ruling = ruled(pair(), [ballot("original", winner, 0.9), ballot("swapped", winner, 0.6)])
    assert ruling.winner == winner
    assert ruling.outcome == ("tie" if winner == "TIE" else "win")
    assert ruling.confidence == pytest.approx((0.9 + 0.6) / 2)
    assert ruling.metadata.confidence_source == "stated"
    assert ruling.position_consistency is not None
    assert ruling.position_consistency.consistent


@pytest.mark.parametrize(("first", "second"), [("A", "B"), ("B", "A"), ("A", "TIE"), ("TIE", "B")])
def test_passes_that_differ_are_inconsistent_never_a_tie(first: Any, second: Any) -> None:
    ruling = ruled(pair(), [ballot("original", first, 0.9), ballot("swapped", second, 0.8)])
    assert (ruling.winner, ruling.confidence) == ("TIE", 0.5)
    assert (ruling.outcome, ruling.metadata.confidence_source) == (Outcome.INCONSISTENT, "rule")
    position = ruling.position_consistency
    assert position is not None
    assert (position.first_pass_winner, position.second_pass_winner) == (first, second)
    assert not position.consistent
    assert "changed with the order" in ruling.notes[0]


def test_either_confidence_missing_leaves_none_for_the_pair() -> None:
    ruling = ruled(pair(), [ballot("original", "A", 0.9), ballot("swapped", "A")])
    assert (ruling.winner, ruling.confidence, ruling.metadata.confidence_source) == (
        "A",
        None,
        "none",
    )


@pytest.mark.parametrize("silent", ["original", "swapped"])
def test_an_unread_pass_makes_the_pair_invalid_not_half_decided(silent: Order) -> None:
    other: Order = "swapped" if silent == "original" else "original"
    ruling = refused(pair(), [unread(silent), ballot(other, "A", 0.99)])
    which = "First" if silent == "original" else "Second"
    assert ruling.reason == f"{which} pass: unreadable (it is empty)"


def test_with_samples_each_order_needs_one_ballot_only() -> None:
    readings = [
        ballot("original", "A", 0.8),
        Unread(order="original", sample=2, kind="empty", reason="it is empty"),
        ballot("swapped", "A", 0.6),
        ballot("swapped", "A", 1.0, sample=2),
    ]
    ruling = ruled(pair(), readings)
    # original: 0.8; swapped: (0.6 + 1.0) / 2 = 0.8
    assert ruling.winner == "A"
    assert ruling.confidence == pytest.approx(0.8)


def test_an_orders_choice_is_the_plurality_of_its_samples() -> None:
    readings = [
        ballot("original", "A", 0.9),
        ballot("original", "A", 0.7, sample=2),
        ballot("original", "B", 0.9, sample=3),
        ballot("swapped", "A", 0.5),
        ballot("swapped", "A", 0.5, sample=2),
        ballot("swapped", "TIE", 0.5, sample=3),
    ]
    ruling = ruled(pair(), readings)
    # of the ballots for A: original (0.9 + 0.7) / 2 = 0.8, swapped 0.5; their mean 0.65
    assert ruling.winner == "A"
    assert ruling.confidence == pytest.approx(0.65)


def test_samples_that_split_evenly_have_no_choice_and_decide_nothing() -> None:
    readings = [
        ballot("original", "A", 0.9),
        ballot("original", "B", 0.9, sample=2),
        ballot("swapped", "A", 0.9),
        ballot("swapped", "A", 0.9, sample=2),
    ]
    ruling = ruled(pair(), readings)
    assert (ruling.winner, ruling.outcome) == ("TIE", Outcome.INCONSISTENT)
    assert ruling.position_consistency is not None
    assert ruling.position_consistency.first_pass_winner is None


def test_without_swapping_one_pass_decides_and_no_consistency_is_claimed() -> None:
    ruling = ruled(pair(swap=False), [ballot("original", "B", 0.7)])
    assert (ruling.winner, ruling.confidence, ruling.outcome) == ("B", 0.7, "win")
    assert ruling.position_consistency is None


def test_criteria_are_reconciled_by_the_same_rule_and_matched_by_name() -> None:
    asked = pair(criteria=["accuracy", "clarity", "depth", "tone"])
    ruling = ruled(
        asked,
        [
            read_ballot(
                answer_json("A", criteria=[("depth", "TIE"), ("Accuracy", "A"), ("clarity!", "A")]),
                criteria=asked.criteria,
            ),
            # The other way round, as the second pass shows them.
            read_ballot(
                answer_json("B", criteria=[("clarity", "A"), ("accuracy", "B"), ("depth", "TIE")]),
                criteria=asked.criteria,
                order="swapped",
            ),
        ],
    )
    assert [(c.criterion, c.winner) for c in ruling.comparison] == [
        ("accuracy", "A"),
        ("clarity", "TIE"),
        ("depth", "TIE"),
        ("tone", None),
    ]
    assert [c.outcome for c in ruling.metadata.criteria] == [
        "win",
        "inconsistent",
        "tie",
        "invalid",
    ]


def test_a_criterion_left_out_says_that_it_was_not_judged_and_the_ballot_stands() -> None:
    ruling = ruled(
        pair(criteria=["accuracy", "clarity"]),
        [
            ballot("original", "A", by={"accuracy": "A", "clarity": "B"}),
            ballot("swapped", "A", by={"accuracy": "A"}),
        ],
    )
    assert ruling.winner == "A"
    clarity = ruling.comparison[1]
    assert clarity.winner is None
    assert clarity.reasoning.startswith("Not judged in one order (Second pass).")
    assert "original on clarity" in clarity.reasoning


def test_where_ties_are_forbidden_the_stronger_confidence_decides() -> None:
    ruling = ruled(
        pair(allow_tie=False), [ballot("original", "A", 0.6), ballot("swapped", "B", 0.9)]
    )
    assert (ruling.winner, ruling.confidence, ruling.outcome) == ("B", 0.5, "inconsistent")
    assert ruling.metadata.decided_by == "confidence"


def test_no_confidence_at_all_is_less_than_any() -> None:
    ruling = ruled(
        pair(allow_tie=False), [ballot("original", "A", 0.0), ballot("swapped", "B", 0.5)]
    )
    assert (ruling.winner, ruling.metadata.decided_by) == ("B", "confidence")


def test_an_order_asked_more_often_weighs_no_more_where_ties_are_forbidden() -> None:
    # First order: A 0.6, A 0.6, TIE 0.6 is 1.2 / 3 = 0.4 for A. Second order: B 0.5 alone.
    # As a plain sum A would have 1.2, and win.
    verdict = ruled(
        pair(allow_tie=False),
        [
            ballot("original", "A", 0.6, sample=1),
            ballot("original", "A", 0.6, sample=2),
            ballot("original", "TIE", 0.6, sample=3),
            ballot("swapped", "B", 0.5, sample=1),
        ],
    )
    assert (verdict.outcome, verdict.winner) == (Outcome.INCONSISTENT, "B")
    assert verdict.metadata.decided_by == "confidence"


@pytest.mark.parametrize("confidence", [0.8, None])
def test_equal_or_missing_confidence_leaves_it_to_the_weighted_criteria(
    confidence: float | None,
) -> None:
    # accuracy weighs 3 for A; clarity and depth weigh 1 each for B: 3 > 2
    by = {"accuracy": "A", "clarity": "B", "depth": "B"}
    ruling = ruled(
        pair(allow_tie=False, criteria=WEIGHTED),
        [ballot("original", "A", confidence, by=by), ballot("swapped", "B", confidence, by=by)],
    )
    assert (ruling.winner, ruling.metadata.decided_by, ruling.confidence) == ("A", "criteria", 0.5)


def test_where_nothing_separates_them_it_is_invalid_never_a_coin() -> None:
    ruling = refused(
        pair(allow_tie=False),
        [
            ballot("original", "A", 0.8, by={"accuracy": "A"}),
            ballot("swapped", "B", 0.8, by={"accuracy": "B"}),
        ],
    )
    assert "ties are not allowed" in ruling.reason
    assert ruling.criteria[0].outcome == "inconsistent"


def probabilities(order: Order, a: float, b: float, tie: float, sample: int = 1) -> Ballot:
    found = Probabilities(a=a, b=b, tie=tie)
    winner: Any = max((a, "A"), (b, "B"), (tie, "TIE"))[1]
    return ballot(order, winner, max(a, b, tie), sample=sample, probabilities=found)


def test_average_decides_on_the_mean_probability_and_still_tells_the_flip() -> None:
    readings = [probabilities("original", 0.7, 0.2, 0.1), probabilities("swapped", 0.35, 0.6, 0.05)]
    ruling = ruled(pair(), readings, how="average")
    # A: (0.7 + 0.35) / 2 = 0.525; B: (0.2 + 0.6) / 2 = 0.4; TIE: (0.1 + 0.05) / 2 = 0.075
    assert (ruling.winner, ruling.outcome) == ("A", "win")
    assert ruling.confidence == pytest.approx(0.525)
    assert ruling.metadata.confidence_source == "logprobs"
    assert ruling.metadata.probabilities is not None
    assert ruling.metadata.probabilities.tie == pytest.approx(0.075)
    position = ruling.position_consistency
    assert position is not None
    assert (position.first_pass_winner, position.second_pass_winner) == ("A", "B")
    assert not position.consistent


def test_average_of_samples_without_probabilities_counts_their_votes() -> None:
    readings = [
        ballot("original", winner, 0.9, sample=n) for n, winner in enumerate("AAB", start=1)
    ] + [ballot("swapped", winner, 0.9, sample=n) for n, winner in enumerate("ABA", start=1)]
    ruling = ruled(pair(), readings, how="average")
    # A: (2/3 + 2/3) / 2 = 2/3
    assert (ruling.winner, ruling.metadata.confidence_source) == ("A", "votes")
    assert ruling.confidence == pytest.approx(2 / 3)


def test_average_without_anything_to_average_is_invalid_not_certain() -> None:
    ruling = refused(
        pair(), [ballot("original", "A", 0.9), ballot("swapped", "A", 0.9)], how="average"
    )
    assert "probabilities" in ruling.reason


def test_average_where_both_weigh_exactly_the_same_is_a_tie_without_a_confidence() -> None:
    readings = [probabilities("original", 0.8, 0.2, 0), probabilities("swapped", 0.2, 0.8, 0)]
    ruling = ruled(pair(), readings, how="average")
    assert (ruling.winner, ruling.outcome, ruling.confidence) == ("TIE", "tie", None)
    assert refused(pair(allow_tie=False), readings, how="average").reason.startswith(
        "A and B are equally probable"
    )


def test_a_criterion_without_probabilities_stays_inconsistent_under_average() -> None:
    """Averaging a flip of one stated winner an order would fold inconsistent into tie."""
    first = probabilities("original", 0.7, 0.2, 0.1).model_copy(
        update={"criteria": (CriterionBallot(criterion="accuracy", winner="A"),)}
    )
    second = probabilities("swapped", 0.7, 0.2, 0.1).model_copy(
        update={"criteria": (CriterionBallot(criterion="accuracy", winner="B"),)}
    )
    ruling = ruled(pair(), [first, second], how="average")
    assert ruling.metadata.criteria[0].outcome is Outcome.INCONSISTENT


def test_two_samples_of_a_criterion_are_averaged() -> None:
    named: dict[Order, tuple[str, str]] = {"original": ("A", "A"), "swapped": ("A", "TIE")}
    readings = [
        ballot(order, "A", 0.9, sample=sample, by={"accuracy": won})
        for order, winners in named.items()
        for sample, won in enumerate(winners, 1)
    ]
    (criterion,) = ruled(pair(), readings, how="average").metadata.criteria
    # A: (1 + 1/2) / 2 = 3/4; TIE: (0 + 1/2) / 2 = 1/4. By agreement the second order had no choice.
    assert criterion.outcome is Outcome.WIN
    assert (criterion.first_pass_winner, criterion.second_pass_winner) == ("A", "TIE")


def test_a_tie_as_probable_as_the_better_response_is_a_tie() -> None:
    readings = [probabilities("original", 0.5, 0.1, 0.4), probabilities("swapped", 0.3, 0.3, 0.4)]
    ruling = ruled(pair(), readings, how="average")
    # A: (0.5 + 0.3) / 2 = 0.4; TIE: 0.4
    assert (ruling.winner, ruling.outcome) == ("TIE", "tie")
    assert ruling.confidence == pytest.approx(0.4)


def test_each_unread_pass_has_its_own_reason() -> None:
    both = [unread("original", "it is empty"), unread("swapped", "it is cut")]
    assert refused(pair(), both).reason == (
        "First pass: unreadable (it is empty); Second pass: unreadable (it is cut)"
    )


def test_a_pass_that_was_not_made_says_so() -> None:
    assert refused(pair(), [ballot("original", "A", 0.9)]).reason == (
        "Second pass: not judged, and half a comparison decides nothing"
    )


def spoken(order: Order, winner: Any, word: str, by: dict[str, Any]) -> Ballot:
    return ballot(
        order,
        winner,
        0.9,
        by=by,
        reasoning=f"{word} reasons",
        differentiators=(f"{word} point", "shared point"),
        analysis=Analysis(response_a=ResponseAnalysis(strengths=(f"{word} strength",))),
    )


@pytest.mark.parametrize(("shows_first", "word"), [("original", "first"), ("swapped", "second")])
def test_text_comes_from_the_order_whose_first_response_has_the_smaller_hash(
    shows_first: Order, word: str
) -> None:
    readings = [
        spoken("original", "A", "first", {"accuracy": "A"}),
        spoken("swapped", "A", "second", {"accuracy": "A"}),
    ]
    ruling = ruled(pair(), readings, shows_first=shows_first)
    assert ruling.overall_reasoning == f"{word} reasons"
    assert ruling.analysis.response_a.strengths == (f"{word} strength",)
    assert ruling.comparison[0].reasoning == f"{shows_first} on accuracy"


def test_where_the_responses_are_identical_both_texts_are_kept() -> None:
    readings = [
        spoken("original", "TIE", "first", {"accuracy": "TIE"}),
        spoken("swapped", "TIE", "second", {"accuracy": "TIE"}),
    ]
    ruling = ruled(pair(), readings, shows_first=None)
    assert ruling.overall_reasoning == "First pass: first reasons\nSecond pass: second reasons"


def test_advantages_are_the_criteria_won_and_the_winners_points_without_duplicates() -> None:
    by = {"accuracy": "A", "clarity": "B"}
    readings = [spoken("original", "A", "first", by), spoken("swapped", "A", "second", by)]
    ruling = ruled(pair(criteria=["accuracy", "clarity"]), readings, shows_first="original")
    assert ruling.differentiators.a_advantages == (
        "accuracy: original on accuracy",
        "first point",
        "shared point",
        "second point",
    )
    assert ruling.differentiators.b_advantages == ("clarity: original on clarity",)


def test_an_inconsistent_pair_keeps_what_each_pass_said_marked_with_its_pass() -> None:
    readings = [
        spoken("original", "A", "first", {"accuracy": "A"}),
        spoken("swapped", "B", "second", {"accuracy": "B"}),
    ]
    ruling = ruled(pair(), readings, shows_first="original")
    assert ruling.overall_reasoning == "First pass: first reasons\nSecond pass: second reasons"
    assert ruling.differentiators.a_advantages == (
        "First pass: accuracy: original on accuracy",
        "First pass: first point",
        "First pass: shared point",
    )
    assert ruling.differentiators.b_advantages == (
        "Second pass: accuracy: swapped on accuracy",
        "Second pass: second point",
        "Second pass: shared point",
    )


def test_average_speaks_in_the_words_of_those_who_named_the_winner() -> None:
    first = probabilities("original", 0.45, 0.55, 0).model_copy(update={"reasoning": "for B"})
    second = probabilities("swapped", 0.95, 0.05, 0).model_copy(update={"reasoning": "for A"})
    for shows_first in ("original", "swapped"):
        ruling = ruled(pair(), [first, second], how="average", shows_first=shows_first)
        assert (ruling.winner, ruling.overall_reasoning) == ("A", "for A")


def test_a_decision_that_nobody_named_keeps_everybodys_words() -> None:
    first = probabilities("original", 0.6, 0.0, 0.4).model_copy(update={"reasoning": "for A"})
    second = probabilities("swapped", 0.0, 0.6, 0.4).model_copy(update={"reasoning": "for B"})
    ruling = ruled(pair(), [first, second], how="average", shows_first="original")
    # A (0.6 + 0) / 2 = 0.3, B 0.3, TIE 0.4
    assert ruling.winner == "TIE"
    assert ruling.overall_reasoning == "First pass: for A\nSecond pass: for B"


def test_samples_that_split_are_heard_on_both_sides() -> None:
    readings = [
        spoken("original", "A", "one", {"accuracy": "A"}),
        spoken("original", "B", "two", {"accuracy": "B"}).model_copy(update={"sample": 2}),
    ]
    ruling = ruled(pair(swap=False), readings)
    assert ruling.overall_reasoning == "First pass: one reasons\nFirst pass: two reasons"
    assert "First pass: one point" in ruling.differentiators.a_advantages
    assert "First pass: two point" in ruling.differentiators.b_advantages


def test_rounding_never_decides_a_pair() -> None:
    """Equal confidences in another sequence, and 0.1 + 0.2 against 0.3, are equal."""
    stated = [
        *(ballot("original", "A", c, sample=n) for n, c in enumerate((0.7, 0.8, 0.9), start=1)),
        *(ballot("swapped", "B", c, sample=n) for n, c in enumerate((0.9, 0.8, 0.7), start=1)),
    ]
    refused(pair(allow_tie=False), stated)
    weights = (
        {"name": "x", "weight": 0.1},
        {"name": "y", "weight": 0.2},
        {"name": "z", "weight": 0.3},
    )
    by = {"x": "A", "y": "A", "z": "B"}
    refused(
        pair(allow_tie=False, criteria=weights),
        [ballot("original", "A", by=by), ballot("swapped", "B", by=by)],
    )
    huge = tuple({"name": name, "weight": 1e308} for name in "vwxyz")
    by = {"v": "A", "w": "A", "x": "A", "y": "B", "z": "B"}
    ruling = ruled(
        pair(allow_tie=False, criteria=huge),
        [ballot("original", "A", by=by), ballot("swapped", "B", by=by)],
    )
    assert (ruling.winner, ruling.metadata.decided_by) == ("A", "criteria")


def test_an_averaged_pair_that_the_criteria_had_to_decide_stays_inconsistent() -> None:
    first, second = probabilities("original", 0.7, 0.3, 0), probabilities("swapped", 0.3, 0.7, 0)
    by = (CriterionBallot(criterion="accuracy", winner="A"),)
    readings = [b.model_copy(update={"criteria": by}) for b in (first, second)]
    ruling = ruled(pair(allow_tie=False), readings, how="average")
    assert (ruling.winner, ruling.metadata.decided_by) == ("A", "criteria")
    assert (ruling.outcome, ruling.confidence) == (Outcome.INCONSISTENT, 0.5)


def test_the_share_of_samples_counts_those_that_could_not_be_read() -> None:
    readings: list[Ballot | Unread] = []
    for order in ("original", "swapped"):
        readings.append(ballot(order, "A", 0.9))
        readings += [
            Unread(order=order, sample=n, kind="empty", reason="it is empty") for n in (2, 3)
        ]
    ruling = ruled(pair(), readings, how="average")
    assert ruling.winner == "A"
    assert ruling.confidence == pytest.approx(1 / 3)


def test_the_same_fault_in_both_passes_is_told_once() -> None:
    assert refused(pair(), [unread("original"), unread("swapped")]).reason == (
        "Both passes: unreadable (it is empty)"
    )


def test_a_chinese_verdict_speaks_chinese() -> None:
    ruling = ruled(pair(), [ballot("original", "A", 0.9), ballot("swapped", "B", 0.8)], locale="zh")
    assert ruling.notes[0].startswith("获胜者随顺序改变（第一轮：响应 A；第二轮：响应 B）")


@given(
    winners=st.lists(st.sampled_from(["A", "B", "TIE"]), min_size=2, max_size=6),
    confidences=st.lists(st.none() | st.floats(0, 1), min_size=6, max_size=6),
    allow_tie=st.booleans(),
)
def test_no_confidence_is_made_up_and_every_one_lies_within_0_and_1(
    winners: list[Any], confidences: list[float | None], allow_tie: bool
) -> None:
    readings = [
        ballot("original" if n % 2 else "swapped", winner, confidence, sample=n)
        for n, (winner, confidence) in enumerate(zip(winners, confidences, strict=False))
    ]
    ruling = reconcile(pair(allow_tie=allow_tie), readings)
    if isinstance(ruling, Unreconciled):
        return
    assert ruling.confidence is None or 0 <= ruling.confidence <= 1
    if ruling.outcome in ("win", "tie"):
        assert (ruling.confidence is None) == (ruling.metadata.confidence_source == "none")
        named = [b.confidence for b in readings if b.winner == ruling.winner]
        if None in named:
            assert ruling.confidence is None
