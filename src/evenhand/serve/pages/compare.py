"""`/compare`: two runs over the same pairs, or two judges of one: what changed, how sure that is,
and the pairs that changed with both reasons.
"""

from __future__ import annotations

import asyncio
from typing import Any

from pydantic import Field
from starlette.responses import Response

from evenhand.analyses.diff import RunDiff
from evenhand.analyses.registry import DIFF
from evenhand.analysis_options import DiffOptions, FlowEnd
from evenhand.contract.model import Model
from evenhand.contract.pair import Text
from evenhand.messages import Message
from evenhand.present.html.rendering import short_judge
from evenhand.present.reasons import first_sentence
from evenhand.serve import reports
from evenhand.serve.fields import MOST_RUNS
from evenhand.serve.http.requests import read_query
from evenhand.serve.pages.page import Filled, Page, Visit
from evenhand.serve.values import Names, RunStatus

_PAIRS = 25
_ENDS: tuple[FlowEnd, ...] = ("A", "tie", "inconsistent", "B", "invalid")


class ComparisonQuery(Model):
    """The older of two runs is what was before; of one run, two judges are compared."""

    run: Names = Field(default=(), max_length=MOST_RUNS)
    judge: Text | None = None
    against_judge: Text | None = None
    from_outcome: FlowEnd | None = None
    to_outcome: FlowEnd | None = None
    after: int = Field(default=0, ge=0, le=2**62)

    def options(self, before: RunStatus, now: RunStatus) -> DiffOptions:
        judges = self.against_judge or self.judge, self.judge or self.against_judge
        if before.id == now.id and None in (self.judge, self.against_judge):
            first, second, *_ = [*now.judges, *(None, None)]
            judges = first, second
        return DiffOptions(
            judge=tuple(each for each in judges if each is not None),
            from_outcome=self.from_outcome,
            to_outcome=self.to_outcome,
            after=self.after,
            limit=_PAIRS,
        )


async def show_comparison(visit: Visit) -> Filled | Response:
    query = read_query(visit.given(), ComparisonQuery)
    service = visit.service
    listed, chosen = await asyncio.gather(
        service.runs(limit=MOST_RUNS),
        asyncio.gather(*(service.run(each) for each in dict.fromkeys(query.run))),
    )
    values: dict[str, Any] = {
        "runs": listed.runs,
        "chosen": [status.id for status in chosen],
        "query": query,
        "kept": None,
        "ends": _ENDS,
        "waiting": False,
    }
    two = len(chosen) == 2 or (len(chosen) == 1 and len(chosen[0].judges) > 1)
    if not two:
        return Filled("compare.html", values)
    before, now = sorted((chosen[0], chosen[-1]), key=lambda status: int(status.id))
    kept = await service.figures.get(
        reports.analysed(DIFF, (now.id, before.id), query.options(before, now))
    )
    return Filled(
        "compare.html",
        values
        | {
            "kept": kept,
            "told_briefly": () if kept.value is None else _briefly(kept.value),
            "judges": {} if kept.value is None else _short_names(kept.value),
            "before": before,
            "now": now,
            "first_sentence": first_sentence,
            "waiting": kept.waiting,
        },
    )


def _short_names(found: RunDiff) -> dict[str, str]:
    """What the page calls the judges: by their short names, unless those are alike."""
    judges = found.first.judge, found.second.judge
    short = {each: short_judge(each) for each in judges}
    return short if len(set(short.values())) == len(short) else {each: each for each in judges}


def _briefly(found: RunDiff) -> tuple[Message, ...]:
    short = _short_names(found)
    return tuple(
        Message.of(
            each.code,
            {
                name: short.get(value, value) if type(value) is str else value
                for name, value in each.values.items()
            },
        )
        for each in found.messages
    )


PAGES = (Page(path="/compare", name="comparePage", work=show_comparison, place="compare"),)
