# SPDX-License-Identifier: Apache-2.0
"""A host's tree of providers, drawn for people.

Indentation is parentage; `CLASS=total(field:value,...)` is an inventory, of which the fields are
left out that are the service's defaults.
"""

from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import Any, Final

from berth.compute.provider_tree import ProviderTree
from berth.model.inventory import Inventory

#: How the fields of a record are called in a drawing.
_FIELDS: Final = {
    "reserved": "reserved",
    "min_unit": "min",
    "max_unit": "max",
    "step_size": "step",
    "allocation_ratio": "ratio",
}


def draw_tree(tree: ProviderTree, root: str, *, since: ProviderTree | None = None) -> Iterator[str]:
    """The lines of a drawing.

    Args:
        root: a uuid; where there is no such provider, that is what is said.
        since: as the tree was before: what each provider gains and loses of traits and aggregates
            is drawn as well, with a `+` or a `-`.
    """
    if not tree.exists(root):
        yield "(not there)"
        return
    depths: dict[str | None, int] = {tree.data(root).parent_uuid: -1}
    for uuid in tree.get_provider_uuids(root):
        data = tree.data(uuid)
        depths[uuid] = depths[data.parent_uuid] + 1
        words = [_draw_record(*one) for one in sorted(data.inventory.items())]
        if since is not None:
            words += _draw_changes(tree, since, uuid)
        yield "  ".join(["  " * depths[uuid] + data.name, *words])


def tree_as_json(tree: ProviderTree, root: str) -> Iterator[dict[str, Any]]:
    """The providers of a tree for programs, parents first; none where there is no such root."""
    for uuid in tree.get_provider_uuids(root) if tree.exists(root) else ():
        data = tree.data(uuid)
        yield {
            "uuid": uuid,
            "name": data.name,
            "parent_provider_uuid": data.parent_uuid,
            "inventories": data.inventory,
            "traits": sorted(data.traits),
            "aggregates": sorted(data.aggregates),
        }


def _draw_record(resource_class: str, record: Mapping[str, Any]) -> str:
    plain = asdict(Inventory(record["total"]))
    fields = [
        f"{short}:{record[name]}"
        for name, short in _FIELDS.items()
        if record.get(name, plain[name]) not in (plain[name], _also_plain(name, record))
    ]
    return f"{resource_class}={record['total']}" + (f"({','.join(fields)})" if fields else "")


def _also_plain(name: str, record: Mapping[str, Any]) -> object:
    """Whoever may take everything may take the total."""
    return record["total"] if name == "max_unit" else None


def _draw_changes(tree: ProviderTree, since: ProviderTree, uuid: str) -> Iterator[str]:
    now, was = tree.data(uuid), since.data(uuid) if since.exists(uuid) else None
    for prefix, what in ("", "traits"), ("@", "aggregates"):
        new: set[str] = getattr(now, what)
        old: set[str] = getattr(was, what) if was else set()
        yield from (f"+{prefix}{name}" for name in sorted(new - old))
        yield from (f"-{prefix}{name}" for name in sorted(old - new))
