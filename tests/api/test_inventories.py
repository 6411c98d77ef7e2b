# SPDX-License-Identifier: Apache-2.0
"""The inventories of a provider.

Source: rest-api.md 5.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.api.answers import CONCURRENT_UPDATE, INVENTORY_IN_USE, assert_refused
from tests.api.claims import claim_body, consumer, used
from tests.api.versions import at_least
from tests.api.worlds import (
    NOWHERE,
    custom_class,
    done,
    generation,
    new_custom_name,
    new_uuid,
    provider,
)
from tests.client import Client
from tests.routes import VERSIONS

DEFAULTS = {
    "reserved": 0,
    "min_unit": 1,
    "max_unit": 2147483647,
    "step_size": 1,
    "allocation_ratio": 1.0,
}

FULL = {
    "total": 100,
    "reserved": 10,
    "min_unit": 2,
    "max_unit": 50,
    "step_size": 2,
    "allocation_ratio": 1.5,
}


def path_of(uuid: str, name: str | None = None) -> str:
    """The path of a provider's inventories, or of one of them."""
    return f"/resource_providers/{uuid}/inventories" + (f"/{name}" if name else "")


def set_of(seen: int, **records: Any) -> dict[str, Any]:
    """A body for PUT inventories."""
    return {"resource_provider_generation": seen, "inventories": records}


@pytest.mark.parametrize("version", VERSIONS)
def test_a_provider_begins_without_inventory(api: Client, version: str) -> None:
    """An empty object at generation 0."""
    response = api.get(path_of(provider(api)), version=version)
    assert done(response, 200).json == {"inventories": {}, "resource_provider_generation": 0}


@pytest.mark.parametrize("version", VERSIONS)
def test_an_inventory_is_shown_in_full(api: Client, version: str) -> None:
    """Six fields with defaults for those not given; the same at every version."""
    uuid = provider(api)
    answer = api.put(
        path_of(uuid), json=set_of(0, VCPU={"total": 4}, DISK_GB=FULL), version=version
    )
    expected = {
        "resource_provider_generation": 1,
        "inventories": {"VCPU": {"total": 4} | DEFAULTS, "DISK_GB": FULL},
    }
    assert done(answer, 200).json == expected
    assert done(api.get(path_of(uuid), version=version), 200).json == expected
    response = api.get(path_of(uuid, "DISK_GB"), version=version)
    assert done(response, 200).json == FULL | {"resource_provider_generation": 1}


@pytest.mark.parametrize("version", VERSIONS)
def test_an_inventory_can_be_added(api: Client, version: str) -> None:
    """201 with the record, without the class's name, the new generation, and a Location."""
    uuid = provider(api)
    body = {"resource_class": "VCPU", "total": 4}
    answer = done(api.post(path_of(uuid), json=body, version=version), 201)
    assert answer.json == {"total": 4, "resource_provider_generation": 1} | DEFAULTS
    assert answer.headers["Location"].endswith(path_of(uuid, "VCPU"))
    assert api.get(path_of(uuid, "VCPU"), version=version).json == answer.json


@pytest.mark.parametrize("version", VERSIONS)
def test_an_inventory_can_be_replaced(api: Client, version: str) -> None:
    """Fields that are not given get their defaults."""
    uuid = provider(api, {"DISK_GB": FULL})
    body = {"total": 7, "resource_provider_generation": 1}
    answer = api.put(path_of(uuid, "DISK_GB"), json=body, version=version)
    expected = {"total": 7, "resource_provider_generation": 2} | DEFAULTS
    assert done(answer, 200).json == expected
    assert api.get(path_of(uuid, "DISK_GB"), version=version).json == expected


def test_a_set_replaces_the_set(api: Client) -> None:
    """Missing classes are deleted, and missing fields get their defaults."""
    uuid = provider(api, {"VCPU": FULL, "DISK_GB": FULL})
    body = set_of(1, VCPU={"total": 1}, MEMORY_MB={"total": 2})
    answer = done(api.put(path_of(uuid), json=body), 200)
    assert answer.json["inventories"] == {
        "VCPU": {"total": 1} | DEFAULTS,
        "MEMORY_MB": {"total": 2} | DEFAULTS,
    }
    assert api.get(path_of(uuid)).json == answer.json
    done(api.put(path_of(uuid), json=set_of(2)), 200)
    assert api.get(path_of(uuid)).json["inventories"] == {}


def test_a_record_of_a_set_may_carry_a_generation(api: Client) -> None:
    """It is ignored."""
    body = set_of(0, VCPU={"total": 1, "resource_provider_generation": 77})
    assert api.put(path_of(provider(api)), json=body).status == 200


def test_a_ratio_is_stored_as_a_float(api: Client) -> None:
    """The response to the write repeats the integer."""
    uuid = provider(api)
    body = set_of(0, VCPU={"total": 1, "allocation_ratio": 16})
    answer = api.put(path_of(uuid), json=body)
    assert answer.json["inventories"]["VCPU"]["allocation_ratio"] == 16
    assert '"allocation_ratio": 16.0' in api.get(path_of(uuid)).text.replace('":1', '": 1')


@pytest.mark.parametrize("ratio", [0.1, 1.1, 1e-7, 3.40282e38, 123456.789, 1 / 3])
def test_a_ratio_comes_back_as_it_went(api: Client, engine: str, ratio: float) -> None:
    """With double precision, although MariaDB shows only six digits."""
    uuid = provider(api)
    body = set_of(0, VCPU={"total": 2147483647, "allocation_ratio": ratio})
    done(api.put(path_of(uuid), json=body), 200)
    kept = float(f"{ratio:.6g}") if engine in ("mariadb", "galera") else ratio
    assert api.get(path_of(uuid, "VCPU")).json["allocation_ratio"] == kept


WRONG_FIELDS: list[tuple[str, Any, str]] = [
    ("total", 0, "'minimum'"),
    ("total", -1, "'minimum'"),
    ("total", 2147483648, "'maximum'"),
    ("total", None, "'type'"),
    ("total", "1", "'type'"),
    ("reserved", -1, "'minimum'"),
    ("reserved", None, "'type'"),
    ("min_unit", 0, "'minimum'"),
    ("max_unit", 0, "'minimum'"),
    ("step_size", 0, "'minimum'"),
    ("step_size", 1.5, "'type'"),
    ("allocation_ratio", None, "'type'"),
    ("allocation_ratio", "1.0", "'type'"),
    ("allocation_ratio", True, "'type'"),
    ("allocation_ratio", 3.5e38, "'maximum'"),
]


@pytest.mark.parametrize(("field", "value", "keyword"), WRONG_FIELDS)
def test_a_field_out_of_bounds_is_refused(
    api: Client, field: str, value: Any, keyword: str
) -> None:
    """By POST, by PUT of one and by PUT of a set; the message names the field."""
    uuid = provider(api, {"VCPU": 1})
    record = {"total": 1, field: value}
    said = f"Failed validating {keyword} in schema['properties']['{field}']"
    answer = api.post(path_of(uuid), json={"resource_class": "DISK_GB"} | record)
    assert_refused(answer, 400, "JSON does not validate", said)
    body = {"resource_provider_generation": 1} | record
    assert_refused(api.put(path_of(uuid, "VCPU"), json=body), 400, said)
    answer = api.put(path_of(uuid), json=set_of(1, VCPU=record))
    assert_refused(answer, 400, f"Failed validating {keyword}", f"['properties']['{field}']")
    assert generation(api, uuid) == 1


@pytest.mark.parametrize(
    ("method", "part", "body"),
    [
        ("POST", None, {"total": 1}),
        ("POST", None, {"resource_class": "DISK_GB"}),
        ("POST", None, {"resource_class": "DISK_GB", "total": 1, "used": 0}),
        ("POST", None, {"resource_class": 1, "total": 1}),
        (
            "POST",
            None,
            {"resource_class": "DISK_GB", "total": 1, "resource_provider_generation": "1"},
        ),
        ("POST", None, []),
        ("PUT", "VCPU", {"total": 1}),
        ("PUT", "VCPU", {"resource_provider_generation": 1}),
        ("PUT", "VCPU", {"resource_provider_generation": None, "total": 1}),
        (
            "PUT",
            "VCPU",
            {"resource_provider_generation": 1, "total": 1, "resource_class": "VCPU"},
        ),
        ("PUT", None, {"inventories": {}}),
        ("PUT", None, {"resource_provider_generation": 1}),
        ("PUT", None, {"resource_provider_generation": 1, "inventories": []}),
        ("PUT", None, {"resource_provider_generation": 1, "inventories": {}, "x": 1}),
        ("PUT", None, {"resource_provider_generation": 1, "inventories": {"VCPU": {}}}),
        ("PUT", None, {"resource_provider_generation": 1, "inventories": {"VCPU": 1}}),
        (
            "PUT",
            None,
            {"resource_provider_generation": 1, "inventories": {"VCPU": {"total": 1, "used": 0}}},
        ),
    ],
    ids=repr,
)
def test_a_body_of_another_shape_is_refused(
    api: Client, method: str, part: str | None, body: Any
) -> None:
    """Every required field, and no unknown one."""
    uuid = provider(api, {"VCPU": 1})
    answer = api.request(method, path_of(uuid, part), json=body)
    assert_refused(answer, 400, "JSON does not validate")
    assert generation(api, uuid) == 1


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    ("record", "begins"),
    [
        ({"total": 4, "reserved": 3}, "1.0"),
        ({"total": 4, "reserved": 4}, "1.26"),
        ({"total": 1, "allocation_ratio": 0.5}, "1.26"),
        ({"total": 4, "allocation_ratio": 0}, "1.26"),
        ({"total": 4, "reserved": 5, "allocation_ratio": -1}, "1.0"),
        ({"total": 4, "reserved": 5}, None),
        ({"total": 4, "allocation_ratio": -1}, None),
    ],
    ids=repr,
)
def test_there_must_be_capacity(
    api: Client, record: dict[str, Any], begins: str | None, version: str
) -> None:
    """Above 0 below 1.26, from then on 0 or more; rounded down."""
    uuid = provider(api, {"VCPU": 1})
    allowed = begins is not None and at_least(version, begins)
    said = "greater than total" if at_least(version, "1.26") else "greater than or equal to total"

    def assert_judged(method: str, part: str | None, body: dict[str, Any], success: int) -> None:
        answer = api.request(method, path_of(uuid, part), json=body, version=version)
        if allowed:
            assert answer.status == success
        else:
            assert_refused(answer, 400, said, version=version)

    assert_judged("POST", None, {"resource_class": "DISK_GB"} | record, 201)
    one = {"resource_provider_generation": generation(api, uuid)} | record
    assert_judged("PUT", "VCPU", one, 200)
    assert_judged("PUT", None, set_of(generation(api, uuid), VCPU=record), 200)
    assert generation(api, uuid) == (4 if allowed else 1)


def test_units_need_not_make_sense_together(api: Client) -> None:
    """min_unit, max_unit, step_size and total are not compared with one another."""
    record = {"total": 1, "min_unit": 50, "max_unit": 3, "step_size": 100}
    assert api.put(path_of(provider(api)), json=set_of(0, VCPU=record)).status == 200


def test_an_unknown_class_is_refused(api: Client) -> None:
    """400 in a body; in a path 404."""
    uuid, missing = provider(api), new_custom_name()
    answer = api.post(path_of(uuid), json={"resource_class": missing, "total": 1})
    said = f"Unable to create inventory for resource provider {uuid}"
    assert_refused(answer, 400, said, f"No such resource class {missing}")
    answer = api.put(path_of(uuid), json=set_of(0, **{missing: {"total": 1}}))
    assert_refused(answer, 400, "Unknown resource class", missing)
    body = {"total": 1, "resource_provider_generation": 0}
    assert_refused(api.put(path_of(uuid, missing), json=body), 404, "No such resource class")
    assert_refused(api.get(path_of(uuid, missing)), 404)
    answer = api.delete(path_of(uuid, missing))
    assert_refused(answer, 404, f"No inventory of class {missing} found for delete")
    assert_refused(answer, 404, f"No such resource class {missing}")


def test_capacity_is_judged_before_the_class(api: Client) -> None:
    """POST with both faults reports the capacity."""
    body = {"resource_class": new_custom_name(), "total": 1, "reserved": 2}
    assert_refused(api.post(path_of(provider(api)), json=body), 400, "greater than total")


def test_put_does_not_create(api: Client) -> None:
    """PUT of a class without inventory on this provider is 400; GET and DELETE are 404."""
    uuid = provider(api)
    body = {"total": 1, "resource_provider_generation": 0}
    said = ("No inventory record with resource class", "No inventory of class VCPU")
    assert_refused(api.put(path_of(uuid, "VCPU"), json=body), 400, *said)
    assert_refused(api.get(path_of(uuid, "VCPU")), 404, "No inventory of class VCPU")
    assert_refused(api.delete(path_of(uuid, "VCPU")), 404, "No inventory of class VCPU")


def test_post_does_not_replace(api: Client) -> None:
    """An existing class is a conflict, like a lost race."""
    uuid = provider(api, {"VCPU": 1})
    answer = api.post(path_of(uuid), json={"resource_class": "VCPU", "total": 2})
    assert_refused(answer, 409, "Update conflict", code=CONCURRENT_UPDATE)
    assert api.get(path_of(uuid, "VCPU")).json["total"] == 1


@pytest.mark.parametrize("version", VERSIONS)
def test_an_unknown_provider_is_404(api: Client, version: str) -> None:
    """On every route of inventories."""
    said = "No resource provider with uuid"
    body = {"total": 1, "resource_provider_generation": 0}
    answers = [
        api.get(path_of(NOWHERE), version=version),
        api.post(path_of(NOWHERE), json={"resource_class": "VCPU", "total": 1}, version=version),
        api.put(path_of(NOWHERE), json=set_of(0), version=version),
        api.get(path_of(NOWHERE, "VCPU"), version=version),
        api.put(path_of(NOWHERE, "VCPU"), json=body, version=version),
        api.delete(path_of(NOWHERE, "VCPU"), version=version),
    ]
    if at_least(version, "1.5"):
        answers.append(api.delete(path_of(NOWHERE), version=version))
    for answer in answers:
        assert_refused(answer, 404, said, version=version)


@pytest.mark.parametrize("version", VERSIONS)
def test_one_inventory_can_be_deleted(api: Client, version: str) -> None:
    """If it has no allocations."""
    uuid = provider(api, {"VCPU": 1, "DISK_GB": 1})
    assert api.delete(path_of(uuid, "VCPU"), version=version).status == 204
    assert list(api.get(path_of(uuid)).json["inventories"]) == ["DISK_GB"]
    answer = api.delete(path_of(uuid, "VCPU"), version=version)
    assert_refused(answer, 404, "found for delete", version=version)


@pytest.mark.parametrize("version", VERSIONS)
def test_all_inventories_can_be_deleted_from_1_5(api: Client, version: str) -> None:
    """Before, that method does not exist."""
    uuid = provider(api, {"VCPU": 1, "DISK_GB": 1})
    answer = api.delete(path_of(uuid), version=version)
    if at_least(version, "1.5"):
        assert answer.status == 204
        assert api.get(path_of(uuid)).json["inventories"] == {}
    else:
        assert_refused(answer, 405, version=version)
        assert "Allow" not in answer.headers


def test_an_inventory_in_use_stays(api: Client) -> None:
    """Removing it is a conflict in all three ways, and nothing changes."""
    uuid = provider(api, {"VCPU": 4, "DISK_GB": 4})
    consumer(api, {uuid: {"VCPU": 1}})
    before = api.get(path_of(uuid)).json
    said = f"Inventory for 'VCPU' on resource provider '{uuid}' in use."
    answer = api.put(path_of(uuid), json=set_of(2, MEMORY_MB={"total": 1}))
    assert_refused(answer, 409, said, code=INVENTORY_IN_USE)
    assert_refused(api.delete(path_of(uuid)), 409, said, code=INVENTORY_IN_USE)
    answer = api.delete(path_of(uuid, "VCPU"))
    assert_refused(answer, 409, "in use", code=CONCURRENT_UPDATE)
    assert api.get(path_of(uuid)).json == before
    assert api.delete(path_of(uuid, "DISK_GB")).status == 204


@pytest.mark.parametrize("way", ["set", "one"])
def test_an_inventory_may_shrink_below_its_use(api: Client, way: str) -> None:
    """Existing allocations stay; no more fits until enough is released."""
    uuid = provider(api, {"VCPU": 4})
    holder = consumer(api, {uuid: {"VCPU": 4}})
    if way == "set":
        answer = api.put(path_of(uuid), json=set_of(2, VCPU={"total": 2}))
    else:
        body = {"total": 2, "resource_provider_generation": 2}
        answer = api.put(path_of(uuid, "VCPU"), json=body)
    assert answer.status == 200
    assert used(api, uuid) == {"VCPU": 4}
    more = api.put(f"/allocations/{new_uuid()}", json=claim_body("1.39", {uuid: {"VCPU": 1}}))
    assert_refused(more, 409, "The requested amount would exceed the capacity")
    done(api.delete(f"/allocations/{holder}"), 204)
    consumer(api, {uuid: {"VCPU": 2}})


def test_a_custom_class_holds_inventory(api: Client) -> None:
    """Like a standard one."""
    name = custom_class(api)
    uuid = provider(api, {name: 3})
    assert api.get(path_of(uuid, name)).json["total"] == 3


@pytest.mark.parametrize("way", ["set", "one"])
def test_an_old_generation_is_told(api: Client, way: str) -> None:
    """409 with the text that clients match."""
    uuid = provider(api, {"VCPU": 4})
    if way == "set":
        answer = api.put(path_of(uuid), json=set_of(0, VCPU={"total": 2}))
    else:
        body = {"total": 2, "resource_provider_generation": 0}
        answer = api.put(path_of(uuid, "VCPU"), json=body)
    said = "resource provider generation conflict"
    assert_refused(answer, 409, said, code=CONCURRENT_UPDATE)
    assert api.get(path_of(uuid, "VCPU")).json["total"] == 4
