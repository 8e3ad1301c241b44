"""The options of `evenhand run`, each described once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

PairFilesArgument = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[PAIRS]...",
        help="Files of pairs: JSON lines, JSON, CSV (each also gzipped), Parquet; URLs such as "
        "s3://bucket/folder/*.parquet; - for standard input.",
        show_default=False,
    ),
]
FileA = Annotated[
    str | None,
    typer.Option("--a", metavar="FILE", help="A file of model outputs: response A of each pair."),
]
FileB = Annotated[
    str | None,
    typer.Option("--b", metavar="FILE", help="A file of model outputs: response B of each pair."),
]
Outputs = Annotated[
    list[str] | None,
    typer.Option(
        "--outputs",
        metavar="FILE",
        help="A file of model outputs, two or more of them: every model against every other, or "
        "against --baseline. Repeatable.",
    ),
]
Baseline = Annotated[
    str | None,
    typer.Option("--baseline", help="With --outputs: the model that the others are held against."),
]
Questions = Annotated[
    str | None,
    typer.Option(
        "--questions",
        metavar="FILE",
        help="The prompts of answer files that have none (MT-Bench, Arena-Hard).",
    ),
]
ColumnMap = Annotated[
    list[str] | None,
    typer.Option(
        "--map",
        metavar="FIELD=COLUMN",
        help="Which column is which field, e.g. prompt=question. Repeatable.",
    ),
]
OnBadRows = Annotated[
    Literal["stop", "skip"],
    typer.Option(
        "--bad-rows", help="stop: a row that is no pair is an error; skip: it is counted."
    ),
]
PromptsCompared = Annotated[
    Literal["all", "common"],
    typer.Option(
        "--prompts",
        help="With --a/--b and --outputs, all: a prompt that only one of two models answered is a "
        "bad row, and missing; common: compare on those that both answered.",
    ),
]
RunName = Annotated[
    str | None,
    typer.Option("--name", help="The run's name. Default: by the files and what was asked for."),
]
StoreAddress = Annotated[
    str | None,
    typer.Option(
        "--store",
        metavar="FILE_OR_URL",
        help="Where runs are kept: a file, or postgresql://…. Default: EVENHAND_STORE, or a file "
        "in your data folder.",
    ),
]
JudgeNames = Annotated[
    list[str] | None,
    typer.Option(
        "--judge",
        "-j",
        help="Who judges, as in compare; repeatable, then each judges every pair. Default: "
        "EVENHAND_JUDGE.",
    ),
]
Escalate = Annotated[
    list[str] | None,
    typer.Option(
        "--escalate",
        metavar="JUDGE",
        help="Who judges what the judge before abstained on (by its calibration), or decided "
        "differently in the two orders, or not at all. Repeatable, one after the other.",
    ),
]
ForPeople = Annotated[
    Path | None,
    typer.Option(
        "--for-people",
        metavar="FILE",
        help="With --escalate: the pairs that no judge could settle, as JSON lines for people.",
    ),
]
Concurrency = Annotated[
    int | None,
    typer.Option(
        "--concurrency",
        min=1,
        max=4096,
        help="The most calls in flight. Default: found by itself, up to 512.",
    ),
]
Rpm = Annotated[
    float | None, typer.Option("--rpm", min=0.01, help="The most requests a minute, for a judge.")
]
Tpm = Annotated[
    float | None, typer.Option("--tpm", min=1, help="The most tokens a minute, for a judge.")
]
MaxCalls = Annotated[
    int | None,
    typer.Option("--max-calls", min=1, help="The most calls that this command may make."),
]
MaxCost = Annotated[
    float | None,
    typer.Option("--max-cost", min=0.000001, help="The most dollars that this command may spend."),
]
PriceOption = Annotated[
    str | None,
    typer.Option(
        "--price",
        metavar="INPUT/OUTPUT",
        help="What the judge costs, in dollars for a million tokens, where no list has it: "
        "e.g. 0.15/0.60; --batch takes half of it.",
    ),
]
ConfirmAbove = Annotated[
    float,
    typer.Option(
        "--confirm-above", min=0, help="Ask before a run that may cost more dollars than this."
    ),
]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]
Fresh = Annotated[
    bool,
    typer.Option("--fresh", help="Ask everything anew, and share no passes with earlier runs."),
]
ExecutorChoice = Annotated[
    Literal["local", "ray"],
    typer.Option(
        "--executor",
        help="Who carries the run out: local: this process; ray: workers of a Ray cluster, with a "
        "PostgreSQL store that they share.",
    ),
]
RayAddress = Annotated[
    str | None,
    typer.Option(
        "--ray-address",
        metavar="HOST:PORT|auto",
        help="With --executor ray: the cluster. Default: RAY_ADDRESS, or Ray is started on this "
        "machine.",
    ),
]
RayWorkers = Annotated[
    int | None,
    typer.Option(
        "--ray-workers",
        min=1,
        help="With --executor ray: how many workers. Default: one for each CPU, up to 16.",
    ),
]
Batch = Annotated[
    bool,
    typer.Option(
        "--batch",
        help="By the provider's batch API (openai:, anthropic:): half the price, within a day. "
        "Ctrl-C leaves what is there, and the same command collects it.",
    ),
]
BatchPoll = Annotated[
    float | None,
    typer.Option(
        "--batch-poll",
        min=0.1,
        metavar="SECONDS",
        help="With --batch: how often to look whether it is done. Default: from 2 s to a minute.",
    ),
]
CancelBatches = Annotated[
    bool,
    typer.Option(
        "--cancel-batches",
        help="With --batch: cancel what is at the provider, keep what it has answered, and ask "
        "nothing more.",
    ),
]
UntilDecidedFlag = Annotated[
    bool,
    typer.Option(
        "--until-decided",
        help="End as soon as it is settled whether A or B is better. Prompts go out in a random "
        "order, and looking at them as they come does not raise the error.",
    ),
]
Alpha = Annotated[
    float | None,
    typer.Option(
        "--alpha",
        min=0.0001,
        max=0.5,
        help="With --until-decided: the chance of naming a winner where there is none. "
        "Default: 0.05.",
    ),
]
RankAdaptiveFlag = Annotated[
    bool,
    typer.Option(
        "--rank-adaptive",
        help="With several models and --budget: ask the pairs that are most likely to settle "
        "their order, instead of all against all.",
    ),
]
PairBudget = Annotated[
    int | None,
    typer.Option("--budget", min=1, help="With --rank-adaptive: the most pairs to ask."),
]
CertaintyWanted = Annotated[
    float | None,
    typer.Option(
        "--certainty",
        min=0.01,
        max=0.9999,
        help="With --rank-adaptive: end once the expected Kendall tau of the order is this. "
        "Default: 0.95.",
    ),
]
Seed = Annotated[
    int | None,
    typer.Option("--seed", help="Of the random order of --until-decided and --rank-adaptive."),
]
Again = Annotated[
    list[str] | None,  # typer takes no list of choices; RunOptions checks them
    typer.Option(
        "--retry",
        metavar="failed|unread",
        help="Ask again what failed, or what could not be read, and only that. Repeatable.",
    ),
]
KeepGoingUnread = Annotated[
    bool,
    typer.Option(
        "--keep-going-unread",
        help="Go on with a judge whose answers cannot be read: without it, 20 of them in a row, or "
        "more than half of the first 40, stop the run.",
    ),
]
