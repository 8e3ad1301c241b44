"""`evenhand ab`: two sides answer the same prompts, and a judge says which is better."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NoReturn

import typer

from evenhand.cli import options as opt
from evenhand.cli import session
from evenhand.cli.figures import counted, dollars, number, seconds
from evenhand.cli.gate import GateChoices, GateFlag, asked_gate
from evenhand.cli.judging import show_preview
from evenhand.cli.options import (
    JudgeChoices,
    OrderChoices,
    PairRules,
    RunLimits,
    first_given,
    grouped,
    open_judge,
)
from evenhand.cli.run import Alpha, Seed, StopChoices, UntilDecidedFlag
from evenhand.cli.terminal import one_line, table_of
from evenhand.errors import Status, StoreError

if TYPE_CHECKING:
    from rich.console import Console

    from evenhand.runs import JudgePlan, RunOptions
    from evenhand.runs.ab import AbSummary, GeneratedPairs, SideChoice
    from evenhand.store import Store

PromptsFile = Annotated[
    str,
    typer.Argument(
        metavar="PROMPTS",
        help="A file of prompts: JSON lines, JSON, CSV (each also gzipped) or Parquet, with a "
        "column prompt or conversations in messages; - for standard input.",
    ),
]
_SIDE = "A model (openai:gpt-5), or a file of answers. Default: the other side's model."
_COMMAND = "A command in its place: prompt on standard input, answer on standard output, no shell."
_MAY_LACK_ANSWERS = 0.05  # of the prompts, unless --max-skipped allows more
_TEMPLATE = "A file around each prompt, with {{ prompt }} in it."


def _option(flag: str, text: str, **more: Any) -> Any:
    return typer.Option(flag, help=text, **more)


@dataclass(frozen=True, slots=True)
class FirstSide:
    """Side A: the old one."""

    a: Annotated[str | None, _option("--a", _SIDE, metavar="MODEL|FILE")] = None
    a_command: Annotated[str | None, _option("--a-command", _COMMAND)] = None
    a_template: Annotated[Path | None, _option("--a-template", _TEMPLATE)] = None
    a_system: Annotated[str | None, _option("--a-system", "A system prompt: a text, or @FILE.")] = (
        None
    )
    a_base_url: Annotated[str | None, _option("--a-base-url", "The address of its server.")] = None
    a_temperature: Annotated[float | None, _option("--a-temperature", "Else its own.")] = None
    a_max_tokens: Annotated[
        int | None, _option("--a-max-tokens", "Of an answer; a longer one is truncated.")
    ] = None
    a_seed: Annotated[int | None, _option("--a-seed", "Of the first repeat.")] = None
    a_name: Annotated[str | None, _option("--a-name", "What reports call it.")] = None
    a_price: Annotated[
        str | None, _option("--a-price", "Dollars for a million tokens in and out, 0.15/0.60.")
    ] = None


@dataclass(frozen=True, slots=True)
class SecondSide:
    """Side B: the new one."""

    b: Annotated[str | None, _option("--b", _SIDE, metavar="MODEL|FILE")] = None
    b_command: Annotated[str | None, _option("--b-command", _COMMAND)] = None
    b_template: Annotated[Path | None, _option("--b-template", _TEMPLATE)] = None
    b_system: Annotated[str | None, _option("--b-system", "A system prompt: a text, or @FILE.")] = (
        None
    )
    b_base_url: Annotated[str | None, _option("--b-base-url", "The address of its server.")] = None
    b_temperature: Annotated[float | None, _option("--b-temperature", "Else its own.")] = None
    b_max_tokens: Annotated[
        int | None, _option("--b-max-tokens", "Of an answer; a longer one is truncated.")
    ] = None
    b_seed: Annotated[int | None, _option("--b-seed", "Of the first repeat.")] = None
    b_name: Annotated[str | None, _option("--b-name", "What reports call it.")] = None
    b_price: Annotated[
        str | None, _option("--b-price", "Dollars for a million tokens in and out, 0.15/0.60.")
    ] = None


Repeats = Annotated[
    int,
    typer.Option(
        "--repeats",
        min=1,
        help="Answers of each side to each prompt, so that the models' own noise is in the "
        "interval.",
    ),
]
AnswerTimeout = Annotated[
    float | None,
    typer.Option("--answer-timeout", min=0.1, help="Seconds for one answer of either side."),
]


@grouped
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
    base_url: opt.BaseUrl = None,
    name: opt.RunName = None,
    limits: RunLimits,
    until_decided: UntilDecidedFlag = False,
    alpha: Alpha = None,
    seed: Seed = None,
    locale: opt.LocaleName = None,
    judging: JudgeChoices,
    dry_run: opt.DryRun = False,
    gate: GateFlag = False,
    gating: GateChoices,
    as_json: opt.AsJson = False,
) -> None:
    """Have two models answer prompts, judge them, and conclude.

    Run it again and it goes on; no answer is generated twice, and the caps hold over generation
    and judging of all its commands together. Exit codes: 0 every pair was judged or no more were
    needed, 2 bad input or the store failed, 3 a model or the judge failed, or more than 5% of the
    prompts (--max-skipped) lack an answer, 5 a cap stopped it, 130 interrupted. With --gate: 0 the
    gate passes, 1 it fails, 6 it is undecided, and those above but 0 where the test stops early.
    """
    from evenhand.cli.inputs import data_path, mapped_columns, read_options
    from evenhand.data import open_source
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
    allowed = first_given(gating.counting.max_skipped, set_up, _MAY_LACK_ANSWERS)
    mapped = mapped_columns(columns)
    sides = open_sides(
        _choice(first, "a", answer_timeout),
        _choice(second, "b", answer_timeout),
        load_settings(),
        mapped,
    )
    named: list[str | None] = [*judge] if judge else [None]
    configs = [
        judging.config(each, base_url=base_url if len(named) == 1 else None, locale=locale)
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
        session.err().print(f"note  {len(skipped):,} rows hold no prompt and are skipped")
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
    _end(summary, options, asked_for, allowed=allowed, as_json=as_json)


def _choice(
    given: FirstSide | SecondSide, side: Literal["a", "b"], timeout_s: float | None
) -> SideChoice:
    """The options of one side under the names that both have."""
    from evenhand.cli.inputs import read_text
    from evenhand.judges.prices import read_price
    from evenhand.runs.ab import SideChoice
    from evenhand.runs.generation import check_template

    def of(name: str) -> Any:
        return getattr(given, f"{side}_{name}")

    price, template, system = of("price"), of("template"), of("system")
    return SideChoice(
        spec=getattr(given, side),
        command=of("command"),
        base_url=of("base_url"),
        template=None
        if template is None
        else check_template(read_text(f"@{template}", f"--{side}-template"), named=str(template)),
        system=None if system is None else read_text(system, f"--{side}-system"),
        temperature=of("temperature"),
        max_tokens=of("max_tokens"),
        seed=of("seed"),
        timeout_s=timeout_s,
        name=of("name"),
        price=None if price is None else read_price(price, where=f"--{side}-price"),
    )


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
    from evenhand.cli.progress import stop_on_interrupt, watching
    from evenhand.runs import Stop
    from evenhand.runs.ab import run_ab
    from evenhand.runs.generation import ModelSide

    models = [side.model for side in pairs.generation.sides if isinstance(side, ModelSide)]

    async def work() -> AbSummary:
        stop = Stop()
        judges = [plan.judge for plan in plans]
        with (
            watching(judges, as_json=as_json, confirm_above=confirm_above) as view,
            stop_on_interrupt(stop, view.say, view.leave),
        ):
            try:
                return await run_ab(pairs, plans, options, stop=stop, observer=view)
            finally:
                for model in models:
                    await model.close()

    return run_to_the_end(work, pairs, plans)


def _end(
    summary: AbSummary,
    options: RunOptions,
    gating: GateChoices | None,
    *,
    allowed: float,
    as_json: bool,
) -> NoReturn:
    """Who answered what, which side the judge prefers, and what follows. `allowed` is the share of
    prompts that may lack an answer."""
    import json

    from evenhand.cli.judging import Gated, conclusions_of, leave, show_conclusions
    from evenhand.cli.progress import show_errors, show_summary
    from evenhand.runs import STOPPED_STATUS
    from evenhand.runs.ab import too_few_answered

    code = Status.OK if summary.stopped_by is None else STOPPED_STATUS[summary.stopped_by]
    gated = Gated.of(summary.name, code, gating, options.store)
    if not code and (error := too_few_answered(summary, allowed)) is not None:
        summary = summary.model_copy(update={"error": error})
        # A gate counts what is missing against the claim, and rules with that.
        gated = gated if gating is not None else Gated(Status.JUDGE_FAILED)
    sentences = [] if summary.run is None else conclusions_of(summary.run, options.store)
    if as_json:
        whole = {**json.loads(summary.model_dump_json()), "conclusions": sentences}
        session.write_json(whole | gated.as_json)
        if summary.run is not None:
            show_errors(session.err(), summary.run)
    else:
        show_generation(session.out(), summary)
        if summary.run is not None:
            show_summary(session.out(), session.err(), summary.run)
            if gated.report is None:
                show_conclusions(summary.run, sentences)
    show_why_unjudged(session.err(), summary)
    if not as_json:
        gated.show()
    leave(gated.code, summary.stopped_by)


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
    parts.append("cost not known" if made.cost_usd is None else dollars(made.cost_usd))
    out.print(Text(f"answers: {', '.join([*parts, seconds(made.seconds)])}"))


def show_why_unjudged(err: Console, summary: AbSummary) -> None:
    """A line each, also where the rest is JSON."""
    from rich.text import Text

    from evenhand.cli.progress import WHY_STOPPED

    unjudged = summary.run is None and summary.stopped_by is not None
    if summary.error is not None and (unjudged or summary.stopped_by is None):
        session.print_line(err, Text(f"error  {one_line(summary.error.message)}"))
    if summary.run is None and summary.stopped_by is not None:
        why = "a model failed" if summary.stopped_by == "judge" else WHY_STOPPED[summary.stopped_by]
        session.print_line(err, Text(f"stopped: {why}; the same command goes on"))
