"""One criterion over all the ballots of a pair."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from evenhand.contract import (
    CriterionBallot,
    CriterionOutcome,
    CriterionVerdict,
    Order,
    Outcome,
    Reconciling,
    Winner,
    criterion_key,
)
from evenhand.phrases import name_pass, say
from evenhand.reconcile.box import Box
from evenhand.reconcile.prose import merged, speakers
from evenhand.reconcile.votes import likeliest, mean, plurality, weights


@dataclass(frozen=True, slots=True)
class Criterion:
    """One criterion over all ballots."""

    name: str
    winner: Winner | None
    outcome: Outcome
    choices: dict[Order, Winner | None]
    spoken: Mapping[Order, Sequence[CriterionBallot]]

    @classmethod
    def of(cls, box: Box, name: str, how: Reconciling) -> Criterion:
        key = criterion_key(name)
        spoken: dict[Order, Sequence[CriterionBallot]] = {
            order: box.said[order].get(key, ()) for order in box.orders
        }
        if not all(spoken.values()):
            choices = {o: plurality(_winners(spoken[o])) for o in box.orders}
            return cls(name, None, Outcome.INVALID, choices, spoken)
        # Without probabilities and without repeats there is nothing to average: a criterion
        # whose winner changed with the order stays inconsistent.
        if how == "average" and (box.samples > 1 or _all_weighed(spoken)):
            weighed = {
                order: mean([weights(e.probabilities, e.winner) for e in entries if e.winner])
                for order, entries in spoken.items()
            }
            choices = {o: likeliest(share, allow_tie=True) for o, share in weighed.items()}
            winner = likeliest(mean(list(weighed.values())), allow_tie=True)
            outcome = Outcome.TIE if winner == "TIE" else Outcome.WIN
            return cls(name, winner, outcome, choices, spoken)
        choices = {order: plurality(_winners(entries)) for order, entries in spoken.items()}
        named = set(choices.values())
        if len(named) == 1 and None not in named:
            winner = choices["original"]
            outcome = Outcome.TIE if winner == "TIE" else Outcome.WIN
            return cls(name, winner, outcome, choices, spoken)
        return cls(name, "TIE", Outcome.INCONSISTENT, choices, spoken)

    def told(self, box: Box) -> CriterionVerdict:
        heard, both = speakers(
            box,
            self.spoken,
            winner=self.winner,
            choices=self.choices,
            decided=self.outcome is Outcome.WIN or self.outcome is Outcome.TIE,
        )
        orders = [order for order, _ in heard]
        entries = [entry for _, entry in heard]
        reasoning = merged(box, orders, [entry.reasoning for entry in entries], both=both)
        return CriterionVerdict(
            criterion=self.name,
            winner=self.winner,
            reasoning=reasoning
            if self.outcome is not Outcome.INVALID
            else self._gap(box, reasoning),
            a_strength=merged(box, orders, [entry.a_assessment for entry in entries], both=both),
            b_strength=merged(box, orders, [entry.b_assessment for entry in entries], both=both),
        )

    def counted(self) -> CriterionOutcome:
        choices = self.choices
        return _counted(self.name, self.outcome, choices["original"], choices.get("swapped"))

    def _gap(self, box: Box, said: str) -> str:
        """Where an order is silent on it: that it is, and what the other one said."""
        silent = [order for order in box.canonical if not self.spoken[order]]
        if len(silent) == len(box.orders):
            return say(box.locale, "not_judged")
        gap = say(box.locale, "not_judged_in", which=name_pass(box.locale, silent[0]))
        return f"{gap} {said}".strip()


# The same few of them in every pair of a run, and frozen.
@lru_cache(maxsize=1024)
def _counted(
    name: str, outcome: Outcome, first: Winner | None, second: Winner | None
) -> CriterionOutcome:
    return CriterionOutcome(
        criterion=name, outcome=outcome, first_pass_winner=first, second_pass_winner=second
    )


def _winners(entries: Iterable[CriterionBallot]) -> list[Winner]:
    return [entry.winner for entry in entries if entry.winner is not None]


def _all_weighed(spoken: Mapping[Order, Sequence[CriterionBallot]]) -> bool:
    return all(entry.probabilities for entries in spoken.values() for entry in entries)
