# SPDX-License-Identifier: Apache-2.0
"""The text of errors: the sentences of OpenStack Placement 16.0.0, letter for letter.

nova, the SDK and OpenStack Placement's own tests match them. `make compare` compares many more with
a running Placement; these are the ones that clients are known to match.
"""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from berth.api import suggestions
from tests.api.claims import claim_body, consumer
from tests.api.worlds import (
    NOWHERE,
    custom_class,
    custom_trait,
    new_custom_name,
    new_name,
    new_uuid,
    provider,
    put_inventories,
    put_traits,
)
from tests.client import Client, Response

MALFORMED = (
    "The server could not comply with the request since it is either malformed or otherwise "
    "incorrect."
)
NOT_FOUND = "The resource could not be found."
CONFLICT = "There was a conflict when trying to complete your request."


def assert_says(answer: Response, sentence: str, message: str) -> None:
    """The detail is the sentence, an empty line, a blank, the message and two blanks."""
    assert answer.detail.startswith(f"{sentence}\n\n {message}  "), answer.detail


@dataclass(frozen=True)
class Told:
    """A query, a microversion that refuses it, and the message."""

    path: str
    message: str
    version: str = "1.39"


OTHER = "11111111-2222-3333-4444-555555555555"

QUERIES = [
    Told(
        "/resource_providers?resources=",
        "Badly formed resources parameter. Expected resources query string parameter in form: "
        "?resources=VCPU:2,MEMORY_MB:1024. Got: empty string.",
    ),
    Told(
        "/traits?name=VCPU",
        "Badly formatted name parameter. Expected name query string parameter in form: "
        '?name=[in|startswith]:[name1,name2|prefix]. Got: "VCPU"',
    ),
    Told(
        "/traits?associated=maybe",
        'The query parameter "associated" only accepts "true" or "false"',
    ),
    Told(
        f"/resource_providers?member_of={NOWHERE},{OTHER}",
        "Multiple values for 'member_of' must be prefixed with the 'in:' or '!in:' keyword using "
        f"the valid microversion. Got: {NOWHERE},{OTHER}",
    ),
    Told(
        f"/allocation_candidates?resources1=VCPU:1&member_of1=!{NOWHERE}",
        "Forbidden member_of1 parameters are not supported in the specified microversion",
        version="1.31",
    ),
    Told(
        "/allocation_candidates?required=HW_CPU_X86_AVX&required1=HW_CPU_X86_AVX",
        "All traits parameters must be associated with resources.  Found the following orphaned "
        "traits keys: required, required1",
        version="1.35",
    ),
    Told(
        f"/allocation_candidates?resources=VCPU:1&member_of1={NOWHERE}",
        "All member_of parameters must be associated with resources. Found the following orphaned "
        "member_of keys: member_of1",
        version="1.35",
    ),
    Told(
        "/allocation_candidates?",
        "At least one request group (`resources` or `resources{$S}`) is required.",
        version="1.25",
    ),
    Told(
        "/allocation_candidates?resources=VCPU:1&same_subtree=_X",
        "Real suffixes should be specified in `same_subtree`: ['_X'] not found in [''].",
    ),
    Told(
        "/allocation_candidates?resources=VCPU:1&required=B,!A,A,!B&required=in:B,A&required=A",
        "Conflicting required and forbidden traits found in the following traits keys: "
        "required: (A), required: (A), required: (A, B), required: (B)",
    ),
    Told(
        "/resource_providers?required=in:",
        "Invalid query string parameters: Expected 'required' parameter value of the form: "
        "in:HW_CPU_X86_VMX,CUSTOM_MAGIC. Got an empty trait in: in:",
    ),
    Told(
        "/resource_providers?required=CUSTOM_NOT_THERE",
        'Invalid trait(s) in "required" parameter: No such trait(s): CUSTOM_NOT_THERE.',
    ),
    Told(
        "/allocation_candidates?resources=VCPU:1&required=CUSTOM_NOT_THERE",
        "No such trait(s): CUSTOM_NOT_THERE.",
    ),
]


@pytest.mark.parametrize("told", QUERIES, ids=lambda told: told.path)
def test_a_query_that_cannot_be_is_told_so(api: Client, told: Told) -> None:
    """With the message that clients match."""
    assert_says(api.get(told.path, version=told.version), MALFORMED, told.message)


def test_what_keeps_an_inventory_is_told_in_its_place(api: Client) -> None:
    """When one is deleted, when all are, and when a set replaces them."""
    host = provider(api, {"VCPU": 4})
    consumer(api, {host: {"VCPU": 1}})
    here = f"/resource_providers/{host}/inventories"
    in_use = f"Inventory for 'VCPU' on resource provider '{host}' in use."
    deleting = f"Unable to delete inventory of class VCPU: {in_use}"
    none = {"inventories": {}, "resource_provider_generation": 2}
    assert_says(api.delete(f"{here}/VCPU"), CONFLICT, deleting)
    assert_says(api.delete(here), CONFLICT, in_use)
    assert_says(api.put(here, json=none), CONFLICT, f"update conflict: {in_use}")
    reshape = {"inventories": {host: none}, "allocations": {}}
    assert_says(api.post("/reshaper", json=reshape), CONFLICT, f"update conflict: {in_use}")


def test_an_old_generation_is_told_in_its_place(api: Client) -> None:
    """Traits and aggregates have another message than inventories, and a reshape has numbers."""
    host = provider(api, {"VCPU": 4})
    stale = {"resource_provider_generation": 7}
    here = f"/resource_providers/{host}"
    changed = (
        "Resource provider's generation already changed. "
        "Please update the generation and try again."
    )
    conflict = "resource provider generation conflict"
    assert_says(api.put(f"{here}/traits", json={"traits": [], **stale}), CONFLICT, changed)
    assert_says(api.put(f"{here}/aggregates", json={"aggregates": [], **stale}), CONFLICT, changed)
    body = {"inventories": {}, **stale}
    assert_says(api.put(f"{here}/inventories", json=body), CONFLICT, conflict)
    reshape = {"inventories": {host: body}, "allocations": {}}
    numbers = f"{conflict} for provider {host}: actual: 1, given: 7"
    assert_says(api.post("/reshaper", json=reshape), CONFLICT, numbers)


def test_an_unknown_provider_is_told_in_its_place(api: Client) -> None:
    """Some messages repeat it, and all spell the uuid as the path does."""
    for spelling in (NOWHERE, NOWHERE.upper(), NOWHERE.replace("-", "")):
        here = f"/resource_providers/{spelling}"
        plain = f"No resource provider with uuid {spelling} found"
        for answer, message in (
            (api.get(here), plain),
            (api.delete(here), f"{plain} for delete"),
            (api.get(f"{here}/inventories"), f"{plain} : {plain}"),
            (api.get(f"{here}/usages"), f"{plain}: {plain}"),
            (api.get(f"{here}/allocations"), f"Resource provider '{spelling}' not found: {plain}"),
            (api.delete(f"{here}/inventories"), plain),
        ):
            assert_says(answer, NOT_FOUND, message)


def test_what_a_path_names_is_shown_byte_by_byte(api: Client) -> None:
    """Like OpenStack Placement, which decodes paths as latin-1."""
    answer = api.get("/resource_classes/%C3%A9")
    assert_says(answer, NOT_FOUND, "No such resource class Ã©.")


def test_what_keeps_a_provider_is_told(api: Client) -> None:
    """Children, with the word "parent", and allocations."""
    host = provider(api, {"VCPU": 4})
    child = provider(api, {"VCPU": 4}, parent=host)
    consumer(api, {child: {"VCPU": 1}})
    message = f"Unable to delete parent resource provider {host}: It has child resource providers."
    assert_says(api.delete(f"/resource_providers/{host}"), CONFLICT, message)
    message = f"Unable to delete resource provider {child}: Resource provider has allocations."
    assert_says(api.delete(f"/resource_providers/{child}"), CONFLICT, message)


def test_a_provider_that_cannot_be_named_or_placed_so_is_told(api: Client) -> None:
    """The name is taken or empty, or the parent is missing or the provider itself."""
    name, uuid = new_name(), new_uuid()
    taken = provider(api, name=name)
    other = provider(api)
    answer = api.post("/resource_providers", json={"name": name})
    message = f"Conflicting resource provider name: {name} already exists."
    assert_says(answer, CONFLICT, message)
    answer = api.put(f"/resource_providers/{other}", json={"name": name})
    assert_says(answer, CONFLICT, f"Conflicting resource provider {name} already exists.")
    failed = "Object action create failed because:"
    answer = api.post("/resource_providers", json={"name": "", "uuid": uuid})
    message = f'Unable to create resource provider "", {uuid}: {failed} name is required'
    assert_says(answer, MALFORMED, message)
    body = {"name": name, "parent_provider_uuid": NOWHERE}
    message = f"{failed} parent provider UUID does not exist."
    answer = api.put(f"/resource_providers/{taken}", json=body)
    assert_says(answer, MALFORMED, f"Unable to save resource provider {taken}: {message}")


def test_a_trait_that_cannot_be_is_told_how_it_should_be(api: Client) -> None:
    """With all rules for names."""
    message = (
        "The trait is invalid. A valid trait must be no longer than 255 characters, start with the "
        'prefix "CUSTOM_" and use following characters: "A"-"Z", "0"-"9" and "_"'
    )
    assert_says(api.put("/traits/lower"), MALFORMED, message)


def test_a_claim_is_told_the_first_fault_and_then_the_numbers(api: Client) -> None:
    """The numbers are berth's own, and come after the text that clients match."""
    host = provider(api, {"VCPU": 4, "DISK_GB": 9})
    bare, empty = provider(api), provider(api)
    begin = "Unable to allocate inventory:"
    exceeded = (
        f"{begin} Unable to create allocation for 'VCPU' on resource provider '{host}'. "
        "The requested amount would exceed the capacity."
    )
    of_pcpu = f"{begin} Inventory for 'PCPU' on resource provider '{host}' invalid."
    of_all = f"{begin} Inventory for 'VCPU, PCPU' on resource provider '{bare}' invalid."
    of_both = of_all.replace(bare, f"{bare}, {empty}")
    for claims, message in (
        ({host: {"VCPU": 5}}, f"{exceeded}  5 asked, 4 free."),
        ({host: {"VCPU": 5, "PCPU": 1}}, exceeded),
        ({host: {"PCPU": 1, "VCPU": 5}}, of_pcpu),
        ({host: {"VCPU": 1}, bare: {"PCPU": 1}}, of_all),
        ({bare: {"VCPU": 1}, host: {"VCPU": 1}, empty: {"PCPU": 1}}, of_both),
    ):
        answer = api.put(f"/allocations/{new_uuid()}", json=claim_body("1.39", claims))
        assert answer.detail.startswith(f"{CONFLICT}\n\n {message}"), answer.detail


def test_amounts_are_added_up_in_the_order_of_the_request(api: Client) -> None:
    """An earlier consumer's excess is reported before that of a later one."""
    host = provider(api, {"VCPU": 4, "DISK_GB": 9})
    body = {
        new_uuid(): claim_body("1.39", {host: {"VCPU": 3, "DISK_GB": 10}}),
        new_uuid(): claim_body("1.39", {host: {"VCPU": 3}}),
    }
    message = (
        f"Unable to allocate inventory: Unable to create allocation for 'DISK_GB' on resource "
        f"provider '{host}'. The requested amount would exceed the capacity."
    )
    assert_says(api.post("/allocations", json=body), CONFLICT, message)


def test_a_claim_that_takes_no_more_is_not_told_of_the_capacity(api: Client) -> None:
    """An inventory shrank below its usage; the error is about the next amount."""
    host = provider(api, {"VCPU": 4})
    holder = consumer(api, {host: {"VCPU": 4}})
    put_inventories(api, host, {"VCPU": {"total": 1}, "DISK_GB": {"total": 9, "step_size": 3}})
    body = claim_body("1.39", {host: {"VCPU": 4, "DISK_GB": 1}}, consumer_generation=1)
    message = (
        f"Unable to allocate inventory: Unable to create allocation for 'DISK_GB' on resource "
        f"provider '{host}'. The requested amount would violate inventory constraints."
    )
    assert_says(api.put(f"/allocations/{holder}", json=body), CONFLICT, message)


def test_what_a_request_lets_go_is_named_too(api: Client) -> None:
    """A provider without inventory of any class in the request."""
    host, bare = provider(api, {"DISK_GB": 9}), provider(api)
    holder, new = consumer(api, {host: {"DISK_GB": 1}}), new_uuid()
    body = {
        new: claim_body("1.39", {bare: {"VCPU": 1}}),
        holder: claim_body("1.39", {}, consumer_generation=1),
    }
    message = (
        f"Unable to allocate inventory: Inventory for 'VCPU, DISK_GB' on resource provider "
        f"'{bare}' invalid."
    )
    assert_says(api.post("/allocations", json=body), CONFLICT, message)


def test_who_has_what_a_request_lets_go_is_not_without_inventory(api: Client) -> None:
    """It has inventory of the class that the request removes; the message names only the missing
    one."""
    host, other = provider(api, {"DISK_GB": 9}), provider(api, {"DISK_GB": 9})
    holder, new = consumer(api, {host: {"DISK_GB": 1}}), new_uuid()
    body = {
        new: claim_body("1.39", {other: {"VCPU": 1}}),
        holder: claim_body("1.39", {}, consumer_generation=1),
    }
    message = (
        f"Unable to allocate inventory: Inventory for 'VCPU' on resource provider '{other}' "
        "invalid."
    )
    assert_says(api.post("/allocations", json=body), CONFLICT, message)


def test_a_generation_is_shown_as_it_was_sent(api: Client) -> None:
    """1.0 is shown as 1."""
    host = provider(api, {"VCPU": 4})
    body = claim_body("1.39", {host: {"VCPU": 1}}, consumer_generation=7.0)
    message = "consumer generation conflict - expected null but got 7.0"
    assert_says(api.put(f"/allocations/{new_uuid()}", json=body), CONFLICT, message)
    kept = {"inventories": {}, "resource_provider_generation": 7.0}
    answer = api.post("/reshaper", json={"inventories": {host: kept}, "allocations": {}})
    message = f"resource provider generation conflict for provider {host}: actual: 1, given: 7.0"
    assert_says(answer, CONFLICT, message)


def test_an_unknown_class_is_told_in_its_place(api: Client) -> None:
    """For one consumer, for several, and for a reshape."""
    host, uuid, name = provider(api, {"VCPU": 4}), new_uuid(), new_custom_name()
    body = claim_body("1.39", {host: {name: 1}})
    unknown = f"No such resource class {name}."
    answer = api.put(f"/allocations/{uuid}", json=body)
    message = f"Unable to allocate inventory for consumer {uuid}: {unknown}"
    assert_says(answer, MALFORMED, message)
    answer = api.post("/allocations", json={uuid: body})
    assert_says(answer, MALFORMED, f"Unable to allocate inventory {unknown}")
    kept = {"inventories": {"VCPU": {"total": 4}}, "resource_provider_generation": 1}
    reshape = {"inventories": {host: kept}, "allocations": {uuid: body}}
    answer = api.post("/reshaper", json=reshape)
    assert_says(answer, MALFORMED, f"malformed reshaper data: {unknown}")


def test_a_breach_of_a_schema_says_where_it_is(api: Client) -> None:
    """The keyword and the paths in the schema and in the value; the dumps in between may differ."""
    answer = api.post("/resource_providers", json={"name": "x" * 201, "more": 1})
    begin = f"{MALFORMED}\n\n JSON does not validate: Additional properties are not allowed "
    assert answer.detail.startswith(f"{begin}('more' was unexpected)  Failed validating ")
    answer = api.get("/allocation_candidates?resources=VCPU:1&limit=x")
    assert (
        " Invalid query string parameters: 'x' does not match '^[1-9][0-9]*$'  "
        "Failed validating 'pattern' in schema['properties']['limit']:     {"
    ) in answer.detail
    assert "}  On instance['limit']:     'x'  " in answer.detail


@pytest.mark.parametrize(
    ("method", "path", "headers", "detail"),
    [
        (
            "PATCH",
            "/traits",
            {},
            "The method PATCH is not allowed for this resource. \n\n "
            "The method specified is not allowed for this resource.",
        ),
        (
            "PUT",
            f"/resource_providers/{NOWHERE}",
            {"content-type": "text/plain"},
            "The request media type text/plain is not supported by this server. \n\n "
            "The media type text/plain is not supported, use application/json",
        ),
        (
            "GET",
            "/traits",
            {"openstack-api-version": "placement 1.99"},
            "The resource could not be generated that was acceptable to your browser (content of "
            "type application/json. \n\n Invalid microversion: Unacceptable version header: 1.99",
        ),
        (
            "GET",
            "/traits",
            {"openstack-api-version": "placement 1.99", "accept": "*/*"},
            "The resource could not be generated that was acceptable to your browser (content of "
            "type application/json. \n\n ",
        ),
        (
            "GET",
            "/traits",
            {"openstack-api-version": "placement 1.99", "accept": "application/json;q=0.5"},
            "The resource could not be generated that was acceptable to your browser (content of "
            "type application/json;q=0.5. \n\n ",
        ),
        ("GET", "/nothing", {}, f"{NOT_FOUND}\n\n   "),
    ],
)
def test_what_no_handler_sees_is_told_as_webob_does(
    api: Client, method: str, path: str, headers: dict[str, str], detail: str
) -> None:
    """The sentence repeats the method or a header of the request."""
    answer = api.request(method, path, headers=headers)
    assert answer.detail.startswith(detail), answer.detail


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("a < b > c", "a  c"),
        ("<br>x", "\nx"),
        ("<!-- y --> z", " y  z"),
        ("a\r\nb\tc", "a b\tc"),
        ("<a<br>b>", ""),
        ("x <", "x <"),
        ("{error}", "{error}"),
    ],
)
def test_tags_go_from_a_message_as_webob_takes_them(api: Client, name: str, shown: str) -> None:
    """Everything between an opening bracket and the next closing one is removed."""
    name = new_name(name)
    provider(api, name=name)
    answer = api.post("/resource_providers", json={"name": name})
    ending = name.rpartition("-")[2]
    message = f"Conflicting resource provider name: {shown}-{ending} already exists."
    assert_says(answer, CONFLICT, message)


def test_the_other_forms_of_an_error_say_the_same(api: Client) -> None:
    """In plain text, and in HTML with everything escaped."""
    path = "/traits/CUSTOM_%26"
    text = api.get(path, headers={"accept": "text/plain"}).text
    assert text == f"404 Not Found\n\n{NOT_FOUND}\n\n No such trait(s): CUSTOM_&.  "
    page = api.get(path, headers={"accept": "text/html"}).text
    assert f"  {NOT_FOUND}<br /><br />\nNo such trait(s): CUSTOM_&amp;.\n\n" in page


# --- Did you mean --------------------------------------------------------------------------------


def test_who_misspells_a_trait_reads_what_there_is(api: Client) -> None:
    """The message suggests similar traits, for queries and bodies, whichever letters are wrong."""
    host = provider(api)
    for misspelt in ("HW_CPU_X86_AVX22", "hw_cpu_x86_avx2"):
        body = {"traits": [misspelt], "resource_provider_generation": 0}
        for answer in (
            api.get(f"/resource_providers?required={misspelt}"),
            api.get(f"/allocation_candidates?resources=VCPU:1&required={misspelt}"),
            api.put(f"/resource_providers/{host}/traits", json=body),
        ):
            assert "  Did you mean HW_CPU_X86_AVX2" in answer.detail


def test_who_misspells_a_resource_class_reads_what_there_is(api: Client) -> None:
    """The message suggests similar classes, custom ones included, for queries and bodies."""
    host, name = provider(api), custom_class(api)
    record = {"inventories": {f"{name}S": {"total": 1}}, "resource_provider_generation": 0}
    for answer in (
        api.get(f"/resource_providers?resources={name}S:1"),
        api.get(f"/allocation_candidates?resources={name}S:1"),
        api.put(f"/resource_providers/{host}/inventories", json=record),
        api.put(f"/allocations/{new_uuid()}", json=claim_body("1.39", {host: {f"{name}S": 1}})),
    ):
        assert f"  Did you mean {name}" in answer.detail


def test_of_several_unknown_traits_each_is_named(api: Client) -> None:
    """The message that clients match names only one of them."""
    existing = custom_trait(api)
    put_traits(api, provider(api), [existing])
    answer = api.get(f"/resource_providers?required={existing}X,HW_CPU_X86_AVX22,CUSTOM_Q")
    assert "HW_CPU_X86_AVX22" in answer.detail and "CUSTOM_Q" in answer.detail
    assert f"Did you mean {existing}" in answer.detail
    assert "instead of HW_CPU_X86_AVX22?" in answer.detail


def test_of_many_unknown_traits_some_are_named_and_the_others_counted(api: Client) -> None:
    """If all are named, there are no others to count."""
    many = [f"CUSTOM_QQQ_{number:03}" for number in range(suggestions.LISTED_MAX + 3)]
    for count, others in ((0, ""), (3, " and 3 more")):
        asked = many[: suggestions.LISTED_MAX + count]
        answer = api.get(f"/resource_providers?required={','.join(asked)}")
        named = ", ".join(asked[: suggestions.LISTED_MAX])
        assert answer.detail.endswith(f"  Unknown are {named}{others}.")


def test_only_for_so_many_names_others_are_suggested(api: Client) -> None:
    """Comparing a name with all existing ones takes time, so the number is limited."""
    misspelt = [f"HW_CPU_X86_{name}" for name in ("AVX22", "SSE44", "BMI22", "FMA33", "TSXX")]
    answer = api.get(f"/resource_providers?required={','.join(misspelt)}")
    assert answer.detail.count("Did you mean") == suggestions.SUGGESTED_FOR_MAX < len(misspelt)


def test_nothing_is_suggested_that_is_not_like_it(api: Client) -> None:
    """The message says only that it is unknown."""
    answer = api.get("/resource_providers?required=CUSTOM_QQQQQQQQQQ")
    assert "Did you mean" not in answer.detail


def test_only_so_many_names_are_compared() -> None:
    """Only names of similar length are compared, up to a limit; a very long name is compared with
    none."""
    wanted = ("CUSTOM_WANTED",)
    others = [f"CUSTOM_{number:06}" for number in range(suggestions.COMPARED_MAX - 1)]
    assert suggestions.close_names("CUSTOM_WANTEX", [*others, *wanted]) == wanted
    others.append("CUSTOM_999999")
    assert suggestions.close_names("CUSTOM_WANTEX", [*others, *wanted]) == ()
    others = [f"CUSTOM_{'X' * 40}{number}" for number in range(suggestions.COMPARED_MAX)]
    assert suggestions.close_names("CUSTOM_WANTEX", [*others, *wanted]) == wanted
    long = "X" * 64
    assert suggestions.close_names(long, [long]) == (long,)
    assert suggestions.close_names(f"{long}X", [f"{long}X"]) == ()
