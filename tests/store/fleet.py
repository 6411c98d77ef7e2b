# SPDX-License-Identifier: Apache-2.0
"""Shorthands for the store's tests: providers and consumers by number, claims in one line."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from uuid import UUID

from berth.model.consumer import ConsumerWrite
from berth.model.ids import AggregateUUID, ConsumerUUID, Generation, ProviderUUID
from berth.model.inventory import Inventory
from berth.model.shown import UNSET, Sometimes
from berth.store.allocations import ProviderAllocations, provider_allocations, replace_allocations
from berth.store.engine import journal
from berth.store.engine.database import Database
from berth.store.inventories import replace_inventories
from berth.store.providers import create_provider, get_provider, update_provider
from tests.sql_reads import provider_usages


def provider(number: int) -> ProviderUUID:
    """The uuid of a provider."""
    return ProviderUUID(str(UUID(int=number)))


def consumer(number: int) -> ConsumerUUID:
    """The uuid of a consumer."""
    return ConsumerUUID(str(UUID(int=10_000 + number)))


def aggregate(number: int) -> AggregateUUID:
    """The uuid of an aggregate."""
    return AggregateUUID(str(UUID(int=20_000 + number)))


def rewrites_guards(db: Database) -> bool:
    """Whether a row that only guards another changes, so that the parent of a new child is told."""
    return db.engine_name in ("mysql", "mariadb")


def add_provider(
    db: Database, number: int, *, parent: int | None = None, **stock: int | Inventory
) -> ProviderUUID:
    """Create a provider `p<number>`; with inventories such as `VCPU=8` it is at generation 1."""
    uuid = provider(number)
    parent_uuid = None if parent is None else provider(parent)
    create_provider(db, uuid=uuid, name=f"p{number}", parent_uuid=parent_uuid)
    if stock:
        restock(db, number, **stock)
    return uuid


def restock(db: Database, number: int, **stock: int | Inventory) -> Generation:
    """Replace a provider's inventories, whatever its generation."""
    wanted = {
        name: value if isinstance(value, Inventory) else Inventory(value)
        for name, value in stock.items()
    }
    return replace_inventories(db, provider(number), generation(db, number), wanted)


def generation(db: Database, number: int) -> Generation:
    """A provider's generation."""
    return get_provider(db, provider(number)).generation


def move(db: Database, number: int, parent: int | None) -> None:
    """Give a provider another parent, or none."""
    above = None if parent is None else provider(parent)
    update_provider(db, provider(number), name=f"p{number}", parent_uuid=above, may_reparent=True)


def used(db: Database, *numbers: int) -> list[int]:
    """The VCPU in use of some providers."""
    return [provider_usages(db, provider(number)).usages["VCPU"] for number in numbers]


def holding(
    number: int,
    allocations: Mapping[int, Mapping[str, int]],
    *,
    seen: Sometimes[int | None] = UNSET,
    consumer_type: Sometimes[str | None] = UNSET,
    project: str = "project",
    user: str = "user",
    name: str | None = None,
    lease_until: datetime | None = None,
) -> ConsumerWrite:
    """A wanted consumer: `holding(1, {7: {"VCPU": 2}})` allocates two VCPU of provider 7."""
    return ConsumerWrite(
        uuid=consumer(number),
        allocations={provider(place): amounts for place, amounts in allocations.items()},
        project_id=project,
        user_id=user,
        generation=None if seen is None else seen if seen is UNSET else Generation(seen),
        consumer_type=consumer_type,
        name=name,
        lease_until=lease_until,
    )


def claim(db: Database, *writes: ConsumerWrite, attempts: int = 10) -> None:
    """Replace the allocations of some consumers."""
    replace_allocations(db, writes, attempts=attempts)


def held(db: Database, number: int) -> dict[str, dict[str, int]]:
    """The allocations on a provider, by consumer."""
    allocations_read: ProviderAllocations = provider_allocations(db, provider(number))
    return {uuid: amounts for uuid, (_, amounts) in allocations_read.consumers.items()}


def trim_journal(db: Database, older_than: datetime) -> int:
    """Delete journal rows older than a time; return how many."""
    return db.write(lambda tx: journal.trim(tx, older_than))
