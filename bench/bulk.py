# SPDX-License-Identifier: Apache-2.0
"""A fleet written straight into an SQLite database, in seconds where the API would take hours.

The rows are those that `loading` leaves behind, generations included: tests/bench/test_bulk.py
compares all answers. The tables are berth's own definitions, and the schema is made as always.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import closing
from datetime import UTC, datetime
from itertools import count, islice
from pathlib import Path
from typing import Any, Final, TypeVar

from sqlalchemy import Table, select
from sqlalchemy.engine.interfaces import DBAPIConnection

from bench.fleet import Fleet, Holding, Provider
from berth.store import schema
from berth.store.database import Database, Tx, open_database
from berth.store.tables import (
    allocations,
    berth_usages,
    consumer_types,
    consumers,
    inventories,
    placement_aggregates,
    projects,
    resource_classes,
    resource_provider_aggregates,
    resource_provider_traits,
    resource_providers,
    traits,
    users,
)

_USER: Final = "bench"
_CONSUMER_TYPE: Final = "INSTANCE"
_BATCH_SIZE: Final = 20_000

#: What the API fills in where an inventory does not say.
_UNITS_MAX: Final = 2_147_483_647

Row = tuple[Any, ...]
T = TypeVar("T")


def write_fleet(path: Path, fleet: Fleet) -> None:
    """Make a new database at `path` that holds a fleet.

    Cost: some 10 microseconds a row; about 30 s for a million hosts, 3 s for a million allocations.
    """
    assert not path.exists(), "rows are numbered from 1 on"
    db = open_database(f"sqlite:///{path}")
    try:
        schema.upgrade(db)
        schema.sync_standard_names(db)
        with closing(db.engine.raw_connection()) as connection:
            _Writer(db, connection.dbapi_connection).write(fleet)
    finally:
        db.dispose()


class _Writer:
    """Numbers the rows of one fleet and writes them."""

    def __init__(self, db: Database, connection: DBAPIConnection | None) -> None:
        assert connection is not None
        self._connection = connection
        with db.read() as tx:
            self._class_ids = _ids_by_name(tx, resource_classes)
            self._trait_ids = _ids_by_name(tx, traits)
        self._now = datetime.now(UTC).strftime("%Y-%m-%d %H:%M:%S.%f")
        self._provider_ids: dict[str, int] = {}
        self._root_ids: dict[str, int] = {}
        self._aggregate_ids: dict[str, int] = {}
        self._project_ids: dict[str, int] = {}
        #: (provider uuid, class) -> the sum of what is held.
        self._used: Counter[tuple[str, str]] = Counter()
        #: provider uuid -> claims that named it.
        self._claims: Counter[str] = Counter()
        self._inventory_ids = count(1)
        self._consumer_ids = count(1)
        self._allocation_ids = count(1)

    def write(self, fleet: Fleet) -> None:
        cursor = self._connection.cursor()
        # Nobody else has seen this database yet; a crash means to begin again.
        cursor.execute("PRAGMA synchronous = OFF")
        cursor.execute("PRAGMA cache_size = -500000")
        cursor.execute("BEGIN")
        for holding in fleet.holdings():
            self._count(holding)
        for some in _batches(fleet.providers()):
            for provider in some:
                self._number(provider)
            self._insert(resource_providers, self._provider_rows(some))
            self._insert(inventories, self._inventory_rows(some))
            self._insert(berth_usages, self._usage_rows(some))
            self._insert(resource_provider_aggregates, self._membership_rows(some))
            self._insert(resource_provider_traits, self._trait_rows(some))
        self._insert(placement_aggregates, self._named_rows(self._aggregate_ids))
        self._insert(projects, self._named_rows(self._project_ids))
        if self._project_ids:
            self._insert(users, self._named_rows({_USER: 1}))
            self._insert(consumer_types, self._named_rows({_CONSUMER_TYPE: 1}))
        for holdings in _batches(fleet.holdings()):
            self._insert(consumers, self._consumer_rows(holdings))
            self._insert(allocations, self._allocation_rows(holdings))
        cursor.execute("COMMIT")

    def _count(self, holding: Holding) -> None:
        self._project_ids.setdefault(holding.project, len(self._project_ids) + 1)
        for provider, amounts in holding.allocations.items():
            self._claims[provider] += 1
            for name, amount in amounts.items():
                self._used[provider, name] += amount

    def _number(self, provider: Provider) -> None:
        number = len(self._provider_ids) + 1
        self._provider_ids[provider.uuid] = number
        self._root_ids[provider.uuid] = (
            number if provider.parent is None else self._root_ids[provider.parent]
        )
        for aggregate in provider.aggregates:
            self._aggregate_ids.setdefault(aggregate, len(self._aggregate_ids) + 1)

    def _insert(self, table: Table, rows: Iterator[Row]) -> None:
        """Insert rows that have a value for every column of the table, in order."""
        places = ", ".join("?" for _ in table.columns)
        names = ", ".join(column.name for column in table.columns)
        self._connection.cursor().executemany(
            f"INSERT INTO {table.name} ({names}) VALUES ({places})", list(rows)
        )

    def _provider_rows(self, providers: Iterable[Provider]) -> Iterator[Row]:
        for one in providers:
            # Each part that is put counts up, and so does each claim.
            generation = (
                bool(one.inventories)
                + bool(one.aggregates)
                + bool(one.traits)
                + self._claims[one.uuid]
            )
            parent = None if one.parent is None else self._provider_ids[one.parent]
            ids = self._provider_ids[one.uuid], self._root_ids[one.uuid]
            yield self._now, None, ids[0], one.uuid, one.name, generation, ids[1], parent

    def _inventory_rows(self, providers: Iterable[Provider]) -> Iterator[Row]:
        for one in providers:
            for name, fields in one.inventories.items():
                yield (
                    *(self._now, None, next(self._inventory_ids)),
                    *(self._provider_ids[one.uuid], self._class_ids[name]),
                    *(fields["total"], fields.get("reserved", 0), fields.get("min_unit", 1)),
                    *(fields.get("max_unit", _UNITS_MAX), fields.get("step_size", 1)),
                    fields.get("allocation_ratio", 1.0),
                )

    def _usage_rows(self, providers: Iterable[Provider]) -> Iterator[Row]:
        for one in providers:
            for name in one.inventories:
                used = self._used[one.uuid, name]
                yield self._provider_ids[one.uuid], self._class_ids[name], used

    def _membership_rows(self, providers: Iterable[Provider]) -> Iterator[Row]:
        for one in providers:
            for aggregate in one.aggregates:
                ids = self._provider_ids[one.uuid], self._aggregate_ids[aggregate]
                yield self._now, None, *ids

    def _trait_rows(self, providers: Iterable[Provider]) -> Iterator[Row]:
        for one in providers:
            for trait in one.traits:
                yield self._now, None, self._trait_ids[trait], self._provider_ids[one.uuid]

    def _named_rows(self, ids: dict[str, int]) -> Iterator[Row]:
        return ((self._now, None, number, name) for name, number in ids.items())

    def _consumer_rows(self, holdings: Iterable[Holding]) -> Iterator[Row]:
        for one in holdings:
            ids = next(self._consumer_ids), one.consumer, self._project_ids[one.project]
            # At generation 1, as after one claim, and of the only user and consumer type.
            yield self._now, None, *ids, 1, 1, 1

    def _allocation_rows(self, holdings: Iterable[Holding]) -> Iterator[Row]:
        for one in holdings:
            for provider, amounts in one.allocations.items():
                for name, used in amounts.items():
                    ids = self._provider_ids[provider], one.consumer, self._class_ids[name]
                    yield self._now, None, next(self._allocation_ids), *ids, used


def _batches(things: Iterator[T]) -> Iterator[list[T]]:
    while some := list(islice(things, _BATCH_SIZE)):
        yield some


def _ids_by_name(tx: Tx, table: Table) -> dict[str, int]:
    rows = tx.connection.execute(select(table.c.name, table.c.id))
    return {row.name: row.id for row in rows}
