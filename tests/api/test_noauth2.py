# SPDX-License-Identifier: Apache-2.0
"""`auth_strategy = noauth2`, which trusts the request's headers.

Source: operations.md 1.2; rest-api.md 1.1 and 1.11.
"""

from typing import TYPE_CHECKING

import pytest

from tests.client import Client

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIApplication


def status(api: Client, headers: dict[str, str], path: str = "/traits") -> int:
    """The status of a request with only these headers."""
    return api.acting_as(headers).get(path).status


@pytest.mark.in_process
def test_the_empty_path_wants_a_token(shared_app: "WSGIApplication") -> None:
    """With the application mounted at a prefix, the path without the slash."""
    mounted = Client.of(shared_app, script_name="/placement")
    assert status(mounted, {}, "") == 401
    assert status(mounted, {"X-Auth-Token": "nobody"}, "") == 200
    assert status(mounted, {}, "/") == 200


@pytest.mark.parametrize(
    ("method", "path", "version"),
    [
        ("GET", "/nonsense", "1.39"),
        ("GET", "/traits", "1.99"),
        ("GET", "/traits", "pony"),
        ("PATCH", "/traits", "1.39"),
        ("HEAD", "/traits", "1.39"),
    ],
)
def test_without_a_token_nothing_else_is_judged(
    api: Client, method: str, path: str, version: str
) -> None:
    """401 comes before 400, 404, 405 and 406, in a form of its own; it has a request id and no
    microversion."""
    answer = api.acting_as({}).request(method, path, version=version)
    assert answer.status == 401
    assert answer.headers["x-openstack-request-id"].startswith("req-")
    assert "openstack-api-version" not in answer.headers
    assert "vary" not in answer.headers
    if method == "HEAD":
        assert (answer.body, answer.headers["Content-Length"]) == (b"", "0")
        return
    assert answer.headers["content-type"] == "application/json"
    assert set(answer.json) == {"message", "code", "title"}
    assert (answer.json["code"], answer.json["title"]) == ("401 Unauthorized", "Unauthorized")
    assert answer.json["message"]


@pytest.mark.parametrize(
    ("accept", "content_type"),
    [
        ("text/html", "text/html"),
        ("*/*", "application/json"),
    ],
)
def test_the_body_of_401_follows_accept(api: Client, accept: str, content_type: str) -> None:
    """HTML for clients that prefer it."""
    answer = api.acting_as({"Accept": accept}).get("/traits")
    assert answer.status == 401
    assert answer.headers["content-type"].startswith(content_type)


@pytest.mark.parametrize(
    ("headers", "admitted"),
    [
        ({"X-Auth-Token": "admin"}, True),
        ({"X-Auth-Token": "admin:project"}, True),
        ({"X-Auth-Token": "Admin"}, False),
        ({"X-Auth-Token": "somebody"}, False),
        ({"X-Auth-Token": ""}, False),
        ({"X-Auth-Token": "somebody", "X-Roles": "admin"}, True),
        ({"X-Auth-Token": "somebody", "X-Roles": "a, service ,b"}, True),
        ({"X-Auth-Token": "admin", "X-Roles": "member"}, False),
        ({"X-Auth-Token": "admin", "X-Roles": ""}, False),
        ({"X-Auth-Token": "", "X-Roles": "admin"}, True),
        ({"X-Auth-Token": "admin", "OpenStack-System-Scope": "all"}, False),
    ],
)
def test_roles_come_from_the_header_or_from_the_name(
    api: Client, headers: dict[str, str], admitted: bool
) -> None:
    """Only the user `admin` has roles by default, and only without the header."""
    assert status(api, headers) == (200 if admitted else 403)


@pytest.mark.parametrize(
    ("headers", "admitted"),
    [
        ({"X-Auth-Token": "admin"}, True),
        ({"X-Auth-Token": "admin", "X-Roles": "service"}, True),
        ({"X-Auth-Token": "admin", "X-Roles": "admin"}, False),
        ({"X-Auth-Token": "somebody"}, False),
    ],
)
def test_admin_may_reshape_too(api: Client, headers: dict[str, str], admitted: bool) -> None:
    """The default rule of POST /reshaper requires the role `service`, but an agent whose token file
    says `admin` must be able to reshape. 400 is for the empty body."""
    answer = api.acting_as(headers).post("/reshaper", json={})
    assert answer.status == (400 if admitted else 403)


@pytest.mark.parametrize(
    ("headers", "project"),
    [
        ({"X-Auth-Token": "u"}, "u"),
        ({"X-Auth-Token": "u:p"}, "p"),
        ({"X-Auth-Token": "a:b:c"}, "b:c"),
        ({"X-Auth-Token": "u:"}, "u"),
        ({"X-Auth-Token": "u:p", "X-Project-Id": "q"}, "q"),
        ({"X-Auth-Token": "u:p", "X-Tenant-Id": "q"}, "p"),
    ],
)
def test_the_project_comes_from_the_token(
    api: Client, headers: dict[str, str], project: str
) -> None:
    """After the first colon; a reader sees only the usages of that project."""
    reader = headers | {"X-Roles": "reader"}
    for asked in ("u", "p", "q", "b:c", "b"):
        expected = 200 if asked == project else 403
        assert status(api, reader, f"/usages?project_id={asked}") == expected
