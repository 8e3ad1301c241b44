"""Bodies and parameters that are legal and made to cost: counted before anything is built of them,
and read aside, so that the event loop stays free."""

from __future__ import annotations

import json
import math
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from evenhand.contract import read_pair
from evenhand.errors import EvenhandError, InputError, TooLarge, visible
from evenhand.serve import service as service_module
from evenhand.serve.app import make_app
from evenhand.serve.config import ServerConfig, ServerLimits
from evenhand.serve.http.problems import problem_of
from evenhand.serve.pages import page as forms
from evenhand.serve.security.limits import refuse_many_values, refuse_wide, values_of_a_pair
from evenhand.serve.values import StartRunWithPairs, read_value
from http_service import PAIR, HttpService, StartService, problem, start_service
from run_data import adds_up

__all__ = ["start_service"]

JSON = {"Content-Type": "application/json"}
MCP = JSON | {"Accept": "application/json, text/event-stream"}
OWN_PAGE = {"Content-Type": "application/x-www-form-urlencoded", "Sec-Fetch-Site": "same-origin"}


@pytest.fixture
def service(start_service: StartService) -> HttpService:
    return start_service(adds_up, compare_bytes=200_000, body_bytes=8_000_000)


# -- Counted before they are parsed ----------------------------------------------------------

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(st.sampled_from('a,[{"\\\n:')),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(st.sampled_from('a"\\,')), inner),
)


def values_in(value: Any) -> int:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return 1 + sum(map(values_in, inner))


def passes(body: bytes, most: int) -> bool:
    try:
        refuse_many_values(body, most)
    except TooLarge:
        return False
    return True


@given(json_values)
@example(["\\", '"', ",,,[[[", '\\"'])
def test_no_body_with_more_values_than_allowed_comes_through(value: Any) -> None:
    """A list of n has n - 1 commas and a bracket, so at least the values but one are counted; and
    a value has at most a comma before it and a bracket of its own."""
    body = json.dumps(value).encode()
    count = values_in(value)
    assert count == 1 or not passes(body, count - 1)
    assert passes(body, 2 * count + 1)


@given(st.binary())
def test_whatever_the_bytes_counting_ends_and_raises_nothing_else(body: bytes) -> None:
    passes(body, 3)


def test_commas_and_brackets_in_texts_are_not_values() -> None:
    text = ',[{"\\' * 10_000
    body = json.dumps({"prompt": text, "responseA": text + '"', "responseB": "\\"}).encode()
    assert passes(body, 10)


@pytest.mark.parametrize(
    "given",
    [
        {f"key{number}": 1 for number in range(2000)},
        {"criteria": ["c"] * 2000},
        {"criteria": [{f"key{number}": 1 for number in range(2000)}]},
        {"prompt": [[[{"a": list(range(2000))}]]]},
    ],
)
def test_what_would_be_a_complaint_each_is_refused_before_validation(given: dict[str, Any]) -> None:
    with pytest.raises(TooLarge):
        refuse_wide(given, ServerLimits())
    with pytest.raises(TooLarge):
        refuse_wide(given, ServerLimits(), rows="pairs")
    refuse_wide({"pairs": [PAIR] * 5000}, ServerLimits(), rows="pairs")


def test_of_many_rows_that_are_none_one_is_complained_of() -> None:
    with pytest.raises(InputError, match=r"pairs\[0\]"):
        read_value(StartRunWithPairs, {"pairs": [1] * 100_000})


def hostile_bodies() -> Iterator[tuple[str, bytes, dict[str, str]]]:
    wide = b"{" + b",".join(b'"k%d":1' % number for number in range(10_000)) + b"}"
    criteria = json.dumps(PAIR | {"criteria": [f"c{number}" for number in range(5000)]}).encode()
    call = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","arguments":%s}}'
    yield "/v1/compare", wide, JSON
    yield "/v1/compare", criteria, JSON
    yield "/v1/compare", b"[" * 100_000, JSON
    yield "/v1/compare", b"0" * 201_000, JSON
    yield "/v1/rank", wide, JSON
    yield "/v1/audits", wide, JSON
    yield "/v1/rank", b'{"runs":["' + b"x" * 1_100_000 + b'"]}', JSON
    yield "/v1/runs", wide[:-1] + b',"pairs":[{}]}', JSON
    yield "/v1/runs", b'{"pairs":[' + b"{}," * 600_000 + b"{}]}", JSON
    yield "/mcp", call % (b"[" + b"0," * 95_000 + b"0]"), MCP
    yield "/try", b"prompt=" + b"%41" * 70_000, OWN_PAGE


@pytest.mark.parametrize(("path", "body", "headers"), list(hostile_bodies()))
def test_a_body_of_too_many_values_or_bytes_is_refused_as_such(
    service: HttpService, path: str, body: bytes, headers: dict[str, str]
) -> None:
    answer = service.client.post(path, content=body, headers=headers)
    if path == "/mcp":  # its values may be many, those of a tool's arguments may not
        assert answer.status_code < 500
        assert "too" in answer.text or "valid" in answer.text
    else:
        problem(answer, 413, "too_large")
    assert len(answer.content) < 5000


@pytest.mark.parametrize("tool", ["pairwiseCompare", "rankResponses", "startRun", "auditJudge"])
def test_agents_arguments_are_counted_too(service: HttpService, tool: str) -> None:
    for arguments in ({f"k{n}": 1 for n in range(3000)}, {"criteria": ["c"] * 3000}):
        params = {"name": tool, "arguments": arguments}
        message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
        answer = service.client.post("/mcp", json=message, headers=MCP)
        assert "too_large" in answer.text


def test_an_agents_message_of_too_many_values_is_not_parsed(service: HttpService) -> None:
    answer = service.client.post("/mcp", content=b"[" + b"0," * 99_999 + b"0]", headers=MCP)
    problem(answer, 413, "too_large")


@pytest.mark.parametrize(
    ("path", "body", "headers"),
    [
        ("/v1/compare", json.dumps(PAIR | {"context": "x" * 100_000}).encode(), JSON),
        ("/v1/runs", json.dumps({"pairs": [PAIR | {"context": "x" * 100_000}]}).encode(), JSON),
        ("/try", b"prompt=x&context=" + b"%41" * 30_000, OWN_PAGE),
        ("/mcp", b'{"jsonrpc":"2.0","method":"ping","params":{"x":"' + b"x" * 99_999 + b'"}}', MCP),
    ],
)
def test_large_bodies_are_read_beside_the_event_loop(
    service: HttpService,
    path: str,
    body: bytes,
    headers: dict[str, str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The loop is free: what reads the body runs in another thread than the service does."""
    threads: list[str] = []
    read_in = service_module.Service.read_in

    async def noted(self: Any, body: bytes, read: Callable[[bytes], Any]) -> Any:
        def reading(body: bytes) -> Any:
            threads.append(threading.current_thread().name)
            return read(body)

        return await read_in(self, body, reading)

    monkeypatch.setattr(service_module.Service, "read_in", noted)
    assert service.client.post(path, content=body, headers=headers).status_code < 500
    assert threads
    assert all(name.startswith("evenhand-read") for name in threads)


def test_a_criterions_long_name_is_refused_before_it_is_folded(service: HttpService) -> None:
    for criterion in ("x" * 2000, {"name": "x" * 2000}):
        answer = service.client.post("/v1/compare", json=PAIR | {"criteria": [criterion]})
        assert problem(answer, 413, "too_large").detail == (
            "a criterion's name has 2,000 characters; this server accepts at most 1,000; "
            "put the rest in its description"
        )
    answer = service.client.post(
        "/v1/runs", json={"pairs": [PAIR], "criteria": [{"name": "x" * 2000}]}
    )
    problem(answer, 413, "too_large")
    described = {"name": "tone", "description": "x" * 2000}
    answer = service.client.post("/v1/compare", json=PAIR | {"criteria": [described]})
    assert answer.status_code == 200


def test_a_form_of_many_parts_is_refused(service: HttpService) -> None:
    part = b'--b\r\nContent-Disposition: form-data; name="name"\r\n\r\n\r\n'
    answer = service.client.post(
        "/runs",
        content=part * 5000 + b"--b--\r\n",
        headers=OWN_PAGE | {"Content-Type": "multipart/form-data; boundary=b"},
    )
    assert answer.status_code == 413


@pytest.mark.slow
@given(st.dictionaries(st.text(min_size=1), st.text(), max_size=20), st.integers(3, 50))
def test_a_form_is_read_as_the_standard_library_reads_it(
    fields: dict[str, str], block: int
) -> None:
    from urllib.parse import parse_qs, urlencode

    fields = {k: v.replace("\r\n", "\n") for k, v in fields.items()}
    try:
        body = urlencode(fields).encode()
    except UnicodeEncodeError:
        return
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(forms, "_BLOCK", block)
        read = forms._decoded(body)
    assert read == parse_qs(body.decode(), keep_blank_values=True)


# -- Numbers ---------------------------------------------------------------------------------

EXTREMES = (
    *("1e308", "-1e308", "nan", "inf", "-inf", "1e999", "1e-320", "-1", "0", "1"),
    *("0.9999999999999999", str(10**400), "9" * 10_000, str(2**63), str(2**31), "1_0", "٣"),
)


def numeric() -> Iterator[tuple[str, str, str, dict[str, Any]]]:
    for path, item in make_app(ServerConfig()).openapi()["paths"].items():
        for method, operation in item.items():
            for each in operation["parameters"]:
                if each["schema"].get("type") in ("integer", "number"):
                    yield method.upper(), path, each["name"], each["schema"]


def test_every_numeric_parameter_has_finite_bounds() -> None:
    found = list(numeric())
    assert len(found) > 10
    for method, path, name, schema in found:
        low = schema.get("minimum", schema.get("exclusiveMinimum", -math.inf))
        high = schema.get("maximum", schema.get("exclusiveMaximum", math.inf))
        assert math.isfinite(high - low), f"{method} {path} {name}"


@pytest.mark.slow
def test_no_number_in_a_query_or_a_body_is_a_fault(service: HttpService) -> None:
    labelled = [PAIR | {"label": "A", "modelA": "m", "modelB": "n", "id": str(n)} for n in range(4)]
    run = service.client.post("/v1/runs", json={"pairs": labelled}).json()["id"]
    for method, path, name, _ in numeric():
        if method == "POST":
            continue  # the same fields as in the body, below
        for number in EXTREMES:
            query = {name: number} | {"/v1/rank": {"runs": run}, "/v1/audits": {"run": run}}.get(
                path, {}
            )
            answer = service.client.get(path.replace("{id}", run), params=query)
            assert answer.status_code in (200, 422), (path, name, number, answer.text)
    bodies = {
        "/v1/rank": ({"runs": [run]}, ("prior", "k", "level", "seed", "replicates")),
        "/v1/audits": ({"run": run}, ("level", "disagreements", "minKappa", "minAccuracy")),
        "/v1/runs": ({"pairs": labelled}, ("maxCalls", "maxCost", "budget", "seed", "alpha")),
    }
    for path, (base, names) in bodies.items():
        for name in names:
            for number in ("1e308", "1e-320", "1e999", "NaN", str(10**30), "9" * 10_000, "-1"):
                body = json.dumps(base)[:-1] + f', "{name}": {number}}}'
                answer = service.client.post(path, content=body, headers=JSON)
                assert answer.status_code in (200, 202, 422), (path, name, number, answer.text)


@pytest.mark.parametrize("weights", [(1e308, 1e308, 1e308), (5e-324, 1e308, 1.0)])
def test_the_greatest_weights_make_no_fault(
    service: HttpService, weights: tuple[float, ...]
) -> None:
    criteria = [{"name": f"c{n}", "weight": weight} for n, weight in enumerate(weights)]
    for more in ({}, {"allowTie": False}):
        answer = service.client.post("/v1/compare", json=PAIR | more | {"criteria": criteria})
        assert answer.status_code in (200, 422), answer.text


def test_more_parameters_than_anybody_gives_are_refused(service: HttpService) -> None:
    answer = service.client.get("/v1/rank?" + "&".join(["runs=1"] * 300))
    assert "300 parameters" in problem(answer, 422, "input").detail


# -- What is said of them --------------------------------------------------------------------

UNSEEN = (
    "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u200e\u200f\u061c\u200b\u2060\ufeff"
)
UNSEEN += "\x00\x07\x1b\x7f\x85\u2028\U000e0041"


@pytest.mark.parametrize("char", UNSEEN)
def test_what_nobody_sees_is_written_as_its_escape(char: str) -> None:
    shown = visible(f"a{char}b")
    assert char not in shown
    assert json.loads(f'"{shown}"') == f"a{char}b"
    problem_told = problem_of(EvenhandError(f"a{char}b")).model_dump_json()
    assert char not in problem_told.replace("\\n", "")


@given(st.text())
def test_what_is_seen_stays_as_it_is(text: str) -> None:
    if text.isprintable():
        kept = "".join(c for c in text if c not in "\u115f\u1160\u3164\uffa0\u17b4\u17b5")
        kept = "".join(c for c in kept if not 0x180B <= ord(c) <= 0x180F and ord(c) < 0xE0000)
        assert visible(kept) == kept


def test_a_field_that_nobody_knows_is_named_briefly_and_visibly(service: HttpService) -> None:
    name = "\u202ex" * 5000
    for path, body in (("/v1/compare", PAIR), ("/v1/rank", {"runs": ["1"]})):
        answer = service.client.post(path, json=body | {name: 1})
        told = problem(answer, 422, "input").detail
        assert "\u202e" not in answer.text
        assert "is not a known field; the fields are" in told
        assert len(told) < 600
    with pytest.raises(InputError) as refused:
        read_pair(PAIR | {"x" * 5000: 1})
    assert len(refused.value.message) < 300


def test_the_most_values_of_a_pair_hold_the_most_criteria() -> None:
    """Each criterion is an object with three fields: a comma before it, its bracket, two commas."""
    limits = ServerLimits()
    criterion = {"name": "n", "description": "d", "weight": 1.0}
    body = json.dumps(PAIR | {"criteria": [criterion] * limits.criteria, "context": "c"})
    assert passes(body.encode(), values_of_a_pair(limits))
