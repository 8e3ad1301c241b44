"""Runs of several judges, written by hand: what each says of each pair, a letter a pair."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from evenhand.contract import ConfidenceSource, Locale, Outcome, Winner
from evenhand.data.records import Record
from evenhand.store import NewJudge, NewRun, NewVerdict, NewVote, Settled, Store
from store_values import decided, failure, item, win

# A, B and T win or tie; I is inconsistent, X invalid, and . not judged yet.
_WINNERS: dict[str, Winner] = {"A": "A", "B": "B", "T": "TIE", "I": "TIE"}
# Inconsistent, with what was said in each order.
_ORDERS: dict[str, tuple[Winner, Winner]] = {"V": ("A", "B"), "P": ("A", "TIE"), "Q": ("TIE", "B")}
LETTER_CODES = {"A": 0, "B": 1, "T": 2, "I": -1, "X": -1, ".": -1}


def judged_run(
    store: Store,
    name: str,
    said: Mapping[str, str],
    *,
    labels: str = "",
    prompts: Sequence[str] | None = None,
    keys: Sequence[str] | None = None,
    models: Sequence[tuple[str | None, str | None]] | None = None,
    confidences: Sequence[float | None] | None = None,
    thresholds: Mapping[str, float] | None = None,
    prompt_version: str | None = "v1",
    locale: Locale | None = "en",
) -> int:
    """`labels` has a letter a pair, and . for none. `thresholds` are of the judges whose verdicts
    are calibrated: less sure ones abstain."""
    number = len(next(iter(said.values())))
    keys = keys or [f"q{place}" for place in range(1, number + 1)]
    labels = labels or "." * number
    judge_keys = [f"{judge}/{prompt_version}/{locale}" for judge in said]
    promised = thresholds or {}
    plan = {"judges": judge_keys, "deciding": [_deciding(promised.get(judge)) for judge in said]}
    run = store.runs.create(NewRun(name, f"fingerprint of {name}", plan, ("pairs.jsonl",)))
    store.items.add(
        run.id,
        [_item(key, place, labels[place], prompts, models) for place, key in enumerate(keys)],
    )
    store.runs.update(run.id, intake_done=True, state="finished")
    ids = [
        store.runs.add_judge(NewJudge(key, judge, prompt_version, locale))
        for key, judge in zip(judge_keys, said, strict=True)
    ]
    store.runs.set_judges(run.id, ids)
    for judge_id, (judge, letters) in zip(ids, said.items(), strict=True):
        source: ConfidenceSource = "calibration" if judge in promised else "stated"
        store.work.write(
            [],
            [
                NewVerdict(
                    run.id, place + 1, judge_id, _settled(letter, confidences, place, source)
                )
                for place, letter in enumerate(letters)
                if letter != "."
            ],
        )
    return run.id


def vote_on(store: Store, run_id: int, votes: Mapping[str, str], **told: object) -> None:
    """`votes` maps ids to letters, S for skipped; `told` is what else the votes say."""
    pair_ids = {own.key: own.pair_id for own in store.items.all(run_id)}
    store.votes.add(
        [
            NewVote(pair_ids[key], "Ann", _WINNERS.get(letter), **told)  # type: ignore[arg-type]
            for key, letter in votes.items()
        ]
    )


def _item(
    key: str,
    place: int,
    label: str,
    prompts: Sequence[str] | None,
    models: Sequence[tuple[str | None, str | None]] | None,
) -> Record:
    model_a, model_b = (None, None) if models is None else models[place]
    own = {} if prompts is None else {"prompt": prompts[place], "response_a": f"one of {key}"}
    return item(
        key, row=place + 1, label=_WINNERS.get(label), model_a=model_a, model_b=model_b, **own
    )


def _deciding(threshold: float | None) -> dict[str, object]:
    if threshold is None:
        return {}
    return {"calibration": {"digest": "d", "min_agreement": 0.9, "threshold": threshold}}


def _settled(
    letter: str,
    confidences: Sequence[float | None] | None,
    place: int,
    source: ConfidenceSource,
) -> Settled:
    if letter == "X":
        return failure([])
    if letter in _ORDERS:
        first, second = _ORDERS[letter]
        return decided(Outcome.INCONSISTENT, "TIE", first=first, second=second)
    judged = win(_WINNERS[letter], [], Outcome.INCONSISTENT if letter == "I" else None)
    if confidences is None:
        return judged
    decision = replace(judged.decision, confidence=confidences[place], confidence_source=source)
    return replace(judged, decision=decision)
