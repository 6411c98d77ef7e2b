# SPDX-License-Identifier: Apache-2.0
"""Drivers of recorded hosts, and trees without a service, drawn as `tests/worlds.py` draws them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from berth.hosts.drivers import Used
from berth.hosts.drivers.linux import LinuxDriver
from berth.hosts.drivers.linux.nvml import NVML
from berth.hosts.drivers.linux.options import read_options
from berth.hosts.plan import Allocations
from berth.hosts.provider_tree import ProviderTree
from tests.hosts.machines.machine import Machine
from tests.worlds import Stock, World, WorldProvider, provider_uuid

_OWNER = "CUSTOM_OWNER_BERTH"


def driver(
    machine: Machine,
    root: Path,
    *,
    used: Used | None = None,
    nvml: NVML | None = None,
    **said: object,
) -> LinuxDriver:
    """The driver of a machine whose files are written below a directory."""
    if not (root / "proc").exists():
        machine.write(root)
    options = read_options({"root": str(root), **said})
    return LinuxDriver(options, used=used, nvml=nvml, measure=machine.measure)


def empty_tree(name: str = "cn1") -> ProviderTree:
    """The tree of a host that has not reported yet."""
    tree = ProviderTree()
    tree.new_root(name, provider_uuid(name))
    return tree


def report(host: LinuxDriver, tree: ProviderTree, allocations: Allocations | None = None) -> None:
    """Run the driver once on the tree of `cn1`."""
    host.update_provider_tree(tree, "cn1", allocations)


def drawing(tree: ProviderTree) -> str:
    """A tree as a drawing, sorted by name, without the traits of the root and the owner's trait
    below it, which every test would repeat."""
    everything = sorted(map(tree.data, tree.get_provider_uuids()), key=lambda data: data.name)
    return str(
        World(
            tuple(
                WorldProvider(
                    data.name,
                    None if data.parent_uuid is None else tree.data(data.parent_uuid).name,
                    {name: _stock(data.inventory[name]) for name in sorted(data.inventory)},
                    frozenset(data.traits - {_OWNER} if data.parent_uuid else ()),
                )
                for data in everything
            )
        )
    )


def picture(tree: ProviderTree) -> dict[str, Any]:
    """Everything in a tree, in an order that does not depend on its history, for comparison."""
    return {
        data.name: data._replace(generation=None)
        for data in map(tree.data, tree.get_provider_uuids())
    }


def _stock(record: Mapping[str, Any]) -> Stock:
    """A record; `max_unit` is left out if it is equal to the total, as usual."""
    fields = dict(record)
    if fields.get("max_unit") == fields["total"]:
        del fields["max_unit"]
    return Stock(**fields)
