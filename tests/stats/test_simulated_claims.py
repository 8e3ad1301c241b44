"""A smaller one of `scripts.verify_conclusions --claims`: faults that tempt a gate into a claim."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scripts.simulated_claims import Claim, guard_rails, rules, simulate

from evenhand.contract.codes import INCONSISTENT, INVALID, TIE, WIN_A, WIN_B
from evenhand.stats.rates.win_rate import Circumstances, win_rate
from parts import examples


@pytest.mark.parametrize(
    "claim",
    [
        Claim("coin pairs", 300, 0.35, share=0.6),
        Claim("hardly a winner", 100, 0.5, ties=0.95),
        Claim("missing losses", 1000, 0.5, share=0.02),
    ],
    ids=str,
)
def test_no_fault_passes_a_gate_at_its_true_rate(claim: Claim) -> None:
    rng = np.random.default_rng(0)
    passed = np.mean([rules(simulate(rng, claim), claim.rate)[0] for _ in range(200)])
    # Nominal 2.5%, and three standard errors of 200 replicates: 3·√(0.025·0.975/200) = 3.3%.
    assert passed <= 0.058


def test_guard_rails_hold_together() -> None:
    assert guard_rails(np.random.default_rng(0), 150) <= 0.063


@given(
    st.lists(st.sampled_from([WIN_A, WIN_B, TIE, INCONSISTENT, INVALID]), min_size=6, max_size=80),
    st.integers(1, 4),
    st.integers(0, 5),
    st.sampled_from([0.4, 0.5, 0.6]),
)
@settings(max_examples=examples(80), deadline=None)
def test_the_other_side_has_the_mirrored_ruling(
    outcomes: list[int], rows: int, absent: int, threshold: float
) -> None:
    codes = np.array(outcomes, dtype=np.int8)
    turned = np.where(codes <= WIN_B, WIN_B - codes, codes)
    prompts = np.arange(codes.size) // rows
    known = Circumstances(flipped=codes == INCONSISTENT, absent=absent)
    one, other = (win_rate(each, prompts=prompts, circumstances=known) for each in (codes, turned))
    passed, failed = rules(one, threshold)
    assert rules(other, round(1 - threshold, 12)) == (failed, passed)
    assert one.sign_flip == other.sign_flip
    assert (one.may_be_chance, one.mostly_flips) == (other.may_be_chance, other.mostly_flips)
    if one.half_low is not None and other.half_high is not None:
        assert one.half_low == pytest.approx(1 - other.half_high)
