"""What a jury comes to: outcomes and win rates, accuracy against labels, what each judge adds, and
its verdicts row by row.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import orjson

from evenhand.contract.codes import INCONSISTENT, INVALID, NO_WINNER, TIE, WIN_A, WIN_B, WINNERS
from evenhand.contract.model import Model
from evenhand.judges.families import OwnFamilies
from evenhand.messages import Message, Sentence
from evenhand.report.conclusions import GroupRate
from evenhand.report.files import atomic_file
from evenhand.report.win_rates import RateOptions, Side, SideRate, matchups, side_rate
from evenhand.stats.agreement.labels import agreement
from evenhand.stats.estimates import EstimatedShare, EstimatedValue, share_of_rows
from evenhand.stats.juries.accuracy import (
    CHOSEN,
    LITTLE,
    MAJORITY,
    THIS_JURY,
    JuryAccuracy,
    RuleAccuracy,
    jury_accuracy,
)
from evenhand.stats.juries.independence import effective_votes
from evenhand.stats.juries.jury import JuryMethod
from evenhand.stats.juries.votes import SPLIT_A_B, SPLIT_A_TIE, SPLIT_B_TIE, JuryVerdicts
from evenhand.stats.outcomes import confidence_level
from evenhand.stats.rates.win_rate import Ties
from evenhand.store import Store
from evenhand.store.runs import Survey
from evenhand.trust.panels import (
    HUNG,
    NO_QUORUM,
    NOT_JUDGED,
    Codes,
    Juror,
    JuryPoll,
    Panel,
    SavedJury,
    Weights,
    poll_jury,
)


class JuryCounts(Model):
    """How many pairs came to each outcome; `unanimous` are those on which all judges agree."""

    wins_a: int
    wins_b: int
    ties: int
    hung: int
    no_quorum: int
    unanimous: int


class JurorReport(Model):
    """One judge on the jury, each pair counted once; `abstained` are wins and ties that its
    calibration does not vouch for, and that are no vote. `worth` is how much worse the learned jury
    does without it, in nats a label, on prompts it was not learned from; `redundant` is None where
    nothing can be told."""

    title: str
    judge: Juror
    votes: int
    inconsistent: int
    invalid: int
    abstained: int
    recused: int  # pairs it judged without a vote, one contestant being of its family
    not_judged: int
    against: EstimatedShare  # its votes that are not the jury's verdict
    weight: float | None
    tie_weight: float | None
    worth: EstimatedValue | None
    redundant: bool | None
    finding: str | None


class JurorAgreement(Model):
    """Two judges on the pairs on which both voted."""

    first: str
    second: str
    pairs: int
    agreement: EstimatedShare
    kappa: EstimatedValue


class JuryRate(Model):
    """The jury's win rate for one two models, and each judge's own beside it."""

    model: str | None
    against: str | None
    pairs: int
    jury: SideRate
    judges: tuple[GroupRate, ...]


class JuryReport(Model):
    """`weights` is the rule in use, and `member` the judge that decides where the rule is one
    judge. `gain` is of this jury over its best member, which is chosen on other prompts, with what
    is undecided as half for both."""

    run: str
    runs: tuple[str, ...]
    store: str
    weights: JuryMethod
    member: str | None
    rule: Sentence
    chosen_by_labels: bool
    quorum: int
    pairs: int
    counts: JuryCounts
    dissent: float | None  # the mean share of votes against the verdict, where there is one
    side: Side
    ties: Ties
    level: float
    rates: tuple[JuryRate, ...]
    labels: int
    accuracy: tuple[RuleAccuracy, ...]
    accuracy_reason: Sentence | None
    gain: EstimatedValue
    effective_votes: EstimatedValue
    judges: tuple[JurorReport, ...]
    between: tuple[JurorAgreement, ...]
    notes: tuple[Sentence, ...]


# The judges of a jury: how far they agree with each other, and what each adds.

# Two judges that agree so far beyond chance are nearly one judge.
NEARLY_ONE = 0.9
_RECUSED = INVALID + 1


def juror_agreement(panel: Panel, votes: Codes, level: float) -> Iterator[JurorAgreement]:
    for first, second in combinations(range(len(panel.titles)), 2):
        both = (votes[:, first] >= 0) & (votes[:, second] >= 0)
        agreed = agreement(
            votes[both, first], votes[both, second], prompts=panel.prompts[both], level=level
        )
        yield JurorAgreement(
            first=panel.titles[first],
            second=panel.titles[second],
            pairs=int(both.sum()),
            agreement=agreed.agreement,
            kappa=agreed.kappa,
        )


def report_jurors(
    panel: Panel,
    saved: SavedJury,
    outcomes: Codes,
    checked: JuryAccuracy,
    between: Sequence[JurorAgreement],
    level: float,
) -> Iterator[JurorReport]:
    decided = outcomes <= TIE
    jury, votes = saved.jury, panel.votes
    for place, title in enumerate(panel.titles):
        own, recused = panel.outcomes[:, place], panel.recused[:, place]
        cast = votes[:, place]
        heard = np.where(recused & (own != NOT_JUDGED), _RECUSED, own)
        counted = decided & (cast >= 0)
        worth = checked.worth[place] if checked.worth else None
        redundant, finding = _redundant(title, worth, between)
        yield JurorReport(
            title=title,
            judge=panel.jurors[place],
            votes=int((cast >= 0).sum()),
            inconsistent=int((heard == INCONSISTENT).sum()),
            invalid=int((heard == INVALID).sum()),
            abstained=int((panel.abstained[:, place] & ~recused).sum()),
            recused=int((heard == _RECUSED).sum()),
            not_judged=int((own == NOT_JUDGED).sum()),
            against=share_of_rows(
                (cast != outcomes)[counted], panel.prompts[counted], level=level, unit="vote"
            ),
            weight=None if jury.weights is None else jury.weights[place],
            tie_weight=(
                None if jury.tie_weights is None or not jury.ties else jury.tie_weights[place]
            ),
            worth=worth,
            redundant=redundant,
            finding=finding,
        )


def _redundant(
    title: str, worth: EstimatedValue | None, between: Sequence[JurorAgreement]
) -> tuple[bool | None, str | None]:
    """By labels where there are enough; by its likeness to another judge where there are not."""
    copies = [
        each.second if each.first == title else each.first
        for each in between
        if title in (each.first, each.second)
        and each.kappa.low is not None
        and each.kappa.low > NEARLY_ONE
    ]
    alike = f"nearly always agrees with {copies[0]}" if copies else None
    if worth is None or worth.value is None or worth.low is None or worth.high is None:
        return (True, alike) if alike else (None, None)
    if worth.high < LITTLE:
        return True, alike or "the jury does as well without it"
    if worth.low > 0:
        return False, "the jury does worse without it"
    return None, alike or "too few labels to show what it adds"


# Several judges as one: what they say together of each pair, how sure that is, who adds what.

_PENDING = INVALID + 1


@dataclass(frozen=True, slots=True)
class JuryResult:
    """A jury over its pairs: each pair's votes and verdict, and the report of all."""

    poll: JuryPoll
    report: JuryReport


def evaluate_jury(
    store: Store,
    names: Sequence[str],
    *,
    weights: Weights = "auto",
    quorum: int | None = None,
    use: SavedJury | None = None,
    forced: bool = False,
    recuse_family: bool = False,
    families: OwnFamilies = (),
    side: Side = "B",
    ties: Ties = "half",
    level: float = 0.95,
) -> JuryResult:
    """All judges of the named runs on the pairs of the first; or a saved jury, and its judges only.

    Labels choose the rule, inside splits by prompt; without them it is the plurality. The quorum is
    how many whole votes a verdict takes: unless given, half of the seats for a majority, one for a
    learned jury, whose probabilities tell how much the votes say, and none for a plurality.

    `recuse_family`: no judge votes on a pair of which one contestant is of its family. Where both
    are, it does. `families` are the caller's own entries, as the settings have them.
    """
    confidence_level(level)
    poll = poll_jury(
        store,
        names,
        weights=weights,
        quorum=quorum,
        use=use,
        forced=forced,
        recuse_family=recuse_family,
        families=families,
    )
    panel, saved, verdicts, outcomes = poll.panel, poll.saved, poll.verdicts, poll.outcomes
    votes, method = panel.votes, saved.jury.method
    chosen = use is None and (weights, quorum) == ("auto", None)
    winners = np.where((outcomes <= TIE) & ~panel.by_rule, outcomes, NO_WINNER)
    checked = jury_accuracy(
        panel.ballots,
        panel.labels,
        judges=panel.titles,
        prompts=panel.prompts,
        quorum={THIS_JURY if use else method: saved.quorum},
        given=None if use is None else winners,
        level=level,
    )
    notes = list(panel.notes)
    if use is not None and use.learned_on(panel.runs):
        notes.append(Message("trust.jury_learned_here"))
    wanted = RateOptions(side, ties, level, planned=panel.planned)
    between = tuple(juror_agreement(panel, votes, level))
    return JuryResult(
        poll=poll,
        report=JuryReport(
            run=panel.run.name,
            runs=panel.runs,
            store=store.address,
            weights=method,
            member=None if saved.jury.member is None else panel.titles[saved.jury.member],
            rule=_rule_sentence(saved, panel.titles),
            chosen_by_labels=chosen and saved.jury.labels > 0,
            quorum=saved.quorum,
            pairs=outcomes.size,
            counts=_counts(verdicts, outcomes),
            dissent=_dissent(verdicts, outcomes),
            side=side,
            ties=ties,
            level=level,
            rates=tuple(_rates(panel, outcomes, store.runs.survey(panel.run.id), wanted)),
            labels=checked.labels,
            accuracy=checked.rules if checked.labels else (),
            accuracy_reason=checked.reason,
            gain=_gain(checked, THIS_JURY if use else CHOSEN if chosen else method),
            effective_votes=effective_votes(
                votes, panel.labels, prompts=panel.prompts, level=level
            ),
            judges=tuple(report_jurors(panel, saved, outcomes, checked, between, level)),
            between=between,
            notes=tuple(notes),
        ),
    )


def _counts(verdicts: JuryVerdicts, outcomes: Codes) -> JuryCounts:
    number = np.bincount(outcomes, minlength=5).tolist()
    together = (verdicts.votes == verdicts.votes[:, :1]).all(axis=1) & (verdicts.voters > 0)
    return JuryCounts(
        wins_a=number[WIN_A],
        wins_b=number[WIN_B],
        ties=number[TIE],
        hung=number[HUNG],
        no_quorum=number[NO_QUORUM],
        unanimous=int(together.sum()),
    )


def _dissent(verdicts: JuryVerdicts, outcomes: Codes) -> float | None:
    decided = (outcomes <= TIE) & (verdicts.voters > 0)  # a tie by rule has none
    return float(verdicts.dissent[decided].mean()) if decided.any() else None


def _rates(
    panel: Panel, outcomes: Codes, survey: Survey, wanted: RateOptions
) -> Iterator[JuryRate]:
    columns = panel.columns(outcomes)
    # Beyond the codes of outcomes: exchanging A and B leaves it alone.
    judged = np.where(panel.outcomes == NOT_JUDGED, _PENDING, panel.outcomes)
    own = [
        list(matchups(replace(columns, outcome=array("b", each.tobytes())), (), survey))
        for each in judged.T
    ]
    for place, matchup in enumerate(matchups(columns, (), survey)):
        names = matchup.models if wanted.side == "A" else matchup.models[::-1]
        judges = []
        for title, theirs in zip(panel.titles, own, strict=True):
            codes = theirs[place].outcomes
            there = codes != _PENDING
            rate = side_rate(codes[there], matchup.prompts[there], wanted)
            judges.append(GroupRate(name=title, rate=rate))
        yield JuryRate(
            model=names[0],
            against=names[1],
            pairs=matchup.rows.size,
            jury=side_rate(matchup.outcomes, matchup.prompts, wanted),
            judges=tuple(judges),
        )


def _gain(checked: JuryAccuracy, rule: str) -> EstimatedValue:
    own = next((each for each in checked.rules if each.rule == rule), None)
    if own is None or own.gain is None:
        return EstimatedValue.missing(Message("trust.gain_unknown", reason=checked.choice_reason))
    return own.gain


def _rule_sentence(saved: SavedJury, titles: Sequence[str]) -> Message:
    jury = saved.jury
    if jury.member is not None:
        return Message("trust.jury_member", judge=titles[jury.member])
    if jury.weights is not None:
        return Message("trust.jury_weighted", n=saved.quorum)
    if jury.method == MAJORITY:
        return Message("trust.jury_majority", n=saved.quorum)
    if saved.quorum:
        return Message("trust.jury_plurality_quorum", n=saved.quorum)
    return Message("trust.jury_plurality")


_OUTCOMES = {0: "win", 1: "win", TIE: "tie", HUNG: "hung", NO_QUORUM: "noQuorum"}
# Of one judge; -1, the last, where it has not judged the pair.
_JUDGED = ("win", "win", "tie", "inconsistent", "invalid", None)
_HALVES = {SPLIT_A_B: ("A", "B"), SPLIT_A_TIE: ("A", "TIE"), SPLIT_B_TIE: ("B", "TIE")}
_LINES_AT_ONCE = 10_000


def write_jury_rows(result: JuryResult, path: Path, *, overwrite: bool = False) -> int:
    """JSON lines, as many as there are pairs."""
    count = 0
    with atomic_file(path, overwrite=overwrite) as stream:
        lines: list[bytes] = []
        for row in jury_rows(result):
            lines.append(orjson.dumps(row))
            count += 1
            if len(lines) == _LINES_AT_ONCE:
                stream.write(b"\n".join(lines) + b"\n")
                lines.clear()
        if lines:
            stream.write(b"\n".join(lines) + b"\n")
    return count


def jury_rows(result: JuryResult) -> Iterator[dict[str, Any]]:
    panel, verdicts = result.poll.panel, result.poll.verdicts
    jurors = [
        {"judge": own.judge, "promptVersion": own.prompt_version, "locale": own.locale}
        for own in panel.jurors
    ]
    chances = [None] * len(panel.items) if verdicts.chances is None else verdicts.chances.tolist()
    columns = zip(
        panel.items,
        result.poll.outcomes.tolist(),
        verdicts.dissent.tolist(),
        verdicts.voters.tolist(),
        chances,
        panel.outcomes.tolist(),
        panel.ballots.tolist(),
        panel.abstained.tolist(),
        panel.labels.tolist(),
        strict=True,
    )
    for item, outcome, dissent, voters, chance, judged, cast, unsure, label in columns:
        decided = outcome <= TIE
        yield {
            "id": item.key,
            "modelA": item.model_a,
            "modelB": item.model_b,
            "outcome": _OUTCOMES[outcome],
            "winner": WINNERS[outcome] if decided else None,
            # That the verdict is right, as far as labels have taught it.
            "probability": chance[outcome] if decided and chance is not None else None,
            "chances": None
            if chance is None
            else dict(zip(("a", "b", "tie"), chance, strict=True)),
            "dissent": dissent if voters else None,
            "voters": voters,
            "votes": [
                {
                    **juror,
                    "vote": WINNERS[vote] if 0 <= vote <= TIE else None,
                    "halfVotes": _HALVES.get(vote),
                    "outcome": _JUDGED[own],
                    "abstained": abstained,
                }
                for juror, own, vote, abstained in zip(jurors, judged, cast, unsure, strict=True)
            ],
            "label": WINNERS[label] if label >= 0 else None,
        }
