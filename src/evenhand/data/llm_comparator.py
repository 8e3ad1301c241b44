"""LLM Comparator's JSON: examples as rows, and judged pairs as a file that it opens.

A score above 0 favours A, below 0 B; its charts expect -1.5 to 1.5. Scores are a judge's, so they
are labels only if mapped.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson

from evenhand.contract import WINNERS

_TEXTS = ("input_text", "output_text_a", "output_text_b")


@dataclass(frozen=True, slots=True)
class ComparatorRating:
    """One pass. `score` is in the pair's labels, even if `flipped`."""

    score: float | None
    flipped: bool = False
    label: str | None = None
    rationale: str | None = None


@dataclass(frozen=True, slots=True)
class ComparatorExample:
    """One judged pair. `custom_fields` need a type in the file's `custom_field_types`."""

    input_text: str
    output_text_a: str
    output_text_b: str
    score: float | None
    tags: tuple[str, ...] = ()
    ratings: tuple[ComparatorRating, ...] = ()
    rationales: tuple[str, ...] = ()
    custom_fields: Mapping[str, Any] = field(default_factory=dict)


def llm_comparator_blocks(
    examples: Iterable[ComparatorExample],
    *,
    names: tuple[str, str],
    source_path: str = "evenhand",
    custom_field_types: Mapping[str, str] | None = None,
    more: Mapping[str, Any] | None = None,
) -> Iterator[bytes]:
    """The document, one example at a time; the app ignores `more`, kept in its metadata."""
    schema = [{"name": name, "type": kind} for name, kind in (custom_field_types or {}).items()]
    metadata = {"source_path": source_path, "custom_fields_schema": schema, **(more or {})}
    models = [{"name": name} for name in names]
    yield b'{"metadata":%b,\n"models":%b,\n"examples":[' % (
        orjson.dumps(metadata),
        orjson.dumps(models),
    )
    for place, example in enumerate(examples):
        yield (b",\n" if place else b"\n") + orjson.dumps(_written(example))
    yield b"\n]}\n"


def _written(example: ComparatorExample) -> dict[str, Any]:
    return {
        "input_text": example.input_text,
        "tags": list(example.tags),
        "output_text_a": example.output_text_a,
        "output_text_b": example.output_text_b,
        "score": example.score,
        "individual_rater_scores": [
            {
                "is_flipped": rating.flipped,
                "score": rating.score,
                "rating_label": rating.label,
                "rationale": rating.rationale,
                "custom_fields": {},
            }
            for rating in example.ratings
        ],
        # The app assigns rationales to clusters by these similarities; we make no clusters.
        "rationale_list": [
            {"rationale": rationale, "similarities": []} for rationale in example.rationales
        ],
        "custom_fields": dict(example.custom_fields),
    }


_MODELS_MAX = 1 << 16  # bytes: two names


def model_names(text: bytes) -> tuple[str, str] | None:
    """The two names in `models`; None if it is anything else."""
    if len(text) > _MODELS_MAX:
        return None
    try:
        models = orjson.loads(text)
        first, second = (model["name"] for model in models)
    except (ValueError, TypeError, KeyError):
        return None
    return (first, second) if isinstance(first, str) and isinstance(second, str) else None


def plain_example(row: dict[str, Any], models: tuple[str, str] | None) -> dict[str, Any]:
    """An example as a plain row; other rows unchanged."""
    if not all(name in row for name in _TEXTS):
        return row
    plain = {**row, **{name: _text(row[name]) for name in _TEXTS}}
    if models is not None:
        plain.setdefault("model_a", models[0])
        plain.setdefault("model_b", models[1])
    custom = row.get("custom_fields")
    if isinstance(custom, dict):
        if isinstance(custom.get("id"), (str, int)):
            plain.setdefault("id", custom["id"])
        if custom.get("label") in WINNERS:
            plain.setdefault("label", custom["label"])
    plain["score"] = _winner(row.get("score"))
    return plain


def _winner(score: Any) -> Any:
    """The side that a score favours, so that `--map label=score` reads as a label."""
    if isinstance(score, (int, float)) and not isinstance(score, bool):
        return "A" if score > 0 else "B" if score < 0 else "TIE"
    return score


def _text(value: Any) -> Any:
    """Chunks of text joined; unchanged if one is an image."""
    if not isinstance(value, list) or not value:
        return value
    chunks = [
        chunk["data"]
        for chunk in value
        if isinstance(chunk, dict)
        and chunk.get("type") == "text"
        and isinstance(chunk.get("data"), str)
    ]
    return "".join(chunks) if len(chunks) == len(value) else value
