"""Every page there is. Apart from `page`, since it loads them all: the first visit does."""

from __future__ import annotations

from evenhand.serve.pages.analysis import PAGES as ANALYSES
from evenhand.serve.pages.audit import AUDIT_PAGES as AUDIT
from evenhand.serve.pages.audit import CALIBRATION_PAGES as CALIBRATION
from evenhand.serve.pages.charts import PAGES as CHARTS
from evenhand.serve.pages.compare import PAGES as COMPARE
from evenhand.serve.pages.login import PAGES as LOGIN
from evenhand.serve.pages.page import STATIC_PAGES as STATIC
from evenhand.serve.pages.page import Page
from evenhand.serve.pages.pairs import EXPORT_PAGES as EXPORTS
from evenhand.serve.pages.pairs import PAIR_PAGES as PAIR
from evenhand.serve.pages.pairs import TABLE_PAGES as PAIRS
from evenhand.serve.pages.playground import PAGES as ATTEMPT
from evenhand.serve.pages.ranking import PAGES as RANKING
from evenhand.serve.pages.run import PAGES as RUN
from evenhand.serve.pages.runs import PAGES as RUNS
from evenhand.serve.pages.vote import PAGES as VOTE

PAGES: tuple[Page, ...] = (
    *RUNS,
    *PAIRS,
    *PAIR,
    *RUN,
    *EXPORTS,
    *COMPARE,
    *RANKING,
    *AUDIT,
    *CALIBRATION,
    *ANALYSES,
    *CHARTS,
    *ATTEMPT,
    *VOTE,
    *LOGIN,
    *STATIC,
)
