from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

import evenhand
from evenhand import JudgeConfig
from evenhand.background import in_background
from evenhand.errors import InputError, JudgeError, NoVerdict
from evenhand.settings import Settings
from scripted import ScriptedJudge, answer_json
from servers import Reply, SeenRequest, Slow, StartServer, chat_reply

pytestmark = pytest.mark.usefixtures("unconfigured")

KEY = "sk-test-0123456789abcdefghij"
PAIR = {"prompt": "p", "responseA": "short", "responseB": "longer", "criteria": ["c"]}


def tie(request: SeenRequest) -> Reply:
    return chat_reply(answer_json("TIE", criteria=[("c", "TIE")]))


async def test_judge_given_by_name_is_closed_afterwards(
    start_server: StartServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = start_server(tie)
    monkeypatch.setenv("OPENAI_BASE_URL", server.url)
    verdict = await evenhand.compare(PAIR, "openai:m")
    assert verdict.winner == "TIE"
    assert server.wait_until_idle()


async def test_judge_given_by_name_is_closed_when_it_fails_too(
    start_server: StartServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = start_server(lambda request: chat_reply("Who knows."))
    monkeypatch.setenv("OPENAI_BASE_URL", server.url)
    with pytest.raises(NoVerdict) as raised:
        await evenhand.compare(PAIR, "openai:m")
    assert len(raised.value.metadata.passes) == 2
    assert server.wait_until_idle()


async def test_judge_given_opened_stays_open() -> None:
    judge = ScriptedJudge(lambda call: answer_json("TIE"))
    await evenhand.compare(PAIR, judge)
    await evenhand.compare(PAIR, judge)
    assert not judge.closed
    assert len(judge.calls) == 4


def test_opened_judge_serves_sync_calls_over_the_same_connections(
    start_server: StartServer,
) -> None:
    server = start_server(tie)
    judge = evenhand.open_judge("openai:m", JudgeConfig(base_url=server.url))
    for _ in range(2):
        assert evenhand.compare_sync(PAIR, judge).winner == "TIE"
    assert server.open_connections <= 2  # one for each order, kept between the calls
    in_background(judge.close())
    assert server.wait_until_idle()


async def test_sync_face_works_inside_a_running_loop(
    start_server: StartServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", start_server(tie).url)
    assert evenhand.compare_sync(PAIR, "openai:m").winner == "TIE"


def test_sync_face_serves_many_threads() -> None:
    winners: list[str] = []

    def ask() -> None:
        winners.append(evenhand.compare_sync(PAIR, "baseline:longer").winner)

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert winners == ["B"] * 8


def test_sync_face_inside_its_own_loop_is_refused_and_does_not_hang() -> None:
    async def nested() -> None:
        evenhand.compare_sync(PAIR, "baseline:longer")

    with pytest.raises(RuntimeError, match="cannot be called from a judge; await the async one"):
        in_background(nested())


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork, which Windows has not")
def test_sync_face_works_in_a_forked_child(tmp_path: Path) -> None:
    code = (
        "import evenhand, os\n"
        f"pair = {PAIR!r}\n"
        "evenhand.compare_sync(pair, 'baseline:longer')\n"
        "child = os.fork()\n"
        "if child == 0:\n"
        "    won = evenhand.compare_sync(pair, 'baseline:longer').winner\n"
        "    os._exit(0 if won == 'B' else 1)\n"
        "raise SystemExit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, timeout=120, check=False)
    assert done.returncode == 0


def test_ctrl_c_in_a_sync_call_cancels_it_and_closes_its_connections(
    start_server: StartServer, tmp_path: Path
) -> None:
    server = start_server(lambda request: Slow(60, chat_reply("too late")))
    code = (
        "import evenhand, time\n"
        "try:\n"
        f"    evenhand.compare_sync({PAIR!r}, 'openai:m')\n"
        "except KeyboardInterrupt:\n"
        "    print('interrupted', flush=True)\n"
        "    time.sleep(60)\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env={**os.environ, "OPENAI_BASE_URL": server.url},
        stdout=subprocess.PIPE,
    )
    try:
        assert server.wait_until(lambda: len(server.requests) == 2, within_s=120)
        process.send_signal(signal.SIGINT)
        assert process.stdout is not None
        assert process.stdout.readline() == b"interrupted\n"
        # The process is still there, so it was not its end that closed them.
        assert server.wait_until_idle()
        assert process.poll() is None
    finally:
        process.kill()
        process.communicate()


async def test_cancelling_a_comparison_closes_its_judge(
    start_server: StartServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = start_server(lambda request: Slow(60, chat_reply("too late")))
    monkeypatch.setenv("OPENAI_BASE_URL", server.url)
    task = asyncio.create_task(evenhand.compare(PAIR, "openai:m"))
    both_asked = asyncio.to_thread(server.wait_until, lambda: len(server.requests) == 2)
    assert await both_asked
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert server.wait_until_idle()


async def test_bad_pair_is_refused_before_a_judge_is_opened() -> None:
    with pytest.raises(InputError, match="criteria is empty"):
        await evenhand.compare({**PAIR, "criteria": []}, "openai:m")


def test_texts_are_compared_as_a_pair_is() -> None:
    judge = ScriptedJudge(lambda call: answer_json("A", criteria=[("c", "A")]))
    more: dict[str, Any] = {"context": "around", "reference": "known", "swap_positions": False}
    by_keywords = evenhand.compare_sync(
        prompt="p", a="short", b="longer", criteria=["c"], judge=judge, allow_tie=False, **more
    )
    by_pair = evenhand.compare_sync({**PAIR, **more, "allow_tie": False}, judge)
    assert (by_keywords.winner, by_keywords.outcome) == (by_pair.winner, by_pair.outcome)
    one, other = judge.calls
    assert one == other  # the same pair, the same prompt


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({}, "^nothing to compare; give a pair, or prompt, a, b and criteria"),
        ({"prompt": "p", "criteria": ["c"]}, "missing: a and b; give prompt, a, b and criteria"),
        ({"prompt": "p", "a": "x", "b": "y"}, "criteria is missing"),
        ({"pair": PAIR, "criteria": ["c"]}, "both a pair and criteria are given"),
        ({"prompt": "p", "a": "x", "b": 7, "criteria": ["c"]}, "response_b must be a string"),
    ],
)
async def test_a_pair_or_its_texts_are_given_and_not_both(given: Any, says: str) -> None:
    with pytest.raises(InputError, match=says):
        await evenhand.compare(judge="openai:m", **given)


async def test_without_a_judge_the_remedy_is_named() -> None:
    with pytest.raises(InputError, match="EVENHAND_JUDGE"):
        await evenhand.compare(PAIR)


async def test_judge_of_the_environment_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVENHAND_JUDGE", "baseline:longer")
    assert (await evenhand.compare(PAIR)).winner == "B"


async def test_samples_are_taken_at_temperature_1_unless_the_settings_say_another(
    start_server: StartServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    server = start_server(tie)
    monkeypatch.setenv("OPENAI_BASE_URL", server.url)
    await evenhand.compare(PAIR, "openai:m", JudgeConfig(samples=2))
    await evenhand.compare(PAIR, "openai:m")
    (tmp_path / "evenhand.toml").write_text("temperature = 0.2", encoding="utf-8")
    await evenhand.compare(PAIR, "openai:m", JudgeConfig(samples=2))
    temperatures = [request.json["temperature"] for request in server.requests]
    assert temperatures == [1.0] * 4 + [0.0] * 2 + [0.2] * 4


@pytest.mark.parametrize("spec", ["anthropic:m", "google:m", "local", "openrouter:m", "azure:m"])
def test_key_and_address_of_openai_servers_are_for_openai_judges_only(spec: str) -> None:
    settings = Settings(api_key=KEY, base_url="http://localhost:1/v1")
    config = JudgeConfig.resolve(settings, JudgeConfig(judge=spec))
    assert (config.api_key, config.base_url) == (None, None)
    elsewhere = JudgeConfig(judge=spec, base_url="http://localhost:2")
    chosen = JudgeConfig.resolve(settings, elsewhere)
    assert (chosen.api_key, chosen.base_url) == (None, "http://localhost:2")
    own = JudgeConfig.resolve(settings, JudgeConfig(judge="openai:m"))
    assert (own.api_key, own.base_url) == (KEY, "http://localhost:1/v1")
    assert KEY not in repr(own)


def test_the_settings_name_the_transport() -> None:
    assert JudgeConfig.resolve(Settings(judge="openai:m")).transport is None
    named = Settings(judge="openai:m", transport="aiohttp")
    assert JudgeConfig.resolve(named).transport == "aiohttp"


def test_judge_of_one_loop_says_so_in_another(start_server: StartServer) -> None:
    judge = evenhand.open_judge("openai:m", JudgeConfig(base_url=start_server(tie).url))
    assert evenhand.compare_sync(PAIR, judge).winner == "TIE"
    with pytest.raises(JudgeError, match="another event loop"):
        asyncio.run(evenhand.compare(PAIR, judge))
    in_background(judge.close())


@pytest.mark.parametrize("judge", [3, ["openai:m"], {"name": "x"}])
def test_what_is_no_judge_is_refused(judge: Any) -> None:
    with pytest.raises(InputError, match=r"^judge is "):
        evenhand.compare_sync(PAIR, judge=judge)
    with pytest.raises(InputError, match=r"^judge is "):
        evenhand.open_judge(judge)
