"""Distribution functions and quantiles of single numbers, and the logistic function of arrays.

SciPy's special functions take longer to load than one interval takes to compute
(tests/stats/test_distributions.py compares the two).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from evenhand.stats.columns import Floats

_MOST_STEPS = 200_000  # a fraction takes about the root of its parameters
_MOST_NEWTON_STEPS = 200
_TINY = 1e-300
_PRECISION = 2.0**-52
# From here on Stirling's series is exact to the last digit.
_SERIES_FROM = 15.0
_STIRLING = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188)


def expit(odds: Any) -> Floats:
    """1 / (1 + exp(-odds)), precise in both tails."""
    small = np.exp(-np.abs(odds))
    return np.asarray(np.where(np.greater_equal(odds, 0), 1.0, small) / (1.0 + small))


def logit(rates: Any) -> Floats:
    return np.asarray(np.log(rates) - np.log1p(np.negative(rates)))


def normal_cdf(deviations: float) -> float:
    return 0.5 * math.erfc(-deviations / math.sqrt(2))


def binomial_cdf(count: int, of: int, share: float) -> float:
    """P(X <= count)."""
    return 1.0 if count >= of else beta_cdf(of - count, count + 1, 1 - share)


def binomial_tail(count: int, of: int, share: float) -> float:
    """P(X > count)."""
    return 0.0 if count >= of else beta_cdf(count + 1, of - count, share)


def t_cdf(degrees: float, value: float) -> float:
    square = value * value
    if square < 1:  # close to 0, of which the tail says little
        middle = beta_cdf(0.5, degrees / 2, square / (degrees + square)) / 2
        return 0.5 + math.copysign(middle, value)
    tail = beta_cdf(degrees / 2, 0.5, degrees / (degrees + square)) / 2
    return tail if value < 0 else 1 - tail


def t_quantile(degrees: float, share: float) -> float:
    if share > 0.5:
        return -t_quantile(degrees, 1 - share)
    if share > 0.25:  # close to 0, of which the tail says little
        near = beta_quantile(0.5, degrees / 2, 1 - 2 * share)
        return -math.sqrt(degrees * near / (1 - near))
    far = beta_quantile(degrees / 2, 0.5, 2 * share)
    return -math.sqrt(degrees * (1 - far) / far)


def f_tail(above: float, below: float, value: float) -> float:
    """P(F > value) with these degrees of freedom in numerator and denominator."""
    return beta_cdf(below / 2, above / 2, below / (below + above * value))


def beta_cdf(a: float, b: float, share: float) -> float:
    """The regularised incomplete beta function, by its continued fraction."""
    if share <= 0 or share >= 1:
        return float(share >= 1)
    if share > (a + 1) / (a + b + 2):
        return 1 - beta_cdf(b, a, 1 - share)
    return _power(a, b, share) * _fraction(a, b, share) / a


def beta_quantile(a: float, b: float, chance: float) -> float:
    """Newton's method on the logarithms of both, within the current bounds."""
    if chance <= 0 or chance >= 1:
        return float(chance >= 1)
    if chance > 0.5:
        return 1 - beta_quantile(b, a, 1 - chance)
    low, high, share = 0.0, 1.0, a / (a + b)
    for _ in range(_MOST_NEWTON_STEPS):
        below = beta_cdf(a, b, share)
        low, high = (share, high) if below < chance else (low, share)
        rise = _power(a, b, share) / (1 - share) / max(below, _TINY)
        step = math.log(max(below, _TINY) / chance) / max(rise, _TINY)
        last, share = share, share * math.exp(-min(step, 700.0)) if step > -700.0 else high
        if not low < share < high:
            share = (low + high) / 2
        if abs(share - last) <= _PRECISION * last:
            break
    return share


def _power(a: float, b: float, share: float) -> float:
    """share^a (1 - share)^b / B(a, b) by deviances (Loader 2000): log gamma would cost large
    parameters half their digits."""
    whole = a + b
    size = _stirling_rest(whole) - _stirling_rest(a) - _stirling_rest(b)
    far = _deviance(a, whole * share) + _deviance(b, whole * (1 - share))
    return math.sqrt(a * b / (2 * math.pi * whole)) * math.exp(size - far)


def _deviance(seen: float, expected: float) -> float:
    """seen · log(seen / expected) + expected - seen."""
    more = (expected - seen) / seen
    log = math.log1p(more) if more > -0.5 else math.log(expected / seen)
    return seen * (more - log)


def _stirling_rest(value: float) -> float:
    """Log gamma(value + 1) minus Stirling's formula."""
    if value < _SERIES_FROM:
        formula = (value + 0.5) * math.log(value) - value + math.log(2 * math.pi) / 2
        return math.lgamma(value + 1) - formula
    return sum(term / value ** (2 * place + 1) for place, term in enumerate(_STIRLING))


def _fraction(a: float, b: float, share: float) -> float:
    """By Lentz's method (Press et al., Numerical Recipes, 6.4)."""
    upper, lower = 1.0, 1 / _away(1 - (a + b) * share / (a + 1))
    value = lower
    for step in range(1, _MOST_STEPS):
        even = step * (b - step) * share / ((a + 2 * step - 1) * (a + 2 * step))
        odd = -(a + step) * (a + b + step) * share / ((a + 2 * step) * (a + 2 * step + 1))
        for term in (even, odd):
            lower = 1 / _away(1 + term * lower)
            upper = _away(1 + term / upper)
            value *= upper * lower
        if abs(upper * lower - 1) <= _PRECISION:
            break
    return value


def _away(value: float) -> float:
    """Away from 0, the fraction's denominator."""
    return value if abs(value) > _TINY else _TINY
