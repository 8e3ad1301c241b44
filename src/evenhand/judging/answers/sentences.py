"""Verdicts stated in sentences. They decide a short answer, or one whose protocol was named, and
contradict a verdict before them.

Only a sentence that is a verdict from end to end counts: a lead that the judge concludes by, one
response, and that it is better. What is negated, hypothetical, limited to an aspect or somebody
else's says more than that, and so is none.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple

from evenhand.contract import Winner
from evenhand.judging.answers.vocabulary import (
    BETTER_ZH,
    NOUN,
    TIED_ZH,
    letter,
    winner_of,
)

_ADVERB = (
    r"(?:(?:also|clear(?:ly)?|definitely|far|generally|indeed|marginally|moderately|much|narrowly"
    r"|obviously"
    r"|overall|really|significantly|simply|slightly|somewhat|still|strongly|substantially|therefore"
    r"|thus|ultimately|considered|deemed|judged|a bit|a little|by far|to be|the|an?)\s)"
)
_OWN = (
    r"(?:(?:['’]s\s|\sof\s|的)?(?:answer|response|output|reply|solution|overall|回答|回复|响应"
    r"|输出|答案|整体|总体|综合|表现|质量)\s?)?"
)
_BETTER = "(?:better|best|superior|prefer(?:able|red)|stronger|winner|ahead)"
_THING = "(?:response|answer|output|solution|reply|one|choice|option|fit|summary)"


def _who(group: str) -> str:
    """A response by name, by letter, or by its place."""
    return (
        rf"(?:the\s)?(?:(?:answer|response|output)\sof\s)?(?P<{group}>"
        rf"(?:{NOUN}\s{{0,2}})(?-i:[(（][abAB12][)）]|[AB12])(?![A-Za-z0-9])"
        r"|(?-i:\([ab]\)|[AB](?![A-Za-z0-9+#]))"
        rf"|(?:first|second)(?:\s(?:one|{NOUN}))?|former|latter"
        rf"|第[一二](?:[个種种份]?{NOUN}|[个种份])|前者|后者)"
    )


# What a judge opens its conclusion by.
_LINK = (
    r"(?:(?:(?:therefore|thus|hence|so|then|overall|ultimately|consequently|accordingly|finally"
    r"|in (?:conclusion|summary|short|sum|the end)|to (?:conclude|sum up|summarize)|tl;?dr"
    r"|all (?:in all|things considered)|taken together|on (?:balance|reflection)|but|and|however"
    r"|though|hands down|definitely|clearly|certainly|easily|surely|obviously|undoubtedly|probably"
    r"|actually|no|without (?:a )?doubt|there is no doubt that|of the two|in my (?:view|opinion)"
    r"|(?:i|we)(?:['’]d|['’]m| would| will| must| can| am| have to)?(?: therefore| thus)?"
    r"(?: (?:say|think|believe|conclude|find|consider|agree|judge|declare|call))(?: that)?"
    r"|(?:my |the |final ){0,3}(?:verdict|conclusion|decision|judge?ment"
    r"|view) is(?: clear)?(?: that)?"
    r"|it(?:['’]s| is)(?: clear that)?)[,:]?\s)"
    r"|(?:因此|所以|综上所述|综上|总之|总的来说|总体(?:上|而言)?|整体(?:上|而言)?|综合(?:来看)?"
    r"|最终|故"
    r"|但|不过|然而|显然|肯定|无疑|毫无疑问|我?(?:的结论是|认为|觉得|判定?)|结论是|应该|是)\s?"
    r"|[,，:：]\s?)"
)
_CHOOSES = (
    r"(?:(?:i|we)(?:['’]d|['’]m| would| will| must| have to| am)?(?: therefore| thus| hence)?\s"
    r"(?:rather )?(?:choose|prefer|select|pick|favou?r|vote(?: for)?|recommend|go(?:ing)? (?:with"
    r"|for)"
    r"|opt for|like|lean to(?:wards)?|declare)"
    r"|going with|point to|(?:my |the )?(?:vote|edge|win|preference|point) (?:is for|goes to"
    r"|must go to)"
    r"|(?:the |my |final |overall ){0,3}(?:winner|verdict|decision|choice|pick|vote|preference"
    r"|answer"
    rf"|(?:better|best|superior|preferred|stronger) {_THING})"
    r"(?:\shere|\soverall)?\s(?:is|goes to|should be|would be)(?: clearly)?:?"
    r"|我?(?:会)?(?:选择?|判给?|投给?|支持|更?倾向于|偏向|更喜欢|比较喜欢)"
    r"|(?:更好|更优|更佳|最好|最佳|较好)的?(?:回答|响应|回复|答案|输出|选择)?(?:是|为)"
    r"|(?:获胜者|胜者|胜出的)(?:是|为))\s{0,2}"
)
_PREDICATE = (
    rf"(?:\s(?:is|was|are|remains|emerges as|should be|to be)\s{_ADVERB}{{0,5}}{_BETTER}"
    rf"(?:\s(?:overall\s)?{_THING})?"
    rf"|\s{_ADVERB}{{0,2}}(?:wins|won|prevails|comes out (?:ahead|on top)|has the edge"
    r"|(?:does|did) (?:a|the) better job|(?:performed|performs|did|does) better)"
    r"(?:\sthis comparison)?"
    rf"|\s{_ADVERB}{{0,2}}(?:provides|provided|offers|gives|gave|has|presents) {_ADVERB}{{1,3}}"
    rf"(?:better|best|superior|stronger)(?: overall)? {_THING}"
    rf"|\s{_ADVERB}{{0,2}}(?:outperforms|surpasses|beats|edges out|exceeds)\s(?=the\s|{NOUN})"
    rf"|\s?(?:明显|显著|显然|略微?|稍微?|确实|要|相对|都|则|是|的|总体上?"
    rf"|整体上?){{0,3}}{BETTER_ZH}(?:者|于)?)"
)
_TAIL = (
    rf"(?:\s?(?:than|to|over|于|过)?\s?{_who('than')})?"
    r"(?:\s(?:overall|here|in this case|(?:of|between) the two|as (?:the )?(?:winner|better \w+)"
    r"|the winner|to be (?:the )?better(?: of the two| one)?|more|better|by far|hands down)"
    r"|\s?胜出?|\s?获胜)?"
    r"(?P<reason>[,，]?\s?(?:(?:because|as|since|due to|for|to|at (?:answering|providing)"
    r"|without (?:a )?doubt|hands down)\b"
    r"|因为|由于).{0,400})?"
)
_SAYS_WHO = (
    # The third class is a tie.
    rf"(?:{_CHOOSES}(?:{_who('chosen')}{_OWN}|(?:(?:option|选项)\s?)?(?P<third>3(?![\d.]\d)))"
    rf"|{_who('better')}{_OWN}{_PREDICATE}){_TAIL}"
    rf"|{_who('worse')}{_OWN}(?:\s(?:is|was)\s{_ADVERB}{{0,4}}(?:worse|inferior|weaker)"
    rf"\s(?:than|to)\s|\s?(?:不如|不及|逊于|差于|输给|没有)\s?){_who('under')}{_OWN}好?"
)
_TIED = (
    r"(?:it is|it['’]s|this is|i(?:['’]d| would)? (?:declare|call) (?:it|this)|(?:it )?(?:results"
    r"|ends) in)?\s?"
    rf"(?:therefore |essentially )?an?\s(?:tie|draw)(?: between (?:the two"
    rf"|{NOUN} [A1] and {NOUN} [B2]))?"
    r"|(?:both|the two|they)(?:['’]re|\s(?:of them|responses|answers|outputs"
    r"|assistants))?(?:\sare)?\s"
    r"(?:about |roughly |essentially )?(?:equally (?:good|bad|strong|weak|poor)"
    r"|equal(?: in quality)?"
    r"|tied|of (?:equal|the same) quality)"
    rf"|neither(?:\s(?:one|{NOUN}|of them))?\sis better(?:\sthan the other)?"
    rf"|(?:这是|两者|二者|双方|两个(?:回答|响应|回复|答案))?(?:打成|判为|判定为|为"
    rf"|是)?{TIED_ZH}(?:，为?{TIED_ZH})?"
)
_END = r"[\s.!。！]{0,4}"
_CORE = re.compile(rf"{_LINK}{{0,4}}(?:{_SAYS_WHO}|(?P<tie>{_TIED})){_END}", re.IGNORECASE)
# In an answer of a few words a response alone is the verdict.
_ALONE = re.compile(
    rf"{_LINK}{{0,4}}{_who('alone')}(?P<reason>[,，]?\s?(?:(?:because|since|as|due to"
    rf"|without (?:a )?doubt)\b|因为|由于)[^?？,，]{{0,200}})?{_END}",
    re.IGNORECASE,
)
# What the judge may say before its verdict in the same sentence.
_OPENS = re.compile(
    r"\W{0,4}(?:(?:therefore|thus|so|overall|based on|given|considering|looking at|judg(?:ed|ing)"
    r"|measured|having|after|between|since|because|while|although|on a closer look|it is not a tie"
    r"|i asked myself)\b|(?:reason\w*|explanation|verdict|winner|conclusion)[:：]|综合|经过|虽然"
    r"|结论|因此|毫无疑问|但|仔细)",
    re.IGNORECASE,
)
_TURNS = re.compile(
    r"(?:and )?(?:so|but|therefore|thus|hence|overall|in the end)\b|因此|所以|但", re.IGNORECASE
)
_HEDGED = re.compile(
    r"\b(?:if|unless|suppos\w+|assuming|had|were|would|could|might|may|says?|said|claims?|argues?"
    r"|thinks?|believes?|insists?|contain\w*|terms of|respect to|regarding|only|alone|at first"
    r"|initially|some|others|told|asks?|words?)\b|\?|如果|假如|若|方面|说|称|写|只",
    re.IGNORECASE,
)
_CLAUSE = re.compile(r"[,;:—，；：、]\s{0,2}")
_SENTENCE_END = re.compile(r"(?<=[.!?])[\"')*_”]{0,4}\s|[。！？][\"')*_”]{0,4}|\n")
_TYPE = re.compile(r"[*_`\"“”>#~|✅🏆]")
_ENDED = (".", "!", "。", "！", ")", "）", "doubt", "down")
_CONCLUDES = re.compile(r"(?i:therefore|thus|hence|so|overall|in conclusion)\b|因此|所以|综上")
_LONGEST, _MOST_CLAUSES = 600, 12
_NAMES_ONE = re.compile(
    r"[AB123一二平前后]|[(（][ab]|不分|不相|难分|旗鼓"
    r"|(?i:first|second|former|latter|tie|draw|both|they|the two|neither)"
)


class Claim(NamedTuple):
    """One sentence that states who is better; `noun` is the whole of it."""

    start: int
    end: int
    winner: Winner
    noun: str


def sentences(text: str) -> Iterator[tuple[int, int]]:
    start = 0
    for match in _SENTENCE_END.finditer(text):
        yield start, match.end()
        start = match.end()
    yield start, len(text)


def claims(text: str) -> list[Claim]:
    """The judge's own claims, in order. Linear in the text."""
    made: list[Claim] = []
    for start, end in sentences(text):
        end = min(end, start + _LONGEST)
        if _NAMES_ONE.search(text, start, end):
            said = text[start:end]
            winner = stated(said)
            if winner is not None:
                made.append(Claim(start, end, winner, said))
    return made


def stated(sentence: str) -> Winner | None:
    """The verdict that a sentence is, or comes to in its last clause."""
    plain = _TYPE.sub("", sentence).lstrip(" \t\n-•").rstrip()
    for at in (0, *islice((clause.end() for clause in _CLAUSE.finditer(plain)), _MOST_CLAUSES)):
        core = _CORE.fullmatch(plain, at)
        if core is None:
            continue
        lead = plain[:at]
        opens = not at or _OPENS.match(lead) or _TURNS.match(plain, at)
        return _winner(core) if opens and not _HEDGED.search(lead) else None
    return None


def _winner(core: re.Match[str]) -> Winner | None:
    named = {group: who for group, who in core.groupdict().items() if who is not None}
    if "tie" in named:
        return "TIE"
    reason = named.pop("reason", "")
    words = reason.split()
    if claims(reason.partition(" ")[2]) or (len(words) == 2 and len(words[1]) <= 2):
        return None  # "A because B"
    if reason and not (reason.rstrip().endswith(_ENDED) or _CONCLUDES.match(core.string)):
        return None  # cut before anything was concluded
    if "worse" in named:
        named = {"better": named["under"], "than": named["worse"]}
    if "third" in named:
        return "TIE"
    winner, *against = (letter(who) for who in named.values())
    return None if winner in against else winner


def closing(text: str) -> Winner | None:
    """The verdict of an answer of a few words: all of it, or its last sentence where none before it
    differs."""
    spans = [text[a:b] for a, b in sentences(text) if text[a:b].strip()]
    if len(spans) == 1:
        alone = _ALONE.fullmatch(_TYPE.sub("", text).strip())
        return winner_of(text) or stated(text) or (alone and _winner(alone))
    said = {winner_of(each) or stated(each) for each in spans} - {None}
    return stated(spans[-1]) if len(said) == 1 else None
