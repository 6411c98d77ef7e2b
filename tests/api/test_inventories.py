# SPDX-License-Identifier: Apache-2.0
"""The inventories of a provider.

Source: rest-api.md 5.
"""

import pytest

from tests.api.wire import Rule, rules
from tests.api.worlds import done, provider
from tests.client import Client

WORLD = """
    empty
    host  VCPU=1  DISK_GB=100(reserved:10,min:2,max:50,step:2,ratio:1.5)
    busy  VCPU=4(used:4)  DISK_GB=4
"""
PLAIN = "reserved: 0, min_unit: 1, max_unit: 2147483647, step_size: 1, allocation_ratio: 1.0"
FULL = "total: 100, reserved: 10, min_unit: 2, max_unit: 50, step_size: 2, allocation_ratio: 1.5"


@rules(
    """
    a provider begins without inventory @1.0-
        GET $empty/inventories => 200 {inventories: {}, seen: 0}
    an inventory is shown in full, with defaults for what is not given @1.0-
        PUT $empty/inventories {inventories: {VCPU: {total: 4}, DISK_GB: {FULL}}, seen: 0}
        200 {inventories: {VCPU: {total: 4, PLAIN}, DISK_GB: {FULL}}, seen: 1}
        GET $empty/inventories
        200 {inventories: {VCPU: {total: 4, PLAIN}, DISK_GB: {FULL}}, seen: 1}
        GET $empty/inventories/DISK_GB => 200 {FULL, seen: 1}
    an inventory can be added @1.0-
        POST $empty/inventories {resource_class: VCPU, total: 4} => 201 {total: 4, PLAIN, seen: 1}
        < Location: .../resource_providers/$empty/inventories/VCPU
        GET $empty/inventories/VCPU => 200 {total: 4, PLAIN, seen: 1}
    an inventory can be replaced, and what is not given gets its default @1.0-
        PUT $host/inventories/DISK_GB {total: 7, seen: 1} => 200 {total: 7, PLAIN, seen: 2}
        GET $host/inventories/DISK_GB => 200 {total: 7, PLAIN, seen: 2}
    a set replaces the set
        PUT $host/inventories {inventories: {DISK_GB: {total: 1}, MEMORY_MB: {total: 2}}, seen: 1}
        200 {inventories: {DISK_GB: {total: 1, PLAIN}, MEMORY_MB: {total: 2, PLAIN}}, seen: 2}
        GET $host/inventories
        200 {inventories: {DISK_GB: {total: 1, PLAIN}, MEMORY_MB: {total: 2, PLAIN}}, seen: 2}
        PUT $host/inventories {inventories: {}, seen: 2} => 200 {inventories: {}, seen: 3}
        GET $host/inventories => 200 {inventories: {}, seen: 3}
    the generation of a record in a set is ignored
        PUT $empty/inventories {inventories: {VCPU: {total: 1, seen: 77}}, seen: 0} => 200
    one inventory can be deleted, if it has no allocations @1.0-
        DELETE $host/inventories/VCPU => 204
        GET $host/inventories => 200 {inventories: {DISK_GB: _}, seen: 2}
        DELETE $host/inventories/VCPU => 404 found for delete
    all inventories can be deleted @1.5-
        DELETE $host/inventories => 204
        GET $host/inventories => 200 {inventories: {}, seen: 2}
    an inventory may shrink below its use, and no more fits until enough is released
        PUT $busy/$1 => 200
        GET $busy/usages => 200 {usages: {VCPU: 4, DISK_GB: 0}, ...}
        PUT /allocations/$other CLAIM busy VCPU=1
        409 The requested amount would exceed the capacity
        DELETE /allocations/$busy.consumer => 204
        PUT /allocations/$other CLAIM busy VCPU=2 => 204
        || inventories {inventories: {VCPU: {total: 2}, DISK_GB: {total: 4}}, seen: $busy}
        || inventories/VCPU {total: 2, seen: $busy}
    """.replace("PLAIN", PLAIN).replace("FULL", FULL),
    world=WORLD,
    classes="CUSTOM_C",
)
def test_inventories(rule: Rule, wire: Client) -> None:
    """What is kept, and how it is shown."""
    rule.check(wire)


@rules(
    """
    a field out of bounds is refused by every way, and named
        POST $host/inventories {resource_class: MEMORY_MB, total: 1, $1: $2}
        400 JSON does not validate ... Failed validating '$3' in schema['properties']['$1']
        PUT $host/inventories/VCPU {seen: 1, total: 1, $1: $2}
        400 Failed validating '$3' in schema['properties']['$1']
        PUT $host/inventories {inventories: {VCPU: {total: 1, $1: $2}}, seen: 1}
        400 Failed validating '$3' ... ['properties']['$1']
        | total            | 0          | minimum
        | total            | 2147483648 | maximum
        | total            | null       | type
        | total            | 1.0e+30    | maximum
        | total            | 1.5        | type
        | reserved         | -1         | minimum
        | min_unit         | 0          | minimum
        | max_unit         | 0          | minimum
        | step_size        | 0          | minimum
        | allocation_ratio | true       | type
        | allocation_ratio | 3.5e+38    | maximum
    every field is needed and nothing else
        $1 $2 => 400 JSON does not validate
        | POST | $host/inventories {total: 1}
        | POST | $host/inventories {resource_class: MEMORY_MB}
        | POST | $host/inventories {resource_class: MEMORY_MB, total: 1, used: 0}
        | PUT  | $host/inventories/VCPU {total: 1}
        | PUT  | $host/inventories/VCPU {seen: 1}
        | PUT  | $host/inventories/VCPU {seen: 1, total: 1, resource_class: VCPU}
        | PUT  | $host/inventories {inventories: {}}
        | PUT  | $host/inventories {seen: 1}
        | PUT  | $host/inventories {seen: 1, inventories: {VCPU: {}}}
    there must be capacity above 0 before 1.26, from then on 0 or more
        POST $host/inventories {resource_class: MEMORY_MB, $1} => 201 _
        PUT $host/inventories/VCPU {seen: $host, $1} => 200
        PUT $host/inventories {inventories: {VCPU: {$1}}, seen: $host} => 200
        | total: 4, reserved: 3                        | @1.0-
        | total: 4, reserved: 4                        | @1.26-
        | total: 1, allocation_ratio: 0.5              | @1.26-
        | total: 4, allocation_ratio: 0                | @1.26-
        | total: 4, reserved: 5, allocation_ratio: -1  | @1.0-
    without capacity an inventory is refused
        POST $host/inventories {resource_class: MEMORY_MB, $1} => 400 $2
        PUT $host/inventories/VCPU {seen: $host, $1} => 400 $2
        PUT $host/inventories {inventories: {VCPU: {$1}}, seen: $host} => 400 $2
        | total: 4, reserved: 4           | greater than or equal to total | @1.0-1.25
        | total: 1, allocation_ratio: 0.5 | greater than or equal to total | @1.0-1.25
        | total: 4, allocation_ratio: 0   | greater than or equal to total | @1.0-1.25
        | total: 4, reserved: 5           | greater than or equal to total | @1.0-1.25
        | total: 4, reserved: 5           | greater than total             | @1.26-
        | total: 4, allocation_ratio: -1  | greater than or equal to total | @1.0-1.25
        | total: 4, allocation_ratio: -1  | greater than total             | @1.26-
    an unknown class is 400 in a body, and 404 in a path
        POST $host/inventories {resource_class: $CUSTOM_NONE, total: 1}
        400 Unable to create inventory for resource provider $host ... No such resource class
            $CUSTOM_NONE
        PUT $host/inventories {inventories: {$CUSTOM_NONE: {total: 1}}, seen: 1}
        400 Unknown resource class ... $CUSTOM_NONE
        PUT $host/inventories/$CUSTOM_NONE {total: 1, seen: 1} => 404 No such resource class
        GET $host/inventories/$CUSTOM_NONE => 404
        DELETE $host/inventories/$CUSTOM_NONE
        404 No inventory of class $CUSTOM_NONE found for delete ... No such resource class
            $CUSTOM_NONE
    capacity is judged before the class
        POST $host/inventories {resource_class: $CUSTOM_NONE, total: 1, reserved: 2}
        400 greater than total
    PUT does not create
        PUT $empty/inventories/VCPU {total: 1, seen: 0}
        400 No inventory record with resource class ... No inventory of class VCPU
        GET $empty/inventories/VCPU => 404 No inventory of class VCPU
        DELETE $empty/inventories/VCPU => 404 No inventory of class VCPU
    POST does not replace
        POST $host/inventories {resource_class: VCPU, total: 2}
        409 placement.concurrent_update Update conflict
    an unknown provider is 404
        $1 /resource_providers/$nowhere/$2 => 404 No resource provider with uuid
        | GET    | inventories                                   | @1.0-
        | POST   | inventories {resource_class: VCPU, total: 1}  | @1.0-
        | PUT    | inventories {inventories: {}, seen: 0}        | @1.0-
        | DELETE | inventories                                   | @1.5-
        | GET    | inventories/VCPU                              | @1.0-
        | PUT    | inventories/VCPU {total: 1, seen: 0}          | @1.0-
        | DELETE | inventories/VCPU                              | @1.0-
    an inventory in use stays
        PUT $busy/inventories {inventories: {MEMORY_MB: {total: 1}}, seen: $busy}
        409 placement.inventory.inuse Inventory for 'VCPU' on resource provider '$busy' in use.
        DELETE $busy/inventories
        409 placement.inventory.inuse Inventory for 'VCPU' on resource provider '$busy' in use.
        DELETE $busy/inventories/VCPU => 409 placement.concurrent_update in use
        DELETE $busy/inventories/DISK_GB => 204
    """,
    world=WORLD,
)
def test_refusals(rule: Rule, wire: Client) -> None:
    """The rows of the table."""
    rule.check(wire)


def test_a_ratio_is_stored_as_a_float(api: Client) -> None:
    """The response to the write repeats the integer."""
    path = f"/resource_providers/{provider(api)}/inventories"
    record = {"total": 1, "allocation_ratio": 16}
    body = {"inventories": {"VCPU": record}, "resource_provider_generation": 0}
    answer = done(api.put(path, json=body), 200)
    assert answer.json["inventories"]["VCPU"]["allocation_ratio"] == 16
    assert '"allocation_ratio":16.0' in api.get(path).text.replace(" ", "")


@pytest.mark.parametrize("ratio", [0.1, 1.1, 1e-7, 3.40282e38, 123456.789, 1 / 3])
def test_a_ratio_comes_back_as_it_went(api: Client, engine: str, ratio: float) -> None:
    """With double precision, although MariaDB shows only six digits."""
    uuid = provider(api, {"VCPU": {"total": 2147483647, "allocation_ratio": ratio}})
    kept = float(f"{ratio:.6g}") if engine in ("mariadb", "galera") else ratio
    shown = api.get(f"/resource_providers/{uuid}/inventories/VCPU").json
    assert shown["allocation_ratio"] == kept
