"""Runs of two models' outputs: two files in one upload, joined as the command line joins them."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from itertools import product
from typing import Any

import httpx
import pytest

from evenhand.serve.uploads import Upload
from evenhand.serve.values import RunStatus
from http_service import HttpService, StartService, problem, start_service
from page_visits import Visitor, seen
from run_data import adds_up, sums, wins_b

__all__ = ["start_service"]

Rows = list[dict[str, Any]]


def outputs(count: int, side: str, *, begin: int = 1, prompts: bool = False) -> Rows:
    """What one model answers to the sums; the prompt stands in A's file, or in both."""
    return [
        {"id": row["id"], "response": row[f"response_{side}"]}
        | ({"prompt": row["prompt"]} if side == "a" or prompts else {})
        for row in sums(count, begin=begin)
    ]


def lines(rows: Rows) -> bytes:
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


def sent(a: Rows | bytes, b: Rows | bytes, *, ending: str = ".jsonl") -> dict[str, Any]:
    return {
        name: (f"{called}{ending}", rows if isinstance(rows, bytes) else lines(rows))
        for name, called, rows in (("a", "old", a), ("b", "new", b))
    }


def start(service: HttpService, files: Any, **query: Any) -> httpx.Response:
    return service.client.post("/v1/runs", params={"criteria": "accuracy"} | query, files=files)


def refused(answer: httpx.Response, status: int = 422) -> str:
    kind = answer.json()["error"]["kind"]
    assert kind in ("data", "input", "too_large"), answer.text
    return problem(answer, status, kind).detail


def ended(service: HttpService, answer: httpx.Response) -> RunStatus:
    assert answer.status_code in (200, 202), answer.text
    for _ in range(600):
        status = RunStatus.model_validate(service.client.get(answer.headers["location"]).json())
        if status.at_rest:
            return status
        service.client.get("/v1/judges")  # a moment
    raise AssertionError(status)


@pytest.fixture
def service(start_service: StartService) -> HttpService:
    return start_service(adds_up)


@pytest.fixture
def visitor(service: HttpService) -> Iterator[Visitor]:
    return Visitor(service)  # type: ignore[return-value]


def post(visitor: Visitor, files: Any, **fields: str) -> httpx.Response:
    own = {"Origin": visitor.service.url.rstrip("/")}
    form = {"kind": "outputs", "criteria": "accuracy"} | fields
    return visitor.client.post("/runs", files=files, data=form, headers=own)


def test_two_files_are_joined_and_judged(service: HttpService) -> None:
    status = ended(service, start(service, sent(outputs(12, "a"), outputs(12, "b"))))
    assert (status.state, status.pairs, status.calls) == ("finished", 12, 24)
    assert (status.wins_a, status.wins_b) == (12 - wins_b(12), wins_b(12))
    verdicts = service.client.get(f"/v1/runs/{status.id}/verdicts").json()["verdicts"]
    assert {(each["modelA"], each["modelB"]) for each in verdicts} == {("old", "new")}
    # Whichever of them comes first in the form, and once more: the same run.
    files = sent(outputs(12, "a"), outputs(12, "b"))
    turned = {name: files[name] for name in ("b", "a")}
    again = start(service, turned)
    assert (again.status_code, again.json()["id"]) == (200, status.id)


def test_two_files_of_the_same_name_are_two_models(service: HttpService) -> None:
    files = {
        side: ("outputs.jsonl.gz", gzip.compress(lines(outputs(3, side)))) for side in ("a", "b")
    }
    status = ended(service, start(service, files))
    verdicts = service.client.get(f"/v1/runs/{status.id}/verdicts").json()["verdicts"]
    assert {(each["modelA"], each["modelB"]) for each in verdicts} == {("A-outputs", "B-outputs")}


def test_answers_without_a_partner_stop_it_or_are_counted(service: HttpService) -> None:
    """A has 1 to 6, B has 4 to 11: 3 join; 3 of A's and 5 of B's are alone."""
    files = sent(outputs(6, "a"), outputs(8, "b", begin=4))
    assert "has no counterpart from" in refused(start(service, files))
    # B's last five have no prompt in either file.
    status = ended(service, start(service, files, badRows="skip"))
    assert (status.pairs, status.skipped_rows) == (3, 8)


@pytest.mark.parametrize(
    ("files", "told"),
    [
        ({"a": ("x.jsonl", b"{}")}, "the outputs of only one model, a"),
        ({"b": ("x.jsonl", b"{}")}, "the outputs of only one model, b"),
        ([("a", ("x", b"")), ("a", ("y", b""))], "two files do not go together"),
        ([("file", ("x", b"")), ("b", ("y", b""))], "two files do not go together"),
        ([("a", ("x", b"")), ("b", ("y", b"")), ("file", ("z", b""))], "do not go together"),
        ({"a": ("x.jsonl", b""), "b": ("y.jsonl", b"")}, "x.jsonl"),
        ({"a": ("x.csv", b"id,answer\n1,2\n"), "b": ("y.jsonl", b"\x00\xff")}, "y.jsonl, row 1"),
    ],
)
def test_what_is_no_two_files_of_outputs_is_refused_with_a_reason(
    files: Any, told: str, service: HttpService
) -> None:
    assert told in refused(start(service, files))
    assert service.client.get("/v1/runs").json()["runs"] == []


def test_limits_hold_for_both_files_together(start_service: StartService) -> None:
    service = start_service(adds_up, upload_bytes=400_000, run_pairs=50, field_chars=1000)
    many = lines([{"id": n, "response": "x"} for n in range(51)])
    padded = lines(outputs(3, "b")) + b" " * 250_000 + b"\n"
    half = lines(outputs(3, "a")) + b" " * 250_000 + b"\n"
    cases = [
        (sent(outputs(3, "a"), many), "new has more than 50 rows"),
        (sent(many, outputs(3, "b")), "old has more than 50 rows"),
        (sent(half, padded), "larger than 400000 bytes"),
        (
            sent(gzip.compress(half), gzip.compress(padded), ending=".jsonl.gz"),
            f"unpacks to more than {400_000 - len(half):,}",  # what the first file left of it
        ),
        (sent(outputs(3, "a"), b'{"id": 1, "response": "' + b"x" * 390_000), "new.jsonl"),
    ]
    for files, told in cases[:-1]:
        assert told in refused(start(service, files), 413), told
    files, told = cases[-1]
    assert told in refused(start(service, files))
    twice = gzip.compress(gzip.compress(lines(outputs(3, "b"))))
    files = sent(gzip.compress(lines(outputs(3, "a"))), twice, ending=".jsonl.gz")
    assert "gzip inside gzip" in refused(start(service, files))
    assert service.client.get("/v1/runs").json()["runs"] == []


def test_files_of_an_upload_share_its_limit_and_its_end() -> None:
    for one, two in product((0, 5, 10), repeat=2):
        with Upload("a.jsonl", limit_bytes=10) as upload:
            upload.write(b"x" * one)
            other = Upload("a.jsonl", limit_bytes=10, after_bytes=upload.size)
            upload.join(other)
            if one + two > 10:
                with pytest.raises(Exception, match="more than 10 bytes"):
                    other.write(b"x" * two)
            else:
                other.write(b"x" * two)
                assert [each.name for each in upload.files] == ["A-a.jsonl", "B-a.jsonl"]
                assert [len(each.source().path.read_bytes()) for each in upload.files] == [one, two]
        assert other._file.closed


def test_both_files_are_looked_at_before_they_start_a_run(visitor: Visitor) -> None:
    files = sent(outputs(6, "a"), outputs(8, "b", begin=4, prompts=True))
    page = seen(post(visitor, files, act="preview", badRows="skip"))
    shown = page.by_id("preview")
    assert "Pairs3" in shown.text
    assert "Without a counterpartA 3 · B 5" in shown.text
    # Three pairs in both orders.
    assert "Calls6" in shown.text
    heads = [each.text for each in page.all("th", scope="col") if shown in each.within]
    assert heads == ["id", "response", "prompt"] * 2
    cells = [each for each in page.all("td") if shown in each.within]
    assert len(cells) == 2 * 3 * 3
    assert visitor.ask("/v1/runs").json()["runs"] == []


def test_the_form_for_two_outputs_starts_a_run_and_keeps_what_was_filled_in(
    visitor: Visitor,
) -> None:
    form = visitor.see("/new?kind=outputs")
    names = [each.attributes["name"] for each in form.all("input", type="file")]
    assert names == ["a", "b"]
    assert form.one("a", href="/new?kind=outputs").attributes["aria-current"] == "page"
    kept = seen(post(visitor, sent(b"no json", outputs(3, "b")), name="Kept"), 422)
    assert kept.one("input", name="name").attributes["value"] == "Kept"
    assert kept.one("input", name="kind").attributes["value"] == "outputs"
    assert "Choose the files again to start: old.jsonl, new.jsonl." in kept.text
    answer = post(visitor, sent(outputs(3, "a"), outputs(3, "b")), name="Two files")
    assert answer.status_code == 303, answer.text
    page = visitor.wait(answer.headers["location"], lambda page: "finished" in page.text)
    assert page.one("a", class_="name").text == "Two files"
    assert "new" in page.one("h1").text


def test_an_unknown_kind_is_the_usual_form(visitor: Visitor) -> None:
    for kind in ("", "x", "<b>", "models&kind=outputs"):
        page = visitor.see(f"/new?kind={kind}")
        assert page.one("h1").text == "New run"
