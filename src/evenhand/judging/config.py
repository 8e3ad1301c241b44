"""Which judge is asked and how it judges a pair, as one frozen value; and that value out of what a
caller chose, what the settings say and what the judge can do.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import NoneType
from typing import Any, Literal, Protocol, TypeVar

from evenhand.contract import JudgedBy, Locale, Mode, Pair, Reconciling
from evenhand.errors import InputError
from evenhand.judges.protocol import Judge, OpenJudge, Traits
from evenhand.judges.registry import (
    JudgeName,
    JudgeOptions,
    open_judge,
    traits_of,
)
from evenhand.judges.retry import RetryPolicy
from evenhand.judging.answers.results import PROTOCOLS
from evenhand.judging.answers.results import AnswerProtocol as AnswerProtocol
from evenhand.messages import Message
from evenhand.prompts import Template, built_in_template, open_template
from evenhand.prompts.preparation import PREPARE_KINDS, PrepareKind
from evenhand.settings import Settings, split_addresses


class Calibrator(Protocol):
    """Makes a confidence the probability that the verdict is right.

    It lives in `evenhand.trust`, which knows of stores and statistics; a comparison needs neither.
    """

    def identity(self) -> Mapping[str, Any]:
        """What verdicts depend on, as plain JSON: part of what names a run."""

    def origin(self) -> Mapping[str, Any]:
        """What it was learned on, as plain JSON: kept with a run, and no part of its name."""

    def check(self, asked: JudgedBy) -> None:
        """Refuse a judge that it was not learned on."""

    def probability(self, signals: Mapping[str, float | None]) -> float | None:
        """That a verdict with these signals is right; None where it has none that tell."""

    def abstains(self, probability: float | None) -> bool:
        """Whether a verdict is less sure than promised; one without a probability cannot be
        vouched for."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class JudgeConfig(JudgeOptions):
    """Which judge is asked, where it is, and how it judges a pair.

    None: not chosen. `resolve` fills that in from the settings; whatever they do not say either is
    the default that the properties below give, or the judge's own.
    """

    judge: str | None = None  # its name; None in a resolved one: the judge is the caller's own
    mode: Mode | None = None
    locale: Locale | None = None
    samples: int | None = None
    reconcile: Reconciling | None = None
    confidence: Literal["stated", "logprobs"] | None = None
    template: Template | Path | None = None
    protocol: AnswerProtocol | None = None  # the answer format of recorded completions
    repairs: int | None = None  # how often an unread answer is shown to the judge again
    retry: RetryPolicy | None = None
    ask_identical: bool = False  # True: the judge is asked about identical responses too
    prepare: tuple[PrepareKind, ...] | None = None  # what is written before the judging
    prepare_with: str | None = None  # the model that writes it; None: the judge
    on_inconsistent: OnInconsistent | None = None  # rate: score each response alone too
    rating_samples: int | None = None  # how often each is scored then
    # The writer's own, as `resolve` finds its server and key.
    writer: JudgeConfig | None = field(default=None, repr=False, compare=False)
    calibration: Calibrator | None = None  # what trust.calibration.open_calibration gives

    def __post_init__(self) -> None:
        JudgeOptions.__post_init__(self)  # a class with slots has no super() here
        if self.judge is not None and not isinstance(self.judge, str):
            raise InputError(Message("judging.judge_no_name", judge=self.judge))
        for name, value, allowed in (
            ("mode", self.mode, (None, "reasoned", "letter")),
            ("locale", self.locale, (None, "en", "zh")),
            ("reconcile", self.reconcile, (None, "agreement", "average")),
            ("confidence", self.confidence, (None, "stated", "logprobs")),
            ("protocol", self.protocol, (None, *PROTOCOLS)),
            ("ask_identical", self.ask_identical, (True, False)),
            ("on_inconsistent", self.on_inconsistent, (None, "keep", "rate")),
        ):
            if value not in allowed:
                offered = ", ".join(str(choice) for choice in allowed)
                raise InputError(
                    Message("judging.choice_unknown", name=name, value=value, offered=offered)
                )
        for name, number, least in (
            ("samples", self.samples, 1),
            ("repairs", self.repairs, 0),
            ("rating_samples", self.rating_samples, 1),
        ):
            if number is not None and (type(number) is not int or number < least):
                raise InputError(
                    Message("judging.integer_needed", name=name, number=number, least=least)
                )
        object.__setattr__(self, "prepare", read_kinds(self.prepare))
        if self.prepare_with is not None and not isinstance(self.prepare_with, str):
            raise InputError(Message("judging.judge_no_name", judge=self.prepare_with))
        if not isinstance(self.template, (Template, Path, NoneType)):
            raise InputError(Message("judging.template_no_template", template=self.template))
        if not isinstance(self.retry, (RetryPolicy, NoneType)):
            raise InputError(Message("judging.retry_no_policy", retry=self.retry))
        if self.calibration is not None and not hasattr(self.calibration, "probability"):
            raise InputError(
                Message("judging.calibration_no_calibration", calibration=self.calibration)
            )

    @classmethod
    def resolve(
        cls, settings: Settings, overrides: JudgeConfig | None = None, *, own: Judge | None = None
    ) -> JudgeConfig:
        """What was chosen, else what the settings say, else the default: for every caller alike.

        `own` is a judge that the caller has opened; nothing is opened in its place.
        """
        chosen = cls() if overrides is None else overrides
        if not isinstance(chosen, JudgeConfig):  # callers may be untyped
            raise InputError(Message("judging.config_no_config", name=type(chosen).__name__))
        judge = None if own is not None else chosen.judge or settings.judge
        traits = traits_of(judge) if own is None else own.traits
        samples = first_given(chosen.samples, settings.samples, 1)
        mode = chosen.mode
        # A default from the settings should not stop a judge that has only the other mode.
        if mode is None and settings.mode in traits.modes:
            mode = settings.mode
        resolved = replace(
            chosen,
            **_server_of(judge, settings, chosen),
            judge=judge,
            timeout_s=first_given(chosen.timeout_s, settings.timeout_s, None),
            max_tokens=first_given(chosen.max_tokens, settings.max_tokens, None),
            temperature=first_given(
                chosen.temperature,
                settings.temperature,
                _SAMPLING_TEMPERATURE if samples > 1 else None,
            ),
            cache_dir=chosen.cache_dir or settings.cache_dir,
            transport=chosen.transport or settings.transport,
            mode=mode,
            locale=first_given(chosen.locale, settings.locale, chosen.language),
            samples=samples,
            reconcile=chosen.reconcile or settings.reconcile,
            confidence=first_given(chosen.confidence, settings.confidence, chosen.confidence_from),
            repairs=first_given(chosen.repairs, settings.repairs, chosen.repairs_allowed),
            retry=chosen.retry or _retry_of(settings),
            prepare=first_given(chosen.prepare, settings.prepare, ()),
            prepare_with=chosen.prepare_with or settings.prepare_with,
            on_inconsistent=first_given(chosen.on_inconsistent, settings.on_inconsistent, "keep"),
            rating_samples=first_given(
                chosen.rating_samples, settings.rating_samples, chosen.ratings_each
            ),
        )
        _refuse_useless_writing(resolved, traits)
        template = chosen.template or (Path(settings.template) if settings.template else None)
        if isinstance(template, Path):
            template = resolved._open_template(template, traits) if traits.needs_prompt else None
        return replace(resolved, template=template, writer=_writer_of(resolved, settings, chosen))

    def _open_template(self, path: Path, traits: Traits) -> Template:
        return open_template(
            path.expanduser(), locale=self.language, mode=self.mode or traits.modes[0]
        )

    def open_judge(self) -> OpenJudge:
        """The judge that it names; nothing is sent or loaded before its first question."""
        if self.judge is None:
            raise InputError(Message("judging.no_judge"))
        judge = open_judge(self.judge, self)
        if self.prepare_with is None:
            return judge
        from evenhand.judges.prepared import PreparedJudge

        writer = self.writer or replace(self, judge=self.prepare_with)
        return PreparedJudge(judge, replace(writer, prepare_with=None).open_judge())

    def asks_identical(self, traits: Traits) -> bool:
        """Whether identical responses go to the judge. A replay keeps what was recorded."""
        return self.ask_identical or traits.by_id

    def ties_by_rule(self, pair: Pair, traits: Traits) -> bool:
        """Whether the responses are identical, so that nobody needs to be asked."""
        return pair.response_a == pair.response_b and not self.asks_identical(traits)

    def rates(self, traits: Traits) -> bool:
        """Whether responses of inconsistent pairs are scored alone; see `prepares`."""
        return self.on_inconsistent == "rate" and (traits.needs_prompt or traits.by_id)

    def writes(self, traits: Traits) -> bool:
        """Whether anything is written beside the verdicts."""
        return bool(self.prepares(traits)) or self.rates(traits)

    @property
    def ratings_each(self) -> int:
        return self.rating_samples or 1

    def prepares(self, traits: Traits) -> tuple[PrepareKind, ...]:
        """A judge that follows a rule reads nothing and has nothing written; one that replays has
        what was recorded."""
        return (self.prepare or ()) if traits.needs_prompt or traits.by_id else ()

    @property
    def needs_prompt(self) -> bool:
        """Whether the judge of this name reads a prompt: one that replays does not."""
        return traits_of(self.judge).needs_prompt

    @property
    def language(self) -> Locale:
        return self.locale or "en"

    @property
    def samples_per_order(self) -> int:
        return self.samples or 1

    @property
    def confidence_from(self) -> Literal["stated", "logprobs"]:
        return self.confidence or "stated"

    @property
    def repairs_allowed(self) -> int:
        return 1 if self.repairs is None else self.repairs

    @property
    def retry_policy(self) -> RetryPolicy:
        return self.retry or _RETRY

    def mode_for(self, judge: Judge) -> Mode:
        modes = judge.traits.modes
        mode = self.mode or modes[0]
        if mode not in modes:
            raise InputError(
                Message("judging.mode_not_possible", judge=judge.name, mode=mode, other=modes[0])
            )
        return mode

    def reconciling(self, mode: Mode) -> Reconciling:
        """Letters are decided on their mean probability; everything else by agreement."""
        how = self.reconcile or ("average" if mode == "letter" else "agreement")
        has_weights = (
            mode == "letter" or self.confidence == "logprobs" or self.samples_per_order > 1
        )
        if how == "average" and not has_weights:
            raise InputError(Message("judging.nothing_to_average"))
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
                    locale=self.language if reads_prompt else None,
                    mode=mode,
                    reconcile=self.reconciling(mode),
                    samples=self.samples_per_order,
                )
            )
        return self.calibration

    def template_for(self, mode: Mode) -> Template:
        template = self.template
        if template is None:
            return built_in_template(self.language, mode, prepared=bool(self.prepare))
        if isinstance(template, Path):
            return open_template(template.expanduser(), locale=self.language, mode=mode)
        if template.mode != mode or template.locale != self.language:
            raise InputError(
                Message(
                    "judging.template_of_another_mode",
                    name=template.name,
                    locale=template.locale,
                    mode=template.mode,
                    language=self.language,
                    mode2=mode,
                )
            )
        return template


_RETRY = RetryPolicy()
# Samples taken at temperature 0 are one sample over again.
_SAMPLING_TEMPERATURE = 1.0

OnInconsistent = Literal["keep", "rate"]
Value = TypeVar("Value")


def read_kinds(given: Any) -> tuple[PrepareKind, ...] | None:
    """What is to be prepared, in one order, each once: `metrics,reference` or a list of them."""
    if given is None:
        return None
    named = given.split(",") if isinstance(given, str) else given
    if not isinstance(named, Sequence):
        raise InputError(Message("judging.prepare_unknown", kind=given, kinds=PREPARE_KINDS))
    kinds = [str(each).strip() for each in named]
    if kinds == ["none"]:
        return ()
    for kind in kinds:
        if kind not in PREPARE_KINDS:
            raise InputError(Message("judging.prepare_unknown", kind=kind, kinds=PREPARE_KINDS))
    return tuple(kind for kind in PREPARE_KINDS if kind in kinds)


def first_given(option: Value | None, setting: Value | None, default: Value) -> Value:
    """What was chosen, else what the settings say, else the default."""
    if option is not None:
        return option
    return default if setting is None else setting


def _server_of(judge: str | None, settings: Settings, chosen: JudgeConfig) -> dict[str, Any]:
    """Where the judge is, and its key. The settings' address and key are those of
    OpenAI-compatible servers: no other provider is sent them."""
    of_openai = judge is not None and judge.strip().startswith("openai:")
    settled = settings.base_url if of_openai else None
    return {
        "base_url": read_addresses(chosen.base_url) or read_addresses(settled),
        "api_key": chosen.api_key or (settings.api_key if of_openai else None),
    }


def _writer_of(
    resolved: JudgeConfig, settings: Settings, chosen: JudgeConfig
) -> JudgeConfig | None:
    """The judge's own address and key are the writer's too where both are of one kind."""
    if resolved.prepare_with is None:
        return None
    kinds = [JudgeName.read(name).kind for name in (resolved.prepare_with, resolved.judge or "-:-")]
    its = chosen if kinds[0] == kinds[1] else replace(chosen, base_url=None, api_key=None)
    server = _server_of(resolved.prepare_with, settings, its)
    return replace(resolved, **server, judge=resolved.prepare_with)


def _refuse_useless_writing(resolved: JudgeConfig, traits: Traits) -> None:
    if resolved.prepare_with is not None:
        writer = traits_of(resolved.prepare_with)
        if not (writer.needs_prompt or writer.by_id):
            raise InputError(Message("judging.writer_writes_nothing", judge=resolved.prepare_with))
    repeated = resolved.rates(traits) and resolved.ratings_each > 1
    if repeated and traits.needs_prompt and not resolved.temperature:
        raise InputError(Message("judging.ratings_alike", n=resolved.ratings_each))


def read_addresses(given: str | Sequence[str] | None) -> tuple[str, ...]:
    """An empty one is how shells say that there is none."""
    texts = (given,) if isinstance(given, str) else given or ()
    return tuple(each for text in texts if text.strip() for each in split_addresses(text))


def _retry_of(settings: Settings) -> RetryPolicy:
    return _RETRY if settings.retries is None else RetryPolicy(attempts=settings.retries + 1)
