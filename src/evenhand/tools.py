"""`pairwiseCompare` for agents: one definition, in the shape that each framework takes.

tools=[evenhand.tools.openai_tool()]                  # the definition, for the model
result = await evenhand.tools.run_tool(arguments, judge="openai:gpt-4o")   # the call
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from copy import deepcopy
from functools import cache
from typing import TYPE_CHECKING, Any

from pydantic import TypeAdapter

from evenhand import api
from evenhand.background import sync_of
from evenhand.contract import Failure, Pair, Verdict, read_pair
from evenhand.contract.json_text import RepeatedKey, refuse_repeated_key
from evenhand.errors import EvenhandError, InputError, MissingExtra
from evenhand.judges.protocol import Judge
from evenhand.judging.config import JudgeConfig
from evenhand.judging.explanation import failure_of

if TYPE_CHECKING:
    from agents import FunctionTool
    from langchain_core.tools import StructuredTool
    from pydantic_ai import Tool

NAME = "pairwiseCompare"
DESCRIPTION = (
    "Decide which of two responses to the same prompt is better by the given criteria. "
    "An impartial judge model compares them in both orders, so the order in which they are given "
    "does not matter. Returns the winner (A, B or TIE), a confidence or null, the reasons for "
    "each criterion, and metadata.outcome: win, tie, inconsistent (the verdict flipped with "
    "the order: treat it as undecided) or, with success false, what went wrong."
)


def input_schema() -> dict[str, Any]:
    """The JSON Schema of a call's arguments, self-contained (no $ref)."""
    # A copy: frameworks modify schemas.
    return deepcopy(_input_schema())


@cache
def _input_schema() -> dict[str, Any]:
    return inlined_schema(Pair.model_json_schema(by_alias=True))


def output_schema() -> dict[str, Any]:
    """The JSON Schema of a result: a verdict, or a failure."""
    return deepcopy(_output_schema())


@cache
def _output_schema() -> dict[str, Any]:
    adapter: TypeAdapter[Verdict | Failure] = TypeAdapter(Verdict | Failure)
    schema = slim_schema(adapter.json_schema(by_alias=True, mode="serialization"))
    # An object at the top, as tool protocols require, although it is one of two.
    return {"type": "object", **schema}


def inlined_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """For frameworks that do not resolve references."""
    plain = {key: value for key, value in schema.items() if key != "$defs"}
    inlined: dict[str, Any] = _inlined(plain, schema.get("$defs", {}))
    return inlined


def _inlined(node: Any, definitions: Mapping[str, Any]) -> Any:
    if isinstance(node, list):
        return [_inlined(item, definitions) for item in node]
    if not isinstance(node, dict):
        return node
    if "$ref" in node:
        target = definitions[node["$ref"].rsplit("/", 1)[-1]]
        siblings = {key: value for key, value in node.items() if key != "$ref"}
        return _inlined({**target, **siblings}, definitions)
    # Titles repeat the field's name; dropped, unless a field is itself called title.
    return {
        key: _inlined(value, definitions)
        for key, value in node.items()
        if not (key == "title" and isinstance(value, str))
    }


def slim_schema(schema: Mapping[str, Any], *, described: bool = True) -> dict[str, Any]:
    """An equivalent shorter schema for results, whose length models pay for.

    Titles repeat the fields' names, nobody fills in a result's defaults, and an enum needs no type.
    """
    idle = {"title", "default"} if described else {"title", "default", "description"}
    slim: dict[str, Any] = {}
    for key, value in schema.items():
        if key in ("properties", "$defs"):
            slim[key] = {
                name: slim_schema(each, described=described) for name, each in value.items()
            }
        elif key == "anyOf":
            slim |= _slim_choice([slim_schema(each, described=described) for each in value])
        elif key not in idle:
            is_schema = isinstance(value, dict)
            slim[key] = slim_schema(value, described=described) if is_schema else value
    if "enum" in slim or "const" in slim:
        slim.pop("type", None)
    return slim


def _slim_choice(choices: list[dict[str, Any]]) -> dict[str, Any]:
    """Something or null, as one schema if possible."""
    one, *others = choices
    if others == [{"type": "null"}] and "enum" in one:
        return {**one, "enum": [*one["enum"], None]}
    if others == [{"type": "null"}] and isinstance(one.get("type"), str):
        return {**one, "type": [one["type"], "null"]}
    return {"anyOf": choices}


def openai_tool() -> dict[str, Any]:
    return {
        "type": "function",
        "function": {"name": NAME, "description": DESCRIPTION, "parameters": input_schema()},
    }


def anthropic_tool() -> dict[str, Any]:
    return {"name": NAME, "description": DESCRIPTION, "input_schema": input_schema()}


def pydantic_ai_tool(
    judge: str | Judge | None = None, config: JudgeConfig | None = None
) -> Tool[Any]:
    try:
        from pydantic_ai import Tool
    except ImportError:
        raise MissingExtra("pydantic-ai", "tools") from None

    async def pairwise_compare(**arguments: Any) -> dict[str, Any]:
        return await run_tool(arguments, judge, config)

    return Tool.from_schema(
        pairwise_compare, name=NAME, description=DESCRIPTION, json_schema=input_schema()
    )


def openai_agents_tool(
    judge: str | Judge | None = None, config: JudgeConfig | None = None
) -> FunctionTool:
    try:
        from agents import FunctionTool
    except ImportError:
        raise MissingExtra("openai-agents", "tools") from None

    async def pairwise_compare(context: Any, arguments: str) -> str:
        # As JSON: the SDK would send the repr of anything but a string.
        return json.dumps(await run_tool(arguments, judge, config), ensure_ascii=False)

    return FunctionTool(
        name=NAME,
        description=DESCRIPTION,
        params_json_schema=input_schema(),
        on_invoke_tool=pairwise_compare,
        # Strict mode would make every field required.
        strict_json_schema=False,
    )


def langchain_tool(
    judge: str | Judge | None = None, config: JudgeConfig | None = None
) -> StructuredTool:
    try:
        from langchain_core.tools import StructuredTool
    except ImportError:
        raise MissingExtra("langchain-core", "tools") from None

    async def pairwise_compare(**arguments: Any) -> dict[str, Any]:
        return await run_tool(arguments, judge, config)

    def pairwise_compare_sync(**arguments: Any) -> dict[str, Any]:
        return run_tool_sync(arguments, judge, config)

    return StructuredTool.from_function(
        func=pairwise_compare_sync,
        coroutine=pairwise_compare,
        name=NAME,
        description=DESCRIPTION,
        args_schema=input_schema(),
        infer_schema=False,
    )


async def run_tool(
    arguments: str | bytes | Mapping[str, Any],
    judge: str | Judge | None = None,
    config: JudgeConfig | None = None,
) -> dict[str, Any]:
    """Run a call from its JSON arguments to the contract's JSON result, failures included."""
    try:
        verdict = await api.compare(_read_arguments(arguments), judge, config)
    except EvenhandError as error:
        return failure_of(error).model_dump(mode="json")
    return verdict.model_dump(mode="json")


run_tool_sync = sync_of(run_tool)


def _read_arguments(arguments: str | bytes | Mapping[str, Any]) -> Pair:
    if isinstance(arguments, (str, bytes)):
        try:
            text = arguments.encode() if isinstance(arguments, str) else arguments
            arguments = json.loads(text)
            refuse_repeated_key(text, arguments)
        except RepeatedKey as error:
            raise InputError.of("tools.arguments_ambiguous", error=error) from None
        except (ValueError, RecursionError):
            raise InputError.of("tools.arguments_not_json") from None
    return read_pair(arguments)  # type: ignore[arg-type]  # what is not an object is refused there
