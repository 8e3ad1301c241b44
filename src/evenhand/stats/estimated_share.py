"""A share of pairs with its interval, clustered by prompt where prompts repeat, or a reason."""

from __future__ import annotations

from evenhand.contract.model import Model
from evenhand.stats.clusters import Floats, normal_quantile, score_spread, student_quantile
from evenhand.stats.score_interval import score_interval
from evenhand.stats.win_rate import FEWEST_PAIRS, FEWEST_PROMPTS, not_enough


class EstimatedShare(Model):
    """`part` of `of` pairs, with its interval or the reason why there is none."""

    part: int
    of: int
    value: float | None
    low: float | None
    high: float | None
    reason: str | None


def estimate_share(
    part: Floats, rest: Floats, *, independent: bool, level: float, unit: str
) -> EstimatedShare:
    """From each prompt's counts of the part and of the rest."""
    some, others = float(part.sum()), float(rest.sum())
    interval = None
    reason = _too_few(part + rest, independent=independent, unit=unit)
    if reason is None:
        effect, critical = 1.0, normal_quantile(level)
        if not independent:
            present = part + rest > 0
            spread = score_spread(part[present], 0 * part[present], rest[present])
            # Counts are divided by the design effect, as Korn and Graubard (1998) do.
            effect = spread.design_effect
            critical = student_quantile(level, spread.degrees)
        interval = score_interval(some / effect, 0.0, others / effect, critical=critical)
    return EstimatedShare(
        part=int(some),
        of=int(some + others),
        value=some / (some + others) if interval else None,
        low=interval[0] if interval else None,
        high=interval[1] if interval else None,
        reason=reason,
    )


def _too_few(sizes: Floats, *, independent: bool, unit: str) -> str | None:
    """Prompts count by Kish's number (1965): a few large ones among many small are few."""
    total = float(sizes.sum())
    if total < FEWEST_PAIRS:
        return not_enough(int(total), unit, FEWEST_PAIRS)
    prompts = int((sizes > 0).sum())
    if independent:
        return None
    if prompts < FEWEST_PROMPTS:
        return not_enough(prompts, "prompt", FEWEST_PROMPTS)
    effective = total * total / float(sizes @ sizes)
    if effective < FEWEST_PROMPTS:
        return not_enough(int(effective), "effective prompt", FEWEST_PROMPTS)
    return None
