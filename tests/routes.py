# SPDX-License-Identifier: Apache-2.0
"""The routes of the API as the specification lists them (rest-api.md 1.3), and berth's own."""

from __future__ import annotations

import re
from dataclasses import dataclass

#: Every microversion, oldest first.
VERSIONS = [f"1.{minor}" for minor in range(40)]


@dataclass(frozen=True)
class Route:
    """A path template, its methods in the order of the `Allow` header, and its microversions."""

    template: str
    methods: tuple[str, ...]
    since: str = "1.0"

    @property
    def pattern(self) -> re.Pattern[str]:
        """Matches the paths of this route: a parameter is one segment that is not empty."""
        return re.compile(re.sub(r"\{\w+\}", "[^/]+", self.template) + r"\Z")

    def path(self, **parameters: str) -> str:
        """The path with its parameters filled in, `x` for each that is not given."""
        return re.sub(r"\{(\w+)\}", lambda name: parameters.get(name[1], "x"), self.template)

    def since_for(self, method: str) -> str:
        """The microversion in which a method of this route began."""
        return "1.5" if (self.template, method) == (INVENTORIES, "DELETE") else self.since


INVENTORIES = "/resource_providers/{uuid}/inventories"

ROUTES = [
    Route("/", ("GET",)),
    Route("/openapi.json", ("GET",)),
    Route("/resource_providers", ("GET", "POST")),
    Route("/resource_providers/{uuid}", ("GET", "DELETE", "PUT")),
    Route(INVENTORIES, ("GET", "POST", "PUT", "DELETE")),
    Route("/resource_providers/{uuid}/inventories/{resource_class}", ("GET", "PUT", "DELETE")),
    Route("/resource_providers/{uuid}/usages", ("GET",)),
    Route("/resource_providers/{uuid}/allocations", ("GET",)),
    Route("/resource_providers/{uuid}/aggregates", ("GET", "PUT"), "1.1"),
    Route("/resource_providers/{uuid}/traits", ("GET", "PUT", "DELETE"), "1.6"),
    Route("/traits", ("GET",), "1.6"),
    Route("/traits/{name}", ("GET", "PUT", "DELETE"), "1.6"),
    Route("/resource_classes", ("GET", "POST"), "1.2"),
    Route("/resource_classes/{name}", ("GET", "PUT", "DELETE"), "1.2"),
    Route("/allocations", ("POST",), "1.13"),
    Route("/allocations/{consumer_uuid}", ("GET", "PUT", "DELETE")),
    Route("/allocation_candidates", ("GET",), "1.10"),
    Route("/usages", ("GET",), "1.9"),
    Route("/reshaper", ("POST",), "1.30"),
]

#: Those that tell of the API alone: open to everybody, and the same whatever the fleet is.
PUBLIC = {"/", "/openapi.json"}
#: Those that the original does not have.
OWN = {"/openapi.json"}

#: Every pair of route and method.
OPERATIONS = [(route, method) for route in ROUTES for method in route.methods]


def minor(version: str) -> int:
    """The number after the point, by which microversions are ordered."""
    return int(version.partition(".")[2])


def route_of(path: str) -> Route | None:
    """The route that a request path belongs to, or None."""
    path = path or "/"
    return next((route for route in ROUTES if route.pattern.match(path)), None)
