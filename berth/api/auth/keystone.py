# SPDX-License-Identifier: Apache-2.0
"""`[api]auth_strategy = keystone`: callers bring tokens of Keystone's."""

from __future__ import annotations

from collections.abc import Iterable
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

from oslo_config import cfg

from berth.api.errors import RETRY_AFTER_S, Refused
from berth.api.faults import catch_faults
from berth.api.in_front import refuse
from berth.api.paths import is_public

#: Where the middleware leaves what it found out about both tokens, and a scope.
_TOKENS = "keystone.token_auth"
_SYSTEM_SCOPE = "HTTP_OPENSTACK_SYSTEM_SCOPE"


class KeystoneUnavailable(Exception):
    """Keystone cannot say whether a token is valid."""

    def __init__(self, reason: str, *, is_refusal: bool = False) -> None:
        super().__init__(reason)
        #: Keystone answers, and will not validate tokens for us until somebody changes something.
        self.is_refusal = is_refusal


def keystone(application: WSGIApplication, conf: cfg.ConfigOpts) -> WSGIApplication:
    """Let keystonemiddleware validate tokens, everywhere but on the public paths.

    Raises:
        ConfigurationError: [keystone_authtoken] cannot work as it is.
    """
    # Imported here: it is slow to load, and only this strategy needs it.
    from berth.api.auth.keystone_server import open_middleware

    middleware, _ = open_middleware(_keep_scope(application), conf)

    def guarded(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        try:
            return middleware(environ, start_response)
        except KeystoneUnavailable:
            # Why is for the log: callers need not know how we reach Keystone.
            refused = Refused(
                503,
                "Keystone, which validates tokens, cannot be used at the moment; try again.",
                headers={"retry-after": RETRY_AFTER_S},
            )
            return refuse(refused, environ, start_response)

    # The middleware has faults of its own, and stands before the layer that catches the others.
    guarded_well = catch_faults(guarded)

    def layer(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        if is_public(environ):
            return application(environ, start_response)
        return guarded_well(environ, start_response)

    return layer


def ask_keystone(conf: cfg.ConfigOpts) -> None:
    """Ask Keystone whether it would validate tokens for us.

    Raises:
        ConfigurationError: [keystone_authtoken] cannot work as it is.
        KeystoneUnavailable: it would not.
    """
    from berth.api.auth.keystone_server import open_middleware

    open_middleware(_nothing, conf)[1].probe()


def _nothing(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
    raise AssertionError("nobody calls what stands behind a question")


def _keep_scope(application: WSGIApplication) -> WSGIApplication:
    """Let the scope be that of the caller's token.

    The middleware puts the scope of a service token in its place, so that an administrator of the
    system would pass for one of a project where a service calls on behalf of that user.
    """

    def layer(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        tokens = environ.get(_TOKENS)
        if tokens is not None and tokens.has_service_token and tokens.has_user_token:
            environ[_SYSTEM_SCOPE] = "all" if tokens.user.system_scoped else None
        return application(environ, start_response)

    return layer
