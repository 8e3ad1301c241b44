"""The options that several commands share, each described once, and the groups in which a command
takes them.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar, cast, get_type_hints

import typer

from evenhand.errors import InputError
from evenhand.messages import Message

if TYPE_CHECKING:
    from evenhand.contract import Locale
    from evenhand.data import OrderDraw
    from evenhand.judges import Judge
    from evenhand.judging.config import JudgeConfig
    from evenhand.report.conclusions import ConclusionLimits
    from evenhand.runs import RunOptions
    from evenhand.runs.options import Again

T = TypeVar("T")

Document = Annotated[
    str | None,
    typer.Argument(
        metavar="[DOCUMENT]",
        help="One JSON object with prompt, responseA, responseB and criteria: a file, or - for "
        "standard input.",
        show_default=False,
    ),
]
Prompt = Annotated[
    str | None,
    typer.Option(
        "--prompt", "-p", help="What both responses answer: a text, or @FILE (@- for stdin)."
    ),
]
ResponseA = Annotated[
    str | None,
    typer.Option(
        "--a", help="The first response: a text, or @FILE (@@ for a text that begins with @)."
    ),
]
ResponseB = Annotated[
    str | None,
    typer.Option("--b", help="The second response: a text, or @FILE."),
]
Context = Annotated[
    str | None,
    typer.Option("--context", help="Extra material for the judge: a text, or @FILE."),
]
Reference = Annotated[
    str | None,
    typer.Option("--reference", help="A known good answer, as a yardstick: a text, or @FILE."),
]
Criteria = Annotated[
    list[str] | None,
    typer.Option(
        "--criterion",
        "-c",
        help='What to judge by, most important first: "name", '
        '"name: description", or "name*2: description" with a weight. Repeatable.',
    ),
]
Identifier = Annotated[
    str | None,
    typer.Option("--id", help="A name for the pair; it comes back in the metadata."),
]
NoTie = Annotated[bool, typer.Option("--no-tie", help="A tie is not allowed.")]
NoSwap = Annotated[
    bool, typer.Option("--no-swap", help="Judge in one order only (the position may then decide).")
]
Orders = Annotated[
    Literal["both", "random"],
    typer.Option(
        "--orders",
        help="both: ask each pair in both orders; random: in one, drawn at random from --seed and "
        "the pair, at about half the calls. Claims at 0.5 and above hold as ever; those below need "
        "--both-orders.",
    ),
]
BothOrders = Annotated[
    float | None,
    typer.Option(
        "--both-orders",
        min=0,
        max=1,
        metavar="SHARE",
        help="With --orders random: the share of pairs asked in both orders, which tells how much "
        "the position decides. Default: 0.1.",
    ),
]
JudgeName = Annotated[
    str | None,
    typer.Option(
        "--judge",
        "-j",
        help="Who judges: openai:MODEL, anthropic:MODEL, google:MODEL, local, local:FILE.gguf, "
        "replay:FILE, baseline:longer, baseline:random. Default: EVENHAND_JUDGE.",
    ),
]
BaseUrl = Annotated[
    list[str] | None,
    typer.Option(
        "--base-url",
        help="The address of the judge's server, e.g. http://localhost:8000/v1. Repeatable: "
        "several servers of one model share the calls. Default: OPENAI_BASE_URL, for openai: "
        "judges.",
    ),
]
LocaleName = Annotated[
    Literal["en", "zh"] | None,
    typer.Option("--locale", help="The language of the prompt. Default: en, or EVENHAND_LOCALE."),
]
ModeName = Annotated[
    Literal["reasoned", "letter"] | None,
    typer.Option(
        "--mode",
        help="reasoned: a full answer with reasons; letter: single tokens, decided on their "
        "probabilities, cheap and without prose. Default: what the judge does best.",
    ),
]
Samples = Annotated[
    int | None,
    typer.Option(
        "--samples",
        min=1,
        max=100,
        help="How often each order is judged; above 1 the temperature is 1 unless given. "
        "Default: 1.",
    ),
]
ReconcileBy = Annotated[
    Literal["agreement", "average"] | None,
    typer.Option(
        "--reconcile",
        help="agreement: both orders must name the winner; average: their mean probability "
        "decides. Default: agreement (letter mode: average).",
    ),
]
ConfidenceFrom = Annotated[
    Literal["stated", "logprobs"] | None,
    typer.Option(
        "--confidence",
        help="stated: what the judge says; logprobs: the probability of its verdict token. "
        "Default: stated.",
    ),
]
TemplateFile = Annotated[
    Path | None,
    typer.Option(
        "--template",
        help="A prompt template of your own: plain {slots}, or sandboxed Jinja (*.j2).",
    ),
]
AnswerProtocol = Annotated[
    Literal["evenhand", "mt-bench", "arena-hard", "llmbar", "three-class", "scores"] | None,
    typer.Option(
        "--protocol",
        help="The answer format of recorded completions. Default: recognised from the text.",
    ),
]
TimeoutS = Annotated[
    float | None,
    typer.Option("--timeout", min=0.1, help="Seconds that one request may take. Default: 120."),
]
MaxTokens = Annotated[
    int | None,
    typer.Option("--max-tokens", min=1, help="The most tokens of one answer. Default: 4096."),
]
Temperature = Annotated[
    float | None,
    typer.Option(
        "--temperature",
        min=0,
        max=2,
        help="The judge's temperature. Default: 0, or 1 with --samples above 1 (samples taken at 0 "
        "are one sample over again).",
    ),
]
Retries = Annotated[
    int | None,
    typer.Option(
        "--retries", min=0, max=20, help="Further tries after 429, 5xx or a reset. Default: 3."
    ),
]
Repairs = Annotated[
    int | None,
    typer.Option(
        "--repairs",
        min=0,
        max=5,
        help="How often an answer that cannot be read is shown to the judge again. Default: 1.",
    ),
]
AskIdentical = Annotated[
    bool,
    typer.Option(
        "--ask-identical",
        help="Ask the judge about identical responses too; else they are a tie by rule.",
    ),
]
Prepare = Annotated[
    str | None,
    typer.Option(
        "--prepare",
        metavar="KINDS",
        help="What is written before the judging, with commas between: metrics and reference for "
        "the prompt alone, analysis of each response alone; none for nothing. Each is written once "
        "and shared. See whether it helps: evenhand audit --try-prepare. Default: none.",
    ),
]
PrepareWith = Annotated[
    str | None,
    typer.Option(
        "--prepare-with",
        metavar="JUDGE",
        help="Another model that writes it, and the ratings. Default: the judge.",
    ),
]
OnInconsistent = Annotated[
    Literal["keep", "rate"] | None,
    typer.Option(
        "--on-inconsistent",
        help="rate: where the orders choose differently, score each response alone too (byRating); "
        "the pair stays inconsistent. Default: keep.",
    ),
]
RatingSamples = Annotated[
    int | None,
    typer.Option(
        "--rating-samples",
        min=1,
        max=100,
        help="How often each response is scored then; above 1 with a --temperature above 0. "
        "Default: 1.",
    ),
]
Calibrations = Annotated[
    list[str] | None,
    typer.Option(
        "--calibration",
        metavar="NAME",
        help="Make the confidence the probability that the verdict is right, as evenhand "
        "calibrate learned it on this judge: a name, or a file.json. Repeatable, one for a judge.",
    ),
]
ForceCalibration = Annotated[
    bool,
    typer.Option(
        "--force-calibration",
        help="Use the calibration on a judge, prompt, language or mode that it was not learned on.",
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Plain JSON on standard output.")]


# The options of commands about runs.

ColumnMap = Annotated[
    list[str] | None,
    typer.Option(
        "--map",
        metavar="FIELD=COLUMN",
        help="Which column is which field, e.g. prompt=question. Repeatable.",
    ),
]
Values = Annotated[
    list[str] | None,
    typer.Option(
        "--value",
        metavar="SPELLING=VERDICT",
        help="What a spelling means, e.g. 0=TIE; A, B, TIE or skipped. Repeatable.",
    ),
]
OnBadRows = Annotated[
    Literal["stop", "skip"],
    typer.Option(
        "--bad-rows", help="stop: a row that is no pair is an error; skip: it is counted."
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
AskAgain = Annotated[
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
GiveUpAfter = Annotated[
    str | None,
    typer.Option(
        "--give-up-after",
        metavar="TIME",
        help="Stop after so long without any answer (429, 5xx, no connection): 90s, 10m, 2h, or "
        "seconds. The same command goes on. Not for --batch. Default: 10m.",
    ),
]
RunArgument = Annotated[str, typer.Argument(metavar="RUN", help="The run's name.")]
LatestOrNamed = Annotated[
    str | None,
    typer.Argument(metavar="[RUN]", help="The run's name. Default: the latest run."),
]
MaxInvalid = Annotated[
    float | None,
    typer.Option(
        "--max-invalid",
        help="Conclude nothing where a larger share of pairs has no valid verdict. Up to there "
        "they count against the claim.",
    ),
]
MaxSkipped = Annotated[
    float | None,
    typer.Option(
        "--max-skipped",
        help="The same for rows that were skipped or have no partner.",
    ),
]
MissingOption = Annotated[
    Literal["against", "half"] | None,
    typer.Option(
        "--missing",
        help="What pairs without a verdict count as: against the claim (default), or half, which "
        "is your word that they are like the others.",
    ),
]
AllowOneOrder = Annotated[
    bool,
    typer.Option(
        "--allow-one-order",
        help="Conclude from pairs judged in one fixed order too, though position may decide them.",
    ),
]
LabelsAre = Annotated[
    Literal["random"] | None,
    typer.Option(
        "--labels-are",
        help="random: your word that the data's labels, and votes that do not say, are of pairs "
        "drawn at random.",
    ),
]
AllowLength = Annotated[
    bool,
    typer.Option(
        "--allow-length",
        help="Conclude though longer answers win and at equal length nothing is shown.",
    ),
]
SmallestEffect = Annotated[
    float | None,
    typer.Option(
        "--smallest-effect",
        help="The difference from 0.5 that matters, e.g. 0.02: says whether it is shown, ruled "
        "out or open.",
    ),
]
Growing = Annotated[
    bool,
    typer.Option(
        "--growing",
        help="More rows will follow: intervals that hold however often you look.",
    ),
]
Topic = Annotated[
    str | None,
    typer.Option(
        "--topic",
        metavar="COLUMN",
        help="The tag column that holds a pair's topic: claims must hold beyond these topics. "
        "Default: the only one, where its topics differ.",
    ),
]
TheseTopics = Annotated[
    bool,
    typer.Option("--these-topics", help="Claim for these topics alone, though topics differ."),
]
SideOption = Annotated[
    Literal["A", "B"],
    typer.Option("--side", help="Whose win rate it is: B, the new one, unless told otherwise."),
]
TiesOption = Annotated[
    Literal["half", "excluded", "wins"],
    typer.Option(
        "--ties",
        help="Ties count as half, are excluded, or only outright wins count.",
    ),
]

Level = Annotated[
    float, typer.Option("--level", help="How sure the intervals are, between 0 and 1.")
]
Plot = Annotated[
    Path | None,
    typer.Option(
        "--plot", metavar="FILE", help="Draw it too, to a file.svg, file.png or file.csv."
    ),
]
DryRun = Annotated[
    bool,
    typer.Option(
        "--dry-run",
        help="Show what is found, the first prompt as it is sent, calls, tokens, cost and time; "
        "ask nothing.",
    ),
]
Overwrite = Annotated[
    bool, typer.Option("--force", help="Write over a file that is there already.")
]


# Options that belong together, each group one value: a command takes it whole and passes it on.


def grouped(command: Callable[..., None]) -> Callable[..., None]:
    """The command as Typer takes it: with the options of its groups in their groups' place.

    Its parameters are keywords, so that a group may stand after an option with a default. Groups
    hold options and further groups; an option that two of them hold is declared by the first.
    """
    taken = inspect.signature(command, eval_str=True)
    groups = {each.name: each.annotation for each in taken.parameters.values() if _is_group(each)}
    spread: dict[str, inspect.Parameter] = {}
    for parameter in taken.parameters.values():
        group = groups.get(parameter.name)
        for each in [parameter] if group is None else _options_of(group):
            spread.setdefault(each.name, each)

    @functools.wraps(command)
    def called(**given: Any) -> None:
        # A group may have the name of one of its options.
        made = {name: _group_of(group, given) for name, group in groups.items()}
        command(**{name: given.get(name) for name in taken.parameters} | made)

    vars(called)["__signature__"] = taken.replace(parameters=list(spread.values()))
    called.__annotations__ = {name: each.annotation for name, each in spread.items()}
    return called


def _is_group(parameter: inspect.Parameter) -> bool:
    return isinstance(parameter.annotation, type) and is_dataclass(parameter.annotation)


def _fields_of(group: type[Any]) -> list[inspect.Parameter]:
    hints = get_type_hints(group, include_extras=True)
    return [
        inspect.Parameter(
            each.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=each.default,
            annotation=hints[each.name],
        )
        for each in fields(group)
    ]


def _options_of(group: type[Any]) -> Iterator[inspect.Parameter]:
    for each in _fields_of(group):
        if _is_group(each):
            yield from _options_of(each.annotation)
        else:
            yield each


def _group_of(group: type[T], given: Mapping[str, Any]) -> T:
    return group(
        **{
            each.name: _group_of(each.annotation, given) if _is_group(each) else given[each.name]
            for each in _fields_of(group)
        }
    )


def given_options(group: object) -> Iterator[tuple[str, str]]:
    """The name and the flag of each option of a group that is not at its default."""
    for each in _fields_of(type(group)):
        value = getattr(group, each.name)
        if _is_group(each):
            yield from given_options(value)
        elif value != each.default:
            (declared,) = each.annotation.__metadata__
            # As typer takes it, the first flag stands where a default would.
            yield each.name, declared.default


@dataclass(frozen=True, slots=True)
class PairTexts:
    """One pair: as a document, or text by text."""

    document: Document = None
    prompt: Prompt = None
    a: ResponseA = None
    b: ResponseB = None
    criteria: Criteria = None
    context: Context = None
    reference: Reference = None
    identifier: Identifier = None
    no_tie: NoTie = False
    no_swap: NoSwap = False


@dataclass(frozen=True, slots=True)
class PairRules:
    """What every pair of a run is judged by."""

    criteria: Criteria = None
    no_tie: NoTie = False
    no_swap: NoSwap = False


@dataclass(frozen=True, slots=True)
class OrderChoices:
    """In which orders each pair is asked."""

    orders: Orders = "both"
    both_orders: BothOrders = None

    def draw(self, *, seed: int | None = None, no_swap: bool = False) -> OrderDraw | None:
        """None where no order is drawn."""
        from evenhand.data.orders import BOTH_ORDERS_SHARE, OrderDraw

        if self.orders == "both":
            if self.both_orders is not None:
                raise InputError(
                    Message("command.belongs_to", option="--both-orders", other="--orders random")
                )
            return None
        if no_swap:
            raise InputError(Message("command.random_or_fixed_order"))
        share = BOTH_ORDERS_SHARE if self.both_orders is None else self.both_orders
        return OrderDraw(seed or 0, share)


@dataclass(frozen=True, slots=True)
class JudgeChoices:
    """How a judge is asked and its answers are read."""

    mode: ModeName = None
    samples: Samples = None
    reconcile: ReconcileBy = None
    confidence: ConfidenceFrom = None
    template: TemplateFile = None
    protocol: AnswerProtocol = None
    timeout: TimeoutS = None
    max_tokens: MaxTokens = None
    temperature: Temperature = None
    retries: Retries = None
    repairs: Repairs = None
    prepare: Prepare = None
    prepare_with: PrepareWith = None
    on_inconsistent: OnInconsistent = None
    rating_samples: RatingSamples = None
    ask_identical: AskIdentical = False

    def config(
        self,
        judge: str | None = None,
        *,
        base_url: list[str] | None = None,
        locale: Locale | None = None,
    ) -> JudgeConfig:
        """As the command says it, and else as the settings do."""
        from evenhand.judges import RetryPolicy
        from evenhand.judging.config import JudgeConfig, read_addresses, read_kinds
        from evenhand.settings import load_settings

        chosen = JudgeConfig(
            judge=judge,
            base_url=read_addresses(base_url),
            locale=locale,
            mode=self.mode,
            samples=self.samples,
            reconcile=self.reconcile,
            confidence=self.confidence,
            template=self.template,
            protocol=self.protocol,
            timeout_s=self.timeout,
            max_tokens=self.max_tokens,
            temperature=self.temperature,
            retry=None if self.retries is None else RetryPolicy(attempts=self.retries + 1),
            repairs=self.repairs,
            ask_identical=self.ask_identical,
            prepare=read_kinds(self.prepare),
            prepare_with=self.prepare_with,
            on_inconsistent=self.on_inconsistent,
            rating_samples=self.rating_samples,
        )
        resolved = JudgeConfig.resolve(load_settings(), chosen)
        rates = resolved.on_inconsistent == "rate"
        if self.rating_samples is not None and not rates:
            raise InputError(
                Message(
                    "command.belongs_to", option="--rating-samples", other="--on-inconsistent rate"
                )
            )
        if self.prepare_with is not None and not (resolved.prepare or rates):
            raise InputError(
                Message("command.belongs_to", option="--prepare-with", other="--prepare")
            )
        return resolved


@dataclass(frozen=True, slots=True)
class Counting:
    """Whose win rate it is, and what counts as missing."""

    side: SideOption = "B"
    ties: TiesOption = "half"
    max_invalid: MaxInvalid = None
    max_skipped: MaxSkipped = None
    missing: MissingOption = None


@dataclass(frozen=True, slots=True)
class Claiming:
    """What may be concluded."""

    allow_one_order: AllowOneOrder = False
    allow_length: AllowLength = False
    labels_are: LabelsAre = None
    smallest_effect: SmallestEffect = None
    growing: Growing = False
    topic: Topic = None
    these_topics: TheseTopics = False

    def limits(self, counting: Counting) -> ConclusionLimits:
        from evenhand.report.conclusions import ConclusionLimits
        from evenhand.settings import load_settings

        set_up = load_settings().gate
        given = [getattr(counting, name) for name in ("max_invalid", "max_skipped")]
        set_ups = (set_up.max_invalid, set_up.max_skipped)
        invalid, skipped = (s if g is None else g for g, s in zip(given, set_ups, strict=True))
        return ConclusionLimits(
            max_invalid=invalid,
            max_skipped=skipped,
            missing=counting.missing or set_up.missing or "against",
            allow_one_order=self.allow_one_order,
            allow_length=self.allow_length,
            labels_are_random=self.labels_are is not None,
            smallest_effect=self.smallest_effect,
            growing=self.growing,
            topic=self.topic,
            these_topics=self.these_topics,
        )


def first_given(given: float | None, set_up: float | None, default: float) -> float:
    """What the command says, else the config file, else the default."""
    return next(each for each in (given, set_up, default) if each is not None)


def open_judge(config: JudgeConfig) -> Judge:
    """The one that the command or the settings name."""
    if config.judge is None:
        raise InputError(Message("command.no_judge"))
    return config.open_judge()


@dataclass(frozen=True, slots=True)
class RunLimits:
    """Where a run is kept, how fast it goes, what it may cost and what it asks again."""

    store: StoreAddress = None
    concurrency: Concurrency = None
    rpm: Rpm = None
    tpm: Tpm = None
    max_calls: MaxCalls = None
    max_cost: MaxCost = None
    price: PriceOption = None
    confirm_above: ConfirmAbove = 5.0
    yes: Yes = False
    fresh: Fresh = False
    retry: AskAgain = None
    keep_going_unread: KeepGoingUnread = False
    give_up_after: GiveUpAfter = None

    @property
    def asks_above(self) -> float | None:
        """From how many dollars on the user is asked; None: never."""
        return None if self.yes else self.confirm_above

    def options(self, name: str | None, **more: Any) -> RunOptions:
        """`more` is of the one command."""
        from evenhand.cli.inputs import read_price, read_time_s
        from evenhand.cli.session import named_store
        from evenhand.runs import RunOptions
        from evenhand.settings import load_settings

        set_up = load_settings()
        return RunOptions(
            name=name,
            store=named_store(self.store),
            concurrency=self.concurrency,
            rpm=self.rpm,
            tpm=self.tpm,
            max_calls=set_up.max_calls if self.max_calls is None else self.max_calls,
            max_cost=set_up.max_cost if self.max_cost is None else self.max_cost,
            price=read_price(self.price),
            caps_unpriced=True,
            fresh=self.fresh,
            retry=tuple(cast("list[Again]", self.retry or [])),
            keep_going_unread=self.keep_going_unread,
            give_up_after_s=set_up.give_up_after_s
            if self.give_up_after is None
            else read_time_s("--give-up-after", self.give_up_after),
            **more,
        )
