"""The ledger: whatever workers do and however they die, the caps hold."""

from __future__ import annotations

from dataclasses import dataclass, replace

from hypothesis import given, settings
from hypothesis import strategies as st

from evenhand.runs.ray.ledger import BudgetLedger
from evenhand.runs.ray.messages import WorkerReport, WorkerSpending
from parts import examples

NOTHING = WorkerReport(
    judges=(),
    spending=WorkerSpending(),
    returned_calls=0,
    returned_cost_usd=0.0,
    wants_calls=0,
    wants_cost=False,
    starving=False,
    idle=False,
    in_flight=0,
    limit=8,
    paused_s=0.0,
    failing=None,
    finished=(),
)


@dataclass
class Worker:
    """What a worker does with its lease: uses a part of it, tells, or dies with the rest."""

    number: int
    calls_left: int = 0
    cost_left: float = 0.0
    calls: int = 0
    cost: float = 0.0
    returned_calls: int = 0
    returned_cost: float = 0.0

    def use(self, most: int, price: float) -> None:
        for _ in range(most):
            if self.calls_left < 1 or self.cost_left + 1e-12 < price:
                return
            self.calls_left -= 1
            self.cost_left -= price
            self.calls += 1
            self.cost += price

    def give_back(self) -> None:
        self.returned_calls += self.calls_left
        self.returned_cost += self.cost_left
        self.calls_left, self.cost_left = 0, 0.0

    def report(self, wants: int) -> WorkerReport:
        return replace(
            NOTHING,
            spending=WorkerSpending(calls=self.calls, cost_usd=self.cost, priced=self.calls),
            returned_calls=self.returned_calls,
            returned_cost_usd=self.returned_cost,
            wants_calls=wants,
            wants_cost=True,
        )


@settings(max_examples=examples(200))
@given(
    st.integers(1, 200),
    st.integers(1, 6),
    st.lists(
        st.tuples(
            st.integers(0, 5),
            st.sampled_from(["use", "use", "use", "return", "die"]),
            st.integers(0, 40),
        ),
        max_size=150,
    ),
)
def test_no_cap_is_exceeded_whatever_happens(
    most: int, workers: int, steps: list[tuple[int, str, int]]
) -> None:
    price = 0.01
    ledger = BudgetLedger(max_calls=most, max_cost=most * price / 2)
    crew = [Worker(number) for number in range(workers)]
    made: list[Worker] = list(crew)
    for worker in crew:
        ledger.open(worker.number)
    for place, step, amount in steps:
        worker = crew[place % workers]
        if step == "die":
            ledger.handle_loss(worker.number)
            worker = crew[place % workers] = Worker(len(made))
            made.append(worker)
            ledger.open(worker.number)
        if step == "return":
            worker.give_back()
        report = worker.report(amount)
        ledger.enter(worker.number, report)
        loan = ledger.lease(worker.number, report)
        worker.calls_left += loan.calls
        worker.cost_left += loan.cost_usd
        worker.use(amount, price)
        assert sum(each.calls for each in made) <= most
        assert sum(each.cost for each in made) <= most * price / 2 + 1e-9


@given(st.integers(1, 300), st.integers(1, 5))
def test_the_last_call_of_a_cap_is_made_and_then_it_is_reached(most: int, workers: int) -> None:
    ledger = BudgetLedger(max_calls=most)
    crew = [Worker(number, cost_left=float("inf")) for number in range(workers)]
    for worker in crew:
        ledger.open(worker.number)
    for _ in range(most + 10):
        for worker in crew:
            worker.use(1, 0.0)
            report = worker.report(16)
            ledger.enter(worker.number, report)
            worker.calls_left += ledger.lease(worker.number, report).calls
    assert sum(worker.calls for worker in crew) == most
    assert ledger.reached() == "max-calls"


def test_a_cap_is_not_reached_while_another_may_give_back() -> None:
    ledger = BudgetLedger(max_calls=1)
    one, other = Worker(1), Worker(2)
    ledger.open(1)
    ledger.open(2)
    one.calls_left = ledger.lease(1, one.report(5)).calls
    assert ledger.lease(2, other.report(5)).calls == 0
    assert ledger.reached() is None
    one.give_back()
    ledger.enter(1, one.report(0))
    assert ledger.lease(2, other.report(5)).calls == 1


def test_what_was_leased_to_a_lost_worker_counts_as_spent() -> None:
    ledger = BudgetLedger(max_calls=100, max_cost=10.0)
    worker = Worker(1)
    ledger.open(1)
    loan = ledger.lease(1, worker.report(16))
    assert loan.calls == 16
    worker.calls, worker.cost = 4, 0.4
    ledger.enter(1, worker.report(0))
    ledger.handle_loss(1)
    assert ledger.lost_calls == 12  # 16 leased, 4 told
    assert ledger.free_calls == 100 - 4 - 12
    assert abs(ledger.lost_cost_usd - (loan.cost_usd - 0.4)) < 1e-9


def test_one_that_ended_leaves_its_rest_to_the_others() -> None:
    ledger = BudgetLedger(max_calls=10)
    worker = Worker(1)
    ledger.open(1)
    worker.calls_left = ledger.lease(1, worker.report(16)).calls
    worker.use(2, 0.0)
    ledger.enter(1, worker.report(0))
    ledger.close(1)
    assert ledger.free_calls == 10 - worker.calls


def test_without_caps_nothing_is_lent_and_nothing_is_reached() -> None:
    ledger = BudgetLedger()
    ledger.open(1)
    loan = ledger.lease(1, Worker(1).report(16))
    assert (loan.calls, loan.cost_usd, ledger.reached()) == (0, 0.0, None)


def test_less_than_a_mean_call_is_not_lent() -> None:
    """Ten cents, nine spent on three calls: a fourth would cost three on average."""
    ledger = BudgetLedger(max_cost=0.10)
    ledger.open(1)
    worker = Worker(1)
    report = worker.report(8)
    loan = ledger.lease(1, report)
    worker.calls, worker.cost = 3, 0.09
    worker.returned_cost = loan.cost_usd - 0.09
    ledger.enter(1, worker.report(8))
    assert ledger.lease(1, worker.report(8)).cost_usd == 0.0
    assert ledger.reached() == "max-cost"
