"""One label a pair, for learning and for figures: the data's own, or else what most people say."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenhand.store import DRAWS, Store
from evenhand.trust.votes import NO_WINNER, Codes, Mask, item_votes, majority_labels


@dataclass(frozen=True, slots=True)
class FairLabels:
    """By row: 0 A, 1 B, 2 TIE and -1 none; which of them are people's; and which of those are of
    pairs that were drawn by unequal chances."""

    winners: Codes
    by_people: Mask
    by_doubt: Mask


def fair_labels(
    store: Store,
    run_id: int,
    numbers: NDArray[np.int64],
    *,
    of_data: Any,
    evenly: bool = False,
) -> FairLabels:
    """`of_data` has the data's own label of each of the items, -1 where it has none.

    Votes on pairs that were chosen for what was known of them, or shown to people because a judge
    was unsure, are left out: they say nothing of other pairs. `evenly` leaves out those too that
    were drawn with unequal chances.
    """
    winners = np.array(of_data, dtype=np.int8)
    votes = item_votes(store, run_id, numbers, escalated=False)
    unfair = ("chosen", "weighted") if evenly else ("chosen",)
    fair = ~np.isin(votes.draw, [DRAWS.index(draw) for draw in unfair])
    kept = votes.only(fair)
    voted = majority_labels(kept, numbers).majority
    by_people = (winners == NO_WINNER) & (voted != NO_WINNER)
    winners[by_people] = voted[by_people]
    unequal = kept.row[kept.told & (kept.draw == DRAWS.index("weighted"))]
    by_doubt = by_people & np.isin(np.arange(winners.size), unequal)
    return FairLabels(winners, by_people, by_doubt)
