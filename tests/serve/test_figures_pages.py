"""Rankings, audits, calibrations and probes as pages, and their charts."""

from __future__ import annotations

import asyncio
import csv
import io
import re
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

import pytest

from analysed import analysis_of
from evenhand.analyses.rank import rank_runs, sum_up_ranking
from evenhand.analyses.registry import DIFF
from evenhand.messages import Language, render
from evenhand.present.html.rendering import LANGUAGES
from evenhand.report.conclusions import conclude
from evenhand.report.overview import as_markdown
from evenhand.trust.audit import audit_run
from evenhand.trust.findings import assess_audit
from evenhand.trust.probes.cases import probe_cases
from html_reading import Html
from http_service import StartService, start_service
from page_visits import Visitor, seen, serving
from probe_judges import judge_with, prefers_longer, probed
from run_data import adds_up, sums

__all__ = ["start_service"]

SVG = "{http://www.w3.org/2000/svg}"
HOSTILE = "<script>alert('model')</script>"
FORMULA = '=HYPERLINK("http://evil.example")'
# In sums, A is right but for every third. Three models meet in turn, each on either side.
MODELS = ("ada", "bob", HOSTILE)
ROWS = [
    row
    | {
        "tags": [f"t{place % 4}", FORMULA],
        "label": "AABBT"[place % 5] if place % 5 < 4 else "TIE",
        "modelA": MODELS[place % 7 % 3],
        "modelB": MODELS[(place % 7 % 3 + 1 + place % 2) % 3],
    }
    for place, row in enumerate(sums(60))
]
WINNERS = ["B" if (place + 1) % 3 == 0 else "A" for place in range(60)]
RIGHT = sum(row["label"] == winner for row, winner in zip(ROWS, WINNERS, strict=True))


@pytest.fixture(scope="module")
def visitor(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Visitor]:
    with serving(tmp_path_factory.mktemp("figures"), adds_up, judges=("good", "other")) as visitor:
        yield visitor


@pytest.fixture(scope="module")
def run(visitor: Visitor) -> str:
    return visitor.start(ROWS, judges=["good", "other"], name="Sums of three")


@pytest.fixture(scope="module")
def unlabelled(visitor: Visitor) -> str:
    return visitor.start(sums(12), judges=["good"], name="Without labels")


def number_of(run: str) -> str:
    return run.rsplit("/", 1)[1]


def there(visitor: Visitor, path: str) -> Html:
    """With its figures."""
    return visitor.wait(path, lambda page: "still calculating" not in page.text)


def in_chinese(visitor: Visitor, path: str) -> Html:
    there(visitor, path)
    return visitor.see(path, language="zh")


def test_the_list_of_runs_says_who_leads_and_how_often_orders_agree(
    visitor: Visitor, run: str
) -> None:
    store = visitor.service.app.state.service.store
    leads, *_, labels = sum_up_ranking(rank_runs(store, ["Sums of three"]))
    # By labels its two judges are right in 30 of 60 pairs, which rules out neither.
    assert (leads.code, labels.code) == ("ranking.leads_shared", "trust.labels_open")
    page = visitor.wait("/", lambda page: "may be as good" in page.text)
    told = re.sub("[\u2068\u2069]", "", page.by_id(f"run-{number_of(run)}-result").text).strip()
    assert told == f"{render(leads)} · the labels show no evidence that it beats a coin flip"
    # Of both judges and all comparisons: 60 pairs each, and no order changes a sum.
    assert "100% 120 of 120" in page.by_id(f"run-{number_of(run)}-trust").text


# Conclusions to paste


@pytest.mark.parametrize("language", LANGUAGES)
def test_conclusions_stand_as_markdown_to_be_copied(
    visitor: Visitor, run: str, unlabelled: str, language: Language
) -> None:
    def pasted(path: str) -> str:
        there(visitor, path)
        page = visitor.see(path, language=language)
        (text,) = [each for each in page.all("textarea") if "readonly" in each.attributes]
        button = page.one("button", type="button")
        assert "hidden" in button.attributes  # without a script there is nothing to press
        return "".join(text.texts)

    store, name, plain = visitor.service.app.state.service.store, "Sums of three", "Without labels"
    number = int(number_of(run))
    leads = sum_up_ranking(rank_runs(store, [name]))
    assert pasted(run) == as_markdown(leads, (name,), language)
    assert pasted(f"/rank?run={number}") == as_markdown(leads, (name,), language)
    (chosen,) = conclude(store, plain).conclusions
    assert pasted(unlabelled) == as_markdown(chosen.messages, (plain, "good"), language)
    found = analysis_of(DIFF, store, name, name, judge=("openai:good", "openai:other"))
    expected = as_markdown(found.messages, (f"{name} → {name}",), language)
    assert pasted(f"/compare?run={number}") == expected
    audit = pasted(f"{run}/audit")
    judge = store.runs.judges(number)[0].name
    report = audit_run(store, name, judge=judge)
    lines = [render(line, language, "page") for line in assess_audit(report).lines]
    head, _, told = audit.partition("\n")
    assert head.startswith(f"**{judge}: ")
    assert as_markdown("", lines, language).partition("\n")[2] == told


# Ranking


def test_without_a_run_the_ranking_asks_for_one(visitor: Visitor, run: str) -> None:
    page = visitor.see("/rank")
    boxes = page.all("input", type="checkbox", name="run")
    assert number_of(run) in [each.attributes["value"] for each in boxes]
    assert "Choose the runs" in page.text
    assert page.all("span", class_="figure") == []


def test_models_stand_best_first_with_intervals_and_ranges_of_ranks(
    visitor: Visitor, run: str
) -> None:
    page = there(visitor, f"/rank?run={number_of(run)}")
    told = visitor.client.get("/v1/rank", params={"runs": number_of(run)}).json()["ranking"]
    board = next(each for each in page.all("table") if "data-keys" in each.attributes)
    for model in told["models"]:
        assert model["model"] in board.text
        if model["low"] is not None and model["high"] is not None:
            assert f"({model['low']:,.0f} to {model['high']:,.0f})" in board.text
        assert f"{model['rankLow']} to {model['rankHigh']}" in board.text or (
            model["rankLow"] == model["rankHigh"]
        )
    names = [each.text for each in page.all("th", scope="row") if board in each.within]
    assert names == [model["model"] for model in told["models"]]


def test_neighbours_that_do_not_differ_significantly_are_marked(visitor: Visitor, run: str) -> None:
    page = there(visitor, f"/rank?run={number_of(run)}")
    told = visitor.client.get("/v1/rank", params={"runs": number_of(run)}).json()["ranking"]
    marked = [each.within[-1].text for each in page.all("span", class_="alike")]
    assert len(marked) == len(told["indistinguishable"])
    for text, pair in zip(marked, told["indistinguishable"], strict=True):
        assert f"not significantly different from {pair['worse']}" in text


def test_a_cell_of_the_win_matrix_mirrors_its_counterpart(visitor: Visitor, run: str) -> None:
    page = there(visitor, f"/rank?run={number_of(run)}")
    table = page.one("table", class_="matrix")
    cells = [each.text for each in page.all("td", class_="number") if table in each.within]
    numbers = [[float(found) for found in re.findall(r"[\d.]+", cell)] for cell in cells]
    size = len(MODELS)
    for row in range(size):
        for column in range(row + 1, size):
            value, low, high = numbers[row * size + column]
            theirs, their_low, their_high = numbers[column * size + row]
            assert value + theirs == pytest.approx(100, abs=0.11)
            assert low + their_high == pytest.approx(100, abs=0.11)
            assert high + their_low == pytest.approx(100, abs=0.11)
            assert low <= value <= high


def test_a_tag_and_a_judge_leave_fewer_games(visitor: Visitor, run: str) -> None:
    number = number_of(run)
    games = {
        query: re.search(r"(\d+) verdicts ·", there(visitor, f"/rank?run={number}{query}").text)
        for query in ("", "&tag=t1", "&tag=t1&judge=good", "&judge=other")
    }
    told = {query: int(found[1]) for query, found in games.items() if found}
    # 60 pairs, two judges; every fourth pair has the tag.
    assert told == {"": 120, "&tag=t1": 30, "&tag=t1&judge=good": 15, "&judge=other": 60}


def test_verdicts_that_changed_with_the_order_may_be_left_out(visitor: Visitor) -> None:
    rows = [row | {"modelA": "ada", "modelB": "bob"} for row in sums(12)]
    for n in (1, 2, 3, 4):  # both are right: the judge takes the first that it sees
        right = f"It is {2 * n}, by counting."
        rows[n - 1] |= {"response_a": right, "response_b": f"{right} Twice."}
    number = number_of(visitor.start(rows, judges=["good"], name="Both right"))
    page = there(visitor, f"/rank?run={number}")
    assert "12 verdicts" in page.text
    assert "The rank ranges (95%) are valid for all models together" in page.text
    assert "4 of 12 verdicts (33.3%) flipped with the order" in page.text
    assert "“Orders disagree” above to rank without them" in page.text
    without = there(visitor, f"/rank?run={number}&inconsistent=excluded")
    assert "8 verdicts" in without.text
    assert "(33.3%) flipped with the order and are left out" in without.text
    to = next(link for link in without.all("a", class_="plain") if link.text == "8")
    assert "ending=decided" in to.attributes["href"]
    told = in_chinese(visitor, f"/rank?run={number}")
    assert "名次范围（95%）对所有模型同时成立" in told.text
    assert "12 个裁决中有 4 个（33.3%）随顺序翻转" in told.text
    asked = {"runs": number, "inconsistent": "excluded"}
    ranked = visitor.client.get("/v1/rank", params=asked).json()
    assert (ranked["ranking"]["games"], ranked["flipped"]) == (8, 4)
    visitor.see(f"/rank?run={number}&inconsistent=coin", status=422)


def test_what_cannot_be_ranked_says_why(visitor: Visitor, run: str, unlabelled: str) -> None:
    page = there(visitor, f"/rank?run={number_of(unlabelled)}")
    assert "do not name their models" in page.text
    assert page.all("span", class_="figure") == []
    page = there(visitor, f"/rank?run={number_of(run)}&tag=no+such+tag")
    assert "no row has the tag" in page.text
    visitor.see("/rank?run=999999", status=404)
    visitor.see(f"/rank?run={number_of(run)}&ties=coin", status=422)


# Audit


def test_an_audit_stands_with_its_intervals(visitor: Visitor, run: str) -> None:
    page = there(visitor, f"{run}/audit")
    told = visitor.client.post("/v1/audits", json={"run": number_of(run), "judge": "good"}).json()
    accuracy = told["accuracy"]
    assert (accuracy["part"], accuracy["of"]) == (RIGHT, 60)
    shown = (
        f"{100 * accuracy['value']:.1f}% "
        f"({100 * accuracy['low']:.1f} to {100 * accuracy['high']:.1f})"
    )
    row = next(each for each in page.all("tr") if each.text.startswith("Accuracy"))
    assert shown in row.text
    assert f"{RIGHT} of 60" in row.text
    kappa = told["kappa"]
    assert f"{kappa['value']:.2f} ({kappa['low']:.2f} to {kappa['high']:.2f})" in page.text
    for line in told["findings"]["lines"]:
        assert line in page.text


def test_the_confusion_matrix_counts_every_labelled_pair(visitor: Visitor, run: str) -> None:
    page = there(visitor, f"{run}/audit")
    table = page.one("table", class_="matrix")
    rows = [each for each in page.all("tr") if table in each.within][1:]
    counted = [[int(cell.text) for cell in page.all("td") if row in cell.within] for row in rows]
    labels = [row["label"] for row in ROWS]
    expected = [
        [
            sum(
                (label, winner) == (theirs, ours)
                for label, winner in zip(labels, WINNERS, strict=True)
            )
            # A, tie, inconsistent, B and invalid; this judge decides every pair.
            for ours in ("A", "TIE", "inconsistent", "B", "invalid")
        ]
        for theirs in ("A", "TIE", "B")
    ]
    assert counted == expected


def test_a_disagreement_leads_to_its_pair(visitor: Visitor, run: str) -> None:
    page = there(visitor, f"{run}/audit")
    rows = page.all("td", class_="what")
    assert len(rows) == 12 < 60 - RIGHT  # the others are behind the link
    links = [each for each in page.all("a") if each.within[-1] in rows]
    first = visitor.see(links[0].attributes["href"])
    assert links[0].text in first.text
    assert all("What is" in each.text for each in links)
    everything = next(link for link in page.links if "disagrees=true" in link and "tag" not in link)
    visitor.see(everything)


def test_judges_are_audited_one_by_one(visitor: Visitor, run: str) -> None:
    page = there(visitor, f"{run}/audit?judge=openai:other")
    assert page.one("a", href=f"{run}/audit?judge=openai%3Aother").attributes["aria-current"]
    assert page.by_id("findings").text.startswith("other:")


@pytest.mark.parametrize("part", ["audit", "calibration"])
def test_without_labels_no_figure_is_made_up(visitor: Visitor, unlabelled: str, part: str) -> None:
    page = there(visitor, f"{unlabelled}/{part}")
    assert "has a label" in page.text
    assert "There are none yet" in page.text
    assert f"{unlabelled}/vote" in page.links
    assert page.all("span", class_="figure") == []
    assert page.all("img") == []


# Calibration


def test_a_calibration_stands_before_and_after(visitor: Visitor, run: str) -> None:
    page = there(visitor, f"{run}/calibration")
    assert "Learned from 60 labelled verdicts on 60 prompts" in page.text
    row = next(each for each in page.all("tr") if each.text.startswith("Brier score"))
    # It said 0.9 each time: 0.01 where that was right and 0.81 where it was not.
    before = (0.01 * RIGHT + 0.81 * (60 - RIGHT)) / 60
    assert f"Brier score{before:.2f} (" in row.text.replace(" Brier", "Brier")
    # Every verdict says 0.9: one point before, and what was learned after.
    points = [each for each in page.all("circle") if "before" in each.attributes["class"]]
    assert [each.attributes["cx"] for each in points] == [f"{240 * 0.9:.1f}"]
    assert [each.attributes["cy"] for each in points] == [f"{240 - 240 * RIGHT / 60:.1f}"]


# Probes


@pytest.mark.slow
def test_probe_runs_are_told_with_the_cases_that_failed(
    tmp_path: Path, start_service: StartService
) -> None:
    cases = probe_cases(["identical", "longer", "languages"])
    report = asyncio.run(probed(judge_with(prefers_longer, cases), cases, tmp_path))
    service = start_service(adds_up, store=str(tmp_path / "store.db"))
    visitor = Visitor(service)
    page = there(visitor, "/runs/1/probes")
    for probe in report.probes:
        row = next(each for each in page.all("tr") if each.text.startswith(f"{probe.probe} "))
        for count in (probe.n, probe.passed, probe.wrong, probe.inconsistent):
            assert str(count) in [cell.text for cell in page.all("td") if row in cell.within]
        assert probe.share.low is not None
        assert f"{100 * probe.share.low:.1f} to" in row.text
    failing = [id_ for probe in report.probes for case in probe.failing for id_ in case.ids]
    assert failing
    shown = [each.text for each in page.all("a") if "/pair?id=" in each.attributes["href"]]
    assert sorted(shown) == sorted(failing)
    assert visitor.client.get(page.links[-1]).status_code == 303
    audit = there(visitor, "/runs/1/audit")
    assert "/runs/1/probes" in audit.links
    assert visitor.ask("/runs/1/charts/probes.svg").status_code == 200


def test_another_run_is_no_run_of_probes(visitor: Visitor, run: str) -> None:
    assert "not a probe run" in there(visitor, f"{run}/probes").text


# Charts

OF_RUN = ("win-rate", "outcomes", "criteria", "tags", "length", "reliability", "yardsticks")


def charts_of(run: str) -> list[str]:
    own = [f"{run}/charts/{name}.{{kind}}?judge=openai:good&" for name in OF_RUN]
    both = [
        f"/rank/charts/{name}.{{kind}}?run={number_of(run)}&" for name in ("leaderboard", "matrix")
    ]
    return own + both


@pytest.mark.slow
def test_every_chart_comes_as_svg_and_csv(visitor: Visitor, run: str) -> None:
    for part in ("audit", "calibration"):
        there(visitor, f"{run}/{part}")
    there(visitor, f"/rank?run={number_of(run)}")
    for address in charts_of(run):
        drawn = visitor.ask(address.format(kind="svg"))
        assert drawn.status_code == 200, drawn.text
        assert drawn.headers["content-type"] == "image/svg+xml"
        assert "sandbox" in drawn.headers["content-security-policy"]
        root = ElementTree.fromstring(drawn.content)  # noqa: S314 - our own
        assert root.tag == f"{SVG}svg"
        assert [each for each in root.iter() if each.tag == f"{SVG}script"] == []
        table = visitor.ask(address.format(kind="csv"))
        assert table.headers["content-type"] == "text/csv; charset=utf-8"
        rows = list(csv.DictReader(io.StringIO(table.text)))
        assert rows
        assert all(row["figure"] and row["name"] for row in rows)


def test_a_chart_speaks_the_language_of_the_page(visitor: Visitor, run: str) -> None:
    address = charts_of(run)[0].format(kind="svg")
    assert "胜率" in visitor.ask(f"{address}lang=zh").text


def test_what_a_page_draws_stands_beside_it_in_figures_and_can_be_saved(
    visitor: Visitor, run: str
) -> None:
    """No page loads a picture: drawings are part of it, and readers of screens skip them."""
    own = (f"{run}{rest}" for rest in ("/audit", "/calibration", "?comparison=1"))
    for path in (f"/rank?run={number_of(run)}", *own):
        page = there(visitor, path)
        assert page.all("img") == []
        drawings = page.all("svg")
        assert drawings
        assert {each.attributes["aria-hidden"] for each in drawings} == {"true"}
        saved = [each for each in page.all("a") if "/charts/" in each.attributes.get("href", "")]
        assert {each.text for each in saved} == {"SVG", "CSV"}
        assert visitor.ask(saved[-1].attributes["href"]).status_code == 200


def test_a_chart_is_not_sent_twice(visitor: Visitor, run: str) -> None:
    address = charts_of(run)[1].format(kind="svg")
    first = visitor.ask(address)
    again = visitor.ask(address, **{"If-None-Match": first.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")


def test_hostile_names_are_texts_of_charts_and_no_formulas_of_tables(
    visitor: Visitor, run: str
) -> None:
    drawn = visitor.ask(f"/rank/charts/leaderboard.svg?run={number_of(run)}")
    root = ElementTree.fromstring(drawn.content)  # noqa: S314 - our own
    assert HOSTILE in [each.text for each in root.iter(f"{SVG}text")]
    rows = csv.DictReader(io.StringIO(visitor.ask(f"{run}/charts/tags.csv").text))
    names = {row["name"] for row in rows}
    assert f"'{FORMULA}" in names
    assert FORMULA not in names


@pytest.mark.parametrize("file", ["nothing.svg", "win-rate.png", "win-rate"])
def test_there_is_no_other_chart(visitor: Visitor, run: str, file: str) -> None:
    visitor.see(f"{run}/charts/{file}", status=404)
    visitor.see(f"/rank/charts/{file}?run={number_of(run)}", status=404)


# All of them

_ENGLISH = re.compile(r"[a-z]{3,} [a-z]{3,} [a-z]{3,}")


@pytest.mark.parametrize("part", ["rank", "audit", "calibration", "probes"])
def test_pages_are_in_both_languages(visitor: Visitor, run: str, part: str) -> None:
    path = f"/rank?run={number_of(run)}" if part == "rank" else f"{run}/{part}"
    page = in_chinese(visitor, path)
    assert page.one("html").attributes["lang"] == "zh-CN"
    said = page.by_id("content").text
    for code in page.all("code"):
        said = said.replace(code.text, "")
    assert _ENGLISH.findall(said) == []


@pytest.mark.parametrize("language", LANGUAGES)
def test_no_share_stands_without_its_uncertainty(visitor: Visitor, run: str, language: str) -> None:
    for path in (f"/rank?run={number_of(run)}", f"{run}/audit", f"{run}/calibration"):
        there(visitor, path)
        page = seen(visitor.ask(path, **{"Accept-Language": language}))
        shares = [each for each in page.all("span", class_="figure") if "%" in each.text]
        for share in shares:
            around = share.within[-1].text
            assert any(word in around for word in (" to ", " 至 ", "no interval", "无区间"))
