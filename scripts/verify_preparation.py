"""What preparation was worth to the five judges of LLMBar, by `evenhand audit --try-prepare`.

    python -m scripts.verify_preparation [DATA_DIR]

The answers are recorded: this checks how they are read, kept and counted. The judges were asked
with their authors' prompts, so that it says nothing of ours.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
DATA = ROOT.parent / "shared" / "data"
JUDGES = ("GPT-4", "ChatGPT", "LLaMA2", "PaLM2", "Falcon")
CHOICES = {
    "metrics": "Metrics",
    "reference": "Reference",
    "metrics,reference": "Metrics_Reference",
}
SUBSETS = ("natural", "neighbor", "gptinst")


def tried(data: Path, judge: str, pairs: Path, folder: Path) -> dict[str, Any]:
    def recorded(procedure: str) -> str:
        return f"replay:{data / 'procedures' / f'llmbar__{judge}__{procedure}.jsonl.gz'}"

    command = [sys.executable, "-m", "evenhand", "audit", str(pairs), "-c", "instruction following"]
    command += ["--judge", recorded("Vanilla"), "--try-prepare", "--json"]
    for kinds, procedure in CHOICES.items():
        command += ["--choice", f"{kinds}={recorded(procedure)}"]
    command += ["--store", str(folder / "runs.db")]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=300)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def pairs_of(data: Path, folder: Path, subset: str | None) -> Path:
    path = folder / f"{subset or 'all'}.jsonl"
    subsets = SUBSETS if subset is None else (subset,)
    path.write_bytes(b"".join((data / "pairs" / f"llmbar_{s}.jsonl").read_bytes() for s in subsets))
    return path


def points(gain: dict[str, Any]) -> str:
    value, low, high = (100 * gain[name] for name in ("value", "low", "high"))
    return f"{value:+.1f} ({low:+.1f} to {high:+.1f})"


def main(arguments: list[str]) -> int:
    data = Path(arguments[0]) if arguments else DATA
    if not (data / "procedures").is_dir():
        print(f"no recorded procedures in {data}; give the data folder as the argument")
        return 0
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        for subset in (None, *SUBSETS):
            pairs = pairs_of(data, folder, subset)
            print(f"\n{subset or 'all'}")
            print(
                "| judge | prepare | gain, points | right | mended | harmed | calls | recommended |"
            )
            print("|---|---|---|---|---|---|---|---|")
            for judge in JUDGES:
                found = tried(data, judge, pairs, folder)
                recommended = ",".join(found["recommended"] or ["none"])
                for each in found["tried"][1:]:
                    cells = (
                        *(judge, ",".join(each["prepare"]), points(each["gain"])),
                        points(each["rightGain"]),
                        *(each["mended"]["part"], each["harmed"]["part"]),
                        *(f"{each['callsAPair']:.1f}", recommended),
                    )
                    print("| " + " | ".join(map(str, cells)) + " |")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
