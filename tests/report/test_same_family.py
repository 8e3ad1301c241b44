"""Judges of a contestant's family: what conclusions and rankings say of them."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from evenhand.analyses.gate import gate_run
from evenhand.analyses.rank import rank_runs
from evenhand.analysis_options import RankOptions
from evenhand.messages import Message, render
from evenhand.report.conclusions import Conclusions, conclude
from evenhand.store import Store
from judged_runs import judged_run

GPT, CLAUDE, QWEN = "openai:gpt-5-mini", "anthropic:claude-sonnet-4-5", "openai:qwen2.5-72b"
AGAINST_LLAMA = ("gpt-4o", "llama-3-70b")


def concluded(
    store: Store,
    said: dict[str, str],
    models: Sequence[tuple[str | None, str | None]],
    *,
    labels: str = "",
    families: tuple[tuple[str, tuple[str, ...]], ...] = (),
) -> Conclusions:
    judged_run(store, "r", said, models=models, labels=labels)
    return conclude(store, "r", families=families)


def effect_notes(concluded: Conclusions) -> list[str]:
    return [note for note in concluded.notes if "family" in note]


def test_a_conclusion_says_that_a_contestant_is_of_the_judges_family(store: Store) -> None:
    (only,) = concluded(store, {GPT: "AAAAABBB"}, [AGAINST_LLAMA] * 8).conclusions
    assert only.sentence.endswith("gpt-4o is from the judge's own family (gpt).")
    assert render(only.messages, "zh").endswith("gpt-4o 与评审属于同一家族（gpt）。")
    check = gate_run(store, "r").checks[0]
    assert check.sentence == only.sentence


def test_two_contestants_of_the_judges_family_are_named_together(store: Store) -> None:
    (only,) = concluded(store, {GPT: "AAAAABBB"}, [("gpt-4o", "o3-mini")] * 8).conclusions
    assert only.sentence.endswith("Both are from the judge's own family (gpt).")


def test_nothing_is_said_of_families_that_are_not_known_or_not_shared(store: Store) -> None:
    report = concluded(store, {CLAUDE: "AAAABBBB"}, [AGAINST_LLAMA] * 4 + [("old", "new")] * 4)
    assert not any("family" in each.sentence for each in report.conclusions)
    assert effect_notes(report) == []
    assert report.family_effects == ()


def test_own_entries_make_a_model_of_the_judges_family(store: Store) -> None:
    entries = (("in-house", ("gpt",)),)
    report = concluded(
        store, {GPT: "AAAAABBB"}, [("in-house-3", "llama-3-70b")] * 8, families=entries
    )
    assert "in-house-3 is from the judge's own family (gpt)" in report.conclusions[0].sentence


def test_one_judge_without_labels_says_that_the_effect_cannot_be_had(store: Store) -> None:
    report = concluded(store, {GPT: "AAAAABBB"}, [AGAINST_LLAMA] * 8)
    assert report.family_effects == ()
    (note,) = effect_notes(report)
    assert "or the responses were simply better" in note


def test_judges_of_other_families_on_the_same_pairs_measure_the_effect(store: Store) -> None:
    said = {GPT: "AAAAAABB", CLAUDE: "ABABABAB"}
    report = concluded(store, said, [AGAINST_LLAMA] * 8)
    (effect,) = report.family_effects
    # Differences of gpt-4o's score: 0 1 0 1 0 1 -1 0.
    assert effect.difference.value == 0.25
    assert (effect.family, effect.judges, effect.models) == ("gpt", (GPT,), ("gpt-4o",))
    assert (effect.compared_with, effect.others) == ("judges", (CLAUDE,))
    assert effect.neutral
    assert effect.pairs == effect.prompts == 8
    (note,) = effect_notes(report)
    assert "openai:gpt-5-mini scored gpt-4o +25.0 points (" in note
    assert note.endswith(" relative to anthropic:claude-sonnet-4-5 on the same 8 pairs")


def test_the_side_on_which_the_family_stands_makes_no_difference(store: Store) -> None:
    letters = str.maketrans("AB", "BA")
    models = [AGAINST_LLAMA, AGAINST_LLAMA[::-1]] * 4

    def turned(said: str) -> str:
        return "".join(
            each.translate(letters) if place % 2 else each for place, each in enumerate(said)
        )

    report = concluded(store, {GPT: turned("AAAAAABB"), CLAUDE: turned("ABABABAB")}, models)
    assert report.family_effects[0].difference.value == 0.25


def test_ties_and_inconsistent_pairs_prefer_neither_and_invalid_ones_are_left_out(
    store: Store,
) -> None:
    report = concluded(store, {GPT: "TIAAAABX", CLAUDE: "AABBTABA"}, [AGAINST_LLAMA] * 8)
    (effect,) = report.family_effects
    # ½-1, ½-1, 1, 1, ½, 0, 0 of seven pairs.
    assert effect.pairs == 7
    assert effect.difference.value == pytest.approx(1.5 / 7)


def test_a_judge_of_the_rivals_family_is_no_measure_where_there_is_another(store: Store) -> None:
    models = [("gpt-4o", "claude-3-opus")] * 8
    said = {GPT: "AAAAAABB", CLAUDE: "BBBBBBBB", QWEN: "ABABABAB"}
    by_family = {each.family: each for each in concluded(store, said, models).family_effects}
    assert by_family["gpt"].others == (QWEN,)
    assert by_family["gpt"].difference.value == 0.25
    # Claude's own: 0 0 0 … against its rival's score by Qwen: B 1, against 0 1 0 1 0 1 0 1.
    assert by_family["claude"].others == (QWEN,)
    assert by_family["claude"].difference.value == 0.5


def test_only_a_judge_of_the_rivals_family_leaves_both_preferences_in_it(store: Store) -> None:
    said = {GPT: "AAAAAABB", CLAUDE: "ABABABAB"}
    report = concluded(store, said, [("gpt-4o", "claude-3-opus")] * 8)
    assert [each.neutral for each in report.family_effects] == [False, False]
    assert all("both preferences are included" in note for note in effect_notes(report))


def test_a_judge_of_unknown_family_is_no_measure(store: Store) -> None:
    said = {GPT: "AAAAAABB", "openai:my-deployment": "ABABABAB"}
    report = concluded(store, said, [AGAINST_LLAMA] * 8)
    assert report.family_effects == ()


def test_labels_measure_the_effect_of_a_single_judge(store: Store) -> None:
    # Ten own pairs: people prefer gpt-4o in 6, the judge in 8.
    report = concluded(store, {GPT: "A" * 8 + "BB"}, [AGAINST_LLAMA] * 10, labels="A" * 6 + "BBBB")
    (effect,) = report.family_effects
    assert (effect.compared_with, effect.others, effect.pairs) == ("labels", (), 10)
    assert effect.difference.value == pytest.approx(0.2)
    assert effect.adjusted is None
    note = effect_notes(report)[0]
    assert "openai:gpt-5-mini scored gpt-4o +20.0 points (" in note
    assert note.endswith(" relative to the labels on the same 10 pairs")


def test_other_pairs_adjust_the_effect_whichever_side_their_models_stand_on(store: Store) -> None:
    # Twenty other pairs: people prefer mistral-7b in 18, and the judge, right on 18 of 20, in 16.
    people, judge = "A" * 18 + "BB", "A" * 16 + "BBBB"
    turn = str.maketrans("AB", "BA")
    models = [("mistral-7b", "llama-3-70b")] * 10 + [("llama-3-70b", "mistral-7b")] * 10
    report = concluded(
        store,
        {GPT: "A" * 8 + "BB" + judge[:10] + judge[10:].translate(turn)},
        [AGAINST_LLAMA] * 10 + models,
        labels="A" * 6 + "BBBB" + people[:10] + people[10:].translate(turn),
    )
    (effect,) = report.family_effects
    # Centred sums: people 18/2 - 2/2 = 8, the judge 16/2 - 4/2 = 6; products of a prompt with
    # itself 20/4 for people, (18 - 2)/4 for both: b = (6 x 8 - 4) / (8 x 8 - 5) = 44/59.
    # The judge's own mean is 0.3, people's 0.1.
    assert effect.adjusted is not None
    assert effect.adjusted.value == pytest.approx(0.3 - 44 / 59 * 0.1)
    assert "adjusted for how the two differ on other pairs" in effect_notes(report)[0]


def test_few_pairs_have_a_reason_in_place_of_a_figure(store: Store) -> None:
    report = concluded(store, {GPT: "AAAA", CLAUDE: "ABAB"}, [AGAINST_LLAMA] * 4)
    assert report.family_effects[0].difference.value is None
    (note,) = effect_notes(report)
    assert note.startswith("same-family effect (gpt): ")
    assert "4 pairs" in note


def test_a_ranking_names_the_judges_of_its_models_families(store: Store) -> None:
    said = {GPT: "AABBABAB", CLAUDE: "ABABABAB"}
    names = ["gpt-4o", "gpt-4.1", "o3", "gpt-4o-mini", "claude-3-opus"]
    pairs = [(first, "llama-3-70b") for first in names]
    judged_run(store, "r", said, models=[*pairs, *pairs[:3]])
    notes = rank_runs(store, ["r"], RankOptions(intervals="none")).notes
    own = [
        note for note in notes if isinstance(note, Message) and note.code == "report.same_family"
    ]
    assert own == [
        f"{GPT} is from the same family as gpt-4.1, gpt-4o, gpt-4o-mini and 1 more (gpt) and "
        "may favour it",
        f"{CLAUDE} is from the same family as claude-3-opus (claude) and may favour it",
    ]
