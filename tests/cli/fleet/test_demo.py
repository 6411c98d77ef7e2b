# SPDX-License-Identifier: Apache-2.0
"""`berth demo load`: the same fleet every time, and nothing of it is left when it is removed."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any, cast

import pytest

from berth.cli.fleet import demo_loading
from berth.cli.fleet.client import DRAINS, Client, of_transport
from berth.cli.fleet.demo_fleet import demo_fleet
from berth.cli.fleet.demo_traffic import Traffic
from berth.cli.fleet.refusals import Forbidden
from berth.config import Settings
from berth.direct import PlacementDirect
from berth.store.engine.database import Database
from tests.cli.fleet.ways import BothWays

CONSUMER = "11111111-2222-4333-8444-555555555555"
OWNER = ("--project", "shop", "--user", "alice")


def test_the_fleet_is_the_same_every_time() -> None:
    """Names, UUIDs, amounts and use."""
    assert demo_fleet() == demo_fleet()


def test_the_fleet_is_as_its_help_says() -> None:
    """200 hosts in three zones and 25 racks; a pool instead of disks in one of the zones."""
    fleet = demo_fleet()
    traits = Counter(trait for provider in fleet.providers for trait in provider.traits)
    assert (traits["COMPUTE_NODE"], traits["HW_NUMA_ROOT"]) == (200, 400)
    assert (traits["CUSTOM_A100"], traits["CUSTOM_T4"]) == (40, 40)
    keys = Counter(key for labels in fleet.labels.values() for key in labels)
    assert keys == {"name": 28, "zone": 3, "rack": 25}
    disks = Counter("DISK_GB" in provider.inventories for provider in fleet.providers)
    assert disks[True] == 17 * 8 + 1


def test_the_fleet_is_loaded_and_removed(berth: BothWays) -> None:
    """Consumers of the reader's own go with it, unless they are elsewhere too."""
    before = berth.ok("trait", "list").stdout
    loaded = berth.ok("demo", "load")
    assert loaded.stdout.startswith("loaded 200 hosts with 681 providers and ")
    assert berth.ok("provider", "list").lines[-1] == "681 providers in 201 trees"
    again = berth("demo", "load")
    assert (again.code, again.stderr) == (
        11,
        "berth: the demo fleet is there already: `berth demo load --remove` takes it away\n",
    )
    berth.ok("provider", "create", "mine", "--uuid", CONSUMER)
    berth.ok("inventory", "set", "mine", "VCPU=4")
    berth.ok("claim", CONSUMER, "cn001:DISK_GB=1", "mine:VCPU=1", *OWNER)
    refused = berth("demo", "load", "--remove")
    assert refused.stderr == (
        f"berth: consumer {CONSUMER} has allocations of other providers too: `berth release` it "
        "first\n"
    )
    berth.ok("claim", CONSUMER, "cn001:DISK_GB=1", *OWNER, "--replace")
    assert berth.ok("demo", "load", "--remove").stdout.startswith("removed 681 providers and ")
    assert berth.ok("provider", "list").lines[-1] == "1 provider in 1 tree"
    assert berth.ok("trait", "list").stdout == before
    assert berth.ok("demo", "load", "--remove").stdout == "removed 0 providers and 0 consumers\n"


def test_whoever_may_not_do_all_of_it_loads_nothing() -> None:
    """Half a fleet would be in the way of the next attempt."""

    class Administrator:
        def read(self, path: str) -> Any:
            """May do everything but reshape."""
            assert path == "/berth/v1/permissions", "nothing else was read"
            reshaping = {"allowed": False, "reason": "You need the role service."}
            return {
                "permissions": {
                    "placement:traits:update": {"allowed": True},
                    "placement:reshaper:reshape": reshaping,
                }
            }

    with pytest.raises(Forbidden, match=r"^you may not load .*: You need the role service\.$"):
        demo_loading.load(cast(Client, Administrator()), demo_fleet(8))


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


def test_a_fleet_of_another_size_is_loaded_and_removed(berth: BothWays) -> None:
    """The size names the fleet to take away, too."""
    loaded = berth.ok("demo", "load", "--hosts", "16")
    assert loaded.stdout.startswith("loaded 16 hosts with 55 providers and ")
    removed = berth.ok("demo", "load", "--hosts", "16", "--remove")
    assert removed.stdout.startswith("removed 55 providers and ")


@pytest.mark.parametrize(("hosts", "drains_max"), [(16, 2), (40, 3)])
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
        for number in range(2_000):
            traffic.step()
            if number % 100 == 0:
                drained.add(drains(client))
        after = consumers(client)
    assert after - before
    assert before - after
    assert len(drained) > 1
    assert max(map(len, drained)) == drains_max


def consumers(client: Client) -> set[str]:
    """The UUIDs of all consumers."""
    return {consumer.uuid for consumer in client.for_programs.consumers()}


def drains(client: Client) -> frozenset[str]:
    """The names of all drains."""
    return frozenset(drain["name"] for drain in client.read(DRAINS)["drains"])
