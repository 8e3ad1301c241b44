"""Which statement in a text is the judge's verdict, and in which protocol it was given; and the
text around it as reasons. Loaded only for answers that are not strict JSON: its patterns take 40
ms to compile.

The order of authority is: an answer object, a mark, a labelled line, an answer of a few words. What
ranks lower and stands before a verdict is ignored; what stands after it and names another winner
is a contradiction.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

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
from evenhand.judging.answers.labelled_lines import NO_LINES, Labelled, labelled
from evenhand.judging.answers.marks import marks
from evenhand.judging.answers.protocols import (
    closing_mark,
    last_line,
    read_class,
    read_conclusion,
    read_outputs,
    read_scores,
    tagged_scores,
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
    QuotedFrom,
    Statement,
    shown,
    shown_end,
)
from evenhand.judging.answers.sentences import claims, sentences
from evenhand.judging.answers.terse import few_words, read_short
from evenhand.judging.answers.vocabulary import is_refusal, plainly, winner_of
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
_SENTENCE = re.compile(r"(?<=[.!?])\s|[。！？]")
# The text ends inside a mark.
_CUT_MARK = re.compile(r"\[\[[^\[\]\n]{0,12}\]?$")
_ENDED = (".", "!", "。", "！", '"', "”", ")", "）", "*", "`", "'")
# …or in the middle of a sentence.
_CUT_LINE = re.compile(
    r"(?:[,，、;；]|\b(?:the|the better|the best|an|and|or|but|of|to|in|on|at|by|for|from|with|than"
    r"|that|which|who|is|was|are|were|be|has|have|it|its|as|because|since|due|while|although|more|most|both|this"
    r"|their)|因为|由于|并且|而且|以及|但是|[的在和与更对把被])$"
)


def read_text(
    body: str,
    criteria: Sequence[Criterion],
    protocol: AnswerProtocol | None,
    quoted: QuotedFrom | None = None,
) -> ParsedVerdict | ParseFailure:
    """Everything but the plain JSON answer: objects in prose, labelled lines, other protocols."""
    try:
        return _read_text(body, criteria, protocol, quoted)
    except TooManyQuotations:
        return ParseFailure(
            "malformed", Message("unread.too_many_quotations", most_quotations=MOST_QUOTATIONS)
        )


def _read_text(
    body: str,
    criteria: Sequence[Criterion],
    protocol: AnswerProtocol | None,
    quoted: QuotedFrom | None,
) -> ParsedVerdict | ParseFailure:
    if protocol in (None, "scores") and (scored := tagged_scores(body)) is not None:
        return scored
    plain = plainly(body)
    search = find_objects(body) if "{" in body else ObjectSearch([])
    if search.gave_up:
        return ParseFailure("malformed", Message("unread.too_many_braces"))
    prose = _without(plain, search.found)
    set_aside = False
    if search.found and protocol in (None, "evenhand"):
        words = own_words(prose)
        candidates = [each for each in search.found if each.value is None or is_answer(each.value)]
        own = [each for each in candidates if not _mentioned(each, body, prose, words, quoted)]
        set_aside = len(own) < len(candidates)
        answer = _answer(prose, own)
        if isinstance(answer, ParseFailure):
            return answer
        if answer is not None:
            return _checked(answer, body, words.own, criteria)
    words = own_words(edges(prose))
    outcome = _stated(words.own, criteria, protocol, quoted, set_aside=set_aside)
    if (
        isinstance(outcome, ParseFailure)
        and outcome.kind == "no_verdict"
        and words.closing is not None
    ):
        # Nothing but a closing block names a verdict, and it is nobody else's.
        outcome = _stated(words.closing, criteria, protocol, quoted, set_aside=set_aside)
    if isinstance(outcome, ParseFailure):
        if outcome.kind == "no_verdict" and is_refusal(plain):
            return ParseFailure("refusal", Message("unread.judge_declined", body=shown(body)))
        return outcome
    native = protocol in (None, "evenhand")
    named = set() if native else {_winner(each) for each in search.found if each.value}
    if named - {None, outcome.winner}:
        return ParseFailure(
            "contradiction", Message("unread.object_differs", winner=outcome.winner)
        )
    # Outside JSON the text itself is the reasoning.
    held = outcome.criteria or (ParsedCriterion(),) * len(criteria)
    return outcome._replace(criteria=held, reasoning=as_reasons(body, outcome.protocol))


# In JSON that is broken or cut: the winner of its result.
_BROKEN_WINNER = re.compile(
    r'"result"\s{0,20}:[^{}]{0,20}\{[^{}]{0,20000}"winner"\s{0,20}:\s{0,20}"(A|B|TIE)"'
)


def named_winners(text: str) -> set[Winner]:
    """Every verdict that an unread answer names in any way, its own or not."""
    plain = plainly(edges(text))
    search = find_objects(plain) if "{" in plain else ObjectSearch([])
    cut = [item.start for item in search.found if item.value is None]
    prose = _without(plain, search.found)[: min(cut, default=None)]
    objects = [item for item in search.found if item.value is not None and is_answer(item.value)]
    named = {_winner(item) for item in objects}
    named |= {winner_of(match[1]) for match in _BROKEN_WINNER.finditer(plain)}
    named |= {each.winner for each in (*marks(prose).stated, *labelled(prose, ()).statements)}
    named |= {claim.winner for claim in claims(prose)}
    return {winner for winner in named if winner is not None}


def _stated(
    text: str,
    criteria: Sequence[Criterion],
    protocol: AnswerProtocol | None,
    quoted: QuotedFrom | None,
    *,
    set_aside: bool,
) -> ParsedVerdict | ParseFailure:
    """What the judge's own words state. Where an object or a mark was set aside as somebody
    else's, prose is no verdict either."""
    ending = text.rstrip(" \t\n*_`\"'")
    if _CUT_MARK.search(ending):
        return ParseFailure(
            "truncated", Message("unread.cut_before_conclusion", ending=shown(ending[-60:]))
        )
    if protocol in ("llmbar", "three-class", "scores"):
        return _BY_PROTOCOL[protocol](text)
    marked = marks(text, protocol) if protocol != "evenhand" else marks("")
    lines = labelled(text, criteria) if protocol in (None, "evenhand") else NO_LINES
    for stated in (marked.stated, lines.statements):
        verdict = _final(stated)
        if isinstance(verdict, ParseFailure):
            return verdict
        if verdict is not None:
            return _checked_statement(verdict, lines, text, quoted)
    closing = closing_mark(text) if protocol is None else None
    if closing is not None:
        return closing
    if not (set_aside or marked.rejected) and (protocol or few_words(text)):
        return _in_prose(text.strip(), protocol)
    return ParseFailure(
        "no_verdict", Message("unread.no_verdict", last_line=shown_end(last_line(text)))
    )


_BY_PROTOCOL = {"llmbar": read_outputs, "three-class": read_class, "scores": read_scores}
_OF_ASSISTANTS = re.compile(r"(?i:\bassistant)\s?[AB]\b|助手\s?[AB]")


def _in_prose(body: str, protocol: AnswerProtocol | None) -> ParsedVerdict | ParseFailure:
    """A verdict in a sentence: the whole of a short answer, or in a protocol that was named."""
    lines = [line.strip() for line in body.split("\n") if line.strip()]
    alone = [
        winner for line in lines if "[[" not in line and (winner := winner_of(line)) is not None
    ]
    if protocol is None and _CUT_LINE.search(body):
        return ParseFailure(
            "truncated", Message("unread.cut_before_conclusion", ending=shown(body[-60:]))
        )
    if protocol is None:
        named: AnswerProtocol = "mt-bench" if _OF_ASSISTANTS.search(body) else "evenhand"
        reading = read_short(body) or _closing_sentence(body, named)
    else:
        reading = read_conclusion(body, protocol)
        bare = [winner for winner in alone if winner in (winner_of(lines[0]), winner_of(lines[-1]))]
        no_sentence = isinstance(reading, ParseFailure) and reading.kind == "no_verdict"
        if protocol == "evenhand" and no_sentence and bare:
            # A first or last line that is a verdict and nothing else.
            reading = ParsedVerdict(bare[-1])
    if isinstance(reading, ParsedVerdict) and {*alone} - {reading.winner}:
        return ParseFailure("contradiction", Message("unread.last_line_contradicted"))
    return reading


def _closing_sentence(body: str, protocol: AnswerProtocol) -> ParsedVerdict | ParseFailure:
    """The last sentence of a short answer, where it is whole and nothing before it differs."""
    last = max((each.start for each in sentences(body)), default=0)
    made = claims(body)
    closes = [claim for claim in made if claim.start >= last]
    # What goes on after the verdict must come to its end.
    whole = body.endswith(_ENDED) or (closes and not body[closes[-1].end :].strip(_DECORATION))
    if not closes or not whole or len({claim.winner for claim in made}) > 1:
        return ParseFailure(
            "no_verdict", Message("unread.no_verdict", last_line=shown_end(last_line(body)))
        )
    return read_conclusion(body, protocol)


def _checked_statement(
    verdict: Statement, lines: Labelled, text: str, quoted: QuotedFrom | None
) -> ParsedVerdict | ParseFailure:
    assert verdict.winner is not None  # noqa: S101 - _final lets no other pass
    against = (
        _disowned(text, verdict.start, verdict.end, verdict.winner)
        or _in_its_sentence(text, verdict, lines)
        or _later_statement(text, verdict, lines)
        or _contradicted(text[verdict.end :], verdict.winner)
    )
    if against is None and quoted is not None and quoted(verdict.text):
        # A response holds the same words: then nothing else may speak against them.
        against = _reversed(text, verdict)
    if against is not None:
        return against
    native = verdict.protocol == "evenhand"
    ending = text.rstrip()
    if native and len(ending) <= verdict.end and _CUT_LINE.search(ending):
        return ParseFailure(
            "truncated", Message("unread.cut_before_conclusion", ending=shown(ending[-60:]))
        )
    return ParsedVerdict(
        verdict.winner,
        verdict.protocol,
        confidence=lines.confidence if native else None,
        criteria=lines.criteria if native else (),
        flags=lines.flags if native else (),
        strength=verdict.strength,
    )


def _in_its_sentence(text: str, verdict: Statement, lines: Labelled) -> ParseFailure | None:
    """A mark and the sentence that it stands in, where they name different winners."""
    if verdict.protocol == "evenhand":
        return None
    start = text.rfind("\n", 0, verdict.start) + 1
    line = text[max(start, verdict.start - 600) : verdict.start]
    said: set[Winner | None] = {c.winner for c in claims(_SENTENCE.split(line)[-1])}
    said |= {each.winner for each in lines.statements if start <= each.start < verdict.start}
    others = said - {verdict.winner, None}
    if not others:
        return None
    return ParseFailure(
        "contradiction",
        Message(
            "unread.mark_contradicted",
            text=shown(verdict.text, 20),
            winner=min(filter(None, others)),
        ),
    )


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


def _later_statement(text: str, verdict: Statement, lines: Labelled) -> ParseFailure | None:
    for other in lines.statements:
        if other.start > verdict.start and other.winner != verdict.winner:
            return ParseFailure(
                "contradiction",
                Message(
                    "unread.statements_differ",
                    text=shown(verdict.text, 40),
                    text2=shown(other.text, 40),
                ),
            )
    return None


def _contradicted(after: str, winner: Winner) -> ParseFailure | None:
    for claim in claims(after):
        if claim.winner != winner and (claim.concluding or claim.alone):
            return ParseFailure(
                "contradiction",
                Message(
                    "unread.verdict_and_text_differ",
                    winner=winner,
                    where="later",
                    beside=shown(after[claim.start : claim.end]),
                ),
            )
    return None


def _disowned(prose: str, start: int, end: int, winner: Winner) -> ParseFailure | None:
    if not disowned(prose[start : end + 400], end - start, winner):
        return None
    return ParseFailure("contradiction", Message("unread.verdict_of_response", winner=winner))


def _reversed(text: str, verdict: Statement) -> ParseFailure | None:
    """What the sentences before a verdict come to, where that is another one."""
    before = text[: verdict.start]
    firm = [claim for claim in claims(before) if claim.alone or claim.concluding]
    opening = winner_of(before.strip().split("\n", 1)[0])
    said = firm[-1].winner if firm else opening
    if said in (None, verdict.winner):
        return None
    return ParseFailure(
        "contradiction", Message("unread.verdict_contradicted", winner=verdict.winner, said=said)
    )


def _answer(prose: str, found: list[FoundObject]) -> FoundObject | ParseFailure | None:
    """The object that is the answer, if one is."""
    answers: list[FoundObject] = []
    broken: FoundObject | None = None
    for item in found:
        if item.value is None:
            broken = broken or item
            continue
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


def _mentioned(
    item: FoundObject, body: str, prose: str, words: OwnWords, quoted: QuotedFrom | None
) -> bool:
    """Whether the object is quoted: from a text that was judged, as somebody's words, or in a
    sentence about them."""
    if item.value is None:
        return False
    if words.attributed(item.start) or (quoted is not None and quoted(body[item.start : item.end])):
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
    lead = _SENTENCE.split(line)[-1]
    if attributes(lead) or lead.rstrip().endswith("`"):
        return True
    return RESPONSE.search(lead) is not None and not _ANNOUNCED.search(lead)


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
    answer: FoundObject, body: str, prose: str, criteria: Sequence[Criterion]
) -> ParsedVerdict | ParseFailure:
    """What the object says, unless something else is said after it."""
    reading = read_answer(answer.value or {}, criteria, body)
    if isinstance(reading, ParseFailure):
        return reading
    before, after = edges(prose[: answer.start]), edges(prose[answer.end :])
    against = _disowned(after.lstrip("`~ \n\t"), 0, 0, reading.winner)
    if against is not None:
        return against
    # A winner alone is not so much more than a mark or a label that they could be ignored.
    beside = after if is_full(answer.value or {}) else f"{before}\n\n{after}"
    for statement in (*marks(beside).stated, *labelled(beside, ()).statements):
        if statement.winner not in (reading.winner, None):
            return ParseFailure(
                "contradiction",
                Message(
                    "unread.json_and_text_differ",
                    winner=reading.winner,
                    text=shown(statement.text),
                ),
            )
    return _contradicted(after, reading.winner) or reading
