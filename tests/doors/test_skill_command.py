from __future__ import annotations

from command_line import Command
from evenhand.skill import NAME, skill_texts

TEXT = skill_texts()["SKILL.md"].decode()


def test_skill_is_written_where_most_agents_look(command: Command) -> None:
    ran = command("skill")
    assert ran.code == 0
    for folder in (".agents/skills", ".claude/skills"):
        there = command.directory / folder / NAME
        assert f"written    {there}" in ran.out
        assert (there / "SKILL.md").read_text("utf-8") == TEXT
    assert command("skill").out.count("unchanged") == 2


def test_skill_is_written_for_one_agent_in_the_home_directory(command: Command) -> None:
    assert command("skill", "--agent", "gemini", "--user").code == 0
    assert (command.directory / ".gemini/skills" / NAME / "SKILL.md").exists()
    assert not (command.directory / ".agents").exists()


def test_skill_is_written_to_any_folder(command: Command) -> None:
    assert command("skill", "--dir", "mine").code == 0
    assert (command.directory / "mine" / NAME / "references/data.md").exists()


def test_skill_is_printed_and_nothing_is_written(command: Command) -> None:
    assert command("skill", "--print").out == TEXT
    assert not (command.directory / ".agents").exists()


def test_edit_is_refused_with_the_remedy_and_replaced_by_force(command: Command) -> None:
    command("skill", "--agent", "claude")
    edited = command.directory / ".claude/skills" / NAME / "SKILL.md"
    edited.write_text("mine", encoding="utf-8")
    refused = command("skill", "--agent", "claude")
    assert refused.code == 2
    assert "replace it with --force" in refused.err
    assert edited.read_text("utf-8") == "mine"
    assert command("skill", "--agent", "claude", "--force").code == 0
    assert edited.read_text("utf-8") == TEXT


def test_folder_and_agent_together_are_refused(command: Command) -> None:
    assert "leave out --agent" in command("skill", "--dir", "x", "--agent", "claude").err


def test_folder_that_cannot_be_made_is_an_error_of_one_line(command: Command) -> None:
    (command.directory / "file").write_text("", encoding="utf-8")
    ran = command("skill", "--dir", "file")
    assert ran.code == 2
    assert ran.err.count("\n") == 1
    assert "Traceback" not in ran.err
