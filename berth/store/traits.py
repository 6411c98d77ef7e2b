# SPDX-License-Identifier: Apache-2.0
"""Traits: their definitions, and the traits of each provider."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Final

from msgspec import Struct
from sqlalchemy import bindparam, delete, exists, func, select
from sqlalchemy.exc import IntegrityError

from berth.model.errors import (
    CannotDeleteStandardTrait,
    LostRace,
    TraitInUse,
    TraitNotFound,
    UnknownTraits,
)
from berth.model.ids import Generation, ProviderId, ProviderUUID, TraitId
from berth.model.names import CUSTOM_PREFIX
from berth.store.engine.database import Database
from berth.store.engine.prepared import insert_of
from berth.store.engine.tables import resource_provider_traits, traits
from berth.store.engine.transaction import Tx, unless_taken
from berth.store.generations import bump_generation, check_seen
from berth.store.lookups import NameList, get_provider_row, missing, newest, trait_ids

_trait = traits.c
_having = resource_provider_traits.c


_RECORD: Final = select(_trait.name, _trait.created_at, _trait.updated_at).where(
    _trait.name == bindparam("name")
)
_TRAITS_OF_PROVIDER: Final = (
    select(_trait.name, func.coalesce(_trait.updated_at, _trait.created_at))
    .join(resource_provider_traits, _having.trait_id == _trait.id)
    .where(_having.resource_provider_id == bindparam("provider"))
    .order_by(_trait.id)
)
_IDS_OF_PROVIDER: Final = select(_having.trait_id).where(
    _having.resource_provider_id == bindparam("provider")
)
_GIVE: Final = insert_of(resource_provider_traits, "resource_provider_id", "trait_id", "created_at")
_TAKE: Final = delete(resource_provider_traits).where(
    _having.resource_provider_id == bindparam("provider"),
    _having.trait_id.in_(bindparam("traits", expanding=True)),
)


class TraitRecord(Struct, frozen=True):
    """A trait's definition."""

    name: str
    created_at: datetime | None
    updated_at: datetime | None


class ProviderTraits(Struct, frozen=True):
    """A provider's traits, and when the newest of them was created; None if it has none."""

    generation: Generation
    names: list[str]
    last_modified: datetime | None


_DELETE_UNUSED: Final = delete(traits).where(
    _trait.id == bindparam("number"), ~exists().where(_having.trait_id == bindparam("number"))
)
_IS_USED: Final = select(_having.trait_id).where(_having.trait_id == bindparam("number")).limit(1)


def list_traits(
    db: Database, *, names: Sequence[str] | None, prefix: str | None, associated: bool | None
) -> NameList:
    """The traits that meet every filter that is not None.

    Args:
        names: only these; names that do not exist are ignored.
        prefix: only names with this prefix, taken literally and case-sensitively.
        associated: True: only traits that a provider has; False: only those that none has.
    """
    statement = select(_trait.name, func.coalesce(_trait.updated_at, _trait.created_at))
    if associated is not None:
        had = exists().where(_having.trait_id == _trait.id)
        statement = statement.where(had if associated else ~had)
    if prefix:
        statement = statement.where(func.substr(_trait.name, 1, len(prefix)) == prefix)
    with db.read() as tx:
        parts = (
            [statement]
            if names is None
            else [
                statement.where(_trait.name.in_(chunk)) for chunk in tx.chunks(dict.fromkeys(names))
            ]
        )
        matches = [row for part in parts for row in tx.rows_once(part.order_by(_trait.id))]
    # Some collations treat different names as equal.
    rows = [
        row
        for row in matches
        if (names is None or row[0] in names) and row[0].startswith(prefix or "")
    ]
    return NameList([row[0] for row in rows], newest(row[1] for row in rows))


def get_trait(db: Database, name: str) -> TraitRecord:
    """One trait's definition.

    Raises:
        TraitNotFound: no trait has this name.
    """
    with db.read() as tx:
        return _get_record(tx, name)


def create_trait(db: Database, name: str) -> tuple[TraitRecord, bool]:
    """Make sure that a trait exists; return its definition, and whether this call created it.

    A trait that exists already, the common case, is only read.
    """
    try:
        return get_trait(db, name), False
    except TraitNotFound:
        pass

    def unit(tx: Tx) -> tuple[TraitRecord, bool]:
        inserted = tx.insert_missing(traits, [{"name": name, "created_at": tx.now}])
        tx.names_touched = created = inserted == 1
        try:
            return _get_record(tx, name), created
        except TraitNotFound as error:  # it was there, and another request deleted it
            raise LostRace(f"trait {name}") from error

    return db.write(unit)


def delete_trait(db: Database, name: str) -> None:
    """Remove a custom trait.

    Raises:
        TraitNotFound: no trait has this name.
        CannotDeleteStandardTrait: it is a standard trait.
        TraitInUse: a provider has it.
    """

    def unit(tx: Tx) -> None:
        ids = trait_ids(tx, [name])
        if name not in ids:
            raise TraitNotFound(name)
        if not name.startswith(CUSTOM_PREFIX):
            raise CannotDeleteStandardTrait(name)
        try:
            deleted = tx.change(_DELETE_UNUSED, {"number": ids[name]})
        except IntegrityError as error:  # a provider got it meanwhile
            raise TraitInUse(name) from error
        if deleted != 1:
            if tx.rows(_IS_USED, {"number": ids[name]}):
                raise TraitInUse(name)
            raise LostRace(f"trait {name}")
        tx.names_touched = True

    db.write(unit)


def replace_provider_traits(
    db: Database, uuid: ProviderUUID, names: Iterable[str], seen: Generation
) -> ProviderTraits:
    """Replace a provider's traits; the generation increments only if they change.

    Raises:
        ProviderNotFound: no provider has this uuid.
        ProviderGenerationConflict: it is not at `seen`.
        UnknownTraits: some do not exist.
    """
    wanted_names = list(dict.fromkeys(names))

    def unit(tx: Tx) -> ProviderTraits:
        provider = get_provider_row(tx, uuid)
        check_seen(provider, seen)
        ids = trait_ids(tx, wanted_names)
        if unknown := missing(wanted_names, ids):
            raise UnknownTraits(unknown)
        generation = provider.generation
        stored, wanted = _trait_ids_of(tx, provider.id), set(ids.values())
        if stored != wanted:
            generation = bump_generation(tx, provider)
            write_traits(tx, provider.id, gone=stored - wanted, new=wanted - stored)
        return _provider_traits(tx, provider.id, generation)

    return db.write(unit)


def delete_provider_traits(db: Database, uuid: ProviderUUID) -> None:
    """Remove all traits of a provider; the generation increments only if it had any.

    Raises:
        ProviderNotFound: no provider has this uuid.
    """

    def unit(tx: Tx) -> None:
        provider = get_provider_row(tx, uuid)
        if stored := _trait_ids_of(tx, provider.id):
            bump_generation(tx, provider)
            write_traits(tx, provider.id, gone=stored, new=set())

    db.write(unit)


def insert_traits(tx: Tx, names: Iterable[str]) -> None:
    """Create traits that do not exist.

    Raises:
        LostRace: another request has created one since it was looked up.
    """
    rows = [{"name": name, "created_at": tx.now} for name in names]
    if tx.insert_missing(traits, rows) != len(rows):
        raise LostRace("a trait")
    tx.names_touched = True


def write_traits(tx: Tx, provider: ProviderId, *, gone: set[TraitId], new: set[TraitId]) -> None:
    """Take traits from a provider, and give it others; its generation must have been bumped.

    Raises:
        LostRace: a trait was deleted at the same time.
    """
    for chunk in tx.chunks(sorted(gone)):
        tx.change(_TAKE, {"provider": provider, "traits": chunk})
    if not new:
        return
    rows = [
        {"resource_provider_id": provider, "trait_id": number, "created_at": tx.now}
        for number in sorted(new)
    ]
    with unless_taken("a trait"):
        tx.change(_GIVE, rows)


def _get_record(tx: Tx, name: str) -> TraitRecord:
    for row in tx.rows(_RECORD, {"name": name}):
        record = TraitRecord(*row)
        if record.name == name:
            return record
    raise TraitNotFound(name)


def _provider_traits(tx: Tx, provider: ProviderId, generation: Generation) -> ProviderTraits:
    rows = tx.rows(_TRAITS_OF_PROVIDER, {"provider": provider})
    return ProviderTraits(generation, [row[0] for row in rows], newest(row[1] for row in rows))


def _trait_ids_of(tx: Tx, provider: ProviderId) -> set[TraitId]:
    return {number for (number,) in tx.rows(_IDS_OF_PROVIDER, {"provider": provider})}
