"""Flags that people set on a run's pairs, with an optional comment: the last one counts."""

from __future__ import annotations

import time
from collections.abc import Collection

from sqlalchemy import Connection, Select, delete, select

from evenhand.errors import InputError
from evenhand.store.database import Subject
from evenhand.store.records import LONGEST_COMMENT, PairFlag
from evenhand.store.rows import in_slices, insert_for, moment, refuse_unwritable
from evenhand.store.schema import items, pair_flags

_FLAG = pair_flags.c


class FlagStore(Subject):
    def set(self, run_id: int, number: int, *, comment: str | None = None) -> PairFlag:
        """Replaces an earlier one; InputError if the run has no such pair."""
        comment = _checked(comment)
        now = time.time()
        values = {"run_id": run_id, "number": number, "flagged_at": now, "comment": comment}
        with self._writing() as connection:
            there = select(items.c.number).where(items.c.run_id == run_id, items.c.number == number)
            if connection.execute(there).first() is None:
                raise InputError.of("store.flag_without_pair", number=number)
            statement = insert_for(connection.dialect.name, pair_flags)
            later = {name: statement.excluded[name] for name in ("flagged_at", "comment")}
            keys = list(pair_flags.primary_key)
            connection.execute(
                statement.on_conflict_do_update(index_elements=keys, set_=later), values
            )
        return PairFlag(moment(now), comment)

    def remove(self, run_id: int, number: int) -> bool:
        """Whether there was one."""
        with self._writing() as connection:
            this_flag = _FLAG.run_id == run_id, _FLAG.number == number
            return connection.execute(delete(pair_flags).where(*this_flag)).rowcount > 0


def _checked(comment: str | None) -> str | None:
    if comment is None or not comment.strip():
        return None
    if len(comment) > LONGEST_COMMENT:
        raise InputError.of("store.comment_too_long", n=len(comment), most=LONGEST_COMMENT)
    refuse_unwritable("comment", comment)
    return comment


def flagged_numbers(run_id: int) -> Select[tuple[int]]:
    return select(_FLAG.number).where(_FLAG.run_id == run_id)


def flags_on(connection: Connection, run_id: int, numbers: Collection[int]) -> dict[int, PairFlag]:
    flags: dict[int, PairFlag] = {}
    query = select(_FLAG.number, _FLAG.flagged_at, _FLAG.comment).where(_FLAG.run_id == run_id)
    for some in in_slices(sorted(set(numbers))):
        for number, flagged_at, comment in connection.execute(query.where(_FLAG.number.in_(some))):
            flags[number] = PairFlag(moment(flagged_at), comment)
    return flags
