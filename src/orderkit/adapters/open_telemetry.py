"""
Spans for a collector of OpenTelemetry.

The SDK reads its own variables (``OTEL_*``): where to, how many, with which name.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.propagators.textmap import Getter
from opentelemetry.sdk.resources import SERVICE_NAME, SERVICE_VERSION, Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import Span, SpanKind, Status, StatusCode
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from orderkit.core.telemetry import Attributes

_NAME = "OTEL_SERVICE_NAME"
_TIMEOUT = "OTEL_EXPORTER_OTLP_TIMEOUT"
_TIMEOUT_S = 2.0
"""Without that variable: a command whose collector is away must not wait long at its end."""
_STATUS = "http.response.status_code"
_FAILED = {SpanKind.SERVER: 500, SpanKind.CLIENT: 400}
"""The first status that is an error, as OpenTelemetry's conventions for HTTP have it."""


class OpenTelemetryRecorder:
    """Sends spans by OTLP over HTTP. See `orderkit.core.telemetry.Recorder`."""

    def __init__(self, version: str) -> None:
        named = {} if os.environ.get(_NAME) else {SERVICE_NAME: "orderkit"}
        self._provider = TracerProvider(
            resource=Resource.create({**named, SERVICE_VERSION: version}), shutdown_on_exit=False
        )
        timeout_s = None if os.environ.get(_TIMEOUT) else _TIMEOUT_S
        self._provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(timeout=timeout_s)))
        self._tracer = self._provider.get_tracer("orderkit", version)
        self._propagator = TraceContextTextMapPropagator()

    def close(self) -> None:
        """Send what is left."""
        self._provider.shutdown()

    @contextmanager
    def root(
        self, name: str, attributes: Attributes, headers: Mapping[str, str] | None
    ) -> Iterator[Attributes]:
        """Record a request, in the trace of its header ``traceparent`` if it has one."""
        kind = SpanKind.INTERNAL if headers is None else SpanKind.SERVER
        context = self._propagator.extract(headers or {}, getter=_HEADERS)
        with (
            self._tracer.start_as_current_span(
                name, context, kind, record_exception=False, set_status_on_exception=False
            ) as span,
            _noting(span, kind, attributes) as notes,
        ):
            yield notes

    @contextmanager
    def child(self, name: str, attributes: Attributes) -> Iterator[Attributes]:
        """Record a request to another system; without a current span, nothing."""
        if not trace.get_current_span().is_recording():
            yield {}
            return
        kind = SpanKind.CLIENT
        with (
            self._tracer.start_as_current_span(
                name, kind=kind, record_exception=False, set_status_on_exception=False
            ) as span,
            _noting(span, kind, attributes) as notes,
        ):
            yield notes


class _HeaderGetter(Getter[Mapping[str, str]]):
    def get(self, carrier: Mapping[str, str], key: str) -> list[str] | None:
        value = carrier.get(key)
        return None if value is None else [value]

    def keys(self, carrier: Mapping[str, str]) -> list[str]:
        return list(carrier)


_HEADERS = _HeaderGetter()


@contextmanager
def _noting(span: Span, kind: SpanKind, attributes: Attributes) -> Iterator[Attributes]:
    """Hand out a mapping; put it on the span at the end, and say whether it failed."""
    notes = dict(attributes)
    try:
        yield notes
    except BaseException as error:
        # by its type: a message may have texts of users
        notes["error.type"] = type(error).__name__
        raise
    finally:
        span.set_attributes(notes)
        if "error.type" in notes or int(notes.get(_STATUS, 0)) >= _FAILED.get(kind, 1000):
            span.set_status(Status(StatusCode.ERROR))
