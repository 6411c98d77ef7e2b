# SPDX-License-Identifier: Apache-2.0
"""Reading and deleting allocations of a consumer, and reading those of a provider.

Source: rest-api.md 10.1, 10.2, 10.5 and 1.8.
"""

import pytest

from tests.api.wire import Rule, rules
from tests.client import Client

WORLD = """
    host   VCPU=4(used:1)  MEMORY_MB=64
    pool   DISK_GB=9
    empty
"""


@rules(
    """
    a consumer shows what it holds
        PUT /allocations/$vm CLAIM host VCPU=2 MEMORY_MB=32 pool DISK_GB=5 @1.39 => 204
        GET /allocations/$vm
        200 {allocations: {$host: {generation: 4, resources: {VCPU: 2, MEMORY_MB: 32}}, $pool:
            {generation: 2, resources: {DISK_GB: 5}}}$1}
        | | @1.0-1.11
        | , project_id: $project, user_id: user | @1.12-1.27
        | , project_id: $project, user_id: user, consumer_generation: 1 | @1.28-1.37
        | , project_id: $project, user_id: user, consumer_generation: 1, consumer_type: INSTANCE
            | @1.38-
    a consumer of nothing shows nothing, whatever its name @1.0-
        GET /allocations/$1 => 200 {allocations: {}}
        || $nobody || not-a-uuid || %C3%9C || a%20b
    a provider shows who holds it
        PUT /allocations/$vm CLAIM host VCPU=2 pool DISK_GB=5 @1.39 => 204
        GET $host/allocations
        200 {allocations: {$vm: {resources: {VCPU: 2}$1}, $host.consumer: {resources: {VCPU: 1}$1}},
            seen: 4}
        |                          | @1.0-1.27
        | , consumer_generation: 1 | @1.28-
    a provider that nobody holds shows nothing
        GET $empty/allocations => 200 {allocations: {}, seen: 0}
    deleting takes all that the consumer holds, and no provider counts @1.0-
        PUT /allocations/$vm CLAIM host VCPU=2 pool DISK_GB=5 @1.39 => 204
        DELETE /allocations/$vm => 204
        GET /allocations/$vm => 200 {allocations: {}}
        GET $host => 200 {generation: 4, ...}
        GET $pool => 200 {generation: 2, ...}
    deleting nothing is not found @1.0,1.22,1.23,1.39
        DELETE /allocations/$1 => 404 No allocations for consumer '$1'
        || $nobody || not-a-uuid
    """,
    world=WORLD,
)
def test_allocations(rule: Rule, wire: Client) -> None:
    """The rows of the table."""
    rule.check(wire)


@pytest.mark.deliberately_different("uuids are normalised to lower case and dashes (1.9)")
@rules(
    """
    GET and DELETE take every spelling of a uuid, as PUT does
        GET /allocations/$1$host.consumer$2
        200 {allocations: {$host: {resources: {VCPU: 1}, ...}}, ...}
        DELETE /allocations/$1$host.consumer$2 => 204
        GET /allocations/$host.consumer => 200 {allocations: {}}
        | urn:uuid: |
        | %7B | %7D
    """,
    world=WORLD,
)
def test_spellings(rule: Rule, wire: Client) -> None:
    """The rows of the table."""
    rule.check(wire)
