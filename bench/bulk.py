# SPDX-License-Identifier: Apache-2.0
"""Writes a fleet directly into a database, in seconds where the API would take hours.

The rows are those that `loading` creates through the API, including generations:
tests/bench/test_bulk.py compares all responses. The tables are berth's definitions, and the schema
is created as usual. OpenStack Placement's tables are the same without berth's own, and are filled
in the same way.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from itertools import count, islice
from typing import Final, TypeVar

from sqlalchemy import inspect, select

from bench.fleet import Fleet, Holding, Provider
from bench.rows import Row, Rows, engine_of, rows_into
from berth.store.engine.opening import open_database
from berth.store.engine.tables import (
    allocations,
    berth_project_usages,
    berth_usages,
    consumer_types,
    consumers,
    inventories,
    metadata,
    placement_aggregates,
    projects,
    resource_classes,
    resource_provider_aggregates,
    resource_provider_traits,
    resource_providers,
    traits,
    users,
)
from berth.store.usages import fill_project_usages
from berth.upkeep import schema

_USER: Final = "bench"
_CONSUMER_TYPE: Final = "INSTANCE"
_BATCH_SIZE: Final = 20_000

#: The API's default for max_unit.
_UNITS_MAX: Final = 2_147_483_647

T = TypeVar("T")


def write_fleet(url: str, fleet: Fleet) -> None:
    """Create berth's schema in an empty database, and fill it with a fleet.

    Cost: as `fill`.
    """
    db = open_database(url)
    try:
        schema.upgrade(db)
        schema.sync_standard_names(db)
    finally:
        db.dispose()
    fill(url, fleet)


def fill(url: str, fleet: Fleet) -> None:
    """Write a fleet into a database that has only the schema and the standard names.

    Cost: some 10 microseconds a row, 30 on MariaDB; on SQLite about 30 s for a million hosts, 3 s
    for a million allocations.
    """
    engine = engine_of(url)
    with engine.connect() as connection:
        ids = [
            {row.name: row.id for row in connection.execute(select(table.c.name, table.c.id))}
            for table in (resource_classes, traits)
        ]
    with rows_into(engine) as rows:
        _Writer(rows, *ids).write(fleet)
    counts_projects = inspect(engine).has_table(berth_project_usages.name)
    engine.dispose()
    if counts_projects:
        db = open_database(url)
        fill_project_usages(db)
        db.dispose()


class _Writer:
    """Assigns ids to the rows of a fleet and writes them."""

    def __init__(self, rows: Rows, class_ids: dict[str, int], trait_ids: dict[str, int]) -> None:
        self._rows = rows
        self._class_ids = class_ids
        self._trait_ids = trait_ids
        self._now = datetime.now(UTC).strftime("%Y-%m-%d %H:%M:%S.%f")
        self._provider_ids: dict[str, int] = {}
        self._root_ids: dict[str, int] = {}
        self._aggregate_ids: dict[str, int] = {}
        self._project_ids: dict[str, int] = {}
        #: (provider uuid, class) -> the sum of its allocations.
        self._used: Counter[tuple[str, str]] = Counter()
        #: provider uuid -> claims that named it.
        self._claims: Counter[str] = Counter()
        self._inventory_ids = count(1)
        self._consumer_ids = count(1)
        self._allocation_ids = count(1)

    def write(self, fleet: Fleet) -> None:
        for holding in fleet.holdings():
            self._count(holding)
        for some in _batches(fleet.providers()):
            for provider in some:
                self._number(provider)
            self._rows.insert(resource_providers, self._provider_rows(some))
            self._rows.insert(inventories, self._inventory_rows(some))
            self._rows.insert(berth_usages, self._usage_rows(some))
            self._rows.insert(resource_provider_aggregates, self._membership_rows(some))
            self._rows.insert(resource_provider_traits, self._trait_rows(some))
        self._rows.insert(placement_aggregates, self._named_rows(self._aggregate_ids))
        self._rows.insert(projects, self._named_rows(self._project_ids))
        if self._project_ids:
            self._rows.insert(users, self._named_rows({_USER: 1}))
            self._rows.insert(consumer_types, self._named_rows({_CONSUMER_TYPE: 1}))
        for holdings in _batches(fleet.holdings()):
            self._rows.insert(consumers, self._consumer_rows(holdings))
            self._rows.insert(allocations, self._allocation_rows(holdings))
        for table in metadata.tables.values():
            self._rows.finish(table)

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

    def _provider_rows(self, providers: Iterable[Provider]) -> Iterator[Row]:
        for provider in providers:
            generation = self._generation_of(provider)
            parent = None if provider.parent is None else self._provider_ids[provider.parent]
            ids = self._provider_ids[provider.uuid], self._root_ids[provider.uuid]
            yield self._now, None, ids[0], provider.uuid, provider.name, generation, ids[1], parent

    def _generation_of(self, provider: Provider) -> int:
        """Each part that a client writes increments the generation, and so does each claim."""
        parts = bool(provider.inventories) + bool(provider.aggregates) + bool(provider.traits)
        return parts + self._claims[provider.uuid]

    def _inventory_rows(self, providers: Iterable[Provider]) -> Iterator[Row]:
        for provider in providers:
            for name, fields in provider.inventories.items():
                yield (
                    *(self._now, None, next(self._inventory_ids)),
                    *(self._provider_ids[provider.uuid], self._class_ids[name]),
                    *(fields["total"], fields.get("reserved", 0), fields.get("min_unit", 1)),
                    *(fields.get("max_unit", _UNITS_MAX), fields.get("step_size", 1)),
                    fields.get("allocation_ratio", 1.0),
                )

    def _usage_rows(self, providers: Iterable[Provider]) -> Iterator[Row]:
        for provider in providers:
            for name in provider.inventories:
                used = self._used[provider.uuid, name]
                ids = self._provider_ids[provider.uuid], self._class_ids[name]
                yield *ids, used, self._generation_of(provider)

    def _membership_rows(self, providers: Iterable[Provider]) -> Iterator[Row]:
        for provider in providers:
            for aggregate in provider.aggregates:
                ids = self._provider_ids[provider.uuid], self._aggregate_ids[aggregate]
                yield self._now, None, *ids

    def _trait_rows(self, providers: Iterable[Provider]) -> Iterator[Row]:
        for provider in providers:
            for trait in provider.traits:
                yield self._now, None, self._trait_ids[trait], self._provider_ids[provider.uuid]

    def _named_rows(self, ids: dict[str, int]) -> Iterator[Row]:
        return ((self._now, None, number, name) for name, number in ids.items())

    def _consumer_rows(self, holdings: Iterable[Holding]) -> Iterator[Row]:
        for holding in holdings:
            ids = next(self._consumer_ids), holding.consumer, self._project_ids[holding.project]
            # At generation 1, as after one claim, and of the only user and consumer type.
            yield self._now, None, *ids, 1, 1, 1

    def _allocation_rows(self, holdings: Iterable[Holding]) -> Iterator[Row]:
        for holding in holdings:
            for provider, amounts in holding.allocations.items():
                for name, used in amounts.items():
                    ids = self._provider_ids[provider], holding.consumer, self._class_ids[name]
                    yield self._now, None, next(self._allocation_ids), *ids, used


def _batches(things: Iterator[T]) -> Iterator[list[T]]:
    while some := list(islice(things, _BATCH_SIZE)):
        yield some
