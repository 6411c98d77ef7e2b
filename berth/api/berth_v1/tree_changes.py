# SPDX-License-Identifier: Apache-2.0
"""Trees of a snapshot as clients edit them, and the changes of an edit as JSON.

Source: spec/beyond.md 6.3.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any, Final

import msgspec

from berth.api.inventories import render
from berth.index.providers import IndexedProvider
from berth.index.shape import NO_PARENT
from berth.index.snapshot import Location, Snapshot
from berth.model.ids import AggregateUUID, ProviderUUID, parse_uuid_lax
from berth.model.provider_trees import ProviderChange, TreeProvider
from berth.store.provider_trees import Edit

_NAMES: Final = ("name", "parent", "inventories", "traits", "aggregates")


def tree_of(snapshot: Snapshot, root: Location) -> dict[ProviderUUID, TreeProvider]:
    """The tree of a root in a snapshot."""
    block = snapshot.block(root.block_id)
    tree = {}
    for node, parent in enumerate(block.shape.parents):
        provider = IndexedProvider(snapshot, block, node, root.row)
        uuid = ProviderUUID(block.uuid(node, root.row))
        tree[uuid] = TreeProvider(
            uuid,
            msgspec.json.decode(block.names.item(node, root.row)),
            None if parent == NO_PARENT else ProviderUUID(block.uuid(parent, root.row)),
            provider.inventories(),
            frozenset(msgspec.json.decode(provider.traits().names, type=list[str])),
            frozenset(
                AggregateUUID(parse_uuid_lax(each) or each) for each in provider.aggregates()
            ),
        )
    return tree


def shown_changes(edit: Edit, given: Collection[ProviderUUID] | None) -> list[dict[str, Any]]:
    """The changes of an edit.

    Args:
        given: the uuids that new providers certainly get; None: all of them.
    """
    names = edit.names
    return [
        {
            "change": _kind(change),
            "uuid": None
            if change.before is None and given is not None and change.provider.uuid not in given
            else change.provider.uuid,
            "name": change.provider.name,
            **_sides(change, names),
        }
        for change in edit.changes
    ]


def _kind(change: ProviderChange) -> str:
    if change.before is None:
        return "create"
    return "remove" if change.after is None else "update"


def _sides(change: ProviderChange, names: Mapping[ProviderUUID, str]) -> dict[str, Any]:
    """The members before and after: all of a provider that is new or gone, else those that become
    others."""
    before, after = change.before, change.after
    if before is None or after is None:
        differing: Iterable[str] = _NAMES
    else:
        differing = [name for name in _NAMES if getattr(before, name) != getattr(after, name)]
    return {
        "before": None if before is None else _members(before, differing, names),
        "after": None if after is None else _members(after, differing, names),
    }


def _members(
    provider: TreeProvider, members: Iterable[str], names: Mapping[ProviderUUID, str]
) -> dict[str, Any]:
    shown = {
        "name": provider.name,
        "parent": None if provider.parent is None else names[provider.parent],
        "inventories": {name: render(each) for name, each in sorted(provider.inventories.items())},
        "traits": sorted(provider.traits),
        "aggregates": sorted(provider.aggregates),
    }
    return {name: shown[name] for name in members}
