"""What the statistics load: no more than they need."""

from __future__ import annotations

import subprocess
import sys

import pytest


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
        "from evenhand.stats.ranking.leaderboard import rank_battles\n"
        "rank_battles(['x', 'y'], ['y', 'x'], ['A', 'A'])\n"
        "assert not {'scipy.stats', 'pandas', 'pyarrow'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)
