"""A large upload goes to a file: the server's memory does not grow with it."""

from __future__ import annotations

import http.client
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from run_data import sums
from servers import forget_proxies

MIB = 1024 * 1024
UPLOAD_MIB = 192


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[str, int]]:
    """Its address and its process, as `evenhand serve` starts it."""
    forget_proxies(monkeypatch)
    words = [sys.executable, "-m", "evenhand", "serve", "--judge", "baseline:longer"]
    words += ["--port", "0", "--store", str(tmp_path / "s.db")]
    with (tmp_path / "log").open("wb") as log:
        process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=log, text=True)
    try:
        assert process.stdout is not None
        yield process.stdout.readline().strip(), process.pid
    finally:
        process.terminate()
        process.communicate(timeout=60)


def peak_mib(pid: int) -> float:
    """The most memory that a process has had (VmHWM), in MiB."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) / 1024
    raise AssertionError("the kernel tells no peak")


def blocks() -> Iterator[bytes]:
    """Lines of nothing but spaces, and at last two pairs."""
    blank = (b" " * (64 * 1024 - 1) + b"\n") * 16
    for _ in range(UPLOAD_MIB):
        yield blank
    yield "".join(json.dumps(row) + "\n" for row in sums(2)).encode()


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs Linux's /proc")
def test_memory_does_not_grow_with_an_upload(server: tuple[str, int]) -> None:
    url, pid = server
    before = peak_mib(pid)
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=120)
    connection.request(
        "POST",
        "/v1/runs?criteria=accuracy",
        body=blocks(),
        headers={"Content-Type": "application/x-ndjson"},
        encode_chunked=True,
    )
    answer = connection.getresponse()
    told = json.loads(answer.read())
    connection.close()
    assert (answer.status, told.get("pairs")) == (202, 2), told
    # NumPy and the rest come with the first run; a quarter of the upload is more than they take.
    assert peak_mib(pid) - before < UPLOAD_MIB / 4
