"""Audit, calibrate, abstain, vote, correct and count labels on 100,000 verdicts: under a minute.

    python -m scripts.verify_trust_speed [--pairs 100000] [--store FILE]

A judge that states how sure it is judges made-up pairs in process; two baselines join it for a
jury; three people vote on every second pair, of which a fifth was drawn evenly. Then each command's
function runs on the store, timed in CPU seconds of one process; judging is not counted. Exits 1
where all of them together take a minute or more. Run by `make verify`.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any, TypeVar

import evenhand
from evenhand import RunOptions
from evenhand.analyses.jury import write_jury_rows
from evenhand.analyses.registry import CALIBRATE, CORRECT, JURY, VOTES, analyse
from evenhand.analysis_options import CalibrateOptions, CorrectOptions, JuryOptions, VotesOptions
from evenhand.judges.protocol import Completion, Judge, JudgeCall, Traits
from evenhand.judging.config import JudgeConfig
from evenhand.report.abstentions import count_abstentions
from evenhand.report.lookup import find_run
from evenhand.settings import Settings
from evenhand.store import NewVote, Store, open_store
from evenhand.trust.audit import audit_run
from evenhand.trust.calibration import AppliedCalibration
from evenhand.trust.findings import assess_audit
from evenhand.trust.pair_draws import draw_pairs

LIMIT_CPU_S = 60.0
PAIRS_A_PROMPT = 2
PEOPLE = ("ann", "bob", "cy")
EVENLY_DRAWN = 5  # every so manieth of the pairs that people voted on
_GOOD, _POOR = "sound", "shaky"
_Made = TypeVar("_Made")


class SureJudge:
    """Right as often as it says, by the texts alone: the sound answer is the better one."""

    name = "sure"
    traits = Traits()

    async def ask(self, call: JudgeCall) -> Completion:
        pair = call.pair
        texts = sorted((pair.response_a, pair.response_b))
        drawn = random.Random(sha256("\0".join(texts).encode()).digest())  # noqa: S311
        sure = drawn.uniform(0.5, 1)
        better = "A" if _GOOD in pair.response_a else "B"
        if drawn.random() > sure:
            better = "B" if better == "A" else "A"
        if call.order == "swapped":
            better = "B" if better == "A" else "A"
        result = {"winner": better, "confidence": round(sure, 3), "reasoning": "It is better."}
        criterion = {"criterion": "accuracy", "winner": better, "reasoning": "It is."}
        return Completion(text=json.dumps({"comparison": [criterion], "result": result}))

    async def close(self) -> None:
        """Nothing is open."""


def made_up(pairs: int) -> Iterator[dict[str, Any]]:
    rng = random.Random(0)  # noqa: S311 - nothing secret
    for number in range(pairs):
        answers = [
            f"A {kind} answer {number} {'on ' * rng.randrange(9)}" for kind in (_GOOD, _POOR)
        ]
        label = rng.choice("AB")
        yield {
            "id": f"pair-{number}",
            "prompt": f"Question {number // PAIRS_A_PROMPT}?",
            "response_a": answers[label == "B"],
            "response_b": answers[label == "A"],
            "label": label,
            "tags": [f"kind {number % 7}"],
        }


async def judged(path: Path, pairs: int) -> str:
    judges: list[str | Judge] = [SureJudge(), "baseline:longer", "baseline:random"]
    options = RunOptions(store=path, name="all")
    run = await evenhand.run(
        list(made_up(pairs)), judges, JudgeConfig(), criteria=["accuracy"], options=options
    )
    return run.run


def vote(store: Store, name: str) -> None:
    """Each person errs on one pair in eight; every second pair has their votes."""
    rng = random.Random(1)  # noqa: S311 - nothing secret
    votes = []
    for place, item in enumerate(store.items.all(find_run(store, name).id)):
        if place % 2 or item.label is None:
            continue
        draw = "random" if place // 2 % EVENLY_DRAWN == 0 else "chosen"
        for who in PEOPLE:
            wrong = "B" if item.label == "A" else "A"
            said = wrong if rng.random() < 1 / 8 else item.label
            votes.append(NewVote(item.pair_id, who, said, draw=draw))  # type: ignore[arg-type]
    store.votes.add(votes)


class Clock:
    def __init__(self) -> None:
        self.spent = 0.0

    def timed(self, name: str, work: Callable[[], _Made]) -> _Made:
        start = time.process_time()
        made = work()
        used = time.process_time() - start
        self.spent += used
        print(f"| {name} | {used:.1f} |", flush=True)
        return made


def main(arguments: list[str] | None = None) -> int:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    options.add_argument("--pairs", type=int, default=100_000)
    options.add_argument("--store", type=Path)
    chosen = options.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        path = chosen.store or Path(folder) / "store.db"
        name = asyncio.run(judged(path, chosen.pairs))
        clock = Clock()
        print(
            f"{chosen.pairs:,} labelled verdicts of a run, CPU seconds\n\n| what | s |\n|---|---|"
        )
        with open_store(path) as store:
            vote(store, name)
            print_all(clock, store, name, Path(folder))
    print(f"\nall of it: {clock.spent:.1f} s, of at most {LIMIT_CPU_S:.0f}")
    return 0 if clock.spent < LIMIT_CPU_S else 1


def print_all(clock: Clock, store: Store, name: str, folder: Path) -> None:
    clock.timed("audit", lambda: assess_audit(audit_run(store, name, judge="sure")))
    agreed = CalibrateOptions(judge="sure", min_agreement=0.8)
    report = clock.timed(
        "calibrate --min-agreement 0.8",
        lambda: analyse(CALIBRATE, store, [name], agreed, Settings()),
    )
    # Judged again from its passes, which is a run's work and not counted.
    calibrated = JudgeConfig(calibration=AppliedCalibration(report.calibration))
    rows = list(made_up(report.verdicts))
    again = asyncio.run(
        evenhand.run(
            rows,
            SureJudge(),
            calibrated,
            criteria=["accuracy"],
            options=RunOptions(store=store.address, name="calibrated"),
        )
    )
    run = find_run(store, again.run)
    clock.timed("abstentions", lambda: list(count_abstentions(store, run)))
    learned = JuryOptions(weights="learned")
    sitting = clock.timed(
        "jury --weights learned", lambda: analyse(JURY, store, [name], learned, Settings())
    )
    clock.timed("jury --output", lambda: write_jury_rows(sitting, folder / "rows.jsonl"))
    sure = CorrectOptions(judge="sure")
    clock.timed("correct", lambda: analyse(CORRECT, store, [name], sure, Settings()))
    clock.timed("correct --draw 1000", lambda: draw_pairs(store, name, 1000, sure))
    clock.timed("votes summary", lambda: analyse(VOTES, store, [name], VotesOptions(), Settings()))


if __name__ == "__main__":
    sys.exit(main())
