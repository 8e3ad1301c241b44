from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path
from typing import Any, Literal

import pytest

from evenhand.analyses.rank import (
    RunRanking,
    fit_options,
    rank_file,
    rank_runs,
    sum_up_ranking,
)
from evenhand.analysis_options import RankOptions
from evenhand.contract import Outcome
from evenhand.data.battles import read_battles
from evenhand.errors import DataError, InputError
from evenhand.stats.ranking.elo import rate_elo
from evenhand.stats.ranking.leaderboard import rank_battles
from evenhand.stats.ranking.result import Ranking
from evenhand.store import NewVerdict, Store
from evenhand.store.columns import ColumnStore
from evenhand.store.verdicts import VerdictStore
from store_values import decided, failure
from stored_runs import Row, follows_place, make_run, mumbles, says

NONE = RankOptions(intervals="none")
VERDICTS_ALONE = "The ranks and scores below use the judge's verdicts alone."


@dataclass(frozen=True)
class Met:
    """Two models on a prompt. `said` is A, B or TIE; `place`: inconsistent; `nothing`: invalid."""

    key: str
    a: str | None
    b: str | None
    said: str
    prompt: str = ""
    tags: tuple[str, ...] = ()
    judged: bool = True

    @property
    def row(self) -> Row:
        answer = {"place": follows_place, "nothing": mumbles}.get(self.said) or says(self.said)
        return Row(
            self.key,
            answer,
            model_a=self.a,
            model_b=self.b,
            tags=self.tags,
            pair={"prompt": self.prompt or f"Question {self.key}?"},
            judged=self.judged,
        )


def make(store: Store, name: str, battles: Sequence[Met], **more: Any) -> int:
    return make_run(store, name, [each.row for each in battles], **more)


def league(rounds: int, *, seed: int = 0) -> list[Met]:
    """Every model against every other on each prompt; the later in the alphabet, the better."""
    rng = random.Random(seed)
    battles = []
    for prompt in range(rounds):
        for worse, better in combinations(("ant", "bee", "cat", "dog"), 2):
            said = rng.choices(("A", "B", "TIE", "place", "nothing"), (2, 5, 1, 1, 1))[0]
            a, b = worse, better
            if rng.random() < 0.5:
                a, b, said = b, a, {"A": "B", "B": "A"}.get(said, said)
            tags = ("even",) if prompt % 2 == 0 else ("odd",)
            key = f"{seed}-{prompt}-{worse}-{better}"
            battles.append(Met(key, a, b, said, prompt=f"Prompt {seed}-{prompt}?", tags=tags))
    return battles


Columns = tuple[list[str | None], list[str | None], list[str]]


def columns_of(battles: Sequence[Met]) -> Columns:
    valid = [each for each in battles if each.said != "nothing"]
    winners = ["TIE" if each.said == "place" else each.said for each in valid]
    return [each.a for each in valid], [each.b for each in valid], winners


def expected(battles: Sequence[Met], **options: Any) -> Ranking:
    prompts = [each.prompt for each in battles if each.said != "nothing"]
    return rank_battles(*columns_of(battles), prompt=prompts, **options)


def close(found: Ranking | None, wanted: Ranking) -> None:
    assert found is not None
    assert [row.model for row in found.models] == [row.model for row in wanted.models]
    for mine, theirs in zip(found.models, wanted.models, strict=True):
        assert mine.games == theirs.games
        assert (mine.rank, mine.rank_low, mine.rank_high) == (
            theirs.rank,
            theirs.rank_low,
            theirs.rank_high,
        )
        for name in ("score", "log_odds", "low", "high"):
            assert getattr(mine, name) == pytest.approx(getattr(theirs, name), abs=1e-6)


def test_two_models_differ_by_the_logarithm_of_their_odds(store: Store) -> None:
    rows = [Met(f"q{n}", "new", "old", said) for n, said in enumerate("AAAB")]
    make(store, "duel", rows)
    ranked = rank_runs(store, ["duel"], NONE)
    assert ranked.ranking is not None
    best, worst = ranked.ranking.models
    # Three wins to one: the odds are 3, and 400 points are odds of ten.
    assert (best.model, worst.model) == ("new", "old")
    assert best.score - worst.score == pytest.approx(400 * math.log10(3))
    assert best.score + worst.score == pytest.approx(2000)
    assert best.log_odds - worst.log_odds == pytest.approx(math.log(3))
    assert (best.games, worst.games) == (4, 4)
    assert (best.low, best.rank_low, ranked.ranking.indistinguishable) == (None, None, None)


def test_inconsistent_counts_as_half_and_invalid_is_left_out(store: Store) -> None:
    rows = [
        Met("q1", "new", "old", "A"),
        Met("q2", "new", "old", "A"),
        Met("q3", "old", "new", "A"),
        Met("q4", "old", "new", "TIE"),
        Met("q5", "new", "old", "place"),
        Met("q6", "new", "old", "nothing"),
        Met("q7", "new", "old", "A", judged=False),
    ]
    make(store, "duel", rows)
    for options in (NONE, RankOptions()):
        ranked = rank_runs(store, ["duel"], options)
        counts = ranked.counts
        assert (counts.wins_a, counts.wins_b, counts.ties) == (3, 0, 1)
        assert (counts.inconsistent, counts.invalid, ranked.pending) == (1, 1, 1)
        assert ranked.ranking is not None
        best, worst = ranked.ranking.models
        # new: 2 wins and 2 halves make 3 of 5; odds 3 to 2.
        assert (best.model, best.games) == ("new", 5)
        assert best.log_odds - worst.log_odds == pytest.approx(math.log(3 / 2))


def flipped_duel(store: Store) -> int:
    """new wins 3 to 1 where both orders agree; two pairs follow the place, one of them averaged."""
    rows = [Met(f"q{n}", "new", "old", said) for n, said in enumerate("AAAB")]
    rows += [Met("place", "new", "old", "place", tags=("even",))]
    rows += [Met("averaged", "new", "old", "A", tags=("even",), judged=False)]
    rows += [Met("nothing", "new", "old", "nothing", tags=("even",))]
    rows += [Met("agreed", "new", "old", "A", tags=("even",), judged=False)]
    run_id = make(store, "duel", rows)
    judge_id = store.runs.judges(run_id)[0].id
    averaged = decided(Outcome.WIN, "B", 0.6, "logprobs", "A", "B")
    agreed = decided(Outcome.WIN, "A", 0.6, "logprobs", "A", "A")
    store.work.write(
        [], [NewVerdict(run_id, 6, judge_id, averaged), NewVerdict(run_id, 8, judge_id, agreed)]
    )
    return run_id


def test_verdicts_that_changed_with_the_order_may_be_left_out(store: Store) -> None:
    flipped_duel(store)
    kinds: tuple[Literal["sandwich", "none"], ...] = ("sandwich", "none")
    for intervals in kinds:
        half = rank_runs(store, ["duel"], RankOptions(intervals=intervals))
        # 4 wins of new, 2 of old, and a half: 4.5 to 2.5.
        assert gap(half) == pytest.approx(math.log(4.5 / 2.5))
        assert (half.flipped, half.counts.inconsistent, half.inconsistent) == (2, 1, "half")
        assert half.notes == (
            "2 of 7 verdicts (28.6%) flipped with the order; counted as half or averaged, "
            "they pull the scores together; inconsistent excluded leaves them out",
        )
        options = RankOptions(intervals=intervals, inconsistent="excluded")
        without = rank_runs(store, ["duel"], options)
        assert gap(without) == pytest.approx(math.log(4 / 1))
        assert (without.flipped, without.inconsistent) == (2, "excluded")
        assert without.counts == half.counts
        assert without.ranking is not None
        assert without.ranking.games == 5
        assert "2 of 7 verdicts (28.6%) flipped with the order" in without.notes[0]
        assert "are left out" in without.notes[0]
    rated = rank_runs(store, ["duel"], RankOptions(elo=True, inconsistent="excluded"))
    assert rated.elo is not None
    assert rated.elo.models[0].games == 5
    tagged = rank_runs(store, ["duel"], RankOptions(inconsistent="excluded", tag="even"))
    assert tagged.flipped == 2
    assert tagged.ranking is not None
    assert tagged.ranking.games == 1


def gap(ranked: RunRanking) -> float:
    assert ranked.ranking is not None
    new, old = (ranked.ranking.find(name) for name in ("new", "old"))
    assert new is not None
    assert old is not None
    return new.log_odds - old.log_odds


def test_few_flips_are_not_worth_a_note_and_nothing_else_to_rank_is_said(store: Store) -> None:
    make(store, "many", [Met(f"q{n}", "new", "old", "AB"[n % 2]) for n in range(20)])
    assert rank_runs(store, ["many"], NONE).notes == ()
    make(store, "few", [Met("p", "new", "old", "place")])
    # 1 of 21 is 4.8%; 1 of 20 would be 5.
    assert rank_runs(store, ["many", "few"], NONE).notes == ()
    with pytest.raises(InputError, match=("run 'few': every valid verdict flipped with the order")):
        rank_runs(store, ["few"], RankOptions(inconsistent="excluded"))


@pytest.mark.parametrize("ties", ["half", "davidson"])
def test_league_is_ranked_as_its_columns_are(store: Store, ties: Any) -> None:
    rows = league(12)
    make(store, "league", rows)
    with_intervals = rank_runs(store, ["league"], RankOptions(ties=ties))
    close(with_intervals.ranking, expected(rows, ties=ties))
    assert with_intervals.ranking is not None
    assert (with_intervals.ranking.clusters, with_intervals.ranking.cluster_count) == ("prompt", 12)
    close(
        rank_runs(store, ["league"], RankOptions(ties=ties, intervals="none")).ranking,
        expected(rows, ties=ties, intervals=None),
    )


def test_without_intervals_no_verdict_is_read_one_by_one(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(store, "league", league(4))

    def refuse(*_: Any, **__: Any) -> None:
        raise AssertionError("one grouped query is enough")

    for subject, name in (
        (ColumnStore, "battles"),
        (ColumnStore, "outcomes"),
        (VerdictStore, "page"),
        (VerdictStore, "tally"),
    ):
        monkeypatch.setattr(subject, name, refuse)
    assert rank_runs(store, ["league"], NONE).ranking is not None


def test_bootstrap_is_seeded(store: Store) -> None:
    make(store, "league", league(8))
    asked = RankOptions(intervals="bootstrap", replicates=200, seed=7)
    first, again = (rank_runs(store, ["league"], asked) for _ in range(2))
    assert first == again
    assert first.ranking is not None
    assert (first.ranking.replicates, first.ranking.seed) == (200, 7)
    other = rank_runs(store, ["league"], RankOptions(intervals="bootstrap", replicates=200))
    assert other.ranking is not None
    assert other.ranking.models[0].low != first.ranking.models[0].low


def test_elo_follows_the_order_of_the_pairs(store: Store) -> None:
    rows = league(3)
    make(store, "league", rows)
    ranked = rank_runs(store, ["league"], RankOptions(elo=True, k=32))
    assert ranked.ranking is None
    assert ranked.elo == rate_elo(*columns_of(rows), k=32)


def test_runs_are_put_together_and_one_named_twice_counts_once(store: Store) -> None:
    first, second = league(6), league(6, seed=1)
    make(store, "first", first)
    make(store, "second", second)
    close(rank_runs(store, ["first", "second"]).ranking, expected([*first, *second]))
    once, twice = rank_runs(store, ["first"]), rank_runs(store, ["first", "first"])
    assert once == twice


def test_each_judge_counts_unless_one_is_named(store: Store) -> None:
    rows = league(6)
    make(store, "league", rows, judges=["strict", "kind"])
    both = rank_runs(store, ["league"])
    assert both.judges == ("strict", "kind")
    assert both.notes[0].startswith("2 judges (strict, kind): every judge's verdict counts")
    one = rank_runs(store, ["league"], RankOptions(judge="kind"))
    assert one.judges == ("kind",)
    assert not any("judges" in note for note in one.notes)
    assert one.counts.valid * 2 == both.counts.valid
    close(one.ranking, expected(rows))
    alone = rank_runs(store, ["league"], RankOptions(intervals="none", judge="strict"))
    close(alone.ranking, expected(rows, intervals=None))
    with pytest.raises(InputError, match=r"no judge 'kin' in run 'league'; did you mean kind\?"):
        rank_runs(store, ["league"], RankOptions(judge="kin"))


def test_run_that_lacks_the_judge_adds_nothing_and_says_so(store: Store) -> None:
    make(store, "first", league(4), judges=["strict"])
    make(store, "second", league(4, seed=1), judges=["kind"])
    ranked = rank_runs(store, ["first", "second"], RankOptions(judge="kind"))
    assert "run first has no judge kind and adds nothing" in ranked.notes
    assert ranked.counts == rank_runs(store, ["second"]).counts
    assert ranked.pending == 0


@pytest.mark.parametrize("options", [NONE, RankOptions()])
def test_only_rows_with_the_tag_count(store: Store, options: RankOptions) -> None:
    rows = [*league(8), Met("alone", "elk", "ant", "A", tags=("rare",))]
    make(store, "league", rows)
    ranked = rank_runs(store, ["league"], replace(options, tag="even"))
    even = [row for row in rows if "even" in row.tags]
    close(ranked.ranking, expected(even, intervals=fit_options(options).intervals))
    assert ranked.tag == "even"
    assert ranked.pending == 0
    assert ranked.ranking is not None
    assert ranked.ranking.find("elk") is None
    with pytest.raises(InputError, match=r"no row has the tag 'evn'; did you mean even\?"):
        rank_runs(store, ["league"], replace(options, tag="evn"))
    with pytest.raises(InputError, match="no row has the tag 'x'; the tags are even, odd, rare"):
        rank_runs(store, ["league"], replace(options, tag="x"))


def test_undefeated_and_never_compared_models_are_named(store: Store) -> None:
    rows = [
        Met("q1", "top", "low", "A"),
        Met("q2", "top", "low", "A"),
        Met("q3", "low", "mid", "A"),
        Met("q4", "low", "mid", "B"),
        Met("q5", "new", "mid", "nothing"),
    ]
    make(store, "league", rows)
    for options in (NONE, RankOptions()):
        ranking = rank_runs(store, ["league"], options).ranking
        assert ranking is not None
        assert (ranking.undefeated, ranking.never_compared) == (("top",), ("new",))
        assert ranking.prior > 0
        assert any("a prior was used" in note for note in ranking.notes)


def test_pairs_without_names_are_counted_and_left_out(store: Store) -> None:
    named = league(4)
    rows = [
        *named,
        Met("q1", None, None, "A"),
        Met("q2", "ant", None, "A"),
        Met("q3", "ant", "ant", "A"),
    ]
    make(store, "league", rows)
    for options in (NONE, RankOptions()):
        ranked = rank_runs(store, ["league"], options)
        assert (ranked.unnamed, ranked.against_itself) == (2, 1)
        assert ranked.counts == rank_runs(store, ["league"]).counts
        assert ranked.notes[:2] == (
            "2 verdicts are left out: the pairs do not name two models",
            "1 verdict compares a model with itself and is left out",
        )
    close(rank_runs(store, ["league"]).ranking, expected(named))


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([], "run 'bare' has no verdicts yet; judge its pairs first with evenhand run"),
        (
            [Met("q1", "a", "b", "A", judged=False)],
            r"no verdicts yet \(1 pending\)",
        ),
        (
            [Met("q1", None, None, "A"), Met("q2", None, None, "nothing")],
            "its pairs do not name their models; give evenhand run a file with the columns model_a",
        ),
        ([Met("q1", "a", "a", "A")], "no pair names two different models; a ranking needs two"),
        ([Met("q1", "a", "b", "nothing")], "every verdict is invalid; evenhand runs show says"),
    ],
)
@pytest.mark.parametrize("options", [NONE, RankOptions(), RankOptions(elo=True)])
def test_nothing_to_rank_is_an_error_that_says_why(
    store: Store, rows: list[Met], said: str, options: RankOptions
) -> None:
    make(store, "bare", rows)
    with pytest.raises(InputError, match=said):
        rank_runs(store, ["bare"], options)


def test_one_verdict_has_a_rank_and_no_interval(store: Store) -> None:
    make(store, "one", [Met("q1", "a", "b", "A")])
    ranked = rank_runs(store, ["one"])
    assert ranked.ranking is not None
    assert [row.model for row in ranked.ranking.models] == ["a", "b"]
    assert ranked.ranking.reason == "not enough data for intervals: 1 prompt; at least 2 are needed"
    assert ranked.ranking.models[0].low is None


def test_only_ties_leave_all_models_equal(store: Store) -> None:
    rows = [Met(f"q{n}", a, b, "TIE") for n, (a, b) in enumerate([("a", "b"), ("b", "c")] * 3)]
    make(store, "ties", rows)
    for options in (NONE, RankOptions()):
        ranking = rank_runs(store, ["ties"], options).ranking
        assert ranking is not None
        assert [row.score for row in ranking.models] == pytest.approx([1000.0] * 3)
        assert [row.model for row in ranking.models] == ["a", "b", "c"]


def test_runs_that_chose_or_ended_by_themselves_are_marked(store: Store) -> None:
    adaptive = make(store, "adaptive", league(3), plan={"rank_adaptive": {"seed": 0}})
    decided = make(store, "decided", league(3), plan={"until_decided": {"seed": 0}})
    store.runs.update(decided, state="stopped", stopped_by="decided")
    assert adaptive
    # Every pair is judged, so none was chosen.
    note, *_ = rank_runs(store, ["adaptive", "decided"]).notes
    assert note.startswith("run decided stopped as soon as it was decided")


def adaptive_run(store: Store, battles: Sequence[Met], *, share: int) -> list[Met]:
    """A run that planned so many of its battles and chose the others; one is left over. Returns
    what was planned."""
    waiting = [replace(each, judged=False) for each in battles]
    left_over = Met("left", "ant", "bee", "A", judged=False)
    run_id = make(store, "adaptive", [*waiting, left_over], plan={"rank_adaptive": {"seed": 0}})
    judge = store.runs.judges(run_id)[0]
    store.work.fill_queue(run_id, seed=0, by_models=True)
    store.work.draw_uniform_share(run_id, judge.id, number=share, seed=0)
    planned = store.work.uniform_share(run_id) - {len(battles) + 1}
    for number, each in enumerate(battles, 1):
        store.work.write([], [NewVerdict(run_id, number, judge.id, decision_of(each))])
    return [each for number, each in enumerate(battles, 1) if number in planned]


def decision_of(battle: Met) -> Any:
    winner: Any = battle.said
    if winner == "nothing":
        return failure([])
    if winner == "place":
        return decided(Outcome.INCONSISTENT, "TIE", 0.5, "rule", "A", "B")
    return decided(Outcome.TIE if winner == "TIE" else Outcome.WIN, winner, None, "none")


@pytest.mark.parametrize("intervals", ["sandwich", "none"])
def test_what_earlier_verdicts_chose_is_in_no_score_or_range(
    store: Store, intervals: Literal["sandwich", "none"]
) -> None:
    battles = league(20)
    planned = adaptive_run(store, battles, share=80)
    ranked = rank_runs(store, ["adaptive"], RankOptions(intervals=intervals))
    fitted = fit_options(RankOptions(intervals=intervals)).intervals
    close(ranked.ranking, expected(planned, intervals=fitted))
    assert 79 <= len(planned) <= 80
    assert ranked.counts.valid + ranked.counts.invalid == len(planned)
    valid = [sum(each.said != "nothing" for each in rows) for rows in (planned, battles)]
    order = ranked.adaptive
    assert order is not None
    assert (order.planned, order.verdicts) == tuple(valid)
    assert sorted(order.models) == ["ant", "bee", "cat", "dog"]
    assert ranked.notes[0] == (
        "adaptive chose pairs by earlier verdicts; scores, intervals and ranks use the "
        f"{valid[0]} of its {valid[1]} valid verdicts that were drawn beforehand; by all of "
        f"them the likely order is {' > '.join(order.models)} (expected Kendall tau "
        f"{order.expected_tau:.2f})"
    )


def test_a_tag_of_an_adaptive_run_is_ranked_by_what_was_planned(store: Store) -> None:
    planned = adaptive_run(store, league(20), share=80)
    ranked = rank_runs(store, ["adaptive"], RankOptions(tag="odd"))
    close(ranked.ranking, expected([each for each in planned if "odd" in each.tags]))


def test_an_adaptive_run_and_another_are_ranked_together(store: Store) -> None:
    planned = adaptive_run(store, league(20), share=80)
    make(store, "plain", league(5, seed=1))
    ranked = rank_runs(store, ["adaptive", "plain"])
    close(ranked.ranking, expected([*planned, *league(5, seed=1)]))


def test_a_run_without_a_uniform_share_has_no_ranges(store: Store) -> None:
    """One that began before there was such a share."""
    adaptive_run(store, league(20), share=0)
    ranked = rank_runs(store, ["adaptive"])
    close(ranked.ranking, expected(league(20), intervals=None))
    assert sum_up_ranking(ranked)[0].code == "ranking.leads_unsure"
    assert ranked.notes[0] == (
        "adaptive chose every pair by earlier verdicts, so no interval or rank range is "
        "valid; run it again to draw a uniform share first"
    )


def test_hostile_names_stay_what_they_are_in_both_ways_of_reading(store: Store) -> None:
    names = "nul\x00", "sub\x1a0", "[red]\x1b[31m"
    rows = [
        Met("q1", names[0], names[1], "A"),
        Met("q2", names[1], names[2], "A"),
        Met("q3", names[2], names[0], "A"),
    ]
    make(store, "hostile", rows)
    for options in (NONE, RankOptions()):
        ranking = rank_runs(store, ["hostile"], options).ranking
        assert ranking is not None
        assert {row.model for row in ranking.models} == set(names)


def written(path: Path, text: str) -> Path:
    path.write_text(text, "utf-8")
    return path


BATTLES = """model_a,model_b,winner,prompt,tags,weight
x,y,A,1,math,1
y,z,tie,1,math,1
z,x,model_a,2,law,2
y,x,y,2,law,1
z,y,B,3,law,0.5
"""


def test_file_of_battles_is_ranked_as_its_columns_are(tmp_path: Path) -> None:
    ranked = rank_file(read_battles(written(tmp_path / "b.csv", BATTLES)))
    wanted = rank_battles(
        ["x", "y", "z", "y", "z"],
        ["y", "z", "x", "x", "y"],
        [1, 0.5, 1, 1, 0],
        prompt=[1, 1, 2, 2, 3],
        weight=[1, 1, 2, 1, 0.5],
    )
    close(ranked.ranking, wanted)
    assert ranked.file is not None
    assert ranked.file.endswith("b.csv")
    counts = ranked.counts
    assert (counts.wins_a, counts.wins_b, counts.ties, ranked.graded) == (3, 1, 1, 0)
    law = rank_file(read_battles(tmp_path / "b.csv"), RankOptions(tag="law"))
    close(
        law.ranking,
        rank_battles(
            ["z", "y", "z"], ["x", "x", "y"], [1, 1, 0], prompt=[2, 2, 3], weight=[2, 1, 0.5]
        ),
    )


def test_graded_preferences_are_counted_apart(tmp_path: Path) -> None:
    text = "left_model,right_model,score\na,b,0.75\nb,a,0.75\na,b,1\n"
    columns = {"model_a": "left_model", "model_b": "right_model", "preference": "score"}
    ranked = rank_file(read_battles(written(tmp_path / "b.csv", text), columns=columns))
    assert (ranked.graded, ranked.counts.wins_a, ranked.counts.ties) == (2, 1, 0)
    assert ranked.ranking is not None
    best, worst = ranked.ranking.models
    # a scores 0.75 + 0.25 + 1 of 3.
    assert best.log_odds - worst.log_odds == pytest.approx(math.log(2 / 1))


def test_bad_row_stops_a_file_or_is_counted(tmp_path: Path) -> None:
    path = written(tmp_path / "b.csv", BATTLES + "x,x,A,4,law,1\nx,y,perhaps,4,law,1\n")
    with pytest.raises(DataError, match=r"row 7: 'x' is compared with itself.*bad_rows skip"):
        read_battles(path, skip_bad_rows=False)
    ranked = rank_file(read_battles(path))
    assert ranked.bad_rows == 2
    whole = rank_file(read_battles(written(tmp_path / "good.csv", BATTLES)))
    assert ranked.ranking == whole.ranking
    bad = written(tmp_path / "bad.csv", "model_a,model_b,winner\nx,x,A\n")
    with pytest.raises(DataError, match=r"has no battles; its first bad row: .*row 2: 'x' is"):
        rank_file(read_battles(bad))


def test_result_can_be_written_and_read_back(store: Store) -> None:
    make(store, "league", league(4))
    ranked = rank_runs(store, ["league"])
    told = ranked.model_dump(mode="json", exclude={"ranking": {"win_matrix"}})
    assert RunRanking.model_validate(told) == ranked
    assert ranked.model_dump(mode="json")["ranking"]["winMatrix"][0][0] == 0.5


def three_models(said: str, prompts: int) -> list[Met]:
    """Of each two models the first in the alphabet is always A."""
    return [
        Met(f"{n}-{a}-{b}", a, b, said, prompt=f"Prompt {n}?")
        for n in range(prompts)
        for a, b in combinations(("ant", "bee", "cat"), 2)
    ]


@pytest.mark.parametrize("options", ["both orders", "one order"])
def test_nobody_leads_by_a_judge_that_takes_the_first_response(store: Store, options: str) -> None:
    met = three_models("place", 20)
    rows = [each.row for each in met]
    if options == "one order":  # where A always wins, and the ant before all
        rows = [replace(row, pair={**(row.pair or {}), "swap_positions": False}) for row in rows]
    make_run(store, "first", rows)
    ranked = rank_runs(store, ["first"])
    claim, *trust = sum_up_ranking(ranked)
    assert trust == [VERDICTS_ALONE]
    # Each model meets the other two on each of 20 prompts.
    if options == "one order":
        assert (ranked.one_order, ranked.flipped, ranked.counts.wins_a) == (60, 0, 60)
        assert claim == (
            "No conclusion on ant vs the others: 40 of 40 pairs were judged in one order "
            "only, so position may have decided."
        )
        assert any("60 verdicts were judged in one order" in note for note in ranked.notes)
    else:
        assert (ranked.one_order, ranked.flipped) == (0, 60)
        assert claim == (
            "No conclusion on ant vs the others: in 100% of 40 pairs the verdict flipped "
            "when the order was swapped, usually to the same position."
        )


def test_nobody_leads_by_a_judge_that_labels_show_to_be_a_coin(store: Store) -> None:
    rows = [
        replace(each.row, label="A" if number % 2 else "B")
        for number, each in enumerate(three_models("A", 100))
    ]
    make_run(store, "coin", rows)
    ranked = rank_runs(store, ["coin"])
    assert ranked.labels is not None
    # The three models' pairs of a prompt have the same texts: 100 pairs, judged three times.
    assert (ranked.labels.right, ranked.labels.wrong) == (50, 50)
    # Labels on every pair decide, as in a report: ant and people name the same one in half.
    claim, *_ = sum_up_ranking(ranked)
    assert claim.startswith("ant and the others are not significantly different: ant at 50%")
    assert claim.endswith("100 prompts, by labels).")


def test_nobody_leads_by_labels_of_other_pairs_that_show_a_coin(store: Store) -> None:
    known = [Met(f"known-{n}", "eel", "fox", "A").row for n in range(100)]
    labelled = [replace(row, label="A" if n % 2 else "B") for n, row in enumerate(known)]
    store.runs.update(make_run(store, "known", labelled), state="finished")
    make(store, "league", three_models("A", 100))
    # Wilson's interval for 50 of 100: 0.5 ± 1.96 / 2 / sqrt(100 + 1.96²), or 40.4 to 59.6
    assert [*sum_up_ranking(rank_runs(store, ["league"]))] == [
        "No conclusion on ant vs the others: the judge is right on 50% (95% CI 40–60) "
        "of 100 decided pairs with labels from run known; no evidence that it beats a coin "
        "flip.",
        VERDICTS_ALONE,
    ]


def test_pairs_that_are_pending_in_the_order_of_the_file_count_against_the_lead(
    store: Store,
) -> None:
    for name, judged in (("late", 299), ("early", 60)):
        rows = [
            replace(each.row, judged=number < judged)
            for number, each in enumerate(three_models("A", 100))
        ]
        make_run(store, name, rows)
    ranked = rank_runs(store, ["late"])
    assert (ranked.pending, sum_up_ranking(ranked)[0].code) == (1, "ranking.leads")
    # Of its 200 pairs ant has won 40, and may lose 160.
    assert sum_up_ranking(rank_runs(store, ["early"]))[0].startswith(
        "No conclusion yet on ant vs the others: 160 of 200 pairs are pending"
    )


def test_a_random_part_of_a_run_speaks_for_the_rest(store: Store) -> None:
    adaptive_run(store, three_models("A", 100), share=200)
    ranked = rank_runs(store, ["adaptive"])
    assert ranked.pending == 1
    assert sum_up_ranking(ranked)[0].code == "ranking.leads"


def test_verdicts_that_are_missing_count_against_the_lead(store: Store) -> None:
    """ant wins all that it was given; of its 200 pairs 20 or 140 have no verdict."""
    for name, lost in (("few", 30), ("many", 210)):
        rows = [
            replace(each, said="nothing" if number < lost else "A")
            for number, each in enumerate(three_models("A", 100))
        ]
        make(store, name, rows)
    claim, *_ = sum_up_ranking(rank_runs(store, ["few"]))
    assert claim.code == "ranking.leads"
    claim, *_ = sum_up_ranking(rank_runs(store, ["many"]))
    assert claim == (
        "No conclusion on ant vs the others: 140 of 200 pairs have no verdict, which could "
        "change the result."
    )


def test_a_lead_holds_where_orders_that_disagree_count_as_half(store: Store) -> None:
    """They pull the scores together: whoever leads all the same does, unless they are at least as
    many as the verdicts that both orders agree on."""
    for name, agreeing in (("some", 3), ("most", 2)):  # of five
        rows = [
            replace(each, said="A" if number % 5 < agreeing else "place")
            for number, each in enumerate(three_models("A", 100))
        ]
        make(store, name, rows)
    ranked = rank_runs(store, ["some"])
    assert (ranked.flipped, ranked.counts.inconsistent) == (120, 120)
    claim, flips = sum_up_ranking(ranked)
    assert claim.code == "ranking.leads"
    assert flips == "120 of 300 verdicts flipped with the order."
    claim, alone = sum_up_ranking(rank_runs(store, ["most"]))
    assert alone == VERDICTS_ALONE
    assert claim.code == "no_conclusion.position"


def test_a_few_verdicts_in_one_order_are_noted(store: Store) -> None:
    rows = [each.row for each in three_models("A", 40)]
    rows[:6] = [
        replace(row, pair={**(row.pair or {}), "swap_positions": False}) for row in rows[:6]
    ]
    make_run(store, "few", rows)
    for tag_or_all in (RankOptions(), NONE):
        ranked = rank_runs(store, ["few"], tag_or_all)
        assert ranked.one_order == 6  # of 120: a twentieth, which is not more than that
        assert [each.code for each in sum_up_ranking(ranked)] in (
            ["ranking.leads"],
            ["ranking.leads_unsure"],
        )
        assert any("6 verdicts were judged in one order" in note for note in ranked.notes)
