# SPDX-License-Identifier: Apache-2.0
"""berth under gunicorn, uWSGI and Apache's mod_wsgi, and behind nginx: `contrib/wsgi/`."""

from __future__ import annotations

import shutil
import signal
import tempfile
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path

import pytest

from tests.contrib.wsgi_servers import (
    Missing,
    Running,
    Server,
    apache,
    configure,
    gunicorn,
    nginx,
    uwsgi,
    wait_until_it_answers,
)
from tests.e2e.serving import PATIENCE, wait_until
from tests.e2e.test_serve import create_provider, write_locked

# Each server is started once, by one of the processes that share the tests.
pytestmark = pytest.mark.xdist_group("wsgi servers")

SERVERS: dict[str, Server] = {"gunicorn": gunicorn, "uwsgi": uwsgi, "apache": apache}

#: What berth writes when a write has come to it.
ARRIVED = 'Starting request: 127.0.0.1 "POST /resource_providers"'

#: What they write when they have been told to stop.
STOPPING = {"gunicorn": "Handling signal: term", "uwsgi": "graceful shutdown triggered"}


@pytest.fixture
def home() -> Iterator[Path]:
    """A directory that other users can enter, unlike pytest's own."""
    folder = Path(tempfile.mkdtemp(prefix="berth-"))
    configure(folder)
    yield folder
    shutil.rmtree(folder)


@pytest.fixture(scope="module", params=SERVERS)
def server(request: pytest.FixtureRequest) -> Iterator[Running]:
    """Each server in turn, with two workers, for tests that do not change it."""
    folder = Path(tempfile.mkdtemp(prefix="berth-"))
    configure(folder)
    with ExitStack() as stack:
        stack.callback(shutil.rmtree, folder)
        try:
            running = stack.enter_context(SERVERS[request.param](folder))
        except Missing as error:
            pytest.skip(str(error))
        wait_until_it_answers(running)
        yield running


def see_each_other(running: Running) -> None:
    """A write over one connection is visible over every other."""
    clients = [running.client() for _ in range(6)]
    for client in clients:
        provider = create_provider(client)
        for other in clients:
            assert other.get(f"/resource_providers/{provider}").status == 200


def test_workers_see_what_others_have_written(server: Running) -> None:
    """Each has an index of its own, on one database."""
    see_each_other(server)


def test_paths_come_through_as_they_were_sent(server: Running) -> None:
    """The service itself answers for unusual paths, in JSON: none is merged, cut or redirected."""
    client = server.client()
    path = f"/resource_providers/{create_provider(client)}"
    for odd in (f"{path}/", f"{path}%2Fx", f"{path}.json"):
        answer = client.get(odd)
        assert (odd, answer.status) == (odd, 404)
        assert answer.json["errors"]
    assert client.get(path.replace("r", "%72")).status == 200
    assert client.get("/resource_providers?name=a%2Fb%20c%C3%BC").json["resource_providers"] == []


@pytest.mark.parametrize("server", ["gunicorn", "uwsgi"], indirect=True)
def test_doubled_slashes_come_through(server: Running) -> None:
    """They give a 404. Apache always merges the slashes."""
    client = server.client()
    path = f"/resource_providers/{create_provider(client)}"
    for odd in (f"/{path}", path.replace("rs/", "rs//")):
        assert (odd, client.get(odd).status) == (odd, 404)


def test_headers_come_through(server: Running) -> None:
    """Token, roles and microversion; without a token the answer is 401."""
    client = server.client()
    assert client.get("/traits", headers={"X-Auth-Token": None}).status == 401
    assert client.get("/traits", headers={"X-Roles": "reader"}).status == 403
    answer = client.get("/traits?name=in:HW_CPU_X86_AVX", version="1.6")
    assert answer.json == {"traits": ["HW_CPU_X86_AVX"]}
    assert answer.headers["OpenStack-API-Version"] == "placement 1.6"


@pytest.mark.parametrize("server", ["gunicorn", "apache"], indirect=True)
def test_headers_with_underscores_are_dropped(server: Running) -> None:
    """An application cannot tell them from those with dashes, so the server must drop them."""
    client = server.client()
    lies = {"X-Auth-Token": None, "X_Auth_Token": "admin"}
    assert client.get("/traits", headers=lies).status == 401
    overruled = {"X_Roles": "reader", "X_Forwarded_For": "192.0.2.66"}
    assert client.get("/traits", headers=overruled, version="1.6").status == 200
    assert "192.0.2.66" not in server.log.read_text()


def test_a_long_query_comes_through(server: Running) -> None:
    """A hundred and fifty aggregates, as a scheduler sends them."""
    many = ",".join(f"{number:08}-0000-4000-8000-000000000000" for number in range(150))
    answer = server.client().get(f"/resource_providers?member_of=in:{many}")
    assert (answer.status, answer.json) == (200, {"resource_providers": []})


@pytest.mark.parametrize("server", ["uwsgi", "apache"], indirect=True)
def test_berth_is_found_under_placement_too(server: Running) -> None:
    """As in the catalogues of existing deployments; links and Location have the prefix."""
    begin_with_placement(server)


def begin_with_placement(running: Running) -> None:
    """Under /placement and without it, the same objects are found, and links keep the prefix."""
    client = running.client("/placement")
    made = client.post("/resource_providers", json={"name": "mounted"}, version="1.19")
    path = made.headers["Location"].removeprefix(running.url)
    assert path.startswith("/placement/resource_providers/")
    response = running.client().get(path)
    assert response.json["links"][0]["href"] == path
    assert running.client().delete(path.removeprefix("/placement")).status == 204


@pytest.mark.parametrize("server", ["gunicorn", "uwsgi"], indirect=True)
def test_nginx_in_front_passes_on_what_matters(server: Running, home: Path) -> None:
    """Unusual paths, the prefix, and the client's address as nginx sees it, not as the client
    claims."""
    with ExitStack() as stack:
        try:
            front = stack.enter_context(nginx(home, server))
        except Missing as error:
            pytest.skip(str(error))
        wait_until_it_answers(front)
        begin_with_placement(front)
        client = front.client()
        path = f"/resource_providers/{create_provider(client)}"
        for odd in (f"/{path}", path.replace("rs/", "rs//"), f"{path}%2Fx"):
            assert (odd, client.get(odd).status) == (odd, 404)
        lies = {"X-Forwarded-For": "192.0.2.66", "Forwarded": "for=192.0.2.66;host=evil.example"}
        made = client.post("/resource_classes", json={"name": "CUSTOM_A"}, headers=lies)
        assert made.headers["Location"] == f"{front.url}/resource_classes/CUSTOM_A"
        disguised = {"X_Forwarded_For": "192.0.2.66", "X-Forwarded_Host": "evil.example"}
        made = client.post("/resource_classes", json={"name": "CUSTOM_B"}, headers=disguised)
        assert made.headers["Location"] == f"{front.url}/resource_classes/CUSTOM_B"
        assert "192.0.2.66" not in server.log.read_text()


@pytest.mark.parametrize("name", ["gunicorn", "uwsgi"])
def test_the_application_may_be_loaded_before_the_fork(name: str, home: Path) -> None:
    """No worker uses a connection of its parent, and on SIGTERM a waiting write is still
    answered."""
    early: dict[str, AbstractContextManager[Running]] = {
        "gunicorn": gunicorn(home, "--preload"),
        "uwsgi": uwsgi(home),
    }
    with early[name] as running:
        wait_until_it_answers(running)
        see_each_other(running)
        answers: list[int] = []

        def write() -> None:
            body = {"name": "in flight"}
            answers.append(running.client().post("/resource_providers", json=body).status)

        with write_locked(home / "berth.db"):
            writer = threading.Thread(target=write)
            written = running.log.read_text().count(ARRIVED)
            writer.start()
            wait_until(
                lambda: running.log.read_text().count(ARRIVED) > written, "the write to arrive"
            )
            running.process.send_signal(signal.SIGTERM)
            wait_until(lambda: STOPPING[name] in running.log.read_text(), "it to be told")
            assert not answers
        writer.join(PATIENCE)
        running.process.wait(PATIENCE)
        assert answers == [200]


@pytest.mark.parametrize("name", ["gunicorn", "uwsgi"])
def test_a_wrong_configuration_stops_the_server(name: str, tmp_path: Path) -> None:
    """The log says why, and the server does not answer requests with errors."""
    configure(tmp_path, tmp_path / "no such folder" / "berth.db")
    with SERVERS[name](tmp_path) as running:
        assert running.process.wait(PATIENCE) != 0
    assert "there is no directory" in running.log.read_text()
