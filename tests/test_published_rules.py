"""Other authors' rules, case by case; the published figures themselves are in tests/judging."""

from __future__ import annotations

import pytest
from scripts.published_rules import (
    Passes,
    Repeated,
    apply_rule,
    by_first_mark,
    judgebench,
    llmbar,
    pandalm,
    position_bias,
    qlora,
)

from evenhand.judges.replay import Recording


def said(
    pair: str, order: str, raw: str | None, verdict: str | None, repetition: int = 1
) -> Recording:
    return Recording(pair, order, repetition, raw, verdict, "stop")  # type: ignore[arg-type]


def test_a_pair_right_once_and_tied_once_is_right_for_judgebench() -> None:
    # +1 and 0 make 1; +1 and -1 make 0.
    pairs: dict[Repeated, Passes] = {
        ("one", 1): {"original": "A", "swapped": "TIE"},
        ("two", 1): {"original": "A", "swapped": "B"},
    }
    assert judgebench(pairs, {"one": "A", "two": "A"}) == {
        "accuracy": 50,
        "rightInBothOrders": 0,
        "inconsistent": 100,
    }


def test_an_unread_verdict_is_wrong_for_llmbar() -> None:
    pairs: dict[Repeated, Passes] = {("one", 1): {"original": "A", "swapped": None}}
    assert llmbar(pairs, {"one": "A"}) == {"accuracy": 50, "agreement": 0}


def test_a_record_whose_partner_is_unread_is_consistent_for_position_bias() -> None:
    # One read record, its partner unread; two more that disagree: 1 of 3.
    pairs: dict[Repeated, Passes] = {
        ("one", 1): {"original": "A", "swapped": None},
        ("two", 1): {"original": "A", "swapped": "B"},
    }
    assert position_bias(pairs) == {"consistency": pytest.approx(100 / 3)}


def test_what_cannot_be_read_is_a_tie_for_pandalm() -> None:
    # A is right once of two, TIE once of one: F1 of A 2·1/(1+2), of B 0, of TIE 2·1/(2+1).
    figures = pandalm(["A", "A", "TIE"], ["A", None, None])
    assert figures == {
        "accuracy": pytest.approx(200 / 3),
        "macroF1": pytest.approx(100 * (2 / 3 + 0 + 2 / 3) / 3),
    }


def test_qlora_counts_places_and_pairs_that_were_read_twice() -> None:
    pairs: dict[Repeated, Passes] = {
        ("one", 1): {"original": "A", "swapped": "A"},
        ("two", 1): {"original": "A", "swapped": "B"},
        ("three", 1): {"original": "A", "swapped": None},
    }
    figures = qlora(pairs, {"A": 3, "B": 1, "TIE": 1, None: 1})
    assert figures["consistency"] == 50
    assert (figures["consistentPairs"], figures["pairsReadTwice"]) == (1, 2)
    assert (figures["firstWins"], figures["unread"]) == (3, 1)


def test_position_bias_reads_the_first_mark() -> None:
    records = [
        said("1", "original", "[[B]] is worse than [[A]]", "A"),
        said("1", "swapped", "[[A]]", "A"),
    ]
    # First B, then A as shown in the other order, which is B: they agree.
    assert apply_rule("position-bias", records) == {"consistency": 100}


@pytest.mark.parametrize(
    ("raw", "verdict"),
    [
        ("Choice: A\nReason: it is whole", "A"),
        ("Both are fine.\n\nChoice: B", "B"),
        ("Both are fine. My Choice: B.", "B"),
        ("Weighing all of it, Choice: [[B]]", "B"),
        ("**Choice:** A", "A"),
        ("Choice: (C) neither", "TIE"),
        ("Choice: A? No: [[B]]", "B"),  # the first [[X]] stays the verdict
        ("Choice: B. I thought of Choice: A first", "B"),
        ("Choice: Apples", None),
        ("MultipleChoice: A", None),
        ("I choose A", None),
    ],
)
def test_a_choice_is_read_wherever_it_stands_in_the_text(raw: str, verdict: str | None) -> None:
    assert by_first_mark(said("1", "original", raw, None)) == verdict


def test_a_text_of_another_format_counts_as_it_was_recorded() -> None:
    assert by_first_mark(said("1", "original", "Output (a) is better.", "A")) == "A"


def repeated() -> list[Recording]:
    """One pair, three times in each order: AAB as shown first, and in the other order BBB."""
    first = [said("1", "original", None, verdict, n) for n, verdict in enumerate("AAB", 1)]
    return first + [said("1", "swapped", None, "B", n) for n in (1, 2, 3)]


def test_repetitions_are_kept_apart() -> None:
    # Swapped, B is A of the caller's: the first two agree in both orders, the third does not.
    assert apply_rule("position-bias", repeated()) == {"consistency": pytest.approx(100 * 4 / 6)}


def test_repetitions_are_paired_by_their_numbers() -> None:
    # Of the swapped order the second repetition is missing: the third belongs to the third.
    records = [said("1", "original", None, "A", n) for n in (1, 2)]
    records += [said("1", "original", None, "B", 3), said("1", "swapped", None, "A", 3)]
    # The third says B twice and agrees; the others have no partner, which counts as agreeing.
    assert apply_rule("position-bias", records) == {"consistency": 100}


def test_a_recording_of_one_order_has_no_consistency() -> None:
    records = [said(str(n), "original", None, "A") for n in range(20)]
    assert apply_rule("position-bias", records) == {}


def test_a_rule_that_counts_against_labels_needs_them() -> None:
    with pytest.raises(ValueError, match="rule llmbar counts against labels"):
        apply_rule("llmbar", [said("1", "original", None, "A")])


def test_labels_of_other_pairs_are_told() -> None:
    with pytest.raises(ValueError, match="none of the recorded pairs is among the labelled"):
        apply_rule("llmbar", [said("1", "original", None, "A")], {"2": "A"})
