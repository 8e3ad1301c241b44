from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from evenhand.analyses.plan import Amount, cost_by_data, cost_by_price, like_run
from evenhand.contract import Outcome, Usage, Winner, read_criteria
from evenhand.data.options import ReadOptions
from evenhand.errors import DataError, InputError
from evenhand.judges.prices import Price
from evenhand.judges.registry import open_judge
from evenhand.judging.config import JudgeConfig
from evenhand.report.lookup import find_run
from evenhand.runs import JudgePlan, PairFiles
from evenhand.store import NewVerdict, Store
from run_data import sums, write_lines
from store_values import decided
from stored_runs import Row, follows_place, make_run, mumbles, opened, says

PRICE = Price(0.15, 0.60)
READING = ReadOptions(criteria=read_criteria(["accuracy"]))


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with opened(tmp_path) as opened_store:
        yield opened_store


def test_price_and_tokens_make_a_cost() -> None:
    cost = cost_by_price(PRICE, input_tokens=900, output_tokens=400)
    # 900 × 0.15 + 400 × 0.60 dollars for a million tokens
    each = (900 * 0.15 + 400 * 0.60) / 1e6
    assert cost.usd is not None
    assert cost.usd.low == cost.usd.high == pytest.approx(each)
    assert cost.of(1000) is not None
    assert cost.of(1000) == Amount(low=each * 1000, high=each * 1000)


def test_run_tells_its_mean_cost_its_ties_and_how_it_was_judged(store: Store) -> None:
    rows = [
        *(Row(f"q{n}", says("A")) for n in range(5)),
        Row("q5", says("TIE")),
        Row("q6", follows_place),
        Row("q7", follows_place),
        Row("q8", mumbles),
    ]
    make_run(store, "before", rows, judges=["strict", "kind"])
    known = like_run(store, find_run(store, "before"))
    assert (known.verdicts, known.orders, known.samples, known.judges) == (18, 2, 1, 2)
    # Of the eight valid ones, for each judge.
    assert known.tie_share == pytest.approx(1 / 8)
    assert known.inconsistent_share == pytest.approx(2 / 8)
    cost = known.call_cost
    assert cost.usd == Amount(low=0.25, high=0.25)
    assert cost.input_tokens == Amount(low=100, high=100)
    assert cost.output_tokens == Amount(low=20, high=20)
    assert cost.requests == 1
    priced = like_run(store, find_run(store, "before"), price=PRICE).call_cost
    assert priced.usd is not None
    assert priced.usd.high == pytest.approx((100 * 0.15 + 20 * 0.60) / 1e6)


def test_averaged_pairs_whose_orders_differ_are_inconsistent_all_the_same(store: Store) -> None:
    run = make_run(store, "averaged", [Row(f"q{n}", says("A"), judged=False) for n in range(5)])
    (judge,) = store.runs.judges(run)
    settled: tuple[tuple[Outcome, Winner, Winner, Winner | None], ...] = (
        (Outcome.WIN, "A", "A", "A"),
        (Outcome.WIN, "B", "A", "B"),  # a flip
        (Outcome.TIE, "TIE", "TIE", "A"),  # half a flip
        (Outcome.TIE, "TIE", "TIE", "TIE"),
        (Outcome.INCONSISTENT, "TIE", "A", None),  # samples of one order that split
    )
    told = [
        decided(outcome, winner, 0.6, "logprobs", one, two) for outcome, winner, one, two in settled
    ]
    store.work.write(
        [], [NewVerdict(run, n, judge.id, each) for n, each in enumerate(told, start=1)]
    )
    known = like_run(store, find_run(store, "averaged"))
    assert (known.tie_share, known.inconsistent_share) == (1 / 5, 3 / 5)


def test_half_a_cost_is_no_cost(store: Store) -> None:
    unpriced = Usage(input_tokens=100, output_tokens=20, requests=1)
    make_run(store, "mixed", [Row("q1", says("A")), Row("q2", says("A", usage=unpriced))])
    cost = like_run(store, find_run(store, "mixed")).call_cost
    assert cost.usd is None
    assert cost.of(100) is None
    assert cost.input_tokens == Amount(low=100, high=100)
    untold = Usage(cost_usd=0.5, requests=1)
    make_run(store, "untold", [Row("q3", says("A", usage=untold))])
    assert like_run(store, find_run(store, "untold")).call_cost.input_tokens is None
    assert like_run(store, find_run(store, "untold"), price=PRICE).call_cost.usd is None


def test_run_without_a_valid_verdict_tells_nothing(store: Store) -> None:
    make_run(store, "empty", [Row("q1", says("A"), judged=False)])
    make_run(store, "mumbled", [Row("q1", mumbles)])
    for name in ("empty", "mumbled"):
        with pytest.raises(InputError, match=f"run '{name}' has no valid verdicts to plan from"):
            like_run(store, find_run(store, name))
    with pytest.raises(InputError, match="no run 'none'"):
        like_run(store, find_run(store, "none"))


def test_run_in_one_order_is_planned_in_one(store: Store) -> None:
    rows = [Row("q1", says("A"))]
    make_run(store, "once", rows, plan={"data": {"swap_positions": False}})
    assert like_run(store, find_run(store, "once")).orders == 1


def test_data_is_estimated_by_the_pass(tmp_path: Path) -> None:
    file = write_lines(tmp_path / "sums.jsonl", sums(3))
    judge = open_judge("openai:gpt-4.1-mini")
    reasoned = JudgePlan(judge, JudgeConfig())
    cost = cost_by_data(PairFiles.of([file], READING), [reasoned], price=PRICE)
    assert cost.source == "an estimate from 3 pairs of sums"
    assert cost.requests == 1
    assert cost.input_tokens is not None
    assert cost.output_tokens is not None
    assert cost.usd is not None
    # A terse judge says 120 tokens and 60 a criterion, a talkative one 500 and 250.
    assert (cost.output_tokens.low, cost.output_tokens.high) == (180, 750)
    for end, tokens, told in (
        (cost.usd.low, cost.input_tokens.low, 180),
        (cost.usd.high, cost.input_tokens.high, 750),
    ):
        assert end == pytest.approx((tokens * 0.15 + told * 0.60) / 1e6, rel=1e-3)
    sampled = JudgePlan(judge, JudgeConfig(samples=3))
    again = cost_by_data(PairFiles.of([file], READING), [sampled], price=PRICE)
    assert again.usd == cost.usd
    letter = JudgePlan(judge, JudgeConfig(mode="letter"))
    asked = cost_by_data(PairFiles.of([file], READING), [letter], price=PRICE)
    assert asked.requests == 2  # the whole, and its one criterion
    free = JudgePlan(open_judge("baseline:longer"), JudgeConfig())
    assert cost_by_data(PairFiles.of([file], READING), [free], price=None).usd == Amount(
        low=0, high=0
    )


def test_data_without_a_pair_is_an_error(tmp_path: Path) -> None:
    file = write_lines(tmp_path / "bad.jsonl", [{"prompt": "p", "response_a": "a"}])
    plan = JudgePlan(open_judge("baseline:longer"), JudgeConfig())
    with pytest.raises(DataError, match=r"bad has no pairs to estimate from: .*row 1"):
        cost_by_data(PairFiles.of([file], READING), [plan], price=None)
