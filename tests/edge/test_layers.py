# SPDX-License-Identifier: Apache-2.0
"""The layers around the application: crashes, unavailable parts, the request log, JSON."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from wsgiref.types import StartResponse, WSGIEnvironment

import pytest
from oslo_context.context import RequestContext, get_current

from berth.api.errors import MICROVERSION, refusal_of
from berth.edge.auth.identity import identify
from berth.edge.auth.layers import noauth2
from berth.edge.fault_logs import AGAIN_S, OutageLog
from berth.edge.layers import catch_crashes, front
from berth.model.errors import DatabaseUnavailable, IndexUnavailable
from tests.client import Client


def failing(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
    """An application that crashes after the microversion is negotiated."""
    environ[MICROVERSION] = 39
    raise RuntimeError("the <b>mistake</b>\nof somebody")


def test_a_fault_is_logged_and_told(caplog: pytest.LogCaptureFixture) -> None:
    """500 with the exception's text on one line, without tags; only the log has the traceback."""
    answer = Client.of(front(catch_crashes(failing))).get("/anything")
    assert answer.status == 500
    assert answer.detail.endswith("\n\n the mistake of somebody  ")
    assert answer.code == "placement.undefined_code"
    assert answer.error["request_id"] == answer.headers["x-openstack-request-id"]
    assert "openstack-api-version" not in answer.headers
    assert "Traceback" not in answer.text
    assert any(record.exc_info for record in caplog.records)
    head = Client.of(front(catch_crashes(failing))).request("HEAD", "/anything")
    assert (head.status, head.body) == (500, b"")


def test_callers_are_not_told_which_database_there_is(caplog: pytest.LogCaptureFixture) -> None:
    """Neither host, nor port, nor the driver's message: only the log has them, once."""
    said = 'connection to server at "db7.example.org" (10.0.0.7), port 5432 failed: refused'
    database_error = DatabaseUnavailable(f"The database cannot be used at the moment: {said}")
    refused = refusal_of(database_error, "GET /traits")
    assert (refused.status, dict(refused.headers)) == (503, {"retry-after": "1"})
    assert refused.message == "The database cannot be used at the moment; try again"
    index_error = IndexUnavailable()
    index_error.__cause__ = database_error
    now = [0.0]
    outages = OutageLog(clock=lambda: now[0])
    for _ in range(1000):
        outages.note(database_error, "req-1")
        outages.note(index_error, "req-2")
    now[0] += AGAIN_S
    outages.note(index_error, "req-3")
    assert caplog.messages == [
        f"Request req-1 was answered 503: The database cannot be used at the moment: {said}",
        f"Request req-3 was answered 503: The database cannot be used at the moment: {said}"
        "; requests before it that are not logged: 1999",
    ]


@pytest.mark.parametrize(
    ("target", "shown"),
    [
        ("/a%20b?c=%20", "/placement/a%20b?c=%20"),
        # Some servers pass on what others refuse; it must not change lines or terminals.
        ("/a?b=%20&c=\r\x1b[2J\xe9", "/placement/a?b=%20&c=%0D%1B[2J%E9"),
    ],
)
def test_the_request_log_tells_each_end(
    caplog: pytest.LogCaptureFixture, target: str, shown: str
) -> None:
    """One line at INFO, in the form that log processors expect."""

    def application(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        environ[MICROVERSION] = 7
        start_response("204 No Content", [("Content-Length", "0")])
        return []

    with caplog.at_level(logging.INFO, logger="placement.requestlog"):
        Client.of(front(application), script_name="/placement").get(target)
    (line,) = caplog.messages
    assert line.endswith(f'"GET {shown}" status: 204 len: 0 microversion: 1.7')


def test_a_log_line_never_bears_the_name_of_another_request(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A thread that has served a request logs a later refusal with only that request's id."""
    contexts: list[RequestContext | None] = []
    guarded = front(noauth2(identify(failing)))

    class Listener(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            contexts.append(get_current())

    listener = Listener()
    logger = logging.getLogger("placement.requestlog")
    logger.addHandler(listener)
    try:
        with caplog.at_level(logging.INFO, logger=logger.name):
            Client.of(front(noauth2(identify(catch_crashes(failing))))).get("/a")
            answer = Client.of(guarded).acting_as({}).get("/a")
    finally:
        logger.removeHandler(listener)
    served, refused = contexts
    assert served is not None and served.user_id == "admin"
    assert answer.status == 401
    assert refused is not None and refused.user_id is None
    assert refused.request_id == answer.headers["x-openstack-request-id"]
