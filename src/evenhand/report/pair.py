"""One pair of a run whole: the texts, and of each judge the verdict and every pass."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from evenhand.contract import (
    Ballot,
    ErrorBody,
    Failure,
    Locale,
    Mode,
    Order,
    Pair,
    Pass,
    Unread,
    Usage,
    Verdict,
    Winner,
)
from evenhand.contract.model import Model
from evenhand.report.lookup import find_item, find_run
from evenhand.report.retelling import told, with_prose
from evenhand.store import ItemWhole, JudgedItem, PassStatus, RunRecord, Store, StoredPass
from evenhand.store.faults import of_run


class StoredAnswer(Model):
    """One pass as it is kept: a ballot, an unread answer, or what failed."""

    order: Order
    sample: int
    status: PassStatus
    ballot: Ballot | None = None
    unread: Unread | None = None
    error: ErrorBody | None = None
    repaired: tuple[Unread, ...] = ()
    usage: Usage
    time_ms: float
    model: str | None = None
    request_ids: tuple[str, ...] = ()
    created_at: datetime
    reused: bool  # another run made it

    @classmethod
    def of(cls, stored: StoredPass, pair: Pair, run: RunRecord) -> StoredAnswer:
        made = with_prose(stored, pair).made
        known: dict[str, Any] = (
            {"error": made.error}
            if not isinstance(made, Pass)
            else {
                "ballot": made.ballot,
                "unread": made.unread,
                "repaired": made.repaired,
                "model": made.model,
                "request_ids": made.request_ids,
            }
        )
        return cls(
            order=made.order,
            sample=made.sample,
            status=stored.status,
            usage=made.usage,
            time_ms=made.time_ms,
            created_at=stored.created_at,
            reused=stored.run_id != run.id,
            **known,
        )

    @property
    def raw(self) -> str:
        reading = self.ballot or self.unread
        return reading.raw if reading else ""


class JudgedPair(Model):
    """`verdict` is the contract's verdict or failure; null while the pair is pending."""

    judge: str
    prompt_version: str | None
    locale: Locale | None
    mode: Mode | None
    settings: dict[str, Any]
    pending: bool
    verdict: Verdict | Failure | None
    passes: tuple[StoredAnswer, ...]
    replaced: tuple[StoredAnswer, ...]  # earlier tries, set aside by a retry

    @classmethod
    def of(cls, judged: JudgedItem, pair: Pair, run: RunRecord) -> JudgedPair:
        judge, verdict = judged.judge, None
        if judged.settled is not None:
            verdict = told(judged.settled, pair, judged.passes, judge=judge, run=run)
        return cls(
            judge=judge.name,
            prompt_version=judge.prompt_version,
            locale=judge.locale,
            mode=judge.mode,
            settings=dict(judge.settings),
            pending=judged.settled is None,
            verdict=verdict,
            passes=tuple(StoredAnswer.of(each, pair, run) for each in judged.passes),
            replaced=tuple(StoredAnswer.of(each, pair, run) for each in judged.replaced),
        )


class PairReport(Model):
    run: str
    id: str
    number: int  # its place in the run, from 1
    source: str
    row: int
    label: Winner | None
    model_a: str | None
    model_b: str | None
    tags: tuple[str, ...]
    pair: Pair
    judges: tuple[JudgedPair, ...]


@of_run
def report_pair(store: Store, run_name: str, name: str) -> PairReport:
    """`name` is the pair's id, or its number."""
    run = find_run(store, run_name)
    return whole_pair(run, find_item(store, run, name))


def whole_pair(run: RunRecord, whole: ItemWhole) -> PairReport:
    item = whole.item
    return PairReport(
        run=run.name,
        id=item.key,
        number=item.number,
        source=item.source,
        row=item.row,
        label=item.label,
        model_a=item.model_a,
        model_b=item.model_b,
        tags=item.tags,
        pair=whole.pair,
        judges=tuple(JudgedPair.of(judged, whole.pair, run) for judged in whole.judged),
    )
