"""llama.cpp's server in this process: its model file, threads and endpoint."""

from __future__ import annotations

import asyncio
import importlib.util
import os
import secrets
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from evenhand.errors import InputError, MissingExtra
from evenhand.judges import embedded_model

# llama.cpp's threads spin while they wait for each other, several hundred times per token. More
# threads than idle cores make every step wait for the scheduler: on a busy machine, two threads on
# two cores took 15 to 22 s of CPU time for a pair that one thread judged in 7 (two trials each).

_STAT = Path("/proc/stat")
_QUOTA = Path("/sys/fs/cgroup/cpu.max")
# The kernel counts in hundredths of a second.
_LOOK_S = 0.2


def threads_for_a_model(look_s: float = _LOOK_S) -> int | None:
    """One per idle core, at least one; None, llama.cpp's own choice, if the machine is idle or its
    load unknown."""
    cores = allowed_cores()
    idle = idle_cores(look_s)
    if idle is not None and (free := max(1, round(idle))) < cores:
        return free
    return cores if cores < (os.cpu_count() or cores) else None


def allowed_cores(quota: Path = _QUOTA) -> int:
    """By affinity, or by a container's quota."""
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
    """On average over `look_s`; None if the system does not say."""
    begun, first = time.monotonic(), _idle_s(stat)
    time.sleep(look_s)
    last, took = _idle_s(stat), time.monotonic() - begun
    return None if first is None or last is None else max(0.0, last - first) / took


def _idle_s(stat: Path) -> float | None:
    """Idle time of all cores since boot, including I/O wait."""
    try:
        # cpu  user nice system idle iowait …
        fields = stat.read_text(encoding="ascii").split("\n", 1)[0].split()
        return (int(fields[4]) + int(fields[5])) / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError, IndexError, AttributeError):  # no Linux
        return None


DEFAULT_CONTEXT = 8192


@dataclass(frozen=True, slots=True)
class LocalEndpoint:
    """The address and key of a served model, compatible with OpenAI's."""

    base_url: str
    api_key: str
    model: str


def model_file(path: Path | None, *, cache: Path | None = None) -> Path:
    """The model's file, checked as far as possible without loading it."""
    if importlib.util.find_spec("xllamacpp") is None:
        raise MissingExtra("xllamacpp", "local")
    if path is None:
        located = embedded_model.locate(cache)
        if located is None:
            raise InputError.of("judges.embedded_model_missing")
        path = located
    try:
        with path.open("rb") as file:
            magic = file.read(4)
    except FileNotFoundError:
        raise InputError.of("judges.model_file_missing", path=path) from None
    except OSError as error:
        raise InputError.of(
            "judges.model_file_unreadable", path=path, strerror=error.strerror or error
        ) from None
    if magic != b"GGUF":
        raise InputError.of("judges.not_gguf", path=path, magic=magic)
    return path


@asynccontextmanager
async def serve_local(
    path: Path | None = None,
    *,
    cache: Path | None = None,
    n_ctx: int = DEFAULT_CONTEXT,
    port: int = 0,
    api_key: str | None = None,
) -> AsyncIterator[LocalEndpoint]:
    """Serve a model on the loopback as OpenAI's chat completions."""
    file = model_file(path, cache=cache)
    name = "local" if path is None else file.stem
    key = api_key or secrets.token_urlsafe(32)
    try:
        native = await asyncio.to_thread(
            LlamaServer, file, n_ctx=n_ctx, name=name, api_key=key, port=port
        )
    except RuntimeError:
        if port:
            raise InputError.of("judges.model_not_served_at_port", file=file, port=port) from None
        raise InputError.of("judges.model_not_served", file=file) from None
    try:
        yield LocalEndpoint(base_url=f"{native.address}/v1", api_key=key, model=name)
    finally:
        await asyncio.to_thread(native.free)


class LlamaServer:
    """llama.cpp's server in this process. Loading and freeing block: use a thread."""

    def __init__(self, file: Path, *, n_ctx: int, name: str, api_key: str, port: int = 0) -> None:
        import xllamacpp

        params = xllamacpp.CommonParams()
        params.model.path = str(file)
        params.model_alias = {name}
        params.n_ctx = n_ctx
        params.n_parallel = 1
        params.n_threads_http = 4
        # Spinning threads cost a busy machine dearly (a demo pair took 45 s instead of 10 s beside
        # one busy core) and gain an idle one almost nothing.
        params.cpuparams.poll = 0
        params.cpuparams_batch.poll = 0
        threads = threads_for_a_model()
        if threads is not None:
            params.cpuparams.n_threads = params.cpuparams_batch.n_threads = threads
        params.port = port
        params.api_keys = [api_key]
        params.verbosity = -1
        params.warmup = False
        params.ui = False
        params.endpoint_slots = False
        # The slot holds the one prefix that matters; a second prompt cache only takes RAM.
        params.cache_ram_mib = 0
        # With flash attention or 16-bit keys and values, an answer depends on how much of the
        # prompt was cached (measured: up to 0.37 in a log-probability). Without, it is exact at the
        # same speed, so that compare(A, B) mirrors compare(B, A).
        params.flash_attn_type = xllamacpp.llama_flash_attn_type.LLAMA_FLASH_ATTN_TYPE_DISABLED
        params.cache_type_k = xllamacpp.ggml_type.GGML_TYPE_F32
        params.cache_type_v = xllamacpp.ggml_type.GGML_TYPE_F32
        self._native = xllamacpp.Server(params)
        self.address: str = self._native.listening_address

    def free(self) -> None:
        self._native = None
