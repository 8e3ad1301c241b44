"""One pair through one judge: what is asked, what is kept, what fails and how."""

from __future__ import annotations

import asyncio
import math
import threading
from dataclasses import replace
from hashlib import sha256
from typing import Any

import jsonschema
import pytest

from evenhand.contract import Pair, Usage, Verdict, read_pair
from evenhand.errors import InputError, JudgeRejected, JudgeServerError, NoVerdict
from evenhand.judges.openai import OpenAIJudge
from evenhand.judges.protocol import Completion, JudgeCall, TokenLogprob, Traits
from evenhand.judges.registry import JudgeOptions
from evenhand.judges.retry import RetryPolicy
from evenhand.judging.ballots import read_completion
from evenhand.judging.comparison import compare, settle
from evenhand.judging.config import JudgeConfig
from evenhand.prompts import make_template
from evenhand.tools import output_schema
from scripted import ScriptedJudge, answer_json, letter_completion
from servers import RESET, SeenRequest, StartServer, chat_reply, error_reply, in_turn

PAIR = read_pair(
    {
        "id": "sky",
        "prompt": "Why is the sky blue?",
        "responseA": "Rayleigh scattering.",
        "responseB": "It mirrors the sea.",
        "criteria": ["accuracy", "clarity"],
    }
)
BOTH = [("accuracy", "A"), ("clarity", "A")]
NO_RETRY = RetryPolicy(attempts=1)


def shown_first(call: JudgeCall) -> str:
    return PAIR.response_a if call.order == "original" else PAIR.response_b


def right_judge(**more: Any) -> ScriptedJudge:
    """Takes the right answer, wherever it stands."""

    def answer(call: JudgeCall) -> str:
        winner = "A" if shown_first(call) == PAIR.response_a else "B"
        return answer_json(
            winner, criteria=[("accuracy", winner), ("clarity", winner)], confidence=0.9
        )

    return ScriptedJudge(answer, **more)


async def test_a_consistent_judge_gives_a_win_with_every_field_of_the_contract() -> None:
    verdict = await compare(PAIR, right_judge())
    result = verdict.model_dump(mode="json")
    jsonschema.validate(result, output_schema())
    assert result["success"] is True
    assert verdict.metadata.abstained is False
    assert (result["winner"], result["confidence"]) == ("A", 0.9)
    assert [c["criterion"] for c in result["comparison"]] == ["accuracy", "clarity"]
    assert set(result["comparison"][0]) == {
        "criterion", "winner", "reasoning", "aStrength", "bStrength",
    }  # fmt: skip
    assert result["positionConsistency"] == {
        "firstPassWinner": "A", "secondPassWinner": "A", "consistent": True,
    }  # fmt: skip
    meta = result["metadata"]
    assert (meta["id"], meta["outcome"], meta["judge"]) == ("sky", "win", "scripted")
    assert (meta["locale"], meta["positionsSwapped"]) == ("en", True)
    assert meta["promptVersion"].startswith("en/reasoned@")
    assert meta["confidenceSource"] == "stated"
    assert [p["order"] for p in meta["passes"]] == ["original", "swapped"]


async def test_assessments_become_strengths_in_the_callers_labels() -> None:
    verdict = await compare(PAIR, right_judge())
    entry = verdict.comparison[0]
    assert entry.a_strength == "Response A on accuracy"
    assert entry.b_strength == "Response B on accuracy"


async def test_both_passes_are_asked_at_once() -> None:
    waiting = asyncio.Barrier(2)

    class Together(ScriptedJudge):
        async def ask(self, call: JudgeCall) -> Completion:
            # Passed only when the other pass is in flight too.
            await asyncio.wait_for(waiting.wait(), timeout=5)
            return await super().ask(call)

    judge = Together(lambda call: answer_json("TIE", criteria=BOTH))
    assert (await compare(PAIR, judge)).outcome == "tie"


async def test_a_judge_that_takes_one_pass_at_a_time_is_asked_so() -> None:
    busy = 0

    class OneAtATime(ScriptedJudge):
        async def ask(self, call: JudgeCall) -> Completion:
            nonlocal busy
            busy += 1
            assert busy == 1
            await asyncio.sleep(0)
            busy -= 1
            return await super().ask(call)

    judge = OneAtATime(lambda call: answer_json("TIE"), Traits(parallel=False))
    await compare(PAIR, judge, JudgeConfig(samples=2))
    assert [c.order for c in judge.calls] == ["original", "original", "swapped", "swapped"]


async def test_without_swapping_one_pass_is_made_and_no_consistency_is_in_the_json() -> None:
    judge = right_judge()
    verdict = await compare(PAIR.model_copy(update={"swap_positions": False}), judge)
    assert len(judge.calls) == 1
    assert "positionConsistency" not in verdict.model_dump(mode="json")
    assert verdict.metadata.positions_swapped is False


async def test_an_unread_answer_is_shown_to_the_judge_once_with_what_was_wrong() -> None:
    def answer(call: JudgeCall) -> str:
        if len(call.messages) == 2:
            return answer_json("C")
        return answer_json("TIE", criteria=[("accuracy", "TIE"), ("clarity", "TIE")])

    judge = ScriptedJudge(answer)
    verdict = await compare(PAIR, judge)
    assert verdict.winner == "TIE"
    assert len(judge.calls) == 4
    repair = judge.calls[-1].messages
    assert [m.role for m in repair] == ["system", "user", "assistant", "user"]
    assert repair[2].text == answer_json("C")
    assert "none of the values on offer" in repair[3].text
    kept = verdict.metadata.passes[0].repaired
    assert [u.kind for u in kept] == ["off_menu"]
    assert kept[0].raw == answer_json("C")


@pytest.mark.parametrize(
    ("first", "allowed"),
    [
        # One candidate: a repair may restate it, not change it.
        ("I weighed both with care, and in the end Response {W} is the better of the two.", "same"),
        (
            '{"analysis": {}, "comparison": [], "result": {"reasoning": "x", "winner": "{W}",',
            "same",
        ),
        ('{"winner": "{W}", "reasoning": "it answers the', "same"),
        ("[[A]] was my first thought, but no: [[B]]", "any"),
        ("I cannot tell which of the two is the better one, for lack of a source.", "any"),
    ],
)
async def test_a_repair_may_restate_but_not_change(first: str, allowed: str) -> None:
    for said in ("A", "B"):
        for repaired in ("A", "B"):

            def answer(call: JudgeCall, said: str = said, repaired: str = repaired) -> str:
                swapped = call.order == "swapped"
                shown = {"A": "B", "B": "A"} if swapped else {"A": "A", "B": "B"}
                if len(call.messages) == 2:
                    return first.replace("{W}", shown[said])
                return answer_json(shown[repaired], criteria=[("accuracy", shown[repaired])])

            settled = await settle(PAIR, ScriptedJudge(answer), JudgeConfig())
            if allowed == "any" or said == repaired:
                assert isinstance(settled, Verdict)
                assert settled.winner == repaired
            else:
                assert not isinstance(settled, Verdict)
                for each in settled[0].metadata.passes:
                    assert each.unread is not None
                    assert each.unread.reason == (
                        f"the repair says {repaired}, but the first answer said {said}"
                    )


async def test_the_apis_own_field_outranks_the_text() -> None:
    def answer(call: JudgeCall) -> Completion:
        winner = "A" if call.order == "original" else "B"
        other = "B" if winner == "A" else "A"
        return Completion(answer_json(other), tool_arguments=answer_json(winner))

    verdict = await compare(PAIR, ScriptedJudge(answer))
    assert (verdict.winner, verdict.metadata.outcome) == ("A", "win")


@pytest.mark.parametrize("repairs", [0, 1, 2])
async def test_repairs_can_be_configured(repairs: int) -> None:
    judge = ScriptedJudge(lambda call: "I like both.")
    with pytest.raises(NoVerdict):
        await compare(PAIR, judge, JudgeConfig(repairs=repairs))
    assert len(judge.calls) == 2 * (1 + repairs)


async def test_an_invalid_pair_keeps_its_ballots_on_the_exception() -> None:
    def answer(call: JudgeCall) -> str:
        return answer_json("A", criteria=BOTH) if call.order == "original" else "no verdict here"

    with pytest.raises(NoVerdict, match="Second pass: unreadable") as caught:
        await compare(PAIR, ScriptedJudge(answer))
    meta = caught.value.metadata
    assert meta.outcome == "invalid"
    first, second = meta.passes
    assert first.ballot.winner == "A"
    assert [c.winner for c in first.ballot.criteria] == ["A", "A"]
    assert second.unread.raw == "no verdict here"


async def test_a_failed_pass_keeps_the_other_ones_ballot_and_counts_its_requests() -> None:
    error = JudgeServerError("it fell over")

    class HalfBroken(ScriptedJudge):
        async def ask(self, call: JudgeCall) -> Completion:
            if call.order == "swapped":
                raise error
            return await super().ask(call)

    judge = HalfBroken(
        lambda call: Completion(answer_json("A", criteria=BOTH), usage=Usage(requests=1))
    )
    settled = await settle(PAIR, judge, JudgeConfig(retry=RetryPolicy(attempts=3, base_s=0)))
    assert not isinstance(settled, Verdict)
    failure, raised = settled
    assert raised is error
    assert (failure.error.kind, failure.error.retryable) == ("judge_server_error", True)
    assert [p.order for p in failure.metadata.passes] == ["original"]
    assert failure.metadata.usage.requests == 1 + 3
    jsonschema.validate(failure.model_dump(mode="json"), output_schema())
    assert "winner" not in failure.model_dump(mode="json")


async def test_of_two_failed_passes_the_same_is_told_whatever_is_called_a() -> None:
    class Broken(ScriptedJudge):
        async def ask(self, call: JudgeCall) -> Completion:
            a, b = call.pair.response_a, call.pair.response_b
            raise JudgeRejected(f"{a if call.order == 'original' else b} came first")

    told = set()
    mirrored = {"response_a": PAIR.response_b, "response_b": PAIR.response_a}
    for pair in (PAIR, PAIR.model_copy(update=mirrored)):
        settled = await settle(pair, Broken(letters), JudgeConfig(retry=NO_RETRY))
        assert not isinstance(settled, Verdict)
        told.add(settled[1].message)
        assert settled[0].metadata.usage.requests == 2
    # That of the order whose first response has the smaller hash.
    one = min(PAIR.response_a, PAIR.response_b, key=lambda text: sha256(text.encode()).digest())
    assert told == {f"{one} came first"}


@pytest.mark.parametrize("stated", [85, "high", "85%", -0.1, None, True, float("nan")])
async def test_what_is_no_confidence_gives_none_and_never_a_default(stated: Any) -> None:
    def answer(call: JudgeCall) -> str:
        winner = "A" if call.order == "original" else "B"
        return answer_json(winner, criteria=[], confidence=stated)

    verdict = await compare(PAIR, ScriptedJudge(answer))
    assert (verdict.winner, verdict.confidence) == ("A", None)
    assert verdict.metadata.confidence_source == "none"


async def test_a_tie_from_a_judge_that_was_told_not_to_is_unread() -> None:
    pair = PAIR.model_copy(update={"allow_tie": False})
    with pytest.raises(NoVerdict) as caught:
        await compare(pair, ScriptedJudge(lambda call: answer_json("TIE")))
    assert {p.unread.kind for p in caught.value.metadata.passes} == {"tie_not_allowed"}


# Letter mode


def letters(call: JudgeCall) -> Completion:
    question = call.messages[-1].text
    if "all the criteria" in question:
        shares = {"A": 0.6, "B": 0.3, "C": 0.1} if call.order == "original" else {
            "A": 0.5, " B": 0.3, "\u2581B": 0.2
        }  # fmt: skip
        return letter_completion(shares)
    return letter_completion({"A": 0.2, "B": 0.2, "C": 0.6})


async def test_letter_mode_averages_the_probabilities_of_both_orders() -> None:
    verdict = await compare(PAIR, ScriptedJudge(letters), JudgeConfig(mode="letter"))
    # original A .6 B .3 TIE .1; swapped as shown A .5 B .5, so in the caller's labels A .5 B .5
    # mean: A (.6 + .5) / 2 = .55, B (.3 + .5) / 2 = .4, TIE .05
    assert (verdict.winner, verdict.outcome) == ("A", "win")
    assert verdict.confidence == pytest.approx(0.55)
    assert verdict.metadata.confidence_source == "logprobs"
    assert verdict.metadata.probabilities is not None
    assert verdict.metadata.probabilities.tie == pytest.approx(0.05)
    assert [c.winner for c in verdict.comparison] == ["TIE", "TIE"]
    assert verdict.overall_reasoning == ""
    assert verdict.metadata.mode == "letter"


async def test_letter_mode_asks_once_for_the_whole_and_once_for_each_criterion() -> None:
    judge = ScriptedJudge(letters)
    await compare(PAIR, judge, JudgeConfig(mode="letter"))
    assert len(judge.calls) == 2 * (1 + 2)
    assert all(call.letters == ("A", "B", "C") for call in judge.calls)
    assert all(call.logprobs for call in judge.calls)  # without which there are no probabilities


@pytest.mark.parametrize(
    ("completion", "reason"),
    [
        (Completion("A"), "no log-probabilities"),
        (letter_completion({"Well": 0.8, "A": 0.1, "B": 0.1}), "rather than one of the letters"),
        (letter_completion({"Neither": 1.0}), "rather than one of the letters"),
    ],
)
async def test_a_judge_that_does_not_answer_with_a_letter_is_unread(
    completion: Completion, reason: str
) -> None:
    with pytest.raises(NoVerdict, match=reason):
        await compare(PAIR, ScriptedJudge(lambda call: completion), JudgeConfig(mode="letter"))


async def test_a_judge_that_goes_on_from_a_beginning_gets_one() -> None:
    judge = ScriptedJudge(letters, Traits(continues=True))
    with pytest.raises(NoVerdict):
        # The questions stand one message earlier then; the script looks at the last.
        await compare(PAIR, ScriptedJudge(lambda c: Completion("")), JudgeConfig(mode="letter"))
    await settle(PAIR, judge, JudgeConfig(mode="letter"))
    assert judge.calls[0].messages[-1].role == "assistant"


# Confidence from log-probabilities


def with_logprobs(text: str, winner: str, shares: dict[str, float]) -> Completion:
    """Tokens as a server would cut them, the last "winner" value being a token of its own."""
    cut = text.rindex(f'"{winner}"', 0, text.rindex("confidence")) + 1
    top = tuple((token, math.log(p)) for token, p in shares.items())
    tokens = [
        TokenLogprob(text[:cut], 0.0),
        TokenLogprob(winner, math.log(shares[winner]), top),
        TokenLogprob(text[cut + len(winner) :], 0.0),
    ]
    return Completion(text, logprobs=tuple(tokens))


async def test_confidence_can_come_from_the_verdict_token() -> None:
    def answer(call: JudgeCall) -> Completion:
        winner = "A" if call.order == "original" else "B"
        other = "B" if winner == "A" else "A"
        share = 0.8 if call.order == "original" else 0.5
        return with_logprobs(
            answer_json(winner, criteria=[("accuracy", other)]),
            winner,
            {winner: share, other: share / 4, "T": share / 4},
        )

    verdict = await compare(PAIR, ScriptedJudge(answer), JudgeConfig(confidence="logprobs"))
    # within the menu A has 1 / (1 + 1/4 + 1/4) = 2/3 in both orders
    assert (verdict.winner, verdict.metadata.confidence_source) == ("A", "logprobs")
    assert verdict.confidence == pytest.approx(2 / 3)


async def test_without_log_probabilities_there_is_no_confidence_and_a_note() -> None:
    judge = ScriptedJudge(lambda call: answer_json("TIE", confidence=0.9))
    verdict = await compare(PAIR, judge, JudgeConfig(confidence="logprobs"))
    assert (verdict.confidence, verdict.metadata.confidence_source) == (None, "none")
    assert any("log-probabilities" in note for note in verdict.notes)


async def test_the_probability_is_that_of_the_overall_winner_whatever_comes_last() -> None:
    """A judge that writes its result first: the last "winner" is a criterion's."""

    def answer(call: JudgeCall) -> Completion:
        head, tail = '{"result": {"winner": "', '"}, "comparison": [{"criterion": "accuracy", '
        logprobs = (
            TokenLogprob(head, 0.0),
            TokenLogprob("A", math.log(0.51), (("A", math.log(0.51)), ("B", math.log(0.49)))),
            TokenLogprob(tail + '"winner": "', 0.0),
            TokenLogprob("A", math.log(0.99), (("A", math.log(0.99)), ("B", math.log(0.01)))),
            TokenLogprob('"}]}', 0.0),
        )
        return Completion("".join(token.token for token in logprobs), logprobs=logprobs)

    pair = PAIR.model_copy(update={"swap_positions": False})
    verdict = await compare(pair, ScriptedJudge(answer), JudgeConfig(confidence="logprobs"))
    assert verdict.confidence == pytest.approx(0.51)


async def test_odds_of_verdicts_that_the_judge_would_rather_not_say_are_no_confidence() -> None:
    text = '{"result": {"winner": "Response B"}}'
    top = (("Response", math.log(0.98)), ("A", math.log(0.015)), ("B", math.log(0.002)))
    logprobs = (
        TokenLogprob('{"result": {"winner": "', 0.0),
        TokenLogprob("Response", math.log(0.98), top),
        TokenLogprob(' B"}}', 0.0),
    )
    pair = PAIR.model_copy(update={"swap_positions": False})
    judge = ScriptedJudge(lambda call: Completion(text, logprobs=logprobs))
    verdict = await compare(pair, judge, JudgeConfig(confidence="logprobs"))
    assert (verdict.winner, verdict.confidence) == ("B", None)


# What a failure keeps, and what it leaves running


async def test_letter_mode_leaves_no_question_running_after_an_error() -> None:
    class Stumbling(ScriptedJudge):
        async def ask(self, call: JudgeCall) -> Completion:
            self.calls.append(call)
            if "criterion 1" in call.messages[-1].text:
                raise JudgeRejected("no")
            await asyncio.sleep(0.05)
            return replace(letters(call), usage=Usage(requests=1))

    before = asyncio.all_tasks()
    settled = await settle(PAIR, Stumbling(letters), JudgeConfig(mode="letter", retry=NO_RETRY))
    assert asyncio.all_tasks() == before
    assert not isinstance(settled, Verdict)
    # in each order: the whole was answered, then one criterion of two failed
    assert settled[0].metadata.usage.requests == 2 * (1 + 2)


@pytest.mark.parametrize(
    ("parallel", "failing", "requests"),
    [
        (True, "criterion", 2 * (1 + 2)),  # the whole was answered, and both criteria fail
        (True, "criterion 2", 2 * (1 + 2)),
        # One at a time: nothing is asked for any more, also not in the other order.
        (False, "criterion 1", 1 + 1),
        (False, "criterion 2", 1 + 2),
    ],
)
async def test_a_failed_pass_in_letter_mode_counts_every_question(
    parallel: bool, failing: str, requests: int
) -> None:
    class Stumbling(ScriptedJudge):
        async def ask(self, call: JudgeCall) -> Completion:
            self.calls.append(call)
            question = call.messages[-1].text
            if failing in question and "all the criteria" not in question:
                raise JudgeRejected("no")
            return replace(letters(call), usage=Usage(requests=1))

    judge = Stumbling(letters, Traits(parallel=parallel))
    settled = await settle(PAIR, judge, JudgeConfig(mode="letter", retry=NO_RETRY))
    assert not isinstance(settled, Verdict)
    assert len(judge.calls) == settled[0].metadata.usage.requests == requests


async def test_a_repair_that_fails_keeps_the_answer_that_was_paid_for() -> None:
    class Once(ScriptedJudge):
        async def ask(self, call: JudgeCall) -> Completion:
            if len(call.messages) > 2:
                raise JudgeServerError("it fell over")
            return await super().ask(call)

    usage = Usage(input_tokens=1000, output_tokens=500, requests=1)
    judge = Once(lambda call: Completion("dunno", usage=usage))
    settled = await settle(PAIR, judge, JudgeConfig(retry=NO_RETRY))
    assert not isinstance(settled, Verdict)
    failure, error = settled
    assert isinstance(error, NoVerdict)
    assert failure.metadata.usage.requests == 4
    unread = failure.metadata.passes[0].unread
    assert unread is not None
    assert unread.raw == "dunno"
    assert "asking again failed: it fell over" in unread.reason


async def test_a_refusal_is_told_in_the_callers_labels() -> None:
    def answer(call: JudgeCall) -> Completion:
        return Completion("", finish="refusal", refusal="Response A is harmful.")

    with pytest.raises(NoVerdict) as caught:
        await compare(PAIR, ScriptedJudge(answer), JudgeConfig(repairs=0))
    first, second = caught.value.metadata.passes
    assert "Response A is harmful" in first.unread.reason
    assert "Response B is harmful" in second.unread.reason


@pytest.mark.parametrize(
    ("completion", "kind"),
    [
        (Completion("", finish="refusal", refusal="No."), "refusal"),
        (Completion("", finish="filter"), "refusal"),
        (Completion("", finish="length"), "thinking"),
        (Completion("", thought=True), "thinking"),
    ],
)
@pytest.mark.parametrize("mode", ["reasoned", "letter"])
async def test_an_answer_withheld_is_named_for_what_it_is(
    completion: Completion, kind: str, mode: Any
) -> None:
    with pytest.raises(NoVerdict) as caught:
        await compare(PAIR, ScriptedJudge(lambda c: completion), JudgeConfig(mode=mode, repairs=0))
    unread = caught.value.metadata.passes[0].unread
    assert unread.kind == kind
    assert ("token limit" in unread.reason) == (completion.finish == "length")


@pytest.mark.parametrize("half", ["\\ud83d", "\\uD83D"])
async def test_half_a_surrogate_pair_in_an_answer_does_not_reach_the_result(half: str) -> None:
    text = answer_json("TIE", reasoning=f"cut inside {half}").replace("\\\\u", "\\u")
    verdict = await compare(PAIR, ScriptedJudge(lambda call: text))
    assert verdict.overall_reasoning == "cut inside \ufffd"
    verdict.model_dump_json()
    lines = ScriptedJudge(lambda call: "Winner: TIE\n\ud800")
    (await compare(PAIR, lines)).model_dump_json()


async def test_each_request_is_priced_by_itself() -> None:
    """gemini-2.5-pro costs twice as much a token above 200,000 tokens in one request."""
    usage = Usage(input_tokens=150_000, output_tokens=100, requests=1)

    def answer(call: JudgeCall) -> Completion:
        text = "dunno" if len(call.messages) == 2 else answer_json("TIE")
        return Completion(text, usage=usage, model="gemini-2.5-pro")

    judge = ScriptedJudge(answer, Traits(provider="google"))
    verdict = await compare(PAIR, judge)
    # 4 requests, each 150,000 × 1.25e-6 + 100 × 10e-6 = 0.1885
    assert verdict.metadata.usage.cost_usd == pytest.approx(4 * 0.1885)


async def test_one_order_alone_says_so() -> None:
    verdict = await compare(PAIR.model_copy(update={"swap_positions": False}), right_judge())
    assert "Judged in one order only: position may have decided." in verdict.notes


async def test_what_the_config_cannot_do_for_this_pair_is_a_value_in_settle() -> None:
    template = make_template(
        "{criteria}{prompt}{response_a}{response_b}", name="t", locale="en", mode="reasoned"
    )
    pair = PAIR.model_copy(update={"context": "c", "swap_positions": False})
    settled = await settle(pair, right_judge(), JudgeConfig(template=template))
    assert not isinstance(settled, Verdict)
    failure, _ = settled
    assert (failure.error.kind, failure.metadata.id) == ("template", "sky")
    assert failure.metadata.positions_swapped is False


@pytest.mark.parametrize(
    "wrong",
    [
        {"locale": "fr"}, {"reconcile": "mean"}, {"confidence": "x"}, {"protocol": "x"},
        {"mode": "x"}, {"samples": "3"}, {"samples": 2.5}, {"samples": 0}, {"samples": True},
        {"repairs": -1}, {"template": "t.txt"}, {"retry": 3}, {"ask_identical": "no"},
    ],
)  # fmt: skip
def test_a_config_that_cannot_be_is_refused_at_once(wrong: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=f"^{next(iter(wrong))} is "):
        JudgeConfig(**wrong)


# What the config refuses, and what it leaves out


async def test_averaging_one_stated_verdict_is_refused_before_anything_is_asked() -> None:
    judge = right_judge()
    with pytest.raises(InputError, match="to average"):
        await compare(PAIR, judge, JudgeConfig(reconcile="average"))
    assert judge.calls == []


async def test_a_mode_that_the_judge_does_not_have_is_refused() -> None:
    with pytest.raises(InputError, match="cannot answer in letter mode"):
        await compare(
            PAIR, right_judge(traits=Traits(modes=("reasoned",))), JudgeConfig(mode="letter")
        )


async def test_a_template_of_the_users_is_sent_without_our_schema() -> None:
    template = make_template(
        "MINE {criteria}{prompt}{response_a}{response_b}", name="t", locale="en", mode="reasoned"
    )
    judge = right_judge()
    verdict = await compare(PAIR, judge, JudgeConfig(template=template))
    assert judge.calls[0].messages[0].text.startswith("MINE")
    assert judge.calls[0].answer_schema is None
    assert verdict.metadata.prompt_version == template.version


async def test_identical_responses_are_a_tie_by_rule_unless_the_caller_asks() -> None:
    same = PAIR.model_copy(update={"response_b": PAIR.response_a})
    judge = ScriptedJudge(lambda call: answer_json("A"))
    unasked = await compare(same, judge)
    assert judge.calls == []
    assert (unasked.winner, unasked.confidence, unasked.outcome) == ("TIE", None, "tie")
    assert (unasked.metadata.confidence_source, unasked.metadata.decided_by) == (
        "rule",
        "identical",
    )
    usage = unasked.metadata.usage
    assert (usage.requests, usage.cost_usd, unasked.metadata.passes) == (0, 0, ())
    assert unasked.position_consistency is None
    assert unasked.notes == (
        "A tie by rule: the two responses are identical, so the judge was not asked.",
    )
    assert {each.winner for each in unasked.comparison} == {"TIE"}
    asked = await compare(same, judge, JudgeConfig(ask_identical=True))
    assert len(judge.calls) == 2
    assert asked.outcome == "inconsistent"  # A in both orders
    assert "The two responses are identical." in asked.notes
    with pytest.raises(NoVerdict, match="ask_identical"):
        await compare(same.model_copy(update={"allow_tie": False}), judge)


async def test_a_replay_keeps_what_was_recorded_of_identical_responses() -> None:
    same = PAIR.model_copy(update={"response_b": PAIR.response_a})
    judge = ScriptedJudge(lambda call: answer_json("A"), traits=Traits(by_id=True))
    assert (await compare(same, judge)).outcome == "inconsistent"
    assert len(judge.calls) == 2


# Over the wire


async def test_faults_that_can_be_retried_are_retried_and_counted(
    start_server: StartServer,
) -> None:
    limited = error_reply(429, "slow down", headers={"Retry-After": "0"})
    good = chat_reply(answer_json("TIE"), usage={"prompt_tokens": 100, "completion_tokens": 20})
    server = start_server(in_turn(error_reply(500, "oops"), RESET, limited, good, good))
    async with OpenAIJudge("m", JudgeOptions(base_url=server.url)) as judge:
        verdict = await compare(PAIR, judge, JudgeConfig(retry=RetryPolicy(attempts=5, base_s=0)))
    usage = verdict.metadata.usage
    assert usage.requests == 5
    assert (usage.input_tokens, usage.output_tokens) == (200, 40)
    assert usage.cost_usd is None, "a loopback server has no price list"


async def test_cancelling_leaves_nothing_running(start_server: StartServer) -> None:
    from servers import Slow

    server = start_server(lambda request: Slow(30, chat_reply(answer_json("A"))))
    before = asyncio.all_tasks()
    async with OpenAIJudge("m", JudgeOptions(base_url=server.url)) as judge:
        task = asyncio.create_task(compare(PAIR, judge))
        async with asyncio.timeout(120):
            while len(server.requests) < 2:  # noqa: ASYNC110 - the server runs in another thread
                await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert asyncio.all_tasks() == before
    server.wait_until_idle()


async def test_the_price_of_a_known_model_is_in_the_metadata() -> None:
    """gpt-4o: 2.50 dollars for a million tokens in, 10 for a million out."""
    usage = Usage(input_tokens=1_000, output_tokens=100, requests=1)
    judge = ScriptedJudge(
        lambda call: Completion(answer_json("TIE"), usage=usage, model="gpt-4o"),
        Traits(provider="openai"),
    )
    verdict = await compare(PAIR, judge)
    # each pass: 1000 × 2.50e-6 + 100 × 10e-6 = 0.0035
    assert verdict.metadata.usage.cost_usd == pytest.approx(0.007)


async def test_a_judge_that_answers_by_content_over_http_is_followed(
    start_server: StartServer,
) -> None:
    def script(request: SeenRequest) -> Any:
        text = request.messages[-1]["content"]
        first = text.index("Rayleigh") < text.index("mirrors")
        winner = "A" if first else "B"
        return chat_reply(answer_json(winner, criteria=[("accuracy", winner)]))

    server = start_server(script)
    async with OpenAIJudge("m", JudgeOptions(base_url=server.url)) as judge:
        assert (await compare(PAIR, judge)).winner == "A"
        assert (await compare(PAIR.mirrored(), judge)).winner == "B"


def test_pairs_are_read_from_plain_data_too() -> None:
    async def run() -> Verdict:
        return await compare(PAIR.model_dump(), right_judge())

    assert asyncio.run(run()).winner == "A"
    assert isinstance(PAIR, Pair)


async def test_a_long_completion_is_read_off_the_event_loop(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    read_in: list[bool] = []

    def read_noting_its_thread(*arguments: Any, **options: Any) -> Any:
        read_in.append(threading.current_thread() is threading.main_thread())
        return read_completion(*arguments, **options)

    monkeypatch.setattr("evenhand.judging.passes.read_completion", read_noting_its_thread)
    answer = answer_json("TIE", criteria=BOTH)
    for text in (answer, f"{'They were compared at length. ' * 1000}\n\n{answer}"):
        verdict = await compare(PAIR, ScriptedJudge(lambda _, text=text: text))  # type: ignore[misc]
        assert verdict.outcome == "tie"
    # Two passes each: the short answers at once, the long ones in a thread.
    assert read_in == [True, True, False, False]
