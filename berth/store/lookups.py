# SPDX-License-Identifier: Apache-2.0
"""Finds rows by the names in a request: providers, resource classes, traits.

Names that do not exist are absent from the result; the caller raises the error. Names are compared
exactly, whatever the database's collation treats as equal.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from datetime import datetime
from typing import Final, NamedTuple

from sqlalchemy import Select, Table, bindparam, select

from berth.model.errors import ProviderNotFound
from berth.model.ids import ClassId, Generation, ProviderId, ProviderUUID, TraitId
from berth.model.standard import STANDARD_CLASS_IDS
from berth.store.engine.tables import resource_classes, resource_providers, traits
from berth.store.engine.transaction import Tx


class NameList(NamedTuple):
    """Some names, and when the newest of them was created or changed; None if there are none."""

    names: list[str]
    last_modified: datetime | None


def newest(times: Iterable[datetime | None]) -> datetime | None:
    """The newest of some times, of which OpenStack Placement may have left some out."""
    return max((time for time in times if time is not None), default=None)


class ProviderRow(NamedTuple):
    """The columns of a provider that a write needs."""

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


def get_provider_row(tx: Tx, uuid: ProviderUUID, *, to_delete: bool = False) -> ProviderRow:
    """One provider; `to_delete` only changes the error message.

    Raises:
        ProviderNotFound: no provider has this uuid.
    """
    for row in tx.rows(_PROVIDER_BY_UUID, {"uuid": uuid}):
        provider = ProviderRow(*row)
        if provider.uuid == uuid:
            return provider
    raise ProviderNotFound(uuid, to_delete=to_delete)


def providers_by_uuid(tx: Tx, uuids: Collection[ProviderUUID]) -> dict[ProviderUUID, ProviderRow]:
    """Those of the providers that exist, by uuid."""
    return {
        row[1]: ProviderRow(*row)
        for chunk in tx.chunks(uuids)
        for row in tx.rows(_PROVIDERS_BY_UUID, {"uuids": chunk})
    }


def class_ids(tx: Tx, names: Collection[str]) -> dict[str, ClassId]:
    """The ids of those of the resource classes that exist. Standard classes always exist, with the
    same ids in every database, and cost no query."""
    ids = {name: STANDARD_CLASS_IDS[name] for name in names if name in STANDARD_CLASS_IDS}
    custom = [name for name in names if name not in ids]
    ids.update((name, ClassId(number)) for name, number in _ids(tx, _CLASSES_BY_NAME, custom))
    return ids


def trait_ids(tx: Tx, names: Collection[str]) -> dict[str, TraitId]:
    """The ids of those of the traits that exist."""
    return {name: TraitId(number) for name, number in _ids(tx, _TRAITS_BY_NAME, names)}


def missing(names: Iterable[str], existing: Collection[str]) -> Sequence[str]:
    """The names that are not known, each once, in the order given."""
    return [name for name in dict.fromkeys(names) if name not in existing]


def _ids(tx: Tx, statement: Select[str, int], names: Collection[str]) -> Iterator[tuple[str, int]]:
    for chunk in tx.chunks(names):
        yield from tx.rows(statement, {"names": chunk})
