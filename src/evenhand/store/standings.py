"""What has come of a queue so far: its settled beginning, and how each contest stands."""

from __future__ import annotations

from collections import Counter, defaultdict

from sqlalchemy import Connection, and_, bindparam, case, func, literal, select

from evenhand.store.coding import OUTCOMES, code_outcomes
from evenhand.store.columns import INCONSISTENT, INVALID, TIE, WIN_A, WIN_B, PrefixColumns
from evenhand.store.paging import of_its_item
from evenhand.store.queue import contest_of, in_contest, is_pending, its_item, its_verdict
from evenhand.store.records import Contest
from evenhand.store.schema import items, queue, verdicts

_FIRST_PENDING = (
    select(queue.c.place)
    .where(in_contest, queue.c.place > bindparam("after"), is_pending)
    .order_by(queue.c.place)
    .limit(1)
)
# Averaged to a win or a tie from orders that chose differently: no gate counts that as decided.
_FLIPPED = and_(
    verdicts.c.outcome.in_(("win", "tie")),
    verdicts.c.first_pass_winner != verdicts.c.second_pass_winner,
)
_COUNTED = case((_FLIPPED, "inconsistent"), else_=verdicts.c.outcome)
_PREFIX = (
    select(queue.c.place, queue.c.number, items.c.prompt_key, _COUNTED, verdicts.c.winner)
    .join_from(queue, items, its_item)
    .join(verdicts, its_verdict)
    .where(in_contest, queue.c.place > bindparam("after"))
    .order_by(queue.c.place, queue.c.number)
)


def settled_prefix(
    connection: Connection, run_id: int, judge_id: int, *, contest: int, after: int
) -> PrefixColumns:
    asked = {"run": run_id, "judge": judge_id, "contest": contest, "after": after}
    pending = connection.execute(_FIRST_PENDING, asked).scalar()
    query = _PREFIX if pending is None else _PREFIX.where(queue.c.place < pending)
    columns = PrefixColumns(is_whole=pending is None)
    rows = connection.execute(query, asked).all()
    if rows:
        place, number, prompt_key, outcome, winner = zip(*rows, strict=True)
        columns.place.extend(place)
        columns.number.extend(number)
        columns.prompt_key.extend(prompt_key)
        columns.outcome.extend(code_outcomes(outcome, winner))
    return columns


# By way of the items and not of the queue, which has them in an order that suits no cache.
_CONTESTS = (
    select(
        items.c.model_a,
        items.c.model_b,
        verdicts.c.outcome,
        verdicts.c.winner,
        func.count(),
        func.min(items.c.number),
    )
    .outerjoin_from(items, verdicts, of_its_item & (verdicts.c.judge_id == bindparam("judge")))
    .where(items.c.run_id == bindparam("run"))
    .group_by(items.c.model_a, items.c.model_b, verdicts.c.outcome, verdicts.c.winner)
)
_HAS_CONTESTS = select(
    select(literal(1)).where(queue.c.run_id == bindparam("run"), queue.c.contest > 0).exists()
)
_PENDING = -1
_EXCHANGED = {WIN_A: WIN_B, WIN_B: WIN_A}


def contests(connection: Connection, run_id: int, judge_id: int) -> list[Contest]:
    if not connection.execute(_HAS_CONTESTS, {"run": run_id}).scalar():
        return []
    counted_rows = connection.execute(_CONTESTS, {"run": run_id, "judge": judge_id})
    # Contests are numbered as the queue numbers them: by the first item of each.
    rows = sorted(counted_rows, key=lambda row: row[-1])
    numbers: dict[frozenset[str], int] = {}
    models: dict[int, tuple[str, str]] = {}
    counted: defaultdict[int, Counter[int]] = defaultdict(Counter)
    for model_a, model_b, outcome, winner, count, _ in rows:
        contest = contest_of(numbers, model_a, model_b)
        first, _ = models.setdefault(contest, (model_a, model_b))
        code = _PENDING if outcome is None else OUTCOMES[outcome, winner]
        if model_a != first:
            code = _EXCHANGED.get(code, code)
        counted[contest][code] += count
    return [
        Contest(
            contest=contest,
            models=names,
            pending=counted[contest][_PENDING],
            wins=(counted[contest][WIN_A], counted[contest][WIN_B]),
            ties=counted[contest][TIE],
            inconsistent=counted[contest][INCONSISTENT],
            invalid=counted[contest][INVALID],
        )
        for contest, names in sorted(models.items())
    ]
