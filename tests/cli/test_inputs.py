from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from command_line import DOCUMENT, Command, fair, judged_by
from evenhand.cli.inputs import read_criterion, read_text
from evenhand.errors import InputError
from servers import StartServer

JUDGE = ("--judge", "baseline:longer", "--json")


def document(**changed: Any) -> bytes:
    return json.dumps({**DOCUMENT, **changed}).encode()


@pytest.mark.parametrize(
    "data",
    [
        document(),
        b"\xef\xbb\xbf" + document(),
        json.dumps(DOCUMENT, indent=2).replace("\n", "\r\n").encode(),
        json.dumps(
            {
                "original_prompt": "p",
                "response_a": "a",
                "response_b": "b",
                "criteria": [{"name": "c", "weight": 2}],
                "allow_tie": True,
                "swap_positions": False,
            }
        ).encode(),
        document(id="x", context=None, reference="r", allowTie=False, responseB="It is 54, or so."),
    ],
    ids=["plain", "byte-order mark", "CRLF", "snake case", "every field"],
)
@pytest.mark.parametrize("name", ["pair.json", "-"])
def test_document_is_read_from_a_file_and_from_standard_input(
    command: Command, data: bytes, name: str
) -> None:
    (command.directory / "pair.json").write_bytes(data)
    ran = command("compare", name, *JUDGE, stdin=data)
    assert ran.code == 0, ran.out
    assert ran.verdict["success"] is True


@pytest.mark.parametrize(
    ("data", "complaint"),
    [
        (b"", "standard input is empty"),
        (b" \r\n\t", "standard input is empty"),
        (b"\xef\xbb\xbf", "standard input is empty"),
        (b"{", "is not JSON"),
        (b"prompt: x", "is not JSON"),
        (document() + document(), "is not JSON"),
        (b"[]", "is not a JSON object"),
        (b"[" + document() + b"]", "is not a JSON object"),
        (b'"pair"', "is not a JSON object"),
        (b"null", "is not a JSON object"),
        (b'{"prompt": "p", "prompt": "q"}', "the key 'prompt' appears twice in one object"),
        (b"[" * 100_000 + b"]" * 100_000, "nested too deeply"),
        (b'{"prompt":' * 100_000, "nested too deeply"),
        (b'{"prompt": ' + b"[" * 500 + b"]" * 500 + b"}", "prompt must be a string"),
        (b"\xff\xfe{\x00}\x00", "is not UTF-8 (byte 1)"),
        (document(critera=["typo"]), "critera is not a known field"),
        (document(original_prompt="again"), "is also given as"),
        (document(response_a="again"), "is also given as"),
        (document(criteria=[]), "criteria is empty"),
        (document(criteria="accuracy"), "criteria must be a list"),
        (document(criteria=["Accuracy", "accuracy "]), "criteria repeats"),
        (document(responseA=7), "responseA must be a string, not the number 7"),
        (document(responseA=None), "responseA must be a string, not null"),
        (document(allowTie="no"), "allowTie must be true or false"),
        (
            b'{"prompt": "\\ud800", "responseA": "", "responseB": "", "criteria": ["c"]}',
            "surrogate",
        ),
        (b'{"responseA": "", "responseB": "", "criteria": ["c"]}', "prompt is missing"),
    ],
)
def test_document_that_is_no_pair_is_refused_with_one_line(
    command: Command, data: bytes, complaint: str
) -> None:
    ran = command("compare", "-", *JUDGE, stdin=data)
    assert ran.code == 2
    assert ran.failure["kind"] == "input"
    assert complaint in ran.failure["message"]
    assert "\n" not in ran.failure["message"]


@pytest.mark.parametrize(
    ("option", "field"),
    [
        (("--prompt", "x"), "prompt"),
        (("--a", "x"), "responseA"),
        (("--b", "x"), "responseB"),
        (("-c", "x"), "criteria"),
    ],
)
def test_document_and_option_for_the_same_field_are_refused(
    command: Command, option: tuple[str, str], field: str
) -> None:
    ran = command("compare", "-", *option, *JUDGE, stdin=document())
    assert ran.code == 2
    assert ran.failure["message"].startswith(
        f"{field} is given both in the document and as an option"
    )


@pytest.mark.parametrize(
    ("option", "changed"),
    [
        (("--no-tie",), {"allow_tie": True}),
        (("--no-swap",), {"swapPositions": True}),
        (("--id", "x"), {"id": "y"}),
        (("--context", "x"), {"context": None}),
        (("--reference", "x"), {"reference": "y"}),
    ],
)
def test_document_and_flag_for_the_same_field_are_refused_in_either_spelling(
    command: Command, option: tuple[str, ...], changed: dict[str, Any]
) -> None:
    ran = command("compare", "-", *option, *JUDGE, stdin=document(**changed))
    assert ran.code == 2
    assert ran.failure["message"].startswith(f"{next(iter(changed))} is given both in the document")


def test_text_comes_verbatim_from_a_file(command: Command, start_server: StartServer) -> None:
    text = "It is 56.\r\n\ttab, ünïcode, 中文 \N{WAVING HAND SIGN}\n\n"
    (command.directory / "a.txt").write_bytes(text.encode())
    server = start_server(fair)
    arguments = ("-p", "q", "--a", "@a.txt", "--b", "It is 54.", "-c", "accuracy")
    assert command("compare", *arguments, *judged_by(server)).code == 0
    assert text in server.requests[0].prompt


def test_text_comes_from_standard_input_with_at_and_dash(
    command: Command, start_server: StartServer
) -> None:
    server = start_server(fair)
    arguments = ("-p", "@-", "--a", "It is 56.", "--b", "It is 54.", "-c", "accuracy")
    assert command("compare", *arguments, *judged_by(server), stdin=b"piped?\n").code == 0
    assert "piped?\n" in server.requests[0].prompt


@pytest.mark.parametrize(
    "arguments",
    [
        ("-p", "@-", "--a", "@-", "--b", "x", "-c", "c"),
        ("-", "--reference", "@-"),
    ],
)
def test_standard_input_is_not_read_twice(command: Command, arguments: tuple[str, ...]) -> None:
    ran = command("compare", *arguments, *JUDGE, stdin=document())
    assert ran.code == 2
    assert "both read standard input" in ran.failure["message"]


def test_two_at_signs_begin_a_text_with_one(command: Command, start_server: StartServer) -> None:
    server = start_server(fair)
    arguments = ("-p", "@@ada It is 1", "--a", "It is 56.", "--b", "It is 54.", "-c", "accuracy")
    assert command("compare", *arguments, *judged_by(server)).code == 0
    assert "\n@ada It is 1\n" in server.requests[0].prompt


@pytest.mark.parametrize(
    ("value", "complaint"),
    [
        ("@", "--a has no file name"),
        ("@missing.txt", "--a: cannot read missing.txt (No such file or directory)"),
        ("@.", "--a: cannot read . (Is a directory)"),
        ("@latin.txt", "latin.txt is not UTF-8 (byte 2)"),
        ("@" + "x" * 5000, "(File name too long)"),
        ("@~nobody-of-this-name/x", "is not a valid file name"),
    ],
)
@pytest.mark.parametrize("as_json", [True, False])
def test_file_that_cannot_be_read_is_named(
    command: Command, value: str, complaint: str, as_json: bool
) -> None:
    (command.directory / "latin.txt").write_bytes("né".encode("latin-1"))
    arguments = ("-p", "q", "--a", value, "--b", "x", "-c", "c", "--judge", "baseline:longer")
    ran = command("compare", *arguments, *(("--json",) if as_json else ()))
    assert ran.code == 2
    assert complaint in (ran.failure["message"] if as_json else ran.err)
    assert ran.err.count("\n") == 1


@pytest.mark.parametrize("as_json", [True, False])
def test_file_name_that_is_no_text_can_still_be_complained_of(
    command: Command, as_json: bool
) -> None:
    arguments = ("-p", "q", "--a", "@\udcff", "--b", "x", "-c", "c", "--judge", "baseline:longer")
    ran = command("compare", *arguments, *(("--json",) if as_json else ()))
    assert ran.code == 2
    assert "cannot read" in (ran.failure["message"] if as_json else ran.err)


def test_argument_that_is_no_text_is_bad_input(command: Command) -> None:
    arguments = ("-p", "q", "--a", "\udcff", "--b", "x", "-c", "c", *JUDGE)
    ran = command("compare", *arguments)
    assert ran.code == 2
    assert "response_a is not UTF-8: character 1 is the byte 0xFF" in ran.failure["message"]


def test_nothing_at_all_names_what_is_needed(command: Command) -> None:
    ran = command("compare", "--judge", "baseline:longer")
    assert ran.code == 2
    assert ran.err.startswith("error  nothing to compare; give --prompt, --a, --b and -c")


def test_document_that_is_a_directory_or_missing_is_refused(
    command: Command, tmp_path: Path
) -> None:
    for name in (str(tmp_path), "missing.json"):
        ran = command("compare", name, *JUDGE)
        assert ran.code == 2
        assert "cannot read" in ran.failure["message"]


@given(st.text())
def test_any_text_can_be_given_with_an_at_sign_before_one(text: str) -> None:
    given_as = f"@{text}" if text.startswith("@") else text
    assert read_text(given_as, "--a") == text


@given(st.text(alphabet=st.characters(exclude_characters=":：*×")))
def test_criterion_without_a_colon_is_its_name(name: str) -> None:
    assert read_criterion(name) == name


def test_file_name_with_a_nul_is_refused() -> None:
    with pytest.raises(InputError, match="is not a valid file name"):
        read_text("@a\x00b", "--a")


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (("--a", "a", "--b", "b", "-c", "c"), "prompt is missing; give --prompt"),
        (("-p", "p", "--b", "b", "-c", "c"), "responseA is missing; give --a"),
        (("-p", "p", "--a", "a", "-c", "c"), "responseB is missing; give --b"),
        (("-p", "p", "--a", "a", "--b", "b"), "criteria is missing; give -c NAME"),
    ],
)
def test_what_is_missing_is_asked_for_by_its_option(
    command: Command, options: tuple[str, ...], complaint: str
) -> None:
    ran = command("compare", *options, "--judge", "openai:m")
    assert (ran.code, ran.err) == (2, f"error  {complaint}\n")


def test_value_that_is_not_on_offer_is_said_in_our_words(command: Command) -> None:
    ran = command("compare", "--mode", "foo")
    assert ran.err.startswith("error  Invalid value for '--mode': 'foo' is not one of ")


@pytest.mark.parametrize(
    ("text", "criterion"),
    [
        ("accuracy*2", {"name": "accuracy", "weight": 2.0}),
        ("accuracy * 0.5: facts", {"name": "accuracy", "weight": 0.5, "description": "facts"}),
        ("清晰×2：容易理解", {"name": "清晰", "weight": 2.0, "description": "容易理解"}),
        ("a*2:", {"name": "a*2:"}),  # no description, so the colon is the name's
        ("tone: 3*2 words", {"name": "tone", "description": "3*2 words"}),
        ("*2", {"name": "*2"}),
        ("f(x)*y", {"name": "f(x)*y"}),
    ],
)
def test_criterion_takes_a_weight(text: str, criterion: dict[str, object]) -> None:
    found = read_criterion(text)
    assert ({"name": found} if isinstance(found, str) else found) == criterion


def test_criteria_of_the_config_file_are_those_of_pairs_without_any(command: Command) -> None:
    (command.directory / "evenhand.toml").write_text('criteria = ["tone*3: warm", "brevity"]')
    texts = ("-p", "p", "--a", "a", "--b", "b", "--json")
    shown = command("prompt", *texts).out
    assert "tone" in shown
    assert "brevity" in shown
    own = command("prompt", *texts, "-c", "accuracy").out
    assert "accuracy" in own
    assert "brevity" not in own
    document = {"prompt": "p", "responseA": "a", "responseB": "b", "criteria": ["depth"]}
    (command.directory / "pair.json").write_text(json.dumps(document))
    assert "brevity" not in command("prompt", "pair.json", "--json").out


def test_criterion_takes_a_full_width_colon_too() -> None:
    assert read_criterion("清晰：容易理解") == {"name": "清晰", "description": "容易理解"}
