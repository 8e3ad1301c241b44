"""What the pages of a run and the report in one file show alike: conclusions, rankings, audits, and
where the pairs behind each figure are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from evenhand.analyses.rank import RunRanking, sum_up_ranking
from evenhand.messages import Language
from evenhand.present.html.rendering import Wording, address
from evenhand.present.leaderboard import board_of, matrix_of
from evenhand.report.baselines import COIN, CONSTANT, LONGER
from evenhand.report.conclusions import Conclusion, Conclusions
from evenhand.report.overview import JudgeOverview, RunOverview, TrustCheck, trust_checks

if TYPE_CHECKING:
    from evenhand.contract.codes import OutcomeCounts
    from evenhand.report.conclusions import GroupRate
    from evenhand.stats.estimates import EstimatedShare
    from evenhand.stats.ranking.result import Ranking
    from evenhand.trust.audit import Audit


SHOWN_AT_MOST = 200
DISAGREEMENTS = 12
_YARDSTICKS = {LONGER: "longer", COIN: "coin", CONSTANT: "constant"}
# The word for a filter and the words for its values; without the latter a value is a name.
FILTER_WORDS = {
    "outcome": ("filter.outcome", "outcome."),
    "winner": ("filter.winner", "winner."),
    "judge": ("filter.judge", ""),
    "tag": ("filter.tag", ""),
    "disagrees": ("filter.disagrees", "disagrees."),
    "abstained": ("flag.abstained", "yes."),
    "minConfidence": ("filter.min_confidence", ""),
    "maxConfidence": ("sort.confidence_to", ""),
    "ending": ("filter.ending", "ending."),
    "label": ("filter.label", "label_is."),
    "criterion": ("filter.criterion", ""),
    "criterionEnd": ("filter.criterion_end", "end."),
    "judgesDiffer": ("filter.judges_differ", "differ."),
    "noted": ("flag.noted", "yes."),
    "unread": ("flag.unread", "yes."),
    "byRule": ("flag.byRule", "yes."),
    "model": ("filter.model", ""),
    "against": ("filter.against", ""),
    "modelWins": ("filter.model_wins", "model_wins."),
    "named": ("filter.named", "named."),
    "orders": ("filter.orders", "orders."),
    "leans": ("filter.leans", "leans."),
    "longerWins": ("filter.longer_wins", "yes."),
    "minLengthDifference": ("filter.min_longer", ""),
    "maxLengthDifference": ("filter.max_longer", ""),
    "belowConfidence": ("filter.below_confidence", ""),
    "hasConfidence": ("filter.has_confidence", "yes."),
    "flagged": ("filter.flagged", "yes."),
    "countVotes": ("filter.count_votes", "yes."),
    "query": ("filter.words", ""),
}
# Without the one, the others say nothing.
LEANING = {"model": ("against", "modelWins", "criterionEnd"), "criterion": ("criterionEnd",)}

Kind = Literal["A", "B", "tie", "inconsistent", "invalid"]
CountLink = tuple[Kind, int, str | None]  # of what, how many, and where they are


@dataclass(frozen=True, slots=True)
class RunLinks:
    """`one_contest`: A is one model in every pair, and B another. Otherwise models change places
    from row to row, and a side's wins are not those of a label: the table is asked for models.
    `offered` is what the table calls a judge. Without a `run_id` the table is in the same file;
    where that does not hold all pairs, none leads there: it would show others than were counted."""

    run_id: str | None
    one_contest: bool
    offered: Mapping[str, str]
    held: bool = True

    def pairs(self, *, judge: str | None = None, **filters: Any) -> str | None:
        known = None if judge is None else self.offered.get(judge, judge)
        return self._to("/pairs", judge=known, **filters)

    def of(self, conclusion: Conclusion, **filters: Any) -> str | None:
        """The verdicts that a conclusion is drawn from."""
        return self.pairs(judge=conclusion.judge, **self._models(conclusion), **filters)

    def pair(self, pair_id: str) -> str | None:
        return self._to("/pair", id=pair_id)

    def numbered(self, number: int) -> str | None:
        own = {"pair": number} if self.run_id is None else {}
        return self._to(f"/pairs/{number}", **own)

    def _to(self, path: str, **query: Any) -> str | None:
        here = "#pairs" if self.run_id is None else f"/runs/{self.run_id}{path}"
        return address(here, **query) if self.held else None

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
    """In the order in which every page shows them."""
    return (
        ("A", counts.wins_a),
        ("tie", counts.ties),
        ("inconsistent", counts.inconsistent),
        ("B", counts.wins_b),
        ("invalid", counts.invalid),
    )


@dataclass(frozen=True, slots=True)
class ShownConclusion:
    """`seen`, where A and B are the same two in every pair: what else the judge's verdicts
    show. `otherwise` are other judges' of the same two that claim something else."""

    own: Conclusion
    otherwise: tuple[Conclusion, ...]
    checks: tuple[TrustCheck, ...]
    seen: JudgeOverview | None


def by_others(chosen: Conclusion, found: Conclusions) -> tuple[list[Conclusion], list[Conclusion]]:
    """What the other judges conclude of the same two, and of these what claims something else."""
    two = chosen.model, chosen.against
    others = [
        each
        for each in found.conclusions
        if each.judge != chosen.judge and (each.model, each.against) == two
    ]
    return others, [each for each in others if claim_of(each) != claim_of(chosen)]


def claim_of(conclusion: Conclusion) -> str | None:
    """None where neither is said to be better."""
    code = conclusion.messages[0].code if conclusion.messages else ""
    code = code.removesuffix("_here")
    return code if code in ("conclusion.better", "conclusion.worse") else None


def show_conclusion(
    chosen: Conclusion,
    found: Conclusions,
    overview: RunOverview | None,
    links: RunLinks,
) -> ShownConclusion:
    by_judge = {each.judge: each for each in overview.judges} if overview else {}
    seen = by_judge.get(chosen.judge) if links.one_contest else None
    checks = seen.checks if seen else ()
    labels = [check.share for check in checks if check.name == "label_agreement"]
    return ShownConclusion(
        own=chosen,
        otherwise=tuple(by_others(chosen, found)[1]),
        checks=tuple(trust_checks(chosen, labels[0] if labels else None)),
        seen=seen,
    )


def several_models(conclusions: Conclusions | None) -> bool:
    """Of three models or more the leaderboard comes first."""
    found = conclusions.conclusions if conclusions else ()
    return len({name for each in found for name in (each.model, each.against)} - {None}) > 2


def ranking_values(ranked: RunRanking, ranking: Ranking) -> dict[str, Any]:
    """What a template draws of it."""
    matrix = matrix_of(ranking)
    return {
        "found": ranked,
        "ranking": ranking,
        "leads": sum_up_ranking(ranked),
        "board": board_of(ranking),
        "names": [each.model for each in ranking.models[: len(matrix)]],
        "matrix": matrix,
    }


def audit_shares(audit: Audit, language: Language) -> list[tuple[str, EstimatedShare]]:
    """The judge's accuracy, and beside it what its yardsticks get."""
    say = Wording(language)
    named = [
        (str(say(f"audit.yardstick.{_YARDSTICKS.get(each.name, each.name)}")), each.accuracy)
        for each in audit.yardsticks
    ]
    return [(audit.judge, audit.accuracy), *named]


def audit_links(audit: Audit, links: RunLinks) -> dict[str, Callable[..., str | None]]:
    """Where an audit's figures lead to; where people's votes count as labels, the table is told to
    count them too, and to leave out ties by rule, where there are any."""

    def to(**filters: Any) -> str | None:
        by_label = "label" in filters or "disagrees" in filters
        counted = True if by_label and audit.labels.by_people else None
        asked = False if "label" in filters and audit.identical else None
        return links.pairs(judge=audit.judge, countVotes=counted, byRule=asked, **filters)

    def right_by(place: int) -> str | None:
        """The pairs that the judge is right on, or one of what it is compared with; None where no
        table shows just those, as of a coin."""
        if place == 0:
            return to(disagrees=False)
        if audit.yardsticks[place - 1].name != LONGER:
            return None
        # Of equally long responses it says tie, which a label may say too.
        longer = audit.length.by_labels.part
        exact = audit.yardsticks[place - 1].accuracy.part == longer
        return to(label="longer") if exact and longer else None

    return {"to": to, "right_by": right_by}
