"""Do learned confidences mean what they say, and does the guarantee hold?

    python -m scripts.verify_calibration [--draws 1000] [--splits 20] [--seed 0] [DATA_DIR]

Recorded judges, learned on half of the prompts and tested on the other half; the guarantee over
draws from each recorded judge's pool and over simulated draws; 100,000 verdicts. Prints tables and
exits 1 where a limit is missed. A judge of whom nothing is known but the lengths it judged is shown
and not held to the limit of the error. Run by `make verify`.
"""

from __future__ import annotations

import argparse
import gzip
import json
import math
import re
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from evenhand.contract import Winner, flip_or_none
from evenhand.judging.ballots import read_ballot
from evenhand.judging.decision import PassBallot
from evenhand.stats.agreement.labels import agreement
from evenhand.stats.agreement.raters import agreement_among
from evenhand.stats.calibration.fit import cross_fitted, fit_calibration
from evenhand.stats.calibration.guarantee import guarantee_agreement
from evenhand.stats.calibration.reliability import calibration_change, calibration_error

ROOT = Path(__file__).resolve().parent.parent
DATA = ROOT.parent / "shared" / "data"
Row = dict[str, Any]
# Both orders of a pair in the labels of the original order; None is unread.
Passes = dict[str, Winner | None]
Floats = NDArray[np.float64]
# A split meets the limit with an error this small or one that cannot be told from zero.
LARGEST_ERROR = 0.05
MOST_SPLITS = 0.6
JUDGEBENCH = "judgebench_gpt4o"
LLMBAR = ("llmbar_natural", "llmbar_neighbor", "llmbar_gptinst")
PROCESSED = ("llmbar_processed_llmeval2", "llmbar_processed_mtbench")
RECORDED: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    ("judgebench o1-mini", f"{JUDGEBENCH}__arena_hard_o1-mini-2024-09-12", (JUDGEBENCH,)),
    (
        "judgebench Skywork",
        f"{JUDGEBENCH}__reward_model_Skywork_Skywork-Reward-Gemma-2-27B",
        (JUDGEBENCH,),
    ),
    *(
        (f"llmbar {judge}", f"llmbar__{judge}", LLMBAR)
        for judge in (
            "GPT-4_CoT",
            "GPT-4_Metrics_Reference",
            "GPT-4_Swap",
            "GPT-4_Vanilla",
            "GPT-4_Vanilla_NoRules",
            "ChatGPT_CoT",
            "LLaMA2_CoT",
            "PaLM2_CoT",
            "Falcon_CoT",
        )
    ),
    *(
        (f"processed {judge}", f"llmbar_processed__{judge}", PROCESSED)
        for judge in (
            "GPT-4_Metrics_Reference",
            "GPT-4_Vanilla_NoRules",
            "LLaMA2_Vanilla_NoRules",
        )
    ),
    ("pandalm gpt-3.5-turbo", "pandalm__gpt-3.5-turbo", ("pandalm",)),
)
# How strongly an arena-hard verdict prefers its winner.
STRENGTH = re.compile(r"\[\[[AB](>>?)[AB]\]\]")


@dataclass(frozen=True, slots=True)
class Verdicts:
    """Labelled verdicts of a recorded judge with their signals, NaN where missing.

    `before` is what the judge itself would have us believe: its probability where it has scores,
    else 1 where both orders agree and one half where they do not.
    """

    name: str
    right: Floats
    signals: dict[str, Floats]
    before: Floats
    prompts: NDArray[np.intp]


def recorded(data: Path, *, single_order: bool) -> Iterator[Verdicts]:
    for name, judge, sets in RECORDED:
        pairs = {row["id"]: row for one in sets for row in _rows(data / "pairs" / f"{one}.jsonl")}
        recordings = _rows(data / "judgments" / f"{judge}.jsonl.gz")
        rows = [row for row in recordings if row["id"] in pairs]
        passes = _passes(rows)
        swapped = any(len(both) == 2 for both in passes.values())
        if single_order or swapped:
            yield _verdicts(name, pairs, passes, _margins(rows), single_order=single_order)


def _rows(path: Path) -> list[Row]:
    content = path.read_bytes()
    text = (gzip.decompress(content) if path.suffix == ".gz" else content).decode()
    return [json.loads(line) for line in text.split("\n") if line]


def _passes(rows: list[Row]) -> dict[str, Passes]:
    """By our own reading, or as published where there is no text."""
    pairs: dict[str, Passes] = {}
    for row in rows:
        winner: Winner | None = row["verdict_as_shown"]
        if row["raw"] is not None:
            outcome = read_ballot(row["raw"], truncated=row.get("finish_reason") == "length")
            winner = outcome.winner if isinstance(outcome, PassBallot) else None
        original = row["pass"] == "original"  # noqa: S105 - the order shown, no password
        mapped = winner if original else flip_or_none(winner)
        pairs.setdefault(row["id"], {})[row["pass"]] = mapped
    return pairs


def _margins(rows: list[Row]) -> dict[str, float]:
    """The mean margin of a pair's passes, where the judge gives scores or a strength."""
    found: dict[str, list[float]] = {}
    for row in rows:
        if row.get("scores"):
            first, second = row["scores"]
            found.setdefault(row["id"], []).append(abs(first - second))
        elif row["raw"] and (marks := STRENGTH.findall(row["raw"])):
            found.setdefault(row["id"], []).append(float(len(marks[-1])))
    return {identity: sum(margins) / len(margins) for identity, margins in found.items()}


def _verdicts(
    name: str,
    pairs: dict[str, Row],
    passes: dict[str, Passes],
    margins: dict[str, float],
    *,
    single_order: bool,
) -> Verdicts:
    numbers: dict[str, int] = {}
    table: list[tuple[float, float, float, float, float, float, int]] = []
    for identity, both in passes.items():
        pair = pairs[identity]
        first, other = both.get("original"), both.get("swapped")
        if first is None or ("swapped" in both and other is None):
            continue
        agreed = first == other if "swapped" in both else None
        winner = first if single_order or agreed else "TIE"
        longer = math.log((1 + len(pair["response_a"])) / (1 + len(pair["response_b"])))
        margin = margins.get(identity, math.nan)
        stated = math.nan if agreed is None else 1.0 if agreed else 0.5
        table.append(
            (
                float(winner == pair["label"]),
                math.nan if agreed is None else float(agreed),
                {"A": longer, "B": -longer}.get(winner, math.nan),
                abs(longer),
                margin,
                float(expit(margin)) if name.endswith("Skywork") else stated,
                numbers.setdefault(pair["prompt"], len(numbers)),
            )
        )
    right, agreed_, towards, length, margin_, before, prompts = np.array(table).T
    named = {"agreement": agreed_, "winnerLonger": towards, "length": length, "margin": margin_}
    signals = {key: column for key, column in named.items() if not np.isnan(column).all()}
    return Verdicts(name, right, signals, before, prompts.astype(np.intp))


@dataclass(frozen=True, slots=True)
class HalfAndHalf:
    """Means over splits: the errors, and the shares told from zero, and that met the limit."""

    name: str
    tested: float
    accuracy: float
    plain_before: float
    error_before: float | None
    error_after: float
    told_apart: float
    brier_before: float
    brier_base: float
    brier_after: float
    loss_before: float
    loss_base: float
    loss_after: float
    worse: float
    met: float

    @property
    def length_only(self) -> bool:
        """No second order, no confidence, no margin: nothing tells how sure the judge was."""
        return math.isnan(self.brier_before)

    @property
    def missed(self) -> list[str]:
        found = []
        # What 160 labels teach is itself uncertain by some 0.04, so a split may miss by chance.
        if not self.length_only and self.error_after > LARGEST_ERROR and self.met < MOST_SPLITS:
            found.append(f"error {self.error_after:.3f}, told from zero in {self.told_apart:.0%}")
        if not self.brier_after < self.brier_base:
            found.append(f"Brier {self.brier_after:.4f}, base rate's {self.brier_base:.4f}")
        if self.worse > 0.05:
            found.append(f"worse than before beyond noise in {self.worse:.0%}")
        return found


def half_and_half(given: Verdicts, *, splits: int, seed: int) -> HalfAndHalf:
    """Learn on half of the prompts, test on the other half; then another split."""
    rows: list[list[float]] = []
    for split in range(splits):
        rng = np.random.default_rng([seed, split])
        half = rng.permutation(int(given.prompts.max()) + 1) % 2 == 0
        inside = half[given.prompts]
        fitted = fit_calibration(
            given.right[inside],
            {name: column[inside] for name, column in given.signals.items()},
            prompts=given.prompts[inside],
            seed=split,
        )
        after = fitted.predict({name: column[~inside] for name, column in given.signals.items()})
        change = calibration_change(
            given.before[~inside],
            after,
            given.right[~inside],
            prompts=given.prompts[~inside],
            base_rate=fitted.base_rate,
            resamples=400,
            seed=split,
        )
        now, old = change.after_all, change.before
        low = change.brier_change.low if change.brier_change else None
        rows.append(
            [
                now.n,
                float(given.right[~inside].mean()),
                _number(old.plain_error if old else None),
                _number(old.error if old else None),
                _number(now.error),
                float(bool(now.distinguishable)),
                _number(old.brier.value if old else None),
                _number(now.base_brier),
                _number(now.brier.value),
                _number(old.log_loss.value if old else None),
                _number(now.base_log_loss),
                _number(now.log_loss.value),
                float(low is not None and low > 0),
                float(_number(now.error) <= LARGEST_ERROR or not now.distinguishable),
            ]
        )
    return HalfAndHalf(given.name, *np.mean(np.array(rows), axis=0).tolist())


def _number(value: float | None) -> float:
    return math.nan if value is None else value


def report_half_and_half(data: Path, *, single_order: bool, splits: int, seed: int) -> bool:
    print(
        f"\n{'one order alone' if single_order else 'both orders reconciled'}: learned on half of "
        f"the prompts, tested on the other; means of {splits} splits\n\n"
        "| judge | tested | right | ECE before | debiased before | **after** | told from 0 "
        "| Brier before | base rate | **after** | log loss before | base | **after** | met |\n"
        "|---|" + "---|" * 13
    )
    held = True
    for given in recorded(data, single_order=single_order):
        found = half_and_half(given, splits=splits, seed=seed)
        cells = [
            f"{found.tested:.0f}",
            f"{found.accuracy:.3f}",
            f"{found.plain_before:.3f}",
            f"{found.error_before:.3f}",
            f"**{found.error_after:.3f}**",
            f"{found.told_apart:.0%}",
            f"{found.brier_before:.3f}",
            f"{found.brier_base:.3f}",
            f"**{found.brier_after:.3f}**",
            f"{found.loss_before:.3f}",
            f"{found.loss_base:.3f}",
            f"**{found.loss_after:.3f}**",
            f"{found.met:.0%}",
        ]
        name = found.name + (" (length only)" if found.length_only else "")
        print(f"| {name} | " + " | ".join(cells).replace("nan", "—") + " |", flush=True)
        for miss in found.missed:
            held = False
            print(f"  MISSED {found.name}: {miss}")
    return held


# How often a verdict with this confidence (uniform from 0 to 1) is right.
CURVES: dict[str, Callable[[Floats], Floats]] = {
    "steep": lambda u: 0.5 + 0.5 * u**0.3,
    "line from 0.7 to 0.99": lambda u: 0.7 + 0.29 * u,
    "just at the target": lambda u: np.full_like(u, 0.9),
    "just below it": lambda u: np.full_like(u, 0.89),
    "a step": lambda u: np.where(u > 0.35, 0.97, 0.6),
    "not monotone": lambda u: np.where((u > 0.5) & (u < 0.8), 0.8, 0.97),
    "upside down": lambda u: 0.99 - 0.2 * u,
}


def true_agreement(curve: Callable[[Floats], Floats], threshold: float) -> float:
    grid = (np.arange(200_000) + 0.5) / 200_000
    return float(curve(grid)[grid >= threshold].mean())


def simulated_guarantee(
    curve: Callable[[Floats], Floats],
    *,
    prompts: int,
    draws: int,
    seed: int,
    target: float = 0.9,
    levels: int | None = None,
) -> tuple[float, float, float]:
    """Shares of draws with a broken promise and with any threshold, and the mean coverage.

    `levels` rounds confidences to so many values, as stated confidences are.
    """
    rng = np.random.default_rng(seed)
    broken = found = 0
    coverage = 0.0
    for draw in range(draws):
        exact = rng.random(prompts)
        right = rng.random(prompts) < curve(exact)
        stated = exact if levels is None else np.floor(exact * levels) / levels
        kept = guarantee_agreement(stated, right, target=target, seed=draw)
        if kept.threshold is not None:
            found += 1
            coverage += 1 - kept.threshold
            broken += true_agreement(curve, kept.threshold) < target
    return broken / draws, found / draws, coverage / draws


def report_simulated_guarantee(*, draws: int, seed: int) -> bool:
    print(f"\nthe guarantee, simulated: 0.9 at an error level of 0.05, {draws} draws each\n")
    print("| confidence to being right | prompts | levels | broken | a threshold | coverage |")
    print("|---|---|---|---|---|---|")
    held = True
    for name, curve in CURVES.items():
        for prompts, levels in ((100, None), (300, None), (300, 10), (1000, None)):
            broken, found, coverage = simulated_guarantee(
                curve, prompts=prompts, draws=draws, seed=seed, levels=levels
            )
            print(
                f"| {name} | {prompts} | {levels or 'any'} | {broken:.1%} | {found:.0%} "
                f"| {coverage:.0%} |",
                flush=True,
            )
            if broken > 0.05 + 2.5 * math.sqrt(0.05 * 0.95 / draws):
                held = False
                print(f"  MISSED {name}, {prompts} prompts: {broken:.1%} broken")
    return held


def pool_guarantee(
    given: Verdicts, *, draws: int, seed: int, target: float
) -> tuple[float, float, float]:
    """Half of the prompts teach a calibration; labels of half of the others set the threshold.

    The truth is the agreement above it in the whole of those others, a prompt counting once.
    """
    broken = found = 0
    coverage = 0.0
    rng = np.random.default_rng(seed)
    count = int(given.prompts.max()) + 1
    # Learning anew for each draw would only cost time: twenty calibrations serve all draws.
    for learned in range(20):
        part = rng.permutation(count)
        teaching = np.isin(given.prompts, part[: count // 2])
        fitted = fit_calibration(
            given.right[teaching],
            {name: column[teaching] for name, column in given.signals.items()},
            prompts=given.prompts[teaching],
            seed=learned,
        )
        pool = {name: column[~teaching] for name, column in given.signals.items()}
        sure, right = fitted.predict(pool), given.right[~teaching]
        prompts = given.prompts[~teaching]
        weights = 1 / np.bincount(prompts)[prompts]
        members = np.unique(prompts)
        for draw in range(draws // 20):
            labelled = np.isin(prompts, rng.permutation(members)[: members.size // 2])
            kept = guarantee_agreement(
                sure[labelled],
                right[labelled],
                target=target,
                prompts=prompts[labelled],
                seed=draw,
            )
            if kept.threshold is None:
                continue
            found += 1
            above = sure >= kept.threshold
            coverage += float(weights[above].sum() / weights.sum())
            truth = float((weights * right)[above].sum() / weights[above].sum())
            broken += truth < target
    return broken / draws, found / draws, coverage / draws


def report_pool_guarantee(data: Path, *, draws: int, seed: int) -> bool:
    print(f"\nthe guarantee on recorded judges, error level 0.05, {draws} draws each\n")
    print("| judge | agreement promised | broken | a threshold | coverage |\n|---|---|---|---|---|")
    held = True
    for given in recorded(data, single_order=False):
        # A promise near the truth of the surer verdicts is the one that can be broken.
        for target in (0.7, 0.8, 0.9):
            broken, found, coverage = pool_guarantee(given, draws=draws, seed=seed, target=target)
            print(
                f"| {given.name} | {target} | {broken:.1%} | {found:.0%} | {coverage:.0%} |",
                flush=True,
            )
            if broken > 0.05 + 2.5 * math.sqrt(0.05 * 0.95 / draws):
                held = False
                print(f"  MISSED {given.name} at {target}: {broken:.1%} broken")
    return held


def report_speed(rows: int, *, seed: int) -> bool:
    rng = np.random.default_rng(seed)
    prompts = rng.integers(0, rows // 3, rows)
    labels = rng.integers(0, 3, rows)
    signals = {name: rng.normal(size=rows) for name in ("confidence", "margin", "length")}
    signals["margin"][rng.random(rows) < 0.3] = np.nan
    signals["agreement"] = rng.integers(0, 2, rows).astype(np.float64)
    chance = expit(0.5 + signals["confidence"] + signals["agreement"])
    verdicts = np.where(rng.random(rows) < chance, labels, (labels + 1) % 3)
    right = verdicts == labels
    print(f"\n{rows:,} labelled verdicts, CPU seconds\n\n| what | s |\n|---|---|")
    spent = 0.0

    def timed(name: str, work: Callable[[], object]) -> object:
        nonlocal spent
        start = time.process_time()
        made = work()
        used = time.process_time() - start
        spent += used
        print(f"| {name} | {used:.2f} |", flush=True)
        return made

    timed("agreement", lambda: agreement(verdicts, labels, prompts=prompts))
    units, votes = np.repeat(np.arange(rows), 3), np.stack([verdicts, labels, labels], 1).ravel()
    timed("agreement among three", lambda: agreement_among(units, votes))
    timed("fit_calibration, auto", lambda: fit_calibration(right, signals, prompts=prompts))
    timed("cross_fitted, auto", lambda: cross_fitted(right, signals, prompts=prompts))
    timed("calibration_error", lambda: calibration_error(chance, right, prompts=prompts))
    timed("guarantee_agreement", lambda: guarantee_agreement(chance, right, prompts=prompts))
    return spent < 60


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    options.add_argument("data", nargs="?", type=Path, default=DATA)
    options.add_argument("--draws", type=int, default=1000)
    options.add_argument("--splits", type=int, default=20)
    options.add_argument("--seed", type=int, default=0)
    chosen = options.parse_args()
    print(f"seed {chosen.seed}, {chosen.splits} splits, {chosen.draws} draws")
    held = [report_speed(100_000, seed=chosen.seed)]
    if (chosen.data / "judgments").is_dir():
        held += [
            report_half_and_half(
                chosen.data, single_order=single, splits=chosen.splits, seed=chosen.seed
            )
            for single in (False, True)
        ]
        held.append(report_pool_guarantee(chosen.data, draws=chosen.draws, seed=chosen.seed))
    else:
        print(f"no recorded judgments in {chosen.data}; give the data folder as the argument")
    held.append(report_simulated_guarantee(draws=chosen.draws, seed=chosen.seed))
    return 0 if all(held) else 1


if __name__ == "__main__":
    sys.exit(main())
