"""What the server counts, for Prometheus: no label holds anything that a client sent."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import get_args

from prometheus_client import (
    CONTENT_TYPE_LATEST,
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    ProcessCollector,
    generate_latest,
)
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from evenhand.contract import Verdict
from evenhand.errors import EvenhandError, NoVerdict, ServerBusy
from evenhand.serve.comparisons import Admission, ServiceObserver

FOLDER_VARIABLE = "PROMETHEUS_MULTIPROC_DIR"
CONTENT_TYPE = CONTENT_TYPE_LATEST
OTHER = "other"
_METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
_HTTP_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)
_JUDGING_SECONDS = (0.05, 0.1, 0.25, 0.5, 1, 2, 4, 8, 15, 30, 60, 120, 300)


class Metrics(ServiceObserver):
    """`judges` are the offered names: whatever else may come is counted as one."""

    def __init__(self, judges: Sequence[str] = ()) -> None:
        self._judges = frozenset(judges)
        self._shared = bool(os.environ.get(FOLDER_VARIABLE))
        self._registry = registry = CollectorRegistry()
        if not self._shared:
            ProcessCollector(registry=registry)
        self._requests = Counter(
            "evenhand_http_requests",
            "Requests answered.",
            ("method", "route", "status"),
            registry=registry,
        )
        self._request_seconds = Histogram(
            "evenhand_http_request_seconds",
            "From a request's arrival to the end of its response.",
            ("route",),
            buckets=_HTTP_SECONDS,
            registry=registry,
        )
        self._requests_in_flight = _gauge(
            registry, "evenhand_http_requests_in_flight", "Requests being answered."
        )
        self._refused = Counter(
            "evenhand_http_refused",
            "Requests refused by the guard, by kind of error.",
            ("kind",),
            registry=registry,
        )
        self._comparisons = Counter(
            "evenhand_comparisons",
            "Comparisons by result: win, tie, inconsistent, invalid, or failed.",
            ("judge", "outcome"),
            registry=registry,
        )
        self._failures = Counter(
            "evenhand_comparison_failures",
            "Comparisons without a verdict, by kind of error.",
            ("judge", "kind"),
            registry=registry,
        )
        self._comparison_seconds = Histogram(
            "evenhand_comparison_seconds",
            "How long a comparison took, including waiting.",
            ("judge",),
            buckets=_JUDGING_SECONDS,
            registry=registry,
        )
        self._calls = Counter(
            "evenhand_judge_calls", "Requests made to judges.", ("judge",), registry=registry
        )
        self._run_verdicts = Counter(
            "evenhand_run_verdicts",
            "Verdicts of background runs.",
            ("judge",),
            registry=registry,
        )
        self._runs_ended = Counter(
            "evenhand_runs_ended", "Background runs that ended.", ("state",), registry=registry
        )
        self._in_flight = _gauge(
            registry, "evenhand_comparisons_in_flight", "Comparisons being judged."
        )
        self._waiting = _gauge(
            registry, "evenhand_comparisons_waiting", "Comparisons in the queue."
        )

    def compared(self, judge: str, ended: Verdict | EvenhandError, *, seconds: float) -> None:
        judge = self._named(judge)
        metadata = ended.metadata
        if isinstance(ended, EvenhandError):
            self._failures.labels(judge, ended.kind).inc()
            if isinstance(ended, ServerBusy):
                return  # it was never begun
            outcome: str = "invalid" if isinstance(ended, NoVerdict) else "failed"
        else:
            outcome = ended.outcome
        self._comparisons.labels(judge, outcome).inc()
        self._comparison_seconds.labels(judge).observe(seconds)
        calls = getattr(getattr(metadata, "usage", None), "requests", None)
        if calls:
            self._calls.labels(judge).inc(calls)

    def run_advanced(self, judge: str, *, calls: int, verdicts: int) -> None:
        judge = self._named(judge)
        self._calls.labels(judge).inc(calls)
        self._run_verdicts.labels(judge).inc(verdicts)

    def run_ended(self, state: str) -> None:
        self._runs_ended.labels(state).inc()

    def follow(self, admission: Admission) -> None:
        """Tell from now on how full it is."""
        admission.changed = self._admission_changed
        self._admission_changed(admission)

    def _admission_changed(self, admission: Admission) -> None:
        self._in_flight.set(admission.in_flight)
        self._waiting.set(admission.waiting)

    def arrived(self) -> None:
        self._requests_in_flight.inc()

    def answered(self, method: str, route: str, status: int, *, seconds: float) -> None:
        self._requests_in_flight.dec()
        known = method if method in _METHODS else OTHER
        self._requests.labels(known, route, str(status)).inc()
        self._request_seconds.labels(route).observe(seconds)

    def refused(self, kind: str) -> None:
        self._refused.labels(kind).inc()

    def exposition(self, runs_by_state: Mapping[str, int] | None = None) -> bytes:
        """All of it as text, of all workers. The runs are counted in the store."""
        if self._shared:
            from prometheus_client.multiprocess import MultiProcessCollector

            registry = CollectorRegistry()
            # The library is half typed.
            MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
            exposition = generate_latest(registry)
        else:
            exposition = generate_latest(self._registry)
        if runs_by_state is None:
            return exposition
        of_runs = CollectorRegistry()
        of_runs.register(_Runs(runs_by_state))
        return exposition + generate_latest(of_runs)

    def _named(self, judge: str) -> str:
        return judge if judge in self._judges else OTHER


class _Runs(Collector):
    def __init__(self, by_state: Mapping[str, int]) -> None:
        self._by_state = by_state

    def collect(self) -> Iterator[Metric]:
        family = GaugeMetricFamily("evenhand_runs", "Runs in the store.", labels=("state",))
        # Not above: a process that only watches others loads no statistics.
        from evenhand.serve.values import RunStateView

        for state in get_args(RunStateView):
            family.add_metric((state,), self._by_state.get(state, 0))
        yield family


def _gauge(registry: CollectorRegistry, name: str, help_text: str) -> Gauge:
    return Gauge(name, help_text, registry=registry, multiprocess_mode="livesum")


def forget_process(pid: int) -> None:
    """A worker has died: its gauges count no more, its counters stay."""
    from prometheus_client.multiprocess import mark_process_dead

    mark_process_dead(pid)  # type: ignore[no-untyped-call]  # the library is half typed
