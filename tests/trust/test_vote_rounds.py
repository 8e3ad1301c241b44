"""Whom which pair is shown: spread over people, met again by some, and a draw of known chances."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from analysed import analysis_of
from evenhand.analyses.registry import CORRECT
from evenhand.contract import Winner
from evenhand.report.label_samples import label_queue
from evenhand.store import NewVote, Store, StoredVote, VoteColumns, open_store
from evenhand.store.records import PairStanding
from evenhand.trust.label_queue import VoteQueue, rounds, vote_queue, voter_progress
from evenhand.trust.vote_files import export_votes, import_votes
from judged_runs import judged_run
from parts import examples

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def even_queue(pairs: int) -> VoteQueue:
    numbers = np.arange(1, pairs + 1, dtype=np.int64)
    return VoteQueue(numbers, numbers + 1000, np.full(pairs, np.nan), "random", pairs)


def standing_of(pair_id: int, votes: list[StoredVote], who: str) -> PairStanding:
    """What the store counts in SQL, counted again."""
    labels = [
        vote
        for vote in votes
        if vote.verdict and vote.draw in ("random", "weighted") and vote.origin != "escalation"
    ]
    own = [vote for vote in votes if vote.who == who]
    return PairStanding(
        pair_id,
        len(votes),
        len(labels),
        sum(vote.who != who for vote in labels),
        bool(own),
        any(vote.verdict is None for vote in own),
        next((vote.at.timestamp() for vote in own if vote.origin == "page"), None),
    )


class Box:
    """Votes in memory, as a store would give them back."""

    def __init__(self, queue: VoteQueue) -> None:
        self.queue = queue
        self.votes: dict[tuple[int, str], StoredVote] = {}

    def on(self, pair_ids: Sequence[int], who: str) -> list[PairStanding]:
        wanted = set(pair_ids)
        found: dict[int, list[StoredVote]] = {}
        for (pair_id, _), vote in self.votes.items():
            if pair_id in wanted:
                found.setdefault(pair_id, []).append(vote)
        return [standing_of(pair_id, votes, who) for pair_id, votes in found.items()]

    def ask(self, who: str) -> int | None:
        return voter_progress(self.queue, who, self.on).asked

    def vote(self, who: str, place: int, *, skip: bool = False) -> None:
        pair_id = int(self.queue.pair_ids[place])
        at = NOW + timedelta(seconds=len(self.votes))
        verdict: Winner | None = None if skip else "A"
        self.votes[pair_id, who] = StoredVote(
            pair_id, who, verdict, "page", "random", shown_order="original", at=at
        )


def test_rounds_cover_every_pair_once_and_are_few() -> None:
    for pairs in (0, 1, 20, 21, 1000, 1_000_000):
        found = list(rounds(pairs))
        assert [start for start, _ in found] == [0, *(end for _, end in found[:-1])][: len(found)]
        assert (found[-1][1] if found else 0) == pairs
        # As many draws as `LabelQueue.drawn` tells apart.
        assert len(found) < 100


@settings(max_examples=examples(40))
@given(
    pairs=st.integers(1, 60),
    turns=st.lists(st.tuples(st.sampled_from("abcd"), st.booleans()), max_size=150),
)
def test_nobody_is_asked_twice_and_nobody_runs_out_before_the_end(
    pairs: int, turns: list[tuple[str, bool]]
) -> None:
    box = Box(even_queue(pairs))
    voted: dict[str, set[int]] = {who: set() for who in "abcd"}
    for who, skip in turns:
        standing = voter_progress(box.queue, who, box.on)
        assert standing.own == voted[who]
        assert standing.voted + standing.skipped == len(voted[who])
        if standing.asked is None:
            # All that is not this person's was skipped by others alone, or there is none.
            assert len(voted[who]) == pairs
            continue
        assert standing.asked not in voted[who]
        assert standing.asked < standing.reach
        voted[who].add(standing.asked)
        box.vote(who, standing.asked, skip=skip)


@settings(max_examples=examples(30))
@given(turns=st.lists(st.sampled_from("abc"), min_size=1, max_size=120))
def test_a_round_is_labelled_before_the_next_begins(turns: list[str]) -> None:
    box = Box(even_queue(200))
    for who in turns:
        place = box.ask(who)
        assert place is not None
        labelled = {int(pair_id) - 1001 for pair_id, _ in box.votes}
        start = next(start for start, end in rounds(200) if start <= place < end)
        assert set(range(start)) <= labelled
        box.vote(who, place)


def test_one_vote_in_five_is_on_a_pair_that_another_has_labelled() -> None:
    box = Box(even_queue(500))
    for turn in range(200):
        who = "ab"[turn % 2]
        place = box.ask(who)
        assert place is not None
        box.vote(who, place)
    people = Counter(pair_id for pair_id, _ in box.votes)
    # Of 100 votes each, 20 are on the other's; all but those made before there was any.
    assert 36 <= sum(count == 2 for count in people.values()) <= 40


def test_what_everybody_skipped_is_still_open_for_others() -> None:
    box = Box(even_queue(3))
    for _ in range(3):
        place = box.ask("a")
        assert place is not None
        box.vote("a", place, skip=True)
    assert box.ask("a") is None
    assert box.ask("b") is not None


def doubtful(store: Store) -> int:
    sure = [0.5 + 0.5 * (place % 10) / 10 for place in range(300)]
    said = {"judge": "AB" * 150}
    return judged_run(
        store, "kitchen", said, prompts=[f"p{n}" for n in range(300)], confidences=sure
    )


def test_votes_of_whole_rounds_are_a_draw_that_corrects_a_rate(tmp_path: Path) -> None:
    with open_store(tmp_path / "evenhand.db") as store:
        run_id = doubtful(store)
        run = store.runs.at(run_id)
        assert run is not None
        queue = vote_queue(store, run)
        assert (queue.draw, queue.pairs) == ("weighted", 300)
        for who in ("ann", "ben"):
            for _ in range(25):
                standing = voter_progress(queue, who, store.votes.standings)
                assert standing.asked is not None
                place = standing.asked
                store.votes.add(
                    [
                        NewVote(
                            int(queue.pair_ids[place]),
                            who,
                            "A",
                            origin="page",
                            draw=queue.draw,
                            chance=queue.chance_at(place),
                        )
                    ]
                )
        columns = store.columns.outcomes(run_id, store.runs.judges(run_id)[0].id)
        known = label_queue(store, run_id, columns, seed=0)
        votes: VoteColumns = store.votes.columns(run_id)
        rows = known.of_row[np.asarray(votes.number) - 1]
        drawn = known.drawn(rows, np.asarray(votes.chance))
        assert drawn in {end for _, end in rounds(300)}
        corrected = analysis_of(CORRECT, store, "kitchen")
        assert not any("comes from its vote" in note for note in corrected.notes)


def test_a_store_counts_votes_on_pairs_as_the_box_does(tmp_path: Path) -> None:
    with open_store(tmp_path / "evenhand.db") as store:
        run_id = judged_run(store, "kitchen", {"judge": "AAAAA"})
        pair_ids = [own.pair_id for own in store.items.all(run_id)]
        one, two, three, four, _ = pair_ids
        store.votes.add(
            [
                NewVote(one, "ann", "A", origin="page", draw="random"),
                NewVote(one, "ben", "TIE", both_bad=True, draw="weighted", chance=0.5),
                NewVote(two, "ben", None, origin="page", draw="random"),
                NewVote(two, "ann", None, origin="page", draw="random"),
                NewVote(three, "ann", "B", origin="escalation", draw="random"),
                NewVote(three, "eve", "B", draw="chosen"),
                NewVote(four, "eve", "B"),
            ]
        )
        votes: dict[int, list[StoredVote]] = {}
        for own in store.votes.each(run_id):
            votes.setdefault(own.vote.pair_id, []).append(own.vote)
        for who in ("ann", "ben", "eve", "nobody"):
            expected = [standing_of(pair_id, votes[pair_id], who) for pair_id in sorted(votes)]
            assert sorted(store.votes.standings(pair_ids, who)) == expected


def test_both_bad_comes_back_from_a_file_as_it_was(tmp_path: Path) -> None:
    with open_store(tmp_path / "evenhand.db") as store:
        run_id = judged_run(store, "kitchen", {"judge": "AAA"})
        pair_ids = [own.pair_id for own in store.items.all(run_id)]
        bad = NewVote(pair_ids[0], "ann", "TIE", both_bad=True)
        assert store.votes.add([bad, NewVote(pair_ids[1], "ann", "TIE")]) == (2, 0, 0)
        assert store.votes.add([bad]) == (0, 0, 1)
        assert list(store.votes.columns(run_id).verdict) == [2, 2]
        for name in ("votes.csv", "votes.jsonl"):
            export_votes(store, "kitchen", tmp_path / name)
            assert "both bad" in (tmp_path / name).read_text()
            again = import_votes(store, "kitchen", tmp_path / name)
            assert (again.new, again.replaced, again.unchanged) == (0, 0, 2)
        # A plain tie is another thing to have said.
        assert store.votes.add([NewVote(pair_ids[0], "ann", "TIE")]) == (0, 1, 0)
        assert [vote.both_bad for vote in store.votes.replaced(pair_ids[0], "ann")] == [True]
        arena = tmp_path / "arena.csv"
        arena.write_text("pair,who,verdict\nq3,ben,tie (bothbad)\n")
        import_votes(store, "kitchen", arena)
        assert [own.vote.both_bad for own in store.votes.each(run_id)] == [False, False, True]
