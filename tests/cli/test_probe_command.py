"""`evenhand probe` as its users give it: options, exit codes, what is printed."""

from __future__ import annotations

import pytest

from command_line import KEY, Command
from evenhand.trust.probes.cases import PROBE_NAMES, probe_cases
from scripted import answer_json
from servers import Reply, SeenRequest, StartServer, chat_reply, error_reply

STORE = ("--store", "store.db")
# Each question's good answer, which a fair judge knows.
GOOD = [
    case.pair.response_a if case.sound == "A" else case.pair.response_b
    for case in probe_cases(["empty", "refusal", "identical"], ["en"])
]


def judged_by(url: str) -> tuple[str, ...]:
    return ("--judge", "openai:loopback", "--base-url", url, *STORE)


def fair(request: SeenRequest) -> Reply:
    """It knows a good answer when it sees one, and where there are two, it ties."""
    shown = request.prompt
    (good,) = {each for each in GOOD if each in shown}
    if shown.count(good) > 1:
        return chat_reply(answer_json("TIE"))
    return chat_reply(answer_json("A" if _stands_first(good, shown) else "B"))


def _stands_first(good: str, shown: str) -> bool:
    return shown.index(good) < shown.rindex("Response B>>>")


def first(request: SeenRequest) -> Reply:
    return chat_reply(answer_json("A", reasoning="Response A is \x1b[31mbetter."))


def test_the_list_names_every_probe_and_asks_nobody(command: Command) -> None:
    ran = command("probe", "--list")
    assert ran.code == 0
    assert [line.split()[0] for line in ran.out.splitlines() if line[:1].strip()] == [
        "probe",
        *PROBE_NAMES,
        str(len(probe_cases())),
    ]
    assert not (command.directory / "store.db").exists()


def test_the_list_as_json_has_expectations_and_counts(command: Command) -> None:
    listed = command("probe", "--list", "--json", "--locale", "zh", "--probe", "padded").json
    assert listed["languages"] == ["zh"]
    (probe,) = listed["probes"]
    assert (probe["probe"], probe["expected"], probe["pairs"]) == (
        *("padded", "good answer or tie"),
        listed["pairs"],
    )


def test_a_fair_judge_passes(command: Command, start_server: StartServer) -> None:
    server = start_server(fair)
    chosen = ("--probe", "empty", "--probe", "refusal", "--probe", "identical", "--locale", "en")
    ran = command("probe", *judged_by(server.url), *chosen, "--min-score", "0.8", "--json")
    assert ran.code == 0
    report = ran.json
    assert report["ruling"] == "pass"
    # 8 empty, 12 refusals and 12 identical pairs, each in both orders.
    assert (report["overall"]["n"], report["overall"]["passed"]) == (32, 32)
    assert len(server.requests) == 64
    # Wilson (1927) for 32 of 32.
    assert report["overall"]["share"]["low"] == pytest.approx(32 / (32 + 1.959964**2))
    again = command("probe", *judged_by(server.url), *chosen)
    assert again.code == 0
    assert len(server.requests) == 64
    assert "cases to look at" not in again.out


def test_a_judge_that_follows_the_place_fails_and_its_cases_are_shown(
    command: Command, start_server: StartServer
) -> None:
    server = start_server(first)
    chosen = ("--probe", "identical", "--probe", "empty", "--locale", "en")
    asked = ("probe", *judged_by(server.url), *chosen, "--min-score", "0.9")
    short = command(*asked)
    # 12 and 8 cases failed: the interval of failures begins at 0.74 or so, beyond a tenth.
    told = " ".join(short.out.split())
    assert "in more than 10% of cases (95% confidence for each): identical and empty." in told
    assert "bias identical (sees a difference where there is none): fails 12 of 12: 1.00" in told
    assert "cases to look at" not in short.out
    assert len(short.out.splitlines()) <= 24
    calls = len(server.requests)
    ran = command(*asked, "--details")
    assert (ran.code, short.code, len(server.requests)) == (1, 1, calls)  # nothing is asked anew
    assert "identical: failing cases (first 3 of 12)" in ran.out
    assert "position bias: of two identical responses it chose the first" in " ".join(
        ran.out.split()
    )
    assert "fail  score 0.000" in ran.out
    # What a judge says does nothing to a terminal.
    assert "\x1b" not in ran.out
    case = next(line for line in ran.out.splitlines() if "en-empty-" in line)
    name = next(line.split()[1].rstrip(":") for line in ran.out.splitlines() if line[:3] == "run")
    shown = command("show", name, case.split()[0].rstrip(":"), *STORE)
    assert shown.code == 0
    assert "probes-en" in shown.out


def test_a_score_that_cannot_be_told_from_the_threshold_is_undecided(
    command: Command, start_server: StartServer
) -> None:
    server = start_server(fair)
    ran = command(
        "probe",
        *judged_by(server.url),
        *("--probe", "empty", "--locale", "en", "--min-score", "0.9"),
    )
    # 8 of 8 reach down to 0.68.
    assert ran.code == 6
    assert "undecided" in ran.out


def test_without_a_threshold_a_bad_judge_is_only_told(
    command: Command, start_server: StartServer
) -> None:
    server = start_server(first)
    ran = command("probe", *judged_by(server.url), "--probe", "empty", "--locale", "en", "--json")
    assert ran.code == 0
    assert (ran.json["ruling"], ran.json["overall"]["inconsistent"]) == (None, 8)
    (probe,) = ran.json["probes"]
    assert len(probe["failing"]) == 8
    assert {said["winner"] for said in probe["failing"][0]["answers"]} == {"A", "B"}


def test_a_cap_stops_it_and_the_same_command_goes_on(
    command: Command, start_server: StartServer
) -> None:
    server = start_server(fair)
    asked = ("probe", *judged_by(server.url), "--probe", "empty", "--locale", "en")
    ran = command(*asked, "--max-calls", "6", "--concurrency", "1", "--min-score", "0.1")
    assert ran.code == 5
    assert len(server.requests) <= 6
    assert "stopped: reached --max-calls" in ran.err
    assert "pending" in ran.out
    assert command(*asked).code == 0
    assert len(server.requests) == 16


def test_a_judge_that_fails_is_told_with_its_exit_code(
    command: Command, start_server: StartServer
) -> None:
    server = start_server(lambda request: error_reply(401, "no such key"))
    ran = command("probe", *judged_by(server.url), "--probe", "empty", "--locale", "en")
    assert ran.code == 3
    assert "stopped: the judge failed" in ran.err
    as_json = command("probe", *judged_by(server.url), "--probe", "empty", "--json")
    assert as_json.code == 3
    assert as_json.json["error"]["kind"] == "judge_authentication"


def test_criteria_of_ones_own_reach_the_judge(command: Command, start_server: StartServer) -> None:
    server = start_server(fair)
    given = ("-c", "brevity: no word too many", "--probe", "empty", "--locale", "en")
    assert command("probe", *judged_by(server.url), *given).code == 0
    assert all("brevity" in request.prompt for request in server.requests)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (("--probe", "flatery"), "did you mean flattery?"),
        (("--probe", "languages", "--locale", "en"), "ask in both"),
        (("--min-score", "90"), "less than or equal to 1"),
        (("--min-score", "nan"), "less than or equal to 1"),
        (("--locale", "de"), "'en', 'zh', 'both'"),
        (("--retry", "all"), "give failed or unread"),
    ],
)
def test_what_cannot_be_used_is_one_line(
    command: Command, given: tuple[str, ...], said: str
) -> None:
    ran = command("probe", "--judge", "baseline:longer", *STORE, *given)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.count("\n") == 1
    assert said in ran.err
    as_json = command("probe", "--judge", "baseline:longer", *STORE, *given, "--json")
    assert as_json.code == 2
    assert as_json.json["error"]["message"]


def test_without_a_judge_it_says_how_to_name_one(command: Command) -> None:
    ran = command("probe", *STORE)
    assert ran.code == 2
    assert "--judge openai:MODEL" in ran.err


def test_a_yardstick_is_caught_where_it_must_be(command: Command) -> None:
    """`baseline:longer` ties what is as long, and chooses what is longer."""
    ran = command("probe", "--judge", "baseline:longer", *STORE, "--json")
    assert ran.code == 0
    found = {probe["probe"]: probe["share"]["value"] for probe in ran.json["probes"]}
    assert {name: found[name] for name in ("longer", "padded", "markdown", "shuffled")} == {
        "longer": 0,
        "padded": 0,
        "markdown": 0,
        "shuffled": 0,
    }
    assert {name: found[name] for name in ("identical", "truncated", "empty")} == {
        "identical": 1,
        "truncated": 1,
        "empty": 1,
    }


def test_a_key_is_not_shown(
    command: Command, start_server: StartServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    server = start_server(lambda request: chat_reply(answer_json("A", reasoning=KEY)))
    for more in ((), ("--json",)):
        ran = command("probe", *judged_by(server.url), "--probe", "empty", "--locale", "en", *more)
        assert KEY not in ran.out + ran.err


def test_help_tells_the_exit_codes(command: Command) -> None:
    told = " ".join(command("probe", "--help").out.split())
    for code in (
        "1 below the minimum",
        "3 the judge failed",
        "5 a cap was reached",
        "6 undecided whether it is above the minimum",
    ):
        assert code in told


def test_runs_are_named_by_language(command: Command, start_server: StartServer) -> None:
    server = start_server(first)
    chosen = ("--probe", "identical", "--name", "trial", "--json")
    both = command("probe", *judged_by(server.url), *chosen).json
    assert [run["run"] for run in both["runs"]] == ["trial-en", "trial-zh"]
    calls = len(server.requests)
    again = command("probe", *judged_by(server.url), *chosen)
    assert (again.code, len(server.requests)) == (0, calls)  # the same runs, gone on with
    one = command("probe", *judged_by(server.url), *chosen, "--locale", "en", "--name", "alone")
    assert [run["run"] for run in one.json["runs"]] == ["alone"]


def test_answers_are_read_by_the_protocol_that_is_named(
    command: Command, start_server: StartServer
) -> None:
    server = start_server(lambda _: chat_reply("My final verdict is tie: [[C]]"))
    chosen = ("--probe", "identical", "--locale", "en", "--protocol", "mt-bench", "--json")
    report = command("probe", *judged_by(server.url), *chosen).json
    assert report["overall"]["passed"] == report["overall"]["n"] == 12


def test_why_an_answer_is_unread_is_told_once(command: Command, start_server: StartServer) -> None:
    server = start_server(lambda _: chat_reply("I cannot say"))
    asked = ("probe", *judged_by(server.url), "--probe", "empty", "--locale", "en")
    ran = command(*asked, "--details")
    assert ran.code == 0
    assert "Without a verdict: invalid 8, pending 0." in " ".join(ran.out.split())
    assert "got unread then unread; no valid verdict" in ran.out
    assert "“" not in ran.out
