"""`evenhand run`: a data set through one or more judges, resumable."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from evenhand import formats
from evenhand.cli import options as opt
from evenhand.cli import session
from evenhand.cli.analyses import GateChoices, GateFlag, asked_gate
from evenhand.cli.options import (
    JudgeChoices,
    OrderChoices,
    PairRules,
    RunLimits,
    grouped_showing,
    open_judge,
)
from evenhand.errors import InputError
from evenhand.judge_kinds import takes_address
from evenhand.messages import Message

if TYPE_CHECKING:
    from evenhand.judging.config import JudgeConfig
    from evenhand.runs import RankAdaptive, UntilDecided

PairFilesArgument = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[PAIRS]...",
        help=f"Files of pairs: {formats.listed()}, optionally gzipped; URLs such as "
        "s3://bucket/folder/*.parquet; - for standard input.",
        show_default=False,
    ),
]
Outputs = Annotated[
    list[str] | None,
    typer.Option(
        "--outputs",
        metavar="FILE",
        help="A file of model outputs; give two or more to compare every model with every "
        "other, or with --baseline. Repeatable.",
    ),
]
Baseline = Annotated[
    str | None,
    typer.Option("--baseline", help="With --outputs: the model to compare the others with."),
]
Questions = Annotated[
    str | None,
    typer.Option(
        "--questions",
        metavar="FILE",
        help="The prompts for answer files without them (MT-Bench, Arena-Hard).",
    ),
]
PromptsCompared = Annotated[
    Literal["all", "common"],
    typer.Option(
        "--prompts",
        help="With --a/--b and --outputs. all: a prompt that only one model answered is a "
        "bad row and counts as missing; common: compare only prompts that both answered.",
    ),
]
Escalate = Annotated[
    list[str] | None,
    typer.Option(
        "--escalate",
        metavar="JUDGE",
        help="The next judge for pairs on which the previous one abstained (by its "
        "calibration), flipped or failed. Repeatable, in order.",
    ),
]
ForPeople = Annotated[
    Path | None,
    typer.Option(
        "--for-people",
        metavar="FILE",
        help=(
            "With --escalate: write pairs that no judge could settle as JSON Lines, for "
            "people to label."
        ),
    ),
]
ExecutorChoice = Annotated[
    Literal["local", "ray"],
    typer.Option(
        "--executor",
        help="Where to run: local: this process; ray: workers on a Ray cluster that share a "
        "PostgreSQL store.",
    ),
]
RayAddress = Annotated[
    str | None,
    typer.Option(
        "--ray-address",
        metavar="HOST:PORT|auto",
        help="With --executor ray: the cluster. Default: RAY_ADDRESS, or start Ray on this "
        "machine.",
    ),
]
RayWorkers = Annotated[
    int | None,
    typer.Option(
        "--ray-workers",
        min=1,
        help="With --executor ray: how many workers. Default: one per CPU, up to 16.",
    ),
]
Batch = Annotated[
    bool,
    typer.Option(
        "--batch",
        help="Use the provider's batch API (openai:, anthropic:): half the price, within a "
        "day. After Ctrl-C, the same command collects the results.",
    ),
]
BatchPoll = Annotated[
    float | None,
    typer.Option(
        "--batch-poll",
        min=0.1,
        metavar="SECONDS",
        help="With --batch: the polling interval. Default: 2 s to a minute.",
    ),
]
CancelBatches = Annotated[
    bool,
    typer.Option(
        "--cancel-batches",
        help="With --batch: cancel pending batches, keep the answers so far, and ask nothing more.",
    ),
]
UntilDecidedFlag = Annotated[
    bool,
    typer.Option(
        "--until-decided",
        help="Stop as soon as it is clear whether A or B is better. Prompts are judged in "
        "random order, and checking along the way does not raise the error rate.",
    ),
]
Alpha = Annotated[
    float | None,
    typer.Option(
        "--alpha",
        min=0.0001,
        max=0.5,
        help="With --until-decided or --gate: the chance of naming a winner when there is "
        "none. Default: 0.05.",
    ),
]
RankAdaptiveFlag = Annotated[
    bool,
    typer.Option(
        "--rank-adaptive",
        help="With several models and --budget: judge the pairs most likely to settle the "
        "ranking, instead of all.",
    ),
]
PairBudget = Annotated[
    int | None,
    typer.Option(
        "--budget", min=1, help=("With --rank-adaptive: the maximum number of pairs to judge.")
    ),
]
CertaintyWanted = Annotated[
    float | None,
    typer.Option(
        "--certainty",
        min=0.01,
        max=0.9999,
        help="With --rank-adaptive: stop once the ranking's expected Kendall tau reaches "
        "this. Default: 0.95.",
    ),
]
Seed = Annotated[
    int | None,
    typer.Option(
        "--seed",
        help=(
            "Seed for the random order with --until-decided, --rank-adaptive and --orders random."
        ),
    ),
]


@dataclass(frozen=True, slots=True)
class DataFiles:
    """The pairs, or the models' outputs that make them."""

    pairs: PairFilesArgument = None
    a: opt.FileA = None
    b: opt.FileB = None
    outputs: Outputs = None
    baseline: Baseline = None
    questions: Questions = None


@dataclass(frozen=True, slots=True)
class ExecutorChoices:
    """Who carries the run out."""

    executor: ExecutorChoice = "local"
    ray_address: RayAddress = None
    ray_workers: RayWorkers = None
    batch: Batch = False
    batch_poll: BatchPoll = None
    cancel_batches: CancelBatches = False

    def fields(self) -> dict[str, Any]:
        """As `RunOptions` names them."""
        given = asdict(self)
        return given | {"batch_poll_s": given.pop("batch_poll")}


@dataclass(frozen=True, slots=True)
class StopChoices:
    """Whether the run ends by itself."""

    until_decided: UntilDecidedFlag = False
    alpha: Alpha = None
    rank_adaptive: RankAdaptiveFlag = False
    budget: PairBudget = None
    certainty: CertaintyWanted = None
    seed: Seed = None

    def fields(self, *, one_order: bool, drawn_orders: bool, gated: bool = False) -> dict[str, Any]:
        """As `RunOptions` names them."""
        if self.alpha is not None and not (self.until_decided or gated):
            other = "--until-decided or --gate"
            raise InputError(Message("command.both_or_neither", option="--alpha", other=other))
        random = self.until_decided or self.rank_adaptive or drawn_orders
        if self.seed is not None and not random:
            raise InputError(Message("command.seed_of_random_order"))
        if self.until_decided and one_order:
            raise InputError(Message("command.decided_needs_both_orders"))
        return {"until_decided": self._until_decided(), "rank_adaptive": self._rank_adaptive()}

    def _until_decided(self) -> UntilDecided | None:
        from evenhand.runs import UntilDecided

        if not self.until_decided:
            return None
        default = UntilDecided()
        alpha = default.alpha if self.alpha is None else self.alpha
        return UntilDecided(alpha, self.seed or default.seed)

    def _rank_adaptive(self) -> RankAdaptive | None:
        from evenhand.runs import RankAdaptive

        if not self.rank_adaptive:
            for option, value in (("--budget", self.budget), ("--certainty", self.certainty)):
                if value is not None:
                    raise InputError(
                        Message("command.both_or_neither", option=option, other="--rank-adaptive")
                    )
            return None
        if self.budget is None:
            raise InputError(Message("command.adaptive_needs_budget"))
        asked = RankAdaptive(self.budget, seed=self.seed or 0)
        return asked if self.certainty is None else replace(asked, certainty=self.certainty)


@grouped_showing(
    "a",
    "b",
    "outputs",
    "baseline",
    "columns",
    "criteria",
    "retry",
    "until_decided",
    "calibration",
    "batch",
    "dry_run",
    "gate",
    "min_win_rate",
    "junit",
    "html",
)
def run(
    *,
    data: DataFiles,
    columns: opt.ColumnMap = None,
    values: opt.Values = None,
    bad_rows: opt.OnBadRows = "stop",
    prompts: PromptsCompared = "all",
    rules: PairRules,
    ordering: OrderChoices,
    judge: opt.JudgeNames = None,
    name: opt.RunName = None,
    limits: RunLimits,
    carried_out: ExecutorChoices,
    stopping: StopChoices,
    judging: JudgeChoices,
    escalate: Escalate = None,
    for_people: ForPeople = None,
    calibration: opt.Calibrations = None,
    force_calibration: opt.ForceCalibration = False,
    dry_run: opt.DryRun = False,
    gate: GateFlag = False,
    gating: GateChoices,
    as_json: opt.AsJson = False,
) -> None:
    """Judge a file of pairs or two models' outputs; resumable.

    Exit codes: 0 every pair was judged (including invalid ones) or no more were needed, 2 bad
    input or a store error, 3 the judge failed, 5 a cap was reached, 130 interrupted. With
    --gate: 0 the gate passes, 1 it fails, 6 it is undecided; if the run stops early, the codes
    above other than 0.
    """
    from evenhand.cli.inputs import calibrations_of, read_options, read_sources
    from evenhand.cli.judging import (
        abstentions_of,
        end,
        judge_all,
        judge_in_stages,
        show_preview,
    )
    from evenhand.runs import JudgePlan
    from evenhand.store import open_store

    def config_of(spec: str | None, *, alone: bool) -> JudgeConfig:
        # Of several judges only those that speak its language: it must not get another's key.
        speaks = alone or takes_address(spec)
        return judging.config(spec) if speaks else judging.config(spec, base_url=None)

    named: list[str | None] = [*judge] if judge else [None]
    if escalate and len(named) > 1:
        raise InputError(Message("command.escalate_one_judge", n=len(named)))
    if for_people is not None and not escalate:
        raise InputError(
            Message("command.both_or_neither", option="--for-people", other="--escalate")
        )
    if gate and escalate:
        raise InputError(Message("command.gate_one_judgment"))
    asked_for = asked_gate(gate, gating, dry_run=dry_run)
    named += escalate or []
    configs = [config_of(each, alone=len(named) == 1) for each in named]
    drawn = ordering.draw(seed=stopping.seed, no_swap=rules.no_swap)
    needed = any(each.needs_prompt for each in configs)
    reading = read_options(columns, rules, criteria_needed=needed, orders=drawn, values=values)
    ends = stopping.fields(one_order=rules.no_swap, drawn_orders=drawn is not None, gated=gate)
    sources = read_sources(data, reading, prompts=prompts)
    options = limits.options(name, bad_rows=bad_rows, **ends, **carried_out.fields())
    asked = [open_judge(config) for config in configs]
    calibrating = calibrations_of(calibration, asked, forced=force_calibration)
    plans = [
        JudgePlan(opened, replace(config, calibration=its_calibration))
        for opened, config, its_calibration in zip(asked, configs, calibrating, strict=True)
    ]
    if dry_run:
        from evenhand.runs.preview import preview_run

        session.present(preview_run(sources, plans, options), show_preview, as_json=as_json)
        return
    watching: Any = {"as_json": as_json, "confirm_above": limits.asks_above}
    with open_store(options.store) as store:
        if escalate:
            judge_in_stages(sources, plans, options, store=store, people=for_people, **watching)
        summary = judge_all(sources, plans, options, store=store, **watching)
        abstentions = abstentions_of(summary, plans, store)
        end(summary, store, options, as_json=as_json, abstentions=abstentions, gating=asked_for)
