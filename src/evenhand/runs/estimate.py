"""What a run will take: tokens, calls and dollars, as ranges."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean

from evenhand.contract import ArtefactKind, Mode, Pair, Usage
from evenhand.judges.prepared import writer_of
from evenhand.judges.prices import Price, cost_usd
from evenhand.judges.protocol import Judge
from evenhand.judging.config import JudgeConfig
from evenhand.judging.preparation import ArtefactRequest, wanted_before
from evenhand.prompts import Prompt
from evenhand.runs.plan import AppliedPrice, model_of

# Measured on current tokenizers: about four characters a token in English, just over one and a half
# in Chinese.
_ASCII_CHARACTERS = 4.0
_OTHER_CHARACTERS = 1.6


Wanted = Callable[[Pair], list[ArtefactRequest]]


def tokens_of(text: str) -> float:
    return len(text) / (_ASCII_CHARACTERS if text.isascii() else _OTHER_CHARACTERS)


# A terse and a talkative judge, by answer format.
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
    """`cost_usd` is None if a price is unknown."""

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
        """A share of the calls and what they take."""
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
        """Limited by a cap on cost."""
        if most is None or self.cost_usd is None:
            return self
        cost = Range(min(most, self.cost_usd.low), min(most, self.cost_usd.high))
        return replace(self, cost_usd=cost)


NOTHING = Estimate(0, 0, Range(0, 0), Range(0, 0), Range(0, 0))


def estimate(
    pending: int,
    sample: Sequence[Pair],
    judge: Judge,
    config: JudgeConfig,
    *,
    prices: AppliedPrice,
    artefacts: ArtefactCounts | None = None,
) -> Estimate:
    """From a sample of the pending pairs. Ignores what is stored already, so it is an upper
    estimate, without repairs and retries."""
    if not sample or not pending:
        return replace(NOTHING, pairs=pending)
    passes = _estimate_passes(pending, sample, judge, config, price=prices.price)
    counts = (artefacts or ArtefactCounts.at_most(pending, sample)).of_pairs(pending)
    written = _estimate_artefacts(counts, sample, judge, config, price=prices.writing)
    return replace(passes + written, pairs=pending)


def _estimate_passes(
    pending: int, sample: Sequence[Pair], judge: Judge, config: JudgeConfig, *, price: Price | None
) -> Estimate:
    mode, model = config.mode_for(judge), model_of(judge)
    asked = [pair for pair in sample if not config.ties_by_rule(pair, judge.traits)]
    if not asked:
        return replace(NOTHING, pairs=pending)
    passes = sum(len(pair.orders) for pair in asked) * config.samples_per_order
    questions = 1.0
    if mode == "letter":
        questions += sum(len(pair.criteria) for pair in sample) / len(sample)
    calls = round(pending * passes / len(sample) * questions)
    if not judge.traits.needs_prompt:
        nothing = Range(0, 0)
        return Estimate(pending, calls, nothing, nothing, nothing if judge.traits.free else None)
    template = config.template_for(mode)
    rendered = [_input_tokens(Prompt.of(pair, template), mode) for pair in asked]
    each = token_range(fmean(rendered))
    for kind in config.prepares(judge.traits):  # both orders are shown what was written
        each += ARTEFACT_TOKENS[kind].times(2 if kind == "analysis" else 1)
    criteria = sum(len(pair.criteria) for pair in sample) / len(sample)
    outputs = output_tokens(mode, criteria)
    # Per call, since prices depend on a request's size.
    cost = call_cost(each, outputs, model, judge, price)
    cost = None if cost is None else cost.times(calls)
    return Estimate(pending, calls, each.times(calls), outputs.times(calls), cost)


# Prepared texts: two to five questions, a brief answer, up to 200 words.
ARTEFACT_TOKENS: Mapping[ArtefactKind, Range] = {
    "metrics": Range(40, 250),
    "reference": Range(20, 1000),
    "analysis": Range(80, 350),
}


@dataclass(frozen=True, slots=True)
class ArtefactCounts:
    """The number of distinct texts to prepare."""

    prompts: int
    without_reference: int  # prompts of pairs that bring no reference of their own
    responses: int

    @classmethod
    def at_most(cls, pairs: int, sample: Sequence[Pair]) -> ArtefactCounts:
        """If no two pairs share a text."""
        without = sum(pair.reference is None for pair in sample)
        return cls(pairs, -(-pairs * without // len(sample)), 2 * pairs)

    def of_pairs(self, pairs: int) -> ArtefactCounts:
        """The maximum for this many pairs."""
        prompts, without, responses = self.prompts, self.without_reference, self.responses
        return ArtefactCounts(min(prompts, pairs), min(without, pairs), min(responses, 2 * pairs))

    def of(self, kind: ArtefactKind) -> int:
        if kind == "metrics":
            return self.prompts
        return self.without_reference if kind == "reference" else self.responses


class ArtefactCounter:
    """Counts distinct texts over rows, by digest."""

    def __init__(self) -> None:
        self._prompts: set[int] = set()
        self._without: set[int] = set()
        self._responses: set[int] = set()

    def add(self, pair: Pair) -> None:
        prompt = (pair.prompt, pair.context)
        self._prompts.add(hash(prompt))
        if pair.reference is None:
            self._without.add(hash(prompt))
        of_response = (*prompt, pair.reference, pair.criteria)
        self._responses |= {
            hash((of_response, each)) for each in (pair.response_a, pair.response_b)
        }

    @property
    def counts(self) -> ArtefactCounts:
        return ArtefactCounts(len(self._prompts), len(self._without), len(self._responses))


def _estimate_artefacts(
    counts: ArtefactCounts,
    sample: Sequence[Pair],
    judge: Judge,
    config: JudgeConfig,
    *,
    price: Price | None,
) -> Estimate:
    def taken(kind: ArtefactKind, calls: int, wanted: Wanted) -> Estimate:
        requests = [each for pair in sample for each in wanted(pair) if each.kind == kind]
        if not requests or not calls:
            return NOTHING
        texts = [sum(tokens_of(m.text) for m in each.call().messages) for each in requests]
        inputs, outputs, writer = token_range(fmean(texts)), ARTEFACT_TOKENS[kind], writer_of(judge)
        if not writer.traits.needs_prompt:
            return replace(NOTHING, calls=calls)
        cost = call_cost(inputs, outputs, model_of(writer), writer, price)
        cost = None if cost is None else cost.times(calls)
        return Estimate(0, calls, inputs.times(calls), outputs.times(calls), cost)

    whole = NOTHING
    kinds = config.prepares(judge.traits)
    for kind in kinds:
        whole += taken(kind, counts.of(kind), lambda pair: wanted_before(pair, config, kinds))
    return whole


def output_tokens(mode: Mode, criteria: float) -> Range:
    """Per call, by number of criteria."""
    if mode == "letter":
        return Range(1, 1)
    return Range(
        _REASONED_LOW + criteria * _CRITERION_LOW, _REASONED_HIGH + criteria * _CRITERION_HIGH
    )


def _input_tokens(prompt: Prompt, mode: Mode) -> float:
    question = prompt.questions()[0] if mode == "letter" else ""
    return sum(tokens_of(m.text) for m in prompt.messages("original", question=question))


def token_range(each: float) -> Range:
    return Range(each * _TOKENIZERS_LOW, each * TOKENIZERS_HIGH)


def call_cost(
    inputs: Range, outputs: Range, model: str | None, judge: Judge, price: Price | None
) -> Range | None:
    ends = []
    for taken_in, put_out in ((inputs.low, outputs.low), (inputs.high, outputs.high)):
        usage = Usage(input_tokens=round(taken_in), output_tokens=round(put_out))
        ends.append(cost_usd(usage, model=model, traits=judge.traits, price=price))
    return None if ends[0] is None or ends[1] is None else Range(ends[0], ends[1])
