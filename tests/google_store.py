"""Google Cloud Storage on the loopback, as far as reading goes: its JSON API as documented.

Objects are listed by prefix and delimiter, asked for by name, and downloaded by ranges. They are
the files of a folder, which a process of its own serves.

    python google_store.py FOLDER
"""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import pytest

_OBJECTS = "/storage/v1/b/"
_DENIES = ".denies"


@dataclass(frozen=True)
class GoogleBucket:
    folder: Path

    def put(self, key: str, content: bytes) -> str:
        path = self.folder / key
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        return self.url(key)

    def deny(self) -> None:
        (self.folder / _DENIES).touch()

    def url(self, key: str) -> str:
        return f"gs://bucket/{key}"


@pytest.fixture
def google(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[GoogleBucket]:
    folder = tmp_path / "google"
    folder.mkdir()
    process = subprocess.Popen(
        [sys.executable, __file__, str(folder)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    with process, process.stdout:
        port = int(process.stdout.readline())
        monkeypatch.setenv("STORAGE_EMULATOR_HOST", f"http://127.0.0.1:{port}")
        monkeypatch.setenv("FSSPEC_GCS_TOKEN", "anon")
        yield GoogleBucket(folder)
        process.kill()


class _Store:
    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @property
    def objects(self) -> dict[str, bytes]:
        files = [path for path in self._folder.rglob("*") if path.is_file()]
        return {path.relative_to(self._folder).as_posix(): path.read_bytes() for path in files}

    def answer(self, path: str, wanted: str | None) -> tuple[int, bytes, str]:
        if (self._folder / _DENIES).exists():
            return self._fault(403, "forbidden")
        parts = urlsplit(path)
        query = {name: values[0] for name, values in parse_qs(parts.query).items()}
        if parts.path.startswith("/download"):
            path = parts.path.removeprefix("/download")
        else:
            path = parts.path
        steps = path.removeprefix(_OBJECTS).split("/", 2)
        if not path.startswith(_OBJECTS) or steps[0] != "bucket":
            return self._raw(path, wanted)
        if len(steps) == 1:
            return self._json({"kind": "storage#bucket", "name": "bucket"})
        if len(steps) == 2:
            return self._json(self._listed(query))
        key = unquote(steps[2])
        if key not in self.objects:
            return self._fault(404, "notFound")
        if query.get("alt") == "media":
            return self._content(key, wanted)
        return self._json(self._described(key))

    def _raw(self, path: str, wanted: str | None) -> tuple[int, bytes, str]:
        """The XML API's way to download: /bucket/key."""
        key = unquote(path.removeprefix("/bucket/"))
        return self._content(key, wanted) if key in self.objects else self._fault(404, "notFound")

    def _content(self, key: str, wanted: str | None) -> tuple[int, bytes, str]:
        content = self.objects[key]
        if wanted is not None:
            first, _, last = wanted.removeprefix("bytes=").partition("-")
            content = content[int(first) : int(last) + 1 if last else None]
        return 200 if wanted is None else 206, content, "application/octet-stream"

    def _listed(self, query: dict[str, str]) -> dict[str, Any]:
        prefix, delimiter = query.get("prefix", ""), query.get("delimiter")
        items, prefixes = [], set()
        for key in sorted(self.objects):
            rest = key.removeprefix(prefix)
            if not key.startswith(prefix):
                continue
            if delimiter and delimiter in rest:
                prefixes.add(prefix + rest.partition(delimiter)[0] + delimiter)
            else:
                items.append(self._described(key))
        return {"kind": "storage#objects", "items": items, "prefixes": sorted(prefixes)}

    def _described(self, key: str) -> dict[str, Any]:
        digest = hashlib.sha256(self.objects[key]).hexdigest()[:16]
        return {
            "kind": "storage#object",
            "name": key,
            "bucket": "bucket",
            "size": str(len(self.objects[key])),
            "etag": digest,
            "generation": str(int(digest[:12], 16)),
            "metageneration": "1",
            "contentType": "application/octet-stream",
            "timeCreated": "2026-01-01T00:00:00.000Z",
            "updated": "2026-01-01T00:00:00.000Z",
        }

    def _json(self, told: dict[str, Any]) -> tuple[int, bytes, str]:
        return 200, json.dumps(told).encode(), "application/json"

    def _fault(self, status: int, reason: str) -> tuple[int, bytes, str]:
        fault = {"code": status, "message": reason, "errors": [{"reason": reason}]}
        return status, json.dumps({"error": fault}).encode(), "application/json"


def serve(folder: Path) -> None:
    store = _Store(folder)

    class Answering(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            status, body, kind = store.answer(self.path, self.headers.get("Range"))
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Answering)
    print(server.server_address[1], flush=True)  # noqa: T201 - the test waits for it
    server.serve_forever()


if __name__ == "__main__":
    serve(Path(sys.argv[1]))
