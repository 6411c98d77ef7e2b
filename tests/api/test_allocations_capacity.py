# SPDX-License-Identifier: Apache-2.0
"""Units and capacity, and claims on a provider that is over its capacity.

Source: rest-api.md 10.6 points 4 and 5.
"""

from tests.api.wire import Rule, rules
from tests.client import Client


@rules(
    """
    an amount obeys the units
        PUT $host/inventories {inventories: {VCPU: {total: 100, $1}}, seen: 1} => 200
        PUT /allocations/$vm CLAIM host VCPU=$2 => $3
        |                            | 1   | 204
        |                            | 100 | 204
        | min_unit: 3                | 2   | 409 Unable to allocate inventory
        | min_unit: 3                | 3   | 204
        | max_unit: 5                | 5   | 204
        | max_unit: 5                | 6   | 409 Unable to allocate inventory
        | step_size: 4               | 8   | 204
        | step_size: 4               | 6   | 409 Unable to allocate inventory
        | min_unit: 5, step_size: 10 | 5   | 409 Unable to allocate inventory
        | min_unit: 5, step_size: 10 | 10  | 204
        | min_unit: 9, max_unit: 8   | 9   | 409 Unable to allocate inventory
        | min_unit: 200              | 200 | 409 Unable to allocate inventory
        | min_unit: 4, max_unit: 8, step_size: 2 | 3
            | 409 Asked for 3; min_unit is 4, max_unit 8, step_size 2
    the capacity can be used and not one more
        PUT $host/inventories {inventories: {VCPU: {$1}}, seen: 1} => 200
        PUT /allocations/$vm CLAIM host VCPU=$3 => 409
        PUT /allocations/$vm CLAIM host VCPU=$2 => 204
        PUT /allocations/$other CLAIM host VCPU=1
        409 The requested amount would exceed the capacity
        | total: 10                                       | 10 | 11
        | total: 10, reserved: 4                          | 6  | 7
        | total: 10, allocation_ratio: 1.5                | 15 | 16
        | total: 10, reserved: 3, allocation_ratio: 1.5   | 10 | 11
        | total: 3, allocation_ratio: 0.5                 | 1  | 2
        | total: 10, allocation_ratio: 0.7                | 7  | 8
        | total: 2147483647                               | 2147483647 | 2147483648
    without capacity nothing can be used
        PUT $host/inventories {inventories: {VCPU: {$1}}, seen: 1} => 200
        PUT /allocations/$vm CLAIM host VCPU=1 => 409 The requested amount would exceed the capacity
        || total: 10, reserved: 10 || total: 10, allocation_ratio: 0.0
    all consumers together stay within the capacity
        PUT /allocations/$one CLAIM busy VCPU=5
        409 The requested amount would exceed the capacity
        PUT /allocations/$one CLAIM busy VCPU=4 => 204
        DELETE /allocations/$busy.consumer => 204
        PUT /allocations/$two CLAIM busy VCPU=6 => 204
        GET $busy/usages => 200 {usages: {VCPU: 10}, ...}
    what a consumer held itself does not stand in its way
        PUT /allocations/$busy.consumer CLAIM busy VCPU=10 {consumer_generation: 1} => 204
        PUT /allocations/$busy.consumer CLAIM busy VCPU=11 {consumer_generation: 2}
        409 The requested amount would exceed the capacity
        GET $busy/usages => 200 {usages: {VCPU: 10}, ...}
    one class that does not fit refuses all, on one provider or several
        PUT /allocations/$vm CLAIM host VCPU=1 $1=5
        409 The requested amount would exceed the capacity
        || MEMORY_MB || pool DISK_GB
    over capacity a consumer may be written if that is no worse
        PUT /allocations/$full.consumer CLAIM full VCPU=$1 {consumer_generation: 1} => $2
        | 1 | 204
        | 4 | 204
        | 9 | 204
        | 10 | 204
        | 11 | 409 The requested amount would exceed the capacity
    over capacity nobody new may come
        PUT /allocations/$vm CLAIM full VCPU=1 => 409 The requested amount would exceed the capacity
    over capacity one consumer may take the place of another
        POST /allocations CLAIMS full.consumer: {consumer_generation: 1}; new: full VCPU=10 => 204
        GET /allocations/$new => 200 {allocations: {$full: {resources: {VCPU: 10}, ...}}, ...}
    over capacity the units are obeyed
        PUT $full/inventories {inventories: {VCPU: {total: 8, max_unit: 2}}, seen: $full} => 200
        PUT /allocations/$full.consumer CLAIM full VCPU=3 {consumer_generation: 1}
        409 Unable to allocate
    more than a provider can ever have does not fit
        PUT /allocations/$vm CLAIM huge VCPU=$1 => 409
        || 2147483648 || 9223372036854775807
    no inventory of any class is a conflict
        PUT /allocations/$vm CLAIM empty VCPU=1 => 409 Inventory for 'VCPU' on
    """,
    world="""
        host   VCPU=4  MEMORY_MB=4
        pool   DISK_GB=4
        busy   VCPU=10(used:6)
        full   VCPU=8(used:10)
        huge   VCPU=2147483647
        empty
    """,
)
def test_capacity(rule: Rule, wire: Client) -> None:
    """The rows of the table."""
    rule.check(wire)
