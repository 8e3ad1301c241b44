"""The options that several commands share, each described once, and the groups in which a command
takes them.
"""

from __future__ import annotations

import copy
import functools
import inspect
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    ClassVar,
    Literal,
    Self,
    TypeVar,
    get_args,
    get_type_hints,
)

import typer
from typer.models import OptionInfo

from evenhand.errors import InputError
from evenhand.messages import Message
from evenhand.options import JudgingOptions, Kind, Options, Row, RunningOptions

if TYPE_CHECKING:
    from evenhand.data.orders import OrderDraw
    from evenhand.judges.protocol import Judge
    from evenhand.judging.config import JudgeConfig
    from evenhand.runs import RunOptions

T = TypeVar("T")

# Options of the table as flags.

_TYPES: dict[Kind, Any] = {
    "text": str,
    "texts": list[str],
    "path": Path,
    "place": str,  # a file, or an address that no path should touch
    "whole": int,
    "number": float,
    "numbers": list[float],
    "duration": str,
    "choices": list[str],
}


def parameter(name: str, annotation: Any, default: Any) -> inspect.Parameter:
    kind = inspect.Parameter.KEYWORD_ONLY
    return inspect.Parameter(name, kind, default=default, annotation=annotation)


def as_typer(row: Row, side: str | None = None) -> Any:
    option = row.option
    names = [row.flag_of(side), *([option.short] if option.short else [])]
    limits: dict[str, Any] = {}
    if row.kind in ("whole", "number"):
        limits = {"min": option.least, "max": option.most}
    return typer.Option(
        *names, help=row.help, metavar=option.metavar, hidden=not option.common, **limits
    )


def flags_of(rows: Iterable[Row], *, side: str | None = None) -> tuple[inspect.Parameter, ...]:
    return tuple(_flag_of(row, side) for row in rows)


def _flag_of(row: Row, side: str | None) -> inspect.Parameter:
    name = f"{side}_{row.name}" if side else row.name
    declared = as_typer(row, side)
    if row.kind == "flag":
        return parameter(name, Annotated[bool, declared], False)
    taken = Literal[row.choices] if row.kind == "choice" else _TYPES[row.kind]
    return parameter(name, Annotated[taken | None, declared], None)


# Options that the table does not hold, because they are of one pair, one report or one command.

Document = Annotated[
    str | None,
    typer.Argument(
        metavar="[DOCUMENT]",
        help="One JSON object with prompt, responseA, responseB and criteria: a file, or - for "
        "standard input.",
        show_default=False,
    ),
]
Prompt = Annotated[
    str | None,
    typer.Option(
        "--prompt", "-p", help="The prompt both responses answer: text, or @FILE (@- for stdin)."
    ),
]
ResponseA = Annotated[
    str | None,
    typer.Option(
        "--a", help="The first response: text, or @FILE (@@ for text that starts with @)."
    ),
]
ResponseB = Annotated[
    str | None,
    typer.Option("--b", help="The second response: text, or @FILE."),
]
Context = Annotated[
    str | None,
    typer.Option("--context", help="Extra material for the judge: text, or @FILE."),
]
Reference = Annotated[
    str | None,
    typer.Option("--reference", help="A known good answer to compare with: text, or @FILE."),
]
Criteria = Annotated[
    list[str] | None,
    typer.Option(
        "--criterion",
        "-c",
        help='What to judge by, most important first: "name", '
        '"name: description", or "name*2: description" with a weight. Repeatable.',
    ),
]
Identifier = Annotated[
    str | None,
    typer.Option("--id", help="The pair's id, returned in the metadata."),
]
NoTie = Annotated[bool, typer.Option("--no-tie", help="Do not allow ties.")]
NoSwap = Annotated[
    bool, typer.Option("--no-swap", help="Judge in one order only; position may then decide.")
]
Orders = Annotated[
    Literal["both", "random"],
    typer.Option(
        "--orders",
        help="both: judge each pair in both orders; random: in one random order (from --seed "
        "and the pair), at about half the calls. Claims at 0.5 and above stay valid; "
        "those below need --both-orders.",
    ),
]
BothOrders = Annotated[
    float | None,
    typer.Option(
        "--both-orders",
        min=0,
        max=1,
        metavar="SHARE",
        help="With --orders random: the share of pairs judged in both orders, to measure "
        "position bias. Default: 0.1.",
    ),
]
JudgeName = Annotated[str | None, as_typer(JudgingOptions.row("judge"))]
Calibrations = Annotated[
    list[str] | None,
    typer.Option(
        "--calibration",
        metavar="NAME",
        help="Report confidence as the probability that the verdict is right, as learned by "
        "evenhand calibrate: a name, or a file.json. Repeatable, one per judge.",
    ),
]
ForceCalibration = Annotated[
    bool,
    typer.Option(
        "--force-calibration",
        help="Use the calibration with a judge, prompt, language or mode it was not learned on.",
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON to standard output.")]


# The options of commands about runs.

FileA = Annotated[
    str | None,
    typer.Option("--a", metavar="FILE", help="A file of model outputs: response A of each pair."),
]
FileB = Annotated[
    str | None,
    typer.Option("--b", metavar="FILE", help="A file of model outputs: response B of each pair."),
]
ColumnMap = Annotated[
    list[str] | None,
    typer.Option(
        "--map",
        metavar="FIELD=COLUMN",
        help="Map a field to a column, e.g. prompt=question. Repeatable.",
    ),
]
Values = Annotated[
    list[str] | None,
    typer.Option(
        "--value",
        metavar="SPELLING=VERDICT",
        help="Map a spelling to A, B, TIE or skipped, e.g. 0=TIE. Repeatable.",
    ),
]
OnBadRows = Annotated[
    Literal["stop", "skip"],
    typer.Option(
        "--bad-rows", help="stop: an invalid row is an error; skip: it is skipped and counted."
    ),
]
RunName = Annotated[
    str | None,
    typer.Option("--name", help="The run's name. Default: derived from the files and options."),
]
StoreAddress = Annotated[str | None, as_typer(RunningOptions.row("store"))]
JudgeNames = Annotated[
    list[str] | None,
    typer.Option(
        "--judge",
        "-j",
        help="The judge, as in compare. Repeatable: each judges every pair. Default: "
        "EVENHAND_JUDGE.",
    ),
]
PriceOption = Annotated[
    str | None,
    typer.Option(
        "--price",
        metavar="INPUT/OUTPUT",
        help="The judge's price in dollars per million tokens in/out, if it is not on a "
        "price list: e.g. 0.15/0.60; --batch halves it.",
    ),
]
ConfirmAbove = Annotated[
    float,
    typer.Option(
        "--confirm-above",
        min=0,
        help=("Ask before a run that may cost more than this, in dollars."),
    ),
]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Skip confirmation.")]
RunArgument = Annotated[str, typer.Argument(metavar="RUN", help="The run's name.")]
LatestOrNamed = Annotated[
    str | None,
    typer.Argument(metavar="[RUN]", help="The run's name. Default: the latest run."),
]

Level = Annotated[
    float, typer.Option("--level", help=("The confidence level of the intervals, between 0 and 1."))
]
DryRun = Annotated[
    bool,
    typer.Option(
        "--dry-run",
        help="Show the data, the first prompt as sent, calls, tokens, cost and time, without "
        "asking the judge.",
    ),
]
Overwrite = Annotated[bool, typer.Option("--force", help="Overwrite an existing file.")]


# Options that belong together, each group one value: a command takes it whole and passes it on.


def grouped(command: Callable[..., None]) -> Callable[..., None]:
    """The command as Typer takes it: with the options of its groups in their groups' place.

    Its parameters are keywords, so that a group may stand after an option with a default. Groups
    hold options and further groups; an option that two of them hold is declared by the first.
    """
    return _spread(command, None)


def grouped_showing(*common: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """The same for a command that judges many pairs: --help shows these and what most people need
    for judging, --help-all shows all of them."""
    return lambda command: _spread(command, JUDGING_SHOWN.union(common))


# In --help of every command that judges many pairs.
JUDGING_SHOWN = frozenset(
    row.name
    for rows in (JudgingOptions.rows(), RunningOptions.rows())
    for row in rows
    if row.option.common
).union(("name", "yes", "as_json"))


def _spread(command: Callable[..., None], common: frozenset[str] | None) -> Callable[..., None]:
    taken = inspect.signature(command, eval_str=True)
    groups = {each.name: each.annotation for each in taken.parameters.values() if _is_group(each)}
    spread: dict[str, inspect.Parameter] = {}
    for own in taken.parameters.values():
        group = groups.get(own.name)
        for each in [own] if group is None else _options_of(group):
            spread.setdefault(each.name, each)
    taken_by_typer = with_help_all(spread.values(), common)

    @functools.wraps(command)
    def called(**given: Any) -> None:
        # A group may have the name of one of its options.
        made = {name: _group_of(group, given) for name, group in groups.items()}
        command(**{name: given.get(name) for name in taken.parameters} | made)

    return with_parameters(called, command.__doc__ or "", taken_by_typer)


def with_help_all(
    parameters: Iterable[inspect.Parameter], common: frozenset[str] | None = None
) -> tuple[inspect.Parameter, ...]:
    """--help shows what is common, by these names or by their rows; --help-all all of them."""
    shown = [
        each if common is None else _hidden(each, each.name not in common) for each in parameters
    ]
    rare = sum(bool(_declared(each, "hidden")) for each in shown)
    more = [parameter("help_all", _help_all(rare), False)] if rare else []
    return (*shown, *more)


def with_parameters(
    command: Callable[..., None], about: str, parameters: tuple[inspect.Parameter, ...]
) -> Callable[..., None]:
    """The command as Typer takes it, with these parameters and this help."""
    vars(command)["__signature__"] = inspect.Signature(parameters)
    command.__annotations__ = {each.name: each.annotation for each in parameters}
    command.__doc__ = about
    return command


def _hidden(own: inspect.Parameter, hidden: bool) -> inspect.Parameter:
    for note in getattr(own.annotation, "__metadata__", ()):
        if isinstance(note, OptionInfo):
            option = copy.copy(note)
            option.hidden = hidden
            return own.replace(annotation=Annotated[get_args(own.annotation)[0], option])
    return own


def _declared(parameter: inspect.Parameter, what: str) -> Any:
    """The option's declaration; None if it is not an option."""
    notes = getattr(parameter.annotation, "__metadata__", ())
    return next((getattr(each, what, None) for each in notes), None)


def _help_all(more: int) -> Any:
    def show(context: typer.Context, wanted: bool) -> None:
        if wanted:
            for each in context.command.params:
                vars(each)["hidden"] = False
            sys.stdout.write(context.get_help() + "\n")
            raise typer.Exit

    return Annotated[
        bool,
        typer.Option(
            "--help-all",
            is_eager=True,
            callback=show,
            help=f"Show this message with {more} more option{'' if more == 1 else 's'} and exit.",
        ),
    ]


def _is_group(parameter: inspect.Parameter) -> bool:
    group = parameter.annotation
    return isinstance(group, type) and (is_dataclass(group) or issubclass(group, Given))


def _fields_of(group: type[Any]) -> Sequence[inspect.Parameter]:
    if issubclass(group, Given):
        return group.flags
    hints = get_type_hints(group, include_extras=True)
    return [parameter(each.name, hints[each.name], each.default) for each in fields(group)]


def _options_of(group: type[Any]) -> Iterator[inspect.Parameter]:
    for each in _fields_of(group):
        if _is_group(each):
            yield from _options_of(each.annotation)
        else:
            yield each


def _group_of(group: type[T], given: Mapping[str, Any]) -> T:
    return group(
        **{
            each.name: _group_of(each.annotation, given) if _is_group(each) else given[each.name]
            for each in _fields_of(group)
        }
    )


@dataclass(frozen=True, slots=True)
class PairTexts:
    """One pair: as a document, or text by text."""

    document: Document = None
    prompt: Prompt = None
    a: ResponseA = None
    b: ResponseB = None
    criteria: Criteria = None
    context: Context = None
    reference: Reference = None
    identifier: Identifier = None
    no_tie: NoTie = False
    no_swap: NoSwap = False


@dataclass(frozen=True, slots=True)
class PairRules:
    """What every pair of a run is judged by."""

    criteria: Criteria = None
    no_tie: NoTie = False
    no_swap: NoSwap = False


@dataclass(frozen=True, slots=True)
class OrderChoices:
    """In which orders each pair is asked."""

    orders: Orders = "both"
    both_orders: BothOrders = None

    def draw(self, *, seed: int | None = None, no_swap: bool = False) -> OrderDraw | None:
        """None where no order is drawn."""
        from evenhand.data.orders import BOTH_ORDERS_SHARE, OrderDraw

        if self.orders == "both":
            if self.both_orders is not None:
                raise InputError(
                    Message("command.belongs_to", option="--both-orders", other="--orders random")
                )
            return None
        if no_swap:
            raise InputError(Message("command.random_or_fixed_order"))
        share = BOTH_ORDERS_SHARE if self.both_orders is None else self.both_orders
        return OrderDraw(seed or 0, share)


def flags_given(context: typer.Context, names: Iterable[str]) -> list[str]:
    """The flags of these options that the command line has, whatever it says of them."""
    flags = {each.name: each.opts[0] for each in context.command.params}
    return [
        flags[name]
        for name in names
        if getattr(context.get_parameter_source(name), "name", "") == "COMMANDLINE"
    ]


class Given:
    """Options of the table as a command line gave them, by their names in it."""

    flags: ClassVar[tuple[inspect.Parameter, ...]] = ()

    def __init__(self, **values: Any) -> None:
        self.values = {name: value for name, value in values.items() if _is_given(value)}

    @classmethod
    def among(cls, given: Mapping[str, Any]) -> Self:
        """Of a command that takes others too."""
        return cls(**{each.name: given[each.name] for each in cls.flags})

    def given(self) -> Iterator[tuple[str, str]]:
        """The name and the flag of each that is not at its default."""
        for each in self.flags:
            if each.name in self.values and self.values[each.name] != each.default:
                # As typer takes it, the first flag stands where a default would.
                yield each.name, _declared(each, "default")

    def checked(
        self, options: type[Options], *, side: str | None = None, **chosen: Any
    ) -> dict[str, Any]:
        """As the table takes them; what the command chose itself wins."""
        before = f"{side}_" if side else ""
        values = {**self.values, **chosen}
        return {
            row.name: row.check(row.flag_of(side), values[before + row.name])
            for row in options.rows()
            if values.get(before + row.name) is not None
        }


def _is_given(value: Any) -> bool:
    """A flag that is not given is False, and a repeatable option is empty."""
    return value is not None and value is not False and value != [] and value != ()


class JudgeChoices(Given):
    """How a judge is asked and its answers are read; who it is, each command asks by itself."""

    flags = flags_of(row for row in JudgingOptions.rows() if row.name != "judge")

    def config(self, judge: str | None = None, **chosen: Any) -> JudgeConfig:
        """As the command says it, and else as the settings do."""
        from evenhand.judging.config import JudgeConfig, read_addresses
        from evenhand.settings import load_settings

        values = self.checked(JudgingOptions, **chosen)
        if "base_url" in values:
            values["base_url"] = read_addresses(values["base_url"])
        resolved = JudgeConfig.resolve(load_settings(), JudgeConfig(judge=judge, **values))
        if "prepare_with" in values and not resolved.prepare:
            raise InputError(
                Message("command.belongs_to", option="--prepare-with", other="--prepare")
            )
        return resolved


class PromptChoices(JudgeChoices):
    """What a prompt depends on."""

    flags = flags_of(map(JudgingOptions.row, ("locale", "mode", "template", "prepare")))


class ServerChoices(JudgeChoices):
    """Where a judge's server is."""

    flags = flags_of([JudgingOptions.row("base_url")])

    @property
    def base_url(self) -> list[str] | None:
        return self.values.get("base_url")


class CheckedChoices(ServerChoices):
    """Where it is, and how long it may take."""

    flags = flags_of(map(JudgingOptions.row, ("base_url", "timeout_s")))


def first_given(given: T | None, set_up: T | None, default: T) -> T:
    """What the command says, else the config file, else the default."""
    if given is not None:
        return given
    return default if set_up is None else set_up


def open_judge(config: JudgeConfig) -> Judge:
    """The one that the command or the settings name."""
    if config.judge is None:
        raise InputError(Message("command.no_judge"))
    return config.open_judge()


class RunLimits(Given):
    """Where a run is kept, how fast it goes, what it may cost and what it asks again."""

    flags = (
        *flags_of(RunningOptions.rows()),
        parameter("price", PriceOption, None),
        parameter("confirm_above", ConfirmAbove, 5.0),
        parameter("yes", Yes, False),
    )

    @property
    def store(self) -> str | None:
        store = self.values.get("store")
        return None if store is None else str(store)

    @property
    def asks_above(self) -> float | None:
        """From how many dollars on the user is asked; None: never."""
        return None if "yes" in self.values else self.values.get("confirm_above", 0.0)

    def options(self, name: str | None, **more: Any) -> RunOptions:
        """`more` is of the one command."""
        from evenhand.cli.inputs import read_price
        from evenhand.runs import RunOptions
        from evenhand.settings import load_settings

        given = RunOptions(
            name=name,
            price=read_price(self.values.get("price")),
            caps_unpriced=True,
            **self.checked(RunningOptions),
            **more,
        )
        return given.over(load_settings())
