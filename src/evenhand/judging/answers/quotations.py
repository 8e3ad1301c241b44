"""Whose words they are: a judge's text with everything that it only quotes blanked out, and
verdicts that the judge disowns.

Words are set off by quotation marks, fences, block quotes, elements, a response's heading or a line
that announces them. What is set off is the judge's own only where nobody else is named for it.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from typing import NamedTuple

from evenhand.judging.answers.results import FILLER
from evenhand.judging.answers.vocabulary import NOUN, OWN, SPEECH, letter

# Beyond this a pair of marks is no quotation but two accidents.
_LONGEST_QUOTATION = 4000
_LONGEST_LEAD = 300
HEAD, TAIL = 10_000, 50_000
MOST_QUOTATIONS = 1000

RESPONSE = re.compile(
    rf"(?:{NOUN}|(?i:responses|assistants))\s?[*_`\"]{{0,2}}[(（]?(?P<id>[AB12]"
    rf"|(?<=[(（])[ab])(?![A-Za-z0-9])"
    r"|(?i:\bthe\s(?P<nth>first|second)\s(?:response|answer|output|assistant|one)\b)"
    r"|第(?P<ordinal>[一二])个?(?:输出|响应|回应|回答|回复|助手|答案)"
    # A letter alone names a response where it is somebody who says, has or is quoted.
    r"|(?<![A-Za-z0-9'’-])(?P<lone>[AB])(?=['’]s\b|\s?的|\s(?:(?:also|itself|then|just)\s)?(?:says?"
    r"|said|writes?|wrote|ends?|ended|closes?|claims?|wants?|has|had|contains?|includes?|states?"
    r"|reads|tells|asks|adds|begs|carries|holds|puts|prints|argues|insists|demands)\b"
    r"|\s?(?:自己)?(?:说|写|声称|自称|让我|要求|里|中有|中的))"
    r"|(?:(?<=\b[Ii]n\s)|(?<=\bof\s)|(?<=\bby\s)"
    r"|(?<=\b[Ff]rom\s))(?P<whose>[AB])(?![A-Za-z0-9'’+#])"
)
# Says of a text that it is not the judge's, whoever wrote it.
_FOREIGN = re.compile(
    r"\b(?:injected|injection|fake|forged|quoted|planted|smuggled|hidden|embedded|manipulat\w+"
    r"|not (?:mine|my own|my (?:verdict|words|decision|judge?ment|choice))"
    r"|its (?:own |last |final |closing )?(?:words?|text|line|sentence|verdict|ending)"
    r"|(?:the|this|that) (?:response|answer|output|author|text|other one) (?:itself )?"
    r"(?:says|claims|contains|includes|ends with|writes|wrote|reads|states|adds|tells|instructs"
    r"|asks|demands)|(?:wants|asks|tells|orders|begs) me to)\b"
    r"|注入|伪造|植入|嵌入|引用|引文|原文|它(?:写|说|声称|自称)|(?:不是|并非)我的?",
    re.IGNORECASE,
)
# The judge announces its own verdict.
_FIRST_PERSON = re.compile(
    r"\bmy\b(?! own\b)|(?<![a-z])i (?:\w+ )?(?:conclude|judge|choose|decide|answer|declare|give"
    r"|rate|select|pick)\b|我(?:的|认为|选|判)",
    re.IGNORECASE,
)
_OWN_LEAD = re.compile(
    rf"(?:\b(?:therefore|thus|hence|so|overall|verdict|decision|conclusion|judge?ment|choice|answer"
    rf"|winner|result|rating)\b|判|结论|裁决|选|因此|所以|综上|总之|最终|答案|胜者"
    rf"|{_FIRST_PERSON.pattern})"
    r"[\w ]{0,24}[\s:：,，*_(（-]{0,6}$",
    re.IGNORECASE,
)
_ANNOUNCES = re.compile(
    r"[:：]$|(?:\b(?:(?:ends?|closes|opens|starts|begins) with|says|writes|wrote|reads|states"
    r"|contains|includes|claims|adds)|写道|写着|写下了?|声称)$"
    r"|\b(?P<below>(?:lines?|text|mark|verdict|object|block|words|what|transcript|passage)"
    r"\s(?:(?:that|right|just)\s)?(?:below|follows?|comes next)|as follows)\b"
    r"|(?P<next>以下|下面)(?:是|这)",
    re.IGNORECASE,
)
_SAYS = re.compile(
    r"(?:\b(?i:says?|said|writes?|wrote|reads?|states?|claims?|adds?|concludes?|with|is|was|this"
    r"|thus|following)|(?:\b[AB12]|[(（][ab])[)）]?|\(verbatim\)|写道|写着|写下了?|写了|说|声称"
    r"|宣称|是"
    r"|如下|内容)[*_]{0,2}\s?(?:[:：][ \t*_]{1,4}|(?<=[^\x00-\x7f])[:：])(?=[^\s\"“「『‘'`<])"
)
_SENTENCE = re.compile(r"[.!?;][\"')*_”]{0,4}\s|[。！？；]|\n")
_ENDED = (".", "!", "?", "。", "！", "？")
_EDGE = " \t*_`#>-•|"


class TooManyQuotations(Exception):
    """The text holds more quotations than a reading looks at."""


class QuotedSpan(NamedTuple):
    """A stretch of the text that is set off; `own` where the judge may have set it off itself."""

    start: int
    end: int
    own: bool


class OwnWords(NamedTuple):
    """`own` is the text without what is quoted. Where it closes with a block that nobody else is
    named for, `closing` is the same with that block."""

    own: str
    closing: str | None
    quoted: tuple[QuotedSpan, ...]

    def attributed(self, at: int) -> bool:
        """Whether somebody else's words stand there."""
        before = bisect_right(self.quoted, at, key=lambda span: span.start)
        return before > 0 and at < self.quoted[before - 1].end


def own_words(text: str) -> OwnWords:
    """Linear in the text; of one of absurd length only the ends are looked at, and its middle
    counts as nobody's."""
    if len(text) <= HEAD + TAIL + 1:
        return _segmented(text)
    ends = _segmented(edges(text))
    middle = QuotedSpan(HEAD, len(text) - TAIL, own=False)
    moved = len(text) - HEAD - TAIL - 1
    quoted = [
        span if span.end <= HEAD else span._replace(start=span.start + moved, end=span.end + moved)
        for span in ends.quoted
        if span.end <= HEAD or span.start > HEAD
    ]
    own = f"{ends.own[:HEAD]}{FILLER * (middle.end - middle.start)}{ends.own[HEAD + 1 :]}"
    return OwnWords(own, None, tuple(_merged([*quoted, middle])))


def edges(text: str) -> str:
    """A text of absurd length without its middle: a verdict stands near one of the ends."""
    return text if len(text) <= HEAD + TAIL else f"{text[:HEAD]}\n{text[-TAIL:]}"


def _segmented(text: str) -> OwnWords:
    blocks = _merged([*_fences(text), *_quoted_lines(text), *_tagged(text), *_sections(text)])
    owned = [block._replace(own=block.own and not _theirs(text, block)) for block in blocks]
    blocks = _merged([*owned, *_announced(text, blocks)])
    spans = _merged([*blocks, *_quotations(_blanked(text, blocks))])
    if len(spans) > MOST_QUOTATIONS:
        raise TooManyQuotations
    own = _blanked(text, spans)
    last = next((span for span in reversed(blocks) if span.own), None)
    closing = None
    if last is not None and not own[last.end :].strip(" \t\n*_`" + FILLER):
        closing = _blanked(text, [span for span in spans if span != last])
    return OwnWords(own, closing, tuple(span for span in spans if not span.own))


def _blanked(text: str, spans: list[QuotedSpan]) -> str:
    parts: list[str] = []
    at = 0
    for span in spans:
        lines = text[span.start : span.end].split("\n")
        parts += text[at : span.start], "\n".join(FILLER * len(line) for line in lines)
        at = span.end
    return "".join([*parts, text[at:]])


def _merged(spans: list[QuotedSpan]) -> list[QuotedSpan]:
    """Without those inside another; somebody else's words in a block make it theirs."""
    kept: list[QuotedSpan] = []
    for span in sorted(spans):
        if kept and span.start < kept[-1].end:
            before = kept[-1]
            kept[-1] = QuotedSpan(before.start, max(before.end, span.end), before.own and span.own)
        else:
            kept.append(span)
    return kept


_RUN = re.compile(r"`{3,}|~{3,}")


def _fences(text: str) -> Iterator[QuotedSpan]:
    """Code fences, also one that opens in the middle of a line; a lone mark opens none."""
    opened: re.Match[str] | None = None
    for run in _RUN.finditer(text):
        if opened is None:
            opened = run
        elif run[0].startswith(opened[0]):
            yield QuotedSpan(opened.start(), run.end(), own=True)
            opened = None


_QUOTED_LINES = re.compile(r"^[ \t]*+>[^\n]*+(?:\n[ \t]*+>[^\n]*+)*+", re.MULTILINE)


def _quoted_lines(text: str) -> Iterator[QuotedSpan]:
    for lines in _QUOTED_LINES.finditer(text):
        yield QuotedSpan(lines.start(), lines.end(), own=True)


_TAGGED = re.compile(
    r"<(quote|blockquote|q|excerpt|cite|(?:response|answer|output|assistant"
    r"|candidate)[ _-]?[ab12])\b[^<>\n]{0,80}>"
    r"|<(response|answer|output|assistant|candidate|completion|text|model)"
    r"\s[^<>\n]{0,40}=\s?[\"']?(?:(?:response|assistant|model)[ _-]?)?[ab12][\"']?\s{0,3}>"
    r"|<!--",
    re.IGNORECASE,
)


def _tagged(text: str) -> Iterator[QuotedSpan]:
    at = 0
    lower = text.lower() if "<" in text else ""
    missing: set[str] = set()
    while (match := _TAGGED.search(text, at)) is not None:
        name = match[1] or match[2]
        closer = "-->" if name is None else f"</{name.lower()}"
        found = closer not in missing and len(lower) == len(text)
        end = lower.find(closer, match.end()) if found else -1
        at = match.end() if end < 0 else end + len(closer)
        if end < 0:
            missing.add(closer)
        if end >= 0 or match[2] is not None:
            yield QuotedSpan(match.start(), at if end >= 0 else len(text), own=False)


# "## Response A", "**Response A:**", "=== Response A ===", "[The Start of Assistant A's Answer]".
_HEADS = re.compile(
    r"(?P<delimits>={2,80}+[^=]|-{2,80}+[^-]|\[(?!\[|[AB12]\])|<\||<{2,})|#{1,6}\s"
    r"|\*\*[^*]{1,80}\*\*[:：]?$|[【「《]|[^:：]{1,60}[:：]\*{0,2}$"
)
_HEAD_MARKS = " \t#=*_-~{}【】「」《》[]<>|:：)"
_OF_A_RESPONSE = re.compile(
    rf"(?P<starts>(?i:(?:the\s)?(?:start|begin(?:ning)?)(?:\sof)?\s|(?:text|words"
    rf"|transcript) of\s|以下是|开始\s?))?(?i:the\s)?"
    rf"(?:{NOUN}\s?[(（]?(?P<id>[AB12]|(?<=[(（])[ab])[)）]?|(?P<letter>[AB]))(?:['’]s|的)?"
    r"(?:\s?(?i:answer|response|output|reply|text|begins|starts|verbatim|\((?:full text|verbatim"
    r"|text)|回答|答案|原文|全文|内容|开始))?"
)
_BLANK_LINE = re.compile(r"\n[ \t]*\n")
# A paragraph that turns to the other response is the judge's again…
_OF_THE_OTHER = {
    winner: re.compile(rf"\n[ \t]*\n(?=[^\n]{{0,60}}{NOUN}\s?[(（]?[{ids}](?![A-Za-z0-9]))")
    for winner, ids in (("A", "B2b"), ("B", "A1a"))
}
# …unless its own view has a heading of its own.
_MINE = re.compile(r"\W{0,8}(?:my\b|我的)", re.IGNORECASE)
# Sections that each come to a verdict are what the responses say, or no verdict at all.
_DECIDES = re.compile(
    r"\[\[[ABC]|^\W{0,8}(?:winner|(?:final )?verdict|获胜者|最终判定)\W{0,4}[:：]"
    r"|\b(?:therefore|overall|thus|in conclusion)\b[^.\n]{0,40}\b(?:better|wins|best)\b",
    re.IGNORECASE | re.MULTILINE,
)


class _Heading(NamedTuple):
    start: int
    end: int
    response: str | None
    delimits: bool


def _sections(text: str) -> Iterator[QuotedSpan]:
    """What stands under a response's own heading, where it may be its words and not the judge's.

    Judges head what they say of each response with its name as well, and conclude after the second
    of them: of that one only the first paragraph is doubtful.
    """
    headings = _headings(text)
    before: set[str] = set()
    decided = False
    for number, heading in enumerate(headings):
        if heading.response is None:
            continue
        following = headings[number + 1] if number + 1 < len(headings) else None
        end = len(text) if following is None else following.start
        body = text[heading.end : end]
        closed = heading.delimits and following is not None and following.delimits
        if before - {heading.response} and not closed and not decided:
            blank = _BLANK_LINE.search(body, len(body) - len(body.lstrip()))
            alone = following is None and not heading.delimits
            end = heading.end + (blank.start() if blank else 0 if alone else len(body))
        elif not heading.delimits and (following is None or not _MINE.match(text, following.start)):
            own = _OF_THE_OTHER[heading.response].search(body)
            end = end if own is None else heading.end + own.start()
        decided = decided or _DECIDES.search(text, heading.end, end) is not None
        before.add(heading.response)
        yield QuotedSpan(heading.end, end, own=False)


def _headings(text: str) -> list[_Heading]:
    found: list[_Heading] = []
    at = 0
    lines = text.split("\n")
    for number, line in enumerate(lines):
        bare = line.strip()
        following = lines[number + 1] if number + 1 < len(lines) else ""
        # What is set off below a line is judged by that line.
        set_off = following.lstrip().startswith(("```", "~~~", ">"))
        if 0 < len(bare) <= 80 and not set_off:
            marked = _HEADS.match(bare)
            inner = bare.strip(_HEAD_MARKS)
            named = _OF_A_RESPONSE.fullmatch(inner)
            delimits = marked is not None and marked["delimits"] is not None
            # Under "## Verdict" a response's name is the verdict.
            above = found[-1] if found and not text[found[-1].end : at].strip() else None
            is_value = marked is None and above is not None and above.response is None
            if named and (named["id"] or named["starts"]) and not is_value and "[[" not in bare:
                response = letter(named["id"] or named["letter"])
                found.append(_Heading(at, at + len(line), response, delimits))
            elif marked and (bare[0] in "#=[<" or OWN.search(inner)):
                found.append(_Heading(at, at + len(line), None, delimits))
        at += len(line) + 1
    return found


def _theirs(text: str, block: QuotedSpan) -> bool:
    """Whether the line before a block, or what follows on its line, names its author."""
    before = text[max(0, block.start - _LONGEST_LEAD) : block.start].rstrip()
    line = before[before.rfind("\n") + 1 :]
    after = text[block.end : block.end + _LONGEST_LEAD].lstrip(" \t\"”'.,，。").split("\n", 1)[0]
    same_line = bool(after) and text[block.end : block.end + 1] not in ("", "\n")
    return (
        introduces(line, set_off=True)
        or ("[[" not in line and _OF_A_RESPONSE.fullmatch(line.strip(_HEAD_MARKS)) is not None)
        or (not line.endswith(_ENDED) and attributes(_lead(line, len(line))))
        or (same_line and attributes(after))
    )


def _announced(text: str, blocks: list[QuotedSpan]) -> Iterator[QuotedSpan]:
    """What follows "Response A says:" on its line, or the paragraph after a line that ends so."""
    starts = [block.start for block in blocks]
    at = 0
    announced = False
    begun = -1
    for line in [*text.split("\n"), ""]:
        blank = not line.strip()
        if begun >= 0 and blank:
            yield QuotedSpan(begun, min(at, len(text)), own=False)
            begun = -1
        elif announced and not blank:
            announced = False
            block = bisect_right(starts, at + len(line))
            begun = at if block == 0 or blocks[block - 1].end <= at else -1
        if begun < 0 and not blank:
            announced = introduces(line)
            spoken = next((m for m in _SAYS.finditer(line) if _speaks(line[: m.end()])), None)
            if spoken is not None:
                yield QuotedSpan(at + spoken.end(), at + len(line), own=False)
        at += len(line) + 1


def _speaks(lead: str) -> bool:
    return introduces(lead) and not _FIRST_PERSON.search(_lead(lead, len(lead)))


def introduces(line: str, *, set_off: bool = False) -> bool:
    """Whether a line announces words that are not the judge's own.

    Before words that are set off, in a fence or a block quote, naming their author is enough.
    """
    line = line[-_LONGEST_LEAD:].rstrip(' \t*_`"“')
    announces = _ANNOUNCES.search(line)
    if announces is None:
        return False
    plain = re.split(r"[.!?]\s|[。！？]", line.strip(" *_`#>"))[-1]
    if _FIRST_PERSON.search(plain) and not _FOREIGN.search(plain):
        return False
    below = announces["below"] or announces["next"]
    if one_response(plain) and (set_off or below or SPEECH.search(plain)):
        return True
    return _FOREIGN.search(plain) is not None


def one_response(line: str) -> bool:
    """Whether a line speaks of one of the responses, and not of both."""
    return len({response_of(match) for match in RESPONSE.finditer(line)}) == 1


def response_of(named: re.Match[str]) -> str:
    return letter(named[named.lastgroup or 0])


def foreign(text: str) -> bool:
    """Whether a text says of words that they are not the judge's."""
    return _FOREIGN.search(text[:_LONGEST_LEAD]) is not None


def attributes(lead: str) -> bool:
    """Whether a sentence speaks of what a response, or somebody who slipped it in, says."""
    lead = lead[-_LONGEST_LEAD:]
    if _FOREIGN.search(lead):
        return True
    return RESPONSE.search(lead) is not None and SPEECH.search(lead) is not None


# An opening mark, what it encloses, and its end. An apostrophe or the sign for inches is neither.
_QUOTATION = re.compile(
    rf"[“„][^“„”]{{1,{_LONGEST_QUOTATION}}}”|«[^«»]{{1,{_LONGEST_QUOTATION}}}»"
    rf"|「[^「」]{{1,{_LONGEST_QUOTATION}}}」|『[^『』]{{1,{_LONGEST_QUOTATION}}}』"
    rf"|`[^`]{{1,{_LONGEST_QUOTATION}}}`"
    rf"|(?<![A-Za-z0-9.!?)])(?:\"(?!\s)[^\"]{{1,{_LONGEST_QUOTATION}}}(?<!\s)\""
    # Shorter, as each apostrophe in it could be the end.
    r"|'(?!\s)(?:[^']|'(?=[A-Za-z0-9])){1,600}(?<!\s)'"
    r"|‘(?:[^‘’]|’(?=[A-Za-z0-9])){1,600}’)(?![A-Za-z0-9])"
)
# A mark that closes the answer is given, not quoted, whatever language puts it in quotation marks.
_ONE_MARK = re.compile(r"[\s*_]{0,3}\[\[[^\[\]\n]{1,12}\]\][\s*_.。]{0,3}")
_CLOSES_ANSWER = re.compile(r"[^\n\"“「]{0,40}\s{0,8}")
_ENDS_BOTH = re.compile(r"[\"”'’»」』`]\s+[A-Z*\[#]|[”」』\"]\s*$")


def _quotations(text: str) -> Iterator[QuotedSpan]:
    at = found = 0
    while (match := _QUOTATION.search(text, at)) is not None:
        # A quotation goes on over a blank line only where its author was named.
        if _BLANK_LINE.search(match[0]) and not attributes(_lead(text, match.start())):
            at = match.start() + 1
            continue
        at = match.end()
        found += 1
        if found > 8 * MOST_QUOTATIONS:
            raise TooManyQuotations
        if len(match[0]) > 3:
            yield from _foreign(text, QuotedSpan(*match.span(), own=False))


def _lead(text: str, at: int) -> str:
    """What stands before a place in its sentence."""
    return _SENTENCE.split(text[max(0, at - _LONGEST_LEAD) : at])[-1]


def _foreign(text: str, span: QuotedSpan) -> Iterator[QuotedSpan]:
    """The inside of a quotation that is not the judge's own; its marks stay where they are."""
    inside = text[span.start + 1 : span.end - 1]
    lead = _lead(text, span.start)
    tail = text[span.end : span.end + 160].split("\n", 1)[0]
    bare = not lead.strip(_EDGE) and not tail.strip(_EDGE + ".。")
    theirs = attributes(lead) and not _FIRST_PERSON.search(lead[-40:])
    closes = (
        _ONE_MARK.fullmatch(inside) is not None
        and _CLOSES_ANSWER.fullmatch(text, span.end) is not None
        and not lead.rstrip().endswith(("'s", "’s", "的"))
    )
    if not theirs and (bare or closes or _OWN_LEAD.search(lead)) and not attributes(tail):
        return
    end = span.end - 1
    if inside[-1:] in ".!?。！？" and _ENDS_BOTH.match(text[end : end + 8]):
        end -= 1  # it ends the judge's sentence too
    if end > span.start + 1:
        yield QuotedSpan(span.start + 1, end, own=False)


# "This line was copied from Response A", "(planted in Response A)", "So ends Response A".
_POINTS_BACK = re.compile(
    r"[\s.*_`\"”']{0,8}(?:[(（—–-]{0,2}\s?)?(?:\b(?:this|that|these|so|the (?:\w{1,12} )?above"
    r"|(?:planted|injected|inserted|copied|quoted|taken|from|by) (?!together))\b|以上|上面|这|出自"
    r"|来自)",
    re.IGNORECASE,
)
_RETRACTED = re.compile(
    r"[\s.*_`]{0,6}(?:correction|just kidding|scratch that|wait|sorry|更正|不对)\b[,:，：!.]?",
    re.IGNORECASE,
)


def disowned(after: str, winner: str) -> bool:
    """Whether what follows a verdict takes it back, or says of it that the response which it names
    wrote it."""
    if _RETRACTED.match(after):
        return True
    points = _POINTS_BACK.match(after)
    if points is None:
        return False
    sentence = re.split("[.!?。！？\n]", after[points.end() : points.end() + 120], maxsplit=1)[0]
    said = points[0] + sentence
    named = RESPONSE.search(said)
    theirs = named is not None and response_of(named) == winner and SPEECH.search(said) is not None
    return theirs or "its own" in said


# The sentence that an object stands in goes on after it.
_GOES_ON = re.compile(r"[`\"”'\s]{0,3}(?:[,，;；(（]|<-|[-–—←]\s|[a-z]|这|是|等|的)")


def is_mention(text: str, start: int, end: int) -> bool:
    """Whether an object that stands there is only spoken of, in its sentence or the line above."""
    before = text[max(0, start - 400) : start]
    line = before.rsplit("\n", 1)[-1]
    following = text[end : end + 200].split("\n", 1)[0]
    if _GOES_ON.match(following):
        if attributes(following) or RESPONSE.search(following):
            return True
        if line.strip(_EDGE + ",[]~") and not OWN.search(line):
            return True
    if not line.strip(_EDGE):
        above = before.rstrip().rsplit("\n", 1)[-1]
        return introduces(above, set_off=True) or (
            not above.endswith(_ENDED)
            and one_response(_lead(above, len(above)))
            and not OWN.search(above)
        )
    lead = _lead(line, len(line))
    if attributes(lead) or lead.rstrip().endswith("`"):
        return True
    return RESPONSE.search(lead) is not None and not OWN.search(lead)
