"""Labelled lines in English and Chinese: `**Winner:** B`, `最终判定：平局`, `accuracy: A — …`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from evenhand.contract import Criterion, Winner
from evenhand.judging.answers.json_answer import confidence_of, keep_criterion, key_of
from evenhand.judging.answers.quotations import foreign
from evenhand.judging.answers.results import (
    LABEL,
    ParsedCriterion,
    ParsedVerdict,
    StatedVerdict,
    off_menu,
)
from evenhand.judging.answers.sentences import claims, stated
from evenhand.judging.answers.vocabulary import (
    NOUN,
    ORDINAL,
    OWN,
    RANKED,
    TIED_ZH,
    calls_by_number,
    letter,
    ranked_winner,
    winner_of,
)

_EMOJI = r"\u2600-\u27bf\u2b50\ufe0f\U0001f300-\U0001faff"
_DECORATION = (
    rf"[ \t\u3000>#*_`•|+=~{_EMOJI}-]{{0,24}}(?:\d{{1,2}}[.)、]\s{{0,2}})?[*_`\"“【\[<]{{0,4}}"
)
# Labels that name the better response, and nothing else.
_NAMES = (
    r"(?:(?i:choice|winner"
    r"|(?:better|best|stronger|preferred|selected|chosen|winning|superior)\s"
    r"(?:response|answer|output|option|assistant|model|candidate|one|choice)"
    r"|chosen|selected|preferred|better|best)"
    r"|获胜者|胜者|胜出者?|获胜方|胜方|赢家|优胜者|獲勝者|勝者"
    r"|(?:最佳|最好的?|更好的?|较好的?|更优的?|优选)(?:回答|响应|回复|答案|输出|助手|选择|选项|者))"
)
_LABEL = re.compile(
    rf"(?P<lead>{_DECORATION})(?:(?i:(?:my|the|so,?|therefore,?)\s)|我的){{0,2}}"
    r"(?P<final>(?i:final|overall)[\s_]|最[终終]的?|总体|整体|综合|最后的?)?"
    rf"(?:(?P<strong>(?P<names>{_NAMES})"
    r"|(?i:verdict|decision|judge?ment)|判定结果|判断结果|评判结果|判定|判断|裁决|裁定)"
    # Words that also open prose: only a verdict under them counts, never the lack of one.
    r"|(?P<open>(?i:conclusion|preference|pick|vote)|结论|結論|选择)"
    r"|(?P<whole>(?i:overall)|总体|整体|综合)"
    # Words that also label what a response answered.
    r"|(?P<weak>(?i:answer|result)|结果|答案))"
    r"(?P<close>[*_`\"”】\]>]{0,4})"
    r"(?P<colon>\s{0,2}[:：]|(?i:\sis\b)\s?[:：]?|(?:是|为)\s?[:：]?(?=\s?[^\s])"
    r"|\s{1,2}[-–—]{1,2}\s|——|\s{0,2}(?:={1,2}>?|->|[→⇒])|(?<=[】>]))?"
)
_VALUE_LEAD = r"[\s*_`\"'“‘(（\[【:：$]{0,24}(?:\\boxed\{(?:\\text\{)?)?"
_VALUE_END = r"[*_`\"'”’)）\]】}$]{0,6}"
_LETTER = re.compile(
    rf"{_VALUE_LEAD}(?:(?i:the\swinner\sis\s|i\s(?:choose|prefer|pick)\s|选择?))?(?i:the\s)?"
    rf"(?:(?:{NOUN}\s{{0,2}})?[*_`\"]{{0,2}}(?P<id>[ABab](?![A-Za-z0-9])|[(（][abAB][)）])"
    rf"|{NOUN}\s{{0,2}}[*_`\"]{{0,2}}(?P<number>[12](?![A-Za-z0-9]|\.\d))|{ORDINAL}){_VALUE_END}"
)
# A number alone is a response only where the label names one; 3 is a tie of numbered ones.
_DIGIT = re.compile(
    rf"{_VALUE_LEAD}(?P<digit>[123])(?![A-Za-z0-9/%]|\.\d|\s?(?:/|out\b)){_VALUE_END}"
)
_TIE = re.compile(
    rf"{_VALUE_LEAD}(?i:(?:it\sis|it's|it’s|this\sis)\s)?(?i:an?\s)?"
    r"(?:(?i:tie|draw|tied|equal)(?![A-Za-z])"
    rf"|(?:两者|二者|双方|两个(?:响应|回答|回复|答案))?(?:打成|判为)?{TIED_ZH})"
    rf"{_VALUE_END}"
)
_RANKED = re.compile(rf"{_VALUE_LEAD}{RANKED}{_VALUE_END}(?=\s{{0,3}}(?:$|[.。,，;；(（]))")
# What may follow a verdict: its end, a remark in brackets or its reason. "A or B", "A? no" and
# "A on style" take it back.
_FOLLOWS = re.compile(
    rf"\s{{0,3}}(?:$|[.。](?!\.)|[!！;；{_EMOJI}]|\|\s*$|={{2,8}}|</|[:：]?\s?\[\["
    r"|[(（][^()（）]{0,200}[)）][\s.。*_]*$|[,，]?\s?(?:[-–—]{1,2}\s)?"
    r"(?:(?i:because|since|as|due to|by|over|slightly|clearly|though only|not)\b|因为|由于)"
    r"[^,，?？]*$)"
)
# …and where the label names the better response and nothing else, more about it.
_FOLLOWS_NAME = re.compile(
    r"\s{0,3}(?:(?<=\s)-{1,3}\s|--|[—–:：]"
    r"|(?:[,，]\s?)?(?:(?i:because|since|as|due to|by|over|with|which|it|than|has|gives|offers"
    r"|provides|perform(?:s|ed)|for\s(?:the\s)?(?:following|these|reasons?|being|its|providing))\b"
    r"|(?i:is|was)\s(?!not\b|worse|inferior)|(?![更较]差|更弱)[更较最略稍胜优好是为因]|明显|显著"
    r"|总体))[^?？]*$"
)
_OFF_MENU = re.compile(
    rf"{_VALUE_LEAD}(?:(?i:both|neither|none|n/?a|unknown|unclear|undecided|null|either)"
    rf"|(?:{NOUN}\s?)?[(（]?[A-Za-z][)）]?|都好|无|两者都好|两者皆可|均可|未知|没有)"
    r"[*_`\"'”’)）\]】]{0,4}\s{0,2}(?:$|[.。,，;；(（])"
)
_CONFIDENCE = re.compile(
    rf"{_DECORATION}(?i:(?:my\s)?confidence(?:\s(?:score|level))?|置信度|信心度?|把握)"
    r"[*_`\"”】\]]{0,4}\s{0,2}[:：][\s*_`]{0,6}(?P<value>[\d.]{1,8})(?P<rest>[^\n]{0,20})"
)
_CRITERION_HEAD = re.compile(
    rf"{_DECORATION}(?:(?i:criterion|criteria)|标准|准则|评判标准"
    rf"|维度)?\s{{0,2}}\d{{0,2}}\s{{0,2}}[:：.]?\s{{0,2}}"
    r"(?P<name>[^\s:：*_`|>#~+=-][^:：\n]{0,79}?)[*_`\"”】\]]{0,4}\s{0,2}[:：]?[*_`]{0,4}\s{0,4}"
)
_NAMED = re.compile(
    rf"{_DECORATION}(?P<name>[^\s:：*_`|>#~+=-][^:：\n]{{0,79}}?)[*_`\"”】\]]{{0,4}}\s{{0,2}}[:：][*_`]{{0,4}}(?P<value>.*)"
)
_REASON = re.compile(
    rf"{_DECORATION}(?i:reason|reasons|reasoning|rationale|explanation|because|理由|原因|推理|说明)"
    r"[*_`\"”】\]]{0,4}\s{0,2}[:：][*_`]{0,4}\s{0,2}(?P<text>.*)"
)
_HEADING = re.compile(r"\s{0,3}(?:#{1,6}\s|\*\*[^*]{1,80}\*\*[:：]?\s*$|【)")
# A label may also follow a sentence on the same line: a final one anywhere, a plain one where
# nothing but the verdict follows.
_INLINE = re.compile(
    r"(?<=[.。!！;；，,])[*_ \t但而]{0,4}"
    r"(?:(?=(?P<final>(?i:(?:my\s)?(?:final|overall)\s(?:verdict|winner|decision|choice"
    r"|judge?ment))[ \t]?[:：]"
    r"|(?:我的)?(?:最终|总体|综合)(?:判定|判断|结论|裁决|获胜者|胜者|结果)[:：]))"
    r"|(?<=[.。!！;；*_ \t])(?=[*_]{0,3}(?:(?i:(?:my\s)?(?:verdict|decision|judge?ment)"
    r"|final\sanswer)" + rf"|(?i:my\s)?{_NAMES}|我的选择|判定|裁决)[*_]{{0,3}}[ \t]?[:：]))"
)


_STOPS = re.compile(r"(?<=[.;。；!！])(?!\w)")
_PROSE = re.compile(r"\s[a-z]|(?<=['’])s\s")
_LONGEST_LINE = 600


class Labelled(NamedTuple):
    """What the labelled lines say: overall statements in order, criteria, a confidence."""

    stated: list[StatedVerdict]
    criteria: tuple[ParsedCriterion, ...] = ()
    confidence: float | None = None
    flags: tuple[str, ...] = ()


class _Line(NamedTuple):
    start: int
    text: str


def _lines(text: str) -> list[_Line]:
    lines: list[_Line] = []
    start = 0
    for part in text.split("\n"):
        bare = part.lstrip(" \t")
        if bare and not bare.startswith(("```", "~~~")):
            at = _inline_label(part)
            if at:
                lines.append(_Line(start, part[:at][:_LONGEST_LINE].rstrip()))
            stated = _row(bare) if bare[0] == "|" else part[at : at + _LONGEST_LINE].rstrip()
            lines.append(_Line(start + at, stated))
        start += len(part) + 1
    return lines


def _row(line: str) -> str:
    """A table's row as a labelled line: its first cell, and the one verdict among the others."""
    label, *cells = [cell.strip(" \t*_`") for cell in line[:_LONGEST_LINE].strip(" \t|").split("|")]
    verdicts = [cell for cell in cells if winner_of(cell)]
    if len(verdicts) == 1:
        return f"{label}: {verdicts[0]}"
    return f"{label}: {cells[0]}" if len(cells) == 1 else ""


def _inline_label(line: str) -> int:
    """Where a label that follows a sentence begins; 0 where there is none of the judge's own."""
    at = 0
    for match in _INLINE.finditer(line[: 4 * _LONGEST_LINE]):
        before = line[: match.start()]
        if match["final"] is None:
            of_something = _NAMED.match(before) is not None and not _REASON.match(before)
            if of_something:
                continue
            if not _closes(line[match.end() :]):
                continue
        at = match.end()
    return at


def _closes(labelled_text: str) -> bool:
    """Whether a label's verdict is the last thing said on its line."""
    label = _LABEL.match(labelled_text)
    if label is None:
        return False
    value = value_of(labelled_text[label.end() :], digits="123" if label["names"] else "")
    if value is None or value[0] is None:
        return False
    rest = labelled_text[label.end() + value[1] :].strip(" \t.。!！*_`")
    return not rest or rest[0] in "(（"


def value_of(
    text: str, *, digits: str = "", names: bool = True
) -> tuple[Winner | None, int] | None:
    """The verdict that a value opens with, and where it ends; None where it opens with none.

    A winner of None is a value that names something off the menu. `digits` are the bare numbers
    that name one; `names` is set where nothing else could stand there.
    """
    ranked = _RANKED.match(text)
    if ranked is not None:
        return ranked_winner(ranked), ranked.end()
    match = _TIE.match(text) or _LETTER.match(text)
    if match is None and digits and (number := _DIGIT.match(text)) and number["digit"] in digits:
        match = number
    if match is None:
        off = _OFF_MENU.match(text)
        return None if off is None else (None, off.end())
    said = "" if match.re is _TIE else match[match.lastgroup or 0]
    winner: Winner = "TIE" if said in ("", "3") else letter(said)
    rest = text[match.end() :]
    follows = _FOLLOWS.match(rest) or (names and _FOLLOWS_NAME.match(rest))
    sentence = _STOPS.split(text, maxsplit=1)[0]
    own = (follows or stated(sentence) == winner) and not foreign(rest)
    if own and not {claim.winner for claim in claims(rest)} - {winner}:
        small = match.re is _LETTER and said in ("a", "b") and _PROSE.match(rest)
        return None if small else (winner, match.end())
    # "A careful reading …" and "Response A's answer …" are prose.
    prose = _PROSE.match(rest) or text[match.end() - 1] in "'’"
    return None if prose else (None, match.end())


def labelled(text: str, criteria: Sequence[Criterion]) -> Labelled:
    lines = _lines(text)
    wanted = {key_of(criterion.name): criterion.name for criterion in criteria}
    said: dict[str, ParsedCriterion] = {}
    flags: list[str] = []
    statements: list[StatedVerdict] = []
    confidence: float | None = None
    block: str | None = None
    overall_block = False
    digits = "123" if calls_by_number(text) else "12"
    for number, line in enumerate(lines):
        stated = _CONFIDENCE.match(line.text)
        if stated:
            rest = stated["rest"].strip(" *_`。.")
            clean = not rest or rest[0] in "(（,，—-" or rest.startswith("/1 ") or rest == "/1"
            confidence = confidence_of(stated["value"].rstrip(".")) if clean else None
            continue
        named = _criterion_line(line.text, wanted)
        if named is not None:
            key, ballot = named
            if ballot is None:
                block, overall_block = key, False
            else:
                keep_criterion(said, key, ballot, flags)
            continue
        label = _LABEL.match(line.text)
        if label is not None:
            statement = _statement(label, line, lines[number + 1 : number + 2], digits)
            if statement is not None:
                if block is not None and not statement.final:
                    keep_criterion(said, block, ParsedCriterion(statement.winner), flags)
                    continue
                if label["weak"] and (number < len(lines) - 1 or statements):
                    continue
                statement = statement._replace(final=statement.final or overall_block)
                statements.append(statement)
                block = None
                continue
        reason = _REASON.match(line.text)
        if reason is not None and block in said:
            said[block] = said[block]._replace(reasoning=reason["text"].strip())
        elif _HEADING.match(line.text):
            block = None
            overall_block = OWN.search(line.text) is not None
    ballots = tuple(said.get(key, ParsedCriterion()) for key in wanted)
    return Labelled(statements, ballots, confidence, tuple(flags))


def _statement(
    label: re.Match[str], line: _Line, following: Sequence[_Line], digits: str
) -> StatedVerdict | None:
    final = bool(label["whole"] or (label["final"] and not label["weak"]))
    value_text = line.text[label.end() :]
    heading = _HEADING.match(line.text) is not None
    if not value_text.strip(' *_`:：】]”"') and (heading or label["colon"] is not None):
        if not following:
            return None
        value_text, start = following[0].text, following[0].start
        if _LABEL.match(value_text):
            return None
    elif label["colon"] is None:
        return None
    else:
        start = line.start + label.start()
    names = label["names"] is not None
    marked = value_text.lstrip(" *_`\"':：").startswith("[[")
    value = None if marked else value_of(value_text, digits=digits if names else "", names=names)
    if value is None or (value[0] is None and not label["strong"]):
        return None
    said = f"{label[0].strip(' *_#>')} {value_text.strip()}"
    reading = off_menu(said) if value[0] is None else ParsedVerdict(value[0])
    return StatedVerdict(start, start + len(line.text), said, LABEL, reading, final)


def _criterion_line(line: str, wanted: dict[str, str]) -> tuple[str, ParsedCriterion | None] | None:
    """A line labelled with a criterion's name: its verdict, or None where only a block begins."""
    if not wanted:
        return None
    named = _NAMED.match(line)
    if named is not None and (key := key_of(named["name"])) in wanted:
        value = named["value"]
        if not value.strip(" *_`"):
            return key, None
        verdict = value_of(re.sub(r"^\s*(?i:winner|获胜者|胜者)\s?[:：]\s?", "", value))
        if verdict is None:
            return None
        winner, end = verdict
        reasoning = value[end:].strip(" \t*_`-—–:：.。,，")
        return key, ParsedCriterion(winner, reasoning)
    head = _CRITERION_HEAD.fullmatch(line)
    if head is not None and (key := key_of(head["name"])) in wanted:
        return key, None
    return None
