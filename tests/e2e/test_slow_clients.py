# SPDX-License-Identifier: Apache-2.0
"""Slow clients, and clients that are not affected by them."""

from __future__ import annotations

import json
import re
import resource
import socket
import uuid
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from berth.cli.failure import ExitCode
from berth.edge.server.workers import CONNECTIONS_MAX, FILES_BESIDES
from tests.client import Client
from tests.e2e.serving import BERTH, PATIENCE, Service, serving, wait_until
from tests.e2e.test_overload import claim, host_with_room, used
from tests.e2e.test_serve import sockets
from tests.exposed import scrape

#: Far more than a worker runs or lets wait in line.
MANY = 400
FEW = 4

#: So many answers of some 10 KB fill the buffers of both ends, and lie in the server beyond that.
ANSWERS_NOT_TAKEN = 1000

PATIENT = {"OS_BERTH__CLIENT_SECONDS_MAX": "3600"}
IMPATIENT = {"OS_BERTH__CLIENT_SECONDS_MAX": "2"}

HEAD = (
    b"PUT /allocations/%s HTTP/1.1\r\nHost: berth\r\nX-Auth-Token: admin\r\n"
    b"OpenStack-API-Version: placement 1.39\r\nContent-Type: application/json\r\n"
)
ASKS = (
    b"GET /traits HTTP/1.1\r\nHost: berth\r\nX-Auth-Token: admin\r\n"
    b"OpenStack-API-Version: placement 1.6\r\n\r\n"
)

#: Thirty amounts of which two go into a cell, but not three: only trying tells.
PACKS = (
    "GET /allocation_candidates?limit=10&group_policy=none"
    + "".join(f"&resources_{n}=VGPU:{n}" for n in range(334, 364))
    + " HTTP/1.1\r\nHost: berth\r\nX-Auth-Token: admin\r\n"
    "OpenStack-API-Version: placement 1.39\r\n\r\n"
).encode()
ENDED_EARLY = "berth_candidates_searches_ended_early_total"

LOOKS = b"GET / HTTP/1.1\r\nHost: berth\r\n\r\n"


def raise_files(number: int) -> tuple[int, int]:
    """Raise this process's limit of open files; return the old limits."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < number:
        resource.setrlimit(resource.RLIMIT_NOFILE, (number, hard))
    return soft, hard


@contextmanager
def clients(
    service: Service, number: int, sends: bytes, addresses: Iterator[str] | None = None
) -> Iterator[list[socket.socket]]:
    """Connections on which no more than this is sent.

    Args:
        addresses: those of the clients; None: all have the same.
    """
    with ExitStack() as open_until_the_end:
        slow = []
        for _ in range(number):
            connection = socket.create_connection(
                (service.host, service.port),
                timeout=PATIENCE,
                source_address=(next(addresses), 0) if addresses else None,
            )
            slow.append(open_until_the_end.enter_context(connection))
            connection.sendall(sends)
            connection.setblocking(False)
        yield slow


def head(*more: bytes) -> bytes:
    """The headers of a claim, with further ones."""
    consumer = str(uuid.uuid4()).encode()
    return HEAD % consumer + b"".join(line + b"\r\n" for line in more) + b"\r\n"


def announced() -> bytes:
    """A body that is announced and never sent."""
    return head(b"Content-Length: 300")


def begun() -> bytes:
    """The begin of a body, and never the rest."""
    return head(b"Content-Length: 300") + b'{"allocations": {'


def chunked() -> bytes:
    """One chunk of a body, and never the next."""
    return head(b"Transfer-Encoding: chunked") + b'3\r\n{"a\r\n'


def pipelined() -> bytes:
    """A request, and right behind it the announcement of a body."""
    return ASKS.replace(b"/traits", b"/traits?name=in:NO") + announced()


def headless() -> bytes:
    """Headers that never end."""
    return HEAD % b"anything" + b"X-Slow: "


def asks_on(connection: socket.socket) -> None:
    """Send more requests than responses are read."""
    unsent = ASKS * ANSWERS_NOT_TAKEN
    while unsent:
        try:
            unsent = unsent[connection.send(unsent) :]
        except BlockingIOError:
            return


def is_there(connection: socket.socket) -> bool:
    """Whether the service keeps a connection on which it has not answered yet."""
    try:
        connection.recv(1)
    except BlockingIOError:
        return True
    return False


def received(connection: socket.socket) -> bytes:
    """Everything that was received until the connection ended."""
    connection.settimeout(PATIENCE)
    return b"".join(iter(lambda: connection.recv(65536), b""))


def connected(service: Service) -> int:
    """The number of connections to the service."""
    return sum(port == service.port and state == "01" for port, _, state, _ in sockets())


@pytest.mark.parametrize("accept", ["application/jsonl", "text/event-stream"])
def test_the_places_of_watchers_whose_clients_have_gone_are_free(
    tmp_path: Path, accept: str
) -> None:
    """Long before they would be answered: others wait there then."""
    few = {"OS_BERTH__WATCHERS_MAX": "2"}
    with serving(tmp_path, "--workers", "1", variables=few) as service:
        client = Client.at(service.url)
        revision = json.loads(client.get("/berth/v1/fleet").text.splitlines()[0])["revision"]
        path = f"/berth/v1/changes?after={revision}"
        watches = (
            f"GET {path}&wait=60 HTTP/1.1\r\nHost: berth\r\nX-Auth-Token: admin\r\n"
            f"Accept: {accept}\r\n\r\n"
        ).encode()
        with clients(service, 2, watches) as gone:
            wait_until(lambda: watching(client) == 2, "both to wait")
            assert client.get(f"{path}&wait=1").status == 503
            for connection in gone:
                connection.close()
            wait_until(lambda: watching(client) == 0, "their places to be free")
        assert client.get(f"{path}&wait=1").status == 200


def watching(client: Client) -> float:
    """How many requests wait for changes."""
    return scrape(client).value("berth_watchers")


def test_searches_whose_clients_have_gone_end(tmp_path: Path) -> None:
    """Sixteen searches that would take an hour end when their clients disconnect; a simple read is
    answered meanwhile."""
    patient = {"OS_BERTH__CANDIDATES_TIME_BUDGET": "3600", "OS_BERTH__WAIT_SECONDS_MAX": "3600"}
    with serving(tmp_path, "--workers", "1", variables=patient) as service:
        client = Client.at(service.url)
        host = host_with_cells(client)
        with clients(service, 16, PACKS) as gone:
            wait_until(lambda: running(client) > 0, "searches to run")
            assert client.get(f"/resource_providers/{host}").status == 200
            assert scrape(client).value(ENDED_EARLY, reason="gone") == 0
            for connection in gone:
                connection.close()
            wait_until(
                lambda: scrape(client).value(ENDED_EARLY, reason="gone") > 1, "searches to end"
            )
        assert client.get("/allocation_candidates?resources=VGPU:1000").status == 200


def running(client: Client) -> float:
    """The number of running searches; the gauge lags behind, except at 0."""
    return scrape(client).value("berth_admission_running", line="searches")


def host_with_cells(client: Client) -> str:
    """A host with twelve children, none of which can serve three groups of `PACKS`."""
    root = host_with_room(client)
    for number in range(12):
        cell = str(uuid.uuid4())
        body = {"uuid": cell, "name": f"cell{number}", "parent_provider_uuid": root}
        assert client.post("/resource_providers", json=body).status == 200
        amounts = {"resource_provider_generation": 0, "inventories": {"VGPU": {"total": 1000}}}
        assert client.put(f"/resource_providers/{cell}/inventories", json=amounts).status == 200
    return root


@pytest.mark.thorough
def test_slow_clients_hold_nobody_up(tmp_path: Path) -> None:
    """Hundreds of clients stall in every possible way; others read and write as usual."""
    with serving(tmp_path, variables=PATIENT) as service:
        client = Client.at(service.url)
        provider = host_with_room(client)
        query = f"/allocation_candidates?resources=VCPU:1&in_tree={provider}"
        with (
            clients(service, MANY - FEW, announced()) as bodiless,
            clients(service, FEW, begun()) as slow,
            clients(service, FEW, headless()) as nobody,
            clients(service, FEW, b"") as deaf,
        ):
            for connection in deaf:
                asks_on(connection)
            for number in range(1, 30):
                assert len(client.get(query).json["allocation_requests"]) == 1
                fresh = Client.at(service.url)
                assert claim(fresh, provider, str(uuid.uuid4())).status == 204
                assert used(fresh, provider) == number
                for connection in slow:
                    connection.sendall(b" ")
            assert all(map(is_there, [*bodiless, *slow, *nobody]))
            assert connected(service) >= MANY + 2 * FEW


@pytest.mark.thorough
def test_who_rests_makes_room(tmp_path: Path) -> None:
    """A fleet has sent one request each, and keeps all connections that a worker accepts."""
    files_before = raise_files(CONNECTIONS_MAX + FILES_BESIDES)
    with serving(tmp_path, variables=PATIENT) as service, ExitStack() as fleet:
        fleet.callback(resource.setrlimit, resource.RLIMIT_NOFILE, files_before)
        for _ in range(CONNECTIONS_MAX):
            client = fleet.enter_context(socket.create_connection((service.host, service.port)))
            client.sendall(LOOKS)
            assert client.recv(65536).startswith(b"HTTP/1.1 200 ")
        assert Client.at(service.url).get("/").status == 200
        wait_until(
            lambda: connected(service) <= CONNECTIONS_MAX * 3 // 4,
            "a quarter of the places is free",
        )


@pytest.mark.thorough
def test_few_files_are_no_reason_to_look_away(tmp_path: Path) -> None:
    """Even if clients use up a low limit of open files, they are cut off at their deadline; the
    limit is raised as far as possible."""
    few = ("sh", "-c", 'ulimit -Sn 56 && ulimit -Hn 64 && exec "$@"', "sh", *BERTH)
    with serving(tmp_path, variables=IMPATIENT, command=few) as service:
        (worker,) = service.workers()
        limits = Path(f"/proc/{worker}/limits").read_text()
        assert re.search(r"Max open files +64 +64 ", limits)
        with clients(service, 2 * 96, announced()) as slow:
            wait_until(lambda: not any(map(is_there, slow[:20])), "the slow ones to be cut off")
        wait_until(lambda: connected(service) == 0, "all to be gone")
        assert Client.at(service.url).get("/").status == 200
        assert "Cannot check for slow clients" not in service.log.read_text()


def test_an_answer_ends_the_connection_of_a_body_that_was_not_read(tmp_path: Path) -> None:
    """The rest of the body must not be parsed as a request, and the server need not read it."""
    large = b"Content-Length: 99999999999\r\n\r\n"
    ask = b" HTTP/1.1\r\nHost: berth\r\nX-Auth-Token: admin\r\n"
    no_body = b"GET /livez" + ask + b"\r\n"
    chunked = (
        b"Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
        b'f\r\n{"name": "cn1"}\r\n0\r\n\r\n'
    )
    with serving(tmp_path) as service:
        for request, status, is_ended in (
            (b"PUT /traits/CUSTOM_A" + ask + large, b"413", True),
            (b"PUT /livez" + ask + large, b"405", True),
            (b"DELETE /traits/CUSTOM_A" + ask + b"Content-Length: 2\r\n\r\n{}", b"400", True),
            (b"PUT /livez" + ask + b"Content-Length: 0\r\n\r\n", b"405", False),
            (b"PUT /livez" + ask + chunked, b"405", True),
            (b"POST /resource_providers" + ask + chunked, b"201", False),
            (no_body, b"200", False),
        ):
            with socket.create_connection((service.host, service.port), PATIENCE) as client:
                client.sendall(request)
                answer = client.recv(65536)
                assert answer.startswith(b"HTTP/1.1 " + status), answer
                assert (b"\r\nconnection: close\r\n" in answer.lower()) is is_ended
                if is_ended:
                    assert client.recv(65536) == b""
                else:
                    client.sendall(no_body)
                    assert client.recv(65536).startswith(b"HTTP/1.1 200")


def test_slow_clients_are_cut_off_at_their_deadline(tmp_path: Path) -> None:
    """Those with an unfinished body get 408, the others nothing; fast clients stay connected."""
    # Of several requests from one address that are late, berth may end another connection first.
    own = map("127.0.0.{}".format, range(2, 255))
    with serving(tmp_path, variables=IMPATIENT) as service, ExitStack() as slow:
        owing = [
            connection
            for sends in (announced(), begun(), chunked())
            for connection in slow.enter_context(clients(service, FEW, sends, own))
        ]
        behind = slow.enter_context(clients(service, FEW, pipelined(), own))
        nobody = slow.enter_context(clients(service, FEW, headless()))
        deaf = slow.enter_context(clients(service, FEW, b""))
        for connection in deaf:
            asks_on(connection)
        for connection in owing:
            answer = received(connection)
            assert answer.startswith(b"HTTP/1.1 408 Request Timeout\r\n"), answer
            assert b"x-openstack-request-id: req-" in answer
            assert b"The body took too long to arrive" in answer
        for connection in behind:
            first, _, second = received(connection).partition(b"HTTP/1.1 408 ")
            assert first.startswith(b"HTTP/1.1 200 OK\r\n") and second
        assert not any(map(received, nobody))
        wait_until(lambda: connected(service) == 0, "those who do not read to be cut off")
        log = service.log.read_text()
        assert "Slow clients disconnected" in log
        assert log.count("status: 408") == len(owing) + len(behind)
        assert Client.at(service.url).get("/traits").status == 200


def test_a_client_that_goes_on_sending_is_waited_for(tmp_path: Path) -> None:
    """Its deadline is extended by what it sends; that of another client that began at the same time
    is not."""
    with serving(tmp_path, variables=IMPATIENT) as service:
        whole = b'{"name": "host"%s}' % (b" " * (2 << 20))
        with clients(
            service, 1, HEAD.replace(b"PUT /allocations/%s", b"POST /resource_providers")
        ) as (connection,):
            connection.settimeout(PATIENCE)
            connection.sendall(b"Content-Length: %d\r\n\r\n" % len(whole))
            with clients(service, 1, announced()) as (other,):
                connection.sendall(whole[: 1 << 20])
                assert b"408" in received(other)
            connection.sendall(whole[1 << 20 :])
            assert connection.recv(12) == b"HTTP/1.1 200"


def test_slow_clients_do_not_keep_it_from_stopping(tmp_path: Path) -> None:
    """They are cut off at their deadline then too."""
    with (
        serving(tmp_path, variables=IMPATIENT) as service,
        clients(service, FEW, announced()),
        clients(service, FEW, headless()),
    ):
        assert service.terminate() == ExitCode.OK
