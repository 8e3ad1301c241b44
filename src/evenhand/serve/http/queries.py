"""Query parameters: read into a value by the same rules as a body, and described for OpenAPI."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, TypeVar

from pydantic import ValidationError
from starlette.datastructures import QueryParams

from evenhand.contract.model import Model
from evenhand.errors import InputError
from evenhand.serve.problems import complaint

Q = TypeVar("Q", bound=Model)


_MOST_PARAMETERS = 256


class NoQuery(Model):
    """An endpoint that takes none."""


def read_query(given: QueryParams, model: type[Q]) -> Q:
    """An InputError names the parameter that is unknown, given twice or not as it should be."""
    if not given:
        return _validated({}, model)
    if len(given.multi_items()) > _MOST_PARAMETERS:
        raise InputError(
            f"the query has {len(given.multi_items())} parameters; give {_MOST_PARAMETERS} at most"
        )
    kinds, known = _kinds(model), _spellings(model)
    values: dict[str, Any] = {}
    for spelling in given:
        name = known.get(spelling)
        if name is None:
            raise InputError(_unknown(spelling, kinds))
        found = given.getlist(spelling)
        if name in values:
            raise InputError(f"the query parameter {name} is given in two spellings; keep one")
        if kinds[name] == "single" and len(found) > 1:
            raise InputError(f"the query parameter {name} is given {len(found)} times; keep one")
        values[name] = (
            found[0]
            if kinds[name] == "single"
            else found
            if kinds[name] == "list"
            else dict(_entry(name, entry) for entry in found)
        )
    return _validated(values, model)


def _validated(values: Mapping[str, Any], model: type[Q]) -> Q:
    try:
        return model.model_validate(values)
    except ValidationError as error:
        told = complaint(error.errors(include_url=False), known=_names(model))
        raise InputError(f"the query parameter {told}") from None


def _entry(name: str, given: str) -> tuple[str, str]:
    field, equals, column = given.partition("=")
    if not equals:
        raise InputError(
            f"the query parameter {name} is {given[:40]!r}; it takes FIELD=COLUMN, "
            f"e.g. {name}=prompt%3Dquestion"
        )
    return field.strip(), column.strip()


def _unknown(spelling: str, known: Mapping[str, str]) -> str:
    shown = spelling if len(spelling) <= 40 else spelling[:37] + "…"
    takes = f"it takes {', '.join(known)}" if known else "it takes none"
    return f"the query parameter {shown!r} is not known here; {takes}"


@cache
def _spellings(model: type[Model]) -> dict[str, str]:
    """Either case, as in bodies; to the name in JSON."""
    spellings = {}
    for name, field in model.model_fields.items():
        spellings[name] = spellings[str(field.alias)] = str(field.alias)
    return spellings


@cache
def _kinds(model: type[Model]) -> dict[str, str]:
    kinds = {"array": "list", "object": "map"}
    properties = model.model_json_schema(by_alias=True).get("properties", {})
    return {
        name: kinds.get(schema.get("type", ""), "single") for name, schema in properties.items()
    }


def _names(model: type[Model]) -> list[str]:
    return list(_kinds(model))


def parameters(model: type[Model]) -> list[dict[str, Any]]:
    """The same for OpenAPI's document."""
    schema = model.model_json_schema(by_alias=True)
    required, definitions = schema.get("required", ()), schema.get("$defs", {})
    return [
        {
            "name": name,
            "in": "query",
            "required": name in required,
            "description": found.get("description", _NAMES.get(name, name)),
            "schema": _plain(found, definitions),
        }
        for name, found in schema.get("properties", {}).items()
    ]


_NAMES = {
    "level": "Of the intervals",
    "prior": "Of the ranking's fit",
    "seed": "Of what is drawn at random",
}


def _plain(schema: Mapping[str, Any], definitions: Mapping[str, Any]) -> dict[str, Any]:
    """A schema of what stands in a query: no null, no objects, no references."""
    if "$ref" in schema:
        return _plain(definitions[schema["$ref"].rsplit("/", 1)[-1]], definitions)
    if "anyOf" in schema:
        first = next(option for option in schema["anyOf"] if option.get("type") != "null")
        return _plain(first, definitions)
    kept = {key: value for key, value in schema.items() if key not in ("title", "description")}
    if kept.get("default", 0) is None:
        del kept["default"]
    if kept.get("type") == "array":
        return {**kept, "items": _plain(kept["items"], definitions)}
    if kept.get("type") == "object":
        return {"type": "array", "items": {"type": "string", "pattern": "^[^=]+=.*$"}}
    return kept
