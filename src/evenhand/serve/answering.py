"""Runs of prompts: two offered models answer them before a judge compares. What is read here is
read when a run starts, and again whenever it goes on, until every answer is there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from evenhand.data.options import ReadOptions
from evenhand.data.prompts import PromptRow, read_prompts
from evenhand.data.records import BadRow
from evenhand.data.source import Source
from evenhand.errors import Conflict, InputError, TooLarge
from evenhand.messages import Message
from evenhand.options import GeneratingOptions
from evenhand.runs import JudgePlan, RunOptions
from evenhand.runs.ab import (
    GeneratedPairs,
    check_sides,
    named_apart,
    sort_prompts,
    unanswered_pair,
)
from evenhand.runs.generation import Generation, ModelSide, Side
from evenhand.runs.plan import refuse_other
from evenhand.serve.config import ServerLimits
from evenhand.serve.fields import options_of
from evenhand.serve.judges import JudgeCatalog
from evenhand.serve.security.limits import too_long
from evenhand.serve.uploads import Upload
from evenhand.serve.values import SIDE_TEXTS, StartRun
from evenhand.store import RunRecord, Store
from evenhand.store.jobs import JobPrompts

# What a row takes in memory beside its texts, in characters; one that is no prompt has its reason.
_PROMPT_CHARS, _BAD_ROW_CHARS = 200, 1000


def offered_sides(offers: JudgeCatalog, asked: StartRun) -> tuple[Side, Side]:
    """Models that this server offers, under the names that clients know, and nothing else."""

    def side(letter: str) -> ModelSide:
        name = getattr(asked, f"model_{letter}")
        if name not in offers.names:
            known = ", ".join(offers.answering())
            field = f"model{letter.upper()}"
            raise InputError(
                Message("serve.model_not_offered", field=field, name=name[:80], offers=known)
            )
        texts = options_of(asked, GeneratingOptions, side=letter)
        return ModelSide(offers.model(name), label=name, price=offers.offer(name).price, **texts)

    return named_apart(side("a"), side("b"))


def generated_pairs(
    source: Source,
    sides: tuple[Side, Side],
    reading: ReadOptions,
    options: RunOptions,
    *,
    store: Store,
    limits: ServerLimits,
) -> tuple[GeneratedPairs, tuple[BadRow, ...]]:
    """The pairs that answers will make, and the rows that are no prompts."""
    rows = _within(read_prompts(source, reading.columns), sides, limits)
    prompts, skipped = sort_prompts(rows, source.name, bad_rows=options.bad_rows)
    generation = Generation(store, prompts, sides, 1, options)
    check_sides(generation, options)
    pairs = GeneratedPairs(generation, source, reading)
    unanswered_pair(pairs, prompts[0])  # what no answer would mend, such as missing criteria
    return pairs, skipped


def _within(
    rows: Iterable[PromptRow | BadRow], sides: tuple[Side, Side], limits: ServerLimits
) -> Iterator[PromptRow | BadRow]:
    """Prompts are in memory until the last is answered, so they are held to the limit of pairs
    that are."""
    characters = 0
    for row in rows:
        kept = _refused(row, sides, limits) if isinstance(row, PromptRow) else row
        if isinstance(kept, PromptRow):
            characters += _PROMPT_CHARS + sum(len(text) for _, text in _texts(kept))
        else:
            characters += _BAD_ROW_CHARS
        if characters > limits.body_bytes:
            raise TooLarge(Message("serve.prompts_too_long", limit=limits.body_bytes))
        yield kept


def _refused(row: PromptRow, sides: tuple[Side, Side], limits: ServerLimits) -> PromptRow | BadRow:
    texts = [(name, len(text)) for name, text in _texts(row)]
    texts += [
        (f"template{letter}", side.asked_chars(row.turns[-1][1]))  # with the prompt in it
        for letter, side in zip("AB", sides, strict=True)
        if isinstance(side, ModelSide)
    ]
    for name, characters in texts:
        if characters > limits.field_chars:
            return BadRow(row.source, row.row, too_long(name, characters, limits.field_chars))
    return row


def _texts(row: PromptRow) -> Iterator[tuple[str, str]]:
    named = (("prompt", row.text), ("context", row.context), ("reference", row.reference))
    return ((name, text) for name, text in (*named, ("id", row.key)) if text)


def kept_prompts(upload: Upload, asked: StartRun, limits: ServerLimits) -> JobPrompts:
    """What the run needs to go on without its client. Texts are with the prompts: they are
    forgotten with them."""
    sides = asked.model_dump(include=set(SIDE_TEXTS), by_alias=False, exclude_none=True)
    return JobPrompts(upload.name, upload.content(limit_bytes=limits.body_bytes), sides)


def stored_pairs(
    run: RunRecord,
    asked: StartRun,
    judges: Sequence[JudgePlan],
    reading: ReadOptions,
    options: RunOptions,
    *,
    store: Store,
    offers: JudgeCatalog,
    limits: ServerLimits,
) -> tuple[GeneratedPairs, Upload]:
    """Of a run that goes on. Models that are not the run's own are refused; close the upload."""
    prompts = store.jobs.prompts(run.id)
    if prompts is None:
        raise Conflict(Message("serve.prompts_gone", name=run.name))
    upload = Upload(prompts.name)
    try:
        upload.write(prompts.body)
        sides = offered_sides(offers, asked.model_copy(update=dict(prompts.sides)))
        source = upload.source(limits.of_data)
        pairs, _ = generated_pairs(source, sides, reading, options, store=store, limits=limits)
        refuse_other(run, judges, options, data=pairs.describe())
    except BaseException:
        upload.close()
        raise
    return pairs, upload
