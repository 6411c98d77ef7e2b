# SPDX-License-Identifier: Apache-2.0
"""Migrating nodes while every service is stopped, and undoing it.

The scenarios of spec/compute-side.md 8 through the direct interface: a dry run changes nothing, a
migration creates the expected world, a second one has nothing to do, and undoing restores the world
of before.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from berth.hosts.errors import BadConfiguration
from berth.hosts.migration import Outcome, migrate, undo
from berth.hosts.plan import Allocations, Plan
from berth.hosts.provider_tree import ProviderTree
from berth.hosts.report_client import ReportClient
from berth.hosts.service import Transport
from berth.hosts.tracker import Driver, Node
from berth.hosts.undo import (
    Change,
    ProviderState,
    Undoing,
    UndoNotes,
    new_undo_path,
    read_changes,
)
from tests.hosts.drivers import GPUHost
from tests.hosts.hosts import (
    BEFORE,
    Falling,
    Interrupted,
    node,
    three_guests,
    tracker,
)
from tests.hosts.scenarios import SCENARIOS, SPLIT, Merging, Scenario
from tests.hosts.stage import Stage, consumer_uuid, drawn
from tests.worlds import provider_uuid

SERVICES = ["berth"]


class Offline:
    """Migrates nodes, and keeps the undo file."""

    def __init__(self, transport: Transport, path: Path) -> None:
        self._transport = transport
        self.notes = UndoNotes(lambda: path)
        self.client = ReportClient(transport, note=self.notes.note)

    def run(self, driver: Driver, *nodes: Node, dry_run: bool = False) -> list[Outcome]:
        """Migrate nodes with one attempt each."""
        self.client = ReportClient(self._transport, note=self.notes.note)
        return [*migrate(tracker(self.client, driver), nodes, dry_run=dry_run)]

    def plan(self, driver: Driver, *, dry_run: bool = False) -> Plan:
        """Migrate cn1, which must succeed."""
        (outcome,) = self.run(driver, node(), dry_run=dry_run)
        assert outcome.error is None
        return outcome.plan

    def wrote(self) -> bool:
        """Whether the last run sent writes."""
        return set(self.client.service.requests) != {"GET"}

    def changes(self) -> list[Change]:
        """The changes in the undo file."""
        return read_changes(self.notes.path) if self.notes.path else []

    def undo(self) -> Outcome:
        (outcome,) = self.undo_all()
        return outcome

    def undo_all(self) -> list[Outcome]:
        """Undo all recorded changes, the last one first."""
        self.client = client = ReportClient(self._transport)
        return [
            *undo(client, self.changes(), lambda driver: tracker(client, driver), dry_run=False)
        ]


@pytest.fixture
def offline(stage: Stage, tmp_path: Path) -> Offline:
    """A migration with an undo file."""
    return Offline(stage.transport, tmp_path / "undo.jsonl")


@pytest.mark.parametrize("scenario", SCENARIOS.values(), ids=SCENARIOS)
def test_a_node_is_migrated_and_can_be_taken_back(
    stage: Stage, offline: Offline, scenario: Scenario
) -> None:
    """Dry run, migration, second migration, undo, second undo: the world after each."""
    stage.show(scenario.before)
    rehearsed = offline.plan(scenario.driver, dry_run=True)
    assert not offline.wrote() and not offline.changes()
    assert stage.picture() == drawn(scenario.before)

    sent = offline.plan(scenario.driver)
    assert sent == rehearsed
    assert stage.picture() == drawn(scenario.after)

    assert not offline.plan(scenario.driver)
    assert not offline.wrote()

    assert offline.undo().plan.is_reshape
    assert stage.picture() == drawn(scenario.before)
    assert not offline.undo().plan
    assert not offline.wrote()

    assert offline.plan(scenario.driver)
    assert stage.picture() == drawn(scenario.after)


@pytest.mark.parametrize("is_done", [False, True], ids=["not done", "done"])
@pytest.mark.parametrize("at", range(3))
def test_an_undo_that_is_killed_is_finished_by_the_next(
    stage: Stage, offline: Offline, at: int, is_done: bool
) -> None:
    """Killed at every write: the reshape, and the deletion of two children."""
    stage.show(BEFORE)
    offline.plan(three_guests())
    (change,) = offline.changes()
    falling = Falling(stage.transport, at=at, is_done=is_done, fault=Interrupted())
    with pytest.raises(Interrupted):
        tracker(ReportClient(falling), Undoing(change)).report(node(), startup=True)
    assert offline.undo().error is None
    assert stage.picture() == drawn(BEFORE)


@pytest.mark.parametrize("at", range(5))
def test_a_migration_that_was_killed_can_be_taken_back(
    stage: Stage, offline: Offline, tmp_path: Path, at: int
) -> None:
    """Killed at every write but the last: the undo file suffices, whether the write was done or
    not."""
    stage.show(BEFORE)
    falling = Falling(stage.transport, at=at, is_done=True, fault=Interrupted())
    with pytest.raises(Interrupted):
        client = ReportClient(falling, note=offline.notes.note)
        tracker(client, three_guests()).report(node(), startup=True)
    assert offline.undo().error is None
    assert stage.picture() == drawn(BEFORE)


def test_an_undo_leaves_alone_what_others_have_changed(stage: Stage, offline: Offline) -> None:
    """Traits of operators, children of other agents, guests that came and went."""
    stage.show(BEFORE)
    offline.plan(three_guests())
    stage.trait("cn1", "CUSTOM_GOLD")
    stage.show("cn9\n  agent  VCPU=1")
    stage.hold("i3", "")
    stage.hold("i4", "cn1 VCPU=1")
    assert offline.undo().error is None
    assert stage.picture() == drawn(
        """
        cn1  VCPU=16  MEMORY_MB=32768  VGPU=8  COMPUTE_NODE  CUSTOM_GOLD
        cn9
          agent  VCPU=1
        i1: cn1 VCPU=2 MEMORY_MB=2048 VGPU=1
        i2: cn1 VCPU=2 MEMORY_MB=2048 VGPU=2
        i4: cn1 VCPU=1
        """
    )


def test_an_undo_is_refused_where_somebody_holds_what_would_go(
    stage: Stage, offline: Offline
) -> None:
    """The error names everything in the way, and nothing changes."""
    stage.show(BEFORE)
    offline.plan(three_guests())
    stage.hold("i4", "cn1_pci_85 VGPU=1")
    stage.hold("i2", "cn1 VCPU=2, cn1_pci_84 VGPU=1")
    before = stage.picture()
    error = str(offline.undo().error)
    assert (
        f"consumer {consumer_uuid('i4')} holds 1 VGPU on cn1_pci_85, which would be deleted"
        in error
    )
    assert (
        f"consumer {consumer_uuid('i2')} has other allocations than the reshape left it with"
        in error
    )
    assert stage.picture() == before
    assert not offline.wrote()


class Overtaken(GPUHost):
    """The host of `BEFORE`; an operator changes it before its first reshape."""

    def __init__(self, operator: Callable[[], None]) -> None:
        host = three_guests()
        super().__init__(host.gpus, host.guests)
        self._operator: Callable[[], None] | None = operator

    def update_provider_tree(
        self, provider_tree: ProviderTree, nodename: str, allocations: Allocations | None = None
    ) -> None:
        """Update as the host does, after the operator's change."""
        super().update_provider_tree(provider_tree, nodename, allocations)
        if self._operator is not None and allocations is not None:
            self._operator()
            self._operator = None


def test_an_attempt_that_lost_a_race_is_not_taken_back(stage: Stage, offline: Offline) -> None:
    """The undo file has the state that the operator created, not the one that the failed attempt
    read."""
    stage.show(BEFORE)
    host = Overtaken(lambda: stage.stock("cn1", "VGPU", total=6, reserved=1))
    tracker(offline.client, host, attempts_max=2).report(node(), startup=True)
    assert len(offline.changes()) == 2

    assert [outcome.error for outcome in offline.undo_all()] == [None, None]
    assert stage.picture() == drawn(BEFORE.replace("VGPU=8", "VGPU=6(reserved:1)"))


def test_what_was_changed_after_an_undo_outlasts_a_second_one(
    stage: Stage, offline: Offline, caplog: pytest.LogCaptureFixture
) -> None:
    """The undo reports it, and writes nothing."""
    stage.show(BEFORE)
    host = Overtaken(lambda: stage.stock("cn1", "VGPU", total=6, reserved=1))
    tracker(offline.client, host, attempts_max=2).report(node(), startup=True)
    offline.undo_all()
    stage.stock("cn1", "VGPU", total=7)
    caplog.clear()

    assert [outcome.error for outcome in offline.undo_all()] == [None, None]
    assert stage.picture() == drawn(BEFORE.replace("VGPU=8", "VGPU=7"))
    assert not offline.wrote()
    assert "cn1: the VGPU of cn1 was changed since, and is left as it is" in caplog.text
    assert "cn1: cn1_pci_84 was deleted since, and stays deleted" in caplog.text


def test_an_undo_is_refused_where_something_would_be_offered_twice(
    stage: Stage, offline: Offline
) -> None:
    """Scenario I: the children cannot get their vGPUs back, because an operator has added some to
    the root."""
    stage.show(SPLIT)
    offline.plan(Merging())
    stage.stock("cn1", "VGPU", total=8, reserved=1)
    before = stage.picture()
    assert "cn1 has other VGPU than the reshape left it with" in str(offline.undo().error)
    assert stage.picture() == before
    assert not offline.wrote()


@pytest.mark.parametrize("now", ["was", "became", "other"])
def test_a_provider_that_was_renamed_since_keeps_its_name(
    stage: Stage, offline: Offline, now: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Only the change itself is undone; the parent moves back."""
    stage.show(f"cn1\n  numa\n  {now}  VGPU=1")
    root, uuid = provider_uuid("cn1"), provider_uuid(now)
    was = ProviderState("was", provider_uuid("numa"), {}, (), ())
    became = ProviderState("became", root, {}, (), ())
    offline.notes.note(Change(root, "cn1", {uuid: (was, became)}, {}))

    assert offline.undo().error is None
    after = "other" if now == "other" else "was"
    assert stage.picture() == drawn(f"cn1\n  numa\n    {after}  VGPU=1")
    assert ("the name of other was changed since" in caplog.text) == (now == "other")


def test_only_the_newest_files_are_kept(tmp_path: Path) -> None:
    """One for each run; other files stay."""
    (tmp_path / "undo").mkdir()
    (tmp_path / "undo/mine.txt").touch()
    for _ in range(12):
        new_undo_path(tmp_path).touch()
    kept = sorted(path.name for path in (tmp_path / "undo").iterdir())
    assert len(kept) == 11 and "mine.txt" in kept


@pytest.mark.parametrize("text", ["{", "[1]\n", '{"what": "allocations"}\n'])
def test_a_file_of_something_else_is_refused(tmp_path: Path, text: str) -> None:
    """The error names it."""
    path = tmp_path / "undo.jsonl"
    path.write_text(text)
    with pytest.raises(BadConfiguration, match=r"undo\.jsonl"):
        read_changes(path)


@pytest.mark.parametrize(
    ("damage", "fault"),
    [
        ({"root": None}, r"Expected `str`, got `null` - at `\$\[1\]\.root`"),
        ({"providers": {"a": [None]}}, "Expected `array` of length 2, got 1"),
        ({"consumers": {"a": [{}, {"b": {"VCPU": "2"}}]}}, "Expected `int`, got `str`"),
    ],
)
def test_a_damaged_change_is_refused_with_all_others(
    tmp_path: Path, damage: dict[str, object], fault: str
) -> None:
    """An undo that left one out would look complete; the error names the file and the place."""
    path = tmp_path / "undo.jsonl"
    change = {"berth_undo": 1, "root": "r", "name": "cn1", "providers": {}, "consumers": {}}
    path.write_text("".join(f"{json.dumps(line)}\n" for line in (change, change | damage)))
    with pytest.raises(BadConfiguration, match="is not an undo file of a reshape: ") as refused:
        read_changes(path)
    (sentence,) = refused.value.faults
    assert sentence.startswith(f"{path} ") and re.search(fault, sentence)
    path.write_text(f"{json.dumps(change)}\n")
    assert read_changes(path) == [Change("r", "cn1", {}, {})]
