# SPDX-License-Identifier: Apache-2.0
"""Opening, reading, writing, waiting for locks, and clear errors."""

from __future__ import annotations

import gc
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event
from weakref import ref

import pytest
from sqlalchemy import event, func, select, text
from sqlalchemy.exc import OperationalError, SAWarning

from berth.model.errors import DatabaseUnavailable, UnsupportedDatabase
from berth.model.provider import ProviderFilters
from berth.store.engine import database
from berth.store.engine.database import Database
from berth.store.engine.dialect import PoolOptions
from berth.store.engine.opening import DatabaseOptions, open_database
from berth.store.engine.prepared import insert_of
from berth.store.engine.tables import projects, resource_providers, traits
from berth.store.engine.transaction import Tx
from berth.store.providers import get_provider
from tests.forking import in_child
from tests.sql_reads import list_providers
from tests.store.fleet import add_provider, provider
from tests.store.together import race

#: A file; servers are lost and found in tests/faults.
pytestmark = pytest.mark.engines("sqlite")


def test_a_parameter_that_sqlite_ignores_is_one_line_of_the_log(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, recwarn: pytest.WarningsRecorder
) -> None:
    """The line names it, and SQLAlchemy's own warning is not logged."""
    open_database(f"sqlite:///{tmp_path}/berth.db?cache=private&timeout=3").dispose()
    assert [record.getMessage() for record in caplog.records] == [
        "SQLite ignores cache in the URL of the database"
    ]
    # Not those of things that other tests have left, and that are collected now.
    assert not [each for each in recwarn if issubclass(each.category, SAWarning)]


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("sqlite://", "needs an SQLite database in a file"),
        ("sqlite:///:memory:", "needs an SQLite database in a file"),
        ("oracle://u:secret@h/db", "does not know the engine oracle"),
        ("nonsense", "is malformed: it must look like"),
        ("postgresql://u:se@cret@h/db", "is malformed: .*write %40 for @"),
    ],
)
def test_urls_that_berth_cannot_stand_on(url: str, words: str) -> None:
    """The error is one sentence without the password."""
    with pytest.raises(UnsupportedDatabase, match=words) as refusal:
        open_database(url)
    assert "cret" not in str(refusal.value)


def test_a_file_that_cannot_be_opened(tmp_path: Path) -> None:
    """The error is one sentence, not the driver's traceback."""
    missing = open_database(f"sqlite:///{tmp_path / 'nowhere' / 'berth.db'}")
    (tmp_path / "text.db").write_text("no database at all, but long enough to be looked at" * 20)
    nonsense = open_database(f"sqlite:///{tmp_path / 'text.db'}")
    for db in (missing, nonsense):
        with pytest.raises(DatabaseUnavailable):
            list_providers(db, ProviderFilters())
        with pytest.raises(DatabaseUnavailable):
            add_provider(db, 1)
        with pytest.raises(DatabaseUnavailable):
            db.commit_stamp()
        db.dispose()


def test_how_connections_are_set_up(db: Database, tmp_path: Path) -> None:
    """Write-ahead log, foreign keys, and durable commits unless the operator configures
    otherwise."""
    durable = open_database(f"sqlite:///{tmp_path / 'durable.db'}")
    for each, sync in ((db, 0), (durable, 2)):
        with each.read() as tx:
            pragmas = [
                tx.connection.scalar(text(f"PRAGMA {name}"))
                for name in ("journal_mode", "synchronous", "foreign_keys")
            ]
        assert pragmas == ["wal", sync, 1]
    durable.dispose()


def test_several_may_connect_first(tmp_path: Path) -> None:
    """To a file that does not exist yet: SQLite refuses some of those that switch its mode."""
    for number in range(20):
        several = [open_database(f"sqlite:///{tmp_path / f'{number}.db'}") for _ in range(8)]
        assert race(*(db.commit_stamp for db in several)) == [None] * 8
        for db in several:
            db.dispose()


@pytest.mark.engines("postgresql", "mariadb", "galera")
def test_how_sessions_of_servers_are_set_up(db: Database) -> None:
    """A writer waits five seconds for a lock: by default PostgreSQL waits without limit, and
    MariaDB longer than most clients. On MariaDB, resource class 0 can be stored, and values that do
    not fit are refused."""
    limit = text(
        "SELECT setting::int / 1000 FROM pg_settings WHERE name = 'lock_timeout'"
        if db.engine.dialect.name == "postgresql"
        else "SELECT @@SESSION.innodb_lock_wait_timeout"
    )
    assert db.write(lambda tx: tx.connection.execute(limit).scalar_one()) == 5
    if db.engine.dialect.name != "postgresql":
        with db.read() as tx:
            modes = tx.connection.execute(text("SELECT @@SESSION.sql_mode")).scalar_one()
        assert {"NO_AUTO_VALUE_ON_ZERO", "STRICT_ALL_TABLES"} <= set(modes.split(","))


@pytest.mark.engines("mariadb", "galera")
def test_a_write_whose_transaction_the_server_has_taken_back_is_run_again(db: Database) -> None:
    """A node of a cluster rolls back without an error, and COMMIT alone would then succeed."""
    insert = insert_of(projects, "external_id", "created_at")
    runs: list[Tx] = []

    def unit(tx: Tx) -> None:
        runs.append(tx)
        tx.change(insert, {"external_id": "tenant", "created_at": tx.now})
        if len(runs) == 1:
            tx._run.run("ROLLBACK")

    db.write(unit)
    assert len(runs) == 2
    with db.read() as tx:
        assert tx.rows(select(projects.c.external_id), {}) == [("tenant",)]


@pytest.mark.engines("postgresql")
def test_a_connection_to_postgresql_prepares_a_statement_once(db: Database) -> None:
    """The server already has the statements of a write from the previous one."""
    prepared = text("SELECT count(*) FROM pg_prepared_statements WHERE name LIKE 'berth_%'")
    counts: list[int] = []
    for number in range(1, 4):
        add_provider(db, number, VCPU=8)
        counts.append(db.write(lambda tx: tx.connection.execute(prepared).scalar_one()))
    assert 0 < counts[1] == counts[2]


@pytest.mark.engines("sqlite", "postgresql", "mariadb")
def test_a_reader_sees_one_state_throughout(db: Database, other: Database) -> None:
    """It does not see later commits, and neither side waits."""
    add_provider(db, 1)
    count = select(func.count()).select_from(resource_providers)
    with db.read() as tx:
        before = tx.rows(count, {})
        add_provider(other, 2)
        assert tx.rows(count, {}) == before == [(1,)]
        assert tx.connection.scalar(count) == 1
    assert len(list_providers(db, ProviderFilters())) == 2


def test_an_error_leaves_nothing(db: Database) -> None:
    """Nothing is committed, whatever the error."""

    def fails(tx: Tx) -> None:
        tx.connection.execute(text("DELETE FROM resource_providers"))
        raise KeyError

    add_provider(db, 1)
    with pytest.raises(KeyError):
        db.write(fails)
    assert get_provider(db, provider(1)).name == "p1"


class FindsItLocked:
    """A unit of work that finds the database locked this many times before it succeeds."""

    def __init__(self, times: int, code: int = sqlite3.SQLITE_BUSY) -> None:
        self.times = times
        self.error = sqlite3.OperationalError("database is locked")
        self.error.sqlite_errorcode = code
        self.transactions: list[Tx] = []

    def __call__(self, tx: Tx) -> str:
        self.transactions.append(tx)
        if len(self.transactions) <= self.times:
            raise OperationalError("BEGIN IMMEDIATE", {}, self.error)
        return "done"


@pytest.mark.parametrize(
    "code",
    [
        *(sqlite3.SQLITE_BUSY, sqlite3.SQLITE_BUSY_RECOVERY, sqlite3.SQLITE_BUSY_SNAPSHOT),
        sqlite3.SQLITE_LOCKED,
    ],
)
def test_a_lock_is_waited_for_a_few_times(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    """With a random pause and a new transaction each time, up to a limit; whatever it is for."""
    monkeypatch.setattr(database, "_BUSY_ATTEMPTS", 3)
    pauses: list[float] = []
    db = open_database(f"sqlite:///{tmp_path / 'berth.db'}", sleep=pauses.append)
    unit = FindsItLocked(2, code)
    assert db.write(unit) == "done"
    assert len({id(tx) for tx in unit.transactions}) == 3
    assert len(set(pauses)) == 2
    assert db.retries["busy"] == 2
    with pytest.raises(DatabaseUnavailable, match="locked"):
        db.write(FindsItLocked(3))
    db.dispose()


def test_a_writer_asks_often_for_a_lock_that_another_process_has(db: Database) -> None:
    """The writer continues as soon as the lock is free, and the connection's settings are
    unchanged."""
    another = sqlite3.connect(str(db.engine.url.database), isolation_level=None)
    another.execute("BEGIN IMMEDIATE")
    asked_again = Event()

    def note(_connection: object, _cursor: object, statement: str, *_: object) -> None:
        asked.append(statement)
        if asked.count("BEGIN IMMEDIATE") > 2:
            asked_again.set()

    asked: list[str] = []
    event.listen(db.engine, "before_cursor_execute", note)
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(add_provider, db, 1)
        assert asked_again.wait(timeout=30)
        another.execute("ROLLBACK")
        waiting.result(timeout=30)
    another.close()
    assert get_provider(db, provider(1)).name == "p1"
    with db.read() as tx:
        assert tx.connection.execute(text("PRAGMA busy_timeout")).scalar_one() == 5000


def test_many_threads_share_a_database(db: Database) -> None:
    """There are more readers and writers than connections; however small the pool is, none of it is
    for the standing ones."""
    pool = PoolOptions(size=1, max_overflow=0, timeout_s=20)
    small = open_database(str(db.engine.url), options=DatabaseOptions(synchronous=False, pool=pool))
    small.commit_stamp()

    def work(number: int) -> str:
        add_provider(small, number)
        return get_provider(small, provider(number)).name

    with ThreadPoolExecutor(20) as threads:
        assert set(threads.map(work, range(1, 41))) == {f"p{number}" for number in range(1, 41)}
    small.dispose()


def test_no_connection_crosses_a_fork(db: Database) -> None:
    """Servers fork after loading the application; the parent's connections keep working. SQLite: a
    child must not even close what its parent opened."""
    add_provider(db, 1)
    db.commit_stamp()
    log = Path(f"{db.engine.url.database}-wal")

    def writes() -> bool:
        db.commit_stamp()
        add_provider(db, 2)
        return True

    assert log.exists()
    assert in_child(lambda: True)
    assert not log.exists(), "closed before the fork"
    add_provider(db, 3)
    assert in_child(writes)
    add_provider(db, 4)
    assert len(list_providers(db, ProviderFilters())) == 4


def test_a_disposed_database_can_be_used_again(db: Database) -> None:
    """It opens new connections; the files beside the database are deleted in between. What one
    connection says of commits means nothing for the next: both may return the same number, although
    another process committed in between."""
    add_provider(db, 1)
    before = db.commit_stamp()
    assert db.commit_stamp() == before
    log = Path(f"{db.engine.url.database}-wal")
    assert log.exists()
    db.dispose()
    assert not log.exists()
    assert db.commit_stamp() != before
    assert get_provider(db, provider(1)).name == "p1"


def test_a_forked_child_has_a_row_of_the_clock_of_its_own(db: Database) -> None:
    """The row shows whether a commit took place, so no other process may change it."""
    count = text("SELECT count(*) FROM berth_writer")
    add_provider(db, 1)
    with db.read() as tx:
        before = tx.connection.scalar(count)
    db.forget_connections()
    add_provider(db, 2)
    with db.read() as tx:
        assert tx.connection.scalar(count) == before + 1


def test_a_child_does_not_wait_for_a_thread_of_its_parent(db: Database) -> None:
    """The thread that used a dedicated connection at the fork does not run in the child, so it
    never releases its lock there."""
    with db._watching.use(lambda run: None), db._writing.use(lambda run: None):
        db.forget_connections()
        assert not db._watching._lock.locked()
        assert not db._writing._lock.locked()


@pytest.mark.engines("postgresql")
def test_a_closed_connection_is_forgotten(db: Database) -> None:
    """Statements that were prepared on it do not keep it; a process may reconnect for ever."""
    with db.read() as tx:
        tx.rows(select(traits.c.id).limit(1), {})
        driver = ref(tx.connection.connection.dbapi_connection)
        del tx
    assert driver() is not None, "it is in the pool"
    db.dispose()
    gc.collect()
    assert driver() is None
