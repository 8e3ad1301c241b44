"""Judges by name: which module opens them, and what is known before they are opened."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import EntryPoint, EntryPoints
from pathlib import Path
from types import ModuleType

import pytest

from evenhand.errors import InputError
from evenhand.judges.protocol import Judge, JudgeCall, Traits, identity_of
from evenhand.judges.registry import ENTRY_POINTS, JudgeName, JudgeOptions, open_judge, traits_of
from scripted import ScriptedJudge, make_pair


def test_a_name_is_read_into_its_two_parts_and_back() -> None:
    assert JudgeName.read(" baseline:random:7 ") == ("baseline", "random:7")
    assert JudgeName.read("local") == ("local", "")
    for spec in ("baseline:random:7", "local", "openai:org/model:free"):
        assert str(JudgeName.read(spec)) == spec


@pytest.mark.parametrize("spec", ["", "openai", "openai:", ":m"])
def test_a_name_that_is_not_complete_is_refused(spec: str) -> None:
    with pytest.raises(InputError, match=r"is incomplete; use one of openai:MODEL"):
        open_judge(spec)


@pytest.mark.parametrize(
    ("spec", "modes", "needs_prompt"),
    [
        (None, ("reasoned", "letter"), True),
        ("openai:m", ("reasoned", "letter"), True),
        ("anthropic:m", ("reasoned",), True),
        ("local", ("letter",), True),
        ("local:m.gguf", ("reasoned", "letter"), True),
        ("replay:answers.jsonl", ("reasoned",), False),
        ("baseline:longer", ("reasoned",), False),
    ],
)
def test_what_a_judge_can_do_is_known_before_it_is_opened(
    spec: str | None, modes: tuple[str, ...], needs_prompt: bool
) -> None:
    traits = traits_of(spec)
    assert (traits.modes, traits.needs_prompt) == (modes, needs_prompt)


def test_a_provider_of_another_package_comes_by_its_entry_point(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    provider = ModuleType("house_judges")
    traits = Traits(modes=("reasoned",))

    def open_named(name: JudgeName, options: JudgeOptions) -> Judge:
        assert options.timeout_s == 3.0
        return ScriptedJudge(lambda call: str(name), traits=traits)

    provider.open_named = open_named  # type: ignore[attr-defined]
    provider.traits_of = lambda name: traits  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "house_judges", provider)

    def entry_points(*, group: str, name: str) -> EntryPoints:
        there = EntryPoints([EntryPoint("house", "house_judges", ENTRY_POINTS)])
        return there.select(group=group, name=name)

    monkeypatch.setattr("importlib.metadata.entry_points", entry_points)
    assert open_judge("house:small", JudgeOptions(timeout_s=3.0)).traits is traits
    assert traits_of("house:small") is traits


async def test_a_judge_that_is_no_context_manager_becomes_one_when_it_is_opened(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    provider = ModuleType("house_judges")
    theirs = ScriptedJudge(lambda call: "A")
    theirs.identity = {"size": 7}  # type: ignore[attr-defined]  # no part of the protocol
    provider.open_named = lambda name, options: theirs  # type: ignore[attr-defined]  # a module
    monkeypatch.setattr("evenhand.judges.registry._provider_of", lambda kind: provider)
    async with open_judge("house:small") as judge:
        assert (judge.name, judge.traits) == (theirs.name, theirs.traits)
        assert identity_of(judge) == {"size": 7}
        call = JudgeCall(make_pair(), "original", 1)
        assert (await judge.ask(call)).text == "A"
        assert theirs.calls == [call]
    assert theirs.closed


OPENED = {
    "openai:m": JudgeOptions(api_key="k"),
    "openai:fleet": JudgeOptions(base_url=("http://localhost:1/v1", "http://localhost:2/v1")),
    "baseline:longer": JudgeOptions(),
    "baseline:random:7": JudgeOptions(),
    "replay:answers.jsonl": JudgeOptions(),
    "local:m.gguf": JudgeOptions(),
}


@pytest.mark.parametrize(
    "spec",
    [
        # The embedded model's own library is asked for when it is opened.
        pytest.param(spec, marks=[pytest.mark.embedded] if spec.startswith("local") else [])
        for spec in OPENED
    ],
)
async def test_every_judge_is_closed_at_the_end_of_its_with(
    spec: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "answers.jsonl").write_text(
        '{"id": "1", "pass": "original", "raw": "A"}\n', encoding="utf-8"
    )
    (tmp_path / "m.gguf").write_bytes(b"GGUF")
    opened = open_judge(spec, OPENED[spec])
    closed = []
    close = type(opened).close

    async def closing(self: Judge) -> None:
        closed.append(self)
        await close(self)

    monkeypatch.setattr(type(opened), "close", closing)
    async with opened as judge:
        assert judge is opened
        assert not closed
    assert closed == [opened]


def test_new_kind_of_judge_is_one_row() -> None:
    script = Path(__file__).parents[1] / "toy_judge.py"
    ran = subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, timeout=60, check=False
    )
    assert (ran.returncode, ran.stderr) == (0, "")
    assert ran.stdout.split() == ["registry", "help", "errors", "families", "docs"]
