"""Hard caps."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from evenhand.errors import JudgeAuthentication, JudgeServerError
from evenhand.runs.budget import Budget
from evenhand.runs.health import JudgeHealth
from evenhand.runs.ray.messages import WorkerSpending
from evenhand.runs.stop import Stop


def test_no_call_begins_beyond_the_cap() -> None:
    stop = Stop()
    budget = Budget(stop, max_calls=3)
    assert [budget.begin() for _ in range(5)] == [True, True, True, False, False]
    assert budget.calls == 3
    assert stop.by == "max-calls"


def test_further_requests_of_a_call_count_as_calls() -> None:
    budget = Budget(Stop(), max_calls=4)
    assert budget.begin()
    budget.end(requests=3)
    assert budget.calls == 3
    assert budget.begin()
    assert not budget.begin()


@given(st.lists(st.floats(0.0001, 0.01), min_size=50, max_size=200), st.integers(1, 20))
def test_the_cost_never_exceeds_the_cap_by_more_than_what_is_in_flight(
    costs: list[float], at_once: int
) -> None:
    cap = 0.1
    budget = Budget(Stop(), max_cost=cap)
    flying: list[float] = []
    for cost in costs:
        if budget.begin():
            flying.append(cost)
        if len(flying) == at_once or not budget.begin():
            while flying:
                budget.end(requests=1, cost_usd=flying.pop())
    assert budget.cost_usd <= cap + at_once * max(costs)


def test_calls_of_one_price_stay_below_the_cap() -> None:
    budget = Budget(Stop(), max_cost=1.0)
    made = 0
    assert budget.begin()
    budget.end(requests=1, cost_usd=0.3)
    while budget.begin():
        made += 1  # all of them in flight at once
    assert made == 2  # 0.3 spent and two more at 0.3 make 0.9; a third would make 1.2


def test_what_is_not_known_is_not_added_up() -> None:
    budget = Budget(Stop())
    for cost in (0.5, None):
        budget.begin()
        budget.end(requests=1, cost_usd=cost, input_tokens=10, output_tokens=5)
    assert budget.known_cost_usd is None
    assert budget.known_input_tokens == 20
    budget.begin()
    budget.end(requests=1, answered=False)  # a failed call tells nothing, and hides nothing
    assert (budget.known_input_tokens, budget.known_output_tokens) == (20, 10)
    budget.begin()
    budget.end(requests=1)
    assert budget.known_output_tokens is None


def test_tokens_are_unknown_in_all_where_an_answer_told_only_half_of_them() -> None:
    for tokens_in, tokens_out in ((10, None), (None, 5)):
        budget = Budget(Stop())
        budget.begin()
        budget.end(requests=1, cost_usd=0.1, input_tokens=tokens_in, output_tokens=tokens_out)
        assert budget.known_input_tokens is None
        assert budget.known_output_tokens is None
        assert budget.known_cost_usd == 0.1


def test_a_cost_that_nobody_knows_stops_a_run_with_a_cap_on_it() -> None:
    for answered, cost, stopped in (
        (True, None, "max-cost"),
        (True, 0.0, None),
        (False, None, None),  # a failed call has no cost to know
    ):
        stop = Stop()
        budget = Budget(stop, max_cost=1.0)
        budget.begin()
        budget.end(requests=1, cost_usd=cost, answered=answered)
        assert stop.by == stopped


def test_where_calls_are_capped_in_the_place_of_a_price_an_unknown_one_is_allowed() -> None:
    stop = Stop()
    budget = Budget(stop, max_cost=1.0)
    budget.cap_unpriced(2)
    for _ in range(2):
        assert budget.begin()
        budget.end(requests=1)
    assert (stop.by, budget.unpriced) == (None, 2)
    assert not budget.begin()
    assert stop.by == "max-calls"


def test_a_call_that_reaches_the_cost_cap_exactly_may_begin_and_no_other() -> None:
    budget = Budget(Stop(), max_cost=1.0)
    assert budget.begin()
    budget.end(requests=1, cost_usd=0.5)
    assert budget.begin()  # 0.5 and one more at 0.5 are 1.0, which is not above it
    assert not budget.begin()
    budget.end(requests=1, cost_usd=0.5)
    assert not budget.begin()  # what is spent is all there is


def test_calls_that_are_submitted_and_then_refused_are_none() -> None:
    budget = Budget(Stop(), max_calls=5)
    budget.submitted(5)
    assert budget.calls == 5
    budget.refused(2)
    assert budget.calls == 3
    assert [budget.begin() for _ in range(3)] == [True, True, False]


def test_every_part_that_other_processes_spent_is_added() -> None:
    budget = Budget(Stop())
    budget.begin()
    budget.end(requests=2, cost_usd=0.25, input_tokens=10, output_tokens=1)
    spent = WorkerSpending(
        calls=3, cost_usd=0.5, unpriced=0, uncounted=0, input_tokens=20, output_tokens=4
    )
    budget.add(spent)
    assert (budget.calls, budget.known_cost_usd) == (2 + 3, 0.75)
    assert (budget.known_input_tokens, budget.known_output_tokens) == (30, 5)
    budget.add(WorkerSpending(calls=1, unpriced=1))
    assert (budget.known_cost_usd, budget.unpriced) == (None, 1)
    budget.add(WorkerSpending(calls=1, uncounted=1))
    assert (budget.known_input_tokens, budget.uncounted) == (None, 1)


def test_what_other_processes_spent_counts_against_the_cap() -> None:
    stop = Stop()
    budget = Budget(stop, max_calls=10, max_cost=1.0)
    spent = WorkerSpending(calls=4, cost_usd=1.0, input_tokens=20, output_tokens=8)
    budget.add(spent)
    assert (budget.calls, budget.known_input_tokens, budget.known_output_tokens) == (4, 20, 8)
    assert not budget.begin()  # the cap is reached, though this process knows no price of a call
    assert stop.by == "max-cost"


def test_a_wrong_key_stops_the_run_at_once() -> None:
    stop = Stop()
    JudgeHealth("openai:m", stop, proven=True).failed(JudgeAuthentication("no key"), in_flight=1)
    assert stop.by == "judge"
    assert stop.error is not None
    assert stop.error.message == "openai:m stopped the run: no key"


def test_a_judge_that_never_answers_is_given_up_sooner_than_one_that_did() -> None:
    for proven, most in ((False, 10), (True, 50)):
        stop = Stop()
        health = JudgeHealth("openai:m", stop, proven=proven)
        for _ in range(most - 1):
            health.failed(JudgeServerError("down"), in_flight=1)
        assert stop.by is None
        health.failed(JudgeServerError("down"), in_flight=1)
        assert stop.by == "judge"


def test_an_answer_between_failures_starts_the_count_again() -> None:
    stop = Stop()
    health = JudgeHealth("openai:m", stop, proven=False)
    for _ in range(200):
        for _ in range(9):
            health.failed(JudgeServerError("down"), in_flight=1)
        health.answered()
    assert stop.by is None


def test_who_asks_first_decides_why_it_stopped() -> None:
    stop = Stop()
    told: list[str] = []
    stop.listen(lambda: told.append("early"))
    stop.ask("interrupt")
    stop.ask("max-calls")
    stop.listen(lambda: told.append("late"))
    assert stop.by == "interrupt"
    assert told == ["early", "late"]
