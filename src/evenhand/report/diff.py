"""Two runs over the same pairs, or two judges of one run: what changed, how sure that is, and which
pairs went where.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from evenhand.contract import Locale, Mode, Outcome, Verdict, Winner
from evenhand.contract.codes import INVALID, NO_WINNER, WINNERS
from evenhand.contract.model import Model
from evenhand.contract.verdict import flip_or_none, rename
from evenhand.errors import InputError
from evenhand.messages import Message, Sentence, render
from evenhand.report.conclusions import RowFacts, in_random_order, judged_right, until_decided
from evenhand.report.lookup import chosen_judge, find_run
from evenhand.report.win_rates import ConclusionLimits, exchange
from evenhand.stats.clusters import FEWEST_PAIRS, FEWEST_PROMPTS
from evenhand.stats.estimates import EstimatedShare, share_of_rows
from evenhand.stats.outcomes import confidence_level
from evenhand.stats.rates.outcome_change import (
    FLOW_CODES,
    FlowOutcome,
    OutcomeChange,
    outcome_change,
)
from evenhand.stats.rates.paired_difference import PairedDifference, paired_difference
from evenhand.stats.rates.win_rate import Circumstances
from evenhand.store import JudgeRecord, OutcomeColumns, RunItem, RunRecord, Store
from evenhand.store.explanation import explained
from evenhand.store.faults import of_run
from evenhand.store.verdicts import VerdictPlace

MOST_FLIPPED = 100
_PROMPT_CHARACTERS = 300
Towards = Literal["A", "B"]
# How a pair was found in the other run: the same pair; the same texts, judged by other criteria or
# with another context; or other responses, under the same id or else to the same prompt.
MatchedBy = Literal["content", "texts", "id", "prompt"]


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
    the second's share less the first's. `by_people` of the labels are a majority of votes."""

    labels: int
    by_people: int
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
    towards: Towards | None
    prompt: str
    first: PairOutcome
    second: PairOutcome


class DiffOptions(Model):
    """`from_outcome`, `to_outcome` and `towards` choose which pairs are shown; without them, all
    that changed. `after` is the `next` of the page before."""

    level: float = 0.95
    from_outcome: FlowOutcome | None = None
    to_outcome: FlowOutcome | None = None
    towards: Towards | None = None
    after: int = 0
    limit: int = 20


class RunDiff(Model):
    """The second against the first. Counts of `change` are of the labels A and B in the data;
    `names` are theirs where both runs name the same two models in every pair."""

    first: DiffedRun
    second: DiffedRun
    store: str | None
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
    items: dict[int, RunItem]
    columns: OutcomeColumns

    @classmethod
    def of(cls, store: Store, name: str, judge: str | None) -> _Side:
        run = find_run(store, name)
        judges = store.run_judges(run.id)
        # One judge is the run's, whatever the other run's is called.
        record = judges[0] if len(judges) == 1 else chosen_judge(judges, run.name, judge)
        items = {each.number: each for each in store.run_items(run.id)}
        return cls(run, record, items, store.outcome_columns(run.id, record.id))

    def described(self) -> DiffedRun:
        judge = self.judge
        return DiffedRun(
            run=self.run.name,
            judge=judge.name,
            prompt_version=judge.prompt_version,
            locale=judge.locale,
            mode=judge.mode,
            pairs=len(self.items),
        )

    def circumstances(
        self, store: Store, rows: NDArray[np.intp], limits: ConclusionLimits
    ) -> Circumstances:
        known = RowFacts(self.columns, limits).of(rows)
        return replace(known, discriminates=judged_right(store, self.judge))


@of_run
def diff_runs(
    store: Store,
    first: str,
    second: str,
    options: DiffOptions | None = None,
    *,
    judges: tuple[str | None, str | None] = (None, None),
    limits: ConclusionLimits | None = None,
) -> RunDiff:
    """`judges` are named where a run has several; of one run, they are two of its own."""
    asked = _checked(options or DiffOptions())
    allowed = (limits or ConclusionLimits()).checked()
    sides = _Side.of(store, first, judges[0]), _Side.of(store, second, judges[1])
    one, two = sides
    if (one.run.id, one.judge.id) == (two.run.id, two.judge.id):
        raise InputError(Message("diff.same_verdicts", run=one.run.name))
    matched = _match(store, one, two)
    if not matched:
        raise InputError(Message("diff.nothing_matches", first=one.run.name, second=two.run.name))
    judged = _Judged.of(matched, one, two)
    if not judged.numbers:
        raise InputError(Message("diff.nothing_judged", first=one.run.name, second=two.run.name))
    pending = len(matched) - len(judged.numbers)
    unread = pending if not all(in_random_order(each.run) for each in sides) else 0
    known = tuple(
        replace(each.circumstances(store, rows, allowed), pending=unread)
        for each, rows in zip(sides, judged.rows, strict=True)
    )
    prompts = np.asarray(one.columns.prompt_key)[judged.rows[0]]
    change = outcome_change(
        *judged.codes,
        prompts=prompts,
        level=asked.level,
        circumstances=(known[0], known[1]),
        always_valid=any(until_decided(each.run) is not None for each in sides),
    )
    agreement = _agreement(store, sides, judged, prompts, asked.level)
    names = _names(one, two, judged)
    messages = tuple(_messages(change, sides, names[1], agreement))
    chosen = judged.chosen(asked)
    shown = [place for place in chosen if judged.numbers[place][0] > asked.after]
    page = shown[: asked.limit]
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
        next=judged.numbers[page[-1]][0] if page and len(shown) > len(page) else None,
        level=asked.level,
        messages=messages,
        sentence=render(messages),
        notes=tuple(_notes(matched, pending, sides, judged)),
    )


def _checked(options: DiffOptions) -> DiffOptions:
    confidence_level(options.level)
    for name, value, taken in (
        ("from_outcome", options.from_outcome, get_args(FlowOutcome)),
        ("to_outcome", options.to_outcome, get_args(FlowOutcome)),
        ("towards", options.towards, get_args(Towards)),
    ):
        if value is not None and value not in taken:
            raise InputError(
                Message("stats.choice_unknown", name=name, value=value, taken=list(taken))
            )
    if not 0 <= options.limit <= MOST_FLIPPED:
        raise InputError(Message("diff.limit_outside", limit=options.limit, most=MOST_FLIPPED))
    return options


# Which pair of the one run is which of the other.


@dataclass(frozen=True, slots=True)
class _Match:
    number: int  # in the second run
    how: MatchedBy
    exchanged: bool  # A and B have changed places there


_Matches = dict[int, _Match]
_Key = Callable[[RunItem], Hashable]


def _match(store: Store, one: _Side, two: _Side) -> _Matches:
    """By the first run's numbers: the strictest way first, then the next for what is left. A key
    that either run has several times matches nothing: which is which, nobody could say."""
    matches: _Matches = {}
    taken: set[int] = set()

    def pair_up(how: MatchedBy, key: _Key, second: _Key | None = None) -> None:
        left, right = _by_key(one, key), _by_key(two, second or key)
        for found, mine in left.items():
            theirs = right.get(found)
            if mine is None or theirs is None or mine in matches or theirs in taken:
                continue
            exchanged = second is not None
            if how in ("id", "prompt"):
                items = one.items[mine], two.items[theirs]
                exchanged = _models_exchanged(*items) or _texts_exchanged(*items, digests)
            matches[mine] = _Match(theirs, how, exchanged)
            taken.add(theirs)

    digests: _Digests = {}
    pair_up("content", lambda each: each.pair_id)
    if len(matches) == min(len(one.items), len(two.items)):
        return matches
    digests = _digests(store, one, two, matches, taken)
    as_given = partial(_text_key, digests, which=0)
    pair_up("texts", as_given)
    pair_up("texts", as_given, partial(_text_key, digests, which=1))
    # `#7` is the seventh row of a file, and no id.
    pair_up("id", lambda e: None if e.key.startswith("#") else (e.key, e.prompt_key))
    pair_up("prompt", lambda each: each.prompt_key)
    return dict(sorted(matches.items()))


def _by_key(side: _Side, key: _Key) -> dict[Hashable, int | None]:
    """None where several have it."""
    numbers: dict[Hashable, int | None] = {}
    for each in side.items.values():
        found = key(each)
        if found is not None:
            numbers[found] = None if found in numbers else each.number
    return numbers


_Digests = dict[int, tuple[bytes, bytes]]


def _digests(store: Store, one: _Side, two: _Side, matches: _Matches, taken: set[int]) -> _Digests:
    """Of those that may have the texts of one that is left: only texts to the same prompt and of
    the same lengths can be equal, so few are read."""
    shapes = {_shape(each) for each in one.items.values() if each.number not in matches}
    shapes &= {_shape(each) for each in two.items.values() if each.number not in taken}
    items = (*one.items.values(), *two.items.values())
    return store.text_digests([each.pair_id for each in items if _shape(each) in shapes])


def _shape(item: RunItem) -> Hashable:
    return item.prompt_key, *sorted(item.lengths)


def _text_key(digests: _Digests, item: RunItem, *, which: Literal[0, 1]) -> bytes | None:
    found = digests.get(item.pair_id)
    return None if found is None else found[which]


def _texts_exchanged(mine: RunItem, theirs: RunItem, digests: _Digests) -> bool:
    own, turned = digests.get(mine.pair_id, (None, None))
    return own != turned and own == _text_key(digests, theirs, which=1)


def _models_exchanged(mine: RunItem, theirs: RunItem) -> bool:
    models = _models(mine)
    return (
        None not in models and models[0] != models[1] and models == _models(theirs, exchanged=True)
    )


def _counted(matches: _Matches, one: _Side, two: _Side) -> MatchedPairs:
    how = [each.how for each in matches.values()]
    counts = {name: how.count(name) for name in get_args(MatchedBy)}
    return MatchedPairs(
        **counts,
        only_first=len(one.items) - len(matches),
        only_second=len(two.items) - len(matches),
    )


# The matched pairs that both runs have a verdict on.


@dataclass(frozen=True, slots=True)
class _Judged:
    numbers: list[tuple[int, int]]
    how: list[MatchedBy]
    rows: tuple[NDArray[np.intp], NDArray[np.intp]]  # in each run's columns
    codes: tuple[NDArray[np.int8], NDArray[np.int8]]
    exchanged: NDArray[np.bool_]  # A and B have changed places in the second run

    @classmethod
    def of(cls, matches: _Matches, one: _Side, two: _Side) -> _Judged:
        places = [
            {number: row for row, number in enumerate(each.columns.number)} for each in (one, two)
        ]
        numbers, how, exchanged = [], [], []
        for mine, match in matches.items():
            if mine in places[0] and match.number in places[1]:
                numbers.append((mine, match.number))
                how.append(match.how)
                exchanged.append(match.exchanged)
        rows = [
            np.array([places[side][pair[side]] for pair in numbers], dtype=np.intp)
            for side in (0, 1)
        ]
        turned = np.array(exchanged, dtype=np.bool_)
        first, second = (
            np.asarray(each.columns.outcome, dtype=np.int8)[own]
            for each, own in zip((one, two), rows, strict=True)
        )
        return cls(numbers, how, (rows[0], rows[1]), (first, exchange(second, turned)), turned)

    def chosen(self, asked: DiffOptions) -> list[int]:
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
        return [int(place) for place in np.flatnonzero(such)]

    def moved(self) -> NDArray[np.int8]:
        """1 towards B, -1 towards A, 0 neither: as `outcome_change` counts them."""
        halves = np.array([0, 2, 1, 1, 1], dtype=np.int8)
        first, second = self.codes
        valid = (first != INVALID) & (second != INVALID)
        moved: NDArray[np.int8] = np.where(valid, np.sign(halves[second] - halves[first]), 0)
        return moved


def _models(item: RunItem, *, exchanged: bool = False) -> tuple[str | None, str | None]:
    return (item.model_b, item.model_a) if exchanged else (item.model_a, item.model_b)


def _names(one: _Side, two: _Side, judged: _Judged) -> tuple[str, str]:
    met = {_models(one.items[mine]) for mine, _ in judged.numbers}
    met |= {
        _models(two.items[theirs], exchanged=bool(turned))
        for (_, theirs), turned in zip(judged.numbers, judged.exchanged, strict=True)
    }
    model_a, model_b = next(iter(met)) if len(met) == 1 else (None, None)
    return model_a or "A", model_b or "B"


def _agreement(
    store: Store,
    sides: tuple[_Side, _Side],
    judged: _Judged,
    prompts: NDArray[np.int64],
    level: float,
) -> AgreementChange | None:
    """By the data's labels, and where they have none by what most people voted."""
    right, labelled, by_people = [], [], []
    for place, (side, rows) in enumerate(zip(sides, judged.rows, strict=True)):
        labels = np.asarray(side.columns.label, dtype=np.int8)[rows].copy()
        numbers = [pair[place] for pair in judged.numbers]
        voted = store.voted_labels(side.run.id, numbers)
        votes = [WINNERS.index(voted[n]) if n in voted else NO_WINNER for n in numbers]
        people = (labels == NO_WINNER) & (np.array(votes) != NO_WINNER)
        labels[people] = np.array(votes, dtype=np.int8)[people]
        outcomes = np.asarray(side.columns.outcome, dtype=np.int8)[rows]
        labelled.append(labels != NO_WINNER)
        right.append(outcomes == labels)  # the codes of a win or a tie are those of the winners
        by_people.append(people)
    both = labelled[0] & labelled[1]
    if not both.any():
        return None
    first, second, own = right[0][both], right[1][both], prompts[both]
    return AgreementChange(
        labels=int(both.sum()),
        by_people=int((by_people[1] & both).sum()),
        first=share_of_rows(first, own, level=level, unit="labelled pair"),
        second=share_of_rows(second, own, level=level, unit="labelled pair"),
        change=paired_difference(second, first, own, level=level),
    )


# What it says.


def _messages(
    change: OutcomeChange,
    sides: tuple[_Side, _Side],
    model: str,
    agreement: AgreementChange | None,
) -> Iterator[Message]:
    one, two = (_called(each, sides) for each in sides)
    called = {"first": one, "second": two, "model": model}
    low, high, difference = change.low, change.high, change.difference
    if difference is None or low is None or high is None:
        few = {"first": one, "second": two}
        if change.valid < FEWEST_PAIRS:
            yield Message("diff.few_pairs", **few, n=change.valid, needed=FEWEST_PAIRS)
        else:
            yield Message("diff.few_prompts", **few, n=change.prompts, needed=FEWEST_PROMPTS)
    else:
        shown = low > 0 or high < 0
        code = ("more" if low > 0 else "less") if shown else "no_difference"
        yield Message(
            f"diff.{code}",
            **called,
            changed=change.changed,
            n=change.pairs,
            towards=change.towards_b,
            difference=_points(difference),
            low=_points(low),
            high=_points(high),
        )
        if not shown:
            yield from _moved(change, model)
            if change.doubts:
                yield Message(f"diff.doubt_{change.doubts[0]}")
    if agreement is not None and agreement.change.value is not None:
        found = agreement.change
        values = {"low": _points(found.low or 0.0), "high": _points(found.high or 0.0)}
        points = _points(found.value or 0.0)
        yield Message("diff.agreement", n=agreement.labels, difference=points, **values)


def _points(share: float) -> float:
    """In percentage points, without the sign of a nothing that rounding leaves."""
    return round(100 * share, 1) + 0.0


def _moved(change: OutcomeChange, model: str) -> Iterator[Message]:
    """Verdicts went one way, as counted; what the judge did not decide may outweigh it."""
    test = change.sign_test
    if test is not None and test.p_value < 1 - change.level:
        towards, away = change.towards_b, change.towards_a
        code = "diff.moved_towards" if towards > away else "diff.moved_away"
        yield Message(code, model=model, towards=towards, away=away, p=f"{test.p_value:.2g}")


def _called(side: _Side, sides: tuple[_Side, _Side]) -> str:
    """By its name, and where both have the same by the run too."""
    name = side.judge.name
    return f"{name} ({side.run.name})" if sides[0].judge.name == sides[1].judge.name else name


def _notes(
    matched: _Matches, pending: int, sides: tuple[_Side, _Side], judged: _Judged
) -> Iterator[Sentence]:
    one, two = sides
    counts = _counted(matched, one, two)
    as_given = sum(each.how == "texts" and not each.exchanged for each in matched.values())
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
    if judged.exchanged.any():
        yield Message("diff.exchanged", n=int(judged.exchanged.sum()))
    if len({_models(one.items[mine]) for mine, _ in judged.numbers}) > 1:
        yield Message("diff.several_models")


def _flipped(
    store: Store, sides: tuple[_Side, _Side], judged: _Judged, page: Sequence[int]
) -> Iterator[FlippedPair]:
    wholes = [
        {
            whole.row.item.number: whole
            for whole in store.whole_verdicts_at(
                side.run.id,
                [VerdictPlace(judged.numbers[place][which], side.judge.id) for place in page],
            )
        }
        for which, side in enumerate(sides)
    ]
    moved = judged.moved()
    for place in page:
        told: list[PairOutcome] = []
        prompt = ""
        for which, side in enumerate(sides):
            whole = wholes[which].get(judged.numbers[place][which])
            if whole is None:  # somebody has had it judged anew meanwhile
                break
            pair, settled, row = whole.pair, whole.settled, whole.row
            prompt = prompt or pair.prompt[:_PROMPT_CHARACTERS]
            verdict = explained(settled, pair, whole.passes, judge=side.judge, run=side.run)
            reasoning = verdict.overall_reasoning if isinstance(verdict, Verdict) else ""
            winner = row.winner
            if which == 1 and judged.exchanged[place]:
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
            towards: dict[int, Towards | None] = {1: "B", -1: "A"}
            yield FlippedPair(
                matched_by=judged.how[place],
                towards=towards.get(int(moved[place])),
                prompt=prompt,
                first=told[0],
                second=told[1],
            )
