"""The analyses there are, each a light value; what computes one is imported when it is first used,
so that `evenhand --help` loads no statistics."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol, cast

if TYPE_CHECKING:
    from evenhand.analyses.judging import JudgedStage, JudgingRequest, Stage
    from evenhand.blocks import Blocks
    from evenhand.contract.model import Model
    from evenhand.data.battles import BattleFile
    from evenhand.options import Options
    from evenhand.report.conclusions import Conclusions
    from evenhand.runs import JudgePlan, Sources
    from evenhand.settings import Settings
    from evenhand.store import RunRecord, Store

GROUP = "evenhand.analyses"  # the entry points by which other packages register theirs


# What a command names and a client addresses. Of two runs, the second is the earlier one; a file of
# battles is for the command alone, and so are data that nobody has judged, which may be left out.
Takes = Literal["data", "run", "two runs", "runs", "runs or battles"]


@dataclass(frozen=True, kw_only=True)
class AnalysisEntry:
    """What faces need to know of one before it is loaded."""

    name: str  # the command, the last part of its address, and the key of its figure
    summary: str  # in lists of commands, the OpenAPI document and the docs
    about: str = ""  # the rest of its help
    options_in: str  # module:class, an `Options`
    module: str
    panel: str = "Conclude"
    takes: Takes = "run"
    # What its command judges before it looks: a file in the place of a run, or pairs of its own.
    judges_first: Literal["nothing", "file", "own pairs"] = "nothing"
    unfinished: bool = False  # looks at runs that judging did not finish too
    named: bool = False  # takes no run that is not named, or asked for by --latest
    files: tuple[tuple[str, str], ...] = ()  # that it can write: a flag, and its help
    html_options_in: str = ""  # module:class, of the options that go with --html
    shows: tuple[tuple[str, str], ...] = ()  # what its text shows on demand: a flag, and its help
    of_runs: tuple[str, ...] = ()  # options that a file of battles has no use for
    # What its figure follows: verdicts alone, people's votes too, or other runs' labels as well.
    depends_on: Literal["verdicts", "votes", "labels"] = "verdicts"
    # Its HTTP address, where that is not the usual one. Without {id} the runs are fields of the
    # request, which may also be a body.
    path: str | None = None
    has_own_page: bool = False  # else its blocks are one
    limit: int | None = None  # how many verdicts a server takes it of
    tool: str | None = None  # what agents call it by, where they are offered it
    resource: bool = False  # agents also read it by its address, as Markdown and as JSON
    in_report: bool = False  # its blocks are a section of a run's HTML file

    @property
    def options(self) -> type[Options]:
        return _options(self.options_in)

    @property
    def html_options(self) -> type[Options] | None:
        return _options(self.html_options_in) if self.html_options_in else None

    @property
    def address(self) -> str:
        return self.path or f"/v1/runs/{{id}}/{self.name}"

    @property
    def addressed(self) -> bool:
        """Whether the address names the run."""
        return "{id}" in self.address

    @property
    def served(self) -> bool:
        """Whether a server offers it."""
        return self.takes != "data"

    @property
    def page(self) -> str:
        return f"/runs/{{id}}/{self.name}"

    @property
    def implementation(self) -> Implementation:
        return cast("Implementation", import_module(self.module))


def _options(place: str) -> type[Options]:
    module, _, name = place.partition(":")
    return cast("type[Options]", getattr(import_module(module), name))


@dataclass(frozen=True)
class AnalysisSubject:
    """What an analysis is about: the runs that were named, the one that it is of first, then those
    that options name."""

    stored: Store | None
    runs: tuple[RunRecord, ...]
    settings: Settings
    most: int | None = None  # how many verdicts it may take
    battles: BattleFile | None = None
    judged: Sequence[JudgedStage] = ()  # first, by this command; its runs are these
    data: Sources | None = None  # not judged yet
    judges: tuple[JudgePlan, ...] = ()  # of the data

    @property
    def store(self) -> Store:
        """Of an analysis that needs one."""
        return cast("Store", self.stored)

    @property
    def run(self) -> RunRecord:
        return self.runs[0]


class Implementation(Protocol):
    """What the module of an analysis holds. Optional: `check(options)` refuses what does not go
    together; `status(result)` is the exit code; `write(name, path, result, subject)` writes one of
    its files and may return a line that says so; `concluded(result, subject)` is what its HTML file
    shows; `finish(result, options)` does what only whoever runs the process may (saving a
    calibration) and returns the result as it is then; `redact(result, hide)` takes out what clients
    of a server must not see. With `shows` in its entry, `blocks` takes those of them that
    are asked for as its second argument. One that judges first has `stages(options, request)`, the
    runs that it judges; `status` sees what stopped them where the result has it, else a run that
    was stopped is all that is shown."""

    Result: type[Model]

    def compute(self, subject: AnalysisSubject, options: Any, /) -> Any: ...  # no calls, no writes

    def blocks(self, result: Any, /, *shown: Collection[str]) -> Blocks: ...


def _optional(analysis: AnalysisEntry, name: str) -> Callable[..., Any] | None:
    found: Callable[..., Any] | None = getattr(analysis.implementation, name, None)
    return found


def check(analysis: AnalysisEntry, options: Any) -> None:
    """Refuse what does not go together, before anything is judged or computed for it."""
    if refuse := _optional(analysis, "check"):
        refuse(options)


def analyse(
    analysis: AnalysisEntry, store: Store, names: Sequence[str], options: Any, settings: Settings
) -> Any:
    """What it says of these runs and of those that its options name."""
    from evenhand.report.lookup import find_run

    check(analysis, options)
    runs = tuple(find_run(store, name) for name in (*names, *run_names(options)))
    return analysis.implementation.compute(AnalysisSubject(store, runs, settings), options)


def stages_of(analysis: AnalysisEntry, options: Any, request: JudgingRequest) -> Iterable[Stage]:
    stages: Callable[..., Iterable[Stage]] = vars(analysis.implementation)["stages"]
    return stages(options, request)


def status_of(analysis: AnalysisEntry, result: Any) -> int:
    """The exit code of its command."""
    status = _optional(analysis, "status")
    return 0 if status is None else status(result)


def finished(analysis: AnalysisEntry, result: Any, options: Any) -> Any:
    finish = _optional(analysis, "finish")
    return result if finish is None else finish(result, options)


def redacted(analysis: AnalysisEntry, result: Any, hide: str) -> Any:
    """As clients of a server may read it: where its store is concerns the operator alone."""
    if redact := _optional(analysis, "redact"):
        return redact(result, hide)
    return result.model_copy(update={"store": hide}) if hasattr(result, "store") else result


def write_file(
    analysis: AnalysisEntry, name: str, path: Path, result: Any, subject: AnalysisSubject
) -> str | None:
    write: Callable[..., str | None] = vars(analysis.implementation)["write"]
    return write(name, path, result, subject)


def concluded(analysis: AnalysisEntry, result: Any, subject: AnalysisSubject) -> Conclusions:
    conclude: Callable[..., Conclusions] = vars(analysis.implementation)["concluded"]
    return conclude(result, subject)


def run_names(options: Options) -> tuple[str, ...]:
    """The runs that options name."""
    rows = (row for row in options.rows() if row.option.names == "run")
    return tuple(name for row in rows if (name := getattr(options, row.name)) is not None)


REPORT = AnalysisEntry(
    name="report",
    summary="Report a run's win rate with its interval.",
    about="Also by criterion and tag, with the effects of length and position.",
    options_in="evenhand.analysis_options:ReportOptions",
    module="evenhand.analyses.report",
    files=(
        ("plot", "Save the chart as FILE.svg, or its data as FILE.csv."),
        ("html", "Also write the report as one HTML file, with its pairs to browse."),
    ),
    html_options_in="evenhand.analysis_options:HtmlOptions",
    depends_on="labels",
    has_own_page=True,
    tool="runReport",
    resource=True,
)

DIFF = AnalysisEntry(
    name="diff",
    summary="Compare two runs over the same pairs.",
    about="Pairs are matched by their texts, otherwise by id and prompt.",
    options_in="evenhand.analysis_options:DiffOptions",
    module="evenhand.analyses.diff",
    takes="two runs",
    depends_on="labels",
    has_own_page=True,
)

GATE = AnalysisEntry(
    name="gate",
    summary="Pass, fail or stay undecided on a run's win rate, for CI.",
    about="Limits default to [gate] in the config file. Exit codes: 0 above the threshold, 1 "
    "below, 6 undecided, 2 bad input.",
    options_in="evenhand.analysis_options:GateOptions",
    module="evenhand.analyses.gate",
    named=True,
    files=(
        ("junit", "Also write JUnit XML."),
        ("html", "Also write the report as one HTML file."),
    ),
    depends_on="labels",
)

JURY = AnalysisEntry(
    name="jury",
    summary="Combine several judges' votes and compare their accuracy.",
    about="Exit codes: 0 success, 2 bad input (runs without common pairs, a single judge, a jury "
    "of other judges) or a store error.",
    options_in="evenhand.analysis_options:JuryOptions",
    module="evenhand.analyses.jury",
    takes="runs",
    depends_on="votes",
)

VOTES = AnalysisEntry(
    name="votes",
    summary="Show how many people voted, how much they agree and the majority.",
    options_in="evenhand.analysis_options:VotesOptions",
    module="evenhand.analyses.votes",
    depends_on="votes",
    has_own_page=True,
)

CALIBRATE = AnalysisEntry(
    name="calibrate",
    summary="Learn from labels how likely a verdict is to be right.",
    about="Exit codes: 0 learned (it says so if the data supports no more than overall accuracy, "
    "or no guarantee), 2 bad input or a store error.",
    options_in="evenhand.analysis_options:CalibrateOptions",
    module="evenhand.analyses.calibrate",
    files=(("plot", "Save the reliability diagram as .svg, or its data as .csv."),),
    depends_on="votes",
    has_own_page=True,  # at /runs/{id}/calibration
    limit=20_000,  # signals are read from all passes: so many take seconds, a million minutes
)

CORRECT = AnalysisEntry(
    name="correct",
    summary="Correct a win rate for judge errors, using human labels.",
    about="Exit codes: 0 success, 2 bad input (such as labels with unknown sampling) or a store "
    "error.",
    options_in="evenhand.analysis_options:CorrectOptions",
    module="evenhand.analyses.correct",
    depends_on="votes",
)

RANK = AnalysisEntry(
    name="rank",
    summary="Rank models from runs or from a file of battles.",
    about="Scores are Bradley and Terry's (or Davidson's), with intervals for scores and ranks. "
    "Several runs are ranked together.",
    options_in="evenhand.analysis_options:RankOptions",
    module="evenhand.analyses.rank",
    takes="runs or battles",
    files=(
        ("plot", "Save the leaderboard and win matrix as FILE.svg, or their data as FILE.csv."),
    ),
    shows=(
        ("matrix", "Show each model's expected score against every other."),
        ("details", "Show all models, and how scores and intervals were computed."),
    ),
    of_runs=("judge", "inconsistent"),
    depends_on="labels",
    path="/v1/rank",
    has_own_page=True,
)

PROBE = AnalysisEntry(
    name="probe",
    summary="Test a judge on pairs with a known verdict.",
    about="Flattery, injections, padding, nonsense: which biases it has, and how certain that "
    "is.\n\nExit codes: 0 every pair was asked (and the score is above the minimum), 1 below "
    "the minimum, 2 bad input or a store error, 3 the judge failed, 5 a cap was reached, 6 "
    "undecided whether it is above the minimum, 130 interrupted.",
    options_in="evenhand.analysis_options:ProbeOptions",
    module="evenhand.analyses.probe",
    panel="Trust the judge",
    judges_first="own pairs",
    unfinished=True,
    shows=(
        (
            "details",
            "Also show every probe's counts, by language, and failing cases with the judge's "
            "answers.",
        ),
    ),
    has_own_page=True,
)

PLAN = AnalysisEntry(
    name="plan",
    summary="Work out how many pairs you need and what they cost.",
    about="The cost comes from a similar run, from a price and tokens, or from the data itself "
    "(PAIRS with a judge and criteria). No judge is asked.",
    options_in="evenhand.analysis_options:PlanOptions",
    module="evenhand.analyses.plan",
    panel="Judge",
    takes="data",
)

AUDIT = AnalysisEntry(
    name="audit",
    summary="Measure a judge's accuracy and biases against labels.",
    about="Exit codes: 0 it passes (or no threshold was set), 1 a threshold fails, 6 one is "
    "undecided, 2 bad input, no labels or a store error, 3 the judge failed, 5 a cap was reached, "
    "130 interrupted.",
    options_in="evenhand.analysis_options:AuditOptions",
    module="evenhand.analyses.audit",
    panel="Trust the judge",
    judges_first="file",
    depends_on="votes",
    path="/v1/audits",
    has_own_page=True,
)

OURS: Mapping[str, AnalysisEntry] = {
    each.name: each
    for each in (PLAN, REPORT, AUDIT, GATE, DIFF, RANK, CALIBRATE, JURY, CORRECT, PROBE, VOTES)
}


@cache
def analyses() -> Mapping[str, AnalysisEntry]:
    """By name: ours, then those of installed packages, which cannot replace them."""
    found = dict(OURS)
    for entry in entry_points(group=GROUP):
        analysis: AnalysisEntry = entry.load()
        found.setdefault(analysis.name, analysis)
    return found
