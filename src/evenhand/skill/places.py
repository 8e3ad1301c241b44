"""Where coding agents look for skills, by their own documentation (November 2026).

`.agents/skills` is the folder that the Agent Skills standard's clients share: Codex, Copilot,
Cursor, Gemini CLI and OpenCode read it, in a project and in the home directory. Claude Code reads
its own alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from evenhand.errors import InputError

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
# The two that between them reach every agent above.
EVERYBODY = ("agents", "claude")


def skill_folders(
    agents: Sequence[str] = (), *, of_user: bool = False, start: Path | None = None
) -> list[Path]:
    """The folders of skills that these agents look into, each once; without any, everybody's."""
    for agent in agents:
        if agent not in AGENTS:
            raise InputError(f"no agent is called {agent!r}; take one of {', '.join(AGENTS)}")
    root = Path.home() if of_user else project_root(start or Path.cwd())
    known = _OF_USER if of_user else _IN_PROJECT
    return list(dict.fromkeys(root / known[agent] for agent in agents or EVERYBODY))


def project_root(start: Path) -> Path:
    """The checkout that holds a directory, as the agents find it; else the directory itself."""
    here = start.resolve()
    for directory in (here, *here.parents):
        if (directory / ".git").exists():
            return directory
    return here
