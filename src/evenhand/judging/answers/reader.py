"""A judge's text to the verdict that it states, or to why there is none. Nothing is repaired into a
verdict that was not said.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from evenhand.contract import AnswerProtocol, Criterion
from evenhand.judging.answers.json_answer import read_answer, whole_object
from evenhand.judging.answers.results import ParsedVerdict, ParseFailure, QuotedFrom
from evenhand.messages import Message

# More than any judge writes; what is longer is not scanned.
LONGEST_ANSWER = 1_000_000

# How models spell the thinking that they open with.
_THINKING = re.compile(
    r"<(?P<tag>think|thinking|thought|thoughts|reasoning|seed:think|scratchpad|reflection)>"
    r"|(?P<bracket>\[THINK\])|(?P<triangle>◁think▷)|(?P<words><\|begin_of_thought\|>)"
    r"|(?P<channel><\|channel>thought\b)",
    re.IGNORECASE,
)
_ENDS = {
    "bracket": "[/THINK]",
    "triangle": "◁/think▷",
    "words": "<|end_of_thought|>",
    "channel": "<channel|>",
}
_MOST_ENDS = 100
_CHANNELS_BEGIN = ("<|channel|>", "<|start|>assistant")
_FINAL_CHANNEL = re.compile(
    r"<\|channel\|>\s{0,3}final\s{0,3}(?:<\|constrain\|>\w{1,12})?<\|message\|>"
)
# What a server may leave of a model's template at the end.
_TEMPLATE_ENDS = (
    *("<|return|>", "<|end|>", "<|im_end|>", "<|eot_id|>", "<|endoftext|>", "<|end_of_text|>"),
    *("</s>", "<end_of_turn>", "<turn|>"),
)


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
    quoted: QuotedFrom | None = None,
) -> ParsedVerdict | ParseFailure:
    """What the answer says, in the labels that its pass showed.

    `truncated` says that the server cut the answer at its limit. Without a `protocol` the
    answer's format is recognised. `quoted` says whether words stand in the texts that were judged.
    """
    body = text.strip()
    if not body:
        return ParseFailure("empty", Message("unread.answer_empty"))
    if len(body) > LONGEST_ANSWER:
        return ParseFailure(
            "malformed",
            Message("unread.answer_too_long", n=len(body), longest_answer=LONGEST_ANSWER),
        )
    while body.endswith(_TEMPLATE_ENDS):
        body = body[: body.rindex("<")].rstrip()
    answers = _after_thinking(body) if body[:1] in ("<", "[", "◁") else [body]
    if isinstance(answers, ParseFailure):
        return answers
    readings = [
        _read(answer, criteria, truncated=truncated, protocol=protocol, quoted=quoted)
        for answer in answers
    ]
    return _agreed(readings[0], readings[-1])


def _agreed(
    first: ParsedVerdict | ParseFailure, last: ParsedVerdict | ParseFailure
) -> ParsedVerdict | ParseFailure:
    """Where the end of the thinking stands there more than once, one of them may be quoted: then
    what follows each must say the same."""
    if first == last:
        return first
    if isinstance(first, ParsedVerdict):
        if first.from_object:
            return first
        if isinstance(last, ParsedVerdict) and first.winner == last.winner:
            return last
    return ParseFailure("contradiction", Message("unread.several_final_messages"))


def _read(
    body: str,
    criteria: Sequence[Criterion],
    *,
    truncated: bool,
    protocol: AnswerProtocol | None,
    quoted: QuotedFrom | None,
) -> ParsedVerdict | ParseFailure:
    if not body:
        return ParseFailure("empty", Message("unread.answer_empty"))
    if body[0] == "{" and protocol in (None, "evenhand"):
        # A whole object first: whatever its strings quote, they are its own.
        value = whole_object(body)
        if value is not None:
            reading = read_answer(value, criteria, body)
            if quoted is not None and isinstance(reading, ParsedVerdict) and quoted(body):
                return ParseFailure("contradiction", Message("unread.answer_quoted"))
            return reading
    if truncated:
        return ParseFailure("truncated", Message("unread.cut_at_limit"))
    # Its many patterns take 40 ms to compile, and most answers are strict JSON.
    from evenhand.judging.answers.recognition import read_text

    return read_text(body, criteria, protocol, quoted)


def _after_thinking(body: str) -> list[str] | ParseFailure:
    """What follows the first end of the thinking, and the last one where there are several."""
    if body.startswith(_CHANNELS_BEGIN):
        final = _final_channel(body)
        return final if isinstance(final, ParseFailure) else [final]
    answers = [body]
    while (opened := _THINKING.match(answers[0])) is not None:
        body = answers[0]
        end = _ENDS.get(opened.lastgroup or "") or f"</{opened['tag']}>"
        closed = re.compile(re.escape(end), re.IGNORECASE)
        parts = closed.split(body[opened.end() :], maxsplit=_MOST_ENDS)
        if len(parts) == 1:
            return ParseFailure("thinking", Message("unread.thinking_unfinished"))
        after = body[opened.end() + len(parts[0]) + len(end) :].strip()
        answers = (
            [after] if len(parts) == 2 or _THINKING.match(after) else [after, parts[-1].strip()]
        )
        if not after:
            return ParseFailure("thinking", Message("unread.no_answer_after_thinking"))
    return answers


def _final_channel(body: str) -> str | ParseFailure:
    """What a model with channels sends to its user, where a server leaves them in the text."""
    finals = _FINAL_CHANNEL.split(body)
    if len(finals) == 1:
        return ParseFailure("thinking", Message("unread.thinking_unfinished"))
    if len(finals) > 2:
        return ParseFailure("contradiction", Message("unread.several_final_messages"))
    answer = finals[1].strip()
    return answer or ParseFailure("thinking", Message("unread.no_answer_after_thinking"))
