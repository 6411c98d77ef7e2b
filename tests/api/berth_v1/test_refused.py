# SPDX-License-Identifier: Apache-2.0
"""What the requests of `/berth/v1` may not have, and where each refusal points.

Source: spec/beyond.md 1.4, 2.2 to 2.5, and the bounds of 11.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Iterator
from typing import Any, Final

import pytest
from msgspec.structs import replace

from berth.model.bounds import BOUNDS
from tests.api import configured
from tests.api.wire import Rule, rules
from tests.client import Client
from tests.world_over_http import built_over_http
from tests.worlds import aggregate_uuid, world


@rules(
    r"""
    a question has a form
        POST /berth/v1/candidates $1
        400 {pointer: $2}
        | []                                           | ""
        | {}                                           | ""
        | {request: []}                                | /request
        | {request: {}}                                | /request
        | {request: {host: {}}}                        | /request
        | {request: {groups: {}}}                      | /request/groups
        | {request: {groups: {"": {}}}}                | /request/groups/
        | {request: {groups: {"": {required: [A]}}}}   | /request/groups/
        | {request: {query: 1}}                        | /request/query
        | {request: {query: ""}}                       | /request/query
        | {request: {query: "resources=VCPU"}}         | /request/query
        | {request: {query: "resources=VCPU:0"}}       | /request/query
        | {request: {query: "ressources=VCPU:1"}}      | /request/query
        | {request: {query: "resources=VCPU:1", host: {}}}        | /request/host
        | {request: {query: "resources=CUSTOM_%00:1"}}            | /request/query
        | {request: {query: "resources=CUSTOM_%ED%A0%80:1"}}      | /request/query
        | {request: {query: "resources=CUSTOM_%FF:1"}}            | /request/query
        | {request: {flavor: [m1.large]}}              | /request/flavor
        | {request: {flavor: ""}}                      | /request/flavor
        | {request: {flavor: m1.large, together: []}}  | /request/together
        | {request: {flavor: m1.large, query: "resources=VCPU:1"}}      | /request/query
        | {request: {flavor: m, host: {required: [A, "!A"]}}}           | /request/host/required/0

    what holds of one request holds of each alternative
        POST /berth/v1/candidates {request: {alternatives: [
            &r {groups: {"": {resources: {VCPU: 1}}}}, $1]}}
        400 {pointer: /request/alternatives$2}
        | {groups: {"": {}}}                     | /1/groups/
        | {query: "limit=1"}                     | /1/query
        | {alternatives: [*r, *r]}               | /1/alternatives
        | {flavor: m1.large, groups: {}}         | /1/groups

    a request is of one kind
        POST /berth/v1/candidates {request: {
            groups: {"": &v {resources: {VCPU: 1}}}, $1}}
        400 {pointer: /request/$2}
        | flavour: 1                             | flavour
        | flavor: m1.large                       | groups
        | query: "resources=VCPU:1"              | groups
        | tolerate: all                          | tolerate
        | tolerate: [1]                          | tolerate/0
        | together: {}                           | together

    alternatives are several, and nothing stands beside them
        POST /berth/v1/candidates {request: {alternatives: $1}}
        400 {pointer: /request/$2}
        | [&r {groups: {"": {resources: {VCPU: 1}}}}]                         | alternatives
        | [&r {groups: {"": {resources: {VCPU: 1}}}}, *r], flavor: m1.large   | flavor
        | [&r {groups: {"": {resources: {VCPU: 1}}}}, *r], tolerate: "*"      | tolerate

    groups have names of letters, digits and few others
        POST /berth/v1/candidates {request: {groups: {$1: {resources: {VCPU: 1}}}}}
        400 {pointer: $2}
        | a.b    | /request/groups/a.b
        | "a/b~" | /request/groups/a~1b~0

    resources are whole numbers from 1 on
        POST /berth/v1/candidates {request: {groups: {"": {resources: {$1: $2}}}}}
        400 {pointer: /request/groups//resources/$1}
        | vcpu | 1
        | VCPU | 0
        | VCPU | 1.0
        | VCPU | "1"
        | VCPU | true
        | VCPU | null
        | VCPU | .nan
        | VCPU | 2147483648

    a group has members of these forms
        POST /berth/v1/candidates {request: {groups: {"": {resources: {VCPU: 1}, $1}}}}
        400 {pointer: /request/groups//$2}
        | ressources: {}                     | ressources
        | required: HW_CPU_X86_AVX2          | required
        | required: [HW_CPU_X86_AVX2, ""]    | required/1
        | required: ["!"]                    | required/0
        | required: ["!!HW_CPU_X86_AVX2"]    | required/0
        | required: [[]]                     | required/0
        | required: [[A, "!B"]]              | required/0/1
        | required: [[A, [B]]]               | required/0/1
        | required: [B, A, "!A"]             | required/1
        | required: [[A, B], "!A", "!B"]     | required/0
        | in_tree: cn1                       | in_tree
        | under: [cn1, 7]                    | under/1
        | split: {VCPU: {parts: 17}}         | split/VCPU/parts
        | split: {VCPU: {min: 0}}            | split/VCPU/min
        | split: {VCPU: {step: 1.0}}         | split/VCPU/step
        | split: {VCPU: {most: 1}}           | split/VCPU/most
        | split: {DISK_GB: {}}               | split/DISK_GB
        | split: {VCPU: 2}                   | split/VCPU

    a group asks for something, or a relation names it
        POST /berth/v1/candidates {request: {groups: {"": {resources: {VCPU: 1}}, _A: $1}, $2}}
        400 {pointer: /request/groups/_A}
        | {required: [A]} | together: []
        | {}              | together: [{groups: ["", _A], at: tree}]
        | {required: []}  | together: [{groups: ["", _A], at: tree}]

    a split is of one class in one group
        POST /berth/v1/candidates {request: {groups: {
            "": {resources: {VCPU: 1}, $1}, _A: {resources: {VCPU: 2, $2}, split: {VCPU: {}}}}}}
        400 {pointer: /request/groups/_A/split/VCPU}
        | required: []        | DISK_GB: 2
        | split: {VCPU: {}}

    a request of several groups has members of these forms
        POST /berth/v1/candidates {request: {groups: {
            _A: {resources: {VCPU: 1}}, _B: {resources: {VCPU: 1}}}, $1}}
        400 {pointer: /request/$2}
        | together: [{groups: [_A, _B]}]                       | together/0
        | together: [{groups: [_A], at: tree}]                 | together/0/groups
        | apart: [{groups: [_A, _A], at: tree}]                | apart/0/groups
        | apart: [{groups: [_A, _C], at: tree}]                | apart/0/groups/1
        | apart: [{groups: [_A, ""], at: tree}]                | apart/0/groups/1
        | apart: [{groups: [_A, _B], at: ""}]                  | apart/0/at
        | apart: [{groups: [_A, _B], at: tree, not: 1}]        | apart/0/not
        | host: {required: [A, "!A"]}                          | host/required/0
        | host: {anywhere: ["!A", A]}                          | host/anywhere/1
        | host: {within: []}                                   | host/within
        | host: {in: [[cn1]]}                                  | host/in
        | host: {in: [[cn1], cn2, [cn3]]}                      | host/in/1
        | host: {in: [[cn1], [[cn2]]]}                         | host/in/1/0
        | host: {not_in: [[cn1], [cn2]]}                       | host/not_in/0

    a question for candidates has members of these forms
        POST /berth/v1/candidates {request: {groups: {"": {resources: {VCPU: 1}}}}, $1}
        400 {pointer: /$2}
        | limits: 1                                  | limits
        | limit: 0                                   | limit
        | limit: 1.0                                 | limit
        | limit: 1e0                                 | limit
        | limit: "1"                                 | limit
        | limit: null                                | limit
        | limit: true                                | limit
        | per_host: 0                                | per_host
        | summaries: 1                               | summaries
        | order: []                                  | order
        | order: {by: best}                          | order/by
        | order: {by: preserve}                      | order
        | order: {by: pack, preserve: {small: 1}}    | order/preserve
        | order: {by: preserve, preserve: {}}        | order/preserve
        | order: {weight: -1}                        | order/weight
        | order: {weight: .nan}                      | order/weight
        | order: {weight: .inf}                      | order/weight
        | order: {weight: "1"}                       | order/weight
        | order: {classes: {VCPU: -1}}               | order/classes/VCPU
        | order: {classes: {VCPU: .nan}}             | order/classes/VCPU
        | order: {seed: -1}                          | order/seed
        | order: {seed: 18446744073709551616}        | order/seed
        | order: {among: 0}                          | order/among
        | order: {prefer: [{}]}                      | order/prefer/0
        | order: {prefer: [{weight: 1, of: _A}]}     | order/prefer/0/of
        | order: {prefer: [{weight: -.inf}]}         | order/prefer/0/weight
        | order: {prefer: [{weight: 1, required: [A, "!A"]}]}       | order/prefer/0/required/0
        | what_if: {drains: []}                      | what_if/drains
        | what_if: {without_consumers: [x]}          | what_if/without_consumers/0
        | what_if: {add_hosts: [{like: cn1, count: 0}]}             | what_if/add_hosts/0/count

    an explanation has members of these forms
        POST /berth/v1/explain {request: {groups: {"": {resources: {VCPU: 1}}}}, $1}
        400 {pointer: /$2}
        | nearest_max: 51           | nearest_max
        | nearest_max: 1.0          | nearest_max
        | relaxations: 1            | relaxations
        | paint: "yes"              | paint
        | seconds: 0                | seconds
        | seconds: "1"              | seconds
        | order: {}                 | order
        | what_if: {add_hosts: 1}   | what_if/add_hosts

    a question for capacity has members of these forms
        POST /berth/v1/capacity $1
        400 {pointer: $2} $3
        | {flavor: [small]}           | /flavor                 | is unknown
        | {by: [zone, zone]}          | /by                     | must not repeat an item
        | {hosts_max: 1001}           | /hosts_max              | must be at most 1000
        | {requests: {a b: {groups: {"": {resources: {VCPU: 1}}}}}}     | /requests/a b  |
            is not a valid name
        | {requests: {x: {groups: {_A: &a {required: [HW_NUMA_ROOT]}, _B: *a},
            together: [{groups: [_A, _B], at: tree}]}}}                 | /requests/x    |
            asks for no resources

    names that do not exist are refused where they stand
        POST /berth/v1/candidates {request: {groups: {"": &v {resources: {VCPU: 1}}}, $1}, $2}
        400 berth.name.unknown {pointer: $3}
        | host: {required: [HW_NUMA_ROOT, [CUSTOM_NO, A]]} | limit: 1 | /request/host/required/1/0
        | host: {} | order: {classes: {CUSTOM_NO: 1}}                 | /order/classes/CUSTOM_NO
        | host: {} | order: {prefer: [{weight: 1}, {weight: 1, required: [CUSTOM_NO]}]} |
            /order/prefer/1/required/0
        | host: {} | order: {by: preserve, preserve: {none: 1}}       | /order/preserve/none
        | host: {} | what_if: {allocation_ratio: [{resource_class: CUSTOM_NO, ratio: 1}]} |
            /what_if/allocation_ratio/0/resource_class

    so are those of groups and of relations between them
        POST /berth/v1/$1 $2: $3
        400 berth.name.unknown {pointer: $4}
        | candidates | {request | {query: "resources=CUSTOM_NO:1"}}   | /request/query
        | candidates | {request | {groups: {_A: {resources: {CUSTOM_NO: 1}}}}} |
            /request/groups/_A/resources/CUSTOM_NO
        | candidates | {request | {groups: {_A: &v {resources: {VCPU: 1}}, _B: *v},
            apart: [{groups: [_A, _B], at: CUSTOM_NO}]}}              | /request/apart/0/at
        | candidates | {request | {flavor: none}}                     | /request/flavor
        | capacity   | {requests | {x: {groups: {"": {resources: {CUSTOM_NO: 1}}}}}} |
            /requests/x/groups//resources/CUSTOM_NO
        | capacity   | {flavors | [none]}                             | /flavors/0

    the pointer is right whatever the names of members
        POST /berth/v1/candidates {request.groups: {_A: {resources: 1}}, request: {
            groups: {_A: &a {resources: {VCPU: x}}, groups._A: *a}}}
        400 {pointer: /request/groups/_A/resources/VCPU}

    a body of JSON has what JSON may have
        > Content-Type: application/json
        POST /berth/v1/candidates $1
        400
        | b''
        | b'{'
        | b'{"request": {"groups": NaN}}'
        | b'{"request": 1e999}'
        | b'{"limit": 1$(0)*5000}'
        | b'{"request": "\\ud800"}'
        | b'{"request": "\\u0000"}'
        | b'{"request": ["\\u0000"]}'
        | b'\\xff'
        | b'[*400'
    """
)
def test_questions(rule: Rule, wire: Client) -> None:
    """400 with a pointer, and nothing is computed."""
    rule.check(wire)


@rules(
    r"""
    a tree has lines of these forms
        PUT /berth/v1/trees/$node {providers: $1}
        400 {pointer: $2}
        | []                                                     | /providers
        | [{traits: []}]                                         | /providers/0
        | [{name: $node.name}, {name: $node.name}]               | /providers/1
        | [{name: new}]                                          | /providers/0
        | [{uuid: $new}]                                         | /providers/0
        | [{name: $node.name, parent: $numa}]                    | /providers/0/parent
        | [{name: $numa.name, parent: null}]                     | /providers/0
        | [{name: $numa.name, parent: $numa}]                    | /providers/0
        | [{uuid: $node, name: $numa.name}]                      | /providers/0/name
        | [{name: $numa.name}], remove_missing: true             | /providers
        | [{name: $node.name, colour: red}]                      | /providers/0/colour
        | [{name: $node.name, inventories: {VCPU: {total: 1, reserved: 2}}}] |
            /providers/0/inventories/VCPU

    a new tree has the provider of the path
        PUT /berth/v1/trees/$new {providers: [{name: new}]}
        400

    a drain has members of these forms
        PUT /berth/v1/drains/d $1
        400 {pointer: $2}
        | {}                                                     | ""
        | {effect: none, reason: x}                              | ""
        | {providers: []}                                        | /providers
        | {providers: cn1}                                       | /providers
        | {select: {}}                                           | /select
        | {providers: [$node], select: {member_of: [], not_in: []}}        | /select
        | {select: {required: [HW_NUMA_ROOT, "!HW_NUMA_ROOT"]}}  | /select/required/0
        | {select: {resources: {}}}                              | /select/resources
        | {providers: [], effect: evict}                         | /effect
        | {providers: [], reason: x*256}                         | /reason
        | {providers: [], host: cn1}                             | /host

    a drain has a name of letters, digits and few others
        PUT /berth/v1/drains/$1 {providers: []}
        400 A drain has a name of
        | a%20b
        | x*256
        | %C3%A4

    a flavor has members of these forms
        PUT /berth/v1/flavors/f $1
        400 {pointer: $2}
        | []                                                     | ""
        | {}                                                     | ""
        | {request: &r {groups: {"": &v {resources: {VCPU: 1}}}}, flavour: 1}        | /flavour
        | {request: &r {groups: {"": &v {resources: {VCPU: 1}}}}, expose: 1}         | /expose
        | {request: {query: "resources=VCPU:1"}, description: x*256}                 | /description
        | {request: {query: "resources=VCPU:1"}, description: null}                  | /description
        | {request: []}                                          | /request
        | {request: {}}                                          | /request
        | {request: {flavor: m1.large}}                          | /request/flavor
        | {request: {groups: {}}}                                | /request/groups
        | {request: {groups: {"": {resources: {}}}}}             | /request/groups/
        | {request: {query: "resources=VCPU"}}                   | /request/query
        | {request: {query: "resources=CUSTOM_%FF:1"}}           | /request/query
        | {request: {alternatives: [&r {query: "resources=VCPU:1"}, *r]}}  | /request/alternatives

    a flavor has a name that fits into a url
        PUT /berth/v1/flavors/$1 {request: {query: "resources=VCPU:1"}}
        $2
        GET /berth/v1/flavors/$1
        404
        | a%20b      | 400
        | %C3%BC     | 400
        | a%0A       | 400
        | x*256      | 400
        | %2E        | 400
        | %2E%2E     | 400
        | a%2Fb      | 404

    an aggregate has labels of these forms
        PUT /berth/v1/aggregates/$new $1
        400 {pointer: $2}
        | {}                                | ""
        | []                                | ""
        | null                              | ""
        | {labels: null}                    | /labels
        | {labels: ["zone=z1"]}             | /labels
        | {labels: {}, name: x}             | /name
        | {labels: {zone: 1}}               | /labels/zone
        | {labels: {zone: null}}            | /labels/zone
        | {labels: {zone: [z1]}}            | /labels/zone
        | {labels: {zone: ""}}              | /labels/zone
        | {labels: {zone: "a=b"}}           | /labels/zone
        | {labels: {zone: x*256}}           | /labels/zone
        | {labels: {a.b: 1}}                | /labels/a.b
        | {labels: {Zone: z1}}              | /labels/Zone
        | {labels: {"": z1}}                | /labels/
        | {labels: {"9": z1}}               | /labels/9
        | {labels: {a b: z1}}               | /labels/a b
        | {labels: {"a\n": z1}}             | "/labels/a\n"
        | {labels: {a/~: z1}}               | /labels/a~1~0
        | {labels: {x*64: z1}}              | /labels/x*64

    what is no uuid of an aggregate is not found
        GET /berth/v1/aggregates/$1
        $2
        PUT /berth/v1/aggregates/$1 {labels: {}}
        $2
        | az-1   | 404
        | 0*31   | 404
        | %00    | 400

    a claim has members of these forms
        PUT /berth/v1/consumers/web/job {user_id: u, consumer_type: T, $1}
        400 {pointer: $2}
        | allocations: {}                                                  | /allocations
        | allocations: {$node: {resources: {VCPU: 0}}} | /allocations/$node/resources/VCPU
        | allocations: {$node: {resources: {VCPU: 1}}}, lease: 5           | /lease
        | allocations: {$node: {resources: {VCPU: 1}}}, generation: -1     | /generation

    a claim names its user, and each provider once
        PUT /berth/v1/consumers/web/job {
            allocations: {$node: &v {resources: {VCPU: 1}}, $1}, user_id: $2, consumer_type: T}
        400 $3
        |                | ""  | user_id
        | $node.name: *v | u   | names provider $node

    a consumer has a name of up to 255 characters that people can type
        PUT /berth/v1/consumers/$1 {
            allocations: {$node: {resources: {VCPU: 1}}}, user_id: u, consumer_type: T}
        400 255
        | web/x*256
        | web/a%0Ab
        | y*256/job

    a lease has seconds from 1 to a day
        PUT /berth/v1/leases/$node.consumer $1
        400 {pointer: $2}
        | {}                          | ""
        | {seconds: 0}                | /seconds
        | {seconds: 86401}            | /seconds
        | {seconds: 1.0}              | /seconds
        | {seconds: "60"}             | /seconds
        | {seconds: null}             | /seconds
        | {seconds: 60, until: noon}  | /until

    a call of place has members of these forms
        POST /berth/v1/place {request: {query: "resources=VCPU:1"},
            consumers: [&c {project_id: p, user_id: u, consumer_type: T, name: n}], $1}
        400 {pointer: $2}
        | replace: true                            | /consumers/0
        | lease_seconds: 0                         | /lease_seconds
        | lease_seconds: 86401                     | /lease_seconds
        | lease_seconds: 60.0                      | /lease_seconds
        | max_per: {host: 0}                       | /max_per/host
        | max_per: {Rack: 1}                       | /max_per/Rack
        | within: ""                               | /within
        | tries: 33                                | /tries
        | dry_run: true                            | /dry_run
        | order: {prefer: [{weight: 1, of: _GPU}]} | /order/prefer/0/of
        | what_if: {nothing_used: true}            | /what_if
        | host: {required: [[]]}                   | /host/required/0

    a call of place has consumers of these forms
        POST /berth/v1/place {request: {query: "resources=VCPU:1"}, consumers: $1}
        400 {pointer: $2}
        | []                                                               | /consumers
        | [{uuid: $new}]                                                   | /consumers/0
        | [{project_id: p, user_id: u, consumer_type: T}]                  | /consumers/0
        | [&c {uuid: u, project_id: p, user_id: u, consumer_type: T}]      | /consumers/0/uuid
        | [&c {uuid: $new, project_id: p, user_id: u, consumer_type: T}, *c] | /consumers/1/uuid
        | [&c {name: a/b, project_id: p, user_id: u, consumer_type: T}]    | /consumers/0/name
        | [&c {name: x*256, project_id: p, user_id: u, consumer_type: T}]  | /consumers/0/name
        | [&c {name: b, project_id: p/a, user_id: u, consumer_type: T}]    | /consumers/0/name
        | [&c {name: a, project_id: p, user_id: u, consumer_type: T}, *c]  | /consumers/1/name
        | [&c {uuid: $new, project_id: p, user_id: u, consumer_type: T, consumer_generation: 1}] |
            /consumers/0/consumer_generation

    a wrong query is refused in a sentence, without a schema, a pattern, or a library's text
        $1 /berth/v1/$2
        400 $3
        | GET | fleet?include=traits,bogus | The query parameter include must be any of
            inventories, usages, traits, aggregates, drains, allocations, separated by commas, not
            'traits,bogus'.
        | GET | fleet?color=red | The query parameter color is unknown; expected: include.
        | GET | trees/cn1?include=bogus | The query parameter include must be any of generation,
            inventories, usages, traits, aggregates, drains, separated by commas, not 'bogus'.
        | GET | trees/cn1?include=VCPU        | include
        | GET | trees/cn1?include=usages,     | include
        | GET | changes                       | after
        | GET | changes?after=b1.AA&wait=soon | The query parameter wait must be a whole number of
            seconds, 0 to 60, not 'soon'.
        | GET | changes?after=b1.AA&wait=61   | wait
        | GET | changes?after=                | The query parameter after must not be empty.
        | GET | changes?since=x | The query parameter since is unknown; expected: after, wait.
        | GET | drains?host=                  | The query parameter host must not be empty.
        | GET | drains?hosts=cn1              | hosts
        | GET | aggregates?label=zone%3Dz1&label=z1 | The query parameter label must be a label,
            key=value, such as zone=z1, not 'z1'.
        | GET | aggregates?label=z1&label=zone%3Dz1 | not 'z1'.
        | GET | aggregates?label==z1          | label
        | GET | aggregates?label=zone=        | label
        | GET | aggregates?label=Zone=z1      | label
        | GET | aggregates?label=zone=a=b     | label
        | GET | aggregates?label              | label
        | GET | aggregates?x=y                | x
        | GET | fleet?include=%FF | The query must be percent-encoded UTF-8 without NUL characters.
        | GET | fleet?include=%00 | The query must be percent-encoded UTF-8 without NUL characters.
        | GET | consumers?colour=red | The query parameter colour is unknown; expected: host,
        | GET | consumers?host=               | host
        | GET | consumers?project_id=         | project_id
        | GET | consumers?consumer_type=vm    | consumer_type
        | GET | consumers?search=             | search
        | GET | consumers?limit=0             | limit must be a number from 1 to 1000
        | GET | consumers?limit=1001          | limit
        | DELETE | consumers/$node.consumer?generation=-1    | generation
        | DELETE | consumers/$node.consumer?generation=one   | generation
        | DELETE | consumers/$node.consumer?generations=1    | generation

    a dry run is true or false, and nothing else is like it
        $1 /berth/v1/$2 $3
        400 $4
        | PUT  | trees/$node?dry_run=perhaps     | {providers: [{name: $node.name}]} |
            The query parameter dry_run must be one of true, false, not 'perhaps'.
        | PUT  | drains/d?dry_run=perhaps        | {providers: [$node]}  | 'perhaps'
        | POST | place?dry_run=yes               | {consumers: []}       | 'yes'
        | POST | place?dryrun=true               | {consumers: []}       | dryrun

    what does not exist is named, with what is similar
        PUT /berth/v1/aggregates/$A {labels: {name: az-$A, zone: z1}}
        200
        PUT /berth/v1/$1
        400 berth.name.unknown {pointer: $2, did_you_mean: [$3, ...]} Did you mean
        | trees/$node {providers: [{name: gpu, parent: x$numa.name}]}  | /providers/0/parent |
            $numa.name
        | trees/$node {providers: [{name: $node.name, aggregates: ["zone=z0"]}]} |
            /providers/0/aggregates/0 | zone=z1
        | trees/$node {providers: [{name: $node.name, aggregates: [az$A]}]} |
            /providers/0/aggregates/0 | az-$A
        | trees/$node {providers: [{name: $node.name, inventories: {VCPUS: {total: 1}}}]} |
            /providers/0/inventories/VCPUS | VCPU
        | trees/$node {providers: [{name: $node.name, traits: [HW_NUMA_ROOTS]}]} |
            /providers/0/traits/0 | HW_NUMA_ROOT
        | drains/d {providers: [$node, x$node.name]}               | /providers/1 | $node.name
        | drains/d {select: {in: [x$node.name]}}                   | /select/in/0 | $node.name
        | drains/d {select: {member_of: ["zone=z"]}}               | /select/member_of/0 | zone=z1
        | drains/d {select: {required: [HW_NUMA_ROOTS]}}           | /select/required/0 |
            HW_NUMA_ROOT
        | consumers/p/n {allocations: {x$node.name: {resources: {VCPU: 1}}}, user_id: u,
            consumer_type: T} | /allocations/x$node.name | $node.name
        | consumers/p/n {allocations: {$node: {resources: {VCPUS: 1}}}, user_id: u,
            consumer_type: T} | /allocations/$node/resources/VCPUS | VCPU
        | flavors/f {request: {groups: {"": {resources: {VCPUS: 1}}}}} |
            /request/groups//resources/VCPUS | VCPU
        | flavors/f {request: {groups: {"": {resources: {VCPU: 1}, required: [[HW_CPU_X86_AVX2,
            HW_CPU_X86_AXV2]]}}}} | /request/groups//required/0/1 | HW_CPU_X86_AVX2

    a path that names nothing has suggestions
        PUT /berth/v1/flavors/f$x {request: {query: "resources=VCPU:1"}}
        201
        PUT /berth/v1/drains/f$x {providers: [$node]}
        201
        GET /berth/v1/$1
        404 {did_you_mean: [$2]}
        | flavors/$x        | f$x
        | drains/$x         | f$x
        | trees/x$node.name | $node.name

    a label of several aggregates is none for a write
        PUT /berth/v1/aggregates/$A {labels: {pair: twice}}
        200
        PUT /berth/v1/aggregates/$B {labels: {pair: twice}}
        200
        PUT /berth/v1/trees/$node {providers: [{name: $node.name, aggregates: ["pair=twice"]}]}
        400 {pointer: /providers/0/aggregates/0}
            is a label of 2 aggregates: pair=twice
    """,
    world="""
        node    VCPU=8(used:1)  @A
          numa  VCPU=4
    """,
)
def test_writes(rule: Rule, wire: Client) -> None:
    """400 with a pointer, a sentence, or suggestions; nothing is written."""
    rule.check(wire)


FLEET: Final = world("node-12  VCPU=8  @A\n  node-12_numa0\nnode-13  @B")
VCPU: Final = {"resources": {"VCPU": 1}}
ONE: Final = {"groups": {"": VCPU}}
TWO: Final = {"groups": {"_A": VCPU, "_B": VCPU}}
RELATION: Final = {"groups": ["_A", "_B"], "at": "tree"}
CONSUMER: Final = {"name": "n", "project_id": "p", "user_id": "u", "consumer_type": "T"}
NUMBERS: Final = [str(number) for number in range(101)]


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    """A service that has only this fleet, with labels."""
    client = configured.serve(tmp_path_factory.mktemp("fleet"))
    with built_over_http(FLEET, client):
        for name in "AB":
            path = f"/berth/v1/aggregates/{aggregate_uuid(name)}"
            assert client.put(path, json={"labels": {"zone": name}}).status == 200
        yield client


def asked(pointer: str, request: Any) -> tuple[str, str, str, Any]:
    """A question with this request."""
    return "POST", "candidates", f"/request{pointer}", {"request": request}


def ask(pointer: str, **members: Any) -> tuple[str, str, str, Any]:
    """A question with further members."""
    return "POST", "candidates", pointer, {"request": ONE, **members}


def grouped(member: str, value: Any) -> tuple[str, str, str, Any]:
    """A question with a further member of its group."""
    is_nested = isinstance(value[0], list)
    return asked(f"/groups//{member}{'/0' * is_nested}", {"groups": {"": {**VCPU, member: value}}})


def place(pointer: str, **members: Any) -> tuple[str, str, str, Any]:
    """A call of place with other members."""
    return "POST", "place", pointer, {"request": ONE, "consumers": [CONSUMER], **members}


#: What passes a bound by one: method, path, pointer and body.
BEYOND: Final[list[tuple[str, tuple[str, str, str, Any]]]] = [
    ("max_groups", asked("/groups", {"groups": dict.fromkeys(NUMBERS[:65], VCPU)})),
    ("max_classes", asked("/groups//resources",
     {"groups": {"": {"resources": {f"CUSTOM_{each}": 1 for each in NUMBERS[:33]}}}})),
    ("max_items", asked("/host/required", {**ONE, "host": {"required": ["HW_NUMA_ROOT"] * 65}})),
    ("max_items", grouped("required", ["A"] * 65)),
    ("max_items", grouped("required", [["A"] * 65])),
    ("max_items", grouped("member_of", ["A"] * 65)),
    ("max_references", grouped("member_of", [["A"] * 10_001])),
    ("max_references", grouped("in_tree", ["A"] * 10_001)),
    ("max_references", grouped("not_under", ["A"] * 10_001)),
    ("max_references", asked("/host/not_in", {**ONE, "host": {"not_in": ["cn1"] * 10_001}})),
    ("max_relations", asked("/together", {**TWO, "together": [RELATION] * 65})),
    # The two kinds of relations share their bound.
    ("64 relations (max_relations) in all",
     asked("/apart", {**TWO, "together": [RELATION] * 33, "apart": [RELATION] * 32})),
    ("max_relations", asked("/apart", {**TWO, "together": [RELATION], "apart": [RELATION] * 64})),
    ("max_preferences", ask("/order/prefer", order={"prefer": [{"weight": 1}] * 17})),
    ("max_preserved", ask("/order/preserve", order={"by": "preserve", "preserve":
     dict.fromkeys(NUMBERS[:17], 1)})),
    ("max_preserve_among", ask("/order/among", order={"by": "preserve", "preserve": {"m": 1},
     "among": 4_097})),
    ("max_added_hosts", ask("/what_if/add_hosts", what_if={"add_hosts":
     [{"like": "node-12", "count": 5_001}] * 2})),
    ("max_alternatives", asked("/alternatives", {"alternatives": [ONE] * 9})),
    ("max_candidates", ask("/limit", limit=10_001)),
    ("max_consumers", place("/consumers", consumers=[CONSUMER] * 257)),
    ("max_label_keys", place("/max_per", max_per={f"k{each}": 1 for each in NUMBERS[:33]})),
    ("max_tries", place("/tries", tries=33)),
    ("max_lease_seconds", place("/lease_seconds", lease_seconds=86_401)),
    ("max_nearest", ("POST", "explain", "/nearest_max", {"request": ONE, "nearest_max": 51})),
    ("max_body_bytes", ("POST", "explain", "", {"request": {"query": "x" * 2**20}})),
    ("max_labels", ("PUT", f"aggregates/{aggregate_uuid('A')}", "/labels",
     {"labels": {f"k{each}": "v" for each in NUMBERS[:33]}})),
    ("max_flavor_bytes", ("PUT", "flavors/f", "/request",
     {"request": {**ONE, "host": {"not_in": ["x" * 200] * 90}}})),
    ("max_capacity_requests", ("POST", "capacity", "/flavors",
     {"flavors": [f"f{each}" for each in NUMBERS]})),
    ("max_capacity_requests", ("POST", "capacity", "/requests", {"requests":
     {f"r{each}": ONE for each in NUMBERS}})),
    ("max_capacity_keys", ("POST", "capacity", "/by", {"by": ["a", "b", "c", "d", "e"]})),
    ("max_capacity_best", ("POST", "capacity", "/hosts_max", {"hosts_max": 1_001})),
    ("max_tree_providers", ("PUT", "trees/cn1", "/providers",
     {"providers": [{"name": f"p{number}"} for number in range(1_001)]})),
]  # fmt: skip

#: What a small fleet passes too, with a smaller bound: its constant, or the kind of record that has
#: it, and its value there.
OF_THE_FLEET: Final[dict[str, tuple[str, int, tuple[str, str, str, Any]]]] = {
    "max_capacity_values": ("api.berth_v1.capacity.CAPACITY_VALUES_MAX", 1,
     ("POST", "capacity", "/by/0", {"by": ["zone"]})),
    "max_capacity_hosts": ("api.berth_v1.capacity.CAPACITY_HOSTS_MAX", 1,
     ("POST", "capacity", "/by/0", {"requests": {"x": ONE}, "by": ["host"]})),
    "max_capacity_lines": ("api.berth_v1.capacity.CAPACITY_LINES_MAX", 3,
     ("POST", "capacity", "/by/1", {"requests": {"x": ONE}, "by": ["zone", "aggregate"]})),
    "max_drain_providers": ("api.berth_v1.drains.DRAIN_PROVIDERS_MAX", 1,
     ("PUT", "drains/d", "", {"providers": ["node-12"], "select": {"in": ["node-12", "node-13"]}})),
    "max_drains": ("store.named.DRAINS", 0,
     ("PUT", "drains/d", "", {"providers": ["node-12"]})),
    "max_flavors": ("store.named.FLAVORS", 0, ("PUT", "flavors/f", "", {"request": ONE})),
}  # fmt: skip


def check_bound(client: Client, bound: str, sent: tuple[str, str, str, Any]) -> None:
    """A request is refused by the name of a bound: 400 `berth.request.too_large` for what is
    counted, and `invalid` for a single number."""
    method, path, pointer, body = sent
    revision = client.get("/berth/v1/flavors").json["revision"]
    answer = client.request(method, f"/berth/v1/{path}", json=body)
    kind = "invalid" if "must be at most" in answer.detail else "too_large"
    assert (answer.status, answer.code) == (400, f"berth.request.{kind}")
    assert answer.error.get("pointer", "") == pointer
    assert bound in answer.detail
    assert client.get("/berth/v1/flavors").json["revision"] == revision


@pytest.mark.parametrize(
    ("bound", "sent"), BEYOND, ids=[f"{name}-{n}" for n, (name, _) in enumerate(BEYOND)]
)
def test_a_request_beyond_a_bound_is_refused_by_its_name(
    fleet: Client, bound: str, sent: tuple[str, str, str, Any]
) -> None:
    """One more than it allows."""
    check_bound(fleet, bound, sent)


def bound_by(monkeypatch: pytest.MonkeyPatch, constant: str, most: int) -> None:
    """Change a bound."""
    now = pkgutil.resolve_name(f"berth.{constant}")
    changed = most if isinstance(now, int) else replace(now, at_most=most)
    monkeypatch.setattr(f"berth.{constant}", changed)


@pytest.mark.parametrize("bound", OF_THE_FLEET)
def test_a_bound_of_the_fleet_is_named_too(
    fleet: Client, monkeypatch: pytest.MonkeyPatch, bound: str
) -> None:
    """With a bound that a small fleet passes; what is there already may be replaced."""
    constant, most, sent = OF_THE_FLEET[bound]
    path = f"/berth/v1/{sent[1]}"
    if most == 0:
        assert fleet.put(path, json=sent[3]).status == 201
    bound_by(monkeypatch, constant, most)
    if most == 0:
        assert fleet.put(path, json=sent[3]).status == 200
        assert fleet.delete(path).status == 204
    check_bound(fleet, bound, sent)
    bound_by(monkeypatch, constant, most + 1)
    assert fleet.request(sent[0], path, json=sent[3]).status in (200, 201)
    if sent[0] == "PUT":
        assert fleet.delete(path).status == 204


def test_every_bound_has_a_test(fleet: Client) -> None:
    """And stands in the version document; those of scenarios are in test_scenario_bounds."""
    scenarios = {"max_added_providers", "max_added_sharing"}
    assert {name for name, _ in BEYOND if name in BOUNDS} | {*OF_THE_FLEET} | scenarios == {*BOUNDS}
    shown = fleet.get("/berth/v1").json
    assert {name: shown[name] for name in BOUNDS} == BOUNDS


def test_what_the_bounds_allow_is_read(fleet: Client) -> None:
    """Bounds are inclusive, and a request is explained as it was read."""
    for request in (
        {"groups": dict.fromkeys(NUMBERS[:64], VCPU)},
        {"groups": {"": {**VCPU, "required": ["HW_NUMA_ROOT"] * 64}}},
        {**ONE, "host": {"not_in": ["A"] * 10_000, "in": []}},
        {**TWO, "together": [RELATION] * 32, "apart": [RELATION] * 32},
        {"groups": {"_A": VCPU, "_B": {"in_tree": ["cn1"]}}, "together": [RELATION]},
        {"groups": {"_A": VCPU, "_B": {"in_tree": []}}, "together": [RELATION]},
        {"groups": {"_A": VCPU, "_B": {"required": ["!A"]}}, "together": [RELATION]},
        {"groups": {"": {**VCPU, "required": [["A", "B"], "!A"]}}},
        {**ONE, "tolerate": "*"},
        {**ONE, "tolerate": ["firmware"]},
    ):
        answer = fleet.post("/berth/v1/explain", json={"request": request, "relaxations": False})
        assert (answer.status, answer.json["request"]) == (200, request)
