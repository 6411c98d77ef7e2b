# SPDX-License-Identifier: Apache-2.0
"""The schema: created from nothing, upgraded from each revision of OpenStack Placement, and handed
back.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path

import pytest
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import event, inspect, text

import berth.upkeep
from berth.index import Index
from berth.model.errors import SchemaError
from berth.model.standard import STANDARD_CLASSES, STANDARD_TRAITS
from berth.store.engine.database import Database
from berth.store.engine.opening import DatabaseOptions, open_database
from berth.store.engine.tables import metadata
from berth.store.engine.transaction import Tx
from berth.store.providers import get_provider
from berth.store.resource_classes import list_resource_classes
from berth.store.traits import list_traits
from berth.store.usages import project_usages
from berth.store.versions import BERTH_REVISIONS, PLACEMENT_REVISIONS, Versions
from berth.upkeep import schema
from tests.sql_reads import provider_usages
from tests.store.fleet import add_provider, claim, consumer, holding, provider
from tests.store.statements import counted_statements


def history(name: str) -> Config:
    """Alembic's script directory of one of the two histories."""
    folder = Path(berth.upkeep.__file__).parent / "migrations"
    config = Config()
    config.set_main_option("script_location", str(folder))
    config.set_main_option("path_separator", "newline")
    config.set_main_option("version_locations", str(folder / name))
    return config


def open_on(url: str) -> Database:
    """The database, opened by one more process."""
    return open_database(url, options=DatabaseOptions(synchronous=False))


@pytest.fixture
def bare(database_url: str) -> Iterator[Database]:
    """An empty database on each engine."""
    db = open_on(database_url)
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
    db.write_unnoted(
        lambda tx: [tx.connection.execute(text(statement)) for statement in statements] and None
    )


def upgraded(db: Database, owner: schema.Owner | None = None) -> list[str]:
    """What an upgrade changed, but for PostgreSQL's sequences: the rows here have numbers."""
    done = schema.upgrade(db, owner=owner or schema.Owner())
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


@pytest.mark.engines("sqlite", "postgresql", "mariadb")
def test_an_empty_database_is_prepared(bare: Database) -> None:
    """Preparing it again changes nothing."""
    assert schema.is_empty(bare) and not schema.is_current(bare)
    assert schema.current_version(bare) == "None"
    schema.upgrade(bare)
    schema.upgrade(bare)
    schema.sync_standard_names(bare)
    assert schema.is_current(bare) and not schema.is_empty(bare)
    assert schema.current_version(bare) == "a082b8bb98d0 (berth: 0015)"
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


@pytest.mark.engines("sqlite", "postgresql", "mariadb")
@pytest.mark.parametrize("revision", PLACEMENT_REVISIONS)
def test_a_database_of_the_original_is_adopted(bare: Database, revision: str) -> None:
    """From each of its revisions: its rows stay, and the usages are computed."""
    bring_to(bare, revision)
    change(bare, *OLD_ROWS)
    assert not schema.is_current(bare)
    assert upgraded(bare) == []
    schema.sync_standard_names(bare)
    assert schema.is_current(bare) and schema.check(bare) == []
    assert provider_usages(bare, provider(5)).usages == {"VCPU": 7}
    claim(bare, holding(1, {5: {"VCPU": 1}}))


@pytest.mark.engines("sqlite", "postgresql", "mariadb")
@pytest.mark.parametrize("berth_revision", BERTH_REVISIONS)
def test_an_upgrade_counts_sums_that_are_there_already(bare: Database, berth_revision: str) -> None:
    """Another program may have written allocations since; even if there is nothing else to do."""
    schema.upgrade(bare)
    schema.sync_standard_names(bare)
    for number in (1, 2, 3):
        add_provider(bare, number, VCPU=8)
        claim(bare, holding(number, {number: {"VCPU": number}}))
    change(
        bare,
        f"UPDATE berth_alembic_version SET version_num = '{berth_revision}'",
        "UPDATE berth_usages SET used = 7 WHERE used = 1",
        "DELETE FROM berth_usages WHERE used = 2",
    )
    schema.upgrade(bare)
    assert schema.is_current(bare) and schema.check(bare) == []
    used = [provider_usages(bare, provider(number)).usages["VCPU"] for number in (1, 2, 3)]
    assert used == [1, 2, 3]
    assert upgraded(bare) == []


@pytest.mark.engines("sqlite", "postgresql", "mariadb")
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
    assert upgraded(bare, owner=schema.Owner("someone", "somebody")) == [
        "3 resource providers without a root were given theirs",
        "consumers without a record that were given one: 1",
    ]
    assert schema.check(bare) == []
    assert {get_provider(bare, provider(number)).root_uuid for number in (5, 6, 7)} == {provider(5)}
    assert project_usages(bare, project_id="someone", user_id="somebody") == {"VCPU": 4}


@pytest.mark.engines("sqlite", "postgresql", "mariadb")
@pytest.mark.parametrize("revision", PLACEMENT_REVISIONS[:2])
def test_consumers_may_lack_a_record_until_a_revision_that_refuses_it(
    bare: Database, revision: str
) -> None:
    """The second revision only checks the roots."""
    bring_to(bare, revision)
    change(bare, *OLD_ROWS, f"DELETE FROM consumers WHERE uuid = '{consumer(102)}'")
    assert upgraded(bare) == ["consumers without a record that were given one: 1"]
    assert schema.check(bare) == []


@pytest.mark.engines("sqlite", "postgresql", "mariadb")
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
    assert schema.current_version(bare) == PLACEMENT_REVISIONS[0]


@pytest.mark.engines("sqlite", "postgresql", "mariadb")
def test_tables_that_nobody_knows(bare: Database) -> None:
    """Tables without a revision, or with a future one, in either history."""
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


@pytest.mark.engines("sqlite", "postgresql", "mariadb")
def test_the_tables_of_another_program_are_left_alone(bare: Database) -> None:
    """A wrong URL must not put berth's tables into another program's database."""
    change(bare, "CREATE TABLE bookmarks (id INTEGER)")
    with pytest.raises(SchemaError, match="another program's tables \\(bookmarks\\)"):
        schema.upgrade(bare)
    assert tables(bare) == ["bookmarks"]


@pytest.mark.engines("sqlite", "postgresql", "mariadb")
def test_several_processes_may_prepare_one_database(database_url: str) -> None:
    """One of them does it, the others find it done."""

    def prepare(db: Database) -> bool:
        schema.upgrade(db)
        schema.sync_standard_names(db)
        return schema.is_current(db)

    processes = [open_on(database_url) for _ in range(4)]
    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(prepare, processes))
    assert list_resource_classes(processes[0]).names == list(STANDARD_CLASSES)
    traits = list_traits(processes[0], names=None, prefix=None, associated=None)
    assert sorted(traits.names) == list(STANDARD_TRAITS)
    for db in processes:
        db.dispose()


def test_services_hear_of_standard_traits_that_are_put_in(db: Database, other: Database) -> None:
    """As by a newer release beside them."""
    new = STANDARD_TRAITS[0]
    removal = text(f"DELETE FROM traits WHERE name = '{new}'")
    db.write_unnoted(lambda tx: tx.connection.execute(removal))
    index = Index(other)
    assert new not in index.snapshot().names.trait_ids
    schema.sync_standard_names(db)
    assert new in index.snapshot().names.trait_ids


@pytest.mark.engines("sqlite", "postgresql", "mariadb")
@pytest.mark.parametrize("revision", [None, PLACEMENT_REVISIONS[0]])
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
    cuts = 0
    while cut_upgrade(bare, changes_before=cuts % 7 if engine == "mariadb" else 4 * cuts):
        cuts += 1
        assert cuts < 100, "it comes no further"
    assert cuts > 3
    assert schema.is_current(bare) and schema.check(bare) == []
    assert differences(bare) == []


class Cut(Exception):
    """The process is killed at a statement."""


def cut_upgrade(db: Database, *, changes_before: int) -> bool:
    """Upgrade and be killed at a later change each time; return whether it was killed."""
    left = changes_before

    def die(_connection: object, _cursor: object, statement: str, *_others: object) -> None:
        nonlocal left
        if statement.lstrip().partition(" ")[0].upper() in CHANGES:
            left -= 1
            if left < 0:
                raise Cut

    event.listen(db.engine, "before_cursor_execute", die)
    try:
        schema.upgrade(db)
    except Cut:
        return True
    finally:
        event.remove(db.engine, "before_cursor_execute", die)
    return False


#: What statements begin with that change something.
CHANGES = {"CREATE", "ALTER", "DROP", "INSERT", "UPDATE", "DELETE"}


@pytest.mark.engines("sqlite", "postgresql", "mariadb")
def test_a_database_is_handed_back(bare: Database) -> None:
    """Only the tables of OpenStack Placement remain, with their rows, and can be adopted again."""
    schema.upgrade(bare)
    schema.sync_standard_names(bare)
    original = [name for name in tables(bare) if not name.startswith("berth_")]
    add_provider(bare, 5, VCPU=8)
    claim(bare, holding(1, {5: {"VCPU": 2}}))
    change(
        bare,
        "INSERT INTO berth_writer (id, seq, trimmed_seq, kept_seq, updated_at)"
        " VALUES (99, 0, 0, 0, '2026-01-01 00:00:00')",
    )
    with pytest.raises(schema.StillWritten, match="berth wrote to the database"):
        schema.release(bare)
    change(bare, "UPDATE berth_writer SET updated_at = '2026-01-01 00:00:00'")
    assert set(schema.release(bare)) == {
        "berth_alembic_version",
        "berth_consumer_names",
        "berth_drained",
        "berth_drains",
        "berth_flavors",
        "berth_journal",
        "berth_labels",
        "berth_leases",
        "berth_meta",
        "berth_placements",
        "berth_project_usages",
        "berth_usages",
        "berth_writer",
    }
    assert tables(bare) == original
    assert schema.current_version(bare) == PLACEMENT_REVISIONS[-1]
    assert schema.release(bare) == []
    schema.upgrade(bare)
    assert schema.check(bare) == []
    assert provider_usages(bare, provider(5)).usages == {"VCPU": 2}


@pytest.mark.engines("sqlite", "postgresql", "mariadb")
def test_force_hands_back_what_is_being_written(bare: Database) -> None:
    """For operators who know that no service uses the database any more."""
    schema.upgrade(bare)
    schema.sync_standard_names(bare)
    add_provider(bare, 5, VCPU=8)
    assert "berth_usages" in schema.release(bare, force=True)


@pytest.mark.engines("sqlite", "postgresql", "mariadb")
def test_missing_standard_names_come_back(db: Database) -> None:
    """A newer library has more names; if none is missing, nothing is written."""
    change(
        db,
        "DELETE FROM traits WHERE name = 'HW_CPU_X86_VMX'",
        "DELETE FROM resource_classes WHERE name = 'FPGA'",
    )
    schema.sync_standard_names(db)
    assert list_resource_classes(db).names == list(STANDARD_CLASSES)
    with counted_statements(db) as sent:
        schema.sync_standard_names(db)
    queries = [statement for statement in sent if statement.startswith("SELECT")]
    assert len(queries) == 2 and not any("INSERT" in statement for statement in sent)


@pytest.mark.parametrize(
    ("versions", "words"),
    [
        (Versions(None, None), "run `berth db upgrade`"),
        (Versions("b4ed3a175331", None), "make a copy of it, then run `berth db upgrade`"),
        (Versions("a082b8bb98d0", "0002"), "continues where that stopped"),
        (Versions("ffffffffffff", "0005"), "alembic_version says ffffffffffff.*newer release"),
        (Versions("a082b8bb98d0", "0999"), "berth_alembic_version says 0999.*newer release"),
        (Versions("a082b8bb98d0", "unfinished-copy"), "run the same `berth db copy` again"),
    ],
)
def test_why_a_schema_is_not_served(versions: Versions, words: str) -> None:
    """Each state has its own next step."""
    assert re.search(words, schema.why_not_current(versions))


def dated(db: Database, table: str, where: str, column: str, seconds: int) -> None:
    """Make a row this many seconds old."""
    time = (db._now() - timedelta(seconds=seconds)).isoformat(" ", "seconds")
    change(db, f"UPDATE {table} SET {column} = '{time}' WHERE {where}")


FOREIGN_SIGNS = {
    "a claim": ("INSERT INTO allocations (resource_provider_id, consumer_id, resource_class_id, "
                "used) SELECT id, 'x', 0, 1 FROM resource_providers",
                "allocations", "consumer_id = 'x'", "created_at"),
    "a consumer of a claim that failed": (
        "INSERT INTO consumers (uuid, project_id, user_id, generation) VALUES ('x', 1, 1, 0)",
        "consumers", "uuid = 'x'", "created_at"),
    "a consumer of a claim that failed once more": (
        "INSERT INTO consumers (uuid, project_id, user_id, generation, created_at) VALUES "
        "('x', 1, 1, 0, '2020-01-01 00:00:00')",
        "consumers", "uuid = 'x'", "updated_at"),
    "a provider": ("INSERT INTO resource_providers (uuid, name, generation) VALUES ('x', 'x', 0)",
                   "resource_providers", "uuid = 'x'", "created_at"),
    "a change of a provider": ("UPDATE resource_providers SET generation = generation + 1",
                               "resource_providers", "1 = 1", "updated_at"),
}  # fmt: skip


@pytest.mark.engines("sqlite", "postgresql", "mariadb")
@pytest.mark.parametrize("what", FOREIGN_SIGNS)
def test_an_upgrade_is_refused_while_another_program_writes(db: Database, what: str) -> None:
    """Each sign of it counts for a minute; berth's own recent writes do not."""
    add_provider(db, 5, VCPU=8)
    add_provider(db, 6, parent=5)
    claim(db, holding(1, {5: {"VCPU": 2}}))
    schema.refuse_while_others_write(db)
    change(db, "DELETE FROM berth_journal")
    for table, column in (("allocations", "created_at"), ("resource_providers", "created_at"),
                          ("resource_providers", "updated_at")):  # fmt: skip
        dated(db, table, "1 = 1", column, 3600)
    statement, table, where, column = FOREIGN_SIGNS[what]
    change(db, statement)
    dated(db, table, where, column, 10)
    with pytest.raises(schema.StillWritten, match="another program wrote to the database 1"):
        schema.refuse_while_others_write(db)
    dated(db, table, where, column, 61)
    schema.refuse_while_others_write(db)


@pytest.mark.engines("sqlite", "postgresql", "mariadb")
def test_another_program_shows_on_a_provider_that_berth_has_just_written_too(db: Database) -> None:
    """The journal shows berth's write, but the generation shows the other program's as well."""
    add_provider(db, 5, VCPU=8)
    schema.refuse_while_others_write(db)
    change(db, "UPDATE resource_providers SET generation = generation + 1")
    dated(db, "resource_providers", "1 = 1", "updated_at", 10)
    with pytest.raises(schema.StillWritten):
        schema.refuse_while_others_write(db)


@pytest.mark.engines("sqlite", "postgresql", "mariadb")
def test_a_database_that_is_taken_over_has_no_notes_to_explain_what_is_new(bare: Database) -> None:
    """There is no journal yet, so every recent row is another program's."""
    schema.refuse_while_others_write(bare)
    schema.upgrade(bare)
    schema.sync_standard_names(bare)
    add_provider(bare, 5, VCPU=8)
    schema.release(bare, force=True)
    with pytest.raises(schema.StillWritten):
        schema.refuse_while_others_write(bare)
