# SPDX-License-Identifier: Apache-2.0
"""What operators' tools ask beside the API: whether the service lives, and can serve.

These paths have no microversion. Probes are answered without a token and before the admission: an
overloaded service is alive, and must be able to say so. They tell nothing of the fleet, and of the
service no more than that it cannot serve, and why in a few words.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Iterable
from importlib.metadata import entry_points
from typing import Final
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

import msgspec
from oslo_config import cfg
from oslo_middleware.exceptions import ConfigInvalid
from oslo_middleware.healthcheck import Healthcheck

from berth.api import errors, media_types
from berth.api.errors import Refused
from berth.api.faults import catch_faults
from berth.api.readiness import NotReady, Readiness
from berth.api.rendering import STATUS_LINES
from berth.api.request_log import PROBE
from berth.config import ConfigurationError

HEALTHCHECK: Final = "/healthcheck"
LIVEZ: Final = "/livez"
READYZ: Final = "/readyz"

#: Every path of operations, with the policy rule that guards it; None: everybody may ask.
OPERATIONS: Final[dict[str, str | None]] = {HEALTHCHECK: None, LIVEZ: None, READYZ: None}

_METHODS: Final = ("GET", "HEAD")

_OK: Final = {"status": "ok"}


def answer_probes(
    conf: cfg.ConfigOpts, readiness: Readiness
) -> Callable[[WSGIApplication], WSGIApplication]:
    """A layer that answers probes, and passes on everything else, with its `Accept` settled.

    Raises:
        ConfigurationError: the `[healthcheck]` group asks for what cannot be.
    """

    def wrap(application: WSGIApplication) -> WSGIApplication:
        answers = {
            HEALTHCHECK: catch_faults(healthcheck(conf, application)),
            LIVEZ: _say_alive,
            READYZ: _say_whether_ready(readiness),
        }

        def layer(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
            answer = answers.get(environ["PATH_INFO"])
            if answer is None:
                media_types.settle(environ)
                return application(environ, start_response)
            if environ["REQUEST_METHOD"] not in _METHODS:
                return _refuse_method(environ, start_response)
            environ[PROBE] = True
            return answer(environ, start_response)

        return layer

    return wrap


def healthcheck(
    conf: cfg.ConfigOpts, application: WSGIApplication | None = None
) -> WSGIApplication:
    """oslo.middleware's health check, as the `[healthcheck]` group has it.

    Args:
        application: what answers those to whom the group has it say nothing; none: nobody is going
            to ask.

    Raises:
        ConfigurationError: a backend or a network that does not exist.
    """
    known = entry_points(group=Healthcheck.NAMESPACE).names
    for backend in conf.healthcheck.backends:
        if backend not in known:
            raise ConfigurationError(
                f"[healthcheck]backends names {backend}, and there are {', '.join(sorted(known))}"
            )
    for text in conf.healthcheck.allowed_source_ranges:
        try:
            ipaddress.ip_network(text)
        except ValueError as error:
            raise ConfigurationError(f"[healthcheck]allowed_source_ranges: {error}") from error
    try:
        checked: WSGIApplication = Healthcheck(application, conf)
    except ConfigInvalid as error:
        raise ConfigurationError(f"[healthcheck]backends: {error}") from error
    return checked


def _say_alive(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
    return _send(200, _OK, environ, start_response)


def _say_whether_ready(readiness: Readiness) -> WSGIApplication:
    def answer(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        try:
            readiness.snapshot()
        except NotReady as error:
            unavailable = {"status": "unavailable", "reason": str(error)}
            return _send(503, unavailable, environ, start_response)
        return _send(200, _OK, environ, start_response)

    return answer


def _send(
    status: int, body: dict[str, str], environ: WSGIEnvironment, start_response: StartResponse
) -> Iterable[bytes]:
    content = msgspec.json.encode(body)
    start_response(
        STATUS_LINES[status],
        [
            ("content-type", media_types.JSON),
            ("content-length", str(len(content))),
            ("cache-control", "no-store"),
        ],
    )
    return [] if environ["REQUEST_METHOD"] == "HEAD" else [content]


def _refuse_method(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
    refused = Refused(
        405,
        f"The method {environ['REQUEST_METHOD']} is not allowed for this resource.",
        headers={"allow": ", ".join(_METHODS)},
    )
    return errors.send(refused, errors.render(refused, environ), environ, start_response)
