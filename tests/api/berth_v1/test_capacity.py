# SPDX-License-Identifier: Apache-2.0
"""`POST /berth/v1/capacity` over HTTP (spec/beyond.md 4)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import pytest

from tests.api import configured
from tests.api.wire import Rule, rules
from tests.api.worlds import done
from tests.client import Client
from tests.world_over_http import built_over_http
from tests.worlds import aggregate_uuid, world

FLEET: Final = world("""
    cn1     VCPU=16(used:4)  MEMORY_MB=8192  CUSTOM_FAST  @A
    cn2     VCPU=16(used:15)  MEMORY_MB=8192  @A
    cn3     MEMORY_MB=4096  @B  CUSTOM_FAST
      numa0  VCPU=4
      numa1  VCPU=6
    cn4     VCPU=64  MEMORY_MB=1024  @B @A
    pool    DISK_GB=100(used:10)  MISC_SHARES_VIA_AGGREGATE  @A
""")
LABELS: Final = {"A": {"zone": "z1"}, "B": {"zone": "z2"}}

SMALL: Final[dict[str, Any]] = {"groups": {"": {"resources": {"VCPU": 2, "MEMORY_MB": 1024}}}}
DISK: Final[dict[str, Any]] = {"groups": {"": {"resources": {"VCPU": 1, "DISK_GB": 8}}}}


@pytest.fixture(scope="module")
def labelled(fleet: Client) -> Client:
    """The service, with labels and two flavors."""
    for name, labels in LABELS.items():
        path = f"/berth/v1/aggregates/{aggregate_uuid(name)}"
        assert fleet.put(path, json={"labels": labels}).status == 200
    for name, request in (("small", SMALL), ("disk", DISK)):
        assert fleet.put(f"/berth/v1/flavors/{name}", json={"request": request}).status == 201
    return fleet


@rules(
    """
    an answer counts on all hosts, by zone, and on the best hosts
        POST /berth/v1/capacity {by: [zone], hosts_max: 2, requests: {mine: {
            query: "resources=VCPU:2,MEMORY_MB:1024&limit=1"}}}
        200 {revision: _, complete: true, warnings: [{code: limit_ignored,
            at: /requests/mine/query}], flavors: {mine: {count: 11, at_most: 11, exact: true,
            hosts: 3, classes: {
                VCPU: {free: 87, usable: 22, stranded: 65, largest: 64},
                MEMORY_MB: {free: 21504, usable: 11264, stranded: 10240, largest: 8192}},
            by: {zone: {z1: {count: 7, at_most: 7, hosts: 2},
                z2: {count: 5, at_most: 5, hosts: 2}}},
            best: [{host: {uuid: $cn1, name: cn1}, count: 6, at_most: 6},
                {host: {uuid: $cn3, name: cn3}, count: 4, at_most: 4}]}}}

    pools count once: each host could use all of one, and all together can use it once
        POST /berth/v1/capacity {flavors: [disk], by: [host, aggregate]}
        200 {flavors: {disk: {count: 11, at_most: 11, exact: true, by: {
            host: {$cn1: {name: cn1, count: 11, ...}, $cn2: {name: cn2, count: 1, ...},
                $cn3: {name: cn3, count: 0, ...}, $cn4: {name: cn4, count: 11, ...},
                $pool: {name: pool, count: 0, ...}},
            aggregate: {$A: {count: 11, ...}, $B: {count: 11, ...}}}, classes: {
            DISK_GB: {free: 90, usable: 88, stranded: 2, largest: 90}, VCPU: _}, ...}}, ...}

    without requests all flavors are counted, with them only those, and flavors that are named
        POST /berth/v1/capacity $1
        200 {flavors: $2, ...}
        | {}                                                        | {disk: _, small: _}
        | {requests: {x: {query: "resources=VCPU:1"}}}              | {x: _}
        | {flavors: [small], requests: {x: {query: "resources=VCPU:2,MEMORY_MB:1024"}}} |
            {small: $same, x: $same}
        | {flavors: []}                                             | {}

    the first alternative that fits any host counts, or else the last
        POST /berth/v1/capacity {requests: {x: {alternatives: [{query: "resources=VCPU:1000"},
            {query: $1}]}}}
        200 {flavors: {x: {alternative: 1, count: $2, ...}}, ...}
        | "resources=VCPU:2,MEMORY_MB:1024" | 11
        | "resources=VCPU:1001"             | 0

    a scenario shows each figure beside the present one
        POST /berth/v1/capacity {flavors: [small], by: [zone, host], hosts_max: 1, what_if: {
            without_hosts: [cn1], add_hosts: [{like: cn3, count: 2}]}}
        200 {flavors: {small: {count: 13, now: {count: 11, at_most: 11, exact: true, hosts: 3},
            classes: {VCPU: {free: 95, now: {free: 87, ...}, ...}, MEMORY_MB: _}, best: [_], by: {
            zone: {z1: {count: 1, at_most: 1, hosts: 1, now: {count: 7, at_most: 7, hosts: 2}},
                z2: {count: 13, at_most: 13, hosts: 4, now: {count: 5, at_most: 5, hosts: 2}}},
            host: {$cn2: {name: cn2, count: 0, at_most: 0, now: {count: 0, at_most: 0}},
                $cn3: {name: cn3, count: 4, at_most: 4, now: {count: 4, at_most: 4}},
                $cn4: {name: cn4, count: 1, at_most: 1, now: {count: 1, at_most: 1}},
                $pool: {name: pool, count: 0, at_most: 0, now: {count: 0, at_most: 0}}, ...}},
            ...}}, ...}

    what is left of a zone that fails, and what a consumer would leave free
        POST /berth/v1/capacity {flavors: [small], by: [zone], what_if: $1}
        200 {flavors: {small: {count: $2, now: {count: 11, ...}, by: {zone: {z1: $3, z2: _}}, ...}},
            ...}
        | {without_hosts: [cn1, cn2, cn4, pool]}  | 4  | {count: 0, at_most: 0, hosts: 0,
            now: {count: 7, at_most: 7, hosts: 2}}
        | {without_consumers: [$cn2.consumer]}    | 19 | {count: 15, hosts: 3, ...}

    what stands for nothing matches nothing, and is warned of
        PUT /berth/v1/flavors/nowhere {request: {groups: {"": {resources: {VCPU: 1}}},
            host: {member_of: ["zone=z9"]}}}
        201
        POST /berth/v1/capacity {flavors: [nowhere], by: [zone, zonee, host, aggregate],
            what_if: {without_hosts: [cn99]}}
        200 {flavors: {nowhere: {count: 0, by: {zonee: {}, zone: _, host: _, aggregate: _}, ...}},
            warnings: [
            {code: unknown_provider, at: /what_if/without_hosts/0, reference: cn99},
            {code: unknown_label, at: /by/1, reference: zonee},
            {code: unknown_aggregate, at: /flavors/nowhere/host/member_of/0, reference: "zone=z9"}],
            ...}
        DELETE /berth/v1/flavors/nowhere
        204

    a flavor whose trait is gone says so, and the others are counted
        PUT /traits/CUSTOM_GONE
        201
        PUT /berth/v1/flavors/gone {request: {groups: {"": {resources: {VCPU: 1},
            required: [CUSTOM_GONE]}}}}
        201
        DELETE /traits/CUSTOM_GONE
        204
        POST /berth/v1/capacity {}
        200 {flavors: {disk: _, small: {count: 11, ...}, gone: {unknown: [{kind: trait,
            at: /flavors/gone/groups//required/0, name: CUSTOM_GONE, did_you_mean: []}]}}, ...}
        DELETE /berth/v1/flavors/gone
        204
    """
)
def test_capacity(rule: Rule, labelled: Client, names: Mapping[str, str]) -> None:
    """The rows of the table."""
    rule.check(labelled, names)


#: What a provider counts as having left at most.
MOST: Final = 2**53 - 1

HUGE: Final = world("""
    cn1       MEMORY_MB=64  @A
      numa0   VCPU=2000000000(ratio:3.4e38)
      numa1   VCPU=2000000000(ratio:3.4e38)
    cn2       VCPU=2000000000(ratio:3.4e38)  MEMORY_MB=64  @A
    pool      DISK_GB=2000000000(ratio:3.4e38)  MISC_SHARES_VIA_AGGREGATE  @A
""")
ONE_CPU: Final[dict[str, Any]] = {"groups": {"": {"resources": {"VCPU": 1}}}}
ONE_DISK: Final[dict[str, Any]] = {"groups": {"": {"resources": {"VCPU": 1, "DISK_GB": 1}}}}


def test_huge_counts_and_their_sums_are_numbers(tmp_path: Path) -> None:
    """Of one host, of all, by aggregate, and with a pool: never below zero, and the bound is never
    below the count."""
    asked = {"requests": {"cpu": ONE_CPU, "disk": ONE_DISK}, "by": ["aggregate"], "hosts_max": 3}
    client = configured.serve(tmp_path)
    with built_over_http(HUGE, client):
        answer = done(client.post("/berth/v1/capacity", json=asked), 200).json["flavors"]
    cpu, disk = answer["cpu"], answer["disk"]
    assert (cpu["count"], cpu["at_most"], cpu["exact"]) == (3 * MOST, 3 * MOST, True)
    assert [each["count"] for each in cpu["best"]] == [2 * MOST, MOST]
    (line,) = cpu["by"]["aggregate"].values()
    assert line["count"] == 3 * MOST
    assert cpu["classes"]["VCPU"]["free"] == cpu["classes"]["VCPU"]["usable"] == 3 * MOST
    assert cpu["classes"]["VCPU"]["stranded"] == 0
    assert (disk["count"], disk["at_most"]) == (MOST, MOST)
