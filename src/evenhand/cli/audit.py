"""`evenhand audit`: a judge against labels, and whether to believe it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal, cast

import typer

from evenhand.cli import options as opt
from evenhand.cli import run_options as ropt
from evenhand.cli import session
from evenhand.errors import EvenhandError, InputError, Status

if TYPE_CHECKING:
    from evenhand.runs.options import Again
    from evenhand.trust.rules import RuleFigures


def audit(
    context: typer.Context,
    labelled: Annotated[
        str | None,
        typer.Argument(
            metavar="LABELLED",
            help="A file of pairs with labels (then --judge judges them), or a run whose pairs "
            "have labels or people's votes.",
        ),
    ] = None,
    judge: opt.JudgeName = None,
    rule: Annotated[
        Literal["judgebench", "llmbar", "pandalm", "position-bias", "qlora"] | None,
        typer.Option(
            "--rule",
            help="Other authors' rule over a replayed judge, beside our own figures.",
        ),
    ] = None,
    against: Annotated[
        str | None,
        typer.Option(
            "--against",
            metavar="RUN",
            help="Another run over the same pairs: another judge, or the other language.",
        ),
    ] = None,
    level: Annotated[
        float, typer.Option("--level", help="How sure the intervals are, between 0 and 1.")
    ] = 0.95,
    shown: Annotated[
        int,
        typer.Option("--disagreements", min=0, help="How many disagreements to list."),
    ] = 20,
    min_accuracy: Annotated[
        float | None, typer.Option("--min-accuracy", help="Fail where accuracy is below this.")
    ] = None,
    min_kappa: Annotated[
        float | None, typer.Option("--min-kappa", help="Fail where Cohen's kappa is below this.")
    ] = None,
    min_consistency: Annotated[
        float | None,
        typer.Option("--min-consistency", help="Fail where the two orders agree less often."),
    ] = None,
    max_unread: Annotated[
        float | None,
        typer.Option("--max-unread", help="Fail where more pairs than this have no verdict."),
    ] = None,
    max_place_lean: Annotated[
        float | None,
        typer.Option(
            "--max-place-lean",
            help="Fail where more pairs than this follow their place. Without it, an alarm at 0.1.",
        ),
    ] = None,
    max_length_excess: Annotated[
        float | None,
        typer.Option(
            "--max-length-excess",
            help="Fail where the longer wins so much oftener than it should. Without it, an alarm "
            "at 0.1.",
        ),
    ] = None,
    columns: ropt.ColumnMap = None,
    bad_rows: ropt.OnBadRows = "stop",
    criteria: opt.Criteria = None,
    no_tie: opt.NoTie = False,
    no_swap: opt.NoSwap = False,
    base_url: opt.BaseUrl = None,
    name: ropt.RunName = None,
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
    as_json: opt.AsJson = False,
) -> None:
    """Audit a judge: how often it is right by labels, what it leans to, whether to believe it.

    Exit codes: 0 it passes (or no threshold was set), 1 a threshold fails, 6 one is undecided,
    2 bad input, no labels, or the store failed, 3 the judge failed, 5 a cap stopped it,
    130 interrupted.
    """
    from evenhand import api, judges
    from evenhand.cli.auditing import (
        as_data,
        figures_by_rule,
        need_labels,
        refuse_judging_options,
        refuse_unknown_file,
        vote_lists_note,
    )
    from evenhand.cli.judging import end, judge_all
    from evenhand.cli.run_inputs import read_price, read_reading
    from evenhand.cli.stores import named_store, opened_store
    from evenhand.defaults import make_procedure
    from evenhand.runs import JudgePlan, PairFiles, RunOptions
    from evenhand.settings import load_settings
    from evenhand.trust.audit import audit_run
    from evenhand.trust.findings import Thresholds, find

    try:
        thresholds = Thresholds.of(
            min_accuracy=min_accuracy,
            min_kappa=min_kappa,
            min_consistency=min_consistency,
            max_unread=max_unread,
            max_place_lean=max_place_lean,
            max_length_excess=max_length_excess,
        )
        settings = opt.with_judge_options(
            load_settings(),
            judge=None,
            timeout_s=timeout,
            max_tokens=max_tokens,
            temperature=temperature,
            samples=samples,
        )
        data = as_data(labelled)
        figures = None
        if rule is not None:
            figures, counted = figures_by_rule(rule, data, judge, columns)
            if not counted:  # nothing of ours can be told beside it
                _tell_rule(figures, as_json=as_json)
                return
        if labelled is None:
            raise InputError(
                "nothing to audit; give a file of labelled pairs with --judge, or a run's name"
            )
        run = labelled
        if data is None:
            refuse_unknown_file(named_store(store), run)
            refuse_judging_options(context, run)
        else:
            spec = judge or opt.require_judge(settings)
            reading = read_reading(
                columns,
                criteria,
                criteria_needed=judges.reads_prompt(spec),
                no_tie=no_tie,
                no_swap=no_swap or rule in _ONE_ORDER,
            )
            need_labels(data, reading, named_store(store))
            sources = PairFiles((data,), reading)
            opened = api.open_judge_for(settings, spec, base_url=base_url)
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
                ask_identical=True,
            )
            options = RunOptions(
                name=name,
                store=named_store(store),
                concurrency=concurrency,
                rpm=rpm,
                tpm=tpm,
                max_calls=max_calls,
                max_cost=max_cost,
                price=read_price(price),
                fresh=fresh,
                retry=tuple(cast("list[Again]", retry or [])),
                keep_going_unread=keep_going_unread,
                bad_rows=bad_rows,
            )
            summary = judge_all(
                sources,
                [JudgePlan(opened, procedure)],
                options,
                as_json=as_json,
                confirm_above=None if yes else confirm_above,
            )
            if not summary.finished:
                end(summary, as_json=as_json)
            run, judge = summary.run, None
        with opened_store(store) as at:
            found = audit_run(
                at,
                run,
                judge=judge,
                level=level,
                disagreements=shown,
                against=against,
                rule=figures,
            )
        unused = vote_lists_note(data, run) if data is not None and not found.people else None
        if unused is not None:
            found = found.model_copy(update={"notes": (*found.notes, unused)})
        findings = find(found, thresholds)
    except EvenhandError as error:
        session.fail(error, as_json=as_json, of_pair=False)
    if as_json:
        told = found.model_dump(mode="json") | {"findings": findings.model_dump(mode="json")}
        _write(told)
    else:
        from evenhand.cli.show_audit import show_audit

        show_audit(session.out(), found, findings)
    raise typer.Exit(_CODES[findings.ruling])


# Recorded in one order; asked for the other, every pair would be invalid.
_ONE_ORDER = frozenset({"pandalm"})
_CODES: dict[str | None, int] = {
    None: Status.OK,
    "pass": Status.OK,
    "fail": Status.GATE_FAILED,
    "undecided": Status.UNDECIDED,
}


def _write(told: object) -> None:
    import json

    session.write_json(json.dumps(told, ensure_ascii=False, indent=2))


def _tell_rule(figures: RuleFigures, *, as_json: bool) -> None:
    if as_json:
        _write({"n": figures.n, "rule": figures.model_dump(mode="json")})
        return
    from evenhand.cli.show_audit import show_rule

    show_rule(session.out(), figures)
