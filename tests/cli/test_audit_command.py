"""`evenhand audit` as its users give it: recorded judges, labels of their own, thresholds."""

from __future__ import annotations

import gzip
import json
import re
from collections import Counter
from pathlib import Path

import pytest
from scripts import published_figures as published

from command_line import Command
from evenhand.contract import AnswerProtocol, Winner
from evenhand.judges.replay import ReplayJudge
from run_data import CRITERIA, adds_up, sums, write_lines
from scripted import answer_json
from servers import Reply, SeenRequest, StartServer, chat_reply


@pytest.mark.slow
@pytest.mark.recorded
@pytest.mark.parametrize(
    ("judge", "alarm"), [("Falcon_CoT", True), ("GPT-4_Metrics_Reference", False)]
)
def test_the_position_alarm_fires_for_falcon_alone(
    command: Command, recorded_data: Path, judge: str, alarm: bool
) -> None:
    files = [recorded_data / "pairs" / f"llmbar_{name}.jsonl" for name in ("natural", "neighbor")]
    (command.directory / "all.jsonl").write_text(
        "".join(file.read_text("utf-8") for file in files), "utf-8"
    )
    recordings = recorded_data / "judgments" / f"llmbar__{judge}.jsonl.gz"
    ran = command(
        *("audit", "all.jsonl", "--judge", f"replay:{recordings}", "--store", "store.db"),
        *("--protocol", "llmbar", "--json"),
    )
    assert ran.code == 0
    assert ran.json["findings"]["placeAlarm"] is alarm


@pytest.mark.recorded
@pytest.mark.parametrize(("judge", "alarm"), [("Falcon_CoT", True), ("GPT-4_CoT", False)])
def test_a_report_raises_the_position_alarm_in_its_conclusion(
    command: Command, recorded_data: Path, judge: str, alarm: bool
) -> None:
    pairs = recorded_data / "pairs" / "llmbar_natural.jsonl"
    recordings = recorded_data / "judgments" / f"llmbar__{judge}.jsonl.gz"
    at = ("--store", "store.db")
    judged = ("run", str(pairs), "--map", "label=", "--judge", f"replay:{recordings}", *at)
    assert command(*judged, "--protocol", "llmbar", "--name", "r").code == 0
    (found,) = command("report", "r", *at, "--json").json["conclusions"]["conclusions"]
    assert found["position"]["alarm"] == ("first" if alarm else None)
    assert ("Position bias alarm: " in found["sentence"]) is alarm
    assert ("Use another judge or prompt." in found["sentence"]) is alarm
    low = found["position"]["lean"]["low"]
    assert (low > 0.1) is alarm
    told = " ".join(command("report", "r", *at).out.split())
    assert ("Position bias alarm: " in told) is alarm


@pytest.mark.recorded
def test_missing_swapped_passes_are_named_and_not_counted_as_wrong(
    command: Command, recorded_data: Path
) -> None:
    pairs = [
        json.loads(line)
        for line in (recorded_data / "pairs" / "llmbar_natural.jsonl")
        .read_text("utf-8")
        .split("\n")
        if line
    ]
    write_lines(command.directory / "pairs.jsonl", pairs)
    recordings = recorded_data / "judgments" / "llmbar__GPT-4_CoT.jsonl.gz"
    with gzip.open(recordings, "rt", encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    one_order = [row for row in rows if row["pass"] == "original"]
    write_lines(command.directory / "one.jsonl", one_order)
    at = ("--store", "store.db", "--protocol", "llmbar")
    ran = command("audit", "pairs.jsonl", "--judge", "replay:one.jsonl", *at)
    assert ran.code == 2
    assert "for 100 pairs the recording lacks 100 swapped and 0 original passes" in ran.err
    assert "audit one order with --no-swap, or record the other order" in ran.err
    assert "right on" not in ran.out
    assert (
        command("audit", "pairs.jsonl", "--judge", "replay:one.jsonl", "--no-swap", *at).code == 0
    )
    # Without ten of the swapped passes, the other ninety pairs are audited as before.
    lost = {pair["id"] for pair in pairs[:10]}
    some = [row for row in rows if row["pass"] == "original" or row["id"] not in lost]
    write_lines(command.directory / "some.jsonl", some)
    asked = ("audit", "pairs.jsonl", "--judge", "replay:some.jsonl", *at)
    told = command(*asked, "--json").json
    assert told["missingPasses"] == {"pairs": 10, "original": 0, "swapped": 10}
    assert (told["n"], told["unlabelled"], told["unread"]["part"]) == (90, 0, 0)
    write_lines(command.directory / "rest.jsonl", pairs[10:])
    rest = command("audit", "rest.jsonl", "--judge", f"replay:{recordings}", *at, "--json").json
    assert told["accuracy"] == rest["accuracy"]
    assert rest["findings"]["word"] == "trustworthy"
    assert told["findings"]["word"] == "with care"  # nothing is known of every tenth pair
    shown = " ".join(command(*asked).out.split())
    assert "10 of 100 labelled pairs are not counted: the recording lacks 10 swapped" in shown


@pytest.mark.recorded
@pytest.mark.parametrize(
    ("pairs", "judge"),
    [
        ("llmbar_natural", "llmbar__Falcon_CoT"),
        ("judgebench_gpt4o", published.SKYWORK),
        pytest.param("judgebench_gpt4o", published.O1_MINI, marks=pytest.mark.slow),
    ],
)
def test_the_counts_of_published_tables_are_those_of_a_second_count(
    command: Command, recorded_data: Path, pairs: str, judge: str
) -> None:
    recordings = recorded_data / "judgments" / f"{judge}.jsonl.gz"
    at = ("--store", "store.db", "--json")
    labelled = recorded_data / "pairs" / f"{pairs}.jsonl"
    protocol: AnswerProtocol | None = "llmbar" if judge.startswith("llmbar") else None
    named = () if protocol is None else ("--protocol", protocol)
    told = command("audit", str(labelled), "--judge", f"replay:{recordings}", *at, *named).json
    truth = published.labels(recorded_data, pairs)
    turned = {"A": "B", "B": "A", "TIE": "TIE", None: None}
    said: dict[str, dict[str, str | None]] = {key: {} for key in truth}
    for each in published.judgments(recorded_data, judge):
        if each.id in truth:
            read = published.as_we_read(each, protocol)
            said[each.id][each.order] = read if each.order == "original" else turned[read]
    for order in ("original", "swapped"):
        counted = Counter(
            "right"
            if verdicts[order] == truth[key]
            else {"TIE": "tie", None: "unread"}.get(verdicts[order], "wrong")
            for key, verdicts in said.items()
        )
        kinds = ("right", "wrong", "tie", "unread")
        assert told["counts"][order] == {kind: counted[kind] for kind in kinds} | {"split": 0}
    both = [(each["original"], each["swapped"], truth[key]) for key, each in said.items()]
    assert told["counts"] | {"original": 0, "swapped": 0} == {
        "original": 0,
        "swapped": 0,
        "bothRight": sum(first == second == label for first, second, label in both),
        "unread": sum(None in (first, second) for first, second, _ in both),
        "flipsToFirst": sum((first, second) == ("A", "B") for first, second, _ in both),
        "flipsToSecond": sum((first, second) == ("B", "A") for first, second, _ in both),
    }
    assert sum(told["counts"]["original"].values()) == told["n"] == len(truth)


@pytest.mark.recorded
def test_published_counts_of_judgebench_come_out_of_the_audit(
    command: Command, recorded_data: Path
) -> None:
    """Skywork has scores alone, so that our reading and the authors' are the same: a pair is right
    by their rule where one order is right and the other no opposite, 64.29% of 350 pairs. Three
    pairs have equal scores, and B is the recorded verdict in both orders."""
    recordings = recorded_data / "judgments" / f"{published.SKYWORK}.jsonl.gz"
    labelled = recorded_data / "pairs" / f"{published.JUDGEBENCH}.jsonl"
    asked = ("audit", str(labelled), "--judge", f"replay:{recordings}", "--store", "store.db")
    told = command(*asked, "--json").json
    counts = told["counts"]
    assert (counts["flipsToFirst"], counts["flipsToSecond"]) == (0, 3)
    assert f"{100 * counts['bothRight'] / 350:.2f}" == "64.29"


@pytest.mark.slow
@pytest.mark.recorded
def test_an_audit_judges_as_many_repetitions_as_it_is_asked_to_and_says_so(
    command: Command, recorded_data: Path
) -> None:
    recordings = recorded_data / "judgments" / "mtbench_rep__gpt-4-0613.jsonl.gz"
    ids = sorted({each.id for each in ReplayJudge(recordings).recordings()})
    rows = [
        {"id": key, "prompt": key, "response_a": "a", "response_b": "b", "label": "AB"[n % 2]}
        for n, key in enumerate(ids)
    ]
    write_lines(command.directory / "labelled.jsonl", rows)
    audit = ("audit", "labelled.jsonl", "--judge", f"replay:{recordings}", "--store", "store.db")
    once = command(*audit, "--json").json
    assert once["retest"] is None
    assert "has up to 3 repetitions of a pass, but only the first 1 was judged" in once["notes"][-1]
    thrice = command(*audit, "--samples", "3", "--json").json
    # By our own reading, which finds no verdict in one of them.
    assert (thrice["retest"]["part"], thrice["retest"]["of"]) == _neighbours_as_we_read(recordings)
    assert not any("repetitions of a pass" in note for note in thrice["notes"])


def _neighbours_as_we_read(recordings: Path) -> tuple[int, int]:
    said: dict[tuple[str, str], dict[int, Winner | None]] = {}
    for each in ReplayJudge(recordings).recordings():
        read = published.as_we_read(each, None)
        said.setdefault((each.id, each.order), {})[each.repetition] = read
    both = [
        each[n] == each[n + 1]
        for each in said.values()
        for n in (1, 2)
        if each[n] is not None and each[n + 1] is not None
    ]
    return sum(both), len(both)


def test_skipped_rows_are_counted_in_text_and_json(
    command: Command, start_server: StartServer
) -> None:
    server = start_server(adds_up)
    bad = [{"id": "no-response", "prompt": "p", "label": "A"}, {"id": "odd", "label": 7}]
    write_lines(command.directory / "labelled.jsonl", [*labelled(30), *bad])
    asked = ("audit", "labelled.jsonl", *CRITERIA, "--judge", "openai:loopback")
    at = ("--base-url", server.url, "--store", "store.db", "--bad-rows", "skip")
    told = command(*asked, *at, "--json").json
    assert (told["n"], told["skippedRows"]) == (30, 2)
    shown = command(*asked, *at).out
    assert re.search(r"rows skipped +2\n", shown)
    assert "2 rows were skipped as invalid and are not counted" in " ".join(shown.split())


def test_numbers_are_labels_where_somebody_says_what_they_mean(
    command: Command, start_server: StartServer
) -> None:
    server = start_server(adds_up)
    spelled = {"A": [1, "1", 1.0, "1.0"], "B": [2, "2", 2.0, "2.00"], "TIE": [0, "0", 0.0, "0.0"]}
    rows = [
        row | {"label": spelled[str(row["label"])][number % 4]}
        for number, row in enumerate(labelled(40))
    ]
    write_lines(command.directory / "numbers.jsonl", rows)
    asked = ("audit", "numbers.jsonl", *CRITERIA, "--judge", "openai:loopback")
    at = ("--base-url", server.url, "--store", "store.db")
    refused = command(*asked, *at)
    assert refused.code == 2
    assert "map it, e.g. --value 1=A" in refused.err
    assert not server.requests
    meant = ("--value", "1=A", "--value", "2=B", "--value", "0=TIE")
    told = command(*asked, *at, *meant, "--json").json
    # Every tenth label of forty is wrong.
    assert (told["n"], told["accuracy"]["part"]) == (40, 36)
    judged = ("run", "numbers.jsonl", *CRITERIA, "--judge", "openai:loopback", *at, *meant)
    assert command(*judged, "--name", "numbers").code == 0
    again = command("audit", "numbers", "--store", "store.db", "--json").json
    assert again["accuracy"] == told["accuracy"]


def labelled(count: int) -> list[dict[str, object]]:
    """The label is right but for every tenth pair."""
    other: dict[Winner, Winner] = {"A": "B", "B": "A"}
    rows = []
    for number, row in enumerate(sums(count), start=1):
        right: Winner = "B" if number % 3 == 0 else "A"
        label = other[right] if number % 10 == 0 else right
        rows.append(row | {"label": label, "tags": ["even" if number % 2 == 0 else "odd"]})
    return rows


def test_a_level_that_is_none_is_refused_before_judging(
    command: Command, start_server: StartServer
) -> None:
    server = start_server(adds_up)
    write_lines(command.directory / "labelled.jsonl", labelled(6))
    asked = ("audit", "labelled.jsonl", *CRITERIA, "--judge", "openai:loopback")
    ran = command(*asked, "--base-url", server.url, "--store", "store.db", "--level", "95")
    assert ran.code == 2
    assert "Invalid value for '--level'" in ran.err
    assert not server.requests


def test_an_audit_counts_against_the_labels(command: Command, start_server: StartServer) -> None:
    server = start_server(adds_up)
    write_lines(command.directory / "labelled.jsonl", labelled(60))
    asked = ("audit", "labelled.jsonl", *CRITERIA, "--judge", "openai:loopback")
    at = ("--base-url", server.url, "--store", "store.db")
    ran = command(*asked, *at, "--json")
    assert ran.code == 0
    told = ran.json
    # 60 pairs, every tenth label is wrong: 54 right of 60.
    assert told["n"] == 60
    assert (told["accuracy"]["part"], told["accuracy"]["of"]) == (54, 60)
    assert (told["agreement"]["value"], told["unread"]["part"]) == (0.9, 0)
    assert told["consistency"]["value"] == 1
    assert told["firstPlaceShare"]["value"] == 0.5
    # Kappa: 20 pairs are B's. Labels turned over: 10, 20, 40, 50 (A to B), 30, 60 (B to A), so the
    # labels say A 38 and B 22. Expected agreement is (40·38 + 20·22) / 3600.
    expected = (40 * 38 + 20 * 22) / 3600
    assert told["kappa"]["value"] == pytest.approx((0.9 - expected) / (1 - expected))
    assert [each["tag"] for each in told["byTag"]] == ["even", "odd"]
    assert told["byTag"][0]["accuracy"]["part"] == 24  # all six wrong ones are even
    assert told["disagreementsInAll"] == 6
    assert told["disagreements"][0] == {
        "id": "sum-10",
        "label": "B",
        "verdict": "A",
        "outcome": "win",
    }
    assert told["findings"]["word"] == "trustworthy"
    calls = len(server.requests)
    again = command("audit", told["run"], "--store", "store.db", "--json")
    assert again.json["accuracy"] == told["accuracy"]
    assert len(server.requests) == calls


@pytest.mark.slow
@pytest.mark.parametrize(
    ("given", "code", "ruling"),
    [
        (("--min-accuracy", "0.7"), 0, "pass"),
        (("--min-accuracy", "0.99"), 1, "fail"),
        (("--min-accuracy", "0.9"), 6, "undecided"),
        (("--min-consistency", "0.8", "--max-unread", "0.2"), 0, "pass"),
        (("--min-kappa", "0.99"), 1, "fail"),
    ],
)
def test_thresholds_give_exit_codes(
    command: Command, start_server: StartServer, given: tuple[str, ...], code: int, ruling: str
) -> None:
    server = start_server(adds_up)
    write_lines(command.directory / "labelled.jsonl", labelled(60))
    ran = command(
        *("audit", "labelled.jsonl", *CRITERIA, "--judge", "openai:loopback"),
        *("--base-url", server.url, "--store", "store.db", *given),
    )
    assert ran.code == code
    assert ruling in ran.out


def test_a_judge_that_takes_the_first_is_not_trusted(
    command: Command, start_server: StartServer
) -> None:
    def first(_: SeenRequest) -> Reply:
        return chat_reply(answer_json("A", criteria=[("accuracy", "A")]))

    server = start_server(first)
    write_lines(command.directory / "labelled.jsonl", labelled(40))
    ran = command(
        *("audit", "labelled.jsonl", *CRITERIA, "--judge", "openai:loopback"),
        *("--base-url", server.url, "--store", "store.db"),
    )
    assert "not trustworthy" in ran.out
    told = " ".join(ran.out.split())
    # 40 of 40 to the first: the exact test is 2 · 0.5^40, and Clopper and Pearson's lower limit
    # 0.025^(1/40) = 0.9119 of a share is 2 · 0.9119 - 1 of a difference.
    assert "ALARM: position bias: 100.0% (82.4 to 100.0) of 40 pairs follow the response" in told
    assert "p = 1.8e-12" in told


def takes_the_first(_: SeenRequest) -> Reply:
    return chat_reply(answer_json("A", criteria=[("accuracy", "A")]))


def test_one_order_and_labels_that_all_name_one_side_show_nothing_and_are_refused(
    command: Command, start_server: StartServer
) -> None:
    """An always-first judge would be right on 100% of them."""
    server = start_server(takes_the_first)
    for file, good, bad, more in (
        ("chosen.jsonl", "chosen", "rejected", {}),
        ("second.jsonl", "response_b", "response_a", {"label": "B"}),
    ):
        rows = [{"prompt": f"p{n}", good: f"good {n}", bad: f"bad {n}", **more} for n in range(20)]
        write_lines(command.directory / file, rows)
    at = ("--base-url", server.url, "--store", "store.db")
    asked = (*CRITERIA, "--judge", "openai:loopback", *at)
    for file, told in (
        (
            "chosen.jsonl",
            "every label in chosen.jsonl is A and its pairs are shown in one order",
        ),
        ("second.jsonl", "would be right on all 20; judge both orders, or swap"),
    ):
        ran = command("audit", file, *asked, "--no-swap")
        assert ran.code == 2
        assert told in ran.err
    assert not server.requests  # before anybody pays for it
    assert command("run", "chosen.jsonl", *asked, "--no-swap", "--name", "one").code == 0
    ran = command("audit", "one", "--store", "store.db")
    assert ran.code == 2
    assert "every label in run 'one' is A" in ran.err
    # Both orders show such a judge for what it is.
    ran = command("audit", "chosen.jsonl", *asked, "--json", "--min-accuracy", "0.4")
    assert (ran.code, ran.json["findings"]["word"]) == (1, "not trustworthy")
    assert (ran.json["accuracy"]["part"], ran.json["findings"]["placeAlarm"]) == (0, True)


def test_one_fixed_order_is_never_trustworthy(command: Command, start_server: StartServer) -> None:
    server = start_server(adds_up)
    write_lines(command.directory / "labelled.jsonl", labelled(60))
    asked = ("audit", "labelled.jsonl", *CRITERIA, "--judge", "openai:loopback", "--no-swap")
    at = ("--base-url", server.url, "--store", "store.db")
    ran = command(*asked, *at, "--min-accuracy", "0.5", "--min-kappa", "0.1", "--name", "one")
    assert ran.code == 6
    assert "openai:loopback: not shown" in ran.out
    told = " ".join(ran.out.split())
    assert "60 pairs were judged in one order, which hides position bias" in told
    for name in ("accuracy", "kappa"):
        assert re.search(f"undecided {name} .* is above .*, but in one order only", ran.out)
    # The same of a run that was judged in one order; a judge that is below in one order is below.
    ran = command("audit", "one", "--store", "store.db", "--min-accuracy", "0.99", "--json")
    assert (ran.code, ran.json["oneOrder"]) == (1, 60)
    # Every tenth label is wrong, and the other order was not asked.
    original, swapped = ran.json["counts"]["original"], ran.json["counts"]["swapped"]
    assert (original["right"], original["wrong"], original["unread"]) == (54, 6, 0)
    assert set(swapped.values()) == {0}
    first = start_server(takes_the_first)
    ran = command(*asked, "--base-url", first.url, "--store", "first.db", "--json")
    # 38 of the 60 labels name A: always the same place is right as often, and oftener than a coin.
    constant = ran.json["yardsticks"][2]
    assert (constant["name"], constant["accuracy"]["part"]) == ("baseline:constant", 38)
    assert constant["lead"]["value"] == 0
    assert ran.json["findings"]["word"] == "not trustworthy"


def test_labels_that_all_name_one_side_are_fine_in_both_orders(
    command: Command, start_server: StartServer
) -> None:
    server = start_server(adds_up)
    rows = []
    for number, row in enumerate(sums(60), start=1):
        right, wrong = sorted(
            (row["response_a"], row["response_b"]), key=lambda text: f"is {2 * number}," not in text
        )
        rows.append({"prompt": row["prompt"], "chosen": right, "rejected": wrong})
        if number % 10 == 0:
            rows[-1] |= {"chosen": wrong, "rejected": right}
    write_lines(command.directory / "chosen.jsonl", rows)
    asked = ("audit", "chosen.jsonl", *CRITERIA, "--judge", "openai:loopback")
    ran = command(*asked, "--base-url", server.url, "--store", "store.db", "--json")
    assert ran.json["findings"]["word"] == "trustworthy"
    assert ran.json["accuracy"]["part"] == 54
    # Counted both ways round, chance is right on a half: (0.9 - 0.5) / (1 - 0.5).
    assert ran.json["kappa"]["value"] == pytest.approx(0.8)
    assert ran.json["kappa"]["low"] > 0.5
    assert ran.json["macroF1"]["value"] == pytest.approx(0.9)
    assert ran.json["confusion"]["b"] == {
        "label": "B",
        "saysA": 0,
        "saysB": 0,
        "saysTie": 0,
        "none": 0,
        "inconsistent": 0,
        "invalid": 0,
    }
    assert "every label is A: kappa and macro F1 count each pair" in ran.json["notes"][0]


def test_always_a_tie_is_no_judge_of_ties(command: Command, start_server: StartServer) -> None:
    server = start_server(lambda _: chat_reply(answer_json("TIE")))
    write_lines(command.directory / "ties.jsonl", sums(30, label="TIE"))
    asked = ("audit", "ties.jsonl", *CRITERIA, "--judge", "openai:loopback")
    ran = command(*asked, "--base-url", server.url, "--store", "store.db")
    assert "openai:loopback: not trustworthy" in ran.out
    assert "no better than baseline:constant, which is right on 100.0%" in ran.out


@pytest.mark.parametrize(
    ("given", "outcome"), [(("--samples", "2"), "inconsistent"), (("--no-tie",), "invalid")]
)
def test_orders_that_split_or_contradict_each_other_do_not_agree(
    command: Command, start_server: StartServer, given: tuple[str, ...], outcome: str
) -> None:
    """Two samples that differ leave an order without a choice; and where no tie is allowed, two
    orders that take the first place, as sure of it, leave the pair without a verdict."""
    said: Counter[str] = Counter()

    def in_turn(request: SeenRequest) -> Reply:
        said[request.prompt] += 1
        return chat_reply(answer_json("AB"[(said[request.prompt] - 1) % 2]))

    server = start_server(in_turn)
    write_lines(command.directory / "labelled.jsonl", labelled(12))
    asked = ("audit", "labelled.jsonl", *CRITERIA, "--judge", "openai:loopback", *given)
    ran = command(*asked, "--base-url", server.url, "--store", "store.db", "--name", "r", "--json")
    assert ran.json["confusion"]["a"]["none"] + ran.json["confusion"]["b"]["none"] == 12
    assert {each["outcome"] for each in ran.json["disagreements"]} == {outcome}
    consistency = ran.json["consistency"]
    assert (consistency["part"], consistency["of"], consistency["value"]) == (0, 12, 0)
    assert ran.json["place"]["test"]["split"] == (12 if outcome == "inconsistent" else 0)
    told = command("report", "r", "--store", "store.db", "--json")
    (found,) = told.json["conclusions"]["conclusions"]
    assert found["position"]["consistency"] == consistency


def test_two_runs_over_the_same_pairs_are_held_against_each_other(
    command: Command, start_server: StartServer
) -> None:
    server = start_server(adds_up)
    write_lines(command.directory / "labelled.jsonl", labelled(30))
    at = ("--base-url", server.url, "--store", "store.db")
    for name, locale in (("english", "en"), ("chinese", "zh")):
        judged = ("run", "labelled.jsonl", *CRITERIA, "--judge", "openai:loopback", *at)
        assert command(*judged, "--name", name, "--locale", locale).code == 0
    ran = command("audit", "english", "--against", "chinese", "--store", "store.db", "--json")
    between = ran.json["between"]
    assert (between["run"], between["locale"], between["pairs"]) == ("chinese", "zh", 30)
    assert between["agreement"]["value"] == 1


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (("audit",), "nothing to audit; give a file of labelled pairs with --judge"),
        (("audit", "nowhere"), "no store at"),
        (
            ("audit", "bare.jsonl", *CRITERIA, "--judge", "openai:nobody-is-asked"),
            (
                "bare.jsonl has no labels; add a label column (A, B or TIE; or name it with "
                "--map label=COLUMN"
            ),
        ),
        (
            ("audit", "missing.jsonl", "--judge", "baseline:longer", "-c", "wit"),
            "no file or run named 'missing.jsonl'; check the path",
        ),
        (
            ("audit", "some-run", "--max-calls", "5", "-c", "wit"),
            "--criterion, --max-calls would judge",
        ),
        (
            ("audit", "bare.jsonl", "--judge", "baseline:longer", "--min-accuracy", "3"),
            "less than or equal to 1",
        ),
    ],
)
def test_what_cannot_be_audited_is_told(
    command: Command, given: tuple[str, ...], told: str
) -> None:
    write_lines(command.directory / "bare.jsonl", sums(6))
    ran = command(*given, "--store", "store.db")
    assert ran.code == 2
    assert told in ran.err


def test_people_s_votes_are_labels_and_a_yardstick(
    command: Command, start_server: StartServer
) -> None:
    server = start_server(adds_up)
    write_lines(command.directory / "bare.jsonl", sums(30))
    at = ("--base-url", server.url, "--store", "store.db")
    judged = ("bare.jsonl", *CRITERIA, "--judge", "openai:loopback", *at)
    assert command("run", *judged, "--name", "first").code == 0
    refused = command("audit", "first", "--store", "store.db")
    assert (refused.code, "collect votes with evenhand label first" in refused.err) == (2, True)
    right = ["B" if number % 3 == 0 else "A" for number in range(1, 31)]
    lines = ["pair,who,verdict"]
    for number, verdict in enumerate(right, 1):
        # Bob differs on the first three, where there is then no majority.
        bobs = "TIE" if number <= 3 else verdict
        lines += [f"sum-{number},Ann,{verdict}", f"sum-{number},Bob,{bobs}"]
    (command.directory / "votes.csv").write_text("\n".join(lines), "utf-8")
    assert command("votes", "import", "first", "votes.csv", "--store", "store.db").code == 0
    told = command("audit", "first", "--store", "store.db", "--json").json
    assert (told["n"], told["unlabelled"]) == (27, 3)
    assert told["labels"]["byPeople"] == 27
    assert (told["people"]["agreement"]["part"], told["people"]["agreement"]["of"]) == (27, 30)
    assert (told["people"]["judgeAgreement"]["part"], told["people"]["votes"]) == (57, 60)
    assert [each["name"] for each in told["yardsticks"]] == [
        *("baseline:longer", "baseline:random", "people")
    ]
    shown = command("audit", "first", "--store", "store.db").out
    assert "two people agree" in shown
    assert "by majority vote" in shown
    # Another judge of the same pairs is audited by the same votes, though the file has no labels.
    asked = ("bare.jsonl", *CRITERIA, "--judge", "openai:another", *at)
    assert command("audit", *asked, "--json").json["labels"]["byPeople"] == 27


def test_lists_of_votes_in_the_data_are_not_passed_over_in_silence(
    command: Command, start_server: StartServer
) -> None:
    server = start_server(adds_up)
    rows = [row | {"annotators": ["A", "A", "B"]} for row in labelled(20)]
    write_lines(command.directory / "rich.jsonl", rows)
    asked = ("rich.jsonl", *CRITERIA, "--judge", "openai:loopback", "--base-url", server.url)
    ran = command("audit", *asked, "--store", "store.db", "--name", "rich")
    told = re.sub(r"\s+", " ", ran.out)
    assert "the column annotators may contain several people's verdicts" in told
    assert "evenhand votes import rich rich.jsonl" in told
    assert command("votes", "import", "rich", "rich.jsonl", "--store", "store.db").code == 0
    again = command("audit", *asked, "--store", "store.db", "--name", "rich")
    assert "may hold several" not in again.out
    assert "two people agree" in again.out


def test_figures_have_values_intervals_and_pure_json(
    command: Command, start_server: StartServer
) -> None:
    server = start_server(adds_up)
    write_lines(command.directory / "labelled.jsonl", labelled(30))
    asked = ("audit", "labelled.jsonl", *CRITERIA, "--judge", "openai:loopback")
    told = command(*asked, "--base-url", server.url, "--store", "store.db", "--json").json
    assert isinstance(told["n"], int)
    for name in ("accuracy", "agreement", "kappa", "consistency", "firstPlaceShare", "unread"):
        figure = told[name]
        assert figure["low"] <= figure["value"] <= figure["high"], name


def test_a_run_may_be_named_like_a_folder(command: Command, start_server: StartServer) -> None:
    server = start_server(adds_up)
    write_lines(command.directory / "labelled.jsonl", labelled(20))
    (command.directory / "trial").mkdir()
    asked = ("audit", "labelled.jsonl", *CRITERIA, "--judge", "openai:loopback")
    at = ("--base-url", server.url, "--store", "store.db")
    assert command(*asked, *at, "--name", "trial").code == 0
    assert command("audit", "trial", "--store", "store.db").code == 0
    missing = command("audit", "lebelled.jsonl", "--store", "store.db")
    assert "no file or run named 'lebelled.jsonl'" in missing.err


@pytest.mark.parametrize(
    "option", [("--map", "prompt=question"), ("--value", "1=A"), ("--bad-rows", "skip")]
)
def test_what_says_how_to_read_a_file_is_refused_of_a_run(
    command: Command, option: tuple[str, str]
) -> None:
    write_lines(command.directory / "pairs.jsonl", sums(12, label="A"))
    at = ("--store", "store.db")
    judged = ("run", "pairs.jsonl", *CRITERIA, "--judge", "baseline:longer", "--name", "r", *at)
    assert command(*judged).code == 0
    refused = command("audit", "r", *option, *at)
    assert (refused.code, refused.out) == (2, "")
    assert option[0] in refused.err
    assert command("audit", "r", *at).code == 0
