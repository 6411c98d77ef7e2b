# SPDX-License-Identifier: Apache-2.0
"""Reshapes that can be undone: what one changes, noted before it is sent, and the way back.

A note has only what differs between before and after, so that the way back leaves alone what
others have changed since: an operator's trait, another agent's children, consumers that came and
hold something that was there before too. Where that cannot be, because somebody holds what would
go, nothing is changed, and everything that stands in the way is named. An attempt that lost a race
has left a note as well: it is taken back as far as it was made.

The way back is a driver's: a tracker carries it out like any other reshape, in one step.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Set
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from berth.hosts.errors import BadConfiguration, ReshapeFailed, RestoreNeeded, Truth
from berth.hosts.plan import Allocations, Plan, amounts_of, sums_of
from berth.hosts.provider_tree import ProviderTree
from berth.hosts.undo_file import UndoFile
from berth.hosts.whole_files import hand_over
from berth.model.inventory import Inventory

LOG = logging.getLogger(__name__)

_VERSION: Final = 1

#: Files of former starts that an agent keeps.
_KEPT: Final = 10

#: By provider and by resource class.
Amounts = Mapping[str, Mapping[str, int]]


@dataclass(frozen=True, slots=True)
class ProviderState:
    """What a provider was, or was to become."""

    name: str
    parent: str | None
    inventory: Mapping[str, Mapping[str, Any]]
    traits: tuple[str, ...]
    aggregates: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Change:
    """What one reshape changes in one tree."""

    #: The root provider.
    root: str
    name: str
    #: By uuid, parents before children: before and after, None where it is not there.
    providers: Mapping[str, tuple[ProviderState | None, ProviderState | None]]
    #: By uuid, those that hold something else: what they held before and after.
    consumers: Mapping[str, tuple[Amounts, Amounts]]


def change_of(
    plan: Plan, before: ProviderTree, after: ProviderTree, root: str, held: Allocations
) -> Change:
    """What a plan changes.

    Args:
        before, after: the trees that it was made from.
        held: what the consumers of the tree held.
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
            consumer: (_amounts_of(held[consumer]), _amounts_of(body))
            for consumer, body in (plan.allocations or {}).items()
        },
    )


class Undoing:
    """A driver that takes a tree back to what it was before a change (see `tracker.Driver`).

    What was taken back already stays so; then nothing is sent.
    """

    def __init__(self, change: Change) -> None:
        self._change = change

    def update_provider_tree(
        self, provider_tree: ProviderTree, nodename: str, allocations: Allocations | None = None
    ) -> None:
        """Edit the tree, and what its consumers hold.

        Raises:
            RestoreNeeded: `allocations` is None.
            ReshapeFailed: too much has changed since; with all that is in the way.
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
                f"{self._change.name} is left as it is, since it has changed: {'; '.join(faults)}"
            )
        for words in left:
            LOG.warning("%s: %s", self._change.name, words)

    def _shrunk(self, own: Set[str]) -> Truth:
        """Those to whom the change has given something, and what they have of it without it."""
        sums: dict[str, dict[str, int]] = {}
        for consumer, amounts in self._change.consumers.items():
            before, after = (_sums(part, own) for part in amounts)
            if shrunk := {name: before[name] for name in after if after[name] > before[name]}:
                sums[consumer] = shrunk
        return sums

    # --- Consumers --------------------------------------------------------------------------------

    def _restore_consumers(self, allocations: Allocations) -> Iterator[str]:
        """Give everybody back what he held; who holds nothing of it any more is passed over."""
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
                yield f"consumer {consumer} holds something else than it was left with"

    # --- Providers --------------------------------------------------------------------------------

    def _restore_providers(self, tree: ProviderTree, left: list[str]) -> Iterator[str]:
        states = list(self._change.providers.items())
        try:
            for uuid, (before, after) in states:
                if before is None:
                    continue
                if not tree.exists(uuid):
                    if after is not None:
                        left.append(f"{after.name} is gone, and is left so")
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
    """Take back what was changed of a provider and still is as it became, and nothing else.

    Args:
        after: None: it was deleted; one that is there all the same was not yet.
        left: is told what others have changed since, and is left as it is.

    Yields:
        What others have changed since, and cannot be left so.
    """
    became = after or ProviderState(before.name, before.parent, {}, (), ())
    now = tree.data(uuid)

    def goes_back(what: str, was: object, then: object, is_now: object) -> bool:
        if was != then and is_now not in (was, then):
            left.append(f"the {what} of {now.name} was changed since, and is left as it is")
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
            # Beside what is put back elsewhere it would be offered twice.
            yield f"{now.name} has other {resource_class} than it was left with"
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
    """A class's record with what a driver leaves out; no record has a total of 0."""
    return Inventory(**(record or {"total": 0}))


def _remove(tree: ProviderTree, uuid: str, after: ProviderState) -> Iterator[str]:
    """Remove a provider that was made, unless others have put something to it."""
    below = [tree.data(one).name for one in tree.get_provider_uuids(uuid) if one != uuid]
    classes = tree.data(uuid).inventory.keys() - after.inventory.keys()
    yield from (f"{name} stands below {after.name}, which would go" for name in below)
    yield from (f"{after.name}, which would go, has {name} now" for name in sorted(classes))
    if not below and not classes:
        tree.remove(uuid)


def _held_of_what_goes(
    tree: ProviderTree, names: Mapping[str, str], allocations: Allocations
) -> Iterator[str]:
    """What consumers would hold of providers and classes that are not there any more.

    Args:
        names: of the providers that were there, by uuid.
    """
    for consumer, body in sorted(allocations.items()):
        for (provider, resource_class), amount in sorted(amounts_of(body).items()):
            is_there = tree.exists(provider) and resource_class in tree.data(provider).inventory
            if provider in names and not is_there:
                yield (
                    f"consumer {consumer} holds {amount} {resource_class} of {names[provider]}, "
                    f"which would go"
                )


def _give(allocations: Allocations, consumer: str, amounts: Mapping[tuple[str, str], int]) -> None:
    """Let a consumer hold these amounts, and all else as it does."""
    if consumer not in allocations:
        return
    held = allocations[consumer]["allocations"]
    for (provider, resource_class), amount in amounts.items():
        resources = held.setdefault(provider, {"resources": {}})["resources"]
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


def _sums(amounts: Amounts, own: Set[str]) -> Counter[str]:
    """How much of each class, under its standard name, of some providers."""
    return sums_of(
        {
            "allocations": {
                provider: {"resources": resources}
                for provider, resources in amounts.items()
                if provider in own
            }
        }
    )


def _pairs(amounts: Amounts) -> dict[tuple[str, str], int]:
    return {
        (provider, resource_class): amount
        for provider, resources in amounts.items()
        for resource_class, amount in resources.items()
    }


# --- On disk --------------------------------------------------------------------------------------


class UndoNotes:
    """The changes of one run, in a file that is made with the first of them.

    Args:
        make_path: where the file is to be; it must not exist yet.
    """

    def __init__(self, make_path: Callable[[], Path]) -> None:
        self._make_path = make_path
        #: The file, once there is something in it.
        self.path: Path | None = None

    def note(self, change: Change) -> None:
        """Write a change down; it is on disk when this returns.

        Raises:
            BadConfiguration: it cannot be.
        """
        if self.path is None:
            path = self._make_path()
            UndoFile(path).create()
            self.path = path
        UndoFile(self.path).append({"berth_undo": _VERSION, **asdict(change)})
        LOG.info("What %s was is written down in %s", change.name, self.path)


def new_undo_path(state_dir: Path) -> Path:
    """Where the changes of this run are written down; only the newest files are kept there.

    Raises:
        BadConfiguration: the folder cannot be made.
    """
    folder = state_dir / "undo"
    try:
        if not folder.is_dir():
            folder.mkdir(mode=0o700, parents=True)
            hand_over(folder)
        for old in sorted(folder.glob("reshape-*.jsonl"))[: -_KEPT + 1]:
            old.unlink()
    except OSError as error:
        raise BadConfiguration([f"{folder} cannot be used: {error.strerror}"]) from error
    return folder / f"reshape-{datetime.now(UTC):%Y%m%dT%H%M%S.%fZ}.jsonl"


def read_changes(path: Path) -> list[Change]:
    """The changes in a file, in the order in which they were made.

    Raises:
        BadConfiguration: it cannot be read, or is no such file.
    """
    lines = UndoFile(path).read(
        lambda line: line.get("berth_undo") == _VERSION, made_by="a reshape"
    )
    return [
        Change(
            root=line["root"],
            name=line["name"],
            providers={
                uuid: (_state_from(before), _state_from(after))
                for uuid, (before, after) in line["providers"].items()
            },
            consumers={
                uuid: (before, after) for uuid, (before, after) in line["consumers"].items()
            },
        )
        for line in lines
    ]


def _state_from(line: Mapping[str, Any] | None) -> ProviderState | None:
    if line is None:
        return None
    lists = {name: tuple(line[name]) for name in ("traits", "aggregates")}
    return ProviderState(**{**line, **lists})
