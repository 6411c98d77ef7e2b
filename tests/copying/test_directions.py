# SPDX-License-Identifier: Apache-2.0
"""Copies between all pairs of engines: the rows of the target, and reported differences."""

from __future__ import annotations

import pytest
from sqlalchemy import func, inspect, select

from berth.store.engine.database import Database
from berth.store.engine.tables import berth_journal, berth_usages, berth_writer
from berth.store.identity import read_identity
from berth.store.versions import is_current
from berth.upkeep import schema
from berth.upkeep.copying import Outcome, copy_database
from tests.copying.conftest import New
from tests.copying.contents import OWN, RATIOS, as_mysql_keeps, contents, fill
from tests.store.fleet import add_provider, claim, holding, used

# One of the processes that share the tests starts the servers for all of it.
pytestmark = pytest.mark.xdist_group("copies")

ENGINES = ("sqlite", "postgresql", "mariadb")

#: Between servers it is what it is from one of them to a file, and from a file to the other.
PAIRS = [
    pytest.param(origin, destination, marks=() if "sqlite" in pair else pytest.mark.thorough)
    for pair in ((origin, destination) for origin in ENGINES for destination in ENGINES)
    for origin, destination in [pair]
]


def copied(source: Database, target: Database) -> Outcome:
    return copy_database(source, target, report=lambda *_: None, chunk_rows=5)


@pytest.mark.parametrize(("origin", "destination"), PAIRS)
def test_every_row_arrives(origin: str, destination: str, new: New) -> None:
    """With its id, times and references; what the target keeps less precisely is said, and berth
    can use it."""
    source, target = new(origin), new(destination)
    fill(source)
    before = contents(source)
    outcome = copied(source, target)
    assert contents(source) == before
    assert contents(target) == (as_mysql_keeps(before) if destination == "mariadb" else before)
    assert outcome.rows == {name: len(rows) for name, rows in before.items()}
    assert outcome.faults == [] and is_current(target)
    if origin != "mariadb":
        assert outcome.notes == [
            f"inventories: the target keeps {RATIOS[2]} as 1.23457, in single precision",
            "the target keeps times to the second, without their fractions",
        ] * (destination == "mariadb")
    assert identity(target) != identity(source)
    with target.read() as tx:
        for table in (berth_writer, berth_journal):
            assert tx.connection.scalar(select(func.count()).select_from(table)) == 0
        assert tx.connection.scalar(select(func.sum(berth_usages.c.used))) == 3 * sum(range(1, 6))
    schema.sync_standard_names(target)
    add_provider(target, 100, parent=2, VCPU=8)
    claim(target, holding(77, {100: {"VCPU": 2}, 5: {"VCPU": 1}}))
    assert used(target, 5) == [16]
    assert schema.check(target) == []


def identity(db: Database) -> bytes:
    """The identity of a database: revisions of one mean nothing to the other."""
    with db.read() as tx:
        return read_identity(tx)


def test_a_source_of_the_original_has_only_its_tables(source: Database, target: Database) -> None:
    """Everything else is copied."""
    newer = [table.name for table in OWN]
    expected = contents(source) | {name: [] for name in newer}
    with source.engine.begin() as connection:
        for name in (*newer, "berth_meta", "berth_alembic_version"):
            connection.exec_driver_sql(f"DROP TABLE {name}")
    outcome = copied(source, target)
    assert contents(target) == expected
    assert not outcome.rows.keys() & {*newer} and outcome.faults == []


@pytest.mark.parametrize("destination", ENGINES)
def test_the_target_has_all_its_indexes_again(destination: str, source: Database, new: New) -> None:
    """They are dropped while the rows are written."""
    target, prepared = new(destination), new(destination)
    copied(source, target)
    schema.upgrade(prepared)
    assert indexes(target) == indexes(prepared)


def indexes(db: Database) -> set[tuple[str, str, tuple[str | None, ...]]]:
    """Table, name and columns of each index."""
    with db.read() as tx:
        inspector = inspect(tx.connection)
        return {
            (table, str(index["name"]), tuple(index["column_names"]))
            for table in inspector.get_table_names()
            for index in inspector.get_indexes(table)
        }
