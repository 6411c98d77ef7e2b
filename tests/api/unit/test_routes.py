# SPDX-License-Identifier: Apache-2.0
"""The declared operations, compared with the specification's list and the policy's rules."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from berth.api.guarding import guarding_rules
from berth.api.namespaces import NAMESPACES, PLACEMENT
from berth.api.operation import DONE, Namespace, Operation
from berth.api.router import Router
from berth.api.routes import AmbiguousRoutes, routes_of
from berth.edge.probes import PROBES
from tests.routes import OWN, PUBLIC

SPECIFICATION = Path(__file__).parents[3] / "docs" / "spec" / "rest-api.md"
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


def nothing(*arguments: object) -> None:
    """No response."""


def namespace(*paths: str, prefix: str = "") -> Namespace:
    """A namespace of operations that do nothing."""
    operations = [
        Operation(
            "GET", path, handler=nothing, rule=None, tag="Tests", summary="Nothing", answers=DONE
        )
        for path in paths
    ]
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


def test_routes_that_differ_in_any_segment_are_none_of_these() -> None:
    """In the last segment, between two parameters, or in the number of segments; each is found."""
    paths = ["/a/{b}/c/{d}/e", "/a/{b}/c/{d}/f", "/a/{b}/x/{d}/e", "/a/{b}", "/v/1/x", "/{w}/1/y"]
    routes = routes_of([namespace(*paths)])
    assert [route.path for route in routes] == paths
    no_services: Any = None
    router = Router(routes, no_services)
    for path in ("/a/1/c/2/e", "/a/1/c/2/f", "/a/1/x/2/e", "/a/1", "/v/1/x", "/v/1/y"):
        match = router.find(path)
        assert match is not None and match[0].path == paths.pop(0)
    assert not [path for path in ("/a/1/x/2/f", "/a/2/y", "/v/2/x") if router.find(path)]
