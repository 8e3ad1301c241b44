"""`evenhand probe`: a judge against pairs whose verdict is known without labels."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from evenhand.cli import options as opt
from evenhand.cli import session
from evenhand.cli.figures import counted, counted_share, dollars, number, share_as_rate
from evenhand.cli.options import JudgeChoices, RunLimits, flags_given, grouped_showing, open_judge
from evenhand.errors import InputError, Status
from evenhand.messages import Message, render
from evenhand.messages.numbers import rate
from evenhand.present.terminal import (
    one_line,
    print_where_it_fits,
    show_facts,
    show_hanging,
    table_of,
)

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from evenhand.contract import Locale
    from evenhand.judges.protocol import Judge
    from evenhand.judging.config import JudgeConfig
    from evenhand.runs import RunOptions
    from evenhand.trust.probes.cases import ProbeCase, ProbeList
    from evenhand.trust.probes.scores import (
        FailingCase,
        HabitState,
        JudgeAnswer,
        ProbeReport,
        ProbeScore,
        Ruling,
        Score,
    )


ProbeNames = Annotated[
    list[str] | None,
    typer.Option("--probe", metavar="NAME", help="Run only this probe (see --list). Repeatable."),
]
ProbeLanguages = Annotated[
    Literal["en", "zh", "both"],
    typer.Option(
        "--locale",
        help="The language of the texts and the prompt.",
    ),
]
MinScore = Annotated[
    float | None,
    typer.Option(
        "--min-score",
        help="Exit with 1 if the score of all probes, or of any one, is clearly below this, "
        "and with 6 if that is undecided. From 0 to 1.",
    ),
]
ListProbes = Annotated[
    bool,
    typer.Option(
        "--list", help=("List the probes and what they expect, without asking the judge.")
    ),
]
Details = Annotated[
    bool,
    typer.Option(
        "--details",
        help=(
            "Also show every probe's counts, by language, and failing cases with the "
            "judge's answers."
        ),
    ),
]
ProbeRunName = Annotated[
    str | None,
    typer.Option(
        "--name",
        help=(
            "The run's name; NAME-en and NAME-zh with both languages. Default: derived from "
            "the options."
        ),
    ),
]


_STATUS: dict[Ruling, int] = {
    "pass": Status.OK,
    "fail": Status.GATE_FAILED,
    "undecided": Status.UNDECIDED,
}


@grouped_showing(
    "probes",
    "criteria",
    "min_score",
    "listed",
    "details",
)
def probe(
    *,
    context: typer.Context,
    judge: opt.JudgeName = None,
    probes: ProbeNames = None,
    locale: ProbeLanguages = "both",
    criteria: opt.Criteria = None,
    min_score: MinScore = None,
    listed: ListProbes = False,
    name: ProbeRunName = None,
    limits: RunLimits,
    judging: JudgeChoices,
    details: Details = False,
    as_json: opt.AsJson = False,
) -> None:
    """Test a judge on pairs with a known verdict.

    Flattery, injections, padding, nonsense: which biases it has, and how certain that is.

    Exit codes: 0 every pair was asked (and the score is above --min-score), 1 below
    --min-score, 2 bad input or a store error, 3 the judge failed, 5 a cap was reached, 6
    undecided whether it is above --min-score, 130 interrupted.
    """
    from evenhand.cli.inputs import read_criterion
    from evenhand.contract import read_criteria
    from evenhand.trust.probes.cases import probe_cases
    from evenhand.trust.probes.scores import check_threshold

    languages: tuple[Locale, ...] = ("en", "zh") if locale == "both" else (locale,)
    given = read_criteria([read_criterion(each) for each in criteria]) if criteria else ()
    cases = probe_cases(probes or (), languages, criteria=given)
    if listed:
        _refuse_judging(context)
        _list(cases, as_json=as_json)
        return
    check_threshold(min_score)
    options = limits.options(name)
    configs = {language: judging.config(judge, locale=language) for language in languages}
    opened = open_judge(configs[languages[0]])
    report = _probed(
        opened,
        cases,
        configs,
        options,
        as_json=as_json,
        confirm_above=limits.asks_above,
        min_score=min_score,
    )
    _end(report, details=details, as_json=as_json)


def _refuse_judging(context: typer.Context) -> None:
    names = [each.name for each in (*RunLimits.flags, *JudgeChoices.flags)]
    for flag in flags_given(context, (each for each in names if each != "locale")):
        raise InputError(Message("command.no_effect_with", option=flag, other="--list"))


def _list(cases: Sequence[ProbeCase], *, as_json: bool) -> None:
    from evenhand.trust.probes.cases import list_probes

    session.present(list_probes(cases), show_listing, as_json=as_json)


def _probed(
    judge: Judge,
    cases: Sequence[ProbeCase],
    configs: dict[Locale, JudgeConfig],
    options: RunOptions,
    *,
    as_json: bool,
    confirm_above: float | None,
    min_score: float | None,
) -> ProbeReport:
    from evenhand.cli.progress import watching
    from evenhand.runs import JudgePlan
    from evenhand.store import open_store
    from evenhand.trust.probes.runs import probe_judge

    async def work() -> ProbeReport:
        watch = watching([judge], as_json=as_json, confirm_above=confirm_above)
        try:
            with open_store(options.store) as store, watch as (view, stop):
                return await probe_judge(
                    {language: JudgePlan(judge, own) for language, own in configs.items()},
                    cases,
                    options,
                    store=store,
                    stop=stop,
                    observer=view,
                    min_score=min_score,
                )
        finally:
            await judge.close()

    return session.run_async(work())


def _end(report: ProbeReport, *, details: bool, as_json: bool) -> None:
    session.present(report, partial(show_probes, details=details), as_json=as_json)
    if report.stopped_by == "interrupt":
        raise SystemExit(Status.INTERRUPTED)  # and not Exit, of which main would say so again
    raise typer.Exit(_exit_code(report))


def _exit_code(report: ProbeReport) -> int:
    from evenhand.runs import STOPPED_STATUS

    if report.stopped_by is not None:
        return STOPPED_STATUS[report.stopped_by]
    return Status.OK if report.ruling is None else _STATUS[report.ruling]


# Probes as a person reads them: the list, the scores, and the cases to look at.

_SHOWN_OF_EACH = 3
_QUOTED = 160
_HABITS: dict[HabitState, str] = {"shown": "habit    ", "unclear": "unclear  "}
_HABIT_STYLE = {"shown": "red", "unclear": "yellow"}
_LANGUAGE: dict[Locale, str] = {"en": "English", "zh": "Chinese"}
_RULING_STYLE = {"pass": "bold green", "fail": "bold red", "undecided": "bold yellow"}
_STOPPED = {
    "max-calls": "reached --max-calls",
    "max-cost": "reached --max-cost",
    "interrupt": "interrupted",
    "judge": "the judge failed",
    "store": "the store failed",
}


def show_listing(console: Console, listed: ProbeList) -> None:
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("probe", no_wrap=True)
    table.add_column("pairs", justify="right")
    table.add_column("what the judge is shown")
    table.add_column("the right verdict")
    for each in listed.probes:
        table.add_row(each.probe, number(each.pairs), each.shows, each.expected)
    console.print(table)
    languages = " and ".join(_LANGUAGE[each] for each in listed.languages)
    console.print(Text(f"{counted(listed.pairs, 'pair')} in {languages}, each in both orders"))


def show_probes(out: Console, report: ProbeReport, *, details: bool) -> None:
    from rich.text import Text

    from evenhand.trust.probes.scores import sum_up_habits

    err = session.err()
    for note in report.notes:
        session.print_line(err, Text(f"note  {one_line(note)}"))
    out.print(Text.assemble(("judge ", "dim"), (one_line(report.judge), "bold")))
    out.print(Text(render(sum_up_habits(report.overall, report.probes)), "bold"))
    out.print()
    _show_habits(out, report)
    if details:
        out.print()
        _show_scores(out, report)
        _show_languages(out, report)
        _show_failing(out, report)
    out.print()
    show_facts(out, _closing(report, details=details), width=8)
    if report.ruling is not None:
        ruled = Text.assemble((report.ruling, _RULING_STYLE[report.ruling]))
        session.print_line(out, ruled.append(f"  {report.ruling_reason}", ""))
    if report.error is not None:
        session.print_line(err, Text(f"error  {one_line(report.error.message)}"))
    if report.stopped_by is not None:
        why, left = _STOPPED[report.stopped_by], counted(report.overall.pending, "case")
        line = f"stopped: {why}; {left} not asked yet; run the same command to continue"
        session.print_line(err, Text(line))


def _show_habits(console: Console, report: ProbeReport) -> None:
    """A line a probe, the worst first; those that never failed together."""
    from rich.text import Text

    from evenhand.stats.estimates import EstimatedShare
    from evenhand.trust.probes.scores import habit_of

    found: dict[HabitState, list[ProbeScore]] = {}
    for probe in sorted(report.probes, key=lambda each: each.share.value or 0.0):
        found.setdefault(habit_of(probe), []).append(probe)
    for state, label in _HABITS.items():
        for probe in found.get(state, ()):
            share = probe.share
            failed = EstimatedShare(
                part=share.of - share.part,
                of=share.of,
                value=None if share.value is None else 1 - share.value,
                low=None if share.high is None else 1 - share.high,
                high=None if share.low is None else 1 - share.low,
                reason=share.reason,
            )
            habit = Message(f"probe.{probe.probe}")
            line = Text.assemble((f"{probe.probe:<10} ", "bold"), f"{habit}: fails ")
            show_hanging(console, Text(label, _HABIT_STYLE[state]), line + counted_share(failed))
    if unseen := found.get("unseen"):
        names = ", ".join(probe.probe for probe in unseen)
        lows = [probe.share.low for probe in unseen if probe.share.low is not None]
        most = f"; each may still fail in up to {rate(1 - min(lows))} of cases" if lows else ""
        show_hanging(console, Text("passed   ", "green"), Text(f"{names}{most}"))
    if missing := found.get("no_data"):
        names = ", ".join(probe.probe for probe in missing)
        show_hanging(console, Text("no data  ", "dim"), Text(names))


def _show_scores(console: Console, report: ProbeReport) -> None:
    if not print_where_it_fits(console, _score_table(report, expected=True)):
        console.print(_score_table(report, expected=False))


def _score_table(report: ProbeReport, *, expected: bool) -> Table:
    """Without what is expected where it is too wide; --list has that too."""
    pending = report.overall.pending > 0
    score = "score, 95% interval"
    columns = ["probe", *(["expected"] if expected else [])]
    columns += ["cases", "passed", "wrong", "inconsistent", "invalid"]
    columns += [*(["pending"] if pending else []), score]
    table = table_of(*columns, left=("probe", "expected", score))
    for each in report.probes:
        cells = [each.expected] if expected else []
        table.add_row(each.probe, *cells, *_cells(each, pending))
    if len(report.probes) > 1:
        nothing = [""] if expected else []
        table.add_row("all", *nothing, *_cells(report.overall, pending), style="bold")
    return table


def _cells(score: Score, pending: bool) -> list[str]:
    counts = [score.n, score.passed, score.wrong, score.inconsistent, score.invalid]
    if pending:
        counts.append(score.pending)
    return [*map(number, counts), share_as_rate(score.share)]


def _show_languages(console: Console, report: ProbeReport) -> None:
    """Only where a probe's score is another in another language."""
    from rich.text import Text

    lines = []
    for probe in report.probes:
        scores = probe.by_language
        if len({score.share.value for score in scores}) > 1:
            scored = [f"{_LANGUAGE[each.language]} {share_as_rate(each.share)}" for each in scores]
            lines.append((probe.probe, ", ".join(scored)))
    if lines:
        console.print()
        console.print(Text("by language, where it differs", "bold"))
    show_facts(console, lines, width=10, indent="  ")


def _show_failing(console: Console, report: ProbeReport) -> None:
    from rich.text import Text

    for probe in report.probes:
        if not probe.failing:
            continue
        shown = probe.failing[:_SHOWN_OF_EACH]
        more = len(probe.failing) - len(shown)
        first = f" (first {len(shown)} of {len(probe.failing)})" if more else ""
        console.print()
        console.print(Text.assemble((probe.probe, "bold"), f": failing cases{first}"))
        for case in shown:
            show_hanging(console, Text("  •"), Text(one_line(_case(case))))
            for answer in case.answers:
                if answer.text and answer.winner is not None:  # why it is unread is already shown
                    quoted = Text(f"“{_quoted(answer.text)}”", "dim")
                    show_hanging(console, Text(f"      {_place(answer, case)}"), quoted)


def _case(case: FailingCase) -> str:
    if len(case.ids) > 1:
        each = zip(case.languages, case.winners, strict=True)
        verdicts = ", ".join(f"{_LANGUAGE[language]} {winner}" for language, winner in each)
        return f"{' and '.join(case.ids)}: {verdicts}; {case.fault}"
    orders = " then ".join(answer.winner or "unread" for answer in case.answers)
    # Of two orders that differ the mean decided.
    mean = case.state == "wrong" and len({answer.winner for answer in case.answers}) > 1
    verdict = f" (on average {case.winners[0]})" if mean else ""
    return f"{case.ids[0]}: expected {case.expected}, got {orders}{verdict}; {case.fault}"


def _place(answer: JudgeAnswer, case: FailingCase) -> str:
    order = "first" if answer.order == "original" else "second"
    return f"{answer.language} {order}" if len(case.ids) > 1 else order


def _quoted(text: str) -> str:
    answer = one_line(text)
    return answer if len(answer) <= _QUOTED else answer[: _QUOTED - 1] + "…"


def _closing(report: ProbeReport, *, details: bool) -> Iterator[tuple[str, str]]:
    for run in report.runs:
        what = f"{_LANGUAGE[run.language]}, {counted(run.pairs, 'pair')}"
        if run.run is None:
            yield "run", f"{what}: not started"
            continue
        parts = [what, counted(run.calls, "call")]
        if run.reused_passes:
            parts.append(f"{counted(run.reused_passes, 'pass', 'passes')} reused")
        parts.append("cost unknown" if run.cost_usd is None else dollars(run.cost_usd))
        yield "run", f"{one_line(run.run)}: {', '.join(parts)}"
    if any(probe.failing for probe in report.probes):
        if not details:
            yield (
                "look",
                (
                    "run the same command with --details to see failing cases; nothing is asked "
                    "again"
                ),
            )
        else:
            yield "look", "see a case in full with evenhand show RUN ID; --json has all of them"
