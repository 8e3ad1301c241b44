"""How commands are listed and found: help in groups, whole sentences, and for a command that is
not there the one that was meant, wherever in the tree it stands.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from difflib import get_close_matches
from importlib import import_module
from typing import Any

from typer import Typer
from typer.core import TyperGroup
from typer.main import get_command, get_group

from evenhand.analyses.registry import analyses
from evenhand.errors import InputError
from evenhand.messages import Message

_NAME = "evenhand"
# Short help is cut at a length; no sentence of ours is as long.
_WHOLE = 10_000


# In the place of a module and a sentence: `analyses/registry.py` has them. What does more than the
# analysis of its name is a module all the same.
_REGISTERED = ("", "")

# Panel by panel: a command, its module, and what its help says first (a test compares the two).
# Modules are imported when their command is called: all of them take longer than most commands.
_PANELS: dict[str, tuple[tuple[str, str, str], ...]] = {
    "Judge": (
        ("compare", "compare", "Judge which of two responses is better, in both orders."),
        ("ab", "ab", "Have two models answer prompts and judge which is better."),
        ("run", "run", "Judge a file of pairs or two models' outputs; resumable."),
        ("prompt", "prompt", "Show exactly what the judge is sent in both passes."),
        ("criteria", "criteria", "Suggest criteria for a data set and test them."),
        ("plan", *_REGISTERED),
    ),
    "Conclude": (
        ("report", *_REGISTERED),
        ("gate", *_REGISTERED),
        ("rank", *_REGISTERED),
        ("diff", *_REGISTERED),
        ("show", "show", "Show one pair in full, with every pass."),
        ("flag", "show", "Flag a pair with a comment, or unflag it."),
        ("runs", "runs", "List, show, rename, export or delete runs."),
    ),
    "Trust the judge": (
        ("audit", *_REGISTERED),
        ("probe", *_REGISTERED),
        ("calibrate", *_REGISTERED),
        ("jury", *_REGISTERED),
        ("correct", "correct", "Correct a win rate for judge errors, using human labels."),
        ("label", "label", "Vote on a run's pairs in the terminal, blind; resumable."),
        ("votes", "votes", "Summarise, import or export human votes on a run."),
    ),
    "Serve": (
        ("serve", "serve", "Serve the HTTP API at /v1, MCP at /mcp and web pages."),
        ("mcp", "agents", "Serve MCP over standard input and output, for an agent."),
        ("skill", "agents", "Install the Agent Skill that teaches agents to use evenhand."),
        ("schema", "agents", "Print the JSON Schema of a comparison's input or output."),
    ),
    "Set up": (
        ("init", "init", "Write a commented evenhand.toml and sample data."),
        ("demo", "demo", "See it work: a tiny model live, then a strong judge's reasons."),
        ("doctor", "setup", "Check the setup and the judge."),
        ("models", "setup", "Download, locate and serve the embedded model."),
    ),
}


class _Commands(dict[str, Any]):
    """The commands by name, each imported and built on first use."""

    def __init__(self) -> None:
        rows = [row for rows in _PANELS.values() for row in rows]
        super().__init__(dict.fromkeys(name for name, _, _ in rows))
        self._modules = {name: module for name, module, _ in rows}

    def __contains__(self, name: object) -> bool:
        """Looks at installed packages where the command is none of ours."""
        return super().__contains__(name) or name in analyses()

    def __getitem__(self, name: str) -> Any:
        command = super().get(name)
        if command is None:
            command = self[name] = self._built(name)
        return command

    def get(self, name: str, default: Any = None) -> Any:
        known = name in self  # and not by `get`, which would not build it
        return self[name] if known else default

    def values(self) -> Any:
        return [self[name] for name in self]

    def items(self) -> Any:
        return [(name, self[name]) for name in self]

    def _built(self, name: str) -> Any:
        if module := self._modules.get(name):
            found: Any = getattr(import_module(f"evenhand.cli.{module}"), name)
        else:
            from evenhand.cli.analyses import command_of

            found = command_of(analyses()[name])
        around = Typer(rich_markup_mode=None, pretty_exceptions_enable=False, add_completion=False)
        if isinstance(found, Typer):
            around.add_typer(found, name=name)
            return get_group(around).commands[name]
        around.command(name)(found)
        return get_command(around)


class CommandTree(TyperGroup):
    """Commands with whole sentences, and what was meant by one that is not there."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        rows = [
            (name, command.get_short_help_str(_WHOLE)) for name, command in self.commands.items()
        ]
        self.write_panels(formatter, {"Commands": rows})

    def write_panels(self, formatter: Any, panels: dict[str, list[tuple[str, str]]]) -> None:
        widest = max((len(name) for rows in panels.values() for name, _ in rows), default=0)
        for panel, rows in panels.items():
            with formatter.section(panel):
                formatter.write_dl([(name.ljust(widest), text) for name, text in rows])

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        if args[0].startswith("-") or args[0] in self.commands:
            return super().resolve_command(ctx, args)
        here = path_of(ctx)
        meant = _meant(ctx.find_root().command, here, args[0])
        if meant:
            raise InputError(Message("command.unknown_meant", word=args[0], meant=meant))
        raise InputError(Message("command.unknown", word=args[0], path=" ".join(here)))


@dataclass(slots=True)
class Invocation:
    """What was typed, as far as it is parsed: errors are shown by it."""

    words: list[str] = field(default_factory=list)
    command: str | None = None


class RootCommands(CommandTree):
    """`evenhand` itself: its commands by their panels."""

    def __init__(self, **given: Any) -> None:
        super().__init__(**{**given, "commands": _Commands()})

    def parse_args(self, ctx: Any, args: list[str]) -> Any:
        if isinstance(ctx.obj, Invocation):
            ctx.obj.words = [*args]
        return super().parse_args(ctx, args)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        if isinstance(ctx.obj, Invocation):
            ctx.obj.command = args[0]
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        found = analyses()
        panels = {
            panel: [
                (name, text or found[name].summary if name in found else text)
                for name, _, text in rows
            ]
            for panel, rows in _PANELS.items()
        }
        listed = {name for rows in panels.values() for name, _ in rows}
        for each in found.values():
            if each.name not in listed:
                panels.setdefault(each.panel, []).append((each.name, each.summary))
        self.write_panels(formatter, panels)


def path_of(context: Any) -> tuple[str, ...]:
    """The words that name a command, whatever the program was started as."""
    words: list[str] = []
    while context.parent is not None:
        words.append(context.info_name or "")
        context = context.parent
    return (_NAME, *reversed(words))


def _meant(root: Any, here: tuple[str, ...], word: str) -> list[str]:
    """Commands of that name anywhere in the tree; else those here, then all, with one like it."""
    paths = [path for path in _paths(root, (_NAME,)) if path != (_NAME,)]
    same = [path for path in paths if path[-1] == word]
    if not same:
        like = set(get_close_matches(word, {path[-1] for path in paths}, cutoff=0.7))
        same = [path for path in paths if path[-1] in like]
        same = [path for path in same if path[:-1] == here] or same
    return [" ".join(path) for path in same]


def _paths(command: Any, path: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    yield path
    for name, below in getattr(command, "commands", {}).items():
        if not below.hidden:
            yield from _paths(below, (*path, name))
