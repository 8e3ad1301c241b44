from __future__ import annotations

import pytest

from command_line import KEY, Command, judged_by, says
from scripted import answer_json
from servers import Reply, SeenRequest, StartServer, chat_reply, error_reply


def right(request: SeenRequest) -> Reply:
    better = "A" if request.prompt.index("is 56") < request.prompt.index("is 54") else "B"
    return chat_reply(answer_json(better, criteria=[("accuracy", better)]))


def test_sound_set_up_without_a_judge_is_no_fault(command: Command) -> None:
    ran = command("doctor")
    assert (ran.code, ran.err) == (0, "")
    assert "none given; use --judge openai:MODEL or set EVENHAND_JUDGE" in ran.out


def test_judge_that_answers_is_well(command: Command, start_server: StartServer) -> None:
    server = start_server(right)
    ran = command("doctor", *judged_by(server), "--json")
    assert ran.code == 0
    assert ran.json["ok"] is True
    judge = ran.json["checks"][-1]
    assert (judge["name"], judge["state"]) == ("judge openai:loopback", "ok")
    assert "missed" not in judge["found"]
    assert len(server.requests) == 2
    assert server.wait_until_idle()


def test_judge_that_cannot_multiply_is_told_on(command: Command, start_server: StartServer) -> None:
    wrong = start_server(says(answer_json("A", criteria=[("accuracy", "A")])))
    ran = command("doctor", *judged_by(wrong))
    assert ran.code == 0
    assert "it got a simple sum wrong" in ran.out
    assert ran.out.splitlines()[-1].startswith("! judge openai:loopback ")


@pytest.mark.parametrize(
    ("reply", "code", "complaint"),
    [
        (error_reply(401, f"bad key {KEY}"), 3, "OPENAI_API_KEY"),
        (error_reply(500, "on fire"), 3, "HTTP 500"),
        (error_reply(404, "no such model"), 3, "check the model name"),
        (chat_reply("I cannot say."), 4, "no valid verdict"),
    ],
)
def test_judge_that_fails_is_wrong_and_says_how(
    command: Command,
    start_server: StartServer,
    monkeypatch: pytest.MonkeyPatch,
    reply: Reply,
    code: int,
    complaint: str,
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    server = start_server(lambda request: reply)
    ran = command("doctor", *judged_by(server))
    assert ran.code == code
    assert complaint in ran.out
    assert KEY not in ran.out + ran.err
    as_json = command("doctor", *judged_by(server), "--json")
    assert (as_json.code, as_json.json["ok"]) == (code, False)
    assert KEY not in as_json.out + as_json.err


def test_failure_is_said_at_once_and_not_after_several_tries(
    command: Command, start_server: StartServer
) -> None:
    server = start_server(lambda request: error_reply(503))
    command("doctor", *judged_by(server))
    assert len(server.requests) == 2  # one for each order


def test_judge_that_cannot_be_opened_is_bad_input(command: Command) -> None:
    assert command("doctor", "--judge", "baseline:best").code == 2
    assert command("doctor", "--judge", "openai:m", "--base-url", "nonsense").code == 2


def test_judge_that_reads_no_prompts_is_only_opened(command: Command) -> None:
    ran = command("doctor", "--judge", "baseline:longer")
    assert ran.code == 0
    assert "it does not read prompts" in ran.out


@pytest.mark.parametrize("content", ["samples = 'many'", "judge = ", "colour = 1", "\xff"])
def test_config_file_that_is_wrong_is_one_check_among_the_others(
    command: Command, content: str
) -> None:
    (command.directory / "evenhand.toml").write_text(content, encoding="latin-1")
    whole = command("doctor", "--judge", "baseline:longer")
    assert (whole.code, whole.err) == (2, "")
    (line,) = [line for line in whole.out.splitlines() if line.startswith("✗")]
    assert line.startswith("✗ config files ")
    assert "evenhand.toml" in line
    assert "✓ judge baseline:longer " in whole.out
    as_json = command("doctor", "--json")
    assert (as_json.code, as_json.json["ok"], as_json.err) == (2, False, "")
    wrong = [check["name"] for check in as_json.json["checks"] if check["state"] == "wrong"]
    assert wrong == ["config files"]


@pytest.mark.parametrize(
    ("variable", "value"), [("EVENHAND_CONFIG", "nowhere.toml"), ("EVENHAND_LOCALE", "fr")]
)
def test_variable_that_is_wrong_is_one_check_among_the_others(
    command: Command, monkeypatch: pytest.MonkeyPatch, variable: str, value: str
) -> None:
    monkeypatch.setenv(variable, value)
    monkeypatch.setenv("EVENHAND_JUDGE", "baseline:longer")
    ran = command("doctor")
    assert (ran.code, ran.err) == (2, "")
    assert f"✗ config files          {variable} " in ran.out
    assert "✓ judge baseline:longer opened" in ran.out


def test_columns_are_aligned_whatever_the_judge_is_called(command: Command) -> None:
    lines = command("doctor", "--judge", "baseline:random:1234567890").out.splitlines()
    column = lines[-1].index("opened; ")
    assert all(line[column - 1] == " " and line[column] != " " for line in lines)


def test_keys_are_set_or_not_and_never_shown(
    command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("HTTPS_PROXY", "http://me:proxy-password@proxy.example:3128")
    ran = command("doctor")
    assert "OPENAI_API_KEY     set" in ran.out
    assert "ANTHROPIC_API_KEY  not set" in ran.out
    assert "HTTPS_PROXY" in ran.out
    assert KEY not in ran.out + ran.err
    assert "proxy-password" not in ran.out + ran.err
