"""What is kept: runs, judges, pairs, passes, verdicts and votes, in SQLite or PostgreSQL."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from evenhand.store.address import default_address
from evenhand.store.columns import (
    BattleColumns,
    BattleCount,
    CriterionColumns,
    OutcomeColumns,
    PrefixColumns,
)
from evenhand.store.records import (
    QUEUE_START,
    Contest,
    FailedPass,
    ItemRecord,
    ItemWhole,
    JudgedItem,
    JudgeRecord,
    NewItem,
    NewJudge,
    NewPass,
    NewRun,
    NewVerdict,
    PassKey,
    PassStatus,
    Queued,
    QueuePlace,
    RunRecord,
    RunState,
    Settled,
    SkippedRow,
    Spending,
    StoredPass,
    Tally,
    VerdictRow,
    WholeVerdict,
    WithoutPartner,
    WorkItem,
)
from evenhand.store.vote_records import (
    DRAWS,
    ORIGINS,
    AddedVotes,
    Draw,
    ItemVote,
    NewVote,
    Origin,
    RunItem,
    StoredVote,
    VoteColumns,
)

if TYPE_CHECKING:
    from evenhand.store.store import Store, open_store

__all__ = [
    "DRAWS",
    "ORIGINS",
    "QUEUE_START",
    "AddedVotes",
    "BattleColumns",
    "BattleCount",
    "Contest",
    "CriterionColumns",
    "Draw",
    "FailedPass",
    "ItemRecord",
    "ItemVote",
    "ItemWhole",
    "JudgeRecord",
    "JudgedItem",
    "NewItem",
    "NewJudge",
    "NewPass",
    "NewRun",
    "NewVerdict",
    "NewVote",
    "Origin",
    "OutcomeColumns",
    "PassKey",
    "PassStatus",
    "PrefixColumns",
    "QueuePlace",
    "Queued",
    "RunItem",
    "RunRecord",
    "RunState",
    "Settled",
    "SkippedRow",
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
    # SQLAlchemy takes a tenth of a second to load; values alone do without it.
    if name in ("Store", "open_store"):
        from evenhand.store import store

        return getattr(store, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
