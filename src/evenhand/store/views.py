"""Views of tables that people saved: a name, and the filters and the order that it stands for. They
belong to the store and not to a run, so that the next run of the same data has them too."""

from __future__ import annotations

import time
from collections.abc import Mapping
from datetime import datetime
from typing import Any, NamedTuple

import orjson
from sqlalchemy import delete, func, select

from evenhand.errors import InputError
from evenhand.messages import Message
from evenhand.store.database import Database
from evenhand.store.rows import insert_for, moment, to_json
from evenhand.store.schema import saved_views, unprintable

MOST_VIEWS = 50
LONGEST_VIEW_NAME = 80

_VIEW = saved_views.c


class SavedView(NamedTuple):
    """`filters` are None where what is stored cannot be read."""

    name: str
    saved_at: datetime
    filters: Mapping[str, Any] | None


class ViewStore(Database):
    """What people saved to look at again."""

    def views(self) -> list[SavedView]:
        """Oldest first."""
        query = select(_VIEW.name, _VIEW.saved_at, _VIEW.filters)
        with self._reading() as connection:
            rows = list(connection.execute(query.order_by(_VIEW.saved_at, _VIEW.name)))
        return [SavedView(name, moment(at), _filters(stored)) for name, at, stored in rows]

    def save_view(
        self, name: str, filters: Mapping[str, Any], *, words_of: int | None = None
    ) -> SavedView:
        """`words_of` is the run whose texts the filters quote: the view goes when they go. A name
        that is taken is refused: a colleague may use that view."""
        name = _checked(name)
        now, stored = time.time(), to_json(filters)
        with self._writing() as connection:
            count = connection.execute(select(func.count()).select_from(saved_views)).scalar_one()
            if count >= MOST_VIEWS:
                raise InputError(Message("store.views_too_many", most=MOST_VIEWS))
            insert = insert_for(connection.dialect.name, saved_views).on_conflict_do_nothing()
            values = {"name": name, "saved_at": now, "run_id": words_of, "filters": stored}
            if connection.execute(insert.returning(_VIEW.name), values).first() is None:
                raise InputError(Message("store.view_name_taken", name=name))
        return SavedView(name, moment(now), filters)

    def remove_view(self, name: str) -> bool:
        """Whether there was one."""
        with self._writing() as connection:
            named = delete(saved_views).where(_VIEW.name == name)
            return connection.execute(named).rowcount > 0


def _checked(name: str) -> str:
    name = " ".join(name.split())
    if not name:
        raise InputError(Message("store.view_name_blank"))
    if len(name) > LONGEST_VIEW_NAME:
        raise InputError(Message("store.view_name_too_long", n=len(name), most=LONGEST_VIEW_NAME))
    if character := unprintable(name):
        raise InputError(Message("store.view_name_unprintable", character=character))
    return name


def _filters(stored: str) -> Mapping[str, Any] | None:
    try:
        read = orjson.loads(stored)
    except orjson.JSONDecodeError:
        return None
    return read if isinstance(read, dict) else None
