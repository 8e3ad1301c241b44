"""Judges that do not read: baselines that any real judge must beat."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from functools import cache

from evenhand.contract import Pair, Winner
from evenhand.errors import InputError
from evenhand.judges.protocol import ClosedOnExit, Completion, Judge, JudgeCall, Traits
from evenhand.judges.registry import JudgeName, JudgeOptions
from evenhand.messages import Message

_KNOWN = "longer, random, random:SEED"


def open_named(name: JudgeName, options: JudgeOptions) -> Judge:
    which = name.model
    kind, colon, seed = which.partition(":")
    if which == "longer":
        return LongerWins()
    if kind == "random" and not colon:
        return SeededCoin(0)
    if kind == "random":
        return SeededCoin(_read_seed(seed))
    raise InputError.of("judges.baseline_unknown", which=which, known=_KNOWN)


def traits_of(name: JudgeName) -> Traits:
    return _traits()


def _read_seed(seed: str) -> int:
    try:
        return int(seed)
    except ValueError:
        raise InputError.of("judges.baseline_seed", seed=seed) from None


@cache
def _traits() -> Traits:
    caveat = Message("judges.content_blind")
    return Traits(modes=("reasoned",), needs_prompt=False, caveat=caveat, free=True)


class _Baseline(ClosedOnExit):
    @property
    def traits(self) -> Traits:
        return _traits()


class LongerWins(_Baseline):
    name = "baseline:longer"
    identity: Mapping[str, object] = {}

    async def ask(self, call: JudgeCall) -> Completion:
        first, second = shown(call)
        return _answer(call.pair, len(first) - len(second), draw="equally long")


class SeededCoin(_Baseline):
    """A coin flip for each pair.

    It picks one of the two texts, not a position, so both orders agree.
    """

    identity: Mapping[str, object] = {}  # the seed is in the name

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.name = f"baseline:random:{seed}" if seed else "baseline:random"

    async def ask(self, call: JudgeCall) -> Completion:
        first, second = (hashlib.sha256(text.encode()).digest() for text in shown(call))
        if first == second:
            return _answer(call.pair, 0, draw="identical")
        prompt = hashlib.sha256(call.pair.prompt.encode()).digest()
        smaller, larger = sorted((first, second))
        drawn = hashlib.sha256(
            f"{self.seed}:{call.sample}:".encode() + prompt + smaller + larger
        ).digest()
        winner = larger if drawn[0] & 1 else smaller
        return _answer(call.pair, 1 if winner == first else -1, draw="identical")


def shown(call: JudgeCall) -> tuple[str, str]:
    pair = call.pair
    if call.order == "original":
        return pair.response_a, pair.response_b
    return pair.response_b, pair.response_a


def _answer(pair: Pair, lead_of_first: int, *, draw: str) -> Completion:
    """The verdict; `draw` says how the responses compare if nothing separates them."""
    verdict: Winner = "TIE"
    if lead_of_first:
        verdict = "A" if lead_of_first > 0 else "B"
    elif not pair.allow_tie:
        refusal = f"the responses are {draw}, but ties are not allowed"
        return Completion(text="", finish="refusal", refusal=refusal, flags=("baseline",))
    return Completion(text="", verdict_as_shown=verdict, flags=("baseline",))
