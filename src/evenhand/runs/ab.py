"""An A/B test from prompts to verdicts: two sides answer and a judge compares, in one resumable
run. Caps hold for both parts, over all its commands.
"""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from evenhand.contract import ErrorBody, Pair
from evenhand.contract.model import Model
from evenhand.data.answers import AnswerRows
from evenhand.data.options import ReadOptions
from evenhand.data.pairs import make_pair
from evenhand.data.prompts import PromptRow, read_prompts
from evenhand.data.records import BadRow, Record, Records
from evenhand.data.source import Source, file_digest, open_source
from evenhand.data.tables import open_tables
from evenhand.errors import CapReached, DataError, InputError, JudgeError, JudgeRejected
from evenhand.judges.command import CommandModel
from evenhand.judges.prices import Price
from evenhand.judges.protocol import Judge
from evenhand.judges.registry import JudgeOptions, open_judge, suggested_model, traits_of
from evenhand.judging.config import JudgeConfig
from evenhand.judging.preparation import GeneratedAnswer
from evenhand.messages import Message, Sentence
from evenhand.options import GeneratingOptions
from evenhand.runs.budget import Budget
from evenhand.runs.engine import error_of, judge_pairs
from evenhand.runs.estimate import NOTHING, ArtefactCounts, Estimate, Range, estimate
from evenhand.runs.generation import (
    AnswerFile,
    Generation,
    GenerationSummary,
    ModelSide,
    Side,
    estimate_answers,
    in_blocks,
)
from evenhand.runs.options import BadRows, RunOptions
from evenhand.runs.plan import AppliedPrice, JudgePlan, apply_price, find_or_create, price_of
from evenhand.runs.progress import Observer
from evenhand.runs.sources import describe_files, refusal_of
from evenhand.runs.stop import Stop, StoppedBy
from evenhand.runs.summary import RunSummary
from evenhand.settings import Settings
from evenhand.store import RunRecord, Store

_ESTIMATED_FROM = 20
# A short and a long answer, in characters, to estimate answers not written yet.
_SHORT_ANSWER, _LONG_ANSWER = 240, 4800


class AbSummary(Model):
    """`run` is None if nothing was judged because answers are missing."""

    name: str
    store: str
    generation: GenerationSummary
    run: RunSummary | None
    stopped_by: StoppedBy | None
    error: ErrorBody | None = None  # where a model, the judge or the store stopped it
    notes: tuple[Sentence, ...] = ()


def open_prompts(
    source: Source, columns: Mapping[str, str], *, bad_rows: BadRows
) -> tuple[tuple[PromptRow, ...], tuple[BadRow, ...]]:
    """The prompts, and the skipped rows."""
    return sort_prompts(read_prompts(source, columns), source.name, bad_rows=bad_rows)


def sort_prompts(
    rows: Iterable[PromptRow | BadRow], name: str, *, bad_rows: BadRows
) -> tuple[tuple[PromptRow, ...], tuple[BadRow, ...]]:
    prompts: list[PromptRow] = []
    skipped: list[BadRow] = []
    for row in rows:
        if isinstance(row, PromptRow):
            prompts.append(row)
            continue
        if bad_rows == "stop":
            raise DataError(refusal_of(row))
        skipped.append(row)
    if not prompts:
        raise DataError.of("runs.nothing_to_judge", names=name)
    return tuple(prompts), tuple(skipped)


def open_answers(given: Source, columns: dict[str, str]) -> AnswerFile:
    """A side whose answers are in a file, kept in memory."""
    rows = AnswerRows(columns)
    by_id: dict[str, str] = {}
    by_prompt: dict[str, str] = {}
    models: dict[str, None] = {}
    for file, table in open_tables(given, wanted=lambda _: True):
        if table.columns is not None:
            rows.check(file.name, table.columns)
        for number, row in table.rows:
            try:
                if isinstance(row, str):
                    raise DataError(row)
                *_, last = rows.read(row)
            except InputError as error:
                raise DataError(BadRow(file.name, number, error.message).message) from None
            if last.model:
                models[last.model] = None
            for known, key in ((by_id, last.id), (by_prompt, last.prompt)):
                if key is not None and known.setdefault(key, last.response) != last.response:
                    raise DataError(
                        BadRow(file.name, number, Message("data.answer_again", key=key)).message
                    )
    if not by_id and not by_prompt:
        raise DataError.of("data.file_without_rows", name=given.name)
    name = next(iter(models)) if len(models) == 1 else given.stem
    return AnswerFile(name, file_digest(given), by_id, by_prompt)


@dataclass(frozen=True, kw_only=True)
class SideChoice(GeneratingOptions):
    """Who answers on one side: a model, a file of answers or a command. None: the default."""

    spec: str | None = None
    timeout_s: float | None = None
    price: Price | None = None

    def __post_init__(self) -> None:
        self.check()

    @property
    def is_empty(self) -> bool:
        return self.spec is None and self.command is None


_MODEL = re.compile(r"[A-Za-z][A-Za-z0-9_-]+:(?!//)\S.*", re.DOTALL)


def names_a_model(spec: str) -> bool:
    """`provider:model`, or a file. Ambiguous text is refused."""
    like_model = spec == "local" or _MODEL.fullmatch(spec) is not None
    if like_model and os.path.exists(spec):
        raise InputError.of("runs.side_ambiguous", spec=spec)
    return like_model


def open_sides(
    a: SideChoice, b: SideChoice, settings: Settings, columns: dict[str, str]
) -> tuple[Side, Side]:
    """A side without a model uses the other's, asked differently."""
    if a.is_empty and b.is_empty:
        raise InputError.of("runs.no_sides")
    if a.is_empty:
        a = replace(a, spec=b.spec, command=b.command)
    if b.is_empty:
        b = replace(b, spec=a.spec, command=a.command)
    return named_apart(*(_open_side(each, settings, columns) for each in (a, b)))


def named_apart(one: Side, two: Side) -> tuple[Side, Side]:
    """With their sides added if they share a name."""
    if one.name == two.name:
        return _lettered(one, "A"), _lettered(two, "B")
    return one, two


def _lettered(side: Side, letter: str) -> Side:
    if isinstance(side, AnswerFile):
        return replace(side, name=f"{side.name} ({letter})")
    return replace(side, label=f"{side.name} ({letter})")


_FILE_ENDING = re.compile(r"\.[A-Za-z]\w{1,7}$")  # and not that of gpt-4.1


def _refuse_bare_model(spec: str) -> None:
    """`gpt-4o` is a model without its provider, not a missing file."""
    suggested = suggested_model(spec)
    if suggested is not None and not os.path.exists(spec) and not _FILE_ENDING.search(spec):
        raise InputError.of("runs.side_no_provider", spec=spec, meant=suggested)


# Options that a command or a file of answers cannot use.
_OF_MODELS = ("base_url", "temperature", "max_tokens", "seed")
_OF_WRITERS = ("template", "system", *_OF_MODELS)


def _refuse_unused(given: SideChoice) -> None:
    unused: tuple[str, ...] = ()
    if given.command is not None:
        unused = _OF_MODELS
    elif given.spec is not None and not names_a_model(given.spec):
        unused = _OF_WRITERS
    for row in given.rows():
        if row.name in unused and getattr(given, row.name) is not None:
            who = given.spec or given.command
            raise InputError.of("runs.side_unused", who=who, name=row.name)


def _open_side(given: SideChoice, settings: Settings, columns: dict[str, str]) -> Side:
    if given.spec is not None and given.command is not None:
        raise InputError.of("runs.side_twice", spec=given.spec, command=given.command)
    _refuse_unused(given)
    model: Judge
    if given.command is not None:
        model = CommandModel(given.command, timeout_s=given.timeout_s)
    elif given.spec is not None and not names_a_model(given.spec):
        _refuse_bare_model(given.spec)
        with open_source(given.spec) as file:
            answers = open_answers(file, columns)
        return answers if given.name is None else replace(answers, name=given.name)
    else:
        # The settings' address and key belong to the server; how a judge is asked does not apply to
        # a model.
        chosen = JudgeConfig(judge=given.spec, base_url=given.base_url)
        where = JudgeConfig.resolve(settings, chosen)
        own = {name: getattr(given, name) for name in ("timeout_s", *_OF_MODELS)}
        options = JudgeOptions(
            **own | {"base_url": where.base_url},
            api_key=where.api_key,
            cache_dir=where.cache_dir,
            transport=where.transport,
            answers=True,
        )
        if not traits_of(given.spec).needs_prompt:
            raise InputError.of("runs.side_no_model", spec=given.spec)
        model = open_judge(given.spec or "", options)
    return ModelSide(
        model,
        system=given.system,
        template=given.template,
        max_tokens=given.max_tokens,
        label=given.name,
        price=given.price,
    )


@dataclass(frozen=True, slots=True)
class GeneratedPairs:
    """The pairs of an A/B test as a run's sources; their fingerprint is known before any answer."""

    generation: Generation
    prompts_file: Source
    reading: ReadOptions

    @property
    def names(self) -> tuple[str, ...]:
        return (self.prompts_file.name,)

    @property
    def title(self) -> str:
        return f"{self.prompts_file.stem}-ab"

    def meaning(self, a: str, b: str) -> Message | None:
        return Message("runs.two_files", a=a, b=b)

    def describe(self) -> dict[str, Any]:
        return {
            **describe_files([self.prompts_file], self.reading),
            "sides": [side.identity() for side in self.generation.sides],
            "models": [side.name for side in self.generation.sides],
            "repeats": self.generation.repeats,
        }

    def records(self) -> Records:
        one, two = self.generation.sides
        for some in in_blocks(self.generation.prompts):
            first = self.generation.answers(one, some)
            second = self.generation.answers(two, some)
            for prompt in some:
                for repeat in range(1, self.generation.repeats + 1):
                    place = (prompt.key, repeat)
                    yield self._record(prompt, repeat, first[place], second[place])

    def has_pair(self) -> bool:
        return any(isinstance(record, Record) for record in self.records())

    def _record(
        self,
        prompt: PromptRow,
        repeat: int,
        one: GeneratedAnswer | None,
        two: GeneratedAnswer | None,
    ) -> Record | BadRow:
        """A missing answer is reported as missing, not as a loss."""
        a, b = self.generation.sides
        for side, name, answer in (("A", a.name, one), ("B", b.name, two)):
            outcome = "missing" if answer is None else answer.outcome
            if outcome != "answered":
                model = name.removesuffix(f" ({side})")  # of sides that share their name
                why = Message(f"runs.answer_{outcome}", side=side, model=model, id=prompt.key)
                return BadRow(prompt.source, prompt.row, why, turn=repeat)
        key = prompt.key if repeat == 1 else f"{prompt.key}:{repeat}"
        fields: dict[str, Any] = {
            "id": key,
            "prompt": prompt.text,
            "response_a": one.text if one else "",
            "response_b": two.text if two else "",
        }
        if prompt.context:
            fields["context"] = prompt.context
        if prompt.reference:
            fields["reference"] = prompt.reference
        pair = make_pair(fields, self.reading.criteria, self.reading)
        return Record(
            key,
            pair,
            prompt.source,
            prompt.row,
            None,
            a.name,
            b.name,
            prompt.tags,
            # Repeats of a prompt are not prompts of their own.
            prompt.cluster or (prompt.key if self.generation.repeats > 1 else None),
        )

    def close(self) -> None:
        self.prompts_file.close()


def estimate_ab(pairs: GeneratedPairs, judges: Sequence[JudgePlan]) -> Estimate:
    """Of both parts: the answers to generate, and all verdicts."""
    return estimate_generation(pairs.generation) + estimate_verdicts(pairs, judges)


def estimate_generation(generation: Generation) -> Estimate:
    whole = NOTHING
    for side in generation.sides:
        if isinstance(side, ModelSide):
            whole += estimate_answers(side, generation.pending(side))
    return whole


def estimate_verdicts(pairs: GeneratedPairs, judges: Sequence[JudgePlan]) -> Estimate:
    """For answers not written yet."""
    generation, options = pairs.generation, pairs.generation.options
    whole = NOTHING
    number = len(generation.prompts) * generation.repeats
    prompts = len({prompt.text for prompt in generation.prompts})
    for plan in judges:
        prices = apply_price(plan, options)
        low, high = (
            estimate(
                number,
                [
                    unanswered_pair(pairs, each, size)
                    for each in generation.prompts[:_ESTIMATED_FROM]
                ],
                plan.judge,
                plan.config,
                prices=prices,
                artefacts=ArtefactCounts(prompts, prompts, 2 * number),
            )
            for size in (_SHORT_ANSWER, _LONG_ANSWER)
        )
        cost = None
        if low.cost_usd is not None and high.cost_usd is not None:
            cost = Range(low.cost_usd.low, high.cost_usd.high)
        whole += Estimate(
            number,
            high.calls,
            Range(low.input_tokens.low, high.input_tokens.high),
            high.output_tokens,
            cost,
        )
    return whole


def unanswered_pair(pairs: GeneratedPairs, prompt: PromptRow, size: int | None = None) -> Pair:
    """With stand-ins of that length for the answers."""
    texts = ("x" * size, "y" * size) if size else ("(answer of A)", "(answer of B)")
    fields = {"prompt": prompt.text, "response_a": texts[0], "response_b": texts[1]}
    return make_pair(fields, pairs.reading.criteria, pairs.reading)


async def run_ab(
    pairs: GeneratedPairs,
    judges: Sequence[JudgePlan],
    options: RunOptions,
    *,
    stop: Stop,
    observer: Observer | None = None,
) -> AbSummary:
    """Generate what is missing, then judge. The summary says what stopped it; the same call
    resumes."""
    generation, observer = pairs.generation, observer or Observer()
    store = generation.store
    prices = check_sides(generation, options)
    for its in prices:
        if its.unknown:
            observer.announce(its.note or "")
    if any(its.unknown for its in (*prices, *(apply_price(plan, options) for plan in judges))):
        options = replace(options, max_calls=options.calls_unpriced)
    run, created = await asyncio.to_thread(find_or_create, store, pairs, judges, options)
    remaining = await asyncio.to_thread(_remaining, store, run, options, stop)
    generation.prepare(run, judges[0].config.retry_policy, stop)
    began = approved = False
    again = run.intake_done and "failed" in options.retry
    generates = again or not run.intake_done
    try:
        if stop.by is None and generates:
            estimated = await asyncio.to_thread(estimate_ab, pairs, judges)
            observer.approve(estimated.capped(remaining.max_cost))
            approved = True
            with store.hold(run.id):
                began = True
                await generation.run(run.id, remaining, report=observer.generating)
                if again:
                    # Failed answers that have arrived since become pairs; the others are skipped
                    # again.
                    await asyncio.to_thread(store.items.reopen, run.id)
    except BaseException:
        if created and not began:
            await asyncio.to_thread(store.deletion.delete, run.name)
        raise
    made = await asyncio.to_thread(generation.summary)
    judged: RunSummary | None = None
    if stop.by is None:
        remaining = await asyncio.to_thread(_remaining, store, run, options, stop)
    # Stored pairs no longer need their answers, which may have been deleted with another run.
    if stop.by is None and generates:
        await stop_without_pairs(pairs, stop)
    if stop.by is None:
        # Missing answers count as skipped rows, whatever the policy on bad rows.
        judging = replace(remaining, name=run.name, bad_rows="skip", fresh=False)
        judged = await judge_pairs(
            pairs, judges, judging, store=store, stop=stop, observer=observer, approved=approved
        )
    else:
        await asyncio.to_thread(store.runs.update, run.id, state="stopped", stopped_by=stop.by)
    return AbSummary(
        name=run.name,
        store=store.address,
        generation=made,
        run=judged,
        stopped_by=stop.by,
        error=error_of(stop),
        notes=(
            *(its.note for its in prices if its.note),
            *notes_on_answers(made),
            *_why_capped(stop),
        ),
    )


async def stop_without_pairs(pairs: GeneratedPairs, stop: Stop) -> None:
    if not await asyncio.to_thread(pairs.has_pair):
        stop.ask("judge", JudgeRejected.of("runs.no_two_answers"))


def check_sides(generation: Generation, options: RunOptions) -> list[AppliedPrice]:
    """Refuse identical sides, and a cap without a price for each."""
    _refuse_same_sides(generation)
    applied = [
        price_of(side.model, side.price, options, option=f"{letter}-price")
        if isinstance(side, ModelSide)
        else None
        for letter, side in zip("ab", generation.sides, strict=True)
    ]
    one, two = (
        replace(side, price=its.price) if isinstance(side, ModelSide) and its else side
        for side, its in zip(generation.sides, applied, strict=True)
    )
    generation.sides = (one, two)
    generation.unpriced = any(its is not None and its.unknown for its in applied)
    return [its for its in applied if its is not None]


def _refuse_same_sides(generation: Generation) -> None:
    one, two = generation.sides
    if one.identity() == two.identity():
        raise InputError.of("runs.sides_the_same", name=one.name)
    if one.name == two.name:
        raise InputError.of("runs.sides_named_alike", name=one.name)


def _remaining(store: Store, run: RunRecord, options: RunOptions, stop: Stop) -> RunOptions:
    """The caps less what all commands of this A/B test have spent."""
    if options.max_calls is None and options.max_cost is None:
        return options
    generated = store.answers.spent(run.id, artefacts=False)
    prepared = store.answers.spent(run.id, artefacts=True)
    judged = store.verdicts.tally(run.id).made
    calls, cost = options.max_calls, options.max_cost
    if calls is not None:
        calls -= generated.requests + max(run.calls, judged.requests + prepared.requests)
        if calls <= 0:
            Budget(stop, max_calls=options.max_calls).stop_at_calls()
    if cost is not None:
        spent = generated.known_cost_usd + prepared.known_cost_usd + (judged.cost_usd or 0.0)
        requests = generated.requests + prepared.requests + judged.requests
        mean = spent / max(1, requests)
        cost -= spent
        if cost <= 0 or cost < 0.99 * mean:  # one more call would be one too many
            Budget(stop, max_cost=options.max_cost).stop_at_cost()
    if stop.by is not None:
        return options
    return replace(options, max_calls=calls, max_cost=cost)


def notes_on_answers(made: GenerationSummary) -> Iterator[str]:
    for side in made.sides:
        if side.without_answer:
            kinds = [
                Message(f"runs.count_{kind}", n=count)
                for kind in ("truncated", "refused", "empty", "failed", "missing")
                if (count := getattr(side, kind))
            ]
            yield Message("runs.without_answer", side=side.side, model=side.model, kinds=kinds)
        if side.commonest_error is not None:
            yield Message(
                "runs.commonest_error",
                side=side.side,
                model=side.model,
                n=side.commonest_errors,
                failed=side.failed,
                error=side.commonest_error,
            )


def too_few_answered(summary: AbSummary, allowed: float) -> ErrorBody | None:
    """If a larger share of rows than allowed has no answer."""
    run = summary.run
    if run is None or run.skipped_rows <= allowed * (run.pairs + run.skipped_rows):
        return None
    counts = {"missing": run.skipped_rows, "n": run.pairs + run.skipped_rows}
    failed = max(summary.generation.sides, key=lambda side: side.commonest_errors)
    if failed.commonest_error is None:
        message = Message("runs.answers_missing", percent=100 * allowed, **counts)
    else:
        message = Message(
            "runs.answers_failed",
            percent=100 * allowed,
            side=failed.side,
            errors=failed.commonest_errors,
            error=failed.commonest_error,
            **counts,
        )
    return ErrorBody(kind=JudgeError.kind, message=message, retryable=failed.failed > 0)


def _why_capped(stop: Stop) -> Iterator[str]:
    if isinstance(stop.error, CapReached):
        yield stop.error.message
