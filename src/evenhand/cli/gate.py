"""`evenhand gate`: pass or fail a build by a run's win rate."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from evenhand.cli import options as opt
from evenhand.cli import session
from evenhand.cli.options import Claiming, Counting, first_given, grouped
from evenhand.cli.session import named_or_latest, opened_store
from evenhand.cli.terminal import one_line
from evenhand.errors import InputError, Status
from evenhand.messages import Message

if TYPE_CHECKING:
    from rich.console import Console

    from evenhand.report.gate import GateReport, Ruling
    from evenhand.stats.rates.win_rate import Doubt
    from evenhand.store import Store

STATUS: dict[Ruling, int] = {
    "pass": Status.OK,
    "fail": Status.GATE_FAILED,
    "undecided": Status.UNDECIDED,
}
# What takes a doubt away, where something can.
_REMEDIES: dict[Doubt, str] = {
    "one_order": "judge both orders (run without --no-swap), or take one with --allow-one-order",
    "missing": "--retry what has no verdict, or allow more with --max-invalid and --max-skipped",
    "pending": "finish the run: the same evenhand run goes on",
    "position": "take another judge; evenhand audit and evenhand probe tell how far to trust one",
    "drawn_order": "judge more pairs in both orders with --both-orders; evenhand plan --orders "
    "random tells how many",
    "ties": "take another judge, or show by labels or evenhand probe that this one can tell",
}
_STYLE: dict[Ruling, str] = {"pass": "bold green", "fail": "bold red", "undecided": "bold yellow"}


@dataclass(frozen=True, slots=True, kw_only=True)
class GateChoices:
    """What a gate asks of a run: the options of `gate`, and of --gate where a command judges."""

    min_win_rate: Annotated[
        float | None,
        typer.Option(
            "--min-win-rate", help="What the win rate has to be above, from 0 to 1. Default: 0.5."
        ),
    ] = None
    alpha: Annotated[
        float | None,
        typer.Option("--alpha", help="The interval is at the level 1 - alpha. Default: 0.05."),
    ] = None
    counting: Counting
    max_inconsistent: Annotated[
        float | None,
        typer.Option(
            "--max-inconsistent",
            help="Undecided where the orders chose differently in a larger share of pairs.",
        ),
    ] = None
    claiming: Claiming
    corrected: Annotated[
        bool,
        typer.Option(
            "--corrected",
            help="Gate the win rate corrected by people's labels (see evenhand correct).",
        ),
    ] = False
    labels_are: Annotated[
        Literal["random"] | None,
        typer.Option(
            "--labels-are",
            help="With --corrected, random: your word that the labelled pairs were drawn at "
            "random.",
        ),
    ] = None
    junit: Annotated[
        Path | None, typer.Option("--junit", metavar="FILE", help="Write it as JUnit XML too.")
    ] = None

    def check(self) -> None:
        """Refuse what does not go together, before anything is judged for it."""
        if self.labels_are is not None and not self.corrected:
            raise InputError(
                Message("command.both_or_neither", option="--labels-are", other="--corrected")
            )

    def rule(self, store: Store, run: str) -> GateReport:
        from evenhand.report.gate import gate_run
        from evenhand.settings import load_settings

        settings = load_settings()
        set_up, counting = settings.gate, self.counting
        min_win_rate = first_given(self.min_win_rate, set_up.min_win_rate, 0.5)
        alpha = first_given(self.alpha, set_up.alpha, 0.05)
        limits = self.claiming.limits(counting)
        if self.corrected:
            from evenhand.trust.correction import gate_corrected

            return gate_corrected(
                store,
                run,
                min_win_rate=min_win_rate,
                alpha=alpha,
                side=counting.side,
                ties=counting.ties,
                limits=limits,
                labels_are_random=self.labels_are == "random",
            )
        max_inconsistent = self.max_inconsistent
        return gate_run(
            store,
            run,
            min_win_rate=min_win_rate,
            alpha=alpha,
            side=counting.side,
            ties=counting.ties,
            limits=limits,
            max_inconsistent=set_up.max_inconsistent
            if max_inconsistent is None
            else max_inconsistent,
            families=settings.families,
        )

    def write(self, ruled: GateReport) -> None:
        if self.junit is not None:
            from evenhand.report.gate import write_junit

            write_junit(ruled, self.junit)


@grouped
def gate(
    *,
    name: opt.LatestOrNamed = None,
    latest: Annotated[
        bool, typer.Option("--latest", help="Gate the latest run of the store.")
    ] = False,
    choices: GateChoices,
    store: opt.StoreAddress = None,
    as_json: opt.AsJson = False,
) -> None:
    """Pass, fail or stay undecided by the interval of a run's win rate.

    Limits that are not given are those of [gate] in the config file. Exit codes: 0 it lies above
    the threshold, 1 below, 6 undecided, 2 bad input.
    """
    _named_once(name, latest=latest)
    choices.check()
    with opened_store(store) as opened:
        ruled = choices.rule(opened, named_or_latest(opened, name))
    choices.write(ruled)
    session.present(ruled, show_gate, as_json=as_json)
    raise typer.Exit(STATUS[ruled.ruling])


def _named_once(name: str | None, *, latest: bool) -> None:
    """A shared store in CI must not gate the wrong run because somebody forgot its name."""
    if name is None and not latest:
        raise InputError(Message("command.no_run_to_gate"))
    if name is not None and latest:
        raise InputError(Message("command.latest_and_run", name=name))


def _remedies(ruled: GateReport) -> Iterator[str]:
    for check in ruled.checks:
        yield from (_REMEDIES[doubt] for doubt in check.doubts)
        yield from (hold.remedy for hold in check.holds if hold.remedy is not None)


def show_gate(console: Console, ruled: GateReport) -> None:
    from rich.text import Text

    several = len({check.judge for check in ruled.checks}) > 1
    for check in ruled.checks:
        by = f"{check.judge}: " if several else ""
        console.print(Text(one_line(f"{by}{check.sentence}")), soft_wrap=True)
    lines = [(check.ruling, check.line) for check in ruled.checks]
    for ruling, line in lines or [(ruled.ruling, ruled.reason or "")]:
        # A line of a log stays a line.
        shown = Text.assemble((ruling, _STYLE[ruling]), f"  {one_line(line)}")
        console.print(shown, soft_wrap=True)
    if ruled.ruling == "undecided":
        for remedy in dict.fromkeys(_remedies(ruled)):
            session.err().print(Text(f"next  {remedy}"), soft_wrap=True)
    if len(lines) > 1:
        passed = sum(ruling == "pass" for ruling, _ in lines)
        whole = f"  all in all: {passed} of {len(lines)} pass"
        console.print(Text.assemble((ruled.ruling, _STYLE[ruled.ruling]), whole))
