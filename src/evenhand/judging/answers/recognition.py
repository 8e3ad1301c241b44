"""Which candidate in a text is the judge's verdict, and in which protocol it was given. Loaded only
for answers that are not strict JSON: its patterns take time to compile.

The order of authority is: an answer object, a mark, a labelled line, an answer of a few words. What
ranks lower and stands before a verdict is ignored; what stands after it and names another winner
is a contradiction. What is quoted or cut is no verdict.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from evenhand.contract import AnswerProtocol, Criterion, Winner
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
from evenhand.judging.answers.marks import Marks, marks
from evenhand.judging.answers.protocols import (
    NUMBERED,
    OUTPUT,
    closing_mark,
    last_line,
    read_class,
    read_conclusion,
    read_outputs,
    read_scores,
    read_short_scores,
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
from evenhand.judging.answers.reasons import as_reasons
from evenhand.judging.answers.results import (
    FILLER,
    LABEL,
    ParsedCriterion,
    ParsedVerdict,
    ParseFailure,
    QuotedFrom,
    StatedVerdict,
    shown,
    shown_end,
)
from evenhand.judging.answers.sentences import claims, closing, stated
from evenhand.judging.answers.vocabulary import OWN, calls_by_number, is_refusal, plainly, winner_of
from evenhand.messages import Message

_DECORATION = " \t\r\n`~*_>#,[]-"
_SENTENCE = re.compile(r"(?<=[.!?])\s|[。！？]")
# The text ends inside a mark…
_CUT_MARK = re.compile(r"\[\[[^\[\]\n]{0,12}\]?$")
# …or in the middle of a sentence.
_CUT_LINE = re.compile(
    r"(?:[,，、;；]|\b(?:the|the better|the best|an|and|or|but|of|to|in|on|at|by|for|from|with|than"
    r"|that|which|who|is|was|are|were|be|has|have|it|its|as|because|since|due|while|although|more"
    r"|most|both|this"
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
    native = protocol in (None, "evenhand")
    set_aside = False
    if search.found and native:
        words = own_words(prose)
        candidates = [each for each in search.found if each.value is None or is_answer(each.value)]
        own = [each for each in candidates if not _mentioned(each, body, prose, words, quoted)]
        set_aside = len(own) < len(candidates)
        answer = _answer(prose, own)
        if isinstance(answer, ParseFailure):
            return answer
        if answer is not None:
            return _checked_object(answer, body, words.own, criteria)
    words = own_words(edges(prose))
    # Where an object was set aside as somebody else's, prose is no verdict either.
    prosaic = not set_aside
    outcome = _stated(words.own, criteria, protocol, quoted, prosaic and words.closing is None)
    silent = isinstance(outcome, ParseFailure) and outcome.kind == "no_verdict"
    if silent and words.closing is not None:
        # Nothing but a closing block names a verdict, and it is nobody else's.
        outcome = _stated(words.closing, criteria, protocol, quoted, prosaic)
    if isinstance(outcome, ParseFailure):
        if outcome.kind == "no_verdict" and is_refusal(plain):
            return ParseFailure("refusal", Message("unread.judge_declined", body=shown(body)))
        return outcome
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
    named |= {each.winner for each in (*marks(prose).stated, *labelled(prose, ()).stated)}
    named |= {claim.winner for claim in claims(prose)}
    return {winner for winner in named if winner is not None}


def _stated(
    text: str,
    criteria: Sequence[Criterion],
    protocol: AnswerProtocol | None,
    quoted: QuotedFrom | None,
    prosaic: bool,
) -> ParsedVerdict | ParseFailure:
    """What the judge's own words state, in sentences only where they are `prosaic`."""
    ending = text.rstrip(" \t\n*_`\"'")
    if _CUT_MARK.search(ending):
        return _cut(ending)
    if protocol in _BY_PROTOCOL:
        return _BY_PROTOCOL[protocol](text)
    marked = marks(text, protocol) if protocol != "evenhand" else Marks([], rejected=False)
    lines = labelled(text, criteria) if protocol in (None, "evenhand") else Labelled([])
    verdict = _final([*marked.stated, *lines.stated])
    if isinstance(verdict, ParseFailure):
        return verdict
    if verdict is not None:
        return _checked(verdict, lines, text, quoted)
    mark = closing_mark(text) if protocol is None else None
    if mark is not None:
        return mark
    if prosaic and not marked.rejected:
        if protocol is not None:
            return _in_prose(text.strip(), protocol)
        if _few_words(text):
            return _in_short(text.strip())
    return _no_verdict(text)


_BY_PROTOCOL = {"llmbar": read_outputs, "three-class": read_class, "scores": read_scores}


def _no_verdict(text: str) -> ParseFailure:
    return ParseFailure(
        "no_verdict", Message("unread.no_verdict", last_line=shown_end(last_line(text)))
    )


def _cut(text: str) -> ParseFailure:
    return ParseFailure(
        "truncated", Message("unread.cut_before_conclusion", ending=shown(text[-60:]))
    )


def _final(candidates: list[StatedVerdict]) -> StatedVerdict | ParseFailure | None:
    """The last candidate of the highest rank, unless another one has as good a claim and differs:
    one of its rank that is as final, or any after it."""
    if not candidates:
        return None
    top = max(each.rank for each in candidates)
    last = [each for each in candidates if each.rank == top][-1]
    for other in candidates:
        rival = other.rank == top and (other.final or not last.final)
        if other.winner != last.winner and (rival or other.start > last.start):
            return ParseFailure(
                "contradiction",
                Message(
                    "unread.statements_differ",
                    text=shown(other.text, 40),
                    text2=shown(last.text, 40),
                ),
            )
    if last.winner is None:
        return ParseFailure("off_menu", Message("unread.verdict_off_menu", text=shown(last.text)))
    return last


def _checked(
    verdict: StatedVerdict, lines: Labelled, text: str, quoted: QuotedFrom | None
) -> ParsedVerdict | ParseFailure:
    assert verdict.winner is not None  # noqa: S101 - _final lets no other pass
    native = verdict.rank == LABEL
    against = _contradicted(text[verdict.end :], verdict.winner)
    if against is None and not native:
        against = _in_its_sentence(text, verdict, lines)
    if against is None and quoted is not None and quoted(verdict.text):
        # A response holds the same words: then nothing else may speak against them.
        against = _reversed(text, verdict)
    if against is not None:
        return against
    ending = text.rstrip()
    if native and len(ending) <= verdict.end and _CUT_LINE.search(ending):
        return _cut(ending)
    return ParsedVerdict(
        verdict.winner,
        verdict.protocol,
        confidence=lines.confidence if native else None,
        criteria=lines.criteria if native else (),
        flags=lines.flags if native else (),
        strength=verdict.strength,
    )


def _in_its_sentence(text: str, verdict: StatedVerdict, lines: Labelled) -> ParseFailure | None:
    """A mark and the sentence that it stands in, where they name different winners."""
    start = text.rfind("\n", 0, verdict.start) + 1
    line = text[max(start, verdict.start - 600) : verdict.start]
    said: set[Winner | None] = {stated(_SENTENCE.split(line)[-1].rstrip(" *_:：(-—"))}
    said |= {each.winner for each in lines.stated if start <= each.start < verdict.start}
    others = said - {verdict.winner, None}
    if not others:
        return None
    text, winner = shown(verdict.text, 20), min(filter(None, others))
    return ParseFailure(
        "contradiction", Message("unread.mark_contradicted", text=text, winner=winner)
    )


def _contradicted(after: str, winner: Winner) -> ParseFailure | None:
    """A sentence after a verdict that names another, or that disowns it."""
    if disowned(after[:400], winner):
        return ParseFailure("contradiction", Message("unread.verdict_of_response", winner=winner))
    for claim in claims(after):
        if claim.winner != winner:
            beside = shown(after[claim.start : claim.end])
            return ParseFailure(
                "contradiction",
                Message(
                    "unread.verdict_and_text_differ", winner=winner, where="later", beside=beside
                ),
            )
    return None


def _reversed(text: str, verdict: StatedVerdict) -> ParseFailure | None:
    """What the sentences before a verdict come to, where that is another one."""
    before = text[: verdict.start]
    firm = [claim.winner for claim in claims(before)]
    said = firm[-1] if firm else winner_of(before.strip().split("\n", 1)[0])
    if said in (None, verdict.winner):
        return None
    return ParseFailure(
        "contradiction", Message("unread.verdict_contradicted", winner=verdict.winner, said=said)
    )


# Prose: the whole of a short answer, or sentences in a protocol that was named.

_MOST_WORDS, _LONGEST_SHORT = 12, 480
# Chinese and Japanese write no spaces: two characters count as a word.
_CHARACTER = re.compile("[\u3040-\u30ff\u3400-\u9fff]")
_BOXED = re.compile(r"\$?\\boxed\{(?:\\text\{)?([^{}]{1,20})\}{1,2}\$?")
_OF_ASSISTANTS = re.compile(r"(?i:\bassistant)\s?[AB]\b|助手\s?[AB]")


def _few_words(text: str) -> bool:
    if len(text.strip()) > _LONGEST_SHORT:
        return False
    spaced = _CHARACTER.sub(" ", text).replace(FILLER, " ").split()
    words = sum(any(character.isalnum() for character in word) for word in spaced)
    return words + len(_CHARACTER.findall(text)) / 2 <= _MOST_WORDS


def _in_short(body: str) -> ParsedVerdict | ParseFailure:
    if _CUT_LINE.search(body):
        return _cut(body)
    if OUTPUT.search(body):
        return read_outputs(body)
    scored = read_short_scores(body)
    if scored is not None:
        return scored
    if body in ("1", "2", "3") or NUMBERED.search(body) or calls_by_number(body):
        by_class = read_class(body)
        if isinstance(by_class, ParsedVerdict):
            return by_class
    boxed = _BOXED.fullmatch(body)
    winner = closing(body if boxed is None else boxed[1])
    if winner is None:
        return _no_verdict(body)
    return ParsedVerdict(winner, "mt-bench" if _OF_ASSISTANTS.search(body) else "evenhand")


def _in_prose(body: str, protocol: AnswerProtocol) -> ParsedVerdict | ParseFailure:
    """Sentences; and in our own format a first or last line that is a verdict and nothing else."""
    reading = read_conclusion(body, protocol)
    lines = [line.strip() for line in body.split("\n") if line.strip() and "[[" not in line]
    alone = {winner_of(line) for line in lines} - {None}
    ends = [winner for line in lines[:1] + lines[-1:] if (winner := winner_of(line)) is not None]
    silent = isinstance(reading, ParseFailure) and reading.kind == "no_verdict"
    if protocol == "evenhand" and silent and ends:
        reading = ParsedVerdict(ends[-1])
    if isinstance(reading, ParsedVerdict) and alone - {reading.winner}:
        return ParseFailure("contradiction", Message("unread.last_line_contradicted"))
    return reading


# Objects.

# The sentence that an object stands in goes on after it.
_GOES_ON = re.compile(r"[`\"”'\s]{0,3}(?:[,，;；(（]|<-|[-–—←]\s|[a-z]|这|是|等|的)")


def _answer(prose: str, found: list[FoundObject]) -> FoundObject | ParseFailure | None:
    """The object that is the answer, if one is."""
    answers: list[FoundObject] = []
    broken: FoundObject | None = None
    for item in found:
        if item.value is None:
            broken = broken or item
        elif broken is None or is_full(item.value):  # else a part of the broken one
            broken = None
            answers.append(item)
    if broken is not None:
        if broken.unclosed:
            return ParseFailure("truncated", Message("unread.json_cut"))
        return ParseFailure("malformed", Message("unread.json_broken"))
    if not answers:
        return None
    full = [item for item in answers if item.value is not None and is_full(item.value)]
    chosen = (full or answers)[-1]
    for other in answers:
        rival = other in full or not full or other.start > chosen.start
        rival = rival or _adjacent(prose, other, chosen)
        if rival and _winner(other) != _winner(chosen):
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
    before = prose[max(0, item.start - 400) : item.start]
    line = before.rsplit("\n", 1)[-1]
    following = prose[item.end : item.end + 200].split("\n", 1)[0]
    if _GOES_ON.match(following):
        if attributes(following) or RESPONSE.search(following):
            return True
        if line.strip(_DECORATION) and not OWN.search(line):
            return True
    if not line.strip(" \t*_>#`"):
        above = before.rstrip().rsplit("\n", 1)[-1]
        return introduces(above, set_off=True) or (
            not above.endswith((".", "!", "。", "！"))
            and one_response(_SENTENCE.split(above)[-1])
            and not OWN.search(above)
        )
    lead = _SENTENCE.split(line)[-1]
    if attributes(lead) or lead.rstrip().endswith("`"):
        return True
    return RESPONSE.search(lead) is not None and not OWN.search(lead)


def _without(body: str, found: list[FoundObject]) -> str:
    """The prose around the objects, every character still at its place."""
    parts: list[str] = []
    at = 0
    for item in found:
        if item.value is not None:
            parts += body[at : item.start], " " * (item.end - item.start)
            at = item.end
    return "".join([*parts, body[at:]])


def _checked_object(
    answer: FoundObject, body: str, prose: str, criteria: Sequence[Criterion]
) -> ParsedVerdict | ParseFailure:
    """What the object says, unless something else is said after it."""
    reading = read_answer(answer.value or {}, criteria, body)
    if isinstance(reading, ParseFailure):
        return reading
    before, after = edges(prose[: answer.start]), edges(prose[answer.end :])
    # A winner alone is not so much more than a mark or a label that they could be ignored.
    beside = after if is_full(answer.value or {}) else f"{before}\n\n{after}"
    for other in (*marks(beside).stated, *labelled(beside, ()).stated):
        if other.winner not in (reading.winner, None):
            text = shown(other.text)
            return ParseFailure(
                "contradiction",
                Message("unread.json_and_text_differ", winner=reading.winner, text=text),
            )
    return _contradicted(after.lstrip("`~ \n\t"), reading.winner) or reading
