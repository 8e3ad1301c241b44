"""Other authors' rules over the two orders, quirks included, so that published figures can be
checked. Aggregation and reading are theirs; our own reading is never mixed in.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any, Literal

import numpy as np
from pydantic import model_serializer

from evenhand.contract import ORDERS, Order, Winner, flip_or_none, other_order
from evenhand.contract.codes import winner_code
from evenhand.contract.model import Model
from evenhand.data import BadRow, ReadOptions, Source, read_pairs
from evenhand.errors import DataError, InputError
from evenhand.judges import open_judge
from evenhand.judges.replay import Recording, ReplayJudge
from evenhand.messages import Message
from evenhand.stats.estimates import EstimatedShare, share_of_rows
from evenhand.trust.biases import PositionBiasReport, measure_position_bias

RuleName = Literal["judgebench", "llmbar", "pandalm", "position-bias", "qlora"]
NEEDS_LABELS: frozenset[RuleName] = frozenset({"judgebench", "llmbar", "pandalm"})

# Both orders of a pair in the labels of the original order; None is unread.
Passes = Mapping[Order, Winner | None]
# A pair's id, and which repetition of it: each is a comparison of its own.
Repeated = tuple[str, int]
Labels = Mapping[str, Winner]
Reader = Callable[[Recording], Winner | None]
Figures = dict[str, float]

_CLASSES: tuple[Winner, ...] = ("A", "B", "TIE")
_FIRST_MARK = re.compile(r"\[\[([ABC])\]\]")
_CHOICE = re.compile(r"\bChoice:[\s*]*[\[(]*([ABC])\b")
_MARKED: dict[str, Winner] = {"A": "A", "B": "B", "C": "TIE"}


class RepetitionFigures(Model):
    """The same figures of one repetition of a recording."""

    repetition: int
    n: int
    figures: dict[str, float]

    @model_serializer
    def _flat(self) -> dict[str, Any]:
        return {"repetition": self.repetition, "n": self.n, **self.figures}


class RuleFigures(Model):
    """Figures in per cent, none where the rule needs two orders and the recording has one; counts
    are named for what they count. `pairs` are the pairs, however often each was recorded. Where a
    recording has several repetitions, each is a comparison of its own, and `retest` is how often a
    repetition says what the one before it said of the same pair in the same order."""

    name: RuleName
    n: int  # pairs, or records where the rule goes by records
    figures: dict[str, float]
    pairs: int
    by_repetition: tuple[RepetitionFigures, ...] = ()
    retest: EstimatedShare | None = None

    @model_serializer
    def _flat(self) -> dict[str, Any]:
        flat: dict[str, Any] = {"name": self.name, "n": self.n, **self.figures}
        if self.retest is not None:
            flat["pairs"] = self.pairs
            flat["byRepetition"] = [each.model_dump(mode="json") for each in self.by_repetition]
            flat["retest"] = self.retest.model_dump(mode="json")
        return flat


def as_recorded(recording: Recording) -> Winner | None:
    return recording.verdict_as_shown


def by_first_mark(recording: Recording) -> Winner | None:
    """The first `[[X]]` in the text, or else its first `Choice: X`, wherever it stands; what was
    recorded as the verdict where there is neither, as in answers of another format."""
    raw = recording.raw or ""
    match = _FIRST_MARK.search(raw) or _CHOICE.search(raw)
    return _MARKED[match[1]] if match else recording.verdict_as_shown


def authors_reader(rule: RuleName) -> Reader:
    return by_first_mark if rule == "position-bias" else as_recorded


def apply_rule(
    rule: RuleName,
    recordings: Iterable[Recording],
    labels: Labels | None = None,
    *,
    reader: Reader | None = None,
    level: float = 0.95,
) -> RuleFigures:
    """`labels` are of the pairs to count; the reader is the authors' where none is given."""
    if rule in NEEDS_LABELS and not labels:
        raise InputError(Message("trust.rule_needs_labels", rule=rule))
    reader = reader or authors_reader(rule)
    records = [each for each in recordings if not labels or each.id in labels]
    if not records:
        raise InputError(Message("trust.no_recorded_pair_labelled"))
    numbers = sorted({each.repetition for each in records})
    n, figures = _figures(rule, records, labels or {}, reader)
    pairs = len({each.id for each in records})
    if len(numbers) < 2:
        return RuleFigures(name=rule, n=n, figures=figures, pairs=pairs)
    apart = []
    for number in numbers:
        own = [each for each in records if each.repetition == number]
        its_n, its_figures = _figures(rule, own, labels or {}, reader)
        apart.append(RepetitionFigures(repetition=number, n=its_n, figures=its_figures))
    return RuleFigures(
        name=rule,
        n=n,
        figures=figures,
        pairs=pairs,
        by_repetition=tuple(apart),
        retest=_retest(by_pair(records, reader), level=level),
    )


def _figures(
    rule: RuleName, records: Sequence[Recording], labels: Labels, reader: Reader
) -> tuple[int, Figures]:
    pairs = by_pair(records, reader)
    match rule:
        case "judgebench":
            return len(pairs), judgebench(pairs, labels)
        case "llmbar":
            return len(pairs), llmbar(pairs, labels)
        case "pandalm":
            truths = [labels[each.id] for each in records]
            return len(records), pandalm(truths, map(reader, records))
        case "position-bias":
            return len(pairs), position_bias(pairs)
        case "qlora":
            return len(pairs), qlora(pairs, Counter(map(reader, records)))


def _retest(pairs: Mapping[Repeated, Passes], *, level: float) -> EstimatedShare:
    """Neighbouring repetitions of the same pair in the same order, both of which were read."""
    same, whose = [], []
    for order in ORDERS:
        for (pair, one), (other, two) in pairwise(sorted(pairs)):
            if pair != other:
                continue
            first, second = pairs[pair, one].get(order), pairs[pair, two].get(order)
            if first is not None and second is not None:
                same.append(first == second)
                whose.append(pair)
    _, prompts = np.unique(np.array(whose, dtype=np.str_), return_inverse=True)
    return share_of_rows(
        np.array(same, dtype=np.bool_), prompts, level=level, unit="repeated question"
    )


def position_of(
    recordings: Iterable[Recording], *, reader: Reader, level: float
) -> PositionBiasReport:
    """Whether a recorded judge follows the position, which no label is needed to see."""
    pairs = by_pair(recordings, reader)
    first, second = (
        np.array([winner_code(passes.get(order)) for passes in pairs.values()], dtype=np.int8)
        for order in ORDERS
    )
    _, clusters = np.unique(np.array([pair for pair, _ in pairs]), return_inverse=True)
    return measure_position_bias(first, second, clusters, level=level)


def recordings_of(judge: str) -> tuple[Recording, ...]:
    """What a replayed judge was recorded to say; `judge` is replay:FILE."""
    opened = open_judge(judge)
    if not isinstance(opened, ReplayJudge):
        raise InputError(Message("trust.judge_without_recordings", judge=judge))
    return tuple(opened.recordings())


def labels_of(
    source: Source, reading: ReadOptions, *, skip_bad_rows: bool = False
) -> dict[str, Winner]:
    """The labels of a file of pairs, by their ids."""
    labels: dict[str, Winner] = {}
    for row in read_pairs([source], reading):
        if isinstance(row, BadRow):
            if skip_bad_rows:
                continue
            raise DataError(Message("trust.correct_or_leave_out", message=row.message))
        if row.label is not None:
            labels[row.key] = row.label
    if not labels:
        raise DataError(Message("trust.no_labels_in_file", name=source.name))
    return labels


def by_pair(recordings: Iterable[Recording], reader: Reader) -> dict[Repeated, Passes]:
    pairs: dict[Repeated, dict[Order, Winner | None]] = {}
    for each in recordings:
        verdict = reader(each)
        mapped = verdict if each.order == "original" else flip_or_none(verdict)
        pairs.setdefault((each.id, each.repetition), {})[each.order] = mapped
    return dict(pairs)


def judgebench(pairs: Mapping[Repeated, Passes], labels: Labels) -> Figures:
    """+1 for each order that is right, -1 for each that is the opposite; right if above 0."""
    right = both = inconsistent = 0
    for (identity, _), passes in pairs.items():
        truth = labels[identity]
        hits = [verdict == truth for verdict in passes.values()]
        misses = [verdict == flip_or_none(truth) for verdict in passes.values()]
        right += sum(hits) > sum(misses)
        both += all(hits)
        inconsistent += len(set(passes.values())) > 1
    n = len(pairs)
    return {
        "accuracy": 100 * right / n,
        "rightInBothOrders": 100 * both / n,
        "inconsistent": 100 * inconsistent / n,
    }


def llmbar(pairs: Mapping[Repeated, Passes], labels: Labels) -> Figures:
    """The mean of the two single-order accuracies; unread is wrong."""
    hits = sum(
        verdict == labels[identity]
        for (identity, _), passes in pairs.items()
        for verdict in passes.values()
    )
    agreeing = sum(len(set(passes.values())) == 1 for passes in pairs.values())
    return {
        "accuracy": 100 * hits / (2 * len(pairs)),
        "agreement": 100 * agreeing / len(pairs),
    }


def position_bias(pairs: Mapping[Repeated, Passes]) -> Figures:
    """The share of read records whose partner agrees; an unread partner agrees. Where no record has
    a partner, all would agree with nothing: there is no share."""
    if all(len(passes) < 2 for passes in pairs.values()):
        return {}
    agreeing = total = 0
    for passes in pairs.values():
        for order, verdict in passes.items():
            if verdict is None:
                continue
            partner = passes.get(other_order(order))
            total += 1
            agreeing += partner is None or partner == verdict
    if not total:
        raise InputError(Message("trust.no_recording_readable"))
    return {"consistency": 100 * agreeing / total}


def pandalm(labels: Iterable[Winner], verdicts: Iterable[Winner | None]) -> Figures:
    """Accuracy and macro F1 over three classes in one order; what could not be read is a tie."""
    counted = Counter(
        (label, verdict or "TIE") for label, verdict in zip(labels, verdicts, strict=True)
    )
    scores = []
    for name in _CLASSES:
        hits = counted[name, name]
        predicted = sum(counted[truth, name] for truth in _CLASSES)
        actual = sum(counted[name, verdict] for verdict in _CLASSES)
        scores.append(2 * hits / (predicted + actual) if predicted + actual else 0.0)
    accuracy = sum(counted[name, name] for name in _CLASSES) / counted.total()
    return {"accuracy": 100 * accuracy, "macroF1": 100 * sum(scores) / len(scores)}


def qlora(pairs: Mapping[Repeated, Passes], shown: Mapping[Winner | None, int]) -> Figures:
    """Consistency of the pairs read in both orders, and how often each place was taken."""
    twice = [
        passes for passes in pairs.values() if len(passes) == 2 and None not in passes.values()
    ]
    agreeing = sum(len(set(passes.values())) == 1 for passes in twice)
    if not twice:
        raise InputError(Message("trust.no_pair_read_twice"))
    return {
        "consistency": 100 * agreeing / len(twice),
        "consistentPairs": agreeing,
        "pairsReadTwice": len(twice),
        "firstWins": shown.get("A", 0),
        "secondWins": shown.get("B", 0),
        "ties": shown.get("TIE", 0),
        "unread": shown.get(None, 0),
    }
