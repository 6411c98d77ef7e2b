# SPDX-License-Identifier: Apache-2.0
"""What the strategies have in common that check credentials against a file of berth's own."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Final
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

from berth.api import errors
from berth.api.auth.failed_attempts import Caller, FailedAttempts, FailureLog
from berth.api.auth.identity import Identity, leave_identity, remove_identity, unauthorized
from berth.api.errors import RETRY_AFTER_S, Refused
from berth.api.paths import is_public

#: The headers with secrets; nothing below the authentication has to know them.
_CREDENTIALS: Final = (
    *("HTTP_AUTHORIZATION", "HTTP_X_AUTH_TOKEN", "HTTP_X_STORAGE_TOKEN"),
    "HTTP_X_SERVICE_TOKEN",
)

#: Of a name that a client has sent, so much is remembered and logged.
_NAME_SHOWN_MAX: Final = 64

#: From a request to who calls; raises Refused for one who is not let in.
Authenticate = Callable[[WSGIEnvironment], Identity]


def layer_of(authenticate: Authenticate) -> Callable[[WSGIApplication], WSGIApplication]:
    """The layer that lets in whom `authenticate` knows, and anybody to what is public."""

    def wrap(application: WSGIApplication) -> WSGIApplication:
        def layer(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
            remove_identity(environ)
            if not is_public(environ):
                try:
                    leave_identity(environ, authenticate(environ))
                except Refused as refused:
                    return _refuse(refused, environ, start_response)
            for name in _CREDENTIALS:
                environ.pop(name, None)
            return application(environ, start_response)

        return layer

    return wrap


class Gatekeeper:
    """Tells callers who are not let in why, slows them down, and logs them.

    Args:
        challenge: the WWW-Authenticate of a 401.
        what: what a caller is called in the log: "user", "token".
        clock: monotonic seconds.
    """

    def __init__(self, *, challenge: str, what: str, clock: Callable[[], float]) -> None:
        self._challenge = challenge
        self._what = what
        self._clock = clock
        self._attempts = FailedAttempts()
        self._log = FailureLog()

    def caller(self, environ: WSGIEnvironment, name: str) -> Caller:
        """Who tries to log in, by a name that may be anything."""
        return Caller(environ.get("REMOTE_ADDR", "-"), name[:_NAME_SHOWN_MAX])

    def slow_down(self, caller: Caller) -> None:
        """Refuse a caller who has failed too often to be looked at again so soon.

        Raises:
            Refused: 429.
        """
        if wait := self._attempts.wait_s(caller, now=self._clock()):
            raise _too_many(math.ceil(wait))

    def is_suspect(self, caller: Caller) -> bool:
        """Whether somebody is guessing names at the caller's address."""
        return self._attempts.is_suspect(caller.address, now=self._clock())

    def put_off(self) -> Refused:
        """The answer to all from an address where somebody is guessing, who are not known yet."""
        return _too_many(1)

    def failure(self, caller: Caller, why: str) -> Refused:
        """Note that an attempt has failed; what to answer it.

        Args:
            why: for the log, in which nothing secret may stand.
        """
        now = self._clock()
        wait = self._attempts.record(caller, now=now)
        pause = f"; further attempts are refused for {wait:.0f} s" if wait else ""
        # Quoted: what a client sends must not make lines of its own.
        self._log.warn(
            "The %s %s from %s is not let in: %s%s",
            *(self._what, ascii(caller.name), caller.address, why, pause),
            now=now,
        )
        return self.unauthorized("The credentials are not valid.")

    def success(self, caller: Caller) -> None:
        """Note that a caller is who it says."""
        self._attempts.forgive(caller)

    def unauthorized(self, message: str) -> Refused:
        """The answer to a request without valid credentials."""
        return Refused(401, message, headers={"www-authenticate": self._challenge})


def _too_many(wait_s: int) -> Refused:
    return Refused(
        429,
        "Too many attempts to log in have failed; wait before the next one.",
        headers={"retry-after": str(wait_s)},
    )


def unusable() -> Refused:
    """The answer while the file cannot be used; what is wrong with it is the log's to tell."""
    return unavailable("Credentials cannot be checked at the moment; the service's log says why.")


def unavailable(message: str) -> Refused:
    """The answer where credentials cannot be checked now, but soon."""
    return Refused(503, message, headers={"retry-after": RETRY_AFTER_S})


def _refuse(
    refused: Refused, environ: WSGIEnvironment, start_response: StartResponse
) -> Iterable[bytes]:
    if refused.status == 401:
        return unauthorized(refused, environ, start_response)
    return errors.send(refused, errors.render(refused, environ), environ, start_response)
