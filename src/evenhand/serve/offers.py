"""The judges that a server offers, by name, each opened once.

A client names one of them and nothing else: no provider, no address, no file.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from evenhand import api, judges
from evenhand.contract import Locale, Mode
from evenhand.contract.model import Model
from evenhand.defaults import make_procedure
from evenhand.errors import InputError, SettingsError
from evenhand.judges import Judge
from evenhand.procedure import Calibrating
from evenhand.runs import JudgePlan
from evenhand.serve.config import JudgeOffer, ServerConfig
from evenhand.serve.discretion import DiscreetJudge
from evenhand.settings import Settings


class OfferView(Model):
    """What clients may know of a judge: no address, no path, no key."""

    name: str
    judge: str
    mode: Mode
    locale: Locale
    caveat: str | None = None


class Offers:
    """Opened at the first use, shared by comparisons and runs, closed at the end."""

    def __init__(
        self,
        config: ServerConfig,
        settings: Settings,
        *,
        environment: Mapping[str, str] | None = None,
        shows_addresses: bool = False,
    ) -> None:
        """`shows_addresses`: whoever asks is the operator, and may see where a judge is."""
        self._offers = {offer.name: offer for offer in config.judges}
        self._settings = settings
        self._environment = os.environ if environment is None else environment
        self.shows_addresses = shows_addresses
        self._plans: dict[str, JudgePlan] = {}

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._offers)

    @property
    def default(self) -> str | None:
        return next(iter(self._offers), None)

    def offer(self, name: str | None = None) -> JudgeOffer:
        """The offer of this name; without one, the first."""
        if not self._offers:
            raise InputError(
                "this server has no judge; start it with --judge openai:MODEL, or with a --config "
                "that has [[judges]]"
            )
        chosen = self.default if name is None else name
        found = self._offers.get(chosen) if isinstance(chosen, str) else None
        if found is None:
            raise InputError(
                f"judge is {_shown(name)}, which this server does not offer; "
                f"it offers {', '.join(self._offers)}"
            )
        return found

    def plan(self, name: str | None = None) -> JudgePlan:
        offer = self.offer(name)
        plan = self._plans.get(offer.name)
        if plan is None:
            plan = self._plans[offer.name] = self._opened(offer)
        return plan

    def offered(self) -> list[OfferView]:
        return [self._view(name) for name in self._offers]

    async def close(self) -> None:
        while self._plans:
            _, plan = self._plans.popitem()
            await plan.judge.close()

    def _view(self, name: str) -> OfferView:
        plan = self.plan(name)
        return OfferView(
            name=name,
            judge=plan.judge.name,
            mode=plan.procedure.mode_for(plan.judge),
            locale=plan.procedure.locale,
            caveat=plan.judge.traits.caveat,
        )

    def _opened(self, offer: JudgeOffer) -> JudgePlan:
        settings = _with_offer(self._settings, offer)
        judge = self._open(offer, settings)
        procedure = make_procedure(
            settings,
            judge.traits,
            mode=offer.mode,
            locale=offer.locale,
            reconcile=offer.reconcile,
            confidence=offer.confidence,
            retries=offer.retries,
            repairs=offer.repairs,
            calibration=_calibration(offer),
        )
        procedure.reconciling(procedure.mode_for(judge))
        procedure.calibration_for(judge)
        return JudgePlan(judge, procedure)

    def _open(self, offer: JudgeOffer, settings: Settings) -> Judge:
        options = api.judge_options(settings, offer.judge, base_url=offer.base_url)
        if offer.api_key_env is not None:
            key = self._environment.get(offer.api_key_env, "").strip()
            if not key:
                raise SettingsError(
                    f"judge {offer.name} takes its key from {offer.api_key_env}, which is not set; "
                    "set it"
                )
            options = replace(options, api_key=key)
        judge = judges.open_judge(offer.judge, options)
        if self.shows_addresses:
            return judge
        named = () if judge.traits.api_url is None else (judge.traits.api_url,)
        base_urls = getattr(judge, "base_urls", named) or options.base_urls
        return DiscreetJudge(judge, offer=offer.name, base_urls=base_urls)


def _with_offer(settings: Settings, offer: JudgeOffer) -> Settings:
    given: dict[str, Any] = {
        name: getattr(offer, name)
        for name in ("samples", "timeout_s", "max_tokens", "temperature", "template")
        if getattr(offer, name) is not None
    }
    return replace(settings, **given)


def _calibration(offer: JudgeOffer) -> Calibrating | None:
    if offer.calibration is None:
        return None
    from evenhand.trust.calibrations import open_calibration  # it brings NumPy

    return open_calibration(offer.calibration)


def _shown(name: object) -> str:
    text = repr(name)
    return text if len(text) <= 80 else f"{text[:79]}…"
