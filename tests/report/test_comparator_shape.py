"""The export for LLM Comparator has what that app reads (its client/lib/types.ts, and the loader in
its state service, which takes every member below for granted)."""

from __future__ import annotations

import io
import json
from typing import Any

import jsonschema
import pytest

from evenhand.report.export import export_run
from evenhand.store import Store
from stored_runs import ROWS, make_run

_TEXT_OR_NULL = {"type": ["string", "null"]}
_SCORE = {"type": ["number", "null"], "minimum": -1.5, "maximum": 1.5}
_RATING = {
    "type": "object",
    "required": ["score", "rating_label", "is_flipped", "rationale", "custom_fields"],
    "properties": {
        "score": _SCORE,
        "rating_label": _TEXT_OR_NULL,
        "is_flipped": {"type": "boolean"},
        "rationale": _TEXT_OR_NULL,
        "custom_fields": {"type": "object"},
    },
}
_EXAMPLE = {
    "type": "object",
    "required": [
        "input_text",
        "tags",
        "output_text_a",
        "output_text_b",
        "score",
        "individual_rater_scores",
        "rationale_list",
        "custom_fields",
    ],
    "properties": {
        "input_text": {"type": "string"},
        "output_text_a": {"type": "string"},
        "output_text_b": {"type": "string"},
        "tags": {"type": "array", "items": {"type": "string"}},
        "score": _SCORE,
        "individual_rater_scores": {"type": "array", "items": _RATING},
        "rationale_list": {
            "type": "array",
            "items": {
                "required": ["rationale", "similarities"],
                "properties": {
                    "rationale": {"type": "string"},
                    "similarities": {"type": "array", "items": {"type": "number"}},
                },
            },
        },
        "custom_fields": {"additionalProperties": {"type": ["null", "number", "string"]}},
    },
}
# The kinds of field that hold one plain value.
_PLAIN_KINDS = ["number", "string", "category", "text"]
_FILE = {
    "type": "object",
    "required": ["metadata", "models", "examples"],
    "properties": {
        "metadata": {
            "required": ["source_path", "custom_fields_schema"],
            "properties": {
                "source_path": {"type": "string"},
                "custom_fields_schema": {
                    "type": "array",
                    "items": {
                        "required": ["name", "type"],
                        "properties": {"name": {"type": "string"}, "type": {"enum": _PLAIN_KINDS}},
                    },
                },
            },
        },
        "models": {
            "type": "array",
            "minItems": 2,
            "maxItems": 2,
            "items": {"required": ["name"], "properties": {"name": {"type": "string"}}},
        },
        "examples": {"type": "array", "items": _EXAMPLE},
    },
}


@pytest.fixture
def exported(store: Store) -> Any:
    make_run(store, "first", ROWS)
    stream = io.BytesIO()
    export_run(store, "first", stream, format="llm-comparator")
    return json.loads(stream.getvalue())


def test_export_has_the_shape_that_the_app_reads(exported: Any) -> None:
    jsonschema.validate(exported, _FILE)
    assert len(exported["examples"]) == 7


def test_every_example_has_every_field_of_the_schema_in_its_kind(exported: Any) -> None:
    kinds = {field["name"]: field["type"] for field in exported["metadata"]["custom_fields_schema"]}
    for example in exported["examples"]:
        assert example["custom_fields"].keys() == kinds.keys()
        for name, value in example["custom_fields"].items():
            wanted = (int, float) if kinds[name] == "number" else str
            assert value is None or isinstance(value, wanted), name
