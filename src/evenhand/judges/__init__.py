"""The judges, behind one door: `open_judge("openai:…")`.

`protocol` says what a judge is, `retry` when it is asked again, `prices` what a call costs,
`redaction` keeps secrets out of texts. The judges: `openai` (by `chat_completions` over a
`transport`), `fleet`, `providers` (pydantic-ai), `local` (with `llama_server` and
`embedded_model`), `replay`, `baseline`; `batch` has the providers' batch APIs. Each is imported
only when a judge of it is opened.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evenhand.errors import InputError
from evenhand.judges.protocol import (
    ChatMessage,
    Completion,
    Judge,
    JudgeCall,
    Segment,
    TokenLogprob,
    Traits,
)
from evenhand.judges.retry import RetryPolicy, ask_with_retries

if TYPE_CHECKING:
    from evenhand.judges.transport import TransportName

__all__ = [
    "ChatMessage",
    "Completion",
    "Judge",
    "JudgeCall",
    "JudgeOptions",
    "RetryPolicy",
    "Segment",
    "TokenLogprob",
    "Traits",
    "ask_with_retries",
    "open_judge",
    "reads_prompt",
]

KINDS = (
    "openai:MODEL, anthropic:MODEL, google:MODEL, local, local:FILE.gguf, replay:FILE, "
    "baseline:longer, baseline:random"
)


@dataclass(frozen=True, slots=True)
class JudgeOptions:
    """Where a judge is and how it is asked. None: its own default. No repr shows a secret."""

    base_url: str | tuple[str, ...] | None = None  # several are a fleet, of openai: judges alone
    api_key: str | None = field(default=None, repr=False)
    timeout_s: float | None = None
    max_tokens: int | None = None
    temperature: float | None = None
    seed: int | None = None
    cache_dir: Path | None = None
    transport: TransportName | None = None

    def __post_init__(self) -> None:
        given: object = self.base_url  # callers may be untyped
        if given is None or isinstance(given, str):
            return
        if not isinstance(given, (list, tuple)) or not all(
            isinstance(each, str) and each.strip() for each in given
        ):
            raise InputError(
                "base_url takes an address such as 'http://localhost:8000/v1', or several of them"
            )
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
            raise InputError(
                f"{spec} takes one base URL, and {len(self.base_url)} are given; "
                "only openai: judges are asked at several servers"
            )
        return self.base_url

    def __repr__(self) -> str:
        shown = ((f.name, self._shown(f.name)) for f in fields(self) if f.repr)
        return f"JudgeOptions({', '.join(f'{name}={value!r}' for name, value in shown)})"

    def _shown(self, name: str) -> object:
        value = getattr(self, name)
        if name != "base_url" or value is None:
            return value
        from evenhand.judges.redaction import shown_url

        shown = tuple(shown_url(each) for each in self.base_urls)
        return shown if isinstance(value, tuple) else shown[0]


def reads_prompt(spec: str | None) -> bool:
    """Whether the judge of this name reads a prompt; one that replays, or a yardstick, does not."""
    return (spec or "").strip().partition(":")[0] not in ("replay", "baseline")


def open_judge(spec: str, options: JudgeOptions | None = None) -> Judge:
    """The judge that `spec` names. Nothing is sent or loaded before its first question."""
    if not isinstance(spec, str):  # callers may be untyped
        raise InputError(
            f"a judge's name is a string, not a {type(spec).__name__}; it is one of {KINDS}"
        )
    if options is None:
        options = JudgeOptions()
    elif not isinstance(options, JudgeOptions):
        raise InputError(
            f"options takes evenhand.JudgeOptions(…), not a {type(options).__name__}; "
            "e.g. JudgeOptions(base_url='http://localhost:8000/v1')"
        )
    kind, colon, rest = spec.strip().partition(":")
    if kind == "openai" and rest and len(options.base_urls) > 1:
        from evenhand.judges.fleet import open_fleet

        return open_fleet(rest, options)
    options.one_base_url(spec.strip())
    if kind == "local":
        from evenhand.judges.local import open_local

        return open_local(
            Path(rest).expanduser() if rest else None,
            cache=options.cache_dir,
            **_given(
                max_tokens=options.max_tokens,
                temperature=options.temperature,
                timeout_s=options.timeout_s,
            ),
        )
    if not colon or not rest:
        raise InputError(f"judge {spec!r} is not complete; it is one of {KINDS}")
    if kind == "openai":
        from evenhand.judges.openai import OpenAIJudge, OpenAIOptions

        return OpenAIJudge(OpenAIOptions.from_judge_options(rest, options))
    if kind == "replay":
        from evenhand.judges.replay import ReplayJudge

        return ReplayJudge(Path(rest).expanduser())
    if kind == "baseline":
        from evenhand.judges.baseline import open_baseline

        return open_baseline(rest)
    from evenhand.judges.providers import open_provider

    return open_provider(spec.strip(), options)


def _given(**values: Any) -> dict[str, Any]:
    """Only what was set: a judge's own defaults hold for the rest."""
    return {name: value for name, value in values.items() if value is not None}
