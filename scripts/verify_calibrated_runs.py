"""Are the recorded judges calibrated by what `evenhand run` and `evenhand calibrate` do?

    python -m scripts.verify_calibrated_runs [--draws 200] [--splits 20] [--seed 0] [DATA_DIR]

Every recorded judge goes through a run into a store, in both orders and in one, and is calibrated
from that store with half of the prompts kept apart, split after split; and what learning gains, or
costs, by simulation. Prints the tables of docs/calibration.md and exits 1 where a limit is missed.
The choices in the code were made on these judges, so that their limits only guard against getting
worse; what others may expect is shown by judges that had no part in it, and is held to no limit.
Run by `make verify`.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit
from scripts.verify_calibration import DATA, LARGEST_ERROR, LLMBAR, MOST_SPLITS, RECORDED

import evenhand
from evenhand.runs.options import RunOptions
from evenhand.stats.calibration.fit import Calibration, fit_calibration
from evenhand.stats.calibration.reliability import calibration_change
from evenhand.store import open_store
from evenhand.trust.calibration import half_of_prompts
from evenhand.trust.labelled_verdicts import LabelledVerdicts, labelled_verdicts

Floats = NDArray[np.float64]
# From here on a prompt's rows are so many that few prompts are left to learn from.
MANY_ROWS_A_PROMPT = 3
# What looking for a signal may cost in Brier score where there is none to be found; simulated, it
# costs 0.001 to 0.003 with 60 to 120 labelled prompts.
COST_OF_LOOKING = 0.003
# An error that is told from zero in more splits than this is no accident.
MOST_TOLD = 0.2
# Judges of other models that were recorded with steps of their own: nothing was chosen by them.
HELD_OUT = tuple(
    (f"{model} {steps}", f"procedures/llmbar__{model}__{steps}", LLMBAR)
    for model in ("ChatGPT", "LLaMA2", "PaLM2", "Falcon")
    for steps in ("Vanilla", "Metrics", "Reference", "Metrics_Reference")
)
TUNED_ON = tuple((name, f"judgments/{recording}", sets) for name, recording, sets in RECORDED)


@dataclass(frozen=True, slots=True)
class Judged:
    """A recorded judge's run in a store, and the labelled verdicts that calibrating reads."""

    name: str
    found: LabelledVerdicts
    pairs: int

    @property
    def signals(self) -> dict[str, Floats]:
        columns = self.found.signals.items()
        return {name: column for name, column in columns if not np.isnan(column).all()}

    @property
    def before(self) -> Floats:
        """What the judge would have us believe. None of them states a confidence: two rewards are
        log-odds by the model that they were trained under, and any other verdict is taken at its
        word."""
        if "scores" in self.signals:
            return np.asarray(expit(self.signals["scores"]), dtype=np.float64)
        return np.ones(self.found.right.size)


def judged_runs(
    data: Path, store: Path, *, single_order: bool, held_out: bool = False
) -> Iterator[Judged]:
    for name, recording, sets in HELD_OUT if held_out else TUNED_ON:
        rows = [row for one in sets for row in _labelled_rows(data / "pairs" / f"{one}.jsonl")]
        if "pandalm" in sets and not single_order:
            continue  # it was recorded in one order alone
        for row in rows:
            row["swapPositions"] = not single_order
        run = f"{name}, {'one order' if single_order else 'both orders'}"
        evenhand.run_sync(
            rows,
            f"replay:{data / recording}.jsonl.gz",
            options=RunOptions(store=store, name=run),
        )
        with open_store(store) as opened:
            yield Judged(name, labelled_verdicts(opened, run), len(rows))


def _labelled_rows(path: Path) -> list[dict[str, Any]]:
    wanted = ("id", "prompt", "response_a", "response_b", "label")
    with path.open(encoding="utf-8") as lines:
        return [{name: row[name] for name in wanted} for row in map(json.loads, lines)]


@dataclass(frozen=True, slots=True)
class HalfAndHalf:
    """Means over splits; `told`, `met` and `worse_than_before` beyond noise are shares of them."""

    tested: float
    right: float
    error_before: float
    error: float
    told: float
    met: float
    brier_before: float
    brier_base: float
    brier: float
    loss_base: float
    loss: float
    worse_than_before: float

    @property
    def keeps_claim(self) -> bool:
        """What was once claimed of every judge."""
        return self.error <= LARGEST_ERROR or self.told <= MOST_TOLD + 1e-9

    def missed(self, *, rows_a_prompt: float) -> list[str]:
        found = []
        # What 100 to 200 labels teach is itself uncertain by some 0.04: a split may miss by chance.
        few_prompts = rows_a_prompt >= MANY_ROWS_A_PROMPT
        if not few_prompts and self.error > LARGEST_ERROR and self.met < MOST_SPLITS:
            found.append(f"error {self.error:.3f}, told from zero in {self.told:.0%}")
        if self.worse_than_before > 0.05:
            found.append(f"worse than before beyond noise in {self.worse_than_before:.0%}")
        if self.brier > self.brier_base + COST_OF_LOOKING:
            found.append(f"Brier {self.brier:.4f}, base rate's {self.brier_base:.4f}")
        return found


def learned_on_half(given: Judged, *, seed: int) -> tuple[Calibration, NDArray[np.bool_], Floats]:
    """What `evenhand calibrate --min-agreement --seed` learns, the rows it has not seen, and the
    probabilities it gives them."""
    found, signals = given.found, given.signals
    inside = half_of_prompts(found.prompts, seed=seed)
    learned = fit_calibration(
        found.right[inside],
        {name: column[inside] for name, column in signals.items()},
        prompts=found.prompts[inside],
        seed=seed,
    )
    after = learned.predict({name: column[~inside] for name, column in signals.items()})
    return learned, ~inside, after


def half_and_half(given: Judged, *, splits: int, seed: int) -> HalfAndHalf:
    rows = []
    for split in range(seed, seed + splits):
        learned, outside, after = learned_on_half(given, seed=split)
        right, prompts = given.found.right[outside], given.found.prompts[outside]
        change = calibration_change(
            given.before[outside],
            after,
            right,
            prompts=prompts,
            base_rate=learned.base_rate,
            resamples=400,
            seed=split,
        )
        now, old = change.after_all, change.before
        error = _number(now.error)
        rows.append(
            [
                now.n,
                float(right.mean()),
                _number(old.error if old else None),
                error,
                float(bool(now.distinguishable)),
                float(error <= LARGEST_ERROR or not now.distinguishable),
                _number(old.brier.value if old else None),
                _number(now.base_brier),
                _number(now.brier.value),
                _number(now.base_log_loss),
                _number(now.log_loss.value),
                float(_above_zero(change.brier_change.low if change.brier_change else None)),
            ]
        )
    return HalfAndHalf(*np.mean(np.array(rows), axis=0).tolist())


def _number(value: float | None) -> float:
    return math.nan if value is None else value


def _above_zero(low: float | None) -> bool:
    return low is not None and low > 0


def report(
    data: Path, store: Path, *, single_order: bool, splits: int, seed: int, held_out: bool = False
) -> bool:
    print(
        f"\n{'held-out judges, ' if held_out else ''}"
        f"{'one order alone' if single_order else 'both orders'}: wins and ties of runs, learned "
        f"on half of the prompts, tested on the other; means of {splits} splits\n\n"
        "| judge | signals | pairs | no verdict | tested | right | error before | **after** "
        "| told from 0 | met | Brier before | base rate | **after** | log loss base | **after** |\n"
        "|---|" + "---|" * 14
    )
    missed, judges = 0, 0
    for given in judged_runs(data, store, single_order=single_order, held_out=held_out):
        found = half_and_half(given, splits=splits, seed=seed)
        left_out = given.found.inconsistent + given.found.invalid
        below = found.brier < found.brier_base
        cells = [
            ", ".join(name for name in given.signals if name != "orders"),
            f"{given.pairs}",
            f"{left_out}",
            f"{found.tested:.0f}",
            f"{found.right:.3f}",
            f"{found.error_before:.3f}",
            f"**{found.error:.3f}**",
            f"{found.told:.0%}",
            f"{found.met:.0%}",
            f"{found.brier_before:.3f}",
            f"{found.brier_base:.4f}",
            f"**{found.brier:.4f}**" + ("" if below else " ≥"),
            f"{found.loss_base:.3f}",
            f"**{found.loss:.3f}**",
        ]
        print(f"| {given.name} | " + " | ".join(cells) + " |", flush=True)
        prompts = np.unique(given.found.prompts).size
        if held_out:
            misses = [] if found.keeps_claim else ["an error above 0.05, told from zero too often"]
        else:
            misses = found.missed(rows_a_prompt=given.found.right.size / prompts)
        for miss in misses:
            print(f"  MISSED {given.name}: {miss}")
        missed, judges = missed + bool(misses), judges + 1
    print(f"{missed} of {judges} judges missed")
    return not missed


# The log-odds that a verdict is right, from three signals of unit spread.
TRUTHS: dict[str, Callable[[dict[str, Floats]], Floats]] = {
    "no signal matters": lambda signals: np.full_like(signals["a"], 1.2),
    "one weak signal": lambda signals: 1.2 + 0.4 * signals["a"],
    "strong signals": lambda signals: 1.2 + 1.2 * signals["a"] + 0.8 * signals["b"],
}


def simulated_gain(
    truth: Callable[[dict[str, Floats]], Floats], *, prompts: int, draws: int, seed: int
) -> float:
    """The mean squared error of learned probabilities less the base rate's; below 0 is a gain."""
    gains = []
    for draw in range(draws):
        rng = np.random.default_rng([seed, draw, prompts])
        signals, fresh = (
            {name: rng.normal(size=size) for name in ("a", "b", "c")} for size in (prompts, 500)
        )
        right = rng.random(prompts) < expit(truth(signals))
        learned = fit_calibration(right, signals, seed=draw)
        wanted = expit(truth(fresh))
        base = float(((learned.base_rate - wanted) ** 2).mean())
        gains.append(float(((learned.predict(fresh) - wanted) ** 2).mean()) - base)
    return float(np.mean(gains))


def report_simulated_gain(*, draws: int, seed: int) -> bool:
    print(
        f"\nmean squared error of the probabilities less the base rate's, thousandths, {draws} "
        f"draws\n\n| labelled prompts | {' | '.join(TRUTHS)} |\n|---|" + "---|" * len(TRUTHS)
    )
    held = True
    for prompts in (30, 50, 100, 200):
        gains = [
            simulated_gain(truth, prompts=prompts, draws=draws, seed=seed)
            for truth in TRUTHS.values()
        ]
        print(f"| {prompts} | " + " | ".join(f"{1000 * gain:+.1f}" for gain in gains) + " |")
        # What strong signals gain must outweigh by far what looking for any costs.
        held &= gains[-1] < -2 * max(gains[0], 0.0)
    return held


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    options.add_argument("data", nargs="?", type=Path, default=DATA)
    options.add_argument("--draws", type=int, default=200)
    options.add_argument("--splits", type=int, default=20)
    options.add_argument("--seed", type=int, default=0)
    chosen = options.parse_args()
    print(f"seed {chosen.seed}, {chosen.splits} splits, {chosen.draws} draws")
    held = [report_simulated_gain(draws=chosen.draws, seed=chosen.seed)]
    if not (chosen.data / "judgments").is_dir():
        print(f"no recorded judgments in {chosen.data}; give the data folder as the argument")
        return 0 if all(held) else 1
    with TemporaryDirectory() as folder:
        held += [
            report(
                chosen.data,
                Path(folder) / "runs.db",
                single_order=single,
                splits=chosen.splits,
                seed=chosen.seed,
            )
            for single in (False, True)
        ]
        for single in (False, True):
            if (chosen.data / "procedures").is_dir():
                report(
                    chosen.data,
                    Path(folder) / "held-out.db",
                    single_order=single,
                    splits=chosen.splits,
                    seed=chosen.seed,
                    held_out=True,
                )
    return 0 if all(held) else 1


if __name__ == "__main__":
    sys.exit(main())
