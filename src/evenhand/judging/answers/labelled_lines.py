"""Labelled lines in English and Chinese: `**Winner:** B`, `最终判定：平局`, `accuracy: A — …`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from evenhand.contract import Criterion, Winner
from evenhand.judging.answers.json_answer import confidence_of, key_of
from evenhand.judging.answers.quotations import attributes
from evenhand.judging.answers.results import ParsedCriterion, Statement, shown
from evenhand.judging.answers.sentences import claims
from evenhand.judging.answers.vocabulary import (
    NOUN,
    ORDINAL,
    RANKED,
    calls_by_number,
    letter,
    ranked_winner,
    winner_of,
)
from evenhand.messages import Message

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
    r"|(?:两者|二者|双方)?(?:打成|判为)?(?:平局|平手|打平|持平|不分胜负))"
    rf"{_VALUE_END}"
)
_RANKED = re.compile(rf"{_VALUE_LEAD}{RANKED}{_VALUE_END}(?=\s{{0,3}}(?:$|[.。,，;；(（]))")
# What may follow a label without taking it back: "A or B", "A? no" and "A on style" may not.
_FOLLOWS = re.compile(
    rf"\s{{0,3}}(?:$|\[\[|[.。!！;；—–(（|~{_EMOJI}]|(?<=\s)-{{1,3}}(?=\s)|--|={{2,8}}|[,，:：]|</"
    r"|(?i:is|was|wins|won|because|since|as|due|by|over|with|slightly|clearly|performs|performed"
    r"|provides"
    r"|than|has|gives|offers|for\s(?:the\s)?(?:following|these|reasons?|being|its|providing))\b"
    r"|(?:更|较|最|略|稍|明显|显著|胜|获胜|优|好|是|为|因|，|在|总体|整体|综合))"
)
_TAKEN_BACK = re.compile(
    r"\s{0,3}(?:[,，/&、|…]|\.{2,6})?\s{0,2}(?:(?i:or|and|vs\.?|versus)\b|或|和|与|/|&"
    r"|[(（][ABab][)）]|[ABab][)）]?(?![A-Za-z0-9'’]))"
    # A small lead takes nothing back.
    r"|\s{0,3}(?:is|was)\s(?:not|n't|worse|inferior)|\s{0,3}[,，.;；]?\s{0,3}(?i:but|however"
    r"|though)\b(?!\s(?i:only\s|just\s|not\s)?(?i:by|slightly|barely|narrowly|marginally)\b)"
    r"|[^?？\n]{0,40}[?？]"
    r"|\s{0,3}(?:在|不|更差|较差|更弱)",
)
_NOT_OWN = re.compile(
    r"\b(?:(?:quoted|copied|taken) from|is what"
    r"|as (?:\w+ )?(?:requested|instructed|demanded|told) by)\b"
    r"|^,\s(?:says|said|claims|claimed)\b|^[,\s(]{0,3}(?:according to|as .{1,30}? puts? it)\b"
    r"|^\s{0,2}[-–—]{1,2}\s?no\b|引自|摘自|抄自",
    re.IGNORECASE,
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
_OVERALL = re.compile(
    r"\b(?:overall|final|conclusion|verdict|summary|decision)\b|总体|最终|结论|综合|整体|总结|判定",
    re.IGNORECASE,
)
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
# Somebody's words that no quotation mark closes: what follows may be theirs as well.
_OPEN_SPEECH = re.compile(r"[:：]\s{0,2}[^\s\"“「『'‘`<\[{]")


def _but(other: str) -> re.Pattern[str]:
    return re.compile(
        r"(?:\b(?i:but|however|although|yet)\b|但|然而|不过).{0,60}?"
        rf"(?<![A-Za-z])[{other}]\s?(?i:is|wins|was|更|胜)"
        rf"|[,，;；+]\s{{0,2}}(?i:and\s)?{NOUN}\s?[{other}]\s{{0,2}}(?:[(（.,;，；]|$)"
    )


def _named(ids: str) -> re.Pattern[str]:
    return re.compile(
        rf"{NOUN}\s?[(（]?[{ids}](?![A-Za-z0-9])|(?<![A-Za-z0-9])[{ids[0]}](?![A-Za-z0-9])"
    )


_SENTENCE_FOLLOWS = re.compile(
    r"\s{0,3}(?:(?i:is|was|has|gives|offers|provides|perform(?:s|ed))\b|[是为在更较最])"
)
_FAULT = re.compile(
    r"\b(?:wrong(?:ly)?|incorrect(?:ly)?|inaccura\w{1,5}|fail(?:s|ed|ures?)?|los(?:es?|t|ing)|worse"
    r"|worst|errors?|erroneous|mistak\w{1,4}|harm(?:s|ful)?|mislead\w{0,5}|hallucinat\w{1,5}"
    r"|confus\w{1,5}|inferior|weak(?:er|est)?|false|fabricat\w{1,5}|nonsens\w{1,5}|unhelpful"
    r"|irrelevan\w{1,4}|flaw(?:s|ed)|poor(?:ly|er)?|bad(?:ly)?|lack(?:s|ing)|rejected|verbose"
    r"|repetitive|unsafe|incomplete|dangerous|broken|vague)(?![\w-])"
    r"|[差错败误劣谬]|输(?!出)|幻觉|啰嗦|冗长|冗余|不足|有害|危险|捏造|淘汰|弱",
    re.IGNORECASE,
)
# A fault that is lacking, mended or found: "no errors", "fewer mistakes", "corrects the error".
_NOT_ITS_FAULT = re.compile(
    r"\b(?:no|not|never|without|fewer|less|least|avoid\w{0,3}|free|fix\w{0,3}|correct\w{0,4}"
    r"|catch\w{0,3}|points? out|identif\w{1,5}|minor|despite|although|though|while|even|unlike"
    r"|than|whereas|other)\b|n['’]t\b|[不没无未非少避]|纠正|修正|指出|虽|尽管|另",
    re.IGNORECASE,
)
_BUT_THE_OTHER: dict[Winner, re.Pattern[str]] = {"A": _but("B"), "B": _but("A"), "TIE": _but("AB")}
_OTHER: dict[Winner, re.Pattern[str]] = {"A": _named("B2"), "B": _named("A1")}
_STOPS = re.compile(r"[.;。；!！](?!\w)")
_LONGEST_LINE = 600


@dataclass(frozen=True, slots=True)
class Labelled:
    """What the labelled lines say: overall statements in order, criteria, a confidence."""

    statements: list[Statement]
    criteria: tuple[ParsedCriterion, ...]
    confidence: float | None
    flags: tuple[str, ...]


NO_LINES = Labelled([], (), None, ())


@dataclass(frozen=True, slots=True)
class _Line:
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
            if of_something or (attributes(before) and _OPEN_SPEECH.search(before)):
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


def value_of(text: str, *, digits: str = "") -> tuple[Winner | None, int] | None:
    """The verdict that a value opens with, and where it ends; None where it opens with none.

    A winner of None is a value that names something off the menu. `digits` are the bare numbers
    that name one.
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
    rest = text[match.end() :]
    if _TAKEN_BACK.match(rest) or _NOT_OWN.search(rest[:200]):
        return None, match.end()
    if not _FOLLOWS.match(rest):
        # "A careful reading …" and "Response A's answer …" are prose.
        prose = re.match(r"\s[a-z]|(?<=['’])s\s", rest) or text[match.end() - 1] in "'’"
        return None if prose else (None, match.end())
    if match.re is _LETTER and match["id"] in ("a", "b") and re.match(r"\s{1,3}[a-z]", rest):
        return None
    said = "" if match.re is _TIE else match[match.lastgroup or 0]
    winner: Winner = "TIE" if said in ("", "3") else letter(said)
    return winner, match.end()


def labelled(text: str, criteria: Sequence[Criterion]) -> Labelled:
    lines = _lines(text)
    wanted = {key_of(criterion.name): criterion.name for criterion in criteria}
    said: dict[str, ParsedCriterion] = {}
    flags: list[str] = []
    statements: list[Statement] = []
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
                said.setdefault(key, ParsedCriterion())
            else:
                _keep(said, key, ballot, wanted[key], flags)
            continue
        label = _LABEL.match(line.text)
        if label is not None:
            statement = _statement(label, line, lines[number + 1 : number + 2], digits)
            if statement is not None:
                own = not statement.final
                if block is not None and own:
                    ballot = ParsedCriterion(statement.winner)
                    _keep(said, block, ballot, wanted[block], flags)
                    continue
                if label["weak"] and (number < len(lines) - 1 or statements):
                    continue
                if overall_block and not statement.final:
                    statement = Statement(
                        *(statement.start, statement.end, statement.winner, statement.text),
                        *("evenhand", True),
                    )
                statements.append(statement)
                block = None
                continue
        reason = _REASON.match(line.text)
        if reason is not None and block is not None:
            said[block] = said[block]._replace(reasoning=reason["text"].strip())
        elif _HEADING.match(line.text):
            block = None
            overall_block = _OVERALL.search(line.text) is not None
    ballots = tuple(said.get(key, ParsedCriterion()) for key in wanted)
    return Labelled(statements, ballots, confidence, tuple(flags))


def _statement(
    label: re.Match[str], line: _Line, following: Sequence[_Line], digits: str
) -> Statement | None:
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
    marked = value_text.lstrip(" *_`\"':：").startswith("[[")
    value = None if marked else value_of(value_text, digits=digits if label["names"] else "")
    if value is None:
        return None
    winner, end = value
    if winner is None and not label["strong"]:
        return None
    if winner is not None and not label["names"] and not _supported(winner, value_text, end):
        return None
    if winner is not None:
        others = {claim.winner for claim in claims(value_text[end:])} - {winner}
        if others or _BUT_THE_OTHER[winner].search(value_text, end):
            winner = None
    said = f"{label[0].strip(' *_#>')} {value_text.strip()}"
    return Statement(start, start + len(line.text), winner, said, "evenhand", final)


def _supported(winner: Winner, value: str, end: int) -> bool:
    """Whether the sentence that goes on after a response's name makes it the better one, or may
    be left aside: "because …", "(fewer errors)"."""
    rest = value[end:]
    if any(claim.winner == winner for claim in claims(value)):
        return True
    said = _STOPS.split(rest, maxsplit=1)[0]
    fault = _FAULT.search(said)
    if winner != "TIE" and fault is not None and not _NOT_ITS_FAULT.search(said, 0, fault.start()):
        # "due to errors in B" is the other's fault, "(wrong), B (right)" is not.
        other = _OTHER[winner].search(said)
        if other is None or other.start() <= fault.start():
            return other is not None and other.start() < fault.start()
        return not re.search("[,，;；、)）]", said[fault.end() : other.start()])
    return _SENTENCE_FOLLOWS.match(rest) is None


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


def _keep(
    said: dict[str, ParsedCriterion],
    key: str,
    ballot: ParsedCriterion,
    name: str,
    flags: list[str],
) -> None:
    before = said.get(key)
    if before is not None and before.winner is not None and before.winner != ballot.winner:
        flags.append(Message("unread.criterion_judged_twice_differently_2", name=shown(name, 40)))
        said[key] = before._replace(winner=None)
    elif before is None or before.winner is None:
        said[key] = ballot
