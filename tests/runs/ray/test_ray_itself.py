"""Real Ray: started by a run on this machine, and a cluster of three raylets that loses one."""

from __future__ import annotations

import json
import os
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from stat import S_IMODE
from urllib.parse import quote

import pytest
from benchmarks.children import Child
from benchmarks.evenhand_run import Summary
from benchmarks.generated_pairs import write_pairs
from benchmarks.loopback import LoopbackServer, loopback_environment
from scripts.ray_cluster import RayCluster
from scripts.verify_cluster import KEY, Place, kill_and_resume

from postgres_server import PASSWORD, PostgresServer
from run_data import answer_to, artefact_in, pairings, write_lines
from servers import JudgeServer, chat_reply

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc, and kills")
_WITHIN_S = 240.0
_LISTENS = "0A"
NOBODY = "http://127.0.0.1:9/v1"


@pytest.fixture(scope="module")
def server() -> Iterator[LoopbackServer]:
    with LoopbackServer(delay_ms=20, ledger=True) as started:
        yield started


@pytest.fixture
def short_folder() -> Iterator[Path]:
    """A socket's path may have some hundred characters: not pytest's own folders."""
    with tempfile.TemporaryDirectory(prefix="r-", ignore_cleanup_errors=True) as folder:
        yield Path(folder)


@pytest.fixture
def store(fresh_database: str, postgres: PostgresServer) -> str:
    """By its password, which is nobody else's business."""
    database = fresh_database.partition("@/")[2].partition("?")[0]
    return postgres.loopback_url(database, quote(PASSWORD, safe=""))


def test_a_run_starts_ray_on_the_loopback_and_leaves_nothing_behind(
    server: LoopbackServer, store: str, tmp_path: Path, short_folder: Path
) -> None:
    planned = write_pairs(tmp_path / "pairs.jsonl", 120, size="small", seed=3)
    server.reset()
    # A fleet: a good server, and one that is not there.
    fleet = ["--base-url", server.url, "--base-url", NOBODY]
    child = _run_with_ray(tmp_path, short_folder, "--store", store, *fleet)
    addresses: set[str] = set()
    secrets: set[str] = set()
    while (ended := child.poll()) is None:
        assert child.running_s < _WITHIN_S
        if server.count().requests and not addresses:
            family = _descendants(child.pid)
            addresses = _listening(family)
            (entrance,) = short_folder.glob("ehray-*")
            assert S_IMODE(entrance.stat().st_mode) == 0o700
            secrets = _said_in(short_folder, (KEY, PASSWORD, quote(PASSWORD, safe="")))
    assert ended.code == 0, ended.err
    assert Summary.of(ended).differences(planned) == []
    assert "127.0.0.1:9/v1 is skipped" in ended.out
    assert addresses
    assert addresses <= {"127.0.0.1"}
    assert secrets == set()
    assert not list(short_folder.iterdir())
    assert not (tmp_path / ".ray").exists()
    # Nothing of Ray's own on the terminal, and no secret.
    assert "2 Ray workers on this machine" in ended.err
    for strange in ("SIGTERM", "raylet", "Token auth", "dashboard", KEY, PASSWORD):
        assert strange not in ended.err + ended.out


def test_rays_own_workers_share_what_is_prepared(
    store: str, tmp_path: Path, short_folder: Path
) -> None:
    """Six prompts and five models: 60 pairs in 120 passes, 6 + 6 + 30 texts."""
    write_lines(tmp_path / "pairs.jsonl", pairings(6, 5))
    with JudgeServer(lambda request: chat_reply(answer_to(request.prompt))) as judge:
        prepare = ("--prepare", "metrics,reference,analysis")
        child = _run_with_ray(
            tmp_path, short_folder, "--store", store, "--base-url", judge.url, *prepare
        )
        while (ended := child.poll()) is None:
            assert child.running_s < _WITHIN_S
            time.sleep(0.05)
        asked = [request.prompt for request in judge.requests]
    assert ended.code == 0, ended.err
    assert json.loads(ended.out)["winsA"] == 60
    assert "once for all workers" in ended.err
    assert len(asked) == len(set(asked)) == 162
    assert Counter(map(artefact_in, asked))[None] == 120


def test_an_interrupt_while_ray_starts_leaves_nothing_of_it_behind(
    store: str, tmp_path: Path, short_folder: Path
) -> None:
    write_pairs(tmp_path / "pairs.jsonl", 20, size="small", seed=3)
    child = _run_with_ray(tmp_path, short_folder, "--store", store, "--base-url", NOBODY)
    family: set[int] = set()
    while not any(_is_called(each, "gcs_server") for each in family):
        assert child.poll() is None
        assert child.running_s < _WITHIN_S
        family = _descendants(child.pid)
    os.kill(child.pid, signal.SIGINT)
    while (ended := child.poll()) is None:
        assert child.running_s < _WITHIN_S
        family |= _descendants(child.pid)
    assert ended.code == 130, ended.err
    assert json.loads(ended.out)["stoppedBy"] == "interrupt"
    assert "2 Ray workers" not in ended.err  # it was still on its way
    assert "; press Ctrl-C again to quit now" in ended.err
    for strange in ("Traceback", "gcs", "raylet"):
        assert strange not in ended.err
    while any(_is_called(each, "gcs_server", "raylet") for each in family):
        assert child.running_s < _WITHIN_S
        time.sleep(0.05)


def test_a_cluster_loses_a_node_and_its_driver_and_no_verdict(
    server: LoopbackServer, store: str, tmp_path: Path
) -> None:
    """`make verify` has the same with twenty thousand pairs."""
    environment = {"EVENHAND_STORE": store, "OPENAI_API_KEY": KEY}
    with RayCluster(nodes=3, cpus=2, environment=environment) as cluster:
        report = kill_and_resume(Place(cluster, store, server, tmp_path), pairs=400)
    assert report.problems == []


@pytest.mark.slow
def test_a_cluster_that_loses_all_its_workers_ends_the_run_with_an_error(
    server: LoopbackServer, store: str, tmp_path: Path
) -> None:
    environment = {"EVENHAND_STORE": store, "OPENAI_API_KEY": KEY}
    path = tmp_path / "lost.jsonl"
    write_pairs(path, 4_000, size="small", seed=1)
    server.reset()
    with RayCluster(nodes=2, cpus=2, head_cpus=0, environment=environment) as cluster:
        place = Place(cluster, store, server, tmp_path)
        child = place.command(path, name="lost", workers=2, each=4)
        try:
            while server.count().requests < 100:
                assert child.poll() is None
                time.sleep(0.05)
            cluster.kill_node(1)
            while (ended := child.poll()) is None:
                assert child.running_s < _WITHIN_S
                time.sleep(0.1)
        finally:
            child.kill()
    assert "lost every worker, and no node started another within 20 s" in ended.err
    assert json.loads(ended.out)["error"]["kind"] == "cluster"
    assert "Traceback" not in ended.err


def _run_with_ray(here: Path, temporary: Path, *more: str) -> Child:
    environment = {
        **loopback_environment(),
        "OPENAI_API_KEY": KEY,
        "HOME": str(here),
        "TMPDIR": str(temporary),
    }
    words = [sys.executable, "-m", "evenhand", "run", "pairs.jsonl", "-j", "openai:m"]
    words += ["-c", "accuracy", "-c", "clarity", "--yes", "--json"]
    words += ["--executor", "ray", "--ray-workers", "2", "--concurrency", "8", *more]
    return Child(words, cwd=here, environment=environment)


def _is_called(process: int, *names: str) -> bool:
    """And lives."""
    try:
        said = Path(f"/proc/{process}/stat").read_text()
    except OSError:
        return False
    name, _, rest = said.partition("(")[2].rpartition(")")
    return name in names and not rest.startswith(" Z")


def _descendants(process: int) -> set[int]:
    parents: dict[int, int] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            said = stat.read_text()
        except OSError:
            continue
        parents[int(said.partition(" ")[0])] = int(said.rpartition(")")[2].split()[1])
    found = {process}
    while more := {each for each, parent in parents.items() if parent in found} - found:
        found |= more
    return found


def _listening(processes: set[int]) -> set[str]:
    """The addresses that these processes listen on."""
    sockets = set()
    for process in processes:
        try:
            links = [os.readlink(each) for each in Path(f"/proc/{process}/fd").iterdir()]
        except OSError:
            continue
        sockets |= {link[8:-1] for link in links if link.startswith("socket:[")}
    found = set()
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
            words = line.split()
            if words[3] == _LISTENS and words[9] in sockets:
                found.add(_address(words[1].partition(":")[0]))
    return found


def _address(told: str) -> str:
    """From the kernel's hexadecimal words; a mapped one is the IPv4 address that it stands for."""
    last = bytes.fromhex(told[-8:])[::-1]
    mapped = len(told) == 8 or told[:24] == "0000000000000000FFFF0000"
    return ".".join(str(byte) for byte in last) if mapped else told


def _said_in(folder: Path, secrets: tuple[str, ...]) -> set[str]:
    """The files of Ray's session, logs and all, that hold a secret."""
    found = set()
    for path in folder.rglob("*"):
        if path.is_file() and not path.is_symlink():
            said = path.read_bytes()
            found |= {path.name for each in secrets if each.encode() in said}
    return found
