# SPDX-License-Identifier: Apache-2.0
"""The table of routes: the operations of each path, by method. Source: spec/rest-api.md 1.3."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations

from berth.api.operation import Namespace, Operation


@dataclass(frozen=True, slots=True)
class Route:
    """A path template and its operations by method, in the order of the `Allow` header."""

    path: str
    methods: Mapping[str, tuple[Operation, ...]]
    namespace: Namespace

    @property
    def prefix_of_rest(self) -> str | None:
        """What precedes a last parameter that may have slashes; None without one."""
        prefix, _, last = self.path.rpartition("/")
        operations = next(iter(self.methods.values()))
        segment = operations[0].segments.get(last.strip("{}")) if is_parameter(last) else None
        return f"{prefix}/" if segment is not None and segment.is_rest else None


class AmbiguousRoutes(Exception):
    """A path matches two routes."""

    def __init__(self, route: Route, other: Route) -> None:
        super().__init__(f"{route.path} and {other.path} match the same paths")


def routes_of(namespaces: Iterable[Namespace]) -> tuple[Route, ...]:
    """The routes of the namespaces.

    Raises:
        AmbiguousRoutes: two of them match a path, so one would never be found.
    """
    routes = tuple(route for namespace in namespaces for route in _routes_in(namespace))
    for first, second in combinations(routes, 2):
        if _overlap(first.path, second.path):
            raise AmbiguousRoutes(first, second)
    return routes


def is_parameter(segment: str) -> bool:
    """Whether a template's segment stands for any text."""
    return segment.startswith("{")


def _routes_in(namespace: Namespace) -> Iterator[Route]:
    paths: dict[str, dict[str, tuple[Operation, ...]]] = {}
    for operation in namespace.operations:
        methods = paths.setdefault(namespace.path_of(operation), {})
        methods[operation.method] = (*methods.get(operation.method, ()), operation)
    for path, methods in paths.items():
        yield Route(path, methods, namespace)


def _overlap(first: str, second: str) -> bool:
    segments, others = first.split("/"), second.split("/")
    return len(segments) == len(others) and all(
        segment == opposite or is_parameter(segment) or is_parameter(opposite)
        for segment, opposite in zip(segments, others, strict=True)
    )
