"""A judge whose model does not exist ends the run after its first calls, and the run resumes."""

from __future__ import annotations

import pytest

from command_line import Command
from run_data import CRITERIA, adds_up, sums, write_lines
from servers import Reply, SeenRequest, StartServer, error_reply


@pytest.mark.parametrize(
    ("status", "message"),
    [
        (404, "The model `nope` does not exist"),
        (400, "The model nope is not a valid model ID"),
        (401, "no such key"),
    ],
)
def test_a_run_stops_at_once_and_resumes(
    command: Command, start_server: StartServer, status: int, message: str
) -> None:
    there = False

    def answer(request: SeenRequest) -> Reply:
        if there:
            return adds_up(request)
        return error_reply(status, message)

    server = start_server(answer)
    write_lines(command.directory / "pairs.jsonl", sums(60))
    judge = ("--judge", "openai:nope", "--base-url", server.url)
    run = ("run", "pairs.jsonl", *CRITERIA, "--store", "s.db", *judge)
    stopped = command(*run, "--json")
    assert stopped.code == 3
    assert (stopped.json["pending"], stopped.json["stoppedBy"]) == (60, "judge")
    # Once 100 and more. Now what is in flight at the start and a few that wait; after a 400 each
    # is asked again without the options that a server may refuse.
    assert len(server.requests) <= (40 if status == 400 else 16)
    there = True
    done = command(*run, "--json")
    assert (done.code, done.json["pending"], done.json["invalid"]) == (0, 0, 0)
