"""Of a store: what people said of its pairs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from evenhand.contract import Pair
from evenhand.store import columns as audits
from evenhand.store import votes
from evenhand.store.database import Database
from evenhand.store.records import (
    AddedVotes,
    ItemVote,
    NewVote,
    PairStanding,
    PassColumns,
    RunItem,
    StoredVote,
    VoteColumns,
)


class VotePart(Database):
    """Votes come in, are withdrawn and counted."""

    def add_votes(self, new: Sequence[NewVote]) -> AddedVotes:
        """All of them or none. A later vote of a person on a pair replaces the earlier, which is
        kept aside; one that says nothing new changes nothing."""
        with self._writing() as connection:
            added = votes.add_votes(connection, new)
        if self._growth:
            self._growth.note("votes", added.new)
        return added

    def withdraw_vote(self, pair_id: int, who: str) -> bool:
        """Set a vote aside as if it had been replaced; whether there was one."""
        with self._writing() as connection:
            return votes.withdraw_vote(connection, pair_id, who)

    def replaced_votes(self, pair_id: int, who: str) -> list[StoredVote]:
        """What a person said of a pair before, oldest first."""
        with self._reading() as connection:
            return votes.replaced_of(connection, pair_id, who)

    def pair_standings(self, pair_ids: Sequence[int], who: str) -> list[PairStanding]:
        """Of those that anybody has voted on, in whichever run, as one person is to know it."""
        with self._reading() as connection:
            return votes.pair_standings(connection, pair_ids, who)

    def vote_columns(self, run_id: int) -> VoteColumns:
        with self._reading() as connection:
            return votes.vote_columns(connection, run_id)

    def votes(
        self, run_id: int, *, after: tuple[int, str] = (0, ""), limit: int = 1000
    ) -> list[ItemVote]:
        """A page after a place (item number, who); an empty one is the end. A vote on a pair that
        several items share stands with each of them."""
        with self._reading() as connection:
            return votes.vote_page(connection, run_id, after=after, limit=limit)

    def votes_on_item(self, run_id: int, number: int, *, limit: int = 1000) -> list[ItemVote]:
        """Those on one item, by who."""
        with self._reading() as connection:
            return votes.votes_on_item(connection, run_id, number, limit=limit)

    def each_vote(self, run_id: int) -> Iterator[ItemVote]:
        """All of them, each once, under the first item of the run that has its pair."""
        firsts: dict[int, int] = {}
        rows = self.votes(run_id)
        while rows:
            for row in rows:
                if firsts.setdefault(row.vote.pair_id, row.number) == row.number:
                    yield row
            rows = self.votes(run_id, after=(rows[-1].number, rows[-1].vote.who))

    def run_items(self, run_id: int) -> list[RunItem]:
        """Every item by number, without its texts."""
        with self._reading() as connection:
            return list(votes.run_items(connection, run_id))

    def pair_at(self, run_id: int, number: int) -> Pair | None:
        with self._reading() as connection:
            return votes.pair_at(connection, run_id, number)

    def pass_columns(self, run_id: int, judge_id: int) -> PassColumns:
        """Every stored pass on the run's pairs, samples apart."""
        with self._reading() as connection:
            return audits.pass_columns(connection, run_id, judge_id)

    def shared_items(self, run_id: int, other_id: int) -> tuple[list[int], list[int]]:
        """The numbers, in both runs, of the items whose pairs have the same content."""
        with self._reading() as connection:
            return audits.shared_items(connection, run_id, other_id)

    def item_keys(self, run_id: int, numbers: Sequence[int]) -> dict[int, str]:
        """The ids of some items, by their numbers."""
        with self._reading() as connection:
            return audits.item_keys(connection, run_id, numbers)
