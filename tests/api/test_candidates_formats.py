# SPDX-License-Identifier: Apache-2.0
"""The response of `GET /allocation_candidates` at every microversion.

Source: allocation-candidates.md sections 1, 5.6, 6 and 7.
"""

import pytest

from tests.api.claims import claim_body, used
from tests.api.wire import Rule, rules
from tests.api.worlds import custom_class, new_uuid, provider
from tests.client import Client

WORLD = """
    host    CUSTOM_CPU=4(used:1)  CUSTOM_RAM=16  CUSTOM_T  @A
      numa  CUSTOM_PORT=2
    pool    CUSTOM_DISK=100(reserved:10,ratio:1.5)  MISC_SHARES_VIA_AGGREGATE  @A
"""
ASKED = "/allocation_candidates?resources=$CUSTOM_CPU:2,$CUSTOM_DISK:50"


@rules(
    """
    a candidate has the form of its microversion
        GET ASKED
        200 {allocation_requests: [{allocations: $1}], ...}
        < Content-Type: application/json
        < OpenStack-API-Version: placement ...
        < Vary: ...penstack-...ersion
        | [{resource_provider: {uuid: $host}, resources: {$CUSTOM_CPU: 2}},
            {resource_provider: {uuid: $pool}, resources: {$CUSTOM_DISK: 50}}] | @1.10-1.11
        | {$host: {resources: {$CUSTOM_CPU: 2}}, $pool: {resources: {$CUSTOM_DISK: 50}}}
            | @1.12-1.33
        | {$host: {resources: {$CUSTOM_CPU: 2}}, $pool: {resources: {$CUSTOM_DISK: 50}}},
            mappings: {"": [$host, $pool]} | @1.34-
    a summary has the form of its microversion: traits, every class, whole trees
        GET ASKED
        200 {provider_summaries: {
            $host: {resources: {$CUSTOM_CPU: {capacity: 4, used: 1}$1}$2},
            $pool: {resources: {$CUSTOM_DISK: {capacity: 135, used: 0}}$3}$4}, ...}
        | | | | | @1.10-1.16
        | | , traits: [$CUSTOM_T] | , traits: [MISC_SHARES_VIA_AGGREGATE] | | @1.17-1.26
        | , $CUSTOM_RAM: {capacity: 16, used: 0} | , traits: [$CUSTOM_T]
            | , traits: [MISC_SHARES_VIA_AGGREGATE] | | @1.27-1.28
        | , $CUSTOM_RAM: {capacity: 16, used: 0}
            | , traits: [$CUSTOM_T], parent_provider_uuid: null, root_provider_uuid: $host
            | , traits: [MISC_SHARES_VIA_AGGREGATE], parent_provider_uuid: null, root_provider_uuid:
            $pool
            | , $numa: {resources: {$CUSTOM_PORT: {capacity: 2, used: 0}}, traits: [],
            parent_provider_uuid: $host, root_provider_uuid: $host} | @1.29-
    two providers of one tree make a candidate from 1.29 on
        GET /allocation_candidates?resources=$CUSTOM_CPU:1,$CUSTOM_PORT:1
        200 {allocation_requests: $1, ...}
        | []  | @1.10-1.28
        | [_] | @1.29-
    groups on one provider are added up, and each has its mapping
        GET /allocation_candidates?resources=$CUSTOM_CPU:1&$1
        200 {allocation_requests: [{allocations: {$host: {resources: {$CUSTOM_CPU: 2,
            $CUSTOM_RAM: 1}}, $numa: {resources: {$CUSTOM_PORT: 2}}}$2}], ...}
        | resources1=$CUSTOM_CPU:1,$CUSTOM_RAM:1&resources2=$CUSTOM_PORT:2&group_policy=isolate
            | | @1.29-1.33
        | resources_A=$CUSTOM_CPU:1,$CUSTOM_RAM:1&resources_B=$CUSTOM_PORT:2&group_policy=isolate
            | , mappings: {"": [$host], _A: [$host], _B: [$numa]} | @1.34-
    a group without resources is in the mappings only @1.36-
        GET /allocation_candidates?resources_P=$CUSTOM_PORT:1&required_N=$CUSTOM_T&$1
        200 {allocation_requests: [{allocations: {$numa: {resources: {$CUSTOM_PORT: 1}}},
            mappings: {_P: [$numa], _N: [$host]}}], ...}
        | same_subtree=_P,_N&group_policy=none
    nothing is an answer with both keys @1.10-
        GET /allocation_candidates?resources=$CUSTOM_CPU:4
        200 {allocation_requests: [], provider_summaries: {}}
    traits stand in the order in which they were made, whatever their names @1.17-
        PUT /traits/$(CUSTOM_T)_Z @1.39 => 201
        PUT /traits/$(CUSTOM_T)_M @1.39 => 201
        PUT /traits/$(CUSTOM_T)_A @1.39 => 201
        PUT $numa/traits {traits: [$(CUSTOM_T)_A, $(CUSTOM_T)_Z, $CUSTOM_T, $(CUSTOM_T)_M], seen: 1}
        200
        GET /allocation_candidates?resources=$CUSTOM_PORT:1
        200 b'"traits":["$(CUSTOM_T)","$(CUSTOM_T)_Z","$(CUSTOM_T)_M","$(CUSTOM_T)_A"]'
    """.replace("ASKED", ASKED),
    world=WORLD,
)
def test_forms(rule: Rule, wire: Client) -> None:
    """The rows of the table."""
    rule.check(wire)


@pytest.mark.parametrize("version", ["1.16", "1.39"])
@pytest.mark.parametrize(("limit", "count"), [(1, 1), (2, 2), (3, 3), (4, 3), (1000, 3)])
def test_limit_takes_that_many_at_most(api: Client, version: str, limit: int, count: int) -> None:
    """A subset, with the summaries of exactly that subset."""
    name = custom_class(api)
    hosts = {provider(api, {name: 1}) for _ in range(3)}
    path = f"/allocation_candidates?resources={name}:1&limit={limit}"
    answer = api.get(path, version=version).json
    chosen = {uuid for request in answer["allocation_requests"] for uuid in request["allocations"]}
    assert len(answer["allocation_requests"]) == len(chosen) == count
    assert chosen <= hosts
    assert set(answer["provider_summaries"]) == chosen


@pytest.mark.parametrize(
    "version", ["1.10", "1.11", "1.12", "1.27", "1.28", "1.34", "1.38", "1.39"]
)
def test_a_candidate_can_be_claimed_as_it_came(api: Client, version: str) -> None:
    """With the project, user, generation and type that the microversion requires; mappings are
    ignored."""
    name = custom_class(api)
    host = provider(api, {name: 3})
    path = f"/allocation_candidates?resources={name}:2"
    (candidate,) = api.get(path, version=version).json["allocation_requests"]
    body = claim_body(version, {}) | candidate
    answer = api.put(f"/allocations/{new_uuid()}", json=body, version=version)
    assert answer.status == 204, answer.json
    assert used(api, host) == {name: 2}
    assert api.get(path, version=version).json["allocation_requests"] == []
    shown = api.get(path.replace(":2", ":1"), version=version).json["provider_summaries"][host]
    assert shown["resources"] == {name: {"capacity": 3, "used": 2}}
