"""What a reader of a ranking must know, in plain sentences."""

from __future__ import annotations

from collections.abc import Sequence

from evenhand.stats.bradley_terry import Fit
from evenhand.stats.connectivity import Connections
from evenhand.stats.tally import Tally

_SHOWN = 5


def describe(links: Connections, models: Sequence[str]) -> str:
    """Why battles alone give no finite scores."""
    told = []
    for fact, flags in (
        ("undefeated", links.undefeated),
        ("winless", links.winless),
        ("never compared", links.absent),
    ):
        if flags.any():
            told.append(f"{fact}: {_listed([models[i] for i in flags.nonzero()[0].tolist()])}")
    if links.groups:
        groups = " | ".join(_listed([models[i] for i in group.tolist()]) for group in links.groups)
        told.append(f"no battles between the groups {groups}")
    if told:
        return "; ".join(told)
    if links.strong:
        return "wins and ties do not settle the tie parameter"
    return "no points lead from some models back to the others"


def notes_on(
    links: Connections,
    tally: Tally,
    *,
    prior: float,
    unsettled: bool,
    fit: Fit,
    clusters: int | None,
    by_prompt: bool,
) -> tuple[str, ...]:
    notes = []
    if not links.strong:
        notes.append(
            f"the battles do not connect all models both ways ({describe(links, tally.models)})"
        )
    if unsettled:
        notes.append(
            "wins and ties alone do not settle Davidson's tie parameter: no chain of battles "
            "that leads back to its beginning has more wins than ties"
        )
    if prior:
        notes.append(
            f"a prior was used: each model has {prior:g} virtual "
            f"tie{'' if prior == 1 else 's'} with an average one"
        )
    if not fit.converged:
        notes.append(f"the fit did not converge in {fit.iterations} steps")
    if clusters is not None and clusters <= len(tally.models):
        kind = "prompts" if by_prompt else "battles"
        notes.append(
            f"{clusters} {kind} for {len(tally.models)} models: the intervals may be too narrow"
        )
    return tuple(notes)


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(names[:_SHOWN])
    return shown if len(names) <= _SHOWN else f"{shown} and {len(names) - _SHOWN} more"
