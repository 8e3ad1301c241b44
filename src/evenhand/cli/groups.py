"""Options that belong together, each group one value: a command takes it whole and passes it on."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass
from typing import TYPE_CHECKING, Any, cast, get_type_hints

from evenhand.cli import options as opt
from evenhand.errors import InputError

if TYPE_CHECKING:
    from evenhand.contract import Locale
    from evenhand.judges import Judge
    from evenhand.judging.config import JudgeConfig
    from evenhand.runs import RunOptions
    from evenhand.runs.options import Again


def grouped(command: Callable[..., None]) -> Callable[..., None]:
    """The command as Typer takes it: with the options of its groups in their groups' place.

    Its parameters are keywords, so that a group may stand after an option with a default.
    """
    taken = inspect.signature(command, eval_str=True)
    groups: dict[str, type[Any]] = {
        each.name: each.annotation
        for each in taken.parameters.values()
        if isinstance(each.annotation, type) and is_dataclass(each.annotation)
    }
    spread: list[inspect.Parameter] = []
    for parameter in taken.parameters.values():
        group = groups.get(parameter.name)
        spread += [parameter] if group is None else _options_of(group)

    @functools.wraps(command)
    def called(**given: Any) -> None:
        for name, group in groups.items():
            given[name] = group(**{each.name: given.pop(each.name) for each in fields(group)})
        command(**given)

    called.__signature__ = taken.replace(parameters=spread)  # type: ignore[attr-defined]
    called.__annotations__ = {each.name: each.annotation for each in spread}
    return called


def _options_of(group: type) -> list[inspect.Parameter]:
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


@dataclass(frozen=True, slots=True)
class PairTexts:
    """One pair: as a document, or text by text."""

    document: opt.Document = None
    prompt: opt.Prompt = None
    a: opt.ResponseA = None
    b: opt.ResponseB = None
    criteria: opt.Criteria = None
    context: opt.Context = None
    reference: opt.Reference = None
    identifier: opt.Identifier = None
    no_tie: opt.NoTie = False
    no_swap: opt.NoSwap = False


@dataclass(frozen=True, slots=True)
class PairRules:
    """What every pair of a run is judged by."""

    criteria: opt.Criteria = None
    no_tie: opt.NoTie = False
    no_swap: opt.NoSwap = False


@dataclass(frozen=True, slots=True)
class JudgeChoices:
    """How a judge is asked and its answers are read."""

    mode: opt.ModeName = None
    samples: opt.Samples = None
    reconcile: opt.ReconcileBy = None
    confidence: opt.ConfidenceFrom = None
    template: opt.TemplateFile = None
    protocol: opt.AnswerProtocol = None
    timeout: opt.TimeoutS = None
    max_tokens: opt.MaxTokens = None
    temperature: opt.Temperature = None
    retries: opt.Retries = None
    repairs: opt.Repairs = None

    def config(
        self,
        judge: str | None = None,
        *,
        base_url: list[str] | None = None,
        locale: Locale | None = None,
        ask_identical: bool = True,
    ) -> JudgeConfig:
        """As the command says it, and else as the settings do."""
        from evenhand.judges import RetryPolicy
        from evenhand.judging.config import JudgeConfig, read_addresses
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
            ask_identical=ask_identical,
        )
        return JudgeConfig.resolve(load_settings(), chosen)


def open_judge(config: JudgeConfig) -> Judge:
    """The one that the command or the settings name."""
    if config.judge is None:
        raise InputError(
            "no judge is named; give --judge openai:MODEL (or set EVENHAND_JUDGE); "
            "--judge local works without a key, to try things out"
        )
    return config.open_judge()


@dataclass(frozen=True, slots=True)
class RunLimits:
    """Where a run is kept, how fast it goes, what it may cost and what it asks again."""

    store: opt.StoreAddress = None
    concurrency: opt.Concurrency = None
    rpm: opt.Rpm = None
    tpm: opt.Tpm = None
    max_calls: opt.MaxCalls = None
    max_cost: opt.MaxCost = None
    price: opt.PriceOption = None
    confirm_above: opt.ConfirmAbove = 5.0
    yes: opt.Yes = False
    fresh: opt.Fresh = False
    retry: opt.Again = None
    keep_going_unread: opt.KeepGoingUnread = False

    @property
    def asks_above(self) -> float | None:
        """From how many dollars on the user is asked; None: never."""
        return None if self.yes else self.confirm_above

    def options(self, name: str | None, **more: Any) -> RunOptions:
        """`more` is of the one command."""
        from evenhand.cli.inputs import read_price
        from evenhand.cli.session import named_store
        from evenhand.runs import RunOptions

        return RunOptions(
            name=name,
            store=named_store(self.store),
            concurrency=self.concurrency,
            rpm=self.rpm,
            tpm=self.tpm,
            max_calls=self.max_calls,
            max_cost=self.max_cost,
            price=read_price(self.price),
            fresh=self.fresh,
            retry=tuple(cast("list[Again]", self.retry or [])),
            keep_going_unread=self.keep_going_unread,
            **more,
        )
