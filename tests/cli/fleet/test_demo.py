# SPDX-License-Identifier: Apache-2.0
"""`berth demo load`: the same fleet every time, and nothing of it is left when it is removed."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any, cast

import pytest

from berth.cli.fleet import demo_loading
from berth.cli.fleet.client import Client, of_transport
from berth.cli.fleet.demo_fleet import demo_fleet
from berth.cli.fleet.demo_service import Traffic
from berth.config import Settings
from berth.direct import PlacementDirect
from berth.model.paths import DRAINS
from berth.model.refusals import Forbidden
from berth.store.engine.database import Database


def test_the_fleet_is_as_its_help_says() -> None:
    """200 hosts in three zones and 25 racks; a pool instead of disks in one of the zones."""
    fleet = demo_fleet()
    assert fleet == demo_fleet()
    traits = Counter(trait for provider in fleet.providers for trait in provider.traits)
    assert (traits["COMPUTE_NODE"], traits["HW_NUMA_ROOT"]) == (200, 400)
    assert (traits["CUSTOM_A100"], traits["CUSTOM_T4"]) == (40, 40)
    keys = Counter(key for labels in fleet.labels.values() for key in labels)
    assert keys == {"name": 28, "zone": 3, "rack": 25}
    disks = Counter("DISK_GB" in provider.inventories for provider in fleet.providers)
    assert disks[True] == 17 * 8 + 1


def test_a_larger_fleet_has_zones_of_the_same_shares() -> None:
    """Racks of eight hosts, names of one length, and a pool that grows with it."""
    fleet = demo_fleet(2_000)
    hosts = [host for host in fleet.providers if "COMPUTE_NODE" in host.traits]
    assert (hosts[0].name, hosts[-1].name) == ("cn0001", "cn2000")
    zones = {
        labels["zone"]: sum(uuid in host.aggregates for host in hosts)
        for uuid, labels in fleet.labels.items()
        if "zone" in labels
    }
    assert zones == {"z1": 90 * 8, "z2": 80 * 8, "z3": 80 * 8}
    assert fleet.providers[0].inventories == {"DISK_GB": {"total": 2_000_000}}


def test_whoever_may_not_do_all_of_it_loads_nothing() -> None:
    """Half a fleet would be in the way of the next attempt."""

    class Administrator:
        def read(self, path: str) -> Any:
            """May do everything but reshape."""
            assert path == "/berth/v1/permissions", "nothing else was read"
            reshaping = {"allowed": False, "reason": "You need the role service."}
            allowed = {"allowed": True}
            rules = {"traits:update": allowed, "reshaper:reshape": reshaping}
            return {"permissions": {f"placement:{name}": rule for name, rule in rules.items()}}

    with pytest.raises(Forbidden, match=r"^you may not load .*: You need the role service\.$"):
        demo_loading.load(cast(Client, Administrator()), demo_fleet(8))


@pytest.mark.parametrize(
    ("hosts", "drains_max"), [(16, 2), pytest.param(40, 3, marks=pytest.mark.thorough)]
)
def test_something_goes_on_in_every_fleet(
    settings: Settings, database: Database, hosts: int, drains_max: int
) -> None:
    """Machines come and go; racks are drained and come back, however few there are."""
    fleet = demo_fleet(hosts)
    with PlacementDirect(settings.conf) as direct:
        client = of_transport(direct)
        demo_loading.load(client, fleet)
        before = consumers(client)
        traffic = Traffic(client, fleet, Random(hosts))
        traffic.begin()
        drained = {drains(client)}
        for number in range(600):
            traffic.step()
            if number % 20 == 0:
                drained.add(drains(client))
        after = consumers(client)
    assert after - before
    assert before - after
    assert len(drained) > 1
    assert max(map(len, drained)) == drains_max


def consumers(client: Client) -> set[str]:
    """The UUIDs of all consumers."""
    return {consumer.uuid for consumer in client.consumers()}


def drains(client: Client) -> frozenset[str]:
    """The names of all drains."""
    return frozenset(drain["name"] for drain in client.read(DRAINS)["drains"])
