"""Ballots become a decision, and a decision with its reasons a ruling. Pure: the same ballots give
the same ruling, and mirrored ballots the mirrored one. Nothing here may prefer the first pass."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from evenhand.contract import ORDERS, Locale, Order, Pair, Reconciling, Unread, Vote
from evenhand.phrases import name_pass
from evenhand.reconcile.box import Box, Reading
from evenhand.reconcile.criterion import Criterion
from evenhand.reconcile.decision import Decision
from evenhand.reconcile.overall import agree, average
from evenhand.reconcile.plain import decide_plainly
from evenhand.reconcile.ruling import NoRuling, Ruling
from evenhand.reconcile.telling import tell

__all__ = ["Decision", "NoRuling", "Reading", "Ruling", "decide", "reconcile"]


def reconcile(
    pair: Pair,
    readings: Sequence[Reading],
    *,
    how: Reconciling = "agreement",
    locale: Locale = "en",
    shows_first: Order | None = None,
) -> Ruling | NoRuling:
    """What the passes come to, with its reasons.

    `shows_first` is the order whose first-shown response has the smaller hash (None: the
    responses are identical): the one property of a pass that does not depend on what the caller
    calls A.
    """
    box = _boxed(pair, readings, locale, shows_first)
    decision = _decided(box, readings, how)
    return decision if isinstance(decision, NoRuling) else tell(box, decision)


def decide(
    pair: Pair,
    readings: Sequence[Reading | Vote],
    *,
    how: Reconciling = "agreement",
    shows_first: Order | None = None,
) -> Decision | NoRuling:
    """The same without the reasons, at a fraction of the cost: what a run of many pairs keeps."""
    if how == "agreement":
        decision = decide_plainly(pair, readings)
        if decision is not None:
            return decision
    ballots = [each.bare_ballot() if isinstance(each, Vote) else each for each in readings]
    return _decided(_boxed(pair, ballots, "en", shows_first), ballots, how)


def _boxed(
    pair: Pair, readings: Sequence[Reading], locale: Locale, shows_first: Order | None
) -> Box:
    orders: tuple[Order, ...] = ORDERS if pair.swap_positions else ("original",)
    return Box.of(pair, readings, orders, locale, shows_first)


def _decided(box: Box, readings: Sequence[Reading], how: Reconciling) -> Decision | NoRuling:
    silent = [order for order in box.canonical if not box.ballots[order]]
    if silent:
        return NoRuling(_why_silent(readings, silent))
    if how == "average" and not box.has_weights:
        return NoRuling(
            "averaging needs probabilities, and the judge gave none; "
            "ask for log-probabilities, or for several samples"
        )
    criteria = [Criterion.of(box, name.name, how) for name in box.pair.criteria]
    choose = average if how == "average" else agree
    return choose(box, criteria)


def _why_silent(readings: Sequence[Reading], silent: Sequence[Order]) -> str:
    reasons = {order: _why_unread(readings, order) for order in silent}
    if len(silent) > 1 and len(set(reasons.values())) == 1:
        return f"Both passes: {reasons[silent[0]]}"
    return "; ".join(f"{name_pass('en', order)}: {reason}" for order, reason in reasons.items())


def _why_unread(readings: Iterable[Reading], order: Order) -> str:
    reasons = list(
        dict.fromkeys(r.reason for r in readings if isinstance(r, Unread) and r.order == order)
    )
    if not reasons:
        return "not made, and half a comparison decides nothing"
    return f"could not be read, {', '.join(reasons)}"
