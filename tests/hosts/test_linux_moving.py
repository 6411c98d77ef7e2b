# SPDX-License-Identifier: Apache-2.0
"""Allocations move to NUMA nodes: to those on which consumers are known to be, or to any with
capacity.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from berth.hosts import ReshapeFailed
from berth.hosts.drivers.hosts.moving import Move, Target, move_allocations
from berth.hosts.drivers.hosts.options import Placement
from berth.hosts.plan import Allocations, amounts_of, sums_of
from berth.model.inventory import MAX_INT, Inventory
from tests.effort import scaled

#: By consumer, what it holds of `host` and of other providers.
Held = Mapping[str, Mapping[str, Mapping[str, int]]]


def moves(**totals: tuple[int, ...]) -> list[Move]:
    """The moves from `host` to `node0`, `node1` and so on, with their totals by class; 0: no
    inventory."""
    return [
        Move(
            resource_class,
            ("host",),
            tuple(
                Target(f"node{node}", f"node{node}", node, Inventory(total, max_unit=total))
                for node, total in enumerate(of_class)
                if total
            ),
        )
        for resource_class, of_class in totals.items()
    ]


def moved(
    held: Held, some: list[Move], placements: Mapping[str, Placement] | None = None
) -> dict[str, dict[str, dict[str, int]]]:
    """The allocations after the moves, by consumer and provider."""
    allocations: Allocations = {
        consumer: {"allocations": {name: {"resources": dict(part)} for name, part in parts.items()}}
        for consumer, parts in held.items()
    }
    move_allocations(allocations, some, (placements or {}).get)
    return {
        consumer: {name: part["resources"] for name, part in body["allocations"].items()}
        for consumer, body in allocations.items()
    }


def test_a_consumer_that_nobody_knows_goes_whole_to_the_first_node_with_room() -> None:
    """With all classes that move; its allocations on other providers stay."""
    allocations = {
        "i1": {"host": {"VCPU": 2, "MEMORY_MB": 900, "DISK_GB": 5}, "nfs": {"DISK_GB": 7}}
    }
    assert moved(allocations, moves(VCPU=(8, 8), MEMORY_MB=(512, 1024))) == {
        "i1": {
            "host": {"DISK_GB": 5},
            "nfs": {"DISK_GB": 7},
            "node1": {"VCPU": 2, "MEMORY_MB": 900},
        }
    }


def test_the_known_come_first_and_then_the_largest() -> None:
    """Consumers with a known node are placed first, then large ones before small ones."""
    allocations = {
        "a": {"host": {"MEMORY_MB": 300}},
        "b": {"host": {"MEMORY_MB": 600}},
        "z": {"host": {"MEMORY_MB": 500}},
    }
    assert moved(allocations, moves(MEMORY_MB=(1000, 1000)), {"z": {0: 1}}) == {
        "a": {"node0": {"MEMORY_MB": 300}},
        "b": {"node1": {"MEMORY_MB": 600}},
        "z": {"node0": {"MEMORY_MB": 500}},
    }


def test_a_consumer_that_fits_nowhere_whole_is_spread_over_what_is_left() -> None:
    """After all others, with exact sums."""
    allocations = {
        "large": {"host": {"VCPU": 4, "MEMORY_MB": 1500}},
        "small": {"host": {"VCPU": 1, "MEMORY_MB": 100}},
    }
    assert moved(allocations, moves(VCPU=(4, 4), MEMORY_MB=(1000, 1000))) == {
        "large": {
            "node0": {"VCPU": 3, "MEMORY_MB": 900},
            "node1": {"VCPU": 1, "MEMORY_MB": 600},
        },
        "small": {"node0": {"VCPU": 1, "MEMORY_MB": 100}},
    }


def test_what_has_no_room_at_all_stands_on_the_first_node() -> None:
    """So that the check of the capacity names the node, and nothing is lost."""
    allocations = {"i1": {"host": {"MEMORY_MB": 900}}, "i2": {"host": {"MEMORY_MB": 800}}}
    allocations["i3"] = {"host": {"MEMORY_MB": 700}}
    assert moved(allocations, moves(MEMORY_MB=(1000, 1000)))["i3"] == {
        "node0": {"MEMORY_MB": 500},
        "node1": {"MEMORY_MB": 200},
    }


def test_memory_goes_by_the_share_of_the_cpus() -> None:
    """The rule of scenario B; the remainder goes to the consumer's first node."""
    allocations = {"i1": {"host": {"PCPU": 6, "MEMORY_MB": 1000}}}
    assert moved(
        allocations, moves(PCPU=(8, 8, 8), MEMORY_MB=(9999,) * 3), {"i1": {1: 4, 2: 2}}
    ) == {"i1": {"node1": {"PCPU": 4, "MEMORY_MB": 667}, "node2": {"PCPU": 2, "MEMORY_MB": 333}}}


def test_a_huge_page_stays_whole() -> None:
    """Three pages of 2 MiB of a guest on two nodes."""
    (move,) = moves(MEMORY_MB=(8, 8))
    pages = [
        replace(target, stock=replace(target.stock, min_unit=2, step_size=2))
        for target in move.targets
    ]
    allocations = {"i1": {"host": {"MEMORY_MB": 6}}}
    assert moved(allocations, [replace(move, targets=tuple(pages))], {"i1": {0: 1, 1: 1}}) == {
        "i1": {"node0": {"MEMORY_MB": 4}, "node1": {"MEMORY_MB": 2}}
    }


def test_a_class_that_a_consumers_nodes_do_not_have_goes_where_it_is() -> None:
    """A guest is placed on a node that has only CPUs."""
    allocations = {"i1": {"host": {"VCPU": 2, "MEMORY_MB": 700}}}
    assert moved(allocations, moves(VCPU=(4, 4), MEMORY_MB=(1000, 0)), {"i1": {1: 1}}) == {
        "i1": {"node1": {"VCPU": 2}, "node0": {"MEMORY_MB": 700}}
    }


def test_a_node_that_does_not_exist_is_refused_with_all_who_are_said_to_be_there() -> None:
    """Guessing would be worse: the placements are about another host."""
    allocations = {"i1": {"host": {"VCPU": 1}}, "i2": {"host": {"VCPU": 1}}}
    with pytest.raises(ReshapeFailed) as refused:
        moved(allocations, moves(VCPU=(4, 4)), {"i1": {7: 1}, "i2": {0: 1, 8: 1}})
    assert str(refused.value) == (
        "consumer i1 is placed on NUMA node 7, but the host has 0, 1; "
        "consumer i2 is placed on NUMA node 8, but the host has 0, 1"
    )


def test_more_than_a_node_gives_to_one_consumer_is_refused() -> None:
    """The service would refuse it too, but name only the first one."""
    some = [
        Move(
            "VCPU",
            ("host",),
            (Target("node0", "node0", 0, Inventory(8, max_unit=8, allocation_ratio=4)),),
        )
    ]
    allocations = {"i1": {"host": {"VCPU": 12}}, "i2": {"host": {"VCPU": 9}}}
    with pytest.raises(ReshapeFailed) as refused:
        moved(allocations, some, {"i1": {0: 12}})
    assert str(refused.value) == (
        "consumer i1 would hold 12 VCPU on node0, which allows 1 to 8 for one consumer, in steps "
        "of 1; "
        "consumer i2 would hold 9 VCPU on node0, which allows 1 to 8 for one consumer, in steps "
        "of 1"
    )


def test_where_there_is_one_target_nobody_is_asked() -> None:
    """A host that becomes flat again gets everything back, wherever consumers are."""
    back = [Move("VCPU", ("node0", "node1"), (Target("host", "host", -1, Inventory(8)),))]
    allocations = {"i1": {"node0": {"VCPU": 1}, "node1": {"VCPU": 3}, "host": {"DISK_GB": 1}}}
    assert moved(allocations, back, {"i1": {5: 1}}) == {"i1": {"host": {"DISK_GB": 1, "VCPU": 4}}}


amounts = st.fixed_dictionaries(
    {"VCPU": st.integers(1, 40), "MEMORY_MB": st.integers(1, 5000), "DISK_GB": st.integers(1, 9)}
)
nodes = st.dictionaries(st.integers(0, 2), st.integers(1, 8), min_size=1)


@settings(max_examples=scaled(60))
@given(
    held=st.dictionaries(st.sampled_from("abcdef"), amounts),
    placements=st.dictionaries(st.sampled_from("abc"), nodes),
    totals=st.tuples(*[st.integers(1, 100)] * 3),
)
def test_nobody_gains_or_loses_and_the_order_does_not_matter(
    held: dict[str, dict[str, int]],
    placements: dict[str, Placement],
    totals: tuple[int, int, int],
) -> None:
    """For any capacities: what moves is on the nodes afterwards, and everything else is where it
    was."""
    some = [
        replace(move, targets=tuple(_that_gives_any_amount(target) for target in move.targets))
        for move in moves(VCPU=totals, MEMORY_MB=(1000, 2000, 3000))
    ]
    world = {consumer: {"host": parts} for consumer, parts in held.items()}
    after = moved(world, some, placements)
    assert after == moved(dict(reversed(world.items())), some, placements)
    for consumer, parts in after.items():
        body = {"allocations": {name: {"resources": part} for name, part in parts.items()}}
        assert dict(sums_of(body)) == held[consumer]
        assert parts["host"] == {"DISK_GB": held[consumer]["DISK_GB"]}
        assert all(amount >= 1 for amount in amounts_of(body).values())


def _that_gives_any_amount(target: Target) -> Target:
    return replace(target, stock=replace(target.stock, max_unit=MAX_INT))
