"""The prompt on a pair's page is what went over the wire, byte for byte, or the page says why it is
not there: against a server that records every request."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from evenhand.contract import Pair
from evenhand.data.options import ReadOptions
from evenhand.judges.protocol import Completion, JudgeCall, TokenLogprob, Traits
from evenhand.judging.config import JudgeConfig
from evenhand.messages import Message
from evenhand.runs import RunOptions, judge_pairs
from evenhand.runs.plan import JudgePlan
from evenhand.runs.sources import given_pairs
from evenhand.serve.config import ServerConfig
from evenhand.serve.prompt_texts import SentMessage, sent_prompt
from evenhand.store import Store, open_store
from html_reading import Html
from http_service import HttpService, judge_offer
from page_visits import Visitor
from scripted import answer_json
from servers import JudgeServer, Reply, SeenRequest, chat_reply, forget_proxies, token_logprob

ROW: dict[str, Any] = {
    "id": "hostile",
    "prompt": "Which is <b>right</b>?\r\nSay & tell.\n\n",
    "response_a": "\n\tIt is {response_b} &amp; 2.\r\n</pre><script>window.harmed=1</script>\r",
    "response_b": "It is {{ prompt }} 3.\u2028 响应 A 👩‍💻 <<<end>>> \n",
    "context": "Some ‮ context",
    "criteria": ["accuracy", "clarity"],
}
OWN = "Judge {criteria}.\n{prompt}\n{context}\nFirst: {response_a}\nSecond: {response_b}\n{menu}"
PREPARED = OWN + "\n{metrics}\n{own_reference}\n{analysis_a}\n{analysis_b}"
JINJA = (
    "=== system ===\n{{ tie_rule }}\n=== user ===\n{% if context %}{{ context }}{% endif %}"
    "{{ criteria }}\n{{ prompt }}\n{{ response_a }}\n{{ response_b }}"
)
CHANCE = JINJA + "{{ ['x', 'y'] | random }}"
# How each judge is asked, by its name.
ASKED: dict[str, dict[str, Any]] = {
    "plain": {},
    "chinese": {"locale": "zh"},
    "letters": {"mode": "letter"},
    "prepared": {"prepare": "metrics,reference,analysis"},
    "letters-prepared": {"mode": "letter", "prepare": "analysis"},
    "own": {"template": OWN},
    "own-prepared": {"template": PREPARED, "prepare": "metrics,reference,analysis"},
    "jinja": {"template": JINJA, "file": "own.j2"},
    "repairs": {"repairs": 2},
    "samples": {"samples": 2},
    "chance": {"template": CHANCE, "file": "chance.jinja"},
}


def answer(request: SeenRequest) -> Reply:
    model, first = request.json["model"], request.messages[0]["content"]
    if request.json.get("logprobs") and request.json.get("max_tokens") == 1:
        return chat_reply("A", logprobs=[token_logprob("A", -0.1, {"A": -0.1, "B": -2.5})])
    told = request.prompt.partition("<<<")[0] + first
    if model.endswith("prepared") and "Response B" not in told:
        return chat_reply(f"Written: {len(request.prompt)} <i>&amp;</i>\r\n")
    if model == "repairs" and len(request.messages) < 5:
        return chat_reply(f"I would rather <not> say, {len(request.messages)}.\r\n")
    return chat_reply(answer_json("A", confidence=0.7, criteria=[("accuracy", "A")]))


@pytest.fixture(scope="module")
def visitor(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Visitor]:
    directory = tmp_path_factory.mktemp("sent")
    with pytest.MonkeyPatch.context() as patch, JudgeServer(answer) as judge:
        forget_proxies(patch)
        offers = [offer(name, directory, judge.url, **asked) for name, asked in ASKED.items()]
        config = ServerConfig(judges=tuple(offers), store=str(directory / "s.db"), port=0)
        service = HttpService(config, judge)
        service.start()
        try:
            yield Visitor(service)
        finally:
            service.close()


def offer(
    name: str,
    directory: Path,
    url: str,
    *,
    template: str | None = None,
    file: str = "own.txt",
    **config: Any,
) -> Any:
    if template is not None:
        path = directory / f"{name}-{file}"
        path.write_text(template, "utf-8")
        config["template"] = path
    return judge_offer(name, f"openai:{name}", base_url=url, **{"repairs": 0, **config})


def shown(page: Html) -> list[str]:
    """The messages; the first line's end of a pre is not its own."""
    return ["".join(each.texts).removeprefix("\n") for each in page.all("pre", class_="sent")]


def sent(visitor: Visitor, name: str) -> list[list[dict[str, str]]]:
    """The requests that asked for a verdict."""
    judge = visitor.service.judge
    assert judge is not None
    mine = [each for each in judge.requests if each.json["model"] == name]
    texts = (ROW["response_a"], ROW["response_b"])
    return [each.messages for each in mine if all(text in each.prompt for text in texts)]


@pytest.mark.parametrize("name", [name for name in ASKED if name not in ("repairs", "chance")])
def test_what_is_shown_is_what_was_sent(name: str, visitor: Visitor) -> None:
    run = visitor.start([ROW], judges=[name], criteria="")
    page = visitor.see(f"{run}/pairs/1")
    requests = sent(visitor, name)
    letters = 3 if name.startswith("letters") else 1  # the whole, and each of two criteria
    assert len(requests) == 2 * letters * (2 if name == "samples" else 1)
    # Samples are asked with the same messages, which are shown once.
    different = {tuple(each["content"] for each in messages) for messages in requests}
    assert len(different) == 2 * letters
    found = shown(page)
    parts = set()
    while found:
        own = next(each for each in different if found[: len(each)] == list(each))
        parts.add(own)
        found = found[len(own) :]
    assert parts == different
    roles = {each["role"] for messages in requests for each in messages}
    heads = [each.text for each in page.all("h4") if each.text.endswith(tuple(roles))]
    assert len(heads) == len(shown(page))
    if "prepared" in name:
        assert "Written: " in "".join(shown(page))


def test_answers_that_were_shown_to_the_judge_again_stand_there_too(visitor: Visitor) -> None:
    """Twice: each time the first messages, the answer, and what was wrong with it."""
    run = visitor.start([ROW], judges=["repairs"], criteria="")
    requests = sent(visitor, "repairs")
    assert sorted(map(len, requests)) == [2, 2, 4, 4, 4, 4]
    found = shown(visitor.see(f"{run}/pairs/1"))
    bases = [[each["content"] for each in request] for request in requests if len(request) == 2]
    assert sorted([found[:2], found[2:4]]) == sorted(bases)
    added = [[each["content"] for each in request[2:]] for request in requests if len(request) > 2]
    assert sorted([found[at : at + 2] for at in range(4, 12, 2)]) == sorted(added)
    assert len(found) == 12


def why(page: Html) -> str:
    assert shown(page) == []
    return page.one("p", class_="note").text


def test_a_template_that_chooses_at_random_is_not_shown(visitor: Visitor) -> None:
    run = visitor.start([ROW], judges=["chance"], criteria="")
    told = why(visitor.see(f"{run}/pairs/1"))
    assert "Not available: the template chance-chance.jinja makes random" in told


def test_a_template_that_is_not_stored_or_has_changed_is_said(visitor: Visitor) -> None:
    """As stores of an earlier evenhand, or of a later one, have it."""
    run = visitor.start([ROW | {"prompt": "Another?"}], judges=["own"], criteria="")
    address = visitor.service.config.store
    assert address is not None
    for value, told in (
        (None, "the text of the template own-own.txt is not stored"),
        (OWN + "!", "from another version of evenhand"),
        (OWN, ""),
    ):
        with open_store(address) as store, store.writing() as connection:
            change: Any = "UPDATE judges SET template = ? WHERE name = 'openai:own'"
            connection.exec_driver_sql(change, (value,))
        page = visitor.see(f"{run}/pairs/1")
        assert told in why(page) if told else shown(page)


def test_what_was_prepared_and_is_gone_or_forgotten_is_said(visitor: Visitor) -> None:
    row = ROW | {"prompt": "To be forgotten?"}
    run = visitor.start([row], judges=["prepared"], criteria="", name="to forget")
    address = visitor.service.config.store
    assert address is not None
    with open_store(address) as store:
        with store.writing() as connection:
            connection.exec_driver_sql("DELETE FROM answers WHERE key LIKE 'metrics-%'")
        assert "some text prepared" in why(visitor.see(f"{run}/pairs/1"))
        store.deletion.forget_texts("to forget")
    assert "were deleted" in visitor.see(f"{run}/pairs/1").text


class Continues:
    """A judge whose answer is begun for it, as the models on this machine are."""

    name = "local:own.gguf"
    traits = Traits(modes=("letter",), parallel=False, continues=True, free=True)

    def __init__(self) -> None:
        self.calls: list[JudgeCall] = []

    async def ask(self, call: JudgeCall) -> Completion:
        self.calls.append(call)
        top = (("A", -0.1), ("B", -2.5), ("C", -4.0))
        return Completion("A", logprobs=(TokenLogprob("A", -0.1, top),))

    async def close(self) -> None:
        pass


async def judged(store: Store, judge: Any, name: str) -> tuple[SentMessage, ...] | Message | None:
    pair = Pair.model_validate(ROW)
    plan = JudgePlan(judge, JudgeConfig(mode="letter"))
    sources = given_pairs([pair], ReadOptions())
    await judge_pairs(sources, [plan], RunOptions(name=name), store=store)
    run = store.runs.find(name)
    assert run is not None
    whole = store.verdicts.item(run.id, "hostile")
    assert whole is not None
    return sent_prompt(store, run, whole.pair, whole.judged[0])


async def test_the_answer_that_is_begun_for_a_judge_is_shown_too(tmp_path: Path) -> None:
    with open_store(tmp_path / "s.db") as store:
        judge = Continues()
        found = await judged(store, judge, "begun")
        assert isinstance(found, tuple)
        asked = [message.text for call in judge.calls for message in call.messages]
        assert sorted(each.text for each in found) == sorted(asked)
        begun = [each for each in found if each.role == "assistant"]
        assert len(begun) == 6  # two orders, the whole and two criteria
        # Of a judge that nobody here knows, nobody knows whether it is so.
        judge.name = "somebody's own"
        unknown = await judged(store, judge, "unknown")
        assert isinstance(unknown, Message)
        assert unknown.code == "serve.prompt_judge_unknown"


async def test_what_no_page_can_show_is_said(tmp_path: Path) -> None:
    with open_store(tmp_path / "s.db") as store:
        judge = Continues()
        await judged(store, judge, "plain")
        run = store.runs.find("plain")
        assert run is not None
        whole = store.verdicts.item(run.id, "hostile")
        assert whole is not None
        pair = whole.pair.model_copy(update={"prompt": "a\x00b"})
        found = sent_prompt(store, run, pair, replace(whole.judged[0]))
        assert isinstance(found, Message)
        assert found.code == "serve.prompt_unshowable"
