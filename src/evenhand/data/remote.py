"""Data in object stores, by URL: what a URL means, objects read in place through cut connections,
and the stores' errors in one line with the remedy.
"""

from __future__ import annotations

import hashlib
import io
import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO, cast
from urllib.parse import unquote

from evenhand.data.source import REMOTE_READ_AHEAD, Source
from evenhand.errors import DataError, DataUnreachable, MissingExtra
from evenhand.formats import endings
from evenhand.messages import Message

_ENVIRONMENT = {
    "s3": "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE",
    "gs": "GOOGLE_APPLICATION_CREDENTIALS",
    "gcs": "GOOGLE_APPLICATION_CREDENTIALS",
}
_DENIED = re.compile(
    r"ACCESS_DENIED|AccessDenied|INVALID_ACCESS_KEY|InvalidAccessKeyId|SIGNATURE_DOES_NOT_MATCH|"
    r"SignatureDoesNotMatch|INVALID_SIGNATURE|UNRECOGNIZED_CLIENT|ExpiredToken|TokenRefresh|"
    r"HTTP response code: (?:400|401|403)|PERMISSION_DENIED|UNAUTHENTICATED|[Cc]redential"
)
_NO_BUCKET = re.compile(r"NO_SUCH_BUCKET|NoSuchBucket|[Bb]ucket '?[^ ']*'? not found")
_ABSENT = re.compile(r"NO_SUCH_KEY|NoSuchKey|Path does not exist|RESOURCE_NOT_FOUND")
# Ids of requests help only the store's owner; a detail after a semicolon repeats the fact.
_NOISE = re.compile(
    r"^\[Errno \d+\] |\s*\((?:Request ID|request id)[^)]*\)|"
    r"; Details:.*|\. Detail:.*| error_info=.*"
)
_LONGEST = 200


@contextmanager
def reporting_faults(name: str) -> Iterator[None]:
    """Turn what a file system raises into a DataError; `name` is a URL without secrets."""
    faults = _kinds()
    try:
        yield
    except faults as error:
        raise data_error(name, error) from None


def data_error(name: str, error: Exception) -> DataError:
    text = " ".join(str(error).split())
    scheme = name.partition("://")[0]
    if _DENIED.search(text):
        values = {"name": name, "error": fact(error), "where": _ENVIRONMENT.get(scheme, "")}
        return DataError(Message("data.remote_forbidden", **values))
    if _NO_BUCKET.search(text):
        return DataError(Message("data.bucket_unknown", name=name))
    if isinstance(error, FileNotFoundError) or _ABSENT.search(text):
        return DataError(Message("data.remote_file_missing", name=name))
    if isinstance(error, ValueError | NotImplementedError):
        return DataError(Message("data.url_not_opened", name=name, error=fact(error)))
    return DataUnreachable(Message("data.remote_unreachable", name=name, error=fact(error)))


def is_final(error: Exception) -> bool:
    """Whether asking again would bring the same."""
    return not isinstance(data_error("", error), DataUnreachable)


def fact(error: Exception) -> str:
    text = _NOISE.sub("", " ".join(str(error).split()))
    return text[:_LONGEST].rstrip(" .")


def _kinds() -> tuple[type[Exception], ...]:
    try:
        arrow: type[Exception] = import_module("pyarrow").ArrowException
    except ImportError:
        return (OSError, ValueError)
    return (OSError, ValueError, arrow)


# The store's own client has tried several times before each of these.
_WAITS_S = (0.25, 1.0, 4.0)


class RemoteObject:
    """An object, and the stamp by which a change of it is noticed."""

    def __init__(self, filesystem: Any, path: str, *, name: str) -> None:
        self._filesystem = filesystem
        self._path = path
        self._stamp: str | None = None
        self.name = name

    def open(self) -> BinaryIO:
        return cast("BinaryIO", io.BufferedReader(RemoteFile(self), REMOTE_READ_AHEAD))

    def open_anywhere(self) -> RemoteFile:
        """Without a buffer, for whoever jumps and has one of its own."""
        return RemoteFile(self)

    def digest(self) -> str:
        """From the name, the size and the version that the store keeps: nothing is downloaded."""
        if self._stamp is None:
            try:
                self.connect().close()
            except DataError:
                raise
            except Exception as error:  # each file system raises its own kinds
                raise data_error(self.name, error) from None
        return hashlib.sha256(f"{self.name}\n{self._stamp}".encode()).hexdigest()

    def connect(self) -> Any:
        """The object as the file system opens it; one that has changed is not opened again."""
        native = self._filesystem.open_input_file(self._path)
        stamp = self._stamp_of(native)
        if self._stamp is None:
            self._stamp = stamp
        elif stamp != self._stamp:
            native.close()
            raise DataError(Message("data.file_changed", name=self.name))
        return native

    def _stamp_of(self, native: Any) -> str:
        told_by_store = {
            str(key).lower(): value for key, value in (native.metadata() or {}).items()
        }
        tag = told_by_store.get("etag")
        if tag:
            return f"{native.size()} etag {bytes(tag).decode('utf-8', 'replace')}"
        info = self._filesystem.get_file_info(self._path)
        return f"{native.size()} time {info.mtime_ns}"


class RemoteFile(io.RawIOBase):
    """A read that fails is tried again from where it was, on a new connection."""

    def __init__(self, content: RemoteObject) -> None:
        self._content = content
        self._native: Any = None
        self._size: int | None = None
        self._at = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def size(self) -> int:
        if self._size is None:
            self._again(lambda native: native.size())
        return self._size or 0

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._at}.get(whence)
        self._at = max(0, offset + (self.size() if start is None else start))
        return self._at

    def readinto(self, buffer: Any) -> int:
        wanted = min(len(buffer), self.size() - self._at)
        if wanted <= 0:
            return 0
        at = self._at

        def read(native: Any) -> bytes:
            block = bytes(native.read_at(wanted, at))
            if len(block) < wanted:
                raise OSError(f"{len(block):,} of {wanted:,} bytes came")
            return block

        buffer[:wanted] = self._again(read)
        self._at += wanted
        return wanted

    def close(self) -> None:
        self._let_go()
        super().close()

    def _again(self, work: Any) -> Any:
        for wait_s in (*_WAITS_S, None):
            try:
                if self._native is None:
                    self._native = self._content.connect()
                    self._size = self._native.size()
                return work(self._native)
            except DataError:
                raise
            except Exception as error:  # each file system raises its own kinds
                self._let_go()
                if wait_s is None or is_final(error):
                    raise data_error(self._content.name, error) from None
            time.sleep(wait_s)
        raise AssertionError("the last try returns or raises")

    def _let_go(self) -> None:
        native, self._native = self._native, None
        if native is not None:
            native.close()


_SCHEMES = ("s3", "gs", "gcs", "file")
_KNOWN = "s3://, gs:// and file://"
_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+)://")
# A pathlib.Path makes one slash of two.
_AS_PATH = re.compile(rf"({'|'.join(_SCHEMES)}):/(?=[^/])")


@dataclass(frozen=True, slots=True)
class _Url:
    """`place` is the bucket; `key` is taken as it is written, without escapes."""

    scheme: str
    place: str
    key: str
    query: str

    @property
    def name(self) -> str:
        """What messages and the store call it: the query may hold what is nobody's business."""
        return f"{self.scheme}://{self.place}/{self.key}"

    @property
    def root(self) -> str:
        return f"{self.scheme}://{self.place}" + (f"?{self.query}" if self.query else "")


def url_in(given: Path | str) -> str | None:
    """The URL that is meant, or None where a file of this machine is."""
    text = str(given)
    if _URL.match(text):
        return text
    match = _AS_PATH.match(text) if isinstance(given, Path) else None
    if match:
        slashes = ":///" if match[1] == "file" else "://"
        return f"{match[1]}{slashes}{text[match.end() :]}"
    return None


def open_url(given: str) -> Source:
    """One object, or all that a folder or a pattern means, in the order of their names."""
    url = _read(given)
    if url.scheme == "file":
        return _of_files(url)
    with reporting_faults(url.name):
        return _of_objects(url)


def _read(given: str) -> _Url:
    match = _URL.match(given)
    scheme = match[1].lower() if match else ""
    rest, _, query = given[match.end() if match else 0 :].partition("?")
    place, _, key = rest.partition("/")
    if scheme not in _SCHEMES:
        shown = f"{scheme}://{place.rpartition('@')[2]}"
        raise DataError(Message("data.url_unsupported", shown=shown, known=_KNOWN))
    user, at, host = place.rpartition("@")
    if at and (":" in user or scheme == "s3"):
        raise DataError(Message("data.url_with_key", scheme=scheme, host=host, key=key))
    if not place and scheme != "file":
        raise DataError(Message("data.url_without_bucket", scheme=scheme))
    # Files have URLs with escapes everywhere; keys of objects have none in any store's own tools.
    return _Url(scheme, place, unquote(key) if scheme == "file" else key.lstrip("/"), query)


def _of_files(url: _Url) -> Source:
    """Files of this machine: their content is their identity, as it is without a URL."""
    if url.place not in ("", "localhost"):
        raise DataError(Message("data.file_on_another_machine", name=url.name))
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
    fs = _file_systems()
    filesystem, root = fs.FileSystem.from_uri(url.root)
    prefix = f"{root.rstrip('/')}/"

    def part(info: Any) -> Source:
        key = info.path.removeprefix(prefix)
        name = f"{url.scheme}://{url.place}/{key.lstrip('/')}"
        content = RemoteObject(filesystem, info.path, name=name)
        return Source(Path(key), name, content=content)

    def listed(under: str, *, deep: bool) -> dict[str, Any]:
        chosen = fs.FileSelector(f"{prefix}{under}".rstrip("/"), recursive=deep)
        infos = [each for each in filesystem.get_file_info(chosen) if each.is_file]
        return {each.path.removeprefix(prefix).lstrip("/"): each for each in infos}

    if "*" in url.key:
        base = _base_of(url.key)
        deep = "/" in url.key[len(base) :].lstrip("/") or "**" in url.key
        objects = listed(base, deep=deep)
    else:
        info = filesystem.get_file_info(f"{prefix}{url.key}".rstrip("/"))
        if info.type == fs.FileType.NotFound:
            raise DataError(Message("data.remote_file_missing", name=url.name))
        if info.is_file:
            return part(info)
        objects = listed(url.key, deep=True)
    return _one_or_many(url, tuple(part(objects[key]) for key in _chosen(url, list(objects))))


def _one_or_many(url: _Url, parts: tuple[Source, ...]) -> Source:
    if not parts:
        how = "no object matches" if "*" in url.key else "no data in the folder"
        raise DataError(
            Message(
                "data.file_not_found",
                how=how,
                name=url.name,
                data_endings=", ".join(endings()),
            )
        )
    return Source(Path(url.key), url.name, parts=parts)


def _chosen(url: _Url, keys: list[str]) -> list[str]:
    """A pattern takes what it says; a folder what is data. Names that begin with _ or . are the
    marks of whoever wrote the folder."""
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
    """`*` is anything within a name, `**` any folders in between, also none. Neither takes a name
    that begins with _ or . where the pattern does not say so."""
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


def _file_systems() -> Any:
    try:
        return import_module("pyarrow.fs")
    except ImportError:
        raise MissingExtra("pyarrow, which reads data by URL,", "parquet") from None
