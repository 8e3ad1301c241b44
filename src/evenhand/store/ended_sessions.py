"""Logins that somebody ended, kept until they would have ended by themselves."""

from __future__ import annotations

import time

from sqlalchemy import Connection, delete, exists, select

from evenhand.store.bulk import insert_where_new
from evenhand.store.schema import ended_sessions


def end_session(connection: Connection, session_id: str, *, ends_at: float) -> None:
    connection.execute(delete(ended_sessions).where(ended_sessions.c.ends_at < time.time()))
    insert_where_new(connection, ended_sessions, {"id": session_id, "ends_at": ends_at})


def session_has_ended(connection: Connection, session_id: str) -> bool:
    found = exists().where(ended_sessions.c.id == session_id)
    return bool(connection.execute(select(found)).scalar())
