"""What several judges on the same pairs come to together: outcomes and win rates, accuracy against
labels, what each judge adds, and verdicts row by row.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import orjson
from pydantic import PrivateAttr

from evenhand.analyses.registry import AnalysisSubject
from evenhand.analyses.report import outcome_titles, rate_row
from evenhand.analysis_options import JuryOptions
from evenhand.blocks import Block, Grid, NoteLines, Rates, Remark
from evenhand.blocks import Sentence as Line
from evenhand.contract.codes import INCONSISTENT, INVALID, NO_WINNER, TIE, WIN_A, WIN_B, WINNERS
from evenhand.contract.model import Model
from evenhand.errors import InputError
from evenhand.messages import Message, Sentence
from evenhand.quantities import count, counted, listed, share, value
from evenhand.report.conclusions import GroupRate
from evenhand.report.files import atomic_file
from evenhand.report.win_rates import RateOptions, Side, SideRate, matchups, side_rate
from evenhand.stats.agreement.labels import agreement
from evenhand.stats.estimates import EstimatedShare, EstimatedValue, share_of_rows
from evenhand.stats.juries.accuracy import (
    BEST_MEMBER,
    CHOSEN,
    LEARNED,
    LITTLE,
    MAJORITY,
    PLURALITY,
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
    open_jury,
    poll_jury,
    save_jury,
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
    finding: Sentence | None


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
    # Each pair's votes and verdict, where the report was made here; and what was written of them.
    _poll: JuryPoll | None = PrivateAttr(None)
    _written: tuple[Message, ...] = PrivateAttr(())

    @property
    def poll(self) -> JuryPoll:
        if self._poll is None:
            raise AttributeError("a report that was read has no votes")
        return self._poll


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
) -> tuple[bool | None, Message | None]:
    """By labels where there are enough; by its likeness to another judge where there are not."""
    copies = [
        each.second if each.first == title else each.first
        for each in between
        if title in (each.first, each.second)
        and each.kappa.low is not None
        and each.kappa.low > NEARLY_ONE
    ]
    alike = Message("jury.alike", judge=copies[0]) if copies else None
    if worth is None or worth.value is None or worth.low is None or worth.high is None:
        return (True, alike) if alike else (None, None)
    if worth.high < LITTLE:
        return True, alike or Message("jury.as_well_without")
    if worth.low > 0:
        return False, Message("jury.worse_without")
    return None, alike or Message("jury.too_few_labels")


# Several judges as one: what they say together of each pair, how sure that is, who adds what.

_PENDING = INVALID + 1


Result = JuryReport


def check(options: JuryOptions) -> None:
    if options.use is not None and options.weights is not None:
        raise InputError(Message("jury.use_has_weights"))


def compute(subject: AnalysisSubject, options: JuryOptions) -> JuryReport:
    use = None if options.use is None else open_jury(options.use)
    report = evaluate_jury(subject, options, use)
    if use is None and len(report.judges) == 1:
        raise InputError(Message("jury.one_judge", name=report.run))
    return report


def evaluate_jury(
    subject: AnalysisSubject, options: JuryOptions, use: SavedJury | None = None
) -> JuryReport:
    """All judges of the named runs on the pairs of the first; or a saved jury, and its judges only.

    Labels choose the rule, inside splits by prompt; without them it is the plurality. The quorum is
    how many whole votes a verdict takes: unless given, half of the seats for a majority, one for a
    learned jury, whose probabilities tell how much the votes say, and none for a plurality.

    `recuse_family`: no judge votes on a pair of which one contestant is of its family. Where both
    are, it does.
    """
    store, side, ties, level = subject.store, options.side, options.ties, options.level
    confidence_level(level)
    families = subject.settings.families
    poll = poll_jury(store, subject.runs, options, use=use, families=families)
    panel, saved, verdicts, outcomes = poll.panel, poll.saved, poll.verdicts, poll.outcomes
    votes, method = panel.votes, saved.jury.method
    chosen = use is None and options.weights in (None, "auto") and options.quorum is None
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
    report = JuryReport(
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
        effective_votes=effective_votes(votes, panel.labels, prompts=panel.prompts, level=level),
        judges=tuple(report_jurors(panel, saved, outcomes, checked, between, level)),
        between=between,
        notes=tuple(notes),
    )
    report._poll = poll
    return report


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


def write_jury_rows(result: JuryReport, path: Path, *, overwrite: bool = False) -> int:
    """JSON lines, as many as there are pairs."""
    pairs = 0
    with atomic_file(path, overwrite=overwrite) as stream:
        lines: list[bytes] = []
        for row in jury_rows(result):
            lines.append(orjson.dumps(row))
            pairs += 1
            if len(lines) == _LINES_AT_ONCE:
                stream.write(b"\n".join(lines) + b"\n")
                lines.clear()
        if lines:
            stream.write(b"\n".join(lines) + b"\n")
    return pairs


def finish(result: JuryReport, options: JuryOptions) -> JuryReport:
    written = []
    if options.save is not None:
        path = save_jury(result.poll.saved, options.save, overwrite=options.force)
        written.append(Message("jury.saved", path=path))
    if options.output is not None:
        rows = write_jury_rows(result, Path(options.output), overwrite=options.force)
        written.append(Message("jury.rows_in", pairs=counted(rows, "pair"), path=options.output))
    result._written = tuple(written)
    return result


def jury_rows(result: JuryReport) -> Iterator[dict[str, Any]]:
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


# As a person reads it: its verdicts, then how right it is, then its judges.

# More pairs of judges than these are a matter for JSON.
_PAIRS_AT_MOST = 15
_RULES = (CHOSEN, BEST_MEMBER, THIS_JURY, PLURALITY, MAJORITY, LEARNED)


def blocks(result: JuryReport) -> Iterator[Block]:
    judges = counted(len(result.judges), "judge")
    yield Line(Message("jury.of", judges=judges, runs=result.runs), strong=True)
    yield Line(result.rule)
    if result.chosen_by_labels:
        yield Line(Message("jury.chosen_by_labels"))
    counts = result.counts.model_dump(by_alias=False)
    # Where one judge decides, nobody disagrees with it but itself.
    code = "jury.counts" if result.member is None else "jury.counts_of_one"
    yield Line(Message(code, pairs=counted(result.pairs, "pair"), **counts))
    if result.dissent is not None:
        yield Line(Message("jury.dissent", share=100 * result.dissent))
    for each in result.rates:
        yield from _rate_blocks(result, each)
    yield from _accuracy(result)
    yield from _judges(result)
    if result.between:
        yield from _between(result)
    if result.notes:
        yield NoteLines(result.notes)
    yield from map(Line, result._written)


def _rate_blocks(result: JuryReport, each: JuryRate) -> Iterator[Block]:
    other = "B" if result.side == "A" else "A"
    model, against = each.model or result.side, each.against or other
    yield Rates(
        titles=(Message("gate.versus", model=model, against=against),),
        value=Message("figure.win_rate"),
        counted=outcome_titles(),
        rows=(
            rate_row((Message("jury.jury"),), each.jury),
            *(rate_row((part.name,), part.rate) for part in each.judges),
        ),
    )
    if result.member is None and (each.jury.counts.inconsistent or each.jury.counts.invalid):
        yield Remark(Message("jury.split_votes"))


def _accuracy(result: JuryReport) -> Iterator[Block]:
    gain, together = result.gain, result.effective_votes
    if _by_construction(gain):
        yield Line(Message("jury.gain", gain=Message("trust.gain_by_construction")))
    elif gain.value is not None:
        yield Line(Message("jury.gain_points", gain=_points(gain)))
    else:
        yield Line(Message("jury.gain", gain=_points(gain)))
    if together.value is None or together.low is None or together.high is None:
        yield Line(Message("jury.effective_unknown", reason=together.reason))
    else:
        ends = {"value": together.value, "low": together.low, "high": together.high}
        yield Line(Message("jury.effective", n=len(result.judges), **ends))
    if not result.accuracy:
        return
    yield Line(Message("jury.labels", n=result.labels), strong=True)
    columns = ("rule", "decided", "right", "half", "gain_column")
    yield Grid(
        columns=tuple(Message(f"jury.{name}") for name in columns),
        rows=tuple(
            (
                _rule_name(rule),
                _part(rule.decided.part, rule.decided.of),
                share(rule.accuracy),
                "" if rule.half_credit.value is None else _part(rule.half_credit.value, 1),
                "" if rule.gain is None else _points(rule.gain),
            )
            for rule in result.accuracy
        ),
        left=frozenset({0, 2}),
    )
    if result.accuracy_reason is not None:
        yield Remark(Message("jury.learned_reason", reason=result.accuracy_reason))


def _rule_name(rule: RuleAccuracy) -> str:
    name: str = rule.rule
    if name in _RULES:
        name = Message(f"jury.rule_{name.replace(' ', '_')}")
    if len(rule.picks) == 1:
        return Message("jury.picked", rule=name, judge=next(iter(rule.picks)))
    if rule.picks:
        folds = listed(Message("jury.in_folds", name=own, n=n) for own, n in rule.picks.items())
        total = sum(rule.picks.values())
        return Message("jury.picked_in", rule=name, folds=folds, total=total)
    return Message("jury.with_quorum", rule=name, n=rule.quorum) if rule.quorum > 1 else name


def _by_construction(gain: EstimatedValue) -> bool:
    """No pair differs from the best judge's verdict: a zero that needed no measuring."""
    return gain.value == gain.low == gain.high == 0


def _points(gain: EstimatedValue) -> str:
    if _by_construction(gain):
        return Message("jury.same_verdicts")
    if gain.value is None or gain.low is None or gain.high is None:
        return gain.reason or Message("figure.not_enough")
    own, low, high = (f"{100 * each:+.1f}" for each in (gain.value, gain.low, gain.high))
    return Message("figure.value", value=own, low=low, high=high)


def _part(part: float, of: float) -> str:
    return f"{100 * part / of:.1f}%" if of else ""


def _judges(result: JuryReport) -> Iterator[Block]:
    judges = result.judges
    kinds = ["votes", "inconsistent", "invalid"]
    kinds += [kind for kind in ("abstained", "recused") if any(getattr(j, kind) for j in judges)]
    kinds.append("not_judged")
    weighted = any(each.weight is not None for each in judges)
    worth = any(each.worth is not None for each in judges)
    columns = ["judge", *kinds, "against"]
    columns += [*(["weight"] if weighted else []), *(["worth"] if worth else [])]

    def row(each: JurorReport) -> Iterator[str]:
        yield each.title
        yield from (count(getattr(each, kind)) for kind in kinds)
        yield _part(each.against.part, each.against.of)
        if weighted:
            yield "" if each.weight is None else f"{each.weight:.2f}"
        if worth:
            yield "" if each.worth is None else value(each.worth)

    yield Grid(
        columns=tuple(Message(f"jury.{name}") for name in columns),
        rows=tuple(tuple(row(each)) for each in judges),
    )
    if worth:
        yield Remark(Message("jury.about_worth", level=result.level))
    for each in judges:
        if each.redundant and each.finding:
            yield Line(Message("jury.redundant", judge=each.title, finding=each.finding))


def _between(result: JuryReport) -> Iterator[Block]:
    shown = result.between[:_PAIRS_AT_MOST]
    yield Grid(
        columns=tuple(Message(f"jury.{each}") for each in ("judges", "pairs", "agree", "kappa")),
        rows=tuple(
            (
                Message("jury.both", first=each.first, second=each.second),
                count(each.pairs),
                share(each.agreement),
                value(each.kappa),
            )
            for each in shown
        ),
        left=frozenset({0, 2, 3}),
    )
    if len(result.between) > len(shown):
        yield Remark(Message("figure.more", n=len(result.between) - len(shown)))
