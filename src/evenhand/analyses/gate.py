"""A run's win rates against a threshold: pass, fail or undecided; what it says, and JUnit XML."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any, Literal, TypeAlias
from xml.etree import ElementTree as ET

import numpy as np

from evenhand.analyses.registry import AnalysisSubject
from evenhand.analysis_options import GateOptions
from evenhand.blocks import Block, Next, Ruled, Ruling
from evenhand.blocks import Sentence as Line
from evenhand.contract.model import Model
from evenhand.errors import InputError, Status
from evenhand.judge_kinds import is_replayed
from evenhand.judges.families import OwnFamilies
from evenhand.messages import Message, Sentence, chained, joined
from evenhand.messages.numbers import decimal
from evenhand.report.claims import EVERY_RULING, ClaimedRate, Hold, contradiction, figures, settled
from evenhand.report.conclusions import (
    Conclusion,
    ConclusionLimits,
    Conclusions,
    GroupRate,
    Side,
    Ties,
    conclude,
)
from evenhand.report.files import atomic_file, plain
from evenhand.report.requirements import OVERALL, Requirement, known_parts, read_requirements
from evenhand.report.win_rates import RateOptions, SideRate, side_rate
from evenhand.stats.rates.break_even import BreakEven, break_even, rounded_up
from evenhand.stats.rates.win_rate import Doubt, WorstCase
from evenhand.store import Store

_STATUS: dict[Ruling, int] = {
    "pass": Status.OK,
    "fail": Status.GATE_FAILED,
    "undecided": Status.UNDECIDED,
}


class GateCheck(Model):
    """One judge on one two models. `line` says the ruling and why, `sentence` what is concluded."""

    ruling: Ruling
    judge: str
    requirement: str = "overall>0.5"
    sides: Sentence  # "new vs old"
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
    break_even: BreakEven | None = None  # what accuracy the ruling, or the nearer one, needs
    sentence: Sentence
    line: Sentence


class GateReport(Model):
    """The whole fails if a check fails, and passes if all do. `reason` where there are none."""

    run: str
    store: str
    ruling: Ruling
    min_win_rate: float | None  # of the overall rate, where one is required
    require: tuple[str, ...] = ()
    assume_accuracy: float | None = None
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


Result = GateReport


def check(options: GateOptions) -> None:
    """Refuse what does not go together, or is no share."""
    if options.require and options.min_win_rate is not None:
        raise InputError(Message("gate.require_or_rate"))
    if options.corrected and options.ties != "half":
        raise InputError(Message("trust.corrected_ties_are_half", ties=options.ties))
    rate, most, accuracy = options.min_win_rate, options.max_inconsistent, options.assume_accuracy
    if rate is not None and not 0 <= rate <= 1:
        raise InputError(Message("report.min_win_rate_outside", rate=rate))
    if most is not None and not 0 <= most <= 1:
        raise InputError(Message("report.max_inconsistent_outside", max_inconsistent=most))
    if accuracy is not None and not 0.5 < accuracy <= 1:
        raise InputError(Message("gate.accuracy_outside", accuracy=accuracy))
    # Where alpha is lost in 1 - alpha, so is the interval.
    if options.alpha is not None and not 1e-9 <= options.alpha <= 1 - 1e-9:
        raise InputError(Message("report.alpha_outside", alpha=options.alpha))
    read_requirements(options.require)


def compute(subject: AnalysisSubject, options: GateOptions) -> GateReport:
    return gate_run(
        subject.store,
        subject.run.name,
        configured(options, subject.settings.gate),
        families=subject.settings.families,
    )


def configured(options: GateOptions, settings: GateOptions) -> GateOptions:
    """What is not given is as [gate] of the config file says; its requirements and its least win
    rate are one choice."""
    set_up = asdict(settings)
    if options.require or options.min_win_rate is not None:
        set_up |= {"require": (), "min_win_rate": None}
    return options.over(set_up)


def gate_run(
    store: Store,
    name: str,
    options: GateOptions | None = None,
    *,
    families: OwnFamilies = (),
) -> GateReport:
    """Whether the side's win rate is shown to lie above the threshold, at the level 1 - alpha; or,
    by `require`, each of several, of criteria and tags too."""
    options = options or GateOptions()
    check(options)
    alpha = 0.05 if options.alpha is None else options.alpha
    conclusions = conclude(
        store,
        name,
        side=options.side,
        ties=options.ties,
        level=round(1 - alpha, 12),
        parts=any(each.kind != "overall" for each in required_by(options)),
        limits=ConclusionLimits.of(options, require_labels=options.corrected),
        families=families,
    )
    return judge_gate(conclusions, options)


def required_by(options: GateOptions) -> tuple[Requirement, ...]:
    return read_requirements(options.require, options.min_win_rate)


def judge_gate(conclusions: Conclusions, options: GateOptions | None = None) -> GateReport:
    """By the intervals of the conclusions. An end that lies on the threshold decides nothing,
    unless "at least" is asked."""
    options = options or GateOptions()
    check(options)
    required = required_by(options)
    parts = {kind: _names_of(conclusions, kind) for kind in ("criterion", "tag")}
    if conclusions.conclusions:
        known_parts(required, criteria=parts["criterion"], tags=parts["tag"])
    checks = tuple(
        _Rule(conclusions, options, each).check(conclusion)
        for conclusion in conclusions.conclusions
        for each in required
    )
    overall = [each.rate for each in required if each.kind == "overall"]
    return GateReport.of_parts(
        conclusions,
        ruling=_whole([check.ruling for check in checks]),
        min_win_rate=overall[0] if overall else None,
        require=tuple(str(each) for each in required),
        alpha=round(1 - conclusions.level, 12),
        limits=ConclusionLimits.of(options, require_labels=options.corrected),
        max_inconsistent=options.max_inconsistent,
        assume_accuracy=options.assume_accuracy,
        checks=checks,
        reason=None if checks else _nothing(conclusions),
    )


def _names_of(conclusions: Conclusions, kind: str) -> list[str]:
    names = {each.name for one in conclusions.conclusions for each in _groups(one, kind)}
    return sorted(names)


def _groups(conclusion: Conclusion, kind: str) -> tuple[GroupRate, ...]:
    return conclusion.by_tag if kind == "tag" else conclusion.by_criterion


def _whole(rulings: list[Ruling]) -> Ruling:
    if "fail" in rulings:
        return "fail"
    return "undecided" if "undecided" in rulings or not rulings else "pass"


def _nothing(conclusions: Conclusions) -> Message:
    return Message(f"gate.no_{'pairs' if conclusions.judges else 'judges'}", run=conclusions.run)


GateReason: TypeAlias = Callable[[Conclusion, GateOptions, Requirement], Hold | None]


def _too_inconsistent(
    conclusion: Conclusion, options: GateOptions, required: Requirement
) -> Hold | None:
    rate, most = conclusion.win_rate, options.max_inconsistent
    flips, twice = rate.flips, rate.counts.valid - rate.drawn_order - conclusion.identical
    if most is None or not twice or flips <= most * twice or conclusion.by_people:
        return None
    line = Message("gate.too_inconsistent", flips=flips, n=twice, percent=100 * most)
    return Hold(code="inconsistent", blocks=EVERY_RULING, line=line)


def _people_say_otherwise(
    conclusion: Conclusion, options: GateOptions, required: Requirement
) -> Hold | None:
    """At other thresholds than one half, which is the conclusion's own matter."""
    claimed, threshold = conclusion.claimed, required.rate
    ruling = _ruling(claimed.low, claimed.high, required)
    if ruling == "undecided" or threshold == 0.5 or required.kind == "criterion":
        return None  # people say nothing of single criteria
    claim: Literal["above", "below"] = "above" if ruling == "pass" else "below"
    return contradiction(conclusion, claim, threshold, blocks=(ruling,))


def _accuracy_unknown(
    conclusion: Conclusion, options: GateOptions, required: Requirement
) -> Hold | None:
    """A claim on the far side of one half, that new is not much worse, say, holds by every judge
    that cannot tell: it needs to be known how often this one is right."""
    needed, ruling = _needed_accuracy(conclusion, required)
    if needed is None or needed <= 0.5:
        return None
    labels, known = conclusion.labels, options.assume_accuracy
    if known is None and labels is not None:
        known = labels.low
    if known is not None and known >= needed:
        return None
    values = {"needed": rounded_up(needed), "threshold": required.rate}
    if options.assume_accuracy is not None:
        line = Message("gate.accuracy_assumed_low", assumed=options.assume_accuracy, **values)
    elif labels is not None:
        line = Message("gate.accuracy_labels_low", low=labels.low, **values)
    else:
        line = Message("gate.accuracy_unknown", **values)
    remedy = Message("gate.next_accuracy")
    return Hold(code="accuracy", blocks=(ruling,), line=line, remedy=remedy)


def _needed_accuracy(
    conclusion: Conclusion, required: Requirement
) -> tuple[float | None, Literal["pass", "fail"]]:
    """Of a judge whose errors favour neither side, for the ruling that the interval comes to."""
    claimed = conclusion.claimed
    ruling = _ruling(claimed.low, claimed.high, required)
    if claimed.estimator != "judge" or ruling == "undecided":
        return None, "pass"
    found = _break_even(conclusion, required, ruling)
    return None if found is None else found.balanced, ruling


GATE_REASONS: tuple[GateReason, ...] = (
    _too_inconsistent,
    _people_say_otherwise,
    _accuracy_unknown,
)


def _break_even(conclusion: Conclusion, required: Requirement, ruling: Ruling) -> BreakEven | None:
    """Of the ruling, or where there is none of the one that the rate is nearer to."""
    rate, limit, topics = conclusion.win_rate, required.rate, conclusion.topics
    low, high, decided = rate.half_low, rate.half_high, rate.decided_share
    if rate.rate is None or low is None or high is None:
        return None
    if topics is not None and conclusion.claimed.topics is not None:
        low, high = topics.over_topics(rate.rate, low, high)
    coin = decided / 2 if rate.ties == "wins" else 0.5
    if ruling == "fail" or (ruling == "undecided" and rate.rate < limit):
        low, limit, coin = 1 - high, 1 - limit, 1 - coin
    return break_even(low, limit, decided_share=decided, coin=coin)


class _Rule:
    """One requirement, on each conclusion."""

    def __init__(
        self, conclusions: Conclusions, options: GateOptions, required: Requirement
    ) -> None:
        self._of = conclusions
        self._options = options
        self._limits = ConclusionLimits.of(options, require_labels=options.corrected)
        self._several = len(required_by(options)) > 1
        self._required = required

    def check(self, conclusion: Conclusion) -> GateCheck:
        """Of the whole, or of the part that is required."""
        if self._required.kind == "overall":
            return self._check(conclusion)
        groups = _groups(conclusion, self._required.kind)
        part = next((each for each in groups if each.name == self._required.part), None)
        part = part or GroupRate(name=self._required.part, rate=self._of_nothing())
        both = part.rate.counts.valid - part.rate.one_order - part.rate.drawn_order
        own: dict[str, Any] = {
            "win_rate": part.rate,
            "claimed": part.claimed or ClaimedRate.of(part.rate),
            "topics": part.topics,
            "accuracy": None,
            "both_orders": both - part.identical,
            "identical": part.identical,
            "skipped": part.skipped,
        }
        if part.labelled is not None or self._required.kind == "tag":
            own["labelled"] = part.labelled
        return self._check(settled(conclusion.model_copy(update=own), self._limits))

    def _of_nothing(self) -> SideRate:
        """Of a part that no pair of the two models has."""
        wanted = RateOptions(self._of.side, self._of.ties, self._of.level, planned=True)
        return side_rate(np.zeros(0, dtype=np.int8), np.zeros(0, dtype=np.int64), wanted)

    def _check(self, conclusion: Conclusion) -> GateCheck:
        rate, counts, claimed = conclusion.win_rate, conclusion.win_rate.counts, conclusion.claimed
        by_rate = _ruling(claimed.low, claimed.high, self._required)
        holds = self._holds(conclusion)
        ruling: Ruling = "undecided" if self._blocks(holds, by_rate) else by_rate
        model, against = conclusion.names
        sides = Message("gate.versus", model=model, against=against)
        values = {"sides": sides, "why": self._why(conclusion, by_rate)}
        if len(self._of.judges) > 1:
            why = Message("gate.by_judge", judge=conclusion.judge, **values)
        else:
            why = Message("gate.sides", **values)
        if self._several or self._required.kind != "overall":
            why = Message("gate.requirement", requirement=str(self._required), why=why)
        wins, losses = rate.won_and_lost
        even = None
        if claimed.estimator == "judge" and claimed.rate is not None:
            even = _break_even(conclusion, self._required, by_rate)
        return GateCheck(
            ruling=ruling,
            judge=conclusion.judge,
            requirement=str(self._required),
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
            break_even=even,
            sentence=self._sentence(conclusion, ruling),
            line=chained(
                [
                    why,
                    *(each.line for each in holds),
                    *self._facts(conclusion, ruling),
                    *self._even(conclusion, even, by_rate, held=ruling != by_rate),
                ]
            ),
        )

    def _even(
        self, conclusion: Conclusion, even: BreakEven | None, by_rate: Ruling, *, held: bool
    ) -> Iterator[Message]:
        """How often the judge has to be right for it."""
        if even is None:
            return
        if even.balanced is None or even.one_sided is None:
            yield Message("gate.break_even_none")
            return
        model, against = conclusion.names
        favoured = against if by_rate == "fail" else model
        values = {"favoured": favoured, "one_sided": rounded_up(even.one_sided)}
        if even.balanced <= 0.5:
            yield Message(f"gate.break_even_coin{'_held' if held else ''}", **values)
        else:
            yield Message("gate.break_even", balanced=rounded_up(even.balanced), **values)
        if self._options.assume_accuracy is not None:
            yield Message("gate.accuracy_assumed", assumed=self._options.assume_accuracy)

    def _sentence(self, conclusion: Conclusion, ruling: Ruling) -> str:
        """What is concluded; where that is nothing, and this threshold is ruled on all the same,
        what the ruling says."""
        if not conclusion.messages:
            return ""
        first, *rest = conclusion.messages
        if ruling != "undecided" and first.code.startswith("no_conclusion."):
            model, against = conclusion.names
            first = Message(
                f"conclusion.{'above' if ruling == 'pass' else 'below'}",
                model=model,
                against=against,
                threshold=self._required.rate,
                **figures(conclusion),
            )
        if self._required.kind != "overall":
            first = Message("gate.requirement", requirement=self._required.name, why=first)
        return joined([first, *rest])

    def _holds(self, conclusion: Conclusion) -> tuple[Hold, ...]:
        """Those that keep this gate from a ruling it could come to: a claim against one half is
        the matter of gates at one half alone."""
        own = (reason(conclusion, self._options, self._required) for reason in GATE_REASONS)
        holds = (*(each for each in own if each is not None), *conclusion.holds)
        at_half = self._required.rate == 0.5
        return tuple(
            each
            for each in holds
            if {"pass", "fail"} & set(each.blocks) or (at_half and "claim" in each.blocks)
        )

    def _blocks(self, holds: tuple[Hold, ...], ruling: Ruling) -> bool:
        at_half = self._required.rate == 0.5
        return any(ruling in each.blocks or (at_half and "claim" in each.blocks) for each in holds)

    def _why(self, conclusion: Conclusion, ruling: Ruling) -> str:
        claimed, threshold = conclusion.claimed, self._required.rate
        if claimed.rate is None or claimed.low is None or claimed.high is None:
            return claimed.reason or Message("gate.not_enough_data")
        bounds = {
            "low": decimal(claimed.low, threshold),
            "high": decimal(claimed.high, threshold),
        }
        kind = "always_valid" if claimed.always_valid else "interval"
        return Message(
            f"gate.{ruling}",
            rate=decimal(claimed.rate, threshold),
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
            counted = {"one_order": rate.one_order, "decided": rate.decided}
            counted["both"] = conclusion.both_orders
            yield Message(f"gate.doubt_{doubt}", **counted)
        counts = rate.counts
        wins, losses = rate.won_and_lost
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
        if self._limits.missing == "half" and (counts.invalid or conclusion.skipped):
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


def _ruling(low: float | None, high: float | None, required: Requirement) -> Ruling:
    if low is None or high is None:
        return "undecided"
    if low > required.rate or (required.at_least and low == required.rate):
        return "pass"
    return "fail" if high < required.rate else "undecided"


def status(result: GateReport) -> int:
    return _STATUS[result.ruling]


def blocks(result: GateReport) -> Iterator[Block]:
    """What each judge concludes, then a ruling a line, and what would settle it."""
    several = len({check.judge for check in result.checks}) > 1
    # Of the whole; of parts where nothing else is required. Each of them has its line below.
    whole = [each for each in result.checks if each.requirement.startswith(f"{OVERALL}>")]
    concluded = ((each.judge, each.sentence) for each in whole or result.checks)
    for judge, sentence in dict.fromkeys(concluded):
        yield Line(
            Message("gate.of_judge", judge=judge, sentence=sentence) if several else sentence
        )
    for check in result.checks:
        yield Ruled(check.ruling, check.line)
    if not result.checks:
        yield Ruled(result.ruling, result.reason or "")
    if result.ruling == "undecided":
        yield from map(Next, dict.fromkeys(_remedies(result)))
    if len(result.checks) > 1:
        passed = sum(check.ruling == "pass" for check in result.checks)
        yield Ruled(result.ruling, Message("gate.whole", passed=passed, n=len(result.checks)))


def _remedies(result: GateReport) -> Iterator[str]:
    for check in result.checks:
        for doubt in check.doubts:
            replayed = doubt == "missing" and is_replayed(check.judge)
            yield Message("gate.remedy_missing_replayed" if replayed else f"gate.remedy_{doubt}")
        yield from (hold.remedy for hold in check.holds if hold.remedy is not None)


def concluded(result: GateReport, subject: AnalysisSubject) -> Conclusions:
    """What its HTML file shows: the run's report, counted as the gate is."""
    return conclude(
        subject.store,
        result.run,
        side=result.side,
        ties=result.ties,
        level=result.level,
        limits=result.limits,
        families=subject.settings.families,
    )


# A gate as JUnit XML, the form in which build servers show tests.


def write(name: str, path: Path, result: GateReport, subject: AnalysisSubject) -> None:
    write_junit(result, path)


def write_junit(gate: GateReport, path: Path) -> None:
    """Over a file that is there already, as test runners do."""
    try:
        with atomic_file(path, overwrite=True) as stream:
            stream.write(junit_xml(gate))
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
    assumed = gate.assume_accuracy
    for key, value in (
        *([] if gate.min_win_rate is None else [("minWinRate", f"{gate.min_win_rate:g}")]),
        ("require", ", ".join(gate.require)),
        *([("assumeAccuracy", f"{assumed:g}")] if assumed is not None else []),
        ("alpha", f"{gate.alpha:g}"),
        ("side", gate.side),
        ("ties", gate.ties),
        *((name, str(value)) for name, value in _claimed_by_the_caller(gate)),
    ):
        ET.SubElement(settings, "property", {"name": key, "value": value})
    for check in gate.checks:
        _add_test(suite, check, of=name, several=len(gate.require) > 1)
    if not gate.checks:
        case = ET.SubElement(
            suite, "testcase", {"classname": name, "name": plain(gate.run), "time": "0"}
        )
        reason = plain(gate.reason or "")
        ET.SubElement(case, "error", {"type": "undecided", "message": reason}).text = reason
    ET.indent(root)
    whole: bytes = ET.tostring(root, encoding="utf-8", xml_declaration=True)
    return whole + b"\n"


def _claimed_by_the_caller(gate: GateReport) -> Iterator[tuple[str, Any]]:
    """What a ruling takes for granted because the caller says so."""
    yield from gate.limits.model_dump(exclude_defaults=True, by_alias=True).items()
    if gate.max_inconsistent is not None:
        yield "maxInconsistent", gate.max_inconsistent


def _add_test(suite: ET.Element, check: GateCheck, *, of: str, several: bool) -> None:
    name = f"{check.sides}, by {check.judge}"
    if several:
        name = f"{check.requirement}: {name}"
    case = ET.SubElement(
        suite,
        "testcase",
        {"classname": of, "name": plain(name), "time": "0"},
    )
    line = plain(check.line)
    text = f"{plain(check.sentence)}\n{line}" if check.sentence else line
    if check.ruling == "pass":
        ET.SubElement(case, "system-out").text = text
    else:
        kind = "failure" if check.ruling == "fail" else "error"
        ET.SubElement(case, kind, {"type": check.ruling, "message": line}).text = text
