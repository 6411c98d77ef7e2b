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

WORLD = "host  VCPU=1\nother"


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
        | application/json | admin  | $new | 200
    read what a provider has: Accept, role, provider
        > Accept: text/plain
        > X-Roles: nobody
        GET /resource_providers/$nowhere$1 => 406
        > Accept: application/json
        > X-Roles: nobody
        GET /resource_providers/$nowhere$1 => 403
        GET /resource_providers/$nowhere$1 => 404 No resource provider with uuid
        GET $host$1 => 200
        |
        || /inventories || /usages || /allocations || /aggregates || /traits
    make a provider: type, role, JSON, schema, parent, name
        > Content-Type: $1
        > X-Roles: $2
        POST /resource_providers $3 => $4
        | text/plain       | nobody | b'{'  | 415
        | application/json | nobody | b'{'  | 403
        | application/json | admin  | b'{'  | 400 Malformed JSON
        | application/json | admin  | b'{}' | 400 JSON does not validate
        | application/json | admin  | {name: $host.name, parent_provider_uuid: $nowhere}
            | 400 parent provider UUID
        | application/json | admin  | {name: $host.name, parent_provider_uuid: $host}
            | 409 placement.duplicate_name
        | application/json | admin  | {name: $new, parent_provider_uuid: $host} | 200
    rename a provider: type, role, provider, JSON, schema, name
        > Content-Type: $1
        > X-Roles: $2
        PUT /resource_providers/$3 $4 => $5
        | text/plain       | nobody | $nowhere | b'{' | 415
        | application/json | nobody | $nowhere | b'{' | 403
        | application/json | admin  | $nowhere | b'{' | 404
        | application/json | admin  | $host | b'{'  | 400 Malformed JSON
        | application/json | admin  | $host | b'{}' | 400 JSON does not validate
        | application/json | admin  | $host | {name: $other.name} | 409 placement.duplicate_name
        | application/json | admin  | $host | {name: $new} | 200
    delete what a provider has: role, provider; Accept is ignored
        > X-Roles: nobody
        DELETE /resource_providers/$nowhere$1 => 403
        DELETE /resource_providers/$nowhere$1 => 404 No resource provider with uuid
        > Accept: text/plain
        DELETE $host$1 => 204
        |
        || /inventories/VCPU || /inventories || /traits
    read or delete one inventory: role, provider
        > X-Roles: nobody
        GET /resource_providers/$nowhere/inventories/VCPU => 403
        GET /resource_providers/$nowhere/inventories/VCPU => 404 No resource provider with uuid
    delete all inventories: microversion, role, provider
        > X-Roles: $1
        DELETE /resource_providers/$2/inventories => $3
        | nobody | $nowhere | 405 | @1.4
        | nobody | $nowhere | 403 | @1.5
        | admin  | $nowhere | 404 | @1.5
        | admin  | $host    | 204 | @1.5
    add an inventory: type, role, provider, JSON, schema, capacity, class, whether it is there
        > Content-Type: $1
        > X-Roles: $2
        POST /resource_providers/$3/inventories $4 => $5
        | text/plain       | nobody | $nowhere | b'{' | 415
        | application/json | nobody | $nowhere | b'{' | 403
        | application/json | admin  | $nowhere | b'{' | 404
        | application/json | admin  | $host | b'{'  | 400 Malformed JSON
        | application/json | admin  | $host | b'{}' | 400 JSON does not validate
        | application/json | admin  | $host | {resource_class: $CUSTOM_N, total: 1, reserved: 2}
            | 400 greater than total
        | application/json | admin  | $host | {resource_class: $CUSTOM_N, total: 1} | 400 $CUSTOM_N
        | application/json | admin  | $host | {resource_class: VCPU, total: 1}
            | 409 placement.concurrent_update
        | application/json | admin  | $host | {resource_class: DISK_GB, total: 1} | 201 _
    replace all inventories: type, role, provider, JSON, schema, generation, capacity, class
        > Content-Type: $1
        > X-Roles: $2
        PUT /resource_providers/$3/inventories $4 => $5
        | text/plain       | nobody | $nowhere | b'{' | 415
        | application/json | nobody | $nowhere | b'{' | 403
        | application/json | admin  | $nowhere | b'{' | 404
        | application/json | admin  | $host | b'{'  | 400 Malformed JSON
        | application/json | admin  | $host | b'{}' | 400 JSON does not validate
        | application/json | admin  | $host
            | {inventories: {$CUSTOM_N: {total: 1, reserved: 2}}, seen: 7}
            | 409 placement.concurrent_update resource provider generation conflict
        | application/json | admin  | $host
            | {inventories: {$CUSTOM_N: {total: 1, reserved: 2}}, seen: 1} | 400 greater than total
        | application/json | admin  | $host | {inventories: {$CUSTOM_N: {total: 1}}, seen: 1}
            | 400 Unknown resource class
        | application/json | admin  | $host | {inventories: {VCPU: {total: 1}}, seen: 1} | 200
    replace one inventory: type, role, provider, JSON, schema, generation, capacity, class
        > Content-Type: $1
        > X-Roles: $2
        PUT /resource_providers/$3/inventories/$4 $5 => $6
        | text/plain       | nobody | $nowhere | $CUSTOM_N | b'{' | 415
        | application/json | nobody | $nowhere | $CUSTOM_N | b'{' | 403
        | application/json | admin  | $nowhere | $CUSTOM_N | b'{' | 404 No resource provider
        | application/json | admin  | $host | $CUSTOM_N | b'{'  | 400 Malformed JSON
        | application/json | admin  | $host | $CUSTOM_N | b'{}' | 400 JSON does not validate
        | application/json | admin  | $host | $CUSTOM_N | {total: 1, reserved: 2, seen: 7}
            | 409 placement.concurrent_update resource provider generation conflict
        | application/json | admin  | $host | $CUSTOM_N | {total: 1, reserved: 2, seen: 1}
            | 400 greater than total
        | application/json | admin  | $host | $CUSTOM_N | {total: 1, seen: 1}
            | 404 No such resource class
        | application/json | admin  | $host | DISK_GB | {total: 1, seen: 1}
            | 400 No inventory record
        | application/json | admin  | $host | VCPU | {total: 1, seen: 1} | 200
    """,
    world=WORLD,
)
def test_providers(rule: Rule, wire: Client) -> None:
    """Providers, and their inventories."""
    rule.check(wire)


@rules(
    """
    read aggregates: Accept, microversion, role, provider
        > Accept: $1
        > X-Roles: $2
        GET /resource_providers/$3/aggregates => $4
        | text/plain       | nobody | $nowhere | 406 | @1.0
        | application/json | nobody | $nowhere | 404 | @1.0
        | application/json | nobody | $nowhere | 403 | @1.1
        | application/json | admin  | $nowhere | 404 No resource provider with uuid | @1.1
        | application/json | admin  | $host    | 200 | @1.1
    replace aggregates: type, microversion, role, provider, JSON, schema, generation
        > Content-Type: $1
        > X-Roles: $2
        PUT /resource_providers/$3/aggregates $4 => $5
        | text/plain       | nobody | $nowhere | b'{' | 415 | @1.0
        | application/json | nobody | $nowhere | b'{' | 404 | @1.0
        | application/json | nobody | $nowhere | b'{' | 403 | @1.19
        | application/json | admin  | $nowhere | b'{' | 404 No resource provider with uuid | @1.19
        | application/json | admin  | $host | b'{'  | 400 Malformed JSON | @1.19
        | application/json | admin  | $host | b'{}' | 400 JSON does not validate | @1.19
        | application/json | admin  | $host | {aggregates: [$A], seen: 0}
            | 409 Please update the generation and try again. | @1.19
        | application/json | admin  | $host | {aggregates: [$A], seen: 1} | 200 | @1.19
    list traits: microversion, Accept, role, query
        > Accept: $1
        > X-Roles: $2
        GET /traits?name=$3 => $4
        | text/plain       | nobody | x    | 404 | @1.5
        | text/plain       | nobody | x    | 406 | @1.6
        | application/json | nobody | x    | 403 | @1.6
        | application/json | admin  | x    | 400 | @1.6
        | application/json | admin  | in:x | 200 | @1.6
    ask for or delete a trait: microversion, role, existence; Accept is ignored
        > X-Roles: $1
        > Accept: $2
        $3 => $4
        | nobody | application/json | GET /traits/$CUSTOM_N | 404 The resource could not be | @1.5
        | nobody | application/json | GET /traits/$CUSTOM_N | 403 | @1.6
        | admin  | application/json | GET /traits/$CUSTOM_N | 404 No such trait | @1.6
        | admin  | text/plain       | GET /traits/$CUSTOM_T | 204 | @1.6
        | nobody | application/json | DELETE /traits/$CUSTOM_N | 404 The resource | @1.5
        | nobody | application/json | DELETE /traits/$CUSTOM_N | 403 | @1.6
        | admin  | application/json | DELETE /traits/$CUSTOM_N | 404 No such trait | @1.6
        | admin  | text/plain       | DELETE /traits/$CUSTOM_T | 204 | @1.6
    make a trait: microversion, role, name
        > X-Roles: $1
        PUT /traits/$2 => $3
        | nobody | NONSENSE  | 404 | @1.5
        | nobody | NONSENSE  | 403 | @1.6
        | admin  | NONSENSE  | 400 The trait is invalid | @1.6
        | admin  | $CUSTOM_N | 201 | @1.6
    read the traits of a provider: microversion before Accept
        > Accept: text/plain
        > X-Roles: nobody
        GET /resource_providers/$nowhere/traits => $1
        | 404 | @1.5
        | 406 | @1.6
    replace the traits of a provider: version, type, role, JSON, schema, provider, generation, names
        > Content-Type: $1
        > X-Roles: $2
        PUT /resource_providers/$3/traits $4 => $5
        | text/plain       | nobody | $nowhere | b'{'  | 404 | @1.5
        | text/plain       | nobody | $nowhere | b'{'  | 415 | @1.6
        | application/json | nobody | $nowhere | b'{'  | 403 | @1.6
        | application/json | admin  | $nowhere | b'{'  | 400 Malformed JSON | @1.6
        | application/json | admin  | $nowhere | b'{}' | 400 JSON does not validate | @1.6
        | application/json | admin  | $nowhere | {traits: [$CUSTOM_N], seen: 0}
            | 404 No resource provider with uuid | @1.6
        | application/json | admin  | $host | {traits: [$CUSTOM_N], seen: 0}
            | 409 Please update the generation and try again. | @1.6
        | application/json | admin  | $host | {traits: [$CUSTOM_N], seen: 1}
            | 400 No such trait | @1.6
        | application/json | admin  | $host | {traits: [$CUSTOM_T], seen: 1} | 200 | @1.6
    delete the traits of a provider: microversion, role, provider
        > X-Roles: $1
        DELETE /resource_providers/$2/traits => $3
        | nobody | $nowhere | 404 The resource could not be found | @1.5
        | nobody | $nowhere | 403 | @1.6
        | admin  | $nowhere | 404 No resource provider with uuid | @1.6
        | admin  | $host    | 204 | @1.6
    """,
    world=WORLD,
    traits="CUSTOM_T",
)
def test_aggregates_and_traits(rule: Rule, wire: Client) -> None:
    """Aggregates and traits, and those of a provider."""
    rule.check(wire)
