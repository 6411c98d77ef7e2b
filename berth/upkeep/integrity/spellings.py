# SPDX-License-Identifier: Apache-2.0
"""UUIDs of providers and consumers that are not stored in lower case with dashes.

OpenStack Placement stores some of them as a client sent them. berth looks every UUID up in its
canonical form, so it would never find such a row. A repair, and every upgrade, rewrites them in
that form, in berth's own tables too. Two rows with the same UUID in different spellings stay as
they are: only a person knows which of them is right.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Final, NamedTuple

from sqlalchemy import (
    BindParameter,
    Column,
    ColumnElement,
    Table,
    and_,
    bindparam,
    func,
    not_,
    select,
    update,
)

from berth.model.ids import parse_uuid_lax
from berth.store.engine.database import Database
from berth.store.engine.tables import (
    allocations,
    berth_consumer_names,
    berth_drained,
    berth_leases,
    berth_placements,
    consumers,
    resource_providers,
)
from berth.store.engine.transaction import Tx
from berth.upkeep.integrity.fault import Fault, Faults, Key, Rule

#: Matches a UUID with dashes, for LIKE.
CANONICAL_FORM: Final = "________-____-____-____-____________"

#: Rows that an upgrade rewrites in one transaction.
_PART: Final = 1000


class _Kind(NamedTuple):
    """Something with a UUID.

    Attributes:
        noun: what a row is called.
        table: whose column `uuid` identifies it.
        references: the columns elsewhere that hold the same UUID.
    """

    noun: str
    table: Table
    references: tuple[Column[str], ...]


class _Odd(NamedTuple):
    """A row in another spelling; `is_taken` if another row has its canonical form."""

    number: int
    spelling: str
    uuid: str
    is_taken: bool


_KINDS: Final = (
    _Kind(
        "provider",
        resource_providers,
        (berth_drained.c.provider_uuid, berth_placements.c.host_uuid),
    ),
    _Kind(
        "consumer",
        consumers,
        (
            allocations.c.consumer_id,
            berth_leases.c.consumer_uuid,
            berth_placements.c.consumer_uuid,
            berth_consumer_names.c.consumer_uuid,
        ),
    ),
)


def respell_all(db: Database) -> list[str]:
    """Rewrite all in canonical form while no other program runs; a sentence for each change."""
    done = []
    for kind in _KINDS:
        with db.read() as tx:
            keys = [odd._asdict() for odd in _odd(tx, kind) if not odd.is_taken]
        for first in range(0, len(keys), _PART):
            db.write_unnoted(partial(_respell, kind, keys=keys[first : first + _PART]))
        if keys:
            done.append(f"UUIDs of {kind.noun}s rewritten in lower case with dashes: {len(keys)}")
    return done


def _rule(kind: _Kind) -> Rule:
    return Rule(partial(_faults, kind), lambda tx, keys: _respell(kind, tx, keys))


def _faults(kind: _Kind, tx: Tx) -> Faults:
    for odd in _odd(tx, kind):
        sentence = (
            f"{kind.noun} number {odd.number} is stored as {odd.spelling}, which no lookup finds"
        )
        advice = (
            f"another {kind.noun} is stored as {odd.uuid}, the same UUID: decide which of the two "
            "is right, and remove or rename the other in the database by hand"
        )
        action = f"store {kind.noun} number {odd.number} as {odd.uuid}"
        if odd.is_taken:
            yield Fault(sentence, None, advice, odd._asdict())
        else:
            yield Fault(sentence, action, "", odd._asdict())


def _odd(tx: Tx, kind: _Kind) -> list[_Odd]:
    """The rows in another spelling. Cost: reads the UUIDs of the table once."""
    row = kind.table.c
    exact = _exact(tx)
    in_one_case = exact(row.uuid) == exact(func.lower(row.uuid))
    is_canonical = and_(row.uuid.like(CANONICAL_FORM), in_one_case)
    query = select(row.id, row.uuid).where(not_(is_canonical)).order_by(row.id)
    spelled = [
        (number, spelling, uuid)
        for number, spelling in tx.rows_once(query)
        if (uuid := parse_uuid_lax(spelling)) is not None and uuid != spelling
    ]
    owners: dict[str, int] = {}
    for chunk in tx.chunks(sorted({uuid for _, _, uuid in spelled})):
        for number, uuid in tx.rows_once(select(row.id, row.uuid).where(row.uuid.in_(chunk))):
            # Some collations find other spellings too.
            owners[uuid] = number
    return [
        _Odd(number, spelling, uuid, owners.setdefault(uuid, number) != number)
        for number, spelling, uuid in spelled
    ]


def _exact(tx: Tx) -> Callable[[ColumnElement[str]], ColumnElement[str]]:
    """A form of a text that is equal only for equal texts: most collations of MySQL ignore case."""
    return func.hex if tx.dialect.storage.has_collations else lambda text: text


def _respell(kind: _Kind, tx: Tx, keys: Sequence[Key]) -> None:
    row = kind.table.c
    given = [
        {"number": key["number"], "stored": key["spelling"], "canonical": key["uuid"]}
        for key in keys
        if not key["is_taken"]
    ]
    if not given:
        return
    changes = [update(kind.table).where(row.id == bindparam("number"), row.uuid == _STORED)]
    changes += [update(each.table).where(each == _STORED) for each in kind.references]
    for change, column in zip(changes, (row.uuid, *kind.references), strict=True):
        tx.connection.execute(change.values({column: bindparam("canonical")}), given)
    if kind.table is resource_providers:
        tx.touched.update(each["number"] for each in given)


_STORED: Final[BindParameter[str]] = bindparam("stored")

RULES: Final = tuple(_rule(kind) for kind in _KINDS)
