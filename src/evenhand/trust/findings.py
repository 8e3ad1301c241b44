"""A short plain verdict on a judge, from its audit and the user's own thresholds."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from evenhand.contract.model import Model
from evenhand.errors import InputError
from evenhand.messages import Message, Sentence
from evenhand.stats.estimates import EstimatedShare, EstimatedValue
from evenhand.stats.rates.paired import PairedDifference
from evenhand.trust.audit import Audit
from evenhand.trust.baselines import PEOPLE, Baseline

Ruling = Literal["pass", "fail", "undecided"]
Assessment = Literal["trustworthy", "with care", "not trustworthy", "not shown", "not enough data"]
_Figure = EstimatedShare | EstimatedValue | PairedDifference

# Better than chance is not yet worth believing: a judge that may be wrong on every third pair, or
# has no verdict on every twentieth, is to be used with care.
_CARE_BELOW = 2 / 3
_CARE_UNREAD = 0.05
_ALARM_ABOVE = 0.1


class Thresholds(Model):
    """What the user asks of a judge; None asks nothing. Alarms fire beyond the last two, or where
    they are None beyond a tenth of the pairs, and then have no part in the ruling."""

    min_accuracy: float | None = None
    min_kappa: float | None = None
    min_consistency: float | None = None
    max_unread: float | None = None
    max_place_lean: float | None = None
    max_length_excess: float | None = None

    @classmethod
    def of(cls, **given: float | None) -> Thresholds:
        """Told before anything is asked of a judge."""
        for name, value in given.items():
            if value is None:
                continue
            if name == "min_kappa":
                if not -1 <= value <= 1:
                    raise InputError(Message("trust.min_kappa_outside", value=value))
            elif not 0 <= value <= 1:
                raise InputError(
                    Message("trust.share_outside", name=name.replace("_", "-"), value=value)
                )
        return cls.model_validate(given)


class ThresholdCheck(Model):
    """One threshold against its interval: it passes or fails where the whole interval does."""

    name: str
    ruling: Ruling
    line: Sentence


class Findings(Model):
    word: Assessment
    lines: tuple[Sentence, ...]
    place_alarm: bool
    length_alarm: bool
    checks: tuple[ThresholdCheck, ...]
    ruling: Ruling | None  # None where no threshold was set
    thresholds: Thresholds


def assess_audit(audit: Audit, thresholds: Thresholds | None = None) -> Findings:
    asked = thresholds or Thresholds()
    checks = tuple(_checks(audit, asked))
    place = _above(audit.place.lean, _limit(asked.max_place_lean))
    length = _above(audit.length.excess, _limit(asked.max_length_excess))
    rulings = {check.ruling for check in checks}
    ruling: Ruling | None = None
    if checks:
        ruling = next((each for each in ("fail", "undecided") if each in rulings), "pass")
    return Findings(
        word=_word(audit, ruling, place_alarm=place, length_alarm=length),
        lines=tuple(_lines(audit, place_alarm=place, length_alarm=length)),
        place_alarm=place,
        length_alarm=length,
        checks=checks,
        ruling=ruling,
        thresholds=asked,
    )


def _limit(asked: float | None) -> float:
    return _ALARM_ABOVE if asked is None else asked


def _above(lean: PairedDifference, limit: float) -> bool:
    """Either way: a judge that favours the second place, or the shorter, is as biased."""
    if lean.low is None or lean.high is None:
        return False
    return lean.low > limit or lean.high < -limit


def _word(
    audit: Audit, ruling: Ruling | None, *, place_alarm: bool, length_alarm: bool
) -> Assessment:
    low = audit.accuracy.low
    if low is None:
        return "not enough data"
    beaten = all(_beats(audit, each) for each in audit.yardsticks if each.name != PEOPLE)
    if not beaten or place_alarm or ruling == "fail":
        return "not trustworthy"
    if audit.one_order:
        return "not shown"
    unread = audit.unread.value or 0.0
    doubtful = low < _CARE_BELOW or unread > _CARE_UNREAD or ruling == "undecided"
    return "with care" if length_alarm or doubtful or _below_people(audit) else "trustworthy"


def _beats(audit: Audit, baseline: Baseline) -> bool:
    """On the same pairs, where the two can be paired."""
    lead = baseline.lead
    if lead is not None and lead.low is not None:
        return lead.low > 0
    return (audit.accuracy.low or 0.0) > (baseline.accuracy.value or 0.0)


def _below_people(audit: Audit) -> bool:
    """Whether people agree with each other oftener than the judge does with them, beyond noise."""
    if audit.people is None:
        return False
    judge, people = audit.people.judge_agreement.high, audit.people.agreement.low
    return judge is not None and people is not None and judge < people


def _lines(audit: Audit, *, place_alarm: bool, length_alarm: bool) -> Iterator[str]:
    accuracy = audit.accuracy
    if accuracy.value is None or accuracy.low is None:
        yield Message("trust.accuracy_reason", reason=accuracy.reason)
        return
    yield Message("trust.right_on", share=_share(accuracy), n=audit.n)
    for each in audit.yardsticks:
        theirs = each.accuracy.value
        if theirs is None or each.name == PEOPLE:
            continue
        code = "trust.beats_baseline" if _beats(audit, each) else "trust.not_beats_baseline"
        yield Message(code, name=each.name, percent=100 * theirs)
    if accuracy.low < _CARE_BELOW:
        yield Message("trust.below_two_thirds")
    if audit.one_order:
        yield Message("trust.judged_in_one_order", n=audit.one_order)
    if audit.people is not None:
        people, judge = audit.people.agreement, audit.people.judge_agreement
        yield Message("trust.people_agree", share=_share(people))
        code = "trust.judge_agrees_less" if _below_people(audit) else "trust.judge_agrees"
        yield Message(code, share=_share(judge))
    favoured = audit.place.test.favours
    if place_alarm and audit.place.lean.value is not None:
        place = "first" if audit.place.lean.value > 0 else "second"
        yield Message(f"trust.alarm_{place}", percent=100 * abs(audit.place.lean.value))
    elif favoured:
        yield Message(f"trust.leans_{favoured}")
    if length_alarm and audit.length.excess.value is not None:
        way = "longer" if audit.length.excess.value > 0 else "shorter"
        yield Message(f"trust.alarm_{way}", percent=100 * abs(audit.length.excess.value))
    if audit.unread.value:
        yield Message("trust.no_verdict_on", share=_share(audit.unread))


def _checks(audit: Audit, asked: Thresholds) -> Iterator[ThresholdCheck]:
    for name, figure, least in (
        ("accuracy", audit.accuracy, asked.min_accuracy),
        ("kappa", audit.kappa, asked.min_kappa),
        ("consistency", audit.consistency, asked.min_consistency),
    ):
        if least is not None:
            check = _check(name, figure, least, above=True)
            # Whoever is right in both orders is right in each: too few right ones in one order
            # are too few in both, and enough show nothing.
            if audit.one_order and check.ruling == "pass":
                line = _line("one_order", name, figure, least)
                check = ThresholdCheck(name=name, ruling="undecided", line=line)
            yield check
    if asked.max_unread is not None:
        yield _check("unread", audit.unread, asked.max_unread, above=False)
    for name, lean, most in (
        ("place lean", audit.place.lean, asked.max_place_lean),
        ("length excess", audit.length.excess, asked.max_length_excess),
    ):
        if most is not None:
            yield _check_lean(name, lean, most)


def _check_lean(name: str, lean: PairedDifference, most: float) -> ThresholdCheck:
    """Either way: it fails beyond the limit on both sides, and passes within it."""
    if lean.low is None or lean.high is None:
        return _no_interval(name, lean)
    ruling: Ruling = "undecided"
    if _above(lean, most):
        ruling = "fail"
    elif -most < lean.low and lean.high < most:
        ruling = "pass"
    relation = {"fail": "beyond", "pass": "within", "undecided": "holds"}[ruling]
    return ThresholdCheck(name=name, ruling=ruling, line=_line(relation, name, lean, most))


def _check(name: str, figure: _Figure, limit: float, *, above: bool) -> ThresholdCheck:
    if figure.low is None or figure.high is None:
        return _no_interval(name, figure)
    ruling: Ruling = "undecided"
    relation = "holds"
    if figure.low > limit:
        ruling, relation = ("pass", "above") if above else ("fail", "over")
    elif figure.high < limit:
        ruling, relation = ("fail", "below") if above else ("pass", "under")
    return ThresholdCheck(name=name, ruling=ruling, line=_line(relation, name, figure, limit))


def _no_interval(name: str, figure: _Figure) -> ThresholdCheck:
    why = figure.reason or Message("check.no_interval")
    line = Message("check.nothing", name=Message(f"check.{_code(name)}"), why=why)
    return ThresholdCheck(name=name, ruling="undecided", line=line)


def _line(relation: str, name: str, figure: _Figure, limit: float) -> Message:
    named = Message(f"check.{_code(name)}")
    return Message(f"check.{relation}", name=named, low=figure.low, high=figure.high, limit=limit)


def _code(name: str) -> str:
    return name.replace(" ", "_")


def _share(share: EstimatedShare) -> Message:
    if share.value is None or share.low is None or share.high is None:
        return Message("share.counted", part=share.part, of=share.of)
    percents = {"value": 100 * share.value, "low": 100 * share.low, "high": 100 * share.high}
    return Message("share.interval", **percents)
