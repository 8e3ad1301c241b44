"""What the benchmarks and the long checks stand on: the loopback server, the pairs, the store."""

from __future__ import annotations

import asyncio
import json
import mmap
import os
import sqlite3
import subprocess
import sys
from collections import Counter
from contextlib import closing
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import aiohttp
import pytest
from benchmarks.answers import CRITERIA, WINNERS, Length, Winner, evenhand_answer, winner_shown
from benchmarks.children import Child, ChildFailed, run_child
from benchmarks.faults import SHARES, draw_fault, faulty_reply
from benchmarks.generated_pairs import Planned, fate_of, generated, write_pairs
from benchmarks.loopback import ROOT, LoopbackServer, loopback_environment
from benchmarks.pages import addresses
from benchmarks.recorded import read_bodies
from benchmarks.stored_run import problems_in, stored_passes
from scripts.verify_kill import random_moments

from evenhand.contract import Ballot, Unread, Verdict, read_pair
from evenhand.judges.openai import OpenAIJudge
from evenhand.judges.protocol import Judge
from evenhand.judges.registry import JudgeOptions
from evenhand.judging.comparison import settle
from evenhand.judging.config import JudgeConfig
from evenhand.serve.verdicts import TableQuery
from explained import read
from scripted import make_pair

TWO = make_pair(criteria=list(CRITERIA))


@pytest.mark.parametrize("winner", WINNERS)
@pytest.mark.parametrize("length", ["usual", "short"])
def test_the_servers_answer_reads_as_the_winner_it_was_made_for(
    winner: Winner, length: Length
) -> None:
    ballot = read(evenhand_answer(winner, length), criteria=TWO.criteria)
    assert isinstance(ballot, Ballot)
    assert ballot.winner == winner
    assert [c.winner for c in ballot.criteria] == [winner, winner]


def test_the_usual_answer_has_about_one_and_a_half_kilobytes() -> None:
    assert 1_300 <= len(evenhand_answer("A", "usual")) <= 1_900


def test_the_better_response_is_named_by_the_place_where_it_is_shown() -> None:
    assert winner_shown(b"... zenith ... nadir") == "A"
    assert winner_shown(b"... nadir ... zenith") == "B"
    assert winner_shown(b"... equinox ... equinox") == "TIE"
    assert winner_shown(b"... meridian ... meridian") == "A"


def test_generated_pairs_are_distinct_and_of_the_size_they_say() -> None:
    rows = list(generated(200, size="usual", seed=3))
    assert len({row["prompt"] for row in rows}) == 200
    for row in rows:
        assert 195 <= len(row["prompt"]) <= 200
        assert 490 <= len(row["response_a"]) <= 800
        assert 490 <= len(row["response_b"]) <= 800


def test_the_plan_counts_every_pairs_fate() -> None:
    # Of ten in a row 4 are A's, 3 are B's, 1 is a tie, 2 are inconsistent; then A, B, A.
    assert Planned.of(23) == Planned(pairs=23, wins_a=10, wins_b=7, ties=2, inconsistent=4)


def test_generated_pairs_come_out_as_planned(tmp_path: Path) -> None:
    rows = generated(20, size="small", seed=1)
    with LoopbackServer(ledger=True, record=tmp_path / "bodies.bin") as server:
        fates = asyncio.run(_judged([dict(row) for row in rows], server.url))
        count = server.reset()
        assert fates == [fate_of(number) for number in range(1, 21)]
        assert count.requests == count.distinct == 40
        assert server.count().requests == 0
    with (tmp_path / "bodies.bin").open("rb") as file:
        recorded = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        with recorded:
            bodies = list(read_bodies(recorded))
    assert sum(map(len, bodies)) == count.body_bytes
    assert all(json.loads(body)["model"] == "bench" for body in bodies)


async def _judged(rows: list[dict[str, str]], url: str) -> list[str]:
    judge = OpenAIJudge("bench", JudgeOptions(base_url=url))
    try:
        return [await _fate(row, judge) for row in rows]
    finally:
        await judge.close()


async def _fate(row: dict[str, str], judge: Judge) -> str:
    verdict = await settle(read_pair({**row, "criteria": list(CRITERIA)}), judge, JudgeConfig())
    assert isinstance(verdict, Verdict)
    inconsistent = verdict.metadata.outcome == "inconsistent"
    return "INCONSISTENT" if inconsistent else verdict.winner


def test_the_bare_client_sends_the_recorded_bytes_again(tmp_path: Path) -> None:
    bodies = tmp_path / "bodies.bin"
    with LoopbackServer(record=bodies) as server:
        rows = [dict(row) for row in generated(5, size="small", seed=1)]
        asyncio.run(_judged(rows, server.url))
        recorded = server.reset()
    with LoopbackServer(ledger=True) as server:
        command = [sys.executable, "-m", "benchmarks.raw_client", str(bodies), server.url, "4"]
        run_child(command, cwd=ROOT, within_s=60, environment=loopback_environment())
        sent = server.count()
    assert (sent.requests, sent.body_bytes) == (10, recorded.body_bytes)
    assert sent.distinct == 10
    assert sent.most_open == 4


@pytest.mark.slow
def test_the_delay_holds_every_answer_back_and_connections_are_counted() -> None:
    async def ask_many(url: str) -> list[int]:
        connector = aiohttp.TCPConnector(limit=0)
        async with aiohttp.ClientSession(connector=connector) as session:

            async def ask() -> int:
                async with session.post(f"{url}/chat/completions", data=b"{}") as response:
                    await response.read()
                    return response.status

            return await asyncio.gather(*(ask() for _ in range(512)))

    with LoopbackServer(delay_ms=1_500) as server:
        assert asyncio.run(ask_many(server.url)) == [200] * 512
        assert server.wait_until_left().most_open == 512


def test_faults_come_in_their_shares_and_the_same_each_time() -> None:
    digests = [number.to_bytes(16, "big") for number in range(20_000)]
    drawn = [draw_fault(digest, 1, 7) for digest in digests]
    assert drawn == [draw_fault(digest, 1, 7) for digest in digests]
    assert drawn != [draw_fault(digest, 2, 7) for digest in digests]
    counts = Counter(fault[0] for fault in drawn if fault is not None)
    for fault, share in SHARES:
        # Six standard deviations of a share of at most 0.1 over 20,000 draws are below 0.013.
        assert abs(counts[fault] / len(digests) - share) < 0.013


@pytest.mark.parametrize("variant", range(3))
def test_nonsense_is_unread_by_the_reader(variant: int) -> None:
    reply, closes = faulty_reply("nonsense", variant, whole=b"")
    content = json.loads(reply.partition(b"\r\n\r\n")[2])["choices"][0]["message"]["content"]
    assert isinstance(read(content, criteria=TWO.criteria), Unread)
    assert not closes


def test_half_a_body_promises_the_whole() -> None:
    whole = b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n0123456789"
    assert faulty_reply("half", 0, whole=whole) == (whole[:-5], True)


def test_kills_are_spread_over_the_calls_and_over_the_start() -> None:
    moments = random_moments(10, 6_000, seed=4)
    counted = [m.after_calls for m in moments if m.after_calls is not None]
    assert len(moments) == 10
    assert len(counted) == 8
    assert counted == sorted(counted)
    assert all(0 < count < 6_000 for count in counted)
    assert moments == random_moments(10, 6_000, seed=4)


def test_a_child_that_takes_too_long_is_killed(tmp_path: Path) -> None:
    child = Child([sys.executable, "-c", "import time; time.sleep(600)"], cwd=tmp_path)
    with pytest.raises(ChildFailed, match="still running"):
        child.wait(within_s=0.2)
    with pytest.raises(ProcessLookupError):
        os.kill(child.pid, 0)


def test_the_server_ends_with_whoever_started_it(tmp_path: Path) -> None:
    code = (
        "import os; from benchmarks.loopback import LoopbackServer\n"
        "server = LoopbackServer().__enter__()\n"
        "print(server._process._process.pid, flush=True)\n"
        "os._exit(1)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False
    )
    pid = int(done.stdout)
    for _ in range(500):
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return
        if _is_zombie(pid):
            return
        asyncio.run(asyncio.sleep(0.01))
    pytest.fail("the server outlived its parent")


def _is_zombie(pid: int) -> bool:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"


def _store(path: Path) -> sqlite3.Connection:
    database = sqlite3.connect(path)
    database.executescript(
        """
        CREATE TABLE items (run_id, number, key, pair_id);
        CREATE TABLE passes (pair_id, judge_id, shown_order, sample, status);
        CREATE TABLE verdicts (
            run_id, number, judge_id, outcome, winner, error_kind, error_message);
        """
    )
    for number, (outcome, winner) in enumerate((("win", "A"), ("win", "B"), ("win", "A")), 1):
        database.execute(
            "INSERT INTO items VALUES (1, ?, ?, ?)", (number, f"pair-{number}", number)
        )
        for order in ("original", "swapped"):
            database.execute("INSERT INTO passes VALUES (?, 1, ?, 1, 'ballot')", (number, order))
        database.execute(
            "INSERT INTO verdicts VALUES (1, ?, 1, ?, ?, NULL, NULL)", (number, outcome, winner)
        )
    database.commit()
    return database


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ("DELETE FROM verdicts WHERE number = 2", "2 pairs have a verdict, and 3 must"),
        ("INSERT INTO verdicts SELECT * FROM verdicts WHERE number = 2", "a second verdict"),
        ("UPDATE verdicts SET outcome = 'tie', winner = 'TIE' WHERE number = 1", "must be A"),
        ("UPDATE passes SET status = 'unread' WHERE pair_id = 3 AND shown_order = 'swapped'",
         "rests on 1 ballots"),
        ("UPDATE verdicts SET outcome = 'invalid', winner = NULL WHERE number = 1",
         "no reason is given"),
        ("INSERT INTO passes SELECT * FROM passes WHERE pair_id = 1", "stored more than once"),
    ],
)  # fmt: skip
def test_the_check_of_a_store_finds_what_is_wrong(
    tmp_path: Path, change: str, problem: str
) -> None:
    path = tmp_path / "runs.sqlite"
    with closing(_store(path)) as database:
        assert stored_passes(path) == 6
        assert problems_in(path, pairs=3, faults=True) == []
        database.execute(change)
        database.commit()
    assert any(problem in found for found in problems_in(path, pairs=3, faults=True))


def test_an_invalid_pair_with_its_reason_is_right_only_where_there_were_faults(
    tmp_path: Path,
) -> None:
    path = tmp_path / "runs.sqlite"
    with closing(_store(path)) as database:
        database.execute(
            "UPDATE verdicts SET outcome = 'invalid', winner = NULL, "
            "error_kind = 'judge_timeout', error_message = 'no answer' WHERE number = 1"
        )
        database.commit()
    assert problems_in(path, pairs=3, faults=True) == []
    assert problems_in(path, pairs=3, faults=False) != []


def test_a_store_that_was_never_made_holds_no_passes(tmp_path: Path) -> None:
    assert stored_passes(tmp_path / "absent.sqlite") == 0
    sqlite3.connect(tmp_path / "empty.sqlite").close()
    assert stored_passes(tmp_path / "empty.sqlite") == 0


def test_written_pairs_are_rows_that_the_contract_takes(tmp_path: Path) -> None:
    path = tmp_path / "pairs.jsonl"
    assert write_pairs(path, 10) == Planned(10, 4, 3, 1, 2)
    for line in path.read_text().splitlines():
        read_pair({**json.loads(line), "criteria": list(CRITERIA)})


def test_every_filter_and_order_of_a_table_is_measured_at_a_million_verdicts() -> None:
    asked = [parse_qs(urlsplit(each).query) for each in addresses(1000) if "/pairs?" in each]
    fields = {each.alias or name for name, each in TableQuery.model_fields.items()}
    assert {name for query in asked for name in query} >= fields
    assert {order for query in asked for order in query.get("sort", ())} >= {"confidence", "length"}
