"""The commands of registered analyses: a run and options in, what the analysis says out."""

from __future__ import annotations

import errno
import inspect
import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from evenhand import formats
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
from evenhand.cli.judging_first import FILE_OR_RUN, judged_first, judging_flags, show_stop
from evenhand.cli.options import (
    Given,
    JudgeChoices,
    PairRules,
    flags_of,
    open_judge,
    parameter,
    with_help_all,
    with_parameters,
)
from evenhand.cli.session import named_or_latest, opened_store
from evenhand.errors import InputError
from evenhand.messages import Language, Message
from evenhand.options import JudgingOptions
from evenhand.present.terminal import one_line

if TYPE_CHECKING:
    from evenhand.analyses.gate import GateReport
    from evenhand.data.battles import BattleFile
    from evenhand.report.conclusions import Conclusions
    from evenhand.runs import JudgePlan
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
_RUNS_TOGETHER = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[RUN]...", help="Runs to combine. Default: the latest.", show_default=False
    ),
]
_LATEST = Annotated[bool, typer.Option("--latest", help="Check the latest run in the store.")]
_BATTLES = Annotated[
    str | None,
    typer.Option(
        "--battles",
        metavar="FILE",
        help="A file of battles instead of runs: model_a, model_b and winner (or preference), "
        f"optionally prompt, weight and tags; {formats.listed()}; - for standard input.",
    ),
]
_BAD_ROWS = Annotated[
    Literal["stop", "skip"] | None,
    typer.Option(
        "--bad-rows",
        help="With --battles. stop: an invalid row is an error; skip: it is skipped and "
        "counted. Default: stop.",
    ),
]
_PAIRS = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[PAIRS]...",
        help="Files of pairs to estimate the cost from, with --judge and -c as in evenhand run.",
        show_default=False,
    ),
]


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
        if plot := self.files.get("plot"):
            from evenhand.present.charts import chart_format

            chart_format(plot)
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

    @property
    def shown(self) -> frozenset[str]:
        """What the text shows on demand."""
        return frozenset(name for name, _ in self.analysis.shows if name in self.values)

    def subject(self, store: Store | None, *runs: str) -> AnalysisSubject:
        """Those runs, and those that options name."""
        from evenhand.report.lookup import find_run
        from evenhand.settings import load_settings

        named = (*runs, *run_names(self.options))
        found = tuple(find_run(store, run) for run in named) if store is not None else ()
        return AnalysisSubject(store, found, load_settings())

    def compute(self, subject: AnalysisSubject) -> Any:
        options = self.options
        result = self.analysis.implementation.compute(subject, options)
        return finished(self.analysis, result, options)

    def write(self, result: Any, subject: AnalysisSubject) -> list[str]:
        """What was written, a line each."""
        lines: list[str] = []
        for name, path in self.files.items():
            if name == "html":
                conclusions = concluded(self.analysis, result, subject)
                lines += _write_html(conclusions, subject.store, path, **self._of_html)
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


def _write_html(
    conclusions: Conclusions, store: Store, path: Path, *, locale: Language = "en", **given: Any
) -> list[str]:
    from evenhand.present.html.one_file import write_html_report
    from evenhand.present.html.one_file_pairs import usable_processes

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
    shown = (
        parameter(name, Annotated[bool, typer.Option(f"--{name}", help=about)], False)
        for name, about in analysis.shows
    )
    of_html = () if analysis.html_options is None else flags_of(analysis.html_options.rows())
    return (*flags_of(rows), *shown, *files, *of_html)


class GateChoices(AnalysisChoices):
    """What a gate asks of a run, where a command judges first."""

    analysis = GATE
    flags = flags_with_files(GATE)


def show(analysis: AnalysisEntry, result: Any, *shown: Collection[str]) -> None:
    from evenhand.present.blocks import show_blocks

    show_blocks(session.out(), session.err(), analysis.implementation.blocks(result, *shown))


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
        beside = kind(**{each.name: given.pop(each.name) for each in kind.flags})
        chosen = Choices(**given)
        beside.check(chosen, runs=any(named), store=store)
        chosen.begin()
        given |= {"named": named[0] if named else None, "store": store}
        with _subject(chosen, named, beside, given, as_json=as_json) as subject:
            result = chosen.compute(subject)
            written = chosen.write(result, subject)
        if as_json:
            session.write_json(result)
        else:
            show(analysis, result, *([chosen.shown] if analysis.shows else []))
            for line in written:
                session.write_text(one_line(line))
        for each in subject.judged[-1:]:
            show_stop(each.summary, store)
        session.leave(status_of(analysis, result))

    arguments = _arguments(analysis)
    kind = _BESIDE_RUNS.get(analysis.takes, BesideRuns)
    latest = [parameter("latest", _LATEST, False)] if analysis.named else []
    flags = with_help_all(
        (*latest, *kind.flags, *Choices.flags, parameter("store", opt.StoreAddress, None))
    )
    if analysis.judges_first != "nothing":
        flags = judging_flags(analysis, Choices.flags)
    return with_parameters(
        command,
        f"{analysis.summary}\n\n{analysis.about}",
        (*arguments, *flags, parameter("as_json", opt.AsJson, False)),
    )


@contextmanager
def _subject(
    chosen: AnalysisChoices,
    named: Sequence[Any],
    beside: BesideRuns,
    given: Mapping[str, Any],
    *,
    as_json: bool,
) -> Iterator[AnalysisSubject]:
    """What is judged first, or stored runs and what stands beside them."""
    analysis = chosen.analysis
    if analysis.judges_first != "nothing":
        judging = judged_first(analysis, chosen.options, given, as_json=as_json)
        with judging as (store, judged):
            runs = [each.summary.run for each in judged] or named
            yield replace(chosen.subject(store, *runs), judged=judged)
        return
    with ExitStack() as stack:
        subject = chosen.subject(None)
        if beside.needs_store(chosen):
            opened = stack.enter_context(opened_store(given["store"]))
            subject = chosen.subject(opened, *_runs(analysis, named, opened))
        yield beside.added(subject, chosen, stack)


def _arguments(analysis: AnalysisEntry) -> tuple[inspect.Parameter, ...]:
    """What names its runs."""
    if analysis.takes == "data":
        return ()
    if analysis.judges_first != "nothing":
        file = parameter("labelled", FILE_OR_RUN, None)
        return (file,) if analysis.judges_first == "file" else ()
    if analysis.takes == "two runs":
        required = inspect.Parameter.empty
        return parameter("first", _FIRST, required), parameter("second", _SECOND, required)
    if analysis.takes == "runs":
        return (parameter("names", _RUNS, inspect.Parameter.empty),)
    if analysis.takes == "runs or battles":
        return (parameter("names", _RUNS_TOGETHER, None),)
    return (parameter("name", _NAMED if analysis.named else opt.LatestOrNamed, None),)


def _runs(analysis: AnalysisEntry, named: Sequence[Any], store: Store) -> Sequence[str]:
    """The run that it is of, then the others."""
    if analysis.takes == "data":
        return ()
    if analysis.takes == "two runs":
        return named[::-1]
    if analysis.takes == "run" or not named[0]:
        return [named_or_latest(store, named[0] or None)]
    names: list[str] = named[0]
    return names


def _named_once(name: str | None, *, latest: bool) -> None:
    """In CI with a shared store, a forgotten name must not gate the wrong run."""
    if name is None and not latest:
        raise InputError(Message("command.no_run_to_gate"))
    if name is not None and latest:
        raise InputError(Message("command.latest_and_run", name=name))


# What an analysis may be of beside runs, or in their place.


class BesideRuns(Given):
    """Nothing."""

    def check(self, chosen: AnalysisChoices, *, runs: bool, store: str | None) -> None:
        """Refuse what does not go together."""

    def needs_store(self, chosen: AnalysisChoices) -> bool:
        return True

    def added(
        self, subject: AnalysisSubject, chosen: AnalysisChoices, stack: ExitStack
    ) -> AnalysisSubject:
        """The subject with it; what was opened for it is closed with the stack."""
        return subject


class BattleChoices(BesideRuns):
    """Which file of battles, and how its rows are read."""

    flags = (
        parameter("battles", _BATTLES, None),
        parameter("columns", opt.ColumnMap, None),
        parameter("bad_rows", _BAD_ROWS, None),
    )

    @property
    def named(self) -> bool:
        return "battles" in self.values

    def check(self, chosen: AnalysisChoices, *, runs: bool, store: str | None) -> None:
        """A file, or runs: and of the options those that it has a use for."""
        if not self.named:
            for _, option in self.given():
                raise InputError(Message("command.belongs_to_battles", option=option))
            return
        of_runs = [option for name, option in chosen.given() if name in chosen.analysis.of_runs]
        for option in [*of_runs, *(["--store"] if store is not None else [])]:
            raise InputError(Message("command.belongs_to_runs", option=option))
        if runs:
            raise InputError(Message("command.runs_or_battles"))

    def needs_store(self, chosen: AnalysisChoices) -> bool:
        return not self.named

    def added(
        self, subject: AnalysisSubject, chosen: AnalysisChoices, stack: ExitStack
    ) -> AnalysisSubject:
        return replace(subject, battles=self._read()) if self.named else subject

    def _read(self) -> BattleFile:
        from evenhand.cli.inputs import data_path, mapped_columns
        from evenhand.data.battles import read_battles
        from evenhand.data.source import open_source

        with open_source(data_path(self.values["battles"])) as source:
            return read_battles(
                source,
                columns=mapped_columns(self.values.get("columns")),
                skip_bad_rows=self.values.get("bad_rows") == "skip",
            )


class DataChoices(BesideRuns, JudgeChoices):
    """Which data are to be judged, by whom, and what a judge's cost depends on."""

    flags = (
        parameter("files", _PAIRS, None),
        parameter("a", opt.FileA, None),
        parameter("b", opt.FileB, None),
        parameter("judge_names", opt.JudgeNames, None),
        parameter("criteria", opt.Criteria, None),
        parameter("columns", opt.ColumnMap, None),
        *flags_of(
            map(JudgingOptions.row, ("base_url", "locale", "mode", "prepare", "prepare_with"))
        ),
    )

    @property
    def named(self) -> bool:
        return not self.values.keys().isdisjoint(("files", "a", "b"))

    def check(self, chosen: AnalysisChoices, *, runs: bool, store: str | None) -> None:
        if store is not None and not self.needs_store(chosen):
            rows = chosen.analysis.options.rows()
            flag = next(row.flag for row in rows if row.option.names == "run")
            raise InputError(Message("command.belongs_to", option="--store", other=flag))
        if not self.named:
            for _, option in self.given():
                raise InputError(Message("command.belongs_to_pairs", option=option))

    def needs_store(self, chosen: AnalysisChoices) -> bool:
        return bool(run_names(chosen.options))

    def added(
        self, subject: AnalysisSubject, chosen: AnalysisChoices, stack: ExitStack
    ) -> AnalysisSubject:
        from evenhand.cli.inputs import read_options, read_sources
        from evenhand.cli.run import DataFiles
        from evenhand.runs import JudgePlan

        if not self.named:
            return subject
        given, options = self.values, chosen.options
        rules = PairRules(criteria=given.get("criteria"), no_swap=options.no_swap)
        reading = read_options(given.get("columns"), rules, criteria_needed=True)
        names = given.get("judge_names") or [None]
        configs = [self.config(each, samples=options.samples) for each in names]
        judges = tuple(JudgePlan(open_judge(config), config) for config in configs)
        stack.callback(_close, judges)
        files = DataFiles(pairs=given.get("files"), a=given.get("a"), b=given.get("b"))
        data = read_sources(files, reading)
        stack.callback(data.close)
        return replace(subject, data=data, judges=judges)


def _close(judges: Sequence[JudgePlan]) -> None:
    async def close() -> None:
        for each in judges:
            await each.judge.close()

    session.run_async(close())


_BESIDE_RUNS: Mapping[str, type[BesideRuns]] = {
    "runs or battles": BattleChoices,
    "data": DataChoices,
}


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
    subject = choices.subject(store, run)
    ruled: GateReport = choices.compute(subject)
    if not finished:
        reason = Message("gate.not_gated", run=run)
        ruled = ruled.model_copy(update={"ruling": "undecided", "checks": (), "reason": reason})
    choices.write(ruled, subject)
    return ruled
