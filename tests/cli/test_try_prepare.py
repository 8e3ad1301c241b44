"""Preparation on recorded judges: what was written comes back, and what it gained is counted."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from scripts.published_figures import PROCEDURES, SUBSETS
from sqlalchemy import func, select

from command_line import Command
from evenhand.cli.options import JudgeChoices
from evenhand.errors import InputError
from evenhand.judging.config import JudgeConfig
from evenhand.store import open_store
from evenhand.store.schema import answers
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
        (("--choice", "metrics"), "--choice requires --try-prepare"),
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
def test_what_a_recorded_judge_had_written_is_stored_and_shown(
    command: Command, recorded_data: Path, judge: str
) -> None:
    path = recorded_data / "procedures" / f"llmbar__{judge}.jsonl.gz"
    procedure = judge.partition("__")[2]
    kinds = "none" if procedure == "Vanilla" else procedure.lower().replace("_", ",")
    for subset in SUBSETS:
        pairs = recorded_data / "pairs" / f"llmbar_{subset}.jsonl"
        ran = command(
            *("audit", str(pairs), "--judge", f"replay:{path}"),
            *("--prepare", kinds, "--name", subset, "--store", "s.db", "--json"),
        )
        assert ran.code == 0
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
    assert ran.json["sentence"] == "Prepare nothing: every option makes the judge worse."


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


def test_more_half_credit_with_fewer_right_is_not_recommended(
    command: Command, tmp_path: Path
) -> None:
    """Sixty pairs: 30 right and 30 wrong become 24 right and 36 inconsistent. Half credit rises
    from 30 to 24 + 36 / 2 = 42 of 60; what is right falls by 6."""
    names = [f"n{number}" for number in range(60)]
    pairs = [labelled("a")[0] | {"id": name, "prompt": name} for name in names]
    write_lines(tmp_path / "pairs.jsonl", pairs)
    right, wavers, wrong = ("A", "B"), ("A", "A"), ("B", "A")
    said = {"plain": [right] * 30 + [wrong] * 30, "wary": [right] * 24 + [wavers] * 36}
    for name, each in said.items():
        rows = [(pair, *letters) for pair, letters in zip(names, each, strict=True)]
        write_lines(tmp_path / f"{name}.jsonl", recording(rows, metrics="1. Right?"))
    ran = command(
        *("audit", "pairs.jsonl", "--judge", "replay:plain.jsonl", "--try-prepare"),
        *("--choice", "metrics=replay:wary.jsonl", "--store", "s.db", "--json"),
    )
    tried = ran.json["tried"][1]
    assert tried["gain"]["value"] == pytest.approx(12 / 60)
    assert tried["gain"]["low"] > 0
    assert tried["rightGain"]["value"] == pytest.approx(-6 / 60)
    assert ran.json["recommended"] is None


def test_passes_that_were_never_recorded_are_no_harm(command: Command, tmp_path: Path) -> None:
    write_lines(tmp_path / "pairs.jsonl", labelled("abcdefgh"))
    whole = recording([(name, "A", "B") for name in "abcdefgh"], metrics="1. Right?")
    write_lines(tmp_path / "plain.jsonl", whole)
    write_lines(tmp_path / "lacking.jsonl", whole[:-1])
    ran = command(
        *("audit", "pairs.jsonl", "--judge", "replay:plain.jsonl", "--try-prepare"),
        *("--choice", "metrics=replay:lacking.jsonl", "--store", "s.db", "--json"),
    )
    assert (ran.json["pairs"], ran.json["leftOut"]) == (7, 1)
    assert ran.json["tried"][1]["harmed"]["part"] == 0


def test_what_came_to_nothing_was_not_tried(command: Command, tmp_path: Path) -> None:
    write_lines(tmp_path / "pairs.jsonl", labelled("abcdefgh"))
    rows = recording([(name, "A", "B") for name in "abcdefgh"], metrics=" ")
    write_lines(tmp_path / "empty.jsonl", rows)
    ran = command(
        *("audit", "pairs.jsonl", "--judge", "replay:empty.jsonl", "--try-prepare"),
        *("--choice", "metrics", "--store", "s.db", "--json"),
    )
    assert (ran.json["tried"][1]["written"], ran.json["tried"][1]["unused"]) == (8, 8)
    assert ran.json["sentence"].startswith("Not tested: 8 of 8 metrics texts were unusable")


def test_a_choice_with_a_judge_of_its_own_is_not_sent_the_others_key(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[tuple[str | None, str | None]] = []

    def looked_at(self: JudgeConfig) -> object:
        opened.append((self.judge, self.api_key))
        raise InputError("seen")

    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-openai")
    write_lines(tmp_path / "pairs.jsonl", labelled("ab"))
    write_lines(tmp_path / "plain.jsonl", recording([("a", "A", "B"), ("b", "A", "B")]))
    begun = ("audit", "pairs.jsonl", "-c", "x", "--try-prepare", "--store", "s.db", "--yes")
    command(*begun, "--judge", "replay:plain.jsonl", "--choice", "metrics")  # the first is judged
    monkeypatch.setattr(JudgeConfig, "open_judge", looked_at)
    command(*begun, "--judge", "openai:m", "--choice", "metrics=anthropic:m")
    assert opened == [("openai:m", "sk-of-openai")]
    choice = JudgeChoices().config("anthropic:m")
    assert choice.api_key is None


def test_pairs_with_the_same_texts_keep_their_own_recorded_texts(
    command: Command, tmp_path: Path
) -> None:
    pairs = [each | {"prompt": "the same"} for each in labelled("ab")]
    write_lines(tmp_path / "pairs.jsonl", pairs)
    rows = [
        each | {"steps": {"metrics": f"of {each['id']}"}}
        for each in recording([("a", "A", "B"), ("b", "A", "B")])
    ]
    write_lines(tmp_path / "rows.jsonl", rows)
    judged = ("run", "pairs.jsonl", "--judge", "replay:rows.jsonl", "--prepare", "metrics")
    for name in ("first", "second"):
        assert command(*judged, "--name", name, "--locale", "zh", "--store", "s.db").code == 0

    def told(run: str, pair: str) -> list[str]:
        shown = command("show", run, pair, "--store", "s.db", "--json").json
        metadata = shown["judges"][0]["verdict"]["metadata"]
        return [each["text"] for each in metadata.get("artefacts", [])]

    assert (told("first", "a"), told("first", "b")) == (["of a"], ["of b"])
    # What the second run has too stays when the first goes, and goes with the last.
    assert command("runs", "delete", "first", "--yes", "--store", "s.db").code == 0
    assert told("second", "b") == ["of b"]
    assert command("runs", "delete", "second", "--yes", "--store", "s.db").code == 0
    with open_store(tmp_path / "s.db") as store, store.reading() as connection:
        assert connection.execute(select(func.count()).select_from(answers)).scalar_one() == 0
