# SPDX-License-Identifier: Apache-2.0
"""`[api]auth_strategy = keystone`: callers send Keystone tokens."""

from __future__ import annotations

import hashlib
import math
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Final
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

from oslo_config import cfg

from berth.api.environ import MATCH, STILL_VALID
from berth.api.errors import RETRY_AFTER_S, Refused
from berth.edge.auth.identity import KeystoneUnavailable
from berth.edge.auth.tokens import utc_now
from berth.edge.layers import catch_crashes, refuse

#: The environ keys of the middleware's results for both tokens, and of the system scope.
_TOKENS = "keystone.token_auth"
_SYSTEM_SCOPE = "HTTP_OPENSTACK_SYSTEM_SCOPE"
_TOKEN_INFO = "keystone.token_info"

#: The headers of a caller's token.
_CALLERS: Final = ("HTTP_X_AUTH_TOKEN", "HTTP_X_STORAGE_TOKEN")

#: Seconds for which requests with the same token share an answer of Keystone.
_SHARED_S: Final = 2.0

#: Tokens that are remembered.
_REMEMBERED_MAX: Final = 10_000


def keystone(application: WSGIApplication, conf: cfg.ConfigOpts) -> WSGIApplication:
    """Let keystonemiddleware validate tokens, everywhere but on the public paths.

    Raises:
        ConfigurationError: [keystone_authtoken] is incomplete or invalid.
    """
    # Imported here: it is slow to load, and only this strategy needs it.
    from berth.edge.auth.keystone_server import open_middleware

    middleware, server = open_middleware(_keep_scope(application), conf)
    waiting = WaitingTokens(server.accepts, cached_s=conf.keystone_authtoken.token_cache_time)

    def guarded(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        waiting.refuse_ended(environ)
        if environ[MATCH].kind.is_watch:
            environ[STILL_VALID] = waiting.checking(environ)
        try:
            return middleware(environ, start_response)
        except KeystoneUnavailable:
            return refuse(_unavailable(), environ, start_response)

    # The middleware may crash too, and runs before the layer that catches crashes.
    guarded_well = catch_crashes(guarded)

    def layer(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        if environ[MATCH].route.is_public:
            return application(environ, start_response)
        return guarded_well(environ, start_response)

    return layer


def _unavailable() -> Refused:
    # The reason is logged only: callers need not know how the service reaches Keystone.
    return Refused(
        503,
        "Keystone, which validates tokens, cannot be used at the moment; try again.",
        headers={"retry-after": RETRY_AFTER_S},
    )


class WaitingTokens:
    """The tokens of requests that wait for changes, which Keystone is asked about again and again.

    The middleware trusts a token for `token_cache_time`, but a token that Keystone no longer
    accepts is refused at once, to all requests of this process. While Keystone cannot be used,
    tokens are trusted until they expire.

    Args:
        accepts: asks Keystone.
        cached_s: how long the middleware trusts a token.
        clock: monotonic seconds.
        utc: the time of day.
    """

    def __init__(
        self,
        accepts: Callable[..., bool],
        *,
        cached_s: float,
        clock: Callable[[], float] = time.monotonic,
        utc: Callable[[], datetime] = utc_now,
    ) -> None:
        self._accepts = accepts
        self._cached_s = cached_s
        self._clock = clock
        self._utc = utc
        #: When Keystone was last asked about a token, and since when it refuses one; by digest.
        self._asked: OrderedDict[bytes, float] = OrderedDict()
        self._ended: OrderedDict[bytes, float] = OrderedDict()

    def refuse_ended(self, environ: WSGIEnvironment) -> None:
        """Remove the caller's token from a request if it has ended, so that it gets 401."""
        may_be_expired = bool(environ.get("HTTP_X_SERVICE_TOKEN", "").strip())
        if self._ended and any(
            self._has_ended(_digest(environ.get(name), allow_expired=may_be_expired))
            for name in _CALLERS
        ):
            for name in _CALLERS:
                environ.pop(name, None)

    def checking(self, environ: WSGIEnvironment) -> Callable[[], bool]:
        """A function that returns whether the tokens of a request are still valid.

        Call it only once the middleware has accepted the request: then it knows their expiry.
        """
        user = next((environ[name] for name in _CALLERS if name in environ), "").strip()
        service = environ.get("HTTP_X_SERVICE_TOKEN", "").strip()

        def is_valid() -> bool:
            # A service may act with a user's token that has expired.
            expires = None if service else environ[_TOKEN_INFO]["token"]["expires_at"]
            return (
                (expires is None or self._utc() < datetime.fromisoformat(expires))
                and self._is_accepted(user, allow_expired=bool(service))
                and (not service or self._is_accepted(service, allow_expired=False))
            )

        return is_valid

    def _is_accepted(self, token: str, *, allow_expired: bool) -> bool:
        digest, now = _digest(token, allow_expired=allow_expired), self._clock()
        if self._has_ended(digest):
            return False
        if now - self._asked.get(digest, -math.inf) < _SHARED_S:
            return True
        _remember(self._asked, digest, now)
        if self._accepts(token, allow_expired=allow_expired):
            return True
        _remember(self._ended, digest, now)
        return False

    def _has_ended(self, digest: bytes) -> bool:
        return self._clock() - self._ended.get(digest, -math.inf) < max(self._cached_s, _SHARED_S)


def _digest(token: str | None, *, allow_expired: bool) -> bytes:
    """What is remembered of a token: one that has expired is still good beside a service's."""
    return hashlib.sha256(f"{allow_expired} {(token or '').strip()}".encode()).digest()


def _remember(times: OrderedDict[bytes, float], digest: bytes, now: float) -> None:
    times[digest] = now
    while len(times) > _REMEMBERED_MAX:
        times.popitem(last=False)


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
