# SPDX-License-Identifier: Apache-2.0
"""Drains: named sets of providers that get nothing new, at most `DRAINS_MAX` of them.

A change of a drain touches its providers in the journal, so that every index reloads them. Source:
spec/beyond.md 7.1.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Final

from sqlalchemy import bindparam, delete, select, update

from berth.model.bounds import DRAINS_MAX
from berth.model.drain import Drain, DrainId, DrainName, Effect
from berth.model.errors import LostRace, ProviderNotFound
from berth.model.ids import ConsumerUUID, ProviderId, ProviderUUID
from berth.model.own_errors import AlreadyThere, DrainNotFound
from berth.store.engine.database import Database
from berth.store.engine.prepared import insert_of
from berth.store.engine.tables import allocations, berth_drained, berth_drains
from berth.store.engine.transaction import Tx
from berth.store.lookups import providers_by_uuid
from berth.store.numbered import insert_numbered
from berth.store.replaced import ReplacedDrain

#: A provider that a drain names.
_Named = tuple[ProviderId, ProviderUUID]

_row = berth_drains.c
_member = berth_drained.c
_OF_DRAIN: Final = _member.drain_id == bindparam("drain")
#: The change of a drain that somebody else has changed meanwhile fails.
_AS_SEEN: Final = (_row.id == bindparam("drain"), _row.generation == bindparam("seen"))

_EFFECTS: Final = frozenset(effect.value for effect in Effect)

_COLUMNS: Final = select(
    _row.name,
    _row.id,
    _row.generation,
    _row.effect,
    _row.reason,
    _row.created_at,
    _row.created_by,
)
_ONE: Final = _COLUMNS.where(_row.name == bindparam("drain"))
_IDS: Final = select(_row.id)
_INSERT: Final = insert_of(berth_drains, *berth_drains.c.keys())
_UPDATE: Final = (
    update(berth_drains)
    .where(*_AS_SEEN)
    .values(
        generation=_row.generation + 1,
        effect=bindparam("new_effect"),
        reason=bindparam("new_reason"),
    )
)
_DELETE: Final = delete(berth_drains).where(*_AS_SEEN)
_PROVIDERS: Final = select(_member.provider_id, _member.provider_uuid).where(_OF_DRAIN)
_ADD: Final = insert_of(berth_drained, *berth_drained.c.keys())
_REMOVE: Final = delete(berth_drained).where(
    _OF_DRAIN, _member.provider_id.in_(bindparam("providers", expanding=True))
)
_REMOVE_ALL: Final = delete(berth_drained).where(_OF_DRAIN)
_HOLDING: Final = (
    select(allocations.c.resource_provider_id, allocations.c.consumer_id)
    .where(allocations.c.resource_provider_id.in_(bindparam("providers", expanding=True)))
    .distinct()
)


def all_drains(tx: Tx) -> dict[DrainName, Drain]:
    """All drains by name; one with an effect that this release does not know has none."""
    return {name: _drain(*values) for name, *values in tx.rows(_COLUMNS, {})}


def put_drain(
    db: Database,
    name: DrainName,
    providers: Collection[ProviderUUID] | None,
    *,
    effect: Effect | None,
    reason: str | None,
    created_by: str,
    replaced: ReplacedDrain | None = None,
    is_new: bool = False,
) -> tuple[Drain, bool]:
    """Create a drain, or replace its providers, effect and reason; return it, and whether it is
    new.

    Nothing is written if it is the same already.

    Args:
        providers, effect, reason: what is None stays as it is; a new drain excludes, and has no
            reason.
        replaced: gets what it was.
        is_new: replace nothing.

    Raises:
        AlreadyThere: it is to be new, and is not.
        DrainNotFound: it would be new, and `providers` is None.
        ProviderNotFound: one of the providers does not exist.
        TooMany: it would be new, and there are `DRAINS_MAX`.
    """

    def unit(tx: Tx) -> tuple[Drain, bool]:
        named = None if providers is None else _existing(tx, providers)
        stored = _find_drain(tx, name)
        if stored is not None and is_new:
            raise AlreadyThere("drain", name)
        before = _named_by(tx, stored)
        tx.concerned |= _ids(before | (named or set()))
        if replaced is not None:
            replaced.note(stored, _ids(before))
        if stored is None:
            if named is None:
                raise DrainNotFound(name)
            drain = _insert(tx, name, effect or Effect.EXCLUDE, reason or "", created_by)
            _add(tx, drain.id, named)
            _touch(tx, named)
            return drain, True
        drain = replace(
            stored,
            effect=effect or stored.effect,
            reason=stored.reason if reason is None else reason,
        )
        _change(tx, name, stored, drain, before, before if named is None else named)
        return drain, False

    return db.write(unit)


def delete_drain(db: Database, name: DrainName, *, replaced: ReplacedDrain | None = None) -> bool:
    """Delete a drain; return whether there was one.

    Args:
        replaced: gets what it was.
    """

    def unit(tx: Tx) -> bool:
        stored = _find_drain(tx, name)
        if stored is None:
            return False
        providers = _named_by(tx, stored)
        tx.concerned |= _ids(providers)
        if replaced is not None:
            replaced.note(stored, _ids(providers))
        if tx.change(_DELETE, {"drain": stored.id, "seen": stored.generation}) != 1:
            raise LostRace(f"drain {name}")
        tx.change(_REMOVE_ALL, {"drain": stored.id})
        _touch(tx, providers)
        return True

    return db.write(unit)


def consumers_on(
    db: Database, providers: Iterable[ProviderId]
) -> Mapping[ProviderId, set[ConsumerUUID]]:
    """The consumers of some providers; without those of which nobody holds anything."""
    consumers: dict[ProviderId, set[ConsumerUUID]] = {}
    with db.read() as tx:
        for chunk in tx.chunks(providers):
            for provider, consumer in tx.rows(_HOLDING, {"providers": chunk}):
                consumers.setdefault(provider, set()).add(consumer)
    return consumers


def _touch(tx: Tx, providers: Iterable[_Named]) -> None:
    tx.touched.update(_ids(providers))
    tx.names_touched = True


def _existing(tx: Tx, providers: Collection[ProviderUUID]) -> set[_Named]:
    rows = providers_by_uuid(tx, providers)
    for uuid in providers:
        if uuid not in rows:
            raise ProviderNotFound(uuid)
    return {(row.id, row.uuid) for row in rows.values()}


def _ids(providers: Iterable[_Named]) -> set[ProviderId]:
    return {number for number, _ in providers}


def _find_drain(tx: Tx, name: DrainName) -> Drain | None:
    return next((_drain(*values) for _, *values in tx.rows(_ONE, {"drain": name})), None)


def _named_by(tx: Tx, drain: Drain | None) -> set[_Named]:
    """What a drain names; a provider may be gone, and another may have its id."""
    if drain is None:
        return set()
    return {(number, uuid) for number, uuid in tx.rows(_PROVIDERS, {"drain": drain.id})}


def _drain(
    number: DrainId,
    generation: int,
    effect: str,
    reason: str,
    created_at: datetime,
    created_by: str,
) -> Drain:
    understood = Effect(effect) if effect in _EFFECTS else Effect.NONE
    return Drain(number, generation, understood, reason, created_at, created_by)


def _insert(tx: Tx, name: DrainName, effect: Effect, reason: str, created_by: str) -> Drain:
    row = {
        "name": name,
        "generation": 0,
        "effect": effect.value,
        "reason": reason,
        "created_at": tx.now,
        "created_by": created_by,
    }
    number = DrainId(insert_numbered(tx, "drain", DRAINS_MAX, _IDS, _INSERT, row))
    return Drain(number, 0, effect, reason, tx.now, created_by)


def _change(
    tx: Tx,
    name: DrainName,
    stored: Drain,
    drain: Drain,
    before: set[_Named],
    named: set[_Named],
) -> None:
    """Write what differs from the drain as read, and the providers `before` that it named."""
    if (drain, named) != (stored, before):
        _update(tx, name, drain)
        _remove(tx, drain.id, before - named)
        _add(tx, drain.id, named - before)
        _touch(tx, named ^ before if drain.effect == stored.effect else named | before)


def _update(tx: Tx, name: DrainName, drain: Drain) -> None:
    values = {
        "drain": drain.id,
        "seen": drain.generation,
        "new_effect": drain.effect.value,
        "new_reason": drain.reason,
    }
    if tx.change(_UPDATE, values) != 1:
        raise LostRace(f"drain {name}")


def _add(tx: Tx, drain: DrainId, providers: Iterable[_Named]) -> None:
    rows = [
        {"drain_id": drain, "provider_id": number, "provider_uuid": uuid}
        for number, uuid in sorted(providers)
    ]
    if rows:
        tx.change(_ADD, rows)


def _remove(tx: Tx, drain: DrainId, providers: Iterable[_Named]) -> None:
    for chunk in tx.chunks(sorted(_ids(providers))):
        tx.change(_REMOVE, {"drain": drain, "providers": chunk})
