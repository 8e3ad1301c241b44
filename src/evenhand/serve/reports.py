"""Reports, rankings and audits of stored runs for clients, without addresses. It loads the
statistics: import it only where figures are asked for.
"""

from __future__ import annotations

from collections.abc import Sequence

from evenhand.contract.model import Model
from evenhand.report.conclusions import Conclusions, Side, Ties, conclude
from evenhand.report.ranking import RankOptions, RunRanking, rank_runs
from evenhand.report.run import RunReport, report_run
from evenhand.serve.judges import AddressRedactor
from evenhand.serve.run_status import recorded_judge
from evenhand.serve.values import AuditRun, RankRuns, RunStatus
from evenhand.store import RunRecord, Store
from evenhand.trust.audit import Audit, audit_run
from evenhand.trust.findings import Findings, Thresholds, assess_audit

# Reports and audits as clients get them.
#
# Apart from the other values, since their parts bring the statistics along, which a server needs
# only once somebody asks for figures.


class Report(Model):
    """What a run came to and took, and what can be concluded from it."""

    run: RunReport
    conclusions: Conclusions


class AuditReport(Model):
    audit: Audit
    findings: Findings


# What is worked out of stored runs for clients: reports, rankings, audits; without addresses.
#
# It brings the statistics along: import it where figures are asked for.

# In place of the store's address and a judge's: they are the operator's affair.
_HERE = "this server"
_PRIVATE_SETTINGS = frozenset({"base_url"})


def read_report(store: Store, run: RunRecord, *, side: Side, ties: Ties, level: float) -> Report:
    conclusions = read_conclusions(store, run, side=side, ties=ties, level=level)
    return Report(run=read_run_report(store, run), conclusions=conclusions)


def read_conclusions(
    store: Store, run: RunRecord, *, side: Side, ties: Ties, level: float
) -> Conclusions:
    conclusions = conclude(store, run.name, side=side, ties=ties, level=level)
    return conclusions.model_copy(update={"store": _HERE})


def read_run_report(store: Store, run: RunRecord) -> RunReport:
    return _without_addresses(report_run(store, run.name))


def _without_addresses(report: RunReport) -> RunReport:
    judges = tuple(
        judge.model_copy(
            update={
                "settings": {
                    name: value
                    for name, value in judge.settings.items()
                    if name not in _PRIVATE_SETTINGS
                }
            }
        )
        for judge in report.judges
    )
    hide = {judge.judge: AddressRedactor.of_record(judge.settings) for judge in report.judges}
    invalid = tuple(
        pair.model_copy(update={"message": hide[pair.judge](pair.message)})
        for pair in report.invalid_pairs
    )
    return report.model_copy(update={"store": _HERE, "judges": judges, "invalid_pairs": invalid})


def read_ranking(store: Store, runs: Sequence[RunRecord], request: RankRuns) -> RunRanking:
    options = RankOptions(
        ties=request.ties,
        intervals=request.intervals,
        level=request.level,
        scale=request.scale,
        prior=request.prior,
        replicates=request.replicates,
        seed=request.seed,
        elo_k=request.elo_k,
        inconsistent=request.inconsistent,
    )
    ranking = rank_runs(
        store,
        list(dict.fromkeys(run.name for run in runs)),
        options,
        judge=recorded_judge(store, runs, request.judge),
        tag=request.tag,
    )
    return ranking.model_copy(update={"store": None})


def read_audit(
    store: Store, run: RunRecord, against: RunRecord | None, request: AuditRun
) -> AuditReport:
    thresholds = Thresholds.of(
        min_accuracy=request.min_accuracy,
        min_kappa=request.min_kappa,
        min_consistency=request.min_consistency,
        max_unread=request.max_unread,
        max_place_lean=request.max_place_lean,
        max_length_excess=request.max_length_excess,
    )
    audit = audit_run(
        store,
        run.name,
        judge=recorded_judge(store, [run], request.judge),
        level=request.level,
        disagreements=request.disagreements,
        against=against.name if against else None,
    )
    return AuditReport(
        audit=audit.model_copy(update={"store": None}), findings=assess_audit(audit, thresholds)
    )


# What `auditJudge` gives back; it brings the statistics along.


class ToolAudit(AuditReport):
    """The audit, and the run that it is of."""

    run: RunStatus
