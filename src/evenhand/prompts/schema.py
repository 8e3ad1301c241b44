"""The JSON Schema of a reasoned answer, for servers that can hold a judge to it."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from evenhand.contract import Pair


def answer_schema(pair: Pair) -> Mapping[str, Any]:
    return _schema(tuple(criterion.name for criterion in pair.criteria), pair.allow_tie)


@lru_cache(maxsize=64)
def _schema(criteria: tuple[str, ...], allow_tie: bool) -> Mapping[str, Any]:
    """Reasons stand before winners, since a model writes the fields in this order."""
    text = {"type": "string"}
    texts = {"type": "array", "items": text}
    winner = {"type": "string", "enum": ["A", "B", "TIE"] if allow_tie else ["A", "B"]}
    response = _closed(strengths=texts, weaknesses=texts)
    criterion = _closed(
        criterion={"type": "string", "enum": list(criteria)},
        aAssessment=text,
        bAssessment=text,
        reasoning=text,
        winner={"type": "string", "enum": ["A", "B", "TIE"]},
    )
    return _closed(
        analysis=_closed(responseA=response, responseB=response),
        comparison={"type": "array", "items": criterion},
        result=_closed(
            reasoning=text,
            differentiators=texts,
            winner=winner,
            confidence={"type": "number"},
        ),
    )


def _closed(**properties: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }
