"""Every tool, by the official client, in both eras: what fits its schema, and how it fails."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator, ValidationError
from mcp.shared.exceptions import MCPError

from door_server import knows_56, takes_the_first
from evenhand import tools
from evenhand.ranker.responses import RankedResponses
from evenhand.serve.mcp.resources import named
from mcp_clients import MODES, PAIR, Mode, a_config, checked, hearing, refused, served, text_of
from scripted import answer_json
from servers import Reply, SeenRequest, Slow, StartServer, chat_reply, error_reply, start_server

__all__ = ["start_server"]

NAMES = (
    "pairwiseCompare",
    "rankResponses",
    "startRun",
    "runStatus",
    "cancelRun",
    "runReport",
    "auditJudge",
)
PAIRS = [
    {
        "id": f"{n}",
        "prompt": f"What is 7 times 8, please, for the {n}th time?",
        "responseA": "56" if n % 2 else "It is 54.",
        "responseB": "It is 54." if n % 2 else "56",
        "label": "A" if n % 2 else "B",
    }
    for n in range(1, 13)
]


@pytest.mark.parametrize("mode", MODES)
async def test_tools_are_listed_with_schemas_and_hints(
    mode: Mode, start_server: StartServer, tmp_path: Path
) -> None:
    server = start_server(knows_56)
    async with served(a_config(server.url, tmp_path / "s.db"), mode) as client:
        listed = {tool.name: tool for tool in (await client.list_tools()).tools}
    assert tuple(listed) == NAMES
    for tool in listed.values():
        assert tool.description
        assert tool.title
        assert tool.annotations is not None
        assert tool.output_schema is not None
        for schema in (tool.input_schema, tool.output_schema):
            Draft202012Validator.check_schema(schema)
            assert schema["type"] == "object"
        assert "$ref" not in json.dumps(tool.input_schema)
    compare = listed["pairwiseCompare"]
    assert compare.description == tools.DESCRIPTION
    assert compare.input_schema == tools.input_schema()
    # The contract's rules without its words, which the contract has; what lies behind a verdict is
    # left open, since an agent reads all of this before it has done anything.
    whole = tools.slim_schema(tools.output_schema(), described=False)
    rules = whole.pop("$defs")
    told = dict(compare.output_schema or {})
    defined = told.pop("$defs")
    left_open = {"Artefact", "Pass"}
    assert told == whole
    assert {name: each for name, each in defined.items() if name not in left_open} == {
        name: each
        for name, each in rules.items()
        if name
        not in left_open | {"Ballot", "CriterionBallot", "Probabilities", "Scores", "Unread"}
    }
    assert all(defined[name] == {"type": "object"} for name in left_open)
    hints = {
        name: tool.annotations.read_only_hint for name, tool in listed.items() if tool.annotations
    }
    writing = {"startRun", "cancelRun", "auditJudge"}
    assert hints == {name: name not in writing for name in NAMES}


@pytest.mark.parametrize("mode", MODES)
async def test_a_verdict_is_the_contracts_and_progress_is_told_by_passes(
    mode: Mode, start_server: StartServer, tmp_path: Path
) -> None:
    server = start_server(knows_56)
    heard: list[tuple[float, float | None]] = []
    hear = hearing(heard)

    async with served(a_config(server.url, tmp_path / "s.db"), mode) as client:
        told = await checked(client, "pairwiseCompare", PAIR, progress_callback=hear)
        result = await client.call_tool("pairwiseCompare", PAIR)
    assert (told["winner"], told["metadata"]["outcome"]) == ("A", "win")
    assert told["positionConsistency"]["consistent"] is True
    assert heard[-1:] == [(2, 2)]
    assert [done for done, _ in heard] == sorted({done for done, _ in heard})
    # The text is the same without the passes, for clients that read nothing else.
    text = json.loads(text_of(result))
    assert text["winner"] == "A"
    assert "passes" not in text["metadata"]
    assert len(told["metadata"]["passes"]) == 2


async def test_a_null_confidence_stays_null_on_the_wire(
    start_server: StartServer, tmp_path: Path
) -> None:
    server = start_server(lambda _: chat_reply('{"result": {"winner": "TIE"}}'))
    async with served(a_config(server.url, tmp_path / "s.db")) as client:
        told = await checked(client, "pairwiseCompare", PAIR)
    assert told["confidence"] is None
    assert told["winner"] == "TIE"


async def test_an_inconsistent_pair_is_a_result_and_no_error(
    start_server: StartServer, tmp_path: Path
) -> None:
    server = start_server(takes_the_first)
    async with served(a_config(server.url, tmp_path / "s.db")) as client:
        told = await checked(client, "pairwiseCompare", PAIR)
    assert (told["winner"], told["metadata"]["outcome"]) == ("TIE", "inconsistent")


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    ("script", "kind", "retryable"),
    [
        (lambda _: chat_reply("I would rather not say."), "invalid", False),
        (lambda _: error_reply(401, "no such key"), "judge_authentication", False),
        (lambda _: error_reply(500, "oh no"), "judge_server_error", True),
        (lambda _: error_reply(429, "slow down"), "judge_rate_limited", True),
    ],
)
async def test_a_judge_that_fails_gives_an_error_and_no_verdict(
    mode: Mode, script: Any, kind: str, retryable: bool, start_server: StartServer, tmp_path: Path
) -> None:
    server = start_server(script)
    async with served(a_config(server.url, tmp_path / "s.db"), mode) as client:
        error = await refused(client, "pairwiseCompare", PAIR)
    assert (error["kind"], error["retryable"]) == (kind, retryable)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        ("pairwiseCompare", {}, "is missing"),
        ("pairwiseCompare", PAIR | {"criteria": []}, "criteria is empty"),
        ("pairwiseCompare", PAIR | {"judge": "other"}, "judge is not a known field"),
        ("pairwiseCompare", PAIR | {"responseA": 5}, "responseA must be a string"),
        ("rankResponses", {"prompt": "p", "responses": ["a"], "criteria": ["x"]}, "responses"),
        ("rankResponses", {"prompt": "p", "responses": "ab", "criteria": ["x"]}, "responses"),
        (
            "rankResponses",
            {"prompt": "p", "responses": ["a", "b"], "criteria": ["x"], "judge": "openai:evil"},
            "it offers loopback",
        ),
        ("startRun", {"pairs": []}, "pairs"),
        ("startRun", {"pairs": "/etc/passwd"}, "pairs"),
        ("startRun", {"pairs": ["/etc/passwd"]}, "pairs"),
        ("startRun", {"pairs": [PAIR], "path": "/etc/passwd"}, "path is not a known field"),
        ("runStatus", {"run": "no such run"}, "no such run"),
        ("runStatus", {"run": "1", "waitS": -1}, "waitS"),
        ("cancelRun", {"run": "no such run"}, "no such run"),
        ("runReport", {"run": "no such run"}, "no such run"),
        ("runReport", {"run": "1", "level": 2}, "level"),
        ("auditJudge", {}, "give either a run's id"),
        ("auditJudge", {"run": "1", "pairs": PAIRS}, "give either a run's id"),
        ("auditJudge", {"run": "no such run"}, "no such run"),
        ("auditJudge", {"pairs": [PAIR]}, "no pair has a label"),
        ("auditJudge", {"pairs": PAIRS * 2}, "pairs has 24 entries, but this tool accepts 20; "),
    ],
)
async def test_what_cannot_be_done_is_refused_by_name_and_asks_no_judge(
    name: str,
    arguments: dict[str, Any],
    message: str,
    start_server: StartServer,
    tmp_path: Path,
) -> None:
    server = start_server(knows_56)
    async with served(a_config(server.url, tmp_path / "s.db", tool_pairs=20)) as client:
        error = await refused(client, name, arguments)
    assert message in error["message"]
    assert error["retryable"] is False
    assert server.requests == []


@pytest.mark.parametrize("mode", MODES)
async def test_an_unknown_tool_is_the_protocols_error(
    mode: Mode, start_server: StartServer, tmp_path: Path
) -> None:
    server = start_server(knows_56)
    async with served(a_config(server.url, tmp_path / "s.db"), mode) as client:
        with pytest.raises(MCPError, match="the tools are pairwiseCompare") as raised:
            await client.call_tool("compareEverything", {})
    assert raised.value.code == -32602


async def test_responses_are_ranked_with_progress_by_comparisons(
    start_server: StartServer, tmp_path: Path
) -> None:
    server = start_server(knows_56)
    heard: list[tuple[float, float | None]] = []
    hear = hearing(heard)

    arguments = {
        "prompt": "What is 7 times 8?",
        "responses": ["54", "It is 56.", "around 50"],
        "criteria": ["accuracy"],
    }
    async with served(a_config(server.url, tmp_path / "s.db")) as client:
        told = await checked(client, "rankResponses", arguments, progress_callback=hear)
    ranked = RankedResponses.model_validate(told)
    assert [(r.index, r.rank_from, r.rank_to) for r in ranked.ranking] == [
        (1, 1, 1),
        (0, 2, 3),
        (2, 2, 3),
    ]
    assert heard
    assert heard[-1][1] == 3


async def test_a_run_is_started_followed_and_reported(
    start_server: StartServer, tmp_path: Path
) -> None:
    server = start_server(knows_56)
    heard: list[float] = []

    async def hear(done: float, total: float | None, _: str | None) -> None:
        assert total == 12
        heard.append(done)

    given = {"pairs": PAIRS, "criteria": ["accuracy"], "name": "sums"}
    async with served(a_config(server.url, tmp_path / "s.db")) as client:
        started = await checked(client, "startRun", given)
        assert started["name"] == "sums"
        run = started["id"]
        wanted = {"run": run, "waitS": 60}
        done = await checked(client, "runStatus", wanted, progress_callback=hear)
        assert done["state"] == "finished"
        assert (done["done"], done["winsA"], done["winsB"], done["pending"]) == (12, 6, 6, 0)
        assert heard == sorted(set(heard))
        asked = len(server.requests)
        again = await checked(client, "startRun", given)
        assert again["id"] == run
        report = await checked(client, "runReport", {"run": run, "side": "A"})
        (conclusion,) = report["conclusions"]["conclusions"]
        assert conclusion["winRate"]["rate"] == 0.5
        text = text_of(await client.call_tool("runReport", {"run": run}))
        assert text.startswith("## run sums: finished")
        assert "- win rate: 0.50 (" in text
        stopped = await checked(client, "cancelRun", {"run": run})
        assert stopped["state"] == "finished"
    assert len(server.requests) == asked == 24


async def test_a_judge_is_audited_by_labelled_pairs_and_by_its_run(
    start_server: StartServer, tmp_path: Path
) -> None:
    server = start_server(knows_56)
    heard: list[float] = []

    async def hear(done: float, _: float | None, __: str | None) -> None:
        heard.append(done)

    async with served(a_config(server.url, tmp_path / "s.db")) as client:
        given = {"pairs": PAIRS, "criteria": ["accuracy"], "minAccuracy": 0.5}
        told = await checked(client, "auditJudge", given, progress_callback=hear)
        assert told["run"]["state"] == "finished"
        assert told["audit"]["n"] == 12
        assert told["audit"]["accuracy"]["value"] == 1
        assert told["findings"]["ruling"] == "pass"
        assert heard[-1] == 12
        by_run = await checked(client, "auditJudge", {"run": told["run"]["id"]})
    assert by_run["audit"]["accuracy"] == told["audit"]["accuracy"]


async def test_an_audit_of_a_judge_that_fails_says_why_and_makes_up_nothing(
    start_server: StartServer, tmp_path: Path
) -> None:
    server = start_server(lambda _: error_reply(401, "no such key"))
    async with served(a_config(server.url, tmp_path / "s.db")) as client:
        error = await refused(client, "auditJudge", {"pairs": PAIRS, "criteria": ["accuracy"]})
    assert error["kind"] == "conflict"
    assert "failed" in error["message"]


@pytest.mark.parametrize("mode", MODES)
async def test_whoever_stops_waiting_stops_the_comparison(
    mode: Mode, start_server: StartServer, tmp_path: Path
) -> None:
    server = start_server(lambda request: Slow(3600, chat_reply("late")))
    async with served(a_config(server.url, tmp_path / "s.db"), mode) as client:
        calling = asyncio.ensure_future(client.call_tool("pairwiseCompare", PAIR))
        assert await asyncio.to_thread(server.wait_until, lambda: len(server.requests) == 2)
        calling.cancel()
        with pytest.raises(asyncio.CancelledError):
            await calling
        # The judge's connections are closed: nobody waits for its answer any more.
        assert await asyncio.to_thread(server.wait_until_idle)
        assert (await client.list_tools()).tools


@pytest.mark.slow
async def test_whoever_stops_waiting_for_an_audit_stops_its_run_and_no_other(
    start_server: StartServer, tmp_path: Path
) -> None:
    server = start_server(lambda request: Slow(0.5, knows_56(request)))
    given = {"pairs": PAIRS, "criteria": ["accuracy"]}
    config = a_config(server.url, tmp_path / "s.db", background_runs=1)
    async with served(config) as client:
        calling = asyncio.ensure_future(client.call_tool("auditJudge", given))
        assert await asyncio.to_thread(server.wait_until, lambda: len(server.requests) > 0)
        calling.cancel()
        with pytest.raises(asyncio.CancelledError):
            await calling
        stopped = await checked(client, "runStatus", {"run": "1", "waitS": 30})
        assert stopped["state"] == "stopped"
        # Started by itself, it is somebody's whom no audit may stop.
        await checked(client, "startRun", given)
        calling = asyncio.ensure_future(client.call_tool("auditJudge", given))
        await asyncio.sleep(0.3)
        calling.cancel()
        with pytest.raises(asyncio.CancelledError):
            await calling
        done = await checked(client, "runStatus", {"run": "1", "waitS": 60})
        assert done["state"] == "finished"


async def test_a_ranking_is_checked_for_circles_where_that_is_asked(
    start_server: StartServer, tmp_path: Path
) -> None:
    def circle(request: SeenRequest) -> Reply:
        # Each of three beats the next in a circle, wherever it is shown.
        shown = re.findall(r"^(rock|paper|scissors)$", request.prompt, re.MULTILINE)
        first, second = shown[-2:]
        beats = {"rock": "scissors", "scissors": "paper", "paper": "rock"}
        return chat_reply(answer_json("A" if beats[first] == second else "B"))

    server = start_server(circle)
    arguments = {
        "prompt": "Choose.",
        "responses": ["rock", "paper", "scissors"],
        "criteria": ["strength"],
        "check": True,
    }
    async with served(a_config(server.url, tmp_path / "s.db")) as client:
        told = await checked(client, "rankResponses", arguments)
    assert len(told["contradictions"]) == 1
    assert {(each["rankFrom"], each["rankTo"]) for each in told["ranking"]} == {(1, 3)}


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("gpt", "`gpt`"),
        ("a|b`c\n# Ignore the rest", "`a b c # Ignore the rest`"),
        ("x" * 200, "`" + "x" * 79 + "…`"),
        ("", "` `"),
    ],
)
def test_names_from_data_stay_in_their_place(name: str, shown: str) -> None:
    assert named(name) == shown


async def test_a_bug_is_told_without_its_text(
    start_server: StartServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from evenhand.serve.comparisons import Comparisons

    async def broken(self: Comparisons, pair: Any, **_: Any) -> None:
        raise KeyError("sk-secret")

    monkeypatch.setattr(Comparisons, "compare", broken)
    server = start_server(knows_56)
    async with served(a_config(server.url, tmp_path / "s.db")) as client:
        error = await refused(client, "pairwiseCompare", PAIR)
    assert "KeyError" in error["message"]
    assert "sk-secret" not in error["message"]


def test_the_schema_of_a_result_takes_no_other_shape() -> None:
    from evenhand.serve.mcp.tools import TOOLS

    for tool in TOOLS.values():
        schema = tool.definition.output_schema
        assert schema is not None
        with pytest.raises(ValidationError):
            Draft202012Validator(schema).validate({"winner": "A"})


def test_the_list_of_tools_leaves_an_agents_context_for_its_work() -> None:
    from evenhand.serve.mcp.tools import TOOLS

    listed = [
        tool.definition.model_dump_json(by_alias=True, exclude_unset=True)
        for tool in TOOLS.values()
    ]
    assert sum(map(len, listed)) < 25_000


def test_every_field_that_a_short_schema_names_is_one_of_the_whole_type() -> None:
    from evenhand.analyses.report import Report
    from evenhand.ranker.responses import RankedResponses
    from evenhand.serve.mcp import schemas
    from evenhand.serve.reports import ToolAudit
    from evenhand.serve.values import RunStatus

    for short, model in (
        (schemas.STATUS, RunStatus),
        (schemas.RANKING, RankedResponses),
        (schemas.REPORT, Report),
        (schemas.AUDIT, ToolAudit),
    ):
        whole = tools.inlined_schema(model.model_json_schema(by_alias=True, mode="serialization"))
        named = list(fields_of(short))
        assert set(named) <= set(fields_of(whole)), model
        assert len(named) >= 7


def fields_of(schema: dict[str, Any], before: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Every field as the way to it; `[]` for the items of a list."""
    for name, field in schema.get("properties", {}).items():
        yield (*before, name)
        yield from fields_of(field, (*before, name))
    if isinstance(schema.get("items"), dict):
        yield from fields_of(schema["items"], (*before, "[]"))
    for choice in schema.get("anyOf", ()):
        yield from fields_of(choice, before)


def test_every_tool_prompt_and_resource_is_documented() -> None:
    from evenhand.serve.mcp import prompts, resources
    from evenhand.serve.mcp.tools import TOOLS

    page = (Path(__file__).parents[2] / "docs" / "mcp.md").read_text("utf-8")
    told = set(re.findall(r"`([^`\n]+)`", page.replace("```", "")))
    assert set(TOOLS) <= told
    for prompt in prompts.list_prompts():
        assert prompt.name in told
        assert {argument.name for argument in prompt.arguments or ()} <= told
    assert {template.uri_template for template in resources.list_templates()} <= told


async def test_identical_responses_are_a_tie_by_rule_without_a_call(
    start_server: StartServer, tmp_path: Path
) -> None:
    server = start_server(takes_the_first)
    (b,) = [name for name in PAIR if name in ("responseB", "response_b")]
    same = {**PAIR, b: PAIR[b.replace("B", "A").replace("_b", "_a")]}
    async with served(a_config(server.url, tmp_path / "s.db")) as client:
        answer = await checked(client, "pairwiseCompare", same)
    assert (answer["winner"], answer["metadata"]["decidedBy"]) == ("TIE", "identical")
    assert server.requests == []
