"""Verdicts stated in sentences: who is better, said by the judge itself and as its own view. A
claim that is negated, hypothetical, conceded, limited to an aspect, quoted, or somebody else's
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

# What is said of a response: whether "more …" praises it, and whether a word finds fault.

# Closed lists: what they do not hold is no praise, so that "more verbose" names no winner.
_GOOD = (
    r"(?:helpful|accura\w{1,6}|complete(?:ness|ly)?|comprehensive\w{0,4}|detail(?:s|ed)?|relevan\w{1,4}"
    r"|correct\w{0,4}|clear\w{0,4}|clarity|concise\w{0,4}|precis\w{1,4}|thorough\w{0,4}|useful"
    r"|informati(?:ve|on)|in-depth|depth|engaging|coheren\w{1,4}|cohesive|creativ\w{1,4}|nuanced?"
    r"|insight\w{0,4}|practical|specific\w{0,4}|concrete|robust|reliable|efficient\w{0,2}"
    r"|effective\w{0,4}|appropriate\w{0,2}|natural|logical\w{0,2}|(?:well-)?organi[sz]ed"
    r"|(?:well-)?structured|well-\w{1,12}|direct\w{0,2}|faithful\w{0,4}|honest\w{0,2}|safe|convincing"
    r"|compelling|persuasive|balanced|suit(?:able|ed)|valuable|value|satisf\w{1,8}|context\w{0,6}"
    r"|examples?|readab\w{1,5}|aligned|closely|consistent\w{0,2}|actionable|explanat\w{1,4}|focused"
    r"|understandable|accessible|realistic|vivid|polished|professional|diverse|varied|elegant"
    r"|user-friendly|straightforward|evidence|thoughtful|captivating|immersive|responsible|tailored"
    r"|extensive|elaborate|personali[sz]ed|ethical|responsive|imaginative|descriptive|expressive"
    r"|empathetic|original|sophisticated|truthful|factual\w{0,2}|rigorous|substantive|sound|true"
    r"|reasonable|adherent|grounded|successful|sensible|interesting|evocative|relatable|suggestions?"
    r"|options?|points|reasons|tips|guidance|support\w{0,4})(?![\w-])"
)
_GOOD_ZH = (
    r"(?:为|加|能|具)?(?:好|优|佳|准|精|强|全|完|详|清|出色|高|正确|有(?!误|错|问题|害)|合|符|贴|切题|相关"
    r"|深|具体|丰富|充分|连贯|流畅|自然|简[洁明]|直接|实用|可靠|可信|专业|生动|严谨|安全|适|胜|值得|到位|恰当"
    r"|周|细|明确|通顺|客观|真实|忠|好地|易[于懂]|容易理解|满足|体现|棒)"
)
_FAULT = (
    r"(?:wrong(?:ly)?|incorrect(?:ly)?|inaccura\w{1,5}|fail(?:s|ed|ures?)?|los(?:es?|t|ing)"
    r"|worse|worst|errors?|erroneous|error-prone|mistak\w{1,4}|harm(?:s|ful)?|mislead\w{0,5}"
    r"|hallucinat\w{1,5}|confus\w{1,5}|inferior|weak(?:er|est)?|false(?:hoods?)?|fabricat\w{1,5}"
    r"|nonsens\w{1,5}|unhelpful|irrelevan\w{1,4}|flaw(?:s|ed)|poor(?:ly|er)?|bad(?:ly)?|lack(?:s|ing)"
    r"|rejected|disqualified|eliminated|verbose|repetitive|unsafe|incomplete|dangerous|broken|buggy"
    r"|fluff|vague|inconsisten\w{1,4}|ignores)(?![\w-])"
)
_FAULT_ZH = r"[差错败误劣谬]|输(?!出)|幻觉|啰嗦|冗长|冗余|不足|有害|危险|捏造|淘汰"
# One or two words may stand before the good one: "more factually accurate".
_BETWEEN = rf"(?:(?!(?:than|less|not)\b|{_FAULT})[\w-]{{1,20}},?\s){{0,2}}"
MORE_GOOD = rf"(?i:more\s(?={_BETWEEN}{_GOOD}(?!\s{_FAULT})))"
PRAISES = re.compile(
    rf"\b(?:more|most)\s{_BETWEEN}{_GOOD}(?!\s{_FAULT})"
    rf"|\b(?:better|stronger|clearer|best|superior)\b|[更较最]{_GOOD_ZH}|胜|优",
    re.IGNORECASE,
)
FAULT = re.compile(rf"\b{_FAULT}|{_FAULT_ZH}", re.IGNORECASE)
# A fault that is lacking, mended or found: "no errors", "fewer mistakes", "corrects the error".
NOT_ITS_FAULT = re.compile(
    r"\b(?:no|not|never|without|fewer|less|least|avoid\w{0,3}|free|fix\w{0,3}|correct\w{0,4}"
    r"|catch\w{0,3}|spot\w{0,4}|points? out|identif\w{1,5}|acknowledg\w{1,3}|minor|despite|although"
    r"|though|while|even|unlike|than|whereas|where|other|handles?|explains?|debunk\w{0,3})\b"
    r"|n['’]t\b|[不没无未非少避]|纠正|修正|指出|虽|尽管|另",
    re.IGNORECASE,
)


# Verdicts stated in sentences: who is better, said by the judge itself and as its own view.
#
# A claim that is negated, hypothetical, conceded, limited to an aspect, quoted, or somebody else's
# is weighed on the way to a verdict and does not count.

_ID = r"(?:[(（][abAB12][)）]|[AB12])(?![A-Za-z0-9])"
_SUBJECT = (
    rf"(?:(?:{NOUN}\s{{0,2}}[*_`\"]{{0,2}}(?P<id>{_ID})|(?P<bare>\([ab]\))|{ORDINAL}"
    r"|(?<![A-Za-z0-9_'’-])(?P<letter>[AB])(?![A-Za-z0-9]))[*_`\"]{0,3})"
)
_PLAIN_SUBJECT = rf"(?:{NOUN}\s{{0,2}}[*_`\"]{{0,2}}{_ID}|\([ab]\))"
_OWN = (
    r"(?:(?:'s|’s|的)?\s{0,2}(?:(?i:answer|response|output|reply|solution|version|choice|overall)"
    r"|回答|回复|响应|输出|答案|整体|总体|综合|表现|质量)\s{0,2})?"
)
_ADVERB = (
    r"(?:(?:overall|clearly|significantly|slightly|much|far|marginally|definitely|therefore|thus"
    r"|generally|still|ultimately|considered|deemed|judged|declared|overwhelmingly|somewhat"
    r"|a bit|a little|by far|indeed|certainly|probably|likely|moderately|substantially|noticeably"
    r"|decidedly|also|easily|strongly|clear|obvious|the|a|an|to be|simply|arguably"
    r"|relatively|undoubtedly|obviously|narrowly|barely|comfortably|convincingly)\s{1,2})"
)
_MARK = r"[*_]{0,3}"
_BETTER = (
    rf"(?i:\s{{1,2}}{_MARK}(?:is|was|are|were|to be|remains|seems|appears|stands out as|emerges as"
    rf"|comes out as|should be(?=\s(?:considered|deemed|judged|declared)))"
    rf"\s{{1,2}}{_MARK}{_ADVERB}{{0,5}}{_MARK}"
    r"(?:better|best|superior|preferable|preferred|stronger|winner|strongest|victor|ahead"
    r"|my (?:choice|pick|preference|favou?rite))(?![a-z])"
    rf"|\s{{1,2}}{_ADVERB}{{0,2}}(?:wins|won(?!')|prevails|(?:comes?|came) out (?:ahead|on top"
    rf"|better"
    r"|as the winner)|pulls ahead|takes (?:it|the (?:win|lead|victory|prize))|does (?:a"
    r"|the) better job"
    r"|did (?:a|the) better job|(?:has|holds|gets|takes) the (?:edge|upper hand|advantage)"
    r"|(?:gets|has|earns|wins|deserves|receives) (?:my (?:vote|preference|nod)|the (?:win|nod"
    r"|victory))"
    r"|should win|deserves to win|would be my (?:choice|pick|preference)|is the one (?:that )?i"
    r"(?: would|'d|’d)? (?:choose|pick|prefer|select|recommend|go with|send|use|keep)"
    r"|(?:provide[sd]?|offer(?:s|ed)?|give[sn]?|gave|delivers|delivered|has|had|is|was|presents) "
    r"(?:the|a|an) (?:clearly |overall |slightly |much |significantly )?(?:better|best|superior"
    r"|stronger)"
    r" (?:overall )?(?:response|answer|output|solution|reply|one|choice|option)"
    r"|(?:slightly|clearly|much|marginally|definitely|far|significantly|a bit) (?:better|stronger"
    r"|superior))"
    r"(?![a-z])"
    rf"|\s{{1,2}}{_ADVERB}{{0,2}}(?:outperforms?|surpasse[sd]|beats|outshines|edges (?:out|past)"
    rf"|bests|trumps|outdoes|outclasses|exceeds|defeats"
    rf"|outperformed)\s(?=(?i:the\s)?{_PLAIN_SUBJECT})"
    rf"|\s{{1,2}}{_ADVERB}{{0,2}}(?:performed|performs|did|does|fares"
    rf"|fared)\s{_ADVERB}{{0,3}}better(?![a-z]))"
    r"|\s{0,2}(?:是|则|总体上?|整体上?|综合来看|明显|显著|显然|略微?|稍微?|确实|要|相对|相比之下"
    r"|因此|无疑|的){0,4}"
    r"(?:更好|质量更高|更出色|更优秀|胜(?=[。！!\s]|$)|更优|更佳|更胜一筹|胜出|获胜|较好|較好"
    r"|较优|最好|优于|好于|胜过|更强|占优|略胜一筹"
    r"|获胜者|胜者)"
)
_FORWARD = re.compile(rf"{_SUBJECT}{_OWN}(?:{_BETTER})")
_BACKWARD = re.compile(
    r"(?:(?P<chooses>(?i:\b(?:choose|prefer|select|pick|favou?r|vote(?: for)?|go with|chose"
    r"|recommend|going with|award (?:the win|it|this(?: one)?) to|lean towards?|go for|opt for"
    r"|side with|settle on|voting for"
    r"|give (?:it|this(?: one)?|the (?:win|edge|nod|victory|point)) to))"
    r"|选择|选|判定|判给?|支持|倾向于|偏向|更喜欢|偏好|投给|投票给)"
    r"|(?P<decides>(?i:\b(?:vote is for|(?:vote|edge|win|nod|victory|preference|point)"
    r" (?:goes|must go) to|(?:winner|verdict|decision"
    r"|(?:my\s(?:final\s)?|final\s)(?:choice|pick|preference|selection))"
    r"(?:\sof this (?:comparison|match-?up|round|pair)|\shere|\soverall)?"
    r"\s(?:is|goes to|should be|must be)|preference for)))"
    r"|(?i:\b(?:better|best|superior|preferred|stronger)\s"
    r"(?:one|output|response|answer|choice|assistant|option)(?:\s(?:overall|here))?"
    r"(?:\sof this (?:comparison|match-?up|round|pair)|\shere|\soverall)?"
    r"\s(?:is|goes to|should be|must be))"
    r"|(?:更好|更优|更佳|最好|最佳|较好)的?(?:回答|响应|回复|答案|输出|选择)(?:是|为)|获胜者是"
    r"|获胜者为|胜者是|胜者为|胜出的是|更好的是)"
    rf"(?i:\s{{0,2}}(?:that|the|clearly|:|for)){{0,2}}\s{{0,2}}[*_`\"]{{0,3}}{_SUBJECT}"
)
# "I find Response B better", "I rank Response B first".
_FOUND = re.compile(
    r"(?i:\b(?:find|found|consider|deem|judge|rate|rank|call|declare|name|makes?)\s{1,2})"
    rf"{_SUBJECT}\s{{1,2}}{_ADVERB}{{0,4}}"
    r"(?i:better|best|superior|stronger|preferable|higher|first|winner|above)(?![a-z])"
)
# "回答A比回答B更好" says it of A.
_THAN_ZH = re.compile(
    rf"{_SUBJECT}{_OWN}(?:明显|显然|略|要)?(?:比|相比)\s?(?:{NOUN}\s?)?[AB12]{_OWN}\s?(?:明显|略|稍微?)?(?:更|要|还要)(?:好|优秀?|佳|强|出色)"
)
# "Response A is worse than Response B" says as much of Response B.
_WORSE = re.compile(
    rf"{_PLAIN_SUBJECT}{_OWN}(?i:\s{{1,2}}(?:is|was|seems|remains)\s{_ADVERB}{{0,4}}"
    r"(?:worse|inferior|weaker)\s(?:than|to)\s(?:the\s)?"
    r"|\s{1,2}(?:loses (?:out )?to|lags behind|is (?:outperformed|beaten|surpassed|outclassed) by"
    r"|falls (?:short of|behind))\s(?:the\s)?)"
    rf"{_SUBJECT}"
    rf"|{_PLAIN_SUBJECT}{_OWN}\s?(?:不如|不及|逊于|逊色于|差于|弱于|输给|劣于)\s?"
    rf"(?P<worse_id>{NOUN}\s{{0,2}}{_ID})"
)
# Counts only in a conclusion: "Overall, Response B is more helpful and accurate."
_MORE = re.compile(
    rf"{_SUBJECT}{_OWN}(?i:\s{{1,2}}(?:is|was|provides|offers|gives|provided|offered|gave|does"
    rf"|did)\s"
    rf"{_ADVERB}{{0,4}}{MORE_GOOD}"
    r"|\s(?:better|best)\s(?:satisf|serv|answer|meet|address|fulfil|follow)\w{0,4}\b)"
)
# "Response B > Response A".
_RANKED = re.compile(
    rf"{_SUBJECT}\s{{0,2}}[>＞≻]{{1,2}}\s{{0,2}}(?:{_PLAIN_SUBJECT}|[AB])(?![A-Za-z0-9])"
)
_TIE = re.compile(
    r"(?i:\b(?:it is|it's|it’s|this is|is|declare|call (?:it|this)(?: one)?|results? in|ends in|as)"
    r"\s(?:therefore\s)?"
    r"(?:essentially\s|basically\s)?a\s(?:tie|draw)(?![a-z]))"
    r"|(?:两者|二者|双方|两个(?:回答|响应|回复|答案))?(?:打成|打平|判为|判定为|为|是"
    r"|属于)?(?:平局|平手|打平|不分胜负)"
    r"|(?:两者|二者|双方|两个(?:回答|响应|回复|答案))(?:不相上下|难分伯仲|旗鼓相当|难分高下)"
    r"|(?i:\bcall (?:it|this)(?: one)? even(?![a-z]))"
    rf"|(?i:{NOUN}\s?[A1]\sand\s{NOUN}\s?[B2]\s(?:are|were|performed?|did)\s"
    r"(?:equally (?:good|well|strong|bad|poor(?:ly)?)|the same|tied|on par)(?=\s?[.!]?$))"
    r"|^\s{0,2}难分高下"
    r"|(?:两者|二者|双方|两个(?:回答|响应|回复|答案))(?:的)?(?:整体|总体|综合)?(?:质量|水平|表现)?"
    r"(?:相当|相同|一样好|同样好|持平|平分秋色|并列)(?=[。！!.]?$)"
    r"|(?i:\b(?:both|the two|they)\s(?:(?:of them|responses|answers|outputs|assistants|models"
    r"|options)\s)?"
    r"are\s(?:equally\s(?:good|bad|strong|weak|poor|matched|effective|valid)"
    r"|(?:roughly\s|essentially\s|about\s)?(?:of\s(?:(?:roughly\s)?equal|the same|similar"
    r"|comparable)\squality"
    r"|equal(?:\sin quality)?|on (?:a )?par|evenly matched|tied))(?=\s?[.!]?$))"
)
# What every pattern above needs in a sentence; most sentences of a long text have none of it.
_NAMES_ONE = re.compile(
    r"[AB12一二平]|[(（][ab]|不分|不相|难分|旗鼓|(?:双方|两者|二者|两个)"
    r"|(?i:first|second|tie|draw|even|both|they|the two)"
)
_SENTENCE_END = re.compile(r"(?<=[.!?])[\"')*_]{0,4}\s|[。！？]|\n")
_CLAUSE = re.compile(r"[,;:—–，；：、]")
_CONCLUDES = re.compile(
    r"\b(?:therefore|thus|hence|overall|in conclusion|in summary|to summarize|to sum up|ultimately"
    r"|consequently|finally|accordingly|my (?:final )?(?:verdict|choice|decision|judge?ment)"
    r"|final verdict|i(?: would|'d| will)? (?:choose|prefer|select|pick|say|conclude|believe|agree"
    r"|go with|go for|opt for|vote for|declare|call (?:it|this)|find)|to conclude|in the end"
    r"|all things considered|taken together|winner is"
    r"|have determined|all in all|on balance|on reflection|in short|so)\b"
    r"|综上|综合|因此|所以|总之|总的来说|总体|总而言之|整体而言|结论|故而|最终|我选|我判定|我认为"
    r"|我更?倾向",
    re.IGNORECASE,
)
_NEGATION = re.compile(
    r"(?:\b(?:not|never|cannot|hardly|disagree|deny|reject|wrong|false|incorrect"
    r"|nothing|nobody|none|no(?!\s(?:doubt|question))"
    r"|(?<!no )(?<!without )(?<!without a )doubt)|n't|n’t)"
    r"\s(?:(?!therefore|so|thus|hence|and|but)[\w()']{1,20}\s){0,6}$"
    r"|(?:怀疑|以为|并不|并非|不是|不能说|不认为|未必|难说|不同意|不代表|不意味着|不比|不如|没有|不一定)"
    r"[^，。；,]{0,16}$|[不非没]\s?$",
    re.IGNORECASE,
)
_HYPOTHETICAL = re.compile(
    r"(?:\b(?:if|unless(?!\si\b)|suppose|supposing|assuming|had|were (?:i|it|we)"
    r"|could (?:see|argue|imagine)|an? argument (?:that|for))\b"
    r"|如果|假如|假设|倘若|若是|要是|除非(?!我)|若)",
    re.IGNORECASE,
)
_MODAL = re.compile(
    r"(?:\b(?:(?<!\bI )would|could|might|may|should|which|whether|why|how|when|determine|decide"
    r"|evaluate)\b|可能|也许|或许|哪个|是否|为什么)[^,;:，；：]{0,200}$",
    re.IGNORECASE,
)
_CONCESSION = re.compile(
    r"(?:\b(?:while|although|though|whereas|despite|even if|granted)\b"
    r"|虽然|尽管|虽说|即使|即便|固然)",
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
    r"|[*_]{0,3}(?:\sthan\s[^,.;]{0,30}?)?\s(?:on|in|at)\s(?!balance|the\swhole|general|every"
    r"|all\b|this|my\b"
    r"|the\send|total|most|both|its\s|answering|providing|executing|following|fulfilling"
    r"|addressing)",
    re.IGNORECASE,
)
_SPEAKER = re.compile(
    r"(?P<own>\b(?:I|[Ww]e|(?:[Mm]y|[Oo]ur)\s(?:own\s)?(?:view|opinion|judge?ment|verdict"
    r"|assessment"
    r"|analysis|evaluation|conclusion|choice|decision|preference))\b|我|本人|笔者)"
    rf"|(?P<other>{_PLAIN_SUBJECT}|\b(?i:assistants?|debaters?|users?|humans?|some|others|people"
    r"|authors?|reviewers?|raters?|colleagues?|they|he|she|someone|one|text|response|output"
    r"|answer|it"
    r"|prompt|instruction|injection|which)\b|用户|有人|作者|他们|它|文中|其中|里面|回答|响应|输出)"
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
    r"|ostensib)ly\b"
    r"|\brumou?r has it\b|\bword is\b|\bit (?:is|was|has been) (?:claimed|said|alleged|reported"
    r"|asserted"
    r"|rumou?red)\b"
    r"|\b(?:we|i) (?:are|am|was|were) (?:told|asked|expected)\b|\bby its own (?:account"
    r"|admission)\b)"
    r"|[据按照依].{0,12}的(?:说法|观点|看法)|据[说称传闻报]|据.{1,8}所[言说]|传言|号称|听说|传闻|所谓"
)
_AGREES = re.compile(r"\b(?:I|[Ww]e)\s(?:\w+\s)?(?:agree|concur|side)\b|我(?:也|更)?(?:同意|赞同)")
_JOINED = re.compile(
    rf"{_PLAIN_SUBJECT}{_OWN}\s{{0,2}}(?:(?i:and|or|nor|&|/)|和|与|或|、)\s{{0,2}}$"
)
_NEITHER = re.compile(r"\b(?:neither|either|both)\b[^,;]{0,60}$", re.IGNORECASE)
_CONDITION_AFTER = re.compile(
    r"[\s*_\"']{0,4}(?:if|when|only|unless|until|before|provided|is (?:false|wrong|not))\b"
    r"|[\s，]{0,3}(?:如果|的话|吗|么)",
    re.IGNORECASE,
)
# "I like A more, but that is not what counts."
_SET_ASIDE_AFTER = re.compile(
    r"[^,，;；.。]{0,40}[,，;；]\s?(?:(?i:but|yet|however),?\s(?i:this|that)\s?(?:(?i:is|was|does)\snot"
    r"|(?i:is|was|does)n['’]t)|(?:但|不过|然而)[这那][^，。]{0,4}不)"
)
# "…, or so it says", "… according to Response A".
_SAID_AFTER = re.compile(
    r"[,，;\s]{0,3}(?:or so\b|(?:at least\s)?according to\b|(?!(?:I|we)\s)(?:\w{1,12}\s){1,2}"
    r"(?:says?|said|claims?|claimed|argues?|thinks?|believes?|insists?)\b|它(?:自己)?(?:说|声称))"
)
_OVERALL = re.compile(
    r"\b(?:overall|in conclusion|final|ultimately)\b|总体|总的来说|总之|整体|综合|最终|综上",
    re.IGNORECASE,
)
_OVERALL_AFTER = re.compile(r"[\s*_]{1,3}overall\b", re.IGNORECASE)
# What the judge thought before it looked closer; a turn in the sentence ends it.
_SUPERSEDED = re.compile(
    r"\b(?:at first|initially|originally|at a glance|in theory|on paper|on the surface"
    r"|superficially"
    r"|almost|nearly|i (?:had |first )?thought"
    r"|i was (?:leaning|tempted)|i (?:was )?inclined)\b|起初|最初|乍一?看|一开始|本以为|原以为|初看"
    r"|表面上?|理论上|本来|差点|险些",
    re.IGNORECASE,
)
_TURN = re.compile(r"\b(?:but|however|yet|though)\b|但|不过|然而|[;；]", re.IGNORECASE)
_I_CHOOSE = re.compile(
    r"(?:\b(?:I|[Ww]e)\b[^,;.]{0,60}|我[^，。；]{0,16}"
    r"|(?:\b(?i:therefore|thus|hence|overall|so|in conclusion|finally)"
    r"|因此|所以|综上(?:所述)?|总之|最终|故)[\s,，]{0,3}"
    # Chinese leaves the subject out where it is the judge.
    r"|(?:^|[，；：])[但所以因此]{0,2}(?:应该?|只能|还是|仍然?|略微?|稍微?|强烈|明显|这一局|本轮){1,2})$"
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
    r"\b(?:rank\w*|rating|verdict|winner|conclusion|overall|final|decision|judge?ment|choice"
    r"|result|answer"
    r"|reason\w*"
    r"|explanation|rationale|summary|analysis|evaluation|comparison|assessment|preference|so|thus"
    r"|is"
    r"|i|my|note|tie)\b|结论|总|综|最终|整体|判|裁|结果|选择|理由|原因|分析|评|胜|我|答案|说明"
    r"|排名|排序",
    re.IGNORECASE,
)
# Where a letter alone is a response: in "Plan B is better" it is part of another name.
_LETTER_STANDS = re.compile(
    r"(?:^|[,;:，；：—]|\b(?:so|thus|therefore|hence|that|overall|ultimately|but|and|conclude|say"
    r"|think"
    r"|believe)|(?:因此|所以|故)(?:总体|整体|综合)?|认为)[\s*_\"“'(]{0,4}$",
    re.IGNORECASE,
)
_SUMS_UP = re.compile(
    r"\b(?:overall|in (?:conclusion|summary|short)|to (?:summarize|sum up|conclude)|ultimately"
    r"|all in all|on balance|on reflection|all things considered)\b",
    re.IGNORECASE,
)
_ENDS = re.compile(r"[*_\"”']{0,3}\s?(?:胜出?|获胜)?(?:[.,;!。，；！]|$)")
# "So, B." and "Hence, option B": a conclusion that is a name and nothing else.
_ONLY = re.compile(
    r"[\s*_>#-]{0,8}(?:(?i:therefore|thus|hence|so|overall|in conclusion|finally|ultimately)"
    rf"|因此|所以|综上|总之|毫无疑问)[,:，：]\s{{0,2}}[*_]{{0,3}}{_SUBJECT}[*_.!。！\s]{{0,4}}"
)
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
    for pattern in (_FORWARD, _MORE, _RANKED, _FOUND, _THAN_ZH):
        for match in pattern.finditer(body):
            before = body[: match.start()]
            if match["letter"] and pattern is not _FOUND and not _LETTER_STANDS.search(before):
                continue
            if before.rstrip().endswith("比"):  # the one that is compared with
                continue
            if pattern is not _MORE or _SUMS_UP.search(before):
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
    only = _ONLY.fullmatch(body)
    if only is not None:
        found.append((only, letter(only[only.lastgroup or 0]), only[0]))
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
        _HYPOTHETICAL.search(before)
        or _SUPERSEDED.search(_TURN.split(before)[-1])
        or _CONCESSION.search(clause)
        or _MODAL.search(clause)
        or _NEGATION.search(clause + " " if clause and not clause[-1].isspace() else clause)
        or _JOINED.search(before)
        or _NEITHER.search(clause)
        or _CONDITION_AFTER.match(after)
        or _SAID_AFTER.match(after)
        or _SET_ASIDE_AFTER.match(after)
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
