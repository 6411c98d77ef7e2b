# SPDX-License-Identifier: Apache-2.0
"""The life of the schema: from nothing, from each of the original's revisions, and its checks."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import inspect, text

import berth.store
from berth.model.errors import SchemaError
from berth.model.standard import STANDARD_CLASSES, STANDARD_TRAITS
from berth.store import schema
from berth.store.database import Database, Tx
from berth.store.resource_classes import list_resource_classes
from berth.store.tables import metadata
from berth.store.traits import list_traits
from berth.store.usages import provider_usages
from tests.store.conftest import Opener
from tests.store.fleet import add_provider, claim, consumer, holding, provider
from tests.store.statements import counted_statements

REVISIONS = ("b4ed3a175331", "611cd6dffd7b", "b5c396305c25", "422ece571366", "a082b8bb98d0")


def history(name: str) -> Config:
    """Alembic's view of one of the two histories."""
    folder = Path(berth.store.__file__).parent / "migrations"
    config = Config()
    config.set_main_option("script_location", str(folder))
    config.set_main_option("path_separator", "newline")
    config.set_main_option("version_locations", str(folder / name))
    return config


def bring_to(db: Database, revision: str) -> None:
    """Make what the original makes up to one of its revisions."""

    def unit(tx: Tx) -> None:
        tx.connection.execute(text("SELECT 1"))
        config = history("placement")
        config.attributes.update(connection=tx.connection, version_table="alembic_version")
        command.upgrade(config, revision)

    db.write(unit)


def run(db: Database, *statements: str) -> None:
    """Change rows behind the store's back."""
    db.write(lambda tx: [tx.connection.execute(text(one)) for one in statements] and None)


#: A provider of an old database, with seven VCPU held by two consumers.
OLD_ROWS = (
    "INSERT INTO resource_providers (id, uuid, name, generation, root_provider_id)"
    f" VALUES (5, '{provider(5)}', 'p5', 9, 5)",
    "INSERT INTO resource_classes (id, name) VALUES (0, 'VCPU')",
    "INSERT INTO inventories (resource_provider_id, resource_class_id, total, reserved, min_unit,"
    " max_unit, step_size, allocation_ratio) VALUES (5, 0, 8, 0, 1, 8, 1, 1.0)",
    "INSERT INTO projects (id, external_id) VALUES (1, 'p')",
    "INSERT INTO users (id, external_id) VALUES (1, 'u')",
    "INSERT INTO consumers (uuid, project_id, user_id) VALUES ('one', 1, 1), ('two', 1, 1)",
    "INSERT INTO allocations (resource_provider_id, consumer_id, resource_class_id, used)"
    " VALUES (5, 'one', 0, 3), (5, 'two', 0, 4)",
)


def test_an_empty_database_is_prepared(opened: Opener) -> None:
    """And again, which changes nothing."""
    db = opened()
    assert schema.is_empty(db) and not schema.is_current(db)
    assert schema.current_version(db) == "None"
    schema.upgrade(db)
    schema.upgrade(db)
    schema.sync_standard_names(db)
    assert schema.is_current(db) and not schema.is_empty(db)
    assert schema.current_version(db) == "a082b8bb98d0 (berth: 0002)"
    assert schema.check(db) == []


def test_the_migrations_make_the_tables_that_the_code_knows(db: Database) -> None:
    """Column by column, index by index."""
    with db.read() as tx:
        differences = compare_metadata(
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
    assert differences == []


def test_the_heads_are_the_last_revisions_of_their_histories() -> None:
    """And the original's are its five, in their order."""
    placement = ScriptDirectory.from_config(history("placement"))
    assert tuple(one.revision for one in placement.walk_revisions())[::-1] == REVISIONS
    assert placement.get_current_head() == schema.PLACEMENT_HEAD
    assert ScriptDirectory.from_config(history("berth")).get_current_head() == schema.BERTH_HEAD


@pytest.mark.parametrize("revision", REVISIONS)
def test_a_database_of_the_original_is_adopted(opened: Opener, revision: str) -> None:
    """From each of its revisions, with its data, and with the sums counted."""
    db = opened()
    bring_to(db, revision)
    run(db, *OLD_ROWS)
    assert not schema.is_current(db)
    schema.upgrade(db)
    schema.sync_standard_names(db)
    assert schema.is_current(db) and schema.check(db) == []
    assert provider_usages(db, provider(5)).usages == {"VCPU": 7}
    claim(db, holding(1, {5: {"VCPU": 1}}))


@pytest.mark.parametrize(
    ("breakage", "words"),
    [
        ("UPDATE resource_providers SET root_provider_id = NULL", "1 resource providers have no"),
        ("DELETE FROM consumers", "2 consumers have allocations but no consumers row"),
    ],
)
def test_data_that_blocks_an_upgrade(opened: Opener, breakage: str, words: str) -> None:
    """One sentence and the next step; the database stays as it was."""
    db = opened()
    bring_to(db, REVISIONS[0])
    run(db, *OLD_ROWS, breakage)
    with pytest.raises(SchemaError, match=words):
        schema.upgrade(db)
    assert schema.current_version(db) == REVISIONS[0]


def test_tables_that_nobody_knows(opened: Opener) -> None:
    """Without a revision, or with one of the future."""
    db = opened()
    bring_to(db, REVISIONS[-1])
    run(db, "UPDATE alembic_version SET version_num = 'ffffffffffff'")
    with pytest.raises(SchemaError, match="ffffffffffff"):
        schema.upgrade(db)
    run(db, "DROP TABLE alembic_version")
    with pytest.raises(SchemaError, match="stamp b4ed3a175331"):
        schema.upgrade(db)


def test_the_tables_of_another_program_are_left_alone(opened: Opener) -> None:
    """A mistyped path must not put berth's tables among somebody else's."""
    db = opened()
    run(db, "CREATE TABLE bookmarks (id INTEGER)")
    with pytest.raises(SchemaError, match="another program's tables \\(bookmarks\\)"):
        schema.upgrade(db)
    with db.read() as tx:
        assert inspect(tx.connection).get_table_names() == ["bookmarks"]


def test_several_processes_may_prepare_one_database(opened: Opener) -> None:
    """One does it, the others find it done."""

    def prepare(db: Database) -> bool:
        schema.upgrade(db)
        schema.sync_standard_names(db)
        return schema.is_current(db)

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(prepare, [opened() for _ in range(4)]))
    db = opened()
    assert list_resource_classes(db).names == list(STANDARD_CLASSES)
    found = list_traits(db, names=None, prefix=None, associated=None)
    assert sorted(found.names) == list(STANDARD_TRAITS)


def test_missing_standard_names_come_back(db: Database) -> None:
    """A newer library has more; when none is missing, nothing is written."""
    run(
        db,
        "DELETE FROM traits WHERE name = 'HW_CPU_X86_VMX'",
        "DELETE FROM resource_classes WHERE name = 'FPGA'",
    )
    schema.sync_standard_names(db)
    assert list_resource_classes(db).names == list(STANDARD_CLASSES)
    with counted_statements(db) as sent:
        schema.sync_standard_names(db)
    assert len(sent) == 3 and not any("INSERT" in statement for statement in sent)


def test_what_the_original_did_meanwhile_is_counted_again(db: Database) -> None:
    """After a database was handed back and taken over again."""
    add_provider(db, 5, VCPU=8)
    claim(db, holding(1, {5: {"VCPU": 2}}))
    run(
        db,
        "UPDATE allocations SET used = 5",
        "INSERT INTO inventories (resource_provider_id, resource_class_id, total, reserved,"
        " min_unit, max_unit, step_size, allocation_ratio) VALUES (1, 2, 8, 0, 1, 8, 1, 1.0)",
        "INSERT INTO berth_usages VALUES (1, 7, 0)",
    )
    assert schema.check(db) == [
        "provider 1, resource class 0: the sum of usage is 2, but its allocations make 5",
        "provider 1, resource class 2: there is an inventory but no sum of usage",
        "provider 1, resource class 7: there is a sum of usage but no inventory",
    ]
    assert schema.recount_usages(db) == 3
    assert schema.check(db) == []
    assert provider_usages(db, provider(5)).usages == {"VCPU": 5, "DISK_GB": 0}
    assert schema.recount_usages(db) == 0


def test_a_record_that_a_failed_claim_of_the_original_left_is_no_fault(db: Database) -> None:
    """It is at generation 0; one that has held something must not be left."""
    add_provider(db, 5, VCPU=8)
    claim(db, holding(1, {5: {"VCPU": 2}}))
    run(db, "DELETE FROM allocations", "UPDATE berth_usages SET used = 0")
    assert schema.check(db) == [f"consumer {consumer(1)} has a record but no allocations"]
    run(db, "UPDATE consumers SET generation = 0")
    assert schema.check(db) == []


@pytest.mark.parametrize(
    ("breakage", "faults"),
    [
        (
            "UPDATE resource_providers SET root_provider_id = NULL WHERE id = 1",
            ["provider 1 has no root", "provider 2 has root 1, but its parent has root None"],
        ),
        (
            "UPDATE resource_providers SET root_provider_id = 3 WHERE id = 2",
            ["provider 2 has root 3, but its parent has root 1"],
        ),
        (
            "UPDATE resource_providers SET root_provider_id = 1 WHERE id = 3",
            ["provider 3 has no parent, but 1 as its root"],
        ),
        (
            "UPDATE resource_providers SET parent_provider_id = 2 WHERE id = 1",
            ["provider 1 is below itself", "provider 2 is below itself"],
        ),
        (
            "DELETE FROM consumers",
            [f"consumer {holding(1, {}).uuid} has allocations but no record"],
        ),
        (
            "INSERT INTO allocations (resource_provider_id, consumer_id, resource_class_id, used)"
            " SELECT resource_provider_id, consumer_id, resource_class_id, 0 FROM allocations",
            [
                f"consumer {holding(1, {}).uuid} has several allocations of resource class 0"
                " on provider 3"
            ],
        ),
        (
            "INSERT INTO inventories (resource_provider_id, resource_class_id, total, reserved,"
            " min_unit, max_unit, step_size, allocation_ratio) VALUES (9, 2, 8, 0, 1, 8, 1, 1.0);"
            "INSERT INTO berth_usages VALUES (9, 2, 0)",
            ["inventories: there are rows of provider 9, which does not exist"],
        ),
        (
            "DELETE FROM inventories; DELETE FROM berth_usages",
            ["provider 3, resource class 0: there are allocations but no inventory"],
        ),
    ],
)
def test_the_check_says_what_is_wrong(db: Database, breakage: str, faults: list[str]) -> None:
    """A sentence for each fault, and nothing else."""
    for number, parent in ((1, None), (2, 1)):
        add_provider(db, number, parent=parent)
    add_provider(db, 3, VCPU=4)
    claim(db, holding(1, {3: {"VCPU": 2}}))
    assert schema.check(db) == []
    run(db, *breakage.split(";"))
    assert schema.check(db) == faults
