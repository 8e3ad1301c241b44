"""Verdicts by the two models they are about, from columns written by hand."""

from __future__ import annotations

from array import array

from evenhand.contract.codes import INCONSISTENT, TIE, WIN_A, WIN_B
from evenhand.report.win_rates import Matchup, by_tag, matchups
from evenhand.store import CriterionColumns, OutcomeColumns
from evenhand.store.runs import Survey

# Rows 1 to 5: x against y, y against x twice, nobody against nobody, x against nobody.
COLUMNS = OutcomeColumns(
    ("x", "y"),
    ((), ("a", "b"), ("b",)),
    number=array("q", [1, 2, 3, 4, 5]),
    prompt_key=array("q", [10, 20, 30, 40, 50]),
    outcome=array("b", [WIN_A, WIN_A, TIE, WIN_B, INCONSISTENT]),
    model_a=array("i", [0, 1, 1, -1, 0]),
    model_b=array("i", [1, 0, 0, -1, -1]),
    tags=array("i", [1, 2, 0, 0, 0]),
)
SURVEY = Survey(5, (("y", "x", 2), ("x", "y", 3), (None, None, 1), ("x", None, 1)))


def found(*criteria: CriterionColumns, survey: Survey = SURVEY) -> list[Matchup]:
    return list(matchups(COLUMNS, criteria, survey))


def test_first_row_of_the_data_says_who_is_a() -> None:
    first, nobody, half = found()
    assert first.models == ("y", "x")
    # x won row 1 as A, where it is exchanged; y won row 2 as A, where it is not
    assert first.outcomes.tolist() == [WIN_B, WIN_A, TIE]
    assert first.exchanged.tolist() == [True, False, False]
    assert (first.pairs, first.prompts.tolist()) == (5, [10, 20, 30])
    assert (nobody.models, nobody.outcomes.tolist()) == ((None, None), [WIN_B])
    assert (half.models, half.outcomes.tolist()) == (("x", None), [INCONSISTENT])


def test_models_that_the_survey_missed_are_not_lost() -> None:
    first, _, _ = found(survey=Survey(0, ()))
    assert (first.models, first.pairs) == (("x", "y"), 3)
    assert first.outcomes.tolist() == [WIN_A, WIN_B, TIE]


def test_model_against_itself_is_not_exchanged() -> None:
    columns = OutcomeColumns(
        ("x",),
        ((),),
        number=array("q", [1]),
        prompt_key=array("q", [1]),
        outcome=array("b", [WIN_B]),
        model_a=array("i", [0]),
        model_b=array("i", [0]),
        tags=array("i", [0]),
    )
    (only,) = matchups(columns, (), Survey(1, (("x", "x", 1),)))
    assert only.outcomes.tolist() == [WIN_B]


def test_criteria_follow_their_rows() -> None:
    clarity = CriterionColumns(
        "clarity",
        number=array("q", [1, 2, 4, 9]),  # row 9 was judged after the columns were read
        prompt_key=array("q", [10, 20, 40, 90]),
        outcome=array("b", [WIN_B, WIN_B, WIN_B, WIN_B]),
    )
    first, nobody, half = found(clarity)
    (part,) = first.criteria
    assert (part.name, part.outcomes.tolist()) == ("clarity", [WIN_A, WIN_B])
    assert part.prompts.tolist() == [10, 20]
    assert [each.outcomes.tolist() for each in nobody.criteria] == [[WIN_B]]
    assert half.criteria == ()


def test_row_with_two_tags_is_in_both() -> None:
    first, nobody, _ = found()
    told = {part.name: part.outcomes.tolist() for part in by_tag(COLUMNS, first)}
    assert told == {"a": [WIN_B], "b": [WIN_B, WIN_A]}
    assert list(by_tag(COLUMNS, nobody)) == []


def test_nothing_judged_is_a_matchup_without_rows() -> None:
    (empty,) = matchups(OutcomeColumns((), ()), (), Survey(2, (("x", "y", 2),)))
    assert (empty.models, empty.pairs, empty.rows.size) == (("x", "y"), 2, 0)
    assert list(matchups(OutcomeColumns((), ()), (), Survey(0, ()))) == []
