"""At what price a judge's calls are reckoned, and what to say where that is an assumption."""

from __future__ import annotations

from dataclasses import dataclass

from evenhand.errors import InputError
from evenhand.judges import Judge
from evenhand.judges.prices import Price, list_price_by_model, price_known
from evenhand.runs.options import RunOptions
from evenhand.runs.plan import JudgePlan


@dataclass(frozen=True, slots=True)
class Reckoning:
    """`price` is None where the price lists have the judge."""

    price: Price | None
    note: str | None = None


def reckon(plan: JudgePlan, options: RunOptions) -> Reckoning:
    """The caller's price, or the lists'. A cap on cost needs one or the other."""
    judge, model = plan.judge, model_of(plan.judge)
    own = plan.price or options.price
    if own is not None or options.max_cost is None:
        return Reckoning(own)
    if price_known(model, judge.traits):
        return Reckoning(None)
    assumed = list_price_by_model(model) if model else None
    if assumed is None:
        raise InputError(
            f"the price of {judge.name} is not known, so --max-cost cannot be kept; "
            "give --price INPUT/OUTPUT (dollars for a million tokens), or use --max-calls"
        )
    return Reckoning(
        assumed,
        f"{judge.name} is reckoned at the public price of {model} "
        f"({assumed.input_per_million:g}/{assumed.output_per_million:g} dollars for a million "
        "tokens in/out), since its server is on no price list; --price sets your own",
    )


def model_of(judge: Judge) -> str | None:
    return judge.name.partition(":")[2] or None
