# SPDX-License-Identifier: Apache-2.0
"""`POST /berth/v1/capacity` over HTTP (spec/beyond.md 4)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final
from uuid import UUID

import pytest

from tests.api import configured
from tests.api.wire import Rule, rules
from tests.client import Client
from tests.world_over_http import built_over_http
from tests.worlds import aggregate_uuid, provider_uuid, world

PATH: Final = "/berth/v1/capacity"

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

    a name of a flavor is refused if a request has it too, or no flavor has it
        POST /berth/v1/capacity $1
        400 $2
        | {flavors: [small], requests: {small: {query: "resources=VCPU:1"}}} |
            {pointer: /requests/small} has the name of a flavor
        | {flavors: [smal]} |
            berth.name.unknown {pointer: /flavors/0, did_you_mean: [small]} no flavor smal.
    """
)
def test_capacity(rule: Rule, labelled: Client, names: Mapping[str, str]) -> None:
    """The rows of the table."""
    rule.check(labelled, names)


def capacity(client: Client, **body: Any) -> dict[str, Any]:
    """The answer to a question, which is no error."""
    answered = client.post(PATH, json=body)
    assert answered.status == 200, answered.text
    answer: dict[str, Any] = answered.json
    return answer


def refusal(client: Client, **body: Any) -> tuple[str, str | None, str]:
    """The code, the pointer and the text of a refusal."""
    answered = client.post(PATH, json=body)
    assert answered.status == 400, answered.text
    return answered.error["code"], answered.error.get("pointer"), answered.detail


def test_hosts_that_are_added_have_no_present_figure(labelled: Client) -> None:
    """They are named after the one that they are like."""
    what_if = {"add_hosts": [{"like": "cn3", "count": 2}]}
    answer = capacity(labelled, flavors=["small"], what_if=what_if, by=["host"])
    lines = answer["flavors"]["small"]["by"]["host"].values()
    added = {line["name"]: (line["count"], line["now"]) for line in lines if "#" in line["name"]}
    assert added == {"cn3#1": (4, None), "cn3#2": (4, None)}


def test_bounds_of_an_answer(labelled: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """Too many requests and lines in all are refused, before anything is counted."""
    few = {f"r{number}": SMALL for number in range(99)}
    got = refusal(labelled, flavors=["small", "disk"], requests=few)
    assert got[:2] == ("berth.request.too_large", "/requests")
    assert "would count 101 flavors and requests in all" in got[2]
    monkeypatch.setattr("berth.api.berth_v1.capacity.CAPACITY_LINES_MAX", 3)
    assert capacity(labelled, flavors=["small"], by=["zone"])
    got = refusal(labelled, flavors=["small"], by=["zone", "aggregate"])
    assert got[:2] == ("berth.request.too_large", "/by/1")
    assert "would make 4 lines" in got[2]
    monkeypatch.setattr("berth.api.berth_v1.capacity.CAPACITY_HOSTS_MAX", 9)
    got = refusal(labelled, flavors=["small", "disk"], by=["host"])
    assert got[:2] == ("berth.request.too_large", "/by/0")
    assert "would make 10 lines" in got[2]
    assert capacity(labelled, flavors=["small"], by=["host"])


def test_time_that_ends_leaves_lower_bounds(tmp_path: Path) -> None:
    """`complete` is false; counts are lower bounds, and the others are still bounds."""
    client = configured.serve(tmp_path, "[berth]\ncandidates_time_budget = 0.000001\n")
    with built_over_http(FLEET, client):
        answer = capacity(client, requests={"small": SMALL, "disk": DISK})
    assert not answer["complete"]
    for name, truth in (("small", 11), ("disk", 11)):
        figures = answer["flavors"][name]
        assert figures["count"] <= truth <= figures["at_most"]
        assert figures["exact"] == (figures["count"] == figures["at_most"])


@pytest.mark.parametrize("request_", [SMALL, DISK], ids=["small", "disk"])
def test_claims_until_failure_succeed_as_often_as_is_counted(
    tmp_path: Path, request_: dict[str, Any]
) -> None:
    """Where the count is exact and no host has a choice of pools, any order of claims reaches it;
    and then nothing is left."""
    client = configured.serve(tmp_path)
    with built_over_http(FLEET, client):
        answer = capacity(client, requests={"x": request_})["flavors"]["x"]
        assert answer["exact"]
        consumers = _claim_until_failure(client, request_)
        assert len(consumers) == answer["count"]
        after = capacity(client, requests={"x": request_})["flavors"]["x"]
        assert (after["count"], after["at_most"], after["hosts"]) == (0, 0, 0)
        for consumer in consumers:
            assert client.delete(f"/allocations/{consumer}").status == 204


def _claim_until_failure(client: Client, request: Mapping[str, Any]) -> list[str]:
    """Claim the first candidate of a request until there is none; return the consumers."""
    consumers: list[str] = []
    while True:
        body = {"request": request, "limit": 1, "order": {"by": "random", "seed": len(consumers)}}
        candidates = client.post("/berth/v1/candidates", json=body).json["candidates"]
        if not candidates:
            return consumers
        consumer = str(UUID(int=len(consumers) + 1))
        claim = {
            "allocations": candidates[0]["allocations"],
            "mappings": candidates[0]["mappings"],
            "project_id": "web",
            "user_id": "alice",
            "consumer_generation": None,
            "consumer_type": "INSTANCE",
        }
        assert client.put(f"/allocations/{consumer}", json=claim).status == 204
        consumers.append(consumer)


def test_preserve_leaves_large_holes_for_large_flavors(labelled: Client) -> None:
    """A small machine goes where it costs no large one: cn1 has 12 VCPUs and keeps room for two of
    six, numa1 of cn3 would lose its only one."""
    large = {"groups": {"": {"resources": {"VCPU": 6}}}}
    path = "/berth/v1/flavors/large"
    assert labelled.put(path, json={"request": large}).status == 201
    request = {
        "groups": {"": {"resources": {"VCPU": 1, "MEMORY_MB": 512}}},
        "host": {"in": ["cn1", "cn2", "cn3"]},
    }
    order = {"by": "preserve", "preserve": {"large": 2}}
    answered = labelled.post("/berth/v1/candidates", json={"request": request, "order": order})
    assert answered.status == 200, answered.text
    scores = {
        (candidate["host"], *sorted(candidate["allocations"])): candidate["score"]
        for candidate in answered.json["candidates"]
    }
    lost_one = {"total": 1 / 3, "preserve": 1 / 3, "prefer": []}
    lost_none = {"total": 1.0, "preserve": 1.0, "prefer": []}
    cn1, cn2, cn3, numa0, numa1 = map(provider_uuid, ("cn1", "cn2", "cn3", "numa0", "numa1"))
    assert scores == {
        (cn1, cn1): lost_one,
        (cn2, cn2): lost_none,
        (cn3, *sorted((cn3, numa0))): lost_none,
        (cn3, *sorted((cn3, numa1))): lost_one,
    }
    totals = [each["score"]["total"] for each in answered.json["candidates"]]
    assert totals == sorted(totals, reverse=True)
    owner = {"project_id": "web", "user_id": "alice", "consumer_type": "INSTANCE"}
    consumers = [{"uuid": str(UUID(int=number)), **owner} for number in range(1, 6)]
    body = {"request": request, "order": order, "consumers": consumers}
    placed = labelled.post("/berth/v1/place?dry_run=true", json=body)
    assert placed.status == 200, placed.text
    providers = sorted(
        provider
        for placement in placed.json["placements"].values()
        for provider, given in placement["allocations"].items()
        if "VCPU" in given["resources"]
    )
    # One is left on cn2 and four on numa0, and none of them costs a large one.
    assert providers == sorted([cn2, *[numa0] * 4])
    assert labelled.delete(path).status == 204
