"""Foreign text without our secrets: quoted in a message, or as a judge's answer."""

from __future__ import annotations

import base64
import html
import json
import string
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenhand.judges.protocol import Completion, TokenLogprob
from evenhand.judges.redaction import Redactor, secrets_in

KEY = "sk-test-0123456789abcdef"
LONG_KEY = "sk-proj-" + string.ascii_letters + string.digits
ODD_KEY = 'pw"with\\odd/chars&<1>+2%'


@given(
    before=st.text(max_size=5000), after=st.text(max_size=300), key=st.sampled_from([KEY, "k" * 40])
)
def test_a_secret_shows_nowhere_in_quoted_text(before: str, after: str, key: str) -> None:
    quoted = Redactor([key])(f"{before} {key} {after}")
    assert key not in quoted
    assert key[:10] not in quoted.replace(before, "").replace(after, "")
    assert len(quoted) <= 200


def every_writing(key: str) -> dict[str, str]:
    return {
        "as given": key,
        "in JSON": json.dumps(key),
        "in JSON in JSON": json.dumps(json.dumps(key)),
        "in JSON that escapes slashes": json.dumps(key).replace("/", "\\/"),
        "in JSON that escapes signs": "".join(f"\\u{ord(c):04x}" for c in key if c not in '"\\'),
        "in a URL": quote(key, safe=""),
        "in a form": quote_plus(key),
        "as a page": html.escape(key),
        "as Python": repr(key),
        "base64": base64.b64encode(key.encode()).decode(),
        "base64 for URLs": base64.urlsafe_b64encode(key.encode()).decode(),
        "Basic, one before": base64.b64encode(f"u:{key}".encode()).decode(),
        "Basic, two before": base64.b64encode(f"us:{key}".encode()).decode(),
        "Basic, three before": base64.b64encode(f"usr:{key}:x".encode()).decode(),
    }


@pytest.mark.parametrize(
    ("key", "writing"),
    [
        (key, writing)
        for key in (KEY, LONG_KEY, ODD_KEY)
        for writing in every_writing(key)
        # Quotes and backslashes have a form of their own in JSON.
        if key != ODD_KEY or writing != "in JSON that escapes signs"
    ],
)
def test_an_answer_loses_a_key_however_it_is_written(key: str, writing: str) -> None:
    written = every_writing(key)[writing]
    cut = Redactor([key]).cut(f"Response A is better: {written} was sent.")
    assert cut.startswith("Response A is better: ")
    assert cut.endswith(" was sent.")
    assert written not in cut
    # Nothing of the key's middle is left, whatever stands around it.
    middle = key[4:-4]
    assert middle not in cut
    assert base64.b64encode(key.encode()).decode()[4:-4] not in cut


@given(st.data())
def test_no_long_part_of_a_key_is_left_in_an_answer(data: st.DataObject) -> None:
    begin = data.draw(st.integers(0, len(LONG_KEY) - 24))
    end = data.draw(st.integers(begin + 24, len(LONG_KEY)))
    before, after = data.draw(st.text("x \n", max_size=40)), data.draw(st.text("y \n", max_size=40))
    cut = Redactor([LONG_KEY]).cut(before + LONG_KEY[begin:end] + after)
    assert LONG_KEY[begin + 1 : end - 1] not in cut
    assert "***" in cut


@given(st.text())
def test_an_answer_without_a_key_is_the_answer_itself(text: str) -> None:
    assert Redactor([LONG_KEY, ODD_KEY]).cut(text) == text


@pytest.mark.parametrize("stand_in", ["x", "none", "EMPTY", "response", "placeholder"])
def test_a_stand_in_for_a_key_is_no_secret_of_an_answer(stand_in: str) -> None:
    text = '{"winner": "A", "reasoning": "none of the placeholder response is EMPTY x"}'
    assert Redactor([stand_in], others=[stand_in]).cut(text) == text


@pytest.mark.parametrize("stand_in", ["x", "none", "test", "EMPTY"])
def test_a_stand_in_for_a_key_blanks_no_word_of_a_message(stand_in: str) -> None:
    text = "none of the test servers x is EMPTY"
    assert Redactor([stand_in], others=[stand_in])(text) == text
    # Where a header is quoted, whatever it holds goes.
    assert Redactor([stand_in])(f"Bearer {stand_in}") == "***"


def test_the_public_beginning_of_a_key_stays() -> None:
    text = "Keys of that provider begin with sk-proj-abcdefghijklm."
    assert Redactor([LONG_KEY]).cut(text) == text


def test_a_completion_loses_a_key_from_every_field_that_is_kept() -> None:
    place = TokenLogprob(KEY, -0.1, top=((KEY, -0.1), ("A", -2.0)))
    said = Completion(
        KEY, refusal=KEY, model=f"m {KEY}", request_id=KEY, logprobs=(place, TokenLogprob("A", 0.0))
    )
    clean = Redactor([KEY]).clean(said)
    assert KEY not in repr(clean)
    assert clean.logprobs[0].top[1] == ("A", -2.0)
    plain = Completion("A", model="m")
    assert Redactor([KEY]).clean(plain) is plain


def test_secrets_of_the_environment_are_known_by_their_variables_names() -> None:
    environment = {
        "OPENAI_API_KEY": KEY,
        "EVENHAND_TOKEN": "token-of-the-server",
        "PGPASSWORD": "of-the-database-1",
        "MY_KEY_2": "second-key-of-many",
        "SHORT_KEY": "none",
        "HOME": "/home/of-somebody",
    }
    known = {KEY, "token-of-the-server", "of-the-database-1", "second-key-of-many"}
    assert set(secrets_in(environment)) == known
    redact = Redactor(others=secrets_in(environment))
    assert redact.cut(" ".join(known)) == "*** *** *** ***"


@pytest.mark.parametrize(
    ("key", "text"),
    [
        ("lm-studio", "use lm-studio or ollama"),
        ("not-needed", "details that are not-needed here"),
        ("12345678", "the product is 1234567890, or 12345678"),
        ("dummy-key-123", "my-dummy-key-1234 is another"),
    ],
)
def test_stand_in_keys_leave_ordinary_words_alone(key: str, text: str) -> None:
    assert Redactor([key]).cut(text) == text
    assert Redactor(others=[key]).cut(text) == text


def test_a_variable_that_names_a_file_holds_no_secret() -> None:
    named = {
        "GOOGLE_APPLICATION_CREDENTIALS": "/home/alice/projects/evals/creds.json",
        "B_KEY": "~/keys/one-of-them",
        "C_TOKEN": "C:\\keys\\token.txt",
        "D_SECRET": "s3cr3t-of-this-service",
    }
    assert list(secrets_in(named)) == ["s3cr3t-of-this-service"]


@pytest.mark.parametrize(
    "written",
    [
        "".join(f"\\\\u{ord(c):04x}" for c in LONG_KEY),
        "".join(f"\\\\\\\\u{ord(c):04x}" for c in LONG_KEY),
        "".join(f"\\\\x{ord(c):02x}" for c in LONG_KEY),
        "".join(f"%25{ord(c):02X}" for c in LONG_KEY),
        "".join(f"%2525{ord(c):02x}" for c in LONG_KEY),
    ],
)
def test_a_secret_that_is_escaped_twice_is_cut_out(written: str) -> None:
    """As JSON inside JSON, or a URL inside a URL."""
    assert Redactor([LONG_KEY]).cut(f"it is {written}.") == "it is ***."


def test_a_run_of_backslashes_takes_no_time() -> None:
    text = "\\" * 200_000 + "u00"
    assert Redactor([LONG_KEY]).cut(text) == text
