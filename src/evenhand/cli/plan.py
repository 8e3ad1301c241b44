"""The command line's options as one procedure."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from evenhand.cli.options import pick
from evenhand.contract import Locale, Mode, Reconciling
from evenhand.judges import RetryPolicy, Traits
from evenhand.parse import Protocol
from evenhand.procedure import Procedure
from evenhand.prompts import Template, open_template
from evenhand.settings import Settings


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
) -> Procedure:
    chosen_locale = pick(locale, settings.locale, "en", ("en", "zh")) or "en"
    chosen_mode = pick(mode, settings.mode, None, ("reasoned", "letter"))
    # A default from the settings should not stop a judge that has only the other mode.
    if mode is None and chosen_mode is not None and chosen_mode not in traits.modes:
        chosen_mode = traits.modes[0]
    path = template or (Path(settings.template) if settings.template else None)
    opened: Template | None = None
    if path is not None and traits.needs_prompt:
        opened = open_template(
            path, locale=chosen_locale, mode=chosen_mode or traits.modes[0]
        )
    retry = RetryPolicy()
    tries = retries if retries is not None else settings.retries
    if tries is not None:
        retry = RetryPolicy(attempts=tries + 1)
    return Procedure(
        mode=chosen_mode,
        locale=chosen_locale,
        samples=settings.samples or 1,
        reconcile=pick(reconcile, settings.reconcile, None, ("agreement", "average")),
        confidence=pick(confidence, settings.confidence, "stated", ("stated", "logprobs"))
        or "stated",
        template=opened,
        protocol=protocol,
        repairs=_first(repairs, settings.repairs, 1),
        retry=retry,
        ask_identical=ask_identical,
    )


def _first(option: int | None, setting: int | None, default: int) -> int:
    if option is not None:
        return option
    return default if setting is None else setting
