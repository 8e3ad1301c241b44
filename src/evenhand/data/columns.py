"""Which column is which field: the usual names, and what the caller maps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from evenhand.data.rows import shortened
from evenhand.errors import DataError

_STEMS = ("response", "output", "answer", "completion", "generation", "output_text", "reply")

# The first name is the field's own. A name that could mean two things is not in the table.
PAIR_FIELDS: Mapping[str, tuple[str, ...]] = {
    "prompt": (
        "prompt",
        "original_prompt",
        "instruction",
        "question",
        "input",
        "query",
        "input_text",
        "user_prompt",
    ),
    "response_a": (*(f"{stem}_{end}" for end in "a1" for stem in _STEMS), "chosen"),
    "response_b": (*(f"{stem}_{end}" for end in "b2" for stem in _STEMS), "rejected"),
    "id": ("id", "pair_id", "example_id", "uid", "uuid"),
    "context": ("context", "background"),
    "reference": (
        "reference",
        "reference_answer",
        "reference_output",
        "gold_answer",
        "ground_truth",
        "expected_output",
    ),
    "criteria": ("criteria",),
    "label": ("label", "winner", "preference", "human_label", "human_preference", "gold_label"),
    "model_a": ("model_a", "model_1", "generator_a", "generator_1", "model_name_a", "chosen_model"),
    "model_b": (
        "model_b",
        "model_2",
        "generator_b",
        "generator_2",
        "model_name_b",
        "rejected_model",
    ),
    "tags": ("tags", "tag", "category", "categories"),
    "cluster": ("cluster", "cluster_id"),
    "allow_tie": ("allow_tie",),
    "swap_positions": ("swap_positions",),
}

# One model's answers: the same, with one response and the model's own name.
OUTPUT_FIELDS: Mapping[str, tuple[str, ...]] = {
    "prompt": PAIR_FIELDS["prompt"],
    "response": ("response", "output", "answer", "completion", "generation", "text"),
    "id": (*PAIR_FIELDS["id"], "question_id", "prompt_id", "task_id"),
    "model": ("model", "generator", "model_id", "model_name"),
    "context": PAIR_FIELDS["context"],
    "reference": PAIR_FIELDS["reference"],
    "tags": PAIR_FIELDS["tags"],
    "cluster": PAIR_FIELDS["cluster"],
}

# Several columns may serve such a field together.
_GATHERED = frozenset({"tags"})


def plain(name: str) -> str:
    """A name with case, hyphens, underscores, dots and spaces set aside."""
    return name.lower().translate(_SEPARATORS)


_SEPARATORS = str.maketrans("", "", "-_. ")


class Columns:
    """Finds the columns of each field among those that a file or a row has."""

    def __init__(self, fields: Mapping[str, tuple[str, ...]], mapped: Mapping[str, str]) -> None:
        self._fields = fields
        self._names = {plain(name): field for field in fields for name in fields[field]}
        self._mapped = {self._field(name): column for name, column in mapped.items()}

    def wanted(self, column: str) -> bool:
        return plain(column) in self._names or column in self._mapped.values()

    def find(self, present: Sequence[str]) -> dict[str, tuple[str, ...]]:
        """Each field's columns among those present; a field that has none is not in it."""
        found: dict[str, list[str]] = {}
        plain_names = {plain(column) for column in present}
        for column in present:
            name = plain(column)
            field = self._names.get(name)
            if field is None or field in self._mapped:
                continue
            # In response_0, response_1 the second is B, not A: nothing is guessed.
            if name[-1] in "12" and f"{name[:-1]}0" in plain_names:
                continue
            found.setdefault(field, []).append(column)
        for field, wanted in self._mapped.items():
            named = _named(wanted, present)
            if named is not None:
                found[field] = [named]
        return {field: tuple(columns) for field, columns in found.items()}

    def missing(self, field: str, present: Sequence[str]) -> str:
        """Why a field has no column: what was looked for, what is there, and the remedy."""
        shown = ", ".join(shortened(column) for column in present[:20]) or "none"
        more = f" and {len(present) - 20} more" if len(present) > 20 else ""
        if self._mapped.get(field):
            return (
                f"{field} is mapped to the column {self._mapped[field]!r}, which is not there; "
                f"the columns are {shown}{more}"
            )
        names = ", ".join(self._fields[field])
        return (
            f"no column for {field} (looked for {names}); the columns are {shown}{more}; "
            f"name it with --map {field}=COLUMN"
        )

    def clash(self, field: str, columns: Sequence[str]) -> str:
        names = " and ".join(columns)
        return (
            f"{names} both fit {field} and differ; say which with --map {field}={columns[0]} "
            f"or --map {field}={columns[1]}"
        )

    def _field(self, name: str) -> str:
        for field in self._fields:
            if plain(field) == plain(name):
                return field
        raise DataError(
            f"--map {name}=…: {name} is not a field; the fields are {', '.join(self._fields)}"
        )


def gathered(field: str) -> bool:
    return field in _GATHERED


def _named(wanted: str, present: Sequence[str]) -> str | None:
    if not wanted:
        return None
    if wanted in present:
        return wanted
    alike = [column for column in present if plain(column) == plain(wanted)]
    return alike[0] if len(alike) == 1 else None
