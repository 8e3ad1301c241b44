"""Corrected win rates of stored runs: which labels count, with what chances, and what comes out."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from analysed import analysis_of, jury_of
from evenhand.analyses.registry import CORRECT
from evenhand.analysis_options import CorrectOptions
from evenhand.errors import InputError
from evenhand.stats.correction.corrected_rate import RateEstimate, corrected_win_rate
from evenhand.stats.correction.labels import doubts_of_confidence, draw_labels, joint_chances
from evenhand.store import NewJudge, NewRun, NewVerdict, Store, open_store
from evenhand.trust.pair_draws import PairDraw, draw_pairs, write_draw
from evenhand.trust.panels import save_jury
from evenhand.trust.vote_files import import_votes
from judged_runs import judged_run, vote_on
from store_values import item, win

SCORES = {"A": 1.0, "B": 0.0, "T": 0.5, "I": 0.5, "X": 0.5}


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with open_store(tmp_path / "store.db") as opened:
        yield opened


class World:
    """Pairs with people's verdicts on all, of which a store knows only what is voted."""

    def __init__(self, store: Store, pairs: int = 120, *, seed: int = 0, doubts: bool = True):
        rng = np.random.default_rng(seed)
        self.store = store
        self.people = "".join("AB"[int(code)] for code in rng.random(pairs) < 0.4)
        confidence = rng.uniform(0.55, 0.95, pairs).round(3)
        wrong = rng.random(pairs) > confidence
        other = {"A": "B", "B": "A"}
        self.judge = "".join(
            other[own] if off else own for own, off in zip(self.people, wrong, strict=True)
        )
        self.judge = "IXT" + self.judge[3:]
        self.confidences = confidence
        self.keys = [f"q{place}" for place in range(1, pairs + 1)]
        self.truth = dict(zip(self.keys, self.people, strict=True))
        self.run = judged_run(
            store,
            "run",
            {"judge": self.judge},
            keys=self.keys,
            confidences=confidence.tolist() if doubts else [None] * pairs,
        )

    @property
    def judge_scores(self) -> list[float]:
        return [SCORES[own] for own in self.judge]

    @property
    def judge_read(self) -> list[bool]:
        return [own != "X" for own in self.judge]

    def rows(self, ids: list[str]) -> list[int]:
        return [self.keys.index(own) for own in ids]

    def scores(self, ids: list[str]) -> list[float]:
        return [SCORES[self.truth[own]] for own in ids]

    def label(self, drawn: PairDraw, number: int | None = None) -> list[str]:
        """People answer the first pairs of a draw."""
        answered = drawn.pairs[:number]
        for own in answered:
            told = {own.id: self.truth[own.id]}
            vote_on(self.store, self.run, told, draw=drawn.draw, chance=own.chance)
        return [own.id for own in answered]

    def queue_chances(self, number: int, seed: int = 0) -> np.ndarray:
        """The chances after so many draws, from the judge's confidences and the ids alone."""
        known = np.array(self.judge_read)
        doubts = doubts_of_confidence(self.confidences, read=known)
        return draw_labels(doubts, ids=self.keys, seed=seed).chances_after(number)


def alike(one: RateEstimate, other: RateEstimate) -> bool:
    """Up to the order in which prompts are summed."""
    figures = [(each.rate, each.low, each.high) for each in (one, other)]
    return figures[0] == pytest.approx(figures[1], abs=1e-12) and one.n == other.n


def test_labels_drawn_evenly_give_the_statistics_own_rate(store: Store) -> None:
    world = World(store)
    ids = world.keys[::3]
    vote_on(store, world.run, {own: world.truth[own] for own in ids}, draw="random")
    found = analysis_of(CORRECT, store, "run", side="A")
    same = corrected_win_rate(
        world.judge_scores,
        world.rows(ids),
        label_scores=world.scores(ids),
        judge_read=world.judge_read,
    )
    own = found.corrections[0]
    assert alike(own.corrected, same.corrected)
    assert alike(own.uncorrected, same.uncorrected)
    assert alike(own.people_only, same.people_only)
    assert own.judge_weight == pytest.approx(same.judge_weight)
    assert own.gain == pytest.approx(same.gain)
    assert (found.labelled, found.pairs, found.people, found.drawn) == (40, 120, 1, "at random")
    assert own.judge_unread == 1
    # People alone: their wins of 40.
    assert own.people_only.rate == pytest.approx(sum(world.scores(ids)) / 40)


def test_the_other_side_has_the_mirrored_rate(store: Store) -> None:
    world = World(store)
    vote_on(store, world.run, {own: world.truth[own] for own in world.keys[::3]}, draw="random")
    one, other = (
        analysis_of(CORRECT, store, "run", side=side).corrections[0] for side in ("A", "B")
    )
    assert one.corrected.rate is not None
    assert other.corrected.rate == pytest.approx(1 - one.corrected.rate)
    assert one.corrected.low is not None
    assert other.corrected.high == pytest.approx(1 - one.corrected.low)
    assert other.judge_weight == one.judge_weight


def test_labels_follow_their_models_where_rows_change_places(store: Store) -> None:
    models = [("old", "new"), ("new", "old")] * 10
    run = judged_run(store, "run", {"judge": "BA" * 10}, models=models)
    # People find new better in q1 to q16 and old in q17 to q20.
    people = "BA" * 8 + "AB" * 2
    vote_on(store, run, {f"q{place + 1}": own for place, own in enumerate(people)}, draw="random")
    own = analysis_of(CORRECT, store, "run").corrections[0]
    assert (own.model, own.against) == ("new", "old")
    assert own.uncorrected.rate == 1
    assert own.people_only.rate == pytest.approx(16 / 20)


def test_each_two_models_have_their_own_correction(store: Store) -> None:
    models = [("a", "b")] * 12 + [("a", "c")] * 12
    run = judged_run(store, "run", {"judge": "AB" * 12}, models=models)
    vote_on(store, run, {f"q{place}": "A" for place in range(1, 25)}, draw="random")
    found = analysis_of(CORRECT, store, "run", side="A").corrections
    assert [(own.model, own.against, own.labelled) for own in found] == [
        ("a", "b", 12),
        ("a", "c", 12),
    ]


def test_labels_that_come_from_what_a_cascade_left_are_told(store: Store) -> None:
    run = judged_run(store, "run", {"judge": "AABI" * 25})
    hard = [f"q{place}" for place in range(4, 101, 4)]
    left = store.runs.create(NewRun("run-left-abc", "of the rest", {}, ("run-left",)))
    store.items.add(left.id, [item(key, row=row) for row, key in enumerate(hard, start=1)])
    everywhere = [f"q{place}" for place in range(1, 101, 3)]
    vote_on(store, run, dict.fromkeys(everywhere, "A"), draw="random")
    # 9 of 34 (q4, q16, …, q100) are of that quarter: as they should be.
    assert not any("run-left-abc" in note for note in analysis_of(CORRECT, store, "run").notes)
    vote_on(store, run, dict.fromkeys(hard, "B"), draw="random")
    (told,) = (note for note in analysis_of(CORRECT, store, "run").notes if "run-left-abc" in note)
    assert told.startswith("25 of 50 evenly drawn pairs belong to run run-left-abc")
    assert "25% of all" in told


JURY = {"x": "ABTABAIX" * 10, "y": "ABTBBAAX" * 10, "z": "AABBBTBX" * 10}


def jury_world(store: Store) -> tuple[list[str], list[float], list[float]]:
    """Ids of the labelled pairs, people's scores of them, and the majority's of all pairs."""
    run = judged_run(store, "run", JURY)
    ids = [f"q{place}" for place in range(1, 81, 2)]
    said = {own: "AB"[place % 3 == 0] for place, own in enumerate(ids)}
    vote_on(store, run, said, draw="random")
    # Of each eight: all A, two B, two ties, two B, all B, two A, A against B, and no votes.
    majority = [1.0, 0.0, 0.5, 0.0, 0.0, 1.0, 0.5, 0.5] * 10
    return ids, [SCORES[said[own]] for own in ids], majority


def test_a_jurys_rate_is_corrected_as_a_judges_is(store: Store) -> None:
    ids, scores, majority = jury_world(store)
    found = analysis_of(CORRECT, store, "run", jury="majority", side="A")
    same = corrected_win_rate(
        majority,
        [int(own[1:]) - 1 for own in ids],
        label_scores=scores,
        judge_read=([True] * 7 + [False]) * 10,
    )
    own = found.corrections[0]
    assert alike(own.corrected, same.corrected)
    assert alike(own.uncorrected, same.uncorrected)
    assert alike(own.people_only, same.people_only)
    assert found.judge == "a jury of 3, by majority"
    assert own.judge_unread == 10


def test_pairs_that_a_jury_is_divided_on_are_drawn_more_often(store: Store) -> None:
    judged_run(store, "run", {"x": "AB" * 40, "y": "AB" * 40, "z": "AA" * 40})
    drawn = draw_pairs(store, "run", 80, CorrectOptions(jury="majority", seed=3))
    assert drawn.draw == "weighted"
    assert drawn.judge == "a jury of 3, by majority"
    first = draw_pairs(store, "run", 20, CorrectOptions(jury="majority", seed=3)).pairs
    chances = {own.id: own.chance for own in first}
    divided = {chance for own, chance in chances.items() if int(own[1:]) % 2 == 0}
    agreed = {chance for own, chance in chances.items() if int(own[1:]) % 2}
    # All agree on the odd ones, where half of the draw is even: a size of 0.5 against 1.5.
    assert len(divided) == len(agreed) == 1
    assert divided.pop() == pytest.approx(3 * agreed.pop())


def test_a_jury_that_these_labels_taught_is_refused(store: Store, tmp_path: Path) -> None:
    run = judged_run(store, "run", {"x": "AB" * 30, "y": "AA" * 30}, labels="AB" * 30)
    vote_on(store, run, {f"q{place}": "A" for place in range(1, 41)}, draw="random")
    saved = jury_of(store, "run", weights="learned").poll.saved
    save_jury(saved, tmp_path / "it.json")
    with pytest.raises(InputError, match="was learned or chosen with labels from run 'run'"):
        analysis_of(CORRECT, store, "run", jury=str(tmp_path / "it.json"))
    with pytest.raises(InputError, match="both judge x and jury majority are given"):
        analysis_of(CORRECT, store, "run", judge="x", jury="majority")
    other = judged_run(
        store, "later", {"y": "AA" * 30, "x": "AB" * 30}, keys=[f"n{p}" for p in range(1, 61)]
    )
    vote_on(store, other, {f"n{place}": "A" for place in range(1, 41)}, draw="random")
    found = analysis_of(CORRECT, store, "later", jury=str(tmp_path / "it.json"))
    assert found.judge == "a jury of 2, by weights"
    # x is always right by the first labels, so that the jury says what it says: B in one of two.
    assert found.corrections[0].uncorrected.rate == pytest.approx(0.5)


def test_no_labels_are_refused(store: Store) -> None:
    World(store)
    with pytest.raises(InputError, match="no judged pair in run 'run' has a label"):
        analysis_of(CORRECT, store, "run")


def test_labels_that_were_not_drawn_at_random_are_refused(store: Store) -> None:
    run = judged_run(store, "run", {"judge": "AB" * 10}, labels="AB" * 6 + "." * 8)
    vote_on(store, run, {"q13": "A", "q14": "A"})
    vote_on(store, run, {"q15": "A"}, draw="chosen")
    vote_on(store, run, {"q16": "A"}, origin="escalation", draw="random")
    with pytest.raises(InputError) as refused:
        analysis_of(CORRECT, store, "run")
    assert refused.value.message == (
        "run 'run' has no label on a randomly drawn pair (12 from the data, which do not say "
        "how their pairs were drawn; 2 from people, which do not say how their pairs were "
        "drawn; 1 on pairs that were selected; 1 on pairs "
        "shown because the judge was unsure); evenhand correct run draw 100 says which "
        "pairs to label, or give labels_are random if they were drawn at random"
    )


def test_the_users_word_makes_labels_random(store: Store) -> None:
    run = judged_run(store, "run", {"judge": "AB" * 10}, labels="AB" * 6 + "." * 8)
    vote_on(store, run, {"q1": "B", "q13": "A"})
    vote_on(store, run, {"q15": "A"}, draw="chosen")
    vote_on(store, run, {"q16": "A"}, origin="escalation")
    found = analysis_of(CORRECT, store, "run", labels_are="random", side="A")
    # Twelve of the data and q13; q1 has an A of the data and a B of Ann: one half.
    assert found.labelled == 13
    assert found.corrections[0].people_only.rate == pytest.approx((0.5 + 5 + 0 + 1) / 13)
    left = {own.reason.partition(",")[0]: (own.labels, own.pairs) for own in found.left_out}
    assert left == {
        "shown because the judge was unsure": (1, 1),
        "the pair was selected": (1, 1),
    }
    assert found.corrections[0].excluded.escalated == 1


def test_some_labels_of_the_data_have_no_part_beside_drawn_votes(store: Store) -> None:
    run = judged_run(store, "run", {"judge": "AB" * 10}, labels="B" * 19 + ".")
    vote_on(store, run, {f"q{place}": "A" for place in range(1, 13)}, draw="random")
    found = analysis_of(CORRECT, store, "run", side="A")
    assert found.corrections[0].people_only.rate == pytest.approx(1)
    assert [(own.labels, own.reason.partition(":")[0]) for own in found.left_out] == [
        (19, "from the data")
    ]


def test_where_the_data_label_every_pair_they_come_first(store: Store) -> None:
    run = judged_run(store, "run", {"judge": "AB" * 10}, labels="B" * 20)
    vote_on(store, run, {f"q{place}": "A" for place in range(1, 13)}, draw="random")
    found = analysis_of(CORRECT, store, "run", side="A")
    assert (found.drawn, found.corrections[0].people_only.rate) == ("every pair", 0)
    assert [(own.labels, own.reason[:8]) for own in found.left_out] == [(12, "the data")]


def test_a_run_whose_every_pair_is_labelled_needs_no_draw(store: Store) -> None:
    judged_run(store, "run", {"judge": "AB" * 10}, labels="AAAB" * 5)
    found = analysis_of(CORRECT, store, "run", side="A")
    assert found.drawn == "every pair"
    assert found.left_out == ()
    own = found.corrections[0]
    assert own.corrected.rate == own.people_only.rate == pytest.approx(15 / 20)
    assert own.judge_weight == 0


def test_skipped_pairs_are_counted_and_left_out(store: Store) -> None:
    run = judged_run(store, "run", {"judge": "AB" * 10})
    vote_on(store, run, {f"q{place}": "A" for place in range(1, 13)}, draw="random")
    vote_on(store, run, {"q13": "S", "q14": "S"}, draw="random")
    found = analysis_of(CORRECT, store, "run")
    assert found.labelled == 12
    assert [(own.labels, own.reason[:7]) for own in found.left_out] == [(2, "skipped")]
    assert found.corrections[0].excluded.undecided == 2


def test_too_few_labels_give_a_reason_and_no_rate(store: Store) -> None:
    world = World(store)
    vote_on(store, world.run, dict.fromkeys(world.keys[:9], "A"), draw="random")
    own = analysis_of(CORRECT, store, "run").corrections[0]
    assert own.corrected.rate is None
    assert own.reason == "not enough data: 9 labelled pairs; at least 10 are needed"
    assert own.uncorrected.rate is not None


def test_several_judges_need_one_named(store: Store) -> None:
    judged_run(store, "run", {"x": "AB", "y": "AB"})
    with pytest.raises(InputError, match="name one with judge"):
        analysis_of(CORRECT, store, "run")


# Which pairs to label next


def test_doubtful_pairs_are_drawn_more_often(store: Store) -> None:
    World(store)
    drawn = draw_pairs(store, "run", 30)
    assert (drawn.draw, drawn.drawn, drawn.of, len(drawn.pairs)) == ("weighted", 30, 120, 30)
    assert drawn.by_doubt
    assert draw_pairs(store, "run", 30) == drawn
    assert draw_pairs(store, "run", 30, CorrectOptions(seed=1)).pairs != drawn.pairs


def test_without_confidences_all_pairs_have_the_same_chance(store: Store) -> None:
    world = World(store, doubts=False)
    drawn = draw_pairs(store, "run", 30)
    assert drawn.draw == "random"
    assert {own.chance for own in drawn.pairs} == {30 / 120}
    world.label(drawn)
    assert analysis_of(CORRECT, store, "run").drawn == "at random"


def test_a_drawn_sample_counts_by_its_chances(store: Store) -> None:
    world = World(store)
    ids = world.label(draw_pairs(store, "run", 40))
    found = analysis_of(CORRECT, store, "run", side="A")
    same = corrected_win_rate(
        world.judge_scores,
        world.rows(ids),
        label_scores=world.scores(ids),
        judge_read=world.judge_read,
        chances=world.queue_chances(40),
    )
    assert found.drawn == "with known chances"
    assert found.notes == ()
    assert alike(found.corrections[0].corrected, same.corrected)
    assert alike(found.corrections[0].people_only, same.people_only)


def test_people_may_stop_anywhere_in_a_draw(store: Store) -> None:
    world = World(store)
    ids = world.label(draw_pairs(store, "run", 40), number=23)
    found = analysis_of(CORRECT, store, "run", side="A").corrections[0]
    same = corrected_win_rate(
        world.judge_scores,
        world.rows(ids),
        label_scores=world.scores(ids),
        judge_read=world.judge_read,
        chances=world.queue_chances(23),
    )
    assert alike(found.people_only, same.people_only)


def test_a_second_draw_goes_on_and_its_chances_hold_for_all(store: Store) -> None:
    world = World(store)
    first = world.label(draw_pairs(store, "run", 20))
    more = draw_pairs(store, "run", 15)
    assert more.drawn == 35
    assert not {own.id for own in more.pairs} & set(first)
    ids = first + world.label(more)
    found = analysis_of(CORRECT, store, "run", side="A").corrections[0]
    same = corrected_win_rate(
        world.judge_scores,
        world.rows(ids),
        label_scores=world.scores(ids),
        judge_read=world.judge_read,
        chances=world.queue_chances(35),
    )
    assert alike(found.corrected, same.corrected)


def test_pairs_that_were_drawn_and_not_answered_are_told(store: Store) -> None:
    world = World(store)
    drawn = draw_pairs(store, "run", 30)
    answered = drawn.model_copy(update={"pairs": drawn.pairs[:10] + drawn.pairs[12:]})
    world.label(answered)
    (note,) = analysis_of(CORRECT, store, "run").notes
    assert note.startswith("2 of 30 drawn pairs have no verdict; the rate is valid only if ")


def test_an_even_draw_beside_a_weighted_one_joins_it(store: Store) -> None:
    world = World(store)
    even = world.keys[40:60]
    vote_on(store, world.run, {own: world.truth[own] for own in even}, draw="random")
    drawn = draw_pairs(store, "run", 30)
    weighted = world.label(drawn)
    assert not set(weighted) & set(even)  # a pair in both needs no second label
    ids = even + weighted
    found = analysis_of(CORRECT, store, "run", side="A")
    same = corrected_win_rate(
        world.judge_scores,
        world.rows(ids),
        label_scores=world.scores(ids),
        judge_read=world.judge_read,
        chances=joint_chances(world.queue_chances(drawn.drawn), np.full(120, 20 / 120)),
    )
    assert found.labelled == 50
    assert alike(found.corrections[0].corrected, same.corrected)


def test_chances_of_another_source_are_taken_as_told(store: Store) -> None:
    world = World(store)
    chances = np.where(np.arange(120) % 2, 0.5, 0.25)
    ids = world.keys[:30]
    for own, chance in zip(ids, chances.tolist(), strict=False):
        vote_on(store, world.run, {own: world.truth[own]}, draw="weighted", chance=chance)
    found = analysis_of(CORRECT, store, "run", side="A")
    assert found.notes == ("each label's sampling probability comes from its vote",)
    weights = 1 / chances[:30]
    expected = float(weights @ np.array(world.scores(ids)) / weights.sum())
    assert found.corrections[0].people_only.rate == pytest.approx(expected)


def test_escalated_pairs_are_drawn_like_any_other(store: Store) -> None:
    world = World(store, 20)
    vote_on(store, world.run, dict.fromkeys(world.keys[:10], "A"), origin="escalation")
    drawn = draw_pairs(store, "run", 100)
    assert {own.id for own in drawn.pairs} == set(world.keys)
    assert {own.chance for own in drawn.pairs} == {1.0}
    assert drawn.notes == ("only 20 pairs are unlabelled; all of them are drawn",)


def test_rows_of_the_same_texts_are_drawn_once(store: Store) -> None:
    run = store.runs.create(NewRun("run", "fingerprint", {}, ("pairs.jsonl",)))
    items = [item(f"q{place}", row=place, prompt=f"prompt {place % 12}") for place in range(24)]
    store.items.add(run.id, items)
    judge = store.runs.add_judge(NewJudge("key", "judge"))
    store.runs.set_judges(run.id, [judge])
    store.work.write([], [NewVerdict(run.id, place, judge, win("A", [])) for place in range(1, 25)])
    drawn = draw_pairs(store, "run", 100)
    assert (drawn.of, len(drawn.pairs)) == (12, 12)
    vote_on(store, run.id, {own.id: "B" for own in drawn.pairs}, draw="random")
    found = analysis_of(CORRECT, store, "run", side="A")
    assert found.labelled == 24
    assert found.corrections[0].people_only.prompts == 12


def test_everything_labelled_leaves_nothing_to_draw(store: Store) -> None:
    world = World(store, 20)
    vote_on(store, world.run, world.truth, draw="random")
    with pytest.raises(InputError, match="every judged pair in run 'run' already has a label"):
        draw_pairs(store, "run", 5)


def test_a_drawn_file_comes_back_as_votes(store: Store, tmp_path: Path) -> None:
    world = World(store)
    vote_on(store, world.run, dict.fromkeys(world.keys[:50], "A"), origin="escalation")
    drawn = draw_pairs(store, "run", 30)
    write_draw(store, drawn, tmp_path / "draw.csv")
    with (tmp_path / "draw.csv").open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert [row["pair"] for row in rows] == [own.id for own in drawn.pairs]
    assert rows[0]["prompt"] == f"prompt of {rows[0]['pair']}"
    assert "confidence" not in rows[0]  # nor anything else of what the judge said
    for row in rows:
        row |= {"who": "Ann", "verdict": world.truth[row["pair"]]}
    with (tmp_path / "filled.csv").open("w", newline="") as stream:
        writer = csv.DictWriter(stream, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    import_votes(store, "run", tmp_path / "filled.csv")
    found = analysis_of(CORRECT, store, "run", side="A")
    ids = [own.id for own in drawn.pairs]
    same = corrected_win_rate(
        world.judge_scores,
        world.rows(ids),
        label_scores=world.scores(ids),
        judge_read=world.judge_read,
        chances=world.queue_chances(30),
    )
    assert found.labelled == 30  # Ann's escalated ones among them have been asked for anew
    assert alike(found.corrections[0].corrected, same.corrected)


def test_a_file_of_another_ending_is_refused(store: Store, tmp_path: Path) -> None:
    World(store)
    drawn = draw_pairs(store, "run", 3)
    with pytest.raises(InputError, match=r"end the name in \.csv or \.jsonl"):
        write_draw(store, drawn, tmp_path / "draw.txt")
    write_draw(store, drawn, tmp_path / "draw.jsonl")
    with pytest.raises(InputError, match="already exists"):
        write_draw(store, drawn, tmp_path / "draw.jsonl")


def test_drawn_labels_are_right_on_average_over_seeds(store: Store) -> None:
    world = World(store, 200)
    truth = sum(SCORES[own] for own in world.people) / 200
    found = []
    for seed in range(60):
        ids = [own.id for own in draw_pairs(store, "run", 40, CorrectOptions(seed=seed)).pairs]
        weights = 1 / world.queue_chances(40, seed)[world.rows(ids)]
        found.append(float(weights @ np.array(world.scores(ids)) / weights.sum()))
    # One draw of 40 has a standard error of about 0.5 / sqrt(40) = 0.08, and 60 of them 0.01.
    assert abs(float(np.mean(found)) - truth) < 0.03
