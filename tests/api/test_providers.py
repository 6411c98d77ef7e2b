# SPDX-License-Identifier: Apache-2.0
"""Resource providers: creating, showing, renaming, moving and deleting them.

Lists are in `test_provider_filters.py`.

Source: rest-api.md 4.
"""

from __future__ import annotations

from typing import Any

import pytest

from berth.store.engine.database import Database
from tests.api.answers import DUPLICATE_NAME, assert_refused
from tests.api.claims import consumer
from tests.api.versions import at_least, versions
from tests.api.worlds import (
    NOWHERE,
    done,
    new_name,
    new_uuid,
    provider,
    put_aggregates,
    uuids_of,
)
from tests.client import Client, Response
from tests.routes import VERSIONS

#: The links of a provider after `self`, each with the version that brought it.
LINKS = [
    ("inventories", "1.0"),
    ("usages", "1.0"),
    ("aggregates", "1.1"),
    ("traits", "1.6"),
    ("allocations", "1.11"),
]


def represented(uuid: str, name: str, version: str) -> dict[str, Any]:
    """A new root as a version shows it."""
    path = f"/resource_providers/{uuid}"
    links = [{"rel": "self", "href": path}] + [
        {"rel": rel, "href": f"{path}/{rel}"} for rel, first in LINKS if at_least(version, first)
    ]
    shown: dict[str, Any] = {"uuid": uuid, "name": name, "generation": 0, "links": links}
    if at_least(version, "1.14"):
        shown |= {"parent_provider_uuid": None, "root_provider_uuid": uuid}
    return shown


def shown(api: Client, uuid: str) -> dict[str, Any]:
    """A provider as the newest version shows it."""
    body = done(api.get(f"/resource_providers/{uuid}"), 200).json
    assert isinstance(body, dict)
    return body


def place(api: Client, uuid: str) -> tuple[str | None, str]:
    """The parent and the root of a provider."""
    body = shown(api, uuid)
    return body["parent_provider_uuid"], body["root_provider_uuid"]


def move(api: Client, uuid: str, parent: str | None, version: str = "1.39") -> Response:
    """PUT a provider below another parent, with its current name."""
    body = {"name": shown(api, uuid)["name"], "parent_provider_uuid": parent}
    return api.put(f"/resource_providers/{uuid}", json=body, version=version)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_provider_is_shown_as_its_version_wants(api: Client, version: str) -> None:
    """By GET, in a list, after a PUT, and from 1.20 on after the POST: always the same."""
    uuid, name = new_uuid(), new_name()
    created = api.post("/resource_providers", json={"uuid": uuid, "name": name}, version=version)
    expected = represented(uuid, name, version)
    if at_least(version, "1.20"):
        assert (created.status, created.json) == (200, expected)
    else:
        assert (created.status, created.body) == (201, b"")
    assert created.headers["Location"].endswith(f"/resource_providers/{uuid}")
    path = f"/resource_providers/{uuid}"
    assert done(api.get(path, version=version), 200).json == expected
    assert done(api.put(path, json={"name": name}, version=version), 200).json == expected
    listed = api.get(f"/resource_providers?uuid={uuid}", version=version)
    assert done(listed, 200).json == {"resource_providers": [expected]}


def test_a_uuid_is_given_to_a_provider_that_brings_none(api: Client) -> None:
    """A different one each time."""
    first = done(api.post("/resource_providers", json={"name": new_name()}), 200).json["uuid"]
    second = done(api.post("/resource_providers", json={"name": new_name()}), 200).json["uuid"]
    assert first != second
    assert len(first) == 36


@pytest.mark.parametrize("version", VERSIONS)
def test_only_known_fields_are_taken(api: Client, version: str) -> None:
    """An unknown field is 400, and so is a parent before 1.14."""
    uuid = provider(api)
    extra = "Additional properties are not allowed ('{}' was unexpected)"
    for field in ("generation", "root_provider_uuid", "links", "Name"):
        body = {"name": new_name(), field: "x"}
        answer = api.post("/resource_providers", json=body, version=version)
        assert_refused(answer, 400, extra.format(field), version=version)
        answer = api.put(f"/resource_providers/{uuid}", json=body, version=version)
        assert_refused(answer, 400, extra.format(field), version=version)
    body = {"name": new_name(), "uuid": uuid}
    answer = api.put(f"/resource_providers/{uuid}", json=body, version=version)
    assert_refused(answer, 400, extra.format("uuid"), version=version)
    body = {"name": new_name(), "parent_provider_uuid": provider(api)}
    answer = api.post("/resource_providers", json=body, version=version)
    if at_least(version, "1.14"):
        assert answer.status in (200, 201)
    else:
        said = extra.format("parent_provider_uuid")
        assert_refused(answer, 400, said, version=version)


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({}, "'name' is a required property"),
        ({"uuid": NOWHERE}, "'name' is a required property"),
        ({"name": ""}, "name"),
        ({"name": "x", "uuid": None}, "None is not"),
        ({"name": "x", "uuid": 1}, "1 is not"),
        ({"name": "x", "parent_provider_uuid": 1}, "1 is not"),
        ([], "is not of type 'object'"),
    ],
    ids=repr,
)
def test_a_new_provider_needs_a_name_and_good_uuids(api: Client, body: Any, said: str) -> None:
    """The schema of POST."""
    assert_refused(api.post("/resource_providers", json=body), 400, said)


def test_a_provider_can_be_renamed_to_nothing(api: Client) -> None:
    """PUT accepts the empty name that POST refuses."""
    uuid = provider(api)
    answer = api.put(f"/resource_providers/{uuid}", json={"name": ""})
    if answer.status == 409:
        pytest.skip("another provider of the shared server has the empty name")
    assert done(answer, 200).json["name"] == ""
    assert api.delete(f"/resource_providers/{uuid}").status == 204


def test_a_rename_needs_a_name(api: Client) -> None:
    """The parent alone is not enough."""
    uuid = provider(api)
    answer = api.put(f"/resource_providers/{uuid}", json={"parent_provider_uuid": None})
    assert_refused(answer, 400, "'name' is a required property")


@pytest.mark.parametrize("version", VERSIONS)
def test_names_and_uuids_are_unique(api: Client, version: str) -> None:
    """A taken one is a conflict for POST and PUT; a provider may keep its own name."""
    name, other = new_name(), new_name()
    uuid = provider(api, name=name)
    provider(api, name=other)
    for body in ({"name": name}, {"name": new_name(), "uuid": uuid}):
        answer = api.post("/resource_providers", json=body, version=version)
        assert_refused(answer, 409, code=DUPLICATE_NAME, version=version)
    path = f"/resource_providers/{uuid}"
    answer = api.put(path, json={"name": other}, version=version)
    assert_refused(answer, 409, code=DUPLICATE_NAME, version=version)
    assert done(api.put(path, json={"name": name}, version=version), 200).json["name"] == name


@pytest.mark.in_process
def test_a_provider_that_another_program_has_made_is_found(
    client: Client, database: Database
) -> None:
    """The index does not know of it yet: it is asked for in the database before it is 404."""
    uuid = new_uuid()
    assert client.get(f"/resource_providers/{uuid}").status == 404
    with database.engine.begin() as connection:
        made = "INSERT INTO resource_providers (uuid, name, generation) VALUES (?, 'other', 7)"
        connection.exec_driver_sql(made, (uuid,))
        connection.exec_driver_sql(
            "UPDATE resource_providers SET root_provider_id = id WHERE root_provider_id IS NULL"
        )
    shown = done(client.get(f"/resource_providers/{uuid}"), 200).json
    assert (shown["name"], shown["generation"], shown["root_provider_uuid"]) == ("other", 7, uuid)


def test_an_unknown_provider_is_404(api: Client) -> None:
    """For GET, PUT and DELETE."""
    path, said = f"/resource_providers/{NOWHERE}", f"No resource provider with uuid {NOWHERE} found"
    assert_refused(api.get(path), 404, said)
    assert_refused(api.put(path, json={"name": new_name()}), 404, said)
    assert_refused(api.delete(path), 404, said)


@pytest.mark.parametrize("version", versions("1.14"))
def test_a_child_hangs_below_its_parent(api: Client, version: str) -> None:
    """At any depth it has its parent's root."""
    root = provider(api)
    parent = root
    for _ in range(3):
        uuid = new_uuid()
        body = {"name": new_name(), "uuid": uuid, "parent_provider_uuid": parent}
        assert api.post("/resource_providers", json=body, version=version).status in (200, 201)
        assert place(api, uuid) == (parent, root)
        parent = uuid


def test_a_new_provider_may_say_that_it_has_no_parent(api: Client) -> None:
    """null is the same as no field."""
    body = {"name": new_name(), "parent_provider_uuid": None}
    assert (
        done(api.post("/resource_providers", json=body), 200).json["parent_provider_uuid"] is None
    )


@pytest.mark.parametrize("version", versions("1.14"))
def test_a_new_provider_needs_a_parent_that_exists(api: Client, version: str) -> None:
    """Neither an unknown provider nor itself."""
    uuid, name = new_uuid(), new_name()
    body = {"name": name, "uuid": uuid, "parent_provider_uuid": NOWHERE}
    answer = api.post("/resource_providers", json=body, version=version)
    said = "parent provider UUID does not exist"
    begin = f'Unable to create resource provider "{name}", {uuid}:'
    assert_refused(answer, 400, begin, said, version=version)
    body = {"name": name, "uuid": uuid, "parent_provider_uuid": uuid}
    answer = api.post("/resource_providers", json=body, version=version)
    said = "parent provider UUID cannot be same as UUID"
    assert_refused(answer, 400, said, version=version)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_rename_keeps_the_parent(api: Client, version: str) -> None:
    """If none is given."""
    root = provider(api)
    child = provider(api, parent=root)
    path = f"/resource_providers/{child}"
    assert api.put(path, json={"name": new_name()}, version=version).status == 200
    assert place(api, child) == (root, root)


@pytest.mark.parametrize("version", versions("1.14"))
def test_a_root_may_be_given_a_parent(api: Client, version: str) -> None:
    """All of its descendants get the new root."""
    target = provider(api)
    root = provider(api)
    child = provider(api, parent=root)
    answer = move(api, root, target, version)
    assert done(answer, 200).json["parent_provider_uuid"] == target
    assert answer.json["root_provider_uuid"] == target
    assert place(api, root) == (target, target)
    assert place(api, child) == (root, target)


@pytest.mark.parametrize("version", versions("1.14"))
def test_what_stays_may_be_said(api: Client, version: str) -> None:
    """The current parent, or null for a root."""
    root = provider(api)
    child = provider(api, parent=root)
    assert move(api, child, root, version).status == 200
    assert move(api, root, None, version).status == 200
    assert place(api, child) == (root, root)


@pytest.mark.parametrize("version", versions("1.14"))
def test_a_child_may_move_from_1_37(api: Client, version: str) -> None:
    """To another parent in its tree or in another; its descendants move too."""
    first, second = provider(api), provider(api)
    uncle = provider(api, parent=first)
    child = provider(api, parent=first)
    grandchild = provider(api, parent=child)
    for parent, root in ((uncle, first), (second, second)):
        answer = move(api, child, parent, version)
        if at_least(version, "1.37"):
            assert answer.status == 200
            assert place(api, child) == (parent, root)
            assert place(api, grandchild) == (child, root)
        else:
            said = "re-parenting a provider is not currently allowed"
            assert_refused(answer, 400, said, version=version)
            assert place(api, child) == (first, first)


@pytest.mark.parametrize("version", versions("1.14"))
def test_a_child_may_become_a_root_from_1_37(api: Client, version: str) -> None:
    """With null; its descendants get it as their root."""
    root = provider(api)
    child = provider(api, parent=root)
    grandchild = provider(api, parent=child)
    answer = move(api, child, None, version)
    if at_least(version, "1.37"):
        assert done(answer, 200).json["parent_provider_uuid"] is None
        assert place(api, child) == (None, child)
        assert place(api, grandchild) == (child, child)
    else:
        said = "un-parenting a provider is not currently allowed"
        assert_refused(answer, 400, said, version=version)
        assert place(api, child) == (root, root)


@pytest.mark.parametrize("version", versions("1.14"))
def test_a_tree_has_no_loops(api: Client, version: str) -> None:
    """A provider cannot be below itself or a descendant."""
    root = provider(api)
    child = provider(api, parent=root)
    grandchild = provider(api, parent=child)
    for parent in (root, child, grandchild):
        assert_refused(move(api, root, parent, version), 400, version=version)
    for parent in (child, grandchild):
        assert_refused(move(api, child, parent, version), 400, version=version)
    assert place(api, root) == (None, root)
    assert place(api, child) == (root, root)
    said = "creating loop in the provider tree is not allowed."
    assert_refused(move(api, root, grandchild), 400, said)


@pytest.mark.parametrize("version", versions("1.14"))
def test_a_parent_to_move_to_must_exist(api: Client, version: str) -> None:
    """An unknown one is 400, for roots and children."""
    root = provider(api)
    child = provider(api, parent=root)
    said = "parent provider UUID does not exist"
    assert_refused(move(api, root, NOWHERE, version), 400, said, version=version)
    assert_refused(move(api, child, NOWHERE, version), 400, version=version)
    assert place(api, child) == (root, root)


def test_a_move_takes_along_what_a_provider_has(api: Client) -> None:
    """Inventories, traits, aggregates and allocations stay."""
    aggregate = new_uuid()
    uuid = provider(api, {"VCPU": 4}, aggregates=[aggregate], traits=["HW_CPU_X86_AVX2"])
    consumer(api, {uuid: {"VCPU": 1}})
    parts = ("inventories", "usages", "aggregates", "traits", "allocations")
    before = [api.get(f"/resource_providers/{uuid}/{part}").json for part in parts]
    assert move(api, uuid, provider(api)).status == 200
    assert [api.get(f"/resource_providers/{uuid}/{part}").json for part in parts] == before


@pytest.mark.parametrize("version", VERSIONS)
def test_a_provider_can_be_deleted(api: Client, version: str) -> None:
    """With everything that belongs to it."""
    uuid = provider(api, {"VCPU": 1}, aggregates=[new_uuid()], traits=["HW_CPU_X86_AVX2"])
    path = f"/resource_providers/{uuid}"
    assert api.delete(path, version=version).status == 204
    assert_refused(api.get(path, version=version), 404, version=version)
    assert_refused(api.delete(path, version=version), 404, version=version)


def test_a_deleted_provider_takes_its_associations_along(api: Client) -> None:
    """A new provider with the same uuid and name has none of them."""
    name, aggregate = new_name(), new_uuid()
    body = {"name": name, "uuid": new_uuid()}
    path = f"/resource_providers/{body['uuid']}"
    done(api.post("/resource_providers", json=body), 200)
    put_aggregates(api, body["uuid"], [aggregate])
    done(api.delete(path), 204)
    done(api.post("/resource_providers", json=body), 200)
    assert api.get(f"{path}/aggregates").json["aggregates"] == []
    assert api.get(f"{path}/inventories").json["inventories"] == {}
    assert uuids_of(api.get(f"/resource_providers?member_of={aggregate}")) == set()


@pytest.mark.parametrize("version", VERSIONS)
def test_a_provider_with_children_stays(api: Client, version: str) -> None:
    """Children are checked before allocations."""
    root = provider(api, {"VCPU": 1})
    consumer(api, {root: {"VCPU": 1}})
    child = provider(api, parent=root)
    path = f"/resource_providers/{root}"
    answer = api.delete(path, version=version)
    said = "It has child resource providers."
    code = "placement.resource_provider.cannot_delete_parent"
    assert_refused(answer, 409, root, said, code=code, version=version)
    done(api.delete(f"/resource_providers/{child}"), 204)
    answer = api.delete(path, version=version)
    said = f"Unable to delete resource provider {root}: Resource provider has allocations."
    code = "placement.resource_provider.inuse"
    assert_refused(answer, 409, said, code=code, version=version)


def test_a_provider_can_go_when_its_last_claim_is_gone(api: Client) -> None:
    """In use before, and not after."""
    uuid = provider(api, {"VCPU": 1})
    holder = consumer(api, {uuid: {"VCPU": 1}})
    assert api.delete(f"/resource_providers/{uuid}").status == 409
    done(api.delete(f"/allocations/{holder}"), 204)
    assert api.delete(f"/resource_providers/{uuid}").status == 204
