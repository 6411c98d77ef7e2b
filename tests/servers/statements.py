# SPDX-License-Identifier: Apache-2.0
"""Statements sent to a database by its URL, by a client that is not berth."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from sqlalchemy import Connection, NullPool, create_engine
from sqlalchemy.engine import make_url

#: How long an attempt to connect may take before it is given up, in seconds.
_CONNECT_S = 60

_DRIVERS = {"postgresql": "postgresql+psycopg", "mysql": "mysql+pymysql", "sqlite": "sqlite"}


@contextmanager
def connected(url: str) -> Iterator[Connection]:
    """A separate connection, in a transaction that is rolled back unless the caller commits it."""
    address = make_url(url)
    engine = create_engine(
        address.set(drivername=_DRIVERS[address.get_backend_name()]),
        poolclass=NullPool,
        connect_args={"connect_timeout": _CONNECT_S} if address.host else {},
    )
    with engine.connect() as connection:
        yield connection


def run(url: str, *statements: str) -> list[tuple[Any, ...]]:
    """Run statements in one transaction and commit; the rows of the last one, if it has any."""
    rows: list[tuple[Any, ...]] = []
    with connected(url) as connection:
        for statement in statements:
            result = connection.exec_driver_sql(statement)
            rows = [tuple(row) for row in result] if result.returns_rows else []
        connection.commit()
    return rows
