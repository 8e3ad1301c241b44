"""The native answer exactly as it was asked for, which is how most answers come.

Nothing here knows another spelling, a gap or a contradiction: what is not exactly as asked is left
to `read_answer`, which reads the same from all of this in three times the time.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import orjson

from evenhand.contract import Criterion, criterion_key
from evenhand.parse.outcome import Reading
from evenhand.parse.words import DIRECT_WINNERS

_LONGEST_NAME = 100
_ANSWER = frozenset({"analysis", "comparison", "result"})
_RESULT = frozenset({"reasoning", "differentiators", "winner", "confidence"})
_ANALYSIS = frozenset({"responseA", "responseB"})
_RESPONSE = frozenset({"strengths", "weaknesses"})
_TEXT = frozenset({str})
_CRITERION = frozenset({"criterion", "aAssessment", "bAssessment", "reasoning", "winner"})
_KEYS = len(_ANSWER) + len(_RESULT) + len(_ANALYSIS) + len(_ANALYSIS) * len(_RESPONSE)
_KEYS_OF_CRITERION = len(_CRITERION)


def read_native_text(text: str, criteria: Sequence[Criterion]) -> Reading | None:
    """The same from the JSON itself, where its texts hold no colon.

    orjson takes a third of the time of `json`, but of a key that is there twice it keeps the last,
    where a contradiction may hide. Every key has its colon, so a text with as many colons as the
    asked-for answer has keys holds no key twice.
    """
    if text.count(":") != _KEYS + _KEYS_OF_CRITERION * len(criteria):
        return None
    try:
        value = orjson.loads(text)
    except ValueError:  # `json` reads a little more, e.g. line breaks inside strings
        return None
    return read_native(value, criteria) if type(value) is dict else None


def read_native(value: dict[str, Any], criteria: Sequence[Criterion]) -> Reading | None:
    """What the answer says; None where it is not exactly as asked."""
    if not criteria or value.keys() != _ANSWER:
        return None
    result = value["result"]
    if type(result) is not dict or result.keys() != _RESULT:
        return None
    said = result["winner"]
    winner = DIRECT_WINNERS.get(said) if type(said) is str else None
    reasoning, differentiators = result["reasoning"], result["differentiators"]
    confidence = result["confidence"]
    if (
        winner is None
        or type(reasoning) is not str
        or not _are_texts(differentiators)
        or type(confidence) is not float
    ):
        return None
    analysis = _analysis(value["analysis"])
    entries = _criteria(value["comparison"], criteria)
    if analysis is None or entries is None:
        return None
    return Reading(
        winner=winner,
        confidence=confidence if 0 <= confidence <= 1 else None,
        criteria=entries,
        reasoning=reasoning,
        differentiators=tuple(differentiators),
        analysis=analysis,
        from_object=True,
        as_asked=True,
    )


def _analysis(analysis: Any) -> dict[str, Any] | None:
    if type(analysis) is not dict or analysis.keys() != _ANALYSIS:
        return None
    for response in analysis.values():
        if type(response) is not dict or response.keys() != _RESPONSE:
            return None
        if not _are_texts(response["strengths"]) or not _are_texts(response["weaknesses"]):
            return None
    return {"response_a": analysis["responseA"], "response_b": analysis["responseB"]}


def _are_texts(value: Any) -> bool:
    return type(value) is list and set(map(type, value)) <= _TEXT


def _criteria(comparison: Any, criteria: Sequence[Criterion]) -> tuple[dict[str, Any], ...] | None:
    """One entry for each criterion, in the caller's order and by the caller's name."""
    if type(comparison) is not list or len(comparison) != len(criteria):
        return None
    entries = []
    for entry, criterion in zip(comparison, criteria, strict=True):
        if type(entry) is not dict or entry.keys() != _CRITERION:
            return None
        name, won = entry["criterion"], entry["winner"]
        reasoning = entry["reasoning"]
        a_assessment, b_assessment = entry["aAssessment"], entry["bAssessment"]
        if (
            type(name) is not str
            or type(won) is not str
            or type(reasoning) is not str
            or type(a_assessment) is not str
            or type(b_assessment) is not str
        ):
            return None
        winner = DIRECT_WINNERS.get(won)
        if winner is None:
            return None
        if len(name) > _LONGEST_NAME:
            return None
        if name != criterion.name and criterion_key(name) != criterion_key(criterion.name):
            return None
        entries.append(
            {
                "criterion": criterion.name,
                "winner": winner,
                "reasoning": reasoning,
                "a_assessment": a_assessment,
                "b_assessment": b_assessment,
            }
        )
    return tuple(entries)
