# SPDX-License-Identifier: Apache-2.0
"""Who a client says that it is counts for nothing: a request without credentials does nothing on
any route, whatever the strategy, and with them only its own roles count.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, get_args

import pytest
from keystonemiddleware.auth_token import _request
from oslo_context import context

from berth.config.options import AuthStrategy
from berth.edge.auth.file_based import layer_of
from berth.edge.auth.http_basic import HttpBasic
from berth.edge.auth.identity import IDENTITY_HEADERS, Identity
from berth.edge.auth.tokens import issue, render_tokens
from tests.api import configured
from tests.client import Client
from tests.edge.auth.gate import Gate, basic, bearer, hashed
from tests.routes import BERTH_ROUTES, PUBLIC, ROUTES

#: What Keystone's middleware wants to know; it is asked for nothing without a token.
KEYSTONE: Final = """
[keystone_authtoken]
www_authenticate_uri = http://127.0.0.1:1
auth_type = password
auth_url = http://127.0.0.1:1
username = placement
password = secret
project_name = service
user_domain_name = Default
project_domain_name = Default
"""

#: An identity that a client claims to have, without any proof.
CLAIMS: Final = {"X-User-Id": "root", "X-Project-Id": "web", "X-Roles": "admin,service"}

#: Who may do what, by name and roles.
PEOPLE: Final[Mapping[str, tuple[str, ...]]] = {
    "operator": ("admin",),
    "compute": ("service",),
    "somebody": (),
}

#: The credentials themselves, which oslo.context reads too; they are removed where they were used.
CREDENTIALS: Final = {"HTTP_X_AUTH_TOKEN", "HTTP_X_STORAGE_TOKEN", "HTTP_X_SERVICE_TOKEN"}

#: What keystonemiddleware and oslo.context read.
EVERY_HEADER: Final = {
    "HTTP_" + name.upper().replace("-", "_")
    for name in _request._AuthTokenRequest.blank("/")._all_auth_headers()
} | {
    name
    for names in context._ENVIRON_HEADERS.values()
    for name in names
    if name.startswith("HTTP_")
}


def test_no_header_of_a_client_reaches_the_application(tmp_path: Path) -> None:
    """With valid credentials they change nothing; without, the request is refused. The identity
    itself is told as keystonemiddleware does, for whatever reads those headers."""
    path = tmp_path / "htpasswd"
    path.write_text(f"alice:{hashed('secret')}\n")
    gate = Gate(layer_of(HttpBasic(path)))
    credentials = basic("alice", "secret")
    alice, nobody = gate.who(credentials), gate.who({}, path="/")
    assert len(EVERY_HEADER) > 20
    for variable in EVERY_HEADER:
        header = {variable.removeprefix("HTTP_").replace("_", "-"): "admin"}
        assert gate.who(credentials | header) == alice, variable
        assert gate.status(header) == 401, variable
        assert gate.who(header, path="/") == nobody, variable
    assert {n: text for n, text in alice["headers"].items() if n in IDENTITY_HEADERS} == {
        "HTTP_X_IDENTITY_STATUS": "Confirmed",
        "HTTP_X_USER_ID": "alice",
        "HTTP_X_USER_NAME": "alice",
        "HTTP_X_PROJECT_ID": "alice",
        "HTTP_X_PROJECT_NAME": "alice",
        "HTTP_X_ROLES": "",
    }
    assert EVERY_HEADER - CREDENTIALS <= IDENTITY_HEADERS


Headers = Mapping[str, str]


def served(strategy: str, folder: Path) -> tuple[Client, Callable[[str], Headers]]:
    """A service with an authentication strategy, and the headers of each user in PEOPLE."""
    issued = {
        name: issue(Identity(name, "web", roles), created=datetime.now(UTC), expires=None)
        for name, roles in PEOPLE.items()
    }
    files = {
        "htpasswd": "".join(f"{n}:{hashed(n)}:web:{','.join(r)}\n" for n, r in PEOPLE.items()),
        "tokens": render_tokens(kept for _, kept in issued.values()),
    }
    for file, text in files.items():
        (folder / file).write_text(text)
        (folder / file).chmod(0o600)

    def headers_of(name: str) -> Headers:
        return basic(name, name) if strategy == "http_basic" else bearer(issued[name][0])

    return configured.serve(folder, KEYSTONE, strategy=strategy), headers_of


@pytest.mark.in_process
@pytest.mark.parametrize("strategy", get_args(AuthStrategy))
def test_no_route_does_anything_without_credentials(strategy: str, tmp_path: Path) -> None:
    """401 for every method, except where the API describes itself; roles come from the file only:
    `service` may reshape, `admin` may do everything else, and a user without roles nothing."""
    client, headers_of = served(strategy, tmp_path)
    for claims in ({}, CLAIMS):
        stranger = client.acting_as(claims)
        let_in = {
            (method, route.template)
            for route in (*ROUTES, *BERTH_ROUTES)
            for method in route.methods
            if stranger.request(method, route.path(), json={}).status != 401
        }
        assert let_in == {
            ("GET", path) for path in PUBLIC | {"/berth/v1", "/berth/v1/openapi.json"}
        }
        assert stranger.get("/no/such/route").status == 401
    if strategy not in ("http_basic", "token"):
        return
    for name, method, path, status in (
        ("operator", "POST", "/resource_providers", 200),
        ("operator", "POST", "/reshaper", 403),
        ("compute", "POST", "/reshaper", 400),
        ("somebody", "GET", "/resource_providers", 403),
        ("somebody", "GET", "/", 200),
    ):
        caller = client.acting_as({**CLAIMS, **headers_of(name)})
        assert caller.request(method, path, json={"name": "host"}).status == status, (name, path)
