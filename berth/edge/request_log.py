# SPDX-License-Identifier: Apache-2.0
"""The outermost of our own layers: gives each request an id and a context, and logs its outcome.

PERF bench.fixed_cost: the line was a third of what a request cost before its handler.

Source: spec/operations.md 4 and spec/rest-api.md 1.7.
"""

from __future__ import annotations

import logging
import os
import re
import string
import threading
import time
from collections.abc import Callable, Iterable
from random import Random
from time import perf_counter
from types import TracebackType
from typing import Any
from urllib.parse import quote
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

from berth.api.environ import CONTEXT
from berth.api.errors import MICROVERSION, REQUEST_ID
from berth.edge.context import Context
from berth.edge.log_lines import sole_handler
from berth.edge.secrets import credentials_in
from berth.edge.traceparent import trace_id_of

LOG = logging.getLogger("placement.requestlog")

REQUEST_ID_HEADER = "x-openstack-request-id"
_INBOUND_HEADER = "HTTP_X_OPENSTACK_REQUEST_ID"
_TRACEPARENT = "HTTP_TRACEPARENT"
#: The environ key from which oslo.context takes the caller's id of a chain of requests.
_GLOBAL_REQUEST_ID = "openstack.global_request_id"
_GLOBAL_ID_FORM = re.compile(r"req-[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}\Z")
#: For request ids; processes that fork do not share them.
_RANDOM = Random()
os.register_at_fork(after_in_child=_RANDOM.seed)

#: The characters of a query that are not quoted again, percent signs included.
_QUERY_AS_IT_CAME = string.punctuation

#: Matches a path in which nothing needs quoting.
_PLAIN_PATH = re.compile(r"[\w.~/-]*\Z", re.ASCII).match

#: The environ key that `berth.edge.probes` sets for a probe. Probes come every few seconds, so a
#: 2xx response is logged at DEBUG.
PROBE = "berth.probe"

#: The environ keys of when the request arrived, by `perf_counter`, and of the three digits of its
#: status, once the response has started.
STARTED = "berth.started"
STATUS = "berth.status"

_END = "%s %s status: %s len: %s microversion: %s%s"
#: What the last argument of `_END` begins with, if the request belongs to a trace.
_TRACE = " trace: "

#: The attribute of a record of `_END` with the duration of the request.
_SECONDS = "request_seconds"

Headers = list[tuple[str, str]]
ExceptionInfo = tuple[type[BaseException], BaseException, TracebackType] | tuple[None, None, None]


def noting(start_response: StartResponse, note: Callable[[str, Headers], None]) -> StartResponse:
    """`start_response`, after a note of the status line and the headers, which it may change."""

    def start(status: str, headers: Headers, exc_info: ExceptionInfo | None = None) -> Any:
        note(status, headers)
        if exc_info is None:
            return start_response(status, headers)
        return start_response(status, headers, exc_info)

    return start


def log_requests(application: WSGIApplication) -> WSGIApplication:
    """Wrap an application with request ids and the request log.

    It also leaves `STARTED` and `STATUS` for the layers inside.
    """
    log_outcome = OutcomeLog().log

    def layer(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        environ[STARTED] = perf_counter()
        request_id = environ[REQUEST_ID] = _new_request_id()
        # A server may omit an empty PATH_INFO; not every layer expects that.
        environ.setdefault("PATH_INFO", "")
        inbound = environ.get(_INBOUND_HEADER)
        if inbound is not None and _GLOBAL_ID_FORM.match(inbound):
            environ[_GLOBAL_REQUEST_ID] = inbound
        # Lines logged before or without `identify` must not show the caller of this thread's
        # previous request.
        context = Context.begin(request_id, environ.get(_GLOBAL_REQUEST_ID))
        environ[CONTEXT] = context
        # Before the layers of authentication, which remove or replace headers.
        context.credentials = credentials_in(environ)
        if _TRACEPARENT in environ:
            context.trace_id = trace_id_of(environ[_TRACEPARENT])
        if LOG.isEnabledFor(logging.DEBUG):
            LOG.debug("Starting request: %s %s", environ.get("REMOTE_ADDR"), _request_line(environ))

        # PERF bench.fixed_cost: `noting` would cost one call more.
        def start(status: str, headers: Headers, exc_info: ExceptionInfo | None = None) -> Any:
            environ[STATUS] = status[:3]
            headers.append((REQUEST_ID_HEADER, request_id))
            level = logging.DEBUG if PROBE in environ and status[0] == "2" else logging.INFO
            if LOG.isEnabledFor(level):
                log_outcome(level, environ, headers)
            if exc_info is None:
                return start_response(status, headers)
            return start_response(status, headers, exc_info)

        return application(environ, start)

    return layer


def _new_request_id() -> str:
    """`req-` and a random uuid of version 4."""
    # PERF bench.fixed_cost: `uuid.uuid4` takes four times as long, mostly to make the object, and
    # the system's random numbers twice as long. An id is no secret.
    digits = f"{_RANDOM.getrandbits(128):032x}"
    return f"req-{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-a{digits[17:20]}-{digits[20:]}"


def fields_of(record: logging.LogRecord) -> dict[str, Any]:
    """The fields of a line of the request log; empty for any other record.

    `seconds` is the time from the arrival of the request to the start of its response.
    """
    if record.msg is not _END or not isinstance(record.args, tuple):
        return {}
    client, line, status, length, version, trace = map(str, record.args)
    method, _, path = line.strip('"').partition(" ")
    return {
        "remote_addr": _unless_dash(client),
        "method": method,
        "path": path,
        "status": int(status),
        "length": None if length == "-" else int(length),
        "microversion": _unless_dash(version),
        "seconds": round(record.__dict__[_SECONDS], 6),
    } | ({"trace_id": trace.removeprefix(_TRACE)} if trace else {})


def _unless_dash(shown: str) -> str | None:
    return None if shown == "-" else shown


class OutcomeLog:
    """Logs outcomes as `LOG.log` would, which first walks the stack to find its caller."""

    def __init__(self) -> None:
        #: By level: the record from which others are copied.
        self._templates: dict[int, logging.LogRecord] = {}

    def log(self, level: int, environ: WSGIEnvironment, headers: list[tuple[str, str]]) -> None:
        """Log the outcome of a request whose response starts now."""
        outcome = _outcome(environ, headers)
        handler = sole_handler(LOG) if level == logging.INFO else None
        if handler is None or not handler.write_line(LOG.name, environ[CONTEXT], _END % outcome):
            LOG.handle(self.record(level, outcome, perf_counter() - environ[STARTED]))

    def record(self, level: int, outcome: tuple[object, ...], seconds: float) -> logging.LogRecord:
        """The record of an outcome (the arguments of `_END`) after so many seconds."""
        template = self._templates.get(level)
        # A fork changes the process, and a factory may set what it likes.
        if (
            template is None
            or template.process != os.getpid()
            or logging.getLogRecordFactory() is not logging.LogRecord
        ):
            template = LOG.makeRecord(LOG.name, level, __file__, 0, _END, (), None, "layer")
            self._templates[level] = template
        record = logging.LogRecord.__new__(logging.LogRecord)
        shown = record.__dict__ = template.__dict__.copy()
        shown["args"] = outcome
        shown["created"] = now = time.time()
        shown["msecs"] = int(now % 1 * 1000) + 0.0
        shown["relativeCreated"] += (now - template.created) * 1000
        shown["thread"] = threading.get_ident()
        shown["threadName"] = threading.current_thread().name
        shown[_SECONDS] = seconds
        return record


def _outcome(environ: WSGIEnvironment, headers: list[tuple[str, str]]) -> tuple[object, ...]:
    """The arguments of `_END`."""
    length = "-"
    for name, value in headers:
        if len(name) == len("content-length") and name.lower() == "content-length":
            length = value
            break
    minor = environ.get(MICROVERSION)
    version = "-" if minor is None else f"1.{minor}"
    client = environ.get("REMOTE_ADDR", "-")
    trace_id = environ[CONTEXT].trace_id
    trace = "" if trace_id is None else f"{_TRACE}{trace_id}"
    return client, _request_line(environ), environ[STATUS], length, version, trace


def printable_query(query: str) -> str:
    """A query string as it can stand in a line."""
    if query.isascii() and query.isprintable():
        return query
    return quote(query.encode("latin-1", "replace"), safe=_QUERY_AS_IT_CAME)


def _request_line(environ: WSGIEnvironment) -> str:
    path = environ.get("SCRIPT_NAME", "") + environ["PATH_INFO"]
    query = printable_query(environ.get("QUERY_STRING", ""))
    if not _PLAIN_PATH(path):
        path = quote(path.encode("latin-1", "replace"))
    uri = f"{path}?{query}" if query else path
    return f'"{environ["REQUEST_METHOD"]} {uri}"'
