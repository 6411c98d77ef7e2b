# SPDX-License-Identifier: Apache-2.0
"""Capacities beyond all numbers of 64 bits: ratios are up to 3.4e38 (spec/beyond.md 4.1)."""

from __future__ import annotations

from typing import Any, Final

from tests.api.worlds import done, new_uuid
from tests.client import Client
from tests.worlds import world

#: What a provider counts as having left at most.
MOST: Final = 2**53 - 1

FLEET: Final = world("""
    cn1       MEMORY_MB=64  @A
      numa0   VCPU=2000000000(ratio:3.4e38)
      numa1   VCPU=2000000000(ratio:3.4e38)
    cn2       VCPU=2000000000(ratio:3.4e38)  MEMORY_MB=64  @A
    pool      DISK_GB=2000000000(ratio:3.4e38)  MISC_SHARES_VIA_AGGREGATE  @A
""")
CPU: Final[dict[str, Any]] = {"groups": {"": {"resources": {"VCPU": 1}}}}
DISK: Final[dict[str, Any]] = {"groups": {"": {"resources": {"VCPU": 1, "DISK_GB": 1}}}}


def test_counts_and_their_sums_are_numbers(fleet: Client) -> None:
    """Of one host, of all, by aggregate, and with a pool: never below zero, and the bound is never
    below the count."""
    asked = {"requests": {"cpu": CPU, "disk": DISK}, "by": ["aggregate"], "hosts_max": 3}
    answer = done(fleet.post("/berth/v1/capacity", json=asked), 200).json["flavors"]
    cpu, disk = answer["cpu"], answer["disk"]
    assert (cpu["count"], cpu["at_most"], cpu["exact"]) == (3 * MOST, 3 * MOST, True)
    assert [each["count"] for each in cpu["best"]] == [2 * MOST, MOST]
    (line,) = cpu["by"]["aggregate"].values()
    assert line["count"] == 3 * MOST
    assert cpu["classes"]["VCPU"]["free"] == cpu["classes"]["VCPU"]["usable"] == 3 * MOST
    assert cpu["classes"]["VCPU"]["stranded"] == 0
    assert (disk["count"], disk["at_most"]) == (MOST, MOST)


def test_everything_else_takes_them_too(fleet: Client) -> None:
    """Places, candidates in an order, explanations, trees, the fleet and metrics."""
    consumers = [
        {"uuid": new_uuid(), "project_id": "p", "user_id": "u", "consumer_type": "TEST"}
        for _ in range(3)
    ]
    sent = {"request": DISK, "consumers": consumers, "max_per": {"host": 2}}
    assert (
        len(done(fleet.post("/berth/v1/place?dry_run=true", json=sent), 200).json["placements"])
        == 3
    )
    hopeless = {"groups": {"": {"resources": {"VCPU": 2147483647, "MEMORY_MB": 65}}}}
    explained = done(fleet.post("/berth/v1/explain", json={"request": hopeless}), 200).json
    assert explained["verdict"] == "never"
    ordered = {"request": CPU, "order": {"by": "preserve", "preserve": {"cpu": 1}}}
    done(fleet.put("/berth/v1/flavors/cpu", json={"request": CPU, "expose": True}), 201)
    assert len(done(fleet.post("/berth/v1/candidates", json=ordered), 200).json["candidates"]) == 3
    totals = done(fleet.get("/berth/v1/trees/cn1?include=usages"), 200).json["totals"]
    assert totals["VCPU"]["free"] > MOST
    assert done(fleet.get("/berth/v1/fleet"), 200).status == 200
