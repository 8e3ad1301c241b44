"""Every option of the table on every face: it arrives in the judge's config, and in the fingerprint
of a run where verdicts depend on it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
from pydantic.alias_generators import to_camel

import evenhand
from cases import each_case
from command_line import Command, command
from evenhand.cli.ab import FirstSide, SecondSide
from evenhand.cli.main import app
from evenhand.cli.options import JudgeChoices, RunLimits
from evenhand.contract import read_pair
from evenhand.errors import InputError, SettingsError
from evenhand.judging.config import JudgeConfig
from evenhand.judging.passes import Case
from evenhand.options import GeneratingOptions, JudgingOptions, Row, RunningOptions
from evenhand.report.manifest import manifest_of
from evenhand.runs import JudgePlan, RunOptions
from evenhand.serve.answering import offered_sides
from evenhand.serve.app import make_app
from evenhand.serve.config import ServerConfig, ServerLimits, read_config
from evenhand.serve.jobs import judge_plans, run_options
from evenhand.serve.judges import JudgeCatalog
from evenhand.serve.mcp.tools import TOOLS
from evenhand.serve.values import StartRun, StartRunQuery, StartRunWithPairs, read_value
from evenhand.settings import Settings, load_settings
from evenhand.store import open_store
from evenhand.store.explanation import context_of
from http_service import judge_offer
from scripted import ScriptedJudge, answer_json

__all__ = ["command"]

pytestmark = pytest.mark.usefixtures("unconfigured")

PAIR = {"prompt": "2 + 2?", "responseA": "4", "responseB": "5", "criteria": ["accuracy"]}
COMMANDS = typer.main.get_command(app)
OPENAPI = make_app(ServerConfig()).openapi()


def another(row: Row) -> Any:
    """A value that the option takes and that nobody has by default."""
    match row.kind:
        case "choice":
            return next(each for each in row.choices if each != row.option.implied)
        case "choices":
            return row.choices[:1]
        case "whole":
            return int(row.option.least or 0) + 3
        case "number" | "duration":
            return (row.option.least or 0) + 0.5
        case "flag":
            return True
        case "texts":
            return "http://127.0.0.1:9/v1"
        case "path" | "place":
            return "mine.txt"
        case _:
            return "openai:another"


def as_flags(row: Row) -> list[str]:
    value = another(row)
    if row.kind == "flag":
        return [row.flag]
    return [row.flag, ",".join(value) if isinstance(value, tuple) else str(value)]


def as_toml(row: Row) -> str:
    value = another(row)
    if isinstance(value, bool):
        return f"{row.name} = true"
    return f"{row.name} = {list(value) if isinstance(value, tuple) else value!r}"


@pytest.fixture
def template(tmp_path: Path) -> None:
    slots = "{prompt} {context} {reference} {criteria} {response_a} {response_b} {tie_rule}"
    (tmp_path / "mine.txt").write_text(slots, encoding="utf-8")


def parsed(command: str, *arguments: str) -> dict[str, Any]:
    own: Any = COMMANDS
    given = own.commands[command].make_context(command, [*arguments], resilient_parsing=True)
    return dict(given.params)


def chosen(group: Any, params: dict[str, Any]) -> Any:
    return group(**{each.name: params[each.name] for each in group.flags})


def arrives(row: Row, config: JudgeConfig) -> bool:
    value = getattr(config, row.name)
    if row.name == "template":
        return str(getattr(value, "name", value)).endswith("mine.txt") or value is not None
    return bool(value == another(row))


# What is written is written for something: the others stand alone.
WITH = {"prepare_with": ["--prepare", "metrics"]}
FLAGS = [row for row in JudgingOptions.rows() if row.name != "judge"]


@each_case("row", FLAGS, ids=lambda row: row.name)
@pytest.mark.usefixtures("template")
def test_flag_arrives_in_the_config(row: Row) -> None:
    params = parsed("compare", *as_flags(row), *WITH.get(row.name, []))
    assert arrives(row, chosen(JudgeChoices, params).config("openai:m"))


@each_case("row", RunningOptions.rows(), ids=lambda row: row.name)
def test_flag_of_a_run_arrives_in_its_options(row: Row) -> None:
    params = parsed("run", *as_flags(row))
    options = chosen(RunLimits, params).options(None)
    value = getattr(options, row.name)
    assert value == another(row)


@each_case(
    "row",
    [row for row in Settings.rows() if row.option.files != "none"],
    ids=lambda row: row.name,
)
@pytest.mark.usefixtures("template")
def test_key_of_a_config_file_arrives(row: Row, tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_text(as_toml(row), encoding="utf-8")
    settings = load_settings({}, user_file=path, directory=tmp_path / "elsewhere")
    if row.name in {each.name for each in RunningOptions.rows()}:
        assert getattr(RunOptions().over(settings), row.name) == another(row)
    else:
        own = JudgeConfig(judge=None if row.name == "judge" else "openai:m")
        assert arrives(row, JudgeConfig.resolve(settings, own))


@each_case(
    "row", [row for row in Settings.rows() if row.option.files == "yours"], ids=lambda row: row.name
)
def test_key_that_reaches_out_is_refused_in_a_checkout(row: Row, tmp_path: Path) -> None:
    (tmp_path / "evenhand.toml").write_text(as_toml(row), encoding="utf-8")
    with pytest.raises(SettingsError, match=row.name):
        load_settings({}, user_file=tmp_path / "none.toml", directory=tmp_path)


@each_case("row", [row for row in Settings.rows() if row.option.variable], ids=lambda row: row.name)
def test_variable_arrives(row: Row, tmp_path: Path) -> None:
    given = {str(row.option.variable): str(another(row))}
    settings = load_settings(given, user_file=tmp_path / "none", directory=tmp_path)
    assert getattr(settings, row.name) == another(row)


@each_case(
    "row", [row for row in JudgingOptions.rows() if row.option.served], ids=lambda row: row.name
)
@pytest.mark.usefixtures("template")
def test_key_of_the_servers_file_arrives(row: Row, tmp_path: Path) -> None:
    path = tmp_path / "server.toml"
    judge = "" if row.name == "judge" else "judge = 'openai:m'\n"
    path.write_text(f"[[judges]]\n{judge}{as_toml(row)}\n", encoding="utf-8")
    (offer,) = read_config(path, environment={}).judges
    assert arrives(row, JudgeConfig.resolve(Settings(), offer.config))


@each_case("row", JudgingOptions.rows(), ids=lambda row: row.name)
def test_what_decides_makes_another_run_and_nothing_else_does(row: Row) -> None:
    def known_by(config: JudgeConfig) -> tuple[Any, ...]:
        plan = JudgePlan(ScriptedJudge(lambda call: ""), config)
        return plan.record().key, plan.deciding()

    decides = row.option.decides != "nothing"
    if not decides and row.name in ("mode", "template", "reconcile", "prepare"):
        pytest.skip("recorded in a form of its own: tests/test_judge_config.py")
    if row.name == "ask_identical":
        pytest.skip("recorded by what the judge does with it")
    usual = JudgeConfig(samples=2)
    changed = JudgeConfig(**{"samples": 2, row.name: another(row)})
    assert (known_by(changed) != known_by(usual)) == decides


DECIDING = [row for row in JudgingOptions.rows() if row.option.decides != "nothing"]


@each_case("row", DECIDING, ids=lambda row: row.name)
def test_what_decides_is_kept_with_the_run_and_explains_its_verdicts(
    row: Row, tmp_path: Path
) -> None:
    (tmp_path / "pairs.jsonl").write_text(json.dumps(PAIR), encoding="utf-8")
    config = JudgeConfig(**{row.name: another(row)})
    judge = ScriptedJudge(lambda call: answer_json("A", criteria=[("accuracy", "A")]))
    options = RunOptions(store=tmp_path / f"{row.name}.db", keep_going_unread=True)
    made = evenhand.run_sync(tmp_path / "pairs.jsonl", judge, config=config, options=options)
    with open_store(options.store) as store:
        manifest = manifest_of(store, made.run)
        run = store.runs.find(made.run)
        assert run is not None
        (kept,) = store.runs.judges(run.id)
    assert manifest.judges[0].settings[row.name] == another(row)
    words = manifest.command or ()
    assert words[words.index(row.flag) + 1] == str(another(row))
    live = Case.of(read_pair(PAIR), judge, config).context()
    assert getattr(live.options, row.name) == another(row)
    assert getattr(context_of(kept, run).options, row.name) == another(row)


@each_case(
    "row", [row for row in Settings.rows() if row.option.files == "any"], ids=lambda row: row.name
)
def test_starter_file_has_a_value_that_the_option_takes(row: Row) -> None:
    assert row.check(row.name, row.example) is not None


@pytest.mark.slow
def test_new_option_is_one_row(tmp_path: Path) -> None:
    script = Path(__file__).with_name("toy_option.py")
    kept = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
    homes = dict.fromkeys(("HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME"), str(tmp_path))
    ran = subprocess.run(
        [sys.executable, str(script)],
        cwd=tmp_path,
        env=kept | homes,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (ran.returncode, ran.stderr) == (0, "")
    assert ran.stdout.split("\n") == [
        *("help", "flag", "config file", "starter file", "variable", "server file"),
        *("fingerprint", "manifest and explanations", "HTTP", "MCP", "descriptions", "docs", ""),
    ]


# What clients send

OF_CLIENTS = [row for row in Settings.rows() if row.option.clients]
OF_JUDGING = {row.name for row in JudgingOptions.rows()}


def asked_over_http(sent: dict[str, Any]) -> StartRun:
    """As a query has them: texts."""
    texts = {
        name: ",".join(value)
        if isinstance(value, tuple)
        else "true"
        if value is True
        else str(value)
        for name, value in sent.items()
    }
    return read_value(StartRunQuery, texts).options()


def asked_over_mcp(sent: dict[str, Any]) -> StartRun:
    given = {name: list(each) if isinstance(each, tuple) else each for name, each in sent.items()}
    return read_value(StartRunWithPairs, {"pairs": [PAIR], **given}).options()


@each_case("row", OF_CLIENTS, ids=lambda row: row.name)
@pytest.mark.parametrize("face", [asked_over_http, asked_over_mcp])
def test_field_of_a_client_arrives(row: Row, face: Callable[[dict[str, Any]], StartRun]) -> None:
    asked = face({to_camel(row.name): another(row)})
    catalog = JudgeCatalog(ServerConfig(judges=(judge_offer("main", "openai:m"),)), Settings())
    (plan,) = judge_plans(catalog, ["main"], asked)
    options = run_options(asked, ServerLimits())
    assert getattr(plan.config if row.name in OF_JUDGING else options, row.name) == another(row)


@each_case("row", OF_CLIENTS, ids=lambda row: row.name)
def test_field_of_a_client_is_described_as_its_option(row: Row) -> None:
    name = to_camel(row.name)
    shown = TOOLS["startRun"].definition.input_schema["properties"][name]
    assert shown["description"].startswith(row.option.help)
    paths = OPENAPI["paths"]
    for path in ["/v1/runs", "/v1/compare"] if row.name in OF_JUDGING else ["/v1/runs"]:
        (sent,) = [each for each in paths[path]["post"]["parameters"] if each["name"] == name]
        assert sent["description"] == shown["description"]
    bound = next((each for each in shown.get("anyOf", ()) if "type" in each), shown)
    assert bound.get("minimum") == row.option.least
    assert bound.get("exclusiveMinimum") == row.option.above
    assert bound.get("maximum") == row.option.most


@each_case("row", GeneratingOptions.rows(), ids=lambda row: row.name)
@pytest.mark.parametrize("side", ["a", "b"])
def test_option_of_a_side_arrives_in_its_choice(row: Row, side: str, tmp_path: Path) -> None:
    (tmp_path / "around.txt").write_text("Q: {{ prompt }}", encoding="utf-8")
    value: Any = str(tmp_path / "around.txt") if row.name == "template" else another(row)
    params = parsed("ab", "prompts.jsonl", row.flag_of(side), str(value))
    choice = chosen({"a": FirstSide, "b": SecondSide}[side], params).choice(None)
    assert getattr(choice, row.name) == ("Q: {{ prompt }}" if row.name == "template" else value)
    other = chosen({"b": FirstSide, "a": SecondSide}[side], params).choice(None)
    assert getattr(other, row.name) is None


@each_case(
    "row", [row for row in GeneratingOptions.rows() if row.option.clients], ids=lambda row: row.name
)
@pytest.mark.parametrize("side", ["a", "b"])
def test_option_of_a_side_arrives_from_a_client(row: Row, side: str) -> None:
    value = "Q: {{ prompt }}"
    sent = {"modelA": "main", "modelB": "other", to_camel(f"{row.name}_{side}"): value}
    offers = [judge_offer(name, f"openai:{name}") for name in ("main", "other")]
    catalog = JudgeCatalog(ServerConfig(judges=tuple(offers)), Settings())
    sides = offered_sides(catalog, asked_over_http(sent))
    assert [getattr(each, row.name) for each in sides] == [
        value if letter == side else None for letter in "ab"
    ]


# Nothing is accepted that nobody uses

# A mode of a command that judges nothing, and the options of the table that it uses all the same.
IDLE = {
    ("probe", "--list"): {"judge", "locale"},
    ("audit", "earlier"): {"judge", "store"},
    ("plan", "--win-rate", "0.6"): {"samples"},
}


def idle_flags() -> Iterator[Any]:
    commands: Any = COMMANDS
    for mode, used in IDLE.items():
        taken = {each.name for each in commands.commands[mode[0]].params}
        for row in Settings.rows():
            if row.name in taken - used and not (mode[0] == "plan" and row.name == "store"):
                yield pytest.param(mode, row, id=f"{mode[0]}-{row.name}")


@pytest.mark.parametrize(("mode", "row"), list(idle_flags()))
@pytest.mark.usefixtures("template")
def test_option_that_has_no_effect_is_refused(
    command: Command, mode: tuple[str, ...], row: Row
) -> None:
    ran = command(*mode, *as_flags(row))
    assert (ran.code, ran.out) == (2, "")
    assert row.flag in ran.err


FILE = ("pairs.jsonl", "--judge", "baseline:longer", "-c", "accuracy")
TAKE_JUDGING = {
    "compare": ("pair.json", *FILE[1:3]),
    "prompt": ("pair.json",),
    "run": FILE,
    "plan": (*FILE, "--pairs", "10"),
    "audit": FILE,
    "probe": FILE[1:3],
    "criteria": ("suggest", *FILE[:3]),
    "ab": ("prompts.jsonl", "--a", "openai:x", "--b", "openai:y", *FILE[1:]),
}
TAKE_LIMITS = ("run", "audit", "probe", "criteria", "ab")


@pytest.mark.parametrize("name", TAKE_JUDGING)
@pytest.mark.parametrize("group", ["judging", "running"])
def test_command_reads_the_options_that_it_takes(
    command: Command, name: str, group: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if group == "running" and name not in TAKE_LIMITS:
        pytest.skip("makes no run")

    def read(*_: Any, **__: Any) -> None:
        raise InputError("its options were read")

    owner, method = (JudgeChoices, "config") if group == "judging" else (RunLimits, "options")
    monkeypatch.setattr(owner, method, read)
    labelled = [json.dumps(PAIR | {"prompt": f"{n} + 2?", "label": "A"}) for n in range(20)]
    (command.directory / "pair.json").write_text(json.dumps(PAIR))
    for file in ("pairs.jsonl", "prompts.jsonl"):
        (command.directory / file).write_text("\n".join(labelled))
    ran = command(name, *TAKE_JUDGING[name])
    assert (ran.code, ran.err) == (2, "error  its options were read\n")


@each_case("row", Settings.rows(), ids=lambda row: row.name)
def test_value_of_another_kind_is_refused_by_its_name(row: Row) -> None:
    with pytest.raises(InputError, match=row.name):
        row.check(row.name, object())


@each_case("text", ["90s", "90", "1.5m", "0.025h"])
def test_time_is_read_with_its_unit(text: str) -> None:
    assert RunningOptions.row("give_up_after_s").check("--give-up-after", text) == 90


@each_case("text", ["soon", "10 days", "-5m", "0s", ""])
def test_what_is_no_time_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="90s, 10m or 2h"):
        RunningOptions.row("give_up_after_s").check("--give-up-after", text)
