"""The words of verdicts in English and Chinese: what responses, ties, keys and refusals are called,
and by what a judge speaks of itself and of others.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache
from typing import Final, Literal

from evenhand.contract import Winner

NOUN: Final = (
    r"(?:(?i:output|response|assistant|answer|option|candidate|model|chatbot|completion|reply"
    r"|solution)|输出|响应|回应|回應|回答|回复|回覆|助手|助理|答案|选项|模型)"
)
# The response shown first, and the one shown second.
ORDINAL: Final = (
    r"(?:(?i:the\s)?(?P<nth>(?i:first|second))"
    r"(?:\s(?i:output|response|assistant|answer|option|one)|(?=\s(?i:is|was|wins)\b))"
    r"|第(?P<ordinal>[一二])(?:[个種种份]?(?:输出|响应|回应|回答|回复|助手|答案)|[个种份]))"
)
BETTER_ZH: Final = (
    r"(?:更好|质量更高|更出色|更优秀?|更佳|略?更?胜一筹|胜出|获胜|胜|赢了?|较好|较优|較好|最好|最佳"
    r"|优于"
    r"|好于|胜过|更强|占优)"
)
TIED_ZH: Final = (
    r"(?:平局|平手|打平|持平|不分胜负|不相上下|不分上下|难分伯仲|旗鼓相当|难分高下|一样好)"
)
# By these a judge speaks of its own verdict…
OWN: Final = re.compile(
    r"\b(?:my|i|we|our|verdict|decision|conclu\w{2,6}|final(?! (?:line|word|sentence))|choice"
    r"|judge?ment|winner|better|best|wins?|therefore|thus|hence|so|overall|prefer\w*|rating|result"
    r"|output|answer is)\b|我|判|结论|最终|因此|所以|综|总|胜|更好|选|结果|答案",
    re.IGNORECASE,
)
# …and by these of what somebody else wrote.
SPEECH: Final = re.compile(
    r"\b(?:contain|includ|embed|inject|quot|says?\b|said\b|saying\b|wrote\b|writ(?:es?|ing|ten)\b"
    r"|ends?\b|ending\b|closes?\b|closing (?:with|like|by|line|words?)|claim|stat(?:es?|ing)\b"
    r"|reads?\b|fake|forged|attempt|tr(?:ies|ied|ying)\b|tells?\b|told\b|instruct|append|insert"
    r"|smuggl|slips?\b|last (?:line|words?|sentence|paragraph)|carr(?:y|ies)\b|holds?\b|stands?\b"
    r"|add(?:s|ed)?\b|appears?\b|argues?\b|asserts?\b|declares?\b|announces?\b|begs?\b|begins?\b"
    r"|asks?\b|orders?\b|demands?\b|urges?\b|concludes?\b|(?:opens?|starts?) with|goes\b|plant"
    r"|hidden|hides?\b|puts?\b|prints?\b|outputs? (?:the|a|an|this)\b|trick|steer|follows?:?$"
    r"|(?:text|words|transcript|bottom|foot|end|part|conclusion) of\b|verbatim|has(?: the"
    r"| this)?:?$"
    r"|from|inside|found (?:in|at|near|under)|following (?:text|lines?|words|passage|sentence"
    r"|verdict))"
    r"|包含|写[着下了道的]|声称|自称|宣称|引[自用]|[出来摘]自|伪造|试图|企图|注入|植入|嵌入|结尾"
    r"|末尾|最后|开头"
    r"|如下|有一行|出现|附"
    r"|要求|命令|说[:：]?$|里有|中有|中的|里的|其中|原文|以此|误导",
    re.IGNORECASE,
)

DIRECT_WINNERS: Final[dict[str, Winner]] = {
    "A": "A",
    "B": "B",
    "TIE": "TIE",
    "a": "A",
    "b": "B",
    "tie": "TIE",
    "Tie": "TIE",
}
_LABEL = re.compile(
    rf"(?:(?:(?:the\s+)?{NOUN}[\s_-]{{0,3}})?[(\[]{{0,2}}([ab])[)\]]{{0,2}}"
    rf"|(?:the\s+)?{NOUN}\s?([12]))"
    r"(?:\s(?:wins|(?:is|was)\s(?:clearly\s|slightly\s|much\s)?(?:the\s)?(?:better|best|winner"
    r"|superior)"
    r"(?:\s(?:one|response|answer))?)|\s?(?:更好|胜出|获胜|更优))?"
)
_TIE = re.compile(rf"(?:it is |it's )?(?:a )?(?:tied?|draw)|equal|{TIED_ZH}")
_ORDINAL_LABEL = re.compile(rf"{ORDINAL}|(?:the\s)?(first|second)", re.IGNORECASE)
# "A>B", "[[B>>A]]", "Response A = Response B", "A≫B".
RANKED: Final = (
    rf"(?:(?i:{NOUN})[\s_]?)?(?P<left>[ABab])\s?(?P<sign>[>＞]{{1,2}}|[<＜]{{1,2}}|={{1,2}}"
    rf"|[≻≫≺≪≈])"
    rf"\s?(?:(?i:{NOUN})[\s_]?)?(?P<right>[ABab])(?![A-Za-z0-9])"
)
_RANKED_LABEL = re.compile(RANKED)
_TRIM = " \t\r\n\u3000.。,，;；!！*_`\"'“”‘’「」【】"


def winner_of(value: object) -> Winner | None:
    """A, B or TIE where the value says exactly that, in any of its usual forms."""
    if not isinstance(value, str):
        return None
    direct = DIRECT_WINNERS.get(value)
    if direct is not None:
        return direct
    if len(value) > 60:
        return None
    plain = unicodedata.normalize("NFKC", value).strip(_TRIM).casefold()
    if _TIE.fullmatch(plain):
        return "TIE"
    plain = plain.removeprefix("[[").removesuffix("]]").strip(_TRIM)
    ranked = _RANKED_LABEL.fullmatch(plain)
    if ranked is not None:
        return ranked_winner(ranked)
    match = _LABEL.fullmatch(plain) or _ORDINAL_LABEL.fullmatch(plain)
    return None if match is None else letter(match[match.lastindex or 0])


_FIRST = ("A", "1", "一")


def letter(name: str) -> Literal["A", "B"]:
    """Which response a name ends in, or its place says."""
    plain = name.strip("()（） ").upper()
    first = plain.endswith(_FIRST) or plain.startswith(("FIRST", "FORMER", "第一", "前者"))
    return "A" if first else "B"


_ONE_OF_TWO = re.compile(rf"{NOUN}\s?1(?![A-Za-z0-9])")
_TWO_OF_TWO = re.compile(rf"{NOUN}\s?2(?![A-Za-z0-9])")


def calls_by_number(text: str) -> bool:
    """Whether the responses are called 1 and 2, so that a number alone may name one."""
    return _ONE_OF_TWO.search(text) is not None and _TWO_OF_TWO.search(text) is not None


def ranked_winner(match: re.Match[str]) -> Winner | None:
    left, right = letter(match["left"]), letter(match["right"])
    if left == right:
        return None
    if match["sign"][0] in "=≈":
        return "TIE"
    return left if match["sign"][0] in ">＞≻≫" else right


_WIDE = {code: code - 0xFEE0 for code in (*range(0xFF21, 0xFF3B), *range(0xFF41, 0xFF5B))}
_INVISIBLE = (0xA0, 0xFEFF, *range(0x200B, 0x2010), *range(0x202A, 0x202F), *range(0x2060, 0x206A))
_PLAIN = _WIDE | dict.fromkeys(_INVISIBLE, 0x20)
# Tags that set a text in type, or name it a verdict (an opening one is its label, as in
# "verdict:"); those that quote are `quotations`'.
_TYPESETTING = re.compile(
    r"(?P<block></?(?:p|div|center|h[1-6]|br)(?:\s[^<>\n]{0,80})?/?>)"
    r"|<(?P<close>/?)(?P<label>(?:final_)?(?:verdict|winner|decision|judge?ment|answer|choice)"
    r"|preference|result)>"
    r"|</?(?:b|i|u|em|strong|span|font|mark)(?:\s[^<>\n]{0,80})?>",
    re.IGNORECASE,
)


def plainly(text: str) -> str:
    """The text to read by: plain letters, spaces and line ends, every character at its place."""
    text = text.replace("\r\n", " \n")
    if "<" in text:
        text = _TYPESETTING.sub(_untagged, text)
    return text if text.isascii() else text.translate(_PLAIN)


def _untagged(tag: re.Match[str]) -> str:
    if tag["label"] and not tag["close"]:
        return f" {tag['label']}:"
    return " " * (len(tag[0]) - 1) + ("\n" if tag["block"] else " ")


# The contract's fields, and what they are called, in lower case and without punctuation.
_SPELLINGS: Final[dict[str, str]] = {
    "analysis": "analysis 分析 各自分析 逐一分析",
    "comparison": "comparison comparisons criteria criteriacomparison 比较 对比 逐项比较 逐项对比"
    " 标准比较 标准对比",
    # Also where a tool call holds what it was called with.
    "result": "result finalresult overallresult overall evaluation finalevaluation final conclusion"
    " finalconclusion assessment overallassessment output 最终 结果 最终结果 总体结果 结论 最终结论"
    " 总体 评判结果 评估结果 arguments parameters input function functioncall toolcall toolcalls",
    "winner": "winner finalwinner overallwinner 获胜者 胜者 胜出者 获胜方 胜方 赢家 最终获胜者"
    " 优胜者",
    "verdict": "verdict finalverdict overallverdict choice decision finaldecision judgment"
    " judgement"
    " finaljudgment finaljudgement betterresponse preferredresponse bestresponse betteranswer"
    " bestanswer preferredanswer selectedresponse chosenresponse finalchoice winningresponse"
    " winninganswer bettermodel bestmodel preferredmodel winningmodel betterassistant"
    " preferredassistant 判定 最终判定 裁决 更好的响应 最佳回答 更好的回答 最佳响应 最终选择",
    # Words that also label other things: a verdict only where a response stands under them.
    "preference": "preference preferred better best selection selected chosen pick vote"
    " overallpreference betteroption preferredoption 选择 偏好 更好",
    # Words that may also name what was asked in the prompt: a verdict only where nothing else is.
    "answer": "answer finalanswer response label option 答案 最终答案 选项",
    "confidence": "confidence 置信度 信心 信心度 置信水平",
    "reasoning": "reasoning reason reasons rationale explanation overallreasoning 理由 推理 原因"
    " 解释"
    " 说明 推理过程",
    "criterion": "criterion criterionname name 标准 准则 评判标准 评价标准 评估标准 评判准则 维度",
    "{}_assessment": "{}assessment response{}assessment assessment{} assessmentof{} {}评估 {}评价"
    " {}的评估 {}的评价 响应{}评估 响应{}评价 响应{}的评估 响应{}的评价 对{}的评估 对{}的评价"
    " 对响应{}的评估"
    " 对响应{}的评价",
    "strengths": "strengths strength pros 优点 优势 长处",
    "weaknesses": "weaknesses weakness cons 缺点 劣势 不足 弱点 缺陷",
    "differentiators": "differentiators keydifferentiators differentiator 差异点 区别 差异 关键差异"
    " 主要差异 关键差异点 区分点 关键区别",
    "response_{}": "response{} {} assistant{} 响应{} 回答{} 回复{}",
}
_CANONICAL: Final = {
    word.replace("{}", side): name.replace("{}", side)
    for name, words in _SPELLINGS.items()
    for word in words.split()
    for side in "ab"
}


@lru_cache(maxsize=1024)
def _fold(key: str) -> str | None:
    folded = unicodedata.normalize("NFKC", key).casefold()
    return _CANONICAL.get("".join(c for c in folded if c.isalnum()))


# The spellings that the prompt asks for, looked up before any folding.
NATIVE_FIELDS: Final = {
    "responseA": "response_a",
    "responseB": "response_b",
    "aAssessment": "a_assessment",
    "bAssessment": "b_assessment",
    **{name: name for name in ("analysis", "strengths", "weaknesses", "comparison", "criterion")},
    **{name: name for name in ("winner", "reasoning", "result", "differentiators", "confidence")},
}


def field_name(key: str) -> str | None:
    """The contract's name for a key of an answer, in whatever case or language it was written."""
    return NATIVE_FIELDS.get(key) or (_fold(key) if len(key) <= 40 else None)


_REFUSAL = re.compile(
    r"(?:i'?m sorry|i am sorry|sorry|i apologi[sz]e|unfortunately|as an ai(?: language model)?"
    r"|i regret|抱歉|很抱歉|对不起|非常抱歉)?[\s,，;；.。!！:：]{0,6}(?:but )?"
    r"(?:as an ai[^,.]{0,40}, )?"
    r"(?:i (?:cannot|can ?not|can't|can’t|am unable to|am not able to|won't|will not|must decline)"
    r"|i'm (?:unable|not able) to|i must (?:decline|refuse)"
    r"|(?:作为[^，。]{0,20}，)?我?(?:无法|不能|不便|拒绝)(?:协助|帮助|提供|回答|评判|评估|完成"
    r"|满足|对|为|比较|参与))",
    re.IGNORECASE,
)


def is_refusal(text: str) -> bool:
    """Whether the text opens by declining; only asked where no verdict was found."""
    return _REFUSAL.match(text.lstrip()[:300].replace("’", "'")) is not None
