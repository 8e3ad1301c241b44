"""The examples as files: documented, and pinned without naming a place to fetch from."""

from __future__ import annotations

import json
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
FILES = [
    path.relative_to(EXAMPLES).as_posix()
    for path in EXAMPLES.rglob("*")
    if path.suffix in (".py", ".mjs", ".sh")
    and not {"node_modules", "extensions"}.intersection(path.parts)
]


def test_every_example_is_shown_in_the_docs() -> None:
    written = (ROOT / "docs" / "agents.md").read_text("utf-8")
    assert len(FILES) == 7
    for name in FILES:
        assert f"(../examples/{name})" in written


def test_every_example_takes_its_addresses_and_its_model_from_the_environment() -> None:
    for name in FILES:
        text = (EXAMPLES / name).read_text("utf-8")
        assert "EVENHAND_URL" in text
        assert "EVENHAND_TOKEN" in text
        assert ("agent" in name) == ("AGENT_MODEL" in text)
        assert not re.search(r"api_key *=|apiKey *:|sk-", text)


def test_packages_are_exact_and_say_no_address_of_a_registry() -> None:
    package = json.loads((EXAMPLES / "vercel-ai-sdk/package.json").read_text("utf-8"))
    for version in package["dependencies"].values():
        assert re.fullmatch(r"\d+\.\d+\.\d+", version)
    lock = json.loads((EXAMPLES / "vercel-ai-sdk/package-lock.json").read_text("utf-8"))
    for name, entry in lock["packages"].items():
        assert "resolved" not in entry
        assert not name or entry["integrity"].startswith("sha512-")
    assert lock["packages"][""]["dependencies"] == package["dependencies"]
