# SPDX-License-Identifier: Apache-2.0
"""Health probes and metrics: whether the service is alive, whether it can serve, and `/metrics`.

These paths have no microversion. All of them are answered before admission control, because an
overloaded service is alive and must be able to say so. Probes need no token; they reveal nothing
about the fleet, and about the service only that it cannot serve and a short reason. Metrics need a
caller whom a policy rule allows, or a client in a network that is listed in the configuration.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Final
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

import msgspec
from oslo_config import cfg
from oslo_middleware.exceptions import ConfigInvalid
from oslo_middleware.healthcheck import Healthcheck

from berth.api import errors, media_types
from berth.api.answers import STATUS_LINES
from berth.api.environ import CONTEXT, ROUTE
from berth.api.errors import Refused
from berth.api.namespaces import METRICS as METRICS_RULE
from berth.api.namespaces import METRICS_PATH
from berth.api.policy import Policy
from berth.config import ConfigurationError, IPNetwork, Settings
from berth.edge.layers import READING, catch_crashes, only_reading
from berth.edge.readiness import NotReady, Readiness
from berth.edge.request_log import PROBE

if TYPE_CHECKING:
    from berth.edge.exposition import Exposition

HEALTHCHECK: Final = "/healthcheck"
LIVEZ: Final = "/livez"
READYZ: Final = "/readyz"
METRICS: Final = METRICS_PATH

#: Every path, with the policy rule that guards it; None: open to all.
PROBES: Final[dict[str, str | None]] = {
    HEALTHCHECK: None,
    LIVEZ: None,
    READYZ: None,
    METRICS: METRICS_RULE.name,
}

#: Headers in which a proxy names its client or itself.
_OF_PROXIES: Final = (
    "HTTP_FORWARDED",
    "HTTP_VIA",
    "HTTP_X_FORWARDED_FOR",
    "HTTP_X_FORWARDED_HOST",
    "HTTP_X_FORWARDED_PROTO",
    "HTTP_X_REAL_IP",
)

_OK: Final = {"status": "ok"}


def probes_of(
    settings: Settings, readiness: Readiness, exposition: Exposition, application: WSGIApplication
) -> dict[str, WSGIApplication]:
    """What answers requests that need no authentication, by path.

    Args:
        application: answers those of clients that the configuration excludes.

    Raises:
        ConfigurationError: the `[healthcheck]` group is invalid.
    """

    def scraped(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        if is_of_networks(
            environ,
            settings.metrics.networks,
            proxies_speak=settings.enable_proxy_headers_parsing,
        ):
            return _tell(exposition, environ, start_response)
        media_types.settle(environ)
        return application(environ, start_response)

    answers = {
        HEALTHCHECK: catch_crashes(healthcheck(settings.conf, application)),
        LIVEZ: _say_alive,
        READYZ: _say_whether_ready(readiness),
        METRICS: catch_crashes(scraped),
    }
    return {path: _as_probe(answer) for path, answer in answers.items()}


def _as_probe(answer: WSGIApplication) -> WSGIApplication:
    def probe(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        environ[ROUTE] = environ["PATH_INFO"]
        if environ["REQUEST_METHOD"] not in READING:
            return errors.send(only_reading(environ), environ, start_response)
        environ[PROBE] = True
        return answer(environ, start_response)

    return probe


def guarded_metrics(policy: Policy, exposition: Exposition) -> WSGIApplication:
    """Returns the metrics to callers whom the policy allows."""

    def answer(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        try:
            policy.check(METRICS_RULE.name, environ[CONTEXT])
        except Refused as refused:
            return errors.send(refused, environ, start_response)
        return _tell(exposition, environ, start_response)

    return answer


def is_of_networks(
    environ: WSGIEnvironment, networks: Iterable[IPNetwork], *, proxies_speak: bool
) -> bool:
    """Whether a request certainly comes from one of these networks.

    The address of a request through a proxy is the one that the proxy names; it is unknown if the
    configuration does not trust proxy headers.

    Args:
        proxies_speak: proxy headers are trusted, and REMOTE_ADDR has been set from them.
    """
    # Even an empty header counts: a client can send one to hide the value that the proxy added.
    is_of_proxy = any(name in environ for name in _OF_PROXIES)
    if is_of_proxy and not (proxies_speak and _names_client(environ)):
        return False
    try:
        address = ipaddress.ip_address(environ.get("REMOTE_ADDR", ""))
    except ValueError:
        return False
    # A dual-stack socket shows IPv4 addresses as mapped ones.
    mapped = getattr(address, "ipv4_mapped", None)
    return any((mapped or address) in network for network in networks)


def _names_client(environ: WSGIEnvironment) -> bool:
    """Whether oslo.middleware found the client's address in the proxy headers."""
    forwarded = environ.get("HTTP_FORWARDED")
    if not forwarded:
        return bool(environ.get("HTTP_X_FORWARDED_FOR"))
    pairs = (pair.partition("=") for pair in forwarded.partition(",")[0].split(";"))
    return any(name.strip().lower() == "for" and value.strip() for name, _, value in pairs)


def healthcheck(
    conf: cfg.ConfigOpts, application: WSGIApplication | None = None
) -> WSGIApplication:
    """oslo.middleware's health check, as the `[healthcheck]` group configures it.

    Args:
        application: answers clients that the group excludes; None if there are none.

    Raises:
        ConfigurationError: the group names an unknown backend or an invalid network.
    """
    backends = conf.healthcheck.backends
    # Looked up only if needed: this reads a file of every installed distribution.
    available = entry_points(group=Healthcheck.NAMESPACE).names if backends else ()
    for backend in backends:
        if backend not in available:
            raise ConfigurationError(
                f"[healthcheck]backends: there is no {backend}; "
                f"available: {', '.join(sorted(available))}"
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
    return _answer(200, _OK, environ, start_response)


def _say_whether_ready(readiness: Readiness) -> WSGIApplication:
    def answer(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        try:
            readiness.ensure_ready()
        except NotReady as error:
            unavailable = {"status": "unavailable", "reason": str(error)}
            return _answer(503, unavailable, environ, start_response)
        return _answer(200, _OK, environ, start_response)

    return answer


def _tell(
    exposition: Exposition, environ: WSGIEnvironment, start_response: StartResponse
) -> Iterable[bytes]:
    content_type, content = exposition.render(environ.get("HTTP_ACCEPT"))
    return _send(STATUS_LINES[200], content_type, content, environ, start_response)


def _answer(
    status: int, body: dict[str, str], environ: WSGIEnvironment, start_response: StartResponse
) -> Iterable[bytes]:
    content = msgspec.json.encode(body)
    return _send(STATUS_LINES[status], media_types.JSON, content, environ, start_response)


def _send(
    status: str,
    content_type: str,
    content: bytes,
    environ: WSGIEnvironment,
    start_response: StartResponse,
) -> Iterable[bytes]:
    start_response(
        status,
        [
            ("content-type", content_type),
            ("content-length", str(len(content))),
            ("cache-control", "no-store"),
        ],
    )
    return [] if environ["REQUEST_METHOD"] == "HEAD" else [content]
