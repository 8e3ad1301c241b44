"""Judges by name: which module opens `openai:MODEL`, `local`, `replay:FILE` and so on. A provider
is a module with the functions of `Provider`; other packages register one as an entry point of the
group `evenhand.judges`, named by the prefix. Any other prefix is a pydantic-ai provider.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, fields
from importlib import import_module
from pathlib import Path
from typing import Literal, NamedTuple, Protocol, cast, get_args

from evenhand.errors import InputError, SettingsError
from evenhand.judge_kinds import JUDGE_NAMES, kind_of, takes_address
from evenhand.judges.protocol import ClosedOnExit, Completion, Judge, JudgeCall, OpenJudge, Traits
from evenhand.options import JudgingOptions

TransportName = Literal["aiohttp", "httptools"]
TRANSPORTS: tuple[TransportName, ...] = get_args(TransportName)


@dataclass(frozen=True, kw_only=True, repr=False)
class JudgeOptions(JudgingOptions):
    """The options, and what only code can set. The repr hides secrets."""

    api_key: str | None = field(default=None, repr=False)
    seed: int | None = None  # of the first sample; the next ones count up from it
    cache_dir: Path | None = None
    transport: TransportName | None = None
    answers: bool = False  # a model that is judged: what is not given is left to its server

    def __post_init__(self) -> None:
        if not self.base_url:  # an empty address is how shells say that there is none
            object.__setattr__(self, "base_url", None)
        self.check()
        if self.transport not in (None, *TRANSPORTS):  # callers may be untyped
            raise SettingsError.of(
                "judges.transport_unknown",
                transport=self.transport,
                transports=", ".join(TRANSPORTS),
            )
        if (
            isinstance(self.base_url, tuple) and len(self.base_url) == 1
        ):  # one server is not a fleet
            object.__setattr__(self, "base_url", self.base_url[0])

    @property
    def base_urls(self) -> tuple[str, ...]:
        if self.base_url is None:
            return ()
        return (self.base_url,) if isinstance(self.base_url, str) else self.base_url

    def one_base_url(self, spec: str) -> str | None:
        """For judges that are not a fleet."""
        if isinstance(self.base_url, tuple):
            raise InputError.of("judges.one_base_url_only", spec=spec, n=len(self.base_url))
        return self.base_url

    def __repr__(self) -> str:
        shown = ((f.name, self._shown(f.name)) for f in fields(self) if f.repr)
        values = ", ".join(f"{name}={value!r}" for name, value in shown)
        return f"{type(self).__name__}({values})"

    def _shown(self, name: str) -> object:
        value = getattr(self, name)
        if name != "base_url" or value is None:
            return value
        from evenhand.judges.redaction import shown_url

        shown = tuple(shown_url(each) for each in self.base_urls)
        return shown if isinstance(value, tuple) else shown[0]


ENTRY_POINTS = "evenhand.judges"
_ALL_OTHERS = "evenhand.judges.providers"


class JudgeName(NamedTuple):
    """`openai:gpt-4o` in two parts; `model` is empty for `local`."""

    kind: str
    model: str

    @classmethod
    def read(cls, text: str) -> JudgeName:
        if not isinstance(text, str):  # callers may be untyped
            raise InputError.of("judges.name_no_text", name=type(text).__name__, kinds=_names())
        kind, _, model = text.strip().partition(":")
        if not kind or (not model and kind not in JUDGE_NAMES):
            meant = suggested_model(text)
            if meant is not None:
                raise InputError.of("judges.no_provider", text=text, meant=meant)
            raise InputError.of("judges.spec_incomplete", text=text, kinds=_names())
        return cls(kind, model)

    def __str__(self) -> str:
        return f"{self.kind}:{self.model}" if self.model else self.kind


def _names() -> str:
    return ", ".join(JUDGE_NAMES)


_BARE_MODEL = re.compile(r"[A-Za-z0-9][\w.@/-]*[A-Za-z0-9]")
_BY_BEGINNING = {"claude": "anthropic", "gemini": "google"}


def suggested_model(text: str) -> str | None:
    """`openai:gpt-4o` for `gpt-4o`; None if no model can be meant."""
    bare = text.strip()
    if not _BARE_MODEL.fullmatch(bare) or kind_of(bare) is not None:
        return None
    provider = next((p for name, p in _BY_BEGINNING.items() if bare.startswith(name)), "openai")
    return f"{provider}:{bare}"


class Provider(Protocol):
    """The functions of a provider's module."""

    def open_named(self, name: JudgeName, options: JudgeOptions) -> Judge:
        """The judge; nothing is sent or loaded yet."""

    def traits_of(self, name: JudgeName) -> Traits:
        """What is known of the judge before it is opened, such as its modes."""


def open_judge(spec: str, options: JudgeOptions | None = None) -> OpenJudge:
    """The judge that `spec` names; nothing is sent or loaded before its first question."""
    name = JudgeName.read(spec)
    options = options or JudgeOptions()
    if not takes_address(spec):  # the others are no fleets
        options.one_base_url(str(name))
    opened = _provider_of(name.kind).open_named(name, options)
    return cast("OpenJudge", opened) if hasattr(opened, "__aexit__") else _Foreign(opened)


class _Foreign(ClosedOnExit):
    """Makes another package's judge a context manager."""

    def __init__(self, judge: Judge) -> None:
        self._judge = judge
        self.name = judge.name
        self.traits = judge.traits

    def __getattr__(self, name: str) -> object:  # its identity, account and news
        return getattr(self._judge, name)

    async def ask(self, call: JudgeCall) -> Completion:
        return await self._judge.ask(call)

    async def close(self) -> None:
        await self._judge.close()


def traits_of(spec: str | None) -> Traits:
    """The traits of the judge that `spec` names, or of any model."""
    if spec is None:
        return Traits()
    name = JudgeName.read(spec)
    return _provider_of(name.kind).traits_of(name)


def _provider_of(kind: str) -> Provider:
    known = kind_of(kind)
    if known is None:
        from importlib.metadata import entry_points

        for entry in entry_points(group=ENTRY_POINTS, name=kind):
            return cast("Provider", entry.load())
    return cast("Provider", import_module(known.module if known else _ALL_OTHERS))
