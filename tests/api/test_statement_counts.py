# SPDX-License-Identifier: Apache-2.0
"""No request sends a number of SQL statements that grows with the fleet.

Performance is tested by counts, one kind of request at a time.
"""

from collections.abc import Iterator
from pathlib import Path
from threading import get_ident
from typing import Any

import pytest
from sqlalchemy import Engine, event

from tests.api import configured
from tests.api.claims import claim_body, consumer
from tests.api.whole_state import WRITES, World, small_world, writes
from tests.api.worlds import custom_class, custom_trait, new_uuid, provider
from tests.client import Client

pytestmark = pytest.mark.in_process

SMALL, LARGE = 5, 100


class Counter:
    """Counts the SQL statements of this thread while it is installed: other applications in this
    process may look at their own databases meanwhile."""

    def __init__(self) -> None:
        self.statements: list[str] = []
        self._thread = get_ident()

    def __call__(self, *args: object) -> None:
        if get_ident() == self._thread:
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


READS = [
    "/",
    "/resource_providers",
    "/resource_providers?in_tree={host}",
    "/resource_providers?member_of={aggregate}",
    "/resource_providers?required={trait},!HW_CPU_X86_VMX",
    "/resource_providers?resources=VCPU:1&required={trait}&member_of={aggregate}",
    "/resource_providers/{host}",
    "/resource_providers/{host}/inventories",
    "/resource_providers/{host}/inventories/{resource_class}",
    "/resource_providers/{host}/usages",
    "/resource_providers/{host}/allocations",
    "/resource_providers/{host}/aggregates",
    "/resource_providers/{host}/traits",
    "/traits",
    "/traits?associated=true",
    "/resource_classes",
    "/usages?project_id={project}",
    "/allocations/{holder}",
    "/allocation_candidates?resources=VCPU:1,MEMORY_MB:1",
    "/allocation_candidates?resources=VCPU:1&required={trait}&member_of={aggregate}&limit=3",
    "/allocation_candidates?resources1=VCPU:1&resources2=MEMORY_MB:1&group_policy=none",
]


def statements_of(counter: Counter, api: Client, method: str, path: str, **body: Any) -> int:
    """How many statements a request sends."""
    before = len(counter.statements)
    answer = api.request(method, path, **body)
    assert answer.status in (200, 201, 204), answer.body
    return len(counter.statements) - before


def test_reading_costs_the_same_in_a_large_fleet(
    fleets: tuple[Fleet, Fleet], counter: Counter
) -> None:
    """The first request refreshes the index; the second is counted."""
    for path in READS:
        counts = []
        for fleet in fleets:
            target = path.format(**vars(fleet.world))
            fleet.api.get(target)
            counts.append(statements_of(counter, fleet.api, "GET", target))
        assert counts[0] == counts[1], (path, counter.statements[-counts[1] :])


@pytest.mark.parametrize("name", WRITES)
def test_writing_costs_the_same_in_a_large_fleet(
    fleets: tuple[Fleet, Fleet], counter: Counter, name: str
) -> None:
    """Each write on a new world beside the fleet."""
    counts = []
    for fleet in fleets:
        write = writes(fleet.api, small_world(fleet.api))[name]
        sent = statements_of(counter, fleet.api, write.method, write.path, json=write.body)
        counts.append(sent)
    assert counts[0] == counts[1], counter.statements[-counts[1] :]


def test_deleting_costs_the_same_in_a_large_fleet(
    fleets: tuple[Fleet, Fleet], counter: Counter
) -> None:
    """New objects beside the fleet are deleted."""
    for path in (
        "/resource_providers/{host}/inventories",
        "/resource_providers/{host}/traits",
        "/resource_providers/{host}",
        "/traits/{trait}",
        "/resource_classes/{name}",
        "/allocations/{holder}",
    ):
        counts = []
        for fleet in fleets:
            world = small_world(fleet.api)
            things = {
                "host": provider(fleet.api, {"VCPU": 1}, traits=[world.trait]),
                "trait": custom_trait(fleet.api),
                "name": custom_class(fleet.api),
                "holder": world.holder,
            }
            counts.append(statements_of(counter, fleet.api, "DELETE", path.format(**things)))
        assert counts[0] == counts[1], (path, counter.statements[-counts[1] :])


def test_a_claim_costs_the_same_on_a_crowded_host(
    fleets: tuple[Fleet, Fleet], counter: Counter
) -> None:
    """A hundred consumers on the host do not make the next claim more expensive."""
    api = fleets[0].api
    counts = []
    for crowd in (SMALL, LARGE):
        host = provider(api, {"VCPU": LARGE + 1})
        body = {new_uuid(): claim_body("1.39", {host: {"VCPU": 1}}) for _ in range(crowd)}
        assert api.post("/allocations", json=body).status == 204
        claim = claim_body("1.39", {host: {"VCPU": 1}})
        counts.append(statements_of(counter, api, "PUT", f"/allocations/{new_uuid()}", json=claim))
    assert counts[0] == counts[1]
