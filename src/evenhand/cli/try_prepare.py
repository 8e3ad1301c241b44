"""`evenhand audit --try-prepare`: the labelled pairs judged with each choice of preparation, and
whether one of them earns its place.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NoReturn

import typer

from evenhand.cli import session
from evenhand.cli.figures import counted
from evenhand.contract import ArtefactKind
from evenhand.errors import InputError, Status
from evenhand.messages import Message
from evenhand.messages.numbers import dollars
from evenhand.present.terminal import one_line, print_table, table_of
from evenhand.quantities import share

if TYPE_CHECKING:
    from rich.console import Console

    from evenhand.data.options import ReadOptions
    from evenhand.data.source import Source
    from evenhand.judging.config import JudgeConfig
    from evenhand.runs import RunOptions
    from evenhand.stats.estimates import EstimatedShare
    from evenhand.trust.preparation_trials import PreparationTrial, TriedChoice


@dataclass(frozen=True, slots=True)
class Choice:
    """What to prepare; a judge of its own where its answers were recorded apart."""

    prepare: tuple[ArtefactKind, ...]
    judge: str | None = None

    @property
    def name(self) -> str:
        return "-".join(self.prepare) or "none"


def read_choices(given: Sequence[str] | None) -> list[Choice]:
    """`metrics,reference`, or `metrics,reference=replay:FILE`."""
    from evenhand.options import JudgingOptions
    from evenhand.trust.preparation_trials import CHOICES

    if not given:
        return [Choice(kinds) for kinds in CHOICES]
    choices = []
    for text in given:
        kinds, equals, judge = text.partition("=")
        read = JudgingOptions.row("prepare").check("--choice", kinds)
        if not read:
            raise InputError(Message("command.choice_prepares_nothing", text=text))
        choices.append(Choice(read, judge if equals else None))
    if len({choice.prepare for choice in choices}) < len(choices):
        raise InputError(Message("command.choice_twice"))
    return choices


def try_choices(
    open_data: Callable[[], Source],
    reading: ReadOptions,
    config_for: Callable[[str | None], JudgeConfig],
    given: Sequence[str] | None,
    options: RunOptions,
    *,
    level: float,
    as_json: bool,
    confirm_above: float | None,
) -> NoReturn:
    """One run after another; the caps hold for all of them together. `config_for` resolves a choice
    with a judge of its own anew: another provider is not sent the judge's key."""
    from evenhand.cli.judging import end, judge_all
    from evenhand.runs import JudgePlan, PairFiles
    from evenhand.store import open_store
    from evenhand.trust.preparation_trials import TriedRun, compare_choices

    runs, spent = [], 0.0
    with open_store(options.store) as store:
        for choice in [Choice(()), *read_choices(given)]:
            own = replace(config_for(choice.judge), prepare=choice.prepare)
            opened = own.open_judge()
            summary = judge_all(
                PairFiles((open_data(),), reading),
                [JudgePlan(opened, own)],
                replace(options, name=options.name and f"{options.name}-{choice.name}"),
                store=store,
                as_json=as_json,
                # Of all of them together.
                confirm_above=None if confirm_above is None else max(0.0, confirm_above - spent),
            )
            spent += summary.cost_usd or 0.0
            if not summary.finished:
                end(summary, store, options, as_json=as_json)
            runs.append(TriedRun(choice.prepare, summary.run))
            options = options.less(summary.calls, summary.cost_usd)
        trial = compare_choices(store, runs, level=level)
    session.present(trial, show_trial, as_json=as_json)
    raise typer.Exit(Status.OK)


def show_trial(console: Console, trial: PreparationTrial) -> None:
    from rich.text import Text

    session.print_line(console, Text(one_line(trial.sentence), "bold"))
    console.print()
    table = table_of(
        "prepare", "right, %", "gain, points", "better/worse", "calls", left=("prepare",)
    )
    for each in trial.tried:
        changed = "" if each.gain is None else f"{_part(each.mended)}/{_part(each.harmed)}"
        right = share(each.accuracy).replace("%", "")
        cells = (_name(each), right, _points(each), changed, f"{each.calls_a_pair:.1f}")
        table.add_row(*cells)
    print_table(console, table)
    console.print()
    priced = [each for each in trial.tried if each.cost_a_pair_usd]
    together = ", valid together" if len(trial.tried) > 2 else ""
    lines = [
        f"{counted(trial.pairs, 'labelled pair')}; right means in both orders; gain counts an "
        f"inconsistent pair as half; {100 * trial.level:g}% intervals{together}.",
        *(
            f"{counted(trial.left_out, 'labelled pair')} without a recorded pass left out."
            for _ in range(trial.left_out > 0)
        ),
        *(
            f"{_name(each)}: {each.unused} of {each.written} texts were unusable."
            for each in trial.tried
            if each.unused
        ),
        *(f"{_name(each)}: {dollars(each.cost_a_pair_usd or 0.0)} per pair." for each in priced),
    ]
    for line in lines:
        console.print(Text(line, "dim"))


def _name(tried: TriedChoice) -> str:
    return ",".join(tried.prepare) or "none"


def _part(share: EstimatedShare | None) -> int:
    return 0 if share is None else share.part


def _points(tried: TriedChoice) -> str:
    if tried.gain is None:
        return ""
    if tried.gain.value is None or tried.gain.low is None or tried.gain.high is None:
        return tried.gain.reason or "not enough data"
    shown = [100 * each for each in (tried.gain.value, tried.gain.low, tried.gain.high)]
    return f"{shown[0]:+.1f} ({shown[1]:+.1f} to {shown[2]:+.1f})"
