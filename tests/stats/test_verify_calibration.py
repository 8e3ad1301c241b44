"""Small versions of the long checks, so that the script itself is held to work."""

from __future__ import annotations

import pytest
from scripts.verify_calibration import DATA, half_and_half, pool_guarantee, recorded

needs_data = pytest.mark.skipif(
    not (DATA / "judgments").is_dir(), reason="the recorded judgments are not here"
)


@pytest.mark.slow
@needs_data
def test_a_recorded_judge_is_calibrated_on_the_other_half() -> None:
    verdicts = next(
        one for one in recorded(DATA, single_order=False) if one.name == "llmbar GPT-4_CoT"
    )
    # 100 natural, 134 neighbor and 92 gptinst pairs, every one read in both orders
    assert verdicts.right.size == 100 + 134 + 92
    found = half_and_half(verdicts, splits=3, seed=0)
    assert found.missed == []
    assert found.brier_after < found.brier_base < found.brier_before + 0.1
    assert found.error_after < 0.1


@pytest.mark.slow
@needs_data
def test_the_promise_holds_for_a_recorded_judge() -> None:
    verdicts = next(
        one for one in recorded(DATA, single_order=False) if one.name == "llmbar GPT-4_Swap"
    )
    broken, found, coverage = pool_guarantee(verdicts, draws=100, seed=0, target=0.9)
    # 5 % and three standard errors of 100 draws
    assert broken <= 0.05 + 3 * (0.05 * 0.95 / 100) ** 0.5
    assert found > 0.5
    assert 0 < coverage < 1
