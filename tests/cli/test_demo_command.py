from __future__ import annotations

import io
import shlex
import shutil
from pathlib import Path

import pytest
from rich.console import Console

from command_line import KEY, Command, judged_by, run_command
from evenhand.cli import demo
from parts import need_model
from scripted import answer_json
from servers import Reply, SeenRequest, StartServer, chat_reply, error_reply

SPOILT = "lunch"  # a word of one pair's prompt only


def ties(request: SeenRequest) -> Reply:
    return chat_reply(answer_json("TIE"))


@pytest.fixture
def no_model(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVENHAND_CACHE_DIR", str(command.directory / "empty"))


@pytest.mark.usefixtures("no_model")
def test_second_act_offline_shows_every_outcome_and_asks_nobody(
    command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    ran = command("demo", "--offline")
    assert ran.code == 0, ran.err
    assert "no model was asked" in " ".join(ran.out.split())
    assert [line for line in ran.out.splitlines() if line != line.rstrip()] == []
    summary = ran.out[ran.out.index("All verdicts") :]
    # Ten wins, one tie and one inconsistent pair, as the demo's authors wrote them.
    assert summary.count(" is better ") == 10
    assert summary.count("A tie ") == 1
    assert summary.count("Inconsistent: the winner changed with the order") == 1
    assert "12/12" in ran.err  # the progress bar
    assert KEY not in ran.out + ran.err


@pytest.mark.usefixtures("no_model")
def test_a_key_alone_is_never_spent(
    command: Command, start_server: StartServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = start_server(ties)
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("OPENAI_BASE_URL", server.url)
    monkeypatch.setenv("EVENHAND_JUDGE", "openai:loopback")
    ran = command("demo", "--pairs", "2")
    assert ran.code == 0, ran.err
    assert server.requests == []
    assert "no model was asked (use --live to ask yours)" in " ".join(ran.out.split())
    # With --live the same settings are asked: two pairs in both orders.
    assert command("demo", "--live", "--pairs", "2").code == 0
    assert len(server.requests) == 4


@pytest.mark.parametrize(
    ("arguments", "remedy"),
    [
        (("--judge", "openai:loopback"), "add --live (24 calls)"),
        (("--base-url", "http://127.0.0.1:9/v1"), "add --live (24 calls)"),
        (("--live", "--offline"), "--live asks a judge and --offline asks none; give one\n"),
        (("--live",), "give --judge openai:MODEL"),
    ],
)
def test_what_would_be_asked_unclearly_is_refused(
    command: Command, arguments: tuple[str, ...], remedy: str
) -> None:
    ran = command("demo", *arguments)
    assert (ran.code, ran.out) == (2, "")
    assert remedy in ran.err


@pytest.mark.usefixtures("no_model")
def test_first_act_without_its_model_is_left_out_with_the_remedy(command: Command) -> None:
    ran = command("demo", "--offline")
    assert "skipped " in ran.out
    assert "evenhand models pull" in ran.out or "pip install" in ran.out


@pytest.mark.usefixtures("no_model")
def test_whole_shows_every_pair(command: Command) -> None:
    short, whole = command("demo", "--offline"), command("demo", "--offline", "--whole")
    # Each pair shown whole has one line for its prompt.
    assert short.out.count("\nprompt  ") == 3
    assert whole.out.count("\nprompt  ") == 12


@pytest.mark.usefixtures("no_model")
def test_named_judge_is_asked_about_every_pair_in_both_orders(
    command: Command, start_server: StartServer
) -> None:
    server = start_server(ties)
    ran = command("demo", "--live", *judged_by(server))
    assert ran.code == 0, ran.err
    assert len(server.requests) == 24
    assert ran.out.count("A tie ") == 12
    assert "Judged by openai:loopback" in ran.out


@pytest.mark.usefixtures("no_model")
def test_pair_that_fails_is_shown_as_invalid_and_the_demo_goes_on(
    command: Command, start_server: StartServer
) -> None:
    def script(request: SeenRequest) -> Reply:
        if SPOILT in request.prompt:
            return error_reply(400, "this one I will not judge")
        return ties(request)

    ran = command("demo", "--live", *judged_by(start_server(script)))
    assert ran.code == 0, ran.err
    assert ran.out.count("A tie ") == 11
    assert ran.out.count("Invalid: ") == 1
    assert "this one I will not judge" in ran.out


@pytest.mark.usefixtures("no_model")
def test_judge_that_fails_on_every_pair_fails_the_demo(
    command: Command, start_server: StartServer
) -> None:
    server = start_server(lambda request: chat_reply("I would rather not say."))
    ran = command("demo", "--live", *judged_by(server))
    assert ran.code == 4
    assert ran.err.splitlines()[-1].startswith("error  no valid verdict")


@pytest.mark.usefixtures("no_model")
def test_wrong_key_is_said_at_the_first_pair(command: Command, start_server: StartServer) -> None:
    server = start_server(lambda request: error_reply(401, "no such key"))
    ran = command("demo", "--live", *judged_by(server))
    assert ran.code == 3
    assert len(server.requests) == 2


def test_judge_that_does_not_exist_is_said_before_anything_is_played(command: Command) -> None:
    ran = command("demo", "--live", "--judge", "baseline:best")
    assert (ran.code, ran.out) == (2, "")


@pytest.mark.embedded
def test_first_act_is_played_live(tmp_path: Path) -> None:
    more = {"EVENHAND_CACHE_DIR": str(need_model().parent.parent)}
    asked = ("demo", "--offline", "--pairs", "1")
    ran = run_command(*asked, directory=tmp_path, more=more, timeout_s=600)
    assert ran.code == 0, ran.err
    first, second = ran.out.split("Act 2", 1)
    assert sum(line.startswith("demo-") for line in first.splitlines()) == 1
    assert "Position alone decided" in first
    assert "All verdicts" in second


def test_the_last_hints_can_be_pasted(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    """`make demo` runs it by its path: a shell without that environment has no `evenhand`."""
    monkeypatch.setattr(shutil, "which", lambda name: None)
    out = io.StringIO()
    demo._what_next(Console(file=out, width=200))
    shown = out.getvalue()
    assert "MODEL" not in shown
    program = shlex.split(shown.splitlines()[-1])[0]
    assert program.endswith("bin/evenhand")
    assert Path(command.directory, program).is_file()
