"""Preparation on recorded judges: what was written comes back, and what it gained is counted."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from scripts.published_figures import PROCEDURES, SUBSETS

from command_line import Command
from run_data import write_lines


def recording(rows: list[tuple[str, str, str]], **steps: Any) -> list[dict[str, Any]]:
    """Of each pair what was said in the first pass and in the second, in the labels shown."""
    return [
        {"id": name, "pass": order, "raw": f"[[{said}]]", "steps": steps}
        for name, first, second in rows
        for order, said in (("original", first), ("swapped", second))
    ]


def labelled(names: str) -> list[dict[str, Any]]:
    """A is right in all of them."""
    return [
        {"id": n, "prompt": f"p{n}", "response_a": "x", "response_b": "y", "label": "A"}
        for n in names
    ]


def test_gain_harm_and_cost_are_counted_by_hand(command: Command, tmp_path: Path) -> None:
    """Eight pairs. Without: four right (A, then B as shown), two inconsistent, two wrong. With
    metrics: six right, one inconsistent, one wrong; pair d, once right, is now inconsistent."""
    right, wavers, wrong = ("A", "B"), ("A", "A"), ("B", "A")
    plain = dict(zip("abcdefgh", [right] * 4 + [wavers] * 2 + [wrong] * 2, strict=True))
    helped = plain | {"d": wavers, "e": right, "f": right, "g": right}
    write_lines(tmp_path / "pairs.jsonl", labelled("abcdefgh"))
    for name, said in (("plain", plain), ("helped", helped)):
        rows = recording([(pair, *each) for pair, each in said.items()], metrics="1. Right?")
        write_lines(tmp_path / f"{name}.jsonl", rows)
    ran = command(
        *("audit", "pairs.jsonl", "--judge", "replay:plain.jsonl", "--try-prepare"),
        *("--choice", "metrics=replay:helped.jsonl", "--store", "s.db", "--json"),
    )
    assert ran.code == 0
    none, metrics = ran.json["tried"]
    assert (none["accuracy"]["part"], metrics["accuracy"]["part"]) == (4, 6)
    # In halves of a pair: d loses 1, e and f gain 1 each, g gains 2: 3 halves of 8 pairs.
    assert metrics["gain"]["value"] == pytest.approx(3 / 2 / 8)
    assert (metrics["mended"]["part"], metrics["harmed"]["part"]) == (3, 1)
    # Two passes a pair; and one text for each of the eight prompts.
    assert (none["callsAPair"], metrics["callsAPair"]) == (2, 3)
    # Eight pairs show nothing.
    assert ran.json["recommended"] is None
    assert metrics["gain"]["low"] < 0 < metrics["gain"]["high"]
    assert "Prepare nothing" in ran.json["sentence"]


def test_choices_that_cannot_be_tried_are_refused(command: Command, tmp_path: Path) -> None:
    write_lines(tmp_path / "pairs.jsonl", labelled("ab"))
    tried = ("audit", "pairs.jsonl", "--judge", "baseline:longer", "--store", "s.db")
    for more, message in (
        (("--choice", "metrics"), "belongs to --try-prepare"),
        (("--try-prepare", "--choice", "none"), "prepares nothing"),
        (("--try-prepare", "--choice", "metrics", "--choice", "metrics"), "given twice"),
        (("--try-prepare", "--choice", "poetry"), "metrics, reference or analysis"),
    ):
        ran = command(*tried, *more)
        assert ran.code == 2
        assert message in ran.err
    assert "needs them in a file" in command("audit", "-", "--try-prepare", *tried[2:]).err


@pytest.mark.recorded
@pytest.mark.parametrize(
    "judge",
    [
        pytest.param(name, marks=() if name == "GPT-4__Metrics_Reference" else pytest.mark.slow)
        for name, _ in PROCEDURES
    ],
)
def test_recorded_procedures_give_their_published_figures(
    command: Command, recorded_data: Path, judge: str
) -> None:
    """With what the judge had written, which is stored and shown as it was recorded."""
    published = dict(PROCEDURES)[judge]
    path = recorded_data / "procedures" / f"llmbar__{judge}.jsonl.gz"
    procedure = judge.partition("__")[2]
    kinds = "none" if procedure == "Vanilla" else procedure.lower().replace("_", ",")
    for subset, figure in zip(SUBSETS, published, strict=True):
        pairs = recorded_data / "pairs" / f"llmbar_{subset}.jsonl"
        ran = command(
            *("audit", str(pairs), "--judge", f"replay:{path}", "--rule", "llmbar"),
            *("--prepare", kinds, "--name", subset, "--store", "s.db", "--json"),
        )
        assert ran.code == 0
        assert f"{ran.json['rule']['accuracy']:.1f}" == figure
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        row = next(row for row in map(json.loads, lines) if row["id"] == "llmbar-neighbor-007")
    shown = command("show", "neighbor", "llmbar-neighbor-007", "--store", "s.db", "--json")
    written = shown.json["judges"][0]["verdict"]["metadata"].get("artefacts", [])
    assert {each["kind"]: each["text"] for each in written} == row["steps"]


@pytest.mark.recorded
@pytest.mark.slow
@pytest.mark.parametrize(("subset", "gain"), [("neighbor", 6.7), ("natural", 0.5)])
def test_what_preparation_gained_gpt_4_is_what_its_figures_say(
    command: Command, recorded_data: Path, subset: str, gain: float
) -> None:
    """85.4 - 78.7 and 96.0 - 95.5: in both orders half credit is the mean of the two orders."""
    at = f"replay:{recorded_data / 'procedures' / 'llmbar__GPT-4__'}"
    ran = command(
        *("audit", str(recorded_data / "pairs" / f"llmbar_{subset}.jsonl"), "--try-prepare"),
        *("--judge", f"{at}Vanilla.jsonl.gz", "--store", "s.db", "--json"),
        *("--choice", f"metrics,reference={at}Metrics_Reference.jsonl.gz"),
    )
    assert round(100 * ran.json["tried"][1]["gain"]["value"], 1) == gain
    assert ran.json["recommended"] == (["metrics", "reference"] if subset == "neighbor" else None)


@pytest.mark.recorded
@pytest.mark.slow
def test_falcon_is_told_to_prepare_nothing(command: Command, recorded_data: Path) -> None:
    at = f"replay:{recorded_data / 'procedures' / 'llmbar__Falcon__'}"
    ran = command(
        *("audit", str(recorded_data / "pairs" / "llmbar_natural.jsonl"), "--try-prepare"),
        *("--judge", f"{at}Vanilla.jsonl.gz", "--store", "s.db", "--json"),
        *("--choice", f"metrics,reference={at}Metrics_Reference.jsonl.gz"),
    )
    # 62.5 - 74.0
    assert round(100 * ran.json["tried"][1]["gain"]["value"], 1) == -11.5
    assert ran.json["tried"][1]["gain"]["high"] < 0
    assert ran.json["sentence"] == "Prepare nothing: every choice makes the judge worse."


@pytest.mark.recorded
def test_ratings_of_inconsistent_pairs_are_counted_apart(
    command: Command, recorded_data: Path
) -> None:
    """Against a count of our own from the files: the pairs that GPT-4 was inconsistent on, and the
    response that it had scored higher alone."""
    procedures = recorded_data / "procedures"
    pairs = recorded_data / "pairs" / "llmbar_neighbor.jsonl"
    labels = {row["id"]: row["label"] for row in map(json.loads, pairs.read_text().splitlines())}

    def rows(name: str) -> list[dict[str, Any]]:
        with gzip.open(procedures / f"llmbar__GPT-4__{name}.jsonl.gz", "rt") as lines:
            return [row for row in map(json.loads, lines) if row["id"] in labels]

    letters: dict[str, list[str]] = {}
    for row in rows("Vanilla"):
        letters.setdefault(row["id"], []).append(row["verdict_as_shown"])
    wavering = {name for name, said in letters.items() if said[0] == said[1]}
    scores = {
        row["id"]: [float(row["rating"][key][0]) for key in ("score_1", "score_2")]
        for row in rows("Rating")
        if row["id"] in wavering
    }
    right = sum(
        a != b and labels[name] == ("A" if a > b else "B") for name, (a, b) in scores.items()
    )
    ran = command(
        *(
            "audit",
            str(pairs),
            "--judge",
            f"replay:{procedures / 'llmbar__GPT-4__Vanilla.jsonl.gz'}",
        ),
        *("--on-inconsistent", "rate", "--rating-samples", "1", "--name", "rated"),
        *("--prepare-with", f"replay:{procedures / 'llmbar__GPT-4__Rating.jsonl.gz'}"),
        *("--store", "s.db", "--json"),
    )
    assert ran.code == 0
    assert ran.json["byRating"]["pairs"] == len(wavering)
    assert ran.json["byRating"]["right"]["part"] == right
    # The pairs stay inconsistent, in the audit and in the report.
    assert ran.json["inconsistent"]["part"] == len(wavering)
    (rated,) = command("report", "rated", "--store", "s.db", "--json").json["ratings"]
    assert rated["rated"] == len(wavering)
    assert rated["a"] + rated["b"] + rated["tie"] + rated["without"] == len(wavering)
    assert rated["tie"] == sum(a == b for a, b in scores.values())


def test_the_prompts_of_what_is_written_can_be_seen(command: Command, tmp_path: Path) -> None:
    write_lines(tmp_path / "pair.json", [labelled("a")[0] | {"criteria": ["accuracy"]}])
    pair = tmp_path / "pair.json"
    document = json.loads(pair.read_text())
    del document["label"]
    pair.write_text(json.dumps(document))
    ran = command("prompt", str(pair), "--prepare", "metrics,analysis", "--json")
    assert ran.code == 0
    asked = [(each.get("artefact"), each.get("response")) for each in ran.json["requests"]]
    assert asked == [("metrics", None), ("analysis", "A"), ("analysis", "B"), *[(None, None)] * 2]
    assert "prepared" in ran.json["promptVersion"]
    assert (
        "──── analysis B · user ────" in command("prompt", str(pair), "--prepare", "analysis").out
    )
