"""How this evenhand was installed: which command adds an extra to it, and the versions of what it
stands on.
"""

from __future__ import annotations

import json
import os
import platform
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

_NAME = "evenhand"
_REQUIREMENT = re.compile(r"([A-Za-z0-9._-]+)\s*(?:\[([^\]]*)\])?")
_VERSION = re.compile(r"^Version:\s*(\S+)", re.MULTILINE)
_EXTRA = re.compile(r"extra\s*==\s*['\"]([^'\"]+)['\"]")
_PLATFORM = re.compile(r"sys_platform\s*([!=]=)\s*['\"]([^'\"]+)['\"]")
# What `pip install` is for each of those who install packages into an environment of their own
# making; each of them leaves a file there.
_TOOLS = (("uv-receipt.toml", "uv tool install"), ("pipx_metadata.json", "pipx install --force"))


@dataclass(frozen=True, slots=True)
class Extra:
    """An optional group of dependencies: the version of each, None where it is not installed."""

    name: str
    versions: dict[str, str | None]

    @property
    def installed(self) -> bool:
        return None not in self.versions.values()


def extras() -> Iterator[Extra]:
    """Every extra, but for the one that is all the others together."""
    there = _distribution()
    if there is None:
        return
    for name in sorted(there.metadata.get_all("Provides-Extra") or ()):
        if name != "all":
            yield Extra(name, {each: _version(each) for each in _packages(there, name)})


def version() -> str:
    there = _distribution()
    return there.version if there else ""


def environment() -> dict[str, Any]:
    """The versions of evenhand, of Python and of every package that evenhand stands on."""
    there = _distribution()
    named = {
        found[1]
        for requirement in (there.requires if there else None) or ()
        if (found := _REQUIREMENT.match(requirement)) and found[1] != _NAME
    }
    versions = {package: _version(package) for package in sorted(named)}
    return {
        "evenhand": version() or None,
        "python": platform.python_version(),
        "platform": f"{sys.platform}-{platform.machine()}",
        "packages": {package: each for package, each in versions.items() if each is not None},
    }


def install_command(extra: str) -> str:
    """What adds the extra to this installation, where and as it was installed."""
    there = _distribution()
    for file, command in _TOOLS:
        if (Path(sys.prefix) / file).is_file():
            # A tool's environment is made anew: name what it has as well.
            kept = {each.name for each in extras() if each.installed and each.versions}
            return f"{command} {_quoted(there, ','.join(sorted({*kept, extra})))}"
    return f"{_pip(there)} {_quoted(there, extra)}"


def pip_command(*requirements: str) -> str:
    """What installs packages beside this installation."""
    named = " ".join(f"'{each}'" for each in requirements)
    if (Path(sys.prefix) / _TOOLS[0][0]).is_file():
        return f"uv pip install --python {_shell(sys.executable)} {named}"
    if (Path(sys.prefix) / _TOOLS[1][0]).is_file():
        return f"pipx inject {_NAME} {named}"
    return f"{_pip(_distribution())} {named}"


def _pip(there: Distribution | None) -> str:
    # A shell whose `pip` may be that of another environment is told which one is meant.
    own = sys.prefix == sys.base_prefix or _is_active(Path(sys.prefix))
    if there is not None and (there.read_text("INSTALLER") or "").strip() == "uv":
        return "uv pip install" if own else f"uv pip install --python {_shell(sys.executable)}"
    return "pip install" if own else f"{_shell(sys.executable)} -m pip install"


def _is_active(prefix: Path) -> bool:
    return any(
        Path(given).absolute() == prefix.absolute()
        for given in (os.environ.get("VIRTUAL_ENV"), os.environ.get("CONDA_PREFIX"))
        if given
    )


def _quoted(there: Distribution | None, extra: str) -> str:
    """The requirement as a shell takes it: an index's package, a checkout, a wheel, a repository"""
    named = f"{_NAME}[{extra}]"
    raw = there.read_text("direct_url.json") if there else None
    if not raw:
        return f"'{named}'"
    origin = json.loads(raw)
    url = str(origin["url"])
    if origin.get("dir_info", {}).get("editable"):
        return f"-e '{unquote(urlsplit(url).path)}[{extra}]'"
    if "vcs_info" in origin:
        url = f"{origin['vcs_info']['vcs']}+{url}@{origin['vcs_info']['commit_id']}"
    return f"'{named} @ {url}'"


def _shell(path: str) -> str:
    return path if re.fullmatch(r"[\w./~+-]+", path) else f"'{path}'"


@cache
def _distribution() -> Distribution | None:
    try:
        return distribution(_NAME)
    except PackageNotFoundError:  # run from its source
        return None


def _packages(there: Distribution, extra: str) -> Iterator[str]:
    """The packages of an extra on this platform; extras of ours among them in their place."""
    for requirement in there.requires or ():
        text, _, marker = requirement.partition(";")
        named = _REQUIREMENT.match(text.strip())
        if named is None or extra not in _EXTRA.findall(marker) or not _is_here(marker):
            continue
        if named[1] == _NAME:
            for each in (named[2] or "").split(","):
                yield from _packages(there, each.strip())
        else:
            yield named[1]


def _is_here(marker: str) -> bool:
    wanted = _PLATFORM.search(marker)
    return wanted is None or (wanted[1] == "==") == (wanted[2] == sys.platform)


def _version(package: str) -> str | None:
    try:
        metadata = distribution(package).read_text("METADATA")
    except PackageNotFoundError:
        return None
    # `version` would parse the package's whole description, and a run asks for forty of them.
    named = _VERSION.search(metadata or "")
    return named[1] if named else None
