"""OpenTelemetry spans, if it is installed and set up."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING

from evenhand.judges.protocol import Completion, JudgeCall

if TYPE_CHECKING:
    from opentelemetry.trace import Span, Tracer


class Telemetry:
    """Spans for a run, its pairs and its judge calls, without texts."""

    def __init__(self, tracer: Tracer | None) -> None:
        self._tracer = tracer

    @classmethod
    def available(cls) -> Telemetry:
        """Setting it up imports it, so nothing needs importing here otherwise."""
        if "opentelemetry" not in sys.modules:
            return cls(None)
        try:
            from opentelemetry import trace
        except ImportError:
            return cls(None)
        if isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider):
            return cls(None)
        return cls(trace.get_tracer("evenhand"))

    def run(self, name: str) -> AbstractContextManager[SpanNote]:
        return self._span("evenhand.run", {"evenhand.run": name})

    def pair(self, key: str) -> AbstractContextManager[SpanNote]:
        return self._span("evenhand.pair", {"evenhand.pair": key})

    def call(self, judge: str, call: JudgeCall) -> AbstractContextManager[SpanNote]:
        if self._tracer is None:
            return _NO_SPAN
        return self._span(
            "evenhand.judge_call",
            {
                "gen_ai.operation.name": "chat",
                "evenhand.judge": judge,
                "evenhand.order": call.order,
                "evenhand.sample": call.sample,
            },
        )

    def _span(
        self, name: str, attributes: dict[str, str | int]
    ) -> AbstractContextManager[SpanNote]:
        return _NO_SPAN if self._tracer is None else _open_span(self._tracer, name, attributes)


@contextmanager
def _open_span(tracer: Tracer, name: str, attributes: dict[str, str | int]) -> Iterator[SpanNote]:
    with tracer.start_as_current_span(name) as span:
        note = SpanNote(span)
        note.set(**attributes)
        yield note


class SpanNote:
    """Adds attributes to a span once they are known."""

    def __init__(self, span: Span | None) -> None:
        self._span = span

    def answered(self, completion: Completion) -> None:
        usage = completion.usage
        self.set(
            **{
                "gen_ai.response.model": completion.model,
                "gen_ai.usage.input_tokens": usage.input_tokens,
                "gen_ai.usage.output_tokens": usage.output_tokens,
                "evenhand.requests": usage.requests,
            }
        )

    def set(self, **attributes: str | int | float | None) -> None:
        if self._span is not None:
            for name, value in attributes.items():
                if value is not None:
                    self._span.set_attribute(name, value)


_NO_NOTE = SpanNote(None)


class _NoSpan(AbstractContextManager[SpanNote]):
    """No span; reused, since the hot path enters it twice a pair."""

    def __enter__(self) -> SpanNote:
        return _NO_NOTE

    def __exit__(self, *_: object) -> None:
        return None


_NO_SPAN = _NoSpan()
