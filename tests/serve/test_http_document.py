"""The OpenAPI document and docs/http.md say what the server does: no less, no other."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

import service_examples
from cases import each_case
from evenhand.serve.app import make_app
from evenhand.serve.config import ServerConfig, Token
from evenhand.serve.http.document import example
from http_service import StartService, start_service

__all__ = ["start_service"]

DOCS = (Path(__file__).parents[2] / "docs" / "http.md").read_text("utf-8")
DOCUMENT = make_app(ServerConfig()).openapi()
OPERATIONS = {
    f"{method.upper()} {path}": operation
    for path, item in DOCUMENT["paths"].items()
    for method, operation in item.items()
}


def references(node: Any) -> Iterator[str]:
    if isinstance(node, dict):
        if isinstance(node.get("$ref"), str):
            yield node["$ref"]
        for value in node.values():
            yield from references(value)
    elif isinstance(node, list):
        for value in node:
            yield from references(value)


def contents() -> Iterator[tuple[str, dict[str, Any]]]:
    """Every body and every answer that has a content, with a name for it."""
    for name, operation in OPERATIONS.items():
        places = {"body": operation.get("requestBody", {}), **operation["responses"]}
        for place, found in places.items():
            for kind, content in found.get("content", {}).items():
                yield f"{name} {place} {kind}", content


def test_document_names_every_endpoint_once() -> None:
    assert DOCUMENT["openapi"].startswith("3.1")
    names = [operation["operationId"] for operation in OPERATIONS.values()]
    assert len(set(names)) == len(names)


def test_to_write_the_document_logs_no_error(caplog: pytest.LogCaptureFixture) -> None:
    make_app(ServerConfig()).openapi()
    assert caplog.records == []


def test_every_reference_leads_somewhere() -> None:
    for reference in set(references(DOCUMENT)):
        found: Any = DOCUMENT
        for step in reference.removeprefix("#/").split("/"):
            found = found[step]


@each_case(("name", "content"), list(contents()), ids=lambda case: case[0])
def test_every_body_and_answer_has_an_example_that_fits(name: str, content: Any) -> None:
    schema = {**content["schema"], "components": DOCUMENT["components"]}
    Draft202012Validator.check_schema(schema)
    given = [each["value"] for each in content.get("examples", {}).values()]
    given += [content["example"]] if "example" in content else []
    assert given or "multipart" in name
    for each in given:
        Draft202012Validator(schema).validate(each)


@each_case("operation", OPERATIONS.values(), ids=lambda operation: operation["operationId"])
def test_every_refusal_is_a_problem(operation: Any) -> None:
    refusals = {s: r for s, r in operation["responses"].items() if s >= "400"}
    assert {"401", "403", "422", "429", "500", "503"} <= set(refusals)
    for status, refusal in refusals.items():
        if status != "503" or operation["operationId"] != "readyz":
            assert list(refusal["content"]) == ["application/problem+json"]


def test_token_is_asked_for_where_there_are_tokens() -> None:
    assert "security" not in DOCUMENT
    told = make_app(ServerConfig(tokens=(Token("me", "secret"),))).openapi()
    assert told["security"] == [{"token": []}]
    assert told["components"]["securitySchemes"]["token"]["scheme"] == "bearer"
    assert told["paths"]["/healthz"]["get"]["security"] == []
    assert "secret" not in repr(told)


def shape(value: Any) -> Any:
    """Names and kinds, without what differs from one server to the next."""
    if isinstance(value, dict):
        return {name: shape(each) for name, each in value.items()}
    if isinstance(value, list):
        return [shape(value[0])] if value else []
    return "value"


def test_examples_are_what_the_server_answers(start_service: StartService) -> None:
    service = start_service(service_examples.knows_capitals, judges=("main", "second"))
    for name, found in service_examples.gather(service).items():
        if isinstance(found, str):
            assert isinstance(example(name), str)
        else:
            assert shape(example(name)) == shape(found), f"write {name} anew"


def test_examples_name_no_place_of_a_machine() -> None:
    for path in service_examples.FOLDER.iterdir():
        assert not re.search(r"/(?:tmp|root|home|work)/", path.read_text("utf-8")), path.name


def section_of(title: str) -> str:
    found = re.search(
        rf"^### `{re.escape(title)}`\n(.*?)(?=^##|\Z)", DOCS, re.MULTILINE | re.DOTALL
    )
    assert found, f"{title} has no section in docs/http.md"
    return found[1]


def fields_of_body(operation: Any) -> set[str]:
    body = operation.get("requestBody", {}).get("content", {}).get("application/json")
    if body is None:
        return set()
    name = body["schema"]["$ref"].rsplit("/", 1)[-1]
    return set(DOCUMENT["components"]["schemas"][name]["properties"])


@each_case("name", OPERATIONS)
def test_every_endpoint_and_query_parameter_is_documented(name: str) -> None:
    section, operation = section_of(name), OPERATIONS[name]
    known = {each["name"] for each in operation["parameters"] if each["in"] == "query"}
    written = set(re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE))
    assert known <= written, known - written
    bodies = fields_of_body(operation)
    assert written <= known | bodies, written - known - bodies


def test_no_query_parameter_is_null() -> None:
    for operation in OPERATIONS.values():
        query = [each for each in operation["parameters"] if each["in"] == "query"]
        assert "'null'" not in repr(query)
    required = [
        each["name"] for each in OPERATIONS["GET /v1/rank"]["parameters"] if each["required"]
    ]
    assert required == ["runs"]


def test_no_endpoint_is_documented_that_is_not_there() -> None:
    written = set(re.findall(r"^### `((?:GET|POST|PUT|DELETE) [^`]+)`$", DOCS, re.MULTILINE))
    assert written == set(OPERATIONS)


def test_every_status_is_documented() -> None:
    for status in {s for operation in OPERATIONS.values() for s in operation["responses"]}:
        assert re.search(rf"\b{status}\b", DOCS), status
