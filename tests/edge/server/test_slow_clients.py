# SPDX-License-Identifier: Apache-2.0
"""Slow clients: late bodies, and responses that are not read."""

from __future__ import annotations

import os
import resource
import socket
from collections.abc import Callable
from functools import partial
from io import BytesIO
from types import SimpleNamespace
from typing import Any, Final

import pytest
from msgspec.structs import replace

from berth.edge.server import slow_clients
from berth.edge.server.connections import Connection, connections_to, cut, listens
from berth.edge.server.slow_clients import RATE, Request, SlowClients, WatchedBody, in_the_way
from berth.edge.server.workers import CONNECTIONS_MAX, FILES_BESIDES, connections_for_files

#: Of the limits of open files: none, and as many as a worker wants.
INFINITE = resource.RLIM_INFINITY
WANTED = CONNECTIONS_MAX + FILES_BESIDES

#: Seconds that a client has.
GIVEN = 30.0

START = 1000.0


def seen(now: float, fd: int, *, at: float = 0.0, **fields: Any) -> Connection:
    """A connection that has received a request at a moment after START, and sent no response."""
    usual = Connection(
        fd=fd,
        peer=("192.0.2.1", fd),
        sent_ago=now - at + 0.001,
        came_ago=now - at,
        came=200,
        is_owed=False,
        taken=0,
    )
    return replace(usual, **fields)


def asking(port: int, *, at: float, now: float) -> Connection:
    """The same, at absolute times."""
    return seen(now - START, port, at=at - START)


def awaited(
    slow: SlowClients, since: float, address: str = "192.0.2.1", received: int = 0
) -> Request:
    """A request for whose body a thread waits."""
    request = Request(address, START + since, received, is_awaited=True)
    slow.requests.add(request)
    return request


def c(fd: int, **fields: Any) -> Callable[[float], Connection]:
    """A connection, whenever it is looked at."""
    return partial(seen, fd=fd, **fields)


#: The time of a look, the connections there are then, and which of them are cut off, if that is
#: asked.
Look = tuple[float, list[Callable[[float], Connection]], list[int] | None]


ELSEWHERE: Final = ("192.0.2.2", 2)
MUCH: Final = 50 * RATE

#: The bodies that are awaited since moments after START, and looks.
LATE: Final[dict[str, tuple[list[dict[str, Any]], list[Look]]]] = {
    "after the time given, and no other client": (
        [{"since": 0}],
        [(GIVEN, [c(1), c(2, peer=ELSEWHERE)], []), (GIVEN + 1, [c(1), c(2, peer=ELSEWHERE)], [1])],
    ),
    "a request may run for long": ([], [(10 * GIVEN, [c(1)], [])]),
    "a second later for each 64 KiB, of the body read and of all bytes received": (
        [{"since": 0, "received": 20 * RATE}],
        [
            (GIVEN + 10, [c(1)], []),
            (GIVEN + 21, [c(1, came=30 * RATE)], []),
            (GIVEN + 31, [c(1, came=30 * RATE)], [1]),
        ],
    ),
    "much may come within one tick of the kernel's clock": (
        [{"since": 0}],
        [
            (
                GIVEN + 10,
                [c(2, came=30 * RATE, sent_ago=GIVEN + 10), c(1, sent_ago=GIVEN + 10)],
                [1],
            )
        ],
    ),
    "of several the one that came when the waiting began": (
        [{"since": 0}],
        [(GIVEN + 1, [c(1, at=1), c(2), c(7, at=-5)], [2])],
    ),
    "none that came after the waiting began, however close": (
        [{"since": 0}],
        [(GIVEN + 1, [c(1, at=-1.5), c(2, at=0.5)], [1])],
    ),
    "a trickle does not pass for a new request": (
        [{"since": 0}],
        [
            *(
                (float(second), [c(1, came=200 + second, came_ago=0.1)], [])
                for second in range(1, round(GIVEN) + 1)
            ),
            (GIVEN + 2, [c(1, came=300, came_ago=0.1)], [1]),
        ],
    ),
    "what clocks round does not pass for a new request": (
        [{"since": 0}],
        [(1, [c(1, came=MUCH)], []), (GIVEN + 2, [c(1, at=0.5, came=MUCH)], [])],
    ),
    "neither bytes nor times before a new request count": (
        [{"since": 5}],
        [
            (1, [c(1, came=MUCH)], []),
            (6, [c(1, sent_ago=2.0, came_ago=1.0, came=MUCH + 200, taken=300)], []),
            (
                GIVEN + 7,
                [c(1, sent_ago=GIVEN + 3, came_ago=GIVEN + 2, came=MUCH + 200, taken=300)],
                [1],
            ),
        ],
    ),
    "a body announced right behind a question": (
        [{"since": 0}],
        [
            (now, [c(1, sent_ago=GIVEN + 0.9, came_ago=GIVEN + 1)], cut_off)
            for now, cut_off in ((GIVEN + 1, None), (GIVEN + 2, [1]))
        ],
    ),
    "an address in another spelling": (
        [{"since": 0, "address": "2001:db8::1"}],
        [(GIVEN + 1, [c(1, peer=("2001:0db8:0:0::1", 1))], [1])],
    ),
    "an address with its zone": (
        [{"since": 0, "address": "fe80::1"}],
        [(GIVEN + 1, [c(1, peer=("fe80::1%eth0", 1))], [1])],
    ),
}


@pytest.mark.parametrize("case", LATE)
def test_who_is_late_is_cut_off(case: str) -> None:
    """Whose body is awaited for too long, and nobody else."""
    waits, looks = LATE[case]
    slow = SlowClients(GIVEN)
    for wait in waits:
        awaited(slow, **wait)
    for now, connections, cut_off in looks:
        late = slow.late([each(now) for each in connections], START + now).owing
        assert cut_off is None or [connection.fd for connection in late] == cut_off, now


def test_of_several_bodies_the_first_that_is_awaited_finds_its_connection_first() -> None:
    """The result does not depend on the order of a set."""

    def cut_off(*, later_first: bool) -> set[int]:
        slow = SlowClients(GIVEN)
        for _ in range(2):
            awaited(slow, since=0)
        for request, late in zip(slow.requests, (later_first, not later_first), strict=True):
            request.since = START + (0.2 if late else 0.1)
        now = GIVEN + 1
        several = [seen(now, fd, at=at) for fd, at in {1: -0.2, 2: 0.0, 3: 0.5}.items()]
        return {connection.fd for connection in slow.late(several, START + now).owing}

    assert cut_off(later_first=False) == cut_off(later_first=True) == {1, 2}


def test_an_answer_is_to_be_taken_in_the_time_given() -> None:
    """With a second more per 64 KiB read, and a new deadline for each response."""
    slow = SlowClients(GIVEN)
    for after, taken, is_owed, is_late in (
        (0, 100, True, False),
        (GIVEN + 1, 100 + 2 * RATE, True, False),
        (GIVEN + 3, 100 + 2 * RATE, True, True),
        (GIVEN + 4, 200 + 2 * RATE, False, False),
        (GIVEN + 5, 200 + 2 * RATE, True, False),
        (2 * GIVEN + 6, 200 + 2 * RATE, True, True),
    ):
        mine = seen(after, 1, is_owed=is_owed, taken=taken)
        assert bool(slow.late([mine], START + after).untaken) is is_late, after


def silent(
    slow: SlowClients, *connections: Connection, now: float, later: float = 2.0
) -> list[int]:
    """The connections that are cut off because no whole request has come, when they are seen for
    the second time."""
    slow.late([*connections], now)
    now += later
    aged = [
        replace(each, sent_ago=each.sent_ago + later, came_ago=each.came_ago + later)
        for each in connections
    ]
    return [connection.fd for connection in slow.late(aged, now).silent]


def test_who_waited_to_be_accepted_has_had_its_time() -> None:
    """A connection without a whole request ends as long after its beginning as any, however late
    the server accepts it; one in its time, and one that gets its answer, stay."""
    now = START + GIVEN + 1
    old, new = asking(1, at=START, now=now), asking(2, at=now - 5, now=now)
    answered = replace(asking(3, at=START, now=now), taken=100)
    assert silent(SlowClients(GIVEN), old, new, answered, now=now) == [1]
    mute = replace(asking(4, at=START - 2, now=now), came=0, came_ago=now - START + 2)
    assert [each.fd for each in SlowClients(GIVEN).late([mute, old], now).silent] == [4]


def test_a_whole_request_that_runs_for_long_is_never_cut_off(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Nor is any connection of its address that may be its own; one that came later is not."""
    now = START + GIVEN + 10
    slow = SlowClients(GIVEN)
    at = START + 1
    monkeypatch.setattr(slow_clients, "time", SimpleNamespace(monotonic=lambda: at))
    served = slow.begin("192.0.2.1")
    own, other = asking(1, at=START, now=now), asking(2, at=START + 5, now=now)
    elsewhere = replace(asking(3, at=START, now=now), peer=("192.0.2.9", 3))
    assert silent(slow, own, other, elsewhere, now=now) == [2, 3]
    at = now + 2
    slow.end(served)
    assert silent(slow, own, now=now + 1) == [], "the response may not have been sent yet"
    assert silent(slow, own, now=now + 6) == [1]
    assert not slow.requests


def test_a_request_whose_body_is_awaited_is_not_whole() -> None:
    """Its connection ends too, as long after its beginning as any."""
    now = START + GIVEN + 1
    slow = SlowClients(GIVEN)
    request = awaited(slow, since=GIVEN)
    assert silent(slow, asking(1, at=START, now=now), now=now) == [1]
    request.is_awaited = False
    assert silent(slow, asking(1, at=START, now=now), now=now) == []


def test_a_request_whose_body_took_its_time_is_whole_once_it_has_come() -> None:
    """Its last bytes came after it had reached the application."""
    now = START + GIVEN + 10
    slow = SlowClients(GIVEN)
    slow.requests.add(Request("192.0.2.1", START, read_at=START + 6))
    own = replace(asking(1, at=START, now=now), came_ago=now - START - 5)
    other = replace(asking(2, at=START, now=now), came_ago=now - START - 8)
    assert silent(slow, own, other, now=now) == [2]


def test_no_connection_is_cut_off_that_may_be_that_of_a_whole_request() -> None:
    """One that came when the late one came, from the same address, and still runs."""
    slow = SlowClients(GIVEN)
    awaited(slow, since=0)
    whole = Request("192.0.2.1", START + 0.2)
    slow.requests.add(whole)
    now = GIVEN + 1
    late, other = seen(now, 1), seen(now, 2, at=0.2)
    assert slow.late([late, other], START + now).owing == []
    whole.ended_at = START + now
    gone = START + now + 3
    assert [each.fd for each in slow.late([seen(gone - START, 1)], gone).owing] == [1]


def test_a_stream_that_has_begun_is_not_confused_with_a_body_that_is_late() -> None:
    """Something has been sent on its connection, however long ago."""
    slow = SlowClients(GIVEN)
    awaited(slow, since=0)
    slow.requests.add(Request("192.0.2.1", START, is_streamed=True))
    now = GIVEN + 20
    late, follower = seen(now, 1), seen(now, 2, sent_ago=GIVEN + 1, taken=300)
    assert [each.fd for each in slow.late([follower, late], START + now).owing] == [1]
    assert slow.late([follower], START + now).owing == []


def test_who_rests_longest_makes_room() -> None:
    """If three quarters of the places are taken; never one whose request is running."""
    now = START

    def resting(port: int, *, seconds: float) -> Connection:
        asked = asking(port, at=now - seconds - 0.1, now=now)
        return replace(asked, sent_ago=seconds, taken=300)

    busy = [asking(port, at=now - 60, now=now) for port in range(3)]
    resters = [resting(10 + port, seconds=2.0 + port) for port in range(4)]
    just_answered = resting(20, seconds=0.2)
    never_asked = replace(asking(30, at=now - 60, now=now), sent_ago=60.0, came_ago=60.0, came=0)
    connections = [*busy, *resters, just_answered, never_asked]
    for given, most, gone in (
        (connections, 12, []),
        (connections, 11, [13, 12, 11, 10]),
        ([*connections, *busy], 15, [13, 12, 11, 10]),
        (resters, 4, [13, 12]),
    ):
        assert [connection.fd for connection in in_the_way(given, most)] == gone


def test_an_end_after_the_deadline_is_one_by_the_deadline() -> None:
    """TimeoutError if the stream ends early after its deadline; before it, the bytes received."""

    def watched(slow: SlowClients) -> WatchedBody:
        return WatchedBody(BytesIO(b"abc"), slow.begin("192.0.2.1"), slow)

    assert watched(SlowClients(GIVEN)).read(5) == b"abc"
    hasty = SlowClients(-1.0)
    assert watched(hasty).read(3) == b"abc"
    with pytest.raises(TimeoutError, match="3 bytes came before the deadline"):
        watched(hasty).read(5)
    assert not any(request.is_awaited for request in hasty.requests)


@pytest.mark.parametrize(
    ("soft", "hard", "raised", "connections"),
    [
        (1024, INFINITE, WANTED, CONNECTIONS_MAX),
        (1024, 2000, 2000, 2000 - FILES_BESIDES),
        (56, 64, 64, 24),
        (INFINITE, INFINITE, None, CONNECTIONS_MAX),
        (WANTED, WANTED, None, CONNECTIONS_MAX),
    ],
)
def test_files_leave_room_for_connections(
    soft: int,
    hard: int,
    raised: int | None,
    connections: int,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The limit of open files is raised if possible; if it stays low, connections get three eighths
    of it, and the log says what to raise."""
    limits = [(soft, hard)]
    monkeypatch.setattr(resource, "getrlimit", lambda which: limits[-1])
    monkeypatch.setattr(resource, "setrlimit", lambda which, both: limits.append(both))
    assert connections_for_files(CONNECTIONS_MAX) == connections
    assert (f"raise the hard limit of open files to {WANTED}" in caplog.text) == (
        connections < CONNECTIONS_MAX
    )
    assert limits[1:] == ([] if raised is None else [(raised, hard)])


def test_the_kernel_knows_the_connections_of_a_port() -> None:
    """Bytes received, unacknowledged and acknowledged; one can be shut down so that the server can
    still answer."""
    with (
        socket.create_server(("127.0.0.1", 0)) as listening,
        socket.create_connection(listening.getsockname()) as client,
    ):
        port = listening.getsockname()[1]
        assert listens(os.getpid(), port)
        server, peer = listening.accept()
        with server:
            client.sendall(b"question")
            assert server.recv(8) == b"question"
            (connection,) = connections_to(port)
            assert (connection.fd, connection.peer, connection.came) == (server.fileno(), peer, 8)
            assert (connection.is_owed, connection.taken) == (False, 0)
            server.setblocking(False)
            while True:
                try:
                    server.send(b"0" * 65536)
                except BlockingIOError:
                    break
            (connection,) = connections_to(port)
            assert connection.is_owed
            cut(replace(connection, peer=("127.0.0.1", 1)), socket.SHUT_RD)
            with pytest.raises(BlockingIOError):
                server.recv(1)
            cut(connection, socket.SHUT_RD)
            assert server.recv(1) == b""
            cut(connection, socket.SHUT_RDWR)
            with pytest.raises(BrokenPipeError):
                server.send(b"0")
        cut(connection, socket.SHUT_RDWR)
        assert not list(connections_to(port))
    assert not listens(os.getpid(), port)


def answered(fd: int, at: float) -> Callable[[float], Connection]:
    """A connection that got its response in the clock tick in which the request came."""
    return lambda now: seen(now, fd, sent_ago=now - at, came_ago=now - at, taken=400)


@pytest.mark.parametrize(
    ("connections", "has_gone"),
    [
        ([], True),
        ([c(1)], False),
        # It waited for a thread.
        ([c(1, at=-0.5)], False),
        # A later request.
        ([c(1, at=1)], True),
        ([answered(1, -60)], True),
        # Answered since.
        ([answered(1, 1)], True),
        ([c(1, peer=ELSEWHERE)], True),
        # The kernel's clock is too coarse to tell.
        ([answered(1, -0.001)], False),
        # A second request behind the first.
        ([c(1, came_ago=0.1)], False),
    ],
)
def test_a_client_has_gone_when_no_connection_of_its_address_can_be_its_own(
    connections: list[Any], has_gone: bool
) -> None:
    """Granian closes the connection of a client that disconnects; others from its address may
    remain. The request came at START, and the check is two seconds later."""
    slow = SlowClients(GIVEN)
    assert not slow.has_gone("192.0.2.1", START), "before any check"
    slow.note([each(2) for each in connections], START + 2, START + 2)
    assert slow.has_gone("192.0.2.1", START) is has_gone


def test_a_check_during_the_request_takes_nobody_for_gone() -> None:
    """Each connection was seen at some moment between the begin and the end of the check."""
    for begin, end, shown in ((0.5, 0.5, []), (1, 7, [seen(2, 1)])):
        slow = SlowClients(GIVEN)
        slow.note(shown, START + begin, START + end)
        assert not slow.has_gone("192.0.2.1", START)
