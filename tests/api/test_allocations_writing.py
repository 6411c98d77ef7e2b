# SPDX-License-Identifier: Apache-2.0
"""Writing allocations: the bodies, their effect, and what is refused.

Source: rest-api.md 10.3, 10.4, 1.9, 1.10, 1.14. Capacity and units are in
`test_allocations_capacity.py`, generations in `test_generations.py`.
"""

from pathlib import Path

import pytest

from tests.api.configured import serve
from tests.api.wire import Rule, rules
from tests.client import Client

#: Whose a consumer is that is written below 1.8 (operations.md 3.2).
NIL = "00000000-0000-0000-0000-000000000000"

WORLD = """
    host  VCPU=4  MEMORY_MB=64
    pool  DISK_GB=9
    busy  VCPU=4(used:4)  MEMORY_MB=9(used:9)
    left  VCPU=4(used:4)
"""


@rules(
    """
    PUT gives a consumer what it asks for
        PUT /allocations/$vm CLAIM host VCPU=2 MEMORY_MB=32 pool DISK_GB=5 => 204
        < Content-Type:
        < Last-Modified:
        < Cache-Control:
        < Location:
        GET /allocations/$vm @1.39
        200 {allocations: {$host: {generation: 2, resources: {VCPU: 2, MEMORY_MB: 32}}, $pool:
            {generation: 2, resources: {DISK_GB: 5}}}, consumer_generation: 1, $1}
        | $A, $B, consumer_type: unknown | @1.0-1.7
        | $C, $D, consumer_type: unknown  | @1.8-1.37
        | $C, $D, consumer_type: INSTANCE | @1.38-
    PUT replaces all that the consumer held @1.0-
        PUT /allocations/$busy.consumer CLAIM host VCPU=3 {$1} => 204
        GET /allocations/$busy.consumer @1.39
        200 {allocations: {$host: {resources: {VCPU: 3}, ...}}, ...}
        GET $busy/usages => 200 {usages: {VCPU: 0, MEMORY_MB: 0}, ...}
        |                        | @1.0-1.27
        | consumer_generation: 1 | @1.28-
    POST writes several consumers at once, each as PUT does @1.13-
        POST /allocations CLAIMS one: host VCPU=1; two: host VCPU=3 => 204
        < Last-Modified:
        < Cache-Control:
        GET /allocations/$one => 200 {allocations: {$host: {resources: {VCPU: 1}, ...}}, ...}
        GET /allocations/$two => 200 {allocations: {$host: {resources: {VCPU: 3}, ...}}, ...}
    PUT with nothing removes all, and the consumer can be made again @1.28-
        PUT /allocations/$busy.consumer CLAIM {consumer_generation: 1} => 204
        GET /allocations/$busy.consumer => 200 {allocations: {}}
        PUT /allocations/$busy.consumer CLAIM busy VCPU=1 @1.39 => 204
    POST with nothing removes all earlier than PUT does
        POST /allocations CLAIMS busy.consumer: {$1} => 204
        GET /allocations/$busy.consumer => 200 {allocations: {}}
        |                        | @1.13-1.27
        | consumer_generation: 1 | @1.28-
    before 1.28 PUT with nothing is refused @1.0-1.27
        PUT /allocations/$vm CLAIM => 400 JSON does not validate
    of a provider listed twice the last item counts @1.11
        PUT /allocations/$vm {project_id: p, user_id: u, allocations: [
            {resource_provider: {uuid: $host}, resources: {VCPU: 1}},
            {resource_provider: {uuid: $host}, resources: {MEMORY_MB: 2}}]}
        204
        GET /allocations/$vm => 200 {allocations: {$host: {resources: {MEMORY_MB: 2}, ...}}, ...}
    before 1.8 a write takes a consumer from its project
        PUT /allocations/$busy.consumer CLAIM busy VCPU=2 @1.7 => 204
        GET /allocations/$busy.consumer => 200 {$A, $B, consumer_type: INSTANCE, ...}
    before 1.38 a write leaves the type alone
        PUT /allocations/$vm CLAIM host VCPU=1 {consumer_type: VOLUME} => 204
        PUT /allocations/$vm CLAIM host VCPU=2 {consumer_generation: 1} @1.37 => 204
        GET /allocations/$vm => 200 {consumer_type: VOLUME, ...}
    a write moves a consumer to another project, user and type; one that fails does not
        PUT /allocations/$busy.consumer CLAIM busy VCPU=$1
            {consumer_generation: 1, project_id: p2, user_id: u2, consumer_type: VOLUME}
        $2
        GET /allocations/$busy.consumer => 200 {project_id: $3, user_id: $4, consumer_type: $5, ...}
        | 2 | 204 | p2 | u2 | VOLUME
        | 5 | 409 | $project | user | INSTANCE
    the generation of a provider in the body is ignored @1.12-
        PUT /allocations/$vm CLAIM {allocations: {$host: {resources: {VCPU: 1}, generation: 12345}}}
        204
    mappings are accepted and ignored @1.34-
        PUT /allocations/$vm CLAIM host VCPU=1 {mappings: $1} => 204
        POST /allocations CLAIMS other: host VCPU=1 {mappings: $1} => 204
        || {"": [$A]} || {"": [$A, $A], _NET: [$A.upper]} || {"1": ["0*32"]}
        || {"": what stands under the empty string is free} || {"": []}
    numbers with a zero fraction are integers
        PUT /allocations/$vm CLAIM {allocations: {$host: {resources: {VCPU: 2.0}}}} => 204
        GET /allocations/$vm => 200 {allocations: {$host: {resources: {VCPU: 2}, ...}}, ...}
    PUT normalises the spelling of the consumer
        PUT /allocations/$1 CLAIM host VCPU=1 => 204
        GET /allocations/$vm => 200 {allocations: {$host: {resources: {VCPU: 1}, ...}}, ...}
        || %7B$vm.upper%7D || urn:uuid:$vm.upper || $vm.upper
    POST is all or nothing, and the sums of a request are checked
        POST /allocations CLAIMS one: host VCPU=$1; two: host VCPU=$2
        409 The requested amount would exceed the capacity
        | 1 | 5
        | 3 | 3
    POST lets consumers swap
        POST /allocations CLAIMS busy.consumer: left VCPU=4 {consumer_generation: 1};
            left.consumer: busy VCPU=4 {consumer_generation: 1}
        204
        GET /allocations/$busy.consumer
        200 {allocations: {$left: {resources: {VCPU: 4}, ...}}, ...}
        GET /allocations/$left.consumer
        200 {allocations: {$busy: {resources: {VCPU: 4}, ...}}, ...}
    POST lets one consumer hand over to another
        POST /allocations CLAIMS new: left VCPU=4; left.consumer: {consumer_generation: 1} => 204
        GET /allocations/$new => 200 {allocations: {$left: {resources: {VCPU: 4}, ...}}, ...}
        GET /allocations/$left.consumer => 200 {allocations: {}}
    """.replace("$A, $B,", f"project_id: {NIL}, user_id: {NIL},").replace(
        "$C, $D", "project_id: $project, user_id: user"
    ),
    world=WORLD,
)
def test_writing(rule: Rule, wire: Client) -> None:
    """What is accepted, and its effect."""
    rule.check(wire)


@pytest.mark.deliberately_different("uuids are normalised to lower case and dashes (1.9)")
@rules(
    """
    POST normalises the spelling of consumer and provider
        POST /allocations {$vm.upper: {allocations: {$host.upper: {resources: {VCPU: 1}}},
            user_id: u, project_id: p, consumer_generation: null, consumer_type: X}}
        204
        GET /allocations/$vm => 200 {allocations: {$host: {resources: {VCPU: 1}, ...}}, ...}
    """,
    world="host VCPU=4",
)
def test_spellings(rule: Rule, wire: Client) -> None:
    """As PUT does with its path."""
    rule.check(wire)


@rules(
    """
    a key newer than the microversion is refused
        PUT /allocations/$vm CLAIM host VCPU=1 {$1: null}
        400 Additional properties are not allowed ... '$1' was unexpected
        | project_id          | @1.0-1.7
        | user_id             | @1.0-1.7
        | consumer_generation | @1.0-1.27
        | mappings            | @1.0-1.33
        | consumer_type       | @1.0-1.37
        | color               | @1.0-
    a key that the microversion requires is missed
        PUT /allocations/$vm CLAIM host VCPU=1 {$1: absent} => 400 '$1' is a required property
        | allocations         | @1.0-
        | project_id          | @1.8-
        | user_id             | @1.8-
        | consumer_generation | @1.28-
        | consumer_type       | @1.38-
    a body that breaks the schema is refused
        PUT /allocations/$vm CLAIM host VCPU=1 {$1} => 400 JSON does not validate
        POST /allocations CLAIMS vm: host VCPU=1 {$1} => 400 JSON does not validate
        || project_id: "" || project_id: p*256 || user_id: u*256 || user_id: null
        || consumer_generation: "1" || consumer_generation: true || consumer_type: A*256
        || consumer_type: instance || consumer_type: unknown || consumer_type: all
        || allocations: [] || allocations: {a*32: {resources: {VCPU: 1}}}
        || allocations: {$host: {resources: {}}} || allocations: {$host: {resources: {vcpu: 1}}}
        || allocations: {$host: {resources: {VCPU: 0}}}
        || allocations: {$host: {resources: {VCPU: true}}}
        || allocations: {$host: {resources: {VCPU: 1}, color: 1}} || mappings: {}
        || mappings: {"1": [x]}
    POST wants at least one consumer, by a uuid of 36 characters
        POST /allocations $1 => 400 JSON does not validate
        || {} || [] || null || {x: {}} || {$A: {}} || {$A: null}
    faults of PUT: consumer, JSON, schema, generation, provider, class, inventory, amount
        > Content-Type: application/json
        PUT /allocations/$1 $2 => $3
        | nonsense | b'{' | 400 Malformed consumer_uuid | @1.0,1.28,1.39
        | $vm | b'{' | 400 Malformed JSON | @1.0,1.39
        | $vm | b'{}' | 400 not validate | @1.0,1.39
        | $vm | CLAIM nowhere CUSTOM_X=9 {consumer_generation: 7}
            | 409 placement.concurrent_update consumer generation conflict | @1.28,1.39
        | $vm | CLAIM nowhere CUSTOM_NOT_THERE=9 | 400 that does not exist | @1.0,1.12,1.39
        | $vm | CLAIM host CUSTOM_NOT_THERE=9 | 400 No such resource class | @1.0,1.12,1.39
        | $vm | CLAIM host DISK_GB=9 | 409 Inventory for | @1.0,1.12,1.39
        | $vm | CLAIM host VCPU=9 | 409 would exceed the capacity | @1.0,1.12,1.39
    faults of POST: all generations, provider, class, inventory
        POST /allocations CLAIMS $1 => $2
        | a: nowhere CUSTOM_NOT_THERE=9; b: host VCPU=1 {consumer_generation: 7}
            | 409 placement.concurrent_update consumer generation conflict
        | a: nowhere CUSTOM_NOT_THERE=9; b: host VCPU=1 | 400 that does not exist
        | a: host CUSTOM_NOT_THERE=9; b: host VCPU=1 | 400 No such resource class
        | a: host DISK_GB=9; b: host VCPU=1 | 409 Inventory for
        | a: host VCPU=9; b: host VCPU=1 | 409 exceed the capacity
    """,
    world=WORLD,
)
def test_refusals(rule: Rule, wire: Client) -> None:
    """400 and 409, and in which order."""
    rule.check(wire)


@rules(
    """
    the operator says whose a consumer without an owner is
        PUT /allocations/$vm CLAIM host VCPU=2 @1.7 => 204
        GET /allocations/$vm => 200 {project_id: no-project, user_id: no-user, ...}
    """,
    world="host VCPU=4",
)
def test_owners(rule: Rule, tmp_path: Path) -> None:
    """Below 1.8 a body has neither project nor user; two options set them."""
    rule.check(
        serve(
            tmp_path,
            "[placement]\nincomplete_consumer_project_id = no-project\n"
            "incomplete_consumer_user_id = no-user\n",
        )
    )
