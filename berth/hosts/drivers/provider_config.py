# SPDX-License-Identifier: Apache-2.0
"""What operators add to providers that a driver reports: the provider.yaml files of nova.

    meta: {schema_version: '1.0'}
    providers:
      - identification: {uuid: $COMPUTE_NODE}
        inventories:
          additional:
            - CUSTOM_LICENCE: {total: 10}
        traits:
          additional: [CUSTOM_RACK_7]

The files of a directory are taken together, and read again when one of them changes. What was added
is noted in a file of this host: so a second pass finds its own additions and not somebody else's
inventory, and what leaves the files leaves the service.
Source: spec/compute-side.md 4.8.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from berth.hosts.drivers.owned import (
    OWNER_TRAIT,
    STATIC_OWNER_TRAIT,
    OwnedFile,
    Parts,
    owned_after,
    parts_of,
    take_from,
)
from berth.hosts.drivers.watched import Watched
from berth.hosts.drivers.yaml_files import Document
from berth.hosts.errors import BadConfiguration
from berth.hosts.plan import Allocations
from berth.hosts.provider_tree import ProviderData, ProviderTree, Record
from berth.hosts.tracker import Driver

LOG = logging.getLogger(__name__)

#: The node that is reported, where no other entry is about it.
COMPUTE_NODE: Final = "$COMPUTE_NODE"

_SCHEMA: Final = re.compile(r"(\d+)\.(\d+)")
_MAJOR: Final = 1
_MINOR: Final = 0

#: Set by nova itself on what it has read.
_FORBIDDEN_KEY: Final = "__source_file"


@dataclass(frozen=True, slots=True)
class Addition:
    """One entry: what is added to one provider."""

    path: Path
    #: The entry's place in its file.
    at: str
    #: A name, a uuid or `COMPUTE_NODE`.
    provider: str
    inventories: Mapping[str, Mapping[str, int | float]]
    traits: frozenset[str]

    @property
    def parts(self) -> Parts:
        """What the provider is to have more."""
        return Parts(frozenset(self.inventories), self.traits)

    def __str__(self) -> str:
        return f"{self.path}, {self.at} ({self.provider})"


class ProviderConfig:
    """The provider.yaml files of a directory, applied to trees.

    Args:
        directory: its files `*.yaml` are taken, by name; looked at in every pass.
        owned: where is noted what was added.
    """

    def __init__(self, directory: Path, owned: Path) -> None:
        # The directory itself is watched too: one that is not there says something else than none.
        self._files = Watched(
            lambda: [directory, *sorted(directory.glob("*.yaml"))],
            lambda found: _read_directory(directory, found[1:]),
        )
        self._owned = OwnedFile(owned)
        #: Entries whose provider was not there, of which that was said.
        self._said: set[str] = set()

    def write_no_notes(self) -> None:
        """Leave the file of what was added as it is (see `drivers.TakesNotes`)."""
        self._owned.is_fixed = True

    @property
    def problem(self) -> BadConfiguration | None:
        """What is wrong with the files as they are; their last good version is in force then."""
        return self._files.problem

    def apply(self, tree: ProviderTree, nodename: str) -> None:
        """Add to a node's tree what the files say, and take back what left them.

        To be called when a driver has edited the tree.

        Raises:
            BadConfiguration: the files cannot be meant; two entries are about one provider; or a
                class is to be added that a provider has from elsewhere. Nothing is edited then.
        """
        additions = self._by_provider(self._files.value(), tree, nodename)
        root = tree.data(nodename).uuid
        noted = self._owned.read(root)
        uuids = tree.get_provider_uuids(root)
        faults = [
            fault
            for uuid, addition in additions.items()
            for fault in _clashes(addition, tree.data(uuid), noted.get(uuid, Parts()))
        ]
        if faults:
            raise BadConfiguration(faults)
        owned = {}
        with tree.transaction():
            for uuid in uuids:
                if uuid in additions or uuid in noted:
                    owned[uuid] = _apply_to(
                        tree, uuid, additions.get(uuid), noted.get(uuid, Parts())
                    )
            self._owned.write(root, owned)

    def _by_provider(
        self, additions: Sequence[Addition], tree: ProviderTree, nodename: str
    ) -> dict[str, Addition]:
        """The entries that are about this tree, by their providers' uuids."""
        root = tree.data(nodename).uuid
        own = set(tree.get_provider_uuids(root))
        found: dict[str, Addition] = {}
        for addition in (one for one in additions if one.provider != COMPUTE_NODE):
            uuid = tree.data(addition.provider).uuid if tree.exists(addition.provider) else None
            if uuid not in own:
                self._say_unknown(addition)
            elif uuid in found:
                raise BadConfiguration(
                    [f"{addition} is about the same provider as {found[uuid]}: make one of them"]
                )
            else:
                found[uuid] = addition
        for addition in (one for one in additions if one.provider == COMPUTE_NODE):
            found.setdefault(root, addition)
        return found

    def _say_unknown(self, addition: Addition) -> None:
        if (entry := str(addition)) not in self._said:
            self._said.add(entry)
            LOG.warning("%s: there is no such provider below this node; nothing is added", entry)


class WithProviderConfig:
    """A driver, and what operators add to what it reports."""

    def __init__(self, driver: Driver, config: ProviderConfig) -> None:
        self._driver = driver
        self._config = config

    def update_provider_tree(
        self, provider_tree: ProviderTree, nodename: str, allocations: Allocations | None = None
    ) -> None:
        """What the driver reports, with the additions (see `tracker.Driver`).

        Raises:
            ReshapeNeeded, ReshapeFailed: as the driver says.
            BadConfiguration: see `ProviderConfig.apply`.
        """
        self._driver.update_provider_tree(provider_tree, nodename, allocations)
        self._config.apply(provider_tree, nodename)


def _clashes(addition: Addition, data: ProviderData, own: Parts) -> Iterator[str]:
    """Classes that somebody else has given the provider; the same record is taken for our own.

    That is how it looks where the file of what was added is lost.
    """
    for name, record in addition.inventories.items():
        there = data.inventory.get(name)
        if there is not None and name not in own.classes and not _agrees(there, record):
            yield (
                f"{addition}: {data.name} has {name} from elsewhere (total {there.get('total')}); "
                f"take the class out of the file, or out of the provider's inventory"
            )


def _agrees(there: Record, record: Mapping[str, int | float]) -> bool:
    return all(record.get(name) == value for name, value in there.items())


def _apply_to(tree: ProviderTree, uuid: str, addition: Addition | None, noted: Parts) -> Parts:
    """Give one provider its additions, and take the former ones; what is our own then."""
    there = parts_of(tree.data(uuid))
    wanted = Parts() if addition is None else addition.parts
    own = noted | Parts(wanted.classes & there.classes)
    take_from(tree, uuid, own - wanted)
    if addition is not None:
        left = tree.data(uuid).inventory
        tree.update_inventory(uuid, {**left, **addition.inventories})
        tree.add_traits(uuid, *addition.traits)
    return owned_after(own, wanted=wanted, there=there)


# --- Reading the files ----------------------------------------------------------------------------


def _read_directory(directory: Path, files: Sequence[Path]) -> tuple[Addition, ...]:
    if not directory.is_dir():
        raise BadConfiguration([f"{directory} is not a directory"])
    return read_additions(files)


def read_additions(files: Sequence[Path]) -> tuple[Addition, ...]:
    """What some files say, those entries that add something.

    Raises:
        BadConfiguration: with everything that is wrong with them.
    """
    faults: list[str] = []
    additions: list[Addition] = []
    for file in files:
        document = Document(file)
        try:
            additions += _read_file(document)
        except BadConfiguration as error:
            faults += error.faults
    seen: dict[str, Addition] = {}
    for addition in additions:
        first = seen.setdefault(addition.provider, addition)
        if first is not addition:
            faults.append(f"{addition} is about the same provider as {first}: make one of them")
    if faults:
        raise BadConfiguration(faults)
    for addition in additions:
        if not addition.parts:
            LOG.warning("%s adds nothing and is left out", addition)
    return tuple(addition for addition in additions if addition.parts)


def _read_file(document: Document) -> list[Addition]:
    body = document.mapping(document.load(), "")
    _check_schema(document, body.get("meta"))
    additions = [
        addition
        for place, item in document.items(body.get("providers"), "providers")
        if (addition := _read_entry(document, place, item)) is not None
    ]
    document.refuse_faults()
    return additions


def _check_schema(document: Document, meta: object) -> None:
    version = document.mapping(meta, "meta").get("schema_version")
    at = "meta.schema_version"
    found = _SCHEMA.fullmatch(version) if isinstance(version, str) else None
    if version is None:
        document.fault(at, f"is missing, and must be '{_MAJOR}.{_MINOR}'")
    elif found is None:
        document.fault(at, f"is {version!r}, and must be text like '{_MAJOR}.{_MINOR}', quoted")
    elif int(found[1]) != _MAJOR:
        document.fault(at, f"is {version}; only versions {_MAJOR}.x are known")
    elif int(found[2]) > _MINOR:
        LOG.warning(
            "%s has schema version %s, newer than %d.%d: what is new in it is not looked at",
            document.path,
            version,
            _MAJOR,
            _MINOR,
        )


def _read_entry(document: Document, at: str, item: object) -> Addition | None:
    body = document.mapping(item, at)
    if _FORBIDDEN_KEY in body:
        document.fault(f"{at}.{_FORBIDDEN_KEY}", "this key must not be there")
    provider = _read_identification(document, f"{at}.identification", body.get("identification"))
    inventories = {}
    listed = document.mapping(body.get("inventories"), f"{at}.inventories").get("additional")
    for place, one in document.items(listed, f"{at}.inventories.additional"):
        for name, record in document.inventories(one, place, custom_only=True).items():
            if name in inventories:
                document.fault(f"{place}.{name}", "the class stands there twice")
            inventories[name] = record
    names = document.mapping(body.get("traits"), f"{at}.traits").get("additional")
    traits = document.traits(names, f"{at}.traits.additional", custom_only=True)
    if provider is None:
        return None
    marks = {OWNER_TRAIT, STATIC_OWNER_TRAIT}
    return Addition(document.path, at, provider, inventories, traits - marks)


def _read_identification(document: Document, at: str, item: object) -> str | None:
    body: dict[str, Any] = document.mapping(item, at, keys=("name", "uuid"))
    if len(body) != 1:
        document.fault(at, f"must have a name or a uuid, one of them, and has {len(body)} of them")
        return None
    if "name" in body:
        return document.provider_name(body["name"], f"{at}.name")
    if body["uuid"] == COMPUTE_NODE:
        return COMPUTE_NODE
    return document.uuid(body["uuid"], f"{at}.uuid")
