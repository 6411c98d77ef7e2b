# SPDX-License-Identifier: Apache-2.0
"""`berth demo load`: the same fleet every time, and nothing of it is left when it is removed."""

from __future__ import annotations

from collections import Counter

from berth.cli.fleet.demo_fleet import demo_fleet
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
