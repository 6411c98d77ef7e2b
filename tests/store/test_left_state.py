# SPDX-License-Identifier: Apache-2.0
"""Whether another program has written to a database since berth left it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import pytest

from berth.index import Index
from berth.model.shown import UNSET
from berth.store.aggregates import replace_aggregates
from berth.store.engine.database import Database
from berth.store.resource_classes import ensure_resource_class
from berth.upkeep import schema
from berth.upkeep.left_state import leave, was_written
from tests.servers.statements import run
from tests.store.fleet import add_provider, aggregate, claim, holding, provider

#: What OpenStack Placement can do without a change of a provider's generation.
SILENT: Final = {
    "creates a provider": "INSERT INTO resource_providers (uuid, name, generation) "
    f"VALUES ('{provider(9)}', 'p9', 0)",
    "renames a provider": "UPDATE resource_providers SET name = 'x', "
    f"updated_at = '2026-01-01 00:00:00' WHERE uuid = '{provider(1)}'",
    "moves a provider": "UPDATE resource_providers "
    f"SET parent_provider_id = NULL, root_provider_id = id WHERE uuid = '{provider(8)}'",
    "deletes a provider": f"DELETE FROM resource_providers WHERE uuid = '{provider(3)}'",
    "sets aggregates below microversion 1.19": "UPDATE resource_provider_aggregates "
    f"SET resource_provider_id = (SELECT id FROM resource_providers WHERE uuid = '{provider(2)}')",
    "creates a trait": "INSERT INTO traits (name) VALUES ('CUSTOM_NEW')",
    "renames a resource class": "UPDATE resource_classes SET name = 'CUSTOM_B', "
    "updated_at = '2026-01-01 00:00:00' WHERE name = 'CUSTOM_A'",
}

pytestmark = pytest.mark.engines("sqlite", "postgresql", "mariadb")


@pytest.fixture
def left(db: Database) -> Database:
    """A database that berth has left: two hosts, and children of the first without inventory."""
    for number in (1, 2):
        add_provider(db, number, VCPU=8)
    for number in (3, 8):
        add_provider(db, number, parent=1)
    replace_aggregates(db, provider(1), [aggregate(1)], UNSET)
    ensure_resource_class(db, "CUSTOM_A")
    leave(db)
    return db


def revision(db: Database) -> str:
    """That of a service which starts now."""
    return Index(db).snapshot().revision


def test_another_program_has_written(left: Database, fresh_url: str) -> None:
    """So the database gets a new identity, each time anew. Whoever upgrades it again need not read
    the fleet again."""
    for act, statement in SILENT.items():
        assert was_written(left) is False
        before = revision(left)
        run(fresh_url, statement)
        assert was_written(left) is True, act
        assert len(schema.upgrade(left)) == 1
        after = revision(left)
        assert after.partition(".")[2][:8] != before.partition(".")[2][:8]
        leave(left)
        assert (schema.upgrade(left), revision(left)) == ([], after)


def test_each_stop_counts(left: Database, fresh_url: str) -> None:
    """Not only the first one."""
    add_provider(left, 4)
    leave(left)
    assert was_written(left) is False
    run(fresh_url, SILENT["renames a provider"])
    assert was_written(left) is True


@pytest.mark.parametrize(
    "act", [lambda db: claim(db, holding(1, {1: {"VCPU": 1}})), lambda db: add_provider(db, 4)]
)
def test_what_berth_writes_later_hides_it(
    left: Database, fresh_url: str, act: Callable[[Database], object]
) -> None:
    """A service that is killed leaves no state. Only an operator's upgrade takes that for a
    write."""
    act(left)
    before = revision(left)
    run(fresh_url, SILENT["renames a provider"])
    assert was_written(left) is None
    assert (schema.upgrade(left), revision(left)) == ([], before)
    assert len(schema.upgrade(left, is_cautious=True)) == 1
    assert revision(left) != before


def test_a_database_that_has_never_given_out_a_revision(left: Database, fresh_url: str) -> None:
    """That of OpenStack Placement gets its first identity with berth's tables."""
    schema.release(left, force=True)
    run(fresh_url, SILENT["creates a trait"])
    assert was_written(left) is False
    assert schema.upgrade(left, is_cautious=True) == []
