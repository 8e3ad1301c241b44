"""Whatever is judged, and whatever it is called, a page shows it as text: each attack in each
place, over the real server, in what it really sends."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from cases import each_case
from evenhand.errors import visible
from html_reading import ATTACKS, Attack, Html, harm_in
from page_visits import Visitor, serving
from scripted import answer_json
from servers import Reply, SeenRequest, chat_reply

pytestmark = pytest.mark.slow

NAMES = [attack.name for attack in ATTACKS]
BY_NAME = {attack.name: attack for attack in ATTACKS}
FIELDS = ("prompt", "context", "reference", "response_a", "response_b")


def said_of(attack: Attack) -> str:
    return answer_json(
        "A", confidence=0.7, criteria=[("accuracy", "A")], reasoning=f"Quoted: {attack.text}"
    )


def judge(request: SeenRequest) -> Reply:
    """It quotes what it is shown, as judges do."""
    found = next((each for each in ATTACKS if f"named {each.name}." in request.prompt), None)
    return chat_reply(answer_json("A") if found is None else said_of(found))


def row_of(attack: Attack) -> dict[str, Any]:
    texts = {field: f"A {field}. {attack.text}" for field in FIELDS}
    return texts | {
        "id": f"{attack.name}: {attack.text}"[:200],
        "prompt": f"It is named {attack.name}. {attack.text}",
        "tags": [attack.text[:200]],
        "model_a": attack.text[:200],
        "model_b": f"other {attack.text}"[:200],
    }


@pytest.fixture(scope="module")
def visitor(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Visitor]:
    with serving(tmp_path_factory.mktemp("pages"), judge) as visitor:
        yield visitor


@pytest.fixture(scope="module")
def run(visitor: Visitor) -> str:
    return visitor.start([row_of(attack) for attack in ATTACKS])


def plain(text: str) -> str:
    return " ".join(text.split())


def number_of(name: str) -> int:
    return NAMES.index(name) + 1


def raw_texts(page: Html) -> list[str]:
    """As a browser has them: without the first line's end of a `pre`."""
    return ["".join(each.texts).removeprefix("\n") for each in page.all("pre", class_="response")]


@each_case("name", NAMES)
def test_in_prompts_and_responses_it_is_text(name: str, visitor: Visitor, run: str) -> None:
    row = row_of(BY_NAME[name])
    page = visitor.see(f"{run}/pairs/{number_of(name)}?view=raw")
    assert raw_texts(page) == [row[field] for field in FIELDS]


@each_case("name", NAMES)
def test_rendered_as_markdown_it_does_nothing(name: str, visitor: Visitor, run: str) -> None:
    page = visitor.see(f"{run}/pairs/{number_of(name)}")
    texts = page.all("div", class_="markdown")
    assert texts
    for each in page.elements:
        if texts[0] in each.within:
            assert each.attributes.keys() <= {"href", "rel", "target", "class", "tabindex"}


@each_case("name", NAMES)
def test_in_what_a_judge_says_it_is_text(name: str, visitor: Visitor, run: str) -> None:
    attack = BY_NAME[name]
    page = visitor.see(f"{run}/pairs/{number_of(name)}?view=raw")
    reasonings = [
        "".join(each.texts)
        for each in page.all("div", class_="prose")
        if "isolated" in str(each.attributes)
    ]
    assert f"Quoted: {attack.text}".strip() in [each.strip() for each in reasonings]
    answers = ["".join(each.texts) for each in page.all("pre") if "class" not in each.attributes]
    assert f"\n{said_of(attack)}" in answers


@each_case("name", NAMES)
def test_in_names_of_models_and_tags_it_is_text(name: str, visitor: Visitor, run: str) -> None:
    row = row_of(BY_NAME[name])
    page = visitor.see(f"{run}/pairs/{number_of(name)}")
    names = [plain(each.text) for each in page.all("bdi")]
    for text in (row["model_a"], row["model_b"], row["tags"][0], row["id"]):
        assert plain(text) in names
    # As a filter, and in the addresses that lead there.
    link = next(
        each for each in page.all("a", class_="tag") if plain(each.text) == plain(row["tags"][0])
    )
    table = visitor.see(link.attributes["href"])
    assert plain(row["model_a"]) in [plain(each.text) for each in table.all("bdi")]
    assert row["tags"][0] in [each.attributes["value"] for each in table.all("option")] or len(
        table.all("option")
    )


@pytest.fixture(scope="module")
def named(visitor: Visitor) -> dict[str, str]:
    """The address of each run whose name, and whose file's name, is an attack."""
    runs = {}
    for attack in ATTACKS:
        row = {"prompt": "p", "response_a": "a", "response_b": "b", "id": attack.name}
        fields = {"criteria": "accuracy", "name": attack.text[:200]}
        file = f"{attack.text[:60]}{attack.name}.jsonl".replace("\n", " ")
        answer = visitor.upload(json.dumps(row).encode(), fields, name=file)
        if answer.status_code == 303:
            runs[attack.name] = answer.headers["location"]
            continue
        assert answer.status_code == 422
        assert harmless(answer.text)
        answer = visitor.upload(json.dumps(row).encode(), {"criteria": "accuracy"}, name=file)
        assert answer.status_code == 303, answer.text
        visitor.see(answer.headers["location"])
    return runs


@each_case("name", NAMES)
def test_in_the_name_of_a_run_and_of_a_file_it_is_text(
    name: str, visitor: Visitor, named: dict[str, str]
) -> None:
    if name not in named:
        return
    text, run = BY_NAME[name].text[:200], named[name]
    for path in (f"{run}/pairs", f"{run}/pairs/1"):
        page = visitor.see(path)
        assert plain(text) in [plain(each.text) for each in page.all("bdi")]
    # A browser's tab isolates no directions, so there the signs that turn text are seen.
    page = visitor.see(run)
    assert plain(text) in [plain(each.text) for each in page.all("bdi")]
    title = page.one("title")
    assert plain(visible(text)) in title.text
    assert title.text == visible(title.text)


def test_in_the_list_of_runs_every_name_is_text(visitor: Visitor, named: dict[str, str]) -> None:
    names = [plain(each.text) for each in visitor.see("/").all("bdi")]
    assert len(named) > 20
    for name in named:
        assert plain(BY_NAME[name].text[:200]) in names, name


def harmless(text: str) -> bool:
    return harm_in(Html(text)) == []


@pytest.fixture(scope="module")
def short(visitor: Visitor) -> str:
    """A run of one pair: its table is read hundreds of times."""
    return visitor.start([{"prompt": "p", "response_a": "a", "response_b": "b"}])


@each_case("name", NAMES)
def test_in_an_address_it_is_text(name: str, visitor: Visitor, short: str) -> None:
    attack = BY_NAME[name]
    for field in ("query", "tag"):
        answer = visitor.client.get(f"{short}/pairs", params={field: attack.text[:900]})
        assert answer.status_code in (200, 422)
        assert harmless(answer.text)
    for field in ("outcome", "judge", "cursor", "sort", "lang", attack.text[:50]):
        answer = visitor.client.get(f"{short}/pairs", params={field: attack.text[:900]})
        assert answer.status_code in (200, 422), field
        assert harmless(answer.text)


def test_texts_from_outside_turn_no_direction_but_their_own(visitor: Visitor, run: str) -> None:
    """A mark that is never closed ends with its element: each is isolated from what is around."""
    number = number_of("unclosed-right-to-left")
    for path in (f"{run}/pairs", f"{run}/pairs/{number}", f"{run}/pairs/{number}?view=raw", run):
        page = visitor.see(path)
        for each in page.elements:
            if "\u202e" in "".join(each.texts) and not any(
                "\u202e" in "".join(child.texts) and each in child.within for child in page.elements
            ):
                around = (*each.within, each)
                assert any(
                    one.tag in ("bdi", "title", "option", "mark", "datalist")
                    or one.attributes.get("dir") == "auto"
                    for one in around
                ), (path, each.tag)
