# SPDX-License-Identifier: Apache-2.0
"""Aggregates of providers. An aggregate is a uuid; it is created when a request first names it.

COMPAT spec/rest-api.md 1.9: OpenStack Placement stores the uuid of an aggregate as the client sent
it, and clients expect to read it back unchanged. berth keeps the spelling too, but treats all
spellings of a uuid as one aggregate. So it never looks up a row by its text alone:

- `common_spellings` are the ways in which clients write a uuid. berth stores no other: if a client
  uses a different spelling, berth stores the canonical form. One query on the unique key finds all
  common spellings, whatever the size of the table.
- Rows in other spellings exist only where OpenStack Placement wrote them. `odd_spellings` finds
  them by reading the whole table; only `berth db upgrade` and `berth db check --fix` do so. Both
  `respell` such a row, and from then on it is found like the others.
- An adopted database may have several rows for one aggregate. berth treats them as one: a lookup
  returns the ids of all of them, oldest first, and a provider that joins gets the oldest.
- berth never creates a second row. It first writes the uuid of a new row in canonical form and
  then, in the same transaction, in the client's spelling. Two transactions that create the same
  aggregate in two spellings therefore collide on the unique key of the canonical form, and the
  second finds the other's row and starts again. A cluster's nodes compare both writes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from sqlalchemy import (
    and_,
    bindparam,
    delete,
    func,
    literal_column,
    not_,
    null,
    or_,
    select,
    union_all,
    update,
)

from berth.model.errors import LostRace, ProviderNotFound
from berth.model.ids import (
    AggregateId,
    AggregateUUID,
    Generation,
    ProviderId,
    ProviderUUID,
    common_spellings,
    parse_uuid_lax,
)
from berth.model.shown import UNSET, Sometimes
from berth.store.engine.database import Database
from berth.store.engine.expressions import common_text
from berth.store.engine.tables import (
    placement_aggregates,
    resource_provider_aggregates,
    resource_providers,
)
from berth.store.engine.transaction import Change, Tx
from berth.store.generations import Bump, check_seen, moving, pinning
from berth.store.lookups import ProviderRow, missing

_row: Final = placement_aggregates.c

_BY_SPELLING: Final = select(_row.uuid, _row.id).where(
    _row.uuid.in_(bindparam("spellings", expanding=True))
)
_SPELL: Final = (
    update(placement_aggregates)
    .where(_row.uuid == bindparam("canonical"))
    .values(uuid=bindparam("spelling"))
)
_RESPELL: Final = (
    update(placement_aggregates)
    .where(_row.id == bindparam("number"), _row.uuid == bindparam("spelling"))
    .values(uuid=bindparam("free"), updated_at=bindparam("now"))
)


class OddSpelling(NamedTuple):
    """A row of an aggregate in a spelling that lookups do not find."""

    number: AggregateId
    spelling: str
    uuid: AggregateUUID


def canonical(spelling: str) -> AggregateUUID:
    """The canonical form of a spelling; a text that is not a uuid is returned unchanged."""
    return AggregateUUID(parse_uuid_lax(spelling) or spelling)


def aggregate_ids(
    tx: Tx, uuids: Collection[AggregateUUID]
) -> dict[AggregateUUID, list[AggregateId]]:
    """The aggregates that exist, each with the ids of its rows, oldest first.

    Does not find rows in an odd spelling. Cost: one query for about a hundred uuids.
    """
    spellings = spellings_of(uuids)
    rows = (
        row for chunk in tx.chunks(spellings) for row in tx.rows(_BY_SPELLING, {"spellings": chunk})
    )
    return ids_by_uuid(rows, spellings)


def spellings_of(uuids: Iterable[AggregateUUID]) -> dict[str, AggregateUUID]:
    """All common spellings of some aggregates, each with its aggregate."""
    return {spelling: uuid for uuid in uuids for spelling in common_spellings(uuid)}


def ids_by_uuid(
    rows: Iterable[tuple[str, int]], spellings: Mapping[str, AggregateUUID]
) -> dict[AggregateUUID, list[AggregateId]]:
    """The ids of each aggregate, oldest first, from the rows that a query by spellings found."""
    ids: dict[AggregateUUID, set[AggregateId]] = {}
    for spelling, number in rows:
        uuid = spellings.get(spelling)
        if uuid is None:
            # Under some collations the query finds other texts too, or one row twice.
            uuid = canonical(spelling)
            if uuid not in spellings:
                continue
        ids.setdefault(uuid, set()).add(AggregateId(number))
    return {uuid: sorted(numbers) for uuid, numbers in ids.items()}


def ensure_aggregates(
    tx: Tx,
    spellings: Mapping[AggregateUUID, str],
    stored: Mapping[AggregateUUID, Sequence[AggregateId]] | None = None,
) -> dict[AggregateUUID, AggregateId]:
    """The oldest row of each aggregate; creates those that do not exist.

    Args:
        spellings: the spelling to store for each if it is new. The canonical form replaces a
            spelling that is not a common one.
        stored: the result of `aggregate_ids` for them, if the caller has it.

    Raises:
        LostRace: another transaction created one of them at the same time.
    """
    if stored is None:
        stored = aggregate_ids(tx, spellings)
    if new := missing(spellings, stored):
        _make(tx, {AggregateUUID(uuid): spellings[AggregateUUID(uuid)] for uuid in new})
        stored = aggregate_ids(tx, spellings)
        for uuid in new:
            if len(stored[AggregateUUID(uuid)]) != 1:
                raise LostRace(f"aggregate {uuid}")
    return {uuid: numbers[0] for uuid, numbers in stored.items()}


def _make(tx: Tx, spellings: Mapping[AggregateUUID, str]) -> None:
    made = tx.insert_missing(
        placement_aggregates, [{"uuid": uuid, "created_at": tx.now} for uuid in spellings]
    )
    if made != len(spellings):
        raise LostRace("an aggregate")
    respelled = [
        {"canonical": uuid, "spelling": spelling}
        for uuid, spelling in spellings.items()
        if spelling != uuid and spelling in common_spellings(uuid)
    ]
    if respelled:
        tx.change(_SPELL, respelled)


# --- Rows of OpenStack Placement -----------------------------------------------------------------

_CANONICAL_FORM: Final = "________-____-____-____-____________"


def odd_spellings(tx: Tx) -> list[OddSpelling]:
    """The rows in an odd spelling. Cost: it reads the whole table."""
    one_case = or_(_row.uuid == func.lower(_row.uuid), _row.uuid == func.upper(_row.uuid))
    dashed = _row.uuid.like(_CANONICAL_FORM)
    undashed = and_(func.length(_row.uuid) == 32, not_(_row.uuid.like("%-%")))
    query = (
        select(_row.id, _row.uuid)
        .where(not_(and_(one_case, or_(dashed, undashed))))
        .order_by(_row.id)
    )
    return [
        OddSpelling(AggregateId(number), spelling, AggregateUUID(uuid))
        for number, spelling in tx.rows_once(query)
        # Texts that are no uuid at all are another fault.
        if (uuid := parse_uuid_lax(spelling)) is not None and spelling not in common_spellings(uuid)
    ]


def respell(tx: Tx, odd: Sequence[OddSpelling]) -> int:
    """Give each row the first common spelling that no other row has; return how many changed.

    A row stays as it is if no spelling is free: its aggregate has that many rows already.
    """
    changed = 0
    for row in odd:
        free = _free_spelling(tx, row.uuid)
        if free is not None:
            values = {"number": row.number, "spelling": row.spelling, "free": free, "now": tx.now}
            changed += tx.change(_RESPELL, values)
            tx.names_touched = True
    return changed


def _free_spelling(tx: Tx, uuid: AggregateUUID) -> str | None:
    # One by one: the database's collation decides which texts are equal.
    return next(
        (
            text
            for text in common_spellings(uuid)
            if not tx.rows(_BY_SPELLING, {"spellings": [text]})
        ),
        None,
    )


# --- The index -----------------------------------------------------------------------------------


def iter_aggregates(
    tx: Tx, wanted: Collection[AggregateId] | None
) -> Iterator[tuple[AggregateId, AggregateUUID, str]]:
    """The id, canonical uuid and spelling of the given rows, or of all; odd spellings included."""
    rows = select(_row.id, _row.uuid).where(_row.uuid.is_not(None)).order_by(_row.id)
    parts = (
        [rows]
        if wanted is None
        else [rows.where(_row.id.in_(chunk)) for chunk in tx.chunks(sorted(wanted))]
    )
    for part in parts:
        for number, spelling in tx.rows_once(part):
            yield number, canonical(spelling), spelling


_member = resource_provider_aggregates.c
_provider = resource_providers.c

#: (is provider, uuid, id, generation) of a provider, and of the aggregates with some spellings.
_PROVIDER_AND_AGGREGATES: Final = union_all(
    select(
        literal_column("1"), common_text(_provider.uuid), _provider.id, _provider.generation
    ).where(_provider.uuid == bindparam("uuid")),
    select(literal_column("0"), common_text(_row.uuid), _row.id, null()).where(
        _row.uuid.in_(bindparam("spellings", expanding=True))
    ),
)
_LEAVE: Final = delete(resource_provider_aggregates).where(
    _member.resource_provider_id == bindparam("provider")
)
_LEAVE_OTHERS: Final = _LEAVE.where(
    _member.aggregate_id.not_in(bindparam("aggregates", expanding=True))
)


def replace_aggregates(
    db: Database,
    uuid: ProviderUUID,
    spellings: Iterable[str],
    seen: Sometimes[Generation],
) -> Generation:
    """Replace a provider's aggregates; return its new generation.

    UNSET (below 1.19): the generation is neither checked nor changed. Otherwise it always
    increments.

    Args:
        spellings: the aggregates as the client wrote them. A new aggregate keeps this spelling; if
            the client spells one in two ways, the first counts.

    Raises:
        ProviderNotFound: no provider has this uuid.
        ProviderGenerationConflict: it is not at `seen`.
    """

    wanted = _once_each(spellings)

    def unit(tx: Tx) -> Generation:
        provider, stored = _read(tx, uuid, wanted)
        if seen is not UNSET:
            check_seen(provider, seen)
        ids = sorted(set(ensure_aggregates(tx, wanted, stored).values()))
        bump = Bump(provider.id, provider.generation)
        lock = [pinning(tx, provider)] if seen is UNSET else moving(tx, [bump])
        tx.change_all([*lock, *membership_changes(tx, provider.id, ids)])
        return Generation(provider.generation + (seen is not UNSET))

    return db.write(unit)


def _once_each(spellings: Iterable[str]) -> dict[AggregateUUID, str]:
    """Each aggregate in the first of its spellings."""
    first: dict[AggregateUUID, str] = {}
    for spelling in spellings:
        first.setdefault(canonical(spelling), spelling)
    return first


def _read(
    tx: Tx, uuid: ProviderUUID, wanted: Mapping[AggregateUUID, str]
) -> tuple[ProviderRow, dict[AggregateUUID, list[AggregateId]]]:
    """A provider, and the ids of those of the aggregates that exist.

    Raises:
        ProviderNotFound: no provider has this uuid.
    """
    spellings = spellings_of(wanted)
    rows = [
        row
        for chunk in list(tx.chunks(spellings)) or [[]]
        for row in tx.rows(_PROVIDER_AND_AGGREGATES, {"uuid": uuid, "spellings": chunk})
    ]
    stored = ids_by_uuid(
        ((text, number) for is_provider, text, number, _ in rows if not is_provider), spellings
    )
    for is_provider, text, number, generation in rows:
        if is_provider and text == uuid:
            return ProviderRow(number, text, generation), stored
    raise ProviderNotFound(uuid)


def membership_changes(tx: Tx, provider: ProviderId, wanted: Sequence[AggregateId]) -> list[Change]:
    """The writes that make a provider a member of exactly these aggregates."""
    leaving: dict[str, Any] = {"provider": provider}
    statement = _LEAVE
    if 0 < len(wanted) <= tx.in_list_max:
        statement, leaving["aggregates"] = _LEAVE_OTHERS, wanted
    joining = [
        {"resource_provider_id": provider, "aggregate_id": number, "created_at": tx.now}
        for number in wanted
    ]
    return [
        Change(statement, [leaving]),
        *tx.insertions_of_missing(resource_provider_aggregates, joining),
    ]
