# SPDX-License-Identifier: Apache-2.0
"""The schema: created from nothing, upgraded from each revision of OpenStack Placement, and handed
back.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from functools import partial
from pathlib import Path

import pytest
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import inspect, text

import berth.upkeep
from berth.candidates.providers import find_providers
from berth.index import Index
from berth.model.errors import SchemaError
from berth.model.provider import ProviderFilters
from berth.model.standard import STANDARD_CLASSES, STANDARD_TRAITS
from berth.store.engine.database import Database
from berth.store.engine.tables import metadata
from berth.store.engine.transaction import Tx
from berth.store.providers import get_provider
from berth.store.resource_classes import list_resource_classes
from berth.store.traits import list_traits
from berth.store.usages import project_usages
from berth.store.versions import (
    BERTH_HEAD,
    BERTH_REVISIONS,
    PLACEMENT_REVISIONS,
    Versions,
    current_version,
    is_current,
    is_empty,
    why_not_current,
)
from berth.upkeep import schema
from berth.upkeep.integrity.consumers import Owner
from tests.fresh import opened_at
from tests.servers.statements import run
from tests.store.fleet import add_provider, claim, consumer, holding, provider, used
from tests.store.statements import counted_statements, cut_before

pytestmark = pytest.mark.engines("sqlite", "postgresql", "mariadb")


def history(name: str) -> Config:
    """Alembic's script directory of one of the two histories."""
    folder = Path(berth.upkeep.__file__).parent / "migrations"
    config = Config()
    config.set_main_option("script_location", str(folder))
    config.set_main_option("path_separator", "newline")
    config.set_main_option("version_locations", str(folder / name))
    return config


@pytest.fixture
def bare(database_url: str) -> Iterator[Database]:
    """An empty database on each engine."""
    db = opened_at(database_url)
    yield db
    db.dispose()


def bring_to(db: Database, revision: str) -> None:
    """Create the tables of OpenStack Placement up to one of its revisions."""

    def unit(tx: Tx) -> None:
        tx.connection.execute(text("SELECT 1"))
        config = history("placement")
        config.attributes.update(connection=tx.connection, version_table="alembic_version")
        command.upgrade(config, revision)

    db.write_unnoted(unit)


def change(db: Database, *statements: str) -> None:
    """Change rows directly."""
    run(db.engine.url.render_as_string(hide_password=False), *statements)


def upgraded(db: Database, owner: Owner | None = None) -> list[str]:
    """What an upgrade changed, but for PostgreSQL's sequences: the rows here have numbers."""
    done = schema.upgrade(db, owner=owner or Owner())
    return [sentence for sentence in done if not sentence.startswith("the sequence of ")]


def tables(db: Database) -> list[str]:
    """The names of all tables."""
    with db.read() as tx:
        return sorted(inspect(tx.connection).get_table_names())


#: A provider of an old database, with seven VCPU held by two consumers.
OLD_ROWS = (
    "INSERT INTO resource_providers (id, uuid, name, generation, root_provider_id)"
    f" VALUES (5, '{provider(5)}', 'p5', 9, 5)",
    "INSERT INTO resource_classes (id, name) VALUES (0, 'VCPU')",
    "INSERT INTO inventories (resource_provider_id, resource_class_id, total, reserved, min_unit,"
    " max_unit, step_size, allocation_ratio) VALUES (5, 0, 8, 0, 1, 8, 1, 1.0)",
    "INSERT INTO projects (external_id) VALUES ('p')",
    "INSERT INTO users (external_id) VALUES ('u')",
    "INSERT INTO consumers (uuid, project_id, user_id) VALUES"
    f" ('{consumer(101)}', 1, 1), ('{consumer(102)}', 1, 1)",
    "INSERT INTO allocations (resource_provider_id, consumer_id, resource_class_id, used)"
    f" VALUES (5, '{consumer(101)}', 0, 3), (5, '{consumer(102)}', 0, 4)",
)


def test_an_empty_database_is_prepared(bare: Database) -> None:
    """Preparing it again changes nothing."""
    assert is_empty(bare) and not is_current(bare)
    assert current_version(bare) == "None"
    schema.upgrade(bare)
    schema.upgrade(bare)
    schema.sync_standard_names(bare)
    assert is_current(bare) and not is_empty(bare)
    assert current_version(bare) == f"a082b8bb98d0 (berth: {BERTH_HEAD})"
    assert schema.check(bare) == []
    assert differences(bare) == []


def differences(db: Database) -> list[object]:
    """How a database's tables differ from the code's metadata, by column and by index."""
    with db.read() as tx:
        differing: list[object] = compare_metadata(
            MigrationContext.configure(
                tx.connection,
                opts={
                    "include_name": lambda name, kind, _: (
                        kind != "table" or not str(name).endswith("alembic_version")
                    )
                },
            ),
            metadata,
        )
    return differing


@pytest.mark.engines("mariadb")
def test_names_are_exact_in_tables_that_berth_makes_on_mariadb(bare: Database) -> None:
    """Letter case, accents and trailing blanks count, as on the other engines."""
    schema.upgrade(bare)
    with bare.read() as tx:
        made = tx.connection.execute(
            text(
                "SELECT DISTINCT engine, table_collation FROM information_schema.tables "
                "WHERE table_schema = database() AND table_name NOT LIKE '%alembic_version'"
            )
        ).all()
    assert [tuple(row) for row in made] == [("InnoDB", "utf8mb4_nopad_bin")]
    for name in ("one", "ONE", "one ", "öne"):
        change(bare, f"INSERT INTO traits (name) VALUES ('{name}')")


def test_the_heads_are_the_last_revisions_of_their_histories() -> None:
    """OpenStack Placement's are the five known ones, in their order."""
    for name, revisions in (("placement", PLACEMENT_REVISIONS), ("berth", BERTH_REVISIONS)):
        steps = ScriptDirectory.from_config(history(name)).walk_revisions()
        assert tuple(step.revision for step in steps)[::-1] == revisions


@pytest.mark.engines("mariadb")
def test_a_name_is_exact_in_an_adopted_database(db: Database) -> None:
    """Its collation may treat names as equal that differ in letter case."""
    collation = "CONVERT TO CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci"
    change(db, f"ALTER TABLE resource_providers {collation}")
    add_provider(db, 1)
    find = partial(find_providers, Index(db).snapshot())
    assert [len(find(ProviderFilters(name=name))) for name in ("P1", "p1")] == [0, 1]


@pytest.mark.engines("sqlite")
@pytest.mark.parametrize("revision", PLACEMENT_REVISIONS)
def test_a_database_of_the_original_is_adopted(bare: Database, revision: str) -> None:
    """From each of its revisions: its rows stay, and the usages are computed. Consumers may lack a
    record up to the second, which only checks the roots."""
    bring_to(bare, revision)
    change(bare, *OLD_ROWS)
    done = []
    if revision in PLACEMENT_REVISIONS[:2]:
        change(bare, f"DELETE FROM consumers WHERE uuid = '{consumer(102)}'")
        done = ["consumers without a record that were given one: 1"]
    assert not is_current(bare)
    assert upgraded(bare) == done
    schema.sync_standard_names(bare)
    assert is_current(bare) and schema.check(bare) == []
    assert used(bare, 5) == [7]
    claim(bare, holding(1, {5: {"VCPU": 1}}))


def test_an_upgrade_counts_sums_that_are_there_already(bare: Database) -> None:
    """Another program may have written allocations since; even if there is nothing else to do."""
    schema.upgrade(bare)
    schema.sync_standard_names(bare)
    for number in (1, 2, 3):
        add_provider(bare, number, VCPU=8)
        claim(bare, holding(number, {number: {"VCPU": number}}))
    for revision in BERTH_REVISIONS:
        change(
            bare,
            f"UPDATE berth_alembic_version SET version_num = '{revision}'",
            "UPDATE berth_usages SET used = 7 WHERE used = 1",
            "DELETE FROM berth_usages WHERE used = 2",
        )
        schema.upgrade(bare)
        assert is_current(bare) and schema.check(bare) == [], revision
        assert used(bare, 1, 2, 3) == [1, 2, 3], revision
    assert upgraded(bare) == []


def test_what_old_databases_lack_is_written_down(bare: Database) -> None:
    """Roots, from the parents, and records of consumers, with the owner from the configuration."""
    bring_to(bare, PLACEMENT_REVISIONS[0])
    columns = "(id, uuid, name, generation, root_provider_id, parent_provider_id)"
    rows = f"(6, '{provider(6)}', 'p6', 0, NULL, 5), (7, '{provider(7)}', 'p7', 0, NULL, 6)"
    change(
        bare,
        *OLD_ROWS,
        f"INSERT INTO resource_providers {columns} VALUES {rows}",
        "UPDATE resource_providers SET root_provider_id = NULL WHERE id = 5",
        f"DELETE FROM consumers WHERE uuid = '{consumer(102)}'",
    )
    assert upgraded(bare, owner=Owner("someone", "somebody")) == [
        "3 resource providers without a root were given theirs",
        "consumers without a record that were given one: 1",
    ]
    assert schema.check(bare) == []
    assert {get_provider(bare, provider(number)).root_uuid for number in (5, 6, 7)} == {provider(5)}
    assert project_usages(bare, project_id="someone", user_id="somebody") == {"VCPU": 4}


def test_roots_that_nothing_tells_stop_an_upgrade(bare: Database) -> None:
    """The error is one sentence with the next step, and the database keeps its revision."""
    bring_to(bare, PLACEMENT_REVISIONS[0])
    columns = "(id, uuid, name, generation, root_provider_id, parent_provider_id)"
    change(
        bare,
        f"INSERT INTO resource_providers {columns} VALUES (6, '{provider(6)}', 'p6', 0, NULL, 6)",
    )
    with pytest.raises(SchemaError, match="1 resource providers have no root_provider_id"):
        schema.upgrade(bare)
    assert current_version(bare) == PLACEMENT_REVISIONS[0]


def test_tables_that_nobody_knows(bare: Database) -> None:
    """A wrong URL must not put berth's tables into another program's database; nor is one touched
    without a revision, or with a future one, in either history."""
    change(bare, "CREATE TABLE bookmarks (id INTEGER)")
    with pytest.raises(SchemaError, match="another program's tables \\(bookmarks\\)"):
        schema.upgrade(bare)
    assert tables(bare) == ["bookmarks"]
    change(bare, "DROP TABLE bookmarks")
    schema.upgrade(bare)
    change(bare, "UPDATE berth_alembic_version SET version_num = '9999'")
    with pytest.raises(SchemaError, match=r"says 9999.*a newer release created the database"):
        schema.upgrade(bare)
    with pytest.raises(SchemaError, match="says 9999"):
        schema.release(bare)
    change(
        bare,
        "DROP TABLE berth_alembic_version",
        "UPDATE alembic_version SET version_num = 'ffffffffffff'",
    )
    with pytest.raises(SchemaError, match=r"says ffffffffffff.*a newer release"):
        schema.upgrade(bare)
    change(bare, "DROP TABLE alembic_version")
    with pytest.raises(SchemaError, match="stamp b4ed3a175331"):
        schema.upgrade(bare)


def test_several_processes_may_prepare_one_database(database_url: str) -> None:
    """One of them does it, the others find it done."""

    def prepare(db: Database) -> bool:
        schema.upgrade(db)
        schema.sync_standard_names(db)
        return is_current(db)

    processes = [opened_at(database_url) for _ in range(4)]
    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(prepare, processes))
    assert list_resource_classes(processes[0]).names == list(STANDARD_CLASSES)
    traits = list_traits(processes[0], names=None, prefix=None, associated=None)
    assert sorted(traits.names) == list(STANDARD_TRAITS)
    for db in processes:
        db.dispose()


def test_services_hear_of_standard_traits_that_are_put_in(db: Database, other: Database) -> None:
    """As by a newer release beside them. Classes come back too; if no name is missing, nothing is
    written."""
    trait, index = STANDARD_TRAITS[0], Index(other)
    change(db, f"DELETE FROM traits WHERE name = '{trait}'")
    assert trait not in index.snapshot().names.trait_ids
    schema.sync_standard_names(db)
    assert trait in index.snapshot().names.trait_ids
    change(db, "DELETE FROM resource_classes WHERE name = 'FPGA'")
    schema.sync_standard_names(db)
    assert list_resource_classes(db).names == list(STANDARD_CLASSES)
    with counted_statements(db) as sent:
        schema.sync_standard_names(db)
    queries = [statement for statement in sent if statement.startswith("SELECT")]
    assert len(queries) == 2 and not any("INSERT" in statement for statement in sent)


@pytest.mark.parametrize(
    "revision", [PLACEMENT_REVISIONS[0], pytest.param(None, marks=pytest.mark.thorough)]
)
def test_an_upgrade_that_was_cut_at_any_statement_goes_on(
    bare: Database, engine: str, revision: str | None
) -> None:
    """The upgrade is killed again and again in the same database, each time later; the final result
    is that of an undisturbed upgrade.

    MariaDB commits every change of a table, so there each run continues where the last one was
    killed. Elsewhere a killed step leaves nothing, and the next run has to get further by itself.
    """
    if revision is not None:
        bring_to(bare, revision)
        change(bare, *OLD_ROWS)
    for cuts in range(100):
        number = cuts % 7 if engine == "mariadb" else 4 * cuts
        with cut_before(bare, number, beginning=CHANGES) as cut:
            schema.upgrade(bare)
        if not cut:
            break
    assert not cut, "it comes no further"
    assert cuts > 3
    assert is_current(bare) and schema.check(bare) == []
    assert differences(bare) == []


#: What statements begin with that change something.
CHANGES = ("CREATE", "ALTER", "DROP", "INSERT", "UPDATE", "DELETE")


def test_a_database_is_handed_back(bare: Database) -> None:
    """Only the tables of OpenStack Placement remain, with their rows, and can be adopted again."""
    schema.upgrade(bare)
    schema.sync_standard_names(bare)
    before = tables(bare)
    assert len(before) == len(metadata.tables) + 2
    add_provider(bare, 5, VCPU=8)
    claim(bare, holding(1, {5: {"VCPU": 2}}))
    change(
        bare,
        "INSERT INTO berth_writer (id, seq, trimmed_seq, updated_at)"
        " VALUES (99, 0, 0, '2026-01-01 00:00:00')",
    )
    with pytest.raises(schema.StillWritten, match="berth wrote to the database"):
        schema.release(bare)
    change(bare, "UPDATE berth_writer SET updated_at = '2026-01-01 00:00:00'")
    assert {*schema.release(bare)} == {name for name in before if name.startswith("berth_")}
    assert tables(bare) == [name for name in before if not name.startswith("berth_")]
    assert current_version(bare) == PLACEMENT_REVISIONS[-1]
    assert schema.release(bare) == []
    schema.upgrade(bare)
    assert schema.check(bare) == []
    assert used(bare, 5) == [2]


@pytest.mark.parametrize(
    ("versions", "words"),
    [
        (Versions(None, None), "run `berth db upgrade`"),
        (Versions("b4ed3a175331", None), "make a copy of it, then run `berth db upgrade`"),
        (Versions("a082b8bb98d0", BERTH_HEAD), "continues where that stopped"),
        (Versions("ffffffffffff", "0005"), "alembic_version says ffffffffffff.*newer release"),
        (Versions("a082b8bb98d0", "0999"), "berth_alembic_version says 0999.*newer release"),
        (Versions("a082b8bb98d0", "unfinished-copy"), "run the same `berth db copy` again"),
    ],
)
def test_why_a_schema_is_not_served(versions: Versions, words: str) -> None:
    """Each state has its own next step."""
    assert re.search(words, why_not_current(versions))


def dated(db: Database, table: str, where: str, column: str, seconds: int) -> None:
    """Make a row this many seconds old."""
    time = (db._now() - timedelta(seconds=seconds)).isoformat(" ", "seconds")
    change(db, f"UPDATE {table} SET {column} = '{time}' WHERE {where}")


FOREIGN_SIGNS = {
    "a claim": ("INSERT INTO allocations (resource_provider_id, consumer_id, resource_class_id, "
                "used) SELECT id, 'w', 0, 1 FROM resource_providers",
                "allocations", "consumer_id = 'w'", "created_at"),
    "a consumer of a claim that failed": (
        "INSERT INTO consumers (uuid, project_id, user_id, generation) VALUES ('x', 1, 1, 0)",
        "consumers", "uuid = 'x'", "created_at"),
    "a consumer of a claim that failed once more": (
        "INSERT INTO consumers (uuid, project_id, user_id, generation, created_at) VALUES "
        "('y', 1, 1, 0, '2020-01-01 00:00:00')",
        "consumers", "uuid = 'y'", "updated_at"),
    "a provider": ("INSERT INTO resource_providers (uuid, name, generation) VALUES ('x', 'x', 0)",
                   "resource_providers", "uuid = 'x'", "created_at"),
    "a change of a provider": ("UPDATE resource_providers SET generation = generation + 1",
                               "resource_providers", "1 = 1", "updated_at"),
}  # fmt: skip


def test_an_upgrade_is_refused_while_another_program_writes(db: Database) -> None:
    """Each sign of it counts for a minute; berth's own recent writes do not."""
    add_provider(db, 5, VCPU=8)
    add_provider(db, 6, parent=5)
    claim(db, holding(1, {5: {"VCPU": 2}}))
    schema.refuse_while_others_write(db)
    change(db, "DELETE FROM berth_journal")
    for table, column in (("allocations", "created_at"), ("resource_providers", "created_at"),
                          ("resource_providers", "updated_at")):  # fmt: skip
        dated(db, table, "1 = 1", column, 3600)
    for statement, table, where, column in FOREIGN_SIGNS.values():
        change(db, statement)
        dated(db, table, where, column, 10)
        with pytest.raises(schema.StillWritten, match="another program wrote to the database 1"):
            schema.refuse_while_others_write(db)
        dated(db, table, where, column, 61)
        schema.refuse_while_others_write(db)


def test_neither_notes_nor_their_lack_hide_another_program(bare: Database) -> None:
    """On a provider that berth has just written too, the generation shows it. In a database that is
    taken over there is no journal yet, so every recent row is another program's."""
    schema.refuse_while_others_write(bare)
    schema.upgrade(bare)
    schema.sync_standard_names(bare)
    add_provider(bare, 5, VCPU=8)
    schema.refuse_while_others_write(bare)
    change(bare, "UPDATE resource_providers SET generation = generation + 1")
    dated(bare, "resource_providers", "1 = 1", "updated_at", 10)
    with pytest.raises(schema.StillWritten):
        schema.refuse_while_others_write(bare)
    assert "berth_usages" in schema.release(bare, force=True), "whatever is being written"
    with pytest.raises(schema.StillWritten):
        schema.refuse_while_others_write(bare)
