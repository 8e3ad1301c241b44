from __future__ import annotations

import tomllib
from importlib.metadata import metadata, version
from pathlib import Path

import pytest

from evenhand.cli import checkup
from evenhand.cli.checkup import check_judges, check_set_up, settings_and_fault
from evenhand.installation import Extra, install_command
from evenhand.judging.config import JudgeConfig
from evenhand.settings import Settings
from scripted import answer_json
from servers import Reply, SeenRequest, StartServer, chat_reply

KEY = "sk-test-0123456789abcdefghij"


def checks(settings: Settings | None = None, **environment: str) -> dict[str, tuple[str, str]]:
    found = check_set_up(settings or Settings(), environment)
    return {check.name: (check.state, check.found) for check in found}


@pytest.mark.agents
def test_version_of_each_extra_is_its_own() -> None:
    state, found = checks()["extra providers"]
    assert state == "ok"
    assert f"pydantic-ai-slim {version('pydantic-ai-slim')}" in found


def test_every_extra_is_checked() -> None:
    there = {name.removeprefix("extra ") for name in checks() if name.startswith("extra ")}
    assert there == {*(metadata("evenhand").get_all("Provides-Extra") or ())} - {"all"}


def test_every_extra_has_a_purpose() -> None:
    pyproject = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text("utf-8"))
    extras = {*pyproject["project"]["optional-dependencies"]} - {"all"}
    assert {*checkup._PURPOSES} == extras


def test_an_extra_in_part_says_what_is_missing_and_what_adds_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found = Extra("parquet", {"pyarrow": None})
    monkeypatch.setattr("evenhand.cli.checkup.extras", lambda: iter([found]))
    state, text = checks()["extra parquet"]
    assert state == "missing"
    purpose, added = checkup._PURPOSES["parquet"], install_command("parquet")
    assert text == f"not installed: pyarrow ({purpose}); run: {added}"


def test_key_is_set_or_not_and_never_part_of_a_check() -> None:
    found = checks(OPENAI_API_KEY=KEY)
    assert found["OPENAI_API_KEY"] == ("ok", "set")
    assert found["GOOGLE_API_KEY"] == ("missing", "not set")
    assert KEY not in str(found)


def test_model_that_is_not_there_is_missing_and_not_wrong(tmp_path: Path) -> None:
    state, found = checks(Settings(cache_dir=tmp_path))["embedded model"]
    assert (state, found) == ("missing", "not downloaded; run: evenhand models pull")


def test_proxy_is_named_without_its_address() -> None:
    found = checks(https_proxy="http://me:secret@proxy.example")
    assert "HTTPS_PROXY" in found["proxy"][1]
    assert "secret" not in str(found)


async def test_judge_is_asked_in_both_orders_and_closed(start_server: StartServer) -> None:
    def right(request: SeenRequest) -> Reply:
        better = "A" if request.prompt.index("is 56") < request.prompt.index("is 54") else "B"
        return chat_reply(answer_json(better, confidence="sure", criteria=[("accuracy", better)]))

    server = start_server(right)
    [check] = await check_judges(JudgeConfig(judge="openai:m", base_url=server.url))
    assert (check.state, check.exit_code) == ("ok", 0)
    assert check.found.endswith("; it gives no confidence")
    assert len(server.requests) == 2
    assert server.wait_until_idle()


@pytest.mark.parametrize(
    ("winners", "complaint"),
    [
        ({"56 first": "A", "54 first": "A"}, "its verdict flipped with the order"),
        ({"56 first": "B", "54 first": "A"}, "it got a simple sum wrong"),
        ({"56 first": "TIE", "54 first": "TIE"}, "it got a simple sum wrong"),
    ],
)
async def test_judge_that_answers_badly_is_a_warning_and_no_fault(
    start_server: StartServer, winners: dict[str, str], complaint: str
) -> None:
    def script(request: SeenRequest) -> Reply:
        first = "56" if request.prompt.index("is 56") < request.prompt.index("is 54") else "54"
        return chat_reply(answer_json(winners[f"{first} first"]))

    url = start_server(script).url
    [check] = await check_judges(JudgeConfig(judge="openai:m", base_url=url))
    assert (check.state, check.exit_code) == ("warning", 0)
    assert complaint in check.found


async def test_without_a_judge_there_is_nothing_to_ask() -> None:
    [check] = await check_judges(JudgeConfig())
    assert (check.state, check.exit_code) == ("missing", 0)


@pytest.mark.parametrize("variable", ["EVENHAND_CONFIG", "EVENHAND_LOCALE", "EVENHAND_TRANSPORT"])
def test_a_wrong_variable_is_a_fault_beside_the_other_settings(variable: str) -> None:
    settings, fault = settings_and_fault({variable: "nowhere", "EVENHAND_JUDGE": "local"})
    assert settings.judge == "local"
    assert fault is not None
    assert variable in fault.message
