"""Where a judge is and how it is asked, whichever provider it is of."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Literal, get_args

from evenhand.errors import InputError, SettingsError
from evenhand.messages import Message

TransportName = Literal["aiohttp", "httptools"]
TRANSPORTS: tuple[TransportName, ...] = get_args(TransportName)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class JudgeOptions:
    """None: the judge's own default. No repr shows a secret.

    What judges need of `evenhand.JudgeConfig`, which adds how a pair is judged.
    """

    base_url: str | tuple[str, ...] | None = None  # several are a fleet, of openai: judges alone
    api_key: str | None = field(default=None, repr=False)
    timeout_s: float | None = None
    max_tokens: int | None = None
    temperature: float | None = None
    seed: int | None = None  # of the first sample; the next ones count up from it
    cache_dir: Path | None = None
    transport: TransportName | None = None

    def __post_init__(self) -> None:
        if self.timeout_s is not None and not 0 < self.timeout_s < math.inf:
            raise SettingsError(
                Message("judges.timeout_s_number_seconds", timeout_s=self.timeout_s)
            )
        if self.max_tokens is not None and self.max_tokens < 1:
            raise SettingsError(Message("judges.max_tokens_least_1", max_tokens=self.max_tokens))
        if self.temperature is not None and not 0 <= self.temperature < math.inf:
            raise SettingsError(Message("judges.temperature_0_more", temperature=self.temperature))
        if self.transport not in (None, *TRANSPORTS):  # callers may be untyped
            raise SettingsError(
                Message(
                    "judges.transport_none_transports",
                    transport=self.transport,
                    transports=", ".join(TRANSPORTS),
                )
            )
        given: object = self.base_url  # callers may be untyped
        if given is None or isinstance(given, str):
            return
        if not isinstance(given, (list, tuple)) or not all(
            isinstance(each, str) and each.strip() for each in given
        ):
            raise InputError(Message("judges.base_url_address_such"))
        # One is no fleet, and none is nothing given.
        plain = tuple(given) if len(given) > 1 else given[0] if given else None
        object.__setattr__(self, "base_url", plain)

    @property
    def base_urls(self) -> tuple[str, ...]:
        if self.base_url is None:
            return ()
        return (self.base_url,) if isinstance(self.base_url, str) else self.base_url

    def one_base_url(self, spec: str) -> str | None:
        """For a judge that is no fleet."""
        if isinstance(self.base_url, tuple):
            raise InputError(Message("judges.base_url_given_only", spec=spec, n=len(self.base_url)))
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
