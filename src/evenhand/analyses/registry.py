"""The analyses there are, each a light value; what computes one is imported when it is first used,
so that `evenhand --help` loads no statistics."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol, cast

if TYPE_CHECKING:
    from evenhand.blocks import Blocks
    from evenhand.contract.model import Model
    from evenhand.options import Options
    from evenhand.settings import Settings
    from evenhand.store import RunRecord, Store

GROUP = "evenhand.analyses"  # the entry points by which other packages register theirs


@dataclass(frozen=True, kw_only=True)
class AnalysisEntry:
    """What faces need to know of one before it is loaded."""

    name: str  # the command, the last part of its address, and the key of its figure
    summary: str  # in lists of commands, the OpenAPI document and the docs
    about: str = ""  # the rest of its help
    options_in: str  # module:class, an `Options`
    module: str
    panel: str = "Conclude"
    named: bool = False  # takes no run that is not named, or asked for by --latest
    files: tuple[tuple[str, str], ...] = ()  # that it can write: a flag, and its help
    # What its figure follows: verdicts alone, people's votes too, or other runs' labels as well.
    depends_on: Literal["verdicts", "votes", "labels"] = "verdicts"

    @property
    def options(self) -> type[Options]:
        module, _, name = self.options_in.partition(":")
        return cast("type[Options]", getattr(import_module(module), name))

    @property
    def path(self) -> str:
        return f"/v1/runs/{{id}}/{self.name}"

    @property
    def page(self) -> str:
        return f"/runs/{{id}}/{self.name}"

    @property
    def implementation(self) -> Implementation:
        return cast("Implementation", import_module(self.module))


@dataclass(frozen=True)
class AnalysisSubject:
    """What an analysis is about."""

    store: Store
    run: RunRecord
    settings: Settings


class Implementation(Protocol):
    """What the module of an analysis holds. Optional: `check`, `status` and `write`."""

    Result: type[Model]

    def compute(self, subject: AnalysisSubject, options: Any, /) -> Any: ...  # no calls, no writes

    def blocks(self, result: Any, /) -> Blocks: ...


def check(analysis: AnalysisEntry, options: Any) -> None:
    """Refuse what does not go together, before anything is judged or computed for it."""
    refuse: Callable[[Any], None] | None = getattr(analysis.implementation, "check", None)
    if refuse is not None:
        refuse(options)


def status_of(analysis: AnalysisEntry, result: Any) -> int:
    """The exit code of its command."""
    status: Callable[[Any], int] | None = getattr(analysis.implementation, "status", None)
    return 0 if status is None else status(result)


def write_file(
    analysis: AnalysisEntry, name: str, path: Path, result: Any, subject: AnalysisSubject
) -> None:
    write: Callable[..., None] = vars(analysis.implementation)["write"]
    write(name, path, result, subject)


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

OURS: Mapping[str, AnalysisEntry] = {each.name: each for each in (GATE,)}


@cache
def analyses() -> Mapping[str, AnalysisEntry]:
    """By name: ours, then those of installed packages, which cannot replace them."""
    found = dict(OURS)
    for entry in entry_points(group=GROUP):
        analysis: AnalysisEntry = entry.load()
        found.setdefault(analysis.name, analysis)
    return found
