"""Adaptive comparisons: which pairs of models to compare next, and when to stop. A pure function of
the counts, pending comparisons and the seed, so that a killed run resumes from its store.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evenhand.contract.model import Model
from evenhand.errors import InputError
from evenhand.messages import Sentence
from evenhand.stats.columns import Floats
from evenhand.stats.ranking.posterior import (
    RankCertainty,
    StrengthPosterior,
    describe_certainty,
    fit_posterior,
    gap_variance,
    inverse,
    laplacian,
    tie_dispersion,
    win_probability,
)


@dataclass(frozen=True, slots=True, eq=False)
class PairCounts:
    """Square tables with a row and a column for each of `models`.

    scores[i][j] is what i won against j, a tie being half for each; the others are symmetric.
    """

    models: tuple[str, ...]
    scores: Floats
    unasked: NDArray[np.int64]
    in_flight: NDArray[np.int64]
    ties: NDArray[np.int64] | None

    @property
    def completed(self) -> int:
        return round(float(self.scores.sum()))

    @property
    def waiting(self) -> int:
        return int(self.in_flight.sum()) // 2

    @property
    def open(self) -> int:
        return int(self.unasked.sum()) // 2

    def reordered(self, order: NDArray[np.int64]) -> PairCounts:
        both = np.ix_(order, order)
        return PairCounts(
            models=tuple(self.models[i] for i in order),
            scores=self.scores[both],
            unasked=self.unasked[both],
            in_flight=self.in_flight[both],
            ties=None if self.ties is None else self.ties[both],
        )


def count_pairs(
    models: Sequence[str],
    scores: ArrayLike,
    *,
    unasked: ArrayLike,
    in_flight: ArrayLike | None = None,
    ties: ArrayLike | None = None,
) -> PairCounts:
    if len(models) < 2:
        raise InputError.of("stats.too_few_models", n=len(models))
    won = np.array(scores, dtype=np.float64)
    flying = np.zeros_like(won) if in_flight is None else in_flight
    return PairCounts(
        models=tuple(models),
        scores=won,
        unasked=np.asarray(unasked, dtype=np.int64),
        in_flight=np.asarray(flying, dtype=np.int64),
        ties=None if ties is None else np.asarray(ties, dtype=np.int64),
    )


# The pairs most likely to settle an order, for a stack of leagues.

Counts = NDArray[np.int64]
# (gaps of the strengths, their variances) -> the value of reducing each gap's variance
Worth = Callable[[Floats, Floats], Floats]

# The horizon: a comparison is valued for when its gap's variance has fallen to this share.
HORIZON = 1.0 / 2.0
# Values change slowly compared to variances, so they are recomputed only this often.
_PICKS_BETWEEN_LOOKS = 8
# The seed breaks ties between equal scores; far above rounding, far below any real difference.
_TIE_BREAK = 1e-6
# Beyond some fourteen deviations values vanish and would all be equal: the first pair would win.
_SURE_ENOUGH = -300.0


def settling_worth(gaps: Floats, variances: Floats) -> Floats:
    """How fast the chance of a wrong order falls with a gap's variance, at the horizon.

    Until the variance v has fallen to r·v, the estimate moves by a normal step of variance (1 -
    r)·v. The chance of a wrong order, min(P, 1 - P), falls only where the estimate crosses zero: by
    φ(0)·φ(gap / √((1 - r)·v)) / (v·√(r·(1 - r))) per unit of variance (Tanaka's formula). Factors
    common to all pairs are left out.
    """
    exponent = -(gaps**2) / (2.0 * (1.0 - HORIZON) * variances)
    worth: Floats = np.exp(np.maximum(exponent, _SURE_ENOUGH)) / variances
    return worth


def await_results(posterior: StrengthPosterior, in_flight: Floats) -> Floats:
    """The covariance after the pending comparisons, whatever their results."""
    if not in_flight.any():
        return posterior.covariance
    coming = laplacian(in_flight * information(posterior))
    return inverse(inverse(posterior.covariance) + coming)


def information(posterior: StrengthPosterior) -> Floats:
    """The Fisher information of one comparison about the gap of each two strengths."""
    chance = win_probability(posterior.mean)
    fisher: Floats = chance * (1.0 - chance) / posterior.dispersion[:, None, None]
    return fisher


def choose_settling_pairs(
    posterior: StrengthPosterior,
    room: Counts,
    *,
    number: int,
    in_flight: Floats,
    tie_break: Floats,
    worth: Worth = settling_worth,
) -> Counts:
    """`number` pairs for each league as (leagues, number, 2), most valuable first.

    A pair's score is the sum over all gaps of their value times the reduction of their variance by
    one comparison of the pair. Each pick updates the covariance, so that the next one goes
    elsewhere in time. `room`, symmetric, is how often each pair may still be asked; -1 if none is
    left.
    """
    leagues, models = posterior.mean.shape
    league = np.arange(leagues)
    diagonal = np.arange(models)
    gaps = posterior.mean[:, :, None] - posterior.mean[:, None, :]
    fisher = information(posterior)
    covariance = await_results(posterior, in_flight).copy()
    left = np.where(np.triu(np.ones((models, models), dtype=bool), 1), room, 0)
    weight = np.where(left > 0, fisher * (1.0 + _TIE_BREAK * tie_break), 0.0)
    closed = np.where(left > 0, 0.0, -1.0)
    tiny = np.finfo(np.float64).tiny
    chosen = np.full((leagues, number, 2), -1, dtype=np.int64)
    value = covariance
    for pick in range(number):
        own = covariance[:, diagonal, diagonal]
        variances = own[:, :, None] + own[:, None, :] - 2.0 * covariance
        if pick % _PICKS_BETWEEN_LOOKS == 0:
            variances = np.maximum(gap_variance(covariance), tiny)
            value = covariance @ laplacian(worth(gaps, variances)) @ covariance
        own = value[:, diagonal, diagonal]
        scores = own[:, :, None] + own[:, None, :] - 2.0 * value
        scores *= weight
        scores /= 1.0 + fisher * variances
        scores += closed
        best = scores.reshape(leagues, -1).argmax(axis=1)
        first, second = np.divmod(best, models)
        open_still = left[league, first, second] > 0
        if not open_still.any():
            break
        chosen[open_still, pick, 0] = first[open_still]
        chosen[open_still, pick, 1] = second[open_still]
        left[league, first, second] -= open_still
        used_up = left[league, first, second] <= 0
        weight[league[used_up], first[used_up], second[used_up]] = 0.0
        closed[league[used_up], first[used_up], second[used_up]] = -1.0
        # Sherman and Morrison (1950), for the covariance and for the value made of it.
        direction = covariance[league, :, first] - covariance[league, :, second]
        lever = value[league, :, first] - value[league, :, second]
        one = fisher[league, first, second] * open_still
        shrink = one / (1.0 + one * variances[league, first, second])
        bend = 0.5 * shrink * (lever[league, first] - lever[league, second])
        scaled = shrink[:, None] * direction
        change = scaled[:, :, None] * (lever - bend[:, None] * direction)[:, None, :]
        value = value - change - change.transpose(0, 2, 1)
        covariance -= scaled[:, :, None] * direction[:, None, :]
    return chosen


def choose_linking_pairs(
    asked: Counts, room: Counts, *, number: int, tie_break: Floats
) -> list[tuple[int, int]]:
    """Pairs that join models never compared, directly or through others; those asked least first.

    For one league. Empty if everything is connected, or nothing more can be joined.
    """
    # Loads SciPy's sparse matrices, so imported here.
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    models = asked.shape[0]
    groups = connected_components(csr_array((asked > 0).astype(np.int8)), directed=False)[1]
    load = asked.sum(axis=1).astype(np.float64)
    may = np.triu(room > 0, 1)
    links: list[tuple[int, int]] = []
    while len(links) < number:
        joining = may & (groups[:, None] != groups[None, :])
        if not joining.any():
            break
        strain = np.where(joining, load[:, None] + load[None, :] + tie_break, np.inf)
        first, second = (int(i) for i in divmod(int(strain.argmin()), models))
        links.append((first, second))
        load[[first, second]] += 1.0
        groups[groups == groups[second]] = groups[first]
    return links


StopReason = Literal["certain", "budget", "exhausted"]


class PairChoice(Model):
    """The next comparisons, most valuable first, or why there are none."""

    pairs: tuple[tuple[str, str], ...]  # a pair stands as often as it should be asked
    linking: int  # how many of them, in front, join models that were never compared
    stop: StopReason | None
    reason: Sentence | None
    certainty: RankCertainty
    asked: int  # so far, whatever came of it, and with what is in flight
    budget: int | None
    batch: int
    certain_at: float | None
    seed: int


def choose_pairs(
    counts: PairCounts,
    *,
    batch: int,
    budget: int | None = None,
    asked: int | None = None,
    certain_at: float | None = None,
    seed: int = 0,
) -> PairChoice:
    """At most `batch` pairs, within those unasked and the budget.

    `asked` counts all pairs sent, including those without a verdict. The dispersion is estimated
    from ties if given, else 1. Stops once the expected Kendall tau reaches `certain_at`, or at the
    budget.
    """
    sent = counts.completed + counts.waiting if asked is None else asked
    _check(counts, batch=batch, budget=budget, asked=sent, certain_at=certain_at)
    order = _canonical_order(counts.models, seed)
    league = counts.reordered(order)
    posterior = know_strengths(league)
    certainty = describe_certainty(league.models, posterior)

    stop, reason = _end(counts, certainty, budget=budget, asked=sent, certain_at=certain_at)
    allowed = batch if budget is None else min(batch, budget - sent)
    picked: list[tuple[int, int]] = []
    linking = 0
    if stop is None:
        picked, linking = _pick(league, posterior, number=min(allowed, counts.open), seed=seed)
    place = {name: index for index, name in enumerate(counts.models)}
    named = ((league.models[first], league.models[second]) for first, second in picked)
    return PairChoice(
        pairs=tuple((a, b) if place[a] < place[b] else (b, a) for a, b in named),
        linking=linking,
        stop=stop,
        reason=reason,
        certainty=certainty,
        asked=sent,
        budget=budget,
        batch=batch,
        certain_at=certain_at,
        seed=seed,
    )


def know_strengths(counts: PairCounts) -> StrengthPosterior:
    """The posterior of one league, as a stack of one."""
    scores = counts.scores[None]
    noise = np.ones(1)
    if counts.ties is not None:
        noise = tie_dispersion(scores, counts.ties[None].astype(np.float64))
    return fit_posterior(scores, dispersion=noise)


def _pick(
    league: PairCounts, posterior: StrengthPosterior, *, number: int, seed: int
) -> tuple[list[tuple[int, int]], int]:
    models = len(league.models)
    tie_break = np.random.default_rng(seed).random((models, models))
    asked = np.round(league.scores + league.scores.T).astype(np.int64) + league.in_flight
    links = choose_linking_pairs(asked, league.unasked, number=number, tie_break=tie_break)
    room = league.unasked.copy()
    in_flight = league.in_flight.astype(np.float64)
    for first, second in links:
        room[[first, second], [second, first]] -= 1
        in_flight[[first, second], [second, first]] += 1.0
    settling = choose_settling_pairs(
        posterior,
        room[None],
        number=number - len(links),
        in_flight=in_flight[None],
        tie_break=tie_break,
    )
    chosen = [(int(first), int(second)) for first, second in settling[0] if first >= 0]
    return links + chosen, len(links)


def _end(
    counts: PairCounts,
    certainty: RankCertainty,
    *,
    budget: int | None,
    asked: int,
    certain_at: float | None,
) -> tuple[StopReason | None, str | None]:
    tau = certainty.expected_tau
    if certain_at is not None and tau >= certain_at:
        return "certain", f"expected Kendall tau: {tau:.3f}; {certain_at:g} was requested"
    if budget is not None and asked >= budget:
        return "budget", f"all {budget} pairs of the budget are used"
    if counts.open == 0:
        return "exhausted", f"no pair is left after {asked}"
    return None, None


def _canonical_order(models: tuple[str, ...], seed: int) -> NDArray[np.int64]:
    """An order by names and seed, independent of the caller's order."""
    keys = [hashlib.sha256(f"{seed}\0{name}".encode()).digest() for name in models]
    return np.array(sorted(range(len(models)), key=keys.__getitem__), dtype=np.int64)


def _check(
    counts: PairCounts, *, batch: int, budget: int | None, asked: int, certain_at: float | None
) -> None:
    if batch < 1:
        raise InputError.of("stats.at_least", value=batch, name="batch", least=1)
    if budget is not None and budget < 0:
        raise InputError.of("stats.at_least", value=budget, name="budget", least=0)
    known = counts.completed + counts.waiting
    if asked < known:
        raise InputError.of("stats.asked_too_few", asked=asked, known=known)
    if certain_at is not None and not 0.0 < certain_at < 1.0:
        raise InputError.of("stats.share_outside", value=certain_at, name="certainty")
