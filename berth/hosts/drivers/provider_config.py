# SPDX-License-Identifier: Apache-2.0
"""The operator's additions to the providers that a driver reports: nova's provider.yaml files.

    meta: {schema_version: '1.0'}
    providers:
      - identification: {uuid: $COMPUTE_NODE}
        inventories:
          additional:
            - CUSTOM_LICENCE: {total: 10}
        traits:
          additional: [CUSTOM_RACK_7]

All files of a directory apply together, and are read again when one of them changes. The additions
are recorded in a file on this host: so a later pass recognises them, and removes from the service
what you delete from the files.
Source: spec/compute-side.md 4.8.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

from msgspec import Struct, field
from msgspec.structs import asdict

from berth.hosts.drivers.kept_settings import last_day
from berth.hosts.drivers.ownership import (
    OWNER_TRAIT,
    STATIC_OWNER_TRAIT,
    OwnedFile,
    Parts,
    give,
)
from berth.hosts.errors import BadConfiguration
from berth.hosts.fields import (
    CustomName,
    ProviderName,
    Record,
    UUIDText,
)
from berth.hosts.files import Watched
from berth.hosts.plan import Allocations
from berth.hosts.provider_tree import ProviderData, ProviderTree
from berth.hosts.provider_tree import Record as ProviderRecord
from berth.hosts.tracker import Driver
from berth.hosts.validation import convert, load_yaml

LOG = logging.getLogger(__name__)

#: Stands for the node, unless another entry names it.
COMPUTE_NODE: Final = "$COMPUTE_NODE"

_SCHEMA: Final = re.compile(r"(\d+)\.(\d+)")
_MAJOR: Final = 1
_MINOR: Final = 0


class _SchemaVersion(str):
    """The version of a file's schema, in quotes: `'1.0'`."""

    @classmethod
    def parse(cls, value: object) -> Self:
        """Read one.

        Raises:
            ValueError: it is not a version, or has another major number.
        """
        match = _SCHEMA.fullmatch(value) if isinstance(value, str) else None
        if match is None:
            raise ValueError(f"expected text like '{_MAJOR}.{_MINOR}', in quotes")
        if int(match[1]) != _MAJOR:
            raise ValueError(f"expected version {_MAJOR}.x")
        return cls(match[0])

    @property
    def is_newer(self) -> bool:
        """Whether the schema may have keys that this module does not know."""
        return int(self.partition(".")[2]) > _MINOR


class _UUIDOrNode(UUIDText):
    """The UUID of a provider, or `$COMPUTE_NODE`."""

    @classmethod
    def parse(cls, value: object) -> Self:
        """Read one.

        Raises:
            ValueError: it is neither.
        """
        return cls(value) if value == COMPUTE_NODE else super().parse(value)


class _Forbidden:
    """The value of a key that is not allowed."""

    @classmethod
    def parse(cls, value: object) -> Self:
        """Refuse it.

        Raises:
            ValueError: always.
        """
        raise ValueError("remove this key: nova sets it")


# Like nova, ignore unknown keys of the outer mappings: a newer schema may have more.


class _Meta(Struct):
    schema_version: _SchemaVersion


class _Identification(Struct, forbid_unknown_fields=True):
    name: ProviderName | None = None
    uuid: _UUIDOrNode | None = None

    def __post_init__(self) -> None:
        if (self.name is None) == (self.uuid is None):
            raise ValueError("expected either a name or a uuid")


class _Inventories(Struct):
    #: Of records of the same class, the last counts, as in nova.
    additional: list[dict[CustomName, Record]] | None = None


class _Traits(Struct):
    additional: list[CustomName] | None = None


class _Entry(Struct):
    identification: _Identification
    inventories: _Inventories | None = None
    traits: _Traits | None = None
    #: nova itself adds this key to what it has read.
    source_file: _Forbidden | None = field(default=None, name="__source_file")


class _File(Struct):
    meta: _Meta
    providers: list[_Entry] | None = None


@dataclass(frozen=True, slots=True)
class Addition:
    """One entry: the additions to one provider."""

    path: Path
    #: The entry's place in its file.
    at: str
    #: A name, a UUID or `COMPUTE_NODE`.
    provider: str
    inventories: Mapping[str, Mapping[str, int | float]]
    traits: frozenset[str]

    @property
    def is_empty(self) -> bool:
        """Whether it adds nothing."""
        return not (self.inventories or self.traits)

    def __str__(self) -> str:
        return f"{self.path}, {self.at} ({self.provider})"


class ProviderConfig:
    """The provider.yaml files of a directory, applied to trees.

    Args:
        directory: the directory whose files `*.yaml` are used; checked in every pass.
        owned: the file that records what was added.
    """

    def __init__(self, directory: Path, owned: Path) -> None:
        # The directory itself is watched too: a missing directory is not an empty one.
        self._files = Watched(
            lambda: [directory, *sorted(directory.glob("*.yaml"))],
            lambda paths: _read_directory(directory, paths[1:]),
        )
        self._owned = OwnedFile(owned)
        #: Entries whose missing provider was logged.
        self._said: set[str] = set()

    def write_no_notes(self) -> None:
        """Do not write the file that records what was added (see `drivers.TakesNotes`)."""
        self._owned.is_fixed = True

    def apply(self, tree: ProviderTree, nodename: str) -> None:
        """Add what the files say to a node's tree, and remove what was deleted from them.

        Call this after the driver has edited the tree.

        Raises:
            BadConfiguration: the files are invalid, two entries are about one provider, or a
                provider already has an added class from elsewhere. Nothing is edited then.
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
            raise BadConfiguration(*faults)
        owned = {}
        with tree.transaction():
            for uuid in uuids:
                own = noted.get(uuid, Parts())
                if addition := additions.get(uuid):
                    owned[uuid] = give(tree, uuid, addition.inventories, addition.traits, own=own)
                elif own:
                    owned[uuid] = give(tree, uuid, {}, own=own)
            self._owned.write(root, owned)

    def _by_provider(
        self, additions: Sequence[Addition], tree: ProviderTree, nodename: str
    ) -> dict[str, Addition]:
        """The entries about this tree, by provider UUID."""
        root = tree.data(nodename).uuid
        own = set(tree.get_provider_uuids(root))
        by_uuid: dict[str, Addition] = {}
        for addition in (entry for entry in additions if entry.provider != COMPUTE_NODE):
            uuid = tree.data(addition.provider).uuid if tree.exists(addition.provider) else None
            if uuid not in own or last_day(tree.data(uuid).traits):
                # Of a provider that is away, nothing is offered.
                self._say_unknown(addition)
            elif uuid in by_uuid:
                raise BadConfiguration(
                    f"{addition} is about the same provider as {by_uuid[uuid]}: merge them"
                )
            else:
                by_uuid[uuid] = addition
        for addition in (entry for entry in additions if entry.provider == COMPUTE_NODE):
            by_uuid.setdefault(root, addition)
        return by_uuid

    def _say_unknown(self, addition: Addition) -> None:
        if (entry := str(addition)) not in self._said:
            self._said.add(entry)
            LOG.warning("%s: no such provider below this node; nothing is added", entry)


class WithProviderConfig:
    """A driver with the operator's additions."""

    def __init__(self, driver: Driver, config: ProviderConfig) -> None:
        self._driver = driver
        self._config = config

    def update_provider_tree(
        self, provider_tree: ProviderTree, nodename: str, allocations: Allocations | None = None
    ) -> None:
        """Call the driver, and apply the additions (see `tracker.Driver`).

        Raises:
            ReshapeNeeded, ReshapeFailed: the driver raised it.
            BadConfiguration: see `ProviderConfig.apply`.
        """
        self._driver.update_provider_tree(provider_tree, nodename, allocations)
        self._config.apply(provider_tree, nodename)


def _clashes(addition: Addition, data: ProviderData, own: Parts) -> Iterator[str]:
    """Classes that the provider has from elsewhere, with another record.

    The same record is accepted: this is what an addition looks like if the file of records was
    lost.
    """
    for name, record in addition.inventories.items():
        current = data.inventory.get(name)
        if current is not None and ("classes", name) not in own and not _agrees(current, record):
            yield (
                f"{addition}: {data.name} already has {name} from elsewhere "
                f"(total {current.get('total')}); remove the class from the file, or from the "
                f"provider's inventory"
            )


def _agrees(current: ProviderRecord, record: Mapping[str, int | float]) -> bool:
    return all(record.get(name) == value for name, value in current.items())


# --- Reading the files ----------------------------------------------------------------------------


def _read_directory(directory: Path, files: Sequence[Path]) -> tuple[Addition, ...]:
    if not directory.is_dir():
        raise BadConfiguration(f"{directory} is not a directory")
    return read_additions(files)


def read_additions(files: Sequence[Path]) -> tuple[Addition, ...]:
    """Read the entries of some files that add something.

    Raises:
        BadConfiguration: with every fault of every file.
    """
    faults: list[str] = []
    additions: list[Addition] = []
    for file in files:
        try:
            additions += _read_file(file)
        except BadConfiguration as error:
            faults += error.faults
    # As in nova, an entry that adds nothing may name a provider that another entry is about.
    adding = tuple(addition for addition in additions if not addition.is_empty)
    first_of: dict[str, Addition] = {}
    for addition in adding:
        first = first_of.setdefault(addition.provider, addition)
        if first is not addition:
            faults.append(f"{addition} is about the same provider as {first}: merge them")
    if faults:
        raise BadConfiguration(*faults)
    for addition in additions:
        if addition.is_empty:
            LOG.warning("%s adds nothing and is ignored", addition)
    return adding


def _read_file(path: Path) -> list[Addition]:
    body = load_yaml(path)
    file = convert({} if body is None else _with_whole_amounts(body), _File, path)
    if file.meta.schema_version.is_newer:
        LOG.warning(
            "%s has schema version %s, newer than %d.%d: keys that are new in it are ignored",
            path,
            file.meta.schema_version,
            _MAJOR,
            _MINOR,
        )
    return [
        _addition(path, f"providers[{index}]", entry)
        for index, entry in enumerate(file.providers or ())
    ]


def _with_whole_amounts(value: object, *, is_amount: bool = False) -> object:
    """What a file has, with 1 for 1.0 in its inventories: nova takes either for an integer."""
    if isinstance(value, list):
        return [_with_whole_amounts(each, is_amount=is_amount) for each in value]
    if isinstance(value, dict):
        return {
            name: _with_whole_amounts(each, is_amount=is_amount or name == "inventories")
            for name, each in value.items()
        }
    return int(value) if is_amount and isinstance(value, float) and value.is_integer() else value


def _addition(path: Path, at: str, entry: _Entry) -> Addition:
    inventories = entry.inventories.additional if entry.inventories else None
    traits = entry.traits.additional if entry.traits else None
    return Addition(
        path,
        at,
        entry.identification.name or entry.identification.uuid or "",
        {name: asdict(record) for records in inventories or () for name, record in records.items()},
        frozenset(traits or ()) - {OWNER_TRAIT, STATIC_OWNER_TRAIT},
    )
