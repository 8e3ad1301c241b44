"""Tables of verdicts: the same as filtering and sorting all of them in plain Python, page by page,
in both engines; and rows that follow the verdicts wherever they go."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from itertools import product
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from evenhand.contract import (
    ErrorBody,
    Failure,
    Metadata,
    Outcome,
    Winner,
)
from evenhand.contract.codes import INCONSISTENT, INVALID, TIE, WIN_A, WIN_B
from evenhand.data.records import Record
from evenhand.judging.decision import CriterionDecision
from evenhand.judging.explanation import notes_on
from evenhand.store import (
    NewJudge,
    NewPass,
    NewRun,
    NewVerdict,
    NewVote,
    Settled,
    Store,
    VerdictRow,
    verdict_table,
)
from evenhand.store.verdict_filter import CriterionEnd, VerdictFilter
from evenhand.store.verdict_table import Sort, TablePlace, TableRow
from evenhand.store.verdicts import VerdictPlace
from parts import examples
from store_values import begin, decided, failed_pass, failure, item, read_pass, unread_pass

ITEMS = 60
TAGS = ("maths", "code", "m" * 500, "a\x00b")
WINNERS: tuple[Winner, ...] = ("A", "B", "TIE")
CRITERIA = ("accuracy", "clarity, with a comma", "%_", "a\x00b")
# How a criterion may have come out, and what tells so in the facts of a verdict.
ENDS: dict[CriterionEnd, tuple[Outcome, Winner | None, Winner | None]] = {
    "A": (Outcome.WIN, "A", "A"),
    "B": (Outcome.WIN, "B", "B"),
    "TIE": (Outcome.TIE, "TIE", "TIE"),
    "inconsistent": (Outcome.INCONSISTENT, "A", "B"),
    "invalid": (Outcome.INVALID, None, None),
}
MODELS = (None, "left", "right", "a\x00b")
PROMPTS = ("why does the river flow", "河流为什么改变", "what is a stone", "")
ENDINGS = {
    "valid": {Outcome.WIN, Outcome.TIE, Outcome.INCONSISTENT},
    "decided": {Outcome.WIN, Outcome.TIE},
    "undecided": {Outcome.INCONSISTENT, Outcome.INVALID},
}
# What the two orders may have come to, by what is asked for.
SUCH = {
    "agree": {"agree"},
    "differ": {"first", "second", "split"},
    "read": {"agree", "first", "second", "split"},
    "first": {"first"},
    "second": {"second"},
    "either": {"first", "second"},
}
SORTS: tuple[Sort, ...] = ("number", "confidence", "length")


def index_words(store: Store, run_id: int) -> None:
    while store.words.add(run_id, limit=7):
        pass


def fill(store: Store) -> int:
    rng = random.Random(7)
    run = store.runs.create(NewRun("run", "f", {}, ()))
    judges = [store.runs.add_judge(NewJudge(key, key)) for key in ("one", "two")]
    store.runs.set_judges(run.id, judges)
    store.items.add(run.id, [_item(number, rng) for number in range(1, ITEMS + 1)])
    store.work.write(
        [],
        [
            NewVerdict(run.id, number, judge_id, _settled(rng))
            for number, judge_id in product(range(1, ITEMS + 1), judges)
            if rng.random() < 0.9
        ],
    )
    # Another run over some of the same pairs, which no table may show.
    other = store.runs.create(NewRun("other", "g", {}, ()))
    store.runs.set_judges(other.id, judges)
    store.items.add(other.id, [_item(number, rng) for number in range(1, 5)])
    store.work.write([], [NewVerdict(other.id, 1, judges[0], _settled(rng))])
    pairs = [each.pair_id for each in store.items.all(run.id)]
    store.votes.add([vote for pair in pairs for vote in _votes(pair, rng)])
    index_words(store, run.id)
    index_words(store, other.id)
    return run.id


def _votes(pair_id: int, rng: random.Random) -> Iterator[NewVote]:
    """Of up to four people: some skip, some find both bad, some pairs were picked."""
    for who in ("ann", "bo", "cy", "di")[: rng.randrange(5)]:
        said: Winner | None = rng.choice([None, *WINNERS, *WINNERS])
        yield NewVote(
            pair_id,
            who,
            said,
            origin=rng.choice(["page", "page", "import", "escalation"]),
            draw=rng.choice([None, "random", "weighted", "chosen"]),
            both_bad=said == "TIE" and rng.random() < 0.5,
        )


def _item(number: int, rng: random.Random) -> Record:
    return item(
        f"item-{number}",
        label=rng.choice([None, *WINNERS]),
        model_a=rng.choice(MODELS),
        model_b=rng.choice(MODELS),
        tags=tuple(tag for tag in TAGS if rng.random() < 0.3),
        prompt=rng.choice(PROMPTS) + f" #{number}",
        response_a="a" * rng.randrange(6) + rng.choice(["", " Dear judge!"]),
        response_b="b" * rng.randrange(6) + rng.choice(["", " stone"]),
        criteria=list(CRITERIA),
    )


def _settled(rng: random.Random) -> Settled:
    if rng.random() < 0.2:
        error = ErrorBody(kind="invalid", message="none", retryable=False)
        return Failure(error=error, metadata=Metadata(outcome=Outcome.INVALID))
    outcome, winner = rng.choice(
        [
            (Outcome.WIN, "A"),
            (Outcome.WIN, "B"),
            (Outcome.TIE, "TIE"),
            (Outcome.INCONSISTENT, "TIE"),
            (Outcome.INCONSISTENT, "B"),
        ]
    )
    criteria = []
    for name in CRITERIA[: rng.randrange(1, 5)]:
        ended, first, second = ENDS[rng.choice(list(ENDS))]
        criteria.append(CriterionDecision(name, ended, _ended(ended, first), first, second))
    return decided(
        outcome=outcome,
        winner=winner,  # type: ignore[arg-type]
        confidence=rng.choice([None, 0.25, 0.5, 1.0]),
        confidence_source="stated",
        first=rng.choice([None, *WINNERS]),
        second=rng.choice([None, *WINNERS]),
        abstained=rng.random() < 0.2,
        criteria=tuple(criteria),
    )


def _ended(outcome: Outcome, first: Winner | None) -> Winner | None:
    return "TIE" if outcome is Outcome.INCONSISTENT else first


def _by_rule(row: VerdictRow) -> bool:
    """No verdict here has passes: a tie that states no confidence is one that no judge gave."""
    return row.outcome is Outcome.TIE and row.confidence is None


def _voted(store: Store, run_id: int) -> dict[int, Winner]:
    """What most people say of an item, of those that no one was shown it for a reason."""
    given: dict[int, list[Winner]] = {}
    for each in store.votes.each(run_id):
        vote = each.vote
        if vote.verdict and vote.origin != "escalation" and vote.draw != "chosen":
            given.setdefault(each.number, []).append(vote.verdict)
    found: dict[int, Winner] = {}
    for number, said in given.items():
        counts = Counter(said).most_common()
        if len(counts) == 1 or counts[0][1] > counts[1][1]:
            found[number] = counts[0][0]
    return found


class Expected:
    """Everything about the verdicts once more, read whole and put together in plain Python."""

    def __init__(self, store: Store, run_id: int) -> None:
        self.whole = list(store.verdicts.each_whole(run_id))
        self.voted = _voted(store, run_id)
        self.ends: dict[int, set[Any]] = {}
        for each in self.whole:
            if each.row.outcome != Outcome.INVALID:
                end = (each.row.outcome, each.row.winner)
                self.ends.setdefault(each.row.item.number, set()).add(end)

    def rows(
        self,
        wanted: VerdictFilter,
        sort: Sort,
        *,
        descending: bool,
        judge_ids: tuple[int, ...] | None = None,
    ) -> list[tuple[int, int]]:
        met = [each for each in self.whole if self._meets(each, wanted, judge_ids)]

        def key(each: Any) -> Any:
            row = each.row
            difference = len(each.pair.response_b) - len(each.pair.response_a)
            by = {"number": 0, "confidence": row.confidence, "length": difference}[sort]
            sign = -1 if descending else 1
            place = (sign * row.item.number, sign * row.judge_id)
            return (1, 0, *place) if by is None else (0, sign * by, *place)

        return [(each.row.item.number, each.row.judge_id) for each in sorted(met, key=key)]

    def _meets(self, each: Any, wanted: VerdictFilter, judge_ids: tuple[int, ...] | None) -> bool:
        row: VerdictRow = each.row
        pair = each.pair
        label = self.label(row, wanted)
        agrees = row.outcome in (Outcome.WIN, Outcome.TIE) and row.winner == label
        sure = row.confidence
        texts = " ".join((pair.prompt, pair.response_a, pair.response_b))
        return (
            wanted.outcome in (None, row.outcome)
            and wanted.winner in (None, row.winner)
            and (judge_ids is None or row.judge_id in judge_ids)
            and (wanted.tag is None or wanted.tag in row.item.tags)
            and (wanted.abstained in (None, row.abstained))
            and (wanted.min_confidence is None or (sure or -1) >= wanted.min_confidence)
            and (
                wanted.max_confidence is None
                or (9 if sure is None else sure) <= wanted.max_confidence
            )
            and (
                wanted.disagrees is None
                or (label is not None and not _by_rule(row) and wanted.disagrees != agrees)
            )
            and wanted.by_rule in (None, _by_rule(row))
            and wanted.noted in (None, bool(notes_on(pair, "en")))
            and wanted.unread in (None, False)
            and wanted.judges_differ in (None, len(self.ends.get(row.item.number, ())) > 1)
            and self._on_criterion(each, wanted)
            and self._about_models(row, wanted)
            and (wanted.ending is None or row.outcome in ENDINGS[wanted.ending])
            and (
                wanted.label in (None, label)
                or (wanted.label == "longer" and self._names_longer(each, label) is True)
                or (wanted.label == "shorter" and self._names_longer(each, label) is False)
                or (
                    (wanted.label in ("any", "none"))
                    and (wanted.label == "any") == (label is not None)
                )
            )
            and (wanted.query is None or wanted.query.casefold() in texts)
            and (wanted.orders is None or self._orders(row) in SUCH[wanted.orders])
            and (wanted.leans is None or self._orders(row) in SUCH[wanted.leans])
            and self._by_length(each, wanted)
            and wanted.has_confidence in (None, sure is not None)
            and (
                wanted.below_confidence is None
                or (9 if sure is None else sure) < wanted.below_confidence
            )
        )

    @staticmethod
    def _orders(row: VerdictRow) -> str | None:
        first, second = row.first_pass_winner, row.second_pass_winner
        if row.outcome == Outcome.INVALID or first is None or second is None:
            return None
        worth = {"A": 1, "TIE": 0, "B": -1}
        gain = worth[first] - worth[second]
        return {0: "agree"}.get(gain, "first" if gain > 0 else "second")

    @staticmethod
    def _by_length(each: Any, wanted: VerdictFilter) -> bool:
        difference = len(each.pair.response_b) - len(each.pair.response_a)
        low, high = wanted.min_length_difference, wanted.max_length_difference
        longer = {0: None}.get(difference, "B" if difference > 0 else "A")
        won = each.row.winner if each.row.outcome == Outcome.WIN else None
        if wanted.longer_wins is not None and (
            None in (won, longer) or (won == longer) != wanted.longer_wins
        ):
            return False
        return (low is None or difference >= low) and (high is None or difference <= high)

    @staticmethod
    def _names_longer(each: Any, label: Winner | None) -> bool | None:
        difference = len(each.pair.response_b) - len(each.pair.response_a)
        if label not in ("A", "B") or not difference:
            return None
        return (difference > 0) == (label == "B")

    def label(self, row: VerdictRow, wanted: VerdictFilter) -> Winner | None:
        votes = self.voted.get(row.item.number) if wanted.count_votes else None
        return row.item.label or votes

    @staticmethod
    def _about_models(row: VerdictRow, wanted: VerdictFilter) -> bool:
        a, b = row.item.model_a, row.item.model_b
        sides = [(a, b, "A"), (b, a, "B")]
        if wanted.named is not None:
            there = [name for name in (a, b) if name is not None]
            kinds = {0: "none", 1: "one", 2: "same" if a == b else "two"}
            if kinds[len(there)] != wanted.named:
                return False
        if not any(
            wanted.model in (None, own) and wanted.against in (None, other)
            for own, other, _ in sides
        ):
            return False
        if wanted.model is None or wanted.model_wins is None:
            return True
        return row.outcome == Outcome.WIN and any(
            own == wanted.model and wanted.model_wins == (row.winner == label)
            for own, _, label in sides
        )

    @staticmethod
    def _on_criterion(each: Any, wanted: VerdictFilter) -> bool:
        settled, item = each.settled, each.row.item
        if wanted.criterion is None and wanted.criterion_end is None:
            return True
        if wanted.criterion_end in ("model", "other"):
            ends: set[Any] = {"A", "B"}
            if wanted.model is not None:
                turned = wanted.criterion_end == "other"
                ends = {
                    label if not turned else {"A": "B", "B": "A"}[label]
                    for name, label in ((item.model_a, "A"), (item.model_b, "B"))
                    if name == wanted.model
                }
        else:
            ends = {wanted.criterion_end}
        told: dict[str, str]
        if isinstance(settled, Failure):
            told = dict.fromkeys(CRITERIA, "invalid")
        else:
            by_end = {each: end for end, each in ENDS.items()}
            told = {
                each.name: by_end[each.outcome, each.first_pass_winner, each.second_pass_winner]
                for each in settled.decision.criteria
            }
        return any(
            wanted.criterion in (None, name) and (end in ends or None in ends)
            for name, end in told.items()
        )


def in_pages(
    store: Store, run_id: int, wanted: VerdictFilter, *, limit: int, **order: Any
) -> list[TableRow]:
    rows: list[TableRow] = []
    after: TablePlace | None = None
    while True:
        page = store.table.browse(run_id, wanted, after=after, limit=limit, **order)
        assert len(page.rows) <= limit
        assert (page.previous is None) == (after is None or not page.rows)
        rows += page.rows
        if page.next is None:
            return rows
        after = page.next


def backwards(
    store: Store, run_id: int, wanted: VerdictFilter, *, start: TablePlace, limit: int, **order: Any
) -> list[TableRow]:
    rows: list[TableRow] = []
    before: TablePlace | None = start
    while before is not None:
        page = store.table.browse(run_id, wanted, before=before, limit=limit, **order)
        rows = [*page.rows, *rows]
        before = page.previous
    return rows


def places(rows: list[TableRow]) -> list[tuple[int, int]]:
    return [(row.number, row.judge_id) for row in rows]


some = st.none() | st.booleans()
about: dict[str, Any] = {
    "ending": st.none() | st.sampled_from(list(ENDINGS)),
    "label": st.none() | st.sampled_from([*WINNERS, "any", "none", "longer", "shorter"]),
    "model": st.sampled_from([*MODELS, "nobody"]),
    "against": st.sampled_from([None, *MODELS]),
    "model_wins": some,
    "count_votes": some,
    "named": st.sampled_from([None, None, "two", "same", "one", "none"]),
}
measured: dict[str, Any] = {
    "orders": st.none() | st.sampled_from(["agree", "differ", "read"]),
    "leans": st.none() | st.sampled_from(["first", "second", "either"]),
    "longer_wins": some,
    "min_length_difference": st.none() | st.integers(-3, 3),
    "max_length_difference": st.none() | st.integers(-3, 3),
    "below_confidence": st.sampled_from([None, None, 0.5, 0.6]),
    "has_confidence": st.sampled_from([None, None, True, False]),
}
filters = st.builds(
    VerdictFilter,
    outcome=st.none() | st.sampled_from(Outcome),
    winner=st.none() | st.sampled_from(WINNERS),
    tag=st.none() | st.sampled_from([*TAGS, "nowhere"]),
    disagrees=some,
    abstained=some,
    min_confidence=st.none() | st.sampled_from([0.0, 0.5]),
    max_confidence=st.none() | st.sampled_from([0.3, 1.0]),
    criterion=st.none() | st.sampled_from([*CRITERIA, "nowhere"]),
    criterion_end=st.none() | st.sampled_from([*ENDS, "model", "other"]),
    judges_differ=some,
    noted=some,
    unread=some,
    by_rule=some,
    **measured,
    query=st.none() | st.sampled_from(["stone", "RIVER", "河流", "流为什", "nowhere"]),
    **about,
)
# With so many conditions hardly anything meets all of them; so also these alone.
few_filters = (
    st.builds(
        VerdictFilter,
        criterion_end=st.sampled_from([None, None, "A", "model", "other"]),
        **about,
    )
    | st.builds(
        VerdictFilter,
        label=about["label"],
        disagrees=some,
        count_votes=st.just(True),
        ending=about["ending"],
    )
    | st.builds(VerdictFilter, **measured)
)


@pytest.mark.slow
@given(
    wanted=filters | few_filters,
    judge_ids=st.sampled_from([None, None, (1,), (2,), (1, 2), ()]),
    sort=st.sampled_from(SORTS),
    descending=st.booleans(),
    limit=st.integers(1, 60),
)
@settings(
    max_examples=examples(60),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
def test_a_table_shows_what_meets_the_conditions_in_its_order(
    store: Store,
    wanted: VerdictFilter,
    judge_ids: tuple[int, ...] | None,
    sort: Sort,
    descending: bool,
    limit: int,
) -> None:
    found = store.runs.find("run")
    run_id = fill(store) if found is None else found.id
    own: Any = {"judge_ids": judge_ids}
    expected = Expected(store, run_id).rows(wanted, sort, descending=descending, **own)
    order: Any = {"sort": sort, "descending": descending, "limit": limit, **own}
    rows = in_pages(store, run_id, wanted, **order)
    assert places(rows) == expected
    if rows:
        before = backwards(store, run_id, wanted, start=rows[-1].place, **order)
        assert places(before) == expected[:-1]
    assert store.table.count(run_id, wanted, **own) == len(expected)


def test_a_row_tells_what_its_verdict_is(store: Store) -> None:
    run_id = fill(store)
    expected = Expected(store, run_id)
    rows = {
        (row.number, row.judge_id): row
        for row in store.table.browse(run_id, VerdictFilter(), limit=500).rows
    }
    assert len(rows) == len(expected.whole)
    for whole in expected.whole:
        row = rows[whole.row.item.number, whole.row.judge_id]
        assert (row.outcome, row.winner, row.confidence, row.abstained) == (
            whole.row.outcome,
            whole.row.winner,
            whole.row.confidence,
            whole.row.abstained,
        )
        assert (row.id, row.label, row.tags) == (
            whole.row.item.key,
            whole.row.item.label,
            whole.row.item.tags,
        )
        assert (row.prompt, row.label_voted) == (whole.pair.prompt, False)
        assert (row.length_a, row.length_b) == (
            len(whole.pair.response_a),
            len(whole.pair.response_b),
        )


def test_a_row_tells_the_label_that_most_people_gave_where_votes_count(store: Store) -> None:
    run_id = fill(store)
    wanted = VerdictFilter(count_votes=True)
    expected = Expected(store, run_id)
    by_place = {(each.row.item.number, each.row.judge_id): each.row for each in expected.whole}
    voted = 0
    for row in store.table.browse(run_id, wanted, limit=500).rows:
        verdict = by_place[row.number, row.judge_id]
        label = expected.label(verdict, wanted)
        decided = verdict.outcome in (Outcome.WIN, Outcome.TIE)
        assert row.label == label
        assert row.label_voted == (label is not None and verdict.item.label is None)
        unknown = label is None or _by_rule(verdict)
        assert row.disagrees == (None if unknown else not (decided and verdict.winner == label))
        voted += row.label_voted
    assert voted > 3


@pytest.mark.parametrize("sort", ["number", "confidence", "length"])
def test_neighbours_of_a_pair_are_those_of_the_whole_table(store: Store, sort: Sort) -> None:
    """A pair that the table leaves out has them too."""
    run_id = fill(store)
    for wanted, descending in product(
        (VerdictFilter(), VerdictFilter(outcome=Outcome.WIN)), (0, 1)
    ):
        order: dict[str, Any] = {"sort": sort, "descending": bool(descending)}
        whole = store.table.browse(run_id, VerdictFilter(), **order, limit=500).rows
        shown = store.table.browse(run_id, wanted, **order, limit=500).rows
        there = {(row.number, row.judge_id) for row in shown}
        numbers = list(dict.fromkeys(row.number for row in shown))
        for number in {row.number for row in whole}:
            judges = sorted(row.judge_id for row in whole if row.number == number)
            # Where the table shows it; else where the first judge would have put it.
            own = next((each for each in judges if (number, each) in there), judges[0])
            places = [(row.number, row.judge_id) for row in whole]
            at = places.index((number, own))
            before, after = (
                next((n for n, judge in some if n != number and (n, judge) in there), None)
                for some in (places[:at][::-1], places[at:])
            )
            standing = (numbers.index(number) + 1, len(numbers)) if number in numbers else None
            found = store.table.neighbours(run_id, wanted, number, **order)
            assert found == (before, after, standing)


def test_an_unread_answer_behind_a_verdict_is_flagged(store: Store) -> None:
    begun = begin(store, item("x"), item("y"), item("z"))
    read, unread, failed = begun.work()
    begun.settle(read)
    begun.write(unread, [read_pass("original"), unread_pass("swapped")], failure([], "invalid"))
    begun.write(failed, [failed_pass("original")], failure([], "judge_timeout"))
    rows = store.table.browse(begun.run_id, VerdictFilter(unread=True)).rows
    assert [row.number for row in rows] == [unread.number]
    assert len(store.table.browse(begun.run_id, VerdictFilter(unread=False)).rows) == 2


def test_a_second_judge_changes_what_the_first_differs_from(store: Store) -> None:
    run = store.runs.create(NewRun("run", "f", {}, ()))
    one, two = (store.runs.add_judge(NewJudge(key, key)) for key in ("one", "two"))
    store.runs.set_judges(run.id, [one, two])
    store.items.add(run.id, [item("x"), item("y")])
    facts = {
        winner: decided(
            outcome=Outcome.WIN, winner=winner, confidence=None, confidence_source="none"
        )
        for winner in ("A", "B")
    }
    store.work.write([], [NewVerdict(run.id, number, one, facts["A"]) for number in (1, 2)])
    differing = VerdictFilter(judges_differ=True)
    assert store.table.count(run.id, differing) == 0
    store.work.write(
        [], [NewVerdict(run.id, 1, two, facts["B"]), NewVerdict(run.id, 2, two, facts["A"])]
    )
    assert places(list(store.table.browse(run.id, differing).rows)) == [(1, one), (1, two)]


def test_verdicts_that_are_undone_leave_the_table_and_come_back_as_they_are_made_anew(
    store: Store,
) -> None:
    begun = begin(store, *(item(f"{number}") for number in range(9)))
    for work in begun.work():
        if work.number % 3 == 0:
            begun.write(work, [unread_pass("original")], failure([], "invalid"))
        else:
            begun.settle(work)
    assert store.work.retire(begun.run_id, {"unread"}) == 3
    assert store.table.count(begun.run_id, VerdictFilter()) == 6
    begun.judge_all("B")
    rows = store.table.browse(begun.run_id, VerdictFilter(winner="B")).rows
    assert [row.number for row in rows] == [3, 6, 9]


def test_pairs_that_share_no_criteria_can_all_be_filtered_and_are_counted_up_to_a_bound(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(verdict_table, "MOST_CRITERIA", 3)
    begun = begin(store, *(item(f"{n}", criteria=[f"own {n}"]) for n in range(5)))
    for work in begun.work():
        begun.write(work, [unread_pass("original")], failure([], "invalid"))
    for n in range(5):
        assert store.table.count(begun.run_id, VerdictFilter(criterion=f"own {n}")) == 1
    assert store.table.count_kinds(begun.run_id).criteria == {
        f"own {n}": Counter({INVALID: 1}) for n in range(3)
    }


def test_failed_passes_that_are_tried_again_leave_no_marks(store: Store) -> None:
    begun = begin(store, item("x"))
    (work,) = begun.work()
    begun.write(work, [failed_pass("original")], failure([], "judge_timeout"))
    store.work.retire(begun.run_id, {"failed"})
    assert store.table.count(begun.run_id, VerdictFilter()) == 0
    begun.judge_all()
    assert store.table.count(begun.run_id, VerdictFilter(winner="A")) == 1


def test_a_failed_verdict_whose_pass_was_made_since_leaves_no_marks(store: Store) -> None:
    """Nothing rests on a retired pass then: the verdict goes because it failed."""
    begun = begin(store, item("x"))
    (work,) = begun.work()
    begun.write(work, [], failure([], "judge_timeout"))
    other = begin(store, item("x"), name="other")
    other.judge_all()
    assert store.work.retire(begun.run_id, {"failed"}) == 0
    assert store.table.count(begun.run_id, VerdictFilter()) == 0
    assert len(begun.work()) == 1
    assert other.work() == []


def test_samples_that_another_run_asked_for_do_not_count_as_unread(store: Store) -> None:
    begun = begin(store, item("x"))
    (work,) = begun.work()
    second = unread_pass("original", sample=2)
    store.work.write([NewPass(work.pair_id, begun.judge_id, begun.run_id, second)], [])
    begun.write(work, [failed_pass("original")], failure([], "judge_timeout"))
    assert store.table.count(begun.run_id, VerdictFilter(unread=True)) == 0


def test_every_pair_is_found_on_the_page_that_it_stands_on(store: Store) -> None:
    """The very page that walking from the first one comes to."""
    run_id = fill(store)
    asked = (VerdictFilter(), VerdictFilter(outcome=Outcome.WIN), VerdictFilter(tag="maths"))
    for wanted, sort, descending in product(asked, SORTS, (False, True)):
        order: Any = {"sort": sort, "descending": descending, "limit": 7}
        pages = [store.table.browse(run_id, wanted, **order)]
        while pages[-1].next is not None:
            pages.append(store.table.browse(run_id, wanted, after=pages[-1].next, **order))
        first: dict[int, int] = {}
        for at, page in enumerate(pages):
            for row in page.rows:
                first.setdefault(row.number, at)
        assert len(first) > 7
        for number, at in first.items():
            start = store.table.page_start(run_id, wanted, number, **order)
            page = store.table.browse(run_id, wanted, after=start, **order)
            assert page.rows == pages[at].rows


def test_a_pair_that_is_not_in_the_table_has_the_page_of_its_place(store: Store) -> None:
    run_id = fill(store)
    wanted = VerdictFilter(outcome=Outcome.WIN)
    won = {row.number for row in store.table.browse(run_id, wanted, limit=1000).rows}
    every = {row.number for row in store.table.browse(run_id, VerdictFilter(), limit=1000).rows}
    for number in every - won:
        start = store.table.page_start(run_id, wanted, number, limit=7)
        rows = store.table.browse(run_id, wanted, after=start, limit=7).rows
        before = [each for each in won if each < number]
        # The pairs around its place: the one before it, or the one after, is on the page.
        near = {max(before, default=0), min((each for each in won if each > number), default=0)}
        assert near & {row.number for row in rows}
    assert store.table.page_start(run_id, wanted, 10**9, limit=7) is None


def test_whole_verdicts_are_read_by_their_places(store: Store) -> None:
    run_id = fill(store)
    invalid = VerdictFilter(outcome=Outcome.INVALID)
    wanted = [VerdictPlace(*row.place[1:]) for row in store.table.browse(run_id, invalid).rows]
    rows = store.verdicts.at(run_id, wanted)
    assert [(row.item.number, row.judge_id) for row in rows] == wanted
    assert [whole.row for whole in store.verdicts.whole_at(run_id, wanted)] == rows
    assert store.verdicts.whole_at(run_id, []) == []


def test_totals_count_what_each_filter_shows(store: Store) -> None:
    run_id = fill(store)
    counted = store.table.count_kinds(run_id)
    filters = {
        "wins_a": VerdictFilter(outcome=Outcome.WIN, winner="A"),
        "wins_b": VerdictFilter(outcome=Outcome.WIN, winner="B"),
        "ties": VerdictFilter(outcome=Outcome.TIE),
        "inconsistent": VerdictFilter(outcome=Outcome.INCONSISTENT),
        "invalid": VerdictFilter(outcome=Outcome.INVALID),
        "abstained": VerdictFilter(abstained=True),
        "noted": VerdictFilter(noted=True),
        "unread": VerdictFilter(unread=True),
        "labelled": VerdictFilter(label="any", by_rule=False),
        "disagrees": VerdictFilter(disagrees=True),
        "orders_agree": VerdictFilter(orders="agree"),
        "leans_first": VerdictFilter(leans="first"),
        "leans_second": VerdictFilter(leans="second"),
        "judges_differ": VerdictFilter(judges_differ=True),
    }
    for judge_id, kinds in counted.kinds.items():
        shown = {
            name: store.table.count(run_id, wanted, judge_ids=(judge_id,))
            for name, wanted in filters.items()
        }
        assert dict(kinds) == shown
    ends: dict[CriterionEnd, int] = {
        "A": WIN_A,
        "B": WIN_B,
        "TIE": TIE,
        "inconsistent": INCONSISTENT,
        "invalid": INVALID,
    }
    for name, codes in counted.criteria.items():
        assert codes == Counter(
            {
                code: store.table.count(run_id, VerdictFilter(criterion=name, criterion_end=end))
                for end, code in ends.items()
            }
        )
    assert set(counted.criteria) == set(CRITERIA)
