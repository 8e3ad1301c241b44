"""The JSON Schemas of the tools: objects at the top, inputs without references, and short, since
an agent's model reads all of them before it has done anything."""

from __future__ import annotations

from functools import cache
from typing import Any

from evenhand import tools
from evenhand.contract.model import Model

Schema = dict[str, Any]

_NUMBER_OR_NULL = {"type": ["number", "null"]}
_TEXT = {"type": "string"}
_TEXTS = {"type": "array", "items": _TEXT}
_COUNTS = ("pairs", "done", "winsA", "winsB", "ties", "inconsistent", "invalid", "pending", "calls")

# The contract's failure; what its metadata may hold stands in the schema of pairwiseCompare.
FAILURE: Schema = {
    "properties": {
        "success": {"const": False},
        "error": {"type": "object", "description": "kind, message, retryable"},
        "metadata": {"type": "object"},
    },
    "required": ["success", "error", "metadata"],
    "additionalProperties": False,
}

# Of the others, what an agent reads. They hold more, which the documentation explains, and
# their exact types would bring the statistics along before anybody has asked for them.
STATUS: Schema = {
    "properties": {
        "id": _TEXT,
        "name": _TEXT,
        "state": {"enum": ["reading", "queued", "judging", "finished", "stopped", "failed"]},
        **{name: {"type": "integer"} for name in _COUNTS},
        "costUsd": _NUMBER_OR_NULL,
        "remainingS": _NUMBER_OR_NULL,
        "stoppedBy": {"type": ["string", "null"]},
        "error": {"type": ["object", "null"]},
        "notes": _TEXTS,
    },
    "required": ["id", "name", "state", *_COUNTS, "costUsd", "stoppedBy", "error", "notes"],
}
RANKING: Schema = {
    "properties": {
        "success": {"const": True},
        "ranking": {
            "type": "array",
            "description": "Best first; those not told apart share their ranks",
            "items": {
                "type": "object",
                "properties": {
                    "index": {"type": "integer"},
                    "rankFrom": {"type": "integer"},
                    "rankTo": {"type": "integer"},
                },
                "required": ["index", "rankFrom", "rankTo"],
            },
        },
        "neighbours": {"type": "array", "description": "What each step of the order rests on"},
        "comparisons": {"type": "array"},
        "contradictions": {"type": "array"},
        "notes": _TEXTS,
        "metadata": {"type": "object"},
    },
    "required": ["success", "ranking", "neighbours", "comparisons", "notes", "metadata"],
}
REPORT: Schema = {
    "properties": {
        "run": {"type": "object", "description": "What it was, took and cost"},
        "conclusions": {
            "type": "object",
            "properties": {
                "state": _TEXT,
                "pairs": {"type": "integer"},
                "pending": {"type": "integer"},
                "conclusions": {
                    "type": "array",
                    "description": "One for each judge and two models",
                    "items": {
                        "type": "object",
                        "properties": {
                            "judge": _TEXT,
                            "winRate": {
                                "type": "object",
                                "description": "rate is null where reason says why",
                                "properties": {
                                    "side": {"enum": ["A", "B"]},
                                    "rate": _NUMBER_OR_NULL,
                                    "low": _NUMBER_OR_NULL,
                                    "high": _NUMBER_OR_NULL,
                                    "counts": {"type": "object"},
                                    "reason": {"type": ["string", "null"]},
                                },
                                "required": ["side", "rate", "low", "high", "counts"],
                            },
                        },
                        "required": ["judge", "winRate"],
                    },
                },
                "notes": _TEXTS,
            },
            "required": ["state", "pairs", "pending", "conclusions", "notes"],
        },
    },
    "required": ["run", "conclusions"],
}
AUDIT: Schema = {
    "properties": {
        "findings": {
            "type": "object",
            "properties": {
                "word": _TEXT,
                "lines": _TEXTS,
                "ruling": {"enum": ["pass", "fail", "undecided", None]},
                "checks": {"type": "array"},
            },
            "required": ["word", "lines", "ruling", "checks"],
        },
        "audit": {
            "type": "object",
            "description": "The figures: accuracy, kappa, consistency, place, length, …",
            "properties": {
                "judge": _TEXT,
                "n": {"type": "integer"},
                "accuracy": {"type": "object"},
                "disagreements": {"type": "array"},
            },
            "required": ["judge", "n", "accuracy", "disagreements"],
        },
        "run": {"type": "object", "description": "As of runStatus"},
    },
    "required": ["findings", "audit", "run"],
}


@cache
def input_schema(model: type[Model]) -> Schema:
    """Inlined, since not every client follows references; what may be null may be left out."""
    schema = tools.inlined_schema(model.model_json_schema(by_alias=True))
    schema.pop("description", None)
    return {**schema, "properties": _without_nulls(schema["properties"])}


def _without_nulls(properties: Schema) -> Schema:
    return {name: _without_null(field) for name, field in properties.items()}


def _without_null(field: Schema) -> Schema:
    kept = {key: value for key, value in field.items() if key != "default" or value is not None}
    choices = kept.get("anyOf", ())
    if len(choices) == 2 and choices[1] == {"type": "null"}:
        del kept["anyOf"]
        kept = {**choices[0], **kept}
    if isinstance(kept.get("items"), dict):
        kept["items"] = _without_null_inside(kept["items"])
    return kept


def _without_null_inside(schema: Schema) -> Schema:
    if "properties" in schema:
        return {**schema, "properties": _without_nulls(schema["properties"])}
    if "anyOf" in schema:
        return {**schema, "anyOf": [_without_null_inside(each) for each in schema["anyOf"]]}
    return schema


def compare_schema() -> Schema:
    """Of pairwiseCompare: the contract's output, rule by rule; its words are in the contract."""
    return tools.slim_schema(tools.output_schema(), described=False)


def or_failure(schema: Schema) -> Schema:
    """What the tool gives, or the contract's failure."""
    return {"type": "object", "anyOf": [schema, FAILURE]}
