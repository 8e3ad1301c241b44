"""The JSON Schemas of the tools: objects at the top, and inputs without references."""

from __future__ import annotations

from functools import cache
from typing import Any

from pydantic import TypeAdapter

from evenhand import tools
from evenhand.contract import Failure
from evenhand.contract.model import Model

Schema = dict[str, Any]


@cache
def input_schema(model: type[Model]) -> Schema:
    """Inlined, since not every client follows references."""
    return tools.inlined_schema(model.model_json_schema(by_alias=True))


@cache
def output_schema(model: type[Model]) -> Schema:
    """What the tool gives, or the contract's failure."""
    adapter: TypeAdapter[Model] = TypeAdapter(model | Failure)  # type: ignore[arg-type]
    return {"type": "object", **adapter.json_schema(by_alias=True, mode="serialization")}
