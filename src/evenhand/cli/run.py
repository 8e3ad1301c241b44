"""`evenhand run`: a data set through one or more judges, resumable."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, cast

import typer

from evenhand.cli import options as opt
from evenhand.cli import options as ropt
from evenhand.cli import session
from evenhand.errors import EvenhandError, InputError

if TYPE_CHECKING:
    from evenhand.runs import RankAdaptive, UntilDecided
    from evenhand.runs.options import Again

PairFilesArgument = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[PAIRS]...",
        help="Files of pairs: JSON lines, JSON, CSV (each also gzipped), Parquet; URLs such as "
        "s3://bucket/folder/*.parquet; - for standard input.",
        show_default=False,
    ),
]
FileA = Annotated[
    str | None,
    typer.Option("--a", metavar="FILE", help="A file of model outputs: response A of each pair."),
]
FileB = Annotated[
    str | None,
    typer.Option("--b", metavar="FILE", help="A file of model outputs: response B of each pair."),
]
Outputs = Annotated[
    list[str] | None,
    typer.Option(
        "--outputs",
        metavar="FILE",
        help="A file of model outputs, two or more of them: every model against every other, or "
        "against --baseline. Repeatable.",
    ),
]
Baseline = Annotated[
    str | None,
    typer.Option("--baseline", help="With --outputs: the model that the others are held against."),
]
Questions = Annotated[
    str | None,
    typer.Option(
        "--questions",
        metavar="FILE",
        help="The prompts of answer files that have none (MT-Bench, Arena-Hard).",
    ),
]
PromptsCompared = Annotated[
    Literal["all", "common"],
    typer.Option(
        "--prompts",
        help="With --a/--b and --outputs, all: a prompt that only one of two models answered is a "
        "bad row, and missing; common: compare on those that both answered.",
    ),
]
Escalate = Annotated[
    list[str] | None,
    typer.Option(
        "--escalate",
        metavar="JUDGE",
        help="Who judges what the judge before abstained on (by its calibration), or decided "
        "differently in the two orders, or not at all. Repeatable, one after the other.",
    ),
]
ForPeople = Annotated[
    Path | None,
    typer.Option(
        "--for-people",
        metavar="FILE",
        help="With --escalate: the pairs that no judge could settle, as JSON lines for people.",
    ),
]
ExecutorChoice = Annotated[
    Literal["local", "ray"],
    typer.Option(
        "--executor",
        help="Who carries the run out: local: this process; ray: workers of a Ray cluster, with a "
        "PostgreSQL store that they share.",
    ),
]
RayAddress = Annotated[
    str | None,
    typer.Option(
        "--ray-address",
        metavar="HOST:PORT|auto",
        help="With --executor ray: the cluster. Default: RAY_ADDRESS, or Ray is started on this "
        "machine.",
    ),
]
RayWorkers = Annotated[
    int | None,
    typer.Option(
        "--ray-workers",
        min=1,
        help="With --executor ray: how many workers. Default: one for each CPU, up to 16.",
    ),
]
Batch = Annotated[
    bool,
    typer.Option(
        "--batch",
        help="By the provider's batch API (openai:, anthropic:): half the price, within a day. "
        "Ctrl-C leaves what is there, and the same command collects it.",
    ),
]
BatchPoll = Annotated[
    float | None,
    typer.Option(
        "--batch-poll",
        min=0.1,
        metavar="SECONDS",
        help="With --batch: how often to look whether it is done. Default: from 2 s to a minute.",
    ),
]
CancelBatches = Annotated[
    bool,
    typer.Option(
        "--cancel-batches",
        help="With --batch: cancel what is at the provider, keep what it has answered, and ask "
        "nothing more.",
    ),
]
UntilDecidedFlag = Annotated[
    bool,
    typer.Option(
        "--until-decided",
        help="End as soon as it is settled whether A or B is better. Prompts go out in a random "
        "order, and looking at them as they come does not raise the error.",
    ),
]
Alpha = Annotated[
    float | None,
    typer.Option(
        "--alpha",
        min=0.0001,
        max=0.5,
        help="With --until-decided: the chance of naming a winner where there is none. "
        "Default: 0.05.",
    ),
]
RankAdaptiveFlag = Annotated[
    bool,
    typer.Option(
        "--rank-adaptive",
        help="With several models and --budget: ask the pairs that are most likely to settle "
        "their order, instead of all against all.",
    ),
]
PairBudget = Annotated[
    int | None,
    typer.Option("--budget", min=1, help="With --rank-adaptive: the most pairs to ask."),
]
CertaintyWanted = Annotated[
    float | None,
    typer.Option(
        "--certainty",
        min=0.01,
        max=0.9999,
        help="With --rank-adaptive: end once the expected Kendall tau of the order is this. "
        "Default: 0.95.",
    ),
]
Seed = Annotated[
    int | None,
    typer.Option("--seed", help="Of the random order of --until-decided and --rank-adaptive."),
]


def run(
    pairs: PairFilesArgument = None,
    a: FileA = None,
    b: FileB = None,
    outputs: Outputs = None,
    baseline: Baseline = None,
    questions: Questions = None,
    columns: ropt.ColumnMap = None,
    bad_rows: ropt.OnBadRows = "stop",
    prompts: PromptsCompared = "all",
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
    keep_going_unread: ropt.KeepGoingUnread = False,
    executor: ExecutorChoice = "local",
    ray_address: RayAddress = None,
    ray_workers: RayWorkers = None,
    batch: Batch = False,
    batch_poll: BatchPoll = None,
    cancel_batches: CancelBatches = False,
    until_decided: UntilDecidedFlag = False,
    alpha: Alpha = None,
    rank_adaptive: RankAdaptiveFlag = False,
    budget: PairBudget = None,
    certainty: CertaintyWanted = None,
    seed: Seed = None,
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
    escalate: Escalate = None,
    for_people: ForPeople = None,
    calibration: opt.Calibrations = None,
    force_calibration: opt.ForceCalibration = False,
    as_json: opt.AsJson = False,
) -> None:
    """Judge a file of pairs, or two models' outputs; run it again and it goes on.

    Exit codes: 0 every pair was judged (invalid ones are counted) or no more were needed,
    2 bad input or the store failed, 3 the judge failed, 5 a cap stopped it, 130 interrupted.
    """
    from evenhand import api, judges
    from evenhand.cli.inputs import calibrations_of, read_options, read_price, read_sources
    from evenhand.cli.judging import abstentions_of, end, judge_all
    from evenhand.judging.config import make_config
    from evenhand.runs import JudgePlan, RunOptions
    from evenhand.runs.plan import JudgeRecipe
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
        if escalate and len(named) > 1:
            raise InputError(
                f"--escalate goes on from one judge, and {len(named)} are named; name one"
            )
        if for_people is not None and not escalate:
            raise InputError("--for-people belongs to --escalate; give both, or neither")
        named = [*named, *(escalate or [])]
        reading = read_options(
            columns,
            criteria,
            criteria_needed=any(judges.reads_prompt(each) for each in named),
            no_tie=no_tie,
            no_swap=no_swap,
        )
        _refuse_seed(seed, in_random_order=until_decided or rank_adaptive)
        if until_decided and no_swap:
            raise InputError(
                "--until-decided needs both orders, since one decides nothing; leave out --no-swap"
            )
        sources = read_sources(pairs, a, b, outputs, baseline, questions, reading, prompts=prompts)
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
            bad_rows=bad_rows,
            until_decided=_until_decided(until_decided, alpha=alpha, seed=seed),
            rank_adaptive=_rank_adaptive(
                rank_adaptive, budget=budget, certainty=certainty, seed=seed
            ),
            executor=executor,
            ray_address=ray_address,
            ray_workers=ray_workers,
            batch=batch,
            batch_poll_s=batch_poll,
            cancel_batches=cancel_batches,
        )
        # Of several judges only those that speak its language: it must not get another's key.
        addresses = [
            base_url if len(named) == 1 or spec.strip().startswith("openai:") else None
            for spec in named
        ]
        recipes = [
            JudgeRecipe.of(spec, api.judge_options(settings, spec, base_url=at))
            for spec, at in zip(named, addresses, strict=True)
        ]
        asked = [
            api.open_judge_for(settings, spec, base_url=at)
            for spec, at in zip(named, addresses, strict=True)
        ]
        calibrating = calibrations_of(calibration, asked, forced=force_calibration)
        plans = []
        for opened, its_calibration, recipe in zip(asked, calibrating, recipes, strict=True):
            config = make_config(
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
                calibration=its_calibration,
            )
            plans.append(JudgePlan(opened, config, recipe=recipe))
        if escalate:
            from evenhand.cli.judging import judge_in_stages

            judge_in_stages(
                sources,
                plans,
                options,
                as_json=as_json,
                confirm_above=None if yes else confirm_above,
                people=for_people,
            )
        summary = judge_all(
            sources,
            plans,
            options,
            as_json=as_json,
            confirm_above=None if yes else confirm_above,
        )
        abstentions = abstentions_of(summary, plans, options.store)
    except EvenhandError as error:
        session.fail(error, as_json=as_json, of_pair=False)
    end(summary, as_json=as_json, abstentions=abstentions, store=options.store)


def _refuse_seed(seed: int | None, *, in_random_order: bool) -> None:
    if seed is not None and not in_random_order:
        raise InputError(
            "--seed belongs to --until-decided and --rank-adaptive, which ask in a random order; "
            "leave it out"
        )


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
