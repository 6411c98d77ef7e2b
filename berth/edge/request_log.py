# SPDX-License-Identifier: Apache-2.0
"""The request log: a line for each request, with its outcome.

PERF bench.fixed_cost: the line was a third of what a request cost before its handler.

Source: spec/operations.md 4 and spec/rest-api.md 1.7.
"""

from __future__ import annotations

import logging
import re
import string
from collections.abc import Callable
from time import perf_counter
from types import TracebackType
from typing import Any, Final
from urllib.parse import quote
from wsgiref.types import StartResponse, WSGIEnvironment

from berth.api.environ import CONTEXT
from berth.api.errors import MICROVERSION
from berth.edge.auth.identity import Context
from berth.edge.log_lines import write_line

REQUEST_LOG = logging.getLogger("placement.requestlog")

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


#: The form of a `traceparent` header: version, trace id, parent id and flags; later versions may
#: append something.
_FORM: Final = re.compile(
    r"(?!ff)(?P<version>[0-9a-f]{2})-(?!0{32})(?P<trace>[0-9a-f]{32})-(?!0{16})[0-9a-f]{16}-"
    r"[0-9a-f]{2}(?P<more>-.*)?"
)


def noting(start_response: StartResponse, note: Callable[[str, Headers], None]) -> StartResponse:
    """`start_response`, after a note of the status line and the headers, which it may change."""

    def start(status: str, headers: Headers, exc_info: ExceptionInfo | None = None) -> Any:
        note(status, headers)
        if exc_info is None:
            return start_response(status, headers)
        return start_response(status, headers, exc_info)

    return start


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


def log_arrival(environ: WSGIEnvironment) -> None:
    """Log, at level DEBUG, that a request has come."""
    REQUEST_LOG.debug("Starting request: %s %s", environ.get("REMOTE_ADDR"), _request_line(environ))


def log_outcome(environ: WSGIEnvironment, headers: Headers) -> None:
    """Log the outcome of a request whose response starts now, with these headers."""
    status = environ[STATUS]
    level = logging.DEBUG if PROBE in environ and status[0] == "2" else logging.INFO
    if not REQUEST_LOG.isEnabledFor(level):
        return
    length = "-"
    # PERF bench.fixed_cost: it is one of the last.
    for name, value in reversed(headers):
        if name.lower() == "content-length":
            length = value
            break
    minor = environ.get(MICROVERSION)
    context: Context = environ[CONTEXT]
    outcome = (
        environ.get("REMOTE_ADDR", "-"),
        _request_line(environ),
        status,
        length,
        "-" if minor is None else f"1.{minor}",
        "" if context.trace_id is None else f"{_TRACE}{context.trace_id}",
    )
    if level == logging.DEBUG or not write_line(REQUEST_LOG, context, _END % outcome):
        REQUEST_LOG.handle(record_of(level, outcome, perf_counter() - environ[STARTED]))


def record_of(level: int, outcome: tuple[object, ...], seconds: float) -> logging.LogRecord:
    """The record of an outcome (the arguments of `_END`) after a number of seconds.

    It is made here because `Logger.log` would first walk the stack to find its caller.
    """
    record = REQUEST_LOG.makeRecord(
        REQUEST_LOG.name, level, __file__, 0, _END, outcome, None, "layer"
    )
    record.__dict__[_SECONDS] = seconds
    return record


def printable_query(query: str) -> str:
    """A query string as it can stand in a line."""
    if query.isascii() and query.isprintable():
        return query
    return quote(query.encode("latin-1", "replace"), safe=_QUERY_AS_IT_CAME)


def _request_line(environ: WSGIEnvironment) -> str:
    path = environ.get("SCRIPT_NAME", "") + environ["PATH_INFO"]
    if not _PLAIN_PATH(path):
        path = quote(path.encode("latin-1", "replace"))
    query = environ.get("QUERY_STRING")
    uri = f"{path}?{printable_query(query)}" if query else path
    return f'"{environ["REQUEST_METHOD"]} {uri}"'


def trace_id_of(header: str) -> str | None:
    """The trace id of a `traceparent` header; None if it is invalid, and must be ignored.

    Source: W3C Trace Context, level 1 (https://www.w3.org/TR/trace-context-1/), sections 3.2 and 4.
    """
    form = _FORM.fullmatch(header.strip(" \t"))
    if form is None or (form["version"] == "00" and form["more"] is not None):
        return None
    return form["trace"]
