"""The recorded judges by the commands alone: run, calibrate on half, look at the other half."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scripts.verify_calibrated_runs import Judged, learned_on_half

from command_line import Command
from evenhand.judging.decision import PassBallot, PassResult
from evenhand.store import open_store
from evenhand.trust.labelled_verdicts import labelled_verdicts

LLMBAR = ("llmbar_natural", "llmbar_neighbor", "llmbar_gptinst")
SPLITS = 6


def judged(command: Command, data: Path, recording: str, sets: tuple[str, ...], *how: str) -> None:
    how += ("--protocol", "llmbar") if recording.startswith("llmbar") else ()
    ran = command(
        *("run", *(str(data / "pairs" / f"{name}.jsonl") for name in sets)),
        *("--judge", f"replay:{data / 'judgments' / recording}.jsonl.gz"),
        *("--store", "store.db", "--name", "recorded", *how),
    )
    assert ran.code == 0


def calibrated(command: Command, *, seed: int) -> Any:
    ran = command(
        *("calibrate", "recorded", "--store", "store.db", "--min-agreement", "0.8"),
        *("--seed", str(seed), "--json"),
    )
    assert ran.code == 0
    return ran.json


@pytest.mark.slow
@pytest.mark.parametrize(
    ("recording", "sets", "signals", "verdicts", "left_out"),
    [
        # Of 350 pairs 110 are inconsistent: 31.43% as published.
        pytest.param(
            "judgebench_gpt4o__arena_hard_o1-mini-2024-09-12",
            ("judgebench_gpt4o",),
            ["strength", "orders", "length"],
            240,
            110,
            marks=pytest.mark.slow,
        ),
        # The three with two equal scores were recorded as B in both orders.
        (
            "judgebench_gpt4o__reward_model_Skywork_Skywork-Reward-Gemma-2-27B",
            ("judgebench_gpt4o",),
            ["scores", "orders", "length"],
            347,
            3,
        ),
        pytest.param(
            *("llmbar__GPT-4_CoT", LLMBAR, ["orders", "length"], 295, 31), marks=pytest.mark.slow
        ),
    ],
)
def test_a_recorded_judge_is_calibrated_on_prompts_it_was_not_learned_on(
    command: Command,
    recorded_data: Path,
    recording: str,
    sets: tuple[str, ...],
    signals: list[str],
    verdicts: int,
    left_out: int,
) -> None:
    judged(command, recorded_data, recording, sets)
    found = [calibrated(command, seed=seed) for seed in range(SPLITS)]
    assert {tuple(one["signals"]) for one in found} == {tuple(signals)}
    assert {(one["verdicts"], one["inconsistent"]) for one in found} == {(verdicts, left_out)}
    tested = [one["change"]["afterAll"] for one in found]
    met = [one["error"] <= 0.05 or not one["distinguishable"] for one in tested]
    # Halves of the same verdicts: by chance alone one in six is told from zero.
    assert sum(met) >= SPLITS / 2
    brier, base = (
        float(np.mean([one[name] if name == "baseBrier" else one[name]["value"] for one in tested]))
        for name in ("brier", "baseBrier")
    )
    assert brier < base
    with open_store(command.directory / "store.db") as store:
        columns = labelled_verdicts(store, "recorded")
    for seed, one in enumerate(found):
        # The tables of the docs come from the same calibration as the command's.
        judge = Judged("", "", (), columns.right, columns.prompts, columns.signals)
        learned, outside, after = learned_on_half(judge, seed=seed)
        squares = (after - columns.right[outside]) ** 2
        assert one["change"]["afterAll"]["brier"]["value"] == pytest.approx(squares.mean())
        assert one["calibration"]["calibration"]["logBayesFactor"] == learned.log_bayes_factor


def test_a_reward_models_margin_becomes_a_probability(
    command: Command, recorded_data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EVENHAND_CALIBRATIONS", str(command.directory / "kept"))
    recording = "judgebench_gpt4o__reward_model_Skywork_Skywork-Reward-Gemma-2-27B"
    judged(command, recorded_data, recording, ("judgebench_gpt4o",))
    args = ("--store", "store.db")
    assert command("calibrate", "recorded", *args, "--save", "reward").code == 0
    again = command(
        *("run", str(recorded_data / "pairs" / "judgebench_gpt4o.jsonl")),
        *("--judge", f"replay:{recorded_data / 'judgments' / recording}.jsonl.gz", *args),
        *("--calibration", "reward", "--name", "calibrated"),
    )
    assert again.code == 0
    with open_store(command.directory / "store.db") as store:
        rows = list(store.verdicts.each_whole(2))
    sources = [row.row.confidence_source for row in rows]
    assert sources.count("calibration") == 347
    assert sources.count("rule") == 3
    margins = [
        abs(ballot.scores.a - ballot.scores.b)
        for row in rows
        if isinstance(made := row.passes[0].made, PassResult)
        and isinstance(ballot := made.reading, PassBallot)
        and ballot.scores
    ]
    sure = [row.row.confidence or 0.0 for row in rows]
    # The curve goes by the margin or by it and length, so that larger margins are surer.
    assert len(margins) == 350
    assert np.corrcoef(np.argsort(np.argsort(margins)), np.argsort(np.argsort(sure)))[0, 1] > 0.8
