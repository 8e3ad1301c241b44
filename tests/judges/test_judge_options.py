"""What every judge can be told: what it shows of itself, and what is no options at all."""

from __future__ import annotations

from typing import Any

import pytest

import evenhand
from evenhand.errors import InputError
from evenhand.judges.registry import JudgeOptions, open_judge


def test_options_show_neither_key_nor_what_a_base_url_hides() -> None:
    options = JudgeOptions(
        base_url="https://u:SECRETPASS@h/v1?api-key=SECRETQ", api_key="SECRETKEY", timeout_s=3.0
    )
    shown = repr(options) + str(options)
    assert "SECRET" not in shown
    assert "base_url='https://h/v1'" in shown
    assert "timeout_s=3.0" in shown


def test_options_without_a_base_url_show_none() -> None:
    assert "base_url=None" in repr(JudgeOptions())


@pytest.mark.parametrize("config", [{"base_url": "http://localhost/v1"}, {}, "http://h/v1", 0])
def test_config_of_another_type_is_refused(config: Any) -> None:
    with pytest.raises(InputError, match=r"config must be an evenhand\.JudgeConfig, not a"):
        evenhand.open_judge("baseline:longer", config)


@pytest.mark.parametrize("name", [3, b"local", None, ["local"]])
def test_name_that_is_no_string_is_refused(name: Any) -> None:
    with pytest.raises(InputError, match="a judge's name must be a string, not a"):
        open_judge(name)
