"""A Ray cluster of several raylets on this machine, on the loopback, in a process of its own.

    with RayCluster(nodes=3, cpus=2, environment={...}) as cluster:
        ... cluster.address, cluster.environment, cluster.kill_node(2)

`python -m scripts.ray_cluster NODES CPUS` is that process; it lives until its input ends.
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
import signal
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from benchmarks.hosted import HostedProcess

_STOP_S = 60.0


class RayCluster:
    def __init__(
        self,
        *,
        nodes: int,
        cpus: int,
        environment: Mapping[str, str],
        head_cpus: int | None = None,
    ) -> None:
        """`environment` is what the workers will have, keys and passwords included. Without CPUs of
        its own the head runs no worker."""
        self._folder = Path(tempfile.mkdtemp(prefix="evenhand-rc-"))
        (self._folder / "ray").mkdir()
        # Of the driver too: it joins by the same address and token.
        self.environment = {
            "RAY_AUTH_MODE": "token",
            "RAY_AUTH_TOKEN": secrets.token_hex(32),
            "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",
            "RAY_USAGE_STATS_ENABLED": "0",
            "RAY_TMPDIR": str(self._folder),
            "RAY_worker_niceness": "0",  # else workers give way to whatever else runs here
        }
        self._process = HostedProcess(
            [
                *(sys.executable, "-m", "scripts.ray_cluster", str(nodes), str(cpus)),
                str(cpus if head_cpus is None else head_cpus),
            ],
            what="the Ray cluster",
            stops_within_s=_STOP_S,
            environment={**os.environ, **environment, **self.environment},
            heard=False,  # Ray has much to say
        )
        self.address = ""
        self._raylets: list[int] = []

    @property
    def logs(self) -> Path:
        """All that Ray wrote about the cluster."""
        return self._folder / "ray"

    def __enter__(self) -> Self:
        told: dict[str, Any] = json.loads(self._process.start())
        self.address, self._raylets = told["address"], told["raylets"]
        return self

    def kill_node(self, place: int) -> None:
        """With SIGKILL; the head is node 0."""
        os.kill(self._raylets[place], signal.SIGKILL)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._process.stop()
        shutil.rmtree(self._folder, ignore_errors=True)


def _host(nodes: int, cpus: int, head_cpus: int) -> None:
    from ray.cluster_utils import Cluster

    each: dict[str, Any] = {
        "num_cpus": cpus,
        "node_ip_address": "127.0.0.1",
        "object_store_memory": 80 * 2**20,
        "include_dashboard": False,
    }
    cluster = Cluster(initialize_head=True, head_node_args=each | {"num_cpus": head_cpus})
    members = [cluster.head_node, *(cluster.add_node(**each) for _ in range(nodes - 1))]
    raylets = [node.all_processes["raylet"][0].process.pid for node in members]
    print(json.dumps({"address": cluster.address, "raylets": raylets}), flush=True)
    sys.stdin.read()
    cluster.shutdown()  # type: ignore[no-untyped-call] # Ray is half typed


if __name__ == "__main__":
    _host(*map(int, sys.argv[1:]))
