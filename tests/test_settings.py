from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from evenhand.errors import SettingsError
from evenhand.judging.config import JudgeConfig, read_addresses
from evenhand.settings import Settings, load_settings

KEY = "sk-test-0123456789abcdefghij"


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    path = tmp_path / "checkout"
    path.mkdir()
    return path


def write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def load(directory: Path, *, local: str = "", user: str = "", **environment: str) -> Settings:
    write(directory / "evenhand.toml", local)
    user_file = write(directory.parent / "config.toml", user)
    return load_settings(environment, user_file=user_file, directory=directory)


def test_nothing_is_set_where_nothing_is_said(directory: Path) -> None:
    environment = {"XDG_CONFIG_HOME": str(directory)}
    settings = load_settings(environment, user_file=directory / "missing.toml", directory=directory)
    assert settings == Settings()


def test_users_file_wins_over_the_working_directorys_and_the_environment_over_both(
    directory: Path,
) -> None:
    local = 'judge = "openai:local"\nlocale = "zh"\nsamples = 5\n'
    user = 'judge = "openai:user"\nlocale = "en"\n'
    settings = load(directory, local=local, user=user, EVENHAND_JUDGE="openai:environment")
    assert settings.judge == "openai:environment"
    assert settings.locale == "en"
    assert settings.samples == 5
    assert [Path(source).name for source in settings.sources] == ["evenhand.toml", "config.toml"]


def test_users_file_may_set_everything_but_a_key(directory: Path) -> None:
    user = """
        judge = "replay:recorded.jsonl"
        base-url = "http://localhost:8000/v1"
        template = "mine.txt"
        locale = "zh"
        mode = "letter"
        reconcile = "average"
        confidence = "logprobs"
        transport = "aiohttp"
        timeout_s = 30
        temperature = 0.5
        samples = 3
        max_tokens = 100
        retries = 0
        repairs = 0
    """
    settings = load(directory, user=user)
    assert settings.base_url == "http://localhost:8000/v1"
    assert settings.template == "mine.txt"
    assert (settings.timeout_s, settings.retries, settings.repairs) == (30, 0, 0)


@pytest.mark.parametrize(
    "local",
    [
        'base_url = "http://elsewhere.example"',
        'base-url = "http://elsewhere.example"',
        'template = "../../etc/passwd"',
        'api_key = "sk-mine"',
        'api-key = "sk-mine"',
        'cache_dir = "/tmp"',
        'judge = "replay:/etc/passwd"',
        'judge = "local:/dev/zero"',
        'judge = " local:/dev/zero"',
        'judge = "\\treplay:x"',
        '[openai]\nbase_url = "http://elsewhere.example"',
    ],
)
def test_file_in_the_working_directory_may_not_reach_out(directory: Path, local: str) -> None:
    with pytest.raises(SettingsError, match=r"evenhand\.toml"):
        load(directory, local=local)


def test_gate_limits_of_several_files_are_taken_together(directory: Path) -> None:
    local = "[gate]\nmin_win_rate = 0.6\nalpha = 0.01\n"
    found = load(directory, local=local, user="[gate]\nalpha = 0.1\n").gate
    assert (found.min_win_rate, found.alpha, found.max_invalid) == (0.6, 0.1, None)


@pytest.mark.parametrize("trusted", [True, False])
@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("judge = 7", "judge is 7; give text"),
        ('judge = " "', "judge is ' '; give text"),
        ('locale = "fr"', "locale is 'fr'; give en or zh"),
        ("locale = []", r"locale is \[\]; give en or zh"),
        ('mode = "sung"', "mode is 'sung'; give reasoned or letter"),
        ('reconcile = "coin"', "give agreement or average"),
        ('confidence = "high"', "give stated or logprobs"),
        ("samples = 0", "samples is 0; give a whole number of at least 1"),
        ("samples = 1.5", "samples is 1.5; give a whole number of at least 1"),
        ("samples = true", "samples is True; give a whole number of at least 1"),
        ("retries = -1", "retries is -1; give a whole number of at least 0"),
        ("timeout_s = nan", "timeout_s is nan; give a number of at least 0.1"),
        ("timeout_s = 0", "timeout_s is 0; give a number of at least 0.1"),
        ("temperature = inf", "temperature is inf; give a number of at least 0"),
        ('temperature = "cold"', "temperature is 'cold'; give a number of at least 0"),
        ("colour = 1", "sets colour, which is unknown"),
        ("max_calls = -1", "max_calls is -1; give a whole number of at least 0"),
        ("max_cost = 0", "max_cost is 0; give a number above 0"),
        ('criteria = "accuracy"', "criteria is 'accuracy'; give a list such as"),
        ("criteria = []", "criteria: criteria is empty"),
        ('criteria = ["tone", "Tone*2"]', "criteria: criteria repeats .Tone."),
        ('criteria = ["tone*0"]', "criteria: criteria.*weight"),
        ("gate = 1", "gate is not a table"),
        ("[gate]\nmin-win-rate = 55", "gate.min-win-rate is 55; give a number from 0 to 1"),
        (
            "[gate]\ntypo = 0.5",
            ("sets typo, which is unknown; the settings are min_win_rate, alpha"),
        ),
        ("judge =", "is not valid TOML"),
    ],
)
def test_setting_that_is_wrong_is_named_with_what_it_takes(
    directory: Path, line: str, complaint: str, trusted: bool
) -> None:
    with pytest.raises(SettingsError, match=complaint) as refused:
        load(directory, **{"user" if trusted else "local": line})
    assert "\n" not in refused.value.message


def test_file_that_is_not_utf_8_is_refused_and_a_byte_order_mark_is_not(directory: Path) -> None:
    path = directory / "evenhand.toml"
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(SettingsError, match="is not UTF-8"):
        load_settings({}, user_file=directory / "none", directory=directory)
    path.write_bytes(b"\xef\xbb\xbfsamples = 2\r\n")
    settings = load_settings({}, user_file=directory / "none", directory=directory)
    assert settings.samples == 2


def test_empty_variable_is_not_set(directory: Path) -> None:
    settings = load(directory, user='judge = "openai:m"', EVENHAND_JUDGE=" ", OPENAI_API_KEY="")
    assert settings.judge == "openai:m"
    assert settings.api_key is None


def test_environment_says_locale_cache_key_and_address(directory: Path) -> None:
    settings = load(
        directory,
        EVENHAND_LOCALE="zh",
        EVENHAND_CACHE_DIR="~/models",
        OPENAI_API_KEY=KEY,
        OPENAI_BASE_URL="http://localhost:1/v1",
    )
    assert settings.locale == "zh"
    assert settings.cache_dir == Path("~/models").expanduser()
    assert settings.api_key == KEY
    assert settings.base_url == "http://localhost:1/v1"
    assert KEY not in repr(settings)


def test_locale_of_the_environment_is_checked(directory: Path) -> None:
    with pytest.raises(SettingsError, match="EVENHAND_LOCALE is 'fr'; give en or zh"):
        load(directory, EVENHAND_LOCALE="fr")


def test_transport_of_the_environment_is_checked(directory: Path) -> None:
    assert load(directory, EVENHAND_TRANSPORT="aiohttp").transport == "aiohttp"
    with pytest.raises(SettingsError, match="'x'; give aiohttp or httptools"):
        load(directory, EVENHAND_TRANSPORT="x")


def test_config_file_can_be_named_and_must_then_be_there(directory: Path) -> None:
    named = write(directory / "named.toml", "samples = 7")
    settings = load_settings({"EVENHAND_CONFIG": str(named)}, directory=directory)
    assert settings.samples == 7
    with pytest.raises(SettingsError, match="EVENHAND_CONFIG is"):
        load_settings({"EVENHAND_CONFIG": str(directory / "missing")}, directory=directory)


def test_directory_with_the_files_name_is_no_config_file(directory: Path) -> None:
    (directory / "evenhand.toml").mkdir()
    assert load_settings({}, user_file=directory / "none", directory=directory) == Settings()


@pytest.mark.parametrize(
    "given", ["http://a/v1,http://b/v1", "http://a/v1 http://b/v1", " http://a/v1,\n http://b/v1, "]
)
def test_several_addresses_in_one_text_are_told_apart(directory: Path, given: str) -> None:
    settings = load(directory, OPENAI_BASE_URL=given)
    openai = JudgeConfig(judge="openai:m")
    config = JudgeConfig.resolve(settings, openai)
    assert config.base_url == ("http://a/v1", "http://b/v1")
    for same in (given, ("http://a/v1", "http://b/v1")):
        assert JudgeConfig.resolve(Settings(), replace(openai, base_url=same)) == config


def test_an_empty_address_is_none_given() -> None:
    settings = Settings(judge="openai:m", base_url="http://a/v1")
    for nothing in (read_addresses([""]), ""):
        config = JudgeConfig.resolve(settings, JudgeConfig(base_url=nothing))
        assert config.base_url == "http://a/v1"


def test_an_address_with_a_comma_is_one() -> None:
    address = "http://a/v1,beta?x=1,2"
    assert JudgeConfig.resolve(Settings(judge="openai:m", base_url=address)).base_url == address


def test_a_users_file_may_list_addresses(directory: Path) -> None:
    settings = load(directory, user='base_url = ["http://a/v1", "http://b/v1"]')
    assert settings.base_url == ("http://a/v1", "http://b/v1")


@pytest.mark.parametrize("given", ["[]", "[1]", '["http://a/v1", " "]'])
def test_a_list_that_holds_no_addresses_is_refused(directory: Path, given: str) -> None:
    with pytest.raises(SettingsError, match=r"base_url must be an address, or a list of .* \["):
        load(directory, user=f"base_url = {given}")


def test_a_list_of_addresses_too_comes_from_the_user_alone(directory: Path) -> None:
    with pytest.raises(
        SettingsError, match=("sets base_url, which is not allowed in the working directory's file")
    ):
        load(directory, local='base_url = ["http://a/v1", "http://b/v1"]')


def test_families_of_both_files_are_read_and_the_users_are_added(directory: Path) -> None:
    settings = load(
        directory,
        local='[families]\n"acme-7b" = ["Llama", "acme"]\n',
        user='[families]\nmine = "qwen"\nnobody = []\n',
    )
    assert settings.families == (
        ("acme-7b", ("llama", "acme")),
        ("mine", ("qwen",)),
        ("nobody", ()),
    )


@pytest.mark.parametrize("wrong", ["families = 3", "[families]\nx = 1", '[families]\nx = [""]'])
def test_families_that_are_no_names_are_refused(directory: Path, wrong: str) -> None:
    with pytest.raises(SettingsError, match="names with their families"):
        load(directory, local=wrong)
