"""What is said of a response: whether "more …" praises it, and whether a word finds fault."""

from __future__ import annotations

import re

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
