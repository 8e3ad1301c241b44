"""How a run is carried out: limits, caps and what to redo, as one frozen value."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, Literal

from evenhand.errors import InputError
from evenhand.judges.prices import Price
from evenhand.options import Again as Again
from evenhand.options import RunningOptions

BadRows = Literal["stop", "skip"]
ExecutorName = Literal["local", "ray"]
_GIVE_UP_AFTER_S = 600.0
# Per dollar: a reasoned call of a large hosted model costs about a cent.
_UNPRICED_CALLS = 100


@dataclass(frozen=True, slots=True)
class UntilDecided:
    """`alpha` is the chance of naming a winner when there is none."""

    alpha: float = 0.05
    seed: int = 0

    def __post_init__(self) -> None:
        if not 0 < self.alpha < 1:
            raise InputError.of("runs.alpha_outside", alpha=self.alpha)

    def as_json(self) -> dict[str, Any]:
        return {"until_decided": {"alpha": self.alpha, "seed": self.seed}}


@dataclass(frozen=True, slots=True)
class RankAdaptive:
    """At most `budget` pairs, or until the expected Kendall tau reaches `certainty`."""

    budget: int
    certainty: float = 0.95
    seed: int = 0

    def __post_init__(self) -> None:
        if type(self.budget) is not int or self.budget < 1:
            raise InputError.of("runs.budget_outside", budget=self.budget)
        if not 0 < self.certainty < 1:
            raise InputError.of("runs.certainty_outside", certainty=self.certainty)

    def as_json(self) -> dict[str, Any]:
        return {"rank_adaptive": {"certainty": self.certainty, "seed": self.seed}}


@dataclass(frozen=True, kw_only=True)
class RunOptions(RunningOptions):
    """The options, and those of some commands only. None: no limit, or a good default."""

    name: str | None = None
    price: Price | None = None  # the caller's own, where no list has the judge
    caps_unpriced: bool = False  # calls, where no price is known for max_cost; else it is refused
    bad_rows: BadRows = "stop"
    until_decided: UntilDecided | None = None
    rank_adaptive: RankAdaptive | None = None
    executor: ExecutorName = "local"
    ray_address: str | None = None  # None: Ray is started on this machine
    ray_workers: int | None = None
    batch: bool = False  # by the providers' batch APIs, at half the price
    batch_poll_s: float | None = None  # how often to look there
    cancel_batches: bool = False  # give up what is there

    def __post_init__(self) -> None:
        self.check()
        workers, poll_s = self.ray_workers, self.batch_poll_s
        if workers is not None and (type(workers) is not int or workers < 1):
            raise InputError.of("option.whole", where="ray_workers", value=workers, least=1)
        if poll_s is not None and not (_is_number(poll_s) and 0 < poll_s < math.inf):
            raise InputError.of("option.above", where="batch_poll_s", value=poll_s, above=0)
        if self.bad_rows not in ("stop", "skip"):
            raise InputError.of("runs.bad_rows_unknown", bad_rows=self.bad_rows)
        if self.name is not None and not self.name.strip():
            raise InputError.of("runs.name_blank")
        if self.until_decided is not None and self.rank_adaptive is not None:
            raise InputError.of("runs.two_stop_rules")

        self._check_executor()
        self._check_batch()

    @property
    def gives_up_after_s(self) -> float:
        """With calls minutes apart, allow two failures before giving up."""
        given = _GIVE_UP_AFTER_S if self.give_up_after_s is None else self.give_up_after_s
        return max(given, 120 / self.rpm) if self.rpm else given

    @property
    def calls_unpriced(self) -> int | None:
        """The cap on calls if a price is unknown; None if max_cost is refused instead."""
        if not self.caps_unpriced or self.max_cost is None or self.batch or self.executor == "ray":
            return None
        usual = math.ceil(_UNPRICED_CALLS * self.max_cost)
        return usual if self.max_calls is None else self.max_calls

    def less(self, calls: int, cost_usd: float | None) -> RunOptions:
        """With the remaining caps; at zero calls, stored passes still become verdicts."""
        left, amount = self.max_calls, self.max_cost
        if left is not None:
            left = max(0, left - calls)
        if amount is not None:
            amount = max(1e-9, amount - (cost_usd or 0.0))
        return replace(self, max_calls=left, max_cost=amount)

    def _check_executor(self) -> None:
        if self.executor not in ("local", "ray"):
            raise InputError.of("runs.executor_unknown", executor=self.executor)
        if self.executor == "local":
            for name in ("ray_address", "ray_workers"):
                if getattr(self, name) is not None:
                    raise InputError.of("runs.belongs_to_ray", name=name)
        elif self.pursued:
            option = "until-decided" if self.until_decided else "rank-adaptive"
            raise InputError.of("runs.ray_cannot_follow", option=option)

    def _check_batch(self) -> None:
        if not self.batch:
            for name in ("batch_poll_s", "cancel_batches"):
                if getattr(self, name):
                    raise InputError.of("runs.belongs_to_batch", name=name)
            return
        if self.executor != "local":
            raise InputError.of("runs.batch_and_ray")
        for name in ("concurrency", "rpm", "tpm"):
            if getattr(self, name) is not None:
                raise InputError.of("runs.batch_paces_itself", name=name)
        if self.pursued:
            option = "until-decided" if self.until_decided else "rank-adaptive"
            raise InputError.of("runs.batch_cannot_follow", option=option)

    @property
    def pursued(self) -> dict[str, Any]:
        """What identifies a run with a stop rule, besides its data and judges."""
        wanted = self.until_decided or self.rank_adaptive
        return wanted.as_json() if wanted is not None else {}


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)
