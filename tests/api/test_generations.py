# SPDX-License-Identifier: Apache-2.0
"""How generations of providers and consumers are asked for, and how they change.

Source: rest-api.md 1.15, 10.3, 10.5, 10.6.
"""

import pytest

from tests.api.wire import Rule, rules
from tests.client import Client

WORLD = """
    host   VCPU=1  DISK_GB=1
      child
    busy   VCPU=4(used:1)  MEMORY_MB=4
    pool   DISK_GB=4
    empty
"""


@rules(
    """
    a generation that is not the present one is a conflict
        PUT $host/$1, seen: $2} => 409 placement.concurrent_update
        | inventories {inventories: {VCPU: {total: 2}}  | 0
        | inventories {inventories: {VCPU: {total: 2}}  | 2
        | inventories {inventories: {VCPU: {total: 2}}  | -1
        | inventories/VCPU {total: 2                    | 0
        | inventories/VCPU {total: 2                    | -1
        | aggregates {aggregates: []                    | 0
        | aggregates {aggregates: []                    | -1
        | traits {traits: [HW_CPU_X86_AVX2]             | 0
        | traits {traits: [HW_CPU_X86_AVX2]             | 2
    an accepted change counts once and is told, and the same again too, but for traits
        PUT $host/$1, seen: 1} => 200 {seen: 2, ...}
        GET $host => 200 {generation: 2, ...}
        PUT $host/$1, seen: 2} => 200 {seen: $2, ...}
        GET $host => 200 {generation: $2, ...}
        | inventories {inventories: {VCPU: {total: 2}}        | 3
        | inventories/VCPU {total: 2                          | 3
        | aggregates {aggregates: [$A]                        | 3
        | aggregates {aggregates: []                          | 3
        | traits {traits: [HW_CPU_X86_AVX2, HW_CPU_X86_AVX]   | 2
    a new inventory counts and asks for nothing
        POST $empty/inventories {resource_class: VCPU, total: 1, seen: 77} => 201 {seen: 1, ...}
        POST $empty/inventories {resource_class: DISK_GB, total: 1} => 201 {seen: 2, ...}
    deleted inventories count, even if there are none
        DELETE $host/inventories/VCPU => 204
        GET $host => 200 {generation: 2, ...}
        DELETE $host/inventories => 204
        GET $host => 200 {generation: 3, ...}
        DELETE $host/inventories => 204
        GET $host => 200 {generation: 4, ...}
    deleted traits count, if there were any
        PUT $empty/traits {traits: [HW_CPU_X86_AVX2], seen: 0} => 200
        DELETE $empty/traits => 204
        GET $empty => 200 {generation: 2, ...}
        DELETE $empty/traits => 204
        GET $empty => 200 {generation: 2, ...}
    a new name or place does not count, nor do children and names that come and go
        PUT $empty {name: $new, parent_provider_uuid: $host} => 200 {generation: 0, ...}
        DELETE $child => 204
        PUT /traits/$CUSTOM_A => 201
        DELETE /traits/$CUSTOM_A => 204
        GET $host => 200 {generation: 1, ...}
        GET $empty => 200 {generation: 0, ...}
    """,
    world=WORLD,
)
def test_of_providers(rule: Rule, wire: Client) -> None:
    """The rows of the table."""
    rule.check(wire)


@rules(
    """
    a claim counts once for each provider it names, also if it is the same again
        PUT /allocations/$vm CLAIM busy VCPU=1 MEMORY_MB=1 pool DISK_GB=1 => 204
        PUT /allocations/$vm CLAIM busy VCPU=1 MEMORY_MB=1 pool DISK_GB=1 {$1} => 204
        GET $busy => 200 {generation: 5, ...}
        GET $pool => 200 {generation: 3, ...}
        GET /allocations/$vm @1.39 => 200 {consumer_generation: 2, ...}
        |                        | @1.0,1.12,1.27
        | consumer_generation: 1 | @1.28,1.39
    a claim does not count for the provider that it leaves, only for where it goes
        PUT /allocations/$busy.consumer CLAIM pool DISK_GB=1 {consumer_generation: 1} => 204
        GET $busy => 200 {generation: 3, ...}
        GET $pool => 200 {generation: 2, ...}
    emptying a consumer counts for the providers that it held, and DELETE does not
        $1 => 204
        GET $busy => 200 {generation: $2, ...}
        | PUT /allocations/$busy.consumer CLAIM {consumer_generation: 1}    | 4
        | POST /allocations CLAIMS busy.consumer: {consumer_generation: 1}  | 4
        | DELETE /allocations/$busy.consumer                                | 3
    a provider named by several consumers counts once
        POST /allocations CLAIMS one: busy VCPU=1; two: busy VCPU=1; three: busy VCPU=1 => 204
        GET $busy => 200 {generation: 4, ...}
    a new consumer is announced by null, and is at 1 after its first write @1.28-
        $1 busy VCPU=1 {consumer_generation: 0}
        409 placement.concurrent_update consumer generation conflict ... expected null but got 0
        $1 busy VCPU=1 {consumer_generation: 1}
        409 placement.concurrent_update consumer generation conflict ... expected null but got 1
        $1 busy VCPU=1 {consumer_generation: null} => 204
        GET /allocations/$vm @1.39 => 200 {consumer_generation: 1, ...}
        || PUT /allocations/$vm CLAIM || POST /allocations CLAIMS vm:
    a consumer is written by whoever saw its last state, and so emptied @1.28-
        $1 $2 {consumer_generation: 0}
        409 placement.concurrent_update consumer generation conflict ... expected 1 but got 0
        $1 $2 {consumer_generation: 2}
        409 placement.concurrent_update consumer generation conflict ... expected 1 but got 2
        $1 $2 {consumer_generation: null}
        409 placement.concurrent_update consumer generation conflict ... expected 1 but got
        $1 busy VCPU=2 {consumer_generation: 1} => 204
        GET /allocations/$busy.consumer @1.39 => 200 {consumer_generation: 2, ...}
        | PUT /allocations/$busy.consumer CLAIM    | busy VCPU=2
        | PUT /allocations/$busy.consumer CLAIM    |
        | POST /allocations CLAIMS busy.consumer:  | busy VCPU=2
        | POST /allocations CLAIMS busy.consumer:  |
    nobody asks for it before 1.28, and it counts
        $1 busy VCPU=2 => 204
        $1 busy VCPU=2 => 204
        GET /allocations/$busy.consumer @1.39 => 200 {consumer_generation: 3, ...}
        | PUT /allocations/$busy.consumer CLAIM   | @1.0-1.27
        | POST /allocations CLAIMS busy.consumer: | @1.13-1.27
    """,
    world=WORLD,
)
def test_of_claims(rule: Rule, wire: Client) -> None:
    """The rows of the table."""
    rule.check(wire)


@pytest.mark.deliberately_different("a failed or empty write leaves no consumer behind (10.6, D)")
@rules(
    """
    a claim on an unknown provider leaves no consumer behind
        $1 nowhere VCPU=1 => 400
        $1 busy VCPU=1 => 204
        || PUT /allocations/$vm CLAIM || POST /allocations CLAIMS vm:
    emptying a consumer that is not there leaves none behind
        $1 => 204
        $1 busy VCPU=1 => 204
        || PUT /allocations/$vm CLAIM || POST /allocations CLAIMS vm:
    """,
    world=WORLD,
)
def test_nothing_is_left_behind(rule: Rule, wire: Client) -> None:
    """The next attempt creates it."""
    rule.check(wire)
