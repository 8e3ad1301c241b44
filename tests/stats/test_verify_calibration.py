"""Small versions of the long checks, so that the scripts themselves are held to work."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scripts.verify_calibrated_runs import (
    AUTO,
    LLMBAR,
    NATURAL,
    HeldOutScores,
    Judged,
    chosen_method,
    compare_methods,
    open_judges,
    pool_guarantee,
)
from scripts.verify_calibration import TRUTHS, simulated_gain


def _judge(family: str = "one", sets: tuple[str, ...] = LLMBAR, *, rows: int = 300) -> Judged:
    """Right in all of its longer verdicts and in every second of the others."""
    length = np.tile([-1.0, 1.0, -1.0, 1.0, -1.0], rows // 5) * np.linspace(1, 2, rows)
    right = ((length > 0) | (np.arange(rows) % 2 == 0)).astype(np.float64)
    return Judged("judge", family, sets, right, np.arange(rows), {"length": length})


def test_neither_a_relative_nor_the_same_pairs_choose_for_a_judge() -> None:
    judge = _judge("GPT-4", (NATURAL,))
    assert not _judge("GPT-4", ("pandalm",)).may_choose_for(judge)
    assert not _judge("Falcon", LLMBAR).may_choose_for(judge)
    assert _judge("Falcon", ("pandalm",)).may_choose_for(judge)


def test_of_methods_that_are_as_good_the_one_that_harms_least_often_is_chosen() -> None:
    def tested(bold: float, shy: float) -> HeldOutScores:
        brier = {"base rate": 0.2, "bold": 0.2 + bold, "shy": 0.2 + shy, "poor": 0.25}
        scores = {name: np.array([score]) for name, score in brier.items()}
        return HeldOutScores(_judge(), 50.0, scores, scores, np.ones(1))

    # Means of -0.0105 and -0.0100 are within a thousandth; the bold one is worse for one judge.
    assert chosen_method([tested(-0.0220, -0.0200), tested(+0.0010, 0.0)]) == "shy"
    assert chosen_method([tested(-0.0320, -0.0200), tested(+0.0010, 0.0)]) == "bold"


@pytest.mark.slow
def test_every_method_is_tested_on_prompts_that_it_did_not_see() -> None:
    judge = _judge()
    found = compare_methods(judge, [judge], splits=2, seed=0)
    assert found.learned_from == 150
    assert found.took_curve.tolist() == [1, 1]
    # The base rate's Brier score is p (1 - p); two groups of 60% and 40% have 0.6 * 0.25.
    right = judge.right.mean()
    assert found.brier["base rate"].mean() == pytest.approx(right * (1 - right), abs=0.01)
    assert found.brier[AUTO].mean() == pytest.approx(0.15, abs=0.02)
    granted, nowhere = pool_guarantee(judge, target=0.9, draws=10, splits=1, seed=0)
    assert (granted.draws, nowhere.draws) == (10, 0)
    assert granted.granted > 5


@pytest.mark.slow
def test_a_signal_pays_and_noise_costs_next_to_nothing() -> None:
    gain, curves = simulated_gain(TRUTHS["strong signals"], prompts=200, draws=20, seed=0)
    assert gain < -0.03
    assert curves > 0.9
    cost, curves = simulated_gain(TRUTHS["no signal matters"], prompts=100, draws=40, seed=0)
    assert cost < 0.001
    assert curves < 0.15


@pytest.mark.slow
@pytest.mark.recorded
def test_recorded_judges_are_read_by_pairs_and_orders(
    recorded_data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = (
        ("GPT-4", "judgments/llmbar__GPT-4_CoT", LLMBAR),
        ("GPT-4", "procedures/llmbar__GPT-4__Rating", LLMBAR),
    )
    monkeypatch.setattr("scripts.verify_calibrated_runs.RECORDED", own)
    found = open_judges(recorded_data, tmp_path / "runs.db")
    # Three sets and all of them: in both orders, in one, and rated.
    assert len(found) == 3 * 4
    # 326 pairs less 31 that are inconsistent
    assert [each.right.size for each in found if each.sets == LLMBAR][:2] == [326 - 31, 326]
    assert {"scores", "length"} == set(found[-1].signals)
