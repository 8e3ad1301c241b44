"""What a run will take before it begins: tokens, calls and dollars, as ranges."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from evenhand.contract import Mode, Pair, Usage
from evenhand.judges import Judge
from evenhand.judges.prices import Price, cost_usd
from evenhand.judging.config import JudgeConfig
from evenhand.prompts import Prompt

# Measured orders of magnitude for current tokenizers: English runs at about four characters a
# token, Chinese at a little more than one and a half.
_ASCII_CHARACTERS = 4.0
_OTHER_CHARACTERS = 1.6


def tokens_of(text: str) -> float:
    return len(text) / (_ASCII_CHARACTERS if text.isascii() else _OTHER_CHARACTERS)


# Between a terse judge and a talkative one, by what the answer format asks for.
_REASONED_LOW, _REASONED_HIGH = 120, 500
_CRITERION_LOW, _CRITERION_HIGH = 60, 250
# Tokens a character differ by tokenizer.
_TOKENIZERS_LOW, TOKENIZERS_HIGH = 0.8, 1.25


@dataclass(frozen=True, slots=True)
class Range:
    low: float
    high: float

    def __add__(self, other: Range) -> Range:
        return Range(self.low + other.low, self.high + other.high)

    def times(self, factor: float) -> Range:
        return Range(self.low * factor, self.high * factor)


@dataclass(frozen=True, slots=True)
class Estimate:
    """`cost_usd` is None where a price is not known."""

    pairs: int
    calls: int
    input_tokens: Range
    output_tokens: Range
    cost_usd: Range | None
    batch: bool = False  # the cost is at batch rates

    def __add__(self, other: Estimate) -> Estimate:
        cost = None
        if self.cost_usd is not None and other.cost_usd is not None:
            cost = self.cost_usd + other.cost_usd
        return Estimate(
            max(self.pairs, other.pairs),
            self.calls + other.calls,
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            cost,
            self.batch or other.batch,
        )

    def share(self, share: float) -> Estimate:
        """Of the calls, and what they take."""
        return replace(
            self,
            calls=round(self.calls * share),
            input_tokens=self.input_tokens.times(share),
            output_tokens=self.output_tokens.times(share),
            cost_usd=None if self.cost_usd is None else self.cost_usd.times(share),
        )

    def at_batch_rates(self, rate: float) -> Estimate:
        cost = None if self.cost_usd is None else self.cost_usd.times(rate)
        return replace(self, cost_usd=cost, batch=True)

    def capped(self, most: float | None) -> Estimate:
        """With a cap on the cost the run takes no more than that, though its pairs would."""
        if most is None or self.cost_usd is None:
            return self
        cost = Range(min(most, self.cost_usd.low), min(most, self.cost_usd.high))
        return replace(self, cost_usd=cost)


def estimate(
    pending: int,
    sample: Sequence[Pair],
    judge: Judge,
    config: JudgeConfig,
    *,
    model: str | None,
    price: Price | None,
) -> Estimate:
    """From a sample of the pending pairs. Passes that are in the store already are not known of
    here, so it is what the run takes at most, repairs and retries aside."""
    mode = config.mode_for(judge)
    if not sample or not pending:
        return Estimate(pending, 0, Range(0, 0), Range(0, 0), Range(0, 0))
    passes = sum(len(pair.orders) for pair in sample) * config.samples_per_order
    questions = 1.0
    if mode == "letter":
        questions += sum(len(pair.criteria) for pair in sample) / len(sample)
    calls = round(pending * passes / len(sample) * questions)
    if not judge.traits.needs_prompt:
        nothing = Range(0, 0)
        return Estimate(pending, calls, nothing, nothing, nothing if judge.traits.free else None)
    template = config.template_for(mode)
    rendered = [_input_tokens(Prompt.of(pair, template), mode) for pair in sample]
    each = sum(rendered) / len(rendered)
    inputs = Range(each * _TOKENIZERS_LOW, each * TOKENIZERS_HIGH).times(calls)
    criteria = sum(len(pair.criteria) for pair in sample) / len(sample)
    outputs = output_tokens(mode, criteria)
    # By the single call, since prices step with a request's size.
    low = _cost(each * _TOKENIZERS_LOW, outputs.low, model, judge, price)
    high = _cost(each * TOKENIZERS_HIGH, outputs.high, model, judge, price)
    cost = None if low is None or high is None else Range(low, high).times(calls)
    return Estimate(pending, calls, inputs, outputs.times(calls), cost)


def output_tokens(mode: Mode, criteria: float) -> Range:
    """Of one call, by how many criteria it is asked about."""
    if mode == "letter":
        return Range(1, 1)
    return Range(
        _REASONED_LOW + criteria * _CRITERION_LOW, _REASONED_HIGH + criteria * _CRITERION_HIGH
    )


def _input_tokens(prompt: Prompt, mode: Mode) -> float:
    question = prompt.questions()[0] if mode == "letter" else ""
    return sum(tokens_of(m.text) for m in prompt.messages("original", question=question))


def _cost(
    input_tokens: float, output_tokens: float, model: str | None, judge: Judge, price: Price | None
) -> float | None:
    usage = Usage(input_tokens=round(input_tokens), output_tokens=round(output_tokens))
    return cost_usd(usage, model=model, traits=judge.traits, price=price)
