# SPDX-License-Identifier: Apache-2.0
"""Valid names and numbers.

Source: rest-api.md 1.10.
"""

from typing import Any

import pytest

from tests.api.answers import assert_refused
from tests.api.claims import claim_body
from tests.api.worlds import (
    custom_class,
    custom_trait,
    new_custom_name,
    new_name,
    new_uuid,
    provider,
)
from tests.client import Client
from tests.routes import VERSIONS

INT_MAX = 2147483647

NEWLINE = pytest.mark.deliberately_different("the original takes names that end with a newline")


def long_name(length: int) -> str:
    """A custom name with this many characters."""
    return new_custom_name().ljust(length, "X")


@pytest.mark.parametrize("version", VERSIONS)
def test_a_provider_name_has_at_most_200_characters(api: Client, version: str) -> None:
    """Characters, not bytes."""
    fits = new_name("é").ljust(200, "é")
    created = api.post("/resource_providers", json={"name": fits}, version=version)
    assert created.status in (200, 201)
    answer = api.post("/resource_providers", json={"name": fits + "é"}, version=version)
    assert_refused(answer, 400, "Failed validating 'maxLength'", version=version)
    answer = api.put(f"/resource_providers/{provider(api)}", json={"name": fits + "é"})
    assert_refused(answer, 400, "Failed validating 'maxLength'")


@pytest.mark.parametrize("name", [None, 1, True, ["x"], {"x": 1}], ids=repr)
def test_a_provider_name_is_text(api: Client, name: Any) -> None:
    """Nothing else."""
    assert_refused(api.post("/resource_providers", json={"name": name}), 400, "'type'")


def test_a_provider_name_is_compared_exactly(api: Client) -> None:
    """Letter case, blanks and accents make a different name."""
    name = new_name("host")
    names = {name, name.upper(), f"{name} ", f" {name}", name.replace("o", "ö", 1)}
    for other in names:
        assert api.post("/resource_providers", json={"name": other}).status == 200
    providers = api.get(f"/resource_providers?name={name}").json["resource_providers"]
    assert [rp["name"] for rp in providers] == [name]


@pytest.mark.parametrize("path", ["/traits", "/resource_classes"])
def test_a_custom_name_has_at_most_255_characters(api: Client, path: str) -> None:
    """Traits and classes."""
    assert api.put(f"{path}/{long_name(255)}").status == 201
    assert_refused(api.put(f"{path}/{long_name(256)}"), 400)


@pytest.mark.parametrize(
    "name",
    [
        "CUSTOM_",
        "CUSTOM",
        "custom_A",
        "CUSTOM_a",
        "CUSTOM_A-B",
        "CUSTOM_A.B",
        "CUSTOM_A%20",
        "%20CUSTOM_A",
        "CUSTOM_%C3%89",
        "NOT_CUSTOM",
        pytest.param("CUSTOM_A%0A", marks=NEWLINE),
    ],
)
@pytest.mark.parametrize("path", ["/traits", "/resource_classes"])
def test_a_custom_name_has_a_pattern(api: Client, path: str, name: str) -> None:
    """`CUSTOM_` and capitals, digits or underscores."""
    assert_refused(api.put(f"{path}/{name}"), 400)


@pytest.mark.parametrize("name", ["CUSTOM__", "CUSTOM_0", "CUSTOM_CUSTOM_A_1"])
@pytest.mark.parametrize("path", ["/traits", "/resource_classes"])
def test_a_custom_name_may_be_odd(api: Client, path: str, name: str) -> None:
    """There is no other rule."""
    assert api.put(f"{path}/{name}").status in (201, 204)


@pytest.mark.parametrize("name", ["vcpu", "VCPU ", "V-CPU", "É", "", "VCPU.", "V CPU"])
def test_a_class_in_a_body_has_a_pattern(api: Client, name: str) -> None:
    """In allocations and in a new inventory."""
    uuid = provider(api, {"VCPU": 1})
    body = claim_body("1.39", {uuid: {name: 1}})
    assert_refused(api.put(f"/allocations/{new_uuid()}", json=body), 400)
    record = {"resource_class": name, "total": 1}
    answer = api.post(f"/resource_providers/{uuid}/inventories", json=record)
    assert_refused(answer, 400, "does not match '^[A-Z0-9_]+$'")


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("vcpu", marks=pytest.mark.deliberately_different("the original answers 500")),
        pytest.param("", marks=pytest.mark.deliberately_different("the original answers 500")),
        "NO_SUCH_CLASS",
    ],
)
def test_a_class_in_a_set_of_inventories_is_judged(api: Client, name: str) -> None:
    """Both an invalid name and an unknown class are 400."""
    uuid = provider(api)
    body = {"inventories": {name: "nonsense"}, "resource_provider_generation": 0}
    assert_refused(api.put(f"/resource_providers/{uuid}/inventories", json=body), 400)
    body = {"inventories": {name: {"total": 1}}, "resource_provider_generation": 0}
    assert_refused(api.put(f"/resource_providers/{uuid}/inventories", json=body), 400)


def test_a_trait_in_a_body_has_1_to_255_characters(api: Client) -> None:
    """Its pattern does not matter, because the trait must exist."""
    path, seen = f"/resource_providers/{provider(api)}/traits", {"resource_provider_generation": 0}
    said = {"": "should be non-empty", "X" * 256: "is too long", "X": "No such trait"}
    for name, fragment in said.items():
        answer = api.put(path, json={"traits": [name], **seen})
        assert_refused(answer, 400, fragment)


@pytest.mark.parametrize("text", ["", "X" * 256, None, 1], ids=repr)
@pytest.mark.parametrize("name", ["project", "user", "consumer_type"])
def test_an_owner_has_1_to_255_characters(api: Client, name: str, text: Any) -> None:
    """Project, user and consumer type."""
    uuid = provider(api, {"VCPU": 1})
    body = claim_body("1.39", {uuid: {"VCPU": 1}}, **{name: text})
    assert_refused(api.put(f"/allocations/{new_uuid()}", json=body), 400)


@pytest.mark.parametrize("text", ["X" * 255, "not a uuid", "né 💾", "<b>"])
def test_an_owner_may_be_anything(api: Client, text: str) -> None:
    """Project and user may be any text."""
    uuid = provider(api, {"VCPU": 1})
    consumer = new_uuid()
    body = claim_body("1.39", {uuid: {"VCPU": 1}}, project=text, user=text)
    assert api.put(f"/allocations/{consumer}", json=body).status == 204
    shown = api.get(f"/allocations/{consumer}").json
    assert (shown["project_id"], shown["user_id"]) == (text, text)


@pytest.mark.parametrize("text", ["instance", "unknown", "all", "A-B", "A B", "É"])
def test_a_consumer_type_has_a_pattern(api: Client, text: str) -> None:
    """Capitals, digits and underscores, so `all` and `unknown` cannot be stored."""
    uuid = provider(api, {"VCPU": 1})
    body = claim_body("1.39", {uuid: {"VCPU": 1}}, consumer_type=text)
    answer = api.put(f"/allocations/{new_uuid()}", json=body)
    assert_refused(answer, 400, "Failed validating 'pattern'")


@pytest.mark.parametrize("field", ["total", "reserved", "min_unit", "max_unit", "step_size"])
def test_an_inventory_holds_31_bits(api: Client, field: str) -> None:
    """2147483647 is valid; larger numbers are not."""
    uuid = provider(api)
    path = f"/resource_providers/{uuid}/inventories"
    good = {"total": INT_MAX, field: INT_MAX}
    body = {"inventories": {"VCPU": good}, "resource_provider_generation": 0}
    assert api.put(path, json=body).status == 200
    for absurd in (INT_MAX + 1, 2**63, 10**400):
        bad = {"total": INT_MAX, field: absurd}
        body = {"inventories": {"VCPU": bad}, "resource_provider_generation": 1}
        where = f"Failed validating 'maximum' in schema['properties']['{field}']"
        assert_refused(api.put(path, json=body), 400)
        record = {"resource_class": "DISK_GB"} | bad
        assert_refused(api.post(path, json=record), 400, where)


@pytest.mark.parametrize("generation", [-1, 1, INT_MAX + 1, 2**63, 10**30])
def test_a_generation_is_any_integer(api: Client, generation: int) -> None:
    """If it is not the provider's, it is a conflict, however large."""
    body = {"inventories": {}, "resource_provider_generation": generation}
    answer = api.put(f"/resource_providers/{provider(api)}/inventories", json=body)
    assert_refused(answer, 409, code="placement.concurrent_update")


def test_an_amount_has_no_maximum_of_its_own(api: Client) -> None:
    """If it exceeds the capacity, it is a conflict."""
    uuid = provider(api, {"VCPU": 1})
    for amount in (INT_MAX, INT_MAX + 1, 2**40):
        body = claim_body("1.39", {uuid: {"VCPU": amount}})
        assert_refused(api.put(f"/allocations/{new_uuid()}", json=body), 409)
    for amount in (0, -1):
        body = claim_body("1.39", {uuid: {"VCPU": amount}})
        assert_refused(api.put(f"/allocations/{new_uuid()}", json=body), 400, "minimum of 1")


@pytest.mark.parametrize("length", [200, 255])
def test_long_custom_names_can_be_used(api: Client, length: int) -> None:
    """A class with the longest name can have inventory, and a trait can be set."""
    name = long_name(length)
    assert api.put(f"/resource_classes/{name}").status == 201
    assert api.put(f"/traits/{name}").status == 201
    uuid = provider(api, {name: 1}, traits=[name])
    assert list(api.get(f"/resource_providers/{uuid}/inventories").json["inventories"]) == [name]
    assert api.get(f"/resource_providers/{uuid}/traits").json["traits"] == [name]


def test_a_trait_and_a_class_may_share_a_name(api: Client) -> None:
    """They are different things."""
    name = custom_class(api)
    assert api.put(f"/traits/{name}").status == 201
    assert api.get(f"/resource_classes/{custom_trait(api)}").status == 404
