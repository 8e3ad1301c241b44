"""What coding agents and tools ask for: `evenhand mcp` (tools over standard streams), `evenhand
skill` (the Agent Skill) and `evenhand schema` (the contract as JSON Schema).
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from evenhand.cli import options as opt
from evenhand.cli import session
from evenhand.cli.options import ServerChoices, grouped
from evenhand.cli.serve import ConfigFile, OfferedJudges, chosen_offers
from evenhand.errors import InputError
from evenhand.messages import Message

if TYPE_CHECKING:
    from evenhand.serve.config import ServerConfig


# `evenhand mcp`: the tools for an agent that starts this program and talks by its streams.


@grouped
def mcp(
    *,
    judge: OfferedJudges = None,
    server: ServerChoices,
    store: opt.StoreAddress = None,
    config: ConfigFile = None,
) -> None:
    """Serve MCP over standard input and output, for an agent.

    Standard output carries only the protocol; notes and the log go to standard error. The
    server stops at end of input, on SIGTERM or Ctrl-C; background runs are saved and continue
    at the next start. Exit codes: 0 stopped, 2 bad input or the store cannot be used.
    """
    from evenhand.serve.config import read_config
    from evenhand.serve.startup import refuse_without

    refuse_without("mcp")
    chosen: dict[str, Any] = {
        "judges": chosen_offers(judge, server.base_url, config),
        "store": store,
    }
    given = {name: value for name, value in chosen.items() if value is not None}
    session.run_async(_serve(read_config(config, chosen=given)))


async def _serve(config: ServerConfig) -> None:
    from evenhand.serve.startup import importing

    with importing():
        from evenhand.serve.logs import configure_logs
        from evenhand.serve.mcp.stdio import serve_stdio
        from evenhand.serve.service import Service

    configure_logs(config)
    if not config.judges:
        sys.stderr.write(
            "note  no judge configured, so nothing can be compared; give --judge or --config\n"
        )
    if sys.stdin is not None and sys.stdin.isatty():
        sys.stderr.write(
            "note  this command speaks MCP to the agent that starts it; press Ctrl-C to stop\n"
        )
    async with Service.opened(config, for_operator=True) as service:
        await serve_stdio(service)


# `evenhand skill`: put the Agent Skill where coding agents look for it.


def skill(
    agent: Annotated[
        list[str] | None,  # typer takes no list of choices; skill_folders checks them
        typer.Option(
            "--agent",
            metavar="NAME",
            help="Which agent's folder: agents (shared), claude, codex, copilot, cursor, "
            "gemini or opencode. Repeatable. Default: agents and claude.",
        ),
    ] = None,
    of_user: Annotated[
        bool,
        typer.Option(
            "--user/--project",
            help="Install in your home directory for all projects, or in this project.",
        ),
    ] = False,
    directory: Annotated[
        Path | None,
        typer.Option("--dir", help="Another skills folder; evenhand/ is created in it."),
    ] = None,
    show: Annotated[
        bool, typer.Option("--print", help="Print the skill without writing anything.")
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace modified files.")] = False,
) -> None:
    """Install the Agent Skill that teaches agents to use evenhand."""
    from evenhand.skill import skill_folders, skill_texts, write_skill

    if show:
        session.write_text(skill_texts()["SKILL.md"].decode().rstrip("\n"))
        return
    if directory is not None and (agent or of_user):
        raise InputError(Message("command.dir_names_folder"))
    folders = [directory] if directory else skill_folders(agent or (), of_user=of_user)
    for written in write_skill(folders, force=force):
        session.write_text(f"{written.state:<9}  {written.folder}")


# `evenhand schema`: the contract as JSON Schema.


def schema(
    which: Annotated[
        Literal["input", "output"], typer.Argument(help="The input schema or the output schema.")
    ] = "input",
) -> None:
    """Print the JSON Schema of a comparison's input or output."""
    from evenhand.tools import input_schema, output_schema

    shown = input_schema() if which == "input" else output_schema()
    session.write_json(shown)
