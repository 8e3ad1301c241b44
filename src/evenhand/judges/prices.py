"""What a pass costs, by the public price lists that genai-prices keeps."""

from __future__ import annotations

from evenhand.contract import Usage
from evenhand.judges.protocol import Traits


def cost_usd(usage: Usage, *, model: str | None, traits: Traits) -> float | None:
    """The cost in dollars; None where the tokens or the price are not known, never a guess."""
    if traits.free:
        return 0.0
    if model is None or usage.input_tokens is None or usage.output_tokens is None:
        return None
    if traits.provider is None and traits.api_url is None:
        return None
    # Imported here: it takes a fifth of a second, and only paid judges need it.
    from genai_prices import Usage as PricedUsage
    from genai_prices import calc_price

    priced = PricedUsage(
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        cache_read_tokens=usage.cached_input_tokens,
    )
    try:
        if traits.provider is not None:
            price = calc_price(priced, model, provider_id=traits.provider)
        else:
            price = calc_price(priced, model, provider_api_url=traits.api_url)
    except (LookupError, ValueError):
        return None
    return float(price.total_price)
