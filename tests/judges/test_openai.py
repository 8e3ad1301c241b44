"""What the `openai:` judge sends, what it reads, and how it learns what a server takes."""

from __future__ import annotations

import asyncio
import base64
import dataclasses
import types
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenhand.contract import Criterion, Pair
from evenhand.errors import InputError, JudgeRejected, JudgeServerError, SettingsError
from evenhand.judges.chat_completions import Dialect
from evenhand.judges.openai import OpenAIJudge
from evenhand.judges.protocol import ChatMessage, JudgeCall, Segment, Traits
from evenhand.judges.registry import JudgeOptions, TransportName
from servers import (
    JudgeServer,
    Reply,
    Script,
    SeenRequest,
    StartServer,
    chat_reply,
    error_reply,
    in_turn,
    judge_by,
    text_reply,
    token_logprob,
)

SCHEMA = {"type": "object", "properties": {"winner": {"type": "string"}}}
PAIR = Pair(prompt="p", response_a="a", response_b="b", criteria=(Criterion(name="accuracy"),))


@pytest.fixture
def start_server(start_server: StartServer, transport: TransportName) -> StartServer:
    """What goes over a wire goes by each transport."""
    return start_server


def call(text: str = "Which is better?", **changes: Any) -> JudgeCall:
    asked = JudgeCall(
        pair=PAIR,
        order="original",
        sample=1,
        messages=(
            ChatMessage("system", (Segment("You judge."),)),
            ChatMessage("user", (Segment("Compare: "), Segment(text, judged=True))),
        ),
        answer_schema=SCHEMA,
    )
    return dataclasses.replace(asked, **changes)


def judge_at(server: JudgeServer, **options: Any) -> OpenAIJudge:
    given = {"base_url": server.url, "timeout_s": 10.0, **options}
    return OpenAIJudge("judge-model", JudgeOptions(**given))


async def test_a_key_that_the_server_echoes_is_in_no_completion(start_server: StartServer) -> None:
    key = "key-of-the-test-0123456789"

    def echoes(request: SeenRequest) -> Reply:
        sent = request.headers["authorization"]
        told = [token_logprob(sent, -0.1, {sent: -0.1, "A": -3.0})]
        return chat_reply(
            f"A, said {sent}", refusal=sent, model=sent, request_id=sent, logprobs=told
        )

    server = start_server(echoes)
    async with judge_at(server, api_key=key) as judge:
        answer = await judge.ask(call(logprobs=True))
    assert answer.text == "A, said Bearer ***"
    assert key not in repr(answer)
    url = server.url.replace("://", "://somebody:pass-word-of-one@")
    async with judge_at(server, base_url=url) as judge:
        answer = await judge.ask(call(logprobs=True))
    login = base64.b64encode(b"somebody:pass-word-of-one").decode()
    assert server.requests[-1].headers["authorization"] == f"Basic {login}"
    assert answer.text == "A, said Basic ***"
    assert login not in repr(answer)


async def test_a_reasoned_call_sends_messages_schema_and_limits(start_server: StartServer) -> None:
    server = start_server(in_turn(chat_reply("A")))
    async with judge_at(server, api_key="key-of-the-test", seed=7) as judge:
        await judge.ask(call(sample=3))
    request = server.requests[0]
    assert (request.method, request.path) == ("POST", "/v1/chat/completions")
    assert request.headers["authorization"] == "Bearer key-of-the-test"
    assert request.headers["content-type"] == "application/json"
    assert request.json == {
        "model": "judge-model",
        "messages": [
            {"role": "system", "content": "You judge."},
            {"role": "user", "content": "Compare: Which is better?"},
        ],
        "max_tokens": 4096,
        "temperature": 0.0,
        "seed": 9,  # the third sample: 7 + 3 - 1
        "response_format": {
            "type": "json_schema",
            "json_schema": {"name": "verdict", "strict": True, "schema": SCHEMA},
        },
    }


async def test_what_is_none_is_not_sent(start_server: StartServer) -> None:
    server = start_server(in_turn(chat_reply("A")))
    async with judge_at(server) as judge:
        await judge.ask(call(answer_schema=None))
    assert set(server.requests[0].json) == {"model", "messages", "max_tokens", "temperature"}
    assert "authorization" not in server.requests[0].headers


async def test_a_letter_call_wants_one_token_and_its_probabilities(
    start_server: StartServer,
) -> None:
    entry = token_logprob("A", -0.25, {"A": -0.25, "B": -1.5})
    server = start_server(in_turn(chat_reply("A", finish_reason="length", logprobs=[entry])))
    async with judge_at(server) as judge:
        completion = await judge.ask(call(letters=("A", "B")))
    sent = server.requests[0].json
    assert (sent["max_tokens"], sent["logprobs"], sent["top_logprobs"]) == (1, True, 20)
    assert "response_format" not in sent
    (token,) = completion.logprobs
    assert (token.token, token.logprob, token.top) == ("A", -0.25, (("A", -0.25), ("B", -1.5)))


async def test_a_reasoned_call_may_want_log_probabilities_too(start_server: StartServer) -> None:
    server = start_server(in_turn(chat_reply("A")))
    async with judge_at(server) as judge:
        completion = await judge.ask(call(logprobs=True))
    sent = server.requests[0].json
    assert (sent["logprobs"], sent["top_logprobs"], sent["max_tokens"]) == (True, 20, 4096)
    assert "response_format" in sent
    assert completion.logprobs == ()  # the server gave none


async def test_the_completion_carries_text_usage_model_and_id(start_server: StartServer) -> None:
    usage = {
        "prompt_tokens": 100,
        "completion_tokens": 20,
        "prompt_tokens_details": {"cached_tokens": 64},
    }
    server = start_server(
        in_turn(chat_reply(" {} \n", usage=usage, model="m-2026", request_id="id-1"))
    )
    async with judge_at(server) as judge:
        completion = await judge.ask(call())
    assert (completion.text, completion.finish, completion.thought) == (" {} \n", "stop", False)
    assert (completion.model, completion.request_id) == ("m-2026", "id-1")
    read = completion.usage
    assert (read.input_tokens, read.output_tokens, read.cached_input_tokens) == (100, 20, 64)
    assert (read.requests, read.cost_usd) == (1, None)


async def test_usage_that_the_server_does_not_tell_is_none(start_server: StartServer) -> None:
    body = {"choices": [{"message": {"content": "A"}, "finish_reason": "stop"}], "usage": None}
    server = start_server(in_turn(Reply(body, headers={"x-request-id": "header-id"})))
    async with judge_at(server) as judge:
        completion = await judge.ask(call())
    assert (completion.usage.input_tokens, completion.usage.output_tokens) == (None, None)
    assert (completion.model, completion.request_id) == (None, "header-id")


@pytest.mark.parametrize(
    ("reason", "finish"),
    [
        ("stop", "stop"),
        ("length", "length"),
        ("content_filter", "filter"),
        ("tool_calls", "other"),
        (None, "other"),
    ],
)
async def test_finish_reasons_are_mapped(
    start_server: StartServer, reason: str | None, finish: str
) -> None:
    server = start_server(in_turn(chat_reply("A", finish_reason=reason)))
    async with judge_at(server) as judge:
        assert (await judge.ask(call())).finish == finish


async def test_content_in_parts_is_joined(start_server: StartServer) -> None:
    parts = [{"type": "text", "text": "A is "}, {"type": "image"}, {"type": "text", "text": "best"}]
    server = start_server(in_turn(chat_reply(parts)))
    async with judge_at(server) as judge:
        assert (await judge.ask(call())).text == "A is best"


def tool_call(arguments: object) -> dict[str, object]:
    return {"type": "function", "function": {"name": "verdict", "arguments": arguments}}


@pytest.mark.parametrize(
    ("calls", "kept"),
    [
        ([tool_call('{"winner": "A"}')], '{"winner": "A"}'),
        ([tool_call({"winner": "A"})], '{"winner":"A"}'),
        (
            [tool_call('{"winner": "A"}'), tool_call('{"winner": "B"}')],
            '{"winner": "A"}\n{"winner": "B"}',
        ),
        *[([None, {}, tool_call(None)], None), ("no list", None)],
    ],
)
async def test_what_a_tool_was_called_with_is_kept(
    start_server: StartServer, calls: object, kept: str | None
) -> None:
    server = start_server(in_turn(chat_reply(None, message={"tool_calls": calls})))
    async with judge_at(server) as judge:
        completion = await judge.ask(call())
    assert (completion.text, completion.tool_arguments) == ("", kept)


async def test_a_refusal_is_told_as_one(start_server: StartServer) -> None:
    server = start_server(in_turn(chat_reply(None, refusal="I cannot judge this.")))
    async with judge_at(server) as judge:
        completion = await judge.ask(call())
    assert (completion.text, completion.finish) == ("", "refusal")
    assert completion.refusal == "I cannot judge this."


@pytest.mark.parametrize(
    "extras",
    [
        {"usage": {"completion_tokens_details": {"reasoning_tokens": 4096}}},
        {"message": {"reasoning_content": "Let me think"}},
        {"message": {"reasoning": "Let me think"}},
    ],
)
async def test_thinking_that_ate_the_limit_shows(
    start_server: StartServer, extras: dict[str, Any]
) -> None:
    server = start_server(in_turn(chat_reply(None, finish_reason="length", **extras)))
    async with judge_at(server) as judge:
        completion = await judge.ask(call())
    assert (completion.text, completion.finish, completion.thought) == ("", "length", True)


@pytest.mark.parametrize("choices", [[], [{}], [{"message": None}], ["A"]])
async def test_a_completion_without_a_message_is_an_empty_one(
    start_server: StartServer, choices: list[Any]
) -> None:
    server = start_server(in_turn(Reply({"choices": choices})))
    async with judge_at(server) as judge:
        completion = await judge.ask(call())
    assert (completion.text, completion.finish, completion.usage.requests) == ("", "other", 1)


async def test_half_a_surrogate_pair_and_infinity_are_survived(start_server: StartServer) -> None:
    body = (
        rb'{"choices": [{"message": {"content": "A \ud83d"}, "finish_reason": "stop",'
        rb' "logprobs": {"content": [{"token": "A", "logprob": -0.5, "top_logprobs":'
        rb' [{"token": "A", "logprob": -0.5}, {"token": "B", "logprob": -Infinity}]}]}}]}'
    )
    server = start_server(in_turn(Reply(body)))
    async with judge_at(server) as judge:
        completion = await judge.ask(call())
    assert completion.text == "A \ufffd"
    assert completion.logprobs[0].top == (("A", -0.5),)


async def test_a_prompt_above_a_mebibyte_arrives_whole(start_server: StartServer) -> None:
    text = "长" * 700_000  # 2.1 million bytes
    server = start_server(judge_by(lambda messages: str(len(messages[1]["content"]))))
    async with judge_at(server) as judge:
        completion = await judge.ask(call(text))
    assert completion.text == str(len("Compare: ") + 700_000)


async def test_a_schema_may_be_any_mapping(start_server: StartServer) -> None:
    server = start_server(in_turn(chat_reply("A")))
    async with judge_at(server) as judge:
        await judge.ask(call(answer_schema=types.MappingProxyType(SCHEMA)))
    assert server.requests[0].json["response_format"]["json_schema"]["schema"] == SCHEMA


async def test_connections_are_kept_and_shared(start_server: StartServer) -> None:
    server = start_server(in_turn(chat_reply("A")))
    async with judge_at(server) as judge:
        for _ in range(5):
            await judge.ask(call())
        assert server.open_connections == 1
    assert server.wait_until_idle()


# What a server refuses


def refusing(*features: str, status: int = 400, name_param: bool = True) -> Script:
    """A server that takes none of these parameters and says which one it met."""

    def script(request: SeenRequest) -> Reply:
        for feature in features:
            if feature in request.json:
                return error_reply(
                    status,
                    f"Unsupported parameter: '{feature}' is not supported with this model.",
                    param=feature if name_param else None,
                )
        return chat_reply("A")

    return script


def taking(takes: Callable[[dict[str, Any]], bool], refusal: Reply) -> Script:
    return lambda request: chat_reply("A") if takes(request.json) else refusal


async def test_a_server_without_schemas_gets_json_mode_and_then_text(
    start_server: StartServer,
) -> None:
    server = start_server(refusing("response_format"))
    async with judge_at(server) as judge:
        first = await judge.ask(call())
        second = await judge.ask(call())
    formats = [r.json.get("response_format", {}).get("type") for r in server.requests]
    assert formats == ["json_schema", "json_object", None, None]
    assert (first.usage.requests, second.usage.requests) == (3, 1)


async def test_json_mode_is_kept_where_it_works(start_server: StartServer) -> None:
    def takes(request: dict[str, Any]) -> bool:
        return bool(request["response_format"]["type"] == "json_object")

    server = start_server(taking(takes, error_reply(400, "json_schema is not available")))
    async with judge_at(server) as judge:
        counts = [(await judge.ask(call())).usage.requests for _ in range(3)]
    assert counts == [2, 1, 1]


@pytest.mark.parametrize("status", [400, 404, 422, 500, 501])
@pytest.mark.parametrize("name_param", [True, False])
@pytest.mark.parametrize("feature", ["temperature", "seed", "logprobs", "max_tokens"])
async def test_one_refused_parameter_is_left_out_from_then_on(
    start_server: StartServer, feature: str, status: int, name_param: bool
) -> None:
    server = start_server(refusing(feature, status=status, name_param=name_param))
    async with judge_at(server, seed=1) as judge:
        await judge.ask(call(logprobs=True))
        await judge.ask(call(logprobs=True))
    refused = [r for r in server.requests if feature in r.json]
    # Log-probabilities are first asked for in a smaller number: 20, then 5.
    assert len(refused) == (2 if feature == "logprobs" else 1)
    assert len(server.requests) == len(refused) + 2
    others = {"temperature", "seed", "logprobs", "response_format"} - {feature}
    assert others <= set(server.requests[-1].json)


async def test_the_other_name_of_the_limit_is_found_and_kept(start_server: StartServer) -> None:
    server = start_server(
        taking(
            lambda request: "max_completion_tokens" in request,
            error_reply(
                400,
                "Unsupported parameter: 'max_tokens' is not supported with this model. "
                "Use 'max_completion_tokens' instead.",
                param="max_tokens",
                code="unsupported_parameter",
            ),
        )
    )
    async with judge_at(server, max_tokens=300) as judge:
        await judge.ask(call())
        await judge.ask(call())
    limits = [
        (r.json.get("max_tokens"), r.json.get("max_completion_tokens")) for r in server.requests
    ]
    assert limits == [(300, None), (None, 300), (None, 300)]


async def test_no_limit_is_sent_where_the_server_takes_neither_name(
    start_server: StartServer,
) -> None:
    server = start_server(refusing("max_tokens", "max_completion_tokens"))
    async with judge_at(server) as judge:
        completion = await judge.ask(call())
    assert completion.usage.requests == 3
    assert not {"max_tokens", "max_completion_tokens"} & set(server.requests[-1].json)


async def test_a_smaller_number_of_log_probabilities_is_tried(start_server: StartServer) -> None:
    server = start_server(
        taking(
            lambda request: request.get("top_logprobs", 0) <= 5,
            error_reply(400, "Requested logprobs of 20, which is greater than max allowed: 5"),
        )
    )
    async with judge_at(server) as judge:
        await judge.ask(call(letters=("A", "B")))
        await judge.ask(call(letters=("A", "B")))
    assert [r.json["top_logprobs"] for r in server.requests] == [20, 5, 5]


@pytest.mark.parametrize(
    "body",
    [
        {"detail": [{"type": "extra_forbidden", "loc": ["body", "seed"], "msg": "not permitted"}]},
        {"object": "error", "message": {"detail": [{"loc": ["body", "seed"], "msg": "no"}]}},
        {"error": "unknown field seed"},
        {"message": "seed: extra field", "error": "Bad Request", "statusCode": 400},
        [{"error": {"code": 400, "message": 'Unknown name "seed"', "status": "INVALID_ARGUMENT"}}],
        {
            "error": {
                "message": "Provider returned error",
                "code": 400,
                "metadata": {"raw": '{"message": "seed is not supported"}'},
            }
        },
    ],
)
async def test_a_refusal_is_understood_in_each_servers_shape(
    start_server: StartServer, body: Any
) -> None:
    server = start_server(
        lambda request: Reply(body, status=400) if "seed" in request.json else chat_reply("A")
    )
    async with judge_at(server, seed=1) as judge:
        assert (await judge.ask(call())).usage.requests == 2


async def test_an_error_inside_a_success_counts_as_a_refusal_too(
    start_server: StartServer,
) -> None:
    refusal = Reply({"error": {"code": 400, "message": "temperature is not supported"}})
    server = start_server(taking(lambda request: "temperature" not in request, refusal))
    async with judge_at(server) as judge:
        assert (await judge.ask(call())).text == "A"


async def test_an_unexplained_refusal_steps_the_format_down_and_keeps_what_worked(
    start_server: StartServer,
) -> None:
    server = start_server(
        taking(
            lambda request: "response_format" not in request, text_reply("bad request", status=400)
        )
    )
    async with judge_at(server) as judge:
        counts = [(await judge.ask(call())).usage.requests for _ in range(2)]
    assert counts == [3, 1]


async def test_an_unexplained_refusal_that_stays_raises_the_first_and_teaches_nothing(
    start_server: StartServer,
) -> None:
    def script(request: SeenRequest) -> Reply:
        if "poison" in request.prompt:
            return error_reply(400, f"no idea, number {request.count}")
        return chat_reply("A")

    server = start_server(script)
    async with judge_at(server) as judge:
        with pytest.raises(JudgeRejected, match="no idea, number 1;") as caught:
            await judge.ask(call("poison"))
        await judge.ask(call())
    formats = [r.json.get("response_format", {}).get("type") for r in server.requests]
    assert formats == ["json_schema", "json_object", None, "json_schema"]
    assert caught.value.requests == 3


async def test_a_server_error_that_names_a_parameter_teaches_nothing_unless_that_was_it(
    start_server: StartServer,
) -> None:
    server = start_server(in_turn(*[error_reply(500, "the grammar crashed")] * 3, chat_reply("A")))
    async with judge_at(server) as judge:
        with pytest.raises(JudgeServerError, match="the grammar crashed"):
            await judge.ask(call())
        await judge.ask(call())
    assert server.requests[-1].json["response_format"]["type"] == "json_schema"


async def test_an_unknown_model_is_not_mistaken_for_a_refused_parameter(
    start_server: StartServer,
) -> None:
    server = start_server(
        in_turn(error_reply(400, "The model does not exist", param="model", code="model_not_found"))
    )
    async with judge_at(server) as judge:
        with pytest.raises(JudgeRejected, match="'judge-model'"):
            await judge.ask(call())
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    "message",
    [
        "This model's maximum context length is 8192 tokens, you asked for 9000 (max_tokens)",
        "the request exceeds the available context size, try increasing it",
        "Your input exceeds the context window of this model.",
        "Too many tokens in the prompt",
    ],
)
async def test_a_prompt_that_is_too_long_is_told_at_once_with_a_remedy(
    start_server: StartServer, message: str
) -> None:
    server = start_server(in_turn(error_reply(400, message)))
    async with judge_at(server) as judge:
        with pytest.raises(JudgeRejected, match="shorten the prompt or the responses"):
            await judge.ask(call())
    assert len(server.requests) == 1


async def test_a_prompt_that_a_filter_stops_is_this_passs_answer(start_server: StartServer) -> None:
    server = start_server(
        in_turn(error_reply(400, "The prompt triggered the policy", code="content_filter"))
    )
    async with judge_at(server) as judge:
        completion = await judge.ask(call())
    assert (completion.text, completion.finish) == ("", "filter")
    assert completion.refusal == "The prompt triggered the policy"
    assert len(server.requests) == 1


async def test_fifty_calls_at_once_each_learn_and_then_nothing_is_refused(
    start_server: StartServer,
) -> None:
    refuse = refusing("temperature", "seed", "max_tokens", "top_logprobs", "response_format")
    server = start_server(refuse)
    async with judge_at(server, seed=1) as judge:
        answers = await asyncio.gather(*(judge.ask(call(logprobs=True)) for _ in range(50)))
        learning = len(server.requests)
        again = await asyncio.gather(*(judge.ask(call(logprobs=True)) for _ in range(50)))
    assert {answer.text for answer in answers} == {"A"}
    assert sum(answer.usage.requests for answer in answers) == learning
    # Seven rungs at most (1 temperature, 1 seed, 1 limit, 2 top_logprobs, 2 formats) and a success.
    assert max(answer.usage.requests for answer in answers) <= 8
    assert {answer.usage.requests for answer in again} == {1}
    assert len(server.requests) == learning + 50
    kept = set(server.requests[-1].json)
    assert kept == {"model", "messages", "max_completion_tokens"}


async def test_a_server_that_refuses_everything_is_not_asked_for_ever(
    start_server: StartServer,
) -> None:
    names = "response_format temperature seed max_tokens max_completion_tokens top_logprobs"
    server = start_server(in_turn(error_reply(400, f"will not take {names}")))
    async with judge_at(server, seed=1) as judge:
        with pytest.raises(JudgeRejected):
            await judge.ask(call(logprobs=True))
    # Eight rungs (2 formats, 2 limits, 2 log-probabilities, temperature, seed) and the bare call.
    assert len(server.requests) == 9


@given(
    st.tuples(*[st.integers(0, 2)] * 5),
    st.tuples(*[st.integers(0, 2)] * 5),
    st.tuples(*[st.integers(0, 2)] * 5),
)
def test_what_calls_learn_is_joined_in_any_order(
    a: tuple[int, ...], b: tuple[int, ...], c: tuple[int, ...]
) -> None:
    x, y, z = Dialect(*a), Dialect(*b), Dialect(*c)
    assert x.joined(y) == y.joined(x)
    assert x.joined(y).joined(z) == x.joined(y.joined(z))
    assert x.joined(x) == x


# Options


def test_the_judge_is_named_for_its_model() -> None:
    judge = OpenAIJudge("gpt-x")
    assert judge.name == "openai:gpt-x"
    assert judge.base_url == "https://api.openai.com/v1"
    assert judge.traits == Traits(modes=("reasoned", "letter"), api_url=judge.base_url)


def test_what_the_options_leave_open_is_this_judges_default() -> None:
    unset = {"temperature": 0.0, "max_tokens": 4096, "seed": None}
    assert OpenAIJudge("m").identity == {"base_url": "https://api.openai.com/v1", **unset}
    assert OpenAIJudge("m").timeout_s == 120.0
    told = JudgeOptions(base_url="http://h/v1", timeout_s=5.0, max_tokens=9, temperature=0.5)
    judge = OpenAIJudge("m", told)
    given = {"temperature": 0.5, "max_tokens": 9, "seed": None}
    assert judge.identity == {"base_url": "http://h/v1", **given}
    assert judge.timeout_s == 5.0


@pytest.mark.parametrize(
    ("given_url", "shown"),
    [
        ("http://h:8080/v1///", "http://h:8080/v1"),
        ("http://h/v1/chat/completions", "http://h/v1"),
        ("https://user:hunter22@h/v1", "https://h/v1"),
        ("https://h/openai?api-version=2026", "https://h/openai"),
    ],
)
def test_the_base_url_is_tidied(given_url: str, shown: str) -> None:
    assert OpenAIJudge("m", JudgeOptions(base_url=given_url)).base_url == shown


async def test_a_query_in_the_base_url_is_sent_along(start_server: StartServer) -> None:
    server = start_server(in_turn(chat_reply("A")))
    async with judge_at(server, base_url=f"{server.url}/?api-version=2026-01-01") as judge:
        await judge.ask(call())
    assert server.requests[0].target == "/v1/chat/completions?api-version=2026-01-01"


@pytest.mark.parametrize(
    "base_url", ["localhost:8000/v1", "ftp://h/v1", "http://", "http://u:pa/ss@h", "http://h:x"]
)
def test_a_base_url_that_cannot_be_called_is_refused_without_showing_a_password(
    base_url: str,
) -> None:
    with pytest.raises(SettingsError, match="is not an http") as caught:
        OpenAIJudge("m", JudgeOptions(base_url=base_url))
    assert "pa/ss" not in str(caught.value)


async def test_credentials_in_the_url_are_sent_only_without_a_key(
    start_server: StartServer,
) -> None:
    server = start_server(in_turn(chat_reply("A")))
    with_login = server.url.replace("//", "//ann:p%40ss@")
    for api_key in (None, "the-key-itself"):
        async with judge_at(server, base_url=with_login, api_key=api_key) as judge:
            await judge.ask(call())
    sent = [request.headers["authorization"] for request in server.requests]
    assert sent == [
        "Basic " + base64.b64encode(b"ann:p@ss").decode(),
        "Bearer the-key-itself",
    ]


@pytest.mark.parametrize("key", ["sk-line\nbreak", "sk-ключ", "sk-tail ", "a\x00b"])
def test_a_key_that_no_header_can_hold_is_refused_without_being_shown(key: str) -> None:
    with pytest.raises(SettingsError, match="OPENAI_API_KEY") as caught:
        OpenAIJudge("m", JudgeOptions(api_key=key))
    assert key.strip() not in str(caught.value)


@pytest.mark.parametrize(
    "wrong",
    [
        {"timeout_s": 0},
        {"timeout_s": float("inf")},
        {"max_tokens": 0},
        {"temperature": -0.1},
        {"temperature": float("nan")},
    ],
)
def test_an_option_out_of_range_is_named(wrong: dict[str, Any]) -> None:
    (name,) = wrong
    with pytest.raises(InputError, match=name):
        JudgeOptions(**wrong)


def test_an_empty_model_is_refused() -> None:
    with pytest.raises(SettingsError, match="model"):
        OpenAIJudge(" ")


def test_neither_key_nor_password_shows_in_a_repr() -> None:
    options = JudgeOptions(
        base_url="https://ann:hunter22@h/v1?token=abcdefgh", api_key="sk-very-secret-key"
    )
    shown = repr(options) + repr(OpenAIJudge("m", options)) + str(options)
    assert "https://h/v1" in shown
    for secret in ("hunter22", "sk-very-secret-key", "abcdefgh"):
        assert secret not in shown


@pytest.mark.parametrize(
    ("headers", "pause_s"),
    [
        ({}, None),
        ({"x-ratelimit-remaining-requests": "3", "x-ratelimit-reset-requests": "9s"}, None),
        ({"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "1m30s"}, 90.0),
        ({"X-RateLimit-Remaining-Tokens": "0", "X-RateLimit-Reset-Tokens": "250ms"}, 0.25),
        (
            {
                "x-ratelimit-remaining-requests": "0",
                "x-ratelimit-reset-requests": "2s",
                "x-ratelimit-remaining-tokens": "0",
                "x-ratelimit-reset-tokens": "6s",
            },
            6.0,  # both are used up: the longer
        ),
        ({"x-ratelimit-remaining-requests": "0"}, None),
        ({"x-ratelimit-remaining-tokens": "0", "x-ratelimit-reset-tokens": "soon"}, None),
        ({"x-ratelimit-remaining-tokens": "none", "x-ratelimit-reset-tokens": "6s"}, None),
    ],
)
async def test_an_answer_says_for_how_long_nothing_is_left(
    start_server: StartServer, headers: dict[str, str], pause_s: float | None
) -> None:
    server = start_server(in_turn(chat_reply("A", headers=headers)))
    async with judge_at(server) as judge:
        assert (await judge.ask(call())).pause_s == pause_s
