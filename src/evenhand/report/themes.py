"""Why A won and why B won: the criteria that each won where it won, and phrases that the judge's
reasons have oftener on the pairs of one than of the other. Both are looked for afterwards, so they
are hints and no findings.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterable, Iterator, KeysView
from dataclasses import dataclass
from itertools import islice
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from evenhand.contract import Verdict
from evenhand.contract.codes import INVALID, WIN_A, WIN_B
from evenhand.contract.model import Model
from evenhand.messages import Message, Sentence
from evenhand.report.lookup import find_run
from evenhand.report.overview import Filters
from evenhand.stats.estimates import EstimatedShare, share_of_rows
from evenhand.stats.rates.phrases import log_odds_scores
from evenhand.store import CriterionColumns, JudgeRecord, RunRecord, Store
from evenhand.store.explanation import explained
from evenhand.store.faults import of_run
from evenhand.store.verdicts import VerdictPlace

# Reasons are read from the raw answers: a thousand take about a second.
MOST_READ = 1_000
MOST_THEMES = 8
LEVEL = 0.95
FEWEST_PAIRS = 3
SMALLEST_SCORE = 1.96
_AT_ONCE = 200
_REASON_CHARACTERS = 20_000
# Reasons are hostile too: six criteria of sixty words each have about a thousand phrases.
_MOST_PHRASES = 2_000
_PHRASE_CHARACTERS = 100
_MOST_NAMED = 1_000
_ALIKE = 0.7

Side = Literal["A", "B"]
SIDES: tuple[Side, Side] = ("A", "B")
_LABELS = re.compile(
    r"\b(?:both\s+)?(?:response|answer|assistant|output)s?\s+\(?[AB]\b\)?(?:'s)?|(?:响应|回答)\s*[AB]",
    re.IGNORECASE,
)
_PARTS = re.compile(r"[^\w\s'’-]+|[\n_]")
_HAN = re.compile(r"[\u3400-\u9fff]+")
_WORDS = re.compile(r"[^\W\d_]+(?:['’-][^\W\d_]+)*")
_SAYS_NOTHING = """
a about above after all also although an and any are as at be because been being between both but by
can could did do does doing each even for from further had has have having he her here hers him his
how however i if in into is it its itself just like may me more most much my no nor not of off on
one only or other our out over own same she should so some such than that the their them then there
these they this those through to too two under until up very was we were what when where which
while who whom why will with would you your overall response responses answer answers better best
worse winner wins judge s t
"""
_STOP = frozenset(_SAYS_NOTHING.split())
_STOP_HAN = frozenset(
    "的了是在和与也都而且但并就更最不有其这那个为对于以及被把所或因此中上下到给从它们他她我你"
)


class Theme(Model):
    """`count` pairs that this side won have the phrase in a reason, and `other` of those that the
    other side won; `score` is the z-score of the log-odds."""

    phrase: str
    count: int
    other: int
    score: float
    numbers: tuple[int, ...]  # of the `count` pairs in the run


class CriterionTheme(Model):
    """Of the pairs that this side won and whose criterion was judged, the share in which it won
    the criterion too; `filters` show exactly those."""

    criterion: str
    share: EstimatedShare
    filters: Filters


class Themes(Model):
    """Of one judge, by the labels A and B of the data. `read` of the `won` pairs were drawn at
    random for the phrases where there are more than 1,000; criteria are of all of them."""

    judge: str
    won: int
    read: int
    won_by_a: int  # of those that were read
    won_by_b: int
    a: tuple[Theme, ...]
    b: tuple[Theme, ...]
    criteria_a: tuple[CriterionTheme, ...] = ()
    criteria_b: tuple[CriterionTheme, ...] = ()
    note: Sentence


@dataclass(frozen=True, slots=True)
class _Telling:
    """A phrase by its hash, with the pairs whose reasons have it, by who won them."""

    hash: int
    score: float
    numbers: dict[Side, NDArray[np.int64]]
    first: int  # the pair that has it first


@of_run
def find_themes(store: Store, name: str) -> tuple[Themes, ...]:
    """One for each judge that gives reasons or judges by criteria."""
    run = find_run(store, name)
    found = (_of_judge(store, run, judge) for judge in store.run_judges(run.id))
    return tuple(each for each in found if each is not None)


def _of_judge(store: Store, run: RunRecord, judge: JudgeRecord) -> Themes | None:
    columns = store.outcome_columns(run.id, judge.id)
    codes, numbers = np.asarray(columns.outcome), np.asarray(columns.number)
    won = numbers[(codes == WIN_A) | (codes == WIN_B)]
    if not won.size:
        return None
    chosen = won
    if won.size > MOST_READ:
        chosen = np.sort(np.random.default_rng(0).permutation(won)[:MOST_READ])
    mentions = _Mentions()
    for number, winner, reasons in _reasons(store, run, judge, chosen.tolist()):
        mentions.add(number, winner, phrases_of(reasons))
    criteria = store.criterion_columns(run.id, judge.id)
    won_by = {"A": numbers[codes == WIN_A], "B": numbers[codes == WIN_B]}
    criteria_a, criteria_b = (_criteria(side, won_by[side], criteria) for side in SIDES)
    if not (mentions.hashes or criteria_a or criteria_b):
        return None
    counts = mentions.counts
    telling = mentions.telling()
    named = _named(store, run, judge, [*telling["A"], *telling["B"]])
    a, b = (_themes(side, telling[side], named) for side in SIDES)
    read = counts["A"] + counts["B"]
    return Themes(
        judge=judge.name,
        won=int(won.size),
        read=read,
        won_by_a=counts["A"],
        won_by_b=counts["B"],
        a=a,
        b=b,
        criteria_a=criteria_a,
        criteria_b=criteria_b,
        note=Message("report.themes_explore", read=read, won=int(won.size)),
    )


def _criteria(
    side: Side, won: NDArray[np.int64], criteria: Iterable[CriterionColumns]
) -> tuple[CriterionTheme, ...]:
    """Those that this side won most often first; none where it won none."""
    found = []
    for each in criteria:
        codes = np.asarray(each.outcome)
        judged = np.isin(np.asarray(each.number), won) & (codes != INVALID)
        own = codes[judged] == (WIN_A if side == "A" else WIN_B)
        if own.any():
            prompts = np.asarray(each.prompt_key)[judged]
            share = share_of_rows(own, prompts, level=LEVEL, unit="pair")
            filters: Filters = {"outcome": "win", "winner": side}
            filters |= {"criterion": each.criterion, "criterionEnd": side}
            found.append(CriterionTheme(criterion=each.criterion, share=share, filters=filters))
    found.sort(key=lambda each: -each.share.part)
    return tuple(found[:MOST_THEMES])


def _reasons(
    store: Store, run: RunRecord, judge: JudgeRecord, numbers: list[int]
) -> Iterator[tuple[int, Side, list[str]]]:
    for start in range(0, len(numbers), _AT_ONCE):
        places = [VerdictPlace(number, judge.id) for number in numbers[start : start + _AT_ONCE]]
        for whole in store.whole_verdicts_at(run.id, places):
            verdict = explained(whole.settled, whole.pair, whole.passes, judge=judge, run=run)
            if isinstance(verdict, Verdict) and verdict.winner != "TIE":
                reasons = [verdict.overall_reasoning]
                reasons += [each.reasoning for each in verdict.comparison]
                yield whole.row.item.number, verdict.winner, reasons


def phrases_of(reasons: Iterable[str]) -> KeysView[str]:
    """One to three words, or two to four Chinese characters, that stand together in a part of a
    sentence; none begins or ends with a word that says nothing. In their order: the first 2,000."""
    return dict.fromkeys(islice(_phrases(reasons), _MOST_PHRASES)).keys()


def _phrases(reasons: Iterable[str]) -> Iterator[str]:
    for reason in reasons:
        for part in _PARTS.split(_LABELS.sub("\n", reason[:_REASON_CHARACTERS])):
            han = " ".join(_HAN.findall(part)).split()
            for run in han:
                yield from _grams(list(run), range(2, 5), _STOP_HAN, "")
            words = [each.lower() for each in _WORDS.findall(_HAN.sub(" ", part))]
            yield from _grams(words, range(1, 4), _STOP, " ")


def _grams(units: list[str], sizes: range, stop: frozenset[str], between: str) -> Iterator[str]:
    for size in sizes:
        for start in range(len(units) - size + 1):
            gram = units[start : start + size]
            if gram[0] not in stop and gram[-1] not in stop and len(gram[0] + gram[-1]) > 1:
                joined = between.join(gram)
                if len(joined) <= _PHRASE_CHARACTERS:
                    yield joined


class _Mentions:
    """Which pairs have which phrase: twelve bytes for each, as no text of a judge is kept."""

    def __init__(self) -> None:
        self.counts: dict[Side, int] = {"A": 0, "B": 0}
        self.hashes = array("q")
        self._verdicts = array("i")
        self._numbers = array("q")
        self._won_by_a = array("b")

    def add(self, number: int, winner: Side, phrases: Iterable[str]) -> None:
        self.counts[winner] += 1
        for phrase in phrases:
            self.hashes.append(hash(phrase))
            self._verdicts.append(len(self._numbers))
        self._numbers.append(number)
        self._won_by_a.append(winner == "A")

    def telling(self) -> dict[Side, list[_Telling]]:
        """The phrases that one side has oftener, the highest scores first; among equal ones, the
        first met."""
        if not all(self.counts.values()):
            return {"A": [], "B": []}
        hashes = np.asarray(self.hashes)
        order = np.argsort(hashes, kind="stable")
        hashes = hashes[order]
        often = np.zeros(hashes.size, dtype=np.bool_)
        more = FEWEST_PAIRS - 1
        alike = hashes[more:] == hashes[:-more]
        for shift in range(FEWEST_PAIRS):
            often[shift : shift + alike.size] |= alike
        if not often.any():
            return {"A": [], "B": []}
        order, hashes = order[often], hashes[often]  # most of what hostile reasons have is gone
        starts = np.flatnonzero(np.concatenate(([True], hashes[1:] != hashes[:-1])))
        verdicts = np.asarray(self._verdicts)[order]
        won_by_a = np.asarray(self._won_by_a, dtype=np.bool_)
        ends = np.append(starts[1:], hashes.size)
        by_a = np.add.reduceat(won_by_a[verdicts], starts, dtype=np.int64)
        by_b = ends - starts - by_a
        enough = np.maximum(by_a, by_b) >= FEWEST_PAIRS
        starts, ends, by_a, by_b = (each[enough] for each in (starts, ends, by_a, by_b))
        sizes = self.counts["A"], self.counts["B"]
        scores = log_odds_scores(by_a.astype(np.float64), by_b.astype(np.float64), sizes)
        numbers = np.asarray(self._numbers)

        def named(place: int, score: float) -> _Telling:
            own = verdicts[starts[place] : ends[place]]
            split = {"A": own[won_by_a[own]], "B": own[~won_by_a[own]]}
            return _Telling(
                hash=int(hashes[starts[place]]),
                score=score,
                numbers={side: numbers[split[side]] for side in SIDES},
                first=int(numbers[own[0]]),
            )

        found: dict[Side, list[_Telling]] = {}
        for side, own in zip(SIDES, (scores, -scores), strict=True):
            highest = np.lexsort((order[starts], -own))[:_MOST_NAMED]
            found[side] = [
                named(place, float(own[place]))
                for place in highest.tolist()
                if own[place] >= SMALLEST_SCORE
            ]
        return found


def _named(
    store: Store, run: RunRecord, judge: JudgeRecord, telling: list[_Telling]
) -> dict[int, str]:
    """The phrases by their hashes, read again from the pairs that have them first."""
    wanted = {each.hash for each in telling}
    first = sorted({each.first for each in telling})
    return {
        hash(phrase): phrase
        for _, _, reasons in _reasons(store, run, judge, first)
        for phrase in phrases_of(reasons)
        if hash(phrase) in wanted
    }


def _themes(side: Side, found: list[_Telling], named: dict[int, str]) -> tuple[Theme, ...]:
    """The highest scores; of phrases that say the same of the same pairs, the longest."""
    other: Side = "B" if side == "A" else "A"
    telling = [(named[each.hash], each) for each in found if each.hash in named]
    telling.sort(key=lambda each: (-round(each[1].score, 1), -len(each[0]), each[0]))
    kept: list[tuple[str, set[int], _Telling]] = []
    for phrase, each in telling:
        own = set(each.numbers[side].tolist())
        if any(_alike(phrase, own, had, numbers) for had, numbers, _ in kept):
            continue
        kept.append((phrase, own, each))
        if len(kept) == MOST_THEMES:
            break
    return tuple(
        Theme(
            phrase=phrase,
            count=len(own),
            other=each.numbers[other].size,
            score=round(each.score, 2),
            numbers=tuple(sorted(own)),
        )
        for phrase, own, each in kept
    )


def _alike(phrase: str, own: set[int], other: str, others: set[int]) -> bool:
    """One stands in the other, or they overlap by a word, in mostly the same pairs."""
    shares = phrase in other or other in phrase or bool({*phrase.split()} & {*other.split()})
    if _HAN.search(phrase):
        shares = shares or bool({*phrase} & {*other})
    return shares and len(own & others) >= _ALIKE * len(own | others)
