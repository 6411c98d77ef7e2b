# SPDX-License-Identifier: Apache-2.0
"""Refused and failed copies: the message, and that nothing was changed."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest
from sqlalchemy import text

from berth.model.errors import DatabaseUnavailable, SchemaError
from berth.store.engine.database import Database, utc_now
from berth.store.versions import is_current, is_empty
from berth.upkeep import schema
from berth.upkeep.copying import CopyRefused, Difference, copy_database
from tests.copying.conftest import New
from tests.copying.contents import contents
from tests.fresh import opened_at
from tests.store.fleet import add_provider


def run(db: Database, *statements: str) -> None:
    db.write(
        lambda tx: [tx.connection.execute(text(statement)) for statement in statements] and None
    )


def refused(source: Database, target: Database, words: str, *, force: bool = False) -> None:
    """A copy is refused with a message."""
    with pytest.raises(CopyRefused, match=words):
        copy_database(source, target, report=lambda *_: None, force=force, chunk_rows=2)


def test_a_target_with_data_is_left_alone(source: Database, target: Database) -> None:
    """It may be the only copy of its data; a custom trait is data, standard ones are not."""
    schema.upgrade(target)
    schema.sync_standard_names(target)
    run(target, "INSERT INTO traits (name) VALUES ('CUSTOM_MINE')")
    refused(source, target, "there are rows in traits")
    add_provider(target, 1)
    before = contents(target)
    refused(source, target, "is not empty .there are rows in .*resource_providers.")
    assert contents(target) == before


def test_a_prepared_target_is_empty(source: Database, target: Database) -> None:
    """`berth db upgrade` may have been run on it before."""
    schema.upgrade(target)
    schema.sync_standard_names(target)
    copy_database(source, target, report=lambda *_: None)
    assert contents(target) == contents(source)


def test_the_tables_of_another_program_are_left_alone(source: Database, target: Database) -> None:
    """A wrong URL must not put berth's tables into another program's database."""
    run(target, "CREATE TABLE bookmarks (id INTEGER)")
    with pytest.raises(SchemaError, match="bookmarks"):
        copy_database(source, target, report=lambda *_: None)


def test_neither_itself_nor_nothing_is_copied(source: Database, target: Database, new: New) -> None:
    """However its URL is written; and without tables there is nothing to copy."""
    refused(source, source, "the same database")
    refused(new("sqlite"), target, "is at None.*berth db upgrade")


def test_two_servers_of_one_machine_are_not_the_same_database() -> None:
    """As after an upgrade of the server, which listens on another port meanwhile."""
    source, target = (
        opened_at(f"postgresql://u:p@127.0.0.1:{port}/placement?connect_timeout=1")
        for port in (1, 2)
    )
    with pytest.raises(DatabaseUnavailable):
        copy_database(source, target, report=lambda *_: None)
    for db in (source, target):
        db.dispose()


def test_a_source_that_the_original_left_is_copied(source: Database, target: Database) -> None:
    """berth's own tables are computed, so they need not exist."""
    for table in ("berth_usages", "berth_writer", "berth_journal", "berth_alembic_version"):
        run(source, f"DROP TABLE {table}")
    copy_database(source, target, report=lambda *_: None)
    assert contents(target) == contents(source)
    assert is_current(target) and schema.check(target) == []


def test_a_source_that_was_written_lately_is_probably_served(
    source: Database, target: Database
) -> None:
    """A minute later it is not; programs other than berth count too."""
    add_provider(source, 200)
    run(
        source,
        "INSERT INTO berth_writer (id, seq, trimmed_seq, updated_at)"
        f" VALUES (99, 0, 0, '{ago(timedelta(days=2))}')",
    )
    refused(source, target, "within the last minute.*--force")
    assert is_empty(target)
    run(source, f"UPDATE berth_writer SET updated_at = '{ago(timedelta(minutes=2))}'")
    copy_database(source, target, report=lambda *_: None)
    assert contents(target) == contents(source)


def ago(time: timedelta) -> str:
    """A time in the past, in SQLite's form."""
    moment: datetime = utc_now() - time
    return moment.isoformat(" ", "microseconds")


def test_whoever_writes_meanwhile_is_noticed_by_the_clock(
    source: Database, target: Database
) -> None:
    """berth counts each of its commits."""

    def write(what: str, done: int, _total: int) -> None:
        if what == "comparing users" and done:
            add_provider(source, 200)

    with pytest.raises(CopyRefused, match=r"sqlite.* has changed since the copy began"):
        copy_database(source, target, report=write)
    assert not is_current(target)


@pytest.mark.parametrize(
    ("statement", "words"),
    [
        (
            "UPDATE allocations SET used = 99 WHERE id = 2005",
            "allocations, row 2005: used is 99 in the source and 2 in the target",
        ),
        (
            "DELETE FROM allocations WHERE id = 2005",
            "allocations, row 2005: only the target has it",
        ),
        (
            "DELETE FROM allocations WHERE id > 5001",
            "allocations, row 5002: only the target has it",
        ),
        (
            "INSERT INTO allocations (id, resource_provider_id, consumer_id, resource_class_id,"
            " used) VALUES (1, 1, 'x', 0, 1)",
            "allocations, row 1: only the source has it",
        ),
        (
            "INSERT INTO resource_provider_traits (resource_provider_id, trait_id) VALUES (3, 5)",
            "resource_provider_traits, row 3, 5: only the source has it",
        ),
        (
            "UPDATE inventories SET allocation_ratio = 1.2345678 WHERE id = 2",
            "inventories, row 2: allocation_ratio is 1.2345678 in the source and",
        ),
    ],
)
def test_whoever_writes_meanwhile_without_a_clock_is_noticed_by_the_rows(
    source: Database, target: Database, statement: str, words: str
) -> None:
    """Both sides are read back and compared, and the error names the row that differs."""

    def write(what: str, _done: int, _total: int) -> None:
        if what == "comparing allocations":
            run(source, statement)
            statements.clear()

    statements = [statement]
    with pytest.raises(Difference) as caught:
        copy_database(
            source,
            target,
            report=lambda *told: write(*told) if statements else None,
            chunk_rows=2,
        )
    assert str(caught.value).startswith(words)
    assert not is_current(target)


def test_references_to_nothing_are_said_before_anything_is_copied(
    source: Database, target: Database
) -> None:
    """SQLite allows them unless a program enables the check."""
    with source.engine.connect() as connection:
        driver = connection.connection
        driver.execute("PRAGMA foreign_keys = OFF")
        driver.execute("UPDATE resource_providers SET parent_provider_id = 999 WHERE id = 3")
        driver.commit()
    refused(source, target, "resource_providers: 1 rows refer by parent_provider_id .* as 999")
    assert sum(map(len, contents(target).values())) == 0


@pytest.mark.engines("postgresql", "mariadb")
@pytest.mark.parametrize(
    ("change", "words"),
    [
        (
            f"placement_aggregates SET uuid = '{{{'a' * 36}}}'",
            'placement_aggregates: the uuid "{a.*longer than 36 characters',
        ),
        (
            "resource_providers SET name = 'a' || char(0) || 'b'",
            r'resource_providers: the name "a\\u0000b" does not fit',
        ),
    ],
)
def test_a_text_that_does_not_fit_is_said_before_anything_is_copied(
    engine: str, source: Database, new: New, change: str, words: str
) -> None:
    """SQLite stores texts of any length, and PostgreSQL none with a NUL."""
    if engine == "mariadb" and "char(0)" in change:
        return
    target = new(engine)
    run(source, f"UPDATE {change} WHERE id = 3")
    refused(source, target, words)
    assert sum(map(len, contents(target).values())) == 0


@pytest.mark.engines("mariadb")
def test_names_that_mysql_holds_to_be_the_same_are_said_before_anything_is_copied(
    engine: str, source: Database, new: New
) -> None:
    """In a database with the usual collation, which ignores letter case and accents."""
    target = new(engine)
    schema.upgrade(target)
    collation = "CONVERT TO CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci"
    run(target, f"ALTER TABLE resource_providers {collation}")
    for one, other in (("Rack", "rack"), ("cafe", "café"), ("blank", "blank  "), ("ÄB", "äb")):
        run(
            source,
            f"UPDATE resource_providers SET name = '{one}' WHERE id = 5",
            f"UPDATE resource_providers SET name = '{other}' WHERE id = 9",
            # As if that were long ago.
            f"UPDATE berth_writer SET updated_at = '{ago(timedelta(minutes=2))}'",
        )
        refused(source, target, f'resource_providers: .* names "{one}" and "{other}" as equal')
        assert sum(map(len, contents(target).values())) == 0
