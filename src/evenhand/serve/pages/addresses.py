"""Every page there is."""

from __future__ import annotations

from evenhand.serve.pages import runs, static
from evenhand.serve.pages.page import Page

PAGES: tuple[Page, ...] = (*runs.PAGES, *static.PAGES)
