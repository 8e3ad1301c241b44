"""`evenhand ab`: two models, templates, commands or files on the same prompts, and a judge."""

from __future__ import annotations

import itertools
import json
import re
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import evenhand
from command_line import Command, start_command
from evenhand.store import open_store
from run_data import write_lines
from scripted import answer_json
from servers import JudgeServer, Reply, SeenRequest, Slow, StartServer, chat_reply, error_reply

GOOD, POOR = "a thorough answer", "a hasty answer"
Answer = Callable[[str, str], Reply | Slow]


def answers_well(model: str, prompt: str) -> Reply:
    """`new` does better than `old`, unless the prompt is one of three that both do the same on."""
    number = int(prompt.rpartition(" ")[2])
    said = GOOD if model == "new" else POOR
    return chat_reply(f"{said if number % 8 else 'the same answer'} to {number}")


def served(answer: Answer = answers_well) -> Callable[[SeenRequest], Reply | Slow]:
    """Two models and a judge on one server, as the name in the request says."""

    def script(request: SeenRequest) -> Reply | Slow:
        model = request.json["model"]
        if model != "judge":
            return answer(model, request.messages[-1]["content"])
        good, poor = (request.prompt.rfind(text) for text in (GOOD, POOR))
        winner = "TIE" if good == poor == -1 else "A" if good < poor or poor == -1 else "B"
        if good != -1 and poor != -1:
            winner = "A" if good < poor else "B"
        return chat_reply(answer_json(winner, criteria=[("accuracy", winner)]))

    return script


def asked(server: JudgeServer) -> Counter[str]:
    """Requests by model."""
    return Counter(request.json["model"] for request in server.requests)


def prompts(directory: Path, count: int = 12) -> None:
    rows = [{"id": f"p{n}", "prompt": f"Tell me about {n}"} for n in range(1, count + 1)]
    write_lines(directory / "prompts.jsonl", rows)


def by(server: JudgeServer, *more: str) -> tuple[str, ...]:
    """Sides that are models have the server's address; a command or a file has none."""
    given = dict(itertools.pairwise(more))
    where = ["--base-url", server.url]
    for side in ("--a", "--b"):
        if f"{side}-command" not in given and not given.get(side, "").endswith(".jsonl"):
            where += [f"{side}-base-url", server.url]
    judge = ("--judge", "openai:judge", "-c", "accuracy", "--store", "store.db")
    return ("ab", "prompts.jsonl", *where, *judge, *more)


MODELS = ("--a", "openai:old", "--b", "openai:new")


def test_from_prompts_to_the_sentence_and_the_next_command(
    command: Command, start_server: StartServer
) -> None:
    prompts(command.directory)
    server = start_server(served())
    ran = command(*by(server, *MODELS, "--name", "try"))
    assert ran.code == 0, ran.err
    assert asked(server) == {"old": 12, "new": 12, "judge": 22}  # one pair is of identical answers
    assert "openai:new beats openai:old" in ran.out
    assert "next  evenhand report try" in ran.err
    again = command(*by(server, *MODELS, "--name", "try"))
    assert again.code == 0
    assert sum(asked(server).values()) == 46, "nothing is asked twice"


def test_json_tells_both_parts(command: Command, start_server: StartServer) -> None:
    prompts(command.directory)
    server = start_server(served())
    ran = command(*by(server, *MODELS, "--json"))
    sides = ran.json["generation"]["sides"]
    assert [(side["side"], side["model"], side["answered"]) for side in sides] == [
        ("A", "openai:old", 12),
        ("B", "openai:new", 12),
    ]
    assert ran.json["generation"]["calls"] == 24
    assert (ran.json["run"]["winsB"], ran.json["run"]["ties"]) == (11, 1)
    assert ran.json["conclusions"][0].startswith("openai:new beats openai:old")


def test_temperature_is_left_to_the_server_unless_it_is_given(
    command: Command, start_server: StartServer
) -> None:
    prompts(command.directory, 1)
    server = start_server(served())
    more = ("--b-temperature", "0.7", "--b-max-tokens", "55", "--b-seed", "3", "--b-system", "Hi.")
    command(*by(server, *MODELS, *more))
    old, new = ([r.json for r in server.requests if r.json["model"] == m] for m in ("old", "new"))
    assert old[0].keys() == {"model", "messages"}
    assert (new[0]["temperature"], new[0]["max_tokens"], new[0]["seed"]) == (0.7, 55, 3)
    assert new[0]["messages"][0] == {"role": "system", "content": "Hi."}


def test_two_templates_for_one_model(command: Command, start_server: StartServer) -> None:
    prompts(command.directory)
    (command.directory / "old.txt").write_text("Briefly: {{ prompt }}", encoding="utf-8")
    (command.directory / "new.txt").write_text("Think. {{prompt}}", encoding="utf-8")

    def answer(model: str, prompt: str) -> Reply:
        return chat_reply(GOOD if prompt.startswith("Think. Tell me about") else POOR)

    server = start_server(served(answer))
    templates = ("--a-template", "old.txt", "--b-template", "new.txt")
    ran = command(*by(server, "--a", "openai:m", *templates, "--json"))
    assert ran.code == 0, ran.err
    assert [s["model"] for s in ran.json["generation"]["sides"]] == ["openai:m (A)", "openai:m (B)"]
    assert ran.json["run"]["winsB"] == 12
    # The judge is shown the prompt, and neither template.
    judged = [r.prompt for r in server.requests if r.json["model"] == "judge"]
    assert not any("Briefly:" in each or "Think." in each for each in judged)


def test_a_command_and_a_file(command: Command, start_server: StartServer) -> None:
    prompts(command.directory, 6)
    script = command.directory / "agent.py"
    script.write_text(f"import sys\nassert 'Tell' in sys.stdin.read()\nprint({GOOD!r})\n")
    rows = [{"id": f"p{n}", "output": POOR, "model": "old"} for n in range(1, 6)]
    write_lines(command.directory / "old.jsonl", rows)
    server = start_server(served())
    run = f"{sys.executable} {script}"
    more = ("--max-skipped", "0.2", "--json")
    ran = command(*by(server, "--a", "old.jsonl", "--b-command", run, *more))
    assert ran.code == 0, ran.err
    a, b = ran.json["generation"]["sides"]
    assert (a["model"], a["answered"], a["missing"]) == ("old", 5, 1)
    assert (b["answered"], ran.json["generation"]["costUsd"]) == (6, 0.0)
    assert (ran.json["run"]["winsB"], ran.json["run"]["skippedRows"]) == (5, 1)
    assert any("1 missing" in note for note in ran.json["notes"])


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("import sys; print('why', file=sys.stderr); sys.exit(3)", "exited with status 3: why"),
        ("import time; time.sleep(60)", "gave no answer within 0.3 s"),
        ("print('x' * 5_000_000)", "wrote more than 4,194,304 bytes"),
        ("import sys; sys.stdout.buffer.write(b'\\xff')", "bytes that are not UTF-8"),
    ],
)
def test_a_command_that_fails_is_an_outcome_of_its_own(
    command: Command, start_server: StartServer, body: str, message: str
) -> None:
    prompts(command.directory, 2)
    (command.directory / "bad.py").write_text(body)
    server = start_server(served())
    run = f"{sys.executable} bad.py"
    more = ("--answer-timeout", "0.3") if "sleep" in body else ()
    ran = command(*by(server, "--a", "openai:old", "--b-command", run, "--json", *more))
    assert ran.code == 3
    assert message in ran.json["error"]["message"]
    assert asked(server)["judge"] == 0


def test_what_is_no_answer_is_counted_and_no_loss(
    command: Command, start_server: StartServer
) -> None:
    prompts(command.directory, 12)

    def answer(model: str, prompt: str) -> Reply:
        number = int(prompt.rpartition(" ")[2])
        if model == "new" and number == 1:
            return chat_reply("cut", finish_reason="length")
        if model == "new" and number == 2:
            return chat_reply(None, refusal="I cannot help with that.")
        if model == "new" and number == 3:
            return chat_reply("   ")
        if model == "new" and number == 4:
            return error_reply(400, "no such thing")
        return answers_well(model, prompt)

    server = start_server(served(answer))
    ran = command(*by(server, *MODELS, "--max-skipped", "1", "--json"))
    assert ran.code == 0, ran.err
    new = ran.json["generation"]["sides"][1]
    kinds = ("answered", "truncated", "refused", "empty", "failed")
    assert [new[kind] for kind in kinds] == [8, 1, 1, 1, 1]
    assert (ran.json["run"]["pairs"], ran.json["run"]["skippedRows"]) == (8, 4)
    assert ran.json["run"]["winsA"] == 0
    assert ran.json["conclusions"][0].startswith("No conclusion")  # a third is missing


def test_repeats_are_of_their_prompt(command: Command, start_server: StartServer) -> None:
    prompts(command.directory, 6)
    server = start_server(served())
    ran = command(*by(server, *MODELS, "--repeats", "3", "--a-seed", "5", "--name", "r"))
    assert ran.code == 0, ran.err
    assert asked(server)["old"] == 18
    seeds = Counter(r.json.get("seed") for r in server.requests if r.json["model"] == "old")
    assert seeds == {5: 6, 6: 6, 7: 6}
    report = command("report", "r", "--store", "store.db", "--json")
    rate = report.json["conclusions"]["conclusions"][0]["winRate"]
    assert (rate["n"], rate["prompts"], rate["clustered"]) == (18, 6, True)


def test_conversations_are_sent_whole_and_judged_whole(
    command: Command, start_server: StartServer
) -> None:
    messages = [
        {"role": "user", "content": "My name is Ada."},
        {"role": "assistant", "content": "Hello, Ada."},
        {"role": "user", "content": "What is my name? 1"},
    ]
    write_lines(command.directory / "prompts.jsonl", [{"messages": messages}])
    server = start_server(served())
    ran = command(*by(server, *MODELS))
    assert ran.code == 0, ran.err
    sent = next(r for r in server.requests if r.json["model"] == "old")
    assert sent.messages == messages
    judged = next(r for r in server.requests if r.json["model"] == "judge")
    assert "[User]\nMy name is Ada.\n\n[Assistant]\nHello, Ada." in judged.prompt


def test_a_preview_asks_nothing(command: Command, start_server: StartServer) -> None:
    prompts(command.directory, 7)
    server = start_server(served())
    more = ("--a-price", "1/2", "--b-price", "1/2", "--price", "1/2", "--repeats", "2")
    shown = command(*by(server, *MODELS, *more, "--dry-run"))
    assert shown.code == 0, shown.err
    assert "Tell me about 1" in shown.out
    assert "──── to openai:old · user ────" in shown.out
    told = command(*by(server, *MODELS, *more, "--dry-run", "--json")).json
    assert (told["pairs"], told["calls"]) == (14, 2 * 14 + 2 * 14)
    assert 0 < told["costUsd"][0] < told["costUsd"][1]
    assert server.requests == []
    assert not (command.directory / "store.db").exists()


CAPPED = ("--a-price", "0/10", "--b-price", "0/10", "--price", "0/10")


def test_a_cap_holds_over_both_parts_and_all_commands(
    command: Command, start_server: StartServer
) -> None:
    """An answer takes 7 tokens, so 7e-5 dollars: 24 answers and 8 passes are 224e-5."""
    prompts(command.directory)
    server = start_server(served())
    first = command(*by(server, *MODELS, *CAPPED, "--max-calls", "10", "--concurrency", "2"))
    assert first.code == 5
    assert sum(asked(server).values()) == 10
    second = command(*by(server, *MODELS, *CAPPED, "--max-calls", "32", "--concurrency", "2"))
    assert second.code == 5
    assert asked(server) == {"old": 12, "new": 12, "judge": 8}
    same = command(*by(server, *MODELS, *CAPPED, "--max-calls", "32", "--concurrency", "2"))
    assert same.code == 5
    assert sum(asked(server).values()) == 32
    half = command(*by(server, *MODELS, *CAPPED, "--max-cost", "0.00227", "--concurrency", "1"))
    assert (half.code, sum(asked(server).values())) == (5, 32)  # less is left than a call takes
    cost = command(*by(server, *MODELS, *CAPPED, "--max-cost", "0.00231", "--concurrency", "1"))
    assert cost.code == 5
    assert sum(asked(server).values()) == 33
    last = command(*by(server, *MODELS, *CAPPED, "--json"))
    assert last.code == 0
    assert asked(server) == {"old": 12, "new": 12, "judge": 22}
    assert len({r.raw for r in server.requests}) == 46  # one pair is of identical answers


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ((), "no sides given"),
        (("--a", "openai:old"), "both sides are openai:old"),
        (("--a", "openai:old", "--b", "gone.jsonl"), "gone.jsonl"),
        (("--a", "replay:x.jsonl", "--b", "openai:b"), "replay:x.jsonl"),
        (("--a", "openai:old", "--a-command", "x", "--b", "openai:b"), "are given for one side"),
        (("--a", "openai:odd", "--b", "openai:b"), "write ./openai:odd for the file"),
        (("--a-command", "'", "--b", "openai:b"), "close its quotation marks"),
        (
            ("--a-command", "cat", "--b", "openai:b", "--a-seed", "1"),
            "cat is not a model, so seed has no effect; leave it out",
        ),
        (
            ("--a", "openai:a", "--b", "old.jsonl", "--b-system", "Be brief."),
            "old.jsonl is not a model, so system has no effect; leave it out",
        ),
        (("--a", "openai:a", "--b-template", "none.txt"), "no {{ prompt }}"),
    ],
)
def test_what_is_unclear_is_refused_and_nothing_is_asked(
    command: Command, start_server: StartServer, more: tuple[str, ...], message: str
) -> None:
    prompts(command.directory, 2)
    (command.directory / "openai:odd").write_text("{}")
    (command.directory / "none.txt").write_text("no place for it")
    server = start_server(served())
    ran = command(*by(server, *more))
    assert ran.code == 2
    assert message in ran.err
    assert server.requests == []


def test_rows_that_are_no_prompts_are_named(command: Command, start_server: StartServer) -> None:
    rows: list[dict[str, Any]] = [
        {"id": "p", "prompt": "Tell me about 1"},
        {"id": "p", "prompt": "Tell me about 2"},
        {"prompt": " "},
        {"messages": [{"role": "assistant", "content": "x"}]},
        {"messages": [{"role": "boss", "content": "x"}]},
        {"turns": ["one", "two"]},
        {"output": "x"},
    ]
    write_lines(command.directory / "prompts.jsonl", rows)
    server = start_server(served())
    ran = command(*by(server, *MODELS))
    assert (ran.code, server.requests) == (2, [])
    assert "prompts.jsonl, row 2: the id 'p' is already used in row 1" in ran.err
    skipping = command(*by(server, *MODELS, "--bad-rows", "skip"))
    assert skipping.code == 0
    assert "6 rows have no prompt and are skipped" in skipping.err
    assert asked(server)["old"] == 1


@pytest.mark.slow
@pytest.mark.parametrize("part", ["generation", "judging"])
def test_killed_and_resumed_it_asks_for_nothing_twice(
    command: Command, start_server: StartServer, part: str
) -> None:
    prompts(command.directory, 40)
    slow = {"generation": ("old", "new"), "judging": ("judge",)}[part]

    def script(request: SeenRequest) -> Reply | Slow:
        reply = served()(request)
        assert isinstance(reply, Reply)
        return Slow(0.05, reply) if request.json["model"] in slow else reply

    server = start_server(script)
    arguments = by(server, *MODELS, "--concurrency", "2", "--yes")
    enough = {"generation": 20, "judging": 80 + 20}[part]
    with start_command(arguments, command.directory) as process:
        assert server.wait_until(lambda: len(server.requests) >= enough)
        process.send_signal(signal.SIGKILL)
    time.sleep(0.2)
    ran = command(*arguments, "--json")
    assert ran.code == 0, ran.err
    # What was in flight when it was killed is the only thing that may have been asked twice.
    seen = Counter(request.raw for request in server.requests)
    # Five pairs of identical answers are ties by rule, which no judge is asked about.
    most = 4 if part == "generation" else 2
    assert sum(count - 1 for count in seen.values()) <= most
    assert len(seen) == 80 + 2 * 35
    assert ran.json["run"]["winsB"] == 35
    assert json.dumps(ran.json)


def test_the_same_from_python(
    tmp_path: Path, start_server: StartServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = start_server(served())
    monkeypatch.setenv("OPENAI_BASE_URL", server.url)
    asking: dict[str, Any] = {
        "a": "openai:old",
        "b": evenhand.SideChoice(spec="openai:new", temperature=0.5, name="newer"),
        "judge": "openai:judge",
        "criteria": ["accuracy"],
        "options": evenhand.RunOptions(store=tmp_path / "runs.db", name="py"),
    }
    texts = [f"Tell me about {number}" for number in range(1, 8)]
    summary = evenhand.ab_sync(texts, **asking)
    assert [side.answered for side in summary.generation.sides] == [7, 7]
    assert summary.run is not None
    assert (summary.run.wins_b, summary.run.total.calls) == (7, 14)
    evenhand.ab_sync([{"prompt": text} for text in texts], **asking)
    assert sum(asked(server).values()) == 28
    with pytest.raises(evenhand.InputError, match="no sides given"):
        evenhand.ab_sync(texts, judge="openai:judge", criteria=["accuracy"])


def test_half_the_passes_in_a_random_order(command: Command, start_server: StartServer) -> None:
    prompts(command.directory, 16)
    server = start_server(served())
    more = ("--orders", "random", "--both-orders", "0", "--seed", "4", "--json")
    ran = command(*by(server, *MODELS, *more))
    assert ran.code == 0, ran.err
    # Two pairs are of identical answers: ties by rule.
    assert asked(server)["judge"] == 14
    assert (ran.json["run"]["winsB"], ran.json["run"]["ties"]) == (14, 2)
    decided = command(*by(server, *MODELS, "--alpha", "0.1"))
    assert (decided.code, "--until-decided" in decided.err) == (2, True)


def test_a_cap_on_cost_takes_list_prices_by_the_models_names_and_says_so(
    command: Command, start_server: StartServer
) -> None:
    prompts(command.directory, 3)
    server = start_server(lambda request: chat_reply(GOOD))
    models = ("--a", "openai:gpt-4o", "--b", "openai:gpt-4o-mini")
    ran = command(*by(server, *models, "--price", "1/1", "--max-cost", "1", "--dry-run", "--json"))
    assert ran.code == 0, ran.err
    capped = command(*by(server, *models, "--price", "1/1", "--max-cost", "1", "--json"))
    assert sum("openai:gpt-4o" in note for note in capped.json["notes"]) == 2
    # 3 answers of 11 tokens in and 7 out at 2.50/10 and 0.15/0.60 dollars a million.
    assert capped.json["generation"]["costUsd"] == pytest.approx(3 * (11 * 2.65 + 7 * 10.6) / 1e6)
    unknown = command(*by(server, *MODELS, "--price", "1/1", "--max-cost", "1"))
    assert (unknown.code, "--a-price" in unknown.err) == (0, True)


def test_from_init_to_a_conclusion_by_the_commands_that_are_printed(
    command: Command, start_server: StartServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The judge and the models are on one server; 50 prompts take the place of the sample's."""

    def script(request: SeenRequest) -> Reply:
        asked_of = "judge" if "accuracy" in request.prompt else request.json["model"]
        good, poor = (request.prompt.rfind(text) for text in (GOOD, POOR))
        winner = "A" if good < poor else "B"
        if asked_of == "judge":
            return chat_reply(answer_json(winner, criteria=[("accuracy", winner)]))
        return chat_reply(GOOD if asked_of == "gpt-5" else POOR)

    server = start_server(script)
    monkeypatch.setenv("OPENAI_BASE_URL", server.url)
    begun = command("init")
    prompts(command.directory, 50)
    [line] = [line for line in begun.out.splitlines() if line.startswith("or ")]
    _, program, *words = line.split()
    ran = command(*words, "--store", "store.db")
    assert (program, ran.code) == ("evenhand", 0), ran.err
    assert "openai:gpt-5 beats openai:gpt-5-mini" in ran.out
    assert len(server.requests) == 200
    [after] = [line for line in ran.err.splitlines() if line.startswith("next ")]
    assert command(*after.split()[2:], "--store", "store.db").code == 0


def test_every_repeat_without_an_answer_is_skipped_by_itself(
    command: Command, start_server: StartServer
) -> None:
    prompts(command.directory, 4)

    def answer(model: str, prompt: str) -> Reply:
        empty = model == "new" and prompt.endswith(" 1")
        return chat_reply("" if empty else GOOD if model == "new" else POOR)

    server = start_server(served(answer))
    more = ("--repeats", "3", "--b-system", "a secret of ours", "--max-skipped", "0.25", "--json")
    ran = command(*by(server, *MODELS, *more))
    assert ran.code == 0, ran.err
    assert (ran.json["run"]["pairs"], ran.json["run"]["skippedRows"]) == (9, 3)
    with open_store(command.directory / "store.db") as store:
        [run] = store.runs.all()
        assert "a secret of ours" not in json.dumps(run.plan)


@pytest.mark.parametrize("reply", [chat_reply(""), chat_reply("cut", finish_reason="length")])
def test_where_no_prompt_has_two_answers_the_counts_say_why(
    command: Command, start_server: StartServer, reply: Reply
) -> None:
    prompts(command.directory, 3)
    server = start_server(served(lambda m, p: reply if m == "new" else chat_reply(POOR)))
    ran = command(*by(server, *MODELS))
    assert ran.code == 3
    assert "no prompt was answered by both sides" in ran.err
    assert "stopped: a model failed" in ran.err
    kind = "empty" if "length" not in str(reply.body) else "truncated"
    assert re.search(rf"answered  {kind}", ran.out)
    assert asked(server)["judge"] == 0


def test_calls_that_fail_are_told_with_their_cause_and_fail_the_command(
    command: Command, start_server: StartServer
) -> None:
    """Half of B's: 404 for six of twelve prompts, each with an id of its own."""
    prompts(command.directory)
    down = True

    def half(model: str, prompt: str) -> Reply | Slow:
        number = int(prompt.rpartition(" ")[2])
        if down and model == "new" and number % 2:
            return error_reply(404, f"no such deployment (request req_{number}f3)")
        return answers_well(model, prompt)

    server = start_server(served(half))
    test = by(server, *MODELS, "--concurrency", "1")
    ran = command(*test)
    assert ran.code == 3
    error = ran.err.splitlines()[-1]
    assert error.startswith(
        "error  6 of 12 pairs lack an answer, more than the 5% allowed; most common cause "
        "(6, side B): "
    )
    assert "no such deployment" in error
    assert error.endswith("; --retry failed asks again, --max-skipped allows more")
    assert "note  6 of 6 failed answers from B (openai:new): " in ran.err
    as_json = command(*test, "--json")
    assert (as_json.code, as_json.json["error"]["retryable"]) == (3, True)
    assert as_json.json["generation"]["sides"][1]["commonestErrors"] == 6
    assert as_json.err.splitlines()[-1] == error
    assert command(*test, "--max-skipped", "0.5").code == 0
    assert command(*test, "--gate").code == 6  # what is missing counts against the claim
    down = False
    again = command(*test, "--retry", "failed")
    assert (again.code, "lack an answer" in again.err) == (0, False)


def test_failed_answers_are_asked_for_again_by_retry(
    command: Command, start_server: StartServer
) -> None:
    prompts(command.directory, 10)
    ill = True

    def answer(model: str, prompt: str) -> Reply:
        if ill and model == "new" and prompt.endswith((" 3", " 5")):
            return error_reply(400, "not now")
        return answers_well(model, prompt)

    server = start_server(served(answer))
    first = command(*by(server, *MODELS, "--json"))
    assert (first.json["run"]["pairs"], first.json["run"]["skippedRows"]) == (8, 2)
    assert command(*by(server, *MODELS, "--json")).json["run"]["pairs"] == 8
    ill = False
    before = len(server.requests)
    again = command(*by(server, *MODELS, "--retry", "failed", "--json"))
    assert again.code == 0, again.err
    assert (again.json["run"]["pairs"], again.json["run"]["skippedRows"]) == (10, 0)
    assert len(server.requests) - before == 2 + 2 * 2


def test_a_named_concurrency_is_of_both_sides_together(
    command: Command, start_server: StartServer
) -> None:
    prompts(command.directory, 12)

    def script(request: SeenRequest) -> Reply | Slow:
        reply = served()(request)
        assert isinstance(reply, Reply)
        return Slow(0.02, reply)

    server = start_server(script)
    ran = command(*by(server, *MODELS, "--concurrency", "3", "--retries", "0"))
    assert ran.code == 0, ran.err
    # Each is in flight for at least so long after it came.
    came = [r.arrived_s for r in server.requests if r.json["model"] != "judge"]
    assert len(came) == 24
    assert max(sum(t - 0.02 < each <= t for each in came) for t in came) == 3


def test_a_finished_test_needs_the_answers_no_more(
    command: Command, start_server: StartServer
) -> None:
    prompts(command.directory, 3)
    server = start_server(served())
    command(*by(server, *MODELS, "--name", "first"))
    second = (*MODELS, "--name", "second", "-c", "clarity")
    assert command(*by(server, *second)).code == 0
    before = len(server.requests)
    assert command("runs", "delete", "first", "--yes", "--store", "store.db").code == 0
    again = command(*by(server, *second))
    assert again.code == 0, again.err
    assert len(server.requests) == before


def test_a_preview_refuses_what_the_run_would(command: Command, start_server: StartServer) -> None:
    prompts(command.directory, 2)
    server = start_server(served())
    same = command(*by(server, "--a", "openai:old", "--dry-run"))
    assert (same.code, "both sides are openai:old" in same.err) == (2, True)
