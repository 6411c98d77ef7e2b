# SPDX-License-Identifier: Apache-2.0
"""Spans of requests, searches and commits, sent through OpenTelemetry.

Nothing of OpenTelemetry is imported unless the environment names an exporter, by the variables of
its SDK. Then a request has a span, with a child for each search and each write; the parent is the
span of the caller, if the request has a valid `traceparent`.
Source: OpenTelemetry's semantic conventions for HTTP spans.
"""

from __future__ import annotations

import importlib.util
import logging
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING, Any, Final
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

import berth
from berth.api.environ import CONTEXT, NO_ROUTE, ROUTE
from berth.edge.auth.identity import Context
from berth.edge.request_log import Headers, noting
from berth.edge.secrets import masked

if TYPE_CHECKING:
    from opentelemetry.sdk.trace.export import SpanExporter
    from opentelemetry.trace import Tracer

LOG = logging.getLogger(__name__)

#: Any of these variables asks for the exporter `otlp`.
_ENDPOINTS: Final = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")


def exporter_name(environment: Mapping[str, str]) -> str | None:
    """The exporter of spans that the variables of OpenTelemetry's SDK ask for; None for none."""
    if environment.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
        return None
    name = environment.get("OTEL_TRACES_EXPORTER", "").strip().lower()
    if not name and any(environment.get(variable) for variable in _ENDPOINTS):
        name = "otlp"
    return None if name in ("", "none") else name


def start_tracing(environment: Mapping[str, str]) -> Tracing | None:
    """Set up the export of spans as the environment asks for; None without an exporter."""
    name = exporter_name(environment)
    if name is None:
        return None
    if name not in ("otlp", "console"):
        LOG.warning(
            "berth sends no spans: OTEL_TRACES_EXPORTER=%s must be otlp, console or none", name
        )
        return None
    if not _is_installed("opentelemetry.sdk", "opentelemetry.exporter.otlp.proto.http"):
        LOG.warning(
            "berth sends no spans: OpenTelemetry is not installed; run pip install 'berthd[otel]'"
        )
        return None
    return Tracing(_tracer(_exporter(name), environment))


class Tracing:
    """Makes the spans of one application.

    Args:
        tracer: OpenTelemetry's.
    """

    def __init__(self, tracer: Tracer) -> None:
        # Deferred: only with an exporter.
        from opentelemetry import context, trace
        from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

        self._tracer = tracer
        self._context: Any = context
        self._trace: Any = trace
        self._propagator: Any = TraceContextTextMapPropagator()

    def layer(self, application: WSGIApplication) -> WSGIApplication:
        """Wrap an application so that each request has a span, until its response begins."""

        def traced(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
            with self._of_request(environ) as span:

                def note(status: str, _: Headers) -> None:
                    self._note_answer(span, environ, int(status[:3]))

                return application(environ, noting(start_response, note))

        return traced

    def span(self, name: str) -> AbstractContextManager[object]:
        """A part of the request that this thread serves; nothing outside of requests."""
        if not self._trace.get_current_span().is_recording():
            return nullcontext()
        part: AbstractContextManager[object] = self._tracer.start_as_current_span(name)
        return part

    @contextmanager
    def _of_request(self, environ: WSGIEnvironment) -> Iterator[Any]:
        request: Context = environ[CONTEXT]
        parent = self._context.Context()
        if request.trace_id is not None:
            carrier = {"traceparent": environ["HTTP_TRACEPARENT"]}
            if "HTTP_TRACESTATE" in environ:
                carrier["tracestate"] = environ["HTTP_TRACESTATE"]
            parent = self._propagator.extract(carrier, parent)
        with self._tracer.start_as_current_span(
            environ["REQUEST_METHOD"],
            context=parent,
            kind=self._trace.SpanKind.SERVER,
            attributes=_attributes(environ, request),
        ) as span:
            request.trace_id = self._trace.format_trace_id(span.get_span_context().trace_id)
            yield span

    def _note_answer(self, span: Any, environ: WSGIEnvironment, status: int) -> None:
        span.set_attribute("http.response.status_code", status)
        route = environ.get(ROUTE, NO_ROUTE)
        if route != NO_ROUTE:
            span.set_attribute("http.route", route)
            span.update_name(f"{environ['REQUEST_METHOD']} {route}")
        if status >= 500:
            span.set_attribute("error.type", str(status))
            span.set_status(self._trace.StatusCode.ERROR)


def _attributes(environ: WSGIEnvironment, request: Context) -> dict[str, str]:
    """What is known when a request begins; the query is left out, as in the audit log."""
    attributes = {
        "http.request.method": environ["REQUEST_METHOD"],
        "url.scheme": environ["wsgi.url_scheme"],
        "url.path": masked(environ.get("SCRIPT_NAME", "") + environ["PATH_INFO"], request),
        "client.address": environ.get("REMOTE_ADDR"),
        "berth.request_id": request.request_id,
        "berth.global_request_id": request.global_request_id,
    }
    return {name: value for name, value in attributes.items() if value}


def _is_installed(*packages: str) -> bool:
    try:
        return all(importlib.util.find_spec(package) for package in packages)
    except ModuleNotFoundError:  # a parent of one of them
        return False


def _exporter(name: str) -> SpanExporter:
    if name == "console":
        from opentelemetry.sdk.trace.export import ConsoleSpanExporter

        return ConsoleSpanExporter()
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

    return OTLPSpanExporter()


def _tracer(exporter: SpanExporter, environment: Mapping[str, str]) -> Tracer:
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    attributes = {"service.version": berth.__version__}
    resources = environment.get("OTEL_RESOURCE_ATTRIBUTES", "")
    if "OTEL_SERVICE_NAME" not in environment and "service.name=" not in resources:
        attributes["service.name"] = "berth"
    provider = TracerProvider(resource=Resource.create(attributes))
    provider.add_span_processor(BatchSpanProcessor(exporter))
    return provider.get_tracer("berth", berth.__version__)
