# SPDX-License-Identifier: Apache-2.0
"""The small layers around the application: the front, through which every request comes, the
headers of a proxy, and the answer to a crash; and the errors that a layer answers itself."""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from random import Random
from time import perf_counter
from types import MappingProxyType
from typing import Any, Final
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

from msgspec import Struct
from oslo_config import cfg
from oslo_middleware.http_proxy_to_wsgi import HTTPProxyToWSGI

from berth.api import errors, media_types
from berth.api.environ import CONTEXT, MATCH, NO_ROUTE, ROUTE
from berth.api.errors import MICROVERSION, Refused
from berth.api.microversion import negotiate
from berth.api.paths import Match, match_of
from berth.edge.auth.identity import Context
from berth.edge.request_log import (
    REQUEST_LOG,
    STARTED,
    STATUS,
    ExceptionInfo,
    Headers,
    log_arrival,
    log_outcome,
    trace_id_of,
)
from berth.edge.secrets import credentials_in

LOG = logging.getLogger(__name__)

#: The methods of paths that can only be read.
READING: Final = ("GET", "HEAD")

_REQUEST_ID_HEADER: Final = "x-openstack-request-id"
_INBOUND_HEADER: Final = "HTTP_X_OPENSTACK_REQUEST_ID"
_TRACEPARENT: Final = "HTTP_TRACEPARENT"
#: The environ key from which oslo.context takes the caller's id of a chain of requests.
_GLOBAL_REQUEST_ID: Final = "openstack.global_request_id"
_GLOBAL_ID_FORM: Final = re.compile(r"req-[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}\Z")
#: For request ids; processes that fork do not share them.
_RANDOM: Final = Random()
os.register_at_fork(after_in_child=_RANDOM.seed)

#: Takes the method, the template of the path, the three digits of the status, the minor number of
#: the microversion, and the seconds that the answer took.
Answered = Callable[[str, str, str, int | None, float], None]


def front(
    application: WSGIApplication,
    *,
    open_to_all: Callable[[str], WSGIApplication | None] = lambda path: None,
    answered: Answered = lambda *_: None,
) -> WSGIApplication:
    """The outermost of our own layers: finds out what a request is, gives it an id and a context,
    answers what needs no authentication, and logs the outcome.

    It leaves the match of the path, the context, `STARTED` and `STATUS` for the layers inside, and
    gives each response the headers of its namespace.

    Args:
        application: the API.
        open_to_all: what answers at a path that is not of the API; None: the application.
        answered: called after every request, even one that raises.
    """

    def layer(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        environ[STARTED] = perf_counter()
        # A server may omit an empty PATH_INFO; not every layer expects that.
        path: str = environ.setdefault("PATH_INFO", "")
        match: Match = environ.get(MATCH) or match_of(environ)
        route = match.route
        inbound = environ.get(_INBOUND_HEADER)
        if inbound is not None and _GLOBAL_ID_FORM.match(inbound):
            environ[_GLOBAL_REQUEST_ID] = inbound
        request_id = _new_request_id()
        # Lines logged before or without `identify` must not show the caller of this thread's
        # previous request.
        context = Context.begin(request_id, environ.get(_GLOBAL_REQUEST_ID))
        environ[CONTEXT] = context
        # Before the layers of authentication, which remove or replace headers.
        context.credentials = credentials_in(environ)
        if _TRACEPARENT in environ:
            context.trace_id = trace_id_of(environ[_TRACEPARENT])
        if REQUEST_LOG.isEnabledFor(logging.DEBUG):
            log_arrival(environ)

        # PERF bench.fixed_cost: `noting` would cost one call more.
        def start(status: str, headers: Headers, exc_info: ExceptionInfo | None = None) -> Any:
            environ[STATUS] = status[:3]
            headers += route.namespace.headers.items()
            headers.append((_REQUEST_ID_HEADER, request_id))
            log_outcome(environ, headers)
            if exc_info is None:
                return start_response(status, headers)
            return start_response(status, headers, exc_info)

        try:
            # PERF bench.fixed_cost: nearly all requests are for the API.
            if not route.methods and (other := open_to_all(path)) is not None:
                return other(environ, start)
            media_types.settle(environ)
            return application(environ, start)
        finally:
            answered(
                environ["REQUEST_METHOD"],
                environ.get(ROUTE, NO_ROUTE),
                environ.get(STATUS, "500"),
                environ.get(MICROVERSION),
                perf_counter() - environ[STARTED],
            )

    return layer


def _new_request_id() -> str:
    """`req-` and a random uuid of version 4."""
    # PERF bench.fixed_cost: `uuid.uuid4` takes four times as long, mostly to make the object, and
    # the system's random numbers twice as long. An id is no secret.
    digits = _RANDOM.getrandbits(128).to_bytes(16, "big").hex()
    return f"req-{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-a{digits[17:20]}-{digits[20:]}"


def refuse(
    refused: Refused, environ: WSGIEnvironment, start_response: StartResponse
) -> Iterable[bytes]:
    """Answer with an error, and with its code if the requested microversion has codes."""
    with suppress(Refused):  # an unsupported version: answered as for the oldest
        environ[MICROVERSION] = negotiate(environ.get("HTTP_OPENSTACK_API_VERSION"))
    return errors.send(refused, environ, start_response)


def only_reading(
    environ: WSGIEnvironment, headers: Mapping[str, str] = MappingProxyType({})
) -> Refused:
    """The refusal of a method that is not one of `READING`."""
    return Refused(
        405,
        f"The method {environ['REQUEST_METHOD']} is not allowed for this resource.",
        headers={"allow": ", ".join(READING), **headers},
    )


def catch_crashes(application: WSGIApplication) -> WSGIApplication:
    """Wrap an application so that it always answers: an unexpected exception is logged with its
    traceback, and becomes a 500."""

    def layer(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        try:
            return application(environ, start_response)
        except Exception as fault:
            trace_id = environ[CONTEXT].trace_id
            LOG.exception(
                "Unexpected error in request %s%s",
                errors.request_id_of(environ),
                "" if trace_id is None else f" of trace {trace_id}",
            )
            return errors.send(Refused(500, str(fault)), environ, start_response)

    return layer


class _Request(Struct, frozen=True):
    """All of a request that oslo.middleware looks at here."""

    environ: WSGIEnvironment


class _Believing(HTTPProxyToWSGI):
    """Its option has been read: whether to parse the headers at all."""

    def _conf_get(self, key: str, group: str = "oslo_middleware") -> bool:
        return True


def believe_proxies(application: WSGIApplication, conf: cfg.ConfigOpts) -> WSGIApplication:
    """Wrap an application so that it believes the headers of a proxy: scheme, host, client, prefix.

    What the headers mean is oslo.middleware's. PERF bench.fixed_cost: as a layer, it makes a
    request and a response of WebOb from each, which takes 25 microseconds.
    """
    middleware = _Believing(None, conf)

    def layer(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        request: Any = _Request(environ)
        middleware.process_request(request)
        return application(environ, start_response)

    return layer
