"""What a run is made of, as `evenhand runs show` prints it; its JSON has all of it."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from typing import TYPE_CHECKING

from evenhand.present.terminal import one_line, show_facts

if TYPE_CHECKING:
    from rich.console import Console

    from evenhand.report.manifest import Manifest

_DECIDE_FIGURES = ("numpy", "scipy", "pydantic", "genai-prices")
_DIGITS = 12


def show_manifest(console: Console, manifest: Manifest) -> None:
    from rich.text import Text

    console.print()
    console.print(Text("manifest", "bold"))
    show_facts(console, _manifest_facts(manifest), indent="  ", width=10)
    if manifest.command is not None:
        # On a line of its own, whatever the width: a wrapped command cannot be pasted.
        console.print(Text("  again"))
        console.print(Text(one_line(shlex.join(manifest.command))), soft_wrap=True)


def _manifest_facts(manifest: Manifest) -> Iterator[tuple[str, str]]:
    for each in manifest.environments:
        packages = each.get("packages") or {}
        shown = [f"{name} {packages[name]}" for name in _DECIDE_FIGURES if name in packages]
        ours = f"evenhand {each.get('evenhand')}, Python {each.get('python')}, "
        yield "versions", one_line(f"{ours}{each.get('platform')}; {', '.join(shown)}")
    for judge in manifest.judges:
        served = ", ".join(judge.served_models) or "unnamed"
        prompt = f"; prompt {judge.prompt}" if judge.prompt else ""
        yield "judge", one_line(f"{judge.judge}; served model {served}{prompt}")
    data = manifest.data
    files = zip(data.sources, data.sha256, strict=False)
    shown = [f"{name} {digest[:_DIGITS]}…" for name, digest in files]
    yield "data", one_line(", ".join(shown) or "unknown")
    yield "run", manifest.fingerprint
