"""Judges by name: which module opens `openai:MODEL`, `local`, `replay:FILE` and the others.

A provider is a module with the two functions of `Provider`. One of another package says so by an
entry point of the group `evenhand.judges`, named for what stands before the colon; whatever is
known to neither is a provider of pydantic-ai's.
"""

from __future__ import annotations

from importlib import import_module
from typing import NamedTuple, Protocol, cast

from evenhand.errors import InputError
from evenhand.judges.options import JudgeOptions
from evenhand.judges.protocol import Judge, Traits
from evenhand.messages import Message

KINDS = (
    "openai:MODEL, anthropic:MODEL, google:MODEL, local, local:FILE.gguf, replay:FILE, "
    "baseline:longer, baseline:random"
)
ENTRY_POINTS = "evenhand.judges"

_MODULES = {
    "openai": "evenhand.judges.openai",
    "local": "evenhand.judges.local",
    "replay": "evenhand.judges.replay",
    "baseline": "evenhand.judges.baseline",
}
_ALL_OTHERS = "evenhand.judges.providers"


class JudgeName(NamedTuple):
    """`openai:gpt-4o` in its two parts; `model` is empty for the embedded judge, `local`."""

    kind: str
    model: str

    @classmethod
    def read(cls, text: str) -> JudgeName:
        if not isinstance(text, str):  # callers may be untyped
            raise InputError(
                Message("judges.judge_name_string", name=type(text).__name__, kinds=KINDS)
            )
        kind, _, model = text.strip().partition(":")
        if not kind or (not model and kind != "local"):
            raise InputError(Message("judges.judge_complete_text_kinds", text=text, kinds=KINDS))
        return cls(kind, model)

    def __str__(self) -> str:
        return f"{self.kind}:{self.model}" if self.model else self.kind


class Provider(Protocol):
    """What a provider's module has."""

    def open_named(self, name: JudgeName, options: JudgeOptions) -> Judge:
        """The judge; nothing is sent or loaded before its first question."""

    def traits_of(self, name: JudgeName) -> Traits:
        """What is known of the judge before it is opened: above all, its modes."""


def open_judge(spec: str, options: JudgeOptions | None = None) -> Judge:
    """The judge that `spec` names. Nothing is sent or loaded before its first question."""
    name = JudgeName.read(spec)
    options = options or JudgeOptions()
    if name.kind != "openai":  # the others are no fleets
        options.one_base_url(str(name))
    return _provider_of(name.kind).open_named(name, options)


def traits_of(spec: str | None) -> Traits:
    """Those of the judge that `spec` names; without one, those of any model."""
    if spec is None:
        return Traits()
    name = JudgeName.read(spec)
    return _provider_of(name.kind).traits_of(name)


def _provider_of(kind: str) -> Provider:
    module = _MODULES.get(kind)
    if module is None:
        from importlib.metadata import entry_points

        for entry in entry_points(group=ENTRY_POINTS, name=kind):
            return cast("Provider", entry.load())
    return cast("Provider", import_module(module or _ALL_OTHERS))
