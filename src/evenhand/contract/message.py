"""What is sent to a judge: messages, in stretches that know whether they can be trusted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Segment:
    """A stretch of prompt. `judged` marks text that came from the caller and may be hostile."""

    text: str
    judged: bool = False


@dataclass(frozen=True, slots=True)
class Message:
    role: Literal["system", "user", "assistant"]
    segments: tuple[Segment, ...]

    @property
    def text(self) -> str:
        return "".join([segment.text for segment in self.segments])
