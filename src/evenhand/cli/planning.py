"""`evenhand plan`: how many pairs a difference needs, and what they will cost."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evenhand.cli import options as opt
from evenhand.cli import plan_options as popt
from evenhand.cli import run_options as ropt
from evenhand.cli import session
from evenhand.errors import EvenhandError, InputError

if TYPE_CHECKING:
    from evenhand.data import Reading
    from evenhand.judges.prices import Price
    from evenhand.runs import JudgePlan
    from evenhand.runs.call_cost import CallCost, LikeRun
    from evenhand.settings import Settings


def plan(
    data: popt.PlannedFiles = None,
    win_rate: popt.WinRates = None,
    min_win_rate: popt.MinWinRate = 0.5,
    pairs: popt.PairCount = None,
    power: popt.Power = 0.8,
    alpha: popt.Alpha = 0.05,
    tie_share: popt.TieShare = None,
    inconsistent_share: popt.InconsistentShare = None,
    rows_per_prompt: popt.RowsPerPrompt = 1,
    correlation: popt.Correlation = 0.0,
    samples: opt.Samples = None,
    judges: popt.Judges = None,
    no_swap: opt.NoSwap = False,
    until_decided: popt.UntilDecided = False,
    like: popt.Like = None,
    store: ropt.StoreAddress = None,
    price: ropt.PriceOption = None,
    tokens: popt.Tokens = None,
    judge: ropt.JudgeNames = None,
    criteria: opt.Criteria = None,
    columns: ropt.ColumnMap = None,
    base_url: opt.BaseUrl = None,
    locale: opt.LocaleName = None,
    mode: opt.ModeName = None,
    as_json: opt.AsJson = False,
) -> None:
    """Tell how many pairs a difference needs, or what a number of pairs can show, and the cost.

    The cost is known from a run like it (--like), from --price with --tokens, or from the data
    itself (PAIRS with --judge and -c). Nothing is asked of a judge.
    """
    from evenhand.cli.run_inputs import read_price, read_reading
    from evenhand.defaults import first_given
    from evenhand.settings import load_settings
    from evenhand.stats.planning import Certainty, Shape

    try:
        _check(data, win_rate, pairs, like=like, store=store, tokens=tokens, price=price)
        _check_estimated(data, judge=judge, criteria=criteria, columns=columns, base_url=base_url)
        settings = opt.with_judge_options(load_settings(), judge=None, samples=samples)
        priced = read_price(price)
        known = _like(like, store or settings.store, priced) if like else None
        cost = known.call_cost if known else None
        named = len(judge or ()) or (1 if data else None)
        if judges is not None and named is not None and judges != named:
            raise InputError(f"--judges is {judges}, but {named} are named; leave it out")
        if tokens is not None and priced is not None:
            cost = _by_price(tokens, priced)
        if data:
            reading = read_reading(
                columns, criteria, criteria_needed=True, no_tie=False, no_swap=no_swap
            )
            plans = _judge_plans(settings, judge, base_url=base_url, locale=locale, mode=mode)
            cost = _by_data(data, reading, plans, priced)
        shape = Shape(
            tie_share=first_given(tie_share, known and known.tie_share, 0.0),
            inconsistent_share=first_given(
                inconsistent_share, known and known.inconsistent_share, 0.0
            ),
            rows_per_prompt=rows_per_prompt,
            correlation=correlation,
            orders=1 if no_swap else known.orders if known else 2,
            samples=first_given(settings.samples, known and known.samples, 1),
            judges=first_given(judges or named, known and known.judges, 1),
        )
        certainty = Certainty(alpha=alpha, power=power)
        from evenhand.runs.pair_plans import plan_for_pairs, plan_for_win_rates

        if pairs is not None:
            planned = plan_for_pairs(
                pairs,
                min_win_rate=min_win_rate,
                certainty=certainty,
                shape=shape,
                early_stopping=until_decided,
                call_cost=cost,
            )
        else:
            planned = plan_for_win_rates(
                win_rate,
                min_win_rate=min_win_rate,
                certainty=certainty,
                shape=shape,
                early_stopping=until_decided,
                call_cost=cost,
            )
    except EvenhandError as error:
        session.fail(error, as_json=as_json, of_pair=False)
    if as_json:
        session.write_json(planned.model_dump_json(indent=2))
        return
    from evenhand.cli.show_planning import show_plans

    show_plans(session.out(), planned)


def _check(
    data: list[str] | None,
    win_rates: list[float] | None,
    pairs: int | None,
    *,
    like: str | None,
    store: str | None,
    tokens: str | None,
    price: str | None,
) -> None:
    if win_rates and pairs is not None:
        raise InputError("give either --win-rate or --pairs: one is found from the other")
    ways = [
        name for name, given in (("PAIRS", data), ("--like", like), ("--tokens", tokens)) if given
    ]
    if len(ways) > 1:
        raise InputError(
            f"the cost is known from one of {' and '.join(ways)}; leave the others out"
        )
    if store is not None and like is None:
        raise InputError("--store belongs to --like; leave it out")
    if tokens is not None and price is None:
        raise InputError("--tokens needs --price INPUT/OUTPUT, in dollars for a million tokens")
    if price is not None and not ways:
        raise InputError("--price needs the tokens of a call; give --tokens, --like RUN, or PAIRS")


def _check_estimated(data: list[str] | None, **given: object) -> None:
    for name, value in given.items():
        if value and not data:
            option = {"columns": "map", "criteria": "criterion"}.get(name, name.replace("_", "-"))
            raise InputError(f"--{option} belongs to PAIRS; give a file to estimate the cost from")


def _like(name: str, address: str | None, price: Price | None) -> LikeRun:
    from evenhand.cli.stores import opened_store
    from evenhand.runs.call_cost import like_run

    with opened_store(address) as store:
        return like_run(store, name, price=price)


def _by_price(tokens: str, price: Price) -> CallCost:
    from evenhand.runs.call_cost import cost_by_price

    first, _, second = tokens.partition("/")
    if not (first.strip().isdecimal() and second.strip().isdecimal()):
        raise InputError(
            f"--tokens {tokens!r} is not INPUT/OUTPUT; give whole numbers, e.g. --tokens 900/400"
        )
    return cost_by_price(price, input_tokens=int(first), output_tokens=int(second))


def _judge_plans(
    settings: Settings,
    named: list[str] | None,
    *,
    base_url: list[str] | None,
    locale: opt.LocaleName,
    mode: opt.ModeName,
) -> list[JudgePlan]:
    from evenhand import api
    from evenhand.defaults import make_procedure
    from evenhand.runs import JudgePlan

    plans = []
    for spec in named or [opt.require_judge(settings)]:
        opened = api.open_judge_for(settings, spec, base_url=base_url)
        procedure = make_procedure(settings, opened.traits, mode=mode, locale=locale)
        plans.append(JudgePlan(opened, procedure))
    return plans


def _by_data(
    data: list[str], reading: Reading, plans: list[JudgePlan], price: Price | None
) -> CallCost:
    from evenhand.cli.run_inputs import read_sources
    from evenhand.runs.call_cost import cost_by_data

    sources = read_sources(data, None, None, None, None, None, reading)

    async def estimated() -> CallCost:
        try:
            return cost_by_data(sources, plans, price=price)
        finally:
            sources.close()
            for each in plans:
                await each.judge.close()

    return session.run_async(estimated())
