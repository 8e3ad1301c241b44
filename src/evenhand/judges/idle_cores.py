"""How many cores a model may take without fighting for them.

llama.cpp's threads wait for each other several hundred times per token, and they spin while they
do. A thread more than there are idle cores makes every step wait for the scheduler: beside a busy
machine's other work, two threads on two cores took 15 to 22 s of CPU time for a pair that one
thread judged in 7 (two trials of each).
"""

from __future__ import annotations

import os
import time
from pathlib import Path

_STAT = Path("/proc/stat")
_QUOTA = Path("/sys/fs/cgroup/cpu.max")
# The kernel counts in hundredths of a second.
_LOOK_S = 0.2


def threads_for_a_model(look_s: float = _LOOK_S) -> int | None:
    """One for each core that is idle now, and at least one; None where nothing else is going on,
    or nobody can tell: then the model's own choice is as good."""
    cores = allowed_cores()
    idle = idle_cores(look_s)
    if idle is not None and (free := max(1, round(idle))) < cores:
        return free
    return cores if cores < (os.cpu_count() or cores) else None


def allowed_cores(quota: Path = _QUOTA) -> int:
    """As this process was given them: by affinity, or by a container's quota."""
    try:
        cores = len(os.sched_getaffinity(0))
    except AttributeError:  # not on macOS and Windows
        cores = os.cpu_count() or 1
    try:
        most, period = quota.read_text(encoding="ascii").split()
        return max(1, min(cores, round(int(most) / int(period))))
    except (OSError, ValueError):  # no such file, or "max"
        return cores


def idle_cores(look_s: float = _LOOK_S, stat: Path = _STAT) -> float | None:
    """On average over a moment; None where the system does not tell."""
    begun, first = time.monotonic(), _idle_s(stat)
    time.sleep(look_s)
    last, took = _idle_s(stat), time.monotonic() - begun
    return None if first is None or last is None else max(0.0, last - first) / took


def _idle_s(stat: Path) -> float | None:
    """Of all cores since the start of the machine, waiting for a disk among it."""
    try:
        # cpu  user nice system idle iowait …
        fields = stat.read_text(encoding="ascii").split("\n", 1)[0].split()
        return (int(fields[4]) + int(fields[5])) / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError, IndexError, AttributeError):  # no Linux
        return None
