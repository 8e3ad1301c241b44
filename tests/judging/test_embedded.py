"""The real embedded model, end to end: what `make demo` and `--judge local` do."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from evenhand.demo import demo_pairs
from evenhand.judges.protocol import Judge
from evenhand.judges.registry import JudgeOptions, open_judge
from evenhand.judging.comparison import compare
from evenhand.judging.config import JudgeConfig
from evenhand.settings import load_settings
from explained import mirrored, plain
from parts import need_model

pytestmark = pytest.mark.embedded


@pytest.fixture
async def local() -> AsyncIterator[Judge]:
    need_model()
    judge = open_judge("local", JudgeOptions(cache_dir=load_settings().cache_dir))
    yield judge
    await judge.close()


@pytest.mark.parametrize("which", [3, 10], ids=["en", "zh"])
async def test_it_answers_with_probabilities_and_mirrors_itself(local: Judge, which: int) -> None:
    demo = demo_pairs()[which]
    config = JudgeConfig(locale=demo.locale)
    one = await compare(demo.pair, local, config)
    other = await compare(demo.pair.mirrored(), local, config)
    assert one.metadata.confidence_source == "logprobs"
    assert one.overall_reasoning == ""
    assert one.metadata.usage.cost_usd == 0
    assert one.metadata.judge_caveat is not None
    assert all(entry.winner is not None for entry in one.comparison)
    left, right = mirrored(one.model_dump(mode="json")), plain(other.model_dump(mode="json"))
    for result in (left, right):
        # What its cache held differs between the two calls; what it said may not.
        for usage in (
            result["metadata"]["usage"],
            *(p["usage"] for p in result["metadata"]["passes"]),
        ):
            usage.pop("cachedInputTokens")
    assert left == right
