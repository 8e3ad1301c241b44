"""Judges by name: which module opens them, and what is known before they are opened."""

from __future__ import annotations

import sys
from importlib.metadata import EntryPoint, EntryPoints
from types import ModuleType

import pytest

from evenhand.errors import InputError
from evenhand.judges import Judge, JudgeOptions, Traits, open_judge, traits_of
from evenhand.judges.registry import ENTRY_POINTS, JudgeName
from scripted import ScriptedJudge


def test_a_name_is_read_into_its_two_parts_and_back() -> None:
    assert JudgeName.read(" baseline:random:7 ") == ("baseline", "random:7")
    assert JudgeName.read("local") == ("local", "")
    for spec in ("baseline:random:7", "local", "openai:org/model:free"):
        assert str(JudgeName.read(spec)) == spec


@pytest.mark.parametrize("spec", ["", "openai", "openai:", "gpt-4o", ":m"])
def test_a_name_that_is_not_complete_is_refused(spec: str) -> None:
    with pytest.raises(InputError, match=r"is not complete; it is one of openai:MODEL"):
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
