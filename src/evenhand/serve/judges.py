"""The judges that a server offers, by name, each opened once."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace

from evenhand.contract import Locale, Mode
from evenhand.contract.model import Model
from evenhand.errors import EvenhandError, InputError, JudgeError, SettingsError
from evenhand.judges.addresses import AddressRedactor
from evenhand.judges.prepared import writer_of
from evenhand.judges.protocol import Completion, Judge, JudgeCall, Traits, identity_of, news_of
from evenhand.judges.registry import JudgeOptions, open_judge
from evenhand.judging.config import Calibrator, JudgeConfig
from evenhand.messages import Message, Sentence
from evenhand.runs.plan import JudgePlan
from evenhand.serve.config import JudgeOffer, ServerConfig
from evenhand.serve.logs import log
from evenhand.settings import Settings

# A judge that is down fails every call; the log says so once in a while.
_LOGGED_EVERY_S = 10.0


class RedactedJudge:
    """An offered judge as clients meet it."""

    def __init__(self, judge: Judge, *, offer: str, base_urls: Sequence[str] = ()) -> None:
        self._judge = judge
        self._offer = offer
        self._hide = AddressRedactor(*base_urls)
        self._news = news_of(judge)
        self._logged_at: dict[str, float] = {}

    @property
    def name(self) -> str:
        return self._judge.name

    @property
    def traits(self) -> Traits:
        return self._judge.traits

    @property
    def identity(self) -> Mapping[str, object]:
        return identity_of(self._judge)

    @property
    def artefact_writer(self) -> Judge:
        writer = writer_of(self._judge)
        return self if writer is self._judge else writer

    async def ask(self, call: JudgeCall) -> Completion:
        try:
            return await self._judge.ask(call)
        except JudgeError as error:
            self._log(error)
            error.reword(self._hide(error.message))
            error.host = self._offer  # clients know it by that name
            raise
        finally:
            for each in self._news():
                what = "answers again" if each.kind is None else f"is skipped: {each.kind}"
                log.warning("judge %s: %s %s", self._offer, each.address, what)

    async def close(self) -> None:
        await self._judge.close()

    def _log(self, error: JudgeError) -> None:
        """Its kind alone: the message may quote what the judge was sent."""
        now = time.monotonic()
        if now - self._logged_at.get(error.kind, -_LOGGED_EVERY_S) >= _LOGGED_EVERY_S:
            self._logged_at[error.kind] = now
            log.warning("judge %s at %s: %s", self._offer, self._hide.address, error.kind)


# The judges that a server offers, by name, each opened once.
#
# A client names one of them and nothing else: no provider, no address, no file.


class OfferView(Model):
    """What clients may know of a judge: no address, no path, no key."""

    name: str
    judge: str
    mode: Mode
    locale: Locale
    caveat: Sentence | None = None


class JudgeCatalog:
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
        self._models: dict[str, Judge] = {}

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._offers)

    @property
    def default(self) -> str | None:
        return next(iter(self._offers), None)

    def offer(self, name: str | None = None) -> JudgeOffer:
        """The offer of this name; without one, the first."""
        if not self._offers:
            raise InputError(Message("serve.no_judge"))
        chosen = self.default if name is None else name
        offer = self._offers.get(chosen) if isinstance(chosen, str) else None
        if offer is None:
            raise InputError(
                Message(
                    "serve.judge_not_offered",
                    name=_shown(name),
                    offers=", ".join(self._offers),
                )
            )
        return offer

    def plan(self, name: str | None = None) -> JudgePlan:
        offer = self.offer(name)
        plan = self._plans.get(offer.name)
        if plan is None:
            plan = self._plans[offer.name] = self._opened(offer)
        return plan

    def model(self, name: str | None) -> Judge:
        """The same offer as a model that answers prompts: at its address, with its key. How it is
        asked as a judge is no model's affair."""
        offer = self.offer(name)
        model = self._models.get(offer.name)
        if model is None:
            config = JudgeConfig.resolve(self._settings, self._chosen(offer))
            if config.judge is None or not config.needs_prompt:
                raise InputError(Message("serve.judge_no_model", name=offer.name))
            options = JudgeOptions(
                base_url=config.base_url,
                api_key=config.api_key,
                timeout_s=config.timeout_s,
                cache_dir=config.cache_dir,
                transport=config.transport,
                answers=True,
            )
            model = self._redacted(offer, open_judge(config.judge, options), config)
            self._models[offer.name] = model
        return model

    def offered_or_named(self) -> list[OfferView]:
        """What a form may name; a judge that cannot be opened says so when it is used."""
        try:
            return self.offered()
        except EvenhandError:
            return [
                OfferView(name=name, judge=name, mode="reasoned", locale="en")
                for name in self.names
            ]

    def answering(self) -> list[str]:
        """Offers that can answer prompts, as far as their names tell."""

        def can(offer: JudgeOffer) -> bool:
            try:
                return offer.config.needs_prompt
            except EvenhandError:  # it says so when it is used
                return False

        return [name for name, offer in self._offers.items() if can(offer)]

    def offered(self) -> list[OfferView]:
        return [self._view(name) for name in self._offers]

    async def close(self) -> None:
        while self._plans:
            _, plan = self._plans.popitem()
            await plan.judge.close()
        while self._models:
            _, model = self._models.popitem()
            await model.close()

    def _view(self, name: str) -> OfferView:
        plan = self.plan(name)
        return OfferView(
            name=name,
            judge=plan.judge.name,
            mode=plan.config.mode_for(plan.judge),
            locale=plan.config.language,
            caveat=plan.judge.traits.caveat,
        )

    def _opened(self, offer: JudgeOffer) -> JudgePlan:
        config = JudgeConfig.resolve(self._settings, self._chosen(offer))
        judge = self._redacted(offer, config.open_judge(), config)
        config.reconciling(config.mode_for(judge))
        config.calibration_for(judge)
        return JudgePlan(judge, config)

    def _chosen(self, offer: JudgeOffer) -> JudgeConfig:
        """The offer's own, with its key and its calibration."""
        chosen = replace(offer.config, calibration=_calibration(offer))
        if offer.api_key_env is None:
            return chosen
        key = self._environment.get(offer.api_key_env, "").strip()
        if not key:
            raise SettingsError(
                Message("serve.judge_key_missing", name=offer.name, api_key_env=offer.api_key_env)
            )
        return replace(chosen, api_key=key)

    def _redacted(self, offer: JudgeOffer, judge: Judge, config: JudgeConfig) -> Judge:
        if self.shows_addresses:
            return judge
        named = () if judge.traits.api_url is None else (judge.traits.api_url,)
        base_urls = getattr(judge, "base_urls", named) or config.base_urls
        return RedactedJudge(judge, offer=offer.name, base_urls=base_urls)


def _calibration(offer: JudgeOffer) -> Calibrator | None:
    if offer.calibration is None:
        return None
    from evenhand.trust.calibration import open_calibration

    return open_calibration(offer.calibration)


def _shown(name: object) -> str:
    text = repr(name)
    return text if len(text) <= 80 else f"{text[:79]}…"
