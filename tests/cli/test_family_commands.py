"""What commands say of a judge of a contestant's family, by the config file's entries too."""

from __future__ import annotations

import pytest

from command_line import Command
from evenhand.store import open_store
from judged_runs import judged_run

GPT, QWEN = "openai:gpt-5-mini", "openai:qwen2.5-72b"
SAID = {GPT: "AAAAAABB", QWEN: "ABABABAB"}


@pytest.fixture
def judged(command: Command) -> Command:
    """Two judges on in-house-7b, which the config file makes one of gpt's family."""
    entries = '[families]\n"in-house" = "gpt"\n'
    (command.directory / "evenhand.toml").write_text(entries)
    with open_store(command.directory / "s.db") as store:
        judged_run(store, "run", SAID, models=[("in-house-7b", "llama-3-70b")] * 8)
    return command


@pytest.mark.parametrize("name", ["report", "gate"])
def test_a_conclusion_names_the_family(judged: Command, name: str) -> None:
    ran = judged(name, "run", "--store", "s.db")
    assert "in-house-7b is from the judge's own family (gpt)." in " ".join(ran.out.split())


def test_one_pair_names_the_family_too(judged: Command) -> None:
    ran = judged("show", "run", "q1", "--store", "s.db")
    assert ran.out.count("in-house-7b is from the judge's own family (gpt).") == 1


def test_a_report_measures_the_effect(judged: Command) -> None:
    ran = judged("report", "run", "--store", "s.db")
    shown = " ".join(ran.out.split())
    assert f"(gpt): {GPT} scored in-house-7b +25.0 points (" in shown
    assert f") relative to {QWEN} on the same 8 pairs" in shown
    (effect,) = judged("report", "run", "--store", "s.db", "--json").json["conclusions"][
        "familyEffects"
    ]
    assert (effect["family"], effect["difference"]["value"]) == ("gpt", 0.25)


def test_a_ranking_names_the_judge(judged: Command) -> None:
    ran = judged("rank", "run", "--store", "s.db")
    assert f"{GPT} is from the same family as in-house-7b (gpt)" in " ".join(ran.out.split())


@pytest.mark.parametrize("more", [(), ("--recuse-family",)])
def test_a_jury_recuses_when_asked_to(judged: Command, more: tuple[str, ...]) -> None:
    ran = judged("jury", "run", "--store", "s.db", *more)
    assert ran.code == 0
    assert ("recused" in ran.out) == bool(more)
    assert ("--recuse-family drops its vote" in " ".join(ran.out.split())) != bool(more)
