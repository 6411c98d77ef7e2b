# SPDX-License-Identifier: Apache-2.0
"""Who follows the fleet has a true copy of it: the four guarantees of `GET /berth/v1/changes`.

Source: spec/beyond.md 6.2.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, rule, run_state_machine_as_test
from sqlalchemy import select

from berth.model.drain import DrainName, Effect
from berth.model.ids import AggregateUUID, ConsumerUUID, ProviderUUID
from berth.model.inventory import Inventory
from berth.model.provider_trees import WantedProvider, WantedTree
from berth.store.allocations import replace_allocations
from berth.store.drains import delete_drain, put_drain
from berth.store.engine.tables import berth_journal, resource_providers
from berth.store.labels import replace_labels
from berth.store.lease_sweep import sweep
from berth.store.leases import put_lease
from berth.store.lookups import providers_by_uuid
from berth.store.provider_trees import edit_tree
from tests.api.berth_v1.following import Counting, Follower
from tests.effort import scaled
from tests.fresh import Fresh
from tests.index.checking import checked
from tests.index.test_histories import (
    AGGREGATES,
    CONSUMERS,
    PROVIDERS,
    WORKERS,
    TwoWorkers,
    written,
)


class FollowedWorkers(TwoWorkers):
    """Two followers: one asks a random worker after each step, the other only now and then."""

    @initialize()
    def begin(self) -> None:
        super().begin()
        self.foreign = Counting()
        for db in self.workers:
            db.observer = self.foreign
        self.noted: Counter[str] = Counter()
        self.names_noted = 0
        self.seen = {(row.writer_id, row.seq, row.provider_id) for row in self.notes()}
        self.eager, self.lazy = (Follower.of(index) for index in self.indexes)

    @rule(worker=WORKERS)
    def ask_after_a_while(self, worker: int) -> None:
        """One event for each provider that has changed, with the number of commits."""
        self.lazy.follow(self.workers[1 - worker], self.indexes[worker])
        assert self.lazy.commits == self.noted
        assert self.lazy.names == self.names_noted

    @rule(
        worker=WORKERS,
        root=PROVIDERS,
        children=st.lists(PROVIDERS, unique=True, max_size=3),
        total=st.integers(1, 8),
        only=st.booleans(),
    )
    def make_tree(
        self,
        worker: int,
        root: ProviderUUID,
        children: list[ProviderUUID],
        total: int,
        only: bool,
    ) -> None:
        """Create or change a tree, or remove what is not named.

        Not both at once: the commit would have one note for a provider that is gone and one that
        got its id.
        """
        if only:
            if not self.existing(worker, [root]):
                return
            children = self.existing(worker, children)
        wanted = WantedTree(
            root,
            [
                WantedProvider(root, root, inventories={"VCPU": Inventory(total=total)}),
                *(WantedProvider(each, each, parent=root) for each in children if each != root),
            ],
            remove_missing=only,
        )
        self.attempt(worker, lambda db: edit_tree(db, wanted, expected=None, dry_run=False))

    @rule(
        worker=WORKERS,
        name=st.sampled_from([DrainName("d1"), DrainName("d2")]),
        providers=st.none() | st.lists(PROVIDERS, unique=True),
        effect=st.sampled_from(Effect),
    )
    def drain(
        self,
        worker: int,
        name: DrainName,
        providers: list[ProviderUUID] | None,
        effect: Effect,
    ) -> None:
        """Create, change or delete a drain."""
        if providers is None:
            self.attempt(worker, lambda db: delete_drain(db, name))
            return
        some = self.existing(worker, providers)
        self.attempt(
            worker,
            lambda db: put_drain(db, name, some, effect=effect, reason="", created_by="me"),
        )

    @rule(worker=WORKERS, consumer=CONSUMERS, provider=PROVIDERS)
    def expire(self, worker: int, consumer: ConsumerUUID, provider: ProviderUUID) -> None:
        """A claim with a lease that ends at once: what its consumer holds is given back."""
        claim = written(consumer, {provider: {"VCPU": 1}})
        self.attempt(1 - worker, lambda db: replace_allocations(db, [claim], attempts=1))
        self.attempt(worker, lambda db: put_lease(db, consumer, -1))
        self.attempt(worker, lambda db: list(sweep(db)))

    @rule(worker=WORKERS, aggregate=st.sampled_from(AGGREGATES), zone=st.sampled_from("ab"))
    def label(self, worker: int, aggregate: AggregateUUID, zone: str) -> None:
        """Label an aggregate."""
        self.attempt(worker, lambda db: replace_labels(db, aggregate, {"zone": zone}))

    def existing(self, worker: int, providers: list[ProviderUUID]) -> list[ProviderUUID]:
        """Those of some providers that there are."""
        with self.workers[worker].read() as tx:
            stored = providers_by_uuid(tx, providers)
        return [provider for provider in providers if provider in stored]

    @invariant()
    def both_indexes_hold(self) -> None:
        """Every commit is told, once, and the copy is the fleet."""
        if not hasattr(self, "eager"):
            return
        self.count_notes()
        worker = sum(self.noted.values()) % 2
        self.eager.follow(self.workers[worker], self.indexes[worker])
        assert checked(self.indexes[worker]) == []
        assert self.eager.commits == self.noted
        assert self.eager.names == self.names_noted
        assert not self.foreign.found, "a write of berth was taken for another program's"

    def count_notes(self) -> None:
        """Count what the journal says of this step, which is one commit at most, by UUID."""
        with self.workers[0].read() as tx:
            uuids = dict(
                tx.rows_once(select(resource_providers.c.id, resource_providers.c.uuid)),
            )
        for row in self.notes():
            key = (row.writer_id, row.seq, row.provider_id)
            if key in self.seen:
                continue
            self.seen.add(key)
            if row.provider_id == 0:
                self.names_noted += 1
            else:
                self.noted[row.gone_uuid or uuids[row.provider_id]] += 1

    def notes(self) -> list[Any]:
        """All rows of the journal."""
        with self.workers[0].engine.connect() as connection:
            return list(connection.execute(select(berth_journal)))


def test_followers_have_the_fleet_and_hear_of_every_commit_once(
    engine: str, fresh: Fresh, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    """Through random histories of writes by two workers, in which ids come again; in a cluster each
    has a node of its own."""
    monkeypatch.setattr(FollowedWorkers, "fresh", staticmethod(fresh), raising=False)
    if engine == "galera":
        nodes = request.getfixturevalue("galera")
        monkeypatch.setattr(FollowedWorkers, "urls", staticmethod(lambda url: nodes.urls(url)[:2]))
    examples = scaled(25 if engine == "sqlite" else 3)
    run_state_machine_as_test(
        FollowedWorkers,
        settings=settings(max_examples=examples, stateful_step_count=30),
    )
