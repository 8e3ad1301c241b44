"""`evenhand run` as a user would type it, against the loopback server."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path

from benchmarks.answers import CRITERIA
from benchmarks.children import Ended
from benchmarks.generated_pairs import Planned

EVENHAND = (sys.executable, "-m", "evenhand")


@dataclass(frozen=True, slots=True)
class RunCommand:
    pairs: Path
    base_url: str
    store: Path
    concurrency: int
    more: tuple[str, ...] = ()
    name: str = "loopback"

    @property
    def words(self) -> list[str]:
        criteria = [word for criterion in CRITERIA for word in ("-c", criterion)]
        return [
            *EVENHAND, "run", str(self.pairs), *criteria,
            "--judge", "openai:bench", "--base-url", self.base_url,
            "--store", str(self.store), "--name", self.name,
            "--concurrency", str(self.concurrency), "--yes", "--json", *self.more,
        ]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Summary:
    """What `--json` printed, as far as it is used here."""

    pairs: int
    wins_a: int
    wins_b: int
    ties: int
    inconsistent: int
    invalid: int
    calls: int
    reused_passes: int
    seconds: float
    stopped_by: str | None

    @classmethod
    def of(cls, ended: Ended) -> Summary:
        told = json.loads(ended.out)
        return cls(
            pairs=told["pairs"],
            wins_a=told["winsA"],
            wins_b=told["winsB"],
            ties=told["ties"],
            inconsistent=told["inconsistent"],
            invalid=told["invalid"],
            calls=told["calls"],
            reused_passes=told["reusedPasses"],
            seconds=told["seconds"],
            stopped_by=told["stoppedBy"],
        )

    def differences(self, planned: Planned) -> list[str]:
        """Where a run that met no fault does not come out as it must."""
        expected = {
            "pairs": planned.pairs,
            "wins_a": planned.wins_a,
            "wins_b": planned.wins_b,
            "ties": planned.ties,
            "inconsistent": planned.inconsistent,
            "invalid": 0,
        }
        return [
            f"{name} is {getattr(self, name)} and must be {value}"
            for name, value in expected.items()
            if getattr(self, name) != value
        ]
