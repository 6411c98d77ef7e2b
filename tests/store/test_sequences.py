# SPDX-License-Identifier: Apache-2.0
"""PostgreSQL's sequences are behind their rows, as after a restore of data alone."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from berth.store.engine.database import Database
from berth.store.traits import create_trait
from berth.upkeep import schema
from berth.upkeep.integrity import iter_repaired
from berth.upkeep.integrity.consumers import Owner
from berth.upkeep.integrity.storage import count_on, tables_behind
from tests.servers.statements import run
from tests.store.fleet import add_provider, claim, holding

pytestmark = pytest.mark.engines("postgresql")

_SERIAL = "SELECT sequencename FROM pg_sequences WHERE schemaname = 'public'"


def put_back(url: str) -> None:
    """Let every sequence begin again, as tools leave it that load rows with their numbers."""
    for (name,) in run(url, _SERIAL):
        run(url, f"SELECT setval('{name}', 1, false)")


def test_a_sound_database_has_none(sound: Database) -> None:
    """Neither before nor after rows are added."""
    assert tables_behind(sound) == []


@pytest.mark.parametrize(
    "cure",
    [
        lambda db: list(iter_repaired(db, Owner())),
        count_on,
        schema.upgrade,
    ],
    ids=["db check --repair", "a start", "db upgrade"],
)
def test_each_cure_counts_on(
    sound: Database, database_url: str, cure: Callable[[Database], object]
) -> None:
    """`berth status` and `berth db check` name the tables; then new rows get numbers of their
    own."""
    put_back(database_url)
    behind = tables_behind(sound)
    assert {"resource_providers", "consumers", "allocations", "projects"} <= set(behind)
    sentences = "\n".join(schema.check(sound))
    assert all(f"the sequence of {table} would number a new row 1" in sentences for table in behind)
    cure(sound)
    assert schema.check(sound) == []
    create_trait(sound, "CUSTOM_NEW")
    add_provider(sound, 60, VCPU=8)
    claim(sound, holding(60, {60: {"VCPU": 2}}, project="a new one", user="another"))
    assert schema.check(sound) == []
