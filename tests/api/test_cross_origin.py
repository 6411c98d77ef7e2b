# SPDX-License-Identifier: Apache-2.0
"""Requests of browsers from other origins: CORS.

Source: operations.md 3.2 (`[cors]`), rest-api.md 1.1 and 1.3.
"""

from pathlib import Path

import pytest

from tests.api import configured
from tests.client import Client, Response

pytestmark = pytest.mark.in_process

HOME = "https://console.example.org"
STRANGER = "https://elsewhere.example.org"


@pytest.fixture(scope="module")
def open_to_home(tmp_path_factory: pytest.TempPathFactory) -> Client:
    """A service that allows one origin."""
    settings = f"[cors]\nallowed_origin = {HOME}\n"
    return configured.serve(tmp_path_factory.mktemp("cors"), settings)


def preflight(
    client: Client, *, origin: str = HOME, method: str = "PUT", headers: str | None = None
) -> Response:
    """The request, without a token, that a browser sends before the actual one."""
    asked = {"Origin": origin, "Access-Control-Request-Method": method}
    if headers is not None:
        asked["Access-Control-Request-Headers"] = headers
    return client.acting_as(asked).request("OPTIONS", "/resource_providers", version=None)


def cors_headers(answer: Response) -> set[str]:
    """The names of the response's CORS headers."""
    return {name.lower() for name in answer.headers if name.lower().startswith("access-control")}


def test_a_preflight_is_answered_without_a_token(open_to_home: Client) -> None:
    """200, and the browser continues; what is not allowed gets no headers, and it refuses."""
    for method in ("GET", "PUT", "POST", "DELETE", "PATCH"):
        asked = "X-Auth-Token,OpenStack-API-Version"
        answer = preflight(open_to_home, method=method, headers=asked)
        assert (answer.status, answer.body) == (200, b"")
        assert answer.headers["access-control-allow-origin"] == HOME
        assert answer.headers["access-control-allow-credentials"] == "true"
        assert answer.headers["access-control-max-age"] == "3600"
        assert answer.headers["access-control-allow-methods"] == method
        allowed = answer.headers["access-control-allow-headers"].lower()
        assert "x-auth-token" in allowed and "openstack-api-version" in allowed
        assert "Origin" in answer.headers["vary"]
    for refused in (
        preflight(open_to_home, origin=STRANGER),
        preflight(open_to_home, method="BREW"),
        preflight(open_to_home, headers="X-Surprise"),
    ):
        assert (refused.status, cors_headers(refused)) == (200, set())


@pytest.mark.parametrize("path", ["/", "/resource_providers", "/nonsense"])
def test_options_is_always_answered(open_to_home: Client, path: str) -> None:
    """Even without an origin and a token."""
    answer = open_to_home.acting_as({}).request("OPTIONS", path)
    assert (answer.status, answer.body) == (200, b"")


def test_options_is_no_method_without_cors(api: Client) -> None:
    """405, with a token; 401, without."""
    assert api.request("OPTIONS", "/resource_providers").status == 405
    assert api.acting_as({}).request("OPTIONS", "/resource_providers").status == 401


@pytest.mark.parametrize(("token", "status"), [("admin", 200), (None, 401)])
def test_the_answer_to_a_known_origin_may_be_read_there(
    open_to_home: Client, token: str | None, status: int
) -> None:
    """Including 401."""
    answer = open_to_home.get("/traits", headers={"Origin": HOME, "X-Auth-Token": token})
    assert answer.status == status
    assert answer.headers["access-control-allow-origin"] == HOME
    assert answer.headers["access-control-allow-credentials"] == "true"
    exposed = {name.strip() for name in answer.headers["access-control-expose-headers"].split(",")}
    assert exposed == {
        "X-Auth-Token",
        "X-Openstack-Request-Id",
        "X-Subject-Token",
        "X-Service-Token",
        "OpenStack-API-Version",
    }
    assert "Origin" in answer.headers["vary"]
    # A stranger is not refused, but its browser does not let the page read the answer.
    strange = open_to_home.get("/traits", headers={"Origin": STRANGER, "X-Auth-Token": token})
    assert (strange.status, cors_headers(strange)) == (status, set())


def test_options_of_the_group_are_followed(tmp_path: Path) -> None:
    """An existing [cors] section works unchanged."""
    client = configured.serve(
        tmp_path,
        f"[cors]\nallowed_origin = {HOME},{STRANGER}\nallow_credentials = False\nmax_age = 60\n"
        "allow_methods = GET\nexpose_headers = X-Openstack-Request-Id\n",
    )
    answer = preflight(client, origin=STRANGER, method="GET")
    assert answer.headers["access-control-allow-origin"] == STRANGER
    assert answer.headers["access-control-max-age"] == "60"
    assert "access-control-allow-credentials" not in answer.headers
    assert cors_headers(preflight(client, method="PUT")) == set()
    exposed = client.get("/traits", headers={"Origin": HOME}).headers
    assert exposed["access-control-expose-headers"] == "X-Openstack-Request-Id"
