"""How a pair is judged: the options of a comparison as one frozen value, and that value from what a
caller chose, what the settings say and what the judge can do.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import NoneType
from typing import Any, Literal, NamedTuple, Protocol, TypeVar

from evenhand.contract import ConfidenceSource, Locale, Mode, Pair, Reconciling, Vote
from evenhand.errors import InputError
from evenhand.judges import Judge, RetryPolicy, Traits
from evenhand.judging.answers.reader import PROTOCOLS
from evenhand.judging.answers.reader import AnswerProtocol as AnswerProtocol
from evenhand.judging.reconciliation import BallotOrUnread, Decision
from evenhand.prompts import Template, built_in_template, open_template
from evenhand.settings import Settings

# How a pair is judged: the options of a comparison, as one frozen value.


class JudgedBy(NamedTuple):
    """Who judged, and how: all of it that a verdict's confidence hangs on."""

    judge: str
    prompt_version: str | None
    locale: Locale | None
    mode: Mode
    reconcile: Reconciling
    samples: int


class CalibratedConfidence(NamedTuple):
    """A verdict's confidence after calibration, or as it was where that says nothing of it."""

    confidence: float | None
    source: ConfidenceSource
    abstained: bool


class Calibrator(Protocol):
    """Makes a confidence the probability that the verdict is right.

    It lives in `evenhand.trust`, which knows of stores and statistics; a comparison needs neither.
    """

    def told(self) -> Mapping[str, Any]:
        """What verdicts depend on, as plain JSON: part of what names a run."""

    def origin(self) -> Mapping[str, Any]:
        """What it was learned on, as plain JSON: kept with a run, and no part of its name."""

    def check(self, asked: JudgedBy) -> None:
        """Refuse a judge that it was not learned on."""

    def rate(
        self, pair: Pair, readings: Sequence[BallotOrUnread | Vote], decision: Decision
    ) -> CalibratedConfidence: ...

    @property
    def abstains_unasked(self) -> bool:
        """Whether a verdict that nobody was asked about abstains."""


@dataclass(frozen=True, slots=True)
class JudgeConfig:
    """None where the judge's own default holds."""

    mode: Mode | None = None
    locale: Locale = "en"
    samples: int = 1
    reconcile: Reconciling | None = None
    confidence: Literal["stated", "logprobs"] = "stated"
    template: Template | None = None
    protocol: AnswerProtocol | None = None  # the answer format of recorded completions
    repairs: int = 1  # how often an unread answer is shown to the judge again
    retry: RetryPolicy = field(default_factory=RetryPolicy)
    ask_identical: bool = True  # False: identical responses are a tie without asking
    calibration: Calibrator | None = None  # what trust.calibrations.open_calibration gives

    def __post_init__(self) -> None:
        for name, value, allowed in (
            ("mode", self.mode, (None, "reasoned", "letter")),
            ("locale", self.locale, ("en", "zh")),
            ("reconcile", self.reconcile, (None, "agreement", "average")),
            ("confidence", self.confidence, ("stated", "logprobs")),
            ("protocol", self.protocol, (None, *PROTOCOLS)),
            ("ask_identical", self.ask_identical, (True, False)),
        ):
            if value not in allowed:
                offered = ", ".join(str(choice) for choice in allowed)
                raise InputError(f"{name} is {value!r}; it takes {offered}")
        for name, number, least in (("samples", self.samples, 1), ("repairs", self.repairs, 0)):
            if type(number) is not int or number < least:
                raise InputError(f"{name} is {number!r}; it takes a whole number from {least}")
        if not isinstance(self.template, (Template, NoneType)):
            raise InputError(
                f"template is {self.template!r}; it takes what evenhand.open_template gives"
            )
        if not isinstance(self.retry, RetryPolicy):
            raise InputError(f"retry is {self.retry!r}; it takes an evenhand.RetryPolicy")
        if self.calibration is not None and not hasattr(self.calibration, "rate"):
            raise InputError(
                f"calibration is {self.calibration!r}; it takes what "
                "evenhand.trust.calibration.open_calibration gives"
            )

    def mode_for(self, judge: Judge) -> Mode:
        modes = judge.traits.modes
        mode = self.mode or modes[0]
        if mode not in modes:
            raise InputError(
                f"judge {judge.name} cannot answer in {mode} mode; use --mode {modes[0]}"
            )
        return mode

    def reconciling(self, mode: Mode) -> Reconciling:
        """Letters are decided on their mean probability; everything else by agreement."""
        how = self.reconcile or ("average" if mode == "letter" else "agreement")
        has_weights = mode == "letter" or self.confidence == "logprobs" or self.samples > 1
        if how == "average" and not has_weights:
            raise InputError(
                "reconcile is average, and one stated verdict an order has nothing to average; "
                "use --confidence logprobs, --samples 3 or --mode letter with it"
            )
        return how

    def calibration_for(self, judge: Judge) -> Calibrator | None:
        """The calibration, once it has agreed to this judge."""
        if self.calibration is not None:
            mode = self.mode_for(judge)
            reads_prompt = judge.traits.needs_prompt
            self.calibration.check(
                JudgedBy(
                    judge=judge.name,
                    prompt_version=self.template_for(mode).version if reads_prompt else None,
                    locale=self.locale if reads_prompt else None,
                    mode=mode,
                    reconcile=self.reconciling(mode),
                    samples=self.samples,
                )
            )
        return self.calibration

    def template_for(self, mode: Mode) -> Template:
        if self.template is None:
            return built_in_template(self.locale, mode)
        if self.template.mode != mode or self.template.locale != self.locale:
            raise InputError(
                f"template {self.template.name} was opened for {self.template.locale}, "
                f"{self.template.mode} mode, not for {self.locale}, {mode} mode; open it again"
            )
        return self.template


# One out of what was chosen, what the settings say and what the judge can do.

Value = TypeVar("Value")


def first_given(option: Value | None, setting: Value | None, default: Value) -> Value:
    """What was chosen, else what the settings say, else the default."""
    if option is not None:
        return option
    return default if setting is None else setting


def make_config(
    settings: Settings,
    traits: Traits,
    *,
    mode: Mode | None = None,
    locale: Locale | None = None,
    reconcile: Reconciling | None = None,
    confidence: Literal["stated", "logprobs"] | None = None,
    template: Path | None = None,
    protocol: AnswerProtocol | None = None,
    retries: int | None = None,
    repairs: int | None = None,
    ask_identical: bool = True,
    calibration: Calibrator | None = None,
) -> JudgeConfig:
    chosen_locale: Locale = first_given(locale, settings.locale, "en")
    chosen_mode = mode or settings.mode
    # A default from the settings should not stop a judge that has only the other mode.
    if mode is None and chosen_mode is not None and chosen_mode not in traits.modes:
        chosen_mode = traits.modes[0]
    path = template or (Path(settings.template) if settings.template else None)
    opened: Template | None = None
    if path is not None and traits.needs_prompt:
        opened_for = chosen_mode or traits.modes[0]
        opened = open_template(path.expanduser(), locale=chosen_locale, mode=opened_for)
    usual = RetryPolicy()
    return JudgeConfig(
        mode=chosen_mode,
        locale=chosen_locale,
        samples=settings.samples or 1,
        reconcile=reconcile or settings.reconcile,
        confidence=first_given(confidence, settings.confidence, "stated"),
        template=opened,
        protocol=protocol,
        repairs=first_given(repairs, settings.repairs, 1),
        retry=RetryPolicy(attempts=first_given(retries, settings.retries, usual.attempts - 1) + 1),
        ask_identical=ask_identical,
        calibration=calibration,
    )
