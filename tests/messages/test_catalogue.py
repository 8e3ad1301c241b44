"""Every message has a sentence in each language, with the values that it is given."""

from __future__ import annotations

import ast
import pickle
import re
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from string import Formatter
from typing import Any, Literal, get_args

import pytest

import evenhand
from evenhand import errors
from evenhand.contract.model import Model
from evenhand.messages import (
    FACES,
    FOR_CLIENTS,
    WHOLE,
    Face,
    Language,
    Message,
    Sentence,
    catalogue,
    option,
    render,
)

SOURCES = Path(evenhand.__file__).parent
LANGUAGES: tuple[Language, ...] = get_args(Language)
ERRORS = [each for each in vars(errors).values() if isinstance(each, type) and each is not Message]
MAKERS = {"Message", *(f"{each.__name__}.of" for each in ERRORS)}
CHINESE = re.compile(r"[\u4e00-\u9fff]")


def slots(text: str) -> set[str]:
    named = {name for _, name, _, _ in Formatter().parse(text) if name is not None}
    return {name for name in named if not name.startswith("--")}


@cache
def trees() -> tuple[tuple[Path, ast.Module], ...]:
    return tuple((path, ast.parse(path.read_text("utf-8"))) for path in SOURCES.rglob("*.py"))


def made() -> Iterator[tuple[str, str, set[str] | None]]:
    """Where a message, or an error with one, is made: the place, its code, and its values' names
    where all are written out."""
    for path, tree in trees():
        for node in ast.walk(tree):
            if not (isinstance(node, ast.Call) and ast.unparse(node.func) in MAKERS):
                continue
            if node.args and isinstance(node.args[0], ast.Constant):
                given = {each.arg for each in node.keywords}
                names = None if None in given else {str(name) for name in given}
                yield f"{path.relative_to(SOURCES)}:{node.lineno}", str(node.args[0].value), names


@cache
def texts() -> tuple[set[str], set[str]]:
    """All constant strings of the sources, and the beginnings of those that are put together."""
    constants: set[str] = set()
    beginnings: set[str] = set()
    for _, tree in trees():
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                constants |= {node.value, re.sub(r"[^a-z0-9]+", "_", node.value)}
            elif isinstance(node, ast.JoinedStr) and len(node.values) > 1:
                first, last = node.values[0], node.values[-1]
                if isinstance(first, ast.Constant) and re.fullmatch(r"\w+\.\w*", str(first.value)):
                    beginnings.add(str(first.value))
                elif isinstance(last, ast.Constant):
                    constants.add(str(last.value))
    return constants, beginnings


def is_used(code: str) -> bool:
    constants, beginnings = texts()
    if code in constants:
        return True
    rests = (code.removeprefix(each) for each in beginnings if code.startswith(each))
    if any(rest in constants for rest in rests):
        return True
    begun = (each for each in constants if "." in each and code.startswith(each))
    return any(code.removeprefix(each) in constants for each in begun)


OWN_PARTS: tuple[Literal[Face, "label"], ...] = ("label", *FACES)
PARTS = (None, *OWN_PARTS)


def test_both_languages_have_the_same_messages() -> None:
    for part in PARTS:
        assert catalogue("en", part).keys() == catalogue("zh", part).keys()


def flat(tables: dict[str, Any], before: str = "") -> dict[str, str]:
    texts: dict[str, str] = {}
    for key, value in tables.items():
        own = flat(value, f"{before}{key}.") if isinstance(value, dict) else {before + key: value}
        texts |= own
    return texts


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_catalogue_is_toml_read_line_by_line(language: Language) -> None:
    tables = tomllib.loads((SOURCES / "messages" / f"{language}.toml").read_text("utf-8"))
    for part in OWN_PARTS:
        assert catalogue(language, part) == flat(tables.pop(part, {}))
    assert catalogue(language) == flat(tables)


def test_a_message_has_the_same_values_in_both_languages() -> None:
    for part in PARTS:
        english, chinese = catalogue("en", part), catalogue("zh", part)
        differ = [code for code in english if slots(english[code]) != slots(chinese[code])]
        assert differ == []


def test_the_other_language_is_another() -> None:
    figures = re.compile(r"\{[^{}]*\}|[\W\d_]")
    for face in (None, *FACES):
        for code, text in catalogue("zh", face).items():
            assert CHINESE.search(text) or not figures.sub("", text), code


def test_a_chinese_label_holds_no_english_prose() -> None:
    prose = re.compile(r"[a-z’']+(?: [a-z’']+){2,}")
    for code, text in catalogue("zh", "label").items():
        assert not prose.search(re.sub(r"\{[^{}]*\}", "", text)), code


@pytest.mark.parametrize("face", FACES)
def test_what_one_face_is_told_needs_no_other_values(face: Face) -> None:
    own = catalogue("en", face)
    for code, text in own.items():
        assert slots(text) <= slots(catalogue("en")[code]), code


def test_every_message_is_made_somewhere() -> None:
    assert [code for code in catalogue("en") if not is_used(code)] == []


def test_every_label_is_drawn_somewhere() -> None:
    """Most keys are put together, from a name that stands somewhere."""
    kinds = ("*.py", "*.html", "*.js")
    sources = "".join(path.read_text("utf-8") for kind in kinds for path in SOURCES.rglob(kind))
    words = set(re.findall(r"[\w-]+", sources))
    ends = {code: code.rpartition(".")[2] for code in catalogue("en", "label")}
    unused = [code for code, end in ends.items() if not {end, *end.split("_")} & words]
    assert unused == []


def test_what_is_made_is_in_the_catalogue_with_its_values() -> None:
    sentences = catalogue("en")
    unknown = [(place, code) for place, code, _ in made() if code not in sentences]
    assert unknown == []
    differ = [
        (place, code, names ^ slots(sentences[code]))
        for place, code, names in made()
        if names is not None and names != slots(sentences[code])
    ]
    assert differ == []


def error_names() -> set[str]:
    """Of classes that people are shown; `MissingExtra` makes its own message."""
    names, before = {"EvenhandError"}, 0
    while before != len(names):
        before = len(names)
        for _, tree in trees():
            for node in ast.walk(tree):
                if isinstance(node, ast.ClassDef) and any(
                    ast.unparse(base).split(".")[-1] in names for base in node.bases
                ):
                    names.add(node.name)
    return names - {"MissingExtra"}


def test_an_error_is_made_of_a_message() -> None:
    """A sentence written where an error is made has one language and one reader."""
    names = error_names()
    plain = [
        f"{path.relative_to(SOURCES)}:{node.lineno}"
        for path, tree in trees()
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and ast.unparse(node.func).split(".")[-1] in names
        if node.args and isinstance(node.args[0], ast.Constant | ast.JoinedStr | ast.BinOp)
    ]
    assert plain == []


def test_no_room_below_the_edges_names_a_command_line_option() -> None:
    """`{--option}` in a catalogue is what its reader calls it."""
    edges = ("cli", "serve", "api.py", "skill", "demo", "tools.py", "checkup.py", "pytest_")
    of_pip = ("judges/embedded_model.py", "installation.py")
    named = []
    for path, tree in trees():
        place = path.relative_to(SOURCES).as_posix()
        if place.startswith(edges) or place in of_pip:
            continue
        bare = {
            node.value
            for node in ast.walk(tree)
            if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        }
        named += [
            f"{place}:{node.lineno}"
            for node in ast.walk(tree)
            if isinstance(node, ast.Constant) and isinstance(node.value, str)
            if node not in bare and re.search(r"(?<![\w-])--[a-z]", node.value)
        ]
    assert named == []


def test_an_option_is_called_as_the_reader_calls_it() -> None:
    assert option("max-tokens", "cli") == "--max-tokens"
    assert option("max-tokens", "http") == "maxTokens"
    assert option("max-tokens", "python") == "max_tokens"


def test_a_page_names_no_option_and_no_command() -> None:
    for language in LANGUAGES:
        for code, text in catalogue(language, "page").items():
            assert not re.search(r"(?<!\w)--?[a-z]|\bevenhand |=COLUMN", text), code


def made_up(text: str) -> dict[str, object]:
    """Values of the kinds that a sentence's slots take."""
    values: dict[str, object] = {}
    for _, name, spec, _ in Formatter().parse(text):
        if name is None or name.startswith("--"):
            continue
        if spec in ("or", "and"):
            values[name] = ["one", "two", "three"]
        elif spec == "option":
            values[name] = "max-tokens"
        elif spec:
            values[name] = 3
        else:
            values.setdefault(name, "this")
    return values


@pytest.mark.parametrize("face", FACES)
@pytest.mark.parametrize("language", LANGUAGES)
def test_every_message_reads_well_for_every_reader(language: Language, face: Face) -> None:
    options = {
        name.removeprefix("--")
        for text in catalogue("en").values()
        for _, name, _, _ in Formatter().parse(text)
        if name is not None and name.startswith("--") and "-" in name[2:]
    }
    snake = re.compile(rf"\b({'|'.join(each.replace('-', '_') for each in sorted(options))})\b")
    for code, text in catalogue("en").items():
        message = Message.of(code, made_up(text))
        rendered = render(message, language, face)
        assert rendered.splitlines() == [rendered], code
        if "{{" not in text:  # a template's slot, or JSON to write
            assert not re.search(r"[{}]", rendered), (code, rendered)
        if face == "cli":
            assert not snake.search(rendered), (code, rendered)
        else:
            assert not re.search(r"(?<![\w-])--(?!head\b)[a-z]", rendered), (code, rendered)


class Noted(Model):
    note: Sentence


def test_a_message_is_a_sentence_in_json_and_whole_in_the_store() -> None:
    message = Message("verdict.empty", which=Message("winner.A"))
    noted = Noted(note=message)
    assert noted.note is message
    assert noted.model_dump_json() == '{"note":"Response A is empty."}'
    read = Noted.model_validate_json(noted.model_dump_json(context=WHOLE))
    assert isinstance(read.note, Message)
    assert render(read.note, "zh") == "响应 A 为空。"
    assert read == noted


def test_a_client_reads_a_message_in_the_language_that_it_was_made_in() -> None:
    noted = Noted(note=Message.of("ranking.circles", {"count": 2}, "zh"))
    assert noted.model_dump(context=FOR_CLIENTS)["note"].startswith("比较结果有 2 处")


def test_messages_in_a_list_are_stored_whole_too() -> None:
    noted = Noted(note=Message("runs.partners_missing", n=2, each=[Message("unread.answer_empty")]))
    read = Noted.model_validate_json(noted.model_dump_json(context=WHOLE))
    assert read == noted
    assert isinstance(read.note, Message)
    assert isinstance(read.note.values["each"][0], Message)


def test_what_another_evenhand_stored_is_shown_as_it_is() -> None:
    read = Noted.model_validate({"note": {"code": "no.such", "values": {"n": 1}}})
    assert read.note == "no.such {'n': 1}"
    assert Noted(note="as a server wrote it").note == "as a server wrote it"


def test_a_message_goes_to_another_process_with_its_values() -> None:
    message = Message("trust.steady", n=1234)
    again = pickle.loads(pickle.dumps(message))  # noqa: S301 - our own
    assert again == message == "Both orders agreed in all 1,234 pairs."
    assert again.code == "trust.steady"
    assert again.values == {"n": 1234}


def test_what_is_no_message_is_rendered_as_it_is() -> None:
    assert render("{as} it --is", "zh", "http") == "{as} it --is"
