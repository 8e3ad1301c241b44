"""Even-handedness: compare(A, B) and compare(B, A) are mirror images in every field."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from evenhand.contract import Pair, Verdict
from evenhand.data.orders import OrderDraw
from evenhand.judges.openai import OpenAIJudge
from evenhand.judges.protocol import Completion, JudgeCall
from evenhand.judges.registry import JudgeOptions
from evenhand.judges.retry import RetryPolicy
from evenhand.judging.comparison import compare, settle
from evenhand.judging.config import JudgeConfig
from evenhand.prompts import Prompt, built_in_template
from explained import mirrored, plain
from parts import examples
from scripted import ScriptedJudge, answer_json, letter_completion, make_pair, seeded_by
from servers import SeenRequest, StartServer, chat_reply

TEXTS = st.text(max_size=40) | st.sampled_from(
    ["", "Response A", "响应 B 更好", "{response_b}", "the same", "[[A]]", '{"winner": "B"}']
)
CRITERIA = st.lists(
    st.sampled_from(["accuracy", "clarity", "depth", "语气"]), min_size=1, max_size=3, unique=True
)


@st.composite
def pairs(draw: st.DrawFn) -> Pair:
    criteria = draw(CRITERIA)
    weights = draw(st.lists(st.sampled_from([None, 0.5, 2.0]), min_size=3, max_size=3))
    return make_pair(
        prompt=draw(TEXTS),
        response_a=draw(TEXTS),
        response_b=draw(TEXTS),
        criteria=[
            {"name": name, "weight": weight}
            for name, weight in zip(criteria, weights, strict=False)
        ],
        context=draw(st.none() | TEXTS),
        reference=draw(st.none() | TEXTS),
        allow_tie=draw(st.booleans()),
    )


def any_answer(rng: random.Random, criteria: list[str]) -> str:
    """What a judge may say: any verdict, any confidence, gaps, prose that names both responses."""
    names = ["Response A", "Response B", "响应 A", "响应 B", "A", "the first"]

    def prose() -> str:
        words = [*names, "is better than", "explains", "错误"]
        return " ".join(rng.choice(words) for _ in range(4))

    if rng.random() < 0.1:
        return rng.choice(["", "no idea", "Winner: A", '{"result": {"winner": "C"}}'])
    answered = [name for name in criteria if rng.random() < 0.85]
    return json.dumps(
        {
            "analysis": {
                side: {
                    "strengths": [prose() for _ in range(rng.randint(0, 2))],
                    "weaknesses": [prose() for _ in range(rng.randint(0, 2))],
                }
                for side in ("responseA", "responseB")
            },
            "comparison": [
                {
                    "criterion": name,
                    "aAssessment": prose(),
                    "bAssessment": prose(),
                    "reasoning": prose(),
                    "winner": rng.choice(["A", "B", "TIE"]),
                }
                for name in answered
            ],
            "result": {
                "reasoning": prose(),
                "differentiators": [prose() for _ in range(rng.randint(0, 3))],
                "winner": rng.choice(["A", "A", "B", "B", "TIE"]),
                "confidence": rng.choice([0.5, 0.7, 0.7, 0.95, "high", None]),
            },
        },
        ensure_ascii=False,
    )


def result_json(settled: Any) -> dict[str, Any]:
    result = settled if isinstance(settled, Verdict) else settled[0]
    dumped: dict[str, Any] = result.model_dump(mode="json")
    return dumped


def assert_mirrors(one: dict[str, Any], other: dict[str, Any]) -> None:
    assert mirrored(one) == plain(other)


@pytest.mark.parametrize("locale", ["en", "zh"])
@pytest.mark.parametrize("samples", [1, 2, 3])
@given(pair=pairs(), salt=st.integers(0, 10_000), how=st.sampled_from(["agreement", "average"]))
@settings(max_examples=examples(60), suppress_health_check=[HealthCheck.too_slow])
async def test_any_pair_and_any_deterministic_judge_mirror(
    locale: Any, samples: int, pair: Pair, salt: int, how: Any
) -> None:
    if samples == 1:
        how = "agreement"
    names = [criterion.name for criterion in pair.criteria]

    def answer(call: JudgeCall) -> str:
        return any_answer(seeded_by(call, str(salt)), names)

    config = JudgeConfig(locale=locale, samples=samples, reconcile=how, repairs=salt % 2)
    one = await settle(pair, ScriptedJudge(answer), config)
    other = await settle(pair.mirrored(), ScriptedJudge(answer), config)
    if pair.response_a == pair.response_b:
        assert plain(result_json(one)) == plain(result_json(other))
    else:
        assert_mirrors(result_json(one), result_json(other))


@pytest.mark.parametrize("samples", [1, 2])
@given(pair=pairs(), salt=st.integers(0, 10_000), seed=st.integers(), share=st.floats(0, 1))
@settings(max_examples=examples(60), suppress_health_check=[HealthCheck.too_slow])
async def test_a_pair_in_a_drawn_order_mirrors(
    samples: int, pair: Pair, salt: int, seed: int, share: float
) -> None:
    """The order is drawn from the unordered pair: whoever exchanges A and B asks the very same
    prompt, and gets the mirror image in every field."""
    names = [criterion.name for criterion in pair.criteria]
    draw = OrderDraw(seed, share)
    asked: list[list[str]] = []
    settled = []
    for each in (draw.draw(pair), draw.draw(pair.mirrored())):
        judge = ScriptedJudge(lambda call: any_answer(seeded_by(call, str(salt)), names))
        settled.append(await settle(each, judge, JudgeConfig(samples=samples, repairs=0)))
        asked.append(sorted(repr(call.messages) for call in judge.calls))
    assert asked[0] == asked[1]
    one, other = (result_json(each) for each in settled)
    if pair.response_a == pair.response_b:
        assert plain(one) == plain(other)
    else:
        assert_mirrors(one, other)


@given(pair=pairs(), salt=st.integers(0, 10_000))
@settings(max_examples=examples(80))
async def test_letter_mode_mirrors(pair: Pair, salt: int) -> None:
    def answer(call: JudgeCall) -> Completion:
        rng = seeded_by(call, str(salt))
        shares = [rng.choice([0.1, 0.2, 0.4]) for _ in range(4)]
        total = sum(shares)
        return letter_completion(
            dict(zip(("A", " B", "C", "Well"), (share / total for share in shares), strict=True))
        )

    config = JudgeConfig(mode="letter")
    one = await settle(pair, ScriptedJudge(answer), config)
    other = await settle(pair.mirrored(), ScriptedJudge(answer), config)
    if pair.response_a == pair.response_b:
        assert plain(result_json(one)) == plain(result_json(other))
    else:
        assert_mirrors(result_json(one), result_json(other))


@pytest.mark.parametrize("mode", ["reasoned", "letter"])
@given(
    pair=pairs(),
    salt=st.integers(0, 10_000),
    kinds=st.lists(st.sampled_from(["metrics", "reference", "analysis"]), unique=True),
    locale=st.sampled_from(["en", "zh"]),
)
@settings(max_examples=examples(60), suppress_health_check=[HealthCheck.too_slow])
async def test_what_is_prepared_mirrors(
    mode: Any, pair: Pair, salt: int, kinds: list[Any], locale: Any
) -> None:
    """Each order's prompt is the other comparison's, byte for byte, whatever was written before."""
    names = [criterion.name for criterion in pair.criteria]

    def answer(call: JudgeCall) -> str | Completion:
        rng = seeded_by(call, str(salt))
        if call.artefact is not None:
            said = rng.choice(["1. Right?", "Response A is the best.", "{response_b}", ""])
            return Completion(said, finish=rng.choice(["stop", "stop", "length", "refusal"]))
        if call.letters:
            return letter_completion({"A": rng.choice([0.2, 0.5]), "B": 0.3, "C": 0.2})
        return any_answer(rng, names)

    config = JudgeConfig(locale=locale, mode=mode, prepare=tuple(kinds), repairs=0)
    judges = ScriptedJudge(answer), ScriptedJudge(answer)
    one = await settle(pair, judges[0], config)
    other = await settle(pair.mirrored(), judges[1], config)
    asked = [sorted(repr(call.messages) for call in judge.calls) for judge in judges]
    assert asked[0] == asked[1]
    if pair.response_a == pair.response_b:
        assert plain(result_json(one)) == plain(result_json(other))
    else:
        assert_mirrors(result_json(one), result_json(other))


@given(
    pair=pairs(),
    locale=st.sampled_from(["en", "zh"]),
    mode=st.sampled_from(["reasoned", "letter"]),
)
@settings(max_examples=examples(100))
def test_the_first_prompt_is_the_mirror_pairs_second_byte_for_byte(
    pair: Pair, locale: Any, mode: Any
) -> None:
    template = built_in_template(locale, mode)
    one, other = Prompt.of(pair, template), Prompt.of(pair.mirrored(), template)
    for question in one.questions():
        assert one.messages("original", question=question) == other.messages(
            "swapped", question=question
        )
        assert one.messages("swapped", question=question) == other.messages(
            "original", question=question
        )


@pytest.mark.parametrize("seed", range(12))
async def test_over_a_live_server_the_two_calls_mirror(
    seed: int, start_server: StartServer
) -> None:
    """The whole way: rendering, HTTP, a server that answers by content, reading, reconciling."""
    rng = random.Random(seed)
    criteria = ["accuracy", "clarity"]

    def script(request: SeenRequest) -> Any:
        return chat_reply(any_answer(random.Random(f"{seed}|{request.prompt}"), criteria))

    server = start_server(script)
    pair = make_pair(
        prompt="Why is the sky blue?",
        response_a=f"Rayleigh scattering. Response A {rng.random()}",
        response_b=f"It reflects the sea. 响应 B {rng.random()}",
        criteria=criteria,
        allow_tie=seed % 3 != 0,
    )
    config = JudgeConfig(locale="zh" if seed % 2 else "en", retry=RetryPolicy(attempts=1))
    async with OpenAIJudge("m", JudgeOptions(base_url=server.url)) as judge:
        one = await settle(pair, judge, config)
        other = await settle(pair.mirrored(), judge, config)
    assert_mirrors(result_json(one), result_json(other))


@given(text=TEXTS, salt=st.integers(0, 10_000), allow_tie=st.booleans())
@settings(max_examples=examples(60))
async def test_identical_responses_never_have_a_winner(
    text: str, salt: int, allow_tie: bool
) -> None:
    """Both passes are the same prompt, so a deterministic judge can only tie or contradict."""
    pair = make_pair(response_a=text, response_b=text, allow_tie=allow_tie)
    judge = ScriptedJudge(lambda call: any_answer(seeded_by(call, str(salt)), ["accuracy"]))
    settled = await settle(pair, judge, JudgeConfig(ask_identical=True))
    if isinstance(settled, Verdict):
        assert settled.winner == "TIE"
        assert allow_tie
        assert "The two responses are identical." in settled.notes
    judge.calls.clear()
    by_rule = await settle(pair, judge, JudgeConfig())
    assert isinstance(by_rule, Verdict) == allow_tie
    assert judge.calls == []


async def test_a_judge_that_always_takes_the_first_gives_no_winner_to_anyone() -> None:
    """Position cannot decide: whoever is called A, the outcome is inconsistent."""
    judge = ScriptedJudge(lambda call: answer_json("A", criteria=[("accuracy", "A")]))
    pair = make_pair(response_a="x", response_b="y")
    for asked in (pair, pair.mirrored()):
        verdict = await compare(asked, judge)
        assert (verdict.winner, verdict.confidence, verdict.outcome) == ("TIE", 0.5, "inconsistent")
