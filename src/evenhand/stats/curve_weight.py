"""How much of a curve stands: drawn towards the base rate as far as unseen prompts say."""

from __future__ import annotations

import numpy as np
from scipy.special import expit, logit

from evenhand.stats.clusters import Floats
from evenhand.stats.confidence_curves import Constant, Curve, Isotonic, Logistic, Platt

# Tenths: the loss is flat around its least, so that finer steps tell nothing.
STEPS = 10


def curve_weight(curve: Floats, base: Floats, right: Floats) -> float:
    """The weight of a curve beside the base rate, from 0 to 1, with the least log loss.

    Both are probabilities of rows that they were not learned on; they are mixed in log-odds, and
    the weight is stacking's (Breiman 1996). Of equal losses the smaller weight.
    """
    own, other = logit(curve), logit(base)
    losses = [
        float(np.logaddexp(0, np.where(right > 0, -1, 1) * _mixed(own, other, step / STEPS)).mean())
        for step in range(STEPS + 1)
    ]
    return int(np.argmin(losses)) / STEPS


def tempered(curve: Curve, weight: float, *, towards: float) -> Curve:
    """The curve with its log-odds drawn to those of `towards`: of the same kind, and as steep as
    `weight` lets it be. At weight 0 nothing is left of it."""
    if weight >= 1 or isinstance(curve, Constant):
        return curve
    if weight <= 0:
        return Constant(probability=towards)
    base = float(logit(towards))

    def drawn(probability: float) -> float:
        return float(expit(_mixed(logit(probability), base, weight)))

    if isinstance(curve, Isotonic):
        levels = tuple(drawn(each) for each in curve.probabilities)
        return curve.model_copy(update={"probabilities": levels, "missing": drawn(curve.missing)})
    intercept = weight * curve.intercept + (1 - weight) * base
    if isinstance(curve, Platt):
        return curve.model_copy(
            update={
                "intercept": intercept,
                "slope": weight * curve.slope,
                "missing": drawn(curve.missing),
            }
        )
    return _tempered_logistic(curve, weight, intercept=intercept)


def _tempered_logistic(curve: Logistic, weight: float, *, intercept: float) -> Logistic:
    signals = tuple(
        part.model_copy(
            update={
                "slope": weight * part.slope,
                "missing": None if part.missing is None else weight * part.missing,
            }
        )
        for part in curve.signals
    )
    return curve.model_copy(update={"intercept": intercept, "signals": signals})


def _mixed(own: Floats | float, other: Floats | float, weight: float) -> Floats | float:
    return weight * own + (1 - weight) * other
