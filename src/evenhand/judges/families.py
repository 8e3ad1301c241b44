"""Families of models: which names are of one lineage, so that a judge may favour its own kind.

`families.toml` holds what names look like. A name that it does not know has no family: nothing is
guessed, neither from who serves a model (`openai:` is any server of that protocol) nor from a file
of recorded answers, whose name says as much of the data as of the judge.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import cache

# A name, or a part of one, and its families: `[families]` of a config file.
OwnFamilies = tuple[tuple[str, tuple[str, ...]], ...]

_BEFORE, _AFTER = r"(?<![a-z0-9])", r"(?![a-z])"
# Kinds of judges whose name does not name a model.
_NO_MODEL = ("replay:", "command:", "function:", "baseline:")
_MODEL_FILE = re.compile(r"\.(?:gguf|safetensors|bin)$")
_LONGEST_NAME = 500  # names come from data, and patterns look at each place of them


class Families:
    """What each name is of, with the caller's own entries before the known ones: a name that one of
    them matches is of the families that it says, and of no others."""

    def __init__(self, own: OwnFamilies = ()) -> None:
        self._own = tuple(
            (re.compile(rf"(?<![a-z0-9]){re.escape(name.lower())}(?![a-z0-9])"), tuple(families))
            for name, families in own
        )
        self._known: dict[str, frozenset[str]] = {}

    def of(self, name: str | None) -> frozenset[str]:
        """The families of a model or a judge; empty where none is known."""
        if name is None:
            return frozenset()
        if name not in self._known:
            self._known[name] = self._look_up(name)
        return self._known[name]

    def _look_up(self, name: str) -> frozenset[str]:
        plain = name.strip().lower()[:_LONGEST_NAME]
        own = [families for pattern, families in self._own if pattern.search(plain)]
        if own:
            return frozenset(family for families in own for family in families)
        if plain.startswith(_NO_MODEL):
            return frozenset()
        if plain.startswith("local:") or _MODEL_FILE.search(plain):
            # Of a path the folders say nothing of the model.
            plain = re.split(r"[/\\]", plain.removeprefix("local:"))[-1]
        return frozenset(family for family, pattern in _patterns().items() if pattern.search(plain))

    def of_judge(self, name: str, served: Iterable[str] = ()) -> frozenset[str]:
        """By its name, or else by the models that its answers name."""
        return self.of(name) or frozenset().union(*map(self.of, served))


@cache
def _patterns() -> Mapping[str, re.Pattern[str]]:
    import tomllib
    from importlib.resources import files

    table = tomllib.loads(files(__package__).joinpath("families.toml").read_text("utf-8"))
    return {
        family: re.compile(f"{_BEFORE}(?:{'|'.join(patterns)}){_AFTER}")
        for family, patterns in table.items()
    }
