"""A vote's prose is read again from its text, and who won stays as it was decided."""

from __future__ import annotations

from evenhand.contract import Ballot, Vote, Winner
from evenhand.judges import Completion
from evenhand.judging.ballots import read_reasoned, read_vote, whole_ballot
from scripted import answer_json, make_pair

PAIR = make_pair(criteria=["accuracy", "clarity"])
ANSWER = answer_json("A", criteria=[("accuracy", "B"), ("clarity", "A")])


def test_the_whole_ballot_of_a_vote_is_the_one_that_a_comparison_reads() -> None:
    for order in ("original", "swapped"):
        read = read_reasoned(Completion(ANSWER), pair=PAIR, order=order, sample=2)
        vote = read_vote(Completion(ANSWER), pair=PAIR, order=order, sample=2, protocol=None)
        assert isinstance(vote, Vote)
        assert whole_ballot(vote.bare_ballot(), PAIR) == read


def test_a_vote_stays_where_its_text_would_now_be_read_otherwise() -> None:
    won: tuple[tuple[str, Winner], ...] = (("accuracy", "TIE"), ("clarity", "A"))
    vote = Vote("original", 1, "B", 0.25, won, ANSWER)
    whole = whole_ballot(vote.bare_ballot(), PAIR)
    assert (whole.winner, whole.confidence, whole.confidence_source) == ("B", 0.25, "stated")
    assert tuple((entry.criterion, entry.winner) for entry in whole.criteria) == won
    assert whole.reasoning == "Response A and Response B differ."
    assert whole.criteria[0].a_assessment == "Response A on accuracy"


def test_a_vote_stays_where_its_text_could_no_longer_be_read() -> None:
    vote = Vote("swapped", 1, "TIE", None, (("accuracy", "A"), ("clarity", "A")), "no answer")
    bare = vote.bare_ballot()
    assert whole_ballot(bare, PAIR) == bare
    assert isinstance(bare, Ballot)
    assert (bare.order, bare.winner, bare.confidence_source) == ("swapped", "TIE", "none")
