"""Two runs over the same pairs: which pair is which, what changed, and what is said of it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from analysed import analysis_of
from evenhand.analyses.diff import RunDiff
from evenhand.analyses.registry import DIFF
from evenhand.errors import InputError
from evenhand.messages import Message, render
from evenhand.report.conclusions import conclude
from evenhand.store import NewVote, Store
from evenhand.store.intake import IntakeStore
from judged_runs import judged_run
from stored_runs import Row, make_run, opened, says


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with opened(tmp_path) as store:
        yield store


def diff_runs(store: Store, first: str, second: str, **options: Any) -> RunDiff:
    diff: RunDiff = analysis_of(DIFF, store, second, first, **options)
    return diff


# 110 pairs: 55 stay A's and 43 B's; 9 move from A to B, and 3 from B to A.
BEFORE = "A" * 55 + "B" * 43 + "A" * 9 + "B" * 3
AFTER = "A" * 55 + "B" * 43 + "B" * 9 + "A" * 3


def two_runs(store: Store, before: str, after: str, **more: object) -> RunDiff:
    judged_run(store, "before", {"one": before}, **more)  # type: ignore[arg-type]
    judged_run(store, "after", {"two": after}, **more)  # type: ignore[arg-type]
    return diff_runs(store, "before", "after")


def test_a_difference_is_what_the_two_runs_rates_differ_by(store: Store) -> None:
    found = two_runs(store, BEFORE, AFTER)
    rates = [conclude(store, name).conclusions[0].win_rate.rate for name in ("before", "after")]
    assert (found.change.rate_first, found.change.rate_second) == pytest.approx(rates)
    assert found.change.difference == pytest.approx(6 / 110)
    assert (found.change.changed, found.change.towards_b, found.change.towards_a) == (12, 9, 3)
    assert found.matched.content == 110
    assert (found.pending, found.notes, found.agreement) == (0, (), None)
    assert found.sentence.startswith(
        "two and one do not differ significantly: 12 of 110 pairs changed, 9 towards B; the "
        "difference is +5.5 points ("
    )


def test_a_difference_that_is_shown_is_said_in_both_languages(store: Store) -> None:
    found = two_runs(store, "A" * 60 + "B" * 40, "A" * 40 + "B" * 60)
    assert found.sentence.startswith(
        "two prefers B more often than one does: 20 of 100 pairs changed, 20 towards B; the "
        "difference is +20.0 points (+"
    )
    assert render(found.messages, "zh").startswith(
        "two 比 one 更常选择 B：100 个样本对中有 20 个改变，"
        "其中 20 个转向 B；差异为 +20.0 个百分点（+"
    )
    back = diff_runs(store, "after", "before")
    assert back.sentence.startswith("one prefers B less often than two does: ")


def test_verdicts_that_moved_among_many_undecided_ones_are_no_shown_preference(
    store: Store,
) -> None:
    found = two_runs(store, "A" * 30 + "B" * 40 + "I" * 30, "A" * 18 + "B" * 52 + "I" * 30)
    assert (found.change.low or 0) < 0
    assert "Verdicts moved towards B (12 vs 0 pairs, p = 0.00049), but " in found.sentence


def test_the_same_judge_is_named_by_its_runs(store: Store) -> None:
    judged_run(store, "before", {"one": BEFORE})
    judged_run(store, "after", {"one": AFTER}, prompt_version="v2")
    found = diff_runs(store, "before", "after")
    assert found.sentence.startswith("one (after) and one (before) do not differ significantly: ")
    assert (found.first.prompt_version, found.second.prompt_version) == ("v1", "v2")


def test_two_judges_of_one_run_are_named(store: Store) -> None:
    judged_run(store, "both", {"one": BEFORE, "two": AFTER})
    found = diff_runs(store, "both", "both", judge=("one", "two"))
    assert found.change.towards_b == 9
    with pytest.raises(InputError, match="several judges"):
        diff_runs(store, "both", "both")
    with pytest.raises(InputError, match="both are the same judge of run 'both'"):
        diff_runs(store, "both", "both", judge=("one", "one"))


def test_pairs_are_matched_by_texts_then_id_then_prompt(store: Store) -> None:
    def rows(*parts: tuple[str, dict[str, object]]) -> list[Row]:
        return [Row(key, says("A"), pair=pair) for key, pair in parts]

    make_run(
        store,
        "first",
        rows(
            ("same", {}),
            ("stricter", {"criteria": ["accuracy"]}),
            ("id", {"response_b": "old"}),
            ("#4", {"prompt": "Prompt 4?", "response_b": "old"}),
            ("#5", {"prompt": "Twice?", "response_b": "old"}),
            ("gone", {}),
        ),
    )
    make_run(
        store,
        "second",
        rows(
            ("#9", {"prompt": "Prompt 4?", "response_b": "new"}),
            ("id", {"response_b": "new", "prompt": "Question id?"}),
            ("stricter", {"criteria": ["accuracy", "clarity"]}),
            ("same", {}),
            ("#5", {"prompt": "Twice?", "response_b": "new"}),
            ("#6", {"prompt": "Twice?", "response_b": "newer"}),
            ("gone", {"prompt": "Another question of the same id?"}),
        ),
        judges=("other",),
    )
    found = diff_runs(store, "first", "second", from_outcome="A")
    matched = {pair.first.id: (pair.second.id, pair.matched_by) for pair in found.flipped}
    assert matched == {
        "same": ("same", "content"),
        "stricter": ("stricter", "texts"),
        "id": ("id", "id"),
        "#4": ("#9", "prompt"),
    }
    assert (found.matched.only_first, found.matched.only_second) == (2, 3)
    assert "4 pairs have a valid verdict in both; at least 6 are needed" in found.sentence
    assert list(found.notes) == [
        "1 pair is matched by prompt and responses: criteria, context or other fields differ",
        "responses differ: 1 pair is matched by id and prompt, 1 by prompt alone, so "
        "different responses may also explain a change",
        "left out: 2 pairs only in run first, 3 only in run second",
    ]


def test_runs_that_share_nothing_are_refused(store: Store) -> None:
    judged_run(store, "one", {"j": "A" * 10})
    judged_run(store, "two", {"j": "A" * 10}, keys=[f"x{n}" for n in range(10)])
    with pytest.raises(InputError, match="have no pair in common by texts, id or prompt"):
        diff_runs(store, "one", "two")


def test_what_is_pending_is_counted_and_not_compared(store: Store) -> None:
    found = two_runs(store, "A" * 40 + "B" * 40, "A" * 20 + "B" * 30 + "." * 30)
    assert (found.change.pairs, found.pending) == (50, 30)
    assert found.change.doubts == ("pending",)
    assert "Pairs are pending" in found.sentence


def test_a_run_that_grows_while_it_is_compared_is_compared_as_far_as_it_was(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    judged_run(store, "before", {"one": "A" * 20})
    judged_run(store, "after", {"two": "B" * 20})
    counted = IntakeStore.count
    monkeypatch.setattr(IntakeStore, "count", lambda *given: counted(*given) - 5)
    assert diff_runs(store, "before", "after").change.pairs == 20


def test_labels_tell_how_agreement_changed(store: Store) -> None:
    # By the labels 46 + 40 were right before; then the last ten As of the first are too.
    labels = "A" * 46 + "B" * 54
    found = two_runs(store, "A" * 60 + "B" * 40, "A" * 50 + "B" * 50, labels=labels)
    assert found.agreement is not None
    assert (found.agreement.first.part, found.agreement.second.part) == (46 + 40, 46 + 50)
    assert found.agreement.change.value == pytest.approx(0.1)
    assert found.sentence.startswith(
        "two is right more often than one: 96% instead of 86% of 100 labelled pairs, a change "
        "of +10.0 points (+"
    )


def test_votes_are_labels_where_the_data_has_none(store: Store) -> None:
    judged_run(store, "before", {"one": "A" * 20})
    judged_run(store, "after", {"two": "B" * 20})
    pairs = store.items.all(1)
    store.votes.add([NewVote(each.pair_id, "ann", "B") for each in pairs])
    found = diff_runs(store, "before", "after").agreement
    assert found is not None
    assert (found.labels, found.by_people, found.change.value) == (20, 20, 1.0)


def between(winner: str, models: tuple[str, str], text: str) -> list[Row]:
    """Thirty pairs with ids, whose responses are others for each `text`."""
    pairs = [{"response_a": f"{text} {n}", "response_b": text} for n in range(30)]
    return [
        Row(f"q{n}", says(winner), pair=pair, model_a=models[0], model_b=models[1])
        for n, pair in enumerate(pairs)
    ]


def test_where_models_changed_places_the_second_run_is_turned(store: Store) -> None:
    make_run(store, "before", between("A", ("old", "new"), "monday"))
    make_run(store, "after", between("B", ("new", "old"), "tuesday"))
    found = diff_runs(store, "before", "after", from_outcome="A", limit=1)
    # The old one won every time, as A and then as B.
    assert (found.matched.id, found.change.changed, found.names) == (30, 0, ("old", "new"))
    assert (found.flipped[0].second.winner, found.flipped_in_all) == ("A", 30)
    assert "A and B are swapped in 30 pairs" in found.notes[1]


@pytest.mark.parametrize(("models", "winner"), [(("base", "v2"), "B"), (("v2", "base"), "A")])
def test_another_version_is_named_and_its_baseline_is_found_on_either_side(
    store: Store, models: tuple[str, str], winner: str
) -> None:
    make_run(store, "monday", between("A", ("base", "v1"), "monday"))
    make_run(store, "tuesday", between(winner, models, "tuesday"))
    found = diff_runs(store, "monday", "tuesday")
    # The baseline won every time, and then never.
    assert (found.change.towards_b, found.change.towards_a, found.names) == (30, 0, ("A", "B"))
    assert found.notes[-1] == "B is v1 in run monday and v2 in run tuesday"


def test_where_b_is_no_one_model_nobody_is_said_to_be_favoured(store: Store) -> None:
    models = [("x", "y"), ("y", "x")] * 20
    judged_run(store, "before", {"one": "A" * 40}, models=models)
    judged_run(store, "after", {"two": "B" * 40}, models=models)
    found = diff_runs(store, "before", "after")
    assert found.sentence == (
        "40 of 40 pairs have a different verdict in two than in one. A and B are not the same two "
        "models in every pair, so this says nothing about which model gains; see the ranking."
    )


def test_where_prompts_repeat_verdicts_move_where_prompts_do(store: Store) -> None:
    """Thirty pairs of two prompts move to B, twenty of twenty to A: by prompt, 20 against 2."""
    prompts = [f"p{n % 2}" for n in range(30)] + [f"q{n}" for n in range(20 + 80)]
    for name, to_b, to_a in (("given", "B", "A"), ("exchanged", "A", "B")):
        before = to_a * 30 + to_b * 20 + "I" * 80
        after = to_b * 30 + to_a * 20 + "I" * 80
        keys = [f"{name}{n}" for n in range(130)]
        judged_run(store, f"{name} before", {"one": before}, prompts=prompts, keys=keys)
        judged_run(store, f"{name} after", {"one": after}, prompts=prompts, keys=keys)
        told = diff_runs(store, f"{name} before", f"{name} after").sentence
        way = "away from B" if name == "given" else "towards B"
        assert f"Verdicts moved {way} (20 vs 2 prompts, p = 0.00012)" in told


def test_a_run_that_ended_itself_leaves_nothing_pending(store: Store) -> None:
    make_run(store, "whole", [Row(f"q{n}", says("A")) for n in range(1, 61)])
    rows = [Row(f"q{n}", says("B"), judged=n <= 40) for n in range(1, 61)]
    plan = {"until_decided": {"alpha": 0.05, "seed": 0}}
    for name, planned in (("decided", plan), ("stopped", {})):
        make_run(store, name, rows, plan=planned)
    assert diff_runs(store, "whole", "decided").pending == 20
    assert diff_runs(store, "whole", "decided").change.doubts == ()
    assert diff_runs(store, "whole", "stopped").change.doubts == ("pending",)


def test_duplicates_are_the_same_pair_and_no_other_answers(store: Store) -> None:
    pair = {"prompt": "Again?", "response_a": "yes", "response_b": "no"}
    for name, winner in (("before", "A"), ("after", "B")):
        make_run(store, name, [Row(f"q{n}", says(winner), pair=pair) for n in range(6)])
    found = diff_runs(store, "before", "after")
    assert (found.matched.content, found.matched.id, found.notes) == (6, 0, ())


def test_responses_that_have_not_moved_are_not_turned_by_their_models(store: Store) -> None:
    judged_run(store, "before", {"one": "A" * 30}, models=[("old", "new")] * 30)
    judged_run(store, "after", {"two": "B" * 30}, models=[("new", "old")] * 30)
    found = diff_runs(store, "before", "after")
    # The same texts: the other one wins now, whatever they are called.
    assert (found.matched.content, found.change.changed, found.names) == (30, 30, ("A", "B"))


def test_exchanged_responses_are_recognised_and_turned(store: Store) -> None:
    def rows(winner: str, first: str, second: str, key: str) -> list[Row]:
        pair = {"response_a": first, "response_b": second}
        return [
            Row(f"{key}{n}", says(winner), pair={"prompt": f"Question {n}?", **pair})
            for n in range(10)
        ]

    make_run(store, "before", rows("A", "yes", "certainly", "#"))
    make_run(store, "after", rows("B", "certainly", "yes", "#1"))
    found = diff_runs(store, "before", "after", to_outcome="A", limit=1)
    assert (found.matched.texts, found.change.changed) == (10, 0)
    assert found.flipped[0].second.winner == "A"
    assert [note.code for note in found.notes if isinstance(note, Message)] == ["diff.exchanged"]


def test_a_prompt_of_several_pairs_matches_nothing_where_others_of_it_matched(
    store: Store,
) -> None:
    def rows(*responses: str) -> list[Row]:
        pairs = [{"prompt": "Twice?", "response_b": text} for text in responses]
        return [Row(f"#{n}", says("A"), pair=pair) for n, pair in enumerate(pairs)]

    make_run(store, "first", rows("same", "old"))
    make_run(store, "second", rows("same", "new"), judges=("other",))
    found = diff_runs(store, "first", "second").matched
    assert (found.content, found.prompt) == (1, 0)
    assert (found.only_first, found.only_second) == (1, 1)


def test_pairs_behind_each_count_are_paged(store: Store) -> None:
    two_runs(store, BEFORE, AFTER)

    def numbers(**asked: Any) -> list[int]:
        found: list[int] = []
        after: int | None = 0
        while after is not None:
            page = diff_runs(store, "before", "after", limit=4, after=after, **asked)
            found += [pair.first.number for pair in page.flipped]
            after = page.next
        assert page.flipped_in_all == len(found)
        return found

    # The first 98 stay; 9 go to B, and the last 3 to A.
    assert numbers() == list(range(99, 111))
    assert numbers(towards="B") == list(range(99, 108))
    assert numbers(towards="A") == numbers(from_outcome="B", to_outcome="A") == [108, 109, 110]
    assert numbers(from_outcome="B", to_outcome="B") == list(range(56, 99))
    assert numbers(to_outcome="invalid") == []


def test_both_reasons_stand_beside_a_pair_that_flipped(store: Store) -> None:
    for name, winner in (("first", "A"), ("second", "B")):
        rows = [Row(f"q{n}", says(winner, reasoning=f"I take {winner}.")) for n in range(8)]
        make_run(store, name, rows, judges=(name,))
    found = diff_runs(store, "first", "second", limit=1)
    (pair,) = found.flipped
    assert "I take A." in pair.first.reasoning
    assert "I take B." in pair.second.reasoning
    assert (pair.prompt, pair.towards, pair.first.winner) == ("Question q0?", "B", "A")


@pytest.mark.parametrize("bad", [{"limit": 101}, {"towards": "C"}, {"level": 2.0}])
def test_options_out_of_range_are_refused(store: Store, bad: dict[str, Any]) -> None:
    two_runs(store, BEFORE, AFTER)
    with pytest.raises(InputError):
        diff_runs(store, "before", "after", **bad)
