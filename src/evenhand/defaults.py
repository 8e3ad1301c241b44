"""A procedure out of what was chosen, what the settings say and what the judge can do."""

from __future__ import annotations

from pathlib import Path
from typing import Literal, TypeVar

from evenhand.contract import Locale, Mode, Reconciling
from evenhand.judges import RetryPolicy, Traits
from evenhand.parse import Protocol
from evenhand.procedure import Calibrating, Procedure
from evenhand.prompts import Template, open_template
from evenhand.settings import Settings

Value = TypeVar("Value")


def first_given(option: Value | None, setting: Value | None, default: Value) -> Value:
    """What was chosen, else what the settings say, else the default."""
    if option is not None:
        return option
    return default if setting is None else setting


def make_procedure(
    settings: Settings,
    traits: Traits,
    *,
    mode: Mode | None = None,
    locale: Locale | None = None,
    reconcile: Reconciling | None = None,
    confidence: Literal["stated", "logprobs"] | None = None,
    template: Path | None = None,
    protocol: Protocol | None = None,
    retries: int | None = None,
    repairs: int | None = None,
    ask_identical: bool = True,
    calibration: Calibrating | None = None,
) -> Procedure:
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
    return Procedure(
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
