"""Labels that all say the same: rounding must not make them certain."""

from __future__ import annotations

import pytest

from evenhand.stats.correction.corrected_rate import corrected_win_rate


@pytest.mark.slow
def test_labels_that_are_all_alike_never_leave_a_point() -> None:
    # Weights such as 20 / 12 round, and a mean of ones may then lie just below 1.
    critical = 1.959963984540054
    for pairs in range(10, 60):
        for labelled in range(10, pairs + 1):
            found = corrected_win_rate(
                [1.0, 0.0] * (pairs // 2) + [1.0] * (pairs % 2),
                list(range(labelled)),
                label_scores=[1.0] * labelled,
            ).people_only
            # Wilson's interval of n wins of n.
            wilson = labelled / (labelled + critical * critical)
            assert found.low == pytest.approx(wilson), (pairs, labelled)
            assert found.high == pytest.approx(1.0)


def test_alike_labels_of_repeated_prompts_never_leave_a_point() -> None:
    for pairs in range(20, 60, 2):
        for labelled in range(10, pairs + 1, 5):
            found = corrected_win_rate(
                [1.0, 0.0] * (pairs // 2),
                list(range(labelled)),
                label_scores=[1.0] * labelled,
                prompts=[row // 2 for row in range(pairs)],
            ).people_only
            if found.reason is None:
                # At least as far from 1 as if every row stood alone.
                assert found.low is not None
                assert found.low <= labelled / (labelled + 3.8), (pairs, labelled)
