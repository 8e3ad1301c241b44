"""A run's manifest is enough to do it again, and tells nothing that is the user's own."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

import evenhand
from command_line import KEY, Command, Ran
from evenhand.report.manifest import manifest_of
from evenhand.store import open_store
from html_reading import Html
from run_data import right_place, sums, write_lines
from scripted import answer_json
from servers import JudgeServer, Reply, SeenRequest, StartServer, chat_reply

PAIRS = 40


def named(request: SeenRequest) -> Reply:
    """A judge that can add, by a model that calls itself something else than it was requested."""
    winner = right_place(request.prompt)
    answer = answer_json(winner, confidence=0.9, criteria=[("accuracy", winner)])
    return chat_reply(answer, model="loopback-2026-11-01")


def manifest(command: Command, run: str, store: str) -> Any:
    return command("runs", "show", run, "--store", store, "--json").json["manifest"]


def conclusions(command: Command, run: str, store: str) -> Any:
    report = command("report", run, "--store", store, "--json").json["conclusions"]
    return {name: report[name] for name in report if name != "store"}


def again(command: Command, made: Any, server: JudgeServer | None, store: str) -> Ran:
    address = "" if server is None else server.url
    first, *words = [address if word == "ADDRESS" else word for word in made["command"]]
    assert first == "evenhand"
    return command(*words, "--store", store)


@pytest.fixture
def pairs(command: Command) -> Path:
    return write_lines(command.directory / "pairs.jsonl", sums(PAIRS))


@pytest.mark.slow
@pytest.mark.parametrize(
    "options",
    [
        ("-c", "accuracy*2: Is the sum right?", "-c", "clarity"),
        ("-c", "accuracy", "--no-tie", "--samples", "2", "--temperature", "0.25", "--locale", "zh"),
        ("-c", "accuracy", "--until-decided", "--alpha", "0.1", "--seed", "7"),
        ("-c", "accuracy", "--orders", "random", "--both-orders", "0.25", "--seed", "5"),
        ("-c", "accuracy", "--no-swap", "--fresh", "--repairs", "0", "--max-tokens", "500"),
    ],
    ids=["criteria", "judging", "seed", "random orders", "one order"],
)
def test_it_is_done_again_from_its_manifest_with_the_same_figures(
    command: Command, pairs: Path, start_server: StartServer, options: tuple[str, ...]
) -> None:
    server = start_server(named)
    judged = ("--judge", "openai:loopback", "--base-url", server.url)
    ran = command("run", "pairs.jsonl", *options, *judged, "--name", "first", "--store", "1.db")
    assert ran.code == 0, ran.err
    made = manifest(command, "first", "1.db")
    # Other settings of whoever does it again change nothing.
    (command.directory / "evenhand.toml").write_text('locale = "en"\nsamples = 3\n')
    repeated = again(command, made, server, "2.db")
    assert repeated.code == 0, repeated.err
    assert conclusions(command, "first", "1.db") == conclusions(command, "first", "2.db")
    other = manifest(command, "first", "2.db")
    if "--fresh" not in options:  # which is a run of its own each time
        assert other["fingerprint"] == made["fingerprint"]
    for part in ("judges", "data", "ends", "command", "environments"):
        if part != "judges" or "--fresh" not in options:
            assert other[part] == made[part]


def test_outputs_and_a_replay_are_done_again(command: Command) -> None:
    for name, says in (("old", "no"), ("new", "yes")):
        rows = [{"id": n, "prompt": f"p{n}", "response": f"{says} {n}"} for n in range(8)]
        write_lines(command.directory / f"{name}.jsonl", rows)
    answers = [
        {"id": str(n), "pass": each, "raw": answer_json(winner, criteria=[("tone", winner)])}
        for n in range(8)
        for each, winner in (("original", "B"), ("swapped", "B" if n == 3 else "A"))
    ]
    write_lines(command.directory / "judge.jsonl", answers)
    files = ("--a", str(command.directory / "old.jsonl"), "--b", "new.jsonl")
    judge = f"replay:{command.directory / 'judge.jsonl'}"
    ran = command("run", *files, "-c", "tone", "--judge", judge, "--name", "s", "--store", "1.db")
    made = manifest(command, "s", "1.db")
    assert made["data"]["sources"] == ["old.jsonl", "new.jsonl"]
    assert str(command.directory) not in json.dumps(made)
    assert ran.code == again(command, made, None, "2.db").code
    one, two = (conclusions(command, "s", store) for store in ("1.db", "2.db"))
    assert one["conclusions"] != []
    # The judge's name is the file as it was given.
    whole = json.dumps(one).replace(judge, "replay:judge.jsonl")
    assert json.loads(whole) == two


def test_it_holds_what_is_known_and_nothing_of_the_users(
    command: Command, pairs: Path, start_server: StartServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    server = start_server(named)
    asked = ("--judge", "openai:loopback", "--base-url", server.url, "-c", "accuracy")
    ran = command("run", str(pairs), *asked, "--name", "first", "--store", "1.db")
    assert ran.code == 0, ran.err
    made = manifest(command, "first", "1.db")
    [judge] = made["judges"]
    assert judge["servedModels"] == ["loopback-2026-11-01"]
    assert judge["prompt"].startswith("en/reasoned@")
    assert judge["settings"]["temperature"] == 0
    assert made["data"]["pairs"] == PAIRS
    [environment] = made["environments"]
    assert environment["packages"]["numpy"]
    text = json.dumps(made)
    for own in (KEY, str(command.directory), server.url, "127.0.0.1", "/home"):
        assert own not in text


def test_versions_are_noted_once_and_anew_where_they_changed(
    command: Command, pairs: Path, start_server: StartServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = start_server(named)
    asked = ("--judge", "openai:loopback", "--base-url", server.url, "-c", "accuracy")
    run = ("run", "pairs.jsonl", *asked, "--name", "first", "--store", "1.db")
    for calls in ("10", "10"):
        command(*run, "--max-calls", calls)
    assert len(manifest(command, "first", "1.db")["environments"]) == 1
    monkeypatch.setattr("evenhand.runs.engine.environment", lambda: {"evenhand": "9.9"})
    assert command(*run).code == 0
    versions = [each["evenhand"] for each in manifest(command, "first", "1.db")["environments"]]
    assert versions[1:] == ["9.9"]


def test_a_run_that_was_killed_has_a_manifest_too(
    command: Command, pairs: Path, start_server: StartServer
) -> None:
    server = start_server(named)
    asked = ("--judge", "openai:loopback", "--base-url", server.url, "-c", "accuracy")
    command("run", "pairs.jsonl", *asked, "--name", "first", "--store", "1.db")
    whole = manifest(command, "first", "1.db")
    with open_store(command.directory / "1.db") as store:
        run = store.runs.find("first")
        assert run is not None
        store.runs.update(run.id, summary={})  # what is noted at the end was not
    assert manifest(command, "first", "1.db") == whole | {"environments": []}


@pytest.mark.slow
def test_exports_and_reports_carry_it(
    command: Command, pairs: Path, start_server: StartServer
) -> None:
    server = start_server(named)
    asked = ("--judge", "openai:loopback", "--base-url", server.url, "-c", "accuracy")
    here = ("--store", "1.db")
    command("run", "pairs.jsonl", *asked, "--name", "first", *here)
    made = manifest(command, "first", "1.db")
    for name in ("out.csv", "out.json", "out.jsonl"):
        ran = command("runs", "export", "first", "-o", name, *here)
        assert ran.out == f"{PAIRS} rows in {name}; manifest in {name}.manifest.json\n"
        beside = (command.directory / f"{name}.manifest.json").read_text("utf-8")
        assert json.loads(beside) == made
    command("runs", "export", "first", "-o", "c.json", "--format", "llm-comparator", *here)
    held = json.loads((command.directory / "c.json").read_text("utf-8"))
    assert held["metadata"]["evenhand_manifest"] == made
    assert not (command.directory / "c.json.manifest.json").exists()
    assert command("report", "first", "--json", *here).json["manifest"] == made
    text = " ".join(command("report", "first", *here).out.split())
    assert f"loopback-2026-11-01, prompt {made['judges'][0]['prompt']}, run " in text
    assert command("report", "first", "--html", "r.html", *here).code == 0
    page = Html((command.directory / "r.html").read_text("utf-8"))
    shown = [each.text for each in page.all("code")]
    assert json.loads(next(each for each in shown if each.startswith("{"))) == made


def test_parquet_holds_it_in_its_metadata(
    command: Command, pairs: Path, start_server: StartServer
) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    asked = ("--judge", "openai:loopback", "--base-url", start_server(named).url, "-c", "accuracy")
    command("run", "pairs.jsonl", *asked, "--name", "first", "--store", "1.db")
    command("runs", "export", "first", "-o", "out.parquet", "--store", "1.db")
    held = parquet.read_schema(command.directory / "out.parquet").metadata[b"evenhand.manifest"]
    assert json.loads(held) == manifest(command, "first", "1.db")
    assert not (command.directory / "out.parquet.manifest.json").exists()


def test_a_test_of_two_models_is_done_again(command: Command, start_server: StartServer) -> None:
    def answers(request: SeenRequest) -> Reply:
        if "Response B" in request.prompt:
            return named(request)
        number = int(re.findall(r"What is (\d+)", request.prompt)[0])
        wrong = (number % 3 == 0) == (b"be brief" not in request.raw)
        return chat_reply(f"It is {2 * number + wrong}, by counting.")

    server = start_server(answers)
    prompts = [{"id": n, "prompt": f"What is {n} plus {n}?"} for n in range(1, 13)]
    write_lines(command.directory / "prompts.jsonl", prompts)
    sides = ("--a", "openai:one", "--b", "openai:two", "--a-temperature", "0.5")
    texts = ("--b-system", "be brief", "--b-name", "brief")
    addresses = [f"{each}base-url" for each in ("--", "--a-", "--b-")]
    at = [word for each in addresses for word in (each, server.url)]
    asked = ("--judge", "openai:loopback", "-c", "accuracy", "--name", "t")
    ran = command("ab", "prompts.jsonl", *sides, *texts, *at, *asked, "--store", "1.db")
    assert ran.code == 0, ran.err
    made = manifest(command, "t", "1.db")
    told = json.dumps(made)
    assert "be brief" not in told
    assert server.url not in told
    made["command"] = ["be brief" if each == "SYSTEM_TEXT" else each for each in made["command"]]
    assert again(command, made, server, "2.db").code == 0
    assert conclusions(command, "t", "1.db") == conclusions(command, "t", "2.db")
    assert manifest(command, "t", "2.db")["fingerprint"] == made["fingerprint"]


def test_what_no_command_can_say_has_none(tmp_path: Path) -> None:
    pair = {"prompt": "p", "response_a": "a", "response_b": "bb", "criteria": ["tone"]}
    options = evenhand.RunOptions(store=str(tmp_path / "s.db"))
    summary = evenhand.run_sync([pair], judge="baseline:longer", options=options)
    with open_store(tmp_path / "s.db") as store:
        assert manifest_of(store, summary.run).command is None
