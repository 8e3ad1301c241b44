"""The door of the room: its names are there, and NumPy is not loaded before one is used."""

from __future__ import annotations

import subprocess
import sys

import pytest

import evenhand.stats


def test_every_name_can_be_had() -> None:
    assert sorted(evenhand.stats.__all__) == dir(evenhand.stats)
    for name in evenhand.stats.__all__:
        assert getattr(evenhand.stats, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        evenhand.stats.nothing  # noqa: B018


@pytest.mark.parametrize("module", ["", ".proportions", ".ranking.result"])
def test_light_parts_load_no_numpy(module: str) -> None:
    code = (
        f"import sys, evenhand.stats{module}\n"
        "assert not {'numpy', 'scipy'} & set(sys.modules), 'numpy is loaded'"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)


def test_a_ranking_loads_neither_scipys_statistics_nor_pandas_nor_arrow() -> None:
    code = (
        "import sys\n"
        "from evenhand.stats import rank_battles\n"
        "rank_battles(['x', 'y'], ['y', 'x'], ['A', 'A'])\n"
        "assert not {'scipy.stats', 'pandas', 'pyarrow'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)
