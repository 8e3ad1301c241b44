"""What the loopback server says: whole replies, made once, and how one is chosen.

Generated responses carry a word that says how good they are, so that choosing costs a search:
the response with ZENITH is better than the one with NADIR, two with EQUINOX are equal, and where
none of them stands the answer is always "A", whichever is shown first, which makes the pair
inconsistent.
"""

from __future__ import annotations

import json
from typing import Any, Literal

ZENITH, NADIR, EQUINOX = "zenith", "nadir", "equinox"

Winner = Literal["A", "B", "TIE"]
Length = Literal["usual", "short"]
WINNERS: tuple[Winner, ...] = ("A", "B", "TIE")
CRITERIA = ("accuracy", "clarity")

_ZENITH, _NADIR, _EQUINOX = ZENITH.encode(), NADIR.encode(), EQUINOX.encode()


def winner_shown(body: bytes) -> Winner:
    best = body.find(_ZENITH)
    if best >= 0:
        return "A" if best < body.find(_NADIR) else "B"
    return "TIE" if _EQUINOX in body else "A"


def http_reply(body: bytes, *, status: str = "200 OK", headers: str = "") -> bytes:
    head = f"HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {len(body)}"
    return f"{head}\r\n{headers}\r\n".encode() + body


def evenhand_answer(winner: Winner, length: Length) -> str:
    """The judge's native answer; the usual one has about 1.5 KB, as real judges write them."""
    usual = length == "usual"

    def said(text: str) -> str:
        return text if usual else ""

    analysis = {
        f"response{side}": {
            "strengths": [
                f"Response {side} answers the question in plain words and keeps to the point."
            ][:usual],
            "weaknesses": [f"Response {side} gives no example for its second claim."][:usual],
        }
        for side in "AB"
    }
    comparison = [
        {
            "criterion": criterion,
            "aAssessment": said("Response A states what is known and says where it is unsure."),
            "bAssessment": said("Response B covers the same ground, with one loose statement."),
            "reasoning": said(
                f"By {criterion}, Response A and Response B differ in how they treat the second "
                "part of the question, and that part decides."
            ),
            "winner": winner,
        }
        for criterion in CRITERIA
    ]
    result = {
        "reasoning": "Response A and Response B were held against the criteria in order"
        + said(
            "; the first criterion weighs most, and the difference found there is not made up "
            "for by what the other response does better."
        ),
        "differentiators": ["the treatment of the second part of the question"][:usual],
        "winner": winner,
        "confidence": 0.8,
    }
    return json.dumps({"analysis": analysis, "comparison": comparison, "result": result})


def completion(message: dict[str, Any], *, finish_reason: str = "stop") -> bytes:
    choice = {"index": 0, "message": message, "finish_reason": finish_reason, "logprobs": None}
    return json.dumps(
        {
            "id": "chatcmpl-loopback",
            "object": "chat.completion",
            "created": 1_700_000_000,
            "model": "loopback-1",
            "choices": [choice],
            "usage": {"prompt_tokens": 1_350, "completion_tokens": 340, "total_tokens": 1_690},
        }
    ).encode()


def evenhand_completion(winner: Winner, length: Length = "usual") -> bytes:
    return completion(text_message(evenhand_answer(winner, length)))


def autoevals_completion(winner: Winner) -> bytes:
    """`Battle` forces the tool `select_choice` and asks whether the first response is better."""
    chosen = {"reasons": _REASONS, "choice": "Yes" if winner == "A" else "No"}
    call = {
        "id": "call_loopback",
        "type": "function",
        "function": {"name": "select_choice", "arguments": json.dumps(chosen)},
    }
    message = {"role": "assistant", "content": None, "tool_calls": [call]}
    return completion(message, finish_reason="tool_calls")


def openevals_completion(winner: Winner) -> bytes:
    """Its judges answer by a JSON schema: a reasoning, then a score."""
    scored = {"reasoning": _REASONS, "score": winner == "A"}
    return completion(text_message(json.dumps(scored)))


# As long as evenhand's answer, so that nobody is measured with a lighter load.
_REASONS = " ".join(
    f"Step {step}: both responses answer the question; the first one treats its second part with "
    "more care, names what is unsure, and gives the reader what was asked for."
    for step in range(1, 10)
)


def text_message(content: str) -> dict[str, Any]:
    return {"role": "assistant", "content": content, "refusal": None}
