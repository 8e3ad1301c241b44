"""How many pairs of a run are ties. Installed beside evenhand, it is `evenhand ties`,
`GET /v1/runs/{id}/ties`, a page and a section of the run's HTML file."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated

import evenhand
from evenhand.analyses.registry import AnalysisEntry, AnalysisSubject
from evenhand.blocks import Block, Facts, Sentence
from evenhand.contract.model import Model
from evenhand.options import Option, Options

TIES = AnalysisEntry(
    name="ties",
    summary="Count a run's ties.",
    about="Exit codes: 0 at most --most, 1 more, 2 bad input.",
    options_in="tie_analysis:TieOptions",
    module="tie_analysis",
    in_report=True,
)


@dataclass(frozen=True, kw_only=True)
class TieOptions(Options):
    most: Annotated[
        float | None,
        Option(help="Exit with 1 above this share.", least=0, most=1, common=True, clients=True),
    ] = None


class TieReport(Model):
    run: str
    ties: int
    valid: int
    most: float | None

    @property
    def share(self) -> float:
        return self.ties / self.valid if self.valid else 0.0


Result = TieReport


def compute(subject: AnalysisSubject, options: TieOptions) -> TieReport:
    concluded = evenhand.conclude(subject.run.name, store=subject.store)
    counts = [each.win_rate.counts for each in concluded.conclusions]
    return TieReport(
        run=subject.run.name,
        ties=sum(each.ties for each in counts),
        valid=sum(each.valid for each in counts),
        most=options.most,
    )


def status(result: TieReport) -> int:
    return int(result.most is not None and result.share > result.most)


def blocks(result: TieReport) -> Iterator[Block]:
    yield Sentence(f"{result.ties} of {result.valid} pairs are ties.")
    if result.most is not None:
        yield Facts((("at most", f"{result.most:.0%}"),))
