# SPDX-License-Identifier: Apache-2.0
"""From a configuration to a running application: the one place that puts the parts together.

The steps and their order are those of spec/operations.md section 4: read the options, open the
database, bring its schema up to date where that is allowed, write the standard names, build the
index, build the application.
"""

import contextlib
import importlib.util
import logging
import time
import urllib.parse
from collections.abc import Callable, Sized
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeVar
from wsgiref.types import WSGIApplication

from oslo_config import cfg

from berth.api import operations
from berth.api.app import create_app
from berth.api.auth.htpasswd import parse_users
from berth.api.auth.keystone import ask_keystone
from berth.api.auth.token_file import parse_tokens
from berth.api.auth.watched_file import read_credentials
from berth.api.log_setup import set_up_logging as set_up_logging
from berth.api.policy import check_policy as check_policy
from berth.config import (
    ConfigurationError,
    DatabaseSettings,
    Settings,
    embedded_database_path,
    read_settings,
)
from berth.index import Index
from berth.model.errors import BerthError, DatabaseUnavailable, SchemaError, Unavailable
from berth.store.engine.database import Database
from berth.store.engine.dialect import PoolOptions
from berth.store.engine.opening import DatabaseOptions, open_database
from berth.upkeep import schema

LOG = logging.getLogger(__name__)

T = TypeVar("T")

#: Requests do not wait longer for one answer of a server; an upgrade of a large database does.
_ANSWER_S_MAX: Final = 20

#: Connections that a process keeps for reading, unless the configuration says: as many as are used
#: at a time in a busy one. Each that is opened and closed again costs a server more than a query.
_POOL_SIZE: Final = 10

Authentication = Callable[[WSGIApplication], WSGIApplication]


@dataclass(frozen=True, slots=True)
class Credentials:
    """A file of users or of tokens."""

    path: Path
    #: What puts the first one into it.
    command: str
    parse: Callable[[str], Sized]

    def count(self) -> int:
        """How many there are.

        Raises:
            ConfigurationError: it cannot be read or understood.
        """
        if not self.path.exists():
            raise ConfigurationError(f"there is no file {self.path} yet: `{self.command}` makes it")
        return len(read_credentials(self.path, self.parse))


class NotInThisRelease(ConfigurationError):
    """The configuration asks for something that this release of berth does not have."""


class SchemaNotReady(SchemaError):
    """The database has to be upgraded by its operator before it can be served."""


def load_application(
    conf: cfg.ConfigOpts, *, authentication: Authentication | None = None, recount: bool = True
) -> WSGIApplication:
    """Build the whole application from a configuration.

    Args:
        conf: parsed, with berth's options registered (`berth.config.options.register_opts`).
        authentication: the middleware that says who calls; none: the configured strategy's.
        recount: see `open_prepared`.

    Raises:
        ConfigurationError: an option is missing or wrong.
        NotInThisRelease: the authentication is not supported yet.
        SchemaNotReady: `berth db upgrade` has to run first.
        DatabaseUnavailable, IndexUnavailable: the database cannot be opened, or not be read.
    """
    settings = read_settings(conf)
    if settings.log_options:
        conf.log_opt_values(LOG, logging.DEBUG)
    check_supported(settings, authentication=authentication)
    db = open_prepared(settings, recount=recount)
    index = Index(db)
    application = create_app(settings, db, index, authentication=authentication)
    # Loaded before anybody asks: the first caller should not wait for it.
    _patiently(db, settings.database, index.snapshot)
    return application


def check_supported(settings: Settings, *, authentication: Authentication | None = None) -> None:
    """Refuse to serve with what this release does not have, before anything is opened.

    Raises:
        NotInThisRelease: Keystone without its middleware.
    """
    if (
        settings.auth_strategy == "keystone"
        and authentication is None
        and importlib.util.find_spec("keystonemiddleware") is None
    ):
        raise NotInThisRelease(
            "[api]auth_strategy = keystone needs the package keystonemiddleware, which is not "
            "installed: pip install 'berthd[keystone]', or set auth_strategy to http_basic or token"
        )


def check_keystone(settings: Settings) -> None:
    """Ask Keystone whether it would validate tokens, where it is to.

    Raises:
        ConfigurationError: it cannot even be asked.
        KeystoneUnavailable: it would not.
    """
    if settings.auth_strategy == "keystone":
        ask_keystone(settings.conf)


def check_health(settings: Settings) -> None:
    """Set the health check up once, so that what cannot be is told of before anything is served.

    Raises:
        ConfigurationError: the `[healthcheck]` group asks for it.
    """
    operations.healthcheck(settings.conf)


def credentials_of(settings: Settings) -> Credentials | None:
    """The file by which callers are known; None where the authentication has none."""
    match settings.auth_strategy:
        case "http_basic":
            return Credentials(settings.user_file, "berth user add", parse_users)
        case "token":
            return Credentials(settings.token_file, "berth token create", parse_tokens)
        case _:
            return None


def check_credentials(settings: Settings) -> None:
    """Read the file of users or of tokens, if the authentication has one.

    Raises:
        ConfigurationError: it cannot be read or understood.
    """
    if credentials := credentials_of(settings):
        credentials.count()


def is_absent(settings: Settings) -> bool:
    """Whether the database is an SQLite file that opening would make, in a place where it may."""
    path = _sqlite_path(settings.database)
    return (
        path is not None
        and not path.exists()
        and (path.parent.is_dir() or path == embedded_database_path())
    )


def settle(settings: Settings) -> None:
    """Leave an SQLite database as a single file, if nobody else has it open.

    Workers end without closing their connections. Who closes the last one writes the write-ahead
    log back into the file, so that a stopped service's database can be copied as it lies there.
    """
    if _sqlite_path(settings.database) is None:
        return  # nor does a server that is silent keep the service from ending
    with contextlib.suppress(BerthError, ConfigurationError):
        db = open_store(settings)
        try:
            schema.is_current(db)
        finally:
            db.dispose()


def open_store(
    settings: Settings, *, answer_s_max: int | None = None, to_look_only: bool = False
) -> Database:
    """Open the configured database as it is, creating the file's folder if it is berth's own.

    Args:
        answer_s_max, to_look_only: see `DatabaseOptions`.

    Raises:
        ConfigurationError: the folder of an SQLite file does not exist.
        DatabaseUnavailable: it cannot be opened.
    """
    path = _sqlite_path(settings.database)
    if path is not None:
        _ensure_folder(path)
    options = _options(settings.database, answer_s_max, to_look_only=to_look_only)
    return open_database(settings.database.url, options=options)


def open_prepared(settings: Settings, *, recount: bool = True) -> Database:
    """Open the configured database with a schema fit to serve from.

    An empty SQLite database is prepared on the spot; any database is when sync_on_startup says so.

    Args:
        recount: compare the sums of usage with all allocations, in case something else wrote some,
            and make an SQLite file where there is none. One process has to, before any serves: half
            a second for a million allocations.

    Raises:
        SchemaNotReady: `berth db upgrade` has to run first.
        DatabaseUnavailable: it cannot be reached, or not be written.
    """
    path = _sqlite_path(settings.database)
    if not recount and path is not None and not path.exists():
        # The others have one open that was removed: this one would serve an empty fleet.
        raise DatabaseUnavailable(f"The database {path} is not there any more")
    db = open_store(settings, answer_s_max=_ANSWER_S_MAX)
    _warn_of_replica(settings.database)
    try:
        _patiently(db, settings.database, lambda: _prepare(db, settings, recount=recount))
    except BaseException:
        db.dispose()
        raise
    return db


def _prepare(db: Database, settings: Settings, *, recount: bool) -> None:
    """All that is done with a database before it is served; it may be done again."""
    if settings.database.sync_on_startup or schema.is_empty(db):
        schema.upgrade(db, owner=owner_of(settings))
    else:
        _refuse_other_schema(db, settings.database)
        if recount and (wrong := schema.recount_usages(db)):
            LOG.warning(
                "%d sums of usage were wrong and have been counted anew: something else than "
                "berth wrote to %s, which must not happen while berth serves",
                wrong,
                settings.database.masked_url,
            )
    schema.sync_standard_names(db)
    if recount:
        schema.ensure_writable(db)


def open_to_look(settings: Settings) -> Database:
    """Open the configured database with a schema fit to serve from, and leave it as it is.

    Raises:
        SchemaNotReady: it has no such schema; not even an empty one is prepared.
        DatabaseUnavailable: it cannot be reached.
    """
    db = open_store(settings, answer_s_max=_ANSWER_S_MAX, to_look_only=True)
    _warn_of_replica(settings.database)
    try:
        _patiently(db, settings.database, lambda: _refuse_other_schema(db, settings.database))
    except BaseException:
        db.dispose()
        raise
    return db


def _refuse_other_schema(db: Database, database: DatabaseSettings) -> None:
    if not schema.is_current(db):
        raise SchemaNotReady(
            f"the database {database.masked_url} cannot be served: "
            f"{schema.why_not_current(schema.versions_of(db))}"
        )


def _warn_of_replica(database: DatabaseSettings) -> None:
    if database.slave_connection is not None:
        LOG.warning(
            "[placement_database]slave_connection is not used: every answer of berth holds all "
            "that was acknowledged before, which a replica that lags behind cannot promise"
        )


def _patiently(db: Database, database: DatabaseSettings, step: Callable[[], T]) -> T:
    """Do something with a database that may be starting, or falls meanwhile and comes back.

    The whole step is tried again, as often as [placement_database]max_retries says.

    Raises:
        DatabaseUnavailable, IndexUnavailable: the database cannot be reached, or refuses us.
    """
    attempts = 0
    while True:
        failure: Unavailable = DatabaseUnavailable(
            f"The database cannot be used at the moment: {database.masked_url} cannot be reached"
        )
        try:
            if db.reach():
                return step()
        except Unavailable as error:
            if not db.may_come_back(error):
                raise
            failure = error
        attempts += 1
        if 0 <= database.max_retries < attempts:
            raise failure
        LOG.warning(
            "%s cannot be reached; trying again in %d s",
            database.masked_url,
            database.retry_interval,
        )
        time.sleep(database.retry_interval)


def owner_of(settings: Settings) -> schema.Owner:
    """Whose the consumers are that were written without saying so."""
    return schema.Owner(
        settings.incomplete_consumer_project_id, settings.incomplete_consumer_user_id
    )


def build_application(settings: Settings, db: Database) -> WSGIApplication:
    """Build the application over a prepared database; its index is loaded when it is needed."""
    return create_app(settings, db, Index(db))


def _sqlite_path(database: DatabaseSettings) -> Path | None:
    """The file of an SQLite database; None for another engine, or a database in memory."""
    if database.engine != "sqlite":
        return None
    path = urllib.parse.unquote(database.url.partition("?")[0].partition(":///")[2])
    return Path(path) if path and path != ":memory:" else None


def _ensure_folder(path: Path) -> None:
    if path == embedded_database_path():
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    elif not path.parent.is_dir():
        raise ConfigurationError(
            f"the database is to be {path}, and there is no folder {path.parent}: create it, or "
            f"correct [placement_database]connection"
        )


def _options(
    database: DatabaseSettings, answer_s_max: int | None, *, to_look_only: bool
) -> DatabaseOptions:
    return DatabaseOptions(
        synchronous=database.sqlite_synchronous,
        mysql_sql_mode=database.mysql_sql_mode,
        answer_s_max=answer_s_max,
        to_look_only=to_look_only,
        pool=PoolOptions(
            size=database.max_pool_size or _POOL_SIZE,
            max_overflow=database.max_overflow,
            timeout_s=database.pool_timeout,
            recycle_s=database.connection_recycle_time,
        ),
    )
