# SPDX-License-Identifier: Apache-2.0
"""Every route has a request of which every call fails."""

from __future__ import annotations

from collections.abc import Iterable

from berth.api.namespaces import PLACEMENT
from berth.api.operation import Operation
from tests.proof.faults.requests import READS, WRITES, Request
from tests.proof.faults.stage import Play, send, staged
from tests.proof.faults.test_reads import change_meanwhile
from tests.routes import PUBLIC, minor, route_of

#: (method, path template, first microversion), as the operations declare them.
Name = tuple[str, str, int]

SERVED: dict[Name, Operation] = {
    (operation.method, operation.path, operation.since): operation
    for operation in PLACEMENT.operations
}


def test_every_route_that_writes_is_broken(play: Play) -> None:
    """An accepted request at a microversion of each form of the route."""
    assert accepted(play, WRITES) == {name for name in SERVED if name[0] != "GET"}


def test_every_route_that_reads_is_broken(play: Play) -> None:
    """All but those that only describe the API and use no database."""
    reads = {name for name in SERVED if name[0] == "GET"}
    public = {("GET", path, 0) for path in PUBLIC}
    assert accepted(play, READS, meanwhile=True) == reads - public


def accepted(play: Play, requests: Iterable[Request], *, meanwhile: bool = False) -> set[Name]:
    """The operations of those requests that are accepted, each in a world of its own."""
    found = set()
    for request in requests:
        with staged(play) as stage:
            if meanwhile:
                change_meanwhile(stage)
            if send(request, stage.sabotaged).status < 300:
                found.add(name_of(request))
    return found


def name_of(request: Request) -> Name:
    """The operation of a request."""
    route = route_of(request.path.partition("?")[0])
    assert route is not None
    (name,) = (
        (method, path, since)
        for (method, path, since), operation in SERVED.items()
        if (method, path) == (request.method, route.template)
        and since <= minor(request.version) <= operation.until
    )
    return name
