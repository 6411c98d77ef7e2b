# SPDX-License-Identifier: Apache-2.0
"""Slow clients: those who do not send the body that they announced, or do not take their answer.

Granian waits for both for ever. A body is awaited by a thread, and an answer lies in memory until
it is taken; so both have a deadline here, which moves on with what comes or goes: `seconds_max`,
and a second for each `RATE` bytes. Slow headers and idle connections Granian ends itself.

A thread looks at the connections once a second. Whose answer lies there too long is cut off. A body
that is late is cut off too, by shutting the reading half of its connection: that ends the read,
and the client is told 408. Which connection it is, the server does not say. It is one from the same
address that is late by the kernel's own count, nothing having been sent on it since its request
came; and of those the one on which a request came when the waiting began. Only a whole request of
the same address that has run for as long could be mistaken for it; its client loses the answer.

When a client goes while its request is worked at, Granian closes the connection at once, and lets
the application go on. So a client has gone for certain when none of the connections from its
address could be the one on which its request came (`has_gone`). With several requests from one
address this may be found out late, or not at all, but never of a client that waits.

A fleet whose hosts ask once a minute, each on a connection of its own, can fill a worker with
connections on which nothing happens. Where they get scarce, those that have rested longest are
closed before Granian's time.
"""

from __future__ import annotations

import ipaddress
import logging
import socket
import threading
import time
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Final, NamedTuple

from berth.api.receiving import Stream
from berth.cli.connections import Connection, Peer, connections_to, cut

LOG = logging.getLogger(__name__)

#: Bytes that move a deadline on by a second: half a megabit each second, over all.
RATE: Final = 64 * 1024

#: Seconds between two looks.
_LOOK_EACH_S: Final = 1.0

#: Seconds for which a connection has rested that may be closed to make room.
_RESTED_S: Final = 1.0

#: Seconds that may pass from when a request has come until the application is called: all threads
#: of a worker share one processor.
_CALLED_S_MAX: Final = 2.0

#: Seconds by which the kernel's times and ours may differ: it counts in ticks.
_TICK_S: Final = 0.1

Address = ipaddress.IPv4Address | ipaddress.IPv6Address

_WHEN = itemgetter(0)


@dataclass(eq=False, slots=True)
class Wait:
    """A body that is awaited."""

    address: str
    #: When the waiting began.
    since: float
    received: int = 0


@dataclass(frozen=True, slots=True)
class Seen:
    """What is remembered of a connection from one look to the next."""

    #: Whether the last that happened was that something came.
    is_asking: bool
    #: When the request came that is under way, or what was sent last.
    asked_at: float
    #: How many bytes had come before that.
    came_before: int
    #: How many bytes had come by now.
    came: int
    #: Since when an answer is owed without a break; None: none is.
    owed_since: float | None
    #: How many bytes had been taken by then.
    taken_before: int
    #: How many bytes had been taken by now.
    taken: int


class Late(NamedTuple):
    """The connections that are to be cut off."""

    #: On which an answer lies that is not taken.
    untaken: list[Connection]
    #: On which a body is awaited.
    owing: list[Connection]


class Asking(NamedTuple):
    """A connection that may be one on which an answer is awaited."""

    #: The earliest moment at which something can last have been sent on it.
    sent_from: float
    #: The latest moment at which something can last have come.
    came_until: float


class Look(NamedTuple):
    """What a look at all connections has shown."""

    begun: float
    asking: Mapping[Address, Sequence[Asking]]


@dataclass
class SlowClients:
    """The deadlines of one worker's clients."""

    seconds_max: float
    #: The bodies that somebody is waiting for at this moment.
    waits: set[Wait] = field(default_factory=set, init=False)
    _seen: dict[Peer, Seen] = field(default_factory=dict, init=False)
    _last: Look | None = field(default=None, init=False)

    def watched(self, stream: Stream, address: str) -> WatchedBody:
        """A body whose reading ends at its deadline."""
        return WatchedBody(stream, Wait(address, time.monotonic()), self)

    def watch(self, port: int, connections_max: int) -> None:
        """Begin to look after the clients of a port, for as long as this process lasts.

        Args:
            connections_max: how many this process accepts.
        """

        def look() -> None:
            while True:
                time.sleep(_LOOK_EACH_S)
                try:
                    begun = time.monotonic()
                    connections = list(connections_to(port))
                    now = time.monotonic()
                    self.note(connections, begun, now)
                    _cut_off(self.late(connections, now))
                    for one in in_the_way(connections, connections_max):
                        cut(one, socket.SHUT_RD)
                except Exception:
                    LOG.exception("Slow clients could not be looked after")

        threading.Thread(target=look, name="slow-clients", daemon=True).start()

    def note(self, connections: list[Connection], begun: float, ended: float) -> None:
        """Remember who may be waiting for an answer.

        Args:
            connections: all of them, each as it was at some moment between `begun` and `ended`.
        """
        asking: dict[Address, list[Asking]] = defaultdict(list)
        for one in connections:
            if one.came:
                asking[_address(one.peer[0])].append(
                    Asking(begun - one.sent_ago, ended - one.came_ago)
                )
        self._last = Look(begun, asking)

    def has_gone(self, address: str, since: float) -> bool:
        """Whether a client has certainly gone: on none of its address's connections has something
        come by then, and nothing been sent after.

        Args:
            since: when its request came to the application.
        """
        last = self._last
        if last is None or last.begun - since < _LOOK_EACH_S:
            return False
        return not any(
            one.came_until >= since - _CALLED_S_MAX and one.sent_from <= since + _TICK_S
            for one in last.asking.get(_address(address), ())
        )

    def late(self, connections: list[Connection], now: float) -> Late:
        """Whom to cut off; to be called again and again, each time with all connections."""
        self._seen = {one.peer: _see(one, self._seen.get(one.peer), now) for one in connections}
        return Late(
            untaken=[one for one in connections if self._lies_untaken(one, now)],
            owing=list(self._owing(connections, now)),
        )

    def _owing(self, connections: list[Connection], now: float) -> Iterator[Connection]:
        """The connections of the bodies that are late."""
        waits = [wait for wait in list(self.waits) if self.is_over(wait.since, wait.received, now)]
        if not waits:
            return
        asking: dict[Address, list[tuple[float, Connection]]] = defaultdict(list)
        for one in connections:
            seen = self._seen[one.peer]
            if self.is_over(seen.asked_at, one.came - seen.came_before, now):
                asking[_address(one.peer[0])].append((seen.asked_at, one))
        for some in asking.values():
            some.sort(key=_WHEN)
        # Whom it costs his connection is the same in any order of them.
        for wait in waits:
            if some := asking[_address(wait.address)]:
                yield some.pop(_awaited_among(some, wait.since))[1]

    def _lies_untaken(self, connection: Connection, now: float) -> bool:
        seen = self._seen[connection.peer]
        return seen.owed_since is not None and self.is_over(
            seen.owed_since, connection.taken - seen.taken_before, now
        )

    def is_over(self, since: float, progress: int, now: float) -> bool:
        """Whether a deadline has passed that so many bytes have moved on."""
        return now - since > self.seconds_max + progress / RATE


class WatchedBody:
    """`wsgi.input` of a request, which is watched while somebody waits for it."""

    def __init__(self, stream: Stream, wait: Wait, slow_clients: SlowClients) -> None:
        self._stream = stream
        self._wait = wait
        self._slow_clients = slow_clients
        self._has_ended = False

    def is_read(self, announced: int | None) -> bool:
        """Whether nothing more is to come of it, for all that is known."""
        return self._has_ended or (announced is not None and self._wait.received >= announced)

    def read(self, size: int, /) -> bytes:
        """As many bytes, or fewer where the body ends.

        Raises:
            TimeoutError: it ended after its deadline: the client was cut off.
        """
        wait = self._wait
        waits = self._slow_clients.waits
        waits.add(wait)
        try:
            piece = self._stream.read(size)
        finally:
            waits.discard(wait)
        wait.received += len(piece)
        self._has_ended = len(piece) < size
        if len(piece) < size and self._slow_clients.is_over(
            wait.since, wait.received, time.monotonic()
        ):
            raise TimeoutError(f"{wait.received} bytes came before the deadline")
        return piece


def in_the_way(connections: list[Connection], connections_max: int) -> list[Connection]:
    """Connections that rest while others may find no room: where three in four are taken, as many
    of those that have rested longest as leave half of the room."""
    if len(connections) <= connections_max * 3 // 4:
        return []
    resting = [
        one
        for one in connections
        if one.taken and not one.is_owed and _RESTED_S < one.sent_ago <= one.came_ago
    ]
    resting.sort(key=lambda one: one.sent_ago, reverse=True)
    return resting[: len(connections) - connections_max // 2]


def _cut_off(late: Late) -> None:
    if leaving := [*late.untaken, *late.owing]:
        LOG.warning(
            "Slow clients are cut off: %d that did not send their request's body, %d that did not "
            "take their answer; one of them at %s",
            len(late.owing),
            len(late.untaken),
            leaving[0].peer[0],
        )
    for connection in late.untaken:
        cut(connection, socket.SHUT_RDWR)
    for connection in late.owing:
        cut(connection, socket.SHUT_RD)


def _see(connection: Connection, before: Seen | None, now: float) -> Seen:
    came_at, sent_at = now - connection.came_ago, now - connection.sent_ago
    # Times of two looks differ by what the kernel rounds, and by how long a busy machine takes.
    nothing_sent = (
        before is not None and connection.taken == before.taken and not connection.is_owed
    )
    is_asking = came_at > sent_at
    if not is_asking:
        # RACE tests/cli/test_slow_clients.py: before the first answer all is of one request, also
        # what came in the very tick of the kernel's clock in which the client connected.
        has_answered = connection.taken > 0 or connection.is_owed
        asked_at, came_before = sent_at, connection.came if has_answered else 0
    elif before is None:
        asked_at, came_before = came_at, 0
    elif before.is_asking and (sent_at <= before.asked_at or nothing_sent):
        asked_at, came_before = before.asked_at, before.came_before
    else:
        asked_at, came_before = came_at, before.came
    if not connection.is_owed:
        owed_since, taken_before = None, connection.taken
    elif before is None or before.owed_since is None:
        owed_since, taken_before = now, connection.taken
    else:
        owed_since, taken_before = before.owed_since, before.taken_before
    return Seen(
        is_asking,
        asked_at,
        came_before,
        connection.came,
        owed_since,
        taken_before,
        connection.taken,
    )


def _address(host: str) -> Address:
    """An address, however it is spelt, without the interface at which it is found."""
    return ipaddress.ip_address(host.partition("%")[0])


def _awaited_among(asking: list[tuple[float, Connection]], moment: float) -> int:
    """Where in a sorted list the request is whose body is awaited since a moment.

    That is the last that had come by then. Where none had, as far as the kernel's clock tells, it
    is the first.
    """
    return max(bisect_right(asking, moment + _TICK_S, key=_WHEN) - 1, 0)
