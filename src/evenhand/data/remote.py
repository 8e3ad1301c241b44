"""Data in object stores: URLs, reads that survive lost connections, and errors in one line with the
remedy.
"""

from __future__ import annotations

import hashlib
import io
import logging
import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO, TypeVar, cast
from urllib.parse import unquote

from evenhand.data.source import REMOTE_READ_AHEAD, Source
from evenhand.errors import DataError, DataUnreachable, MissingExtra
from evenhand.formats import endings

T = TypeVar("T")

_ENVIRONMENT = {
    "s3": "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE",
    "gs": "GOOGLE_APPLICATION_CREDENTIALS",
    "gcs": "GOOGLE_APPLICATION_CREDENTIALS",
}
# Of an S3 error to HEAD only the status is known: keys that do not exist get a 400 or a 403.
_DENIED = re.compile(
    r"PermissionError|Forbidden|Bad Request|Unauthorized|[Cc]redential|\b40[13]$|ProfileNotFound"
)
_NO_BUCKET = re.compile(r"[Bb]ucket does not exist")
_ID_OF_REQUEST = re.compile(r"^\[Errno \d+\] |\s*\([Rr]equest ID[^)]*\)")
_LONGEST = 200


def data_error(name: str, error: Exception) -> DataError:
    """What a file system raised, of whatever kind; `name` is a URL without secrets."""
    text = f"{type(error).__name__} {_fact(error)}"
    if _NO_BUCKET.search(text):
        return DataError.of("data.bucket_unknown", name=name)
    if isinstance(error, FileNotFoundError):
        return DataError.of("data.remote_file_missing", name=name)
    if _DENIED.search(text):
        where = _ENVIRONMENT.get(name.partition("://")[0], "")
        values = {"name": name, "error": _fact(error), "where": where}
        return DataError.of("data.remote_forbidden", **values)
    if isinstance(error, ValueError | NotImplementedError):
        return DataError.of("data.url_not_opened", name=name, error=_fact(error))
    return DataUnreachable.of("data.remote_unreachable", name=name, error=_fact(error))


def _fact(error: Exception) -> str:
    text = _ID_OF_REQUEST.sub("", " ".join(str(error).split()))
    return text[:_LONGEST].rstrip(" .") or type(error).__name__


# The store's own client has retried before each of these.
_WAITS_S = (0.25, 1.0, 4.0)


def _ask(name: str, question: Callable[[], T], waits_s: tuple[float, ...] = ()) -> T:
    for wait_s in (*waits_s, None):
        try:
            return question()
        except DataError:
            raise
        except Exception as error:  # botocore's, aiohttp's and gcsfs's errors share no other root
            failure = data_error(name, error)
        if wait_s is None or not isinstance(failure, DataUnreachable):
            raise failure
        time.sleep(wait_s)
    raise AssertionError("the last try returns or raises")


class RemoteObject:
    """An object in the version that the store listed; a later one is refused."""

    def __init__(self, filesystem: Any, info: dict[str, Any], *, name: str) -> None:
        self._filesystem = filesystem
        self._path = info["name"]
        self._stamp = _stamp_of(info)
        self.size = int(info["size"])
        self.name = name

    def open(self) -> BinaryIO:
        return cast("BinaryIO", io.BufferedReader(self.open_anywhere(), REMOTE_READ_AHEAD))

    def open_anywhere(self) -> RemoteFile:
        """Without a buffer, for whoever jumps and has one of its own."""
        info = _ask(self.name, lambda: self._filesystem.info(self._path), _WAITS_S)
        if _stamp_of(info) != self._stamp:
            raise DataError.of("data.file_changed", name=self.name)
        return RemoteFile(self)

    def digest(self) -> str:
        """From the name, the size and the version that the store keeps: nothing is downloaded."""
        return hashlib.sha256(f"{self.name}\n{self._stamp}".encode()).hexdigest()

    def read(self, at: int, size: int) -> bytes:
        """A read that fails is tried again, on a new connection."""

        def read() -> bytes:
            block = bytes(self._filesystem.cat_file(self._path, start=at, end=at + size))
            if len(block) != size:
                raise OSError(f"{len(block):,} of {size:,} bytes came")
            return block

        return _ask(self.name, read, _WAITS_S)


def _stamp_of(info: dict[str, Any]) -> str:
    tag = info.get("ETag") or info.get("etag")
    if tag:
        return f"{info['size']} etag {tag}"
    # A listing is more exact than an answer about one object.
    return f"{info['size']} time {int(info['LastModified'].timestamp())}"


class RemoteFile(io.RawIOBase):
    def __init__(self, content: RemoteObject) -> None:
        self._content = content
        self._at = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._content.size}[whence]
        self._at = max(0, start + offset)
        return self._at

    def readinto(self, buffer: Any) -> int:
        wanted = min(len(buffer), self._content.size - self._at)
        if wanted <= 0:
            return 0
        buffer[:wanted] = self._content.read(self._at, wanted)
        self._at += wanted
        return wanted


# gcsfs's own choice would ask Google over gRPC what kind of bucket each is.
_GCS = ("gcsfs", "gcsfs.core", "GCSFileSystem")
_FILE_SYSTEMS = {"s3": ("s3fs", "s3fs", "S3FileSystem"), "gs": _GCS, "gcs": _GCS}
_SCHEMES = (*_FILE_SYSTEMS, "file")
_KNOWN = "s3://, gs:// and file://"
_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+)://")
# pathlib.Path collapses the two slashes.
_AS_PATH = re.compile(rf"({'|'.join(_SCHEMES)}):/(?=[^/])")


@dataclass(frozen=True, slots=True)
class _Url:
    """`place` is the bucket; `key` is unescaped."""

    scheme: str
    place: str
    key: str

    @property
    def name(self) -> str:
        """What messages and the store call it."""
        return f"{self.scheme}://{self.place}/{self.key}"


def url_in(given: Path | str) -> str | None:
    """The URL, or None for a local file."""
    text = str(given)
    if _URL.match(text):
        return text
    match = _AS_PATH.match(text) if isinstance(given, Path) else None
    if match:
        slashes = ":///" if match[1] == "file" else "://"
        return f"{match[1]}{slashes}{text[match.end() :]}"
    return None


def open_url(given: str) -> Source:
    """One object, or everything in a folder or matching a pattern, sorted by name."""
    url = _read(given)
    return _of_files(url) if url.scheme == "file" else _of_objects(url)


def _read(given: str) -> _Url:
    match = _URL.match(given)
    scheme = match[1].lower() if match else ""
    rest, _, query = given[match.end() if match else 0 :].partition("?")
    place, _, key = rest.partition("/")
    if scheme not in _SCHEMES:
        shown = f"{scheme}://{place.rpartition('@')[2]}"
        raise DataError.of("data.url_unsupported", shown=shown, known=_KNOWN)
    _, at, host = place.rpartition("@")
    if at:
        raise DataError.of("data.url_with_key", scheme=scheme, host=host, key=key)
    if query and scheme != "file":
        raise DataError.of("data.url_with_options", name=f"{scheme}://{place}/{key}")
    if not place and scheme != "file":
        raise DataError.of("data.url_without_bucket", scheme=scheme)
    # Files have URLs with escapes everywhere; keys of objects have none in any store's own tools.
    return _Url(scheme, place, unquote(key) if scheme == "file" else key.lstrip("/"))


def _of_files(url: _Url) -> Source:
    """Local files, identified by their content as without a URL."""
    if url.place not in ("", "localhost"):
        raise DataError.of("data.file_on_another_machine", name=url.name)
    path = Path("/", url.key)
    if "*" not in url.key and not path.is_dir():
        return Source(path, url.name)
    base = _base_of(url.key)
    paths = [
        each.relative_to("/").as_posix() for each in Path("/", base).rglob("*") if each.is_file()
    ]
    keys = _chosen(url, paths)
    parts = tuple(Source(Path("/", key), f"file:///{key}") for key in keys)
    return _one_or_many(url, parts)


def _of_objects(url: _Url) -> Source:
    filesystem = _file_system(url.scheme)
    prefix = f"{url.place}/"

    def part(key: str, info: dict[str, Any]) -> Source:
        name = f"{url.scheme}://{prefix}{key}"
        return Source(Path(key), name, content=RemoteObject(filesystem, info, name=name))

    def listed(under: str, *, deep: bool) -> dict[str, Any]:
        path = f"{prefix}{under}".rstrip("/")
        found = (
            filesystem.find(path, detail=True).values()
            if deep
            else filesystem.ls(path, detail=True)
        )
        return {each["name"].removeprefix(prefix): each for each in found if each["type"] == "file"}

    if "*" in url.key:
        base = _base_of(url.key)
        deep = "/" in url.key[len(base) :].lstrip("/") or "**" in url.key
        objects = _ask(url.name, lambda: listed(base, deep=deep))
    else:
        info = _ask(url.name, lambda: filesystem.info(f"{prefix}{url.key}".rstrip("/")))
        if info["type"] == "file":
            return part(url.key, info)
        objects = _ask(url.name, lambda: listed(url.key, deep=True))
    parts = tuple(part(key, objects[key]) for key in _chosen(url, list(objects)))
    return _one_or_many(url, parts)


def _one_or_many(url: _Url, parts: tuple[Source, ...]) -> Source:
    if not parts:
        how = "no object matches" if "*" in url.key else "no data in the folder"
        raise DataError.of(
            "data.file_not_found", how=how, name=url.name, data_endings=", ".join(endings())
        )
    return Source(Path(url.key), url.name, parts=parts)


def _chosen(url: _Url, keys: list[str]) -> list[str]:
    """The objects that match a pattern, or the data files of a folder, except names that start with
    _ or ., which mark a writer's own files."""
    if "*" in url.key:
        fits = _pattern(url.key)
        return sorted(key for key in keys if fits(key))
    base = url.key.rstrip("/")
    return sorted(
        key
        for key in keys
        if not any(step.startswith(("_", ".")) for step in key[len(base) :].split("/"))
        and PurePosixPath(key.lower().removesuffix(".gz")).suffix in endings()
    )


def _pattern(wanted: str) -> Callable[[str], bool]:
    """`*` matches within a name, `**` any number of folders; neither matches a name that starts
    with _ or . unless written out."""
    steps = []
    for step in wanted.split("/"):
        if step == "**":
            steps.append(r"(?:(?![_.])[^/]+/)*")
        else:
            hidden = "(?![_.])" if step.startswith("*") else ""
            steps.append(hidden + re.escape(step).replace(r"\*", "[^/]*") + "/")
    pattern = re.compile("".join(steps))
    return lambda key: pattern.fullmatch(f"{key}/") is not None


def _base_of(key: str) -> str:
    """The folder above the first star."""
    steps = key.split("/")
    starred = next((n for n, step in enumerate(steps) if "*" in step), len(steps))
    return "/".join(steps[:starred])


def _file_system(scheme: str) -> Any:
    package, module, kind = _FILE_SYSTEMS[scheme]
    try:
        made = getattr(import_module(module), kind)
    except ImportError:
        raise MissingExtra(f"{package}, which reads data from {scheme}://,", "remote") from None
    # It would log what is reported here, with a traceback.
    logging.getLogger(package).addHandler(logging.NullHandler())
    options = {"session_kwargs": {"trust_env": True}} if package == "gcsfs" else {}
    return made(skip_instance_cache=True, use_listings_cache=False, **options)
