"""`evenhand criteria suggest`, by a judge on the loopback that knows four criteria."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import evenhand
from command_line import Command
from evenhand.contract import read_criteria
from evenhand.data.source import Source
from evenhand.errors import JudgeUnreadable
from evenhand.runs.criteria import half_of, read_criteria_data
from run_data import write_lines
from scripted import answer_json
from servers import JudgeServer, Reply, SeenRequest, StartServer, chat_reply, error_reply

SUGGESTED = (
    ("correctness", "Is every statement true?"),
    ("detail", "Does it say more?"),
    ("politeness", "Is it friendly?"),
    ("style", "Does it read well?"),
)
PAIRS = 80


def is_suggestion(request: SeenRequest) -> bool:
    return "Write the criteria" in request.prompt


def suggestion(criteria: Any = SUGGESTED) -> str:
    listed = [{"name": name, "description": text} for name, text in criteria]
    return json.dumps({"criteria": listed})


def texts(number: int) -> tuple[str, str]:
    """The good answer, and the poor one; the good one is the longer in eight of ten."""
    good, poor = f"right {number}.", f"wrong {number}."
    longer = " And more of it, at length."
    return (good + longer, poor) if number % 10 < 8 else (good, poor + longer)


def judge(suggests: str | None = None) -> Callable[[SeenRequest], Reply]:
    """By correctness the good one wins, but for one in ten; by detail the longer; by politeness
    neither; by style whichever the number says."""

    def script(request: SeenRequest) -> Reply:
        if is_suggestion(request):
            return chat_reply(suggestion() if suggests is None else suggests)
        # The user's message holds the pair; the words "right" and "wrong" stand in no template.
        user = request.messages[-1]["content"]
        found = re.search(r"\b(right|wrong) (\d+)\.", user)
        assert found is not None
        number, good_first = int(found[2]), found[1] == "right"

        def shown(good: bool) -> str:
            return "A" if good == good_first else "B"

        by = {
            "correctness": shown(number % 10 != 9),
            "detail": shown(number % 10 < 8),
            "politeness": "TIE",
            "style": shown(number % 2 == 0),
        }
        named = re.findall(r"^\d+\. (\w+)", user, re.MULTILINE) or list(by)
        listed = [(name, by[name]) for name in by if name in named or name in user]
        return chat_reply(answer_json(by["correctness"], criteria=listed))

    return script


def write_pairs(directory: Path, *, labels: bool = True, count: int = PAIRS) -> None:
    rows = []
    for number in range(count):
        good, poor = texts(number)
        first, second, label = (good, poor, "A") if number % 3 else (poor, good, "B")
        row = {"id": f"p{number}", "prompt": f"Question {number}?"}
        row |= {"response_a": first, "response_b": second}
        rows.append(row | ({"label": label} if labels else {}))
    write_lines(directory / "data.jsonl", rows)


def write_prompts(directory: Path) -> None:
    rows = [{"prompt": f"Question {number}?"} for number in range(50)]
    write_lines(directory / "data.jsonl", rows)


def suggest(command: Command, server: JudgeServer, *more: str) -> Any:
    return command(
        *("criteria", "suggest", "data.jsonl", "--judge", "openai:judge"),
        *("--base-url", server.url, "--store", "s.db", "--yes", *more),
    )


def test_prompts_alone_give_suggestions_that_can_be_pasted(
    command: Command, start_server: StartServer
) -> None:
    write_prompts(command.directory)
    server = start_server(judge())
    ran = suggest(command, server, "--prompts", "7", "--output", "criteria.json")
    assert ran.code == 0
    assert ran.out.startswith("criteria by openai:judge from 7 of 50 prompts\n")
    (asked,) = server.requests
    assert len(re.findall(r"^Question \d+\?$", asked.prompt, re.MULTILINE)) == 7
    wanted = read_criteria([{"name": name, "description": text} for name, text in SUGGESTED])
    lines = ran.out[ran.out.index("criteria = [") :]
    pasted = tomllib.loads(lines[: lines.index("\n]") + 2])
    assert read_criteria(pasted["criteria"]) == wanted
    assert "-c 'correctness: Is every statement true?'" in ran.out
    written = json.loads((command.directory / "criteria.json").read_text())
    assert read_criteria(written) == wanted
    assert not (command.directory / "s.db").exists()


def test_the_same_seed_shows_the_same_prompts_and_another_one_others(
    command: Command, start_server: StartServer
) -> None:
    write_prompts(command.directory)
    server = start_server(judge())
    for seed in ("1", "1", "2"):
        suggest(command, server, "--prompts", "5", "--seed", seed)
    first, again, other = (request.prompt for request in server.requests)
    assert first == again
    assert first != other


def test_labels_keep_what_agrees_with_people_on_unseen_prompts(
    command: Command, start_server: StartServer
) -> None:
    write_pairs(command.directory)
    server = start_server(judge())
    ran = suggest(command, server, "--json")
    assert ran.code == 0
    found = {each["name"]: each for each in ran.json["criteria"]}
    assert {name: each["status"] for name, each in found.items()} == {
        "correctness": "kept",
        "detail": "dropped",
        "politeness": "dropped",
        "style": "undecided",
    }
    halves = {
        half: [n for n in range(PAIRS) if half_of(f"Question {n}?", seed=0) == half]
        for half in ("choosing", "unseen")
    }
    for half in ("choosing", "unseen"):
        own = found["correctness"][half]
        right = sum(number % 10 != 9 for number in halves[half])
        assert own["pairs"] == own["prompts"] == len(halves[half])
        assert own["agreement"]["value"] == pytest.approx(right / len(halves[half]))
        longer = sum(number % 10 < 8 for number in halves[half])
        assert own["longer"] == pytest.approx(longer / len(halves[half]))
    reasons = {name: found[name]["reason"] for name in ("detail", "politeness", "style")}
    assert reasons["detail"].startswith(
        "agrees with people no more than picking the longer response would: "
    )
    assert reasons["politeness"].startswith("agrees with people no more than a coin flip would: ")
    assert reasons["style"].startswith("too few labels: ")
    assert found["style"]["unseen"] is None
    # Prompts that the kept criteria are measured on were not shown to whoever suggested them.
    (asked,) = [request for request in server.requests if is_suggestion(request)]
    shown = {int(each) for each in re.findall(r"^Question (\d+)\?$", asked.prompt, re.MULTILINE)}
    assert shown <= set(halves["choosing"])
    assert len(server.requests) == 1 + 2 * PAIRS


def test_tags_of_the_data_named_like_a_half_are_in_no_half(tmp_path: Path) -> None:
    rows = [
        {"prompt": f"Question {n}?", "response_a": "yes", "response_b": "no", "label": "A"}
        | {"tags": ["unseen", "choosing", "maths"]}
        for n in range(20)
    ]
    write_lines(tmp_path / "data.jsonl", rows)
    found = read_criteria_data(Source(tmp_path / "data.jsonl", "data.jsonl")).rows
    assert len(found) == 20
    for row in found:
        assert row["tags"] == ["maths", half_of(row["prompt"], seed=0)]


def test_the_same_command_goes_on_with_the_criteria_it_began_with(
    command: Command, start_server: StartServer
) -> None:
    write_pairs(command.directory, count=30)
    answers = judge()

    def failing(request: SeenRequest) -> Reply:
        if request.count > 20:
            return error_reply(401, "no more")
        return answers(request)

    server = start_server(failing)
    assert suggest(command, server, "--retries", "0").code == 3
    healthy = start_server(judge(suggestion([("another", "Not the first.")])))
    ran = command(
        *("criteria", "suggest", "data.jsonl", "--judge", "openai:judge", "--json"),
        *("--base-url", healthy.url, "--store", "s.db", "--yes", "--name", "mine"),
    )
    assert [each["name"] for each in ran.json["criteria"]] == ["another"]
    first = suggest(command, server, "--retries", "0")
    assert first.code == 3
    assert sum(is_suggestion(request) for request in server.requests) == 1


def test_a_finished_suggestion_asks_nothing_again(
    command: Command, start_server: StartServer
) -> None:
    write_pairs(command.directory, count=20)
    server = start_server(judge())
    first = suggest(command, server)
    asked = len(server.requests)
    assert suggest(command, server).out == first.out
    assert len(server.requests) == asked


def test_few_labels_say_that_nothing_can_be_said(
    command: Command, start_server: StartServer
) -> None:
    write_pairs(command.directory, count=8)
    ran = suggest(command, start_server(judge()))
    assert ran.code == 0
    out = " ".join(ran.out.split())
    assert "too few labels: " in out
    assert (
        "no criterion could be confirmed: too few labels; treat these as suggestions, and label "
        "more"
    ) in out
    assert "criteria = [" not in ran.out


def test_pairs_are_bounded_by_whole_prompts(command: Command, start_server: StartServer) -> None:
    write_pairs(command.directory, count=40)
    server = start_server(judge())
    ran = suggest(command, server, "--pairs", "10", "--json")
    assert (ran.json["labels"], ran.json["labelled"]) == (10, 40)
    assert len(server.requests) == 1 + 2 * 10


def test_a_cap_ends_it_with_what_is_known_so_far(
    command: Command, start_server: StartServer
) -> None:
    write_pairs(command.directory, count=30)
    ran = suggest(command, start_server(judge()), "--max-calls", "4", "--concurrency", "1")
    assert ran.code == 5
    assert "too few labels: " in ran.out
    assert "pending" in ran.out
    assert "29 judgments are left; run the same command to judge them\n" in ran.err


def test_the_call_that_suggests_counts_against_the_caps(
    command: Command, start_server: StartServer
) -> None:
    write_pairs(command.directory, count=30)
    server = start_server(judge())
    assert suggest(command, server, "--max-calls", "4").code == 5
    assert len(server.requests) == 4  # one suggests, three judge
    write_prompts(command.directory)
    unread = start_server(judge("I would rather not."))
    ran = suggest(command, unread, "--max-calls", "1")  # the repair would be the second
    assert (ran.code, len(unread.requests)) == (5, 1)
    assert "--max-calls" in ran.err or "cap" in ran.err
    ran = suggest(command, server, "--max-cost", "0.01")  # no price is known: one call
    assert (ran.code, len(server.requests)) == (0, 5)
    assert (
        "--max-cost cannot be enforced; capped at 1 call instead; set the price with --price"
        in ran.err
    )


def test_an_answer_that_names_no_criteria_is_asked_for_again_and_then_refused(
    command: Command, start_server: StartServer
) -> None:
    write_prompts(command.directory)
    server = start_server(judge("I would rather not."))
    ran = suggest(command, server)
    assert ran.code == 3
    assert " has no criteria; use another judge, or give it more --max-tokens" in ran.err
    assert len(server.requests) == 2
    assert "Your answer could not be read" in server.requests[1].prompt


def test_a_judge_that_reads_no_prompt_is_refused(command: Command) -> None:
    write_prompts(command.directory)
    ran = command("criteria", "suggest", "data.jsonl", "--judge", "baseline:longer")
    assert ran.code == 2
    assert "judge baseline:longer does not read prompts and cannot suggest criteria" in ran.err


def test_chinese_is_asked_and_answered_in_chinese(
    command: Command, start_server: StartServer
) -> None:
    write_prompts(command.directory)
    server = start_server(lambda _: chat_reply(suggestion([("准确", "说的是否属实？")])))
    ran = suggest(command, server, "--locale", "zh")
    assert "准确: 说的是否属实？" in ran.out
    assert "请写出标准" in server.requests[0].prompt


def test_python_suggests_the_same(
    command: Command, start_server: StartServer, tmp_path: Path
) -> None:
    server = start_server(judge())
    config = evenhand.JudgeConfig(base_url=server.url)
    found = evenhand.suggest_criteria_sync(["Question 1?", "Question 2?"], "openai:judge", config)
    assert [each.name for each in found.usable] == [name for name, _ in SUGGESTED]
    write_pairs(tmp_path, count=30)
    options = evenhand.RunOptions(store=str(tmp_path / "p.db"))
    asking: dict[str, Any] = {"judge": "openai:judge", "config": config, "options": options}
    tried = evenhand.suggest_criteria_sync(str(tmp_path / "data.jsonl"), **asking)
    assert [each.name for each in tried.usable] == ["correctness"]
    asked = len(server.requests)
    assert evenhand.suggest_criteria_sync(str(tmp_path / "data.jsonl"), **asking) == tried
    assert len(server.requests) == asked
    bad = start_server(judge("nothing"))
    with pytest.raises(JudgeUnreadable):
        evenhand.suggest_criteria_sync(
            ["Question 1?"], "openai:judge", evenhand.JudgeConfig(base_url=bad.url)
        )
