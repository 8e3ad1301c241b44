"""Other authors' rules over the two orders, quirks included, so that published figures can be
checked. Aggregation and reading are theirs; our own reading is never mixed in.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Literal

from evenhand.contract import Order, Winner, flip_or_none, other_order
from evenhand.judges.replay import Recording

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
) -> Figures:
    """Figures in per cent, none where the rule needs two orders and the recording has one; counts
    are named for what they count. Each repetition of a pair is a comparison of its own. `labels`
    are of the pairs to count; the reader is the authors' where none is given."""
    if rule in NEEDS_LABELS and not labels:
        raise ValueError(f"the rule {rule} counts against labels; give them")
    reader = reader or authors_reader(rule)
    records = [each for each in recordings if not labels or each.id in labels]
    if not records:
        raise ValueError("none of the recorded pairs is among the labelled ones; check their ids")
    pairs = by_pair(records, reader)
    match rule:
        case "judgebench":
            return judgebench(pairs, labels or {})
        case "llmbar":
            return llmbar(pairs, labels or {})
        case "pandalm":
            truths = [(labels or {})[each.id] for each in records]
            return pandalm(truths, map(reader, records))
        case "position-bias":
            return position_bias(pairs)
        case "qlora":
            return qlora(pairs, Counter(map(reader, records)))


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
        raise ValueError("no recording of this file can be read by the rule position-bias")
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
        raise ValueError("no pair of this file was read in both orders; the rule qlora needs some")
    return {
        "consistency": 100 * agreeing / len(twice),
        "consistentPairs": agreeing,
        "pairsReadTwice": len(twice),
        "firstWins": shown.get("A", 0),
        "secondWins": shown.get("B", 0),
        "ties": shown.get("TIE", 0),
        "unread": shown.get(None, 0),
    }
