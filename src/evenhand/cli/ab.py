"""`evenhand ab`: two sides answer the same prompts, and a judge says which is better."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar, NoReturn

import typer

from evenhand import formats
from evenhand.cli import options as opt
from evenhand.cli import session
from evenhand.cli.analyses import GateChoices, GateFlag, asked_gate
from evenhand.cli.figures import counted
from evenhand.cli.judging import show_preview
from evenhand.cli.options import (
    Given,
    JudgeChoices,
    OrderChoices,
    PairRules,
    RunLimits,
    first_given,
    flags_of,
    grouped_showing,
    open_judge,
    parameter,
)
from evenhand.cli.run import Alpha, Seed, StopChoices, UntilDecidedFlag
from evenhand.errors import Status, StoreError
from evenhand.messages import Message
from evenhand.messages.numbers import dollars, duration, number
from evenhand.options import GeneratingOptions
from evenhand.present.terminal import one_line, table_of

if TYPE_CHECKING:
    from rich.console import Console

    from evenhand.runs import JudgePlan, RunOptions
    from evenhand.runs.ab import AbSummary, GeneratedPairs, SideChoice
    from evenhand.store import Store

PromptsFile = Annotated[
    str,
    typer.Argument(
        metavar="PROMPTS",
        help=f"A file of prompts: {formats.listed()}, optionally gzipped, with "
        "a prompt column or conversations in messages; - for standard input.",
    ),
]
_MAY_LACK_ANSWERS = 0.05  # of the prompts, unless --max-skipped allows more


def _flags_of_side(side: str) -> tuple[inspect.Parameter, ...]:
    who = typer.Option(
        f"--{side}",
        metavar="MODEL|FILE",
        help="A model (openai:gpt-5), or a file of answers. Default: the other side's model.",
    )
    price = typer.Option(
        f"--{side}-price", help="Dollars per million tokens in/out, e.g. 0.15/0.60."
    )
    return (
        parameter(side, Annotated[str | None, who], None),
        *flags_of(GeneratingOptions.rows(), side=side),
        parameter(f"{side}_price", Annotated[str | None, price], None),
    )


class FirstSide(Given):
    """Side A: the old one."""

    side: ClassVar[str] = "a"
    flags = _flags_of_side("a")

    def choice(self, timeout_s: float | None) -> SideChoice:
        """The options of one side under the names that both have."""
        from evenhand.cli.inputs import read_text
        from evenhand.judges.prices import read_price
        from evenhand.runs.ab import SideChoice
        from evenhand.runs.generation import check_template

        values = self.checked(GeneratingOptions, side=self.side)
        if "template" in values:
            path = values["template"]
            text = read_text(f"@{path}", f"--{self.side}-template")
            values["template"] = check_template(text, named=path)
        if "system" in values:
            values["system"] = read_text(values["system"], f"--{self.side}-system")
        price = self.values.get(f"{self.side}_price")
        return SideChoice(
            spec=self.values.get(self.side),
            timeout_s=timeout_s,
            price=None if price is None else read_price(price, where=f"--{self.side}-price"),
            **values,
        )


class SecondSide(FirstSide):
    """Side B: the new one."""

    side = "b"
    flags = _flags_of_side("b")


Repeats = Annotated[
    int,
    typer.Option(
        "--repeats",
        min=1,
        help="Answers per prompt and side; with several, the interval includes their noise.",
    ),
]
AnswerTimeout = Annotated[
    float | None,
    typer.Option("--answer-timeout", min=0.1, help="Timeout for one answer, in seconds."),
]


@grouped_showing(
    "a",
    "b",
    "a_template",
    "b_template",
    "a_system",
    "b_system",
    "repeats",
    "columns",
    "criteria",
    "until_decided",
    "dry_run",
    "gate",
    "min_win_rate",
    "junit",
    "html",
)
def ab(
    *,
    prompts: PromptsFile,
    first: FirstSide,
    second: SecondSide,
    repeats: Repeats = 1,
    answer_timeout: AnswerTimeout = None,
    columns: opt.ColumnMap = None,
    bad_rows: opt.OnBadRows = "stop",
    rules: PairRules,
    orders: OrderChoices,
    judge: opt.JudgeNames = None,
    name: opt.RunName = None,
    limits: RunLimits,
    until_decided: UntilDecidedFlag = False,
    alpha: Alpha = None,
    seed: Seed = None,
    judging: JudgeChoices,
    dry_run: opt.DryRun = False,
    gate: GateFlag = False,
    gating: GateChoices,
    as_json: opt.AsJson = False,
) -> None:
    """Have two models answer prompts and judge which is better.

    Run it again to continue; no answer is generated twice, and the caps cover generation and
    judging together. Exit codes: 0 every pair was judged or no more were needed, 2 bad input
    or a store error, 3 a model or the judge failed, or more than 5% of the prompts
    (--max-skipped) lack an answer, 5 a cap was reached, 130 interrupted. With --gate: 0 the
    gate passes, 1 it fails, 6 it is undecided; if the run stops early, the codes above other
    than 0.
    """
    from evenhand.cli.inputs import data_path, mapped_columns, read_options
    from evenhand.data.source import open_source
    from evenhand.runs import JudgePlan
    from evenhand.runs.ab import GeneratedPairs, open_prompts, open_sides
    from evenhand.runs.generation import Generation
    from evenhand.runs.preview import preview_ab
    from evenhand.settings import load_settings

    drawn = orders.draw(seed=seed, no_swap=rules.no_swap)
    stopping = StopChoices(until_decided=until_decided, alpha=alpha, seed=seed)
    ends = stopping.fields(one_order=rules.no_swap, drawn_orders=drawn is not None, gated=gate)
    asked_for = asked_gate(gate, gating, dry_run=dry_run, shared=("alpha", "max_skipped"))
    set_up = load_settings().gate.max_skipped
    allowed = first_given(gating.values.get("max_skipped"), set_up, _MAY_LACK_ANSWERS)
    mapped = mapped_columns(columns)
    sides = open_sides(
        first.choice(answer_timeout),
        second.choice(answer_timeout),
        load_settings(),
        mapped,
    )
    named: list[str | None] = [*judge] if judge else [None]
    configs = [
        judging.config(each) if len(named) == 1 else judging.config(each, base_url=None)
        for each in named
    ]
    reading = read_options(
        columns,
        rules,
        criteria_needed=any(config.needs_prompt for config in configs),
        orders=drawn,
    )
    options = limits.options(name, bad_rows=bad_rows, **ends)
    source = open_source(data_path(prompts))
    found, skipped = open_prompts(source, mapped, bad_rows=bad_rows)
    if skipped:
        session.note(Message("progress.no_prompt", n=len(skipped)))
    plans = [JudgePlan(open_judge(config), config) for config in configs]
    with _store(options.store, dry_run=dry_run) as store:
        generation = Generation(store, found, sides, repeats, options)
        pairs = GeneratedPairs(generation, source, reading)
        if dry_run:
            session.present(preview_ab(pairs, plans), show_preview, as_json=as_json)
            return
        summary = _carried_out(
            pairs, plans, options, as_json=as_json, confirm_above=limits.asks_above
        )
        _end(summary, store, options, asked_for, allowed=allowed, as_json=as_json)


@contextmanager
def _store(address: str | Path | None, *, dry_run: bool) -> Iterator[Store]:
    """A dry run makes no store; it looks into the one that is there for answers."""
    from tempfile import TemporaryDirectory

    from evenhand.store import open_store

    with ExitStack() as opened:
        try:
            store = open_store(address, create=not dry_run)
        except StoreError:
            if not dry_run:
                raise
            folder = opened.enter_context(TemporaryDirectory(prefix="evenhand-"))
            store = open_store(Path(folder) / "none.db")
        yield opened.enter_context(store)


def _carried_out(
    pairs: GeneratedPairs,
    plans: list[JudgePlan],
    options: RunOptions,
    *,
    as_json: bool,
    confirm_above: float | None,
) -> AbSummary:
    from evenhand.cli.judging import run_to_the_end
    from evenhand.cli.progress import watching
    from evenhand.runs.ab import run_ab
    from evenhand.runs.generation import ModelSide

    models = [side.model for side in pairs.generation.sides if isinstance(side, ModelSide)]

    async def work() -> AbSummary:
        judges = [plan.judge for plan in plans]
        with watching(judges, as_json=as_json, confirm_above=confirm_above) as (view, stop):
            try:
                return await run_ab(pairs, plans, options, stop=stop, observer=view)
            finally:
                for model in models:
                    await model.close()

    return run_to_the_end(work, pairs, plans)


def _end(
    summary: AbSummary,
    store: Store,
    options: RunOptions,
    gating: GateChoices | None,
    *,
    allowed: float,
    as_json: bool,
) -> NoReturn:
    """Who answered what, which side the judge prefers, and what follows. `allowed` is the share of
    prompts that may lack an answer."""
    import json

    from evenhand.cli.judging import Gated, conclusions_of, show_conclusions
    from evenhand.cli.progress import show_errors, show_summary
    from evenhand.runs import STOPPED_STATUS
    from evenhand.runs.ab import too_few_answered

    code = Status.OK if summary.stopped_by is None else STOPPED_STATUS[summary.stopped_by]
    gated = Gated.of(summary.name, code, gating, store)
    if not code and (error := too_few_answered(summary, allowed)) is not None:
        summary = summary.model_copy(update={"error": error})
        # A gate counts what is missing against the claim, and rules with that.
        gated = gated if gating is not None else Gated(Status.JUDGE_FAILED)
    sentences = [] if summary.run is None else conclusions_of(summary.run, store)
    if as_json:
        whole = {**json.loads(summary.model_dump_json()), "conclusions": sentences}
        session.write_json(whole | gated.as_json)
        if summary.run is not None:
            show_errors(session.err(), summary.run, options.store)
    else:
        show_generation(session.out(), summary)
        if summary.run is not None:
            show_summary(session.out(), session.err(), summary.run, options.store)
            if gated.report is None:
                show_conclusions(summary.run, sentences, options.store)
    show_why_unjudged(session.err(), summary)
    if not as_json:
        gated.show(options.store)
    session.leave(gated.code)


def show_generation(out: Console, summary: AbSummary) -> None:
    from rich.text import Text

    made, err = summary.generation, session.err()
    for note in summary.notes:
        session.print_line(err, Text(f"note  {one_line(note)}"))
    every = ("answered", "truncated", "refused", "empty", "failed", "missing", "pending")
    kinds = [
        kind for kind in every if kind == "answered" or any(getattr(s, kind) for s in made.sides)
    ]
    table = table_of("", "model", *kinds, left=("", "model"))
    for side in made.sides:
        counts = [number(getattr(side, kind)) for kind in kinds]
        table.add_row(side.side, Text(one_line(side.model)), *counts)
    out.print(table)
    parts = [counted(made.calls, "call")]
    reused = sum(side.reused for side in made.sides)
    if reused:
        parts.append(f"{counted(reused, 'answer')} reused")
    parts.append("cost unknown" if made.cost_usd is None else dollars(made.cost_usd))
    out.print(Text(f"answers: {', '.join([*parts, duration(made.seconds)])}"))


def show_why_unjudged(err: Console, summary: AbSummary) -> None:
    """A line each, also where the rest is JSON."""
    from rich.text import Text

    from evenhand.cli.progress import why_stopped

    unjudged = summary.run is None and summary.stopped_by is not None
    if summary.error is not None and (unjudged or summary.stopped_by is None):
        session.print_line(err, Text(f"error  {one_line(summary.error.message)}"))
    if summary.run is None and summary.stopped_by is not None:
        by = summary.stopped_by
        why = Message("progress.why_model") if by == "judge" else why_stopped(by)
        session.print_line(err, Text(Message("progress.ab_stopped", why=why)))
