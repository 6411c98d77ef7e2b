# SPDX-License-Identifier: Apache-2.0
"""Detects whether another program wrote to a database while berth was stopped.

A revision stands for one state of the fleet, and other programs do not count their commits in the
writers' clock. So a service that stops notes the clock together with a digest of the fleet. If the
clock is the same at the next start and the fleet is not, the revisions of before are of another
state, and the database needs a new identity. Source: spec/beyond.md 1.6.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from hashlib import sha256
from typing import Any, Final, NamedTuple

from sqlalchemy import BigInteger, ColumnElement, Select, Table, cast, func, inspect, select

from berth.store.engine.database import Database
from berth.store.engine.expressions import epoch_seconds
from berth.store.engine.tables import (
    berth_meta,
    berth_writer,
    inventories,
    placement_aggregates,
    resource_classes,
    resource_provider_aggregates,
    resource_provider_traits,
    resource_providers,
    traits,
)
from berth.store.engine.transaction import Tx
from berth.store.identity import read_fact, remove_fact

#: Where `berth_meta` has the state in which berth left the database.
LEFT_KEY: Final = "left"

_HEX_DIGITS: Final = 32

_writer, _rp = berth_writer.c, resource_providers.c
_having, _member = resource_provider_traits.c, resource_provider_aggregates.c


def _modified(table: Table) -> ColumnElement[int]:
    return epoch_seconds(func.coalesce(table.c.updated_at, table.c.created_at))


def _sums(table: Table, *numbers: ColumnElement[int]) -> Select[Any]:
    """The number of rows of a table, and sums over them."""
    sums: list[ColumnElement[Any]] = [
        func.coalesce(func.sum(cast(number, BigInteger)), 0) for number in numbers
    ]
    return select(func.count(), *sums).select_from(table)


#: What a program changes in some of these sums, whatever it does to the fleet: OpenStack Placement
#: dates what it creates and renames, and counts most other changes of a provider.
_FLEET: Final = (
    _sums(
        resource_providers,
        _rp.id,
        _rp.generation,
        _rp.parent_provider_id,
        _modified(resource_providers),
    ),
    _sums(inventories, inventories.c.id, inventories.c.total, _modified(inventories)),
    _sums(resource_provider_traits, _having.trait_id),
    _sums(
        resource_provider_aggregates,
        _member.aggregate_id,
        cast(_member.aggregate_id, BigInteger) * _member.resource_provider_id,
    ),
    _sums(placement_aggregates, placement_aggregates.c.id),
    _sums(traits, traits.c.id, _modified(traits)),
    _sums(resource_classes, resource_classes.c.id, _modified(resource_classes)),
)
_CLOCK: Final = select(_writer.id, _writer.seq).where(_writer.seq > 0).order_by(_writer.id)


class _State(NamedTuple):
    """Digests of the writers' clock and of the fleet."""

    clock: str
    fleet: str


def leave(db: Database) -> None:
    """Note the state in which berth leaves the database; another berth may still write to it.

    Cost: reads the providers, their inventories, traits and aggregates once.

    Raises:
        DatabaseUnavailable: the database cannot be written.
    """
    with db.read() as tx:
        state = _present(tx)
        if _left(tx) == state:
            return

    def unit(tx: Tx) -> None:
        remove_fact(tx, LEFT_KEY)
        # Another berth may leave at the same time.
        tx.insert_missing(berth_meta, [{"key": LEFT_KEY, "value": " ".join(state)}])

    db.write_unnoted(unit)


def was_written(db: Database) -> bool | None:
    """Whether another program has changed the fleet since berth left the database.

    Returns:
        None if it cannot be told: berth was killed, or has written since.
    """
    with db.read() as tx:
        if not inspect(tx.connection).has_table(berth_meta.name):
            return False  # no revision has been given out
        left, present = _left(tx), _present(tx)
    if left is None or left.clock != present.clock:
        return None
    return left.fleet != present.fleet


def _left(tx: Tx) -> _State | None:
    state = read_fact(tx, LEFT_KEY)
    return None if state is None else _State(*state.split())


def _present(tx: Tx) -> _State:
    return _State(
        _digest(tx.rows(_CLOCK, {})), _digest(row for query in _FLEET for row in tx.rows(query, {}))
    )


def _digest(rows: Iterable[Sequence[Any]]) -> str:
    # The sums of some engines are decimals.
    text = repr([[int(number) for number in row] for row in rows])
    return sha256(text.encode()).hexdigest()[:_HEX_DIGITS]
