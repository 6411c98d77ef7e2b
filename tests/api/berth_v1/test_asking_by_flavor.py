# SPDX-License-Identifier: Apache-2.0
"""Questions that name a flavor, over HTTP (spec/beyond.md 2.2 and 4.5)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from berth.config import Settings
from berth.edge.app import create_app
from berth.index import Index
from berth.model.named import Flavor, FlavorName
from berth.store.engine.database import Database
from berth.store.named import put_flavor
from tests.api.wire import Rule, rules
from tests.client import Client
from tests.worlds import world

FLEET: Final = world("""
    cn1     VCPU=8  DISK_GB=9  CUSTOM_FAST
    cn2     VCPU=8  CUSTOM_FAST
      gpu2  VGPU=1
    cn3     VCPU=2
      gpu3  VGPU=1
    cn4     VCPU=8(used:6)  CUSTOM_FAST
      gpu4  VGPU=1
""")


@rules(
    """
    a flavor stands for its request
        PUT /berth/v1/flavors/$f {request: {
            groups: {"": {resources: {VCPU: 2}}, _GPU: {resources: {VGPU: 1}}},
            apart: [{groups: ["", _GPU], at: provider}], host: {required: [CUSTOM_FAST]}}}
        201
        POST /berth/v1/candidates {request: {groups: {"": {resources: {VCPU: 2}},
            _GPU: {resources: {VGPU: 1}}}, apart: [{groups: ["", _GPU], at: provider}],
            host: {required: [CUSTOM_FAST]}}}
        200 {candidates: $found, ...}
        POST /berth/v1/candidates {request: {flavor: $f}}
        200 {candidates: [{host: $cn2, ...}, {host: $cn4, ...}], warnings: [], ...}
        POST /berth/v1/candidates {request: {flavor: $f}}
        200 {candidates: $found, ...}
        POST /berth/v1/explain {request: {groups: {"": {resources: {VCPU: 2}},
            _GPU: {resources: {VGPU: 1}}}, apart: [{groups: ["", _GPU], at: provider}],
            host: {required: [CUSTOM_FAST]}}}
        200 {revision: _, complete: true, verdict: $v, summary: $s, hosts: $h, stages: $t,
            unknown: [], warnings: [], binding: $b, request: $r}
        POST /berth/v1/explain {request: {flavor: $f}}
        200 {revision: _, complete: true, verdict: $v, summary: $s, hosts: $h, stages: $t,
            unknown: [], warnings: [], binding: $b, request: $r}

    both hosts must hold: what one of them excludes is no candidate
        PUT /berth/v1/flavors/$f {request: {
            groups: {"": {resources: {VCPU: 2}}, _GPU: {resources: {VGPU: 1}}},
            host: {not_in: [cn2], anywhere: ["!MISC_SHARES_VIA_AGGREGATE"]}}}
        201
        POST /berth/v1/candidates {request: {flavor: $f, host: $1}, per_host: 1}
        200 {candidates: $2, ...}
        | {}                          | [{host: $cn3, ...}, {host: $cn4, ...}]
        | {not_in: [cn4]}             | [{host: $cn3, ...}]
        | {required: [CUSTOM_FAST]}   | [{host: $cn4, ...}]
        | {in: [cn1, cn2]}            | []

    a host is in both lists by any provider of its tree
        PUT /berth/v1/flavors/$f {request: {
            groups: {"": {resources: {VCPU: 2}}, _GPU: {resources: {VGPU: 1}}},
            host: {in: [gpu2, gpu3, nobody]}}}
        201
        POST /berth/v1/candidates {request: {flavor: $f, host: {in: [cn2, $cn4]}}}
        200 {candidates: [{host: $cn2, ...}], ...}
        POST /berth/v1/explain {request: {flavor: $f, host: {in: [cn2, $cn4]}}}
        200 {request: {host: {in: [[gpu2, gpu3, nobody], [cn2, $cn4]]}, ...}, stages: [
            {at: /host/in/0, left: 2, ...}, {at: /host/in/1, left: 1, ...}, ...], warnings: [
            {code: unknown_provider, at: /host/in/0/2, reference: nobody}], ...}

    explain shows the expanded request, which can be sent
        PUT /berth/v1/flavors/$f {request: {
            groups: {"": {resources: {VCPU: 2}}, _GPU: {resources: {VGPU: 1}}},
            apart: [{groups: ["", _GPU], at: provider}], host: {required: [CUSTOM_FAST],
                in: [cn2, cn3], not_in: [cn3], member_of: ["zone=z1"]}}}
        201
        POST /berth/v1/explain {request: {flavor: $f, host: {
            required: [CUSTOM_FAST, "!COMPUTE_NODE"], in: [cn1, cn3], not_in: [cn4]}}}
        200 {request: {groups: {"": {resources: {VCPU: 2}}, _GPU: {resources: {VGPU: 1}}},
            apart: [{groups: ["", _GPU], at: provider}], host: {
                required: [CUSTOM_FAST, "!COMPUTE_NODE"], member_of: ["zone=z1"],
                in: [[cn2, cn3], [cn1, cn3]], not_in: [cn3, cn4]}}, summary: $s, stages: $t, ...}
        POST /berth/v1/explain {request: {groups: {"": {resources: {VCPU: 2}},
            _GPU: {resources: {VGPU: 1}}}, apart: [{groups: ["", _GPU], at: provider}], host: {
                required: [CUSTOM_FAST, "!COMPUTE_NODE"], member_of: ["zone=z1"],
                in: [[cn2, cn3], [cn1, cn3]], not_in: [cn3, cn4]}}}
        200 {summary: $s, stages: $t, ...}

    alternatives may be flavors, each by itself
        PUT /berth/v1/flavors/$big {request: {query: "resources=VCPU:9"}}
        201
        PUT /berth/v1/flavors/$small {request: {query: "resources=VCPU:8"}}
        201
        POST /berth/v1/candidates {request: {alternatives: [{flavor: $big},
            {flavor: $small, host: {not_in: [cn1]}}]}}
        200 {alternative: 1, candidates: [{host: $cn2, ...}], ...}
        POST /berth/v1/$1 {request: {alternatives: [{flavor: $big}, {flavor: $none}]}}
        400 berth.name.unknown {pointer: /request/alternatives/1/flavor, did_you_mean: []}
        | candidates
        | explain

    an order names the groups of a flavor, and no others
        PUT /berth/v1/flavors/$f {request: {
            groups: {"": {resources: {VCPU: 2}}, _GPU: {resources: {VGPU: 1}}}}}
        201
        POST /berth/v1/candidates {request: {flavor: $f}, per_host: 1,
            order: {prefer: [{weight: 1, of: $1, required: []}]}}
        $2
        | _GPU | 200 {candidates: [_, _, _], ...}
        | _NIC | 400 {pointer: /order/prefer/0/of}

    a question sees the newest flavor, although berth keeps decoded questions and flavors
        PUT /berth/v1/flavors/$f {request: {query: "resources=VCPU:8"}}
        201
        POST /berth/v1/candidates {request: {flavor: $f}}
        200 {candidates: [{host: $cn1, ...}, {host: $cn2, ...}], ...}
        PUT /berth/v1/flavors/$f {request: {query: "resources=DISK_GB:9"}}
        200
        POST /berth/v1/candidates {request: {flavor: $f}}
        200 {candidates: [{host: $cn1, ...}], ...}
        DELETE /berth/v1/flavors/$f
        204
        POST /berth/v1/candidates {request: {flavor: $f}}
        400 berth.name.unknown

    an unknown flavor is refused with its place and similar names
        PUT /berth/v1/flavors/gpu.a100.$f {request: {query: "resources=VCPU:8"}}
        201
        POST /berth/v1/$1 {request: {flavor: gpu.a10.$f}}
        400 berth.name.unknown {pointer: /request/flavor, did_you_mean: [gpu.a100.$f]}
            There is no flavor gpu.a10.$f.  Did you mean gpu.a100.$f?
        | candidates
        | explain

    a flavor whose trait was deleted asks for an unknown name
        PUT /traits/$CUSTOM_X
        201
        PUT /berth/v1/flavors/$f {request: {groups: {"": {resources: {VCPU: 1},
            required: [$CUSTOM_X]}}}}
        201
        DELETE /traits/$CUSTOM_X
        204
        POST /berth/v1/candidates {request: {flavor: $f}}
        400 berth.name.unknown {pointer: /request/flavor} There is no trait $CUSTOM_X, which flavor
            $f names.
        POST /berth/v1/explain {request: {flavor: $f}}
        200 {verdict: unknown_name, unknown: [{at: /groups//required/0, name: $CUSTOM_X, ...}], ...}
        POST /berth/v1/candidates {request: {flavor: $f, host: {required: [$CUSTOM_Y]}}}
        400 berth.name.unknown {pointer: /request/host/required/0} There is no trait $CUSTOM_Y.

    warnings point to what was sent or to the flavor, and those of explain into the whole request
        PUT /berth/v1/flavors/$f {request: {groups: {"": {resources: {VCPU: 2}}},
            host: {not_in: [cn8], member_of: ["zone=z8"]}}}
        201
        POST /berth/v1/$1 {request: {flavor: $f, host: {not_in: [cn1, cn9]}}}
        200 {warnings: [{at: $2, reference: cn9, ...}, {at: $3, reference: cn8, ...},
            {at: $4, reference: "zone=z8", ...}], ...}
        | candidates | /request/host/not_in/1 | /request/flavor | /request/flavor
        | explain    | /host/not_in/2         | /host/not_in/0  | /host/member_of/0

    a contradiction is refused as in one request
        PUT /berth/v1/flavors/$f {request: {groups: {"": {resources: {VCPU: 2}}},
            host: {$1: ["$2CUSTOM_FAST"]}}}
        201
        POST /berth/v1/candidates {request: {flavor: $f,
            host: {$1: [COMPUTE_NODE, "$3CUSTOM_FAST"]}}}
        400 {pointer: /request/host/$1} contradicts flavor $f: CUSTOM_FAST would be
        POST /berth/v1/explain {request: {flavor: $f,
            host: {$1: [COMPUTE_NODE, "$3CUSTOM_FAST"]}}}
        400 {pointer: /request/host/$1} contradicts flavor $f: CUSTOM_FAST would be
        | required |   | !
        | required | ! |
        | anywhere |   | !
        | anywhere | ! |

    a flavor may be a query, read as one, beside conditions on the host
        PUT /berth/v1/flavors/$f {request: {
            query: "resources=VCPU:2&resources1=VGPU:1&group_policy=isolate&limit=1"}}
        201
        POST /berth/v1/candidates {request: {flavor: $f$1}}
        200 {candidates: $2, warnings: [{code: limit_ignored, at: /request/flavor}], ...}
        |                            | [{host: $cn2, ...}, {host: $cn3, ...}, {host: $cn4, ...}]
        | , host: {not_in: [gpu2], required: [CUSTOM_FAST]}         | [{host: $cn4, ...}]
    """
)
def test_questions_by_flavor(rule: Rule, fleet: Client, names: Mapping[str, str]) -> None:
    """The rows of the table."""
    rule.check(fleet, names)


def test_a_flavor_that_this_release_cannot_read_is_named(
    settings: Settings, database: Database
) -> None:
    """A newer release may have stored it; every other one works."""
    client = Client.of(create_app(settings, database, Index(database)))
    path = "/berth/v1/candidates"
    unread: dict[str, Any] = {"new": {"groups": {"": {"wishes": {}}}}, "broken": {}}
    put_flavor(database, FlavorName("new"), Flavor('{"groups": {"": {"wishes": {}}}}'))
    put_flavor(database, FlavorName("broken"), Flavor("{"))
    old = {"request": {"query": "resources=VCPU:1"}}
    assert client.put("/berth/v1/flavors/old", json=old).status == 201
    for name, request in unread.items():
        refused = client.post(path, json={"request": {"flavor": name}})
        assert (refused.status, refused.code) == (400, "berth.request.invalid")
        assert refused.error["pointer"] == "/request/flavor"
        assert f"names the flavor {name}, which this release cannot read" in refused.detail
        assert client.get(f"/berth/v1/flavors/{name}").json["request"] == request
    assert client.post(path, json={"request": {"flavor": "old"}}).json["candidates"] == []
    listed = client.get("/berth/v1/flavors").json["flavors"]
    assert {each["name"]: each["request"] for each in listed}.items() >= unread.items()
