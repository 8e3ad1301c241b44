"""Whose words they are: a judge's text with everything that it only quotes blanked out, and
verdicts that the judge disowns.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from typing import NamedTuple

from evenhand.judging.answers.results import FILLER
from evenhand.judging.answers.vocabulary import NOUN, letter

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
    r"|(?:(?<=\b[Ii]n\s)|(?<=\bof\s)|(?<=\bby\s)|(?<=\b[Ff]rom\s))(?P<whose>[AB])(?![A-Za-z0-9'’+#])"
)
_SPEECH = re.compile(
    r"\b(?:contain|includ|embed|inject|quot|says?\b|said\b|saying\b|wrote\b|writ(?:es?|ing|ten)\b"
    r"|ends?\b|ending\b|closes?\b|closing (?:with|like|by|line|words?)|claims?\b|claiming\b"
    r"|states?\b"
    r"|stating\b|reads?\b|fake|forged|attempt|tries\b|tried\b|trying\b|tells?\b|told\b|instruct"
    r"|append|insert|smuggl|slips?\b|last (?:line|words?|sentence|paragraph)|carr(?:y|ies)\b"
    r"|holds?\b"
    r"|stands?\b"
    r"|adds?\b|added\b|appears?\b|argues?\b|asserts?\b|declares?\b|announces?\b|begs?\b|begins?\b"
    r"|asks?\b|orders?\b|demands?\b|urges?\b|concludes?\b|conclusion of|opens? with|starts? with"
    r"|goes\b"
    r"|plant|hidden|hides?\b|puts?\b|prints?\b|outputs? (?:the|a|an|this)\b|trick|steer|follows?:?$"
    r"|(?:text|words|transcript|bottom|foot|end) of\b|verbatim|has(?: the| this| these)?:?$"
    r"|(?:text|words"
    r"|wants me to \w{2,8}):?$|part of|from|inside"
    r"|found (?:in|at|near|under)"
    r"|following (?:text|lines?|words|passage|sentence|verdict)|in (?:the )?(?:text|body) of)"
    r"|包含|写着|写下|写了|写道|写的|声称|自称|引用|伪造|试图|企图|注入|植入|嵌入|结尾|末尾|最后"
    r"|开头|如下"
    r"|有一行|出现|附上|附有|宣称|要求|命令|说[:：]?$|里有|中有|中的|里的|其中|原文|以此|误导",
    re.IGNORECASE,
)
_OWN_WORD = re.compile(
    r"\b(?:my|i|we|our)\b(?! (?:noticed|saw|see|read|found|quote|ignore|disregard))|我(?!注意"
    r"|看到|发现|没有|不)",
    re.IGNORECASE,
)
# The judge announces its own verdict here.
_OWN_LEAD = re.compile(
    r"(?:\b(?:therefore|thus|hence|so|overall|ultimately|finally|consequently|in (?:conclusion"
    r"|summary|short)"
    r"|to (?:conclude|sum up)|(?:verdict|decision|conclusion|judge?ment|choice|answer|winner"
    r"|result|rating"
    r"|preference|pick|vote|option|better one)(?: (?:is|would be|should be|goes to|of|for))?"
    r"|(?:i|we)(?:'d| would| will| must| have to| can| therefore| thus| hence)*"
    r" (?:choose|pick|select|conclude|judge|decide|answer|declare|output|say|give|rate|vote"
    r"|go with|settle on))"
    r"(?: that| as| with| for| it| on| the| this| by saying){0,2}"
    r"|判定|结论|裁决|选择?|因此|所以|综上(?:所述)?|总之|最终|答案|判|获胜者|胜者)(?:是|为)?"
    r"[\s:：,，*_(（-]{0,6}$",
    re.IGNORECASE,
)
_FIRST_PERSON = re.compile(
    r"\bmy\b|(?<![a-z])i (?:\w+ )?(?:conclude|judge|choose|decide|answer|declare|give|rate|select"
    r"|pick)\b"
    r"|我(?:的|认为|选|判)",
    re.IGNORECASE,
)
_QUOTED_THING = re.compile(
    r"\b(?:injected|injection|fake|forged|quoted|planted|smuggled|hidden|embedded|manipulat\w+"
    r"|prompt injection"
    r"|its (?:own |last |final |closing )?(?:words?|text|line|sentence|verdict|ending)"
    r"|(?:the|this|that) (?:response|answer|output|author|text|other one) (?:itself )?"
    r"(?:says|claims|contains|includes|ends with|writes|wrote|reads|states|adds|tells|instructs"
    r"|asks|demands))\b"
    r"|注入|伪造|植入|嵌入|引用|引文|原文|它(?:写|说|声称|自称)",
    re.IGNORECASE,
)
_OWN_INTRO = re.compile(
    r"\b(?:final|here is|here's|verdict|conclude|decision)\b|最终|判定|结论", re.IGNORECASE
)
_SAYS = re.compile(
    r"(?:\b(?i:says?|said|writes?|wrote|reads?|states?|claims?|adds?|concludes?|with|is|was|this"
    r"|thus"
    r"|following)|(?:\b[AB12]|[(（][ab])[)）]?|\(verbatim\)|写道|写着|写下了?|写了|说|声称|宣称|是|如下"
    r"|内容)[*_]{0,2}\s?[:：][ \t*_]{1,4}(?=[^\s\"“「『‘'`<])"
    r"|(?:写道|写着|写下了?|写了|说|声称|宣称)[:：](?=[^\s\"“「『‘'`<])"
)
_SENTENCE = re.compile(r"[.!?;][\"')*_”]{0,4}\s|[。！？；]|\n")
_ENDED = (".", "!", "?", "。", "！", "？")
_EDGE = " \t*_`#>-•|"
# A line that stops in the middle of its sentence, before what somebody says.
_BREAKS_OFF = re.compile(
    r"(?:\b(?:(?:ends?|closes|opens|starts|begins) with|says|writes|wrote|reads|states|contains"
    r"|includes"
    r"|claims|adds)|写道|写着|写下了?|声称)$",
    re.IGNORECASE,
)
# Announces what stands on the lines after it, whatever it ends with.
_BELOW = re.compile(
    r"\b(?:lines?|text|mark|verdict|object|block|words|what|transcript|passage)"
    r"\s(?:(?:that|right|just)\s)?(?:below|follows?|comes next)\b|\bas follows\b|(?:以下"
    r"|下面)(?:是|这)",
    re.IGNORECASE,
)
_NOT_MINE = re.compile(
    r"\b(?:not (?:mine|my own|my (?:verdict|words|decision|judge?ment|choice))"
    r"|(?:wants|asks|tells|orders|begs) me to)\b|(?:不是|并非)我的?",
    re.IGNORECASE,
)
_INTRO_END = ' \t*_`"“'
_RUN = re.compile(r"`{3,}|~{3,}")
_INFO = re.compile(r"[ \t]*+[\w+#.-]{0,20}+[ \t]*+")
_TAGGED = re.compile(
    r"<(quote|blockquote|q|excerpt|cite|(?:response|answer|output|assistant"
    r"|candidate)[ _-]?[ab12])\b[^<>\n]{0,80}>"
    r"|<(response|answer|output|assistant|candidate|completion|text|model)"
    r"\s[^<>\n]{0,40}=\s?[\"']?(?:(?:response|assistant|model)[ _-]?)?[ab12][\"']?\s{0,3}>"
    r"|<!--",
    re.IGNORECASE,
)
_MARKS = re.compile("[\"“”„«»「」『』‘’'`]|\n[ \t]*\n")
_CLOSES = {"”": "“„", "»": "«", "」": "「", "』": "『", "’": "‘"}
# A name, a number or one word in quotation marks is part of the sentence that it stands in.
_NAME_ONLY = re.compile(
    rf"\s?(?:(?i:the\s)?{NOUN}\s?)?[(（]?[A-Za-z0-9]{{1,12}}[)）]?[.。,，]?\s?|平局|平手"
)


# A mark that closes the answer is given, not quoted, whatever language puts it in quotation marks.
_ONE_MARK = re.compile(r"[\s*_]{0,3}\[\[[^\[\]\n]{1,12}\]\][\s*_.。]{0,3}")
_CLOSES_ANSWER = re.compile(r"[^\n\"“「]{0,40}\s{0,8}")


class TooManyQuotations(Exception):
    """The text holds more quotations than a reading looks at."""


class _Budget:
    """How many more quotations are looked at; each costs a few patterns on its sentence."""

    def __init__(self) -> None:
        self.left = MOST_QUOTATIONS

    def spend(self) -> None:
        self.left -= 1
        if self.left < 0:
            raise TooManyQuotations


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
    return OwnWords(own, None, tuple(_merged(sorted([*quoted, middle]))))


def edges(text: str) -> str:
    """A text of absurd length without its middle: a verdict stands near one of the ends."""
    return text if len(text) <= HEAD + TAIL else f"{text[:HEAD]}\n{text[-TAIL:]}"


def _segmented(text: str) -> OwnWords:
    blocks = _merged(
        sorted([*_fences(text), *_quoted_lines(text), *_tagged(text), *_sections(text)])
    )
    budget = _Budget()
    spoken = [*_introduced(text, blocks, budget), *_spoken(text, budget)]
    blocks = _merged(sorted([*_owned(text, blocks, budget), *spoken]))
    outside = _blanked(text, blocks)
    quotations = [span for span in _quotations(outside, budget) if not span.own]
    spans = _merged(sorted([*blocks, *quotations]))
    own = _blanked(text, spans)
    closing = None
    last = next((span for span in reversed(blocks) if span.own), None)
    if last is not None and not own[last.end :].strip(" \t\n*_`" + FILLER):
        closing = _blanked(text, [span for span in spans if span != last])
    quoted = tuple(span for span in spans if not span.own)
    return OwnWords(own, closing, quoted)


def _blanked(text: str, spans: list[QuotedSpan]) -> str:
    if not spans:
        return text
    parts: list[str] = []
    at = 0
    for span in spans:
        parts.append(text[at : span.start])
        lines = text[span.start : span.end].split("\n")
        parts.append("\n".join(FILLER * len(line) for line in lines))
        at = span.end
    parts.append(text[at:])
    return "".join(parts)


def _merged(spans: list[QuotedSpan]) -> list[QuotedSpan]:
    """Without those inside another; somebody else's words in a block make it theirs."""
    kept: list[QuotedSpan] = []
    for span in spans:
        if kept and span.start < kept[-1].end:
            before = kept[-1]
            kept[-1] = QuotedSpan(before.start, max(before.end, span.end), before.own and span.own)
        else:
            kept.append(span)
    return kept


def _fences(text: str) -> Iterator[QuotedSpan]:
    """Code fences, also one that opens in the middle of a line; a lone mark opens none."""
    opened = 0
    mark = ""
    depth = 0
    for run in _RUN.finditer(text):
        line = text[max(0, run.start() - 200) : run.start()].rsplit("\n", 1)[-1]
        rest = text[run.end() : run.end() + 200].split("\n", 1)[0]
        opens_line = not line.strip(" \t>*-")
        if not depth:
            opened, mark, depth = run.start(), run[0], 1
        elif run[0][0] == mark[0] and len(run[0]) >= len(mark):
            if opens_line and rest.strip() and _INFO.fullmatch(rest):
                depth += 1
                continue
            depth -= 1
            if not depth:
                yield QuotedSpan(opened, run.end(), own=True)


def _quoted_lines(text: str) -> Iterator[QuotedSpan]:
    start = -1
    at = 0
    for line in text.split("\n"):
        if line.lstrip(" \t")[:1] == ">":
            start = at if start < 0 else start
        elif start >= 0:
            yield QuotedSpan(start, at - 1, own=True)
            start = -1
        at += len(line) + 1
    if start >= 0:
        yield QuotedSpan(start, len(text), own=True)


def _tagged(text: str) -> Iterator[QuotedSpan]:
    at = 0
    lower = text.lower() if "<" in text else ""
    missing: set[str] = set()
    while (match := _TAGGED.search(text, at)) is not None:
        name = match[1] or match[2]
        closer = "-->" if name is None else f"</{name.lower()}"
        end = (
            -1 if closer in missing or len(lower) != len(text) else lower.find(closer, match.end())
        )
        if end < 0:
            missing.add(closer)
            at = match.end()
            if match[2] is not None:
                yield QuotedSpan(match.start(), len(text), own=False)
            continue
        at = end + len(closer)
        yield QuotedSpan(match.start(), at, own=False)


class _Heading(NamedTuple):
    start: int
    end: int
    response: str | None
    delimits: bool


# "## Response A", "**Response A:**", "=== Response A ===", "[The Start of Assistant A's Answer]".
_HEADS = re.compile(
    r"(?P<delimits>={2,}|-{2,80}+[^-]|\[(?!\[|[AB12]\])|<\||<{2,})|#{1,6}\s|\*\*[^*]{1,80}\*\*[:：]?$|[【「《]|[^:：]{1,60}[:：]\*{0,2}$"
)
_HEAD_MARKS = " \t#=*_-~{}【】「」《》[]<>|:：)"
_NUMBERED = re.compile(r"^\(?\d{1,2}[.)、]\s?")
_UNDERLINE = re.compile(r"(?:-{3,}|={3,})\s*")
_OF_A_RESPONSE = re.compile(
    rf"(?P<starts>(?i:(?:the\s)?(?:start|begin(?:ning)?)(?:\sof)?\s|(?:text|words"
    rf"|transcript) of\s|以下是|开始\s?))?(?i:the\s)?"
    rf"(?:{NOUN}\s?[(（]?(?P<id>[AB12]|(?<=[(（])[ab])[)）]?|(?P<letter>[AB]))(?:['’]s|的)?"
    r"(?:\s?(?i:answer|response|output|reply|text|begins|starts|verbatim|\((?:full text|verbatim"
    r"|text)|回答|答案|原文|全文|内容|开始))?"
)
_ENDS_SECTION = re.compile(
    r"\b(?:verdict|conclu\w+|final|overall|decision|winner|judge?ment|compar\w+|analysis|summary"
    r"|evaluation|assessment|my|end)\b|判|结论|最终|总|综|比较|对比|分析|评|结束",
    re.IGNORECASE,
)


_BLANK_LINE = re.compile(r"\n[ \t]*\n")
# A paragraph that turns to the other response is the judge's again.
_OF_THE_OTHER = {
    winner: re.compile(rf"\n[ \t]*\n(?=[^\n]{{0,60}}{NOUN}\s?[(（]?[{ids}](?![A-Za-z0-9]))")
    for winner, ids in (("A", "B2b"), ("B", "A1a"))
}
# Where the judge's own view has its heading, what comes before is not that.
_MINE = re.compile(r"\W{0,8}(?:my\b|我的)", re.IGNORECASE)
# Sections that each come to a verdict are what the responses say, or no verdict at all.
_DECIDES = re.compile(
    r"\[\[[ABC]|^\W{0,8}(?:winner|(?:final )?verdict|获胜者|最终判定)\W{0,4}[:：]"
    r"|\b(?:therefore|overall|thus|in conclusion)\b[^.\n]{0,40}\b(?:better|wins|best)\b",
    re.IGNORECASE | re.MULTILINE,
)


# Where a heading is followed by a fence, that fence is what it heads.
_FENCE_FIRST = re.compile(
    r"\A\s*+(?P<fence>`{3,8}|~{3,8})[^\n]*\n(?:(?!\s{0,8}(?P=fence))[^\n]*\n)*\s{0,8}(?P=fence)[^\n]*"
)


def _sections(text: str) -> Iterator[QuotedSpan]:
    """What stands under a response's own heading, where it may be its words and not the judge's.

    Judges head what they say of each response with its name as well, and conclude after the second
    of them: of that one only the first paragraph is doubtful.
    """
    headings = _headings(text)
    lone = {heading.response for heading in headings if heading.response in ("A?", "B?")}
    if len(lone) == 1:
        headings = [heading for heading in headings if heading.response not in lone]
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
            alone = blank is None and following is None and not heading.delimits
            end = heading.end + (0 if alone else blank.start() if blank else len(body))
        elif not heading.delimits and (fence := _FENCE_FIRST.match(body)) is not None:
            end = heading.end + fence.end()
        elif not heading.delimits and (following is None or not _MINE.match(text, following.start)):
            own = _OF_THE_OTHER[heading.response[0]].search(body)
            end = end if own is None else heading.end + own.start()
        decided = decided or _DECIDES.search(text, heading.end, end) is not None
        before.add(heading.response)
        if end > heading.end:
            yield QuotedSpan(heading.end, end, own=False)


def _headings(text: str) -> list[_Heading]:
    found: list[_Heading] = []
    at = 0
    lines = text.split("\n")
    for number, line in enumerate(lines):
        bare = line.strip()
        following = lines[number + 1] if number + 1 < len(lines) else ""
        if _UNDERLINE.fullmatch(bare):
            bare = ""
        marked = _HEADS.match(bare) if 0 < len(bare) <= 80 else None
        underlined = 0 < len(bare) <= 40 and _UNDERLINE.fullmatch(following) is not None
        inner = _NUMBERED.sub("", bare).strip(_HEAD_MARKS) if len(bare) <= 80 else ""
        named = _OF_A_RESPONSE.fullmatch(inner)
        if marked is not None or underlined or (named is not None and "[[" not in bare):
            delimits = marked is not None and marked["delimits"] is not None
            if named is not None:
                response: str = letter(named["id"] or named["letter"])
                if named["letter"] and not named["starts"]:
                    response = f"{response}?"
                found.append(_Heading(at, at + len(line), response, delimits))
            elif bare[0] in "#=[<" or (inner and _ENDS_SECTION.search(inner)):
                found.append(_Heading(at, at + len(line), None, delimits))
        at += len(line) + 1
    return found


def _owned(text: str, blocks: list[QuotedSpan], budget: _Budget) -> Iterator[QuotedSpan]:
    """The blocks, each with what the line before it says of its author."""
    for block in blocks:
        budget.spend()
        yield block._replace(own=block.own and not _theirs(text, block))


def _theirs(text: str, block: QuotedSpan) -> bool:
    before = text[max(0, block.start - _LONGEST_LEAD) : block.start].rstrip()
    line = before[before.rfind("\n") + 1 :]
    after = text[block.end : block.end + _LONGEST_LEAD].lstrip(" \t\"”'.,，。").split("\n", 1)[0]
    same_line = bool(after) and text[block.end : block.end + 1] not in ("", "\n")
    return (
        introduces(line, set_off=True)
        or _OF_A_RESPONSE.fullmatch(line.strip(_HEAD_MARKS)) is not None
        or (not line.endswith(_ENDED) and attributes(line[-_LONGEST_LEAD:]))
        or (same_line and attributes(after))
    )


def _introduced(text: str, blocks: list[QuotedSpan], budget: _Budget) -> Iterator[QuotedSpan]:
    """The paragraph after a line that announces somebody's words."""
    starts = [block.start for block in blocks]
    at = 0
    announced = False
    begun = -1
    for line in text.split("\n"):
        blank = not line.strip()
        if begun >= 0 and blank:
            yield QuotedSpan(begun, at, own=False)
            begun = -1
        elif announced and not blank:
            announced = False
            block = bisect_right(starts, at + len(line))
            inside = block > 0 and blocks[block - 1].end > at
            begun = -1 if inside else at
        if begun < 0 and not blank:
            announced = introduces(line)
            if announced:
                budget.spend()
        at += len(line) + 1
    if begun >= 0:
        yield QuotedSpan(begun, len(text), own=False)


def _spoken(text: str, budget: _Budget) -> Iterator[QuotedSpan]:
    """What follows on the line after "Response A says:" without a quotation mark."""
    end = 0
    for match in _SAYS.finditer(text):
        if match.start() < end:
            continue
        budget.spend()
        lead = _lead(text, match.start()) + match[0]
        if introduces(lead) and not _FIRST_PERSON.search(lead):
            end = text.find("\n", match.end())
            end = len(text) if end < 0 else end
            yield QuotedSpan(match.end(), end, own=False)


def introduces(line: str, *, set_off: bool = False) -> bool:
    """Whether a line announces words that are not the judge's own.

    Before words that are set off, in a fence or a block quote, naming their author is enough.
    """
    line = line[-_LONGEST_LEAD:].rstrip(_INTRO_END)
    below = _BELOW.search(line)
    if not line.endswith((":", "：")) and not _BREAKS_OFF.search(line) and below is None:
        return False
    plain = re.split(r"[.!?]\s|[。！？]", line.strip(" *_`#>"))[-1]
    if _NOT_MINE.search(plain):
        return True
    if _FIRST_PERSON.search(plain):
        return False
    if below is not None and one_response(plain):
        return True
    if one_response(plain) and (set_off or _SPEECH.search(plain)):
        return True
    return _QUOTED_THING.search(plain) is not None and _OWN_INTRO.search(plain) is None


def one_response(line: str) -> bool:
    """Whether a line speaks of one of the responses, and not of both."""
    return len({response_of(match) for match in RESPONSE.finditer(line)}) == 1


def response_of(named: re.Match[str]) -> str:
    return letter(named[named.lastgroup or 0])


def attributes(lead: str) -> bool:
    """Whether a sentence speaks of what a response, or somebody who slipped it in, says."""
    if _QUOTED_THING.search(lead):
        return True
    return RESPONSE.search(lead) is not None and _SPEECH.search(lead) is not None


def _quotations(text: str, budget: _Budget) -> Iterator[QuotedSpan]:
    """Pairs of quotation marks and what stands between them, outermost first."""
    found: list[QuotedSpan] = []
    opened: list[tuple[str, int, bool]] = []
    for match in _MARKS.finditer(text):
        mark, at = match[0][0], match.start()
        if mark == "\n":
            # A quotation goes on over a blank line only where its author was named.
            kept = []
            for opener, start, announced in opened[-8:]:
                if not announced:
                    budget.spend()
                if announced or attributes(_lead(text, start)):
                    kept.append((opener, start, True))
            opened = kept
            continue
        before = text[at - 1] if at else "\n"
        after = text[at + 1] if at + 1 < len(text) else "\n"
        opens, closes = _sides(mark, before, after)
        openers = _CLOSES.get(mark, mark)
        place = _last(opened, openers) if closes else -1
        if place >= 0:
            start = opened[place][1]
            del opened[place:]
            if at - start <= _LONGEST_QUOTATION:
                found.append(QuotedSpan(start, at + 1, own=False))
        elif opens:
            opened.append((mark, at, False))
            if len(opened) > 64:
                del opened[0]
    for span in _merged(sorted(found)):
        if span.end - span.start > 3:
            budget.spend()
            yield from _judged(text, span)


def _last(opened: list[tuple[str, int, bool]], openers: str) -> int:
    for place in range(len(opened) - 1, -1, -1):
        if opened[place][0] in openers:
            return place
    return -1


def _sides(mark: str, before: str, after: str) -> tuple[bool, bool]:
    """Whether a mark can open a quotation here, and whether it can close one."""
    if mark in "“„«「『":
        return True, False
    if mark in "”»」』":
        return False, True
    if mark == "`":
        return True, True
    if mark == "‘":
        return not before.isalnum() or ord(before) > 0x2E7F, False
    if mark == "’":
        return False, not (after.isalnum() and after.isascii())
    wide = ord(before) > 0x2E7F
    opens = (not before.isalnum() or wide) and before not in ".!?)" and not after.isspace()
    closes = not before.isspace() and not (after.isalnum() and ord(after) <= 0x2E7F)
    return opens, closes


def _lead(text: str, at: int) -> str:
    """What stands before a place in its sentence."""
    before = text[max(0, at - _LONGEST_LEAD) : at]
    ends = [match.end() for match in _SENTENCE.finditer(before)]
    return before[ends[-1] :] if ends else before


def _judged(text: str, span: QuotedSpan) -> Iterator[QuotedSpan]:
    """The inside of a quotation that is not the judge's own; its marks stay where they are."""
    inside = text[span.start + 1 : span.end - 1]
    if len(inside) <= 40 and _NAME_ONLY.fullmatch(inside):
        return
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
    if inside[-1:] in ".!?。！？" and re.match(
        r"[\"”'’»」』`]\s+[A-Z*\[#]|[”」』\"]\s*$", text[end : end + 8]
    ):
        end -= 1  # it ends the judge's sentence too
    if end > span.start + 1:
        yield QuotedSpan(span.start + 1, end, own=False)


# "This line was copied from Response A", "(planted in Response A)", "So ends Response A".
_DISOWNS = re.compile(
    r"(?i:\b(?:this|that|these|the)(?:\s(?:above|quoted|preceding))?"
    r"(?:\s(?:line|text|mark|object|block|sentence|verdict|string|words?|json))?(?:\sabove)?"
    r"\s(?:is|was|were|are|comes|came|stands|appears)\s(?:how|from"
    r"|(?:copied|taken|planted|injected|inserted|quoted|written|found)\s(?:from|in|into|at|by)"
    r"|the\s(?:text|tail|end|(?:closing|last|final)\s\w{1,12})\s(?:of|in))\b"
    r"|\bso\s(?:ends|says|writes|claims|much\sfor)\b"
    r"|[(（—–]\s?(?:planted|injected|inserted|copied|quoted|taken)\s(?:from|in|into|at|by)\b)"
    r"|(?:以上|上面|这)[^，。\n]{0,8}?(?:出自|来自|引自|摘自)|(?:以上|上面|这)[句行]?是"
)
# A verdict that somebody else signs, or that the judge takes back.
_SIGNED = re.compile(
    rf"[\s.*_`\"”']{{0,6}}(?:[—–-]{{1,2}}\s?|[(（]?(?i:from|of|by|in|出自|来自)\s?){NOUN}\s?(?P<id>[AB12])"
    r"[)）]?[\s.。]{0,4}(?:\n|$)"
)
_RETRACTED = re.compile(
    r"[\s.*_`]{0,6}(?:correction|just kidding|scratch that|wait|sorry|更正|不对)\b[,:，：!.]?",
    re.IGNORECASE,
)
_ITS_OWN = re.compile(r"\b(?i:its own)\b")
_OF_THE_END = re.compile(
    r"\s?(?:自己|的?(?:结尾|末尾|原话|原文)|(?:ends|ended|closes|closed|begins|began|put)\b)"
)


def disowned(text: str, end: int, winner: str) -> bool:
    """Whether the judge says of a verdict that ends there that the response it names wrote it."""
    if _RETRACTED.match(text, end):
        return True
    signed = _SIGNED.match(text, end)
    if signed is not None and letter(signed["id"]) == winner:
        return True
    for match in _DISOWNS.finditer(text[: end + 200]):
        if match.start() > end + 8:
            break
        sentence = re.split("[.!?。！？\n]", text[match.end() : match.end() + 80], maxsplit=1)[0]
        if _ITS_OWN.search(sentence):
            return True
        named = RESPONSE.search(sentence)
        if named is None or response_of(named) != winner:
            continue
        # "This is how Response A wins" and "这是响应 A 的优点" disown nothing.
        if not match[0].endswith(("how", "是")) or _OF_THE_END.match(sentence, named.end()):
            return True
    return False
