"""One pair whole: texts side by side, both passes, labels and votes, and judged again."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from evenhand.store import NewVote, open_store
from html_reading import Html
from page_visits import Visitor, rows_of, seen, serving
from run_data import adds_up, sums
from scripted import answer_json
from servers import Reply, SeenRequest, chat_reply

MARKDOWN: dict[str, Any] = {
    "id": "markdown",
    "prompt": "# Sort\n\nWrite a function that sorts **words**.",
    "response_a": "It is 6, by counting.\n\n- first\n- *second*\n\n```python\nsorted(words)\n```\n",
    "response_b": "It is 7, by counting.\n\n| a | b |\n|--:|---|\n| 1 | 2 |\n\n- first\n",
    "context": "Some **context**",
    "reference": "sorted(words)",
    "tags": ["code"],
    "label": "A",
    "modelA": "old",
    "modelB": "new",
}


def judge(request: SeenRequest) -> Reply:
    if "mumble" in request.prompt:
        return chat_reply("I would rather not say.")
    if "by place" in request.prompt:
        return chat_reply(answer_json("A", confidence=0.7, criteria=[("accuracy", "A")]))
    if "Sort" in request.prompt:
        return chat_reply(answer_json("TIE", confidence=0.6, criteria=[("accuracy", "TIE")]))
    return adds_up(request)


@pytest.fixture(scope="module")
def visitor(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Visitor]:
    with serving(tmp_path_factory.mktemp("pages"), judge, judges=("good", "other")) as visitor:
        yield visitor


@pytest.fixture(scope="module")
def run(visitor: Visitor) -> str:
    odd = sums(2, begin=50)
    odd[0] |= {"id": "2", "prompt": "Please mumble"}
    odd[1] |= {"prompt": "Go by place"}
    return visitor.start([*sums(3), MARKDOWN, *odd], judges=["good"])


def section(page: Html, label: str) -> str:
    return next(
        each.text for each in page.all("section") if each.attributes.get("aria-labelledby") == label
    )


def test_a_pair_shows_its_texts_and_where_it_is_from(visitor: Visitor, run: str) -> None:
    page = visitor.see(f"{run}/pairs/1")
    assert "What is 1 plus 1?" in section(page, "prompt")
    assert "It is 2, by counting." in section(page, "response-A")
    assert "It is 3, by counting." in section(page, "response-B")
    assert "pairs.jsonl" in page.text


def test_words_that_differ_are_marked_and_need_not_be(visitor: Visitor, run: str) -> None:
    page = visitor.see(f"{run}/pairs/1")
    assert [each.text for each in page.all("mark")] == ["2", "3"]
    # It, is, by and counting are in both, and one word of five is not.
    assert "80% of the text is the same in both." in page.text
    (marking,) = page.all("label", class_="marking")
    (box,) = [each for each in page.all("input") if marking in each.within]
    assert (marking.text, "checked" in box.attributes) == ("Mark differences", True)


def test_markdown_is_rendered_or_shown_as_it_is(visitor: Visitor, run: str) -> None:
    page = visitor.see(f"{run}/pairs/4")
    assert [each.text for each in page.all("p", class_="heading-1")] == ["Sort"]
    assert page.one("em").text == "second"
    assert "sorted(words)" in page.all("code")[0].text
    assert "Some context" in section(page, "context")
    raw = visitor.see(f"{run}/pairs/4?view=raw")
    assert "- *second*" in section(raw, "response-A")
    assert "# Sort" in section(raw, "prompt")


def test_raw_texts_are_verbatim(visitor: Visitor, run: str) -> None:
    page = visitor.see(f"{run}/pairs/4?view=raw")
    shown = ["".join(each.texts) for each in page.all("pre", class_="response")]
    # A browser leaves out the first line's end of a pre.
    assert shown[-2:] == ["\n" + MARKDOWN["response_a"], "\n" + MARKDOWN["response_b"]]


def test_both_passes_stand_beside_each_other_in_the_callers_labels(
    visitor: Visitor, run: str
) -> None:
    page = visitor.see(f"{run}/pairs/3")
    table = page.one("table", class_="passes")
    heads = [each.text for each in page.all("th", scope="col") if table in each.within]
    assert heads[1].startswith("A shown first")
    assert heads[2].startswith("B shown first")
    assert all("11 tokens in, 7 out" in head for head in heads[1:])
    overall, accuracy = [each for each in page.all("tr") if table in each.within][1:]
    for row in (overall, accuracy):
        first, second = [each.text for each in page.all("td") if row in each.within]
        assert first.startswith("B")
        assert second.startswith("B")
        assert "differs" not in row.attributes.get("class", "")
    assert "confidence 0.90" in overall.text
    # In the labels of the order that the judge was shown.
    assert '"winner"' in section(page, "judge-1")
    assert page.by_id("verdict-1").text.startswith("B won confidence 0.90")


def test_a_pair_whose_winner_changed_says_so_once(visitor: Visitor, run: str) -> None:
    page = visitor.see(f"{run}/pairs/6")
    verdict = page.by_id("verdict-1").text
    assert verdict.startswith("inconsistent")
    assert "A shown first: A · B shown first: B" in verdict
    assert page.text.count("A shown first: A · B shown first: B") == 1
    assert "The winner changed with the order" not in page.text
    table = page.one("table", class_="passes")
    rows = [each for each in page.all("tr", class_="differs") if table in each.within]
    assert [row.text.split()[0] for row in rows] == ["Overall", "accuracy"]


def test_the_verdict_stands_before_the_texts(visitor: Visitor, run: str) -> None:
    page = visitor.see(f"{run}/pairs/3")
    places = {each.attributes.get("id"): at for at, each in enumerate(page.elements)}
    assert places["verdict-1"] < places["prompt"] < places["response-A"] < places["judge-1"]


def test_a_pair_has_its_place_among_those_that_are_shown(visitor: Visitor, run: str) -> None:
    """Pairs 1 to 3 are won, the fourth is a tie."""
    assert visitor.see(f"{run}/pairs/2").one("h1").text == "2 of 6"
    assert visitor.see(f"{run}/pairs/3?outcome=win&sort=number&descending=true").one("h1").text == (
        "1 of 3"
    )
    assert visitor.see(f"{run}/pairs/4?outcome=win").one("h1").text == "Pair 4"


def test_a_pair_leads_back_to_its_row(visitor: Visitor, run: str) -> None:
    """Whichever page of the table it was opened from."""
    page = visitor.see(f"{run}/pairs/2?outcome=win&cursor=a1_1_1&beside=1")
    back = page.one("a", class_="end").attributes["href"]
    assert back == f"{run}/pairs?outcome=win&at=2&beside=1"
    to = visitor.ask(back).headers["location"]
    assert to == f"{run}/pairs?outcome=win&beside=1#pair-2"
    assert visitor.see(to.partition("#")[0]).by_id("pair-2").tag == "tr"


@pytest.mark.parametrize("at", ["x", "-1", "9" * 30, "99"])
def test_a_row_that_is_not_there_leads_to_the_table(at: str, visitor: Visitor, run: str) -> None:
    answer = visitor.ask(f"{run}/pairs?outcome=win&at={at}")
    assert answer.status_code == 303
    assert answer.headers["location"].partition("#")[0] == f"{run}/pairs?outcome=win"


def test_an_answer_that_could_not_be_read_is_shown_whole(visitor: Visitor, run: str) -> None:
    page = visitor.see(f"{run}/pairs/5")
    assert page.by_id("verdict-1").text.startswith("invalid")
    assert "Unreadable" in page.text
    assert "I would rather not say." in page.text


def test_a_number_is_a_place_and_never_somebodys_id(visitor: Visitor, run: str) -> None:
    """The fifth pair calls itself 2."""
    assert "What is 2 plus 2?" in section(visitor.see(f"{run}/pairs/2"), "prompt")
    answer = visitor.ask(f"{run}/pair?id=2")
    assert answer.headers["location"] == f"{run}/pairs/5"


@pytest.mark.parametrize("number", ["0", "7", "-1", "x", "1e3", "9" * 30, "%F0%9F%98%80"])
def test_a_pair_that_is_not_there_is_told_as_a_page(
    number: str, visitor: Visitor, run: str
) -> None:
    assert "no pair" in visitor.see(f"{run}/pairs/{number}", status=404).text


def test_neighbours_are_those_of_the_table(visitor: Visitor, run: str) -> None:
    page = visitor.see(f"{run}/pairs/2?outcome=win")
    assert page.one("a", rel="prev").attributes["href"] == f"{run}/pairs/1?outcome=win"
    assert page.one("a", rel="next").attributes["href"] == f"{run}/pairs/3?outcome=win"
    last = visitor.see(f"{run}/pairs/3?outcome=win")
    assert last.all("a", rel="next") == []
    assert f"{run}/pairs?outcome=win&at=3" in last.links


def test_labels_and_votes_stand_with_the_pair(visitor: Visitor, run: str) -> None:
    store = visitor.service.config.store
    assert store is not None
    with open_store(store) as opened:
        pair = next(
            each for each in opened.items.all(int(run.rpartition("/")[2])) if each.number == 4
        )
        opened.votes.add([NewVote(pair.pair_id, "Ann <b>", "B", comment="<i>clearer</i>")])
    page = visitor.see(f"{run}/pairs/4")
    assert page.one("span", class_="label-of").text == "Label A"
    assert page.by_id("votes").text == "Human votes (1)"
    assert "Ann <b>B <i>clearer</i>" in page.by_id("votes").within[-1].text
    assert 'id="votes"' not in visitor.ask(f"{run}/pairs/1").text  # nobody has voted


def test_a_pair_is_judged_again_and_the_run_stays_as_it_was(visitor: Visitor, run: str) -> None:
    before = visitor.ask(f"/v1{run}/report").json()
    page = visitor.see(f"{run}/pairs/3")
    form = next(each for each in page.all("form") if "#again-result" in each.attributes["action"])
    asked = len(visitor.service.judge.requests)  # type: ignore[union-attr]
    again = seen(visitor.send(form.attributes["action"].partition("#")[0], {"judge": "other"}))
    assert len(visitor.service.judge.requests) == asked + 2  # type: ignore[union-attr]
    told = section(again, "again-verdict")
    assert "Judged again by other" in told
    assert "B won" in told
    assert "A shown first" in told
    assert visitor.ask(f"/v1{run}/report").json() == before


def test_a_pair_is_flagged_with_a_comment_and_found_by_it(visitor: Visitor, run: str) -> None:
    answer = visitor.send(f"{run}/pairs/2/flag", {"comment": "look at <b>this</b>"})
    assert (answer.status_code, answer.headers["location"]) == (303, f"{run}/pairs/2")
    page = visitor.see(f"{run}/pairs/2")
    assert "Flagged" in page.one("details", class_="flag").text
    assert "look at <b>this</b>" in page.one("p", class_="note").text
    assert rows_of(visitor.see(f"{run}/pairs?flagged=true")) == [2]
    # Back to the pair as it was: in its table, and shown in its way.
    page = visitor.see(f"{run}/pairs/2?outcome=win&view=raw")
    (form,) = [each for each in page.all("form") if "/flag?" in each.attributes["action"]]
    answer = visitor.send(form.attributes["action"], {"comment": "twice"})
    assert answer.headers["location"] == f"{run}/pairs/2?outcome=win&view=raw"
    assert visitor.send(f"{run}/pairs/2/flag", {"act": "remove"}).status_code == 303
    assert rows_of(visitor.see(f"{run}/pairs?flagged=true")) == []
    assert visitor.send(f"{run}/pairs/99/flag").status_code == 404


def test_judging_again_may_fail_and_says_so(visitor: Visitor, run: str) -> None:
    again = seen(visitor.send(f"{run}/pairs/5", {"judge": "good"}))
    assert "I would rather not say." in section(again, "again-verdict")
    assert again.one("p", role="alert").text


def test_judging_again_by_a_judge_that_is_not_offered_is_refused(
    visitor: Visitor, run: str
) -> None:
    answer = visitor.send(f"{run}/pairs/3", {"judge": "nobody"})
    assert "does not offer" in seen(answer, 422).text


def test_a_page_of_huge_texts_is_bounded(visitor: Visitor) -> None:
    (row,) = sums(1)
    row["response_a"] += " word" * 180_000
    row["response_b"] += "w" * 400_000
    run = visitor.start([row], judges=["good"])
    answer = visitor.ask(f"{run}/pairs/1")
    page = seen(answer)
    assert len(answer.content) < 800_000
    assert "more characters are hidden here" in page.text


def test_pages_are_rendered_while_others_are_asked_for(visitor: Visitor, run: str) -> None:
    """The event loop stays free: what takes long is worked out in a thread."""

    async def both() -> None:
        import httpx

        async with httpx.AsyncClient(base_url=visitor.service.url, trust_env=False) as client:
            answers = await asyncio.gather(*(client.get(f"{run}/pairs/{n}") for n in (1, 2, 3, 4)))
            assert {answer.status_code for answer in answers} == {200}

    asyncio.run(both())
