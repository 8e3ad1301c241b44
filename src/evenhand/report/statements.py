"""A conclusion in words: what is claimed, how sure that is, how far the judge can be trusted."""

from __future__ import annotations

from collections.abc import Iterator

from evenhand.contract.model import Model
from evenhand.errors import InputError
from evenhand.messages import Message, message
from evenhand.report.side_rate import SideRate
from evenhand.stats.position import PositionBias
from evenhand.stats.win_rate import FEWEST_PAIRS, FEWEST_PROMPTS


class Limits(Model):
    """What a conclusion may leave uncounted before it counts against every claim.

    Shares of all pairs: invalid verdicts, and rows that were skipped or had no partner.
    `allow_one_order` is the caller's word that one fixed order will do. `smallest_effect` is the
    difference from one half that matters to the caller.
    """

    max_invalid: float = 0.01
    max_skipped: float = 0.01
    allow_one_order: bool = False
    smallest_effect: float | None = None

    def checked(self) -> Limits:
        for name in ("max_invalid", "max_skipped"):
            if not 0 <= getattr(self, name) <= 1:
                raise InputError(f"{name} is {getattr(self, name)}; give a share from 0 to 1")
        if self.smallest_effect is not None and not 0 < self.smallest_effect < 0.5:
            raise InputError(
                f"the smallest effect is {self.smallest_effect}; give a difference of win rates "
                "between 0 and 0.5, such as 0.02"
            )
        return self


def conclusion_messages(
    rate: SideRate,
    names: tuple[str, str],
    *,
    pairs: int,
    one_order: int,
    position: PositionBias,
    limits: Limits,
) -> Iterator[Message]:
    """What is claimed, from how many prompts, how sure, and how far the judge can be trusted."""
    called = {"model": names[0], "against": names[1]}
    both = rate.counts.valid - one_order
    hopeless = rate.low == 0 and rate.doubts[:1] == ("position",)
    low, high = rate.low, rate.high
    if rate.doubts and low is not None and high is not None and low <= 0.5 <= high:
        yield _doubt(rate, called, pairs=pairs, both=both, position=position)
    else:
        yield claim_message(rate, names)
        if limits.smallest_effect is not None and low is not None and high is not None:
            yield _effect(low, high, limits.smallest_effect)
    if one_order and limits.allow_one_order:
        yield message("trust.one_order", part=one_order, n=rate.counts.valid)
    if both and not hopeless:
        yield _trust(rate, position, pairs=both)


def claim_message(rate: SideRate, names: tuple[str, str]) -> Message:
    """Better, worse, or no difference shown; or why nothing can be said."""
    called = {"model": names[0], "against": names[1]}
    if rate.rate is None or rate.low is None or rate.high is None:
        if rate.n < FEWEST_PAIRS:
            return message("no_conclusion.few_pairs", **called, n=rate.n, needed=FEWEST_PAIRS)
        if rate.prompts is not None and rate.prompts < FEWEST_PROMPTS:
            few = {"n": rate.prompts, "needed": FEWEST_PROMPTS}
            return message("no_conclusion.few_prompts", **called, **few)
        return message("no_conclusion.few", **called)
    claim = "no_difference"
    if rate.low > 0.5 or rate.high < 0.5:
        claim = "better" if rate.low > 0.5 else "worse"
    prompts = rate.n if rate.prompts is None else rate.prompts
    return message(
        f"conclusion.{claim}", **called, rate=rate.rate, low=rate.low, high=rate.high, n=prompts
    )


def _doubt(
    rate: SideRate, called: dict[str, str], *, pairs: int, both: int, position: PositionBias
) -> Message:
    valid = rate.counts.valid
    match rate.doubts[0]:
        case "position":
            share = rate.flips / both if both else 0.0
            why = "flips" if position.favours is None else "position"
            return message(f"no_conclusion.{why}", **called, share=share, n=both)
        case "one_order":
            return message("no_conclusion.one_order", **called, part=rate.one_order, n=valid)
        case "ties":
            return message("no_conclusion.ties", **called, part=rate.decided, n=valid)
        case "pending":
            return message(
                "no_conclusion.pending", **called, part=pairs - valid - rate.counts.invalid, n=pairs
            )
        case _:
            missing = rate.missing
            return message("no_conclusion.missing", **called, part=missing, n=missing + valid)


def _trust(rate: SideRate, position: PositionBias, *, pairs: int) -> Message:
    if not rate.flips:
        return message("trust.steady", n=pairs)
    towards = "" if position.favours is None else f"_{position.favours}"
    return message(f"trust.flips{towards}", share=rate.flips / pairs, n=pairs)


def _effect(low: float, high: float, size: float) -> Message:
    code = "open"
    if low > 0.5 + size or high < 0.5 - size:
        code = "shown"
    elif low > 0.5 - size and high < 0.5 + size:
        code = "ruled_out"
    return message(f"effect.{code}", size=size)
