"""What a pair costs in each room, in CPU microseconds, without any judge.

Run by `make bench`; the last results are in docs/benchmarks.md.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Callable

from evenhand.contract import Pair, read_pair
from evenhand.judges.protocol import Completion, JudgeCall, Traits
from evenhand.judging.ballots import read_ballot
from evenhand.judging.comparison import judge_pair, settle
from evenhand.judging.config import JudgeConfig
from evenhand.judging.decision import Decision, Judged, PassBallot, PassResult, VerdictContext
from evenhand.judging.explanation import explain, notes_on
from evenhand.judging.reconciliation import decide
from evenhand.options import JudgingOptions
from evenhand.prompts import Prompt, Template, built_in_template

WORDS = "the quick brown fox explains why Response A answers what Response B leaves open " * 3
PLAIN = {
    "prompt": "Explain the tides. " * 20,
    "responseA": "The moon pulls the sea. " * 60,
    "responseB": "The sea breathes in and out. " * 60,
    "criteria": ["accuracy", "clarity", "depth"],
}
ANSWER = json.dumps(
    {
        "analysis": {
            side: {"strengths": [WORDS[:120]], "weaknesses": [WORDS[:120]]}
            for side in ("responseA", "responseB")
        },
        "comparison": [
            {
                "criterion": name,
                "aAssessment": WORDS[:150],
                "bAssessment": WORDS[:150],
                "reasoning": WORDS[:150],
                "winner": "A",
            }
            for name in ("accuracy", "clarity", "depth")
        ],
        "result": {
            "reasoning": WORDS[:200],
            "differentiators": [WORDS[:80]],
            "winner": "A",
            "confidence": 0.8,
        },
    }
)


# What a judge says in the other order when it means the same.
MIRRORED = ANSWER.replace('"winner": "A"', '"winner": "B"')


class Echo:
    """Answers at once: in both orders the same, or the same thing meant."""

    name = "echo"
    traits = Traits()

    def __init__(self, *, agreeing: bool) -> None:
        self._second = MIRRORED if agreeing else ANSWER

    async def ask(self, call: JudgeCall) -> Completion:
        return Completion(ANSWER if call.order == "original" else self._second)

    async def close(self) -> None:
        return None


def cpu_us(work: Callable[[], object], *, times: int = 50, rounds: int = 200) -> float:
    """The least of many short rounds: what is left when nothing else disturbs."""
    best = float("inf")
    for _ in range(rounds):
        begun = time.process_time_ns()
        for _ in range(times):
            work()
        best = min(best, (time.process_time_ns() - begun) / times)
    return best / 1e3


Judging = Callable[[Pair, Echo, JudgeConfig], Awaitable[object]]


def pair_cpu_us(
    judging: Judging, pair: Pair, judge: Echo, *, times: int = 20, rounds: int = 200
) -> float:
    async def all_of_them() -> float:
        best = float("inf")
        config = JudgeConfig()
        for _ in range(rounds):
            begun = time.process_time_ns()
            for _ in range(times):
                await judging(pair, judge, config)
            best = min(best, (time.process_time_ns() - begun) / times)
        return best / 1e3

    return asyncio.run(all_of_them())


def main() -> None:
    pair = read_pair(PLAIN)
    template = built_in_template("en", "reasoned")
    first = read_ballot(ANSWER, criteria=pair.criteria)
    second = read_ballot(ANSWER, criteria=pair.criteria, order="swapped")
    agreeing = read_ballot(MIRRORED, criteria=pair.criteria, order="swapped")
    assert isinstance(first, PassBallot)
    assert isinstance(second, PassBallot)
    assert isinstance(agreeing, PassBallot)
    rows = (
        ("pair: read from plain data", cpu_us(lambda: read_pair(PLAIN))),
        ("prompt: both orders", cpu_us(lambda: _both_orders(pair, template))),
        ("read: one answer", cpu_us(lambda: read_ballot(ANSWER, criteria=pair.criteria))),
        ("read: swapped", cpu_us(lambda: _read_swapped(pair))),
        ("decide: inconsistent", cpu_us(lambda: decide(pair, [first, second]))),
        ("decide: agreeing", cpu_us(lambda: decide(pair, [first, agreeing]))),
        ("explain: inconsistent", cpu_us(lambda: _explain(pair, first, second))),
        ("explain: agreeing", cpu_us(lambda: _explain(pair, first, agreeing))),
        ("notes on the pair", cpu_us(lambda: notes_on(pair, "en"))),
        ("but the wire: inconsistent", pair_cpu_us(settle, pair, Echo(agreeing=False))),
        ("but the wire: agreeing", pair_cpu_us(settle, pair, Echo(agreeing=True))),
        ("without its prose", pair_cpu_us(judge_pair, pair, Echo(agreeing=True))),
    )
    print(
        f"CPU microseconds a pair; prompt and responses {_size(pair):,} characters, "
        f"answer {len(ANSWER):,}"
    )
    for name, taken in rows:
        print(f"  {name:<28} {taken:8.1f}")


CONTEXT = VerdictContext("echo", None, "reasoned", "agreement", None, JudgingOptions())


def _read_swapped(pair: Pair) -> None:
    read_ballot(ANSWER, criteria=pair.criteria, order="swapped")


def _explain(pair: Pair, *ballots: PassBallot) -> None:
    decision = decide(pair, ballots)
    assert isinstance(decision, Decision)
    explain(pair, Judged(decision, tuple(PassResult(each) for each in ballots)), CONTEXT)


def _both_orders(pair: Pair, template: Template) -> None:
    prompt = Prompt.of(pair, template)
    prompt.messages("original")
    prompt.messages("swapped")


def _size(pair: Pair) -> int:
    return len(pair.prompt) + len(pair.response_a) + len(pair.response_b)


if __name__ == "__main__":
    main()
