"""Which server of a fleet a call goes to: sticky by its pair, and never far above its share."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from evenhand.judges.fleet import (
    ServerCall,
    ServerState,
    choose_server,
    pair_key,
    rendezvous_score,
    server_seed,
)
from fleets import ScriptedServer
from scripted import make_pair

KEYS = st.integers(0, 2**64 - 1)


def fleet(count: int) -> list[tuple[ServerState, int]]:
    addresses = [f"http://gpu-{number}:8000/v1" for number in range(count)]
    return [(ServerState(ScriptedServer(address)), server_seed(address)) for address in addresses]


def teach(member: ServerState, took_s: float, *, now: float) -> None:
    """It has answered, so long ago and so often that this is its usual time."""
    for _ in range(50):
        turn = member.begin(now - took_s)
        member.answered(turn, now)
        member.end(turn)


@given(st.text(), st.text(), st.text())
def test_both_orders_of_a_pair_have_the_same_key(prompt: str, a: str, b: str) -> None:
    pair = make_pair(prompt=prompt, response_a=a, response_b=b)
    assert pair_key(pair) == pair_key(make_pair(prompt=prompt, response_a=b, response_b=a))


@given(KEYS, st.permutations(range(5)))
def test_an_idle_fleet_gives_a_pair_the_same_server_however_it_is_listed(
    key: int, order: list[int]
) -> None:
    ready = fleet(5)
    first = choose_server(ready, key, now=0.0)
    assert choose_server([ready[place] for place in order], key, now=0.0) is first


@given(st.lists(KEYS, unique=True, min_size=1, max_size=50), st.integers(0, 4))
def test_a_server_that_goes_moves_only_its_own_pairs(keys: list[int], gone: int) -> None:
    ready = fleet(5)
    left = [each for place, each in enumerate(ready) if place != gone]
    for key in keys:
        before = choose_server(ready, key, now=0.0)
        after = choose_server(left, key, now=0.0)
        assert before is ready[gone][0] or after is before


@given(st.integers(2, 6), KEYS)
def test_a_pairs_second_call_joins_the_first(count: int, key: int) -> None:
    ready = fleet(count)
    first = choose_server(ready, key, now=0.0)
    first.begin(0.0)
    assert choose_server(ready, key, now=0.0) is first


@given(st.integers(2, 6), st.lists(st.tuples(KEYS, st.integers(0, 9)), max_size=200))
def test_no_server_is_filled_far_above_its_share(count: int, events: list[tuple[int, int]]) -> None:
    """Servers that are equally quick; a call comes, or the oldest of one server ends."""
    ready = fleet(count)
    turns: dict[ServerState, list[ServerCall]] = {member: [] for member, _ in ready}
    for key, ended in events:
        busy = [member for member, under_way in turns.items() if under_way]
        if ended >= 6 and busy:
            member = busy[key % len(busy)]
            member.end(turns[member].pop(0))
            continue
        chosen = choose_server(ready, key, now=0.0)
        turns[chosen].append(chosen.begin(0.0))
        total = sum(member.in_flight for member, _ in ready)
        # 1.25 of the share and 1 before it came, and 1 for itself.
        assert chosen.in_flight <= 1.25 * total / count + 2


@given(KEYS, st.integers(1, 60))
def test_one_hot_pair_does_not_fill_one_server(key: int, calls: int) -> None:
    """What its own server may not take is halved among the two others."""
    ready = fleet(3)
    for _ in range(calls):
        choose_server(ready, key, now=0.0).begin(0.0)
    least, middle, most = sorted(member.in_flight for member, _ in ready)
    assert most <= 1.25 * calls / 3 + 2
    assert middle - least <= 1


def test_a_server_that_is_ten_times_slower_has_a_tenth_in_flight() -> None:
    """Shares by speed: 1, 1 and 0.1 of 2.1. Of 84 calls 40, 40 and 4, and what the bound allows."""
    ready = fleet(3)
    for (member, _), took_s in zip(ready, (1.0, 1.0, 10.0), strict=True):
        teach(member, took_s, now=100.0)
    for key in range(84):
        choose_server(ready, pair_key(make_pair(prompt=f"{key}")), now=100.0).begin(100.0)
    quick, other, slow = (member.in_flight for member, _ in ready)
    assert slow <= 1.25 * 4 + 2
    assert slow >= 2
    assert min(quick, other) >= 84 - slow - (1.25 * 40 + 2)


def test_a_server_that_answers_nothing_any_more_counts_as_slow_before_its_calls_end() -> None:
    """In flight for 40 s where 1 s was usual: it is taken for one of 10 s, and gets a tenth."""
    ready = fleet(2)
    hanging, well = (member for member, _ in ready)
    for member in (hanging, well):
        teach(member, 1.0, now=100.0)
    for _ in range(4):
        hanging.begin(100.0)
    chosen = Counter(
        choose_server(ready, pair_key(make_pair(prompt=f"{key}")), now=140.0) for key in range(100)
    )
    assert chosen[hanging] == 0
    assert chosen[well] == 100


def test_keys_are_spread_evenly_over_servers() -> None:
    """3,000 keys over 3 servers: 1,000 each; four standard deviations are 103."""
    seeds = [seed for _, seed in fleet(3)]
    keys = [pair_key(make_pair(prompt=f"{number}")) for number in range(3000)]
    counts = Counter(
        max(range(3), key=lambda place: rendezvous_score(seeds[place], key)) for key in keys
    )
    assert all(abs(count - 1000) < 104 for count in counts.values())
