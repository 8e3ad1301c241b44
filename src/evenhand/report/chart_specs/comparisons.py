"""What to call a comparison: as much of its models and its judge as tells it from the others."""

from __future__ import annotations

from collections.abc import Sequence

from evenhand.report.chart_specs.labels import distinct, shortened
from evenhand.report.chart_specs.words import ENGLISH, ChartWords
from evenhand.report.conclusions import Conclusion

_NAME_COLUMNS = 24


def subject(found: Sequence[Conclusion], say: ChartWords = ENGLISH) -> str:
    """Who is compared, where it is the same two in every comparison; else nothing."""
    sides = {(each.model, each.against, each.side) for each in found}
    return _sides(found[0], say) if len(sides) == 1 else ""


def name_comparisons(found: Sequence[Conclusion], say: ChartWords = ENGLISH) -> list[str]:
    """One name for each, no two alike."""
    judges = {each.judge for each in found}
    one_subject = bool(subject(found))
    names = []
    for each in found:
        judge = shortened(each.judge, _NAME_COLUMNS)
        if one_subject:
            names.append(judge)
        elif len(judges) == 1:
            names.append(_sides(each, say))
        else:
            names.append(say("by_judge", sides=_sides(each, say), judge=judge))
    return distinct(names, 3 * _NAME_COLUMNS)


def _sides(each: Conclusion, say: ChartWords) -> str:
    own, against = each.names
    return say(
        "against", own=shortened(own, _NAME_COLUMNS), other=shortened(against, _NAME_COLUMNS)
    )
