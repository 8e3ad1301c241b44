"""When a judge is asked again, how long that waits, and what the last error says."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenhand.contract import Criterion, Pair, Usage
from evenhand.errors import (
    JudgeAuthentication,
    JudgeConnectionLost,
    JudgeError,
    JudgeRateLimited,
    JudgeRejected,
    JudgeServerError,
    JudgeTimeout,
    SettingsError,
)
from evenhand.judges.openai import OpenAIJudge
from evenhand.judges.protocol import ChatMessage, Completion, JudgeCall, Segment, Traits
from evenhand.judges.registry import JudgeOptions
from evenhand.judges.retry import RetryPolicy, ask_with_retries
from servers import CLOSE, StartServer, chat_reply, error_reply, in_turn

CALL = JudgeCall(
    pair=Pair(prompt="p", response_a="a", response_b="b", criteria=(Criterion(name="c"),)),
    order="original",
    sample=1,
    messages=(ChatMessage("user", (Segment("Which?"),)),),
)


class ScriptedJudge:
    """Fails with each of these errors in turn, then answers."""

    name = "scripted"
    traits = Traits()

    def __init__(self, errors: Sequence[JudgeError]) -> None:
        self.errors = list(errors)
        self.asked = 0

    async def ask(self, call: JudgeCall) -> Completion:
        self.asked += 1
        if self.asked <= len(self.errors):
            raise self.errors[self.asked - 1]
        return Completion("A", usage=Usage(input_tokens=5, requests=1))

    async def close(self) -> None:
        pass


class Sleeps:
    """Keeps how long it was told to sleep, and does not."""

    def __init__(self) -> None:
        self.waits: list[float] = []

    async def __call__(self, wait_s: float) -> None:
        self.waits.append(wait_s)


class Longest(random.Random):
    """No jitter: always the whole step."""

    def uniform(self, a: float, b: float) -> float:
        return b


def lost() -> JudgeConnectionLost:
    return JudgeConnectionLost("it broke; ask again")


async def test_an_answer_at_once_is_handed_on_as_it_is() -> None:
    sleep = Sleeps()
    completion = await ask_with_retries(ScriptedJudge([]), CALL, RetryPolicy(), sleep=sleep)
    assert (completion.usage.requests, sleep.waits) == (1, [])


async def test_failed_requests_are_counted_in_the_answers_usage() -> None:
    many = JudgeServerError("busy; wait")
    many.requests = 3
    judge = ScriptedJudge([lost(), many])
    completion = await ask_with_retries(judge, CALL, RetryPolicy(), sleep=Sleeps())
    assert completion.usage == Usage(input_tokens=5, requests=5)  # 1 + 3 failed, 1 answered


async def test_the_steps_double_up_to_the_cap() -> None:
    sleep = Sleeps()
    policy = RetryPolicy(attempts=6, base_s=0.5, cap_s=3.0)
    await ask_with_retries(
        ScriptedJudge([lost() for _ in range(5)]), CALL, policy, sleep=sleep, rng=Longest()
    )
    assert sleep.waits == [0.5, 1.0, 2.0, 3.0, 3.0]


async def test_the_last_error_says_how_often_it_was_tried() -> None:
    judge = ScriptedJudge([lost() for _ in range(9)])
    with pytest.raises(JudgeConnectionLost) as caught:
        await ask_with_retries(judge, CALL, RetryPolicy(attempts=4), sleep=Sleeps())
    assert caught.value.message == "it broke; ask again (tried 4 times)"
    assert str(caught.value) == caught.value.message
    assert caught.value.requests == 4
    assert judge.asked == 4


@pytest.mark.parametrize(
    "error", [JudgeAuthentication("no key; set it"), JudgeRejected("no; change it")]
)
async def test_what_waiting_does_not_mend_is_raised_at_once(error: JudgeError) -> None:
    before = error.message
    judge, sleep = ScriptedJudge([error]), Sleeps()
    with pytest.raises(type(error)) as caught:
        await ask_with_retries(judge, CALL, RetryPolicy(), sleep=sleep)
    assert (caught.value.message, judge.asked, sleep.waits) == (before, 1, [])


async def test_a_different_last_error_still_counts_all_tries() -> None:
    judge = ScriptedJudge([lost(), JudgeRejected("no; change it")])
    with pytest.raises(JudgeRejected, match=r"^no; change it \(tried 2 times\)$"):
        await ask_with_retries(judge, CALL, RetryPolicy(), sleep=Sleeps())


@pytest.mark.parametrize("kind", [JudgeRateLimited, JudgeServerError])
async def test_the_servers_own_wait_is_the_least_that_is_waited(
    kind: type[JudgeRateLimited] | type[JudgeServerError],
) -> None:
    sleep = Sleeps()
    judge = ScriptedJudge([kind("busy", retry_after_s=12.0), kind("busy", retry_after_s=0.0)])
    await ask_with_retries(judge, CALL, RetryPolicy(base_s=0.5), sleep=sleep, rng=Longest())
    assert sleep.waits == [12.0, 1.0]  # its 12 s, then our own second step


async def test_a_wait_above_the_cap_is_not_waited_for() -> None:
    judge, sleep = ScriptedJudge([JudgeRateLimited("busy", retry_after_s=3600)]), Sleeps()
    with pytest.raises(
        JudgeRateLimited, match=r"asked for a wait of 3600 s, but a retry waits at most 30 s"
    ):
        await ask_with_retries(judge, CALL, RetryPolicy(cap_s=30), sleep=sleep)
    assert (judge.asked, sleep.waits) == (1, [])


async def test_a_wait_of_exactly_the_cap_is_waited_for() -> None:
    judge, sleep = ScriptedJudge([JudgeRateLimited("busy", retry_after_s=30)]), Sleeps()
    await ask_with_retries(judge, CALL, RetryPolicy(cap_s=30), sleep=sleep)
    assert sleep.waits == [30]


async def test_one_attempt_is_no_retry() -> None:
    judge = ScriptedJudge([JudgeTimeout("late; wait")])
    with pytest.raises(JudgeTimeout, match=r"^late; wait$"):
        await ask_with_retries(judge, CALL, RetryPolicy(attempts=1), sleep=Sleeps())


@given(
    attempts=st.integers(1, 6),
    base_s=st.floats(0, 10),
    cap_s=st.floats(0, 60),
    asked=st.lists(st.none() | st.floats(0, 60), max_size=6),
    seed=st.integers(0, 2**32),
)
def test_every_wait_is_between_what_the_server_asks_and_the_cap(
    attempts: int, base_s: float, cap_s: float, asked: list[float | None], seed: int
) -> None:
    sleep = Sleeps()
    judge = ScriptedJudge([JudgeServerError("busy", retry_after_s=wait) for wait in asked])
    policy = RetryPolicy(attempts=attempts, base_s=base_s, cap_s=cap_s)
    asking = ask_with_retries(judge, CALL, policy, sleep=sleep, rng=random.Random(seed))
    try:
        completion = asyncio.run(asking)
    except JudgeServerError:
        assert judge.asked <= attempts
    else:
        assert completion.usage.requests == len(asked) + 1
    assert len(sleep.waits) == judge.asked - 1
    for step, wait in enumerate(sleep.waits):
        least = asked[step] or 0.0
        assert least <= wait <= max(least, min(cap_s, base_s * 2**step)) <= max(cap_s, least)


def test_the_jitter_is_the_callers_random_numbers() -> None:
    policy = RetryPolicy(base_s=1.0)
    first = [policy.wait_s(n, random.Random(5)) for n in range(1, 4)]
    assert first == [policy.wait_s(n, random.Random(5)) for n in range(1, 4)]


@pytest.mark.parametrize(("attempts", "base_s"), [(0, 0.5), (4, -1.0)])
def test_a_policy_that_makes_no_sense_is_refused(attempts: int, base_s: float) -> None:
    with pytest.raises(SettingsError):
        RetryPolicy(attempts=attempts, base_s=base_s)


async def test_cancelling_during_a_wait_ends_it() -> None:
    judge = ScriptedJudge([lost() for _ in range(9)])
    policy = RetryPolicy(base_s=60, cap_s=60)
    asking = asyncio.create_task(ask_with_retries(judge, CALL, policy, rng=Longest()))
    await asyncio.sleep(0.01)
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    assert judge.asked == 1


async def test_a_real_server_that_recovers_is_asked_until_it_does(
    start_server: StartServer,
) -> None:
    busy = error_reply(429, "slow down", headers={"retry-after-ms": "20"})
    server = start_server(in_turn(busy, CLOSE, error_reply(500, "oops"), chat_reply("A")))
    sleep = Sleeps()
    async with OpenAIJudge("m", JudgeOptions(base_url=server.url)) as judge:
        completion = await ask_with_retries(judge, CALL, RetryPolicy(), sleep=sleep)
    assert (completion.text, completion.usage.requests) == ("A", 4)
    assert sleep.waits[0] >= 0.02


async def test_being_told_to_slow_down_is_counted_apart_where_that_is_asked_for() -> None:
    limited = [JudgeRateLimited("slow down") for _ in range(6)]
    policy = RetryPolicy(attempts=2, limited_attempts=8)
    judge = ScriptedJudge([*limited, JudgeServerError("once")])
    await ask_with_retries(judge, CALL, policy, sleep=Sleeps())
    assert judge.asked == 8
    judge = ScriptedJudge([JudgeRateLimited("slow down") for _ in range(9)])
    with pytest.raises(JudgeRateLimited, match="tried 8 times"):
        await ask_with_retries(judge, CALL, policy, sleep=Sleeps())
    judge = ScriptedJudge([*limited, JudgeServerError("once"), JudgeServerError("twice")])
    with pytest.raises(JudgeServerError, match="twice"):
        await ask_with_retries(judge, CALL, policy, sleep=Sleeps())


async def test_patience_lets_a_server_ask_for_longer_than_a_backoff() -> None:
    sleeps = Sleeps()
    judge = ScriptedJudge([JudgeRateLimited("slow down", retry_after_s=60)])
    await ask_with_retries(judge, CALL, RetryPolicy(patience_s=100), sleep=sleeps)
    assert sleeps.waits == [60]
    judge = ScriptedJudge([JudgeRateLimited("slow down", retry_after_s=101)])
    with pytest.raises(JudgeRateLimited, match="but a retry waits at most 100 s"):
        await ask_with_retries(judge, CALL, RetryPolicy(patience_s=100), sleep=sleeps)
