"""Query parameters are held to the same rules as bodies."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any

import pytest
from fastapi import APIRouter, FastAPI, Query
from fastapi.testclient import TestClient
from starlette.datastructures import QueryParams

from evenhand.analyses.registry import RANK
from evenhand.errors import EvenhandError, InputError
from evenhand.serve.fields import request_for
from evenhand.serve.http.problems import add_handlers, problem_response
from evenhand.serve.http.requests import read_query
from evenhand.serve.http.routes import BoundedRoute
from evenhand.serve.values import StartRun, StartRunQuery

RankQuery: Any = request_for(RANK)
router = APIRouter(route_class=BoundedRoute)


@router.get("/start")
async def start(query: Annotated[StartRunQuery, Query()]) -> StartRun:
    return query.options()


@router.get("/rank")
async def rank(query: Annotated[RankQuery, Query()]) -> Any:
    return query


@router.get("/none")
async def none() -> None: ...


@pytest.fixture(scope="module")
def client() -> Iterator[TestClient]:
    app = FastAPI(routes=list(router.routes))

    def respond(scope: Any, error: EvenhandError) -> Any:
        return problem_response(error)

    add_handlers(app, respond=respond)
    with TestClient(app) as client:
        yield client


def refusal(client: TestClient, address: str) -> str:
    answer = client.get(address)
    assert answer.status_code == 422
    detail: str = answer.json()["detail"]
    return detail


def test_values_come_in_their_types_and_in_either_case(client: TestClient) -> None:
    read = client.get("/start?maxCalls=5&max_cost=0.5&allow_tie=false&fresh=true").json()
    assert [read[name] for name in ("maxCalls", "maxCost", "allowTie", "fresh")] == [
        *(5, 0.5, False, True)
    ]


def test_lists_are_given_by_repeating_the_name(client: TestClient) -> None:
    read = client.get("/start?judges=a&judges=b&criteria=accuracy&criteria=tone").json()
    assert read["judges"] == ["a", "b"]
    assert [criterion["name"] for criterion in read["criteria"]] == ["accuracy", "tone"]


def test_what_is_to_be_prepared_has_commas_or_is_repeated(client: TestClient) -> None:
    for query in ("prepare=metrics,reference", "prepare=metrics&prepare=reference"):
        assert client.get(f"/start?{query}").json()["prepare"] == ["metrics", "reference"]


def test_columns_are_given_as_field_and_column(client: TestClient) -> None:
    read = client.get("/start?columns=prompt%3Dquestion&columns=responseA=left=1").json()
    assert read["columns"] == {"prompt": "question", "responseA": "left=1"}
    assert "columns is 'prompt'; use FIELD=COLUMN" in refusal(client, "/start?columns=prompt")


def test_a_criterion_without_a_name_is_refused(client: TestClient) -> None:
    assert "criteria[1]" in refusal(client, "/start?criteria=accuracy&criteria=")


WRONG = [
    ("nonsense=1", "unknown query parameter 'nonsense'; use judge, judges, name"),
    ("maxCalls=1&maxCalls=2", "maxCalls is given 2 times; keep one"),
    ("maxCalls=1&max_calls=2", "unknown query parameter 'max_calls'; use judge, judges, name"),
    ("maxCalls=many", "maxCalls is 'many'; it should be a valid integer"),
    ("maxCalls=-1", "maxCalls is '-1'; it should be greater than or equal to 0"),
    ("badRows=drop", "badRows is 'drop'; it should be 'stop' or 'skip'"),
    ("maxCost=nan", "maxCost is 'nan'; it should be"),
]


@pytest.mark.parametrize(("query", "message"), WRONG)
def test_what_is_wrong_is_named_with_its_value(
    client: TestClient, query: str, message: str
) -> None:
    assert message in refusal(client, f"/start?{query}")


@pytest.mark.parametrize(("query", "message"), WRONG)
def test_a_page_is_told_the_same(query: str, message: str) -> None:
    with pytest.raises(InputError) as raised:
        read_query(QueryParams(query), StartRun)
    assert message in raised.value.message


def test_what_is_needed_and_missing_is_named(client: TestClient) -> None:
    assert "the query parameter runs is missing; give it" in refusal(client, "/rank")


def test_endpoint_without_parameters_takes_none(client: TestClient) -> None:
    assert refusal(client, "/none?x=1") == "unknown query parameter 'x'; none are accepted here"


@pytest.mark.parametrize("path", ["/none", "/rank"])
def test_long_name_of_an_unknown_parameter_is_cut(client: TestClient, path: str) -> None:
    told = refusal(client, f"{path}?{'x' * 500}=1&runs=1")
    assert "x" * 37 + "…" in told
    assert "x" * 38 not in told
