"""What a run is made of, enough to do it again: versions, judges and the models that answered,
prompts by their hash, settings, data by its digests, seeds, and the command.

It goes into files that people share: no key, no address and no folder of the user's is in it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from hashlib import sha256
from pathlib import PurePath
from typing import Any

from evenhand.contract import Locale, Mode
from evenhand.contract.model import Model
from evenhand.contract.pair import criterion_in
from evenhand.judge_kinds import at_path, takes_address
from evenhand.messages import option
from evenhand.options import GeneratingOptions, JudgingOptions
from evenhand.report.lookup import find_run
from evenhand.store import JudgeRecord, RunRecord, Store
from evenhand.store.faults import of_run
from evenhand.store.records import ENVIRONMENTS, SERVED_MODELS

# What stands for a file or an address that the manifest does not hold.
TEMPLATE, CALIBRATION, QUESTIONS = "TEMPLATE_FILE", "CALIBRATION", "QUESTIONS_FILE"
ADDRESS, CALLS = "ADDRESS", "CALLS"
ANSWERS, COMMAND, SYSTEM = "ANSWERS_FILE", "COMMAND", "SYSTEM_TEXT"
_STAND_INS = {"command": COMMAND, "system": SYSTEM, "template": TEMPLATE, "base_url": ADDRESS}
_NOT_OURS_TO_TELL = ("base_url", "caveat")
_ONLY_BY_HASH = ("system", "template", "command")  # of a side of `evenhand ab`
_NO_FILES = ("pairs", "standard input")  # what Python and pipes give is called so


class ManifestJudge(Model):
    """`served_models` are what the answers say of themselves; `prompt` ends in the template's
    hash; `settings` are what its answers, and the verdicts made of them, depend on."""

    judge: str
    served_models: tuple[str, ...]
    prompt: str | None
    locale: Locale | None
    mode: Mode | None
    settings: dict[str, Any]


class ManifestData(Model):
    """`sha256` has a digest for each source, and for the questions where there are any."""

    sources: tuple[str, ...]
    sha256: tuple[str, ...]
    pairs: int
    skipped_rows: int
    reading: dict[str, Any]


class Manifest(Model):
    """`environments` are the versions that the run's commands were made with; `fingerprint` is
    that of data, judges and settings together; `ends` says how a run ends by itself, with its seed.
    `command` is null where a command line cannot say it."""

    run: str
    fingerprint: str
    created_at: datetime
    environments: tuple[dict[str, Any], ...]
    judges: tuple[ManifestJudge, ...]
    data: ManifestData
    ends: dict[str, Any]
    fresh: bool
    command: tuple[str, ...] | None


@of_run
def manifest_of(store: Store, name: str) -> Manifest:
    run = find_run(store, name)
    tally = store.verdicts.count(run.id)
    served = run.summary.get(SERVED_MODELS)
    if served is None:  # it was broken off, or is older than this is noted
        served = store.runs.served_models(run.id)
    judges = store.runs.judges(run.id)
    planned = run.plan.get("data")
    data: dict[str, Any] = dict(planned) if isinstance(planned, Mapping) else {}
    digests = data.pop("files", None) or ()
    return Manifest(
        run=run.name,
        fingerprint=run.fingerprint,
        created_at=run.created_at,
        environments=tuple(run.summary.get(ENVIRONMENTS) or ()),
        judges=tuple(_judge(run, judge, served.get(judge.key) or ()) for judge in judges),
        data=ManifestData(
            sources=tuple(map(without_folder, run.sources)),
            sha256=tuple(digests),
            pairs=tally.pairs,
            skipped_rows=tally.skipped_rows,
            reading=_reading(data),
        ),
        ends=_ends(run),
        fresh=bool(run.plan.get("fresh")),
        command=_command(run, judges, data, files=len(digests)),
    )


def _judge(run: RunRecord, judge: JudgeRecord, served: Sequence[str]) -> ManifestJudge:
    settings = {**judge.settings, **run.planned_for(judge, "deciding")}
    return ManifestJudge(
        judge=_judge_name(judge.name),
        served_models=tuple(served),
        prompt=judge.prompt_version,
        locale=judge.locale,
        mode=judge.mode,
        settings={
            name: value
            for name, value in settings.items()
            if name not in _NOT_OURS_TO_TELL and value is not None
        },
    )


def _reading(data: Mapping[str, Any]) -> dict[str, Any]:
    """How rows became pairs; of a side that generated answers, its settings."""
    told = {name: value for name, value in data.items() if value is not None}
    if "sides" in told:
        told["sides"] = [_side(each) for each in told["sides"]]
    return told


def _side(identity: Mapping[str, Any]) -> dict[str, Any]:
    told: dict[str, Any] = {}
    for name, value in identity.items():
        if value is None or name in _NOT_OURS_TO_TELL:
            continue
        if name in _ONLY_BY_HASH:
            text = value if isinstance(value, str) else "\0".join(map(str, value))
            told[f"{name}_sha256"] = sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
        else:
            told[name] = value
    return told


def without_folder(name: str) -> str:
    """A relative name is part of the command; the folder above is the user's own."""
    if "://" in name:
        return name
    path = PurePath(name)
    return path.name if path.is_absolute() or ".." in path.parts else name


def _judge_name(name: str) -> str:
    return at_path(name, without_folder)


def _ends(run: RunRecord) -> dict[str, Any]:
    return {name: run.plan[name] for name in ("until_decided", "rank_adaptive") if name in run.plan}


# The command that does it again, where the data and the template are at hand.


def _flag(name: str) -> str:
    return option(name, "cli")


def _command(
    run: RunRecord, judges: Sequence[JudgeRecord], data: Mapping[str, Any], *, files: int
) -> tuple[str, ...] | None:
    criteria = [_criterion(each) for each in data.get("criteria") or ()]
    if not judges or not files or None in criteria or set(run.sources) & set(_NO_FILES):
        return None
    verb = "ab" if "sides" in data else "run"
    words = [*(_sides(run, data) if verb == "ab" else _sources(run, data, files=files))]
    for field, column in (data.get("columns") or {}).items():
        words += [_flag("map"), f"{field}={column}"]
    for each in criteria:
        words += ["-c", str(each)]
    words += [_flag("no-tie")] if data.get("allow_tie") is False else []
    words += [_flag("no-swap")] if data.get("swap_positions") is False else []
    for judge in judges:
        words += [_flag("judge"), _judge_name(judge.name)]
    words += _judging(run, judges[0])
    words += _ending(run)
    return ("evenhand", verb, *words, _flag("name"), run.name)


def _sources(run: RunRecord, data: Mapping[str, Any], *, files: int) -> Iterator[str]:
    names = [without_folder(each) for each in run.sources]
    if "models" not in data:
        yield from names
        return
    for place, name in enumerate(names):
        yield from (_flag("ab"[place] if _is_two(data) else "outputs"), name)
    if data.get("baseline"):
        yield from (_flag("baseline"), str(data["baseline"]))
    if files > len(names):
        yield from (_flag("questions"), QUESTIONS)
    if data.get("prompts"):
        yield from (_flag("prompts"), str(data["prompts"]))


def _sides(run: RunRecord, data: Mapping[str, Any]) -> Iterator[str]:
    yield from map(without_folder, run.sources)
    for letter, side, called in zip("ab", data["sides"], data["models"], strict=True):
        if "model" not in side:
            yield from (_flag(letter), ANSWERS)
            continue
        if not side.get("command"):
            yield from (_flag(letter), str(side["model"]))
        for row in GeneratingOptions.rows():
            value = side.get(row.name)
            own = row.name != "base_url" or takes_address(str(side["model"]))
            if value is not None and own:
                yield from (_flag(row.flag_of(letter)[2:]), _STAND_INS.get(row.name, _plain(value)))
        if called != side["model"]:
            yield from (_flag(f"{letter}-name"), str(called))
    yield from (_flag("repeats"), str(data.get("repeats") or 1))


def _is_two(data: Mapping[str, Any]) -> bool:
    return len(data["models"]) == 2 and not data.get("baseline")


def _criterion(criterion: Mapping[str, Any]) -> str | None:
    """As `-c` takes it; None where it would be read otherwise."""
    text = str(criterion["name"])
    if criterion.get("weight") is not None:
        text += f"*{criterion['weight']:g}"
    if criterion.get("description"):
        text += f": {criterion['description']}"
    read = criterion_in(text)
    return text if ({"name": read} if isinstance(read, str) else read) == criterion else None


_BY_JUDGE = ("reconcile", "temperature", "max_tokens", "prepare")  # recorded in forms of their own
_OPTIONS = tuple(
    row
    for row in JudgingOptions.rows()
    if row.name in _BY_JUDGE or (row.option.decides != "nothing" and row.name != "locale")
)


def _judging(run: RunRecord, judge: JudgeRecord) -> Iterator[str]:
    settings = {**judge.settings, **run.planned_for(judge, "deciding")}
    if judge.prompt_version is not None and judge.locale and judge.mode:
        yield from (_flag("locale"), judge.locale, _flag("mode"), judge.mode)
        if not judge.prompt_is_ours:
            yield from (_flag("template"), TEMPLATE)
    for row in _OPTIONS:
        value = settings.get(row.name)
        if value is True:
            yield _flag(row.flag[2:])
        elif value is not None and value is not False:
            yield from (_flag(row.flag[2:]), _plain(value))
    if settings.get("prepare_with"):
        yield from (_flag("prepare-with"), str(settings["prepare_with"]).rpartition("@")[0])
    if settings.get("ask_identical") and judge.prompt_version is not None:
        yield _flag("ask-identical")
    if settings.get("calibration"):
        yield from (_flag("calibration"), CALIBRATION)
    if takes_address(judge.name) and settings.get("base_url"):
        yield from (_flag("base-url"), ADDRESS)


def _plain(value: Any) -> str:
    return str(int(value) if isinstance(value, float) and value.is_integer() else value)


def _ending(run: RunRecord) -> Iterator[str]:
    ends = _ends(run)
    if run.plan.get("fresh"):
        yield _flag("fresh")
    drawn = run.plan["data"].get("orders", {}).get("random")
    if drawn:
        yield from (_flag("orders"), "random", _flag("both-orders"), _plain(drawn["both_orders"]))
    decided, adaptive = ends.get("until_decided"), ends.get("rank_adaptive")
    if decided:
        yield from (_flag("until-decided"), _flag("alpha"), _plain(decided["alpha"]))
    if adaptive:
        yield from (_flag("rank-adaptive"), _flag("budget"), CALLS)
        yield from (_flag("certainty"), _plain(adaptive["certainty"]))
    seeded = drawn or decided or adaptive
    if seeded:
        yield from (_flag("seed"), str(seeded["seed"]))
