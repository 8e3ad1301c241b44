"""Answers of a few words: `Definitely B.`, `The latter is better.`, `A: 8, B: 6`.

Only where they are the whole answer: there nothing is quoted or weighed, so that forms count which
in a longer text would be guesses.
"""

from __future__ import annotations

import re

from evenhand.contract import Scores, Winner
from evenhand.judging.answers.protocols import NUMBERED, OUTPUT, read_class, read_outputs
from evenhand.judging.answers.results import FILLER, ParsedVerdict, ParseFailure
from evenhand.judging.answers.sentences import claims
from evenhand.judging.answers.vocabulary import NOUN, calls_by_number, winner_of

_LONGEST = 240
_END = r"[\s.!。！*_`]{0,6}"


def _who(group: str) -> str:
    """A response by name, by letter, or by its place where only two things were shown."""
    return (
        rf"(?:(?i:the\s)?[*_`\"]{{0,3}}(?:{NOUN}\s{{0,2}})?[(（]?(?P<{group}>[AB](?![A-Za-z0-9+#'’])"
        rf"|(?<=[(（])[ab](?=[)）])|(?i:(?:first|second)(?:\s(?:one|{NOUN}))?|former|latter)"
        rf"|第[一二](?:[个种份]?{NOUN}|[个种份])|前者|后者)[)）]?[*_`\"]{{0,3}})"
    )


_ADVERB = (
    r"(?:definitely|clearly|certainly|easily|surely|obviously|probably|overall|undoubtedly"
    r"|hands down"
    r"|slightly|much|far|really|显然|肯定|当然|无疑|明显|应该|一定)"
)
# Says of what follows that it is the judge's choice.
_OPENING = (
    r"(?:(?i:(?:so|therefore|thus|hence|in (?:sum|short|conclusion)|tl;?dr|and)[,:]?\s"
    rf"|{_ADVERB}[,\s]{{1,2}}|(?:it is|it['’]s)\s|(?:the winner is|my (?:answer|choice|pick"
    rf"|vote) is)[\s:….]{{1,6}}"
    r"|i(?:['’]d| would| will)?\s(?:say|vote(?: for)?|pick|choose|prefer|like|favou?r"
    r"|go(?:ing)? with"
    r"|rather have|lean to(?:wards)?)\s|going with\s|point to\s)"
    r"|(?:因此|所以|综上|总之)[，,]?|显然|肯定|当然|无疑|应该|是|我?(?:选择?|判|投|比较喜欢|更喜欢|认为|觉得)"
    r"|(?:优胜|胜|选择)[:：]\s?)"
)
_BETTER = (
    rf"(?:\s(?i:more|better|it is|for me|wins|(?:is|was)\s(?:{_ADVERB}\s){{0,2}}"
    r"(?:the\s)?(?:one|better|best|stronger|superior|winner|preferable)"
    r"(?:\s(?:one|of the two|response|answer))?)"
    r"|,?\s(?i:without (?:a )?doubt|hands down|by far|no question)"
    r"|\s?(?:更好|更优|更佳|更强|胜出|获胜|胜|赢了?|一票|较好|最好))"
)
_OVER = re.compile(
    rf"{_OPENING}{{0,2}}{_who('better')}(?:\s(?i:beats|over|wins over|is better than|>{{1,2}})\s"
    rf"|\s?>{{1,2}}\s?"
    rf"|\s?(?:优于|胜过|好于|比)\s?){_who('other')}(?P<by>\s?(?:更|要)?(?:好|优|强|佳))?{_END}"
)
_UNDER = re.compile(
    rf"{_OPENING}{{0,2}}{_who('worse')}(?:\s?<{{1,2}}\s?|\s?(?:不如|逊于|输给)\s?){_who('other')}{_END}"
)
_CHOSEN = re.compile(
    rf"(?P<opening>{_OPENING}{{0,3}}){_who('who')}{_BETTER}?"
    r"(?P<reason>(?:(?:[,，;]|\s[-–—])?\s?(?:(?i:because|since|as|due to)\b|因为|由于)"
    rf"|[:：]\s|\s[-–—]\s)[^?？\n]{{1,200}})?{_END}"
)
_LOST = re.compile(
    rf"(?:(?i:overall|therefore|so|总之|因此)[,，]?\s{{0,2}})?{_who('who')}"
    rf"(?:\s(?i:(?:is|was)\s(?:{_ADVERB}\s){{0,2}}(?:the\s)?(?:worse|inferior|weaker)"
    r"(?:\s(?:one|of the two(?:\s(?:responses|answers))?|response|answer))?|loses|lost)"
    r"|\s?(?:更差|较差|比较差|更弱|输了?"
    r"|不如另一个))"
    + _END
    + rf"|(?i:the (?:worse|weaker|inferior) (?:one|response|answer) is\s|the loser is\s)"
    rf"{_who('loser')}{_END}"
)
_TIED = re.compile(
    r"(?i:(?:overall|so|therefore|i (?:think|say))?[,\s]{0,2}(?:(?:they|both|the two)(?:['’]re"
    r"| are)?"
    rf"|(?:both|the two)\s{NOUN}s?\sare|it(?:['’]s| is))"
    r"\s(?:tied|equal|even|equivalent|equally good|the same)"
    rf"|neither(?:\s(?:one|{NOUN}|of them))?\sis better(?:\sthan the other)?"
    rf"|no winner[:,]?\s(?:a )?tie)" + _END
)


def _score(group: str, who: str) -> str:
    return (
        rf"[*_`\s]{{0,4}}(?:(?i:score|rating)s?\s?(?:of|for)?[\s:]{{1,2}})?(?:{NOUN}\s?)?{who}[*_`]{{0,3}}"
        rf"(?:['’]s\s(?:score|rating))?\s?(?:[:：=]|\s[-–—]|得|gets|is)\s?[*_`]{{0,3}}"
        rf"(?P<{group}>\d{{1,3}}(?:\.\d{{1,2}})?)(?:\s?/\s?(?P<{group}_of>\d{{1,3}})|\s?分)?[*_`]{{0,3}}"
    )


_SCORES = re.compile(
    rf"(?:(?i:scores?|ratings?)\s?[:：]|得分[:：]"
    rf"|评分[:：])?{_score('first', '[A1]')}[\s,;，；.]{{1,4}}(?:and\s)?"
    rf"{_score('second', '[B2]')}{_END}"
)


def _winner(who: str) -> Winner:
    low = who.casefold()
    return "A" if low in ("a", "前者") or low.startswith(("first", "former", "第一")) else "B"


def _other(winner: Winner) -> Winner:
    return "B" if winner == "A" else "A"


_MOST_WORDS = 12
# Chinese and Japanese write no spaces: two characters count as a word.
_CHARACTER = re.compile("[\u3040-\u30ff\u3400-\u9fff]")
_BOXED = re.compile(r"\$?\\boxed\{(?:\\text\{)?([^{}]{1,20})\}{1,2}\$?")


def few_words(text: str) -> bool:
    """Whether an answer is so short that a sentence in it is the verdict."""
    if len(text.strip()) > 2 * _LONGEST:
        return False
    spaced = _CHARACTER.sub(" ", text).replace(FILLER, " ").split()
    words = sum(any(character.isalnum() for character in word) for word in spaced)
    return words + len(_CHARACTER.findall(text)) / 2 <= _MOST_WORDS


def read_short(body: str) -> ParsedVerdict | ParseFailure | None:
    """What a short answer says in so many words; None where it may still be a sentence."""
    if body in ("1", "2", "3"):
        return read_class(body)
    boxed = _BOXED.fullmatch(body)
    winner = None if "[[" in body else winner_of(body if boxed is None else boxed[1])
    if winner is not None:
        return ParsedVerdict(winner)
    scored = _SCORES.fullmatch(body)
    if scored is not None and scored["first_of"] == scored["second_of"]:
        scores = Scores(a=float(scored["first"]), b=float(scored["second"]))
        return ParsedVerdict(
            "TIE" if scores.a == scores.b else "A" if scores.a > scores.b else "B",
            "scores",
            scores=scores,
        )
    if OUTPUT.search(body):
        return read_outputs(body)
    winner = None if "\n" in body else _said(body)
    if winner is not None:
        return ParsedVerdict(winner)
    if calls_by_number(body) or NUMBERED.search(body):
        by_class = read_class(body)
        return by_class if isinstance(by_class, ParsedVerdict) else None
    return None


def _said(line: str) -> Winner | None:
    if _TIED.fullmatch(line):
        return "TIE"
    lost = _LOST.fullmatch(line)
    if lost is not None:
        return _other(_winner(lost["who"] or lost["loser"]))
    over, under = _OVER.fullmatch(line), _UNDER.fullmatch(line)
    if over is not None:
        winner = _winner(over["better"])
        compared = "比" not in line or over["by"]
        return winner if compared and _winner(over["other"]) != winner else None
    if under is not None:
        winner = _winner(under["other"])
        return winner if _winner(under["worse"]) != winner else None
    chosen = _CHOSEN.fullmatch(line)
    if chosen is None:
        return None
    winner = _winner(chosen["who"])
    reason = chosen["reason"] or ""
    # "A because B", "B: wrong".
    if len(reason.split()) == 2 and len(reason.split()[1]) <= 2:
        return None
    if reason.lstrip()[:1] in (":", "：", "-", "–", "—"):
        return None
    return None if {claim.winner for claim in claims(reason)} - {winner} else winner
