"""`evenhand compare`: one pair, one verdict."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from evenhand.cli import options as opt
from evenhand.cli import session
from evenhand.errors import EvenhandError

if TYPE_CHECKING:
    from evenhand.contract import Verdict


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
    calibration: opt.Calibrations = None,
    force_calibration: opt.ForceCalibration = False,
    as_json: opt.AsJson = False,
) -> None:
    """Say which of two responses to a prompt is better, judged in both orders.

    Exit codes: 0 a verdict (an inconsistent one too), 2 bad input, 3 the judge failed,
    4 no valid verdict, 130 interrupted.
    """
    from evenhand import api, judges
    from evenhand.cli.calibrations import calibrations_of
    from evenhand.cli.inputs import gather_pair
    from evenhand.cli.show import show_verdict
    from evenhand.comparer import compare as compare_pair
    from evenhand.defaults import make_procedure
    from evenhand.settings import load_settings

    try:
        settings = opt.with_judge_options(
            load_settings(),
            judge=judge,
            timeout_s=timeout,
            max_tokens=max_tokens,
            temperature=temperature,
            samples=samples,
        )
        pair = gather_pair(
            document,
            prompt=prompt,
            a=a,
            b=b,
            context=context,
            reference=reference,
            identifier=identifier,
            criteria=criteria,
            no_tie=no_tie,
            no_swap=no_swap,
            criteria_needed=judges.reads_prompt(settings.judge),
        )
        opened = api.open_judge_for(settings, opt.require_judge(settings), base_url=base_url)
        (calibrating,) = calibrations_of(calibration, [opened], forced=force_calibration)
        procedure = make_procedure(
            settings,
            opened.traits,
            mode=mode,
            locale=locale,
            reconcile=reconcile,
            confidence=confidence,
            template=template,
            protocol=protocol,
            retries=retries,
            repairs=repairs,
            ask_identical=ask_identical,
            calibration=calibrating,
        )

        async def judged() -> Verdict:
            async with session.opened(opened) as asked:
                if as_json or not sys.stderr.isatty():
                    return await compare_pair(pair, asked, procedure)
                with session.waiting(f"asking {asked.name} …"):
                    return await compare_pair(pair, asked, procedure)

        verdict = session.run_async(judged())
    except EvenhandError as error:
        session.fail(error, as_json=as_json)
    if as_json:
        session.write_json(verdict.model_dump_json(indent=2))
    else:
        show_verdict(session.out(), verdict)
