# SPDX-License-Identifier: Apache-2.0
"""The answer to a write shows what was written, whatever another client does right after it.

Each write is followed by a request of another client before its answer is made.
"""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest

from berth.api.berth_v1 import trees
from berth.index import Index, Snapshot
from berth.model.errors import IndexUnavailable, TraitNotFound
from berth.store import leases, named, traits
from berth.store.engine.transaction import Tx
from tests.api.worlds import done, provider
from tests.client import Client
from tests.worlds import consumer_uuid

FLAVOR = {"request": {"query": "resources=VCPU:1"}}
DRAIN = {"providers": ["cn1"], "reason": "mine"}
TREE = {"providers": [{"name": "new"}]}
UUID = consumer_uuid("job")


@pytest.fixture
def api(client: Client) -> Client:
    """A service with a host on which somebody is."""
    provider(client, {"VCPU": 8}, name="cn1")
    done(client.put("/berth/v1/consumers/web/job", json={
        "allocations": {"cn1": {"resources": {"VCPU": 1}}}, "user_id": "alice",
        "consumer_type": "JOB", "uuid": UUID,
    }), 200)  # fmt: skip
    return client


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


@pytest.mark.parametrize(
    ("module", "write", "path", "sent", "others", "due"),
    [
        # Deleted, or swept with its consumer: one of a second may expire as quickly.
        (leases, "put_lease", f"leases/{UUID}", {"seconds": 1},
         [("DELETE", f"leases/{UUID}", None)],
         {"consumer": UUID, "project_id": "web", "user_id": "alice", "seconds_left": 1}),
        (leases, "put_lease", f"leases/{UUID}", {"seconds": 1},
         [("DELETE", f"consumers/{UUID}", None)],
         {"consumer": UUID, "project_id": "web", "user_id": "alice", "seconds_left": 1}),
        (named, "put_flavor", "flavors/f", {**FLAVOR, "description": "mine"},
         [("PUT", "flavors/f", {**FLAVOR, "description": "another's"})], {"description": "mine"}),
        (named, "replace_labels", f"aggregates/{UUID}", {"labels": {"zone": "z1"}},
         [("PUT", f"aggregates/{UUID}", {"labels": {"zone": "z2"}})], {"labels": {"zone": "z1"}}),
        (named, "put_drain", "drains/d", DRAIN, [("DELETE", "drains/d", None)],
         {"reason": "mine", "effect": "exclude", "created_by": "admin"}),
        (named, "put_drain", "drains/d", DRAIN,
         [("DELETE", "drains/d", None),
          ("PUT", "drains/d", {**DRAIN, "reason": "another's", "effect": "none"})],
         {"reason": "mine", "effect": "exclude", "created_by": "admin"}),
        # The tree is not shown, because it is another's by now, and neither is the tag with which
        # the other's change could be overwritten.
        (trees, "edit_tree", "trees/new", TREE,
         [("PUT", "trees/new", {"providers": [{"name": "new", "traits": ["HW_NUMA_ROOT"]}]})],
         {"providers": None, "etag": None}),
        (trees, "edit_tree", "trees/new", TREE, [("DELETE", "", None)],
         {"providers": None, "etag": None}),
    ],
    ids=str,
)  # fmt: skip
def test_what_another_client_does_before_the_answer(
    api: Client,
    interrupted: Callable[..., None],
    module: ModuleType,
    write: str,
    path: str,
    sent: Any,
    others: list[tuple[str, str, Any]],
    due: dict[str, Any],
) -> None:
    """The answer has the own one, with the time at which it was created."""

    def act() -> None:
        for method, other, body in others:
            url = f"/berth/v1/{other}"
            if not other:
                (root,) = api.get("/berth/v1/trees/new").json["providers"]
                url = f"/resource_providers/{root['uuid']}"
            options = {} if body is None else {"json": body}
            assert api.request(method, url, **options).status in (200, 201, 204)

    interrupted(module, write, act)
    answered = api.put(f"/berth/v1/{path}", json=sent)
    assert answered.status in (200, 201), answered.text
    assert {name: answered.json.get(name) for name in due} == due
    if write == "put_drain":
        assert answered.json["created_at"] is not None
    if module is trees:
        assert [change["name"] for change in answered.json["changes"]] == ["new"]
        assert "etag" not in answered.headers


@pytest.mark.parametrize(
    ("module", "write", "path", "sent"),
    [
        (named, "put_flavor", "flavors/f", FLAVOR),
        (named, "replace_labels", f"aggregates/{UUID}", {"labels": {"zone": "z1"}}),
        (named, "put_drain", "drains/d", {"select": {"required": ["HW_NUMA_ROOT"]}}),
        (trees, "edit_tree", "trees/new", TREE),
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
    before = done(api.get("/berth/v1/flavors"), 200).json["revision"]

    def go_away() -> None:
        def snapshot(index: Index) -> Snapshot:
            raise IndexUnavailable

        monkeypatch.setattr(Index, "snapshot", snapshot)

    interrupted(module, write, go_away)
    answered = api.put(f"/berth/v1/{path}", json=sent)
    monkeypatch.undo()
    assert answered.status in (200, 201)
    assert answered.json["revision"] == before
    assert done(api.get(f"/berth/v1/{path}"), 200).json["revision"] != before


def test_a_trait_that_another_client_deletes_is_made_again(
    api: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was there when it was to be made, and gone when it was read."""
    read = traits._get_record
    outcomes = iter([False, False, True])

    def get_record(tx: Tx, name: str) -> traits.TraitRecord:
        if next(outcomes):
            return read(tx, name)
        raise TraitNotFound(name)

    monkeypatch.setattr(traits, "_get_record", get_record)
    done(api.put("/traits/CUSTOM_AGAIN"), 201)
