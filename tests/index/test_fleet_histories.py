# SPDX-License-Identifier: Apache-2.0
"""Random histories of a fleet without a database: after every step, the live index, updated tree by
tree, equals a fresh load with whole arrays.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from berth.index.fleet import SHARING_TRAIT, Fleet
from berth.index.snapshot import Snapshot
from berth.index.summary_text import tree_texts
from berth.model.ids import AggregateId, AggregateUUID, ClassId, ProviderId, TraitId
from berth.store.index_feed import FleetRows
from tests.effort import scaled
from tests.index.checking import check_derived, check_snapshot, tree_of
from tests.index.rows import inventory_row, provider_row

CLASSES = {"VCPU": ClassId(0), "DISK_GB": ClassId(2), "CUSTOM_X": ClassId(10_000)}
TRAITS = {SHARING_TRAIT: TraitId(1), "CUSTOM_T": TraitId(2)}
AGGREGATES = [
    (AggregateId(1), AggregateUUID("a"), "A"),
    (AggregateId(2), AggregateUUID("b"), "b"),
]

#: Class -> capacity, used, (min_unit, max_unit, step_size).
Amounts = tuple[float, int, tuple[int, int, int]]
Inventories = dict[ClassId, Amounts]

AMOUNTS = st.tuples(
    st.integers(-2, 9).map(float),
    st.integers(0, 9),
    st.sampled_from([(1, 9, 1), (1, 4, 1), (2, 9, 1), (1, 9, 3), (1, 2**31 - 1, 1)]),
)


@dataclass(frozen=True)
class Provider:
    """The expected state of a provider."""

    uuid: str
    parent: ProviderId | None
    name: str | None = None
    generation: int = 0
    inventories: Inventories = field(default_factory=dict)
    traits: frozenset[TraitId] = frozenset()
    aggregates: frozenset[AggregateId] = frozenset()


class FleetHistory(RuleBasedStateMachine):
    """Providers are created, changed, moved and deleted; ids are reused, as SQLite does."""

    @initialize(hosts=st.integers(0, 5), changes=st.integers(1, 4))
    def begin(self, hosts: int, changes: int) -> None:
        """Start with some hosts: most rules change existing ones, and Hypothesis may leave `create`
        out of a history. A refresh follows after a given number of changes."""
        self.changes_seen_at_once = changes
        self.created = 0
        self.truth: dict[ProviderId, Provider] = {}
        self.classes: Mapping[str, ClassId] = CLASSES
        self.traits: Mapping[str, TraitId] = TRAITS
        self.fleet = Fleet(class_ids=CLASSES, trait_ids=TRAITS, rows_max=3)
        self.fleet.add_aggregates(AGGREGATES)
        self.held: list[tuple[Snapshot, list[object]]] = []
        self.unseen: set[ProviderId] = set()
        self.changes_unseen = 0
        for number in map(ProviderId, range(1, hosts + 1)):
            stock: Inventories = {CLASSES["VCPU"]: (8.0, 0, (1, 8, 1))}
            self.truth[number] = Provider(self.new_uuid(), None, inventories=stock)
            self.refresh({number})

    @rule(pick=st.randoms(use_true_random=False), child=st.booleans())
    def create(self, pick: random.Random, child: bool) -> None:
        number = ProviderId(max(self.truth, default=0) + 1)
        parent = pick.choice(sorted(self.truth)) if child and self.truth else None
        self.truth[number] = Provider(self.new_uuid(), parent)
        self.refresh({number})

    @rule(
        pick=st.randoms(use_true_random=False),
        amounts=st.dictionaries(st.sampled_from(sorted(CLASSES.values())), AMOUNTS),
    )
    def stock(self, pick: random.Random, amounts: Inventories) -> None:
        self.change(pick, inventories=amounts)

    @rule(
        pick=st.randoms(use_true_random=False),
        amounts=st.lists(AMOUNTS, min_size=len(CLASSES), max_size=len(CLASSES)),
    )
    def restock(self, pick: random.Random, amounts: list[Amounts]) -> None:
        """Change amounts and units of an inventory: shape and block stay the same."""
        stocked = sorted(number for number, each in self.truth.items() if each.inventories)
        if stocked:
            number = pick.choice(stocked)
            inventories = self.truth[number].inventories
            self.truth[number] = replace(
                self.truth[number], inventories=dict(zip(inventories, amounts, strict=False))
            )
            self.refresh({number})

    @rule(pick=st.randoms(use_true_random=False), name=st.text(max_size=3))
    def rename(self, pick: random.Random, name: str) -> None:
        """The shape and all amounts stay."""
        self.created += 1
        self.change(pick, name=f"{name} {self.created}", generation=self.created)

    @rule(
        pick=st.randoms(use_true_random=False),
        traits=st.frozensets(st.sampled_from(sorted(TRAITS.values()))),
    )
    def set_traits(self, pick: random.Random, traits: frozenset[TraitId]) -> None:
        self.change(pick, traits=traits & frozenset(self.traits.values()))

    @rule(
        pick=st.randoms(use_true_random=False),
        aggregates=st.frozensets(st.sampled_from([number for number, *_ in AGGREGATES])),
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
        """Between two refreshes a provider is deleted, and another gets its id."""
        last = max(self.truth, default=None)
        if last is not None and self.subtree(last) == {last}:
            self.truth[last] = Provider(self.new_uuid(), None)
            self.refresh({last})

    @rule(pick=st.randoms(use_true_random=False))
    def delete_and_create_again_unseen(self, pick: random.Random) -> None:
        """Between two refreshes a provider is deleted and created with the same uuid and another
        id."""
        leaves = sorted(n for n in self.truth if self.subtree(n) == {n})
        if leaves:
            gone, again = pick.choice(leaves), ProviderId(max(self.truth) + 1)
            self.truth[again] = self.truth.pop(gone)
            self.refresh({gone, again})

    @rule(
        pick=st.randoms(use_true_random=False),
        amounts=st.lists(AMOUNTS, min_size=len(CLASSES), max_size=len(CLASSES)),
    )
    def create_beside_its_like(self, pick: random.Random, amounts: list[Amounts]) -> None:
        """Create a provider with the structure of an existing one, with other amounts and units."""
        alone = sorted(
            number
            for number, each in self.truth.items()
            if each.inventories and self.subtree(number) == {number} == {self.root(number)}
        )
        if alone:
            model, number = self.truth[pick.choice(alone)], ProviderId(max(self.truth) + 1)
            inventories = dict(zip(model.inventories, amounts, strict=False))
            self.truth[number] = replace(
                model, uuid=self.new_uuid(), name=None, inventories=inventories
            )
            self.refresh({number})

    @rule(name=st.sampled_from(["CUSTOM_T", "CUSTOM_U", None]))
    def rename_trait(self, name: str | None) -> None:
        """Delete a trait; another name may get its id. If it is in use, this can only have happened
        between two snapshots."""
        self.catch_up()
        in_use = any(TRAITS["CUSTOM_T"] in each.traits for each in self.truth.values())
        if name is not None or not in_use:
            custom = {} if name is None else {name: TRAITS["CUSTOM_T"]}
            self.traits = {SHARING_TRAIT: TRAITS[SHARING_TRAIT], **custom}
            self.fleet.set_names(self.classes, self.traits)

    @rule(name=st.sampled_from(["CUSTOM_X", "CUSTOM_Y"]))
    def rename_class(self, name: str) -> None:
        """Rename a class."""
        self.catch_up()
        standard = {each: number for each, number in CLASSES.items() if each != "CUSTOM_X"}
        self.classes = {**standard, name: CLASSES["CUSTOM_X"]}
        self.fleet.set_names(self.classes, self.traits)

    @rule()
    def describe(self) -> None:
        """Render everything, so that the texts are cached."""
        snapshot = self.fleet.snapshot()
        for _, block in snapshot.occupied():
            tree_texts(snapshot, block, np.arange(block.rows))

    @rule()
    def hold(self) -> None:
        """Keep a snapshot, and check it much later."""
        snapshot = self.fleet.snapshot()
        self.held.append((snapshot, contents(snapshot)))

    @invariant()
    def live_equals_fresh(self) -> None:
        if self.unseen:
            return
        used = {
            (number, class_id): used
            for number, provider in self.truth.items()
            for class_id, (_, used, _) in provider.inventories.items()
        }
        fresh = Fleet(class_ids=self.classes, trait_ids=self.traits)
        fresh.add_aggregates(AGGREGATES)
        roots = sorted(set(map(self.root, self.truth)))
        fresh.load(self.rows(part) for part in (set(roots[::2]), set(roots[1::2])))
        assert check_snapshot(self.fleet.snapshot(), fresh.snapshot(), used) == []
        assert list(check_derived(fresh.snapshot())) == []

    def teardown(self) -> None:
        if getattr(self, "unseen", None):
            self.catch_up()
            self.live_equals_fresh()
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
        """Mark a change, which the next refresh must see."""
        self.unseen |= touched
        self.changes_unseen += 1
        if self.changes_unseen == self.changes_seen_at_once:
            self.catch_up()

    def catch_up(self) -> None:
        """Apply the changes as `berth.index.index` does with the journal."""
        touched, self.unseen, self.changes_unseen = self.unseen, set(), 0
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
        rows = FleetRows([], [], [], [], [])
        for number, provider in self.truth.items():
            root = self.root(number)
            if root in roots:
                rows.providers.append(
                    provider_row(
                        *(number, provider.uuid, provider.parent, root),
                        name=provider.name,
                        generation=provider.generation,
                    )
                )
                rows.inventories.extend(
                    inventory_row(number, class_id, 2, ratio=capacity / 2, used=used, units=units)
                    for class_id, (capacity, used, units) in provider.inventories.items()
                )
                rows.traits.extend((number, trait) for trait in provider.traits)
                rows.aggregates.extend((number, aggregate) for aggregate in provider.aggregates)
        return rows


def contents(snapshot: Snapshot) -> list[object]:
    """Everything that a reader can see of the providers."""
    return [tree_of(block, row) for _, block in snapshot.occupied() for row in range(block.rows)]


TestFleetHistory = FleetHistory.TestCase
TestFleetHistory.settings = settings(max_examples=scaled(30), stateful_step_count=30)
