"""The result of a run, for terminal, JSON and Python alike."""

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
    """One judge's verdicts over all pairs of the run."""

    judge: str
    prompt_version: str | None
    pending: int
    unread_passes: int


class Spent(Model):
    """What the whole run has taken, as stored; null if unknown."""

    calls: int
    input_tokens: int | None
    output_tokens: int | None
    cost_usd: float | None
    seconds: float


class RunSummary(OutcomeCounts):
    """Outcomes are over all judges of the run; spending is this command's."""

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
        """The stored verdicts in order of pairs and judges; pending pairs have none. `store`: its
        address with the password, if it has one, which `self.store` omits."""
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
    """Implemented in a higher layer, so it is imported by name."""
    return import_module("evenhand.report.records")
