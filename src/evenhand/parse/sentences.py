"""Verdicts that stand in a sentence or alone on the last line: LLMBar and the three classes."""

from __future__ import annotations

import re

from evenhand.contract import Winner
from evenhand.parse.outcome import Failure, Protocol, Reading, shown
from evenhand.parse.prose import Claim, claims, concluded
from evenhand.parse.quoting import disowned
from evenhand.parse.words import letter

_BARE_OUTPUT = re.compile(
    r"[\s*_`\"'>#]{0,6}(?:(?i:therefore|so|thus|answer|verdict|final answer|因此)[,:，：]?\s{1,2})?"
    r"(?:(?:(?i:output)|输出)\s{0,2}[(（]?(?P<id>[abAB])[)）]?|[(（](?P<paren>[ab])[)）])"
    r"[\s*_`\"'.。]{0,6}"
)
_DIGIT_LINE = re.compile(
    r"[\s*_`\"'>#(\[]{0,6}(?:(?i:(?:my\s|final\s)?(?:answer|choice|verdict|rating|option)|选择"
    r"|答案|结论)\s?"
    r"(?:is\s)?[:：]?\s{0,2})?[*_`(\[]{0,4}(?P<digit>[1-9])[\s*_`\"'.。)\]]{0,6}"
)
_CHOSEN = re.compile(
    r"(?i:\b(?:i\s(?:would\s|will\s)?(?:choose|select|pick|output|give|rate|answer)|my\s(?:choice"
    r"|answer|verdict"
    r"|rating)\sis|answer\sis|output\sis|verdict\sis)|选择(?:是|为)?|答案是|结论是)"
    r"[\s:：]{0,3}(?i:option\s|class\s|number\s"
    r"|选项)?[*_\"'(]{0,3}(?P<digit>[123])(?![\d.]\d)(?![A-Za-z0-9/])"
)
_UNFINISHED = re.compile(
    r"(?i:\b(?:therefore|thus|hence|overall|in conclusion)\b"
    r"[\s,]{0,3}(?:the\s)?(?:output)?[\s(]{0,3})$"
)
_FINISHED = (".", "。", "!", "！", "?", "？", ")", "）", '"', "”", "`", "*", "'", ":")
_DEBATERS = re.compile(r"(?:Assistant|助手|助理)\s?[12]")
_CLASS: dict[str, Winner] = {"1": "A", "2": "B", "3": "TIE"}


def last_line(text: str) -> str:
    return text.rstrip().rsplit("\n", 1)[-1][-400:]


def read_outputs(text: str) -> Reading | Failure:
    """LLMBar: `Output (a) is better`, or `Output (a)` alone."""
    bare = _BARE_OUTPUT.fullmatch(text[:80]) if len(text) <= 80 else None
    if bare is not None:
        return Reading(letter(bare["id"] or bare["paren"]), "llmbar")
    made = [claim for claim in claims(text, ties=False) if _of_output(claim)]
    closing = _BARE_OUTPUT.fullmatch(last_line(text))
    if closing is not None:
        # The last line is the last word, whatever was weighed before it, but not another verdict.
        last = letter(closing["id"] or closing["paren"])
        if any(claim.concluding and claim.winner != last for claim in made):
            return Failure("contradiction", "the last line and a conclusion before it differ")
        return Reading(last, "llmbar")
    verdict = concluded(made)
    if verdict == "none":
        return Failure(
            "no_verdict", f"no output is called better; it ends {shown(last_line(text))}"
        )
    if verdict == "split":
        return _split(made)
    winner = verdict[0]
    ending = text.rstrip()[-60:]
    firm = any(c.concluding or c.alone for c in made if c.winner == winner)
    if _UNFINISHED.search(ending) or (not firm and not ending.endswith(_FINISHED)):
        return Failure("truncated", f"it stops in the middle, before a conclusion: {shown(ending)}")
    return Reading(winner, "llmbar")


def _of_output(claim: Claim) -> bool:
    if "output" in claim.noun.casefold() or "输出" in claim.noun:
        return True
    return claim.noun.startswith(("(a)", "(b)"))


def _split(made: list[Claim]) -> Failure:
    said = ", ".join(dict.fromkeys(claim.winner for claim in made))
    return Failure("contradiction", f"the text calls more than one of them better: {said}")


def read_class(text: str) -> Reading | Failure:
    """Three classes: the last line is 1, 2 or 3, alone or in a sentence that chooses it."""
    closing = last_line(text)
    alone = _DIGIT_LINE.fullmatch(closing)
    if alone is not None:
        winner = _CLASS.get(alone["digit"])
        if winner is None:
            return Failure("off_menu", f"the last line is {alone['digit']}, not 1, 2 or 3")
        return Reading(winner, "three-class")
    chosen = {match["digit"] for match in _CHOSEN.finditer(closing)}
    if (
        len(chosen) == 1
        and "?" not in closing
        and not re.search(
            r"(?i)\b(?:not|cannot|if|would be)\b|n't|不|如果",
            closing[: closing.find(next(iter(chosen)))][-25:],
        )
    ):
        return Reading(_CLASS[chosen.pop()], "three-class")
    if chosen:
        return Failure("contradiction", f"the last line chooses more than one: {shown(closing)}")
    made = [
        claim for claim in claims(text) if _DEBATERS.search(claim.noun) or claim.winner == "TIE"
    ]
    verdict = concluded(made)
    if isinstance(verdict, tuple) and (verdict[1].concluding or _in_last_line(text, verdict[1])):
        return Reading(verdict[0], "three-class")
    if verdict == "split":
        return _split(made)
    return Failure("no_verdict", f"the last line names no class: {shown(closing)}")


def _in_last_line(text: str, claim: Claim) -> bool:
    return claim.start >= len(text.rstrip()) - len(last_line(text))


def read_conclusion(text: str, protocol: Protocol) -> Reading | Failure:
    """A closing sentence such as "Therefore, Assistant A is better", where no mark was given."""
    made = claims(text)
    verdict = concluded(made)
    if verdict == "split":
        return _split(made)
    if verdict == "none":
        return Failure("no_verdict", f"no verdict is stated; it ends {shown(last_line(text))}")
    winner, claim = verdict
    if disowned(text[claim.start : claim.end + 400], claim.end - claim.start, winner):
        return Failure(
            "contradiction", f"the verdict {winner} is said to be a response's own words"
        )
    if not (claim.concluding or claim.own_line or _in_last_line(text, claim)):
        return Failure(
            "no_verdict", "a response is called better on the way, but nothing concludes"
        )
    return Reading(winner, protocol)
