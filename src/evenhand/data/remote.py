"""Data in object stores, by URL: which objects a URL means, and what each of them is.

Nothing is copied: an object is read where it is, a piece at a time (`remote_file`).
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import unquote

from evenhand.data.remote_faults import fault_of
from evenhand.data.remote_file import RemoteObject
from evenhand.data.source import DATA_ENDINGS, Source
from evenhand.errors import DataError, MissingExtra

_SCHEMES = ("s3", "gs", "gcs", "abfs", "abfss", "hdfs", "viewfs", "file")
_KNOWN = "s3://, gs://, abfss://, hdfs:// and file://"
_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+)://")
# A pathlib.Path makes one slash of two.
_AS_PATH = re.compile(rf"({'|'.join(_SCHEMES)}):/(?=[^/])")
_WITH_BUCKETS = ("s3", "abfs", "abfss", "gs", "gcs")
_WITH_FOLDERS = ("hdfs", "viewfs")


@dataclass(frozen=True, slots=True)
class _Url:
    """`place` is the bucket, or the host; `key` is taken as it is written, without escapes."""

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
    with fault_of(url.name):
        return _of_objects(url)


def _read(given: str) -> _Url:
    match = _URL.match(given)
    scheme = match[1].lower() if match else ""
    rest, _, query = given[match.end() if match else 0 :].partition("?")
    place, _, key = rest.partition("/")
    if scheme not in _SCHEMES:
        shown = f"{scheme}://{place.rpartition('@')[2]}"
        raise DataError(
            f"data is not read from {shown}; give a file, or a URL of {_KNOWN} (what is on the "
            "web: download it first)"
        )
    user, at, host = place.rpartition("@")
    if at and (":" in user or scheme == "s3"):
        raise DataError(
            f"the URL {scheme}://{host}/{key} holds a key; leave it out and give it in the "
            "environment (docs/data.md says where)"
        )
    if not place and scheme in _WITH_BUCKETS:
        raise DataError(f"{scheme}:// names no bucket; give e.g. {scheme}://bucket/pairs.jsonl")
    # Files have URLs with escapes everywhere; keys of objects have none in any store's own tools.
    return _Url(scheme, place, unquote(key) if scheme == "file" else key.lstrip("/"), query)


def _of_files(url: _Url) -> Source:
    """Files of this machine: their content is their identity, as it is without a URL."""
    if url.place not in ("", "localhost"):
        raise DataError(f"{url.name} is on another machine; give file:///path for one of this")
    path = Path("/", url.key)
    if "*" not in url.key and not path.is_dir():
        return Source(path, url.name)
    base = _base_of(url.key)
    found = [
        each.relative_to("/").as_posix() for each in Path("/", base).rglob("*") if each.is_file()
    ]
    keys = _chosen(url, found)
    parts = tuple(Source(Path("/", key), f"file:///{key}") for key in keys)
    return _one_or_many(url, parts)


def _of_objects(url: _Url) -> Source:
    fs = _file_systems()
    filesystem, root = fs.FileSystem.from_uri(url.root)
    # A name without a slash before it would be looked for in somebody's home.
    prefix = f"{root.rstrip('/')}/" if root or url.scheme in _WITH_FOLDERS else ""

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
        found = listed(base, deep=deep)
    else:
        info = filesystem.get_file_info(f"{prefix}{url.key}".rstrip("/"))
        if info.type == fs.FileType.NotFound:
            raise DataError(f"{url.name} is not there; check the bucket and the name")
        if info.is_file:
            return part(info)
        found = listed(url.key, deep=True)
    return _one_or_many(url, tuple(part(found[key]) for key in _chosen(url, list(found))))


def _one_or_many(url: _Url, parts: tuple[Source, ...]) -> Source:
    if not parts:
        how = "no object matches" if "*" in url.key else "no data in the folder"
        raise DataError(
            f"{how} {url.name}; check the name (a folder's files are those that end in "
            f"{', '.join(DATA_ENDINGS)}, with or without .gz)"
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
        and PurePosixPath(key.lower().removesuffix(".gz")).suffix in DATA_ENDINGS
    )


def _pattern(wanted: str) -> Callable[[str], bool]:
    """`*` is anything within a name, `**` any folders in between, also none."""
    steps = wanted.split("/")

    def fits(names: list[str], at: int = 0) -> bool:
        if at == len(steps):
            return not names
        if steps[at] == "**":
            hidden = bool(names) and names[0].startswith(("_", "."))
            return fits(names, at + 1) or (bool(names) and not hidden and fits(names[1:], at))
        return bool(names) and _fits_name(names[0], steps[at]) and fits(names[1:], at + 1)

    return lambda key: fits(key.split("/"))


def _fits_name(name: str, step: str) -> bool:
    if "*" not in step:
        return name == step
    if step.startswith("*") and name.startswith(("_", ".")):
        return False
    # Of fnmatch only the star: a key may hold brackets, and ? begins the query of a URL.
    return fnmatch.fnmatchcase(name, step.replace("[", "[[]"))


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
