"""Verdicts stated in sentences: who is better, said by the judge itself and as its own view. They
decide a short answer, or one whose protocol was named, and contradict a verdict before them.

A claim that is negated, hypothetical, conceded, limited to an aspect, quoted, or somebody else's
does not count.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from evenhand.contract import Winner
from evenhand.judging.answers.vocabulary import NOUN, ORDINAL, letter

_ID = r"(?:[(（][abAB12][)）]|[AB12])(?![A-Za-z0-9])"
_SUBJECT = (
    rf"(?:(?:{NOUN}\s{{0,2}}[*_`\"]{{0,2}}(?P<id>{_ID})|(?P<bare>\([ab]\))|{ORDINAL}"
    r"|(?<![A-Za-z0-9_'’-])(?P<letter>[AB])(?![A-Za-z0-9]))[*_`\"]{0,3})"
)
_PLAIN_SUBJECT = rf"(?:{NOUN}\s{{0,2}}[*_`\"]{{0,2}}{_ID}|\([ab]\))"
_OWN = (
    r"(?:(?:'s|’s|的)?\s{0,2}(?:(?i:answer|response|output|reply|solution|overall)"
    r"|回答|回复|响应|输出|答案|整体|总体|综合|表现|质量)\s{0,2})?"
)
_ADVERB = (
    r"(?:(?:overall|clearly|significantly|slightly|much|far|marginally|definitely|therefore|thus"
    r"|generally|still|ultimately|considered|deemed|judged|somewhat|a bit|a little|by far|indeed"
    r"|likely|moderately|substantially|also|strongly|clear|the|a|an|to be|simply|obviously)\s{1,2})"
)
_MARK = r"[*_]{0,3}"
_BETTER = (
    rf"(?i:\s{{1,2}}{_MARK}(?:is|was|are|were|to be|remains|seems|appears|emerges as|should be"
    rf"(?=\s(?:considered|deemed|judged)))\s{{1,2}}{_MARK}{_ADVERB}{{0,5}}{_MARK}"
    r"(?:better|best|superior|preferable|preferred|stronger|winner|ahead)(?![a-z])"
    rf"|\s{{1,2}}{_ADVERB}{{0,2}}(?:wins|won(?!')|prevails|comes out (?:ahead|on top)"
    r"|(?:does|did) (?:a|the) better job|has the edge|(?:performed|performs|did|does)\sbetter"
    r"|(?:provide[sd]?|offer(?:s|ed)?|gives|gave|has|is|was|presents) (?:the|a) "
    r"(?:clearly |overall |slightly |much |significantly )?(?:better|best|superior|stronger)"
    r" (?:overall )?(?:response|answer|output|solution|reply|one|choice|option))(?![a-z])"
    rf"|\s{{1,2}}{_ADVERB}{{0,2}}(?:outperforms?|surpasses|beats|edges out|exceeds)"
    rf"\s(?=(?i:the\s)?{_PLAIN_SUBJECT}))"
    r"|\s{0,2}(?:是|则|总体上?|整体上?|综合来看|明显|显著|显然|略微?|稍微?|确实|要|相对|因此|的){0,4}"
    r"(?:更好|质量更高|更出色|更优秀?|更佳|更胜一筹|胜出|获胜者?|胜者|胜(?=[。！!\s]|$)|较好|较优|最好|最佳"
    r"|优于|好于|胜过|更强|占优|略胜一筹)"
)
_FORWARD = re.compile(rf"{_SUBJECT}{_OWN}(?:{_BETTER})")
_BACKWARD = re.compile(
    r"(?:(?P<chooses>(?i:\b(?:choose|prefer|select|pick|favou?r|vote(?: for)?|go(?:ing)? with|chose"
    r"|recommend|go for|opt for))|选择|选|判定|判给?|支持|倾向于|偏向|更喜欢|投给)"
    r"|(?P<decides>(?i:\b(?:vote is for|(?:vote|edge|win|preference) (?:goes|must go) to"
    r"|(?:winner|verdict|decision|(?:my\s(?:final\s)?|final\s)(?:choice|pick|preference))"
    r"(?:\shere|\soverall)?\s(?:is|goes to|should be))))"
    r"|(?i:\b(?:better|best|superior|preferred|stronger)\s"
    r"(?:one|output|response|answer|choice|assistant|option)(?:\shere|\soverall)?"
    r"\s(?:is|should be))"
    r"|(?:更好|更优|更佳|最好|最佳|较好)的?(?:回答|响应|回复|答案|输出|选择)?(?:是|为)"
    r"|(?:获胜者|胜者|胜出的)(?:是|为))"
    rf"(?i:\s{{0,2}}(?:that|the|clearly|:|for)){{0,2}}\s{{0,2}}[*_`\"]{{0,3}}{_SUBJECT}"
)
# "Response A is worse than Response B" says as much of Response B.
_WORSE = re.compile(
    rf"{_PLAIN_SUBJECT}{_OWN}(?i:\s{{1,2}}(?:is|was)\s{_ADVERB}{{0,4}}(?:worse|inferior|weaker)"
    rf"\s(?:than|to)\s(?:the\s)?){_SUBJECT}"
    rf"|{_PLAIN_SUBJECT}{_OWN}\s?(?:不如|不及|逊于|差于|输给)\s?(?P<worse_id>{NOUN}\s{{0,2}}{_ID})"
)
_BOTH_ZH = r"(?:两者|二者|双方|两个(?:回答|响应|回复|答案))"
_TIE = re.compile(
    r"(?i:\b(?:it is|it's|it’s|this is|is|declare|call (?:it|this)|results? in|ends in|as)"
    r"\s(?:therefore\s|essentially\s)?a\s(?:tie|draw)(?![a-z]))"
    rf"|{_BOTH_ZH}?(?:打成|打平|判为|判定为|为|是|属于)?(?:平局|平手|打平|不分胜负)"
    rf"|{_BOTH_ZH}(?:不相上下|难分伯仲|旗鼓相当|难分高下)"
    r"|(?i:\b(?:both|the two|they)\s(?:(?:of them|responses|answers|outputs|assistants)\s)?are\s"
    r"(?:equally\s(?:good|bad|strong|weak|poor)|(?:roughly\s|essentially\s)?"
    r"(?:of\s(?:equal|the same)\squality|equal|tied))(?=\s?[.!]?$))"
)
# What every pattern above needs in a sentence; most sentences of a long text have none of it.
_NAMES_ONE = re.compile(
    r"[AB12一二平]|[(（][ab]|不分|不相|难分|旗鼓|(?i:first|second|tie|draw|both|they|the two)"
)
_SENTENCE_END = re.compile(r"(?<=[.!?])[\"')*_]{0,4}\s|[。！？]|\n")
_CLAUSE = re.compile(r"[,;:—–，；：、]")
_CONCLUDES = re.compile(
    r"\b(?:therefore|thus|hence|overall|in conclusion|in summary|to summarize|to sum up|ultimately"
    r"|consequently|finally|accordingly|my (?:final )?(?:verdict|choice|decision|judge?ment)"
    r"|final verdict|i(?: would|'d| will)? (?:choose|prefer|select|pick|say|conclude|believe|agree"
    r"|go with|go for|opt for|vote for|declare|call (?:it|this)|find)|to conclude|in the end"
    r"|all things considered|taken together|winner is|have determined|all in all|on balance"
    r"|on reflection|in short|so)\b"
    r"|综上|综合|因此|所以|总之|总的来说|总体|总而言之|整体而言|结论|故而|最终|我选|我判定|我认为|我更?倾向",
    re.IGNORECASE,
)
_NEGATION = re.compile(
    r"(?:\b(?:not|never|cannot|hardly|disagree|deny|reject|wrong|false|incorrect|nothing|nobody|none"
    r"|no(?!\s(?:doubt|question))|(?<!no )(?<!without )(?<!without a )doubt)|n't|n’t)"
    r"\s(?:(?!therefore|so|thus|hence|and|but)[\w()']{1,20}\s){0,6}$"
    r"|(?:怀疑|以为|并不|并非|不是|不能说|不认为|未必|难说|不同意|不代表|不意味着|不比|不如|没有|不一定)"
    r"[^，。；,]{0,16}$|[不非没]\s?$",
    re.IGNORECASE,
)
# What makes a claim no verdict of its own, wherever it stands before it in the sentence…
_UNREAL = re.compile(
    r"\b(?:if|unless(?!\si\b)|suppose|supposing|assuming|had|were (?:i|it|we)"
    r"|could (?:see|argue|imagine)|an? argument (?:that|for))\b"
    r"|如果|假如|假设|倘若|若是|要是|除非(?!我)|若",
    re.IGNORECASE,
)
# …or in its clause.
_WEAKENED = re.compile(
    r"(?:\b(?:(?<!\bI )would|could|might|may|should|which|whether|why|how|when|determine|decide"
    r"|evaluate)\b|可能|也许|或许|哪个|是否|为什么)[^,;:，；：]{0,200}$"
    r"|\b(?:while|although|though|whereas|despite|even if|granted)\b|虽然|尽管|虽说|即使|即便|固然"
    r"|\b(?:neither|either|both)\b[^,;]{0,60}$",
    re.IGNORECASE,
)
_ASPECT = re.compile(
    r"(?:\b(?:in terms of|regarding|with respect to|as for|when it comes to|on the (?:first|second)"
    r"|for the (?:first|second)|for (?:accuracy|clarity|style|tone|detail|length|readability)"
    r"|in (?:accuracy|clarity|style|tone|detail|this (?:respect|aspect|regard)|some|certain|one))\b"
    r"|方面|(?<!总体)(?<!整体)而言|(?<!总的)(?<!总体)(?<!整体)来说|这一点|这点|角度"
    r"|在[^，。；]{1,12}上|从[^，。；综整总]{1,12}看)",
    re.IGNORECASE,
)
_ASPECT_AFTER = re.compile(
    r"\s(?:\w{2,20}ed|written|known|put|laid|spoken)(?![A-Za-z])"
    r"|\s(?!(?:all|every|both|most|each|on)\b)(?:\w{1,12}\s){0,3}?(?:criteri|categor|round|aspect"
    r"|point)"
    r"|[*_]{0,3}(?:\sthan\s[^,.;]{0,30}?)?\s(?:on|in|at)\s(?!balance|the\swhole|general|every|all\b"
    r"|this|my\b|the\send|total|most|both|its\s|answering|providing|executing|following|fulfilling"
    r"|addressing)",
    re.IGNORECASE,
)
_SPEAKER = re.compile(
    r"(?P<own>\b(?:I|[Ww]e|(?:[Mm]y|[Oo]ur)\s(?:own\s)?(?:view|opinion|judge?ment|verdict"
    r"|assessment|analysis|evaluation|conclusion|choice|decision|preference))\b|我|本人|笔者)"
    rf"|(?P<other>{_PLAIN_SUBJECT}|\b(?i:assistants?|debaters?|users?|humans?|some|others|people"
    r"|authors?|reviewers?|raters?|they|he|she|someone|one|text|response|output|answer|it|prompt"
    r"|instruction|injection|which)\b|用户|有人|作者|他们|它|文中|其中|里面|回答|响应|输出)"
)
_SPEAKS = re.compile(
    r"(?i:\bargu\w+|\bclaim\w*|\bsay\w*|\bsaid\b|\bstat(?:es?|ed|ing)\b|\bassert\w*|\binsist\w*"
    r"|\bthinks?\b|\bbeliev\w+|\bcontend\w*|\bmaintains\b|\bwrites?\b|\bwrote\b|\bdeclar\w+"
    r"|\bannounc\w+|\btells?\b|\btold\b|\binstruct(?:s|ed)\b|\btr(?:y|ies|ied)\b|\bpretend\w*"
    r"|\bsuggests? that|\bcontains?\b|\bconcludes? that|\basks?\b|\borders?\b|\bdemands?\b)"
    r"|认为|觉得|暗示|声称|主张|(?<=的)(?:结论|说法|观点|看法|判断)|(?<!来)说(?!明)|表示|写道|宣称|要求"
    r"|写着|包含|自称"
)
_REPORTED = re.compile(
    r"(?i:\baccording to\b|\bin the opinion of\b|\b(?:supposed|alleged|reported|purported"
    r"|ostensib)ly\b|\bit (?:is|was|has been) (?:claimed|said|alleged|reported)\b"
    r"|\b(?:we|i) (?:are|am|was|were) (?:told|asked|expected)\b|\bby its own (?:account"
    r"|admission)\b)"
    r"|[据按照依].{0,12}的(?:说法|观点|看法)|据[说称传闻报]|据.{1,8}所[言说]|传言|号称|听说|传闻|所谓"
)
_AGREES = re.compile(r"\b(?:I|[Ww]e)\s(?:\w+\s)?(?:agree|concur|side)\b|我(?:也|更)?(?:同意|赞同)")
_JOINED = re.compile(
    rf"{_PLAIN_SUBJECT}{_OWN}\s{{0,2}}(?:(?i:and|or|nor|&|/)|和|与|或|、)\s{{0,2}}$"
)
# "… if you like rhyme", "…, or so it says", "…, but that is not what counts".
_TAKEN_BACK_AFTER = re.compile(
    r"[\s*_\"']{0,4}(?i:if|when|only|unless|until|before|provided|is (?:false|wrong|not))\b"
    r"|[\s，]{0,3}(?:如果|的话|吗|么)"
    r"|[,，;\s]{0,3}(?:or so\b|(?:at least\s)?according to\b|(?!(?:I|we)\s)(?:\w{1,12}\s){1,2}"
    r"(?:says?|said|claims?|claimed|argues?|thinks?|believes?|insists?)\b|它(?:自己)?(?:说|声称))"
    r"|[^,，;；.。]{0,40}[,，;；]\s?(?:(?i:but|yet|however),?\s(?i:this|that)\s?"
    r"(?:(?i:is|was|does)\snot|(?i:is|was|does)n['’]t)|(?:但|不过|然而)[这那][^，。]{0,4}不)"
)
_OVERALL = re.compile(
    r"\b(?:overall|in conclusion|final|ultimately)\b|总体|总的来说|总之|整体|综合|最终|综上",
    re.IGNORECASE,
)
_OVERALL_AFTER = re.compile(r"[\s*_]{1,3}overall\b", re.IGNORECASE)
# What the judge thought before it looked closer; a turn in the sentence ends it.
_SUPERSEDED = re.compile(
    r"\b(?:at first|initially|originally|at a glance|in theory|on paper|on the surface"
    r"|superficially|almost|nearly|i (?:had |first )?thought|i was (?:leaning|tempted)"
    r"|i (?:was )?inclined)\b|起初|最初|乍一?看|一开始|本以为|原以为|初看|表面上?|理论上|差点|险些",
    re.IGNORECASE,
)
_TURN = re.compile(r"\b(?:but|however|yet|though)\b|但|不过|然而|[;；]", re.IGNORECASE)
_I_CHOOSE = re.compile(
    r"(?:\b(?:I|[Ww]e)\b[^,;.]{0,60}|我[^，。；]{0,16}"
    r"|(?:\b(?i:therefore|thus|hence|overall|so|in conclusion|finally)"
    r"|因此|所以|综上(?:所述)?|总之|最终|故)[\s,，]{0,3})$"
)
_TOLD = re.compile(
    r"\b(?:told|asked|instructed|ordered|urged|supposed"
    r"|(?:tells?|asks?|orders?|wants?|instructs?) (?:me|us))\b"
    r"|(?:要求|让|叫|命令|请|引导|诱导)我?[^，。；]{0,4}$",
    re.IGNORECASE,
)
# "Accuracy: Response A is better" speaks of accuracy, "Verdict: …" of the whole.
_LABELLED = re.compile(r"[\s*_>#\-•|\d.)、（(【]{0,12}(?P<label>[^:：,，.。;；]{1,30})[:：]")
_OF_THE_WHOLE = re.compile(
    r"\b(?:verdict|winner|conclusion|overall|final|decision|judge?ment|choice|result|answer|reason\w*"
    r"|explanation|rationale|summary|analysis|evaluation|comparison|assessment|preference|so|thus|is"
    r"|i|my|note|tie|ranking)\b|结论|总|综|最终|整体|判|裁|结果|选择|理由|原因|分析|评|胜|我|答案|说明",
    re.IGNORECASE,
)
# Where a letter alone is a response: in "Plan B is better" it is part of another name.
_LETTER_STANDS = re.compile(
    r"(?:^|[,;:，；：—]|\b(?:so|thus|therefore|hence|that|overall|ultimately|but|and|conclude|say"
    r"|think|believe)|(?:因此|所以|故)(?:总体|整体|综合)?|认为)[\s*_\"“'(]{0,4}$",
    re.IGNORECASE,
)
_ENDS = re.compile(r"[*_\"”']{0,3}\s?(?:胜出?|获胜)?(?:[.,;!。，；！]|$)")
# What may open a sentence that is a verdict and nothing else.
_OPENING = re.compile(
    r"[\s*_>#-]{0,8}(?:(?:(?i:therefore|thus|hence|so|overall|in conclusion|in summary|finally"
    r"|ultimately)|因此|所以|综上所述|综上|总之|总的来说|总体而言|最终)[,，]?\s{0,2})?"
    r"(?:(?:I|[Ww]e)(?:['’]d| would| will|['’]ll)?|[Mm]y|[Tt]he|我认为|我的?)?\s?"
)
_LONGEST_SENTENCE = 2000
_MOST_CLAIMS = 8
_EDGES = " \t*_>#\"'.。!！"


@dataclass(frozen=True, slots=True)
class Claim:
    """One sentence's own statement of who is better."""

    start: int
    end: int
    winner: Winner
    sentence: int
    concluding: bool
    alone: bool
    own_line: bool
    noun: str


@dataclass(frozen=True, slots=True)
class Sentence:
    start: int
    text: str
    ends_with_question: bool
    own_line: bool


def sentences(text: str) -> Iterator[Sentence]:
    start = 0
    for match in _SENTENCE_END.finditer(text):
        yield from _sentence(text, start, match.start(), match[0])
        start = match.end()
    yield from _sentence(text, start, len(text), "")


def _sentence(text: str, start: int, end: int, mark: str) -> Iterator[Sentence]:
    body = text[start : min(end, start + _LONGEST_SENTENCE)]
    if body.strip():
        question = "？" in mark or body.rstrip(")*_ ").endswith("?")
        line = (not start or text[start - 1] == "\n") and (mark == "\n" or end == len(text))
        yield Sentence(start, body, question, line)


def claims(text: str, *, ties: bool = True) -> list[Claim]:
    """The judge's own claims, in order. Linear in the text."""
    made: list[Claim] = []
    for number, sentence in enumerate(sentences(text)):
        if sentence.ends_with_question or not _NAMES_ONE.search(sentence.text):
            continue
        for match, winner, noun in deque(_matches(sentence.text, ties), maxlen=_MOST_CLAIMS):
            before, after = sentence.text[: match.start()], sentence.text[match.end() :]
            if not _own_view(before, after):
                continue
            made.append(
                Claim(
                    sentence.start + match.start(),
                    sentence.start + match.end(),
                    winner,
                    number,
                    _CONCLUDES.search(before + match[0]) is not None
                    or _OVERALL_AFTER.match(after) is not None,
                    _opens(before) and not after.strip(_EDGES),
                    sentence.own_line,
                    noun,
                )
            )
    return made


def _matches(body: str, ties: bool) -> Iterator[tuple[re.Match[str], Winner, str]]:
    found: list[tuple[re.Match[str], Winner, str]] = []
    for match in _FORWARD.finditer(body):
        before = body[: match.start()]
        # Not a letter of another name, and not the one that is compared with.
        if (not match["letter"] or _LETTER_STANDS.search(before)) and before.rstrip()[-1:] != "比":
            found.append((match, letter(match[match.lastgroup or 0]), match[0]))
    for match in _BACKWARD.finditer(body):
        chosen = match["chooses"] or match["decides"]
        if match["letter"] and not (chosen and _ENDS.match(body, match.end())):
            continue
        if match["chooses"] is None or _chosen_by_judge(body[: match.start()]):
            found.append((match, letter(match[match.lastgroup or 0]), match[0]))
    for match in _WORSE.finditer(body):
        better = match["worse_id"] or match[match.lastgroup or 0]
        found.append((match, letter(better.strip("()（） ")[-1:]), match[0]))
    if ties:
        found.extend((match, "TIE", "") for match in _TIE.finditer(body))
    yield from sorted(found, key=lambda item: item[0].start())


def _opens(before: str) -> bool:
    return not before.strip(_EDGES) or _OPENING.fullmatch(before) is not None


def _chosen_by_judge(before: str) -> bool:
    """Whether it is the judge that chooses: not a reader, and not a text that asks for it."""
    return _I_CHOOSE.search(before) is not None and _TOLD.search(before) is None


def _own_view(before: str, after: str) -> bool:
    labelled = _LABELLED.match(before)
    if labelled is not None and not _OF_THE_WHOLE.search(labelled["label"]):
        return False
    clause = _CLAUSE.split(before)[-1]
    return not (
        _UNREAL.search(before)
        or _SUPERSEDED.search(_TURN.split(before)[-1])
        or _WEAKENED.search(clause)
        or _NEGATION.search(clause + " " if clause and not clause[-1].isspace() else clause)
        or _JOINED.search(before)
        or _TAKEN_BACK_AFTER.match(after)
        or (_ASPECT_AFTER.match(after) and not _OVERALL.search(before))
        or (_ASPECT.search(before + after[:80]) and not _OVERALL.search(before))
        or attributed(before)
    )


def attributed(before: str) -> bool:
    """Whether somebody else says it: the last verb of speech decides, by who stands before it."""
    before = before[-400:]
    if _REPORTED.search(before):
        return True
    spoken = deque(_SPEAKS.finditer(before), maxlen=1)
    if not spoken or re.search("[,;，；]", before[spoken[0].end() :]) or _AGREES.search(before):
        return False
    speakers = deque(_SPEAKER.finditer(before, 0, spoken[0].start()), maxlen=1)
    return not speakers or speakers[0]["own"] is None


Conclusion = tuple[Winner, Claim] | Literal["none", "split"]


def concluded(made: list[Claim]) -> Conclusion:
    """What the claims come to: the conclusion, unless another verdict was stated as firmly."""
    if not made:
        return "none"
    last = made[-1]
    against = [claim for claim in made if claim.winner != last.winner]
    if not against:
        return last.winner, last
    firm = any(
        claim.concluding or claim.alone or claim.sentence == last.sentence for claim in against
    )
    return "split" if firm or not last.concluding else (last.winner, last)
