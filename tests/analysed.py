"""What a registered analysis says of stored runs, by options alone."""

from __future__ import annotations

from typing import Any

from evenhand.analyses.jury import JuryReport, evaluate_jury
from evenhand.analyses.registry import AnalysisEntry, AnalysisSubject, check
from evenhand.analysis_options import JuryOptions
from evenhand.judges.families import OwnFamilies
from evenhand.report.lookup import find_run
from evenhand.settings import Settings
from evenhand.store import Store
from evenhand.trust.panels import SavedJury


def analysis_of(
    analysis: AnalysisEntry,
    store: Store,
    *names: str,
    families: OwnFamilies = (),
    most: int | None = None,
    **given: Any,
) -> Any:
    options = analysis.options(**given)
    check(analysis, options)
    runs = tuple(find_run(store, name) for name in names)
    subject = AnalysisSubject(store, runs, Settings(families=families), most=most)
    return analysis.implementation.compute(subject, options)


def jury_of(
    store: Store,
    *names: str,
    use: SavedJury | None = None,
    families: OwnFamilies = (),
    **given: Any,
) -> JuryReport:
    """The same of juries, also of one judge, and of one that was not saved."""
    runs = tuple(find_run(store, name) for name in names)
    subject = AnalysisSubject(store, runs, Settings(families=families))
    return evaluate_jury(subject, JuryOptions(**given), use)
