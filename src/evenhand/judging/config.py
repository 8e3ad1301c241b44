"""Which judge is asked and how it judges a pair, as one frozen value, resolved from the caller's
choices, the settings and the judge's traits.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import NoneType
from typing import Any, Literal, Protocol

from evenhand.contract import ArtefactKind, JudgedBy, Locale, Mode, Pair, Reconciling
from evenhand.errors import InputError
from evenhand.judge_kinds import takes_address
from evenhand.judges.protocol import Judge, OpenJudge, Traits
from evenhand.judges.registry import (
    JudgeName,
    JudgeOptions,
    open_judge,
    traits_of,
)
from evenhand.judges.retry import RetryPolicy
from evenhand.prompts import Template, built_in_template, open_template
from evenhand.settings import Settings, split_addresses


class Calibrator(Protocol):
    """Makes a confidence the probability that the verdict is right.

    Implemented in `evenhand.trust`, with stores and statistics; a comparison needs neither.
    """

    def identity(self) -> Mapping[str, Any]:
        """What verdicts depend on, as plain JSON: part of a run's fingerprint."""

    def origin(self) -> Mapping[str, Any]:
        """What it was learned on, as plain JSON; not part of the fingerprint."""

    def check(self, asked: JudgedBy) -> None:
        """Refuse a judge that it was not learned on."""

    def probability(self, signals: Mapping[str, float | None]) -> float | None:
        """That a verdict with these signals is right; None if it has none."""

    def abstains(self, probability: float | None) -> bool:
        """Whether a verdict is less sure than promised; one without a probability always is."""


@dataclass(frozen=True, kw_only=True, repr=False)
class JudgeConfig(JudgeOptions):
    """Which judge to ask, where it is, and how it judges a pair.

    None: not chosen; `resolve` fills it in from the settings, else the properties below give the
    default.
    """

    # Opened by `resolve`.
    template: Template | Path | None = None  # type: ignore[assignment]
    retry: RetryPolicy | None = None  # in place of `retries`
    # The writer's config, with its own server and key, set by `resolve`.
    writer: JudgeConfig | None = field(default=None, repr=False, compare=False)
    calibration: Calibrator | None = None  # what trust.calibration.open_calibration gives

    def __post_init__(self) -> None:
        if callable(self.judge) or hasattr(self.judge, "ask"):
            raise InputError.of("judging.judge_no_name")
        super().__post_init__()
        if not isinstance(self.template, (Template, Path, NoneType)):
            raise InputError.of("judging.template_no_template", template=self.template)
        if not isinstance(self.retry, (RetryPolicy, NoneType)):
            raise InputError.of("judging.retry_no_policy", retry=self.retry)
        if self.calibration is not None and not hasattr(self.calibration, "probability"):
            raise InputError.of("judging.calibration_no_calibration", calibration=self.calibration)

    @classmethod
    def resolve(
        cls, settings: Settings, overrides: JudgeConfig | None = None, *, own: Judge | None = None
    ) -> JudgeConfig:
        """Choices, else settings, else defaults, the same for every caller.

        `own` is a judge that the caller has opened.
        """
        chosen = cls() if overrides is None else overrides
        if not isinstance(chosen, JudgeConfig):  # callers may be untyped
            raise InputError.of("judging.config_no_config", name=type(chosen).__name__)
        judge = None if own is not None else chosen.judge or settings.judge
        traits = traits_of(judge) if own is None else own.traits
        given = settings.chosen()
        # A default from the settings should not stop a judge that has only the other mode.
        if settings.mode not in traits.modes:
            given.pop("mode", None)
        resolved = chosen.over(given).over(cls.implied())
        resolved = replace(
            resolved,
            **_server_of(judge, settings, chosen),
            judge=judge,
            cache_dir=chosen.cache_dir or settings.cache_dir,
            transport=chosen.transport or settings.transport,
        )
        if resolved.temperature is None and resolved.samples_per_order > 1:
            resolved = replace(resolved, temperature=_SAMPLING_TEMPERATURE)
        _refuse_useless_writer(resolved)
        template = chosen.template or (Path(settings.template) if settings.template else None)
        if isinstance(template, Path):
            template = resolved._open_template(template, traits) if traits.needs_prompt else None
        return replace(resolved, template=template, writer=_writer_of(resolved, settings, chosen))

    def _open_template(self, path: Path, traits: Traits) -> Template:
        return open_template(
            path.expanduser(), locale=self.language, mode=self.mode or traits.modes[0]
        )

    def open_judge(self) -> OpenJudge:
        """The judge; nothing is sent or loaded before its first call."""
        if self.judge is None:
            raise InputError.of("judging.no_judge")
        judge = open_judge(self.judge, self)
        if self.prepare_with is None:
            return judge
        from evenhand.judges.prepared import PreparedJudge

        writer = self.writer or replace(self, judge=self.prepare_with)
        return PreparedJudge(judge, replace(writer, prepare_with=None).open_judge())

    def asks_identical(self, traits: Traits) -> bool:
        """Whether to ask about identical responses. A replay keeps what was recorded."""
        return bool(self.ask_identical) or traits.by_id

    def ties_by_rule(self, pair: Pair, traits: Traits) -> bool:
        """Whether the pair is a tie by rule, without asking."""
        return pair.response_a == pair.response_b and not self.asks_identical(traits)

    def prepares(self, traits: Traits) -> tuple[ArtefactKind, ...]:
        """Baselines read nothing, and replays have what was recorded."""
        return (self.prepare or ()) if traits.needs_prompt or traits.by_id else ()

    @property
    def needs_prompt(self) -> bool:
        """Whether this judge reads a prompt: a replay does not."""
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
        if self.retry is not None:
            return self.retry
        return RetryPolicy() if self.retries is None else RetryPolicy(attempts=self.retries + 1)

    def mode_for(self, judge: Judge) -> Mode:
        modes = judge.traits.modes
        mode = self.mode or modes[0]
        if mode not in modes:
            raise InputError.of(
                "judging.mode_not_possible", judge=judge.name, mode=mode, other=modes[0]
            )
        return mode

    def reconciling(self, mode: Mode) -> Reconciling:
        """Letter mode averages probabilities; everything else takes agreement."""
        how = self.reconcile or ("average" if mode == "letter" else "agreement")
        has_weights = (
            mode == "letter" or self.confidence == "logprobs" or self.samples_per_order > 1
        )
        if how == "average" and not has_weights:
            raise InputError.of("judging.nothing_to_average")
        return how

    def calibration_for(self, judge: Judge) -> Calibrator | None:
        """The calibration, checked to fit this judge."""
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
            raise InputError.of(
                "judging.template_of_another_mode",
                name=template.name,
                locale=template.locale,
                mode=template.mode,
                language=self.language,
                mode2=mode,
            )
        return template


# At temperature 0 all samples are the same.
_SAMPLING_TEMPERATURE = 1.0


def _server_of(judge: str | None, settings: Settings, chosen: JudgeConfig) -> dict[str, Any]:
    """The judge's address and key."""
    addressed = takes_address(judge)
    settled = settings.base_url if addressed else None
    return {
        "base_url": read_addresses(chosen.base_url) or read_addresses(settled),
        "api_key": chosen.api_key or (settings.api_key if addressed else None),
    }


def _writer_of(
    resolved: JudgeConfig, settings: Settings, chosen: JudgeConfig
) -> JudgeConfig | None:
    """The writer shares the judge's address and key if both are of one kind."""
    if resolved.prepare_with is None:
        return None
    kinds = [JudgeName.read(name).kind for name in (resolved.prepare_with, resolved.judge or "-:-")]
    its = chosen if kinds[0] == kinds[1] else replace(chosen, base_url=None, api_key=None)
    server = _server_of(resolved.prepare_with, settings, its)
    return replace(resolved, **server, judge=resolved.prepare_with)


def _refuse_useless_writer(resolved: JudgeConfig) -> None:
    if resolved.prepare_with is not None:
        writer = traits_of(resolved.prepare_with)
        if not (writer.needs_prompt or writer.by_id):
            raise InputError.of("judging.writer_writes_nothing", judge=resolved.prepare_with)


def read_addresses(given: str | Sequence[str] | None) -> tuple[str, ...]:
    """Shells pass an empty one for none."""
    texts = (given,) if isinstance(given, str) else given or ()
    return tuple(each for text in texts if text.strip() for each in split_addresses(text))
