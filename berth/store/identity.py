# SPDX-License-Identifier: Apache-2.0
"""The identity of a database: 8 random bytes, made with its tables.

It tells the revisions of one database from those of another. A copy of the files has the identity
of the original until `renew_identity`. Source: spec/beyond.md 1.6.
"""

from __future__ import annotations

import secrets
from contextlib import suppress
from typing import Final

from sqlalchemy import bindparam, delete, select, update

from berth.store.engine.database import Database
from berth.store.engine.prepared import insert_of
from berth.store.engine.tables import berth_meta
from berth.store.engine.transaction import Tx

#: The length of an identity in bytes.
IDENTITY_BYTES: Final = 8
#: The identity of a database that has lost its own; `berth db check --repair` makes one.
NO_IDENTITY: Final = bytes(IDENTITY_BYTES)

IDENTITY_KEY: Final = "identity"

_meta = berth_meta.c
_READ: Final = select(_meta.value).where(_meta.key == bindparam("key"))
_REMOVE: Final = delete(berth_meta).where(_meta.key == bindparam("key"))
_INSERT: Final = insert_of(berth_meta, "key", "value")
_REWRITE: Final = (
    update(berth_meta).where(_meta.key == bindparam("identity")).values(value=_meta.value)
)


def read_fact(tx: Tx, key: str) -> str | None:
    """A fact about the database; None if it is not recorded."""
    return next((value for (value,) in tx.rows(_READ, {"key": key})), None)


def remove_fact(tx: Tx, key: str) -> None:
    """Forget a fact."""
    tx.change(_REMOVE, {"key": key})


def read_identity(tx: Tx) -> bytes:
    """The identity of the database."""
    with suppress(ValueError):
        return bytes.fromhex(read_fact(tx, IDENTITY_KEY) or NO_IDENTITY.hex())
    return NO_IDENTITY


def rewrite_identity(db: Database) -> None:
    """Write the identity as it is: the smallest commit that shows whether the database can be
    written.

    Raises:
        DatabaseUnavailable: it cannot.
    """
    db.write(lambda tx: tx.change(_REWRITE, {"identity": IDENTITY_KEY}))


def renew_identity(db: Database) -> None:
    """Give the database a new identity, so that all earlier revisions are foreign.

    Every running service sees it with its next read.

    Raises:
        DatabaseUnavailable: the database cannot be written.
    """
    db.write(write_new_identity)


def write_new_identity(tx: Tx) -> None:
    """As `renew_identity`, in a transaction."""
    remove_fact(tx, IDENTITY_KEY)
    tx.change(_INSERT, {"key": IDENTITY_KEY, "value": secrets.token_hex(IDENTITY_BYTES)})
    tx.names_touched = True
