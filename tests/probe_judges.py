"""Judges with one vice each, and one with none, by what the probes show them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from evenhand.contract import Locale, Winner, flip
from evenhand.judges.protocol import Judge, JudgeCall
from evenhand.judging.config import JudgeConfig
from evenhand.runs import JudgePlan, RunOptions
from evenhand.store import open_store
from evenhand.trust.probes.cases import LANGUAGES, ProbeCase
from evenhand.trust.probes.runs import probe_judge
from evenhand.trust.probes.scores import ProbeReport
from evenhand.trust.probes.texts import probe_texts
from scripted import ScriptedJudge, answer_json

# What a judge makes of two texts as they are shown; None where its vice has no say.
Vice = Callable[[str, str, JudgeCall], Winner | None]


def no_vice(first: str, second: str, call: JudgeCall) -> Winner | None:
    return None


def prefers(liked: Callable[[str], bool]) -> Vice:
    def chosen(first: str, second: str, call: JudgeCall) -> Winner | None:
        if liked(first) == liked(second):
            return None
        return "A" if liked(first) else "B"

    return chosen


def prefers_longer(first: str, second: str, call: JudgeCall) -> Winner | None:
    """By a tenth, and by its letters, so that the signs of markdown do not count."""
    one, other = (sum(map(str.isalnum, text)) for text in (first, second))
    if one > 1.1 * other:
        return "A"
    return "B" if other > 1.1 * one else None


def prefers_shorter(first: str, second: str, call: JudgeCall) -> Winner | None:
    longer = prefers_longer(first, second, call)
    return None if longer is None else flip(longer)


def prefers_the_first(first: str, second: str, call: JudgeCall) -> Winner | None:
    return "A"


def knows_which_is_a(first: str, second: str, call: JudgeCall) -> Winner | None:
    """Sees a difference between identical texts, whichever comes first."""
    if first != second:
        return None
    return "A" if call.order == "original" else "B"


def counts_characters(first: str, second: str, call: JudgeCall) -> Winner | None:
    """Blind to the order of what is said."""
    return "TIE" if sorted(first) == sorted(second) else None


def reads_english_only(first: str, second: str, call: JudgeCall) -> Winner | None:
    if first.isascii() and second.isascii():
        return None
    return flip(sound_as_shown(call))


def _injected(text: str) -> bool:
    pieces = (
        piece
        for language in LANGUAGES
        for injection in probe_texts(language).injections
        for piece in injection.text.split("{answer}")
    )
    return any(piece.partition("{label}")[0].strip() in text for piece in pieces if piece.strip())


def _one_of(kind: str) -> Callable[[str], bool]:
    known = {each.text for language in LANGUAGES for each in getattr(probe_texts(language), kind)}
    return lambda text: text in known


obeys = prefers(_injected)
loves_flattery = prefers(_one_of("flatteries"))
loves_refusals = prefers(_one_of("refusals"))
loves_markdown = prefers(lambda text: "**" in text)
loves_silence = prefers(lambda text: not text.strip())

_CASES: dict[str, ProbeCase] = {}


def know(cases: Sequence[ProbeCase]) -> None:
    _CASES.update({case.id: case for case in cases})


def sound_as_shown(call: JudgeCall) -> Winner:
    sound = _CASES[str(call.pair.id)].sound
    return sound if call.order == "original" else flip(sound)


def answers_with(vice: Vice, cases: Sequence[ProbeCase]) -> Callable[[JudgeCall], str]:
    """It says what is expected, for it knows the cases, unless its vice speaks."""
    know(cases)

    def answer(call: JudgeCall) -> str:
        texts = (call.pair.response_a, call.pair.response_b)
        first, second = texts if call.order == "original" else texts[::-1]
        winner = vice(first, second, call)
        if winner is None:
            expected = _CASES[str(call.pair.id)].expected
            winner = "TIE" if "TIE" in expected else sound_as_shown(call)
        return answer_json(winner, criteria=[(c.name, winner) for c in call.pair.criteria])

    return answer


def judge_with(vice: Vice, cases: Sequence[ProbeCase]) -> ScriptedJudge:
    return ScriptedJudge(answers_with(vice, cases))


async def probed(
    judge: Judge,
    cases: Sequence[ProbeCase],
    directory: Path,
    *,
    options: RunOptions | None = None,
    min_score: float | None = None,
    config: Callable[[Locale], JudgeConfig] | None = None,
    file: str = "store.db",
) -> ProbeReport:
    plans = {each: JudgePlan(judge, (config or _config)(each)) for each in LANGUAGES}
    with open_store(directory / file) as store:
        return await probe_judge(
            plans,
            cases,
            options or RunOptions(),
            store=store,
            min_score=min_score,
        )


def _config(language: Locale) -> JudgeConfig:
    return JudgeConfig(locale=language)
