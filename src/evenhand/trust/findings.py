"""A short plain verdict on a judge, from its audit and the user's own thresholds."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from evenhand.contract.model import Model
from evenhand.errors import InputError
from evenhand.messages import Message, Sentence
from evenhand.report.baselines import COIN, PEOPLE, standing
from evenhand.stats.estimates import EstimatedShare, EstimatedValue
from evenhand.stats.rates.paired_difference import PairedDifference
from evenhand.stats.rates.position_bias import ALARM_ABOVE
from evenhand.trust.audit import Audit
from evenhand.trust.biases import PositionBiasReport

Ruling = Literal["pass", "fail", "undecided"]
Assessment = Literal[
    "trustworthy", "with care", "not trustworthy", "too few labels", "not shown", "not enough data"
]

# Better than chance is not yet worth believing: a judge that may be wrong on every third pair, or
# has no verdict on every twentieth, is to be used with care.
_CARE_BELOW = 2 / 3
_CARE_UNREAD = 0.05


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
    limits = _limit(asked.max_place_lean), _limit(asked.max_length_excess)
    # Either way: a judge that favours the second place, or the shorter, is as biased.
    place = audit.place.lean.beyond(limits[0]) is not None
    length = audit.length.excess.beyond(limits[1]) is not None
    ruling = _ruling(checks)
    return Findings(
        word=_word(audit, ruling, place_alarm=place, length_alarm=length),
        lines=tuple(_lines(audit, *limits)),
        place_alarm=place,
        length_alarm=length,
        checks=checks,
        ruling=ruling,
        thresholds=asked,
    )


def _ruling(checks: tuple[ThresholdCheck, ...]) -> Ruling | None:
    if not checks:
        return None
    rulings = {check.ruling for check in checks}
    grave: tuple[Ruling, ...] = ("fail", "undecided")
    return next((each for each in grave if each in rulings), "pass")


def _limit(asked: float | None) -> float:
    return ALARM_ABOVE if asked is None else asked


def _word(
    audit: Audit, ruling: Ruling | None, *, place_alarm: bool, length_alarm: bool
) -> Assessment:
    low = audit.accuracy.low
    if low is None:
        return "not enough data"
    standings = {standing(each) for each in audit.yardsticks if each.name != PEOPLE}
    if standings & {"no better", "worse"} or place_alarm or ruling == "fail":
        return "not trustworthy"
    if audit.one_order:
        return "not shown"
    if "open" in standings:
        return "too few labels"
    missing = audit.missing_passes.pairs
    unread = (audit.unread.part + missing) / (audit.n + missing)
    doubtful = low < _CARE_BELOW or unread > _CARE_UNREAD or ruling == "undecided"
    return "with care" if length_alarm or doubtful or _below_people(audit) else "trustworthy"


def _below_people(audit: Audit) -> bool:
    """Whether people agree with each other oftener than the judge does with them, beyond noise."""
    if audit.people is None:
        return False
    judge, people = audit.people.judge_agreement.high, audit.people.agreement.low
    return judge is not None and people is not None and judge < people


def _lines(audit: Audit, place_limit: float, length_limit: float) -> Iterator[str]:
    accuracy = audit.accuracy
    missing = audit.missing_passes
    if missing.pairs:
        yield missing.message("trust.passes_missing", of=audit.n + missing.pairs)
    if accuracy.value is None or accuracy.low is None:
        yield Message("trust.accuracy_reason", reason=accuracy.reason)
        return
    yield Message("trust.right_on", share=_share(accuracy), n=audit.n)
    yield from _beside_baselines(audit)
    if accuracy.low < _CARE_BELOW:
        yield Message("trust.below_two_thirds")
    if audit.one_order:
        yield Message("trust.judged_in_one_order", n=audit.one_order)
    if audit.people is not None:
        people, judge = audit.people.agreement, audit.people.judge_agreement
        yield Message("trust.people_agree", share=_share(people))
        code = "trust.judge_agrees_less" if _below_people(audit) else "trust.judge_agrees"
        yield Message(code, share=_share(judge))
    yield from _position_lines(audit.place, place_limit)
    excess = audit.length.excess
    way = "longer" if excess.towards == "first" else "shorter"
    values = excess.percents(excess.towards)
    if excess.beyond(length_limit):
        yield Message(f"trust.alarm_{way}", n=excess.pairs, **values)
    elif excess.may_exceed(length_limit):
        values["limit"] = 100 * length_limit
        yield Message(f"trust.length_open_{way}", n=excess.pairs, **values)
    if audit.unread.value:
        yield Message("trust.no_verdict_on", share=_share(audit.unread))


def _beside_baselines(audit: Audit) -> Iterator[Message]:
    codes = {
        "better": "beats_baseline",
        "no better": "no_better",
        "worse": "worse",
        "open": "too_few_labels",
    }
    for each in audit.yardsticks:
        if each.lead is None or each.lead.value is None or each.name == PEOPLE:
            continue
        if each.name == COIN and audit.inconsistent.part:
            share = _interval(audit.half_credit)
            yield Message("trust.half_credit", n=audit.inconsistent.part, share=share)
        values = {"name": each.name, "percent": 100 * (each.accuracy.value or 0.0)}
        shown = standing(each)
        if shown == "open":
            values["needed"] = each.lead.pairs_to_settle(each.useful_lead or 0.0)
        lead = Message("share.points", **each.lead.percents())
        yield Message(f"trust.{codes[shown]}", lead=lead, **values)


def _position_lines(place: PositionBiasReport, limit: float) -> Iterator[Message]:
    lean, test = place.lean, place.test
    of = Message("trust.of_pairs", n=test.pairs)
    values, percent = lean.percents(lean.towards), 100 * limit
    if lean.beyond(limit):
        yield Message(f"trust.alarm_{lean.towards}", of=of, p=test.p_value, **values)
    elif lean.may_exceed(limit):
        yield Message(f"trust.position_open_{lean.towards}", of=of, limit=percent, **values)
    elif test.favours and lean.value is not None:
        yield Message(f"trust.leans_{lean.towards}", of=of, limit=percent, **values)


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
    if lean.beyond(most):
        ruling = "fail"
    elif -most < lean.low and lean.high < most:
        ruling = "pass"
    relation = {"fail": "beyond", "pass": "within", "undecided": "holds"}[ruling]
    return ThresholdCheck(name=name, ruling=ruling, line=_line(relation, name, lean, most))


def _check(name: str, figure: EstimatedValue, limit: float, *, above: bool) -> ThresholdCheck:
    if figure.low is None or figure.high is None:
        return _no_interval(name, figure)
    ruling: Ruling = "undecided"
    relation = "holds"
    if figure.low > limit:
        ruling, relation = ("pass", "above") if above else ("fail", "over")
    elif figure.high < limit:
        ruling, relation = ("fail", "below") if above else ("pass", "under")
    return ThresholdCheck(name=name, ruling=ruling, line=_line(relation, name, figure, limit))


def _no_interval(name: str, figure: EstimatedValue) -> ThresholdCheck:
    why = figure.reason or Message("check.no_interval")
    line = Message("check.nothing", name=Message(f"check.{_code(name)}"), why=why)
    return ThresholdCheck(name=name, ruling="undecided", line=line)


def _line(relation: str, name: str, figure: EstimatedValue, limit: float) -> Message:
    named = Message(f"check.{_code(name)}")
    return Message(f"check.{relation}", name=named, low=figure.low, high=figure.high, limit=limit)


def _code(name: str) -> str:
    return name.replace(" ", "_")


def _share(share: EstimatedShare) -> Message:
    if share.value is None:
        return Message("share.counted", part=share.part, of=share.of)
    return _interval(share)


def _interval(figure: EstimatedValue) -> Message:
    ends = {name: 100 * (getattr(figure, name) or 0.0) for name in ("value", "low", "high")}
    return Message("share.interval", **ends)
