# SPDX-License-Identifier: Apache-2.0
"""Spans of requests, searches and commits, in memory and at a receiver on loopback."""

from __future__ import annotations

import gzip
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from berth.edge import app, tracing
from berth.edge.tracing import Tracing, exporter_name, start_tracing
from berth.hosts.service import Service
from berth.model.errors import DatabaseUnavailable
from tests.api import configured
from tests.api.worlds import new_uuid
from tests.client import Client

pytest.importorskip("opentelemetry.sdk")

TRACE, PARENT = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
TRACEPARENT = f"00-{TRACE}-{PARENT}-01"
HTTP = "opentelemetry.exporter.otlp.proto.http"


@pytest.fixture
def exporter() -> Any:
    """Keeps spans in memory."""
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    return InMemorySpanExporter()


@pytest.fixture
def tracer(exporter: Any) -> Any:
    """A tracer whose spans are exported at once."""
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor

    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    return provider.get_tracer("test")


@pytest.fixture
def client(tmp_path: Path, tracer: Any, monkeypatch: pytest.MonkeyPatch) -> Client:
    """A client of a traced service with a provider."""
    monkeypatch.setattr(app, "start_tracing", lambda _: Tracing(tracer))
    return configured.serve(tmp_path)


def test_a_request_has_a_span(client: Client, exporter: Any) -> None:
    """Named by its route, below the caller's span, with the attributes of the conventions."""
    uuid = new_uuid()
    headers = {
        "traceparent": TRACEPARENT,
        "tracestate": "vendor=1",
        "x-openstack-request-id": f"req-{uuid}",
    }
    response = client.get(f"/resource_providers/{uuid}?secret=1", headers=headers)
    assert response.status == 404
    (span,) = exporter.get_finished_spans()
    assert (span.name, span.kind.name) == ("GET /resource_providers/{uuid}", "SERVER")
    assert (span.context.trace_id, span.parent.span_id) == (int(TRACE, 16), int(PARENT, 16))
    assert span.context.trace_state.get("vendor") == "1"
    assert dict(span.attributes) == {
        "http.request.method": "GET",
        "http.route": "/resource_providers/{uuid}",
        "http.response.status_code": 404,
        "url.scheme": "http",
        "url.path": f"/resource_providers/{uuid}",
        "client.address": "127.0.0.1",
        "berth.request_id": response.headers["x-openstack-request-id"],
        "berth.global_request_id": f"req-{uuid}",
    }
    assert span.status.status_code.name == "UNSET"


def test_writes_and_searches_have_children(client: Client, exporter: Any) -> None:
    """Each in the trace of its request, also in the next one on the same thread."""
    client.post(
        "/resource_providers", json={"name": "traced"}, headers={"traceparent": TRACEPARENT}
    )
    commit, request = exporter.get_finished_spans()
    assert (commit.name, request.name) == ("commit", "POST /resource_providers")
    assert commit.parent.span_id == request.context.span_id
    assert commit.context.trace_id == request.context.trace_id == int(TRACE, 16)
    exporter.clear()
    for _ in range(2):
        assert client.get("/allocation_candidates?resources=VCPU:1").status == 200
    first, *_ = spans = exporter.get_finished_spans()
    assert [span.name for span in spans] == ["search", "GET /allocation_candidates"] * 2
    assert first.context.trace_id != int(TRACE, 16)
    assert len({span.context.trace_id for span in spans}) == 2
    assert all(spans[n].parent.span_id == spans[n + 1].context.span_id for n in (0, 2))


def test_the_log_has_the_trace_of_the_span(
    client: Client, exporter: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """Also if the caller has sent none, or an invalid one."""
    with caplog.at_level("INFO", "placement.requestlog"):
        client.get("/traits", headers={"traceparent": f"{TRACEPARENT}-"})
    (span,) = exporter.get_finished_spans()
    assert span.parent is None
    assert caplog.messages[-1].endswith(f" trace: {span.context.trace_id:032x}")


def test_failures_are_errors_and_probes_have_no_span(
    client: Client, exporter: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """5xx only; an unknown path has no route."""

    def fail(*_: object, **__: object) -> None:
        raise DatabaseUnavailable("gone")

    for path in ("/livez", "/readyz", "/healthcheck"):
        client.get(path)
    assert [span.name for span in exporter.get_finished_spans()] == []
    client.get("/nowhere")
    monkeypatch.setattr("berth.store.traits.list_traits", fail)
    client.get("/traits")
    unknown, failed = exporter.get_finished_spans()
    assert (unknown.name, unknown.status.status_code.name) == ("GET", "UNSET")
    assert "http.route" not in unknown.attributes
    assert failed.status.status_code.name == "ERROR"
    assert failed.attributes["error.type"] == "503"


def test_the_client_passes_its_trace_on(tracer: Any) -> None:
    """`berth.hosts.service`, which the agent and `berth.client` use; nothing without a span."""
    sent: list[dict[str, Any]] = []

    def request(*_: object, **options: Any) -> Any:
        sent.append(options.get("headers") or {})
        return SimpleNamespace(status_code=200, content=b"{}", headers={}, json=dict)

    transport: Any = SimpleNamespace(request=request)
    service = Service(transport)
    service.get("/")
    with tracer.start_as_current_span("program") as span:
        service.get("/")
    context = span.get_span_context()
    silent, traced = sent
    assert silent == {}
    begin = f"00-{context.trace_id:032x}-{context.span_id:016x}-"
    assert traced["traceparent"].startswith(begin)


class Receiver(HTTPServer):
    """An OTLP receiver."""

    def __init__(self) -> None:
        self.received: list[Any] = []
        super().__init__(("127.0.0.1", 0), Handler)


class Handler(BaseHTTPRequestHandler):
    """Decodes what comes to /v1/traces."""

    server: Receiver

    def do_POST(self) -> None:
        """Take spans."""
        from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
            ExportTraceServiceRequest,
        )

        body = self.rfile.read(int(self.headers["content-length"]))
        if self.headers.get("content-encoding") == "gzip":
            body = gzip.decompress(body)
        assert self.path == "/v1/traces"
        self.server.received.append(ExportTraceServiceRequest.FromString(body))
        self.send_response(200)
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Nothing."""


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    """A running receiver."""
    with Receiver() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.mark.parametrize(
    ("variables", "name"),
    [
        ({}, "berth"),
        ({"OTEL_SERVICE_NAME": "berth-east"}, "berth-east"),
        ({"OTEL_RESOURCE_ATTRIBUTES": "service.name=berth-west"}, "berth-west"),
    ],
)
def test_spans_arrive_at_a_receiver(
    receiver: Receiver,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    variables: dict[str, str],
    name: str,
) -> None:
    """With the variables of the SDK alone; the service is named, as the operator likes."""
    from opentelemetry.sdk.trace import TracerProvider

    providers: list[TracerProvider] = []
    get_tracer = TracerProvider.get_tracer

    def noted(self: TracerProvider, *args: Any) -> Any:
        providers.append(self)
        return get_tracer(self, *args)

    monkeypatch.setattr(TracerProvider, "get_tracer", noted)
    endpoint = f"http://127.0.0.1:{receiver.server_port}"
    for variable, value in (variables | {"OTEL_EXPORTER_OTLP_ENDPOINT": endpoint}).items():
        monkeypatch.setenv(variable, value)
    client = configured.serve(tmp_path)
    client.get("/allocation_candidates?resources=VCPU:1")
    (provider,) = providers
    assert provider.force_flush()
    provider.shutdown()
    (exported,) = receiver.received
    (of_resource,) = exported.resource_spans
    resource = {each.key: each.value.string_value for each in of_resource.resource.attributes}
    assert resource["service.name"] == name
    (of_scope,) = of_resource.scope_spans
    assert {span.name for span in of_scope.spans} == {"search", "GET /allocation_candidates"}


@pytest.mark.parametrize(
    ("environment", "name"),
    [
        ({}, None),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://x"}, "otlp"),
        ({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://x"}, "otlp"),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": ""}, None),
        ({"OTEL_TRACES_EXPORTER": "otlp"}, "otlp"),
        ({"OTEL_TRACES_EXPORTER": "console"}, "console"),
        ({"OTEL_TRACES_EXPORTER": "none", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://x"}, None),
        ({"OTEL_TRACES_EXPORTER": "otlp", "OTEL_SDK_DISABLED": "TRUE"}, None),
        ({"OTEL_SERVICE_NAME": "berth"}, None),
    ],
)
def test_the_environment_names_an_exporter(environment: dict[str, str], name: str | None) -> None:
    """Otherwise there are no spans."""
    assert exporter_name(environment) == name


def test_what_cannot_be_sent_is_said(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """An exporter that is not supported, or not installed; the service serves all the same."""
    assert start_tracing({}) is None
    assert start_tracing({"OTEL_TRACES_EXPORTER": "zipkin"}) is None
    monkeypatch.setattr(tracing, "_is_installed", lambda *_: False)
    assert start_tracing({"OTEL_TRACES_EXPORTER": "otlp"}) is None
    unsupported, absent = caplog.messages
    assert "OTEL_TRACES_EXPORTER=zipkin" in unsupported
    assert "pip install 'berthd[otel]'" in absent


def test_nothing_is_imported_without_an_exporter(tmp_path: Path) -> None:
    """Neither the exporter nor our use of the SDK, which oslo.middleware itself imports."""
    code = (
        "import sys; from pathlib import Path; from tests.api import configured\n"
        "configured.serve(Path(sys.argv[1])).get('/allocation_candidates?resources=VCPU:1')\n"
        "loaded = {name for name in sys.modules if name.startswith('opentelemetry.')}\n"
        "assert not {name for name in loaded if 'exporter.' in name}, loaded"
    )
    subprocess.run([sys.executable, "-c", code, tmp_path], check=True)
