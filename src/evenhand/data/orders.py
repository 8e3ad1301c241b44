"""Which pairs are asked in one order only, and in which: drawn from a seed and the unordered pair,
so that swapping A and B asks the same question and mirrors the verdict.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from hashlib import blake2b
from typing import Any

from evenhand.contract.pair import DrawnOrderPair, Pair
from evenhand.contract.verdict import Order
from evenhand.errors import InputError

BOTH_ORDERS_SHARE = 0.1
_WHOLE = 1 << 64


@dataclass(frozen=True, slots=True)
class OrderDraw:
    """One random order per pair; both orders for a random `both_orders` share of the pairs.

    Only pairs judged in both orders can show position bias. A larger share includes all pairs of a
    smaller one, so their passes are reused.
    """

    seed: int = 0
    both_orders: float = BOTH_ORDERS_SHARE

    def __post_init__(self) -> None:
        if not 0 <= self.both_orders <= 1:
            raise InputError.of("data.both_orders_outside", share=self.both_orders)

    def as_json(self) -> dict[str, Any]:
        return {"random": asdict(self)}

    def order_of(self, pair: Pair) -> Order | None:
        """None for both: with identical responses, no order mirrors the other."""
        if pair.response_a == pair.response_b:
            return None
        first, second = sorted((pair.response_a, pair.response_b))
        # With the prompt, since many prompts share answers such as "yes".
        digest = blake2b(b"order 1;%d;" % self.seed, digest_size=9)
        for text in (pair.prompt, pair.context or "", first, second):
            encoded = text.encode()
            digest.update(b"%d:" % len(encoded))
            digest.update(encoded)
        coin, *share = digest.digest()
        if int.from_bytes(bytes(share), "little") < self.both_orders * _WHOLE:
            return None
        return "original" if (coin & 1) == (first == pair.response_a) else "swapped"

    def draw(self, pair: Pair) -> Pair:
        order = self.order_of(pair)
        fields = {name: getattr(pair, name) for name in Pair.model_fields}
        if order is None:
            return Pair.model_construct(**(fields | {"swap_positions": True}))
        return DrawnOrderPair.model_construct(
            **(fields | {"swap_positions": False, "drawn_order": order})
        )
