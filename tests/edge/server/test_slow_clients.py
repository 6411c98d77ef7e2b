# SPDX-License-Identifier: Apache-2.0
"""Slow clients: late bodies, and responses that are not read."""

from __future__ import annotations

import os
import resource
import socket
from dataclasses import replace
from io import BytesIO
from types import SimpleNamespace

import pytest

from berth.edge.server import slow_clients
from berth.edge.server.connections import Connection, connections_to, cut, listens
from berth.edge.server.slow_clients import RATE, Served, SlowClients, Wait, in_the_way
from berth.edge.server.workers import CONNECTIONS_MAX, FILES_BESIDES, connections_for_files

#: Of the limits of open files: none, and as many as a worker wants.
INFINITE = resource.RLIM_INFINITY
WANTED = CONNECTIONS_MAX + FILES_BESIDES

#: Seconds that a client has.
GIVEN = 30.0

START = 1000.0


def asking(port: int, *, at: float, now: float, came: int = 200) -> Connection:
    """A new connection that has received a request and sent no response."""
    return Connection(
        fd=port,
        peer=("192.0.2.1", port),
        sent_ago=now - at + 0.001,
        came_ago=now - at,
        came=came,
        is_owed=False,
        taken=0,
    )


def awaited(slow: SlowClients, *, since: float, address: str = "192.0.2.1") -> Wait:
    """A body that a thread waits for."""
    wait = Wait(address, since)
    slow.waits.add(wait)
    return wait


def test_a_body_is_late_after_the_time_given() -> None:
    """Not earlier, and no other client's connection is cut off."""
    slow = SlowClients(GIVEN)
    awaited(slow, since=START)

    def connections(now: float) -> list[Connection]:
        mine = asking(1, at=START, now=now)
        return [mine, replace(mine, fd=2, peer=("192.0.2.2", 2))]

    assert not slow.late(connections(START + GIVEN), START + GIVEN).owing
    now = START + GIVEN + 1
    assert [connection.fd for connection in slow.late(connections(now), now).owing] == [1]


def test_nobody_is_cut_off_while_no_body_is_late() -> None:
    """A request may run for long."""
    now = START + 10 * GIVEN
    assert not slow_late([asking(1, at=START, now=now)], now)


def slow_late(connections: list[Connection], now: float) -> list[int]:
    """The connections that would be cut off although no body is awaited."""
    return [connection.fd for connection in SlowClients(GIVEN).late(connections, now).owing]


def test_the_deadline_moves_on_with_what_comes() -> None:
    """By a second per 64 KiB, of the body read and of all bytes received."""
    slow = SlowClients(GIVEN)
    wait = awaited(slow, since=START)
    wait.received = 20 * RATE
    now = START + GIVEN + 10
    mine = asking(1, at=START, now=now)
    assert not slow.late([mine], now).owing
    now = START + GIVEN + 21
    mine = asking(1, at=START, now=now, came=30 * RATE)
    assert not slow.late([mine], now).owing
    now = START + GIVEN + 31
    mine = asking(1, at=START, now=now, came=30 * RATE)
    assert slow.late([mine], now).owing == [mine]


def test_what_came_with_the_connection_moves_the_deadline_on_too() -> None:
    """The kernel's clock has a hundred ticks a second, and much can arrive in one."""
    slow = SlowClients(GIVEN)
    awaited(slow, since=START)
    now = START + GIVEN + 10
    late = asking(1, at=START, now=now)
    quick = asking(2, at=START, now=now, came=30 * RATE)
    both = [replace(connection, sent_ago=connection.came_ago) for connection in (quick, late)]
    assert [connection.fd for connection in slow.late(both, now).owing] == [1]


def test_of_several_it_is_the_one_that_came_when_the_waiting_began() -> None:
    """The other two connections from this address carry complete requests that take long."""
    slow = SlowClients(GIVEN)
    awaited(slow, since=START)
    now = START + GIVEN + 1
    several = [asking(port, at=START - port + 2, now=now) for port in (1, 2, 7)]
    assert [connection.fd for connection in slow.late(several, now).owing] == [2]


def test_of_several_bodies_the_first_that_is_awaited_finds_its_connection_first() -> None:
    """The result does not depend on the order of a set."""

    def cut_off(*, later_first: bool) -> set[int]:
        slow = SlowClients(GIVEN)
        for _ in range(2):
            awaited(slow, since=START)
        for wait, late in zip(slow.waits, (later_first, not later_first), strict=True):
            wait.since = START + (0.2 if late else 0.1)
        now = START + GIVEN + 1
        asked = {1: START - 0.2, 2: START, 3: START + 0.5}
        several = [asking(port, at=at, now=now) for port, at in asked.items()]
        return {connection.fd for connection in slow.late(several, now).owing}

    assert cut_off(later_first=False) == cut_off(later_first=True) == {1, 2}


def test_a_request_that_came_after_the_waiting_began_is_not_the_awaited_one() -> None:
    """However close it is."""
    slow = SlowClients(GIVEN)
    awaited(slow, since=START)
    now = START + GIVEN + 1
    several = [asking(1, at=START - 1.5, now=now), asking(2, at=START + 0.5, now=now)]
    assert [connection.fd for connection in slow.late(several, now).owing] == [1]


def test_a_trickle_does_not_pass_for_a_new_request() -> None:
    """The time of a request is remembered from the first check that saw it."""
    slow = SlowClients(GIVEN)
    awaited(slow, since=START)
    for second in range(1, round(GIVEN) + 1):
        now = START + second
        mine = replace(asking(1, at=START, now=now, came=200 + second), came_ago=0.1)
        assert not slow.late([mine], now).owing
    now = START + GIVEN + 2
    late = replace(asking(1, at=START, now=now, came=300), came_ago=0.1)
    assert slow.late([late], now).owing == [late]


def test_what_clocks_round_does_not_pass_for_a_new_request() -> None:
    """A connection that has sent much is waited for, although its start seems to be later than at
    the last check."""
    slow = SlowClients(GIVEN)
    awaited(slow, since=START)
    slow.late([asking(1, at=START, now=START + 1, came=50 * RATE)], START + 1)
    now = START + GIVEN + 2
    rested = asking(1, at=START + 0.5, now=now, came=50 * RATE)
    assert not slow.late([rested], now).owing


def test_a_new_request_on_an_old_connection_begins_anew() -> None:
    """Neither the bytes nor the times before it count."""
    slow = SlowClients(GIVEN)
    first = asking(1, at=START, now=START + 1, came=50 * RATE)
    slow.late([first], START + 1)
    awaited(slow, since=START + 5)
    now = START + 6
    second = replace(first, sent_ago=2.0, came_ago=1.0, came=50 * RATE + 200, taken=300)
    assert not slow.late([second], now).owing
    now = START + GIVEN + 7
    second = replace(second, sent_ago=GIVEN + 3, came_ago=GIVEN + 2)
    assert slow.late([second], now).owing == [second]


def test_a_body_announced_right_behind_a_question_is_found() -> None:
    """The response to the first request was sent after all of its bytes had arrived."""
    slow = SlowClients(GIVEN)
    awaited(slow, since=START)
    now = START + GIVEN + 1
    answered = replace(asking(1, at=START, now=now), sent_ago=GIVEN + 0.9, came_ago=GIVEN + 1)
    slow.late([answered], now)
    assert slow.late([answered], now + 1).owing == [answered]


@pytest.mark.parametrize(
    ("own", "theirs"),
    [("2001:db8::1", "2001:0db8:0:0::1"), ("fe80::1", "fe80::1%eth0")],
)
def test_an_address_may_be_spelt_otherwise(own: str, theirs: str) -> None:
    """The server and the kernel may spell it differently."""
    slow = SlowClients(GIVEN)
    awaited(slow, since=START, address=own)
    now = START + GIVEN + 1
    mine = replace(asking(1, at=START, now=now), peer=(theirs, 1))
    assert slow.late([mine], now).owing == [mine]


def test_an_answer_is_to_be_taken_in_the_time_given() -> None:
    """With a second more per 64 KiB read, and a new deadline for each response."""
    slow = SlowClients(GIVEN)

    def owed(now: float, *, taken: int, is_owed: bool = True) -> list[Connection]:
        mine = replace(asking(1, at=START, now=now), is_owed=is_owed, taken=taken)
        return slow.late([mine], now).untaken

    assert not owed(START, taken=100)
    assert not owed(START + GIVEN + 1, taken=100 + 2 * RATE)
    assert owed(START + GIVEN + 3, taken=100 + 2 * RATE)
    assert not owed(START + GIVEN + 4, taken=200 + 2 * RATE, is_owed=False)
    assert not owed(START + GIVEN + 5, taken=200 + 2 * RATE)
    assert owed(START + 2 * GIVEN + 6, taken=200 + 2 * RATE)


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
    served = slow.begin("192.0.2.1", None)
    own, other = asking(1, at=START, now=now), asking(2, at=START + 5, now=now)
    elsewhere = replace(asking(3, at=START, now=now), peer=("192.0.2.9", 3))
    assert silent(slow, own, other, elsewhere, now=now) == [2, 3]
    at = now + 2
    slow.end(served)
    assert silent(slow, own, now=now + 1) == [], "the response may not have been sent yet"
    assert silent(slow, own, now=now + 6) == [1]
    assert not slow.served


def test_a_request_whose_body_is_awaited_is_not_whole() -> None:
    """Its connection ends too, as long after its beginning as any."""
    now = START + GIVEN + 1
    slow = SlowClients(GIVEN)
    wait = awaited(slow, since=now - 1)
    slow.served.add(Served("192.0.2.1", now - 1, wait))
    assert silent(slow, asking(1, at=START, now=now), now=now) == [1]
    slow.waits.clear()
    assert silent(slow, asking(1, at=START, now=now), now=now) == []


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
    assert in_the_way(connections, 12) == []
    assert [connection.fd for connection in in_the_way(connections, 11)] == [13, 12, 11, 10]
    assert [connection.fd for connection in in_the_way([*connections, *busy], 15)] == [
        13,
        12,
        11,
        10,
    ]
    assert [connection.fd for connection in in_the_way(resters, 4)] == [13, 12]


def test_an_end_after_the_deadline_is_one_by_the_deadline() -> None:
    """TimeoutError if the stream ends early after its deadline; before it, the bytes received."""
    assert SlowClients(GIVEN).watched(BytesIO(b"abc"), "192.0.2.1").read(5) == b"abc"
    hasty = SlowClients(-1.0)
    assert hasty.watched(BytesIO(b"abc"), "192.0.2.1").read(3) == b"abc"
    with pytest.raises(TimeoutError, match="3 bytes came before the deadline"):
        hasty.watched(BytesIO(b"abc"), "192.0.2.1").read(5)
    assert not hasty.waits


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


def resting(port: int, *, answered_at: float, now: float) -> Connection:
    """A connection that got its response in the clock tick in which the request came."""
    return Connection(
        fd=port,
        peer=("192.0.2.1", port),
        sent_ago=now - answered_at,
        came_ago=now - answered_at,
        came=200,
        is_owed=False,
        taken=400,
    )


def has_gone(*connections: Connection, looked: float) -> bool:
    """The result of a check of these connections for a client whose request came at `START`."""
    slow = SlowClients(GIVEN)
    slow.note(list(connections), looked, looked)
    return slow.has_gone("192.0.2.1", START)


def test_a_client_has_gone_when_no_connection_of_its_address_can_be_its_own() -> None:
    """Granian closes the connection of a client that disconnects; others from its address may
    remain."""
    now = START + 2
    assert has_gone(looked=now)
    assert not has_gone(asking(1, at=START, now=now), looked=now)
    assert not has_gone(asking(1, at=START - 0.5, now=now), looked=now), "it waited for a thread"
    assert has_gone(asking(1, at=START + 1, now=now), looked=now), "a later request"
    assert has_gone(resting(1, answered_at=START - 60, now=now), looked=now)
    assert has_gone(resting(1, answered_at=START + 1, now=now), looked=now), "answered since"
    elsewhere = replace(asking(1, at=START, now=now), peer=("192.0.2.2", 1))
    assert has_gone(elsewhere, looked=now)


def test_nobody_has_gone_who_may_be_there() -> None:
    """Before a check, and after one that began with the request, no client counts as gone; nor if
    the kernel's clock is too coarse to tell."""
    assert not SlowClients(GIVEN).has_gone("192.0.2.1", START)
    assert not has_gone(looked=START + 0.5)
    now = START + 2
    assert not has_gone(resting(1, answered_at=START - 0.001, now=now), looked=now)
    more_came = replace(asking(1, at=START, now=now), came_ago=0.1)
    assert not has_gone(more_came, looked=now), "a second request behind the first"


def test_a_look_that_takes_long_takes_nobody_for_gone() -> None:
    """Each connection was seen at some moment between the begin and the end of the check."""
    slow = SlowClients(GIVEN)
    seen_at = START + 2
    slow.note([asking(1, at=START, now=seen_at)], seen_at - 1, seen_at + 5)
    assert not slow.has_gone("192.0.2.1", START)
