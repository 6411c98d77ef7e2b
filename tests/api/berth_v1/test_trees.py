# SPDX-License-Identifier: Apache-2.0
"""`/berth/v1/trees`: whole trees of providers, read and written (spec/beyond.md 6.3); what is
refused: test_refused.py.
"""

from __future__ import annotations

from urllib.parse import quote

from tests.api.wire import Rule, rules
from tests.api.worlds import done, new_name
from tests.client import Client

PATH = "/berth/v1/trees"


@rules(
    """
    a tree is created in one call, with the generations that separate requests would give
        PUT /berth/v1/trees/n$t {providers: [
            {name: n$t, inventories: {DISK_GB: {total: 100}}, traits: [HW_CPU_X86_AVX2],
                aggregates: [$A]},
            {name: n$t-0, parent: n$t, inventories: {VCPU: {total: 32, allocation_ratio: 4.0}},
                traits: [HW_NUMA_ROOT]},
            {name: n$t-1, parent: n$t}]}
        201 {changes: [{change: create, name: n$t, ...}, {change: create, name: n$t-0, ...},
            {change: create, name: n$t-1, ...}], etag: $tag, providers: [
            {name: n$t, uuid: $root, parent: null, root: $root, ...}, _, _], ...}
        < Location: ...berth/v1/trees/$root
        < ETag: $tag
        GET /berth/v1/trees/n$t-0?include=generation,inventories,traits,aggregates,drains
        200 {etag: $tag, providers: [
            {name: n$t, uuid: $root, parent: null, root: $root, generation: 3, drains: [],
                traits: [HW_CPU_X86_AVX2], aggregates: [$A], inventories: {DISK_GB: _}},
            {name: n$t-0, uuid: $numa, parent: $root, root: $root, generation: 2, aggregates: [],
                traits: [HW_NUMA_ROOT], drains: [], inventories: {VCPU: {total: 32,
                allocation_ratio: 4.0, reserved: 0, min_unit: 1, max_unit: 2147483647,
                step_size: 1}}},
            {name: n$t-1, uuid: _, parent: $root, root: $root, generation: 0, ...}], ...}
        GET /resource_providers/$numa
        200 {generation: 2, ...}

    what is shown can be sent back and changes nothing, also with aggregates in another spelling
        PUT $node/aggregates {aggregates: [AB000000000040008000000000000001], seen: $node}
        200
        GET /berth/v1/trees/$node?include=generation,inventories,traits,aggregates
        200 {revision: $r, etag: $tag, providers: $lines, ...}
        PUT /berth/v1/trees/$node {providers: $lines}
        200 {revision: $r, changes: [], ...}
        > If-Match: $tag
        PUT /berth/v1/trees/$node {providers: [{name: $node.name,
            aggregates: [ab000000-0000-4000-8000-000000000001]}]}
        200 {revision: $r, changes: [], ...}

    claims change the tag of a tree only where generations or usages are shown; edits change it
        GET /berth/v1/trees/$node
        200 {etag: $tag, ...}
        GET /berth/v1/trees/$node?include=usages
        200 {etag: $tag, totals: {
            VCPU: {capacity: 256, used: 100, free: 156, largest_free: 128},
            DISK_GB: {capacity: 100, used: 0, free: 100, largest_free: 100}}, ...}
        GET /berth/v1/trees/$node?include=generation,inventories
        200 {revision: $r, etag: $tag, ...}
        PUT /allocations/$c CLAIM numa0 VCPU=1
        204
        > If-None-Match: $tag
        GET /berth/v1/trees/$node
        304
        GET /berth/v1/trees/$node?include=usages
        200 {etag: $tag, totals: {VCPU: {used: 101, ...}, DISK_GB: _}, providers: [
            {name: $numa0.name, usages: {VCPU: 101}, ...}, ...], ...}
        > If-None-Match: $tag
        GET /berth/v1/trees/$node?include=generation,inventories
        200
        > If-Match: "x", $tag
        PUT /berth/v1/trees/$node {providers: [{name: $numa1.name, traits: []}]}
        200 {etag: $edited, ...}
        > If-Match: $tag
        PUT /berth/v1/trees/$node {providers: [{name: $node.name, traits: []}]}
        412 berth.precondition.failed
        > If-Match: W/$edited
        PUT /berth/v1/trees/$node {providers: [{name: $numa1.name, traits: []}]}
        412 berth.precondition.failed
        > If-Match: *
        PUT /berth/v1/trees/$node {providers: [{name: $numa1.name, traits: []}]}
        200
        > If-None-Match: $tag
        GET /berth/v1/trees/$node
        200
        GET $numa0/usages
        200 {usages: {VCPU: 101}, seen: _}

    what is used beyond a capacity is not taken off what others have free
        PUT $numa0/inventories {inventories: {VCPU: {total: 64}}, seen: $numa0}
        200
        GET /berth/v1/trees/$node?include=usages
        200 {totals: {VCPU: {capacity: 192, used: 100, free: 128, largest_free: 128}, ...}, ...}

    only what is given changes: a part that is left out stays, and so does another provider
        PUT /berth/v1/trees/$numa1 {providers: [{uuid: $numa1, inventories: {PCPU: {total: 8}}}]}
        200 {changes: [{change: update, uuid: $numa1, name: _, before: {inventories: {VCPU: _}},
            after: {inventories: {PCPU: _}}}], ...}
        GET /berth/v1/trees/$node?include=generation,inventories,traits
        200 {providers: [
            {uuid: $node, generation: 2, inventories: {DISK_GB: _}, traits: [HW_CPU_X86_AVX2], ...},
            {uuid: $spare, ...},
            {uuid: $numa0, inventories: {VCPU: _}, traits: [HW_NUMA_ROOT], ...},
            {uuid: $numa1, generation: 3, inventories: {PCPU: {total: 8, reserved: 0, min_unit: 1,
                max_unit: 2147483647, step_size: 1, allocation_ratio: 1.0}},
                traits: [HW_NUMA_ROOT], ...}], ...}

    providers move, are renamed and removed at once, also if two exchange their names
        PUT /berth/v1/trees/$node {providers: [{name: gpu-$node, parent: $numa0, uuid: $gpu}]}
        200
        PUT /berth/v1/trees/$node {providers: [{uuid: $spare, name: $numa1.name},
            {uuid: $numa1, name: $spare.name}, {uuid: $gpu, parent: $spare.name}]}
        200
        GET /berth/v1/trees/$node
        200 {providers: [{uuid: $node, ...}, {uuid: $numa0, ...},
            {uuid: $numa1, name: $spare.name, ...}, {uuid: $spare, name: $numa1.name, ...},
            {uuid: $gpu, parent: $numa1, ...}], ...}
        PUT /berth/v1/trees/$node {providers: [{uuid: $node}, {uuid: $numa0},
            {name: gpu-$node, uuid: $heir, parent: $node}], remove_missing: true}
        200
        GET /berth/v1/trees/$node
        200 {providers: [{uuid: $node, ...}, {uuid: $numa0, ...},
            {uuid: $heir, name: gpu-$node, ...}], ...}
        GET /resource_providers/$gpu
        404

    a provider whose parent would go must move
        PUT /berth/v1/trees/$node {providers: [{name: gpu-$node, parent: $numa1, uuid: $gpu}]}
        200
        PUT /berth/v1/trees/$node {providers: [{uuid: $node}, {uuid: $numa0}, {uuid: $gpu}],
            remove_missing: true}
        400 {pointer: /providers/2}
        PUT /berth/v1/trees/$node {providers: [{uuid: $node}, {uuid: $numa0},
            {uuid: $gpu, parent: $node}], remove_missing: true}
        200 {providers: [{uuid: $gpu, ...}, _, _], ...}

    a dry run answers the changes, and a uuid that is not there yet is null
        PUT /berth/v1/trees/n$new?dry_run=true {providers: [{name: n$new},
            {name: n$new-0, parent: n$new}]}
        200 {revision: _, created_traits: [], created_resource_classes: [], changes: [
            {change: create, uuid: null, name: n$new, before: null, after: _},
            {change: create, uuid: null, name: n$new-0, before: null,
                after: {parent: n$new, ...}}]}
        GET /berth/v1/trees/n$new
        404

    a client may insist on a tree that exists, or on a new one
        > If-Match: $1
        PUT /berth/v1/trees/n$new {providers: [{name: n$new}]}
        412 berth.precondition.failed
        > If-None-Match: *
        PUT /berth/v1/trees/n$new {providers: [{name: n$new}, {name: n$new-0, parent: n$new}]}
        201
        > If-None-Match: *
        PUT /berth/v1/trees/n$new-0 {providers: [{name: n$new}]}
        412 berth.precondition.failed
        | *
        | "x"

    what is in use is not removed, and nothing else of the request is done; a dry run says so
        PUT /berth/v1/trees/$node$1 {providers: [{uuid: $node, traits: [], aggregates: [$A]}$2}
        409 $3
        | ?             | , {uuid: $numa0, inventories: {}}] | placement.inventory.inuse VCPU
        | ?dry_run=true | , {uuid: $numa0, inventories: {}}] | placement.inventory.inuse VCPU
        | ?             | ], remove_missing: true            | placement.resource_provider.inuse
        | ?dry_run=true | ], remove_missing: true            | placement.resource_provider.inuse

    a tree takes no provider, name or uuid from another
        PUT /berth/v1/trees/$node {providers: [$1]}
        409 placement.duplicate_name
        | {name: $other.name, parent: $node}
        | {name: new, uuid: $other, parent: $node}
        | {uuid: $other, parent: $node}
        | {uuid: $node, name: $other.name}

    custom names that do not exist are created if that is asked for
        PUT /berth/v1/trees/n$new {providers: [{name: n$new, traits: [$CUSTOM_T],
            inventories: {$CUSTOM_C: {total: 1}}}]}
        400 berth.name.unknown {pointer: /providers/0/inventories/$CUSTOM_C}
        PUT /berth/v1/trees/n$new {providers: [{name: n$new, traits: [$CUSTOM_T],
            inventories: {$CUSTOM_C: {total: 1}}}], create_names: true}
        201 {created_traits: [$CUSTOM_T], created_resource_classes: [$CUSTOM_C], ...}
        GET /traits/$CUSTOM_T
        204
        GET /resource_classes/$CUSTOM_C
        200
        PUT /berth/v1/trees/n$new {providers: [{name: n$new, traits: [HW_CPU_X86_AVX3]}],
            create_names: true}
        400 berth.name.unknown {pointer: /providers/0/traits/0, did_you_mean: [HW_CPU_X86_AVX2,
            ...]}

    aggregates are named by uuid or label
        PUT /berth/v1/aggregates/$A {labels: {name: r$rack}}
        200
        PUT /berth/v1/trees/n$new {providers: [{name: n$new, aggregates: [r$rack]}]}
        201 {providers: [{aggregates: [$A], ...}], ...}
        PUT /berth/v1/trees/n$new {providers: [{name: n$new, aggregates: [$A, "name=r$rack"]}]}
        200 {changes: [], ...}
        PUT /berth/v1/trees/n$new {providers: [{name: n$new, aggregates: [r$unknown]}]}
        400 berth.name.unknown {pointer: /providers/0/aggregates/0}

    a new tree may have its uuid in the path, in any spelling
        PUT /berth/v1/trees/$1 {providers: [{uuid: $2, name: n$2}]}
        201
        GET /berth/v1/trees/$2
        200
        | AB000000-0000-4000-8000-000000000011 | ab000000-0000-4000-8000-000000000011
        | ab000000000040008000000000000012     | ab000000-0000-4000-8000-000000000012

    a trait that a provider has already is not written again
        PUT /berth/v1/trees/$node {providers: [{uuid: $node, traits: [HW_CPU_X86_AVX2,
            HW_NUMA_ROOT], inventories: {DISK_GB: {total: 100}}}]}
        200
        GET $node
        200 {generation: 3, ...}
    """,
    world="""
        node      DISK_GB=100                  HW_CPU_X86_AVX2
          numa0   VCPU=32(used:100,ratio:4.0)  HW_NUMA_ROOT
          numa1   VCPU=32(ratio:4.0)           HW_NUMA_ROOT
          spare
        other
    """,
)
def test_trees(rule: Rule, wire: Client) -> None:
    """The rows of the table."""
    rule.check(wire)


def test_a_name_may_have_slashes(wire: Client) -> None:
    """Servers decode them in the path: its rest is the name, or else there is no such provider."""
    name = f"{new_name()}//rack/7"
    quoted = quote(name, safe="")
    missing = wire.get(f"{PATH}/{quoted}")
    assert (missing.status, missing.code) == (404, "berth.not_found")
    assert f"There is no provider {name}." in missing.detail
    body = {"providers": [{"name": name, "traits": []}]}
    created = done(wire.put(f"{PATH}/{quoted}", json=body), 201)
    (line,) = created.json["providers"]
    assert done(wire.get(f"{PATH}/{quoted}"), 200).json["providers"] == [line]
    assert created.headers["location"].endswith(f"{PATH}/{line['uuid']}")
    assert done(wire.get(f"{PATH}/{name}"), 200).json["providers"] == [line]
    for path, status in (
        (f"{PATH}/{new_name()}/", 404),
        (f"{PATH}/", 404),
        (f"{PATH}/{name}%00", 400),
    ):
        assert wire.get(path).status == status
