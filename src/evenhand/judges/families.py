"""Families of models: which names are of one lineage, so that a judge may favour its own kind.

`families.toml` holds what names look like. A name that it does not know has no family: nothing is
guessed, neither from who serves a model (`openai:` is any server of that protocol) nor from a file
of recorded answers, whose name says as much of the data as of the judge.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache

from evenhand.judge_kinds import file_of, kind_of
from evenhand.messages import Message

# A name, or a part of one, and its families: `[families]` of a config file.
OwnFamilies = tuple[tuple[str, tuple[str, ...]], ...]

_BEFORE, _AFTER = r"(?<![a-z0-9])", r"(?![a-z])"
# Beside the kinds of `judge_kinds`: what stands after the colon names no model.
_NO_MODEL = ("command:", "function:")
_MODEL_FILE = re.compile(r"\.(?:gguf|safetensors|bin)$")
_NAMED_AT_MOST = 3
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
        kind = kind_of(plain) if ":" in plain else None
        takes = kind.takes if kind else None
        if takes in ("recording", "rule") or plain.startswith(_NO_MODEL):
            return frozenset()
        if takes == "model file" or _MODEL_FILE.search(plain):
            # Of a path the folders say nothing of the model.
            plain = re.split(r"[/\\]", file_of(plain) or plain)[-1]
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


# What people are told of it.


def shared_message(
    judge: frozenset[str], models: Sequence[str | None], families: Families
) -> Message | None:
    """Which of two contestants is of the judge's family."""
    own = [(model, judge & families.of(model)) for model in models if model is not None]
    own = [(model, shared) for model, shared in own if shared]
    if not own:
        return None
    shared = sorted(frozenset[str]().union(*(each for _, each in own)))
    code = "trust.same_family" if len(own) == 1 else "trust.same_family_both"
    return Message(code, model=own[0][0], families=shared)


def shared_notes(
    judges: Iterable[tuple[str, frozenset[str]]],
    models: Iterable[str | None],
    families: Families,
    *,
    code: str = "report.same_family",
) -> Iterator[Message]:
    """For several judges and models at once: which judge is of whose family."""
    named = [name for name in dict.fromkeys(models) if name is not None]
    for judge, own in dict.fromkeys(judges):
        of_its = [name for name in named if own & families.of(name)]
        if of_its:
            shared = sorted(own & frozenset[str]().union(*map(families.of, of_its)))
            yield Message(code, judge=judge, models=few(of_its), families=shared)


def few(names: Sequence[str]) -> list[str]:
    """The first of them, and how many more there are."""
    more = len(names) - _NAMED_AT_MOST
    shown = list(names[:_NAMED_AT_MOST])
    return [*shown, Message("ranking.more_models", n=more)] if more > 0 else shown
