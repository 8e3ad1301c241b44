"""`evenhand run --orders random`: one order for each pair, at about half the calls."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from command_line import Command, judged_by
from evenhand.store import open_store
from run_data import CRITERIA, adds_up, right_place, sums, write_lines
from scripted import answer_json
from servers import JudgeServer, Reply, SeenRequest, StartServer, chat_reply

HERE = ("--store", "store.db")
NAMED: dict[str, Any] = {"model_a": "old", "model_b": "new"}


def takes_the_first(request: SeenRequest) -> Reply:
    return chat_reply(answer_json("A", confidence=0.9, criteria=[("accuracy", "A")]))


def judged(
    command: Command, server: JudgeServer, *given: str, name: str = "run", data: str = "pairs.jsonl"
) -> Any:
    how = (*CRITERIA, *judged_by(server), "--orders", "random", "--name", name, *given)
    return command("run", data, *how, *HERE, "--json")


def outcomes(command: Command, name: str) -> dict[str, tuple[Any, ...]]:
    with open_store(str(command.directory / "store.db")) as store:
        run = store.runs.find(name)
        assert run is not None
        return {
            row.item.key: (row.outcome, row.winner, row.item.swap_positions, row.item.drawn_order)
            for row in store.verdicts.each(run.id)
        }


def test_exchanging_the_models_asks_the_same_prompts_and_mirrors_every_verdict(
    command: Command, start_server: StartServer
) -> None:
    rows = sums(40, **NAMED)
    turned = [
        row
        | {"response_a": row["response_b"], "response_b": row["response_a"]}
        | {"model_a": "new", "model_b": "old"}
        for row in rows
    ]
    write_lines(command.directory / "pairs.jsonl", rows)
    write_lines(command.directory / "turned.jsonl", turned)
    prompts = []
    for data in ("pairs", "turned"):
        server = start_server(takes_the_first)
        judged(command, server, "--seed", "4", name=data, data=f"{data}.jsonl")
        prompts.append(sorted(request.prompt for request in server.requests))
    one, other = outcomes(command, "pairs"), outcomes(command, "turned")
    twice = sum(swapped for _, _, swapped, _ in one.values())
    assert prompts[0] == prompts[1]
    assert len(prompts[0]) == 40 + twice
    mirror = {"A": "B", "B": "A", "TIE": "TIE"}
    order = {"original": "swapped", "swapped": "original", None: None}
    assert 0 < twice < 20
    assert {winner for _, winner, *_ in one.values()} == {"A", "B", "TIE"}
    for key, (outcome, winner, swapped, drawn) in one.items():
        assert other[key] == (outcome, mirror[winner], swapped, order[drawn])
    # The report's rates are mirrored likewise: each of the same model.
    first, second = (
        command("report", name, "--side", side, "--json", *HERE).json["conclusions"]["conclusions"][
            0
        ]
        for name, side in (("pairs", "B"), ("turned", "A"))
    )
    assert (first["model"], second["model"]) == ("new", "new")
    for field in ("rate", "low", "high", "doubts", "drawnOrder"):
        assert first["winRate"][field] == second["winRate"][field]


def test_a_claim_is_made_at_half_the_calls_and_says_in_which_orders(
    command: Command, start_server: StartServer
) -> None:
    rows = sums(60, **NAMED)
    write_lines(command.directory / "pairs.jsonl", rows)
    server = start_server(adds_up)
    ran = judged(command, server, "--both-orders", "0")
    assert ran.json["calls"] == len(server.requests) == 60
    shown = command("report", "run", "--side", "A", *HERE)
    assert "old beats new: 67% win rate" in shown.out
    told = " ".join(shown.out.split())
    assert "60 of 60 pairs were judged in one random order." in told
    assert "no pair was read in both orders" in shown.out
    assert "oth orders agree" not in shown.out
    ruled = command("gate", "run", "--side", "A", *HERE)
    assert ruled.code == 0
    # That it is not much worse than the other takes pairs in both orders.
    below = command("gate", "run", "--side", "B", "--min-win-rate", "0.1", *HERE)
    assert below.code == 6
    assert "0 pairs were judged in both orders, too few" in below.out
    assert "next  judge more pairs in both orders with --both-orders" in below.err
    pair = command("show", "run", "sum-1", *HERE)
    assert "one random order" in pair.out


def test_a_larger_share_in_both_orders_asks_only_what_is_missing(
    command: Command, start_server: StartServer
) -> None:
    write_lines(command.directory / "pairs.jsonl", sums(60, **NAMED))
    server = start_server(adds_up)
    judged(command, server, "--both-orders", "0.2", name="fifth")
    asked = len(server.requests)
    again = judged(command, server, "--both-orders", "0.2", name="fifth")
    assert (again.json["calls"], len(server.requests)) == (0, asked)
    judged(command, server, "--both-orders", "1", name="all")
    assert len(server.requests) == 120
    limit = ("--min-win-rate", "0.1", "--assume-accuracy", "0.95")
    below = command("gate", "all", "--side", "B", *limit, *HERE)
    assert below.code == 0
    both = outcomes(command, "all")
    assert all(swapped for _, _, swapped, _ in both.values())


def test_position_is_told_from_the_pairs_in_both_orders_alone(
    command: Command, start_server: StartServer
) -> None:
    def half_by_place(request: SeenRequest) -> Reply:
        right = right_place(request.prompt)
        winner = "A" if "It is 1" in request.prompt else right
        return chat_reply(answer_json(winner, confidence=0.9, criteria=[("accuracy", winner)]))

    write_lines(command.directory / "pairs.jsonl", sums(80, **NAMED))
    judged(command, start_server(half_by_place), "--both-orders", "0.3")
    twice = [row for row in outcomes(command, "run").values() if row[2]]
    flips = sum(outcome == "inconsistent" for outcome, *_ in twice)
    assert flips
    claim = command("report", "run", "--json", *HERE).json["conclusions"]["conclusions"][0]
    assert (claim["position"]["pairs"], claim["position"]["unread"]) == (len(twice), 0)
    assert claim["position"]["consistency"]["of"] == len(twice)
    assert claim["winRate"]["flips"] == flips
    share = f"{100 * flips / len(twice):.0f}% of {len(twice)} pairs"
    assert f"In {share} the verdict flipped" in claim["sentence"]
    ruled = command("gate", "run", "--max-inconsistent", "0.05", *HERE)
    assert f"in {flips} of {len(twice)} pairs, more than the 5% allowed" in ruled.out


def test_a_run_until_it_is_decided_may_draw_its_orders(
    command: Command, start_server: StartServer
) -> None:
    rows = [row for row in sums(300, **NAMED) if int(row["id"][4:]) % 3]  # A wins them all
    write_lines(command.directory / "pairs.jsonl", rows)
    server = start_server(adds_up)
    ran = judged(command, server, "--until-decided", "--seed", "2")
    assert ran.json["stoppedBy"] == "decided"
    assert len(server.requests) < 60
    assert command("gate", "run", "--side", "A", *HERE).code == 0


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (("--orders", "random", "--no-swap"), "--orders random draws each pair's order"),
        (("--both-orders", "0.2"), "--both-orders requires --orders random"),
        (("--orders", "random", "--both-orders", "1.5"), "--both-orders"),
    ],
)
def test_orders_that_contradict_each_other_are_refused(
    command: Command, given: tuple[str, ...], told: str
) -> None:
    write_lines(Path(command.directory) / "pairs.jsonl", sums(2))
    ran = command("run", "pairs.jsonl", *CRITERIA, *given, *HERE)
    assert ran.code == 2
    assert told in ran.err


def test_a_plan_tells_how_many_pairs_to_ask_in_both_orders(command: Command) -> None:
    asked = ("plan", "--orders", "random", "--win-rate", "0.5", "--min-win-rate", "0.45")
    ran = command(*asked, "--inconsistent-share", "0.1")
    plan = command(*asked, "--inconsistent-share", "0.1", "--json").json["plans"][0]
    share, twice = plan["shape"]["bothOrders"], plan["pairsInBothOrders"]
    assert 0 < share < 0.3
    assert plan["calls"] == plan["pairs"] + twice
    told = " ".join(ran.out.split())
    assert (
        f"orders {twice} in both (--both-orders {share:g}), the others in one random order calls"
        in told
    )
    both = command("plan", *asked[3:], "--inconsistent-share", "0.1", "--json").json["plans"][0]
    assert both["pairs"] < plan["pairs"] < plan["calls"] < 0.7 * both["calls"]
    given = command(*asked, "--both-orders", "0.3", "--json").json["plans"][0]
    assert given["shape"]["bothOrders"] == 0.3
    assert command(*asked, "--both-orders", "0").code == 2
    assert command("plan", "--both-orders", "0.1").code == 2
    assert "in both orders" in command(*asked[:3], "--min-win-rate", "0.4").out


def test_a_plan_like_a_run_with_random_orders_goes_by_its_pairs_in_both(
    command: Command, start_server: StartServer
) -> None:
    write_lines(command.directory / "pairs.jsonl", sums(60, **NAMED))
    judged(command, start_server(takes_the_first), "--both-orders", "0.2")
    # Of a judge that always takes the first, all pairs in both orders are inconsistent.
    refused = command("plan", "--like", "run", *HERE)
    assert "run 'run' has no pair with a winner (0% ties, 100% inconsistent)" in refused.err
    like = command("plan", "--like", "run", "--inconsistent-share", "0.1", "--json", *HERE).json
    assert (like["shape"]["bothOrders"], like["shape"]["orders"]) == (0.2, 1)
    judged(command, start_server(adds_up), "--both-orders", "0", name="once")
    unknown = command("plan", "--like", "once", *HERE)
    assert unknown.code == 2
    assert "run 'once' has no pair in both orders" in unknown.err


def test_labels_of_one_side_are_no_place_that_a_judge_could_guess(
    command: Command, start_server: StartServer
) -> None:
    """In one fixed order whoever takes the first would be right on all; in drawn ones on half."""
    rows = [row | {"label": "A"} for row in sums(150) if int(row["id"][4:]) % 3]
    write_lines(command.directory / "pairs.jsonl", rows)
    judged(command, start_server(takes_the_first), "--both-orders", "0", name="first")
    judged(command, start_server(adds_up), "--both-orders", "0", name="right")
    first, right = (command("audit", name, "--json", *HERE).json for name in ("first", "right"))
    assert 0.3 < first["accuracy"]["value"] < 0.7
    assert right["accuracy"]["value"] == 1
    assert right["oneOrder"] == 100
    # A jury says that its intervals do not allow for the position.
    jury = command("jury", "right", "first", *HERE)
    assert "run right judged most pairs in one random order" in " ".join(
        (jury.out + jury.err).split()
    )
