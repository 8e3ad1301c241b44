"""Tables that cannot be are refused with the pair that is wrong."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from evenhand.errors import InputError
from evenhand.stats.ranking.adaptive import count_pairs

ROOM = [[0, 9], [9, 0]]
SCORES = [[0, 3.5], [2.5, 0]]


def test_counts_know_what_is_done_waiting_and_open() -> None:
    counts = count_pairs(["a", "b"], SCORES, unasked=ROOM, in_flight=[[0, 2], [2, 0]])
    assert (counts.completed, counts.waiting, counts.open) == (6, 2, 9)


def test_what_the_caller_changes_later_does_not_reach_the_counts() -> None:
    scores = np.array(SCORES)
    counts = count_pairs(["a", "b"], scores, unasked=ROOM)
    scores[0, 1] = 99
    assert counts.scores[0, 1] == 3.5


@pytest.mark.parametrize(
    ("models", "tables", "message"),
    [
        ([], {}, "cannot rank 0 models; give at least 2"),
        (["a"], {"scores": [[0]]}, "cannot rank 1 models; give at least 2"),
        (["a", "a"], {}, "model 'a' appears twice; give each model its own name"),
        (["a", "b"], {"scores": [[0, 1]]}, "scores has shape (1, 2) for 2 models;"),
        (["a", "b"], {"scores": [[0, "x"], [1, 0]]}, "scores is not a table of numbers"),
        (
            ["a", "b"],
            {"scores": [[0, float("nan")], [1, 0]]},
            "scores of 'a' and 'b' is nan; give 0 or more",
        ),
        (["a", "b"], {"scores": [[0, 1], [-1, 0]]}, "scores of 'b' and 'a' is -1; give 0"),
        (
            ["a", "b"],
            {"scores": [[1, 1], [1, 0]]},
            "scores of 'a' and 'a' is 1; a model has 0 against",
        ),
        (
            ["a", "b"],
            {"scores": [[0, 0.7], [1, 0]]},
            "comparisons of 'a' and 'b' is 1.7; give whole numbers",
        ),
        (
            ["a", "b"],
            {"unasked": [[0, 1], [2, 0]]},
            "unasked of 'a' and 'b' is 1; give the same number in both directions",
        ),
        (
            ["a", "b"],
            {"in_flight": [[0, 0.5], [0.5, 0]]},
            "in_flight of 'a' and 'b' is 0.5; give whole numbers",
        ),
        (
            ["a", "b"],
            {"ties": [[0, 6], [6, 0]]},
            "ties of 'b' and 'a' is 6; give at most the number of games",
        ),
    ],
)
def test_tables_that_cannot_be_are_refused(
    models: list[str], tables: dict[str, Any], message: str
) -> None:
    given: dict[str, Any] = {"scores": SCORES, "unasked": ROOM, **tables}
    with pytest.raises(InputError) as caught:
        count_pairs(models, given.pop("scores"), **given)
    assert caught.value.message.startswith(message)
