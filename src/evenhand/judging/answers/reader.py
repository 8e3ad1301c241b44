"""A judge's text to the verdict that it states, or to why there is none. Nothing is repaired into a
verdict that was not said.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import islice

from evenhand.contract import Criterion
from evenhand.judging.answers.json_answer import read_answer, read_native, whole_object
from evenhand.judging.answers.results import AnswerProtocol, ParsedVerdict, ParseFailure
from evenhand.messages import Message

# More than any judge writes; what is longer is not scanned.
LONGEST_ANSWER = 1_000_000

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


def whole_characters(text: str) -> str:
    """The text with U+FFFD where half of a surrogate pair stood; it could not be stored or sent."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def parse(
    text: str,
    criteria: Sequence[Criterion] = (),
    *,
    truncated: bool = False,
    protocol: AnswerProtocol | None = None,
) -> ParsedVerdict | ParseFailure:
    """What the answer says, in the labels that its pass showed.

    `truncated` says that the server cut the answer at its limit. Without a `protocol` the
    answer's format is recognised.
    """
    body = text.strip()
    if not body:
        return ParseFailure("empty", Message("unread.answer_empty"))
    if len(body) > LONGEST_ANSWER:
        return ParseFailure(
            "malformed",
            Message("unread.answer_too_long", n=len(body), longest_answer=LONGEST_ANSWER),
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
        return parse(answer, criteria, truncated=truncated, protocol=protocol)
    if any(tag in body for tag in _TAGS_BEGIN):
        return _read_after_thinking(body, criteria, truncated=truncated, protocol=protocol)
    return _read_answer(body, criteria, truncated=truncated, protocol=protocol)


def _final_channel(body: str) -> str | ParseFailure:
    """What a model with channels sends to its user, where a server leaves them in the text."""
    finals = _FINAL_CHANNEL.split(body)
    if len(finals) == 1:
        return ParseFailure("thinking", Message("unread.thinking_unfinished"))
    if len(finals) > 2:
        return ParseFailure("contradiction", Message("unread.several_final_messages"))
    return _CHANNEL_END.sub("", finals[1])


def _whole_object(body: str, criteria: Sequence[Criterion]) -> ParsedVerdict | ParseFailure | None:
    if body[0] != "{":
        return None
    reading = read_native(body, criteria)
    if reading is not None:
        return reading
    value = whole_object(body)
    return None if value is None else read_answer(value, criteria)


def _read_after_thinking(
    body: str, criteria: Sequence[Criterion], *, truncated: bool, protocol: AnswerProtocol | None
) -> ParsedVerdict | ParseFailure:
    """What follows the thinking, where there is any.

    It is dropped where it was opened. Where only its end is marked, what stands before the mark may
    be the answer itself: then both sides must say the same.
    """
    answer = _after_opened_thinking(body)
    if answer is None:
        return ParseFailure("thinking", Message("unread.thinking_unfinished"))
    if not answer:
        return ParseFailure("thinking", Message("unread.no_answer_after_thinking"))

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
        return ParseFailure("thinking", Message("unread.no_answer_after_thinking"))
    outcome = outcome_of(after)
    if before and isinstance(outcome, ParsedVerdict):
        thought = outcome_of(before)
        if isinstance(thought, ParsedVerdict) and thought.winner != outcome.winner:
            return ParseFailure(
                "contradiction",
                Message(
                    "unread.verdict_changed",
                    winner=thought.winner,
                    closed=closed[0],
                    winner2=outcome.winner,
                ),
            )
    return outcome


def _read_answer(
    body: str, criteria: Sequence[Criterion], *, truncated: bool, protocol: AnswerProtocol | None
) -> ParsedVerdict | ParseFailure:
    if truncated:
        return ParseFailure("truncated", Message("unread.cut_at_limit"))
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
