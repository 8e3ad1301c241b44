"""What calibrating gains on open judges, by which method, and what the guarantee is worth there.

    python -m scripts.verify_calibrated_runs [--splits 5] [--seed 0] [DATA_DIR]

Every recorded judge goes through a run into a store, set of pairs by set of pairs, in both orders
and in one. Splits are nested: half of the prompts teach, where inner folds choose what a method
leaves open, and the other half tests. Which method is used for a judge is chosen by judges of
other families on other pairs. Prints the tables of docs/calibration.md and exits 1 where a limit
is missed. Run by `make verify`.
"""

from __future__ import annotations

import argparse
import gzip
import json
import math
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import isotonic_regression
from scipy.special import expit, logit
from scripts.verify_calibration import GRANTED_COLUMNS, Granted, covers, show_row

import evenhand
from evenhand.analyses.calibrate import half_of_prompts
from evenhand.judging.config import JudgeConfig
from evenhand.runs.options import RunOptions
from evenhand.stats.calibration.curves import fit_logistic_signals, smoothed_share, varies
from evenhand.stats.calibration.fit import Calibration, fit_calibration, prompt_folds
from evenhand.stats.calibration.guarantee import guarantee_agreement
from evenhand.stats.calibration.reliability import debiased_square, equal_mass_bins
from evenhand.stats.logistic_regression import fit_ridge
from evenhand.store import open_store
from evenhand.trust.labelled_verdicts import labelled_verdicts

Floats = NDArray[np.float64]
Columns = dict[str, Floats]
Predict = Callable[[Columns], Floats]
ROOT = Path(__file__).resolve().parent.parent
DATA = ROOT.parent / "shared" / "data"

NATURAL, NEIGHBOR, GPTINST = "llmbar_natural", "llmbar_neighbor", "llmbar_gptinst"
LLMBAR = (NATURAL, NEIGHBOR, GPTINST)
PROCESSED = ("llmbar_processed_llmeval2", "llmbar_processed_mtbench")
JUDGEBENCH = "judgebench_gpt4o"
RATINGS = "Rating"
# Family, file and sets of pairs of each recorded judge.
RECORDED: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    *(
        ("GPT-4", f"judgments/llmbar__GPT-4_{steps}", LLMBAR)
        for steps in ("CoT", "Swap", "Vanilla", "Vanilla_NoRules", "Metrics_Reference")
    ),
    *(
        ("GPT-4", f"procedures/llmbar__GPT-4__{steps}", LLMBAR)
        for steps in ("Metrics", "Reference")
    ),
    *(
        (family, recording, LLMBAR)
        for family in ("ChatGPT", "LLaMA2", "PaLM2", "Falcon")
        for recording in (
            f"judgments/llmbar__{family}_CoT",
            f"procedures/llmbar__{family}__Vanilla",
            f"procedures/llmbar__{family}__Metrics",
            f"procedures/llmbar__{family}__Reference",
            f"procedures/llmbar__{family}__Metrics_Reference",
        )
    ),
    ("ChatGPT", "procedures/llmbar__ChatGPT__Rating", LLMBAR),
    ("GPT-4", "procedures/llmbar__GPT-4__Rating", LLMBAR),
    ("GPT-4", "procedures/llmbar__GPT-4__Rating_Metrics_Reference", LLMBAR),
    ("GPT-4", "judgments/llmbar_processed__GPT-4_Metrics_Reference", PROCESSED),
    ("GPT-4", "judgments/llmbar_processed__GPT-4_Vanilla_NoRules", PROCESSED),
    ("LLaMA2", "judgments/llmbar_processed__LLaMA2_Vanilla_NoRules", PROCESSED),
    ("o1-mini", f"judgments/{JUDGEBENCH}__arena_hard_o1-mini-2024-09-12", (JUDGEBENCH,)),
    (
        "Skywork",
        f"judgments/{JUDGEBENCH}__reward_model_Skywork_Skywork-Reward-Gemma-2-27B",
        (JUDGEBENCH,),
    ),
    ("ChatGPT", "judgments/pandalm__gpt-3.5-turbo", ("pandalm",)),
)
KINDS = {
    (NATURAL,): "LLMBar Natural",
    (NEIGHBOR,): "LLMBar adversarial",
    (GPTINST,): "LLMBar adversarial",
    LLMBAR: "LLMBar, all",
    (PROCESSED[0],): "LLMEval², MT-Bench",
    (PROCESSED[1],): "LLMEval², MT-Bench",
    (JUDGEBENCH,): "JudgeBench",
    ("pandalm",): "PandaLM",
}
# Half of them are as few as a curve is learned from.
FEWEST_PROMPTS = 60
# Within so much of the best mean Brier score the method that does harm least often is chosen.
TOLERANCE = 0.001


@dataclass(frozen=True, slots=True)
class Judged:
    """Labelled verdicts of a recorded judge on some sets of pairs, as calibrating reads them."""

    name: str
    family: str
    sets: tuple[str, ...]
    right: Floats
    prompts: NDArray[np.int64]
    signals: Columns

    @property
    def kind(self) -> str:
        return KINDS[self.sets]

    def may_choose_for(self, other: Judged) -> bool:
        return self.family != other.family and not set(self.sets) & set(other.sets)

    def rows(self, chosen: NDArray[np.bool_]) -> tuple[Columns, Floats, NDArray[np.int64]]:
        columns = {name: column[chosen] for name, column in self.signals.items()}
        return columns, self.right[chosen], self.prompts[chosen]


def open_judges(data: Path, store: Path) -> list[Judged]:
    """On each set of pairs alone, and on all of LLMBar; only where there are prompts enough."""
    judges: list[Judged] = []
    for family, recording, sets in RECORDED:
        for single_order in (False, True):
            if single_order if RATINGS in recording else "pandalm" in sets and not single_order:
                continue  # a rating has no order, and PandaLM was recorded in one alone
            read = _rated if RATINGS in recording else partial(_judged, store=store)
            parts = [
                part
                for one in sets
                if (part := read(data, family, recording, one, single_order=single_order))
            ]
            judges += parts
            if sets == LLMBAR and len(parts) > 1:
                judges.append(_together(parts))
    return [each for each in judges if np.unique(each.prompts).size >= FEWEST_PROMPTS]


def _judged(
    data: Path, family: str, recording: str, pairs: str, *, single_order: bool, store: Path
) -> Judged | None:
    rows = [
        {name: row[name] for name in ("id", "prompt", "response_a", "response_b", "label")}
        | {"swapPositions": not single_order}
        for row in labelled_rows(data / "pairs" / f"{pairs}.jsonl")
    ]
    name = f"{recording.partition('__')[2]}, {pairs}, {'one order' if single_order else 'both'}"
    judge = f"replay:{data / recording}.jsonl.gz"
    config = JudgeConfig(protocol="llmbar" if "llmbar__" in recording else None)
    evenhand.run_sync(rows, judge, config, options=RunOptions(store=store, name=name))
    with open_store(store) as opened:
        try:
            found = labelled_verdicts(opened, name)
        except evenhand.InputError:
            return None  # not a single pair was decided
    signals = {key: each for key, each in found.signals.items() if not np.isnan(each).all()}
    return Judged(name, family, (pairs,), found.right, found.prompts, signals)


def _rated(
    data: Path, family: str, recording: str, pairs: str, *, single_order: bool
) -> Judged | None:
    """Each response was scored alone; the signals are those of a judge that gives two scores."""
    del single_order
    ratings = {row["id"]: row["rating"] for row in labelled_rows(data / f"{recording}.jsonl.gz")}
    table = []
    for pair in labelled_rows(data / "pairs" / f"{pairs}.jsonl"):
        scores = [ratings[pair["id"]][key][0].strip() for key in ("score_1", "score_2")]
        if not all(score.replace(".", "", 1).isdigit() for score in scores):
            continue
        a, b = map(float, scores)
        winner = "A" if a > b else "B" if b > a else "TIE"
        longer = math.log1p(len(pair["response_a"])) - math.log1p(len(pair["response_b"]))
        length = {"A": longer, "B": -longer}.get(winner, math.nan)
        table.append((float(winner == pair["label"]), abs(a - b), length))
    right, scores_, lengths = np.array(table).T
    name = f"{recording.partition('__')[2]}, {pairs}, ratings"
    signals = {"scores": scores_, "length": lengths}
    return Judged(name, family, (pairs,), right, np.arange(right.size), signals)


def _together(parts: Sequence[Judged]) -> Judged:
    name = parts[0].name.replace(parts[0].sets[0], "all")
    prompts = [
        np.unique(part.prompts, return_inverse=True)[1] + 10_000 * number
        for number, part in enumerate(parts)
    ]
    signals = {
        key: np.concatenate([part.signals[key] for part in parts]) for key in parts[0].signals
    }
    right = np.concatenate([part.right for part in parts])
    return Judged(name, parts[0].family, LLMBAR, right, np.concatenate(prompts), signals)


def labelled_rows(path: Path) -> list[dict[str, Any]]:
    content = path.read_bytes()
    text = (gzip.decompress(content) if path.suffix == ".gz" else content).decode()
    return [json.loads(line) for line in text.split("\n") if line]


# The candidates. A recipe fits columns and rightness and gives what predicts.

Recipe = Callable[[Columns, Floats], Predict]


def base_rate(columns: Columns, right: Floats) -> Predict:
    del columns
    share = smoothed_share(right)
    return lambda fresh: np.full(next(iter(fresh.values())).size, share)


def _of_signal(fit: Callable[[Floats, Floats], Callable[[Floats], Floats]], name: str) -> Recipe:
    """A curve of one signal; rows without it get the base rate."""

    def recipe(columns: Columns, right: Floats) -> Predict:
        share, known = smoothed_share(right), ~np.isnan(columns[name])
        if not varies(columns[name]):
            return base_rate(columns, right)
        curve = fit(columns[name][known], right[known])

        def predict(fresh: Columns) -> Floats:
            absent = np.isnan(fresh[name])
            return np.where(absent, share, curve(np.where(absent, 0.0, fresh[name])))

        return predict

    return recipe


def platt(column: Floats, right: Floats) -> Callable[[Floats], Floats]:
    """With Platt's (1999) targets."""
    rights = right.sum()
    targets = np.where(right > 0, (rights + 1) / (rights + 2), 1 / (right.size - rights + 2))
    centre, scale = column.mean(), column.std()
    fitted = fit_ridge(((column - centre) / scale)[:, np.newaxis], targets, penalty=1e-3)
    return lambda fresh: np.asarray(expit(fitted[0] + fitted[1] * (fresh - centre) / scale))


def beta(column: Floats, right: Floats) -> Callable[[Floats], Floats]:
    """Kull et al. (2017), of the signal squeezed to 0 to 1; a slope of the wrong sign is 0."""
    centre, scale = column.mean(), column.std()

    def design(values: Floats) -> Floats:
        share = np.clip(expit((values - centre) / scale), 1e-4, 1 - 1e-4)
        return np.stack([np.log(share), -np.log1p(-share)], axis=1)

    used = [0, 1]
    fitted = fit_ridge(design(column), right, penalty=1.0)
    if fitted[1] * fitted[2] < 0:
        used = [int(np.argmax(np.abs(fitted[1:])))]
        fitted = fit_ridge(design(column)[:, used], right, penalty=1.0)
    return lambda fresh: np.asarray(expit(fitted[0] + design(fresh)[:, used] @ fitted[1:]))


def isotonic(column: Floats, right: Floats) -> Callable[[Floats], Floats]:
    values, place, counts = np.unique(column, return_inverse=True, return_counts=True)
    levels = _monotone(np.bincount(place, weights=right) / counts, counts)
    return lambda fresh: np.interp(fresh, values, levels)


def five_bins(column: Floats, right: Floats) -> Callable[[Floats], Floats]:
    """Monotone shares of fifths, each with ten more rows at the base rate."""
    edges = np.unique(np.quantile(column, np.arange(1, 5) / 5))
    place = np.searchsorted(edges, column, side="right")
    counts = np.bincount(place, minlength=edges.size + 1) + 10.0
    hits = np.bincount(place, weights=right, minlength=edges.size + 1)
    levels = _monotone((hits + 10 * smoothed_share(right)) / counts, counts)
    return lambda fresh: np.asarray(levels[np.searchsorted(edges, fresh, side="right")])


def _monotone(shares: Floats, counts: NDArray[Any]) -> Floats:
    """Rising or falling, whichever fits better."""
    fits = [isotonic_regression(shares, weights=counts, increasing=up).x for up in (True, False)]
    return np.asarray(min(fits, key=lambda fit: float((counts * (fit - shares) ** 2).sum())))


def shrunk(penalty: float) -> Recipe:
    """Logistic in all signals, drawn to the base rate by a prior of fixed strength."""

    def recipe(columns: Columns, right: Floats) -> Predict:
        used = {name: column for name, column in columns.items() if varies(column)}
        if not used:
            return base_rate(columns, right)
        curve = fit_logistic_signals(used, right, penalties=[penalty])[0][0]
        return lambda fresh: curve.predict(fresh, rows=next(iter(fresh.values())).size)

    return recipe


def pooled(slopes: dict[str, tuple[float, float]]) -> Recipe:
    """Logistic, with a prior that has the mean and spread of other judges' slopes."""

    def recipe(columns: Columns, right: Floats) -> Predict:
        used = [name for name in columns if varies(columns[name])]
        if not used:
            return base_rate(columns, right)
        centres = {name: np.nanmean(columns[name]) for name in used}
        scales = {name: np.nanstd(columns[name]) for name in used}
        spread = np.array([slopes.get(name, (0.0, 1.0))[1] for name in used])
        mean = np.array([slopes.get(name, (0.0, 1.0))[0] for name in used])

        def design(given: Columns) -> Floats:
            terms = [np.nan_to_num((given[name] - centres[name]) / scales[name]) for name in used]
            return np.stack(terms, axis=1)

        own = design(columns)
        # Newton's method, from the prior's mean.
        fitted = np.concatenate([[logit(smoothed_share(right))], mean])
        ridge = np.concatenate([[1e-6], 1 / spread**2])
        whole = np.concatenate([np.ones((right.size, 1)), own], axis=1)
        centre = np.concatenate([[0.0], mean])
        for _ in range(30):
            chance = expit(whole @ fitted)
            slope = whole.T @ (right - chance) - ridge * (fitted - centre)
            bend = (whole * (chance * (1 - chance))[:, np.newaxis]).T @ whole + np.diag(ridge)
            fitted = fitted + np.clip(np.linalg.solve(bend, slope), -2, 2)
        return lambda fresh: np.asarray(expit(fitted[0] + design(fresh) @ fitted[1:]))

    return recipe


def other_slopes(judges: Sequence[Judged], judge: Judged) -> dict[str, tuple[float, float]]:
    """Mean and spread of each signal's slope in standard units, of other families elsewhere."""
    found: dict[str, list[float]] = {}
    for other in judges:
        used = {name: column for name, column in other.signals.items() if varies(column)}
        if other.may_choose_for(judge) and used and 0 < other.right.mean() < 1:
            curve = fit_logistic_signals(used, other.right, penalties=[1.0])[0][0]
            for part in curve.signals:
                found.setdefault(part.signal, []).append(part.slope)
    return {
        name: (float(np.mean(slopes)), max(0.3, float(np.std(slopes))))
        for name, slopes in found.items()
    }


def inner_choice(
    recipes: Sequence[Recipe], columns: Columns, right: Floats, prompts: NDArray[np.int64]
) -> tuple[Recipe, float]:
    """The one with the least log loss on inner folds, and its best weight beside the base rate."""
    groups = np.unique(prompts, return_inverse=True)[1]
    fold = prompt_folds(groups, int(groups.max()) + 1, folds=5, seed=0)
    chances = np.empty((len(recipes) + 1, right.size))
    for number in range(5):
        out = fold == number
        inside = {name: column[~out] for name, column in columns.items()}
        outside = {name: column[out] for name, column in columns.items()}
        for row, recipe in enumerate((base_rate, *recipes)):
            chances[row, out] = recipe(inside, right[~out])(outside)
    odds = logit(np.clip(chances, 0.01, 0.99))

    def loss(log_odds: Floats) -> float:
        return float(np.logaddexp(0, np.where(right > 0, -1, 1) * log_odds).mean())

    best = int(np.argmin([loss(row) for row in odds[1:]])) + 1
    weights = np.arange(11) / 10
    mixed = [loss(weight * odds[best] + (1 - weight) * odds[0]) for weight in weights]
    return recipes[best - 1], float(weights[int(np.argmin(mixed))])


def candidates(
    columns: Columns,
    right: Floats,
    prompts: NDArray[np.int64],
    *,
    slopes: dict[str, tuple[float, float]],
) -> dict[str, Predict]:
    """What each method learns from these rows; every choice that it leaves open is made here."""
    names = [name for name in columns if varies(columns[name])]
    made: dict[str, Predict] = {"base rate": base_rate(columns, right)}
    single = {"Platt": platt, "beta": beta, "isotonic": isotonic, "five bins, shrunk": five_bins}
    lone = not names or not 0 < right.mean() < 1
    for name, fit in single.items():
        if lone:
            made |= {name: made["base rate"], f"{name}, stacked": made["base rate"]}
            continue
        recipe, weight = inner_choice(
            [_of_signal(fit, signal) for signal in names], columns, right, prompts
        )
        made[name] = recipe(columns, right)
        made[f"{name}, stacked"] = _stacked(made[name], made["base rate"], weight)
    strengths = (0.3, 1.0, 3.0, 10.0, 30.0, 100.0)
    for strength in (1.0, 10.0, 100.0):
        made[f"logistic, prior {strength:g}"] = (
            made["base rate"] if lone else shrunk(strength)(columns, right)
        )
    made["logistic, prior by folds"] = (
        made["base rate"]
        if lone
        else inner_choice([shrunk(each) for each in strengths], columns, right, prompts)[0](
            columns, right
        )
    )
    made["logistic, pooled prior"] = made["base rate"] if lone else pooled(slopes)(columns, right)
    for least in (1.0, 3.0, 10.0, 30.0):
        learned = fit_calibration(right, columns, prompts=prompts, least_bayes_factor=least)
        made[f"logistic, evidence {least:g}"] = learned.predict
    return made


def _stacked(curve: Predict, base: Predict, weight: float) -> Predict:
    def predict(fresh: Columns) -> Floats:
        own, other = (logit(np.clip(each(fresh), 0.001, 0.999)) for each in (curve, base))
        return np.asarray(expit(weight * own + (1 - weight) * other))

    return predict


AUTO = "logistic, evidence 3"


@dataclass(frozen=True, slots=True)
class HeldOutScores:
    """A judge's Brier scores and squared debiased errors: a row for each split, by method."""

    judge: Judged
    learned_from: float
    brier: dict[str, Floats]
    squared_error: dict[str, Floats]
    took_curve: Floats

    def gain(self, method: str) -> float:
        """Mean Brier score less the base rate's; below 0 is better."""
        return float((self.brier[method] - self.brier["base rate"]).mean())


def learned_on_half(given: Judged, *, seed: int) -> tuple[Calibration, NDArray[np.bool_], Floats]:
    """What `evenhand calibrate --min-agreement --seed` learns, the rows it has not seen, and the
    probabilities it gives them."""
    inside = half_of_prompts(given.prompts, seed=seed)
    columns, right, prompts = given.rows(inside)
    learned = fit_calibration(right, columns, prompts=prompts)
    return learned, ~inside, learned.predict(given.rows(~inside)[0])


def compare_methods(
    given: Judged, judges: Sequence[Judged], *, splits: int, seed: int
) -> HeldOutScores:
    slopes = other_slopes(judges, given)
    brier: dict[str, list[float]] = {}
    errors: dict[str, list[float]] = {}
    sizes, curves = [], []
    for split in range(seed, seed + splits):
        inside = half_of_prompts(given.prompts, seed=split)
        columns, right, prompts = given.rows(inside)
        fresh, hits, tested = given.rows(~inside)
        clusters = np.unique(tested, return_inverse=True)[1]
        floor = 1 / (right.size + 2)
        made = candidates(columns, right, prompts, slopes=slopes)
        for name, predict in made.items():
            chances = np.clip(predict(fresh), floor, 1 - floor)
            brier.setdefault(name, []).append(float(((chances - hits) ** 2).mean()))
            place = equal_mass_bins(chances, bins=10)
            errors.setdefault(name, []).append(
                debiased_square(chances, hits, place, clusters=clusters)
            )
        sizes.append(right.size)
        curves.append(float(np.unique(made[AUTO](fresh)).size > 1))
    return HeldOutScores(
        given,
        float(np.mean(sizes)),
        {name: np.array(each) for name, each in brier.items()},
        {name: np.array(each) for name, each in errors.items()},
        np.array(curves),
    )


def chosen_method(tested: Sequence[HeldOutScores]) -> str:
    """Of the methods within a thousandth of the best mean Brier score, sets of pairs counting
    alike, the one that is worse than the base rate for the fewest judges."""
    kinds = sorted({each.judge.kind for each in tested})
    means = {
        method: float(
            np.mean(
                [
                    np.mean([each.gain(method) for each in tested if each.judge.kind == kind])
                    for kind in kinds
                ]
            )
        )
        for method in tested[0].brier
    }
    near = [method for method, mean in means.items() if mean <= min(means.values()) + TOLERANCE]
    return min(near, key=lambda method: sum(each.gain(method) > 0 for each in tested))


FIGURES = "| Brier, base rate | after | worse than it | by at most | error, base rate | after |\n"


def _figures(tested: Sequence[HeldOutScores], methods: Sequence[str]) -> list[str]:
    """Each by its own method: means over splits, then over the judges."""
    gains = np.array([each.gain(method) for each, method in zip(tested, methods, strict=True)])
    base = np.mean([each.brier["base rate"].mean() for each in tested])
    return [
        f"{base:.3f}",
        f"{base + gains.mean():.3f}",
        f"{int((gains > 0).sum())} of {gains.size}",
        f"{max(0.0, float(gains.max())):.4f}",
        _error(tested, ["base rate"] * len(tested)),
        _error(tested, methods),
    ]


def _error(tested: Sequence[HeldOutScores], methods: Sequence[str]) -> str:
    """The root of the mean square, so that what falls below 0 by chance counts."""
    squares = [
        each.squared_error[method].mean() for each, method in zip(tested, methods, strict=True)
    ]
    return f"{math.sqrt(max(0.0, float(np.mean(squares)))):.3f}"


def report_methods(tested: Sequence[HeldOutScores]) -> bool:
    print(
        f"\n{len(tested)} judges, by pairs and orders; learned on half of the prompts, tested on "
        f"the other\n\n| method {FIGURES}|---|" + "---|" * 6
    )
    for method in tested[0].brier:
        show_row(method, _figures(tested, [method] * len(tested)))
    picks = [
        chosen_method([other for other in tested if other.judge.may_choose_for(each.judge)])
        for each in tested
    ]
    show_row("chosen by others", _figures(tested, picks))
    print("\nwhat other families on other pairs choose:")
    for method in sorted(set(picks), key=picks.count, reverse=True):
        print(f"  {method}: for {picks.count(method)} of {len(picks)}")
    held = picks.count(AUTO) > len(picks) / 2
    print(f"\nby what they choose\n\n| | judges | learned from {FIGURES}|---|" + "---|" * 8)
    groups = {
        kind: [each.judge.kind == kind for each in tested] for kind in dict.fromkeys(KINDS.values())
    }
    for low, high in ((30, 50), (50, 100), (100, 200)):
        groups[f"{low} to {high - 1} labels"] = [low <= each.learned_from < high for each in tested]
    for name, inside in groups.items():
        own = [each for each, chosen in zip(tested, inside, strict=True) if chosen]
        methods = [method for method, chosen in zip(picks, inside, strict=True) if chosen]
        sizes = sorted(round(each.learned_from) for each in own)
        span = f"{sizes[0]} to {sizes[-1]}" if sizes[0] < sizes[-1] else f"{sizes[0]}"
        show_row(name, [f"{len(own)}", span, *_figures(own, methods)])
        held &= float(np.mean([each.gain(AUTO) for each in own])) <= 0
    took = np.concatenate([each.took_curve for each in tested]) > 0
    gains = np.concatenate([each.brier[AUTO] - each.brier["base rate"] for each in tested])
    print(
        f"\na curve was learned in {took.mean():.0%} of {took.size} splits; its Brier score on the "
        f"other half was below the base rate's in {(gains[took] < 0).mean():.1%} of these"
    )
    return held and float(np.mean([each.gain(AUTO) > 0 for each in tested])) <= 0.1


# The guarantee on recorded judges.


def pool_guarantee(
    given: Judged, *, target: float, draws: int, splits: int, seed: int
) -> tuple[Granted, Granted]:
    """Half of the prompts teach; the others are a pool, and labels are drawn from it with
    replacement. One row of each prompt. The second is of pools that reach the target nowhere: not
    above any threshold that keeps a fifth of them."""
    everywhere, nowhere = Granted(), Granted()
    for split in range(seed, seed + splits):
        _, outside, chances = learned_on_half(given, seed=split)
        _, right, prompts = given.rows(outside)
        rows = np.unique(prompts, return_index=True)[1]
        sure, hits = chances[rows], right[rows]
        kept_of = {limit: sure >= limit for limit in np.unique(sure).tolist()}
        reached = any(
            hits[kept].mean() >= target for kept in kept_of.values() if kept.mean() >= 0.2
        )
        found = Granted()
        rng = np.random.default_rng([seed, split])
        for draw in range(draws):
            drawn = rng.integers(0, sure.size, sure.size)
            kept = guarantee_agreement(sure[drawn], hits[drawn], target=target, seed=draw)
            found.draws += 1
            if kept.threshold is None or kept.agreement is None:
                continue
            above = sure >= kept.threshold
            truth = float(hits[above].mean())
            found.add(
                truth,
                target,
                covered=covers(kept.agreement, truth),
                coverage=float(above.mean()),
            )
        everywhere += found
        if not reached:
            nowhere += found
    return everywhere, nowhere


def report_guarantee(judges: Sequence[Judged], *, splits: int, seed: int) -> bool:
    print(
        f"\nthe guarantee on recorded judges, error level 0.05\n\n"
        f"| promised, judges {GRANTED_COLUMNS}"
        "|---|" + "---|" * 7
    )
    held = True
    for target in (0.8, 0.9, 0.95):
        totals = {"all": Granted(), "reached nowhere": Granted()}
        for given in judges:
            found = pool_guarantee(given, target=target, draws=20, splits=min(2, splits), seed=seed)
            for name, own in zip(totals, found, strict=True):
                totals[name] += own
        for name, total in totals.items():
            show_row(f"{target}, {name}", total.cells())
        whole = totals["all"]
        held &= whole.false <= 0.05 * whole.draws and whole.covered >= 0.95 * whole.granted
    return held


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    options.add_argument("data", nargs="?", type=Path, default=DATA)
    options.add_argument("--splits", type=int, default=5)
    options.add_argument("--seed", type=int, default=0)
    chosen = options.parse_args()
    print(f"seed {chosen.seed}, {chosen.splits} splits")
    if not (chosen.data / "procedures").is_dir():
        print(f"no recorded judgments in {chosen.data}; give the data folder as the argument")
        return 0
    with TemporaryDirectory() as folder:
        judges = open_judges(chosen.data, Path(folder) / "runs.db")
    tested = [
        compare_methods(each, judges, splits=chosen.splits, seed=chosen.seed) for each in judges
    ]
    held = report_methods(tested)
    held &= report_guarantee(judges, splits=chosen.splits, seed=chosen.seed)
    return 0 if held else 1


if __name__ == "__main__":
    sys.exit(main())
