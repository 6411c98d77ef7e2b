# SPDX-License-Identifier: Apache-2.0
"""Lists consumers with everything that they hold: of a host, a provider, a project, or all.

The lists are read in pages, in the order of the consumers' UUIDs, so that a list of any length
takes the memory of one page. Source: spec/beyond.md 6.4.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Iterator, Sequence
from typing import Any, Final
from uuid import UUID

from msgspec import Struct
from sqlalchemy import Select, bindparam, select, union

from berth.model.consumer import UNKNOWN_TYPE, Consumer, HeldOfProvider
from berth.model.ids import ConsumerUUID, ProviderId, ProviderUUID
from berth.model.shown import Lease, shown_time
from berth.store.consumers import consumer_named
from berth.store.engine.database import Database
from berth.store.engine.tables import (
    LEASE_COUNTS,
    allocations,
    berth_consumer_names,
    berth_leases,
    consumer_types,
    consumers,
    projects,
    resource_classes,
    resource_providers,
    users,
)
from berth.store.engine.transaction import Tx

_allocation = allocations.c
_consumer = consumers.c
_name = berth_consumer_names.c
_provider = resource_providers.c

#: Consumers in a page.
PAGE: Final = 500

#: What a UUID is made of, and what has a meaning in a pattern of SQL.
_DIGITS: Final = re.compile("[0-9a-f]{1,32}")
_SPECIAL: Final = re.compile("[/%_]")


class ConsumerFilters(Struct, frozen=True, kw_only=True):
    """Which consumers to list: those that satisfy every filter that is not None.

    `provider`: they hold something of it itself. `root`: they hold something of its tree.
    `search`: their name contains it, or their UUID begins with it, whatever the case.
    """

    provider: ProviderId | None = None
    root: ProviderId | None = None
    project_id: str | None = None
    user_id: str | None = None
    consumer_type: str | None = None
    name: str | None = None
    search: str | None = None

    def admit(self, consumer: Consumer) -> bool:
        """Whether a consumer satisfies the filters on what it is; exactly, in any collation."""
        return (
            self.project_id in (None, consumer.project_id)
            and self.user_id in (None, consumer.user_id)
            and self.consumer_type in (None, consumer.consumer_type)
            and self.name in (None, consumer.name)
            and (self.search is None or _is_found(self.search, consumer))
        )


def _is_found(text: str, consumer: Consumer) -> bool:
    first, last = _uuids_that_begin_with(text)
    # Of bytes, only ASCII letters have a lower case, as on every engine.
    is_in_name = text.encode().lower() in (consumer.name or "").encode().lower()
    return is_in_name or first <= consumer.uuid <= last


def _uuids_that_begin_with(text: str) -> tuple[str, str]:
    """The first and the last UUID that begins with a text; empty strings if none can.

    All have dashes in the same places, so that every collation orders them as Python does.
    """
    digits = text.lower().replace("-", "")
    if not _DIGITS.fullmatch(digits):
        return "", ""
    return str(UUID(digits.ljust(32, "0"))), str(UUID(digits.ljust(32, "f")))


_RECORDS: Final = (
    select(
        _consumer.uuid,
        _name.name,
        projects.c.external_id,
        users.c.external_id,
        consumer_types.c.name,
        _consumer.generation,
        _consumer.created_at,
        berth_leases.c.expires_at,
    )
    .select_from(consumers)
    .join(projects, projects.c.id == _consumer.project_id)
    .join(users, users.c.id == _consumer.user_id)
    .outerjoin(consumer_types, consumer_types.c.id == _consumer.consumer_type_id)
    .outerjoin(berth_consumer_names, _name.consumer_uuid == _consumer.uuid)
    .outerjoin(berth_leases, LEASE_COUNTS)
)
_NEXT: Final = (
    _RECORDS.where(_consumer.uuid > bindparam("after"))
    .order_by(_consumer.uuid)
    .limit(bindparam("count"))
)
_BY_UUID: Final = _RECORDS.where(_consumer.uuid == bindparam("uuid"))
_OF_PROJECT: Final = _NEXT.where(projects.c.external_id == bindparam("project"))
_OF_NAME: Final = _NEXT.where(_name.name == bindparam("name"))


def _searched(*, of_project: bool) -> Select[Any]:
    """The next consumers whose UUID is in a range, or whose name is like a pattern."""
    other = consumers.alias().c
    by_uuid = select(other.uuid).where(other.uuid.between(bindparam("first"), bindparam("last")))
    by_name = select(_name.consumer_uuid).where(_name.name.ilike(bindparam("part"), escape="/"))
    if of_project:
        project = select(projects.c.id).where(projects.c.external_id == bindparam("project"))
        by_uuid = by_uuid.where(other.project_id.in_(project))
        by_name = by_name.where(_name.project_id.in_(project))
    matches = union(by_uuid, by_name).subquery()
    # PERF the few of a page are selected first: otherwise SQLite reads the records of all.
    page = select(other.uuid).join(matches, matches.c.uuid == other.uuid)
    page = page.where(other.uuid > bindparam("after")).order_by(other.uuid)
    some = page.limit(bindparam("count")).subquery()
    return _NEXT.join(some, some.c.uuid == _consumer.uuid)


_SEARCHED: Final = _searched(of_project=False)
_SEARCHED_OF_PROJECT: Final = _searched(of_project=True)
_OF_PROVIDER: Final = _NEXT.where(
    _consumer.uuid.in_(
        select(_allocation.consumer_id).where(
            _allocation.resource_provider_id == bindparam("provider")
        )
    )
)
_IN_TREE: Final = _consumer.uuid.in_(
    select(_allocation.consumer_id)
    .join(resource_providers, _provider.id == _allocation.resource_provider_id)
    .where(_provider.root_provider_id == bindparam("root"))
)
_OF_TREE: Final = _NEXT.where(_IN_TREE)
_OF_PROVIDER_AND_TREE: Final = _OF_PROVIDER.where(_IN_TREE)

_ALLOCATIONS: Final = (
    select(
        _allocation.consumer_id,
        _provider.uuid,
        _provider.name,
        resource_classes.c.name,
        _allocation.used,
    )
    .join(resource_providers, _provider.id == _allocation.resource_provider_id)
    .join(resource_classes, resource_classes.c.id == _allocation.resource_class_id)
    .where(_allocation.consumer_id.in_(bindparam("consumers", expanding=True)))
    .order_by(_allocation.id)
)


def get_consumer(db: Database, uuid: ConsumerUUID) -> Consumer | None:
    """A consumer; None if it holds nothing or does not exist."""
    with db.read() as tx:
        return _consumer_of(tx, uuid)


def get_named_consumer(db: Database, project_id: str, name: str) -> Consumer | None:
    """The consumer of a project with a name; None if there is none."""
    with db.read() as tx:
        uuid = consumer_named(tx, project_id, name)
        return None if uuid is None else _consumer_of(tx, uuid)


def _consumer_of(tx: Tx, uuid: ConsumerUUID) -> Consumer | None:
    return next(_with_allocations(tx, tx.rows(_BY_UUID, {"uuid": uuid})), None)


def pages_of_consumers(
    db: Database, filters: ConsumerFilters, *, page: int = PAGE
) -> Generator[list[Consumer]]:
    """The consumers that satisfy the filters, as of one state of the database, page by page.

    A page may be empty. The transaction is open until the last page has been taken.
    """
    query, parameters = _narrowest(filters)
    with db.read() as tx:
        for rows in tx.pages(query, parameters, page):
            yield list(filter(filters.admit, _with_allocations(tx, rows)))


def _narrowest(filters: ConsumerFilters) -> tuple[Select[Any], dict[str, object]]:
    """The query that reads the fewest consumers of which the filters admit some."""
    if filters.provider is not None and filters.root is not None:
        return _OF_PROVIDER_AND_TREE, {"provider": filters.provider, "root": filters.root}
    if filters.provider is not None:
        return _OF_PROVIDER, {"provider": filters.provider}
    if filters.root is not None:
        return _OF_TREE, {"root": filters.root}
    if filters.search is not None:
        first, last = _uuids_that_begin_with(filters.search)
        part = _SPECIAL.sub(r"/\g<0>", filters.search)
        searched: dict[str, object] = {"first": first, "last": last, "part": f"%{part}%"}
        if filters.project_id is not None:
            return _SEARCHED_OF_PROJECT, {**searched, "project": filters.project_id}
        return _SEARCHED, searched
    if filters.name is not None:
        return _OF_NAME, {"name": filters.name}
    if filters.project_id is not None:
        return _OF_PROJECT, {"project": filters.project_id}
    return _NEXT, {}


def _with_allocations(tx: Tx, rows: Sequence[Any]) -> Iterator[Consumer]:
    """The consumers of some rows, without those that hold nothing."""
    holdings: dict[str, dict[ProviderUUID, HeldOfProvider]] = {}
    for chunk in tx.chunks([row[0] for row in rows]):
        for consumer, provider, name, resource_class, used in tx.rows(
            _ALLOCATIONS, {"consumers": chunk}
        ):
            of_consumer = holdings.setdefault(consumer, {})
            of_consumer.setdefault(provider, HeldOfProvider(name, {})).resources[resource_class] = (
                used
            )
    for uuid, name, project_id, user_id, consumer_type, generation, created_at, lease_until in rows:
        if uuid in holdings:
            yield Consumer(
                uuid,
                name,
                project_id,
                user_id,
                consumer_type or UNKNOWN_TYPE,
                generation,
                None if created_at is None else shown_time(created_at),
                holdings[uuid],
                Lease.until(lease_until),
            )
