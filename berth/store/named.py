# SPDX-License-Identifier: Apache-2.0
"""Named records: flavors, drains, and the labels of aggregates.

Each kind has a row for each of its records, found by a key. A `Kind` says what is in the row; how
records are read, created, replaced and deleted is the same for all. Writing what is there already
writes nothing. Every index reads all of them again after a change of any.

A new kind needs a value in `berth.model.named`, a bound in `berth.model.bounds`, a table with a
migration, and in this module a `Kind`, a member of `all_records` and a place in `PATH_KINDS`. Then
the index, `berth db copy` and `berth db check` know it. CONTRIBUTING.md lists the rest.
Source: spec/beyond.md 4.5, 7.1, 7.2.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from typing import Any, Final, Generic, NamedTuple, TypeVar

from msgspec import Struct
from msgspec.structs import asdict, replace
from sqlalchemy import Column, ColumnElement, Select, Table, bindparam, delete, or_, select, update
from sqlalchemy.exc import IntegrityError
from sqlalchemy.sql.dml import Delete, Insert, Update

from berth.model.bounds import DRAINS_MAX, FLAVORS_MAX
from berth.model.errors import LostRace, ProviderNotFound
from berth.model.ids import AggregateUUID, ConsumerUUID, ProviderId, ProviderUUID
from berth.model.named import Drain, DrainId, DrainName, Effect, Flavor, FlavorName, NamedRecords
from berth.model.own_errors import AlreadyThere, DrainNotFound, LabelTaken, TooMany
from berth.store.engine.database import Database
from berth.store.engine.prepared import insert_of
from berth.store.engine.tables import (
    allocations,
    berth_drained,
    berth_drains,
    berth_flavors,
    berth_labels,
)
from berth.store.engine.transaction import Tx
from berth.store.engine.write_record import DrainBefore, WriteRecord
from berth.store.lookups import providers_by_uuid

Name = TypeVar("Name", bound=str)
Record = TypeVar("Record")

#: The values of a row, or of a statement's parameters.
_Values = Mapping[str, object]


def all_records(tx: Tx) -> NamedRecords:
    """All named records."""
    labels = _every(tx, LABELS)
    return NamedRecords(
        {aggregate: its_labels for aggregate, its_labels in labels.items() if its_labels},
        _every(tx, FLAVORS),
        _every(tx, DRAINS),
    )


# --- Any kind ------------------------------------------------------------------------------------


class _Statements(NamedTuple):
    """The statements of one kind."""

    every: Select[Any]
    by_name: Select[Any]
    ids: Select[Any]
    insert: Insert
    update: Update
    delete: Delete


def _statements(key: Column[str], columns: Sequence[Column[Any]], *changed: str) -> _Statements:
    """The statements of a kind.

    If the rows have generations, the change of one that somebody else has changed meanwhile fails.

    Args:
        key: the column of the names.
        columns: from which a record is made.
        changed: columns that a replacement changes.
    """
    table = key.table
    assert isinstance(table, Table)
    row = table.c
    values: dict[Any, Any] = {row[name]: bindparam(f"new_{name}") for name in changed}
    of_record = (key == bindparam("record"),)
    as_seen: tuple[ColumnElement[bool], ...] = of_record
    if "generation" in row:
        values[row.generation] = row.generation + 1
        as_seen = row.id == bindparam("number"), row.generation == bindparam("seen")
    inserted = [each.name for each in row if each.name != "id" or _is_numbered(table)]
    return _Statements(
        select(key, *columns),
        select(key, *columns).where(*of_record),
        select(row.id),
        insert_of(table, *inserted),
        update(table).where(*as_seen).values(values),
        delete(table).where(*as_seen),
    )


def _is_numbered(table: Table) -> bool:
    """Whether the rows are numbered from 1 to a bound, which is how many of them there can be."""
    return table.c.id.autoincrement is False


class Kind(Struct, Generic[Name, Record], frozen=True):
    """A kind of named record.

    Attributes:
        noun: what one is, for messages.
        read: makes a record of the columns of its row.
        checked: the column that `berth db check` reads, as another program may have damaged it.
        is_sound: whether a value of that column can be read.
        at_most: how many there can be; 0 if they have no numbers.
    """

    noun: str
    statements: _Statements
    read: Callable[..., Record]
    checked: Column[str]
    is_sound: Callable[[str], bool]
    at_most: int = 0

    def of(self, name: Name) -> str:
        """A record, for messages."""
        return f"{self.noun} {name}"


def _every(tx: Tx, kind: Kind[Name, Record]) -> dict[Name, Record]:
    """All records of a kind."""
    rows = tx.rows(kind.statements.every, {})
    return {name: kind.read(*values) for name, *values in rows}


def _find(tx: Tx, kind: Kind[Name, Record], name: Name, *, is_new: bool = False) -> Record | None:
    """One record; None if there is none.

    Raises:
        AlreadyThere: it is to be new, and is not.
    """
    rows = tx.rows(kind.statements.by_name, {"record": name})
    record = next((kind.read(*values) for _, *values in rows), None)
    if is_new and record is not None:
        raise AlreadyThere(kind.noun, name)
    return record


def _insert(tx: Tx, kind: Kind[Name, Any], name: Name, row: _Values) -> int:
    """Insert a record with the smallest free id, and return the id.

    Raises:
        TooMany: there are `at_most` already.
        LostRace: another request has just taken the id, or the name.
    """
    taken = {number for (number,) in tx.rows(kind.statements.ids, {})}
    free = next((number for number in range(1, kind.at_most + 1) if number not in taken), None)
    if free is None:
        raise TooMany(kind.noun, kind.at_most)
    _change(tx, kind, name, kind.statements.insert, {"id": free, "name": name, **row})
    return free


def _update(tx: Tx, kind: Kind[Name, Any], name: Name, guard: _Values, new: _Values) -> None:
    """Replace a record as it was read.

    Raises:
        LostRace: another request has changed or deleted it meanwhile.
    """
    values = {f"new_{column}": value for column, value in new.items()}
    _change(tx, kind, name, kind.statements.update, {**guard, **values})


def _change(
    tx: Tx, kind: Kind[Name, Any], name: Name, statement: Insert | Update | Delete, values: _Values
) -> None:
    """Write the row of a record, so that every index reads the names again.

    Raises:
        LostRace: since it was read, another request has written it, or taken what must be unique.
    """
    try:
        written = tx.change(statement, dict(values))
    except IntegrityError as error:
        # RACE tests/store/test_flavors.py, test_drains.py and test_labels.py: the next attempt
        # reads which.
        raise LostRace(kind.of(name)) from error
    if written != 1:
        raise LostRace(kind.of(name))
    tx.names_touched = True


def _is_object(text: str) -> bool:
    """Whether a text is a JSON object."""
    try:
        return isinstance(json.loads(text), dict)
    except ValueError:
        return False


# --- Flavors -------------------------------------------------------------------------------------

_flavor = berth_flavors.c
_FLAVORS: Final = _statements(
    _flavor.name,
    (_flavor.request, _flavor.expose, _flavor.description),
    *("request", "expose", "description"),
)
FLAVORS: Final[Kind[FlavorName, Flavor]] = Kind(
    "flavor",
    _FLAVORS,
    lambda request, expose, description: Flavor(request, bool(expose), description),
    _flavor.request,
    _is_object,
    FLAVORS_MAX,
)


def put_flavor(db: Database, name: FlavorName, flavor: Flavor, *, is_new: bool = False) -> bool:
    """Create or replace a flavor; return whether it is new.

    Args:
        is_new: replace nothing.

    Raises:
        AlreadyThere: it is to be new, and is not.
        TooMany: it would be new, and there are `FLAVORS_MAX`.
    """

    def unit(tx: Tx) -> bool:
        stored = _find(tx, FLAVORS, name, is_new=is_new)
        if stored is None:
            _insert(tx, FLAVORS, name, asdict(flavor))
        elif flavor != stored:
            _update(tx, FLAVORS, name, {"record": name}, asdict(flavor))
        return stored is None

    return db.write(unit)


def delete_flavor(db: Database, name: FlavorName) -> bool:
    """Delete a flavor; return whether there was one."""

    def unit(tx: Tx) -> bool:
        deleted = tx.change(_FLAVORS.delete, {"record": name}) == 1
        tx.names_touched = deleted
        return deleted

    return db.write(unit)


# --- Labels --------------------------------------------------------------------------------------

#: The key of the label by which an aggregate is referred to; no two aggregates share its value.
NAME: Final = "name"

_label = berth_labels.c


def _decoded(labels: str) -> dict[str, str]:
    """The labels of a row; empty if another program has damaged it."""
    with suppress(ValueError):
        if isinstance(decoded := json.loads(labels), dict):
            return {key: str(value) for key, value in decoded.items()}
    return {}


_LABELS: Final = _statements(_label.aggregate_uuid, (_label.labels,), "name", "labels")
#: All labels of one aggregate, which need not have members, are one record: so replacing them is
#: atomic.
LABELS: Final[Kind[AggregateUUID, dict[str, str]]] = Kind(
    "the labels of aggregate", _LABELS, _decoded, _label.labels, _is_object
)
_OF_AGGREGATE_OR_NAME: Final = select(_label.aggregate_uuid, _label.name, _label.labels).where(
    or_(_label.aggregate_uuid == bindparam("aggregate"), _label.name == bindparam("name"))
)


def replace_labels(db: Database, aggregate: AggregateUUID, labels: Mapping[str, str]) -> None:
    """Replace the labels of an aggregate; an empty mapping removes them.

    Raises:
        LabelTaken: another aggregate has this name.
    """
    record, name = {"record": aggregate}, labels.get(NAME)
    row = {"name": name, "labels": json.dumps(labels, ensure_ascii=False, sort_keys=True)}

    def unit(tx: Tx) -> None:
        stored = _stored_labels(tx, aggregate, name)
        if (labels or None) == stored:
            return
        if stored is None:
            _change(tx, LABELS, aggregate, _LABELS.insert, {"aggregate_uuid": aggregate, **row})
        elif labels:
            _update(tx, LABELS, aggregate, record, row)
        else:
            _change(tx, LABELS, aggregate, _LABELS.delete, record)

    db.write(unit)


def _stored_labels(tx: Tx, aggregate: AggregateUUID, name: str | None) -> dict[str, str] | None:
    """The labels of an aggregate; None if it has no row.

    Raises:
        LabelTaken: another aggregate has the name.
    """
    stored: dict[str, str] | None = None
    for uuid, its_name, labels in tx.rows(
        _OF_AGGREGATE_OR_NAME, {"aggregate": aggregate, "name": name}
    ):
        if uuid == aggregate:
            stored = _decoded(labels)
        elif name is not None and its_name == name:
            raise LabelTaken(name, uuid)
    return stored


# --- Drains: a change touches their providers in the journal, so that every index reloads them ----

#: A provider that a drain names.
_Named = tuple[ProviderId, ProviderUUID]

_drain = berth_drains.c
_member = berth_drained.c
_OF_DRAIN: Final = _member.drain_id == bindparam("drain")

_EFFECTS: Final = frozenset(effect.value for effect in Effect)


def _drain_of(
    number: DrainId,
    generation: int,
    effect: str,
    reason: str,
    created_at: datetime,
    created_by: str,
) -> Drain:
    """A drain of its row; with an effect that this release does not know, it has none."""
    understood = Effect(effect) if effect in _EFFECTS else Effect.NONE
    return Drain(number, generation, understood, reason, created_at, created_by)


_DRAINS: Final = _statements(
    _drain.name,
    (
        *(_drain.id, _drain.generation, _drain.effect, _drain.reason),
        *(_drain.created_at, _drain.created_by),
    ),
    *("effect", "reason"),
)
DRAINS: Final[Kind[DrainName, Drain]] = Kind(
    "drain", _DRAINS, _drain_of, _drain.effect, _EFFECTS.__contains__, DRAINS_MAX
)

#: The kinds whose names are those of a path.
PATH_KINDS: Final[tuple[Kind[Any, Any], ...]] = (FLAVORS, DRAINS)

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


def put_drain(
    db: Database,
    name: DrainName,
    providers: Collection[ProviderUUID] | None,
    *,
    effect: Effect | None,
    reason: str | None,
    created_by: str,
    is_new: bool = False,
) -> tuple[Drain, bool]:
    """Create a drain, or replace its providers, effect and reason; return it, and whether it is
    new.

    Args:
        providers, effect, reason: what is None stays as it is; a new drain excludes, and has no
            reason.
        is_new: replace nothing.

    Raises:
        AlreadyThere: it is to be new, and is not.
        DrainNotFound: it would be new, and `providers` is None.
        ProviderNotFound: one of the providers does not exist.
        TooMany: it would be new, and there are `DRAINS_MAX`.
    """
    record = db.record
    if record is not None:
        # What is left out is not known before the drain has been read.
        _note_wanted(record, effect, reason, None if providers is None else [*providers])

    def unit(tx: Tx) -> tuple[Drain, bool]:
        named = None if providers is None else _existing(tx, providers)
        stored = _find(tx, DRAINS, name, is_new=is_new)
        before = _named_by(tx, stored)
        tx.concerned |= _ids(before | (named or set()))
        if stored is None and named is None:
            raise DrainNotFound(name)
        wanted = before if named is None else named
        wanted_effect = effect or (Effect.EXCLUDE if stored is None else stored.effect)
        wanted_reason = ("" if stored is None else stored.reason) if reason is None else reason
        if record is not None:
            record.drain = DrainBefore(stored, _ids(before))
            _note_wanted(record, wanted_effect, wanted_reason, [uuid for _, uuid in sorted(wanted)])
        if stored is None:
            drain = _created(tx, name, wanted_effect, wanted_reason, created_by)
            _add(tx, drain.id, wanted)
            tx.touched.update(_ids(wanted))
            return drain, True
        drain = replace(stored, effect=wanted_effect, reason=wanted_reason)
        _replace(tx, name, stored, drain, before, wanted)
        return drain, False

    return db.write(unit)


def delete_drain(db: Database, name: DrainName) -> bool:
    """Delete a drain; return whether there was one."""

    def unit(tx: Tx) -> bool:
        stored = _find(tx, DRAINS, name)
        if stored is None:
            return False
        providers = _named_by(tx, stored)
        tx.concerned |= _ids(providers)
        if db.record is not None:
            db.record.drain = DrainBefore(stored, _ids(providers))
        _change(tx, DRAINS, name, _DRAINS.delete, _as_seen(stored))
        tx.change(_REMOVE_ALL, {"drain": stored.id})
        tx.touched.update(_ids(providers))
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


def _note_wanted(
    record: WriteRecord, effect: Effect | None, reason: str | None, named: list[ProviderUUID] | None
) -> None:
    """Note what a drain is to be, without what is None."""
    wanted = {"effect": effect and effect.value, "reason": reason, "named": named}
    record.wanted = {name: value for name, value in wanted.items() if value is not None}
    record.providers = dict.fromkeys(named or ())


def _existing(tx: Tx, providers: Collection[ProviderUUID]) -> set[_Named]:
    rows = providers_by_uuid(tx, providers)
    for uuid in providers:
        if uuid not in rows:
            raise ProviderNotFound(uuid)
    return {(row.id, row.uuid) for row in rows.values()}


def _ids(providers: Iterable[_Named]) -> set[ProviderId]:
    return {number for number, _ in providers}


def _named_by(tx: Tx, drain: Drain | None) -> set[_Named]:
    """What a drain names; a provider may be gone, and another may have its id."""
    if drain is None:
        return set()
    return {(number, uuid) for number, uuid in tx.rows(_PROVIDERS, {"drain": drain.id})}


def _as_seen(drain: Drain) -> dict[str, int]:
    """The guard of a change: nobody else has changed the drain meanwhile."""
    return {"number": drain.id, "seen": drain.generation}


def _created(tx: Tx, name: DrainName, effect: Effect, reason: str, created_by: str) -> Drain:
    row = {
        "generation": 0,
        "effect": effect.value,
        "reason": reason,
        "created_at": tx.now,
        "created_by": created_by,
    }
    number = DrainId(_insert(tx, DRAINS, name, row))
    return Drain(number, 0, effect, reason, tx.now, created_by)


def _replace(
    tx: Tx,
    name: DrainName,
    stored: Drain,
    drain: Drain,
    before: set[_Named],
    named: set[_Named],
) -> None:
    """Write what differs from the drain as read, and the providers `before` that it named."""
    if (drain, named) != (stored, before):
        new = {"effect": drain.effect.value, "reason": drain.reason}
        _update(tx, DRAINS, name, _as_seen(stored), new)
        _remove(tx, drain.id, before - named)
        _add(tx, drain.id, named - before)
        tx.touched.update(_ids(named ^ before if drain.effect == stored.effect else named | before))


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
