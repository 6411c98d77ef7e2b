# SPDX-License-Identifier: Apache-2.0
"""The order of errors on the routes of providers and traits.

Each rule sends a request with every fault at once; each case repairs one of them. Other routes have
theirs in the tests of their resources.

Source: rest-api.md 1.14.
"""

import pytest

from tests.api.wire import Rule, rules
from tests.api.worlds import NOBODY
from tests.client import Client

WORLD = "host  VCPU=1"


@pytest.mark.parametrize(
    ("status", "version", "headers", "request_line"),
    [
        (401, "1.x", {"X-Auth-Token": None}, "PATCH /no/such/path"),
        (400, "1.x", NOBODY, "PATCH /no/such/path"),
        (406, "1.40", NOBODY, "PATCH /no/such/path"),
        (400, "1.39", NOBODY, "PATCH /no/such/path"),
        (404, "1.39", {**NOBODY, "Content-Type": "x"}, "PATCH /no/such/path"),
        (405, "1.39", {**NOBODY, "Content-Type": "x"}, "PATCH /resource_providers"),
        (415, "1.39", {**NOBODY, "Content-Type": "x"}, "POST /resource_providers"),
        (403, "1.39", {**NOBODY, "Content-Type": "application/json"}, "POST /resource_providers"),
        (400, "1.39", {"Content-Type": "application/json"}, "POST /resource_providers"),
    ],
)
def test_the_layers_are_passed_from_the_outside_in(
    api: Client, status: int, version: str, headers: dict[str, str | None], request_line: str
) -> None:
    """Token, version, the checks of the body, the path, the method, policy."""
    method, path = request_line.split()
    answer = api.request(method, path, version=version, headers=headers, body=b"{}")
    assert answer.status == status


@rules(
    """
    list providers: Accept, role, query
        > Accept: $1
        > X-Roles: $2
        GET /resource_providers?uuid=$3 => $4
        | text/plain       | nobody | x    | 406
        | application/json | nobody | x    | 403
        | application/json | admin  | x    | 400
    of what a provider has: role, provider
        > X-Roles: nobody
        $1 /resource_providers/$nowhere$2 => 403
        $1 /resource_providers/$nowhere$2 => 404 No resource provider with uuid
        | GET |
        | GET | /inventories
        | GET | /inventories/VCPU
        | GET | /usages
        | GET | /allocations
        | GET | /aggregates
        | GET | /traits
        | DELETE |
        | DELETE | /inventories
        | DELETE | /inventories/VCPU
        | DELETE | /traits
    make a provider: parent, name
        POST /resource_providers {name: $host.name, parent_provider_uuid: $1} => $2
        | $nowhere | 400 parent provider UUID
        | $host    | 409 placement.duplicate_name
    what the path names comes before the body, but not for traits
        > Content-Type: application/json
        $1 /resource_providers/$nowhere$2 b'{' => $3
        | PUT  |                   | 404 No resource provider with uuid
        | POST | /inventories      | 404 No resource provider with uuid
        | PUT  | /inventories      | 404 No resource provider with uuid
        | PUT  | /inventories/VCPU | 404 No resource provider with uuid
        | PUT  | /aggregates       | 404 No resource provider with uuid
        | PUT  | /traits           | 400 Malformed JSON
    add an inventory: capacity, class, whether it is there
        POST $host/inventories $1 => $2
        | {resource_class: $CUSTOM_N, total: 1, reserved: 2} | 400 greater than total
        | {resource_class: $CUSTOM_N, total: 1} | 400 $CUSTOM_N
        | {resource_class: VCPU, total: 1} | 409 placement.concurrent_update
    replace all inventories: generation, capacity, class
        PUT $host/inventories {inventories: {$CUSTOM_N: {total: 1, $1}}, seen: $2} => $3
        | reserved: 2 | 7 | 409 placement.concurrent_update resource provider generation conflict
        | reserved: 2 | 1 | 400 greater than total
        | reserved: 0 | 1 | 400 Unknown resource class
    replace one inventory: generation, capacity, class
        PUT $host/inventories/$1 {total: 1, $2} => $3
        | $CUSTOM_N | reserved: 2, seen: 7
            | 409 placement.concurrent_update resource provider generation conflict
        | $CUSTOM_N | reserved: 2, seen: 1 | 400 greater than total
        | $CUSTOM_N | seen: 1 | 404 No such resource class
        | DISK_GB   | seen: 1 | 400 No inventory record
        | VCPU      | seen: 1 | 200
    replace the traits of a provider: provider, generation, names
        PUT /resource_providers/$1/traits {traits: [$CUSTOM_N], seen: $2} => $3
        | $nowhere | 0 | 404 No resource provider with uuid
        | $host    | 0 | 409 placement.concurrent_update Please update the generation
        | $host    | 1 | 400 No such trait
    """,
    world=WORLD,
)
def test_providers(rule: Rule, wire: Client) -> None:
    """Providers, and what they have."""
    rule.check(wire)


@rules(
    """
    the type comes before the microversion for aggregates, and after it for traits
        > Content-Type: text/plain
        > X-Roles: nobody
        PUT /resource_providers/$nowhere/$1 b'{' => $2
        | aggregates | 415 | @1.0
        | traits     | 404 | @1.5
        | traits     | 415 | @1.6
    so does Accept
        > Accept: text/plain
        > X-Roles: nobody
        GET /$1 => $2
        | resource_providers/$nowhere/aggregates | 406 | @1.0
        | resource_providers/$nowhere/traits | 404 | @1.5
        | resource_providers/$nowhere/traits | 406 | @1.6
        | traits?name=x | 404 | @1.5
        | traits?name=x | 406 | @1.6
    of a trait: microversion, role, name or existence; Accept is ignored
        > X-Roles: $1
        > Accept: text/plain
        $2 => $3
        | admin  | GET /traits/$CUSTOM_T    | 204 | @1.6
        | nobody | GET /traits/$CUSTOM_N    | 403 | @1.6
        | admin  | DELETE /traits/$CUSTOM_T | 204 | @1.6
        | nobody | PUT /traits/NONSENSE     | 404 | @1.5
        | nobody | PUT /traits/NONSENSE     | 403 | @1.6
    """,
    world=WORLD,
    traits="CUSTOM_T",
)
def test_aggregates_and_traits(rule: Rule, wire: Client) -> None:
    """Aggregates and traits, and those of a provider."""
    rule.check(wire)
