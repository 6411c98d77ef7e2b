# SPDX-License-Identifier: Apache-2.0
"""With every authentication strategy: a request without credentials does nothing on any route, and
policy decides what a caller's roles allow.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, get_args

import pytest

from berth.api.paths import PUBLIC
from berth.config.options import AuthStrategy
from berth.edge.auth.identity import Identity
from berth.edge.auth.token_file import issue, render_tokens
from tests.api import configured
from tests.client import Client
from tests.edge.auth.gate import basic, bearer, hashed
from tests.routes import BERTH_ROUTES, ROUTES

pytestmark = pytest.mark.in_process

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

Headers = Mapping[str, str]


def served(strategy: str, folder: Path) -> tuple[Client, Callable[[str], Headers]]:
    """A service with an authentication strategy, and the headers of each user in PEOPLE."""
    (folder / "htpasswd").write_text(
        "".join(f"{name}:{hashed(name)}:web:{','.join(roles)}\n" for name, roles in PEOPLE.items())
    )
    issued = {
        name: issue(Identity(name, "web", roles), created=datetime.now(UTC), expires=None)
        for name, roles in PEOPLE.items()
    }
    (folder / "tokens").write_text(render_tokens(kept for _, kept in issued.values()))
    for file in ("htpasswd", "tokens"):
        (folder / file).chmod(0o600)

    def headers_of(name: str) -> Headers:
        return basic(name, name) if strategy == "http_basic" else bearer(issued[name][0])

    return configured.serve(folder, KEYSTONE, strategy=strategy), headers_of


@pytest.mark.parametrize("strategy", get_args(AuthStrategy))
def test_no_route_does_anything_without_credentials(strategy: str, tmp_path: Path) -> None:
    """401 for every method, except where the API describes itself; identity headers are ignored."""
    client, _ = served(strategy, tmp_path)
    for claims in ({}, CLAIMS):
        stranger = client.acting_as(claims)
        answers = {
            (method, route.template): stranger.request(method, route.path(), json={}).status
            for route in (*ROUTES, *BERTH_ROUTES)
            for method in route.methods
        }
        let_in = {asked for asked, status in answers.items() if status != 401}
        assert let_in == {("GET", path) for path in PUBLIC}
        assert stranger.get("/no/such/route").status == 401


@pytest.mark.parametrize("strategy", ["http_basic", "token"])
def test_roles_reach_the_policy(strategy: str, tmp_path: Path) -> None:
    """Roles come from the file only: `service` may reshape, `admin` may do everything else, and a
    user without roles nothing."""
    client, headers_of = served(strategy, tmp_path)

    def status(name: str, method: str, path: str) -> int:
        caller = client.acting_as({**CLAIMS, **headers_of(name)})
        return caller.request(method, path, json={"name": "host"}).status

    assert status("operator", "POST", "/resource_providers") == 200
    assert status("operator", "POST", "/reshaper") == 403
    assert status("compute", "POST", "/reshaper") == 400
    assert status("somebody", "GET", "/resource_providers") == 403
    assert status("somebody", "GET", "/") == 200
