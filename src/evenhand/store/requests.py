"""A server's memory of its clients: answers to requests with an idempotency key, and ended
sessions.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field

import orjson
from sqlalchemy import ColumnElement, and_, delete, exists, select, update

from evenhand.store.database import Subject
from evenhand.store.rows import insert_where_new
from evenhand.store.schema import ended_sessions, idempotency, shorten

RETAINED_S = 24 * 60 * 60
# Longer than any answer takes, so an older request's process has died.
LEASED_S = 15 * 60


@dataclass(frozen=True, slots=True)
class KeyedRequest:
    """`token` identifies the client: two clients' keys are separate. `owner` is random per attempt,
    so that only that attempt can end it."""

    token: str
    key: str
    path: str
    digest: str
    owner: str


@dataclass(frozen=True, slots=True)
class StoredResponse:
    status: int
    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class StoredRequest:
    """An earlier request with the same key; without an answer if in progress."""

    path: str
    digest: str
    begun_at: float
    leased_until: float
    answer: StoredResponse | None


class RequestStore(Subject):
    def begin(self, request: KeyedRequest, *, leased_s: float = LEASED_S) -> StoredRequest | None:
        """None if the request is new and the caller is to answer it."""
        with self._writing() as connection:
            now = time.time()
            this_request = _row_of(request)
            outdated = and_(this_request, idempotency.c.begun_at < now - RETAINED_S)
            connection.execute(delete(idempotency).where(outdated))
            mine = {"owner": request.owner, "begun_at": now, "leased_until": now + leased_s}
            values = {
                "token": request.token,
                "key": shorten(request.key),
                "path": request.path,
                "digest": request.digest,
                **mine,
            }
            dead = and_(
                this_request,
                idempotency.c.status.is_(None),
                idempotency.c.leased_until < now,
                idempotency.c.path == request.path,
                idempotency.c.digest == request.digest,
            )
            while True:
                if insert_where_new(connection, idempotency, values):
                    return None
                if connection.execute(update(idempotency).where(dead).values(mine)).rowcount:
                    return None
                row = connection.execute(select(idempotency).where(this_request)).mappings().first()
                if row is not None:  # else it was forgotten a moment ago, and the key is free
                    break
            answer = None
            if row["status"] is not None:
                headers = orjson.loads(row["headers"])
                answer = StoredResponse(row["status"], bytes(row["body"]), headers)
            return StoredRequest(
                row["path"], row["digest"], row["begun_at"], row["leased_until"], answer
            )

    def finish(self, request: KeyedRequest, answer: StoredResponse) -> bool:
        """Keep the answer; False if the request had been taken over."""
        with self._writing() as connection:
            values = {
                "status": answer.status,
                "headers": orjson.dumps(dict(answer.headers)).decode(),
                "body": answer.body,
            }
            return bool(
                connection.execute(update(idempotency).where(_own(request)).values(values)).rowcount
            )

    def forget(self, request: KeyedRequest) -> None:
        """No answer worth keeping: the key may be reused at once."""
        with self._writing() as connection:
            connection.execute(delete(idempotency).where(_own(request)))

    def forget_old(self) -> int:
        with self._writing() as connection:
            outdated = idempotency.c.begun_at < time.time() - RETAINED_S
            return connection.execute(delete(idempotency).where(outdated)).rowcount

    def end_session(self, session_id: str, *, ends_at: float) -> None:
        """Somebody logged out; it would have expired then."""
        with self._writing() as connection:
            connection.execute(delete(ended_sessions).where(ended_sessions.c.ends_at < time.time()))
            insert_where_new(connection, ended_sessions, {"id": session_id, "ends_at": ends_at})

    def session_has_ended(self, session_id: str) -> bool:
        with self._reading() as connection:
            ended = exists().where(ended_sessions.c.id == session_id)
            return bool(connection.execute(select(ended)).scalar())


def _row_of(request: KeyedRequest) -> ColumnElement[bool]:
    return and_(idempotency.c.token == request.token, idempotency.c.key == shorten(request.key))


def _own(request: KeyedRequest) -> ColumnElement[bool]:
    return and_(
        _row_of(request), idempotency.c.owner == request.owner, idempotency.c.status.is_(None)
    )
