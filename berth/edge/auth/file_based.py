# SPDX-License-Identifier: Apache-2.0
"""Code shared by the strategies that check credentials against a file of berth's own: the layer,
who has to wait after failed logins, and what is logged of them.

Both are bounded: at most `CALLERS_MAX` callers are remembered, and at most `LINES_A_MINUTE` lines
are logged. Failures are counted per name and address, and the names that failed are counted per
address, which catches a caller who tries many names.
Times are monotonic seconds and are passed as arguments.
"""

from __future__ import annotations

import ipaddress
import logging
import math
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable
from typing import Final, NamedTuple, Protocol, TypeVar
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

from msgspec import Struct

from berth.api import errors
from berth.api.environ import MATCH, STILL_VALID
from berth.api.errors import RETRY_AFTER_S, Refused
from berth.edge.auth.identity import Identity, leave_identity, remove_identity, unauthorized

#: The headers with secrets; no layer after authentication needs them.
_CREDENTIALS: Final = (
    *("HTTP_AUTHORIZATION", "HTTP_X_AUTH_TOKEN", "HTTP_X_STORAGE_TOKEN"),
    "HTTP_X_SERVICE_TOKEN",
)

#: How many characters of a name that a client sent are remembered and logged.
_NAME_SHOWN_MAX: Final = 64

LOG = logging.getLogger(__name__)

Key = TypeVar("Key")

#: Failures in a row without a delay: people mistype.
FREE: Final = 5

#: Seconds to wait after the next failure; each further failure doubles the wait.
WAIT_S_FIRST: Final = 1.0

WAIT_S_MAX: Final = 60.0

#: Seconds after which a failure is forgotten.
FORGET_S: Final = 900.0

#: Callers remembered; beyond that, those who failed longest ago are forgotten.
CALLERS_MAX: Final = 10_000

#: Names that may fail at one address before it becomes suspect.
NAMES_FREE: Final = 20

#: A client with one IPv6 address usually controls the whole network of this length.
_IPV6_PREFIX: Final = 64

LINES_A_MINUTE: Final = 60


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
            if not environ[MATCH].route.is_public:
                try:
                    leave_identity(environ, authenticate(environ))
                    if environ[MATCH].kind.is_watch:
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
    return errors.send(refused, environ, start_response)


class Caller(NamedTuple):
    """A client's address, and the name or the token id that it sent."""

    address: str
    name: str


class _Count(Struct):
    """What was counted of a caller or a source.

    Attributes:
        last: when.
        until: further attempts before this time are rejected unchecked.
    """

    last: float
    count: int = 0
    until: float = 0.0


class FailedAttempts:
    """The callers that failed recently, and how often."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        #: In the order of the last failure.
        self._failures: OrderedDict[Caller, _Count] = OrderedDict()
        #: How many names have failed at each source; in the order of the last new one.
        self._names: OrderedDict[str, _Count] = OrderedDict()

    def wait_s(self, caller: Caller, *, now: float) -> float:
        """How many seconds a caller must wait before the next attempt is checked; 0 for none."""
        failures = self._failures.get(caller)
        return max(0.0, failures.until - now) if failures is not None else 0.0

    def is_suspect(self, address: str, *, now: float) -> bool:
        """Whether more names failed at an address than mistypes explain: someone is guessing."""
        names = self._names.get(source_of(address))
        return names is not None and names.count > NAMES_FREE and now - names.last < FORGET_S

    def record(self, caller: Caller, *, now: float) -> float:
        """Record a failure; return the seconds that the caller now has to wait."""
        with self._lock:
            self._forget_old(now)
            if caller not in self._failures:
                _count(self._names, source_of(caller.address), now)
            failures = _count(self._failures, caller, now)
            wait = _wait_after(failures.count)
            failures.until = now + wait
        return wait

    def forgive(self, caller: Caller) -> None:
        """Forget the failures of a caller who has succeeded."""
        with self._lock:
            self._failures.pop(caller, None)

    def __len__(self) -> int:
        return len(self._failures)

    def _forget_old(self, now: float) -> None:
        while self._failures:
            oldest = next(iter(self._failures.values()))
            if now - oldest.last < FORGET_S:
                return
            self._failures.popitem(last=False)


def _count(counts: OrderedDict[Key, _Count], key: Key, now: float) -> _Count:
    """Count one more, of at most `CALLERS_MAX` that are remembered, the last one at the end."""
    entry = counts.setdefault(key, _Count(now))
    if now - entry.last >= FORGET_S:
        entry.count = 0
    entry.count += 1
    entry.last = now
    counts.move_to_end(key)
    if len(counts) > CALLERS_MAX:
        counts.popitem(last=False)
    return entry


class FailureLog:
    """Logs failed logins, at most `LINES_A_MINUTE` a minute.

    The first line of the next minute is preceded by the number of those left out.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._minute_began = float("-inf")
        self._lines = 0
        self._left_out = 0

    def warn(self, message: str, *arguments: object, now: float) -> None:
        """Log one failure, unless this minute already has `LINES_A_MINUTE` lines."""
        left_out = 0
        with self._lock:
            if now - self._minute_began >= 60:
                left_out, self._left_out = self._left_out, 0
                self._minute_began, self._lines = now, 0
            self._lines += 1
            is_told = self._lines <= LINES_A_MINUTE
            self._left_out += not is_told
        if left_out:
            LOG.warning("Failed logins not logged one by one: %d", left_out)
        if is_told:
            LOG.warning(message, *arguments)


def source_of(address: str) -> str:
    """A key for all addresses that one client can easily use: for IPv6, its /64 network."""
    try:
        parsed = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if parsed.version == 4 or parsed.ipv4_mapped is not None:
        return address
    return str(ipaddress.IPv6Network((parsed, _IPV6_PREFIX), strict=False))


def _wait_after(count: int) -> float:
    beyond = count - FREE - 1
    if beyond < 0:
        return 0.0
    return min(WAIT_S_MAX, WAIT_S_FIRST * 2.0 ** min(beyond, 16))
