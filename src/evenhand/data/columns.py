"""Maps columns to fields, by their usual names and the caller's mapping; reads fields and the
spellings of a preference.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from evenhand.contract import Winner
from evenhand.contract.pair import number_as_text
from evenhand.data.records import Tag, kind_of, shortened
from evenhand.errors import DataError
from evenhand.messages import Message

_STEMS = ("response", "output", "answer", "completion", "generation", "output_text", "reply")

# The field's own name comes first. Ambiguous names are left out.
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

# For one model's answers: a single response and the model's name.
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

_RESPONSES = frozenset({"response_a", "response_b"})


def plain(name: str) -> str:
    """A name without case, hyphens, underscores, dots and spaces."""
    return name.lower().translate(_SEPARATORS)


_SEPARATORS = str.maketrans("", "", "-_. ")


class Columns:
    """Finds the columns of each field."""

    def __init__(self, fields: Mapping[str, tuple[str, ...]], mapped: Mapping[str, str]) -> None:
        self._fields = fields
        self._names = {plain(name): field for field in fields for name in fields[field]}
        self._mapped = {self._field(name): column for name, column in mapped.items()}

    def wanted(self, column: str) -> bool:
        return plain(column) in self._names or column in self._mapped.values()

    def find(self, present: Sequence[str]) -> dict[str, tuple[str, ...]]:
        """The columns of each field that has any."""
        fields: dict[str, list[str]] = {}
        plain_names = {plain(column) for column in present}
        for column in present:
            name = plain(column)
            field = self._names.get(name)
            if field is None or field in self._mapped:
                continue
            # In response_0, response_1 the second would be B, so a 0 rules out guessing.
            if name[-1] in "12" and f"{name[:-1]}0" in plain_names:
                continue
            fields.setdefault(field, []).append(column)
        for field, wanted in self._mapped.items():
            named = _named(wanted, present)
            if named is not None:
                fields[field] = [named]
        return {field: tuple(columns) for field, columns in fields.items()}

    def missing(self, field: str, present: Sequence[str]) -> str:
        """Why a field has no column: the names tried, the columns present, and the remedy."""
        columns = _listed(present)
        mapped = self._mapped.get(field)
        if mapped:
            return Message("data.column_not_there", field=field, column=mapped, columns=columns)
        if field in _RESPONSES and self._fields is PAIR_FIELDS:
            one = self._one_response(present)
            if one is not None:
                return Message("data.one_response", column=one)
        return Message(
            "data.no_column", field=field, names=list(self._fields[field]), columns=columns
        )

    def _one_response(self, present: Sequence[str]) -> str | None:
        """The column of a model's output, for rows without a pair of responses."""
        if self.find(present).keys() & _RESPONSES:
            return None
        single = {plain(name) for name in OUTPUT_FIELDS["response"]}
        return next((column for column in present if plain(column) in single), None)

    def _field(self, name: str) -> str:
        for field in self._fields:
            if plain(field) == plain(name):
                return field
        raise DataError.of("data.map_field_unknown", name=name, fields=", ".join(self._fields))


def _listed(columns: Sequence[str]) -> Message | list[str]:
    if not columns:
        return Message("data.no_columns")
    shown = [shortened(column) for column in columns[:20]]
    if len(columns) <= 20:
        return shown
    return Message("data.columns_and_more", columns=shown, n=len(columns) - 20)


def _named(wanted: str, present: Sequence[str]) -> str | None:
    if not wanted:
        return None
    if wanted in present:
        return wanted
    alike = [column for column in present if plain(column) == plain(wanted)]
    return alike[0] if len(alike) == 1 else None


# A file has a handful of row shapes; the bound is for those where each row has its own.
_SHAPES_MAX = 256
_SHAPE_COLUMNS_MAX = 1000  # of one that is kept
_TAGS_MAX = 10_000


@dataclass(frozen=True, slots=True)
class RowShape:
    """Where the fields are, for rows with the same columns.

    `numbered` responses are 1 and 2; `preferred` ones are named for which was chosen.
    """

    single: tuple[tuple[str, str], ...]
    several: tuple[tuple[str, tuple[str, ...]], ...]
    missing: str | None
    numbered: bool
    preferred: bool

    def tags(self, values: Mapping[str, Any]) -> tuple[str, ...]:
        tags = read_tags(values.get("tags"))
        column = next((column for field, column in self.single if field == "tags"), None)
        return tags if column is None else tuple([Tag(tag, column) for tag in tags])


class FieldValues:
    def __init__(
        self,
        fields: Mapping[str, tuple[str, ...]],
        mapped: Mapping[str, str],
        *,
        required: Sequence[str],
    ) -> None:
        self._columns = Columns(fields, mapped)
        self._required = required
        self._responses_mapped = any(plain(name).startswith("response") for name in mapped)
        self._shapes: dict[tuple[str, ...], RowShape] = {}

    def read(self, row: Mapping[str, Any]) -> tuple[RowShape, dict[str, Any]]:
        columns = tuple(row)
        shape = self._shapes.get(columns) or self.shape(columns)
        if shape.missing is not None:
            raise DataError(shape.missing)
        values = {field: row[column] for field, column in shape.single}
        for field, candidates in shape.several:
            values[field] = self._agreed(field, candidates, row)
        return shape, values

    def shape(self, columns: tuple[str, ...]) -> RowShape:
        fields = self._columns.find(columns)
        missing = next((field for field in self._required if field not in fields), None)
        first, second = (
            [plain(column) for column in fields.get(field, ("",))]
            for field in ("response_a", "response_b")
        )
        shape = RowShape(
            single=tuple((field, many[0]) for field, many in fields.items() if len(many) == 1),
            several=tuple((field, many) for field, many in fields.items() if len(many) > 1),
            missing=None if missing is None else self._columns.missing(missing, columns),
            numbered=first[0][-1:] == "1" and second[0] == f"{first[0][:-1]}2",
            preferred=(first, second) == (["chosen"], ["rejected"]) and not self._responses_mapped,
        )
        if len(self._shapes) >= _SHAPES_MAX:
            self._shapes.clear()
        if len(columns) <= _SHAPE_COLUMNS_MAX:
            self._shapes[columns] = shape
        return shape

    def _agreed(self, field: str, candidates: tuple[str, ...], row: Mapping[str, Any]) -> Any:
        """The value that several columns agree on; a conflict is an error."""
        given = [column for column in candidates if row[column] not in (None, "")]
        if field == "tags":  # several columns may serve it together
            return [Tag(tag, column) for column in given for tag in read_tags(row[column])]
        if not given:
            return row[candidates[0]]
        for column in given[1:]:
            if row[column] != row[given[0]]:
                raise DataError.of("data.columns_differ", field=field, one=given[0], two=column)
        return row[given[0]]


def text_of_id(value: Any, *, field: str = "id") -> str | None:
    """An id as text; an empty one is None."""
    if isinstance(value, str):
        return sendable(field, value) or None
    if value is None:
        return None
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) < 10**40:
        return str(value)
    raise DataError.of("data.text_or_number_needed", field=field, value=kind_of(value))


def text_of_cluster(value: Any) -> str | None:
    """In a table with gaps, whole numbers read as 3.0, and gaps as NaN."""
    if isinstance(value, float):
        if value != value:  # not a number
            return None
        if value.is_integer():
            value = int(value)
    return text_of_id(value, field="cluster")


def optional_text(field: str, value: Any) -> str | None:
    if value is None or value == "":
        return None
    if not isinstance(value, str):
        raise DataError.of("data.text_needed", field=field, value=kind_of(value))
    return sendable(field, value)


def reference_text(value: Any) -> Any:
    """A numeric reference as text; NaN is no reference."""
    gap = isinstance(value, float) and math.isnan(value)
    return None if gap else number_as_text(value)


def sendable(field: str, text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise DataError.of("data.invalid_unicode", field=field, start=error.start + 1) from None
    return text


def read_tags(value: Any) -> tuple[str, ...]:
    """Tags from a list, or from a text separated by `;`, else by `,`."""
    if value is None:
        return ()
    if isinstance(value, str):
        mark = ";" if ";" in value else ","
        _refuse_many_tags(value.count(mark) + 1)
        parts = value.split(mark)
        named = (part.strip() for part in parts)
        return tuple(sendable("tags", tag) for tag in dict.fromkeys(named) if tag)
    if isinstance(value, (list, tuple)):
        _refuse_many_tags(len(value))
        for tag in value:
            if not isinstance(tag, str):
                raise DataError.of("data.tag_no_text", tag=kind_of(tag))
        return tuple(sendable("tags", tag) for tag in dict.fromkeys(value) if tag)
    raise DataError.of("data.tags_no_list", value=kind_of(value))


def _refuse_many_tags(count: int) -> None:
    if count > _TAGS_MAX:
        raise DataError.of("data.too_many_tags", count=count, tags_max=_TAGS_MAX)


_SIDES = (
    *("", "model", "response", "output", "answer", "completion", "assistant"),
    *("响应", "回答", "答案", "回复", "模型"),
)
_SPELLED: dict[str, Winner] = {
    **{f"{side}a": "A" for side in _SIDES},
    **{f"{side}b": "B" for side in _SIDES},
    **{f"{side}1": "A" for side in _SIDES if side},
    **{f"{side}2": "B" for side in _SIDES if side},
    **dict.fromkeys(("a>b", "a>>b"), "A"),
    **dict.fromkeys(("b>a", "b>>a"), "B"),
    **dict.fromkeys(
        (
            *("tie", "tied", "draw", "equal", "a=b", "tie(bothbad)", "bothbad", "bothgood"),
            *("平局", "平手", "都不好"),
        ),
        "TIE",
    ),
}
# A bare number is a side only if the responses are numbered too (output_1, output_2); never 0,
# which is a tie in some data sets and the first response in others.
_NUMBERED: dict[float, Winner] = {1: "A", 2: "B", 1.5: "TIE"}


SKIPPED = frozenset({"skip", "skipped", "跳过"})
VERDICT_SHAPE = "give A, B, TIE or skipped"
# What spellings mean in a file; None is no verdict.
Meanings = Mapping[str, Winner | None]


def spelling_of(value: object) -> str:
    """The key of a spelling: a number's value, so that 1, "1" and 1.0 match, or a text's plain
    form."""
    number = number_of(value)
    if number is not None:
        return f"{number:g}"
    return plain(value if isinstance(value, str) else str(value))


def shown_spelling(value: object) -> str:
    """As a person would type it."""
    return shortened(value if isinstance(value, str) else spelling_of(value), to=20) or "SPELLING"


def read_meanings(given: Mapping[str, str]) -> dict[str, Winner | None]:
    """The caller's meanings of spellings: `{"0": "TIE"}`."""
    meanings: dict[str, Winner | None] = {}
    for spelled, verdict in given.items():
        read = None
        if plain(verdict) not in SKIPPED:
            try:
                read = read_label(verdict, numbered=False, model_a=None, model_b=None)
            except DataError:
                read = None
            if read is None:
                values = {"spelled": spelled, "verdict": verdict, "shape": VERDICT_SHAPE}
                raise DataError.of("data.spelling_no_verdict", **values)
        meanings[spelling_of(spelled)] = read
    return meanings


def read_label(
    value: object,
    *,
    numbered: bool,
    model_a: str | None,
    model_b: str | None,
    meanings: Meanings | None = None,
) -> Winner | None:
    """The label as A, B or TIE; None if the row has none."""
    if value is None:
        return None
    if meanings and spelling_of(value) in meanings:
        return meanings[spelling_of(value)]
    if isinstance(value, str):
        text = value.strip()
        if not text:
            return None
        spelled = _SPELLED.get(plain(text))
        if spelled is not None:
            return spelled
        if model_a != model_b and text in (model_a, model_b):
            return "A" if text == model_a else "B"
    number = number_of(value)
    if numbered and number in _NUMBERED:
        return _NUMBERED[number]
    shown = shown_spelling(value)
    raise DataError.of("data.label_unknown", value=kind_of(value), shortened=shown)


def number_of(value: object) -> float | None:
    """A number, or a text that spells one."""
    if isinstance(value, bool):
        return None
    if isinstance(value, (int, float)):
        return value
    if isinstance(value, str):
        try:
            return float(value)
        except ValueError:
            return None
    return None
