# SPDX-License-Identifier: Apache-2.0
"""Slow clients: those that do not send the body they announced, or do not read the response.

Granian waits for both for ever. A body blocks a thread, and a response stays in memory until the
client has read it. So both have a deadline here: `seconds_max`, plus a second for every `RATE`
bytes transferred. Granian itself closes connections with slow headers and idle ones.

A thread checks the connections once a second. It cuts off clients that leave a response unread. If
a body is late, it shuts the reading half of the connection: that ends the read, and the client gets
408. Granian does not say which connection that is. It is one from the same address that is late by
the kernel's counters, with nothing sent on it since its request arrived; of several such
connections, it is the one whose request arrived when the wait began. A connection that may carry a
complete request that has been running for as long is left alone. Until that request is answered,
the late body's connection may be left alone, too.

Both deadlines begin when Granian accepts a connection. While Granian accepts none, new connections
wait in the kernel's queue, so slow clients that take turns could keep others waiting for many times
`seconds_max`. Therefore a connection on which no whole request has come is cut off at its deadline
by the kernel's counters, which begin when the client connects. The exception is a connection whose
request may be a whole one from the same address that is running.

When a client disconnects while its request runs, Granian closes the connection at once and lets
the application continue. So a client has certainly gone when none of the connections from its
address could be the one that carried its request (`has_gone`). With several requests from one
address this may be detected late or never, but no waiting client is ever taken for gone.

A fleet whose hosts send a request once a minute, each on its own connection, can fill a worker with
idle connections. When few are left, those idle longest are closed before Granian would.
"""

from __future__ import annotations

import ipaddress
import logging
import math
import socket
import threading
import time
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple, TypeVar

from msgspec import Struct

from berth.edge.receiving import Stream
from berth.edge.server.connections import Connection, Peer, connections_to, cut

LOG = logging.getLogger(__name__)

T = TypeVar("T")

#: Bytes that extend a deadline by a second: an average of half a megabit per second.
RATE: Final = 64 * 1024

#: Seconds between two checks.
_LOOK_EACH_S: Final = 1.0

#: The same after connections were cut off, because those that waited for their places may be late.
_LOOK_SOON_S: Final = 0.25

#: Seconds that a connection must have been idle before it may be closed to make room.
_RESTED_S: Final = 1.0

#: Seconds that may pass between the arrival of a request and the call of the application: all
#: threads of a worker share one CPU.
_CALLED_S_MAX: Final = 2.0

#: Seconds by which the kernel's times may differ from ours: it counts in ticks.
_TICK_S: Final = 0.1

Address = ipaddress.IPv4Address | ipaddress.IPv6Address


class Request(Struct, eq=False):
    """A request that has reached the application."""

    address: str
    since: float
    #: Bytes of its body that have been read.
    received: int = 0
    #: Whether a thread waits for its body.
    is_awaited: bool = False
    #: When a part of its body was last read; 0 if none was.
    read_at: float = 0.0
    #: Whether its response is being sent, in pieces that are made meanwhile.
    is_streamed: bool = False
    #: When it was answered, if that took long, because its response may not have been sent yet.
    ended_at: float = math.inf


class Seen(Struct, frozen=True):
    """What is remembered of a connection from one check to the next."""

    #: When it was seen for the first time.
    first_at: float
    #: Whether the client sent something after the last response.
    is_asking: bool
    #: When the current request arrived; without one, when something was last sent.
    asked_at: float
    #: Bytes received before that.
    came_before: int
    #: Bytes received so far.
    came: int
    #: Since when a response has been continuously unread; None: there is none.
    owed_since: float | None
    #: Bytes that the client had acknowledged by then.
    taken_before: int
    #: Bytes that the client has acknowledged so far.
    taken: int


class Late(NamedTuple):
    """The connections to cut off."""

    #: Those whose response is unread.
    untaken: list[Connection]
    #: Those whose body is late.
    owing: list[Connection]
    #: Those on which no whole request has come in time.
    silent: list[Connection]


class Look(NamedTuple):
    """A check of all connections.

    Attributes:
        begun, ended: each connection is as it was at some time between these.
        asking: the connections whose client may be waiting for a response.
    """

    begun: float
    ended: float
    asking: Mapping[Address, Sequence[Connection]]


@dataclass
class SlowClients:
    """The deadlines of one worker's clients."""

    seconds_max: float
    #: The requests that the application answers now.
    requests: set[Request] = field(default_factory=set, init=False)
    #: The same by address, as of the current check.
    _running: dict[Address, list[Request]] = field(default_factory=dict, init=False)
    _seen: dict[Peer, Seen] = field(default_factory=dict, init=False)
    _last: Look | None = field(default=None, init=False)

    def begin(self, address: str) -> Request:
        """Note that a request has reached the application."""
        request = Request(address, time.monotonic())
        self.requests.add(request)
        return request

    def end(self, request: Request) -> None:
        """Note that a request has been answered."""
        now = time.monotonic()
        if now - request.since < _LOOK_EACH_S:
            self.requests.discard(request)
        else:
            request.ended_at = now

    def watch(self, port: int, connections_max: int) -> None:
        """Start checking the clients of a port, for as long as this process runs.

        Args:
            connections_max: the number of connections that this process accepts.
        """

        def look() -> None:
            pause = _LOOK_EACH_S
            while True:
                time.sleep(pause)
                try:
                    begun = time.monotonic()
                    connections = list(connections_to(port))
                    now = time.monotonic()
                    self.note(connections, begun, now)
                    has_cut = _cut_off(self.late(connections, now))
                    pause = _LOOK_SOON_S if has_cut else _LOOK_EACH_S
                    for connection in in_the_way(connections, connections_max):
                        cut(connection, socket.SHUT_RD)
                except Exception:
                    LOG.exception("Cannot check for slow clients")

        threading.Thread(target=look, name="slow-clients", daemon=True).start()

    def note(self, connections: list[Connection], begun: float, ended: float) -> None:
        """Remember which clients may be waiting for a response.

        Args:
            connections: all of them, each as it was at some time between `begun` and `ended`.
        """
        some = ((connection.peer[0], connection) for connection in connections if connection.came)
        self._last = Look(begun, ended, _by_address(some))

    def has_gone(self, address: str, since: float) -> bool:
        """Whether a client has certainly gone: no connection from its address can be one that
        received the request by then and has sent nothing since.

        Args:
            since: when its request reached the application.
        """
        last = self._last
        if last is None or last.begun - since < _LOOK_EACH_S:
            return False
        return not any(
            last.ended - connection.came_ago >= since - _CALLED_S_MAX
            and last.begun - connection.sent_ago <= since + _TICK_S
            for connection in last.asking.get(_address(address), ())
        )

    def late(self, connections: list[Connection], now: float) -> Late:
        """The connections to cut off; call it repeatedly, each time with all connections."""
        ended = [each for each in list(self.requests) if each.ended_at < now - _CALLED_S_MAX]
        self.requests.difference_update(ended)
        self._running = _by_address((each.address, each) for each in list(self.requests))
        self._seen = {
            connection.peer: _see(connection, self._seen.get(connection.peer), now)
            for connection in connections
        }
        return Late(
            untaken=[
                connection for connection in connections if self._lies_untaken(connection, now)
            ],
            owing=list(self._owing(connections, now)),
            silent=list(self._silent(connections, now)),
        )

    def _owing(self, connections: list[Connection], now: float) -> Iterator[Connection]:
        """The connections whose bodies are late."""
        waiting = [
            (address, request)
            for address, requests in self._running.items()
            for request in requests
            if request.is_awaited and self.is_over(request.since, request.received, now)
        ]
        if not waiting:
            return
        late = _by_address(
            (connection.peer[0], connection)
            for connection in connections
            if self._is_over(connection, now) and not self._may_be_whole(connection, now)
        )
        for some in late.values():
            some.sort(key=self._asked_at)
        # The order of the requests makes no difference to which connections are cut off.
        for address, request in waiting:
            if of_address := late.get(address):
                # The last one that had arrived when the wait began, or the first one if none had,
                # by the kernel's clock.
                before = bisect_right(of_address, request.since + _TICK_S, key=self._asked_at)
                yield of_address.pop(max(before - 1, 0))

    def _may_be_whole(self, connection: Connection, now: float) -> bool:
        """Whether a connection may carry a complete request that the application answers."""
        seen, came_at = self._seen[connection.peer], now - connection.came_ago
        begun = seen.asked_at if seen.is_asking else came_at
        # The first check that sees a connection may come that long after its request.
        return any(
            begun - _LOOK_EACH_S - _TICK_S <= request.since <= begun + _CALLED_S_MAX
            for request in self._served(connection, now)
        )

    def _served(self, connection: Connection, now: float) -> Iterator[Request]:
        """The complete requests from a connection's address that may end with its last bytes."""
        came_at, is_asking = now - connection.came_ago, self._seen[connection.peer].is_asking
        has_begun = (connection.taken > 0 or connection.is_owed) and not is_asking
        for request in self._running.get(_address(connection.peer[0]), ()):
            is_later = max(request.since, request.read_at) >= came_at - _TICK_S
            is_unlike = request.is_awaited or (request.is_streamed and not has_begun)
            if is_later and not is_unlike:
                yield request

    def _asked_at(self, connection: Connection) -> float:
        return self._seen[connection.peer].asked_at

    def _is_over(self, connection: Connection, now: float, margin: float = 0.0) -> bool:
        """Whether the deadline of a connection's request has passed, by the kernel's counters."""
        seen = self._seen[connection.peer]
        return self.is_over(seen.asked_at + margin, connection.came - seen.came_before, now)

    def _silent(self, connections: list[Connection], now: float) -> Iterator[Connection]:
        """The connections on which no whole request has come in time.

        A margin leaves those whose body is awaited to `_owing`, and those that Granian accepted in
        time to Granian.
        """
        for connection in connections:
            is_answered = connection.taken or connection.is_owed
            if not is_answered and self._is_over(connection, now, margin=_CALLED_S_MAX):
                is_new = now - self._seen[connection.peer].first_at < _CALLED_S_MAX
                if not (connection.came and (is_new or any(self._served(connection, now)))):
                    yield connection

    def _lies_untaken(self, connection: Connection, now: float) -> bool:
        seen = self._seen[connection.peer]
        return seen.owed_since is not None and self.is_over(
            seen.owed_since, connection.taken - seen.taken_before, now
        )

    def is_over(self, since: float, progress: int, now: float) -> bool:
        """Whether a deadline has passed, extended for the bytes transferred."""
        return now - since > self.seconds_max + progress / RATE


class WatchedBody:
    """`wsgi.input` of a request, watched while a thread waits for it."""

    def __init__(self, stream: Stream, request: Request, slow_clients: SlowClients) -> None:
        self._stream = stream
        self._request = request
        self._slow_clients = slow_clients
        self._has_ended = False

    def is_read(self, announced: int | None) -> bool:
        """Whether, as far as is known, all of it has been read."""
        return self._has_ended or (announced is not None and self._request.received >= announced)

    def read(self, size: int, /) -> bytes:
        """Read `size` bytes, or fewer at the end of the body.

        Raises:
            TimeoutError: it ended after its deadline, because the client was cut off.
        """
        request = self._request
        request.is_awaited = True
        try:
            piece = self._stream.read(size)
        finally:
            request.is_awaited = False
        request.read_at = now = time.monotonic()
        request.received += len(piece)
        self._has_ended = len(piece) < size
        if self._has_ended and self._slow_clients.is_over(request.since, request.received, now):
            raise TimeoutError(f"{request.received} bytes came before the deadline")
        return piece


def in_the_way(connections: list[Connection], connections_max: int) -> list[Connection]:
    """The idle connections to close to make room: once three quarters of the maximum are in use,
    those idle longest, down to half of the maximum."""
    if len(connections) <= connections_max * 3 // 4:
        return []
    resting = [
        connection
        for connection in connections
        if connection.taken
        and not connection.is_owed
        and _RESTED_S < connection.sent_ago <= connection.came_ago
    ]
    resting.sort(key=lambda connection: connection.sent_ago, reverse=True)
    return resting[: len(connections) - connections_max // 2]


def _cut_off(late: Late) -> bool:
    """Cut off clients, and return whether there were any."""
    if leaving := [*late.untaken, *late.owing, *late.silent]:
        LOG.warning(
            "Slow clients disconnected: %d did not send the request body, %d did not send a whole "
            "request, %d did not read the response; one of them at %s",
            *(len(late.owing), len(late.silent), len(late.untaken)),
            leaving[0].peer[0],
        )
    for connection in late.untaken:
        cut(connection, socket.SHUT_RDWR)
    for connection in (*late.owing, *late.silent):
        cut(connection, socket.SHUT_RD)
    return bool(leaving)


def _see(connection: Connection, before: Seen | None, now: float) -> Seen:
    came_at, sent_at = now - connection.came_ago, now - connection.sent_ago
    # The times of two checks differ by the kernel's rounding and by delays on a busy machine.
    nothing_sent = (
        before is not None and connection.taken == before.taken and not connection.is_owed
    )
    is_asking = came_at > sent_at
    if not is_asking:
        # RACE tests/edge/server/test_slow_clients.py: before the first response all bytes belong to
        # one request, even those received in the same clock tick as the connection.
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
        now if before is None else before.first_at,
        is_asking,
        asked_at,
        came_before,
        connection.came,
        owed_since,
        taken_before,
        connection.taken,
    )


def _address(host: str) -> Address:
    """Parse an address in any spelling, without its interface (`%eth0`)."""
    return ipaddress.ip_address(host.partition("%")[0])


def _by_address(some: Iterable[tuple[str, T]]) -> dict[Address, list[T]]:
    groups: dict[Address, list[T]] = defaultdict(list)
    for host, each in some:
        groups[_address(host)].append(each)
    return groups
