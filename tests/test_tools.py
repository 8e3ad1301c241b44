from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from evenhand import tools
from evenhand.errors import EvenhandError
from evenhand.judges.protocol import JudgeCall
from evenhand.judges.registry import JudgeOptions, open_judge
from scripted import ScriptedJudge, answer_json
from servers import StartServer, error_reply

pytestmark = pytest.mark.usefixtures("unconfigured")

CAMEL = {
    "prompt": "What is 7 times 8?",
    "responseA": "54",
    "responseB": "56",
    "criteria": ["accuracy", {"name": "tone", "description": "how it sounds"}],
    "allowTie": True,
}
SNAKE = {
    "original_prompt": "What is 7 times 8?",
    "response_a": "54",
    "response_b": "56",
    "criteria": ["accuracy", {"name": "tone", "description": "how it sounds"}],
    "allow_tie": True,
}


def multiplies(call: JudgeCall) -> str:
    won = "B" if call.order == "original" else "A"
    return answer_json(won, confidence=0.9, criteria=[("accuracy", won), ("tone", "TIE")])


def judge() -> ScriptedJudge:
    return ScriptedJudge(multiplies)


def checked(result: Any) -> Any:
    Draft202012Validator(tools.output_schema()).validate(result)
    json.dumps(result)
    return result


@pytest.mark.parametrize(
    "arguments",
    [
        CAMEL,
        SNAKE,
        json.dumps(CAMEL),
        json.dumps(SNAKE, ensure_ascii=False),
        json.dumps(CAMEL).encode(),
        b"\xef\xbb\xbf" + json.dumps(CAMEL).encode(),
        {"prompt": "p", "responseA": "a", "responseB": "b", "criteria": ("accuracy", "tone")},
    ],
)
async def test_call_is_run_from_its_arguments_in_any_form(arguments: Any) -> None:
    result = checked(await tools.run_tool(arguments, judge()))
    assert result["success"] is True
    assert result["winner"] == "B"
    assert [entry["criterion"] for entry in result["comparison"]] == ["accuracy", "tone"]
    assert result["positionConsistency"]["consistent"] is True


async def test_one_order_only_still_fits_the_schema() -> None:
    result = checked(await tools.run_tool({**CAMEL, "swapPositions": False}, judge()))
    assert "positionConsistency" not in result


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ("", "not JSON"),
        ("{", "not JSON"),
        ("{'prompt': 1}", "not JSON"),
        (b"\xff", "not JSON"),
        ("[" * 100_000, "not JSON"),
        ("[]", "a pair is a JSON object, not a list"),
        ("null", "a pair is a JSON object, not null"),
        ('"text"', "a pair is a JSON object"),
        ([CAMEL], "a pair is a JSON object, not a list"),
        (None, "a pair is a JSON object, not null"),
        ({}, "prompt is missing"),
        ({**CAMEL, "winner": "A"}, "winner is not a known field"),
        ({**CAMEL, "response_a": "again"}, "response_a is also given as responseA; keep one"),
        ({**CAMEL, "criteria": "accuracy"}, "criteria must be a list"),
        ({**CAMEL, "criteria": []}, "criteria is empty"),
        ({**CAMEL, "allowTie": "yes"}, "allowTie must be true or false"),
    ],
)
async def test_call_that_is_no_pair_is_a_failure_and_not_an_exception(
    arguments: Any, complaint: str
) -> None:
    asked = judge()
    result = checked(await tools.run_tool(arguments, asked))
    assert result["success"] is False
    assert result["error"]["kind"] == "input"
    assert complaint in result["error"]["message"]
    assert asked.calls == []


async def test_judge_that_fails_is_a_failure(start_server: StartServer) -> None:
    server = start_server(lambda request: error_reply(401, "no such key"))
    opened = open_judge("openai:m", JudgeOptions(base_url=server.url))
    result = checked(await tools.run_tool(CAMEL, opened))
    await opened.close()
    assert result["error"]["kind"] == "judge_authentication"
    assert result["metadata"]["judge"] == "openai:m"


async def test_answer_that_cannot_be_read_is_a_failure_with_its_passes() -> None:
    result = checked(await tools.run_tool(CAMEL, ScriptedJudge(lambda call: "Who knows.")))
    assert result["error"]["kind"] == "invalid"
    assert len(result["metadata"]["passes"]) == 2


async def test_without_a_judge_the_failure_names_the_remedy() -> None:
    result = checked(await tools.run_tool(CAMEL))
    assert "EVENHAND_JUDGE" in result["error"]["message"]


def test_call_can_be_run_from_sync_code() -> None:
    assert checked(tools.run_tool_sync(CAMEL, judge()))["winner"] == "B"


@pytest.mark.parametrize("schema", [tools.input_schema(), tools.output_schema()])
def test_schema_is_valid_json_schema(schema: dict[str, Any]) -> None:
    Draft202012Validator.check_schema(schema)
    assert schema["type"] == "object"


def test_input_schema_is_self_contained_and_closed() -> None:
    schema = tools.input_schema()
    text = json.dumps(schema)
    assert "$ref" not in text
    assert "$defs" not in text
    assert schema["additionalProperties"] is False
    assert schema["required"] == ["prompt", "responseA", "responseB", "criteria"]
    assert all(field.get("description") for field in schema["properties"].values())


def test_input_schema_takes_what_the_contract_takes() -> None:
    validator = Draft202012Validator(tools.input_schema())
    validator.validate(CAMEL)
    assert not validator.is_valid({**CAMEL, "criteria": []})
    assert not validator.is_valid({**CAMEL, "winner": "A"})
    assert not validator.is_valid({**CAMEL, "criteria": [{"description": "without a name"}]})


def test_slim_schema_keeps_every_rule() -> None:
    whole = {
        "title": "T",
        "type": "object",
        "properties": {
            "title": {"title": "Title", "type": "string", "default": "x"},
            "default": {"anyOf": [{"type": "integer", "minimum": 1}, {"type": "null"}]},
            "word": {"anyOf": [{"enum": ["a"], "type": "string"}, {"type": "null"}]},
            "either": {"anyOf": [{"type": "integer"}, {"type": "string"}]},
            "list": {"type": "array", "items": {"title": "I", "type": "string"}},
        },
        "required": ["title"],
        "description": "Words",
    }
    slim = {
        "type": "object",
        "properties": {
            "title": {"type": "string"},
            "default": {"type": ["integer", "null"], "minimum": 1},
            "word": {"enum": ["a", None]},
            "either": {"anyOf": [{"type": "integer"}, {"type": "string"}]},
            "list": {"type": "array", "items": {"type": "string"}},
        },
        "required": ["title"],
        "description": "Words",
    }
    assert tools.slim_schema(whole) == slim
    del slim["description"]
    assert tools.slim_schema(whole, described=False) == slim


def test_output_schema_refuses_a_winner_in_a_failure() -> None:
    failure = checked(tools.run_tool_sync({}))
    assert not Draft202012Validator(tools.output_schema()).is_valid({**failure, "winner": "A"})


@pytest.mark.agents
def test_all_five_definitions_are_one() -> None:
    openai, anthropic = tools.openai_tool()["function"], tools.anthropic_tool()
    pydantic_ai, langchain = tools.pydantic_ai_tool(), tools.langchain_tool()
    definition = pydantic_ai.function_schema.json_schema
    agents = tools.openai_agents_tool()
    schemas = (openai["parameters"], anthropic["input_schema"], definition, langchain.args_schema)
    assert all(schema == tools.input_schema() for schema in schemas)
    assert agents.params_json_schema == tools.input_schema()
    names = {openai["name"], anthropic["name"], pydantic_ai.name, langchain.name, agents.name}
    assert names == {"pairwiseCompare"}
    descriptions = (openai, anthropic)
    assert {d["description"] for d in descriptions} == {
        pydantic_ai.description,
        langchain.description,
        agents.description,
    }


def test_definition_that_somebody_changes_is_whole_for_the_next() -> None:
    tools.openai_tool()["function"]["parameters"]["properties"].clear()
    tools.output_schema().clear()
    assert "responseA" in tools.anthropic_tool()["input_schema"]["properties"]
    assert tools.output_schema()["type"] == "object"


@pytest.mark.agents
async def test_agent_of_pydantic_ai_runs_the_tool() -> None:
    from pydantic_ai import Agent
    from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
    from pydantic_ai.models.function import AgentInfo, FunctionModel

    offered: list[Any] = []
    returned: list[Any] = []

    def model(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        offered.extend(info.function_tools)
        for part in messages[-1].parts:
            if part.part_kind == "tool-return":
                returned.append(part.content)
                return ModelResponse(parts=[TextPart("done")])
        return ModelResponse(parts=[ToolCallPart("pairwiseCompare", json.dumps(CAMEL))])

    agent = Agent(FunctionModel(model), tools=[tools.pydantic_ai_tool(judge())])
    assert (await agent.run("Which one?")).output == "done"
    assert offered[0].parameters_json_schema["required"] == tools.input_schema()["required"]
    assert checked(returned[0])["winner"] == "B"


@pytest.mark.agents
async def test_test_model_of_pydantic_ai_can_fill_the_schema() -> None:
    from pydantic_ai import Agent
    from pydantic_ai.models.test import TestModel

    asked = judge()
    agent = Agent(TestModel(), tools=[tools.pydantic_ai_tool(asked)])
    result = await agent.run("Which one?")
    # It fills both responses with the same text, which is a tie that no judge is asked about.
    verdict = json.loads(result.output)["pairwiseCompare"]
    assert (verdict["success"], verdict["winner"]) == (True, "TIE")
    assert asked.calls == []


@pytest.mark.agents
async def test_tool_of_openai_agents_answers_with_json() -> None:
    from agents.tool_context import ToolContext

    async def told(arguments: str) -> Any:
        context: ToolContext[None] = ToolContext(
            None, tool_name="pairwiseCompare", tool_call_id="call-1", tool_arguments=arguments
        )
        tool = tools.openai_agents_tool(judge())
        return checked(json.loads(await tool.on_invoke_tool(context, arguments)))

    assert (await told(json.dumps(CAMEL)))["winner"] == "B"
    assert (await told("{"))["error"]["kind"] == "input"


@pytest.mark.agents
async def test_langchain_tool_is_invoked_in_both_ways() -> None:
    tool = tools.langchain_tool(judge())
    assert checked(await tool.ainvoke(CAMEL))["winner"] == "B"
    assert checked(await asyncio.to_thread(tool.invoke, SNAKE))["winner"] == "B"
    assert checked(tool.invoke(CAMEL))["winner"] == "B"  # inside a running loop


@pytest.mark.agents
def test_langchain_tool_answers_a_models_call_with_a_message() -> None:
    call = {"name": "pairwiseCompare", "args": CAMEL, "id": "call-1", "type": "tool_call"}
    message = tools.langchain_tool(judge()).invoke(call)
    assert message.tool_call_id == "call-1"
    assert checked(json.loads(message.content))["winner"] == "B"


@pytest.mark.agents
def test_langchain_tool_gives_a_failure_back_to_the_model() -> None:
    result = checked(tools.langchain_tool(judge()).invoke({**CAMEL, "criteria": []}))
    assert result["error"]["kind"] == "input"


def test_errors_kind_is_stable_json() -> None:
    error = EvenhandError("x")
    assert (error.kind, error.retryable) == ("error", False)


def test_a_key_twice_in_the_arguments_is_a_failure_that_names_it() -> None:
    told = tools.run_tool_sync('{"prompt": "p", "prompt": "q"}', "baseline:longer")
    assert told["success"] is False
    assert "the key 'prompt' appears twice in one object" in told["error"]["message"]
