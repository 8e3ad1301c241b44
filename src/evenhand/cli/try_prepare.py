"""`evenhand audit --try-prepare`: the labelled pairs judged with each choice of preparation, and
whether one of them earns its place.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NoReturn

import typer

from evenhand.cli import session
from evenhand.cli.figures import counted, dollars, share
from evenhand.cli.terminal import one_line, table_of
from evenhand.errors import InputError, Status
from evenhand.messages import Message

if TYPE_CHECKING:
    from rich.console import Console

    from evenhand.data import ReadOptions, Source
    from evenhand.judging.config import JudgeConfig
    from evenhand.runs import RunOptions, RunSummary
    from evenhand.trust.preparation_trials import Kinds, PreparationTrial, TriedChoice


@dataclass(frozen=True, slots=True)
class Choice:
    """What to prepare; a judge of its own where its answers were recorded apart."""

    prepare: Kinds
    judge: str | None = None

    @property
    def name(self) -> str:
        return "-".join(self.prepare) or "none"


def read_choices(given: Sequence[str] | None) -> list[Choice]:
    """`metrics,reference`, or `metrics,reference=replay:FILE`."""
    from evenhand.judging.config import read_kinds
    from evenhand.trust.preparation_trials import CHOICES

    if not given:
        return [Choice(kinds) for kinds in CHOICES]
    choices = []
    for text in given:
        kinds, equals, judge = text.partition("=")
        read = read_kinds(kinds)
        if not read:
            raise InputError(Message("command.choice_prepares_nothing", text=text))
        choices.append(Choice(read, judge if equals else None))
    if len({choice.prepare for choice in choices}) < len(choices):
        raise InputError(Message("command.choice_twice"))
    return choices


def try_choices(
    open_data: Callable[[], Source],
    reading: ReadOptions,
    config: JudgeConfig,
    given: Sequence[str] | None,
    options: RunOptions,
    *,
    level: float,
    as_json: bool,
    confirm_above: float | None,
) -> NoReturn:
    """One run after another; the caps hold for all of them together."""
    from evenhand.cli.judging import end, judge_all
    from evenhand.cli.session import opened_store
    from evenhand.runs import JudgePlan, PairFiles
    from evenhand.trust.preparation_trials import TriedRun, compare_choices

    runs = []
    for choice in [Choice(()), *read_choices(given)]:
        own = replace(config, prepare=choice.prepare)
        if choice.judge is not None:
            own = replace(own, judge=choice.judge)
        opened = own.open_judge()
        summary = judge_all(
            PairFiles((open_data(),), reading),
            [JudgePlan(opened, own)],
            replace(options, name=options.name and f"{options.name}-{choice.name}"),
            as_json=as_json,
            confirm_above=confirm_above,
        )
        if not summary.finished:
            end(summary, as_json=as_json)
        runs.append(TriedRun(choice.prepare, summary.run))
        options = _less(options, summary)
    with opened_store(str(options.store) if options.store else None) as store:
        trial = compare_choices(store, runs, level=level)
    session.present(trial, show_trial, as_json=as_json)
    raise typer.Exit(Status.OK)


def _less(options: RunOptions, summary: RunSummary) -> RunOptions:
    """What is left of the caps; without a call, what is stored still gives its verdicts."""
    calls, cost = options.max_calls, options.max_cost
    if calls is not None:
        calls = max(0, calls - summary.calls)
    if cost is not None:
        cost = max(1e-9, cost - (summary.cost_usd or 0.0))
    return replace(options, max_calls=calls, max_cost=cost)


def show_trial(console: Console, trial: PreparationTrial) -> None:
    from rich.text import Text

    console.print(Text(one_line(trial.sentence), "bold"), soft_wrap=True)
    console.print()
    columns = ["prepare", "right, %", "gain, points", "mended", "harmed", "calls a pair"]
    priced = any(each.cost_a_pair_usd != 0 for each in trial.tried)
    table = table_of(*columns, *(["cost a pair"] if priced else []), left=("prepare",))
    for each in trial.tried:
        table.add_row(*_cells(each, priced=priced))
    console.print(table)
    console.print()
    together = counted(len(trial.tried) - 1, "gain")
    console.print(
        Text(
            f"{counted(trial.pairs, 'labelled pair')}; the intervals of {together} hold together "
            f"({100 * trial.level:g} %). An inconsistent pair counts as a coin does.",
            "dim",
        )
    )


def _cells(tried: TriedChoice, *, priced: bool) -> list[str]:
    cost = tried.cost_a_pair_usd
    cells = [
        ",".join(tried.prepare) or "none",
        share(tried.accuracy).replace(" %", ""),
        _points(tried),
        "" if tried.mended is None else str(tried.mended.part),
        "" if tried.harmed is None else str(tried.harmed.part),
        f"{tried.calls_a_pair:.1f}",
    ]
    return [*cells, "not known" if cost is None else dollars(cost)] if priced else cells


def _points(tried: TriedChoice) -> str:
    if tried.gain is None:
        return ""
    if tried.gain.value is None or tried.gain.low is None or tried.gain.high is None:
        return tried.gain.reason or "not enough data"
    shown = [100 * each for each in (tried.gain.value, tried.gain.low, tried.gain.high)]
    return f"{shown[0]:+.1f} ({shown[1]:+.1f} to {shown[2]:+.1f})"
