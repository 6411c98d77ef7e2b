# SPDX-License-Identifier: Apache-2.0
"""The outermost layer of our own: it names each request, and logs how each one ended.

Source: spec/operations.md 4 and spec/rest-api.md 1.7.
"""

from __future__ import annotations

import logging
import os
import re
import string
import time
from collections.abc import Iterable
from types import TracebackType
from typing import Any
from urllib.parse import quote
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

from oslo_context.context import RequestContext

from berth.api.errors import MICROVERSION, REQUEST_ID

LOG = logging.getLogger("placement.requestlog")

REQUEST_ID_HEADER = "x-openstack-request-id"
_INBOUND_HEADER = "HTTP_X_OPENSTACK_REQUEST_ID"
#: Where oslo.context looks for the id that the caller gave to a chain of requests.
_GLOBAL_REQUEST_ID = "openstack.global_request_id"
_GLOBAL_ID_FORM = re.compile(r"req-[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}\Z")
#: What a query may have in it, the percent signs that quote the rest included.
_QUERY_AS_IT_CAME = string.punctuation

#: Where `berth.api.operations` notes that a probe asks: there is one every few seconds, so what is
#: answered 2xx is logged at DEBUG.
PROBE = "berth.probe"

_END = "%s %s status: %s len: %s microversion: %s"

#: The attribute of a record of `_END` that tells how long the request took.
_SECONDS = "request_seconds"

ExceptionInfo = tuple[type[BaseException], BaseException, TracebackType] | tuple[None, None, None]


def log_requests(application: WSGIApplication) -> WSGIApplication:
    """Wrap an application with request ids and the request log."""

    def layer(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        began = time.perf_counter()
        request_id = _new_request_id()
        environ[REQUEST_ID] = request_id
        # A server may leave out what would be empty; not every layer expects that.
        environ.setdefault("PATH_INFO", "")
        inbound = environ.get(_INBOUND_HEADER)
        if inbound is not None and _GLOBAL_ID_FORM.match(inbound):
            environ[_GLOBAL_REQUEST_ID] = inbound
        # What is logged before `identify` knows the caller, or instead of it, must not bear the
        # name of whom this thread served last.
        RequestContext(request_id=request_id, global_request_id=environ.get(_GLOBAL_REQUEST_ID))
        if LOG.isEnabledFor(logging.DEBUG):
            LOG.debug("Starting request: %s %s", environ.get("REMOTE_ADDR"), _request_line(environ))

        def start(
            status: str,
            headers: list[tuple[str, str]],
            exc_info: ExceptionInfo | None = None,
        ) -> Any:
            headers.append((REQUEST_ID_HEADER, request_id))
            level = logging.DEBUG if PROBE in environ and status[0] == "2" else logging.INFO
            if LOG.isEnabledFor(level):
                _log_end(level, environ, status, headers, began)
            if exc_info is None:
                return start_response(status, headers)
            return start_response(status, headers, exc_info)

        return application(environ, start)

    return layer


def _new_request_id() -> str:
    """`req-` and a random uuid of version 4."""
    # PERF bench, reads: `uuid.uuid4` takes three times as long, of which most is for the object.
    digits = os.urandom(16).hex()
    return f"req-{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-a{digits[17:20]}-{digits[20:]}"


def fields_of(record: logging.LogRecord) -> dict[str, Any]:
    """What a line of the request log says, each thing by itself; empty for any other record.

    `seconds` is the time from when the request was received until its answer began.
    """
    if record.msg is not _END or not isinstance(record.args, tuple):
        return {}
    client, line, status, length, version = map(str, record.args)
    method, _, path = line.strip('"').partition(" ")
    return {
        "remote_addr": _known(client),
        "method": method,
        "path": path,
        "status": int(status),
        "length": None if length == "-" else int(length),
        "microversion": _known(version),
        "seconds": round(record.__dict__[_SECONDS], 6),
    }


def _known(shown: str) -> str | None:
    return None if shown == "-" else shown


def _log_end(
    level: int,
    environ: WSGIEnvironment,
    status: str,
    headers: list[tuple[str, str]],
    began: float,
) -> None:
    length = next((value for name, value in headers if name.lower() == "content-length"), "-")
    minor = environ.get(MICROVERSION)
    version = "-" if minor is None else f"1.{minor}"
    client = environ.get("REMOTE_ADDR", "-")
    arguments = (client, _request_line(environ), status[:3], length, version)
    # LOG.log would first walk the stack to find out that it was called from here.
    record = LOG.makeRecord(LOG.name, level, __file__, 0, _END, arguments, None, "_log_end")
    record.__dict__[_SECONDS] = time.perf_counter() - began
    LOG.handle(record)


def _request_line(environ: WSGIEnvironment) -> str:
    path = environ.get("SCRIPT_NAME", "") + environ["PATH_INFO"]
    query = environ.get("QUERY_STRING", "")
    if not (query.isascii() and query.isprintable()):
        query = quote(query.encode("latin-1", "replace"), safe=_QUERY_AS_IT_CAME)
    uri = quote(path.encode("latin-1", "replace")) + (f"?{query}" if query else "")
    return f'"{environ["REQUEST_METHOD"]} {uri}"'
