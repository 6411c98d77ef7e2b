# SPDX-License-Identifier: Apache-2.0
"""The text of errors: the sentences of OpenStack Placement 16.0.0, letter for letter.

nova, neutron, the SDK, osc-placement and OpenStack Placement's own tests match them. `make compare`
compares many more with a running Placement; these are the ones that clients are known to match.
"""

from __future__ import annotations

import pytest

from berth.api import app
from tests.api.claims import claim_body
from tests.api.wire import Rule, rules
from tests.api.worlds import custom_class, custom_trait, new_uuid, provider
from tests.client import Client

WORLD = """
    host   VCPU=4  DISK_GB=9
    busy   VCPU=4(used:1)
    empty
    bare
    disk   DISK_GB=9(used:1)
    other  DISK_GB=9
    small  VCPU=1(used:4)  DISK_GB=9(step:3)
"""


@rules(
    """
    a query that cannot be is told so
        GET /$1 => 400 MALFORMED $2
        | resource_providers?resources= | Badly formed resources parameter. Expected resources query
            string parameter in form: ?resources=VCPU:2,MEMORY_MB:1024. Got: empty string.
        | traits?name=VCPU | Badly formatted name parameter. Expected name query string parameter in
            form: ?name=[in|startswith]:[name1,name2|prefix]. Got: "VCPU"
        | traits?associated=maybe
            | The query parameter "associated" only accepts "true" or "false"
        | resource_providers?member_of=$A,$B | Multiple values for 'member_of' must be prefixed with
            the 'in:' or '!in:' keyword using the valid microversion. Got: $A,$B
        | allocation_candidates?resources1=VCPU:1&member_of1=!$A
            | Forbidden member_of1 parameters are not supported in the specified microversion
            | @1.31
        | allocation_candidates?required=HW_CPU_X86_AVX&required1=HW_CPU_X86_AVX
            | All traits parameters must be associated with resources.  Found the following orphaned
            traits keys: required, required1 | @1.35
        | allocation_candidates?resources=VCPU:1&member_of1=$A
            | All member_of parameters must be associated with resources. Found the following
            orphaned member_of keys: member_of1 | @1.35
        | allocation_candidates?
            | At least one request group (`resources` or `resources{ ... }`) is required. | @1.25
        | allocation_candidates?resources=VCPU:1&required=B,!A,A,!B&required=in:B,A&required=A
            | Conflicting required and forbidden traits found in the following traits keys:
            required: (A), required: (A), required: (A, B), required: (B)
        | resource_providers?required=in: | Invalid query string parameters: Expected 'required'
            parameter value of the form: in:HW_CPU_X86_VMX,CUSTOM_MAGIC. Got an empty trait in: in:
        | resource_providers?required=CUSTOM_NOT_THERE
            | Invalid trait(s) in "required" parameter: No such trait(s): CUSTOM_NOT_THERE.
        | allocation_candidates?resources=VCPU:1&required=CUSTOM_NOT_THERE
            | No such trait(s): CUSTOM_NOT_THERE.
    a suffix that is not there is told so
        GET /allocation_candidates?resources=VCPU:1&same_subtree=_X
        400 placement.query.bad_value MALFORMED Real suffixes should be specified in `same_subtree`:
            ['_X'] not found in [''].
    what keeps an inventory is told in its place
        $1 => 409 $2 CONFLICT $3
        | DELETE $busy/inventories/VCPU | placement.concurrent_update | Unable to delete inventory
            of class VCPU: Inventory for 'VCPU' on resource provider '$busy' in use.
        | DELETE $busy/inventories | placement.inventory.inuse
            | Inventory for 'VCPU' on resource provider '$busy' in use.
        | PUT $busy/inventories {inventories: {}, seen: $busy} | placement.inventory.inuse
            | update conflict: Inventory for 'VCPU' on resource provider '$busy' in use.
        | POST /reshaper RESHAPE busy | placement.inventory.inuse
            | update conflict: Inventory for 'VCPU' on resource provider '$busy' in use.
    an old generation is told in its place
        $1 => 409 placement.concurrent_update CONFLICT $2
        | PUT $host/traits {traits: [], seen: 7} | Resource provider's generation already changed.
            Please update the generation and try again.
        | PUT $host/aggregates {aggregates: [], seen: 7} | Resource provider's generation already
            changed. Please update the generation and try again.
        | PUT $host/inventories {inventories: {}, seen: 7} | resource provider generation conflict
        | POST /reshaper RESHAPE host {seen: 7}
            | resource provider generation conflict for provider $host: actual: 1, given: 7
        | POST /reshaper RESHAPE host {seen: 7.0}
            | resource provider generation conflict for provider $host: actual: 1, given: 7.0
        | PUT /allocations/$vm CLAIM host VCPU=1 {consumer_generation: 7.0}
            | consumer generation conflict - expected null but got 7.0
        | PUT /allocations/$busy.consumer CLAIM busy VCPU=1
            | consumer generation conflict - expected 1 but got None
    an unknown provider is told in its place, as the path spells it
        $1 /resource_providers/$2$3 => 404 NOT_FOUND $4
        | GET    | $nowhere | | No resource provider with uuid $nowhere found
        | GET    | $nowhere.upper | | No resource provider with uuid $nowhere.upper found
        | GET    | 0*32 | | No resource provider with uuid 0*32 found
        | DELETE | $nowhere | | No resource provider with uuid $nowhere found for delete
        | GET    | $nowhere | /inventories | No resource provider with uuid $nowhere found : No
            resource provider with uuid $nowhere found
        | GET    | $nowhere | /usages | No resource provider with uuid $nowhere found: No resource
            provider with uuid $nowhere found
        | GET    | $nowhere | /allocations | Resource provider '$nowhere' not found: No resource
            provider with uuid $nowhere found
        | DELETE | $nowhere | /inventories | No resource provider with uuid $nowhere found
        | GET    | $nowhere | /inventories/VCPU | No resource provider with uuid
        | DELETE | $nowhere | /inventories/VCPU | No resource provider with uuid
        | GET    | $empty | /inventories/VCPU | No inventory of class VCPU for $empty
        | DELETE | $empty | /inventories/VCPU | No inventory of class VCPU found for delete
    an unknown name or consumer is told in its place, bytes of a path one by one
        $1 => 404 NOT_FOUND $2
        | GET /resource_classes/%C3%A9 | No such resource class Ã©.
        | DELETE /allocations/$nowhere | No allocations for consumer '$nowhere'
        | GET /nothing |
    a provider that cannot be named or placed so is told
        $1 => 400 MALFORMED $2
        | POST /resource_providers {name: "", uuid: $A} | Unable to create resource provider "", $A:
            Object action create failed because: name is required
        | PUT $host {name: $host.name, parent_provider_uuid: $A} | Unable to save resource provider
            $host: Object action create failed because: parent provider UUID does not exist.
        | PUT /traits/lower | The trait is invalid. A valid trait must be no longer than 255
            characters, start with the prefix "CUSTOM_" and use following characters: "A"-"Z",
            "0"-"9" and "_"
    a name that is taken is told
        $1 {name: $host.name}
        409 placement.duplicate_name CONFLICT Conflicting resource provider $2
        | POST /resource_providers | name: $host.name already exists.
        | PUT $empty | $host.name already exists.
    a claim is told the first fault, and then the numbers, which are berth's own
        PUT /allocations/$vm CLAIM $1 => 409 CONFLICT Unable to allocate inventory: $2
        | host VCPU=5 | Unable to create allocation for 'VCPU' on resource provider '$host'. The
            requested amount would exceed the capacity.  5 asked, 4 free.
        | host VCPU=5 PCPU=1 | Unable to create allocation for 'VCPU' on resource provider '$host'.
            The requested amount would exceed the capacity.
        | host PCPU=1 VCPU=5 | Inventory for 'PCPU' on resource provider '$host' invalid.
        | host VCPU=1 bare PCPU=1 | Inventory for 'VCPU, PCPU' on resource provider '$bare' invalid.
        | bare VCPU=1 host VCPU=1 empty PCPU=1
            | Inventory for 'VCPU, PCPU' on resource provider '$bare, $empty' invalid.
    a claim that takes no more is not told of the capacity
        PUT /allocations/$small.consumer CLAIM small VCPU=4 DISK_GB=1 {consumer_generation: 1}
        409 CONFLICT Unable to allocate inventory: Unable to create allocation for 'DISK_GB' on
            resource provider '$small'. The requested amount would violate inventory constraints.
    of several consumers the first fault is told; what a request lets go is named, if it is missing
        POST /allocations CLAIMS $1 => 409 CONFLICT Unable to allocate inventory: $2
        | a: host VCPU=3 DISK_GB=10; b: host VCPU=3 | Unable to create allocation for 'DISK_GB' on
            resource provider '$host'. The requested amount would exceed the capacity.
        | a: bare VCPU=1; disk.consumer: {consumer_generation: 1}
            | Inventory for 'VCPU, DISK_GB' on resource provider '$bare' invalid.
        | a: other VCPU=1; disk.consumer: {consumer_generation: 1}
            | Inventory for 'VCPU' on resource provider '$other' invalid.
    an unknown class is told in its place
        $1 host $CUSTOM_NONE=1 => 400 MALFORMED $2
        | PUT /allocations/$vm CLAIM
            | Unable to allocate inventory for consumer $vm: No such resource class $(CUSTOM_NONE).
        | POST /allocations CLAIMS vm:
            | Unable to allocate inventory No such resource class $(CUSTOM_NONE).
        | POST /reshaper RESHAPE host VCPU=4 >> vm:
            | malformed reshaper data: No such resource class $(CUSTOM_NONE).
    a breach of a schema says where it is
        $1 => 400 MALFORMED $2
        | POST /resource_providers {name: x*201, more: 1} | JSON does not validate: Additional
            properties are not allowed ('more' was unexpected)  Failed validating
        | GET /allocation_candidates?resources=VCPU:1&limit=x | Invalid query string parameters: 'x'
            does not match '^[1-9][0-9]*$'  Failed validating 'pattern' in
            schema['properties']['limit']:     { ... }  On instance['limit']:     'x'
    these phrases are shown by osc-placement
        $1 => $2
        | PUT $host/aggregates {aggregates: [x], seen: 7} | 400 is not a 'uuid'
        | PUT $host/inventories {inventories: {NO_SUCH: {total: 1}}, seen: 1}
            | 400 Unknown resource class
        | POST /resource_classes {name: VCPU} | 400 JSON does not validate
        | DELETE /resource_classes/VCPU | 400 Cannot delete standard resource class
        | GET /traits/CUSTOM_NOT_THERE | 404 No such trait
    what no handler sees is told as webob does
        > Content-Type: text/plain
        PUT $nowhere {}
        415 The request media type text/plain is not supported by this server. ... The media type
            text/plain is not supported, use application/json
        PATCH /traits
        405 The method PATCH is not allowed for this resource. ... The method specified is not
            allowed for this resource.
        > Accept: text/plain
        GET /traits/CUSTOM_%26 => 404 404 Not Found ... NOT_FOUND No such trait(s): CUSTOM_&.
        > Accept: text/html
        GET /traits/CUSTOM_%26
        404   NOT_FOUND<br /><br /> ... No such trait(s): CUSTOM_&amp;. ...
    """.replace("MALFORMED ", "is either malformed or otherwise incorrect. ... ")
    .replace("CONFLICT ", "There was a conflict when trying to complete your request. ... ")
    .replace("NOT_FOUND ", "The resource could not be found. ... ")
    .replace("NOT_FOUND", "The resource could not be found."),
    world=WORLD,
)
def test_sentences(rule: Rule, wire: Client) -> None:
    """A sentence for the status, and a message."""
    rule.check(wire)


@pytest.mark.parametrize(
    ("accept", "shown"),
    [(None, "application/json"), ("*/*", "application/json"), ("application/json;q=0.5",) * 2],
)
def test_a_version_that_is_not_served_is_told_as_webob_does(
    api: Client, accept: str | None, shown: str
) -> None:
    """The sentence repeats the header of the request."""
    answer = api.get("/traits", version="1.99", headers={"Accept": accept})
    assert answer.detail.startswith(
        "The resource could not be generated that was acceptable to your browser (content of type "
        f"{shown}. \n\n Invalid microversion: Unacceptable version header: 1.99"
    )


# --- Did you mean --------------------------------------------------------------------------------


def test_who_misspells_a_name_reads_what_there_is(api: Client) -> None:
    """The message suggests similar traits and classes, custom ones included, for queries and
    bodies, whichever letters are wrong."""
    host, name = provider(api), custom_class(api)
    path, seen = f"/resource_providers/{host}", {"resource_provider_generation": 0}
    record = {"inventories": {f"{name}S": {"total": 1}}, **seen}
    for meant, answer in (
        ("HW_CPU_X86_AVX2", api.get("/resource_providers?required=hw_cpu_x86_avx2")),
        (
            "HW_CPU_X86_AVX2",
            api.get("/allocation_candidates?resources=VCPU:1&required=HW_CPU_X86_AVX22"),
        ),
        (
            "HW_CPU_X86_AVX2",
            api.put(f"{path}/traits", json={"traits": ["HW_CPU_X86_AVX22"], **seen}),
        ),
        (name, api.get(f"/resource_providers?resources={name}S:1")),
        (name, api.get(f"/allocation_candidates?resources={name}S:1")),
        (name, api.put(f"{path}/inventories", json=record)),
        (
            name,
            api.put(f"/allocations/{new_uuid()}", json=claim_body("1.39", {host: {f"{name}S": 1}})),
        ),
    ):
        assert f"  Did you mean {meant}" in answer.detail


def test_of_several_unknown_traits_each_is_named(api: Client) -> None:
    """The message that clients match names only one of them."""
    existing = custom_trait(api)
    answer = api.get(f"/resource_providers?required={existing}X,HW_CPU_X86_AVX22,CUSTOM_Q")
    assert "HW_CPU_X86_AVX22" in answer.detail and "CUSTOM_Q" in answer.detail
    assert f"Did you mean {existing}" in answer.detail
    assert "instead of HW_CPU_X86_AVX22?" in answer.detail


def test_of_many_unknown_traits_some_are_named_and_the_others_counted(api: Client) -> None:
    """If all are named, there are no others to count; nothing is suggested that is not like one."""
    many = [f"CUSTOM_QQQ_{number:03}" for number in range(app.LISTED_MAX + 3)]
    for count, others in ((0, ""), (3, " and 3 more")):
        asked = many[: app.LISTED_MAX + count]
        answer = api.get(f"/resource_providers?required={','.join(asked)}")
        named = ", ".join(asked[: app.LISTED_MAX])
        assert answer.detail.endswith(f"  Unknown are {named}{others}.")
        assert "Did you mean" not in answer.detail


def test_only_for_so_many_names_others_are_suggested(api: Client) -> None:
    """Comparing a name with all existing ones takes time, so the number is limited."""
    misspelt = [f"HW_CPU_X86_{name}" for name in ("AVX22", "SSE44", "BMI22", "FMA33", "TSXX")]
    answer = api.get(f"/resource_providers?required={','.join(misspelt)}")
    assert answer.detail.count("Did you mean") == app.SUGGESTED_FOR_MAX < len(misspelt)


def test_only_so_many_names_are_compared() -> None:
    """Only names of similar length, up to a limit; a very long name is compared with none."""
    wanted = ("CUSTOM_WANTED",)
    others = [f"CUSTOM_{number:06}" for number in range(app.COMPARED_MAX - 1)]
    assert app.close_names("CUSTOM_WANTEX", [*others, *wanted]) == wanted
    others.append("CUSTOM_999999")
    assert app.close_names("CUSTOM_WANTEX", [*others, *wanted]) == ()
    others = [f"CUSTOM_{'X' * 40}{number}" for number in range(app.COMPARED_MAX)]
    assert app.close_names("CUSTOM_WANTEX", [*others, *wanted]) == wanted
    long = "X" * 64
    assert app.close_names(long, [long]) == (long,)
    assert app.close_names(f"{long}X", [f"{long}X"]) == ()
