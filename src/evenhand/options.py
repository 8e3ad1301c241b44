"""The options of judging and of running, each declared once: a field with its type, its help and
where it applies. Command-line flags, config files, the environment, the server's file, the fields
of HTTP and MCP, the fingerprint of a run and docs/settings.md derive from these rows.

To add an option, add a field here and its sentence; read it where it takes effect.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import MISSING, dataclass, fields, replace
from functools import cache
from pathlib import Path
from types import UnionType
from typing import (
    Annotated,
    Any,
    Literal,
    TypeVar,
    Union,
    cast,
    get_args,
    get_origin,
    get_type_hints,
)

from evenhand.contract import AnswerProtocol, ArtefactKind, Locale, Mode, Reconciling
from evenhand.errors import InputError
from evenhand.judge_kinds import JUDGE_NAMES
from evenhand.messages import Message

ConfidenceFrom = Literal["stated", "logprobs"]
Again = Literal["failed", "unread"]
T = TypeVar("T", bound="Options")
_TIME = re.compile(r"(\d+(?:\.\d+)?)\s*([smh])?")
_UNIT_S = {None: 1, "s": 1, "m": 60, "h": 3600}


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """How one option looks and where it applies; its name, type and default are the field's."""

    help: str
    default: str | None = None  # what it is where nobody chose, in words
    more: str | None = None  # where the docs say more: page.md#heading
    flag: str | None = None  # where it is not the field's name
    short: str | None = None
    metavar: str | None = None
    least: float | None = None
    above: float | None = None  # the same, without the number itself
    # On the command line and for clients; Python callers are not limited.
    most: float | None = None
    common: bool = False  # shown by --help; the others by --help-all
    # The config files that may set it. One in the working directory may come with a checkout.
    files: Literal["any", "yours", "none"] = "any"
    variable: str | None = None  # the environment's
    served: bool = True  # a key of [[judges]] in the server's file
    clients: bool = False  # a field that HTTP and MCP clients may send
    # What depends on it: the judge's answers, the verdicts from them, or neither.
    decides: Literal["passes", "verdicts", "nothing"] = "nothing"
    always: bool = False  # recorded also where it is as implied: what runs from before are known by
    implied: object = None  # what it is where nobody chose
    example: object = None  # what `evenhand init` writes, where nothing is implied
    duration: bool = False  # seconds, or a text such as 10m
    # What its text names in the store: another run, or a judge of the first or second run.
    names: Literal["run", "judge", "other judge"] | None = None


Kind = Literal[
    "text",
    "texts",
    "path",
    "place",
    "whole",
    "number",
    "numbers",
    "duration",
    "flag",
    "choice",
    "choices",
]


@dataclass(frozen=True, slots=True)
class Row:
    """An option with its name and type, as the faces need it."""

    name: str
    option: Option
    kind: Kind
    choices: tuple[str, ...]
    default: Any

    @property
    def flag(self) -> str:
        return self.flag_of()

    def flag_of(self, side: str | None = None) -> str:
        """Of one side, where each has its own: --a-seed."""
        before = f"--{side}-" if side else "--"
        return before + (self.option.flag or self.name.replace("_", "-"))

    @property
    def help(self) -> str:
        default = self.option.default
        return self.option.help + (f" Default: {default}." if default else "")

    @property
    def example(self) -> Any:
        """For a config file: the default, if there is a plain one."""
        option = self.option
        if option.example is not None:
            return option.example
        if option.implied is not None:
            return option.implied
        if self.kind in ("whole", "number", "duration"):
            return option.least or 1
        return False if self.kind == "flag" else (*self.choices, option.metavar or "TEXT")[0]

    def check(self, where: str, value: Any, error: type[InputError] = InputError) -> Any:
        """The validated value; `where` is what it was given as."""
        if value is None:
            return None
        checked = getattr(self, f"_{self.kind}")(value)
        if checked is None:
            raise error(self._refusal(where, value))
        return checked

    def read(self, where: str, text: str, error: type[InputError] = InputError) -> Any:
        """The same from text, as in an environment variable."""
        try:
            value: Any = _FROM_TEXT.get(self.kind, str)(text)
        except (ValueError, KeyError):
            value = text
        return self.check(where, value, error)

    def _text(self, value: Any) -> Any:
        return value if isinstance(value, str) and value.strip() else None

    def _texts(self, value: Any) -> Any:
        if isinstance(value, str):
            return self._text(value)
        if not isinstance(value, (list, tuple)) or not value:
            return None
        return tuple(value) if all(map(self._text, value)) else None

    def _path(self, value: Any) -> Any:
        return value if isinstance(value, Path) else self._text(value)

    def _place(self, value: Any) -> Any:
        return self._path(value)

    def _flag(self, value: Any) -> Any:
        return value if isinstance(value, bool) else None

    def _choice(self, value: Any) -> Any:
        return value if isinstance(value, str) and value in self.choices else None

    def _choices(self, value: Any) -> Any:
        """In canonical order without duplicates: `metrics,reference` or a list; `none` is empty."""
        given = value.split(",") if isinstance(value, str) else value
        if not isinstance(given, (list, tuple)):
            return None
        named = [part.strip() for each in given for part in str(each).split(",")]
        if named == ["none"]:
            return ()
        if not all(each in self.choices for each in named):
            return None
        return tuple(each for each in self.choices if each in named)

    def _whole(self, value: Any) -> Any:
        return value if type(value) is int and self._in_range(value) else None

    def _number(self, value: Any) -> Any:
        is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
        return value if is_number and math.isfinite(value) and self._in_range(value) else None

    def _numbers(self, value: Any) -> Any:
        if not isinstance(value, (list, tuple)) or not value:
            return None
        return None if None in map(self._number, value) else tuple(value)

    def _duration(self, value: Any) -> Any:
        """Seconds, as a number or as "90s", "10m" or "2h"."""
        if isinstance(value, str):
            given = _TIME.fullmatch(value.strip())
            value = float(given[1]) * _UNIT_S[given[2]] if given else None
        return self._number(value)

    def _in_range(self, value: float) -> bool:
        least, above = self.option.least, self.option.above
        return (least is None or value >= least) and (above is None or value > above)

    def _refusal(self, where: str, value: Any) -> Message:
        if self.kind in ("choice", "choices"):
            if self.kind == "choices" and isinstance(value, (list, tuple)):
                value = next((each for each in value if each not in self.choices), value)
            return Message(f"option.{self.kind}", where=where, value=value, choices=self.choices)
        if self.option.above is not None:
            return Message("option.above", where=where, value=value, above=self.option.above)
        if self.kind == "numbers" and isinstance(value, (list, tuple)):
            value = next((each for each in value if self._number(each) is None), value)
        if self.kind in ("whole", "number", "numbers"):
            code = f"option.{self.kind.removesuffix('s')}"
            return Message(code, where=where, value=value, least=self.option.least)
        return Message(f"option.{self.kind}", where=where, value=value)


_FROM_TEXT: dict[Kind, Callable[[str], Any]] = {
    "whole": int,
    "number": float,
    "flag": lambda text: {"true": True, "1": True, "false": False, "0": False}[text.lower()],
}


class Options:
    """A group of options as one frozen value. None: not chosen."""

    @classmethod
    def rows(cls) -> tuple[Row, ...]:
        return _rows(cast("Any", cls))

    @classmethod
    def row(cls, name: str) -> Row:
        return next(row for row in cls.rows() if row.name == name)

    @classmethod
    def implied(cls) -> dict[str, Any]:
        """The default if nobody chose."""
        return {row.name: row.option.implied for row in cls.rows()}

    def deciding(self, what: Literal["passes", "verdicts"]) -> dict[str, Any]:
        """The deciding options, as a run records them; a new option changes no existing run."""
        values = {
            row: row.option.implied if (given := getattr(self, row.name)) is None else given
            for row in self.rows()
            if row.option.decides == what
        }
        return {
            row.name: value
            for row, value in values.items()
            if row.option.always or value != row.option.implied
        }

    @classmethod
    def recorded(cls: type[T], record: Mapping[str, Any]) -> T:
        """The deciding options as a run recorded them."""
        return cls(
            **{
                row.name: record[row.name]
                for row in cls.rows()
                if row.option.decides != "nothing" and row.name in record
            }
        )

    def chosen(self) -> dict[str, Any]:
        """Those that differ from the default."""
        return {
            row.name: getattr(self, row.name)
            for row in self.rows()
            if getattr(self, row.name) != row.default
        }

    def over(self: T, under: Options | Mapping[str, Any]) -> T:
        """Fills what is not chosen here from there."""
        there = under if isinstance(under, Mapping) else under.chosen()
        unset = {
            row.name: there[row.name]
            for row in self.rows()
            if row.name in there and getattr(self, row.name) == row.default
        }
        owner: Any = self
        changed: T = replace(owner, **unset)
        return changed

    def check(self) -> None:
        """Validate and normalise all values."""
        for row in self.rows():
            value = getattr(self, row.name)
            checked = row.check(row.name, value)
            if checked is not value:
                object.__setattr__(self, row.name, checked)


@cache
def _rows(owner: Hashable) -> tuple[Row, ...]:
    hints = get_type_hints(owner, include_extras=True)
    return tuple(_each_row(owner, hints))


def _each_row(owner: Any, hints: Mapping[str, Any]) -> Iterator[Row]:
    for each in fields(owner):
        declared = hints[each.name]
        option = next(
            (note for note in getattr(declared, "__metadata__", ()) if isinstance(note, Option)),
            None,
        )
        if option is not None:
            default = None if each.default is MISSING else each.default
            kind, choices = _kind_of(get_args(declared)[0])
            yield Row(each.name, option, "duration" if option.duration else kind, choices, default)


def _kind_of(declared: Any) -> tuple[Any, tuple[str, ...]]:
    """The type, and the choices, if any."""
    members = (
        [each for each in get_args(declared) if each is not type(None)]
        if get_origin(declared) in (Union, UnionType)
        else [declared]
    )
    first = members[0]
    if get_origin(first) is Literal:
        return "choice", get_args(first)
    if any(get_origin(each) is tuple for each in members):
        inner = next(get_args(each)[0] for each in members if get_origin(each) is tuple)
        if get_origin(inner) is Literal:
            return "choices", get_args(inner)
        return ("numbers" if inner is float else "texts"), ()
    if Path in members:
        return ("path" if first is Path else "place"), ()
    return {bool: "flag", int: "whole", float: "number", str: "text"}[first], ()


@dataclass(frozen=True, kw_only=True, repr=False)
class JudgingOptions(Options):
    """Which judge is asked, and how it judges a pair."""

    judge: Annotated[
        str | None,
        Option(
            help=f"The judge: {', '.join(JUDGE_NAMES[:-1])} or {JUDGE_NAMES[-1]}.",
            more="judges.md",
            default="EVENHAND_JUDGE",
            short="-j",
            common=True,
            variable="EVENHAND_JUDGE",
        ),
    ] = None
    base_url: Annotated[
        str | tuple[str, ...] | None,
        Option(
            help="The address of the judge's server, e.g. http://localhost:8000/v1. Repeatable: "
            "several servers of one model share the calls.",
            more="judges.md#several-servers",
            default="OPENAI_BASE_URL, for openai: judges",
            common=True,
            files="yours",
            variable="OPENAI_BASE_URL",
        ),
    ] = None
    locale: Annotated[
        Locale | None,
        Option(
            help="The language of the prompt and the notes.",
            default="en, or EVENHAND_LOCALE",
            common=True,
            variable="EVENHAND_LOCALE",
            decides="verdicts",
            always=True,
            implied="en",
        ),
    ] = None
    mode: Annotated[
        Mode | None,
        Option(
            help="reasoned: a full answer with reasons; letter: a single token, decided by its "
            "probabilities; cheap, but gives no reasons.",
            default="what the judge does best",
            common=True,
        ),
    ] = None
    samples: Annotated[
        int | None,
        Option(
            help="How many times to judge each order; above 1 the temperature is 1 unless given.",
            default="1",
            least=1,
            most=100,
            common=True,
            decides="verdicts",
            always=True,
            implied=1,
        ),
    ] = None
    reconcile: Annotated[
        Reconciling | None,
        Option(
            help="agreement: both orders must name the winner; average: their mean probability "
            "decides.",
            default="agreement (letter mode: average)",
        ),
    ] = None
    confidence: Annotated[
        ConfidenceFrom | None,
        Option(
            help="stated: the judge's own; logprobs: the probability of its verdict token.",
            default="stated",
            decides="passes",
            always=True,
            implied="stated",
        ),
    ] = None
    template: Annotated[
        Path | str | None,
        Option(
            help="Your own prompt template: plain {slots}, or sandboxed Jinja (*.j2).",
            more="prompts.md",
            files="yours",
        ),
    ] = None
    protocol: Annotated[
        AnswerProtocol | None,
        Option(
            help="The answer format of recorded completions.",
            default="recognised from the text",
            files="none",
            served=False,
            decides="passes",
            always=True,
        ),
    ] = None
    timeout_s: Annotated[
        float | None,
        Option(
            help="Seconds allowed per request.",
            default="120 (local models: 600)",
            example=120,
            flag="timeout",
            least=0.1,
        ),
    ] = None
    max_tokens: Annotated[
        int | None,
        Option(
            help="Maximum tokens per answer.",
            default="4096 (local models: 2048)",
            example=4096,
            least=1,
        ),
    ] = None
    temperature: Annotated[
        float | None,
        Option(
            help="The judge's temperature.",
            default="0, or 1 with several samples: at 0 they would all be the same",
            example=0,
            least=0,
            most=2,
        ),
    ] = None
    retries: Annotated[
        int | None,
        Option(
            help="Retries after a 429, a 5xx, a reset or a timeout.",
            default="3",
            example=3,
            least=0,
            most=20,
        ),
    ] = None
    repairs: Annotated[
        int | None,
        Option(
            help="How many times to show the judge its unreadable answer and ask it to restate it.",
            default="1",
            least=0,
            most=5,
            decides="passes",
            always=True,
            implied=1,
        ),
    ] = None
    prepare: Annotated[
        tuple[ArtefactKind, ...] | None,
        Option(
            help="What to write before judging, comma-separated: metrics and reference for the "
            "prompt, analysis of each response; or none. Each text is written once and shared; "
            "evenhand audit can measure whether it helps.",
            default="none",
            more="judges.md#the-judge-prepares",
            metavar="KINDS",
            clients=True,
            implied=(),
        ),
    ] = None
    prepare_with: Annotated[
        str | None,
        Option(
            help="The model that writes it.",
            default="the judge",
            example="openai:MODEL",
            metavar="JUDGE",
        ),
    ] = None
    ask_identical: Annotated[
        bool | None,
        Option(
            help="Ask the judge about identical responses too.",
            default="they are a tie by rule",
            more="contract.md#identical-responses",
            clients=True,
            implied=False,
        ),
    ] = None


@dataclass(frozen=True, kw_only=True)
class RunningOptions(Options):
    """Where a run is kept, how fast it goes, what it may cost and what it asks again."""

    store: Annotated[
        str | Path | None,
        Option(
            help="Where runs are stored: a file, or postgresql://….",
            default="EVENHAND_STORE, or a file in your data folder",
            metavar="FILE_OR_URL",
            common=True,
            files="yours",
            variable="EVENHAND_STORE",
        ),
    ] = None

    concurrency: Annotated[
        int | None,
        Option(
            help="Maximum calls in flight.",
            default="adapts to the server, up to 512",
            least=1,
            most=4096,
            common=True,
            files="none",
        ),
    ] = None
    rpm: Annotated[
        float | None,
        Option(help="Maximum requests per minute, per judge.", above=0, files="none"),
    ] = None
    tpm: Annotated[
        float | None,
        Option(help="Maximum tokens per minute, per judge.", above=0, files="none"),
    ] = None
    max_calls: Annotated[
        int | None,
        Option(
            help="Maximum number of calls.",
            least=0,
            most=10**12,  # what may be added up and stored stays within 64 bits
            common=True,
            clients=True,
        ),
    ] = None
    max_cost: Annotated[
        float | None,
        Option(
            help="Maximum cost in dollars.",
            more="runs.md#cost",
            above=0,
            most=1e9,
            common=True,
            clients=True,
        ),
    ] = None
    fresh: Annotated[
        bool,
        Option(
            help="Ask everything again instead of reusing answers from earlier runs.",
            files="none",
            clients=True,
        ),
    ] = False
    retry: Annotated[
        tuple[Again, ...],
        Option(
            help="Ask again only what failed, or only what could not be read. Repeatable.",
            metavar="failed|unread",
            files="none",
        ),
    ] = ()
    keep_going_unread: Annotated[
        bool,
        Option(
            help="Continue even if the judge's answers cannot be read. Otherwise 20 unreadable "
            "answers in a row, or more than half of the first 40, stop the run.",
            files="none",
            clients=True,
        ),
    ] = False
    give_up_after_s: Annotated[
        float | None,
        Option(
            help="Stop after this long without any answer (429, 5xx, no connection): 90s, 10m, "
            "2h, or seconds. Run the same command to continue. Not for batches.",
            default="10m",
            example=600,
            flag="give-up-after",
            metavar="TIME",
            least=0.1,
            duration=True,
        ),
    ] = None


@dataclass(frozen=True, kw_only=True)
class GeneratingOptions(Options):
    """How one side of an A/B test answers; the flag of each side begins with its letter."""

    command: Annotated[
        str | None,
        Option(
            help="A command instead of a model: prompt on standard input, answer on standard "
            "output, no shell."
        ),
    ] = None
    template: Annotated[
        str | None,
        Option(
            help="A template for each prompt; it must contain {{ prompt }}.",
            metavar="FILE",
            clients=True,
        ),
    ] = None
    system: Annotated[
        str | None, Option(help="A system prompt.", metavar="TEXT|@FILE", clients=True)
    ] = None
    base_url: Annotated[str | None, Option(help="The address of its server.")] = None
    temperature: Annotated[
        float | None,
        Option(help="Its temperature.", default="the model's own", least=0, most=2),
    ] = None
    max_tokens: Annotated[
        int | None,
        Option(help="Maximum tokens per answer; longer answers are truncated.", least=1),
    ] = None
    seed: Annotated[int | None, Option(help="Seed for the first repeat.", least=0)] = None
    name: Annotated[str | None, Option(help="The name shown in reports.")] = None
