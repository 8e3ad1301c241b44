"""Other authors' rules, case by case; the published figures themselves are in tests/judging."""

from __future__ import annotations

import pytest

from evenhand.errors import InputError
from evenhand.judges.replay import Recording
from evenhand.trust.published_rules import (
    Passes,
    apply_rule,
    judgebench,
    llmbar,
    pandalm,
    position_bias,
    qlora,
)


def said(pair: str, order: str, raw: str | None, verdict: str | None) -> Recording:
    return Recording(pair, order, 1, raw, verdict, "stop")  # type: ignore[arg-type]


def test_a_pair_right_once_and_tied_once_is_right_for_judgebench() -> None:
    # +1 and 0 make 1; +1 and -1 make 0.
    pairs: dict[str, Passes] = {
        "one": {"original": "A", "swapped": "TIE"},
        "two": {"original": "A", "swapped": "B"},
    }
    assert judgebench(pairs, {"one": "A", "two": "A"}) == {
        "accuracy": 50,
        "rightInBothOrders": 0,
        "inconsistent": 100,
    }


def test_an_unread_verdict_is_wrong_for_llmbar() -> None:
    pairs: dict[str, Passes] = {"one": {"original": "A", "swapped": None}}
    assert llmbar(pairs, {"one": "A"}) == {"accuracy": 50, "agreement": 0}


def test_a_record_whose_partner_is_unread_is_consistent_for_position_bias() -> None:
    # One read record, its partner unread; two more that disagree: 1 of 3.
    pairs: dict[str, Passes] = {
        "one": {"original": "A", "swapped": None},
        "two": {"original": "A", "swapped": "B"},
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
    pairs: dict[str, Passes] = {
        "one": {"original": "A", "swapped": "A"},
        "two": {"original": "A", "swapped": "B"},
        "three": {"original": "A", "swapped": None},
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
    assert apply_rule("position-bias", records).figures == {"consistency": 100}


def test_a_rule_that_counts_against_labels_needs_them() -> None:
    with pytest.raises(InputError, match="rule llmbar counts against labels; give the file"):
        apply_rule("llmbar", [said("1", "original", None, "A")])


def test_labels_of_other_pairs_are_told() -> None:
    with pytest.raises(InputError, match="none of the recorded pairs is among the labelled"):
        apply_rule("llmbar", [said("1", "original", None, "A")], {"2": "A"})
