"""A run's win rates against a threshold: pass, fail or undecided; as values and as JUnit XML."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias
from xml.etree import ElementTree as ET

from evenhand.contract.model import Model
from evenhand.errors import InputError
from evenhand.judges.families import OwnFamilies
from evenhand.messages import Message, Sentence, chained
from evenhand.report.charts.labels import plain
from evenhand.report.claims import EVERY_RULING, Hold, contradiction
from evenhand.report.conclusions import (
    Conclusion,
    ConclusionLimits,
    Conclusions,
    Side,
    Ties,
    conclude,
)
from evenhand.stats.rates.win_rate import Doubt, Missing, WorstCase
from evenhand.store import Store

Ruling = Literal["pass", "fail", "undecided"]

_FEWEST_DIGITS, _MOST_DIGITS = 2, 6


class GateCheck(Model):
    """One judge on one two models. `line` says the ruling and why, `sentence` what is concluded."""

    ruling: Ruling
    judge: str
    sides: str  # "new against old"
    model: str | None
    against: str | None
    rate: float | None
    low: float | None
    high: float | None
    always_valid: bool
    corrected: bool = False  # by people's labels
    n: int
    prompts: int | None
    wins: int
    losses: int
    ties: int
    inconsistent: int
    invalid: int
    flips: int  # pairs whose orders chose differently, also where they were averaged
    skipped: int
    left_out: int = 0  # prompts that one of the two did not answer, by --prompts common
    pending: int
    worst_case: WorstCase | None
    doubts: tuple[Doubt, ...]
    holds: tuple[Hold, ...] = ()  # each of which keeps it from a ruling
    sentence: str
    line: Sentence


class GateReport(Model):
    """The whole fails if a check fails, and passes if all do. `reason` where there are none."""

    run: str
    store: str
    ruling: Ruling
    min_win_rate: float
    alpha: float
    level: float
    side: Side
    ties: Ties
    limits: ConclusionLimits
    max_inconsistent: float | None
    whole: bool
    stopped_by: str | None
    checks: tuple[GateCheck, ...]
    reason: Sentence | None


def gate_run(
    store: Store,
    name: str,
    *,
    min_win_rate: float = 0.5,
    alpha: float = 0.05,
    side: Side = "B",
    ties: Ties = "half",
    limits: ConclusionLimits | None = None,
    max_inconsistent: float | None = None,
    families: OwnFamilies = (),
) -> GateReport:
    """Whether the side's win rate is shown to lie above the threshold, at the level 1 - alpha."""
    _threshold(min_win_rate)
    # Where alpha is lost in 1 - alpha, so is the interval.
    if not 1e-9 <= alpha <= 1 - 1e-9:
        raise InputError(Message("report.alpha_outside", alpha=alpha))
    level = round(1 - alpha, 12)
    allowed = limits or ConclusionLimits()
    conclusions = conclude(
        store,
        name,
        side=side,
        ties=ties,
        level=level,
        parts=False,
        limits=allowed,
        families=families,
    )
    return judge_gate(
        conclusions, min_win_rate=min_win_rate, limits=allowed, max_inconsistent=max_inconsistent
    )


def judge_gate(
    conclusions: Conclusions,
    *,
    min_win_rate: float = 0.5,
    limits: ConclusionLimits | None = None,
    max_inconsistent: float | None = None,
) -> GateReport:
    """By the intervals of the conclusions. An end that lies on the threshold decides nothing."""
    _threshold(min_win_rate)
    if max_inconsistent is not None and not 0 <= max_inconsistent <= 1:
        raise InputError(
            Message("report.max_inconsistent_outside", max_inconsistent=max_inconsistent)
        )
    allowed = limits or ConclusionLimits()
    rule = _Rule(conclusions, GateOptions(min_win_rate, max_inconsistent, allowed.missing))
    checks = tuple(rule.check(each) for each in conclusions.conclusions)
    return GateReport.of_parts(
        conclusions,
        ruling=_whole([check.ruling for check in checks]),
        min_win_rate=min_win_rate,
        alpha=round(1 - conclusions.level, 12),
        limits=allowed,
        max_inconsistent=max_inconsistent,
        checks=checks,
        reason=None if checks else _nothing(conclusions),
    )


def _threshold(rate: float) -> None:
    if not 0 <= rate <= 1:
        raise InputError(Message("report.min_win_rate_outside", rate=rate))


def _whole(rulings: list[Ruling]) -> Ruling:
    if "fail" in rulings:
        return "fail"
    return "undecided" if "undecided" in rulings or not rulings else "pass"


def _nothing(conclusions: Conclusions) -> Message:
    return Message(f"gate.no_{'pairs' if conclusions.judges else 'judges'}", run=conclusions.run)


@dataclass(frozen=True, slots=True)
class GateOptions:
    threshold: float
    max_inconsistent: float | None = None
    missing: Missing = "against"


GateReason: TypeAlias = Callable[[Conclusion, GateOptions], Hold | None]


def _too_inconsistent(conclusion: Conclusion, options: GateOptions) -> Hold | None:
    rate, most = conclusion.win_rate, options.max_inconsistent
    flips, twice = rate.flips, rate.counts.valid - rate.drawn_order - conclusion.identical
    if most is None or not twice or flips <= most * twice or conclusion.by_people:
        return None
    line = Message("gate.too_inconsistent", flips=flips, n=twice, percent=100 * most)
    return Hold(code="inconsistent", blocks=EVERY_RULING, line=line)


def _people_say_otherwise(conclusion: Conclusion, options: GateOptions) -> Hold | None:
    """At other thresholds than one half, which is the conclusion's own matter."""
    claimed, threshold = conclusion.claimed, options.threshold
    ruling = _ruling(claimed.low, claimed.high, threshold)
    if ruling == "undecided" or threshold == 0.5:
        return None
    claim: Literal["above", "below"] = "above" if ruling == "pass" else "below"
    return contradiction(conclusion, claim, threshold, blocks=(ruling,))


GATE_REASONS: tuple[GateReason, ...] = (
    _too_inconsistent,
    _people_say_otherwise,
)


class _Rule:
    def __init__(self, conclusions: Conclusions, options: GateOptions) -> None:
        self._of = conclusions
        self._options = options

    def check(self, conclusion: Conclusion) -> GateCheck:
        rate, counts, claimed = conclusion.win_rate, conclusion.win_rate.counts, conclusion.claimed
        by_rate = _ruling(claimed.low, claimed.high, self._options.threshold)
        holds = self._holds(conclusion)
        ruling: Ruling = "undecided" if self._blocks(holds, by_rate) else by_rate
        sides = " against ".join(conclusion.names)
        values = {"sides": sides, "why": self._why(conclusion, by_rate)}
        if len(self._of.judges) > 1:
            why = Message("gate.by_judge", judge=conclusion.judge, **values)
        else:
            why = Message("gate.sides", **values)
        wins, losses = counts.wins_a, counts.wins_b
        if conclusion.side == "B":
            wins, losses = losses, wins
        return GateCheck(
            ruling=ruling,
            judge=conclusion.judge,
            sides=sides,
            model=conclusion.model,
            against=conclusion.against,
            rate=claimed.rate,
            low=claimed.low,
            high=claimed.high,
            always_valid=claimed.always_valid,
            corrected=claimed.estimator == "corrected",
            n=rate.n,
            prompts=rate.prompts,
            wins=wins,
            losses=losses,
            ties=counts.ties,
            inconsistent=counts.inconsistent,
            invalid=counts.invalid,
            flips=rate.flips,
            skipped=conclusion.skipped,
            left_out=conclusion.left_out,
            pending=conclusion.pending,
            worst_case=None if conclusion.by_people else rate.worst_case,
            doubts=() if conclusion.by_people else rate.doubts,
            holds=holds,
            sentence=conclusion.sentence,
            line=chained([why, *(each.line for each in holds), *self._facts(conclusion, ruling)]),
        )

    def _holds(self, conclusion: Conclusion) -> tuple[Hold, ...]:
        """Those that keep this gate from a ruling it could come to: a claim against one half is
        the matter of gates at one half alone."""
        own = (reason(conclusion, self._options) for reason in GATE_REASONS)
        holds = (*(each for each in own if each is not None), *conclusion.holds)
        at_half = self._options.threshold == 0.5
        return tuple(
            each
            for each in holds
            if {"pass", "fail"} & set(each.blocks) or (at_half and "claim" in each.blocks)
        )

    def _blocks(self, holds: tuple[Hold, ...], ruling: Ruling) -> bool:
        at_half = self._options.threshold == 0.5
        return any(ruling in each.blocks or (at_half and "claim" in each.blocks) for each in holds)

    def _why(self, conclusion: Conclusion, ruling: Ruling) -> str:
        claimed, threshold = conclusion.claimed, self._options.threshold
        if claimed.rate is None or claimed.low is None or claimed.high is None:
            return claimed.reason or Message("gate.not_enough_data")
        digits = _digits(threshold, claimed.low, claimed.high)
        bounds = {"low": f"{claimed.low:.{digits}f}", "high": f"{claimed.high:.{digits}f}"}
        kind = "always_valid" if claimed.always_valid else "interval"
        return Message(
            f"gate.{ruling}",
            rate=f"{claimed.rate:.{digits}f}",
            interval=Message(f"gate.{kind}", percent=100 * claimed.level, **bounds),
            threshold=threshold,
        )

    def _facts(self, conclusion: Conclusion, ruling: Ruling) -> Iterator[Message]:
        """All four outcomes, what is missing, and what that could change. That position or ties may
        decide is told where they did: a ruling holds for all that is in doubt."""
        rate = conclusion.win_rate
        for doubt in () if conclusion.by_people else rate.doubts:
            if ruling != "undecided" and doubt in ("position", "ties"):
                continue
            if doubt == "position" and rate.mostly_flips:  # which a hold says with its counts
                continue
            both = rate.counts.valid - rate.one_order - rate.drawn_order - conclusion.identical
            counted = {"one_order": rate.one_order, "decided": rate.decided, "both": both}
            yield Message(f"gate.doubt_{doubt}", **counted)
        counts = rate.counts
        wins, losses = counts.wins_a, counts.wins_b
        if conclusion.side == "B":
            wins, losses = losses, wins
        averaged = rate.flips - counts.inconsistent
        yield Message(
            "gate.outcomes_averaged" if averaged > 0 else "gate.outcomes",
            wins=wins,
            losses=losses,
            ties=counts.ties,
            inconsistent=counts.inconsistent,
            averaged=averaged,
            invalid=counts.invalid,
        )
        if (people := conclusion.claimed.people) is not None:
            yield Message("gate.people", **people.model_dump(by_alias=False))
        if conclusion.skipped:
            yield Message("gate.skipped", n=conclusion.skipped)
        if conclusion.left_out:
            yield Message("gate.common_prompts", n=conclusion.left_out)
        if self._options.missing == "half" and (counts.invalid or conclusion.skipped):
            yield Message("gate.missing_half")
        if rate.worst_case is not None and not conclusion.by_people:
            worst = rate.worst_case
            yield Message("gate.worst_case", low=worst.low, high=worst.high)
        if self._of.whole:
            return
        if self._of.stopped_by == "decided":
            yield Message("gate.decided")
        else:
            yield Message("gate.not_finished", pending=conclusion.pending, n=conclusion.pairs)


def _ruling(low: float | None, high: float | None, threshold: float) -> Ruling:
    if low is None or high is None:
        return "undecided"
    if low > threshold:
        return "pass"
    return "fail" if high < threshold else "undecided"


def _digits(threshold: float, *bounds: float) -> int:
    """As many as it takes that what is printed compares as what is meant."""

    def side(bound: float, limit: float) -> int:
        return (bound > limit) - (bound < limit)

    for digits in range(_FEWEST_DIGITS, _MOST_DIGITS):
        if all(side(round(each, digits), threshold) == side(each, threshold) for each in bounds):
            return digits
    return _MOST_DIGITS


# A gate as JUnit XML, the form in which build servers show tests.


def write_junit(gate: GateReport, path: Path) -> None:
    """Over a file that is there already, as test runners do."""
    try:
        path.write_bytes(junit_xml(gate))
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise InputError(Message("report.write_failed", path=path, lower=reason.lower())) from None


def junit_xml(gate: GateReport) -> bytes:
    """One test for each judge and model pair. `fail` is a failure of the type "fail"; `undecided`
    an error of the type "undecided", as of a test that could not tell."""
    failures = sum(check.ruling == "fail" for check in gate.checks)
    errors = sum(check.ruling == "undecided" for check in gate.checks) + (not gate.checks)
    counts = {
        "tests": str(max(1, len(gate.checks))),
        "failures": str(failures),
        "errors": str(errors),
        "skipped": "0",
    }
    name = plain(f"evenhand gate {gate.run}")
    root = ET.Element("testsuites", {"name": "evenhand gate", **counts})
    suite = ET.SubElement(root, "testsuite", {"name": name, **counts, "time": "0"})
    settings = ET.SubElement(suite, "properties")
    for key, value in (
        ("minWinRate", f"{gate.min_win_rate:g}"),
        ("alpha", f"{gate.alpha:g}"),
        ("side", gate.side),
        ("ties", gate.ties),
    ):
        ET.SubElement(settings, "property", {"name": key, "value": value})
    for check in gate.checks:
        _add_test(suite, check, of=name)
    if not gate.checks:
        case = ET.SubElement(
            suite, "testcase", {"classname": name, "name": plain(gate.run), "time": "0"}
        )
        reason = plain(gate.reason or "")
        ET.SubElement(case, "error", {"type": "undecided", "message": reason}).text = reason
    ET.indent(root)
    whole: bytes = ET.tostring(root, encoding="utf-8", xml_declaration=True)
    return whole + b"\n"


def _add_test(suite: ET.Element, check: GateCheck, *, of: str) -> None:
    case = ET.SubElement(
        suite,
        "testcase",
        {"classname": of, "name": plain(f"{check.sides}, by {check.judge}"), "time": "0"},
    )
    line = plain(check.line)
    if check.ruling == "pass":
        ET.SubElement(case, "system-out").text = line
    else:
        kind = "failure" if check.ruling == "fail" else "error"
        ET.SubElement(case, kind, {"type": check.ruling, "message": line}).text = line
