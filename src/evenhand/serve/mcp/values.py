"""What the tools take beside the contract's own input and the service's values."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from evenhand.contract.model import Model
from evenhand.contract.pair import Text
from evenhand.serve.values import AuditRun, Criteria, Level, Rows

# As long as clients and proxies let a call take, and no longer.
MOST_WAIT_S = 300.0


class RunWanted(Model):
    run: Text = Field(description="The run's id, as startRun gave it, or its name")


class StatusWanted(RunWanted):
    wait_s: float = Field(
        default=0,
        ge=0,
        le=MOST_WAIT_S,
        allow_inf_nan=False,
        description="Wait up to so many seconds for the run to end, with progress on the way",
    )


class ReportWanted(RunWanted):
    side: Literal["A", "B"] = Field(default="B", description="Whose win rate is told")
    ties: Literal["half", "excluded", "wins"] = Field(
        default="half",
        description="Ties and inconsistent pairs count as half a win, are left out, or count as "
        "no win",
    )
    level: Level = Field(default=0.95, description="Of the confidence intervals")


class AuditWanted(AuditRun):
    """A run by its id, or labelled pairs that are judged first."""

    run: Text | None = Field(  # type: ignore[assignment]  # one of the two is needed here
        default=None, description="A run's id or name; or give pairs"
    )
    pairs: Rows = Field(
        default=(),
        description="The contract's input each, with a label: A, B or TIE, by somebody to trust",
    )
    criteria: Criteria = Field(default=(), description="For pairs that have none of their own")

    def of_run(self, run: str, judge: str | None) -> AuditRun:
        known = self.model_dump(exclude={"pairs", "criteria"}) | {"run": run, "judge": judge}
        return AuditRun.model_validate(known)
