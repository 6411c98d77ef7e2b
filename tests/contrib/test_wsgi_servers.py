# SPDX-License-Identifier: Apache-2.0
"""berth under gunicorn, uWSGI and Apache's mod_wsgi, and behind nginx: `contrib/wsgi/`."""

from __future__ import annotations

import shutil
import signal
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Final

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

SERVERS: Final[dict[str, Server]] = {
    "gunicorn": gunicorn,
    "gunicorn, loaded before the fork": partial(gunicorn, preload=True),
    "uwsgi": uwsgi,
    "apache": apache,
}

#: What berth writes when a write has come to it.
ARRIVED: Final = 'Starting request: 127.0.0.1 "POST /resource_providers"'

#: What they write when they have been told to stop.
STOPPING: Final = {"gunicorn": "Handling signal: term", "uwsgi": "graceful shutdown triggered"}


@pytest.fixture
def home() -> Iterator[Path]:
    """A directory that other users can enter, unlike pytest's own."""
    folder = Path(tempfile.mkdtemp(prefix="berth-"))
    configure(folder)
    yield folder
    shutil.rmtree(folder)


def workers_see_what_others_have_written(running: Running) -> None:
    """Each has an index of its own, on one database: a write over one connection is visible over
    every other. No worker uses a connection of its parent."""
    clients = [running.client() for _ in range(6)]
    for client in clients:
        provider = create_provider(client)
        for other in clients:
            assert other.get(f"/resource_providers/{provider}").status == 200


def paths_come_through_as_they_were_sent(running: Running) -> None:
    """The service itself answers for unusual paths, in JSON: none is merged, cut or redirected."""
    client = running.client()
    path = f"/resource_providers/{create_provider(client)}"
    for odd in (f"{path}/", f"{path}%2Fx", f"{path}.json"):
        answer = client.get(odd)
        assert (odd, answer.status) == (odd, 404)
        assert answer.json["errors"]
    assert client.get(path.replace("r", "%72")).status == 200
    assert client.get("/resource_providers?name=a%2Fb%20c%C3%BC").json["resource_providers"] == []


def doubled_slashes_come_through(running: Running) -> None:
    """They give a 404. Apache always merges the slashes."""
    client = running.client()
    path = f"/resource_providers/{create_provider(client)}"
    for odd in (f"/{path}", path.replace("rs/", "rs//")):
        assert (odd, client.get(odd).status) == (odd, 404)


def headers_come_through(running: Running) -> None:
    """Token, roles and microversion; without a token the answer is 401. So does a query as long as
    those of a scheduler."""
    client = running.client()
    assert client.get("/traits", headers={"X-Auth-Token": None}).status == 401
    assert client.get("/traits", headers={"X-Roles": "reader"}).status == 403
    answer = client.get("/traits?name=in:HW_CPU_X86_AVX", version="1.6")
    assert answer.json == {"traits": ["HW_CPU_X86_AVX"]}
    assert answer.headers["OpenStack-API-Version"] == "placement 1.6"
    many = ",".join(f"{number:08}-0000-4000-8000-000000000000" for number in range(150))
    answer = client.get(f"/resource_providers?member_of=in:{many}")
    assert (answer.status, answer.json) == (200, {"resource_providers": []})


def headers_with_underscores_are_dropped(running: Running) -> None:
    """An application cannot tell them from those with dashes, so the server must drop them."""
    client = running.client()
    lies = {"X-Auth-Token": None, "X_Auth_Token": "admin"}
    assert client.get("/traits", headers=lies).status == 401
    overruled = {"X_Roles": "reader", "X_Forwarded_For": "192.0.2.66"}
    assert client.get("/traits", headers=overruled, version="1.6").status == 200
    assert "192.0.2.66" not in running.log.read_text()


def berth_is_found_under_placement_too(running: Running) -> None:
    """As in the catalogues of existing deployments: under /placement and without it, the same
    objects are found; links and Location have the prefix."""
    client = running.client("/placement")
    made = client.post("/resource_providers", json={"name": "mounted"}, version="1.19")
    path = made.headers["Location"].removeprefix(running.url)
    assert path.startswith("/placement/resource_providers/")
    response = running.client().get(path)
    assert response.json["links"][0]["href"] == path
    assert running.client().delete(path.removeprefix("/placement")).status == 204


def nginx_in_front_passes_on_what_matters(running: Running) -> None:
    """Unusual paths, the prefix, and the client's address as nginx sees it, not as the client
    claims."""
    with ExitStack() as stack:
        try:
            front = stack.enter_context(nginx(running.log.parent, running))
        except Missing:
            return
        wait_until_it_answers(front)
        berth_is_found_under_placement_too(front)
        client = front.client()
        path = f"/resource_providers/{create_provider(client)}"
        for odd in (f"/{path}", path.replace("rs/", "rs//"), f"{path}%2Fx"):
            assert (odd, client.get(odd).status) == (odd, 404)
        for name, lies in {
            "CUSTOM_A": {"X-Forwarded-For": "192.0.2.66", "Forwarded": "for=192.0.2.66;host=evil"},
            "CUSTOM_B": {"X_Forwarded_For": "192.0.2.66", "X-Forwarded-Host": "evil.example"},
        }.items():
            made = client.post("/resource_classes", json={"name": name}, headers=lies)
            assert made.headers["Location"] == f"{front.url}/resource_classes/{name}"
        assert "192.0.2.66" not in running.log.read_text()


def a_waiting_write_is_answered_after_sigterm(running: Running, stopping: str) -> None:
    answers: list[int] = []

    def write() -> None:
        body = {"name": "in flight"}
        answers.append(running.client().post("/resource_providers", json=body).status)

    with write_locked(running.log.parent / "berth.db"):
        writer = threading.Thread(target=write)
        written = running.log.read_text().count(ARRIVED)
        writer.start()
        wait_until(lambda: running.log.read_text().count(ARRIVED) > written, "the write to arrive")
        running.process.send_signal(signal.SIGTERM)
        wait_until(lambda: stopping in running.log.read_text(), "it to be told")
        assert not answers
    writer.join(PATIENCE)
    running.process.wait(PATIENCE)
    assert answers == [200]


#: What holds under each server, or under some.
RULES: Final[list[tuple[Callable[[Running], None], str]]] = [
    (workers_see_what_others_have_written, "gunicorn uwsgi apache"),
    (paths_come_through_as_they_were_sent, "gunicorn uwsgi apache"),
    (doubled_slashes_come_through, "gunicorn uwsgi"),
    (headers_come_through, "gunicorn uwsgi apache"),
    (headers_with_underscores_are_dropped, "gunicorn apache"),
    (berth_is_found_under_placement_too, "uwsgi apache"),
    (nginx_in_front_passes_on_what_matters, "gunicorn uwsgi"),
]


@pytest.mark.parametrize(
    "name",
    [*list(SERVERS)[:-1], pytest.param("apache", marks=pytest.mark.thorough)],
)
def test_a_server_serves_berth(name: str, home: Path) -> None:
    """With two workers, from its start to its end."""
    kind, _, loads_early = name.partition(", ")
    with ExitStack() as stack:
        try:
            running = stack.enter_context(SERVERS[name](home))
        except Missing as error:
            pytest.skip(str(error))
        wait_until_it_answers(running)
        for rule, servers in RULES[:1] if loads_early else RULES:
            if kind in servers:
                rule(running)
        if kind in STOPPING:
            a_waiting_write_is_answered_after_sigterm(running, STOPPING[kind])


@pytest.mark.parametrize("name", ["gunicorn", "uwsgi"])
def test_a_wrong_configuration_stops_the_server(name: str, tmp_path: Path) -> None:
    """The log says why, and the server does not answer requests with errors."""
    configure(tmp_path, tmp_path / "no such folder" / "berth.db")
    with SERVERS[name](tmp_path) as running:
        assert running.process.wait(PATIENCE) != 0
    assert "there is no directory" in running.log.read_text()
