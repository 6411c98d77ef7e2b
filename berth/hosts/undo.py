# SPDX-License-Identifier: Apache-2.0
"""Undoes reshapes: records each one before it is sent, and reverts it.

A record has only the differences, so that an undo leaves alone what others have changed since: an
operator's trait, another agent's children, new consumers of providers that existed before. If an
undo would remove something that is in use, it changes nothing, and names everything that is in the
way. An attempt that lost a race is recorded too, and is undone as far as it was carried out.

The undo is a driver: a tracker carries it out like any other reshape, in one step.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Set
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import msgspec

from berth.hosts.errors import ActualUsage, BadConfiguration, ReshapeFailed, RestoreNeeded
from berth.hosts.files import UndoFile, hand_over, refusing
from berth.hosts.plan import Allocations, Plan, amounts_of, sums_of
from berth.hosts.provider_tree import ProviderTree
from berth.model.inventory import Inventory
from berth.model.structs import converter

LOG = logging.getLogger(__name__)

_VERSION: Final = 1

#: The number of files that an agent keeps.
_KEPT: Final = 10

#: By provider and resource class.
Amounts = Mapping[str, Mapping[str, int]]


@dataclass(frozen=True, slots=True)
class ProviderState:
    """The state of a provider before or after a change."""

    name: str
    parent: str | None
    inventory: Mapping[str, Mapping[str, Any]]
    traits: tuple[str, ...]
    aggregates: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Change:
    """The changes of one reshape in one tree."""

    #: The root provider.
    root: str
    name: str
    #: By UUID, parents before children: before and after; None if the provider did not exist.
    providers: Mapping[str, tuple[ProviderState | None, ProviderState | None]]
    #: The changed consumers by UUID: their allocations before and after.
    consumers: Mapping[str, tuple[Amounts, Amounts]]


_changes_of: Final = converter(list[Change])


def change_of(
    plan: Plan, before: ProviderTree, after: ProviderTree, root: str, current: Allocations
) -> Change:
    """The changes of a plan.

    Args:
        before, after: the trees that it was made from.
        current: the allocations of the tree's consumers.
    """
    touched = {data.uuid for data in (*plan.created, *plan.renamed, *plan.deleted)}
    touched |= {data.uuid for data in (*plan.aggregates, *plan.traits)} | {*plan.inventories}
    order = dict.fromkeys([*before.get_provider_uuids(), *after.get_provider_uuids()])
    return Change(
        root=root,
        name=before.data(root).name,
        providers={
            uuid: (_state_of(before, uuid), _state_of(after, uuid))
            for uuid in order
            if uuid in touched
        },
        consumers={
            consumer: (_amounts_of(current[consumer]), _amounts_of(body))
            for consumer, body in (plan.allocations or {}).items()
        },
    )


class Undoing:
    """A driver that reverts a tree to its state before a change (see `tracker.Driver`).

    If the change was undone already, nothing is sent.
    """

    def __init__(self, change: Change) -> None:
        self._change = change

    def update_provider_tree(
        self, provider_tree: ProviderTree, nodename: str, allocations: Allocations | None = None
    ) -> None:
        """Edit the tree and the allocations of its consumers.

        Raises:
            RestoreNeeded: `allocations` is None.
            ReshapeFailed: something that was changed since is in the way; all of it is named.
        """
        own = provider_tree.get_provider_uuids_in_tree(self._change.root)
        if allocations is None:
            raise RestoreNeeded(self._shrunk({*own, *self._change.providers}))
        names = {uuid: provider_tree.data(uuid).name for uuid in own}
        left: list[str] = []
        faults = list(self._restore_consumers(allocations))
        faults += self._restore_providers(provider_tree, left)
        faults += _held_of_what_goes(provider_tree, names, allocations)
        if faults:
            raise ReshapeFailed(
                f"{self._change.name} is left as it is, because it has changed: {'; '.join(faults)}"
            )
        for words in left:
            LOG.warning("%s: %s", self._change.name, words)

    def _shrunk(self, own: Set[str]) -> ActualUsage:
        """The consumers whose allocations the change increased, with their totals without it."""
        sums: dict[str, dict[str, int]] = {}
        for consumer, amounts in self._change.consumers.items():
            before, after = (
                sums_of({pair: used for pair, used in _pairs(part).items() if pair[0] in own})
                for part in amounts
            )
            if shrunk := {name: before[name] for name in after if after[name] > before[name]}:
                sums[consumer] = shrunk
        return sums

    # --- Consumers --------------------------------------------------------------------------------

    def _restore_consumers(self, allocations: Allocations) -> Iterator[str]:
        """Restore the allocations of the consumers that still have some; skip the others."""
        for consumer, (before, after) in self._change.consumers.items():
            was, became = _pairs(before), _pairs(after)
            moved = {
                pair for pair in was.keys() | became.keys() if was.get(pair) != became.get(pair)
            }
            holds = amounts_of(allocations.get(consumer, {"allocations": {}}))
            now = {pair: holds[pair] for pair in moved if pair in holds}
            if now == {pair: became[pair] for pair in moved if pair in became}:
                _give(allocations, consumer, {pair: was.get(pair, 0) for pair in moved})
            elif now and now != {pair: was[pair] for pair in moved if pair in was}:
                yield f"consumer {consumer} has other allocations than the reshape left it with"

    # --- Providers --------------------------------------------------------------------------------

    def _restore_providers(self, tree: ProviderTree, left: list[str]) -> Iterator[str]:
        states = list(self._change.providers.items())
        try:
            for uuid, (before, after) in states:
                if before is None:
                    continue
                if not tree.exists(uuid):
                    if after is not None:
                        left.append(f"{after.name} was deleted since, and stays deleted")
                        continue
                    tree.new_child(before.name, before.parent or self._change.root, uuid)
                yield from _restore(tree, uuid, before, after, left)
            for uuid, (before, after) in reversed(states):
                if before is None and after is not None and tree.exists(uuid):
                    yield from _remove(tree, uuid, after)
        except ValueError as error:
            yield str(error)


def _restore(
    tree: ProviderTree,
    uuid: str,
    before: ProviderState,
    after: ProviderState | None,
    left: list[str],
) -> Iterator[str]:
    """Revert those fields of a provider that still are as the change left them.

    Args:
        after: None: the provider was deleted; if it exists, the deletion was not carried out.
        left: collects what others have changed since, which is left as it is.

    Yields:
        What others have changed since, and is in the way.
    """
    became = after or ProviderState(before.name, before.parent, {}, (), ())
    now = tree.data(uuid)

    def goes_back(part: str, was: object, then: object, is_now: object) -> bool:
        if was != then and is_now not in (was, then):
            left.append(f"the {part} of {now.name} was changed since, and is left as it is")
        return was != then and is_now == then

    if goes_back("name", before.name, became.name, now.name):
        tree.rename(uuid, before.name)
    if goes_back("parent", before.parent, became.parent, now.parent_uuid):
        tree.move(uuid, before.parent)
    inventory: dict[str, Mapping[str, Any]] = {**now.inventory}
    for resource_class in sorted(before.inventory.keys() | became.inventory.keys()):
        was, then, is_now = (
            _stock(part.inventory.get(resource_class)) for part in (before, became, now)
        )
        if min(then.total, is_now.total) > was.total and is_now != then:
            # It would be offered twice, beside the inventory that is restored elsewhere.
            yield f"{now.name} has other {resource_class} than the reshape left it with"
        elif goes_back(resource_class, was, then, is_now):
            inventory.pop(resource_class, None)
            if resource_class in before.inventory:
                inventory[resource_class] = before.inventory[resource_class]
    tree.update_inventory(uuid, inventory)
    tree.remove_traits(uuid, *{*became.traits} - {*before.traits})
    tree.add_traits(uuid, *{*before.traits} - {*became.traits})
    tree.remove_aggregates(uuid, *{*became.aggregates} - {*before.aggregates})
    tree.add_aggregates(uuid, *{*before.aggregates} - {*became.aggregates})


def _stock(record: Mapping[str, Any] | None) -> Inventory:
    """The record of a class with the defaults that a driver leaves out; a total is never 0."""
    return Inventory(**(record or {"total": 0}))


def _remove(tree: ProviderTree, uuid: str, after: ProviderState) -> Iterator[str]:
    """Remove a provider that the change created, unless others have added something to it."""
    below = [tree.data(child).name for child in tree.get_provider_uuids(uuid) if child != uuid]
    classes = tree.data(uuid).inventory.keys() - after.inventory.keys()
    yield from (f"{name} is below {after.name}, which would be deleted" for name in below)
    yield from (f"{after.name}, which would be deleted, has {name} now" for name in sorted(classes))
    if not below and not classes:
        tree.remove(uuid)


def _held_of_what_goes(
    tree: ProviderTree, names: Mapping[str, str], allocations: Allocations
) -> Iterator[str]:
    """The allocations on providers and classes that would no longer exist.

    Args:
        names: the names of the former providers, by UUID.
    """
    for consumer, body in sorted(allocations.items()):
        for (provider, resource_class), amount in sorted(amounts_of(body).items()):
            is_there = tree.exists(provider) and resource_class in tree.data(provider).inventory
            if provider in names and not is_there:
                yield (
                    f"consumer {consumer} holds {amount} {resource_class} on {names[provider]}, "
                    f"which would be deleted"
                )


def _give(allocations: Allocations, consumer: str, amounts: Mapping[tuple[str, str], int]) -> None:
    """Set these amounts of a consumer, and keep its other allocations."""
    if consumer not in allocations:
        return
    parts = allocations[consumer]["allocations"]
    for (provider, resource_class), amount in amounts.items():
        resources = parts.setdefault(provider, {"resources": {}})["resources"]
        resources[resource_class] = amount
        if not amount:
            del resources[resource_class]


def _state_of(tree: ProviderTree, uuid: str) -> ProviderState | None:
    if not tree.exists(uuid):
        return None
    data = tree.data(uuid)
    return ProviderState(
        data.name,
        data.parent_uuid,
        data.inventory,
        tuple(sorted(data.traits)),
        tuple(sorted(data.aggregates)),
    )


def _amounts_of(body: Mapping[str, Any]) -> Amounts:
    return {
        provider: dict(part["resources"])
        for provider, part in body["allocations"].items()
        if part.get("resources")
    }


def _pairs(amounts: Amounts) -> dict[tuple[str, str], int]:
    return {
        (provider, resource_class): amount
        for provider, resources in amounts.items()
        for resource_class, amount in resources.items()
    }


# --- On disk --------------------------------------------------------------------------------------


class UndoNotes:
    """Records the changes of one run, in a file that is created with the first of them.

    Args:
        make_path: chooses the path of the file, which must not exist yet.
    """

    def __init__(self, make_path: Callable[[], Path]) -> None:
        self._make_path = make_path
        #: The file, once it has a record.
        self.path: Path | None = None

    def note(self, change: Change) -> None:
        """Record a change; it is on disk when this returns.

        Raises:
            BadConfiguration: it cannot be written.
        """
        if self.path is None:
            path = self._make_path()
            UndoFile(path).create()
            self.path = path
        UndoFile(self.path).append({"berth_undo": _VERSION, **asdict(change)})
        LOG.info("The state of %s before the reshape is recorded in %s", change.name, self.path)


def new_undo_path(state_dir: Path) -> Path:
    """Choose the undo file of this run, and delete all but the newest files of earlier runs.

    Raises:
        BadConfiguration: the folder cannot be created.
    """
    folder = state_dir / "undo"
    with refusing(f"{folder} cannot be used"):
        if not folder.is_dir():
            folder.mkdir(mode=0o700, parents=True)
            hand_over(folder)
        for old in sorted(folder.glob("reshape-*.jsonl"))[: -_KEPT + 1]:
            old.unlink()
    return folder / f"reshape-{datetime.now(UTC):%Y%m%dT%H%M%S.%fZ}.jsonl"


def read_changes(path: Path) -> list[Change]:
    """The changes in a file, in the order in which they were made.

    Raises:
        BadConfiguration: the file cannot be read, or is not an undo file.
    """
    lines = UndoFile(path).read(
        lambda line: line.get("berth_undo") == _VERSION, made_by="a reshape"
    )
    try:
        return _changes_of(lines)
    except msgspec.ValidationError as error:
        raise BadConfiguration(f"{path} is not an undo file of a reshape: {error}") from error
