"""Everything that a server does, once: HTTP, MCP and pages are thin edges over this object."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Literal, Self

from evenhand.contract import Pair, Verdict
from evenhand.report.ranking import RunRanking
from evenhand.serve.admission import Admission
from evenhand.serve.config import ServerConfig
from evenhand.serve.offers import Offers
from evenhand.serve.upload import Upload
from evenhand.serve.values import (
    AuditReport,
    AuditRun,
    RankResponses,
    RankRuns,
    Readiness,
    Report,
    RunPage,
    RunStatus,
    StartRun,
    VerdictFilters,
    VerdictPage,
)
from evenhand.serve.watch import Watch
from evenhand.settings import Settings
from evenhand.store import Store

if TYPE_CHECKING:
    from evenhand.ranker import RankedResponses
    from evenhand.serve.jobs import Jobs

# So many passes are made, of so many.
Told = Callable[[int, int], None]


class Service:
    config: ServerConfig
    store: Store
    offers: Offers
    admission: Admission
    jobs: Jobs
    watch: Watch

    @classmethod
    @asynccontextmanager
    async def opened(
        cls, config: ServerConfig, settings: Settings | None = None, *, background: bool = True
    ) -> AsyncIterator[Self]:
        """Background runs go on, unless `background` is False; leaving saves what is in flight."""
        raise NotImplementedError
        yield

    async def compare(
        self,
        pair: Mapping[str, Any] | Pair,
        *,
        judge: str | None = None,
        told: Told | None = None,
    ) -> Verdict:
        """The verdict on one pair; raises an EvenhandError, with the contract's metadata."""
        raise NotImplementedError

    async def rank_responses(
        self, request: RankResponses, *, told: Told | None = None
    ) -> RankedResponses:
        raise NotImplementedError

    async def refuse_when_full(self) -> None:
        """ServerBusy where no more runs are taken: to be asked before an upload is read."""
        raise NotImplementedError

    async def start_run(
        self, upload: Upload, options: StartRun, *, token: str | None = None
    ) -> RunStatus:
        """All rows are in the store when this returns, and the upload is closed in any case.

        The same data and judges again find the same run (`found` is then True), which goes on
        where it had been stopped. `token` is the name of whoever asked.
        """
        raise NotImplementedError

    async def runs(
        self, *, after: str | None = None, limit: int = 50, state: str | None = None
    ) -> RunPage:
        raise NotImplementedError

    async def run(self, run_id: str) -> RunStatus:
        """By its id or its name; NotFound where there is none."""
        raise NotImplementedError

    async def cancel(self, run_id: str) -> RunStatus:
        """What is in flight is still stored; a run at rest stays as it is."""
        raise NotImplementedError

    async def resume(self, run_id: str) -> RunStatus:
        raise NotImplementedError

    async def follow(self, run_id: str, *, every_s: float = 0.5) -> AsyncIterator[RunStatus]:
        """Its status now and whenever it has changed; ends when the run is at rest, and when the
        server shuts down. NotFound comes with the first step."""
        raise NotImplementedError
        yield

    async def verdicts(
        self,
        run_id: str,
        filters: VerdictFilters | None = None,
        *,
        cursor: str | None = None,
        limit: int = 100,
        full: bool = False,
    ) -> VerdictPage:
        """A page may be short, even empty, before the end: `next` is null only there."""
        raise NotImplementedError

    async def report(
        self,
        run_id: str,
        *,
        side: Literal["A", "B"] = "B",
        ties: Literal["half", "excluded", "wins"] = "half",
        level: float = 0.95,
    ) -> Report:
        raise NotImplementedError

    async def rank(self, request: RankRuns) -> RunRanking:
        raise NotImplementedError

    async def audit(self, request: AuditRun) -> AuditReport:
        raise NotImplementedError

    async def judging_prompt(
        self, pair: Mapping[str, Any] | Pair | None = None, *, judge: str | None = None
    ) -> str:
        """What the judge is shown of a pair, in both orders; without one, with the slots named."""
        raise NotImplementedError

    async def ready(self) -> Readiness:
        """Whether the store answers and a judge is configured."""
        raise NotImplementedError
