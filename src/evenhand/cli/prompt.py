"""`evenhand prompt`: exactly what would be sent, both passes."""

from __future__ import annotations

import json
import sys

from evenhand.cli import options as opt
from evenhand.cli import session
from evenhand.cli.compare import gather
from evenhand.cli.inputs import build_pair
from evenhand.errors import EvenhandError


def prompt(
    document: opt.Document = None,
    prompt: opt.Prompt = None,
    a: opt.ResponseA = None,
    b: opt.ResponseB = None,
    criteria: opt.Criteria = None,
    context: opt.Context = None,
    reference: opt.Reference = None,
    identifier: opt.Identifier = None,
    no_tie: opt.NoTie = False,
    no_swap: opt.NoSwap = False,
    locale: opt.LocaleName = None,
    mode: opt.ModeName = None,
    template: opt.TemplateFile = None,
    as_json: opt.AsJson = False,
) -> None:
    """Show exactly what a judge would be sent, in both passes. Nothing is sent."""
    from pathlib import Path

    from evenhand.cli.terminal import clean
    from evenhand.contract import ORDERS
    from evenhand.prompts import Prompt, built_in_template, open_template
    from evenhand.settings import load_settings

    try:
        settings = load_settings()
        given = gather(prompt, a, b, context, reference, identifier, no_tie=no_tie, no_swap=no_swap)
        pair = build_pair(document, given, criteria or [])
        chosen_locale = opt.pick(locale, settings.locale, "en", ("en", "zh")) or "en"
        chosen_mode = opt.pick(mode, settings.mode, "reasoned", ("reasoned", "letter"))
        chosen_mode = chosen_mode or "reasoned"
        path = template or (Path(settings.template) if settings.template else None)
        filled = Prompt.of(
            pair,
            open_template(path, locale=chosen_locale, mode=chosen_mode)
            if path
            else built_in_template(chosen_locale, chosen_mode),
        )
    except EvenhandError as error:
        session.fail(error, as_json=as_json)

    questions = filled.questions() if chosen_mode == "letter" else ("",)
    orders = ORDERS if pair.swap_positions else ORDERS[:1]
    requests = [
        {
            "pass": order,
            "messages": [
                {"role": message.role, "content": message.text}
                for message in filled.messages(order, question=question)
            ],
        }
        for order in orders
        for question in questions
    ]
    if as_json:
        shown = {"promptVersion": filled.template.version, "requests": requests}
        session.write_json(json.dumps(shown, ensure_ascii=False, indent=2))
        return
    for request in requests:
        for message in request["messages"]:
            heading = f"──── {request['pass']} pass · {message['role']} ────"
            body = clean(message["content"]) if sys.stdout.isatty() else message["content"]
            session.write_text(f"{heading}\n{body}\n")
    session.write_text(f"──── {filled.template.version} ────")
