"""One set-up for every caller: what was chosen, else what the settings say, else the default."""

from __future__ import annotations

from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest

import evenhand
from evenhand import JudgeConfig
from evenhand.errors import InputError
from evenhand.judges.protocol import Traits
from evenhand.runs import JudgePlan
from evenhand.settings import Settings
from scripted import ScriptedJudge, answer_json
from servers import Reply, SeenRequest, StartServer, chat_reply

pytestmark = pytest.mark.usefixtures("unconfigured")

PAIR = {"prompt": "p", "responseA": "one", "responseB": "other", "criteria": ["c"]}


def tie(request: SeenRequest) -> Reply:
    return chat_reply(answer_json("TIE", criteria=[("c", "TIE")]))


# What the Python API obeys


async def test_language_of_the_environment_holds_in_python_too(
    start_server: StartServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", start_server(tie).url)
    monkeypatch.setenv("EVENHAND_LOCALE", "zh")
    assert (await evenhand.compare(PAIR, "openai:m")).metadata.locale == "zh"
    chosen = await evenhand.compare(PAIR, "openai:m", JudgeConfig(locale="en"))
    assert chosen.metadata.locale == "en"


async def test_settings_hold_for_a_judge_of_the_callers_own(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "evenhand.toml").write_text("samples = 3\nlocale = 'zh'\n", encoding="utf-8")
    judge = ScriptedJudge(lambda call: answer_json("TIE"))
    verdict = await evenhand.compare(PAIR, judge)
    assert verdict.metadata.locale == "zh"
    assert len(judge.calls) == 6  # three of each order


def test_settings_hold_for_a_run(tmp_path: Path) -> None:
    (tmp_path / "evenhand.toml").write_text("locale = 'zh'\nrepairs = 0\n", encoding="utf-8")
    judge = ScriptedJudge(lambda call: "Who knows.")
    options = evenhand.RunOptions(store=tmp_path / "runs.db", keep_going_unread=True)
    summary = evenhand.run_sync([PAIR], judge, options=options)
    assert summary.invalid == 1
    assert len(judge.calls) == 2  # no repair in either order
    assert all("响应" in call.messages[0].text for call in judge.calls)


def test_one_choice_does_not_forget_where_the_judge_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", "http://gpu:8000/v1")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-the-gpu")
    judge: Any = evenhand.open_judge("openai:m", JudgeConfig(timeout_s=60))
    assert (judge.base_url, judge.api_key, judge.timeout_s) == (
        "http://gpu:8000/v1",
        "sk-of-the-gpu",
        60,
    )


# How it is resolved

SETTINGS = Settings(
    judge="openai:m",
    base_url="http://gpu/v1",
    api_key="sk-1",
    locale="zh",
    mode="letter",
    reconcile="average",
    confidence="logprobs",
    samples=3,
    timeout_s=7.0,
    temperature=0.5,
    max_tokens=99,
    retries=8,
    repairs=2,
    ask_identical=True,
    prepare=("metrics", "analysis"),
    prepare_with="openai:w",
    transport="aiohttp",
    cache_dir=Path("models"),
)
RESOLVED = JudgeConfig(
    judge="openai:m",
    base_url="http://gpu/v1",
    api_key="sk-1",
    locale="zh",
    mode="letter",
    reconcile="average",
    confidence="logprobs",
    samples=3,
    timeout_s=7.0,
    temperature=0.5,
    max_tokens=99,
    retries=8,
    repairs=2,
    ask_identical=True,
    prepare=("metrics", "analysis"),
    prepare_with="openai:w",
    transport="aiohttp",
    cache_dir=Path("models"),
)
CHOSEN = JudgeConfig(
    judge="openai:other",
    base_url="http://here/v1",
    api_key="sk-2",
    locale="en",
    mode="reasoned",
    reconcile="agreement",
    confidence="stated",
    samples=1,
    timeout_s=1.0,
    temperature=0.0,
    max_tokens=1,
    seed=4,
    retries=0,
    repairs=0,
    transport="httptools",
    cache_dir=Path("mine"),
    protocol="llmbar",
    ask_identical=False,
    prepare=(),
    prepare_with="openai:v",
)


def test_what_nobody_chose_is_as_every_setting_says() -> None:
    assert JudgeConfig.resolve(SETTINGS) == RESOLVED


def test_what_was_chosen_wins_over_every_setting() -> None:
    assert JudgeConfig.resolve(SETTINGS, CHOSEN) == CHOSEN


@pytest.mark.parametrize("name", [each.name for each in fields(JudgeConfig)])
def test_one_choice_leaves_the_others_to_the_settings(name: str) -> None:
    one = JudgeConfig(**{name: getattr(CHOSEN, name)})
    assert JudgeConfig.resolve(SETTINGS, one) == replace(
        RESOLVED, **{name: getattr(one, name)} if (getattr(one, name) is not None) else {}
    )


def test_resolving_twice_changes_nothing() -> None:
    assert JudgeConfig.resolve(SETTINGS, RESOLVED) == RESOLVED


def test_without_settings_the_defaults_hold() -> None:
    config = JudgeConfig.resolve(Settings())
    assert (config.language, config.samples_per_order, config.confidence_from) == (
        "en",
        1,
        "stated",
    )
    assert (config.repairs_allowed, config.retry_policy.attempts) == (1, 4)
    assert config.ask_identical is False
    assert config == JudgeConfig.resolve(Settings(), config)


def test_a_mode_of_the_settings_that_the_judge_has_not_is_left_out() -> None:
    assert JudgeConfig.resolve(Settings(judge="anthropic:m", mode="letter")).mode is None
    own = ScriptedJudge(lambda call: "", traits=Traits(modes=("reasoned",)))
    assert JudgeConfig.resolve(Settings(mode="letter"), own=own).mode is None
    # One that was chosen stays, and is refused where it is used.
    chosen = JudgeConfig.resolve(Settings(), JudgeConfig(judge="anthropic:m", mode="letter"))
    assert chosen.mode == "letter"


def test_a_judge_of_the_callers_own_is_not_taken_for_that_of_the_settings() -> None:
    own = ScriptedJudge(lambda call: "")
    config = JudgeConfig.resolve(SETTINGS, JudgeConfig(), own=own)
    assert (config.judge, config.base_url, config.api_key) == (None, None, None)
    with pytest.raises(InputError, match="no judge given"):
        config.open_judge()


def test_a_template_is_opened_for_the_language_and_the_mode(tmp_path: Path) -> None:
    path = tmp_path / "t.txt"
    path.write_text(
        "{prompt} {context} {reference} {criteria} {response_a} {response_b} {tie_rule}",
        encoding="utf-8",
    )
    settings = Settings(judge="openai:m", locale="zh", template=str(path))
    opened = JudgeConfig.resolve(settings).template
    assert not isinstance(opened, Path)
    assert opened is not None
    assert (opened.locale, opened.mode) == ("zh", "reasoned")
    # One that reads no prompt needs none.
    assert JudgeConfig.resolve(replace(settings, judge="baseline:longer")).template is None


def test_no_repr_shows_a_key_or_what_a_base_url_hides() -> None:
    shown = repr(JudgeConfig(base_url="https://u:SECRET@h/v1?key=SECRET", api_key="SECRET"))
    assert "SECRET" not in shown
    assert shown.startswith("JudgeConfig(judge=None, base_url='https://h/v1', ")


# What a run is known by

ELSEWHERE = {
    # In the judge's own identity.
    *("judge", "base_url", "temperature", "max_tokens", "seed", "answers"),
    # How it is asked, which no answer depends on.
    *("api_key", "timeout_s", "cache_dir", "transport", "retries", "retry"),
    # In the identity of a judge that another model writes for.
    *("prepare_with", "writer"),
}
OTHERS: dict[str, Any] = {
    "locale": "zh",
    "mode": "letter",
    "samples": 3,
    "reconcile": "average",
    "confidence": "logprobs",
    "template": replace(JudgeConfig().template_for("reasoned"), version="other"),
    "protocol": "mt-bench",
    "repairs": 2,
    "ask_identical": True,
    "prepare": ("metrics",),
    "calibration": "",
}


def test_every_choice_that_changes_verdicts_makes_another_run() -> None:
    judge = ScriptedJudge(lambda call: "")
    assert {each.name for each in fields(JudgeConfig)} == ELSEWHERE | set(OTHERS)

    def known_by(config: JudgeConfig) -> tuple[Any, ...]:
        plan = JudgePlan(judge, config)
        return plan.record().key, plan.deciding()

    usual = known_by(JudgeConfig(samples=2))
    for name, value in OTHERS.items():
        if name != "calibration":  # tests/runs has it, with a real one
            assert known_by(JudgeConfig(**{"samples": 2, name: value})) != usual, name
    assert known_by(JudgeConfig(samples=2, prepare=())) == usual


def test_another_writer_makes_another_judge() -> None:
    one, other, none = (
        JudgePlan(config.open_judge(), config).record().key
        for config in (
            JudgeConfig(judge="openai:m", api_key="k", prepare=("metrics",), prepare_with=writer)
            for writer in ("openai:w", "openai:v", None)
        )
    )
    assert len({one, other, none}) == 3


def test_a_writer_of_the_judges_kind_is_at_its_server_and_another_is_not() -> None:
    settings = Settings(api_key="sk-set", base_url="http://set/v1")
    chosen = JudgeConfig(judge="openai:m", base_url="http://here/v1", prepare_with="openai:w")
    writer = JudgeConfig.resolve(settings, chosen).writer
    assert writer is not None
    assert (writer.judge, writer.base_url, writer.api_key) == (
        "openai:w",
        "http://here/v1",
        "sk-set",
    )
    # The judge's key is not sent to another provider, which has the settings' own.
    chosen = JudgeConfig(judge="anthropic:m", api_key="sk-anthropic", prepare_with="openai:w")
    writer = JudgeConfig.resolve(settings, chosen).writer
    assert writer is not None
    assert (writer.base_url, writer.api_key) == ("http://set/v1", "sk-set")
    chosen = JudgeConfig(judge="openai:m", api_key="sk-mine", prepare_with="anthropic:w")
    writer = JudgeConfig.resolve(settings, chosen).writer
    assert writer is not None
    assert (writer.base_url, writer.api_key) == (None, None)


@pytest.mark.parametrize(
    ("given", "kinds"),
    [
        (None, None),
        ("none", ()),
        ("reference,metrics", ("metrics", "reference")),
        (["analysis", "analysis"], ("analysis",)),
    ],
)
def test_what_is_prepared_is_named_once_and_in_one_order(given: Any, kinds: Any) -> None:
    assert JudgeConfig(prepare=given).prepare == kinds


@pytest.mark.parametrize("given", ["metric", ["metrics", "x"], 3])
def test_what_cannot_be_prepared_is_refused(given: Any) -> None:
    with pytest.raises(InputError, match="metrics, reference or analysis"):
        JudgeConfig(prepare=given)


def test_a_writer_that_follows_a_rule_is_refused() -> None:
    chosen = JudgeConfig(judge="openai:m", prepare=("metrics",), prepare_with="baseline:longer")
    with pytest.raises(InputError, match="baseline:longer follows a rule"):
        JudgeConfig.resolve(Settings(), chosen)


@pytest.mark.parametrize(
    "own", [lambda messages: "A", ScriptedJudge(lambda _: "A", Traits())], ids=["function", "judge"]
)
def test_a_judge_of_ones_own_is_no_name(own: Any) -> None:
    with pytest.raises(
        InputError, match=r"made with @evenhand\.judge, as judge= to compare or run"
    ):
        JudgeConfig(judge=own)
