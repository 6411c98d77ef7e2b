# SPDX-License-Identifier: Apache-2.0
"""`/berth/v1/flavors`: requests with a name (spec/beyond.md 4.5); what is refused:
test_refused.py, and what questions make of them: test_asking_by_flavor.py.
"""

from __future__ import annotations

from berth.config import Settings
from berth.edge.app import create_app
from berth.index import Index
from berth.store.engine.database import Database
from tests.api.wire import Rule, rules
from tests.api.worlds import done
from tests.client import Client

PATH = "/berth/v1/flavors"


@rules(
    """
    a flavor is created, shown as it was sent, and deleted
        GET /berth/v1/flavors/$f
        404 There is no flavor $f
        PUT /berth/v1/flavors/$f {request: {groups: {_CPU: {resources: {VCPU: 2, MEMORY_MB: 64},
            required: [HW_CPU_X86_AVX2]}, "": {resources: {DISK_GB: 8}}},
            host: {member_of: [["zone=z1", "zone=z2"], "!rack=r7"], not_in: [cn1]},
            together: [{groups: ["", _CPU], at: tree}]}}
        201 {revision: $r, name: $f, expose: true, description: "", request: {groups: {
            _CPU: {resources: {VCPU: 2, MEMORY_MB: 64}, required: [HW_CPU_X86_AVX2]},
            "": {resources: {DISK_GB: 8}}},
            host: {member_of: [["zone=z1", "zone=z2"], "!rack=r7"], not_in: [cn1]},
            together: [{groups: ["", _CPU], at: tree}]}}
        < Location: ...berth/v1/flavors/$f
        GET /berth/v1/flavors/$f
        200 {revision: $r, name: $f, expose: true, description: "", request: {groups: _, ...}}
        GET /berth/v1/flavors
        200 {revision: $r, flavors: [{name: $f, expose: true, description: "", request: _}, ...]}
        DELETE /berth/v1/flavors/$f
        204
        $1 /berth/v1/flavors/$f
        404 There is no flavor $f
        | GET
        | DELETE

    a flavor is replaced whole, and if it is the same already, nothing is written
        PUT /berth/v1/flavors/$f {request: {query: "resources=VCPU:1"}, expose: false,
            description: Big}
        201 {expose: false, description: Big, ...}
        PUT /berth/v1/flavors/$f {request: {query: "resources=VCPU:2"}}
        200 {revision: $r, name: $f, request: {query: "resources=VCPU:2"}, expose: true,
            description: ""}
        PUT /berth/v1/flavors/$f {request: {query: "resources=VCPU:2"}, expose: true}
        200 {revision: $r, ...}

    who insists on a new flavor replaces none
        > If-None-Match: *
        PUT /berth/v1/flavors/$f {request: {query: "resources=VCPU:1"}}
        201
        > If-None-Match: *
        PUT /berth/v1/flavors/$f {request: {query: "resources=VCPU:2"}}
        412 berth.precondition.failed There is a flavor $f already.
        > If-None-Match: "x"
        PUT /berth/v1/flavors/$f {request: {query: "resources=VCPU:2"}}
        200

    providers and aggregates need not exist
        PUT /berth/v1/flavors/$f {request: {groups: {"": {resources: {VCPU: 1}}}, host: {
            in: [nobody], member_of: [nowhere]}}}
        201

    a flavor outlives its trait, and cannot be stored like that again
        PUT /traits/$CUSTOM_X
        201
        PUT /berth/v1/flavors/$f {request: {query: "resources=VCPU:1&required=$CUSTOM_X"}}
        201
        DELETE /traits/$CUSTOM_X
        204
        GET /berth/v1/flavors/$f
        200 {request: {query: "resources=VCPU:1&required=$CUSTOM_X"}, ...}
        PUT /berth/v1/flavors/$f {request: {query: "resources=VCPU:1&required=$CUSTOM_X"}}
        400 berth.name.unknown {pointer: /request/query}

    auditors read flavors, and 403 comes before any other error
        PUT /berth/v1/flavors/$f {request: {query: "resources=VCPU:1"}}
        201
        >> X-Roles: $1
        GET /berth/v1/flavors
        $2
        GET /berth/v1/flavors/$f
        $2
        PUT /berth/v1/flavors/$f {request: {}}
        $3
        DELETE /berth/v1/flavors/$f
        $4
        | admin   | 200 | 400 | 204
        | service | 200 | 400 | 204
        | auditor | 200 | 403 berth:flavors:update | 403
        | reader  | 403 | 403 | 403
    """
)
def test_flavors(rule: Rule, wire: Client) -> None:
    """The rows of the table."""
    rule.check(wire)


def test_every_worker_sees_flavors_at_once(settings: Settings, database: Database) -> None:
    """By name, with the next request, whichever worker took the write; who has the newest list is
    told so until any write is committed. No old answer changes."""
    one, other = (Client.of(create_app(settings, database, Index(database))) for _ in range(2))
    old = one.get("/allocation_candidates?resources=VCPU:1").body
    for name in ("b", "C", "a.1", "_"):
        body = {"request": {"query": "resources=VCPU:1"}}
        revision = done(one.put(f"{PATH}/{name}", json=body), 201).json["revision"]
        shown = done(other.get(f"{PATH}/{name}"), 200)
        assert shown.json["revision"] == revision
    listed = other.get(PATH)
    assert [each["name"] for each in listed.json["flavors"]] == ["C", "_", "a.1", "b"]
    tag = {"If-None-Match": listed.headers["ETag"]}
    unchanged = one.get(PATH, headers=tag)
    assert (unchanged.status, unchanged.body) == (304, b"")
    done(other.delete(f"{PATH}/C"), 204)
    assert len(done(one.get(PATH, headers=tag), 200).json["flavors"]) == 3
    assert one.get("/allocation_candidates?resources=VCPU:1").body == old
