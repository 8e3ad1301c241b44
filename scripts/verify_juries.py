"""Is a jury of recorded judges as right as its best member?

    python -m scripts.verify_juries [--panels 10] [--later 14] [--seed 0] [DATA_DIR]

Judges are replayed into a store. Panels of 3, 4 and 5 of them are drawn, so many of each size, and
each goes through what `evenhand jury` does: rules are learned and chosen inside splits by prompt,
and compared with what is undecided as half. Prints the table of docs/calibration.md.

The rules were built on the panels of seed 0, and the gain that a rule needs was set on those of
seeds 1 to 8; the panels "drawn later" (14 of each size) had no part in either, though they hold the
same judges and pairs. The last two sets had no part in anything. Exits 1 where more panels are
worse than their best member beyond the interval than chance makes of equals (2.5%). Run by `make
verify`.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from scripts.verify_calibrated_runs import DATA, labelled_rows

import evenhand
from evenhand.analyses.jury import JuryReport
from evenhand.analyses.registry import JURY, analyse
from evenhand.analysis_options import JuryOptions
from evenhand.judging.config import JudgeConfig
from evenhand.runs.options import RunOptions
from evenhand.settings import Settings
from evenhand.stats.estimates import EstimatedShare, EstimatedValue
from evenhand.store import Store, open_store

SIZES = (3, 4, 5)
LATER_SEED = 20261118
MOST_BEYOND = 0.025
LLMBAR = {
    "LLMBar Natural": ("llmbar_natural",),
    "LLMBar adversarial": ("llmbar_neighbor", "llmbar_gptinst"),
}
# Sets with one panel each.
OTHERS = {
    "LLMBar's MT-Bench and LLMEval": (
        ("llmbar_processed_llmeval2", "llmbar_processed_mtbench"),
        "llmbar_processed__*",
        (),
    ),
    # Two judges are recorded; the third is a rule.
    "JudgeBench": (("judgebench_gpt4o",), "judgebench_gpt4o__*", ("baseline:longer",)),
}
# Files that hold the same judgments as others under procedures/.
COPIES = ("llmbar__GPT-4_Metrics_Reference", "llmbar__GPT-4_Vanilla")


@dataclass(frozen=True, slots=True)
class Panel:
    """A panel's figures, undecided as half; `hindsight` is the default's less the best member's,
    and `right` the same with what is undecided as not right."""

    judges: tuple[str, ...]
    votes: float | None
    best: float
    gains: dict[str, float]
    default: tuple[float, float, float]
    picked: str
    hindsight: float
    right: float

    @classmethod
    def of(cls, judges: tuple[str, ...], report: JuryReport) -> Panel:
        rules = {each.rule: each for each in report.accuracy}
        members = report.accuracy[-len(judges) :]
        alone = [number(each.half_credit) for each in members]
        return cls(
            judges=judges,
            votes=report.effective_votes.value,
            best=number(rules["best member"].half_credit),
            gains={name: number(rules[name].gain) for name in ("plurality", "majority", "learned")},
            default=(number(report.gain), report.gain.low or 0.0, report.gain.high or 0.0),
            picked=", ".join(rules["chosen"].picks),
            hindsight=number(rules["chosen"].half_credit) - max(alone),
            right=share(rules["chosen"].accuracy) - max(share(each.accuracy) for each in members),
        )


def number(estimate: EstimatedValue | None) -> float:
    if estimate is None or estimate.value is None:
        raise ValueError("a panel lacks a figure: it has too few labels")
    return estimate.value


def share(estimate: EstimatedShare) -> float:
    return estimate.part / estimate.of


def replay(data: Path, store: Path, name: str, sets: tuple[str, ...], *judges: str) -> str:
    rows = [row for each in sets for row in labelled_rows(data / "pairs" / f"{each}.jsonl")]
    options = RunOptions(store=store, name=name)
    config = JudgeConfig(protocol="llmbar" if "llmbar__" in judges[0] else None)
    evenhand.run_sync(rows, list(judges), config, criteria=["quality"], options=options)
    return name


def llmbar_judges(data: Path) -> list[Path]:
    """Those whose passes were recorded: ratings of single responses have none."""
    found = [
        path
        for folder in ("judgments", "procedures")
        for path in sorted((data / folder).glob("llmbar__*.jsonl.gz"))
    ]
    return [
        path
        for path in found
        if "Rating" not in path.name
        and not (path.parent.name == "judgments" and path.name.split(".")[0] in COPIES)
    ]


def panels(
    data: Path, path: Path, *, each: int, later: int, seed: int
) -> Iterator[tuple[str, Panel]]:
    draws = (
        ("", each, np.random.default_rng(seed)),
        (", drawn later", later, np.random.default_rng(LATER_SEED)),
    )
    for name, sets in LLMBAR.items():
        runs = [
            replay(data, path, f"{name} {place}", sets, f"replay:{judge}")
            for place, judge in enumerate(llmbar_judges(data))
        ]
        with open_store(path) as store:
            for when, number, rng in draws:
                for size in np.repeat(SIZES, number):
                    drawn = rng.choice(len(runs), size, replace=False)
                    yield name + when, tried(store, [runs[one] for one in drawn])
    for name, (sets, pattern, rules) in OTHERS.items():
        judges = [f"replay:{one}" for one in sorted((data / "judgments").glob(pattern))]
        judges += rules
        run = replay(data, path, name, sets, *judges)
        with open_store(path) as store:
            yield name, tried(store, [run])


def tried(store: Store, runs: list[str]) -> Panel:
    report = analyse(JURY, store, runs, JuryOptions(), Settings())
    return Panel.of(tuple(each.title for each in report.judges), report)


def points(values: list[float]) -> str:
    return f"{100 * float(np.mean(values)):+.1f}"


def print_table(found: dict[str, list[Panel]]) -> None:
    rules = ("plurality", "majority", "learned")
    heads = ["panels", "effective votes", "best member", *rules, "**default** (lowest)"]
    heads += ["worse", "beyond its interval"]
    print(f"| set | {' | '.join(heads)} |\n|---|" + "---|" * len(heads))
    for name, each in found.items():
        gains = [one.default[0] for one in each]
        cells = [
            str(len(each)),
            f"{np.mean([one.votes for one in each if one.votes is not None]):.1f}",
            f"{100 * float(np.mean([one.best for one in each])):.1f}%",
            *(points([one.gains[rule] for one in each]) for rule in rules),
            f"**{points(gains)}** ({100 * min(gains):+.1f})",
            str(sum(gain < 0 for gain in gains)),
            str(sum(one.default[2] < 0 for one in each)),
        ]
        print(f"| {name} | " + " | ".join(cells) + " |")


def sum_up(name: str, some: list[Panel]) -> bool:
    """Says whether more are worse beyond their interval than chance makes."""
    beyond = [panel for panel in some if panel.default[2] < 0]
    behind = [-100 * panel.hindsight for panel in some if panel.hindsight < 0]
    worse = [panel.default[0] for panel in some if panel.default[0] < 0]
    print(
        f"\n{len(some)} panels {name}: the default is worse than the best member in {len(worse)},"
        f" by at most {-100 * min(worse, default=0):.1f} points, beyond its interval in"
        f" {len(beyond)}, and better beyond it in {sum(panel.default[1] > 0 for panel in some)};"
        f" worse than the member that was the best in hindsight in {len(behind)}, by at most "
        f"{max(behind, default=0):.1f} points; with what is undecided as not right in "
        f"{sum(panel.right < 0 for panel in some)}"
    )
    missed = len(beyond) > MOST_BEYOND * len(some)
    for panel in beyond:
        print(f"{'MISSED ' * missed}{', '.join(panel.judges)}: {panel.default}, {panel.picked}")
    return missed


def main(arguments: list[str] | None = None) -> int:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    options.add_argument("data", nargs="?", type=Path, default=DATA)
    options.add_argument("--panels", type=int, default=10)
    options.add_argument("--later", type=int, default=14, help="panels of each size, drawn later")
    options.add_argument("--seed", type=int, default=0)
    chosen = options.parse_args(arguments)
    if not (chosen.data / "procedures").is_dir():
        print(f"no recorded judgments in {chosen.data}; give the data folder as the argument")
        return 0
    found: dict[str, list[Panel]] = {}
    with TemporaryDirectory() as folder:
        path = Path(folder) / "runs.db"
        for name, panel in panels(
            chosen.data, path, each=chosen.panels, later=chosen.later, seed=chosen.seed
        ):
            found.setdefault(name, []).append(panel)
    print(f"seed {chosen.seed}; points of accuracy with what is undecided as half\n")
    print_table(found)
    later = [panel for name, each in found.items() if "later" in name for panel in each]
    every = [panel for name, each in found.items() if "later" not in name for panel in each]
    missed = False
    for name, some in (("built with, and other sets", every), ("drawn later", later)):
        missed |= sum_up(name, some)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
