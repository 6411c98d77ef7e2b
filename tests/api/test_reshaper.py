# SPDX-License-Identifier: Apache-2.0
"""Reshaping: inventories and allocations moved in one transaction.

Source: rest-api.md section 12.
"""

import pytest

from tests.api.wire import Rule, rules
from tests.client import Client

WORLD = """
    root   VCPU=8(used:4)  MEMORY_MB=64(used:16)
      numa
    pool   DISK_GB=10
    other  VCPU=4(used:2)
"""
#: VCPU goes from the root to the child, with what is held of it.
MOVED = "RESHAPE root MEMORY_MB=64; numa VCPU=8 >> root.consumer: root MEMORY_MB=16 numa VCPU=4"


@rules(
    """
    a class moves with what is held of it
        POST /reshaper MOVED {$1} => 204
        < Last-Modified:
        < Cache-Control:
        GET $root/inventories @1.39 => 200 {inventories: {MEMORY_MB: {total: 64, ...}}, seen: 6}
        GET $numa/inventories @1.39 => 200 {inventories: {VCPU: {total: 8, ...}}, seen: 3}
        GET $root/usages @1.39 => 200 {usages: {MEMORY_MB: 16}, ...}
        GET $numa/usages @1.39 => 200 {usages: {VCPU: 4}, ...}
        GET /allocations/$root.consumer @1.39
        200 {allocations: {$root: {resources: {MEMORY_MB: 16}, ...}, $numa: {resources: {VCPU: 4},
            ...}}, consumer_generation: 2, ...}
        | consumer_generation: 1 | @1.30-
        | consumer_generation: 1, mappings: {"": [$root]} | @1.34-
    mappings and type follow the microversion
        POST /reshaper MOVED {consumer_generation: 1, $1} => 400 $2
        | mappings: {"": [$root]} | 'mappings' was unexpected | @1.30-1.33
        | consumer_type: INSTANCE | 'consumer_type' was unexpected | @1.30-1.37
        | consumer_type: absent   | 'consumer_type' is a required property | @1.38-
    only the inventories may be reshaped
        POST /reshaper RESHAPE $1 => 204
        GET $2/inventories => 200 {inventories: {$3}, seen: $4}
        | pool DISK_GB=8 VCPU=1 | $pool | DISK_GB: {total: 8, ...}, VCPU: {total: 1, ...} | 3
        | pool                  | $pool | | 2
        | numa {inventories: {VCPU: {total: 4, reserved: 10}}} | $numa
            | VCPU: {total: 4, reserved: 10, ...} | 2
        | root VCPU=2 MEMORY_MB=64 | $root | VCPU: {total: 2, ...}, MEMORY_MB: _ | 5
    an emptied provider that takes part counts twice, if its consumer is emptied
        POST /reshaper RESHAPE other >> other.consumer: {consumer_generation: 1} => 204
        GET $other/inventories => 200 {inventories: {}, seen: 5}
        GET /allocations/$other.consumer => 200 {allocations: {}}
    but not if its consumer only moves off it
        POST /reshaper RESHAPE other; numa VCPU=4
            >> other.consumer: numa VCPU=2 {consumer_generation: 1}
        204
        GET $other/inventories => 200 {inventories: {}, seen: 4}
        GET /allocations/$other.consumer
        200 {allocations: {$numa: {resources: {VCPU: 2}, ...}}, ...}
    a provider outside the inventories may take part, and counts once
        POST /reshaper MOVED pool DISK_GB=5 {consumer_generation: 1} => 204
        GET $pool/inventories => 200 {inventories: {DISK_GB: {total: 10, ...}}, seen: 2}
        GET $pool/usages => 200 {usages: {DISK_GB: 5}, ...}
    consumers may be made, moved and removed
        POST /reshaper RESHAPE root MEMORY_MB=64; numa VCPU=8
            >> root.consumer: {consumer_generation: 1};
            new: numa VCPU=8 {project_id: p2, consumer_type: VOLUME}
        204
        GET /allocations/$root.consumer => 200 {allocations: {}}
        GET /allocations/$new
        200 {project_id: p2, consumer_type: VOLUME, consumer_generation: 1, ...}
    allocations are held to the new inventories
        POST /reshaper RESHAPE root MEMORY_MB=64; numa {inventories: {VCPU: {total: $1}}}
            >> root.consumer: root MEMORY_MB=16 numa VCPU=4 {consumer_generation: 1}
        409 $2
        | 3               | The requested amount would exceed the capacity
        | 8, step_size: 3 | Unable to allocate
    a class that somebody else holds does not go
        PUT /allocations/$vm CLAIM root VCPU=1 => 204
        POST /reshaper MOVED {consumer_generation: 1}
        409 placement.inventory.inuse Inventory for 'VCPU' on ... in use
    a class that goes may not be claimed any more
        POST /reshaper RESHAPE root MEMORY_MB=64; numa VCPU=8
            >> root.consumer: root VCPU=4 MEMORY_MB=16 {consumer_generation: 1}
        409 placement.inventory.inuse
    """.replace("MOVED", MOVED),
    world=WORLD,
)
def test_reshaping(rule: Rule, wire: Client) -> None:
    """What moves, and what is refused."""
    rule.check(wire)


@rules(
    """
    a body that breaks the schema is refused
        POST /reshaper $1 => 400 JSON does not validate
        || [] || {allocations: {}} || {inventories: {$pool: {seen: 1, inventories: {}}}}
        || {inventories: {}, allocations: {}}
        || {inventories: {x: {seen: 0, inventories: {}}}, allocations: {}}
    a part that breaks the schema is refused
        POST /reshaper {inventories: {$root: {seen: 3, inventories: {MEMORY_MB: {total: 64}}},
            $numa: {seen: 0, inventories: {VCPU: {total: 8}}}}, $1}
        400 $2
        | color: 1, allocations: {}     | JSON does not validate
        | allocations: {x: {}}          | JSON does not validate
    a set that breaks the schema is refused
        POST /reshaper {inventories: {$root: {$1}}, allocations: {}} => 400 JSON does not validate
        || inventories: {} || seen: 3 || seen: 3, inventories: {}, color: 1
        || seen: 3, inventories: {VCPU: {total: 0}}
    a claim that breaks the schema is refused
        POST /reshaper RESHAPE root MEMORY_MB=64; numa VCPU=8 >> root.consumer: $1
        400 JSON does not validate
        || numa VCPU=4 {consumer_generation: "1"}
        || {consumer_generation: 1, allocations: {$root: {resources: {VCPU: 0}}}}
    a badly formed record under a bad name is refused
        POST /reshaper {inventories: {$root: {seen: 3, inventories: {"$1": $2}}}, allocations: {}}
        400
        | vcpu | {}
        |      | []
        | Ä    | {total: x}
    faults of the body, in order
        PUT /allocations/$bystander CLAIM root MEMORY_MB=1 => 204
        POST /reshaper RESHAPE $1 {seen: $2}; root $3=64 >> root.consumer: $4
            {consumer_generation: $5}
        $6
        | nowhere CUSTOM_NOT_HERE=8 | 9 | VCPU | nowhere CUSTOM_NO=1 | 9
            | 400 placement.resource_provider.not_found
        | numa CUSTOM_NOT_HERE=8 | 9 | VCPU | nowhere CUSTOM_NO=1 | 9
            | 409 placement.concurrent_update actual: 0, given: 9
        | numa CUSTOM_NOT_HERE=8 | 0 | VCPU | nowhere CUSTOM_NO=1 | 9
            | 409 placement.concurrent_update consumer generation conflict
        | numa CUSTOM_NOT_HERE=8 | 0 | VCPU | nowhere CUSTOM_NO=1 | 1 | 400 that does not exist
        | numa CUSTOM_NOT_HERE=8 | 0 | VCPU | numa CUSTOM_NO=1    | 1 | 400 CUSTOM_NOT_HERE
        | numa VCPU=8            | 0 | VCPU | numa CUSTOM_NO=1    | 1 | 400 CUSTOM_NO
        | numa VCPU=8            | 0 | VCPU | numa DISK_GB=1      | 1 | 409 Inventory for
        | numa VCPU=8            | 0 | VCPU | numa VCPU=9         | 1 | 409 exceed the capacity
        | numa VCPU=8            | 0 | VCPU | numa VCPU=4         | 1
            | 409 placement.inventory.inuse in use
        | numa VCPU=8            | 0 | MEMORY_MB | numa VCPU=4    | 1 | 204
    """,
    world=WORLD,
)
def test_refusals(rule: Rule, wire: Client) -> None:
    """Of bodies, and in which order."""
    rule.check(wire)


@pytest.mark.deliberately_different("a 400, not a 500; and no consumer is left behind (12, D)")
@rules(
    """
    null under a bad name is refused
        POST /reshaper {inventories: {$root: {seen: 3, inventories: {"$1": null}}}, allocations: {}}
        400
        | vcpu
        |
        || A-B || Ä
    a reshape on an unknown provider leaves no consumer behind
        POST /reshaper RESHAPE numa VCPU=8 >> new: nowhere VCPU=1 => 400 that does not exist
        POST /reshaper RESHAPE numa VCPU=8 >> new: numa VCPU=1 => 204
    """,
    world=WORLD,
)
def test_where_the_original_fails(rule: Rule, wire: Client) -> None:
    """The rows of the table."""
    rule.check(wire)
