"""Every sentence of a conclusion: a code with its values, and one catalogue for each language.

A message is made where the fact is known and rendered where somebody reads it. Nothing reads a
rendered sentence back.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from functools import lru_cache
from importlib.resources import files
from string import Formatter
from typing import Any, get_args

from evenhand.contract import Locale
from evenhand.contract.model import Model

Value = str | int | float


class Message(Model):
    code: str
    values: dict[str, Value]


def message(code: str, /, **values: Value) -> Message:
    return Message(code=code, values=values)


def render(messages: Message | Iterable[Message], locale: Locale = "en") -> str:
    """One sentence, or several one after the other."""
    if isinstance(messages, Message):
        return _FORMATTER.vformat(catalogue(locale)[messages.code], (), messages.values)
    between = "" if locale == "zh" else " "
    return between.join(render(each, locale) for each in messages)


@lru_cache(maxsize=len(get_args(Locale)))
def catalogue(locale: Locale) -> dict[str, str]:
    """Code to sentence; a code is the table's name and the key, with a point between."""
    tables = tomllib.loads(files(__name__).joinpath(f"{locale}.toml").read_text("utf-8"))
    return {f"{table}.{key}": text for table, own in tables.items() for key, text in own.items()}


def percent_number(share: float) -> str:
    """58 for 0.58: with more digits where rounding would put it on one half."""
    for digits in (0, 1, 2):
        rounded = f"{100 * share:.{digits}f}"
        if share == 0.5 or float(rounded) != 50:
            return rounded
    return f"{100 * share:.4g}"


class _Formatter(Formatter):
    """`{n:count}` 1,234; `{n:one|many}` by number; `{x:number}` 58 and `{x:percent}` 58 %."""

    def format_field(self, value: Any, format_spec: str) -> str:
        if format_spec == "count":
            return f"{value:,}"
        if format_spec == "number":
            return percent_number(value)
        if format_spec == "percent":
            return f"{percent_number(value)} %"
        if "|" in format_spec:
            one, many = format_spec.split("|")
            return one if value == 1 else many
        return str(super().format_field(value, format_spec))


_FORMATTER = _Formatter()
