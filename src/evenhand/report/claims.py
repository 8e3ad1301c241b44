"""What a conclusion claims, what holds the claim back, and the sentence that says so.

A doubt widens the interval (`stats/rates/win_rate.py`); a hold is evidence that no interval has.
A new reason is one function of a conclusion that returns a `Hold` or None, listed in `REASONS`;
one that needs the options of a gate is listed in `GATE_REASONS` of `report/gate.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from evenhand.contract.model import Model
from evenhand.judge_kinds import is_replayed
from evenhand.messages import Message, Sentence, render
from evenhand.report.baselines import COIN, CONSTANT, LONGER, JudgeAccuracy, standing
from evenhand.report.labelled import PeopleCounts, missing_labels
from evenhand.report.win_rates import ConclusionLimits, LabelRecord, SideRate
from evenhand.stats.clusters import FEWEST_PAIRS, FEWEST_PROMPTS
from evenhand.stats.rates.position_bias import PositionBias

if TYPE_CHECKING:
    from evenhand.report.conclusions import Conclusion
    from evenhand.report.topics import Topics

_BASELINES = {LONGER: "longer", COIN: "coin", CONSTANT: "constant"}

Blocked: TypeAlias = Literal["claim", "pass", "fail"]
Estimator: TypeAlias = Literal["judge", "corrected"]

EVERY_RULING: tuple[Blocked, ...] = ("claim", "pass", "fail")


class ClaimedRate(Model):
    """The rate and interval that sentence, gate and pages go by, and whose it is: the judge's, or
    that of people as labels correct the judge's."""

    estimator: Estimator = "judge"
    rate: float | None
    low: float | None
    high: float | None
    level: float
    always_valid: bool
    n: int
    prompts: int | None
    reason: Sentence | None
    people: PeopleCounts | None = None  # of a corrected rate
    matchups: int = 1  # of the run, whose intervals hold at `level` all together
    topics: int | None = None  # the interval is over so many of them, and speaks for others

    @classmethod
    def of(cls, rate: SideRate) -> ClaimedRate:
        return cls.of_parts(rate)

    def over(self, topics: Topics | None) -> ClaimedRate:
        """By the interval over topics, where these matter and the claim is to hold for others."""
        rate, low, high = self.rate, self.low, self.high
        if topics is None or not topics.matter or topics.these:
            return self
        if rate is None or low is None or high is None:
            return self
        low, high = topics.over_topics(rate, low, high)
        return self.model_copy(update={"low": low, "high": high, "topics": topics.topics})

    @property
    def excludes_half(self) -> bool:
        low, high = self.low, self.high
        return low is not None and high is not None and not low <= 0.5 <= high


class Hold(Model):
    """Evidence that keeps a conclusion from what its interval shows.

    `blocks`: "claim" is that a side is better or worse, in the sentence and in a gate at one half;
    "pass" and "fail" are those rulings of every gate. `sentence` takes the place of the claim,
    `line` is what a gate says of it, `remedy` what to do about it.
    """

    code: str
    blocks: tuple[Blocked, ...]
    sentence: Message | None = None
    line: Message
    remedy: Message | None = None


Reason: TypeAlias = Callable[["Conclusion", ConclusionLimits], Hold | None]


def _labels_see_a_coin(conclusion: Conclusion, limits: ConclusionLimits) -> Hold | None:
    """Labels say that what this judge prefers means nothing."""
    labels = conclusion.labels
    if conclusion.claimed.estimator != "judge" or labels is None or not labels.is_no_better:
        return None
    sentence = None
    if conclusion.claimed.low is not None:
        sentence = Message("no_conclusion.labels", **_called(conclusion), **labels.values)
    return Hold(
        code="labels",
        blocks=EVERY_RULING,
        sentence=sentence,
        line=Message("gate.no_better", **labels.values),
    )


def _too_much_missing(conclusion: Conclusion, limits: ConclusionLimits) -> Hold | None:
    """More pairs without a verdict than the caller allows."""
    valid, invalid = conclusion.win_rate.counts.valid, conclusion.win_rate.counts.invalid
    every, judge = valid + invalid + conclusion.skipped, conclusion.judge
    for part, most, option in (
        (invalid, limits.max_invalid, "max-invalid"),
        (conclusion.skipped, limits.max_skipped, "max-skipped"),
    ):
        if most is not None and part > most * every:
            values = {"part": part, "n": every}
            return Hold(
                code="missing",
                blocks=EVERY_RULING,
                sentence=Message("no_conclusion.missing", **_called(conclusion), **values),
                line=Message("gate.too_much_missing", **values, option=option, percent=100 * most),
                remedy=Message("gate.next_replay" if is_replayed(judge) else "gate.next_retry"),
            )
    return None


def _orders_contradict(conclusion: Conclusion, limits: ConclusionLimits) -> Hold | None:
    rate, both = conclusion.win_rate, conclusion.both_orders
    if conclusion.claimed.estimator != "judge" or not rate.mostly_flips:
        return None
    why = "flips" if conclusion.position.favours is None else "position"
    share = rate.flips / both if both else 0.0
    return Hold(
        code="flips",
        blocks=EVERY_RULING,
        sentence=Message(f"no_conclusion.{why}", **_called(conclusion), share=share, n=both),
        line=Message("gate.mostly_flips", flips=rate.flips, decided=rate.decided),
        remedy=Message("gate.next_judge"),
    )


def _may_be_chance(conclusion: Conclusion, limits: ConclusionLimits) -> Hold | None:
    """The interval leaves one half out, and so few prompts decided that a coin may have."""
    rate, claimed = conclusion.win_rate, conclusion.claimed
    test = rate.sign_flip
    if claimed.estimator != "judge" or not claimed.excludes_half or test is None:
        return None
    if not rate.may_be_chance:
        return None
    values = {"n": test.decisive, "of": claimed.prompts or claimed.n, "p": test.p_value}
    return Hold(
        code="chance",
        blocks=("claim",),
        sentence=Message("no_conclusion.chance", **_called(conclusion), **values),
        line=Message("gate.chance", **values),
        remedy=Message("gate.next_more_prompts"),
    )


def _labels_are_missing(conclusion: Conclusion, limits: ConclusionLimits) -> Hold | None:
    """The caller asks for people's rate, and there is none."""
    if not limits.require_labels or conclusion.by_people:
        return None
    reason = missing_labels(conclusion.labelled)
    return Hold(
        code="labels_required",
        blocks=EVERY_RULING,
        sentence=Message("no_conclusion.labels_required", **_called(conclusion), reason=reason),
        line=Message("gate.labels_required", reason=reason),
        remedy=Message("gate.remedy_labels"),
    )


def _people_say_otherwise(conclusion: Conclusion, limits: ConclusionLimits) -> Hold | None:
    """On the pairs that people labelled they contradict the judge, and so its claim."""
    claimed = conclusion.claimed
    if not claimed.excludes_half:
        return None
    above = claimed.low is not None and claimed.low > 0.5
    return contradiction(conclusion, "above" if above else "below", 0.5, blocks=("claim",))


def contradiction(
    conclusion: Conclusion,
    claim: Literal["above", "below"],
    threshold: float,
    *,
    blocks: tuple[Blocked, ...],
) -> Hold | None:
    labelled = conclusion.labelled
    if labelled is None or conclusion.by_people or not labelled.contradicts(claim, threshold):
        return None
    values = {"n": labelled.pairs, "judge": labelled.judge, "people": labelled.people.rate}
    ends = labelled.difference.percents("first" if claim == "above" else "second")
    return Hold(
        code="contradicted",
        blocks=blocks,
        sentence=Message("no_conclusion.contradicted", **_called(conclusion), **values, **ends),
        line=Message("gate.contradicted", **values),
        remedy=Message("gate.remedy_labels"),
    )


def _length_may_decide(conclusion: Conclusion, limits: ConclusionLimits) -> Hold | None:
    """Length helped the claim, and at equal length it is not shown. People's labels leave out the
    judge's taste; padding probes that a judge passed say that it has none for length."""
    if limits.allow_length or not conclusion.length_explains:
        return None
    if conclusion.padding is not None and conclusion.padding.passed:
        return None
    called, controlled = _called(conclusion), conclusion.length.controlled[0]
    why = _by_length(conclusion)
    if controlled.rate is None:
        sentence = Message("no_conclusion.length_alone", **called, why=why)
    else:
        ends = {"rate": controlled.rate, "low": controlled.low, "high": controlled.high}
        sentence = Message("no_conclusion.length", **called, why=why, **ends)
    ruling: Blocked = "pass" if (conclusion.claimed.low or 0.0) > 0.5 else "fail"
    return Hold(
        code="length",
        blocks=("claim", ruling),
        sentence=sentence,
        line=Message("gate.length", why=why),
        remedy=Message("gate.remedy_length"),
    )


def _by_length(conclusion: Conclusion) -> Message:
    """How many pairs the longer answer won, or the shorter one where that is the judge's taste."""
    won = conclusion.length.longer_wins
    if 2 * won.part < won.of:
        return Message("length.shorter_won", part=won.of - won.part, n=won.of)
    return Message("length.longer_won", part=won.part, n=won.of)


# In the order in which they take the claim's place: the first that has a sentence is the headline.
REASONS: tuple[Reason, ...] = (
    _labels_are_missing,
    _labels_see_a_coin,
    _too_much_missing,
    _orders_contradict,
    _may_be_chance,
    _people_say_otherwise,
    _length_may_decide,
)


def settled(
    conclusion: Conclusion, limits: ConclusionLimits, *, trust: Iterable[Message] = ()
) -> Conclusion:
    """The conclusion with what holds it back, and in words; `trust` is what follows the claim."""
    reasons = (reason(conclusion, limits) for reason in REASONS)
    holds = tuple(hold for hold in reasons if hold is not None)
    held = conclusion.model_copy(update={"holds": holds})
    headline = tuple(_headline(held, limits))
    # Flips that are the headline need no second sentence.
    told = any(each.code in ("no_conclusion.flips", "no_conclusion.position") for each in headline)
    follow = (each for each in trust if not (told and each.code.startswith("trust.flips")))
    messages = (*headline, *_cleared(held, limits), *_scope(held, limits), *follow)
    return held.model_copy(update={"messages": messages, "sentence": render(messages)})


def _called(conclusion: Conclusion) -> dict[str, str]:
    model, against = conclusion.names
    return {"model": model, "against": against}


def _headline(conclusion: Conclusion, limits: ConclusionLimits) -> Iterator[Message]:
    """What is claimed, from how many prompts and how sure; or what speaks against it. Of a labelled
    benchmark: how often the judge is right."""
    accuracy = conclusion.accuracy
    judged = conclusion.win_rate.counts.valid > 0
    if judged and accuracy is not None and accuracy.accuracy.value is not None:
        yield from _accuracy(accuracy)
        return
    if (against := objection(conclusion)) is not None:
        yield against
        return
    claim = claim_message(conclusion)
    yield claim
    low, high = conclusion.claimed.low, conclusion.claimed.high
    if limits.smallest_effect is None or claim.code == "conclusion.outright":
        return
    if low is not None and high is not None:
        yield _effect(low, high, limits.smallest_effect)


def objection(conclusion: Conclusion) -> Message | None:
    """What takes the claim's place: why the interval is as wide as it is, or what the interval
    does not know of."""
    claimed, rate = conclusion.claimed, conclusion.win_rate
    is_open = claimed.low is not None and not claimed.excludes_half
    if claimed.estimator == "judge" and rate.doubts and is_open:
        return _doubt(conclusion)
    return next((each.sentence for each in conclusion.holds if each.sentence is not None), None)


def _scope(conclusion: Conclusion, limits: ConclusionLimits) -> Iterator[Message]:
    """What the caller left out of the claim."""
    if conclusion.left_out:
        prompts = conclusion.claimed.prompts or conclusion.claimed.n
        yield Message("trust.common_prompts", n=prompts, left=conclusion.left_out)
    missing = conclusion.win_rate.counts.invalid + conclusion.skipped
    if limits.missing == "half" and missing:
        yield Message("trust.missing_half", n=missing)


def _cleared(conclusion: Conclusion, limits: ConclusionLimits) -> Iterator[Message]:
    """Whose rate it is where it is people's; what would have held the claim back, and why it does
    not."""
    labelled = conclusion.labelled
    if conclusion.accuracy is not None:
        return
    if conclusion.by_people and labelled is not None:
        counts = labelled.counts.model_dump(by_alias=False)
        whole = labelled.drawn == "every pair"
        code = "trust.labels_whole" if whole else "trust.labels"
        yield Message(
            code, labels=labelled.labels, n=labelled.pairs, judge=_judge_alone(conclusion), **counts
        )
    if not conclusion.length_explains:
        return
    why, padding = _by_length(conclusion), conclusion.padding
    if padding is not None and padding.passed:
        yield Message("trust.length_probed", why=why, n=padding.cases, run=padding.run)
    elif limits.allow_length:
        yield Message("trust.length_allowed", why=why)


def _judge_alone(conclusion: Conclusion) -> Message:
    rate = conclusion.win_rate
    if rate.rate is None:
        return Message("labelled.judge_unknown")
    return Message("labelled.judge_alone", rate=rate.rate, low=rate.low, high=rate.high)


def _accuracy(found: JudgeAccuracy) -> Iterator[Message]:
    share = found.accuracy
    ends = {"share": share.value, "low": share.low, "high": share.high}
    yield Message("benchmark.right", n=share.of, **ends)
    for each in found.baselines:
        name = Message(f"benchmark.{_BASELINES[each.name]}")
        values = {"name": name, "share": each.accuracy.value or 0.0}
        match standing(each):
            case "better":
                yield Message("benchmark.better", **values)
            case "worse":
                yield Message("benchmark.worse", **values)
            case "no better":
                yield Message("benchmark.no_better", **values)
            case _:
                yield Message("benchmark.open", **values)


def claim_message(conclusion: Conclusion) -> Message:
    """Better, worse, or not significantly different; or why nothing can be said."""
    claimed, called = conclusion.claimed, _called(conclusion)
    low = claimed.low
    if claimed.rate is None or low is None:
        if claimed.n < FEWEST_PAIRS:
            return Message("no_conclusion.few_pairs", **called, n=claimed.n, needed=FEWEST_PAIRS)
        if claimed.prompts is not None and claimed.prompts < FEWEST_PROMPTS:
            few = {"n": claimed.prompts, "needed": FEWEST_PROMPTS}
            return Message("no_conclusion.few_prompts", **called, **few)
        return Message("no_conclusion.few", **called)
    values = called | figures(conclusion)
    if conclusion.win_rate.ties == "wins" and low <= 0.5:
        # With ties lost, few wins are no loss, and half of them no tie of the two.
        return Message("conclusion.outright", **values)
    topics = conclusion.topics is not None and conclusion.topics.matter
    claim = "no_difference"
    if claimed.excludes_half:
        claim = ("better" if low > 0.5 else "worse") + ("_here" if topics else "")
    elif topics and conclusion.win_rate.shows_difference:
        claim = "no_difference_beyond"
    return Message(f"conclusion.{claim}", **values)


def figures(conclusion: Conclusion) -> dict[str, Any]:
    """The rate, its interval and the counts behind it, for a sentence."""
    claimed, counts = conclusion.claimed, conclusion.win_rate.counts
    prompts = claimed.n if claimed.prompts is None else claimed.prompts
    won, lost = conclusion.win_rate.won_and_lost
    values: dict[str, Any] = {"wins": won, "losses": lost, "ties": counts.ties}
    counted = Message("conclusion.counts", **values)
    if counts.inconsistent:
        counted = Message("conclusion.counts_flipped", **values, flipped=counts.inconsistent)
    sample = Message("conclusion.sample", n=prompts, counts=counted)
    if claimed.estimator != "judge":  # people's counts follow it
        sample = Message("conclusion.sample_labels", n=prompts)
    elif counts.valid != prompts:
        pairs = counts.valid
        sample = Message("conclusion.sample_pairs", n=prompts, pairs=pairs, counts=counted)
    return {"rate": claimed.rate, "interval": _interval(conclusion), "sample": sample}


def _interval(conclusion: Conclusion) -> Message:
    claimed, topics = conclusion.claimed, conclusion.topics
    several = claimed.matchups > 1
    if claimed.always_valid:
        code = "conclusion.interval_looks_matchups" if several else "conclusion.interval_looks"
    else:
        code = "conclusion.interval_matchups" if several else "conclusion.interval"
    ends = {"low": claimed.low, "high": claimed.high}
    values = {"level": claimed.level, "matchups": claimed.matchups}
    if topics is None or not topics.matter or claimed.estimator != "judge":
        return Message(code, **values, **ends)
    own = conclusion.win_rate
    if topics.these:
        over = topics.over_topics(own.rate or 0.5, own.low or 0.0, own.high or 1.0)
        ends = {"low": over[0], "high": over[1]}
    within = Message(code, **values, low=own.low, high=own.high)
    return Message("conclusion.with_topics", interval=within, topics=topics.topics, **ends)


def _doubt(conclusion: Conclusion) -> Message:
    rate, pairs, called = conclusion.win_rate, conclusion.pairs, _called(conclusion)
    valid, both = rate.counts.valid, conclusion.both_orders
    match rate.doubts[0]:
        case "position":
            share = rate.flips / both if both else 0.0
            why = "flips" if conclusion.position.favours is None else "position"
            return Message(f"no_conclusion.{why}", **called, share=share, n=both)
        case "one_order":
            return Message("no_conclusion.one_order", **called, part=rate.one_order, n=valid)
        case "drawn_order":
            return Message("no_conclusion.drawn_order", **called, part=both, n=valid)
        case "ties":
            return Message("no_conclusion.ties", **called, part=rate.decided, n=valid)
        case "pending":
            return Message(
                "no_conclusion.pending", **called, part=pairs - valid - rate.counts.invalid, n=pairs
            )
        case _:
            missing = rate.missing
            return Message("no_conclusion.missing", **called, part=missing, n=missing + valid)


def _effect(low: float, high: float, size: float) -> Message:
    code = "open"
    if low > 0.5 + size or high < 0.5 - size:
        code = "shown"
    elif low > 0.5 - size and high < 0.5 + size:
        code = "ruled_out"
    return Message(f"effect.{code}", size=size)


# How far the judge can be trusted with it.


def trust_messages(
    rate: SideRate,
    *,
    one_order: int,
    position: PositionBias,
    labels: LabelRecord | None,
    allow_one_order: bool,
    same_family: Message | None = None,
    by_rule: int = 0,
) -> Iterator[Message]:
    drawn = rate.drawn_order
    both = rate.counts.valid - one_order - drawn - by_rule
    if one_order and allow_one_order:
        yield Message("trust.one_order", part=one_order, n=rate.counts.valid)
    if drawn:
        yield Message("trust.drawn_order", part=drawn, n=rate.counts.valid)
    if both:
        yield _steadiness(rate, position, pairs=both)
    if position.alarm is not None:
        yield _position_alarm(position, position.alarm)
    if labels is not None and labels.is_open:
        yield Message("trust.labels_open", **labels.values)
    if same_family is not None:
        yield same_family


def _steadiness(rate: SideRate, position: PositionBias, *, pairs: int) -> Message:
    if not rate.flips:
        return Message("trust.steady", n=pairs)
    codes = {None: "trust.flips", "first": "trust.flips_first", "second": "trust.flips_second"}
    return Message(codes[position.favours], share=rate.flips / pairs, n=pairs)


def _position_alarm(position: PositionBias, side: Literal["first", "second"]) -> Message:
    """It needs no labels: a judge that follows the position shows it in its two orders. Counted
    among the flipped pairs, so that it cannot be more than they are."""
    leaning = position.first_preference
    part = leaning.part if side == "first" else leaning.of - leaning.part
    values = {"part": part, "of": leaning.of, "p": position.p_value}
    return Message(f"trust.position_alarm_{side}", **values)
