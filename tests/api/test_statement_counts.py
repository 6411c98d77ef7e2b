# SPDX-License-Identifier: Apache-2.0
"""No request sends a number of SQL statements that grows with the fleet.

Performance is tested by counts, one kind of request at a time.
"""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from sqlalchemy import Engine, event

from tests.api import configured
from tests.api.claims import claim_body, consumer
from tests.api.whole_state import WRITES, World, small_world, writes
from tests.api.worlds import new_custom_name, new_uuid, provider
from tests.client import Response

pytestmark = pytest.mark.in_process

SMALL, LARGE = 5, 200


class Counter:
    """Counts the SQL statements of this process while it is installed."""

    def __init__(self) -> None:
        self.statements: list[str] = []

    def __call__(self, *args: object) -> None:
        self.statements.append(str(args[2]))


@pytest.fixture
def counter() -> Iterator[Counter]:
    """A counter for one test."""
    counter = Counter()
    event.listen(Engine, "before_cursor_execute", counter)
    yield counter
    event.remove(Engine, "before_cursor_execute", counter)


class Fleet:
    """A server with this many hosts, all in one aggregate and with allocations, and one world."""

    def __init__(self, folder: Path, hosts: int) -> None:
        self.api = configured.serve(folder)
        self.world: World = small_world(self.api)
        for _ in range(hosts):
            host = provider(
                self.api,
                {"VCPU": 4, "MEMORY_MB": 64},
                traits=["HW_CPU_X86_VMX", self.world.trait],
                aggregates=[self.world.aggregate],
            )
            consumer(self.api, {host: {"VCPU": 1}}, project=self.world.project)


@pytest.fixture(scope="module")
def fleets(tmp_path_factory: pytest.TempPathFactory) -> tuple[Fleet, Fleet]:
    """A small one and a large one."""
    small = Fleet(tmp_path_factory.mktemp("small"), SMALL)
    return small, Fleet(tmp_path_factory.mktemp("large"), LARGE)


def reading(path: str) -> Callable[[Fleet], Response]:
    """GET a path with the names of the world's objects filled in."""
    return lambda fleet: fleet.api.get(path.format(**vars_of(fleet.world)))


def vars_of(world: World) -> dict[str, str]:
    """The objects of a world by name."""
    return {
        "host": world.host,
        "holder": world.holder,
        "name": world.resource_class,
        "trait": world.trait,
        "aggregate": world.aggregate,
        "project": world.project,
    }


READS = [
    "/",
    "/resource_providers",
    "/resource_providers?name=x",
    "/resource_providers?in_tree={host}",
    "/resource_providers?member_of={aggregate}",
    "/resource_providers?member_of=!{aggregate}",
    "/resource_providers?required={trait},!HW_CPU_X86_VMX",
    "/resource_providers?resources=VCPU:1,MEMORY_MB:1",
    "/resource_providers?resources=VCPU:1&required={trait}&member_of={aggregate}",
    "/resource_providers/{host}",
    "/resource_providers/{host}/inventories",
    "/resource_providers/{host}/inventories/{name}",
    "/resource_providers/{host}/usages",
    "/resource_providers/{host}/allocations",
    "/resource_providers/{host}/aggregates",
    "/resource_providers/{host}/traits",
    "/traits",
    "/traits?associated=true",
    "/traits?name=startswith:HW",
    "/traits/{trait}",
    "/resource_classes",
    "/resource_classes/{name}",
    "/usages?project_id={project}",
    "/allocations/{holder}",
    "/allocation_candidates?resources=VCPU:1,MEMORY_MB:1",
    "/allocation_candidates?resources=VCPU:1&required={trait}&member_of={aggregate}&limit=3",
    "/allocation_candidates?resources1=VCPU:1&resources2=MEMORY_MB:1&group_policy=none",
]


@pytest.mark.parametrize("path", READS)
def test_reading_costs_the_same_in_a_large_fleet(
    fleets: tuple[Fleet, Fleet], counter: Counter, path: str
) -> None:
    """The first request refreshes the index; the second is counted."""
    counts = []
    for fleet in fleets:
        assert reading(path)(fleet).status in (200, 204)
        before = len(counter.statements)
        reading(path)(fleet)
        counts.append(len(counter.statements) - before)
    assert counts[0] == counts[1], counter.statements[-counts[1] :]


@pytest.mark.parametrize("name", WRITES)
def test_writing_costs_the_same_in_a_large_fleet(
    fleets: tuple[Fleet, Fleet], counter: Counter, name: str
) -> None:
    """Each write on a new world beside the fleet."""
    counts = []
    for fleet in fleets:
        write = writes(fleet.api, small_world(fleet.api))[name]
        before = len(counter.statements)
        answer = fleet.api.request(write.method, write.path, json=write.body)
        assert answer.status in (200, 201, 204), answer.body
        counts.append(len(counter.statements) - before)
    assert counts[0] == counts[1], counter.statements[-counts[1] :]


@pytest.mark.parametrize(
    "path",
    [
        "/resource_providers/{host}/inventories",
        "/resource_providers/{host}/traits",
        "/resource_providers/{host}",
        "/traits/{trait}",
        "/resource_classes/{name}",
        "/allocations/{holder}",
    ],
)
def test_deleting_costs_the_same_in_a_large_fleet(
    fleets: tuple[Fleet, Fleet], counter: Counter, path: str
) -> None:
    """A new object beside the fleet is deleted."""
    counts = []
    for fleet in fleets:
        world = small_world(fleet.api)
        trait, name = new_custom_name(), new_custom_name()
        assert fleet.api.put(f"/traits/{trait}").status == 201
        assert fleet.api.put(f"/resource_classes/{name}").status == 201
        things = {
            "host": provider(fleet.api, {"VCPU": 1}, traits=[world.trait]),
            "trait": trait,
            "name": name,
            "holder": world.holder,
        }
        before = len(counter.statements)
        assert fleet.api.delete(path.format(**things)).status == 204
        counts.append(len(counter.statements) - before)
    assert counts[0] == counts[1], counter.statements[-counts[1] :]


def test_a_claim_costs_the_same_on_a_crowded_host(
    fleets: tuple[Fleet, Fleet], counter: Counter
) -> None:
    """Two hundred consumers on the host do not make the next claim more expensive."""
    api = fleets[0].api
    counts = []
    for crowd in (SMALL, LARGE):
        host = provider(api, {"VCPU": LARGE + 1})
        body = {new_uuid(): claim_body("1.39", {host: {"VCPU": 1}}) for _ in range(crowd)}
        assert api.post("/allocations", json=body).status == 204
        before = len(counter.statements)
        claim = claim_body("1.39", {host: {"VCPU": 1}})
        assert api.put(f"/allocations/{new_uuid()}", json=claim).status == 204
        counts.append(len(counter.statements) - before)
    assert counts[0] == counts[1]
