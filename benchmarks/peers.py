"""The peers a user would pick, each in an environment of its own, against the same server.

An environment is made at first use under `.venv/peers`, which git ignores and `make clean` removes.
"""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from benchmarks.children import ChildFailed, run_child
from benchmarks.generated_pairs import Planned
from benchmarks.loopback import ROOT, LoopbackServer, loopback_environment

_INSTALL_S = 600.0
_MEASURE_S = 600.0


@dataclass(frozen=True, slots=True)
class Peer:
    label: str
    package: str  # its name in the package index; also its path on the server
    adapter: str
    packages: tuple[str, ...]  # what a user installs to have it


PEERS = (
    Peer("autoevals Battle", "autoevals", "peer_autoevals", ("autoevals", "openai")),
    Peer("openevals, model by name", "openevals", "peer_openevals", ("openevals",)),
    Peer("openevals, OpenAI client", "openevals", "peer_openevals_client", ("openevals",)),
)


@dataclass(frozen=True, slots=True)
class PeerMeasured:
    """Without its start-up, which would weigh on so few calls."""

    peer: Peer
    version: str
    calls_per_s: float
    cpu_s_per_1000: float


@dataclass(frozen=True, slots=True)
class PeerMissing:
    peer: Peer
    reason: str


def measure_peer(
    peer: Peer, pairs: Path, *, calls: int, in_flight: int
) -> PeerMeasured | PeerMissing:
    try:
        python = environment_of(peer)
        version = version_of(python, peer)
    except (subprocess.SubprocessError, OSError) as error:
        return PeerMissing(peer, f"not installed: {reason_of(error)}")
    try:
        with LoopbackServer() as server:
            base_url = f"{server.origin}/{peer.package}/v1"
            command = [str(python), "-m", f"benchmarks.{peer.adapter}"]
            command += [str(pairs), base_url, str(in_flight), str(calls)]
            environment = loopback_environment()
            ended = run_child(command, cwd=ROOT, within_s=_MEASURE_S, environment=environment)
            served = server.count()
    except ChildFailed as error:
        return PeerMissing(peer, f"failed: {str(error).splitlines()[-1]}")
    told = json.loads(ended.out)
    planned = Planned.of(calls)
    # The first response is named in pairs that A wins, and wherever it is named whatever it says.
    expected = planned.wins_a + planned.inconsistent
    if told["firstBetter"] != expected or served.requests != calls:
        return PeerMissing(
            peer,
            f"failed: {served.requests} calls for {calls} pairs, the first better in "
            f"{told['firstBetter']}, which must be {expected}",
        )
    return PeerMeasured(
        peer, version, calls / told["wallSeconds"], told["cpuSeconds"] / calls * 1_000
    )


def environment_of(peer: Peer) -> Path:
    folder = ROOT / ".venv" / "peers" / peer.package
    python = folder / "bin" / "python"
    done = folder / ".installed"
    if not done.exists():
        _quietly([sys.executable, "-m", "venv", str(folder)])
        _quietly([str(python), "-m", "pip", "install", "--quiet", *peer.packages])
        done.touch()
    return python


def version_of(python: Path, peer: Peer) -> str:
    code = f"from importlib.metadata import version; print(version({peer.package!r}))"
    return _quietly([str(python), "-c", code]).strip()


def _quietly(command: list[str]) -> str:
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=_INSTALL_S)
    return done.stdout


def reason_of(error: Exception) -> str:
    said = error.stderr if isinstance(error, subprocess.CalledProcessError) else str(error)
    lines = [line for line in str(said).strip().splitlines() if "ERROR" in line] or [str(error)]
    return lines[-1]
