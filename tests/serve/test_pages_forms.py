"""Forms: only our own pages send them, and what they bring is bounded."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from page_visits import Visitor, seen, serving
from run_data import adds_up, sums

LINES = "".join(json.dumps(row) + "\n" for row in sums(2)).encode()


@pytest.fixture(scope="module")
def visitor(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Visitor]:
    with serving(tmp_path_factory.mktemp("pages"), adds_up) as visitor:
        yield visitor


@pytest.fixture(scope="module")
def run(visitor: Visitor) -> str:
    return visitor.start(sums(3))


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Origin": "null"},
        {"Origin": "https://evil.example"},
        {"Origin": "http://127.0.0.1:1"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Sec-Fetch-Site": "none"},
    ],
)
def test_a_form_of_another_page_does_nothing(
    headers: dict[str, str], visitor: Visitor, run: str
) -> None:
    runs = len(visitor.ask("/v1/runs").json()["runs"])
    acts = ("cancel", "resume", "pairs/1", "pairs/1/flag")
    for path in ("/runs", *(f"{run}/{act}" for act in acts)):
        for body in ({"data": {"judge": "good"}}, {"files": {"file": ("p.jsonl", LINES)}}, {}):
            answer = visitor.client.post(path, headers=headers, **body)
            assert answer.status_code == 403, (path, body)
    assert len(visitor.ask("/v1/runs").json()["runs"]) == runs


def test_a_browser_that_tells_where_a_form_is_from_need_not_tell_its_origin(
    visitor: Visitor, run: str
) -> None:
    answer = visitor.client.post(
        f"{run}/pairs/1", data={"judge": "good"}, headers={"Sec-Fetch-Site": "same-origin"}
    )
    assert answer.status_code == 200


def test_the_api_still_takes_no_forms(visitor: Visitor) -> None:
    own = {"Origin": visitor.service.url.rstrip("/")}
    for path in ("/v1/compare", "/v1/rank", "/mcp"):
        assert visitor.client.post(path, data={"a": "b"}, headers=own).status_code == 415


def test_pages_let_the_browser_tell_their_own_origin(visitor: Visitor) -> None:
    """With no referrer at all a browser would send `Origin: null` with our own forms."""
    assert visitor.ask("/").headers["referrer-policy"] == "same-origin"


def test_the_form_names_what_the_server_takes(visitor: Visitor) -> None:
    form = visitor.see("/new").one("form", action="/runs")
    assert "/new" in visitor.see("/").links
    assert form.attributes["method"] == "post"
    assert form.attributes["enctype"] == "multipart/form-data"


def test_a_run_starts_with_what_the_form_says(visitor: Visitor) -> None:
    run = visitor.start(sums(3, begin=10), criteria="accuracy, clarity;tone", name="Mine")
    page = visitor.see(run)
    assert page.one("a", class_="name").text == "Mine"
    criteria = [each.text for each in page.all("th", scope="row")]
    assert {"accuracy", "clarity", "tone"} <= set(criteria)


def test_the_same_file_again_leads_to_the_same_run(visitor: Visitor) -> None:
    rows = sums(3, begin=20)
    assert visitor.start(rows) == visitor.begin(rows)


@pytest.mark.parametrize(
    ("content", "fields", "told"),
    [
        (b"", {"criteria": "accuracy"}, ""),
        (b"no json", {"criteria": "accuracy"}, ""),
        (LINES, {"criteria": "accuracy", "maxCost": "much"}, "dollars"),
        (LINES, {"criteria": "accuracy", "judges": "nobody"}, "does not offer"),
        (LINES, {"criteria": "accuracy", "badRows": "maybe"}, "bad"),
        (LINES, {"criteria": "accuracy", "other": "x"}, "other"),
        (LINES, {"criteria": "accuracy", "name": "n" * 201}, "name"),
        (LINES, {"criteria": "x" * 70_000}, "bytes"),
        (LINES, {"criteria": ["a", "b"]}, "criteria"),
    ],
)
def test_what_is_wrong_with_a_form_is_told_as_a_page(
    content: bytes, fields: dict[str, str], told: str, visitor: Visitor
) -> None:
    answer = visitor.upload(content, fields)
    assert answer.status_code in (413, 422), answer.text
    assert told in seen(answer, answer.status_code).one("div", class_="problem").text


def test_what_was_filled_in_stays_when_a_file_is_refused(visitor: Visitor) -> None:
    fields = {"criteria": "tone <b>, clarity", "name": "Kept", "maxCost": "3", "badRows": "skip"}
    page = seen(visitor.upload(b"no json", fields), 422)
    for name in ("criteria", "name", "maxCost"):
        assert page.one("input", name=name).attributes["value"] == fields[name]
    assert "checked" in page.one("input", name="badRows").attributes
    assert "Choose the file again to start: pairs.jsonl." in page.text


def test_a_file_is_looked_at_before_it_is_started(visitor: Visitor) -> None:
    rows = [*sums(5), {"prompt": "no responses"}]
    lines = "".join(json.dumps(row) + "\n" for row in rows).encode()
    runs = len(visitor.ask("/v1/runs").json()["runs"])
    asked = {"criteria": "accuracy", "badRows": "skip", "act": "preview"}
    page = seen(visitor.upload(lines, asked))
    shown = page.by_id("preview")
    heads = [each.text for each in page.all("th", scope="col") if shown in each.within]
    assert {"prompt", "response_a", "response_b"} <= set(heads)
    cells = [each for each in page.all("td") if shown in each.within]
    assert len(cells) == 3 * len(heads)
    # Five pairs in both orders, and a row that is none.
    assert "Pairs5 Calls10" in shown.text.replace(" Calls", " Calls")
    assert "1 invalid row" in shown.text
    assert len(visitor.ask("/v1/runs").json()["runs"]) == runs
    assert "no json" not in seen(visitor.upload(b"no json", asked), 422).by_id("preview").text


def test_a_form_without_a_file_is_told_as_a_page(visitor: Visitor) -> None:
    own = {"Origin": visitor.service.url.rstrip("/")}
    plain = visitor.client.post("/runs", data={"criteria": "accuracy"}, headers=own)
    assert seen(plain, 422)
    nameless = visitor.upload(b"", {"criteria": "accuracy"}, name="")
    assert nameless.status_code == 422


@pytest.mark.parametrize(
    "body", [b"judge=%ff%fe", b"&".join([b"a=b"] * 200), b"judge=a&judge=b", b"x" * 70_000]
)
def test_a_broken_form_is_refused(body: bytes, visitor: Visitor, run: str) -> None:
    headers = {
        "Origin": visitor.service.url.rstrip("/"),
        "Content-Type": "application/x-www-form-urlencoded",
    }
    answer = visitor.client.post(f"{run}/pairs/1", content=body, headers=headers)
    assert answer.status_code in (413, 422)
    assert seen(answer, answer.status_code)
