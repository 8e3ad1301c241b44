"""What a caller gives: one prompt, two responses to it, and the criteria to judge by."""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Mapping, Sequence
from functools import lru_cache
from numbers import Integral
from typing import Annotated, Any, NoReturn

from pydantic import (
    AfterValidator,
    AliasChoices,
    BeforeValidator,
    ConfigDict,
    Field,
    GetJsonSchemaHandler,
    Strict,
    ValidationError,
    field_validator,
    model_validator,
)
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, ErrorDetails, PydanticCustomError

from evenhand.contract.model import Model
from evenhand.contract.verdict import ORDERS, Order, other_order
from evenhand.errors import InputError
from evenhand.messages import Message

# Python refuses to print numbers of some thousand digits.
_LONG_NUMBER = 10**40


@lru_cache(maxsize=4096)
def criterion_key(name: str) -> str:
    """A name without case, spaces and punctuation, by which criteria are matched."""
    folded = unicodedata.normalize("NFKC", name).casefold()
    kept = "".join(c for c in folded if unicodedata.category(c)[0] not in "PZC")
    return kept or folded.strip()


_ESCAPED_BYTE = 0xDC00  # what `surrogateescape` adds to a byte that is not UTF-8


def _sendable(text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        byte = ord(text[error.start]) - _ESCAPED_BYTE
        if 0x80 <= byte <= 0xFF:
            raise PydanticCustomError(
                "not_utf8",
                "is not UTF-8: character {at} is the byte {byte}",
                {"at": error.start + 1, "byte": f"0x{byte:02X}"},
            ) from None
        raise PydanticCustomError(
            "unsendable",
            "cannot be sent: character {at} is half of a surrogate pair; "
            "re-encode the text as UTF-8",
            {"at": error.start + 1},
        ) from None
    return text


Text = Annotated[str, Strict(), AfterValidator(_sendable)]


def number_as_text(value: Any) -> Any:
    """A number as JSON writes it, since the answer to a sum is a reference too."""
    if isinstance(value, bool) or not isinstance(value, (Integral, float)):
        return value
    # The repr of NumPy's numbers, found in data frames, names their type.
    if isinstance(value, float):
        return repr(float(value)) if math.isfinite(value) else value
    return str(int(value)) if abs(int(value)) < _LONG_NUMBER else value


Reference = Annotated[Text | None, BeforeValidator(number_as_text)]


class Criterion(Model):
    """One thing to judge by. A plain string is short for `{"name": ...}`."""

    name: Text = Field(description="What to judge, e.g. accuracy")
    description: Text | None = Field(
        default=None, description="What the name means, shown to the judge"
    )
    weight: float | None = Field(
        default=None,
        gt=0,
        allow_inf_nan=False,
        strict=True,
        description="Relative importance, shown to the judge and used in the criteria's majority",
    )

    @model_validator(mode="before")
    @classmethod
    def _from_name(cls, value: Any) -> Any:
        return {"name": value} if isinstance(value, str) else value

    @field_validator("name")
    @classmethod
    def _named(cls, value: str) -> str:
        if not value.strip():
            raise PydanticCustomError("blank_name", "is blank; give the criterion a name")
        return value

    @classmethod
    def __get_pydantic_json_schema__(
        cls, core_schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        schema = handler.resolve_ref_schema(handler(core_schema))
        return {"anyOf": [{"type": "string", "minLength": 1}, schema]}


def _listed(value: Any) -> Any:
    # Strict, so that criteria="accuracy" is not read as eight letters.
    return tuple(value) if isinstance(value, list) else value


class Pair(Model):
    """One prompt, two responses to it, the criteria to judge by, and options."""

    model_config = ConfigDict(title="PairwiseComparison")

    prompt: Text = Field(
        validation_alias=AliasChoices("prompt", "original_prompt", "originalPrompt"),
        description="What both responses answer",
    )
    response_a: Text = Field(description="The first response, passed on verbatim")
    response_b: Text = Field(description="The second response, passed on verbatim")
    criteria: Annotated[tuple[Criterion, ...], BeforeValidator(_listed)] = Field(
        strict=True,
        min_length=1,
        description="What to judge by, most important first: names, or objects with a name",
    )
    id: Text | None = Field(default=None, description="Returned in the metadata")
    context: Text | None = Field(default=None, description="Extra material for the judge")
    reference: Reference = Field(default=None, description="A known good answer to compare with")
    allow_tie: bool = Field(default=True, strict=True, description="Whether TIE is allowed")
    swap_positions: bool = Field(
        default=True,
        strict=True,
        description=("Judge twice, the second time with the responses swapped"),
    )

    @field_validator("criteria")
    @classmethod
    def _distinct(cls, criteria: tuple[Criterion, ...]) -> tuple[Criterion, ...]:
        seen: dict[str, str] = {}
        for criterion in criteria:
            key = criterion_key(criterion.name)
            if key in seen:
                raise PydanticCustomError(
                    "duplicate_criterion",
                    "repeats {name} (as {first}, ignoring case, spaces and punctuation); "
                    "remove one",
                    {"name": repr(criterion.name), "first": repr(seen[key])},
                )
            seen[key] = criterion.name
        return criteria

    @property
    def orders(self) -> tuple[Order, ...]:
        """The orders in which the judge sees the two responses, one pass each."""
        return ORDERS if self.swap_positions else ORDERS[:1]

    def mirrored(self) -> Pair:
        return self.model_copy(
            update={"response_a": self.response_b, "response_b": self.response_a}
        )


class DrawnOrderPair(Pair):
    """A pair judged in one order that was drawn at random. Only runs make it."""

    swap_positions: bool = False
    drawn_order: Order

    @property
    def orders(self) -> tuple[Order, ...]:
        return (self.drawn_order,)

    def mirrored(self) -> Pair:
        turned = other_order(self.drawn_order)
        return super().mirrored().model_copy(update={"drawn_order": turned})


def drawn_order(pair: Pair) -> Order | None:
    """None if both orders are asked, or if the one was not drawn."""
    return pair.drawn_order if isinstance(pair, DrawnOrderPair) else None


def read_pair(value: Pair | Mapping[str, Any], *, criteria_needed: bool = True) -> Pair:
    """A Pair from plain data, or an InputError that names the field and what it takes.

    `criteria_needed` is False for a replay, which reads no prompt.
    """
    if isinstance(value, Pair):
        return value
    if not isinstance(value, Mapping):  # callers may be untyped
        raise InputError.of("pair.not_an_object", value=_kind_of(value))
    _refuse_both_spellings(value)
    if not criteria_needed and "criteria" not in value:
        pair = read_pair({**value, "criteria": ["none"]})
        return pair.model_copy(update={"criteria": ()})
    try:
        return Pair.model_validate(dict(value))
    except ValidationError as error:
        refuse(error, Pair)


def read_criteria(values: Sequence[Any]) -> tuple[Criterion, ...]:
    texts = {"prompt": "", "responseA": "", "responseB": ""}
    return read_pair({**texts, "criteria": list(values)}).criteria


_WEIGHTED = re.compile(r"(.*\S)\s*[*×]\s*(\d+(?:\.\d+)?|\.\d+)\s*")


def criterion_in(text: str) -> str | dict[str, Any]:
    """As a person writes it: `name`, `name: description`, `name*2` or `name*2: description`."""
    name, _, description = text.replace("：", ":", 1).partition(":")
    if not description.strip():
        name = text
    weighted = _WEIGHTED.fullmatch(name)
    if weighted is None and name == text:
        return text
    criterion: dict[str, Any] = {"name": name.strip()}
    if weighted is not None:
        criterion |= {"name": weighted[1].strip(), "weight": float(weighted[2])}
    return criterion | ({"description": description.strip()} if description.strip() else {})


def _refuse_both_spellings(value: Mapping[str, Any]) -> None:
    for name, field in Pair.model_fields.items():
        given = [
            spelling for spelling in spellings(name, field.validation_alias) if spelling in value
        ]
        if len(given) > 1:
            raise InputError.of("pair.given_twice", given=given[0], given2=given[1])


def spellings(name: str, alias: object) -> list[str]:
    choices = alias.choices if isinstance(alias, AliasChoices) else [alias]
    return list(dict.fromkeys([name, *(c for c in choices if isinstance(c, str))]))


_TAKES = {
    "string_type": "string",
    "bool_type": "boolean",
    "float_type": "number",
    "tuple_type": "names",
    "greater_than": "positive_number",
    "finite_number": "finite_number",
    "model_type": "criterion",
    "model_attributes_type": "criterion",
}


def refuse(error: ValidationError, model: type[Model]) -> NoReturn:
    """Pydantic's first complaint as one line that names the field and what it takes."""
    details = error.errors(include_url=False)[0]
    raise InputError(_complaint(details, model)) from None


def missing_field(error: InputError) -> str | None:
    """The required field that is missing, if that is the complaint."""
    message = error.message
    if isinstance(message, Message) and message.code == "pair.field_missing":
        return str(message.values["where"])
    return None


def _complaint(details: ErrorDetails, model: type[Model]) -> str:
    kind, where = details["type"], _path(details["loc"])
    if kind == "missing":
        return Message("pair.field_missing", where=where)
    if kind == "extra_forbidden":
        known = ", ".join(str(field.alias) for field in model.model_fields.values())
        return Message("pair.unknown_field", where=where, known=known)
    if kind == "too_short":
        return Message("pair.empty_list", where=where)
    if kind in ("blank_name", "duplicate_criterion", "unsendable", "not_utf8"):
        return Message(f"pair.{kind}", where=where, **details.get("ctx", {}))
    if kind in _TAKES:
        takes = Message(f"takes.{_TAKES[kind]}")
        return Message("pair.wrong_type", where=where, takes=takes, got=_kind_of(details["input"]))
    return Message("pair.refused", where=where, reason=details["msg"])


def field_of(message: str) -> str | None:
    values = message.values if isinstance(message, Message) else {}
    where = values.get("where", values.get("field"))
    return where if isinstance(where, str) else None


def at_field(message: str, name: str) -> str:
    """The same complaint under another field name."""
    if not isinstance(message, Message) or field_of(message) is None:
        return message
    slot = "where" if "where" in message.values else "field"
    return Message.of(message.code, {**message.values, slot: name})


def _path(location: Sequence[int | str]) -> str:
    path = ""
    for step in location:
        name = f"[{step}]" if isinstance(step, int) else _name(step)
        path += f".{name}" if path and not isinstance(step, int) else name
    return path or "the pair"


def _name(field: str) -> str:
    return field if len(field) <= 40 else field[:37] + "…"


def _kind_of(value: object) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        shown = value if len(value) <= 40 else value[:37] + "…"
        return f"the string {shown!r}"
    if isinstance(value, int) and abs(value) >= _LONG_NUMBER:
        return "a number of more than 40 digits"
    if isinstance(value, (int, float)):
        return Message("pair.number_value", value=value)
    if isinstance(value, (list, tuple)):
        return "a list"
    if isinstance(value, Mapping):
        return "an object"
    return f"a {type(value).__name__}"
