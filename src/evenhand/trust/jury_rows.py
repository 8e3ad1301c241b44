"""A jury's verdicts a line each, with every judge's vote: its disagreement is kept."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson

from evenhand.report.whole_file import written_whole
from evenhand.stats.outcomes import TIE
from evenhand.trust.jury import Sitting
from evenhand.trust.jury_vote import HUNG, NO_QUORUM

_WINNERS = ("A", "B", "TIE")
_OUTCOMES = {0: "win", 1: "win", TIE: "tie", HUNG: "hung", NO_QUORUM: "noQuorum"}
# Of one judge; -1, the last, where it has not judged the pair.
_JUDGED = ("win", "win", "tie", "inconsistent", "invalid", None)
_LINES_AT_ONCE = 10_000


def write_jury_rows(sitting: Sitting, path: Path, *, overwrite: bool = False) -> int:
    """JSON lines, as many as there are pairs."""
    count = 0
    with written_whole(path, overwrite=overwrite) as stream:
        lines: list[bytes] = []
        for row in jury_rows(sitting):
            lines.append(orjson.dumps(row))
            count += 1
            if len(lines) == _LINES_AT_ONCE:
                stream.write(b"\n".join(lines) + b"\n")
                lines.clear()
        if lines:
            stream.write(b"\n".join(lines) + b"\n")
    return count


def jury_rows(sitting: Sitting) -> Iterator[dict[str, Any]]:
    panel, verdicts = sitting.panel, sitting.verdicts
    jurors = [
        {"judge": own.judge, "promptVersion": own.prompt_version, "locale": own.locale}
        for own in panel.jurors
    ]
    chances = [None] * len(panel.items) if verdicts.chances is None else verdicts.chances.tolist()
    columns = zip(
        panel.items,
        sitting.outcomes.tolist(),
        verdicts.dissent.tolist(),
        verdicts.voters.tolist(),
        chances,
        panel.outcomes.tolist(),
        panel.votes.tolist(),
        panel.abstained.tolist(),
        panel.labels.tolist(),
        strict=True,
    )
    for item, outcome, dissent, voters, chance, judged, cast, unsure, label in columns:
        decided = outcome <= TIE
        yield {
            "id": item.key,
            "modelA": item.model_a,
            "modelB": item.model_b,
            "outcome": _OUTCOMES[outcome],
            "winner": _WINNERS[outcome] if decided else None,
            # That the verdict is right, as far as labels have taught it.
            "probability": chance[outcome] if decided and chance is not None else None,
            "chances": None
            if chance is None
            else dict(zip(("a", "b", "tie"), chance, strict=True)),
            "dissent": dissent if voters else None,
            "voters": voters,
            "votes": [
                {
                    **juror,
                    "vote": _WINNERS[vote] if vote >= 0 else None,
                    "outcome": _JUDGED[own],
                    "abstained": abstained,
                }
                for juror, own, vote, abstained in zip(jurors, judged, cast, unsure, strict=True)
            ],
            "label": _WINNERS[label] if label >= 0 else None,
        }
