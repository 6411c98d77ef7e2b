# SPDX-License-Identifier: Apache-2.0
"""A request leaves no circle of references: the garbage collector runs so seldom that what a circle
keeps, such as a long answer, would fill the memory. (A write that was refused does leave one.)"""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

import pytest

from tests.api.configured import serve
from tests.client import Client, Response
from tests.world_over_http import built_over_http
from tests.worlds import consumer_uuid, provider_uuid, world

FLEET: Final = world("host1  VCPU=8\n  numa0  MEMORY_MB=64\nhost2  VCPU=4")
HOST: Final = provider_uuid("host1")
OWNER: Final = {"project_id": "p", "user_id": "u"}
REQUEST: Final = {"groups": {"": {"resources": {"VCPU": 1}}}}


def claim(amount: int) -> dict[str, Any]:
    """A new consumer's claim on the first host."""
    amounts = {"allocations": {HOST: {"resources": {"VCPU": amount}}}}
    return {**amounts, **OWNER, "consumer_generation": None, "consumer_type": "INSTANCE"}


def placement() -> dict[str, Any]:
    """A placement of a consumer that the service names."""
    return {"request": REQUEST, "consumers": [{**OWNER, "consumer_type": "INSTANCE"}]}


REQUESTS: Final[dict[str, Callable[[Client], Response]]] = {
    "GET a provider": lambda client: client.get(f"/resource_providers/{HOST}"),
    "GET providers": lambda client: client.get("/resource_providers?resources=VCPU:1"),
    "GET candidates": lambda client: client.get("/allocation_candidates?resources=VCPU:1"),
    "GET candidates, none": lambda client: client.get("/allocation_candidates?resources=VCPU:99"),
    "PUT allocations": lambda client: client.put(
        f"/allocations/{consumer_uuid('new')}", json=claim(1)
    ),
    "DELETE allocations": lambda client: client.delete(f"/allocations/{consumer_uuid('new')}"),
    "POST candidates": lambda client: client.post(
        "/berth/v1/candidates", json={"request": REQUEST}
    ),
    "POST explain": lambda client: client.post("/berth/v1/explain", json={"request": REQUEST}),
    "POST capacity": lambda client: client.post("/berth/v1/capacity", json={"request": REQUEST}),
    "POST place": lambda client: client.post("/berth/v1/place", json=placement()),
    "POST place, wrong": lambda client: client.post("/berth/v1/place", json={"consumers": 1}),
    "no such path": lambda client: client.get("/nowhere"),
}


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    """A client of a service with a small fleet, which has answered each request twice."""
    client = serve(tmp_path_factory.mktemp("garbage"))
    with built_over_http(FLEET, client):
        for request in [*REQUESTS.values()] * 2:
            request(client)
        yield client


@pytest.mark.parametrize("name", REQUESTS)
def test_a_request_leaves_no_garbage(client: Client, name: str) -> None:
    """Everything that it made is freed when it has been answered."""
    with collected() as garbage:
        REQUESTS[name](client)
    assert not garbage, Counter(type(each).__qualname__ for each in garbage)


@contextmanager
def collected() -> Iterator[list[object]]:
    """What only a collection would free at the end of the block."""
    garbage: list[object] = []
    gc.collect()
    gc.disable()
    try:
        yield garbage
        gc.set_debug(gc.DEBUG_SAVEALL)
        gc.collect()
        garbage += gc.garbage
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()
