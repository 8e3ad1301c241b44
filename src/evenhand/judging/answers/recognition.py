"""Which statement in a text is the judge's verdict, and in which protocol it was given. Loaded only
for answers that are not strict JSON: its patterns take time to compile.

The order of authority is: an answer object, a mark, a labelled line, an answer of a few words. What
ranks lower and stands before a verdict is ignored; what stands after it and names another winner
is a contradiction. What is quoted or cut is no verdict.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from evenhand.contract import AnswerProtocol, Criterion, Winner
from evenhand.judging.answers.json_answer import (
    FoundObject,
    find_objects,
    is_answer,
    is_full,
    read_answer,
    winner_in,
)
from evenhand.judging.answers.labelled_lines import labelled
from evenhand.judging.answers.marks import marks, without_marks
from evenhand.judging.answers.protocols import (
    claimed,
    closing_lines,
    in_sentences,
    in_short,
    last_alone,
    last_line,
)
from evenhand.judging.answers.quotations import (
    MOST_QUOTATIONS,
    TooManyQuotations,
    disowned,
    edges,
    is_mention,
    own_words,
)
from evenhand.judging.answers.reasons import as_reasons
from evenhand.judging.answers.results import (
    BARE_OBJECT,
    FILLER,
    LABEL,
    MARK,
    OBJECT,
    PROSE,
    ParsedCriterion,
    ParsedVerdict,
    ParseFailure,
    QuotedFrom,
    StatedVerdict,
    shown,
    shown_end,
)
from evenhand.judging.answers.vocabulary import is_refusal, plainly, winner_of
from evenhand.messages import Message

# The text ends inside a mark…
_CUT_MARK = re.compile(r"\[\[[^\[\]\n]{0,12}\]?$")
# …or in the middle of a sentence.
_CUT_LINE = re.compile(
    r"(?:[,，、;；]|\b(?:the|the better|the best|an|and|or|but|of|to|in|on|at|by|for|from|with|than"
    r"|that|which|who|is|was|are|were|be|has|have|it|its|as|because|since|due|while|although|more"
    r"|most|both|this"
    r"|their)|因为|由于|并且|而且|以及|但是|[的在和与更对把被])$"
)
_UNFINISHED = re.compile(
    r"(?i:\b(?:therefore|thus|hence|overall|in conclusion)\b"
    r"[\s,]{0,3}(?:the\s)?(?:output)?[\s(]{0,3})$"
)


class _Asked(NamedTuple):
    """An answer, and what the caller asked of its reading."""

    body: str
    criteria: Sequence[Criterion]
    protocol: AnswerProtocol | None
    quoted: QuotedFrom | None
    echoes: Sequence[FoundObject]  # objects that stand in the pair's texts and are nobody's by name


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
    plain = plainly(body)
    found = find_objects(body)
    if found is None:
        return ParseFailure("malformed", Message("unread.too_many_braces"))
    prose = _without(plain, found)
    words = own_words(prose)
    candidates = [each for each in found if each.value is None or is_answer(each.value)]
    unnamed = [
        each
        for each in candidates
        if each.value is None
        or not (is_mention(prose, each.start, each.end) or words.attributed(each.start))
    ]
    echoes = [each for each in unnamed if each.value and _held(body, each, quoted)]
    own = [each for each in unnamed if each not in echoes]
    objects = _objects(own, criteria, body)
    if isinstance(objects, ParseFailure):
        if protocol in (None, "evenhand"):
            return objects
        objects = []
    # Where an object was set aside as somebody else's, prose is no verdict either.
    prosaic = len(own) == len(candidates)
    asked = _Asked(body, criteria, protocol, quoted, echoes)
    outcome = _decided(words.own, objects, asked, prosaic=prosaic and words.closing is None)
    silent = isinstance(outcome, ParseFailure) and outcome.kind == "no_verdict"
    if silent and words.closing is not None:
        # Nothing but a closing block names a verdict, and it is nobody else's.
        outcome = _decided(words.closing, objects, asked, prosaic=prosaic)
    if isinstance(outcome, ParseFailure):
        if outcome.kind == "no_verdict" and is_refusal(plain):
            return ParseFailure("refusal", Message("unread.judge_declined", body=shown(body)))
        return outcome
    if outcome.from_object:
        return outcome
    # Outside JSON the text itself is the reasoning.
    held = outcome.criteria or (ParsedCriterion(),) * len(criteria)
    return outcome._replace(criteria=held, reasoning=as_reasons(body, outcome.protocol))


# In JSON that is broken or cut: the winner of its result, or the one that it opens with.
_BROKEN_WINNER = re.compile(
    r'(?:"result"\s{0,20}:[^{}]{0,20}\{[^{}]{0,20000}|\A[^{}]{0,20000}\{\s{0,20})'
    r'"winner"\s{0,20}:\s{0,20}"(A|B|TIE)"'
)


def named_winners(text: str) -> set[Winner]:
    """Every verdict that an unread answer names in any way, its own or not."""
    plain = plainly(edges(text))
    found = find_objects(plain) or []
    cut = [item.start for item in found if item.value is None]
    prose = _without(plain, found)[: min(cut, default=None)]
    objects = [item.value for item in found if item.value and is_answer(item.value)]
    stated = (*marks(prose).stated, *labelled(prose, ()).stated, *claimed(prose))
    named = {winner_in(each) for each in objects} | {each.winner for each in stated}
    named |= {winner_of(match[1]) for match in _BROKEN_WINNER.finditer(plain)}
    return {winner for winner in named if isinstance(winner, str)}


def _decided(
    text: str, objects: list[StatedVerdict], asked: _Asked, *, prosaic: bool
) -> ParsedVerdict | ParseFailure:
    """What the judge's own words come to, in sentences only where they are `prosaic`."""
    ending = text.rstrip(" \t\n*_`\"'")
    if _CUT_MARK.search(ending):
        return _cut(ending)
    protocol = asked.protocol
    by_marks = protocol in ("mt-bench", "arena-hard")
    marked = marks(text, protocol if by_marks else None)
    lines = labelled(text, asked.criteria)
    closing = closing_lines(text, protocol)
    stated = [*objects, *marked.stated, *lines.stated, *closing]
    deciding = stated
    if protocol == "evenhand":
        deciding = [*objects, *lines.stated]
    elif protocol is not None:
        deciding = marked.stated if by_marks else closing
    if not deciding and prosaic and not marked.rejected:
        if protocol is not None:
            deciding = in_sentences(without_marks(text), protocol)
        elif _few_words(text):
            if _CUT_LINE.search(text.rstrip()):
                return _cut(text.rstrip())
            deciding = in_short(text)
    if not deciding:
        ends = shown_end(last_line(text))
        return ParseFailure("no_verdict", Message("unread.no_verdict", last_line=ends))
    said = [*claimed(without_marks(text)), *last_alone(text)]
    verdict = _final(deciding, [*stated, *said])
    if isinstance(verdict, ParseFailure) or isinstance(verdict.reading, ParseFailure):
        return verdict if isinstance(verdict, ParseFailure) else verdict.reading
    winner = verdict.reading.winner
    if disowned(text[verdict.end : verdict.end + 400].lstrip(FILLER + " \n"), winner):
        return ParseFailure("contradiction", Message("unread.verdict_of_response", winner=winner))
    if verdict.rank <= MARK and _contested(text, verdict, said, asked):
        return ParseFailure("contradiction", Message("unread.answer_quoted"))
    whole = text.rstrip()
    closes = verdict.rank in (LABEL, MARK) and "\n" not in whole[verdict.end :]
    cut = _CUT_LINE if closes else _UNFINISHED if verdict.rank == PROSE else None
    if cut is not None and cut.search(whole):
        return _cut(whole)
    if verdict.rank == LABEL:
        return verdict.reading._replace(
            confidence=lines.confidence, criteria=lines.criteria, flags=lines.flags
        )
    return verdict.reading


def _contested(text: str, verdict: StatedVerdict, said: list[StatedVerdict], asked: _Asked) -> bool:
    """Whether a response may have written the verdict: it holds the same words, and something
    speaks against them, be it an object that stands in one of the texts as well."""
    as_written = asked.body[verdict.start : verdict.end]
    if asked.quoted is None or not (asked.quoted(verdict.text) or asked.quoted(as_written)):
        return False
    before = [each for each in said if each.start < verdict.start][-1:]
    against = {winner_of(text[: verdict.start].strip().split("\n", 1)[0])}
    against |= {each.winner for each in before}
    echoed = {winner_in(each.value) for each in asked.echoes if each.value}
    return bool((against | echoed) - {None, verdict.winner})


def _cut(text: str) -> ParseFailure:
    return ParseFailure(
        "truncated", Message("unread.cut_before_conclusion", ending=shown(text[-60:]))
    )


def _final(
    deciding: list[StatedVerdict], others: list[StatedVerdict]
) -> StatedVerdict | ParseFailure:
    """The last statement of the highest rank, unless another one has as good a claim and differs:
    one of its rank that is as final, one in the sentence of a mark, or any after it."""
    top = max(each.rank for each in deciding)
    last = max((each for each in deciding if each.rank == top), key=lambda each: each.start)
    for other in (*deciding, *others):
        equal = other.rank == top or (top == BARE_OBJECT and other.rank > PROSE)
        rival = (
            (equal and (other.final or not last.final))
            or (top == MARK and other.winner is not None and other.end >= last.start)
            or other.start > last.start
        )
        if rival and other.winner != last.winner:
            first, second = sorted((other, last), key=lambda each: each.start)
            texts = {"text": shown(first.text, 40), "text2": shown(second.text, 40)}
            return ParseFailure("contradiction", Message("unread.statements_differ", **texts))
    return last


_MOST_WORDS, _LONGEST_SHORT = 12, 480
# Chinese and Japanese write no spaces: two characters count as a word.
_CHARACTER = re.compile("[\u3040-\u30ff\u3400-\u9fff]")


def _few_words(text: str) -> bool:
    if len(text.strip()) > _LONGEST_SHORT:
        return False
    spaced = _CHARACTER.sub(" ", text).replace(FILLER, " ").split()
    words = sum(any(character.isalnum() for character in word) for word in spaced)
    return words + len(_CHARACTER.findall(text)) / 2 <= _MOST_WORDS


# Objects.


def _objects(
    found: list[FoundObject], criteria: Sequence[Criterion], body: str
) -> list[StatedVerdict] | ParseFailure:
    """The answer objects, unless the last of them is broken."""
    answers: list[StatedVerdict] = []
    broken: FoundObject | None = None
    for item in found:
        if item.value is None:
            broken = broken or item
            continue
        full = is_full(item.value)
        if broken is None or full:  # else a part of the broken one
            broken = None
            reading = read_answer(item.value, criteria, body)
            text = body[item.start : item.end]
            rank = OBJECT if full else BARE_OBJECT
            answers.append(StatedVerdict(item.start, item.end, text, rank, reading))
    if broken is None:
        return answers
    if broken.unclosed:
        return ParseFailure("truncated", Message("unread.json_cut"))
    return ParseFailure("malformed", Message("unread.json_broken"))


def _held(body: str, found: FoundObject, quoted: QuotedFrom | None) -> bool:
    """Whether an object stands in one of the pair's texts."""
    return quoted is not None and quoted(body[found.start : found.end])


def _without(body: str, found: list[FoundObject]) -> str:
    """The prose around the objects, every character still at its place."""
    parts: list[str] = []
    at = 0
    for item in found:
        if item.value is not None:
            parts += body[at : item.start], " " * (item.end - item.start)
            at = item.end
    return "".join([*parts, body[at:]])
