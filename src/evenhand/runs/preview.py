"""What a run would ask and take, without asking: for `--dry-run`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from evenhand.contract import Pair
from evenhand.contract.model import Model
from evenhand.data.records import BadRow, Side, Unpaired
from evenhand.errors import DataError
from evenhand.judges.prepared import writer_of
from evenhand.judging.preparation import places_of, wanted_before
from evenhand.messages import Sentence
from evenhand.prompts import Prompt
from evenhand.prompts.template import ChatMessage
from evenhand.runs.ab import (
    GeneratedPairs,
    check_sides,
    estimate_generation,
    estimate_verdicts,
    unanswered_pair,
)
from evenhand.runs.estimate import NOTHING, ArtefactCounter, Estimate, Range, estimate
from evenhand.runs.generation import ModelSide
from evenhand.runs.options import RunOptions
from evenhand.runs.plan import JudgePlan, apply_price
from evenhand.runs.sources import Sources

_ESTIMATED_FROM = 50
# Typical seconds per answer and calls in flight of hosted models.
_CALL_S = Range(1.0, 15.0)
_IN_FLIGHT = 32


class PreviewMessage(Model):
    role: str
    content: str


class PreviewRequest(Model):
    """One request as it would be sent."""

    to: str
    order: str | None  # of a judge
    artefact: str | None = None  # what is to be written before the judging
    messages: tuple[PreviewMessage, ...]


class Preview(Model):
    """Ranges are low and high; `cost_usd` is None if a price is unknown. `seconds` assumes typical
    hosted models."""

    pairs: int
    skipped_rows: int
    only_a: int = 0  # of these: answers of A, of B, that the other has none to
    only_b: int = 0
    first_skipped: Sentence | None
    calls: int
    answers: int = 0  # of these: of the two models, where they are still to answer
    input_tokens: tuple[float, float]
    output_tokens: tuple[float, float]
    cost_usd: tuple[float, float] | None
    seconds: tuple[float, float]
    requests: tuple[PreviewRequest, ...]


def preview_run(sources: Sources, judges: Sequence[JudgePlan], options: RunOptions) -> Preview:
    """Reads all rows; ignores stored passes."""
    sample: list[Pair] = []
    pairs, bad = 0, list[BadRow]()
    skipped, alone = 0, Counter[Side]()
    counter = (
        ArtefactCounter()
        if any(plan.config.prepares(plan.judge.traits) for plan in judges)
        else None
    )
    for record in sources.records():
        if isinstance(record, BadRow):
            skipped += 1
            bad = bad or [record]
            if isinstance(record, Unpaired):
                alone.update(side for _, _, side in record.lost)
        else:
            pairs += 1
            if counter is not None:
                counter.add(record.pair)
            if len(sample) < _ESTIMATED_FROM:
                sample.append(record.pair)
    if not sample:
        why = bad[0].message if bad else ", ".join(sources.names)
        raise DataError.of("runs.nothing_to_preview", why=why)
    whole = NOTHING
    for plan in judges:
        whole += estimate(
            pairs,
            sample,
            plan.judge,
            plan.config,
            prices=apply_price(plan, options),
            artefacts=None if counter is None else counter.counts,
        )
    asked = [request for plan in judges for request in _judge_requests(plan, sample[0])]
    first = bad[0].message if bad else None
    preview = _preview(whole, pairs, skipped, first, asked, options)
    return preview.model_copy(update={"only_a": alone["A"], "only_b": alone["B"]})


def preview_ab(pairs: GeneratedPairs, judges: Sequence[JudgePlan]) -> Preview:
    generation = pairs.generation
    check_sides(generation, generation.options)
    asked = []
    for side in generation.sides:
        if isinstance(side, ModelSide):
            messages = side.messages(generation.prompts[0])
            asked.append(_request(side.name, messages))
    unanswered = unanswered_pair(pairs, generation.prompts[0])
    asked += [request for plan in judges for request in _judge_requests(plan, unanswered)]
    number = len(generation.prompts) * generation.repeats
    answers = estimate_generation(generation)
    whole = answers + estimate_verdicts(pairs, judges)
    preview = _preview(whole, number, 0, None, asked, generation.options)
    return preview.model_copy(update={"answers": answers.calls})


def _judge_requests(plan: JudgePlan, pair: Pair) -> list[PreviewRequest]:
    if not plan.judge.traits.needs_prompt:
        return []
    writer = writer_of(plan.judge).name
    kinds = plan.config.prepares(plan.judge.traits)
    asked = [
        _request(writer, each.call().messages, artefact=each.kind)
        for each in wanted_before(pair, plan.config, kinds)
    ]
    mode = plan.config.mode_for(plan.judge)
    filled = Prompt.of(pair, plan.config.template_for(mode), places_of(kinds))
    question = filled.questions()[0] if mode == "letter" else ""
    messages = filled.messages(pair.orders[0], question=question)
    return [*asked, _request(plan.judge.name, messages, order=pair.orders[0])]


def _request(
    to: str,
    messages: Sequence[ChatMessage],
    *,
    order: str | None = None,
    artefact: str | None = None,
) -> PreviewRequest:
    sent = tuple(PreviewMessage(role=each.role, content=each.text) for each in messages)
    return PreviewRequest(to=to, order=order, artefact=artefact, messages=sent)


def _preview(
    whole: Estimate,
    pairs: int,
    skipped: int,
    first_skipped: str | None,
    asked: Sequence[PreviewRequest],
    options: RunOptions,
) -> Preview:
    at_once = options.concurrency or _IN_FLIGHT
    rounds = whole.calls / at_once
    floor = 60 * whole.calls / options.rpm if options.rpm else 0.0
    cost = whole.capped(options.max_cost).cost_usd
    return Preview(
        pairs=pairs,
        skipped_rows=skipped,
        first_skipped=first_skipped,
        calls=whole.calls,
        input_tokens=(round(whole.input_tokens.low), round(whole.input_tokens.high)),
        output_tokens=(round(whole.output_tokens.low), round(whole.output_tokens.high)),
        cost_usd=None if cost is None else (cost.low, cost.high),
        seconds=(max(floor, rounds * _CALL_S.low), max(floor, rounds * _CALL_S.high)),
        requests=tuple(asked),
    )
