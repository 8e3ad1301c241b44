"""What a request costs, by the caller's price or genai-prices."""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from ipaddress import ip_address
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from evenhand.contract import Usage
from evenhand.errors import SettingsError
from evenhand.judges.protocol import Traits

if TYPE_CHECKING:
    from genai_prices.types import PriceCalculation

_MILLION = Decimal(1_000_000)
# So few tokens cost the first tier's price.
_A_FEW = 1000


@dataclass(frozen=True, slots=True)
class Price:
    """Dollars per million tokens; cached input counts as input."""

    input_per_million: float
    output_per_million: float

    def __post_init__(self) -> None:
        for what, dollars in (
            ("input_per_million", self.input_per_million),
            ("output_per_million", self.output_per_million),
        ):
            if not (math.isfinite(dollars) and dollars >= 0):
                raise SettingsError.of("judges.price_outside", what=what, dollars=dollars)


def read_price(given: str, *, where: str) -> Price:
    """A price such as 0.15/0.60; `where` is its option or setting."""
    first, slash, second = given.partition("/")
    try:
        if not slash:
            raise ValueError
        return Price(float(first), float(second))
    except ValueError:
        raise SettingsError.of("judges.price_malformed", where=where, given=given) from None


def cost_usd(
    usage: Usage, *, model: str | None, traits: Traits, price: Price | None = None
) -> float | None:
    """In dollars; None if tokens or price are unknown."""
    if traits.free:
        return 0.0
    if usage.input_tokens is None or usage.output_tokens is None:
        return None
    if price is not None:
        return (
            usage.input_tokens * price.input_per_million
            + usage.output_tokens * price.output_per_million
        ) / 1e6
    listed = _listed(model, traits.provider, traits.api_url)
    if listed is None or model is None:
        return None
    cached = usage.cached_input_tokens
    if listed.rates is not None and (cached or 0) <= usage.input_tokens:
        return listed.rates.cost_usd(usage.input_tokens, usage.output_tokens, cached or 0)
    try:
        return _calculated(
            model,
            traits.provider,
            traits.api_url,
            tokens=(usage.input_tokens, usage.output_tokens, cached),
        )
    except (LookupError, ValueError):
        return None


def price_known(model: str | None, traits: Traits, price: Price | None = None) -> bool:
    """Whether `cost_usd` has a price for this judge."""
    if traits.free or price is not None:
        return True
    return _listed(model, traits.provider, traits.api_url) is not None


def list_price_by_model(model: str) -> Price | None:
    """The list price by the model's name alone: only an estimate.

    Gateways prefix the maker (openai/gpt-4.1-mini), which no list does.
    """
    for name in dict.fromkeys((model, model.rpartition("/")[2])):
        try:
            priced = _calculation(name, None, None, tokens=(_A_FEW, _A_FEW, None))
        except (LookupError, ValueError):
            continue
        return Price(
            float(priced.input_price * _MILLION / _A_FEW),
            float(priced.output_price * _MILLION / _A_FEW),
        )
    return None


@dataclass(frozen=True, slots=True)
class _Rates:
    """Flat dollars per million tokens.

    genai-prices takes 100 µs per request to resolve a model's list; this is the same sum.
    """

    input: Decimal
    output: Decimal
    cached_input: Decimal

    def cost_usd(self, input_tokens: int, output_tokens: int, cached: int) -> float:
        dollars = (
            (input_tokens - cached) * self.input
            + cached * self.cached_input
            + output_tokens * self.output
        )
        return float(dollars / _MILLION)


@dataclass(frozen=True, slots=True)
class _Listed:
    """A listed model; `rates` is None if its price has tiers or varies by hour."""

    rates: _Rates | None


# An unknown model would search every list on each request.
@lru_cache(maxsize=256)
def _listed(model: str | None, provider: str | None, api_url: str | None) -> _Listed | None:
    if model is None or (provider is None and (api_url is None or _is_numbered(api_url))):
        return None
    try:
        calculated = _calculation(model, provider, api_url, tokens=(_A_FEW, _A_FEW, None))
    except (LookupError, ValueError):
        return None
    return _Listed(_flat_rates(calculated))


def _is_numbered(api_url: str) -> bool:
    """localhost and plain IP addresses are on no price list, and the lists are slow to load."""
    host = urlsplit(api_url).hostname or ""
    try:
        ip_address(host)
    except ValueError:
        return host == "localhost"
    return True


# Usages at which the rates must match: none, little, and more than any tier.
_PROBES = ((0, 0, 0), (7, 5, 3), (30_000_000, 9_000_000, 4_000_000))


def _flat_rates(calculated: PriceCalculation) -> _Rates | None:
    from genai_prices import Usage as PricedUsage
    from genai_prices.types import ModelPrice

    prices = calculated.model.prices
    if not isinstance(prices, ModelPrice):  # by date or by the hour
        return None
    input_rate, output_rate = prices.input_mtok, prices.output_mtok
    cached_rate = prices.cache_read_mtok
    if cached_rate is None:
        cached_rate = input_rate
    if not (
        isinstance(input_rate, Decimal)
        and isinstance(output_rate, Decimal)
        and isinstance(cached_rate, Decimal)
    ):
        return None
    rates = _Rates(input_rate, output_rate, cached_rate)
    for input_tokens, output_tokens, cached in _PROBES:
        used = PricedUsage(
            input_tokens=input_tokens, output_tokens=output_tokens, cache_read_tokens=cached
        )
        total = float(prices.calc_price(used)["total_price"])
        if total != rates.cost_usd(input_tokens, output_tokens, cached):
            return None  # the list counts something that these rates leave out
    return rates


_Tokens = tuple[int, int, int | None]  # input, output, and how many of the input were cached


def _calculated(model: str, provider: str | None, api_url: str | None, *, tokens: _Tokens) -> float:
    return float(_calculation(model, provider, api_url, tokens=tokens).total_price)


def _calculation(
    model: str, provider: str | None, api_url: str | None, *, tokens: _Tokens
) -> PriceCalculation:
    # Slow to import (0.2 s), and only paid judges need it.
    from genai_prices import Usage as PricedUsage
    from genai_prices import calc_price

    input_tokens, output_tokens, cached = tokens
    used = PricedUsage(
        input_tokens=input_tokens, output_tokens=output_tokens, cache_read_tokens=cached
    )
    if provider is not None:
        return calc_price(used, model, provider_id=provider)
    return calc_price(used, model, provider_api_url=api_url)
