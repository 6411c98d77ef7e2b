# SPDX-License-Identifier: Apache-2.0
"""UUIDs of providers and consumers as OpenStack Placement stored them: column x spelling x cure."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from berth.index import Index
from berth.store.engine.database import Database
from berth.upkeep import schema
from berth.upkeep.integrity import iter_faults, iter_repaired
from berth.upkeep.integrity.consumers import Owner
from tests.fresh import opened_at
from tests.index.checking import checked
from tests.servers.statements import run
from tests.store.fleet import consumer, provider

pytestmark = pytest.mark.engines("sqlite", "postgresql", "mariadb")

#: SQL that respells a column.
SPELLINGS = {
    "upper case": "upper({})",
    "no dashes": "replace({}, '-', '')",
    "upper case without dashes": "upper(replace({}, '-', ''))",
    "braces": "concat('{{', replace({}, '-', ''), '}}')",
}

CURES: dict[str, Callable[[Database], object]] = {
    "db upgrade": schema.upgrade,
    "db check --repair": lambda db: list(iter_repaired(db, Owner())),
}

#: A provider with a consumer of the same number: see `damage.fleet`.
_NUMBER = 12


_COLUMNS = (
    ("resource_providers", "uuid", provider),
    ("consumers", "uuid", consumer),
    ("allocations", "consumer_id", consumer),
)


def respell(url: str, spelling: str, number: int = _NUMBER) -> None:
    """Store a provider and a consumer, wherever they occur, in another spelling."""
    for table, column, of in _COLUMNS:
        spelled = SPELLINGS[spelling].format(column)
        run(url, f"UPDATE {table} SET {column} = {spelled} WHERE {column} = '{of(number)}'")


@pytest.mark.engines("postgresql", "mariadb")
@pytest.mark.parametrize("cure", CURES.values(), ids=CURES.keys())
def test_every_spelling_is_found_and_rewritten(
    sound: Database, database_url: str, cure: Callable[[Database], object]
) -> None:
    """The check names both rows, and an index that has loaded them follows the repair. On SQLite:
    tests/rows/test_spellings.py."""
    before = uuids(database_url)
    other = opened_at(database_url)
    for spelling in SPELLINGS:
        respell(database_url, spelling)
        sentences = (fault for fault in iter_faults(sound) if "which no lookup" in fault.sentence)
        (of_provider, of_consumer) = (fault.action for fault in sentences)
        assert of_provider == f"store provider number {_NUMBER} as {provider(_NUMBER)}"
        assert str(of_consumer).endswith(f" as {consumer(_NUMBER)}")
        live = Index(other)
        live.snapshot()
        cure(sound)
        assert schema.check(sound) == [], spelling
        assert uuids(database_url) == before, spelling
        if cure is not schema.upgrade:  # which runs while no service does
            assert checked(live) == [], spelling
    other.dispose()


@pytest.mark.parametrize("spelling", [None, "no dashes"])
def test_two_rows_with_one_uuid_are_left_alone(
    sound: Database, database_url: str, spelling: str | None
) -> None:
    """Only a person knows which is right; the check says what to do. If neither is in canonical
    form, the first is put into it."""
    if database_url.startswith("mysql"):
        pytest.skip("the collation refuses the second row")
    upper = consumer(_NUMBER).upper()
    run(database_url, f"UPDATE consumers SET uuid = '{upper}' WHERE uuid = '{consumer(13)}'")
    run(
        database_url,
        f"UPDATE allocations SET consumer_id = '{upper}' WHERE consumer_id = '{consumer(13)}'",
    )
    if spelling is not None:
        respell(database_url, spelling)
    schema.upgrade(sound)
    (fault,) = iter_repaired(sound, Owner())
    assert f"is stored as {upper}, which no lookup finds" in fault.sentence
    assert fault.action is None
    assert f"another consumer is stored as {consumer(_NUMBER)}" in fault.advice
    assert schema.check(sound) == [fault.sentence]


def uuids(url: str) -> list[object]:
    """The UUIDs in all columns that hold one."""
    return [sorted(run(url, f"SELECT {column} FROM {table}")) for table, column, _ in _COLUMNS]
