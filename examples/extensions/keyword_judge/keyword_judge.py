"""A judge from another package, `keyword:WORD`: the response that contains the word wins.

evenhand finds the module by the entry point in pyproject.toml and calls its two functions. A judge
that asks a model sends `call.messages`; this one needs no model, so the example runs anywhere.
"""

from __future__ import annotations

from collections.abc import Mapping

from evenhand import (
    Completion,
    InputError,
    Judge,
    JudgeCall,
    JudgeName,
    JudgeOptions,
    JudgeTimeout,
    Traits,
    Usage,
)

# What is known before the judge is opened: how it answers, and that it costs nothing.
TRAITS = Traits(modes=("reasoned",), needs_prompt=False, free=True)


def open_named(name: JudgeName, options: JudgeOptions) -> Judge:
    if not name.model.isalnum():
        raise InputError(f"{name} names no word; give one such as keyword:Canberra")
    return KeywordJudge(name.model, timeout_s=options.timeout_s)


def traits_of(name: JudgeName) -> Traits:
    return TRAITS


class KeywordJudge:
    def __init__(self, word: str, *, timeout_s: float | None = None) -> None:
        self.name = f"keyword:{word}"
        self.traits = TRAITS
        # All that an answer depends on beside the name: stored passes are found by it.
        self.identity: Mapping[str, object] = {"rule": 1}
        self._word = word
        self._timeout_s = timeout_s

    async def ask(self, call: JudgeCall) -> Completion:
        if self._timeout_s is not None and self._timeout_s <= 0.1:
            raise JudgeTimeout("it takes a tenth of a second; raise timeout_s")  # tried again
        shown = [call.pair.response_a, call.pair.response_b]
        if call.order == "swapped":
            shown.reverse()
        first, second = (self._word in text for text in shown)
        winner = "TIE" if first == second else "A" if first else "B"
        return Completion(text=f"Winner: {winner}", usage=Usage(requests=1))

    async def close(self) -> None:
        """Nothing is held open."""
