# SPDX-License-Identifier: Apache-2.0
"""Reads whole trees of providers, and locks them.

Source: spec/beyond.md 6.3.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from msgspec import Struct
from sqlalchemy import Select, bindparam, or_, select, update

from berth.model.errors import LostRace
from berth.model.ids import ProviderId, ProviderUUID, parse_uuid_lax
from berth.model.inventory import Inventory
from berth.model.provider_trees import TreeProvider
from berth.store.aggregates import canonical
from berth.store.engine.expressions import rewritten
from berth.store.engine.tables import (
    inventories,
    placement_aggregates,
    resource_classes,
    resource_provider_aggregates,
    resource_provider_traits,
    resource_providers,
    traits,
)
from berth.store.engine.transaction import Tx
from berth.store.inventories import INVENTORY_COLUMNS
from berth.store.lookups import ProviderRow

_rp, _inv = resource_providers.c, inventories.c
_having, _member = resource_provider_traits.c, resource_provider_aggregates.c


class StoredTree(Struct, frozen=True):
    """A tree in the database; empty if there is none."""

    providers: Mapping[ProviderUUID, TreeProvider]
    rows: Mapping[ProviderUUID, ProviderRow]


_OF_ROOT: Final = _rp.root_provider_id == bindparam("root")
_ROOTS: Final = select(_rp.uuid, _rp.name, _rp.root_provider_id).where(
    or_(_rp.uuid == bindparam("uuid"), _rp.name == bindparam("name"))
)
_IDS: Final = select(_rp.id).where(_OF_ROOT)
_LOCK: Final = (
    update(resource_providers)
    .where(_rp.id.in_(bindparam("providers", expanding=True)), _OF_ROOT)
    .values(generation=_rp.generation, updated_at=rewritten(_rp.updated_at))
)
_PROVIDERS: Final = (
    select(_rp.id, _rp.uuid, _rp.generation, _rp.name, _rp.parent_provider_id)
    .where(_OF_ROOT)
    .order_by(_rp.id)
)
_INVENTORIES: Final = (
    select(_inv.resource_provider_id, resource_classes.c.name, *INVENTORY_COLUMNS)
    .join(resource_providers, _rp.id == _inv.resource_provider_id)
    .join(resource_classes, resource_classes.c.id == _inv.resource_class_id)
    .where(_OF_ROOT)
)
_TRAITS: Final = (
    select(_having.resource_provider_id, traits.c.name)
    .join(resource_providers, _rp.id == _having.resource_provider_id)
    .join(traits, traits.c.id == _having.trait_id)
    .where(_OF_ROOT)
)
_AGGREGATES: Final = (
    select(_member.resource_provider_id, placement_aggregates.c.uuid)
    .join(resource_providers, _rp.id == _member.resource_provider_id)
    .join(placement_aggregates, placement_aggregates.c.id == _member.aggregate_id)
    .where(_OF_ROOT)
)


def read_tree(tx: Tx, reference: str, *, lock: bool = False) -> StoredTree:
    """The tree that contains a provider, named by its uuid or its name.

    Args:
        lock: keep it as it is until the commit.

    Raises:
        LostRace: it changed while it was locked.
    """
    root = _find_root(tx, reference)
    if root is None:
        return StoredTree({}, {})
    if lock:
        lock_tree(tx, root)
    return _read(tx, root)


def _find_root(tx: Tx, reference: str) -> ProviderId | None:
    uuid = parse_uuid_lax(reference)
    named = {"uuid": uuid or "", "name": "" if uuid else reference}
    for row_uuid, name, root in tx.rows(_ROOTS, named):
        # Some collations treat different names as equal.
        if row_uuid == uuid or (uuid is None and name == reference):
            return ProviderId(root)
    return None


def lock_tree(tx: Tx, root: ProviderId) -> set[ProviderId]:
    """Lock every row of a tree; return their ids.

    RACE tests/store/test_provider_trees.py: whoever claims of a provider, edits, renames or moves
    it writes its row, and whoever adds a child writes the row of the parent.

    Raises:
        LostRace: it changed meanwhile.
    """
    ids = ids_of_tree(tx, root)
    locked = sum(
        tx.change(_LOCK, {"providers": chunk, "root": root}) for chunk in tx.chunks(sorted(ids))
    )
    if locked != len(ids) or ids_of_tree(tx, root) != ids:
        raise LostRace("a tree of resource providers")
    return ids


def ids_of_tree(tx: Tx, root: ProviderId) -> set[ProviderId]:
    """The ids of the providers of a tree."""
    return {number for (number,) in tx.rows(_IDS, {"root": root})}


def _read(tx: Tx, root: ProviderId) -> StoredTree:
    providers = tx.rows(_PROVIDERS, {"root": root})
    uuids: dict[ProviderId, ProviderUUID] = {number: uuid for number, uuid, *_ in providers}
    stock: dict[ProviderId, dict[str, Inventory]] = {}
    for number, name, *record in tx.rows(_INVENTORIES, {"root": root}):
        stock.setdefault(number, {})[name] = Inventory(*record)
    names = _grouped(tx, _TRAITS, root)
    members = _grouped(tx, _AGGREGATES, root)
    return StoredTree(
        {
            uuid: TreeProvider(
                uuid,
                name,
                None if parent is None else uuids[parent],
                stock.get(number, {}),
                frozenset(names.get(number, ())),
                frozenset(map(canonical, members.get(number, ()))),
            )
            for number, uuid, _, name, parent in providers
        },
        {uuid: ProviderRow(number, uuid, generation) for number, uuid, generation, *_ in providers},
    )


def _grouped(tx: Tx, query: Select[Any], root: ProviderId) -> dict[ProviderId, list[str]]:
    """The texts of each provider."""
    grouped: dict[ProviderId, list[str]] = {}
    for number, text in tx.rows(query, {"root": root}):
        grouped.setdefault(number, []).append(text)
    return grouped
