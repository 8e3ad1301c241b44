"""Writes the skill into the folders where coding agents look for skills; repeatable, and never over
a user's edits.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Literal
from uuid import uuid4

from evenhand.errors import InputError

# Where coding agents look for skills, by their own documentation (November 2026). `.agents/skills`
# is shared by clients of the Agent Skills standard: Codex, Copilot, Cursor, Gemini CLI and OpenCode
# read it, in a project and in the home directory. Claude Code reads only its own.

_IN_PROJECT = {
    "agents": ".agents/skills",
    "claude": ".claude/skills",
    "codex": ".agents/skills",
    "copilot": ".github/skills",
    "cursor": ".cursor/skills",
    "gemini": ".gemini/skills",
    "opencode": ".opencode/skills",
}
_OF_USER = {
    "agents": ".agents/skills",
    "claude": ".claude/skills",
    "codex": ".agents/skills",
    "copilot": ".copilot/skills",
    "cursor": ".cursor/skills",
    "gemini": ".gemini/skills",
    "opencode": ".config/opencode/skills",
}
AGENTS = tuple(_IN_PROJECT)
# These two reach every agent above.
EVERYBODY = ("agents", "claude")


def skill_folders(
    agents: Sequence[str] = (), *, of_user: bool = False, start: Path | None = None
) -> list[Path]:
    """The agents' skill folders without duplicates; everybody's by default."""
    for agent in agents:
        if agent not in AGENTS:
            raise InputError.of("skill.agent_unknown", agent=agent, agents=", ".join(AGENTS))
    root = Path.home() if of_user else project_root(start or Path.cwd())
    known = _OF_USER if of_user else _IN_PROJECT
    return list(dict.fromkeys(root / known[agent] for agent in agents or EVERYBODY))


def project_root(start: Path) -> Path:
    """The checkout that contains a directory, as agents find it; else the directory itself."""
    here = start.resolve()
    for directory in (here, *here.parents):
        if (directory / ".git").exists():
            return directory
    return here


NAME = "evenhand"  # of the skill, and so of its folder: the standard wants them equal
# Digests of what was written; differences are a user's edits.
_RECORD = ".written.json"


@dataclass(frozen=True, slots=True)
class Written:
    folder: Path
    state: Literal["written", "updated", "unchanged"]


def skill_texts() -> dict[str, bytes]:
    """Every file of the skill by relative path, SKILL.md first."""
    found = dict(_walk(files("evenhand.skill") / NAME, ""))
    return {"SKILL.md": found.pop("SKILL.md"), **found}


def _walk(folder: Traversable, prefix: str) -> list[tuple[str, bytes]]:
    found: list[tuple[str, bytes]] = []
    for entry in sorted(folder.iterdir(), key=lambda entry: entry.name):
        if entry.is_dir():
            found += _walk(entry, f"{prefix}{entry.name}/")
        elif entry.name.endswith(".md"):
            found.append((prefix + entry.name, entry.read_bytes()))
    return found


def write_skill(folders: Sequence[Path], *, force: bool = False) -> list[Written]:
    """Write the skill into each folder, after checking all of them."""
    texts = skill_texts()
    if not force:
        for folder in folders:
            _refuse_overwrite(folder / NAME, texts)
    return [_write(folder / NAME, texts) for folder in folders]


def _refuse_overwrite(folder: Path, texts: dict[str, bytes]) -> None:
    recorded = _read_record(folder)
    for name, text in texts.items():
        path = folder / name
        there = _read(path)
        if there is not None and there != text and recorded.get(name) != _digest(there):
            raise InputError.of("skill.file_changed", path=path)


def _write(folder: Path, texts: dict[str, bytes]) -> Written:
    recorded = _read_record(folder)
    stale = {name for name in recorded if name not in texts}
    wanted = {name: _digest(text) for name, text in texts.items()}
    there = {name: _read(folder / name) for name in texts}
    if there == texts and recorded == wanted:
        return Written(folder, "unchanged")
    for name, text in texts.items():
        if there[name] != text:
            _replace(folder / name, text)
    for name in stale:
        # A file of an earlier version; an edited one belongs to its editor.
        old = _read(folder / name)
        if old is not None and _digest(old) == recorded[name]:
            (folder / name).unlink()
    # Last, so that after a kill every file is either old or new.
    _replace(folder / _RECORD, json.dumps(wanted, indent=1).encode() + b"\n")
    fresh = all(text is None for text in there.values())
    return Written(folder, "written" if fresh else "updated")


def _read(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None


def _read_record(folder: Path) -> dict[str, str]:
    try:
        record = json.loads(_read(folder / _RECORD) or b"{}")
    except (ValueError, RecursionError):
        return {}
    if not isinstance(record, dict):
        return {}
    # In somebody's checkout, names that leave the folder are not ours.
    return {
        name: digest
        for name, digest in record.items()
        if isinstance(digest, str) and _stays_inside(name)
    }


def _stays_inside(name: str) -> bool:
    parts = name.replace("\\", "/").split("/")
    return (
        name.endswith(".md") and ":" not in name and all(part not in ("", "..") for part in parts)
    )


def _replace(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f"{path.name}.{uuid4().hex}")
    try:
        beside.write_bytes(data)
        os.replace(beside, path)
    finally:
        beside.unlink(missing_ok=True)


def _digest(text: bytes) -> str:
    return sha256(text).hexdigest()
