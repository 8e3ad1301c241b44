"""May it go out? A run's win rates against a threshold: pass, fail, or not known yet."""

from __future__ import annotations

from typing import Literal

from evenhand.contract.model import Model
from evenhand.errors import InputError
from evenhand.report.conclusions import Conclusion, Conclusions, Side, Ties, conclude
from evenhand.store import Store

Ruling = Literal["pass", "fail", "undecided"]

_FEWEST_DIGITS, _MOST_DIGITS = 2, 6


class GateCheck(Model):
    """One judge on one two models. `line` says the ruling and why."""

    ruling: Ruling
    judge: str
    sides: str  # "new against old"
    model: str | None
    against: str | None
    rate: float | None
    low: float | None
    high: float | None
    always_valid: bool
    n: int
    prompts: int | None
    invalid: int
    pending: int
    line: str


class Gate(Model):
    """The whole fails if a check fails, and passes if all do. `reason` where there are none."""

    run: str
    store: str
    ruling: Ruling
    min_win_rate: float
    alpha: float
    level: float
    side: Side
    ties: Ties
    whole: bool
    stopped_by: str | None
    checks: tuple[GateCheck, ...]
    reason: str | None


def gate_run(
    store: Store,
    name: str,
    *,
    min_win_rate: float = 0.5,
    alpha: float = 0.05,
    side: Side = "B",
    ties: Ties = "half",
) -> Gate:
    """Whether the side's win rate is shown to lie above the threshold, at the level 1 - alpha."""
    _threshold(min_win_rate)
    # Where alpha is lost in 1 - alpha, so is the interval.
    if not 1e-9 <= alpha <= 1 - 1e-9:
        raise InputError(f"alpha is {alpha}; give a number between 0 and 1, such as 0.05")
    level = round(1 - alpha, 12)
    found = conclude(store, name, side=side, ties=ties, level=level, parts=False)
    return judge_gate(found, min_win_rate=min_win_rate)


def judge_gate(conclusions: Conclusions, *, min_win_rate: float = 0.5) -> Gate:
    """By the intervals of the conclusions. An end that lies on the threshold decides nothing."""
    _threshold(min_win_rate)
    several = len(conclusions.judges) > 1
    checks = tuple(
        _check(each, conclusions, min_win_rate, named=several) for each in conclusions.conclusions
    )
    return Gate(
        run=conclusions.run,
        store=conclusions.store,
        ruling=_whole([check.ruling for check in checks]),
        min_win_rate=min_win_rate,
        alpha=round(1 - conclusions.level, 12),
        level=conclusions.level,
        side=conclusions.side,
        ties=conclusions.ties,
        whole=conclusions.whole,
        stopped_by=conclusions.stopped_by,
        checks=checks,
        reason=None if checks else _nothing(conclusions),
    )


def _threshold(rate: float) -> None:
    if not 0 <= rate <= 1:
        raise InputError(f"the least win rate is {rate}; give a number from 0 to 1, such as 0.5")


def _whole(rulings: list[Ruling]) -> Ruling:
    if "fail" in rulings:
        return "fail"
    return "undecided" if "undecided" in rulings or not rulings else "pass"


def _nothing(conclusions: Conclusions) -> str:
    what = "no pairs" if conclusions.judges else "no judges"
    return f"not enough data: run {conclusions.run} has {what}"


def _check(
    found: Conclusion, conclusions: Conclusions, threshold: float, *, named: bool
) -> GateCheck:
    rate = found.win_rate
    ruling = _ruling(rate.low, rate.high, threshold)
    sides = " against ".join(found.names)
    who = f"{sides}, by {found.judge}" if named else sides
    return GateCheck(
        ruling=ruling,
        judge=found.judge,
        sides=sides,
        model=found.model,
        against=found.against,
        rate=rate.rate,
        low=rate.low,
        high=rate.high,
        always_valid=rate.always_valid,
        n=rate.n,
        prompts=rate.prompts,
        invalid=rate.counts.invalid,
        pending=found.pending,
        line=f"{who}: {_why(found, conclusions, ruling, threshold)}",
    )


def _ruling(low: float | None, high: float | None, threshold: float) -> Ruling:
    if low is None or high is None:
        return "undecided"
    if low > threshold:
        return "pass"
    return "fail" if high < threshold else "undecided"


def _why(found: Conclusion, conclusions: Conclusions, ruling: Ruling, threshold: float) -> str:
    rate = found.win_rate
    if rate.rate is None or rate.low is None or rate.high is None:
        why = rate.reason or "not enough data"
    else:
        told = _digits(threshold, rate.low, rate.high)
        kind = " always valid" if rate.always_valid else ""
        interval = f"{rate.low:.{told}f} to {rate.high:.{told}f}, {_percent(rate.level)}{kind}"
        place = {
            "pass": f"is above {threshold:g}",
            "fail": f"is below {threshold:g}",
            "undecided": f"does not tell it from {threshold:g}",
        }[ruling]
        why = f"win rate {rate.rate:.{told}f} ({interval}) {place}"
    return why + _caution(found, ruling, threshold) + _unfinished(found, conclusions)


def _caution(found: Conclusion, ruling: Ruling, threshold: float) -> str:
    """Invalid pairs are in no rate. Could they have turned it?"""
    worst, invalid = found.win_rate.worst_case, found.win_rate.counts.invalid
    if worst is None or ruling == _ruling(worst.low, worst.high, threshold):
        return ""
    if ruling == "undecided":
        return ""
    return f"; {invalid:,} invalid pair{'s' * (invalid != 1)} could change that"


def _unfinished(found: Conclusion, conclusions: Conclusions) -> str:
    if conclusions.whole:
        return ""
    if conclusions.stopped_by == "decided":
        return "; the run stopped once it was decided"
    return f"; the run is not finished ({found.pending:,} of {found.pairs:,} pairs pending)"


def _digits(threshold: float, *bounds: float) -> int:
    """As many as it takes that what is printed compares as what is meant."""

    def side(bound: float, limit: float) -> int:
        return (bound > limit) - (bound < limit)

    for digits in range(_FEWEST_DIGITS, _MOST_DIGITS):
        if all(side(round(each, digits), threshold) == side(each, threshold) for each in bounds):
            return digits
    return _MOST_DIGITS


def _percent(share: float) -> str:
    return f"{100 * share:.6g} %"
