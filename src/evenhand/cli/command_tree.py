"""How commands are listed and found: help in groups, whole sentences, and for a command that is
not there the one that was meant, wherever in the tree it stands.
"""

from __future__ import annotations

from collections.abc import Iterator
from difflib import get_close_matches
from typing import Any

from typer.core import TyperGroup

from evenhand.errors import InputError
from evenhand.messages import Message

_NAME = "evenhand"
# Short help is cut at a length; no sentence of ours is as long.
_WHOLE = 10_000
_UNGROUPED = "Commands"


class CommandTree(TyperGroup):
    """Lists commands by their panel, in the order in which panels and commands were added."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        panels: dict[str, list[tuple[str, str]]] = {}
        for name, command in self.commands.items():
            if not command.hidden:
                panel = getattr(command, "rich_help_panel", None) or _UNGROUPED
                panels.setdefault(panel, []).append((name, command.get_short_help_str(_WHOLE)))
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
