# SPDX-License-Identifier: Apache-2.0
"""Random histories of writes through two workers: after each step both indexes equal a new load."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import ClassVar

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)

from berth.index import Index
from berth.index.block import ROWS_MAX
from berth.index.summary_text import tree_texts
from berth.model.consumer import ConsumerWrite
from berth.model.errors import BerthError, InventoryNotOnProvider
from berth.model.ids import AggregateUUID, ConsumerUUID, ProviderUUID
from berth.model.inventory import Inventory
from berth.model.sentinels import UNSET
from berth.store.aggregates import replace_aggregates
from berth.store.allocations import delete_allocations, replace_allocations
from berth.store.engine.database import Database
from berth.store.index_feed import USUAL, Portions
from berth.store.inventories import (
    create_inventory,
    delete_inventory,
    replace_inventories,
    update_inventory,
)
from berth.store.providers import (
    create_provider,
    delete_provider,
    get_provider,
    update_provider,
)
from berth.store.reshape import ReshapedInventories, reshape
from berth.store.resource_classes import (
    delete_resource_class,
    ensure_resource_class,
    rename_resource_class,
)
from berth.store.traits import (
    create_trait,
    delete_provider_traits,
    delete_trait,
    replace_provider_traits,
)
from tests.effort import scaled
from tests.fresh import Fresh, opened_at
from tests.index.checking import checked
from tests.index.reading import check_reads
from tests.worlds import consumer_uuid, provider_uuid

PROVIDERS = st.sampled_from([ProviderUUID(provider_uuid(f"p{n}")) for n in range(6)])
CONSUMERS = st.sampled_from([ConsumerUUID(consumer_uuid(f"c{n}")) for n in range(4)])
WORKERS = st.integers(0, 1)
CUSTOM = st.sampled_from(["CUSTOM_A", "CUSTOM_B"])
CLASSES = ["VCPU", "DISK_GB", "CUSTOM_A", "CUSTOM_B"]
TRAITS = ["MISC_SHARES_VIA_AGGREGATE", "HW_CPU_X86_AVX2", "CUSTOM_A", "CUSTOM_B"]
INVENTORIES = st.builds(
    Inventory,
    total=st.integers(1, 8),
    min_unit=st.sampled_from([1, 1, 2]),
    max_unit=st.sampled_from([2**31 - 1, 4]),
    step_size=st.sampled_from([1, 1, 2]),
)
AGGREGATES = [AggregateUUID(provider_uuid(f"agg{n}")) for n in range(2)]


class TwoWorkers(RuleBasedStateMachine):
    """Each step is one write through one of the workers; many are refused, which is intended."""

    fresh: ClassVar[Fresh]
    #: From the URL of a database to that of each worker: in a cluster another node.
    urls: ClassVar[Callable[[str], Sequence[str]]] = staticmethod(lambda url: (url, url))
    portions: ClassVar[Portions] = USUAL
    rows_max: ClassVar[int] = ROWS_MAX

    @initialize()
    def begin(self) -> None:
        self.directory = TemporaryDirectory()
        url = type(self).fresh(Path(self.directory.name))
        self.workers = [opened_at(each) for each in type(self).urls(url)]
        self.indexes = [
            Index(db, portions=type(self).portions, rows_max=type(self).rows_max)
            for db in self.workers
        ]
        for provider in range(3):
            self.create(0, ProviderUUID(provider_uuid(f"p{provider}")), None)
            self.stock(0, ProviderUUID(provider_uuid(f"p{provider}")), {"VCPU": Inventory(total=8)})

    @rule(worker=WORKERS, provider=PROVIDERS, parent=st.none() | PROVIDERS)
    def create(self, worker: int, provider: ProviderUUID, parent: ProviderUUID | None) -> None:
        self.attempt(
            worker, lambda db: create_provider(db, uuid=provider, name=provider, parent_uuid=parent)
        )

    @rule(worker=WORKERS, provider=PROVIDERS, parent=st.none() | PROVIDERS)
    def move(self, worker: int, provider: ProviderUUID, parent: ProviderUUID | None) -> None:
        self.attempt(
            worker,
            lambda db: update_provider(
                db, provider, name=provider, parent_uuid=parent, may_reparent=True
            ),
        )

    @rule(worker=WORKERS, provider=PROVIDERS)
    def delete(self, worker: int, provider: ProviderUUID) -> None:
        self.attempt(worker, lambda db: delete_provider(db, provider))

    @rule(
        worker=WORKERS,
        provider=PROVIDERS,
        inventories=st.dictionaries(st.sampled_from(CLASSES), INVENTORIES),
    )
    def stock(self, worker: int, provider: ProviderUUID, inventories: dict[str, Inventory]) -> None:
        self.attempt(
            worker,
            lambda db: replace_inventories(
                db, provider, get_provider(db, provider).generation, inventories
            ),
        )

    @rule(
        worker=WORKERS,
        provider=PROVIDERS,
        name=st.sampled_from(CLASSES),
        inventory=st.none() | INVENTORIES,
    )
    def restock_one(
        self, worker: int, provider: ProviderUUID, name: str, inventory: Inventory | None
    ) -> None:
        """Create, change or delete one inventory."""

        def unit(db: Database) -> None:
            row = get_provider(db, provider)
            if inventory is None:
                delete_inventory(db, provider, name)
                return
            try:
                update_inventory(db, provider, name, row.generation, inventory)
            except InventoryNotOnProvider:
                create_inventory(db, provider, name, inventory)

        self.attempt(worker, unit)

    @rule(worker=WORKERS, name=CUSTOM, there=st.booleans())
    def define_trait(self, worker: int, name: str, there: bool) -> None:
        """Create or delete a trait; another name may get its id."""
        self.attempt(worker, lambda db: (create_trait if there else delete_trait)(db, name))

    @rule(worker=WORKERS, name=CUSTOM, there=st.booleans())
    def define_class(self, worker: int, name: str, there: bool) -> None:
        """Create or delete a class."""
        define = ensure_resource_class if there else delete_resource_class
        self.attempt(worker, lambda db: define(db, name))

    @rule(worker=WORKERS, old=CUSTOM, new=CUSTOM)
    def rename_class(self, worker: int, old: str, new: str) -> None:
        self.attempt(worker, lambda db: rename_resource_class(db, old, new))

    @rule(worker=WORKERS, provider=PROVIDERS)
    def take_traits(self, worker: int, provider: ProviderUUID) -> None:
        self.attempt(worker, lambda db: delete_provider_traits(db, provider))

    @rule(worker=WORKERS)
    def describe_everything(self, worker: int) -> None:
        """Render everything, so that the texts are cached."""
        snapshot = self.indexes[worker].snapshot()
        for _, block in snapshot.occupied():
            tree_texts(snapshot, block, np.arange(block.rows))

    @rule(worker=WORKERS, provider=PROVIDERS, traits=st.lists(st.sampled_from(TRAITS), unique=True))
    def set_traits(self, worker: int, provider: ProviderUUID, traits: list[str]) -> None:
        self.attempt(
            worker,
            lambda db: replace_provider_traits(
                db, provider, traits, get_provider(db, provider).generation
            ),
        )

    @rule(
        worker=WORKERS,
        provider=PROVIDERS,
        aggregates=st.lists(st.sampled_from(AGGREGATES), unique=True),
    )
    def set_aggregates(
        self, worker: int, provider: ProviderUUID, aggregates: list[AggregateUUID]
    ) -> None:
        self.attempt(worker, lambda db: replace_aggregates(db, provider, aggregates, UNSET))

    @rule(
        worker=WORKERS,
        consumer=CONSUMERS,
        held=st.dictionaries(
            PROVIDERS, st.dictionaries(st.sampled_from(CLASSES), st.integers(1, 4), min_size=1)
        ),
    )
    def claim(
        self,
        worker: int,
        consumer: ConsumerUUID,
        held: dict[ProviderUUID, dict[str, int]],
    ) -> None:
        self.attempt(
            worker, lambda db: replace_allocations(db, [written(consumer, held)], attempts=1)
        )

    @rule(worker=WORKERS, consumer=CONSUMERS)
    def release(self, worker: int, consumer: ConsumerUUID) -> None:
        self.attempt(worker, lambda db: delete_allocations(db, consumer))

    @rule(worker=WORKERS, source=PROVIDERS, home=PROVIDERS, consumer=CONSUMERS)
    def reshape(
        self, worker: int, source: ProviderUUID, home: ProviderUUID, consumer: ConsumerUUID
    ) -> None:
        def unit(db: Database) -> None:
            news = [
                ReshapedInventories(source, get_provider(db, source).generation, {}),
                ReshapedInventories(
                    home, get_provider(db, home).generation, {"VCPU": Inventory(total=8)}
                ),
            ]
            reshape(db, news, [written(consumer, {home: {"VCPU": 1}})])

        self.attempt(worker, unit)

    @rule(pick=st.randoms(use_true_random=False))
    def read_in_between(self, pick: random.Random) -> None:
        """Refresh one of the indexes, so that they are not always equally far behind."""
        pick.choice(self.indexes).snapshot()

    @invariant()
    def both_indexes_hold(self) -> None:
        for index in getattr(self, "indexes", []):
            assert checked(index) == []
            check_reads(index, self.workers[0])

    def attempt(self, worker: int, unit: Callable[[Database], object]) -> None:
        try:
            unit(self.workers[worker])
        except BerthError:
            return

    def teardown(self) -> None:
        for db in getattr(self, "workers", []):
            db.dispose()
        if hasattr(self, "directory"):
            self.directory.cleanup()


def written(consumer: ConsumerUUID, held: dict[ProviderUUID, dict[str, int]]) -> ConsumerWrite:
    """A write that does not check the consumer's generation."""
    return ConsumerWrite(consumer, held, "p", "u", generation=UNSET, consumer_type="INSTANCE")


def test_indexes_hold_through_random_histories(
    engine: str, fresh: Fresh, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each worker reads the current state after every step."""
    monkeypatch.setattr(TwoWorkers, "fresh", staticmethod(fresh), raising=False)
    examples = scaled(20 if engine == "sqlite" else 4)
    run_state_machine_as_test(
        TwoWorkers, settings=settings(max_examples=examples, stateful_step_count=25)
    )


def test_indexes_hold_with_every_portion_at_its_bound(
    engine: str, fresh: Fresh, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two values in a query, two trees in a block, three providers in a part."""
    monkeypatch.setattr(TwoWorkers, "fresh", staticmethod(fresh), raising=False)
    monkeypatch.setattr(TwoWorkers, "portions", Portions(in_list_max=2, part_providers=3))
    monkeypatch.setattr(TwoWorkers, "rows_max", 2)
    examples = scaled(15 if engine == "sqlite" else 2)
    run_state_machine_as_test(
        TwoWorkers, settings=settings(max_examples=examples, stateful_step_count=25)
    )
