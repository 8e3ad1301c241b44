"""Judges with one vice each, and one with none, by what the probes show them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from evenhand.analyses.judging import Stage, judge_stages
from evenhand.analyses.probe import ProbeReport, by_language, check, compute
from evenhand.analyses.registry import AnalysisSubject
from evenhand.analysis_options import ProbeOptions
from evenhand.contract import Locale, Winner, flip
from evenhand.judges.protocol import Judge, JudgeCall
from evenhand.judging.config import JudgeConfig
from evenhand.report.lookup import find_run
from evenhand.runs import JudgePlan, RunOptions, RunSummary, judge_pairs
from evenhand.settings import Settings
from evenhand.store import open_store
from evenhand.trust.probes.cases import LANGUAGES, ProbeCase, ProbePairs
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


class _Kept:
    """A judge that stays open after a stage: its test asks it again and closes it."""

    def __init__(self, judge: Judge) -> None:
        self._judge = judge

    def __getattr__(self, name: str) -> Any:
        return getattr(self._judge, name)

    async def close(self) -> None:
        pass


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
    """As `evenhand probe` does it, with a judge of the test."""
    languages = by_language(cases)
    asked = ProbeOptions(
        probes=tuple(dict.fromkeys(case.probe for case in cases)),
        locale="both" if len(languages) > 1 else next(iter(languages)),
        min_score=min_score,
    )
    check(asked)
    with open_store(directory / file) as store:

        async def judged(stage: Stage, left: RunOptions) -> RunSummary:
            return await judge_pairs(stage.sources, [stage.plan], left, store=store)

        kept: Any = _Kept(judge)
        stages = [
            Stage(
                ProbePairs(language, its),
                JudgePlan(kept, replace((config or _config)(language), ask_identical=True)),
                language,
            )
            for language, its in languages.items()
        ]
        ran = await judge_stages(stages, options or RunOptions(), judged)
        runs = tuple(find_run(store, each.summary.run) for each in ran)
        report = compute(AnalysisSubject(store, runs, Settings(), judged=ran), asked)
    assert isinstance(report, ProbeReport)
    return report


def _config(language: Locale) -> JudgeConfig:
    return JudgeConfig(locale=language)
