"""Traces and metrics, if the OpenTelemetry API is installed. This package never loads an SDK."""

from __future__ import annotations

import time
from typing import Any

from ._decision import Decision
from ._errors import BudgetRefusedError, LeaseRefusedError, OutageError, WeirError

_NAME = "weir_ratelimit"


class Telemetry:
    """The recorder of a client."""

    def __init__(self, trace: Any, metrics: Any, propagate: Any) -> None:
        self._trace, self._propagate = trace, propagate
        self._tracer = trace.get_tracer(_NAME)
        meter = metrics.get_meter(_NAME)
        self._decisions = meter.create_counter("weir.client.decisions", description="Decisions by outcome")
        self._duration = meter.create_histogram("weir.client.duration", "s", "Time of a decision")
        self._outages = meter.create_counter("weir.client.outages", description="Outages by code")
        self._settlements = meter.create_counter("weir.client.settlements", description="Settlements by event")
        self._open = meter.create_up_down_counter("weir.client.breaker.open", description="Open breakers")

    @classmethod
    def load(cls) -> Telemetry | None:
        """Returns nothing if the API is not installed."""
        try:
            from opentelemetry import metrics, propagate, trace  # noqa: PLC0415
        except ImportError:
            return None
        return cls(trace, metrics, propagate)

    def begin(self, name: str) -> Recorded:
        """Begins to record a call."""
        span = self._tracer.start_span(name, kind=self._trace.SpanKind.CLIENT)
        carrier: dict[str, str] = {}
        self._propagate.inject(carrier, self._trace.set_span_in_context(span))
        return Recorded(self, span, tuple(carrier.items()))

    def outage(self, outage: OutageError) -> None:
        """Counts an outage of a call without a span."""
        self._outages.add(1, {"code": outage.code})

    def settlement(self, event: str) -> None:
        """Counts what has become of a settlement."""
        self._settlements.add(1, {"event": event})

    def breaker(self, change: int) -> None:
        """Records that the breaker has opened (1) or closed (-1)."""
        self._open.add(change)


class Recorded:
    """A call that is being recorded."""

    def __init__(self, telemetry: Telemetry, span: Any, trace: tuple[tuple[str, str], ...]) -> None:
        self._telemetry, self._span = telemetry, span
        #: The metadata that carry the context of the trace.
        self.trace = trace
        self._started = time.perf_counter()

    def decided(self, decision: Decision) -> None:
        """Ends the span of a decision."""
        attributes: dict[str, Any] = {
            "weir.allowed": decision.allowed,
            "weir.source": decision.source,
            "weir.reason": decision.reason,
        }
        if decision.denied_by:
            attributes["weir.denied_by"] = list(decision.denied_by)
        self._span.set_attributes(attributes)
        if decision.failure is not None:
            self._telemetry.outage(decision.failure)
        outcome = "allowed" if decision.allowed else "denied"
        self._end({"outcome": outcome, "source": decision.source, "reason": decision.reason})

    def failed(self, error: BaseException) -> None:
        """Ends the span of a call without a decision, or of a lease or a meter that is refused."""
        if isinstance(error, LeaseRefusedError | BudgetRefusedError):
            self.decided(error.decision)
            return
        self._span.set_status(self._telemetry._trace.StatusCode.ERROR)
        if isinstance(error, OutageError):
            self._telemetry.outage(error)
        self._end({"outcome": "error" if isinstance(error, WeirError) else "cancelled"})

    def _end(self, labels: dict[str, str]) -> None:
        self._telemetry._duration.record(time.perf_counter() - self._started)
        self._telemetry._decisions.add(1, labels)
        self._span.end()
