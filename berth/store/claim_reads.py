# SPDX-License-Identifier: Apache-2.0
"""Reads the facts that decide a claim, in one statement.

One statement sees one state of the database on every engine. That state may be outdated when the
claim is written, so correctness does not depend on it: the WHERE of each write repeats the checks
(`claims`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import zip_longest
from typing import Any, Final, NamedTuple

from msgspec import Struct, field
from msgspec.structs import replace
from sqlalchemy import (
    Column,
    ColumnElement,
    Executable,
    Select,
    Table,
    bindparam,
    func,
    literal_column,
    null,
    select,
    union_all,
)

from berth.model.consumer import ConsumerWrite
from berth.model.errors import UnknownClassInAllocation, UnknownProviderInAllocation
from berth.model.ids import ClassId, ConsumerUUID, Generation, ProviderId, ProviderUUID
from berth.model.inventory import Inventory
from berth.model.standard import STANDARD_CLASS_IDS
from berth.store.consumers import LEASE_STATE, NAME_ID, Owners, StoredConsumer, owner_names
from berth.store.engine.expressions import common_text
from berth.store.engine.tables import (
    allocations,
    berth_consumer_names,
    berth_usages,
    consumer_types,
    consumers,
    inventories,
    projects,
    resource_classes,
    resource_providers,
    same_inventory,
    users,
)
from berth.store.engine.transaction import Tx
from berth.store.engine.write_record import Holder, Holdings, WriteRecord
from berth.store.inventories import INVENTORY_COLUMNS, Key
from berth.store.lookups import ProviderRow, missing

_allocation = allocations.c
_consumer = consumers.c
_inv = inventories.c
_provider = resource_providers.c
_usage = berth_usages.c


class StoredAllocation(NamedTuple):
    """An allocation as read."""

    consumer: ConsumerUUID
    key: Key
    used: int


class Room(NamedTuple):
    """An inventory and its usage, with two generations.

    Attributes:
        generation: the provider's.
        usage_generation: the one in the usage's row; None in old data.
    """

    inventory: Inventory
    used: int
    generation: Generation
    usage_generation: Generation | None


class Generations(NamedTuple):
    """A provider's generation, and the newest generation of its usages. They differ if another
    program has changed the provider. None: no usage has one, or the provider has no inventory."""

    provider: Generation
    usages: Generation | None


class ClaimFacts(Struct):
    """The rows that concern a claim and its consumers."""

    #: The records of the claim's consumers.
    consumers: dict[ConsumerUUID, StoredConsumer] = field(default_factory=dict)
    #: Their allocations.
    allocations: list[StoredAllocation] = field(default_factory=list)
    #: The providers that the claim names.
    providers: dict[ProviderUUID, ProviderRow] = field(default_factory=dict)
    #: The generations of these, and of the providers on which the consumers have allocations.
    generations: dict[ProviderId, Generations] = field(default_factory=dict)
    #: The resource classes that the claim names.
    classes: dict[str, ClassId] = field(default_factory=dict)
    #: The projects, users and consumer types that it names.
    owners: Owners = field(default_factory=Owners)
    #: The names of the claim's consumers, by the ids of their rows; only if asked for.
    consumer_names: dict[int | None, str] = field(default_factory=dict)

    def of_new_consumers(self, providers: Collection[ProviderId]) -> ClaimFacts:
        """The facts for new consumers that claim from some providers."""
        generations = {place: self.generations[place] for place in providers}
        return replace(self, consumers={}, allocations=[], generations=generations)


def read_claim_facts(
    tx: Tx, writes: Sequence[ConsumerWrite], record: WriteRecord | None = None
) -> ClaimFacts:
    """The facts that decide a claim; names that do not exist are absent.

    Args:
        record: gets what the consumers have so far.

    Cost: one statement, unless a list of names is too long for one.
    """
    named_classes = _named_classes(writes)
    projects_, users_, types = owner_names(writes)
    custom = [name for name in named_classes if name not in STANDARD_CLASS_IDS]
    # A consumer that must be new has had no owner.
    with_holders = record is not None and any(write.generation is not None for write in writes)
    facts = _read(
        tx,
        _FACTS_WITH_HOLDERS if with_holders else _FACTS_WITH_CLASSES if custom else _FACTS,
        consumers=[write.uuid for write in writes],
        providers=_named_providers(writes),
        classes=custom,
        projects=sorted(projects_),
        users=sorted(users_),
        types=sorted(types),
    )
    # Standard classes always exist, with the same ids in every database.
    facts.classes.update(
        (name, STANDARD_CLASS_IDS[name]) for name in named_classes if name in STANDARD_CLASS_IDS
    )
    if record is not None:
        record.former = holdings(facts, {write.uuid for write in writes})
    return facts


def read_release_facts(
    tx: Tx, uuids: Collection[ConsumerUUID], *, with_holders: bool = False
) -> ClaimFacts:
    """The facts for deleting all allocations of some consumers.

    Args:
        with_holders: also read the names, projects and users that the consumers have so far.
    """
    statement = _RELEASE_FACTS_WITH_HOLDERS if with_holders else _RELEASE_FACTS
    return _read(tx, statement, consumers=list(uuids))


def read_rooms(tx: Tx, providers: Collection[ProviderId]) -> dict[Key, Room]:
    """The inventories of some providers, with their usages."""
    return {
        Key(provider, class_id): Room(Inventory(*fields), used, generation, usage_generation)
        for chunk in tx.chunks(sorted(providers))
        for provider, class_id, used, usage_generation, generation, *fields in tx.rows(
            _ROOMS, {"providers": chunk}
        )
    }


def check_provider_names(facts: ClaimFacts, writes: Iterable[ConsumerWrite]) -> None:
    """Refuse allocations from providers that do not exist.

    Raises:
        UnknownProviderInAllocation: for the first one.
    """
    for uuid in missing(_named_providers(writes), facts.providers):
        raise UnknownProviderInAllocation(ProviderUUID(uuid))


def check_class_names(facts: ClaimFacts, writes: Iterable[ConsumerWrite]) -> None:
    """Refuse allocations of resource classes that do not exist.

    Raises:
        UnknownClassInAllocation: for the first one.
    """
    named_classes = _named_classes(writes)
    for name in missing(named_classes, facts.classes):
        raise UnknownClassInAllocation(named_classes[name], name)


def _named_providers(writes: Iterable[ConsumerWrite]) -> list[ProviderUUID]:
    return list(dict.fromkeys(uuid for write in writes for uuid in write.allocations))


def _named_classes(writes: Iterable[ConsumerWrite]) -> dict[str, ConsumerUUID]:
    """Each resource class with the last consumer that claims it."""
    return {
        name: write.uuid
        for write in writes
        for amounts in write.allocations.values()
        for name in amounts
    }


# --- Statements ----------------------------------------------------------------------------------

_ROOMS: Final = (
    select(
        _inv.resource_provider_id,
        _inv.resource_class_id,
        _usage.used,
        _usage.generation,
        _provider.generation,
        *INVENTORY_COLUMNS,
    )
    .join(
        berth_usages,
        same_inventory(berth_usages, inventories),
    )
    .join(resource_providers, _provider.id == _inv.resource_provider_id)
    .where(_inv.resource_provider_id.in_(bindparam("providers", expanding=True)))
)

#: The first column of each row: its kind.
_PROVIDER, _CONSUMER, _ALLOCATION, _PROJECT, _USER, _TYPE, _CLASS, _CONSUMER_NAME = range(8)

#: Columns of the widest kind of row, after the first. The first part of a UNION determines the
#: types of the columns, so it must be of that kind.
_WIDTH: Final = 8


def _part(kind: int, text: ColumnElement[str], *numbers: ColumnElement[Any]) -> Select[Any]:
    filling = [null()] * (_WIDTH - 1 - len(numbers))
    return select(literal_column(str(kind)), common_text(text), *numbers, *filling)


def _named(kind: int, table: Table, column: Column[str], parameter: str) -> Select[Any]:
    return _part(kind, column, table.c.id).where(column.in_(bindparam(parameter, expanding=True)))


def _newest_generation_of(provider: ColumnElement[int]) -> ColumnElement[int]:
    return (
        select(func.max(_usage.generation))
        .where(_usage.resource_provider_id == provider)
        .scalar_subquery()
    )


_of_consumers: Final = (
    _part(
        _CONSUMER,
        _consumer.uuid,
        _consumer.id,
        _consumer.generation,
        _consumer.consumer_type_id,
        _consumer.project_id,
        _consumer.user_id,
        NAME_ID,
        LEASE_STATE,
    ).where(_consumer.uuid.in_(bindparam("consumers", expanding=True))),
    _part(
        _ALLOCATION,
        _allocation.consumer_id,
        _allocation.resource_provider_id,
        # PERF not a join: PostgreSQL keeps the plan that it made while the tables were small.
        select(_provider.generation)
        .where(_provider.id == _allocation.resource_provider_id)
        .scalar_subquery(),
        _newest_generation_of(_allocation.resource_provider_id),
        _allocation.resource_class_id,
        _allocation.used,
    ).where(_allocation.consumer_id.in_(bindparam("consumers", expanding=True))),
)
#: The projects, users and names of the consumers themselves.
_of_holders: Final = (
    *(
        _part(kind, table.c.external_id, table.c.id).where(
            table.c.id.in_(
                select(owned_by).where(_consumer.uuid.in_(bindparam("consumers", expanding=True)))
            )
        )
        for kind, table, owned_by in (
            (_PROJECT, projects, _consumer.project_id),
            (_USER, users, _consumer.user_id),
        )
    ),
    _part(_CONSUMER_NAME, berth_consumer_names.c.name, berth_consumer_names.c.id).where(
        berth_consumer_names.c.consumer_uuid.in_(bindparam("consumers", expanding=True))
    ),
)
_named_by_claim: Final = (
    _part(
        _PROVIDER,
        _provider.uuid,
        _provider.id,
        _provider.generation,
        _newest_generation_of(_provider.id),
    ).where(_provider.uuid.in_(bindparam("providers", expanding=True))),
    _named(_PROJECT, projects, projects.c.external_id, "projects"),
    _named(_USER, users, users.c.external_id, "users"),
    _named(_TYPE, consumer_types, consumer_types.c.name, "types"),
)
_RELEASE_FACTS: Final = union_all(*_of_consumers)
_RELEASE_FACTS_WITH_HOLDERS: Final = union_all(*_of_consumers, *_of_holders)
_FACTS: Final = union_all(*_of_consumers, *_named_by_claim)
_named_classes_of_claim: Final = _named(
    _CLASS, resource_classes, resource_classes.c.name, "classes"
)
_FACTS_WITH_CLASSES: Final = union_all(*_of_consumers, *_named_by_claim, _named_classes_of_claim)
_FACTS_WITH_HOLDERS: Final = union_all(
    *_of_consumers, *_named_by_claim, _named_classes_of_claim, *_of_holders
)


def _read(tx: Tx, statement: Executable, **lists: Sequence[str]) -> ClaimFacts:
    facts = ClaimFacts()
    ids: dict[int, dict[str, Any]] = {
        _PROJECT: facts.owners.projects,
        _USER: facts.owners.users,
        _TYPE: facts.owners.types,
        _CLASS: facts.classes,
    }
    for parameters in _in_parts(tx, lists):
        for kind, text, number, *values in tx.rows(statement, parameters):
            if kind in ids:
                ids[kind][text] = number
            elif kind == _CONSUMER:
                facts.consumers[text] = StoredConsumer(number, text, *values)
            elif kind == _PROVIDER:
                facts.providers[text] = ProviderRow(number, text, values[0])
                facts.generations[number] = Generations(values[0], values[1])
            elif kind == _CONSUMER_NAME:
                facts.consumer_names[number] = text
            else:
                generation, usage_generation, class_id, used, *_ = values
                facts.generations[number] = Generations(generation, usage_generation)
                facts.allocations.append(StoredAllocation(text, Key(number, class_id), used))
    return facts


def _in_parts(tx: Tx, lists: Mapping[str, Sequence[str]]) -> Iterable[dict[str, Sequence[str]]]:
    """The lists, split into chunks that fit into one statement."""
    if all(len(values) <= tx.in_list_max for values in lists.values()):
        return [dict(lists)]
    return (
        {name: part or [] for name, part in zip(lists, parts, strict=True)}
        for parts in zip_longest(*map(tx.chunks, lists.values()))
    )


# --- What a claim replaces ------------------------------------------------------------------------


def holdings(facts: ClaimFacts, consumers: Collection[ConsumerUUID]) -> Holdings:
    """What some consumers hold, for the record; the facts may be about others too."""
    projects = {number: text for text, number in facts.owners.projects.items()}
    users = {number: text for text, number in facts.owners.users.items()}
    return Holdings(
        [each for each in facts.allocations if each.consumer in consumers],
        {
            uuid: Holder(
                projects.get(stored.project_id),
                users.get(stored.user_id),
                facts.consumer_names.get(stored.name_id),
            )
            for uuid, stored in facts.consumers.items()
            if uuid in consumers
        },
    )
