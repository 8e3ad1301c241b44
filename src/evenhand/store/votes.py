"""Votes of people: one per person and pair, with its earlier versions; read as rows, columns or
labels.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    RowMapping,
    Select,
    and_,
    case,
    delete,
    exists,
    func,
    insert,
    literal,
    or_,
    select,
    union_all,
)

from evenhand.contract import Winner
from evenhand.errors import InputError
from evenhand.store.columns import (
    OF_RUN,
    WINNERS,
    Coded,
    fill,
    pages,
    same_item,
)
from evenhand.store.database import Subject
from evenhand.store.records import (
    DRAWS,
    LONGEST_NAME,
    ORIGINS,
    UNKNOWN_DRAW,
    AddedVotes,
    ItemVote,
    NewVote,
    PairStanding,
    StoredVote,
    VoteColumns,
)
from evenhand.store.rows import in_slices, insert_for, moment, refuse_unwritable
from evenhand.store.schema import AT_REST, items, replaced_votes, runs, verdicts, votes

_NAMES = tuple(column.name for column in votes.c)
# As stored; everywhere else it is a tie.
_BOTH_BAD = "BOTH_BAD"
_CODES: dict[str, dict[str | None, int]] = {
    "verdict": {**WINNERS, _BOTH_BAD: WINNERS["TIE"]},
    "origin": {name: code for code, name in enumerate(ORIGINS)},
    "draw": {None: UNKNOWN_DRAW, **{name: code for code, name in enumerate(DRAWS)}},
}
_Key = tuple[int, str]


class VoteStore(Subject):
    def labels(self, run_id: int, numbers: Collection[int] | None = None) -> dict[int, Winner]:
        """By most votes, for items (these, or all) without a label in the data."""
        with self._reading() as connection:
            return voted_labels(connection, run_id, numbers)

    def add(self, new: Sequence[NewVote]) -> AddedVotes:
        """Atomic. A person's later vote on a pair replaces the earlier, which is kept aside; a
        repeated one changes nothing."""
        # To the microsecond, as in a datetime, so that an exported vote is identical.
        now = moment(time.time()).timestamp()
        with self._writing() as connection:
            known = _known(connection, {vote.pair_id for vote in new})
            written: dict[_Key, dict[str, Any]] = {}
            replaced: list[dict[str, Any]] = []
            fresh = unchanged = 0
            for vote in new:
                check_vote(vote)
                key = vote.pair_id, vote.who
                earlier = known.get(key)
                if earlier is not None and _is_repeat(vote, earlier):
                    unchanged += 1
                    continue
                if earlier is None:
                    fresh += 1
                else:
                    replaced.append({**earlier, "replaced_at": now})
                known[key] = written[key] = _values(vote, earlier, now)
            if replaced:
                connection.execute(insert(replaced_votes), replaced)
            _write(connection, list(written.values()))
        self._database.note_growth("votes", fresh)
        return AddedVotes(fresh, len(replaced), unchanged)

    def withdraw(self, pair_id: int, who: str) -> bool:
        """Set a vote aside as if replaced; whether there was one."""
        with self._writing() as connection:
            this_vote = and_(votes.c.pair_id == pair_id, votes.c.who == who)
            row = connection.execute(select(votes).where(this_vote)).mappings().first()
            if row is None:
                return False
            connection.execute(insert(replaced_votes), [{**row, "replaced_at": time.time()}])
            connection.execute(delete(votes).where(this_vote))
            return True

    def replaced(self, pair_id: int, who: str) -> list[StoredVote]:
        """A person's earlier votes on a pair, oldest first."""
        with self._reading() as connection:
            query = (
                select(replaced_votes)
                .where(replaced_votes.c.pair_id == pair_id, replaced_votes.c.who == who)
                .order_by(replaced_votes.c.id)
            )
            return [_stored(row) for row in connection.execute(query).mappings()]

    def standings(self, pair_ids: Sequence[int], who: str) -> list[PairStanding]:
        """Of pairs with votes, in any run, as one person may know them."""
        with self._reading() as connection:
            vote = votes.c
            mine = vote.who == who
            label = and_(_IS_LABEL, vote.draw.is_not(None))
            query = select(
                vote.pair_id,
                func.count(),
                _how_many(label),
                _how_many(and_(label, ~mine)),
                _how_many(mine),
                _how_many(and_(mine, vote.verdict.is_(None))),
                func.max(case((and_(mine, vote.origin == "page"), vote.voted_at))),
            ).group_by(vote.pair_id)
            standings = []
            for some in in_slices(sorted(pair_ids)):
                rows = connection.execute(query.where(vote.pair_id.in_(some))).all()
                for pair_id, given, labels, others, own, skipped, at in rows:
                    standings.append(
                        PairStanding(pair_id, given, labels, others, bool(own), bool(skipped), at)
                    )
            return standings

    def labelled_runs(
        self, judge_ids: Collection[int], run_ids: Collection[int] = ()
    ) -> tuple[str, ...]:
        """The names of the runs with labelled pairs for `right_and_wrong`."""
        voted = select(votes.c.pair_id).where(_IS_LABEL)
        labelled = or_(items.c.label.in_(("A", "B")), items.c.pair_id.in_(voted))
        counted = or_(runs.c.state.in_(AT_REST), runs.c.id.in_(list(run_ids)))
        won = (
            exists()
            .where(same_item, verdicts.c.run_id == runs.c.id, labelled)
            .where(verdicts.c.judge_id.in_(list(judge_ids)), verdicts.c.outcome == "win")
        )
        query = select(runs.c.name).where(counted, won).order_by(runs.c.id)
        with self._reading() as connection:
            return tuple(connection.execute(query).scalars())

    def right_and_wrong(
        self, judge_ids: Collection[int], run_ids: Collection[int] = ()
    ) -> tuple[int, int]:
        """For labelled pairs (by the data, else by most votes): on how many these judges' wins name
        the label, and on how many the other side, in these runs and in all runs of the store that
        have ended. A pair counts once, however often it was judged; one with evenly divided wins
        does not."""
        won = _wins(judge_ids, run_ids)
        most = select(
            votes.c.pair_id,
            case((_most("A"), "A"), (_most("B"), "B")).label("winner"),
        )
        voted = most.where(_IS_LABEL).group_by(votes.c.pair_id).subquery()
        named = ("A", "B")
        by_labels = won.add_columns(
            _sign(items.c.label == verdicts.c.winner).label("sign"), literal(1).label("of_data")
        ).where(items.c.label.in_(named))
        by_votes = (
            won.add_columns(_sign(voted.c.winner == verdicts.c.winner), literal(0))
            .join(voted, voted.c.pair_id == items.c.pair_id)
            .where(items.c.label.is_(None), voted.c.winner.in_(named))
        )
        each = union_all(by_labels, by_votes).subquery()
        net = func.sum(each.c.sign * each.c.of_data)
        by_people = func.sum(each.c.sign * (1 - each.c.of_data))
        labelled = func.max(each.c.of_data) == 1
        pairs = (
            select(case((labelled, net), else_=by_people).label("net"))
            .group_by(each.c.pair_id)
            .subquery()
        )
        query = select(_how_many(pairs.c.net > 0), _how_many(pairs.c.net < 0))
        with self._reading() as connection:
            right, wrong = connection.execute(query).one()
        return int(right or 0), int(wrong or 0)

    def columns(self, run_id: int) -> VoteColumns:
        with self._reading() as connection:
            people = Coded()
            columns = VoteColumns(())
            for page in pages(connection, _OF_RUN, run_id):
                fill(columns, page, who=people, **_CODES)
            return replace(columns, people=people.table)

    def page(
        self, run_id: int, *, after: tuple[int, str] = (0, ""), limit: int = 1000
    ) -> list[ItemVote]:
        """The page after a place (item number, who); empty at the end. A vote counts for every item
        with its pair."""
        number, who = after
        later = and_(items.c.number >= number, (items.c.number > number) | (votes.c.who > who))
        return self._item_votes(run_id, later, limit)

    def on_item(self, run_id: int, number: int, *, limit: int = 1000) -> list[ItemVote]:
        """Those on one item, by person."""
        return self._item_votes(run_id, items.c.number == number, limit)

    def _item_votes(self, run_id: int, wanted: ColumnElement[bool], limit: int) -> list[ItemVote]:
        query = (
            select(items.c.number, items.c.key, items.c.full_key, votes)
            .join_from(items, votes, votes.c.pair_id == items.c.pair_id)
            .where(items.c.run_id == run_id, wanted)
            .order_by(items.c.number, votes.c.who)
            .limit(limit)
        )
        with self._reading() as connection:
            return [
                ItemVote(row["number"], row["full_key"] or row["key"], _stored(row))
                for row in connection.execute(query).mappings()
            ]

    def each(self, run_id: int) -> Iterator[ItemVote]:
        """All of them once each, under the first item of the run with its pair."""
        firsts: dict[int, int] = {}
        rows = self.page(run_id)
        while rows:
            for row in rows:
                if firsts.setdefault(row.vote.pair_id, row.number) == row.number:
                    yield row
            rows = self.page(run_id, after=(rows[-1].number, rows[-1].vote.who))


def check_vote(vote: NewVote) -> None:
    if not vote.who.strip() or len(vote.who) > LONGEST_NAME:
        raise InputError.of("store.voter_too_long", n=len(vote.who), most=LONGEST_NAME)
    refuse_unwritable("who", vote.who)
    refuse_unwritable("comment", vote.comment or "")
    if vote.both_bad and vote.verdict != "TIE":
        raise InputError.of("store.bad_but_won", verdict=vote.verdict)
    if vote.chance is not None and not 0 < vote.chance <= 1:
        raise InputError.of("store.chance_outside", chance=vote.chance)


def _verdict_of(vote: NewVote) -> str | None:
    return _BOTH_BAD if vote.both_bad else vote.verdict


def _known(connection: Connection, pair_ids: Iterable[int]) -> dict[_Key, dict[str, Any]]:
    known: dict[_Key, dict[str, Any]] = {}
    for some in in_slices(sorted(pair_ids)):
        for row in connection.execute(select(votes).where(votes.c.pair_id.in_(some))).mappings():
            known[row["pair_id"], row["who"]] = dict(row)
    return known


def _is_repeat(vote: NewVote, earlier: dict[str, Any]) -> bool:
    if _verdict_of(vote) != earlier["verdict"]:
        return False
    details = _details(vote)
    return all(earlier[name] == value for name, value in details.items())


def _details(vote: NewVote) -> dict[str, Any]:
    """What a vote records besides its verdict."""
    given = {
        "origin": vote.origin,
        "draw": vote.draw,
        "chance": vote.chance,
        "shown_order": vote.shown_order,
        "voted_at": None if vote.at is None else vote.at.timestamp(),
        "comment": vote.comment,
    }
    return {name: value for name, value in given.items() if value is not None}


def _values(vote: NewVote, earlier: dict[str, Any] | None, now: float) -> dict[str, Any]:
    values = dict.fromkeys(_NAMES) | {"origin": "import"}
    if earlier is not None:
        # How the pair was chosen does not change with a new vote.
        values |= {name: earlier[name] for name in ("origin", "draw", "chance")}
        if earlier["verdict"] == _verdict_of(vote):
            values |= {name: earlier[name] for name in ("shown_order", "comment")}
    values |= {"voted_at": now} | _details(vote)
    return values | {"pair_id": vote.pair_id, "who": vote.who, "verdict": _verdict_of(vote)}


def _write(connection: Connection, rows: list[dict[str, Any]]) -> None:
    if not rows:
        return
    # In a fixed order, so that two processes cannot deadlock.
    rows.sort(key=lambda row: (row["pair_id"], row["who"]))
    statement = insert_for(connection.dialect.name, votes)
    statement = statement.on_conflict_do_update(
        index_elements=list(votes.primary_key),
        set_={name: statement.excluded[name] for name in _NAMES if name not in ("pair_id", "who")},
    )
    connection.execute(statement, rows)


_OF_RUN = (
    select(
        items.c.number,
        items.c.prompt_key,
        items.c.label,
        votes.c.pair_id,
        votes.c.who,
        votes.c.verdict,
        votes.c.origin,
        votes.c.draw,
        votes.c.chance,
    )
    .join_from(items, votes, votes.c.pair_id == items.c.pair_id)
    .where(OF_RUN)
    .order_by(items.c.number, votes.c.who)
)


def _wins(judge_ids: Collection[int], run_ids: Collection[int]) -> Select[Any]:
    """The pairs won by these judges, in these runs and in ended ones."""
    counted = or_(runs.c.state.in_(AT_REST), runs.c.id.in_(list(run_ids)))
    return (
        select(items.c.pair_id)
        .join_from(verdicts, items, same_item)
        .join(runs, runs.c.id == verdicts.c.run_id)
        .where(verdicts.c.judge_id.in_(list(judge_ids)), verdicts.c.outcome == "win", counted)
    )


def _sign(right: ColumnElement[bool]) -> ColumnElement[int]:
    return case((right, 1), else_=-1)


def _how_many(fact: ColumnElement[bool]) -> ColumnElement[int]:
    return func.sum(case((fact, 1), else_=0))


def _stored(row: RowMapping) -> StoredVote:
    both_bad = row["verdict"] == _BOTH_BAD
    names = ("pair_id", "who", "origin", "draw", "chance", "shown_order", "comment")
    return StoredVote(
        verdict="TIE" if both_bad else row["verdict"],
        at=moment(row["voted_at"]),
        both_bad=both_bad,
        **{name: row[name] for name in names},
    )


# Votes as labels of items without one: the verdict with the most votes; none if tied.

_VOTE = votes.c
# Excluding skips and picked pairs (`is_picked`).
_IS_LABEL = and_(
    _VOTE.verdict.is_not(None),
    _VOTE.origin != "escalation",
    or_(_VOTE.draw.is_(None), _VOTE.draw != "chosen"),
)


def _given(*verdicts: str) -> ColumnElement[int]:
    return func.sum(case((_VOTE.verdict.in_(verdicts), 1), else_=0))


_COUNTS: dict[Winner, ColumnElement[int]] = {
    "A": _given("A"),
    "B": _given("B"),
    "TIE": _given("TIE", "BOTH_BAD"),
}


def _most(winner: Winner) -> ColumnElement[bool]:
    own = _COUNTS[winner]
    return and_(*(own > other for name, other in _COUNTS.items() if name != winner))


def voted_for(run_id: int, winner: Winner | None = None) -> Select[Any]:
    """The items without a label that most votes give this one, or any."""
    wanted = or_(*map(_most, _COUNTS)) if winner is None else _most(winner)
    labelled = select(_VOTE.pair_id).where(_IS_LABEL).group_by(_VOTE.pair_id).having(wanted)
    # Votes are few: avoid the run's index, which would scan all its items.
    return (
        select(items.c.number)
        .where(items.c.run_id + 0 == run_id, items.c.label.is_(None), items.c.pair_id.in_(labelled))
        .correlate(None)
    )


def voted_labels(
    connection: Connection, run_id: int, numbers: Collection[int] | None
) -> dict[int, Winner]:
    """For items (these, or all) without a label in the data: the one by votes."""
    labels: dict[int, Winner] = {}
    of_run = (
        select(items.c.number, *_COUNTS.values())
        .join_from(items, votes, _VOTE.pair_id == items.c.pair_id)
        .where(items.c.run_id == run_id, items.c.label.is_(None), _IS_LABEL)
        .group_by(items.c.number)
    )
    queries = [of_run]
    if numbers is not None:
        slices = in_slices(sorted(set(numbers)))
        queries = [of_run.where(items.c.number.in_(some)) for some in slices]
    for query in queries:
        for number, *counts in connection.execute(query):
            if counts.count(max(counts)) == 1:
                labels[number] = tuple(_COUNTS)[counts.index(max(counts))]
    return labels
