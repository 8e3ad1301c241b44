"""`evenhand probe`: a judge against pairs whose verdict is known without labels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

import typer

from evenhand.cli import options as opt
from evenhand.cli import probe_options as popt
from evenhand.cli import run_options as ropt
from evenhand.cli import session
from evenhand.errors import EvenhandError, Status

if TYPE_CHECKING:
    from evenhand.contract import Locale
    from evenhand.judges import Judge
    from evenhand.procedure import Procedure
    from evenhand.runs import RunOptions
    from evenhand.runs.options import Again
    from evenhand.trust.probes.cases import ProbeCase
    from evenhand.trust.probes.report import ProbeReport, Ruling

_STATUS: dict[Ruling, int] = {
    "pass": Status.OK,
    "fail": Status.GATE_FAILED,
    "undecided": Status.UNDECIDED,
}


def probe(
    judge: opt.JudgeName = None,
    base_url: opt.BaseUrl = None,
    probes: popt.ProbeNames = None,
    locale: popt.ProbeLanguages = "both",
    criteria: opt.Criteria = None,
    min_score: popt.MinScore = None,
    listed: popt.ListProbes = False,
    name: popt.ProbeRunName = None,
    store: ropt.StoreAddress = None,
    concurrency: ropt.Concurrency = None,
    rpm: ropt.Rpm = None,
    tpm: ropt.Tpm = None,
    max_calls: ropt.MaxCalls = None,
    max_cost: ropt.MaxCost = None,
    price: ropt.PriceOption = None,
    confirm_above: ropt.ConfirmAbove = 5.0,
    yes: ropt.Yes = False,
    fresh: ropt.Fresh = False,
    retry: ropt.Again = None,
    keep_going_unread: ropt.KeepGoingUnread = False,
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
    as_json: opt.AsJson = False,
) -> None:
    """Try a judge on pairs whose verdict is known: flattery, injections, padding, nonsense.

    Exit codes: 0 every pair was asked (and the score is above --min-score), 1 below --min-score,
    2 bad input or the store failed, 3 the judge failed, 5 a cap stopped it, 6 whether it is above
    --min-score cannot be told, 130 interrupted.
    """
    from evenhand import api
    from evenhand.cli.inputs import read_criterion
    from evenhand.cli.run_inputs import read_price
    from evenhand.contract import read_criteria
    from evenhand.defaults import make_procedure
    from evenhand.runs import RunOptions
    from evenhand.settings import load_settings
    from evenhand.trust.probes.cases import probe_cases
    from evenhand.trust.probes.ruling import check_threshold

    languages: tuple[Locale, ...] = ("en", "zh") if locale == "both" else (locale,)
    try:
        given = read_criteria([read_criterion(each) for each in criteria]) if criteria else ()
        cases = probe_cases(probes or (), languages, criteria=given)
        if listed:
            _list(cases, as_json=as_json)
            return
        check_threshold(min_score)
        settings = opt.with_judge_options(
            load_settings(),
            judge=judge,
            timeout_s=timeout,
            max_tokens=max_tokens,
            temperature=temperature,
            samples=samples,
        )
        options = RunOptions(
            name=name,
            store=store or settings.store,
            concurrency=concurrency,
            rpm=rpm,
            tpm=tpm,
            max_calls=max_calls,
            max_cost=max_cost,
            price=read_price(price),
            fresh=fresh,
            retry=tuple(cast("list[Again]", retry or [])),
            keep_going_unread=keep_going_unread,
        )
        opened = api.open_judge_for(settings, opt.require_judge(settings), base_url=base_url)
        procedures = {
            language: make_procedure(
                settings,
                opened.traits,
                mode=mode,
                locale=language,
                reconcile=reconcile,
                confidence=confidence,
                template=template,
                protocol=protocol,
                retries=retries,
                repairs=repairs,
            )
            for language in languages
        }
        report = _probed(
            opened,
            cases,
            procedures,
            options,
            as_json=as_json,
            confirm_above=None if yes else confirm_above,
            min_score=min_score,
        )
    except EvenhandError as error:
        session.fail(error, as_json=as_json, of_pair=False)
    _end(report, as_json=as_json)


def _list(cases: Sequence[ProbeCase], *, as_json: bool) -> None:
    from evenhand.trust.probes.listing import list_probes

    lines = list_probes(cases)
    if as_json:
        session.write_json(lines.model_dump_json(indent=2))
        return
    from evenhand.cli.show_probes import show_listing

    show_listing(session.out(), lines)


def _probed(
    judge: Judge,
    cases: Sequence[ProbeCase],
    procedures: dict[Locale, Procedure],
    options: RunOptions,
    *,
    as_json: bool,
    confirm_above: float | None,
    min_score: float | None,
) -> ProbeReport:
    from evenhand.cli.interrupt import stop_when_told
    from evenhand.cli.run_view import watching
    from evenhand.runs import Stop
    from evenhand.store import open_store
    from evenhand.trust.probes.asking import probe_judge

    async def work() -> ProbeReport:
        stop = Stop()
        try:
            with (
                open_store(options.store) as store,
                watching([judge], as_json=as_json, confirm_above=confirm_above) as view,
                stop_when_told(stop, view.say, view.leave),
            ):
                return await probe_judge(
                    judge,
                    cases,
                    procedures,
                    options,
                    store=store,
                    stop=stop,
                    observer=view,
                    min_score=min_score,
                )
        finally:
            await judge.close()

    return session.run_async(work())


def _end(report: ProbeReport, *, as_json: bool) -> None:
    if as_json:
        session.write_json(report.model_dump_json(indent=2))
    else:
        from evenhand.cli.show_probes import show_probes

        show_probes(session.out(), session.err(), report)
    if report.stopped_by == "interrupt":
        raise SystemExit(Status.INTERRUPTED)  # and not Exit, of which main would say so again
    raise typer.Exit(_exit_code(report))


def _exit_code(report: ProbeReport) -> int:
    from evenhand.runs import STOPPED_STATUS

    if report.stopped_by is not None:
        return STOPPED_STATUS[report.stopped_by]
    return Status.OK if report.ruling is None else _STATUS[report.ruling]
