"""What a plan says, in both languages; `tests/cli/test_plan_command.py` has its options."""

from __future__ import annotations

import pytest

from command_line import Command
from evenhand.analyses.plan import blocks, compute
from evenhand.analyses.registry import PLAN, AnalysisSubject, check
from evenhand.analysis_options import PlanOptions
from evenhand.blocks import Facts, Title
from evenhand.errors import InputError
from evenhand.messages import Language, render
from evenhand.present.blocks import markdown
from evenhand.settings import Settings

NOTHING = AnalysisSubject(None, (), Settings())


def test_a_plan_needs_no_store_and_speaks_chinese() -> None:
    options = PlanOptions(win_rate=(0.6,), price="1/1", tokens="900/100", until_decided=True)
    check(PLAN, options)
    planned = compute(NOTHING, options)
    title, facts = blocks(planned)
    assert isinstance(title, Title)
    assert render(title.text, "zh") == "要测出 0.6 的真实胜率（功效 80%，alpha 0.05）"
    assert isinstance(facts, Facts)
    shown = {
        render(name, "zh"): render(fact, "zh") for name, fact in facts.rows if isinstance(fact, str)
    }
    assert shown["每个样本对"] == "2 种顺序 × 1 次采样 × 1 个评审；平局 0%，不一致 0%"
    # 900 + 100 tokens at a dollar for a million each: 0.001 dollars.
    call = "输入 900 个词元，输出 100 个、$0.001（来源：给定的价格和词元数）"
    assert shown["每次调用"] == call
    (plan,) = planned.plans
    assert shown["调用"] == f"至多 {plan.calls:,}"


def test_the_same_call_that_two_options_price_is_refused() -> None:
    with pytest.raises(InputError, match="give only one of --like and --tokens"):
        check(PLAN, PlanOptions(like="r", tokens="9/4", price="1/1"))


def test_no_server_offers_a_plan() -> None:
    from evenhand.serve.http.reports import router
    from evenhand.serve.pages.analysis import PAGES

    assert not PLAN.served
    assert not [route for route in router.routes if PLAN.name in getattr(route, "path", "")]
    assert not [page for page in PAGES if PLAN.name in page.path]


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_widest_table_fits_a_terminal_and_reads_as_markdown(
    language: Language, command: Command
) -> None:
    options = PlanOptions(
        inconsistent_share=0.1, until_decided=True, price="0.15/0.60", tokens="900/400"
    )
    planned = compute(NOTHING, options)
    # Columns, the line below them, and six win rates.
    assert markdown(blocks(planned), language).count("\n|") == 1 + 1 + 6
    asked = ("--inconsistent-share", "0.1", "--until-decided")
    shown = command("plan", *asked, "--price", "0.15/0.60", "--tokens", "900/400")
    assert max(map(len, shown.out.splitlines())) <= 80
