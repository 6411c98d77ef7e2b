# SPDX-License-Identifier: Apache-2.0
"""The routes of OpenStack Placement's API as berth serves them, and berth's own beside them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from berth.api.namespaces import BERTH, NAMESPACES, PLACEMENT
from berth.api.operation import Namespace
from berth.api.paths import routes_of

#: Every microversion, oldest first.
VERSIONS = [f"1.{minor}" for minor in range(40)]


@dataclass(frozen=True)
class Route:
    """A path template, and its methods in the order of the `Allow` header."""

    template: str
    methods: tuple[str, ...]
    #: For each method the microversion in which it began.
    begins: tuple[str, ...] = ()

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        """Matches the paths of this route: a parameter is one segment that is not empty."""
        return re.compile(re.sub(r"\{\w+\}", "[^/]+", self.template) + r"\Z")

    @property
    def since(self) -> str:
        """The microversion in which the route began."""
        return min(self.begins, key=minor)

    def path(self, **parameters: str) -> str:
        """The path with its parameters filled in, `x` for each that is not given."""
        return re.sub(r"\{(\w+)\}", lambda name: parameters.get(name[1], "x"), self.template)

    def since_for(self, method: str) -> str:
        """The microversion in which a method of this route began."""
        return self.begins[self.methods.index(method)]


INVENTORIES = "/resource_providers/{uuid}/inventories"


def _routes_of(namespace: Namespace) -> list[Route]:
    return [
        Route(
            route.path,
            tuple(route.methods),
            tuple(f"1.{operations[0].since}" for operations in route.methods.values()),
        )
        for route in routes_of([namespace])
    ]


#: `tests/api/test_routing.py` compares them with the specification.
ROUTES = _routes_of(PLACEMENT)
#: Those below `/berth/v1`.
BERTH_ROUTES = _routes_of(BERTH)

#: Those that tell of the API alone: open to everybody, and the same whatever the fleet is.
PUBLIC = {"/", "/openapi.json"}
#: Those that the original does not have.
OWN = {"/openapi.json"}

#: Every pair of route and method.
OPERATIONS = [(route, method) for route in ROUTES for method in route.methods]


def minor(version: str) -> int:
    """The number after the point, by which microversions are ordered."""
    return int(version.partition(".")[2])


def route_of(path: str, routes: Sequence[Route] = ROUTES) -> Route | None:
    """The one of some routes that a request path belongs to, or None."""
    path = path or "/"
    return next((route for route in routes if route.pattern.match(path)), None)


#: Method and path of each search, HEAD included.
SEARCHES: Final = frozenset(
    (method, namespace.path_of(operation))
    for namespace in NAMESPACES
    for operation in namespace.operations
    if operation.is_search
    for method in (operation.method, "HEAD")
)
