# SPDX-License-Identifier: Apache-2.0
"""Code shared by the strategies that check credentials against a file of berth's own."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Final, Protocol
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

from berth.api import errors
from berth.api.environ import STILL_VALID
from berth.api.errors import RETRY_AFTER_S, Refused
from berth.api.paths import is_public, kind_of
from berth.edge.auth.failed_attempts import Caller, FailedAttempts, FailureLog
from berth.edge.auth.identity import Identity, leave_identity, remove_identity, unauthorized

#: The headers with secrets; no layer after authentication needs them.
_CREDENTIALS: Final = (
    *("HTTP_AUTHORIZATION", "HTTP_X_AUTH_TOKEN", "HTTP_X_STORAGE_TOKEN"),
    "HTTP_X_SERVICE_TOKEN",
)

#: How many characters of a name that a client sent are remembered and logged.
_NAME_SHOWN_MAX: Final = 64


class Authenticate(Protocol):
    """Checks the credentials of requests."""

    def __call__(self, environ: WSGIEnvironment) -> Identity:
        """The caller of a request.

        Raises:
            Refused: it is not authenticated.
        """

    def still_valid(self, environ: WSGIEnvironment) -> Callable[[], bool]:
        """A function that returns whether the credentials of an authenticated request would still
        be accepted, as those of the same caller. It does not keep them."""


def layer_of(authenticate: Authenticate) -> Callable[[WSGIApplication], WSGIApplication]:
    """The layer that requires `authenticate` to succeed, except on public paths."""

    def wrap(application: WSGIApplication) -> WSGIApplication:
        def layer(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
            remove_identity(environ)
            if not is_public(environ):
                try:
                    leave_identity(environ, authenticate(environ))
                    if kind_of(environ).is_watch:
                        environ[STILL_VALID] = authenticate.still_valid(environ)
                except Refused as refused:
                    return _refuse(refused, environ, start_response)
            for name in _CREDENTIALS:
                environ.pop(name, None)
            return application(environ, start_response)

        return layer

    return wrap


class Gatekeeper:
    """Answers callers that fail to authenticate, slows them down, and logs them.

    Args:
        challenge: the WWW-Authenticate of a 401.
        subject: the word for a caller in the log: "user", "token".
        clock: monotonic seconds.
    """

    def __init__(self, *, challenge: str, subject: str, clock: Callable[[], float]) -> None:
        self._challenge = challenge
        self._subject = subject
        self._clock = clock
        self._attempts = FailedAttempts()
        self._log = FailureLog()

    def caller(self, environ: WSGIEnvironment, name: str) -> Caller:
        """The caller of a login attempt; the name may be any text."""
        return Caller(environ.get("REMOTE_ADDR", "-"), name[:_NAME_SHOWN_MAX])

    def slow_down(self, caller: Caller) -> None:
        """Reject a caller that has failed too often and has to wait.

        Raises:
            Refused: 429.
        """
        if wait := self._attempts.wait_s(caller, now=self._clock()):
            raise _too_many(math.ceil(wait))

    def is_suspect(self, caller: Caller) -> bool:
        """Whether someone at the caller's address is guessing names."""
        return self._attempts.is_suspect(caller.address, now=self._clock())

    def put_off(self) -> Refused:
        """The answer to callers at a suspect address who are not remembered."""
        return _too_many(1)

    def failure(self, caller: Caller, why: str) -> Refused:
        """Record a failed attempt; return the answer to it.

        Args:
            why: the reason, for the log; must contain nothing secret.
        """
        now = self._clock()
        wait = self._attempts.record(caller, now=now)
        pause = f"; further attempts are refused for {wait:.0f} s" if wait else ""
        # Quoted, so that a client cannot forge log lines.
        self._log.warn(
            "Authentication of %s %s from %s failed: %s%s",
            *(self._subject, ascii(caller.name), caller.address, why, pause),
            now=now,
        )
        return self.unauthorized("The credentials are not valid.")

    def success(self, caller: Caller) -> None:
        """Record a successful attempt."""
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
    """The answer while the file cannot be used; the log has the reason."""
    return unavailable("Credentials cannot be checked at the moment; the service's log says why.")


def unavailable(message: str) -> Refused:
    """The answer if credentials cannot be checked at the moment."""
    return Refused(503, message, headers={"retry-after": RETRY_AFTER_S})


def _refuse(
    refused: Refused, environ: WSGIEnvironment, start_response: StartResponse
) -> Iterable[bytes]:
    if refused.status == 401:
        return unauthorized(refused, environ, start_response)
    return errors.send(refused, errors.render(refused, environ), environ, start_response)
