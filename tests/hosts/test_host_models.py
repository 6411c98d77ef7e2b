# SPDX-License-Identifier: Apache-2.0
"""Properties of the host models, for every host, its guests, and any configuration."""

from __future__ import annotations

import copy
from collections import Counter
from typing import Any
from uuid import UUID

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from berth.hosts import ProviderTree, ReshapeNeeded
from berth.hosts.drivers.hosts.devices import Device
from berth.hosts.drivers.hosts.facts import Facts, Part
from berth.hosts.drivers.hosts.options import HostOptions, HugePages, Model
from berth.hosts.drivers.hosts.shaping import Shaper
from berth.hosts.errors import BadProviderTree, ReshapeFailed
from berth.hosts.plan import Allocations, make_plan, sums_of
from tests.effort import scaled
from tests.hosts.linux_hosts import empty_tree, picture

CLASSES = ("VCPU", "PCPU", "MEMORY_MB")
MIB = 1024


@st.composite
def hosts(draw: st.DrawFn) -> Facts:
    """A host with some NUMA nodes; some have no CPUs, no memory, or neither."""
    numbers = draw(st.lists(st.integers(0, 9), min_size=1, max_size=4, unique=True))
    nodes = {}
    for node in sorted(numbers):
        huge = {2048: draw(st.integers(0, 8)) * 2048, 1048576: draw(st.integers(0, 2)) * 1048576}
        nodes[node] = Part(
            draw(st.integers(0, 8)),
            draw(st.integers(0, 8)),
            sum(huge.values()) + draw(st.integers(0, 4096)) * MIB,
            {size: kib for size, kib in huge.items() if kib},
        )
    pages: Counter[int] = Counter()
    for part in nodes.values():
        pages.update(part.huge_kib)
    whole = Part(
        sum(part.vcpus for part in nodes.values()),
        sum(part.pcpus for part in nodes.values()),
        sum(part.memory_kib for part in nodes.values()),
        pages,
    )
    device = Device("pci_0000_84_00_0", "0000:84:00.0", numbers[0], {"VGPU": 4}, frozenset())
    traits = frozenset({"HW_ARCH_X86_64"})
    return Facts(whole, nodes, draw(st.integers(0, 9)), traits, traits, (device,))


@st.composite
def models(draw: st.DrawFn) -> HostOptions:
    """The options of an operator."""
    amounts = st.dictionaries(st.sampled_from(CLASSES), st.integers(0, 3))
    ratios = st.dictionaries(st.sampled_from(CLASSES), st.sampled_from([1.0, 1.5, 4.0]))
    return HostOptions(
        huge_pages=draw(st.sampled_from(HugePages)),
        reserved=draw(amounts),
        allocation_ratios=draw(ratios),
    )


def report(
    tree: ProviderTree, facts: Facts, options: HostOptions, allocations: Allocations | None = None
) -> None:
    """Run the driver once on the tree of `cn1`."""
    Shaper(
        tree,
        tree.data("cn1"),
        facts,
        options,
        placements=lambda consumer: None,
        used=None,
        allocations=allocations,
        firsts={"VCPU": {"allocation_ratio": 4.0}, "MEMORY_MB": {"reserved": 512}},
    ).shape()


def guests_of(tree: ProviderTree, draw: st.DataObject) -> Allocations:
    """Guests with some of each class of the root, within its capacity."""
    root = tree.data("cn1")
    left = {name: root.inventory[name]["total"] for name in CLASSES if name in root.inventory}
    left["MEMORY_MB"] = left.get("MEMORY_MB", 0) - root.inventory.get("MEMORY_MB", {}).get(
        "reserved", 0
    )
    guests: dict[str, dict[str, Any]] = {}
    for number in range(draw.draw(st.integers(0, 4), "guests")):
        part = {}
        for name, amount in left.items():
            if amount > 0 and (some := draw.draw(st.integers(0, amount), name)):
                left[name] -= some
                part[name] = some
        if part:
            allocations = {root.uuid: {"resources": part}}
            guests[str(UUID(int=number))] = {"allocations": allocations, "consumer_generation": 1}
    return guests


@settings(max_examples=scaled(40))
@given(facts=hosts(), options=models(), data=st.data())
def test_to_numa_nodes_and_back_nobody_and_nothing_is_lost(
    facts: Facts, options: HostOptions, data: st.DataObject
) -> None:
    """Every guest keeps its amount of each class, the sum of what is reserved stays, and in the end
    the host is as before.

    If it does not fit, there is an error; a second pass sends nothing.
    """
    numa = replace(options, model=Model.NUMA)
    tree = empty_tree()
    report(tree, facts, options)
    before = picture(tree)
    allocated = guests_of(tree, data)
    allocations = copy.deepcopy(allocated)
    split = copy.deepcopy(tree)
    try:
        try:
            report(split, facts, numa)
            assert not before["cn1"].inventory.keys() & set(CLASSES), "nothing was to move"
        except ReshapeNeeded:
            report(split, facts, numa, allocations)
        make_plan(tree, split, tree.data("cn1").uuid, current=allocated, allocations=allocations)
    except (ReshapeFailed, BadProviderTree):
        assert allocated, "an empty host can take every shape"
        return
    assert sums(allocations) == sums(allocated)
    for name in CLASSES:
        assert reserved(split, name) == reserved(tree, name)
    again = copy.deepcopy(split)
    report(again, facts, numa)
    assert picture(again) == picture(split)
    try:
        report(split, facts, options)
    except ReshapeNeeded:
        report(split, facts, options, allocations)
    assert picture(split) == before
    assert sums(allocations) == sums(allocated)


def sums(allocations: Allocations) -> dict[str, Counter[str]]:
    """The amounts of each guest by class."""
    return {consumer: sums_of(body) for consumer, body in allocations.items()}


def reserved(tree: ProviderTree, name: str) -> int:
    """What is reserved of a class in the whole tree."""
    every = map(tree.data, tree.get_provider_uuids())
    return sum(
        provider.inventory[name].get("reserved", 0)
        for provider in every
        if name in provider.inventory
    )
