"""Every figure is a link to the pairs behind it: every count leads to as many verdicts."""

from __future__ import annotations

import re
from collections.abc import Iterator
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest

from evenhand.contract import Winner
from evenhand.store import NewVote, open_store
from html_reading import Element, Html
from page_visits import Visitor, count_of, serving
from run_data import right_place, sums
from scripted import answer_json
from servers import Reply, SeenRequest, chat_reply

CRITERIA = "accuracy\nclarity"
# Some names are none, one is met by itself, and everybody stands on either side.
NAMES = (None, "ada", "bob", "b & b", "ada")
ROWS = [
    row
    | {
        "tags": [f"t{place % 3}", *(["rare"] if place % 17 == 0 else [])],
        "label": (None, "A", "B", "TIE")[place % 4],
        "modelA": NAMES[place % 5],
        "modelB": NAMES[(place // 5 + 2 * place) % 5],
    }
    for place, row in enumerate(sums(90))
]
WINNERS: tuple[Winner, ...] = ("A", "B", "TIE", "A", "B")
NAMED = [row for row in ROWS if row["modelA"] and row["modelB"]]


def wavers(request: SeenRequest) -> Reply:
    """A judge of every outcome: it knows sums, ties, mumbles, or goes by the place."""
    asked = re.search(r"What is (\d+) plus", request.prompt)
    assert asked is not None
    kind = int(asked[1]) % 7
    if kind == 0:
        return chat_reply("I would rather not say.")
    right = right_place(request.prompt)
    winner = {1: "TIE", 2: "A"}.get(kind, right)
    if request.json["model"] == "other" and kind == 3:
        winner = "B" if right == "A" else "A"
    criteria = [("accuracy", right), ("clarity", "A" if kind % 2 else "TIE")]
    return chat_reply(answer_json(winner, confidence=0.5 + kind / 20, criteria=criteria))


@pytest.fixture(scope="module")
def visitor(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Visitor]:
    with serving(tmp_path_factory.mktemp("links"), wavers, judges=("good", "other")) as visitor:
        yield visitor


@pytest.fixture(scope="module")
def many(visitor: Visitor) -> str:
    """The address of a run with models that change places."""
    return visitor.start(ROWS, judges=["good", "other"], name="many", criteria=CRITERIA)


@pytest.fixture(scope="module")
def two(visitor: Visitor) -> str:
    """And of one in which A and B are what they are called."""
    rows = [row | {"modelA": None, "modelB": None} for row in ROWS[:40]]
    return visitor.start(rows, judges=["good"], name="two", criteria=CRITERIA)


def there(visitor: Visitor, path: str) -> Html:
    return visitor.wait(path, lambda page: "still calculating" not in page.text)


def counts(page: Html) -> list[tuple[int, str]]:
    """Every link to a table whose text is a count, and the count. Passes that could not be read
    are no verdicts: there may be two in one."""
    found = []
    for each in page.all("a"):
        to = each.attributes.get("href", "")
        told = each.text.replace(",", "")
        if "/pairs?" in to and told.isdigit() and "outcome-passes" not in _classes(each):
            found.append((int(told), to))
    return found


def _classes(element: Element) -> list[str]:
    return element.attributes.get("class", "").split()


class Tables:
    """How many verdicts an address shows; each is asked for once."""

    def __init__(self, visitor: Visitor) -> None:
        self._visitor = visitor
        self._known: dict[str, int] = {}

    def count(self, to: str) -> int:
        if to not in self._known:
            self._known[to] = int(count_of(self._visitor.see(to)))
        return self._known[to]


@pytest.fixture(scope="module")
def tables(visitor: Visitor) -> Tables:
    return Tables(visitor)


def assert_each_leads_to_as_many(found: list[tuple[int, str]], tables: Tables) -> None:
    wrong = [(count, tables.count(to), to) for count, to in found if tables.count(to) != count]
    assert wrong == []


def test_every_check_of_trust_opens_the_pairs_that_it_counts(
    visitor: Visitor, two: str, tables: Tables
) -> None:
    page = there(visitor, two)
    strip = page.one("ul", class_="trust")
    found = []
    for each in page.all("a"):
        told = re.match(r"(\d+) of (\d+)$", each.text)
        if strip in each.within and told:
            found.append((int(told[1]), each.attributes["href"]))
    # Orders agree, flips towards the first position, and labels; both responses are as long.
    assert len(found) == 3
    assert_each_leads_to_as_many(found, tables)


def test_every_cell_of_a_comparison_opens_as_many_pairs(visitor: Visitor, many: str) -> None:
    """Of one run by two judges: every pair is in one cell."""
    number = many.rsplit("/", 1)[1]
    page = there(visitor, f"/compare?run={number}")
    cells = [each for each in page.all("a") if "toOutcome=" in each.attributes.get("href", "")]
    assert sum(int(each.text) for each in cells) == len(ROWS)
    assert len(cells) > 4
    for each in cells:
        opened = there(visitor, each.attributes["href"].partition("#")[0])
        head = opened.by_id("flipped").text
        assert re.search(rf"\b{each.text} pairs?\b", head), head
    before, now = (visitor.see(f"{many}/pairs?judge={judge}") for judge in ("good", "other"))
    assert count_of(before) == count_of(now) == str(len(ROWS))


@pytest.mark.slow
@pytest.mark.parametrize("side", ["A", "B"])
def test_every_count_of_a_run_leads_to_as_many_verdicts(
    visitor: Visitor, many: str, tables: Tables, side: str
) -> None:
    pages = [there(visitor, f"{many}?side={side}")]
    while onward := [a for a in pages[-1].all("a") if a.attributes.get("rel") == "next"]:
        pages.append(there(visitor, onward[0].attributes["href"].partition("#")[0]))
    comparisons = [to for page in pages for to in page.links if "comparison=" in to]
    # Of 5 names, one of them twice and one nobody's: who meets whom, by each of two judges.
    met = {frozenset((row["modelA"], row["modelB"])) for row in ROWS}
    assert len(comparisons) == len(set(comparisons)) == 2 * len(met)
    found = list(dict.fromkeys(each for page in pages for each in counts(page)))
    assert len(found) > 100
    for number in (2, len(met)):
        found += counts(there(visitor, f"{many}?side={side}&comparison={number}"))
    assert_each_leads_to_as_many(found, tables)


def test_where_labels_say_it_the_addresses_stay_short(
    visitor: Visitor, two: str, tables: Tables
) -> None:
    found = counts(there(visitor, two))
    assert len(found) > 20
    assert not any("model" in to or "named" in to for _, to in found)
    assert_each_leads_to_as_many(found, tables)


@pytest.mark.slow
def test_every_count_of_an_audit_leads_to_as_many_verdicts(
    visitor: Visitor, many: str, tables: Tables
) -> None:
    for judge in ("good", "other"):
        page = there(visitor, f"{many}/audit?judge={judge}")
        found = counts(page)
        confusion = page.by_id("confusion").within[-1]
        cells = {urlsplit(to).query for to in links_in(page, confusion)}
        # Inconsistent and invalid apart, each of three labels; wins and ties are decided.
        for which in ("outcome=inconsistent", "outcome=invalid", "ending=decided"):
            assert sum(which in each for each in cells) >= 3
        assert_each_leads_to_as_many(found, tables)
        shares = parts(page)
        assert len(shares) > 5
        assert_each_leads_to_as_many(shares, tables)
        (everything,) = [each for each in page.all("a") if each.text.startswith("Show all")]
        told = int(re.findall(r"\d+", everything.text)[0])
        assert_each_leads_to_as_many([(told, everything.attributes["href"])], tables)


@pytest.fixture(scope="module")
def voted(visitor: Visitor) -> str:
    """Of a run in which people have voted on pairs with a label and on pairs without."""
    run = visitor.start(ROWS[:60], judges=["good", "other"], name="voted", criteria=CRITERIA)
    with open_store(visitor.service.config.store) as store:
        pairs = [each.pair_id for each in store.items.all(int(run.rsplit("/", 1)[1]))]
        for place, pair in enumerate(pairs):
            said = WINNERS[place % 5]
            store.votes.add([NewVote(pair, "ann", said), NewVote(pair, "bo", said)])
            if place % 7 == 0:  # equally divided, two against two
                other: Winner = "B" if said == "A" else "A"
                store.votes.add([NewVote(pair, "cy", other), NewVote(pair, "di", other)])
    return run


@pytest.mark.slow
def test_where_votes_count_as_labels_every_count_leads_to_as_many_verdicts(
    visitor: Visitor, voted: str, tables: Tables
) -> None:
    for judge in ("good", "other"):
        page = there(visitor, f"{voted}/audit?judge={judge}")
        # 15 of 60 rows have no label; people agree on those that are no seventh: 0, 28 and 56.
        assert "45 from the data, 12 from people" in page.text
        found = counts(page) + parts(page)
        assert len(found) > 15
        assert any("countVotes=true" in to for _, to in found)
        assert_each_leads_to_as_many(found, tables)
        (everything,) = [each for each in page.all("a") if each.text.startswith("Show all")]
        told = int(re.findall(r"\d+", everything.text)[0])
        assert_each_leads_to_as_many([(told, everything.attributes["href"])], tables)
    page = there(visitor, f"{voted}/calibration?judge=good")
    (learned,) = [each for each in page.all("a") if "label=any" in each.attributes.get("href", "")]
    told = int(re.findall(r"\d+", learned.text)[0])
    assert_each_leads_to_as_many([(told, learned.attributes["href"])], tables)


def test_every_share_of_an_audit_leads_to_its_pairs_and_what_counts_none_leads_nowhere(
    visitor: Visitor, voted: str
) -> None:
    """How often the first position was chosen is counted by passes, what a coin gets is expected,
    and a kappa or a difference counts no pairs: no table shows them."""
    page = there(visitor, f"{voted}/audit?judge=good")
    bare = [
        each
        for each in page.all("span", class_="figure")
        if not any(outer.tag == "a" for outer in each.within)
    ]
    rows = {next(outer for outer in each.within if outer.tag in ("tr", "li")).text for each in bare}
    values = ("Cohen", "Kappa", "Macro F1", "First position chosen")
    biases = ("Position bias", "Length bias", "Self-preference")
    others = ("coin flip", "longer response", "people with each other", "always the same answer")
    assert [row for row in rows if not row.startswith((*values, *biases, *others))] == []
    assert any(row.startswith("coin flip") for row in rows)
    judge = page.by_id("yardsticks").within[-1]
    assert any("disagrees=false" in to for to in links_in(page, judge))


def links_in(page: Html, outer: Element) -> list[str]:
    return [each.attributes["href"] for each in page.all("a") if outer in each.within]


def test_every_bias_of_an_audit_opens_the_pairs_on_either_side(
    visitor: Visitor, many: str, tables: Tables
) -> None:
    page = there(visitor, f"{many}/audit?judge=good")
    found = [
        (int(each.text.split(" of ")[0].replace(",", "")), each.attributes["href"])
        for gauges in page.all("ul", class_="gauges")
        for each in page.all("a", class_="plain")
        if gauges in each.within
    ]
    # Where every second order follows the position: those towards the first, and all that were
    # read in both; nobody leans to the second, and both responses are as long.
    asked = {key for _, to in found for key in parse_qs(urlsplit(to).query)}
    assert {"leans", "orders"} <= asked
    assert_each_leads_to_as_many(found, tables)


def test_a_label_by_votes_says_so_and_the_form_keeps_counting(visitor: Visitor, voted: str) -> None:
    page = visitor.see(f"{voted}/pairs?judge=good&label=TIE&countVotes=true")
    # Every fourth row has no label, of every fifth from the third on people say it is a tie.
    assert page.text.count("by votes") == len({12, 32, 52})
    (box,) = [each for each in page.all("input") if each.attributes.get("name") == "countVotes"]
    assert "checked" in box.attributes
    assert "by votes" not in visitor.see(f"{voted}/pairs?judge=good&label=TIE").text


def parts(page: Html) -> list[tuple[int, str]]:
    """Of a share in the first table, what it is of: `12 of 40` beside it."""
    found = []
    section = next(each for each in page.elements if each.attributes.get("id") == "agreement")
    for each in page.all("a", class_="plain"):
        row = next((outer for outer in each.within if outer.tag == "tr"), None)
        if row is None or section.within[-1] not in each.within:
            continue
        told = re.search(r"(\d+) of (\d+)$", row.text)
        if told:
            found.append((int(told[1]), each.attributes["href"]))
    return found


def test_a_calibration_leads_to_what_it_was_learned_from(
    visitor: Visitor, many: str, tables: Tables
) -> None:
    page = there(visitor, f"{many}/calibration?judge=good")
    assert "Learned" in page.text, page.text
    (learned,) = [each for each in page.all("a") if "label=any" in each.attributes.get("href", "")]
    told = int(re.findall(r"\d+", learned.text)[0])
    assert_each_leads_to_as_many([(told, learned.attributes["href"])], tables)


def test_a_ranking_leads_to_the_pairs_of_a_model_and_of_two(
    visitor: Visitor, many: str, tables: Tables
) -> None:
    number = many.rsplit("/", 1)[1]
    page = there(visitor, f"/rank?run={number}")
    played = counts(page)
    assert len(played) == 3
    assert_each_leads_to_as_many(played, tables)
    cells = [
        each.attributes["href"]
        for each in page.all("a", class_="plain")
        if "against=" in each.attributes["href"]
    ]
    assert len(cells) == 3 * 2
    for to in cells:
        asked = parse_qs(urlsplit(to).query)
        models = {asked["model"][0], asked["against"][0]}
        met = [row for row in NAMED if {row["modelA"], row["modelB"]} == models]
        # By both judges, but for every seventh sum, which neither has a verdict on.
        valid = [row for row in met if int(str(row["id"]).removeprefix("sum-")) % 7]
        assert tables.count(to) == 2 * len(valid)


def test_of_several_runs_a_ranking_leads_to_each_ones_table(
    visitor: Visitor, many: str, tables: Tables
) -> None:
    again = visitor.start(ROWS[:50], judges=["good"], name="again", criteria=CRITERIA)
    numbers = [run.rsplit("/", 1)[1] for run in (many, again)]
    query = urlencode([("run", each) for each in numbers])
    page = there(visitor, f"/rank?{query}")
    told = dict(counts(page))
    assert told
    for count, to in told.items():
        behind = visitor.see(to)
        found = [
            (int(re.findall(r"\d+", each.text)[0]), each.attributes["href"])
            for each in behind.all("a", class_="plain")
        ]
        assert sum(each for each, _ in found) == count
        assert_each_leads_to_as_many(found, tables)


def test_filters_that_a_link_sets_are_kept_by_the_form(visitor: Visitor, many: str) -> None:
    asked = {"model": "b & b", "against": "bob", "modelWins": "true", "ending": "valid"}
    page = visitor.see(f"{many}/pairs?{urlencode(asked | {'named': 'two', 'label': 'any'})}")
    chosen = {
        each.within[-1].attributes["name"]: each.attributes["value"]
        for each in page.all("option")
        if "selected" in each.attributes and each.attributes.get("value")
    }
    assert asked.items() <= chosen.items()
    assert (chosen["named"], chosen["label"]) == ("two", "any")


def test_what_is_asked_of_a_model_needs_one(visitor: Visitor, many: str) -> None:
    for asked in ("modelWins=true", "criterionEnd=other"):
        page = visitor.see(f"{many}/pairs?{asked}", status=422)
        assert "give model too" in page.text


def test_clients_of_the_api_take_the_same_filters(
    visitor: Visitor, many: str, tables: Tables
) -> None:
    number = many.rsplit("/", 1)[1]
    for asked in (
        "model=ada&against=bob&modelWins=true",
        "criterion=clarity&criterionEnd=TIE&judge=other",
        "label=TIE&ending=undecided",
        "query=7",
        "judgesDiffer=true",
        "unread=true&tag=t1",
    ):
        rows: list[object] = []
        cursor: str | None = None
        while True:
            query = asked if cursor is None else f"{asked}&cursor={cursor}"
            answer = visitor.ask(f"/v1/runs/{number}/verdicts?limit=7&{query}")
            assert answer.status_code == 200, answer.text
            rows += answer.json()["verdicts"]
            cursor = answer.json()["next"]
            if cursor is None:
                break
        assert len(rows) == tables.count(f"{many}/pairs?{asked}")
        assert rows
