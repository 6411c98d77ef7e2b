# SPDX-License-Identifier: Apache-2.0
"""What a request is, by its method and path: its route, and whether it is public, reads, searches
or waits. It is found out once, and every layer reads the same `Match`.

Any spelling of a uuid works; other text is looked up as it is, and not found.
Source: spec/rest-api.md 1.3 and 1.9.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import combinations
from operator import itemgetter
from typing import Any, Final, NamedTuple
from wsgiref.types import WSGIEnvironment

from berth.api.contract import DRY_RUN
from berth.api.environ import MATCH, NO_ROUTE
from berth.api.errors import Refused
from berth.api.namespaces import NAMESPACES
from berth.api.operation import Namespace, Operation, is_parameter
from berth.api.query_string import parse_pairs
from berth.model.ids import ConsumerUUID, ProviderUUID, parse_uuid_lax

#: Takes some of the segments of a path.
_Pick = Callable[[list[str]], Any]


class Kind(NamedTuple):
    """What a request is.

    Attributes:
        is_read: it changes nothing; some searches are POST requests.
        is_watch: it may wait for changes.
        search_seconds: for which it may use the CPU, infinite for the operator's budget; None if it
            is no search.
        may_be_dry: with `dry_run=true` it changes nothing.
    """

    is_read: bool
    is_watch: bool = False
    search_seconds: float | None = None
    may_be_dry: bool = False


_READ: Final = Kind(is_read=True)
_WRITE: Final = Kind(is_read=False)
_DRY_RUN: Final = Kind(is_read=True, search_seconds=math.inf)


class Route:
    """A path template and its operations by method, in the order of the `Allow` header.

    Attributes:
        pick: takes the parameters out of the segments of a path.
        is_public: whether it describes the API alone, and nothing of the fleet: a request for it
            needs no token and does not queue.
        kinds: of requests, by method; a method that is not here may write.
    """

    __slots__ = ("is_public", "kinds", "methods", "namespace", "path", "pick")

    def __init__(
        self, path: str, methods: Mapping[str, tuple[Operation, ...]], namespace: Namespace
    ) -> None:
        self.path = path
        self.methods = methods
        self.namespace = namespace
        segments = path.split("/")
        places = [place for place, segment in enumerate(segments) if is_parameter(segment)]
        # Of one place, `itemgetter` returns no sequence.
        self.pick: _Pick = (
            itemgetter(*places)
            if len(places) > 1
            else itemgetter(*(slice(place, place + 1) for place in places or [0]))
        )
        operations = [operation for of_method in methods.values() for operation in of_method]
        self.is_public = bool(operations) and all(each.rule is None for each in operations)
        self.kinds: dict[str, Kind] = dict.fromkeys(("GET", "HEAD", "OPTIONS"), _READ)
        for operation in operations:
            kind = _kind_of(operation)
            self.kinds[operation.method] = kind
            if kind.is_read:
                self.kinds["HEAD"] = kind

    @property
    def prefix_of_rest(self) -> str | None:
        """What precedes a last parameter that may have slashes; None without one."""
        prefix, _, last = self.path.rpartition("/")
        operations = next(iter(self.methods.values()))
        segment = operations[0].segments.get(last.strip("{}")) if is_parameter(last) else None
        return f"{prefix}/" if segment is not None and segment.is_rest else None


def _kind_of(operation: Operation) -> Kind:
    seconds = operation.search_seconds if operation.is_search else None
    return Kind(operation.is_read, operation.is_watch, seconds, operation.may_be_dry)


class Match(NamedTuple):
    """A request's route and kind.

    Attributes:
        route: one without methods if no route of the namespace has the path.
        parameters: in the order of the path.
        path: decoded; WSGI passes each byte as a character.
    """

    route: Route
    parameters: Sequence[str]
    path: str
    kind: Kind


class AmbiguousRoutes(Exception):
    """A path matches two routes."""

    def __init__(self, route: Route, other: Route) -> None:
        super().__init__(f"{route.path} and {other.path} match the same paths")


def routes_of(namespaces: Iterable[Namespace]) -> tuple[Route, ...]:
    """The routes of the namespaces.

    Raises:
        AmbiguousRoutes: two of them match a path, so one would never be found.
    """
    routes = tuple(_routes_in(namespaces))
    for first, second in combinations(routes, 2):
        if _overlap(first.path, second.path):
            raise AmbiguousRoutes(first, second)
    return routes


def _routes_in(namespaces: Iterable[Namespace]) -> Iterator[Route]:
    for namespace in namespaces:
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


class _Table:
    """Finds the route of a path by all of its literal segments.

    Routes with literal segments in the same positions share a dictionary. A path is looked up in
    each dictionary of routes of its length; most lengths have one.
    """

    def __init__(self, routes: Iterable[Route]) -> None:
        #: Routes without parameters.
        self._literal: dict[str, Route] = {}
        #: Number of segments -> picks the literal segments, and the routes by them.
        self._by_length: dict[int, list[tuple[_Pick, dict[object, Route]]]] = {}
        #: The routes whose parameter may have slashes, by what precedes it.
        self._by_prefix: dict[str, Route] = {}
        tables: dict[tuple[int, ...], dict[object, Route]] = {}
        for route in routes:
            segments = route.path.split("/")
            literal = [place for place, each in enumerate(segments) if not is_parameter(each)]
            if len(literal) == len(segments):
                self._literal[route.path] = route
                continue
            pick = itemgetter(*literal)
            form = len(segments), *literal
            if form not in tables:
                tables[form] = {}
                self._by_length.setdefault(len(segments), []).append((pick, tables[form]))
            tables[form][pick(segments)] = route
            if (prefix := route.prefix_of_rest) is not None:
                self._by_prefix[prefix] = route

    def find(self, path: str) -> tuple[Route | None, Sequence[str]]:
        """The route of a decoded path and its parameters.

        A parameter is one segment and never empty, so doubled and trailing slashes are of no route;
        that of a few routes is the rest of the path.
        """
        if (literal := self._literal.get(path)) is not None:
            return literal, ()
        segments = path.split("/")
        for pick, routes in self._by_length.get(len(segments), ()):
            if (route := routes.get(pick(segments))) is not None:
                parameters = route.pick(segments)
                return (None, ()) if "" in parameters else (route, parameters)
        for prefix, route in self._by_prefix.items():
            if path.startswith(prefix):
                return route, (path.removeprefix(prefix),)
        return None, ()


#: Every route.
ROUTES: Final = routes_of(NAMESPACES)
_TABLE: Final = _Table(ROUTES)
#: For paths without a route: by what they begin with, that of every path last.
_NOWHERE: Final = tuple(
    (namespace.prefix and f"{namespace.prefix}/", Route(NO_ROUTE, {}, namespace))
    for namespace in reversed(NAMESPACES)
)


def match_of(environ: WSGIEnvironment) -> Match:
    """The route and the kind of a request, which are found out once."""
    match: Match | None = environ.get(MATCH)
    if match is not None:
        return match
    path: str = environ.get("PATH_INFO") or "/"
    if not path.isascii():
        path = path.encode("latin-1").decode("utf-8", "replace")
    route, parameters = _TABLE.find(path)
    if route is None:
        route = next(nowhere for prefix, nowhere in _NOWHERE if f"{path}/".startswith(prefix))
    kind = route.kinds.get(environ["REQUEST_METHOD"], _WRITE)
    if kind.may_be_dry and is_dry_run(environ):
        kind = _DRY_RUN
    match = environ[MATCH] = Match(route, parameters, path, kind)
    return match


def is_dry_run(environ: WSGIEnvironment) -> bool:
    """Whether a request, of an operation that may, only asks what it would do."""
    try:
        pairs = parse_pairs(environ.get("QUERY_STRING", ""))
    except Refused:
        return False
    return dict(pairs).get(DRY_RUN) == "true"


def provider_uuid(text: str) -> ProviderUUID:
    """The provider that a path names."""
    return ProviderUUID(parse_uuid_lax(text) or text)


def consumer_uuid(text: str) -> ConsumerUUID:
    """The consumer that a path names."""
    return ConsumerUUID(parse_uuid_lax(text) or text)
