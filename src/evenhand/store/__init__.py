"""The store, in SQLite or PostgreSQL. In the order in which data meets it:

`address` (where a store is), `sqlite` and `postgres` (engines), `schema` and `schema_version`
(tables, migrations), `locks`, `database` (transactions), `faults` (database errors in one line);
`records` (values in and out), `rows` (values as rows), `explanation` (stored answers reread);
`runs`, `intake`, `work`, `batches`, `jobs`; `verdicts`, `votes`, and `columns` for statistics;
`full_text`, `verdict_filter` and `verdict_table` for tables on pages; `figures`, `requests`;
`deletion`. `store` has each of these subjects as an attribute.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from evenhand.store.address import default_address
from evenhand.store.records import (
    DRAWS,
    ORIGINS,
    QUEUE_START,
    AddedVotes,
    BattleCount,
    Contest,
    CriterionColumns,
    Draw,
    FailedPass,
    ItemColumns,
    ItemVote,
    ItemWhole,
    JudgedItem,
    JudgeRecord,
    NewJudge,
    NewPass,
    NewRun,
    NewVerdict,
    NewVote,
    Origin,
    OutcomeColumns,
    PassStatus,
    Queued,
    QueuePlace,
    RunItem,
    RunRecord,
    RunState,
    Settled,
    Spending,
    StoredPass,
    StoredVote,
    Tally,
    VerdictRow,
    VoteColumns,
    WholeVerdict,
    WithoutPartner,
    WorkItem,
)

if TYPE_CHECKING:
    from evenhand.store.store import Store, open_store

__all__ = [
    "DRAWS",
    "ORIGINS",
    "QUEUE_START",
    "AddedVotes",
    "BattleCount",
    "Contest",
    "CriterionColumns",
    "Draw",
    "FailedPass",
    "ItemColumns",
    "ItemVote",
    "ItemWhole",
    "JudgeRecord",
    "JudgedItem",
    "NewJudge",
    "NewPass",
    "NewRun",
    "NewVerdict",
    "NewVote",
    "Origin",
    "OutcomeColumns",
    "PassStatus",
    "QueuePlace",
    "Queued",
    "RunItem",
    "RunRecord",
    "RunState",
    "Settled",
    "Spending",
    "Store",
    "StoredPass",
    "StoredVote",
    "Tally",
    "VerdictRow",
    "VoteColumns",
    "WholeVerdict",
    "WithoutPartner",
    "WorkItem",
    "default_address",
    "open_store",
]


def __getattr__(name: str) -> Any:
    # SQLAlchemy takes 0.1 s to load; the values do without it.
    if name in ("Store", "open_store"):
        from evenhand.store import store

        return getattr(store, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
