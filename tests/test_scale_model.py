"""The model behind docs/scaling.md, by arithmetic written out."""

from __future__ import annotations

import pytest
from scripts.scale_model import Assumed, Limits, Measured, dollars, limits, needs

from evenhand.judges.prices import Price

MEASURED = Measured(
    process_cpu_s=0.0005,
    intake_own_cpu_s=0.0002,
    intake_database_cpu_s=0.0001,
    write_s=0.002,
    database_cpu_s=0.0002,
    stored_bytes=6_000,
    logged_bytes=7_000,
    request_bytes=6_000,
    reply_bytes=2_000,
    input_tokens=1_000,
    output_tokens=500,
)
ASSUMED = Assumed(
    server_calls_per_s=10,
    answer_s=4,
    database_cores=4,
    network_bytes_per_s=8e8,
    most_in_flight=1_000,
    connections_a_process=4,
    server_dollars_per_h=2,
)


def test_each_part_by_itself() -> None:
    found = limits(servers=3, processes=2, in_flight=100, measured=MEASURED, assumed=ASSUMED)
    assert found == Limits(
        judge=15,  # 3 servers of 10 calls, two for a comparison
        places=25,  # 200 calls in flight, 4 s each: 50 calls
        processor=2_000,  # 2 processes of 2,000 calls
        network=50_000,  # 8e8 bytes by 8,000 of a call: 100,000 calls
        database=20_000,  # 4 cores of 5,000
    )
    assert (found.first, found.rate) == ("judge", 15)


@pytest.mark.parametrize(
    ("servers", "processes", "in_flight", "first"),
    [
        (1, 10, 1_000, "judge"),
        (1_000, 1, 100, "calls in flight"),
        (100_000, 2, 100_000, "processes"),
        (100_000, 1_000, 10_000, "database"),
    ],
)
def test_what_saturates_first(servers: int, processes: int, in_flight: int, first: str) -> None:
    found = limits(
        servers=servers,
        processes=processes,
        in_flight=in_flight,
        measured=MEASURED,
        assumed=ASSUMED,
    )
    assert found.first == first


def test_what_a_million_in_a_thousand_seconds_takes() -> None:
    found = needs(1_000_000, hours=1_000 / 3_600, measured=MEASURED, assumed=ASSUMED)
    assert found.calls_per_s == pytest.approx(2_000)
    assert found.in_flight == 8_000  # 2,000 calls a second, 4 s each
    assert found.servers == 200
    assert found.processes == 8  # 8,000 in flight at 1,000 each; the processor alone needs 1
    assert found.connections == 32
    assert found.database_share == pytest.approx(1_000 * 0.0002 / 4)
    assert found.log_bytes_per_s == pytest.approx(7e6)
    assert found.disk_bytes == pytest.approx(6e9)
    assert found.intake_hours == pytest.approx(300 / 3_600)
    assert found.server_hours == pytest.approx(200 * 1_000 / 3_600)


def test_needs_are_within_the_limits() -> None:
    for size in (1_000, 10**6, 10**9):
        asked = needs(size, hours=24, measured=MEASURED, assumed=ASSUMED)
        each = limits(
            servers=asked.servers,
            processes=asked.processes,
            in_flight=-(-asked.in_flight // asked.processes),
            measured=MEASURED,
            assumed=ASSUMED,
        )
        reached = min(each.judge, each.places, each.processor)
        assert reached >= size / 86_400 * (1 - 1e-9)


def test_money_is_for_both_passes_and_half_in_batches() -> None:
    price = Price(1.0, 4.0)  # a call: 1,000 × 1 + 500 × 4 = 3,000 millionths
    assert dollars(1_000, price, measured=MEASURED) == pytest.approx(6.0)
    assert dollars(1_000, price, measured=MEASURED, batch=True) == pytest.approx(3.0)
