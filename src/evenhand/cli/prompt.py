"""`evenhand prompt`: exactly what would be sent, both passes."""

from __future__ import annotations

import contextlib
import sys
from typing import TYPE_CHECKING, Any

from evenhand.cli import options as opt
from evenhand.cli import session
from evenhand.cli.options import PairTexts, PromptChoices, grouped
from evenhand.errors import InputError, JudgeAuthentication
from evenhand.messages import Message

if TYPE_CHECKING:
    from evenhand.judging.config import JudgeConfig


@grouped
def prompt(
    *,
    texts: PairTexts,
    judge: opt.JudgeName = None,
    choices: PromptChoices,
    as_json: opt.AsJson = False,
) -> None:
    """Show exactly what the judge is sent in both passes. Nothing is sent.

    A judge is optional; with one, its mode and settings apply as in compare.
    """
    from evenhand.cli.inputs import gather_pair
    from evenhand.judges.protocol import Traits
    from evenhand.judges.registry import traits_of
    from evenhand.judging.preparation import places_of, wanted_before
    from evenhand.present.terminal import clean
    from evenhand.prompts import Prompt, answer_schema

    pair = gather_pair(texts)
    config = choices.config(judge)
    if config.judge is not None:
        _refuse_what_cannot_be_opened(config)
    traits = traits_of(config.judge)
    if not traits.needs_prompt:  # it is shown all the same
        traits = Traits()
    chosen_mode = config.mode or traits.modes[0]
    if chosen_mode not in traits.modes:
        raise InputError(
            Message(
                "command.mode_unavailable",
                judge=config.judge,
                mode=chosen_mode,
                other=traits.modes[0],
            )
        )
    kinds = config.prepare or ()
    filled = Prompt.of(pair, config.template_for(chosen_mode), places_of(kinds))

    letters = chosen_mode == "letter"
    questions = filled.questions() if letters else ("",)
    requests: list[dict[str, Any]] = [
        {
            "artefact": request.kind,
            "response": request.side,
            "messages": [
                {"role": message.role, "content": message.text}
                for message in request.call().messages
            ],
        }
        for request in wanted_before(pair, config, kinds)
    ]
    written = len(requests)
    requests += [
        {
            "pass": order,
            "messages": [
                {"role": message.role, "content": message.text}
                for message in filled.messages(
                    order, question=question, lead_in=letters and traits.continues
                )
            ],
        }
        for order in pair.orders
        for question in questions
    ]
    if as_json:
        shown: dict[str, Any] = {"promptVersion": filled.template.version, "requests": requests}
        if not letters and config.template is None:
            shown["answerSchema"] = answer_schema(pair)
        session.write_json(shown)
        return
    # The whole is asked about first, then each criterion by its number.
    asked = ["whole", *(f"criterion {number}" for number in range(1, len(questions)))]
    for index, request in enumerate(requests):
        if index < written:
            which = f"{request['artefact']} {request['response'] or ''}".strip()
        else:
            which = f"{request['pass']} pass"
            which += f" · {asked[(index - written) % len(questions)]}" if letters else ""
        for message in request["messages"]:
            heading = f"──── {which} · {message['role']} ────"
            body = clean(message["content"]) if sys.stdout.isatty() else message["content"]
            session.write_text(f"{heading}\n{body}\n")
    session.write_text(f"──── {filled.template.version} ────")


def _refuse_what_cannot_be_opened(config: JudgeConfig) -> None:
    # A prompt can be looked at without a key.
    with contextlib.suppress(JudgeAuthentication):
        config.open_judge()
