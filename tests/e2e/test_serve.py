# SPDX-License-Identifier: Apache-2.0
"""`berth serve` for its operator: starting, refusing to start, several workers, stopping."""

from __future__ import annotations

import os
import re
import signal
import socket
import sqlite3
import stat
import threading
import uuid
from collections.abc import Iterator
from contextlib import closing, contextmanager
from http.client import HTTPException
from pathlib import Path

import pytest

from berth.cli.failure import ExitCode
from tests.client import ADMIN, Client
from tests.e2e.serving import PATIENCE, Service, run_berth, serving, wait_until


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """One service with two workers, for tests that do not change it."""
    as_usual = {"OS_BERTH__PIN_WORKERS": "true"}
    home = tmp_path_factory.mktemp("home")
    with serving(home, "--workers", "2", variables=as_usual) as service:
        yield service


def database_of(service: Service) -> Path:
    """The embedded database of a service without configuration."""
    return service.home / ".local" / "share" / "berth" / "berth.db"


def create_provider(client: Client, name: str | None = None) -> str:
    """Create a provider; return its uuid."""
    provider = str(uuid.uuid4())
    answer = client.post(
        "/resource_providers", json={"uuid": provider, "name": name or f"cn-{provider}"}
    )
    assert answer.status == 200, answer.text
    return provider


@contextmanager
def write_locked(database: Path) -> Iterator[None]:
    """Hold the database's write lock, as another process would."""
    with closing(sqlite3.connect(database, isolation_level=None)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        yield
        connection.execute("ROLLBACK")


def test_nothing_needs_to_be_configured(service: Service) -> None:
    """With an empty home, berth creates a database for this user and serves it."""
    assert Client.at(service.url).get("/").status == 200
    database = database_of(service)
    assert database.exists()
    assert stat.S_IMODE(database.parent.stat().st_mode) == 0o700
    assert service.url.startswith("http://127.0.0.1:")


def test_it_says_what_it_does_and_what_to_try(service: Service) -> None:
    """The address, the database, the authentication, the page, and a request to try."""
    first, *rest = service.banner.splitlines()
    assert first.startswith("berth ")
    assert first.endswith(f"serves {service.url}, 2 workers")
    said = dict(line.strip().split(maxsplit=1) for line in rest)
    assert said["database"] == f"sqlite:///{database_of(service)}"
    assert said["authentication"].startswith("noauth2")
    assert said["page"] == f"{service.url}/berth/ui/"
    assert said["try"] == (f"curl -H 'X-Auth-Token: admin' {service.url}/resource_providers")


def test_requests_are_logged_as_operators_expect(service: Service) -> None:
    """One line per request on stderr, in oslo.log's format."""
    Client.at(service.url).get("/traits?name=in:NOTHING", version="1.6")
    line = re.compile(
        r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3} \d+ INFO placement\.requestlog "
        r"\[None req-\S+ admin admin - - - -\] 127\.0\.0\.1 "
        r'"GET /traits\?name=in:NOTHING" status: 200 len: 13 microversion: 1\.6\n'
    )
    wait_until(lambda: bool(line.search(service.log.read_text())), "the line of the request log")


def test_a_write_is_seen_through_every_connection_at_once(service: Service) -> None:
    """Whichever worker wrote it, the next read over any connection shows it."""
    clients = clients_of_both_workers(service)
    for number in range(24):
        provider = create_provider(clients[number % len(clients)])
        path = f"/resource_providers/{provider}/inventories"
        inventory = {"total": number + 1}
        answer = clients[(number + 1) % len(clients)].put(
            path, json={"resource_provider_generation": 0, "inventories": {"VCPU": inventory}}
        )
        assert answer.status == 200, answer.text
        query = f"/allocation_candidates?resources=VCPU:{number + 1}&in_tree={provider}"
        candidates = [client.get(query).json["allocation_requests"] for client in clients]
        assert all(len(requests) == 1 for requests in candidates), f"after {number} writes"
    assert workers_hit(service, clients) == 2


def clients_of_both_workers(service: Service) -> list[Client]:
    """A dozen clients, or as many as it takes until the kernel has given some to each worker."""
    wait_until(lambda: listeners(service.port) == 2, "both workers")
    clients: list[Client] = []
    while len(clients) < 12 or workers_hit(service, clients) < 2:
        assert len(clients) < 100, "one worker gets no connections"
        clients.append(Client.at(service.url))
        assert clients[-1].get("/").status == 200
    return clients


def workers_hit(service: Service, clients: list[Client]) -> int:
    """The number of workers with one of the clients' connections, by the kernel's tables."""
    ports = set()
    for client in clients:
        connection = client.transport.connection  # type: ignore[attr-defined]
        ports.add(connection.sock.getsockname()[1])
    owners = inodes_of_connections(service.port, ports)
    return len(
        {
            pid
            for pid in service.workers()
            for link in Path(f"/proc/{pid}/fd").iterdir()
            if link_target(link) in owners
        }
    )


def listeners(port: int) -> int:
    """The number of sockets that listen on a port; there is one when the service says that it
    serves."""
    return sum(state == "0A" for at, _, state, _ in sockets() if at == port)


def inodes_of_connections(server_port: int, client_ports: set[int]) -> set[str]:
    """The inodes that /proc/PID/fd shows for the server's ends of some connections."""
    return {
        f"socket:[{inode}]"
        for local, remote, _, inode in sockets()
        if local == server_port and remote in client_ports
    }


def sockets() -> Iterator[tuple[int, int, str, str]]:
    """All of this machine's TCP sockets: (local port, remote port, state, inode)."""
    for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
        _, local, remote, state, *rest = line.split()
        yield int(local[-4:], 16), int(remote[-4:], 16), state, rest[5]


def link_target(link: Path) -> str:
    """The target of a link in /proc; empty if it has disappeared."""
    try:
        return os.readlink(link)
    except OSError:
        return ""


def test_a_taken_port_is_refused_in_one_line(service: Service, tmp_path: Path) -> None:
    """A second service cannot share the port of the first and get half of its connections."""
    done = run_berth(tmp_path, "serve", "--bind", f"127.0.0.1:{service.port}")
    assert done.returncode == ExitCode.ADDRESS
    assert done.stderr.startswith(f"berth: cannot listen on {service.url}: address already in use")
    assert done.stderr.count("\n") == 1
    assert not (tmp_path / ".local").exists()


def test_requests_in_flight_finish_when_it_is_told_to_stop(tmp_path: Path) -> None:
    """SIGTERM: no new connection is accepted, and a write that waits is still answered."""
    with serving(tmp_path, variables={"OS_DEFAULT__DEBUG": "true"}) as service:
        answers: list[int] = []
        with write_locked(database_of(service)):
            writer = threading.Thread(
                target=lambda: answers.append(
                    Client.at(service.url)
                    .post("/resource_providers", json={"name": "in flight"})
                    .status
                )
            )
            writer.start()
            wait_until(lambda: "Starting request" in service.log.read_text(), "the write to arrive")
            service.process.send_signal(signal.SIGTERM)
            wait_until(lambda: not accepts_connections(service), "the address to be let go")
            assert not answers
        writer.join(PATIENCE)
        assert service.process.wait(PATIENCE) == ExitCode.OK
        assert answers == [200]
    with serving(tmp_path) as again:
        names = [row["name"] for row in providers(Client.at(again.url))]
        assert names == ["in flight"]


def test_a_stopped_service_leaves_its_database_in_one_file(tmp_path: Path) -> None:
    """So that a copy of the file is complete."""
    with serving(tmp_path, "--workers", "2") as service:
        create_provider(Client.at(service.url), "written")
        assert service.terminate() == ExitCode.OK
        database = database_of(service)
        assert [path.name for path in database.parent.iterdir()] == [database.name]


def test_fragments_of_configuration_are_named_at_start(tmp_path: Path) -> None:
    """`--config-dir` alone is a configuration too."""
    folder = tmp_path / "fragments"
    folder.mkdir()
    (folder / "any.conf").write_text(
        f"[api]\nauth_strategy = noauth2\n"
        f"[placement_database]\nconnection = sqlite:///{tmp_path}/berth.db\n"
    )
    with serving(tmp_path, "--config-dir", str(folder)) as service:
        assert re.search(rf"configuration +{folder}$", service.banner, re.MULTILINE)


def test_ctrl_c_ends_the_service_like_any_request_to_stop(tmp_path: Path) -> None:
    """A terminal sends SIGINT to the workers as well; no process remains, and no error is
    logged."""
    with serving(tmp_path, "--workers", "2") as service:
        os.killpg(service.process.pid, signal.SIGINT)
        assert service.process.wait(PATIENCE) == ExitCode.OK
        assert "ERROR" not in service.log.read_text()


def accepts_connections(service: Service) -> bool:
    """Whether a process listens at the service's address."""
    try:
        socket.create_connection((service.host, service.port)).close()
    except OSError:
        return False
    return True


def providers(client: Client) -> list[dict[str, object]]:
    """All providers, as listed."""
    listed = client.get("/resource_providers").json["resource_providers"]
    assert isinstance(listed, list)
    return listed


def test_a_killed_worker_loses_nothing_that_was_acknowledged(tmp_path: Path) -> None:
    """kill -9 during writes: every acknowledged one is stored, and the service continues."""
    with serving(tmp_path, "--workers", "2") as service:
        acknowledged: list[str] = []
        stop = threading.Event()

        def write() -> None:
            while not stop.is_set():
                try:
                    acknowledged.append(create_provider(Client.at(service.url)))
                except (OSError, HTTPException):  # with nothing of an answer, or a part
                    continue

        writers = [threading.Thread(target=write) for _ in range(4)]
        for writer in writers:
            writer.start()
        try:
            wait_until(lambda: len(acknowledged) > 20, "some writes")
            before = service.workers()
            os.kill(min(before), signal.SIGKILL)
            seen = len(acknowledged)
            wait_until(lambda: len(acknowledged) > seen + 20, "writes by the other worker")
            wait_until(lambda: len(service.workers() - before) == 1, "a new worker")
        finally:
            stop.set()
            for writer in writers:
                writer.join(PATIENCE)
        stored = {row["uuid"] for row in providers(Client.at(service.url))}
        assert stored >= set(acknowledged)
        assert service.terminate() == ExitCode.OK
    checked = run_berth(tmp_path, "db", "check")
    assert checked.returncode == ExitCode.OK, checked.stdout + checked.stderr


def test_what_the_wire_says_reaches_the_application(service: Service) -> None:
    """Methods, paths, repeated headers and bodies reach the application unchanged."""
    client = Client.at(service.url)
    provider = create_provider(client)
    path = f"/resource_providers/{provider}"
    for method in ("HEAD", "OPTIONS", "PATCH", "get", "PONY"):
        answer = client.request(method, path)
        assert (method, answer.status) == (method, 405)
        assert answer.headers["Allow"].replace(" ", "") == "GET,DELETE,PUT"
    for odd in (f"/{path}", f"{path}/", path.replace("/resource", "//resource"), f"{path}%2Fx"):
        assert (odd, client.get(odd).status) == (odd, 404)
    escaped = path.replace("r", "%72")
    assert client.get(escaped).status == 200
    repeated = [
        *ADMIN.items(),
        ("OpenStack-API-Version", "compute 2.1"),
        ("OpenStack-API-Version", "placement 1.6"),
    ]
    answer = client.request("GET", path, headers=repeated, version=None)
    assert answer.headers["OpenStack-API-Version"] == "placement 1.6"
    body = b'{"name": "renamed"}'
    assert client.put(path, body=body).status == 400
    assert client.put(path, body=body, headers={"Content-Type": ""}).status == 400
    assert client.put(path, body=body, headers={"Content-Type": "text/plain"}).status == 415
    assert client.put(path, headers={"Content-Length": None}).status == 415
    answer = client.put(path, body=body, headers={"Content-Type": "application/json"})
    assert answer.status == 200
    chunked = b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body)
    headers = {
        "Content-Type": "application/json",
        "Transfer-Encoding": "chunked",
        "Content-Length": None,
    }
    answer = client.put(path, body=chunked, headers=headers)
    assert (answer.status, answer.json["name"]) == (200, "renamed")
    assert client.delete(path).status == 204


def test_links_name_the_host_that_the_client_used(service: Service) -> None:
    """Without a Host header (HTTP/1.0), Location has the server's own address."""
    name = uuid.uuid4()
    body = b'{"name": "%s"}' % str(name).encode()
    with socket.create_connection((service.host, service.port), timeout=PATIENCE) as connection:
        connection.sendall(
            b"POST /resource_providers HTTP/1.0\r\nX-Auth-Token: admin\r\n"
            b"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)
        )
        answer = b"".join(iter(lambda: connection.recv(65536), b"")).decode()
    assert answer.startswith("HTTP/1.0 201")
    assert f"location: {service.url}/resource_providers/" in answer.lower()


def test_the_environment_of_the_server_is_not_taken_for_headers(tmp_path: Path) -> None:
    """HTTP_... variables of the process are not headers of a request."""
    variables = {"HTTP_X_AUTH_TOKEN": "admin", "CONTENT_TYPE": "application/json"}
    with serving(tmp_path, variables=variables) as service:
        client = Client.at(service.url).acting_as({})
        assert client.get("/resource_providers").status == 401


def test_keystone_guards_everything_but_the_version_document(tmp_path: Path) -> None:
    """The default strategy of a configuration file requires a valid token."""
    path = tmp_path / "placement.conf"
    path.write_text(
        f"[placement_database]\nconnection = sqlite:///{tmp_path}/berth.db\n"
        "[keystone_authtoken]\nwww_authenticate_uri = http://keystone.invalid:5000\n"
        "auth_type = password\nauth_url = http://keystone.invalid:5000\n"
        "username = placement\npassword = secret\nproject_name = service\n"
        "user_domain_name = Default\nproject_domain_name = Default\n"
    )
    with serving(tmp_path, "--config-file", str(path)) as service:
        client = Client.at(service.url).acting_as({})
        assert client.get("/").status == 200
        refused = client.get("/resource_providers")
        assert refused.status == 401
        assert "http://keystone.invalid:5000" in refused.headers["WWW-Authenticate"]


def test_each_worker_has_a_processor_of_its_own(service: Service) -> None:
    """If there are enough CPUs; for all threads that serve requests."""
    wait_until(lambda: listeners(service.port) == 2, "both workers to serve")
    workers = service.workers()
    processors = [
        {processor for task in tasks(pid) for processor in processors_of(task)} for pid in workers
    ]
    if len(os.sched_getaffinity(0)) < len(workers):
        assert processors == [os.sched_getaffinity(0)] * len(workers)
    else:
        assert [len(each) for each in processors] == [1] * len(workers)
        assert len(set().union(*processors)) == len(workers)


def processors_of(task: int) -> set[int]:
    """The CPUs on which a thread may run; none if it has ended."""
    try:
        return os.sched_getaffinity(task)
    except ProcessLookupError:
        return set()


def tasks(pid: int) -> list[int]:
    """The threads of a process."""
    return [int(name) for name in os.listdir(f"/proc/{pid}/task")]
