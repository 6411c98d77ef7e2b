# SPDX-License-Identifier: Apache-2.0
"""A host that is described in a YAML file.

    inventories:                       # of the node itself
      MEMORY_MB: {total: 65536, reserved: 512}
    traits: [CUSTOM_RACK_7]
    aggregates: [3f0b8d5e-5c4a-4b0e-9d6b-0f6f2d5a9c11]
    children:
      - name: $NODE_gpu0
        inventories: {VGPU: {total: 4}}
        children: []
    moves:
      - {class: VGPU, from: $NODE, to: [$NODE_gpu0]}

`$NODE` stands for the node's name, also as a part of a name, since names are unique in a service.
What you delete from the file is removed from the service. The driver marks its children with a
trait of its own, CUSTOM_OWNER_BERTH_STATIC, so that another driver may report on the same node.
What it adds to other providers (the node, or other agents' children in the file) is recorded in a
file, so that it removes exactly that.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final
from uuid import UUID, uuid5

from msgspec import Meta, Struct, field
from msgspec.structs import asdict

from berth.hosts.drivers.host_model.moving import Move as Moved
from berth.hosts.drivers.host_model.moving import Target, allocated_on, move_allocations
from berth.hosts.drivers.kept_settings import KEEP_DAYS, Keeping, end_traits
from berth.hosts.drivers.ownership import (
    STATIC_OWNER_TRAIT,
    OwnedFile,
    Parts,
    classes_in,
    give,
    names_of,
    parts_of,
    take_from,
)
from berth.hosts.errors import BadConfiguration, ReshapeNeeded
from berth.hosts.fields import (
    AbsolutePath,
    ClassName,
    CountOrZero,
    ProviderName,
    Record,
    TraitName,
    UUIDText,
    refuse_duplicates,
)
from berth.hosts.files import Watched
from berth.hosts.plan import Allocations
from berth.hosts.provider_tree import ProviderTree
from berth.hosts.validation import convert, fault_text, load_yaml
from berth.model.inventory import Inventory

LOG = logging.getLogger(__name__)

#: Stands for the node's name.
NODE: Final = "$NODE"

#: The default place of the records.
_STATE_DIR: Final = Path("/var/lib/berth-agent")
_STATE: Final = "static-driver.json"


@dataclass(frozen=True, slots=True)
class Declared:
    """A provider in the file."""

    name: str
    #: Its parent's name; None for the node.
    parent: str | None
    #: Its name with `$NODE`, from which its UUID is derived: a renamed node keeps its children.
    key: str
    #: None: its present UUID, or one that is derived from `key`.
    uuid: str | None
    contents: _Contents


class Move(Struct, frozen=True, forbid_unknown_fields=True):
    """A resource class whose inventory and allocations move from one provider to others."""

    resource_class: ClassName = field(name="class")
    source: ProviderName = field(name="from")
    targets: Annotated[tuple[ProviderName, ...], Meta(min_length=1)] = field(name="to")


class Declaration:
    """The content of a file for one node: that node first, parents before their children."""

    def __init__(self, path: Path, file: _File, node: str = NODE) -> None:
        self.path = path
        self._file = file
        self.providers = (
            Declared(node, None, NODE, None, file),
            *_declared_below(file, node, node),
        )
        self.moves = [
            Move(
                move.resource_class,
                move.source.replace(NODE, node),
                tuple(target.replace(NODE, node) for target in move.targets),
            )
            for move in file.moves or ()
        ]

    def on(self, node: str) -> Declaration:
        """The declaration for one node, with its name in place of `$NODE`.

        Raises:
            BadConfiguration: two providers have the same name then.
        """
        made = Declaration(self.path, self._file, node)
        names = [entry.name for entry in made.providers]
        if twice := sorted({name for name in names if names.count(name) > 1}):
            raise BadConfiguration(
                f"{self.path}: on {node} several providers have the name {twice[0]}"
            )
        return made


def _declared_below(contents: _Contents, parent: str, node: str) -> Iterator[Declared]:
    for child in contents.children or ():
        name = child.name.replace(NODE, node)
        yield Declared(name, parent, child.name, child.uuid, child)
        yield from _declared_below(child, name, node)


class _Contents(Struct, forbid_unknown_fields=True, kw_only=True):
    """The fields of the node, and of every child."""

    inventories: dict[ClassName, Record] | None = None
    traits: list[TraitName] | None = None
    aggregates: list[UUIDText] | None = None
    children: list[_Child] | None = None

    def __post_init__(self) -> None:
        """Refuse a trait or an aggregate that is listed twice."""
        refuse_duplicates(traits=self.traits, aggregates=self.aggregates)


class _Child(_Contents):
    name: ProviderName
    uuid: UUIDText | None = None


class _File(_Contents):
    moves: list[Move] | None = None


class _Options(Struct, forbid_unknown_fields=True):
    file: AbsolutePath
    state: AbsolutePath | None = None
    #: How long what was set on a child is kept while it is not in the file.
    keep_days: CountOrZero = KEEP_DAYS


def make_driver(options: Mapping[str, object]) -> StaticDriver:
    """Create the driver, which is registered as `static`.

    Raises:
        BadConfiguration: with every fault of the options.
    """
    checked = convert(options, _Options, "driver static", at="options")
    return StaticDriver(checked.file, checked.state, checked.keep_days)


class StaticDriver:
    """Reports what a YAML file says.

    Args:
        path: the file; checked in every pass.
        owned: the file that records what was added to providers that the driver did not create;
            None: in the default state directory, or where `note_in` says.
        keep_days: how long what was set on a child is kept while it is not in the file.
    """

    def __init__(self, path: Path, owned: Path | None, keep_days: int = KEEP_DAYS) -> None:
        self.keeping = Keeping(keep_days)
        self._file = Watched(lambda: [path], lambda _: read_declaration(path))
        self._is_placed = owned is not None
        self._owned = OwnedFile(owned or _STATE_DIR / _STATE)
        #: Providers about which a warning was logged.
        self._said: set[str] = set()
        #: Reads the usage of a provider, by resource class; None: only known at a reshape.
        self.used: Callable[[str], Mapping[str, int]] | None = None

    def note_in(self, folder: Path) -> None:
        """See `drivers.TakesNotes`."""
        if not self._is_placed:
            self._owned = OwnedFile(folder / _STATE)

    def write_no_notes(self) -> None:
        """Do not write the file that records what was added (see `drivers.TakesNotes`)."""
        self._owned.is_fixed = True

    def update_provider_tree(
        self, provider_tree: ProviderTree, nodename: str, allocations: Allocations | None = None
    ) -> None:
        """Update the tree of a node to what the file says (see `tracker.Driver`).

        Raises:
            ReshapeNeeded: one of the file's moves is pending, and `allocations` is None. Nothing is
                edited then.
            ReshapeFailed: consumers do not fit on the targets of a move.
            BadConfiguration: the file is invalid, or contradicts this tree.
        """
        wanted = self._file.value().on(nodename)
        moves = [move for move in wanted.moves if _is_ahead(move, provider_tree)]
        if moves and allocations is None:
            raise ReshapeNeeded
        with provider_tree.transaction():
            uuids = _place(wanted, provider_tree)
            self._fill(wanted, uuids, provider_tree)
            for move in moves:
                assert allocations is not None, "a move was refused above without them"
                _carry_out(move, provider_tree, allocations)
            self._drop_others(set(uuids.values()), provider_tree, nodename, allocations)

    def _fill(self, wanted: Declaration, uuids: Mapping[str, str], tree: ProviderTree) -> None:
        """Give every provider of the file its contents, and remove what was deleted from the file.

        The driver's own children have only the file's inventory.
        """
        root = uuids[wanted.providers[0].name]
        noted = self._owned.read(root)
        owned = {}
        for provider in wanted.providers:
            data, contents = tree.data(uuids[provider.name]), provider.contents
            own = noted.get(data.uuid, Parts())
            if STATIC_OWNER_TRAIT in data.traits and provider.parent is not None:
                own |= classes_in(data.inventory)
            tree.remove_traits(data.uuid, *end_traits(data.traits))
            owned[data.uuid] = give(
                tree,
                data.uuid,
                {name: asdict(record) for name, record in (contents.inventories or {}).items()},
                contents.traits or (),
                contents.aggregates or (),
                own=own,
            )
        for uuid in tree.get_provider_uuids(root):
            if uuid not in owned and (own := noted.get(uuid, Parts())):
                is_own_child = STATIC_OWNER_TRAIT in tree.data(uuid).traits
                # Its own children that left the file are removed later.
                owned[uuid] = (
                    own & parts_of(tree.data(uuid))
                    if is_own_child
                    else give(tree, uuid, {}, own=own)
                )
        self._owned.write(root, owned)

    def _drop_others(
        self,
        wanted: Set[str],
        tree: ProviderTree,
        nodename: str,
        allocations: Allocations | None,
    ) -> None:
        """Remove the driver's own children that are not in the file.

        A child that has allocations, or others' providers below it, stays, but offers nothing more.
        """
        for uuid in reversed(tree.get_provider_uuids(nodename)):
            data = tree.data(uuid)
            if uuid in wanted or STATIC_OWNER_TRAIT not in data.traits:
                continue
            below = [
                tree.data(child).name for child in tree.get_provider_uuids(uuid) if child != uuid
            ]
            in_use = {name for name in data.inventory if self._is_held(uuid, name, allocations)}
            own = self._owned.read(tree.get_root_uuid(nodename)).get(uuid, Parts())
            reported = names_of(own, "traits", "aggregates") | {STATIC_OWNER_TRAIT}
            if not below and not in_use:
                # The file's amounts are complete: nothing that is set there lasts.
                bare = data._replace(inventory={})
                notice = self.keeping.keep(tree, bare, reported)
                if not notice:
                    tree.remove(uuid)
                elif uuid not in self._said:
                    self._said.add(uuid)
                    LOG.warning("%s", notice)
                continue
            tree.update_inventory(
                uuid,
                {
                    name: {**record, "reserved": record["total"]}
                    for name, record in data.inventory.items()
                    if name in in_use
                },
            )
            if uuid not in self._said:
                self._said.add(uuid)
                why = [f"{name} is allocated" for name in sorted(in_use)]
                why += [f"{name} is below it" for name in below]
                LOG.warning(
                    "%s left the file; it stays, but offers nothing more, because %s",
                    data.name,
                    ", ".join(why),
                )

    def _is_held(self, provider: str, name: str, allocations: Allocations | None) -> bool:
        if allocations is not None:
            return bool(allocated_on(allocations, provider, name))
        return self.used is not None and bool(self.used(provider).get(name))


def _is_ahead(move: Move, tree: ProviderTree) -> bool:
    """Whether a move is pending: the source still has inventory of the class in the service."""
    return tree.exists(move.source) and move.resource_class in tree.data(move.source).inventory


def _place(wanted: Declaration, tree: ProviderTree) -> dict[str, str]:
    """Create, rename and move providers as the file says; return their UUIDs by name."""
    uuids: dict[str, str] = {}
    for provider in wanted.providers:
        try:
            uuids[provider.name] = _place_one(wanted, provider, tree)
        except ValueError as error:
            raise BadConfiguration(f"{wanted.path}, {provider.name}: {error}") from error
    return uuids


def _place_one(wanted: Declaration, provider: Declared, tree: ProviderTree) -> str:
    if provider.parent is None:
        return tree.data(provider.name).uuid
    root = tree.data(wanted.providers[0].name).uuid
    derived = str(uuid5(UUID(root), f"static {provider.key}"))
    keys = (provider.uuid, provider.name, None if provider.uuid else derived)
    existing = next((key for key in keys if key and tree.exists(key)), None)
    if existing is None:
        uuid = tree.new_child(provider.name, provider.parent, provider.uuid or derived)
        tree.add_traits(uuid, STATIC_OWNER_TRAIT)
        return uuid
    data = tree.data(existing)
    if data.uuid == derived:
        # A pass that crashed after creating it has not marked it.
        tree.add_traits(derived, STATIC_OWNER_TRAIT)
        data = tree.data(derived)
    if provider.uuid not in (None, data.uuid):
        raise ValueError(f"its UUID in the service is {data.uuid}, not {provider.uuid}")
    is_in_tree = tree.get_root_uuid(data.uuid) == root
    if STATIC_OWNER_TRAIT in data.traits and is_in_tree:
        tree.rename(data.uuid, provider.name)
        tree.move(data.uuid, provider.parent)
    elif (data.name, data.parent_uuid) != (provider.name, tree.data(provider.parent).uuid):
        above = tree.data(data.parent_uuid).name if data.parent_uuid else "no parent"
        raise ValueError(
            f"another client created it, as {data.name} under {above}; this file can add to it, "
            f"but not move or rename it"
        )
    return data.uuid


def _carry_out(move: Move, tree: ProviderTree, allocations: Allocations) -> None:
    source = tree.data(move.source).uuid
    name = move.resource_class
    targets = tuple(
        Target(data.uuid, data.name, place, Inventory(**data.inventory[name]))
        for place, data in enumerate(map(tree.data, move.targets))
    )
    move_allocations(allocations, [Moved(name, (source,), targets)], lambda consumer: None)
    take_from(tree, source, classes_in([name]))


# --- Reading the file -----------------------------------------------------------------------------


def read_declaration(path: Path) -> Declaration:
    """Read a file.

    Raises:
        BadConfiguration: with every fault.
    """
    body = load_yaml(path)
    if body is None:
        # Another program may be writing the file at this moment.
        raise BadConfiguration(f"{path} is empty; to declare no provider, write {{}}")
    file = convert(body, _File, path)
    declaration = Declaration(path, file)
    providers = declaration.providers
    faults = [*_duplicates(providers), *_faults_of_moves(declaration.moves, providers)]
    if faults:
        raise BadConfiguration(*(fault_text(path, *fault) for fault in faults))
    return declaration


def _duplicates(providers: Sequence[Declared]) -> Iterator[tuple[str, str]]:
    names = Counter(provider.name for provider in providers)
    uuids = Counter(provider.uuid for provider in providers if provider.uuid)
    for value, number in sorted((names + uuids).items()):
        if number > 1:
            yield "", f"{number} providers have the name or uuid {value}"


def _faults_of_moves(
    moves: Sequence[Move], providers: Sequence[Declared]
) -> Iterator[tuple[str, str]]:
    by_name = {provider.name: provider for provider in providers}
    for number, move in enumerate(moves):
        at, name = f"moves[{number}]", move.resource_class
        source = by_name.get(move.source)
        if source is not None and name in (source.contents.inventories or {}):
            yield f"{at}.from", f"{source.name} still has inventory of {name} in this file"
        for index, target in enumerate(move.targets):
            if target not in by_name:
                yield f"{at}.to[{index}]", f"there is no provider {target} in this file"
            elif name not in (by_name[target].contents.inventories or {}):
                yield f"{at}.to[{index}]", f"{target} has no inventory of {name} in this file"
            elif target in move.targets[:index]:
                yield f"{at}.to[{index}]", f"{target} is listed twice"
