# SPDX-License-Identifier: Apache-2.0
"""The check and the repair: what they find, what they say, and what they leave alone."""

from __future__ import annotations

import pytest

from berth.index import Index
from berth.store.engine.database import Database
from berth.store.engine.opening import DatabaseOptions, open_database
from berth.upkeep import schema
from tests.servers.statements import run
from tests.store.damage import CASES, Damage, damage
from tests.store.fleet import add_provider, claim, consumer, holding


@pytest.mark.engines("sqlite")
@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_each_fault_is_found_and_nothing_else(
    sound: Database, database_url: str, case: Damage
) -> None:
    """A sentence for each, with the names that people know."""
    assert schema.check(sound) == []
    damage(database_url, case)
    found = {(fault.sentence, fault.action) for fault in schema.iter_faults(sound)}
    assert found == set(case.faults)


@pytest.mark.engines("sqlite", "postgresql", "mariadb")
def test_everything_at_once_is_found_and_repaired(sound: Database, database_url: str) -> None:
    """A dry run says what a repair does, and what is left is what it said it would leave."""
    damage(database_url, *CASES.values())
    expected = {fault for case in CASES.values() for fault in case.faults}
    dry_run = [(fault.sentence, fault.action) for fault in schema.iter_faults(sound)]
    assert sorted(dry_run, key=str) == sorted(expected, key=str)
    repaired = list(schema.iter_repaired(sound, schema.Owner()))
    assert [(fault.sentence, fault.action) for fault in repaired] == dry_run
    left = {fault.sentence for fault in repaired if fault.action is None}
    assert set(schema.check(sound)) == left
    assert all(fault.advice for fault in repaired if fault.action is None)


@pytest.mark.engines("sqlite", "postgresql", "mariadb")
def test_a_live_index_follows_a_repair(sound: Database, database_url: str) -> None:
    """It stands in the journal, and is read like the claims of others."""
    other = open_database(database_url, options=DatabaseOptions(synchronous=False))
    live = Index(other)
    live.snapshot()
    damage(database_url, CASES["sums of usage"], CASES["a wrong root"])
    assert all(fault.action for fault in schema.iter_repaired(sound, schema.Owner()))
    assert live.check() == []
    other.dispose()


@pytest.mark.engines("sqlite", "postgresql", "mariadb")
@pytest.mark.parametrize(
    ("statements", "faults"),
    [
        (("DELETE FROM berth_usages WHERE resource_provider_id = {id}",), 1),
        (
            (
                "UPDATE berth_usages SET used = 1 WHERE resource_provider_id = {id}",
                "UPDATE resource_providers SET generation = generation + 1 WHERE id = {id}",
            ),
            2,
        ),
    ],
)
def test_a_sum_that_is_put_right_says_no_more_of_others_than_before(
    sound: Database, database_url: str, statements: tuple[str, ...], faults: int
) -> None:
    """The only sum of a provider: made again, it knows the provider's generation; corrected, it
    does not hide that another program has moved it."""
    uuid = add_provider(sound, 50, VCPU=8)
    ((number,),) = run(database_url, f"SELECT id FROM resource_providers WHERE uuid = '{uuid}'")
    run(database_url, *(one.format(id=number) for one in statements))
    dry_run = [fault.sentence for fault in schema.iter_faults(sound)]
    assert len(dry_run) == faults
    repaired = schema.iter_repaired(sound, schema.Owner())
    assert [fault.sentence for fault in repaired] == dry_run
    assert schema.check(sound) == []


@pytest.mark.engines("sqlite")
def test_a_record_that_a_failed_claim_of_the_original_left_is_no_fault(sound: Database) -> None:
    """It is at generation 0; one that has held something must not be left."""
    add_provider(sound, 50, VCPU=8)
    claim(sound, holding(50, {50: {"VCPU": 2}}))
    case = CASES["a record without allocations"]
    damage(str(sound.engine.url), case)
    assert schema.check(sound) == [sentence for sentence, _ in case.faults]
    damage(
        str(sound.engine.url),
        Damage((f"UPDATE consumers SET generation = 0 WHERE uuid = '{consumer(99)}'",), ()),
    )
    assert schema.check(sound) == []
