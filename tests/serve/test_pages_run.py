"""The runs' list, a run's own page, and a run that is started and watched from there."""

from __future__ import annotations

import itertools
import re
import threading
import time
from collections.abc import Iterator

import pytest
from scipy.stats import binomtest

from browser_site import JUDGES, KnowingJudge, answers_by_model
from evenhand.store import NewJudge, NewRun, open_store
from html_reading import Html
from http_service import StartService, start_service
from judged_runs import judged_run
from page_visits import Visitor, count_of, seen, serving
from run_data import adds_up, sums
from servers import Reply, SeenRequest, Slow, error_reply
from store_values import Begun, item
from stored_runs import Row, make_run, says

__all__ = ["start_service"]

ROWS = [
    row | {"tags": [f"t{place % 3}"], "label": "A", "modelA": "old", "modelB": "new"}
    for place, row in enumerate(sums(30))
]


def exact(part: int, of: int) -> tuple[float, float]:
    """Clopper and Pearson (1934), by SciPy."""
    found = binomtest(part, of).proportion_ci(confidence_level=0.95, method="exact")
    return float(found.low), float(found.high)


@pytest.fixture(scope="module")
def visitor(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Visitor]:
    with serving(tmp_path_factory.mktemp("pages"), adds_up, judges=("good", "other")) as visitor:
        yield visitor


@pytest.fixture(scope="module")
def run(visitor: Visitor) -> str:
    return visitor.start(ROWS, judges=["good", "other"], name="Sums")


def test_the_list_tells_of_each_run_how_it_stands_and_what_it_came_to(
    visitor: Visitor, run: str
) -> None:
    page = visitor.wait("/", lambda page: "still calculating" not in page.text)
    row = next(each for each in page.all("tr") if "Sums" in each.text)
    low, high = exact(10, 30)
    assert "finished" in row.text
    assert "30 pairs" in row.text
    assert "60 / 60" not in row.text  # of what is finished nothing is left to count
    # A is right in 20 of 30 pairs, by each of the two judges; all figures are of the first.
    assert "A won 20" in row.text
    assert "30 of 30" in row.text
    assert f"33.3% ({100 * low:.1f} to {100 * high:.1f})" in row.text
    assert "by good; no significant difference for any of 2 judges" in row.text
    assert run in page.links


def test_where_judges_say_otherwise_the_list_and_the_run_tell_of_it(visitor: Visitor) -> None:
    with open_store(visitor.service.config.store) as store:
        judged_run(store, "Split", {"one": "B" * 40, "two": "A" * 40, "three": "AB" * 20})
        judged_run(store, "Same", {"one": "B" * 40, "four": "B" * 40})
    page = visitor.wait("/", lambda page: "still calculating" not in page.text)
    split, same = (
        next(each.text for each in page.all("tr") if name in each.text)
        for name in ("Split", "Same")
    )
    assert "B is better: 100%" in split
    assert "B won 40" in split
    assert "by one; 2 of 3 judges disagree" in split
    assert "by one; all 2 judges agree" in same
    run = next(each for each in page.all("a") if each.text == "Split").attributes["href"]
    page = visitor.wait(run, lambda page: "still calculating" not in page.text)
    (told,) = page.all("p", class_="warns")
    assert told.text == "Other judges of the same pairs disagree:"
    said = [each.text.split("(")[0] for each in page.all("li") if ": " in each.text]
    assert said[0] == "two: \u2068B\u2069 loses to \u2068A\u2069: 0% win rate "
    assert "are not significantly different" in said[1]


def test_the_list_counts_by_model_where_models_change_sides(visitor: Visitor) -> None:
    with open_store(visitor.service.config.store) as store:
        models = [("old", "new"), ("new", "old")] * 20
        judged_run(store, "Sides", {"sure": "BA" * 20}, models=models)
    page = visitor.wait("/", lambda page: "still calculating" not in page.text)
    row = next(each.text for each in page.all("tr") if "Sides" in each.text)
    # The new one won every time; by the labels of the data it would be 20 to 20.
    assert "new is better: 100%" in row
    assert "B won 40" in row
    assert "A won" not in row


def test_a_claim_stands_beside_the_check_that_fails(visitor: Visitor) -> None:
    # Of 30 wins of B 24 are right; with 19 ties that are not, 24 of 49 labels: not half. One pair
    # has no label: where all have one, they are the claim.
    said, labels = "B" * 30 + "T" * 20, "B" * 24 + "A" * 6 + "B" * 19 + "."
    models = [("old", "new")] * 50
    with open_store(visitor.service.config.store) as store:
        run = judged_run(store, "Doubtful", {"doubtful": said}, labels=labels, models=models)
    page = visitor.wait(f"/runs/{run}", lambda page: "still calculating" not in page.text)
    assert "beats" in page.by_id("result").text
    (told,) = page.all("p", class_="warns")
    assert told.text == "⚠ Use with care. Failed checks: Agrees with labels"


def test_below_a_leaderboard_stand_the_checks_of_each_judge(visitor: Visitor) -> None:
    models = [("x", "y"), ("y", "z"), ("x", "z")] * 20
    with open_store(visitor.service.config.store) as store:
        run = judged_run(store, "Three", {"p": "A" * 60, "q": "B" * 60}, models=models)
    page = visitor.wait(f"/runs/{run}", lambda page: "still calculating" not in page.text)
    assert [each.text for each in page.all("h2", class_="small")] == ["p", "q"]
    for place in (1, 2):
        told = page.by_id(f"judge-{place}-trust-orders_agree").text
        assert "100.0%" in told
        assert "60 of 60" in told


def test_ranks_by_tag_are_compared_among_the_models_of_the_tag(visitor: Visitor) -> None:
    """The two worst of four meet under a tag alone: they are first and second there, as before."""
    rows = [
        Row(
            f"q{n}{one}{two}",
            says("A"),
            model_a=one,
            model_b=two,
            tags=("rare" if one == "c" else "usual",),
        )
        for n in range(30)
        for one, two in itertools.combinations("abcd", 2)
    ]
    with open_store(visitor.service.config.store) as store:
        run = make_run(store, "Tags", rows)
        store.runs.update(run, state="finished")
    path = f"/rank?run={run}&by=tag"
    page = visitor.wait(path, lambda page: "of 2" in page.text)
    cells = [each for each in page.all("td") if "of 2" in each.text]
    assert [each.text.split()[0] for each in cells] == ["1", "2"]
    assert ["class" in each.attributes for each in cells] == [False, False]


def test_labels_that_come_later_change_what_the_list_says(visitor: Visitor) -> None:
    def told() -> str:
        page = visitor.wait("/", lambda page: "still calculating" not in page.text)
        return next(each.text for each in page.all("tr") if "Unlabelled" in each.text)

    with open_store(visitor.service.config.store) as store:
        judged_run(store, "Unlabelled", {"coin": "B" * 40})
    assert "B is better" in told()
    with open_store(visitor.service.config.store) as store:
        judged_run(store, "Labelled", {"coin": "AB" * 100}, labels="AABB" * 50)
    assert "the labels show no evidence that the judge beats a coin flip" in told()


def test_the_win_rate_stands_with_its_interval(visitor: Visitor, run: str) -> None:
    page = visitor.see(run)
    low, high = exact(10, 30)
    assert f"33.3% ({100 * low:.1f} to {100 * high:.1f})" in page.text
    assert "95% interval" in page.text


def test_no_share_stands_without_its_uncertainty(visitor: Visitor, run: str) -> None:
    page = visitor.see(run)
    for figure in page.all("span", class_="figure"):
        if "%" in figure.text:
            around = figure.within[-1].text
            assert " to " in around or "no interval" in around


def test_every_count_leads_to_as_many_verdicts(visitor: Visitor, run: str) -> None:
    page = visitor.see(run)
    counts = [
        each
        for each in page.all("a")
        if each.text.isdigit() and "/pairs?" in each.attributes["href"]
    ]
    # Two outcomes of the whole, of each of three tags and of the criterion; both judges' table.
    assert len(counts) >= 2 * (1 + 3 + 1) + 2 * 2
    for count in counts:
        table = visitor.see(count.attributes["href"])
        assert count_of(table) == count.text, count.attributes["href"]


@pytest.mark.slow
def test_every_kind_of_verdict_is_counted_and_found(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    """Two judges that decide, tie, follow the place and mumble; models that change places."""
    cases = answers_by_model()
    directory = tmp_path_factory.mktemp("rich")
    with serving(directory, KnowingJudge(cases), judges=JUDGES) as visitor:
        run = visitor.start([case.row for case in cases], judges=JUDGES, criteria="accuracy")
        page = visitor.see(run)
        table = page.one("table", class_="by-judge")
        links = [each for each in page.all("a") if table in each.within and each.text.isdigit()]
        for link in links:
            found = visitor.see(link.attributes["href"])
            assert count_of(found) == link.text, link.attributes["href"]
        sure = sum(case.manners["careful"] in ("decides", "ties") for case in cases)
        assert count_of(visitor.see(f"{run}/pairs?judge=careful&outcome=win")) == str(
            sum(case.manners["careful"] == "decides" for case in cases)
        )
        unsure = [
            count_of(visitor.see(f"{run}/pairs?judge=careful&outcome={outcome}"))
            for outcome in ("inconsistent", "invalid")
        ]
        assert sum(map(int, unsure)) == len(cases) - sure


def test_a_win_rate_leads_to_its_pairs(visitor: Visitor, run: str) -> None:
    page = visitor.see(run)
    tag = next(each for each in page.all("a") if each.text == "t1")
    assert count_of(visitor.see(tag.attributes["href"])) == "10"


def test_the_side_the_ties_and_the_level_can_be_chosen(visitor: Visitor, run: str) -> None:
    low, high = exact(20, 30)
    page = visitor.wait(f"{run}?side=A&ties=half&level=0.95", lambda page: "66.7" in page.text)
    assert f"66.7% ({100 * low:.1f} to {100 * high:.1f})" in page.text
    chosen = [each.text for each in page.all("option", selected="")]
    assert chosen == ["A", "count as half", "95%"]


@pytest.mark.parametrize("query", ["side=C", "level=2", "nonsense=1", "comparison=0"])
def test_what_a_page_does_not_know_is_told_as_a_page(
    query: str, visitor: Visitor, run: str
) -> None:
    page = visitor.see(f"{run}?{query}", status=422)
    assert query.split("=")[0] in page.one("h1", class_="error").text


@pytest.mark.parametrize("path", ["/runs/999", "/runs/none", f"/runs/{'9' * 300}", "/runs/1%00"])
def test_a_run_that_is_not_there_is_told_as_a_page(path: str, visitor: Visitor) -> None:
    assert "no run" in visitor.see(path, status=404).one("h1", class_="error").text


def test_pages_are_in_the_language_that_the_reader_prefers(visitor: Visitor, run: str) -> None:
    for path in ("/", run, f"{run}/pairs", f"{run}/pairs/3"):
        chinese = visitor.see(path, language="zh-CN,en;q=0.5")
        assert chinese.one("html").attributes["lang"] == "zh-CN"
        assert "运行" in chinese.text
        assert visitor.see(path).one("html").attributes["lang"] == "en"


def test_a_language_that_is_chosen_is_kept(visitor: Visitor, run: str) -> None:
    answer = visitor.ask(f"{run}?lang=zh")
    cookie = answer.headers["set-cookie"]
    assert "SameSite=strict" in cookie
    assert "HttpOnly" in cookie
    visitor.client.cookies.clear()


def test_a_run_goes_on_under_the_readers_eyes(start_service: StartService) -> None:
    go_on = threading.Event()

    def waits(request: SeenRequest) -> Reply:
        go_on.wait(30)
        return adds_up(request)

    visitor = Visitor(start_service(waits))
    run = visitor.begin(sums(4))
    page = visitor.see(run)
    assert page.by_id("progress").attributes["data-live"] == f"{run}/progress"
    assert page.all("meta", **{"http-equiv": "refresh"})[0].within[-1].tag == "noscript"
    assert "0 of 4 judged" in page.text
    # Of nothing there are no figures, no notes and no tables, but they come by themselves.
    figures = page.by_id("figures")
    assert figures.text == "No conclusion yet."
    assert figures.attributes["data-live"] == run
    news = Html(visitor.ask(f"{run}/progress").text)
    assert "data-live" in news.by_id("progress").attributes
    table = visitor.see("/").one("table")
    assert table.attributes["data-live"] == "/progress"
    go_on.set()
    visitor.wait(run, lambda page: "4 of 4 judged" in page.text)
    assert "data-live" not in visitor.ask(f"{run}/progress").text
    assert "data-live" not in seen(visitor.ask(run)).by_id("progress").attributes


def test_the_page_of_a_run_says_why_nothing_is_answered(start_service: StartService) -> None:
    go_on = threading.Event()

    def limits(request: SeenRequest) -> Reply:
        refusal = error_reply(429, "slow down", headers={"retry-after": "1"})
        return adds_up(request) if go_on.is_set() else refusal

    visitor = Visitor(start_service(limits))
    run = visitor.begin(sums(4))
    shown = {
        "en": r"rate-limited by good, retrying in [01] s",
        "zh": r"good 限制了请求速率，[01] 秒后重试",
    }
    for language, pattern in shown.items():
        for path in (run, "/"):
            deadline = time.monotonic() + 20
            while not re.search(pattern, visitor.see(path, language=language).text):
                assert time.monotonic() < deadline, path
                time.sleep(0.1)
    go_on.set()
    page = visitor.wait(run, lambda page: "4 of 4 judged" in page.text)
    assert "rate-limited" not in page.text


@pytest.mark.slow
def test_a_run_is_stopped_and_goes_on_by_the_buttons_of_its_page(
    start_service: StartService,
) -> None:
    quick = threading.Event()

    def takes_its_time(request: SeenRequest) -> Reply | Slow:
        reply = adds_up(request)
        return reply if quick.is_set() else Slow(0.2, reply)

    visitor = Visitor(start_service(takes_its_time))
    run = visitor.begin(sums(1000))
    form = next(each for each in visitor.see(run).all("form") if "Stop" in each.text)
    assert form.attributes == {"method": "post", "action": f"{run}/cancel"}
    assert visitor.send(form.attributes["action"]).headers["location"] == run
    stopped = visitor.wait(run, lambda page: "stopped" in page.by_id("progress").text)
    quick.set()
    form = next(each for each in stopped.all("form") if "Resume" in each.text)
    assert visitor.send(form.attributes["action"]).status_code == 303
    visitor.wait(run, lambda page: "1,000 of 1,000 judged" in page.text)


def test_a_run_without_a_judge_cannot_be_started(tmp_path_factory: pytest.TempPathFactory) -> None:
    with serving(tmp_path_factory.mktemp("none"), adds_up, judges=()) as visitor:
        page = visitor.see("/new")
        assert page.all("form", action="/runs") == []
        assert "no judge" in page.text


def test_a_model_that_judges_twice_is_two_judges(visitor: Visitor) -> None:
    with open_store(visitor.service.config.store) as store:
        run = store.runs.create(NewRun("Twice", "twice", {}, ("pairs.jsonl",)))
        store.items.add(run.id, [item(f"q{n}", row=n) for n in range(1, 41)])
        judges = [store.runs.add_judge(NewJudge(key, "openai:m", key)) for key in ("v1", "v2")]
        store.runs.set_judges(run.id, judges)
        Begun(store, run.id, judges[0], "Twice").judge_all("A")
        Begun(store, run.id, judges[1], "Twice").judge_all("B")
        store.runs.update(run.id, intake_done=True, state="finished")
        assert [each.name for each in store.runs.judges(run.id)] == ["openai:m", "openai:m (2)"]
    page = visitor.wait("/", lambda page: "still calculating" not in page.text)
    row = next(each.text for each in page.all("tr") if "Twice" in each.text)
    assert "1 of 2 judges disagrees" in row
    page = visitor.wait(f"/runs/{run.id}", lambda page: "still calculating" not in page.text)
    said = [each.text for each in page.all("li") if each.text.startswith("openai:m (2): ")]
    assert len(said) == 1
    to = next(each.attributes["href"] for each in page.all("a") if each.text == "40 verdicts")
    assert count_of(visitor.wait(to, lambda page: page.all("strong"))) == "40"
