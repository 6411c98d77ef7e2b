# SPDX-License-Identifier: Apache-2.0
"""Who is slow: whose body is late, and who does not take an answer."""

from __future__ import annotations

import os
import resource
import socket
from dataclasses import replace
from io import BytesIO

import pytest

from berth.cli.connections import Connection, connections_to, cut, listens
from berth.cli.slow_clients import RATE, SlowClients, Wait, in_the_way
from berth.cli.workers import CONNECTIONS_MAX, FILES_BESIDES, connections_for_files

#: Of the limits of open files: none, and as many as a worker wants.
INFINITE = resource.RLIM_INFINITY
WANTED = CONNECTIONS_MAX + FILES_BESIDES

#: Seconds that a client has.
GIVEN = 30.0

START = 1000.0


def asking(port: int, *, at: float, now: float, came: int = 200) -> Connection:
    """A new connection on which a request came at some time, and nothing was answered."""
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
    """Not before, and no connection of anybody else's pays for it."""
    slow = SlowClients(GIVEN)
    awaited(slow, since=START)

    def connections(now: float) -> list[Connection]:
        mine = asking(1, at=START, now=now)
        return [mine, replace(mine, fd=2, peer=("192.0.2.2", 2))]

    assert not slow.late(connections(START + GIVEN), START + GIVEN).owing
    now = START + GIVEN + 1
    assert [one.fd for one in slow.late(connections(now), now).owing] == [1]


def test_nobody_is_cut_off_while_no_body_is_late() -> None:
    """A request may run for long."""
    now = START + 10 * GIVEN
    assert not slow_late([asking(1, at=START, now=now)], now)


def slow_late(connections: list[Connection], now: float) -> list[int]:
    """Whom somebody would cut off who waits for no body."""
    return [one.fd for one in SlowClients(GIVEN).late(connections, now).owing]


def test_the_deadline_moves_on_with_what_comes() -> None:
    """A second for each 64 KiB, by what was read of the body and by what came at all."""
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
    """The kernel's clock ticks some hundred times a second, and much comes in less than that."""
    slow = SlowClients(GIVEN)
    awaited(slow, since=START)
    now = START + GIVEN + 10
    late = asking(1, at=START, now=now)
    quick = asking(2, at=START, now=now, came=30 * RATE)
    both = [replace(one, sent_ago=one.came_ago) for one in (quick, late)]
    assert [one.fd for one in slow.late(both, now).owing] == [1]


def test_of_several_it_is_the_one_that_came_when_the_waiting_began() -> None:
    """The other two are whole requests of the same address that run for long."""
    slow = SlowClients(GIVEN)
    awaited(slow, since=START)
    now = START + GIVEN + 1
    several = [asking(port, at=START - port + 2, now=now) for port in (1, 2, 7)]
    assert [one.fd for one in slow.late(several, now).owing] == [2]


def test_of_several_bodies_the_first_that_is_awaited_finds_its_connection_first() -> None:
    """Whom it costs his connection does not depend on the order of a set, which has none."""

    def cut_off(*, later_first: bool) -> set[int]:
        slow = SlowClients(GIVEN)
        for _ in range(2):
            awaited(slow, since=START)
        for wait, late in zip(slow.waits, (later_first, not later_first), strict=True):
            wait.since = START + (0.2 if late else 0.1)
        now = START + GIVEN + 1
        asked = {1: START - 0.2, 2: START, 3: START + 0.5}
        several = [asking(port, at=at, now=now) for port, at in asked.items()]
        return {one.fd for one in slow.late(several, now).owing}

    assert cut_off(later_first=False) == cut_off(later_first=True) == {1, 2}


def test_a_request_that_came_after_the_waiting_began_is_not_the_awaited_one() -> None:
    """However near in time it is."""
    slow = SlowClients(GIVEN)
    awaited(slow, since=START)
    now = START + GIVEN + 1
    several = [asking(1, at=START - 1.5, now=now), asking(2, at=START + 0.5, now=now)]
    assert [one.fd for one in slow.late(several, now).owing] == [1]


def test_a_trickle_does_not_pass_for_a_new_request() -> None:
    """When a request came is remembered from when it was first seen."""
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
    """One who has sent much is waited for, though he seems to have connected later than before."""
    slow = SlowClients(GIVEN)
    awaited(slow, since=START)
    slow.late([asking(1, at=START, now=START + 1, came=50 * RATE)], START + 1)
    now = START + GIVEN + 2
    rested = asking(1, at=START + 0.5, now=now, came=50 * RATE)
    assert not slow.late([rested], now).owing


def test_a_new_request_on_an_old_connection_begins_anew() -> None:
    """Neither what came before it counts for it, nor when."""
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
    """What was sent last, the answer to the question, went out after all that came."""
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
    """The server and the kernel need not agree on it."""
    slow = SlowClients(GIVEN)
    awaited(slow, since=START, address=own)
    now = START + GIVEN + 1
    mine = replace(asking(1, at=START, now=now), peer=(theirs, 1))
    assert slow.late([mine], now).owing == [mine]


def test_an_answer_is_to_be_taken_in_the_time_given() -> None:
    """A second more for each 64 KiB that is taken of it, and anew for each answer."""
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


def test_who_rests_longest_makes_room() -> None:
    """Where three in four places are taken; never on whose request somebody works."""
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
    assert [one.fd for one in in_the_way(connections, 11)] == [13, 12, 11, 10]
    assert [one.fd for one in in_the_way([*connections, *busy], 15)] == [13, 12, 11, 10]
    assert [one.fd for one in in_the_way(resters, 4)] == [13, 12]


def test_an_end_after_the_deadline_is_one_by_the_deadline() -> None:
    """TimeoutError where the stream ends early after it; before it, what came."""
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
        (56, 64, 64, 32),
        (INFINITE, INFINITE, None, CONNECTIONS_MAX),
        (WANTED, WANTED, None, CONNECTIONS_MAX),
    ],
)
def test_files_leave_room_for_connections(
    soft: int, hard: int, raised: int | None, connections: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The limit is raised as far as it may be; where it stays low, half of the files are theirs."""
    limits = [(soft, hard)]
    monkeypatch.setattr(resource, "getrlimit", lambda which: limits[-1])
    monkeypatch.setattr(resource, "setrlimit", lambda which, both: limits.append(both))
    assert connections_for_files() == connections
    assert limits[1:] == ([] if raised is None else [(raised, hard)])


def test_the_kernel_knows_the_connections_of_a_port() -> None:
    """What came, what is owed and what was taken; and one can be shut so that it still answers."""
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
            (found,) = connections_to(port)
            assert (found.fd, found.peer, found.came) == (server.fileno(), peer, 8)
            assert (found.is_owed, found.taken) == (False, 0)
            server.setblocking(False)
            while True:
                try:
                    server.send(b"0" * 65536)
                except BlockingIOError:
                    break
            (found,) = connections_to(port)
            assert found.is_owed
            cut(replace(found, peer=("127.0.0.1", 1)), socket.SHUT_RD)
            with pytest.raises(BlockingIOError):
                server.recv(1)
            cut(found, socket.SHUT_RD)
            assert server.recv(1) == b""
            cut(found, socket.SHUT_RDWR)
            with pytest.raises(BrokenPipeError):
                server.send(b"0")
        cut(found, socket.SHUT_RDWR)
        assert not list(connections_to(port))
    assert not listens(os.getpid(), port)


def resting(port: int, *, answered_at: float, now: float) -> Connection:
    """A connection on which a request was answered at some time, in the very tick it came in."""
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
    """What a look at these connections tells of a client that asked at `START`."""
    slow = SlowClients(GIVEN)
    slow.note(list(connections), looked, looked)
    return slow.has_gone("192.0.2.1", START)


def test_a_client_has_gone_when_no_connection_of_its_address_can_be_its_own() -> None:
    """Granian closes the connection of a client that went; others of the address may be there."""
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
    """Not before a look, nor by one that began with the request; and where the kernel's ticks do
    not tell, nobody has."""
    assert not SlowClients(GIVEN).has_gone("192.0.2.1", START)
    assert not has_gone(looked=START + 0.5)
    now = START + 2
    assert not has_gone(resting(1, answered_at=START - 0.001, now=now), looked=now)
    more_came = replace(asking(1, at=START, now=now), came_ago=0.1)
    assert not has_gone(more_came, looked=now), "a second request behind the first"


def test_a_look_that_takes_long_takes_nobody_for_gone() -> None:
    """Each connection was seen at some moment between its begin and its end."""
    slow = SlowClients(GIVEN)
    seen_at = START + 2
    slow.note([asking(1, at=START, now=seen_at)], seen_at - 1, seen_at + 5)
    assert not slow.has_gone("192.0.2.1", START)
