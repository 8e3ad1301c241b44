"""Families of models: a judge may favour its own.

`families.toml` has the patterns. An unknown name has no family: neither the server (`openai:` is
any server of that protocol) nor the name of a recording is evidence.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache

from evenhand.judge_kinds import file_of, kind_of
from evenhand.messages import Message

# A name, or part of one, and its families: `[families]` of a config file.
OwnFamilies = tuple[tuple[str, tuple[str, ...]], ...]

_BEFORE, _AFTER = r"(?<![a-z0-9])", r"(?![a-z])"
# Besides the `judge_kinds`: the text after the colon names no model.
_NO_MODEL = ("command:", "function:")
_MODEL_FILE = re.compile(r"\.(?:gguf|safetensors|bin)$")
_NAMED_AT_MOST = 3
_LONGEST_NAME = 500  # names come from data, and patterns look at each place of them


class Families:
    """The families of each name; a caller's entry that matches takes precedence over the built-in
    ones."""

    def __init__(self, own: OwnFamilies = ()) -> None:
        self._own = tuple(
            (re.compile(rf"(?<![a-z0-9]){re.escape(name.lower())}(?![a-z0-9])"), tuple(families))
            for name, families in own
        )
        self._known: dict[str, frozenset[str]] = {}

    def of(self, name: str | None) -> frozenset[str]:
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
            # The folders of a path do not name the model.
            plain = re.split(r"[/\\]", file_of(plain) or plain)[-1]
        return frozenset(family for family, pattern in _patterns().items() if pattern.search(plain))

    def of_judge(self, name: str, served: Iterable[str] = ()) -> frozenset[str]:
        """By its name, else by the models that its answers name."""
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
    """For several judges and models: which judge is of whose family."""
    named = [name for name in dict.fromkeys(models) if name is not None]
    for judge, own in dict.fromkeys(judges):
        of_its = [name for name in named if own & families.of(name)]
        if of_its:
            shared = sorted(own & frozenset[str]().union(*map(families.of, of_its)))
            yield Message(code, judge=judge, models=few(of_its), families=shared)


def few(names: Sequence[str]) -> list[str]:
    """The first few, and how many more."""
    more = len(names) - _NAMED_AT_MOST
    shown = list(names[:_NAMED_AT_MOST])
    return [*shown, Message("ranking.more_models", n=more)] if more > 0 else shown
