"""A loopback judge for the doors: it knows that 56 is right, whatever else it is shown."""

from __future__ import annotations

import re

from scripted import answer_json
from servers import Reply, SeenRequest, chat_reply

_SECTION = r"<<<\w+ {}>>>\n(.*?)\n<<<end"
_RIGHT = re.compile("56|Seven")


def knows_56(request: SeenRequest) -> Reply:
    shown = {name: _section(request.prompt, f"Response {name}") for name in "AB"}
    right = [name for name, text in shown.items() if _RIGHT.search(text)]
    winner = right[0] if len(right) == 1 else "TIE"
    listed = _section(request.prompt, "Criteria").splitlines()
    criteria = [re.sub(r"^\d+\. |:.*$", "", line) for line in listed]
    return chat_reply(
        answer_json(winner, confidence=0.9, criteria=[(name, winner) for name in criteria])
    )


def takes_the_first(request: SeenRequest) -> Reply:
    """Inconsistent: the winner changes with the order."""
    return chat_reply(answer_json("A", confidence=0.9, criteria=[("accuracy", "A")]))


def _section(prompt: str, name: str) -> str:
    (*_, text) = re.findall(_SECTION.format(re.escape(name)), prompt, re.DOTALL)
    assert isinstance(text, str)
    return text
