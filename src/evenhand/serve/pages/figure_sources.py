"""The kept figures behind the pages of rankings, audits, calibrations and probes, and behind their
charts: both ask for the same, so that it is worked out once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Literal

from evenhand.pages.wording import Language, Wording
from evenhand.report.ranking import RunRanking
from evenhand.serve.kept_figures import Kept
from evenhand.serve.readings import recorded_judge
from evenhand.serve.report_values import AuditReport
from evenhand.serve.service import Service
from evenhand.serve.values import AuditRun, RankRuns
from evenhand.stats.estimated_share import EstimatedShare
from evenhand.store import RunRecord, Store
from evenhand.trust.audit import Audit
from evenhand.trust.calibrating import CalibrationReport, calibrate_run
from evenhand.trust.probes.stored import StoredProbes, probe_runs_beside, read_probes
from evenhand.trust.yardsticks import COIN, CONSTANT, LONGER

MOST_DISAGREEMENTS = 50
# Signals of a verdict are read from all its passes: so many take some seconds, a million minutes.
MOST_CALIBRATED = 20_000
_HERE = "this server"
_YARDSTICKS = {LONGER: "longer", COIN: "coin", CONSTANT: "constant"}

Shares = Callable[[Language], list[tuple[str, EstimatedShare]]]


async def judges_of(service: Service, run_id: str) -> tuple[str, ...]:
    """By the names that the run's verdicts have."""
    found = await asyncio.to_thread(service.store.run_judges, int(run_id))
    return tuple(dict.fromkeys(each.name for each in found))


async def keep_ranking(
    service: Service,
    runs: Sequence[str],
    *,
    judge: str | None,
    tag: str | None,
    ties: Literal["half", "davidson"],
    inconsistent: Literal["half", "excluded"],
) -> Kept[RunRanking]:
    return await service.kept.ranking(
        RankRuns(runs=tuple(runs), judge=judge, tag=tag, ties=ties, inconsistent=inconsistent)
    )


async def keep_audit(
    service: Service, run_id: str, *, judge: str | None, against: str | None = None
) -> Kept[AuditReport]:
    return await service.kept.audit(
        AuditRun(run=run_id, judge=judge, against=against, disagreements=MOST_DISAGREEMENTS)
    )


async def keep_calibration(
    service: Service, run_id: str, *, judge: str | None
) -> Kept[CalibrationReport]:
    def work(store: Store, run: RunRecord) -> CalibrationReport:
        recorded = recorded_judge(store, [run], judge)
        report = calibrate_run(store, run.name, judge=recorded, most=MOST_CALIBRATED)
        return report.model_copy(update={"store": _HERE})

    return await service.kept.figure(
        run_id, "calibration", {"judge": judge}, CalibrationReport, work, depends_on="votes"
    )


async def keep_probes(service: Service, run_id: str) -> Kept[StoredProbes]:
    def others() -> list[RunRecord]:
        run = service.store.run_at(int(run_id))
        return [] if run is None else probe_runs_beside(service.store, run)

    beside = await asyncio.to_thread(others)
    parameters = {"beside": [each.id for each in beside]}
    return await service.kept.figure(
        run_id,
        "probes",
        parameters,
        StoredProbes,
        lambda store, run: read_probes(store, run, beside=beside),
        beside=beside,
    )


def audit_shares(audit: Audit) -> Shares:
    """The judge's accuracy, and beside it what its yardsticks get."""

    def named(language: Language) -> list[tuple[str, EstimatedShare]]:
        say = Wording(language)
        return [
            (audit.judge, audit.accuracy),
            *(
                (
                    str(say(f"audit.yardstick.{_YARDSTICKS.get(each.name, each.name)}")),
                    each.accuracy,
                )
                for each in audit.yardsticks
            ),
        ]

    return named


def probe_shares(probes: StoredProbes) -> Shares:
    def named(language: Language) -> list[tuple[str, EstimatedShare]]:
        say = Wording(language)
        return [
            *((str(say(f"probe.name.{each.probe}")), each.share) for each in probes.probes),
            (str(say("probe.all")), probes.overall.share),
        ]

    return named
