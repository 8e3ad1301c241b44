"""A judge's text to a Ballot or an Unread. Nothing is repaired into a verdict that was not said."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from evenhand.contract import Ballot, Criterion, CriterionBallot, Order, Unread, Vote, flip, rename
from evenhand.parse.answer import read_answer
from evenhand.parse.native import read_native, read_native_text
from evenhand.parse.objects import whole
from evenhand.parse.outcome import PROTOCOLS, Failure, Protocol, Reading
from evenhand.parse.turned import turned

__all__ = ["PROTOCOLS", "Protocol", "read", "read_briefly", "whole_characters"]

_THINKING = re.compile(r"\s*<(think|thinking)>", re.IGNORECASE)
_THOUGHT = re.compile(r"</(?:think|thinking)>", re.IGNORECASE)
_THINKING_TAG = re.compile(r"</?(?:think|thinking)>", re.IGNORECASE)
_FENCE = re.compile(r"^[ \t]*(?:```|~~~)", re.MULTILINE)


def read(
    text: str,
    *,
    criteria: Sequence[Criterion] = (),
    allow_tie: bool = True,
    order: Order = "original",
    sample: int = 1,
    truncated: bool = False,
    protocol: Protocol | None = None,
) -> Ballot | Unread:
    """What the judge's answer says, in the caller's labels.

    `text` is in the labels that the pass showed: with `order="swapped"` the ballot is turned
    round. `truncated` says that the server cut the answer at its limit. Without a `protocol` the
    answer's format is recognised.
    """
    text = whole_characters(text)
    outcome = _read(text, criteria, truncated=truncated, protocol=protocol)
    return _in_full(outcome, text, allow_tie=allow_tie, order=order, sample=sample)


def read_briefly(
    text: str,
    *,
    criteria: Sequence[Criterion],
    allow_tie: bool,
    order: Order,
    sample: int,
    truncated: bool,
    protocol: Protocol | None,
) -> Vote | Ballot | Unread:
    """The same, but only the vote of an answer that has exactly the form that was asked for: its
    prose is `read` from the text when somebody looks, which in a run hardly anybody does."""
    text = whole_characters(text)
    outcome = _read(text, criteria, truncated=truncated, protocol=protocol)
    if (
        isinstance(outcome, Failure)
        or not outcome.as_asked
        or (outcome.winner == "TIE" and not allow_tie)
    ):
        return _in_full(outcome, text, allow_tie=allow_tie, order=order, sample=sample)
    won = [
        (entry["criterion"], entry["winner"])
        for entry in outcome.criteria
        if not isinstance(entry, CriterionBallot)  # which this reader makes none of
    ]
    winner = outcome.winner
    if order == "swapped":
        winner, won = flip(winner), [(name, flip(choice)) for name, choice in won]
    return Vote(order, sample, winner, outcome.confidence, tuple(won), text)


def _in_full(
    outcome: Reading | Failure, text: str, *, allow_tie: bool, order: Order, sample: int
) -> Ballot | Unread:
    if isinstance(outcome, Reading) and outcome.winner == "TIE" and not allow_tie:
        outcome = Failure("tie_not_allowed", "the answer is TIE, but ties are not allowed")
    if isinstance(outcome, Failure):
        reason = outcome.reason if order == "original" else rename(outcome.reason)
        return Unread(
            order=order,
            sample=sample,
            kind=outcome.kind,
            reason=whole_characters(reason),
            raw=text,
        )
    if order == "swapped":
        outcome = _in_the_callers_labels(outcome)
    said = {
        "order": order,
        "sample": sample,
        "winner": outcome.winner,
        "confidence": outcome.confidence,
        "confidence_source": "none" if outcome.confidence is None else "stated",
        "criteria": outcome.criteria,
        "reasoning": outcome.reasoning,
        "differentiators": outcome.differentiators,
        "analysis": outcome.analysis or {},
        "scores": outcome.scores,
        "strength": outcome.strength,
        "protocol": outcome.protocol,
        "flags": outcome.flags,
        "raw": text,
    }
    # JSON can spell half of a surrogate pair, and a model that is cut inside an emoji does.
    # The backslash first: one character is found many times faster than three.
    spelt = "\\" in text and ("\\ud" in text or "\\uD" in text)
    return Ballot.model_validate(_whole_strings(said) if spelt else said)


def _in_the_callers_labels(reading: Reading) -> Reading:
    if reading.protocol != "evenhand":
        from evenhand.parse.prose_labels import exchanged

        reading = reading._replace(reasoning=exchanged(reading.reasoning, reading.protocol))
    return turned(reading)


def whole_characters(text: str) -> str:
    """The text with U+FFFD where half of a surrogate pair stood; it could not be stored or sent."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def _whole_strings(value: Any) -> Any:
    if isinstance(value, str):
        return whole_characters(value)
    if isinstance(value, dict):
        return {whole_characters(str(key)): _whole_strings(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return tuple(_whole_strings(item) for item in value)
    return value


def _read(
    text: str, criteria: Sequence[Criterion], *, truncated: bool, protocol: Protocol | None
) -> Reading | Failure:
    body = text.strip()
    if not body:
        return Failure("empty", "the answer is empty")
    if "<" in body:
        answer = _after_thinking(body)
        if answer is None:
            return Failure("thinking", "the thinking never ends; no answer follows it")
        body = answer
        if not body:
            return Failure("thinking", "nothing follows the thinking")
    if body[0] == "{" and protocol in (None, "evenhand"):
        reading = read_native_text(body, criteria)
        if reading is not None:
            return reading
        value = whole(body)
        if value is not None:
            return read_native(value, criteria) or read_answer(value, criteria)
    if truncated:
        return Failure("truncated", "the server cut the answer at its length limit")
    # Its many patterns take 40 ms to compile, and most answers are strict JSON.
    from evenhand.parse.recognise import read_text

    return read_text(body, criteria, protocol)


def _after_thinking(body: str) -> str | None:
    """What follows the thinking part; the body itself where there is none."""
    if _THINKING.match(body):
        depth = 0
        last = None
        for tag in _THINKING_TAG.finditer(body):
            if tag[0][1] != "/":
                depth += 1
                continue
            depth, last = depth - 1, tag
            if depth == 0:
                break
        return None if last is None else body[last.end() :].strip()
    # Only the closing tag, alone on its line: the template had opened the thinking.
    closed = _THOUGHT.search(body)
    if closed is None or not _alone(body, closed) or _fenced(body, closed.start()):
        return body
    return body[closed.end() :].strip()


def _fenced(body: str, at: int) -> bool:
    return len(_FENCE.findall(body, 0, at)) % 2 == 1


def _alone(body: str, tag: re.Match[str]) -> bool:
    line_start = body.rfind("\n", 0, tag.start()) + 1
    line_end = body.find("\n", tag.end())
    after = body[tag.end() : line_end if line_end >= 0 else len(body)]
    return not body[line_start : tag.start()].strip() and not after.strip()
