"""The report that is one file: what it says, what it holds, and that nothing gets out of it."""

from __future__ import annotations

import base64
import hashlib
import re
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from importlib.resources import files
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

from evenhand.errors import InputError
from evenhand.messages import Language
from evenhand.present.html import one_file_pairs as one_file_choice
from evenhand.present.html import one_file_pairs as one_file_parts
from evenhand.present.html.one_file import write_html_report
from evenhand.present.html.one_file_pairs import MOST_PAIRS, PairData, inert_json, select_pairs
from evenhand.present.html.rendering import LANGUAGES
from evenhand.report.conclusions import conclude
from evenhand.report.lookup import find_run
from evenhand.serve.config import ServerConfig
from evenhand.store import NewVote, Store, open_store
from html_reading import ATTACKS, Attack, Html
from http_service import HttpService, judge_offer
from one_files import Read, finished_run, hostile_rows, rows_of, written
from page_visits import Visitor
from run_data import adds_up
from servers import JudgeServer, forget_proxies
from stored_runs import Row, make_run

# 40 wins of new and 20 of old, and one of each other outcome
LETTERS = "B" * 40 + "A" * 20 + "TIX"


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    with open_store(tmp_path_factory.mktemp("store") / "evenhand.db") as opened:
        tagged = [
            replace(row, tags=("math",) if n % 2 else ("prose",))
            for n, row in enumerate(rows_of(LETTERS))
        ]
        finished_run(opened, "first", tagged)
        finished_run(opened, "hostile", hostile_rows())
        finished_run(opened, "labelled", rows_of("ABTI" * 8, label="A"), judges=("one", "two"))
        finished_run(opened, "league", league_rows())
        finished_run(opened, "empty", [])
        yield opened


def league_rows() -> list[Row]:
    met = [*combinations("wxyz", 2)] * 5
    return [
        replace(row, model_a=a, model_b=b)
        for row, (a, b) in zip(rows_of("AABTB" * 6), met, strict=True)
    ]


@pytest.fixture(scope="module")
def drawn(store: Store, tmp_path_factory: pytest.TempPathFactory) -> Read:
    return written(store, "first", tmp_path_factory.mktemp("out") / "first.html")


@pytest.fixture(scope="module")
def hostile(store: Store, tmp_path_factory: pytest.TempPathFactory) -> Read:
    return written(store, "hostile", tmp_path_factory.mktemp("out") / "hostile.html")


def test_figures_have_their_intervals_and_outcomes_stay_apart(drawn: Read) -> None:
    # 61 of 62 scored: (40 + (1 + 1) / 2) / 62 = 0.6613
    assert re.search(r"Win rate of new : 66\.1% \(5\d\.\d to 7\d\.\d\)", drawn.shown)
    assert "Wins for old 20 tie 1 inconsistent 1 Wins for new 40 invalid 1" in drawn.shown
    # Twice the tail of 20 or fewer heads of 60 coins: 0.0135
    assert "Exact sign test: p = 0.013." in drawn.shown
    for section in ("By criterion", "By tag", "Both orders agree"):
        assert section in drawn.shown
    assert "This file holds every judged pair (63)." in drawn.shown


def test_every_share_stands_beside_its_interval_or_its_reason(drawn: Read) -> None:
    figures = re.findall(r'<span class="figure">[\d.]+<small>%</small></span>(.{40})', drawn.source)
    # The rate, by one criterion and two tags, and a check of trust.
    assert len(figures) == 5
    assert all(after.startswith(' <span class="interval">') for after in figures)


def test_charts_are_drawn_in_the_pages_own_colours(drawn: Read) -> None:
    """By classes alone, so that both schemes have theirs."""
    assert not [tag for tag, _ in drawn.elements if tag in ("img", "picture", "image")]
    classes = Counter(
        given.get("class", "").split()[0] for tag, given in drawn.elements if tag == "svg"
    )
    assert {"outcome-bar", "interval-line", "histogram", "key"} <= classes.keys()
    fills = {given["fill"] for _, given in drawn.elements if "fill" in given}
    assert fills == {"url(#hatch)"}
    (style,) = re.findall(r"<style>(.*?)</style>", drawn.source, re.DOTALL)
    assert "@media (prefers-color-scheme: dark)" in style


def test_policy_allows_the_very_style_and_script_inside_and_nothing_else(drawn: Read) -> None:
    (script,) = drawn.script()
    (style,) = re.findall(r"<style>(.*?)</style>", drawn.source, re.DOTALL)
    rules = dict(part.strip().split(" ", 1) for part in drawn.policy.split(";"))
    assert rules == {
        "default-src": "'none'",
        "script-src": f"'sha256-{_digest(script)}'",
        "style-src": f"'sha256-{_digest(style)}'",
        "base-uri": "'none'",
        "form-action": "'none'",
        "require-trusted-types-for": "'script'",
        "trusted-types": "'none'",
    }


def _digest(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def test_nothing_in_it_leads_outside(drawn: Read, hostile: Read) -> None:
    for read in (drawn, hostile):
        for tag, given in read.elements:
            for name in ("src", "srcset", "href", "action", "data"):
                if name in given:
                    assert given[name].startswith("#"), (tag, given)


def test_script_makes_text_nodes_alone() -> None:
    source = files("evenhand.present.html").joinpath("static", "report.js").read_text("utf-8")
    for way in ("innerHTML", "outerHTML", "insertAdjacent", "document.write", "eval(", "Function("):
        assert way not in source
    for way in (
        "fetch(",
        "XMLHttpRequest",
        "import(",
        "WebSocket",
        "sendBeacon",
        'setAttribute("on',
    ):
        assert way not in source


def test_hostile_texts_make_no_element_and_no_attribute(hostile: Read, drawn: Read) -> None:
    ours = {tag for tag, _ in drawn.elements} | {"h4", "section", "mark", "code"}
    assert {tag for tag, _ in hostile.elements} <= ours
    attributes = {name for _, given in hostile.elements for name in given}
    assert not [name for name in attributes if name.startswith("on") or name == "style"]
    scripts = [given for tag, given in hostile.elements if tag == "script"]
    assert Counter(given.get("type", "ours") for given in scripts) == {
        "ours": 1,
        "application/json": 2,
        "application/gzip;base64": len(hostile.script(class_="part")),
    }


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.name)
def test_hostile_text_is_there_to_the_letter(attack: Attack, store: Store, hostile: Read) -> None:
    number, text = ATTACKS.index(attack), attack.text
    pair, row = hostile.pairs[number], hostile.table["pairs"][number]
    assert pair["texts"]["prompt"] == f"Prompt {text}"
    assert pair["texts"]["a"] == f"A of {attack.name}: {text}"
    assert pair["texts"]["context"] == text
    assert f"Reason {text}" in "".join(shown_in(pair).elements[0].texts)
    names, tags = hostile.table["names"], hostile.table["tags"]
    assert names[row[4]] == f"old {text}"[:300]
    assert [tags[place] for place in row[6]] == [f"tag {text}"[:200]]


def test_data_cannot_end_its_element_nor_a_line() -> None:
    told = inert_json({"</script>": "<!-- & \u2028\u2029 ]]>"})
    assert not set(told) & set("<>&\u2028\u2029")
    assert '"\\u003c/script\\u003e"' in told


@pytest.mark.parametrize("language", LANGUAGES)
def test_both_languages_say_everything(language: Language, store: Store, tmp_path: Path) -> None:
    read = written(store, "labelled", tmp_path / "x.html", language=language)
    assert ("html", {"lang": {"en": "en", "zh": "zh-CN"}[language]}) in read.elements
    has_chinese = bool(re.search(r"[\u4e00-\u9fff]", read.shown))
    assert has_chinese == (language == "zh")


def test_labels_bring_an_audit_and_several_models_a_ranking(store: Store, tmp_path: Path) -> None:
    labelled = written(store, "labelled", tmp_path / "a.html")
    assert "Verdicts against labels" in labelled.shown
    assert "Labels: 32 from the data, 0 from people; 0 pairs have none." in labelled.shown
    assert "Rank range" not in labelled.shown
    league = written(store, "league", tmp_path / "b.html")
    assert "Verdicts against labels" not in league.shown
    # The leaderboard comes first, and what a model is expected to score against another further on.
    order = [league.shown.index(each) for each in (", so none leads", "Rank range", "Win matrix")]
    assert order == sorted(order)
    for model in "wxyz":
        assert re.search(rf'class="wraps name"><bdi>{model}</bdi></th>', league.source)


def test_table_has_a_row_for_each_verdict_with_what_filters_go_by(
    store: Store, tmp_path: Path
) -> None:
    table = written(store, "labelled", tmp_path / "a.html").table
    assert table["judges"] == ["one", "two"]
    assert len(table["pairs"]) == 32
    assert len(table["rows"]) == 64
    endings = table["endings"]
    outcomes = Counter(tuple(endings[ending]) for _, _, ending, *_ in table["rows"])
    assert outcomes == {
        ("win", "A"): 16,
        ("win", "B"): 16,
        ("tie", "TIE"): 16,
        ("inconsistent", "TIE"): 16,
    }
    # Both judges say the same, both orders were read, and one criterion came out as its pair did.
    for _, _, ending, _, flags, place, breakdown, reason in table["rows"]:
        outcome, winner = endings[ending]
        own = winner if outcome in ("win", "tie") else outcome
        assert table["breakdowns"][breakdown] == [[0, own]]
        orders = table["orders"][place]
        assert orders == ("first" if outcome == "inconsistent" else "agree")
        assert not flags & table["flags"]["judgesDiffer"]
        assert reason
    assert {label for _, _, label, *_ in table["pairs"]} == {"A"}


def shown_in(pair: dict[str, Any]) -> Html:
    return Html(f"<main>{pair['html']}</main>")


def test_pairs_have_both_passes_beside_each_other(drawn: Read) -> None:
    assert "A shown first: B · B shown first: B" in shown_in(drawn.pairs[0]).text
    unread = shown_in(drawn.pairs[-1]).text
    assert unread.count("I cannot say.") >= 2
    assert "Unreadable" in unread


def test_hostile_pairs_hold_no_element_but_ours(hostile: Read) -> None:
    """A text that the template took for markup would be an element."""
    made = [each for pair in hostile.pairs for each in shown_in(pair).elements]
    active = {"script", "style", "iframe", "object", "embed", "base", "meta", "link", "form", "img"}
    assert not active & {each.tag for each in made}
    names = {name for each in made for name in each.attributes}
    assert not [name for name in names if name.startswith("on") or name in ("style", "srcdoc")]
    links = [each.attributes["href"] for each in made if "href" in each.attributes]
    assert all(re.match(r"https?://|mailto:", link) for link in links)


def test_a_pair_is_the_same_in_the_file_and_on_its_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both are made by one template: the same elements with the same texts in them."""
    path = tmp_path / "own.db"
    with open_store(path) as own:
        finished_run(own, "both", rows_of("ABTIX"))
        pairs = written(own, "both", tmp_path / "a.html").pairs
    with serving_store(path, monkeypatch) as visitor:
        for number, pair in enumerate(pairs, start=1):
            page, file = visitor.see(f"/runs/1/pairs/{number}"), shown_in(pair)
            for kind, name in (("section", "asked"), ("table", "passes"), ("section", "side")):
                ours, theirs = page.all(kind, class_=name), file.all(kind, class_=name)
                assert [each.text for each in ours] == [each.text for each in theirs] != []
                inside = [
                    [
                        (own.tag, own.attributes)
                        for own in read.elements
                        if any(outer is each for outer in own.within for each in within)
                    ]
                    for read, within in ((page, ours), (file, theirs))
                ]
                assert inside[0] == inside[1] != []


@pytest.mark.slow
@pytest.mark.parametrize("language", LANGUAGES)
def test_figures_are_the_same_in_the_file_and_on_the_pages(
    language: Language, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both are made by one template: the same elements with the same texts, whose links ask for
    the same pairs."""
    path = tmp_path / "own.db"
    tagged = [
        replace(row, tags=(f"t{n % 2}",), label=(None, "A", "B")[n % 3])
        for n, row in enumerate(rows_of("ABTIXBBABB" * 6))
    ]
    with open_store(path) as own:
        finished_run(own, "two", tagged)
        finished_run(own, "league", league_rows())
        two, league = (
            written(own, name, tmp_path / f"{name}.html", language=language)
            for name in ("two", "league")
        )
    with serving_store(path, monkeypatch) as visitor:

        def page(address: str) -> Html:
            visitor.wait(address, lambda page: "still calculating" not in page.text)
            return visitor.see(address, language=language)

        for address, read, names in (
            ("/runs/1", two, "result by-tag by-criterion by-length by-confidence heat"),
            ("/runs/1/audit", two, "findings biases confusion disagreements"),
            ("/rank?run=2", league, "matrix"),
        ):
            for part in names.split():
                ours = inside(Html(read.source), part)
                assert ours == inside(page(address), part) != [], (address, part)
        board = [inside(each, "result") for each in (Html(league.source), page("/runs/2"))]
        assert board[0] == board[1][: len(board[0])]  # the page leads to the whole ranking too


def inside(page: Html, name: str) -> list[tuple[str, str, str]]:
    """What stands under a heading: kinds of elements, their texts, where they lead to."""
    heading = next(
        each for each in page.elements if each.attributes.get("id") in (name, f"audit-1-{name}")
    )
    (*_, around) = (each for each in heading.within if each.tag == "section")
    return [
        (
            re.sub(r"^h\d$", "heading", each.tag),
            each.text,
            re.sub(
                r"^/runs/\d+/pairs(?:/(\d+)$)?",
                lambda found: f"#pairs?pair={found[1]}" if found[1] else "#pairs",
                each.attributes.get("href", ""),
            ),
        )
        for each in page.elements
        if any(outer is around for outer in each.within)
    ]


@contextmanager
def serving_store(path: Path, patch: pytest.MonkeyPatch) -> Iterator[Visitor]:
    forget_proxies(patch)
    with JudgeServer(adds_up) as judge:
        offer = judge_offer("good", "openai:good", base_url=judge.url)
        service = HttpService(ServerConfig(judges=(offer,), store=str(path), port=0), judge)
        service.start()
        try:
            yield Visitor(service)
        finally:
            service.close()


def test_more_pairs_than_it_holds_are_drawn_by_lot_and_it_says_so(
    store: Store, tmp_path: Path
) -> None:
    read = written(store, "first", tmp_path / "a.html", pairs=20)
    again = written(store, "first", tmp_path / "b.html", pairs=20)
    assert "20 of 63 judged pairs are in this file, drawn at random" in read.shown
    assert len(read.pairs) == len(read.table["pairs"]) == 20
    assert read.table == again.table
    numbers = [row[0] for row in read.table["pairs"]]
    assert numbers == sorted(set(numbers))
    assert "Win rate of new : 66.1%" in read.shown  # figures are of all pairs
    # They would lead to other pairs than those that they count.
    assert not [given for _, given in read.elements if given.get("href", "").startswith("#pairs?")]


def test_lot_does_not_look_at_what_came_of_a_pair(store: Store) -> None:
    run = find_run(store, "first")
    assert select_pairs(store, run, at_most=63).all
    few = select_pairs(store, run, at_most=30)
    assert (len(few.numbers), few.of) == (30, 63)
    # Pairs come out by their numbers: those before the 41st were all won by B.
    assert 10 <= sum(number <= 40 for number in few.numbers) <= 29


def test_file_can_be_without_pairs(store: Store, tmp_path: Path) -> None:
    read = written(store, "first", tmp_path / "a.html", pairs=0)
    assert "The 63 judged pairs are not in this file." in read.shown
    assert read.pairs == []
    assert "No conclusion yet." in written(store, "empty", tmp_path / "b.html").shown


def test_pending_pairs_are_counted_and_not_made_up(tmp_path: Path) -> None:
    with open_store(tmp_path / "own.db") as own:
        rows = rows_of("AAAAAABB")
        make_run(own, "half", [*rows[:6], *(replace(row, judged=False) for row in rows[6:])])
        read = written(own, "half", tmp_path / "a.html")
    assert "2 pending." in read.shown
    assert len(read.pairs) == 6
    assert "always-valid interval" in read.shown


def test_long_text_is_cut_and_says_how_long_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(one_file_choice, "_TEXT_LIMITS", (1000, 100))
    with open_store(tmp_path / "own.db") as own:
        own_texts = {"response_a": "long " * 500, "response_b": "short"}
        finished_run(own, "long", rows_of("A", pair=own_texts))
        told = write_html_report(own, conclude(own, "long"), tmp_path / "a.html")
    assert told.cut == 1
    (pair,) = Read.of(tmp_path / "a.html").pairs
    assert len(pair["texts"]["a"]) == 1000
    shown = shown_in(pair).text
    assert "Response A · old 2,500 characters" in shown
    assert "1,500 more characters are hidden here" in shown
    # 2 responses of 100 characters each would fit into 200, 2 of 1,000 would not.
    monkeypatch.setattr(one_file_choice, "_MOST_CHARACTERS", 200)
    with open_store(tmp_path / "own.db") as own:
        assert select_pairs(own, find_run(own, "long"), at_most=9).text_limit == 100


def test_file_that_cannot_be_finished_leaves_the_older_one(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.html"
    path.write_text("older")

    def breaks(_: object) -> Iterator[str]:
        yield "one part"
        raise InputError("the store went away")

    monkeypatch.setattr(PairData, "parts", breaks)
    with pytest.raises(InputError, match="went away"):
        write_html_report(store, conclude(store, "first"), path)
    assert path.read_text() == "older"
    assert [each.name for each in tmp_path.iterdir()] == ["a.html"]


def test_several_processes_pack_the_same_pairs(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(one_file_parts, "_PARTS_FOR_PROCESSES", 2)
    monkeypatch.setattr(one_file_choice, "_PAIRS_IN_A_PART", 20)
    alone = written(store, "first", tmp_path / "a.html")
    together = written(store, "first", tmp_path / "b.html", processes=2)
    assert len(alone.script(class_="part")) == 4  # 63 pairs
    assert together.table == alone.table
    assert together.pairs == alone.pairs


def test_what_people_voted_is_there_without_their_names(tmp_path: Path) -> None:
    with open_store(tmp_path / "own.db") as own:
        finished_run(own, "voted", rows_of("AB"))
        (first, _) = [item.pair_id for item in own.items.all(1)]
        own.votes.add([NewVote(first, "Ann Example", "B", comment="It adds up.")])
        read = written(own, "voted", tmp_path / "a.html")
    assert "It adds up." in shown_in(read.pairs[0]).text
    assert "Human votes" not in shown_in(read.pairs[1]).text
    assert "Ann Example" not in str(read.pairs) + read.source


@pytest.mark.parametrize("pairs", [-1, MOST_PAIRS + 1])
def test_more_pairs_than_any_file_holds_are_refused(
    pairs: int, store: Store, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match="from 0 to 20,000"):
        write_html_report(store, conclude(store, "first"), tmp_path / "a.html", pairs=pairs)
