"""Two runs over the same pairs, or two judges of one run: what changed, how sure that is, and which
pairs went where."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from evenhand.analyses.registry import AnalysisSubject
from evenhand.analysis_options import DiffOptions, Side
from evenhand.blocks import Block, Facts, Grid, NoteLines, Remark, Title
from evenhand.blocks import Sentence as Line
from evenhand.contract import Locale, Mode, Outcome, Verdict, Winner
from evenhand.contract.codes import INVALID, NO_WINNER
from evenhand.contract.model import Model
from evenhand.contract.verdict import flip_or_none, rename
from evenhand.errors import InputError
from evenhand.messages import Message, Sentence, joined, render
from evenhand.quantities import count, counted, counted_share
from evenhand.quantities import value as figure
from evenhand.report.evidence import RowFacts, in_random_order, until_decided
from evenhand.report.lookup import chosen_judge
from evenhand.report.matching import MATCHED_BY, MatchedBy, Matches, match_items, models_of
from evenhand.report.votes import fair_labels
from evenhand.report.win_rates import ConclusionLimits, LabelRecord, exchange
from evenhand.stats.clusters import FEWEST_PAIRS, FEWEST_PROMPTS
from evenhand.stats.estimates import EstimatedShare, share_of_rows
from evenhand.stats.outcomes import confidence_level
from evenhand.stats.rates.outcome_change import (
    FLOW_CODES,
    FlowRow,
    OutcomeChange,
    outcome_change,
)
from evenhand.stats.rates.paired_difference import PairedDifference, paired_difference
from evenhand.stats.rates.win_rate import Circumstances
from evenhand.stats.sign_flip import SignFlipTest
from evenhand.store import JudgeRecord, OutcomeColumns, RunRecord, Store
from evenhand.store.explanation import explained
from evenhand.store.faults import of_run
from evenhand.store.verdicts import VerdictPlace

MOST_FLIPPED = 100
_PROMPT_CHARACTERS = 300


class DiffedRun(Model):
    """One of the two: a run, and its judge."""

    run: str
    judge: str
    prompt_version: str | None
    locale: Locale | None
    mode: Mode | None
    pairs: int


class MatchedPairs(Model):
    """How many pairs were matched by what; `only_*` are in one of the runs alone."""

    content: int
    texts: int
    id: int
    prompt: int
    only_first: int
    only_second: int


class AgreementChange(Model):
    """How often each is right by its labels, on the pairs that have one in both runs; `change` is
    the second's share less the first's. Of `rates` and `change` every prompt weighs the same.
    `by_people` of the labels are a majority of votes."""

    labels: int
    by_people: int
    prompts: int
    rates: tuple[float, float]
    first: EstimatedShare
    second: EstimatedShare
    change: PairedDifference


class PairOutcome(Model):
    """What one run came to; `reasoning` is empty where the judge gave none."""

    id: str
    number: int
    outcome: Outcome
    winner: Winner | None
    confidence: float | None
    reasoning: str


class FlippedPair(Model):
    """A pair that came out otherwise; `prompt` is its beginning. Where the responses or the models
    have changed places, A and B of `second` are exchanged, so that they are those of `first`."""

    matched_by: MatchedBy
    towards: Side | None
    prompt: str
    first: PairOutcome
    second: PairOutcome


class RunDiff(Model):
    """The second against the first. Counts of `change` are of the labels A and B in the data;
    `names` are theirs where both runs name the same two models in every pair."""

    first: DiffedRun
    second: DiffedRun
    store: str
    names: tuple[str, str]
    matched: MatchedPairs
    pending: int  # matched, and not judged in both
    change: OutcomeChange
    agreement: AgreementChange | None
    flipped: tuple[FlippedPair, ...]
    flipped_in_all: int  # that the options ask for
    next: int | None
    level: float
    messages: tuple[Message, ...]
    sentence: str  # the messages in English
    notes: tuple[Sentence, ...]


@dataclass(frozen=True, slots=True)
class _Side:
    run: RunRecord
    judge: JudgeRecord
    pairs: int
    columns: OutcomeColumns

    @classmethod
    def of(cls, store: Store, run: RunRecord, judge: str | None) -> _Side:
        judges = store.runs.judges(run.id)
        # One judge is the run's, whatever the other run's is called.
        record = judges[0] if len(judges) == 1 else chosen_judge(judges, run.name, judge)
        pairs = store.items.count(run.id)
        return cls(run, record, pairs, store.columns.outcomes(run.id, record.id))

    def described(self) -> DiffedRun:
        judge = self.judge
        return DiffedRun(
            run=self.run.name,
            judge=judge.name,
            prompt_version=judge.prompt_version,
            locale=judge.locale,
            mode=judge.mode,
            pairs=self.pairs,
        )

    def circumstances(
        self, store: Store, rows: NDArray[np.intp], limits: ConclusionLimits
    ) -> Circumstances:
        known = RowFacts(self.columns, limits).of(rows)
        labels = LabelRecord.of(store, (self.judge,), (self.run,))
        return replace(known, discriminates=labels is not None and labels.tells_apart)


Result = RunDiff


def check(options: DiffOptions) -> None:
    """Refuse what is out of range, and more judges than there are runs."""
    for name, value in options.chosen().items():
        options.row(name).check(name, value)
    confidence_level(options.level)
    if len(options.judge) > 2:
        raise InputError(Message("command.judges_for_two_runs", n=len(options.judge)))
    if options.limit > MOST_FLIPPED:
        raise InputError(Message("diff.limit_outside", limit=options.limit, most=MOST_FLIPPED))


def compute(subject: AnalysisSubject, asked: DiffOptions) -> RunDiff:
    return _diff(subject.store, subject.run.name, subject.runs[1], subject.run, asked)


@of_run
def _diff(
    store: Store, second: str, before: RunRecord, now: RunRecord, asked: DiffOptions
) -> RunDiff:
    judges = (asked.judge[0], asked.judge[-1]) if asked.judge else (None, None)
    limits = ConclusionLimits(allow_one_order=asked.allow_one_order)
    sides = _Side.of(store, before, judges[0]), _Side.of(store, now, judges[1])
    one, two = sides
    if (one.run.id, one.judge.id) == (two.run.id, two.judge.id):
        raise InputError(Message("diff.same_verdicts", run=one.run.name))
    matched = match_items(store, one.run.id, two.run.id)
    if not len(matched):
        raise InputError(Message("diff.nothing_matches", first=one.run.name, second=two.run.name))
    judged = _Judged.of(matched, one, two)
    if not len(judged.matches):
        raise InputError(Message("diff.nothing_judged", first=one.run.name, second=two.run.name))
    pending = len(matched) - len(judged.matches)
    unread = _pending_in_order(matched, sides)
    known = tuple(
        replace(each.circumstances(store, rows, limits), pending=unread)
        for each, rows in zip(sides, judged.rows, strict=True)
    )
    prompts = np.asarray(one.columns.prompt_key)[judged.rows[0]]
    change = outcome_change(
        *judged.codes,
        prompts=prompts,
        level=asked.level,
        circumstances=(known[0], known[1]),
        always_valid=_looked_before(store, sides),
    )
    agreement = _agreement(store, sides, judged, prompts, asked.level)
    models = _models(one, judged, 0), _models(two, judged, 1)
    names = _names(*models)
    model = None if None in models else names[1]
    messages = tuple(_messages(change, sides, model, agreement))
    chosen = judged.chosen(asked)
    shown = chosen[judged.matches.first[chosen] > asked.after]
    page = [int(place) for place in shown[: asked.limit]]
    return RunDiff(
        first=one.described(),
        second=two.described(),
        store=store.address,
        names=names,
        matched=_counted(matched, one, two),
        pending=pending,
        change=change,
        agreement=agreement,
        flipped=tuple(_flipped(store, sides, judged, page)),
        flipped_in_all=len(chosen),
        next=int(judged.matches.first[page[-1]]) if page and len(shown) > len(page) else None,
        level=asked.level,
        messages=messages,
        sentence=render(messages),
        notes=tuple(_notes(matched, pending, sides, judged, models)),
    )


def _pending_in_order(matched: Matches, sides: tuple[_Side, _Side]) -> int:
    """Matched pairs that a run which goes by the order of the file has not judged: what it has is
    then no random part of them."""
    waiting = np.zeros(len(matched), dtype=np.bool_)
    for side, numbers in zip(sides, (matched.first, matched.second), strict=True):
        if not in_random_order(side.run):
            waiting |= _rows_at(side, numbers) < 0
    return int(waiting.sum())


def _looked_before(store: Store, sides: tuple[_Side, _Side]) -> bool:
    """A run looked on its way, or is over data that grew from what another run was over."""
    earlier = {name for each in sides for name in store.runs.grown_from(each.run.id, each.judge.id)}
    stopped = any(until_decided(each.run) is not None for each in sides)
    return stopped or bool(earlier - {each.run.name for each in sides})


def _counted(matches: Matches, one: _Side, two: _Side) -> MatchedPairs:
    return MatchedPairs(
        **{how: matches.count(how) for how in MATCHED_BY},
        only_first=one.pairs - len(matches),
        only_second=two.pairs - len(matches),
    )


# The matched pairs that both runs have a verdict on.


@dataclass(frozen=True, slots=True)
class _Judged:
    matches: Matches
    rows: tuple[NDArray[np.intp], NDArray[np.intp]]  # in each run's columns
    codes: tuple[NDArray[np.int8], NDArray[np.int8]]

    @classmethod
    def of(cls, matches: Matches, one: _Side, two: _Side) -> _Judged:
        first, second = _rows_at(one, matches.first), _rows_at(two, matches.second)
        both = (first >= 0) & (second >= 0)
        matches, first, second = matches.only(both), first[both], second[both]
        before, after = (
            np.asarray(side.columns.outcome, dtype=np.int8)[rows]
            for side, rows in ((one, first), (two, second))
        )
        return cls(matches, (first, second), (before, exchange(after, matches.exchanged)))

    def chosen(self, asked: DiffOptions) -> NDArray[np.intp]:
        """Places of the pairs that are asked for, by the first run's numbers."""
        first, second = self.codes
        such = np.ones(first.size, dtype=np.bool_)
        if asked.from_outcome is None and asked.to_outcome is None:
            such = first != second
        if asked.from_outcome is not None:
            such &= first == FLOW_CODES[asked.from_outcome]
        if asked.to_outcome is not None:
            such &= second == FLOW_CODES[asked.to_outcome]
        if asked.towards is not None:
            such &= self.moved() == {"A": -1, "B": 1}[asked.towards]
        return np.flatnonzero(such)

    def moved(self) -> NDArray[np.int8]:
        """1 towards B, -1 towards A, 0 neither: as `outcome_change` counts them."""
        halves = np.array([0, 2, 1, 1, 1], dtype=np.int8)
        first, second = self.codes
        valid = (first != INVALID) & (second != INVALID)
        moved: NDArray[np.int8] = np.where(valid, np.sign(halves[second] - halves[first]), 0)
        return moved


def _rows_at(side: _Side, numbers: NDArray[np.int64]) -> NDArray[np.intp]:
    """Of the verdicts on these pairs; -1 where there is none."""
    judged = np.append(np.asarray(side.columns.number), 0)  # they rise, and none is 0
    at = np.searchsorted(judged[:-1], numbers)
    return np.where(judged[at] == numbers, at, -1)


_Models = tuple[str | None, str | None]


def _models(side: _Side, judged: _Judged, which: Literal[0, 1]) -> _Models | None:
    """Of A and B as the first run has them; None where they are others from pair to pair."""
    names: dict[str, int] = {}
    models = models_of(side.columns, names, judged.rows[which])
    if which == 1:
        models = np.where(judged.matches.exchanged, models[::-1], models)
    met = np.unique(models, axis=1)
    if met.shape[1] > 1:
        return None
    called = [*names, None]
    return called[int(met[0, 0])], called[int(met[1, 0])]


def _names(first: _Models | None, second: _Models | None) -> tuple[str, str]:
    """What A and B are called, where both runs say the same of every pair."""
    if first is None or first != second:
        return "A", "B"
    return first[0] or "A", first[1] or "B"


def _agreement(
    store: Store,
    sides: tuple[_Side, _Side],
    judged: _Judged,
    prompts: NDArray[np.int64],
    level: float,
) -> AgreementChange | None:
    """By the data's labels, and where they have none by what most people voted."""
    right, labelled, by_people = [], [], []
    for side, rows in zip(sides, judged.rows, strict=True):
        numbers = np.asarray(side.columns.number, dtype=np.int64)
        fair = fair_labels(store, side.run.id, numbers, of_data=side.columns.label)
        labels, people = fair.winners[rows], fair.by_people[rows]
        outcomes = np.asarray(side.columns.outcome, dtype=np.int8)[rows]
        asked = np.asarray(side.columns.by_rule)[rows] == 0
        labelled.append((labels != NO_WINNER) & asked)
        right.append(outcomes == labels)  # the codes of a win or a tie are those of the winners
        by_people.append(people)
    both = labelled[0] & labelled[1]
    if not both.any():
        return None
    first, second, own = right[0][both], right[1][both], prompts[both]
    _, of_prompt = np.unique(own, return_inverse=True)
    rows = np.bincount(of_prompt)
    rates = [float((np.bincount(of_prompt, each) / rows).mean()) for each in (first, second)]
    return AgreementChange(
        labels=int(both.sum()),
        by_people=int((by_people[1] & both).sum()),
        prompts=rows.size,
        rates=(rates[0], rates[1]),
        first=share_of_rows(first, own, level=level, unit="labelled pair"),
        second=share_of_rows(second, own, level=level, unit="labelled pair"),
        change=paired_difference(second, first, own, level=level),
    )


# What it says.


def _messages(
    change: OutcomeChange,
    sides: tuple[_Side, _Side],
    model: str | None,
    agreement: AgreementChange | None,
) -> Iterator[Message]:
    """`model` is B's, or None where B is now this one and now that one."""
    one, two = (_called(each, sides) for each in sides)
    called = {"first": one, "second": two, "model": model}
    few = {"first": one, "second": two}
    # Of two judges the question is which is right more often, where labels can tell.
    judges = sides[0].judge.id != sides[1].judge.id
    leads = agreement is not None and judges and agreement.change.value is not None
    if agreement is not None and leads:
        yield _accuracy(agreement, few)
    low, high, difference = change.low, change.high, change.difference
    if difference is None or low is None or high is None:
        if change.valid < FEWEST_PAIRS:
            yield Message("diff.few_pairs", **few, n=change.valid, needed=FEWEST_PAIRS)
        else:
            yield Message("diff.few_prompts", **few, n=change.prompts, needed=FEWEST_PROMPTS)
    elif model is None:
        yield Message("diff.several_models", **few, changed=change.changed, n=change.pairs)
        yield Message("diff.who_is_favoured")
    else:
        if change.excludes_zero and change.may_be_chance:
            prompts = change.valid if change.prompts is None else change.prompts
            yield Message("diff.chance", **few, of=prompts, **_chance(change.sign_flip))
            return
        yield Message(
            f"diff.{change.claim or 'no_difference'}",
            **called,
            moves=_moves(change, model),
            difference=_points(difference),
            low=_points(low),
            high=_points(high),
        )
        if change.claim is None:
            yield from _moved(change, model)
            if change.doubts:
                yield Message(f"diff.doubt_{change.doubts[0]}")
    if agreement is not None and not leads and agreement.change.value is not None:
        found = agreement.change
        values = {"low": _points(found.low or 0.0), "high": _points(found.high or 0.0)}
        points = _points(found.value or 0.0)
        yield Message("diff.agreement", sample=_sample(agreement), difference=points, **values)


def _accuracy(agreement: AgreementChange, called: dict[str, str]) -> Message:
    """Which of two judges is right more often by the labels, or that none is shown to be."""
    change = agreement.change
    low, high = _points(change.low or 0.0), _points(change.high or 0.0)
    before, after = agreement.rates
    values = {**called, "sample": _sample(agreement), "before": before, "after": after}
    if change.may_be_chance and not low <= 0 <= high:
        chance = _chance(change.sign_flip)
        return Message("diff.accuracy_chance", **values, of=agreement.prompts, **chance)
    towards = change.beyond(0.0)
    code = "same" if towards is None else "more" if towards == "first" else "less"
    points = _points(change.value or 0.0)
    return Message(f"diff.accuracy_{code}", **values, difference=points, low=low, high=high)


def _moves(change: OutcomeChange, model: str) -> Message:
    """By prompts where they repeat, as the difference is."""
    test = change.sign_test
    if change.clustered and test is not None:
        moved = {"changed": test.wins_a + test.wins_b, "towards": test.wins_b}
        return Message("diff.moves_prompts", n=change.prompts, model=model, **moved)
    moved = {"changed": change.changed, "towards": change.towards_b}
    return Message("diff.moves_pairs", n=change.pairs, model=model, **moved)


def _sample(agreement: AgreementChange) -> Message:
    counts = {"n": agreement.labels, "prompts": agreement.prompts}
    code = "labelled" if agreement.prompts == agreement.labels else "labelled_by_prompt"
    return Message(f"diff.{code}", **counts)


def _chance(test: SignFlipTest | None) -> dict[str, Any]:
    return {} if test is None else {"n": test.decisive, "p": test.p_value}


def _points(share: float) -> float:
    """In percentage points, without the sign of a nothing that rounding leaves."""
    return round(100 * share, 1) + 0.0


def _moved(change: OutcomeChange, model: str) -> Iterator[Message]:
    """Verdicts went one way, as counted; what the judge did not decide may outweigh it."""
    test = change.sign_test
    if test is not None and test.p_value < 1 - change.level:
        # By prompts where they repeat, as the test is: pairs may lean to the other side.
        towards, away = test.wins_b, test.wins_a
        code = "diff.moved_towards" if towards > away else "diff.moved_away"
        counts = {"towards": towards, "away": away, "unit": Message(f"diff.by_{test.by}")}
        yield Message(code, model=model, p=test.p_value, **counts)


def _called(side: _Side, sides: tuple[_Side, _Side]) -> str:
    """By its name, and where both have the same by the run too."""
    name = side.judge.name
    return f"{name} ({side.run.name})" if sides[0].judge.name == sides[1].judge.name else name


def _notes(
    matched: Matches,
    pending: int,
    sides: tuple[_Side, _Side],
    judged: _Judged,
    models: tuple[_Models | None, _Models | None],
) -> Iterator[Sentence]:
    one, two = sides
    counts = _counted(matched, one, two)
    as_given = counts.texts - matched.only(matched.exchanged).count("texts")
    if as_given:
        yield Message("diff.matched_by_texts", n=as_given)
    if counts.id or counts.prompt:
        yield Message("diff.matched_by_name", by_id=counts.id, by_prompt=counts.prompt)
    if counts.only_first or counts.only_second:
        yield Message(
            "diff.unmatched",
            only_first=counts.only_first,
            only_second=counts.only_second,
            first=one.run.name,
            second=two.run.name,
        )
    if pending:
        yield Message("diff.pending", n=pending)
    turned = int(judged.matches.exchanged.sum())
    if turned:
        yield Message("diff.exchanged", n=turned)
    first, second = models
    if first is None or second is None:
        return
    runs = {"first": one.run.name, "second": two.run.name}
    for label, before, after in zip("AB", first, second, strict=True):
        if before != after and before is not None and after is not None:
            yield Message("diff.other_model", label=label, before=before, after=after, **runs)


def _flipped(
    store: Store, sides: tuple[_Side, _Side], judged: _Judged, page: Sequence[int]
) -> Iterator[FlippedPair]:
    matches, moved = judged.matches, judged.moved()
    numbers = [[int(of_run[place]) for place in page] for of_run in (matches.first, matches.second)]
    wholes = [
        {
            whole.row.item.number: whole
            for whole in store.verdicts.whole_at(
                side.run.id, [VerdictPlace(number, side.judge.id) for number in its]
            )
        }
        for side, its in zip(sides, numbers, strict=True)
    ]
    for place, *its in zip(page, *numbers, strict=True):
        told: list[PairOutcome] = []
        prompt = ""
        for which, side in enumerate(sides):
            whole = wholes[which].get(its[which])
            if whole is None:  # somebody has had it judged anew meanwhile
                break
            pair, settled, row = whole.pair, whole.settled, whole.row
            prompt = prompt or pair.prompt[:_PROMPT_CHARACTERS]
            verdict = explained(settled, pair, whole.passes, judge=side.judge, run=side.run)
            reasoning = verdict.overall_reasoning if isinstance(verdict, Verdict) else ""
            winner = row.winner
            if which == 1 and matches.exchanged[place]:
                winner, reasoning = flip_or_none(winner), rename(reasoning)
            told.append(
                PairOutcome(
                    id=row.item.key,
                    number=row.item.number,
                    outcome=row.outcome,
                    winner=winner,
                    confidence=row.confidence,
                    reasoning=reasoning,
                )
            )
        if len(told) == 2:
            towards: dict[int, Side | None] = {1: "B", -1: "A"}
            yield FlippedPair(
                matched_by=MATCHED_BY[matches.how[place]],
                towards=towards.get(int(moved[place])),
                prompt=prompt,
                first=told[0],
                second=told[1],
            )


# As a person reads it.


def blocks(result: RunDiff) -> Iterator[Block]:
    yield Line(joined(result.messages) if result.messages else result.sentence, strong=True)
    yield Facts(tuple(_facts(result)))
    yield _flow(result.change)
    if result.notes:
        yield NoteLines(result.notes)
    for pair in result.flipped:
        yield from _pair(pair)
    left = result.flipped_in_all - len(result.flipped)
    if left > 0:
        more = Message("diff.not_shown", pairs=counted(left, "pair"))
        if result.next is not None:
            more = Message("diff.continue", more=more, next=result.next)
        yield Remark(more)


def _facts(found: RunDiff) -> Iterator[tuple[str, str]]:
    change, test, agreement = found.change, found.change.sign_test, found.agreement
    for place, each in (("first", found.first), ("second", found.second)):
        side = Message("diff.side", run=each.run, judge=each.judge)
        yield Message(f"diff.{place}"), side
    matched = found.matched
    pairs = counted(matched.content + matched.texts + matched.id + matched.prompt, "pair")
    in_both = Message("diff.pairs_in_both", pairs=pairs, n=change.pairs)
    yield Message("figure.pairs"), in_both
    if test is not None and all(each.code != "diff.several_models" for each in found.messages):
        values = {"b": test.wins_b, "a": test.wins_a, "p": test.p_value}
        yield Message("diff.flips"), Message(f"diff.flips_by_{test.by}", **values)
    if agreement is not None:
        first, second = counted_share(agreement.first), counted_share(agreement.second)
        yield Message("diff.labels"), Message("diff.of_first", share=first)
        yield "", Message("diff.of_second", share=second)
        yield "", Message("diff.of_change", change=figure(agreement.change))


def _flow(change: OutcomeChange) -> Grid:
    rows = (
        (_named(row.outcome), *(count(n) if n else "·" for n in _counts(row)))
        for row in change.flow
    )
    columns = (Message("diff.from_to"), *(_named(row.outcome) for row in change.flow))
    return Grid(columns, tuple(rows))


def _counts(row: FlowRow) -> tuple[int, ...]:
    return row.a, row.tie, row.inconsistent, row.b, row.invalid


def _named(outcome: str) -> str:
    return outcome if outcome in ("A", "B") else Message(f"diff.{outcome}")


def _pair(pair: FlippedPair) -> Iterator[Block]:
    one, two = pair.first, pair.second
    code = "pair" if one.number == two.number else "pair_elsewhere"
    yield Title(Message(f"diff.{code}", id=one.id, first=one.number, second=two.number))
    yield Facts(
        (
            (Message("diff.prompt"), pair.prompt),
            (Message("diff.first"), _came(one)),
            (Message("diff.second"), _came(two)),
        )
    )


def _came(judged: PairOutcome) -> str:
    text = _named(judged.winner or "" if judged.outcome == "win" else str(judged.outcome))
    if judged.confidence is not None:
        text = Message("diff.sure", outcome=text, confidence=f"{judged.confidence:.2f}")
    if judged.reasoning:
        text = Message("diff.reason", outcome=text, reasoning=judged.reasoning)
    return text
