# SPDX-License-Identifier: Apache-2.0
"""Random histories of a fleet, without a database: after every step the live index, which took in
tree by tree, equals a fresh load by whole arrays."""

from __future__ import annotations

import random
from dataclasses import dataclass, field, replace

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from berth.index.check import faults_of
from berth.index.fleet import SHARING_TRAIT, Fleet
from berth.index.snapshot import Snapshot
from berth.model.ids import AggregateId, ClassId, ProviderId, TraitId
from berth.store.index_feed import FleetRows
from tests.index.derived import derived_faults

CLASSES = {"VCPU": ClassId(0), "DISK_GB": ClassId(2), "CUSTOM_X": ClassId(10_000)}
TRAITS = {SHARING_TRAIT: TraitId(1), "CUSTOM_T": TraitId(2)}
AGGREGATES = {"a": AggregateId(1), "b": AggregateId(2)}

#: Class -> capacity, used, (min_unit, max_unit, step_size).
Inventories = dict[ClassId, tuple[float, int, tuple[int, int, int]]]


@dataclass(frozen=True)
class Provider:
    """What the truth says of a provider."""

    uuid: str
    parent: ProviderId | None
    inventories: Inventories = field(default_factory=dict)
    traits: frozenset[TraitId] = frozenset()
    aggregates: frozenset[AggregateId] = frozenset()


class FleetHistory(RuleBasedStateMachine):
    """Providers come, change, move and go; ids are given again, as SQLite does."""

    @initialize()
    def begin(self) -> None:
        self.created = 0
        self.truth: dict[ProviderId, Provider] = {}
        self.fleet = Fleet(class_ids=CLASSES, trait_ids=TRAITS, rows_max=3)
        self.fleet.add_aggregates(AGGREGATES)
        self.held: list[tuple[Snapshot, list[object]]] = []

    @rule(pick=st.randoms(use_true_random=False), child=st.booleans())
    def create(self, pick: random.Random, child: bool) -> None:
        number = ProviderId(max(self.truth, default=0) + 1)
        parent = pick.choice(sorted(self.truth)) if child and self.truth else None
        self.truth[number] = Provider(self.new_uuid(), parent)
        self.refresh({number})

    @rule(
        pick=st.randoms(use_true_random=False),
        amounts=st.dictionaries(
            st.sampled_from(sorted(CLASSES.values())),
            st.tuples(
                st.integers(-2, 9).map(float),
                st.integers(0, 9),
                st.sampled_from([(1, 9, 1), (1, 4, 1), (2, 9, 1), (1, 9, 3), (1, 2**31 - 1, 1)]),
            ),
        ),
    )
    def stock(self, pick: random.Random, amounts: Inventories) -> None:
        self.change(pick, inventories=amounts)

    @rule(
        pick=st.randoms(use_true_random=False),
        capacity=st.integers(-2, 9).map(float),
        used=st.integers(0, 9),
        units=st.sampled_from([(1, 9, 1), (1, 4, 1), (2, 9, 1), (1, 9, 3)]),
    )
    def restock(
        self, pick: random.Random, capacity: float, used: int, units: tuple[int, int, int]
    ) -> None:
        """Other amounts and units of the classes that are there: the shape stays."""
        stocked = sorted(n for n, provider in self.truth.items() if provider.inventories)
        if stocked:
            number = pick.choice(stocked)
            provider = self.truth[number]
            renewed = dict.fromkeys(provider.inventories, (capacity, used, units))
            self.truth[number] = replace(provider, inventories=renewed)
            self.refresh({number})

    @rule(
        pick=st.randoms(use_true_random=False),
        traits=st.frozensets(st.sampled_from(sorted(TRAITS.values()))),
    )
    def set_traits(self, pick: random.Random, traits: frozenset[TraitId]) -> None:
        self.change(pick, traits=traits)

    @rule(
        pick=st.randoms(use_true_random=False),
        aggregates=st.frozensets(st.sampled_from(sorted(AGGREGATES.values()))),
    )
    def set_aggregates(self, pick: random.Random, aggregates: frozenset[AggregateId]) -> None:
        self.change(pick, aggregates=aggregates)

    @rule(pick=st.randoms(use_true_random=False), to_root=st.booleans())
    def move(self, pick: random.Random, to_root: bool) -> None:
        if not self.truth:
            return
        moved = pick.choice(sorted(self.truth))
        below = self.subtree(moved)
        homes = sorted(set(self.truth) - below)
        parent = None if to_root or not homes else pick.choice(homes)
        self.truth[moved] = replace(self.truth[moved], parent=parent)
        self.refresh(below)

    @rule(pick=st.randoms(use_true_random=False))
    def delete(self, pick: random.Random) -> None:
        leaves = sorted(n for n in self.truth if self.subtree(n) == {n})
        if leaves:
            gone = pick.choice(leaves)
            del self.truth[gone]
            self.refresh({gone})

    @rule()
    def delete_and_create_unseen(self) -> None:
        """Between two reads a provider goes and another comes with its id."""
        last = max(self.truth, default=None)
        if last is not None and self.subtree(last) == {last}:
            self.truth[last] = Provider(self.new_uuid(), None)
            self.refresh({last})

    @rule()
    def hold(self) -> None:
        """A reader takes a snapshot, to look at it much later."""
        snapshot = self.fleet.snapshot()
        self.held.append((snapshot, contents(snapshot)))

    @invariant()
    def live_equals_fresh(self) -> None:
        used = {
            (number, class_id): used
            for number, provider in self.truth.items()
            for class_id, (_, used, _) in provider.inventories.items()
        }
        fresh = Fleet(class_ids=CLASSES, trait_ids=TRAITS)
        fresh.add_aggregates(AGGREGATES)
        roots = sorted(set(map(self.root, self.truth)))
        fresh.load(self.rows(part) for part in (set(roots[::2]), set(roots[1::2])))
        assert faults_of(self.fleet.snapshot(), fresh.snapshot(), used) == []
        assert list(derived_faults(self.fleet.snapshot())) == []
        assert list(derived_faults(fresh.snapshot())) == []

    def teardown(self) -> None:
        for snapshot, seen in getattr(self, "held", []):
            assert contents(snapshot) == seen

    def new_uuid(self) -> str:
        self.created += 1
        return f"uuid {self.created}"

    def change(self, pick: random.Random, **changes: object) -> None:
        if self.truth:
            number = pick.choice(sorted(self.truth))
            self.truth[number] = replace(self.truth[number], **changes)  # type: ignore[arg-type]
            self.refresh({number})

    def refresh(self, touched: set[ProviderId]) -> None:
        """What `berth.index.index` does with the journal."""
        roots = {self.root(number) for number in touched if number in self.truth}
        roots |= self.fleet.roots_of(touched)
        self.fleet.replace(roots, self.fleet.trees_from(self.rows(roots)))

    def root(self, number: ProviderId) -> ProviderId:
        while (parent := self.truth[number].parent) is not None:
            number = parent
        return number

    def subtree(self, top: ProviderId) -> set[ProviderId]:
        below = {top}
        while more := {n for n, p in self.truth.items() if p.parent in below} - below:
            below |= more
        return below

    def rows(self, roots: set[ProviderId]) -> FleetRows:
        rows = FleetRows([], [], [], [])
        for number, provider in self.truth.items():
            root = self.root(number)
            if root in roots:
                rows.providers.append((number, provider.uuid, provider.parent, root))
                rows.inventories.extend(
                    (number, class_id, 2, capacity / 2, used, *units)
                    for class_id, (capacity, used, units) in provider.inventories.items()
                )
                rows.traits.extend((number, trait) for trait in provider.traits)
                rows.aggregates.extend((number, aggregate) for aggregate in provider.aggregates)
        return rows


def contents(snapshot: Snapshot) -> list[object]:
    """All that a reader could see of the providers."""
    return [block.tree(row) for _, block in snapshot.occupied() for row in range(block.rows)]


TestFleetHistory = FleetHistory.TestCase
TestFleetHistory.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)
