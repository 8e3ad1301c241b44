"""Runs are addressed by their id or their name, also where the name is a number."""

from __future__ import annotations

from pathlib import Path

import pytest

from evenhand.errors import NotFound
from evenhand.serve.run_status import needed_run
from stored_runs import Row, make_run, opened, says


def test_a_run_named_by_a_number_is_found_by_it(tmp_path: Path) -> None:
    with opened(tmp_path) as store:
        first = make_run(store, "99", [Row("r1", says("A"))])
        make_run(store, "9" * 30, [Row("r1", says("A"))])
        assert needed_run(store, "99").id == first
        assert needed_run(store, "9" * 30).name == "9" * 30
        assert needed_run(store, str(first)).id == first  # an id comes first
        with pytest.raises(NotFound):
            needed_run(store, "98")
