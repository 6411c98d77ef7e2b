# SPDX-License-Identifier: Apache-2.0
"""Properties of the host models, for every machine, its guests, and any configuration."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from berth.hosts import BadProviderTree, ProviderTree, ReshapeFailed, ReshapeNeeded
from berth.hosts.drivers.host_model.names import read_id_list
from berth.hosts.drivers.linux import LinuxDriver
from berth.hosts.plan import Allocations, Moves, amounts_of, make_plan, sums_of
from berth.model.inventory import Inventory
from tests.effort import scaled
from tests.hosts import linux_hosts as hosts
from tests.hosts.linux_hosts import empty_tree, picture, report
from tests.hosts.machines import MACHINES, Machine, Node

CLASSES: Final = ("VCPU", "PCPU", "MEMORY_MB")
DEVICES: Final[dict[str, Any]] = {
    "mdev": [{"type": "nvidia-222"}],
    "pci": [
        {"device": "8086:154c", "resource_class": "SRIOV_NET_VF", "physical_network": "phys-1"},
        {"device": "15b3:1017"},
    ],
}


@st.composite
def machines(draw: st.DrawFn) -> Machine:
    """A host with some NUMA nodes; some have no CPUs, no memory, or neither."""
    nodes: dict[int, Node] = {}
    first = 0
    for number in sorted(draw(st.lists(st.integers(0, 9), min_size=1, max_size=4, unique=True))):
        count = draw(st.integers(0 if nodes else 1, 12))
        pages = {2048: draw(st.integers(0, 8)), 1048576: draw(st.integers(0, 2))}
        huge = sum(size * pages_of for size, pages_of in pages.items())
        memory = huge + 1024 * draw(st.integers(0 if nodes else 1, 4096))
        nodes[number] = Node(f"{first}-{first + count - 1}" if count else "", memory, pages)
        first += count
    return Machine(nodes)


@st.composite
def options(draw: st.DrawFn, machine: Machine) -> dict[str, Any]:
    """What an operator may say: some CPUs are dedicated, huge pages apart, amounts and ratios."""
    cpus = sorted(cpu for node in machine.nodes.values() for cpu in read_id_list(node.cpus))
    dedicated = draw(st.sets(st.sampled_from(cpus), max_size=len(cpus) - 1))
    amounts = st.dictionaries(st.sampled_from(CLASSES), st.integers(0, 3))
    ratios = st.dictionaries(st.sampled_from(CLASSES), st.sampled_from([1.0, 1.5, 4.0]))
    said: dict[str, Any] = {
        "huge_pages": draw(st.sampled_from(["memory", "providers"])),
        "reserved": draw(amounts),
        "allocation_ratios": draw(ratios),
        **DEVICES,
    }
    if dedicated:
        said["cpu_dedicated"] = ",".join(map(str, sorted(dedicated)))
        said["cpu_shared"] = ",".join(str(cpu) for cpu in cpus if cpu not in dedicated)
    return said


def first_report(host: LinuxDriver) -> ProviderTree:
    """The tree of a host after its first report."""
    tree = empty_tree()
    report(host, tree)
    return tree


@pytest.mark.parametrize("machine", MACHINES)
def test_every_shape_can_become_every_other(tmp_path: Path, machine: str) -> None:
    """The result depends on the host and its options, not on the tree before; a second pass changes
    nothing."""
    drivers = [
        hosts.driver(MACHINES[machine], tmp_path, model=model, huge_pages=huge_pages, **DEVICES)
        for model in ("flat", "numa")
        for huge_pages in ("memory", "providers")
    ]
    for before, after in product(drivers, drivers):
        tree = first_report(before)
        report(after, tree, {})
        assert picture(tree) == picture(first_report(after))
        once = picture(tree)
        report(after, tree)
        assert picture(tree) == once


@settings(max_examples=scaled(100))
@given(data=st.data())
def test_to_numa_nodes_and_back_nobody_and_nothing_is_lost(data: st.DataObject) -> None:
    """Every consumer keeps its amount of each class, all of them fit, the sum of what is reserved
    stays, and in the end the host is as before; the order of consumers does not matter.

    If somebody does not fit, there is an error; a second pass changes nothing.
    """
    machine = data.draw(st.one_of(machines(), st.sampled_from([*MACHINES.values()])))
    said = data.draw(options(machine))
    with TemporaryDirectory() as folder:
        flat = hosts.driver(machine, Path(folder), model="flat", **said)
        numa = hosts.driver(machine, Path(folder), model="numa", **said)
        tree = first_report(flat)
        inventory = tree.data("cn1").inventory
        for name, record in inventory.items():
            if name in CLASSES and name not in said["reserved"]:
                record["reserved"] = data.draw(st.integers(0, min(3000, record["total"] // 4)))
            if name in CLASSES and name not in said["allocation_ratios"]:
                record["allocation_ratio"] = 2.0
        tree.update_inventory("cn1", inventory)
        first = data.draw(holdings(tree))
        split, second = moved(numa, tree, first)
        if split is None:
            assert first, "an empty host can take every shape"
            return
        assert moved(numa, tree, dict(reversed(first.items())))[1] == second
        assert all(amount >= 1 for body in second.values() for amount in amounts_of(body).values())
        for name in CLASSES:
            assert reserved(split, name) == reserved(tree, name)
        once = picture(split)
        report(numa, split)
        assert picture(split) == once
        back, third = moved(flat, split, second)
        assert back is not None and picture(back) == picture(tree)
        assert resources_of(third) == resources_of(first)


def moved(
    host: LinuxDriver, before: ProviderTree, held: Allocations
) -> tuple[ProviderTree | None, Allocations]:
    """A tree and its allocations as a start of the host makes them; no tree if it is refused."""
    tree, allocations = copy.deepcopy(before), copy.deepcopy(held)
    try:
        try:
            report(host, tree)
        except ReshapeNeeded:
            report(host, tree, allocations)
        root = tree.data("cn1").uuid
        make_plan(before, tree, root, current=held, moves=Moves(allocations))
    except (ReshapeFailed, BadProviderTree):
        return None, held
    assert {who: sums_of(amounts_of(body)) for who, body in allocations.items()} == {
        who: sums_of(amounts_of(body)) for who, body in held.items()
    }
    return tree, allocations


@st.composite
def holdings(draw: st.DrawFn, tree: ProviderTree) -> Allocations:
    """Allocations of up to eight consumers, within a tree's capacity."""
    free = dict(_free(tree))
    allocations: Allocations = {}
    for number in range(draw(st.integers(0, 8) if free else st.just(0))):
        amounts: dict[str, dict[str, Any]] = {}
        some = draw(st.lists(st.sampled_from(sorted(free)), min_size=1, max_size=4, unique=True))
        for name, resource_class in some:
            step, units = free[name, resource_class]
            if taken := draw(st.integers(0, units // 2)):
                free[name, resource_class] = (step, units - taken)
                part = amounts.setdefault(tree.data(name).uuid, {"resources": {}})
                part["resources"][resource_class] = taken * step
        if amounts:
            body = {"allocations": amounts, "consumer_generation": 1}
            allocations[f"consumer {number}"] = body
    return allocations


def _free(tree: ProviderTree) -> Iterator[tuple[tuple[str, str], tuple[int, int]]]:
    """By provider and class: the step, and the number of steps in nine tenths of the capacity."""
    for data in map(tree.data, tree.get_provider_uuids()):
        for resource_class, record in data.inventory.items():
            stock = Inventory(**record)
            room = min(stock.capacity, stock.max_unit) * 9 // 10
            yield (data.name, resource_class), (stock.step_size, room // stock.step_size)


def resources_of(allocations: Allocations) -> dict[str, dict[str, dict[str, int]]]:
    """The resources of each consumer by provider."""
    return {
        who: {provider: part["resources"] for provider, part in body["allocations"].items()}
        for who, body in allocations.items()
    }


def reserved(tree: ProviderTree, name: str) -> int:
    """What is reserved of a class in the whole tree."""
    every = map(tree.data, tree.get_provider_uuids())
    return sum(data.inventory.get(name, {}).get("reserved", 0) for data in every)
