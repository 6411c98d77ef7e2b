# SPDX-License-Identifier: Apache-2.0
"""The paths and methods of the API, and their first microversions.

Source: rest-api.md 1.3.
"""

import pytest

from tests.api.answers import assert_refused
from tests.api.versions import at_least, versions
from tests.api.worlds import NOBODY, provider
from tests.client import Client
from tests.routes import INVENTORIES, OPERATIONS, ROUTES, VERSIONS, Route

ROUTE_IDS = [route.template for route in ROUTES]

#: Methods that no route has, two with unknown names and two in lower case.
STRANGE_METHODS = ["OPTIONS", "PATCH", "TRACE", "PURGE", "WEBSOCKET", "get", "put"]

#: Pairs of route and method that do not exist, though the method is a common one.
ABSENT = [
    (route, method)
    for route in ROUTES
    for method in ("GET", "POST", "PUT", "DELETE")
    if method not in route.methods
]

#: Pairs of route and method that came after 1.0.
LATER = [(route, method) for route, method in OPERATIONS if route.since_for(method) != "1.0"]


@pytest.mark.parametrize("method", STRANGE_METHODS)
@pytest.mark.parametrize("route", ROUTES, ids=ROUTE_IDS)
def test_a_method_that_a_route_has_not_is_405(api: Client, route: Route, method: str) -> None:
    """`Allow` lists the methods of the route in the order of the specification."""
    answer = api.request(method, route.path())
    assert_refused(answer, 405, f"The method {method} is not allowed for this resource.")
    assert answer.headers["Allow"] == ", ".join(route.methods)


@pytest.mark.parametrize(
    ("route", "method"), ABSENT, ids=[f"{method} {route.template}" for route, method in ABSENT]
)
def test_405_depends_neither_on_the_version_nor_on_policy(
    api: Client, route: Route, method: str
) -> None:
    """The method is checked before the microversion of the route and before the roles."""
    answer = api.request(method, route.path(), version="1.0", headers=NOBODY)
    assert_refused(answer, 405, version="1.0")
    assert answer.headers["Allow"] == ", ".join(route.methods)


@pytest.mark.parametrize("route", ROUTES, ids=ROUTE_IDS)
def test_head_is_405_without_a_body(api: Client, route: Route) -> None:
    """No route has HEAD, and its response has no body."""
    answer = api.request("HEAD", route.path())
    assert (answer.status, answer.body) == (405, b"")
    assert answer.headers["Content-Length"] == "0"
    assert answer.headers["Allow"] == ", ".join(route.methods)


@pytest.mark.parametrize(
    ("route", "method"), LATER, ids=[f"{method} {route.template}" for route, method in LATER]
)
def test_a_route_begins_with_its_version(api: Client, route: Route, method: str) -> None:
    """Below its first microversion a route is 404 for every caller."""
    for version in VERSIONS:
        answer = api.request(method, route.path(), version=version, headers=NOBODY, json={})
        if at_least(version, route.since_for(method)):
            assert_refused(answer, 403, version=version)
        elif (route.template, method) == (INVENTORIES, "DELETE"):
            assert_refused(answer, 405, version=version)
            assert "Allow" not in answer.headers
        else:
            assert_refused(answer, 404, version=version)


@pytest.mark.parametrize(
    "path",
    [
        "/resource_providers/",
        "/traits/",
        "/allocations/",
        "/usages/",
        "//",
        "//resource_providers",
        "/resource_providers//inventories",
        "/resource_providers/x/inventories/",
        "/resource_providers/x/inventories/VCPU/",
        "/resource_providers/x/unknown",
        "/resource_providers/x/inventories/VCPU/more",
        "/Resource_Providers",
        "/TRAITS",
        "/resource_providers.json",
        "/placement/resource_providers",
        "/no/such/path",
    ],
)
@pytest.mark.parametrize("method", ["GET", "PATCH", "DELETE"])
def test_a_path_that_is_not_a_route_is_404(api: Client, path: str, method: str) -> None:
    """Paths are compared exactly: no redirects, no trailing or double slash, no other letter
    case."""
    assert_refused(api.request(method, path), 404, "The resource could not be found")


def test_an_escaped_slash_ends_a_path_segment(api: Client) -> None:
    """Paths are decoded before they are compared, so `%2F` separates two segments."""
    assert_refused(api.get("/traits/CUSTOM%2FA"), 404, "The resource could not be found")


def test_an_escaped_letter_is_that_letter(api: Client) -> None:
    """Paths are decoded before they are compared."""
    uuid = provider(api)
    assert api.get(f"/resource%5Fproviders/{uuid}").json["uuid"] == uuid


def test_a_suffix_belongs_to_the_parameter(api: Client) -> None:
    """There are no format suffixes: `.json` is part of an unknown name."""
    uuid = provider(api)
    assert_refused(
        api.get(f"/resource_providers/{uuid}.json"),
        404,
        f"No resource provider with uuid {uuid}.json",
    )


@pytest.mark.parametrize("text", ["x", "1", "%20", "a%3Fb", "%C3%A9", "'%22--", "%3Cb%3E"])
def test_routing_does_not_judge_a_parameter(api: Client, text: str) -> None:
    """Every value reaches the handler, which responds."""
    assert api.get(f"/resource_providers/{text}").status == 404
    assert api.get(f"/traits/{text}").status == 404
    assert api.get(f"/resource_classes/{text}").status == 404
    assert api.get(f"/allocations/{text}").json == {"allocations": {}}


@pytest.mark.parametrize(
    "path",
    [
        "/?a=b",
        "/resource_classes?foo=1",
        "/resource_classes/VCPU?foo=1",
        "/resource_providers/{uuid}?foo=1",
        "/resource_providers/{uuid}/inventories?foo=1",
        "/resource_providers/{uuid}/usages?foo=1",
        "/resource_providers/{uuid}/aggregates?foo=1",
        "/resource_providers/{uuid}/traits?foo=1",
        "/resource_providers/{uuid}/allocations?foo=1",
        "/allocations/{uuid}?foo=1",
    ],
)
def test_a_route_without_parameters_ignores_the_query(api: Client, path: str) -> None:
    """Only routes with parameters check them."""
    assert api.get(path.format(uuid=provider(api))).status == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"X-HTTP-Method-Override": "DELETE"},
        {"If-Match": '"something"'},
        {"If-None-Match": "*"},
        {"If-Modified-Since": "Fri, 01 Jan 2100 00:00:00 GMT"},
        {"Range": "bytes=0-3"},
    ],
    ids=lambda headers: "".join(headers),
)
def test_headers_that_have_no_effect(api: Client, headers: dict[str, str]) -> None:
    """Neither method overrides, nor conditions, nor ranges."""
    uuid = provider(api)
    answer = api.get(f"/resource_providers/{uuid}", headers=headers)
    assert (answer.status, answer.json["uuid"]) == (200, uuid)
    assert api.get(f"/resource_providers/{uuid}").status == 200


@pytest.mark.parametrize("version", versions("1.0"))
def test_the_document_of_versions(api: Client, version: str) -> None:
    """`GET /` returns the supported range, whatever the request's microversion.

    Source: rest-api.md 3.
    """
    answer = api.get("/", version=version)
    assert answer.json == {
        "versions": [
            {
                "id": "v1.0",
                "min_version": "1.0",
                "max_version": "1.39",
                "status": "CURRENT",
                "links": [{"rel": "self", "href": ""}],
            }
        ]
    }
    assert answer.headers["Content-Type"] == "application/json"


@pytest.mark.parametrize("accept", ["text/plain", "application/xml", "*/*;q=0", "garbage"])
def test_the_document_of_versions_needs_no_token_and_no_accept(api: Client, accept: str) -> None:
    """`GET /` is open to every client."""
    headers = {"X-Auth-Token": None, "X-Roles": None, "Accept": accept}
    assert api.get("/", headers=headers).json["versions"][0]["id"] == "v1.0"
