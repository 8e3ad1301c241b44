"""The simulation of workers and one database, held to what arithmetic and theory say of it."""

from __future__ import annotations

import pytest
from scripts.scale_simulation import Setup, finite_source_rate, simulate


@pytest.mark.slow
@pytest.mark.parametrize(("workers", "slots"), [(1, 1), (4, 1), (20, 1), (20, 3)])
def test_one_place_a_worker_is_the_machine_repair_model(workers: int, slots: int) -> None:
    setup = Setup(
        workers=workers, in_flight=1, judge_s=0.1, write_s=0.01, pass_s=0.0, slots=slots,
        enough=1, random_service=True,
    )  # fmt: skip
    exact = finite_source_rate(workers, 0.1, 0.01, slots)
    assert simulate(setup, passes=40_000).per_s == pytest.approx(exact, rel=0.03)


def test_the_formula_of_the_repair_model_is_right_where_it_can_be_worked_out_by_hand() -> None:
    # One machine: 1 s of work, 1 s of repair: one round every 2 s.
    assert finite_source_rate(1, 1.0, 1.0, 1) == pytest.approx(0.5)
    # Two machines, one repairer: weights 1, 2, 2; the repairer is busy 4 of 5.
    assert finite_source_rate(2, 1.0, 1.0, 1) == pytest.approx(0.8)
    # As many repairers as machines: nobody waits.
    assert finite_source_rate(2, 1.0, 1.0, 2) == pytest.approx(1.0)


def test_an_idle_database_leaves_the_rate_to_the_judge() -> None:
    setup = Setup(workers=2, in_flight=8, judge_s=1.0, write_s=0.001, pass_s=0.0001, slots=4)
    found = simulate(setup, passes=20_000)
    # Little: 16 places, each 1 s at the judge, at most 10 ms gathering and about 1 ms writing.
    assert 16 / 1.012 * 0.97 < found.per_s < 16 / 1.001 * 1.03
    assert found.busy < 0.01
    # Places taken = rate times the time in them.
    assert found.per_s * (1.0 + found.stored_after_s) == pytest.approx(16, rel=0.03)


def test_a_database_that_is_asked_for_too_much_gives_all_it_has() -> None:
    setup = Setup(workers=50, in_flight=100, judge_s=0.1, write_s=0.001, pass_s=0.001, slots=2)
    found = simulate(setup, passes=50_000)
    assert setup.offered == pytest.approx(50_000)
    assert setup.ceiling == pytest.approx(2_000)
    assert found.busy == pytest.approx(1.0, abs=0.01)
    # Of a worker's places half are in the write that waits, half gather for the next.
    assert found.batch == pytest.approx(50, rel=0.1)
    assert found.per_s == pytest.approx(2 / (0.001 + 0.001 / found.batch), rel=0.02)


def test_batches_grow_with_the_load_so_that_writes_do_not_pile_up() -> None:
    batches = [
        simulate(
            Setup(workers=n, in_flight=64, judge_s=2.0, write_s=0.003, pass_s=0.0001, slots=2),
            passes=30_000,
        ).batch
        for n in (10, 100, 400)
    ]
    assert batches == sorted(batches)
    assert batches[-1] > 5 * batches[0]
