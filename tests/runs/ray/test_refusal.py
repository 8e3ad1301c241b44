"""What cannot be run on Ray is said before anything is read, asked or started."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest

import evenhand
from evenhand import RunOptions
from evenhand.errors import InputError, MissingExtra
from evenhand.runs import RankAdaptive, UntilDecided
from run_data import adds_up_here, sums
from scripted import ScriptedJudge


async def refused(judge: Any, store: str, **options: Any) -> None:
    await evenhand.run(
        sums(3),
        judge,
        criteria=["accuracy"],
        options=RunOptions(store=store, executor="ray", **options),
    )


async def test_a_file_is_no_store_for_several_writers(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is a file, but Ray's workers write from several"):
        await refused("openai:m", str(tmp_path / "store.db"))


async def test_a_judge_that_lives_in_this_process_cannot_be_sent(fresh_database: str) -> None:
    with pytest.raises(InputError, match=r"exists only in this process.*give its name"):
        await refused(ScriptedJudge(adds_up_here), fresh_database)


@pytest.fixture
def answers(tmp_path: Path) -> Path:
    path = tmp_path / "answers.jsonl"
    path.write_text("")
    return path


@pytest.mark.parametrize("kind", ["replay", "local"])
async def test_judges_of_this_machine_stay_there(
    kind: str, fresh_database: str, answers: Path
) -> None:
    spec = f"replay:{answers}" if kind == "replay" else kind
    with pytest.raises(InputError, match="leave out executor ray"):
        await refused(spec, fresh_database)


@pytest.mark.parametrize(
    "address", ["http://me:secret@host/v1", "http://host/v1?api_key=secret", "http://host/v1?sig=x"]
)
async def test_credentials_in_an_address_do_not_go_through_ray(
    address: str, fresh_database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", address)
    with pytest.raises(InputError, match="contains credentials") as refusal:
        await refused("openai:m", fresh_database)
    assert "secret" not in str(refusal.value)


async def test_rays_client_is_refused_with_what_to_do_instead(fresh_database: str) -> None:
    with pytest.raises(InputError, match="ray job submit"):
        await refused("openai:m", fresh_database, ray_address="ray://head:10001")


async def test_without_ray_the_message_says_how_to_get_it(
    fresh_database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(MissingExtra, match=r"pip install .*\[ray\]'"):
        await refused("openai:m", fresh_database)


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"executor": "spark"}, "executor is 'spark'; give local or ray"),
        ({"ray_workers": 2}, "ray_workers requires executor ray"),
        ({"ray_address": "auto"}, "ray_address requires executor ray"),
        ({"executor": "ray", "ray_workers": 0}, "ray_workers is 0"),
        ({"executor": "ray", "until_decided": UntilDecided()}, "until_decided chooses"),
        ({"executor": "ray", "rank_adaptive": RankAdaptive(5)}, "rank_adaptive chooses"),
    ],
)
def test_options_that_do_not_go_together_are_told(wrong: dict[str, Any], told: str) -> None:
    with pytest.raises(InputError, match=told):
        RunOptions(**wrong)
