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
    """`one_contest`: A is one model in every pair, and B another. Otherwise models change places
    from row to row, and a side's wins are not those of a label: the table is asked for models.
    `offered` is what the table calls a judge."""

    run_id: str
    one_contest: bool
    offered: Mapping[str, str]

    def pairs(self, *, judge: str | None = None, **filters: Any) -> str:
        known = None if judge is None else self.offered.get(judge, judge)
        return address(f"/runs/{self.run_id}/pairs", judge=known, **filters)

    def of(self, conclusion: Conclusion, **filters: Any) -> str:
        """The verdicts that a conclusion is drawn from."""
        return self.pairs(judge=conclusion.judge, **self._models(conclusion), **filters)

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
        for kind, count in _counts(counts):
            models, wins = self._won(conclusion, kind)
            end: str = {"tie": "TIE"}.get(kind, kind)
            if wins is not None:
                end = "model" if wins else "other"
            yield (
                kind,
                count,
                self.pairs(
                    judge=conclusion.judge, criterion=group.name, criterionEnd=end, **models
                ),
            )

    def _ends(
        self, conclusion: Conclusion, counts: OutcomeCounts, filters: dict[str, Any]
    ) -> Iterator[CountLink]:
        for kind, count in _counts(counts):
            models, wins = self._won(conclusion, kind)
            to = self.pairs(
                judge=conclusion.judge,
                outcome="win" if kind in ("A", "B") else kind,
                winner=kind if kind in ("A", "B") and wins is None else None,
                modelWins=wins,
                **models,
                **filters,
            )
            yield kind, count, to

    def _models(self, conclusion: Conclusion) -> dict[str, str]:
        """As the table is asked for the pairs of these two."""
        if self.one_contest:
            return {}
        named = [name for name in self._by_label(conclusion) if name is not None]
        if len(named) < 2:
            return {"named": "one", "model": named[0]} if named else {"named": "none"}
        return {"model": named[0], "against": named[1]}

    def _won(self, conclusion: Conclusion, kind: Kind) -> tuple[dict[str, str], bool | None]:
        """And whether the model that is asked for won; None where a label says it, or nobody."""
        models = self._models(conclusion)
        own, other = self._by_label(conclusion)
        if kind not in ("A", "B") or "model" not in models or own == other:
            return models, None
        if kind == "B":
            own, other = other, own
        if own is None:
            return models, False
        return {**models, "model": own, **({} if other is None else {"against": other})}, True

    @staticmethod
    def _by_label(conclusion: Conclusion) -> tuple[str | None, str | None]:
        own, other = conclusion.model, conclusion.against
        return (own, other) if conclusion.side == "A" else (other, own)


def _counts(counts: OutcomeCounts) -> tuple[tuple[Kind, int], ...]:
    return (
        ("A", counts.wins_a),
        ("B", counts.wins_b),
        ("tie", counts.ties),
        ("inconsistent", counts.inconsistent),
        ("invalid", counts.invalid),
    )
