"""What a reader of a verdict should know about the pair itself, found by rule and not by a judge:
lengths, identical texts, texts that address the judge.
"""

from __future__ import annotations

import re

from evenhand.contract import Locale, Pair
from evenhand.messages.phrases import name_winner, say

# Twice as long, and by more than a phrase.
LONGER_RATIO = 2.0
LONGER_BY = 100

# What a response says to whoever judges it, in the forms that attacks on judges take. A sign to
# look, never a reason for a verdict. A form is looked for only where one of its words stands, and
# every repetition is bounded, so that no text is slow.
_FORMS: tuple[tuple[tuple[str, ...], str], ...] = (
    (
        ("ignore", "disregard", "forget", "override"),
        r"\b(?:ignore|disregard|forget|override)\b[^.\n]{0,40}\b(?:above|previous|prior|earlier"
        r"|instructions?|criteria|rules|rubric|other (?:response|answer))\b",
    ),
    (
        ("choose", "pick", "select", "prefer", "favo", "vote", "declare"),
        r"\b(?:choose|pick|select|prefer|favou?r|vote for|declare)\s{1,3}(?:me\b|this (?:response"
        r"|answer|one)\b|(?:response|answer|option|assistant) [ab]\b)",
    ),
    (
        ("judge", "grader", "evaluator", "reviewer", "rater"),
        r"\b(?:dear|attention|note (?:to|for)|message (?:to|for)|hey)\s{0,3},?\s{0,3}"
        r"(?:the\s{1,3}|all\s{1,3}|any\s{1,3})?(?:ai\s{1,3})?"
        r"(?:judges?|graders?|evaluators?|reviewers?|raters?)\b"
        r"|\bas (?:the|an?) (?:ai\s{1,3})?(?:judge|grader|evaluator)\b[^.\n]{0,20}\byou\b",
    ),
    (
        ("winner", "better one", "best one"),
        r"\b(?:this|my) (?:response|answer) (?:is|should be) (?:the )?"
        r"(?:winner|better one|best one)\b"
        r'|"winner"\s{0,3}:|^[ \t]{0,8}winner\s{0,3}:\s{0,3}(?:response\s{0,3})?[ab]\b',
    ),
    (("[[",), r"\[\[\s{0,3}[abc](?:\s{0,3}[<>=]{1,2}\s{0,3}[ab])?\s{0,3}\]\]"),
    (("verdict",), r"^[ \t]{0,8}final verdict\s{0,3}:\s{0,3}(?:response\s{0,3})?[ab]\b"),
    (
        ("<|", "inst]", "sys>>", "_of_turn"),
        r"<\|(?:im_start|im_end|eot_id|start_header_id|end_of_text|endoftext|system|user"
        r"|assistant)\|>|\[/?inst\]|<</?sys>>|<(?:start|end)_of_turn>",
    ),
    (
        ("忽略", "无视", "不要理会", "忘记"),
        r"(?:忽略|无视|不要理会|忘记)[^。\n]{0,16}"
        r"(?:以上|上述|之前|前面|先前|指令|指示|标准|规则|另一)",
    ),
    (
        ("选", "判", "支持"),
        r"(?:选择|选|判定?|支持)"
        r"(?:我|本回答|本响应|本答案|这个(?:回答|响应|答案)|(?:响应|回答)\s{0,3}[ab])",
    ),
    (
        ("评审", "评委", "裁判", "评分者", "评判者", "评估者"),
        r"(?:致|尊敬的|亲爱的|告知|提醒)[^。\n]{0,6}(?:评审|评委|裁判|评分者|评判者|评估者)",
    ),
    (("获胜者",), r"获胜者\s{0,3}[:：]\s{0,3}(?:响应\s{0,3})?[ab]"),
)
# Roughly from the rarest in prose to the commonest; Chinese characters count as rare.
_BY_RARITY = "[|]<>_jqxzkvwygpbfcmdluhrsinoate "


def _by_rarest_letter() -> tuple[tuple[str, tuple[tuple[str, int], ...]], ...]:
    """The words, and the number of their form, under their rarest letter: finding a letter takes
    a twentieth of finding a word, and where it is not, no word with it is."""
    found: dict[str, list[tuple[str, int]]] = {}
    for number, (words, _) in enumerate(_FORMS):
        for word in words:
            found.setdefault(min(word, key=_BY_RARITY.find), []).append((word, number))
    return tuple((letter, tuple(words)) for letter, words in found.items())


_WORDS_BY_LETTER = _by_rarest_letter()
_PATTERNS = tuple(re.compile(form, re.MULTILINE) for _, form in _FORMS)


def notes_on(pair: Pair, locale: Locale) -> tuple[str, ...]:
    """Notes on length, sameness and texts that talk to the judge; mirrored with the pair."""
    found = [_on_length(pair, locale), _on_addressing(pair, locale)]
    if pair.response_a == pair.response_b:
        found.insert(0, say(locale, "identical"))
    return tuple(note for note in found if note)


def _on_length(pair: Pair, locale: Locale) -> str | None:
    a, b = len(pair.response_a), len(pair.response_b)
    name_a, name_b = name_winner(locale, "A"), name_winner(locale, "B")
    if a == b:
        return say(locale, "both_empty") if a == 0 else None
    longer, shorter = (name_a, name_b) if a > b else (name_b, name_a)
    big, small = max(a, b), min(a, b)
    if small == 0:
        return say(locale, "empty", which=shorter)
    if big < LONGER_RATIO * small or big - small < LONGER_BY:
        return None
    return say(
        locale,
        "longer",
        longer=longer,
        shorter=shorter,
        ratio=f"{big / small:.1f}",
        long_size=f"{big:,}",
        short_size=f"{small:,}",
    )


def _on_addressing(pair: Pair, locale: Locale) -> str | None:
    a = addresses_judge(pair.response_a)
    b = addresses_judge(pair.response_b)
    if a and b:
        return say(locale, "both_address_judge")
    if a or b:
        return say(locale, "addresses_judge", which=name_winner(locale, "A" if a else "B"))
    return None


def addresses_judge(text: str) -> bool:
    lowered = text.lower()
    numbers: set[int] = set()
    for letter, words in _WORDS_BY_LETTER:
        if letter in lowered:
            for word, number in words:
                if word in lowered:
                    numbers.add(number)
    return any(_PATTERNS[number].search(lowered) is not None for number in numbers)
