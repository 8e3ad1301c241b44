"""Hostile data sent to a real server as a run's file; see `scripts.attacks`.

Each attack has a server of its own. What is measured: how much memory it took above what it had
after a plain upload, and how long the slowest `/healthz` took meanwhile.
"""

from __future__ import annotations

import gzip
import http.client
import io
import json
import os
import resource
import signal
import struct
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

from benchmarks.served import Served
from scripts.attacks import AtMost, Attack, Due, Outcome

PEAK_LIMIT_MB = 200.0
HEALTH_LIMIT_S = 0.5
_ROW = {"prompt": "p", "responseA": "a", "responseB": "b", "criteria": ["x"]}
_LINE = json.dumps(_ROW).encode() + b"\n"
_MIB = 1 << 20


def gzipped(*parts: tuple[bytes, int]) -> bytes:
    """Each part so many times, in members of a mebibyte, which are packed once."""
    packed = bytearray()
    for part, times in parts:
        at_once = max(1, min(times, _MIB // max(1, len(part))))
        whole, rest = divmod(times, at_once)
        packed += gzip.compress(part * at_once, 9) * whole
        packed += gzip.compress(part * rest, 9) if rest else b""
    return bytes(packed)


def parquet(columns: Mapping[str, Any], **options: Any) -> bytes:
    table = import_module("pyarrow").table(dict(columns))
    out = io.BytesIO()
    import_module("pyarrow.parquet").write_table(table, out, **options)
    return out.getvalue()


def referring(text: str, times: int) -> Any:
    """The text once, and so many references to it."""
    pyarrow = import_module("pyarrow")
    indices = pyarrow.array([0] * times, pyarrow.int32())
    return pyarrow.DictionaryArray.from_arrays(indices, pyarrow.array([text]))


def dictionary_bomb(size: int) -> bytes:
    long = referring("a" * size, 200)
    columns = dict.fromkeys(("prompt", "response_a", "response_b"), long)
    options = {"dictionary_pagesize_limit": 1 << 26, "compression": "zstd"}
    return parquet({**columns, "criteria": ["x"] * 200}, **options)


def page_bomb() -> bytes:
    text = "a" * (200 * _MIB)
    columns = {"prompt": ["p"], "response_a": [text], "response_b": ["b"], "criteria": ["x"]}
    return parquet(columns, compression="zstd", use_dictionary=False)


def list_bomb(times: int) -> bytes:
    pyarrow = import_module("pyarrow")
    columns = {"prompt": ["p"], "response_a": ["a"], "response_b": ["b"], "criteria": ["x"]}
    tags = pyarrow.ListArray.from_arrays(
        pyarrow.array([0, times], pyarrow.int32()), referring("t" * 1000, times)
    )
    return parquet({**columns, "tags": tags}, compression="zstd")


def deep_schema() -> bytes:
    """Groups inside groups, as deep as a footer of 1.5 MB has room for."""
    element = b"\x35\x00\x18\x01a\x15\x02\x00"  # optional, named a, with one child
    leaf = b"\x15\x0c\x25\x02\x18\x01a\x00"
    count = 180_000
    size = count + 1
    length = bytes([size & 0x7F | 0x80, size >> 7 & 0x7F | 0x80, size >> 14])
    footer = b"\x15\x02\x19\xfc" + length + element * count + leaf + b"\x16\x00\x19\x0c\x00"
    return b"PAR1" + footer + struct.pack("<I", len(footer)) + b"PAR1"


def lying_page() -> bytes:
    """A page that says it unpacks to two gigabytes."""
    columns = {"prompt": ["p"] * 9, "response_a": ["a" * 300] * 9, "response_b": ["b"] * 9}
    plain = parquet(columns, compression="zstd", use_dictionary=False)
    at = 4
    while plain[at : at + 3] != b"\x15\x00\x15":  # a data page; its unpacked size is next
        at += 1
    end = at + 3
    while plain[end] & 0x80:
        end += 1
    return plain[: at + 3] + b"\xfe\xff\xff\xff\x0f"[: end - at - 2 + 3] + plain[end + 1 :]


def rows_with_wide_objects() -> bytes:
    rows = (
        b"{" + b",".join(b'"k%d_%d":1' % (row, key) for key in range(90_000)) + b"}\n"
        for row in range(40)
    )
    return gzip.compress(b"".join(rows), 1)


def open_quote() -> bytes:
    return gzipped(
        (b'prompt,response_a,response_b,criteria\np,"', 1), (b"line after line\n", 30 * _MIB)
    )


CASES: tuple[tuple[str, str, Callable[[], bytes], tuple[int, ...]], ...] = (
    (
        "gzip in gzip, one line of 2 GB",
        "x.jsonl.gz",
        lambda: gzip.compress(gzipped((b'{"prompt":"', 1), (b"a", 2048 * _MIB))),
        (422,),
    ),
    ("a gzipped line of 900 MB", "x.jsonl.gz", lambda: gzipped((b"a", 900 * _MIB)), (413,)),
    (
        "a gzipped JSON list with a value of 480 MB",
        "x.json.gz",
        lambda: gzipped((b'[{"prompt":"', 1), (b"a", 480 * _MIB), (b'"}]', 1)),
        (413,),
    ),
    (
        "a gzipped CSV with a cell of 250 MB",
        "x.csv.gz",
        lambda: gzipped((b"prompt,response_a,response_b\np,", 1), (b"a", 250 * _MIB)),
        (413, 422),
    ),
    ("a CSV whose quote is never closed, 480 MB", "x.csv.gz", open_quote, (413,)),
    (
        "a CSV header of 15 million commas",
        "x.csv",
        lambda: b"prompt,response_a,response_b" + b"," * 15_000_000 + b"\n",
        (413, 422),
    ),
    (
        "a row of 5 million empty lists",
        "x.jsonl",
        lambda: b'{"prompt":[' + b"[]," * 5_000_000 + b"[]]}\n",
        (422,),
    ),
    (
        "a JSON string never closed, quotes before it",
        "x.jsonl",
        lambda: b'{"prompt":"' + b'\\"' * 500_000 + b"\n" + b'{"a":"' * 150_000 + b"\n",
        (422,),
    ),
    (
        "a JSON list whose string is never closed",
        "x.json",
        lambda: b'[{"prompt":"' + b'a\\"' * 3_000_000,
        (413, 422),
    ),
    (
        "a row of 3 million nested objects",
        "x.jsonl",
        lambda: b'{"prompt":[' + (b'{"":' * 900 + b"1" + b"}" * 900 + b",") * 3000 + b"1]}\n",
        (422,),
    ),
    (
        "a JSON list of 300 million numbers",
        "x.json.gz",
        lambda: gzipped((b"[1", 1), (b",1", 300_000_000), (b"]", 1)),
        (413, 422),
    ),
    (
        "a text of 15 MB in the widest characters",
        "x.json",
        lambda: b'[{"prompt":"' + "😀".encode() + b"a" * 15_000_000 + b'"}]',
        (413, 422),
    ),
    (
        "a million criteria in a row",
        "x.jsonl",
        lambda: (
            b'{"prompt":"","responseA":"","responseB":"","criteria":['
            + b'"ab",' * 900_000
            + b'"z"]}\n'
        ),
        (413, 422),
    ),
    (
        "480 MB of blank lines",
        "x.jsonl.gz",
        lambda: gzipped((_LINE, 20), (b"\n", 480 * _MIB)),
        (413,),
    ),
    (
        "a CSV with 480 MB of blank lines",
        "x.csv.gz",
        lambda: gzipped((b"prompt,response_a,response_b\np,a,b\n", 1), (b"\n", 480 * _MIB)),
        (413, 422),
    ),
    ("40 rows of 90,000 columns each", "x.jsonl.gz", rows_with_wide_objects, (422,)),
    (
        "Parquet: 8 MB in a dictionary, 200 rows",
        "x.parquet",
        lambda: dictionary_bomb(8 * _MIB),
        (422,),
    ),
    ("Parquet: the same with 3.5 MB", "x.parquet", lambda: dictionary_bomb(3_500_000), (413,)),
    ("Parquet: a page that unpacks to 200 MB", "x.parquet", page_bomb, (422,)),
    ("Parquet: a list of 3 million texts", "x.parquet", lambda: list_bomb(3_000_000), (422,)),
    ("Parquet: a list of 900,000 texts", "x.parquet", lambda: list_bomb(900_000), (413,)),
    ("Parquet: a page that says it has 2 GB", "x.parquet", lying_page, (422,)),
    ("Parquet: a schema 180,000 levels deep", "x.parquet", deep_schema, (422,)),
)


class Watched(Served):
    """A server whose memory and pulse are looked at."""

    @property
    def spool(self) -> Path:
        return self._folder / "spool"

    def memory_mb(self, name: str) -> float:
        lines = Path(f"/proc/{self.pid}/status").read_text(encoding="ascii").splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith(f"{name}:")) / 1024

    def forget_peak(self) -> None:
        Path(f"/proc/{self.pid}/clear_refs").write_text("5", encoding="ascii")

    def send(self, name: str, data: bytes, *, timeout_s: float = 100) -> tuple[int, bytes]:
        head = f'--b\r\nContent-Disposition: form-data; name="file"; filename="{name}"\r\n\r\n'
        body = head.encode() + data + b"\r\n--b--\r\n"
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout_s)
        try:
            kind = {"Content-Type": "multipart/form-data; boundary=b"}
            connection.request("POST", "/v1/runs", body, kind)
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()

    @contextmanager
    def pulse(self) -> Iterator[list[float]]:
        """How long `/healthz` takes, again and again."""
        took: list[float] = []
        ended = threading.Event()

        def look() -> None:
            while not ended.wait(0.02):
                begun = time.perf_counter()
                connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
                try:
                    connection.request("GET", "/healthz")
                    connection.getresponse().read()
                finally:
                    connection.close()
                    took.append(time.perf_counter() - begun)

        thread = threading.Thread(target=look)
        thread.start()
        try:
            yield took
        finally:
            ended.set()
            thread.join()


@contextmanager
def served(**options: object) -> Iterator[Watched]:
    with tempfile.TemporaryDirectory(prefix="evenhand-attack-") as folder:
        environment = _environment(_spool(Path(folder)))
        with Watched("http://127.0.0.1:9", Path(folder), environment=environment, **options) as it:  # type: ignore[arg-type]
            yield it


def _environment(spool: Path) -> dict[str, str]:
    beside = os.environ.get("PYTHONPATH")  # of a checkout beside the installed one
    return {"TMPDIR": str(spool), **({"PYTHONPATH": beside} if beside else {})}


def _spool(folder: Path) -> Path:
    path = folder / "spool"
    path.mkdir()
    return path


def attempt(name: str, make: Callable[[], bytes], expected: tuple[int, ...]) -> Outcome:
    data = make()
    with served() as server:
        server.send("plain.jsonl", _LINE)
        idle = server.memory_mb("VmRSS")
        server.forget_peak()
        with server.pulse() as took:
            status, body = server.send(name, data)
        peak = server.memory_mb("VmHWM") - idle
        slowest = max(took, default=0.0)
        left = os.listdir(server.spool)
    answered = status if status in expected else f"{status}: {body[:200]!r}"
    return Outcome(
        (
            AtMost("peak above idle", peak, PEAK_LIMIT_MB, "MB"),
            AtMost("slowest /healthz", slowest, HEALTH_LIMIT_S, "s"),
            Due("status", answered, status if status in expected else expected),
            Due("files left", left, []),
        ),
        f"{len(data):,} bytes sent",
    )


def _case(number: int) -> Callable[[], Outcome]:
    _, name, make, expected = CASES[number]
    return lambda: attempt(name, make, expected)


def full_disk() -> Outcome:
    """Four uploads at once, of which each is larger than what a file of the server may have."""
    with served() as server:
        server.send("plain.jsonl", _LINE)
        resource.prlimit(server.pid, resource.RLIMIT_FSIZE, (20 * _MIB, 20 * _MIB))
        answers: list[tuple[int, bytes]] = []
        data = _LINE * (20 * _MIB // len(_LINE) + 1)  # little more: the answer is not cut off
        senders = [
            threading.Thread(target=lambda: answers.append(server.send("x.jsonl", data)))
            for _ in range(4)
        ]
        for sender in senders:
            sender.start()
        for sender in senders:
            sender.join()
        statuses = sorted(status for status, _ in answers)
        remedy = all(b"free space for temporary files" in body for _, body in answers)
        left = os.listdir(server.spool)
        after, _ = server.send("plain.jsonl", _LINE)
    return Outcome(
        (
            Due("4 uploads:", statuses, [507] * 4),
            Due("all name the remedy:", remedy, True, note=str(answers[:1])),
            Due("files left", left, []),
            Due("the next upload", after, 200),
        )
    )


def killed_midway() -> Outcome:
    """SIGKILL while an upload comes in; the next server on the same store starts and takes it."""
    with tempfile.TemporaryDirectory(prefix="evenhand-attack-") as name:
        folder = Path(name)
        spool = _spool(folder)
        environment = _environment(spool)
        with Watched("http://127.0.0.1:9", folder, environment=environment) as server:
            server.send("plain.jsonl", _LINE)
            half = http.client.HTTPConnection("127.0.0.1", server.port, timeout=30)
            half.putrequest("POST", "/v1/runs")
            half.putheader("Content-Type", "application/x-ndjson")
            half.putheader("Content-Length", str(80 * _MIB))
            half.endheaders()
            half.send(_LINE * (30 * _MIB // len(_LINE)))
            time.sleep(1)
            server.signal(signal.SIGKILL)
            half.close()
        left = os.listdir(spool)
        with Watched("http://127.0.0.1:9", folder, environment=environment) as server:
            status, _ = server.send("plain.jsonl", _LINE)
    return Outcome((Due("files left", left, []), Due("the same upload afterwards", status, 200)))


ATTACKS: tuple[Attack, ...] = (
    *(Attack(title, _case(number), limit_s=60) for number, (title, *_) in enumerate(CASES)),
    Attack("uploads that fill the disk", full_disk, limit_s=60),
    Attack("SIGKILL in the middle of an upload", killed_midway, limit_s=60),
)
