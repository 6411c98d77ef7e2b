# SPDX-License-Identifier: Apache-2.0
"""Resource providers: creating, showing, renaming, moving and deleting them.

Lists are in `test_provider_filters.py`.

Source: rest-api.md 4.
"""

from __future__ import annotations

from typing import Any

import pytest

from berth.store.engine.database import Database
from tests.api.versions import at_least
from tests.api.wire import Rule, rules
from tests.api.worlds import done, new_name, new_uuid, provider
from tests.client import Client
from tests.effort import is_full
from tests.routes import VERSIONS

#: The links of a provider after `self`, each with the version that brought it.
LINKS = [
    ("inventories", "1.0"),
    ("usages", "1.0"),
    ("aggregates", "1.1"),
    ("traits", "1.6"),
    ("allocations", "1.11"),
]
#: Before and after each change of the representation.
CHANGES = ["1.0", "1.1", "1.5", "1.6", "1.10", "1.11", "1.13", "1.14", "1.19", "1.20", "1.39"]


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


@pytest.mark.parametrize("version", VERSIONS if is_full() else CHANGES)
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


def test_a_provider_can_be_renamed_to_nothing(api: Client) -> None:
    """PUT accepts the empty name that POST refuses."""
    uuid = provider(api)
    answer = api.put(f"/resource_providers/{uuid}", json={"name": ""})
    if answer.status == 409:
        pytest.skip("another provider of the shared server has the empty name")
    assert done(answer, 200).json["name"] == ""
    assert api.delete(f"/resource_providers/{uuid}").status == 204


TREES = """
    root
      uncle
      child  VCPU=4(used:1)  HW_CPU_X86_AVX2  @A
        grandchild
    other
"""


@rules(
    """
    a uuid is given to a provider that brings none, another each time
        POST /resource_providers {name: $a} => 200 {uuid: $first, ...}
        POST /resource_providers {name: $b} => 200 {uuid: $second, ...}
        GET $first => 200 {name: $a, uuid: $first, ...}
        GET $second => 200 {name: $b, uuid: $second, ...}
    an unknown field is refused @1.0-
        POST /resource_providers {name: $new, $1: x}
        400 Additional properties are not allowed ('$1' was unexpected)
        PUT $root {name: $new, $1: x}
        400 Additional properties are not allowed ('$1' was unexpected)
        || generation || root_provider_uuid || links || Name
    a rename brings no uuid @1.0-
        PUT $root {name: $new, uuid: $root}
        400 Additional properties are not allowed ('uuid' was unexpected)
    before 1.14 there are no parents @1.0-1.13
        $1 {name: $new, parent_provider_uuid: $other}
        400 Additional properties are not allowed ('parent_provider_uuid' was unexpected)
        || POST /resource_providers || PUT $root
    a new provider needs a name and good uuids
        POST /resource_providers $1 => 400 $2
        | {}                                    | 'name' is a required property
        | {uuid: $new}                          | 'name' is a required property
        | {name: ""}                            | name
        | {name: é*201}                         | Failed validating 'maxLength'
        | {name: $new, uuid: null}              | None is not
        | {name: $new, uuid: 1}                 | 1 is not
        | {name: $new, parent_provider_uuid: 1} | 1 is not
        | []                                    | is not of type 'object'
    names and uuids are unique, but a provider may keep its own name @1.0-
        POST /resource_providers {name: $root.name} => 409 placement.duplicate_name
        POST /resource_providers {name: $new, uuid: $root} => 409 placement.duplicate_name
        PUT $root {name: $other.name} => 409 placement.duplicate_name
        PUT $root {name: $root.name} => 200 {name: $root.name, ...}
    an unknown provider is 404
        $1 /resource_providers/$nowhere $2 => 404 No resource provider with uuid $nowhere found
        | GET    |
        | PUT    | {name: $new}
        | DELETE |
    a child hangs below its parent, with the root of it @1.14-
        POST /resource_providers {name: $n1, uuid: $one, parent_provider_uuid: $grandchild} => $1
        GET $one => 200 {parent_provider_uuid: $grandchild, root_provider_uuid: $root, ...}
        | 201   | @1.14-1.19
        | 200 _ | @1.20-
    a new provider may say that it has no parent, and have a name of 200 characters
        POST /resource_providers {name: $(new)é*164, parent_provider_uuid: null}
        200 {parent_provider_uuid: null, ...}
    a new provider needs a parent that exists @1.14-
        POST /resource_providers {name: $new, uuid: $one, parent_provider_uuid: $nowhere}
        400 Unable to create resource provider "$new", $one: ... parent provider UUID does not exist
        POST /resource_providers {name: $new, uuid: $one, parent_provider_uuid: $one}
        400 parent provider UUID cannot be same as UUID
    a rename keeps the parent, if none is given @1.0-
        PUT $child {name: $new} => 200
        GET $child @1.39
        200 {name: $new, parent_provider_uuid: $root, root_provider_uuid: $root, ...}
    a root may be given a parent, and all below it get its root @1.14-
        PUT $root {name: $root.name, parent_provider_uuid: $other}
        200 {parent_provider_uuid: $other, root_provider_uuid: $other, ...}
        GET $root => 200 {parent_provider_uuid: $other, root_provider_uuid: $other, ...}
        GET $grandchild => 200 {parent_provider_uuid: $child, root_provider_uuid: $other, ...}
    what stays may be said @1.14-
        PUT $child {name: $child.name, parent_provider_uuid: $root} => 200
        PUT $root {name: $root.name, parent_provider_uuid: null} => 200
        GET $child => 200 {parent_provider_uuid: $root, root_provider_uuid: $root, ...}
    a child may move, with all below it @1.37-
        PUT $child {name: $child.name, parent_provider_uuid: $uncle}
        200 {parent_provider_uuid: $uncle, root_provider_uuid: $root, ...}
        GET $grandchild => 200 {parent_provider_uuid: $child, root_provider_uuid: $root, ...}
    before 1.37 a child stays @1.14-1.36
        PUT $child {name: $child.name, parent_provider_uuid: $uncle}
        400 re-parenting a provider is not currently allowed
        PUT $child {name: $child.name, parent_provider_uuid: null}
        400 un-parenting a provider is not currently allowed
    a child may become a root, with all below it @1.37-
        PUT $child {name: $child.name, parent_provider_uuid: null}
        200 {parent_provider_uuid: null, root_provider_uuid: $child, ...}
        GET $child => 200 {parent_provider_uuid: null, root_provider_uuid: $child, ...}
        GET $grandchild => 200 {parent_provider_uuid: $child, root_provider_uuid: $child, ...}
    a tree has no loops @1.14-
        PUT $1 {name: $1.name, parent_provider_uuid: $2} => 400 $3
        | $root  | $root       |
        | $root  | $child      | creating loop in the provider tree is not allowed.
        | $root  | $grandchild | creating loop in the provider tree is not allowed.
        | $child | $child      |
        | $child | $grandchild |
    a parent to move to must exist @1.14-
        PUT $root {name: $root.name, parent_provider_uuid: $nowhere}
        400 parent provider UUID does not exist
        PUT $child {name: $child.name, parent_provider_uuid: $nowhere} => 400
    a move takes along what a provider has
        PUT $child {name: $child.name, parent_provider_uuid: $other} => 200
        GET $child/inventories => 200 {inventories: {VCPU: {total: 4, ...}}, ...}
        GET $child/usages => 200 {usages: {VCPU: 1}, ...}
        GET $child/aggregates => 200 {aggregates: [$A], ...}
        GET $child/traits => 200 {traits: [HW_CPU_X86_AVX2], ...}
        GET $child/allocations
        200 {allocations: {$child.consumer: {resources: {VCPU: 1}, ...}}, ...}
    a provider with children stays, and so does one in use, until both are gone @1.0-
        DELETE $child
        409 placement.resource_provider.cannot_delete_parent Unable to delete parent resource
            provider $child: It has child resource providers.
        DELETE $grandchild => 204
        DELETE $child
        409 placement.resource_provider.inuse Unable to delete resource provider $child: Resource
            provider has allocations.
        DELETE /allocations/$child.consumer => 204
        DELETE $child => 204
        GET $child => 404
        DELETE $child => 404
    a deleted provider takes its inventories, traits and aggregates along
        DELETE $grandchild => 204
        DELETE /allocations/$child.consumer => 204
        DELETE $child => 204
        POST /resource_providers {name: $child.name, uuid: $child} => 200 _
        GET $child/aggregates => 200 {aggregates: [], ...}
        GET $child/inventories => 200 {inventories: {}, ...}
        GET $child/traits => 200 {traits: [], ...}
        GET /resource_providers?member_of=$A => 200 {resource_providers: []}
    """,
    world=TREES,
)
def test_providers(rule: Rule, wire: Client) -> None:
    """The rows of the table."""
    rule.check(wire)
