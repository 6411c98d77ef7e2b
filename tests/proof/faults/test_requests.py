# SPDX-License-Identifier: Apache-2.0
"""No route is left out: each has a request that is broken at every call."""

from __future__ import annotations

from collections.abc import Iterable

from berth.api.routes import ROUTES, Operation
from tests.proof.faults.requests import READS, WRITES, Request
from tests.proof.faults.stage import Play, send, staged
from tests.proof.faults.test_reads import change_meanwhile
from tests.routes import PUBLIC, minor, route_of

#: (method, path template, first microversion), as the table of routes has them.
Name = tuple[str, str, int]

SERVED: dict[Name, Operation] = {
    (method, route.path, operation.since): operation
    for route in ROUTES
    for method, operations in route.methods.items()
    for operation in operations
}


def test_every_route_that_writes_is_broken(play: Play) -> None:
    """A request that is accepted, at a microversion of each form that the route has."""
    assert accepted(play, WRITES) == {name for name in SERVED if name[0] != "GET"}


def test_every_route_that_reads_is_broken(play: Play) -> None:
    """All but those that tell of the API alone, which ask no database."""
    reads = {name for name in SERVED if name[0] == "GET"}
    public = {("GET", path, 0) for path in PUBLIC}
    assert accepted(play, READS, meanwhile=True) == reads - public


def accepted(play: Play, requests: Iterable[Request], *, meanwhile: bool = False) -> set[Name]:
    """What serves those of some requests that are accepted, each in a world of its own."""
    found = set()
    for request in requests:
        with staged(play) as stage:
            if meanwhile:
                change_meanwhile(stage)
            if send(request, stage.sabotaged).status < 300:
                found.add(name_of(request))
    return found


def name_of(request: Request) -> Name:
    """The entry in the table of routes that a request belongs to."""
    route = route_of(request.path.partition("?")[0])
    assert route is not None
    (name,) = (
        (method, path, since)
        for (method, path, since), operation in SERVED.items()
        if (method, path) == (request.method, route.template)
        and since <= minor(request.version) <= operation.until
    )
    return name
