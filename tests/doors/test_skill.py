"""The Agent Skill as files: that it is one, and that writing it loses nobody's words."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
import yaml

from evenhand.errors import InputError
from evenhand.messages import speaking_to
from evenhand.skill import AGENTS, NAME, skill_folders, skill_texts, write_skill

TEXTS = {name: text.decode() for name, text in skill_texts().items()}
SKILL = TEXTS["SKILL.md"]
FILES = sorted(TEXTS)


def front_matter() -> dict[str, str]:
    opening, matter, _ = SKILL.split("---\n", 2)
    assert opening == ""
    read = yaml.safe_load(matter)
    assert isinstance(read, dict)
    return read


def test_front_matter_is_what_the_standard_asks_for() -> None:
    """agentskills.io: the name is the folder's, both are within their lengths, nothing else."""
    matter = front_matter()
    assert matter.keys() <= {"name", "description", "license", "compatibility", "metadata"}
    assert matter["name"] == NAME
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", matter["name"])
    assert 1 <= len(matter["description"]) <= 1024
    assert "Use when" in matter["description"]
    assert 1 <= len(matter["compatibility"]) <= 500


def test_skill_is_short_enough_to_be_read_whole() -> None:
    assert SKILL.count("\n") < 500
    assert len(SKILL) / 4 < 5000  # about four characters a token


def test_every_reference_is_linked_from_the_skill_and_every_link_leads_somewhere() -> None:
    for name, text in TEXTS.items():
        for target in re.findall(r"\]\(([^)]+)\)", text):
            found = os.path.normpath(Path(name).parent / target)
            assert found in TEXTS, f"{name}: {target}"
    linked = set(re.findall(r"\]\(([^)]+)\)", SKILL))
    assert linked == set(TEXTS) - {"SKILL.md"}


@pytest.mark.parametrize("outcome", ["win", "tie", "inconsistent", "invalid"])
def test_skill_says_what_to_do_with_each_outcome(outcome: str) -> None:
    assert re.search(rf"^\| `{outcome}`", SKILL, re.MULTILINE)


def test_skill_is_written_once_and_then_left_alone(tmp_path: Path) -> None:
    (first,) = write_skill([tmp_path])
    assert (first.folder, first.state) == (tmp_path / NAME, "written")
    for name, text in TEXTS.items():
        assert (tmp_path / NAME / name).read_text("utf-8") == text
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
    (again,) = write_skill([tmp_path])
    assert again.state == "unchanged"
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")} == before


@pytest.mark.parametrize("name", FILES)
def test_edit_is_kept_unless_forced(tmp_path: Path, name: str) -> None:
    write_skill([tmp_path])
    edited = tmp_path / NAME / name
    edited.write_text("mine", encoding="utf-8")
    with speaking_to("cli"), pytest.raises(InputError, match="--force"):
        write_skill([tmp_path])
    assert edited.read_text("utf-8") == "mine"
    (forced,) = write_skill([tmp_path], force=True)
    assert forced.state == "updated"
    assert edited.read_text("utf-8") == TEXTS[name]


def test_file_that_was_there_before_is_not_ours(tmp_path: Path) -> None:
    (tmp_path / NAME).mkdir()
    (tmp_path / NAME / "SKILL.md").write_text("another skill of that name", encoding="utf-8")
    with pytest.raises(InputError, match="not evenhand's"):
        write_skill([tmp_path])
    assert os.listdir(tmp_path / NAME) == ["SKILL.md"]


def test_one_edited_folder_keeps_every_other_from_being_half_done(tmp_path: Path) -> None:
    edited = tmp_path / "b" / NAME / "SKILL.md"
    edited.parent.mkdir(parents=True)
    edited.write_text("mine", encoding="utf-8")
    with pytest.raises(InputError):
        write_skill([tmp_path / "a", tmp_path / "b"])
    assert not (tmp_path / "a").exists()


def test_older_version_of_ours_is_brought_up_to_date(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = {"SKILL.md": b"version one", "references/gone.md": b"no longer", "kept.md": b"as it was"}
    monkeypatch.setattr("evenhand.skill.installation.skill_texts", lambda: old)
    write_skill([tmp_path])
    (tmp_path / NAME / "kept.md").write_text("mine now", encoding="utf-8")
    monkeypatch.undo()
    (updated,) = write_skill([tmp_path])
    assert updated.state == "updated"
    assert (tmp_path / NAME / "SKILL.md").read_text("utf-8") == SKILL
    assert not (tmp_path / NAME / "references/gone.md").exists()
    assert (tmp_path / NAME / "kept.md").read_text("utf-8") == "mine now"


def test_killed_half_way_it_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every file is either as it was or as it will be, so that the next time none looks edited."""
    replace = os.replace
    left = 2

    def killed(source: Path, target: Path) -> None:
        nonlocal left
        if left == 0:
            raise KeyboardInterrupt
        left -= 1
        replace(source, target)

    monkeypatch.setattr("evenhand.skill.installation.os.replace", killed)
    with pytest.raises(KeyboardInterrupt):
        write_skill([tmp_path])
    monkeypatch.undo()
    there = [path for path in (tmp_path / NAME).rglob("*") if path.is_file()]
    assert len(there) == 2
    write_skill([tmp_path])
    written = {path.relative_to(tmp_path / NAME).as_posix() for path in (tmp_path).rglob("*.md")}
    assert written == set(TEXTS)


def test_record_of_a_strange_checkout_deletes_nothing_outside(tmp_path: Path) -> None:
    """The attack: a record that names a file elsewhere, with its true digest, as an old one."""
    from hashlib import sha256

    victim = tmp_path / "notes.md"
    victim.write_bytes(b"precious")
    digest = sha256(b"precious").hexdigest()
    folder = tmp_path / "skills" / NAME
    folder.mkdir(parents=True)
    names = ["../../notes.md", str(victim), "a/../../../notes.md", "..\\..\\notes.md"]
    record = "{" + ", ".join(f'"{name}": "{digest}"'.replace("\\", "\\\\") for name in names) + "}"
    (folder / ".written.json").write_text(record, encoding="utf-8")
    write_skill([tmp_path / "skills"])
    assert victim.read_bytes() == b"precious"


@pytest.mark.parametrize("record", ["", "[]", "{", '{"SKILL.md": 1}', "[" * 100_000])
def test_record_that_is_none_is_as_good_as_absent(tmp_path: Path, record: str) -> None:
    (tmp_path / NAME).mkdir()
    (tmp_path / NAME / ".written.json").write_text(record, encoding="utf-8")
    write_skill([tmp_path])
    assert (tmp_path / NAME / "SKILL.md").read_text("utf-8") == SKILL


def test_everybodys_folders_are_the_shared_one_and_claude_codes(tmp_path: Path) -> None:
    assert skill_folders(start=tmp_path) == [
        tmp_path / ".agents/skills",
        tmp_path / ".claude/skills",
    ]


def test_agents_that_share_a_folder_get_it_once(tmp_path: Path) -> None:
    assert skill_folders(["codex", "agents"], start=tmp_path) == [tmp_path / ".agents/skills"]


def test_project_is_the_checkout_that_holds_the_directory(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    deep = tmp_path / "src" / "deep"
    deep.mkdir(parents=True)
    assert skill_folders(["claude"], start=deep) == [tmp_path / ".claude/skills"]


def test_users_folders_are_in_the_home_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    found = skill_folders(AGENTS, of_user=True)
    assert all(folder.is_relative_to(tmp_path) for folder in found)
    assert tmp_path / ".config/opencode/skills" in found


def test_unknown_agent_is_named_with_those_that_are_known() -> None:
    with pytest.raises(InputError, match=r"'vim'; use one of agents, claude"):
        skill_folders(["vim"])
