"""Where the figures of a run lead: to the pairs behind them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from evenhand.pages.rendering import address

if TYPE_CHECKING:
    from evenhand.report.conclusions import Conclusion, GroupRate
    from evenhand.stats.outcomes import OutcomeCounts

Kind = Literal["A", "B", "tie", "inconsistent", "invalid"]
CountLink = tuple[Kind, int, str]  # of what, how many, and where they are


@dataclass(frozen=True, slots=True)
class RunLinks:
    """`straight` are the judges whose A and B are those of every row. Where models change places
    from row to row, a side's wins are not those of a label, and lead to all wins. `offered` is
    what the table calls a judge."""

    run_id: str
    straight: frozenset[str]
    offered: Mapping[str, str]

    def pairs(self, *, judge: str | None = None, **filters: Any) -> str:
        known = None if judge is None else self.offered.get(judge, judge)
        return address(f"/runs/{self.run_id}/pairs", judge=known, **filters)

    def pair(self, pair_id: str) -> str:
        return address(f"/runs/{self.run_id}/pair", id=pair_id)

    @staticmethod
    def name_of(conclusion: Conclusion, label: Literal["A", "B"]) -> str:
        own, other = conclusion.names
        return own if label == conclusion.side else other

    def outcomes(self, conclusion: Conclusion) -> Iterator[CountLink]:
        return self._ends(conclusion, conclusion.win_rate.counts, {})

    def parts(
        self, conclusion: Conclusion, part: Literal["criterion", "tag"], group: GroupRate
    ) -> Iterator[CountLink]:
        """Of a criterion, how it came out; of a tag, how its pairs did."""
        counts = group.rate.counts
        if part == "tag":
            yield from self._ends(conclusion, counts, {"tag": group.name})
            return
        straight = conclusion.judge in self.straight
        for kind, count in _counts(counts):
            end = {"tie": "TIE"}.get(kind, kind)
            chosen = end if straight or kind not in ("A", "B") else None
            to = self.pairs(judge=conclusion.judge, criterion=group.name, criterionEnd=chosen)
            yield kind, count, to

    def _ends(
        self, conclusion: Conclusion, counts: OutcomeCounts, filters: dict[str, Any]
    ) -> Iterator[CountLink]:
        straight = conclusion.judge in self.straight
        for kind, count in _counts(counts):
            winner = kind if kind in ("A", "B") and straight else None
            outcome = "win" if kind in ("A", "B") else kind
            to = self.pairs(judge=conclusion.judge, outcome=outcome, winner=winner, **filters)
            yield kind, count, to


def _counts(counts: OutcomeCounts) -> tuple[tuple[Kind, int], ...]:
    return (
        ("A", counts.wins_a),
        ("B", counts.wins_b),
        ("tie", counts.ties),
        ("inconsistent", counts.inconsistent),
        ("invalid", counts.invalid),
    )
