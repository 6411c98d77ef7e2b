# SPDX-License-Identifier: Apache-2.0
"""Trees of hosts that no longer exist, and other clients that use them while they are deleted."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from berth.hosts.audit import (
    Finding,
    Known,
    Outcome,
    find,
    fix,
    read_changes,
    read_world,
    restore,
)
from berth.hosts.files import UndoFile
from berth.hosts.service import Service
from tests.hosts.hosts import Meanwhile
from tests.hosts.stage import Stage, consumer_uuid, drawn
from tests.worlds import provider_uuid

GONE = """
    gone  VCPU=8  CUSTOM_GOLD
      gone-gpu  VGPU=4  CUSTOM_GOLD
        gone-vf  SRIOV_NET_VF=2
"""


SERVICES = ["berth"]


@pytest.fixture(autouse=True)
def _gone(stage: Stage) -> None:
    """The tree of a host that no longer exists."""
    stage.show(GONE)


@pytest.fixture
def undo(tmp_path: Path) -> UndoFile:
    file = UndoFile(tmp_path / "undo")
    file.create()
    return file


def found(stage: Stage) -> Finding:
    """The only finding: there is no host of that name."""
    (finding,) = find(read_world(Service(stage.transport)), {}, Known(hosts=frozenset({"cn1"})), {})
    return finding


@pytest.mark.parametrize(
    ("somebody", "outcome"),
    [
        (lambda stage: stage.hold("i1", "gone VCPU=1"), Outcome.CHANGED_SINCE),
        # Another client has created a child, so there is a host.
        (lambda stage: stage.make("more", "gone"), Outcome.CHANGED_SINCE),
        (lambda stage: stage.clear(), Outcome.NOTHING_TO_DO),
    ],
    ids=["in use", "grown", "gone"],
)
def test_a_tree_that_changed_since_it_was_found_is_left_whole(
    stage: Stage, undo: UndoFile, somebody: Callable[[Stage], object], outcome: Outcome
) -> None:
    """And nothing is noted."""
    finding = found(stage)
    somebody(stage)
    before = stage.picture()
    assert fix(Service(stage.transport), {}, finding, undo) is outcome
    assert stage.picture() == before
    assert read_changes(undo) == []


def test_a_provider_that_goes_while_all_are_read_is_left_out(stage: Stage) -> None:
    """Another client deletes one of the listed children."""
    child = f"GET /resource_providers/{provider_uuid('gone-vf')}/allocations"
    meanwhile = Meanwhile(stage.transport, child, lambda: stage.remove("gone-vf"))
    stage.hold("i1", "gone VCPU=1")
    assert set(read_world(Service(meanwhile)).providers_of) == {consumer_uuid("i1")}


def test_what_was_deleted_comes_back_where_the_rest_cannot_go(stage: Stage, undo: UndoFile) -> None:
    """The scheduler claims on the root before the last request: its children are created again."""
    root = f"DELETE /resource_providers/{provider_uuid('gone')}"
    meanwhile = Meanwhile(stage.transport, root, lambda: stage.hold("i1", "gone VCPU=1"))
    assert fix(Service(meanwhile), {}, found(stage), undo) is Outcome.CHANGED_SINCE
    assert stage.picture() == drawn(f"{GONE}i1: gone VCPU=1")


def test_what_cannot_come_back_is_told_and_can_later(stage: Stage, undo: UndoFile) -> None:
    """Another provider has taken its name by then; a later undo succeeds."""

    def meanwhile() -> None:
        stage.hold("i1", "gone VCPU=1")
        Service(stage.transport).post("/resource_providers", {"name": "gone-gpu"})

    root = f"DELETE /resource_providers/{provider_uuid('gone')}"
    service = Service(Meanwhile(stage.transport, root, meanwhile))
    assert fix(service, {}, found(stage), undo) is Outcome.PARTLY_DONE

    stage.remove("gone-gpu")
    assert [restore(service, change) for change in read_changes(undo)] == [
        Outcome.NOTHING_TO_DO,
        Outcome.DONE,
        Outcome.DONE,
    ]
    assert stage.picture() == drawn(f"{GONE}i1: gone VCPU=1")


def test_what_came_back_in_part_is_completed(stage: Stage, undo: UndoFile) -> None:
    """The service failed when the host had its name and traits again, but no inventory."""
    assert fix(Service(stage.transport), {}, found(stage), undo) is Outcome.DONE
    assert stage.picture() == ""
    stage.show("gone  CUSTOM_GOLD")
    service = Service(stage.transport)
    assert {restore(service, change) for change in read_changes(undo)} == {Outcome.DONE}
    assert stage.picture() == drawn(GONE)
