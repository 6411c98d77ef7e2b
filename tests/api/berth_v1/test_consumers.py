# SPDX-License-Identifier: Apache-2.0
"""`/berth/v1/consumers`: who holds what, for whom, and giving it back; what is refused:
test_refused.py.

Source: spec/beyond.md 6.4.
"""

from __future__ import annotations

import json
from random import Random
from urllib.parse import urlencode

from hypothesis import HealthCheck, given, note, seed, settings
from hypothesis import strategies as st

from tests.api.claims import consumer
from tests.api.wire import Rule, rules
from tests.api.worlds import new_name, provider
from tests.client import Client
from tests.effort import SEED, repeat_with, scaled

WORLD = """
    host    VCPU=64  MEMORY_MB=65536
      card  VGPU=4
    other   VCPU=64
"""


@rules(
    """
    a host shows who holds something of its tree, and a provider who holds something of it alone
        PUT /allocations/$both CLAIM host VCPU=2 card VGPU=1 {user_id: alice}
        204
        PUT /allocations/$one CLAIM host VCPU=1
        204
        PUT /allocations/$away CLAIM other VCPU=1
        204
        GET /berth/v1/consumers?$1
        200 $2
        | host=$host            | [{uuid: $both, ...}, {uuid: $one, ...}, {end: true, lines: 2}]
        | host=$card.name       | [{uuid: $both, ...}, {uuid: $one, ...}, {end: true, lines: 2}]
        | provider=$host.name   | [{uuid: $both, ...}, {uuid: $one, ...}, {end: true, lines: 2}]
        | provider=$card        | [{uuid: $both, name: null, project_id: $project, user_id: alice,
            consumer_type: INSTANCE, generation: 1, created_at: _, lease: null, allocations: {
            $host: {name: $host.name, resources: {VCPU: 2}},
            $card: {name: $card.name, resources: {VGPU: 1}}}}, {end: true, lines: 1}]
        | provider=$host&host=$card | [{uuid: $both, ...}, {uuid: $one, ...}, {end: true, lines: 2}]
        | provider=$other&host=$host | [{end: true, lines: 0}]
        | project_id=$project   | [{uuid: $both, ...}, {uuid: $one, ...}, {uuid: $away, ...},
            {end: true, lines: 3}]
        | project_id=$project&limit=2 | [_, _, {end: true, lines: 2, more: true}]
        | project_id=$project&limit=3 | [_, _, _, {end: true, lines: 3}]

    filters hold together, and project and type are compared exactly
        PUT /allocations/$alice CLAIM host VCPU=1 {user_id: alice}
        204
        PUT /allocations/$bob CLAIM host VCPU=1 {user_id: bob, consumer_type: MIGRATION}
        204
        PUT /allocations/$stranger CLAIM host VCPU=1 {user_id: alice, project_id: db}
        204
        PUT /allocations/$old CLAIM host VCPU=1 @1.36
        204
        GET /berth/v1/consumers?host=$host&$1
        200 $2
        | user_id=alice           | [{uuid: $alice, ...}, {uuid: $stranger, ...}, {end: true, ...}]
        | user_id=alice&project_id=$project             | [{uuid: $alice, ...}, {end: true, ...}]
        | project_id=$project&consumer_type=MIGRATION   | [{uuid: $bob, ...}, {end: true, ...}]
        | project_id=DB                                      | [{end: true, lines: 0}]
        | consumer_type=unknown   | [{uuid: $old, consumer_type: unknown, ...}, {end: true, ...}]

    a provider that does not exist matches nothing, and is warned of
        GET /berth/v1/consumers?$1
        200 [{end: true, lines: 0, warnings: [{code: unknown_provider, at: /$2, reference: $3}]}]
        | host=no-such-host                     | host     | no-such-host
        | provider=$nowhere&project_id=web      | provider | $nowhere

    consumers are searched by a part of their name, or by the beginning of their uuid
        PUT /berth/v1/consumers/$web/render-17 {allocations: {$host: {resources: {VCPU: 1}}},
            user_id: u, consumer_type: T, uuid: AB000000-0000-4000-8000-0000000000a$4}
        200
        PUT /berth/v1/consumers/$web/Render-18 {allocations: {$host: {resources: {VCPU: 1}}},
            user_id: u, consumer_type: T}
        200
        PUT /berth/v1/consumers/$web/100%25 {allocations: {$host: {resources: {VCPU: 1}}},
            user_id: u, consumer_type: T}
        200
        PUT /berth/v1/consumers/$web/1000 {allocations: {$host: {resources: {VCPU: 1}}},
            user_id: u, consumer_type: T}
        200
        GET /berth/v1/consumers?search=render
        200 [{name: render-17, project_id: $web, ...}, ...]
        GET /berth/v1/consumers?project_id=$web&$1=$2
        200 $3
        | search | render   | [{name: render-17, ...}, {name: Render-18, ...}, {end: true, ...}] | 0
        | search | ENDER-18  | [{name: Render-18, ...}, {end: true, ...}]                | 1
        | search | 0%25      | [{name: "100%", ...}, {end: true, ...}]                   | 2
        | search | 100       | [{name: "100%", ...}, {name: "1000", ...}, {end: true, ...}] | 3
        | search | _         | [{end: true, ...}]                                        | 4
        | search | AB000000-0000-4000-8000    | [{name: render-17, ...}, {end: true, ...}] | 5
        | search | ab00000000004000           | [{name: render-17, ...}, {end: true, ...}] | 6
        | search | b0000000                   | [{end: true, ...}]                         | 7
        | name   | render-17                  | [{name: render-17, ...}, {end: true, ...}] | 8
        | name   | render-1                   | [{end: true, ...}]                         | 9

    one consumer is shown by its uuid in any spelling, and released at its generation or at any
        PUT /allocations/ab000000-0000-4000-8000-0000000000$1 CLAIM host VCPU=2 MEMORY_MB=512
        204
        GET /berth/v1/consumers/AB0000000000400080000000000000$1
        200 {uuid: ab000000-0000-4000-8000-0000000000$1, generation: 1, allocations: _, ...}
        DELETE /berth/v1/consumers/ab000000-0000-4000-8000-0000000000$1?generation=7
        409 placement.concurrent_update expected 1 but got 7
        DELETE /berth/v1/consumers/ab000000-0000-4000-8000-0000000000$1$2
        204
        GET /allocations/ab000000-0000-4000-8000-0000000000$1
        200 {allocations: {}}
        DELETE /berth/v1/consumers/ab000000-0000-4000-8000-0000000000$1
        404 ab000000-0000-4000-8000-0000000000$1
        GET /berth/v1/consumers/ab000000-0000-4000-8000-0000000000$1
        404
        | 91 | ?generation=1
        | 92 | ?

    a consumer is claimed, shown and released by its name, which berth gives a uuid
        PUT /berth/v1/consumers/$web/job-17 {allocations: {$host.name: {resources: {VCPU: 2}}},
            user_id: alice, consumer_type: JOB}
        200 {uuid: $u, name: job-17, project_id: $web, generation: 1}
        GET /berth/v1/consumers/$1
        200 {uuid: $u, name: job-17, project_id: $web, user_id: alice, consumer_type: JOB,
            generation: 1, created_at: _, lease: null,
            allocations: {$host: {name: $host.name, resources: {VCPU: 2}}}}
        DELETE /berth/v1/consumers/$web/job-17?generation=2
        409 placement.concurrent_update expected 1 but got 2
        DELETE /berth/v1/consumers/$web/job-17?generation=1
        204
        GET /berth/v1/consumers/$web/job-17
        404 $web has no consumer named job-17
        DELETE /berth/v1/consumers/$web/job-17
        404 $web has no consumer named job-17
        | $web/job-17
        | $u

    a name that is taken is refused with who has it; it is free elsewhere, and when it is given back
        PUT /berth/v1/consumers/$web/%C3%BC%201 {allocations: {$host: {resources: {VCPU: 1}}},
            user_id: u, consumer_type: T}
        200 {uuid: $u, ...}
        PUT /berth/v1/consumers/$web/%C3%BC%201 {allocations: {$host: {resources: {VCPU: 1}}},
            user_id: u, consumer_type: T}
        409 berth.consumer.name_taken ü 1 ... $u
        PUT /berth/v1/consumers/$db/%C3%BC%201 {allocations: {$host: {resources: {VCPU: 1}}},
            user_id: u, consumer_type: T}
        200
        DELETE /allocations/$u
        204
        PUT /berth/v1/consumers/$web/%C3%BC%201 {allocations: {$host: {resources: {VCPU: 1}}},
            user_id: u, consumer_type: T}
        200

    what a named consumer has is replaced at its generation, with a candidate as it came
        POST /berth/v1/candidates {request: {groups: {"": {resources: {VCPU: 3}}},
            host: {in: [$host]}}}
        200 {candidates: [{host: $host, allocations: $given, mappings: $mappings}], ...}
        PUT /berth/v1/consumers/$web/job {allocations: $given, mappings: $mappings, user_id: u,
            consumer_type: T, uuid: $u}
        200 {uuid: $u, generation: 1, ...}
        PUT /berth/v1/consumers/$web/job {allocations: {$host: {resources: {VCPU: 5}}},
            user_id: u, consumer_type: T, generation: 1}
        200 {uuid: $u, generation: 2, ...}
        GET /allocations/$u
        200 {allocations: {$host: {resources: {VCPU: 5}, generation: _}}, ...}
        PUT /berth/v1/consumers/$web/$1 {allocations: {$host: {resources: {VCPU: 6}}},
            user_id: u, consumer_type: T, generation: 1}
        $2
        | job   | 409 placement.concurrent_update expected 2 but got 1
        | other | 404 no consumer named other

    a consumer of another project cannot be taken over, even with its uuid and generation
        PUT /berth/v1/consumers/$theirs/db {allocations: {$host: {resources: {VCPU: 2}}},
            user_id: u, consumer_type: T}
        200 {uuid: $u, ...}
        PUT /berth/v1/consumers/$ours/db {allocations: {$host: {resources: {VCPU: 1}}},
            user_id: u, consumer_type: T, uuid: $u, generation: $1}
        409 Consumer $u is not of project $ours.
        | 1
        | null

    a name may have 255 characters of any kind
        PUT /berth/v1/consumers/$p/%F0%9F%98%80$1 {allocations: {$host: {resources: {VCPU: 1}}},
            user_id: u, consumer_type: T}
        200
        | x*254

    json lines are acceptable as JSON
        > Accept: $1
        GET /berth/v1/consumers?host=$host
        200
        | application/json
        | application/jsonl
        | "*/*"
        | application/*

    readers see and services change what is of their project; others look like what does not exist
        PUT /berth/v1/consumers/$web/job {allocations: {$host: {resources: {VCPU: 1}}},
            user_id: u, consumer_type: T}
        200 {uuid: $mine, ...}
        PUT /berth/v1/consumers/$db/job {allocations: {$host: {resources: {VCPU: 1}}},
            user_id: u, consumer_type: T}
        200 {uuid: $theirs, ...}
        >> X-Auth-Token: alice:$web
        >> X-Roles: $1
        GET /berth/v1/consumers?host=$host
        $2
        GET /berth/v1/consumers?project_id=$web
        $3
        GET /berth/v1/consumers/$mine
        $3
        GET /berth/v1/consumers/$web/job
        $3
        GET /berth/v1/consumers?project_id=$db
        $2
        GET /berth/v1/consumers/$theirs
        $2
        GET /berth/v1/consumers/$db/job
        $2
        GET /berth/v1/consumers/$nowhere
        $4
        GET /berth/v1/consumers/$db/none
        $4
        DELETE /berth/v1/consumers/$nowhere
        $6
        PUT /berth/v1/consumers/$web/new {allocations: {$host: {resources: {VCPU: 1}}},
            user_id: u, consumer_type: T}
        $7
        DELETE /berth/v1/consumers/$mine
        $5
        DELETE /berth/v1/consumers/$db/job
        $5
        | admin   | 200 | 200 | 404 | 204 | 404 | 200
        | service | 200 | 200 | 404 | 204 | 404 | 200
        | auditor | 200 | 200 | 404 | 403 | 403 | 403
        | reader  | 403 | 200 | 403 | 403 | 403 | 403
        | member  | 403 | 403 | 403 | 403 | 403 | 403

    a reader without a project sees nothing: no project is not that of consumers that do not exist
        > X-Auth-Token: alice
        > X-Roles: reader
        GET /berth/v1/consumers$1
        403
        |
        | ?project_id=None
        | ?project_id=%FF
        | /$nowhere
    """,
    world=WORLD,
)
def test_consumers(rule: Rule, wire: Client) -> None:
    """The rows of the table."""
    rule.check(wire)


#: Consumer -> the providers that it uses.
Uses = dict[str, set[str]]


@seed(SEED)
@settings(max_examples=scaled(5), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(dice=st.integers(0, 2**32).map(Random))
def test_a_consumer_is_listed_if_each_filter_by_itself_admits_it(
    wire: Client, dice: Random
) -> None:
    """As a plain loop over all allocations says. `host` asks for something of a tree and `provider`
    for something of one provider, which may be in another tree: a consumer that uses both is
    listed. They stand in the order of their uuids."""
    note(repeat_with())
    trees: dict[str, set[str]] = {}
    for host in [provider(wire, {"VCPU": 64}) for _ in range(2)]:
        children = [provider(wire, {"VCPU": 64}, parent=host) for _ in range(dice.randint(0, 2))]
        trees[host] = {host, *children}
    everything = sorted(set().union(*trees.values()))
    projects = [new_name("project") for _ in range(2)]
    uses: Uses = {}
    of_project: dict[str, str] = {}
    for _ in range(6):
        used = dice.sample(everything, dice.randint(1, min(3, len(everything))))
        project = dice.choice(projects)
        uuid = consumer(wire, {each: {"VCPU": 1} for each in used}, project=project)
        uses[uuid], of_project[uuid] = {*used}, project
    for _ in range(12):
        filters = {
            **({"host": dice.choice(everything)} if dice.random() < 0.7 else {}),
            **({"provider": dice.choice(everything)} if dice.random() < 0.7 else {}),
            "project_id": dice.choice(projects),
        }
        note(str(filters))
        tree = next((t for t in trees.values() if filters.get("host") in t), set(everything))
        due = {
            uuid
            for uuid, used in uses.items()
            if used & tree
            and filters.get("provider") in {None, *used}
            and of_project[uuid] == filters["project_id"]
        }
        lines = wire.get(f"/berth/v1/consumers?{urlencode(filters)}").text.splitlines()
        assert [each["uuid"] for each in map(json.loads, lines[:-1])] == sorted(due)
