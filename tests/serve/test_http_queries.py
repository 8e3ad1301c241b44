"""Query parameters are held to the same rules as bodies."""

from __future__ import annotations

import pytest
from starlette.datastructures import QueryParams

from evenhand.errors import InputError
from evenhand.serve.http.requests import NoQuery, parameters, read_query
from evenhand.serve.values import RankRuns, StartRun
from evenhand.serve.verdicts import VerdictFilters


def test_values_come_in_their_types_and_in_either_case() -> None:
    read = read_query(QueryParams("maxCalls=5&max_cost=0.5&allow_tie=false&fresh=true"), StartRun)
    assert (read.max_calls, read.max_cost, read.allow_tie, read.fresh) == (5, 0.5, False, True)


def test_lists_are_given_by_repeating_the_name() -> None:
    read = read_query(QueryParams("judges=a&judges=b&criteria=accuracy&criteria=tone"), StartRun)
    assert read.judges == ("a", "b")
    assert [criterion.name for criterion in read.criteria] == ["accuracy", "tone"]


def test_columns_are_given_as_field_and_column() -> None:
    read = read_query(QueryParams("columns=prompt%3Dquestion&columns=responseA=left=1"), StartRun)
    assert read.columns == {"prompt": "question", "responseA": "left=1"}
    with pytest.raises(InputError, match="columns is 'prompt'; it takes FIELD=COLUMN"):
        read_query(QueryParams("columns=prompt"), StartRun)


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("nonsense=1", "'nonsense' is not known here; it takes judge, judges, name"),
        ("maxCalls=1&maxCalls=2", "maxCalls is given 2 times; keep one"),
        ("maxCalls=1&max_calls=2", "maxCalls is given in two spellings; keep one"),
        ("maxCalls=many", "maxCalls is 'many'; it should be a valid integer"),
        ("maxCalls=0", "maxCalls is '0'; it should be greater than or equal to 1"),
        ("badRows=drop", "badRows is 'drop'; it should be 'stop' or 'skip'"),
        ("maxCost=nan", "maxCost is 'nan'; it should be"),
    ],
)
def test_what_is_wrong_is_named_with_its_value(query: str, message: str) -> None:
    with pytest.raises(InputError) as raised:
        read_query(QueryParams(query), StartRun)
    assert message in raised.value.message


def test_what_is_needed_and_missing_is_named() -> None:
    with pytest.raises(InputError, match="the query parameter runs is missing; give it"):
        read_query(QueryParams(""), RankRuns)


def test_endpoint_without_parameters_takes_none() -> None:
    with pytest.raises(InputError, match="'x' is not known here; it takes none"):
        read_query(QueryParams("x=1"), NoQuery)


def test_long_name_of_an_unknown_parameter_is_cut() -> None:
    with pytest.raises(InputError) as raised:
        read_query(QueryParams({"x" * 500: "1"}), NoQuery)
    assert len(raised.value.message) < 120


def test_description_for_openapi_has_neither_null_nor_references() -> None:
    for model in (StartRun, VerdictFilters, RankRuns):
        told = parameters(model)
        assert [each["name"] for each in told] == [
            str(field.alias) for field in model.model_fields.values()
        ]
        assert "$ref" not in repr(told)
        assert "null" not in repr(told)
    required = [each["name"] for each in parameters(RankRuns) if each["required"]]
    assert required == ["runs"]
