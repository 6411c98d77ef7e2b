# SPDX-License-Identifier: Apache-2.0
"""Builds the application from a configuration: the one place that puts the parts together.

The steps and their order follow spec/operations.md section 4: read the options, open the database,
upgrade its schema if that is allowed, write the standard names, build the index, build the
application.
"""

import contextlib
import importlib.util
import logging
import time
import urllib.parse
from collections.abc import Callable, Sized
from dataclasses import dataclass
from pathlib import Path
from threading import Event, Thread
from typing import Final, TypeVar
from wsgiref.types import WSGIApplication

from oslo_config import cfg

from berth.api.policy import check_policy as check_policy
from berth.config import (
    ConfigurationError,
    DatabaseSettings,
    Settings,
    embedded_database_path,
    read_settings,
)
from berth.edge import probes
from berth.edge.app import create_app
from berth.edge.audit_log import AuditLog
from berth.edge.audit_log import open_file as open_audit_file
from berth.edge.auth.htpasswd import parse_users
from berth.edge.auth.identity import KeystoneUnavailable
from berth.edge.auth.keystone import ask_keystone
from berth.edge.auth.tokens import parse_tokens
from berth.edge.auth.watched_file import read_credentials
from berth.edge.lease_sweeps import sweep_leases
from berth.edge.log_setup import set_up_logging as set_up_logging
from berth.edge.unknown_options import unknown_options
from berth.index import Index
from berth.model.errors import BerthError, DatabaseUnavailable, SchemaError, Unavailable
from berth.store.engine.database import Database
from berth.store.engine.dialect import PoolOptions
from berth.store.engine.opening import DatabaseOptions, open_database
from berth.store.identity import renew_identity, rewrite_identity
from berth.store.usage_counts import recount_usages
from berth.store.usages import is_marked, recount_project_usages
from berth.store.versions import is_current, is_empty, versions_of, why_not_current
from berth.upkeep import schema
from berth.upkeep.integrity.consumers import Owner
from berth.upkeep.integrity.spellings import respell_all
from berth.upkeep.integrity.storage import count_on, odd_texts, used_up
from berth.upkeep.left_state import leave, was_written

LOG = logging.getLogger(__name__)

T = TypeVar("T")

#: Seconds that a request waits for one answer of a database server. An upgrade of a large database
#: waits longer.
_ANSWER_S_MAX: Final = 20

#: Seconds for which a service that stops waits for a database server.
_LEAVE_S_MAX: Final = 5

#: Default of max_pool_size: as many connections as a busy process uses at once. To open and close a
#: connection costs a server more than a query.
_POOL_SIZE: Final = 10

Authentication = Callable[[WSGIApplication], WSGIApplication]


@dataclass(frozen=True, slots=True)
class Credentials:
    """A file of users or tokens."""

    path: Path
    #: The command that adds the first one.
    command: str
    parse: Callable[[str], Sized]

    def count(self) -> int:
        """The number of users or tokens in the file.

        Raises:
            ConfigurationError: the file cannot be read or parsed.
        """
        if not self.path.exists():
            raise ConfigurationError(
                f"there is no file {self.path} yet: create it with `{self.command}`"
            )
        return len(read_credentials(self.path, self.parse))


class NotInThisRelease(ConfigurationError):
    """The configuration uses something that this installation of berth does not support."""


class SchemaNotReady(SchemaError):
    """The operator must upgrade the database before berth can serve it."""


def load_application(
    conf: cfg.ConfigOpts,
    *,
    authentication: Authentication | None = None,
    recount: bool = True,
    stopping: Event | None = None,
) -> WSGIApplication:
    """Build the whole application from a configuration.

    Args:
        conf: parsed, with berth's options registered (`berth.config.options.register_opts`).
        authentication: middleware that identifies the caller; None: the configured strategy's.
        recount: see `open_prepared`; the process that does that also logs what nothing reads.
        stopping: see `create_app`.

    Raises:
        ConfigurationError: an option is missing or wrong.
        NotInThisRelease: the authentication is not supported yet.
        SchemaNotReady: `berth db upgrade` must run first.
        DatabaseUnavailable, IndexUnavailable: the database cannot be opened or read.
    """
    settings = read_settings(conf)
    if settings.log_options:
        conf.log_opt_values(LOG, logging.DEBUG)
    check_supported(settings, authentication=authentication)
    if recount:
        _warn_of_unknown_options(conf)
    db = open_prepared(settings, recount=recount)
    index = Index(db)
    audit_log = _audit_log(settings, index)
    application = create_app(
        settings,
        db,
        index,
        audit_log=audit_log,
        authentication=authentication,
        stopping=stopping,
    )
    # Loaded now, so that the first client does not wait for it.
    _patiently(db, settings.database, index.snapshot)
    sweep_leases(db, settings.lease_sweep_seconds, audit_log)
    return application


def check_before_serving(settings: Settings) -> None:
    """Find mistakes in the configuration before a process serves; log what nothing reads.

    Raises:
        NotInThisRelease: Keystone without its middleware.
        ConfigurationError: an option is wrong, or a file that it names cannot be used.
    """
    check_supported(settings)
    _warn_of_unknown_options(settings.conf)
    check_policy(settings.conf)
    probes.healthcheck(settings.conf)
    if settings.audit_log is not None:
        open_audit_file(settings.audit_log).close()
    # Keystone may start later than berth; clients get 503 until then.
    with contextlib.suppress(KeystoneUnavailable):
        check_keystone(settings)
    if credentials := credentials_of(settings):
        credentials.count()


def _warn_of_unknown_options(conf: cfg.ConfigOpts) -> None:
    for sentence in unknown_options(conf):
        LOG.warning("%s", sentence)


def check_supported(settings: Settings, *, authentication: Authentication | None = None) -> None:
    """Refuse a configuration that this installation does not support, before opening anything.

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
    """Check that Keystone validates tokens, if the configuration uses Keystone.

    Raises:
        ConfigurationError: the configuration is wrong, so berth cannot try.
        KeystoneUnavailable: it does not.
    """
    if settings.auth_strategy == "keystone":
        ask_keystone(settings.conf)


def credentials_of(settings: Settings) -> Credentials | None:
    """The file of users or tokens; None if the authentication has none."""
    match settings.auth_strategy:
        case "http_basic":
            return Credentials(settings.user_file, "berth user add", parse_users)
        case "token":
            return Credentials(settings.token_file, "berth token create", parse_tokens)
        case _:
            return None


def is_absent(settings: Settings) -> bool:
    """Whether the database is an SQLite file that does not exist and that berth would create."""
    path = _sqlite_path(settings.database)
    return (
        path is not None
        and not path.exists()
        and (path.parent.is_dir() or path == embedded_database_path())
    )


def leave_database(settings: Settings) -> None:
    """Note the state in which the service leaves the database, so that the next start sees whether
    another program has written meanwhile; and leave an SQLite database as a single file, if no
    other process has it open.

    Workers exit without closing their connections. Closing the last connection writes the
    write-ahead log back into the file, so that the file of a stopped service can be copied.
    """
    leaving = Thread(target=_leave, args=(settings,), daemon=True)
    leaving.start()
    # An unresponsive database server must not keep the service from exiting.
    leaving.join(None if settings.database.is_sqlite else _LEAVE_S_MAX)


def _leave(settings: Settings) -> None:
    with contextlib.suppress(BerthError, ConfigurationError):
        db = open_store(settings)
        try:
            if is_current(db):
                leave(db)
        finally:
            db.dispose()


def open_store(
    settings: Settings, *, answer_s_max: int | None = None, read_only: bool = False
) -> Database:
    """Open the configured database, and create the directory of berth's default SQLite file.

    Args:
        answer_s_max, read_only: see `DatabaseOptions`.

    Raises:
        ConfigurationError: the directory of an SQLite file does not exist.
        DatabaseUnavailable: the database cannot be opened.
    """
    path = _sqlite_path(settings.database)
    if path is not None:
        _ensure_folder(path)
    options = _options(settings, answer_s_max, read_only=read_only)
    return open_database(settings.database.url, options=options)


def open_prepared(settings: Settings, *, recount: bool = True) -> Database:
    """Open the configured database with this release's schema.

    Creates the schema in an empty SQLite database; with sync_on_startup, upgrades any database.

    Args:
        recount: compare the sums of usage with all allocations, in case another program wrote some,
            and create a missing SQLite file. One process must do this before any serves; it takes
            half a second for a million allocations.

    Raises:
        SchemaNotReady: `berth db upgrade` must run first.
        DatabaseUnavailable: the database cannot be reached or written.
    """
    path = _sqlite_path(settings.database)
    if not recount and path is not None and not path.exists():
        # The other workers have the removed file open; this one would serve an empty fleet.
        raise DatabaseUnavailable(f"The database file {path} no longer exists")
    return _opened(settings, lambda db: _prepare(db, settings, recount=recount))


def _prepare(db: Database, settings: Settings, *, recount: bool) -> None:
    """Prepare a database for serving; repeatable."""
    if settings.database.sync_on_startup or is_empty(db):
        schema.upgrade(db, owner=owner_of(settings))
    else:
        _refuse_other_schema(db, settings.database)
        if recount and was_written(db):
            renew_identity(db)
            LOG.warning(
                "Another program wrote to %s while berth was stopped: the database has a new "
                "identity, and whoever follows the fleet reads it again",
                settings.database.masked_url,
            )
            for sentence in respell_all(db):
                LOG.warning("%s", sentence)
        if recount and (wrong := recount_usages(db)):
            LOG.warning(
                "Recounted %d wrong sums of usage: another program wrote to %s, which must not "
                "happen while berth serves",
                wrong,
                settings.database.masked_url,
            )
        for sentence in [*count_on(db), *_limits_of(db)] if recount else ():
            LOG.warning("%s", sentence)
        if recount and is_marked(db):
            recount_project_usages(db)
    schema.sync_standard_names(db)
    if recount:
        rewrite_identity(db)


def _limits_of(db: Database) -> list[str]:
    """A sentence for each text that the database cannot store, and each counter near its end."""
    odd = odd_texts(db)
    return [*(f"{each.sentence}; {each.advice}" for each in odd), *used_up(db)]


def open_read_only(settings: Settings) -> Database:
    """Open the configured database read-only.

    Raises:
        SchemaNotReady: it does not have this release's schema, or has none.
        DatabaseUnavailable: it cannot be reached.
    """
    database = settings.database
    return _opened(settings, lambda db: _refuse_other_schema(db, database), read_only=True)


def _opened(
    settings: Settings, prepare: Callable[[Database], None], *, read_only: bool = False
) -> Database:
    """Open the configured database to serve it, and prepare it once it can be reached."""
    db = open_store(settings, answer_s_max=_ANSWER_S_MAX, read_only=read_only)
    if settings.database.slave_connection is not None:
        LOG.warning(
            "[placement_database]slave_connection is ignored: a replica that lags would return "
            "data older than what berth has confirmed"
        )
    try:
        _patiently(db, settings.database, lambda: prepare(db))
    except BaseException:
        db.dispose()
        raise
    return db


def _refuse_other_schema(db: Database, database: DatabaseSettings) -> None:
    if not is_current(db):
        raise SchemaNotReady(
            f"cannot serve the database {database.masked_url}: {why_not_current(versions_of(db))}"
        )


def _patiently(db: Database, database: DatabaseSettings, step: Callable[[], T]) -> T:
    """Run a step with a database that may still be starting, or that fails and comes back.

    Retries the whole step up to [placement_database]max_retries times.

    Raises:
        DatabaseUnavailable, IndexUnavailable: the database cannot be reached, or rejects berth.
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


def owner_of(settings: Settings) -> Owner:
    """The owner of consumers that clients create without a project or user."""
    return Owner(settings.incomplete_consumer_project_id, settings.incomplete_consumer_user_id)


def build_application(settings: Settings, db: Database) -> WSGIApplication:
    """Build the application over a prepared database; loads its index on first use."""
    index = Index(db)
    return create_app(settings, db, index, audit_log=_audit_log(settings, index))


def _audit_log(settings: Settings, index: Index) -> AuditLog | None:
    return None if settings.audit_log is None else AuditLog(settings.audit_log, index)


def _sqlite_path(database: DatabaseSettings) -> Path | None:
    """The file of an SQLite database; None for another engine, or a database in memory."""
    if not database.is_sqlite:
        return None
    path = urllib.parse.unquote(database.url.partition("?")[0].partition(":///")[2])
    return Path(path) if path and path != ":memory:" else None


def _ensure_folder(path: Path) -> None:
    if path == embedded_database_path():
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    elif not path.parent.is_dir():
        raise ConfigurationError(
            f"cannot create the database {path}: there is no directory {path.parent}; create it, "
            f"or correct [placement_database]connection"
        )


def _options(settings: Settings, answer_s_max: int | None, *, read_only: bool) -> DatabaseOptions:
    database = settings.database
    return DatabaseOptions(
        synchronous=database.sqlite_synchronous,
        mysql_sql_mode=database.mysql_sql_mode,
        answer_s_max=answer_s_max,
        read_only=read_only,
        journal_s=settings.journal_seconds,
        pool=PoolOptions(
            size=database.max_pool_size or _POOL_SIZE,
            max_overflow=database.max_overflow,
            timeout_s=database.pool_timeout,
            recycle_s=database.connection_recycle_time,
        ),
    )
