"""`evenhand gate`: pass or fail a build by a run's win rate."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from evenhand.cli import options as opt
from evenhand.cli import session
from evenhand.cli.options import Claiming, Counting, first_given, given_options, grouped
from evenhand.cli.session import named_or_latest, opened_store
from evenhand.errors import InputError, Status
from evenhand.messages import Message
from evenhand.present.terminal import one_line

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
    "one_order": (
        "judge both orders (run without --no-swap), or accept one with --allow-one-order"
    ),
    "missing": (
        "use --retry for pairs without a verdict, or --missing half if they are like the rest"
    ),
    "pending": "finish the run with the same evenhand run command",
    "position": "use another judge; check it with evenhand audit and evenhand probe",
    "drawn_order": "judge more pairs in both orders with --both-orders; evenhand plan "
    "--orders random says how many",
    "ties": "use another judge, or show with labels or evenhand probe that this one can "
    "tell a difference",
}
_STYLE: dict[Ruling, str] = {"pass": "bold green", "fail": "bold red", "undecided": "bold yellow"}


@dataclass(frozen=True, slots=True, kw_only=True)
class GateChoices:
    """What a gate asks of a run: the options of `gate`, and of --gate where a command judges."""

    min_win_rate: Annotated[
        float | None,
        typer.Option(
            "--min-win-rate",
            min=0,
            max=1,
            help="The win rate to exceed, from 0 to 1. Default: 0.5.",
        ),
    ] = None
    require: Annotated[
        list[str] | None,
        typer.Option(
            "--require",
            metavar="PART>RATE",
            help="Require win rates, all of which must hold: 'overall>0.5', 'safety>=0.45' "
            "(a criterion), 'tag:refunds>=0.4' (a tag). Repeatable.",
        ),
    ] = None
    assume_accuracy: Annotated[
        float | None,
        typer.Option(
            "--assume-accuracy",
            help="How often you assume the judge is right when it names a winner, for limits "
            "below 0.5 without labels; shown with the result.",
        ),
    ] = None
    alpha: Annotated[
        float | None,
        typer.Option(
            "--alpha", help=("The interval's confidence level is 1 - alpha. Default: 0.05.")
        ),
    ] = None
    counting: Counting
    max_inconsistent: Annotated[
        float | None,
        typer.Option(
            "--max-inconsistent",
            min=0,
            max=1,
            help="Undecided if a larger share of pairs flips.",
        ),
    ] = None
    claiming: Claiming
    corrected: Annotated[
        bool,
        typer.Option(
            "--corrected",
            help="Undecided unless human labels correct the win rate (see evenhand correct).",
        ),
    ] = False
    junit: Annotated[
        Path | None, typer.Option("--junit", metavar="FILE", help="Also write JUnit XML.")
    ] = None
    html: Annotated[
        Path | None,
        typer.Option("--html", metavar="FILE", help="Also write the report as one HTML file."),
    ] = None

    def begin(self) -> None:
        """Refuse what does not go together before anything is judged for it, and remove files of
        an earlier gate: whatever happens now, none of them is taken for this one's."""
        from evenhand.report.requirements import read_requirements

        read_requirements(self.require or ())
        if self.require and self.min_win_rate is not None:
            raise InputError(
                Message("command.not_together", option="--require", other="--min-win-rate")
            )
        ties = self.counting.ties
        if self.corrected and ties != "half":
            raise InputError(Message("trust.corrected_ties_are_half", ties=ties))
        for path in (self.junit, self.html):
            if path is None:
                continue
            if not path.expanduser().parent.is_dir():
                reason = os.strerror(errno.ENOENT).lower()
                raise InputError(Message("report.write_failed", path=path, lower=reason))
            if path.is_file() and not path.is_symlink():
                path.unlink()

    def rule(self, store: Store, run: str) -> GateReport:
        from evenhand.report.gate import gate_run
        from evenhand.settings import load_settings

        settings = load_settings()
        set_up, counting = settings.gate, self.counting
        min_win_rate = self.min_win_rate
        require: Sequence[str] = self.require or ()
        if min_win_rate is None and not require:
            min_win_rate, require = set_up.min_win_rate, set_up.require
        alpha = first_given(self.alpha, set_up.alpha, 0.05)
        limits = self.claiming.limits(counting)
        limits = limits.model_copy(update={"require_labels": self.corrected})
        max_inconsistent = self.max_inconsistent
        assumed = self.assume_accuracy
        return gate_run(
            store,
            run,
            min_win_rate=min_win_rate,
            require=require,
            assume_accuracy=set_up.assume_accuracy if assumed is None else assumed,
            alpha=alpha,
            side=counting.side,
            ties=counting.ties,
            limits=limits,
            max_inconsistent=set_up.max_inconsistent
            if max_inconsistent is None
            else max_inconsistent,
            families=settings.families,
        )

    def write(self, ruled: GateReport, store: Store) -> None:
        if self.junit is not None:
            from evenhand.report.gate import write_junit

            write_junit(ruled, self.junit)
        if self.html is not None:
            from evenhand.report.conclusions import conclude
            from evenhand.serve.pages.html_report import write_html_report
            from evenhand.serve.pages.html_report_pairs import usable_processes
            from evenhand.settings import load_settings

            concluded = conclude(
                store,
                ruled.run,
                side=ruled.side,
                ties=ruled.ties,
                level=ruled.level,
                limits=ruled.limits,
                families=load_settings().families,
            )
            write_html_report(store, concluded, self.html, processes=usable_processes())


GateFlag = Annotated[
    bool,
    typer.Option(
        "--gate",
        help="Then check this run like evenhand gate, with its options and exit codes; a run "
        "that stops early never passes.",
    ),
]


def asked_gate(
    flag: bool,
    choices: GateChoices,
    *,
    dry_run: bool,
    shared: tuple[str, ...] = ("alpha",),
) -> GateChoices | None:
    """None without --gate, to which the options belong but those that the command shares."""
    if flag:
        if not dry_run:
            choices.begin()
        return choices
    for name, option in given_options(choices):
        if name not in shared:
            raise InputError(Message("command.both_or_neither", option=option, other="--gate"))
    return None


def gate_judged(
    run: str, choices: GateChoices, at: str | Path | None, *, finished: bool
) -> GateReport:
    """The gate of a run that this command has just judged, or not to its end."""
    from evenhand.store import open_store

    with open_store(at, create=False) as store:
        ruled = choices.rule(store, run)
        if not finished:
            reason = Message("gate.not_gated", run=run)
            ruled = ruled.model_copy(update={"ruling": "undecided", "checks": (), "reason": reason})
        choices.write(ruled, store)
    return ruled


@grouped
def gate(
    *,
    name: opt.LatestOrNamed = None,
    latest: Annotated[
        bool, typer.Option("--latest", help="Check the latest run in the store.")
    ] = False,
    choices: GateChoices,
    store: opt.StoreAddress = None,
    as_json: opt.AsJson = False,
) -> None:
    """Pass, fail or stay undecided on a run's win rate, for CI.

    Limits default to [gate] in the config file. Exit codes: 0 above the threshold, 1 below, 6
    undecided, 2 bad input.
    """
    _named_once(name, latest=latest)
    choices.begin()
    with opened_store(store) as opened:
        ruled = choices.rule(opened, named_or_latest(opened, name))
        choices.write(ruled, opened)
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

    from evenhand.report.requirements import OVERALL

    several = len({check.judge for check in ruled.checks}) > 1
    # Of the whole; of parts where nothing else is required. Each of them has its line below.
    whole = [each for each in ruled.checks if each.requirement.startswith(f"{OVERALL}>")]
    concluded = ((each.judge, each.sentence) for each in whole or ruled.checks)
    for judge, sentence in dict.fromkeys(concluded):
        by = f"{judge}: " if several else ""
        session.print_line(console, Text(one_line(f"{by}{sentence}")))
    lines = [(check.ruling, check.line) for check in ruled.checks]
    for ruling, line in lines or [(ruled.ruling, ruled.reason or "")]:
        # A line of a log stays a line.
        shown = Text.assemble((ruling, _STYLE[ruling]), f"  {one_line(line)}")
        session.print_line(console, shown)
    if ruled.ruling == "undecided":
        for remedy in dict.fromkeys(_remedies(ruled)):
            session.print_line(session.err(), Text(f"next  {remedy}"))
    if len(lines) > 1:
        passed = sum(ruling == "pass" for ruling, _ in lines)
        together = f"  overall: {passed} of {len(lines)} pass"
        console.print(Text.assemble((ruled.ruling, _STYLE[ruled.ruling]), together))
