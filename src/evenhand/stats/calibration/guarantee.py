"""The confidence above which verdicts agree with people at least so often, with a guarantee."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenhand.contract.model import Model
from evenhand.errors import InputError
from evenhand.messages import Message, Sentence
from evenhand.stats.calibration.curves import right_or_wrong
from evenhand.stats.calibration.reliability import sums_by
from evenhand.stats.clusters import Labels, row_clusters
from evenhand.stats.columns import Floats, float_column
from evenhand.stats.distributions import beta_quantile, binomial_cdf, binomial_tail
from evenhand.stats.estimates import EstimatedShare, estimate_share
from evenhand.stats.outcomes import confidence_level, same_length

# The sequence starts with the surest third of the prompts and adds twentieths: fewer at the start
# fail too often by chance, more ask too much of a middling judge, and every step is another chance
# to fail.
FIRST_SHARE = 1 / 3
STEP_SHARE = 1 / 20


class ThresholdTest(Model):
    """`agreeing` of the `n` drawn verdicts at or above the threshold agree with their labels."""

    threshold: float
    n: int
    agreeing: int
    p_value: float
    passed: bool


class Guarantee(Model):
    """Verdicts at or above `threshold` passed the test of agreeing at least `target` often.

    Over repeated draws of labels, a threshold that falls short is granted in at most `error_level`
    of all draws, whatever the judge. Among granted ones more may be wrong: all of them for a judge
    that never reaches the target. `agreement` is the observed share above it, one row a prompt,
    with an interval that holds for any of the candidate `thresholds`. `coverage` is the share of
    labelled rows that it keeps. Without a threshold, `reason` says why.
    """

    target: float
    error_level: float
    threshold: float | None
    n: int
    prompts: int
    without_confidence: int
    agreement: EstimatedShare | None
    thresholds: int
    coverage: EstimatedShare | None
    tested: tuple[ThresholdTest, ...]
    level: float
    seed: int
    reason: Sentence | None

    def keeps(self, confidences: Sequence[float | None] | NDArray[Any]) -> NDArray[np.bool_]:
        """Which verdicts stand; the others abstain. None do without a threshold or confidence."""
        column = np.asarray(confidences, dtype=np.float64)
        if self.threshold is None:
            return np.zeros(column.shape, dtype=np.bool_)
        kept: NDArray[np.bool_] = column >= self.threshold
        return kept


class PromiseCheck(Model):
    """Whether labels contradict a promised agreement: of `n` standing verdicts, one a prompt,
    `agreeing` agree. `p_value` is the chance of so few or fewer if the promise held."""

    promised: float
    n: int
    agreeing: int
    p_value: float
    contradicted: bool


def check_promise(
    correct: Sequence[Any] | NDArray[Any],
    *,
    target: float,
    prompts: Labels | None = None,
    error_level: float = 0.05,
    seed: int = 0,
) -> PromiseCheck | None:
    """The exact one-sided binomial test of "agreement is at least the target", on labels that the
    guarantee was not learned from. One row of each prompt is drawn, as for the guarantee, for
    independence. None without rows."""
    _limits(target, error_level)
    right = right_or_wrong(correct)
    same_length(right.size, prompts=prompts)
    if not right.size:
        return None
    clusters, count, _ = row_clusters(prompts, np.ones(right.size, dtype=np.bool_))
    drawn = right[one_row_each(clusters, count, seed=seed)]
    agreeing = int(drawn.sum())
    p_value = binomial_cdf(agreeing, drawn.size, target)
    return PromiseCheck(
        promised=target,
        n=int(drawn.size),
        agreeing=agreeing,
        p_value=p_value,
        contradicted=p_value < error_level,
    )


def fewest_labels(target: float, *, error_level: float = 0.05) -> int:
    """With fewer labelled prompts nothing can be guaranteed, even if every verdict agrees."""
    _limits(target, error_level)
    return math.ceil(math.log(error_level) / math.log(target) - 1e-9)


def guarantee_agreement(
    confidences: Sequence[float | None] | NDArray[Any],
    correct: Sequence[Any] | NDArray[Any],
    *,
    target: float = 0.9,
    error_level: float = 0.05,
    prompts: Labels | None = None,
    level: float = 0.95,
    seed: int = 0,
) -> Guarantee:
    """The most lenient threshold, on labels that the calibration has not seen.

    Fixed-sequence testing (Angelopoulos et al. 2021): thresholds from strict to lenient, each by
    the exact binomial test of "agreement is below the target", up to the first that fails. One row
    of each prompt is drawn, for independence. Candidate thresholds depend on the confidences alone.
    """
    _limits(target, error_level)
    confidence_level(level)
    right = right_or_wrong(correct)
    stated = float_column(confidences, name="confidences", low=0, high=1, missing=True)
    same_length(right.size, confidences=stated, prompts=prompts)
    known = ~np.isnan(stated)
    clusters, count, independent = row_clusters(prompts, np.ones(right.size, dtype=np.bool_))
    drawn = one_row_each(clusters, count, seed=seed)
    drawn = drawn[known[drawn]]
    order = drawn[np.argsort(-stated[drawn], kind="stable")]
    sure, hits = stated[order], np.cumsum(right[order])
    fewest = fewest_labels(target, error_level=error_level)
    tested: list[ThresholdTest] = []
    ends = _ends(sure, fewest=fewest, prompts=count) if sure.size >= fewest else []
    for end, threshold in ends:
        agreeing = int(hits[end - 1])
        p_value = _binomial_p(agreeing, end, target)
        tested.append(
            ThresholdTest(
                threshold=threshold,
                n=end,
                agreeing=agreeing,
                p_value=p_value,
                passed=p_value <= error_level,
            )
        )
        if not tested[-1].passed:
            break
    best = next((test for test in reversed(tested) if test.passed), None)
    coverage = measured = None
    if best is not None:
        # Bonferroni's share of the error for each candidate threshold.
        measured = _exact_share(best.agreeing, best.n, error=(1 - level) / len(ends))
        kept = (known & (stated >= best.threshold)).astype(np.float64)
        coverage = estimate_share(
            sums_by(clusters, kept, count=count),
            sums_by(clusters, 1 - kept, count=count),
            independent=independent,
            level=level,
            unit="labelled verdict",
        )
    return Guarantee(
        target=target,
        error_level=error_level,
        threshold=best.threshold if best else None,
        n=right.size,
        prompts=count,
        without_confidence=int((~known).sum()),
        agreement=measured,
        thresholds=len(ends),
        coverage=coverage,
        tested=tuple(tested),
        level=level,
        seed=seed,
        reason=None
        if best
        else _reason(tested, sure.size, fewest=fewest, target=target, error_level=error_level),
    )


def one_row_each(clusters: NDArray[np.intp], count: int, *, seed: int) -> NDArray[np.intp]:
    """The number of one row of each prompt, uniformly drawn."""
    shuffled = np.random.default_rng(seed).permutation(clusters.size)
    chosen = np.zeros(count, dtype=np.intp)
    chosen[clusters[shuffled]] = shuffled
    return chosen


def _ends(sure: Floats, *, fewest: int, prompts: int) -> list[tuple[int, float]]:
    """How many of the drawn rows each candidate threshold keeps, from strict to lenient.

    Candidates depend on the confidences alone, never on the labels. Those with too few rows for the
    test ever to pass are left out.
    """
    ranks = np.arange(
        max(fewest, math.ceil(FIRST_SHARE * prompts)),
        sure.size + 1,
        max(1, round(STEP_SHARE * prompts)),
    )
    # The last step takes everyone.
    limits = np.unique(sure[np.append(ranks, sure.size) - 1])
    ends: dict[int, float] = {}
    for limit in limits.tolist():
        end = int(np.searchsorted(-sure, -limit, side="right"))
        if end >= fewest:
            # Of thresholds that keep the same rows, the strictest promises the least.
            ends[end] = limit
    return sorted(ends.items())


def _binomial_p(agreeing: int, of: int, target: float) -> float:
    """The chance of so many agreeing or more if the true share is the target."""
    return 1.0 if agreeing == 0 else binomial_tail(agreeing - 1, of, target)


def _exact_share(agreeing: int, of: int, *, error: float) -> EstimatedShare:
    """With Clopper and Pearson's (1934) two-sided interval."""
    wrong = of - agreeing
    return EstimatedShare(
        part=agreeing,
        of=of,
        value=agreeing / of,
        low=0.0 if agreeing == 0 else beta_quantile(agreeing, wrong + 1, error / 2),
        high=1.0 if wrong == 0 else beta_quantile(agreeing + 1, wrong, 1 - error / 2),
        reason=None,
    )


def _reason(
    tested: list[ThresholdTest], have: int, *, fewest: int, target: float, error_level: float
) -> str:
    terms = {"target": target, "error_level": error_level}
    if not tested:
        return Message("stats.few_for_guarantee", have=have, fewest=fewest, **terms)
    first = tested[0]
    needed = _fewest_agreeing(first.n, target, error_level)
    return Message("stats.no_guarantee", n=first.n, agreeing=first.agreeing, needed=needed, **terms)


def _fewest_agreeing(of: int, target: float, error_level: float) -> int:
    enough = (
        agreeing
        for agreeing in range(math.floor(target * of), of)
        if _binomial_p(agreeing, of, target) <= error_level
    )
    return next(enough, of)


def _limits(target: float, error_level: float) -> None:
    if not 0 < target < 1:
        raise InputError.of("stats.share_outside", value=target, name="min-agreement")
    if not 0 < error_level < 1:
        raise InputError.of("stats.share_outside", value=error_level, name="error-level")
