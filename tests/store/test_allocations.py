# SPDX-License-Identifier: Apache-2.0
"""Claims: what they cost, whom a refusal names, and what several of one write come to. Their other
rules are seen over HTTP: tests/api/test_allocations_*.py and tests/api/test_reshaper.py."""

from __future__ import annotations

import re

import pytest
from sqlalchemy import insert

from berth.model.errors import CapacityExceeded, ConsumerGenerationConflict, UnitViolation
from berth.model.inventory import Inventory
from berth.model.shown import UNSET, Sometimes
from berth.store.allocations import consumer_allocations
from berth.store.engine.database import Database
from berth.store.engine.tables import consumers
from berth.store.reshape import ReshapedInventories, reshape
from berth.store.usages import project_usages_by_type
from berth.upkeep import schema
from tests.store.fleet import (
    add_provider,
    claim,
    consumer,
    generation,
    held,
    holding,
    provider,
    restock,
)
from tests.store.statements import counted_statements

pytestmark = pytest.mark.engines("sqlite", "postgresql", "mariadb")


def test_the_amounts_of_one_request_each_come_in_units(db: Database) -> None:
    """Even if their sum is a multiple of the step."""
    add_provider(db, 1, VCPU=Inventory(8, min_unit=2, max_unit=6, step_size=2))
    for amounts in ((2, 3), (3, 2), (3, 3)):
        with pytest.raises(UnitViolation):
            claim(db, *(holding(n, {1: {"VCPU": each}}) for n, each in enumerate(amounts)))
    claim(db, holding(1, {1: {"VCPU": 6}}))


def test_the_usages_of_a_project_follow_the_type_of_the_last_write(db: Database) -> None:
    """A write below 1.38 keeps it."""
    add_provider(db, 1, VCPU=4)
    steps: list[tuple[str, Sometimes[str | None], str]] = [
        ("a", UNSET, "unknown"),
        ("a", "INSTANCE", "INSTANCE"),
        ("b", UNSET, "INSTANCE"),
        ("b", "MIGRATION", "MIGRATION"),
        ("b", None, "unknown"),
    ]
    for project, given, shown in steps:
        claim(db, holding(1, {1: {"VCPU": 1}}, project=project, consumer_type=given))
        assert list(project_usages_by_type(db, project, None, None)) == [shown]


@pytest.mark.parametrize("kept", [8, 6])
def test_a_refusal_names_the_first_that_is_full_and_what_it_has_free(
    db: Database, kept: int
) -> None:
    """In the order of the request; not one on which the consumer keeps its amount or less, however
    overcommitted it is; and never less than nothing is free."""
    for number, total in ((1, 10), (2, 10), (3, 1), (4, 1)):
        add_provider(db, number, VCPU=total)
    claim(db, holding(1, {1: {"VCPU": 8}, 2: {"VCPU": 1}}))
    claim(db, holding(2, {2: {"VCPU": 6}}))
    restock(db, 1, VCPU=4)
    for wanted, named, hint in (
        ({1: kept, 2: 5}, 2, "5 asked, 4 free."),
        ({2: 1, 4: 2, 3: 2}, 4, "2 asked, 1 free."),
        ({1: kept, 3: 2, 4: 2}, 3, "2 asked, 1 free."),
        ({1: 9}, 1, "9 asked, 4 free."),
    ):
        with pytest.raises(CapacityExceeded) as refusal:
            claim(db, holding(1, {at: {"VCPU": amount} for at, amount in wanted.items()}, seen=1))
        assert provider(named) in str(refusal.value) and refusal.value.hint == hint
    with pytest.raises(CapacityExceeded) as refusal:
        claim(db, holding(3, {1: {"VCPU": 4}}))
    assert refusal.value.hint == "4 asked, 0 free."


def test_a_reshape_may_keep_what_a_host_has_no_room_for(db: Database) -> None:
    """Allocations that do not grow are accepted; the rest of the write is as usual."""
    add_provider(db, 1, VCPU=4, DISK_GB=10)
    claim(db, holding(1, {1: {"VCPU": 4, "DISK_GB": 5}}))

    def reshaped(total: int, vcpu: int, disk: int) -> None:
        stock = {"VCPU": Inventory(total), "DISK_GB": Inventory(10)}
        inventories = ReshapedInventories(provider(1), generation(db, 1), stock)
        reshape(db, [inventories], [holding(1, {1: {"VCPU": vcpu, "DISK_GB": disk}})])
        assert schema.check(db) == []

    reshaped(1, 4, 5)
    reshaped(1, 3, 6)
    with pytest.raises(CapacityExceeded):
        reshaped(2, 4, 6)
    assert held(db, 1) == {consumer(1): {"VCPU": 3, "DISK_GB": 6}}
    reshape(db, [], [holding(1, {1: {"VCPU": 3, "DISK_GB": 6}})])
    assert schema.check(db) == []


def test_a_record_that_another_program_left_takes_generation_0(db: Database) -> None:
    """OpenStack Placement can leave one without allocations."""
    add_provider(db, 1, VCPU=4)
    claim(db, holding(2, {1: {"VCPU": 1}}))
    left = {"uuid": consumer(1), "project_id": 1, "user_id": 1, "generation": 0}
    db.write(lambda tx: tx.connection.execute(insert(consumers), left) and None)
    with pytest.raises(ConsumerGenerationConflict, match="expected 0 but got None"):
        claim(db, holding(1, {1: {"VCPU": 1}}, seen=None))
    claim(db, holding(1, {1: {"VCPU": 1}}, seen=0))
    stored = consumer_allocations(db, consumer(1))
    assert stored is not None and stored.generation == 1
    assert schema.check(db) == []


def test_what_a_claim_costs(db: Database) -> None:
    """The claim of a new consumer whose project and user exist: the reason for each statement."""
    add_provider(db, 1, VCPU=100)
    claim(db, holding(1, {1: {"VCPU": 1}}, consumer_type="INSTANCE"))
    with counted_statements(db) as sent:
        claim(db, holding(2, {1: {"VCPU": 1}}, consumer_type="INSTANCE"))
    shapes = [
        " ".join(re.findall(r"^\w+|(?<=FROM )\w+|(?<=INTO )\w+|(?<=UPDATE )\w+", future)[:2])
        for future in sent[1:]  # after that which begins, which each engine says in its own way
    ]
    assert shapes == [
        "SELECT berth_consumer_names",  # and all else that it is decided on
        "UPDATE resource_providers",
        "UPDATE berth_usages",
        "INSERT allocations",
        "INSERT consumers",
        "UPDATE berth_writer",
        "INSERT berth_journal",
        "UPDATE berth_project_usages",
    ]
