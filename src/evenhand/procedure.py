"""How a pair is judged: the options of a comparison, as one frozen value."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import NoneType
from typing import Literal

from evenhand.contract import Locale, Mode, Reconciling
from evenhand.errors import InputError
from evenhand.judges import Judge, RetryPolicy
from evenhand.parse import PROTOCOLS, Protocol
from evenhand.prompts import Template, built_in_template


@dataclass(frozen=True, slots=True)
class Procedure:
    """None where the judge's own default holds."""

    mode: Mode | None = None
    locale: Locale = "en"
    samples: int = 1
    reconcile: Reconciling | None = None
    confidence: Literal["stated", "logprobs"] = "stated"
    template: Template | None = None
    protocol: Protocol | None = None  # the answer format of recorded completions
    repairs: int = 1  # how often an unread answer is shown to the judge again
    retry: RetryPolicy = field(default_factory=RetryPolicy)
    ask_identical: bool = True  # False: identical responses are a tie without asking

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

    def template_for(self, mode: Mode) -> Template:
        if self.template is None:
            return built_in_template(self.locale, mode)
        if self.template.mode != mode or self.template.locale != self.locale:
            raise InputError(
                f"template {self.template.name} was opened for {self.template.locale}, "
                f"{self.template.mode} mode, not for {self.locale}, {mode} mode; open it again"
            )
        return self.template
