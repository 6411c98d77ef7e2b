# SPDX-License-Identifier: Apache-2.0
"""`[api]auth_strategy = keystone`: callers send Keystone tokens."""

from __future__ import annotations

from collections.abc import Iterable
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

from oslo_config import cfg

from berth.api.errors import RETRY_AFTER_S, Refused
from berth.api.paths import is_public
from berth.edge.crash_guard import catch_crashes
from berth.edge.in_front import refuse

#: The environ keys of the middleware's results for both tokens, and of the system scope.
_TOKENS = "keystone.token_auth"
_SYSTEM_SCOPE = "HTTP_OPENSTACK_SYSTEM_SCOPE"


class KeystoneUnavailable(Exception):
    """Keystone cannot say whether a token is valid."""

    def __init__(self, reason: str, *, is_refusal: bool = False) -> None:
        super().__init__(reason)
        #: Keystone answers, but refuses to validate tokens until the configuration is changed.
        self.is_refusal = is_refusal


def keystone(application: WSGIApplication, conf: cfg.ConfigOpts) -> WSGIApplication:
    """Let keystonemiddleware validate tokens, everywhere but on the public paths.

    Raises:
        ConfigurationError: [keystone_authtoken] is incomplete or invalid.
    """
    # Imported here: it is slow to load, and only this strategy needs it.
    from berth.edge.auth.keystone_server import open_middleware

    middleware, _ = open_middleware(_keep_scope(application), conf)

    def guarded(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        try:
            return middleware(environ, start_response)
        except KeystoneUnavailable:
            # The reason is logged only: callers need not know how the service reaches Keystone.
            refused = Refused(
                503,
                "Keystone, which validates tokens, cannot be used at the moment; try again.",
                headers={"retry-after": RETRY_AFTER_S},
            )
            return refuse(refused, environ, start_response)

    # The middleware may crash too, and runs before the layer that catches crashes.
    guarded_well = catch_crashes(guarded)

    def layer(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        if is_public(environ):
            return application(environ, start_response)
        return guarded_well(environ, start_response)

    return layer


def ask_keystone(conf: cfg.ConfigOpts) -> None:
    """Check that Keystone validates tokens for this service.

    Raises:
        ConfigurationError: [keystone_authtoken] is incomplete or invalid.
        KeystoneUnavailable: it would not.
    """
    from berth.edge.auth.keystone_server import open_middleware

    open_middleware(_nothing, conf)[1].probe()


def _nothing(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
    raise AssertionError("no request reaches the application behind a check")


def _keep_scope(application: WSGIApplication) -> WSGIApplication:
    """Restore the scope of the caller's token.

    The middleware replaces it with the scope of a service token, so that a system administrator
    would pass for a project administrator when a service calls on behalf of that user.
    """

    def layer(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        tokens = environ.get(_TOKENS)
        if tokens is not None and tokens.has_service_token and tokens.has_user_token:
            environ[_SYSTEM_SCOPE] = "all" if tokens.user.system_scoped else None
        return application(environ, start_response)

    return layer
