"""What is sent to a judge: messages, in stretches that know whether they can be trusted."""

from __future__ import annotations

from typing import Literal, NamedTuple


# Named tuples and no dataclasses: a pair has two dozen of them, and a frozen dataclass takes three
# times as long to make.
class Segment(NamedTuple):
    """A stretch of prompt. `judged` marks text that came from the caller and may be hostile."""

    text: str
    judged: bool = False


class ChatMessage(NamedTuple):
    role: Literal["system", "user", "assistant"]
    segments: tuple[Segment, ...]

    @property
    def text(self) -> str:
        return "".join([segment.text for segment in self.segments])
