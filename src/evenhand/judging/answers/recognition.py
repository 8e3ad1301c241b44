"""Which statement in a text is the judge's verdict, and in which protocol it was given; and the
text around it as reasons. Loaded only for answers that are not strict JSON: its patterns take 40
ms to compile.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal

from evenhand.contract import Criterion, Winner
from evenhand.judging.answers.json_answer import (
    FoundObject,
    ObjectSearch,
    find_objects,
    is_answer,
    is_full,
    read_answer,
    winner_in,
)
from evenhand.judging.answers.labelled_lines import Labelled, labelled
from evenhand.judging.answers.protocols import (
    first_line,
    marks,
    opening_verdict,
    read_bare,
    read_class,
    read_conclusion,
    read_outputs,
    read_scores,
)
from evenhand.judging.answers.quotations import (
    MOST_QUOTATIONS,
    RESPONSE,
    OwnWords,
    TooManyQuotations,
    attributes,
    disowned,
    edges,
    introduces,
    one_response,
    own_words,
)
from evenhand.judging.answers.results import (
    AnswerProtocol,
    ParsedCriterion,
    ParsedVerdict,
    ParseFailure,
    Statement,
    shown,
)
from evenhand.judging.answers.sentences import claims
from evenhand.judging.answers.terse import read_terse, said_tersely
from evenhand.judging.answers.vocabulary import NOUN, is_refusal, plainly
from evenhand.messages import Message

# The judge's prose as reasons: without the bare verdict in it, and in the caller's labels.
#
# In our own format only "Response A" and "Response B" are renamed, by the contract. The other
# protocols call the responses by other names, and those are exchanged here.

# A short label and nothing but a letter, a tie or a number: it says what the ballot already holds,
# in the labels of its pass.
_BARE_LINE = re.compile(
    r"[ \t>*#_`|-]{0,16}(?:[^\n:：=|]{1,40}[:：=|][ \t*_`\"']{0,8})?"
    r"(?:[AB]|TIE|tie|Tie|平局|[01]?\.\d{1,8}|[01])[ \t*_`\"'.。|]{0,16}"
)
_LONGEST_BARE_LINE = 100
_MARK = re.compile(r"\*{0,2}\[\[[^\[\]\n]{1,12}\]\]\*{0,2}[ \t]{0,8}[.。]?")
_DIGITS = ("1", "2", "3")
_SCORES = re.compile(r"\(?\d{1,8}(?:\.\d{1,8})?[ ,，/]{1,8}\d{1,8}(?:\.\d{1,8})?\)?")

_NAMES: dict[AnswerProtocol, re.Pattern[str]] = {
    "mt-bench": re.compile(r"(\b(?:Assistant|Answer|Model)[ \t]+|助手[ \t]*)([AB])(?![A-Za-z0-9])"),
    "arena-hard": re.compile(
        r"(\b(?:Assistant|Answer|Model)[ \t]+|助手[ \t]*)([AB])(?![A-Za-z0-9])"
    ),
    "llmbar": re.compile(
        r"(\b(?:Output|Assistant)[ \t]+\(?|输出[ \t]*[(（]?)([ab])(?![A-Za-z0-9])"
    ),
    "three-class": re.compile(r"(\b(?:Assistant|Response)[ \t]+|助手[ \t]*)([12])(?![0-9])"),
    "scores": re.compile(r"(\b(?:Assistant|Response)[ \t]+|助手[ \t]*)([12])(?![0-9])"),
}
_OTHER = {"A": "B", "B": "A", "a": "b", "b": "a", "1": "2", "2": "1"}


def as_reasons(text: str, protocol: AnswerProtocol) -> str:
    """The text without its bare verdict, which would read wrongly once the labels are mapped."""
    if protocol in ("mt-bench", "arena-hard"):
        text = _MARK.sub("", text)
    elif protocol == "three-class":
        lead, _, last = text.rstrip().rpartition("\n")
        text = lead if last.strip(" \t.。") in _DIGITS else text
    elif protocol == "scores":
        first, _, rest = text.lstrip().partition("\n")
        text = rest if _SCORES.fullmatch(first.rstrip()) else text
    elif protocol == "evenhand":
        lines = text.split("\n")
        text = "\n".join(line for line in lines if not _is_bare(line))
    return text.strip()


def _is_bare(line: str) -> bool:
    return len(line) <= _LONGEST_BARE_LINE and _BARE_LINE.fullmatch(line) is not None


def exchanged(text: str, protocol: AnswerProtocol) -> str:
    """The protocol's own names for the two responses, exchanged; its own inverse."""
    names = _NAMES.get(protocol)
    return text if names is None else names.sub(lambda m: m[1] + _OTHER[m[2]], text)


# Which statement in a text is the judge's verdict, and in which protocol it was given.

_DECORATION = " \t\r\n`~*_>#,[]-"
# The sentence that an object stands in goes on after it.
_GOES_ON = re.compile(r"[`\"”'\s]{0,3}(?:[,，;；(（]|<-|[-–—←]\s|[a-z]|这|是|等|的)")
_ANNOUNCED = re.compile(
    r"\b(?:verdict|final|decision|judge?ment|conclu\w{2,6})\b|判|结论|最终", re.IGNORECASE
)
_MY = re.compile(r"\b(?:my|i)\b|我", re.IGNORECASE)
_HEADING = re.compile(r"\s{0,3}(?:#{1,6}\s|\*\*[^*]{1,80}\*\*|【|[^:：\n]{1,60}[:：]\s{0,3}$)")
_SENTENCE = re.compile(r"(?<=[.!?])\s|[。！？]")


def read_text(
    body: str, criteria: Sequence[Criterion], protocol: AnswerProtocol | None
) -> ParsedVerdict | ParseFailure:
    """Everything but the plain JSON answer: objects in prose, labelled lines, other protocols."""
    try:
        return _read_text(body, criteria, protocol)
    except TooManyQuotations:
        return ParseFailure(
            "malformed", Message("unread.too_many_quotations", most_quotations=MOST_QUOTATIONS)
        )


def _read_text(
    body: str, criteria: Sequence[Criterion], protocol: AnswerProtocol | None
) -> ParsedVerdict | ParseFailure:
    plain = plainly(body)
    native = protocol in (None, "evenhand")
    search = find_objects(body) if native and "{" in body else ObjectSearch([])
    if search.gave_up:
        return ParseFailure("malformed", Message("unread.too_many_braces"))
    prose = _without(plain, search.found)
    if search.found:
        words = own_words(prose)
        answer = _answer(prose, search.found, words)
        if isinstance(answer, ParseFailure):
            return answer
        if answer is not None:
            return _checked(answer, words.own, criteria)
    words = own_words(edges(prose))
    outcome = _stated(words.own, criteria, protocol)
    if (
        isinstance(outcome, ParseFailure)
        and outcome.kind == "no_verdict"
        and words.closing is not None
    ):
        # Nothing but a closing block names a verdict, and it is nobody else's.
        outcome = _stated(words.closing, criteria, protocol)
    if isinstance(outcome, ParseFailure):
        if outcome.kind == "no_verdict" and is_refusal(plain):
            return ParseFailure("refusal", Message("unread.judge_declined", body=shown(body)))
        return outcome
    if outcome.from_object:
        return outcome
    if not native and "{" in body and _object_differs(body, plain, outcome.winner):
        # What its strings say is part of it, and no verdict in another protocol.
        return ParseFailure(
            "contradiction", Message("unread.object_differs", winner=outcome.winner)
        )
    # Outside JSON the text itself is the reasoning.
    held = outcome.criteria or (ParsedCriterion(),) * len(criteria)
    return outcome._replace(criteria=held, reasoning=as_reasons(body, outcome.protocol))


def _object_differs(body: str, plain: str, winner: Winner) -> bool:
    found = find_objects(body).found
    prose = _without(plain, found)
    answer = _answer(prose, found, own_words(prose)) if found else None
    return isinstance(answer, FoundObject) and _winner(answer) not in (None, winner)


def _stated(
    text: str, criteria: Sequence[Criterion], protocol: AnswerProtocol | None
) -> ParsedVerdict | ParseFailure:
    """What the judge's own words state: labelled lines and marks first, then the protocols."""
    if protocol not in (None, "evenhand"):
        return _by(protocol, text)
    lines = labelled(text, criteria)
    stated = lines.statements if protocol else [*lines.statements, *marks(text)]
    verdict = _final(sorted(stated, key=lambda statement: statement.start))
    if verdict is None:
        return _conclude(text) if protocol else _foreign(text.strip())
    if isinstance(verdict, ParseFailure):
        return verdict
    return _with_lines(verdict, lines, text)


def _with_lines(verdict: Statement, lines: Labelled, prose: str) -> ParsedVerdict | ParseFailure:
    assert verdict.winner is not None  # noqa: S101 - _final lets no other pass
    against = (
        _disowned(prose, verdict.start, verdict.end, verdict.winner)
        or _in_its_sentence(prose, verdict)
        or _opens_otherwise(prose, verdict.winner)
        or _contradicted(prose[verdict.end :], verdict.winner, "later")
        or _reverses(prose, verdict)
    )
    if against is not None:
        return against
    native = verdict.protocol == "evenhand"
    return ParsedVerdict(
        verdict.winner,
        verdict.protocol,
        confidence=lines.confidence if native else None,
        criteria=lines.criteria if native else (),
        flags=lines.flags if native else (),
        strength=verdict.strength,
    )


def _opens_otherwise(prose: str, winner: Winner) -> ParseFailure | None:
    opening = opening_verdict(prose) or said_tersely(prose.lstrip().split("\n", 1)[0].strip())
    if opening in (None, winner):
        return None
    return ParseFailure(
        "contradiction", Message("unread.first_line_differs", opening=opening, winner=winner)
    )


def _in_its_sentence(prose: str, verdict: Statement) -> ParseFailure | None:
    """A mark and the sentence that it stands in, where they name different winners."""
    if verdict.protocol == "evenhand":
        return None
    before = prose[max(0, verdict.start - 600) : verdict.start].rsplit("\n", 1)[-1]
    for claim in claims(_SENTENCE.split(before)[-1]):
        if claim.winner != verdict.winner:
            return ParseFailure(
                "contradiction",
                Message(
                    "unread.mark_contradicted",
                    text=shown(verdict.text, 20),
                    winner=claim.winner,
                ),
            )
    return None


def _final(stated: list[Statement]) -> Statement | ParseFailure | None:
    """The final statement; two that both have a claim to be it, and differ, are none."""
    if not stated:
        return None
    last = stated[-1]
    rivals = [
        other
        for other in stated[:-1]
        if other.winner != last.winner and (other.final or not last.final)
    ]
    if rivals:
        return ParseFailure(
            "contradiction",
            Message(
                "unread.statements_differ",
                text=shown(rivals[-1].text, 40),
                text2=shown(last.text, 40),
            ),
        )
    if last.winner is None:
        return ParseFailure("off_menu", Message("unread.verdict_off_menu", text=shown(last.text)))
    return last


def _contradicted(
    beside: str, winner: Winner, where: Literal["before", "later"]
) -> ParseFailure | None:
    for claim in claims(beside):
        if claim.winner != winner and (claim.concluding or claim.alone):
            return ParseFailure(
                "contradiction",
                Message(
                    "unread.verdict_and_text_differ",
                    winner=winner,
                    where=where,
                    beside=shown(beside[claim.start : claim.end]),
                ),
            )
    return None


def _disowned(prose: str, start: int, end: int, winner: Winner) -> ParseFailure | None:
    if not disowned(prose[start : end + 400], end - start, winner):
        return None
    return ParseFailure("contradiction", Message("unread.verdict_of_response", winner=winner))


def _reverses(prose: str, verdict: Statement) -> ParseFailure | None:
    """A verdict after sentences that came to another one: whose it is cannot be told.

    One that is announced as final may follow a conclusion on a part of the question, so that only
    a sentence that is nothing but a verdict counts against it; under a heading it is of that part.
    """
    before = prose[: verdict.start]
    line = before[-200:].rsplit("\n", 1)[-1]
    final = verdict.final or _ANNOUNCED.search(line) is not None
    firm = [
        claim
        for claim in claims(before)
        if (claim.alone and not _under_a_heading(before, claim.start))
        or (claim.concluding and not claim.alone and (claim.winner == verdict.winner or not final))
    ]
    if not firm or firm[-1].winner == verdict.winner:
        return None
    said = shown(before[firm[-1].start : firm[-1].end])
    return ParseFailure(
        "contradiction", Message("unread.verdict_contradicted", winner=verdict.winner, said=said)
    )


def _under_a_heading(text: str, start: int) -> bool:
    lines = text[max(0, start - 400) : start].rsplit("\n", 1)[0].rstrip().rsplit("\n", 1)
    return _HEADING.match(lines[-1]) is not None


def _answer(
    prose: str, found: list[FoundObject], words: OwnWords
) -> FoundObject | ParseFailure | None:
    """The object that is the answer, if one is."""
    answers: list[FoundObject] = []
    broken: FoundObject | None = None
    for item in found:
        if item.value is None:
            broken = broken or item
        elif is_answer(item.value) and not _mentioned(prose, item, words):
            if broken is not None and not is_full(item.value):
                continue  # a part of the broken one
            broken = None
            answers.append(item)
    if broken is not None:
        if broken.unclosed:
            return ParseFailure("truncated", Message("unread.json_cut"))
        return ParseFailure("malformed", Message("unread.json_broken"))
    if not answers:
        return None
    full = [item for item in answers if item.value is not None and is_full(item.value)]
    chosen = full[-1] if full else answers[-1]
    for other in answers:
        rival = other in full or not full or other.start > chosen.start
        rival = rival or _adjacent(prose, other, chosen)
        if other is not chosen and rival and _winner(other) != _winner(chosen):
            return ParseFailure("contradiction", Message("unread.objects_differ"))
    return chosen


def _winner(item: FoundObject) -> Winner | None:
    winner = winner_in(item.value or {})
    return None if isinstance(winner, ParseFailure) else winner


def _adjacent(prose: str, first: FoundObject, second: FoundObject) -> bool:
    between = prose[first.end : second.start]
    return len(between) < 200 and between.strip(_DECORATION) in ("", "json", "JSON")


def _mentioned(prose: str, item: FoundObject, words: OwnWords) -> bool:
    """Whether the object is quoted: as somebody's words, or in a sentence about them."""
    if words.attributed(item.start):
        return True
    line = prose[max(0, item.start - 400) : item.start].rsplit("\n", 1)[-1]
    following = prose[item.end : item.end + 200].split("\n", 1)[0]
    if _GOES_ON.match(following):
        if attributes(following) or RESPONSE.search(following):
            return True
        if line.strip(_DECORATION) and not (_ANNOUNCED.search(line) or _MY.search(line)):
            return True
    if not line.strip(" \t*_>#`"):
        above = prose[max(0, item.start - 400) : item.start].rstrip().rsplit("\n", 1)[-1]
        return introduces(above, set_off=True) or (
            not above.endswith((".", "!", "。", "！"))
            and one_response(_SENTENCE.split(above)[-1])
            and not (_ANNOUNCED.search(above) or _MY.search(above))
        )
    if attributes(line) or line.rstrip().endswith("`"):
        return True
    return RESPONSE.search(line) is not None and not _ANNOUNCED.search(line)


def _without(body: str, found: list[FoundObject]) -> str:
    """The prose around the objects, every character still at its place."""
    parts: list[str] = []
    at = 0
    for item in found:
        if item.value is None:
            continue
        parts.append(body[at : item.start])
        parts.append(" " * (item.end - item.start))
        at = item.end
    parts.append(body[at:])
    return "".join(parts)


def _checked(
    answer: FoundObject, prose: str, criteria: Sequence[Criterion]
) -> ParsedVerdict | ParseFailure:
    reading = read_answer(answer.value or {}, criteria)
    if isinstance(reading, ParseFailure):
        return reading
    before, after = edges(prose[: answer.start]), edges(prose[answer.end :])
    if before.strip("`~ \n\t"):
        otherwise = _opens_otherwise(f"{before}\n.", reading.winner)
        if otherwise is not None:
            return otherwise
        for statement in (*labelled(before, ()).statements, *marks(before)):
            if statement.winner != reading.winner:
                return _differs(reading.winner, statement)
        if not is_full(answer.value or {}):
            # The whole answer outweighs the sentences that led to it; a verdict alone does not.
            against = _contradicted(before, reading.winner, "before")
            if against is not None:
                return against
    if after.strip("`~ \n\t"):
        against = _disowned(after.lstrip("`~ \n\t"), 0, 0, reading.winner)
        if against is not None:
            return against
        for statement in (*labelled(after, ()).statements, *marks(after)):
            if statement.winner != reading.winner:
                return _differs(reading.winner, statement)
        against = _contradicted(after, reading.winner, "later")
        if against is not None:
            return against
    return reading


def _differs(winner: Winner, statement: Statement) -> ParseFailure:
    return ParseFailure(
        "contradiction",
        Message("unread.json_and_text_differ", winner=winner, text=shown(statement.text)),
    )


_OUTPUT = re.compile(r"(?:(?i:\boutput)|输出)\s{0,2}[(（][abAB][)）]|^\s*\([ab]\)[\s.]*$")
_ONE_OF_TWO = re.compile(rf"{NOUN}\s?1(?![A-Za-z0-9])")
_TWO_OF_TWO = re.compile(rf"{NOUN}\s?2(?![A-Za-z0-9])")
_NUMBERED = re.compile(r"(?:(?i:\bassistant)|助手|助理)\s?[12]")


def _foreign(body: str) -> ParsedVerdict | ParseFailure:
    """The other protocols, each only where the text really looks like it."""
    if body in ("1", "2", "3"):
        return read_class(body)
    if _OUTPUT.search(body):
        by_output = read_outputs(body)
        if isinstance(by_output, ParsedVerdict) or by_output.kind != "no_verdict":
            return by_output
        tied = read_conclusion(body, "llmbar")
        return tied if isinstance(tied, ParsedVerdict) and tied.winner == "TIE" else by_output
    if _NUMBERED.search(body) or "output tuple is (" in body:
        return _numbered(body)
    if _ONE_OF_TWO.search(body) and _TWO_OF_TWO.search(body):
        by_class = read_class(body)
        if isinstance(by_class, ParsedVerdict):
            return by_class
    return _conclude(body)


def _numbered(body: str) -> ParsedVerdict | ParseFailure:
    by_class = read_class(body)
    opening = first_line(body)
    if opening is not None:
        return read_scores(body, first_line_only=True)
    if isinstance(by_class, ParsedVerdict) and body.rstrip()[-1:].isdigit():
        return by_class
    scored = read_scores(body)
    if isinstance(scored, ParsedVerdict) or scored.kind == "contradiction":
        return scored
    return by_class


def _conclude(body: str) -> ParsedVerdict | ParseFailure:
    bare = read_bare(body)
    if bare is not None:
        return bare
    of_assistants = re.search(r"(?i:\bassistant)\s?[AB]\b|助手\s?[AB]", body)
    concluded = read_conclusion(body, "mt-bench" if of_assistants else "evenhand")
    if isinstance(concluded, ParseFailure) and concluded.kind == "no_verdict":
        return read_terse(body) or concluded
    return concluded


def _by(protocol: AnswerProtocol, body: str) -> ParsedVerdict | ParseFailure:
    if protocol == "llmbar":
        return read_outputs(body)
    if protocol == "three-class":
        return read_class(body)
    if protocol == "scores":
        return read_scores(body)
    verdict = _final(marks(body, protocol))
    if verdict is None:
        return read_conclusion(body, protocol)
    if isinstance(verdict, ParseFailure):
        return verdict
    return _with_lines(verdict, Labelled([], (), None, ()), body)
