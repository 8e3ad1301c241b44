"""Trust from Python: the same functions as the commands, by names of the package itself."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import evenhand
from evenhand.contract import Winner
from evenhand.errors import InputError
from run_data import adds_up, sums
from servers import StartServer

CRITERIA = ["accuracy"]


@pytest.fixture
def judged(tmp_path: Path, start_server: StartServer, monkeypatch: pytest.MonkeyPatch) -> str:
    """A run of 60 sums; every tenth label is not the right answer."""
    monkeypatch.setenv("OPENAI_BASE_URL", start_server(adds_up).url)
    monkeypatch.setenv("EVENHAND_STORE", str(tmp_path / "store.db"))
    monkeypatch.setenv("EVENHAND_CALIBRATIONS", str(tmp_path / "calibrations"))
    other: dict[Winner, Winner] = {"A": "B", "B": "A"}
    rows: list[dict[str, Any]] = []
    for number, row in enumerate(sums(60), start=1):
        right: Winner = "B" if number % 3 == 0 else "A"
        rows.append(row | {"label": other[right] if number % 10 == 0 else right})
    return evenhand.run_sync(rows, "openai:loopback", criteria=CRITERIA).run


def test_an_audit_of_a_run_is_one_call(judged: str) -> None:
    found = evenhand.audit(judged)
    assert (found.accuracy.part, found.accuracy.of) == (54, 60)
    assert found.disagreements_in_all == 6
    with pytest.raises(InputError, match="no run 'another'"):
        evenhand.audit("another")


def test_a_calibration_is_learned_kept_and_opened(judged: str) -> None:
    assert evenhand.calibrate(judged).saved is None
    kept = evenhand.calibrate(judged, evenhand.CalibrateOptions(save="sums"))
    assert kept.saved is not None
    assert Path(kept.saved).name == "sums.json"
    with pytest.raises(InputError, match="sums"):
        evenhand.calibrate(judged, evenhand.CalibrateOptions(save="sums"))
    evenhand.calibrate(judged, evenhand.CalibrateOptions(save="sums", force=True))
    config = evenhand.JudgeConfig(calibration=evenhand.open_calibration("sums"))
    pair = {key: value for key, value in sums(61)[-1].items() if key != "id"}
    verdict = evenhand.compare_sync(pair | {"criteria": CRITERIA}, "openai:loopback", config)
    # 54 of 60 are right and no signal tells which: the share, by Laplace 55 of 62.
    assert verdict.confidence == pytest.approx(55 / 62)
    assert verdict.metadata.confidence_source == "calibration"


def test_a_win_rate_is_corrected_by_the_labels(judged: str) -> None:
    found = evenhand.correct(judged, evenhand.CorrectOptions(labels_are="random"))
    (own,) = found.corrections
    # By the labels B wins 20, less sums 30 and 60, and 10, 20, 40, 50 besides: 22 of 60.
    assert own.people_only.rate == pytest.approx(22 / 60)
    assert own.uncorrected.rate == pytest.approx(20 / 60)
