"""What to call a comparison: as much of its models and its judge as tells it from the others."""

from __future__ import annotations

from collections.abc import Sequence

from evenhand.report.chart_specs.labels import distinct, shortened
from evenhand.report.conclusions import Conclusion

_NAME_COLUMNS = 24


def subject(found: Sequence[Conclusion]) -> str:
    """Who is compared, where it is the same two in every comparison; else nothing."""
    sides = {(each.model, each.against, each.side) for each in found}
    return _sides(found[0]) if len(sides) == 1 else ""


def name_comparisons(found: Sequence[Conclusion]) -> list[str]:
    """One name for each, no two alike."""
    judges = {each.judge for each in found}
    one_subject = bool(subject(found))
    names = []
    for each in found:
        judge = shortened(each.judge, _NAME_COLUMNS)
        if one_subject:
            names.append(judge)
        elif len(judges) == 1:
            names.append(_sides(each))
        else:
            names.append(f"{_sides(each)}, by {judge}")
    return distinct(names, 3 * _NAME_COLUMNS)


def _sides(each: Conclusion) -> str:
    own, against = each.names
    return f"{shortened(own, _NAME_COLUMNS)} against {shortened(against, _NAME_COLUMNS)}"
