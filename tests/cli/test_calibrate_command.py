"""`evenhand calibrate`, and what it saves in `compare` and `run`."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from command_line import Command
from run_data import CRITERIA, adds_up, is_right, labelled_sums, sums, unsure_answer, write_lines
from servers import Reply, SeenRequest, StartServer, chat_reply

PAIRS = 150


def unsure(request: SeenRequest) -> Reply:
    return chat_reply(unsure_answer(request.prompt))


@pytest.fixture
def judged(
    command: Command, start_server: StartServer, monkeypatch: pytest.MonkeyPatch
) -> tuple[str, ...]:
    """Labelled sums, judged in run `sums`; the options by which the judge is asked again."""
    monkeypatch.setenv("EVENHAND_CALIBRATIONS", str(command.directory / "kept"))
    server = start_server(unsure)
    write_lines(command.directory / "sums.jsonl", labelled_sums(PAIRS))
    at = ("--judge", "openai:loopback", "--base-url", server.url, *CRITERIA)
    ran = command("run", "sums.jsonl", *at, "--store", "store.db", "--name", "sums")
    assert ran.code == 0
    return at


def test_a_calibration_is_learned_shown_and_kept(command: Command, judged: tuple[str, ...]) -> None:
    ran = command(
        *("calibrate", "sums", "--store", "store.db", "--save", "adder"),
        *("--plot", "reliability.svg"),
    )
    assert ran.code == 0
    right = sum(is_right(number) for number in range(1, PAIRS + 1))
    assert f"{PAIRS} verdicts of {PAIRS} prompts" in ran.out
    assert f"{100 * right / PAIRS:.1f}% right" in ran.out
    for row in ("calibration error", "Brier score", "log loss"):
        assert row in ran.out
    assert "beats overall accuracy" in " ".join(ran.out.split())
    assert "--calibration adder" in ran.out
    assert (command.directory / "kept" / "adder.json").is_file()
    assert (command.directory / "reliability.svg").read_text("utf-8").startswith("<svg")


def test_a_run_with_it_asks_nothing_anew_and_says_where_confidence_comes_from(
    command: Command, judged: tuple[str, ...]
) -> None:
    assert command("calibrate", "sums", "--store", "store.db", "--save", "adder").code == 0
    ran = command(
        *("run", "sums.jsonl", *judged, "--store", "store.db", "--calibration", "adder"),
        *("--name", "calibrated", "--json"),
    )
    assert ran.code == 0
    assert (ran.json["calls"], ran.json["reusedPasses"]) == (0, 2 * PAIRS)
    assert ran.json["abstentions"] == []
    shown = command("show", "calibrated", "sum-1", "--store", "store.db", "--json")
    assert '"confidenceSource": "calibration"' in shown.out
    one = sums(1)[0]
    write_lines(
        command.directory / "one.json",
        [{"prompt": one["prompt"], "responseA": one["response_a"], "responseB": one["response_b"]}],
    )
    compared = command("compare", "one.json", *judged, "--calibration", "adder", "--json")
    assert compared.code == 0
    assert compared.verdict["metadata"]["confidenceSource"] == "calibration"
    stored = json.loads(shown.out)
    assert f'"confidence": {compared.verdict["confidence"]}' in json.dumps(stored)
    said = command("compare", "one.json", *judged, "--calibration", "adder")
    assert "(probability of being right, calibrated)\n" in said.out


def test_what_abstains_is_counted_by_run_and_report(
    command: Command, judged: tuple[str, ...]
) -> None:
    saved = command(
        *("calibrate", "sums", "--store", "store.db", "--save", "sure.json"),
        *("--min-agreement", "0.7", "--error-level", "0.2", "--json"),
    )
    assert saved.code == 0
    guarantee = saved.json["calibration"]["guarantee"]
    assert guarantee["errorLevel"] == 0.2
    assert guarantee["threshold"] is not None
    ran = command(
        *("run", "sums.jsonl", *judged, "--store", "store.db", "--calibration", "sure.json"),
        *("--name", "guarded", "--json"),
    )
    (found,) = ran.json["abstentions"]
    assert found["kept"] + found["abstained"] == PAIRS
    assert 0 < found["kept"] < PAIRS
    report = command("report", "guarded", "--store", "store.db", "--json")
    assert report.json["conclusions"]["abstentions"] == [found]
    told = command("report", "guarded", "--store", "store.db").out
    assert f"{found['abstained']} of {PAIRS} pairs" in told
    assert "coverage" in told


def test_a_guarantee_names_its_data_and_labels_that_contradict_it_warn(
    command: Command, judged: tuple[str, ...]
) -> None:
    calibrated = ("calibrate", "sums", "--store", "store.db", "--save", "sure")
    saved = command(*calibrated, "--min-agreement", "0.7", "--error-level", "0.2")
    promised = " ".join(saved.out.split())
    assert "applies only to data like run sums (sums.jsonl)" in promised
    assert "this guarantee fails in at most 20% of calibrations" in promised
    assert re.search(r"at least 70% agreement; observed \d+ of \d+: 0\.\d+ \(0\.\d+ to", promised)
    # The judge is as sure of itself, and people think otherwise of half of the pairs.
    other = {"A": "B", "B": "A"}
    shifted = [
        row | {"label": other[row["label"]]} if place % 2 else row
        for place, row in enumerate(labelled_sums(PAIRS))
    ]
    write_lines(command.directory / "shifted.jsonl", shifted)
    at = (*judged, "--store", "store.db", "--calibration", "sure")
    alike = command("run", "sums.jsonl", *at, "--name", "alike", "--json")
    (found,) = alike.json["abstentions"]
    assert not found["check"]["contradicted"]
    learned = found["learnedFrom"]
    assert (learned["calibration"], learned["run"]) == ("sure", "sums")
    assert learned["data"] == ["sums.jsonl"]
    (told,) = found["notes"]
    assert "the guarantee was learned on run sums (sums.jsonl, judged " in told
    assert "it applies only to data like this" in told
    seen = learned["agreement"]
    assert f"where {seen['part']} of {seen['of']} verdicts above the threshold agreed" in told
    ran = command("run", "shifted.jsonl", *at, "--name", "shifted")
    said = " ".join(ran.out.split())
    assert "WARNING the labels contradict openai:loopback's guarantee" in said
    report = command("report", "shifted", "--store", "store.db", "--json")
    (found,) = report.json["conclusions"]["abstentions"]
    check = found["check"]
    assert check["contradicted"]
    assert (check["agreeing"], check["n"]) == (
        found["agreementKept"]["part"],
        found["agreementKept"]["of"],
    )
    assert check["agreeing"] / check["n"] < 0.7
    assert "but 0.7 was promised (p " in found["notes"][1]
    # The same calibration under another name is the same run.
    command(*calibrated[:4], "--save", "again", "--min-agreement", "0.7", "--error-level", "0.2")
    same = command("run", "sums.jsonl", *at[:-1], "again", "--json")
    assert same.json["run"] == "alike"


def test_where_nothing_can_be_guaranteed_it_says_so(
    command: Command, judged: tuple[str, ...]
) -> None:
    ran = command("calibrate", "sums", "--store", "store.db", "--min-agreement", "0.99")
    assert ran.code == 0
    said = " ".join(ran.out.split())
    assert "no threshold can be guaranteed" in said
    assert "guarantee none for" in said
    assert "it applies only to data" not in said


def test_the_value_that_is_used_is_the_one_that_is_named(
    command: Command, start_server: StartServer
) -> None:
    """30 of 30 right, one right and one wrong added: 31 of 32."""
    server = start_server(adds_up)
    write_lines(command.directory / "sums.jsonl", labelled_sums(30))
    at = ("--judge", "openai:loopback", "--base-url", server.url, *CRITERIA)
    assert command("run", "sums.jsonl", *at, "--store", "store.db", "--name", "run").code == 0
    ran = command("calibrate", "run", "--store", "store.db")
    said = " ".join(ran.out.split())
    assert "the smoothed accuracy, 0.969" in said
    assert "1.000 (" not in said


def test_another_judge_is_refused_unless_forced(
    command: Command, judged: tuple[str, ...], start_server: StartServer
) -> None:
    assert command("calibrate", "sums", "--store", "store.db", "--save", "adder").code == 0
    server = start_server(adds_up)
    other = ("--judge", "openai:other", "--base-url", server.url, *CRITERIA)
    asked = ("run", "sums.jsonl", *other, "--store", "store.db", "--calibration", "adder")
    ran = command(*asked, "--json")
    assert ran.code == 2
    assert "learned on another judge" in ran.json["error"]["message"]
    assert server.requests == []
    assert command(*asked, "--force-calibration", "--json").code == 0


def test_what_cannot_be_is_told(command: Command, judged: tuple[str, ...]) -> None:
    for arguments, told in (
        (("calibrate", "none", "--store", "store.db"), "no run"),
        (("calibrate", "sums", "--store", "store.db", "--error-level", "0.1"), "--min-agreement"),
        (("calibrate", "sums", "--store", "store.db", "--judge", "nobody"), "has no judge"),
        (
            ("calibrate", "sums", "--store", "store.db", "--min-agreement", "2"),
            "less than or equal to 1",
        ),
        (
            ("run", "sums.jsonl", *judged, "--store", "store.db", "--calibration", "nothing"),
            "no calibration 'nothing'",
        ),
        (
            ("run", "sums.jsonl", *judged, "--store", "store.db", "--force-calibration"),
            "--calibration",
        ),
        (
            ("run", "sums.jsonl", *judged, "--store", "store.db", "--for-people", "x.jsonl"),
            "--escalate",
        ),
    ):
        ran = command(*arguments, "--json")
        assert ran.code == 2
        assert told in ran.json["error"]["message"]
    assert command("calibrate", "sums", "--store", "store.db", "--save", "twice").code == 0
    again = command("calibrate", "sums", "--store", "store.db", "--save", "twice", "--json")
    assert (again.code, "--force" in again.json["error"]["message"]) == (2, True)
    forced = command("calibrate", "sums", "--store", "store.db", "--save", "twice", "--force")
    assert forced.code == 0


def test_a_cascade_on_the_command_line(command: Command, judged: tuple[str, ...]) -> None:
    command(
        *("calibrate", "sums", "--store", "store.db", "--save", "sure"),
        *("--min-agreement", "0.7", "--error-level", "0.2"),
    )
    asked = (
        *("run", "sums.jsonl", *judged, "--store", "store.db", "--calibration", "sure"),
        *("--escalate", "baseline:longer", "--for-people", "left.jsonl"),
    )
    ran = command(*asked, "--json")
    assert ran.code == 0
    first, second = ran.json["stages"]
    assert first["judge"] == "openai:loopback"
    assert second["judge"] == "baseline:longer"
    assert second["asked"] == first["abstained"] > 0
    lines = (command.directory / "left.jsonl").read_text("utf-8").splitlines()
    assert len(lines) == ran.json["left"]
    told = command(*asked)
    assert told.code == 0
    assert "left for people" in " ".join(told.out.split())


@pytest.mark.slow
@pytest.mark.recorded
@pytest.mark.parametrize(
    "judge", ["GPT-4_CoT", "GPT-4_Metrics_Reference", "GPT-4_Vanilla", "PaLM2_CoT"]
)
def test_recorded_judges_are_calibrated_on_prompts_they_did_not_teach(
    command: Command, recorded_data: Path, judge: str
) -> None:
    """Learned on half of the prompts (the half that --min-agreement leaves), tested on the other:
    an error of at most 0.05 or none that can be told from zero, and a Brier score that beats
    the share that is right."""
    names = ("natural", "neighbor", "gptinst")
    files = [recorded_data / "pairs" / f"llmbar_{name}.jsonl" for name in names]
    (command.directory / "all.jsonl").write_text(
        "".join(file.read_text("utf-8") for file in files), "utf-8"
    )
    recordings = recorded_data / "judgments" / f"llmbar__{judge}.jsonl.gz"
    replayed = ("--judge", f"replay:{recordings}", "--protocol", "llmbar")
    asked = ("run", "all.jsonl", *replayed, "--store", "store.db")
    assert command(*asked, "--name", "recorded").code == 0
    ran = command(
        *("calibrate", "recorded", "--store", "store.db", "--save", "it.json"),
        *("--min-agreement", "0.8", "--json"),
    )
    assert ran.code == 0
    after = ran.json["change"]["afterAll"]
    assert after["error"] <= 0.05 or not after["distinguishable"]
    assert after["brier"]["value"] < after["baseBrier"]
    again = command(*asked, "--calibration", "it.json", "--json")
    (found,) = again.json["abstentions"]
    assert again.json["calls"] == 0
    guarantee = ran.json["calibration"]["guarantee"]
    if guarantee["threshold"] is None:
        assert found["kept"] == 0
    else:
        assert found["agreementKept"]["value"] >= 0.8
