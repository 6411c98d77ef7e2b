# SPDX-License-Identifier: Apache-2.0
"""Flavors: requests with a name, at most `FLAVORS_MAX` of them. Source: spec/beyond.md 4.5."""

from __future__ import annotations

from dataclasses import asdict
from typing import Final

from sqlalchemy import bindparam, delete, select, update

from berth.model.bounds import FLAVORS_MAX
from berth.model.errors import LostRace
from berth.model.flavor import Flavor, FlavorName
from berth.model.own_errors import AlreadyThere
from berth.store.engine.database import Database
from berth.store.engine.prepared import insert_of
from berth.store.engine.tables import berth_flavors
from berth.store.engine.transaction import Tx
from berth.store.numbered import insert_numbered

_row = berth_flavors.c
_OF_NAME: Final = _row.name == bindparam("flavor")

_ALL: Final = select(_row.name, _row.request, _row.expose, _row.description)
_ONE: Final = select(_row.request, _row.expose, _row.description).where(_OF_NAME)
_IDS: Final = select(_row.id)
_INSERT: Final = insert_of(berth_flavors, "id", "name", "request", "expose", "description")
_UPDATE: Final = (
    update(berth_flavors)
    .where(_OF_NAME)
    .values(
        request=bindparam("new_request"),
        expose=bindparam("new_expose"),
        description=bindparam("new_description"),
    )
)
_DELETE: Final = delete(berth_flavors).where(_OF_NAME)


def all_flavors(tx: Tx) -> dict[FlavorName, Flavor]:
    """All flavors by name."""
    return {
        name: Flavor(request, bool(expose), description)
        for name, request, expose, description in tx.rows(_ALL, {})
    }


def put_flavor(db: Database, name: FlavorName, flavor: Flavor, *, is_new: bool = False) -> bool:
    """Create or replace a flavor; return whether it is new.

    Nothing is written if it is the same already.

    Args:
        is_new: replace nothing.

    Raises:
        AlreadyThere: it is to be new, and is not.
        TooMany: it would be new, and there are `FLAVORS_MAX`.
    """

    def unit(tx: Tx) -> bool:
        stored = _find_flavor(tx, name)
        if stored is not None and is_new:
            raise AlreadyThere("flavor", name)
        if flavor == stored:
            return False
        tx.names_touched = True
        if stored is None:
            row = {"name": name, **asdict(flavor)}
            insert_numbered(tx, "flavor", FLAVORS_MAX, _IDS, _INSERT, row)
            return True
        values = {
            "flavor": name,
            "new_request": flavor.request,
            "new_expose": flavor.expose,
            "new_description": flavor.description,
        }
        if tx.change(_UPDATE, values) != 1:
            raise LostRace(f"flavor {name}")
        return False

    return db.write(unit)


def delete_flavor(db: Database, name: FlavorName) -> bool:
    """Delete a flavor; return whether there was one."""

    def unit(tx: Tx) -> bool:
        deleted = tx.change(_DELETE, {"flavor": name}) == 1
        tx.names_touched = deleted
        return deleted

    return db.write(unit)


def _find_flavor(tx: Tx, name: FlavorName) -> Flavor | None:
    rows = tx.rows(_ONE, {"flavor": name})
    return next(
        (Flavor(request, bool(expose), description) for request, expose, description in rows), None
    )
