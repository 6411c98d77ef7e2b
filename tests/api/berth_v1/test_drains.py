# SPDX-License-Identifier: Apache-2.0
"""`/berth/v1/drains`, and what drains change of other answers (spec/beyond.md 7.1); what is
refused: test_refused.py.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from berth.config import Settings
from berth.edge.app import create_app
from berth.index import Index
from berth.store import named as store
from tests.api import configured
from tests.api.wire import Rule, rules
from tests.api.worlds import done, provider
from tests.candidates.engine import copy_of
from tests.client import Client
from tests.world_over_http import built_over_http
from tests.worlds import aggregate_uuid, world

PATH = "/berth/v1/drains"

#: cn2 uses the pool's disk, cn3 has its own.
FLEET = """
    cn1       MEMORY_MB=64  @rack  @all
      numa0   VCPU=4(used:3)
      numa1   VCPU=4(used:1)  HW_NUMA_ROOT
    cn2       MEMORY_MB=64(used:8)  VCPU=8  @rack  @shared  @all
    cn3       MEMORY_MB=64  VCPU=8  DISK_GB=10  @all
    pool      DISK_GB=100(used:1)  MISC_SHARES_VIA_AGGREGATE  @shared
"""


@rules(
    """
    a drain is created, shown with what is on it, replaced and deleted
        GET /berth/v1/drains/$d
        404
        PUT /berth/v1/drains/$d {providers: [$cn1.name, $cn3], reason: why}
        201 {name: $d, reason: why, effect: exclude, created_by: admin, created_at: $at, hosts: 2,
            providers: 4, consumers: 2, ...}
        < Location: ...berth/v1/drains/$d
        GET /berth/v1/drains/$d
        200 {revision: _, name: $d, reason: why, effect: exclude, created_by: admin,
            created_at: $at, hosts: 2, providers: 4, consumers: 2,
            named: [{uuid: $cn1, name: $cn1.name}, {uuid: $cn3, name: $cn3.name}],
            left: [{host: {uuid: $cn1, name: $cn1.name}, consumers: 2},
                {host: {uuid: $cn3, name: $cn3.name}, consumers: 0}]}
        GET /berth/v1/drains?host=$numa0
        200 {drains: [{name: $d, reason: why, effect: exclude, created_by: admin, created_at: $at,
            hosts: 2, providers: 4, named: [{uuid: $cn1, ...}]}], ...}
        PUT /berth/v1/drains/$d {providers: [$numa1], reason: "", effect: none}
        200 {reason: "", effect: none, created_at: $at, hosts: 1, providers: 1, consumers: 1, ...}
        DELETE /berth/v1/drains/$d
        204
        $1 /berth/v1/drains/$d
        404
        | GET
        | DELETE

    what is left out stays as it is, and a dry run says the same
        PUT /berth/v1/drains/$d {providers: [$numa1, $cn3], reason: on Friday, effect: none}
        201 {created_at: $at, ...}
        PUT /berth/v1/drains/$d?dry_run=true $1
        200 {reason: $3, effect: $4, created_at: $at, hosts: $5, ...}
        PUT /berth/v1/drains/$d $1
        200 {reason: $3, effect: $4, created_at: $at, hosts: $5, ...}
        GET /berth/v1/drains/$d
        200 {reason: $3, effect: $4, created_at: $at, named: $2, ...}
        | {effect: exclude}         | [{uuid: $cn3, name: _}, {uuid: $numa1, name: _}] |
            on Friday | exclude | 2
        | {reason: now}             | [{uuid: $cn3, name: _}, {uuid: $numa1, name: _}] |
            now | none | 2
        | {providers: [$cn2]}       | [{uuid: $cn2, name: _}] | on Friday | none | 1
        | {select: {in: [$cn1]}}    | [{uuid: $cn1, name: _}] | on Friday | none | 1
        | {providers: [$numa1, $cn3, $cn1], reason: ""}       |
            [{uuid: $cn1, name: _}, {uuid: $cn3, name: _}, {uuid: $numa1, name: _}] | "" | none | 2
        | {}                        | [{uuid: $cn3, name: _}, {uuid: $numa1, name: _}] |
            on Friday | none | 2

    who insists on a new drain replaces none, also of a dry run
        > If-None-Match: *
        PUT /berth/v1/drains/$d {providers: [$cn1]}
        201
        > If-None-Match: *
        PUT /berth/v1/drains/$d$1 {providers: [$cn3]}
        412 berth.precondition.failed There is a drain $d already.
        | ?
        | ?dry_run=true

    a consumer on several providers is one, of a host and of the whole drain
        PUT /allocations/$c CLAIM numa0 VCPU=1 cn1 MEMORY_MB=1 cn3 VCPU=1
        204
        PUT /berth/v1/drains/$d {providers: [$cn1, $cn3]}
        201 {consumers: 3, ...}
        GET /berth/v1/drains/$d
        200 {left: [{host: {uuid: $cn1, ...}, consumers: 3}, {host: {uuid: $cn3, ...},
            consumers: 1}], ...}

    hosts are selected once, drained ones too
        PUT /berth/v1/drains/$other {providers: [$cn2]}
        201
        PUT /berth/v1/drains/$d $1
        201 {hosts: $2, providers: $3, ...}
        | {select: {member_of: [$rack]}, providers: [$cn3]}    | 3 | 5
        | {select: {anywhere: [HW_NUMA_ROOT], in: [$cn1, $cn2]}} | 1 | 3
        | {select: {in: [$cn1], not_in: [$cn1]}}               | 0 | 0

    the old route leaves drained providers out, and nothing else changes
        PUT /berth/v1/drains/$d {providers: [$numa1, $cn3, $pool]}
        201
        GET /allocation_candidates?resources=VCPU:1,MEMORY_MB:8&member_of=$all
        200 {allocation_requests: [{allocations: {$numa0: _, $cn1: _}, mappings: _},
            {allocations: {$cn2: _}, mappings: _}],
            provider_summaries: {$cn1: _, $numa0: _, $numa1: _, $cn2: _}}
        POST /berth/v1/candidates {request: {groups: {"": {resources: {VCPU: 1, DISK_GB: 5}}},
            host: {in: [$cn1, $cn2, $cn3]}}}
        200 {candidates: [], ...}
        GET /resource_providers?resources=VCPU:1&in_tree=$numa1
        200 {resource_providers: [{uuid: $numa0, ...}, {uuid: $numa1, ...}]}
        DELETE /berth/v1/drains/$d
        204
        GET /allocation_candidates?resources=VCPU:1&in_tree=$numa1
        200 {allocation_requests: [_, _], ...}
        POST /berth/v1/candidates {request: {groups: {"": {resources: {VCPU: 1, DISK_GB: 5}}},
            host: {in: [$cn1, $cn2, $cn3]}}}
        200 {candidates: [{host: $cn2, allocations: {$cn2: _, $pool: _}, ...},
            {host: $cn3, ...}], ...}

    a claim that names a drained provider is accepted
        PUT /berth/v1/drains/$d {providers: [$numa1]}
        201 {consumers: 1, ...}
        PUT /allocations/$c CLAIM numa1 VCPU=1
        204
        GET /berth/v1/drains/$d
        200 {consumers: 2, ...}

    every question sees drains, unless it tolerates them
        PUT /berth/v1/drains/$a {providers: [$cn2]}
        201
        PUT /berth/v1/drains/$b {providers: [$numa0]}
        201
        POST /berth/v1/candidates {request: {groups: {"": {resources: {VCPU: 1, MEMORY_MB: 8}}},
            host: {in: [$cn1, $cn2, $cn3]}, tolerate: $1}, what_if: $2}
        200 {candidates: $3, ...}
        | []            | {}                                | [{host: $cn1, ...}, {host: $cn3, ...}]
        | [$a]          | {}            | [{host: $cn1, ...}, {host: $cn2, ...}, {host: $cn3, ...}]
        | [$b, $a]      | {}            | [{host: $cn1, ...}, {host: $cn1, ...}, {host: $cn2, ...},
            {host: $cn3, ...}]
        | "*"           | {}            | [{host: $cn1, ...}, {host: $cn1, ...}, {host: $cn2, ...},
            {host: $cn3, ...}]
        | []            | {undrain: [$a], drain: [$cn3]}    | [{host: $cn1, ...}, {host: $cn2, ...}]
        | [$a]          | {drain: [$cn3]}                   | [{host: $cn1, ...}, {host: $cn2, ...}]
        | "*"           | {drain: [$cn3]} | [{host: $cn1, ...}, {host: $cn1, ...},
            {host: $cn2, ...}, {host: $cn3, ...}]

    capacity is counted without what is drained, with and without a scenario
        PUT /berth/v1/drains/$a {providers: [$cn2]}
        201
        PUT /berth/v1/drains/$b {providers: [$numa0]}
        201
        POST /berth/v1/capacity {what_if: {undrain: [$a]}, requests: {
            cpu: {groups: {"": &v {resources: {VCPU: 1, MEMORY_MB: 8}}}, host: &h {in: [$cn1, $cn2,
                $cn3]}}, all: {groups: {"": *v}, host: *h, tolerate: "*"}}}
        200 {flavors: {cpu: {count: 18, now: {count: 11, ...}, ...},
            all: {count: 19, now: {count: 19, ...}, ...}}, ...}

    a drained device still has its traits
        PUT /berth/v1/drains/$a {providers: [$numa1]}
        201
        POST /berth/v1/candidates {request: {groups: {"": {resources: {VCPU: 1, MEMORY_MB: 8}}},
            host: {in: [$cn1, $cn2, $cn3], anywhere: [$1]}}}
        200 {candidates: $2, ...}
        | HW_NUMA_ROOT    | [{host: $cn1, ...}]
        | "!HW_NUMA_ROOT" | [{host: $cn2, ...}, {host: $cn3, ...}]

    a provider shows the drains in effect that name it itself; a host lists announced ones too
        PUT /berth/v1/drains/b-$d {providers: [$cn1, $cn3]}
        201
        PUT /berth/v1/drains/a-$d {providers: [$cn1]}
        201
        PUT /berth/v1/drains/later-$d {providers: [$numa1], effect: none}
        201
        PUT /berth/v1/drains/away-$d {providers: [$cn2]}
        201
        GET /berth/v1/trees/$numa0?include=drains
        200 {providers: [{uuid: $cn1, drains: [a-$d, b-$d], ...}, {uuid: $numa0, drains: [], ...},
            {uuid: $numa1, drains: [], ...}], ...}
        GET /berth/v1/drains?host=$1
        200 {drains: [{name: a-$d, named: [{uuid: $cn1, ...}], ...}, {name: later-$d, ...},
            {name: b-$d, named: [{uuid: $cn1, ...}], ...}], ...}
        GET /berth/v1/drains?host=nobody
        200 {drains: [], ...}
        GET /berth/v1/fleet?include=drains
        200 [{uuid: $cn1, drains: [a-$d, b-$d], ...}, {uuid: $cn3, drains: [b-$d], ...},
            {uuid: $numa1, drains: [], ...}, ...]
        | $cn1.name
        | $numa0
        | $numa1.name

    preserved flavors are counted without the drains that are tolerated
        PUT /berth/v1/flavors/$f {request: {groups: {"": {resources: {VCPU: 4, MEMORY_MB: 8}}},
            host: {in: [$cn2]}}}
        201
        PUT /berth/v1/drains/$a {providers: [$cn2]}
        201
        POST /berth/v1/candidates {request: {groups: {"": {resources: {VCPU: 1, MEMORY_MB: 8}}},
            host: {in: [$cn2]}, tolerate: [$a]}, order: {by: preserve, preserve: {$f: 1}}}
        200 {candidates: [{host: $cn2, score: {total: 0.5, ...}, ...}], ...}

    a place is not on a drained host, and alternatives tolerate drains each for itself
        PUT /berth/v1/drains/$d {providers: [$cn1, $cn2, $cn3]}
        201
        POST /berth/v1/place?dry_run=true {explain: false, request: {
            groups: {"": {resources: {VCPU: 1}}}, host: {in: [$cn1, $cn2, $cn3]}},
            consumers: [&c {name: n, project_id: p, user_id: u, consumer_type: T}]}
        409 berth.place.does_not_fit
        POST /berth/v1/place?dry_run=true {request: {alternatives: [
            {groups: &g {"": {resources: {VCPU: 1}}}, host: {in: [$cn1, $cn2, $cn3]}},
            {groups: *g, host: {in: [$cn3]}, tolerate: [$d]}]},
            consumers: [&c {name: n, project_id: p, user_id: u, consumer_type: T, uuid: $c}]}
        200 {placements: {$c: {host: $cn3, ...}}, alternative: 1, ...}

    what does not exist is warned of in questions
        POST /berth/v1/candidates {request: {groups: {"": {resources: {VCPU: 1}}}, tolerate: [none],
            host: {in: [$cn3]}}, what_if: {undrain: [gone], drain: [cn9]}}
        200 {warnings: [{code: unknown_drain, at: /what_if/undrain/0, reference: gone},
            {code: unknown_provider, at: /what_if/drain/0, reference: cn9},
            {code: unknown_drain, at: /request/tolerate/0, reference: none}], ...}

    a drain says what it costs, by exposed flavor: before the call, and with it in effect
        PUT /berth/v1/flavors/$f {request: {groups: {"": {resources: {VCPU: 1, MEMORY_MB: 8}}},
            host: {in: [$cn1, $cn2, $cn3]}}}
        201
        PUT /berth/v1/flavors/$hidden {request: {query: "resources=VCPU:1"}, expose: false}
        201
        PUT /berth/v1/drains/$d?dry_run=true {providers: [$cn3]}
        200 {capacity: {$f: {now: 19, then: 11}, ...}, created_at: null, hosts: 1, complete: true,
            ...}
        GET /berth/v1/drains/$d
        404
        PUT /berth/v1/drains/$d {providers: [$cn3], effect: none}
        201 {capacity: {$f: {now: 19, then: 11}, ...}, ...}
        PUT /berth/v1/drains/$d {effect: exclude}
        200 {capacity: {$f: {now: 19, then: 11}, ...}, ...}
        PUT /berth/v1/drains/$d {providers: [$cn3]}
        200 {capacity: {$f: {now: 11, then: 11}, ...}, ...}
        PUT /berth/v1/drains/$d?dry_run=true {providers: [$cn2]}
        200 {capacity: {$f: {now: 11, then: 12}, ...}, ...}
        DELETE /berth/v1/flavors/$f
        204
        DELETE /berth/v1/flavors/$hidden
        204

    an explanation says before anything else that drains are the reason
        PUT /berth/v1/drains/$d {providers: [$cn2, $cn3, $numa0]}
        201
        POST /berth/v1/explain {request: {groups: {"": {resources: {VCPU: $1}}},
            host: {in: [$cn1, $cn2, $cn3]}, tolerate: $2}}
        200 {verdict: $3, hosts: {fit_if_undrained: $4, ...}, stages: [{at: $5, ...}, ...], ...}
        | 5 | []   | drained | 2 | /drains
        | 5 | [$d] | fits    | 2 | /groups//resources/VCPU
        | 9 | []   | never   | 0 | /drains

    who has the newest list is told so, until any write is committed
        GET /berth/v1/drains
        200 {revision: $r, ...}
        > If-None-Match: "$r"
        GET /berth/v1/drains
        304
        PUT /berth/v1/drains/$d {providers: [$cn2]}
        201
        > If-None-Match: "$r"
        GET /berth/v1/drains
        200
    """,
    world=FLEET,
)
def test_drains(rule: Rule, wire: Client) -> None:
    """The rows of the table."""
    rule.check(wire)


def test_hosts_without_names_are_drained_too(settings: Settings, prepared: Path) -> None:
    """Old data has some; they come first."""
    with copy_of(prepared) as db:
        client = Client.of(create_app(settings, db, Index(db)))
        named, *others = (provider(client, {"VCPU": 8}) for _ in range(3))
        with db.engine.begin() as connection:
            nameless = "UPDATE resource_providers SET name = NULL WHERE uuid <> ?"
            connection.exec_driver_sql(nameless, (named,))
        client = Client.of(create_app(settings, db, Index(db)))
        done(client.put(f"{PATH}/d", json={"providers": [named, *others]}), 201)
        shown = done(client.get(f"{PATH}/d"), 200).json
    in_order = [*sorted(others), named]
    assert [each["uuid"] for each in shown["named"]] == in_order
    assert [each["host"]["uuid"] for each in shown["left"]] == in_order


def test_of_two_who_insist_on_a_new_drain_one_creates_it(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other one wrote between the look at the fleet and the write."""
    new: Any = {"headers": {"If-None-Match": "*"}}
    write = store.put_drain

    def outrun(*arguments: Any, **options: Any) -> Any:
        monkeypatch.undo()
        done(client.put(f"{PATH}/d", json={"providers": [], "select": {"in": ["cn1"]}}, **new), 201)
        return write(*arguments, **options)

    provider(client, name="cn1")
    provider(client, name="cn3")
    monkeypatch.setattr(store, "put_drain", outrun)
    refused = client.put(f"{PATH}/d", json={"providers": ["cn3"]}, **new)
    assert (refused.status, refused.code) == (412, "berth.precondition.failed")
    assert [each["name"] for each in client.get(f"{PATH}/d").json["named"]] == ["cn1"]


def test_a_selection_that_takes_too_long_drains_nothing(tmp_path: Path) -> None:
    """The hosts that were found until then are not all."""
    client = configured.serve(tmp_path, "[berth]\ncandidates_time_budget = 0.000001\n")
    with built_over_http(world(FLEET), client):
        body = {"select": {"member_of": [aggregate_uuid("rack")]}}
        refused = client.put(f"{PATH}/d", json=body)
        assert (refused.status, refused.code) == (503, "berth.search.gave_up")
        assert client.get(PATH).json["drains"] == []
