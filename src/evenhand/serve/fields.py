"""Options of the table as fields of clients' requests: names, types, limits and descriptions of
HTTP and MCP derive from the rows that clients may set.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache
from types import GenericAlias
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar

from pydantic import BeforeValidator, Field, create_model

from evenhand.contract.model import Model
from evenhand.contract.pair import Text
from evenhand.options import JudgingOptions, Kind, Options, Row

if TYPE_CHECKING:
    from evenhand.analyses.registry import AnalysisEntry

M = TypeVar("M", bound=Model)
SIDES = ("a", "b")
_TYPES: dict[Kind, Any] = {
    "text": Text,
    "texts": GenericAlias(tuple, (Text, ...)),
    "flag": bool,
    "whole": int,
    "number": float,
    "duration": float,
}


def client_rows(options: type[Options]) -> tuple[Row, ...]:
    return tuple(row for row in options.rows() if row.option.clients)


def taking(*options: type[Options], sides: bool = False) -> Callable[[type[M]], type[M]]:
    """The class with a field for each option that clients may set; of two sides, for each."""
    suffixes = [f"_{side}" for side in SIDES] if sides else [""]

    def extend(own: type[M]) -> type[M]:
        fields: dict[str, Any] = {
            f"{row.name}{suffix}": _field(row, offered=each is JudgingOptions)
            for each in options
            for row in client_rows(each)
            for suffix in suffixes
        }
        name, about = own.__name__, own.__doc__
        made: type[M] = create_model(
            name, __base__=own, __module__=own.__module__, __doc__=about, **fields
        )
        return made

    return extend


MOST_RUNS = 100  # in one analysis
Names = Annotated[
    tuple[Text, ...],
    Field(min_length=1, max_length=MOST_RUNS, description="Ids or names of runs"),
]
_MoreRuns = Annotated[
    tuple[Text, ...],
    Field(max_length=MOST_RUNS, description="Ids or names of more runs over the same pairs"),
]
_RUN = Annotated[Text, Field(description="A run's id or name")]
_AGAINST = Annotated[Text, Field(description="The earlier run's id or name")]


@cache
def request_for(analysis: AnalysisEntry, *, addressed: bool = True) -> type[Model]:
    """A client's request for a registered analysis: the runs that its address does not name, all of
    them where it has none, and its options."""
    runs: dict[str, Any] = {}
    if analysis.takes in ("runs", "runs or battles"):
        named = addressed and analysis.addressed
        runs["runs"] = (_MoreRuns, ()) if named else (Names, ...)
    elif not addressed or not analysis.addressed:
        runs["run"] = (_RUN, ...)
    if analysis.takes == "two runs":
        runs["against"] = (_AGAINST, ...)
    name = f"{analysis.name.title()}Query"
    own = create_model(name, __base__=Model, __doc__=analysis.summary, **runs)
    return taking(analysis.options)(own)


def runs_of(request: Any, analysis: AnalysisEntry, addressed: str | None) -> tuple[str, ...]:
    """The run that it is of, then the others."""
    if analysis.takes in ("runs", "runs or battles"):
        return (*([addressed] if addressed else []), *request.runs)
    first = request.run if addressed is None else addressed
    return (first, request.against) if analysis.takes == "two runs" else (first,)


def options_of(
    request: Model, options: type[Options], *, side: str | None = None
) -> dict[str, Any]:
    """The options that the request sets."""
    values = {
        row.name: getattr(request, f"{row.name}_{side}" if side else row.name)
        for row in client_rows(options)
    }
    return {
        row.name: values[row.name]
        for row in client_rows(options)
        if values[row.name] != row.default
    }


def _field(row: Row, *, offered: bool) -> tuple[Any, Any]:
    option = row.option
    limits: dict[str, Any] = {}
    if row.kind in ("whole", "number", "duration"):
        limits = {"ge": option.least, "gt": option.above, "le": option.most}
    if row.kind in ("number", "duration"):
        limits["allow_inf_nan"] = False
    # What is not sent is as the operator offers the judge.
    help_text = f"{option.help} Default: as offered." if offered else row.help
    declared = _type_of(row)
    if row.default is None:
        declared |= None
    if row.kind == "choices":
        declared = Annotated[declared, BeforeValidator(_split)]
    return declared, Field(default=row.default, description=help_text, **limits)


def _type_of(row: Row) -> Any:
    if row.kind == "choice":
        return Literal[row.choices]
    if row.kind == "choices":
        return GenericAlias(tuple, (Literal[row.choices], ...))
    return _TYPES[row.kind]


def _split(value: Any) -> Any:
    """A query has them with commas, or repeated; an empty one is how a form says nothing."""
    given = [value] if isinstance(value, str) else value
    if not isinstance(given, Iterable) or not all(isinstance(each, str) for each in given):
        return value
    named = tuple(part.strip() for each in given for part in each.split(","))
    if named in ((), ("",)):
        return None
    return () if named == ("none",) else named
