# SPDX-License-Identifier: Apache-2.0
"""`/berth/v1/aggregates`: labels, members and revisions; what is refused: test_refused.py.

Source: spec/beyond.md 7.2.
"""

from __future__ import annotations

import pytest

from berth.config import Settings
from berth.edge.app import create_app
from berth.index import Index
from berth.store.engine.database import Database
from tests.api.wire import Rule, rules
from tests.api.worlds import done, new_uuid, provider
from tests.client import Client

PATH = "/berth/v1/aggregates"


@rules(
    """
    an aggregate has labels before it has members, and keeps them when these go
        GET /berth/v1/aggregates/$new
        404
        PUT /berth/v1/aggregates/$new {labels: {name: $name, zone: z1}}
        200 {revision: _, uuid: $new, labels: {name: $name, zone: z1}, members: 0}
        PUT $host/aggregates {aggregates: [$new], seen: $host}
        200
        PUT $host/aggregates {aggregates: [], seen: $host}
        200
        GET /berth/v1/aggregates?label=name=$name
        200 {aggregates: [{uuid: $new, labels: {name: $name, zone: z1}, members: 0}], ...}

    each provider that is in the aggregate itself is a member, however it spells the uuid
        GET /berth/v1/aggregates/$A
        200 {members: 2, uuid: $A, ...}
        GET /berth/v1/aggregates/$B
        200 {members: 1, ...}
        PUT $other/aggregates {aggregates: [AB000000-0000-4000-8000-000000000000], seen: $other}
        200
        GET /berth/v1/aggregates
        200 {aggregates: [{uuid: $A, labels: {}, members: 2}, {uuid: $B, labels: {}, members: 1},
            {uuid: ab000000-0000-4000-8000-000000000000, labels: {}, members: 1}, ...], ...}
        PUT $other/aggregates {aggregates: [], seen: $other}
        200

    labels are replaced whole; without labels and members there is no aggregate
        PUT /berth/v1/aggregates/$new {labels: {zone: z1, rack: $rack}}
        200
        PUT /berth/v1/aggregates/$new {labels: {rack: $rack}}
        200 {labels: {rack: $rack}, ...}
        PUT /berth/v1/aggregates/$new {labels: {}}
        200 {labels: {}, ...}
        GET /berth/v1/aggregates/$new
        404
        GET /berth/v1/aggregates?label=rack=$rack
        200 {aggregates: [], ...}

    aggregates are found by all of several labels
        PUT /berth/v1/aggregates/$A {labels: {zone: $zone, rack: $rack}}
        200
        PUT /berth/v1/aggregates/$B {labels: {zone: $zone}}
        200
        PUT /berth/v1/aggregates/$new {labels: {rack: $rack}}
        200
        GET /berth/v1/aggregates?label=zone=$zone
        200 {aggregates: [{uuid: $A, ...}, {uuid: $B, ...}], ...}
        GET /berth/v1/aggregates?label=zone=$zone&label=rack=$rack
        200 {aggregates: [{uuid: $A, ...}], ...}
        GET /berth/v1/aggregates?label=zone=$rack
        200 {aggregates: [], ...}

    a name belongs to one aggregate, and the error says to which
        PUT /berth/v1/aggregates/$A {labels: {name: $name}}
        200
        PUT /berth/v1/aggregates/$A {labels: {name: $name, zone: z1}}
        200
        PUT /berth/v1/aggregates/$new {labels: {name: $name}}
        409 berth.label.taken $name ... $A

    any spelling of a uuid is the aggregate
        PUT /berth/v1/aggregates/AB000000000040008000000000000001 {labels: {zone: z1}}
        200 {uuid: ab000000-0000-4000-8000-000000000001, ...}
        GET /berth/v1/aggregates/AB000000-0000-4000-8000-000000000001
        200 {uuid: ab000000-0000-4000-8000-000000000001, ...}

    values are kept as they are, up to 32 with long keys
        PUT /berth/v1/aggregates/$new {labels: {a.b_c-9: $1}}
        200 {labels: {a.b_c-9: $1}, ...}
        | x
        | "ü\U0001f600 "
        | x*255
        | "a/b&c;d"
        | "!x"
        | '"'

    the body is JSON
        > Content-Type: text/plain
        PUT /berth/v1/aggregates/$new {labels: {}}
        415
        > Content-Type: application/json
        PUT /berth/v1/aggregates/$new b'{'
        400

    auditors read labels, and do not write them
        >> X-Roles: $1
        GET /berth/v1/aggregates
        $2
        GET /berth/v1/aggregates/$A
        $2
        PUT /berth/v1/aggregates/$A {labels: {zone: z2}}
        $3
        | admin   | 200 | 200
        | service | 200 | 200
        | auditor | 200 | 403 berth:aggregates:update
        | reader  | 403 | 403
        | member  | 403 | 403
    """,
    world="""
        host     VCPU=8  @A @B
          child          @A
        other
    """,
)
def test_aggregates(rule: Rule, wire: Client) -> None:
    """The rows of the table."""
    rule.check(wire)


def test_every_worker_sees_labels_at_once(
    settings: Settings, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the next request, whichever worker took the write. Who has the newest answer is told
    so, with no body and the same tag, until any write is committed; nothing is counted for that."""
    one, other = (Client.of(create_app(settings, database, Index(database))) for _ in range(2))
    uuid, *others = sorted(new_uuid() for _ in range(3))
    for each in reversed(others):
        done(one.put(f"{PATH}/{each}", json={"labels": {"rack": "r7"}}), 200)
    for zone in ("z1", "z2"):
        labelled = done(one.put(f"{PATH}/{uuid}", json={"labels": {"zone": zone}}), 200)
        shown = done(other.get(PATH), 200)
        assert shown.json["aggregates"][0]["labels"] == {"zone": zone}
        assert shown.json["revision"] == labelled.json["revision"]
    assert other.get(f"{PATH}?label=zone=z1").json["aggregates"] == []
    assert [each["uuid"] for each in shown.json["aggregates"]] == [uuid, *others]
    tag = shown.headers["ETag"]
    assert tag == f'"{shown.json["revision"]}"'
    with monkeypatch.context() as patched:
        patched.setattr("berth.api.berth_v1.aggregates.count_all_members", None)
        for sent in (tag, f"W/{tag}", f'"other", {tag}', "*"):
            again = one.get(PATH, headers={"If-None-Match": sent})
            assert (again.status, again.body, again.headers["ETag"]) == (304, b"", tag)
            assert again.headers["Berth-API"] == "1.0"
    for sent in ('"other"', tag.strip('"'), ""):
        assert one.get(PATH, headers={"If-None-Match": sent}).status == 200
    provider(one, aggregates=[uuid])
    changed = other.get(PATH, headers={"If-None-Match": tag})
    assert changed.status == 200 and changed.headers["ETag"] != tag
    assert changed.json["aggregates"][0]["members"] == 1
