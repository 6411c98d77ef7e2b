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
            keys = [fault.key for fault in _odd(kind, tx) if fault.action]
        for first in range(0, len(keys), _PART):
            db.write_unnoted(partial(_respell, kind, keys=keys[first : first + _PART]))
        if keys:
            done.append(f"UUIDs of {kind.noun}s rewritten in lower case with dashes: {len(keys)}")
    return done


def _odd(kind: _Kind, tx: Tx) -> Faults:
    """The rows in another spelling; one whose canonical form another row has is left alone.

    Cost: reads the UUIDs of the table once.
    """
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
    for number, spelling, uuid in spelled:
        is_taken = owners.setdefault(uuid, number) != number
        yield Fault(
            f"{kind.noun} number {number} is stored as {spelling}, which no lookup finds",
            None if is_taken else f"store {kind.noun} number {number} as {uuid}",
            f"another {kind.noun} is stored as {uuid}, the same UUID: decide which of the two "
            "is right, and remove or rename the other in the database by hand",
            {"number": number, "stored": spelling, "canonical": uuid, "is_taken": is_taken},
        )


def _exact(tx: Tx) -> Callable[[ColumnElement[str]], ColumnElement[str]]:
    """A form of a text that is equal only for equal texts: most collations of MySQL ignore case."""
    return func.hex if tx.dialect.storage.has_collations else lambda text: text


def _respell(kind: _Kind, tx: Tx, keys: Sequence[Key]) -> None:
    row = kind.table.c
    given = [
        {name: key[name] for name in ("number", "stored", "canonical")}
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

RULES: Final = tuple(Rule(partial(_odd, kind), partial(_respell, kind)) for kind in _KINDS)
