"""What a run came to: one value that the terminal, JSON and Python callers all get."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evenhand.contract import ErrorBody, Failure, Verdict
from evenhand.contract.codes import OutcomeCounts
from evenhand.contract.model import Model
from evenhand.errors import MissingExtra
from evenhand.messages import Sentence
from evenhand.runs.stop import StoppedBy
from evenhand.runs.stop_rules import RankProgress
from evenhand.stats.stopping.sequential import SequentialDecision
from evenhand.store import open_store

if TYPE_CHECKING:
    from pandas import DataFrame


class JudgeSummary(OutcomeCounts):
    """One judge's verdicts over all pairs of the run: four outcomes, and what is still pending."""

    judge: str
    prompt_version: str | None
    pending: int
    unread_passes: int


class Spent(Model):
    """What the whole run has taken so far, as far as it is stored; null where it is not known."""

    calls: int
    input_tokens: int | None
    output_tokens: int | None
    cost_usd: float | None
    seconds: float


class RunSummary(OutcomeCounts):
    """Outcomes are the run's, over all its judges; spending is this command's only."""

    run: str
    store: str
    pairs: int
    pending: int
    skipped_rows: int
    calls: int
    reused_passes: int
    input_tokens: int | None
    output_tokens: int | None
    cost_usd: float | None
    seconds: float
    stopped_by: StoppedBy | None
    judges: tuple[JudgeSummary, ...]
    total: Spent
    error: ErrorBody | None = None  # where the judge or the store stopped it
    notes: tuple[Sentence, ...] = ()
    decision: SequentialDecision | None = None  # of a run until it is decided
    ranking: RankProgress | None = None  # of a run that ranks adaptively

    @property
    def finished(self) -> bool:
        """Also true if it ended as planned: decided, or its budget used up."""
        if self.stopped_by is None:
            return self.pending == 0
        return self.stopped_by in ("decided", "certain", "budget")

    def verdicts(self, store: str | Path | None = None) -> Iterator[Verdict | Failure]:
        """The run's stored verdicts, in the order of its pairs, judge by judge; pending pairs have
        none. `store`: its address, needed if it has a password, which `self.store` omits.
        """
        for row in self._rows(store):
            yield row.verdict

    def to_pandas(self, store: str | Path | None = None) -> DataFrame:
        """The same as a table, with the columns of an export."""
        try:
            pandas = import_module("pandas")
        except ImportError:
            raise MissingExtra("pandas", "pandas") from None
        records = _records()
        rows = [
            row.model_dump(mode="json", by_alias=False, exclude=set(records.ONLY_IN_FULL))
            for row in self._rows(store)
        ]
        return pandas.DataFrame(rows, columns=list(records.COLUMNS))

    def _rows(self, store: str | Path | None) -> Iterator[Any]:
        with open_store(store or self.store, create=False) as opened:
            yield from _records().read_run(opened, self.run)


def _records() -> Any:
    """The room that knows a run's rows is above this one, so it is asked by name."""
    return import_module("evenhand.report.records")
