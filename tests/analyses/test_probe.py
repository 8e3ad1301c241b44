"""Each probe catches the judge that has its vice, and blames nobody else."""

from __future__ import annotations

from pathlib import Path

import pytest

import probe_judges as judges
from evenhand.contract import Locale, read_criteria
from evenhand.errors import InputError
from evenhand.judges.protocol import Completion, JudgeCall, Traits
from evenhand.judges.registry import JudgeOptions, open_judge
from evenhand.judging.config import JudgeConfig
from evenhand.runs import RunOptions
from evenhand.settings import load_settings
from evenhand.store import open_store
from evenhand.trust.probes.cases import PROBE_NAMES, probe_cases
from evenhand.trust.probes.scores import ProbeScore
from parts import need_model
from probe_judges import Vice, answers_with, judge_with, probed
from scripted import ScriptedJudge, answer_json, letter_completion

# Each vice, and the probes that blame it: all their cases, or those in which the vice can speak.
VICES: dict[str, tuple[Vice, set[str]]] = {
    "prefers the first": (judges.prefers_the_first, set(PROBE_NAMES)),
    "sees differences": (judges.knows_which_is_a, {"identical"}),
    "is blind to order": (judges.counts_characters, {"shuffled"}),
    "prefers longer": (judges.prefers_longer, {"padded", "longer"}),
    "prefers shorter": (
        judges.prefers_shorter,
        {"truncated", "empty", "flattery", "injection", "refusal"},
    ),
    "loves silence": (judges.loves_silence, {"empty"}),
    "loves flattery": (judges.loves_flattery, {"flattery"}),
    "obeys": (judges.obeys, {"injection"}),
    "loves refusals": (judges.loves_refusals, {"refusal"}),
    "loves markdown": (judges.loves_markdown, {"markdown"}),
    "reads English only": (
        judges.reads_english_only,
        set(PROBE_NAMES),
    ),
}


def scores_of(report_probes: tuple[ProbeScore, ...]) -> dict[str, ProbeScore]:
    return {str(each.probe): each for each in report_probes}


async def test_a_good_judge_is_not_blamed(tmp_path: Path) -> None:
    cases = probe_cases()
    report = await probed(judge_with(judges.no_vice, cases), cases, tmp_path, min_score=0.95)
    assert {each.probe for each in report.probes} == set(PROBE_NAMES)
    for each in report.probes:
        assert (each.passed, each.failing) == (each.n, ())
        assert each.share.value == 1
    assert report.overall.passed == report.overall.n
    assert report.ruling == "pass"


@pytest.mark.slow
@pytest.mark.parametrize("name", VICES)
async def test_a_vice_is_caught_by_its_probes_and_by_no_other(tmp_path: Path, name: str) -> None:
    vice, blaming = VICES[name]
    cases = probe_cases()
    report = await probed(judge_with(vice, cases), cases, tmp_path, min_score=0.95)
    assert {each.probe for each in report.probes if each.failing} == blaming
    assert report.ruling == "fail"
    for each in report.probes:
        assert each.n == each.passed + each.wrong + each.inconsistent
        assert len(each.failing) == each.wrong + each.inconsistent


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "probe"),
    [
        ("is blind to order", "shuffled"),
        ("prefers longer", "longer"),
        ("prefers longer", "padded"),
        ("loves silence", "empty"),
        ("prefers shorter", "truncated"),
        ("loves flattery", "flattery"),
        ("obeys", "injection"),
        ("loves refusals", "refusal"),
        ("loves markdown", "markdown"),
        ("reads English only", "languages"),
        ("sees differences", "identical"),
    ],
)
async def test_a_vice_fails_every_case_of_its_own_probe(
    tmp_path: Path, name: str, probe: str
) -> None:
    cases = probe_cases([probe])
    report = await probed(judge_with(VICES[name][0], cases), cases, tmp_path, min_score=0.5)
    (found,) = report.probes
    assert (found.passed, found.wrong) == (0, found.n)
    assert found.share.value == 0
    assert found.share.high is not None
    assert found.share.high < 0.5
    assert report.ruling == "fail"


async def test_a_place_that_decides_identical_responses_is_a_fault_of_position(
    tmp_path: Path,
) -> None:
    cases = probe_cases(["identical", "shuffled"])
    report = await probed(judge_with(judges.prefers_the_first, cases), cases, tmp_path)
    found = scores_of(report.probes)
    identical = found["identical"]
    assert (identical.passed, identical.wrong, identical.inconsistent) == (0, 0, identical.n)
    fault = "position bias: of two identical responses it chose the first"
    assert {case.fault for case in identical.failing} == {fault}
    (first, second) = identical.failing[0].answers
    # It chose what came first: the caller's A, and once they are exchanged the caller's B.
    assert (first.order, first.winner, second.order, second.winner) == (
        *("original", "A"),
        *("swapped", "B"),
    )
    other = found["shuffled"].failing[0].fault
    assert other == "the winner changed with the order: it chose whichever came first"


async def test_a_mean_of_two_orders_does_not_hide_a_fault_of_position(tmp_path: Path) -> None:
    """By letters a pair is decided on the mean, and that of identical responses is a tie."""
    cases = probe_cases(["identical"], ["en"])

    def first(call: JudgeCall) -> Completion:
        return letter_completion({"A": 0.9, "B": 0.05, "C": 0.05})

    judge = ScriptedJudge(first, Traits(modes=("letter",)))
    report = await probed(judge, cases, tmp_path)
    (found,) = report.probes
    assert (found.n, found.passed, found.inconsistent) == (12, 0, 12)


async def test_what_cannot_be_read_is_invalid_and_in_no_score(tmp_path: Path) -> None:
    cases = probe_cases(["refusal"], ["en"])
    good = answers_with(judges.no_vice, cases)
    mute = {case.id for case in cases[:4]}

    def answer(call: JudgeCall) -> str:
        return "I would rather not say." if call.pair.id in mute else good(call)

    report = await probed(ScriptedJudge(answer), cases, tmp_path, min_score=0.7)
    (found,) = report.probes
    assert (found.n, found.passed, found.invalid) == (12, 8, 4)
    assert (found.share.part, found.share.of) == (8, 8)
    assert {case.state for case in found.failing} == {"invalid"}
    assert all("no verdict" in said.text for case in found.failing for said in case.answers)
    # Had the four failed, it would be 8 of 12: the threshold lies between.
    assert found.share.low is not None
    assert report.ruling == "undecided"


async def test_the_two_languages_of_a_text_do_not_count_as_two_texts(tmp_path: Path) -> None:
    cases = probe_cases(["empty"])
    report = await probed(judge_with(judges.no_vice, cases), cases, tmp_path)
    (found,) = report.probes
    assert found.n == 16
    english, chinese = found.by_language
    assert (english.n, english.language, chinese.n, chinese.language) == (8, "en", 8, "zh")
    assert found.share.low is not None
    assert english.share.low is not None
    # Sixteen verdicts that all agree are worth eight texts: no narrower than one language alone.
    assert found.share.low <= english.share.low
    # Wilson (1927) for 8 of 8: 8 / (8 + 1.96^2) = 0.676.
    assert english.share.low == pytest.approx(8 / (8 + 1.959964**2))


async def test_each_language_is_asked_with_the_prompt_in_that_language(tmp_path: Path) -> None:
    cases = probe_cases(["empty"])
    judge = judge_with(judges.no_vice, cases)
    report = await probed(judge, cases, tmp_path)
    for call in judge.calls:
        system = call.messages[0].text
        assert ("You are an impartial judge" in system) == str(call.pair.id).startswith("en-")
    assert [run.language for run in report.runs] == ["en", "zh"]
    assert report.runs[0].prompt_version != report.runs[1].prompt_version


async def test_the_same_again_asks_nothing(tmp_path: Path) -> None:
    cases = probe_cases(["empty", "refusal"])
    judge = judge_with(judges.no_vice, cases)
    first = await probed(judge, cases, tmp_path)
    asked = len(judge.calls)
    again = await probed(judge, cases, tmp_path)
    assert len(judge.calls) == asked == 2 * len(cases)
    assert [run.run for run in again.runs] == [run.run for run in first.runs]
    assert again.probes == first.probes
    # A part of it is another run, and shares its passes.
    part = probe_cases(["empty"])
    of_part = await probed(judge, part, tmp_path)
    assert len(judge.calls) == asked
    assert sum(run.reused_passes or 0 for run in of_part.runs) == 2 * len(part)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("cap", "languages"), [(10, ["en"]), (16, ["en", "zh"]), (20, ["en", "zh"])]
)
async def test_a_cap_holds_for_both_languages_together(
    tmp_path: Path, cap: int, languages: list[Locale]
) -> None:
    """Eight pairs in each language are 16 calls in each."""
    cases = probe_cases(["empty"])
    judge = judge_with(judges.no_vice, cases)
    options = RunOptions(max_calls=cap, concurrency=1)
    report = await probed(judge, cases, tmp_path, options=options, min_score=0.1)
    assert len(judge.calls) <= cap
    assert report.stopped_by == "max-calls"
    assert [run.language for run in report.runs if run.run is not None] == languages
    assert report.overall.pending == report.overall.n - report.overall.passed > 0
    assert report.ruling == "undecided"
    whole = await probed(judge, cases, tmp_path)
    assert (whole.overall.pending, whole.stopped_by) == (0, None)
    assert len(judge.calls) == 32


async def test_a_tie_without_asking_is_no_answer_of_the_judge(tmp_path: Path) -> None:
    cases = probe_cases(["identical"], ["en"])
    judge = judge_with(judges.prefers_the_first, cases)
    report = await probed(judge, cases, tmp_path, config=lambda each: JudgeConfig(locale=each))
    assert len(judge.calls) == 24
    assert report.overall.inconsistent == 12


async def test_pairs_are_found_in_the_store_by_their_ids_and_probes(tmp_path: Path) -> None:
    cases = probe_cases(["flattery"], ["zh"])
    report = await probed(judge_with(judges.loves_flattery, cases), cases, tmp_path)
    run = report.runs[0].run
    assert run is not None
    with open_store(tmp_path / "store.db") as store:
        found = store.runs.find(run)
        assert found is not None
        item = store.verdicts.item(found.id, report.probes[0].failing[0].ids[0])
    assert item is not None
    assert item.item.tags == ("flattery",)
    assert item.item.label == cases[0].sound


async def test_a_case_tells_what_the_judge_said_in_each_order(tmp_path: Path) -> None:
    cases = probe_cases(["longer"], ["en"])[:1]
    good = cases[0].sound

    def answer(call: JudgeCall) -> str:
        shown = "B" if (call.order == "original") == (good == "A") else "A"
        return answer_json(shown, reasoning=f"Response {shown} has more to say.")

    report = await probed(ScriptedJudge(answer), cases, tmp_path)
    (case,) = report.probes[0].failing
    assert (case.state, case.expected, case.winners) == ("wrong", "A or TIE", ("B",))
    assert case.fault == "prefers longer responses"
    # Both in the caller's labels.
    assert [said.text for said in case.answers] == ["Response B has more to say."] * 2


async def test_a_threshold_that_is_no_share_is_refused(tmp_path: Path) -> None:
    cases = probe_cases(["empty"], ["en"])
    with pytest.raises(InputError, match=r"the minimum score is 90"):
        await probed(judge_with(judges.no_vice, cases), cases, tmp_path, min_score=90)


@pytest.mark.embedded
async def test_the_embedded_model_is_probed(tmp_path: Path) -> None:
    cache = load_settings().cache_dir
    need_model()
    cases = probe_cases(["identical"], criteria=read_criteria(["helpfulness"]))
    # It takes seconds for a pair and its twin: the shortest ones do.
    shortest = min(cases, key=lambda case: len(case.pair.prompt) + len(case.pair.response_a))
    few = [case for case in cases if case.twin == shortest.twin]
    local = open_judge("local", JudgeOptions(cache_dir=cache))
    try:
        report = await probed(local, few, tmp_path, min_score=0.9)
    finally:
        await local.close()
    assert report.judge_caveat is not None
    assert [run.pairs for run in report.runs] == [1, 1]
    scored = report.overall
    assert scored.n == 2 == scored.passed + scored.wrong + scored.inconsistent
    # Two verdicts on one text do not show that anybody is above nine tenths.
    assert report.ruling in ("fail", "undecided")
