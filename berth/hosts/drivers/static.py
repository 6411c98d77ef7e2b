# SPDX-License-Identifier: Apache-2.0
"""A host whose providers stand in a YAML file.

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

`$NODE` stands for the node's name, alone or in a name, since names are unique in a service. The
file is the truth: what leaves it leaves the service. Children that the driver makes bear a trait of
its own, CUSTOM_OWNER_BERTH_STATIC, so that another driver may report on the same node. What it adds
to providers that it did not make (the node, or other agents' children that the file names too) is
noted in a file of its own, so that it takes back that and nothing else.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final
from uuid import UUID, uuid5

from berth.hosts.drivers.hosts.moving import Move as Moved
from berth.hosts.drivers.hosts.moving import Target, held_of, move_allocations
from berth.hosts.drivers.owned import (
    STATIC_OWNER_TRAIT,
    OwnedFile,
    Parts,
    owned_after,
    parts_of,
    take_from,
)
from berth.hosts.drivers.watched import Watched
from berth.hosts.drivers.yaml_files import Document
from berth.hosts.errors import BadConfiguration, ReshapeNeeded
from berth.hosts.plan import Allocations
from berth.hosts.provider_tree import ProviderTree
from berth.model.inventory import Inventory

LOG = logging.getLogger(__name__)

#: Stands for the node's name.
NODE: Final = "$NODE"

#: Where is noted what was added, where nothing else is said.
_STATE_DIR: Final = Path("/var/lib/berth-agent")
_STATE: Final = "static-driver.json"

_NODE_KEYS: Final = ("inventories", "traits", "aggregates", "children")
_FILE_KEYS: Final = (*_NODE_KEYS, "moves")
_CHILD_KEYS: Final = ("name", "uuid", *_NODE_KEYS)
_MOVE_KEYS: Final = ("class", "from", "to")


@dataclass(frozen=True, slots=True)
class Declared:
    """A provider as the file has it."""

    name: str
    #: Its parent's name; None for the node.
    parent: str | None
    #: Its name as the file has it, with `$NODE` in it: its uuid follows from that, so that it is
    #: the same provider where the node has another name.
    key: str
    #: None: whichever it has, or one that follows from its name.
    uuid: str | None = None
    #: Complete records, by resource class.
    inventories: Mapping[str, Mapping[str, int | float]] = field(default_factory=dict)
    traits: frozenset[str] = frozenset()
    aggregates: frozenset[str] = frozenset()

    @property
    def parts(self) -> Parts:
        """What it is to have."""
        return Parts(frozenset(self.inventories), self.traits, self.aggregates)


@dataclass(frozen=True, slots=True)
class Move:
    """A resource class whose inventory and allocations go from one provider to others."""

    resource_class: str
    source: str
    targets: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Declaration:
    """What a file says: the node first, parents before their children."""

    path: Path
    providers: tuple[Declared, ...]
    moves: tuple[Move, ...] = ()

    def on(self, node: str) -> Declaration:
        """The same for one node: with its name in place of `$NODE`.

        Raises:
            BadConfiguration: two providers have one name then.
        """

        def named(name: str) -> str:
            return name.replace(NODE, node)

        made = tuple(
            replace(one, name=named(one.name), parent=one.parent and named(one.parent))
            for one in self.providers
        )
        names = [one.name for one in made]
        if twice := sorted({name for name in names if names.count(name) > 1}):
            raise BadConfiguration(
                [f"{self.path}: on {node} several providers have the name {twice[0]}"]
            )
        moves = tuple(
            Move(one.resource_class, named(one.source), tuple(map(named, one.targets)))
            for one in self.moves
        )
        return Declaration(self.path, made, moves)


def make_driver(options: Mapping[str, object]) -> StaticDriver:
    """The driver with an operator's options; asked for by its name `static`.

    Raises:
        BadConfiguration: the options cannot be meant.
    """
    faults = [
        f"The static driver has no option {name!r}; there are file, state"
        for name in sorted(options.keys() - {"file", "state"})
    ]
    if "file" not in options:
        faults.append("The static driver: file must say where the YAML file is")
    for name, value in options.items():
        if name in ("file", "state") and not (isinstance(value, str) and value.startswith("/")):
            faults.append(f"The static driver, {name}: {value!r} must be a path from /")
    if faults:
        raise BadConfiguration(faults)
    state = options.get("state")
    return StaticDriver(Path(str(options["file"])), None if state is None else Path(str(state)))


class StaticDriver:
    """Reports what a YAML file says.

    Args:
        path: the file; it is looked at in every pass.
        owned: where is noted what was added to providers that the driver did not make; None: in
            the state directory of hosts, or where `note_in` says.
    """

    def __init__(self, path: Path, owned: Path | None) -> None:
        self._file = Watched(lambda: [path], lambda _: read_declaration(path))
        self._is_placed = owned is not None
        self._owned = OwnedFile(owned or _STATE_DIR / _STATE)
        #: What was warned of, so that it is not said in every pass.
        self._said: set[str] = set()
        #: Tells what is used of a provider, by resource class; None: known only at a reshape.
        self.used: Callable[[str], Mapping[str, int]] | None = None

    def note_in(self, folder: Path) -> None:
        """See `drivers.TakesNotes`."""
        if not self._is_placed:
            self._owned = OwnedFile(folder / _STATE)

    def write_no_notes(self) -> None:
        """Leave the file of what was added as it is (see `drivers.TakesNotes`)."""
        self._owned.is_fixed = True

    @property
    def problem(self) -> BadConfiguration | None:
        """What is wrong with the file as it is; its last good version is in force then."""
        return self._file.problem

    def update_provider_tree(
        self, provider_tree: ProviderTree, nodename: str, allocations: Allocations | None = None
    ) -> None:
        """Make the tree of a node what the file says (see `tracker.Driver`).

        Raises:
            ReshapeNeeded: a class is to leave a provider by one of the file's moves, and
                `allocations` is None. Nothing is edited then.
            ReshapeFailed: consumers do not fit where they are moved to.
            BadConfiguration: the file cannot be meant, or not for this tree.
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
        """Give every provider of the file its contents, and take back what is not there any more.

        A child of the driver's own has no inventory but the file's.
        """
        root = uuids[wanted.providers[0].name]
        noted = self._owned.read(root)
        owned = {}
        for one in wanted.providers:
            data = tree.data(uuids[one.name])
            there, own = parts_of(data), noted.get(data.uuid, Parts())
            is_own_child = STATIC_OWNER_TRAIT in data.traits and one.parent is not None
            # The file is the truth of the classes that it names, whoever was first.
            own |= Parts(there.classes if is_own_child else one.parts.classes & there.classes)
            owned[data.uuid] = owned_after(own, wanted=one.parts, there=there)
            take_from(tree, data.uuid, own - one.parts)
            left = tree.data(data.uuid).inventory
            tree.update_inventory(data.uuid, {**left, **one.inventories})
            tree.add_traits(data.uuid, *one.traits)
            tree.add_aggregates(data.uuid, *one.aggregates)
        self._take_back(noted, owned, tree, root)
        self._owned.write(root, owned)

    @staticmethod
    def _take_back(
        noted: Mapping[str, Parts], owned: dict[str, Parts], tree: ProviderTree, root: str
    ) -> None:
        """Take what was added from other agents' children that the file names no more."""
        for uuid in tree.get_provider_uuids(root):
            own = noted.get(uuid, Parts())
            data = tree.data(uuid)
            if uuid not in owned and own and STATIC_OWNER_TRAIT not in data.traits:
                take_from(tree, uuid, own)
                owned[uuid] = own & parts_of(data)

    def _drop_others(
        self,
        wanted: Set[str],
        tree: ProviderTree,
        nodename: str,
        allocations: Allocations | None,
    ) -> None:
        """Remove the driver's own children that the file does not name.

        One below which others' stand, or of which somebody is known to hold something, stays, and
        offers nothing more.
        """
        for uuid in reversed(tree.get_provider_uuids(nodename)):
            data = tree.data(uuid)
            if uuid in wanted or STATIC_OWNER_TRAIT not in data.traits:
                continue
            below = [tree.data(one).name for one in tree.get_provider_uuids(uuid) if one != uuid]
            held = {name for name in data.inventory if self._is_held(uuid, name, allocations)}
            if not below and not held:
                tree.remove(uuid)
                continue
            tree.update_inventory(
                uuid,
                {
                    name: {**record, "reserved": record["total"]}
                    for name, record in data.inventory.items()
                    if name in held
                },
            )
            if uuid not in self._said:
                self._said.add(uuid)
                why = [f"{name} of it is held" for name in sorted(held)]
                why += [f"{name} is below it" for name in below]
                LOG.warning(
                    "%s left the file; it stays and offers nothing more, since %s",
                    data.name,
                    ", ".join(why),
                )

    def _is_held(self, provider: str, name: str, allocations: Allocations | None) -> bool:
        if allocations is not None:
            return bool(held_of(allocations, provider, name))
        return self.used is not None and bool(self.used(provider).get(name))


def _is_ahead(move: Move, tree: ProviderTree) -> bool:
    """Whether the class is still where it is to leave: told by the service's state alone."""
    return tree.exists(move.source) and move.resource_class in tree.data(move.source).inventory


def _place(wanted: Declaration, tree: ProviderTree) -> dict[str, str]:
    """See that every provider of the file is where it belongs; their uuids by name."""
    uuids: dict[str, str] = {}
    for one in wanted.providers:
        try:
            uuids[one.name] = _place_one(wanted, one, tree)
        except ValueError as error:
            raise BadConfiguration([f"{wanted.path}, {one.name}: {error}"]) from error
    return uuids


def _place_one(wanted: Declaration, one: Declared, tree: ProviderTree) -> str:
    if one.parent is None:
        return tree.data(one.name).uuid
    root = tree.data(wanted.providers[0].name).uuid
    derived = str(uuid5(UUID(root), f"static {one.key}"))
    keys = (one.uuid, one.name, None if one.uuid else derived)
    there = next((key for key in keys if key and tree.exists(key)), None)
    if there is None:
        uuid = tree.new_child(one.name, one.parent, one.uuid or derived)
        tree.add_traits(uuid, STATIC_OWNER_TRAIT)
        return uuid
    data = tree.data(there)
    if data.uuid == derived:
        # A pass that fell after making it has not marked it.
        tree.add_traits(derived, STATIC_OWNER_TRAIT)
        data = tree.data(derived)
    if one.uuid not in (None, data.uuid):
        raise ValueError(f"the service has it under the uuid {data.uuid}, not {one.uuid}")
    is_in_tree = tree.get_root_uuid(data.uuid) == root
    if STATIC_OWNER_TRAIT in data.traits and is_in_tree:
        tree.rename(data.uuid, one.name)
        tree.move(data.uuid, one.parent)
    elif (data.name, data.parent_uuid) != (one.name, tree.data(one.parent).uuid):
        above = tree.data(data.parent_uuid).name if data.parent_uuid else "no parent"
        raise ValueError(
            f"somebody else has made it, as {data.name} under {above}; it can be added to, but "
            f"neither moved nor named anew from here"
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
    take_from(tree, source, Parts(frozenset({name})))


# --- Reading the file -----------------------------------------------------------------------------


def read_declaration(path: Path) -> Declaration:
    """What a file says.

    Raises:
        BadConfiguration: with everything that is wrong with it.
    """
    document = Document(path)
    said = document.load()
    if said is None:
        # Perhaps somebody is just writing it.
        document.fault("", "is empty; where no provider is meant, it must say {}")
    body = document.mapping(said, "", keys=_FILE_KEYS)
    providers = tuple(_read_providers(document, body))
    _refuse_doubles(document, providers)
    moves = tuple(_read_moves(document, body.get("moves"), providers))
    document.refuse_faults()
    return Declaration(path, providers, moves)


def _read_providers(document: Document, body: Mapping[str, Any]) -> Iterator[Declared]:
    yield _read_contents(document, body, "", Declared(NODE, None, NODE))
    yield from _read_children(document, body.get("children"), "children", NODE, ())


def _read_children(
    document: Document, value: object, at: str, parent: str, above: Sequence[object]
) -> Iterator[Declared]:
    # An alias of YAML can stand inside of what it stands for.
    if any(value is one for one in above):
        document.fault(at, "stands inside of itself")
        return
    for place, item in document.items(value, at):
        body = document.mapping(item, place, keys=_CHILD_KEYS)
        name = document.provider_name(body.get("name"), f"{place}.name")
        uuid = body.get("uuid")
        if uuid is not None:
            uuid = document.uuid(uuid, f"{place}.uuid")
        child = Declared(name or place, parent, name or place, uuid)
        yield _read_contents(document, body, f"{place}.", child)
        inner = body.get("children")
        yield from _read_children(document, inner, f"{place}.children", child.name, (*above, value))


def _read_contents(
    document: Document, body: Mapping[str, Any], prefix: str, provider: Declared
) -> Declared:
    return replace(
        provider,
        inventories=document.inventories(body.get("inventories"), f"{prefix}inventories"),
        traits=document.traits(body.get("traits"), f"{prefix}traits"),
        aggregates=document.aggregates(body.get("aggregates"), f"{prefix}aggregates"),
    )


def _refuse_doubles(document: Document, providers: Sequence[Declared]) -> None:
    names = [one.name for one in providers]
    uuids = [one.uuid for one in providers if one.uuid]
    for value in sorted({one for one in [*names, *uuids] if (names + uuids).count(one) > 1}):
        document.fault("", f"several providers have the name or uuid {value}")


def _read_moves(document: Document, value: object, providers: Sequence[Declared]) -> Iterator[Move]:
    by_name = {one.name: one for one in providers}
    for place, item in document.items(value, "moves"):
        body = document.mapping(item, place, keys=_MOVE_KEYS)
        resource_class = document.resource_class(body.get("class"), f"{place}.class")
        source = document.provider_name(body.get("from"), f"{place}.from")
        targets = [
            document.provider_name(name, at)
            for at, name in document.items(body.get("to"), f"{place}.to")
        ]
        if not targets:
            document.fault(f"{place}.to", "must list the providers that the class moves to")
        if resource_class is None or source is None or None in targets:
            continue
        move = Move(resource_class, source, tuple(name for name in targets if name))
        _check_move(document, place, move, by_name)
        yield move


def _check_move(document: Document, at: str, move: Move, by_name: Mapping[str, Declared]) -> None:
    if move.source in by_name and move.resource_class in by_name[move.source].inventories:
        document.fault(
            f"{at}.from", f"{move.source} still has inventory of {move.resource_class} in this file"
        )
    for index, name in enumerate(move.targets):
        if name not in by_name:
            document.fault(f"{at}.to[{index}]", f"there is no provider {name} in this file")
        elif move.resource_class not in by_name[name].inventories:
            document.fault(f"{at}.to[{index}]", f"{name} has no inventory of {move.resource_class}")
        elif name in move.targets[:index]:
            document.fault(f"{at}.to[{index}]", f"{name} stands there twice")
