"""Other authors' rules over the two orders, quirks included, so that published figures can be
checked. Aggregation and reading are theirs; our own reading is never mixed in.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal

from pydantic import model_serializer

from evenhand.contract import Order, Winner, flip_or_none, other_order
from evenhand.contract.model import Model
from evenhand.data import BadRow, ReadOptions, Source, read_pairs
from evenhand.errors import DataError, InputError
from evenhand.judges import open_judge
from evenhand.judges.replay import Recording, ReplayJudge
from evenhand.messages import Message

RuleName = Literal["judgebench", "llmbar", "pandalm", "position-bias", "qlora"]
NEEDS_LABELS: frozenset[RuleName] = frozenset({"judgebench", "llmbar", "pandalm"})

# Both orders of a pair in the labels of the original order; None is unread.
Passes = Mapping[Order, Winner | None]
Labels = Mapping[str, Winner]
Reader = Callable[[Recording], Winner | None]
Figures = dict[str, float]

_CLASSES: tuple[Winner, ...] = ("A", "B", "TIE")
_FIRST_MARK = re.compile(r"\[\[([ABC])\]\]")
_CHOICE = re.compile(r"Choice:\s*([AB])")
_MARKED: dict[str, Winner] = {"A": "A", "B": "B", "C": "TIE"}


class RuleFigures(Model):
    """Figures in per cent; counts are named for what they count."""

    name: RuleName
    n: int  # pairs, or records where the rule goes by records
    figures: dict[str, float]

    @model_serializer
    def _flat(self) -> dict[str, Any]:
        return {"name": self.name, "n": self.n, **self.figures}


def as_recorded(recording: Recording) -> Winner | None:
    return recording.verdict_as_shown


def by_first_mark(recording: Recording) -> Winner | None:
    """The first `[[X]]` in the text, or its `Choice:`; what they recorded where there is none."""
    if recording.raw is None:
        return recording.verdict_as_shown
    match = _FIRST_MARK.search(recording.raw) or _CHOICE.match(recording.raw)
    return _MARKED[match[1]] if match else None


def authors_reader(rule: RuleName) -> Reader:
    return by_first_mark if rule == "position-bias" else as_recorded


def apply_rule(
    rule: RuleName,
    recordings: Iterable[Recording],
    labels: Labels | None = None,
    *,
    reader: Reader | None = None,
) -> RuleFigures:
    """`labels` are of the pairs to count; the reader is the authors' where none is given."""
    if rule in NEEDS_LABELS and not labels:
        raise InputError(Message("trust.rule_needs_labels", rule=rule))
    reader = reader or authors_reader(rule)
    records = [each for each in recordings if not labels or each.id in labels]
    if not records:
        raise InputError(Message("trust.no_recorded_pair_labelled"))
    pairs = by_pair(records, reader)
    match rule:
        case "judgebench":
            return RuleFigures(name=rule, n=len(pairs), figures=judgebench(pairs, labels or {}))
        case "llmbar":
            return RuleFigures(name=rule, n=len(pairs), figures=llmbar(pairs, labels or {}))
        case "pandalm":
            labelled = [(labels or {})[each.id] for each in records], map(reader, records)
            return RuleFigures(name=rule, n=len(records), figures=pandalm(*labelled))
        case "position-bias":
            return RuleFigures(name=rule, n=len(pairs), figures=position_bias(pairs))
        case "qlora":
            shown = Counter(map(reader, records))
            return RuleFigures(name=rule, n=len(pairs), figures=qlora(pairs, shown))


def recordings_of(judge: str) -> tuple[Recording, ...]:
    """What a replayed judge was recorded to say; `judge` is replay:FILE."""
    opened = open_judge(judge)
    if not isinstance(opened, ReplayJudge):
        raise InputError(Message("trust.judge_without_recordings", judge=judge))
    return tuple(opened.recordings())


def labels_of(source: Source, reading: ReadOptions) -> dict[str, Winner]:
    """The labels of a file of pairs, by their ids."""
    labels: dict[str, Winner] = {}
    for row in read_pairs([source], reading):
        if isinstance(row, BadRow):
            raise DataError(Message("trust.correct_or_leave_out", message=row.message))
        if row.label is not None:
            labels[row.key] = row.label
    if not labels:
        raise DataError(Message("trust.no_labels_in_file", name=source.name))
    return labels


def by_pair(recordings: Iterable[Recording], reader: Reader) -> dict[str, Passes]:
    pairs: dict[str, dict[Order, Winner | None]] = {}
    for each in recordings:
        verdict = reader(each)
        mapped = verdict if each.order == "original" else flip_or_none(verdict)
        pairs.setdefault(each.id, {})[each.order] = mapped
    return dict(pairs)


def judgebench(pairs: Mapping[str, Passes], labels: Labels) -> Figures:
    """+1 for each order that is right, -1 for each that is the opposite; right if above 0."""
    right = both = inconsistent = 0
    for identity, passes in pairs.items():
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


def llmbar(pairs: Mapping[str, Passes], labels: Labels) -> Figures:
    """The mean of the two single-order accuracies; unread is wrong."""
    hits = sum(
        verdict == labels[identity]
        for identity, passes in pairs.items()
        for verdict in passes.values()
    )
    agreeing = sum(len(set(passes.values())) == 1 for passes in pairs.values())
    return {
        "accuracy": 100 * hits / (2 * len(pairs)),
        "agreement": 100 * agreeing / len(pairs),
    }


def position_bias(pairs: Mapping[str, Passes]) -> Figures:
    """The share of read records whose partner agrees; an unread partner agrees."""
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


def qlora(pairs: Mapping[str, Passes], shown: Mapping[Winner | None, int]) -> Figures:
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
