"""Juries over stored runs: verdicts by counting, rates and weights by the statistics' own way."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analysed import jury_of
from evenhand.analyses.jury import jury_rows, write_jury_rows
from evenhand.errors import InputError
from evenhand.stats.juries.jury import learn_jury
from evenhand.stats.rates.win_rate import win_rate
from evenhand.store import Store, open_store
from evenhand.trust.panels import HUNG, NO_QUORUM, SavedJury, open_jury, save_jury
from judged_runs import LETTER_CODES, judged_run, vote_on


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with open_store(tmp_path / "store.db") as opened:
        yield opened


def letters(rng: np.random.Generator, labels: str, accuracy: float) -> str:
    """What a judge of this accuracy says of pairs with these labels."""
    other = {"A": "B", "B": "A"}
    right = rng.random(len(labels)) < accuracy
    return "".join(own if well else other[own] for own, well in zip(labels, right, strict=True))


def some_labels(rng: np.random.Generator, number: int) -> str:
    return "".join("AB"[code] for code in rng.integers(0, 2, number))


THREE = {
    "x": "AABTAAAA",
    "y": "AABTBBIA",
    "z": "ABBATIX.",
}


def test_the_largest_group_wins_and_the_rest_is_no_tie(store: Store) -> None:
    judged_run(store, "run", THREE)
    sitting = jury_of(store, "run", weights="majority")
    # q5 has A, B and a tie; q6 has A against B; q7 one vote of the two that half of three takes.
    assert sitting.poll.outcomes.tolist() == [0, 0, 1, 2, HUNG, HUNG, NO_QUORUM, 0]
    counts = sitting.counts
    assert (counts.wins_a, counts.wins_b, counts.ties) == (3, 1, 1)
    assert (counts.hung, counts.no_quorum, counts.unanimous) == (2, 1, 2)
    # Against the verdict: 0 of 3, 1 of 3, 0 of 3, 1 of 3, and 0 of 2.
    assert sitting.dissent == pytest.approx((0 + 1 / 3 + 0 + 1 / 3 + 0) / 5)
    assert sitting.poll.verdicts.voters.tolist() == [3, 3, 3, 3, 3, 2, 1, 2]


def test_the_win_rate_counts_a_hung_jury_half_and_leaves_out_one_without_quorum(
    store: Store,
) -> None:
    judged_run(store, "run", {judge: said[:7] for judge, said in THREE.items()})
    rate = jury_of(store, "run", weights="majority", side="A").rates[0].jury
    # A, A, B, tie, hung, hung: (1 + 1 + 0 + 0.5 + 0.5 + 0.5) / 6; the seventh is left out.
    assert rate.rate == pytest.approx(3.5 / 6)
    assert (rate.counts.inconsistent, rate.counts.invalid) == (2, 1)
    same = win_rate([0, 0, 1, 2, 3, 3, 4], prompts=list("abcdefg"))
    assert (rate.low, rate.high, rate.worst_case) == (same.low, same.high, same.worst_case)
    turned = jury_of(store, "run", weights="majority").rates[0].jury
    assert turned.rate == pytest.approx(2.5 / 6)


def test_each_judge_has_its_own_rate_beside_the_jurys(store: Store) -> None:
    judged_run(store, "run", {"x": "AABBA." * 2, "y": "ABIXTA" * 2})
    one, two = jury_of(store, "run", side="A").rates[0].judges
    assert (one.name, two.name) == ("x", "y")
    assert (one.rate.n, one.rate.counts.wins_a, one.rate.counts.wins_b) == (10, 6, 4)
    # A, B, inconsistent, invalid, tie, A, and all of it twice: (1 + 0 + 0.5 + 0.5 + 1) / 5.
    assert two.rate.rate == pytest.approx(3 / 5)
    assert two.rate.counts.invalid == 2


def test_rows_whose_models_changed_places_count_for_the_same_model(store: Store) -> None:
    models = [("old", "new"), ("new", "old")] * 6
    said = {"x": "BABA" * 3, "y": "BAB." * 3, "z": "BAAA" * 3}
    judged_run(store, "run", said, models=models)
    found = jury_of(store, "run").rates
    assert [(each.model, each.against) for each in found] == [("new", "old")]
    assert found[0].jury.rate == 1.0
    # In q3 z says A, which is old; and y has not judged q4, which is no tie.
    assert [each.rate.rate for each in found[0].judges] == [1.0, 1.0, 3 / 4]
    assert [each.rate.n for each in found[0].judges] == [12, 9, 12]


def test_the_quorum_is_the_users(store: Store) -> None:
    judged_run(store, "run", THREE)
    told = {quorum: jury_of(store, "run", quorum=quorum).counts.no_quorum for quorum in (1, 2, 3)}
    # q6 and q8 have two votes, q7 one.
    assert told == {1: 0, 2: 1, 3: 3}
    with pytest.raises(InputError, match="the quorum is 4 of 3 judges; give a number from 1 to 3"):
        jury_of(store, "run", quorum=4)


def test_runs_over_the_same_pairs_make_one_jury(store: Store) -> None:
    judged_run(store, "first", {"x": "ABA", "y": "ABB"})
    judged_run(store, "second", {"z": "BAT."}, keys=["q2", "q1", "other", "q3"])
    sitting = jury_of(store, "first", "second")
    assert sitting.poll.panel.titles == ("x", "y", "z")
    assert [item.key for item in sitting.poll.panel.items] == ["q1", "q2", "q3"]
    assert sitting.poll.panel.votes.tolist() == [[0, 0, 0], [1, 1, 1], [0, 1, -1]]
    assert "run second has not finished: 1 verdict is pending" in sitting.notes


def test_a_jury_over_an_unfinished_run_has_always_valid_intervals(store: Store) -> None:
    judged_run(store, "run", {"x": "AB" * 10, "y": "AB" * 9 + "A."})
    assert jury_of(store, "run").rates[0].jury.always_valid
    judged_run(store, "whole", {"x": "AB" * 10}, keys=[f"w{place}" for place in range(20)])
    assert not jury_of(store, "whole").rates[0].jury.always_valid


def test_runs_without_a_common_pair_are_refused(store: Store) -> None:
    judged_run(store, "first", {"x": "AB"})
    judged_run(store, "second", {"y": "AB"}, keys=["p1", "p2"])
    with pytest.raises(InputError, match="'first' and 'second' have no pair"):
        jury_of(store, "first", "second")


def test_a_judge_that_two_runs_have_sits_once(store: Store) -> None:
    judged_run(store, "first", {"x": "AB", "y": "AB"})
    judged_run(store, "second", {"x": "AB"})
    sitting = jury_of(store, "first", "second")
    assert sitting.poll.panel.titles == ("x", "y")
    assert "x of run second is counted once: an earlier run has it" in sitting.notes


def test_the_same_judge_in_two_languages_is_two(store: Store) -> None:
    judged_run(store, "english", {"x": "AB"})
    judged_run(store, "chinese", {"x": "AA"}, locale="zh")
    sitting = jury_of(store, "english", "chinese")
    assert sitting.poll.panel.titles == ("x [en]", "x [zh]")


def test_an_abstained_verdict_is_no_vote(store: Store) -> None:
    judged_run(
        store,
        "run",
        {"x": "AAATI", "y": "BBBBB", "z": "AATTA"},
        confidences=[0.9, 0.8, 0.7, 0.6, 0.5],
        thresholds={"x": 0.8},
        labels="AAATA",
    )
    sitting = jury_of(store, "run")
    # x is not sure enough of q3 and q4, and contradicts itself in q5.
    assert sitting.poll.panel.votes[:, 0].tolist() == [0, 0, -1, -1, -1]
    assert sitting.poll.outcomes.tolist() == [0, 0, HUNG, HUNG, HUNG]
    assert sitting.poll.verdicts.voters.tolist() == [3, 3, 2, 2, 2]
    x, y, _ = sitting.judges
    assert (x.votes, x.abstained, x.inconsistent, y.votes, y.abstained) == (2, 2, 1, 5, 0)
    third = list(jury_rows(sitting))[2]["votes"]
    assert [(each["vote"], each["outcome"], each["abstained"]) for each in third] == [
        (None, "win", True),
        ("B", "win", False),
        ("TIE", "tie", False),
    ]
    # What is no vote is not right either: x on q1 and q2 of five.
    own = {rule.rule: rule.accuracy for rule in sitting.accuracy}
    assert (own["x"].part, own["x"].of) == (2, 5)


def test_another_run_brings_its_abstentions_along(store: Store) -> None:
    judged_run(store, "first", {"x": "ABA"})
    judged_run(
        store,
        "second",
        {"z": "BAT"},
        keys=["q2", "q1", "other"],
        confidences=[0.9, 0.6, 0.9],
        thresholds={"z": 0.8},
    )
    panel = jury_of(store, "first", "second").poll.panel
    assert panel.votes[:, 1].tolist() == [-1, 1, -1]
    assert panel.abstained[:, 1].tolist() == [True, False, False]


def test_a_saved_jury_hears_no_abstained_verdict_either(store: Store) -> None:
    judged_run(store, "run", {"x": "AA", "y": "BB"})
    saved = jury_of(store, "run").poll.saved
    judged_run(
        store,
        "later",
        {"y": "BB", "x": "AA"},
        keys=["q8", "q9"],
        confidences=[0.9, 0.6],
        thresholds={"x": 0.8},
    )
    sitting = jury_of(store, "later", use=saved)
    assert sitting.poll.panel.votes.tolist() == [[0, 1], [-1, 1]]
    assert sitting.judges[0].abstained == 1


def test_votes_on_chosen_and_escalated_pairs_are_no_labels_of_a_jury(store: Store) -> None:
    run = judged_run(store, "run", {"x": "ABAB"})
    vote_on(store, run, {"q1": "A"}, draw="random")
    vote_on(store, run, {"q2": "B"})
    vote_on(store, run, {"q3": "B"}, draw="chosen")
    vote_on(store, run, {"q4": "A"}, origin="escalation")
    panel = jury_of(store, "run").poll.panel
    assert panel.labels.tolist() == [0, 1, -1, -1]
    assert panel.by_people == 2


def test_one_judge_is_a_jury_of_itself(store: Store) -> None:
    judged_run(store, "run", {"x": "ABTIX"})
    sitting = jury_of(store, "run")
    assert sitting.poll.outcomes.tolist() == [0, 1, 2, NO_QUORUM, NO_QUORUM]
    assert sitting.between == ()
    assert sitting.judges[0].redundant is None


def test_judges_that_always_agree_are_nearly_one(store: Store) -> None:
    said = "AB" * 100
    judged_run(store, "run", {"x": said, "y": said})
    report = jury_of(store, "run")
    assert report.counts.unanimous == 200
    assert report.dissent == 0
    assert report.between[0].agreement.value == 1
    assert [each.redundant for each in report.judges] == [True, True]
    assert report.judges[0].finding == "nearly always agrees with y"
    assert report.accuracy == ()


def test_a_run_without_verdicts_is_refused(store: Store) -> None:
    judged_run(store, "run", {"x": "..", "y": ".."})
    with pytest.raises(InputError, match="no pairs in run 'run' have been judged yet"):
        jury_of(store, "run")


def test_weights_are_those_of_the_same_votes_and_labels(store: Store) -> None:
    rng = np.random.default_rng(3)
    labels = some_labels(rng, 120)
    said = {judge: letters(rng, labels, own) for judge, own in (("x", 0.9), ("y", 0.7), ("z", 0.6))}
    said["z"] = "IX." + said["z"][3:]
    prompts = [f"prompt {place // 2}" for place in range(120)]
    judged_run(store, "run", said, labels=labels, prompts=prompts)
    sitting = jury_of(store, "run", weights="learned")
    table = np.array([[LETTER_CODES[own] for own in letters] for letters in said.values()]).T
    # Prompts enter by their keys' order, which a fold's seed turns into folds.
    keys = sitting.poll.panel.prompts
    assert np.unique(keys).size == 60
    same = learn_jury(
        table, [LETTER_CODES[own] for own in labels], judges=list("xyz"), prompts=keys
    )
    assert sitting.poll.saved.jury == same
    verdicts = same.predict(table)
    assert sitting.poll.outcomes.tolist() == verdicts.winners.tolist()
    assert sitting.quorum == 1
    assert [each.weight for each in sitting.judges] == list(same.weights or ())
    shown = [rule.rule for rule in sitting.accuracy]
    assert shown == ["chosen", "best member", "learned", "plurality", "majority", "x", "y", "z"]
    right = sum(own == label for own, label in zip(said["x"], labels, strict=True))
    assert sitting.accuracy[5].accuracy.part == right


def test_a_copy_and_a_coin_are_redundant_and_a_good_judge_is_not(store: Store) -> None:
    rng = np.random.default_rng(1)
    labels = some_labels(rng, 1500)
    good, fair, coin = (letters(rng, labels, own) for own in (0.85, 0.7, 0.5))
    said = {"good": good, "copy": good, "fair": fair, "coin": coin}
    judged_run(store, "run", said, labels=labels)
    found = {each.title: each for each in jury_of(store, "run").judges}
    assert {name: each.redundant for name, each in found.items()} == {
        "good": True,  # its copy speaks for it
        "copy": True,
        "fair": False,
        "coin": True,
    }
    assert found["coin"].finding == "the jury does as well without it"
    assert found["good"].finding == "nearly always agrees with copy"


def test_too_few_labels_teach_no_weights(store: Store) -> None:
    judged_run(store, "run", {"x": "AB" * 20, "y": "AB" * 20}, labels="AB" * 5 + "." * 30)
    with pytest.raises(
        InputError,
        match="cannot learn the weights: not enough data: 10 labels; at least 20 are needed",
    ):
        jury_of(store, "run", weights="learned")
    report = jury_of(store, "run")
    assert report.labels == 10
    assert report.accuracy_reason == "not enough data: 10 labels; at least 40 are needed"


def test_people_label_what_the_data_do_not_but_not_by_escalation(store: Store) -> None:
    run = judged_run(store, "run", {"x": "ABA", "y": "ABA"}, labels="A..")
    vote_on(store, run, {"q1": "B", "q2": "B"})
    vote_on(store, run, {"q3": "A"}, origin="escalation")
    sitting = jury_of(store, "run")
    assert sitting.poll.panel.labels.tolist() == [0, 1, -1]
    assert sitting.poll.panel.by_people == 1


def learned(store: Store) -> SavedJury:
    rng = np.random.default_rng(7)
    labels = some_labels(rng, 100)
    said = {"x": letters(rng, labels, 0.9), "y": letters(rng, labels, 0.6)}
    judged_run(store, "taught", said, labels=labels)
    return jury_of(store, "taught", weights="learned").poll.saved


def test_a_saved_jury_comes_back_as_it_was(store: Store, tmp_path: Path) -> None:
    saved = learned(store)
    path = save_jury(saved, tmp_path / "jury.json")
    assert open_jury(path) == saved
    with pytest.raises(InputError, match="already exists"):
        save_jury(saved, path)
    save_jury(saved, path, overwrite=True)


def test_a_saved_jury_knows_its_judges_in_any_order(store: Store) -> None:
    saved = learned(store)
    judged_run(store, "new", {"other": "BB", "y": "BB", "x": "AB"}, keys=["n1", "n2"])
    sitting = jury_of(store, "new", use=saved)
    assert sitting.poll.panel.titles == ("x", "y")
    # x is right far more often, so that q1 is A.
    assert sitting.poll.outcomes.tolist() == [0, 1]
    assert "not on the jury, so no vote: other" in sitting.notes
    assert sitting.poll.verdicts.probability is not None
    assert sitting.poll.verdicts.probability[0] < sitting.poll.verdicts.probability[1]


def test_a_saved_jury_refuses_another_prompt_unless_forced(store: Store) -> None:
    saved = learned(store)
    judged_run(
        store, "new", {"x": "AB", "z": "BB"}, keys=["n1", "n2"], prompt_version="v2", locale="zh"
    )
    with pytest.raises(InputError) as refused:
        jury_of(store, "new", use=saved)
    assert refused.value.message == (
        "the jury has a seat for x [v1, en], which is not one of the judges here (x [v2, zh], "
        "z [v2, zh]); learn a jury from these judges, or give force"
    )
    sitting = jury_of(store, "new", use=saved, force=True)
    assert sitting.poll.panel.titles == ("x", "z")
    assert "z takes the seat of y (forced)" in sitting.notes


def test_a_forced_seat_without_a_judge_has_no_votes(store: Store) -> None:
    saved = learned(store)
    judged_run(store, "new", {"x": "AB"}, keys=["n1", "n2"])
    sitting = jury_of(store, "new", use=saved, force=True)
    assert sitting.poll.panel.votes.tolist() == [[0, -1], [1, -1]]
    assert "no judge for y: the seat has no votes" in sitting.notes


def test_a_jury_tried_where_it_was_learned_says_so(store: Store) -> None:
    saved = learned(store)
    report = jury_of(store, "taught", use=saved)
    assert report.accuracy[0].rule == "this jury"
    assert (
        "the jury was learned or chosen with labels from this run, so its accuracy here is "
        "optimistic"
    ) in report.notes


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("{", r"is not a jury \(the file: Invalid JSON: "),
        ('{"format": "evenhand calibration 1"}', r"is not a jury \(format: Input should be '"),
        (
            "[]",
            r"is not a jury \(the file: Input should be an object\); make one with evenhand jury",
        ),
    ],
)
def test_a_file_that_is_no_jury_is_refused(tmp_path: Path, content: str, said: str) -> None:
    path = tmp_path / "jury.json"
    path.write_text(content)
    with pytest.raises(InputError, match=said):
        open_jury(path)


def test_weights_that_do_not_fit_the_seats_are_refused(store: Store, tmp_path: Path) -> None:
    told = json.loads(learned(store).model_dump_json())
    told["jury"]["weights"] = [1.0]
    (tmp_path / "jury.json").write_text(json.dumps(told))
    with pytest.raises(InputError, match="its seats, weights and quorum do not match"):
        open_jury(tmp_path / "jury.json")


def test_a_jury_that_is_not_there_is_refused_by_its_name() -> None:
    with pytest.raises(InputError, match="no jury 'nobody'"):
        open_jury("nobody")
    with pytest.raises(InputError, match=r"'\.\./x' is not a valid name for a jury"):
        open_jury("../x")


def test_rows_keep_every_vote_and_its_dissent(store: Store, tmp_path: Path) -> None:
    judged_run(store, "run", THREE, labels="A......B")
    sitting = jury_of(store, "run", weights="majority")
    assert write_jury_rows(sitting, tmp_path / "rows.jsonl") == 8
    rows = [json.loads(line) for line in (tmp_path / "rows.jsonl").read_text().splitlines()]
    assert [row["outcome"] for row in rows] == (
        ["win", "win", "win", "tie", "hung", "hung", "noQuorum", "win"]
    )
    assert [row["winner"] for row in rows] == ["A", "A", "B", "TIE", None, None, None, "A"]
    assert [row["label"] for row in rows] == ["A", *[None] * 6, "B"]
    said = [(vote["judge"], vote["vote"], vote["outcome"]) for vote in rows[6]["votes"]]
    assert said == [("x", "A", "win"), ("y", None, "inconsistent"), ("z", None, "invalid")]
    assert rows[6]["votes"][0]["promptVersion"] == "v1"
    assert rows[6]["votes"][0]["locale"] == "en"
    assert rows[7]["votes"][2]["outcome"] is None
    assert rows[1]["dissent"] == pytest.approx(1 / 3)
    assert rows[0]["probability"] is None


def test_without_labels_no_pair_is_lost_for_lack_of_votes(store: Store) -> None:
    # V is A and B, P is A and a tie, Q is a tie and B.
    judged_run(store, "run", {"x": "AVPVX", "y": "VVQPX", "z": "XXVQA"})
    sitting = jury_of(store, "run")
    # In halves for A, B and a tie: 3 1 0; 2 2 0; 2 2 2; 2 2 2; 2 0 0.
    assert sitting.poll.outcomes.tolist() == [0, HUNG, HUNG, HUNG, 0]
    report = sitting
    assert (report.weights, report.quorum, report.chosen_by_labels) == ("plurality", 0, False)
    assert report.gain.value is None
    assert report.gain.reason == (
        "unknown without labels: votes alone do not show whether a jury beats its best judge "
        "(not enough data: 0 labels; at least 20 are needed)"
    )
    first = next(iter(jury_rows(sitting)))["votes"]
    assert [(each["vote"], each["halfVotes"]) for each in first] == [
        ("A", None),
        (None, ("A", "B")),
        (None, None),
    ]
    # A quorum counts verdicts that stand, as it always has.
    counts = jury_of(store, "run", quorum=1).counts
    assert (counts.wins_a, counts.no_quorum) == (2, 3)


def test_an_order_that_leans_one_way_may_decide(store: Store) -> None:
    judged_run(store, "run", {"x": "PQ", "y": "VV"})
    # In halves: 2 1 1, and 1 2 1; nobody has a whole vote.
    sitting = jury_of(store, "run")
    assert sitting.poll.outcomes.tolist() == [0, 1]
    assert sitting.poll.verdicts.voters.tolist() == [0, 0]


def test_labels_choose_the_rule_and_its_gain_is_shown(store: Store, tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    labels = some_labels(rng, 300)
    said = {"x": letters(rng, labels, 0.9), "y": letters(rng, labels, 0.5), "z": "A" * 300}
    judged_run(store, "run", said, labels=labels)
    sitting = jury_of(store, "run")
    report = sitting
    assert report.chosen_by_labels
    assert report.weights in ("member", "learned")
    right = sum(own == label for own, label in zip(said["x"], labels, strict=True))
    rules = {rule.rule: rule for rule in report.accuracy}
    assert rules["best member"].picks == {"x": 5}
    assert rules["best member"].half_credit.value == pytest.approx(right / 300)
    assert report.gain == rules["chosen"].gain
    assert report.gain.high is not None
    assert report.gain.high >= 0
    assert report.effective_votes.value is not None
    # It was chosen by this run's labels, which must not correct it.
    assert sitting.poll.saved.learned_on(["run"])
    assert open_jury(save_jury(sitting.poll.saved, tmp_path / "it.json")) == sitting.poll.saved


def test_a_majority_is_as_good_as_its_own_figures_and_no_better(store: Store) -> None:
    rng = np.random.default_rng(6)
    labels = some_labels(rng, 100)
    # y and z have no verdict on half of the pairs, on which x alone is no quorum.
    gone = "".join("." if place % 2 else "A" for place in range(100))
    said = {"x": letters(rng, labels, 0.9), "y": gone, "z": gone}
    judged_run(store, "run", said, labels=labels)
    rules = {rule.rule: rule for rule in jury_of(store, "run").accuracy}
    assert (rules["majority"].decided.part, rules["majority"].quorum) == (50, 2)
    assert rules["plurality"].decided.part == 100
    assert rules["learned"].decided.part == 100


V1_JURY = {
    "format": "evenhand jury 1",
    "runs": ["elsewhere"],
    "jurors": [{"judge": name, "promptVersion": "v1", "locale": "en"} for name in "xyz"],
    "quorum": 2,
    "jury": {
        "judges": ["x", "y", "z"],
        "method": "majority",
        "weights": None,
        "tieWeights": None,
        "tieLevel": None,
        "ties": True,
        "penalty": None,
        "labels": 0,
        "prompts": 0,
        "folds": 0,
        "seed": 0,
        "scores": [],
        "reason": None,
    },
}


def test_a_jury_that_an_earlier_evenhand_saved_votes_as_it_did(
    store: Store, tmp_path: Path
) -> None:
    (tmp_path / "old.json").write_text(json.dumps(V1_JURY))
    judged_run(store, "run", {"x": "AAP", "y": "AVV", "z": "BVQ"})
    sitting = jury_of(store, "run", use=open_jury(tmp_path / "old.json"))
    assert sitting.poll.outcomes.tolist() == [0, NO_QUORUM, NO_QUORUM]


@pytest.mark.parametrize("change", [{"method": "member"}, {"method": "member", "member": 3}])
def test_a_member_that_has_no_seat_is_refused(tmp_path: Path, change: dict[str, object]) -> None:
    told = {**V1_JURY, "jury": {**V1_JURY["jury"], **change}}  # type: ignore[dict-item]
    (tmp_path / "jury.json").write_text(json.dumps(told))
    with pytest.raises(InputError, match="its seats, weights and quorum do not match"):
        open_jury(tmp_path / "jury.json")


def test_a_learned_jurys_rows_tell_its_probabilities(store: Store) -> None:
    saved = learned(store)
    for row in jury_rows(jury_of(store, "taught", use=saved)):
        assert row["probability"] == max(row["chances"].values())
        assert sum(row["chances"].values()) == pytest.approx(1)


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(
    st.integers(1, 4).flatmap(
        lambda judges: st.lists(
            st.text("ABTIX.VPQ", min_size=judges, max_size=judges), min_size=1, max_size=12
        )
    )
)
def test_exchanging_a_and_b_exchanges_the_verdicts(
    tmp_path_factory: pytest.TempPathFactory, rows: list[str]
) -> None:
    mirror = str.maketrans("ABPQ", "BAQP")
    columns = {f"judge {place}": "".join(own) for place, own in enumerate(zip(*rows, strict=True))}
    if all(set(said) == {"."} for said in columns.values()):
        return
    turned = {judge: said.translate(mirror) for judge, said in columns.items()}
    with open_store(tmp_path_factory.mktemp("jury") / "store.db") as store:
        judged_run(store, "run", columns)
        judged_run(store, "turned", turned, keys=[f"t{place}" for place in range(len(rows))])
        one, other = (jury_of(store, name) for name in ("run", "turned"))
    exchanged = np.where(one.poll.outcomes <= 1, 1 - one.poll.outcomes, one.poll.outcomes)
    assert other.poll.outcomes.tolist() == exchanged.tolist()
    assert other.poll.verdicts.dissent.tolist() == one.poll.verdicts.dissent.tolist()
