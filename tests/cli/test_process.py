"""What can only be seen from outside: signals, pipes, terminals, encodings."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from command_line import KEY, SUM, environment, fair, judged_by, run_command, start_command
from evenhand.tools import output_schema
from scripted import answer_json
from servers import Script, Slow, StartServer, chat_reply
from stored_runs import ROWS, make_run, opened

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals and terminals")

LONGER = ("compare", *SUM, "--judge", "baseline:longer")
ANSI = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


def on_terminal(
    *arguments: str, directory: Path, columns: int = 80, **more: str
) -> tuple[int, str]:
    """The exit code, and all that a terminal of this width receives."""
    import fcntl
    import pty
    import struct
    import termios

    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
    process = start_command(
        arguments,
        directory,
        more={"TERM": "xterm-256color", **more},
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
    )
    os.close(theirs)
    received = b"".join(_until_closed(ours))
    os.close(ours)
    return process.wait(timeout=120), received.decode()


def _until_closed(terminal: int) -> Iterator[bytes]:
    while True:
        try:
            data = os.read(terminal, 65536)
        except OSError as error:
            if error.errno == errno.EIO:  # how Linux says that the other side is closed
                return
            raise
        if not data:
            return
        yield data


@pytest.mark.parametrize("as_json", [(), ("--json",)])
def test_ctrl_c_ends_a_slow_judge_promptly(
    start_server: StartServer, tmp_path: Path, as_json: tuple[str, ...]
) -> None:
    server = start_server(lambda request: Slow(60, chat_reply("too late")))
    process = start_command(("compare", *SUM, *judged_by(server), *as_json), tmp_path)
    assert server.wait_until(lambda: len(server.requests) == 2, within_s=120)
    process.send_signal(signal.SIGINT)
    asked = time.monotonic()
    out, err = process.communicate(timeout=120)
    assert time.monotonic() - asked < 5
    assert process.returncode == 130
    assert server.wait_until_idle()
    if as_json:
        result = json.loads(out)
        Draft202012Validator(output_schema()).validate(result)
        assert result["error"]["kind"] == "interrupted"
    else:
        assert out == b""
    assert err == b"interrupted\n"


@pytest.mark.slow
def test_reader_that_leaves_early_does_not_change_the_exit_code(tmp_path: Path) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    for arguments, code in ((LONGER, 0), ((*LONGER, "--json"), 0), (("compare", "--json"), 2)):
        process = start_command(arguments, tmp_path, stdout=writing, anew=True)
        _, err = process.communicate(timeout=120)
        assert process.returncode == code
        assert b"Traceback" not in err
        assert b"BrokenPipe" not in err
    os.close(writing)


def test_output_can_be_piped_to_head(tmp_path: Path) -> None:
    process = start_command(("schema", "output"), tmp_path, anew=True)
    assert process.stdout is not None
    assert process.stdout.readline() == b"{\n"
    process.stdout.close()
    assert process.stderr is not None
    assert process.stderr.read() == b""
    process.stderr.close()
    assert process.wait(timeout=120) == 0


@pytest.mark.parametrize(
    ("redirection", "code", "said"),
    [
        (
            ">&-",
            2,
            ("error  standard output is closed; redirect it to a file, a pipe or a terminal\n"),
        ),
        ("2>&-", 0, ""),
    ],
)
def test_closed_stream_is_no_traceback(
    tmp_path: Path, redirection: str, code: int, said: str
) -> None:
    line = f'exec "$0" -m evenhand "$@" {redirection}'
    done = subprocess.run(
        ["sh", "-c", line, sys.executable, *LONGER],
        cwd=tmp_path,
        env=environment(tmp_path),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=120,
        check=False,
    )
    assert (done.returncode, done.stderr.decode()) == (code, said)


def test_closed_standard_input_is_bad_input(tmp_path: Path) -> None:
    done = subprocess.run(
        ["sh", "-c", 'exec "$0" -m evenhand compare - --json <&-', sys.executable],
        cwd=tmp_path,
        env=environment(tmp_path),
        capture_output=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 2
    assert "standard input is closed" in json.loads(done.stdout)["error"]["message"]


@pytest.mark.slow
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize("arguments", [LONGER, (*LONGER, "--json"), ("compare", "--json")])
def test_full_disk_is_one_line_and_exit_code_2(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    with Path("/dev/full").open("wb") as full:
        process = start_command(arguments, tmp_path, stdout=full.fileno(), anew=True)
        _, err = process.communicate(timeout=120)
    assert process.returncode == 2
    assert err.decode().splitlines()[-1].startswith("error  ")
    assert b"Traceback" not in err
    assert b"Exception ignored" not in err


@pytest.mark.slow
@pytest.mark.parametrize(
    "more", [{"LC_ALL": "C"}, {"LC_ALL": "POSIX", "PYTHONUTF8": "0"}, {"PYTHONIOENCODING": "ascii"}]
)
def test_any_locale_gets_every_character_in_some_form(
    start_server: StartServer, tmp_path: Path, more: dict[str, str]
) -> None:
    answer = answer_json(
        "TIE", criteria=[("accuracy", "TIE")], reasoning="两者相同 – é … \U0001f600"
    )
    server = start_server(lambda request: chat_reply(answer))
    ran = run_command("compare", *SUM, *judged_by(server), directory=tmp_path, more=more)
    assert ran.code == 0, ran.err
    assert "A tie" in ran.out
    assert "两者" in ran.out or r"\u4e24\u8005" in ran.out
    ran = run_command("compare", *SUM, *judged_by(server), "--json", directory=tmp_path, more=more)
    assert "两者相同 – é … \U0001f600" in ran.verdict["overallReasoning"]


HOSTILE = (
    "\x1b]0;owned\x07\x1b]8;;https://evil.example\x1b\\click\x1b]8;;\x1b\\ \x1b[2J\x1b[31mred "
    "\x9b5n \u202ereversed\u2066 [bold]b[/bold] [link=https://evil.example]l[/link] [/] "
    "\x00\x08\x7f\x1b"
)


@pytest.mark.parametrize("columns", [30, 80])
def test_hostile_text_reaches_a_terminal_as_text(
    start_server: StartServer, tmp_path: Path, columns: int
) -> None:
    name = "tone [bold]\u202e"
    answer = answer_json(
        "TIE",
        criteria=[("accuracy", "TIE"), (name, "TIE")],
        reasoning=HOSTILE,
        differentiators=[HOSTILE],
        analysis={"responseA": {"strengths": [HOSTILE], "weaknesses": []}, "responseB": {}},
    )
    server = start_server(lambda request: chat_reply(answer, model=HOSTILE, request_id=HOSTILE))
    judge = ("--judge", "openai:[bold]m[/nonsense]", "--base-url", server.url)
    code, received = on_terminal(
        "compare", *SUM, "-c", name, *judge, directory=tmp_path, columns=columns
    )
    assert code == 0
    # Colours and the moving line are ours, and all of them are CSI sequences.
    shown = ANSI.sub("", received)
    assert all(char in "\r\n" or char.isprintable() for char in shown), repr(shown)
    assert "\x1b[2J" not in received
    assert "\x1b[31mred" not in received
    assert "[bold]b[/bold]" in " ".join(shown.split())
    verdict = shown[shown.index("A tie") :]
    assert max(map(len, verdict.splitlines())) <= columns


def test_hostile_error_reaches_a_terminal_as_one_line_of_text(tmp_path: Path) -> None:
    code, received = on_terminal(
        "compare",
        *SUM,
        "--judge",
        "openai:m",
        "--base-url",
        HOSTILE.replace("\x00", ""),
        directory=tmp_path,
    )
    assert code == 2
    shown = ANSI.sub("", received)
    assert all(char in "\r\n" or char.isprintable() for char in shown), repr(shown)
    assert "\x1b[2J" not in received


def test_hostile_prompt_is_shown_as_text_on_a_terminal_and_verbatim_in_a_pipe(
    tmp_path: Path,
) -> None:
    (tmp_path / "a.txt").write_bytes(HOSTILE.encode())
    arguments = ("prompt", "-p", "q", "--a", "@a.txt", "--b", "b", "-c", "c")
    code, received = on_terminal(*arguments, directory=tmp_path)
    assert code == 0
    assert "\x1b" not in received
    assert "\u202e" not in received
    assert HOSTILE in run_command(*arguments, directory=tmp_path).out


def test_hostile_config_file_of_a_checkout_does_not_reach_the_terminal(tmp_path: Path) -> None:
    (tmp_path / "evenhand.toml").write_text(
        'judge = "openai:\\u001b]0;owned\\u0007m\\u001b[2J"\n', encoding="utf-8"
    )
    code, received = on_terminal("doctor", "--base-url", "http://127.0.0.1:9", directory=tmp_path)
    assert code == 3
    assert "\x1b]" not in received
    assert "\x1b[2J" not in received


def test_terminal_gets_colours_unless_they_are_not_wanted(
    start_server: StartServer, tmp_path: Path
) -> None:
    arguments = ("compare", *SUM, *judged_by(start_server(fair)))
    colour = re.compile(r"\x1b\[[0-9;]*3[0-7]m")
    _, received = on_terminal(*arguments, directory=tmp_path)
    assert colour.search(received)
    _, received = on_terminal(*arguments, directory=tmp_path, NO_COLOR="1")
    assert not colour.search(received)
    ran = run_command(*arguments, directory=tmp_path)
    assert "\x1b" not in ran.out + ran.err


def test_narrow_terminal_has_a_list_and_a_wide_one_a_table(
    start_server: StartServer, tmp_path: Path
) -> None:
    arguments = ("compare", *SUM, *judged_by(start_server(fair)))
    narrow = run_command(*arguments, directory=tmp_path, more={"COLUMNS": "30"}).out
    assert "accuracy: A\n" in narrow
    assert max(map(len, narrow.splitlines())) <= 30
    wide = run_command(*arguments, directory=tmp_path, more={"COLUMNS": "90"}).out
    assert re.search(r"^criterion +winner +why", wide, re.MULTILINE)
    assert max(map(len, wide.splitlines())) <= 90


def test_key_shows_in_no_output_even_when_debugging(
    start_server: StartServer, tmp_path: Path
) -> None:
    server = start_server(lambda request: chat_reply(f"Bearer {KEY}?", finish_reason="stop"))
    more = {"OPENAI_API_KEY": KEY, "EVENHAND_DEBUG": "1"}
    arguments = ("doctor", "--judge", "openai:m", "--base-url", server.url)
    ran = run_command(*arguments, directory=tmp_path, more=more)
    assert ran.code == 4
    assert KEY not in ran.out + ran.err


def test_bug_is_one_line_with_a_way_to_report_it(tmp_path: Path) -> None:
    broken = (
        "import evenhand.cli.compare, sys\n"
        "from evenhand import settings\n"
        "def fails(): raise ZeroDivisionError('this\\nand that')\n"
        "settings.load_settings = fails\n"
        "sys.argv = ['evenhand', 'compare']\n"
        "from evenhand.cli.main import main\n"
        "main()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", broken],
        cwd=tmp_path,
        env=environment(tmp_path),
        capture_output=True,
        timeout=120,
        check=False,
        text=True,
    )
    assert done.returncode == 3
    assert done.stderr.startswith("error  this is a bug in evenhand: ZeroDivisionError: this and")
    assert done.stderr.count("\n") == 1
    assert "EVENHAND_DEBUG=1" in done.stderr


@pytest.mark.parametrize("gap_s", [0.0, 0.0003, 0.003])
def test_interrupting_twice_still_ends(
    start_server: StartServer, tmp_path: Path, gap_s: float
) -> None:
    script: Script = lambda request: Slow(60, chat_reply("too late"))  # noqa: E731
    server = start_server(script)
    process = start_command(("compare", *SUM, *judged_by(server)), tmp_path)
    assert server.wait_until(lambda: len(server.requests) == 2, within_s=120)
    process.send_signal(signal.SIGINT)
    time.sleep(gap_s)
    with contextlib.suppress(ProcessLookupError):
        process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=30)
    assert process.returncode in (130, -signal.SIGINT)
    assert b"Traceback" not in err


def test_what_does_not_end_when_cancelled_ends_at_the_second_interrupt(tmp_path: Path) -> None:
    stuck = """
import asyncio, sys
from evenhand.cli.session import run_async

async def deaf():
    print("begun", flush=True)
    while True:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            print("cancelled", flush=True)

run_async(deaf())
"""
    for presses in (2, 3):
        with subprocess.Popen(
            [sys.executable, "-c", stuck], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        ) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == "begun\n"
            process.send_signal(signal.SIGINT)
            assert process.stdout.readline() == "cancelled\n"
            begun = time.monotonic()
            for _ in range(presses - 1):
                process.send_signal(signal.SIGINT)
                time.sleep(0.05)
            _, err = process.communicate(timeout=30)
            assert (process.returncode, err) == (130, "interrupted\n")
            if presses == 2:  # time to close what can be closed
                assert time.monotonic() - begun > 0.9


@pytest.mark.slow
@pytest.mark.parametrize(
    "arguments", [("runs", "rename", "first"), ("runs", "show"), ("show", "first")]
)
def test_an_argument_that_is_not_utf8_is_bad_input_and_named(
    tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    with opened(tmp_path) as store:
        make_run(store, "first", ROWS[:1])
    done = subprocess.run(
        [sys.executable, "-m", "evenhand", *arguments, b"\xff\xfe", "--store", "evenhand.db"],
        cwd=tmp_path,
        env=environment(tmp_path),
        capture_output=True,
        timeout=120,
        check=False,
        text=True,
    )
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "bug" not in done.stderr
