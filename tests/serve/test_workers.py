"""Server processes that die: replaced at once, then after pauses; given up only as a last thing."""

from __future__ import annotations

import multiprocessing
import time
from typing import Any, cast

import pytest

from evenhand.serve import running as workers
from evenhand.serve.running import _Worker


def worker(*, lived_s: float, ready: bool, early: int = 0, in_vain: int = 0) -> _Worker:
    """One that has just ended after so long a life."""
    ears, mouth = multiprocessing.Pipe(duplex=False)
    mouth.close()
    made = _Worker(cast("Any", None), ears, early=early, in_vain=in_vain)
    ears.close()
    made.began = time.monotonic() - lived_s
    made.ready = ready
    made.note_end()
    return made


def test_one_that_worked_for_a_while_is_replaced_at_once() -> None:
    ended = worker(lived_s=60, ready=True, early=3)
    assert (ended.early, ended.in_vain) == (0, 0)
    assert not ended.is_awaited


def test_one_that_was_killed_right_after_its_start_is_replaced_a_little_later() -> None:
    ended = worker(lived_s=1, ready=True)
    assert (ended.early, ended.in_vain) == (1, 0)
    assert ended.is_awaited
    assert ended.ended is not None
    ended.ended -= 0.5  # the first pause
    assert not ended.is_awaited


@pytest.mark.parametrize(("before", "pause_s"), [(1, 1.0), (2, 2.0), (5, 16.0), (6, 30.0)])
def test_each_early_end_in_a_row_doubles_the_pause(before: int, pause_s: float) -> None:
    ended = worker(lived_s=1, ready=True, early=before)
    assert ended.ended is not None
    ended.ended -= pause_s - 0.4
    assert ended.is_awaited
    ended.ended -= 0.4
    assert not ended.is_awaited


def test_one_that_never_came_up_counts_as_in_vain_however_long_it_took() -> None:
    ended = worker(lived_s=60, ready=False, in_vain=1)
    assert (ended.early, ended.in_vain) == (0, 2)
    assert ended.is_awaited
    assert workers._MOST_IN_VAIN > 2
