"""What is prepared is in the estimate: counted by distinct texts, priced by who writes it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from evenhand import Price
from evenhand.contract import Criterion, Pair
from evenhand.data.options import ReadOptions
from evenhand.judges.registry import open_judge
from evenhand.judging.config import JudgeConfig
from evenhand.prompts import Prompt, built_in_template
from evenhand.prompts.preparation import artefact_messages
from evenhand.prompts.template import ChatMessage
from evenhand.runs import (
    Estimate,
    JudgePlan,
    Observer,
    RunOptions,
    given_pairs,
    judge_pairs,
)
from evenhand.runs.estimate import (
    ARTEFACT_TOKENS,
    ArtefactCounter,
    ArtefactCounts,
    estimate,
    tokens_of,
)
from evenhand.runs.plan import AppliedPrice
from evenhand.runs.preview import preview_run
from evenhand.store import open_store
from run_data import answer_to, pairings
from scripted import make_pair
from servers import StartServer, chat_reply

PRICE = Price(1.0, 10.0)
READING = ReadOptions(criteria=(Criterion(name="accuracy"),))
CONFIG = JudgeConfig(judge="openai:m", api_key="sk-loopback", prepare=("metrics", "analysis"))


def estimated(config: JudgeConfig, pairs: list[Pair], **more: Any) -> Estimate:
    """At the price of both."""
    assert config.judge is not None
    prices = AppliedPrice(PRICE, writing=PRICE)
    return estimate(
        len(pairs), pairs, open_judge(config.judge, config), config, prices=prices, **more
    )


def read_by(messages: Sequence[ChatMessage]) -> float:
    return sum(tokens_of(message.text) for message in messages)


def test_the_counter_knows_texts_that_pairs_share() -> None:
    counter = ArtefactCounter()
    for row in pairings(3, 4):
        counter.add(make_pair(**{k: v for k, v in row.items() if "model" not in k and k != "id"}))
    assert counter.counts == ArtefactCounts(3, 3, 12)
    # A reference of the caller's is one prompt less to write one for, and other responses to judge.
    counter.add(
        make_pair(prompt="What is 1 plus 1?", reference="2", response_a="x", response_b="x")
    )
    assert counter.counts == ArtefactCounts(4 - 1, 3, 13)


def test_what_is_prepared_adds_its_calls_its_tokens_and_its_price() -> None:
    """Ten pairs of two prompts and five responses each."""
    pairs = [make_pair(prompt="p" * 40, response_a="a" * 40, response_b="b" * 40)] * 10
    plain = estimated(replace(CONFIG, prepare=()), pairs)
    written = estimated(CONFIG, pairs, artefacts=ArtefactCounts(2, 2, 10))
    assert (plain.calls, written.calls) == (20, 20 + 2 + 10)
    asked_for_metrics = read_by(artefact_messages("metrics", pairs[0]))
    asked_for_analysis = read_by(artefact_messages("analysis", pairs[0], "a" * 40))
    # Each pass is shown the metrics and two analyses, and told what they are.
    told = [
        read_by(
            Prompt.of(pairs[0], built_in_template("en", "reasoned", prepared=p)).messages(
                "original"
            )
        )
        for p in (False, True)
    ]
    metrics, analysis = ARTEFACT_TOKENS["metrics"], ARTEFACT_TOKENS["analysis"]
    shown = 20 * (metrics.high + 2 * analysis.high + 1.25 * (told[1] - told[0]))
    read = 1.25 * (2 * asked_for_metrics + 10 * asked_for_analysis)
    assert written.input_tokens.high == pytest.approx(plain.input_tokens.high + shown + read)
    said = 2 * metrics.high + 10 * analysis.high
    assert written.output_tokens.high == pytest.approx(plain.output_tokens.high + said)
    assert plain.cost_usd is not None
    assert written.cost_usd is not None
    more = (shown + read) * 1.0 / 1e6 + said * 10.0 / 1e6
    # Tokens are whole ones for each call.
    assert written.cost_usd.high == pytest.approx(plain.cost_usd.high + more, rel=1e-3)


class Told(Observer):
    def approve(self, estimate: Estimate) -> None:
        self.estimate = estimate


async def test_a_run_is_estimated_by_what_its_pending_pairs_have_in_common(
    start_server: StartServer, tmp_path: Path
) -> None:
    """3 + 3 + 12 texts; where nobody names the models, or prompts are of one cluster, two responses
    for each of the 18 pairs."""
    server = start_server(lambda request: chat_reply(answer_to(request.prompt)))
    config = replace(CONFIG, base_url=server.url, prepare=("metrics", "reference", "analysis"))
    rows = pairings(3, 4)
    unnamed = [{k: v for k, v in row.items() if "model" not in k} for row in rows]
    clustered = [row | {"cluster": "all of them"} for row in rows]
    for place, (given, texts) in enumerate(((rows, 18), (unnamed, 42), (clustered, 42))):
        told, judge = Told(), config.open_judge()
        with open_store(tmp_path / f"{place}.db") as store:
            summary = await judge_pairs(
                given_pairs(given, READING),
                [JudgePlan(judge, config)],
                RunOptions(),
                store=store,
                observer=told,
            )
        await judge.close()
        assert told.estimate.calls == 36 + texts
        assert summary.calls == 36 + 18


def test_a_preview_counts_the_rows_and_shows_what_is_written_first() -> None:
    config = replace(CONFIG, prepare=("metrics", "reference", "analysis"))
    plan = JudgePlan(config.open_judge(), config)
    preview = preview_run(given_pairs(pairings(3, 4), READING), [plan], RunOptions(price=PRICE))
    assert preview.calls == 36 + 3 + 3 + 12
    assert [(each.artefact, each.order) for each in preview.requests] == [
        ("metrics", None),
        ("reference", None),
        ("analysis", None),
        ("analysis", None),
        (None, "original"),
    ]
    one, other = (each.messages[-1].content for each in preview.requests[2:4])
    assert "It is 2, by counting." in one
    assert "It is 3, by counting." in other
