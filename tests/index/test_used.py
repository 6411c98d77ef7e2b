# SPDX-License-Identifier: Apache-2.0
"""Usages, applied without reloading the trees: the result equals that of a reload."""

from __future__ import annotations

from collections.abc import Mapping

from hypothesis import given
from hypothesis import strategies as st

from berth.index.block import ARRAYS, Block
from berth.index.fleet import Fleet
from berth.index.snapshot import Snapshot
from berth.model.ids import ClassId, ProviderId
from berth.store.index_feed import FleetRows, ProviderState
from tests.index.checking import check_derived, tree_of
from tests.index.rows import TIME, inventory_row, provider_row

VCPU, DISK = ClassId(0), ClassId(2)
CLASSES = {"VCPU": VCPU, "DISK_GB": DISK}

#: root -> its children; of two shapes, so that several providers share a block.
TREES = {1: [], 2: [], 3: [], 4: [5, 6], 7: [8, 9], 10: []}
PROVIDERS = sorted({*TREES, *(child for children in TREES.values() for child in children)})

States = Mapping[ProviderId, ProviderState]

#: Before any claim.
NEW = ProviderState(0, TIME, {})

#: Also of providers and classes that nobody has, and more than there is.
states_drawn = st.dictionaries(
    st.sampled_from([*PROVIDERS, 99]).map(ProviderId),
    st.builds(
        ProviderState,
        generation=st.integers(0, 3),
        modified=st.integers(TIME, TIME + 3),
        used=st.dictionaries(st.sampled_from([VCPU, DISK, ClassId(7)]), st.integers(0, 10)),
    ),
)


def classes_of(provider: int) -> list[ClassId]:
    """The classes of a provider: roots have disk, and CPUs if they have no children."""
    if provider not in TREES:
        return [VCPU]
    return [DISK] if TREES[provider] else [VCPU, DISK]


def rows_with(states: States) -> FleetRows:
    """The whole fleet, some of which claims have changed."""
    rows = FleetRows([], [], [], [], [])
    for root, children in TREES.items():
        for number in (root, *children):
            provider = ProviderId(number)
            parent = None if number == root else ProviderId(root)
            state = states.get(provider, NEW)
            rows.providers.append(
                provider_row(
                    provider,
                    f"uuid {number}",
                    parent,
                    ProviderId(root),
                    generation=state.generation,
                    modified=state.modified,
                )
            )
            rows.inventories.extend(
                inventory_row(provider, class_id, used=state.used.get(class_id, 0), units=(1, 4, 1))
                for class_id in classes_of(number)
            )
    return rows


def fleet_with(states: States, rows_max: int) -> Fleet:
    """A fleet in which claims have changed some providers, with this many trees in a block."""
    loaded = Fleet(class_ids=CLASSES, trait_ids={}, rows_max=rows_max)
    loaded.replace([], loaded.trees_from(rows_with(states)))
    return loaded


def contents(snapshot: Snapshot) -> list[object]:
    """Everything that a reader can see of the providers, with the cached texts."""
    return [
        (tree_of(each, row).nodes, each.summaries[row])
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
        "names": of.names,
        "generations": of.generations,
        "modified": of.modified,
        "summaries": of.summaries,
    }
    for class_id, columns in of.columns.items():
        for name in ARRAYS:
            arrays[f"{class_id} {name}"] = getattr(columns, name)
    return arrays


def shared(before: Snapshot, after: Snapshot) -> set[str]:
    """The arrays that two snapshots of a fleet of one block share."""
    (_, old), (_, new) = *before.occupied(), *after.occupied()
    theirs = arrays_of(new)
    return {name for name, array in arrays_of(old).items() if array is theirs[name]}


@given(steps=st.lists(states_drawn, max_size=4), rows_max=st.integers(1, 4))
def test_states_are_taken_over_as_with_whole_trees(steps: list[States], rows_max: int) -> None:
    """Also if other trees are in the same block, or max_unit is less than the free amount; older
    snapshots do not change."""
    live, truth = fleet_with({}, rows_max), dict[ProviderId, ProviderState]()
    snapshots: list[tuple[Snapshot, list[object]]] = []
    for step in steps:
        snapshots.append((before := live.snapshot(), contents(before)))
        live.set_states(step)
        for provider, state in step.items():
            before_it = truth.get(provider, NEW).used
            truth[provider] = state._replace(used={**before_it, **state.used})
        assert contents(live.snapshot()) == contents(fleet_with(truth, rows_max).snapshot())
        assert list(check_derived(live.snapshot())) == []
    for snapshot, seen in snapshots:
        assert contents(snapshot) == seen


def flat() -> Fleet:
    """Three hosts in one block, with a cached text for each."""
    hosts = Fleet(class_ids=CLASSES, trait_ids={})
    rows = FleetRows([], [], [], [], [])
    for number in (1, 2, 3):
        host = ProviderId(number)
        rows.providers.append(provider_row(host, f"uuid {number}", None, host))
        rows.inventories.extend(inventory_row(host, each) for each in (VCPU, DISK))
    hosts.replace([], hosts.trees_from(rows))
    ((_, only),) = hosts.snapshot().occupied()
    only.summaries[:] = [b"one", b"two", b"three"]
    return hosts


def test_only_what_changes_is_copied() -> None:
    """The usage and free amounts of one class, the generations and their times, and the texts,
    without that of the changed host."""
    hosts = flat()
    before = hosts.snapshot()
    ((_, old),) = before.occupied()
    hosts.set_states({ProviderId(2): ProviderState(1, TIME, {VCPU: 5, DISK: 0})})
    after = hosts.snapshot()
    ((_, new),) = after.occupied()
    assert set(arrays_of(old)) - shared(before, after) == {
        f"{VCPU} used",
        f"{VCPU} room",
        "generations",
        "modified",
        "summaries",
    }
    assert new.summaries.tolist() == [b"one", None, b"three"]
    assert old.summaries.tolist() == [b"one", b"two", b"three"]
    assert new.columns[VCPU].used.tolist() == [[0, 5, 0]]


def test_nothing_is_copied_when_nothing_changes() -> None:
    """Not even the block."""
    hosts = flat()
    before = hosts.snapshot()
    hosts.set_states(
        {
            ProviderId(2): ProviderState(0, TIME, {VCPU: 0}),
            ProviderId(9): ProviderState(0, TIME, {VCPU: 1}),
            ProviderId(1): NEW,
        }
    )
    ((_, old),), ((_, new),) = before.occupied(), hosts.snapshot().occupied()
    assert new is old
