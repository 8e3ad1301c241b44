"""A run as LLM Comparator opens it: an example for each row, a rating for each pass."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, BinaryIO

from evenhand.contract import Pass, Winner
from evenhand.data.llm_comparator import Example, Rating, write_llm_comparator
from evenhand.report.records import RunRow

# Its scale goes from -1.5 to 1.5, with 1 for "better"; a verdict has no degrees.
_SCORE: dict[Winner, float] = {"A": 1.0, "B": -1.0, "TIE": 0.0}
_RATED: dict[Winner, str] = {"A": "A is better", "B": "B is better", "TIE": "tie"}
_UNNAMED = ("Response A", "Response B")
_FIELDS = {
    "id": "string",
    "judge": "category",
    "outcome": "category",
    "label": "category",
    "confidence": "number",
}


def write_comparator(
    stream: BinaryIO, rows: Iterable[RunRow], *, names: tuple[str, str] | None, run: str
) -> int:
    """`names` are the two models', where every row has the same two."""
    return write_llm_comparator(
        stream,
        map(_example, rows),
        names=names or _UNNAMED,
        source_path=f"evenhand run {run}",
        custom_field_types=_FIELDS,
    )


def _example(row: RunRow) -> Example:
    custom: dict[str, Any] = {
        "id": row.id,
        "judge": row.judge,
        "outcome": row.outcome.value,
        "label": row.label,
        "confidence": row.confidence,
    }
    return Example(
        input_text=row.prompt,
        output_text_a=row.response_a,
        output_text_b=row.response_b,
        score=None if row.winner is None else _SCORE[row.winner],
        tags=row.tags,
        ratings=tuple(_ratings(row.verdict.metadata.passes)),
        rationales=(row.reasoning,) if row.reasoning else (),
        custom_fields=custom,
    )


def _ratings(passes: Iterable[Pass]) -> Iterator[Rating]:
    for made in passes:
        flipped = made.order == "swapped"
        if made.ballot is not None:
            winner = made.ballot.winner
            yield Rating(_SCORE[winner], flipped, _RATED[winner], made.ballot.reasoning or None)
        elif made.unread is not None:
            yield Rating(None, flipped, "unread", made.unread.reason)
