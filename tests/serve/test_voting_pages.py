"""Voting on pages, over real HTTP on both engines: blind, none lost, none counted twice."""

from __future__ import annotations

import html
import re
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import httpx
import pytest

from evenhand.contract import Order, Winner
from evenhand.data.records import Record
from evenhand.errors import InputError
from evenhand.judging.ballots import read_ballot
from evenhand.judging.decision import Judged, PassResult
from evenhand.serve.config import ServerConfig, Token
from evenhand.store import NewJudge, NewPass, NewRun, NewVerdict, NewVote, Store, open_store
from evenhand.trust.labelling import begin_labelling, side_for
from http_service import HttpService
from scripted import answer_json, make_pair
from store_values import item, win

FULL = Token("ci", "full-0123456789abcdef")
PEOPLE = tuple(f"voter{n}" for n in range(10))
VOTERS = tuple(Token(name, f"{name}-0123456789abcdef", votes_only=True) for name in PEOPLE)
PAIRS = 24
# What nobody who votes may read: each would tell whose a response is, or what others say of it.
HIDDEN = (
    *("modelname", "keyname", "tagname", "runname", "judgename", "becausejudge", "othersreason"),
    *("Eve", "outcome-", "wins", "disagree", "confidence", "0.97", "swapped", "original"),
)


def fill(address: str, *, pairs: int = PAIRS, ties: bool = True, state: str = "finished") -> None:
    with open_store(address) as store:
        run = store.runs.create(NewRun("runname", "fingerprint", {}, ("pairs.jsonl",)))
        store.items.add(run.id, [own_item(number, ties) for number in range(1, pairs + 1)])
        store.runs.update(run.id, intake_done=True)
        judge = store.runs.add_judge(NewJudge("judgename", "judgename", "v1", "en"))
        store.runs.set_judges(run.id, [judge])
        work = store.work.pending(run.id, judge, after=0, limit=pairs)
        store.work.write(
            [
                NewPass(each.pair_id, judge, run.id, made)
                for each in work
                for made in judged(each.number).passes
            ],
            [NewVerdict(run.id, n, judge, judged(n)) for n in range(1, pairs + 1)],
        )
        if state == "finished":
            store.runs.update(run.id, state="finished")


def own_item(number: int, ties: bool) -> Record:
    return item(
        f"keyname-{number}",
        row=number,
        label="A",
        model_a="modelname-one",
        model_b="modelname-two",
        tags=("tagname",),
        prompt=f"question {number}",
        response_a=f"left text {number}.",
        response_b=f"right text {number}.",
        allow_tie=ties,
    )


def judged(number: int) -> Judged:
    made = win("A", [reasoned(order) for order in ("original", "swapped")])
    sure = 0.55 if number % 3 else 0.97
    return replace(made, decision=replace(made.decision, confidence=sure))


def reasoned(order: Order) -> PassResult:
    answer = answer_json("A" if order == "original" else "B", reasoning="becausejudge")
    ballot = read_ballot(answer, criteria=make_pair().criteria, order=order)
    return PassResult(ballot)


Start = Callable[..., HttpService]
_OPENED: list[httpx.Client] = []


@pytest.fixture
def start() -> Iterator[Start]:
    started: list[HttpService] = []

    def begin(address: str, *, guarded: bool = True) -> HttpService:
        config = ServerConfig(store=address, port=0)
        if guarded:
            config = replace(config, tokens=(FULL,), voters=VOTERS)
        service = HttpService(config)
        service.start()
        started.append(service)
        return service

    yield begin
    while _OPENED:
        _OPENED.pop().close()
    for each in started:
        each.close()


@dataclass(frozen=True)
class Shown:
    """A page as the person sees it."""

    page: str

    def __post_init__(self) -> None:
        assert "</html>" in self.page

    def _hidden(self, name: str, form: str = "ballot") -> str | None:
        part = self.page.split(f'id="{form}"')[-1] if form else self.page
        found = re.search(rf'name="{name}" value="([^"]*)"', part)
        return html.unescape(found[1]) if found else None

    @property
    def asks(self) -> bool:
        return 'id="ballot"' in self.page

    @property
    def number(self) -> str:
        return self._hidden("pair") or ""

    @property
    def texts(self) -> tuple[str, str]:
        first, second = re.findall(r"(left|right) text (\d+)\.", self.page)
        assert first[1] == second[1] == self.number
        return first[0], second[0]

    @property
    def form(self) -> dict[str, str]:
        names = ("csrf", "who", "pair")
        return {name: value for name in names if (value := self._hidden(name)) is not None}

    @property
    def undo_form(self) -> dict[str, str]:
        part = self.page.split("</form>")[-2]
        found = re.findall(r'name="(csrf|who|pair)" value="([^"]*)"', part)
        assert 'value="undo"' in part
        return {"act": "undo", **{name: html.unescape(value) for name, value in found}}


class Person:
    def __init__(self, service: HttpService, secret: str | None = None, run: str = "1") -> None:
        headers = {"Accept": "text/html", "Origin": service.url}
        self.client = httpx.Client(
            base_url=service.url, trust_env=False, headers=headers, timeout=60
        )
        _OPENED.append(self.client)
        self.path = f"/runs/{run}/vote"
        if secret is not None:
            answer = self.client.post("/login", data={"token": secret, "next": self.path})
            assert answer.headers["location"] == self.path

    def look(self, query: str = "") -> Shown:
        answer = self.client.get(f"{self.path}{query}")
        while "http-equiv" in answer.text:
            answer = self.client.get(f"{self.path}{query}")
        assert answer.status_code == 200, answer.text
        return Shown(answer.text)

    def send(self, form: dict[str, str]) -> httpx.Response:
        return self.client.post(self.path, data=form)

    def vote(self, shown: Shown, choice: str, **more: str) -> None:
        answer = self.send({**shown.form, "choice": choice, **more})
        assert (answer.status_code, answer.headers["location"]) == (303, self.path), answer.text


def votes_in(address: str) -> dict[tuple[int, str], tuple[Winner | None, bool]]:
    with open_store(address) as store:
        found = list(store.votes.each(1))
    said = {(own.number, own.vote.who): (own.vote.verdict, own.vote.both_bad) for own in found}
    assert len(said) == len(found)
    return said


def secret_of(name: str) -> str:
    return f"{name}-0123456789abcdef"


def prefers_left(texts: tuple[str, str]) -> str:
    return "first" if texts[0] == "left" else "second"


# -- Ten people at once ----------------------------------------------------------------------


@pytest.mark.slow
def test_ten_people_at_once_lose_no_vote_and_count_none_twice(address: str, start: Start) -> None:
    fill(address)
    service = start(address)

    def take_part(name: str) -> Counter[tuple[int, str]]:
        person = Person(service, secret_of(name))
        sent: Counter[tuple[int, str]] = Counter()
        for turn in range(12):
            shown = person.look()
            if turn % 4 == 3:
                choice, expected = "both_bad", "TIE"
            else:
                choice, expected = prefers_left(shown.texts), "A"
            with ThreadPoolExecutor(2) as twice:  # a double click
                list(twice.map(lambda _, s=shown, c=choice: person.vote(s, c), range(2)))
            sent[int(shown.number), expected] += 1
        return sent

    with ThreadPoolExecutor(10) as pool:
        sent = dict(zip(PEOPLE, pool.map(take_part, PEOPLE), strict=True))
    stored = votes_in(address)
    expected = {
        (number, who): (winner, winner == "TIE")
        for who, own in sent.items()
        for number, winner in own
    }
    assert all(set(own.values()) == {1} for own in sent.values())  # nobody was asked twice
    assert stored == expected
    assert len(stored) == 120
    with open_store(address) as store:
        pair_ids = {own.number: own.pair_id for own in store.items.all(1)}
        for number, who in stored:
            assert store.votes.replaced(pair_ids[number], who) == []
    # Everybody's first pairs are different ones, and each pair was labelled before any rested.
    assert {number for number, _ in stored} == set(range(1, PAIRS + 1))


@pytest.mark.slow
def test_people_begin_with_different_pairs_and_meet_on_some(tmp_path: Path, start: Start) -> None:
    address = str(tmp_path / "service.db")
    fill(address, pairs=200)
    service = start(address)
    people = [Person(service, secret_of(name)) for name in PEOPLE[:3]]
    seen: list[list[str]] = [[], [], []]
    for _ in range(20):
        for place, person in enumerate(people):
            shown = person.look()
            seen[place].append(shown.number)
            person.vote(shown, prefers_left(shown.texts))
    voters = Counter(number for own in seen for number in own)
    assert len({own[0] for own in seen}) == 3
    met = sum(count > 1 for count in voters.values())
    assert 8 <= met <= 14  # a fifth of 60 votes goes to pairs of others, less the first ones'
    with open_store(address) as store:
        stored = [own.vote for own in store.votes.each(1)]
    assert {(vote.origin, vote.draw) for vote in stored} == {("page", "weighted")}
    assert all(vote.chance is not None and 0 < vote.chance <= 1 for vote in stored)


# -- Blind -----------------------------------------------------------------------------------


@pytest.mark.parametrize("language", ["en", "zh"])
def test_nobody_sees_a_verdict_a_label_a_name_or_others_votes(
    tmp_path: Path, start: Start, language: str
) -> None:
    address = str(tmp_path / "service.db")
    fill(address)
    with open_store(address) as store:
        others_vote(store)
    service = start(address)
    person = Person(service, secret_of("voter0"))
    person.client.headers["Accept-Language"] = language
    pages = []
    for turn in range(6):
        shown = person.look()
        pages.append(shown.page)
        person.vote(shown, ("first", "second", "tie", "both_bad", "skip", "first")[turn])
    pages.append(person.client.get("/runs/nothing/vote").text)
    pages.append(person.client.get("/runs/runnam/vote").text)
    for page in pages:
        for word in HIDDEN:
            assert word not in page, word
    assert "voter0" in pages[0]
    assert ("回答 1" if language == "zh" else "Response 1") in pages[0]


def others_vote(store: Store) -> None:
    store.votes.add(
        [
            NewVote(own.pair_id, "Eve", "B", origin="page", comment="othersreason")
            for own in store.items.all(1)
        ]
    )


def test_sides_are_random_for_each_person_and_stay_on_reload(tmp_path: Path, start: Start) -> None:
    address = str(tmp_path / "service.db")
    fill(address)
    service = start(address)
    person = Person(service, secret_of("voter3"))
    sides = []
    for _ in range(PAIRS):
        shown = person.look()
        again = person.look()
        assert (shown.number, shown.texts) == (again.number, again.texts)
        order = side_for(f"keyname-{shown.number}", "voter3", seed=0)
        assert shown.texts == (("left", "right") if order == "original" else ("right", "left"))
        sides.append(shown.texts)
        person.vote(shown, "first")
    assert not person.look().asks
    # The first as shown was chosen each time: mapped back, it is whatever stood there.
    stored = votes_in(address)
    assert Counter(winner for winner, _ in stored.values()) == Counter(
        "A" if texts[0] == "left" else "B" for texts in sides
    )
    assert 4 <= Counter(sides)["left", "right"] <= PAIRS - 4


# -- One person ------------------------------------------------------------------------------


def test_every_choice_is_kept_as_what_it_was(tmp_path: Path, start: Start) -> None:
    address = str(tmp_path / "service.db")
    fill(address)
    person = Person(start(address), secret_of("voter1"))
    expected: dict[tuple[int, str], tuple[Winner | None, bool]] = {}
    said: dict[str, tuple[Winner | None, bool]] = {
        "tie": ("TIE", False),
        "both_bad": ("TIE", True),
        "skip": (None, False),
    }
    for choice in ("first", "second", "tie", "both_bad", "skip"):
        shown = person.look()
        texts = dict(zip(("first", "second"), shown.texts, strict=True))
        outcome = said.get(choice) or ("A" if texts[choice] == "left" else "B", False)
        expected[int(shown.number), "voter1"] = outcome
        person.vote(shown, choice, comment="  so it is\r\n ")
    assert votes_in(address) == expected
    with open_store(address) as store:
        assert {own.vote.comment for own in store.votes.each(1)} == {"so it is"}
    assert "4 voted on, 1 skipped, of 24 pairs" in person.look().page


def test_the_last_vote_can_be_taken_back_and_is_kept_aside(tmp_path: Path, start: Start) -> None:
    address = str(tmp_path / "service.db")
    fill(address)
    person = Person(start(address), secret_of("voter1"))
    first = person.look()
    assert "undo" not in first.page
    person.vote(first, "first")
    second = person.look()
    person.vote(second, "second")
    undo = person.look().undo_form
    assert undo["pair"] == second.number
    for _ in range(2):  # sent twice, it takes one vote back
        answer = person.send(undo)
        assert answer.headers["location"] == f"/runs/1/vote?pair={second.number}"
    assert {number for number, _ in votes_in(address)} == {int(first.number)}
    again = person.look(f"?pair={second.number}")
    assert (again.number, again.texts) == (second.number, second.texts)
    with open_store(address) as store:
        pair_id = {own.number: own.pair_id for own in store.items.all(1)}[int(second.number)]
        assert len(store.votes.replaced(pair_id, "voter1")) == 1
    person.vote(again, "tie")
    assert votes_in(address)[int(second.number), "voter1"] == ("TIE", False)
    # What is voted on is not asked again, whatever the address says.
    assert person.look(f"?pair={second.number}").number != second.number


def test_a_change_of_mind_replaces_the_vote(tmp_path: Path, start: Start) -> None:
    address = str(tmp_path / "service.db")
    fill(address)
    person = Person(start(address), secret_of("voter1"))
    shown = person.look()
    person.vote(shown, "tie")
    person.vote(shown, "skip")  # the page before, by the browser's way back
    assert list(votes_in(address).values()) == [(None, False)]


def test_a_pair_that_may_not_tie_offers_none(tmp_path: Path, start: Start) -> None:
    address = str(tmp_path / "service.db")
    fill(address, ties=False)
    person = Person(start(address), secret_of("voter1"))
    shown = person.look()
    assert 'value="tie"' not in shown.page
    for choice in ("tie", "both_bad"):
        assert person.send({**shown.form, "choice": choice}).status_code == 422
    assert votes_in(address) == {}
    person.vote(shown, "skip")


def test_a_run_that_goes_on_is_voted_on_in_an_even_draw(tmp_path: Path, start: Start) -> None:
    address = str(tmp_path / "service.db")
    fill(address, state="judging")
    person = Person(start(address), secret_of("voter1"))
    person.vote(person.look(), "first")
    with open_store(address) as store:
        (own,) = store.votes.each(1)
    assert (own.vote.draw, own.vote.chance) == ("random", None)


# -- What is refused -------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(
    "changed",
    [
        {"choice": "A"},
        {"choice": ""},
        {"pair": "99"},
        {"pair": "-1"},
        {"pair": "1" * 40},
        {"pair": "x"},
        {"who": "voter2"},
        {"csrf": ""},
        {"csrf": "0" * 48},
        {"comment": "x" * 4_001},
    ],
)
def test_a_form_that_no_page_of_ours_sends_is_no_vote(
    tmp_path: Path, start: Start, changed: dict[str, str]
) -> None:
    address = str(tmp_path / "service.db")
    fill(address)
    person = Person(start(address), secret_of("voter1"))
    answer = person.send({**person.look().form, "choice": "first", **changed})
    assert answer.status_code in (403, 404, 409, 422), answer.status_code
    assert votes_in(address) == {}


@pytest.mark.slow
def test_a_pair_far_down_the_queue_is_not_up_yet(tmp_path: Path, start: Start) -> None:
    """Else people could pick pairs, and the chances of the draw would hold no more."""
    address = str(tmp_path / "service.db")
    fill(address, pairs=200)
    person = Person(start(address), secret_of("voter1"))
    form = person.look().form
    first_round = set()
    for number in range(1, 201):
        answer = person.send({**form, "pair": str(number), "choice": "skip"})
        assert answer.status_code in (303, 404)
        if answer.status_code == 303:
            first_round.add(number)
            person.send({**form, "pair": str(number), "act": "undo"})
    assert len(first_round) == 20
    assert int(form["pair"]) in first_round
    assert votes_in(address) == {}


def test_nobody_votes_for_another_or_without_a_login(tmp_path: Path, start: Start) -> None:
    address = str(tmp_path / "service.db")
    fill(address)
    service = start(address)
    person, other = Person(service, secret_of("voter1")), Person(service, secret_of("voter2"))
    form = {**person.look().form, "choice": "first"}
    assert other.send(form).status_code == 403  # that session's form is not this one's
    stranger = Person(service)
    answer = stranger.send(form)
    assert (answer.status_code, answer.headers["location"]) == (303, "/login?next=/runs/1/vote")
    forged = {"Origin": "http://evil.example"}
    assert person.client.post(person.path, data=form, headers=forged).status_code == 403
    assert votes_in(address) == {}


# -- Whoever sees more -----------------------------------------------------------------------


def test_a_full_login_votes_too_and_sees_how_far_people_agree(address: str, start: Start) -> None:
    fill(address)
    with open_store(address) as store:
        opinions: dict[str, Winner] = {"Ann": "A", "Ben": "A", "Eve": "B"}
        for who, said in opinions.items():
            store.votes.add([NewVote(own.pair_id, who, said) for own in store.items.all(1)])
    service = start(address)
    person = Person(service, FULL.secret)
    shown = person.look()
    assert 'href="/runs/1/votes"' in shown.page
    person.vote(shown, prefers_left(shown.texts))
    assert (int(shown.number), "ci") in votes_in(address)
    page = person.client.get("/runs/1/votes")
    while "http-equiv" in page.text:
        page = person.client.get("/runs/1/votes")
    # Of three people on 24 pairs two of six ordered pairs agree; ci joins A on one pair.
    assert "Ann" in page.text
    assert re.search(r"26 of 75", page.text), page.text  # 23 of 69 and, on one pair, 3 of 6
    assert 'class="interval"' in page.text
    voter = Person(service, secret_of("voter1"))
    assert voter.client.get("/runs/1/votes").status_code == 403
    assert 'href="/runs/1/votes"' not in voter.look().page


def test_on_this_machine_a_name_is_asked_for_once(tmp_path: Path, start: Start) -> None:
    address = str(tmp_path / "service.db")
    fill(address)
    service = start(address, guarded=False)
    person = Person(service)
    asked = person.client.get(person.path)
    assert 'name="name"' in asked.text
    assert 'id="ballot"' not in asked.text
    assert person.send({"choice": "first", "pair": "1", "who": "x"}).status_code == 409
    for name in (" ", "x" * 201, "a\nb", "\x00"):
        assert person.send({"name": name}).status_code in (409, 422), name
    answer = person.send({"name": " 王 <b>Ann</b>; "})
    assert answer.status_code == 303
    shown = person.look()
    assert "王 &lt;b&gt;Ann&lt;/b&gt;;" in shown.page
    person.vote(shown, "skip")
    assert list(votes_in(address)) == [(int(shown.number), "王 <b>Ann</b>;")]
    # A page that was made for another name is not taken for this one's.
    stale = person.look()
    person.send({"name": "Ben"})
    assert person.send({**stale.form, "choice": "first"}).status_code == 409
    assert 'value="Ben"' in person.client.get(f"{person.path}?rename=1").text


def test_hostile_texts_show_as_text(tmp_path: Path, start: Start) -> None:
    address = str(tmp_path / "service.db")
    evil = "<script>alert(1)</script><img src=x onerror=alert(1)> [x](javascript:alert(1))"
    with open_store(address) as store:
        run = store.runs.create(NewRun("runname", "fingerprint", {}, ("pairs.jsonl",)))
        texts: dict[str, Any] = {
            "prompt": evil,
            "response_a": evil,
            "response_b": evil + "b",
            "context": evil,
        }
        store.items.add(run.id, [item(evil, row=1, source="pairs.jsonl", **texts)])
        store.runs.update(run.id, intake_done=True)
    person = Person(start(address), secret_of("voter1"))
    for query in ("", "?view=raw"):
        page = person.client.get(person.path + query)
        assert "<script>alert" not in page.text
        assert "<img" not in page.text
        assert 'href="javascript' not in page.text
        assert "script-src 'self'" in page.headers["content-security-policy"]


def test_nobody_votes_on_texts_that_were_forgotten(tmp_path: Path, start: Start) -> None:
    address = str(tmp_path / "service.db")
    fill(address, pairs=3)
    person = Person(start(address), secret_of("voter1"))
    shown = person.look()
    with open_store(address) as store:
        store.deletion.forget_texts("runname")
    for answer in (
        person.client.get(person.path),
        person.send({**shown.form, "choice": "first"}),
    ):
        assert answer.status_code == 422
        assert "the texts of this run were deleted, so nobody can vote" in answer.text
        assert "runname" not in answer.text
    assert votes_in(address) == {}
    with open_store(address) as store, pytest.raises(InputError, match="were deleted"):
        begin_labelling(store, 1, "Ann")
