# SPDX-License-Identifier: Apache-2.0
"""Opens the database of a URL with the dialect of its engine."""

import os
import random
import time
import weakref
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Final

from msgspec import Struct, field
from sqlalchemy import exc
from sqlalchemy.engine import make_url

from berth.model.errors import UnsupportedDatabase
from berth.store.engine.database import Database, utc_now
from berth.store.engine.dialect import Dialect, PoolOptions
from berth.store.engine.transaction import IN_LIST_MAX


class DatabaseOptions(Struct, frozen=True):
    """Connection options that an operator may set."""

    #: Whether a commit is on disk before it is acknowledged.
    synchronous: bool = True
    pool: PoolOptions = field(default_factory=PoolOptions)
    #: MySQL's sql_mode of each session; empty: the server's.
    mysql_sql_mode: str = "TRADITIONAL"
    #: How long a server may take for one answer, where the driver supports it; None: no limit.
    answer_s_max: int | None = None
    #: Read only: an SQLite file is not changed, and may be one that cannot be written.
    read_only: bool = False
    #: Seconds for which the journal is kept: a reader that slept longer reloads everything.
    journal_s: float = 3600


_DEFAULTS: Final = DatabaseOptions()


def open_database(
    url: str,
    *,
    options: DatabaseOptions = _DEFAULTS,
    clock: Callable[[], datetime] = utc_now,
    rng: random.Random | None = None,
    sleep: Callable[[float], None] = time.sleep,
    in_list_max: int = IN_LIST_MAX,
) -> Database:
    """The database of an SQLAlchemy URL. Does not connect yet.

    Args:
        url: `sqlite:///relative/path`, `sqlite:////absolute/path`, `postgresql://...` or
            `mysql+pymysql://...`.
        clock: returns the time, naive UTC.
        rng, sleep: choose and wait for the pauses between retries.
        in_list_max: the number of values in one IN list; longer lists are split into chunks.

    Raises:
        UnsupportedDatabase: the URL is malformed, names an engine that berth does not know, or
            one whose driver is not installed.
    """
    try:
        parsed = make_url(url)
    except (exc.ArgumentError, ValueError) as error:
        raise _malformed("") from error
    if "@" in (parsed.host or ""):
        # The driver would quote the rest of the password as the name of a host.
        raise _malformed("; in a password, write %40 for @")
    dialect = _dialect_of(parsed.get_backend_name(), options)
    db = Database(
        dialect.create_engine(parsed, options.pool),
        dialect,
        pool=options.pool,
        clock=clock,
        rng=rng or random.Random(),
        sleep=sleep,
        in_list_max=in_list_max,
        journal_kept=timedelta(seconds=options.journal_s),
    )
    _let_go_after_fork(db)
    return db


def _malformed(hint: str) -> UnsupportedDatabase:
    return UnsupportedDatabase(
        "the database URL in [placement_database]connection is malformed: it must look like "
        f"postgresql://USER:PASSWORD@HOST/DATABASE{hint}"
    )


def _dialect_of(backend: str, options: DatabaseOptions) -> Dialect:
    # Deferred: each imports the dialect of its engine, and a process has one.
    match backend:
        case "sqlite":
            from berth.store.engine.sqlite import SqliteDialect

            return SqliteDialect(synchronous=options.synchronous, read_only=options.read_only)
        case "postgresql":
            from berth.store.engine.postgresql import PostgresqlDialect

            return PostgresqlDialect()
        case "mysql" | "mariadb":
            from berth.store.engine.mysql import MysqlDialect

            return MysqlDialect(sql_mode=options.mysql_sql_mode, answer_s_max=options.answer_s_max)
    raise UnsupportedDatabase(
        f"berth does not know the engine {backend}: the database URL must begin with sqlite://, "
        f"postgresql:// or mysql+pymysql://"
    )


def _let_go_after_fork(db: Database) -> None:
    """Open new connections after a fork: a connection must not serve two processes.

    With SQLite a child must not even close a connection of its parent, so unused connections are
    closed before the fork.
    """
    alive = weakref.ref(db)

    def close() -> None:
        if (parent := alive()) is not None:
            parent.dispose()

    def let_go() -> None:
        if (child := alive()) is not None:
            child.forget_connections()

    os.register_at_fork(before=close, after_in_child=let_go)
