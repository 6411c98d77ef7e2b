# SPDX-License-Identifier: Apache-2.0
"""Usages of providers and of projects.

Source: rest-api.md section 9.
"""

from urllib.parse import quote

import pytest

from tests.api.claims import consumer
from tests.api.wire import Rule, rules
from tests.api.worlds import provider
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
    a class used by nobody any more is not listed @1.9
        PUT /allocations/$vm CLAIM host VCPU=1 @1.39 => 204
        GET /usages?project_id=$project => 200 {usages: {VCPU: 1}}
        DELETE /allocations/$vm => 204
        GET /usages?project_id=$project => 200 {usages: {}}
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
    there are no usages of projects before 1.9 @1.0-1.8
        GET /usages?project_id=p => 404
    usages are as of now, from 1.15 on
        GET $1/usages?project_id=p => 200
        < Cache-Control: no-cache
        < Last-Modified: ...
        | $host | @1.15,1.38
        |       | @1.15,1.38
    before 1.15 nothing is said of that @1.14
        GET $1/usages?project_id=p => 200
        < Cache-Control:
        < Last-Modified:
        | $host
        |
    faults of a provider's: Accept, role, provider
        > Accept: $1
        > X-Roles: $2
        GET /resource_providers/$3/usages => $4
        | text/plain       | nobody | $nowhere | 406
        | application/json | nobody | $nowhere | 403
        | application/json | admin  | $nowhere | 404 No resource provider with uuid
        | application/json | admin  | $host    | 200
    faults of a project's: microversion, Accept, role, query
        > Accept: $1
        > X-Roles: $2
        GET /usages?$3 => $4
        | text/plain       | nobody | foo=1        | 404 | @1.8
        | text/plain       | nobody | foo=1        | 406 | @1.9
        | application/json | nobody | foo=1        | 403 | @1.9
        | application/json | admin  | foo=1        | 400 | @1.9
        | application/json | admin  | project_id=p | 200 | @1.9
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


@pytest.mark.parametrize("project", ["Großes Projekt", "a/b", "a&b=c", "x" * 255, "p" + "%"])
def test_project_and_user_are_opaque(api: Client, project: str) -> None:
    """Any characters, up to 255 of them (1.10, 14)."""
    host = provider(api, {"VCPU": 9})
    before = api.get(f"/usages?project_id={quote(project)}", version="1.9").json["usages"]
    consumer(api, {host: {"VCPU": 2}}, project=project, user=project)
    path = f"/usages?project_id={quote(project)}&user_id={quote(project)}"
    after = api.get(path, version="1.9").json["usages"]
    assert after["VCPU"] == before.get("VCPU", 0) + 2
