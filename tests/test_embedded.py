"""The real embedded model, end to end: what `make demo` and `--judge local` do."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import AsyncIterator

import pytest

from evenhand.demo import demo_pairs
from evenhand.judges import Judge, JudgeOptions, embedded_model, open_judge
from evenhand.judging.comparison import compare
from evenhand.judging.config import JudgeConfig
from evenhand.settings import load_settings
from mirror import mirrored, plain

pytestmark = pytest.mark.embedded


@pytest.fixture
async def local() -> AsyncIterator[Judge]:
    cache = load_settings().cache_dir
    missing = embedded_model.locate(cache) is None or importlib.util.find_spec("xllamacpp") is None
    if missing:
        reason = "the embedded model is not there: extra `local`, then `evenhand models pull`"
        if os.environ.get("CI"):
            pytest.fail(reason)
        pytest.skip(reason)
    judge = open_judge("local", JudgeOptions(cache_dir=cache))
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
