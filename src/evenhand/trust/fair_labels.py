"""One label a pair, for learning and for figures: the data's own, or else what most people say."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenhand.store import DRAWS, Store
from evenhand.trust.votes import NO_WINNER, Codes, Mask, item_votes, majority_labels


@dataclass(frozen=True, slots=True)
class FairLabels:
    """By row: 0 A, 1 B, 2 TIE and -1 none; and which of them are people's."""

    winners: Codes
    by_people: Mask


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
    columns = ("row", "pair", "prompt", "who", "verdict", "label", "origin", "draw", "chance")
    kept = replace(votes, **{name: getattr(votes, name)[fair] for name in columns})
    voted = majority_labels(kept, numbers).majority
    by_people = (winners == NO_WINNER) & (voted != NO_WINNER)
    winners[by_people] = voted[by_people]
    return FairLabels(winners, by_people)
