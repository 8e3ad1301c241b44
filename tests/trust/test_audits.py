"""Audits of stored runs: whose labels count, what they are held against, and the word on a judge.

Expected figures are counted by hand beside them.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from evenhand.contract import Winner
from evenhand.errors import InputError
from evenhand.judges.protocol import Completion, JudgeCall
from evenhand.store import NewVote, Store
from evenhand.trust.audit import Audit, _same_model, audit_run, refuse_one_sided
from evenhand.trust.findings import Thresholds, assess_audit
from judged_runs import judged_run
from scripted import Answer, answer_json
from stored_runs import USAGE, Row, completed, follows_place, make_run, mumbles, opened, says


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with opened(tmp_path) as opened_store:
        yield opened_store


def rows(
    count: int, *, wrong: int = 0, label: bool = True, longer: Winner = "A", **more: Any
) -> list[Row]:
    """The label is A and B in turn; the judge says the other on the first `wrong` pairs."""
    other: dict[Winner, Winner] = {"A": "B", "B": "A"}
    found = []
    for number in range(count):
        right: Winner = "A" if number % 2 else "B"
        said = other[right] if number < wrong else right
        texts = {"response_a": "x" * (9 if longer == "A" else 3), "response_b": "yyyyyy"}
        own = right if label else None
        found.append(Row(f"q{number}", says(said), label=own, pair=texts, **more))
    return found


def vote(store: Store, run_id: int, said: dict[str, list[Winner | None]], **more: Any) -> None:
    """What each person says of the pairs, from the first on."""
    items = store.items.all(run_id)
    store.votes.add(
        [
            NewVote(item.pair_id, who, verdict, **more)
            for who, verdicts in said.items()
            for item, verdict in zip(items, verdicts, strict=False)
        ]
    )


def yardstick(audit: Audit, name: str) -> Any:
    return next(each for each in audit.yardsticks if each.name == name)


def right_of(count: int) -> list[Winner | None]:
    return ["A" if number % 2 else "B" for number in range(count)]


def test_the_majority_of_people_is_the_label_where_the_data_has_none(store: Store) -> None:
    made = rows(12, wrong=3, label=False)
    run_id = make_run(store, "run", made)
    right = right_of(12)
    vote(store, run_id, {"Ann": right, "Bob": right[:10], "Eve": [None, None, "TIE"]})
    found = audit_run(store, "run")
    assert (found.labels.by_data, found.labels.by_people) == (0, 12)
    assert (found.n, found.unlabelled) == (12, 0)
    # All labels are what Ann says; the judge is wrong on the first three.
    assert (found.accuracy.part, found.accuracy.of) == (9, 12)


def test_the_data_s_own_label_goes_before_votes(store: Store) -> None:
    made = rows(10)
    run_id = make_run(store, "run", made)
    vote(store, run_id, {"Ann": ["TIE"] * 10})
    found = audit_run(store, "run")
    assert (found.labels.by_data, found.labels.by_people) == (10, 0)
    assert found.accuracy.value == 1


def test_people_who_are_equally_divided_are_no_label(store: Store) -> None:
    made = rows(10, label=False)
    run_id = make_run(store, "run", made)
    vote(store, run_id, {"Ann": right_of(10), "Bob": ["TIE", *right_of(10)[1:]]})
    found = audit_run(store, "run")
    assert (found.n, found.unlabelled, found.labels.equally_divided) == (9, 1, 1)
    assert "1 pair has no label because votes are tied" in found.notes


def test_a_run_on_which_people_are_divided_throughout_has_no_labels(store: Store) -> None:
    run_id = make_run(store, "run", rows(7, label=False))
    vote(store, run_id, {"Ann": ["A", "B"], "Bob": ["B", "A"]})
    with pytest.raises(InputError, match=r"has a label \(people are tied on 2\)"):
        audit_run(store, "run")


@pytest.mark.parametrize(
    ("labels", "refused"),
    [
        ({0: 5}, None),  # 2 × 0.5⁵ = 0.0625 may be an accident
        ({0: 6}, "is A .* the first response would be right on all 6;"),  # 2 × 0.5⁶ = 0.03125
        ({1: 6}, "is B .* the second response would be right on all 6;"),
        ({2: 60}, None),  # ties name no side
        ({0: 60, 1: 1}, None),
        ({}, None),
    ],
)
def test_labels_of_one_order_that_all_name_one_side_are_refused(
    labels: dict[int, int], refused: str | None
) -> None:
    if refused is None:
        refuse_one_sided("run 'r'", labels)
        return
    with pytest.raises(InputError, match=refused):
        refuse_one_sided("run 'r'", labels)


def test_votes_on_chosen_and_escalated_pairs_are_left_out_with_a_word(store: Store) -> None:
    made = rows(10, label=False)
    run_id = make_run(store, "run", made)
    with pytest.raises(InputError, match="collect votes with evenhand label run"):
        audit_run(store, "run")
    vote(store, run_id, {"Ann": right_of(10)}, draw="chosen")
    vote(store, run_id, {"Bob": right_of(4)}, origin="escalation")
    with pytest.raises(InputError, match="14 votes, but all on pairs that were selected"):
        audit_run(store, "run")
    vote(store, run_id, {"Eve": right_of(8)}, draw="random")
    found = audit_run(store, "run")
    assert (found.n, found.labels.chosen, found.labels.escalated) == (8, 10, 4)
    assert any(note.startswith("14 votes are not counted") for note in found.notes)


def test_a_draw_that_prefers_doubtful_pairs_is_told(store: Store) -> None:
    run_id = make_run(store, "run", rows(10, label=False))
    vote(store, run_id, {"Ann": right_of(10)}, draw="weighted", chance=0.5)
    found = audit_run(store, "run")
    assert found.n == 10
    assert any(note.startswith("10 pairs were labelled in a draw that") for note in found.notes)


def test_two_people_s_agreement_stands_beside_the_judge_s(store: Store) -> None:
    made = rows(12, wrong=4)
    run_id = make_run(store, "run", made)
    right = right_of(12)
    # Bob differs from Ann on the last three; Eve's lone vote on none of these pairs counts.
    vote(store, run_id, {"Ann": right[:10], "Bob": [*right[:7], "TIE", "TIE", "TIE"]})
    vote(store, run_id, {"Eve": [None] * 10 + [right[10]]})
    found = audit_run(store, "run")
    people = found.people
    assert people is not None
    assert (people.people, people.pairs, people.votes) == (2, 10, 20)
    assert (people.agreement.part, people.agreement.of) == (7, 10)
    # Wrong on the first 4, where both say otherwise; right on 3 with both, on 3 with Ann alone.
    assert (people.judge_agreement.part, people.judge_agreement.of) == (2 * 3 + 3, 20)
    assert yardstick(found, "people").accuracy == people.agreement
    assert yardstick(found, "people").kappa.value == people.alpha.alpha


def test_one_vote_a_pair_is_no_yardstick(store: Store) -> None:
    run_id = make_run(store, "run", rows(10))
    vote(store, run_id, {"Ann": right_of(5)})
    found = audit_run(store, "run")
    assert found.people is None
    assert [each.name for each in found.yardsticks] == ["baseline:longer", "baseline:random"]


def test_a_coin_is_right_on_half_of_what_is_no_tie(store: Store) -> None:
    made = rows(8) + [Row(f"t{number}", says("TIE"), label="TIE") for number in range(4)]
    make_run(store, "run", made)
    # 8 of 12 labels are a side's: a coin gets 4 of 12 on average.
    assert yardstick(audit_run(store, "run"), "baseline:random").accuracy.value == pytest.approx(
        4 / 12
    )


def test_a_lead_is_counted_on_the_same_pairs(store: Store) -> None:
    make_run(store, "run", rows(20, wrong=2))
    longer = yardstick(audit_run(store, "run"), "baseline:longer")
    # A is longer throughout and right on half: 10 of 20. The judge is right on 18.
    assert longer.accuracy.value == 0.5
    assert longer.lead.value == pytest.approx((18 - 10) / 20)


@pytest.mark.parametrize(
    ("count", "wrong", "word"),
    [
        (60, 4, "trustworthy"),
        (60, 18, "with care"),  # 70% right, which may be 57%
        (60, 30, "not trustworthy"),  # a coin's share, and at best 12.7 points above it
        (12, 3, "too few labels"),  # 75% right, which may be 43% or 94%
        (24, 9, "too few labels"),
        (240, 108, "not trustworthy"),  # 55% right: enough labels to rule out a useful lead
        (5, 0, "not enough data"),
    ],
)
def test_the_word_on_a_judge_goes_by_the_interval(
    store: Store, count: int, wrong: int, word: str
) -> None:
    make_run(store, "run", rows(count, wrong=wrong))
    assert assess_audit(audit_run(store, "run")).word == word


def test_too_few_labels_come_with_how_many_would_do(store: Store) -> None:
    make_run(store, "run", rows(12, wrong=3))
    found = audit_run(store, "run")
    coin = yardstick(found, "baseline:random")
    # Nine of twelve: 25 points above a coin. Clopper and Pearson's limits of 9 of 12 are 0.428 and
    # 0.945, and a useful lead is a third of the half that a coin gets wrong.
    assert coin.lead.value == pytest.approx(0.25)
    assert coin.lead.low == pytest.approx(0.428 - 0.5, abs=0.001)
    assert coin.lead.high == pytest.approx(0.945 - 0.5, abs=0.001)
    assert coin.useful_lead == pytest.approx(0.5 / 3)
    # From 25 points down to -7.2 are 32.2: 2.04 · (32.2 / 25)² · 12 = 40.6 labels show it.
    told = [line for line in assess_audit(found).lines if "baseline:random" in line]
    assert told == [
        "too few labels to tell whether it beats baseline:random, which is right on 50.0%: "
        "lead 25.0 points (-7.2 to 44.5); about 41 labels would settle it"
    ]


def test_a_lead_is_useful_beside_what_the_baseline_leaves(store: Store) -> None:
    """Of a baseline that is right on 90% nobody can be better by a sixth."""
    made = [
        Row(f"q{n}", says("A"), label="A", pair={"response_a": "x" * (3 if n < 2 else 9)})
        for n in range(20)
    ]
    make_run(store, "run", made)
    found = audit_run(store, "run")
    longer = yardstick(found, "baseline:longer")
    assert longer.accuracy.value == pytest.approx(0.9)
    assert longer.useful_lead == pytest.approx(0.1 / 3)
    assert longer.lead.low < 0 < longer.useful_lead < longer.lead.high
    assert assess_audit(found).word == "too few labels"


def test_an_inconsistent_pair_counts_as_half_beside_a_coin_and_nothing_in_accuracy(
    store: Store,
) -> None:
    made = [*rows(20), *(Row(f"p{n}", follows_place, label="A") for n in range(10))]
    made += [Row(f"t{n}", follows_place, label="TIE") for n in range(10)]
    make_run(store, "run", made)
    found = audit_run(store, "run")
    assert (found.accuracy.part, found.accuracy.of) == (20, 40)
    # 20 right and 10 halves; a coin gets nothing where the label is a tie, nor does the judge.
    assert found.half_credit.value == pytest.approx((20 + 10 / 2) / 40)
    coin = yardstick(found, "baseline:random")
    assert coin.accuracy.value == pytest.approx(30 / 2 / 40)
    assert coin.lead.value == pytest.approx((20 + 10 / 2) / 40 - 30 / 2 / 40)


def test_a_judge_that_contradicts_itself_throughout_is_as_good_as_a_coin(store: Store) -> None:
    def takes(place: str) -> Answer:
        return lambda call: completed(answer_json(place), USAGE)

    labels: tuple[Winner, Winner] = ("A", "B")
    made = [Row(f"p{n}", takes("AB"[n % 2]), label=labels[n // 2 % 2]) for n in range(80)]
    make_run(store, "run", made)
    found = audit_run(store, "run")
    assert (found.accuracy.part, found.inconsistent.part) == (0, 80)
    assert yardstick(found, "baseline:random").lead.value == 0
    assert found.place.test.alarm is None  # as often to the first as to the second
    assert assess_audit(found).word == "not trustworthy"


def test_an_order_that_was_read_counts_where_its_pair_is_invalid(store: Store) -> None:
    def half_read(call: JudgeCall) -> str | Completion:
        return says("A")(call) if call.order == "original" else mumbles(call)

    made = [
        *(Row(f"q{n}", says("A"), label="A") for n in range(5)),
        *(Row(f"w{n}", says("B"), label="A") for n in range(3)),
        *(Row(f"t{n}", says("TIE"), label="A") for n in range(2)),
        *(Row(f"f{n}", follows_place, label="A") for n in range(4)),
        *(Row(f"h{n}", half_read, label="A") for n in range(6)),
        Row("unlabelled", says("A")),
    ]
    make_run(store, "run", made)
    counts = audit_run(store, "run").counts
    # Original: 5 right, 4 that follow the place and 6 half read ones are right too.
    assert counts.original.model_dump(by_alias=False) == {
        "right": 15,
        "wrong": 3,
        "tie": 2,
        "unread": 0,
        "split": 0,
    }
    assert counts.swapped.model_dump(by_alias=False) == {
        "right": 5,
        "wrong": 3 + 4,
        "tie": 2,
        "unread": 6,
        "split": 0,
    }
    assert (counts.both_right, counts.unread) == (5, 6)
    assert (counts.flips_to_first, counts.flips_to_second) == (4, 0)


def test_a_judge_below_people_is_to_be_used_with_care(store: Store) -> None:
    run_id = make_run(store, "run", rows(100, wrong=16))
    assert assess_audit(audit_run(store, "run")).word == "trustworthy"
    vote(store, run_id, {"Ann": right_of(100), "Bob": right_of(100)})
    found = assess_audit(audit_run(store, "run"))
    assert found.word == "with care"
    assert found.lines[-1].startswith("the judge agrees with one of them on 84.0%")
    assert found.lines[-1].endswith(", which is less")


def test_a_threshold_that_fails_has_its_say_in_the_word(store: Store) -> None:
    make_run(store, "run", rows(60, wrong=4))
    found = audit_run(store, "run")
    assert assess_audit(found, Thresholds.of(min_accuracy=0.7)).word == "trustworthy"
    assert assess_audit(found, Thresholds.of(min_accuracy=0.93)).word == "with care"
    assert assess_audit(found, Thresholds.of(min_accuracy=0.99)).word == "not trustworthy"


def test_a_lean_that_is_asked_for_is_part_of_the_ruling(store: Store) -> None:
    made = [*rows(60), *(Row(f"p{n}", follows_place, label="A") for n in range(30))]
    make_run(store, "run", made)
    found = audit_run(store, "run")
    # 30 of 90 pairs follow their place: a third, give or take a tenth.
    assert assess_audit(found).place_alarm is True
    assert assess_audit(found).ruling is None
    assert assess_audit(found, Thresholds.of(max_place_lean=0.1)).ruling == "fail"
    assert assess_audit(found, Thresholds.of(max_place_lean=0.3)).ruling == "undecided"
    passed = assess_audit(found, Thresholds.of(max_place_lean=0.6))
    assert (passed.ruling, passed.place_alarm) == ("pass", False)
    assert passed.checks[0].line.startswith("pass  position bias 0.2")
    assert passed.checks[0].line.endswith(" is within 0.6")


@pytest.mark.parametrize(
    ("count", "places", "ending"),
    [
        # 7 of 40 are 17.5%, and the interval holds a tenth; 10 of 400 are 2.5%, and at most 5.
        (33, 7, "; a position bias above 10% is neither shown nor ruled out"),
        (390, 10, ", which is below the alarm limit of 10%"),
    ],
)
def test_a_lean_is_less_than_the_limit_where_its_whole_interval_is(
    store: Store, count: int, places: int, ending: str
) -> None:
    made = [*rows(count), *(Row(f"p{n}", follows_place, label="A") for n in range(places))]
    make_run(store, "run", made)
    found = audit_run(store, "run")
    (line,) = [each for each in assess_audit(found).lines if "response shown first" in each]
    assert line.startswith(f"{100 * places / (count + places):.1f}% (")
    assert f"of {count + places} pairs follow the response shown first" in line
    assert line.endswith(ending)


def test_a_length_alarm_says_of_how_many_decided_pairs(store: Store) -> None:
    """A is longer; the judge says A of 45 pairs, 25 of which the label gives to B: 25 of 45 are
    55.6 points. 20 more pairs are inconsistent, and have no winner."""
    texts = {"response_a": "x" * 9, "response_b": "yyyyyy"}
    made = [Row(f"q{n}", says("A"), label="B" if n < 25 else "A", pair=texts) for n in range(45)]
    made += [Row(f"p{n}", follows_place, label="A", pair=texts) for n in range(20)]
    make_run(store, "run", made)
    (line,) = [each for each in assess_audit(audit_run(store, "run")).lines if "length" in each]
    assert line.startswith(
        "ALARM: length bias: in 45 decided pairs the longer response wins 55.6 points ("
    )
    assert line.endswith(") more often than the labels say")


@pytest.mark.parametrize("own", ["A", "B"])
def test_self_preference_is_of_the_judges_model_whichever_side_it_is_on(
    store: Store, own: Winner
) -> None:
    """The judge prefers its own model's answer in 9 of 12 pairs, the labels in 6."""
    other: Winner = "B" if own == "A" else "A"
    winners = [own] * 9 + [other] * 3
    labels = [own] * 6 + [other] * 6
    models = ("gpt-4o", "llama") if own == "A" else ("llama", "gpt-4o")
    said = "".join(winners)
    judged_run(store, "r", {"openai:gpt-4o": said}, labels="".join(labels), models=[models] * 12)
    found = audit_run(store, "r").self_preference
    assert found is not None
    assert found.model == "gpt-4o"
    assert (found.by_judge.part, found.by_judge.of) == (9, 12)
    assert (found.by_labels.part, found.by_labels.of) == (6, 12)
    assert found.excess.value == pytest.approx(3 / 12)


def test_self_preference_leaves_out_pairs_of_which_both_or_neither_are_its_own(
    store: Store,
) -> None:
    models = [("gpt-4o", "llama")] * 8 + [("gpt-4o", "gpt-4o")] * 4 + [("qwen", "llama")] * 4
    judged_run(store, "r", {"openai:gpt-4o": "A" * 16}, labels="A" * 16, models=models)
    found = audit_run(store, "r").self_preference
    assert found is not None
    assert (found.by_judge.part, found.by_judge.of) == (8, 8)


def test_a_length_bias_that_the_interval_holds_is_not_ruled_out(store: Store) -> None:
    make_run(store, "run", rows(60, wrong=8, longer="A"))
    (line,) = [each for each in assess_audit(audit_run(store, "run")).lines if "length" in each]
    # Half of the 8 errors are for A, the longer, and half for B.
    assert line.startswith("in 60 decided pairs the longer response wins 0.0 points (-")
    assert line.endswith("; a length bias above 10 points is neither shown nor ruled out")


def test_a_judge_whose_answers_cannot_be_read_is_not_trusted(store: Store) -> None:
    make_run(store, "run", [Row(f"q{n}", mumbles, label="A") for n in range(10)])
    found = audit_run(store, "run")
    assert (found.accuracy.part, found.unread.part) == (0, 10)
    assert found.agreement.value is None
    assert assess_audit(found).word == "not trustworthy"


def test_an_inconsistent_pair_is_not_right_and_not_unread(store: Store) -> None:
    made = [*rows(6), *(Row(f"p{n}", follows_place, label="A") for n in range(4))]
    make_run(store, "run", made)
    found = audit_run(store, "run")
    assert (found.accuracy.part, found.accuracy.of) == (6, 10)
    assert (found.inconsistent.part, found.unread.part) == (4, 0)
    assert (found.agreement.part, found.agreement.of) == (6, 6)


def test_twenty_disagreements_are_listed_unless_more_are_asked_for(store: Store) -> None:
    make_run(store, "run", rows(30, wrong=25))
    found = audit_run(store, "run")
    assert (len(found.disagreements), found.disagreements_in_all) == (20, 25)
    # The first pair's label is B, and the judge says A.
    first = found.disagreements[0]
    assert (first.id, first.label, first.verdict, first.outcome) == ("q0", "B", "A", "win")
    assert len(audit_run(store, "run", disagreements=24).disagreements) == 24


def test_two_judges_agree_on_the_pairs_that_both_judged(store: Store) -> None:
    judged_run(store, "one", {"first": "AABB.A"}, labels="AABBAA")
    judged_run(store, "two", {"second": "AABAB."})
    between = audit_run(store, "one", against="two").between
    assert between is not None
    assert (between.run, between.judge, between.pairs) == ("two", "second", 4)
    assert (between.agreement.part, between.agreement.of) == (3, 4)
    turned = audit_run(store, "one", against="one").between
    assert turned is not None
    assert (turned.agreement.part, turned.agreement.of) == (5, 5)


def test_an_audit_from_before_they_were_counted_has_none_of_these(store: Store) -> None:
    make_run(store, "run", rows(10))
    written = audit_run(store, "run").model_dump(mode="json", by_alias=True)
    for name in ("oneOrder", "skippedRows", "identical"):
        del written[name]
    read = Audit.model_validate(written)
    assert (read.one_order, read.skipped_rows, read.identical) == (0, 0, 0)


def test_the_confusion_table_keeps_inconsistent_and_invalid_apart(store: Store) -> None:
    made = [*rows(6), *(Row(f"p{n}", follows_place, label="A") for n in range(4))]
    make_run(store, "run", [*made, Row("m", mumbles, label="B")])
    matrix = audit_run(store, "run").confusion
    kinds = [(row.none, row.inconsistent, row.invalid) for row in (matrix.a, matrix.b, matrix.tie)]
    assert kinds == [(4, 4, 0), (1, 0, 1), (0, 0, 0)]


def test_a_run_of_which_nothing_is_judged_says_so(store: Store) -> None:
    make_run(store, "run", [Row("q1", says("A"), label="A", judged=False)])
    with pytest.raises(InputError, match="no pairs in run 'run' have been judged yet"):
        audit_run(store, "run")


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"min_accuracy": -0.1}, "min_accuracy is -0.1; give a share between 0 and 1"),
        ({"max_unread": 5}, "max_unread is 5; give a share between 0 and 1"),
        ({"min_kappa": -2.0}, "min_kappa is -2.0; give a number from -1 to 1"),
    ],
)
def test_a_threshold_out_of_range_is_refused(given: dict[str, float], told: str) -> None:
    with pytest.raises(InputError, match=told):
        Thresholds.of(**given)


@pytest.mark.parametrize(
    ("judge", "model", "same"),
    [
        ("openai:gpt-4o", "gpt-4o", True),
        ("openai:gpt-4o", "openai/GPT-4o", True),
        ("openai:gpt-4o", "openai:gpt-4o", True),
        ("openai:gpt-4o", "gpt-4o-mini", False),
        ("openai:llama3:8b", "llama3:8b", True),
        ("openai:llama3:8b", "qwen3:8b", False),  # of the same size, and no kin
        ("openai:meta/llama-3", "llama-3", True),
        ("local", "", False),
    ],
)
def test_a_judge_knows_its_own_model(judge: str, model: str, same: bool) -> None:
    assert _same_model(judge, model) is same
