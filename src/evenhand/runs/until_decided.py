"""Judge until it is settled which of two is better.

Prompts go out in a random order, and a look uses the settled beginning of that order: what is
answered fast is no random sample.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from evenhand.errors import InputError
from evenhand.runs.pursuit import Found
from evenhand.runs.stop import StoppedBy
from evenhand.runs.supply import InRandomOrder, Supply
from evenhand.store import Store

if TYPE_CHECKING:
    from evenhand.report.settled_prefix import SettledPrefix


@dataclass(frozen=True, slots=True)
class UntilDecided:
    """`alpha` is the chance of naming a winner where there is none."""

    alpha: float = 0.05
    seed: int = 0

    def __post_init__(self) -> None:
        if not 0 < self.alpha < 1:
            raise InputError(f"alpha is {self.alpha!r}; it takes a number between 0 and 1")

    def as_json(self) -> dict[str, Any]:
        return {"until_decided": {"alpha": self.alpha, "seed": self.seed}}


class DecisionPursuit:
    def __init__(
        self,
        store: Store,
        run_id: int,
        judge_id: int,
        wanted: UntilDecided,
        *,
        careful: bool,
    ) -> None:
        """`careful`: few pairs are under way at once, since what is when it ends is in vain."""
        self._store = store
        self._run_id = run_id
        self._judge_id = judge_id
        self._wanted = wanted
        self._careful = careful
        self._looked_at = 0
        self._prefix: SettledPrefix | None = None

    def begin(self) -> StoppedBy | None:
        from evenhand.report.settled_prefix import SettledPrefix

        survey = self._store.survey(self._run_id)
        if len(survey.models) > 1:
            first, second = (f"{a} against {b}" for a, b, _ in survey.models[:2])
            raise InputError(
                f"--until-decided is for one A against one B, and the rows hold {first} and "
                f"{second}; for several models take --rank-adaptive, and name two models in the "
                "same order in every row"
            )
        self._store.fill_queue(self._run_id, seed=self._wanted.seed)
        self._prefix = SettledPrefix.of(
            self._store,
            self._run_id,
            self._judge_id,
            alpha=self._wanted.alpha,
            seed=self._wanted.seed,
        )
        return self._look()

    def look(self, done: int) -> StoppedBy | None:
        found = self._look()
        self._looked_at = done
        return found

    def _look(self) -> StoppedBy | None:
        self._settled.look()
        return "decided" if self._settled.decides else None

    def found(self) -> Found:
        return Found(decision=self._settled.conclusion() if self._prefix else None)

    def announcement(self) -> str | None:
        return self._settled.test.plan.announcement()

    def account(self) -> str | None:
        return self._settled.account() if self._prefix else None

    def most_pairs(self, pending: int) -> int:
        return pending

    def supply(self, judge_id: int) -> Supply:
        looked_at = (lambda: self._looked_at) if self._careful else None
        return InRandomOrder(self._store, self._run_id, judge_id, looked_at=looked_at)

    @property
    def _settled(self) -> SettledPrefix:
        assert self._prefix is not None  # noqa: S101 - begin() comes first
        return self._prefix
