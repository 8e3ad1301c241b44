"""Judges for tests: they answer in process, by a function of what they are shown.

One says anything at all (`moody`).
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Sequence
from hashlib import sha256
from typing import Any

from hypothesis import strategies as st

from evenhand.contract import Pair
from evenhand.judges.protocol import Completion, JudgeCall, TokenLogprob, Traits
from evenhand.judging.config import JudgeConfig

Answer = Callable[[JudgeCall], str | Completion]


class ScriptedJudge:
    """Satisfies the Judge protocol. Remembers every call."""

    name = "scripted"

    def __init__(self, answer: Answer, traits: Traits | None = None) -> None:
        self._answer = answer
        self.traits = traits or Traits()
        self.calls: list[JudgeCall] = []
        self.closed = False

    async def ask(self, call: JudgeCall) -> Completion:
        self.calls.append(call)
        answer = self._answer(call)
        return answer if isinstance(answer, Completion) else Completion(text=answer)

    async def close(self) -> None:
        self.closed = True


def make_pair(**values: Any) -> Pair:
    """A pair from plain data; what is not given is short and dull."""
    dull = {"prompt": "p", "response_a": "a", "response_b": "b", "criteria": ["accuracy"]}
    return Pair.model_validate(dull | values)


def answer_json(
    winner: Any,
    *,
    confidence: Any = 0.8,
    criteria: Sequence[tuple[str, Any]] = (),
    reasoning: str = "Response A and Response B differ.",
    differentiators: Sequence[str] = (),
    analysis: dict[str, Any] | None = None,
    **result: Any,
) -> str:
    """A judge's native answer, in the labels that it was shown."""
    answer: dict[str, Any] = {
        "analysis": analysis
        or {
            "responseA": {"strengths": ["Response A is short"], "weaknesses": []},
            "responseB": {"strengths": [], "weaknesses": ["Response B rambles"]},
        },
        "comparison": [
            {
                "criterion": name,
                "aAssessment": f"Response A on {name}",
                "bAssessment": f"Response B on {name}",
                "reasoning": f"On {name} Response A is compared with Response B",
                "winner": won,
            }
            for name, won in criteria
        ],
        "result": {
            "reasoning": reasoning,
            "differentiators": list(differentiators),
            "winner": winner,
            "confidence": confidence,
            **result,
        },
    }
    return json.dumps(answer, ensure_ascii=False)


def seeded_by(call: JudgeCall, salt: str = "") -> random.Random:
    """Randomness that depends on nothing but the prompt and the sample: a deterministic judge."""
    prompt = "\n".join(message.text for message in call.messages)
    seed = sha256(f"{salt}|{call.sample}|{prompt}".encode()).digest()
    return random.Random(seed)


def letter_completion(probabilities: dict[str, float]) -> Completion:
    import math

    top = tuple((token, math.log(p)) for token, p in probabilities.items() if p > 0)
    best = max(top, key=lambda entry: entry[1])
    return Completion(text=best[0], logprobs=(TokenLogprob(best[0], best[1], top),))


CRITERIA = ["accuracy", "clarity"]

pairs = st.builds(
    make_pair,
    id=st.just("x"),
    prompt=st.text(max_size=20),
    response_a=st.text(max_size=20),
    response_b=st.text(max_size=20),
    criteria=st.just(CRITERIA),
    allow_tie=st.booleans(),
    swap_positions=st.booleans(),
)
configs = st.sampled_from(
    [
        JudgeConfig(repairs=0),
        JudgeConfig(repairs=0, locale="zh"),
        JudgeConfig(repairs=0, samples=3),
        JudgeConfig(repairs=0, samples=2, reconcile="average"),
        JudgeConfig(repairs=0, mode="letter"),
        JudgeConfig(repairs=0),
    ]
)


def moody(salt: int) -> ScriptedJudge:
    """Says anything at all, but the same to the same question."""

    def answer(call: JudgeCall) -> str | Completion:
        rng = seeded_by(call, str(salt))
        if call.letters:
            weights = [rng.random() + 0.01 for _ in call.letters]
            shares = {c: w / sum(weights) for c, w in zip(call.letters, weights, strict=True)}
            return letter_completion(shares)
        if rng.random() < 0.1:
            return "I cannot say."
        said = [(name, rng.choice(["A", "B", "TIE"])) for name in CRITERIA if rng.random() < 0.9]
        winner = rng.choice(["A", "B", "TIE"])
        return answer_json(winner, confidence=rng.choice([0.5, 0.8, None]), criteria=said)

    return ScriptedJudge(answer, Traits(caveat="it is moody"))
