# SPDX-License-Identifier: Apache-2.0
"""From the names on the wire to rows: providers, resource classes, traits.

Names that do not exist are missing from what is found; which error that is, the caller knows. Names
are compared letter by letter here, whatever the database's collation takes for the same.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import islice
from typing import Final, NamedTuple, TypeVar

from sqlalchemy import ColumnElement, Select, Table, bindparam, func, select

from berth.model.errors import ProviderNotFound
from berth.model.ids import (
    AggregateId,
    AggregateUUID,
    ClassId,
    Generation,
    ProviderId,
    ProviderUUID,
    TraitId,
    parse_uuid_lax,
)
from berth.model.standard import STANDARD_CLASS_IDS
from berth.store.tables import (
    placement_aggregates,
    resource_classes,
    resource_providers,
    traits,
)
from berth.store.transaction import Tx

T = TypeVar("T")

#: Values in one IN list: engines limit the parameters of a statement.
IN_LIST_MAX: Final = 500


class ProviderRow(NamedTuple):
    """What a write needs to know of a provider."""

    id: ProviderId
    uuid: ProviderUUID
    generation: Generation


_PROVIDER: Final = select(
    resource_providers.c.id, resource_providers.c.uuid, resource_providers.c.generation
)
_PROVIDER_BY_UUID: Final = _PROVIDER.where(resource_providers.c.uuid == bindparam("uuid"))
_PROVIDERS_BY_UUID: Final = _PROVIDER.where(
    resource_providers.c.uuid.in_(bindparam("uuids", expanding=True))
)


def _by_name(table: Table) -> Select[str, int]:
    return select(table.c.name, table.c.id).where(
        table.c.name.in_(bindparam("names", expanding=True))
    )


# PERF built once; building a statement takes longer than running it.
_CLASSES_BY_NAME: Final = _by_name(resource_classes)
_TRAITS_BY_NAME: Final = _by_name(traits)


_aggregate: Final = placement_aggregates.c
_AGGREGATES_BY_UUID: Final = select(_aggregate.uuid, _aggregate.id).where(
    _aggregate.uuid.in_(bindparam("uuids", expanding=True))
)


def _digits(uuid: ColumnElement[str]) -> ColumnElement[str]:
    digits = func.lower(uuid)
    for part in ("urn:uuid:", "{", "}", "-"):
        digits = func.replace(digits, part, "")
    return digits


_AGGREGATES_BY_DIGITS: Final = (
    select(_aggregate.uuid, _aggregate.id)
    .where(_digits(_aggregate.uuid).in_(bindparam("digits", expanding=True)))
    .order_by(_aggregate.id)
)


def chunks(values: Iterable[T]) -> Iterator[list[T]]:
    """The values in lists that fit into an IN."""
    pending = iter(values)
    while chunk := list(islice(pending, IN_LIST_MAX)):
        yield chunk


def get_provider_row(tx: Tx, uuid: ProviderUUID, *, to_delete: bool = False) -> ProviderRow:
    """One provider; `to_delete` only changes the words of the error.

    Raises:
        ProviderNotFound: no provider has this uuid.
    """
    for row in tx.rows(_PROVIDER_BY_UUID, {"uuid": uuid}):
        provider = ProviderRow(*row)
        if provider.uuid == uuid:
            return provider
    raise ProviderNotFound(uuid, to_delete=to_delete)


def providers_by_uuid(tx: Tx, uuids: Collection[ProviderUUID]) -> dict[ProviderUUID, ProviderRow]:
    """Those of some providers that exist."""
    return {
        row[1]: ProviderRow(*row)
        for chunk in chunks(uuids)
        for row in tx.rows(_PROVIDERS_BY_UUID, {"uuids": chunk})
    }


def class_ids(tx: Tx, names: Collection[str]) -> dict[str, ClassId]:
    """Those of some resource classes that exist. Standard ones always do, with the ids they have
    everywhere, and cost no query."""
    found = {name: STANDARD_CLASS_IDS[name] for name in names if name in STANDARD_CLASS_IDS}
    custom = [name for name in names if name not in found]
    found.update((name, ClassId(number)) for name, number in _ids(tx, _CLASSES_BY_NAME, custom))
    return found


def trait_ids(tx: Tx, names: Collection[str]) -> dict[str, TraitId]:
    """Those of some traits that exist."""
    return {name: TraitId(number) for name, number in _ids(tx, _TRAITS_BY_NAME, names)}


def aggregate_ids(tx: Tx, uuids: Collection[AggregateUUID]) -> dict[AggregateUUID, AggregateId]:
    """Those of some aggregates that exist.

    COMPAT spec/rest-api.md 1.9: the original stored them as they were sent, in any spelling. Those
    that are not found as they are usually spelled are looked for by their digits, which reads all
    aggregates.
    """
    found: dict[AggregateUUID, AggregateId] = {}
    for chunk in chunks(uuids):
        _add_aggregates(found, tx.rows(_AGGREGATES_BY_UUID, {"uuids": chunk}))
    for few in chunks(missing(uuids, found)):
        digits = [uuid.replace("-", "") for uuid in few]
        _add_aggregates(found, tx.rows(_AGGREGATES_BY_DIGITS, {"digits": digits}))
    return found


def _add_aggregates(
    found: dict[AggregateUUID, AggregateId], rows: Iterable[tuple[str, int]]
) -> None:
    for stored, number in rows:
        uuid = AggregateUUID(parse_uuid_lax(stored) or stored)
        if uuid == stored or uuid not in found:
            found[uuid] = AggregateId(number)


def missing(names: Iterable[str], known: Collection[str]) -> Sequence[str]:
    """The names that are not known, each once, in the order given."""
    return [name for name in dict.fromkeys(names) if name not in known]


def _ids(tx: Tx, statement: Select[str, int], names: Collection[str]) -> Iterator[tuple[str, int]]:
    for chunk in chunks(names):
        yield from tx.rows(statement, {"names": chunk})
