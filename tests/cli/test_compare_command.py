from __future__ import annotations

import json
from pathlib import Path

import pytest

from command_line import (
    DOCUMENT,
    KEY,
    SUM,
    Command,
    fair,
    follows_place,
    judged_by,
    letters,
    says,
    ties,
)
from scripted import answer_json
from servers import (
    RESET,
    Script,
    StartServer,
    chat_reply,
    error_reply,
    in_turn,
    text_reply,
    token_logprob,
)


def test_better_response_wins_with_the_mean_of_both_confidences(
    command: Command, start_server: StartServer
) -> None:
    server = start_server(fair)
    ran = command("compare", *SUM, *judged_by(server), "--json")
    assert ran.code == 0
    assert ran.err == ""
    verdict = ran.verdict
    assert verdict["winner"] == "A"
    assert verdict["confidence"] == 0.9  # (0.9 + 0.9) / 2
    assert verdict["positionConsistency"] == {
        "firstPassWinner": "A",
        "secondPassWinner": "A",
        "consistent": True,
    }
    assert len(server.requests) == 2
    assert server.wait_until_idle()


@pytest.mark.parametrize(
    ("script", "winner", "outcome"),
    [(fair, "A", "win"), (ties, "TIE", "tie"), (follows_place, "TIE", "inconsistent")],
)
def test_a_win_a_tie_and_an_inconsistent_pair_all_exit_with_0(
    command: Command, start_server: StartServer, script: Script, winner: str, outcome: str
) -> None:
    ran = command("compare", *SUM, *judged_by(start_server(script)), "--json")
    assert ran.code == 0
    assert (ran.verdict["winner"], ran.verdict["metadata"]["outcome"]) == (winner, outcome)


def test_verdict_for_a_person_names_winner_criterion_and_cost(
    command: Command, start_server: StartServer
) -> None:
    ran = command("compare", *SUM, *judged_by(start_server(fair)))
    assert ran.code == 0
    assert ran.out.startswith("Response A is better   confidence 0.90 (stated by the judge)\n")
    assert "both orders agree" in ran.out
    assert "accuracy" in ran.out
    # 11 tokens in and 7 out for each of two requests, as the server counts them.
    assert "22 tokens in, 14 out" in ran.out
    assert "2 requests" in ran.out


def test_inconsistent_pair_says_so_to_a_person(command: Command, start_server: StartServer) -> None:
    ran = command("compare", *SUM, *judged_by(start_server(follows_place)))
    assert ran.out.startswith("Inconsistent: the winner changed with the order   confidence 0.50")
    assert "the orders differ" in ran.out


def test_no_swap_asks_once_and_has_no_position_consistency(
    command: Command, start_server: StartServer
) -> None:
    server = start_server(fair)
    ran = command("compare", *SUM, *judged_by(server), "--no-swap", "--json")
    assert len(server.requests) == 1
    assert "positionConsistency" not in ran.verdict
    assert ran.verdict["metadata"]["positionsSwapped"] is False


def test_no_tie_changes_what_the_judge_is_told_and_refuses_a_tie(
    command: Command, start_server: StartServer
) -> None:
    told, free = start_server(ties), start_server(ties)
    ran = command("compare", *SUM, *judged_by(told), "--no-tie", "--repairs", "0", "--json")
    assert ran.code == 4
    assert ran.failure["kind"] == "invalid"
    command("compare", *SUM, *judged_by(free))
    assert told.requests[0].prompt != free.requests[0].prompt


@pytest.mark.parametrize("option", ["--context", "--reference"])
def test_context_and_reference_reach_the_judge(
    command: Command, start_server: StartServer, option: str
) -> None:
    server = start_server(fair)
    command("compare", *SUM, option, "Seven eights, says the table.", *judged_by(server))
    assert all("Seven eights, says the table." in r.prompt for r in server.requests)


def test_criterion_may_have_a_description_and_keeps_its_place(
    command: Command, start_server: StartServer
) -> None:
    server = start_server(fair)
    more = ("-c", "clarity: easy to follow: at once", "--criterion", "tone")
    ran = command("compare", *SUM, *more, *judged_by(server), "--json")
    assert [c["criterion"] for c in ran.verdict["comparison"]] == ["accuracy", "clarity", "tone"]
    assert "clarity: easy to follow: at once" in server.requests[0].prompt


def test_criterion_that_ends_in_a_colon_is_a_name(
    command: Command, start_server: StartServer
) -> None:
    ran = command("compare", *SUM, "-c", "tone:", *judged_by(start_server(fair)), "--json")
    assert [c["criterion"] for c in ran.verdict["comparison"]] == ["accuracy", "tone:"]


def test_id_comes_back_in_the_metadata(command: Command, start_server: StartServer) -> None:
    ran = command("compare", *SUM, *judged_by(start_server(fair)), "--id", "row 7", "--json")
    assert ran.verdict["metadata"]["id"] == "row 7"


def test_locale_zh_sends_a_chinese_prompt(command: Command, start_server: StartServer) -> None:
    server = start_server(fair)
    ran = command("compare", *SUM, *judged_by(server), "--locale", "zh", "--json")
    assert "响应" in server.requests[0].prompt
    assert ran.verdict["metadata"]["locale"] == "zh"


def test_letter_mode_asks_for_single_tokens_and_decides_on_probabilities(
    command: Command, start_server: StartServer
) -> None:
    server = start_server(letters)
    ran = command("compare", *SUM, *judged_by(server), "--mode", "letter", "--json")
    verdict = ran.verdict
    # Two orders, each with one question for the whole and one for the criterion.
    assert len(server.requests) == 4
    assert all(r.json["max_tokens"] == 1 and r.json["logprobs"] for r in server.requests)
    assert verdict["winner"] == "A"
    assert verdict["metadata"]["mode"] == "letter"
    assert verdict["metadata"]["confidenceSource"] == "logprobs"
    assert verdict["metadata"]["probabilities"]["a"] == pytest.approx(0.8)


def test_agreement_may_be_asked_for_in_letter_mode(
    command: Command, start_server: StartServer
) -> None:
    server = start_server(letters)
    arguments = ("--mode", "letter", "--reconcile", "agreement", "--json")
    ran = command("compare", *SUM, *judged_by(server), *arguments)
    assert ran.verdict["metadata"]["reconcile"] == "agreement"
    assert ran.verdict["metadata"]["probabilities"] is None


def test_averaging_one_stated_verdict_an_order_is_refused(
    command: Command, start_server: StartServer
) -> None:
    server = start_server(fair)
    ran = command("compare", *SUM, *judged_by(server), "--reconcile", "average")
    assert ran.code == 2
    assert "--samples 3" in ran.err
    assert server.requests == []


def test_confidence_from_logprobs_asks_for_them(
    command: Command, start_server: StartServer
) -> None:
    server = start_server(fair)
    command("compare", *SUM, *judged_by(server), "--confidence", "logprobs", "--json")
    assert all(request.json["logprobs"] is True for request in server.requests)


def test_samples_are_taken_in_each_order_at_temperature_1(
    command: Command, start_server: StartServer
) -> None:
    server = start_server(fair)
    ran = command("compare", *SUM, *judged_by(server), "--samples", "3", "--json")
    assert len(server.requests) == 6
    assert {request.json["temperature"] for request in server.requests} == {1.0}
    assert ran.verdict["metadata"]["samples"] == 3


@pytest.mark.parametrize(
    ("arguments", "sent"),
    [
        ((), 0.0),
        (("--samples", "1"), 0.0),
        (("--temperature", "0.3"), 0.3),
        (("--samples", "2", "--temperature", "0"), 0.0),
        (("--samples", "2", "--temperature", "0.5"), 0.5),
    ],
)
def test_temperature_is_0_for_one_sample_and_what_was_given_otherwise(
    command: Command, start_server: StartServer, arguments: tuple[str, ...], sent: float
) -> None:
    server = start_server(fair)
    command("compare", *SUM, *judged_by(server), *arguments)
    assert {request.json["temperature"] for request in server.requests} == {sent}


def test_samples_from_the_config_file_are_taken_at_temperature_1_too(
    command: Command, start_server: StartServer
) -> None:
    (command.directory / "evenhand.toml").write_text("samples = 2\n", encoding="utf-8")
    server = start_server(fair)
    command("compare", *SUM, *judged_by(server))
    assert [request.json["temperature"] for request in server.requests] == [1.0] * 4


def test_max_tokens_reaches_the_wire(command: Command, start_server: StartServer) -> None:
    server = start_server(fair)
    command("compare", *SUM, *judged_by(server), "--max-tokens", "77")
    assert {request.json["max_tokens"] for request in server.requests} == {77}


def test_model_and_key_reach_the_wire(
    command: Command, start_server: StartServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    server = start_server(fair)
    command("compare", *SUM, *judged_by(server))
    assert {request.json["model"] for request in server.requests} == {"loopback"}
    assert {request.headers["authorization"] for request in server.requests} == {f"Bearer {KEY}"}


def test_judge_and_address_come_from_the_environment(
    command: Command, start_server: StartServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = start_server(fair)
    monkeypatch.setenv("EVENHAND_JUDGE", "openai:from-the-environment")
    monkeypatch.setenv("OPENAI_BASE_URL", server.url)
    assert command("compare", *SUM).code == 0
    assert server.requests[0].json["model"] == "from-the-environment"


def test_option_wins_over_the_environment(
    command: Command, start_server: StartServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    server, other = start_server(fair), start_server(fair)
    monkeypatch.setenv("EVENHAND_JUDGE", "openai:other")
    monkeypatch.setenv("OPENAI_BASE_URL", other.url)
    assert command("compare", *SUM, *judged_by(server)).code == 0
    assert server.requests[0].json["model"] == "loopback"
    assert other.requests == []


@pytest.mark.agents
def test_key_of_one_provider_is_not_sent_to_another(
    command: Command, start_server: StartServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    server, elsewhere = start_server(says("{}")), start_server(fair)
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("OPENAI_BASE_URL", elsewhere.url)
    monkeypatch.setenv("ANTHROPIC_API_KEY", "ant-key-for-this-test")
    arguments = ("--judge", "anthropic:claude-test", "--base-url", server.origin)
    command("compare", *SUM, *arguments, "--retries", "0", "--repairs", "0")
    assert server.requests
    assert all(KEY not in str(request.headers) for request in server.requests)
    assert all("ant-key-for-this-test" in str(request.headers) for request in server.requests)
    assert elsewhere.requests == []


def test_template_of_ones_own_is_what_is_sent(
    command: Command, start_server: StartServer, tmp_path: Path
) -> None:
    template = tmp_path / "mine.txt"
    template.write_text(
        "=== user ===\nMY OWN WORDS {prompt} {criteria} {response_a} {response_b} {tie_rule} "
        "{menu}\n",
        encoding="utf-8",
    )
    server = start_server(fair)
    ran = command("compare", *SUM, *judged_by(server), "--template", str(template), "--json")
    assert ran.code == 0, ran.out
    assert all(request.prompt.startswith("MY OWN WORDS") for request in server.requests)
    assert all("response_format" not in request.json for request in server.requests)


def test_protocol_names_how_an_answer_is_read(command: Command, tmp_path: Path) -> None:
    recorded = tmp_path / "recorded.jsonl"
    rows = [
        {"id": "7", "pass": name, "raw": "Both are sums.\n1", "verdict_as_shown": None}
        for name in ("original", "swapped")
    ]
    recorded.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    arguments = ("--judge", f"replay:{recorded}", "--id", "7", "--json")
    ran = command("compare", *SUM, *arguments, "--protocol", "three-class")
    # "1" names the response shown first: A in one order, B in the other.
    assert ran.verdict["metadata"]["outcome"] == "inconsistent"
    assert command("compare", *SUM, *arguments, "--protocol", "mt-bench").code == 4


def test_timeout_is_a_limit_for_one_request(command: Command, start_server: StartServer) -> None:
    from servers import Slow

    server = start_server(lambda request: Slow(20, chat_reply("late")))
    arguments = ("--timeout", "0.2", "--retries", "0", "--json")
    ran = command("compare", *SUM, *judged_by(server), *arguments)
    assert ran.code == 3
    assert ran.failure["kind"] == "judge_timeout"


@pytest.mark.parametrize(("retries", "requests"), [("0", 1), ("1", 2)])
def test_retries_are_further_tries(
    command: Command, start_server: StartServer, retries: str, requests: int
) -> None:
    server = start_server(lambda request: error_reply(503))
    arguments = ("--retries", retries, "--no-swap")
    assert command("compare", *SUM, *judged_by(server), *arguments).code == 3
    assert len(server.requests) == requests


@pytest.mark.parametrize(("repairs", "requests"), [("0", 1), ("2", 3)])
def test_repairs_show_the_judge_its_unreadable_answer(
    command: Command, start_server: StartServer, repairs: str, requests: int
) -> None:
    server = start_server(says("It depends, hard to say."))
    arguments = ("--repairs", repairs, "--no-swap")
    assert command("compare", *SUM, *judged_by(server), *arguments).code == 4
    assert len(server.requests) == requests


def test_identical_responses_are_a_tie_without_a_call_unless_asked(
    command: Command, start_server: StartServer
) -> None:
    server = start_server(ties)
    same = ("-p", "Say hi", "--a", "hi", "--b", "hi", "-c", "tone")
    ran = command("compare", *same, *judged_by(server))
    assert (ran.code, server.requests) == (0, [])
    assert "by rule: the responses are identical" in ran.out
    command("compare", *same, *judged_by(server), "--ask-identical")
    assert len(server.requests) == 2


@pytest.mark.parametrize(
    ("script", "kind"),
    [
        (lambda request: error_reply(401, "no such key"), "judge_authentication"),
        (lambda request: error_reply(403, "not yours"), "judge_authentication"),
        (lambda request: error_reply(500, "on fire"), "judge_server_error"),
        (lambda request: error_reply(429, "slow down"), "judge_rate_limited"),
        (lambda request: error_reply(404, "no such model"), "judge_rejected"),
        (lambda request: text_reply("<html>a log-in page</html>"), "judge_garbled"),
        (lambda request: RESET, "judge_connection_lost"),
    ],
)
def test_judge_that_fails_exits_with_3(
    command: Command, start_server: StartServer, script: Script, kind: str
) -> None:
    server = start_server(script)
    arguments = ("compare", *SUM, *judged_by(server), "--retries", "0")
    ran = command(*arguments, "--json")
    assert (ran.code, ran.failure["kind"]) == (3, kind)
    assert ran.err.count("\n") == 1
    ran = command(*arguments)
    assert (ran.code, ran.out) == (3, "")
    assert ran.err.startswith("error  ")
    assert ran.err.count("\n") == 1


def test_judge_that_is_not_there_exits_with_3(command: Command, start_server: StartServer) -> None:
    server = start_server(fair)
    server.stop()
    ran = command("compare", *SUM, *judged_by(server), "--retries", "0", "--json")
    assert (ran.code, ran.failure["kind"]) == (3, "judge_unreachable")
    assert ran.failure["retryable"] is True


@pytest.mark.parametrize("text", ["", "It depends.", "{", "[[Z]]"])
def test_answer_that_cannot_be_read_exits_with_4(
    command: Command, start_server: StartServer, text: str
) -> None:
    ran = command("compare", *SUM, *judged_by(start_server(says(text))), "--json")
    assert (ran.code, ran.failure["kind"]) == (4, "invalid")
    passes = ran.json["metadata"]["passes"]
    assert [p["unread"]["raw"] for p in passes] == [text, text]


def test_ballot_of_the_other_order_is_kept_and_said_so(
    command: Command, start_server: StartServer
) -> None:
    readable = chat_reply(answer_json("A", criteria=[("accuracy", "A")]))
    script = in_turn(readable, chat_reply("It depends."))
    arguments = ("compare", *SUM, "--repairs", "0")
    ran = command(*arguments, *judged_by(start_server(script)))
    assert ran.code == 4
    error, kept = ran.err.splitlines()
    assert error.startswith("error  no valid verdict")
    assert kept.startswith("kept: ")
    ran = command(*arguments, *judged_by(start_server(script)), "--json")
    assert sum(p["ballot"] is not None for p in ran.json["metadata"]["passes"]) == 1


def test_letter_mode_without_probabilities_exits_with_4(
    command: Command, start_server: StartServer
) -> None:
    server = start_server(says("A"))
    ran = command("compare", *SUM, *judged_by(server), "--mode", "letter", "--json")
    assert (ran.code, ran.failure["kind"]) == (4, "invalid")


def test_without_a_judge_the_remedy_is_named(command: Command) -> None:
    ran = command("compare", *SUM)
    assert ran.code == 2
    assert "EVENHAND_JUDGE" in ran.err


@pytest.mark.parametrize(
    "judge", ["openai", "openai:", "", "nobody:at-home", "replay:missing.jsonl", "baseline:best"]
)
def test_judge_that_does_not_exist_is_bad_input(command: Command, judge: str) -> None:
    ran = command("compare", *SUM, "--judge", judge, "--json")
    assert (ran.code, ran.failure["retryable"]) == (2, False)


@pytest.mark.parametrize("address", ["localhost:1", "ftp://x", "http://", "nonsense"])
def test_address_that_is_none_is_bad_input(command: Command, address: str) -> None:
    ran = command("compare", *SUM, "--judge", "openai:m", "--base-url", address, "--json")
    assert (ran.code, ran.failure["kind"]) == (2, "settings")


def test_caveat_of_a_yardstick_is_said_on_standard_error(command: Command) -> None:
    ran = command("compare", *SUM, "--judge", "baseline:longer", "--json")
    assert ran.code == 0
    assert ran.verdict["metadata"]["judgeCaveat"] in ran.err


@pytest.mark.parametrize(
    "script",
    [
        lambda request: error_reply(401, f"Incorrect API key provided: {KEY}"),
        lambda request: error_reply(400, json.dumps(dict(request.headers))),
        lambda request: error_reply(500, f"Authorization: Bearer {KEY}"),
        lambda request: text_reply(f"<html>{request.headers['authorization']}</html>"),
    ],
)
@pytest.mark.parametrize("as_json", [(), ("--json",)])
def test_key_is_in_no_output_whatever_the_server_says(
    command: Command,
    start_server: StartServer,
    monkeypatch: pytest.MonkeyPatch,
    script: Script,
    as_json: tuple[str, ...],
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    server = start_server(script)
    ran = command("compare", *SUM, *judged_by(server), "--retries", "0", *as_json)
    assert ran.code == 3
    assert server.requests
    assert KEY not in ran.out + ran.err


@pytest.mark.parametrize("as_json", [(), ("--json",)])
@pytest.mark.parametrize("readable", [True, False])
def test_key_that_a_server_says_back_in_its_answer_is_not_passed_on(
    command: Command,
    start_server: StartServer,
    monkeypatch: pytest.MonkeyPatch,
    readable: bool,
    as_json: tuple[str, ...],
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    answer = answer_json("TIE", criteria=[("accuracy", "TIE")], reasoning=f"Your key is {KEY}.")
    server = start_server(says(answer if readable else f"Your key is {KEY}."))
    ran = command("compare", *SUM, *judged_by(server), *as_json)
    assert ran.code == (0 if readable else 4)
    assert "Your key is ***" in ran.out + ran.err
    assert KEY not in ran.out + ran.err


def test_key_with_a_line_break_is_refused_without_showing_it(
    command: Command, start_server: StartServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", f"{KEY}\nX-Injected: yes")
    server = start_server(fair)
    ran = command("compare", *SUM, *judged_by(server), "--json")
    assert ran.code == 2
    assert KEY not in ran.out + ran.err
    assert server.requests == []


def test_password_in_the_address_is_not_shown(command: Command, start_server: StartServer) -> None:
    server = start_server(lambda request: error_reply(401))
    address = server.url.replace("http://", "http://me:hunter2-secret@")
    arguments = ("--judge", "openai:m", "--base-url", address, "--json")
    ran = command("compare", *SUM, *arguments)
    assert ran.code == 3
    assert "hunter2" not in ran.out + ran.err


def test_document_and_options_may_share_the_work(
    command: Command, start_server: StartServer
) -> None:
    part = {key: DOCUMENT[key] for key in ("prompt", "responseA", "responseB")}
    (command.directory / "pair.json").write_text(json.dumps(part), encoding="utf-8")
    ran = command("compare", "pair.json", "-c", "accuracy", *judged_by(start_server(fair)))
    assert ran.code == 0


def test_hidden_probabilities_are_not_needed_for_a_stated_confidence(
    command: Command, start_server: StartServer
) -> None:
    entry = token_logprob("x", -0.1)
    server = start_server(
        lambda request: chat_reply(
            answer_json("TIE", criteria=[("accuracy", "TIE")]), logprobs=[entry]
        )
    )
    ran = command("compare", *SUM, *judged_by(server), "--confidence", "stated", "--json")
    assert ran.verdict["metadata"]["confidenceSource"] == "stated"
    assert all("logprobs" not in request.json for request in server.requests)


@pytest.mark.parametrize("options", [(), ("--mode", "letter")])
def test_output_that_is_no_terminal_has_no_trailing_spaces(
    command: Command, start_server: StartServer, options: tuple[str, ...]
) -> None:
    server = start_server(letters if options else fair)
    ran = command("compare", *SUM, "-c", "tone", *judged_by(server), *options)
    assert ran.code == 0
    assert [line for line in ran.out.splitlines() if line != line.rstrip()] == []


def test_column_for_reasons_is_there_only_where_a_reason_is(
    command: Command, start_server: StartServer
) -> None:
    with_reasons = command("compare", *SUM, *judged_by(start_server(fair))).out
    without = command("compare", *SUM, *judged_by(start_server(letters)), "--mode", "letter").out
    assert "criterion" in with_reasons
    assert " why" in with_reasons
    assert "criterion" in without
    assert " why" not in without


def test_criteria_that_were_not_judged_are_one_line(command: Command) -> None:
    ran = command("compare", *SUM, "-c", "tone", "--judge", "baseline:longer")
    assert "\nno criterion was judged\n" in ran.out
    assert "not judged" not in ran.out
    assert "accuracy" not in ran.out


def test_yardstick_that_may_not_tie_says_why_it_names_nobody(command: Command) -> None:
    ran = command("compare", *SUM, "--no-tie", "--judge", "baseline:longer")
    assert ran.code == 4
    assert "the responses are equally long, but ties are not allowed" in ran.err


def test_a_replayed_judge_needs_no_criteria(command: Command, tmp_path: Path) -> None:
    recorded = tmp_path / "judgments.jsonl"
    rows = [
        {"id": "x", "pass": "original", "raw": "[[A]]", "verdict_as_shown": "A", "model": "m"},
        {"id": "x", "pass": "swapped", "raw": "[[B]]", "verdict_as_shown": "B", "model": "m"},
    ]
    recorded.write_text("\n".join(json.dumps(row) for row in rows))
    arguments = ("compare", "-p", "q", "--a", "1", "--b", "2", "--id", "x")
    ran = command(*arguments, "--judge", f"replay:{recorded}", "--json")
    verdict = json.loads(ran.out)
    assert (ran.code, verdict["winner"], verdict["comparison"]) == (0, "A", [])
    assert command(*arguments, "--judge", "openai:m").code == 2
