"""`evenhand skill`: put the Agent Skill where coding agents look for it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from evenhand.cli import session
from evenhand.errors import InputError


def skill(
    agent: Annotated[
        list[str] | None,  # typer takes no list of choices; skill_folders checks them
        typer.Option(
            "--agent",
            metavar="NAME",
            help="Whose folder: agents (the shared one), claude, codex, copilot, cursor, gemini or "
            "opencode; repeatable. Default: agents and claude.",
        ),
    ] = None,
    of_user: Annotated[
        bool,
        typer.Option(
            "--user/--project",
            help="For all your projects, in the home directory, or for this one.",
        ),
    ] = False,
    directory: Annotated[
        Path | None,
        typer.Option("--dir", help="Another folder of skills; evenhand/ is made in it."),
    ] = None,
    show: Annotated[
        bool, typer.Option("--print", help="Print the skill instead, and write nothing.")
    ] = False,
    force: Annotated[
        bool, typer.Option("--force", help="Replace files that were changed.")
    ] = False,
) -> None:
    """Write the Agent Skill that teaches a coding agent to use evenhand."""
    from evenhand.skill import skill_folders, skill_texts, write_skill

    if show:
        session.write_text(skill_texts()["SKILL.md"].decode().rstrip("\n"))
        return
    if directory is not None and (agent or of_user):
        raise InputError("--dir names the folder itself; leave out --agent and --user")
    folders = [directory] if directory else skill_folders(agent or (), of_user=of_user)
    for written in write_skill(folders, force=force):
        session.write_text(f"{written.state:<9}  {written.folder}")
