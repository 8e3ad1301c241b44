"""Saved views of a run's table of pairs: filters and an order under a name, offered on every run
with how many pairs meet them there. What a run does not know is left out, and said.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from pydantic import Field, ValidationError

from evenhand.contract.model import Model
from evenhand.contract.pair import Text
from evenhand.errors import InputError
from evenhand.serve.indexing import fill_some
from evenhand.serve.report_cache import LARGE, if_cached
from evenhand.serve.run_status import needed_run
from evenhand.serve.verdicts import TableQuery, client_names, themed, verdict_filter
from evenhand.store import RunRecord, Store
from evenhand.store.views import LONGEST_VIEW_NAME, SavedView

# So long a page waits for counts; views that are left have none on this visit.
_COUNTED_WITHIN_S = 0.1
_LONGEST_SHOWN = 40


class SaveView(Model):
    """Filters under a name."""

    name: Text = Field(max_length=LONGEST_VIEW_NAME)
    filters: TableQuery = TableQuery()


class RemoveView(Model):
    name: Text = Field(description="The view's name")


class ViewInRun(Model):
    """A saved view as one run has it. `left_out` are filters that are not known, or not in this
    run. `count` is null where it is not counted in time, `more`: there are more."""

    name: str
    saved_at: datetime
    filters: dict[str, Any]
    left_out: tuple[str, ...] = ()
    count: int | None = None
    more: bool = False


class SavedViews(Model):
    views: tuple[ViewInRun, ...]


def views_of(store: Store, run_id: str) -> SavedViews:
    return SavedViews(views=tuple(_each(store, needed_run(store, run_id))))


def save_view(store: Store, run_id: str, name: str, query: TableQuery) -> SavedViews:
    """Words that are searched for, and themes, quote the run's texts, and are forgotten with
    them."""
    run = needed_run(store, run_id)
    quotes = query.query is not None or query.theme is not None
    store.save_view(name, query.in_address(), words_of=run.id if quotes else None)
    return views_of(store, run_id)


def remove_view(store: Store, run_id: str, name: str) -> SavedViews:
    """From every run; one that is not there stays so."""
    needed_run(store, run_id)
    store.remove_view(name)
    return views_of(store, run_id)


def _each(store: Store, run: RunRecord) -> Iterator[ViewInRun]:
    saved = store.views()
    if not saved:
        return
    judges = store.run_judges(run.id)
    names = client_names(store, run, judges)
    known = {*names.values(), *(judge.name for judge in judges)}
    words = any(view.filters and "query" in view.filters for view in saved)
    coverage = fill_some(store, run, words=words, within_s=_COUNTED_WITHIN_S)
    until = time.monotonic() + _COUNTED_WITHIN_S
    for view in saved:
        query, left_out = read_filters(view)
        if query.judge is not None and query.judge not in known:
            query = query.model_copy(update={"judge": None})
            left_out = (*left_out, "judge")
        if query.theme is not None and query.judge is None and len(judges) > 1:
            query = query.model_copy(update={"theme": None})
            left_out = (*left_out, "theme")
        shown = ViewInRun(
            name=view.name, saved_at=view.saved_at, filters=query.in_address(), left_out=left_out
        )
        searchable = query.query is None or coverage.words.whole
        if query.theme is not None and coverage.table.whole:
            searchable = searchable and _has_themes(store, run)
        if coverage.table.whole and searchable and time.monotonic() < until:
            wanted = verdict_filter(query, judges, names, numbers=themed(store, run, query))
            found = store.browse(run.id, wanted, limit=1).count
            shown = shown.model_copy(update={"count": found.count, "more": found.more})
        yield shown


def read_filters(view: SavedView) -> tuple[TableQuery, tuple[str, ...]]:
    """What of it can be asked for, and the names of what cannot: another version may have written
    it, or something else than evenhand."""
    if view.filters is None:
        return TableQuery(), ("?",)
    whole = _query(view.filters)
    if whole is not None:
        return whole, ()
    kept: dict[str, Any] = {}
    left_out: list[str] = []
    for name in sorted(view.filters, key=lambda each: each != "model"):  # others lean on it
        with_it = {**kept, name: view.filters[name]}
        if _query(with_it) is None:
            left_out.append(name[:_LONGEST_SHOWN])
        else:
            kept = with_it
    return _query(kept) or TableQuery(), tuple(left_out)


def _query(filters: Mapping[str, Any]) -> TableQuery | None:
    try:
        return TableQuery.model_validate(filters)
    except (ValidationError, InputError):
        return None


def _has_themes(store: Store, run: RunRecord) -> bool:
    """Whether they are there: of a large run they take seconds to find."""
    from evenhand.serve.reports import themes

    return store.count_items(run.id) <= LARGE or if_cached(store, themes(str(run.id))) is not None
