# SPDX-License-Identifier: Apache-2.0
"""Failed logins: who has to wait, and what is logged.

Both are bounded: at most `CALLERS_MAX` callers are remembered, and at most `LINES_A_MINUTE` lines
are logged. Failures are counted per name and address, and the names that failed are counted per
address, which catches a caller who tries many names.
Times are monotonic seconds and are passed as arguments.
"""

from __future__ import annotations

import ipaddress
import logging
import threading
from collections import OrderedDict
from dataclasses import dataclass
from typing import Final, NamedTuple

LOG = logging.getLogger(__name__)

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


class Caller(NamedTuple):
    """A client's address, and the name or the token id that it sent."""

    address: str
    name: str


@dataclass(slots=True)
class _Failures:
    count: int
    last: float
    #: Further attempts before this time are rejected unchecked.
    until: float


@dataclass(slots=True)
class _Names:
    count: int
    last: float


class FailedAttempts:
    """The callers that failed recently, and how often."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        #: In the order of the last failure.
        self._failures: OrderedDict[Caller, _Failures] = OrderedDict()
        #: How many names have failed at each source; in the order of the last new one.
        self._names: OrderedDict[str, _Names] = OrderedDict()

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
                self._count_name(source_of(caller.address), now)
            failures = self._failures.setdefault(caller, _Failures(0, now, now))
            self._failures.move_to_end(caller)
            failures.count += 1
            failures.last = now
            wait = _wait_after(failures.count)
            failures.until = now + wait
            if len(self._failures) > CALLERS_MAX:
                self._failures.popitem(last=False)
        return wait

    def forgive(self, caller: Caller) -> None:
        """Forget the failures of a caller who has succeeded."""
        with self._lock:
            self._failures.pop(caller, None)

    def __len__(self) -> int:
        return len(self._failures)

    def _count_name(self, source: str, now: float) -> None:
        names = self._names.setdefault(source, _Names(0, now))
        if now - names.last >= FORGET_S:
            names.count = 0
        names.count += 1
        names.last = now
        self._names.move_to_end(source)
        if len(self._names) > CALLERS_MAX:
            self._names.popitem(last=False)

    def _forget_old(self, now: float) -> None:
        while self._failures:
            oldest = next(iter(self._failures.values()))
            if now - oldest.last < FORGET_S:
                return
            self._failures.popitem(last=False)


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
