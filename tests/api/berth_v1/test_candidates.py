# SPDX-License-Identifier: Apache-2.0
"""`POST /berth/v1/candidates` over HTTP (spec/beyond.md 2.6 to 2.9); what is refused:
test_refused.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import pytest

from berth.api.berth_v1.fleet_questions import WARNINGS_MAX
from tests.api import configured
from tests.api.wire import Rule, rules
from tests.client import Client
from tests.world_over_http import built_over_http
from tests.worlds import provider_uuid, world

PATH: Final = "/berth/v1/candidates"

FLEET: Final = world("""
    cn1      MEMORY_MB=1024(used:512)  @A  CUSTOM_GREEN
      numa1  VCPU=4(used:1)  HW_NUMA_ROOT
      numa2  VCPU=4          HW_NUMA_ROOT
    cn2      MEMORY_MB=1024  @A
      numa3  VCPU=4          HW_NUMA_ROOT
      numa4  VCPU=4(used:4)  HW_NUMA_ROOT
    pool     DISK_GB=1000  MISC_SHARES_VIA_AGGREGATE  @A
""")
VCPU: Final[dict[str, Any]] = {"groups": {"": {"resources": {"VCPU": 1}}}}


@rules(
    """
    a candidate can be claimed as it is
        POST /berth/v1/candidates {request: {query: "resources=VCPU:1"}, order: {by: pack},
            limit: 1}
        200 {revision: _, complete: true, more: true, warnings: [], candidates: [{host: $cn2,
            allocations: $given, mappings: {"": [$numa3]}, score: {total: 0.625, pack: 0.625,
            prefer: []}}]}
        PUT /allocations/$c {allocations: $given, mappings: {"": [$numa3]}, project_id: p,
            user_id: u, consumer_generation: null, consumer_type: INSTANCE}
        204
        DELETE /allocations/$c
        204

    without an order there are no scores, and all that fits is in the answer
        POST /berth/v1/candidates {request: {query: "resources=VCPU:1"}}
        200 {revision: _, complete: true, more: false, warnings: [], candidates: [
            {host: $cn1, allocations: {$numa1: {resources: {VCPU: 1}}}, mappings: {"": [$numa1]}},
            {host: $cn1, allocations: {$numa2: {resources: {VCPU: 1}}}, mappings: {"": [$numa2]}},
            {host: $cn2, allocations: {$numa3: {resources: {VCPU: 1}}}, mappings: {"": [$numa3]}}]}

    limits leave something out, and the answer says so
        POST /berth/v1/candidates {request: {query: "resources=VCPU:1"}, $1}
        200 {candidates: $2, more: $3, complete: true, ...}
        POST /berth/v1/candidates {request: {query: "resources=VCPU:1"}, order: {by: spread}, $1}
        200 {candidates: $2, more: $3, complete: true, ...}
        | limit: 2                | [_, _]                                 | true
        | limit: 3                | [_, _, _]                              | false
        | per_host: 1             | [{host: $cn1, ...}, {host: $cn2, ...}] | true
        | per_host: 2             | [_, _, _]                              | false
        | per_host: 1, limit: 1   | [_]                                    | true
        | per_host: 1, limit: 2   | [{host: $cn1, ...}, {host: $cn2, ...}] | true

    the limit of a query is ignored, with a warning
        POST /berth/v1/candidates {request: {query: "resources=VCPU:1&limit=1"}}
        200 {candidates: [_, _, _], warnings: [{code: limit_ignored, at: /request/query}], ...}

    several groups may forbid one trait, and each is kept away from it
        POST /berth/v1/candidates {request: {groups: {_A: {resources: {VCPU: 1}, required: [$1]},
            _B: {resources: {MEMORY_MB: 1}, required: ["!HW_NUMA_ROOT"]}}}}
        200 {candidates: $2, ...}
        | HW_NUMA_ROOT    | [_, _, _]
        | "!HW_NUMA_ROOT" | []

    the first alternative with a candidate counts, and the answer says which
        POST /berth/v1/candidates {request: {alternatives: [
            &much {groups: {"": {resources: {VCPU: 5}}}},
            {groups: &v {"": {resources: {VCPU: 1}}}, host: {in: [nobody]}},
            {groups: *v}, {query: "resources=VCPU:1"}]}}
        200 {alternative: 2, candidates: [_, _, _], warnings: [{code: unknown_provider,
            at: /request/alternatives/1/host/in/0, reference: nobody}], ...}
        POST /berth/v1/candidates {request: {alternatives: [
            &much {groups: {"": {resources: {VCPU: 5}}}}, *much]}}
        200 {revision: _, candidates: [], complete: true, more: false, warnings: []}

    unknown references match nothing, and are warned of
        POST /berth/v1/candidates {request: {groups: {"": {resources: {VCPU: 1},
            member_of: [["zone=z1", $A], "!rack-9"], not_under: [numa1, numa9]}}},
            order: {prefer: [{weight: 1, member_of: [rack-8]}]},
            what_if: {without_hosts: [cn9], nothing_used: false}}
        200 {candidates: [{allocations: {$numa2: _}, ...}, {allocations: {$numa3: _}, ...}],
            warnings: [
            {code: unknown_aggregate, at: /order/prefer/0/member_of/0, reference: rack-8},
            {code: unknown_aggregate, at: /request/groups//member_of/0/0, reference: "zone=z1"},
            {code: unknown_aggregate, at: /request/groups//member_of/1, reference: rack-9},
            {code: unknown_provider, at: /request/groups//not_under/1, reference: numa9},
            {code: unknown_provider, at: /what_if/without_hosts/0, reference: cn9}], ...}

    a scenario is assumed for one answer only
        POST /berth/v1/candidates {request: {query: "resources=VCPU:4"}, what_if: $1}
        200 {candidates: $2, ...}
        POST /berth/v1/candidates {request: {query: "resources=VCPU:4"}}
        200 {candidates: [{allocations: {$numa2: _}, ...}, {allocations: {$numa3: _}, ...}], ...}
        | {nothing_used: true}                  | [{allocations: {$numa1: _}, ...},
            {allocations: {$numa2: _}, ...}, {allocations: {$numa3: _}, ...},
            {allocations: {$numa4: _}, ...}]
        | {without_consumers: [$numa4.consumer]} | [{allocations: {$numa2: _}, ...},
            {allocations: {$numa3: _}, ...}, {allocations: {$numa4: _}, ...}]
        | {without_consumers: [$nobody]}        | [{allocations: {$numa2: _}, ...},
            {allocations: {$numa3: _}, ...}]
        | {without_hosts: [numa1]}              | [{allocations: {$numa3: _}, ...}]
        | {allocation_ratio: [{resource_class: VCPU, ratio: 0.5}]}                        | []
        | {allocation_ratio: [{resource_class: VCPU, ratio: 0.5, member_of: ["!none"]}]}  | []
        | {allocation_ratio: [{resource_class: VCPU, ratio: 2}]} | [{allocations: {$numa1: _}, ...},
            {allocations: {$numa2: _}, ...}, {allocations: {$numa3: _}, ...},
            {allocations: {$numa4: _}, ...}]

    hosts may be added: copies of a tree, with nothing used
        POST /berth/v1/candidates {request: {groups: {"": {resources: {VCPU: 4}}},
            host: {not_in: [cn1, cn2]}}, what_if: {add_hosts: [{like: cn2, count: 3}]}, per_host: 1}
        200 {candidates: [_, _, _], ...}

    a split shows what each provider gives, and counts every part
        POST /berth/v1/candidates {request: {groups: {"": {resources: {VCPU: 6},
            split: {VCPU: {}}}}}, order: {by: pack}, summaries: true}
        200 {candidates: [{host: $cn1, allocations: {$numa1: _, $numa2: _}, mappings: _,
            score: {pack: 0.875, ...}}], provider_summaries: {$cn1: _, $numa1: _, $numa2: _}, ...}

    wishes that Placement left open are one request each
        POST /berth/v1/candidates {request: $1}
        200 {candidates: $2, ...}
        # root_member_of
        | {groups: {"": {resources: {VCPU: 1}}}, host: {member_of: [$A],
            required: [CUSTOM_GREEN]}} |
            [{mappings: {"": [$numa1]}, ...}, {mappings: {"": [$numa2]}, ...}]
        # isolate=_A,_B
        | {groups: {_A: &v {resources: {VCPU: 1}}, _B: *v, _C: {resources: {VCPU: 1},
            under: [numa1]}}, apart: [{groups: [_A, _B], at: provider}]} |
            [{mappings: {_A: [$numa1], _B: [$numa2], _C: [$numa1]}, ...},
            {mappings: {_A: [$numa2], _B: [$numa1], _C: [$numa1]}, ...}]
        # same_subtree=_A,!_B
        | {groups: {_A: {resources: {MEMORY_MB: 1}, in_tree: [cn1]}, _B: {resources: {DISK_GB: 1}},
            _C: {resources: {VCPU: 1}, not_under: [numa1]}},
            apart: [{groups: [_A, _B], at: subtree}], together: [{groups: [_A, _C], at: subtree}]} |
            [{mappings: {_A: [$cn1], _B: [$pool], _C: [$numa2]}, ...}]
        # can_split, and rolled-up inventory
        | {groups: {"": {resources: {VCPU: 6}, split: {VCPU: {parts: 2}}}}} |
            [{mappings: {"": [$numa1, $numa2]}, ...}]
        | {groups: {"": {resources: {VCPU: 7}, split: {VCPU: {parts: 16}}}}} |
            [{mappings: {"": [$numa1, $numa2]}, ...}]
        # two guest NUMA nodes on two host NUMA nodes
        | {groups: {_N0: &n {resources: {VCPU: 3}}, _N1: *n},
            apart: [{groups: [_N0, _N1], at: HW_NUMA_ROOT}]} |
            [{mappings: {_N0: [$numa1], _N1: [$numa2]}, ...},
            {mappings: {_N0: [$numa2], _N1: [$numa1]}, ...}]
        # local disk, not the pool
        | {groups: {"": {resources: {VCPU: 1}}, _D: {resources: {DISK_GB: 1}}},
            together: [{groups: ["", _D], at: tree}]} | []

    in_tree of the unnamed group turns sharing off, and a named group may be served by a pool
        POST /berth/v1/candidates {request: {groups: {"": {resources: {VCPU: 1, DISK_GB: 10}, $1}}}}
        200 {candidates: $2, ...}
        POST /berth/v1/candidates {request: {groups: {"": {resources: {VCPU: 1}},
            _D: {resources: {DISK_GB: 10}, $3}}}}
        200 {candidates: [_, ...], ...}
        | required: []          | [_, ...] | in_tree: [pool]
        | in_tree: [cn1]        | []       | in_tree: [cn1, pool]
        | in_tree: [cn1, cn2]   | []       | in_tree: [cn1, cn2, pool]
        | in_tree: [cn1, pool]  | []       | in_tree: [cn1, pool]

    an empty list of what must match matches nothing, and one of anything else has no effect
        POST /berth/v1/candidates {request: $1}
        200 {candidates: $2, ...}
        POST /berth/v1/explain {request: $1}
        200 {verdict: $3, ...}
        | {groups: {"": {resources: {VCPU: 1}, in_tree: []}}}                  | []   | never
        | {groups: {"": {resources: {VCPU: 1}, under: []}}}                    | []   | never
        | {groups: {"": {resources: {VCPU: 1}}}, host: {in: []}}               | []   | never
        | {groups: {"": {resources: {VCPU: 1}}}, host: {in: [[cn1], []]}}      | []   | never
        | {groups: {"": {resources: {VCPU: 1}, not_under: [], required: [], member_of: []}}} |
            [_, _, _] | fits
        | {groups: {"": {resources: {VCPU: 1}, split: {}}}, together: [], apart: []} |
            [_, _, _] | fits
        | {groups: {"": {resources: {VCPU: 1}}}, host: {required: [], anywhere: []}} |
            [_, _, _] | fits
        | {groups: {"": {resources: {VCPU: 1}}}, host: {member_of: [], not_in: []}, tolerate: []} |
            [_, _, _] | fits
    """
)
def test_candidates(rule: Rule, fleet: Client, names: Mapping[str, str]) -> None:
    """The rows of the table."""
    rule.check(fleet, names)


def ask(client: Client, request: Any, **members: Any) -> dict[str, Any]:
    """The answer to a question, which is no error."""
    answered = client.post(PATH, json={"request": request, **members})
    assert answered.status == 200, answered.text
    body: dict[str, Any] = answered.json
    return body


def test_a_candidate_of_a_pool_alone_has_the_first_host_that_may_use_it(fleet: Client) -> None:
    """Of the roots at which it may be anchored, its own among them, the one with the smallest UUID,
    so that the bound per host means the hosts that explain and capacity count. Its traits and
    aggregates must be those that are asked for: the pool's own root does not have them."""
    disk = {"groups": {"": {"resources": {"DISK_GB": 10}}}}
    by_uuid = sorted(["cn1", "cn2", "pool"], key=provider_uuid)
    for conditions, due in (
        *(({"not_in": by_uuid[:number]}, [host]) for number, host in enumerate(by_uuid)),
        ({"not_in": by_uuid}, []),
        ({"required": ["CUSTOM_GREEN"]}, ["cn1"]),
        ({"anywhere": ["!HW_NUMA_ROOT"]}, ["pool"]),
    ):
        answer = ask(fleet, {**disk, "host": conditions}, per_host=1)
        assert [each["host"] for each in answer["candidates"]] == [*map(provider_uuid, due)]
        assert all(
            each["allocations"].keys() == {provider_uuid("pool")} for each in answer["candidates"]
        )
        assert answer["more"] is False


def test_summaries_are_those_of_the_old_route(fleet: Client) -> None:
    """At 1.39; the member is there whenever it is asked for."""
    query = "resources=VCPU:1,DISK_GB:10"
    old = fleet.get(f"/allocation_candidates?{query}").json["provider_summaries"]
    answer = ask(fleet, {"query": query}, summaries=True)
    assert answer["provider_summaries"] == old
    assert set(old) == {provider_uuid(each.name) for each in FLEET.providers}
    assert "provider_summaries" not in ask(fleet, {"query": query})
    huge = {"groups": {"": {"resources": {"VCPU": 9999}}}}
    for host in ({}, {"member_of": ["zone=none"]}):
        answer = ask(fleet, {**huge, "host": host}, summaries=True)
        assert (answer["candidates"], answer["provider_summaries"]) == ([], {})


def test_warnings_are_bounded(fleet: Client) -> None:
    """Ten thousand unknown hosts give no ten thousand warnings."""
    unknown = [f"nobody-{number}" for number in range(9_999)]
    answer = ask(fleet, {**VCPU, "host": {"in": [*unknown, "cn1"]}})
    assert len(answer["warnings"]) == WARNINGS_MAX
    assert {each["host"] for each in answer["candidates"]} == {provider_uuid("cn1")}


def test_without_time_there_is_no_answer(tmp_path_factory: pytest.TempPathFactory) -> None:
    """503 with `Retry-After`, not an empty list."""
    folder = tmp_path_factory.mktemp("hurried")
    client = configured.serve(folder, "[berth]\ncandidates_time_budget = 0.000001\n")
    with built_over_http(FLEET, client):
        for order in ({}, {"by": "pack"}):
            answered = client.post(PATH, json={"request": VCPU, "order": order})
            assert (answered.status, answered.code) == (503, "berth.search.gave_up")
            assert answered.headers["Retry-After"] == "1"
