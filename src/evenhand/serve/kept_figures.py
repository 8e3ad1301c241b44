"""Figures that take long are worked out once, kept in the store, and shared by its servers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Generic, Literal, TypeVar

from evenhand.contract import ErrorBody
from evenhand.contract.model import Model
from evenhand.report.conclusions import Conclusions, Side, Ties
from evenhand.report.ranking import RunRanking
from evenhand.report.run import RunReport
from evenhand.serve.values import AuditReport, AuditRun, RankRuns
from evenhand.store import RunRecord, Store

_T = TypeVar("_T", bound=Model)


@dataclass(frozen=True, slots=True)
class Kept(Generic[_T]):
    """`value` is None until it was worked out for the first time, or where that failed.

    `computing`: a newer one is being worked out; the page says so, and comes back by itself.
    `stale`: the run has changed since `at`.
    """

    value: _T | None
    computing: bool
    stale: bool
    error: ErrorBody | None
    at: datetime | None


class JudgeTotals(Model):
    judge: str
    wins_a: int
    wins_b: int
    ties: int
    inconsistent: int
    invalid: int
    pending: int
    abstained: int
    noted: int
    unread: int
    disagrees: int  # with labels
    labelled: int
    judges_differ: int


class Counted(Model):
    """A tag, or a criterion, and how many pairs (of a tag) or verdicts (on a criterion)."""

    name: str
    count: int


class RunTotals(Model):
    """What filters can be set to, and how many verdicts each would show."""

    pairs: int
    judges: tuple[JudgeTotals, ...]
    tags: tuple[Counted, ...]  # the most frequent first, at most 1,000
    criteria: tuple[Counted, ...]  # in the order in which they first come


class KeptFigures:
    """`service.kept`"""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def totals(self, run_id: str) -> Kept[RunTotals]:
        raise NotImplementedError

    async def report(self, run_id: str) -> Kept[RunReport]:
        """What the run was, took and cost (`report_run`), without addresses."""
        raise NotImplementedError

    async def conclusions(
        self, run_id: str, *, side: Side = "B", ties: Ties = "half", level: float = 0.95
    ) -> Kept[Conclusions]:
        raise NotImplementedError

    async def ranking(self, request: RankRuns) -> Kept[RunRanking]:
        raise NotImplementedError

    async def audit(self, request: AuditRun) -> Kept[AuditReport]:
        raise NotImplementedError

    async def figure(
        self,
        run_id: str,
        what: str,
        parameters: Mapping[str, Any],
        model: type[_T],
        work: Callable[[Store, RunRecord], _T],
        *,
        depends_on: Literal["verdicts", "votes"] = "verdicts",
    ) -> Kept[_T]:
        """Any other figure: `what` and `parameters` name it, `work` makes it in a thread."""
        raise NotImplementedError
