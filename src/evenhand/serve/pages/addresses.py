"""Every page there is."""

from __future__ import annotations

from evenhand.serve.pages import (
    attempt,
    audit,
    calibration,
    charts,
    exports,
    login,
    pair,
    pairs,
    ranking,
    run,
    runs,
    static,
    vote,
)
from evenhand.serve.pages.page import Page

PAGES: tuple[Page, ...] = (
    *runs.PAGES,
    *pairs.PAGES,
    *pair.PAGES,
    *run.PAGES,
    *exports.PAGES,
    *ranking.PAGES,
    *audit.PAGES,
    *calibration.PAGES,
    *charts.PAGES,
    *attempt.PAGES,
    *vote.PAGES,
    *login.PAGES,
    *static.PAGES,
)
