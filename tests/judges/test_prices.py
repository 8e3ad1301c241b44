"""What a request costs: the caller's own price, the public lists, and nothing made up."""

from __future__ import annotations

from functools import cache

import pytest
from genai_prices import Usage as PricedUsage
from genai_prices import calc_price
from genai_prices.data_snapshot import get_snapshot
from hypothesis import given
from hypothesis import strategies as st

from evenhand.contract import Usage
from evenhand.errors import SettingsError
from evenhand.judges.prices import Price, cost_usd, list_price_by_model, price_known
from evenhand.judges.protocol import Traits

OPENAI = Traits(api_url="https://api.openai.com/v1")
LOOPBACK = Traits(api_url="http://127.0.0.1:8000/v1")
FREE = Traits(free=True)
USED = Usage(input_tokens=2_000_000, output_tokens=500_000, requests=1)


@cache
def every_listed_model() -> list[tuple[str, str]]:
    return [(p.id, m.id) for p in get_snapshot().providers for m in p.models]


counts = st.one_of(st.integers(0, 100), st.integers(0, 5_000_000))


@given(st.data(), counts, counts, st.none() | counts)
def test_every_listed_price_is_what_the_price_list_says(
    data: st.DataObject, input_tokens: int, output_tokens: int, cached: int | None
) -> None:
    provider, model = data.draw(st.sampled_from(every_listed_model()))
    used = PricedUsage(
        input_tokens=input_tokens, output_tokens=output_tokens, cache_read_tokens=cached
    )
    expected: float | None
    try:
        expected = float(calc_price(used, model, provider_id=provider).total_price)
    except (LookupError, ValueError):
        expected = None
    usage = Usage(
        input_tokens=input_tokens, output_tokens=output_tokens, cached_input_tokens=cached
    )
    traits = Traits(provider=provider)
    assert cost_usd(usage, model=model, traits=traits) == expected
    if expected is not None:
        assert price_known(model, traits)


def test_a_price_that_steps_with_size_is_that_of_each_request() -> None:
    # gemini-2.5-pro: $1.25 a million up to 200,000 input tokens, $2.50 beyond; output $10, $15.
    google = Traits(provider="google")
    small = Usage(input_tokens=100_000, output_tokens=0)
    large = Usage(input_tokens=300_000, output_tokens=1_000_000)
    assert cost_usd(small, model="gemini-2.5-pro", traits=google) == pytest.approx(0.125)
    assert cost_usd(large, model="gemini-2.5-pro", traits=google) == pytest.approx(0.75 + 15)


def test_cached_input_has_its_own_price_on_the_list() -> None:
    # gpt-4.1-mini: $0.40 a million input, $0.10 of it cached, $1.60 output.
    usage = Usage(input_tokens=1_000_000, output_tokens=0, cached_input_tokens=250_000)
    cost = cost_usd(usage, model="gpt-4.1-mini", traits=OPENAI)
    assert cost == pytest.approx(0.75 * 0.40 + 0.25 * 0.10)


@pytest.mark.parametrize(
    ("model", "traits"),
    [("gpt-4.1-mini", LOOPBACK), ("no-such-model", OPENAI), (None, OPENAI), ("m", Traits())],
)
def test_an_unlisted_price_is_none_until_the_caller_gives_one(
    model: str | None, traits: Traits
) -> None:
    own = Price(input_per_million=0.5, output_per_million=2.0)
    assert cost_usd(USED, model=model, traits=traits) is None
    assert not price_known(model, traits)
    # 2 million in at $0.50, half a million out at $2.
    assert cost_usd(USED, model=model, traits=traits, price=own) == pytest.approx(2.0)
    assert price_known(model, traits, own)


def test_the_callers_price_overrides_the_list() -> None:
    own = Price(1.0, 0.0)
    assert cost_usd(USED, model="gpt-4.1-mini", traits=OPENAI, price=own) == pytest.approx(2.0)


def test_a_free_judge_costs_nothing_whatever_the_price() -> None:
    assert cost_usd(Usage(), model=None, traits=FREE, price=Price(1.0, 1.0)) == 0.0
    assert price_known(None, FREE)


@pytest.mark.parametrize("usage", [Usage(), Usage(input_tokens=1), Usage(output_tokens=1)])
def test_without_tokens_there_is_no_cost_at_any_price(usage: Usage) -> None:
    assert cost_usd(usage, model="gpt-4.1-mini", traits=OPENAI) is None
    assert cost_usd(usage, model="m", traits=LOOPBACK, price=Price(1.0, 1.0)) is None


@pytest.mark.parametrize("name", ["gpt-4.1-mini", "openai/gpt-4.1-mini"])
def test_a_gateways_model_is_found_by_its_name_alone(name: str) -> None:
    assert list_price_by_model(name) == Price(0.4, 1.6)


def test_a_model_on_no_list_has_no_list_price() -> None:
    assert list_price_by_model("no-such-model") is None
    assert list_price_by_model("") is None


@pytest.mark.parametrize("dollars", [-1.0, float("nan"), float("inf")])
def test_a_price_is_dollars_from_nothing_upwards(dollars: float) -> None:
    with pytest.raises(SettingsError, match=r"output_per_million is .*; give dollars"):
        Price(1.0, dollars)
