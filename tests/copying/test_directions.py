# SPDX-License-Identifier: Apache-2.0
"""Copies between all pairs of engines: the rows of the target, and reported differences."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from sqlalchemy import func, select

from berth.store.engine.database import Database
from berth.store.engine.tables import berth_journal, berth_placements, berth_usages, berth_writer
from berth.store.identity import read_identity
from berth.upkeep import schema
from berth.upkeep.copying import Outcome, copy_database
from tests.copying.conftest import Opener
from tests.copying.contents import OWN, RATIOS, contents, fill, single_precision, whole_seconds
from tests.sql_reads import provider_usages
from tests.store.fleet import add_provider, claim, holding, provider

# One of the processes that share the tests starts the servers for all of it.
pytestmark = pytest.mark.xdist_group("copies")

ENGINES = ("sqlite", "postgresql", "mariadb")


def copied(source: Database, target: Database) -> Outcome:
    """Copy in small chunks."""
    return copy_database(source, target, report=lambda *_: None, chunk_rows=5)


@pytest.mark.parametrize("origin", ENGINES)
@pytest.mark.parametrize("destination", ENGINES)
def test_every_row_arrives(
    origin: str, destination: str, new_url: Callable[[str], str], opened: Opener
) -> None:
    """With its id, times and references; and berth can use the target."""
    source, target = opened(new_url(origin)), opened(new_url(destination))
    fill(source)
    before = contents(source)
    outcome = copied(source, target)
    assert contents(source) == before
    expected = before
    if destination == "mariadb":
        expected = single_precision(whole_seconds(before))
    assert contents(target) == expected
    assert outcome.rows == {name: len(rows) for name, rows in before.items()}
    assert outcome.faults == [] and schema.is_current(target)
    assert identity(target) != identity(source)
    assert_goes_on(target)


def identity(db: Database) -> bytes:
    """The identity of a database: revisions of one mean nothing to the other."""
    with db.read() as tx:
        return read_identity(tx)


def test_a_source_of_an_older_release_has_only_the_tables_of_the_original(
    new_url: Callable[[str], str], opened: Opener
) -> None:
    """Everything else is copied."""
    source, target = opened(new_url("sqlite")), opened(new_url("sqlite"))
    fill(source)
    newer = [table.name for table in OWN]
    expected = contents(source) | {name: [] for name in newer}
    with source.engine.begin() as connection:
        for name in (*newer, "berth_meta"):
            connection.exec_driver_sql(f"DROP TABLE {name}")
        connection.exec_driver_sql("UPDATE berth_alembic_version SET version_num = '0007'")
    outcome = copied(source, target)
    assert contents(target) == expected
    assert not outcome.rows.keys() & {*newer} and outcome.faults == []


@pytest.mark.parametrize("origin", ENGINES)
@pytest.mark.parametrize("destination", ENGINES)
def test_a_column_that_an_older_release_does_not_have_is_null(
    origin: str, destination: str, new_url: Callable[[str], str], opened: Opener
) -> None:
    """Requests were not kept then; all else of a placement is copied."""
    source, target = opened(new_url(origin)), opened(new_url(destination))
    fill(source)
    with source.engine.begin() as connection:
        connection.exec_driver_sql("ALTER TABLE berth_placements DROP COLUMN request")
        connection.exec_driver_sql("UPDATE berth_alembic_version SET version_num = '0014'")
    assert copied(source, target).faults == []
    with target.read() as tx:
        (row,) = tx.connection.execute(select(berth_placements)).mappings()
    assert (row["host_uuid"], row["request"]) == (provider(1), None)


def assert_goes_on(db: Database) -> None:
    """The clock is new, usages are computed, and new rows get new ids."""
    with db.read() as tx:
        for table in (berth_writer, berth_journal):
            assert tx.connection.scalar(select(func.count()).select_from(table)) == 0
        assert tx.connection.scalar(select(func.sum(berth_usages.c.used))) == 3 * sum(range(1, 6))
    schema.sync_standard_names(db)
    add_provider(db, 100, parent=2, VCPU=8)
    claim(db, holding(77, {100: {"VCPU": 2}, 5: {"VCPU": 1}}))
    assert provider_usages(db, provider(5)).usages == {"VCPU": 16, "CUSTOM_A": 0}
    assert schema.check(db) == []


@pytest.mark.parametrize("destination", ENGINES)
def test_what_the_target_keeps_less_precisely_is_said(
    destination: str, source: Database, new_url: Callable[[str], str], opened: Opener
) -> None:
    """MySQL's FLOAT has single precision, and its times have no fractions."""
    outcome = copied(source, opened(new_url(destination)))
    expected = []
    if destination == "mariadb":
        expected = [
            f"inventories: the target keeps {RATIOS[2]} as 1.23457, in single precision",
            "the target keeps times to the second, without their fractions",
        ]
    assert outcome.notes == expected


@pytest.mark.parametrize("destination", ENGINES)
def test_the_target_has_all_its_indexes_again(
    destination: str, source: Database, new_url: Callable[[str], str], opened: Opener
) -> None:
    """They are dropped while the rows are written."""
    target, prepared = opened(new_url(destination)), opened(new_url(destination))
    copied(source, target)
    schema.upgrade(prepared)
    assert indexes(target) == indexes(prepared)


def indexes(db: Database) -> set[tuple[str, str, tuple[str | None, ...]]]:
    """Table, name and columns of each index."""
    from sqlalchemy import inspect

    with db.read() as tx:
        inspector = inspect(tx.connection)
        return {
            (table, str(index["name"]), tuple(index["column_names"]))
            for table in inspector.get_table_names()
            for index in inspector.get_indexes(table)
        }
