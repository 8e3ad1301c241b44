"""LLM Comparator's files, in and out."""

from __future__ import annotations

import json
from typing import Any

from data.conftest import Read, Write
from evenhand.contract import Criterion
from evenhand.data.llm_comparator import ComparatorExample, ComparatorRating, llm_comparator_blocks
from evenhand.data.options import ReadOptions
from evenhand.data.pairs import read_pairs
from evenhand.data.records import Record

READING = ReadOptions(criteria=(Criterion(name="accuracy"),))
EXAMPLES: list[dict[str, Any]] = [
    {
        "input_text": "Where to?",
        "tags": ["Travel"],
        "output_text_a": "Seoul",
        "output_text_b": "Busan",
        "score": score,
        "individual_rater_scores": [{"score": 1.5, "is_flipped": True, "rationale": "r"}],
        "custom_fields": {"id": f"x{score}"},
    }
    for score in (0.5, -1.25, 0)
]
MODELS = [{"name": "First"}, {"name": "Second"}]


def test_examples_are_pairs_with_models_and_tags(read: Read) -> None:
    metadata = {"source_path": "", "custom_fields_schema": []}
    for document in (
        {"metadata": metadata, "models": MODELS, "examples": EXAMPLES},
        {"examples": EXAMPLES, "metadata": metadata, "models": MODELS},
    ):
        for record, example in zip(read("x.json", json.dumps(document)), EXAMPLES, strict=True):
            assert isinstance(record, Record)
            assert record.key == example["custom_fields"]["id"]
            assert record.pair.prompt == "Where to?"
            assert (record.pair.response_a, record.pair.response_b) == ("Seoul", "Busan")
            assert (record.model_a, record.model_b) == ("First", "Second")
            assert record.tags == ("Travel",)


def test_a_judges_score_is_a_label_only_where_it_is_mapped(read: Read) -> None:
    document = json.dumps({"models": MODELS, "examples": EXAMPLES})
    unmapped = read("x.json", document)
    assert [record.label for record in unmapped if isinstance(record, Record)] == [None] * 3
    mapped = read("x.json", document, label="score")
    assert [record.label for record in mapped if isinstance(record, Record)] == ["A", "B", "TIE"]


def test_chunks_of_text_are_one_text_and_a_picture_is_a_bad_row(read: Read) -> None:
    text = [{"type": "text", "data": "Where "}, {"type": "text", "data": "to?"}]
    picture = [*text, {"type": "image_byte", "data": "AAAA"}]
    examples = [{**EXAMPLES[0], "input_text": chunks} for chunks in (text, picture)]
    first, second = read("x.json", json.dumps({"examples": examples}))
    assert isinstance(first, Record)
    assert first.pair.prompt == "Where to?"
    assert not isinstance(second, Record)


def test_what_is_written_has_all_that_the_app_reads_and_comes_back(write: Write) -> None:
    examples = [
        ComparatorExample(
            input_text='p"\n',
            output_text_a="a",
            output_text_b="",
            score=score,
            tags=("x",),
            ratings=(
                ComparatorRating(score=1.0),
                ComparatorRating(score=score, flipped=True, rationale="because"),
            ),
            rationales=("because",),
            custom_fields={"id": f"#{score}", "label": "B"},
        )
        for score in (1.5, -1.5, None)
    ]
    blocks = llm_comparator_blocks(
        iter(examples),
        names=("M", "N"),
        custom_field_types={"id": "string", "label": "category"},
    )
    out = b"".join(blocks)
    document = json.loads(out)
    assert document["metadata"] == {
        "source_path": "evenhand",
        "custom_fields_schema": [
            {"name": "id", "type": "string"},
            {"name": "label", "type": "category"},
        ],
    }
    assert document["models"] == [{"name": "M"}, {"name": "N"}]
    for written, example in zip(document["examples"], examples, strict=True):
        assert written["score"] == example.score
        assert [rating["is_flipped"] for rating in written["individual_rater_scores"]] == [
            False,
            True,
        ]
        assert all(rating["custom_fields"] == {} for rating in written["individual_rater_scores"])
        assert written["rationale_list"] == [{"rationale": "because", "similarities": []}]
    records = list(read_pairs([write("x.json", out)], READING))
    assert [
        (
            record.key,
            record.pair.prompt,
            record.pair.response_a,
            record.pair.response_b,
            record.label,
        )
        for record in records
        if isinstance(record, Record)
    ] == [(f"#{score}", 'p"\n', "a", "", "B") for score in (1.5, -1.5, None)]


def test_no_examples_are_still_a_document() -> None:
    assert json.loads(b"".join(llm_comparator_blocks([], names=("M", "N"))))["examples"] == []
