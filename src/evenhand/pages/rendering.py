"""A template and its values to HTML. Everything is escaped unless it was made here as HTML."""

from __future__ import annotations

from functools import cache
from typing import Any
from urllib.parse import urlencode

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from evenhand.errors import visible
from evenhand.pages import diagrams, differences, figures
from evenhand.pages.told import Told
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
        "marked": differences.marked,
        "visible": lambda html: Markup(visible(html)),  # noqa: S704 - a block, escaped already
    }
    made.globals |= {
        "address": address,
        "interval_line": diagrams.interval_line,
        "share_bar": diagrams.share_bar,
    }
    made.tests["known"] = lambda value: value is not None
    return made


def address(path: str, **query: object) -> str:
    """A page with these parameters; those that are None are left out, yes and no are words."""
    given = {
        name: str(value).lower() if isinstance(value, bool) else str(value)
        for name, value in query.items()
        if value is not None
    }
    return f"{path}?{urlencode(given)}" if given else path


def render(template: str, language: Language, **values: Any) -> str:
    """In every template `say` is the wording, `told` turns sentences of the rooms below into the
    language, and `figure` writes a figure with its uncertainty."""
    say = Wording(language)
    # What a server shows has a frame around it; a notebook has none, and a command line instead.
    told = Told(language, on_pages="frame" in values)
    own = {"say": say, "told": told, "figure": figures.Figures(say)}
    return environment().get_template(template).render(language=language, **own, **values)
