"""Every page there is."""

from __future__ import annotations

from evenhand.serve.pages import exports, login, pair, pairs, run, runs, static
from evenhand.serve.pages.page import Page

PAGES: tuple[Page, ...] = (
    *runs.PAGES,
    *pairs.PAGES,
    *pair.PAGES,
    *run.PAGES,
    *exports.PAGES,
    *login.PAGES,
    *static.PAGES,
)
