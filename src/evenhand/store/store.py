"""The face of a store: every question that the other rooms may ask of it."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self

from evenhand.store.records import (
    ItemWhole,
    JudgeRecord,
    NewItem,
    NewJudge,
    NewPass,
    NewRun,
    NewVerdict,
    RunRecord,
    RunState,
    SkippedRow,
    Tally,
    VerdictRow,
    WholeVerdict,
    WorkItem,
)


def open_store(
    address: str | Path | None = None, *, create: bool = True, busy_timeout_s: float = 30
) -> Store:
    raise NotImplementedError


class Store:
    """Safe to use from several threads; writes come from one at a time."""

    @property
    def address(self) -> str:
        raise NotImplementedError

    def close(self) -> None:
        raise NotImplementedError

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def create_run(self, run: NewRun) -> RunRecord:
        raise NotImplementedError

    def find_run(self, name: str) -> RunRecord | None:
        raise NotImplementedError

    def run_of_fingerprint(self, fingerprint: str) -> RunRecord | None:
        raise NotImplementedError

    def list_runs(self) -> list[RunRecord]:
        raise NotImplementedError

    def update_run(
        self,
        run_id: int,
        *,
        state: RunState | None = None,
        intake_done: bool | None = None,
        stopped_by: str | Literal[False] | None = False,  # False: as it is
        seconds: float | None = None,
        calls: int | None = None,
        reused_passes: int | None = None,
        summary: Mapping[str, Any] | None = None,
    ) -> None:
        """Set what is given; the rest stays."""
        raise NotImplementedError

    def rename_run(self, name: str, new: str) -> None:
        raise NotImplementedError

    def delete_run(self, name: str) -> None:
        raise NotImplementedError

    def hold(self, run_id: int) -> AbstractContextManager[None]:
        raise NotImplementedError

    def add_judge(self, judge: NewJudge) -> int:
        raise NotImplementedError

    def set_run_judges(self, run_id: int, judge_ids: Sequence[int]) -> None:
        raise NotImplementedError

    def run_judges(self, run_id: int) -> list[JudgeRecord]:
        raise NotImplementedError

    def add_items(self, run_id: int, items: Sequence[NewItem]) -> int:
        raise NotImplementedError

    def count_items(self, run_id: int) -> int:
        raise NotImplementedError

    def add_skipped(self, run_id: int, rows: Sequence[SkippedRow]) -> None:
        raise NotImplementedError

    def skipped(self, run_id: int, *, limit: int = 100) -> list[SkippedRow]:
        raise NotImplementedError

    def pending(self, run_id: int, judge_id: int, *, after: int, limit: int) -> list[WorkItem]:
        raise NotImplementedError

    def write(self, passes: Sequence[NewPass], verdicts: Sequence[NewVerdict]) -> None:
        raise NotImplementedError

    def retire(self, run_id: int, statuses: Collection[Literal["failed", "unread"]]) -> int:
        raise NotImplementedError

    def tally(self, run_id: int, judge_id: int | None = None) -> Tally:
        raise NotImplementedError

    def verdicts(
        self, run_id: int, *, after: int = 0, limit: int = 500, judge_id: int | None = None
    ) -> list[VerdictRow]:
        """A page of whole items after item number `after`; an empty page is the end."""
        raise NotImplementedError

    def whole_verdicts(
        self, run_id: int, *, after: int = 0, limit: int = 100, judge_id: int | None = None
    ) -> list[WholeVerdict]:
        raise NotImplementedError

    def each_verdict(self, run_id: int, *, judge_id: int | None = None) -> Iterator[VerdictRow]:
        raise NotImplementedError

    def each_whole_verdict(
        self, run_id: int, *, judge_id: int | None = None
    ) -> Iterator[WholeVerdict]:
        raise NotImplementedError

    def item(self, run_id: int, key: str) -> ItemWhole | None:
        raise NotImplementedError
