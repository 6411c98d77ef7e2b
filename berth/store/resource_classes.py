# SPDX-License-Identifier: Apache-2.0
"""Resource classes: the definitions of their names."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from msgspec import Struct
from sqlalchemy import (
    DateTime,
    String,
    bindparam,
    case,
    delete,
    exists,
    func,
    insert,
    select,
    update,
)
from sqlalchemy.exc import IntegrityError

from berth.model.errors import (
    CannotDeleteStandardClass,
    CannotRenameStandardClass,
    LostRace,
    ResourceClassExists,
    ResourceClassInUse,
    ResourceClassNotFound,
)
from berth.model.standard import CUSTOM_CLASS_ID_MIN, is_standard_class
from berth.store.engine.database import Database
from berth.store.engine.tables import inventories, resource_classes
from berth.store.engine.transaction import Tx, unless_taken
from berth.store.lookups import NameList, class_ids, newest

_class = resource_classes.c

#: The INSERT itself finds the next id, from 10000 on.
_INSERT: Final = insert(resource_classes).from_select(
    ["id", "name", "created_at"],
    select(
        case(
            (func.max(_class.id) >= CUSTOM_CLASS_ID_MIN, func.max(_class.id) + 1),
            else_=CUSTOM_CLASS_ID_MIN,
        ),
        bindparam("name", type_=String),
        bindparam("now", type_=DateTime),
    ),
)


class ClassRecord(Struct, frozen=True):
    """A resource class's definition."""

    name: str
    last_modified: datetime | None


_ALL: Final = select(_class.name, func.coalesce(_class.updated_at, _class.created_at)).order_by(
    _class.id
)
_OF_NAME: Final = select(_class.name, func.coalesce(_class.updated_at, _class.created_at)).where(
    _class.name == bindparam("name")
)
_RENAME: Final = (
    update(resource_classes)
    .where(_class.id == bindparam("number"), _class.name == bindparam("old"))
    .values(name=bindparam("new"), updated_at=bindparam("now"))
)
_DELETE_UNUSED: Final = delete(resource_classes).where(
    _class.id == bindparam("number"),
    _class.name == bindparam("name"),
    ~exists().where(inventories.c.resource_class_id == bindparam("number")),
)
_IS_USED: Final = (
    select(inventories.c.id).where(inventories.c.resource_class_id == bindparam("number")).limit(1)
)
_WITH_CLASS: Final = select(inventories.c.resource_provider_id).where(
    inventories.c.resource_class_id == bindparam("number")
)


def list_resource_classes(db: Database) -> NameList:
    """All resource classes in the order of their ids, the standard ones first."""
    with db.read() as tx:
        rows = tx.rows(_ALL, {})
    return NameList([row[0] for row in rows], newest(row[1] for row in rows))


def get_resource_class(db: Database, name: str) -> ClassRecord:
    """One resource class.

    Raises:
        ResourceClassNotFound: there is no such class.
    """
    with db.read() as tx:
        rows = tx.rows(_OF_NAME, {"name": name})
    if not rows:
        raise ResourceClassNotFound(name)
    return ClassRecord(*rows[0])


def create_resource_class(db: Database, name: str) -> None:
    """Create a custom resource class.

    Raises:
        ResourceClassExists: the name is taken.
    """
    if db.record is not None:
        db.record.wanted["name"] = name
    if not ensure_resource_class(db, name):
        raise ResourceClassExists(name)


def ensure_resource_class(db: Database, name: str) -> bool:
    """Create a custom resource class if it does not exist; return whether it was created.

    If it exists, which is the common case, nothing is written.
    """
    with db.read() as tx:
        if class_ids(tx, [name]):
            return False

    def unit(tx: Tx) -> bool:
        if class_ids(tx, [name]):
            return False
        insert_class(tx, name)
        return True

    return db.write(unit)


def insert_class(tx: Tx, name: str) -> None:
    """Create a custom resource class that does not exist.

    Raises:
        LostRace: another request has created one since it was looked up.
    """
    with unless_taken(f"resource class {name}"):
        tx.change(_INSERT, {"name": name, "now": tx.now})
    tx.names_touched = True


def rename_resource_class(db: Database, old: str, new: str) -> None:
    """Rename a custom resource class; the new name may be the old one.

    Raises:
        CannotRenameStandardClass: the class is a standard one.
        ResourceClassNotFound: there is no such class.
        ResourceClassExists: the new name is taken.
    """
    if db.record is not None:
        db.record.wanted["name"] = new

    def unit(tx: Tx) -> None:
        if is_standard_class(old):
            raise CannotRenameStandardClass(old)
        ids = class_ids(tx, [old, new])
        if old not in ids:
            raise ResourceClassNotFound(old)
        if new != old and new in ids:
            raise ResourceClassExists(new, creating=False)
        try:
            renamed = tx.change(
                _RENAME, {"number": ids[old], "old": old, "new": new, "now": tx.now}
            )
        except IntegrityError as error:
            raise ResourceClassExists(new, creating=False) from error
        if renamed != 1:
            raise LostRace(f"resource class {old}")
        tx.names_touched = True
        # Whoever follows the providers sees the names of their classes.
        tx.touched.update(number for (number,) in tx.rows(_WITH_CLASS, {"number": ids[old]}))

    db.write(unit)


def delete_resource_class(db: Database, name: str) -> None:
    """Delete a custom resource class.

    Raises:
        CannotDeleteStandardClass: the class is a standard one.
        ResourceClassNotFound: there is no such class.
        ResourceClassInUse: a provider has inventory of it.
    """

    def unit(tx: Tx) -> None:
        if is_standard_class(name):
            raise CannotDeleteStandardClass(name)
        ids = class_ids(tx, [name])
        if name not in ids:
            raise ResourceClassNotFound(name)
        if tx.change(_DELETE_UNUSED, {"number": ids[name], "name": name}) != 1:
            if tx.rows(_IS_USED, {"number": ids[name]}):
                raise ResourceClassInUse(name)
            raise LostRace(f"resource class {name}")
        tx.names_touched = True

    db.write(unit)
