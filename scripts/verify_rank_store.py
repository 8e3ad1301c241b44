"""A million verdicts on a hundred models, read and ranked: seconds, and less than 500 MB.

    python -m scripts.verify_rank_store [--verdicts 1000000] [--store FILE]

The store is filled by plain inserts. Each way of reading it runs in a process of its own, with
NumPy and SciPy loaded, and is checked against what was written; then `evenhand rank` runs as a
user runs it, with and without intervals. Run by `make verify`.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from evenhand.store import NewJudge, NewRun, open_store
from evenhand.store.intake import prompt_key

MODELS = 100
PROMPTS = 10_000
SEED = 0
LIMIT_MB = 500.0
LIMIT_CPU_S = 15.0
LIMIT_RANK_CPU_S = 20.0
RANKINGS = ("none", "sandwich")
READINGS = ("battle_counts", "battle_columns", "outcome_columns", "criterion_columns")

# outcome, winner, first and second choice, and how many of a hundred
_KINDS = (
    (("win", "A", "A", "A"), 40),
    (("win", "B", "B", "B"), 39),
    (("tie", "TIE", "TIE", "TIE"), 8),
    (("inconsistent", "TIE", "A", "B"), 12),
    (("invalid", None, None, None), 1),
)
_BY_CRITERION = (
    '[["accuracy","win","A","A","A"],["clarity","tie","TIE","TIE","TIE"],'
    '["depth","inconsistent","TIE","A","B"]]'
)
_BODY = '{{"time_ms":{:.3f}}}'
_PAIRS = """
INSERT INTO pairs (id, digest, allow_tie, criteria, prompt, response_a, response_b)
VALUES (?, ?, 1, ?, 'a prompt', 'an answer', 'another')
"""
_ITEMS = """
INSERT INTO items (run_id, number, key, pair_id, swap_positions, row, source, model_a, model_b,
                   prompt_key, length_a, length_b, noted)
VALUES (?, ?, ?, ?, 1, ?, 'outputs.jsonl', ?, ?, ?, ?, ?, 0)
"""
_VERDICTS = """
INSERT INTO verdicts (run_id, number, judge_id, outcome, winner, first_pass_winner,
                      second_pass_winner, confidence, confidence_source, samples, passes,
                      created_at, abstained, by_criterion, body)
VALUES (?, ?, ?, ?, ?, ?, ?, 0.8, 'stated', 1, 2, 0, 0, ?, ?)
"""
_CRITERIA = json.dumps([{"name": name} for name in ("accuracy", "clarity", "depth")])


@dataclass(frozen=True, slots=True)
class Filled:
    run_id: int
    judge_id: int
    outcomes: Counter[str]


def fill(path: Path, verdicts: int) -> Filled:
    with open_store(path) as store:
        run_id = store.runs.create(NewRun("million", "million", {})).id
        judge_id = store.runs.add_judge(NewJudge("judge", "judge"))
        store.runs.set_judges(run_id, [judge_id])
        store.runs.update(run_id, intake_done=True, state="finished")
    rng = random.Random(SEED)  # noqa: S311 - nothing secret
    kinds = [kind for kind, _ in _KINDS]
    drawn = rng.choices(kinds, [share for _, share in _KINDS], k=verdicts)
    names = [f"vendor/model-{number:03}" for number in range(MODELS)]
    keys = [prompt_key(f"prompt {number}", None) for number in range(PROMPTS)]

    def items() -> Iterator[tuple[object, ...]]:
        for number in range(1, verdicts + 1):
            pair = (*rng.sample(names, 2), keys[number % PROMPTS])
            lengths = rng.randrange(2_000), rng.randrange(2_000)
            yield run_id, number, f"{number % PROMPTS}:{number}", number, number, *pair, *lengths

    def ruled() -> Iterator[tuple[object, ...]]:
        for number, kind in enumerate(drawn, start=1):
            told = None if kind[0] == "invalid" else _BY_CRITERION
            yield run_id, number, judge_id, *kind, told, _BODY.format(1_000 * rng.random())

    numbers = range(1, verdicts + 1)
    with closing(sqlite3.connect(path)) as database, database:
        database.executemany(_PAIRS, ((n, n.to_bytes(16, "big"), _CRITERIA) for n in numbers))
        database.executemany(_ITEMS, items())
        database.executemany(_VERDICTS, ruled())
    return Filled(run_id, judge_id, Counter(kind[0] for kind in drawn))


def read(path: Path, how: str, *, run_id: int, judge_id: int) -> None:
    """In a process of its own: what it cost, as JSON."""
    import numpy as np
    import scipy.optimize
    import scipy.sparse  # noqa: F401 - loaded for its weight, as a ranking loads it

    with open_store(path, create=False) as store:
        began, worked = time.perf_counter(), time.process_time()
        if how == "battle_counts":
            counts = store.columns.battle_counts([run_id])
            found = sum(each.verdicts for each in counts)
        elif how == "battle_columns":
            battles = store.columns.battles([run_id])
            found = len(np.asarray(battles.outcome))
        elif how == "outcome_columns":
            found = len(np.asarray(store.columns.outcomes(run_id, judge_id).outcome))
        else:
            criteria = store.columns.criteria(run_id, judge_id)
            assert len(criteria) == 3
            found = min(len(each.number) for each in criteria)
        took = {
            "verdicts": found,
            "wall_s": time.perf_counter() - began,
            "cpu_s": time.process_time() - worked,
            "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        }
    print(json.dumps(took))


def rank(path: Path, intervals: str) -> tuple[dict[str, float], Counter[str]]:
    """`evenhand rank` as a process: what it cost, and the outcomes that it tells."""
    words = [sys.executable, "-m", "evenhand", "rank", "million", "--store", str(path), "--json"]
    words += ["--intervals", intervals]
    began = time.perf_counter()
    with tempfile.TemporaryFile() as told:
        process = subprocess.Popen(words, stdout=told)
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        wall = time.perf_counter() - began
        if process.returncode:
            raise SystemExit(f"{' '.join(words)} left with {process.returncode}")
        told.seek(0)
        ranked = json.load(told)
    counts = ranked["counts"]
    outcomes = Counter(
        win=counts["winsA"] + counts["winsB"],
        tie=counts["ties"],
        inconsistent=counts["inconsistent"],
        invalid=counts["invalid"],
    )
    took = {
        "models": len(ranked["ranking"]["models"]),
        "wall_s": wall,
        "cpu_s": used.ru_utime + used.ru_stime,
        "peak_mb": used.ru_maxrss / 1024,
    }
    return took, outcomes


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--verdicts", type=int, default=1_000_000)
    parser.add_argument("--store", type=Path, help="a file that is made, and kept")
    parser.add_argument("--read", choices=READINGS, help=argparse.SUPPRESS)
    parser.add_argument("--ids", type=int, nargs=2, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.read:
        read(asked.store, asked.read, run_id=asked.ids[0], judge_id=asked.ids[1])
        return 0
    with tempfile.TemporaryDirectory(prefix="evenhand-rank-") as folder:
        return check(asked.store or Path(folder) / "million.db", asked.verdicts)


def check(path: Path, verdicts: int) -> int:
    began = time.perf_counter()
    filled = fill(path, verdicts)
    print(
        f"{verdicts:,} verdicts, {MODELS} models, {PROMPTS:,} prompts, seed {SEED}: "
        f"{path.stat().st_size / 2**20:,.0f} MB, filled in {time.perf_counter() - began:.0f} s"
    )
    held = True
    print("  reading              wall s   CPU s   peak MB")
    for how in READINGS:
        words = [sys.executable, "-m", "scripts.verify_rank_store", "--store", str(path)]
        words += ["--read", how, "--ids", str(filled.run_id), str(filled.judge_id)]
        ended = subprocess.run(words, capture_output=True, text=True, check=True)
        took = json.loads(ended.stdout)
        within = took["peak_mb"] < LIMIT_MB and took["cpu_s"] < LIMIT_CPU_S
        held &= within and took["verdicts"] == verdicts
        print(_line(how, took, within=within))
        sys.stdout.flush()
    with open_store(path, create=False) as store:
        counted: Counter[str] = Counter()
        for each in store.columns.battle_counts([filled.run_id]):
            counted[str(each.outcome)] += each.verdicts
    if counted != filled.outcomes:
        held = False
        print(f"  counted {dict(counted)}, written {dict(filled.outcomes)}")
    for intervals in RANKINGS:
        took, outcomes = rank(path, intervals)
        within = took["peak_mb"] < LIMIT_MB and took["cpu_s"] < LIMIT_RANK_CPU_S
        held &= within and took["models"] == MODELS and outcomes == filled.outcomes
        print(_line(f"rank, {intervals}", took, within=within))
        if outcomes != filled.outcomes:
            print(f"  ranked {dict(outcomes)}, written {dict(filled.outcomes)}")
        sys.stdout.flush()
    print(
        f"  each less than {LIMIT_MB:g} MB and {LIMIT_CPU_S:g} CPU s "
        f"({LIMIT_RANK_CPU_S:g} for evenhand rank): {'held' if held else 'NOT HELD'}"
    )
    return 0 if held else 1


def _line(what: str, took: Mapping[str, float], *, within: bool) -> str:
    return (
        f"  {what:<18}   {took['wall_s']:>6.1f}   {took['cpu_s']:>5.1f}"
        f"   {took['peak_mb']:>7.0f}{'' if within else '   NOT HELD'}"
    )


if __name__ == "__main__":
    sys.exit(main())
