# SPDX-License-Identifier: Apache-2.0
"""One aggregate, whatever its spelling: rows of `placement_aggregates` by the uuid they stand for.

COMPAT spec/rest-api.md 1.9: OpenStack Placement stores the uuid of an aggregate as the client sent
it, and clients expect to read it back like that. berth keeps the spelling too, but takes all
spellings of a uuid for one aggregate. So a row is never looked up by its text alone:

- `common_spellings` are the ways in which clients write a uuid. berth stores no other: an aggregate
  that a client spells in a way of its own gets the canonical form. One query along the unique key
  finds all of them, whatever the size of the table.
- Rows in other spellings exist only where OpenStack Placement wrote them. `odd_spellings` finds
  them by reading the whole table, which is for `berth db upgrade` and `berth db check --fix`. Both
  `respell` such a row, and from then on it is found like the others.
- An adopted database may have several rows for one aggregate. They count as one: a lookup gives the
  ids of all of them, oldest first, and a provider that joins joins the oldest.
- berth makes no second row. The uuid of a new row is first written in its canonical form and then,
  in the same transaction, in the client's. Two transactions that make the same aggregate in two
  spellings so meet at the unique key of the canonical form, and whoever comes second finds the
  other's row and begins again. In a cluster both writes are part of what nodes compare.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from sqlalchemy import Select, and_, bindparam, func, not_, or_, select, update

from berth.model.errors import LostRace
from berth.model.ids import AggregateId, AggregateUUID, common_spellings, parse_uuid_lax
from berth.store.engine.tables import placement_aggregates
from berth.store.engine.transaction import Tx
from berth.store.lookups import missing

_row: Final = placement_aggregates.c

_BY_SPELLING: Final = (
    select(_row.uuid, _row.id)
    .where(_row.uuid.in_(bindparam("spellings", expanding=True)))
    .order_by(_row.id)
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
    """A row of an aggregate in a spelling that no lookup asks for."""

    number: AggregateId
    spelling: str
    uuid: AggregateUUID


def canonical(spelling: str) -> AggregateUUID:
    """The aggregate that a text stands for; a text that is no uuid stands for itself."""
    return AggregateUUID(parse_uuid_lax(spelling) or spelling)


def aggregate_ids(
    tx: Tx, uuids: Collection[AggregateUUID]
) -> dict[AggregateUUID, list[AggregateId]]:
    """Those of some aggregates that exist, each with the ids of its rows, oldest first.

    Rows in an odd spelling are left out. Cost: one query for about a hundred uuids.
    """
    found: dict[AggregateUUID, set[AggregateId]] = {}
    spellings = [one for uuid in uuids for one in common_spellings(uuid)]
    for chunk in tx.chunks(spellings):
        for spelling, number in tx.rows(_BY_SPELLING, {"spellings": chunk}):
            # A collation may find more than was asked for, or one row twice.
            if (uuid := canonical(spelling)) in uuids:
                found.setdefault(uuid, set()).add(number)
    return {uuid: sorted(numbers) for uuid, numbers in found.items()}


def ensure_aggregates(
    tx: Tx, spellings: Mapping[AggregateUUID, str]
) -> dict[AggregateUUID, AggregateId]:
    """The oldest row of each of some aggregates; those that are new come into being.

    Args:
        spellings: how each is to be shown if it is new. The canonical form takes the place of a
            spelling that is not a common one.

    Raises:
        LostRace: another transaction made one of them at the same time.
    """
    known = aggregate_ids(tx, spellings)
    if new := missing(spellings, known):
        _make(tx, {AggregateUUID(uuid): spellings[AggregateUUID(uuid)] for uuid in new})
        known = aggregate_ids(tx, spellings)
        for uuid in new:
            if len(known[AggregateUUID(uuid)]) != 1:
                raise LostRace(f"aggregate {uuid}")
    return {uuid: numbers[0] for uuid, numbers in known.items()}


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


def odd_spellings() -> Select[Any]:
    """(number, spelling) of the rows that may be in an odd spelling: see `read_odd`.

    Cost: it reads the whole table.
    """
    one_case = or_(_row.uuid == func.lower(_row.uuid), _row.uuid == func.upper(_row.uuid))
    dashed = _row.uuid.like(_CANONICAL_FORM)
    undashed = and_(func.length(_row.uuid) == 32, not_(_row.uuid.like("%-%")))
    return (
        select(_row.id.label("number"), _row.uuid.label("spelling"))
        .where(not_(and_(one_case, or_(dashed, undashed))))
        .order_by(_row.id)
    )


def read_odd(number: int, spelling: str) -> OddSpelling | None:
    """What a row of `odd_spellings` is; None where its text is no uuid in any spelling."""
    uuid = parse_uuid_lax(spelling)
    if uuid is None or spelling in common_spellings(uuid):
        return None
    return OddSpelling(AggregateId(number), spelling, AggregateUUID(uuid))


def respell(tx: Tx, odd: Sequence[OddSpelling]) -> int:
    """Give rows the first common spelling that no other row has; the number of rows changed.

    A row for which none is free stays as it is: its aggregate has that many rows already.
    """
    changed = 0
    for one in odd:
        free = _free_spelling(tx, one.uuid)
        if free is not None:
            values = {"number": one.number, "spelling": one.spelling, "free": free, "now": tx.now}
            changed += tx.change(_RESPELL, values)
    return changed


def _free_spelling(tx: Tx, uuid: AggregateUUID) -> str | None:
    # One by one: what counts as the same text is for the database's collation to say.
    return next(
        (one for one in common_spellings(uuid) if not tx.rows(_BY_SPELLING, {"spellings": [one]})),
        None,
    )


# --- The index -----------------------------------------------------------------------------------


def iter_aggregates(
    tx: Tx, wanted: Collection[AggregateId] | None
) -> Iterator[tuple[AggregateId, AggregateUUID]]:
    """The rows with some ids, or all, with the aggregate that each stands for; the odd ones
    too."""
    rows = select(_row.id, _row.uuid).where(_row.uuid.is_not(None)).order_by(_row.id)
    parts = (
        [rows]
        if wanted is None
        else [rows.where(_row.id.in_(chunk)) for chunk in tx.chunks(sorted(wanted))]
    )
    for part in parts:
        for number, spelling in tx.connection.execute(part):
            yield number, canonical(spelling)
