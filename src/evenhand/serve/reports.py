"""The figures of stored runs, one function each: HTTP and MCP wait for them, pages show what is
cached. Addresses are left out. It loads the statistics: import it only where figures are asked for.

What computes a figure is a function of this module with its arguments, which another process can be
sent.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, replace
from functools import cache, partial
from typing import Any, cast

from evenhand.analyses.registry import (
    AnalysisEntry,
    AnalysisSubject,
    analyses,
    redacted,
    run_names,
)
from evenhand.contract.codes import OUTCOMES, OutcomeCounts
from evenhand.contract.model import Model
from evenhand.judges.families import OwnFamilies
from evenhand.options import Options
from evenhand.report.overview import RunOverview, overview
from evenhand.serve.figures import Figure
from evenhand.serve.run_status import recorded_judge
from evenhand.serve.values import RunStatus
from evenhand.serve.verdicts import client_names
from evenhand.settings import Settings, load_settings
from evenhand.store import RunRecord, Store
from evenhand.trust.audit import Audit
from evenhand.trust.findings import Findings

# In place of the store's address: it is the operator's affair.
_HERE = "this server"


class ToolAudit(Model):
    """The audit, and the run that it is of."""

    audit: Audit
    findings: Findings
    run: RunStatus


def analysed(analysis: AnalysisEntry, runs: Sequence[str], options: Options) -> Figure[Any]:
    """A registered analysis of runs, by the operator's settings."""
    settings = own_settings()
    used = Settings(gate=settings.gate, families=settings.families)
    given = asdict(cast("Any", options))
    return Figure(
        name=analysis.name,
        runs=(*runs, *run_names(options)),
        model=analysis.implementation.Result,
        compute=partial(_analysed, name=analysis.name, options=options, settings=used),
        parameters={**given, "gate": asdict(settings.gate), **_of_families()},
        depends_on=analysis.depends_on,
    )


def _analysed(
    store: Store, runs: Sequence[RunRecord], *, name: str, options: Any, settings: Settings
) -> Any:
    analysis = analyses()[name]
    first = runs if analysis.takes.startswith("runs") else runs[:1]
    of_runs = {"judge": first, "other judge": runs[1:2]}
    judges = {
        row.name: _recorded(store, of_runs[row.option.names], getattr(options, row.name), runs)
        for row in analysis.options.rows()
        if row.option.names in of_runs
    }
    subject = AnalysisSubject(store, tuple(runs), settings, most=analysis.limit)
    result = analysis.implementation.compute(subject, replace(options, **judges))
    return redacted(analysis, result, _HERE)


def _recorded(store: Store, of: Sequence[RunRecord], named: Any, runs: Sequence[RunRecord]) -> Any:
    """As the runs call a judge; of several names, the first is of the earlier run."""
    if not isinstance(named, tuple):
        return recorded_judge(store, of, named)
    return tuple(
        recorded_judge(store, [run], name)
        for run, name in zip(runs[::-1], (*named[:1], *named[-1:]), strict=False)
    )


@cache
def own_settings() -> Settings:
    """The operator's config files, read once."""
    return load_settings()


def own_families() -> OwnFamilies:
    return own_settings().families


def _of_families() -> dict[str, Any]:
    """What tells a figure from the same one by other entries, where there are any."""
    return {"families": own_families()} if own_families() else {}


def run_overview(run_id: str) -> Figure[RunOverview]:
    """Histograms, the heat map and the checks of a run's page."""
    return Figure(name="overview", runs=(run_id,), model=RunOverview, compute=_overview)


def _overview(store: Store, runs: Sequence[RunRecord]) -> RunOverview:
    return overview(store, runs[0].name)


def totals(run_id: str) -> Figure[RunTotals]:
    return Figure(
        name="totals",
        runs=(run_id,),
        model=RunTotals,
        compute=_totals,
        light=True,
    )


# What the filters of a run's table can be set to, and how many verdicts each would show.


class JudgeTotals(OutcomeCounts):
    judge: str
    pending: int
    abstained: int
    noted: int
    unread: int
    disagrees: int  # with labels
    labelled: int
    judges_differ: int
    orders_agree: int  # of those that were read in both orders
    leans_first: int
    leans_second: int


class TagTotals(Model):
    """A tag, and how many pairs have it."""

    name: str
    count: int


class CriterionTotals(OutcomeCounts):
    """How one criterion came out, in all judges' verdicts."""

    name: str
    count: int


class RunTotals(Model):
    pairs: int
    verdicts: int
    judges: tuple[JudgeTotals, ...]
    tags: tuple[TagTotals, ...]  # the most frequent first, at most 1,000
    criteria: tuple[CriterionTotals, ...]  # in the order in which they first come
    models: tuple[str, ...] = ()  # by name; of the first 1,000 that meet
    # Whether A is the same model in every pair, and B is: then labels say what models would.
    one_contest: bool = False


def _totals(store: Store, runs: Sequence[RunRecord]) -> RunTotals:
    run = runs[0]
    counted = store.table.count_kinds(run.id)
    pairs = store.items.count(run.id)
    recorded = store.runs.judges(run.id)
    names = client_names(store, run, recorded)
    judges = []
    for judge in recorded:
        kinds = counted.kinds.get(judge.id, Counter())
        judged = sum(kinds[name] for name in OUTCOMES)
        counts = {name: kinds[name] for name in _COUNTED}
        judges.append(JudgeTotals(judge=names[judge.id], pending=pairs - judged, **counts))
    return RunTotals(
        pairs=pairs,
        verdicts=sum(kinds[name] for kinds in counted.kinds.values() for name in OUTCOMES),
        judges=tuple(judges),
        tags=tuple(TagTotals(name=name, count=count) for name, count in counted.tags),
        criteria=tuple(_criterion(name, codes) for name, codes in counted.criteria.items()),
        models=tuple(
            sorted({name for met in counted.contests for name in met if name is not None})
        ),
        one_contest=len(counted.contests) < 2,
    )


_COUNTED = JudgeTotals.model_fields.keys() - {"judge", "pending"}


def _criterion(name: str, codes: Counter[int]) -> CriterionTotals:
    counts = [codes[code] for code in range(len(OUTCOMES))]
    return CriterionTotals.of_codes(counts, name=name, count=codes.total())
