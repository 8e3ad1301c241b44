from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from evenhand.errors import EvenhandError, InputError, SettingsError
from evenhand.judges.prices import Price
from evenhand.messages import render
from evenhand.options import JudgingOptions
from evenhand.serve.config import (
    LIMIT_KEYS,
    OFFER_KEYS,
    TOP_KEYS,
    JudgeOffer,
    ServerConfig,
    ServerLimits,
    Token,
    is_loopback,
    offers_of,
    read_config,
)
from evenhand.serve.judges import JudgeCatalog
from evenhand.settings import Settings, load_settings
from http_service import judge_offer

SECRET = "0123456789abcdef"
DOCUMENT = Path(__file__).parents[2] / "docs" / "operating.md"
SETTINGS = DOCUMENT.with_name("settings.md")
OF_ITS_JUDGE = [row.name for row in JudgingOptions.rows()]


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "server.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_every_key_of_the_file_becomes_what_it_says(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        """
        host = "0.0.0.0"
        port = 0
        store = "runs.db"
        workers = 3
        allowed_hosts = ["judge.example.org"]
        allowed_origins = ["https://app.example.org"]
        trusted_proxies = ["127.0.0.1"]
        log_texts = true
        log_json = true

        [limits]
        compares = 5
        compare_timeout_s = 2.5

        [[judges]]
        name = "main"
        judge = "openai:m"
        base_url = "http://127.0.0.1:1/v1"
        api_key_env = "MY_KEY"
        mode = "letter"
        locale = "zh"
        template = "mine.txt"
        samples = 3
        reconcile = "average"
        confidence = "logprobs"
        timeout_s = 7
        max_tokens = 99
        temperature = 0.5
        retries = 0
        repairs = 2
        calibration = "learned"
        price = "0.15/0.60"

        [[judges]]
        judge = "replay:../recorded.jsonl"
        """,
    )
    config = read_config(path, environment={"EVENHAND_TOKEN": f"ci={SECRET}"})
    assert config == ServerConfig(
        judges=(
            judge_offer(
                "main",
                "openai:m",
                base_url="http://127.0.0.1:1/v1",
                api_key_env="MY_KEY",
                mode="letter",
                locale="zh",
                template=tmp_path / "mine.txt",
                samples=3,
                reconcile="average",
                confidence="logprobs",
                timeout_s=7,
                max_tokens=99,
                temperature=0.5,
                retries=0,
                repairs=2,
                calibration="learned",
                price=Price(0.15, 0.60),
            ),
            judge_offer("replay:recorded.jsonl", f"replay:{tmp_path}/../recorded.jsonl"),
        ),
        store=str(tmp_path / "runs.db"),
        host="0.0.0.0",
        port=0,
        tokens=(Token("ci", SECRET),),
        allowed_hosts=("judge.example.org",),
        allowed_origins=("https://app.example.org",),
        trusted_proxies=("127.0.0.1",),
        limits=ServerLimits(compares=5, compare_timeout_s=2.5),
        log_texts=True,
        log_json=True,
        workers=3,
    )


def test_what_the_command_line_says_wins_over_the_file(tmp_path: Path) -> None:
    path = written(tmp_path, 'host = "0.0.0.0"\nport = 1\n')
    config = read_config(path, chosen={"host": "127.0.0.1"}, environment={})
    assert (config.host, config.port) == ("127.0.0.1", 1)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("tokens = ['x']", "sets tokens, which is not allowed; set EVENHAND_TOKEN"),
        ("[[judges]]\njudge='openai:m'\napi_key='k'", "name the variable that holds it"),
        ("colour = 1", "sets colour, which is not allowed; it may set store"),
        ("port = 'x'", "port is 'x'; give a whole number"),
        ("workers = 0", "workers is 0; give a whole number of at least 1"),
        ("log_texts = 1", "log_texts is 1; give true or false"),
        ("allowed_hosts = 'x'", "give a list of texts"),
        ("limits = 3", "give a table"),
        ("[limits]\nbody_bytes = -1", "limits.body_bytes is -1; give a number above 0"),
        ("[limits]\nbody_bytes = 1.5", "limits.body_bytes is 1.5"),
        ("[limits]\nbodies = 1", "sets bodies, which is not allowed; it may set body_bytes"),
        ("judges = [1]", "write each judge under"),
        ("[[judges]]\nname = 'x'", r"judges\[1\] has no judge"),
        ("[[judges]]\njudge = 'openai:m'\nsamples = 0", r"judges\[1\].samples is 0"),
        ("[[judges]]\njudge = 'openai:m'\nmode = 'loud'", "give reasoned or letter"),
        ("[[judges]]\njudge = 'openai:m'\nprice = 'cheap'", "'cheap' is not INPUT/OUTPUT"),
        ("[[judges]]\njudge='local'\n[[judges]]\njudge='local'", "two judges are named 'local'"),
        ("host = ", "is not valid TOML"),
    ],
)
def test_what_is_wrong_in_the_file_is_said_on_one_line(
    tmp_path: Path, text: str, said: str
) -> None:
    with pytest.raises(SettingsError, match=said) as refused:
        read_config(written(tmp_path, text), environment={})
    assert "\n" not in str(refused.value) or "TOML" in said


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"cannot read the config file .*nothing\.toml"):
        read_config(tmp_path / "nothing.toml", environment={})


@pytest.mark.parametrize("key", [*TOP_KEYS, *OFFER_KEYS, *LIMIT_KEYS])
def test_every_key_is_documented(key: str) -> None:
    document = SETTINGS if key in OF_ITS_JUDGE else DOCUMENT
    assert re.search(rf"^\| `{key}` \|", document.read_text("utf-8"), re.MULTILINE)


def test_no_key_is_documented_that_is_not_there() -> None:
    text = DOCUMENT.read_text("utf-8").partition("## The config file")[2].partition("## Tokens")[0]
    documented = re.findall(r"^\| `(\w+)` \|", text, re.MULTILINE)
    assert sorted(documented) == sorted({*TOP_KEYS, *OFFER_KEYS, *LIMIT_KEYS} - {*OF_ITS_JUDGE})


def test_every_limits_default_is_documented_as_it_is() -> None:
    text = DOCUMENT.read_text("utf-8")
    for field in fields(ServerLimits):
        row = re.search(rf"^\| `{field.name}` \| .* \| (.+) \|$", text, re.MULTILINE)
        assert row is not None, field.name
        units = {"MiB": 1024**2, "GiB": 1024**3}
        number, _, unit = row[1].replace(",", "").partition(" ")
        told = None if number == "none" else int(number) * units.get(unit, 1)
        assert told == field.default, field.name


def test_every_field_of_a_config_can_be_set() -> None:
    """By the file, or for tokens by the environment alone."""
    assert {field.name for field in fields(ServerConfig)} == {*TOP_KEYS, "tokens", "voters"}


def test_the_documents_example_is_a_config(tmp_path: Path) -> None:
    (example, _) = re.findall(r"```toml\n(.*?)```", DOCUMENT.read_text("utf-8"), re.DOTALL)
    config = read_config(written(tmp_path, example), environment={})
    assert [offer.name for offer in config.judges] == ["main", "quick"]


@pytest.mark.parametrize("host", ["0.0.0.0", "", "::", "192.0.2.7", "judge.example.org"])
def test_it_does_not_listen_where_others_reach_it_without_a_token(host: str) -> None:
    with pytest.raises(SettingsError, match="no token is set; set EVENHAND_TOKEN"):
        ServerConfig(host=host)
    ServerConfig(host=host, tokens=(Token("ci", SECRET),))


@pytest.mark.parametrize("host", ["127.0.0.1", "127.9.9.9", "::1", "[::1]", "localhost"])
def test_this_machines_own_addresses_need_none(host: str) -> None:
    assert ServerConfig(host=host).is_local


@pytest.mark.parametrize("host", ["127.0.0.1.evil.example", "localhost.evil.example", "1270.0.1"])
def test_a_name_that_looks_local_is_not(host: str) -> None:
    assert not is_loopback(host)


def test_no_repr_shows_a_token_an_address_or_a_store() -> None:
    config = ServerConfig(
        judges=(judge_offer("a", "openai:m", base_url="http://user:pw@x/v1"),),
        store="postgresql://u:password@h/db",
        tokens=(Token("ci", SECRET),),
    )
    for hidden in (SECRET, "password", "user:pw"):
        assert hidden not in repr(config)


def offers(
    *judges: JudgeOffer, settings: Settings | None = None, **environment: str
) -> JudgeCatalog:
    return JudgeCatalog(
        ServerConfig(judges=judges), settings or Settings(), environment=environment
    )


async def test_an_offer_is_opened_once_and_closed() -> None:
    offered = offers(*offers_of(["baseline:longer", "baseline:random"]))
    assert offered.names == ("baseline:longer", "baseline:random")
    assert offered.plan() is offered.plan("baseline:longer")
    assert offered.plan("baseline:random").judge.name == "baseline:random"
    await offered.close()


@pytest.mark.parametrize(
    "named",
    [
        "local:/etc/passwd",
        "replay:/etc/passwd",
        "openai:gpt-4o",
        "openai:m@http://evil.example",
        "http://evil.example/v1",
        "BASELINE:LONGER",
        " baseline:longer",
        "",
        "../baseline:longer",
    ],
)
def test_a_client_gets_no_judge_but_an_offered_one(named: str) -> None:
    with pytest.raises(InputError, match="does not offer; it offers baseline:longer"):
        offers(*offers_of(["baseline:longer"])).plan(named)


def test_a_long_name_is_not_repeated_whole() -> None:
    with pytest.raises(InputError) as refused:
        offers(*offers_of(["baseline:longer"])).plan("x" * 100_000)
    assert len(str(refused.value)) < 250


def test_a_server_without_judges_says_how_to_get_one() -> None:
    with pytest.raises(InputError) as refused:
        offers().plan()
    assert "no judge; start it with --judge" in render(refused.value.message, face="cli")


def test_what_is_offered_tells_no_path_address_or_key(tmp_path: Path) -> None:
    recorded = tmp_path / "secret-folder" / "recorded.jsonl"
    recorded.parent.mkdir()
    recorded.write_text("", encoding="utf-8")
    offered = offers(
        *offers_of([f"replay:{recorded}"]),
        judge_offer("m", "openai:m", base_url="http://hidden.example/v1", api_key_env="K"),
        K="sk-hidden-key",
    )
    told = " ".join(view.model_dump_json() for view in offered.offered())
    assert "replay:recorded.jsonl" in told
    for hidden in ("secret-folder", "hidden.example", "sk-hidden-key"):
        assert hidden not in told


def test_a_key_that_is_not_set_is_an_error_that_names_its_variable() -> None:
    with pytest.raises(SettingsError, match="reads its key from NO_SUCH, which is not set"):
        offers(judge_offer("m", "openai:m", api_key_env="NO_SUCH")).plan()


def test_one_address_for_several_judges_goes_to_those_that_speak_its_language() -> None:
    read = offers_of(["openai:a", "anthropic:b"], base_url="http://here/v1")
    assert [offer.config.base_url for offer in read] == ["http://here/v1", None]


def test_an_offer_judges_as_the_command_line_would(tmp_path: Path) -> None:
    template = tmp_path / "t.txt"
    template.write_text(
        "{prompt} {context} {reference} {criteria} {response_a} {response_b} {tie_rule}",
        encoding="utf-8",
    )
    settings = Settings(locale="zh", repairs=3, retries=7, mode="letter")
    offered = offers(
        judge_offer("m", "openai:m", base_url="http://127.0.0.1:1/v1", mode="reasoned", samples=2),
        settings=settings,
    )
    config = offered.plan().config
    assert (config.mode, config.locale, config.samples) == ("reasoned", "zh", 2)
    assert (config.repairs, config.retry_policy.attempts) == (3, 8)


@pytest.mark.parametrize(
    "offer",
    [
        judge_offer("m", "openai:m", template=Path("/no/such/template.txt")),
        judge_offer("m", "openai:m", reconcile="average"),
        judge_offer("m", "openai:m", calibration="never-learned"),
        judge_offer("m", "nonsense"),
    ],
)
def test_an_offer_that_cannot_work_is_refused_when_it_is_opened(offer: JudgeOffer) -> None:
    with pytest.raises(EvenhandError):
        offers(offer).plan()


@pytest.mark.parametrize(
    "line",
    [
        'base_url = "http://evil.example/v1"',
        'template = "evil.txt"',
        'store = "evil.db"',
        'api_key = "sk-evil"',
        'judge = "local:/etc/passwd"',
        'judge = "replay:/etc/passwd"',
        'host = "0.0.0.0"',
        "port = 1",
        'tokens = ["evil-evil-evil-evil"]',
        'allowed_hosts = ["evil.example"]',
        'allowed_origins = ["http://evil.example"]',
        "[limits]\nbody_bytes = 1",
        "[[judges]]\njudge = 'openai:evil'\nbase_url = 'http://evil.example/v1'",
    ],
)
@pytest.mark.parametrize("name", ["evenhand.toml", "server.toml", "config.toml"])
def test_a_config_file_in_the_working_directory_sets_none_of_this(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: str, name: str
) -> None:
    (tmp_path / name).write_text(line, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    environment: dict[str, Any] = {"EVENHAND_CONFIG": ""}
    assert read_config(None, environment=environment) == ServerConfig()
    if name == "evenhand.toml":  # the one that is looked for: it is refused, and so is the start
        with pytest.raises(SettingsError):
            load_settings(environment, user_file=tmp_path / "nothing")
    else:
        assert load_settings(environment, user_file=tmp_path / "nothing") == Settings()


def test_an_offer_may_have_several_servers(tmp_path: Path) -> None:
    addresses = ("http://127.0.0.1:1/v1", "http://127.0.0.1:2/v1")
    path = written(tmp_path, f"[[judges]]\njudge = 'openai:m'\nbase_url = {list(addresses)}\n")
    [offer] = read_config(path, environment={}).judges
    assert offer.config.base_url == addresses
    assert offers_of(["openai:m"], base_url=list(addresses)) == (offer,)
    assert offers(offer).plan().judge.name == "openai:m"


def test_an_offer_of_another_kind_may_not_have_several_servers() -> None:
    offer = judge_offer("m", "baseline:longer", base_url=("http://a/v1", "http://b/v1"))
    with pytest.raises(InputError, match="baseline:longer takes one base URL, but 2 are given"):
        offers(offer).plan()
