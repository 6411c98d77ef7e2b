# SPDX-License-Identifier: Apache-2.0
"""Resource classes: their names. What providers have of them is in `inventories`."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Final

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
from berth.store.engine.transaction import Tx
from berth.store.lookups import class_ids

_class = resource_classes.c

#: The next id, from 10000 on, is found by the insertion itself.
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


@dataclass(frozen=True, slots=True)
class ClassRecord:
    """A resource class's definition."""

    name: str
    last_modified: datetime | None


@dataclass(frozen=True, slots=True)
class ClassList:
    """All resource classes in the order of their ids, and when the newest was defined."""

    names: list[str]
    last_modified: datetime | None


def list_resource_classes(db: Database) -> ClassList:
    """All resource classes, the standard ones first."""
    with db.read() as tx:
        rows = tx.connection.execute(
            select(_class.name, func.coalesce(_class.updated_at, _class.created_at)).order_by(
                _class.id
            )
        ).all()
    newest = max((row[1] for row in rows if row[1] is not None), default=None)
    return ClassList([row[0] for row in rows], newest)


def get_resource_class(db: Database, name: str) -> ClassRecord:
    """One resource class.

    Raises:
        ResourceClassNotFound: none has this name.
    """
    with db.read() as tx:
        row = tx.connection.execute(
            select(_class.name, func.coalesce(_class.updated_at, _class.created_at)).where(
                _class.name == name
            )
        ).one_or_none()
    if row is None:
        raise ResourceClassNotFound(name)
    return ClassRecord(*row)


def create_resource_class(db: Database, name: str) -> None:
    """Define a custom resource class that must be new.

    Raises:
        ResourceClassExists: one has this name.
    """
    if not ensure_resource_class(db, name):
        raise ResourceClassExists(name)


def ensure_resource_class(db: Database, name: str) -> bool:
    """Make sure that a custom resource class exists: whether it was made now.

    A class that exists already, the common case, is only read.
    """
    with db.read() as tx:
        if class_ids(tx, [name]):
            return False

    def unit(tx: Tx) -> bool:
        if class_ids(tx, [name]):
            return False
        try:
            tx.connection.execute(_INSERT, {"name": name, "now": tx.now})
        except IntegrityError as error:  # the name or the id was taken meanwhile
            raise LostRace(f"resource class {name}") from error
        tx.names_touched = True
        return True

    return db.write(unit)


def rename_resource_class(db: Database, old: str, new: str) -> None:
    """Give a custom resource class another name, or the one that it has.

    Raises:
        CannotRenameStandardClass: it is not a custom one.
        ResourceClassNotFound: none has this name.
        ResourceClassExists: another has the new one.
    """

    def unit(tx: Tx) -> None:
        if is_standard_class(old):
            raise CannotRenameStandardClass(old)
        ids = class_ids(tx, [old, new])
        if old not in ids:
            raise ResourceClassNotFound(old)
        if new != old and new in ids:
            raise ResourceClassExists(new, creating=False)
        try:
            renamed = tx.connection.execute(
                update(resource_classes)
                .where(_class.id == ids[old], _class.name == old)
                .values(name=new, updated_at=tx.now)
            )
        except IntegrityError as error:
            raise ResourceClassExists(new, creating=False) from error
        if renamed.rowcount != 1:
            raise LostRace(f"resource class {old}")
        tx.names_touched = True

    db.write(unit)


def delete_resource_class(db: Database, name: str) -> None:
    """Remove a custom resource class.

    Raises:
        CannotDeleteStandardClass: it is not a custom one.
        ResourceClassNotFound: none has this name.
        ResourceClassInUse: a provider has inventory of it.
    """

    def unit(tx: Tx) -> None:
        if is_standard_class(name):
            raise CannotDeleteStandardClass(name)
        ids = class_ids(tx, [name])
        if name not in ids:
            raise ResourceClassNotFound(name)
        in_use = exists().where(inventories.c.resource_class_id == ids[name])
        deleted = tx.connection.execute(
            delete(resource_classes).where(_class.id == ids[name], _class.name == name, ~in_use)
        )
        if deleted.rowcount != 1:
            if tx.connection.scalar(select(in_use)):
                raise ResourceClassInUse(name)
            raise LostRace(f"resource class {name}")
        tx.names_touched = True

    db.write(unit)
