"""`evenhand compare`: one pair, one verdict."""

from __future__ import annotations

import sys
from typing import Any

from evenhand.cli import options as opt
from evenhand.cli import session
from evenhand.cli.inputs import build_pair, read_text
from evenhand.errors import EvenhandError


def gather(
    prompt: str | None,
    a: str | None,
    b: str | None,
    context: str | None,
    reference: str | None,
    identifier: str | None,
    *,
    no_tie: bool,
    no_swap: bool,
) -> dict[str, Any]:
    """The pair's fields that the command line gives; None where it is silent."""
    given: dict[str, Any] = {"id": identifier}
    for field, option, value in (
        ("prompt", "--prompt", prompt),
        ("response_a", "--a", a),
        ("response_b", "--b", b),
        ("context", "--context", context),
        ("reference", "--reference", reference),
    ):
        given[field] = None if value is None else read_text(value, option)
    given["allow_tie"] = False if no_tie else None
    given["swap_positions"] = False if no_swap else None
    return given


def compare(
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
    judge: opt.JudgeName = None,
    base_url: opt.BaseUrl = None,
    locale: opt.LocaleName = None,
    mode: opt.ModeName = None,
    samples: opt.Samples = None,
    reconcile: opt.ReconcileBy = None,
    confidence: opt.ConfidenceFrom = None,
    template: opt.TemplateFile = None,
    protocol: opt.AnswerProtocol = None,
    timeout: opt.TimeoutS = None,
    max_tokens: opt.MaxTokens = None,
    temperature: opt.Temperature = None,
    retries: opt.Retries = None,
    repairs: opt.Repairs = None,
    ask_identical: opt.AskIdentical = True,
    as_json: opt.AsJson = False,
) -> None:
    """Say which of two responses to a prompt is better, judged in both orders.

    Exit codes: 0 a verdict (an inconsistent one too), 2 bad input, 3 the judge failed,
    4 no valid verdict, 130 interrupted.
    """
    from evenhand import api, judges
    from evenhand.cli.plan import make_procedure
    from evenhand.cli.show import show_verdict
    from evenhand.comparer import compare as compare_pair
    from evenhand.settings import load_settings

    try:
        settings = opt.with_judge_options(
            load_settings(),
            judge=judge,
            base_url=base_url,
            timeout_s=timeout,
            max_tokens=max_tokens,
            temperature=temperature,
        )
        given = gather(prompt, a, b, context, reference, identifier, no_tie=no_tie, no_swap=no_swap)
        pair = build_pair(document, given, criteria or [])
        opened = judges.open_judge(opt.require_judge(settings), api.judge_options(settings))
        procedure = make_procedure(
            settings,
            opened,
            mode=mode,
            locale=locale,
            samples=samples,
            reconcile=reconcile,
            confidence=confidence,
            template=template,
            protocol=protocol,
            retries=retries,
            repairs=repairs,
            ask_identical=ask_identical,
        )

        async def judged() -> Any:
            async with session.opened(opened) as asked:
                if as_json or not sys.stderr.isatty():
                    return await compare_pair(pair, asked, procedure)
                with session.err().status(f"asking {asked.name} …"):
                    return await compare_pair(pair, asked, procedure)

        verdict = session.run_async(judged())
    except EvenhandError as error:
        session.fail(error, as_json=as_json)
    if as_json:
        session.write_json(verdict.model_dump_json(indent=2))
    else:
        show_verdict(session.out(), verdict)
