# SPDX-License-Identifier: Apache-2.0
"""The standard resource classes and traits in the database."""

from __future__ import annotations

from sqlalchemy import select

from berth.model.standard import STANDARD_CLASS_IDS, STANDARD_TRAITS
from berth.store.engine.database import Database
from berth.store.engine.tables import resource_classes, traits
from berth.store.engine.transaction import Tx


def sync_standard_names(db: Database) -> None:
    """Insert the standard resource classes and traits that are missing.

    Costs two queries if none is missing. Other processes may do the same at the same time.
    """
    with db.read() as tx:
        missing = _missing_classes(tx) or _missing_traits(tx)
    if missing:
        db.write(_write_standard_names)


def _missing_classes(tx: Tx) -> list[str]:
    existing = set(tx.connection.scalars(select(resource_classes.c.name)))
    return [name for name in STANDARD_CLASS_IDS if name not in existing]


def _missing_traits(tx: Tx) -> list[str]:
    existing = set(tx.connection.scalars(select(traits.c.name)))
    return [name for name in STANDARD_TRAITS if name not in existing]


def _write_standard_names(tx: Tx) -> None:
    if missing := _missing_classes(tx):
        tx.insert_missing(
            resource_classes,
            [
                {"id": STANDARD_CLASS_IDS[name], "name": name, "created_at": tx.now}
                for name in missing
            ],
        )
        tx.names_touched = True
    if missing := _missing_traits(tx):
        tx.insert_missing(traits, [{"name": name, "created_at": tx.now} for name in missing])
        tx.names_touched = True
