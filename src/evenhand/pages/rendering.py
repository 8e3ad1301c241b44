"""A template and its values to HTML. Everything is escaped unless it was made here as HTML."""

from __future__ import annotations

from functools import cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from evenhand.pages import figures
from evenhand.pages.wording import Language, Wording


@cache
def environment() -> Environment:
    made = Environment(
        loader=PackageLoader("evenhand.pages", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {
        "number": figures.number,
        "rate": figures.rate,
        "dollars": figures.dollars,
        "duration": figures.duration,
        "moment": figures.moment,
        "p_value": figures.p_value,
        "iso": lambda at: at.isoformat(timespec="seconds"),
    }
    made.tests["known"] = lambda value: value is not None
    return made


def render(template: str, language: Language, **values: Any) -> str:
    """`say` is the wording and `figure` writes a figure with its uncertainty, in every template."""
    say = Wording(language)
    return (
        environment()
        .get_template(template)
        .render(say=say, language=language, figure=figures.Figures(say), **values)
    )
