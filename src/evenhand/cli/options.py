"""The options that several commands share, each described once."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from evenhand.errors import InputError
from evenhand.settings import Settings

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
        help='What to judge by, most important first: a name, or "name: description". Repeatable.',
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
        "--ask-identical/--no-ask-identical",
        help="Whether the judge is asked about two identical responses.",
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


def with_judge_options(
    settings: Settings,
    *,
    judge: str | None,
    timeout_s: float | None = None,
    max_tokens: int | None = None,
    temperature: float | None = None,
    samples: int | None = None,
) -> Settings:
    given = {
        "judge": judge,
        "timeout_s": timeout_s,
        "max_tokens": max_tokens,
        "temperature": temperature,
        "samples": samples,
    }
    chosen: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    return replace(settings, **chosen)


def require_judge(settings: Settings) -> str:
    if settings.judge is None:
        raise InputError(
            "no judge is named; give --judge openai:MODEL (or set EVENHAND_JUDGE); "
            "--judge local works without a key, to try things out"
        )
    return settings.judge
