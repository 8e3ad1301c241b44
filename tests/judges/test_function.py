"""A judge from a plain function."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

import evenhand
from evenhand.errors import InputError, JudgeError, JudgeTimeout
from evenhand.judges.function import FunctionJudge
from scripted import answer_json

pytestmark = pytest.mark.usefixtures("unconfigured")

KEY = "sk-test-0123456789abcdefghij"
PAIR = {"prompt": "p?", "responseA": "uno!", "responseB": "due!", "criteria": ["tone"]}


def names_due(prompt: str) -> str:
    """The place of the text "due!", as JSON."""
    winner = "A" if prompt.index("due!") < prompt.index("uno!") else "B"
    return answer_json(winner, criteria=[("tone", winner)])


def test_plain_function_judges_in_both_orders_off_the_event_loop() -> None:
    threads = set()

    @evenhand.judge
    def counting(prompt: str) -> str:
        threads.add(threading.current_thread())
        return names_due(prompt)

    verdict = evenhand.compare_sync(PAIR, counting)
    assert (verdict.winner, verdict.outcome) == ("B", "win")
    assert verdict.metadata.judge == "function:counting"
    assert {thread.name.rstrip("_0123456789") for thread in threads} == {"evenhand-judge"}


async def test_two_calls_of_a_blocking_function_run_side_by_side() -> None:
    both = threading.Barrier(2, timeout=20)

    @evenhand.judge
    def meeting(prompt: str) -> str:
        both.wait()  # the other order's call has to be there too
        return names_due(prompt)

    async with meeting as judge:
        assert (await evenhand.compare(PAIR, judge)).winner == "B"


async def test_async_function_runs_on_the_event_loop_with_the_whole_prompt() -> None:
    seen = []

    @evenhand.judge(name="house", version="2")
    async def awaited(prompt: str) -> str:
        await asyncio.sleep(0)
        seen.append((prompt, threading.current_thread()))
        return names_due(prompt)

    verdict = await evenhand.compare(PAIR, awaited)
    assert (verdict.winner, verdict.metadata.judge) == ("B", "house")
    assert awaited.identity["version"] == "2"
    assert {thread for _, thread in seen} == {threading.current_thread()}
    assert all("p?" in prompt and "tone" in prompt for prompt, _ in seen)


def test_decorated_function_can_still_be_called() -> None:
    assert evenhand.judge(str.upper)("abc") == "ABC"


def test_what_the_function_raises_is_the_judges_error_without_its_keys(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("HOUSE_API_KEY", KEY)

    @evenhand.judge
    def broken(prompt: str) -> str:
        raise ValueError(f"no model with key {KEY}")

    with pytest.raises(JudgeError, match=r"function:broken raised ValueError: no model") as raised:
        evenhand.compare_sync(PAIR, broken)
    assert KEY not in str(raised.value)
    assert not raised.value.retryable


def test_an_error_that_can_be_retried_is_retried() -> None:
    asked = []

    @evenhand.judge
    def late(prompt: str) -> str:
        asked.append(prompt)
        if len(asked) <= 2:
            raise JudgeTimeout("later")
        return names_due(prompt)

    config = evenhand.JudgeConfig(retry=evenhand.RetryPolicy(attempts=3, base_s=0.001))
    assert evenhand.compare_sync(PAIR, late, config).winner == "B"
    assert len(asked) == 4  # two that failed, and one for each order


def test_an_answer_that_is_no_text_is_told() -> None:
    @evenhand.judge
    def number(prompt: str) -> str:
        return 7  # type: ignore[return-value]  # what is to be refused

    with pytest.raises(JudgeError, match=r"returned int; return the answer as a string"):
        evenhand.compare_sync(PAIR, number)


def test_what_is_no_function_is_refused() -> None:
    with pytest.raises(InputError, match=r"a function that takes the prompt, not 'gpt-5';"):
        evenhand.judge("gpt-5")  # type: ignore[call-overload]  # likewise


def test_answers_of_another_body_are_not_taken_from_the_store() -> None:
    def made(answer: str) -> Callable[[str], str]:
        def first(prompt: str) -> str:
            return "A"

        def second(prompt: str) -> str:
            return "B"

        return first if answer == "A" else second

    one, other = (FunctionJudge(made(each), name="house") for each in "AB")
    assert one.identity != other.identity
    assert one.identity == FunctionJudge(made("A"), name="house").identity


async def test_a_closed_judge_starts_new_threads_when_it_is_asked_again() -> None:
    judge = evenhand.judge(names_due)
    for _ in range(2):
        async with judge:
            assert (await evenhand.compare(PAIR, judge)).winner == "B"


def test_a_settings_mode_that_it_lacks_does_not_stop_it() -> None:
    Path("evenhand.toml").write_text('mode = "letter"\nlocale = "zh"\n', "utf-8")
    prompts = []

    @evenhand.judge
    def keeping(prompt: str) -> str:
        prompts.append(prompt)
        return names_due(prompt)

    assert evenhand.compare_sync(PAIR, keeping).metadata.locale == "zh"
    assert "响应" in prompts[0]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork, which Windows has not")
def test_a_forked_child_has_threads_of_its_own(tmp_path: Path) -> None:
    code = (
        "import evenhand, os\n"
        "@evenhand.judge\n"
        "def tie(prompt): return 'TIE'\n"
        f"pair = {PAIR!r}\n"
        "evenhand.compare_sync(pair, tie)\n"
        "child = os.fork()\n"
        "if child == 0:\n"
        "    os._exit(0 if evenhand.compare_sync(pair, tie).winner == 'TIE' else 1)\n"
        "raise SystemExit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, timeout=60, check=False)
    assert done.returncode == 0
