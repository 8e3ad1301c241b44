"""A ballot's prose is read again from its text, and who won stays as it was decided."""

from __future__ import annotations

from dataclasses import replace

from evenhand.contract import Analysis, Order
from evenhand.judges.protocol import Completion
from evenhand.judging.ballots import read_completion
from evenhand.judging.decision import PassBallot
from evenhand.judging.explanation import ballot_in_contract
from scripted import answer_json, make_pair

PAIR = make_pair(criteria=["accuracy", "clarity"])
ANSWER = answer_json("A", criteria=[("accuracy", "B"), ("clarity", "A")])


def test_a_stored_ballot_is_told_as_a_comparison_tells_it() -> None:
    orders: tuple[Order, ...] = ("original", "swapped")
    for order in orders:
        ballot = read_completion(Completion(ANSWER), pair=PAIR, order=order, sample=2)
        assert isinstance(ballot, PassBallot)
        stored = replace(ballot, prose=None)
        assert ballot_in_contract(PAIR, stored) == ballot_in_contract(PAIR, ballot)
        assert ballot_in_contract(PAIR, stored).analysis != Analysis()


def test_a_format_that_the_caller_named_is_read_as_that_again() -> None:
    text = "Clear and right. [[B]] Not [[A]]."
    completion = Completion(text)
    ballot = read_completion(completion, pair=PAIR, order="swapped", sample=1, protocol="mt-bench")
    assert isinstance(ballot, PassBallot)
    assert ballot_in_contract(PAIR, replace(ballot, prose=None)) == ballot_in_contract(PAIR, ballot)


def test_a_ballot_stays_where_its_text_would_now_be_read_otherwise() -> None:
    ballot = PassBallot("original", 1, "B", 0.25, ("TIE", "A"), ANSWER, confidence_source="stated")
    whole = ballot_in_contract(PAIR, ballot)
    assert (whole.winner, whole.confidence, whole.confidence_source) == ("B", 0.25, "stated")
    assert [entry.winner for entry in whole.criteria] == ["TIE", "A"]
    assert whole.reasoning == "Response A and Response B differ."
    assert whole.criteria[0].a_assessment == "Response A on accuracy"


def test_a_ballot_stays_where_its_text_could_no_longer_be_read() -> None:
    ballot = PassBallot("swapped", 1, "TIE", None, ("A", None), "no answer")
    whole = ballot_in_contract(PAIR, ballot)
    assert (whole.order, whole.winner, whole.confidence_source) == ("swapped", "TIE", "none")
    assert [(entry.criterion, entry.winner) for entry in whole.criteria] == [
        ("accuracy", "A"),
        ("clarity", None),
    ]
    assert (whole.reasoning, whole.raw) == ("", "no answer")
