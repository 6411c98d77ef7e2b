# SPDX-License-Identifier: Apache-2.0
"""Answers requests in its own process, without a socket, and says what they cost it.

`bench.fixed_cost` runs this file with the berth of a checkout, so it imports nothing of `bench`.
The applications are built as a worker of `berth serve` builds them: every layer, the log on
standard error, metrics in a shared folder. Each line of standard input is a case and a number of
requests; each line of standard output is the processor time of one of those, in microseconds.
"""

from __future__ import annotations

import io
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping
from functools import wraps
from importlib import import_module
from pathlib import Path
from typing import Any, Final
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

_HOST: Final = "5d1c5b0e-6c0e-4a53-9d2c-6a7a1c1f6a54"
_PROVIDER: Final = f"/resource_providers/{_HOST}"
_BODY: Final = b'{"resource_provider_generation": 0, "inventories": {"VCPU": {"total": 4}}}'
_QUERY: Final = "resources=VCPU:1&limit=10"
_CLAIM: Final = (
    f'{{"allocations": {{"{_HOST}": {{"resources": {{"VCPU": 1}}}}}}, "project_id": "p", '
    '"user_id": "u", "consumer_generation": null, "consumer_type": "INSTANCE"}'
).encode()

#: What Granian puts into every environ; the rest is the process's environment, of which there is
#: about as much on a server.
_SERVER: Final[Mapping[str, Any]] = {
    "GATEWAY_INTERFACE": "CGI/1.1",
    "REMOTE_ADDR": "127.0.0.1",
    "SCRIPT_NAME": "",
    "SERVER_NAME": "127.0.0.1",
    "SERVER_PORT": "8778",
    "SERVER_PROTOCOL": "HTTP/1.1",
    "SERVER_SOFTWARE": "Granian",
    "HOME": "/var/lib/berth",
    "LANG": "C.UTF-8",
    "LOGNAME": "berth",
    "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin",
    "SHELL": "/usr/sbin/nologin",
    "USER": "berth",
    "wsgi.errors": sys.stderr,
    "wsgi.input_terminated": True,
    "wsgi.multiprocess": False,
    "wsgi.multithread": True,
    "wsgi.run_once": False,
    "wsgi.url_scheme": "http",
    "wsgi.version": (1, 0),
}

#: What a service of OpenStack sends.
_CLIENT: Final = {
    "HTTP_ACCEPT": "application/json",
    "HTTP_ACCEPT_ENCODING": "gzip, deflate",
    "HTTP_CONNECTION": "keep-alive",
    "HTTP_HOST": "127.0.0.1:8778",
    "HTTP_OPENSTACK_API_VERSION": "placement 1.39",
    "HTTP_USER_AGENT": "nova-scheduler keystoneauth1/5.18.1 python-requests/2.34.2 CPython/3.11.7",
    "HTTP_X_AUTH_TOKEN": "admin",
    "HTTP_X_OPENSTACK_REQUEST_ID": "req-5d1c5b0e-6c0e-4a53-9d2c-6a7a1c1f6a54",
    "HTTP_X_ROLES": "admin,service",
}

#: What keystonemiddleware adds for a token of a project.
_OF_KEYSTONE: Final = {
    "HTTP_X_IDENTITY_STATUS": "Confirmed",
    "HTTP_X_USER_ID": "6b1f5b0e6c0e4a539d2c6a7a1c1f6a54",
    "HTTP_X_USER_NAME": "nova",
    "HTTP_X_USER_DOMAIN_ID": "default",
    "HTTP_X_USER_DOMAIN_NAME": "Default",
    "HTTP_X_USER": "nova",
    "HTTP_X_PROJECT_ID": "7c1f5b0e6c0e4a539d2c6a7a1c1f6a54",
    "HTTP_X_PROJECT_NAME": "service",
    "HTTP_X_PROJECT_DOMAIN_ID": "default",
    "HTTP_X_PROJECT_DOMAIN_NAME": "Default",
    "HTTP_X_TENANT_ID": "7c1f5b0e6c0e4a539d2c6a7a1c1f6a54",
    "HTTP_X_TENANT_NAME": "service",
    "HTTP_X_TENANT": "service",
    "HTTP_X_ROLES": "admin,service,member,reader",
    "HTTP_X_ROLE": "admin,service,member,reader",
    "HTTP_X_IS_ADMIN_PROJECT": "True",
}


def main(directory: Path) -> None:
    """Serve the cases until standard input ends."""
    # prometheus-client decides on import whether processes share their metrics.
    os.environ["PROMETHEUS_MULTIPROC_DIR"] = str(directory / "metrics")
    (directory / "metrics").mkdir()
    cases = _cases(directory)
    print(*cases, sep="\t", flush=True)
    for line in sys.stdin:
        name, _, count = line.rstrip("\n").partition("\t")
        print(1e6 * _seconds(cases[name], int(count)) / int(count), flush=True)


def _seconds(call: Callable[[], object], count: int) -> float:
    start = time.process_time()
    for _ in range(count):
        call()
    return time.process_time() - start


def _cases(directory: Path) -> dict[str, Callable[[], object]]:
    """Each case: one request."""
    from berth import config, deploy
    from berth.api.namespaces import PLACEMENT
    from berth.edge.app import create_app
    from berth.edge.server.granian_environ import for_granian
    from berth.edge.server.slow_clients import SlowClients
    from berth.edge.server.workers import spare_collections
    from berth.index import Index

    configuration = directory / "placement.conf"
    configuration.write_text(
        "[api]\nauth_strategy = noauth2\n[placement_database]\n"
        f"connection = sqlite:///{directory / 'berth.sqlite'}\n"
    )
    conf = config.load([str(configuration)])
    deploy.set_up_logging(conf)
    settings = config.read_settings(conf)
    db = deploy.open_prepared(settings)
    slow_clients = SlowClients(60)

    def served(application: WSGIApplication) -> WSGIApplication:
        return for_granian(application, slow_clients)

    whole = served(create_app(settings, db, Index(db)))
    for operation in PLACEMENT.operations:
        if operation.name in ("show_provider", "replace_inventories"):
            module, _, name = str(operation.handler).partition(":")
            handlers = import_module(f"berth.api.{module}")
            setattr(handlers, name, _idle(getattr(handlers, name)))
    idle_app = served(create_app(settings, db, Index(db)))
    keystone = served(create_app(settings, db, Index(db), authentication=_as_keystone))
    _create_provider(whole)
    spare_collections()
    inventories = f"{_PROVIDER}/inventories"
    return {
        "nothing": _case(_nothing, "GET", "/", 200),
        "GET /": _case(whole, "GET", "/", 200),
        "GET a provider, no handler": _case(idle_app, "GET", _PROVIDER, 200),
        "GET a provider, no handler, keystone": _case(keystone, "GET", _PROVIDER, 200),
        "PUT inventories, no handler": _case(idle_app, "PUT", inventories, 200, _BODY),
        "404": _case(whole, "GET", "/no/such/path", 404),
        "GET a provider": _case(whole, "GET", _PROVIDER, 200),
        "GET candidates": _case(whole, "GET", "/allocation_candidates", 200, query=_QUERY),
        "PUT and DELETE allocations": _claim_and_release(whole),
    }


def _case(
    application: WSGIApplication,
    method: str,
    path: str,
    status: int,
    body: bytes = b"",
    *,
    query: str = "",
) -> Callable[[], object]:
    """One request to an application, and the check of its status."""
    environ: WSGIEnvironment = {**_SERVER, **_CLIENT}
    environ |= {"REQUEST_METHOD": method, "PATH_INFO": path, "QUERY_STRING": query}
    if body:
        environ |= {"CONTENT_LENGTH": str(len(body)), "CONTENT_TYPE": "application/json"}
    starts = f"{status} "
    empty = io.BytesIO()

    def start_response(line: str, headers: list[tuple[str, str]], error: object = None, /) -> Any:
        assert line.startswith(starts), line

    def call() -> None:
        sent = environ.copy()
        sent["wsgi.input"] = io.BytesIO(body) if body else empty
        for _ in application(sent, start_response):
            pass

    call()
    return call


def _create_provider(application: WSGIApplication) -> None:
    body = f'{{"name": "host", "uuid": "{_HOST}"}}'.encode()
    _case(application, "POST", "/resource_providers", 200, body)
    _case(application, "PUT", f"{_PROVIDER}/inventories", 200, _BODY)


def _claim_and_release(application: WSGIApplication) -> Callable[[], object]:
    """Two requests: a claim of a new consumer, and its end."""
    path = f"/allocations/{_HOST}"
    claim = _case(application, "PUT", path, 204, _CLAIM)
    release = _case(application, "DELETE", path, 204)

    def call() -> None:
        claim()
        release()

    return call


def _nothing(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
    """The application that does nothing: what the measurement itself costs."""
    start_response("200 OK", [("content-type", "application/json"), ("content-length", "2")])
    return [b"{}"]


def _idle(handler: Callable[..., object]) -> Callable[..., bytes]:
    """A handler that does nothing, with what another declares."""

    @wraps(handler)
    def idle(*_: object, **__: object) -> bytes:
        return b"{}"

    return idle


def _as_keystone(application: WSGIApplication) -> WSGIApplication:
    """Leave the headers of keystonemiddleware, as it does for a token that it remembers."""

    def layer(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        environ.update(_OF_KEYSTONE)
        return application(environ, start_response)

    return layer


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(prefix="berth-bench-") as name:
        main(Path(name))
