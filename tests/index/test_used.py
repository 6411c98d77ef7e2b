# SPDX-License-Identifier: Apache-2.0
"""Amounts used, taken over without the trees: the short way says what the long way says."""

from __future__ import annotations

from collections.abc import Mapping

from hypothesis import given, settings
from hypothesis import strategies as st

from berth.index.block import Block
from berth.index.check import derived_faults
from berth.index.fleet import Fleet
from berth.index.snapshot import Snapshot
from berth.model.ids import ClassId, ProviderId
from berth.store.index_feed import FleetRows

VCPU, DISK = ClassId(0), ClassId(2)
CLASSES = {"VCPU": VCPU, "DISK_GB": DISK}

#: root -> its children; of two shapes, so that several providers share a block.
TREES = {1: [], 2: [], 3: [], 4: [5, 6], 7: [8, 9], 10: []}
PROVIDERS = sorted({*TREES, *(child for children in TREES.values() for child in children)})

Used = Mapping[ProviderId, Mapping[ClassId, int]]

#: Also of providers and classes that nobody has, and more than there is.
amounts_used = st.dictionaries(
    st.sampled_from([*PROVIDERS, 99]).map(ProviderId),
    st.dictionaries(st.sampled_from([VCPU, DISK, ClassId(7)]), st.integers(0, 10)),
)


def classes_of(provider: int) -> list[ClassId]:
    """Roots have disk, and CPUs where there are no children."""
    if provider not in TREES:
        return [VCPU]
    return [DISK] if TREES[provider] else [VCPU, DISK]


def rows_with(used: Used) -> FleetRows:
    """The whole fleet with some amounts used."""
    rows = FleetRows([], [], [], [])
    for root, children in TREES.items():
        for number in (root, *children):
            provider = ProviderId(number)
            parent = None if number == root else ProviderId(root)
            rows.providers.append((provider, f"uuid {number}", parent, ProviderId(root)))
            rows.inventories.extend(
                (provider, class_id, 8, 1.0, used.get(provider, {}).get(class_id, 0), 1, 4, 1)
                for class_id in classes_of(number)
            )
    return rows


def fleet_with(used: Used, rows_max: int) -> Fleet:
    """A fleet in which so much is used, with so many trees in a block."""
    loaded = Fleet(class_ids=CLASSES, trait_ids={}, rows_max=rows_max)
    loaded.replace([], loaded.trees_from(rows_with(used)))
    return loaded


def contents(snapshot: Snapshot) -> list[object]:
    """All that a reader could see of the providers, with the texts that are remembered."""
    return [
        (each.tree(row).nodes, each.summaries[row])
        for _, each in snapshot.occupied()
        for row in range(each.rows)
    ]


def arrays_of(of: Block) -> dict[str, object]:
    """A block's arrays by name."""
    arrays: dict[str, object] = {
        "provider_ids": of.provider_ids,
        "uuid_bytes": of.uuid_bytes,
        "aggregate_sets": of.aggregate_sets,
        "tree_aggregate_sets": of.tree_aggregate_sets,
        "summaries": of.summaries,
    }
    for class_id, columns in of.columns.items():
        for name in ("capacity", "used", "room", "min_unit", "max_unit", "step_size"):
            arrays[f"{class_id} {name}"] = getattr(columns, name)
    return arrays


def shared(before: Snapshot, after: Snapshot) -> set[str]:
    """Of a fleet of one block, the arrays that two snapshots have in common."""
    (_, old), (_, new) = *before.occupied(), *after.occupied()
    theirs = arrays_of(new)
    return {name for name, array in arrays_of(old).items() if array is theirs[name]}


@settings(deadline=None)
@given(steps=st.lists(amounts_used, max_size=4), rows_max=st.integers(1, 4))
def test_amounts_used_are_taken_over_as_with_whole_trees(steps: list[Used], rows_max: int) -> None:
    """And no snapshot that was given out before changes, whatever stands in one block; with a
    max_unit below what is free."""
    live, truth = fleet_with({}, rows_max), dict[ProviderId, dict[ClassId, int]]()
    held: list[tuple[Snapshot, list[object]]] = []
    for step in steps:
        held.append((before := live.snapshot(), contents(before)))
        live.set_used(step)
        for provider, amounts in step.items():
            truth.setdefault(provider, {}).update(amounts)
        assert contents(live.snapshot()) == contents(fleet_with(truth, rows_max).snapshot())
        assert list(derived_faults(live.snapshot())) == []
    for snapshot, seen in held:
        assert contents(snapshot) == seen


def flat() -> Fleet:
    """Three hosts in one block, with a text remembered for each."""
    hosts = Fleet(class_ids=CLASSES, trait_ids={})
    rows = FleetRows([], [], [], [])
    for number in (1, 2, 3):
        host = ProviderId(number)
        rows.providers.append((host, f"uuid {number}", None, host))
        rows.inventories.extend((host, each, 8, 1.0, 0, 1, 8, 1) for each in (VCPU, DISK))
    hosts.replace([], hosts.trees_from(rows))
    ((_, only),) = hosts.snapshot().occupied()
    only.summaries[:] = [b"one", b"two", b"three"]
    return hosts


def test_only_what_changes_is_copied() -> None:
    """One class's amounts and room, and the texts: that of the touched host is dropped."""
    hosts = flat()
    before = hosts.snapshot()
    ((_, old),) = before.occupied()
    hosts.set_used({ProviderId(2): {VCPU: 5, DISK: 0}})
    after = hosts.snapshot()
    ((_, new),) = after.occupied()
    assert set(arrays_of(old)) - shared(before, after) == {
        f"{VCPU} used",
        f"{VCPU} room",
        "summaries",
    }
    assert new.summaries.tolist() == [b"one", None, b"three"]
    assert old.summaries.tolist() == [b"one", b"two", b"three"]
    assert new.columns[VCPU].used.tolist() == [[0, 5, 0]]


def test_nothing_is_copied_when_nothing_changes() -> None:
    """Not even the block."""
    hosts = flat()
    before = hosts.snapshot()
    hosts.set_used({ProviderId(2): {VCPU: 0}, ProviderId(9): {VCPU: 1}, ProviderId(1): {}})
    ((_, old),), ((_, new),) = before.occupied(), hosts.snapshot().occupied()
    assert new is old
