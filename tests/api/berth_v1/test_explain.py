# SPDX-License-Identifier: Apache-2.0
"""`POST /berth/v1/explain` over HTTP (spec/beyond.md 3)."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import pytest

from tests.api import configured
from tests.api.claims import consumer
from tests.api.wire import Rule, rules
from tests.client import Client
from tests.worlds import provider_uuid, world

PATH: Final = "/berth/v1/explain"

FLEET: Final = world("""
    cn1     VCPU=4  MEMORY_MB=4096  CUSTOM_FAST  @A
    cn2     VCPU=16(used:12)  MEMORY_MB=8192  CUSTOM_FAST  @A
    cn3     VCPU=16  MEMORY_MB=8192  @A
    pool    DISK_GB=100  MISC_SHARES_VIA_AGGREGATE  @A
""")
REQUEST: Final[dict[str, Any]] = {
    "groups": {"_A": {"resources": {"VCPU": 8}, "required": ["CUSTOM_FAST"]}}
}


@rules(
    """
    an explanation has the stages, what would help, and the nearest hosts
        POST /berth/v1/explain {request: {groups: {_A: {resources: {VCPU: 8},
            required: [CUSTOM_FAST]}}}}
        200 {revision: _, complete: true, verdict: used_up, summary: "No host fits now; 1 would with
            nothing used. With VCPU 4 instead of 8 for _A, 2 hosts fit. Without trait CUSTOM_FAST
            for _A, 1 host fits.",
            hosts: {total: 4, pools: 1, fit: 0, fit_if_undrained: 0, fit_if_empty: 1},
            stages: [{at: /groups/_A/resources/VCPU, text: VCPU 8 for _A, has: 3, if_empty: 2,
                    alone: 1, left: 1},
                {at: /groups/_A/required/0, text: trait CUSTOM_FAST for _A, alone: 2, left: 0}],
            binding: [/groups/_A/resources/VCPU, /groups/_A/required/0],
            relaxations: [{drop: [/groups/_A/resources/VCPU], hosts: 2, reduce_to: 4,
                    hosts_reduced: 2}, {drop: [/groups/_A/required/0], hosts: 1}],
            split_would_fit: 0, unknown: [], warnings: [],
            request: {groups: {_A: {resources: {VCPU: 8}, required: [CUSTOM_FAST]}}},
            nearest: [{host: {uuid: $cn1, name: cn1}, lacks: _},
                {host: {uuid: $cn3, name: cn3}, lacks: [{at: /groups/_A/required/0,
                    text: trait CUSTOM_FAST for _A}]},
                {host: {uuid: $cn2, name: cn2}, lacks: [{at: /groups/_A/resources/VCPU,
                    text: VCPU 8 for _A, asked: 8, possible: 4, reason: used, free: 4,
                    provider: {uuid: $cn2, name: cn2}, capacity: 16, max_unit: 2147483647}]}]}

    what fits needs no help
        POST /berth/v1/explain {request: {query: "resources=VCPU:1"}}
        200 {revision: _, complete: true, verdict: fits, summary: 3 hosts fit., hosts: _, stages: _,
            unknown: [], warnings: [], binding: _, request: _}

    a scenario is explained
        POST /berth/v1/explain {request: {query: "resources=VCPU:8&required=CUSTOM_FAST"},
            what_if: {nothing_used: true, $1}}
        200 {verdict: $2, hosts: {total: $3, ...}, warnings: $4, ...}
        | without_hosts: []         | fits  | 4 | []
        | without_hosts: [cn2, cn9] | never | 3 | [{code: unknown_provider, reference: cn9,
            at: /what_if/without_hosts/1}]

    unknown names and references are explained with pointers into the normalised request
        POST /berth/v1/explain {request: {groups: {"": {resources: {VCPU: $1},
            required: [CUSTOM_FASST]}}, host: {in: [cn1, cn7]}}}
        200 {verdict: unknown_name, unknown: [{at: /groups//required/0, kind: trait,
            name: CUSTOM_FASST, did_you_mean: [CUSTOM_FAST], hosts: {CUSTOM_FAST: $2}}],
            warnings: [{code: unknown_provider, at: /host/in/1, reference: cn7}],
            hosts: {fit: $2, ...}, ...}
        | 1 | 1
        # The similar name may be of no use: cn1 has the trait, but not enough VCPU.
        | 8 | 0

    what no host could hold is named, whatever else is asked for
        POST /berth/v1/explain {request: {query: "resources=VCPU:99,MEMORY_MB:1"}}
        200 {verdict: never, summary: _, impossible: [{at: [/groups//resources/VCPU], kind: amount,
            text: "No provider can give 99 VCPU at once; the most is 16.", most: 16}], ...}

    a query may ask for more than any number that is stored
        POST /berth/v1/explain {request: {query: "resources=VCPU:$1"}}
        200 {verdict: never, ...}
        POST /berth/v1/capacity {requests: {huge: {query: "resources=VCPU:$1"}}}
        200 {flavors: {huge: {count: 0, ...}}, ...}
        POST /berth/v1/candidates {request: {query: "resources=VCPU:$1"}}
        200 {candidates: [], ...}
        | 2147483648
        | 9223372036854775808
        | 9*400

    each alternative is explained, in their order
        POST /berth/v1/explain {request: {alternatives: [
            {query: "resources=VCPU:8&required=CUSTOM_FAST"}, {query: "resources=VCPU:1"}]}}
        200 {revision: _, complete: true, alternatives: [{verdict: used_up, ...},
            {verdict: fits, ...}]}

    candidates say why there are none, and only then, and only if asked
        POST /berth/v1/explain {request: {query: "resources=VCPU:8&required=CUSTOM_FAST"}}
        200 {summary: $s, stages: $t, nearest: $n, ...}
        POST /berth/v1/candidates {request: {query: "resources=VCPU:8&required=CUSTOM_FAST"},
            explain: true}
        200 {explanation: {summary: $s, stages: $t, nearest: $n, ...}, ...}
        POST /berth/v1/candidates {request: {query: "resources=VCPU:$1&required=CUSTOM_FAST"},
            explain: $2}
        200 {revision: _, candidates: _, complete: true, more: false, warnings: []}
        POST /berth/v1/candidates {request: {alternatives: [
            &r {query: "resources=VCPU:8&required=CUSTOM_FAST"}, *r]}, explain: true}
        200 {explanation: {alternatives: [{verdict: used_up, ...}, {verdict: used_up, ...}], ...},
            ...}
        | 8 | false
        | 1 | true
    """
)
def test_explanations(rule: Rule, fleet: Client, names: Mapping[str, str]) -> None:
    """The rows of the table."""
    rule.check(fleet, names)


def explained(client: Client, request: Any = REQUEST, **members: Any) -> dict[str, Any]:
    """The explanation of a request, which is no error."""
    answered = client.post(PATH, json={"request": request, **members})
    assert answered.status == 200, answered.text
    body: dict[str, Any] = answered.json
    return body


def test_hosts_whose_uuids_begin_alike_are_painted_in_their_order(tmp_path: Path) -> None:
    """The first has the most, and was created last."""
    client = configured.serve(tmp_path)
    for number in (3, 2, 1):
        uuid = f"00000000-0000-0000-0000-00000000000{number}"
        client.post("/resource_providers", json={"name": uuid, "uuid": uuid})
        stocked = client.put(
            f"/resource_providers/{uuid}/inventories",
            json={
                "inventories": {"VCPU": {"total": 4 - number}},
                "resource_provider_generation": 0,
            },
        )
        assert stocked.status == 200, stocked.text
    for amount, painted in ((2, b"\xff\xff\0"), (3, b"\xff\0\0")):
        asking = {"groups": {"": {"resources": {"VCPU": amount}}}}
        assert b64decode(explained(client, asking, paint=True)["paint"]) == painted


def test_only_what_is_wanted_is_explained(fleet: Client) -> None:
    """No relaxations, fewer hosts, and paint."""
    whole = explained(fleet)
    nearest = [*sorted(("cn1", "cn2"), key=provider_uuid), "cn3"]
    assert [near["host"]["name"] for near in whole["nearest"]] == nearest
    assert [each["hosts"] for each in whole["relaxations"]] == [2, 1]
    assert [each["at"] for each in whole["stages"]] == whole["binding"]
    never = explained(fleet, {"query": "resources=VCPU:99"})
    assert never["impossible"][0]["text"] in never["summary"]
    answer = explained(fleet, relaxations=False, nearest_max=1, paint=True)
    assert "relaxations" not in answer
    assert len(answer["nearest"]) == 1
    painted = dict(zip(sorted(FLEET.names), b64decode(answer["paint"]), strict=True))
    assert {FLEET.names[uuid]: byte for uuid, byte in painted.items()} == {
        "cn1": 0,
        "cn2": 0,
        "cn3": 1,
        "pool": 0,
    }
    assert explained(fleet, nearest_max=0)["nearest"] == []


def test_a_host_that_is_named_comes_first_with_those_who_hold_what_it_lacks(fleet: Client) -> None:
    """cn2 is full of what another consumer has; in a scenario nobody holds anything."""
    asking = {"groups": {"": {"resources": {"VCPU": 8}}}, "host": {"in": ["cn2"]}}
    near, *others = explained(fleet, asking)["nearest"]
    assert (near["host"]["name"], near["named"]) == ("cn2", True)
    (lack,) = near["lacks"]
    assert (lack["at"], lack["reason"], lack["free"]) == ("/groups//resources/VCPU", "used", 4)
    (consumer,) = near["consumers"]
    assert consumer["allocations"][provider_uuid("cn2")]["resources"]["VCPU"] == 12
    assert not any("named" in other or "consumers" in other for other in others)
    assumed = explained(fleet, asking, what_if={"drain": ["cn3"]})
    assert "consumers" not in assumed["nearest"][0]


def test_ten_of_those_who_hold_what_a_host_lacks_are_shown(fleet: Client) -> None:
    """And whether there are more."""
    cn3 = provider_uuid("cn3")
    asking = {"groups": {"": {"resources": {"VCPU": 16}}}, "host": {"in": ["cn3"]}}
    uuids, seen = list[str](), list[tuple[int, bool]]()
    for number in (10, 11):
        uuids += (consumer(fleet, {cn3: {"VCPU": 1}}) for _ in range(number - len(uuids)))
        near = explained(fleet, asking)["nearest"][0]
        seen.append((len(near["consumers"]), near.get("more_consumers", False)))
    for uuid in uuids:
        assert fleet.delete(f"/allocations/{uuid}").status == 204
    assert seen == [(10, False), (10, True)]


GRAMMAR: Final[dict[str, Any]] = {
    "groups": {
        "": {
            "resources": {"VCPU": 8, "MEMORY_MB": 16384, "DISK_GB": 40},
            "required": ["HW_CPU_X86_AVX2", "!CUSTOM_OLD", ["STORAGE_DISK_SSD", "CUSTOM_B"]],
            "split": {"VCPU": {"min": 2, "step": 2, "parts": 2}},
        },
        "_GPU0": {"resources": {"VGPU": 1}, "under": ["cn7"], "in_tree": ["cn7"]},
        "_GPU1": {
            "resources": {"VGPU": 1},
            "member_of": ["zone=z1"],
            "not_under": ["cn7_pci_0000_81_00_0"],
        },
    },
    "host": {
        "required": ["COMPUTE_VOLUME_MULTI_ATTACH"],
        "anywhere": ["!CUSTOM_FAULTY"],
        "member_of": [["zone=z1", "zone=z2"], "!tenant=reserved"],
        "in": ["cn7"],
        "not_in": ["cn1", "cn2"],
    },
    "together": [{"groups": ["_GPU0", "_GPU1"], "at": "HW_NUMA_ROOT"}],
    "apart": [{"groups": ["_GPU0", "_GPU1"], "at": "provider"}],
    "tolerate": ["firmware"],
}
TREE, RACK = "4e8e5957-649f-477b-9e5b-f1f75b21c03c", "0d1c7d2e-5f0b-4a2c-9a60-6a2d1b0a1a11"
QUERY: Final = (
    "resources_A=VCPU:2&required_A=HW_CPU_X86_AVX2,!CUSTOM_OLD&required_A=in:CUSTOM_B,CUSTOM_C"
    f"&in_tree_A={TREE}&resources_B=VGPU:1&member_of_B=!{RACK}&resources=DISK_GB:10"
    "&root_required=CUSTOM_HOST,!CUSTOM_POOL&group_policy=isolate&same_subtree=_B,_A&limit=7"
)
TRANSLATED: Final[dict[str, Any]] = {
    "groups": {
        "_A": {
            "resources": {"VCPU": 2},
            "required": ["HW_CPU_X86_AVX2", ["CUSTOM_B", "CUSTOM_C"], "!CUSTOM_OLD"],
            "in_tree": [TREE],
        },
        "_B": {"resources": {"VGPU": 1}, "member_of": [f"!{RACK}"]},
        "": {"resources": {"DISK_GB": 10}},
    },
    "host": {"required": ["CUSTOM_HOST", "!CUSTOM_POOL"]},
    "together": [{"groups": ["_A", "_B"], "at": "subtree"}],
    "apart": [{"groups": ["_A", "_B"], "at": "provider"}],
}


@pytest.mark.parametrize(
    ("sent", "due"),
    [
        (GRAMMAR, GRAMMAR),
        ({**GRAMMAR, "host": {"in": [["cn7"], [], ["cn8"]]}}, None),
        ({**GRAMMAR, "host": {"anywhere": [["CUSTOM_FAULTY"]]}},
         {**GRAMMAR, "host": {"anywhere": ["CUSTOM_FAULTY"]}}),
        ({"query": QUERY}, TRANSLATED),
        # As it was pasted.
        ({"query": f"/allocation_candidates?{QUERY}"}, TRANSLATED),
    ],
)  # fmt: skip
def test_a_request_is_shown_as_it_was_read(fleet: Client, sent: Any, due: Any) -> None:
    """Every member survives reading and writing; those that say nothing are left out, and each
    parameter of a query has its place."""
    answer = explained(fleet, sent, relaxations=False)
    assert answer["request"] == (sent if due is None else due)
    if "query" in sent:
        assert {each["at"] for each in answer["warnings"]} >= {"/request/query"}


def test_the_request_that_is_shown_has_every_condition(fleet: Client) -> None:
    """What the grammar admits stands in `GRAMMAR`, so that the test above knows each member."""
    schemas = fleet.get("/berth/v1/openapi.json").json["components"]["schemas"]
    admitted = schemas["ExplainRequestBody"]["properties"]["request"]["properties"]
    groups = admitted["groups"]["additionalProperties"]["properties"]
    assert set().union(*GRAMMAR["groups"].values()) == {*groups}
    assert {*GRAMMAR["host"]} == {*admitted["host"]["properties"]}
    assert {*GRAMMAR} == {*admitted} - {"alternatives", "flavor", "query"}
