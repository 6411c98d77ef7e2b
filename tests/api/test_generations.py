# SPDX-License-Identifier: Apache-2.0
"""How the generation of a provider changes.

Source: rest-api.md 1.15.
"""

from typing import Any

import pytest

from tests.api.answers import CONCURRENT_UPDATE, assert_refused
from tests.api.claims import claim_body, consumer
from tests.api.versions import versions
from tests.api.worlds import (
    custom_trait,
    done,
    generation,
    new_name,
    new_uuid,
    provider,
    put_aggregates,
    put_inventories,
    put_traits,
)
from tests.client import Client
from tests.routes import VERSIONS

#: What PUT takes, beside the generation, by the last part of the path.
GUARDED: dict[str, dict[str, Any]] = {
    "inventories": {"inventories": {"VCPU": {"total": 2}}},
    "inventories/VCPU": {"total": 2},
    "aggregates": {"aggregates": []},
    "traits": {"traits": ["HW_CPU_X86_AVX2"]},
}


@pytest.mark.parametrize("version", VERSIONS)
def test_a_new_provider_is_at_0(api: Client, version: str) -> None:
    """At every version, also for a child."""
    root = provider(api)
    child = provider(api, parent=root)
    assert api.get(f"/resource_providers/{root}", version=version).json["generation"] == 0
    assert generation(api, child) == 0


@pytest.mark.parametrize("seen", [0, 2, 100, -1])
@pytest.mark.parametrize("part", GUARDED)
def test_a_generation_that_is_not_the_present_one_is_a_conflict(
    api: Client, part: str, seen: int
) -> None:
    """The client must have read the current state; nothing changes."""
    uuid = provider(api, {"VCPU": 1})
    body = GUARDED[part] | {"resource_provider_generation": seen}
    before = api.get(f"/resource_providers/{uuid}/{part}").json
    answer = api.put(f"/resource_providers/{uuid}/{part}", json=body)
    assert_refused(answer, 409, code=CONCURRENT_UPDATE)
    assert api.get(f"/resource_providers/{uuid}/{part}").json == before


@pytest.mark.parametrize("part", GUARDED)
def test_an_accepted_change_counts_once_and_is_told(api: Client, part: str) -> None:
    """It is incremented by one, and the response has the new value."""
    uuid = provider(api, {"VCPU": 1})
    body = GUARDED[part] | {"resource_provider_generation": 1}
    answer = done(api.put(f"/resource_providers/{uuid}/{part}", json=body), 200)
    assert answer.json["resource_provider_generation"] == 2
    assert generation(api, uuid) == 2


def test_the_same_inventories_count_again(api: Client) -> None:
    """PUT increments even if nothing changes."""
    uuid = provider(api)
    put_inventories(api, uuid, {"VCPU": 1})
    put_inventories(api, uuid, {"VCPU": 1})
    assert generation(api, uuid) == 2
    body = {"total": 1, "resource_provider_generation": 2}
    done(api.put(f"/resource_providers/{uuid}/inventories/VCPU", json=body), 200)
    assert generation(api, uuid) == 3


def test_the_same_aggregates_count_again(api: Client) -> None:
    """From 1.19 on, PUT increments even if nothing changes."""
    uuid, aggregate = provider(api), new_uuid()
    put_aggregates(api, uuid, [aggregate])
    put_aggregates(api, uuid, [aggregate])
    assert generation(api, uuid) == 2
    put_aggregates(api, uuid, [])
    put_aggregates(api, uuid, [])
    assert generation(api, uuid) == 4


def test_the_same_traits_do_not_count_again(api: Client) -> None:
    """PUT increments only if the set changes; order does not matter."""
    uuid = provider(api)
    a, b = custom_trait(api), custom_trait(api)
    put_traits(api, uuid, [])
    assert generation(api, uuid) == 0
    put_traits(api, uuid, [a, b])
    put_traits(api, uuid, [b, a, a])
    assert generation(api, uuid) == 1
    put_traits(api, uuid, [b])
    assert generation(api, uuid) == 2


def test_a_new_inventory_counts_and_asks_for_nothing(api: Client) -> None:
    """A generation in the body of POST is ignored."""
    uuid = provider(api)
    path = f"/resource_providers/{uuid}/inventories"
    record = {"resource_class": "VCPU", "total": 1, "resource_provider_generation": 77}
    assert done(api.post(path, json=record), 201).json["resource_provider_generation"] == 1
    record = {"resource_class": "DISK_GB", "total": 1}
    assert done(api.post(path, json=record), 201).json["resource_provider_generation"] == 2


def test_deleted_inventories_count(api: Client) -> None:
    """Deleting one, and deleting all, even if there are none."""
    uuid = provider(api, {"VCPU": 1, "DISK_GB": 1})
    done(api.delete(f"/resource_providers/{uuid}/inventories/VCPU"), 204)
    assert generation(api, uuid) == 2
    done(api.delete(f"/resource_providers/{uuid}/inventories"), 204)
    assert generation(api, uuid) == 3
    done(api.delete(f"/resource_providers/{uuid}/inventories"), 204)
    assert generation(api, uuid) == 4


def test_deleted_traits_count_if_there_were_any(api: Client) -> None:
    """The second time there are none."""
    uuid = provider(api, traits=["HW_CPU_X86_AVX2"])
    done(api.delete(f"/resource_providers/{uuid}/traits"), 204)
    assert generation(api, uuid) == 2
    done(api.delete(f"/resource_providers/{uuid}/traits"), 204)
    assert generation(api, uuid) == 2


@pytest.mark.parametrize("version", versions("1.1", "1.18"))
def test_aggregates_do_not_count_below_1_19(api: Client, version: str) -> None:
    """The generation is neither checked nor incremented."""
    uuid = provider(api)
    path = f"/resource_providers/{uuid}/aggregates"
    done(api.put(path, json=[new_uuid()], version=version), 200)
    assert generation(api, uuid) == 0


def test_a_new_name_or_place_does_not_count(api: Client) -> None:
    """Renaming and moving change no generations, including those of parents."""
    uuid, parent = provider(api), provider(api)
    body = {"name": new_name(), "parent_provider_uuid": parent}
    assert done(api.put(f"/resource_providers/{uuid}", json=body), 200).json["generation"] == 0
    assert (generation(api, uuid), generation(api, parent)) == (0, 0)


def test_definitions_and_other_providers_do_not_count(api: Client) -> None:
    """Children and names may be created and deleted."""
    uuid = provider(api)
    child = provider(api, parent=uuid)
    trait = custom_trait(api)
    done(api.delete(f"/resource_providers/{child}"), 204)
    done(api.delete(f"/traits/{trait}"), 204)
    assert generation(api, uuid) == 0


def test_a_claim_counts_once_for_each_provider_it_names(api: Client) -> None:
    """For any number of classes on it."""
    a, b = provider(api, {"VCPU": 4, "DISK_GB": 4}), provider(api, {"VCPU": 4})
    consumer(api, {a: {"VCPU": 1, "DISK_GB": 1}, b: {"VCPU": 1}})
    assert (generation(api, a), generation(api, b)) == (2, 2)


def test_a_claim_does_not_count_for_the_provider_that_it_leaves(api: Client) -> None:
    """Only the new provider is incremented; the old one is when the consumer is emptied."""
    old, new = provider(api, {"VCPU": 4}), provider(api, {"VCPU": 4})
    holder = consumer(api, {old: {"VCPU": 1}})
    moved = claim_body("1.39", {new: {"VCPU": 1}}, consumer_generation=1)
    done(api.put(f"/allocations/{holder}", json=moved), 204)
    assert (generation(api, old), generation(api, new)) == (2, 2)
    emptied = claim_body("1.39", {}, consumer_generation=2)
    done(api.put(f"/allocations/{holder}", json=emptied), 204)
    assert (generation(api, old), generation(api, new)) == (2, 3)


def test_a_deleted_claim_does_not_count(api: Client) -> None:
    """DELETE /allocations changes no provider's generation."""
    uuid = provider(api, {"VCPU": 4})
    done(api.delete(f"/allocations/{consumer(api, {uuid: {'VCPU': 1}})}"), 204)
    assert generation(api, uuid) == 2


def test_a_consumer_counts_its_writes(api: Client) -> None:
    """It is 1 after the first write, and starts again once the consumer is deleted."""
    uuid = provider(api, {"VCPU": 4})
    holder = consumer(api, {uuid: {"VCPU": 1}})
    path = f"/allocations/{holder}"
    assert api.get(path).json["consumer_generation"] == 1
    body = claim_body("1.39", {uuid: {"VCPU": 1}}, consumer_generation=1)
    done(api.put(path, json=body), 204)
    assert api.get(path).json["consumer_generation"] == 2
    old = claim_body("1.27", {uuid: {"VCPU": 2}})
    done(api.put(path, json=old, version="1.27"), 204)
    assert api.get(path).json["consumer_generation"] == 3
    done(api.delete(path), 204)
    body = claim_body("1.39", {uuid: {"VCPU": 1}}, consumer_generation=None)
    done(api.put(path, json=body), 204)
    assert api.get(path).json["consumer_generation"] == 1


def test_a_refused_change_does_not_count(api: Client) -> None:
    """Whatever the reason."""
    uuid = provider(api, {"VCPU": 1})
    here = f"/resource_providers/{uuid}"
    seen = {"resource_provider_generation": 1}
    assert (
        api.post(f"{here}/inventories", json={"resource_class": "VCPU", "total": 1}).status == 409
    )
    assert api.put(f"{here}/traits", json={"traits": ["NO_SUCH"], **seen}).status == 400
    assert api.put(f"{here}/aggregates", json={"aggregates": ["x"], **seen}).status == 400
    assert api.delete(f"{here}/inventories/DISK_GB").status == 404
    assert api.put(f"/allocations/{new_uuid()}", json={}).status == 400
    assert generation(api, uuid) == 1
