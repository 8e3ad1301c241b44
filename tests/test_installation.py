"""The command that adds an extra is the one of whoever installed evenhand."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from cases import each_case
from evenhand import installation
from evenhand.installation import Extra, extras, install_command, pip_command

METADATA = """Metadata-Version: 2.4
Name: evenhand
Version: 0.1.0
Provides-Extra: all
Provides-Extra: charts
Provides-Extra: both
Requires-Dist: rich
Requires-Dist: not-there-at-all>=2; extra == 'charts'
Requires-Dist: pytest[more]>=9; extra == 'charts'
Requires-Dist: nowhere; sys_platform == 'no-such-platform' and extra == 'charts'
Requires-Dist: evenhand[charts]; extra == 'both'
Requires-Dist: rich; (sys_platform != 'no-such-platform') and extra == "both"
"""
COMMIT = "0123456789abcdef0123456789abcdef01234567"


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An evenhand of its own, in an environment of its own: the folder of its metadata."""
    site = tmp_path / "env" / "site"
    folder = site / "evenhand-0.1.0.dist-info"
    folder.mkdir(parents=True)
    (folder / "METADATA").write_text(METADATA)
    (folder / "INSTALLER").write_text("pip\n")
    monkeypatch.syspath_prepend(str(site))
    monkeypatch.setattr(sys, "prefix", str(tmp_path / "env"))
    monkeypatch.setattr(sys, "executable", str(tmp_path / "env" / "bin" / "python"))
    monkeypatch.setenv("VIRTUAL_ENV", str(tmp_path / "env"))
    installation._distribution.cache_clear()
    yield folder
    installation._distribution.cache_clear()


def test_an_extra_is_its_packages_on_this_platform(installed: Path) -> None:
    both, charts = sorted(extras(), key=lambda extra: extra.name)
    assert charts.name == "charts"
    assert charts.versions == {"not-there-at-all": None, "pytest": pytest.__version__}
    assert both.versions.keys() == {"not-there-at-all", "pytest", "rich"}
    assert not charts.installed
    assert Extra("x", {"rich": "13"}).installed


@each_case(
    "origin",
    [
        (None, "'evenhand[parquet]'"),
        ({"url": "file:///a%20b/c", "dir_info": {"editable": True}}, "-e '/a b/c[parquet]'"),
        ({"url": "file:///a/c", "dir_info": {}}, "'evenhand[parquet] @ file:///a/c'"),
        (
            {"url": "https://x/e.git", "vcs_info": {"vcs": "git", "commit_id": COMMIT}},
            f"'evenhand[parquet] @ git+https://x/e.git@{COMMIT}'",
        ),
    ],
)
def test_it_is_installed_from_where_it_came(
    installed: Path, origin: tuple[dict[str, object] | None, str]
) -> None:
    given, requirement = origin
    (installed / "direct_url.json").unlink(missing_ok=True)
    if given is not None:
        (installed / "direct_url.json").write_text(json.dumps(given))
    assert install_command("parquet") == f"pip install {requirement}"


def test_another_environments_pip_is_not_meant(
    installed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("VIRTUAL_ENV")
    assert install_command("parquet") == f"{sys.executable} -m pip install 'evenhand[parquet]'"
    (installed / "INSTALLER").write_text("uv")
    assert pip_command("rich") == f"uv pip install --python {sys.executable} 'rich'"
    monkeypatch.setenv("VIRTUAL_ENV", sys.prefix)
    assert install_command("parquet") == "uv pip install 'evenhand[parquet]'"


@each_case(
    "tool",
    [
        ("uv-receipt.toml", "uv tool install", "uv pip install --python {python} 'rich'"),
        ("pipx_metadata.json", "pipx install --force", "pipx inject evenhand 'rich'"),
    ],
)
def test_a_tool_keeps_the_extras_that_it_has(installed: Path, tool: tuple[str, str, str]) -> None:
    file, command, beside = tool
    (installed / "METADATA").write_text(METADATA.replace("not-there-at-all", "rich"))
    installation._distribution.cache_clear()
    (Path(sys.prefix) / file).touch()
    try:
        assert install_command("serve") == f"{command} 'evenhand[both,charts,serve]'"
        assert pip_command("rich") == beside.format(python=sys.executable)
    finally:
        os.unlink(Path(sys.prefix) / file)
