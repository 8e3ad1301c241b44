"""The prompt that a judge is shown: of a judge on offer, before anything is asked; and of the
passes of a stored pair, filled anew to the letter, or why that cannot be.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from evenhand.contract import Criterion, Order, Pair, Unread
from evenhand.contract.verdict import ORDERS
from evenhand.errors import EvenhandError
from evenhand.judges.registry import traits_of
from evenhand.judging.preparation import notes_of, places_of
from evenhand.messages import Message
from evenhand.prompts import Prompt
from evenhand.prompts.prompt import NO_NOTES, Notes
from evenhand.prompts.template import Template, built_in_template, make_template
from evenhand.runs.plan import JudgePlan
from evenhand.store import FailedPass, JudgeRecord, RunRecord, Store
from evenhand.store.answers import prepares, written_before
from evenhand.store.records import JudgedItem, StoredPass

# Stands where a client's texts would.
EXAMPLE = Pair(
    prompt="‹the prompt›",
    response_a="‹the first response›",
    response_b="‹the second response›",
    criteria=(Criterion(name="‹a criterion›"),),
)


class SentMessage(NamedTuple):
    """One message of a request. In letter mode `question` is 0 for the whole, else the criterion's
    number. `again` counts the times that the judge was shown an answer that could not be read: then
    the message was added to those before it."""

    order: Order
    role: str
    text: str
    question: int | None = None
    again: int = 0


def prompt_text(pair: Pair, plan: JudgePlan) -> str:
    judge, config = plan.judge, plan.config
    if not judge.traits.needs_prompt:
        return f"{judge.name} does not read a prompt: its answers are recorded or follow a rule.\n"
    mode = config.mode_for(judge)
    filled = Prompt.of(pair, config.template_for(mode), places_of(config.prepare or ()))
    parts: list[str] = []
    for sent in _messages(filled, pair.orders, lead_in=judge.traits.continues):
        which = ""
        if sent.question is not None:
            which = f" · criterion {sent.question}" if sent.question else " · whole"
        parts.append(f"──── {sent.order} pass{which} · {sent.role} ────\n{sent.text}\n")
    parts.append(f"──── {filled.template.version} ────")
    return "\n".join(parts)


def sent_prompt(
    store: Store, run: RunRecord, pair: Pair, judged: JudgedItem
) -> tuple[SentMessage, ...] | Message | None:
    """What the passes of a stored pair were asked with, in every request; a message that says why
    it cannot be shown; None where no prompt was sent."""
    judge = judged.judge
    if judge.prompt_version is None or not judged.passes:
        return None
    if run.texts_forgotten:
        return Message("serve.prompt_forgotten")
    template = _template_of(judge)
    if isinstance(template, Message):
        return template
    notes = _notes_of(store, pair, judge)
    if notes is None:
        return Message("serve.prompt_notes_missing")
    lead_in = False
    if template.mode == "letter":
        try:
            lead_in = traits_of(judge.name).continues
        except EvenhandError:  # a judge of the caller's own
            return Message("serve.prompt_judge_unknown")
    filled = Prompt.of(pair, template, notes)
    made = {each.made.order for each in judged.passes}
    sent = list(_messages(filled, [order for order in ORDERS if order in made], lead_in=lead_in))
    for each in judged.passes:
        sent += _repairs(filled, each)
    if any("\x00" in each.text for each in sent):
        return Message("serve.prompt_unshowable")
    return tuple(sent)


def _template_of(judge: JudgeRecord) -> Template | Message:
    version, locale, mode = judge.prompt_version or "", judge.locale or "en", judge.mode
    name = version.rpartition("@")[0]
    if mode is None:
        return Message("serve.prompt_of_another_version", version=version)
    if judge.template is not None:
        template = make_template(judge.template, name=name, locale=locale, mode=mode)
    elif judge.prompt_is_ours:
        template = built_in_template(locale, mode, prepared=prepares(judge))
    else:
        return Message("serve.prompt_template_not_stored", name=name)
    if template.version != version:
        return Message("serve.prompt_of_another_version", version=version)
    return Message("serve.prompt_by_chance", name=name) if template.varies else template


def _notes_of(store: Store, pair: Pair, judge: JudgeRecord) -> Notes | None:
    """What was written before the judging; None where not all of it is stored."""
    if not prepares(judge):
        return NO_NOTES
    wanted = written_before(pair, judge)
    found = store.answers.find([key for key, _ in wanted])
    if any(key not in found for key, _ in wanted):
        return None
    return notes_of([each.to_contract(found[key], written_here=False) for key, each in wanted])


def _messages(filled: Prompt, orders: Iterable[Order], *, lead_in: bool) -> Iterator[SentMessage]:
    letters = filled.template.mode == "letter"
    questions = filled.questions() if letters else ("",)
    for order in orders:
        for number, question in enumerate(questions):
            for message in filled.messages(order, question=question, lead_in=letters and lead_in):
                which = number if letters else None
                yield SentMessage(order, message.role, message.text, which)


def _repairs(filled: Prompt, stored: StoredPass) -> Iterator[SentMessage]:
    """Each unread answer went back with what was wrong, in a request of its own."""
    made = stored.made
    if isinstance(made, FailedPass):
        return
    unread = list(made.repaired)
    # The last answer was shown to the judge too where that request failed.
    code = getattr(getattr(made.reading, "reason", None), "code", None)
    if isinstance(made.reading, Unread) and code == "unread.repair_failed":
        unread.append(made.reading)
    messages = filled.messages(made.order)
    for again, each in enumerate(unread, start=1):
        for message in filled.repair(messages, each.raw, each.kind)[len(messages) :]:
            yield SentMessage(made.order, message.role, message.text, again=again)
