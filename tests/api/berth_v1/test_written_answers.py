# SPDX-License-Identifier: Apache-2.0
"""The answer to a write shows what was written, whatever another client does right after it.

Each write is followed by a request of another client before its answer is made.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest

from berth.api.berth_v1 import trees
from berth.index import Index, Snapshot
from berth.model.errors import IndexUnavailable, TraitNotFound
from berth.store import drains, flavors, labels, leases, traits
from berth.store.engine.transaction import Tx
from tests.api.claims import consumer
from tests.api.worlds import done, new_name, new_uuid, provider
from tests.client import Client

FLAVOR = {"request": {"query": "resources=VCPU:1"}}


@pytest.fixture
def interrupted(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Stages a race: once a function of a module has written, another client does something."""

    def stage(module: ModuleType, name: str, act: Callable[[], Any]) -> None:
        write = getattr(module, name)

        def and_then(*arguments: Any, **options: Any) -> Any:
            monkeypatch.setattr(module, name, write)
            written = write(*arguments, **options)
            act()
            return written

        monkeypatch.setattr(module, name, and_then)

    return stage


def test_a_lease_that_ends_before_its_answer(api: Client, interrupted: Callable[..., None]) -> None:
    """Deleted, or swept with its consumer: one of a second may expire as quickly."""
    uuid = consumer(api, {provider(api, {"VCPU": 8}): {"VCPU": 1}}, project="web", user="alice")
    for act in (
        lambda: done(api.delete(f"/berth/v1/leases/{uuid}"), 204),
        lambda: done(api.delete(f"/allocations/{uuid}"), 204),
    ):
        interrupted(leases, "put_lease", act)
        lease = done(api.put(f"/berth/v1/leases/{uuid}", json={"seconds": 1}), 200).json
        assert (lease["consumer"], lease["project_id"], lease["user_id"]) == (uuid, "web", "alice")
        assert lease["seconds_left"] == 1


def test_a_flavor_that_another_client_replaces(
    api: Client, interrupted: Callable[..., None]
) -> None:
    """The answer has the own one."""
    path = f"/berth/v1/flavors/{new_name()}"
    other = FLAVOR | {"description": "another's"}
    interrupted(flavors, "put_flavor", lambda: done(api.put(path, json=other), 200))
    mine = done(api.put(path, json=FLAVOR | {"description": "mine"}), 201).json
    assert mine["description"] == "mine"
    assert api.get(path).json["description"] == "another's"


def test_labels_that_another_client_replaces(api: Client, interrupted: Callable[..., None]) -> None:
    """The answer has the own ones."""
    path = f"/berth/v1/aggregates/{new_uuid()}"
    other = {"labels": {"zone": "z2"}}
    interrupted(labels, "replace_labels", lambda: done(api.put(path, json=other), 200))
    assert done(api.put(path, json={"labels": {"zone": "z1"}}), 200).json["labels"] == {
        "zone": "z1"
    }


@pytest.mark.parametrize("is_replaced", [False, True])
def test_a_drain_that_another_client_deletes_or_replaces(
    api: Client, interrupted: Callable[..., None], is_replaced: bool
) -> None:
    """The answer has the own one, with the time at which it was created."""
    path, host = f"/berth/v1/drains/{new_name()}", provider(api, {"VCPU": 8})
    wanted = {"providers": [host], "reason": "mine"}

    def act() -> None:
        done(api.delete(path), 204)
        if is_replaced:
            done(api.put(path, json=wanted | {"reason": "another's", "effect": "none"}), 201)

    interrupted(drains, "put_drain", act)
    drain = done(api.put(path, json=wanted), 201).json
    assert (drain["reason"], drain["effect"], drain["created_by"]) == ("mine", "exclude", "admin")
    assert drain["created_at"] is not None


@pytest.mark.parametrize("is_deleted", [False, True])
def test_a_tree_that_another_client_changes(
    api: Client, interrupted: Callable[..., None], is_deleted: bool
) -> None:
    """The answer has its changes; the tree is not shown, because it is another's by now, and
    neither is the tag with which the other's change could be overwritten."""
    name = new_name()
    path = f"/berth/v1/trees/{name}"

    def act() -> None:
        if is_deleted:
            (root,) = api.get(path).json["providers"]
            done(api.delete(f"/resource_providers/{root['uuid']}"), 204)
        else:
            other = {"name": name, "traits": ["HW_NUMA_ROOT"]}
            done(api.put(path, json={"providers": [other]}), 200)

    interrupted(trees, "edit_tree", act)
    created = done(api.put(path, json={"providers": [{"name": name}]}), 201)
    assert [change["name"] for change in created.json["changes"]] == [name]
    assert "providers" not in created.json and "etag" not in created.headers


@pytest.mark.parametrize(
    ("module", "write", "path", "sent"),
    [
        (flavors, "put_flavor", "flavors/{0}", FLAVOR),
        (labels, "replace_labels", "aggregates/{1}", {"labels": {"zone": "z1"}}),
        (drains, "put_drain", "drains/{0}", {"select": {"required": ["HW_NUMA_ROOT"]}}),
        (trees, "edit_tree", "trees/{0}", {"providers": [{"name": "{0}"}]}),
    ],
)
def test_a_database_that_goes_away_before_the_answer(
    api: Client,
    interrupted: Callable[..., None],
    monkeypatch: pytest.MonkeyPatch,
    module: ModuleType,
    write: str,
    path: str,
    sent: dict[str, Any],
) -> None:
    """What is written is written: the answer says so, at the revision before it."""
    name, uuid = new_name(), new_uuid()
    before = done(api.get("/berth/v1/flavors"), 200).json["revision"]
    body = json.loads(json.dumps(sent).replace("{0}", name))

    def go_away() -> None:
        def snapshot(index: Index) -> Snapshot:
            raise IndexUnavailable

        monkeypatch.setattr(Index, "snapshot", snapshot)

    interrupted(module, write, go_away)
    answered = api.put(f"/berth/v1/{path.format(name, uuid)}", json=body)
    monkeypatch.undo()
    assert answered.status in (200, 201)
    assert answered.json["revision"] == before
    assert done(api.get(f"/berth/v1/{path.format(name, uuid)}"), 200).json["revision"] != before


def test_a_trait_that_another_client_deletes_is_made_again(
    api: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was there when it was to be made, and gone when it was read."""
    name, read = f"CUSTOM_{new_uuid().replace('-', '').upper()}", traits._get_record
    outcomes = iter([False, False, True])

    def get_record(tx: Tx, name: str) -> traits.TraitRecord:
        if next(outcomes):
            return read(tx, name)
        raise TraitNotFound(name)

    monkeypatch.setattr(traits, "_get_record", get_record)
    done(api.put(f"/traits/{name}"), 201)
