# SPDX-License-Identifier: Apache-2.0
"""Usages of providers and of projects.

Source: rest-api.md section 9.
"""

import pytest

from tests.api.wire import Rule, rules
from tests.client import Client

HOST = "host  VCPU=100  MEMORY_MB=100\nempty"

#: Consumers of one project: three with a type, and one without.
TENANTS = """
        PUT /allocations/$c1 CLAIM host VCPU=1 MEMORY_MB=10 {user_id: $one} @1.39 => 204
        PUT /allocations/$c2 CLAIM host VCPU=2 {user_id: $one} @1.39 => 204
        PUT /allocations/$c3 CLAIM host MEMORY_MB=20 {user_id: $two, consumer_type: VOLUME} @1.39
        204
        PUT /allocations/$c4 CLAIM host VCPU=4 {user_id: $two} @1.37 => 204
"""


@rules(
    """
    a provider shows what is used of every class it has @1.0-
        GET $host/usages => 200 {usages: {VCPU: 0, MEMORY_MB: 0}, seen: $host}
        TENANTS
        GET $host/usages => 200 {usages: {VCPU: 7, MEMORY_MB: 30}, seen: $host}
        GET $empty/usages?foo=1&foo=%FF => 200 {usages: {}, seen: 0}
    before 1.38 a project is shown the sums over its consumers @1.9-1.37
        GET /usages?project_id=$project => 200 {usages: {}}
        TENANTS
        GET /usages?project_id=$project => 200 {usages: {VCPU: 7, MEMORY_MB: 30}}
        GET /usages?project_id=$project&user_id=$one => 200 {usages: {VCPU: 3, MEMORY_MB: 10}}
        GET /usages?project_id=&project_id=$project&user_id=&user_id=$one
        200 {usages: {VCPU: 3, MEMORY_MB: 10}}
        GET /usages?project_id=$project.upper => 200 {usages: {}}
    from 1.38 on a project is shown the sums by type of consumer @1.38-
        TENANTS
        GET /usages?project_id=$project$1 => 200 {usages: {$2}}
        |                              | INSTANCE: III, VOLUME: VVV, unknown: NNN
        | &consumer_type=INSTANCE      | INSTANCE: III
        | &consumer_type=VOLUME        | VOLUME: VVV
        | &consumer_type=unknown       | unknown: NNN
        | &consumer_type=all           | all: {VCPU: 7, MEMORY_MB: 30, consumer_count: 4}
        | &consumer_type=NOBODY_HAS_IT |
        | &consumer_type=UNKNOWN       |
        | &consumer_type=ALL           |
        | &consumer_type=allfoo        |
        | &user_id=$one                | INSTANCE: III
        | &user_id=$one&consumer_type=unknown |
        | &user_id=$one&consumer_type=all     | all: III
        | &user_id=$two                | VOLUME: VVV, unknown: NNN
        | &user_id=$two&consumer_type=VOLUME  | VOLUME: VVV
        | &user_id=nobody              |
    a consumer of several providers and classes is counted once
        PUT /allocations/$vm CLAIM host VCPU=1 MEMORY_MB=1 pool DISK_GB=1 => 204
        GET /usages?project_id=$project
        200 {usages: {INSTANCE: {VCPU: 1, MEMORY_MB: 1, DISK_GB: 1, consumer_count: 1}}}
    a query that is not in the schema is refused
        GET /usages?$1 => 400 Invalid query string parameters
        |                                        | @1.9
        | user_id=u                              | @1.9
        | project_id=                            | @1.9
        | project_id=p&project_id=               | @1.9
        | project_id=p&user_id=                  | @1.9
        | project_id=p*256                       | @1.9
        | project_id=p&user_id=u*256             | @1.9
        | project_id=p&Project_id=q              | @1.9
        | project_id=p&foo=1                     | @1.9
        | project_id=p&consumer_type=INSTANCE    | @1.37
        | project_id=p&consumer_type=            | @1.38
        | project_id=p&consumer_type=instance    | @1.38
        | project_id=p&consumer_type=A-B         | @1.38
        | project_id=p&consumer_type=xall        | @1.38
        | project_id=p&consumer_type=A*256       | @1.38
        | project_id=p&foo=1                     | @1.38
    """.replace("TENANTS", TENANTS.strip())
    .replace("III", "{VCPU: 3, MEMORY_MB: 10, consumer_count: 2}")
    .replace("VVV", "{MEMORY_MB: 20, consumer_count: 1}")
    .replace("NNN", "{VCPU: 4, consumer_count: 1}"),
    world=f"{HOST}\npool DISK_GB=9",
)
def test_usages(rule: Rule, wire: Client) -> None:
    """The rows of the table."""
    rule.check(wire)


@pytest.mark.deliberately_different("undecodable bytes are a 400, not a 500 (1.6, D)")
@rules(
    """
    undecodable bytes are refused
        GET /usages?$1 => 400
        || project_id=%FF || %FF=1&project_id=p || project_id=%C3%28
    """
)
def test_queries_that_the_original_fails_at(rule: Rule, wire: Client) -> None:
    """A query must be UTF-8."""
    rule.check(wire)
