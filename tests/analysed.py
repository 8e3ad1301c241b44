"""What a registered analysis says of stored runs, by options alone."""

from __future__ import annotations

from typing import Any

from evenhand.analyses.registry import AnalysisEntry, analyse
from evenhand.judges.families import OwnFamilies
from evenhand.settings import Settings
from evenhand.store import Store


def analysis_of(
    analysis: AnalysisEntry, store: Store, *runs: str, families: OwnFamilies = (), **options: Any
) -> Any:
    settings = Settings(families=families)
    return analyse(analysis, store, runs, analysis.options(**options), settings)
