"""The judges of a jury: how far they agree with each other, and what each adds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations

from evenhand.stats.agreement import agreement
from evenhand.stats.estimated_value import EstimatedValue
from evenhand.stats.jury_accuracy import LITTLE, JuryAccuracy
from evenhand.stats.outcomes import INCONSISTENT, INVALID, TIE
from evenhand.trust.biases import share_of
from evenhand.trust.jurors import NOT_JUDGED, Codes, Panel
from evenhand.trust.jury_report import JurorReport, JurorsAgree
from evenhand.trust.saved_juries import SavedJury

# Two judges that agree so far beyond chance are nearly one judge.
NEARLY_ONE = 0.9


def jurors_agree(panel: Panel, votes: Codes, level: float) -> Iterator[JurorsAgree]:
    for first, second in combinations(range(len(panel.titles)), 2):
        both = (votes[:, first] >= 0) & (votes[:, second] >= 0)
        found = agreement(
            votes[both, first], votes[both, second], prompts=panel.prompts[both], level=level
        )
        yield JurorsAgree(
            first=panel.titles[first],
            second=panel.titles[second],
            pairs=int(both.sum()),
            agreement=found.agreement,
            kappa=found.kappa,
        )


def report_jurors(
    panel: Panel,
    saved: SavedJury,
    outcomes: Codes,
    checked: JuryAccuracy,
    between: Sequence[JurorsAgree],
    level: float,
) -> Iterator[JurorReport]:
    decided = outcomes <= TIE
    jury, votes = saved.jury, panel.votes
    for place, title in enumerate(panel.titles):
        own = panel.outcomes[:, place]
        cast = votes[:, place]
        counted = decided & (cast >= 0)
        worth = checked.worth[place] if checked.worth else None
        redundant, finding = _redundant(title, worth, between)
        yield JurorReport(
            title=title,
            judge=panel.jurors[place],
            votes=int((cast >= 0).sum()),
            inconsistent=int((own == INCONSISTENT).sum()),
            invalid=int((own == INVALID).sum()),
            abstained=int(panel.abstained[:, place].sum()),
            not_judged=int((own == NOT_JUDGED).sum()),
            against=share_of(
                (cast != outcomes)[counted], panel.prompts[counted], level=level, unit="vote"
            ),
            weight=None if jury.weights is None else jury.weights[place],
            tie_weight=(
                None if jury.tie_weights is None or not jury.ties else jury.tie_weights[place]
            ),
            worth=worth,
            redundant=redundant,
            finding=finding,
        )


def _redundant(
    title: str, worth: EstimatedValue | None, between: Sequence[JurorsAgree]
) -> tuple[bool | None, str | None]:
    """By labels where there are enough; by its likeness to another judge where there are not."""
    copies = [
        each.second if each.first == title else each.first
        for each in between
        if title in (each.first, each.second)
        and each.kappa.low is not None
        and each.kappa.low > NEARLY_ONE
    ]
    alike = f"says nearly always what {copies[0]} says" if copies else None
    if worth is None or worth.value is None or worth.low is None or worth.high is None:
        return (True, alike) if alike else (None, None)
    if worth.high < LITTLE:
        return True, alike or "the jury does as well without it"
    if worth.low > 0:
        return False, "the jury does worse without it"
    return None, alike or "too few labels to tell what it adds"
