"""A run's verdicts as pages show them: a table with filters, and what stands beside a pair."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from evenhand.contract import Outcome, Winner
from evenhand.contract.model import Model
from evenhand.contract.pair import Text
from evenhand.serve.values import VerdictFilters
from evenhand.store import Store
from evenhand.store.verdict_table import CriterionEnd


class TableQuery(VerdictFilters):
    """What a table shows and how it is sorted; all of it fits into an address."""

    criterion: Text | None = Field(default=None, description="One of the run's criteria")
    criterion_end: CriterionEnd | None = Field(default=None, description="How it came out")
    judges_differ: bool | None = None
    noted: bool | None = None
    unread: bool | None = None
    query: Text | None = Field(default=None, max_length=1000, description="Words to be found")
    sort: Literal["number", "confidence", "length"] = "number"
    descending: bool = False


class TableLine(Model):
    """One judge's verdict on one pair; `prompt` is its beginning."""

    number: int
    id: str
    judge: str
    outcome: Outcome
    winner: Winner | None
    confidence: float | None
    label: Winner | None
    disagrees: bool | None
    judges_differ: bool
    noted: bool
    unread: bool
    abstained: bool
    model_a: str | None
    model_b: str | None
    tags: tuple[str, ...]
    length_a: int
    length_b: int
    prompt: str


class Progress(Model):
    """How much of the run an index holds; pages say so where it is not whole."""

    done: int
    total: int
    whole: bool


class PairTable(Model):
    """`next` and `previous` are cursors. `count` is exact unless `counted_more` ("10,000+")."""

    lines: tuple[TableLine, ...]
    next: str | None
    previous: str | None
    count: int
    counted_more: bool
    table: Progress  # verdicts that can be filtered and sorted so far
    words: Progress | None  # pairs that can be searched so far; None where nothing is searched


class Neighbours(Model):
    """The pairs before and after one in a filtered table, for j and k; None at the ends."""

    previous: int | None
    next: int | None


class Browsing:
    """`service.tables`"""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def page(
        self, run_id: str, query: TableQuery, *, cursor: str | None = None, limit: int = 50
    ) -> PairTable:
        raise NotImplementedError

    async def neighbours(self, run_id: str, query: TableQuery, number: int) -> Neighbours:
        raise NotImplementedError
