"""Which server of a fleet gets a call: its pair's own, unless that one has more than its share.

All requests of a pair begin alike (criteria, prompt, context; in letter mode all of it but the
question), which servers keep in their prefix caches; requests of two pairs do not, since each pair
has a marker of its own. So calls stick to a server by their pair: by rendezvous hashing (Thaler and
Ravishankar 1998), where a server that goes or comes moves its own pairs alone, and with a bound on
the load (Mirrokni, Thorup and Zadimoghaddam 2018).
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b
from zlib import crc32

from evenhand.contract import Pair
from evenhand.judges.fleet_member import Member

# How far above its share, in calls, a server may be filled for the sake of its cache.
_BOUND = 1.25
# Both orders of a pair leave together, and should find the same server.
_SLACK = 1.0
_64_BITS = 2**64 - 1


def key_of(pair: Pair) -> int:
    """The same in both orders. What collides goes to the same server, and harms nothing."""
    texts = (pair.prompt, pair.response_a, pair.response_b)
    digest = sum(crc32(text.encode("utf-8", "surrogatepass")) for text in texts)
    return (digest * 0x9E3779B97F4A7C15) & _64_BITS


def seed_of(address: str) -> int:
    """A server's part of the hash: by its address, whatever its place in the list."""
    return int.from_bytes(blake2b(address.encode(), digest_size=8).digest(), "big")


def score(seed: int, key: int) -> int:
    """Which server a key prefers: the one with the highest. The mixing is that of splitmix64."""
    mixed = seed ^ key
    mixed = ((mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9) & _64_BITS
    mixed = ((mixed ^ (mixed >> 27)) * 0x94D049BB133111EB) & _64_BITS
    return mixed ^ (mixed >> 31)


def choose(ready: Sequence[tuple[Member, int]], key: int, *, now: float) -> Member:
    """Of the servers that can be asked, each with its seed. There is at least one.

    A share is in proportion to speed: where one takes ten times as long, it has a tenth as many in
    flight. Beyond it the call goes where it is answered soonest.
    """
    if len(ready) == 1:
        return ready[0][0]
    scores = [score(seed, key) for _, seed in ready]
    favourite, _ = ready[scores.index(max(scores))]
    if not favourite.in_flight:
        return favourite
    known = [member.usual_s(now) for member, _ in ready]
    times = [usual for usual in known if usual is not None]
    typical = sum(times) / len(times) if times else 1.0
    usual = {
        member: max(its or typical, 1e-6) for (member, _), its in zip(ready, known, strict=True)
    }
    speed = sum(1 / each for each in usual.values())
    calls = 1 + sum(member.in_flight for member in usual)
    share = calls / (usual[favourite] * speed)
    if favourite.in_flight < _BOUND * share + _SLACK:
        return favourite
    return min(usual, key=lambda member: (member.in_flight + 1) * usual[member])
