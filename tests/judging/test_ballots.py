"""A completion becomes a ballot: recorded verdicts, usage in all, and probabilities of tokens."""

from __future__ import annotations

import math
import time
from dataclasses import replace
from typing import Any

import pytest

from evenhand.contract import Order, Outcome, Probabilities, Scores, Unread, Usage, Winner
from evenhand.judges.protocol import Completion, TokenLogprob
from evenhand.judging.ballots import add_usage, read_ballot, read_completion, read_letters
from evenhand.judging.decision import Decision, Judged, PassBallot, PassResult, Reading
from evenhand.judging.passes import milliseconds_since
from scripted import answer_json, letter_completion, make_pair

PAIR = make_pair(criteria=["accuracy", "clarity"])
NO_TIES = make_pair(allow_tie=False)


def recorded(verdict: Winner, order: Order = "original", pair: Any = PAIR, **more: Any) -> Reading:
    completion = Completion("", verdict_as_shown=verdict, **more)
    return read_completion(completion, pair=pair, order=order, sample=1)


def test_a_recorded_verdict_is_taken_as_it_was_shown() -> None:
    found = recorded("A", scores_as_shown=(7, 4))
    assert isinstance(found, PassBallot)
    assert (found.winner, found.scores, found.protocol) == ("A", Scores(a=7, b=4), "recorded")
    assert found.criteria == (None, None)
    swapped = recorded("A", "swapped", scores_as_shown=(7, 4))
    assert isinstance(swapped, PassBallot)
    assert (swapped.winner, swapped.scores) == ("B", Scores(a=4, b=7))
    bare = recorded("B", "swapped")
    assert isinstance(bare, PassBallot)
    assert (bare.winner, bare.scores) == ("A", None)


def test_a_recorded_tie_counts_where_ties_are_allowed_alone() -> None:
    allowed, refused = recorded("TIE"), recorded("TIE", pair=NO_TIES)
    assert isinstance(allowed, PassBallot)
    assert allowed.winner == "TIE"
    assert isinstance(refused, Unread)
    assert refused.kind == "tie_not_allowed"
    decided = recorded("A", pair=NO_TIES)
    assert isinstance(decided, PassBallot)
    assert decided.winner == "A"


@pytest.mark.parametrize(
    "completion",
    [
        Completion(answer_json("A"), refusal="I would rather not."),
        Completion("I would rather not.", finish="refusal"),
    ],
)
def test_a_refusal_is_one_by_its_field_or_by_its_finish(completion: Completion) -> None:
    found = read_completion(completion, pair=PAIR, order="original", sample=1)
    assert isinstance(found, Unread)
    assert found.kind == "refusal"
    assert "I would rather not." in found.reason


def test_a_refusal_without_a_word_is_one() -> None:
    silent = Completion("", finish="refusal")
    found = read_completion(silent, pair=PAIR, order="original", sample=1)
    assert isinstance(found, Unread)
    assert found.kind == "refusal"
    assert found.reason.startswith("the judge declined;")


def test_an_answer_after_thinking_is_read() -> None:
    for completion in (Completion("[[A]]", thought=True), Completion(answer_json("A"))):
        found = read_completion(completion, pair=PAIR, order="original", sample=1)
        assert isinstance(found, PassBallot)
        assert found.winner == "A"
    nothing = Completion("", thought=True)
    unread = read_completion(nothing, pair=PAIR, order="original", sample=1)
    assert isinstance(unread, Unread)
    assert unread.kind == "thinking"


def test_time_is_taken_in_milliseconds_to_the_microsecond() -> None:
    for seconds in (0.0, 1.5, 2.5):
        taken = milliseconds_since(time.perf_counter() - seconds)
        assert 1000 * seconds <= taken < 1000 * seconds + 60_000
        assert taken == round(taken, 3)


def test_usage_is_known_in_all_only_where_every_part_is() -> None:
    known = Usage(input_tokens=10, output_tokens=2, cached_input_tokens=4, cost_usd=0.5)
    other = Usage(input_tokens=20, output_tokens=3, cached_input_tokens=6, cost_usd=0.25)
    assert add_usage([known, other]) == Usage(
        input_tokens=30,
        output_tokens=5,
        cached_input_tokens=10,
        cost_usd=0.75,
        requests=known.requests + other.requests,
    )
    for unknown in ("input_tokens", "output_tokens", "cached_input_tokens", "cost_usd"):
        added = add_usage([known, other.model_copy(update={unknown: None})])
        assert getattr(added, unknown) is None
        for kept in {"input_tokens", "output_tokens", "cached_input_tokens", "cost_usd"} - {
            unknown
        }:
            assert getattr(added, kept) == getattr(add_usage([known, other]), kept)
    assert add_usage([]) == Usage(requests=0)


def with_logprobs(*places: tuple[str, dict[str, float]]) -> Completion:
    """An answer of these tokens, each with the probabilities at its place."""
    logprobs = tuple(
        TokenLogprob(
            token, math.log(top.get(token, 1.0)), tuple((t, math.log(p)) for t, p in top.items())
        )
        for token, top in places
    )
    return Completion("".join(token for token, _ in places), logprobs=logprobs)


def read_with_logprobs(completion: Completion, order: Order = "original") -> PassBallot:
    found = read_completion(completion, pair=PAIR, order=order, sample=1, from_logprobs=True)
    assert isinstance(found, PassBallot)
    return found


def test_the_verdict_tokens_probabilities_are_shares_of_the_verdicts_alone() -> None:
    said = with_logprobs(
        ('{"winner": "', {}), ("A", {"A": 0.5, "B": 0.2, "TIE": 0.1, "x": 0.2}), ('"}', {})
    )
    found = read_with_logprobs(said)
    # 0.5, 0.2 and 0.1 of 0.8
    assert found.probabilities is not None
    assert found.probabilities.a == pytest.approx(5 / 8)
    assert found.probabilities.b == pytest.approx(2 / 8)
    assert found.probabilities.tie == pytest.approx(1 / 8)
    assert found.confidence == pytest.approx(5 / 8)
    assert found.confidence_source == "logprobs"
    swapped = read_with_logprobs(said, "swapped")
    assert (swapped.winner, swapped.confidence) == ("B", found.confidence)
    assert swapped.probabilities == found.probabilities.mirrored()


def test_a_verdict_token_may_carry_quotes_or_be_the_beginning_of_tie() -> None:
    top = {' "T': 0.6, ' "A': 0.3, ' "B': 0.1}
    found = read_with_logprobs(with_logprobs(('{"winner":', {}), (' "T', top), ('IE"}', {})))
    assert found.winner == "TIE"
    assert found.confidence == pytest.approx(0.6)


def test_two_winners_outside_a_result_name_no_token() -> None:
    """Which of them decides is not beyond doubt."""
    top = {"A": 0.9, "B": 0.1}
    said = with_logprobs(
        ('{"winner": "', {}), ("A", top), ('", "again": {"winner": "', {}), ("A", top), ('"}}', {})
    )
    found = read_with_logprobs(said)
    assert (found.winner, found.confidence, found.confidence_source) == ("A", None, "none")
    in_result = with_logprobs(
        ('{"by": {"winner": "', {}),
        ("A", {"A": 0.6, "B": 0.4}),
        ('"}, "result": {"winner": "', {}),
        ("A", top),
        ('"}}', {}),
    )
    assert read_with_logprobs(in_result).confidence == pytest.approx(0.9)


def letters(*shares: dict[str, float], order: Order = "original", pair: Any = PAIR) -> Reading:
    completions = [letter_completion(each) for each in shares]
    return read_letters(completions, pair=pair, order=order, sample=1)


def test_letters_that_weigh_the_same_are_a_tie_that_no_probability_backs() -> None:
    found = letters({"A": 0.4, "B": 0.4, "C": 0.2})
    assert isinstance(found, PassBallot)
    assert (found.winner, found.confidence, found.confidence_source) == ("TIE", None, "none")
    backed = letters({"A": 0.3, "B": 0.2, "C": 0.5})
    assert isinstance(backed, PassBallot)
    assert (backed.winner, backed.confidence_source) == ("TIE", "logprobs")
    assert backed.confidence == pytest.approx(0.5)
    refused = letters({"A": 0.4, "B": 0.4, "C": 0.2}, pair=NO_TIES)
    assert isinstance(refused, Unread)
    assert refused.kind == "no_verdict"


def test_a_tie_as_probable_as_the_better_response_is_a_tie() -> None:
    found = letters({"A": 0.4, "B": 0.2, "C": 0.4})
    assert isinstance(found, PassBallot)
    assert found.winner == "TIE"
    assert found.confidence == pytest.approx(0.4)


def test_each_criterion_has_its_own_letters_in_the_callers_labels() -> None:
    found = letters(
        {"A": 0.9, "B": 0.1}, {"A": 0.8, "B": 0.2}, {"A": 0.1, "B": 0.9}, order="swapped"
    )
    assert isinstance(found, PassBallot)
    assert (found.winner, found.criteria) == ("B", ("B", "A"))
    assert [shares and round(shares.a, 9) for shares in found.criterion_probabilities] == [0.2, 0.9]


def test_letters_have_their_shares_of_all_letters() -> None:
    found = letters({"A": 0.4, "B": 0.2, "C": 0.2, "Well": 0.2})
    assert isinstance(found, PassBallot)
    assert found.probabilities is not None
    shares = found.probabilities.model_dump().values()
    assert list(shares) == pytest.approx([0.4 / 0.8, 0.2 / 0.8, 0.2 / 0.8])


def test_without_ties_their_letter_counts_for_nothing() -> None:
    found = letters({"A": 0.5, "B": 0.25, "C": 0.25}, pair=NO_TIES)
    assert isinstance(found, PassBallot)
    assert found.probabilities is not None
    assert found.probabilities.a == pytest.approx(2 / 3)
    assert found.probabilities == Probabilities(
        a=found.probabilities.a, b=found.probabilities.b, tie=0
    )


@pytest.mark.parametrize("missing", ["A", "B", "C"])
def test_a_letter_that_is_not_among_the_likeliest_has_no_share(missing: str) -> None:
    shares = {letter: 0.5 for letter in "ABC" if letter != missing}
    found = letters(shares)
    assert isinstance(found, PassBallot)
    assert found.probabilities is not None
    probable = dict(zip("ABC", found.probabilities.model_dump().values(), strict=True))
    assert probable == pytest.approx({**shares, missing: 0.0})


def token(*top: tuple[str, float]) -> TokenLogprob:
    """Servers round, and may so send a logarithm above 0."""
    return TokenLogprob(*top[0], top)


def test_a_logarithm_above_zero_is_certainty_and_no_more() -> None:
    half = math.log(0.5)
    letter = Completion("A", logprobs=(token(("A", 0.2), ("B", half)),))
    found = read_letters([letter], pair=NO_TIES, order="original", sample=1)
    assert isinstance(found, PassBallot)
    assert found.confidence == pytest.approx(1 / 1.5)
    said = with_logprobs(('{"winner": "', {}), ("A", {"A": 0.5}), ('"}', {}))
    places = (said.logprobs[0], token(("A", 0.2), ("B", half)), said.logprobs[2])
    named = read_with_logprobs(replace(said, logprobs=places))
    assert named.confidence == pytest.approx(1 / 1.5)
    # A word that is certain is not more probable than two certain letters together.
    both = Completion("Well", logprobs=(token(("Well", 0.9), ("A", 0.0), ("B", 0.0)),))
    even = read_letters([both], pair=PAIR, order="original", sample=1)
    assert isinstance(even, PassBallot)
    assert even.winner == "TIE"


def test_a_token_as_probable_as_all_letters_together_is_no_better_choice() -> None:
    even = letters({"Well": 0.5, "A": 0.375, "B": 0.125})
    assert isinstance(even, PassBallot)
    assert even.confidence == pytest.approx(0.75)


def test_a_pass_is_its_first_sample_in_the_original_order_unless_it_is_said() -> None:
    found = read_ballot(answer_json("TIE"))
    assert isinstance(found, PassBallot)
    assert (found.order, found.sample, found.winner) == ("original", 1, "TIE")
    assert PassResult(found).unread is None
    assert (PassResult(found).sample, PassResult(found).time_ms) == (1, 0)
    tie = Decision(Outcome.TIE, "TIE", None, "none")
    assert (Judged(tie, ()).samples, Judged(tie, ()).time_ms, tie.abstained) == (1, 0, False)
    unread = read_ballot("I cannot say.", sample=2)
    assert isinstance(unread, Unread)
    assert PassResult(unread).unread is unread
    assert PassResult(unread).sample == 2


def test_ballots_are_the_same_whether_or_not_their_prose_is_at_hand() -> None:
    """As those that a store kept are the same as those that were read."""
    found = read_ballot(answer_json("A", reasoning="A long story."))
    assert isinstance(found, PassBallot)
    assert found.prose is not None
    assert replace(found, prose=None) == found
    assert "prose" not in repr(found)
