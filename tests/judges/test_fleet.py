"""A fleet as one judge: what goes on to another server, what goes up, and what is told of it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from itertools import cycle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenhand import compare
from evenhand.errors import (
    InputError,
    JudgeAuthentication,
    JudgeConnectionLost,
    JudgeError,
    JudgeGarbled,
    JudgeQuotaExceeded,
    JudgeRateLimited,
    JudgeRejected,
    JudgeServerError,
    JudgeTimeout,
    JudgeUnreachable,
    SettingsError,
)
from evenhand.judges.fleet import FleetJudge
from evenhand.judges.protocol import Completion, Judge, JudgeCall, identity_of, news_lines, news_of
from evenhand.judges.registry import JudgeOptions, open_judge
from explained import mirrored, plain
from fleets import Clock, ScriptedServer
from run_data import adds_up, sums
from scripted import make_pair
from servers import StartServer, chat_reply, error_reply


def call(number: int = 0) -> JudgeCall:
    return JudgeCall(make_pair(prompt=f"question {number}"), "original", 1)


def made(count: int = 3) -> tuple[FleetJudge, list[ScriptedServer], Clock]:
    servers = [ScriptedServer(f"http://gpu-{place}:8000/v1") for place in range(1, count + 1)]
    clock = Clock()
    return FleetJudge(servers, clock=clock), servers, clock


async def asked(fleet: FleetJudge, count: int, *, start: int = 0) -> list[Completion]:
    return [await fleet.ask(call(number)) for number in range(start, start + count)]


async def end_of(fleet: FleetJudge, number: int) -> Completion | JudgeError:
    try:
        return await fleet.ask(call(number))
    except JudgeError as error:
        return error


def refusing(error: Callable[[str], JudgeError], what: str = "no") -> Callable[[], JudgeError]:
    """A new error each time: those that go up are marked on their way."""
    return lambda: error(what)


def limiting(wait_s: float) -> Callable[[], JudgeError]:
    return lambda: JudgeRateLimited("slow down", retry_after_s=wait_s)


async def test_each_call_goes_to_the_least_busy_server() -> None:
    fleet, servers, _ = made()
    await asked(fleet, 30)
    assert [len(server.calls) for server in servers] == [10, 10, 10]
    servers[0].held = asyncio.Event()
    waiting = [asyncio.create_task(fleet.ask(call(number))) for number in range(12)]
    await asyncio.sleep(0)
    # The others answer at once and are idle again, so the busy one gets no second call.
    assert len(servers[0].calls) == 11
    servers[0].held.set()
    await asyncio.gather(*waiting)


@pytest.mark.parametrize(
    "error",
    [
        JudgeUnreachable,
        JudgeConnectionLost,
        JudgeTimeout,
        JudgeServerError,
        JudgeGarbled,
        JudgeRateLimited,
        JudgeAuthentication,
        JudgeQuotaExceeded,
        JudgeRejected,
    ],
)
async def test_what_one_server_fails_another_answers(error: type[JudgeError]) -> None:
    fleet, servers, _ = made()
    servers[0].outcome = refusing(error)
    completion = await fleet.ask(call(0))
    assert completion.text != servers[0].base_url
    assert completion.usage.requests == 2, "the failed one is counted too"


@pytest.mark.parametrize(
    "error",
    [JudgeUnreachable, JudgeConnectionLost, JudgeTimeout, JudgeServerError, JudgeGarbled],
)
async def test_a_server_that_fails_every_call_is_soon_skipped(error: type[JudgeError]) -> None:
    fleet, servers, _ = made()
    servers[1].outcome = refusing(error)
    await asked(fleet, 100)
    assert len(servers[1].calls) == (1 if error is JudgeUnreachable else 3)


@pytest.mark.parametrize("error", [JudgeAuthentication, JudgeQuotaExceeded])
async def test_one_server_that_refuses_the_key_alone_is_skipped_and_reported(
    error: type[JudgeError],
) -> None:
    fleet, servers, _ = made()
    news = news_of(fleet)
    servers[1].outcome = refusing(error, "gpu-2 answered HTTP 401; check the key")
    await asked(fleet, 100)
    assert len(servers[1].calls) == 1
    [told] = news()
    assert str(told) == (
        "openai:m: http://gpu-2:8000/v1 is skipped for now: gpu-2 answered HTTP 401; check the key"
    )


@pytest.mark.parametrize("error", [JudgeAuthentication, JudgeQuotaExceeded])
async def test_a_key_that_all_refuse_is_nobodys_fault(error: type[JudgeError]) -> None:
    fleet, servers, _ = made()
    news = news_of(fleet)
    for server in servers:
        server.outcome = refusing(error, "the key is wrong; check it")
    with pytest.raises(error, match=r"^the key is wrong; check it$") as caught:
        await fleet.ask(call())
    assert caught.value.requests == 3
    assert news() == ()
    for server in servers:
        server.outcome = lambda: None
    await asked(fleet, 30)
    assert all(len(server.calls) > 1 for server in servers)


async def test_a_request_that_three_servers_reject_is_rejected() -> None:
    fleet, servers, _ = made(5)
    await asked(fleet, 30)
    for server in servers:
        server.calls.clear()
        server.outcome = refusing(JudgeRejected, "it is too long; shorten it")
    with pytest.raises(JudgeRejected, match=r"^it is too long; shorten it$") as caught:
        await fleet.ask(call())
    assert caught.value.requests == 3
    assert sum(len(server.calls) for server in servers) == 3


async def test_servers_that_never_answered_do_not_reject_for_the_others() -> None:
    """Two of three serve another model: not one question is lost by that."""
    fleet, servers, _ = made()
    for server in servers[:2]:
        server.outcome = refusing(JudgeRejected, "there is no model m")
    assert {completion.text for completion in await asked(fleet, 60)} == {servers[2].base_url}
    assert [len(server.calls) for server in servers[:2]] == [3, 3]


async def test_what_all_servers_reject_from_the_start_is_rejected() -> None:
    fleet, servers, _ = made()
    for server in servers:
        server.outcome = refusing(JudgeRejected, "there is no model m")
    with pytest.raises(JudgeRejected, match=r"^there is no model m$") as caught:
        await fleet.ask(call())
    assert caught.value.requests == 3


async def test_a_server_that_rejects_what_others_take_is_skipped() -> None:
    """For example, it serves another model."""
    fleet, servers, clock = made()
    servers[1].outcome = refusing(JudgeRejected, "there is no model m")
    for _ in range(100):
        await asked(fleet, 10)
        clock.now += 1.0
    # 3 in a row, then one try after 1, 3, 7, 15, 31, 61 and 91 s.
    assert len(servers[1].calls) == 3 + 7


async def test_what_may_pass_goes_up_before_what_will_not() -> None:
    """One server rejects the question, perhaps for itself alone; the other failed by accident."""
    fleet, servers, _ = made(2)
    servers[0].outcome = refusing(JudgeRejected)
    servers[1].outcome = refusing(JudgeServerError)
    with pytest.raises(JudgeServerError):
        await fleet.ask(call())


async def test_a_text_that_brings_servers_down_meets_three_at_most() -> None:
    fleet, servers, _ = made(6)
    for server in servers:
        server.outcome = refusing(JudgeConnectionLost, "gone")
    with pytest.raises(JudgeConnectionLost) as caught:
        await fleet.ask(call())
    assert caught.value.requests == 3


async def test_a_fleet_that_is_all_gone_says_so_and_is_tried_like_one_server() -> None:
    fleet, servers, _ = made()
    for server in servers:
        server.outcome = refusing(JudgeUnreachable, "cannot connect to gpu; check it")
    with pytest.raises(JudgeUnreachable) as caught:
        await fleet.ask(call())
    assert caught.value.requests == 3
    assert caught.value.message == (
        "none of the 3 servers answered; the last one: cannot connect to gpu; check it"
    )
    with pytest.raises(JudgeUnreachable) as again:
        await fleet.ask(call())
    assert again.value.requests == 1
    for server in servers:
        server.outcome = lambda: None
    assert (await fleet.ask(call())).text


async def test_a_limit_rests_one_server_as_long_as_it_says() -> None:
    fleet, servers, clock = made()
    servers[1].outcome = limiting(20.0)
    await asked(fleet, 100)
    assert len(servers[1].calls) == 1
    servers[1].outcome = lambda: None
    clock.now += 19.9
    await asked(fleet, 30)
    assert len(servers[1].calls) == 1
    clock.now += 0.2
    await asked(fleet, 30)
    assert len(servers[1].calls) > 1


async def test_where_all_are_limited_the_shortest_wait_goes_up() -> None:
    fleet, servers, clock = made()
    for server, wait_s in zip(servers, (30.0, 7.0, 50.0), strict=True):
        server.outcome = limiting(wait_s)
    with pytest.raises(JudgeRateLimited, match="none of the 3 servers answered") as caught:
        await fleet.ask(call())
    assert (caught.value.retry_after_s, caught.value.requests) == (7.0, 3)
    clock.now += 2.0
    with pytest.raises(JudgeRateLimited, match=r"for another 5\.0 s; send fewer") as again:
        await fleet.ask(call())
    assert (again.value.retry_after_s, again.value.requests) == (5.0, 0)


async def test_an_answer_that_announces_a_pause_rests_its_server_alone() -> None:
    fleet, servers, clock = made(2)
    for server in servers:
        server.outcome = lambda: Completion(text="A", pause_s=10.0)
    assert (await fleet.ask(call())).pause_s is None
    clock.now += 4.0
    assert (await fleet.ask(call())).pause_s == 6.0, "until the first may be asked again"
    assert sorted(len(server.calls) for server in servers) == [1, 1]


async def test_a_server_that_is_down_is_tried_by_one_call_at_a_time_until_it_is_back() -> None:
    fleet, servers, clock = made()
    news = news_of(fleet)
    gone = servers[1]
    gone.outcome = refusing(JudgeUnreachable, "cannot connect to gpu-2 (refused); check it")
    for _ in range(20):
        await asked(fleet, 10)
        clock.now += 1.0
    # At once, then after 1, 3, 7 and 15 s: the next try comes after 31.
    assert len(gone.calls) == 5
    clock.now += 11.0
    gone.held = asyncio.Event()
    tries = [asyncio.create_task(fleet.ask(call(number))) for number in range(6)]
    await asyncio.sleep(0)
    assert len(gone.calls) == 6
    gone.outcome = lambda: None
    gone.held.set()
    await asyncio.gather(*tries)
    await asked(fleet, 60)
    assert len(gone.calls) > 20
    assert [str(each) for each in news()] == [
        "openai:m: http://gpu-2:8000/v1 is skipped for now: cannot connect to gpu-2 (refused); "
        "check it",
        "openai:m: http://gpu-2:8000/v1 answers again",
    ]
    assert news() == ()


async def test_calls_in_flight_when_a_server_goes_down_are_one_outage() -> None:
    fleet, servers, clock = made(1)
    servers[0].held = asyncio.Event()
    servers[0].outcome = refusing(JudgeConnectionLost, "gone")
    flying = [asyncio.create_task(end_of(fleet, number)) for number in range(20)]
    await asyncio.sleep(0)
    servers[0].held.set()
    await asyncio.gather(*flying)
    clock.now += 1.0
    servers[0].outcome = lambda: None
    assert (await fleet.ask(call())).text


async def test_a_limit_without_a_time_backs_off_longer_each_time() -> None:
    fleet, servers, clock = made(2)
    servers[1].outcome = refusing(JudgeRateLimited)
    for _ in range(16):
        await asked(fleet, 4)
        clock.now += 1.0
    # At 0, then after 1, 2, 4 and 8 s: at 1, 3, 7 and 15.
    assert len(servers[1].calls) == 5


async def test_a_summary_has_each_line_once_however_often_a_server_goes_and_returns() -> None:
    fleet, servers, clock = made(2)
    news = news_of(fleet)
    for _ in range(3):
        servers[1].outcome = refusing(JudgeUnreachable, "gone")
        await asked(fleet, 10)
        servers[1].outcome = lambda: None
        clock.now += 31
        await asked(fleet, 10)
    assert news_lines([news]) == (
        "openai:m: http://gpu-2:8000/v1 is skipped for now: gone",
        "openai:m: http://gpu-2:8000/v1 answers again",
    )
    assert news_lines([news]) == ()


async def test_a_call_that_is_given_up_leaves_no_trace() -> None:
    fleet, servers, _ = made()
    held = asyncio.Event()
    for server in servers:
        server.held = held
    asking = [asyncio.create_task(fleet.ask(call(number))) for number in range(9)]
    await asyncio.sleep(0)
    for task in asking:
        task.cancel()
    await asyncio.gather(*asking, return_exceptions=True)
    held.set()
    for server in servers:
        server.calls.clear()
    await asked(fleet, 60)
    assert all(len(server.calls) > 5 for server in servers)


ENDS = (
    None,
    *(JudgeUnreachable, JudgeConnectionLost, JudgeTimeout, JudgeServerError, JudgeGarbled),
    *(JudgeRateLimited, JudgeAuthentication, JudgeQuotaExceeded, JudgeRejected),
)


@given(
    st.lists(st.lists(st.sampled_from(ENDS), min_size=1, max_size=8), min_size=2, max_size=4),
    st.lists(st.sampled_from([0.0, 0.3, 1.0, 40.0]), min_size=1, max_size=30),
    st.booleans(),
)
async def test_whatever_servers_do_each_request_is_counted_and_none_is_asked_twice(
    ends: list[list[type[JudgeError] | None]], waits: list[float], one_is_well: bool
) -> None:
    """Each server goes through its own ends, over and over; one more may answer everything."""
    fleet, servers, clock = made(len(ends) + one_is_well)
    for server, its in zip(servers, ends, strict=False):
        turns = cycle(its)
        server.outcome = lambda turns=turns: (  # type: ignore[misc]
            None if (kind := next(turns)) is None else kind("no")
        )
    try:
        for number, wait_s in enumerate(waits):
            before = [len(server.calls) for server in servers]
            end = await end_of(fleet, number)
            if one_is_well and len(ends) < 3:
                assert isinstance(end, Completion)  # two can fail, and the third answers
            told = end.usage.requests if isinstance(end, Completion) else end.requests
            asked = [len(server.calls) - was for server, was in zip(servers, before, strict=True)]
            assert max(asked) <= 1
            assert sum(asked) == told
            clock.now += wait_s
        assert not any(member.in_flight for member in fleet._servers)
    finally:
        await fleet.close()


async def test_the_first_server_names_the_fleet() -> None:
    fleet, servers, _ = made()
    assert fleet.name == "openai:m"
    assert identity_of(fleet) == {"base_url": "http://gpu-1:8000/v1"}
    assert fleet.traits.api_url == "http://gpu-1:8000/v1"
    await fleet.close()
    assert all(server.closed for server in servers)


def opened(*base_urls: str, key: str | None = None) -> Judge:
    return open_judge("openai:m", JudgeOptions(base_url=base_urls, api_key=key))


async def test_a_server_may_grow_into_a_fleet_and_keep_its_identity() -> None:
    alone = opened("http://gpu-1:8000/v1")
    grown = opened("http://gpu-1:8000/v1", "http://gpu-2:8000/v1")
    assert not isinstance(alone, FleetJudge)
    assert isinstance(grown, FleetJudge)
    assert identity_of(grown) == identity_of(alone)
    assert (grown.name, grown.traits) == (alone.name, alone.traits)


def test_one_address_is_no_fleet_and_none_is_none() -> None:
    assert JudgeOptions(base_url=("http://a/v1",)).base_url == "http://a/v1"
    assert JudgeOptions(base_url=()).base_url is None
    several = JudgeOptions(base_url=["http://a/v1", "http://b/v1"])  # type: ignore[arg-type]
    assert several.base_urls == ("http://a/v1", "http://b/v1")


@pytest.mark.parametrize("wrong", [3, ["http://a/v1", 3], ["http://a/v1", " "], {"a": 1}])
def test_what_is_no_address_is_refused(wrong: object) -> None:
    with pytest.raises(InputError, match="base_url must be an address"):
        JudgeOptions(base_url=wrong)  # type: ignore[arg-type]


def test_a_server_named_twice_is_refused() -> None:
    with pytest.raises(SettingsError, match="base URL http://a/v1 is given twice; name each"):
        opened("http://a/v1", "http://user:pass@a/v1/")


@pytest.mark.parametrize("spec", ["anthropic:claude", "local", "baseline:longer", "replay:x"])
def test_other_judges_refuse_several_servers(spec: str) -> None:
    with pytest.raises(InputError, match=f"{spec} takes one base URL, but 2 are given; only"):
        open_judge(spec, JudgeOptions(base_url=("http://a/v1", "http://b/v1")))


def test_no_text_shows_what_the_addresses_hide() -> None:
    judge = opened("https://u:SECRET@a/v1?key=SECRET-Q", "https://u:SECRET@b/v1", key="SECRET-K")
    options = JudgeOptions(base_url=("https://u:SECRET@a/v1", "https://u:SECRET@b/v1"))
    told = repr(judge) + repr(options) + str(identity_of(judge))
    assert "SECRET" not in told
    assert "https://a/v1" in told
    assert "https://b/v1" in told


async def test_comparisons_by_several_servers_mirror_exactly(start_server: StartServer) -> None:
    servers = [start_server(adds_up) for _ in range(3)]
    judge = opened(*(server.url for server in servers))
    try:
        for row in sums(12):
            pair = make_pair(**row)
            swapped = pair.model_copy(
                update={"response_a": pair.response_b, "response_b": pair.response_a}
            )
            one = (await compare(pair, judge)).model_dump(mode="json", by_alias=True)
            other = (await compare(swapped, judge)).model_dump(mode="json", by_alias=True)
            assert mirrored(one) == plain(other)
    finally:
        await judge.close()
    assert sum(len(server.requests) for server in servers) == 48
    assert all(server.requests for server in servers)


async def test_what_one_server_does_not_take_is_asked_of_none(start_server: StartServer) -> None:
    """Both orders of a pair are asked alike: after the first refusal no server gets the schema."""
    refusal = error_reply(400, "response_format is not supported", param="response_format")
    servers = [
        start_server(
            lambda request: (
                refusal
                if request.json.get("response_format", {}).get("type") == "json_schema"
                else chat_reply("A")
            )
        )
        for _ in range(2)
    ]
    judge = opened(*(server.url for server in servers))
    try:
        for number in range(20):
            asked_for = JudgeCall(
                make_pair(prompt=f"{number}"), "original", 1, answer_schema={"type": "object"}
            )
            await judge.ask(asked_for)
    finally:
        await judge.close()
    assert all(server.requests for server in servers)
    assert sum(len(server.requests) for server in servers) == 21
