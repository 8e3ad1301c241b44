"""What a pair costs in each room, in CPU microseconds, without any judge.

Run by `make bench`; the last results are in docs/benchmarks.md.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable

from evenhand.case import Case
from evenhand.comparer import settle
from evenhand.contract import Ballot, Pair, read_pair
from evenhand.judges import Completion, JudgeCall, Traits
from evenhand.parse import read
from evenhand.procedure import Procedure
from evenhand.prompts import Prompt, Template, built_in_template
from evenhand.reconcile import reconcile

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


class Echo:
    """Answers at once, always the same."""

    name = "echo"
    traits = Traits()

    async def ask(self, call: JudgeCall) -> Completion:
        return Completion(ANSWER)

    async def close(self) -> None:
        return None


def cpu_us(work: Callable[[], object], *, times: int = 2_000, rounds: int = 7) -> float:
    """The least of several rounds: what is left when nothing else disturbs."""
    best = float("inf")
    for _ in range(rounds):
        begun = time.process_time()
        for _ in range(times):
            work()
        best = min(best, (time.process_time() - begun) / times)
    return best * 1e6


def settle_cpu_us(pair: Pair, *, times: int = 2_000, rounds: int = 5) -> float:
    async def all_of_them() -> float:
        best = float("inf")
        judge, procedure = Echo(), Procedure()
        for _ in range(rounds):
            begun = time.process_time()
            for _ in range(times):
                await settle(pair, judge, procedure)
            best = min(best, (time.process_time() - begun) / times)
        return best * 1e6

    return asyncio.run(all_of_them())


def main() -> None:
    pair = read_pair(PLAIN)
    template = built_in_template("en", "reasoned")
    case = Case.of(pair, Echo(), Procedure())
    first = read(ANSWER, criteria=pair.criteria)
    second = read(ANSWER, criteria=pair.criteria, order="swapped")
    assert isinstance(first, Ballot)
    assert isinstance(second, Ballot)
    rows = (
        ("pair: read from plain data", cpu_us(lambda: read_pair(PLAIN))),
        ("prompt: both orders", cpu_us(lambda: _both_orders(pair, template))),
        ("parse: one answer", cpu_us(lambda: read(ANSWER, criteria=pair.criteria))),
        ("parse: swapped", cpu_us(lambda: read(ANSWER, criteria=pair.criteria, order="swapped"))),
        ("reconcile: two ballots", cpu_us(lambda: reconcile(pair, [first, second]))),
        ("hash of the responses", cpu_us(lambda: case.first_order)),
        ("all of a pair but the wire", settle_cpu_us(pair)),
    )
    print(
        f"CPU microseconds a pair; prompt and responses {_size(pair):,} characters, "
        f"answer {len(ANSWER):,}"
    )
    for name, taken in rows:
        print(f"  {name:<28} {taken:8.1f}")


def _both_orders(pair: Pair, template: Template) -> None:
    prompt = Prompt.of(pair, template)
    prompt.messages("original")
    prompt.messages("swapped")


def _size(pair: Pair) -> int:
    return len(pair.prompt) + len(pair.response_a) + len(pair.response_b)


if __name__ == "__main__":
    main()
