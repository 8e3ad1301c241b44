"""The commands of registered analyses: a run and options in, what the analysis says out."""

from __future__ import annotations

import errno
import inspect
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from evenhand.analyses.registry import (
    GATE,
    AnalysisEntry,
    AnalysisSubject,
    check,
    concluded,
    finished,
    run_names,
    status_of,
    write_file,
)
from evenhand.cli import options as opt
from evenhand.cli import session
from evenhand.cli.options import Given, flags_of, parameter, with_parameters
from evenhand.cli.session import named_or_latest, opened_store
from evenhand.errors import InputError
from evenhand.messages import Language, Message
from evenhand.present.terminal import one_line

if TYPE_CHECKING:
    from evenhand.analyses.gate import GateReport
    from evenhand.report.conclusions import Conclusions
    from evenhand.store import Store

_NAMED = Annotated[
    str | None, typer.Argument(metavar="[RUN]", help="The run's name; or give --latest.")
]
_FIRST = Annotated[str, typer.Argument(metavar="RUN", help="The earlier run.")]
_SECOND = Annotated[
    str, typer.Argument(metavar="RUN", help="The run to compare it with; may be the same one.")
]
_RUNS = Annotated[
    list[str], typer.Argument(metavar="RUN", help="The run; more runs over the same pairs join it.")
]
_LATEST = Annotated[bool, typer.Option("--latest", help="Check the latest run in the store.")]


class AnalysisChoices(Given):
    """The options of an analysis and the files that it writes, as a command line gave them."""

    analysis: AnalysisEntry

    @property
    def files(self) -> Mapping[str, Path]:
        names = (name for name, _ in self.analysis.files)
        return {name: Path(self.values[name]) for name in names if name in self.values}

    def begin(self) -> Any:
        """The options, once they go together. Files of an earlier command are removed: whatever
        happens now, none of them is taken for this one's."""
        options, _ = self.options, self._of_html
        check(self.analysis, options)
        for path in self.files.values():
            if not path.expanduser().parent.is_dir():
                reason = os.strerror(errno.ENOENT).lower()
                raise InputError(Message("report.write_failed", path=path, lower=reason))
            if path.is_file() and not path.is_symlink():
                path.unlink()
        return options

    @property
    def options(self) -> Any:
        return self.analysis.options(**self.checked(self.analysis.options))

    def compute(self, store: Store, *runs: str) -> Any:
        options = self.options
        subject = subject_of(store, (*runs, *run_names(options)))
        result = self.analysis.implementation.compute(subject, options)
        return finished(self.analysis, result, options)

    def write(self, result: Any, store: Store, *runs: str) -> list[str]:
        """What was written, a line each."""
        lines: list[str] = []
        for name, path in self.files.items():
            subject = subject_of(store, runs)
            if name == "html":
                conclusions = concluded(self.analysis, result, subject)
                lines += _write_html(conclusions, store, path, **self._of_html)
            elif name == "plot":
                _write_chart(self.analysis, result, path)
                lines.append(Message("command.chart_saved", path=path))
            elif line := write_file(self.analysis, name, path, result, subject):
                lines.append(line)
        return lines

    @property
    def _of_html(self) -> dict[str, Any]:
        """What goes with --html, and is refused without it."""
        options = self.analysis.html_options
        given = {} if options is None else self.checked(options)
        if given and "html" not in self.values:
            flag = next(flag for name, flag in self.given() if name in given)
            raise InputError(Message("command.belongs_to", option=flag, other="--html"))
        return given


def subject_of(store: Store, runs: Sequence[str]) -> AnalysisSubject:
    from evenhand.report.lookup import find_run
    from evenhand.settings import load_settings

    return AnalysisSubject(store, tuple(find_run(store, run) for run in runs), load_settings())


def _write_html(
    conclusions: Conclusions, store: Store, path: Path, *, locale: Language = "en", **given: Any
) -> list[str]:
    from evenhand.serve.pages.html_report import write_html_report
    from evenhand.serve.pages.html_report_pairs import usable_processes

    written = write_html_report(
        store, conclusions, path, language=locale, processes=usable_processes(), **given
    )
    n, of = written.pairs, written.judged
    held = Message("report.held_some", n=n, of=of)
    if n == of:
        held = Message("report.held_one" if n == 1 else "report.held_all", n=n)
    lines: list[str] = [Message("report.saved", path=written.path, held=held)]
    if written.cut:
        lines.append(f"note  {Message('report.texts_cut', n=written.cut)}")
    return lines


def _write_chart(analysis: AnalysisEntry, result: Any, path: Path) -> None:
    from evenhand.present.charts import CHART_WRITERS

    CHART_WRITERS[analysis.name](result, path)


def flags_with_files(analysis: AnalysisEntry) -> tuple[inspect.Parameter, ...]:
    """Its own options, then those that it shares with others, then files."""
    own = set(vars(analysis.options).get("__annotations__", ()))
    rows = sorted(analysis.options.rows(), key=lambda row: row.name not in own)
    files = (
        parameter(
            name,
            Annotated[Path | None, typer.Option(f"--{name}", metavar="FILE", help=about)],
            None,
        )
        for name, about in analysis.files
    )
    of_html = () if analysis.html_options is None else flags_of(analysis.html_options.rows())
    return (*flags_of(rows), *files, *of_html)


class GateChoices(AnalysisChoices):
    """What a gate asks of a run, where a command judges first."""

    analysis = GATE
    flags = flags_with_files(GATE)


def show(analysis: AnalysisEntry, result: Any) -> None:
    from evenhand.present.blocks import show_blocks

    show_blocks(session.out(), session.err(), analysis.implementation.blocks(result))


def command_of(analysis: AnalysisEntry) -> Callable[..., None]:
    """The command that Typer takes."""

    class Choices(AnalysisChoices):
        flags = flags_with_files(analysis)

    Choices.analysis = analysis

    def command(
        *,
        latest: bool = False,
        store: str | None = None,
        as_json: bool = False,
        **given: Any,
    ) -> None:
        named = [given.pop(each.name) for each in arguments]
        if analysis.named:
            _named_once(named[0], latest=latest)
        chosen = Choices(**given)
        chosen.begin()
        with opened_store(store) as opened:
            runs = _runs(analysis, named, opened)
            result = chosen.compute(opened, *runs)
            written = chosen.write(result, opened, *runs)
        if as_json:
            session.write_json(result)
        else:
            show(analysis, result)
            for line in written:
                session.write_text(one_line(line))
        raise typer.Exit(status_of(analysis, result))

    arguments = _arguments(analysis)
    latest = [parameter("latest", _LATEST, False)] if analysis.named else []
    return with_parameters(
        command,
        f"{analysis.summary}\n\n{analysis.about}",
        (
            *arguments,
            *latest,
            *Choices.flags,
            parameter("store", opt.StoreAddress, None),
            parameter("as_json", opt.AsJson, False),
        ),
    )


def _arguments(analysis: AnalysisEntry) -> tuple[inspect.Parameter, ...]:
    """What names its runs."""
    if analysis.takes == "two runs":
        required = inspect.Parameter.empty
        return parameter("first", _FIRST, required), parameter("second", _SECOND, required)
    if analysis.takes == "runs":
        return (parameter("names", _RUNS, inspect.Parameter.empty),)
    return (parameter("name", _NAMED if analysis.named else opt.LatestOrNamed, None),)


def _runs(analysis: AnalysisEntry, named: Sequence[Any], store: Store) -> Sequence[str]:
    """The run that it is of, then the others."""
    if analysis.takes == "two runs":
        return named[::-1]
    return named[0] if analysis.takes == "runs" else [named_or_latest(store, named[0])]


def _named_once(name: str | None, *, latest: bool) -> None:
    """In CI with a shared store, a forgotten name must not gate the wrong run."""
    if name is None and not latest:
        raise InputError(Message("command.no_run_to_gate"))
    if name is not None and latest:
        raise InputError(Message("command.latest_and_run", name=name))


# --gate of commands that judge.

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
    for name, option in choices.given():
        if name not in shared:
            raise InputError(Message("command.both_or_neither", option=option, other="--gate"))
    return None


def gate_judged(store: Store, run: str, choices: GateChoices, *, finished: bool) -> GateReport:
    """The gate of a run that this command has just judged, or not to its end."""
    ruled: GateReport = choices.compute(store, run)
    if not finished:
        reason = Message("gate.not_gated", run=run)
        ruled = ruled.model_copy(update={"ruling": "undecided", "checks": (), "reason": reason})
    choices.write(ruled, store, run)
    return ruled
