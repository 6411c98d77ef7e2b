# SPDX-License-Identifier: Apache-2.0
"""The paths and methods of the API, and their first microversions.

Source: rest-api.md 1.3.
"""

import re
from pathlib import Path

import pytest

from berth.api.namespaces import NAMESPACES, PLACEMENT, guarding_rules
from berth.api.operation import Namespace, Operation
from berth.api.paths import AmbiguousRoutes, routes_of
from berth.edge.probes import PROBES
from tests.api.answers import assert_refused
from tests.api.versions import at_least
from tests.api.wire import Rule, rules
from tests.api.worlds import NOBODY
from tests.client import Client
from tests.effort import is_full
from tests.routes import INVENTORIES, OWN, PUBLIC, ROUTES, VERSIONS, Route, minor

#: Methods that no route has, some with unknown names and two in lower case.
STRANGE_METHODS = ["OPTIONS", "PATCH", "TRACE", "PURGE", "WEBSOCKET", "get", "put"]


@pytest.mark.parametrize("route", ROUTES, ids=[route.template for route in ROUTES])
def test_a_method_that_a_route_has_not_is_405(api: Client, route: Route) -> None:
    """`Allow` lists the methods of the route in the order of the specification; the method is
    checked before the microversion and the roles, and HEAD has no body."""
    allowed = ", ".join(route.methods)
    for method in STRANGE_METHODS:
        answer = api.request(method, route.path())
        assert_refused(answer, 405, f"The method {method} is not allowed for this resource.")
        assert answer.headers["Allow"] == allowed
    for method in {"GET", "POST", "PUT", "DELETE"} - {*route.methods}:
        answer = api.request(method, route.path(), version="1.0", headers=NOBODY)
        assert_refused(answer, 405, version="1.0")
        assert answer.headers["Allow"] == allowed
    answer = api.request("HEAD", route.path())
    assert (answer.status, answer.body) == (405, b"")
    assert (answer.headers["Content-Length"], answer.headers["Allow"]) == ("0", allowed)


@pytest.mark.parametrize("route", ROUTES, ids=[route.template for route in ROUTES])
def test_a_route_begins_with_its_version(api: Client, route: Route) -> None:
    """Below its first microversion a method is 404 for every caller, or 405 if only it is new."""
    for method in route.methods:
        since = route.since_for(method)
        if since == "1.0":
            continue
        before = f"1.{minor(since) - 1}"
        for version in VERSIONS if is_full() else ("1.0", before, since, "1.39"):
            answer = api.request(method, route.path(), version=version, headers=NOBODY, json={})
            if at_least(version, since):
                assert_refused(answer, 403, version=version)
            elif (route.template, method) == (INVENTORIES, "DELETE"):
                assert_refused(answer, 405, version=version)
                assert "Allow" not in answer.headers
            else:
                assert_refused(answer, 404, version=version)


@rules(
    """
    a path that is not a route is 404: no redirects, no other slashes or letter case
        GET $1 => 404 The resource could not be found
        PATCH $1 => 404 The resource could not be found
        DELETE $1 => 404 The resource could not be found
        || /resource_providers/ || /traits/ || /allocations/ || /usages/ || //
        || //resource_providers || /resource_providers//inventories
        || /resource_providers/x/inventories/ || /resource_providers/x/inventories/VCPU/
        || /resource_providers/x/unknown || /resource_providers/x/inventories/VCPU/more
        || /Resource_Providers || /TRAITS || /resource_providers.json
        || /placement/resource_providers || /no/such/path
    paths are decoded before they are compared, and there are no suffixes
        GET $1 => $2
        | /traits/CUSTOM%2FA | 404 The resource could not be found
        | /resource%5Fproviders/$host | 200 {uuid: $host, ...}
        | /resource_providers/$(host).json | 404 No resource provider with uuid $(host).json
    routing does not judge a parameter
        GET /resource_providers/$1 => 404 No resource provider
        GET /traits/$1 => 404 No such trait
        GET /resource_classes/$1 => 404 No such resource class
        GET /allocations/$1 => 200 {allocations: {}}
        || x || 1 || %20 || a%3Fb || %C3%A9 || '%22-- || %3Cb%3E
    a route without parameters ignores the query
        GET $1?foo=1 => 200
        || / || /resource_classes || /resource_classes/VCPU || /resource_providers/$host
        || /resource_providers/$host/inventories || /resource_providers/$host/usages
        || /resource_providers/$host/aggregates || /resource_providers/$host/traits
        || /resource_providers/$host/allocations || /allocations/$host
    some headers have no effect: method overrides, conditions, ranges
        > $1
        GET $host => 200 {uuid: $host, ...}
        GET $host => 200
        || X-HTTP-Method-Override: DELETE || If-Match: "something" || If-None-Match: *
        || If-Modified-Since: Fri, 01 Jan 2100 00:00:00 GMT || Range: bytes=0-3
    the document of versions is the same at each, and open to all (rest-api.md 3) @1.0-
        > X-Auth-Token:
        > X-Roles:
        > Accept: $1
        GET /
        200 {versions: [{id: v1.0, min_version: "1.0", max_version: "1.39", status: CURRENT,
            links: [{rel: self, href: ""}]}]}
        < Content-Type: application/json
        || application/json || text/plain || application/xml || */*;q=0 || garbage
    """,
    world="host",
)
def test_paths(rule: Rule, wire: Client) -> None:
    """The rows of the table."""
    rule.check(wire)


# --- What is declared -----------------------------------------------------------------------------

SPECIFICATION = Path(__file__).parents[2] / "docs" / "spec" / "rest-api.md"
ROW = re.compile(
    r"^\| `(?P<path>/\S*)`[^|]*\| (?P<methods>[A-Z, ]+) \| "
    r"(?P<since>1\.\d+)(?: \((?P<later>[A-Z]+): (?P<begins>1\.\d+)\))? \|$",
    re.MULTILINE,
)


def test_the_routes_are_those_of_the_specification() -> None:
    """Paths, methods in the order of `Allow`, and first microversions."""
    specified = {}
    for row in ROW.finditer(SPECIFICATION.read_text()):
        since = dict.fromkeys(row["methods"].split(", "), row["since"])
        if row["later"]:
            since[row["later"]] = row["begins"]
        specified[row["path"]] = list(since.items())
    served = {
        route.path: [
            (method, f"1.{operations[0].since}") for method, operations in route.methods.items()
        ]
        for route in routes_of([PLACEMENT])
        if route.path not in OWN
    }
    assert len(specified) == 18
    assert served == specified


def test_every_operation_on_the_fleet_has_a_rule() -> None:
    """An operation without a rule is open to everyone."""
    without = {
        namespace.path_of(operation)
        for namespace in NAMESPACES
        for operation in namespace.operations
        if operation.rule is None
    }
    assert without == PUBLIC | {"/berth/v1", "/berth/v1/openapi.json"}
    guarded = {request for guarding in guarding_rules() for request in guarding.requests}
    assert {("GET", path) for path, rule in PROBES.items() if rule} <= guarded


def namespace(*paths: str, prefix: str = "") -> Namespace:
    """A namespace of operations that do nothing."""
    operations = [Operation("GET", "tests:nothing", None, path=path, tag="Tests") for path in paths]
    return Namespace(
        prefix=prefix, title="Tests", summary="", tags={"Tests": ""}, operations=tuple(operations)
    )


@pytest.mark.parametrize(
    "namespaces",
    [
        [namespace("/things/{name}", "/things/{uuid}")],
        [namespace("/things/{name}", "/things/all")],
        [namespace("/things/all", "/things/{name}")],
        [namespace("/things/{name}/parts", "/things/all/{part}")],
        [namespace("/{kind}/{name}", "/things/{name}")],
        [namespace("/berth/{name}"), namespace("/v1", prefix="/berth")],
    ],
)
def test_a_route_that_another_one_shadows_is_refused(namespaces: list[Namespace]) -> None:
    """When the table is built, because no request would reach it; also of another namespace."""
    with pytest.raises(AmbiguousRoutes, match="match the same paths"):
        routes_of(namespaces)
    assert routes_of(NAMESPACES)
