"""A template and its values to HTML: the wording in both languages, figures with their uncertainty.
Everything is escaped unless it was made here as HTML.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from functools import cache
from typing import Any, Protocol, get_args
from urllib.parse import urlencode

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from evenhand.errors import visible
from evenhand.messages import Face, LabelCatalogue, Language, Message, render
from evenhand.messages.numbers import dollars, duration, number, p_value, rate, tenths
from evenhand.present.html.texts import marked

LANGUAGES: tuple[Language, ...] = get_args(Language)
_INDENTATION = re.compile(r"^ +", re.MULTILINE)


class Wording(LabelCatalogue):
    """Labels as HTML. What is filled in is escaped: names and texts come from outside."""

    def __call__(self, key: str, **values: Any) -> Markup:
        return Markup("").join(map(escape, self.pieces(key, values)))


def preferred(accepted: str) -> Language:
    """The first of ours in an Accept-Language header; English where there is none."""
    best: tuple[float, Language] = (0.0, "en")
    for entry in accepted.split(",")[:20]:
        tag, _, rest = entry.partition(";")
        quality = _quality(rest)
        spoken = tag.strip().lower().split("-")[0]
        for language in LANGUAGES:
            if spoken == language and quality > best[0]:
                best = (quality, language)
    return best[1]


def _quality(parameters: str) -> float:
    name, _, value = parameters.strip().partition("=")
    try:
        return float(value) if name.strip() == "q" else 1.0
    except ValueError:
        return 0.0


class PageTranslator:
    """Notes, reasons and errors in the page's language. `on_pages`: for whoever has a server's
    pages before them, and no command line."""

    def __init__(self, language: Language, *, on_pages: bool = False) -> None:
        self._language: Language = language
        self._face: Face | None = "page" if on_pages else None

    def shown(self, said: str) -> Markup:
        """In a box of its own; what stays in English on a page that is not says so."""
        foreign = self._language != "en" and not isinstance(said, Message)
        other = Markup(' lang="en"') if foreign else ""
        return Markup("<bdi{}>{}</bdi>").format(other, self(said))

    def __call__(self, said: str) -> str:
        return render(said, self._language, self._face)

    def each(self, said: Iterable[str]) -> list[str]:
        return [self(one) for one in said]


# Figures as people read them on a page: never a share or a rate without its uncertainty.

_NUMBER_AND_UNIT = re.compile(r"(?<=\d) (?=%)|(?<=\bp) (?== )|(?<=\bp =) ")


class Interval(Protocol):
    """A share, a rate, or another figure with its interval: what statistics give."""

    @property
    def low(self) -> float | None: ...

    @property
    def high(self) -> float | None: ...

    @property
    def reason(self) -> str | None: ...


class FigureFormat:
    """In one language."""

    def __init__(self, say: Wording) -> None:
        self._say = say
        self._told = PageTranslator(say.language)

    def share(self, value: float | None, of: Interval) -> Markup:
        """In per cent with its interval; a figure that cannot be had says why."""
        if value is None:
            return self._unknown(of)
        shown = Markup('<span class="figure">{}<small>%</small></span>').format(tenths(value))
        return shown + self._between(of, tenths)

    def plain(self, value: float | None, of: Interval) -> Markup:
        if value is None:
            return self._unknown(of)
        shown = Markup('<span class="figure">{}</span>').format(rate(value))
        return shown + self._between(of, rate)

    def counted(self, part: int, of: int) -> Markup:
        """So many of all, as a share with its interval."""
        from evenhand.stats.proportions import Share

        share = Share.of_counts(part, of)
        if share is None:
            return Markup('<span class="unknown">—</span>')
        low, high = tenths(share.low), tenths(share.high)
        return Markup('{}<small>%</small></span> <span class="interval">{}</span>').format(
            Markup('<span class="figure">{}').format(tenths(share.value)),
            self._say("figure.between", low=low, high=high),
        )

    def ago(self, at: datetime) -> Markup:
        """How long it is since, in the largest unit that fits."""
        seconds = max(0.0, (datetime.now(UTC) - at.astimezone(UTC)).total_seconds())
        for unit, size in (("days", 86400), ("hours", 3600), ("minutes", 60)):
            if seconds >= size:
                return self._say(f"ago.{unit}", n=int(seconds // size))
        return self._say("ago.now")

    def sentence(self, messages: Iterable[Message]) -> str:
        """A conclusion in words. Names are set apart, so that one cannot turn what follows it; a
        reason within it stays a message, in the page's language."""
        told = render(
            [
                Message.of(
                    each.code,
                    {
                        name: f"\u2068{value}\u2069"
                        if isinstance(value, str) and not isinstance(value, Message)
                        else value
                        for name, value in each.values.items()
                    },
                )
                for each in messages
            ],
            self._say.language,
        )
        return _NUMBER_AND_UNIT.sub("\u00a0", told)  # which no line tears apart

    def markdown(self, messages: str | Iterable[Message], facts: Iterable[str] = ()) -> str:
        """A conclusion to paste."""
        from evenhand.report.overview import as_markdown

        return as_markdown(messages, facts, self._say.language)

    def missing(self, of: Interval) -> Markup:
        """Why a row of a table has no figure, as briefly as it can be said: its neighbours say the
        same."""
        reason = of.reason
        if not isinstance(reason, Message) or reason.code != "stats.too_few":
            return self._unknown(of)
        have = render(reason.values["have"], self._say.language)
        told = self._say("rates.too_few", have=have, fewest=reason.values["fewest"])
        return Markup('<span class="unknown">—</span> <span class="reason">{}</span>').format(told)

    def _unknown(self, of: Interval) -> Markup:
        return Markup('<span class="unknown">—</span>') + self._reason(of)

    def _between(self, of: Interval, write: Callable[[float], str]) -> Markup:
        shown = Markup(' <span class="interval">{}</span>')
        if of.low is None or of.high is None:
            return shown.format(self._say("figure.no_interval")) + self._reason(of)
        return shown.format(self._say("figure.between", low=write(of.low), high=write(of.high)))

    def _reason(self, of: Interval) -> Markup:
        if not of.reason:
            return Markup("")
        return Markup(' <small class="reason">{}</small>').format(self._told.shown(of.reason))


def moment(at: datetime) -> str:
    return at.astimezone(UTC).strftime("%Y-%m-%d %H:%M UTC")


class _Templates(PackageLoader):
    """Without their indentation: it is a tenth of a page."""

    def get_source(
        self, environment: Environment, template: str
    ) -> tuple[str, str, Callable[[], bool] | None]:
        source, path, is_current = super().get_source(environment, template)
        return _INDENTATION.sub("", source), path, is_current


@cache
def environment(*packages: str) -> Environment:
    """With the templates of these packages, and those that files show too."""
    folders = (*packages, "evenhand.present.html", "evenhand.present")
    made = Environment(
        loader=ChoiceLoader([_Templates(each) for each in folders]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {
        "number": number,
        "rate": rate,
        "dollars": dollars,
        "duration": duration,
        "moment": moment,
        "p_value": p_value,
        "iso": lambda at: at.isoformat(timespec="seconds"),
        "marked": marked,
        "short_judge": short_judge,
        "percent": lambda share: f"{tenths(share)}%",
        "visible": lambda html: Markup(visible(html)),  # noqa: S704 - a block, escaped already
    }
    made.globals |= {
        "address": address,
    }
    made.tests["known"] = lambda value: value is not None
    return made


def address(path: str, **query: object) -> str:
    """A page with these parameters; those that are None are left out, yes and no are words, and of
    several values each is given."""
    given = [
        (name, str(each).lower() if isinstance(each, bool) else str(each))
        for name, value in query.items()
        if value is not None
        for each in (value if isinstance(value, tuple) else (value,))
    ]
    return f"{path}?{urlencode(given)}" if given else path


def short_judge(name: str) -> str:
    """Without the provider, and the folder where there is one: `openai:org/model` is `model`."""
    return name.rpartition(":")[2].rpartition("/")[2] or name


def render_template(template: str, language: Language, *packages: str, **values: Any) -> str:
    """In every template `say` is the wording, `told` turns sentences of the rooms below into the
    language, and `figure` writes a figure with its uncertainty."""
    say = Wording(language)
    # What a server shows has a frame around it; who has none has a command line instead.
    told = PageTranslator(language, on_pages="frame" in values)
    own = {"say": say, "told": told, "figure": FigureFormat(say)}
    return environment(*packages).get_template(template).render(language=language, **own, **values)
