# SPDX-License-Identifier: Apache-2.0
"""Sums of what is held: by provider, by project and user, by consumer type."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

from sqlalchemy import ColumnElement, FromClause, bindparam, distinct, func, select

from berth.model.consumer import UNKNOWN_TYPE
from berth.model.ids import Generation, ProviderUUID
from berth.store.engine.database import Database
from berth.store.engine.tables import (
    allocations,
    berth_usages,
    consumer_types,
    consumers,
    projects,
    resource_classes,
    users,
)
from berth.store.lookups import get_provider_row

#: The name that asks for all consumers together, whatever their type.
ALL_TYPES: Final = "all"


_OF_PROVIDER: Final = (
    select(resource_classes.c.name, berth_usages.c.used)
    .join(resource_classes, resource_classes.c.id == berth_usages.c.resource_class_id)
    .where(berth_usages.c.resource_provider_id == bindparam("provider"))
    .order_by(berth_usages.c.resource_class_id)
)


@dataclass(frozen=True, slots=True)
class ProviderUsages:
    """What is used of each inventory of a provider, zeroes included."""

    generation: Generation
    usages: dict[str, int]


@dataclass(frozen=True, slots=True)
class TypeUsages:
    """What consumers of one type hold, and how many they are."""

    resources: dict[str, int]
    consumer_count: int


def provider_usages(db: Database, uuid: ProviderUUID) -> ProviderUsages:
    """What is used of a provider, by resource class. Costs the same for any number of consumers.

    Raises:
        ProviderNotFound: no provider has this uuid.
    """
    with db.read() as tx:
        provider = get_provider_row(tx, uuid)
        rows = tx.rows(_OF_PROVIDER, {"provider": provider.id})
        return ProviderUsages(provider.generation, dict(rows))


def project_usages(db: Database, project_id: str, user_id: str | None) -> dict[str, int]:
    """What the consumers of a project hold, or only those of one of its users, by class."""
    statement = (
        select(resource_classes.c.name, func.sum(allocations.c.used))
        .select_from(_held())
        .where(*_owned(project_id, user_id))
        .group_by(resource_classes.c.name)
    )
    with db.read() as tx:
        return {name: int(used) for name, used in tx.connection.execute(statement)}


def project_usages_by_type(
    db: Database, project_id: str, user_id: str | None, consumer_type: str | None
) -> dict[str, TypeUsages]:
    """As `project_usages`, apart for each consumer type, those without one as `unknown`.

    `consumer_type` asks for one entry only: that type's, or `unknown`, or `all` together. Types
    of which nobody holds anything have no entry.
    """
    type_name, class_name = consumer_types.c.name, resource_classes.c.name
    conditions = [*_owned(project_id, user_id), *_of_type(consumer_type)]
    counts = (
        select(type_name, func.count(distinct(consumers.c.uuid)))
        .select_from(_held())
        .where(*conditions)
        .group_by(type_name)
    )
    amounts = (
        select(type_name, class_name, func.sum(allocations.c.used))
        .select_from(_held())
        .where(*conditions)
        .group_by(type_name, class_name)
    )
    with db.read() as tx:
        found = {
            name or UNKNOWN_TYPE: TypeUsages({}, count)
            for name, count in tx.connection.execute(counts)
        }
        for name, resource_class, used in tx.connection.execute(amounts):
            found[name or UNKNOWN_TYPE].resources[resource_class] = int(used)
    return _together(found.values()) if consumer_type == ALL_TYPES else found


def _held() -> FromClause:
    """Allocations with all that is known of their consumers."""
    return (
        allocations.join(consumers, consumers.c.uuid == allocations.c.consumer_id)
        .join(projects, projects.c.id == consumers.c.project_id)
        .join(users, users.c.id == consumers.c.user_id)
        .join(resource_classes, resource_classes.c.id == allocations.c.resource_class_id)
        .outerjoin(consumer_types, consumer_types.c.id == consumers.c.consumer_type_id)
    )


def _owned(project_id: str, user_id: str | None) -> list[ColumnElement[bool]]:
    of_project = projects.c.external_id == project_id
    return [of_project] if user_id is None else [of_project, users.c.external_id == user_id]


def _of_type(consumer_type: str | None) -> list[ColumnElement[bool]]:
    if consumer_type in (None, ALL_TYPES):
        return []
    if consumer_type == UNKNOWN_TYPE:
        return [consumer_types.c.id.is_(None)]
    return [consumer_types.c.name == consumer_type]


def _together(usages: Collection[TypeUsages]) -> dict[str, TypeUsages]:
    """One entry over all types: a consumer has only one, so even the counts add up."""
    if not usages:
        return {}
    resources: Counter[str] = Counter()
    for usage in usages:
        resources.update(usage.resources)
    return {ALL_TYPES: TypeUsages(dict(resources), sum(usage.consumer_count for usage in usages))}
