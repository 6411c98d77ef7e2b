# SPDX-License-Identifier: Apache-2.0
"""Services whose page a browser looks at: `berth serve` with two workers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Event, Thread
from typing import Protocol

from tests.client import Client
from tests.e2e.serving import PATIENCE, Service, run_berth, serving

WORKERS = 2


class Serve(Protocol):
    """The fixture `serve`: starts the test's own service in its `tmp_path`."""

    def __call__(self, *, api: str = ..., more: str = ..., port: int = ...) -> Service:
        """As `serving_page`, until the end of the test."""


@contextmanager
def serving_page(
    home: Path, *, api: str = "auth_strategy = noauth2", more: str = "", port: int = 0
) -> Iterator[Service]:
    """A service on a database of its own, with the page.

    Args:
        api: the section [api] of its configuration.
        more: further sections.
        port: 0 for a free one.
    """
    conf = home / "placement.conf"
    conf.write_text(
        f"[api]\n{api}\n[placement_database]\nconnection = sqlite:///{home}/berth.db\n"
        f"sqlite_synchronous = False\n{more}"
    )
    bind = f"127.0.0.1:{port}"
    arguments = ("--config-file", str(conf), "--workers", str(WORKERS), "--bind", bind)
    with serving(home, *arguments) as service:
        yield service


@contextmanager
def emptied(service: Service) -> Iterator[Service]:
    """A shared service, from which everything is taken in the end that the API can take."""
    api = Client.at(service.url)
    try:
        yield service
    finally:
        for kind in ("drains", "flavors"):
            for each in api.get(f"/berth/v1/{kind}").json[kind]:
                api.delete(f"/berth/v1/{kind}/{each['name']}")
        for each in api.get("/berth/v1/aggregates").json["aggregates"]:
            api.put(f"/berth/v1/aggregates/{each['uuid']}", json={"labels": {}})
        while providers := api.get("/resource_providers").json["resource_providers"]:
            # Those that have others below them go in the next round.
            for path in (f"/resource_providers/{each['uuid']}" for each in providers):
                for consumer in api.get(f"{path}/allocations").json["allocations"]:
                    api.delete(f"/allocations/{consumer}")
                api.delete(path)


def create_hosts(api: Client, *names: str) -> None:
    """Hosts with eight processors each."""
    for name in names:
        host = api.post("/resource_providers", json={"name": name})
        assert host.status == 200, host.text
        inventories = {"VCPU": {"total": 8}}
        body = {"resource_provider_generation": 0, "inventories": inventories}
        answer = api.put(f"/resource_providers/{host.json['uuid']}/inventories", json=body)
        assert answer.status == 200, answer.text


def create_token(tokens: Path, user: str, *, role: str, project: str = "") -> str:
    """A token in a file of tokens, which a running service reads within a second."""
    tokens.touch(mode=0o600)
    of_project = ("--project", project) if project else ()
    named = ("--user", user, "--role", role, *of_project)
    done = run_berth(tokens.parent, "token", "create", *named, "--file", str(tokens))
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


class Proxy(ThreadingHTTPServer):
    """A proxy before a service, which sometimes answers for it.

    Attributes:
        refusals: the status that it answers to requests whose path begins so.
        once: the same for the next one alone.
        gates: requests whose path begins so wait until the gate is opened.
    """

    daemon_threads = True

    def __init__(self, service: Service) -> None:
        super().__init__(("127.0.0.1", 0), _Forward)
        self.service = service
        self.refusals: dict[str, int] = {}
        self.once: dict[str, int] = {}
        self.gates: dict[str, Event] = {}

    @property
    def url(self) -> str:
        """Its address."""
        return f"http://127.0.0.1:{self.server_port}"

    def refusal(self, path: str) -> int | None:
        """The status that it answers itself to a request, after it waited at a gate."""
        for begin, gate in self.gates.items():
            if path.startswith(begin):
                gate.wait(PATIENCE)
        for begin in list(self.once):
            if path.startswith(begin):
                return self.once.pop(begin)
        return next((told for begin, told in self.refusals.items() if path.startswith(begin)), None)


class _Forward(BaseHTTPRequestHandler):
    """A request to the proxy."""

    server: Proxy
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        """Answer it, or let the service do it."""
        if (status := self.server.refusal(self.path)) is not None:
            self._answer(status, {"content-type": "text/html"}, b"<h1>Refused by the proxy</h1>")
            return
        service = self.server.service
        upstream = HTTPConnection(service.host, service.port, timeout=PATIENCE)
        length = int(self.headers.get("content-length", 0))
        headers = {name: text for name, text in self.headers.items() if name.lower() != "host"}
        upstream.request(self.command, self.path, self.rfile.read(length), headers)
        answer = upstream.getresponse()
        body = answer.read()
        self._answer(answer.status, dict(answer.getheaders()), body)
        upstream.close()

    do_POST = do_PUT = do_DELETE = do_GET

    def _answer(self, status: int, headers: dict[str, str], body: bytes) -> None:
        self.send_response(status)
        for name, text in headers.items():
            if name.lower() not in ("connection", "content-length", "transfer-encoding"):
                self.send_header(name, text)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Nothing: the page's requests are not news."""


@contextmanager
def proxying(service: Service) -> Iterator[Proxy]:
    """A proxy before a service, for the duration of the block."""
    with Proxy(service) as proxy:
        serving_it = Thread(target=proxy.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        serving_it.start()
        try:
            yield proxy
        finally:
            proxy.shutdown()
