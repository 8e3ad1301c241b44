"""Why A won and why B won: phrases that a judge's reasons have oftener on the pairs of one than of
the other. They are found in the words alone, so they are hints and no findings.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from evenhand.contract import Verdict
from evenhand.contract.codes import WIN_A, WIN_B
from evenhand.contract.model import Model
from evenhand.messages import Message, Sentence
from evenhand.report.lookup import find_run
from evenhand.stats.rates.phrases import log_odds_scores
from evenhand.store import JudgeRecord, RunRecord, Store
from evenhand.store.explanation import explained
from evenhand.store.faults import of_run
from evenhand.store.verdicts import VerdictPlace

# Reasons are read from the raw answers: a thousand take about a second.
MOST_READ = 1_000
MOST_THEMES = 8
FEWEST_PAIRS = 3
SMALLEST_SCORE = 1.96
_AT_ONCE = 200
_REASON_CHARACTERS = 20_000
_ALIKE = 0.7

Side = Literal["A", "B"]
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


class Themes(Model):
    """Of one judge, by the labels A and B of the data. `read` of the `won` pairs were drawn at
    random where there are more than 1,000."""

    judge: str
    won: int
    read: int
    won_by_a: int  # of those that were read
    won_by_b: int
    a: tuple[Theme, ...]
    b: tuple[Theme, ...]
    note: Sentence


@dataclass(slots=True)
class _Mentions:
    """The pairs whose reasons have a phrase, by who won them."""

    numbers: dict[Side, set[int]] = field(default_factory=lambda: {"A": set(), "B": set()})


@of_run
def find_themes(store: Store, name: str) -> tuple[Themes, ...]:
    """One for each judge that gives reasons."""
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
    mentions: defaultdict[str, _Mentions] = defaultdict(_Mentions)
    counts: dict[Side, int] = {"A": 0, "B": 0}
    for number, winner, reasons in _reasons(store, run, judge, chosen.tolist()):
        counts[winner] += 1
        for phrase in phrases_of(reasons):
            mentions[phrase].numbers[winner].add(number)
    if not mentions:
        return None
    a, b = _scored(mentions, counts)
    read = counts["A"] + counts["B"]
    return Themes(
        judge=judge.name,
        won=int(won.size),
        read=read,
        won_by_a=counts["A"],
        won_by_b=counts["B"],
        a=a,
        b=b,
        note=Message("report.themes_explore", read=read, won=int(won.size)),
    )


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


def phrases_of(reasons: Iterable[str]) -> set[str]:
    """One to three words, or two to four Chinese characters, that stand together in a part of a
    sentence; none begins or ends with a word that says nothing."""
    found: set[str] = set()
    for reason in reasons:
        for part in _PARTS.split(_LABELS.sub("\n", reason[:_REASON_CHARACTERS])):
            han = " ".join(_HAN.findall(part)).split()
            for run in han:
                found.update(_grams(list(run), range(2, 5), _STOP_HAN, ""))
            words = [each.lower() for each in _WORDS.findall(_HAN.sub(" ", part))]
            found.update(_grams(words, range(1, 4), _STOP, " "))
    return found


def _grams(units: list[str], sizes: range, stop: frozenset[str], between: str) -> Iterator[str]:
    for size in sizes:
        for start in range(len(units) - size + 1):
            gram = units[start : start + size]
            if gram[0] not in stop and gram[-1] not in stop and len(gram[0] + gram[-1]) > 1:
                yield between.join(gram)


def _scored(
    mentions: dict[str, _Mentions], counts: dict[Side, int]
) -> tuple[tuple[Theme, ...], tuple[Theme, ...]]:
    phrases = sorted(
        phrase
        for phrase, each in mentions.items()
        if max(map(len, each.numbers.values())) >= FEWEST_PAIRS
    )
    if not phrases or not all(counts.values()):
        return (), ()
    had: dict[Side, list[int]] = {
        side: [len(mentions[phrase].numbers[side]) for phrase in phrases] for side in counts
    }
    scores = log_odds_scores(
        np.array(had["A"], dtype=np.float64),
        np.array(had["B"], dtype=np.float64),
        (counts["A"], counts["B"]),
    )
    scored = dict(zip(phrases, scores.tolist(), strict=True))
    return (
        _themes("A", "B", scored, mentions),
        _themes("B", "A", {phrase: -score for phrase, score in scored.items()}, mentions),
    )


def _themes(
    side: Side, other: Side, scores: dict[str, float], mentions: dict[str, _Mentions]
) -> tuple[Theme, ...]:
    """The highest scores; of phrases that say the same of the same pairs, the longest."""
    telling = [phrase for phrase, score in scores.items() if score >= SMALLEST_SCORE]
    telling.sort(key=lambda phrase: (-round(scores[phrase], 1), -len(phrase), phrase))
    kept: list[str] = []
    for phrase in telling:
        own = mentions[phrase].numbers[side]
        if any(_alike(phrase, own, each, mentions[each].numbers[side]) for each in kept):
            continue
        kept.append(phrase)
        if len(kept) == MOST_THEMES:
            break
    return tuple(
        Theme(
            phrase=phrase,
            count=len(mentions[phrase].numbers[side]),
            other=len(mentions[phrase].numbers[other]),
            score=round(scores[phrase], 2),
            numbers=tuple(sorted(mentions[phrase].numbers[side])),
        )
        for phrase in kept
    )


def _alike(phrase: str, own: set[int], other: str, others: set[int]) -> bool:
    """One stands in the other, or they overlap by a word, in mostly the same pairs."""
    shares = phrase in other or other in phrase or bool({*phrase.split()} & {*other.split()})
    if _HAN.search(phrase):
        shares = shares or bool({*phrase} & {*other})
    return shares and len(own & others) >= _ALIKE * len(own | others)
