"""`evenhand run`: a data set through one or more judges, resumable."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, cast

from evenhand.cli import options as opt
from evenhand.cli import run_options as ropt
from evenhand.cli import session
from evenhand.errors import EvenhandError, InputError, Status

if TYPE_CHECKING:
    from evenhand.data import Reading
    from evenhand.judges.prices import Price
    from evenhand.runs import (
        JudgePlan,
        RankAdaptive,
        RunOptions,
        RunSummary,
        Sources,
        UntilDecided,
    )
    from evenhand.runs.options import Again


def run(
    pairs: ropt.PairFilesArgument = None,
    a: ropt.FileA = None,
    b: ropt.FileB = None,
    outputs: ropt.Outputs = None,
    baseline: ropt.Baseline = None,
    questions: ropt.Questions = None,
    columns: ropt.ColumnMap = None,
    bad_rows: ropt.OnBadRows = "stop",
    criteria: opt.Criteria = None,
    no_tie: opt.NoTie = False,
    no_swap: opt.NoSwap = False,
    judge: ropt.JudgeNames = None,
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
    until_decided: ropt.UntilDecidedFlag = False,
    alpha: ropt.Alpha = None,
    rank_adaptive: ropt.RankAdaptiveFlag = False,
    budget: ropt.PairBudget = None,
    certainty: ropt.CertaintyWanted = None,
    seed: ropt.Seed = None,
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
    """Judge a file of pairs, or two models' outputs; run it again and it goes on.

    Exit codes: 0 every pair was judged (invalid ones are counted) or no more were needed,
    2 bad input or the store failed, 3 the judge failed, 5 a cap stopped it, 130 interrupted.
    """
    from evenhand import api, judges
    from evenhand.cli.plan import make_procedure
    from evenhand.runs import JudgePlan, RunOptions
    from evenhand.settings import load_settings

    try:
        settings = opt.with_judge_options(
            load_settings(),
            judge=None,
            timeout_s=timeout,
            max_tokens=max_tokens,
            temperature=temperature,
            samples=samples,
        )
        named = judge or [opt.require_judge(settings)]
        reading = _reading(
            columns,
            criteria,
            criteria_needed=any(judges.reads_prompt(each) for each in named),
            no_tie=no_tie,
            no_swap=no_swap,
        )
        sources = _sources(pairs, a, b, outputs, baseline, questions, reading)
        options = RunOptions(
            name=name,
            store=store or settings.store,
            concurrency=concurrency,
            rpm=rpm,
            tpm=tpm,
            max_calls=max_calls,
            max_cost=max_cost,
            price=_price(price),
            fresh=fresh,
            retry=tuple(cast("list[Again]", retry or [])),
            bad_rows=bad_rows,
            until_decided=_until_decided(until_decided, alpha=alpha, seed=seed),
            rank_adaptive=_rank_adaptive(
                rank_adaptive, budget=budget, certainty=certainty, seed=seed
            ),
        )
        plans = []
        for spec in named:
            # Of several judges only those that speak its language: it must not get another's key.
            at = base_url if len(named) == 1 or spec.strip().startswith("openai:") else None
            opened = api.open_judge_for(settings, spec, base_url=at)
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
            )
            plans.append(JudgePlan(opened, procedure))
        summary = _judged(
            sources,
            plans,
            options,
            as_json=as_json,
            confirm_above=None if yes else confirm_above,
        )
    except EvenhandError as error:
        session.fail(error, as_json=as_json, of_pair=False)
    _end(summary, as_json=as_json)


def _until_decided(wanted: bool, *, alpha: float | None, seed: int | None) -> UntilDecided | None:
    from evenhand.runs import UntilDecided

    if not wanted:
        if alpha is not None:
            raise InputError("--alpha belongs to --until-decided; give both, or neither")
        return None
    default = UntilDecided()
    return UntilDecided(default.alpha if alpha is None else alpha, seed or default.seed)


def _rank_adaptive(
    wanted: bool, *, budget: int | None, certainty: float | None, seed: int | None
) -> RankAdaptive | None:
    from evenhand.runs import RankAdaptive

    if not wanted:
        for option, value in (("--budget", budget), ("--certainty", certainty)):
            if value is not None:
                raise InputError(f"{option} belongs to --rank-adaptive; give both, or neither")
        return None
    if budget is None:
        raise InputError("--rank-adaptive needs --budget, the most pairs to ask; give e.g. 2000")
    asked = RankAdaptive(budget, seed=seed or 0)
    return asked if certainty is None else replace(asked, certainty=certainty)


def _judged(
    sources: Sources,
    plans: list[JudgePlan],
    options: RunOptions,
    *,
    as_json: bool,
    confirm_above: float | None,
) -> RunSummary:
    import gc

    from evenhand.cli.interrupt import stop_when_told
    from evenhand.cli.run_view import watching
    from evenhand.runs import Stop, judge_pairs
    from evenhand.store import open_store

    judges = [plan.judge for plan in plans]
    # What is loaded by now stays, and a run makes few cycles: looking for them as often as Python
    # does by default takes a tenth of the time.
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)

    async def work() -> RunSummary:
        stop = Stop()
        try:
            with (
                open_store(options.store) as store,
                watching(judges, as_json=as_json, confirm_above=confirm_above) as view,
                stop_when_told(stop, view.say, view.leave),
            ):
                return await judge_pairs(
                    sources, plans, options, store=store, stop=stop, observer=view
                )
        finally:
            sources.close()
            for judge in judges:
                await judge.close()

    return session.run_async(work())


def _end(summary: RunSummary, *, as_json: bool) -> None:
    import typer

    from evenhand.cli.run_view import show_summary

    if as_json:
        session.write_json(summary.model_dump_json(indent=2))
    else:
        show_summary(session.out(), session.err(), summary)
    if summary.stopped_by == "interrupt":
        raise SystemExit(Status.INTERRUPTED)  # and not Exit, of which main would say so again
    raise typer.Exit(_exit_code(summary))


def _exit_code(summary: RunSummary) -> int:
    from evenhand.runs import STOPPED_STATUS

    return Status.OK if summary.stopped_by is None else STOPPED_STATUS[summary.stopped_by]


def _reading(
    columns: list[str] | None,
    criteria: list[str] | None,
    *,
    criteria_needed: bool,
    no_tie: bool,
    no_swap: bool,
) -> Reading:
    from evenhand.cli.inputs import read_criterion
    from evenhand.contract import read_criteria
    from evenhand.data import Reading

    return Reading(
        columns=dict(_mapped(entry) for entry in columns or ()),
        criteria=read_criteria([read_criterion(c) for c in criteria]) if criteria else (),
        criteria_needed=criteria_needed,
        allow_tie=False if no_tie else None,
        swap_positions=False if no_swap else None,
    )


def _mapped(entry: str) -> tuple[str, str]:
    field, equals, column = entry.partition("=")
    if not equals or not field.strip():
        raise InputError(f"--map {entry!r} is not FIELD=COLUMN; give e.g. --map prompt=question")
    return field.strip(), column.strip()


def _price(given: str | None) -> Price | None:
    from evenhand.judges.prices import Price

    if given is None:
        return None
    first, slash, second = given.partition("/")
    try:
        if not slash:
            raise ValueError
        return Price(float(first), float(second))
    except ValueError:
        raise InputError(
            f"--price {given!r} is not INPUT/OUTPUT; give dollars for a million tokens, "
            "e.g. --price 0.15/0.60"
        ) from None


def _sources(
    pairs: list[str] | None,
    a: Path | None,
    b: Path | None,
    outputs: list[Path] | None,
    baseline: str | None,
    questions: Path | None,
    reading: Reading,
) -> Sources:
    """Which of the three ways of giving data was taken; more than one is an error."""
    from evenhand.data import open_source
    from evenhand.runs import ModelOutputs, PairFiles

    if (a is None) != (b is None):
        raise InputError(f"{'--b' if b is None else '--a'} is missing; give both files")
    files = [a, b] if a is not None and b is not None else list(outputs or ())
    ways = [bool(pairs), a is not None, bool(outputs)]
    if sum(ways) > 1:
        raise InputError("give either PAIRS, or --a and --b, or --outputs; not two of them")
    if a is not None and baseline is not None:
        raise InputError("--baseline belongs to --outputs; with --a and --b, A is --a")
    if pairs:
        for option, value in (("--baseline", baseline), ("--questions", questions)):
            if value is not None:
                raise InputError(f"{option} belongs to --a/--b and --outputs, not to PAIRS")
        return PairFiles.of([_path(each) for each in pairs], reading)
    if not files:
        raise InputError(
            "nothing to judge; give a file of pairs (- for standard input), or --a OLD --b NEW"
        )
    if len(files) < 2:
        raise InputError("--outputs names one file; a comparison needs two or more")
    return ModelOutputs(
        tuple([open_source(_path(file)) for file in files]),
        reading,
        baseline=baseline,
        questions=open_source(_path(questions)) if questions else None,
    )


def _path(given: str | Path) -> Path | str:
    if str(given) != "-":
        return Path(given).expanduser()
    if sys.stdin is None:
        raise InputError("standard input is closed; give a file instead")
    return "-"
