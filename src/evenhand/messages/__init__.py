"""Every sentence that a person may read: a code with its values, and one catalogue a language.

A message is made where the fact is known and rendered where somebody reads it: `en.toml` and
`zh.toml` hold each sentence once, and once more under `[http.…]` or `[page.…]` where those who have
no command line are helped otherwise. Nothing reads a rendered sentence back. Under `[label.…]` are
the words of pages and charts, for `LabelCatalogue`: no value carries them.

In a sentence `{n:count}` is 1,234, `{n:one|many}` goes by the number, `{x:number}` is 58 and
`{x:percent}` 58%, `{x:share}` is 58%, `{x:points}` 58 and `{x:level}` 95%, `{p:p_value}` is
"p = 0.12", `{names:or}` is "a, b or c", `{option:option}` and `{--max-tokens}` are an option as
the reader knows it.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from numbers import Integral, Real
from string import Formatter
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args

if TYPE_CHECKING:
    from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
    from pydantic_core import CoreSchema

Language = Literal["en", "zh"]
# Who reads it: options are `--max-tokens`, `maxTokens` or `max_tokens` to them.
Face = Literal["cli", "http", "python", "page"]
FACES: tuple[Face, ...] = get_args(Face)

_CAMEL = re.compile(r"-([a-z])")
_PLAIN = (str, int, float, type(None))


class Message(str):
    """A sentence that knows what it says.

    As a string it is the English sentence for whoever runs this process, so that errors, JSON and
    logs show it as they show any text; `code` and `values` render it for others.
    """

    __slots__ = ("code", "language", "values")
    code: str
    language: Language  # of its text
    values: Mapping[str, Any]

    def __new__(cls, code: str, /, **values: Any) -> Message:
        return cls.of(code, values)

    @classmethod
    def of(cls, code: str, values: Mapping[str, Any], language: Language = "en") -> Message:
        """With values as they were stored, or with its text in another language."""
        kept = {name: _kept(value) for name, value in values.items()}
        message = str.__new__(cls, _filled(code, kept, language, _face))
        message.code, message.values, message.language = code, kept, language
        return message

    def with_texts(self, change: Callable[[str], str]) -> Message:
        """The same message with each text among its values changed, in messages within it too."""
        values = {name: _changed(each, change) for name, each in self.values.items()}
        return Message.of(self.code, values, self.language)

    def __reduce__(self) -> tuple[Any, ...]:
        return Message.of, (self.code, self.values, self.language)

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        from pydantic_core import core_schema

        return core_schema.no_info_plain_validator_function(
            _message_of,
            serialization=core_schema.plain_serializer_function_ser_schema(
                _parts, when_used="json-unless-none"
            ),
        )

    @classmethod
    def __get_pydantic_json_schema__(
        cls, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        # A message within it is an object, and a list of names an array.
        kinds = ("string", "integer", "number", "object", "array")
        value = {"anyOf": [{"type": kind} for kind in kinds]}
        values = {"type": "object", "title": "Values", "additionalProperties": value}
        return {
            "type": "object",
            "title": "Message",
            "properties": {"code": {"type": "string", "title": "Code"}, "values": values},
            "required": ["code", "values"],
            "additionalProperties": False,
        }


def chained(messages: Iterable[Message]) -> Message:
    """Several facts as one, with semicolons between."""
    first, *rest = messages
    for each in rest:
        first = Message("chain.then", first=first, then=each)
    return first


def joined(messages: Iterable[Message]) -> Message:
    """Sentences one after the other, as one message."""
    first, *rest = messages
    for each in rest:
        first = Message("chain.next", first=first, then=each)
    return first


def render(
    message: str | Iterable[Message], language: Language = "en", face: Face | None = None
) -> str:
    """One sentence, or several one after the other; any other text as it is."""
    if isinstance(message, Message):
        return _filled(message.code, message.values, language, face or _face)
    if isinstance(message, str):
        return message
    between = "" if language == "zh" else " "
    return between.join(render(each, language, face) for each in message)


_face: Face = "python"


@contextlib.contextmanager
def speaking_to(face: Face) -> Iterator[None]:
    """Whom messages made in this process are for, unless they are rendered for somebody else."""
    global _face
    before, _face = _face, face
    try:
        yield
    finally:
        _face = before


def option(name: str, face: Face) -> str:
    """`max-tokens` as it is called there."""
    if face == "cli":
        return f"--{name}"
    if face == "python":
        return name.replace("-", "_")
    return _CAMEL.sub(lambda found: found[1].upper(), name)


# Fields of values that go to clients and to the store

# Give as `context` to pydantic's dumps: with codes and values for whoever renders them later, or
# as sentences for an HTTP client.
WHOLE: dict[str, Any] = {"messages": "whole"}
FOR_CLIENTS: dict[str, Any] = {"messages": "http"}


class _SentenceField:
    """A text that may be a message. JSON has the sentence, unless its `context` is another."""

    def __get_pydantic_core_schema__(
        self, source: Any, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        from pydantic_core import core_schema

        return core_schema.no_info_wrap_validator_function(
            _sentence_of,
            core_schema.str_schema(),
            serialization=core_schema.plain_serializer_function_ser_schema(
                _serialized, info_arg=True, return_schema=core_schema.any_schema()
            ),
        )

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        return {"type": "string"}


Sentence = Annotated[str, _SentenceField()]


def _sentence_of(value: Any, plain: Callable[[Any], str]) -> str:
    if isinstance(value, Message):
        return value
    if isinstance(value, dict) and value.keys() == {"code", "values"}:
        try:
            return _message_of(value)
        except (ValueError, LookupError):  # stored by another evenhand, with other sentences
            return f"{value['code']} {value['values']}"
    return plain(value)


def _message_of(value: Any) -> Message:
    if isinstance(value, Message):
        return value
    if not isinstance(value, dict) or value.keys() != {"code", "values"}:
        raise ValueError("a message has a code and values")
    if value["code"] not in catalogue("en"):
        raise ValueError(f"there is no message {value['code']!r}")
    return Message.of(value["code"], value["values"])


def to_json(text: str) -> Any:
    """For JSON that we read ourselves: a message with its code and values."""
    return _parts(text) if isinstance(text, Message) else text


def from_json(value: Any) -> str:
    return _sentence_of(value, str)


_PACKED = '{"code":'


def to_text(text: str) -> str:
    """For a column of texts: a message as the JSON of its code and values."""
    return (
        json.dumps(_parts(text), ensure_ascii=False, separators=(",", ":"))
        if isinstance(text, Message)
        else text
    )


def from_text(text: str) -> str:
    if not text.startswith(_PACKED):
        return text
    try:
        return from_json(json.loads(text))
    except ValueError:  # somebody else's text that begins like one of ours
        return text


def _serialized(text: str, info: Any) -> Any:
    how = (info.context or {}).get("messages")
    if how is None or not isinstance(text, Message):
        return text
    return _parts(text) if how == "whole" else render(text, text.language, how)


def _parts(message: Message) -> dict[str, Any]:
    values = {name: _part(value) for name, value in message.values.items()}
    return {"code": message.code, "values": values}


def _part(value: Any) -> Any:
    if isinstance(value, Message):
        return _parts(value)
    return [_part(each) for each in value] if isinstance(value, list) else value


# Catalogues


@cache
def catalogue(language: Language, part: Face | Literal["label"] | None = None) -> dict[str, str]:
    """Code to sentence: those for every reader, those for one face alone, or labels. A code is the
    table's name and the key, with a point between."""
    before = f"{part}." if part else ""
    return {
        f"{table.removeprefix(before)}.{key}": text
        for table, own in _read(language).items()
        if (table.startswith(before) if part else "." not in table)
        for key, text in own.items()
    }


@cache
def _read(language: Language) -> dict[str, dict[str, str]]:
    """The tables of a catalogue, by their whole names. Not at import: most commands and
    comparisons have nothing to say. Line by line, which takes 3 ms instead of tomllib's 22."""
    from importlib.resources import files

    tables: dict[str, dict[str, str]] = {}
    for line in files(__name__).joinpath(f"{language}.toml").read_text("utf-8").splitlines():
        if line.startswith("["):
            own = tables.setdefault(line.strip("[]"), {})
        elif line and not line.startswith("#"):
            key, _, text = line.partition(" = ")
            own[key] = json.loads(text)
    return tables


_Piece = str | tuple[str, str, str]


@cache
def _pieces(code: str, language: Language, face: Face) -> tuple[_Piece, ...]:
    text = catalogue(language, face).get(code) or catalogue(language)[code]
    return tuple(_parsed(text, face))


def _parsed(text: str, face: Face) -> Iterator[_Piece]:
    """Literal text, and slots as name, conversion and format."""
    for literal, name, spec, conversion in Formatter().parse(text):
        if literal:
            yield literal
        if name is not None and name.startswith("--"):
            yield option(name.removeprefix("--"), face)
        elif name is not None:
            yield name, conversion or "", spec or ""


def _filled(code: str, values: Mapping[str, Any], language: Language, face: Face) -> str:
    filled = [
        piece
        if isinstance(piece, str)
        else _written(values[piece[0]], piece[1], piece[2], language, face)
        for piece in _pieces(code, language, face)
    ]
    return "".join(filled)


def _written(value: Any, conversion: str, spec: str, language: Language, face: Face) -> str:
    if isinstance(value, Message):
        value = _filled(value.code, value.values, language, face)
    elif isinstance(value, list) and (spec or not conversion):
        each = [_written(one, conversion, "", language, face) for one in value]
        return _listed(each, spec, language)
    if conversion == "r":
        value = repr(value)
    if spec == "count":
        return f"{value:,}"
    if spec in _NUMBERS:
        from evenhand.messages import numbers

        text: str = getattr(numbers, _NUMBERS[spec])(value)
        return f"{text}%" if spec == "percent" else text
    if spec == "option":
        return option(value, face)
    if "|" in spec:
        one, many = spec.split("|")
        return one if value == 1 else many
    return format(value, spec)


# Of evenhand.messages.numbers, by the name of the format.
_NUMBERS = {
    "share": "percent",
    "points": "points",
    "level": "level",
    "number": "points",
    "percent": "points",
    "p_value": "p_value",
}
_LAST: dict[Language, dict[str, str]] = {
    "en": {"": ", ", "or": " or ", "and": " and "},
    "zh": {"": "、", "or": " 或 ", "and": " 和 "},
}


def _listed(names: list[str], last: str, language: Language) -> str:
    before = _LAST[language][""].join(names[:-1])
    return _LAST[language][last].join([before, *names[-1:]]) if before else "".join(names)


class LabelCatalogue:
    """`say("runs.title")`: the words of pages and charts, in one language."""

    def __init__(self, language: Language = "en") -> None:
        self.language: Language = language
        self._labels = catalogue(language, "label")

    def __call__(self, key: str, **values: Any) -> str:
        return "".join(self.pieces(key, values))

    def pieces(self, key: str, values: Mapping[str, Any]) -> Iterator[str]:
        """A text that is filled in comes as it is, a whole number with its commas."""
        for piece in _label_pieces(key, self.language):
            if isinstance(piece, str):
                yield piece
                continue
            name, conversion, spec = piece
            value = values[name]
            if isinstance(value, str) and not isinstance(value, Message):
                yield value
            else:
                spec = spec or ("count" if isinstance(value, int) else "")
                yield _written(value, conversion, spec, self.language, "page")

    def knows(self, key: str) -> bool:
        return key in self._labels


@cache
def _label_pieces(key: str, language: Language) -> tuple[_Piece, ...]:
    return tuple(_parsed(catalogue(language, "label")[key], "page"))


def _changed(value: Any, change: Callable[[str], str]) -> Any:
    if isinstance(value, Message):
        return value.with_texts(change)
    if isinstance(value, list):
        return [_changed(each, change) for each in value]
    return change(value) if isinstance(value, str) else value


def _kept(value: Any) -> Any:
    """As JSON can keep it: a path or an exception as its text."""
    if isinstance(value, (Message, *_PLAIN)):
        return value
    if isinstance(value, dict) and value.keys() == {"code", "values"}:
        return Message.of(value["code"], value["values"])
    if isinstance(value, (list, tuple)):
        return [_kept(each) for each in value]
    if isinstance(value, Integral):  # of NumPy
        return int(value)
    if isinstance(value, Real):
        return float(value)
    message = getattr(value, "message", None)  # of an error of ours
    if message is None and isinstance(value, Exception) and value.args:
        message = value.args[0]
    return message if isinstance(message, Message) else str(value)
