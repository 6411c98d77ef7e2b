# SPDX-License-Identifier: Apache-2.0
"""The check and the repair: what they find, what they say, and what they leave alone."""

from __future__ import annotations

from typing import Any

import pytest

from berth.index import Index
from berth.model.inventory import Inventory
from berth.model.named import DrainName, Effect, Flavor, FlavorName
from berth.store.engine.database import Database
from berth.store.identity import IDENTITY_BYTES, NO_IDENTITY, renew_identity
from berth.store.named import put_drain, put_flavor, replace_labels
from berth.store.resource_classes import create_resource_class
from berth.upkeep import schema
from berth.upkeep.integrity import iter_faults, iter_repaired
from berth.upkeep.integrity.consumers import Owner
from berth.upkeep.integrity.storage import count_on
from tests.fresh import opened_at
from tests.index.checking import checked
from tests.servers.statements import run
from tests.store.damage import CASES, Damage, damage
from tests.store.fleet import add_provider, aggregate, claim, consumer, holding, provider


@pytest.mark.engines("sqlite")
@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_each_fault_is_found_and_nothing_else(
    sound: Database, database_url: str, case: Damage
) -> None:
    """One sentence for each, with the names that operators know."""
    assert schema.check(sound) == []
    damage(database_url, case)
    faults = {(fault.sentence, fault.action) for fault in iter_faults(sound)}
    assert faults == set(case.faults)


@pytest.mark.engines("sqlite")
def test_what_the_api_accepts_is_no_fault(sound: Database) -> None:
    """Such as more reserved than there is, which a reshape may leave behind; or a custom class
    with the lowest id outside the range of the standard classes."""
    create_resource_class(sound, "CUSTOM_GOLD")
    inventories: dict[str, Any] = {
        "VCPU": Inventory(1, reserved=2),
        "MEMORY_MB": Inventory(10, reserved=10),
        "DISK_GB": Inventory(10, min_unit=8, max_unit=4, allocation_ratio=-1.0),
        "CUSTOM_GOLD": Inventory(10, step_size=20),
    }
    add_provider(sound, 50, **inventories)
    assert schema.check(sound) == []


@pytest.mark.engines("sqlite")
@pytest.mark.parametrize(
    "field",
    [
        *("total = 0", "reserved = -1", "min_unit = 0", "max_unit = 0"),
        *("step_size = 0", "allocation_ratio = 1e39", "allocation_ratio = -1e39"),
        "max_unit = 2147483648",
    ],
)
def test_what_the_api_refuses_is_a_fault(db: Database, fresh_url: str, field: str) -> None:
    """Each field by itself."""
    add_provider(db, 50, VCPU=8)
    run(fresh_url, f"UPDATE inventories SET {field}")
    (fault,) = iter_faults(db)
    assert "impossible inventory" in fault.sentence


@pytest.mark.engines("sqlite")
def test_a_name_at_the_end_of_a_sentence_keeps_its_comma(db: Database, fresh_url: str) -> None:
    """Only the comma that follows "which does not exist" is left out at an end."""
    add_provider(db, 1, VCPU=1)
    claim(db, holding(1, {1: {"VCPU": 1}}, name="job,"))
    run(fresh_url, "DELETE FROM allocations", "DELETE FROM consumers")
    assert "forget the name job," in [fault.action for fault in iter_faults(db)]


@pytest.mark.engines("sqlite")
@pytest.mark.parametrize(
    ("statement", "faults"),
    [
        ("UPDATE berth_flavors SET request = '[]' WHERE name = 'a'", ["flavor a is damaged"]),
        ("UPDATE berth_flavors SET request = '{'", ["flavor a is damaged", "flavor b is damaged"]),
        ("UPDATE berth_labels SET name = 'x'", [f"the labels of aggregate {aggregate(1)} are"]),
        ("UPDATE berth_labels SET labels = '[]'", [f"the labels of aggregate {aggregate(1)} are"]),
        ("UPDATE berth_drains SET effect = 'x'", ["drain rack-7 is damaged"]),
    ],
)
def test_damage_of_berths_own_tables_is_told(
    db: Database, fresh_url: str, statement: str, faults: list[str]
) -> None:
    """A check says what to do about it. Every index still loads, with all that is sound: a damaged
    drain has no effect."""
    add_provider(db, 1)
    sound = Flavor('{"groups": {"": {"resources": {"VCPU": 1}}}}')
    for name in "ab":
        put_flavor(db, FlavorName(name), sound)
    replace_labels(db, aggregate(1), {"name": "az-1"})
    put_drain(
        db,
        DrainName("rack-7"),
        [provider(1)],
        effect=Effect.EXCLUDE,
        reason="",
        created_by="alice",
    )
    run(fresh_url, statement)
    sentences = schema.check(db)
    assert len(sentences) == len(faults)
    assert all(map(str.startswith, sentences, faults)), sentences
    snapshot = Index(db).snapshot()
    assert len(snapshot.names.records.flavors) >= 2 - len(faults)
    assert snapshot.has_drained != ("berth_drains" in statement)


@pytest.mark.engines("sqlite")
def test_a_lost_identity_is_replaced_and_every_index_sees_a_new_one(
    db: Database, fresh_url: str
) -> None:
    """An upgrade keeps the identity; a check finds that there is none, and a repair makes one."""
    index = Index(db)
    first = index.snapshot().clock.identity
    assert len(first) == IDENTITY_BYTES and first != NO_IDENTITY
    schema.upgrade(db)
    assert index.snapshot().clock.identity == first
    renew_identity(db)
    assert index.snapshot().clock.identity not in (first, NO_IDENTITY)
    assert index.counts.loads == 1
    run(fresh_url, "DELETE FROM berth_meta")
    assert schema.check(db) == ["the database has no identity"]
    actions = [fault.action for fault in iter_repaired(db, Owner())]
    assert actions == ["give the database a new identity"] and schema.check(db) == []


@pytest.mark.engines("sqlite")
def test_a_deep_tree_is_no_fault(db: Database, fresh_url: str) -> None:
    """A repair finds its root, too."""
    uuids = [add_provider(db, number, parent=number - 1 or None) for number in range(1, 13)]
    assert schema.check(db) == []
    run(fresh_url, "UPDATE resource_providers SET root_provider_id = NULL")
    assert len([*iter_repaired(db, Owner())]) == 12
    assert run(
        fresh_url,
        "SELECT DISTINCT root.uuid FROM resource_providers rp "
        "JOIN resource_providers root ON root.id = rp.root_provider_id",
    ) == [(uuids[0],)]


@pytest.mark.engines("sqlite", "postgresql", "mariadb")
def test_everything_at_once_is_found_and_repaired(sound: Database, database_url: str) -> None:
    """A dry run announces what the repair does, and the rest is what it announced to leave."""
    damage(database_url, *CASES.values())
    count_on(sound)  # the damage adds rows with numbers of its own
    expected = {fault for case in CASES.values() for fault in case.faults}
    dry_run = [(fault.sentence, fault.action) for fault in iter_faults(sound)]
    assert sorted(dry_run, key=str) == sorted(expected, key=str)
    repaired = list(iter_repaired(sound, Owner()))
    # A server gives rows in any order.
    assert {(fault.sentence, fault.action) for fault in repaired} == expected
    assert len(repaired) == len(expected)
    left = {fault.sentence for fault in repaired if fault.action is None}
    assert set(schema.check(sound)) == left
    journal = run(database_url, "SELECT seq FROM berth_journal WHERE writer_id = 77")
    assert journal == [(3,)], "what is counted is not forgotten"
    assert all(fault.advice for fault in repaired if fault.action is None)


@pytest.mark.engines("sqlite", "postgresql", "mariadb")
def test_a_live_index_follows_a_repair(sound: Database, database_url: str) -> None:
    """The repair writes to the journal, so an index applies it like any other commit."""
    damage(database_url, CASES["sums of usage"], CASES["a wrong root"])
    other = opened_at(database_url)
    live = Index(other)
    live.snapshot()
    assert all(fault.action for fault in iter_repaired(sound, Owner()))
    assert checked(live) == []
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
    """A usage that is created gets the provider's generation. One that is corrected keeps its own,
    so that another program's write stays visible."""
    uuid = add_provider(sound, 50, VCPU=8)
    ((number,),) = run(database_url, f"SELECT id FROM resource_providers WHERE uuid = '{uuid}'")
    run(database_url, *(statement.format(id=number) for statement in statements))
    dry_run = [fault.sentence for fault in iter_faults(sound)]
    assert len(dry_run) == faults
    repaired = iter_repaired(sound, Owner())
    assert [fault.sentence for fault in repaired] == dry_run
    assert schema.check(sound) == []


@pytest.mark.engines("sqlite")
def test_a_record_that_a_failed_claim_of_the_original_left_is_a_fault(sound: Database) -> None:
    """OpenStack Placement leaves it at generation 0, and refuses who claims for a new consumer."""
    add_provider(sound, 50, VCPU=8)
    claim(sound, holding(50, {50: {"VCPU": 2}}))
    case = CASES["a record without allocations"]
    at_0 = f"UPDATE consumers SET generation = 0 WHERE uuid = '{consumer(99)}'"
    damage(str(sound.engine.url), case, Damage((at_0,), ()))
    assert schema.check(sound) == [sentence for sentence, _ in case.faults]
    assert [fault.action for fault in iter_repaired(sound, Owner())]
    claim(sound, holding(99, {50: {"VCPU": 2}}, seen=None))
    assert schema.check(sound) == []
