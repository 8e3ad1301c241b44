"""What a jury says of each pair: its judges take their seats and vote."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from evenhand.errors import InputError
from evenhand.stats.jury import learn_jury, majority_jury
from evenhand.stats.jury_votes import JuryVerdicts
from evenhand.stats.outcomes import INCONSISTENT, INVALID
from evenhand.store import Store
from evenhand.trust.jurors import NOT_JUDGED, Codes, Panel, seat_jury
from evenhand.trust.saved_juries import SavedJury, seats_of

Weights = Literal["majority", "learned"]

# A jury's own outcomes on the codes of a judge's: in a rate a hung jury counts as a pair on which
# one judge contradicts itself does, and one that lacks votes as a pair without a verdict.
HUNG, NO_QUORUM = INCONSISTENT, INVALID


@dataclass(frozen=True, slots=True)
class Voted:
    panel: Panel
    saved: SavedJury
    verdicts: JuryVerdicts
    outcomes: Codes  # WIN_A, WIN_B, TIE, HUNG or NO_QUORUM


def let_vote(
    store: Store,
    names: Sequence[str],
    *,
    weights: Weights = "majority",
    quorum: int | None = None,
    use: SavedJury | None = None,
    forced: bool = False,
) -> Voted:
    """All judges of the named runs on the pairs of the first; or a saved jury, and its judges."""
    panel = seat_jury(store, names)
    if use is None:
        saved = _new_jury(panel, weights, quorum)
    else:
        panel = _seated(panel, use, seats_of(use, panel.jurors, forced=forced))
        saved = use if quorum is None else use.model_copy(update={"quorum": quorum})
    _check_quorum(saved.quorum, len(saved.jurors))
    verdicts = saved.jury.predict(panel.votes)
    return Voted(panel, saved, verdicts, _outcomes(verdicts, saved.quorum))


def _new_jury(panel: Panel, weights: Weights, quorum: int | None) -> SavedJury:
    if weights == "majority":
        jury = majority_jury(panel.titles)
    else:
        jury = learn_jury(panel.votes, panel.labels, judges=panel.titles, prompts=panel.prompts)
        if jury.reason is not None:
            raise InputError(
                f"the weights cannot be learned: {jury.reason}; label more pairs, or take "
                "--weights majority, which needs none"
            )
    usual = (len(panel.jurors) + 1) // 2 if weights == "majority" else 1
    return SavedJury(
        runs=panel.runs,
        jurors=panel.jurors,
        quorum=usual if quorum is None else quorum,
        jury=jury,
    )


def _check_quorum(quorum: int, seats: int) -> None:
    if not 1 <= quorum <= seats:
        raise InputError(f"the quorum is {quorum} of {seats} judges; give 1 to {seats}")


def _seated(panel: Panel, saved: SavedJury, seats: Sequence[int | None]) -> Panel:
    """The panel with a column for each seat of the jury, in its order."""
    outcomes = np.full((panel.outcomes.shape[0], len(seats)), NOT_JUDGED, dtype=np.int8)
    abstained = np.zeros(outcomes.shape, dtype=np.bool_)
    jurors, titles = list(saved.jurors), [seat.judge for seat in saved.jurors]
    notes = list(panel.notes)
    for place, taken in enumerate(seats):
        if taken is None:
            notes.append(f"nobody sits for {titles[place]}: the seat has no votes")
            continue
        if jurors[place] != panel.jurors[taken]:
            notes.append(f"{panel.titles[taken]} sits for {saved.jury.judges[place]}, by force")
        outcomes[:, place] = panel.outcomes[:, taken]
        abstained[:, place] = panel.abstained[:, taken]
        jurors[place], titles[place] = panel.jurors[taken], panel.titles[taken]
    left = [title for place, title in enumerate(panel.titles) if place not in seats]
    if left:
        notes.append(f"not on the jury, and without a vote: {', '.join(left)}")
    return replace(
        panel,
        jurors=tuple(jurors),
        titles=tuple(titles),
        outcomes=outcomes,
        abstained=abstained,
        notes=tuple(notes),
    )


def _outcomes(verdicts: JuryVerdicts, quorum: int) -> Codes:
    # Winners' codes are those of the outcomes: 0 A, 1 B, 2 tie.
    found = np.where(verdicts.hung, HUNG, verdicts.winners)
    outcomes: Codes = np.where(verdicts.voters < quorum, NO_QUORUM, found).astype(np.int8)
    return outcomes
