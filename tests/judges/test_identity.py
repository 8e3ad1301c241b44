"""What a judge's answers depend on beside its name: told as JSON, and without secrets."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from evenhand.judges.local import LocalJudge
from evenhand.judges.protocol import Completion, JudgeCall, Traits, identity_of
from evenhand.judges.registry import JudgeOptions, open_judge

KEY = "sk-a-secret-of-the-test"


def a_local_judge(file: Path, *, temperature: float = 0.0) -> LocalJudge:
    return LocalJudge(
        file,
        JudgeOptions(max_tokens=100, temperature=temperature, timeout_s=1.0),
        name="local:m.gguf",
        traits=Traits(),
        n_ctx=4096,
    )


def test_an_openai_judge_is_told_by_its_server_and_its_sampling() -> None:
    options = JudgeOptions(
        base_url=f"https://user:{KEY}@host.example/v1/?key={KEY}",
        api_key=KEY,
        temperature=0.5,
        max_tokens=300,
        seed=7,
    )
    identity = identity_of(open_judge("openai:m", options))
    assert identity == {
        "base_url": "https://host.example/v1",
        "temperature": 0.5,
        "max_tokens": 300,
        "seed": 7,
    }
    assert KEY not in json.dumps(identity)


@pytest.mark.agents
def test_a_providers_judge_is_told_by_its_options_without_its_key() -> None:
    address = f"https://user:{KEY}@host.example/?key={KEY}"
    options = JudgeOptions(base_url=address, api_key=KEY, seed=3)
    identity = identity_of(open_judge("anthropic:claude-x", options))
    assert identity == {
        "base_url": "https://host.example/",
        "temperature": None,
        "max_tokens": 4096,
        "seed": 3,
    }


def test_a_local_judge_is_told_by_its_file_and_its_sampling(tmp_path: Path) -> None:
    file = tmp_path / "m.gguf"
    file.write_bytes(b"GGUF" + bytes(3 * 1024 * 1024))
    first = identity_of(a_local_judge(file))
    assert (first["model"], first["bytes"]) == ("m.gguf", 3 * 1024 * 1024 + 4)
    json.dumps(first)
    assert identity_of(a_local_judge(file)) == first
    assert identity_of(a_local_judge(file, temperature=1.0)) != first
    # The same name and the same size, and other weights at its end.
    file.write_bytes(file.read_bytes()[:-1] + b"\x01")
    assert identity_of(a_local_judge(file)) != first


@pytest.mark.parametrize("content", [b"", b"GGUF", b"GGUF" + bytes(1024 * 1024 + 9)])
def test_a_model_file_of_any_size_has_an_identity(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "m.gguf"
    file.write_bytes(content)
    ends = hashlib.sha256(content[: 1024 * 1024] + content[-1024 * 1024 :])
    assert identity_of(a_local_judge(file))["sha256_of_ends"] == ends.hexdigest()


def test_a_replay_is_told_by_its_recordings_and_finds_them_by_id(tmp_path: Path) -> None:
    line = b'{"id": "p", "pass": "original", "raw": "[[A]]"}\n'
    (tmp_path / "r.jsonl").write_bytes(line)
    judge = open_judge(f"replay:{tmp_path / 'r.jsonl'}")
    assert identity_of(judge) == {"sha256": hashlib.sha256(line).hexdigest()}
    assert judge.traits.by_id


@pytest.mark.parametrize("spec", ["baseline:longer", "baseline:random:7"])
def test_a_baseline_is_told_by_its_name_alone(spec: str) -> None:
    judge = open_judge(spec)
    assert identity_of(judge) == {}
    assert not judge.traits.by_id


def test_a_judge_of_the_callers_own_needs_no_identity() -> None:
    class Own:
        name = "own"
        traits = Traits()

        async def ask(self, call: JudgeCall) -> Completion:
            return Completion("")

        async def close(self) -> None: ...

    assert identity_of(Own()) == {}
