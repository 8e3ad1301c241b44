"""A judge's text to a ballot or an unread answer, in the caller's labels. Nothing is repaired into
a verdict that was not said.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import islice
from typing import Any

from evenhand.contract import (
    Ballot,
    Criterion,
    CriterionBallot,
    Order,
    Unread,
    Vote,
    flip,
    flip_or_none,
    rename,
)
from evenhand.contract.labels import rename_all
from evenhand.judging.answers.json_answer import (
    read_answer,
    read_native,
    read_native_text,
    whole_object,
)
from evenhand.judging.answers.results import (
    PROTOCOLS,
    AnswerProtocol,
    ParsedVerdict,
    ParseFailure,
    Plain,
)

# A reading in the labels that its pass showed becomes one in the caller's.
#
# What `Ballot.mirrored` does to a ballot, done to the plain values before they are one: every type
# is then built and checked once, and all texts are renamed in one go.


def turned(reading: ParsedVerdict) -> ParsedVerdict:
    """The same statement with A and B exchanged."""
    criteria = [_plain(entry) for entry in reading.criteria]
    analysis = reading.analysis or {}
    # In the sequence in which the renamed ones are taken below.
    responses = (analysis.get("response_b") or {}, analysis.get("response_a") or {})
    texts = [reading.reasoning, *reading.differentiators]
    for entry in criteria:
        texts += (
            entry.get("reasoning", ""),
            entry.get("b_assessment", ""),
            entry.get("a_assessment", ""),
        )
    for response in responses:
        texts += response.get("strengths", ())
        texts += response.get("weaknesses", ())
    renamed = rename_all(texts)
    at = 1 + len(reading.differentiators)
    differentiators = tuple(renamed[1:at])
    entries: list[Plain] = []
    for entry in criteria:
        entries.append(
            {
                "criterion": entry["criterion"],
                "winner": flip_or_none(entry.get("winner")),
                "reasoning": renamed[at],
                "a_assessment": renamed[at + 1],
                "b_assessment": renamed[at + 2],
            }
        )
        at += 3
    sides: list[dict[str, Any]] = []
    for response in responses:
        weak = at + len(response.get("strengths", ()))
        end = weak + len(response.get("weaknesses", ()))
        sides.append({"strengths": renamed[at:weak], "weaknesses": renamed[weak:end]})
        at = end
    return reading._replace(
        winner=flip(reading.winner),
        criteria=tuple(entries),
        reasoning=renamed[0],
        differentiators=differentiators,
        analysis={"response_a": sides[0], "response_b": sides[1]},
        scores=reading.scores.mirrored() if reading.scores else None,
    )


def _plain(entry: CriterionBallot | Plain) -> Plain:
    return dict(entry) if isinstance(entry, CriterionBallot) else entry


# A judge's text to a Ballot or an Unread. Nothing is repaired into a verdict that was not said.

# More than any judge writes; what is longer is not scanned.
LONGEST_ANSWER = 1_000_000

__all__ = [
    "LONGEST_ANSWER",
    "PROTOCOLS",
    "AnswerProtocol",
    "read",
    "read_briefly",
    "whole_characters",
]

# How models spell the tags around their thinking; templates may swallow the opening one.
_THINKING_TAG = re.compile(
    r"<(?P<closed>/)?(?:think|thinking|thought|thoughts|seed:think|scratchpad|reflection)>"
    r"|\[(?P<closed_bracket>/)?THINK\]|◁(?P<closed_triangle>/)?think▷"
    r"|<\|(?:begin|(?P<ended>end))_of_thought\|>",
    re.IGNORECASE,
)
_TAGS_BEGIN = ("<", "[/T", "[T", "◁")
_CHANNELS_BEGIN = ("<|channel|>", "<|start|>assistant")
_FINAL_CHANNEL = re.compile(
    r"<\|channel\|>\s{0,3}final\s{0,3}(?:<\|constrain\|>\w{1,12})?<\|message\|>"
)
_CHANNEL_END = re.compile(r"<\|(?:return|end)\|>\s*$")


def read(
    text: str,
    *,
    criteria: Sequence[Criterion] = (),
    allow_tie: bool = True,
    order: Order = "original",
    sample: int = 1,
    truncated: bool = False,
    protocol: AnswerProtocol | None = None,
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
    protocol: AnswerProtocol | None,
) -> Vote | Ballot | Unread:
    """The same, but only the vote of an answer that has exactly the form that was asked for: its
    prose is `read` from the text when somebody looks, which in a run hardly anybody does."""
    text = whole_characters(text)
    outcome = _read(text, criteria, truncated=truncated, protocol=protocol)
    if (
        isinstance(outcome, ParseFailure)
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
    outcome: ParsedVerdict | ParseFailure, text: str, *, allow_tie: bool, order: Order, sample: int
) -> Ballot | Unread:
    if isinstance(outcome, ParsedVerdict) and outcome.winner == "TIE" and not allow_tie:
        outcome = ParseFailure("tie_not_allowed", "the answer is TIE, but ties are not allowed")
    if isinstance(outcome, ParseFailure):
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


def _in_the_callers_labels(reading: ParsedVerdict) -> ParsedVerdict:
    if reading.protocol != "evenhand":
        from evenhand.judging.answers.recognition import exchanged

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
    text: str, criteria: Sequence[Criterion], *, truncated: bool, protocol: AnswerProtocol | None
) -> ParsedVerdict | ParseFailure:
    body = text.strip()
    if not body:
        return ParseFailure("empty", "the answer is empty")
    if len(body) > LONGEST_ANSWER:
        return ParseFailure(
            "malformed",
            f"the answer has {len(body):,} characters; at most {LONGEST_ANSWER:,} are read",
        )
    if protocol in (None, "evenhand"):
        # A whole object first: whatever its strings quote, they are its own.
        reading = _whole_object(body, criteria)
        if reading is not None:
            return reading
    if body.startswith(_CHANNELS_BEGIN):
        answer = _final_channel(body)
        if isinstance(answer, ParseFailure):
            return answer
        return _read(answer, criteria, truncated=truncated, protocol=protocol)
    if any(tag in body for tag in _TAGS_BEGIN):
        return _read_after_thinking(body, criteria, truncated=truncated, protocol=protocol)
    return _read_answer(body, criteria, truncated=truncated, protocol=protocol)


def _final_channel(body: str) -> str | ParseFailure:
    """What a model with channels sends to its user, where a server leaves them in the text."""
    finals = _FINAL_CHANNEL.split(body)
    if len(finals) == 1:
        return ParseFailure("thinking", "the thinking never ends; no answer follows it")
    if len(finals) > 2:
        return ParseFailure("contradiction", "more than one final message; which is the judge's?")
    return _CHANNEL_END.sub("", finals[1])


def _whole_object(body: str, criteria: Sequence[Criterion]) -> ParsedVerdict | ParseFailure | None:
    if body[0] != "{":
        return None
    reading = read_native_text(body, criteria)
    if reading is not None:
        return reading
    value = whole_object(body)
    return None if value is None else read_native(value, criteria) or read_answer(value, criteria)


def _read_after_thinking(
    body: str, criteria: Sequence[Criterion], *, truncated: bool, protocol: AnswerProtocol | None
) -> ParsedVerdict | ParseFailure:
    """What follows the thinking, where there is any.

    It is dropped where it was opened. Where only its end is marked, what stands before the mark may
    be the answer itself: then both sides must say the same.
    """
    answer = _after_opened_thinking(body)
    if answer is None:
        return ParseFailure("thinking", "the thinking never ends; no answer follows it")
    if not answer:
        return ParseFailure("thinking", "nothing follows the thinking")

    def outcome_of(part: str) -> ParsedVerdict | ParseFailure:
        if protocol in (None, "evenhand") and part:
            reading = _whole_object(part, criteria)
            if reading is not None:
                return reading
        return _read_answer(part, criteria, truncated=truncated, protocol=protocol)

    closed = _unopened_end(answer)
    if closed is None:
        return outcome_of(answer)
    before, after = answer[: closed.start()].strip(), answer[closed.end() :].strip()
    if not after:
        return ParseFailure("thinking", "nothing follows the thinking")
    outcome = outcome_of(after)
    if before and isinstance(outcome, ParsedVerdict):
        thought = outcome_of(before)
        if isinstance(thought, ParsedVerdict) and thought.winner != outcome.winner:
            return ParseFailure(
                "contradiction",
                f"{thought.winner} is said before {closed[0]}, {outcome.winner} after it",
            )
    return outcome


def _read_answer(
    body: str, criteria: Sequence[Criterion], *, truncated: bool, protocol: AnswerProtocol | None
) -> ParsedVerdict | ParseFailure:
    if truncated:
        return ParseFailure("truncated", "the server cut the answer at its length limit")
    # Its many patterns take 40 ms to compile, and most answers are strict JSON.
    from evenhand.judging.answers.recognition import read_text

    return read_text(body, criteria, protocol)


def _after_opened_thinking(body: str) -> str | None:
    """What follows the thinking that the body opens with; the body itself where it opens none."""
    tags = list(islice(_THINKING_TAG.finditer(body), 200))
    if not tags or _closes(tags[0]) or body[: tags[0].start()].strip():
        return body
    quoted = _quoted_places(body, tags)
    depth, last = 0, None
    for tag in tags:
        if tag.start() in quoted:
            continue
        if not _closes(tag):
            depth += 1
            continue
        depth, last = depth - 1, tag
        if depth == 0:
            break
    last = last or next((tag for tag in reversed(tags) if _closes(tag)), None)
    return None if last is None else body[last.end() :].strip()


def _unopened_end(body: str) -> re.Match[str] | None:
    """The last closing tag that stands alone on its line, outside of quotations and objects."""
    tags = [
        tag
        for tag in islice(_THINKING_TAG.finditer(body), 200)
        if _closes(tag) and _alone(body, tag)
    ]
    quoted = _quoted_places(body, tags) if tags else set()
    return next((tag for tag in reversed(tags) if tag.start() not in quoted), None)


def _closes(tag: re.Match[str]) -> bool:
    return any(tag.groups())


def _quoted_places(body: str, tags: list[re.Match[str]]) -> set[int]:
    """Where a tag stands that is not the judge's own: in a quotation, or in an object's string."""
    from evenhand.judging.answers.json_answer import find_objects
    from evenhand.judging.answers.quotations import TooManyQuotations, own_words

    found = find_objects(body).found if "{" in body else []
    try:
        words = own_words(body)
    except TooManyQuotations:
        return {tag.start() for tag in tags}
    return {
        tag.start()
        for tag in tags
        if words.own[tag.start()] != body[tag.start()]
        or any(item.start < tag.start() < item.end for item in found)
    }


def _alone(body: str, tag: re.Match[str]) -> bool:
    line_start = body.rfind("\n", 0, tag.start()) + 1
    line_end = body.find("\n", tag.end())
    after = body[tag.end() : line_end if line_end >= 0 else len(body)]
    return not body[line_start : tag.start()].strip() and not after.strip()
