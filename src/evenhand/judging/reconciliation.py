"""Ballots become a decision, and a decision with its reasons a reconciliation. Pure: the same
ballots give the same decision, and mirrored ballots the mirrored one. Nothing here may prefer
the first pass.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Literal

from evenhand.contract import (
    ORDERS,
    Analysis,
    Ballot,
    ConfidenceSource,
    CriterionBallot,
    CriterionOutcome,
    CriterionVerdict,
    DecidedBy,
    Differentiators,
    Locale,
    MeanProbabilities,
    Order,
    Outcome,
    Pair,
    PositionConsistency,
    Reconciling,
    Unread,
    Vote,
    Winner,
    criterion_key,
)
from evenhand.judging.ballot_set import (
    BallotOrUnread,
    BallotSet,
    WinnerWeights,
    likeliest,
    mean,
    plurality,
    weights,
)
from evenhand.judging.explanation import analysis, distinct, merged, speakers, with_reason
from evenhand.messages.phrases import marks, name_pass, say

# What reconciling comes to, before the metadata: a ruling, or none and why.


@dataclass(frozen=True, slots=True)
class Reconciliation:
    """A valid verdict before its metadata."""

    winner: Winner
    outcome: Outcome
    confidence: float | None
    confidence_source: ConfidenceSource
    comparison: tuple[CriterionVerdict, ...]
    criteria: tuple[CriterionOutcome, ...]
    overall_reasoning: str
    differentiators: Differentiators
    analysis: Analysis
    position_consistency: PositionConsistency | None
    notes: tuple[str, ...]
    decided_by: DecidedBy | None = None
    probabilities: MeanProbabilities | None = None

    @classmethod
    def of_identical(cls, pair: Pair, not_judged: str) -> Reconciliation:
        """A tie that nobody was asked about, because the two texts are the same."""
        return cls(
            winner="TIE",
            outcome=Outcome.TIE,
            confidence=None,
            confidence_source="none",
            comparison=tuple(
                CriterionVerdict(
                    criterion=criterion.name,
                    winner=None,
                    reasoning=not_judged,
                    a_strength="",
                    b_strength="",
                )
                for criterion in pair.criteria
            ),
            criteria=(),
            overall_reasoning="",
            differentiators=Differentiators(),
            analysis=Analysis(),
            position_consistency=None,
            notes=(),
        )


@dataclass(frozen=True, slots=True)
class Unreconciled:
    """The outcome `invalid`, and why."""

    reason: str
    criteria: tuple[CriterionOutcome, ...] = ()
    position_consistency: PositionConsistency | None = None


# One criterion over all the ballots of a pair.


@dataclass(frozen=True, slots=True)
class CriterionDecision:
    """One criterion over all ballots."""

    name: str
    winner: Winner | None
    outcome: Outcome
    choices: dict[Order, Winner | None]
    spoken: Mapping[Order, Sequence[CriterionBallot]]

    @classmethod
    def of(cls, box: BallotSet, name: str, how: Reconciling) -> CriterionDecision:
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

    def told(self, box: BallotSet) -> CriterionVerdict:
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

    def _gap(self, box: BallotSet, said: str) -> str:
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


# Who won, and how sure that is: all that statistics need, without a word of prose.


@dataclass(frozen=True, slots=True)
class Decision:
    winner: Winner
    outcome: Outcome
    confidence: float | None
    confidence_source: ConfidenceSource
    choices: Mapping[Order, Winner | None]  # each order's own
    criteria: Sequence[CriterionDecision]
    note: Literal["inconsistent", "split", "flipped"] | None = None
    decided_by: DecidedBy | None = None
    probabilities: MeanProbabilities | None = None

    def counted(self) -> tuple[CriterionOutcome, ...]:
        return tuple([criterion.counted() for criterion in self.criteria])


# The whole: by agreement of the two orders, or by their mean probability.


def agree(box: BallotSet, criteria: Sequence[CriterionDecision]) -> Decision | Unreconciled:
    choices = {
        order: plurality([ballot.winner for ballot in ballots])
        for order, ballots in box.ballots.items()
    }
    named = set(choices.values())
    winner = choices["original"]
    if len(named) == 1 and winner is not None:
        confidence, source = _mean_confidence(box, winner)
        return Decision(
            winner=winner,
            outcome=Outcome.TIE if winner == "TIE" else Outcome.WIN,
            confidence=confidence,
            confidence_source=source,
            choices=choices,
            criteria=criteria,
        )
    decided_by: DecidedBy | None = None
    if box.pair.allow_tie:
        winner = "TIE"
    else:
        winner, decided_by = _separate(box, criteria)
        if winner is None:
            return Unreconciled(
                "the passes do not agree on a winner, a tie is not allowed, and neither "
                "confidence nor criteria separate them; allow ties, or ask for more samples",
                criteria=tuple(criterion.counted() for criterion in criteria),
                position_consistency=box.position(choices),
            )
    return Decision(
        winner=winner,
        outcome=Outcome.INCONSISTENT,
        confidence=0.5,
        confidence_source="rule",
        choices=choices,
        criteria=criteria,
        note="split" if None in named else "inconsistent",
        decided_by=decided_by,
    )


def _mean_confidence(box: BallotSet, winner: Winner) -> tuple[float | None, ConfidenceSource]:
    """The mean over orders of the mean over the ballots that name this winner."""
    means: list[float] = []
    source: ConfidenceSource = "none"
    for order in box.orders:
        agreeing = [ballot for ballot in box.ballots[order] if ballot.winner == winner]
        stated = [ballot.confidence for ballot in agreeing if ballot.confidence is not None]
        if len(stated) < len(agreeing):
            return None, "none"
        means.append(sum(stated) / len(stated))
        source = agreeing[0].confidence_source
    # Rounding aside the mean of numbers within 0 to 1 is within 0 to 1.
    return min(1.0, sum(means) / len(means)), source


def _separate(
    box: BallotSet, criteria: Sequence[CriterionDecision]
) -> tuple[Winner | None, DecidedBy | None]:
    """Where passes differ and a tie is not allowed: the stronger signed confidence, then the
    criteria's majority, then nothing."""
    signed = {"A": Fraction(0), "B": Fraction(0)}
    ballots = box.all
    if all(ballot.confidence is not None for ballot in ballots):
        for ballot in ballots:
            if ballot.winner != "TIE":
                weight = _exact(ballot.confidence or 0.0) / len(box.ballots[ballot.order])
                signed[ballot.winner] += weight
    if signed["A"] != signed["B"]:
        return ("A" if signed["A"] > signed["B"] else "B"), "confidence"
    return _majority(box, criteria)


def _majority(
    box: BallotSet, criteria: Sequence[CriterionDecision]
) -> tuple[Winner | None, DecidedBy | None]:
    won = {"A": Fraction(0), "B": Fraction(0)}
    for criterion, asked in zip(criteria, box.pair.criteria, strict=True):
        if criterion.winner in ("A", "B"):
            won[criterion.winner] += _exact(1.0 if asked.weight is None else asked.weight)
    if won["A"] == won["B"]:
        return None, None
    return ("A" if won["A"] > won["B"] else "B"), "criteria"


def _exact(number: float) -> Fraction:
    """The number as it was written: 0.1 + 0.2 is 0.3, and rounding never decides a pair."""
    return Fraction(repr(number))


def average(box: BallotSet, criteria: Sequence[CriterionDecision]) -> Decision | Unreconciled:
    exact = box.averages_probabilities
    weighed = {
        order: mean([weights(b.probabilities if exact else None, b.winner) for b in ballots])
        for order, ballots in box.ballots.items()
    }
    allow_tie = box.pair.allow_tie
    choices = {o: likeliest(share, allow_tie=allow_tie) for o, share in weighed.items()}
    shares = mean(list(weighed.values()))
    winner = likeliest(shares, allow_tie=allow_tie)
    means = MeanProbabilities(a=shares[0], b=shares[1], tie=shares[2])
    if winner is None:
        winner, decided_by = _majority(box, criteria)
        if winner is None:
            return Unreconciled(
                "A and B are equally probable, a tie is not allowed, and the criteria do not "
                "separate them; allow ties, or ask for more samples",
                criteria=tuple(criterion.counted() for criterion in criteria),
                position_consistency=box.position(choices),
            )
        return Decision(
            winner=winner,
            outcome=Outcome.INCONSISTENT,
            confidence=0.5,
            confidence_source="rule",
            choices=choices,
            criteria=criteria,
            note="split",
            decided_by=decided_by,
            probabilities=means,
        )
    flipped = len(set(choices.values())) > 1
    confidence, source = _averaged_confidence(box, shares, winner, exact=exact)
    return Decision(
        winner=winner,
        outcome=Outcome.TIE if winner == "TIE" else Outcome.WIN,
        confidence=confidence,
        confidence_source=source,
        choices=choices,
        criteria=criteria,
        note="flipped" if flipped else None,
        probabilities=means,
    )


def _averaged_confidence(
    box: BallotSet, shares: WinnerWeights, winner: Winner, *, exact: bool
) -> tuple[float | None, ConfidenceSource]:
    a, b, tie = shares
    if winner == "TIE" and tie < max(a, b):
        # A and B weigh the same to the last bit: no probability backs the tie between them.
        return None, "none"
    if exact:
        return min(1.0, {"A": a, "B": b, "TIE": tie}[winner]), "logprobs"
    # The share of all samples, those that could not be read included.
    named = [sum(b.winner == winner for b in box.ballots[order]) for order in box.orders]
    return sum(count / box.samples for count in named) / len(box.orders), "votes"


# The usual pair: one vote an order, and agreement decides. What `agree` comes to, without a box.
#
# `tests/judging/test_facts.py` holds the two against each other.


def decide_plainly(pair: Pair, readings: Sequence[BallotOrUnread | Vote]) -> Decision | None:
    """None where it takes more than this: samples, an unread pass, or a tie that may not be."""
    votes = [each for each in readings if isinstance(each, Vote)]
    if len(votes) != len(readings) or len(votes) != (2 if pair.swap_positions else 1):
        return None
    first, last = votes[0], votes[-1]
    if first.order != "original" or first.sample != 1 or last.sample != 1:
        return None
    if pair.swap_positions and last.order != "swapped":
        return None
    agreed = first.winner == last.winner
    if not agreed and not pair.allow_tie:
        return None
    choices: dict[Order, Winner | None] = {vote.order: vote.winner for vote in votes}
    second = last if pair.swap_positions else None
    criteria = _criteria(first.criteria, second.criteria if second else None)
    if not agreed:
        return Decision(
            winner="TIE",
            outcome=Outcome.INCONSISTENT,
            confidence=0.5,
            confidence_source="rule",
            choices=choices,
            criteria=criteria,
            note="inconsistent",
        )
    confidence, source = _mean_stated(first, last)
    return Decision(
        winner=first.winner,
        outcome=Outcome.TIE if first.winner == "TIE" else Outcome.WIN,
        confidence=confidence,
        confidence_source=source,
        choices=choices,
        criteria=criteria,
    )


def _mean_stated(first: Vote, last: Vote) -> tuple[float | None, ConfidenceSource]:
    if first.confidence is None or last.confidence is None:
        return None, "none"
    # A single order is both of them, and its mean with itself is what it says, to the last bit.
    return min(1.0, (first.confidence + last.confidence) / 2), "stated"


_Won = tuple[tuple[str, Winner], ...]


# A run's criteria are few, and so are the ways in which they can come out.
@lru_cache(maxsize=1024)
def _criteria(first: _Won, second: _Won | None) -> tuple[CriterionDecision, ...]:
    """Both in the caller's order, and each with all criteria: so a vote is read."""
    if second is None:
        return tuple([_criterion(name, {"original": won}) for name, won in first])
    return tuple(
        [
            _criterion(name, {"original": won, "swapped": then})
            for (name, won), (_, then) in zip(first, second, strict=True)
        ]
    )


def _criterion(name: str, choices: dict[Order, Winner | None]) -> CriterionDecision:
    named = set(choices.values())
    winner = choices["original"] if len(named) == 1 else "TIE"
    if len(named) > 1:
        outcome = Outcome.INCONSISTENT
    else:
        outcome = Outcome.TIE if winner == "TIE" else Outcome.WIN
    return CriterionDecision(name, winner, outcome, choices, spoken={})


# A decision with its reasons: what the passes said, gathered into one ruling.


def explain(box: BallotSet, decision: Decision) -> Reconciliation:
    criteria, choices = decision.criteria, decision.choices
    inconsistent = decision.outcome is Outcome.INCONSISTENT
    heard, both = speakers(
        box, box.ballots, winner=decision.winner, choices=choices, decided=not inconsistent
    )
    comparison = tuple([criterion.told(box) for criterion in criteria])
    if inconsistent:
        points = _claims(box, criteria, comparison, heard)
    else:
        points = _advantages(criteria, comparison, heard, decision.winner)
    notes: tuple[str, ...] = ()
    if decision.note is not None:
        notes = (say(box.locale, decision.note, choices=box.listed(choices)),)
    return Reconciliation(
        winner=decision.winner,
        outcome=decision.outcome,
        confidence=decision.confidence,
        confidence_source=decision.confidence_source,
        comparison=comparison,
        criteria=decision.counted(),
        overall_reasoning=merged(
            box,
            [order for order, _ in heard],
            [ballot.reasoning for _, ballot in heard],
            both=both,
        ),
        differentiators=Differentiators(
            a_advantages=distinct(points["A"]), b_advantages=distinct(points["B"])
        ),
        analysis=analysis(box, heard, both=both),
        position_consistency=box.position(choices),
        notes=notes,
        decided_by=decision.decided_by,
        probabilities=decision.probabilities,
    )


def _advantages(
    criteria: Sequence[CriterionDecision],
    comparison: Sequence[CriterionVerdict],
    heard: Sequence[tuple[Order, Ballot]],
    winner: Winner,
) -> dict[Winner, list[str]]:
    """By side: the criteria that it won, each with its reason, and what decided for it overall."""
    won = _criteria_won(criteria, comparison)
    for _, ballot in heard:
        if ballot.winner == winner:
            won[winner] += ballot.differentiators
    return won


def _claims(
    box: BallotSet,
    criteria: Sequence[CriterionDecision],
    comparison: Sequence[CriterionVerdict],
    heard: Sequence[tuple[Order, Ballot]],
) -> dict[Winner, list[str]]:
    """The same where the passes differ: what each of them said, marked with its pass."""
    won = _criteria_won(criteria, comparison)
    lost = {criterion_key(c.name) for c in criteria if c.outcome is Outcome.INCONSISTENT}
    for order, ballot in heard:
        which = marks(box.locale)[order]
        for entry in ballot.criteria:
            if entry.winner is not None and criterion_key(entry.criterion) in lost:
                won[entry.winner].append(which + with_reason(entry.criterion, entry.reasoning))
        won[ballot.winner] += [which + point for point in ballot.differentiators]
    return won


def _criteria_won(
    criteria: Sequence[CriterionDecision], comparison: Sequence[CriterionVerdict]
) -> dict[Winner, list[str]]:
    won: dict[Winner, list[str]] = {"A": [], "B": [], "TIE": []}
    for criterion, told in zip(criteria, comparison, strict=True):
        if criterion.winner is not None and criterion.outcome is Outcome.WIN:
            won[criterion.winner].append(with_reason(criterion.name, told.reasoning))
    return won


# Ballots become a decision, and a decision with its reasons a ruling. Pure: the same ballots give
# the same ruling, and mirrored ballots the mirrored one. Nothing here may prefer the first pass.

__all__ = ["BallotOrUnread", "Decision", "Reconciliation", "Unreconciled", "decide", "reconcile"]


def reconcile(
    pair: Pair,
    readings: Sequence[BallotOrUnread],
    *,
    how: Reconciling = "agreement",
    locale: Locale = "en",
    shows_first: Order | None = None,
) -> Reconciliation | Unreconciled:
    """What the passes come to, with its reasons.

    `shows_first` is the order whose first-shown response has the smaller hash (None: the
    responses are identical): the one property of a pass that does not depend on what the caller
    calls A.
    """
    box = _boxed(pair, readings, locale, shows_first)
    decision = _decided(box, readings, how)
    return decision if isinstance(decision, Unreconciled) else explain(box, decision)


def decide(
    pair: Pair,
    readings: Sequence[BallotOrUnread | Vote],
    *,
    how: Reconciling = "agreement",
    shows_first: Order | None = None,
) -> Decision | Unreconciled:
    """The same without the reasons, at a fraction of the cost: what a run of many pairs keeps."""
    if how == "agreement":
        decision = decide_plainly(pair, readings)
        if decision is not None:
            return decision
    ballots = [each.bare_ballot() if isinstance(each, Vote) else each for each in readings]
    return _decided(_boxed(pair, ballots, "en", shows_first), ballots, how)


def _boxed(
    pair: Pair, readings: Sequence[BallotOrUnread], locale: Locale, shows_first: Order | None
) -> BallotSet:
    orders: tuple[Order, ...] = ORDERS if pair.swap_positions else ("original",)
    return BallotSet.of(pair, readings, orders, locale, shows_first)


def _decided(
    box: BallotSet, readings: Sequence[BallotOrUnread], how: Reconciling
) -> Decision | Unreconciled:
    silent = [order for order in box.canonical if not box.ballots[order]]
    if silent:
        return Unreconciled(_why_silent(readings, silent))
    if how == "average" and not box.has_weights:
        return Unreconciled(
            "averaging needs probabilities, and the judge gave none; "
            "ask for log-probabilities, or for several samples"
        )
    criteria = [CriterionDecision.of(box, name.name, how) for name in box.pair.criteria]
    choose = average if how == "average" else agree
    return choose(box, criteria)


def _why_silent(readings: Sequence[BallotOrUnread], silent: Sequence[Order]) -> str:
    reasons = {order: _why_unread(readings, order) for order in silent}
    if len(silent) > 1 and len(set(reasons.values())) == 1:
        return f"Both passes: {reasons[silent[0]]}"
    return "; ".join(f"{name_pass('en', order)}: {reason}" for order, reason in reasons.items())


def _why_unread(readings: Iterable[BallotOrUnread], order: Order) -> str:
    reasons = list(
        dict.fromkeys(r.reason for r in readings if isinstance(r, Unread) and r.order == order)
    )
    if not reasons:
        return "not made, and half a comparison decides nothing"
    return f"could not be read, {', '.join(reasons)}"
