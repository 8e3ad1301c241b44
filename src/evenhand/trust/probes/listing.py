"""The probes as a list, for somebody who wants to know before asking."""

from __future__ import annotations

from collections.abc import Sequence

from evenhand.contract import Locale
from evenhand.contract.model import Model
from evenhand.trust.probes.cases import LANGUAGES, ProbeCase
from evenhand.trust.probes.catalogue import EXPECTED, PROBES, ProbeName


class ListedProbe(Model):
    probe: ProbeName
    shows: str
    expected: str
    pairs: int


class ProbeList(Model):
    probes: tuple[ListedProbe, ...]
    languages: tuple[Locale, ...]
    pairs: int


def list_probes(cases: Sequence[ProbeCase]) -> ProbeList:
    asked = [case.probe for case in cases]
    return ProbeList(
        probes=tuple(
            ListedProbe(
                probe=name,
                shows=probe.shows,
                expected=EXPECTED[probe.expects],
                pairs=asked.count(name),
            )
            for name, probe in PROBES.items()
            if name in asked
        ),
        languages=tuple(each for each in LANGUAGES if any(c.language == each for c in cases)),
        pairs=len(cases),
    )
