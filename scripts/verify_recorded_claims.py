"""How many recorded judges still pass a gate where the true win rate is 0.65?

python -m scripts.verify_recorded_claims [--replicates 200] [--pairs 300] [--seed 0]

The verdicts of `../shared/data` in both orders, on labelled pairs. Each replicate draws pairs with
replacement, exchanges A and B so that the label favours A in 65%, and gates at one half: by the
interval alone, and with the sign-flip test and the rule on flips. A judge passes where at least
half of its replicates do. The last table is in docs/statistics.md.
"""

from __future__ import annotations

import argparse
import gzip
import json
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from evenhand.contract.codes import INCONSISTENT, INVALID, TIE, WIN_A, WIN_B
from evenhand.stats.rates.win_rate import Circumstances, win_rate

DATA = Path(__file__).resolve().parent.parent.parent / "shared" / "data"
RATE = 0.65
FEWEST = 80
_TURNED = {"A": "B", "B": "A", "TIE": "TIE"}
_CODES = {"A": WIN_A, "B": WIN_B, "TIE": TIE}


def labels() -> dict[str, tuple[str, str]]:
    """Of each pair that has a winner: its set and its label."""
    found = {}
    for path in sorted((DATA / "pairs").glob("*.jsonl")):
        for line in path.read_text("utf-8").splitlines():
            row = json.loads(line)
            if row.get("label") in ("A", "B"):
                found[str(row["id"])] = path.stem, row["label"]
    return found


def verdicts(path: Path) -> dict[str, dict[str, str | None]]:
    """Of each pair, what each order named, in the labels of the data."""
    passes: defaultdict[str, dict[str, str | None]] = defaultdict(dict)
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            row = json.loads(line)
            said = row.get("verdict_as_shown")
            if row.get("pass") == "swapped" and said is not None:
                said = _TURNED[said]
            if "pass" in row:
                passes[str(row["id"])].setdefault(row["pass"], said)
    return passes


def judged(path: Path, known: dict[str, tuple[str, str]]) -> Iterator[tuple[str, NDArray[np.int8]]]:
    """Of each set, outcomes turned so that the label is A."""
    outcomes: defaultdict[str, list[int]] = defaultdict(list)
    for id_, orders in verdicts(path).items():
        if id_ not in known or set(orders) != {"original", "swapped"}:
            continue
        of, label = known[id_]
        first, second = orders["original"], orders["swapped"]
        code = INVALID if first is None or second is None else INCONSISTENT
        if first is not None and first == second:
            code = _CODES[first]
        if label == "B" and code <= WIN_B:
            code = WIN_B - code
        outcomes[of].append(code)
    for of, codes in sorted(outcomes.items()):
        if len(codes) >= FEWEST:
            yield of, np.array(codes, dtype=np.int8)


def passes(
    rng: np.random.Generator, codes: NDArray[np.int8], *, pairs: int, replicates: int
) -> tuple[float, float]:
    by_interval = by_all = 0
    for _ in range(replicates):
        drawn = codes[rng.integers(0, codes.size, pairs)]
        turned = (rng.random(pairs) >= RATE) & (drawn <= WIN_B)
        outcomes = np.where(turned, WIN_B - drawn, drawn)
        rate = win_rate(outcomes, circumstances=Circumstances(flipped=outcomes == INCONSISTENT))
        above = rate.low is not None and rate.low > 0.5
        by_interval += above
        by_all += above and rate.shows_difference
    return by_interval / replicates, by_all / replicates


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    options.add_argument("--replicates", type=int, default=200)
    options.add_argument("--pairs", type=int, default=300)
    options.add_argument("--seed", type=int, default=0)
    chosen = options.parse_args()
    if not DATA.exists():
        print(f"no recorded judges: {DATA} is missing")
        return 0
    rng = np.random.default_rng(chosen.seed)
    known, sets = labels(), []
    for folder in ("judgments", "procedures"):
        for path in sorted((DATA / folder).glob("*.jsonl.gz")):
            for of, codes in judged(path, known):
                found = passes(rng, codes, pairs=chosen.pairs, replicates=chosen.replicates)
                decided = codes[codes <= WIN_B]
                right = float((decided == WIN_A).mean()) if decided.size else float("nan")
                flips = float((codes == INCONSISTENT).mean())
                sets.append(found)
                print(
                    f"  {path.name.removesuffix('.jsonl.gz'):55} {of:22} right {right:4.0%} "
                    f"flips {flips:4.0%}: {found[0]:5.0%} {found[1]:5.0%}",
                    flush=True,
                )
    before, after = (sum(each[n] >= 0.5 for each in sets) for n in (0, 1))
    print(f"\n{before} of {len(sets)} sets pass by the interval alone, {after} with all rules")
    return 0


if __name__ == "__main__":
    sys.exit(main())
